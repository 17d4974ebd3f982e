"""Kept statistics: their position in the log, their opening balance, and their rows.

The opening's deltas are the complete contents of the table at that snapshot. Minus the statistics
counted before it, they are the changes since: one row per partition that replaces unreadable
snapshots.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import msgspec
from attrs import Factory, define, field, frozen
from msgspec.structs import replace

from ledger.log.codec import digest
from ledger.log.layout import Layout
from ledger.log.personal_data import PersonalColumns
from ledger.log.time_travel import effective_millis
from ledger.model.errors import DamagedLogError
from ledger.state.table import TableState
from ledger.stores import Store
from projections.outputs import load_position, save_position
from projections.statistics.definition import KEY_NAMES, MEASURES, PLACE_NAMES
from projections.statistics.engine_files import MissingFileError
from projections.statistics.entries import Opening, TableLog, entries, find_opening
from projections.statistics.fold import (
    between,
    concat_rows,
    deltas,
    fold_by_columns,
    negate_sums,
    sums,
    up_to,
)
from projections.statistics.tile_files import (
    FORMAT,
    RowFilter,
    Tile,
    TileFiles,
    block_of,
    blocks,
    covering_tiles,
)

if TYPE_CHECKING:
    import pyarrow as pa


class StatisticsPosition(msgspec.Struct, frozen=True, rename="camel"):
    """Position of the kept statistics in the log.

    Attributes:
        version: The last commit; -1 before the first.
        snapshot_id: The newest snapshot by then; 0 before the first.
        head: The digest of that commit, which detects another history.
        files: The tiles that cover them, newest first, for readers without lakeledger.
        opening: The last opening snapshot; None if each snapshot is counted.
        tile_format: The format of the tiles.
    """

    version: int = -1
    snapshot_id: int = 0
    head: str = ""
    files: tuple[str, ...] = ()
    opening: Opening | None = None
    tile_format: int = 1

    @classmethod
    def at(
        cls, version: int, snapshot_id: int, head: str, opening: Opening | None = None
    ) -> StatisticsPosition:
        """Return the position after a commit."""
        names = tuple(each.name for each in covering_tiles(version + 1))
        return cls(version, snapshot_id, head, names, opening, FORMAT)

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

    A position of another history, as after a restored backup, or of tiles in another format is not
    usable.
    """
    found = load_position(store, key(layout), StatisticsPosition)
    if found is None or found.tile_format != FORMAT:
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
    return pa.concat_tables([_drop_unchanged(first), after(rows, opening)])


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


def scan_deltas(
    log: TableLog, first: int, last: int, opening: Opening | None = None
) -> Iterator[pa.Table]:
    """Yield the deltas of some commits, read from the log; the tables are in its order.

    Without an opening, each snapshot's manifest lists must exist.
    """
    return deltas(entries(log, first, last, opening))


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
        log: The table's log.
        opening: The snapshot from which missing deltas are computed, if older ones are not
            readable.
    """

    files: TileFiles
    position: StatisticsPosition
    log: TableLog = field(eq=False)
    opening: Opening | None = None

    @classmethod
    def of(cls, log: TableLog) -> Kept:
        """Return the kept statistics of a table."""
        files = TileFiles(log.store, folder(log.layout))
        position = load(log.store, log.layout)
        opening = find_opening(log, position.version + 1, position.snapshot_id)
        return cls(files, position, log, opening)

    @property
    def columns(self) -> PersonalColumns:
        """Personal partition values, which are stored separately."""
        return self.log.personal.columns

    def up_to(
        self, version: int, snapshot_id: int, rows: RowFilter | None = None
    ) -> Iterator[pa.Table]:
        """Yield deltas and sums that add up to a state, newest first.

        Args:
            version: The version of the state.
            snapshot_id: The snapshot of the state: its commit may hold later ones, too.
            rows: Selects rows; None for all.

        Raises:
            DamagedLogError: A needed part of the log is missing or damaged.
        """
        block = block_of(version)
        newest = self.block(block, version, rows)
        yield up_to(newest, version=version, snapshot_id=snapshot_id)
        for tile in covering_tiles(block.start):
            yield self.tile(tile, rows)

    def history(
        self, version: int, snapshot_id: int, rows: RowFilter | None = None
    ) -> Iterator[pa.Table]:
        """Yield rows with one for each snapshot up to a state; sums keep these, too."""
        return self.up_to(version, snapshot_id, rows)

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

    def deltas(self, first: int, last: int, rows: RowFilter | None = None) -> Iterator[pa.Table]:
        """Yield the deltas of some versions, a table per block, oldest first.

        Args:
            first: The first version.
            last: The last version.
            rows: Selects rows; None for all.

        Raises:
            DamagedLogError: A needed part of the log is missing or damaged.
        """
        for block in blocks(first, last):
            found = self.block(block, min(last, block.end - 1), rows)
            yield found if first <= block.start else between(found, first, last)

    def block(self, block: Tile, last: int, rows: RowFilter | None = None) -> pa.Table:
        """Return the deltas of a block's versions up to `last`, in any order."""
        reached = self.position.version
        if block.end <= reached + 1:
            found = self.tile(block, rows)
            return found if last == block.end - 1 else between(found, block.start, last)
        small = [each for each in self.position.tiles if each.start >= block.start]
        parts = [self.tile(each, rows) for each in reversed(small) if each.start <= last]
        first = max(block.start, reached + 1)
        if first <= last:
            fresh = concat_rows(self.fresh(first, last))
            parts.append(fresh if rows is None else rows.select(fresh))
        return between(concat_rows(parts), block.start, last)

    def fresh(self, first: int, last: int) -> Iterator[pa.Table]:
        """Yield the deltas of versions that are not kept; the tables are in the log's order.

        At an opening they are the changes since the statistics that are kept from before it.
        """
        found = scan_deltas(self.log, first, last, self.opening)
        opening = self.opening
        if opening is not None and first <= opening.version <= last:
            # Nothing before it is scanned, so that the first table has all of its rows.
            opened = next(found, concat_rows([]))
            yield balance_at_opening(opened, map(self.tile, self.position.tiles), opening)
        yield from found

    def tables(self, tile: Tile, rows: int) -> Iterator[pa.Table]:
        """Yield the rows of `tile`, at most some at a time unless they are computed again."""
        found = self.files.tables(tile, rows) if tile.end <= self.position.version + 1 else None
        yield from [self.tile(tile)] if found is None else found

    def tile(self, tile: Tile, rows: RowFilter | None = None) -> pa.Table:
        """Return a tile's rows, recomputed if the position is before it or it is lost.

        Args:
            tile: The tile.
            rows: Selects rows; None for all.

        Raises:
            DamagedLogError: It is lost, and its manifest lists expired.
        """
        if tile.end <= self.position.version + 1:
            found = self.files.load(tile, rows)
            if found is not None:
                return found
            again = self._restore_tile(tile)
        else:
            again = self._recompute_tile(tile)
        return again if rows is None else rows.select(again)

    def _restore_tile(self, tile: Tile) -> pa.Table:
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
        return concat_rows(self.fresh(tile.start, tile.end - 1))

    def _lost_tile_error(self, tile: Tile) -> DamagedLogError:
        key = self.files.key(tile)
        return DamagedLogError(
            f"{key} is lost, and the manifest lists that it was made of expired; restart the "
            "statistics from readable snapshots: lakeledger stats TABLE --rebuild",
            key,
        )
