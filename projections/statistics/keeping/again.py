"""Again: a table's statistics computed once more, as far as that can be done."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from attrs import field, frozen

from projections.statistics.fold import between, concatenated, sums
from projections.statistics.keeping.balance import after, agree, until
from projections.statistics.keeping.kept import DeltaScan, Kept
from projections.statistics.keeping.position import folder, load
from projections.statistics.keeping.tile_file import TileFiles
from projections.statistics.keeping.tiling import Tile, blocks, completed_by
from projections.statistics.reading.entries import TableLog
from projections.statistics.reading.opening import Opening, opening_of

if TYPE_CHECKING:
    import pyarrow as pa

Block = tuple[Tile, "pa.Table"]


@frozen
class Again:
    """What the tiles of a table should hold.

    Attributes:
        kept: What is kept of it.
        scan: The engine.
        step: How many commits to ask of it at once.
        opening: Where what can be computed begins, if older manifest lists are gone.
    """

    kept: Kept
    scan: DeltaScan = field(eq=False)
    step: int
    opening: Opening | None

    @classmethod
    def of(cls, log: TableLog, scan: DeltaScan, step: int) -> Again:
        """Look at a table."""
        log.refresh()
        position = load(log.store, log.layout)
        kept = Kept(TileFiles(log.store, folder(log.layout)), position, scan, log)
        # Where nothing is kept, nothing can be wrong with it.
        opening = opening_of(log, 0, 0) if position.version >= 0 else None
        return cls(kept, scan, step, opening)

    def anew(self) -> Iterator[Block]:
        """Yield every tile and the rows that it has if all begins with the opening."""
        return self._tiles(self._scanned())

    def trusting(self) -> Iterator[Block]:
        """Yield every tile and its rows, those that cannot be computed as they are kept.

        If they do not add up to the opening, none of them is believed.
        """
        opening = self.opening
        if opening is None:
            return self.anew()
        return self._tiles(self._trusted(opening, self._adds_up(opening)))

    def _scanned(self) -> Iterator[Block]:
        """Yield every block up to the position with its deltas, so many commits read at once."""
        last = self.kept.position.version
        for first in range(0, last + 1, self.step):
            end = min(last, first + self.step - 1)
            rows = self.scan(first, end, self.opening)
            for block in blocks(first, end):
                yield block, between(rows, block.start, block.end - 1)

    def _trusted(
        self, opening: Opening, believed: Callable[[Tile], pa.Table | None]
    ) -> Iterator[Block]:
        for block, rows in self._scanned():
            found = believed(block) if block.start <= opening.version else None
            if found is None:
                yield block, rows
            else:
                yield (
                    block,
                    concatenated([until(found, opening), after(rows, opening)]).combine_chunks(),
                )

    def _adds_up(self, opening: Opening) -> Callable[[Tile], pa.Table | None]:
        """Return what gives a block's kept rows, if those up to the opening are believed."""
        so_far: pa.Table = concatenated([])
        opened = concatenated([])
        for block in blocks(0, min(opening.version, self.kept.position.version)):
            found = self._kept_rows(block)
            if found is None:
                return lambda _: None
            so_far = sums([so_far, until(found, opening)])
        if opening.version <= self.kept.position.version:
            opened = until(self.scan(opening.version, opening.version, opening), opening)
            if not agree(so_far, opened):
                return lambda _: None
        return self._kept_rows

    def _kept_rows(self, block: Tile) -> pa.Table | None:
        """Return the rows that are kept of a block; None if a part of them is lost."""
        last = self.kept.position.version
        tiles = [each for each in self.kept.position.tiles if each.start >= block.start]
        if block.end <= last + 1:
            tiles = [block]
        found = [self.kept.files.load(each) for each in reversed(tiles)]
        rows = [each for each in found if each is not None]
        return concatenated(rows).combine_chunks() if len(rows) == len(found) else None

    def _tiles(self, given: Iterator[Block]) -> Iterator[Block]:
        """Yield every tile that should be kept, and its rows."""
        position = self.kept.position
        ready: dict[Tile, pa.Table] = {}
        for block, rows in given:
            if block.end <= position.version + 1:
                ready[block] = rows
                yield block, rows
                for tile in completed_by(block):
                    ready[tile] = sums([ready.pop(each) for each in tile.parts()])
                    yield tile, ready[tile]
            else:
                for tile in position.tiles:
                    if tile.start >= block.start:
                        yield tile, between(rows, tile.start, tile.end - 1)
