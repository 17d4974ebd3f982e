"""What does a second executor bring where Spark keeps the statistics of a large table?

The same table is kept from nothing by one executor and then by two, each a process with one core
(`local-cluster`), after a first time that nobody counts, in which Java compiles and workers import.
Told is how long the driver waits for executors, what is left of the whole, and the processor's
time: where executors have no cores of their own, what the busiest of them took tells more than the
clock. A run takes a minute and a half, a table to be made included.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import cyclopts
from attrs import define, field

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
from benchmarks.statistics_refresh import lake_at
from benchmarks.statistics_spark import counted_anew, jobs_timed
from projections.statistics import refresh
from projections.statistics.spark.executors import OnSpark, answers
from projections.statistics.spark.source import LogSource

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TWO_BRING = 1.6


@define
class _Course:
    """What so many executors took, each time."""

    count: int
    spent: Spent = field(factory=Spent)
    jobs_s: list[float] = field(factory=list)
    busiest_s: list[float] = field(factory=list)
    together_s: list[float] = field(factory=list)

    @property
    def serial_s(self) -> float:
        """What is not the executors' part, at least."""
        return min(a - b for a, b in zip(self.spent.wall_s, self.jobs_s, strict=True))


def run(workdir: Path, *, size: int, partitions: int, repeats: int) -> Report:
    root = workdir / f"statistics-executors-{os.getpid()}"
    shutil.copytree(lake_at(workdir, size, partitions), root, copy_function=os.link)
    try:
        return _measured(root, size, repeats)
    finally:
        shutil.rmtree(root)


def _measured(root: Path, size: int, repeats: int) -> Report:
    found: set[tuple[int, int]] = set()
    courses = [_Course(1), _Course(2)]
    for course in courses:
        spark = session_on(f"local-cluster[{course.count},1,1024]")
        try:
            answers(spark, int, 4 * course.count)
            _once(root, spark, _Course(course.count))
            for _ in range(repeats):
                found.add(_once(root, spark, course))
        finally:
            spark.stop()
    ((partitions, files),) = found
    one, two = courses
    return Report(
        question_of(__doc__),
        f"entries={size} partitions={partitions} files={files}",
        tuple(_figures(one, two)),
        (f"{size:,} entries, {repeats} times each; load {os.getloadavg()[0]:.1f}",),
    )


def _once(root: Path, spark: SparkSession, course: _Course) -> tuple[int, int]:
    def by_spark(table: ledger.Table) -> None:
        refresh(table.log, OnSpark(spark, LogSource.of(table)))

    with jobs_timed(course.jobs_s), _executors_timed(spark, course):
        return counted_anew(root, course.spent, by_spark)


@contextmanager
def _executors_timed(spark: SparkSession, course: _Course) -> Iterator[None]:
    # Nobody else's executors have it in their command lines.
    name = str(spark.conf.get("spark.app.id"))
    before = programs_cpu_s(name)
    yield
    took = [each - before.get(pid, 0.0) for pid, each in programs_cpu_s(name).items()]
    course.busiest_s.append(max(took))
    course.together_s.append(sum(took))


def _figures(one: _Course, two: _Course) -> Iterator[Figure]:
    for name, each in (("one executor", one), ("two executors", two)):
        yield Figure(f"{name}: their part, the least", min(each.jobs_s), "s")
        yield Figure(f"{name}: what is not their part, the least", each.serial_s, "s")
        yield Figure(f"{name}: the busiest, processor time", min(each.busiest_s), "s")
        yield Figure(f"{name}: all of them, processor time", min(each.together_s), "s")
    brought = min(one.jobs_s) / min(two.jobs_s)
    yield Figure("one over two, by the clock", brought, "x", at_least=TWO_BRING)
    brought = min(one.busiest_s) / min(two.busiest_s)
    yield Figure("one over two, the busiest's processor time", brought, "x", at_least=TWO_BRING)
    whole = min(two.spent.wall_s)
    yield Figure("of two executors' whole, what is not their part", two.serial_s / whole, "")


def main(
    *,
    size: int = 2_000_000,
    partitions: int = 50_000,
    repeats: int = 3,
    workdir: Path = WORKDIR,
    output: Output = "text",
) -> None:
    """Keep the statistics of a large table by one executor and by two.

    Args:
        size: File changes.
        partitions: Partitions that they are spread over.
        repeats: How often each is timed.
        workdir: Where the ledger is kept.
        output: text or json.
    """
    show(run(workdir, size=size, partitions=partitions, repeats=repeats), output)


if __name__ == "__main__":
    cyclopts.run(main)
