"""Materialisation of a table's statistics.

New commits are divided into shares: a share is a run of blocks, read, folded and written as tiles
in a process of the engine. Tiles of sums are merged from those, the narrowest by the process that
has all of their rows in memory. The position is written last, and files that it no longer names are
deleted after that; so a job killed anywhere leaves either the old statistics or the new ones, and
concurrent jobs, or repeated attempts at a share, write the same files.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Protocol

import msgspec
from attrs import evolve, frozen

import projections.statistics.tile_rows as positions
from ledger.log.codec import digest
from ledger.model.errors import DamagedLogError, UnsupportedError
from projections.materialising import Difference, Progress, ignore_progress
from projections.statistics.entries import Opening, TableLog, find_opening
from projections.statistics.fold import between, concat_rows, ordered, sums
from projections.statistics.row_runs import (
    ROWS_IN_MEMORY,
    SortedRows,
    SummedRows,
    split_by_tile,
)
from projections.statistics.tile_files import (
    BLOCK,
    Tile,
    TileFiles,
    block_of,
    blocks,
    covering_tiles,
    tiles_completed_by,
    tiles_within,
)
from projections.statistics.tile_rows import (
    Kept,
    StatisticsPosition,
    after,
    folder,
    have_equal_counts,
    load,
    scan_deltas,
    until,
)

if TYPE_CHECKING:
    import pyarrow as pa


Block = tuple[Tile, "pa.Table"]


@frozen
class Recomputation:
    """Recomputation of the tiles of a table.

    Attributes:
        kept: The kept statistics.
        opening: Start of the statistics that can be computed, if older manifest lists are missing.
    """

    kept: Kept
    opening: Opening | None

    @classmethod
    def of(cls, log: TableLog) -> Recomputation:
        """Return the recomputation of a table."""
        log.refresh()
        position = load(log.store, log.layout)
        kept = Kept(TileFiles(log.store, folder(log.layout)), position, log)
        # Where nothing is kept, nothing can be wrong with it.
        opening = find_opening(log, 0, 0) if position.version >= 0 else None
        return cls(kept, opening)

    def anew(self) -> Iterator[Block]:
        """Yield every tile with its rows, computed from the opening on."""
        return self._combine_into_tiles(self._scan_blocks())

    def trusting(self) -> Iterator[Block]:
        """Yield every tile and its rows, with kept rows where they cannot be recomputed.

        If they do not add up to the opening, none of the kept rows is used.
        """
        opening = self.opening
        if opening is None:
            return self.anew()
        return self._combine_into_tiles(
            self._merge_trusted_rows(opening, self._trusted_rows_loader(opening))
        )

    def _scan_blocks(self) -> Iterator[Block]:
        """Yield every block up to the position with its deltas."""
        last = self.kept.position.version
        scanned = scan_deltas(self.kept.log, 0, last, self.opening)
        parts = split_by_tile(scanned, [*blocks(0, last)])
        for block, found in groupby(parts, itemgetter(0)):
            yield block, concat_rows(rows for _, rows in found)

    def _merge_trusted_rows(
        self, opening: Opening, believed: Callable[[Tile], pa.Table | None]
    ) -> Iterator[Block]:
        for block, rows in self._scan_blocks():
            found = believed(block) if block.start <= opening.version else None
            if found is None:
                yield block, rows
            else:
                yield (
                    block,
                    concat_rows([until(found, opening), after(rows, opening)]).combine_chunks(),
                )

    def _trusted_rows_loader(self, opening: Opening) -> Callable[[Tile], pa.Table | None]:
        """Return a loader of a block's kept rows, if those up to the opening are trusted."""
        so_far: pa.Table = concat_rows([])
        opened = concat_rows([])
        for block in blocks(0, min(opening.version, self.kept.position.version)):
            found = self._load_block_rows(block)
            if found is None:
                return lambda _: None
            so_far = sums([so_far, until(found, opening)])
        if opening.version <= self.kept.position.version:
            scanned = scan_deltas(self.kept.log, opening.version, opening.version, opening)
            opened = until(concat_rows(scanned), opening)
            if not have_equal_counts(so_far, opened):
                return lambda _: None
        return self._load_block_rows

    def _load_block_rows(self, block: Tile) -> pa.Table | None:
        """Return the kept rows of a block; None if a part of them is lost."""
        last = self.kept.position.version
        tiles = [each for each in self.kept.position.tiles if each.start >= block.start]
        if block.end <= last + 1:
            tiles = [block]
        found = [self.kept.files.load(each) for each in reversed(tiles)]
        rows = [each for each in found if each is not None]
        return concat_rows(rows).combine_chunks() if len(rows) == len(found) else None

    def _combine_into_tiles(self, given: Iterator[Block]) -> Iterator[Block]:
        """Yield every tile that should be kept, and its rows."""
        position = self.kept.position
        ready: dict[Tile, pa.Table] = {}
        for block, rows in given:
            if block.end <= position.version + 1:
                ready[block] = sums([rows])
                yield block, rows
                for tile in tiles_completed_by(block):
                    ready[tile] = sums([ready.pop(each) for each in tile.parts()])
                    yield tile, ready[tile]
            else:
                for tile in position.tiles:
                    if tile.start >= block.start:
                        yield tile, between(rows, tile.start, tile.end - 1)


