"""Time of Iceberg's own Java to compute the partition statistics that we publish.

Both start without statistics and write the file for the newest snapshot of one table: Java reads
the manifests of its projection, as its procedure `compute_partition_stats` does; ours reads the
log, keeps its tiles, and writes the same rows. On a shared machine processor time is more reliable
than wall-clock time, so both are reported.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import cyclopts

import ledger
from benchmarks.measure import WORKDIR, Figure, Output, Report, Spent, question_of, show
from ledger import FileChange, Table
from ledger.table_handle import handle_of
from projections.iceberg.materialise import project
from projections.iceberg.statistics_files import (
    partition_statistics_file,
    partition_statistics_rows,
)
from projections.statistics import Kept, refresh

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COORDINATES = "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.11.0"
_NAME = "shop.orders"
_CATALOG = "bench"
AT_MOST = 1.0


def run(workdir: Path, *, commits: int, files: int, partitions: int, repeats: int) -> Report:
    root = _lake(workdir, commits, files, partitions)
    table = ledger.open(str(root)).table(_NAME)
    spark = _session(root)
    jvm: Any = spark._jvm  # noqa: SLF001 - Java's own class is timed
    iceberg = jvm.org.apache.iceberg
    session = spark._jsparkSession  # noqa: SLF001
    name = f"{_CATALOG}.`shop.db`.orders"
    java, ours = Spent(), Spent()
    counted = written = 0
    for turn in range(repeats + 1):
        opened = iceberg.spark.Spark3Util.loadIcebergTable(session, name)
        with java.timed():
            made = iceberg.PartitionStatsHandler.computeAndWriteStatsFile(opened)
        counted = spark.read.parquet(made.path()).count()
        shutil.rmtree(root / handle_of(table).path / "_ledger" / "statistics", ignore_errors=True)
        with ours.timed():
            written = _ours(table, root / "ours.parquet")
        if not turn:
            # The first run loads Java's classes and our libraries.
            java, ours = Spent(), Spent()
    assert counted == written
    pairs = zip(ours.wall_s, java.wall_s, strict=True)
    return Report(
        question_of(__doc__),
        f"files={commits * files} partitions={written}",
        (
            Figure("Iceberg's Java, by the clock, the least", min(java.wall_s), "s"),
            Figure("Iceberg's Java, processor time, the least", min(java.cpu_s), "s"),
            Figure("ours, by the clock, the least", min(ours.wall_s), "s"),
            Figure("ours, processor time, the least", min(ours.cpu_s), "s"),
            Figure(
                "ours / Java's, by the clock, best pair",
                min(a / b for a, b in pairs),
                "x",
                at_most=AT_MOST,
            ),
            Figure("ours / Java's, processor time", min(ours.cpu_s) / min(java.cpu_s), "x"),
        ),
        (f"{commits:,} commits of {files:,} files; load {os.getloadavg()[0]:.1f}",),
    )


def _ours(table: Table, to: Path) -> int:
    refresh(handle_of(table).log)
    rows = partition_statistics_rows(handle_of(table), Kept.of(handle_of(table).log), table.at())
    to.write_bytes(partition_statistics_file(rows))
    return len(rows)


def _lake(workdir: Path, commits: int, files: int, partitions: int) -> Path:
    """Return a ledger whose table is projected to Iceberg; built at the first call and cached."""
    lake = workdir / f"partition-statistics-{commits}-{files}-{partitions}"
    if lake.exists():
        return lake
    workdir.mkdir(parents=True, exist_ok=True)
    handle = ledger.open(str(lake), author="bench")
    handle.create_database("shop")
    schema = ledger.Schema.of(
        {"id": "BIGINT", "shard": "INT"},
        partition_keys=["shard"],
        options={"ledger.formats": "iceberg"},
    )
    table = handle.create_table(_NAME, schema)
    for commit in range(commits):
        table.append(
            [
                FileChange(
                    path=f"data-{commit}-{each}.parquet",
                    partition=((commit * files + each) % partitions,),
                    record_count=each + 1,
                    file_size_in_bytes=(each + 1) * 97,
                    field_ids=True,
                )
                for each in range(files)
            ]
        )
    project(handle_of(table))
    return lake


def _session(root: Path) -> SparkSession:
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    catalog = f"spark.sql.catalog.{_CATALOG}"
    return (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.jars.packages", COORDINATES)
        .config(catalog, "org.apache.iceberg.spark.SparkCatalog")
        .config(f"{catalog}.type", "hadoop")
        .config(f"{catalog}.warehouse", str(root))
        .getOrCreate()
    )


def main(
    *,
    commits: int = 200,
    files: int = 500,
    partitions: int = 5_000,
    repeats: int = 3,
    workdir: Path = WORKDIR,
    output: Output = "text",
) -> None:
    """Compute a table's partition statistics by Iceberg's Java and by ours.

    Args:
        commits: Number of commits.
        files: Number of files in each.
        partitions: Number of partitions of the files.
        repeats: Number of repeats of each, in turn.
        workdir: Folder of the ledger.
        output: text or json.
    """
    report = run(workdir, commits=commits, files=files, partitions=partitions, repeats=repeats)
    show(report, output)


if __name__ == "__main__":
    cyclopts.run(main)
