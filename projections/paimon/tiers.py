"""Which manifests a snapshot's base list names: a rule of the log alone, so that all agree.

The changes of each snapshot are one manifest; neighbours merge by the rule of `ledger.model.tiles`.
A rollback puts removed files back, which Paimon's readers would not see beside their removal: so
it begins an era of its own, with one list of all files that are live then.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence

from attrs import frozen

from ledger.model.tiles import covering


@frozen(order=True)
class Tile:
    """The snapshots `first` to `last`, whose net changes stand in one manifest."""

    first: int
    last: int


@frozen
class Era:
    """The snapshots from one rollback to the next.

    Attributes:
        rollback: The rollback that it begins with; 0 for the first.
    """

    rollback: int

    @classmethod
    def of(cls, snapshot_id: int, rollbacks: Sequence[int]) -> Era:
        """Return the era of a snapshot.

        Args:
            snapshot_id: The snapshot.
            rollbacks: The ids of all rollbacks, ascending.

        Example:
            >>> Era.of(3, [4]), Era.of(4, [4]), Era.of(9, [4])
            (Era(rollback=0), Era(rollback=4), Era(rollback=4))
        """
        place = bisect_right(rollbacks, snapshot_id)
        return cls(rollbacks[place - 1] if place else 0)

    def base(self, snapshot_id: int) -> list[Tile]:
        """Return the tiles between the era's beginning and a snapshot, oldest first.

        Example:
            >>> [(each.first, each.last) for each in Era(0).base(11)]
            [(1, 8), (9, 9), (10, 10)]
        """
        start = self.rollback + 1
        tiles = covering(max(0, snapshot_id - start))
        return [Tile(start + first, start + end - 1) for first, end in tiles][::-1]

    def tiles(self, snapshot_id: int) -> Iterator[Tile]:
        """Yield every tile that a snapshot reads: its base, then its own changes."""
        yield from self.base(snapshot_id)
        if snapshot_id != self.rollback:
            yield Tile(snapshot_id, snapshot_id)
