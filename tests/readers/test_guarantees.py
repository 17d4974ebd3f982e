"""Iceberg's four guarantees of schema evolution, on real rows, with and without field ids.

Added columns never read another column's values; dropping, updating and moving a column changes
no other one. What is expected comes from a model that knows neither ids nor positions.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyiceberg.table import StaticTable

import ledger
from ledger import (
    AddColumn,
    DropColumn,
    FormatError,
    Ledger,
    RenameColumn,
    Schema,
    SchemaChange,
    SetOption,
    Table,
)
from ledger.model import read_type
from projections.iceberg import Names
from tests.readers.iceberg_runtime import catalog_of
from tests.readers.lakehouse import Rows, add_rows, by_id
from tests.readers.logical_columns import ordered
from tests.readers.logical_rows import RETURNING, LogicalTable, begun

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Ledger:
    lake = ledger.open(str(tmp_path_factory.mktemp("guarantees")))
    lake.create_database("shop")
    return lake


def _head(table: Table) -> Rows:
    """Return what PyIceberg reads by itself in the newest metadata file."""
    version = table.project("iceberg")
    path = f"{table.location}/{Names(table.state.table_id).metadata(version)}"
    return by_id(StaticTable.from_metadata(path).scan().to_arrow().to_pylist())


def _check(logical: LogicalTable) -> None:
    table = logical.table
    assert ordered(_head(table)) == ordered(logical.expected())
    at = table.at()
    assert ordered(by_id(at.to_arrow().to_pylist())) == ordered(logical.expected())
    assert at.schema.names == tuple(each.name for each in logical.columns)
    for number in list(logical.snapshots)[-2:]:
        read = table.at(snapshot=number).to_arrow()
        assert ordered(by_id(read.to_pylist())) == ordered(logical.expected(number)), number


@settings(
    max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(random=st.randoms(use_true_random=False))
def test_rows_keep_their_values_through_any_evolution(lake: Ledger, random: Random) -> None:
    number = len(lake.tables("shop"))
    logical = begun(lake, f"shop.t{number}", random, **{"ledger.formats": "paimon,iceberg"})
    for step in range(24):
        logical.step()
        if step % 8 == 7:
            _check(logical)


def test_seeded_evolutions_meet_every_kind_of_refusal_and_reading(lake: Ledger) -> None:
    seen = {"refused": 0, "named": 0, "nested": 0, "rows": 0}
    for seed in (9, 13, 17, 19):
        logical = begun(lake, f"shop.seed{seed}", Random(seed))
        for _ in range(36):
            logical.step()
        _check(logical)
        seen["refused"] += logical.refused
        seen["named"] += sum(bool(each.names) for each in logical.files)
        seen["nested"] += sum(bool(each.members) for each in logical.columns)
        seen["rows"] += len(logical.expected())
    assert all(seen.values()), seen


def test_columns_that_come_back_hold_their_values_through_any_evolution(lake: Ledger) -> None:
    came_back = nested = 0
    for seed in (5, 8, 11):
        logical = begun(lake, f"shop.back{seed}", Random(seed))
        logical.happenings = RETURNING
        for step in range(60):
            logical.step()
            if step % 20 == 19:
                _check(logical)
        came_back += logical.came_back
        nested += sum(bool(each.members) for each in logical.columns)
    assert (came_back > 12, nested > 1) == (True, True), (came_back, nested)


def _two_columns(lake: Ledger, name: str, **options: str) -> Table:
    columns = {"id": "BIGINT NOT NULL", "a": "INT", "b": "INT"}
    return lake.create_table(f"shop.{name}", Schema.of(columns, options=options))


_ROW = {"id": 1, "a": 10, "b": 20}
_SWAP = [RenameColumn(("a",), "c"), RenameColumn(("b",), "a"), RenameColumn(("c",), "b")]
_READD: list[SchemaChange] = [DropColumn(("a",)), AddColumn(("a",), "INT")]


@pytest.mark.parametrize(
    ("changes", "row"),
    [
        (_SWAP, {"id": 1, "b": 10, "a": 20}),
        (_READD, {"id": 1, "b": 20, "a": None}),
    ],
    ids=["swapped", "added again"],
)
@pytest.mark.parametrize("files", ["with ids", "with names alone"])
def test_a_name_that_files_without_ids_know_otherwise_waits_until_they_expire(
    lake: Ledger, changes: list[Any], row: dict[str, Any], files: str
) -> None:
    table = _two_columns(lake, f"waits{len(lake.tables('shop'))}")
    add_rows(table, "old.parquet", [_ROW], has_ids=files == "with ids")
    refused: list[FormatError] = []
    for change in changes:
        try:
            table.alter([change])
        except FormatError as error:
            refused.append(error)
            break
    if files == "with ids":
        assert refused == []
        assert _head(table) == [row]
        return

    (refusal,) = refused
    assert refusal.format == "iceberg"
    assert "files without field ids" in refusal.rule
    assert "expire the snapshots" in refusal.alternative
    # Nothing was written: the column that the name is for is still there or still gone.
    kept = {name: value for name, value in _ROW.items() if name in table.at().schema.names}
    assert {each: _head(table)[0][each] for each in kept} == kept

    rest = changes[changes.index(change) :]
    table.delete_files(["old.parquet"])
    with pytest.raises(FormatError):
        table.alter([change])
    table.expire_snapshots(before=2)
    for each in rest:
        table.alter([each])
    new = {"id": 2, "a": 30, "b": 40}
    add_rows(table, "new.parquet", [new], has_ids=False)
    assert _head(table) == [{name: new[name] for name in table.at().schema.names}]


def test_without_iceberg_such_a_name_is_free_and_iceberg_cannot_come_back(lake: Ledger) -> None:
    table = _two_columns(lake, "paimon", **{"ledger.formats": "paimon"})
    add_rows(table, "old.parquet", [_ROW], has_ids=False)
    for each in _READD:
        table.alter([each])
    assert table.at().schema.names == ("id", "b", "a")
    with pytest.raises(FormatError, match="files without field ids"):
        table.alter([SetOption("ledger.formats", "paimon,iceberg")])
    add_rows(table, "new.parquet", [{"id": 2, "a": 30, "b": 40}], has_ids=False)
    table.delete_files(["old.parquet"])
    table.expire_snapshots(before=3)
    table.alter([SetOption("ledger.formats", "paimon,iceberg")])
    assert _head(table) == [{"id": 2, "b": 40, "a": 30}]


def test_pyiceberg_reads_null_collections_of_rows_as_empty_ones(lake: Ledger) -> None:
    # PyIceberg 0.12 puts them together again from their offsets alone; Spark's reader does not.
    columns: dict[str, Any] = {
        "id": "INT",
        "rows": read_type("ARRAY<ROW<x INT>>"),
        "map": read_type("MAP<STRING, ROW<x INT>>"),
        "numbers": read_type("ARRAY<INT>"),
        "row": read_type("ROW<x INT>"),
    }
    table = lake.create_table("shop.nulls", Schema.of(columns))
    add_rows(table, "1.parquet", [dict.fromkeys(columns) | {"id": 1}])
    assert _head(table) == [{"id": 1, "rows": [], "map": [], "numbers": None, "row": None}]


@pytest.mark.parametrize("seed", [17, 19])
def test_spark_keeps_the_values_through_the_same_evolutions(
    lake: Ledger, iceberg: SparkSession, seed: int
) -> None:
    logical = begun(lake, f"shop.spark{seed}", Random(seed))
    for step in range(36):
        logical.step()
        if step % 12 == 11:
            logical.table.project("iceberg")
            catalog = catalog_of(lake.url)
            source = f"{catalog}.`shop.db`.spark{seed}"
            assert _spark(iceberg, f"SELECT * FROM {source}") == ordered(logical.expected())  # noqa: S608 - written here
    for number in logical.snapshots:
        found = _spark(iceberg, f"SELECT * FROM {source} VERSION AS OF {number}")  # noqa: S608 - written here
        assert found == ordered(logical.expected(number)), number


def _spark(session: SparkSession, query: str) -> list[Any]:
    rows = by_id(each.asDict(recursive=True) for each in session.sql(query).collect())
    names = session.sql(query).schema
    return [ordered(_as_read(row, names)) for row in rows]


def _as_read(value: Any, kind: Any) -> Any:
    """Return Spark's row with its maps as lists of pairs."""
    match kind.typeName(), value:
        case _, None:
            return None
        case "struct", _:
            return {each.name: _as_read(value[each.name], each.dataType) for each in kind}
        case "array", _:
            return [_as_read(each, kind.elementType) for each in value]
        case "map", _:
            return [(name, _as_read(each, kind.valueType)) for name, each in value.items()]
        case _:
            return value
