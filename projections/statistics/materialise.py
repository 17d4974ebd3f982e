"""Keeping a table's statistics: bringing them up to date, checking them, restoring them.

Tiles are written first, the position last, and what it no longer names goes after that; so a job
that is killed anywhere leaves either the old statistics or the new ones, and two jobs at once
write the same files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from attrs import evolve

from ledger.log.codec import digest
from ledger.model.errors import DamagedLogError
from projections.materialising import Difference, Progress, nobody
from projections.statistics import position as positions
from projections.statistics.again import Again
from projections.statistics.entries import TableLog
from projections.statistics.fold import between, concatenated, sums
from projections.statistics.kept import Kept, Scan, local_scan
from projections.statistics.position import Position, folder
from projections.statistics.tile_file import TileFiles
from projections.statistics.tiling import BLOCK, Tile, block_of, blocks, completed_by, cover

if TYPE_CHECKING:
    import pyarrow as pa

BLOCKS_A_STEP = 8
"""So many blocks are read, kept and acknowledged at once: what a kill can lose, and memory."""


def refresh(
    log: TableLog,
    scan: Scan | None = None,
    *,
    blocks_a_step: int = BLOCKS_A_STEP,
    on_progress: Progress = nobody,
) -> Position:
    """Bring a table's statistics up to its newest commit; reads only what is new.

    Args:
        log: The table's.
        scan: The engine; the local one, without.
        blocks_a_step: How much to do between two positions.
        on_progress: Told how many commits are done, of how many.

    Raises:
        DamagedLogError: A commit or a list of file changes is missing or damaged.
        OSError: The store failed; asking again goes on from there.
    """
    log.refresh()
    head = log.head
    last = head.state.version if head else -1
    kept = Kept.of(log, scan)
    begin = kept.position.version
    while kept.position.version < last:
        first = kept.position.version + 1
        reached = block_of(first).start + blocks_a_step * BLOCK - 1
        if kept.opening is not None and first <= kept.opening.version:
            # Before it nothing is counted: a position there would say that it was.
            reached = max(reached, block_of(kept.opening.version).end - 1)
        kept = _step(log, kept, min(last, reached))
        on_progress(kept.position.version - begin, last - begin)
    return kept.position


def _step(log: TableLog, kept: Kept, last: int) -> Kept:
    """Keep the statistics up to a version, and return what is kept then."""
    old = kept.position
    first = old.version + 1
    body = log.store.read(log.layout.commit(last))
    if body is None:
        key = log.layout.commit(last)
        raise DamagedLogError(f"{key} is missing. Restore it from a backup", key)
    fresh = kept.fresh(first, last)
    opens = kept.opening is not None and first <= kept.opening.version <= last
    made: list[Tile] = []
    for block in blocks(first, last):
        made += _save(kept, block, between(fresh, block.start, block.end - 1), last)
    newest = max([old.snapshot_id, *fresh["snapshot_id"].unique().to_pylist()])
    position = Position.at(last, newest, digest(body), kept.opening if opens else old.opening)
    standing = positions.advance(log.store, log.layout, position)
    for tile in {*old.tiles, *made}.difference(standing.tiles):
        if not tile.is_kept:
            kept.files.remove(tile)
    return evolve(kept, position=standing)


def _save(kept: Kept, block: Tile, fresh: pa.Table, last: int) -> Iterator[Tile]:
    """Keep what is new of a block: its tiles up to a version; yield the small ones.

    Args:
        kept: What was kept before.
        block: The block.
        fresh: Its deltas after that.
        last: The version.
    """
    if block.end <= last + 1:
        kept.files.save(block, _with_older(kept, block, fresh))
        # Until the position is written, only what was made here counts as kept.
        here = evolve(kept, position=Position(last))
        for tile in completed_by(block):
            kept.files.save(tile, sums([here.tile(each) for each in tile.parts()]))
        return
    for tile in cover(last + 1):
        if tile.start >= block.start and tile not in kept.position.tiles:
            rows = between(fresh, tile.start, tile.end - 1)
            kept.files.save(tile, _with_older(kept, tile, rows))
            yield tile


def _with_older(kept: Kept, tile: Tile, fresh: pa.Table) -> pa.Table:
    """Return a tile's deltas: those that are kept in smaller tiles, then the new ones."""
    older = [each for each in kept.position.tiles if tile.start <= each.start < tile.end]
    return concatenated([*map(kept.tile, reversed(older)), fresh]).combine_chunks()


def verify(
    log: TableLog, scan: Scan | None = None, *, blocks_a_step: int = BLOCKS_A_STEP
) -> Difference:
    """Compute everything that is kept again, in full, and say where it differs.

    What manifest lists said that are gone with expired snapshots cannot be computed again: of the
    statistics up to then it is compared what they add up to.

    Args:
        log: The table's.
        scan: The engine; the local one, without.
        blocks_a_step: How much to ask of it at once.

    Raises:
        DamagedLogError: The log itself is damaged.
    """
    again = Again.of(log, scan or local_scan(log), blocks_a_step * BLOCK)
    return _compare(again, again.trusting(), lambda _files, _tile, _rows: None)


def rebuild(
    log: TableLog, scan: Scan | None = None, *, blocks_a_step: int = BLOCKS_A_STEP
) -> Difference:
    """Restore what `verify` finds missing or changed, take away what is foreign, and return it.

    Where statistics are wrong that cannot be computed again, all of them begin anew, with the
    first snapshot that can be read whole.
    """
    again = Again.of(log, scan or local_scan(log), blocks_a_step * BLOCK)
    found = _rebuilt(log, again)
    for path in found.foreign:
        log.store.delete(f"{folder(log.layout)}/{path}")
    return found


def _rebuilt(log: TableLog, again: Again) -> Difference:
    opening = again.opening
    if opening is None:
        return _compare(again, again.anew(), TileFiles.save)
    wrong: list[Tile] = []
    found = _compare(again, again.trusting(), lambda _files, tile, _rows: wrong.append(tile))
    if any(each.start <= opening.version for each in wrong):
        _compare(again, again.anew(), TileFiles.save)
        positions.reopen(log.store, log.layout, opening)
    elif wrong:
        _compare(again, again.trusting(), TileFiles.save)
    return found


def _compare(
    again: Again,
    expected: Iterator[tuple[Tile, pa.Table]],
    on_wrong: Callable[[TileFiles, Tile, pa.Table], None],
) -> Difference:
    files = again.kept.files
    wrong: dict[Tile, bool] = {}
    seen: set[str] = set()
    for tile, rows in expected:
        seen.add(tile.name)
        found = files.load(tile)
        if found is None or not found.equals(rows):
            wrong[tile] = files.store.exists(files.key(tile))
            on_wrong(files, tile, rows)
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
