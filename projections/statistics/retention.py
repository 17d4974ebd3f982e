"""Files that would be deleted with older snapshots.

`expire_snapshots(before=...)` keeps the snapshot current at the cut, and all later ones. It makes
files unreachable that only older snapshots read. Statistics do not tell files apart, so that the
history is replayed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from msgspec import json

from ledger.events.snapshots import snapshot_events
from ledger.files.change_lists import event_files
from ledger.history.older import TableLog
from ledger.log.time_travel import effective_millis
from ledger.model.errors import UnsupportedError
from ledger.model.file_change import FileChange
from ledger.state.table import TableState
from projections.manifest_files.lists import names_lists
from projections.statistics.definition import DATA
from projections.statistics.engine_listed import EngineListedStatistics
from projections.statistics.partition_rendering import Instant, rendering_of
from projections.statistics.query import StatisticsSource

if TYPE_CHECKING:
    import pyarrow as pa


def freed(kept: StatisticsSource, log: TableLog, at: Instant, cut_millis: int) -> pa.Table:
    """Return a row for each partition with files that would be deleted, the most bytes first.

    Args:
        kept: The table's statistics.
        log: The table's log.
        at: The instant.
        cut_millis: Time from which snapshots are kept, and the one current then; Unix millis.

    Raises:
        UnsupportedError: A snapshot of the ledger's own names an engine's manifest lists.
        DamagedLogError: A commit or a list of file changes is missing or damaged.
    """
    import pyarrow as pa

    files = (
        _freed_engine_files(kept, cut_millis)
        if isinstance(kept, EngineListedStatistics)
        else _HistoryReplay(log, at, cut_millis).freed()
    )
    keys = pa.table(
        {
            "spec_id": pa.array([each.spec_id for each in files], pa.int64()),
            "partition": pa.array(
                [json.encode(each.partition).decode() for each in files], pa.string()
            ),
        }
    )
    records = [each.record_count if each.content == DATA else 0 for each in files]
    rows = pa.table(
        {
            "partition": rendering_of(at).paths(keys),
            "size": pa.array([each.file_size_in_bytes for each in files], pa.int64()),
            "records": pa.array(records, pa.int64()),
        }
    )
    found = rows.group_by("partition", use_threads=False).aggregate(
        [("size", "count"), ("size", "sum"), ("records", "sum")]
    )
    found = found.select(["partition", "size_count", "size_sum", "records_sum"])
    return found.sort_by([("size_sum", "descending"), ("partition", "ascending")]).rename_columns(
        ["partition", "freed_file_count", "freed_file_size_in_bytes", "freed_record_count"]
    )


def _freed_engine_files(listed: EngineListedStatistics, cut_millis: int) -> list[FileChange]:
    """Return the same where an engine lists the files, from the engine's snapshots."""
    state = listed.at.state
    moments = listed.moments(state)
    older = [each for each in listed.line if moments.of_snapshot(0, each) <= cut_millis]
    stays = {*listed.line[max(0, len(older) - 1) :], *_referenced_snapshot_ids(state)}
    read: dict[str, FileChange] = {}
    kept: set[str] = set()
    for time_millis, snapshot_id, files in listed.there():
        read |= {each.path: each for each in files}
        if snapshot_id in stays or time_millis > cut_millis:
            kept.update(each.path for each in files)
    return [each for path, each in read.items() if path not in kept]


def _referenced_snapshot_ids(state: TableState) -> set[int]:
    """Return the snapshots that a source's branches and tags refer to."""
    return {*state.held_snapshot_ids, *(each.snapshot_id for each in state.refs)}


class _HistoryReplay:
    """Replay of the table's history up to an instant."""

    def __init__(self, log: TableLog, at: Instant, cut_millis: int) -> None:
        self._log = log
        self._state = at.state
        self._cut_millis = cut_millis
        self._held = at.state.held_snapshot_ids

    def freed(self) -> list[FileChange]:
        """Return the files that only snapshots before the cut read."""
        live: dict[str, FileChange] = {}
        # Files of all existing snapshots, and of those that would be kept.
        read: dict[str, FileChange] = {}
        kept: set[str] = set()
        earliest = self._state.earliest_snapshot_id or 1
        is_cut = False
        for time_millis, snapshot_id, files in self._timed_snapshots():
            if time_millis > self._cut_millis and not is_cut:
                kept |= live.keys()
                is_cut = True
            came = [each for each in files if each.kind == "ADD"]
            live = _apply_file_changes(live, files)
            if snapshot_id == earliest:
                read = dict(live)
            elif snapshot_id > earliest:
                read |= {each.path: each for each in came}
            if snapshot_id in self._held:
                kept |= live.keys()
            if is_cut:
                kept |= {each.path for each in came}
        kept |= live.keys()
        return [each for path, each in read.items() if path not in kept]

    def _timed_snapshots(self) -> Iterator[tuple[int, int, tuple[FileChange, ...]]]:
        state, log = self._state, self._log
        for read in log.commits(0, state.version):
            moment = effective_millis(read.commit, state.corrections)
            for event in snapshot_events(read.commit):
                if event.snapshot_id > state.last_snapshot_id:
                    return
                if names_lists(event):
                    raise UnsupportedError(
                        f"snapshot {event.snapshot_id} names its engine's own manifest lists: "
                        "its files are not in the ledger. Ask the engine"
                    )
                yield moment, event.snapshot_id, event_files(log.store, log.layout, event)


def _apply_file_changes(
    live: dict[str, FileChange], files: tuple[FileChange, ...]
) -> dict[str, FileChange]:
    for each in files:
        if each.kind == "ADD":
            live[each.path] = each
        else:
            live.pop(each.path, None)
    return live
