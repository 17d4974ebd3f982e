"""From what is asked to the spans that tasks read; done once, where Spark plans."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from contextlib import suppress

from ledger.evolution.state import TableState
from ledger.history.older import TableLog
from ledger.model.errors import InvalidInputError, NotFoundError
from ledger.model.instant import (
    Instant,
    SnapshotInstant,
    TagInstant,
    TimestampInstant,
    VersionInstant,
)
from ledger.model.messages.similar import meant
from ledger.table import Table
from projections.source.planning.asked import Asked
from projections.source.planning.bounds import Bounds
from projections.source.span import End, Span, TablePlace, ranges
from projections.source.views.column import Column
from projections.source.views.partition_values import typed_column
from projections.source.views.scan import Scan


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
    return [each for table in _tables(asked, bounds) for each in _spans_of(table, asked, bounds)]


def _tables(asked: Asked, bounds: Bounds) -> Iterator[Table]:
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
