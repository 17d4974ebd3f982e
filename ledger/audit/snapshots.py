"""Snapshots of a table as rows: readable ones, and those kept by a tag."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from attrs import evolve

from ledger.audit.views import Columns, Row, Rows
from ledger.events.snapshots import snapshot_events
from ledger.history.older import TableLog, state_at_snapshot
from ledger.log.time_travel import effective_millis
from ledger.model.instant import ClockCorrection, true_millis
from ledger.model.snapshot import Snapshot
from ledger.state.native_origin import OriginSnapshot
from ledger.state.snapshots import snapshot_of
from ledger.state.table import TableState

SNAPSHOTS: Columns = {
    "snapshot": "number",
    "version": "number",
    "time": "time",
    "kind": "text",
    "schema_id": "number",
    "rows": "number",
    "change": "number",
    "tags": "text",
}


class ListedSnapshot(NamedTuple):
    """A snapshot, and the commit that it came with."""

    version: int
    snapshot: Snapshot

    @classmethod
    def of(cls, listed: OriginSnapshot, schema_id: int) -> ListedSnapshot:
        """Return a snapshot that the table's origin lists.

        Args:
            listed: The snapshot.
            schema_id: The schema that it has if it names none.
        """
        return cls(listed.version, listed.in_schema(schema_id))


def snapshot_rows(log: TableLog, state: TableState, corrections: Sequence[ClockCorrection]) -> Rows:
    """Return a row a snapshot, newest first; arguments as `listed` has them."""

    def rows() -> Iterator[Row]:
        for version, each in listed(log, state, list(state.snapshot_ids), corrections):
            yield {
                "snapshot": each.id,
                "version": version,
                "time": each.time_millis,
                "kind": each.commit_kind,
                "schema_id": each.schema_id,
                "rows": each.total_record_count,
                "change": each.delta_record_count,
                "tags": ", ".join(tags_of(state, each.id)) or None,
            }

    return Rows(SNAPSHOTS, rows)


def tags_of(state: TableState, snapshot_id: int) -> list[str]:
    """Return the names of a snapshot's tags, sorted."""
    return sorted(name for name, tag in state.tags.items() if tag.snapshot_id == snapshot_id)


def listed(
    log: TableLog,
    state: TableState,
    ids: Sequence[int],
    corrections: Sequence[ClockCorrection],
) -> list[ListedSnapshot]:
    """Return some of the snapshots of a table, in the order of their ids given.

    Args:
        log: The table's.
        state: The table's, or a branch's.
        ids: Those of its snapshots.
        corrections: What is known of clocks that were ahead.
    """
    known = [ListedSnapshot.of(each, state.schema.id) for each in _listed(state, ids)]
    if known:
        return known
    of_main = () if state.on_branch is not None else ids
    kept = [each for each in of_main if each >= state.earliest_snapshot_id]
    first = state_at_snapshot(log, min(kept)).version if kept else state.version + 1
    found = {each.snapshot.id: each for each in _since(log, first, state.version, corrections)}
    for snapshot_id in ids:
        if snapshot_id not in found:
            then = state_at_snapshot(log, snapshot_id)
            if then.snapshot is not None:
                then_millis = true_millis(corrections, then.version, then.snapshot.time_millis)
                snapshot = evolve(then.snapshot, time_millis=then_millis)
                found[snapshot_id] = ListedSnapshot(then.version, snapshot)
    return [found[each] for each in ids if each in found]


def _listed(state: TableState, ids: Sequence[int]) -> Iterator[OriginSnapshot]:
    found = map(state.origin.listed_snapshot, ids)
    return (each for each in found if each is not None)


def _since(
    log: TableLog, first: int, last: int, corrections: Sequence[ClockCorrection]
) -> Iterator[ListedSnapshot]:
    for read in log.commits(first, last):
        commit = read.commit
        for event in snapshot_events(commit):
            moment_millis = effective_millis(commit, corrections)
            yield ListedSnapshot(commit.version, snapshot_of(event, moment_millis))
