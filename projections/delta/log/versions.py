"""Which version of the Delta table a snapshot is.

Snapshots and schema steps are counted together, so that from one schema step to the next a
snapshot's version is its id and a constant: only where that changes has to be remembered.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable

from ledger.events.snapshot_events import SnapshotEvent
from projections.manifest_files.lists import UnlistedFiles


class Versions:
    """The versions of snapshots.

    Args:
        runs: Pairs of a snapshot and its version, from which on both count together.
        flips: Of the snapshots whose files only manifests of their engine list, as `UnlistedFiles`
            has them.
        last: The newest snapshot so far.

    Attributes:
        runs: As given, and more.
        unlisted: Which snapshots hold files that only manifests of their engine list.

    Example:
        >>> versions = Versions([(1, 1), (4, 6)], last=5)
        >>> [versions.version_of(each) for each in (1, 3, 4, 5, 6)]
        [1, 3, 6, 7, None]
    """

    def __init__(
        self, runs: Iterable[tuple[int, int]], flips: Iterable[int] = (), *, last: int = 0
    ) -> None:
        self.runs = list(runs)
        self._last = last
        self.unlisted = UnlistedFiles(flips)

    def add(self, event: SnapshotEvent, version: int) -> None:
        """Take in the next snapshot."""
        snapshot_id = self._last = event.snapshot_id
        if not self.runs or version - snapshot_id != self.runs[-1][1] - self.runs[-1][0]:
            self.runs.append((snapshot_id, version))
        self.unlisted.learn(event)

    def version_of(self, snapshot_id: int) -> int | None:
        """Return a snapshot's version; None for one that was not met yet."""
        if snapshot_id > self._last:
            return None
        place = bisect_right(self.runs, (snapshot_id, 2**63)) - 1
        if place < 0:
            return None
        first, version = self.runs[place]
        return version + snapshot_id - first
