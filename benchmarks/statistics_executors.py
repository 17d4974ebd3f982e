"""Gain of a second executor where Spark keeps the statistics of a large table.

The statistics of the same table are computed from scratch by one executor and by two in turn, each
a process with one core (`local-cluster`); Java compiles as in a session of ours. Their start is not
counted, nor the first runs, in which Java compiles and workers import.

The executors' part is measured by Spark's own times: from a job's first task, when it is launched,
to its last, when it is finished, summed over the jobs of a run. The rest of the total is the
driver's, including planning and hand-over. Jobs of one task are the serial share of the executors'
part, which is reported, too.

Two executors and their driver share two cores here. So processor time is reported, too, the
driver's separately, and the gain of two plain processes that do the same without Spark: cores that
share a cache and memory bandwidth slow each other down. Wall-clock ratios are medians of pairs.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import cyclopts
import msgspec
from attrs import define, evolve, field, frozen

import ledger
from benchmarks.measure import (
    WORKDIR,
    Figure,
    Output,
    Report,
    Spent,
    programs_cpu_s,
    question_of,
    show,
)
from benchmarks.spark_source import session_on
from benchmarks.statistics_refresh import NAME, lake_at
from benchmarks.statistics_spark import counted_anew, jobs_timed
from ledger.table_handle import handle_of
from projections.statistics import Kept, refresh
from projections.statistics.materialise import refresh_range
from projections.statistics.session import active_session
from projections.statistics.shares import divide_into_shares, sample_entries
from projections.statistics.spark_executors import SparkEngine, run_tasks
from projections.statistics.spark_source import LogSource

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TWO_BRING = 1.6
_WARM_TIMES = 3
_PLAIN_TIMES = 3


@frozen
class _Job:
    """One of Spark's jobs; times in seconds since 1970, as Spark has them.

    Attributes:
        said: Its description.
        launched: Launch time of its first task.
        finished: Finish time of its last task.
        task_count: Number of its tasks.
    """

    said: str
    launched: float
    finished: float
    task_count: int


@frozen
class _Time:
    """Measurements of one run.

    Attributes:
        counted: Number of partitions and files.
        said: Description that was set for the run's jobs.
        wall_s: Wall-clock time.
        waited_s: Time that the driver waited for executors: jobs, planning and hand-over.
        busiest_s: Processor time of the busiest executor, its workers' included.
        executors_s: Processor time of all executors.
        driver_s: Processor time of the driver, Java and Python.
        jobs: The run's jobs.
    """

    counted: tuple[int, int]
    said: str
    wall_s: float
    waited_s: float
    busiest_s: float
    executors_s: float
    driver_s: float
    jobs: tuple[_Job, ...] = ()

    def with_jobs(self, jobs: Iterable[_Job]) -> _Time:
        """Return the run with those of some jobs that belong to it."""
        return evolve(self, jobs=tuple(each for each in jobs if each.said == self.said))

    @property
    def executors_part_s(self) -> float:
        """Wall-clock time of the executors' work."""
        return sum(each.finished - each.launched for each in self.jobs)

    @property
    def serial_s(self) -> float:
        """Time during which a single task ran."""
        return sum(each.finished - each.launched for each in self.jobs if each.task_count == 1)


@define
class _Course:
    """Runs with a number of executors, and a driver in a separate process."""

    count: int
    root: Path
    events: Path
    pool: ProcessPoolExecutor = field(
        factory=lambda: ProcessPoolExecutor(1, mp_context=get_context("spawn"))
    )
    times: list[_Time] = field(factory=list)

    def begin(self) -> None:
        self.events.mkdir()
        self.pool.submit(_begin, self.count, self.events).result()
        for _ in range(_WARM_TIMES):
            self.pool.submit(_kept, self.root, "warming up").result()

    def keep(self) -> None:
        said = f"time {len(self.times)}"
        self.times.append(self.pool.submit(_kept, self.root, said).result())

    def end(self) -> None:
        self.pool.submit(_end).result()
        self.pool.shutdown()
        jobs = _jobs(self.events)
        self.times = [each.with_jobs(jobs) for each in self.times]


