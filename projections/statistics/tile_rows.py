"""Tiles of statistics: rows, files, intervals, opening balance and position.

Sixty-four commits are a block. A complete block is one tile of deltas, kept for ever; eight tiles
merge into one of sums, eight of those into the next, and so on. Commits after the last complete
block are in tiles of eight and of one, which are deleted when their block is complete. So a
refresh writes only new tiles, and any instant is a sum over few tiles.

The opening's deltas are the complete contents of the table at that snapshot. Minus the statistics
counted before it, they are the changes since: one row per partition that replaces unreadable
snapshots.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Protocol

import msgspec
from attrs import Factory, define, field, frozen
from msgspec.structs import replace

from ledger.log.codec import digest
from ledger.log.layout import Layout
from ledger.log.personal_data import PersonalColumns
from ledger.log.time_travel import effective_millis
from ledger.model.errors import DamagedLogError
from ledger.model.parquet_limits import read_bounded_table
from ledger.model.snapshot import FAN_OUT, parts, tiles_covering
from ledger.observing.telemetry import warn
from ledger.state.table import TableState
from ledger.stores import Store
from projections.outputs import load_position, save_position
from projections.statistics.definition import KEY_NAMES, MEASURES, PLACE_NAMES, ROWS, arrow_schema
from projections.statistics.engine_files import MissingFileError
from projections.statistics.entries import Opening, TableLog, entries, find_opening
from projections.statistics.fold import (
    between,
    concat_rows,
    deltas,
    fold_by_columns,
    negate_sums,
    ordered,
    sums,
    up_to,
)

if TYPE_CHECKING:
    import pyarrow as pa


BLOCK = FAN_OUT**2
"""Commits in a block."""

NARROWEST_SUMS = BLOCK * FAN_OUT
"""Commits in the narrowest tile of sums."""


@frozen(order=True)
class Tile:
    """Statistics of the commits from `start` to `end`, exclusive."""

    start: int
    end: int

    @property
    def is_sums(self) -> bool:
        """Return whether it holds sums by partition, as larger tiles do, or else deltas."""
        return self.end - self.start > BLOCK

    @property
    def is_kept(self) -> bool:
        """Return whether it is kept when larger tiles cover it."""
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
def covering_tiles(count: int) -> tuple[Tile, ...]:
    """Return the tiles that cover the versions before `count`, newest first.

    Example:
        >>> [(each.start, each.end) for each in covering_tiles(74)]
        [(73, 74), (72, 73), (64, 72), (0, 64)]
    """
    return tuple(Tile(*each) for each in tiles_covering(count))


def block_of(version: int) -> Tile:
    """Return the block of a version."""
    start = version - version % BLOCK
    return Tile(start, start + BLOCK)


def blocks(first: int, last: int) -> Iterator[Tile]:
    """Yield the blocks of the versions `first` to `last`."""
    for start in range(block_of(first).start, last + 1, BLOCK):
        yield Tile(start, start + BLOCK)


def tiles_completed_by(block: Tile) -> Iterator[Tile]:
    """Yield the tiles of sums that a block completes, smallest first.

    Example:
        >>> [(each.start, each.end) for each in tiles_completed_by(Tile(960, 1024))]
        [(512, 1024)]
    """
    width = NARROWEST_SUMS
    while block.end % width == 0:
        yield Tile(block.end - width, block.end)
        width *= FAN_OUT


def tiles_within(first: int, last: int) -> Iterator[Tile]:
    """Yield the narrowest tiles of sums that are completely in the versions `first` to `last`.

    Example:
        >>> [each.name for each in tiles_within(70, 1100)]
        ['sums/00000000000000000512-00000000000000001023.parquet']
    """
    begin = first + -first % NARROWEST_SUMS
    for start in range(begin, last + 2 - NARROWEST_SUMS, NARROWEST_SUMS):
        yield Tile(start, start + NARROWEST_SUMS)


FORMAT = 1
_FORMAT_KEY = b"lakeledger.statistics"

_LOGGER = "projections.statistics"

_COUNTED = [each.name for each in MEASURES]
_REPEATED = [*PLACE_NAMES, *KEY_NAMES]


@frozen
class TileFiles:
    """Storage of the tiles of one table.

    A cache: a missing, torn or incompatible tile is recomputed from the log.

    Attributes:
        store: The table's store.
        root: The statistics' folder on it.
    """

    store: Store
    root: str

    def key(self, tile: Tile) -> str:
        """Return the key of a tile."""
        return f"{self.root}/{tile.name}"

    def load(self, tile: Tile) -> pa.Table | None:
        """Return a tile's rows; None if it is missing or not usable."""
        body = self.store.read(self.key(tile))
        if body is None:
            return None
        found = decode_parquet(body)
        if found is None:
            warn(_LOGGER, "statistics_tile_unreadable", file=self.key(tile))
        return found

    def save(self, tile: Tile, rows: pa.Table) -> None:
        """Write a tile, and replace an existing one.

        Raises:
            OSError: The store failed; the tile may have been written.
        """
        self.store.replace(self.key(tile), encode_parquet(rows))

    def remove(self, tile: Tile) -> None:
        """Delete a tile."""
        self.store.delete(self.key(tile))


