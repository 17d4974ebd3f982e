"""Promoted Delta tables with mapped columns are read as Iceberg, whatever ids their files have."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

import ledger
from ledger import AddColumn, DropColumn, FormatError, RenameColumn, SetOption, Table
from tests.projections.delta.importing.test_following import add, metadata, write
from tests.projections.iceberg.importing.test_name_mapping import (
    by_duckdb,
    by_ledger,
    by_pyiceberg,
)
from tests.projections.importing.test_nested_ids import array, column, mapping, struct, with_ids
from tests.readers.lakehouse import folder_of

Row = dict[str, Any]
PROTOCOL = {"protocol": {"minReaderVersion": 2, "minWriterVersion": 5}}
INNER = struct(column("m", 3, "long", "col-3"))
MEMBER = pa.struct([("col-3", pa.int64())])
KINDS: dict[str, tuple[Any, pa.DataType, Any, Any]] = {
    "plain": ("long", pa.int64(), 5, 5),
    "list": (array("long"), pa.list_(pa.int64()), [5, None], [5, None]),
    "lists": (array(array("long")), pa.list_(pa.list_(pa.int64())), [[5]], [[5]]),
    "map": (mapping("long"), pa.map_(pa.string(), pa.int64()), [("k", 5)], [("k", 5)]),
    "struct": (INNER, MEMBER, {"col-3": 5}, {"m": 5}),
    "structs": (array(INNER), pa.list_(MEMBER), [{"col-3": 5}], [{"m": 5}]),
    "map of structs": (
        mapping(INNER),
        pa.map_(pa.string(), MEMBER),
        [("k", {"col-3": 5})],
        [("k", {"m": 5})],
    ),
    "list in a struct": (
        struct(column("m", 3, array("long"), "col-3")),
        pa.struct([("col-3", pa.list_(pa.int64()))]),
        {"col-3": [5]},
        {"m": [5]},
    ),
}
"""Delta's type of the column `v`, Arrow's, and a value under the physical and the own names."""

NAMED_IDS: dict[str, int | None] = {
    "col-1": 1,
    "col-2": 2,
    **dict.fromkeys(("col-2.col-3", "col-2.element.col-3", "col-2.value.col-3"), 3),
}
"""The ids that Delta's writers on Spark give: those of named fields alone."""


def source_file(folder: Path, name: str, number: int, kind: str, *, has_ids: bool) -> Row:
    _, arrow, value, _ = KINDS[kind]
    schema = pa.schema([("col-1", pa.int64()), ("col-2", arrow)])
    kept = with_ids(schema, NAMED_IDS) if has_ids else schema
    rows = [{"col-1": number, "col-2": value}]
    parquet.write_table(pa.Table.from_pylist(rows, schema=kept), folder / name)
    size = (folder / name).stat().st_size
    return add(name, size=size, stats='{"numRecords":1}')


def promoted(folder: Path, kind: str, ids: list[bool], mode: str = "name") -> Table:
    place = folder / "source"
    place.mkdir()
    fields = column("id", 1, "long", "col-1"), column("v", 2, KINDS[kind][0], "col-2")
    conf = {"delta.columnMapping.mode": mode, "delta.columnMapping.maxColumnId": "3"}
    files = [
        source_file(place, f"{n}.parquet", n, kind, has_ids=has_ids)
        for n, has_ids in enumerate(ids)
    ]
    write(place, 0, PROTOCOL, metadata(*fields, configuration=conf), *files)
    return owned(folder, place)


def owned(folder: Path, place: Path) -> Table:
    lake = ledger.open(folder / "lake")
    lake.import_table("d.t", str(place), format_name="delta")
    lake.promote("d.t")
    return lake.table("d.t")


def declared(table: Table) -> Table:
    table.alter([SetOption("ledger.formats", "delta,iceberg")])
    return table


def assert_read(
    table: Table, rows: list[Row], readers: tuple[Callable[[Table], list[Row]], ...]
) -> None:
    wanted = {each["id"]: each for each in rows}
    for reader in readers:
        assert {each["id"]: each for each in reader(table)} == wanted


