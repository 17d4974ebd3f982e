"""A column that comes back shows its values again, to every reader, wherever files hold them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyiceberg.table import StaticTable

import ledger
from ledger import AddColumn, DropColumn, Ledger, RenameColumn, Schema, Table, UndropColumn
from ledger.model import read_type
from projections.iceberg import Names
from tests.readers.engines import duckdb_connection
from tests.readers.lakehouse import Rows, add_rows, by_id

ROWS: Rows = [
    {"id": 1, "b": "one", "s": {"x": 1, "y": "uno"}},
    {"id": 2, "b": "two", "s": None},
]


@pytest.fixture
def lake(tmp_path: Path) -> Ledger:
    lake = ledger.open(str(tmp_path))
    lake.create_database("shop")
    return lake


def lived(lake: Ledger, formats: str, *, has_ids: bool = True) -> Table:
    """Return a table with rows from before a drop, from while it lasted, and from after it."""
    columns: dict[str, Any] = {
        "id": "BIGINT",
        "b": "STRING",
        "s": read_type("ROW<x INT, y STRING>"),
    }
    options = {"ledger.formats": formats}
    table = lake.create_table("shop.orders", Schema.of(columns, options=options))
    add_rows(table, "1.parquet", ROWS, has_ids=has_ids)
    table.alter([DropColumn(("b",)), DropColumn(("s", "y"))])
    add_rows(table, "2.parquet", [{"id": 3, "s": {"x": 3}}], has_ids=has_ids)
    table.alter([UndropColumn(("b",)), UndropColumn(("s", "y"))])
    add_rows(
        table, "3.parquet", [{"id": 4, "b": "four", "s": {"x": 4, "y": "cua"}}], has_ids=has_ids
    )
    return table


EXPECTED: Rows = [
    *ROWS,
    {"id": 3, "b": None, "s": {"x": 3, "y": None}},
    {"id": 4, "b": "four", "s": {"x": 4, "y": "cua"}},
]


def iceberg(table: Table) -> Rows:
    version = table.project("iceberg")
    path = f"{table.location}/{Names(table.state.table_id).metadata(version)}"
    return by_id(StaticTable.from_metadata(path).scan().to_arrow().to_pylist())


def paimon(lake: Ledger, table: Table) -> Rows:
    from tests.pypaimon_or_skip import CatalogFactory

    table.project("paimon")
    opened = CatalogFactory.create({"warehouse": lake.url}).get_table(str(table.identifier))
    builder = opened.new_read_builder()
    found = builder.new_read().to_arrow(builder.new_scan().plan().splits())
    return by_id(found.to_pylist())


@pytest.mark.parametrize("has_ids", [True, False], ids=["with ids", "with names alone"])
def test_iceberg_and_paimon_readers_show_the_values_again(lake: Ledger, *, has_ids: bool) -> None:
    table = lived(lake, "paimon,iceberg", has_ids=has_ids)

    assert by_id(table.at().to_arrow().to_pylist()) == EXPECTED
    assert iceberg(table) == EXPECTED
    assert paimon(lake, table) == EXPECTED


@pytest.mark.parametrize("has_ids", [True, False], ids=["with ids", "with names alone"])
def test_another_name_shows_the_same_values(lake: Ledger, *, has_ids: bool) -> None:
    table = lived(lake, "paimon,iceberg", has_ids=has_ids)
    field_id = table.column_id("b")
    table.alter([DropColumn(("b",))])
    table.alter([UndropColumn(("c",), field_id), RenameColumn(("s", "y"), "z")])

    expected = [
        {
            "id": row["id"],
            "s": row["s"] and {"x": row["s"]["x"], "z": row["s"]["y"]},
            "c": row["b"],
        }
        for row in EXPECTED
    ]
    assert iceberg(table) == expected
    assert paimon(lake, table) == expected


def test_a_column_that_took_the_name_meanwhile_keeps_its_own_values(lake: Ledger) -> None:
    table = lived(lake, "paimon,iceberg")
    field_id = table.column_id("b")
    table.alter([DropColumn(("b",)), DropColumn(("s",)), AddColumn(("b",), "STRING")])
    add_rows(table, "4.parquet", [{"id": 5, "b": "new"}])
    table.alter([UndropColumn(("old",), field_id)])

    expected = [{"id": row["id"], "old": row["b"], "b": None} for row in EXPECTED]
    expected.append({"id": 5, "old": None, "b": "new"})
    for found in (iceberg(table), paimon(lake, table)):
        assert [{key: row[key] for key in ("id", "old", "b")} for row in found] == expected


def test_delta_readers_show_the_values_again(lake: Ledger) -> None:
    import deltalake
    import pyarrow as pa

    table = lived(lake, "delta")
    table.project("delta")

    folder = table.location.removeprefix("file://")
    opened = deltalake.DeltaTable(folder)
    found = pa.table(
        deltalake.QueryBuilder().register("t", opened).execute("select * from t").read_all()
    )
    assert by_id(found.to_pylist()) == EXPECTED
    assert by_id(_duckdb(folder)) == EXPECTED


def _duckdb(folder: str) -> Rows:
    with duckdb_connection("delta") as connection:
        rows: Rows = (
            connection.execute("select * from delta_scan($1)", [folder])
            .to_arrow_table()
            .to_pylist()
        )
    return rows
