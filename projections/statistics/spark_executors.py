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
from projections.spark_tasks import clear_archive_importers
from projections.statistics.entries import Opening
from projections.statistics.materialise import RefreshedRange, merge_tile, refresh_range
from projections.statistics.shares import divide_into_shares, sample_entries
from projections.statistics.spark_source import LogSource
from projections.statistics.tile_files import Tile, TileFiles
from projections.statistics.tile_rows import Kept, StatisticsPosition, folder

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from ledger.history.older import TableLog


T = TypeVar("T")

BLOCKS_A_STEP = 512
_COMMITS_SAMPLED = 512
"""Number of commits that the driver reads before it divides the others into shares."""

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

    def keep(self, kept: Kept, last: int) -> list[RefreshedRange]:
        """Write tiles of deltas; see `materialise.Engine`."""
        table = _ExecutorTable(self.source, kept.position, kept.opening)
        first = kept.position.version + 1
        shares = divide_into_shares(sample_entries(kept.log, first, last, _COMMITS_SAMPLED))
        return run_tasks(self.spark, partial(_keep_share, table, shares), len(shares))

    def merge(self, kept: Kept, tiles: Sequence[Tile]) -> None:
        """Write tiles of sums; see `materialise.Engine`."""
        table = _ExecutorTable(self.source, kept.position, kept.opening)
        run_tasks(self.spark, partial(_merge_numbered_tile, table, tuple(tiles)), len(tiles))


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
        return log, Kept(files, self.position, log, self.opening)


def _keep_share(
    table: _ExecutorTable, shares: Sequence[tuple[int, int]], number: int
) -> RefreshedRange:
    log, kept = table.open()
    return refresh_range(log, kept, *shares[number])


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

    clear_archive_importers()
    answer: object
    try:
        answer = task(number)
    except LedgerError as error:
        answer = error
    columns = [pa.array([number], pa.int64()), pa.array([pickle.dumps(answer)], pa.binary())]
    return pa.Table.from_arrays(columns, names=["task", "answer"])
