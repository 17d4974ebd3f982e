from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import pyarrow.parquet as pq
import pytest

from ledger import DataField, InvalidInputError, Ledger, Schema, Table
from ledger.model.types import DataType, LocalZonedTimestampType, RowType, TimestampType
from projections.source import ledger_sink
from projections.source.sink import WriteFiles, write_parquet
from tests.projections.source.folders import lake_in

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LTZ = LocalZonedTimestampType(6)

Commit = Callable[["DataFrame", int], None]


def a_target(folder: Path) -> Ledger:
    lake = lake_in(folder)
    columns = {"id": "BIGINT", "day": "DATE", "price": "DECIMAL(10, 2)"}
    lake.create_table("shop.orders", Schema.of(columns, partition_keys=["day"]))
    return lake


def drop_in(spark: SparkSession, folder: Path, first: int, last: int) -> None:
    """Put a file with some ids where the query finds it."""
    days = spark.range(first, last).selectExpr(
        "id",
        "DATE '2024-01-01' + CAST(id % 2 AS INT) AS day",
        "CAST(id AS DECIMAL(10, 2)) AS price",
    )
    days.coalesce(1).write.mode("append").parquet(str(folder))


def run(spark: SparkSession, source: Path, checkpoint: Path, commit: Commit) -> None:
    rows = spark.readStream.schema("id BIGINT, day DATE, price DECIMAL(10, 2)")
    query = (
        rows.parquet(str(source))
        .writeStream.foreachBatch(commit)
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination(60)


def ids_in(table: Table) -> list[int]:
    found: list[int] = []
    for each in table.at().files:
        path = f"{table.location.removeprefix('file://')}/{each.path}"
        found += pq.ParquetFile(path).read(["id"])["id"].to_pylist()
    return sorted(found)


def test_every_batch_is_committed_once_through_crashes_before_and_after_its_commit(
    spark: SparkSession, tmp_path: Path
) -> None:
    lake = a_target(tmp_path / "lake")
    table = lake.table("shop.orders")
    source, checkpoint = tmp_path / "source", tmp_path / "checkpoint"
    sink = ledger_sink(lake.url, "shop.orders")
    crash_before: WriteFiles = write_and_crash

    def crash_after(rows: DataFrame, number: int) -> None:
        sink(rows, number)
        raise RuntimeError("a power cut")

    drop_in(spark, source, 0, 10)
    with pytest.raises(Exception, match="a power cut"):
        run(
            spark,
            source,
            checkpoint,
            ledger_sink(lake.url, "shop.orders", write_files=crash_before),
        )
    assert table.state.last_snapshot_id == 0
    with pytest.raises(Exception, match="a power cut"):
        run(spark, source, checkpoint, crash_after)
    assert table.state.last_snapshot_id == 1
    run(spark, source, checkpoint, sink)
    assert table.state.last_snapshot_id == 1
    drop_in(spark, source, 10, 15)
    run(spark, source, checkpoint, sink)

    assert ids_in(table) == list(range(15))
    assert table.state.last_snapshot_id == 2
    snapshot = table.at().snapshot
    assert snapshot is not None
    assert snapshot.commit_identifier == 1
    assert snapshot.commit_user.startswith("spark-")
    assert {each.partition for each in table.at().files} == {("2024-01-01",), ("2024-01-02",)}
    assert all(each.field_ids for each in table.at().files)

    # Another checkpoint is another stream, whose batch 0 is not this one's.
    run(spark, source, tmp_path / "another", sink)
    assert ids_in(table) == sorted([*range(15), *range(15)])


def write_and_crash(rows: DataFrame, table: Table, folder: str) -> Sequence[str]:
    write_parquet(rows, table, folder)
    raise RuntimeError("a power cut")


def test_a_writer_of_ones_own_may_write_the_files(spark: SparkSession, tmp_path: Path) -> None:
    lake = a_target(tmp_path / "lake")

    def sparks_own(rows: DataFrame, _table: Table, folder: str) -> Sequence[str]:
        rows.write.partitionBy("day").parquet(folder)
        return [folder]

    sink = ledger_sink(lake.url, "shop.orders", commit_user="me", write_files=sparks_own)
    rows = spark.range(4).selectExpr("id", "DATE '2024-01-01' AS day")
    for number in (0, 0, 1):
        sink(rows, number)
    assert lake.table("shop.orders").at().totals.record_count == 8
    assert lake.table("shop.orders").state.last_snapshot_id == 2


def test_a_batch_outside_of_a_query_has_no_known_stream(
    spark: SparkSession, tmp_path: Path
) -> None:
    lake = a_target(tmp_path / "lake")
    with pytest.raises(InvalidInputError, match="pass the function to foreachBatch"):
        ledger_sink(lake.url, "shop.orders")(spark.range(1), 0)


def test_a_batch_without_rows_commits_nothing(spark: SparkSession, tmp_path: Path) -> None:
    lake = a_target(tmp_path / "lake")
    ledger_sink(lake.url, "shop.orders", commit_user="me")(spark.range(0), 0)
    assert lake.table("shop.orders").state.version == 0


@pytest.mark.parametrize("zone", ["America/New_York", "Asia/Kolkata"])
def test_moments_are_the_tables_whatever_the_sessions_zone(
    spark: SparkSession, tmp_path: Path, zone: str
) -> None:
    lake = lake_in(tmp_path / "lake")
    inner = RowType([DataField(0, "at", TimestampType(6)), DataField(0, "of", LTZ)])
    columns = {"wall": "TIMESTAMP(6)", "moment": "TIMESTAMP_LTZ(6)", "other": "TIMESTAMP(6)"}
    kinds: dict[str, str | DataType] = {**columns, "late": LTZ, "r": inner}
    table = lake.create_table("shop.zoned", Schema.of(kinds))
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        rows = spark.sql(
            "SELECT TIMESTAMP_NTZ '2024-01-01 10:00:00' wall, TIMESTAMP '2024-01-01 10:00:00' "
            "moment, TIMESTAMP '2024-01-01 10:00:00' other, TIMESTAMP_NTZ '2024-01-01 10:00:00' "
            "late, named_struct('at', TIMESTAMP '2024-01-01 10:00:00', 'of', "
            "TIMESTAMP_NTZ '2024-01-01 10:00:00') r"
        )
        ledger_sink(lake.url, "shop.zoned", commit_user="me")(rows, 0)
    finally:
        spark.conf.set("spark.sql.session.timeZone", before or "UTC")
    wall = dt.datetime(2024, 1, 1, 10)  # noqa: DTZ001 - a wall clock
    moment = wall.replace(tzinfo=ZoneInfo(zone))
    (file,) = table.at().files
    path = f"{table.location.removeprefix('file://')}/{file.path}"
    (row,) = pq.ParquetFile(path).read().to_pylist()
    assert (row["wall"], row["other"], row["r"]["at"]) == (wall, wall, wall)
    assert (row["moment"], row["late"], row["r"]["of"]) == (moment, moment, moment)
