"""Files without field ids are read by a name mapping, which follows the table's columns."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet
from pyiceberg.table import StaticTable

import ledger
from ledger import (
    AddColumn,
    DropColumn,
    FormatError,
    RemoveOption,
    RenameColumn,
    Schema,
    SetOption,
    Table,
    UndropColumn,
)
from ledger.model import read_type, type_to_wire
from tests.projections.iceberg.importing.writing import created
from tests.projections.importing.test_nested_ids import with_ids
from tests.readers.engines import duckdb_rows
from tests.readers.lakehouse import folder_of, without_ids

KEY = "schema.name-mapping.default"
Row = dict[str, Any]
MEMBERS = pa.struct([("a", pa.int64())])
COLUMNS = pa.schema(
    [
        ("id", pa.int64()),
        ("a", pa.string()),
        ("st", MEMBERS),
        ("li", pa.list_(MEMBERS)),
        ("mp", pa.map_(pa.string(), MEMBERS)),
    ]
)


def row(number: int, member: Row, **more: Any) -> Row:
    return {"id": number, "st": member, "li": [member], "mp": [("k", member)], **more}


def source(folder: Path, version: int, **properties: str) -> str:
    theirs = created(folder / "t", version=version)
    with theirs.update_schema() as update:
        update.union_by_name(COLUMNS)
        update.delete_column("name")
    if properties:
        with theirs.transaction() as transaction:
            transaction.set_properties(properties)
    theirs.append(pa.Table.from_pylist([row(1, {"a": 1}, a="x")], schema=COLUMNS))
    return theirs.metadata_location


def promoted(folder: Path, version: int = 2, **properties: str) -> Table:
    lake = ledger.open(folder / "lake")
    lake.import_table("d.t", source(folder, version, **properties))
    lake.promote("d.t")
    return lake.table("d.t")


def native(folder: Path) -> Table:
    lake = ledger.open(folder / "lake")
    lake.create_database("d")
    options = {"ledger.formats": "iceberg"}
    member = "ROW<a BIGINT>"
    columns: dict[str, Any] = {
        "id": "BIGINT",
        "a": "STRING",
        "st": read_type(member),
        "li": read_type(f"ARRAY<{member}>"),
        "mp": read_type(f"MAP<STRING, {member}>"),
    }
    table = lake.create_table("d.t", Schema.of(columns, options=options))
    add(table, "0", [row(1, {"a": 1}, a="x")], table.at().schema.to_arrow())
    return table


def add(table: Table, name: str, rows: list[Row], schema: pa.Schema | None = None) -> None:
    """Add a file of rows; by the table's schema without field ids, if no other is given."""
    kept = without_ids(table.at().schema.to_arrow()) if schema is None else schema
    path = folder_of(table) / "data" / f"{name}.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(pa.Table.from_pylist(rows, schema=kept), path)
    table.add_files([str(path)])


def mapping(table: Table) -> Any:
    version = table.project("iceberg")
    metadata = f"{table.location}/metadata/v{version}.metadata.json"
    text = StaticTable.from_metadata(metadata).metadata.properties.get(KEY)
    return None if text is None else json.loads(text)


def names_at(table: Table, *path: str) -> list[list[str]]:
    """The names of each entry of a mapping, inside of the entries of a path."""
    entries = mapping(table)
    for step in path:
        (entries,) = (each["fields"] for each in entries if step in each["names"])
    return [each["names"] for each in entries]


def by_ledger(table: Table) -> list[Row]:
    rows: list[Row] = table.at().to_arrow().to_pylist()
    return rows


def by_pyiceberg(table: Table) -> list[Row]:
    metadata = f"{table.location}/metadata/v{table.project('iceberg')}.metadata.json"
    rows: list[Row] = StaticTable.from_metadata(metadata).scan().to_arrow().to_pylist()
    return rows


def by_duckdb(table: Table) -> list[Row]:
    table.project("iceberg")
    return duckdb_rows(folder_of(table))


READERS = (by_ledger, by_pyiceberg, by_duckdb)


def assert_read(
    table: Table, rows: list[Row], readers: tuple[Callable[[Table], list[Row]], ...] = READERS
) -> None:
    wanted = {each["id"]: each for each in rows}
    for reader in readers:
        assert {each["id"]: each for each in reader(table)} == wanted


ORIGINS = pytest.mark.parametrize(
    "owned", [native, promoted, lambda folder: promoted(folder, 1)], ids=["native", "v2", "v1"]
)
AROUND = [("st",), ("li", "element"), ("mp", "value")]


