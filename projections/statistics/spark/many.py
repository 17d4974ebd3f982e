"""Keeping the statistics of many tables, a database's or a ledger's, as one Spark job.

A table with little new is one task: an executor does in its process what this one would do. A
table with much new gets all executors to itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

from attrs import frozen

from ledger.model.errors import LedgerError, StoreError
from ledger.table import Table
from projections.materialising import Progress, nobody
from projections.statistics.keeping.materialise import refresh
from projections.statistics.spark.engine import expected_entries
from projections.statistics.spark.executors import OnSpark, answers
from projections.statistics.spark.session import cores_of, spark_session
from projections.statistics.spark.source import LogSource

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


ALONE = 1_000_000
"""A table with more new entries than this is shared out over all executors."""

_TABLES_A_CORE = 8
"""So many are done between two looks at how far all have come."""


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
    expected = {str(each.identifier): expected_entries(each) for each in tables}
    # The longest first: what is short fills the gaps at the end.
    in_order = sorted(tables, key=lambda each: -expected[str(each.identifier)])
    bulk = [each for each in in_order if expected[str(each.identifier)] > ALONE]
    done: dict[str, Refreshed] = {}
    small = in_order[len(bulk) :]
    for found in chain(_side_by_side(session, small), _one_by_one(session, bulk)):
        done |= {each.table: each for each in found}
        on_progress(len(done), len(tables))
    return tuple(done[str(each.identifier)] for each in tables)


def _one_by_one(session: SparkSession, tables: Sequence[Table]) -> Iterator[list[Refreshed]]:
    for each in tables:
        yield [_alone(session, each)]


def _alone(session: SparkSession, table: Table) -> Refreshed:
    name = str(table.identifier)
    try:
        position = refresh(table.log, OnSpark(session, LogSource.of(table)))
    except (LedgerError, OSError) as error:
        return Refreshed(name, -1, str(error))
    return Refreshed(name, position.version)


def _side_by_side(session: SparkSession, tables: Sequence[Table]) -> Iterator[list[Refreshed]]:
    """Yield what came of some tables at a time, a task a table."""
    sources = tuple(LogSource.of(each) for each in tables)
    width = _TABLES_A_CORE * cores_of(session) if sources else 1
    for begin in range(0, len(sources), width):
        yield _together(session, sources[begin : begin + width])


def _together(session: SparkSession, sources: tuple[LogSource, ...]) -> list[Refreshed]:
    try:
        return answers(session, partial(_refreshed, sources), len(sources))
    except StoreError as error:
        # One table may have taken a worker down: the others are not to go with it.
        if len(sources) == 1:
            return [Refreshed(sources[0].identifier, -1, str(error))]
        return [found for each in sources for found in _together(session, (each,))]


def _refreshed(sources: Sequence[LogSource], number: int) -> Refreshed:
    source = sources[number]
    try:
        return Refreshed(source.identifier, refresh(source.log()).version)
    except (LedgerError, OSError) as error:
        return Refreshed(source.identifier, -1, str(error))
