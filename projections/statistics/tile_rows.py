"""Tiles of statistics: rows, files, intervals, balance and position.

Sixty-four commits are a block. A complete block is one tile of deltas, kept for ever; eight tiles
merge into one of sums, eight of those into the next, and so on. Commits after the last complete
block stand in tiles of eight and of one, which go when their block is complete. So a refresh
writes what is new, and any instant is a sum over few tiles.

The opening's deltas say all that the table holds then. Less what is counted before it, they are
what happened since: the one row a partition that stands for snapshots nobody can read any more.
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
from ledger.model.parquet_limits import bounded_table
from ledger.model.snapshot import FAN_OUT, covering, parts
from ledger.observing.telemetry import warn
from ledger.state.table import TableState
from ledger.stores import Store
from projections.outputs import load_position, save_position
from projections.statistics.definition import KEY_NAMES, MEASURES, PLACE_NAMES, ROWS, arrow_schema
from projections.statistics.engine_files import MissingFileError
from projections.statistics.entries import Opening, TableLog, entries, opening_of
from projections.statistics.fold import (
    between,
    concatenated,
    deltas,
    grouped,
    negated,
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


FORMAT = 1
_FORMAT_KEY = b"lakeledger.statistics"

_LOGGER = "projections.statistics"

_COUNTED = [each.name for each in MEASURES]
_REPEATED = [*PLACE_NAMES, *KEY_NAMES]


@frozen
class TileFiles:
    """The tiles of one table.

    A cache: one that is missing, torn or of another format is made again from the log.

    Attributes:
        store: The table's.
        root: The statistics' folder on it.
    """

    store: Store
    root: str

    def key(self, tile: Tile) -> str:
        """Return the key of a tile."""
        return f"{self.root}/{tile.name}"

    def load(self, tile: Tile) -> pa.Table | None:
        """Return a tile's rows; None when there are none to use."""
        body = self.store.read(self.key(tile))
        if body is None:
            return None
        found = rows_of(body)
        if found is None:
            warn(_LOGGER, "statistics_tile_unreadable", file=self.key(tile))
        return found

    def save(self, tile: Tile, rows: pa.Table) -> None:
        """Keep a tile, in place of whatever stood there.

        Raises:
            OSError: Kept or not, nobody knows.
        """
        self.store.replace(self.key(tile), body_of(rows))

    def remove(self, tile: Tile) -> None:
        """Take a tile away."""
        self.store.delete(self.key(tile))


def body_of(rows: pa.Table) -> bytes:
    """Return rows as the bytes of a Parquet file; each page carries its checksum."""
    import pyarrow as pa
    from pyarrow import parquet

    sink = pa.BufferOutputStream()
    said = rows.replace_schema_metadata({_FORMAT_KEY: str(FORMAT)})
    parquet.write_table(
        said,
        sink,
        compression="zstd",
        # Sums seldom repeat: their dictionaries would fill, and be thrown away.
        use_dictionary=_REPEATED,
        column_encoding=dict.fromkeys(_COUNTED, "DELTA_BINARY_PACKED"),
        write_page_checksum=True,
    )
    return bytes(sink.getvalue())


def rows_of(body: bytes) -> pa.Table | None:
    """Return the rows that a file holds; None when it is torn, changed, or of another format."""
    import pyarrow as pa

    schema = arrow_schema(ROWS)
    try:
        table = bounded_table(body, "the tile")
        if (table.schema.metadata or {}).get(_FORMAT_KEY) != str(FORMAT).encode():
            return None
        return table.select(schema.names).cast(schema)
    except (pa.ArrowException, OSError, KeyError, ValueError):
        return None


class StatisticsPosition(msgspec.Struct, frozen=True, rename="camel"):
    """The commits that the kept statistics take in.

    Attributes:
        version: The last commit; -1 before the first.
        snapshot_id: The newest snapshot by then; 0 before the first.
        head: The digest of that commit, so that another history shows.
        files: The tiles that cover them, newest first: what a reader without lakeledger reads.
        opening: The last snapshot that stands for others before it; None if each is counted.
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
        names = tuple(each.name for each in cover(version + 1))
        return cls(version, snapshot_id, head, names, opening)

    @property
    def tiles(self) -> tuple[Tile, ...]:
        """The tiles that cover it, newest first."""
        return cover(self.version + 1)


START = StatisticsPosition()


def folder(layout: Layout) -> str:
    """Return the folder of a table's statistics."""
    return f"{layout.root}/statistics"