@ORIGINS
def test_files_without_ids_are_read_after_each_change_of_columns(
    tmp_path: Path, owned: Callable[[Path], Table]
) -> None:
    table = owned(tmp_path)
    add(table, "2", [row(2, {"a": 2}, a="y")])
    rows = [row(1, {"a": 1}, a="x"), row(2, {"a": 2}, a="y")]
    assert_read(table, rows)
    table.alter([RenameColumn(("a",), "b"), *(RenameColumn((*e, "a"), "b") for e in AROUND)])
    assert_read(table, [row(1, {"b": 1}, b="x"), row(2, {"b": 2}, b="y")])
    add(table, "3", [row(3, {"b": 3}, b="z")])
    table.alter([AddColumn(("c",), "INT"), *(AddColumn((*each, "c"), "INT") for each in AROUND)])
    rows = [row(n, {"b": n, "c": None}, b=t, c=None) for n, t in ((1, "x"), (2, "y"), (3, "z"))]
    assert_read(table, rows)
    rows.append(row(4, {"b": 4, "c": 4}, b="w", c=4))
    add(table, "4", rows[3:])
    assert_read(table, rows)
    table.alter([DropColumn(("b",)), *(DropColumn((*each, "b")) for each in AROUND)])
    without = [row(e["id"], {"c": e["st"]["c"]}, c=e["c"]) for e in rows]
    assert_read(table, without)
    table.alter([UndropColumn(("b",))])
    back = [each | {"b": was["b"]} for each, was in zip(without, rows, strict=True)]
    assert_read(table, back)
    add(table, "5", [row(5, {"c": 5}, c=5, b="v")])
    assert_read(table, [*back, row(5, {"c": 5}, c=5, b="v")])


@ORIGINS
@pytest.mark.parametrize("around", [(), *AROUND])
def test_a_name_in_files_without_ids_cannot_be_given_to_another_column(
    tmp_path: Path, owned: Callable[[Path], Table], around: tuple[str, ...]
) -> None:
    table = owned(tmp_path)
    add(table, "2", [row(2, {"a": 2}, a="y")])
    table.alter([RenameColumn((*around, "a"), "b")])
    with pytest.raises(FormatError, match="files without field ids that can still be read"):
        table.alter([AddColumn((*around, "a"), "STRING")])


@ORIGINS
def test_an_undone_rename_keeps_files_of_both_names_readable(
    tmp_path: Path, owned: Callable[[Path], Table]
) -> None:
    table = owned(tmp_path)
    add(table, "2", [row(2, {"a": 2}, a="y")])
    version = table.alter([RenameColumn(("a",), "b")]).version
    add(table, "3", [row(3, {"a": 3}, b="z")])
    table.undo(version)
    assert_read(table, [row(n, {"a": n}, a=t) for n, t in ((1, "x"), (2, "y"), (3, "z"))])


def owners_mapping(table: Table) -> str:
    """A mapping of the table's columns, as engines write it."""
    metadata = f"{table.location}/metadata/v{table.project('iceberg')}.metadata.json"
    return StaticTable.from_metadata(metadata).schema().name_mapping.model_dump_json()


@ORIGINS
@pytest.mark.parametrize("around", [(), *AROUND])
def test_the_owners_mapping_follows_columns_as_in_java(
    tmp_path: Path, owned: Callable[[Path], Table], around: tuple[str, ...]
) -> None:
    table = owned(tmp_path)
    table.alter([SetOption(KEY, owners_mapping(table))])
    others = [] if around else [["id"], ["st"], ["li"], ["mp"]]

    def found() -> list[list[str]]:
        return [each for each in names_at(table, *around) if each not in others]

    assert found() == [["a"]]
    table.alter([RenameColumn((*around, "a"), "b")])
    assert found() == [["a", "b"]]
    table.alter([AddColumn((*around, "c"), "STRING")])
    assert found() == [["a", "b"], ["c"]]
    table.alter([DropColumn((*around, "c"))])
    assert found() == [["a", "b"], ["c"]]
    table.alter([AddColumn((*around, "c"), "STRING")])
    assert found() == [["a", "b"], [], ["c"]]
    table.alter([RenameColumn((*around, "c"), "a")])
    assert found() == [["b"], [], ["c", "a"]]
    table.alter([AddColumn((*around, "n"), type_to_wire(read_type("ARRAY<INT>")))])
    assert names_at(table, *around, "n") == [["element"]]


