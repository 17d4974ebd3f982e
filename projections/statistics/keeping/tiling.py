"""Which tiles there are: the intervals of versions that the statistics are kept in.

Sixty-four commits are a block. A complete block is one tile of deltas, kept for ever; eight tiles
merge into one of sums, eight of those into the next, and so on. Commits after the last complete
block stand in tiles of eight and of one, which go when their block is complete. So a refresh
writes what is new, and any instant is a sum over few tiles.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from attrs import frozen

from ledger.model.tiles import FAN_OUT, covering, parts

BLOCK = FAN_OUT**2
"""Commits in a block."""

NARROWEST_SUMS = BLOCK * FAN_OUT
"""Commits in the narrowest tile of sums."""


@frozen(order=True)
class Tile:
    """The commits `start` to `end`, `end` not included."""

    start: int
    end: int

    @property
    def is_sums(self) -> bool:
        """Whether it holds sums by partition; a smaller one holds the deltas of each snapshot."""
        return self.end - self.start > BLOCK

    @property
    def is_kept(self) -> bool:
        """Whether it stays when later ones cover it."""
        return self.end - self.start >= BLOCK

    @property
    def name(self) -> str:
        """Its file's path below the statistics' folder.

        >>> Tile(64, 128).name
        'deltas/00000000000000000064-00000000000000000127.parquet'
        """
        folder = "sums" if self.is_sums else "deltas"
        return f"{folder}/{self.start:020d}-{self.end - 1:020d}.parquet"

    def parts(self) -> tuple[Tile, ...]:
        """Return the eight tiles that it merges, oldest first."""
        return tuple(Tile(*each) for each in parts(self.start, self.end))


@lru_cache(maxsize=64)
def cover(count: int) -> tuple[Tile, ...]:
    """Return the tiles that cover the versions before `count`, newest first.

    Example:
        >>> [(each.start, each.end) for each in cover(74)]
        [(73, 74), (72, 73), (64, 72), (0, 64)]
    """
    return tuple(Tile(*each) for each in covering(count))


def block_of(version: int) -> Tile:
    """Return the block that a version is in."""
    start = version - version % BLOCK
    return Tile(start, start + BLOCK)


def blocks(first: int, last: int) -> Iterator[Tile]:
    """Yield the blocks that the versions `first` to `last` are in."""
    for start in range(block_of(first).start, last + 1, BLOCK):
        yield Tile(start, start + BLOCK)


def completed_by(block: Tile) -> Iterator[Tile]:
    """Yield the tiles of sums that are complete with a block, smallest first.

    Example:
        >>> [(each.start, each.end) for each in completed_by(Tile(960, 1024))]
        [(512, 1024)]
    """
    width = NARROWEST_SUMS
    while block.end % width == 0:
        yield Tile(block.end - width, block.end)
        width *= FAN_OUT


def covered(first: int, last: int) -> Iterator[Tile]:
    """Yield the narrowest tiles of sums that lie whole in the versions `first` to `last`.

    Example:
        >>> [each.name for each in covered(70, 1100)]
        ['sums/00000000000000000512-00000000000000001023.parquet']
    """
    begin = first + -first % NARROWEST_SUMS
    for start in range(begin, last + 2 - NARROWEST_SUMS, NARROWEST_SUMS):
        yield Tile(start, start + NARROWEST_SUMS)
