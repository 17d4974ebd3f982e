"""Statistics of a large table by Spark, by one core and by DuckDB.

Four do the same in turn, from scratch each time: our engine on one core, ours on Spark's executors,
and DuckDB on one thread and on two. Each reads the same lists, checks their digests, and writes the
same deltas. On a shared machine processor time is more reliable than wall-clock time, so both are
reported: processor time of this process and, for Spark, of all its descendants, Java and Python
workers included.

Memory is that of this process and all its descendants at once, each shared page counted once.
Thirty million entries in 6 GB: `--size 30000000 --repeats 1`; making the lists takes two minutes of
a core. The gain of a second executor is measured by `benchmarks.statistics_executors`.
"""

from __future__ import annotations

import hashlib
import os
import resource
import shutil
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import cyclopts
import duckdb

import ledger
from benchmarks.measure import (
    WORKDIR,
    Figure,
    Memory,
    Output,
    Report,
    Spent,
    question_of,
    show,
)
from benchmarks.spark_source import session_on
from benchmarks.statistics_refresh import NAME, lake_at
from ledger.table_handle import handle_of
from projections.statistics import Kept, query, refresh
from projections.statistics import spark_executors as executors
from projections.statistics.spark_executors import SparkEngine, run_tasks
from projections.statistics.spark_source import LogSource

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


SPARK_OVER_ONE_CORE = 0.75
DUCKDB_ON_TWO = 5.0
DUCKDB_ON_ONE = 1.3
SUMS = """sum(if(kind = 'ADD', 1, -1) * record_count) as record_count,
    sum(if(kind = 'ADD', 1, -1) * file_size_in_bytes) as file_size_in_bytes,
    sum(if(kind = 'ADD', 1, -1)) as file_count, max(creation_time) as last_file_creation_time"""
MEMORY_MB = 6_000
"""Memory bound, whatever the number of entries."""


def run(
    workdir: Path, *, size: int, partitions: int, repeats: int, master: str = "local[2]"
) -> Report:
    root = workdir / f"statistics-spark-{os.getpid()}"
    shutil.copytree(lake_at(workdir, size, partitions), root, copy_function=os.link)
    try:
        return _measured(root, size, repeats, master)
    finally:
        shutil.rmtree(root)


def _measured(root: Path, size: int, repeats: int, master: str) -> Report:
    spark = session_on(master)
    # Workers are started, and import their modules, before anything is timed.
    run_tasks(spark, int, 4)
    spent = {name: Spent(time.process_time) for name in ("one core", "DuckDB 1", "DuckDB 2")}
    spent["Spark"] = Spent()
    jobs_s: list[float] = []
    # Spark first: the peak of this process after it is then the driver's.
    memory: list[float] = []
    together = {"Spark": Memory(), "one core": Memory(os.getpid())}

    def by_spark(table: ledger.Table) -> None:
        # The lists were written without caches: opening reads all commits, and is not timed.
        memory.append(most_memory_mb())
        refresh(handle_of(table).log, SparkEngine(spark, LogSource.of(table)))
        memory.append(most_memory_mb())

    for _ in range(repeats):
        with jobs_timed(jobs_s), together["Spark"].watched():
            two = counted_anew(root, spent["Spark"], by_spark)
        with together["one core"].watched():
            one = counted_anew(root, spent["one core"], lambda table: refresh(handle_of(table).log))
        counts = [_duckdb(root, spent[f"DuckDB {threads}"], threads) for threads in (1, 2)]
        assert one == two
        assert one[1] == counts[0] == counts[1]
    return Report(
        question_of(__doc__),
        f"entries={size} partitions={one[0]} files={one[1]}",
        (
            *_figures(spent, jobs_s, memory, master),
            *(
                Figure(f"{name}: most memory at once", each.most_mb, "MB", at_most=MEMORY_MB)
                for name, each in together.items()
            ),
        ),
        (
            f"{size:,} entries, {master}, {repeats} times in turn; load {os.getloadavg()[0]:.1f}",
            "a figure of the clock holds for a machine that nobody else uses",
        ),
    )


