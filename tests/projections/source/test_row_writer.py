from __future__ import annotations

import datetime as dt
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import pyarrow.parquet as pq
import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import functions as F

import ledger
from ledger import DataField, InvalidInputError, Ledger, Schema, Table
from ledger.model.types import DataType, LocalZonedTimestampType, RowType, TimestampType
from ledger.transforms import bucket, day, identity
from projections.source import distribute, register, write
from projections.source.write_options import parse_partition_values
from tests.projections.source.folders import lake_in
from tests.stores.servers.buckets import S3Server, root

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameWriter, SparkSession

LTZ = LocalZonedTimestampType(6)
COLUMNS: dict[str, str] = {
    "id": "BIGINT",
    "day": "DATE",
    "price": "DECIMAL(10, 2)",
    "r": "ROW<a INT, b STRING>",
}


@pytest.fixture(scope="module")
def registered(spark: SparkSession) -> SparkSession:
    register(spark)
    return spark


def a_target(folder: Path, *spec: Any) -> Ledger:
    lake = lake_in(folder)
    lake.create_table("shop.orders", Schema.of(COLUMNS), partition_spec=list(spec) or None)
    return lake


def rows_of(spark: SparkSession, first: int, last: int, days: int = 2) -> DataFrame:
    return spark.range(first, last, 1, 2).selectExpr(
        "id",
        f"DATE '2024-01-01' + CAST(id % {days} AS INT) AS day",
        "CAST(id AS DECIMAL(10, 2)) AS price",
        "named_struct('a', CAST(id AS INT), 'b', 'x') AS r",
    )


def writer_of(rows: DataFrame, **options: str) -> DataFrameWriter:
    return rows.write.format("ledger").options(**{"table": "shop.orders", **options})


def rows_in(table: Table) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for each in table.at().files:
        path = f"{table.location.removeprefix('file://')}/{each.path}"
        found += pq.ParquetFile(path).read().to_pylist()
    return found


def ids_in(table: Table) -> list[int]:
    return sorted(each["id"] for each in rows_in(table))


def test_rows_are_one_snapshot_whose_files_a_task_and_partition_has_one_of(
    registered: SparkSession, tmp_path: Path
) -> None:
    lake = a_target(tmp_path, identity("day"))
    writer_of(rows_of(registered, 0, 20), author="ada", message="the first").mode("append").save(
        lake.url
    )
    table = lake.table("shop.orders")
    assert ids_in(table) == list(range(20))
    assert len(table.at().files) == 4
    assert {each.partition for each in table.at().files} == {("2024-01-01",), ("2024-01-02",)}
    assert table.state.last_snapshot_id == 1
    entry, *_ = table.entries()
    assert (entry.transaction.author, entry.transaction.message) == ("ada", "the first")
    folder = table.location.removeprefix("file://")
    described = table.data_files([f"{folder}/data"])
    assert {each.path: each.lower_bounds for each in described} == {
        each.path: each.lower_bounds for each in table.at().files
    }


def test_overwrites_replace_the_table_named_partitions_or_those_that_get_rows(
    registered: SparkSession, tmp_path: Path
) -> None:
    lake = a_target(tmp_path, identity("day"))
    table = lake.table("shop.orders")
    writer_of(rows_of(registered, 0, 10)).mode("append").save(lake.url)
    one_day = rows_of(registered, 10, 13, days=1)

    dynamic = writer_of(one_day, partitionOverwriteMode="dynamic").mode("overwrite")
    dynamic.save(lake.url)
    assert ids_in(table) == [1, 3, 5, 7, 9, 10, 11, 12]
    second = rows_of(registered, 20, 21).withColumn("day", F.lit(dt.date(2024, 1, 2)))
    named = writer_of(second, replaceWhere="day = DATE '2024-01-02'").mode("overwrite")
    named.save(lake.url)
    assert ids_in(table) == [10, 11, 12, 20]
    writer_of(one_day.limit(0), partitionOverwriteMode="dynamic").mode("overwrite").save(lake.url)
    assert ids_in(table) == [10, 11, 12, 20]
    writer_of(one_day.limit(2)).mode("overwrite").save(lake.url)
    assert len(rows_in(table)) == 2


