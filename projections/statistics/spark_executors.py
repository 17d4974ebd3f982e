"""Refresh of one table's statistics on Spark's executors.

The driver assigns shares of the log, and collects their progress; no row passes through it. An
executor opens the table itself, folds by `fold` and writes its tiles. Spark may repeat a task, or
run it twice at once: its output depends on the log alone.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import frozen

from ledger.model.errors import LedgerError, StoreError
from projections.source.span_reading import begin_task
from projections.statistics.entries import Opening
from projections.statistics.materialise import RefreshedRange, merge_tile, refresh_range
from projections.statistics.session import cores_of
from projections.statistics.spark_source import LogSource
from projections.statistics.tile_rows import (
    BLOCK,
    NARROWEST_SUMS,
    Kept,
    StatisticsPosition,
    Tile,
    TileFiles,
    block_of,
    blocks,
    folder,
    local_scan,
)

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from ledger.history.older import TableLog


T = TypeVar("T")

BLOCKS_A_STEP = 512
_PARTS = 2
"""Divisor of a core's share of the remaining work: a task takes that much."""

_ANSWER = "task bigint, answer binary"


@frozen
class SparkEngine:
    """Engine on Spark's executors, for one table.

    Attributes:
        spark: The session; may be of Spark Connect.
        source: The table's location.
        blocks_a_step: As in `Engine`.
    """

    spark: SparkSession
    source: LogSource
    blocks_a_step: int = BLOCKS_A_STEP

    @property
    def name(self) -> str:
        """Name in messages."""
        return "spark"

    def keep(self, kept: Kept, last: int) -> Iterable[RefreshedRange]:
        """Write tiles of deltas; see `materialise.Engine`."""
        table = _ExecutorTable(self.source, kept.position, kept.opening)
        if self.source.names_lists:
            return self._keep_from_manifests(table, last)
        cores = cores_of(self.spark)
        return self._distribute_shares(
            table, tuple(decreasing_runs(kept.position.version + 1, last, cores))
        )

    def _distribute_shares(
        self, table: _ExecutorTable, shares: tuple[tuple[int, int], ...]
    ) -> list[RefreshedRange]:
        found = run_tasks(self.spark, partial(_keep_shares, table, shares), len(shares))
        return [share for done in found for share in done]

    def merge(self, kept: Kept, tiles: Sequence[Tile]) -> None:
        """Write tiles of sums; see `materialise.Engine`."""
        table = _ExecutorTable(self.source, kept.position, kept.opening)
        run_tasks(self.spark, partial(_merge_numbered_tile, table, tuple(tiles)), len(tiles))

    def _keep_from_manifests(self, table: _ExecutorTable, last: int) -> Iterable[RefreshedRange]:
        """Keep blocks whose manifests are distributed over all tasks."""
        from attrs import evolve

        import projections.statistics.spark_frames as reader

        first = table.position.version + 1
        source = evolve(self.source, opening=table.opening)
        rows = reader.contributions(self.spark, source, first, last)
        task = partial(_keep_rows, table, first, last)
        done = _collect_rows(reader.apply_by_block(rows, task, _ANSWER))
        found = [cast("RefreshedRange", each) for _, each in done]
        # Commits without a snapshot have no rows, but a tile.
        starts = {block_of(each.first).start for each in found}
        empty = tuple(
            (max(first, each.start), min(last, each.end - 1))
            for each in blocks(first, last)
            if each.start not in starts
        )
        return [*found, *self._distribute_shares(table, empty)]


@frozen
class _ExecutorTable:
    """The fields of a table that executors need; pickled to them."""

    source: LogSource
    position: StatisticsPosition
    opening: Opening | None

    def open(self) -> tuple[TableLog, Kept]:
        """Return its log, and the kept statistics."""
        log = self.source.log()
        files = TileFiles(log.store, folder(log.layout))
        return log, Kept(files, self.position, local_scan(log), log, self.opening)


def divide_into_runs(first: int, last: int) -> Iterator[tuple[int, int]]:
    """Yield the first and last versions of the runs that tasks divide.

    None is longer than a tile of sums, whose rows are all in memory at once; and if there are
    several, they end at the ends of such tiles.

    Example:
        >>> list(divide_into_runs(300, 700)), list(divide_into_runs(300, 1100))
        ([(300, 700)], [(300, 511), (512, 1023), (1024, 1100)])
    """
    is_short = last < block_of(first).start + NARROWEST_SUMS
    while first <= last:
        end = last + 1 if is_short else first - first % NARROWEST_SUMS + NARROWEST_SUMS
        yield first, min(last, end - 1)
        first = end


