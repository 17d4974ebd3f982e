from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from ledger.model.file_change import FileChange
from ledger.model.schema import Schema
from projections.partition_text import PartitionText
from projections.statistics import Statistics, compute_from, write
from projections.statistics.log_source import ChangeSource, RenderedSpec, Row, change_row

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COMMITS = 25_000


def a_source() -> ChangeSource:
    """Return a source that counts: version n is snapshot n and adds one file of n rows."""
    text = PartitionText.of(Schema.of({"day": "DATE"}))

    # Defined here so that workers get it by value: they cannot import test modules.
    class Counting:
        def changes(self, first_version: int, last_version: int) -> Iterator[Row]:
            for version in range(max(first_version, 1), last_version + 1):
                day = f"2013-01-{version % 3 + 1:02}"
                added = FileChange(
                    path=f"f{version}",
                    partition=(day,),
                    record_count=version,
                    file_size_in_bytes=1,
                    creation_time=version * 10,
                )
                yield change_row(
                    version, version, added, RenderedSpec.of(text, ("day",), added.partition)
                )

        def snapshots(self, first_version: int, last_version: int) -> Iterator[Row]:
            for version in range(max(first_version, 1), last_version + 1):
                yield {"version": version, "snapshot_id": version}

    return Counting()


def computed(spark: SparkSession, last: int) -> Statistics:
    return compute_from(a_source(), version=last, snapshot_id=last, spark=spark)


def written(folder: str, name: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.read_table(Path(folder, f"{name}.parquet")).to_pylist()
    return rows


def test_every_version_is_read_exactly_once(spark: SparkSession) -> None:
    statistics = computed(spark, COMMITS)

    last = statistics.snapshots.tail(1)[0]

    assert (last.snapshotId, last.fileCount) == (COMMITS, COMMITS)
    assert last.recordCount == COMMITS * (COMMITS + 1) // 2


def test_what_is_written_can_be_read_without_spark(spark: SparkSession, tmp_path: Path) -> None:
    folder = write(computed(spark, 6), str(tmp_path))

    assert folder == f"{tmp_path}/_ledger/statistics/snapshot-6"
    assert [dict(row["spec"]) for row in written(folder, "partitions")] == [
        {"day": "15706"},
        {"day": "15707"},
        {"day": "15708"},
    ]
    assert [row["recordCount"] for row in written(folder, "snapshots")] == [1, 3, 6, 10, 15, 21]
    assert json.loads((tmp_path / "_ledger/statistics/latest.json").read_text()) == {
        "snapshotId": 6,
        "version": 6,
    }


def test_writing_again_changes_nothing_and_repairs_what_was_lost(
    spark: SparkSession, tmp_path: Path
) -> None:
    statistics = computed(spark, 4)
    folder = write(statistics, str(tmp_path))
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.*") if path.is_file()}

    write(statistics, str(tmp_path))
    assert {path: path.read_bytes() for path in tmp_path.rglob("*.*") if path.is_file()} == before

    shutil.rmtree(folder)
    write(statistics, str(tmp_path))
    assert {path: path.read_bytes() for path in tmp_path.rglob("*.*") if path.is_file()} == before


def test_an_older_instant_does_not_take_the_pointer_back(
    spark: SparkSession, tmp_path: Path
) -> None:
    write(computed(spark, 4), str(tmp_path))
    write(computed(spark, 2), str(tmp_path))

    pointer = json.loads((tmp_path / "_ledger/statistics/latest.json").read_text())
    assert pointer["snapshotId"] == 4
    assert written(f"{tmp_path}/_ledger/statistics/snapshot-2", "snapshots")[-1]["fileCount"] == 2


def test_before_the_first_snapshot_there_is_nothing_to_count(
    spark: SparkSession, tmp_path: Path
) -> None:
    folder = write(computed(spark, 0), str(tmp_path))

    assert written(folder, "partitions") == written(folder, "snapshots") == []