def encode_parquet(rows: pa.Table) -> bytes:
    """Return rows as the bytes of a Parquet file; each page has a checksum."""
    import pyarrow as pa
    from pyarrow import parquet

    sink = pa.BufferOutputStream()
    said = rows.replace_schema_metadata({_FORMAT_KEY: str(FORMAT)})
    parquet.write_table(
        said,
        sink,
        compression="zstd",
        # Sums seldom repeat: their dictionaries would overflow and be discarded.
        use_dictionary=_REPEATED,
        column_encoding=dict.fromkeys(_COUNTED, "DELTA_BINARY_PACKED"),
        write_page_checksum=True,
    )
    return bytes(sink.getvalue())


def decode_parquet(body: bytes) -> pa.Table | None:
    """Return the rows of a file; None if it is torn, changed, or incompatible."""
    import pyarrow as pa

    schema = arrow_schema(ROWS)
    try:
        table = read_bounded_table(body, "the tile")
        if (table.schema.metadata or {}).get(_FORMAT_KEY) != str(FORMAT).encode():
            return None
        return table.select(schema.names).cast(schema)
    except (pa.ArrowException, OSError, KeyError, ValueError):
        return None


class StatisticsPosition(msgspec.Struct, frozen=True, rename="camel"):
    """Position of the kept statistics in the log.

    Attributes:
        version: The last commit; -1 before the first.
        snapshot_id: The newest snapshot by then; 0 before the first.
        head: The digest of that commit, which detects another history.
        files: The tiles that cover them, newest first, for readers without lakeledger.
        opening: The last opening snapshot; None if each snapshot is counted.
    """

    version: int = -1
    snapshot_id: int = 0
    head: str = ""
    files: tuple[str, ...] = ()
    opening: Opening | None = None

    @classmethod
    def at(
        cls, version: int, snapshot_id: int, head: str, opening: Opening | None = None
    ) -> StatisticsPosition:
        """Return the position after a commit."""
        names = tuple(each.name for each in covering_tiles(version + 1))
        return cls(version, snapshot_id, head, names, opening)

    @property
    def tiles(self) -> tuple[Tile, ...]:
        """Tiles that cover the position, newest first."""
        return covering_tiles(self.version + 1)


START = StatisticsPosition()


def folder(layout: Layout) -> str:
    """Return the folder of a table's statistics."""
    return f"{layout.root}/statistics"


def key(layout: Layout) -> str:
    """Return the key of the position."""
    return f"{folder(layout)}/position.json"


def load(store: Store, layout: Layout) -> StatisticsPosition:
    """Return the saved position; the start if it is missing or not usable.

    A position of another history, as after a restored backup, is not usable.
    """
    found = load_position(store, key(layout), StatisticsPosition)
    if found is None:
        return START
    body = store.read(layout.commit(found.version))
    fits = body is not None and digest(body) == found.head
    return found if fits else START


def stated(store: Store, layout: Layout) -> int:
    """Return the version of the saved position, of whatever history; -1 for none."""
    found = load_position(store, key(layout), StatisticsPosition)
    return -1 if found is None else found.version


