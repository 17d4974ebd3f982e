"""Keeping the statistics of many tables, a database's or a ledger's, as one Spark job.

A table with little new is one task: an executor does in its process what this one would do. A
table with much new gets all executors to itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from attrs import frozen

from ledger.model.errors import LedgerError
from ledger.table import Table
from projections.materialising import Progress, nobody
from projections.statistics.keeping.materialise import refresh
from projections.statistics.spark.engine import new_entries
from projections.statistics.spark.executors import OnSpark, answers
from projections.statistics.spark.session import spark_session
from projections.statistics.spark.source import LogSource

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


ALONE = 1_000_000
"""A table with more new entries than this is shared out over all executors."""


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
    LogSource.of(tables[0])
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
        return new_entries(table) > ALONE
    except (LedgerError, OSError):
        # Whoever refreshes it tells.
        return False


def _alone(session: SparkSession, table: Table) -> Refreshed:
    name = str(table.identifier)
    try:
        position = refresh(table.log, OnSpark(session, LogSource.of(table)))
    except (LedgerError, OSError) as error:
        return Refreshed(name, -1, str(error))
    return Refreshed(name, position.version)


def _side_by_side(session: SparkSession, tables: Sequence[Table]) -> Sequence[Refreshed]:
    sources = tuple(LogSource.of(each) for each in tables)
    # A partition a table: some take long, and nobody should wait behind them.
    return answers(session, partial(_refreshed, sources), len(sources))


def _refreshed(sources: Sequence[LogSource], number: int) -> Refreshed:
    source = sources[number]
    try:
        return Refreshed(source.identifier, refresh(source.log()).version)
    except (LedgerError, OSError) as error:
        return Refreshed(source.identifier, -1, str(error))
