"""Rows written by Spark: files of a batch and time, against Spark's own Parquet files.

Both write the same rows, brought together by their partition in the same way, with zstd. Wide rows
are a fifth as many. Each writes once before it is timed.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import cyclopts

import ledger
from benchmarks.measure import WORKDIR, Figure, Output, Report, in_turn, question_of, show
from ledger.transforms import identity
from projections.source import register, write
from projections.statistics.session import spark_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FILES_AT_MOST = 1.1
TIME_AT_MOST = 1.5
_NARROW = {"id": "BIGINT", "day": "DATE", "price": "DOUBLE"}
_WIDE = {**_NARROW, **{f"c{number}": "STRING" for number in range(30)}}


def rows_of(spark: SparkSession, columns: Sequence[str], count: int, partitions: int) -> DataFrame:
    """Return cached rows of some partitions, in random order."""
    made = {
        "id": "id",
        "day": f"date_add(DATE '2026-01-01', CAST(pmod(hash(id), {partitions}) AS INT)) AS day",
        "price": "rand(7) AS price",
    }
    texts = (f"concat('text-', pmod(hash(id, '{name}'), 1000)) AS {name}" for name in columns[3:])
    rows = spark.range(0, count, 1, 4).selectExpr(*made.values(), *texts).cache()
    rows.count()
    return rows


def run(workdir: Path, *, rows: int, partitions: int, repeats: int) -> Report:
    folder = workdir / f"spark-write-{os.getpid()}"
    shutil.rmtree(folder, ignore_errors=True)
    try:
        return _measured(folder, rows, partitions, repeats)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _measured(folder: Path, rows: int, partitions: int, repeats: int) -> Report:
    spark = spark_session()
    register(spark)
    codec = spark.conf.get("spark.sql.parquet.compression.codec")
    spark.conf.set("spark.sql.parquet.compression.codec", "zstd")
    lake = ledger.open(str(folder / "lake"))
    lake.create_database("shop")
    figures = []
    for name, columns in {"narrow": _NARROW, "wide": _WIDE}.items():
        count = rows if name == "narrow" else rows // 5
        schema = ledger.Schema.of(columns)
        table = lake.create_table(f"shop.{name}", schema, partition_spec=[identity("day")])
        given = rows_of(spark, list(columns), count, partitions)
        own = given.hint("rebalance", "day").write.mode("overwrite").partitionBy("day")
        cases = {
            "ours": partial(write, given, table, mode="overwrite"),
            "own": partial(own.parquet, str(folder / f"{name}-parquet")),
        }
        taken_ms = {each: found.median_ns / 1e6 for each, found in in_turn(cases, repeats).items()}
        assert table.at().totals.record_count == count
        days = given.select("day").distinct().count()
        given.unpersist()
        figures += [
            Figure(f"{name} rows", taken_ms["ours"], "ms"),
            Figure(f"{name} rows, Spark's own files", taken_ms["own"], "ms"),
            Figure(
                f"{name} rows / Spark's own files",
                taken_ms["ours"] / taken_ms["own"],
                "x",
                at_most=TIME_AT_MOST,
            ),
            Figure(
                f"files of {name} rows for each partition",
                table.at().totals.file_count / days,
                "",
                at_most=FILES_AT_MOST,
            ),
        ]
    spark.conf.set("spark.sql.parquet.compression.codec", codec or "snappy")
    return Report(
        question_of(__doc__),
        f"rows={rows} partitions={partitions}",
        tuple(figures),
        (f"medians of {repeats}, wall clock, local[*]; load {os.getloadavg()[0]:.1f}",),
    )


def main(
    *,
    rows: int = 1_000_000,
    partitions: int = 365,
    repeats: int = 3,
    workdir: Path = WORKDIR,
    output: Output = "text",
) -> None:
    """Write rows of many partitions from Spark.

    Args:
        rows: Number of narrow rows.
        partitions: Number of partitions, at most.
        repeats: Number of repeats of each, in turn.
        workdir: Folder of the files.
        output: text or json.
    """
    show(run(workdir, rows=rows, partitions=partitions, repeats=repeats), output)


if __name__ == "__main__":
    cyclopts.run(main)
