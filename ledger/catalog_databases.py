"""DatabaseCatalog: the databases of a ledger."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Unpack

from ledger.catalog_handle import CatalogHandle
from ledger.commit_options import CommitOptions
from ledger.evolution.catalog_state import CatalogState
from ledger.log.request import Appended
from ledger.model import arguments as its
from ledger.model.arguments import takes


class DatabaseCatalog(CatalogHandle):
    """The part of a ledger that knows databases; `Ledger` is what a user holds."""

    def databases(self) -> list[str]:
        """Return the names of all databases, sorted."""
        return sorted(self.state.databases)

    @takes(name=its.text, options=its.texts.or_none())
    def create_database(
        self, name: str, options: Mapping[str, str] | None = None, **commit: Unpack[CommitOptions]
    ) -> Appended[CatalogState]:
        """Create a database.

        Raises:
            AlreadyExistsError: There is one of that name.
            InvalidNameError: The name would not be safe as a path.
        """
        from ledger.evolution.catalog_request import CreateDatabase

        return self._ask(CreateDatabase(name, options or {}), commit)

    @takes(name=its.text, removals=its.names, updates=its.texts.or_none())
    def alter_database(
        self,
        name: str,
        *,
        removals: Sequence[str] = (),
        updates: Mapping[str, str] | None = None,
        **commit: Unpack[CommitOptions],
    ) -> Appended[CatalogState]:
        """Remove and set options of a database."""
        from ledger.evolution.catalog_request import AlterDatabase

        return self._ask(AlterDatabase(name, tuple(removals), updates or {}), commit)

    @takes(name=its.text)
    def drop_database(self, name: str, **commit: Unpack[CommitOptions]) -> Appended[CatalogState]:
        """Drop an empty database."""
        from ledger.evolution.catalog_request import DropDatabase

        return self._ask(DropDatabase(name), commit)