@pytest.mark.parametrize("ids", [[True], [False], [True, False]], ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_files_are_read_whatever_ids_they_have(tmp_path: Path, kind: str, ids: list[bool]) -> None:
    table = declared(promoted(tmp_path, kind, ids))
    value = KINDS[kind][3]
    rows = [{"id": number, "v": value} for number in range(len(ids))]
    # DuckDB reads no elements without ids in files with ids on other fields.
    is_read = kind in {"plain", "struct"} or not any(ids)
    readers = (by_ledger, by_pyiceberg, *([by_duckdb] if is_read else []))
    assert_read(table, rows, readers)
    table.alter([RenameColumn(("v",), "w"), AddColumn(("n",), "INT")])
    assert_read(table, [{"id": e["id"], "w": e["v"], "n": None} for e in rows], readers)
    table.alter([DropColumn(("w",))])
    table.alter([AddColumn(("w",), "STRING")])
    assert_read(table, [{"id": e["id"], "n": None, "w": None} for e in rows], readers)


@pytest.mark.parametrize("kind", KINDS)
def test_columns_mapped_by_id_are_read_by_id(tmp_path: Path, kind: str) -> None:
    table = declared(promoted(tmp_path, kind, [True], "id"))
    assert_read(table, [{"id": 0, "v": KINDS[kind][3]}], (by_ledger, by_pyiceberg))


def plain_column(name: str) -> Row:
    return {"name": name, "type": "long", "nullable": True, "metadata": {}}


def upgraded(folder: Path, *renamed: Row) -> Table:
    """A table that was mapped after its first file, and then changed its columns' names."""
    place = folder / "source"
    place.mkdir()
    plain = [plain_column("a"), plain_column("b")]
    schema = pa.schema([("a", pa.int64()), ("b", pa.int64())])
    for number, kept in enumerate((schema, with_ids(schema, {"a": 1, "b": 2}))):
        rows = [{"a": number, "b": number + 10}]
        parquet.write_table(pa.Table.from_pylist(rows, schema=kept), place / f"{number}.parquet")
    said = {"size": (place / "0.parquet").stat().st_size, "stats": '{"numRecords":1}'}
    conf = {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "3"}
    mapped = column("a", 1, "long"), column("b", 2, "long")
    write(place, 0, {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}, metadata(*plain))
    write(place, 1, add("0.parquet", **said))
    write(place, 2, PROTOCOL, metadata(*mapped, configuration=conf))
    write(place, 3, add("1.parquet", **said))
    write(place, 4, metadata(*renamed, configuration=conf))
    return owned(folder, place)


def test_files_from_before_the_mapping_are_read_by_their_names(tmp_path: Path) -> None:
    table = declared(
        upgraded(
            tmp_path,
            column("b", 1, "long", "a"),
            column("c", 2, "long", "b"),
            column("d", 3, "long", "col-3"),
        )
    )
    rows = [{"b": number, "c": number + 10, "d": None} for number in (0, 1)]
    for reader in (by_ledger, by_pyiceberg, by_duckdb):
        assert sorted(reader(table), key=lambda row: int(row["b"])) == rows


def test_a_new_file_without_ids_cannot_use_a_name_of_the_sources_files(tmp_path: Path) -> None:
    table = declared(upgraded(tmp_path, column("x", 1, "long", "a"), column("b", 2, "long")))
    table.alter([SetOption("ledger.formats", "iceberg")])
    table.alter([AddColumn(("a",), "BIGINT")])
    path = folder_of(table) / "new.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [{"x": 2, "b": 12, "a": 7}]
    parquet.write_table(pa.Table.from_pylist(rows), path)
    with pytest.raises(FormatError, match="hold field 1 under that name"):
        table.add_files([str(path)])
    kept = table.at().schema.to_arrow()
    parquet.write_table(pa.Table.from_pylist(rows, schema=kept), path)
    table.add_files([str(path)])
    found = sorted(by_ledger(table), key=lambda row: int(row["x"]))
    assert found == [{"x": n, "b": n + 10, "a": None} for n in (0, 1)] + rows


def test_a_table_whose_files_have_other_ids_than_its_columns_is_no_iceberg_table(
    tmp_path: Path,
) -> None:
    place = tmp_path / "source"
    place.mkdir()
    plain = [plain_column(each) for each in "abc"]
    conf = {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "2"}
    schema = with_ids(pa.schema([("b", pa.int64()), ("c", pa.int64())]), {"b": 1, "c": 2})
    parquet.write_table(
        pa.Table.from_pylist([{"b": 1, "c": 2}], schema=schema), place / "1.parquet"
    )
    first = {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}
    write(place, 0, first, metadata(*plain))
    write(place, 1, metadata(*plain[1:]))
    mapped = column("b", 1, "long"), column("c", 2, "long")
    write(place, 2, PROTOCOL, metadata(*mapped, configuration=conf))
    size = (place / "1.parquet").stat().st_size
    write(place, 3, add("1.parquet", size=size, stats='{"numRecords":1}'))
    table = owned(tmp_path, place)
    with pytest.raises(FormatError, match="may have Delta's field id 1 for it, and the table's is"):
        declared(table)
