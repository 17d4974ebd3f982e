"""Every table that a catalog's commits name: what it was called when, and whether it is gone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from attrs import evolve, frozen

from ledger.events.base import kind_of
from ledger.events.catalog_events import CatalogEvent, LedgerCopied
from ledger.events.commit import Commit
from ledger.events.table_events import TableCreated, TableDropped, TableRenamed
from ledger.evolution.catalog.builder import identifier_of
from ledger.model.identifier import Identifier

ABOUT_TABLES: Final = frozenset(
    kind_of(each) for each in (TableCreated, TableRenamed, TableDropped, LedgerCopied)
)
"""The kinds of events that say something of it; commits without them need not be learned."""


@frozen
class PastTable:
    """A table that there is, or was.

    Attributes:
        table_id: What it is known by through renames.
        path: Its location: relative to the ledger's root, absolute when external.
        created_version: The catalog's commit that created it.
        names: What it was called, each with the time of the catalog's commit from which on, Unix
            milliseconds; oldest first.
        dropped_millis: When the catalog forgot it, Unix milliseconds; None while it knows it.
    """

    table_id: str
    path: str
    created_version: int
    names: tuple[tuple[int, Identifier], ...]
    dropped_millis: int | None = None

    @property
    def identifier(self) -> Identifier:
        """What it is called now, or was last."""
        return self.names[-1][1]

    def name_at(self, time_millis: int) -> Identifier:
        """Return what it was called at a time; before its first name, that one.

        Example:
            >>> names = (5, Identifier("shop", "a")), (9, Identifier("shop", "b"))
            >>> table = PastTable("id", "shop.db/a", 0, names)
            >>> [str(table.name_at(each)) for each in (1, 8, 9)]
            ['shop.a', 'shop.a', 'shop.b']
        """
        known = [name for since, name in self.names if since <= time_millis]
        return known[-1] if known else self.names[0][1]


class PastTables:
    """The tables of a catalog, learned commit by commit in the order of their creation.

    Dropped ones stay; those that a copy left to its original do not.
    """

    def __init__(self) -> None:
        self._by_id: dict[str, PastTable] = {}

    @classmethod
    def of(cls, commits: Iterable[Commit[CatalogEvent]]) -> PastTables:
        """Return the tables that some commits name."""
        tables = cls()
        for each in commits:
            tables.learn(each)
        return tables

    def __iter__(self) -> Iterator[PastTable]:
        return iter(self._by_id.values())

    def learn(self, commit: Commit[CatalogEvent]) -> None:
        """Take in the catalog's next commit."""
        for transaction in commit.transactions:
            for event in transaction.events:
                self._event(commit, event)

    def _event(self, commit: Commit[CatalogEvent], event: CatalogEvent) -> None:
        known, now = self._by_id, commit.time_millis
        if isinstance(event, TableCreated):
            first = now, identifier_of(event.identifier)
            known[event.table_id] = PastTable(event.table_id, event.path, commit.version, (first,))
        elif isinstance(event, TableRenamed):
            old = known[event.table_id]
            named = now, identifier_of(event.destination)
            known[event.table_id] = evolve(old, names=(*old.names, named))
        elif isinstance(event, TableDropped):
            known[event.table_id] = evolve(known[event.table_id], dropped_millis=now)
        elif isinstance(event, LedgerCopied):
            for table_id in event.without:
                del known[table_id]