def advance(store: Store, layout: Layout, position: StatisticsPosition) -> StatisticsPosition:
    """Save a position unless a later one is saved, and return the current one."""
    with store.lock(key(layout)):
        # An earlier one is replaced, of whatever history; only a later one is checked.
        if stated(store, layout) >= position.version:
            kept = load(store, layout)
            if kept.version >= position.version:
                return kept
        save_position(store, key(layout), position)
        return position


def reopen(store: Store, layout: Layout, opening: Opening) -> None:
    """Set the opening of the kept statistics, after all of them were recomputed."""
    with store.lock(key(layout)):
        kept = load(store, layout)
        if kept.version >= opening.version:
            changed = replace(kept, opening=opening)
            save_position(store, key(layout), changed)


def balance_at_opening(rows: pa.Table, kept: Iterable[pa.Table], opening: Opening) -> pa.Table:
    """Return deltas that begin with an opening, minus the statistics kept from before it.

    Args:
        rows: The deltas; their first snapshot is the opening.
        kept: Deltas and sums of everything counted before them.
        opening: The opening.
    """
    import pyarrow as pa

    before = concat_rows(kept)
    if not len(before):
        return rows
    place = {"version": opening.version, "snapshot_id": opening.snapshot_id}
    less = negate_sums(fold_by_columns(before, KEY_NAMES), **place)
    both = pa.concat_tables([up_to(rows, **place), less])
    first = fold_by_columns(both, [*PLACE_NAMES, *KEY_NAMES])
    return ordered(pa.concat_tables([_drop_unchanged(first), after(rows, opening)]))


def _drop_unchanged(first: pa.Table) -> pa.Table:
    """Return the rows without unchanged partitions; the snapshot's row is kept."""
    import pyarrow.compute as pc

    same = pc.is_valid(first["spec_id"])
    for each in MEASURES:
        if each.fold == "sum":
            same = pc.and_(same, pc.equal(first[each.name], 0))
    return first.filter(pc.invert(same))


def after(rows: pa.Table, opening: Opening) -> pa.Table:
    """Return the deltas after an opening."""
    import pyarrow.compute as pc

    later = pc.greater(rows["version"], opening.version)
    here = pc.and_(
        pc.equal(rows["version"], opening.version),
        pc.greater(rows["snapshot_id"], opening.snapshot_id),
    )
    return rows.filter(pc.or_(later, here))


def until(rows: pa.Table, opening: Opening) -> pa.Table:
    """Return the deltas up to an opening, inclusive."""
    return up_to(rows, version=opening.version, snapshot_id=opening.snapshot_id)


def have_equal_counts(counted: pa.Table, opened: pa.Table) -> bool:
    """Return whether two sets of rows have the same counts and sizes for every partition.

    Times are not compared: those of deleted files are in one of them alone.
    """
    return _counts_by_partition(counted) == _counts_by_partition(opened)


def _counts_by_partition(rows: pa.Table) -> dict[tuple[object, ...], tuple[int, ...]]:
    import pyarrow.compute as pc

    names = [each.name for each in MEASURES if each.fold == "sum"]
    added = fold_by_columns(rows.filter(pc.is_valid(rows["spec_id"])), KEY_NAMES)
    found = {
        tuple(row[name] for name in KEY_NAMES): tuple(row[name] for name in names)
        for row in added.select([*KEY_NAMES, *names]).to_pylist()
    }
    return {key: counts for key, counts in found.items() if any(counts)}


class DeltaScan(Protocol):
    """Function of an engine that returns the deltas of some commits, in their order."""

    def __call__(self, first: int, last: int, opening: Opening | None = None) -> pa.Table:
        """Return deltas; without an opening, each snapshot's manifest lists must exist."""


def local_scan(log: TableLog) -> DeltaScan:
    """Return the local engine, on a table's log."""

    def scan(first: int, last: int, opening: Opening | None = None) -> pa.Table:
        return deltas(entries(log, first, last, opening))

    return scan


