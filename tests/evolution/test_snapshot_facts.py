"""Values that a snapshot inherits from the one before, as in Paimon's commit."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from ledger import AddColumn, Schema, SnapshotPlan, Table
from tests.lakes import data_file, lake_on, memory


def table() -> Table:
    lake = lake_on(memory())
    lake.create_database("db")
    return lake.create_table("db.t", Schema.of({"id": "BIGINT"}))


def committed(table: Table, name: str, **facts: Any) -> tuple[int | None, str | None]:
    file = replace(data_file(f"{name}.parquet"), partition=())
    snapshot = table.commit_snapshot(SnapshotPlan("APPEND", (file,), facts=facts)).state.snapshot
    assert snapshot is not None
    return snapshot.watermark, snapshot.statistics


def test_a_watermark_never_goes_back() -> None:
    orders = table()
    marks = [
        committed(orders, f"f{n}", **facts)[0]
        for n, facts in enumerate([{}, {"watermark": 5}, {}, {"watermark": 3}, {"watermark": 9}])
    ]
    assert marks == [None, 5, 5, 5, 9]


def test_statistics_are_inherited_while_the_schema_stays() -> None:
    orders = table()
    assert committed(orders, "a", statistics="stat-1")[1] == "stat-1"
    assert committed(orders, "b")[1] == "stat-1"
    assert committed(orders, "c", statistics="stat-2")[1] == "stat-2"
    orders.alter([AddColumn(("x",), "INT")])
    assert committed(orders, "d")[1] is None
    assert committed(orders, "e")[1] is None
