"""Tables of foreign origin keep the field ids of their elements, keys and values everywhere."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet
from pyiceberg.schema import Schema as IcebergSchema
from pyiceberg.schema import index_name_by_id
from pyiceberg.table import StaticTable

import ledger
from ledger import (
    AddColumn,
    DropColumn,
    InvalidChangeError,
    InvalidInputError,
    RenameColumn,
    SetOption,
    Table,
    UndropColumn,
    UpdateColumnType,
)
from ledger.model import TypeJson, read_type, type_to_wire
from ledger.table_handle import handle_of
from projections.delta import DELTA
from tests.projections.delta.importing.test_following import ID, add, info, metadata, write
from tests.projections.delta.importing.writing import READERS
from tests.projections.iceberg.importing.writing import created
from tests.readers.engines import duckdb_rows
from tests.readers.test_delta_readers import folder_of

Row = dict[str, Any]

FIELD_ID = b"PARQUET:field_id"
COLUMNS = pa.schema(
    [
        ("id", pa.int64()),
        ("li", pa.list_(pa.int32())),
        ("mp", pa.map_(pa.string(), pa.list_(pa.int32()))),
        ("st", pa.struct([("p", pa.list_(pa.int32()))])),
        ("ls", pa.list_(pa.struct([("q", pa.int32())]))),
        ("ll", pa.list_(pa.list_(pa.int32()))),
    ]
)


def row(number: int, **more: Any) -> Row:
    held = {"li": [number, None], "mp": [("k", [number])], "st": {"p": [number]}}
    return {"id": number, **held, "ls": [{"q": number}], "ll": [[number]], **more}


def wire(text: str) -> TypeJson:
    """A type as a change has it, of its SQL text."""
    return type_to_wire(read_type(text))


def ids_in(schema: pa.Schema) -> dict[str, int | None]:
    """The ids that Arrow fields carry, by their paths."""

    def inside(path: str, field: pa.Field) -> Iterator[tuple[str, int | None]]:
        said = (field.metadata or {}).get(FIELD_ID)
        yield path, None if said is None else int(said)
        if pa.types.is_map(field.type):
            yield from inside(f"{path}.key", field.type.key_field)
            yield from inside(f"{path}.value", field.type.item_field)
        elif pa.types.is_list(field.type):
            yield from inside(f"{path}.element", field.type.value_field)
        elif pa.types.is_struct(field.type):
            for each in field.type:
                yield from inside(f"{path}.{each.name}", each)

    return dict(found for each in schema for found in inside(each.name, each))


def ids_of(schema: IcebergSchema) -> dict[str, int]:
    return {path: number for number, path in index_name_by_id(schema).items()}


def own_file(table: Table, name: str, rows: list[Row], schema: pa.Schema | None = None) -> str:
    """A file in the ledger's place; by the table's Arrow schema, if no other is given."""
    path = Path(folder_of(table)) / "data" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    wanted = table.at().schema.to_arrow() if schema is None else schema
    parquet.write_table(pa.Table.from_pylist(rows, schema=wanted), path)
    return f"{table.location}/data/{name}"


def with_ids(schema: pa.Schema, ids: dict[str, int | None]) -> pa.Schema:
    """An Arrow schema that carries other ids at some paths; None for none at all."""

    def changed(path: str, field: pa.Field) -> pa.Field:
        kind = field.type
        if pa.types.is_map(kind):
            key = changed(f"{path}.key", kind.key_field)
            kind = pa.map_(key, changed(f"{path}.value", kind.item_field))
        elif pa.types.is_list(kind):
            kind = pa.list_(changed(f"{path}.element", kind.value_field))
        elif pa.types.is_struct(kind):
            kind = pa.struct([changed(f"{path}.{each.name}", each) for each in kind])
        found = field.with_type(kind)
        if path not in ids:
            return found
        number = ids[path]
        return found.with_metadata(None if number is None else {FIELD_ID: str(number).encode()})

    return pa.schema([changed(each.name, each) for each in schema])


def promoted_iceberg(folder: Path, version: int) -> Table:
    theirs = created(folder / "t", version=version)
    with theirs.update_schema() as update:
        update.union_by_name(COLUMNS)
    theirs.append(pa.Table.from_pylist([row(1) | {"name": None}], schema=with_name()))
    lake = ledger.open(folder / "lake")
    lake.import_table("a.b", theirs.metadata_location)
    lake.promote("a.b")
    return lake.table("a.b")


def with_name() -> pa.Schema:
    return pa.schema([COLUMNS.field("id"), ("name", pa.string()), *list(COLUMNS)[1:]])


def projected(table: Table) -> StaticTable:
    version = table.project("iceberg")
    return StaticTable.from_metadata(f"{table.location}/metadata/v{version}.metadata.json")


def assert_all_read(table: Table, wanted: list[Row]) -> None:
    by_id = {each["id"]: each for each in wanted}
    for found in (
        table.at().to_arrow().to_pylist(),
        projected(table).scan().to_arrow().to_pylist(),
        duckdb_rows(Path(folder_of(table))),
    ):
        assert {each["id"]: each for each in found} == by_id
    assert ids_in(table.at().schema.to_arrow()) == ids_of(projected(table).schema())


@pytest.mark.parametrize("version", [1, 2])
def test_what_is_appended_to_a_promoted_iceberg_table_is_read_after_each_change(
    tmp_path: Path, version: int
) -> None:
    table = promoted_iceberg(tmp_path, version)
    rows = [row(1, name=None)]
    first = ids_of(projected(table).schema())
    assert first["li.element"] < 100

    def append(number: int, **more: Any) -> None:
        rows.append(row(number) | more)
        table.add_files(own_file(table, f"{number}.parquet", rows[-1:]))

    append(2, name="b")
    assert_all_read(table, rows)
    table.alter(
        [
            AddColumn(("tags",), wire("ARRAY<STRING>")),
            AddColumn(("more",), wire("MAP<STRING, ARRAY<ROW<z INT>>>")),
            AddColumn(("ls", "element", "w"), wire("ARRAY<INT>")),
            AddColumn(("st", "m"), wire("MAP<INT, INT>")),
        ]
    )
    for each in rows:
        each |= {"tags": None, "more": None, "ls": [{**each["ls"][0], "w": None}]}
        each["st"] = {**each["st"], "m": None}
    append(
        3,
        name="c",
        tags=["x"],
        more=[("y", [{"z": 3}])],
        ls=[{"q": 3, "w": [3]}],
        st={"p": [3], "m": [(3, 3)]},
    )
    assert_all_read(table, rows)
    table.alter(
        [
            UpdateColumnType(("li", "element"), "BIGINT"),
            UpdateColumnType(("mp", "value", "element"), "BIGINT"),
            UpdateColumnType(("ll",), wire("ARRAY<ARRAY<BIGINT>>")),
        ]
    )
    table.alter([RenameColumn(("ls",), "renamed"), RenameColumn(("st", "p"), "points")])
    for each in rows:
        each["renamed"] = each.pop("ls")
        each["st"] = {"points": each["st"]["p"], "m": each["st"]["m"]}
    last = row(2**40, name="d", tags=[], more=None, renamed=[{"q": 4, "w": []}])
    del last["ls"]
    last["st"] = {"points": [4], "m": []}
    rows.append(last)
    table.add_files(own_file(table, "last.parquet", [last]))
    assert_all_read(table, rows)
    assert (
        ids_of(projected(table).schema()).items()
        >= {
            path: number for path, number in first.items() if not path.startswith(("ls", "st"))
        }.items()
    )
    table.alter([DropColumn(("mp",))])
    table.alter([UndropColumn(("mp",))])
    assert_all_read(table, rows)


PLACES = ["li.element", "mp.key", "mp.value", "mp.value.element", "st.p.element", "ls.element"]


@pytest.mark.parametrize("number", [9_999, 1, None])
@pytest.mark.parametrize("path", [*PLACES, "ll.element", "ll.element.element"])
def test_a_file_whose_nested_ids_are_not_the_tables_is_rejected(
    tmp_path: Path, path: str, number: int | None
) -> None:
    table = promoted_iceberg(tmp_path, 2)
    own = table.at().schema.to_arrow()
    wanted = ids_in(own)[path]
    foreign = own_file(table, "x.parquet", [row(2)], with_ids(own, {path: number}))
    found = "no field id" if number is None else f"field id {number}"
    said = f"column '{path}' carries {found}; the table's is {wanted}: write the file with the"
    with pytest.raises(InvalidChangeError, match=said) as caught:
        table.add_files(foreign)
    assert "schema.to_arrow()" in str(caught.value)
    assert len(table.at().files) == 1


def test_a_file_of_another_tables_formula_is_rejected(tmp_path: Path) -> None:
    table = promoted_iceberg(tmp_path, 2)
    formula = ledger.Schema.of({"li": read_type("ARRAY<INT>")}).to_arrow()
    own = table.at().schema.to_arrow()
    foreign = with_ids(own, {"li.element": ids_in(formula)["li.element"]})
    with pytest.raises(InvalidChangeError, match="column 'li.element' carries field id 53687"):
        table.add_files(own_file(table, "x.parquet", [row(2)], foreign))


def test_a_native_table_rejects_other_nested_ids_and_takes_absent_ones(tmp_path: Path) -> None:
    lake = ledger.open(tmp_path / "lake")
    lake.create_database("a")
    table = lake.create_table(
        "a.n", ledger.Schema.of({"id": "BIGINT", "li": read_type("ARRAY<INT>")})
    )
    own = table.at().schema.to_arrow()
    absent = with_ids(own, {"li.element": None})
    table.add_files(own_file(table, "absent.parquet", [{"id": 1, "li": [1]}], absent))
    table.add_files(own_file(table, "own.parquet", [{"id": 2, "li": [2]}]))
    other = with_ids(own, {"li.element": 3})
    path = own_file(table, "other.parquet", [{"id": 3, "li": [3]}], other)
    with pytest.raises(InvalidChangeError, match="column 'li.element' carries field id 3"):
        table.add_files(path)


COMPATIBLE = {
    "protocol": {
        "minReaderVersion": 2,
        "minWriterVersion": 7,
        "writerFeatures": ["columnMapping", "icebergCompatV2"],
    }
}
MODE = {"delta.columnMapping.mode": "name", "delta.enableIcebergCompatV2": "true"}
NESTED = "delta.columnMapping.nested.ids"


def column(name: str, number: int, kind: Any, physical: str | None = None, **nested: int) -> Row:
    """A mapped column of Delta's; nested ids by the rest of their path, with _ for dots."""
    called = physical or name
    said: Row = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": called}
    if nested:
        said[NESTED] = {f"{called}.{key.replace('_', '.')}": n for key, n in nested.items()}
    return {**ID, "name": name, "type": kind, "metadata": said}


