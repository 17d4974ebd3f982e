"""New files of a Delta table have the physical names of its log, whatever was renamed before."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from attrs import Factory, define
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

import ledger
from ledger import (
    AddColumn,
    DropColumn,
    FormatError,
    InvalidChangeError,
    InvalidInputError,
    Ledger,
    RenameColumn,
    Schema,
    SetOption,
    Table,
)
from ledger.cli import exits, main
from ledger.model import read_type
from ledger.model.types import STRING, RowType
from projections.delta.actions import FOLDER
from tests.lakes import lake_on, memory
from tests.projections.delta.importing.test_following import add, metadata, write
from tests.projections.importing.test_nested_ids import MODE, column, struct, with_ids
from tests.readers.lakehouse import folder_of, without_ids
from tests.readers.test_delta_readers import Reader, delta_rs_query, duckdb
from tests.thorough import examples

Row = dict[str, Any]
PHYSICAL = "delta.columnMapping.physicalName"


def lake_in(folder: Path) -> Ledger:
    lake = ledger.open(str(folder))
    lake.create_database("d")
    return lake


def table_in(folder: Path, columns: dict[str, Any], formats: str = "delta", **more: Any) -> Table:
    schema = Schema.of(columns, options={"ledger.formats": formats}, **more)
    return lake_in(folder).create_table("d.t", schema)


def physical_schema(table: Table) -> pa.Schema:
    """The Arrow schema of the table with the column names that its projected Delta log gives."""
    table.project("delta")
    log = sorted((folder_of(table) / FOLDER).glob("*.json"))
    lines = [json.loads(line) for path in log for line in path.read_text().splitlines()]
    said = [line["metaData"] for line in lines if "metaData" in line][-1]
    return pa.schema(_renamed(list(table.at().schema.to_arrow()), json.loads(said["schemaString"])))


def _renamed(fields: list[pa.Field], said: Row) -> list[pa.Field]:
    named = {each["name"]: each for each in said["fields"]}
    return [
        field.with_name(named[field.name]["metadata"].get(PHYSICAL, field.name)).with_type(
            _renamed_type(field.type, named[field.name]["type"])
        )
        for field in fields
    ]


def _renamed_type(kind: pa.DataType, said: Any) -> pa.DataType:
    if pa.types.is_struct(kind):
        return pa.struct(_renamed(list(kind), said))
    if pa.types.is_list(kind):
        inner = kind.value_field
        return pa.list_(inner.with_type(_renamed_type(inner.type, said["elementType"])))
    if pa.types.is_map(kind):
        inner = kind.item_field
        return pa.map_(
            kind.key_field, inner.with_type(_renamed_type(inner.type, said["valueType"]))
        )
    return kind


def in_names(value: Any, logical: pa.DataType, physical: pa.DataType) -> Any:
    """A value of the table under the physical names."""
    if value is None or not pa.types.is_nested(logical):
        return value
    if pa.types.is_struct(logical):
        pairs = zip(logical, physical, strict=True)
        return {p.name: in_names(value.get(each.name), each.type, p.type) for each, p in pairs}
    if pa.types.is_list(logical):
        return [in_names(each, logical.value_type, physical.value_type) for each in value]
    return [(k, in_names(each, logical.item_type, physical.item_type)) for k, each in value]


def written(table: Table, name: str, rows: list[Row], schema: pa.Schema, *, has_ids: bool) -> str:
    """A file of rows in the columns of a schema, which are the table's under other names."""
    own = pa.struct(list(table.at().schema.to_arrow()))
    found = [in_names(each, own, pa.struct(list(schema))) for each in rows]
    path = folder_of(table) / name
    path.parent.mkdir(parents=True, exist_ok=True)
    kept = schema if has_ids else without_ids(schema)
    parquet.write_table(pa.Table.from_pylist(found, schema=kept), path)
    return str(path)


