"""ViewCatalog: the views of a ledger."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

from ledger.catalog_databases import DatabaseCatalog
from ledger.commit_options import CommitOptions, fresh_id
from ledger.events.catalog_events import ViewChange, ViewCreated
from ledger.evolution.catalog_builder import identifier_of
from ledger.evolution.catalog_state import CatalogState, ViewEntry
from ledger.log.request import Appended
from ledger.model import arguments as its
from ledger.model.arguments import takes
from ledger.model.errors import NotFoundError
from ledger.model.identifier import Identifier
from ledger.model.view import ViewSchema


class ViewCatalog(DatabaseCatalog):
    """The part of a ledger that knows views; `Ledger` is what a user holds."""

    @takes(database=its.text)
    def views(self, database: str) -> list[str]:
        """Return the names of a database's views, sorted."""
        state = self.state
        state.database(database)
        return sorted(each.name for each in state.views if each.database == database)

    def view(self, identifier: str | Identifier) -> ViewEntry:
        """Return a view.

        Raises:
            NotFoundError: It does not exist; the message names similar ones.
        """
        return self.state.view(Identifier.parse(identifier))

    @takes(schema=its.a("a ViewSchema", ViewSchema))
    def create_view(
        self, identifier: str | Identifier, schema: ViewSchema, **commit: Unpack[CommitOptions]
    ) -> ViewEntry:
        """Create a view and return it."""
        from ledger.evolution.catalog_request import CreateView

        name = Identifier.parse(identifier)
        asked = ["CreateView", str(name), repr(schema)]
        request = self._request(asked, commit)
        done = self._commit(lambda: CreateView(name, fresh_id(), schema), request)
        view = self._after(request, done.version, lambda: self._view_of(done.version, name))
        if view is None:
            raise NotFoundError(f"view {name} was created and dropped since; create it anew")
        return view

    def _view_of(self, version: int, name: Identifier) -> ViewEntry | None:
        """Return the view of that name which a catalog commit created; None once dropped."""
        created = (
            event.view_id
            for event in self._events_of(version)
            if isinstance(event, ViewCreated) and identifier_of(event.identifier) == name
        )
        return self.state.view_by_id(next(created))

    @takes(changes=its.many("a sequence of changes of a view"))
    def alter_view(
        self,
        identifier: str | Identifier,
        changes: Sequence[ViewChange],
        **commit: Unpack[CommitOptions],
    ) -> Appended[CatalogState]:
        """Change a view's options, comment or dialects."""
        from ledger.evolution.catalog_request import AlterView

        return self._ask(AlterView(Identifier.parse(identifier), tuple(changes)), commit)

    def rename_view(
        self,
        source: str | Identifier,
        destination: str | Identifier,
        **commit: Unpack[CommitOptions],
    ) -> Appended[CatalogState]:
        """Give a view another name."""
        from ledger.evolution.catalog_request import RenameView

        names = Identifier.parse(source), Identifier.parse(destination)
        return self._ask(RenameView(*names), commit)

    def drop_view(
        self, identifier: str | Identifier, **commit: Unpack[CommitOptions]
    ) -> Appended[CatalogState]:
        """Drop a view."""
        from ledger.evolution.catalog_request import DropView

        return self._ask(DropView(Identifier.parse(identifier)), commit)