def decreasing_runs(first: int, last: int, cores: int) -> Iterator[tuple[int, int]]:
    """Yield the first and last versions of runs of whole blocks, in decreasing length.

    Long ones first, since each has a fixed cost; short ones last, so that no core is busy with a
    long one while the others are idle. As long as there is a tile of sums for every core, runs end
    where one ends, so that the process with its rows merges it.

    Example:
        >>> [(b + 1 - a) // BLOCK for a, b in decreasing_runs(0, 2559, 2)]
        [8, 8, 8, 8, 2, 2, 1, 1, 1, 1]
        >>> list(decreasing_runs(70, 200, 8))
        [(70, 127), (128, 191), (192, 200)]
    """
    begin, end = block_of(first).start, block_of(last).end
    while first <= last:
        width = -(-(end - begin) // (BLOCK * _PARTS * cores)) * BLOCK
        if end - begin >= cores * NARROWEST_SUMS:
            width = max(width, NARROWEST_SUMS)
            width -= (begin + width) % NARROWEST_SUMS
        begin = min(end, begin + width)
        yield first, min(last, begin - 1)
        first = begin


def _keep_shares(
    table: _ExecutorTable, shares: Sequence[tuple[int, int]], number: int
) -> list[RefreshedRange]:
    log, kept = table.open()
    first, last = shares[number]
    return [refresh_range(log, kept, *each) for each in divide_into_runs(first, last)]


def _keep_rows(table: _ExecutorTable, first: int, last: int, rows: pa.Table) -> pa.Table:
    import pyarrow.compute as pc

    from projections.statistics.spark_frames import sum_partial_deltas

    block = block_of(pc.min(rows["version"]).as_py())

    def kept_share(_number: int) -> RefreshedRange:
        log, kept = table.open()
        span = max(first, block.start), min(last, block.end - 1)
        return refresh_range(log, kept, *span, fresh=sum_partial_deltas(rows))

    return _run_task(kept_share, 0)


def _merge_numbered_tile(table: _ExecutorTable, tiles: Sequence[Tile], number: int) -> None:
    _, kept = table.open()
    merge_tile(kept, tiles[number])


def run_tasks(spark: SparkSession, task: Callable[[int], T], count: int) -> list[T]:
    """Run tasks on executors, a partition each, and return their answers, in order.

    Args:
        spark: The session; may be of Spark Connect.
        task: Function of a task's number; pickled, and run once or more often.
        count: Number of tasks, which are numbered from 0.

    Raises:
        LedgerError: The error of the first failed task.
        StoreError: Spark gave up on one.
    """
    if not count:
        return []
    numbers = spark.range(0, count, 1, count)
    found = dict(_collect_rows(numbers.mapInArrow(partial(_run_numbered_tasks, task), _ANSWER)))
    return [cast("T", found[number]) for number in range(count)]


def _collect_rows(frame: DataFrame) -> list[tuple[int, object]]:
    from pyspark.errors import PySparkException

    try:
        rows = frame.collect()
    except PySparkException as error:
        lines = [each.strip() for each in str(error).splitlines() if each.strip()]
        reason = next((each for each in reversed(lines) if "Error" in each), lines[-1:])
        # Executors of another machine have what is installed there.
        hint = (
            "install lakeledger where Spark's executors run"
            if "No module named" in str(reason)
            else "committed steps are kept, and the next run continues there"
        )
        raise StoreError(f"Spark gave up: {reason}; {hint}") from error
    found = [(int(row[0]), pickle.loads(bytes(row[1]))) for row in rows]  # noqa: S301 - our executors'
    for _, answer in sorted(found, key=lambda each: each[0]):
        if isinstance(answer, LedgerError):
            raise answer
    return found


def _run_numbered_tasks(task: Callable[[int], object], batches: Iterable[Any]) -> Iterator[Any]:
    for batch in batches:
        for number in batch.column(0).to_pylist():
            yield from _run_task(task, number).to_batches()


def _run_task(task: Callable[[int], object], number: int) -> pa.Table:
    """Return a task's answer as a row; raise only errors that a retry may fix."""
    import pyarrow as pa

    begin_task()
    answer: object
    try:
        answer = task(number)
    except LedgerError as error:
        answer = error
    columns = [pa.array([number], pa.int64()), pa.array([pickle.dumps(answer)], pa.binary())]
    return pa.Table.from_arrays(columns, names=["task", "answer"])
