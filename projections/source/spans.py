"""Planning of spans, filters on them, and the feed of tables for streaming queries.

An offset has, by table id, the table's name, its location and the last version that was given; so
what lies between two offsets is the same whenever it is read again, though a table was renamed or
dropped meanwhile. Tables that were dropped stay in the feed, so that their last events are in it;
those that a copy of a ledger left to its original do not.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, TypedDict

from attrs import define, evolve, field, frozen

from ledger.history.older import TableLog
from ledger.model.errors import DamagedLogError, InvalidInputError, NotFoundError
from ledger.model.instant import (
    Instant,
    SnapshotInstant,
    TagInstant,
    TimestampInstant,
    VersionInstant,
)
from ledger.model.messages import meant
from ledger.state.catalog_builder import PastTable, PastTables
from ledger.state.table import TableState
from ledger.table import Table
from projections.source.columns import Column, typed_column
from projections.source.options import Asked
from projections.source.span_reading import End, Scan, Span, TablePlace, ranges

Operator = Literal["=", ">", ">=", "<", "<="]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
MICROS = 1000
"""Microseconds in a millisecond."""


@frozen
class Bounds:
    """The rows that filters let through; both ends of a range are included, None is no end.

    Attributes:
        versions: First and last version.
        millis: First and last time of a commit, in Unix milliseconds.
        identifiers: Names of tables; None for all.
    """

    versions: tuple[int, int | None] = (0, None)
    millis: tuple[int | None, int | None] = (None, None)
    identifiers: frozenset[str] | None = None

    def narrowed(self, column: str, operator: Operator, value: Any) -> Bounds | None:
        """Return the bounds under one more filter; None when it says nothing about them.

        Example:
            >>> Bounds().narrowed("version", ">", 6)
            Bounds(versions=(7, None), millis=(None, None), identifiers=None)
        """
        if column == "version" and type(value) is int:
            first, last = _cut(self.versions, operator, value)
            return evolve(self, versions=(first or 0, last))
        if column == "time" and isinstance(value, datetime) and value.tzinfo is not None:
            return self._in_time(operator, (value - _EPOCH) // _MICROSECOND)
        if column == "identifier" and operator == "=" and isinstance(value, str):
            return self.named([value])
        return None

    def spanning(self, versions: Sequence[int]) -> Bounds:
        """Return the bounds of the versions from the least to the greatest of some.

        Example:
            >>> Bounds().spanning([3, 9]).versions, Bounds().spanning([]).versions
            ((3, 9), (1, 0))
        """
        if not versions:
            return evolve(self, versions=(1, 0))
        first, last = _cut(_cut(self.versions, ">=", min(versions)), "<=", max(versions))
        return evolve(self, versions=(first or 0, last))

    def named(self, identifiers: Iterable[str]) -> Bounds:
        """Return the bounds for some tables only."""
        wanted = frozenset(identifiers)
        known = self.identifiers
        return evolve(self, identifiers=wanted if known is None else known & wanted)

    def _in_time(self, operator: Operator, micros: int) -> Bounds:
        # Commits have whole milliseconds; a filter may fall between two of them.
        whole, rest = divmod(micros, MICROS)
        if not rest:
            return evolve(self, millis=_cut(self.millis, operator, whole))
        if operator == "=":
            return evolve(self, millis=(1, 0))
        first, last = _cut(self.millis, ">" if operator in (">", ">=") else "<=", whole)
        return evolve(self, millis=(first, last))


def _cut(
    within: tuple[int | None, int | None], operator: Operator, value: int
) -> tuple[int | None, int | None]:
    first, last = within
    lowest = {"=": value, ">": value + 1, ">=": value}.get(operator)
    highest = {"=": value, "<": value - 1, "<=": value}.get(operator)
    if lowest is not None:
        first = lowest if first is None else max(first, lowest)
    if highest is not None:
        last = highest if last is None else min(last, highest)
    return first, last


def columns_of(asked: Asked) -> tuple[Column, ...]:
    """Return the columns of what is asked; for one table its typed partition values are among them.

    Raises:
        NotFoundError: The one table, or the instant in it, does not exist.
        InvalidInputError: A column is asked for by name that there is not.
    """
    every = _every_column(asked)
    if asked.names is None:
        return every
    known = {each.name: each for each in every}
    for name in asked.names:
        if name not in known:
            raise InvalidInputError(
                f"view {asked.view.name} has no column {name!r}; {meant(name, tuple(known))}"
            )
    return tuple(known[name] for name in asked.names)


def _every_column(asked: Asked) -> tuple[Column, ...]:
    view = asked.view
    if not (asked.tables.is_one and view.has_partition):
        return view.columns
    table = asked.root.open().table(asked.tables.pattern)
    state = _end(table, asked.instant)[0]
    found = typed_column(state.schema, state.specs)
    return view.columns if found is None else (*view.columns, found)


def spans(asked: Asked, bounds: Bounds) -> list[Span]:
    """Return the spans to read, table by table, in the order of versions.

    Raises:
        NotFoundError: The one table, or the instant in it, does not exist.
    """
    return [
        each for table in _tables_within(asked, bounds) for each in _spans_of(table, asked, bounds)
    ]


def _tables_within(asked: Asked, bounds: Bounds) -> Iterator[Table]:
    lake = asked.root.open()
    if asked.tables.is_one:
        if bounds.identifiers is None or asked.tables.pattern in bounds.identifiers:
            yield lake.table(asked.tables.pattern)
        return
    for identifier in sorted(lake.state.tables, key=str):
        wanted = bounds.identifiers is None or str(identifier) in bounds.identifiers
        if wanted and asked.tables.has(identifier):
            # Somebody may drop it while we look.
            with suppress(NotFoundError):
                yield lake.table(identifier)


def _spans_of(table: Table, asked: Asked, bounds: Bounds) -> Iterator[Span]:
    try:
        state, end = _end(table, asked.instant)
    except NotFoundError:
        if asked.tables.is_one:
            raise
        # Of many tables, some begin only after the instant.
        return
    place = TablePlace(str(table.identifier), state.table_id, table.path)
    if not asked.view.is_history:
        yield Span(asked.root, place, 0 if asked.view.from_start else end.version, end)
        return
    first, last = versions_within(table.log, bounds, end.version)
    for start, stop in ranges(first, last, asked.versions_per_partition):
        yield Span(asked.root, place, start, end if stop == end.version else End(stop))


def _end(table: Table, instant: Instant | None) -> tuple[TableState, End]:
    """Return the state at an instant and the place in the log that it stands at."""
    state = _state(table, instant)
    if not isinstance(instant, SnapshotInstant | TagInstant):
        return state, End(state.version)
    # A commit of many writers may hold later snapshots, too.
    scan = Scan(table.log, state.version, End(state.version))
    for step in scan.steps():
        if any(each.snapshot_id == state.last_snapshot_id for each in step.snapshots):
            return state, End(state.version, step.position + 1)
    return state, End(state.version)


def _state(table: Table, instant: Instant | None) -> TableState:
    match instant:
        case None:
            return table.at().state
        case VersionInstant(version=version):
            return table.at(version=version).state
        case TimestampInstant(timestamp_millis=moment):
            return table.at(timestamp=moment).state
        case SnapshotInstant(snapshot_id=snapshot_id):
            return table.at(snapshot=snapshot_id).state
        case TagInstant(tag_name=name):
            return table.at(tag=name).state


def versions_within(log: TableLog, bounds: Bounds, newest: int) -> tuple[int, int]:
    """Return the first and last version within bounds; the last is before the first when none is.

    Times become versions by bisection: commit times grow with the version.
    """
    first, last = bounds.versions
    last = newest if last is None else min(last, newest)
    since, until = bounds.millis
    versions = range(newest + 1)

    def millis(version: int) -> int:
        return log.commit_at(version).time_millis

    if since is not None:
        first = max(first, bisect_left(versions, since, key=millis))
    if until is not None:
        last = min(last, bisect_right(versions, until, key=millis) - 1)
    return first, last


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