def array(element: Any) -> Row:
    return {"type": "array", "elementType": element, "containsNull": True}


def mapping(value: Any) -> Row:
    return {"type": "map", "keyType": "string", "valueType": value, "valueContainsNull": True}


def struct(*fields: Row) -> Row:
    return {"type": "struct", "fields": fields}


DELTA_COLUMNS = (
    column("id", 1, "long"),
    column("li", 2, array("integer"), element=8),
    column("mp", 3, mapping(array("integer")), key=9, value=10, value_element=11),
    column("st", 4, struct(column("p", 5, array("integer"), element=12))),
    column("ls", 6, array(struct(column("q", 7, "integer"))), element=13),
)
DELTA_IDS = {
    "id": 1,
    "li": 2,
    "li.element": 8,
    "mp": 3,
    "mp.key": 9,
    "mp.value": 10,
    "mp.value.element": 11,
    "st": 4,
    "st.p": 5,
    "st.p.element": 12,
    "ls": 6,
    "ls.element": 13,
    "ls.element.q": 7,
}


def delta_row(number: int, **more: Any) -> Row:
    found = row(number)
    del found["ll"]
    return found | more


def delta_file(folder: Path, name: str, rows: list[Row], ids: dict[str, Any]) -> Row:
    """A file as writers under IcebergCompatV2 make it, with all ids in its footer."""
    kinds = pa.schema([each for each in COLUMNS if each.name in ids])
    folder.mkdir(exist_ok=True)
    parquet.write_table(pa.Table.from_pylist(rows, schema=with_ids(kinds, ids)), folder / name)
    stats = json.dumps({"numRecords": len(rows)})
    return add(name, size=(folder / name).stat().st_size, stats=stats)


