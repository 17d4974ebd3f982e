"""Snapshots that hold files which only manifests of their engine list.

The projection makes manifests from the files that the log lists. Where it lists only some, a
reader of such manifests would miss the others, so whoever makes them asks here first.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable

from ledger.events.snapshot_events import RolledBack
from projections.manifest_files.lists import SnapshotEvent, names_lists


class UnlistedFiles:
    """Which snapshots hold such files.

    Args:
        flips: The ids from which on the answer is another one, ascending; at first it is no.

    Example:
        >>> unlisted = UnlistedFiles([3, 5])
        >>> [unlisted.held_by(each) for each in (2, 3, 4, 5)]
        [False, True, True, False]
    """

    def __init__(self, flips: Iterable[int] = ()) -> None:
        self._flips = list(flips)

    @property
    def flips(self) -> tuple[int, ...]:
        """The ids from which on the answer is another one, ascending."""
        return tuple(self._flips)

    def learn(self, event: SnapshotEvent) -> None:
        """Take in the next snapshot."""
        if isinstance(event, RolledBack):
            holds = self.held_by(event.target_snapshot_id)
        else:
            holds = names_lists(event) or self.held_by(event.snapshot_id - 1)
        if holds != self.held_by(event.snapshot_id - 1):
            self._flips.append(event.snapshot_id)

    def held_by(self, snapshot_id: int) -> bool:
        """Whether a snapshot that was learnt holds any."""
        return bisect_right(self._flips, snapshot_id) % 2 == 1
