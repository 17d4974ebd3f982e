"""Time of the view `partitions`, and of the same sums by a `GROUP BY` of Spark over the tiles.

The tiles are grouped twice: through the view `tiles`, and from their Parquet files by Spark's own
reader, which parses no partition. All begin with a session that is already running.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import cyclopts

import ledger
from benchmarks.measure import WORKDIR, Figure, Output, Report, in_turn, question_of, show
from benchmarks.statistics_refresh import NAME, lake_at
from ledger.table_handle import handle_of
from projections.source import register
from projections.statistics import refresh, spark_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

VIEW_AT_MOST = 1.3
_MEASURES = ("record_count", "file_size_in_bytes", "file_count")


def run(workdir: Path, *, size: int, partitions: int, repeats: int) -> Report:
    root = workdir / f"statistics-views-{os.getpid()}"
    shutil.copytree(lake_at(workdir, size, partitions), root)
    try:
        return _measured(root, size, repeats)
    finally:
        shutil.rmtree(root)


def _measured(root: Path, size: int, repeats: int) -> Report:
    handle = handle_of(ledger.open(str(root)).table(NAME))
    refresh(handle.log)
    deltas = root / handle.path / "_ledger" / "statistics" / "deltas"
    spark = spark_session()
    register(spark)
    found: dict[str, tuple[int, ...]] = {}

    def answered(name: str, rows: Callable[[], DataFrame]) -> Callable[[], None]:
        def answer() -> None:
            found[name] = _summary(rows())

        return answer

    cases = {
        "partitions": answered("partitions", lambda: _view(spark, root, "partitions")),
        "tiles": answered("tiles", lambda: _grouped_view(spark, root)),
        "parquet": answered("parquet", lambda: _grouped_files(spark, deltas)),
    }
    times = {name: each.median_ns / 1e6 for name, each in in_turn(cases, repeats).items()}
    assert len(set(found.values())) == 1, found
    return Report(
        question_of(__doc__),
        f"entries={size} partitions={found['tiles'][0]}",
        (
            Figure("view partitions", times["partitions"], "ms"),
            Figure("GROUP BY over the view tiles", times["tiles"], "ms"),
            Figure("GROUP BY over the tiles' Parquet files", times["parquet"], "ms"),
            Figure(
                "partitions / GROUP BY over tiles",
                times["partitions"] / times["tiles"],
                "x",
                at_most=VIEW_AT_MOST,
            ),
            Figure("partitions / Parquet files", times["partitions"] / times["parquet"], "x"),
        ),
        (f"medians of {repeats}, wall clock, local[*]; load {os.getloadavg()[0]:.1f}",),
    )


def _view(spark: SparkSession, root: Path, name: str) -> DataFrame:
    return spark.read.format("ledger").option("table", NAME).option("view", name).load(str(root))


def _grouped_view(spark: SparkSession, root: Path) -> DataFrame:
    return _grouped(_view(spark, root, "tiles"), "spec_id", "partition_values", "content")


def _grouped_files(spark: SparkSession, deltas: Path) -> DataFrame:
    rows = spark.read.parquet(str(deltas)).where("spec_id IS NOT NULL")
    return _grouped(rows, "spec_id", "partition", "content")


def _grouped(rows: DataFrame, *keys: str) -> DataFrame:
    found = rows.groupBy(*keys).agg(dict.fromkeys(_MEASURES, "sum"))
    for each in _MEASURES:
        found = found.withColumnRenamed(f"sum({each})", each)
    return found.where("file_count > 0")


def _summary(rows: DataFrame) -> tuple[int, ...]:
    """Return sums of all columns, so that each is computed."""
    sums = ", ".join(f"sum({each})" for each in _MEASURES)
    (found,) = rows.selectExpr(f"struct(count(*), {sums}) AS found").collect()
    return tuple(found["found"])


def main(
    *,
    size: int = 1_000_000,
    partitions: int = 200_000,
    repeats: int = 5,
    workdir: Path = WORKDIR,
    output: Output = "text",
) -> None:
    """Read the statistics of a table of many partitions in Spark.

    Args:
        size: File changes.
        partitions: Number of partitions of the files.
        repeats: Number of repeats of each, in turn.
        workdir: Folder of the ledger.
        output: text or json.
    """
    show(run(workdir, size=size, partitions=partitions, repeats=repeats), output)


if __name__ == "__main__":
    cyclopts.run(main)
