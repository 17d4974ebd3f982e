"""One Spark job keeps the statistics of every table of a ledger."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import pytest
from attrs import frozen

import ledger
from ledger import FileChange, InvalidInputError, Schema
from ledger.table_handle import handle_of
from projections.statistics import Kept, query, verify
from projections.statistics import spark_many as many
from projections.statistics.spark_many import RefreshResult, refresh_all
from projections.statistics.spark_source import LogSource
from tests.projections.statistics.lives import a_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def files(count: int, most: int) -> list[FileChange]:
    return [
        FileChange(
            path=f"f{each}.parquet",
            partition=(None,),
            record_count=count,
            file_size_in_bytes=each + 1,
            field_ids=True,
        )
        for each in range(most)
    ]


def test_every_table_is_counted_and_a_damaged_one_is_reported(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = ledger.open(str(tmp_path))
    lake.create_database("shop")
    schema = Schema.of({"id": "BIGINT", "day": "DATE"}, partition_keys=["day"])
    tables = [lake.create_table(f"shop.t{each}", schema) for each in range(4)]
    for number, table in enumerate(tables):
        table.append(files(number, (5, 1100, 5, 1001)[number]))
    store = handle_of(tables[3]).log.store
    (key,) = (each for each in store.keys(handle_of(tables[3]).path) if "/changes/" in each)
    store.replace(key, b"torn")
    monkeypatch.setattr(many, "ALONE", 1050)
    progress: list[tuple[int, int]] = []

    *found, damaged = refresh_all(tables, spark=spark, on_progress=lambda *n: progress.append(n))

    assert found == [RefreshResult(f"shop.t{each}", 1) for each in range(3)]
    assert (damaged.table, damaged.version) == ("shop.t3", -1)
    assert key in damaged.problem
    assert progress == [(3, 4), (4, 4)]
    for table, rows in zip(tables[:3], (0, 1100, 10), strict=True):
        kept = Kept.of(handle_of(table).log)
        assert kept.position.version == 1
        assert query.totals(kept, table.at())[-1].record_count == rows
        assert verify(handle_of(table).log).is_empty


def test_no_tables_need_no_spark() -> None:
    assert refresh_all([]) == ()


def test_a_ledger_in_memory_is_rejected() -> None:
    with pytest.raises(InvalidInputError, match="keep the ledger in a folder"):
        refresh_all([a_table()])


@frozen
class TakesItsWorkerDown:
    """A source of a table that fails in an unforeseen way."""

    identifier: str = "shop.strange"

    def log(self) -> NoReturn:
        raise ZeroDivisionError


def test_a_table_that_takes_a_worker_down_takes_no_other_table_along(
    spark: SparkSession, tmp_path: Path
) -> None:
    lake = ledger.open(str(tmp_path))
    lake.create_database("shop")
    table = lake.create_table("shop.fine", Schema.of({"id": "BIGINT"}))
    strange: Any = TakesItsWorkerDown()

    fine, other = many._refresh_group(spark, (LogSource.of(table), strange))

    assert fine == RefreshResult("shop.fine", 0)
    assert isinstance(other, RefreshResult)
    assert (other.table, other.version) == ("shop.strange", -1)
    assert "ZeroDivisionError" in other.problem
