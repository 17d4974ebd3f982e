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
from projections.manifest_files.lists import names_lists
from projections.statistics.entries import entry_count
from projections.statistics.materialise import Engine as Keeping
from projections.statistics.materialise import Local
from projections.statistics.session import active_session, cores_of, spark_session
from projections.statistics.snapshot_contents import PlacedSnapshot, SnapshotContents
from projections.statistics.spark_executors import OnSpark
from projections.statistics.spark_source import LogSource

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


Engine: TypeAlias = Literal["auto", "spark", "local"]
Notice = Callable[[str], None]

LOCAL_ENTRIES_A_SECOND = 500_000
"""What this process reads, folds and keeps on one core: `benchmarks.statistics_refresh`."""

SPARK_START_S = 9.0
"""Until a session of ours has its Python workers at work."""

SPARK_JOBS_S = 2.0
"""What Spark's jobs take for themselves, in a session that runs."""

A_TABLE_S = 0.01
"""What opening a table and keeping its position takes: `benchmarks.statistics_many`."""

SPARK_SHARE = 0.85
"""How much of a core's time Spark leaves to the fold."""

LISTS_AS_ENTRIES = 100
"""A snapshot's manifest list and manifest cost as much to open as so many entries to count."""

_LOOKED_AT = 1024
"""So many commits are looked at; of more, so many that lie evenly among them."""

_LOOKED_AT_OF_MANY = 16
"""The same, where a table is one of many: which is the longest need not be known well."""


class Engines:
    """The engines for one job over any number of tables; a session that it starts, it stops.

    Args:
        engine: Which; `auto` looks how much is new in each table.
        notice: Told what it may help to know.
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
        """Return the engine for what is new in a table.

        Raises:
            MissingDependencyError: Spark was asked for, and it or Java is missing.
            InvalidInputError: Spark was asked for, and the ledger is in memory.
        """
        local = Local(handle_of(table).log)
        if self._engine == "local":
            return local
        session = self._session_if_it_pays([table])
        return local if session is None else OnSpark(session, LogSource.of(table))

    def session(self) -> SparkSession:
        """Return the session for what only Spark does: the active one, or one that is started.

        Raises:
            MissingDependencyError: pyspark or Java is missing.
        """
        return self._started or self._session()

    def session_for(self, tables: Sequence[Table]) -> SparkSession | None:
        """Return the session for what is new in many tables; None where this process does them.

        Raises:
            MissingDependencyError: Spark was asked for, and it or Java is missing.
        """
        if self._engine == "local" or not tables:
            return None
        return self._session_if_it_pays(tables)

    def _session_if_it_pays(self, tables: Sequence[Table]) -> SparkSession | None:
        if self._engine == "auto" and (self._missing or not self._pays(tables)):
            return None
        try:
            return self._session()
        except MissingDependencyError as error:
            if self._engine == "spark":
                raise
            self._missing = True
            self._notice(f"much is to be read; computing on one core, without Spark: {error}")
            return None

    def _pays(self, tables: Sequence[Table]) -> bool:
        """Whether Spark is through sooner, its start counted; say so where it is."""
        if handle_of(tables[0]).ledger_url.startswith("memory:"):
            return False
        logs = [handle_of(each).log for each in tables]
        entries = sum(map(expected_entries, logs)) if len(logs) > 1 else new_entries(logs[0])
        active = self._started or active_session()
        here_s = entries / LOCAL_ENTRIES_A_SECOND + A_TABLE_S * len(logs)
        start_s = SPARK_JOBS_S if active is not None else SPARK_START_S + SPARK_JOBS_S
        if here_s <= start_s:
            return False
        cores = os.cpu_count() or 1 if active is None else cores_of(active)
        there_s = start_s + here_s / (SPARK_SHARE * cores)
        if there_s >= here_s:
            return False
        self._notice(
            f"about {entries:,} file changes are new: Spark, on {cores} cores, takes some "
            f"{there_s:.0f} s with its start, and this process {here_s:.0f} s"
        )
        return True

    def _session(self) -> SparkSession:
        active = active_session()
        if active is not None:
            return active
        self._notice("starting Spark ...")
        self._started = spark_session()
        return self._started


def expected_entries(log: TableLog) -> int:
    """Return about `new_entries`, and 0 of a table that cannot be read: who refreshes it tells."""
    try:
        return new_entries(log, looked_at=_LOOKED_AT_OF_MANY)
    except (LedgerError, OSError):
        return 0


def new_entries(log: TableLog, *, looked_at: int | None = None) -> int:
    """Return about how many entries a table has that are not counted yet.

    Args:
        log: The table's.
        looked_at: Of more commits than this so many are looked at, so that it takes no longer for a
            long log; without, enough to choose an engine by.
    """
    log.refresh()
    last = log.head.state.version if log.head else -1
    first = positions.load(log.store, log.layout).version + 1
    contents = SnapshotContents(log)
    stride = max(1, -(-(last + 1 - first) // (looked_at or _LOOKED_AT)))
    spans = (
        [(first, last)]
        if stride == 1
        else [(each, each) for each in range(first, last + 1, stride)]
    )
    counted = seen = 0
    for span in spans if first <= last else ():
        for read in log.commits(*span):
            seen += 1
            counted += sum(_cost(contents, each) for each in contents.learn(read.commit))
    return counted * (last + 1 - first) // max(1, seen)


def _cost(contents: SnapshotContents, placed: PlacedSnapshot) -> int:
    """Return about how many entries a snapshot has, going by what its manifest list says."""
    if not names_lists(placed.event):
        return entry_count(placed.event)
    try:
        parts = contents.changes(placed) or []
    except LedgerError:
        # Whoever reads it in earnest is told.
        return 0
    return LISTS_AS_ENTRIES + sum(each.count for each in parts)
