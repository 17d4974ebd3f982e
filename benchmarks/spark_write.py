"""Rows written by Spark: files of a batch and time, against Spark's own Parquet files.

    python -m benchmarks.spark_write [--rows 1000000] [--partitions 365] [--repeats 3]

Both write the same rows, brought together by their partition in the same way, with zstd. Figures
are medians; the first run of each is left out.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import ledger
from ledger.transforms import identity
from projections.source import register, write
from projections.statistics.session import spark_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

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


def median_time(action: Callable[[], None], repeats: int) -> float:
    """Return the median seconds of an action, without its first run."""
    action()
    taken = []
    for _ in range(repeats):
        begun = time.perf_counter()
        action()
        taken.append(time.perf_counter() - begun)
    return median(taken)


def run(folder: Path, rows: int, partitions: int, repeats: int) -> dict[str, float]:
    """Return the figures, by name."""
    spark = spark_session()
    register(spark)
    spark.conf.set("spark.sql.parquet.compression.codec", "zstd")
    lake = ledger.open(str(folder / "lake"))
    lake.create_database("shop")
    figures: dict[str, float] = {}
    for name, columns in {"narrow": _NARROW, "wide": _WIDE}.items():
        count = rows if name == "narrow" else rows // 5
        table = lake.create_table(
            f"shop.{name}", ledger.Schema.of(columns), partition_spec=[identity("day")]
        )
        given = rows_of(spark, list(columns), count, partitions)
        ours = median_time(lambda: write(given, table, mode="overwrite"), repeats)  # noqa: B023
        path = str(folder / f"{name}-parquet")
        own = given.hint("rebalance", "day").write.mode("overwrite").partitionBy("day")
        theirs = median_time(lambda: own.parquet(path), repeats)  # noqa: B023
        figures[f"{name}: files per partition (at most 1.1)"] = (
            table.at().totals.file_count / partitions
        )
        figures[f"{name}: time against Spark's own files (at most 1.5)"] = ours / theirs
        given.unpersist()
    return figures


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--partitions", type=int, default=365)
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        for name, value in run(Path(folder), given.rows, given.partitions, given.repeats).items():
            print(f"{name}: {value:.2f}")


if __name__ == "__main__":
    main()