def assert_read(
    table: Table, rows: list[Row], readers: tuple[Reader, ...] = (delta_rs_query, duckdb)
) -> None:
    """Check that Delta's readers, and the ledger's where Iceberg is declared, read some rows."""
    table.project("delta")
    version = max(int(each.stem) for each in (folder_of(table) / FOLDER).glob("*[0-9].json"))
    names = list(table.at().schema.names)
    wanted = sorted((tuple(plain(each.get(name)) for name in names) for each in rows), key=repr)
    for reader in readers:
        found_names, found = reader(str(folder_of(table)), version)
        assert found_names == names
        assert sorted((tuple(map(plain, each)) for each in found), key=repr) == wanted
    if "iceberg" in table.at().schema.options["ledger.formats"]:
        found = [tuple(plain(each[name]) for name in names) for each in rows_of(table)]
        assert sorted(found, key=repr) == wanted


def rows_of(table: Table) -> list[Row]:
    rows: list[Row] = table.at().to_arrow().to_pylist()
    return rows


def plain(value: Any) -> Any:
    """A value with structs and maps as sorted pairs, which they are in some readers' rows."""
    if isinstance(value, dict):
        return plain(list(value.items()))
    if not isinstance(value, list | tuple):
        return value
    found = tuple(map(plain, value))
    pairs = all(isinstance(each, tuple) and each and isinstance(each[0], str) for each in found)
    return tuple(sorted(found)) if pairs else found


IDS = pytest.mark.parametrize("has_ids", [True, False])
NESTED = {
    "top": ("STRING", ()),
    "struct": ("ROW<a STRING>", ("x",)),
    "list": ("ARRAY<ROW<a STRING>>", ("x", "element")),
    "map": ("MAP<STRING, ROW<a STRING>>", ("x", "value")),
}


def value_of(kind: str, members: Row) -> Row:
    """A row of the column, or of the members of the column `x`."""
    inside: Any = {"list": [members], "map": [("k", members)], "struct": members}.get(kind)
    return members if kind == "top" else {"x": inside}


@IDS
@pytest.mark.parametrize("kind", NESTED)
@pytest.mark.parametrize("formats", ["delta", "delta,iceberg"])
def test_files_under_physical_names_are_added_after_a_rename_and_an_add(
    tmp_path: Path, formats: str, kind: str, *, has_ids: bool
) -> None:
    text, around = NESTED[kind]
    columns = {"id": "BIGINT", ("a" if kind == "top" else "x"): read_type(text)}
    table = table_in(tmp_path, columns, formats)
    first = {"id": 1, **value_of(kind, {"a": "old"})}
    table.add_files([written(table, "1.parquet", [first], physical_schema(table), has_ids=True)])
    table.alter([RenameColumn((*around, "a"), "b")])
    table.alter([AddColumn((*around, "c"), "STRING")])
    rows = [{"id": 1, **value_of(kind, {"b": "old", "c": None})}]
    new = {"id": 2, **value_of(kind, {"b": "new", "c": "c"})}
    path = written(table, "2.parquet", [new], physical_schema(table), has_ids=has_ids)
    if "iceberg" in formats and not has_ids:
        with pytest.raises(FormatError, match=r"without field ids.*write all field ids"):
            table.add_files([path])
        path = written(table, "3.parquet", [new], physical_schema(table), has_ids=True)
    table.add_files([path])
    # delta-rs cannot read a map whose struct has more members than a file's.
    assert_read(table, [*rows, new], (duckdb,) if kind == "map" else (delta_rs_query, duckdb))
    assert main(["verify", "--ledger", str(tmp_path)]) == exits.OK