def run(workdir: Path, *, size: int, partitions: int, repeats: int) -> Report:
    root = workdir / f"statistics-executors-{os.getpid()}"
    shutil.copytree(lake_at(workdir, size, partitions), root, copy_function=os.link)
    try:
        return _measured(root, size, repeats)
    finally:
        shutil.rmtree(root)


def _measured(root: Path, size: int, repeats: int) -> Report:
    plain = [_without_spark(root) for _ in range(min(repeats, _PLAIN_TIMES))]
    courses = [_Course(count, root, root / f"events-{count}") for count in (1, 2)]
    for course in courses:
        course.begin()
    for _ in range(repeats):
        for course in courses:
            course.keep()
    for course in courses:
        course.end()
    ((partitions, files),) = {each.counted for course in courses for each in course.times}
    one, two = courses
    return Report(
        question_of(__doc__),
        f"entries={size} partitions={partitions} files={files}",
        (*_figures(one, two), *_compared(one, two), *_compared_plain(plain)),
        (f"{size:,} entries, {repeats} times in turn; load {os.getloadavg()[0]:.1f}",),
    )


def _begin(count: int, events: Path) -> None:
    settings = {
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
        "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1",
        "spark.scheduler.minRegisteredResourcesRatio": "1.0",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": events.as_uri(),
        "spark.eventLog.rolling.enabled": "false",
        "spark.eventLog.compress": "false",
    }
    run_tasks(session_on(f"local-cluster[{count},1,1024]", settings), int, 4 * count)


def _end() -> None:
    _session().stop()


def _session() -> SparkSession:
    session = active_session()
    assert session is not None
    return session


def _kept(root: Path, said: str) -> _Time:
    spark, spent, waited_s = _session(), Spent(), list[float]()

    def by_spark(table: ledger.Table) -> None:
        refresh(handle_of(table).log, SparkEngine(spark, LogSource.of(table)))

    # Only this run's executors have it in their command lines.
    name = str(spark.conf.get("spark.app.id"))
    before = programs_cpu_s(name)
    spark.sparkContext.setJobDescription(said)
    with jobs_timed(waited_s):
        counted = counted_anew(root, spent, by_spark)
    took = [each - before.get(pid, 0.0) for pid, each in programs_cpu_s(name).items()]
    return _Time(
        counted,
        said,
        spent.wall_s[0],
        waited_s[0],
        max(took),
        sum(took),
        # Executors are descendants of the driver's Java.
        spent.cpu_s[0] - sum(took),
    )


class _TaskInfo(msgspec.Struct):
    launched: int = msgspec.field(name="Launch Time")
    finished: int = msgspec.field(name="Finish Time")


class _Event(msgspec.Struct):
    """Fields of a line of Spark's event log."""

    kind: str = msgspec.field(name="Event")
    job: int = msgspec.field(name="Job ID", default=-1)
    stages: list[int] = msgspec.field(name="Stage IDs", default_factory=list)
    stage: int = msgspec.field(name="Stage ID", default=-1)
    task: _TaskInfo | None = msgspec.field(name="Task Info", default=None)
    properties: dict[str, str] = msgspec.field(name="Properties", default_factory=dict)


def _jobs(events: Path) -> list[_Job]:
    """Return the jobs in Spark's event log, in order."""
    (path,) = events.iterdir()
    read = [msgspec.json.decode(line, type=_Event) for line in path.read_bytes().splitlines()]
    tasks: dict[int, list[_TaskInfo]] = {}
    for each in read:
        if each.kind == "SparkListenerTaskEnd" and each.task is not None:
            tasks.setdefault(each.stage, []).append(each.task)
    found = []
    for each in read:
        if each.kind == "SparkListenerJobStart":
            mine = [task for stage in each.stages for task in tasks.get(stage, [])]
            launched = min(task.launched for task in mine) / 1e3
            finished = max(task.finished for task in mine) / 1e3
            said = each.properties.get("spark.job.description", "")
            found.append(_Job(said, launched, finished, len(mine)))
    return found


