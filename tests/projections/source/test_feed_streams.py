"""The feed in Spark: restarts, triggers that end, and limits, each where Spark has them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ledger.log.feed_files import FOLDER
from ledger.stores import LocalStore
from projections.source import register
from projections.source.read_limits import HAS_READ_LIMITS
from tests.projections.source.folders import a_table_of, lake_in, options

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery


@pytest.fixture
def registered(spark: SparkSession) -> SparkSession:
    register(spark)
    return spark


def read_available(spark: SparkSession, folder: Path, **given: str) -> StreamingQuery:
    source = spark.readStream.format("ledger").options(table="*", view="commits", **given)
    query = (
        source.load(str(folder / "lake"))
        .writeStream.format("parquet")
        .option("checkpointLocation", str(folder / "checkpoint"))
        .option("path", str(folder / "rows"))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(120)
    return query


def rows_of(spark: SparkSession, folder: Path) -> list[tuple[str, int]]:
    rows = spark.read.parquet(str(folder / "rows")).select("identifier", "version").collect()
    return sorted((each.identifier, each.version) for each in rows)


def batches_of(folder: Path) -> int:
    return len(list((folder / "checkpoint" / "commits").glob("[0-9]*")))


def test_runs_over_many_tables_neither_lose_nor_repeat_and_leave_one_file(
    registered: SparkSession, tmp_path: Path
) -> None:
    lake = lake_in(tmp_path / "lake")
    tables = [a_table_of(lake, f"shop.t{number:03}", 0) for number in range(220)]
    read_available(registered, tmp_path)
    for number in (3, 150):
        options(tables[number], 1, 2)
    lake.rename_table("shop.t003", "shop.renamed")
    a_table_of(lake, "shop.t220", 1)
    lake.close()
    read_available(registered, tmp_path)
    lake.drop_table("shop.t010")
    read_available(registered, tmp_path)

    first = [(f"shop.t{number:03}", 0) for number in range(221)]
    later = [("shop.renamed", 1), ("shop.renamed", 2), ("shop.t150", 1), ("shop.t150", 2)]
    assert rows_of(registered, tmp_path) == sorted(
        [*first, *later, ("shop.t220", 1), ("shop.t010", 1)]
    )
    offsets = sorted((tmp_path / "checkpoint" / "offsets").glob("[0-9]*"))
    assert all(each.stat().st_size < 10_000 for each in offsets)
    # The end of the last batch, and those that Spark has not committed yet.
    assert 1 <= len(list(LocalStore(str(tmp_path / "lake")).keys(FOLDER))) <= len(offsets)


def test_a_run_with_nothing_new_has_no_batch(registered: SparkSession, tmp_path: Path) -> None:
    options(a_table_of(lake_in(tmp_path / "lake"), "shop.orders", 0), 1, 3)
    read_available(registered, tmp_path)
    read_available(registered, tmp_path)
    assert batches_of(tmp_path) == 1
    assert len(rows_of(registered, tmp_path)) == 4


@pytest.mark.skipif(HAS_READ_LIMITS, reason="of Spark 4.1")
def test_spark_without_limits_refuses_one_and_says_which_version_has_them(
    registered: SparkSession, tmp_path: Path
) -> None:
    a_table_of(lake_in(tmp_path / "lake"), "shop.orders", 0)
    with pytest.raises(Exception, match=r"maxCommitsPerTrigger needs Spark 4\.2 or newer"):
        read_available(registered, tmp_path, maxCommitsPerTrigger="5")


@pytest.mark.skipif(not HAS_READ_LIMITS, reason="from Spark 4.2 on")
def test_a_limit_makes_several_batches_which_end_at_the_heads(
    registered: SparkSession, tmp_path: Path
) -> None:
    lake = lake_in(tmp_path / "lake")
    a_table_of(lake, "shop.orders", 11)
    a_table_of(lake, "shop.items", 1)
    read_available(registered, tmp_path, maxCommitsPerTrigger="5")
    assert batches_of(tmp_path) == 3
    options(lake.table("shop.items"), 2, 7)
    read_available(registered, tmp_path, maxCommitsPerTrigger="5")
    assert batches_of(tmp_path) == 5
    expected = [("shop.items", each) for each in range(8)]
    assert rows_of(registered, tmp_path) == [
        *expected,
        *(("shop.orders", each) for each in range(12)),
    ]