def delta_source(folder: Path, *fields: Row) -> str:
    said = metadata(*(fields or DELTA_COLUMNS), configuration=MODE)
    file = delta_file(folder, "a.parquet", [delta_row(1)], DELTA_IDS)
    write(folder, 0, info(10), COMPATIBLE, said, file)
    return str(folder)


def imported_delta(folder: Path, place: str) -> Table:
    lake = ledger.open(folder / "lake")
    lake.import_table("a.b", place, format_name="delta")
    return lake.table("a.b")


def promoted_delta(folder: Path, place: str) -> Table:
    imported_delta(folder, place)
    lake = ledger.open(folder / "lake")
    lake.promote("a.b")
    return lake.table("a.b")


def test_nested_ids_of_a_delta_table_are_the_tables_while_it_follows(tmp_path: Path) -> None:
    place = delta_source(tmp_path / "t")
    table = imported_delta(tmp_path, place)
    assert ids_in(table.at().schema.to_arrow()) == DELTA_IDS
    assert table.at().schema.highest_field_id == 13


def test_a_promoted_delta_table_is_read_as_iceberg_by_its_own_nested_ids(tmp_path: Path) -> None:
    table = promoted_delta(tmp_path, delta_source(tmp_path / "t"))
    table.alter([SetOption("ledger.formats", "delta,iceberg")])
    rows = [delta_row(1)]
    assert_all_read(table, rows)
    rows.append(delta_row(2))
    table.add_files(own_file(table, "two.parquet", rows[1:]))
    assert_all_read(table, rows)
    table.alter(
        [
            AddColumn(("tags",), wire("ARRAY<STRING>")),
            AddColumn(("ls", "element", "w"), wire("ARRAY<INT>")),
        ]
    )
    for each in rows:
        each |= {"tags": None, "ls": [{**each["ls"][0], "w": None}]}
    rows.append(delta_row(3, tags=["x"], ls=[{"q": 3, "w": [3]}]))
    table.add_files(own_file(table, "three.parquet", rows[2:]))
    assert_all_read(table, rows)
    assert ids_in(table.at().schema.to_arrow()).items() >= DELTA_IDS.items()
    DELTA.project(handle_of(table))
    said, *others = (reader(folder_of(table), 4) for reader in READERS)
    assert all(each == said for each in others)


