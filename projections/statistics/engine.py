"""Engines of the statistics: this process, or Spark."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Literal, Self, TypeAlias

import projections.statistics.tile_rows as positions
from ledger.history.older import TableLog
from ledger.model.errors import LedgerError, MissingDependencyError
from ledger.table import Table
from ledger.table_handle import handle_of
from projections.statistics.executor_python import require_executor_python
from projections.statistics.materialise import Engine as Keeping
from projections.statistics.materialise import LocalEngine
from projections.statistics.session import active_session, parallelism_of, spark_session
from projections.statistics.shares import sample_entries
from projections.statistics.spark_executors import SparkEngine
from projections.statistics.spark_source import LogSource

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


Engine: TypeAlias = Literal["auto", "spark", "local"]
Notice = Callable[[str], None]

LOCAL_ENTRIES_A_SECOND = 500_000
"""Entries per second that this process refreshes on one core: `benchmarks.statistics_refresh`."""

SPARK_START_S = 9.0
"""Time until a new session has its Python workers running, seconds."""

SPARK_JOBS_S = 2.0
"""Overhead of Spark's jobs in a running session, seconds."""

A_TABLE_S = 0.01
"""Time to open a table and save its position, seconds: `benchmarks.statistics_many`."""

SPARK_SHARE = 0.85
"""Fraction of a core's time that Spark leaves to the fold."""

_LOOKED_AT = 1024
"""Maximum number of commits sampled, evenly spaced."""

_LOOKED_AT_OF_MANY = 16
"""The same for one table among many, where a rough estimate suffices."""


class Engines:
    """The engines for one job over any number of tables; stops a session that it started.

    Args:
        engine: The engine; `auto` chooses by the amount of new entries in each table.
        notice: Called with informational messages.
    """

    def __init__(self, engine: Engine, notice: Notice) -> None:
        self._engine = engine
        self._notice = notice
        self._started: SparkSession | None = None
        self._missing = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._started is not None:
            self._started.stop()

    def choose(self, table: Table) -> Keeping:
        """Return the engine to refresh a table.

        Raises:
            MissingDependencyError: Spark was requested, and it or Java is missing.
            InvalidInputError: Spark was requested, and the ledger is in memory.
        """
        local = LocalEngine(handle_of(table).log)
        if self._engine == "local":
            return local
        session = self._session_if_faster([table])
        return local if session is None else SparkEngine(session, LogSource.of(table))

    def session(self) -> SparkSession:
        """Return the session for jobs that need Spark: the active one, or a new one.

        Raises:
            MissingDependencyError: pyspark or Java is missing.
        """
        return self._started or self._start_or_reuse_session()

    def session_for(self, tables: Sequence[Table]) -> SparkSession | None:
        """Return the session to refresh many tables; None where this process does it.

        Raises:
            MissingDependencyError: Spark was requested, and it or Java is missing.
        """
        if self._engine == "local" or not tables:
            return None
        return self._session_if_faster(tables)

    def _session_if_faster(self, tables: Sequence[Table]) -> SparkSession | None:
        if self._engine == "auto" and (self._missing or not self._is_spark_faster(tables)):
            return None
        try:
            return self._start_or_reuse_session()
        except MissingDependencyError as error:
            if self._engine == "spark":
                raise
            self._missing = True
            self._notice(f"much is to be read; computing on one core, without Spark: {error}")
            return None

    def _is_spark_faster(self, tables: Sequence[Table]) -> bool:
        """Return whether Spark is faster, its start included; send a notice if so."""
        if handle_of(tables[0]).ledger_url.startswith("memory:"):
            return False
        logs = [handle_of(each).log for each in tables]
        entries = (
            sum(map(try_estimate_new_entries, logs))
            if len(logs) > 1
            else estimate_new_entries(logs[0])
        )
        active = self._started or active_session()
        here_s = entries / LOCAL_ENTRIES_A_SECOND + A_TABLE_S * len(logs)
        start_s = SPARK_JOBS_S if active is not None else SPARK_START_S + SPARK_JOBS_S
        if here_s <= start_s:
            return False
        cores = os.cpu_count() or 1 if active is None else parallelism_of(active)
        there_s = start_s + here_s / (SPARK_SHARE * cores)
        if there_s >= here_s:
            return False
        self._notice(
            f"about {entries:,} file changes are new: Spark, on {cores} cores, takes some "
            f"{there_s:.0f} s with its start, and this process {here_s:.0f} s"
        )
        return True

    def _start_or_reuse_session(self) -> SparkSession:
        active = active_session()
        if active is not None:
            require_executor_python(active)
            return active
        self._notice("starting Spark ...")
        self._started = spark_session()
        return self._started


def try_estimate_new_entries(log: TableLog) -> int:
    """Return an estimate of new entries; 0 if unreadable, as the refresh raises the error."""
    try:
        return estimate_new_entries(log, looked_at=_LOOKED_AT_OF_MANY)
    except (LedgerError, OSError):
        return 0


def estimate_new_entries(log: TableLog, *, looked_at: int | None = None) -> int:
    """Return an estimate of the number of entries that are not counted yet.

    Args:
        log: The table's log.
        looked_at: Maximum number of commits sampled, which bounds the time for a long log; None
            for enough to choose an engine.
    """
    log.refresh()
    last = log.head.state.version if log.head else -1
    first = positions.load(log.store, log.layout).version + 1
    if first > last:
        return 0
    runs = sample_entries(log, first, last, looked_at or _LOOKED_AT)
    return sum(entries * (end + 1 - begin) for begin, end, entries in runs)
