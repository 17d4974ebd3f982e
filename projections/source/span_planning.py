"""Planning of a read: its columns, and the spans of versions that its tasks read."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from contextlib import suppress
from zlib import crc32

from ledger.history.older import TableLog
from ledger.model.errors import InvalidInputError, NotFoundError
from ledger.model.instant import (
    Instant,
    SnapshotInstant,
    TagInstant,
    TimestampInstant,
    VersionInstant,
)
from ledger.model.instant_text import CommitsAgo
from ledger.model.messages import name_hint
from ledger.state.table import TableState
from ledger.table import Table
from ledger.table_handle import handle_of
from projections.source.bounds import Bounds
from projections.source.columns import Column, typed_column
from projections.source.read_options import ReadOptions
from projections.source.span_reading import LogScan, Span, SpanEnd, version_ranges
from projections.spark_tasks import TablePlace


def columns_of(asked: ReadOptions) -> tuple[Column, ...]:
    """Return the columns of a read; for one table with its typed partition values.

    Raises:
        NotFoundError: The ledger, the one table, or the instant in it, does not exist.
        InvalidInputError: A requested column does not exist.
    """
    every = _all_columns(asked)
    if asked.names is None:
        return every
    known = {each.name: each for each in every}
    for name in asked.names:
        if name not in known:
            raise InvalidInputError(
                f"view {asked.view.name} has no column {name!r}; {name_hint(name, tuple(known))}"
            )
    return tuple(known[name] for name in asked.names)


def _all_columns(asked: ReadOptions) -> tuple[Column, ...]:
    view = asked.view
    # Opened for every view, so that a mistyped path fails before a query runs.
    lake = asked.root.open()
    if not (asked.tables.is_one and view.has_partition):
        return view.columns
    table = lake.table(asked.tables.pattern)
    state = _state_and_end(table, asked.instant)[0]
    found = typed_column(state.schema, state.specs)
    return view.columns if found is None else (*view.columns, found)


def spans(asked: ReadOptions, bounds: Bounds) -> list[Span]:
    """Return the spans to read, table by table, in the order of versions.

    Raises:
        NotFoundError: The ledger, the one table, or the instant in it, does not exist.
    """
    return [
        each
        for table in _tables_within(asked, bounds)
        for each in _spans_of_table(table, asked, bounds)
    ]


def spans_of_turn(asked: ReadOptions, turn: int) -> Iterator[Span]:
    """Yield the spans of the tables that one of the tasks of a view reads, as they are now.

    A table is read by one task, so that a query sees it at one version.
    """
    tasks = asked.view_tasks or 1
    for table in _tables_where(asked, lambda name: crc32(name.encode()) % tasks == turn):
        yield from _spans_of_table(table, asked, Bounds())


def _tables_within(asked: ReadOptions, bounds: Bounds) -> Iterator[Table]:
    known = bounds.identifiers
    return _tables_where(asked, lambda name: known is None or name in known)


def _tables_where(asked: ReadOptions, is_wanted: Callable[[str], bool]) -> Iterator[Table]:
    lake = asked.root.open()
    if asked.tables.is_one:
        if is_wanted(asked.tables.pattern):
            yield lake.table(asked.tables.pattern)
        return
    for identifier in sorted(lake.state.tables, key=str):
        if asked.tables.has(identifier) and is_wanted(str(identifier)):
            # It may be dropped concurrently.
            with suppress(NotFoundError):
                yield lake.table(identifier)


def _spans_of_table(table: Table, asked: ReadOptions, bounds: Bounds) -> Iterator[Span]:
    try:
        state, end = _state_and_end(table, asked.instant)
    except NotFoundError:
        if asked.tables.is_one:
            raise
        # Of many tables, some were created only after the instant.
        return
    place = TablePlace(str(table.identifier), state.table_id, handle_of(table).path)
    if not asked.view.is_history:
        yield Span(asked.root, place, end.version, end)
        return
    first, last = versions_within(handle_of(table).log, bounds, end.version)
    for start, stop in version_ranges(first, last, asked.versions_per_partition):
        yield Span(asked.root, place, start, end if stop == end.version else SpanEnd(stop))


def _state_and_end(
    table: Table, instant: Instant | CommitsAgo | None
) -> tuple[TableState, SpanEnd]:
    """Return the state at an instant and its position in the log."""
    state = _state_at_instant(table, instant)
    if not isinstance(instant, SnapshotInstant | TagInstant):
        return state, SpanEnd(state.version)
    # A group commit may hold later snapshots, too.
    scan = LogScan(handle_of(table), state.version, SpanEnd(state.version))
    for step in scan.steps():
        if any(each.snapshot_id == state.last_snapshot_id for each in step.snapshots):
            return state, SpanEnd(state.version, step.position + 1)
    return state, SpanEnd(state.version)


def _state_at_instant(table: Table, instant: Instant | CommitsAgo | None) -> TableState:
    match instant:
        case None:
            return table.at().state
        case VersionInstant(version=version):
            return table.at(version=version).state
        case CommitsAgo():
            return table.at(str(instant)).state
        case TimestampInstant(timestamp_millis=moment):
            return table.at(timestamp=moment).state
        case SnapshotInstant(snapshot_id=snapshot_id):
            return table.at(snapshot=snapshot_id).state
        case TagInstant(tag_name=name):
            return table.at(tag=name).state


def versions_within(log: TableLog, bounds: Bounds, newest: int) -> tuple[int, int]:
    """Return the first and last version within bounds; an empty range has last < first.

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
