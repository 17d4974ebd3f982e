"""One table, several readers: Paimon's, Iceberg's and Polars' find the same rows."""

from __future__ import annotations

from random import Random
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import ledger
from ledger import (
    AddColumn,
    DropColumn,
    Ledger,
    RenameColumn,
    Schema,
    SchemaChange,
    UpdateColumnType,
)
from ledger.table_handle import handle_of
from projections.iceberg import Names
from tests.pypaimon_or_skip import CatalogFactory
from tests.readers.lakehouse import Rows, add_rows, by_id
from tests.readers.logical_columns import ordered
from tests.readers.logical_rows import LogicalTable, begun_by_day


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Ledger:
    lake = ledger.open(str(tmp_path_factory.mktemp("same")))
    lake.create_database("shop")
    return lake


def _paimon(logical: LogicalTable, **options: str) -> Rows:
    """Return what pypaimon reads, with what it calls `scan.snapshot_id` and `scan.tag_name`."""
    lake_url = handle_of(logical.table).ledger_url
    catalog = CatalogFactory.create({"warehouse": lake_url})
    dashed = {f"scan.{key.replace('_', '-')}": value for key, value in options.items()}
    table = catalog.get_table(str(logical.table.identifier)).copy(dashed)
    builder = table.new_read_builder()
    rows = builder.new_read().to_arrow(builder.new_scan().plan().splits())
    return by_id(rows.to_pylist())


def _iceberg(logical: LogicalTable, **instant: Any) -> Rows:
    return by_id(logical.table.at(**instant).to_arrow().to_pylist())


def _check(logical: LogicalTable) -> None:
    table = logical.table
    table.project("paimon")
    if not logical.snapshots:
        assert _iceberg(logical) == []
        return
    assert ordered(_iceberg(logical)) == ordered(logical.expected())
    assert ordered(_paimon(logical)) == ordered(logical.expected())
    first = table.state.earliest_snapshot_id
    for number in logical.snapshots:
        wanted = ordered(logical.expected(number))
        assert ordered(_iceberg(logical, snapshot=number)) == wanted, number
        # What a tag alone keeps, Paimon finds by the tag.
        if number >= first:
            assert ordered(_paimon(logical, snapshot_id=str(number))) == wanted, number
    for name, number in logical.tags.items():
        wanted = ordered(logical.expected(number))
        assert ordered(_iceberg(logical, tag=name)) == wanted, name
        assert ordered(_paimon(logical, tag_name=name)) == wanted, name


@settings(
    max_examples=3, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(random=st.randoms(use_true_random=False))
def test_both_formats_readers_find_the_same_rows(lake: Ledger, random: Random) -> None:
    logical = begun_by_day(lake, f"shop.t{len(lake.tables('shop'))}", random)
    for step in range(30):
        logical.step()
        if step in (14, 29):
            _check(logical)


@pytest.mark.parametrize("seed", [1, 3])
def test_seeded_histories_are_complete(lake: Ledger, seed: int) -> None:
    logical = begun_by_day(lake, f"shop.seed{seed}", Random(seed))
    for _ in range(60):
        logical.step()
    _check(logical)
    kinds = {
        event.commit_kind if hasattr(event, "commit_kind") else type(event).__name__
        for commit in logical.table.events()
        for transaction in commit.transactions
        for event in transaction.events
    }
    assert kinds >= {"APPEND", "OVERWRITE", "COMPACT", "RolledBack", "TagCreated"}
    assert len(logical.snapshots) > 3


def test_polars_reads_the_head_through_every_change(lake: Ledger) -> None:
    columns = {"id": "BIGINT NOT NULL", "a": "INT", "b": "STRING"}
    table = lake.create_table("shop.polars", Schema.of(columns))
    row: dict[str, Any] = {"a": 5, "b": "x"}
    changes: list[tuple[list[SchemaChange], dict[str, Any]]] = [
        ([RenameColumn(("a",), "c")], {"c": 6, "b": "y"}),
        ([AddColumn(("d",), "DATE")], {"c": 7, "b": None}),
        ([UpdateColumnType(("c",), "BIGINT")], {"c": 2**40}),
        ([DropColumn(("b",))], {"c": 9}),
        ([AddColumn(("b",), "INT")], {"b": 10}),
    ]
    add_rows(table, "0.parquet", [{"id": 0, **row}])
    for number, (change, next_row) in enumerate(changes, 1):
        table.alter(change)
        add_rows(table, f"{number}.parquet", [{"id": number, **next_row}])
        expected = by_id(table.at().to_arrow().to_pylist())
        path = f"{table.location}/{Names(table.state.table_id).metadata(table.state.version)}"
        assert by_id(pl.scan_iceberg(path).collect().to_dicts()) == expected
    assert [each["b"] for each in expected] == [None] * 5 + [10]
    assert [each["c"] for each in expected] == [5, 6, 7, 2**40, 9, None]
    # Polars 1.44 reads an older snapshot by the newest schema and panics, so: the metadata of then.
    table.project("iceberg", version=1)
    path = f"{table.location}/{Names(table.state.table_id).metadata(1)}"
    assert pl.scan_iceberg(path).collect().to_dicts() == [{"id": 0, **row}]