def test_a_dynamic_overwrite_is_rejected_where_an_older_spec_cannot_decide(
    registered: SparkSession, tmp_path: Path
) -> None:
    lake = a_target(tmp_path, identity("day"))
    table = lake.table("shop.orders")
    writer_of(rows_of(registered, 0, 10)).mode("append").save(lake.url)
    table.update_spec().add_field(bucket("id", 2)).commit()
    with pytest.raises(PySparkException, match="rewrite it under the default spec first"):
        write(rows_of(registered, 10, 12, days=1), table, mode="dynamic")
    assert ids_in(table) == list(range(10))


def test_named_partitions_are_replaced_by_the_function_too(
    registered: SparkSession, tmp_path: Path
) -> None:
    lake = a_target(tmp_path, identity("day"))
    table = lake.table("shop.orders")
    write(rows_of(registered, 0, 4), table)
    write(registered.range(4, 6), table)
    write(registered.range(6, 7), table, mode="overwrite", where={"day": None})
    assert ids_in(table) == [0, 1, 2, 3, 6]
    for mode, where in (("append", {"day": None}), ("dynamic", {"day": None}), ("overwrite", {})):
        with pytest.raises(InvalidInputError, match="names the partitions to replace"):
            write(registered.range(1), table, mode=mode, where=where)  # type: ignore[arg-type]
    for _ in range(2):
        again = rows_of(registered, 10, 12, days=1)
        write(again, table, mode="dynamic", key=("nightly", 1))
    assert ids_in(table) == [1, 3, 6, 10, 11]
    assert table.state.last_snapshot_id == 4


def test_a_job_with_a_key_is_committed_once(registered: SparkSession, tmp_path: Path) -> None:
    lake = a_target(tmp_path)
    table = lake.table("shop.orders")
    for _ in range(2):
        write(rows_of(registered, 0, 3), table, key=("nightly", 20260101))
    assert ids_in(table) == [0, 1, 2]
    write(rows_of(registered, 3, 4), table, key=("nightly", 20260102))
    assert ids_in(table) == [0, 1, 2, 3]


def test_a_batch_over_many_partitions_has_one_file_each(
    registered: SparkSession, tmp_path: Path
) -> None:
    lake = a_target(tmp_path, identity("day"))
    table = lake.table("shop.orders")
    write(rows_of(registered, 0, 1000, days=365), table)
    assert len(table.at().files) <= 1.1 * 365
    assert ids_in(table) == list(range(1000))


def test_rows_are_brought_together_by_hidden_partitions(
    registered: SparkSession, tmp_path: Path
) -> None:
    lake = a_target(tmp_path, day("day"), bucket("id", 3))
    table = lake.table("shop.orders")
    rows = rows_of(registered, 0, 100).withColumnRenamed("id", "ID").repartition(7)
    write(rows, table)
    assert len(table.at().files) == 6
    assert ids_in(table) == list(range(100))


REJECTED: list[tuple[str, str]] = [
    ("id, 1 AS zz", "shop.orders has no column 'zz'"),
    ("id, named_struct('a', 1, 'c', 2) AS r", "shop.orders has no column 'r.c'"),
    ("1.5D AS price", "column price of shop.orders is DECIMAL"),
    ("'x' AS id", "column id of shop.orders is BIGINT"),
]


@pytest.mark.parametrize(("columns", "message"), REJECTED)
@pytest.mark.parametrize("ansi", ["true", "false"])
def test_rows_that_do_not_fit_are_rejected_before_any_file_is_written(
    registered: SparkSession, tmp_path: Path, columns: str, message: str, ansi: str
) -> None:
    lake = a_target(tmp_path)
    before = registered.conf.get("spark.sql.ansi.enabled") or "true"
    registered.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        rows = registered.range(2).selectExpr(*columns.split(", ", 1))
        with pytest.raises(AnalysisException, match=message):
            writer_of(rows).mode("append").save(lake.url)
    finally:
        registered.conf.set("spark.sql.ansi.enabled", before)
    assert lake.table("shop.orders").state.last_snapshot_id == 0
    assert not (tmp_path / "shop.db" / "orders" / "data").exists()