def _without_spark(root: Path) -> tuple[float, float]:
    """Return the durations of one process for the same shares, and of two."""
    one, two = (_by_processes(root, count) for count in (1, 2))
    return one, two


def _by_processes(root: Path, count: int) -> float:
    table = ledger.open(str(root)).table(NAME)
    last = table.state.version
    shutil.rmtree(root / handle_of(table).path / "_ledger" / "statistics", ignore_errors=True)
    spans = divide_into_shares(sample_entries(handle_of(table).log, 0, last, last + 1))
    source = LogSource.of(table)
    with ProcessPoolExecutor(count, mp_context=get_context("spawn")) as pool:
        # Each imports its modules, and has read something, before anything is timed.
        list(pool.map(partial(_keep_plainly, source), spans[-1:] * 4 * count))
        start_s = time.perf_counter()
        list(pool.map(partial(_keep_plainly, source), spans))
        return time.perf_counter() - start_s


def _keep_plainly(source: LogSource, span: tuple[int, int]) -> None:
    log = source.log()
    refresh_range(log, Kept.of(log), *span)


def _figures(one: _Course, two: _Course) -> Iterator[Figure]:
    told: dict[str, Callable[[_Time], float]] = {
        "the executors' part": lambda each: each.executors_part_s,
        "of it one task alone": lambda each: each.serial_s,
        "what is not their part": lambda each: each.wall_s - each.executors_part_s,
        "the busiest, processor time": lambda each: each.busiest_s,
        "all of them, processor time": lambda each: each.executors_s,
        "the driver, processor time": lambda each: each.driver_s,
    }
    for name, course in (("one executor", one), ("two executors", two)):
        for what, value in told.items():
            yield Figure(f"{name}: {what}", median(map(value, course.times)), "s")


def _compared(one: _Course, two: _Course) -> Iterator[Figure]:
    pairs = list(zip(one.times, two.times, strict=True))
    brought = median(a.executors_part_s / b.executors_part_s for a, b in pairs)
    yield Figure("one over two, the executors' part", brought, "x", at_least=TWO_BRING)
    brought = median(a.waited_s / b.waited_s for a, b in pairs)
    yield Figure("one over two, until the driver has their answers", brought, "x")
    brought = median(a.wall_s / b.wall_s for a, b in pairs)
    yield Figure("one over two, the whole", brought, "x")
    brought = min(a.busiest_s for a in one.times) / min(b.busiest_s for b in two.times)
    yield Figure("one over two, the busiest's processor time", brought, "x", at_least=TWO_BRING)
    part = median(1 - each.executors_part_s / each.wall_s for each in two.times)
    yield Figure("of two executors' whole, what is not their part", part, "")


def _compared_plain(plain: list[tuple[float, float]]) -> Iterator[Figure]:
    yield Figure("without Spark: one process", median(one for one, _ in plain), "s")
    yield Figure("without Spark: two processes", median(two for _, two in plain), "s")
    yield Figure("without Spark: one over two", median(one / two for one, two in plain), "x")


def main(
    *,
    size: int = 2_000_000,
    partitions: int = 50_000,
    repeats: int = 5,
    workdir: Path = WORKDIR,
    output: Output = "text",
) -> None:
    """Compute the statistics of a large table by one executor and by two.

    Args:
        size: File changes.
        partitions: Number of partitions of the files.
        repeats: Number of repeats of each.
        workdir: Folder of the ledger.
        output: text or json.
    """
    show(run(workdir, size=size, partitions=partitions, repeats=repeats), output)


if __name__ == "__main__":
    cyclopts.run(main)
