"""The log as a feed: which tables there ever were, where each ends, and what is new since.

An offset has, by table id, the table's name, its location and the last version that was given; so
what lies between two offsets is the same whenever it is read again, though a table was renamed or
dropped meanwhile. Tables that were dropped stay in the feed, so that their last events are in it;
those that a copy of a ledger left to its original do not.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypedDict

from attrs import define, field

from ledger.evolution.catalog.history import PastTable, PastTables
from ledger.model.errors import DamagedLogError, InvalidInputError
from ledger.table import Table
from projections.source.planning.asked import Asked
from projections.source.span import End, Span, TablePlace, ranges


class Stand(TypedDict):
    """How far a table was read; plain JSON, as Spark keeps it."""

    identifier: str
    path: str
    version: int


Offset = dict[str, Stand]


@define
class _Read:
    """How far the stream of a table is read."""

    handle: Table | None = None
    version: int = -1
    is_sealed: bool = False


@define
class Feed:
    """Follows a ledger's tables; one table goes on under whatever name it gets later.

    Attributes:
        asked: What is to be read.
    """

    asked: Asked
    _tables: PastTables = field(factory=PastTables)
    _read: dict[str, _Read] = field(factory=dict)
    _next: int = 0

    def __attrs_post_init__(self) -> None:
        view = self.asked.view
        if not view.is_history:
            raise InvalidInputError(
                f"view {view.name} shows a table at one instant and is no stream; follow one of "
                "commits, events, columns, snapshots, files, partition_changes"
            )
        if self.asked.instant is not None:
            raise InvalidInputError(
                f"a stream has no end, but {self.asked.instant} was named; leave it out"
            )

    def initial(self) -> Offset:
        """Return where a new stream begins: before everything, or at the heads."""
        return {} if self.asked.starting == "earliest" else self.latest()

    def latest(self) -> Offset:
        """Return the heads of all tables that are wanted, in the order of their creation."""
        self._look()
        offset: Offset = {}
        for table in self._tables:
            if any(self.asked.tables.has(name) for _, name in table.names):
                read = self._read.setdefault(table.table_id, _Read())
                self._advance(table, read)
                if read.version >= 0:
                    offset[table.table_id] = Stand(
                        identifier=str(table.identifier), path=table.path, version=read.version
                    )
        return offset

    def spans(self, start: Offset, end: Offset) -> list[Span]:
        """Return what lies after one offset, up to another; each version is in one of them."""
        return [each for table_id in end for each in self._between(table_id, start, end[table_id])]

    def _between(self, table_id: str, start: Offset, end: Stand) -> Iterator[Span]:
        begun = start.get(table_id)
        place = TablePlace(end["identifier"], table_id, end["path"])
        first = begun["version"] + 1 if begun else 0
        for low, high in ranges(first, end["version"], self.asked.versions_per_partition):
            yield Span(self.asked.root, place, low, End(high))

    def _look(self) -> None:
        """Take in what the catalog's log says since the last look."""
        lake = self.asked.root.open()
        for commit in lake.events(self._next):
            self._tables.learn(commit)
            self._next = commit.version + 1

    def _advance(self, table: PastTable, read: _Read) -> None:
        if read.is_sealed:
            return
        if read.handle is None:
            place = TablePlace(str(table.identifier), table.table_id, table.path)
            read.handle = place.open(self.asked.root)
        state = read.handle.log.refresh()
        if state is None:
            # Created in the catalog; whoever opens the table writes its version 0.
            return
        if state.table_id != table.table_id:
            raise DamagedLogError(
                f"{read.handle.location} holds the stream of table {state.table_id}, but the "
                f"catalog says {table.table_id}",
                read.handle.log.layout.commit(0),
            )
        read.version, read.is_sealed = state.version, state.dropped
