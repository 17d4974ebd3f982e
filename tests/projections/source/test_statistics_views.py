"""The views of kept statistics have the same rows whatever is kept."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ledger
from ledger import FileChange, Schema, Table, transforms
from ledger.table_handle import handle_of
from projections.source import register, statistics_rows, tiles
from projections.source.columns import typed_column
from projections.source.span_reading import LogScan, SpanEnd
from projections.source.view import view_of
from projections.source.view_reading import scan_rows
from projections.statistics import Kept, refresh
from tests.lakes import memory
from tests.projections.source.reading_all import rows_of
from tests.projections.statistics.lives import Life, a_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MEASURES = ("record_count", "file_size_in_bytes", "file_count")


def key_of(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["spec_id"], tuple(map(str, row["partition"].items())), row["content"]


def summed(rows: list[dict[str, Any]], prefix: str = "") -> dict[tuple[Any, ...], Counter[str]]:
    """Return the sums of rows by partition."""
    found: dict[tuple[Any, ...], Counter[str]] = {}
    for row in rows:
        sums = found.setdefault(key_of(row), Counter())
        for name in MEASURES:
            sums[name] += row[prefix + name]
    return found


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**6), st.integers(0, 140), st.integers(1, 20), st.integers(0, 60))
def test_tiles_are_the_changes_and_add_up_to_the_partitions(
    seed: int, before: int, after: int, first: int
) -> None:
    table = a_table(memory())
    life = Life(table, seed)
    life.goes_on(before)
    refresh(handle_of(table).log)
    life.goes_on(after)

    deltas = rows_of(table, "tiles", length=64)
    live = {key: sums for key, sums in summed(deltas).items() if sums["file_count"] > 0}

    assert live == summed(rows_of(table, "partitions"))
    assert summed(deltas) == summed(rows_of(table, "partition_changes"), "delta_")
    some = [row for row in deltas if row["version"] >= first]
    late = rows_of(table, "tiles", first=first)
    assert sorted(map(repr, late)) == sorted(map(repr, some))


def test_wide_blocks_are_read_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    table = a_table(memory())
    Life(table, 5).goes_on(150)
    refresh(handle_of(table).log)
    whole = {name: rows_of(table, name) for name in ("tiles", "partitions")}

    monkeypatch.setattr(statistics_rows, "_ROWS_AT_ONCE", 7)

    for name, rows in whole.items():
        assert rows_of(table, name) == rows
        scan = LogScan(handle_of(table), 0, SpanEnd(table.state.version))
        assert max(len(each) for each in scan_rows(view_of(name), scan, ("a.b", "id"))) == 7


def test_partitions_read_the_tiles_instead_of_the_log() -> None:
    store = memory()
    table = a_table(store)
    Life(table, 3).goes_on(140)
    log = handle_of(table).log
    wanted = rows_of(table, "partitions")
    refresh(log)
    for each in range(1, 100):
        store.delete(log.layout.commit(each))

    assert sorted(map(repr, rows_of(table, "partitions"))) == sorted(map(repr, wanted))


def test_typed_values_are_those_of_each_spec() -> None:
    lake = ledger.open("memory://typed-statistics")
    lake.create_database("shop")
    columns = {"day": "DATE", "at": "TIMESTAMP(6)", "name": "STRING", "n": "DECIMAL(9, 2)"}
    spec = [transforms.identity("day"), transforms.identity("n")]
    table = lake.create_table("shop.orders", Schema.of(columns), partition_spec=spec)
    add(table, "a", ("2026-01-01", "1.50"))
    add(table, "b", (None, "2.00"))
    change = table.update_spec().remove_field("day").remove_field("n")
    change.add_field("name").add_field(transforms.month("at")).commit()
    add(table, "c", ('x, "y"', 672))
    column = typed_column(table.state.schema, table.state.specs)
    assert column is not None

    scan = LogScan(handle_of(table), 0, SpanEnd(table.state.version))
    names = ("partition_values", "partition", "record_count")
    for view in ("tiles", "partitions"):
        (batch,) = scan_rows(view_of(view), scan, ("shop.orders", "id"), column, names)
        assert batch.schema.names == list(names)
        found = sorted(batch.to_pylist(), key=lambda row: row["record_count"])
        texts = [dict(row["partition"]) for row in found]
        assert texts == [
            {"day": "2026-01-01", "n": "1.50"},
            {"day": None, "n": "2.00"},
            {"name": 'x, "y"', "at_month": "672"},
        ]
        shown = [{k: str(v) for k, v in row["partition_values"].items()} for row in found]
        none = dict.fromkeys((each.name for each in column.members), "None")
        assert shown == [
            none | {"day": "2026-01-01", "n": "1.50"},
            none | {"n": "2.00"},
            none | {"name": 'x, "y"', "at_month": "672"},
        ]


_COUNTS = {"a": 1, "b": 2, "c": 3}


def add(table: Table, path: str, partition: tuple[Any, ...]) -> None:
    file = FileChange(
        path=f"{path}.parquet",
        partition=partition,
        record_count=_COUNTS[path],
        file_size_in_bytes=9,
        spec_id=table.state.spec.spec_id,
    )
    table.append([file])


def test_tiles_are_a_dataframe_for_any_query(spark: SparkSession, tmp_path: Path) -> None:
    lake = ledger.open(str(tmp_path))
    lake.create_database("shop")
    spec = [transforms.identity("day")]
    table = lake.create_table("shop.orders", Schema.of({"day": "DATE"}), partition_spec=spec)
    for number in range(70):
        day = f"2026-01-{number % 7 + 1:02}"
        file = FileChange(
            path=f"{number}.parquet",
            partition=(day,),
            record_count=number,
            file_size_in_bytes=9,
        )
        table.append([file])
    refresh(handle_of(table).log)
    assert Kept.of(handle_of(table).log).position.version == 70
    register(spark)

    sums = tiles(spark, table).groupBy("partition_values.day").sum("record_count", "file_count")

    found = {str(day): (records, files) for day, records, files in sums.collect()}
    assert found == {f"2026-01-{day + 1:02}": (sum(range(day, 70, 7)), 10) for day in range(7)}
