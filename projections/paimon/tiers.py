"""Which manifests a snapshot's base list names: a rule of its id alone, so that all agree.

The changes of each snapshot are one manifest; neighbours merge by the rule of `ledger.model.tiles`.
"""

from __future__ import annotations

from attrs import frozen

from ledger.model.tiles import FAN_OUT, covering, parts


@frozen(order=True)
class Tile:
    """The snapshots `first` to `last`, whose net changes stand in one manifest."""

    first: int
    last: int

    def parts(self) -> list[Tile]:
        """Return the tiles of the tier below that merge into it; none for a single snapshot."""
        return [Tile(start + 1, end) for start, end in parts(self.first - 1, self.last)]

    def last_reader(self) -> int:
        """Return the last snapshot whose lists name it: then a wider tile takes over.

        Example:
            >>> Tile(1, 1).last_reader(), Tile(8, 8).last_reader(), Tile(9, 16).last_reader()
            (8, 8, 64)
        """
        parent = (self.last - self.first + 1) * FAN_OUT
        return -(-self.last // parent) * parent


def base_tiles(snapshot_id: int) -> list[Tile]:
    """Return the tiles that cover the snapshots before one, oldest first.

    Example:
        >>> [(each.first, each.last) for each in base_tiles(11)]
        [(1, 8), (9, 9), (10, 10)]
    """
    return [Tile(start + 1, end) for start, end in covering(snapshot_id - 1)][::-1]