@pytest.mark.parametrize("sensitive", ["true", "false"])
def test_nested_fields_in_other_order_and_case_keep_their_values(
    registered: SparkSession, tmp_path: Path, sensitive: str
) -> None:
    lake = a_target(tmp_path)
    registered.conf.set("spark.sql.caseSensitive", sensitive)
    try:
        rows = registered.range(1).selectExpr("id AS Id", "named_struct('B', 'x', 'a', 7) AS R")
        writer_of(rows).mode("append").save(lake.url)
    finally:
        registered.conf.set("spark.sql.caseSensitive", "false")
    (row,) = rows_in(lake.table("shop.orders"))
    assert (row["id"], row["r"]) == (0, {"a": 7, "b": "x"})


OPTIONS: list[tuple[dict[str, str], str]] = [
    ({"tabel": "shop.orders"}, "there is no option 'tabel' of a write; did you mean 'table'?"),
    ({"table": ""}, "no table is given"),
    ({"table": "shop.missing"}, "shop.missing"),
    ({"commitUser": "me"}, "give both"),
    ({"commitUser": "me", "commitIdentifier": "-1"}, "give a whole number from 0"),
    ({"partitionOverwriteMode": "dynamic"}, 'needs .mode."overwrite".'),
    ({"partitionOverwriteMode": "some"}, "give static or dynamic"),
    ({"replaceWhere": "day = 1"}, "leave it out"),
    ({"storageOptions": "["}, "is no JSON object"),
]


@pytest.mark.parametrize(("options", "message"), OPTIONS)
def test_a_wrong_option_is_named(
    registered: SparkSession, tmp_path: Path, options: dict[str, str], message: str
) -> None:
    lake = a_target(tmp_path)
    with pytest.raises(AnalysisException, match=message):
        writer_of(rows_of(registered, 0, 1), **options).mode("append").save(lake.url)


@pytest.mark.parametrize("text", ["day > 1", "day = 1 OR id = 2", "day = id", "day =", "day"])
def test_a_condition_that_names_no_partition_is_rejected(
    registered: SparkSession, tmp_path: Path, text: str
) -> None:
    lake = a_target(tmp_path, identity("day"))
    with pytest.raises(AnalysisException, match="is no condition on partitions"):
        writer_of(rows_of(registered, 0, 1), replaceWhere=text).mode("overwrite").save(lake.url)


def test_a_key_that_is_named_twice_replaces_no_partition() -> None:
    with pytest.raises(InvalidInputError, match="names day twice"):
        parse_partition_values("day = '2024-01-01' AND day = '2024-01-02'")


def test_a_table_whose_rows_are_merged_is_rejected(
    registered: SparkSession, tmp_path: Path
) -> None:
    lake = lake_in(tmp_path)
    keyed = Schema.of({"id": "BIGINT NOT NULL"}, primary_keys=["id"])
    lake.create_table("shop.orders", keyed)
    with pytest.raises(AnalysisException, match="merged by key"):
        writer_of(registered.range(1)).mode("append").save(lake.url)
    assert not (tmp_path / "shop.db" / "orders" / "data").exists()


