from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from attrs import frozen

import ledger
from ledger import FileChange, Identifier, InvalidInputError, Schema, Table, TableAt
from projections.statistics import compute

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@frozen
class Handle:
    """A table with where its ledger is."""

    table: Table
    ledger_url: str
    storage_options: Mapping[str, Any] = {}

    @property
    def identifier(self) -> Identifier:
        return self.table.identifier

    def at(self) -> TableAt:
        return self.table.at()


def a_file(path: str, day: str | None, count: int, created: int) -> FileChange:
    return FileChange(
        path=path,
        partition=(day,),
        record_count=count,
        file_size_in_bytes=count * 10,
        creation_time=created,
    )


def a_history(root: Path) -> Table:
    lake = ledger.open(str(root))
    lake.create_database("shop")
    schema = Schema.of({"id": "BIGINT", "day": "DATE"}, partition_keys=["day"])
    table = lake.create_table("shop.orders", schema)
    table.append([a_file("a", "2024-01-01", 5, 100), a_file("b", "2024-01-02", 7, 300)])
    table.append([a_file("c", None, 2, 200)])
    table.delete_files(["a"])
    return table


def test_statistics_of_a_real_log_agree_with_the_state(spark: SparkSession, tmp_path: Path) -> None:
    table = a_history(tmp_path)

    statistics = compute(Handle(table, str(tmp_path)), spark=spark)

    assert {row.spec["day"]: row.recordCount for row in statistics.partitions.collect()} == {
        "19724": 7,
        "__DEFAULT_PARTITION__": 2,
    }
    totals = table.at().totals
    last = statistics.snapshots.collect()[-1]
    assert (last.recordCount, last.fileSizeInBytes, last.fileCount, last.lastFileCreationTime) == (
        totals.record_count,
        totals.file_size_in_bytes,
        totals.file_count,
        totals.last_file_creation_time,
    )


def test_an_earlier_instant_gives_the_statistics_of_then(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = a_history(tmp_path)

    statistics = compute(Handle(table, str(tmp_path)), at=table.at(snapshot=1), spark=spark)

    assert [row.fileCount for row in statistics.partitions.collect()] == [1, 1]
    assert [row.snapshotId for row in statistics.snapshots.collect()] == [1]


def test_a_ledger_in_memory_is_refused_since_no_worker_could_read_it() -> None:
    lake = ledger.open("memory://statistics")
    lake.create_database("shop")
    table = lake.create_table("shop.orders", Schema.of({"id": "BIGINT"}))

    with pytest.raises(InvalidInputError, match="keep the ledger in a folder"):
        compute(Handle(table, lake.url))
