"""Rows of statistics beyond what memory holds: in order, and summed up.

A block of wide commits has more rows than a worker's memory. `SortedRows` sorts as many as memory
holds, writes them to a temporary file as a run, and merges the runs; `SummedRows` folds rows while
they arrive. `split_by_tile` divides the rows of many commits without holding them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from tempfile import TemporaryFile
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any, Self

from projections.statistics.definition import KEY_NAMES, PLACE_NAMES
from projections.statistics.fold import between, concat_rows, ordered, sums
from projections.statistics.tile_files import Tile

if TYPE_CHECKING:
    import pyarrow as pa


ROWS_IN_MEMORY = 500_000
"""Number of rows that are held: some 60 MB, and about three times as much while they are sorted."""

_ROWS_A_BATCH = 16_384
_ORDER = [*KEY_NAMES, *PLACE_NAMES]


class SortedRows:
    """Collection of rows of `ROWS`, returned in the order of a tile; deletes its files at the end.

    Args:
        most: Number of rows that are held in memory.
    """

    def __init__(self, most: int = ROWS_IN_MEMORY) -> None:
        self._most = most
        self._held: list[pa.Table] = []
        self._count = 0
        self._runs: list[IO[bytes]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for each in self._runs:
            each.close()

    def add(self, rows: pa.Table) -> None:
        """Add rows.

        Raises:
            OSError: The temporary folder is full or not writable.
        """
        self._held.append(rows)
        self._count += len(rows)
        if self._count > self._most:
            self._write_run()

    def tables(self) -> Iterator[pa.Table]:
        """Yield all rows in order."""
        held = ordered(self._take_held())
        if not self._runs:
            yield held
            return
        slices = range(0, len(held), _ROWS_A_BATCH)
        in_memory = (held.slice(each, _ROWS_A_BATCH) for each in slices)
        yield from _merge_sorted([*map(_read_run, self._runs), in_memory])

    def _take_held(self) -> pa.Table:
        held, self._held, self._count = self._held, [], 0
        return concat_rows(held)

    def _write_run(self) -> None:
        import pyarrow as pa

        rows = ordered(self._take_held())
        # Closed, and by that deleted, when the collection is left.
        file = TemporaryFile()  # noqa: SIM115
        self._runs.append(file)
        options = pa.ipc.IpcWriteOptions(compression="lz4")
        with pa.ipc.new_stream(file, rows.schema, options=options) as stream:
            stream.write_table(rows, max_chunksize=_ROWS_A_BATCH)


def _read_run(file: IO[bytes]) -> Iterator[pa.Table]:
    import pyarrow as pa

    file.seek(0)
    for batch in pa.ipc.open_stream(file):
        yield pa.Table.from_batches([batch])


def _merge_sorted(runs: Iterable[Iterator[pa.Table]]) -> Iterator[pa.Table]:
    """Yield the rows of sorted runs in order.

    Each step yields all rows up to the least last row of the runs' current batches: no later batch
    has an earlier row.
    """
    heads = [(head, run) for run in runs if (head := next(run, None)) is not None]
    while heads:
        limit = min(_key(head, len(head) - 1) for head, _ in heads)
        found, left = [], []
        for head, run in heads:
            cut = bisect_right(range(len(head)), limit, key=partial(_key, head))
            found.append(head.slice(0, cut))
            rest = head.slice(cut) if cut < len(head) else next(run, None)
            if rest is not None:
                left.append((rest, run))
        yield ordered(concat_rows(found))
        heads = left


def _key(rows: pa.Table, row: int) -> tuple[tuple[bool, Any], ...]:
    """Return a row's place in the order of a tile, in which NULL is first."""
    values = (rows[name][row].as_py() for name in _ORDER)
    return tuple((each is not None, each) for each in values)


class SummedRows:
    """Sum of rows of `ROWS` per partition, in memory for two rows of each.

    Args:
        most: Number of rows that are held before they are folded.
    """

    def __init__(self, most: int = ROWS_IN_MEMORY) -> None:
        self._most = most
        self._held: list[pa.Table] = []
        self._count = 0
        self._bound = most

    def add(self, rows: pa.Table) -> None:
        """Add rows."""
        self._held.append(rows)
        self._count += len(rows)
        if self._count > self._bound:
            self._count = len(self.table())
            self._bound = 2 * self._count + self._most

    def table(self) -> pa.Table:
        """Return the sums, as `fold.sums` does."""
        self._held = [sums(self._held)]
        return self._held[0]


def split_by_tile(
    tables: Iterable[pa.Table], tiles: Sequence[Tile]
) -> Iterator[tuple[Tile, pa.Table]]:
    """Yield rows with the tile that they are in; each tile once or more often, in order.

    Args:
        tables: Rows in the order of the log: none has an earlier version than the table before.
        tiles: The tiles of all of their versions, in order.
    """
    import pyarrow.compute as pc

    place = 0
    for rows in tables:
        ends = pc.min_max(rows["version"]).as_py()
        if ends["max"] is None:
            continue
        while ends["max"] >= tiles[place].end:
            yield tiles[place], between(rows, tiles[place].start, tiles[place].end - 1)
            place += 1
        is_inside = ends["min"] >= tiles[place].start
        yield tiles[place], rows if is_inside else between(rows, tiles[place].start, ends["max"])
    for tile in tiles[place:]:
        yield tile, concat_rows([])
