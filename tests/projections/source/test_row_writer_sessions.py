"""Settings of a Spark session do not change the values that are written."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException

from ledger import Schema, Table
from ledger.model.types import DataType, LocalZonedTimestampType, TimestampType
from ledger.transforms import day, identity
from projections.source import register, write
from tests.projections.source.folders import lake_in

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def registered(spark: SparkSession) -> SparkSession:
    register(spark)
    return spark


@contextmanager
def settings(spark: SparkSession, given: dict[str, str]) -> Iterator[None]:
    """Set options of a session while the body runs."""
    before = {name: spark.conf.get(name) for name in given}
    try:
        for name, value in given.items():
            spark.conf.set(name, value)
        yield
    finally:
        for name, old in before.items():
            if old is not None:
                spark.conf.set(name, old)


def rows_by_duckdb(table: Table, columns: str) -> list[tuple[Any, ...]]:
    """Return the rows of a table's files by its first column, moments as microseconds."""
    folder = table.location.removeprefix("file://")
    paths = [f"{folder}/{each.path}" for each in table.at().files]
    with duckdb.connect() as connection:
        return connection.execute(
            f"SELECT {columns} FROM read_parquet($paths, hive_partitioning = false) ORDER BY 1",  # noqa: S608 - the test's
            {"paths": paths},
        ).fetchall()


def micros(moment: dt.datetime) -> int:
    return (moment - dt.datetime(1970, 1, 1, tzinfo=moment.tzinfo)) // dt.timedelta(microseconds=1)


MOMENTS: list[tuple[str, str]] = [
    # Both are half past one in New York, where the second hour is repeated.
    ("2024-11-03 05:30:00", "2024-11-03 01:30:00"),
    ("2024-11-03 06:30:00", "2024-11-03 01:30:00"),
    # This hour does not exist in New York.
    ("2024-03-10 07:30:00.123456", "2024-03-10 02:30:00.123456"),
    # Zones had local mean times, and days begin elsewhere.
    ("1850-06-01 23:59:59.999999", "1850-06-01 23:59:59.999999"),
    ("1969-12-31 23:59:59.999999", "1582-10-04 00:00:00"),
]


@pytest.mark.parametrize("zone", ["America/New_York", "Asia/Kolkata"])
def test_times_are_written_as_they_are_in_any_zone_and_without_ansi(
    registered: SparkSession, tmp_path: Path, zone: str
) -> None:
    columns: dict[str, str | DataType] = {
        "id": "INT",
        "moment": LocalZonedTimestampType(6),
        "wall": TimestampType(6),
        "born": "DATE",
    }
    table = lake_in(tmp_path).create_table(
        "shop.times", Schema.of(columns), partition_spec=[day("moment"), identity("born")]
    )
    values = ", ".join(
        f"({number}, TIMESTAMP_LTZ '{moment}+00:00', TIMESTAMP_NTZ '{wall}', DATE '{wall[:10]}')"
        for number, (moment, wall) in enumerate(MOMENTS)
    )
    session = {"spark.sql.session.timeZone": zone, "spark.sql.ansi.enabled": "false"}
    with settings(registered, session):
        write(registered.sql(f"SELECT * FROM VALUES {values} AS t(id, moment, wall, born)"), table)  # noqa: S608 - the test's

    found = rows_by_duckdb(table, "id, epoch_us(moment), epoch_us(wall), born")
    at = [tuple(map(dt.datetime.fromisoformat, each)) for each in MOMENTS]
    assert found == [
        (number, micros(moment), micros(wall), wall.date())
        for number, (moment, wall) in enumerate(at)
    ]
    wanted = {(str(moment.date()), str(wall.date())) for moment, wall in at}
    assert {tuple(map(str, each.partition)) for each in table.at().files} == wanted


def test_columns_that_differ_in_case_keep_their_values(
    registered: SparkSession, tmp_path: Path
) -> None:
    lake = lake_in(tmp_path)
    schema = Schema.of({"id": "BIGINT", "ID": "BIGINT", "Day": "DATE"}, partition_keys=["Day"])
    table = lake.create_table("shop.cases", schema)
    both = registered.range(3).selectExpr("id + 10 AS ID", "DATE '2024-01-01' AS day", "id")
    upper = registered.range(1).selectExpr("id + 20 AS ID", "DATE '2024-01-02' AS DAY")
    for sensitive in ("true", "false"):
        with settings(registered, {"spark.sql.caseSensitive": sensitive}):
            write(both, table)
            write(upper, table)

    folder = table.location.removeprefix("file://")
    files = [pq.ParquetFile(f"{folder}/{each.path}") for each in table.at().files]
    found = [tuple(row.values()) for each in files for row in each.read().to_pylist()]
    wanted = [
        *((number, number + 10, dt.date(2024, 1, 1)) for number in range(3)),
        (None, 20, dt.date(2024, 1, 2)),
    ]
    assert {tuple(each.schema_arrow.names) for each in files} == {("id", "ID", "Day")}
    assert sorted(found, key=str) == sorted([*wanted, *wanted], key=str)


UNFIT: list[tuple[str, str]] = [
    ("CAST(3000000000 AS BIGINT) AS small", "column small of shop.small"),
    ("CAST(123.45 AS DECIMAL(5, 2)) AS price", "column price of shop.small"),
    ("CAST('x' AS INT) AS needed", "column needed of shop.small is NOT NULL"),
]


@pytest.mark.parametrize(("column", "message"), UNFIT)
def test_without_ansi_a_value_that_does_not_fit_is_an_error_and_no_null(
    registered: SparkSession, tmp_path: Path, column: str, message: str
) -> None:
    columns = {"small": "INT", "price": "DECIMAL(4, 2)", "needed": "INT NOT NULL"}
    table = lake_in(tmp_path).create_table("shop.small", Schema.of(columns))
    name = column.rpartition(" ")[2]
    others = [] if name == "needed" else ["1 AS needed"]
    with settings(registered, {"spark.sql.ansi.enabled": "false"}):
        rows = registered.range(0, 1, 1, 1).selectExpr(column, *others)
        with pytest.raises(PySparkException, match=message):
            write(rows, table)
    assert table.state.last_snapshot_id == 0
    assert not [*tmp_path.rglob("*.parquet")]