@IDS
def test_the_error_of_a_file_under_the_new_names_says_the_names_to_write(
    tmp_path: Path, *, has_ids: bool
) -> None:
    table = table_in(tmp_path, {"id": "BIGINT", "a": "STRING", "s": read_type("ROW<p INT>")})
    first = {"id": 1, "a": "x", "s": {"p": 1}}
    table.add_files([written(table, "1.parquet", [first], physical_schema(table), has_ids=has_ids)])
    table.alter([RenameColumn(("a",), "b"), RenameColumn(("s", "p"), "q")])
    table.alter([AddColumn(("a",), "INT")])
    own = table.at().schema.to_arrow()
    new = {"id": 2, "b": "y", "s": {"q": 2}, "a": 7}
    with pytest.raises(FormatError, match="write the files with the names in the older ones") as e:
        table.add_files([written(table, "new.parquet", [new], own, has_ids=has_ids)])
    said = dict(re.findall(r"'([\w.]+)' as '([\w-]+)'", str(e.value)))
    assert said == {"b": "a", "s.q": "p", "a": "col-4"}
    renamed = [each.with_name(said.get(each.name, each.name)) for each in own]
    (member,) = own.field("s").type
    kind = pa.struct([member.with_name(said["s.q"])])
    schema = pa.schema([each.with_type(kind) if each.name == "s" else each for each in renamed])
    table.add_files([written(table, "2.parquet", [new], schema, has_ids=has_ids)])
    assert_read(table, [{"id": 1, "b": "x", "s": {"q": 1}, "a": None}, new])


@IDS
def test_the_older_files_may_be_overwritten_under_the_new_names_instead(
    tmp_path: Path, *, has_ids: bool
) -> None:
    table = table_in(tmp_path, {"id": "BIGINT", "a": "STRING"}, "delta,iceberg,paimon")
    schema = table.at().schema.to_arrow()
    table.add_files([written(table, "1.parquet", [{"id": 1, "a": "x"}], schema, has_ids=has_ids)])
    table.alter([RenameColumn(("a",), "b")])
    table.alter([AddColumn(("c",), "INT")])
    new, own = {"id": 1, "b": "x", "c": 7}, table.at().schema.to_arrow()
    physical = written(table, "p.parquet", [new], physical_schema(table), has_ids=True)
    with pytest.raises(
        FormatError, match=r"overwrite the older files in the same commit.*'paimon'"
    ):
        table.add_files([physical])
    logical = written(table, "2.parquet", [new], own, has_ids=has_ids)
    with pytest.raises(FormatError, match=r"or overwrite those in the same commit.*'delta'"):
        table.add_files([logical])
    table.overwrite(table.data_files([logical]))
    table.project("paimon")
    assert_read(table, [new])
    more = {"id": 2, "b": "y", "c": 8}
    table.add_files([written(table, "3.parquet", [more], own, has_ids=has_ids)])
    assert_read(table, [new, more])


def test_rows_are_written_under_the_names_that_all_formats_need(tmp_path: Path) -> None:
    columns = {"id": "BIGINT", "a": "STRING", "s": read_type("ROW<m INT>")}
    table = table_in(tmp_path, columns, "delta,iceberg,paimon")
    table.append([{"id": 1, "a": "x", "s": {"m": 1}}])
    table.alter([RenameColumn(("a",), "b"), RenameColumn(("s", "m"), "n")])
    rows: list[Row] = [{"id": 1, "b": "x", "s": {"n": 1}}, {"id": 2, "b": "y", "s": {"n": 2}}]
    table.append(rows[1:])
    assert_read(table, rows)
    assert read_by_pypaimon(table) == rows
    # Files with one name of each column stay possible, until another column is added.
    table.alter([AddColumn("c", "INT")])
    rows = [{**each, "c": None} for each in rows]
    new = {"id": 3, "b": "z", "s": {"n": 3}, "c": 7}
    with pytest.raises(FormatError, match=r"table.overwrite\(rows\) with all rows.*'paimon'"):
        table.append([new])
    assert_read(table, rows)
    table.overwrite(table.to_arrow())
    table.append([new])
    assert_read(table, [*rows, new])
    assert read_by_pypaimon(table) == [*rows, new]
    assert main(["verify", "--data", "--ledger", str(tmp_path)]) == exits.OK


