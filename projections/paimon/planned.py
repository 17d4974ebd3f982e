"""What a change of a table's schema or layout means for Paimon: files, and what they leave out."""

from __future__ import annotations

from typing import Final

from attrs import frozen

from ledger.evolution.declared.format import declared_by
from ledger.evolution.state import TableState
from projections.paimon.paths import schema_path

PAIMON: Final = "paimon"


@frozen
class Planned:
    """What `lakeledger plan` shows of Paimon; called, it gives the files of a change."""

    def __call__(self, before: TableState, after: TableState) -> tuple[str, ...]:
        """Return the files that projecting a change writes, relative to the table's location.

        Only a schema file: layouts other than the partition keys are nothing to Paimon.

        Args:
            before: The table before the change.
            after: The table after it, with the same snapshots and tags.
        """
        return tuple(schema_path(each) for each in range(before.schema.id + 1, after.schema.id + 1))

    def warnings(self, before: TableState, after: TableState) -> tuple[str, ...]:
        """Return what a table has that its files will not, where a change declares Paimon.

        Args:
            before: The table before the change.
            after: The table after it.
        """
        if not after.branches or PAIMON in declared_by(before.schema.options).formats:
            return ()
        named = ", ".join(sorted(after.branches))
        said = (
            f"Paimon's files have no branches of the ledger: {named} cannot be read there, until "
            "main is fast-forwarded to it"
        )
        return (said,)


planned = Planned()