def test_the_log_of_a_promoted_delta_table_keeps_assigning_its_nested_ids(tmp_path: Path) -> None:
    table = promoted_delta(tmp_path, delta_source(tmp_path / "t"))
    table.alter([AddColumn(("note",), "STRING")])
    DELTA.project(handle_of(table))
    text = max((Path(folder_of(table)) / "_delta_log").glob("*.json")).read_text()
    (said,) = (json.loads(each)["metaData"] for each in text.splitlines() if "metaData" in each)
    fields = {each["name"]: each for each in json.loads(said["schemaString"])["fields"]}
    assert fields["li"]["metadata"][NESTED] == {"li.element": 8}
    assert fields["mp"]["metadata"][NESTED] == {
        "mp.key": 9,
        "mp.value": 10,
        "mp.value.element": 11,
    }
    assert NESTED not in fields["note"]["metadata"]
    (inner,) = fields["st"]["type"]["fields"]
    assert inner["metadata"][NESTED] == {"p.element": 12}
    assert int(said["configuration"]["delta.columnMapping.maxColumnId"]) == 14


@pytest.mark.parametrize("path", ["li.element", "mp.key", "mp.value.element", "ls.element"])
def test_a_file_with_other_nested_ids_than_a_delta_tables_is_rejected(
    tmp_path: Path, path: str
) -> None:
    table = promoted_delta(tmp_path, delta_source(tmp_path / "t"))
    own = table.at().schema.to_arrow()
    foreign = own_file(table, "x.parquet", [delta_row(2)], with_ids(own, {path: 999}))
    said = f"column '{path}' carries field id 999; the table's is {DELTA_IDS[path]}"
    with pytest.raises(InvalidChangeError, match=said):
        table.add_files(foreign)


