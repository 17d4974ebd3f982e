"""Statistics as DataFrames."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import evolve, frozen

from ledger.model.errors import UnsupportedError
from ledger.table import Table
from ledger.table_at import TableAt
from ledger.table_handle import handle_of
from projections.statistics.column_history import (
    column_statistics_at,
    column_statistics_by_snapshot,
)
from projections.statistics.engine_listed import EngineListedStatistics
from projections.statistics.entries import find_opening
from projections.statistics.query import Instant, PartitionRendering, rendering_of
from projections.statistics.questions import Question, Thresholds, answer, statistics_for_question
from projections.statistics.session import spark_session
from projections.statistics.spark_source import EntrySource, LogSource
from projections.statistics.tile_rows import Kept

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@frozen(kw_only=True)
class Statistics:
    """Statistics of one table at one instant, as DataFrames.

    Attributes:
        version: The last version included.
        snapshot_id: The current snapshot at that version; 0 before the first.
        deltas: Rows of `definition.ROWS`: changes of each partition by snapshot; lazy.
        partitions: Rows of `columns.PARTITIONS`; lazy.
        snapshots: Rows of `columns.TOTALS`, for every snapshot up to `snapshot_id`; lazy.
    """

    version: int
    snapshot_id: int
    deltas: DataFrame
    partitions: DataFrame
    snapshots: DataFrame


def compute(
    table: Table, *, at: Instant | None = None, spark: SparkSession | None = None
) -> Statistics:
    """Return a table's statistics, read from its log in parallel.

    Args:
        table: The table, in a ledger that other processes can reach: not `memory://`.
        at: An instant such as `table.at(snapshot=3)`; None for the current table.
        spark: The session to use; None for the active one, or else a small local one.

    Raises:
        InvalidInputError: The ledger is in memory.
        MissingDependencyError: A session has to be started, and pyspark or Java is missing.
        UnsupportedError: An engine lists the table's files then, and not the ledger.
    """
    instant = at or table.at()
    log = handle_of(table).log
    _refuse_engine_listed(table, instant)
    return compute_from(
        evolve(LogSource.of(table), opening=find_opening(log, 0, 0)),
        evolve(rendering_of(instant), columns=log.personal.columns),
        version=instant.state.version,
        snapshot_id=instant.state.last_snapshot_id,
        spark=spark,
    )


def compute_from(
    source: EntrySource,
    rendering: PartitionRendering,
    *,
    version: int,
    snapshot_id: int,
    spark: SparkSession | None = None,
) -> Statistics:
    """Return the statistics of the entries of a source.

    Args:
        source: The source of entries.
        rendering: The rendering of partitions.
        version: The last version to include.
        snapshot_id: The current snapshot at that version.
        spark: As in `compute`.

    Raises:
        MissingDependencyError: As in `compute`.
    """
    session = spark or spark_session()
    import projections.statistics.spark_frames as frames

    deltas = frames.deltas(session, source, 0, version)
    return Statistics(
        version=version,
        snapshot_id=snapshot_id,
        deltas=deltas,
        partitions=frames.partition_statistics(deltas, rendering, at_snapshot=snapshot_id),
        snapshots=frames.snapshot_totals(deltas, at_snapshot=snapshot_id),
    )


def asked(
    table: Table,
    question: Question,
    bounds: Thresholds,
    *,
    at: TableAt | None = None,
    spark: SparkSession | None = None,
) -> DataFrame:
    """Return the answer of `questions.answer` as a DataFrame.

    Args:
        table: The table; its new commits are read by this process and not kept.
        question: The question.
        bounds: The thresholds.
        at: As in `compute`.
        spark: As in `compute`.

    Raises:
        DamagedLogError: A commit or a list of file changes is missing or damaged.
        MissingDependencyError: As in `compute`.
    """
    instant = at or table.at()
    session = spark or spark_session()
    handle = handle_of(table)
    lists_files = instant.state.lists_files
    kept = Kept.of(handle.log) if lists_files else EngineListedStatistics(handle, instant)
    counted = statistics_for_question(question, table, instant, kept)
    rows = answer(question, counted, handle.log, instant, bounds)
    return session.createDataFrame(rows)


def _refuse_engine_listed(table: Table, at: Instant) -> None:
    if not at.state.lists_files:
        raise UnsupportedError(
            f"the files of {table.identifier} are listed in its engine's manifests, which Spark "
            f"does not count here: lakeledger stats {table.identifier} counts them in this process"
        )


def columns(
    table: Table,
    *,
    at: TableAt | None = None,
    by_snapshot: bool = False,
    spark: SparkSession | None = None,
) -> DataFrame:
    """Return the column statistics of a table; rows of `columns.history.COLUMNS`.

    Args:
        table: The table; its log, or its engine's manifests, are read by this process.
        at: The instant; None for the current table.
        by_snapshot: Whether to return every snapshot that changed a partition up to the instant.
        spark: As in `compute`.

    Raises:
        UnsupportedError: A snapshot of the ledger's own names an engine's manifest lists.
        MissingDependencyError: As in `compute`.
    """
    session = spark or spark_session()
    read = column_statistics_by_snapshot if by_snapshot else column_statistics_at
    return session.createDataFrame(read(table, at or table.at()))
