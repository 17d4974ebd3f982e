"""The rows of a table's history: from tiles where they are kept, from the log elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Protocol

from attrs import Factory, define, field, frozen

from ledger.evolution.state import TableState
from ledger.log.outside.column_values import PersonalColumns
from ledger.log.travel import effective_millis
from ledger.model.errors import DamagedLogError
from projections.statistics.fold import between, concatenated, deltas, sums, up_to
from projections.statistics.keeping.balance import balanced
from projections.statistics.keeping.position import StatisticsPosition, folder, load
from projections.statistics.keeping.tile_file import TileFiles
from projections.statistics.keeping.tiling import Tile, block_of, cover
from projections.statistics.reading.engine_files import MissingFileError
from projections.statistics.reading.entries import TableLog, entries
from projections.statistics.reading.opening import Opening, opening_of

if TYPE_CHECKING:
    import pyarrow as pa


class DeltaScan(Protocol):
    """Gives the deltas of some commits, both ends included, in their order: what an engine is."""

    def __call__(self, first: int, last: int, opening: Opening | None = None) -> pa.Table:
        """Return them; without an opening, each snapshot's manifest lists must be there."""


def local_scan(log: TableLog) -> DeltaScan:
    """Return the local engine, on a table's log."""

    def scan(first: int, last: int, opening: Opening | None = None) -> pa.Table:
        return deltas(entries(log, first, last, opening))

    return scan


@define
class CommitMoments:
    """When commits took effect.

    Attributes:
        log: The table's.
        state: A state behind all of them, which knows of clocks that were ahead.
        ahead: So many commits are read at once, for whoever asks for them in their order.
    """

    log: TableLog = field(eq=False)
    state: TableState
    ahead: int = 1
    _known: dict[int, int] = Factory(dict)

    def of(self, place: int) -> int:
        """Return a version's moment, Unix milliseconds."""
        if place not in self._known:
            last = min(place + self.ahead - 1, self.state.version)
            self._known = {
                read.commit.version: effective_millis(read.commit, self.state.corrections)
                for read in self.log.commits(place, last)
            }
        return self._known[place]

    def of_snapshot(self, version: int, _snapshot_id: int) -> int:
        """Return when the commit of a snapshot took effect."""
        return self.of(version)


@frozen
class Kept:
    """What is kept of a table's statistics, and how to make the rest.

    Attributes:
        files: The tiles.
        position: How far they reach.
        scan: Makes what they lack.
        log: The table's.
        opening: The snapshot that what they lack begins with, if older ones cannot be read any
            more.
    """

    files: TileFiles
    position: StatisticsPosition
    scan: DeltaScan = field(eq=False)
    log: TableLog = field(eq=False)
    opening: Opening | None = None

    @classmethod
    def of(cls, log: TableLog, scan: DeltaScan | None = None) -> Kept:
        """Return what is kept of a table."""
        files = TileFiles(log.store, folder(log.layout))
        position = load(log.store, log.layout)
        opening = opening_of(log, position.version + 1, position.snapshot_id)
        return cls(files, position, scan or local_scan(log), log, opening)

    @property
    def columns(self) -> PersonalColumns:
        """What is kept elsewhere of partitions."""
        return self.log.personal.columns

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

    def history(self, version: int, snapshot_id: int) -> Iterator[pa.Table]:
        """Yield rows among which each snapshot up to a state has one: sums keep them, too."""
        return self.up_to(version, snapshot_id)

    def version_of(self, version: int, _snapshot_id: int) -> int:
        """Return the commit of a snapshot, whose place is its version."""
        return version

    def moments(self, state: TableState, ahead: int = 1) -> CommitMoments:
        """Return when commits took effect."""
        return CommitMoments(self.log, state, ahead)

    @property
    def opening_snapshot_id(self) -> int | None:
        """The first snapshot that is counted by itself; None if all are."""
        opening = self.position.opening or self.opening
        return None if opening is None else opening.snapshot_id

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
            rows.append(self.fresh(first, last))
        return between(concatenated(rows), block.start, last)

    def fresh(self, first: int, last: int) -> pa.Table:
        """Return the deltas of versions that are not kept."""
        return self.opened(self.scan(first, last, self.opening), first, last)

    def opened(self, rows: pa.Table, first: int, last: int) -> pa.Table:
        """Return the deltas of some versions, less what is kept from before an opening in them."""
        if self.opening is None or not first <= self.opening.version <= last:
            return rows
        return balanced(rows, map(self.tile, self.position.tiles), self.opening)

    def tile(self, tile: Tile) -> pa.Table:
        """Return a tile's rows, made again if the position does not reach it or it is lost.

        Raises:
            DamagedLogError: It is lost, and what it was made of expired.
        """
        if tile.end > self.position.version + 1:
            return self._made(tile)
        found = self.files.load(tile)
        if found is not None:
            return found
        opening = self.position.opening
        try:
            if opening is None or tile.start > opening.version:
                return self._made(tile)
        except MissingFileError as error:
            raise self._lost(tile) from error
        raise self._lost(tile)

    def _made(self, tile: Tile) -> pa.Table:
        if tile.is_sums:
            return sums([self.tile(each) for each in tile.parts()])
        return self.fresh(tile.start, tile.end - 1)

    def _lost(self, tile: Tile) -> DamagedLogError:
        key = self.files.key(tile)
        return DamagedLogError(
            f"{key} is lost, and the manifest lists that it was made of expired; begin the "
            "statistics anew with what can be read: lakeledger stats TABLE --rebuild",
            key,
        )
