"""Statistics of many tables in one Spark session.

Tables with few new entries share tasks: an executor refreshes them as this process would, which
reads nothing of them. A table with many new entries gets all executors to itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from attrs import frozen

from ledger.model.errors import LedgerError, StoreError
from ledger.table import Table
from ledger.table_handle import handle_of
from projections.materialising import Progress, ignore_progress
from projections.statistics.engine import try_estimate_new_entries
from projections.statistics.materialise import refresh
from projections.statistics.session import spark_session
from projections.statistics.spark_executors import SparkEngine, run_tasks
from projections.statistics.spark_source import LogSource

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


ALONE = 1_000_000
"""Number of new entries above which a table is divided among all executors."""

_TABLES_A_TASK = 16
_TABLES_A_GROUP = 1024
"""Number of tables after which progress is reported."""


@frozen
class RefreshResult:
    """Result of the refresh of one table's statistics.

    Attributes:
        table: The table's full name.
        version: The last commit included; -1 without one.
        problem: The reason that it is not the newest; empty if it is.
    """

    table: str
    version: int
    problem: str = ""


def refresh_all(
    tables: Sequence[Table],
    *,
    spark: SparkSession | None = None,
    on_progress: Progress = ignore_progress,
) -> tuple[RefreshResult, ...]:
    """Refresh the statistics of many tables; a failed one does not stop the others.

    Args:
        tables: Tables of one ledger, which other processes can reach: not `memory://`.
        spark: The session to use; None for the active one, or else a small local one.
        on_progress: Called with the number of tables done, of how many.

    Returns:
        One result for each table, in their order.

    Raises:
        InvalidInputError: The ledger is in memory.
        MissingDependencyError: A session has to be started, and pyspark or Java is missing.
    """
    if not tables:
        return ()
    by_name = {str(each.identifier): each for each in tables}
    sources = [LogSource.of(each) for each in tables]
    session = spark or spark_session()
    done: dict[str, RefreshResult] = {}
    bulk: list[str] = []
    for found in _refresh_in_groups(session, sources):
        done |= {each.table: each for each in found if isinstance(each, RefreshResult)}
        bulk += [each.table for each in found if isinstance(each, _LargeTable)]
        on_progress(len(done), len(tables))
    for name in bulk:
        done[name] = _refresh_on_executors(session, by_name[name])
        on_progress(len(done), len(tables))
    return tuple(done[str(each.identifier)] for each in tables)


@frozen
class _LargeTable:
    """A table with more new entries than one task should process."""

    table: str


def _refresh_on_executors(session: SparkSession, table: Table) -> RefreshResult:
    name = str(table.identifier)
    try:
        position = refresh(handle_of(table).log, SparkEngine(session, LogSource.of(table)))
    except (LedgerError, OSError) as error:
        return RefreshResult(name, -1, str(error))
    return RefreshResult(name, position.version)


def _refresh_in_groups(
    session: SparkSession, sources: Sequence[LogSource]
) -> Iterator[list[RefreshResult | _LargeTable]]:
    """Yield the results of some tables at a time."""
    for begin in range(0, len(sources), _TABLES_A_GROUP):
        yield _refresh_group(session, tuple(sources[begin : begin + _TABLES_A_GROUP]))


def _refresh_group(
    session: SparkSession, sources: tuple[LogSource, ...]
) -> list[RefreshResult | _LargeTable]:
    count = -(-len(sources) // _TABLES_A_TASK)
    # Adjacent tables are often alike: large ones should not be in one task.
    shares = tuple(sources[number::count] for number in range(count))
    try:
        found = run_tasks(session, partial(_refresh_share, shares, ALONE), count)
    except StoreError as error:
        # One table may have crashed a worker: the others are retried without it.
        if len(sources) == 1:
            return [RefreshResult(sources[0].identifier, -1, str(error))]
        middle = len(sources) // 2
        return _refresh_group(session, sources[:middle]) + _refresh_group(session, sources[middle:])
    return [each for share in found for each in share]


def _refresh_share(
    shares: Sequence[Sequence[LogSource]], most: int, number: int
) -> list[RefreshResult | _LargeTable]:
    return [_refresh_small_table(each, most) for each in shares[number]]


def _refresh_small_table(source: LogSource, most: int) -> RefreshResult | _LargeTable:
    try:
        log = source.log()
        if try_estimate_new_entries(log) > most:
            return _LargeTable(source.identifier)
        return RefreshResult(source.identifier, refresh(log).version)
    except (LedgerError, OSError) as error:
        return RefreshResult(source.identifier, -1, str(error))
