"""Snapshots that hold files which only manifests of their engine list.

The projection makes manifests from the files that the log lists. Where it lists only some, a
reader of such manifests would miss the others, so whoever makes them asks here first.
"""

from __future__ import annotations

from bisect import bisect_right

from attrs import Factory, define

from ledger.events.snapshot_events import RolledBack
from ledger.evolution.state import TableState
from ledger.snapshot_search import TableLog, state_at_snapshot
from projections.manifest_lists import SnapshotEvent, names_lists, snapshot_events


@define
class UnlistedFiles:
    """Which snapshots hold such files.

    Attributes:
        log: The table's.
        before: The newest snapshot that was projected already; 0 for none.
    """

    log: TableLog
    before: int
    _first: bool
    _flips: list[int] = Factory(list)
    """After `before`, the ids from which on the answer is another one."""

    @classmethod
    def at(cls, log: TableLog, before: TableState | None) -> UnlistedFiles:
        """Return what is known of a table whose snapshots up to a state are projected."""
        newest = before.last_snapshot_id if before else 0
        return cls(log, newest, _held_by_projected(log, newest))

    def learn(self, event: SnapshotEvent) -> None:
        """Take in the next snapshot."""
        if isinstance(event, RolledBack):
            holds = self.held_by(event.target_snapshot_id)
        else:
            holds = names_lists(event) or self.held_by(event.snapshot_id - 1)
        if holds != self.held_by(event.snapshot_id - 1):
            self._flips.append(event.snapshot_id)

    def held_by(self, snapshot_id: int) -> bool:
        """Whether a snapshot holds any, which was projected or learnt."""
        if snapshot_id < self.before:
            return _held_by_projected(self.log, snapshot_id)
        return self._first != (bisect_right(self._flips, snapshot_id) % 2 == 1)


def _held_by_projected(log: TableLog, snapshot_id: int) -> bool:
    """Whether a snapshot holds any that was not refused, as only its own lists could say them."""
    while snapshot_id:
        state = state_at_snapshot(log, snapshot_id)
        if state.snapshot is None or state.snapshot.base_manifest_list is None:
            return False
        events = snapshot_events(log.commit_at(state.version))
        if names_lists(next(each for each in events if each.snapshot_id == snapshot_id)):
            return True
        # It lists its files, too, so that it holds what the one before it holds.
        snapshot_id -= 1
    return False