BLOCKS_A_STEP = 8
"""Number of blocks read, kept and committed at once; bounds lost work and memory."""


@frozen
class RefreshedRange:
    """A run of commits whose statistics one process makes, with the ends of its digest chain.

    Attributes:
        first: The first commit.
        last: The last; the next share begins in another block.
        parent: The parent digest of the first commit; empty before version 0.
        head: The digest of the last.
        snapshot_id: The newest snapshot in it; 0 without one.
    """

    first: int
    last: int
    parent: str
    head: str
    snapshot_id: int


class Engine(Protocol):
    """Executor of the refresh of one table's statistics."""

    @property
    def name(self) -> str:
        """Name in messages."""

    @property
    def blocks_a_step(self) -> int:
        """Number of blocks to process between two saves of the position."""

    def keep(self, kept: Kept, last: int) -> Iterable[RefreshedRange]:
        """Write the tiles of deltas after the kept ones, up to a version; return the shares.

        Each share is done by `refresh_range`, once or more often.

        Raises:
            DamagedLogError: A commit or a list of file changes is missing or damaged.
            OSError: The store failed.
        """

    def merge(self, kept: Kept, tiles: Sequence[Tile]) -> None:
        """Write tiles of sums, each by `merge_tile`; raises as `keep`.

        Args:
            kept: The kept statistics, with a position after all of the tiles.
            tiles: The tiles, which do not overlap.
        """


@frozen
class LocalEngine:
    """Engine in this process, on one core.

    Attributes:
        log: The table's log.
        blocks_a_step: As in `Engine`.
    """

    log: TableLog
    blocks_a_step: int = BLOCKS_A_STEP

    @property
    def name(self) -> str:
        """Name in messages."""
        return "local"

    def keep(self, kept: Kept, last: int) -> Iterator[RefreshedRange]:
        """Write tiles of deltas; see `Engine`."""
        yield refresh_range(self.log, kept, kept.position.version + 1, last)

    def merge(self, kept: Kept, tiles: Sequence[Tile]) -> None:
        """Write tiles of sums; see `Engine`."""
        for each in tiles:
            merge_tile(kept, each)


def refresh_range(log: TableLog, kept: Kept, first: int, last: int) -> RefreshedRange:
    """Write the tiles of some commits, and replace existing ones.

    These are the tiles of deltas, and the narrowest tiles of sums within it (`tiles_within`).

    Args:
        log: The table's log.
        kept: The statistics kept before; no other share of the same step counts as kept.
        first: The first commit.
        last: The last, which ends a block or the range to keep.

    Raises:
        DamagedLogError: A commit or a list of file changes is missing or damaged.
        OSError: The store failed, or the folder for temporary files.
    """
    import pyarrow.compute as pc

    missing = [
        tile for block in blocks(first, last) for tile in _missing_tiles_of(kept, block, last)
    ]
    merged = deque(tiles_within(first, last))
    merging = SummedRows()
    newest = 0
    parts = split_by_tile(kept.fresh(first, last), sorted(missing))
    for tile, found in groupby(parts, itemgetter(0)):
        with SortedRows() as rows:
            for older in _kept_parts_of(kept, tile):
                rows.add(older)
            for _, fresh in found:
                rows.add(fresh)
                newest = max(newest, pc.max(fresh["snapshot_id"]).as_py() or 0)
                if merged and tile.start >= merged[0].start:
                    merging.add(fresh)
            kept.files.save(tile, rows.tables())
        if merged and tile.end == merged[0].end:
            kept.files.save(merged.popleft(), [ordered(merging.table())])
            merging = SummedRows()
    begins = _read_commit(log, first)
    ends = begins if first == last else _read_commit(log, last)
    return RefreshedRange(first, last, _PARENT.decode(begins).parent, digest(ends), newest)


