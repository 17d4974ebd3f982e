"""Views of history are rows that other engines take as they are."""

from __future__ import annotations

import shutil
from pathlib import Path

import duckdb
import pandas as pd
import polars as pl
import pytest

import ledger
from ledger import RenameColumn, Table
from tests.lakes import data_file, lake_on, memory, orders


@pytest.fixture(scope="module")
def table() -> Table:
    found = orders(lake_on(memory()))
    found.append([data_file("a.parquet")], author="etl")
    found.alter([RenameColumn(("amount",), "total")], author="ann", message="a better name")
    return found


def test_history_is_rows_for_pandas_duckdb_and_polars(table: Table) -> None:
    history = table.history()

    frame = pd.DataFrame(list(history))
    assert list(frame["kind"]) == ["renameColumn", "commitSnapshot", "createTable"]
    assert frame["what"][0] == "renamed column amount to total (id 2)"
    assert pl.DataFrame(history)["author"].to_list() == ["ann", "etl", "tester"]
    arrow = history.to_arrow()
    result = duckdb.sql("SELECT version FROM arrow WHERE rows = 10")
    assert result is not None
    assert result.fetchall() == [(1,)]
    assert arrow.schema.field("time").type.tz == "UTC"


def test_rows_are_times_and_whole_numbers_to_pandas(table: Table) -> None:
    plain = pd.DataFrame(table.history())
    assert str(plain["time"].dtype).startswith("datetime64[")
    assert plain["time"].max() == table.history().to_pandas()["time"].max()

    frame = table.history().to_pandas()
    assert (str(frame["field_id"].dtype), frame["time"].dt.tz is not None) == ("Int64", True)
    blame = table.blame()
    assert list(blame.to_pandas()["subject"]) == [row["subject"] for row in blame.rows]
    assert " UTC</td>" in table.history()._repr_html_()


def test_a_filtered_history_has_its_columns_even_without_rows(table: Table) -> None:
    nothing = table.history(author="nobody").to_arrow()

    assert nothing.num_rows == 0
    assert "field_id" in nothing.column_names


def test_duckdb_reads_history_and_blame_themselves(table: Table) -> None:
    history, blame = table.history(), table.blame()
    assert len(blame) > 0
    for _ in range(2):
        rows = duckdb.sql("SELECT version FROM history WHERE rows = 10").fetchall()
        assert rows == [(1,)] == [(each["version"],) for each in history if each["rows"] == 10]
        assert ("column total",) in duckdb.sql("SELECT DISTINCT subject FROM blame").fetchall()


def test_blame_and_diff_are_arrow_too(table: Table) -> None:
    blame = pl.DataFrame(table.blame().rows)
    assert blame.filter(pl.col("aspect") == "name")["author"].to_list() == ["ann"]

    rows = table.diff(0).to_arrow().to_pylist()
    assert {"what": "field 2", "before": "amount INT", "after": "total INT"} in rows


def test_a_ledgers_history_is_in_the_order_of_time() -> None:
    lake = lake_on(memory())
    orders(lake)

    times = lake.history().to_arrow()["time"].to_pylist()

    assert times == sorted(times, reverse=True)
    assert {row["table"] for row in lake.history()} == {"", "shop.orders"}


def test_a_ledgers_history_is_narrowed_across_tables() -> None:
    lake = lake_on(memory())
    one = orders(lake)
    lake.create_database("free")
    two = lake.create_table("free.other", {"id": "INT"}, author="ann")
    one.alter([RenameColumn(("amount",), "total")], author="ann")
    two.alter([RenameColumn(("id",), "key")], author="bob")

    said = lake.history(author="ann", kinds=["renameColumn"]).to_arrow().to_pylist()
    assert [(each["table"], each["column"]) for each in said] == [("shop.orders", "amount")]
    rows = pl.DataFrame(lake.history("free"))
    assert rows["kind"].to_list() == ["renameColumn", "createTable"]
    assert [(each.table, each.version) for each in lake.entries("shop", last=0)] == [
        ("shop.orders", 0)
    ]


def test_the_whole_ledgers_log_has_dropped_and_renamed_tables_and_says_so() -> None:
    lake = lake_on(memory())
    one = orders(lake)
    one.append([data_file("a.parquet")])
    lake.rename_table("shop.orders", "shop.sales")
    lake.table("shop.sales").create_tag("v1")
    lake.drop_table("shop.sales", message="not wanted")
    lake.create_table("shop.sales", {"id": "INT"})

    entries = [(each.label, each.kinds) for each in lake.entries()]

    was, gone = "shop.sales (then shop.orders, dropped)", "shop.sales (dropped)"
    assert entries == [
        ("", ("createTable",)),
        ("shop.sales", ("createTable",)),
        ("", ("dropTable",)),
        (gone, ("dropTable",)),
        (gone, ("createTag",)),
        ("", ("renameTable",)),
        (was, ("commitSnapshot",)),
        ("", ("createTable",)),
        (was, ("createTable",)),
        ("", ("createDatabase",)),
    ]
    assert [each.label for each in lake.entries("shop", kinds=["createTag"])] == [gone]
    assert "shop.sales (dropped)" in lake.report()


def test_a_dropped_table_whose_folder_is_gone_is_left_out(tmp_path: Path) -> None:
    lake = ledger.open(str(tmp_path))
    orders(lake)
    lake.drop_table("shop.orders")
    shutil.rmtree(tmp_path / "shop.db" / "orders")

    assert [each.kinds for each in lake.entries()] == [
        ("dropTable",),
        ("createTable",),
        ("createDatabase",),
    ]
