"""What people ask, on a table whose answers are known by hand."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from ledger import FileChange, InvalidInputError, Schema, Table
from ledger.stores import LocalStore
from projections.statistics import Kept
from projections.statistics.shown.questions import Bounds, Question, answer
from tests.lakes import lake_on, memory

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

DAY = 86_400_000
FIRST_DAY = 20_000
"""2024-10-04, in days since 1970."""


def a_file(name: str, day: str, size: int, records: int = 10) -> FileChange:
    return FileChange(
        path=f"{name}.parquet",
        partition=(day,),
        record_count=records,
        file_size_in_bytes=size,
        field_ids=True,
    )


def a_table(store: Any = None) -> Table:
    """Return a table that got files on three days; the second day's went a day later."""
    moments: Iterator[int] = iter(range(FIRST_DAY * DAY, 2**60, 1))
    skipped = [0]
    lake = lake_on(store or memory(), clock=lambda: next(moments) + skipped[0] * DAY)
    lake.create_database("shop")
    schema = Schema.of({"id": "BIGINT", "day": "DATE"}, partition_keys=["day"])
    table = lake.create_table("shop.orders", schema)
    table.append([a_file(f"a{each}", "2024-10-04", 10) for each in range(5)])
    table.append([a_file("b0", "2024-10-05", 100), a_file("b1", "2024-10-05", 100)])
    skipped[0] = 3
    table.append([a_file("c0", "2024-10-06", 300, records=1)])
    skipped[0] = 7
    table.append([a_file("c1", "2024-10-06", 100, records=1)])
    table.overwrite([], where={"day": "2024-10-05"})
    return table


def asked(table: Table, question: Question, **bounds: int) -> list[dict[str, Any]]:
    given = Bounds(now_millis=(FIRST_DAY + 10) * DAY, **bounds)
    rows = answer(question, Kept.of(table.log), table.log, table.at(), given)
    found: list[dict[str, Any]] = rows.to_pylist()
    return found


def test_small_files_skew_and_what_a_compaction_would_gain() -> None:
    rows = asked(a_table(), "compaction", target_file_size=150)

    assert [tuple(row.values()) for row in rows] == [
        ("day=2024-10-04", 5, 50, 10, 0.22, 1, 4),
        # Two files of 200 bytes on average are not fewer at 150 each.
        ("day=2024-10-06", 2, 400, 200, 1.78, 2, 0),
    ]


def test_growth_has_a_row_for_each_day_with_snapshots() -> None:
    rows = asked(a_table(), "growth")

    assert [tuple(row.values()) for row in rows] == [
        ("2024-10-04", 2, 70, 7, 250, 70, 7, 250),
        ("2024-10-07", 1, 1, 1, 300, 71, 8, 550),
        ("2024-10-11", 2, -19, -1, -100, 52, 7, 450),
    ]


def test_partitions_that_no_commit_has_changed_for_some_days() -> None:
    table = a_table()

    assert [row["partition"] for row in asked(table, "untouched", untouched_days=2)] == [
        "day=2024-10-04",
        "day=2024-10-06",
    ]
    (row,) = asked(table, "untouched", untouched_days=9)
    assert (row["partition"], row["untouched_days"], row["last_change_version"]) == (
        "day=2024-10-04",
        9,
        1,
    )
    assert row["last_change"].startswith("2024-10-04T00:00:00")
    assert asked(table, "untouched", untouched_days=10) == []


def test_a_table_without_files_has_no_answers() -> None:
    lake = lake_on(memory())
    lake.create_database("shop")
    table = lake.create_table("shop.empty", Schema.of({"id": "BIGINT"}))

    assert asked(table, "compaction") == asked(table, "growth") == asked(table, "untouched") == []


def test_files_of_no_size_are_refused_as_a_target() -> None:
    with pytest.raises(InvalidInputError, match="give at least 1"):
        Bounds(now_millis=0, target_file_size=0)


def test_an_answer_is_a_dataframe_of_the_same_rows(spark: SparkSession, tmp_path: Path) -> None:
    from projections.statistics.spark.job import asked as asked_of_spark

    table = a_table(LocalStore(tmp_path))
    bounds = Bounds(now_millis=(FIRST_DAY + 10) * DAY)

    found = asked_of_spark(table, "growth", bounds, spark=spark)

    assert [row.asDict() for row in found.collect()] == asked(table, "growth")