class _CommitFields(msgspec.Struct):
    parent: str = ""


_PARENT = msgspec.json.Decoder(_CommitFields)


def _read_commit(log: TableLog, version: int) -> bytes:
    key = log.layout.commit(version)
    body = log.store.read(key)
    if body is None:
        raise DamagedLogError(f"{key} is missing. Restore it from a backup", key)
    return body


def _missing_tiles_of(kept: Kept, block: Tile, last: int) -> Iterator[Tile]:
    """Yield the tiles of a block's deltas up to a version, except kept ones."""
    if block.end <= last + 1:
        yield block
        return
    for tile in covering_tiles(last + 1):
        if tile.start >= block.start and tile not in kept.position.tiles:
            yield tile


def _kept_parts_of(kept: Kept, tile: Tile) -> Iterator[pa.Table]:
    """Yield the rows of a tile that are kept in smaller ones."""
    for each in kept.position.tiles:
        if tile.start <= each.start < tile.end:
            yield from kept.tables(each, ROWS_IN_MEMORY)


def merge_tile(kept: Kept, tile: Tile) -> None:
    """Write a tile of sums, from the tiles that it merges.

    Args:
        kept: The kept statistics, with a position after the tile.
        tile: The tile.
    """
    merging = SummedRows()
    for part in tile.parts():
        for rows in kept.tables(part, ROWS_IN_MEMORY):
            merging.add(rows)
    kept.files.save(tile, [ordered(merging.table())])


def refresh(
    log: TableLog,
    engine: Engine | None = None,
    *,
    blocks_a_step: int | None = None,
    on_progress: Progress = ignore_progress,
) -> StatisticsPosition:
    """Update a table's statistics to its newest commit, incrementally.

    Args:
        log: The table's log.
        engine: The engine; None for this process.
        blocks_a_step: Number of blocks between two saves of the position; None for the engine's.
        on_progress: Called with the number of commits done, of how many.

    Raises:
        DamagedLogError: A commit or a list of file changes is missing or damaged.
        UnsupportedError: An engine lists the table's files, of which nothing is kept.
        OSError: The store failed; the next call continues from the last position.
    """
    log.refresh()
    head = log.head
    last = head.state.version if head else -1
    if head is not None and not head.state.lists_files:
        raise UnsupportedError(
            "this table's files are listed in the manifests of its engine, of which no statistics "
            "are kept: they are counted on request (lakeledger stats TABLE)"
        )
    chosen = engine or LocalEngine(log)
    kept = Kept.of(log)
    begin = kept.position.version
    while kept.position.version < last:
        first = kept.position.version + 1
        reached = block_of(first).start + (blocks_a_step or chosen.blocks_a_step) * BLOCK - 1
        if kept.opening is not None and first <= kept.opening.version:
            # Nothing before it is counted: a position there would claim that it was.
            reached = max(reached, block_of(kept.opening.version).end - 1)
        kept = _refresh_step(log, chosen, kept, min(last, reached))
        on_progress(kept.position.version - begin, last - begin)
    return kept.position


def _refresh_step(log: TableLog, engine: Engine, kept: Kept, last: int) -> Kept:
    """Keep the statistics up to a version, and return the new kept statistics."""
    old = kept.position
    first = old.version + 1
    shares = _order_by_chain(log, old, last, engine.keep(kept, last))
    opens = kept.opening is not None and first <= kept.opening.version <= last
    opening = kept.opening if opens else old.opening
    newest = max([old.snapshot_id, *(each.snapshot_id for each in shares)])
    position = StatisticsPosition.at(last, newest, shares[-1].head, opening)
    # Until the position is written, only tiles of this run count as kept.
    here = evolve(kept, position=StatisticsPosition(last))
    merged = {tile for each in shares for tile in tiles_within(each.first, each.last)}
    for tiles in _completed_tiles_by_width(first, last):
        engine.merge(here, [each for each in tiles if each not in merged])
    # The saved position may be unusable, and its tiles not be those of the old one.
    stated = positions.stated(log.store, log.layout)
    advanced = positions.advance(log.store, log.layout, position)
    for tile in {*covering_tiles(stated + 1), *position.tiles}.difference(advanced.tiles):
        if not tile.is_kept:
            kept.files.remove(tile)
    return evolve(kept, position=advanced)