def test_names_that_columns_swap_are_swapped_in_the_mapping(tmp_path: Path) -> None:
    table = promoted(tmp_path)
    table.alter([AddColumn(("b",), "STRING"), SetOption(KEY, owners_mapping(table))])
    table.alter([AddColumn(("c",), "STRING")])
    before = {tuple(each["names"]): each["field-id"] for each in mapping(table)}
    steps = (("a", "t"), ("c", "a"), ("t", "c"))
    table.alter([RenameColumn((old,), new) for old, new in steps])
    after = {tuple(each["names"]): each["field-id"] for each in mapping(table)}
    assert (after["a",], after["c",]) == (before["c",], before["a",])


def test_a_mapping_that_a_change_sets_or_removes_is_taken_as_it_is(tmp_path: Path) -> None:
    table = promoted(tmp_path)
    own = '[{"field-id":1,"names":["id","nr"]}]'
    table.alter([RenameColumn(("id",), "key"), SetOption(KEY, own)])
    assert table.state.schema.options[KEY] == own
    table.alter([RenameColumn(("key",), "k"), RemoveOption(KEY)])
    assert mapping(table) is None
    table.alter([SetOption(KEY, "no mapping")])
    table.alter([AddColumn(("x",), "INT")])
    assert table.state.schema.options[KEY] == "no mapping"


def test_a_mapping_of_the_source_follows_after_the_promotion(tmp_path: Path) -> None:
    table = promoted(tmp_path, 2, **{KEY: '[{"field-id":1,"names":["id","nr"]}]'})
    table.alter([RenameColumn(("id",), "key")])
    assert mapping(table) == [{"field-id": 1, "names": ["id", "nr", "key"]}]
    add(table, "2", [{**row(2, {"a": 2}, a="y"), "key": 2}])
    assert names_at(table)[0] == ["id", "nr", "key"]
    assert sorted(table.at().to_arrow()["key"].to_pylist()) == [1, 2]


@ORIGINS
def test_a_file_whose_names_the_owner_gave_other_columns_needs_ids(
    tmp_path: Path, owned: Callable[[Path], Table]
) -> None:
    table = owned(tmp_path)
    (number,) = (each.id for each in table.at().schema.fields if each.name == "id")
    table.alter([SetOption(KEY, json.dumps([{"field-id": number, "names": ["id", "a"]}]))])
    with pytest.raises(FormatError, match=f"a in files without field ids is field {number}"):
        add(table, "2", [row(2, {"a": 2}, a="y")])
    add(table, "3", [row(2, {"a": 2}, a="y")], table.at().schema.to_arrow())


def test_concurrent_changes_of_columns_both_reach_the_mapping(tmp_path: Path) -> None:
    table = promoted(tmp_path)
    add(table, "2", [row(2, {"a": 2}, a="y")])
    other = ledger.open(tmp_path / "lake").table("d.t")
    assert other.state.version == table.state.version
    table.alter([RenameColumn(("a",), "b")])
    other.alter([AddColumn(("c",), "INT")])
    assert names_at(other)[1:] == [["a", "b"], ["st"], ["li"], ["mp"], ["c"]]


@pytest.mark.parametrize(
    "without", [["li.element"], ["mp.key"], ["mp.value"], ["li.element", "mp.key", "mp.value"]]
)
def test_a_native_table_reads_files_with_ids_on_named_fields_alone(
    tmp_path: Path, without: list[str]
) -> None:
    table = native(tmp_path)
    partly = with_ids(table.at().schema.to_arrow(), dict.fromkeys(without))
    add(table, "2", [row(2, {"a": 2}, a="y")], partly)
    table.alter([RenameColumn(("a",), "b"), RenameColumn(("li", "element", "a"), "z")])
    rows = [row(n, {"a": n}, b=t) | {"li": [{"z": n}]} for n, t in ((1, "x"), (2, "y"))]
    assert_read(table, rows, (by_ledger, by_pyiceberg))


def test_duckdb_misreads_elements_without_ids_in_files_with_ids(tmp_path: Path) -> None:
    table = native(tmp_path)
    partly = with_ids(table.at().schema.to_arrow(), {"li.element": None})
    add(table, "2", [row(2, {"a": 2}, a="y")], partly)
    found = {each["id"]: each for each in by_duckdb(table)}
    assert (found[1]["li"], found[2]["li"]) == ([{"a": 1}], [None])