def test_nested_ids_that_come_later_and_after_other_columns_are_followed(tmp_path: Path) -> None:
    place = tmp_path / "t"
    plain = [column("id", 1, "long"), column("li", 2, array("integer"))]
    write(place, 0, info(10), COMPATIBLE, metadata(*plain, configuration=MODE))
    table = imported_delta(tmp_path, str(place))
    assert ids_in(table.at().schema.to_arrow())["li.element"] == 536872960
    enabled = [plain[0], column("li", 2, array("integer"), element=3)]
    write(place, 1, info(20), metadata(*enabled, configuration=MODE))
    # Delta gives ids to all columns of a change before those inside them.
    added = [
        column("l4", 4, array("integer"), element=6),
        column("l5", 5, mapping("integer"), key=7, value=8),
    ]
    write(place, 2, info(30), metadata(*enabled, *added, configuration=MODE))
    renamed = column("lj", 2, array("long"), physical="li", element=3)
    write(place, 3, info(40), metadata(enabled[0], renamed, *added, configuration=MODE))
    table = imported_delta(tmp_path, str(place))
    wanted = {
        "id": 1,
        "lj": 2,
        "lj.element": 3,
        "l4": 4,
        "l4.element": 6,
        "l5": 5,
        "l5.key": 7,
        "l5.value": 8,
    }
    assert ids_in(table.at().schema.to_arrow()) == wanted
    assert table.at().schema.highest_field_id == 8


def test_ids_that_came_later_are_asked_of_files_with_the_names_of_older_schemas(
    tmp_path: Path,
) -> None:
    place = tmp_path / "t"
    plain = [column("id", 1, "long"), column("li", 2, array("integer"))]
    write(place, 0, info(10), COMPATIBLE, metadata(*plain, configuration=MODE))
    enabled = [plain[0], column("li", 2, array("integer"), element=3)]
    write(place, 1, info(20), metadata(*enabled, configuration=MODE))
    table = promoted_delta(tmp_path, str(place))
    own = table.at().schema.to_arrow()
    for number in (None, 536872960):
        foreign = with_ids(own, {"li.element": number})
        path = own_file(table, f"{number}.parquet", [{"id": 1, "li": [1]}], foreign)
        with pytest.raises(InvalidChangeError, match="'li.element' carries .*; the table's is 3"):
            table.add_files(path)
    table.add_files(own_file(table, "own.parquet", [{"id": 1, "li": [1]}]))


@pytest.mark.parametrize(
    ("nested", "said"),
    [
        ({"li.element": 1}, "gives field id 1 twice, in column id and in column li"),
        ({"li.element": 2}, "gives field id 2 twice, in column li and in column li"),
        ({"li.element": "3"}, "not a Delta schema.*which is not an id"),
        ({"li.element": True}, "not a Delta schema.*which is not an id"),
        ({"li.element": -5}, "-5"),
        ("text", "not a Delta schema"),
    ],
)
def test_malformed_nested_ids_are_rejected_by_name(tmp_path: Path, nested: Any, said: str) -> None:
    listed = column("li", 2, array("integer"))
    listed["metadata"][NESTED] = nested
    place = tmp_path / "t"
    write(place, 0, info(1), COMPATIBLE, metadata(DELTA_COLUMNS[0], listed, configuration=MODE))
    lake = ledger.open(tmp_path / "lake")
    with pytest.raises((InvalidInputError, InvalidChangeError), match=said):
        lake.import_table("a.b", str(place), format_name="delta")