def key(layout: Layout) -> str:
    """Return the key of the position."""
    return f"{folder(layout)}/position.json"


def load(store: Store, layout: Layout) -> StatisticsPosition:
    """Return the position that is kept; the start when none can be used.

    One of another history, as after a restored backup, cannot be used.
    """
    found = load_position(store, key(layout), StatisticsPosition)
    if found is None:
        return START
    body = store.read(layout.commit(found.version))
    fits = body is not None and digest(body) == found.head
    return found if fits else START


def stated(store: Store, layout: Layout) -> int:
    """Return the version that the position states, whatever history it is of; -1 for none."""
    found = load_position(store, key(layout), StatisticsPosition)
    return -1 if found is None else found.version


def advance(store: Store, layout: Layout, position: StatisticsPosition) -> StatisticsPosition:
    """Keep a position unless a later one is kept, and return the one that stands."""
    with store.lock(key(layout)):
        # One that is behind gives way, of whatever history it is: only a later one is looked into.
        if stated(store, layout) >= position.version:
            kept = load(store, layout)
            if kept.version >= position.version:
                return kept
        save_position(store, key(layout), position)
        return position


def reopen(store: Store, layout: Layout, opening: Opening) -> None:
    """Say that the kept statistics begin with an opening, after all of them were made again."""
    with store.lock(key(layout)):
        kept = load(store, layout)
        if kept.version >= opening.version:
            changed = replace(kept, opening=opening)
            save_position(store, key(layout), changed)


def balanced(rows: pa.Table, kept: Iterable[pa.Table], opening: Opening) -> pa.Table:
    """Return deltas that begin with an opening, less what is kept from before it.

    Args:
        rows: The deltas; their first snapshot is the opening.
        kept: Deltas and sums of all that is counted before them.
        opening: It.
    """
    import pyarrow as pa

    before = concatenated(kept)
    if not len(before):
        return rows
    place = {"version": opening.version, "snapshot_id": opening.snapshot_id}
    less = negated(grouped(before, KEY_NAMES), **place)
    both = pa.concat_tables([up_to(rows, **place), less])
    first = grouped(both, [*PLACE_NAMES, *KEY_NAMES])
    return ordered(pa.concat_tables([_changed(first), after(rows, opening)]))


def _changed(first: pa.Table) -> pa.Table:
    """Leave out partitions that are as they were; the snapshot itself stays."""
    import pyarrow.compute as pc

    same = pc.is_valid(first["spec_id"])
    for each in MEASURES:
        if each.fold == "sum":
            same = pc.and_(same, pc.equal(first[each.name], 0))
    return first.filter(pc.invert(same))


def after(rows: pa.Table, opening: Opening) -> pa.Table:
    """Return the deltas behind an opening."""
    import pyarrow.compute as pc

    later = pc.greater(rows["version"], opening.version)
    here = pc.and_(
        pc.equal(rows["version"], opening.version),
        pc.greater(rows["snapshot_id"], opening.snapshot_id),
    )
    return rows.filter(pc.or_(later, here))


def until(rows: pa.Table, opening: Opening) -> pa.Table:
    """Return the deltas up to an opening, its own included."""
    return up_to(rows, version=opening.version, snapshot_id=opening.snapshot_id)


def agree(counted: pa.Table, opened: pa.Table) -> bool:
    """Whether two sets of rows add up to the same counts and sizes for every partition.

    Times are not compared: those of files that are gone are known to one of them alone.
    """
    return _counts(counted) == _counts(opened)


def _counts(rows: pa.Table) -> dict[tuple[object, ...], tuple[int, ...]]:
    import pyarrow.compute as pc

    names = [each.name for each in MEASURES if each.fold == "sum"]
    added = grouped(rows.filter(pc.is_valid(rows["spec_id"])), KEY_NAMES)
    found = {
        tuple(row[name] for name in KEY_NAMES): tuple(row[name] for name in names)
        for row in added.select([*KEY_NAMES, *names]).to_pylist()
    }
    return {key: counts for key, counts in found.items() if any(counts)}


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