def _figures(
    spent: dict[str, Spent], jobs_s: list[float], memory: list[float], master: str
) -> Iterator[Figure]:
    for name, each in spent.items():
        yield Figure(f"{name}: by the clock, the least", min(each.wall_s), "s")
        yield Figure(f"{name}: processor time, the least", min(each.cpu_s), "s")
    for name, over, bound in (
        ("Spark", "one core", SPARK_OVER_ONE_CORE),
        ("Spark", "DuckDB 2", DUCKDB_ON_TWO),
        ("one core", "DuckDB 1", DUCKDB_ON_ONE),
    ):
        pairs = zip(spent[name].wall_s, spent[over].wall_s, strict=True)
        wall = min(a / b for a, b in pairs)
        yield Figure(f"{name} / {over}, by the clock, best pair", wall, "x", at_most=bound)
        cpu = min(spent[name].cpu_s) / min(spent[over].cpu_s)
        yield Figure(f"{name} / {over}, processor time", cpu, "x")
    spark, alone = spent["Spark"], spent["one core"]
    serial = min(w - j for w, j in zip(spark.wall_s, jobs_s, strict=True))
    yield Figure(f"executors' part on {master}, the least", min(jobs_s), "s")
    yield Figure("not the executors' part, the least", serial, "s")
    # Estimate for two dedicated cores: the parallel part halved, the serial one unchanged.
    alone_s = min(alone.cpu_s)
    ideal = (serial + (min(spark.cpu_s) - serial) / 2) / alone_s
    yield Figure(
        "Spark / one core on two cores of its own, from processor time",
        ideal,
        "x",
        at_most=SPARK_OVER_ONE_CORE,
    )
    yield Figure("the driver's most memory before", memory[0], "MB")
    yield Figure("the driver's most memory after Spark's first", memory[1], "MB")


def counted_anew(
    root: Path, spent: Spent, refreshed: Callable[[ledger.Table], object]
) -> tuple[int, int]:
    """Compute the statistics from scratch, and return the numbers of partitions and files."""
    table = ledger.open(str(root)).table(NAME)
    shutil.rmtree(root / handle_of(table).path / "_ledger" / "statistics", ignore_errors=True)
    with spent.timed():
        refreshed(table)
    rows = query.partition_sums(Kept.of(handle_of(table).log), table.state)
    return len(rows), sum(rows["file_count"].to_pylist())


def _duckdb(root: Path, spent: Spent, threads: int) -> int:
    """Let DuckDB write the same deltas and sums, and return the number of files."""
    lists = sorted((root / "bench.db/files/_ledger/changes").glob("*.parquet"))
    pattern = f"{lists[0].parent}/*.parquet"
    to = root / f"deltas-{threads}.parquet"
    statement = f"""copy (select filename, spec_id, partition, content, {SUMS}
        from read_parquet('{pattern}', filename = true) group by all order by all)
        to '{to}' (format parquet, compression zstd)"""  # noqa: S608 - our own paths
    with spent.timed():
        with ThreadPoolExecutor(threads) as pool:
            for path, digest in zip(lists, pool.map(_digest, lists), strict=True):
                assert digest in path.name
        with duckdb.connect(config={"threads": threads}) as connection:
            connection.execute(statement)
    with duckdb.connect() as connection:
        row = connection.execute(f"select sum(file_count) from '{to}'").fetchone()  # noqa: S608
    assert row is not None
    return int(row[0])


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@contextmanager
def jobs_timed(jobs_s: list[float]) -> Iterator[None]:
    """Record the time that this process waits for executors."""
    plain, taken = executors.run_tasks, [0.0]

    def timed(spark: SparkSession, task: Callable[[int], Any], count: int) -> list[Any]:
        start = time.perf_counter()
        try:
            return plain(spark, task, count)
        finally:
            taken[0] += time.perf_counter() - start

    executors.run_tasks = timed
    try:
        yield
    finally:
        executors.run_tasks = plain
    jobs_s.append(taken[0])


def most_memory_mb() -> float:
    """Return the peak memory of this process, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def main(
    *,
    size: int = 1_000_000,
    partitions: int = 50_000,
    repeats: int = 2,
    master: str = "local[2]",
    workdir: Path = WORKDIR,
    output: Output = "text",
) -> None:
    """Compute the statistics of a large table, four ways.

    Args:
        size: File changes.
        partitions: Number of partitions of the files.
        repeats: Number of repeats of each way.
        master: Master URL of Spark.
        workdir: Folder of the ledger.
        output: text or json.
    """
    report = run(workdir, size=size, partitions=partitions, repeats=repeats, master=master)
    show(report, output)


if __name__ == "__main__":
    cyclopts.run(main)
