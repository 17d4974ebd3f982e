"""Keeping the statistics of many tables, a database's or a ledger's, as one Spark job.

A table with little new is one task: an executor does in its process what this one would do. A
table with much new gets all executors to itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from attrs import frozen

from ledger.model.errors import LedgerError
from ledger.table import Table
from projections.materialising import Progress, nobody
from projections.statistics.engine import SPARK_BLOCKS_A_STEP, is_bulk
from projections.statistics.job import source_of, spark_scan
from projections.statistics.materialise import refresh
from projections.statistics.session import spark_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@frozen
class Refreshed:
    """How far the statistics of one table have come.

    Attributes:
        table: Its full name.
        version: The commit that they take in; -1 if there are none.
        problem: Why they have not come to the newest; empty if they have.
    """

    table: str
    version: int
    problem: str = ""


def refresh_all(
    tables: Sequence[Table],
    *,
    spark: SparkSession | None = None,
    on_progress: Progress = nobody,
) -> tuple[Refreshed, ...]:
    """Bring the statistics of many tables up to date; one that fails does not hold up the others.

    Args:
        tables: Of one ledger, in a place that other processes can reach: not `memory://`.
        spark: The session to use; the active one, or a small local one, without.
        on_progress: Told how many of the tables are done.

    Returns:
        One for each table, in their order.

    Raises:
        InvalidInputError: The ledger is in memory.
        MissingDependencyError: A session has to be started, and pyspark or Java is missing.
    """
    if not tables:
        return ()
    source_of(tables[0])
    session = spark or spark_session()
    bulk = [each for each in tables if _has_much(each)]
    small = [each for each in tables if each not in bulk]
    done = {each.table: each for each in _side_by_side(session, small)}
    on_progress(len(done), len(tables))
    for each in bulk:
        done[str(each.identifier)] = _alone(session, each)
        on_progress(len(done), len(tables))
    return tuple(done[str(each.identifier)] for each in tables)


def _has_much(table: Table) -> bool:
    try:
        return is_bulk(table)
    except (LedgerError, OSError):
        # Whoever refreshes it tells.
        return False


def _alone(session: SparkSession, table: Table) -> Refreshed:
    name = str(table.identifier)
    try:
        scan = spark_scan(source_of(table), session)
        position = refresh(table.log, scan, blocks_a_step=SPARK_BLOCKS_A_STEP)
    except (LedgerError, OSError) as error:
        return Refreshed(name, -1, str(error))
    return Refreshed(name, position.version)


def _side_by_side(session: SparkSession, tables: Sequence[Table]) -> Iterator[Refreshed]:
    if not tables:
        return
    names = [(str(each.identifier),) for each in tables]
    task = partial(_refreshed, tables[0].ledger_url, dict(tables[0].storage_options))
    # A partition a table: some take long, and nobody should wait behind them.
    wanted = session.sparkContext.parallelize(names, len(names)).toDF("table string")
    rows = wanted.mapInArrow(task, "table string, version long, problem string").collect()
    yield from (Refreshed(*row) for row in rows)


def _refreshed(
    url: str, storage_options: Mapping[str, Any], batches: Iterable[Any]
) -> Iterator[Any]:
    import pyarrow as pa

    # Here, so that a plan is pickled without the whole house.
    from ledger.ledger import open as open_ledger

    for batch in batches:
        for name in batch.column(0).to_pylist():
            problem, version = "", -1
            try:
                log = open_ledger(url, storage_options).table(name).log
                version = refresh(log).version
            except (LedgerError, OSError) as error:
                problem = str(error)
            columns = [pa.array([each]) for each in (name, version, problem)]
            yield pa.RecordBatch.from_arrays(columns, names=["table", "version", "problem"])
