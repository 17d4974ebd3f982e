"""Delta tables under independent readers: delta-rs, DuckDB's extension, Polars.

Every snapshot of random lives, current and older, reads as plain pyarrow reads the live files.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import ledger
from ledger import (
    AddColumn,
    DropColumn,
    Move,
    RenameColumn,
    Schema,
    SchemaChange,
    Table,
    UpdateColumnPosition,
    UpdateColumnType,
)
from ledger.model import read_type
from ledger.table_handle import handle_of
from projections.delta import DELTA
from projections.delta.planned import LIMITS
from tests.projections.delta.projecting import Left
from tests.readers.delta_life import PARTITIONS, Life, Row, plain
from tests.readers.engines import duckdb_connection
from tests.readers.lakehouse import add_rows

deltalake = pytest.importorskip("deltalake")


def life(
    folder: Path, seed: int, steps: int = 16, interval: int = 4, **how: Any
) -> tuple[Life, Table]:
    """Return a life of some steps, projected on the way and at its end."""
    lake = ledger.open(str(folder), author="ada@prod")
    lake.create_database("shop")
    options = {"ledger.formats": "delta", "delta.checkpointInterval": str(interval)}
    found = Life(lake, folder, random.Random(seed), options, **how)
    table = found.begin("shop.orders")
    for _ in range(3):
        found.add(table)
    for number in range(steps):
        found.step(table)
        if number % 5 == 0:
            DELTA.project(handle_of(table))
    DELTA.project(handle_of(table))
    assert DELTA.verify(handle_of(table)).is_empty
    return found, table


def folder_of(table: Table) -> str:
    return table.location.removeprefix("file://")


def versions(table: Table) -> dict[int, int]:
    """Return the Delta version of each snapshot, by what commits say of themselves."""
    infos = Left.by(table).infos()
    return {
        int(info["operationParameters"]["snapshotId"]): version
        for version, info in infos.items()
        if "snapshotId" in info["operationParameters"]
    }


def delta_rs(folder: str, version: int) -> tuple[list[str], list[Row]]:
    found = deltalake.DeltaTable(folder, version=version).to_pyarrow_table()
    return found.column_names, _rows(found.to_pylist())


def delta_rs_query(folder: str, version: int) -> tuple[list[str], list[Row]]:
    table = deltalake.DeltaTable(folder, version=version)
    found = pa.table(
        deltalake.QueryBuilder().register("t", table).execute("select * from t").read_all()
    )
    return found.column_names, _rows(found.to_pylist())


def duckdb(folder: str, version: int) -> tuple[list[str], list[Row]]:
    with duckdb_connection("delta") as connection:
        connection.execute("SET TimeZone = 'UTC'")
        query = "select * from delta_scan($1, version => $2)"
        found: Any = connection.execute(query, [folder, version]).to_arrow_table()
    assert found is not None
    return found.column_names, _rows(found.to_pylist())


def polars(folder: str, version: int) -> tuple[list[str], list[Row]]:
    import polars as pl

    found = pl.scan_delta(folder, version=version).collect()
    # It has no maps: they are lists of structs.
    rows = [
        {name: _pairs(value) if name == "pairs" else value for name, value in row.items()}
        for row in found.to_dicts()
    ]
    return found.columns, _rows(rows)


def _pairs(value: list[dict[str, Any]] | None) -> list[tuple[Any, Any]] | None:
    return None if value is None else [(each["key"], each["value"]) for each in value]


def _rows(found: list[dict[str, Any]]) -> list[Row]:
    return sorted((tuple(plain(each) for each in row.values()) for row in found), key=repr)


Reader = Callable[[str, int], tuple[list[str], list[Row]]]


def assert_read(reader: Reader, life: Life, table: Table) -> None:
    there = versions(table)
    assert len(there) == len(life.at_snapshot) >= 3
    first, *others, last = life.at_snapshot
    for snapshot_id in (first, *random.Random(last).sample(others, min(3, len(others))), last):
        names, rows = life.at_snapshot[snapshot_id]
        found_names, found = reader(folder_of(table), there[snapshot_id])
        assert (tuple(found_names), found) == (names, rows), snapshot_id


@pytest.fixture(scope="module", params=range(2))
def plain_life(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Life, Table]:
    return life(tmp_path_factory.mktemp("plain"), request.param, has_walls=bool(request.param))


@pytest.fixture(scope="module", params=range(3))
def mapped_life(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Life, Table]:
    return life(tmp_path_factory.mktemp("mapped"), request.param, is_mapped=True)


@pytest.mark.parametrize("reader", [delta_rs, delta_rs_query, duckdb, polars])
def test_every_version_reads_as_its_files_do(
    plain_life: tuple[Life, Table], reader: Reader
) -> None:
    assert_read(reader, *plain_life)


@pytest.mark.parametrize("reader", [delta_rs_query, duckdb])
def test_every_version_reads_as_its_files_do_whatever_columns_are_called(
    mapped_life: tuple[Life, Table], reader: Reader
) -> None:
    assert_read(reader, *mapped_life)


@pytest.mark.parametrize("partition", PARTITIONS)
def test_partitions_of_every_type_are_read(tmp_path: Path, partition: str) -> None:
    found, table = life(tmp_path, 7, steps=3, partition=partition)
    for reader in (delta_rs, delta_rs_query, duckdb, polars):
        assert_read(reader, found, table)


def test_only_delta_rs_scan_misreads_a_partition_below_zero(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(PARTITIONS, "p_decimal", ("DECIMAL(9,2)", (Decimal("-1.50"),)))
    found, table = life(tmp_path, 7, steps=0, partition="p_decimal")
    for reader in (delta_rs_query, duckdb, polars):
        assert_read(reader, found, table)
    with pytest.raises(pa.ArrowInvalid, match="'-1.-50' is not a valid decimal"):
        assert_read(delta_rs, found, table)


def test_which_readers_open_mapped_and_widened_tables(tmp_path: Path) -> None:
    found, table = life(tmp_path, 7, steps=0)
    table.alter([RenameColumn(("name",), "label")])
    DELTA.project(handle_of(table))
    for reader in (delta_rs, polars):
        with pytest.raises(deltalake.exceptions.DeltaProtocolError, match="columnMapping"):
            reader(folder_of(table), 4)
    table.alter([UpdateColumnType(("small",), "INT")])
    DELTA.project(handle_of(table))
    with pytest.raises(deltalake.exceptions.DeltaError, match="TypeWidening"):
        delta_rs_query(folder_of(table), 5)
    names, rows = duckdb(folder_of(table), 5)
    assert "label" in names
    assert rows == found.at_snapshot[3][1]


STRUCT = "ROW<x STRING, y STRING>"
SHAPES: dict[str, tuple[str, tuple[str, ...], Callable[[Any], Any]]] = {
    "struct": ("{}", (), lambda value: value),
    "list": ("ARRAY<{}>", ("element",), lambda value: [value]),
    "map": ("MAP<STRING NOT NULL, {}>", ("value",), lambda value: [("k", value)]),
    "list in a map": (
        "MAP<STRING NOT NULL, ARRAY<{}>>",
        ("value", "element"),
        lambda value: [("k", [value])],
    ),
    "struct in a map": (
        "MAP<STRING NOT NULL, ROW<s {}>>",
        ("value", "s"),
        lambda value: [("k", {"s": value})],
    ),
    "map in a struct": (
        "ROW<m MAP<STRING NOT NULL, {}>>",
        ("m", "value"),
        lambda value: {"m": [("k", value)]},
    ),
    "map in a map": (
        "MAP<STRING NOT NULL, MAP<STRING NOT NULL, {}>>",
        ("value", "value"),
        lambda value: [("a", [("k", value)])],
    ),
}
"""Types with a struct in them, the path to it, and a value from one of the struct."""

Member = Callable[[str], tuple[str, ...]]
MEMBER_CHANGES: dict[str, tuple[Callable[[Member], list[SchemaChange]], dict[str, Any]]] = {
    "an added member": (
        lambda at: [AddColumn(at("z"), "STRING")],
        {"x": "X", "y": "Y", "z": None},
    ),
    "an added first member": (
        lambda at: [AddColumn(at("z"), "STRING", move=Move("z", "FIRST"))],
        {"z": None, "x": "X", "y": "Y"},
    ),
    "a dropped member": (lambda at: [DropColumn(at("y"))], {"x": "X"}),
    "a renamed member": (lambda at: [RenameColumn(at("y"), "w")], {"x": "X", "w": "Y"}),
    "a moved member": (
        lambda at: [UpdateColumnPosition(Move("y", "FIRST"), at("y"))],
        {"y": "Y", "x": "X"},
    ),
    "as many members": (
        lambda at: [AddColumn(at("z"), "STRING"), DropColumn(at("y"))],
        {"x": "X", "z": None},
    ),
}
"""Changes of a struct's members, and what an older file's struct then reads as."""


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("change", MEMBER_CHANGES)
def test_a_plan_warns_of_the_changes_of_structs_that_delta_rs_misreads_and_only_of_those(
    tmp_path: Path, change: str, shape: str
) -> None:
    lake = ledger.open(str(tmp_path))
    lake.create_database("shop")
    text, path, within = SHAPES[shape]
    columns: dict[str, Any] = {"id": "INT", "c": read_type(text.format(STRUCT))}
    schema = Schema.of(columns, options={"ledger.formats": "delta"})
    table = lake.create_table("shop.t", schema)
    of, value = MEMBER_CHANGES[change]
    changes = of(lambda name: ("c", *path, name))
    assert table.plan(changes).warnings == ()
    add_rows(table, "1.parquet", [{"id": 1, "c": within({"x": "X", "y": "Y"})}])
    said = table.plan(changes).warnings
    table.alter(changes)
    DELTA.project(handle_of(table))

    expected = _rows([{"id": 1, "c": within(value)}])
    assert _reads_as(duckdb, table, expected)
    is_mapped = any("Delta maps columns by name" in each for each in said)
    for reader, name in ((delta_rs, "to_pyarrow_table"), (delta_rs_query, "QueryBuilder")):
        says = [each.says for each in LIMITS if name in each.reader]
        is_warned = any(each in warning for each in says for warning in said)
        is_closed = reader is delta_rs and is_mapped
        assert _reads_as(reader, table, expected) is not (is_warned or is_closed), name


def _reads_as(reader: Reader, table: Table, expected: list[Row]) -> bool:
    try:
        return reader(folder_of(table), 2)[1] == expected
    except Exception:  # noqa: BLE001 - delta-rs raises no narrower error
        return False


def test_delta_rs_reads_structs_inside_maps_by_position(tmp_path: Path) -> None:
    assert any("by position" in each.says for each in LIMITS)
    lake = ledger.open(str(tmp_path))
    lake.create_database("shop")
    kind = read_type(f"MAP<STRING NOT NULL, {STRUCT}>")
    schema = Schema.of({"id": "INT", "c": kind}, options={"ledger.formats": "delta"})
    table = lake.create_table("shop.t", schema)
    add_rows(table, "1.parquet", [{"id": 1, "c": [("k", {"x": "X", "y": "Y"})]}])
    table.alter([AddColumn(("c", "value", "z"), "STRING"), DropColumn(("c", "value", "y"))])
    DELTA.project(handle_of(table))
    misread = _rows([{"id": 1, "c": [("k", {"x": "X", "z": "Y"})]}])
    assert delta_rs_query(folder_of(table), 2)[1] == misread


def test_readers_that_support_table_features_may_read_and_not_write(tmp_path: Path) -> None:
    found, table = life(tmp_path, 7, steps=0)
    folder, rows = folder_of(table), pa.table({"id": [1]})
    before = Left.by(table).files
    writes: tuple[Callable[[], object], ...] = (
        lambda: deltalake.write_deltalake(folder, rows, mode="append", schema_mode="merge"),
        lambda: deltalake.DeltaTable(folder).delete(),
        lambda: deltalake.DeltaTable(folder).alter.set_table_properties(
            {"delta.appendOnly": "true"}
        ),
    )
    for write in writes:
        with pytest.raises(deltalake.exceptions.DeltaError, match=r'Unknown\("lakeledger"\)'):
            write()
    assert Left.by(table).files == before
    for reader in (delta_rs, delta_rs_query, duckdb, polars):
        assert_read(reader, found, table)


def test_files_outside_the_folder_are_read_by_readers_of_absolute_paths(
    tmp_path: Path,
) -> None:
    lake = ledger.open(str(tmp_path / "lake"))
    lake.create_database("shop")
    options = {"ledger.formats": "delta"}
    table = lake.create_table("shop.t", Schema.of({"id": "BIGINT"}, options=options))
    elsewhere = tmp_path / "a b" / "x.parquet"
    elsewhere.parent.mkdir()
    pq.write_table(pa.table({"id": [1, 2]}), elsewhere)
    table.add_files([f"file://{elsewhere}"])
    DELTA.project(handle_of(table))
    for reader in (delta_rs_query, duckdb):
        assert reader(folder_of(table), 1) == (["id"], [(1,), (2,)])
    for reader in (delta_rs, polars):
        with pytest.raises(FileNotFoundError, match="x.parquet"):
            reader(folder_of(table), 1)