@define
class CommitMoments:
    """Effective times of commits.

    Attributes:
        log: The table's log.
        state: A state after all of them, which has the corrections of clocks.
        ahead: Number of commits to prefetch, for callers that read them in order.
    """

    log: TableLog = field(eq=False)
    state: TableState
    ahead: int = 1
    _known: dict[int, int] = Factory(dict)

    def of(self, place: int) -> int:
        """Return a version's effective time, Unix milliseconds."""
        if place not in self._known:
            last = min(place + self.ahead - 1, self.state.version)
            self._known = {
                read.commit.version: effective_millis(read.commit, self.state.corrections)
                for read in self.log.commits(place, last)
            }
        return self._known[place]

    def of_snapshot(self, version: int, _snapshot_id: int) -> int:
        """Return the effective time of a snapshot's commit, Unix milliseconds."""
        return self.of(version)


@frozen
class Kept:
    """Kept statistics of a table, and the computation of missing ones.

    Attributes:
        files: The tiles.
        position: The position up to which they are kept.
        scan: Computes missing deltas.
        log: The table's log.
        opening: The snapshot from which missing deltas are computed, if older ones are not
            readable.
    """

    files: TileFiles
    position: StatisticsPosition
    scan: DeltaScan = field(eq=False)
    log: TableLog = field(eq=False)
    opening: Opening | None = None

    @classmethod
    def of(cls, log: TableLog, scan: DeltaScan | None = None) -> Kept:
        """Return the kept statistics of a table."""
        files = TileFiles(log.store, folder(log.layout))
        position = load(log.store, log.layout)
        opening = find_opening(log, position.version + 1, position.snapshot_id)
        return cls(files, position, scan or local_scan(log), log, opening)

    @property
    def columns(self) -> PersonalColumns:
        """Personal partition values, which are stored separately."""
        return self.log.personal.columns

    def up_to(self, version: int, snapshot_id: int) -> Iterator[pa.Table]:
        """Yield deltas and sums that add up to a state, newest first.

        Args:
            version: The version of the state.
            snapshot_id: The snapshot of the state: its commit may hold later ones, too.

        Raises:
            DamagedLogError: A needed part of the log is missing or damaged.
        """
        block = block_of(version)
        yield up_to(self.block(block, version), version=version, snapshot_id=snapshot_id)
        for tile in covering_tiles(block.start):
            yield self.tile(tile)

    def history(self, version: int, snapshot_id: int) -> Iterator[pa.Table]:
        """Yield rows with one for each snapshot up to a state; sums keep these, too."""
        return self.up_to(version, snapshot_id)

    def version_of(self, version: int, _snapshot_id: int) -> int:
        """Return the commit of a snapshot, whose place is its version."""
        return version

    def moments(self, state: TableState, ahead: int = 1) -> CommitMoments:
        """Return the effective times of commits."""
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
        return between(concat_rows(rows), block.start, last)

    def fresh(self, first: int, last: int) -> pa.Table:
        """Return the deltas of versions that are not kept."""
        return self.opened(self.scan(first, last, self.opening), first, last)

    def opened(self, rows: pa.Table, first: int, last: int) -> pa.Table:
        """Return the deltas of some versions, minus those kept before an opening in them."""
        if self.opening is None or not first <= self.opening.version <= last:
            return rows
        return balance_at_opening(rows, map(self.tile, self.position.tiles), self.opening)

    def tile(self, tile: Tile) -> pa.Table:
        """Return a tile's rows, recomputed if the position is before it or it is lost.

        Raises:
            DamagedLogError: It is lost, and its manifest lists expired.
        """
        if tile.end > self.position.version + 1:
            return self._recompute_tile(tile)
        found = self.files.load(tile)
        if found is not None:
            return found
        opening = self.position.opening
        try:
            if opening is None or tile.start > opening.version:
                return self._recompute_tile(tile)
        except MissingFileError as error:
            raise self._lost_tile_error(tile) from error
        raise self._lost_tile_error(tile)

    def _recompute_tile(self, tile: Tile) -> pa.Table:
        if tile.is_sums:
            return sums([self.tile(each) for each in tile.parts()])
        return self.fresh(tile.start, tile.end - 1)

    def _lost_tile_error(self, tile: Tile) -> DamagedLogError:
        key = self.files.key(tile)
        return DamagedLogError(
            f"{key} is lost, and the manifest lists that it was made of expired; restart the "
            "statistics from readable snapshots: lakeledger stats TABLE --rebuild",
            key,
        )
