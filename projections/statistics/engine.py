"""Which engine computes: this process for what is small, Spark for what is not."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Literal, Self, TypeAlias

from attrs import frozen

from ledger.model.errors import LedgerError, MissingDependencyError
from ledger.table import Table
from projections.manifest_lists import names_lists
from projections.statistics import position as positions
from projections.statistics.entries import entry_count
from projections.statistics.kept import Scan, local_scan
from projections.statistics.materialise import BLOCKS_A_STEP
from projections.statistics.session import active_session, spark_session
from projections.statistics.snapshot_contents import Placed, SnapshotContents

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Engine: TypeAlias = Literal["auto", "spark", "local"]
Notice = Callable[[str], None]

LOCAL_ENTRIES = 100_000
"""For more new entries than this `auto` takes Spark, which takes seconds to start."""

LISTS_AS_ENTRIES = 100
"""A snapshot's manifest list and manifest cost as much to open as so many entries to count."""

SPARK_BLOCKS_A_STEP = 4 * BLOCKS_A_STEP


@frozen
class Chosen:
    """An engine at work.

    Attributes:
        name: `spark` or `local`.
        scan: What it does.
        blocks_a_step: How much to ask of it at once.
    """

    name: Literal["spark", "local"]
    scan: Scan
    blocks_a_step: int


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

    def choose(self, table: Table, *, first: int | None = None) -> Chosen:
        """Return the engine for what is to be read of a table.

        Args:
            table: The table.
            first: The first version; the first that is not kept, without.

        Raises:
            MissingDependencyError: Spark was asked for, and it or Java is missing.
            InvalidInputError: Spark was asked for, and the ledger is in memory.
        """
        local = Chosen("local", local_scan(table.log), BLOCKS_A_STEP)
        if self._engine == "local":
            return local
        if self._engine == "auto" and (self._missing or not is_bulk(table, first)):
            return local
        try:
            session = self._session()
        except MissingDependencyError as error:
            if self._engine == "spark":
                raise
            self._missing = True
            self._notice(f"much is to be read; computing on one core, without Spark: {error}")
            return local
        return _spark(table, session)

    def session_asked_for(self) -> SparkSession | None:
        """Return the session if Spark was asked for by name.

        Raises:
            MissingDependencyError: It was, and it or Java is missing.
        """
        return self._session() if self._engine == "spark" else None

    def _session(self) -> SparkSession:
        active = active_session()
        if active is not None:
            return active
        self._notice("starting Spark ...")
        self._started = spark_session()
        return self._started


def _spark(table: Table, session: SparkSession) -> Chosen:
    from projections.statistics.job import source_of, spark_scan

    return Chosen("spark", spark_scan(source_of(table), session), SPARK_BLOCKS_A_STEP)


def is_bulk(table: Table, first: int | None = None) -> bool:
    """Whether so much is to be read that Spark is worth its start, and can reach the table.

    Args:
        table: The table.
        first: The first version to read; the first that is not kept, without.
    """
    if table.ledger_url.startswith("memory:"):
        return False
    log = table.log
    log.refresh()
    last = log.head.state.version if log.head else -1
    if first is None:
        first = positions.load(log.store, log.layout).version + 1
    if last - first >= LOCAL_ENTRIES:
        return True
    count = 0
    contents = SnapshotContents(log)
    for read in log.commits(first, last) if first <= last else ():
        count += sum(_cost(contents, each) for each in contents.learn(read.commit))
        if count > LOCAL_ENTRIES:
            return True
    return False


def _cost(contents: SnapshotContents, placed: Placed) -> int:
    """Return about how many entries a snapshot has, going by what its manifest list says."""
    if not names_lists(placed.event):
        return entry_count(placed.event)
    try:
        parts = contents.changes(placed) or []
    except LedgerError:
        # Whoever reads it in earnest is told.
        return 0
    return LISTS_AS_ENTRIES + sum(each.count for each in parts)
