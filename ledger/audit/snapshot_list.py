"""Snapshots of an audit page: the newest ones in the order of the log, with their current state.

A snapshot that expired, was rolled back or is kept by a tag alone stays in the list and says so;
expiries are listed between them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Final, TypeAlias

from attrs import define, field, frozen
from msgspec import UnsetType

from ledger.audit.entries import Entry
from ledger.decide.operations import in_words
from ledger.events.imported import SnapshotAdded, SnapshotsRemoved
from ledger.events.snapshots import BranchCommitted, RolledBack, SnapshotFacts, SnapshotsExpired
from ledger.model.messages import moment
from ledger.state.native_origin import NativeOrigin
from ledger.state.table import TableState

MOST_SNAPSHOTS: Final = 60
_MOST_REFS: Final = 5
_Listed: TypeAlias = SnapshotFacts | SnapshotAdded | SnapshotsExpired | SnapshotsRemoved


@frozen
class SnapshotRow:
    """One snapshot, or one expiry of snapshots.

    Attributes:
        version: The version of the commit.
        time: The effective time.
        snapshot_id: The snapshot; None for an expiry.
        text: The event in words.
        author: The author of the transaction.
        status: The current state of the snapshot: `current`, `expired`, `rolled back`, `tag v1`.
    """

    version: int
    time: str
    snapshot_id: int | None
    text: str
    author: str
    status: str


@define
class SnapshotList:
    """The newest snapshots and expiries, collected in one pass over a log.

    Attributes:
        count: Number of snapshots and expiries in the log.
    """

    count: int = 0
    _listed: deque[tuple[Entry, _Listed]] = field(
        factory=lambda: deque(maxlen=MOST_SNAPSHOTS), init=False
    )

    def take(self, entry: Entry) -> None:
        """Add the next entry of the log."""
        for event in entry.transaction.events:
            if isinstance(event, _Listed):
                self.count += 1
                self._listed.append((entry, event))

    def rows(self, state: TableState) -> Iterator[SnapshotRow]:
        """Yield the listed snapshots and expiries, newest first, as of the newest state."""
        rolled_back = self._rolled_back_ids()
        refs = _refs_by_snapshot(state)
        for entry, event in reversed(self._listed):
            snapshot_id = _snapshot_id(event)
            yield SnapshotRow(
                entry.version,
                moment(entry.time_millis),
                snapshot_id,
                in_words(event),
                entry.transaction.author,
                "; ".join(_statuses(event, state, rolled_back, refs)),
            )

    def _rolled_back_ids(self) -> frozenset[int]:
        """Return the listed snapshots that a later rollback of their line went behind."""
        found: set[int] = set()
        lines: dict[str, list[int]] = {}
        for _, event in self._listed:
            snapshot_id = _snapshot_id(event)
            if snapshot_id is None:
                continue
            line = lines.setdefault(
                event.branch_name if isinstance(event, BranchCommitted) else "", []
            )
            target = _rollback_target(event)
            if target is not None:
                # A target that is not listed is older than all that are.
                found.update(line[line.index(target) + 1 :] if target in line else line)
            line.append(snapshot_id)
        return frozenset(found)


def _rollback_target(event: _Listed) -> int | None:
    if isinstance(event, RolledBack):
        return event.target_snapshot_id
    if isinstance(event, BranchCommitted) and not isinstance(event.target_snapshot_id, UnsetType):
        return event.target_snapshot_id
    return None


def _snapshot_id(event: _Listed) -> int | None:
    if isinstance(event, SnapshotFacts):
        return event.snapshot_id
    return event.snapshot.snapshot_id if isinstance(event, SnapshotAdded) else None


def _refs_by_snapshot(state: TableState) -> dict[int, list[str]]:
    """Return the tags and branches of each snapshot, those that start at it included."""
    found: dict[int, list[str]] = {}
    for ref in state.refs:
        found.setdefault(ref.snapshot_id, []).append(f"{ref.ref_type} {ref.name}")
    for name, branch in state.all_branches.items():
        base = branch.base_snapshot_id
        if base is not None and branch.head_id != base:
            found.setdefault(base, []).append(f"start of branch {name}")
    return found


def _statuses(
    event: _Listed, state: TableState, rolled_back: frozenset[int], refs: dict[int, list[str]]
) -> Iterator[str]:
    snapshot_id = _snapshot_id(event)
    if snapshot_id is None:
        return
    if state.snapshot is not None and snapshot_id == state.snapshot.id:
        yield "current"
    if snapshot_id in rolled_back:
        yield "rolled back"
    named = refs.get(snapshot_id, [])
    names = ", ".join(named[:_MOST_REFS]) + (", ..." if len(named) > _MOST_REFS else "")
    if isinstance(event, BranchCommitted) and event.branch_name not in state.branches:
        yield f"deleted with branch {event.branch_name}"
    elif not state.reachable(snapshot_id):
        yield "expired"
    elif named:
        yield f"expired, kept by {names}" if is_expired(snapshot_id, state) else names


def is_expired(snapshot_id: int, state: TableState) -> bool:
    """Return whether a snapshot of main expired, though a tag or a branch may keep it."""
    is_of_ledger = isinstance(state.origin, NativeOrigin)
    return is_of_ledger and snapshot_id < state.earliest_snapshot_id