@pytest.mark.parametrize("zone", ["America/New_York", "Asia/Kolkata"])
def test_moments_are_the_tables_whatever_the_sessions_zone(
    registered: SparkSession, tmp_path: Path, zone: str
) -> None:
    lake = lake_in(tmp_path / "lake")
    inner = RowType([DataField(0, "at", TimestampType(6)), DataField(0, "of", LTZ)])
    columns = {"wall": "TIMESTAMP(6)", "moment": "TIMESTAMP_LTZ(6)", "other": "TIMESTAMP(6)"}
    kinds: dict[str, str | DataType] = {**columns, "late": LTZ, "r": inner}
    table = lake.create_table("shop.zoned", Schema.of(kinds))
    before = registered.conf.get("spark.sql.session.timeZone")
    registered.conf.set("spark.sql.session.timeZone", zone)
    try:
        rows = registered.sql(
            "SELECT TIMESTAMP_NTZ '2024-01-01 10:00:00' wall, TIMESTAMP '2024-01-01 10:00:00' "
            "moment, TIMESTAMP '2024-01-01 10:00:00' other, TIMESTAMP_NTZ '2024-01-01 10:00:00' "
            "Late, named_struct('at', TIMESTAMP '2024-01-01 10:00:00', 'OF', "
            "TIMESTAMP_NTZ '2024-01-01 10:00:00') r"
        )
        with pytest.raises(AnalysisException, match="whose zone is unknown here"):
            writer_of(rows, table="shop.zoned").mode("append").save(lake.url)
        write(rows, table)
    finally:
        registered.conf.set("spark.sql.session.timeZone", before or "UTC")
    wall = dt.datetime(2024, 1, 1, 10)  # noqa: DTZ001 - a wall clock
    moment = wall.replace(tzinfo=ZoneInfo(zone))
    (row,) = rows_in(table)
    assert (row["wall"], row["other"], row["r"]["at"]) == (wall, wall, wall)
    assert (row["moment"], row["late"], row["r"]["of"]) == (moment, moment, moment)


def test_a_bucket_takes_rows(registered: SparkSession, seaweedfs: S3Server) -> None:
    url, options = root(seaweedfs, "rows"), seaweedfs.options
    lake = ledger.open(url, options)
    lake.create_database("shop")
    table = lake.create_table("shop.orders", Schema.of(COLUMNS), partition_spec=[identity("day")])
    write(rows_of(registered, 0, 20), table)
    write(rows_of(registered, 20, 22, days=1), table, mode="dynamic")
    assert table.at().totals.record_count == 12
    assert {each.partition for each in table.at().files} == {("2024-01-01",), ("2024-01-02",)}


def followed(spark: SparkSession, source: Path, checkpoint: Path, lake: Ledger) -> None:
    """Run a stream from a folder into the table until all is consumed."""
    rows = spark.readStream.schema(rows_of(spark, 0, 1).schema).parquet(str(source))
    query = (
        distribute(rows, lake.table("shop.orders"))
        .writeStream.format("ledger")
        .option("table", "shop.orders")
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start(lake.url)
    )
    query.awaitTermination(60)


def test_every_batch_of_a_stream_is_committed_once_whatever_spark_forgets(
    registered: SparkSession, tmp_path: Path
) -> None:
    lake = a_target(tmp_path / "lake", identity("day"))
    table = lake.table("shop.orders")
    source, checkpoint = tmp_path / "source", tmp_path / "checkpoint"
    rows_of(registered, 0, 10).write.mode("append").parquet(str(source))
    followed(registered, source, checkpoint, lake)
    assert table.state.last_snapshot_id == 1
    # As after a driver that was killed between the commit and Spark's own note of it.
    for each in (checkpoint / "commits").iterdir():
        each.unlink()
    followed(registered, source, checkpoint, lake)
    assert table.state.last_snapshot_id == 1
    rows_of(registered, 10, 15).write.mode("append").parquet(str(source))
    followed(registered, source, checkpoint, lake)

    assert ids_in(table) == list(range(15))
    snapshot = table.at().snapshot
    assert snapshot is not None
    assert snapshot.commit_identifier == 1
    assert snapshot.commit_user.startswith("spark-")

    # A new checkpoint at the same place is another stream, whose batch 0 is not this one's.
    shutil.rmtree(checkpoint)
    followed(registered, source, checkpoint, lake)
    assert ids_in(table) == sorted([*range(15), *range(15)])


def test_a_stream_only_appends(registered: SparkSession, tmp_path: Path) -> None:
    lake = a_target(tmp_path)
    rows = registered.readStream.format("rate").load().selectExpr("value AS id")
    stream = rows.groupBy("id").count().select("id").writeStream.outputMode("complete")
    started = stream.format("ledger").option("table", "shop.orders")
    with pytest.raises(PySparkException, match="a stream appends"):
        started.option("checkpointLocation", str(tmp_path / "c")).start(lake.url).awaitTermination(
            60
        )
