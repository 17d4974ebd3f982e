"""The rows of a table's history: from tiles where they are kept, from the log elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from attrs import field, frozen

from projections.statistics.entries import TableLog, entries
from projections.statistics.local import between, concatenated, deltas, sums, up_to
from projections.statistics.position import Position, folder, load
from projections.statistics.tile_file import TileFiles
from projections.statistics.tiling import Tile, block_of, cover

if TYPE_CHECKING:
    import pyarrow as pa

Scan = Callable[[int, int], "pa.Table"]
"""Gives the deltas of some commits, both ends included, in their order: what an engine is."""


def local_scan(log: TableLog) -> Scan:
    """Return the local engine, on a table's log."""
    return lambda first, last: deltas(entries(log, first, last))


@frozen
class Kept:
    """What is kept of a table's statistics, and how to make the rest.

    Attributes:
        files: The tiles.
        position: How far they reach.
        scan: Makes what they lack.
    """

    files: TileFiles
    position: Position
    scan: Scan = field(eq=False)

    @classmethod
    def of(cls, log: TableLog, scan: Scan | None = None) -> Kept:
        """Return what is kept of a table."""
        files = TileFiles(log.store, folder(log.layout))
        return cls(files, load(log.store, log.layout), scan or local_scan(log))

    def up_to(self, version: int, snapshot_id: int) -> Iterator[pa.Table]:
        """Yield deltas and sums that add up to a state, newest first.

        Args:
            version: The state's.
            snapshot_id: The state's: its commit may hold later snapshots, too.

        Raises:
            DamagedLogError: What has to be read of the log is missing or damaged.
        """
        block = block_of(version)
        yield up_to(self.block(block, version), version=version, snapshot_id=snapshot_id)
        for tile in cover(block.start):
            yield self.tile(tile)

    def deltas(self, last: int) -> Iterator[pa.Table]:
        """Yield the deltas of the versions 0 to `last`, oldest first."""
        for start in range(0, last + 1, block_of(0).end):
            block = block_of(start)
            yield self.block(block, min(last, block.end - 1))

    def block(self, block: Tile, last: int) -> pa.Table:
        """Return the deltas of a block's versions up to `last`."""
        reached = self.position.version
        if block.end <= reached + 1:
            rows = self.tile(block)
            return rows if last == block.end - 1 else between(rows, block.start, last)
        small = [each for each in self.position.tiles if each.start >= block.start]
        rows = [self.tile(each) for each in reversed(small) if each.start <= last]
        first = max(block.start, reached + 1)
        if first <= last:
            rows.append(self.scan(first, last))
        return between(concatenated(rows), block.start, last)

    def tile(self, tile: Tile) -> pa.Table:
        """Return a tile's rows, made again if the position does not reach it or it is lost."""
        if tile.end <= self.position.version + 1:
            found = self.files.load(tile)
            if found is not None:
                return found
        if tile.is_sums:
            return sums([self.tile(each) for each in tile.parts()])
        return self.scan(tile.start, tile.end - 1)