def _order_by_chain(
    log: TableLog, old: StatisticsPosition, last: int, found: Iterable[RefreshedRange]
) -> tuple[RefreshedRange, ...]:
    """Return shares in order, if they cover the range and form one chain of commits.

    Raises:
        DamagedLogError: They do not: the log changed while it was read.
    """
    shares = tuple(sorted(found, key=lambda each: each.first))
    version, head = old.version, old.head
    for each in shares:
        if each.first != version + 1 or each.parent != head:
            key = log.layout.commit(version + 1)
            raise DamagedLogError(
                f"{key} is not the commit that follows the last counted one: the log was "
                "changed meanwhile. Compare it with a backup, and run it again",
                key,
            )
        version, head = each.last, each.head
    if version != last:
        key = log.layout.commit(version + 1)
        raise DamagedLogError(f"{key} was not counted, though {last} is; run it again", key)
    return shares


def _completed_tiles_by_width(first: int, last: int) -> Iterator[list[Tile]]:
    """Yield the tiles of sums that some commits complete, grouped by width.

    Example:
        >>> [[each.name for each in level] for level in _completed_tiles_by_width(0, 511)]
        [['sums/00000000000000000000-00000000000000000511.parquet']]
    """
    by_width: dict[int, list[Tile]] = {}
    for block in blocks(first, last):
        for tile in tiles_completed_by(block) if block.end <= last + 1 else ():
            by_width.setdefault(tile.end - tile.start, []).append(tile)
    for width in sorted(by_width):
        yield by_width[width]


def verify(log: TableLog) -> Difference:
    """Recompute all kept statistics, and return the differences.

    Contents of manifest lists that were deleted with expired snapshots cannot be recomputed: of the
    statistics up to then only the totals are compared.

    Args:
        log: The table's log.

    Raises:
        DamagedLogError: The log itself is damaged.
    """
    again = Recomputation.of(log)
    return _compare_tiles(again, again.trusting(), lambda _files, _tile, _rows: None)


def rebuild(log: TableLog) -> Difference:
    """Restore missing or changed tiles, delete foreign ones, and return the differences.

    If statistics are wrong that cannot be recomputed, all of them start from the first snapshot
    that can be read completely.
    """
    again = Recomputation.of(log)
    found = _rebuild_tiles(log, again)
    for path in found.foreign:
        log.store.delete(f"{folder(log.layout)}/{path}")
    return found


def _rebuild_tiles(log: TableLog, again: Recomputation) -> Difference:
    opening = again.opening
    if opening is None:
        return _compare_tiles(again, again.anew(), _save_tile)
    wrong: list[Tile] = []
    found = _compare_tiles(again, again.trusting(), lambda _files, tile, _rows: wrong.append(tile))
    if any(each.start <= opening.version for each in wrong):
        _compare_tiles(again, again.anew(), _save_tile)
        positions.reopen(log.store, log.layout, opening)
    elif wrong:
        _compare_tiles(again, again.trusting(), _save_tile)
    return found


def _save_tile(files: TileFiles, tile: Tile, rows: pa.Table) -> None:
    files.save(tile, [rows])


def _compare_tiles(
    again: Recomputation,
    expected: Iterator[tuple[Tile, pa.Table]],
    on_wrong: Callable[[TileFiles, Tile, pa.Table], None],
) -> Difference:
    files = again.kept.files
    wrong: dict[Tile, bool] = {}
    seen: set[str] = set()
    for tile, rows in expected:
        seen.add(tile.name)
        found, wanted = files.load(tile), ordered(rows)
        if found is None or not found.equals(wanted):
            wrong[tile] = files.store.exists(files.key(tile))
            on_wrong(files, tile, wanted)
    root = f"{files.root}/"
    there = {
        key.removeprefix(root)
        for part in ("deltas", "sums")
        for key in files.store.keys(f"{root}{part}")
    }
    return Difference(
        missing=tuple(sorted(each.name for each, exists in wrong.items() if not exists)),
        changed=tuple(sorted(each.name for each, exists in wrong.items() if exists)),
        foreign=tuple(sorted(there - seen)),
    )
