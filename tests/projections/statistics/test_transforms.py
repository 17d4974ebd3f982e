from __future__ import annotations

import random
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Row = dict[str, Any]
SUMS = ("recordCount", "fileSizeInBytes", "fileCount", "lastFileCreationTime")


def change(snapshot_id: int, kind: str, partition: str, count: int, created: int) -> Row:
    return {
        "version": snapshot_id,
        "snapshot_id": snapshot_id,
        "kind": kind,
        "path": f"{partition}/{created}",
        "partition": f"day={partition}",
        "spec": {"day": partition},
        "record_count": count,
        "file_size_in_bytes": count * 10,
        "creation_time": created,
    }


FEW = [
    change(1, "ADD", "a", 5, 100),
    change(1, "ADD", "b", 7, 300),
    change(3, "DELETE", "b", 7, 400),
    change(4, "ADD", "a", 2, 200),
]


def frame(spark: SparkSession, rows: list[Row]) -> DataFrame:
    from projections.statistics.columns import CHANGES

    return spark.createDataFrame(
        [tuple(row[each.name] for each in CHANGES.fields) for row in rows], CHANGES
    )


def ids(spark: SparkSession, last: int) -> DataFrame:
    from projections.statistics.columns import SNAPSHOTS

    return spark.createDataFrame([(each, each) for each in range(1, last + 1)], SNAPSHOTS)


def partitions(spark: SparkSession, rows: list[Row], at_snapshot: int) -> dict[str, list[Any]]:
    from projections.statistics.transforms import partition_statistics

    result = partition_statistics(frame(spark, rows), at_snapshot=at_snapshot)
    return {row["spec"]["day"]: [row[name] for name in SUMS] for row in result.collect()}


def totals(spark: SparkSession, rows: list[Row], last: int) -> list[list[Any]]:
    from projections.statistics.transforms import snapshot_totals

    result = snapshot_totals(frame(spark, rows), ids(spark, last))
    return [[row["snapshotId"], *(row[name] for name in SUMS)] for row in result.collect()]


def test_a_partition_without_files_is_left_out(spark: SparkSession) -> None:
    assert partitions(spark, FEW, 4) == {"a": [7, 70, 2, 200]}


def test_changes_of_later_snapshots_do_not_count(spark: SparkSession) -> None:
    assert partitions(spark, FEW, 2) == {"a": [5, 50, 1, 100], "b": [7, 70, 1, 300]}


def test_the_last_creation_time_counts_removals_too(spark: SparkSession) -> None:
    rows = [*FEW[:2], change(2, "DELETE", "a", 1, 900)]
    rows.append(change(2, "ADD", "a", 1, 150))

    assert partitions(spark, rows, 2)["a"][-1] == 900


def test_every_snapshot_has_totals_whether_or_not_files_changed(spark: SparkSession) -> None:
    assert totals(spark, FEW, 5) == [
        [1, 12, 120, 2, 300],
        [2, 12, 120, 2, 300],
        [3, 5, 50, 1, 400],
        [4, 7, 70, 2, 400],
        [5, 7, 70, 2, 400],
    ]


def test_before_the_first_file_there_is_no_creation_time(spark: SparkSession) -> None:
    assert totals(spark, [], 1) == [[1, 0, 0, 0, None]]
    assert partitions(spark, [], 1) == {}


def test_results_have_the_declared_columns(spark: SparkSession) -> None:
    from projections.statistics.columns import PARTITIONS, TOTALS
    from projections.statistics.transforms import partition_statistics, snapshot_totals

    rows = frame(spark, FEW)
    results = [partition_statistics(rows, at_snapshot=4), snapshot_totals(rows, ids(spark, 4))]

    for result, declared in zip(results, [PARTITIONS, TOTALS], strict=True):
        assert result.columns == declared.names
        assert [each.dataType.typeName() for each in result.schema.fields] == [
            each.dataType.typeName() for each in declared.fields
        ]


def history(rng: random.Random) -> Iterator[Row]:
    live: list[Row] = []
    for snapshot_id in range(1, rng.randrange(2, 30)):
        for _ in range(rng.randrange(4)):
            if live and rng.random() < 0.4:
                gone = live.pop(rng.randrange(len(live)))
                yield {**gone, "kind": "DELETE", "snapshot_id": snapshot_id}
            else:
                created = rng.randrange(10**12)
                row = change(snapshot_id, "ADD", rng.choice("abcd"), rng.randrange(100), created)
                live.append(row)
                yield row


def folded(rows: list[Row]) -> list[Any]:
    signs = [1 if row["kind"] == "ADD" else -1 for row in rows]
    return [
        sum(sign * row["record_count"] for sign, row in zip(signs, rows, strict=True)),
        sum(sign * row["file_size_in_bytes"] for sign, row in zip(signs, rows, strict=True)),
        sum(signs),
        max((row["creation_time"] for row in rows), default=None),
    ]


@pytest.mark.parametrize("seed", range(6))
def test_spark_counts_what_a_plain_loop_counts(spark: SparkSession, seed: int) -> None:
    rng = random.Random(seed)
    rows = list(history(rng))
    at = rng.randrange(31)
    shuffled = rng.sample(rows, len(rows))
    before = [row for row in rows if row["snapshot_id"] <= at]
    by_day = {day: folded([row for row in before if row["spec"]["day"] == day]) for day in "abcd"}

    assert partitions(spark, shuffled, at) == {
        day: sums for day, sums in by_day.items() if sums[2] > 0
    }
    assert totals(spark, shuffled, 30) == [
        [each, *folded([row for row in rows if row["snapshot_id"] <= each])]
        for each in range(1, 31)
    ]