def read_by_pypaimon(table: Table) -> list[Row]:
    """Return the rows in the order of their ids."""
    from pypaimon.table.file_store_table import FileStoreTable

    table.project("paimon")
    read = FileStoreTable.from_path(str(folder_of(table))).new_read_builder()
    found = read.new_read().to_arrow(read.new_scan().plan().splits()).to_pylist()
    return sorted(found, key=lambda row: row["id"])


@IDS
def test_a_renamed_partition_column_needs_no_column_in_the_files(
    tmp_path: Path, *, has_ids: bool
) -> None:
    table = table_in(tmp_path, {"id": "BIGINT", "p": "INT"})
    table.update_spec().add_field("p").commit()
    own = pa.schema([table.at().schema.to_arrow().field("id")])
    paths = [folder_of(table) / f"{part}/1.parquet" for part in ("p=1", "p=2")]
    for number, path in enumerate(paths, 1):
        path.parent.mkdir(parents=True)
        kept = own if has_ids else without_ids(own)
        parquet.write_table(pa.Table.from_pylist([{"id": number}], schema=kept), path)
    table.add_files([str(paths[0])])
    table.alter([RenameColumn(("p",), "q")])
    table.add_files([str(paths[1])])
    assert_read(table, [{"id": 1, "q": 1}, {"id": 2, "q": 2}])


@pytest.mark.parametrize("names", [{}, {1: ""}, {9: "x"}, {-1: "x"}, {1: 2}, ["a"]])
def test_names_of_a_file_that_mean_no_column_are_rejected(names: Any) -> None:
    lake = lake_on(memory())
    lake.create_database("d")
    table = lake.create_table("d.t", Schema.of({"id": "INT", "a": "INT"}))
    file = ledger.FileChange(
        path="a.parquet", record_count=1, file_size_in_bytes=9, column_names=names
    )
    with pytest.raises((InvalidChangeError, InvalidInputError)):
        table.append([file])


def test_names_that_no_file_has_are_rejected_where_nothing_was_renamed() -> None:
    lake = lake_on(memory())
    lake.create_database("d")
    options = {"ledger.formats": "delta"}
    table = lake.create_table("d.t", Schema.of({"id": "INT", "a": "INT"}, options=options))
    file = ledger.FileChange(
        path="a.parquet", record_count=1, file_size_in_bytes=9, column_names={1: "z"}
    )
    with pytest.raises(FormatError, match="no older file has a column named 'z'"):
        table.append([file])


PROMOTED = [
    column("id", 1, "long", "col-1"),
    column("a", 2, "string", "col-2"),
    column("s", 3, struct(column("m", 4, "long", "col-4")), "col-3"),
]


@IDS
@pytest.mark.parametrize("formats", ["delta", "delta,iceberg"])
@pytest.mark.parametrize("alters", [False, True])
def test_a_promoted_mapped_table_takes_files_under_its_physical_names(
    tmp_path: Path, formats: str, *, alters: bool, has_ids: bool
) -> None:
    place = tmp_path / "source"
    place.mkdir()
    inner = pa.struct([("col-4", pa.int64())])
    schema = pa.schema([("col-1", pa.int64()), ("col-2", pa.string()), ("col-3", inner)])
    ids: dict[str, int | None] = {"col-1": 1, "col-2": 2, "col-3": 3, "col-3.col-4": 4}
    rows = [{"col-1": 1, "col-2": "x", "col-3": {"col-4": 1}}]
    found = pa.Table.from_pylist(rows, schema=with_ids(schema, ids))
    parquet.write_table(found, place / "1.parquet")
    file = add("1.parquet", size=(place / "1.parquet").stat().st_size, stats='{"numRecords":1}')
    protocol = {"protocol": {"minReaderVersion": 2, "minWriterVersion": 5}}
    mode = {"delta.columnMapping.mode": MODE["delta.columnMapping.mode"]}
    write(place, 0, protocol, metadata(*PROMOTED, configuration=mode), file)
    lake = lake_in(tmp_path / "lake")
    lake.import_table("d.t", str(place), format_name="delta")
    lake.promote("d.t")
    table = lake.table("d.t")
    table.alter([SetOption("ledger.formats", formats)])
    old = {"id": 1, "a": "x", "s": {"m": 1}}
    new: Row = {"id": 2, "a": "y", "s": {"m": 2}}
    if alters:
        table.alter([RenameColumn(("a",), "b"), RenameColumn(("s", "m"), "n")])
        table.alter([AddColumn(("c",), "INT")])
        old = {"id": 1, "b": "x", "s": {"n": 1}, "c": None}
        new = {"id": 2, "b": "y", "s": {"n": 2}, "c": 7}
    path = written(table, "2.parquet", [new], physical_schema(table), has_ids=has_ids)
    if "iceberg" in formats and not has_ids:
        with pytest.raises(FormatError, match="without field ids"):
            table.add_files([path])
        return
    table.add_files([path])
    assert_read(table, [old, new])


