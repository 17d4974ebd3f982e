"""Table: the handle that a user holds on one table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Unpack

from ledger.commit_options import CommitOptions
from ledger.events import SchemaChange, SpecChange
from ledger.evolution.layout_json import as_table_change
from ledger.evolution.state import TableState
from ledger.evolution.table_changes import DropTable
from ledger.log.request import Appended
from ledger.model.errors import InvalidInputError
from ledger.plugins import PROJECTIONS, load
from ledger.table_snapshots import SnapshotTable


class Table(SnapshotTable):
    """One table: append to it, read it at any instant.

    A handle stays with its table through renames, and is safe to share between threads.
    """

    def alter(
        self,
        changes: Sequence[SchemaChange | SpecChange | Mapping[str, Any]],
        **options: Unpack[CommitOptions],
    ) -> Appended[TableState]:
        """Change the schema, options or comment; all changes land or none.

        Concurrent changes to other things land beside these. Column paths follow their columns
        when somebody else renames them meanwhile.

        Raises:
            InvalidChangeError: A rule forbids a change; nothing was written.
            CommitConflictError: Somebody else set the same thing to another value meanwhile.
            CommitUnknownError: The store gave no answer.
        """
        asked = tuple(map(as_table_change, changes))
        if not asked:
            raise InvalidInputError(f"{self.identifier}: no changes were given; name at least one")
        return self._commit(["alter", asked], options, lambda _: asked)

    def seal(self, **options: Unpack[CommitOptions]) -> Appended[TableState]:
        """Write the last event of the table's stream; `Ledger.drop_table` does the rest."""
        end = DropTable(self.identifier.database, self.identifier.name)
        return self._commit(["dropTable"], options, lambda _: [end])

    def project(self, format_name: str, *, version: int | None = None) -> int:
        """Bring a format's files, such as "paimon", up to a version; return where they stand."""
        return int(load(PROJECTIONS, format_name)(self, version=version))
