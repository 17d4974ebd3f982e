"""Distinct values, by Spark's sketches over a table's data."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyarrow import parquet

import ledger
from ledger import AddColumn, RenameColumn, Schema, UnsupportedError, UpdateColumnType
from ledger.model import Value
from ledger.model import types as t
from ledger.planning import value_to_bytes
from ledger.table_handle import handle_of
from projections.paimon import statistics_file as publish_paimon
from projections.statistics.analyze import analyze, encode_single_values, require_sketches

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LONG = Decimal("12345678901234567890.123456789012345678")
"""A decimal of 38 digits, of which Python's arithmetic keeps 28 by default."""


@pytest.mark.parametrize(
    ("values", "data_type", "plain"),
    [
        (pa.array([True, False]), t.BooleanType(), [True, False]),
        (pa.array([-3, 7], pa.int16()), t.SmallIntType(), [-3, 7]),
        (pa.array([-3, 7], pa.int32()), t.BigIntType(), [-3, 7]),
        (pa.array([1.5], pa.float32()), t.DoubleType(), [1.5]),
        (pa.array([1.5], pa.float32()), t.FloatType(), [1.5]),
        (pa.array([date(2024, 1, 2)]), t.DateType(), [19724]),
        (pa.array([time(0, 0, 1)]), t.TimeType(0), [1_000_000]),
        (pa.array([1_000_000], pa.timestamp("us")), t.TimestampType(6), [1_000_000]),
        (pa.array([datetime(1970, 1, 1, tzinfo=UTC)]), t.LocalZonedTimestampType(9), [0]),
        (pa.array([Decimal("14.20"), Decimal("-1.00")]), t.DecimalType(9, 2), [1420, -100]),
        (pa.array([LONG.copy_negate()]), t.DecimalType(38, 18), [-int(str(LONG).replace(".", ""))]),
        (pa.array(["a", "ü"]), t.VarCharType(9), ["a", "ü"]),
        (pa.array([b"\0x"]), t.VarBinaryType(9), [b"\0x"]),
    ],
)
def test_values_are_encoded_as_bounds_are(
    values: Any, data_type: t.DataType, plain: list[Value]
) -> None:
    assert encode_single_values(values, data_type).to_pylist() == [
        value_to_bytes(v, data_type) for v in plain
    ]


def test_a_spark_without_sketches_is_rejected_by_name() -> None:
    require_sketches("4.1.0")
    require_sketches("5.0.0-SNAPSHOT")
    with pytest.raises(UnsupportedError, match=r"theta_sketch_agg, which exists from 4\.1"):
        require_sketches("4.0.1")


def test_distinct_values_are_united_per_snapshot_and_files_are_read_once(
    spark: SparkSession, tmp_path: Path
) -> None:
    lake = ledger.open(str(tmp_path / "lake"))
    lake.create_database("shop")
    schema = Schema.of(
        {"id": "INT", "city": "STRING", "day": "DATE"},
        partition_keys=["day"],
        options={"ledger.formats": "paimon"},
    )
    table = lake.create_table("shop.visits", schema)

    def add(name: str, rows: dict[str, Any], day: str) -> None:
        path = tmp_path / "data" / f"day={day}" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        parquet.write_table(pa.table(rows), path)
        table.add_files([str(path)])

    add(
        "a.parquet", {"id": pa.array([1, 2, 3], pa.int32()), "city": ["x", "y", None]}, "2024-01-01"
    )
    add("b.parquet", {"id": pa.array([3, 4], pa.int32()), "city": ["y", "y"]}, "2024-01-02")

    first = analyze(table, spark=spark)
    assert (dict(first.distinct), first.is_exact) == ({0: 4, 1: 2, 2: 2}, True)
    assert first.read_count == 2
    then = analyze(table, at=table.at(snapshot=1), spark=spark)
    assert (dict(then.distinct), then.read_count) == ({0: 3, 1: 2, 2: 1}, 0)

    # A file keeps its names and types; what it lacks adds nothing; a wider type is read anew.
    table.alter(
        [
            RenameColumn(("city",), "town"),
            AddColumn(("more",), "INT"),
            UpdateColumnType(("id",), "BIGINT"),
        ]
    )
    later = analyze(table, spark=spark)
    assert (dict(later.distinct), later.read_count) == ({0: 4, 1: 2, 2: 2, 3: 0}, 2)

    published = publish_paimon.publish(handle_of(table), later.distinct)
    assert published.is_new
    assert not publish_paimon.publish(handle_of(table), later.distinct).is_new
    text = (Path(table.location.removeprefix("file://")) / published.path).read_text()
    assert '"distinctCount" : 4' in text