@define
class LifeOfNames:
    """A table whose columns change at random, with the rows that it has.

    Attributes:
        table: The table.
        columns: The top-level columns but `id`, by name: what identifies them over renames.
        members: The same for the members of `s`.
        rows: The live rows, by what identifies the columns.
        count: The number of columns and files so far.
    """

    table: Table
    columns: dict[str, int] = Factory(lambda: {"a": 0, "b": 1})
    members: dict[str, int] = Factory(lambda: {"a": 2, "b": 3})
    rows: list[dict[int, str]] = Factory(list)
    count: int = 4

    def step(self, what: str, name: str, around: tuple[str, ...]) -> None:
        level = self.members if around else self.columns
        if what == "rename" and name in level:
            new = next(each for each in "abcde" if each not in level)
            self.table.alter([RenameColumn((*around, name), new)])
            level[new] = level.pop(name)
        elif what == "add" and name not in level:
            self.table.alter([AddColumn((*around, name), "STRING")])
            self.count += 1
            level[name] = self.count
        elif what == "drop" and name in level and len(level) > 1:
            self.table.alter([DropColumn((*around, name))])
            del level[name]
        elif what in {"with ids", "without ids", "overwrite"}:
            self.write(what)

    def write(self, what: str) -> None:
        self.count += 1
        row = dict.fromkeys((*self.columns.values(), *self.members.values()), f"{self.count}")
        own = self.table.at().schema.to_arrow()
        schema = own if what == "overwrite" else physical_schema(self.table)
        name, said = f"{self.count}.parquet", [self.seen(row)]
        path = written(self.table, name, said, schema, has_ids=what != "without ids")
        if what == "overwrite":
            self.table.overwrite(self.table.data_files([path]))
            self.rows = [row]
        else:
            self.table.add_files([path])
            self.rows.append(row)

    def seen(self, row: dict[int, str]) -> Row:
        members = {name: row.get(key) for name, key in self.members.items()}
        return {"s": members, **{name: row.get(key) for name, key in self.columns.items()}}


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["rename", "add", "drop", "with ids", "without ids", "overwrite"]),
        st.sampled_from("abc"),
        st.sampled_from([(), ("s",)]),
    ),
    max_size=12,
)


@given(steps=STEPS)
@settings(max_examples=examples(60), deadline=None)
def test_a_file_under_the_physical_names_can_be_added_after_any_changes(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, str, tuple[str, ...]]]
) -> None:
    members = RowType([ledger.DataField(0, each, STRING) for each in "ab"])
    columns: dict[str, Any] = {"s": members, "a": "STRING", "b": "STRING"}
    life = LifeOfNames(table_in(tmp_path_factory.mktemp("names"), columns))
    for step in (("with ids", "a", ()), *steps, ("without ids", "a", ())):
        life.step(*step)
    assert_read(life.table, [life.seen(each) for each in life.rows])
