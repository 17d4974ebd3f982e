"""What a retention would free: files that no snapshot would read any more, nor any tag or branch.

`expire_snapshots(before=...)` keeps what stood at the cut, and all since. What it makes unreachable
is what older snapshots alone read.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from attrs import define
from msgspec import json

from ledger.events.snapshot_events import snapshot_events
from ledger.evolution.state import TableState
from ledger.files.change_file import event_files
from ledger.history.older import TableLog
from ledger.log.travel import effective_millis
from ledger.model.errors import UnsupportedError
from ledger.model.file_change import FileChange
from projections.manifest_files.lists import names_lists
from projections.statistics.keeping.engine_listed import EngineListed
from projections.statistics.shown.query import Counted, Instant, rendering_of


@define
class _Freed:
    """What would go of a partition."""

    partition: str
    record_count: int = 0
    file_count: int = 0
    size: int = 0


def freed(kept: Counted, log: TableLog, at: Instant, cut_millis: int) -> Iterator[dict[str, Any]]:
    """Yield a row for each partition that files of would go, that with the most bytes first.

    Args:
        kept: The table's statistics.
        log: Its log.
        at: The instant.
        cut_millis: What stood at this moment stays, and all since; Unix milliseconds.

    Raises:
        UnsupportedError: A snapshot of the ledger's own names an engine's manifest lists.
        DamagedLogError: A commit or a list of file changes is missing or damaged.
    """
    rendering = rendering_of(at)
    found: dict[str, _Freed] = {}
    listed = kept if isinstance(kept, EngineListed) else None
    files = _Walk(log, at, cut_millis).freed() if listed is None else _of_engine(listed, cut_millis)
    for file in files:
        path = rendering.spec(file.spec_id, json.encode(file.partition).decode()).path
        one = found.setdefault(path, _Freed(path))
        one.record_count += file.record_count if file.content == "data" else 0
        one.file_count += 1
        one.size += file.file_size_in_bytes
    for each in sorted(found.values(), key=lambda each: (-each.size, each.partition)):
        yield {
            "partition": each.partition,
            "freed_file_count": each.file_count,
            "freed_file_size_in_bytes": each.size,
            "freed_record_count": each.record_count,
        }


def _of_engine(listed: EngineListed, cut_millis: int) -> list[FileChange]:
    """Return the same where an engine lists the files: of its snapshots, whoever expires them."""
    state = listed.at.state
    moments = listed.moments(state)
    older = [each for each in listed.line if moments.of_snapshot(0, each) <= cut_millis]
    stays = {*listed.line[max(0, len(older) - 1) :], *_named(state)}
    read: dict[str, FileChange] = {}
    kept: set[str] = set()
    for moment, snapshot_id, files in listed.there():
        read |= {each.path: each for each in files}
        if snapshot_id in stays or moment > cut_millis:
            kept.update(each.path for each in files)
    return [each for path, each in read.items() if path not in kept]


def _named(state: TableState) -> set[int]:
    """Return the snapshots that a source's branches and tags lead to."""
    return {*state.held_snapshot_ids, *(each.snapshot_id for each in state.refs)}


class _Walk:
    """The table's life up to an instant, walked once."""

    def __init__(self, log: TableLog, at: Instant, cut_millis: int) -> None:
        self._log = log
        self._state = at.state
        self._cut_millis = cut_millis
        self._held = at.state.held_snapshot_ids

    def freed(self) -> list[FileChange]:
        """Return the files that snapshots which would go read, and none that stays."""
        live: dict[str, FileChange] = {}
        # What snapshots that are there read, and what those that would stay read.
        read: dict[str, FileChange] = {}
        kept: set[str] = set()
        earliest = self._state.earliest_snapshot_id or 1
        is_cut = False
        for moment, snapshot_id, files in self._snapshots():
            if moment > self._cut_millis and not is_cut:
                kept |= live.keys()
                is_cut = True
            came = [each for each in files if each.kind == "ADD"]
            live = _after(live, files)
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

    def _snapshots(self) -> Iterator[tuple[int, int, tuple[FileChange, ...]]]:
        state, log = self._state, self._log
        for read in log.commits(0, state.version):
            moment = effective_millis(read.commit, state.corrections)
            for event in snapshot_events(read.commit):
                if event.snapshot_id > state.last_snapshot_id:
                    return
                if names_lists(event):
                    raise UnsupportedError(
                        f"snapshot {event.snapshot_id} names its engine's own manifest lists: "
                        "which files it reads is not in the ledger. Ask the engine"
                    )
                yield moment, event.snapshot_id, event_files(log.store, log.layout, event)


def _after(live: dict[str, FileChange], files: tuple[FileChange, ...]) -> dict[str, FileChange]:
    for each in files:
        if each.kind == "ADD":
            live[each.path] = each
        else:
            live.pop(each.path, None)
    return live
