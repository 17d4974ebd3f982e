"""Rows of tables that do not declare Iceberg: read by PyIceberg, or rejected with the reason."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder
from pyarrow import parquet

import ledger
from ledger import (
    AddColumn,
    DropColumn,
    FileChange,
    Ledger,
    RenameColumn,
    Schema,
    SetOption,
    Table,
    UnsupportedError,
    UpdateColumnType,
)
from ledger.cli import main
from ledger.model import read_type
from tests.projections.delta.importing.test_following import (
    add,
    info,
    metadata,
    parquet_rows,
    write,
)
from tests.projections.delta.importing.writing import Life
from tests.readers.lakehouse import add_rows, folder_of, without_ids

STRUCT = "ROW<p INT, q ARRAY<ROW<x INT, y INT>>>"
MAP = "MAP<STRING NOT NULL, ROW<v INT>>"


@pytest.fixture
def lake(tmp_path: Path) -> Ledger:
    lake = ledger.open(str(tmp_path / "lake"))
    lake.create_database("shop")
    return lake


def table_of(lake: Ledger, formats: str = "delta", **columns: str) -> Table:
    wanted = {name: read_type(text) for name, text in columns.items()}
    return lake.create_table("shop.t", Schema.of(wanted, options={"ledger.formats": formats}))


def rows_of(table: Table) -> list[dict[str, Any]]:
    return sorted(table.at().to_arrow().to_pylist(), key=repr)


VALUES: dict[str, tuple[str, Any]] = {
    "boolean": ("BOOLEAN", True),
    "byte": ("TINYINT", -3),
    "short": ("SMALLINT", 300),
    "integer": ("INT", 70_000),
    "long": ("BIGINT", 2**40),
    "float": ("FLOAT", 1.5),
    "double": ("DOUBLE", 0.1),
    "decimal": ("DECIMAL(30, 4)", Decimal("12345678901234567890.1234")),
    "text": ("STRING", "ä"),
    "char": ("CHAR(2)", "xy"),
    "bytes": ("BYTES", b"\x00\xff"),
    "date": ("DATE", dt.date(1969, 12, 31)),
    "moment": ("TIMESTAMP_LTZ(6)", dt.datetime(1960, 1, 1, 1, 2, 3, 4, tzinfo=dt.UTC)),
    "local moment": ("TIMESTAMP(6)", dt.datetime(1960, 1, 1, 1, 2, 3, 4)),  # noqa: DTZ001
    "list": ("ARRAY<INT>", [1, None]),
    "map": ("MAP<STRING NOT NULL, INT>", [("k", 1)]),
    "struct": (STRUCT, {"p": 1, "q": [{"x": 1, "y": 2}]}),
}


@pytest.mark.parametrize("has_ids", [True, False])
def test_every_type_of_a_delta_table_is_read(lake: Ledger, *, has_ids: bool) -> None:
    table = table_of(lake, id="INT", **{kind: text for kind, (text, _) in VALUES.items()})
    full = {"id": 1, **{kind: value for kind, (_, value) in VALUES.items()}}
    # PyIceberg reads a NULL list of structs as an empty one.
    empty: dict[str, Any] = {key: [] if key in {"list", "map"} else None for key in full} | {
        "id": 2
    }
    add_rows(table, "1.parquet", [full, empty], has_ids=has_ids)
    assert rows_of(table) == [full, empty]


PARTITION_KEYS: dict[str, tuple[str, Any]] = {
    "INT": ("7", 7),
    "STRING": ("a", "a"),
    "DATE": ("2024-01-02", dt.date(2024, 1, 2)),
    "BOOLEAN": ("true", True),
    "DECIMAL(9, 2)": ("1.50", Decimal("1.50")),
    "DOUBLE": ("0.1", 0.1),
    "FLOAT": ("0.5", 0.5),
}


@pytest.mark.parametrize("formats", ["delta", "delta,iceberg", "iceberg"])
@pytest.mark.parametrize("nullability", ["", " NOT NULL"])
@pytest.mark.parametrize("key", PARTITION_KEYS)
def test_partition_values_come_from_the_log(
    lake: Ledger, key: str, nullability: str, formats: str
) -> None:
    text, value = PARTITION_KEYS[key]
    options = {"ledger.formats": formats}
    columns = {"id": "INT", "k": f"{key}{nullability}"}
    schema = Schema.of(columns, partition_keys=["k"], options=options)
    table = lake.create_table("shop.t", schema)
    folder = folder_of(table) / f"k={text}"
    folder.mkdir(parents=True)
    parquet.write_table(pa.table({"id": pa.array([1], pa.int32())}), folder / "1.parquet")
    table.add_files([str(folder)])
    assert rows_of(table) == [{"id": 1, "k": value}]
    literal = text if key in {"INT", "BOOLEAN", "DOUBLE", "FLOAT", "DECIMAL(9, 2)"} else f"'{text}'"
    for where, count in ((f"k = {literal}", 1), (f"k <> {literal}", 0), ("k is null", 0)):
        assert table.at().to_arrow(where=where).num_rows == count
    assert table.at().scan().filter(f"k == {literal}").to_arrow()["k"].to_pylist() == [value]
    assert table.at().scan().update(limit=1).to_arrow()["k"].to_pylist() == [value]


@pytest.mark.parametrize("text", ["0.1", "-0.1", "1.0E-5", "1E300", "Infinity", "NaN", "0.5", None])
@pytest.mark.parametrize("is_nullable", [True, False])
def test_a_double_partition_of_an_imported_delta_table_has_its_own_values(
    lake: Ledger, tmp_path: Path, text: str | None, *, is_nullable: bool
) -> None:
    folder = tmp_path / "source"
    folder.mkdir()
    parquet.write_table(pa.table({"id": pa.array([1])}), folder / "f.parquet")
    fields = [
        {"name": "id", "type": "long", "nullable": True, "metadata": {}},
        {"name": "p", "type": "double", "nullable": is_nullable or text is None, "metadata": {}},
    ]
    protocol = {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}
    write(folder, 0, info(1), protocol, metadata(*fields, partitionColumns=["p"]))
    size = (folder / "f.parquet").stat().st_size
    more = {"partitionValues": {"p": text}, "stats": '{"numRecords":1}'}
    write(folder, 1, info(2), add("f.parquet", size=size, **more))
    lake.import_table("shop.t", str(folder), format_name="delta")
    wanted = [{"id": 1, "p": None if text is None else float(text)}]
    assert repr(rows_of(lake.table("shop.t"))) == repr(wanted)
    lake.promote("shop.t")
    assert repr(rows_of(lake.table("shop.t"))) == repr(wanted)
    lake.table("shop.t").alter([SetOption("ledger.formats", "delta,iceberg")])
    assert repr(rows_of(lake.table("shop.t"))) == repr(wanted)


@pytest.mark.parametrize("has_ids", [True, False])
def test_rows_follow_renames_drops_and_new_members(lake: Ledger, *, has_ids: bool) -> None:
    table = table_of(lake, id="INT", a="STRING", s=STRUCT, m=MAP)
    row = {"id": 1, "a": "x", "s": {"p": 1, "q": [{"x": 1, "y": 2}]}, "m": [("k", {"v": 3})]}
    add_rows(table, "1.parquet", [row], has_ids=has_ids)
    table.create_tag("first")
    table.alter([RenameColumn(("s", "q", "element", "x"), "z"), DropColumn(("s", "p"))])
    table.alter([RenameColumn(("m", "value", "v"), "w"), AddColumn(("m", "value", "n"), "INT")])
    table.alter([RenameColumn(("a",), "b"), AddColumn(("d",), "INT")])
    table.alter([DropColumn(("id",))])
    wanted = {
        "b": "x",
        "s": {"q": [{"z": 1, "y": 2}]},
        "m": [("k", {"w": 3, "n": None})],
        "d": None,
    }
    assert rows_of(table) == [wanted]
    assert table.at(tag="first").to_arrow().to_pylist() == [row]
    assert table.at(version=1).to_arrow().to_pylist() == [row]
    selected = table.at().to_arrow(where="b = 'x'", columns=["b"]).to_pylist()
    assert selected == [{"b": "x"}]
    assert table.at().to_arrow(where="b = 'y'").num_rows == 0
    assert table.at().head(1).num_rows == 1


WIDER: list[tuple[str, str, Any]] = [
    ("TINYINT", "SMALLINT", 1),
    ("TINYINT", "INT", 1),
    ("SMALLINT", "BIGINT", 1),
    ("INT", "BIGINT", 1),
    ("FLOAT", "DOUBLE", 1.5),
    ("DECIMAL(9, 2)", "DECIMAL(12, 2)", Decimal("1.50")),
    ("DECIMAL(9, 2)", "DECIMAL(14, 4)", Decimal("1.50")),
]
IN_TYPES: dict[str, tuple[str, tuple[str, ...], Callable[[Any], Any]]] = {
    "a column": ("{}", (), lambda value: value),
    "a list": ("ARRAY<{}>", ("element",), lambda value: [value]),
    "a map": ("MAP<STRING NOT NULL, {}>", ("value",), lambda value: [("k", value)]),
    "a struct": ("ROW<x {}>", ("x",), lambda value: {"x": value}),
}


@pytest.mark.parametrize(
    ("before", "after", "value", "inside"),
    [*((*each, "a column") for each in WIDER), *(("INT", "BIGINT", 1, each) for each in IN_TYPES)],
)
def test_older_values_are_read_as_the_wider_type(
    lake: Ledger, before: str, after: str, value: Any, inside: str
) -> None:
    text, path, wrapped = IN_TYPES[inside]
    table = table_of(lake, v=text.format(before))
    add_rows(table, "1.parquet", [{"v": wrapped(value)}])
    table.alter([UpdateColumnType(("v", *path), after)])
    assert rows_of(table) == [{"v": wrapped(value)}]


@pytest.mark.parametrize(
    ("after", "inside"), [("DECIMAL(12, 2)", "a column"), *(("DOUBLE", each) for each in IN_TYPES)]
)
def test_a_widening_that_only_delta_reads_is_rejected_by_name(
    lake: Ledger, after: str, inside: str
) -> None:
    text, path, wrapped = IN_TYPES[inside]
    table = table_of(lake, v=text.format("INT"))
    add_rows(table, "1.parquet", [{"v": wrapped(1)}])
    table.alter([UpdateColumnType(("v", *path), after)])
    name = ".".join(("v", *path))
    with pytest.raises(UnsupportedError) as raised:
        table.at().to_arrow()
    assert f"column {name} from INT to {after}: files from before" in raised.value.message
    assert "reader of the table's own formats (delta)" in raised.value.message
    assert table.at(version=1).to_arrow().num_rows == 1
    table.overwrite([])
    add_rows(table, "2.parquet", [{"v": wrapped(2)}])
    assert rows_of(table) == [{"v": wrapped(2)}]


def test_a_name_of_two_columns_in_files_without_ids_is_rejected(lake: Ledger) -> None:
    table = table_of(lake, "paimon", id="INT", a="INT")
    add_rows(table, "1.parquet", [{"id": 1, "a": 1}], has_ids=False)
    table.alter([DropColumn(("a",))])
    table.alter([AddColumn(("a",), "INT")])
    assert rows_of(table) == [{"id": 1, "a": None}]
    add_rows(table, "2.parquet", [{"id": 2, "a": 2}], has_ids=False)
    with pytest.raises(UnsupportedError, match="column a: the name would refer to field 2"):
        table.at().to_arrow()
    table.delete_files(["1.parquet"])
    assert rows_of(table) == [{"id": 2, "a": 2}]


def test_reading_a_delta_table_writes_no_iceberg_files(
    lake: Ledger, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = table_of(lake, id="INT")
    assert rows_of(table) == []
    add_rows(table, "1.parquet", [{"id": 1}])
    assert rows_of(table) == [{"id": 1}]
    assert main(["head", "shop.t", "--ledger", str(tmp_path / "lake")]) == 0
    assert " 1" in capsys.readouterr().out
    assert not (folder_of(table) / "metadata").exists()
    table.alter([SetOption("ledger.formats", "delta,iceberg")])
    assert rows_of(table) == [{"id": 1}]
    assert (folder_of(table) / "metadata").exists()
    table.alter([SetOption("ledger.formats", "delta")])
    assert rows_of(table) == [{"id": 1}]


def test_paimon_tables_are_read_unless_an_engine_has_to_merge_their_rows(lake: Ledger) -> None:
    table = table_of(lake, "paimon", id="INT", v="STRING")
    add_rows(table, "1.parquet", [{"id": 1, "v": "x"}])
    assert rows_of(table) == [{"id": 1, "v": "x"}]
    columns = {"id": "INT NOT NULL", "v": "STRING"}
    options = {"ledger.formats": "paimon", "bucket": "1"}
    keyed = lake.create_table("shop.k", Schema.of(columns, primary_keys=["id"], options=options))
    with pytest.raises(UnsupportedError, match="not declared to be an Iceberg table"):
        keyed.at().to_arrow()
    options = {"ledger.formats": "paimon"}
    timed = lake.create_table("shop.c", Schema.of({"at": "TIME(3)"}, options=options))
    timed.append([FileChange(path="c.parquet", record_count=1, file_size_in_bytes=9)])
    with pytest.raises(UnsupportedError, match="column at: other formats keep a TIME in files"):
        timed.at().to_arrow()


def by_delta_rs(folder: str, version: int) -> list[dict[str, Any]]:
    table = DeltaTable(folder, version=version)
    found = QueryBuilder().register("t", table).execute("SELECT * FROM t").read_all()
    return sorted(map(dict, pa.table(found).to_pylist()), key=repr)


@pytest.mark.parametrize(("seed", "key"), [(0, None), (1, "text"), (1, "day")])
def test_every_version_of_an_imported_delta_table_reads_as_at_the_source(
    lake: Ledger, tmp_path: Path, seed: int, key: str | None
) -> None:
    life = Life(tmp_path / "source", seed, key)
    for _ in range(8):
        life.step()
    done = lake.import_table("shop.t", life.folder, format_name="delta")
    table = lake.table("shop.t")
    for snapshot in done.snapshots:
        found = table.at(snapshot=snapshot).to_arrow().to_pylist()
        assert sorted(found, key=repr) == by_delta_rs(life.folder, snapshot - 1)
    lake.promote("shop.t")
    assert rows_of(lake.table("shop.t")) == by_delta_rs(life.folder, life.version)


def mapped(name: str, data_type: Any, number: int, physical: str) -> dict[str, Any]:
    said = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": physical}
    return {"name": name, "type": data_type, "nullable": True, "metadata": said}


def with_id(name: str, data_type: pa.DataType, number: int) -> pa.Field:
    return pa.field(name, data_type, metadata={"PARQUET:field_id": str(number)})


LONGS = pa.list_(pa.int64())
LONG_LIST = {"type": "array", "elementType": "long", "containsNull": True}
MAPPED: dict[str, tuple[dict[str, Any], pa.Field, Any]] = {
    "with ids": (mapped("a", "long", 1, "col-1"), with_id("col-1", pa.int64(), 1), 7),
    "without ids": (mapped("a", "long", 1, "col-1"), pa.field("col-1", pa.int64()), 7),
    "from before the mapping": (mapped("a", "long", 1, "a"), pa.field("a", pa.int64()), 7),
    "an element without an id": (mapped("a", LONG_LIST, 1, "c"), with_id("c", LONGS, 1), [5, 6]),
    "a list without ids": (mapped("a", LONG_LIST, 1, "c"), pa.field("c", LONGS), [5, 6]),
}
MAPPING = {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "1"}


@pytest.mark.parametrize("has_ids", [True, False])
@pytest.mark.parametrize("source_has_ids", [True, False])
@pytest.mark.parametrize("is_nested", [True, False])
def test_a_new_column_may_have_the_physical_name_of_another(
    lake: Ledger, tmp_path: Path, *, source_has_ids: bool, has_ids: bool, is_nested: bool
) -> None:
    def around(kind: pa.DataType, *, names_ids: bool) -> pa.Schema:
        found = pa.schema([with_id("s", kind, 5)]) if is_nested else pa.schema(list(kind))
        return found if names_ids else without_ids(found)

    def wrapped(row: dict[str, Any]) -> dict[str, Any]:
        return {"s": row} if is_nested else row

    folder = tmp_path / "source"
    folder.mkdir()
    schema = around(pa.struct([with_id("a", pa.int64(), 1)]), names_ids=source_has_ids)
    parquet.write_table(
        pa.Table.from_pylist([wrapped({"a": 1})], schema=schema), folder / "f.parquet"
    )
    column = mapped("A", "long", 1, "a")
    if is_nested:
        column = mapped("s", {"type": "struct", "fields": [column]}, 5, "s")
    protocol = {"protocol": {"minReaderVersion": 2, "minWriterVersion": 5}}
    mapping = {**MAPPING, "delta.columnMapping.maxColumnId": "5"}
    write(folder, 0, info(1), protocol, metadata(column, configuration=mapping))
    size = (folder / "f.parquet").stat().st_size
    write(folder, 1, info(2), add("f.parquet", size=size, stats='{"numRecords":1}'))
    lake.import_table("shop.t", str(folder), format_name="delta")
    lake.promote("shop.t")
    table = lake.table("shop.t")
    path = ("s",) if is_nested else ()
    table.alter([RenameColumn((*path, "A"), "z"), AddColumn((*path, "a"), "STRING")])
    assert rows_of(table) == [wrapped({"z": 1, "a": None})]
    own = table.at().schema
    number = own.highest_field_id
    members = pa.struct(
        [with_id("a", pa.int64(), 1), with_id(f"col-{number}", pa.string(), number)]
    )
    new = folder_of(table) / "2.parquet"
    new.parent.mkdir(parents=True, exist_ok=True)
    rows = [wrapped({"a": 2, f"col-{number}": "n"})]
    parquet.write_table(pa.Table.from_pylist(rows, schema=around(members, names_ids=has_ids)), new)
    table.add_files([str(new)])
    wanted = [wrapped({"z": 1, "a": None}), wrapped({"z": 2, "a": "n"})]
    assert sorted(rows_of(table), key=repr) == sorted(wanted, key=repr)


@pytest.mark.parametrize("files", MAPPED)
def test_mapped_columns_are_read_before_and_after_a_promotion(
    lake: Ledger, tmp_path: Path, files: str
) -> None:
    column, field, value = MAPPED[files]
    folder = tmp_path / "source"
    folder.mkdir()
    parquet.write_table(
        pa.table([pa.array([value], field.type)], schema=pa.schema([field])), folder / "f.parquet"
    )
    protocol = {"protocol": {"minReaderVersion": 2, "minWriterVersion": 5}}
    write(folder, 0, info(1), protocol, metadata(column, configuration=MAPPING))
    size = (folder / "f.parquet").stat().st_size
    write(folder, 1, info(2), add("f.parquet", size=size, stats='{"numRecords":1}'))
    lake.import_table("shop.t", str(folder), format_name="delta")
    assert rows_of(lake.table("shop.t")) == [{"a": value}]
    lake.promote("shop.t")
    table = lake.table("shop.t")
    assert rows_of(table) == [{"a": value}]
    table.alter([RenameColumn(("a",), "b")])
    table.alter([AddColumn(("a",), "INT")])
    assert rows_of(table) == [{"b": value, "a": None}]


def array_of(element: Any) -> dict[str, Any]:
    return {"type": "array", "elementType": element, "containsNull": True}


def map_of(key: Any, value: Any) -> dict[str, Any]:
    return {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": True}


PHYSICAL = {"type": "struct", "fields": [mapped("x", "long", 2, "col-2")]}
OTHER = {"type": "struct", "fields": [mapped("y", "long", 3, "y")]}
IN_FILE = pa.struct([with_id("col-2", pa.int64(), 2)])
IN_CONTAINERS: dict[str, tuple[Any, pa.DataType, Callable[[str], Any], str]] = {
    "list in a list": (
        array_of(array_of(PHYSICAL)), pa.list_(pa.list_(IN_FILE)), lambda name: [[{name: 1}]],
        "element.element.x",
    ),
    "list in a map": (
        map_of("string", array_of(PHYSICAL)), pa.map_(pa.string(), pa.list_(IN_FILE)),
        lambda name: [("k", [{name: 1}])], "value.element.x",
    ),
    "map in a list": (
        array_of(map_of("string", PHYSICAL)), pa.list_(pa.map_(pa.string(), IN_FILE)),
        lambda name: [[("k", {name: 1})]], "element.value.x",
    ),
    "key": (
        map_of(PHYSICAL, "long"), pa.map_(IN_FILE, pa.int64()), lambda name: [({name: 1}, 2)],
        "key.x",
    ),
    "list in a key": (
        map_of(array_of(PHYSICAL), "long"), pa.map_(pa.list_(IN_FILE), pa.int64()),
        lambda name: [([{name: 1}], 2)], "key.element.x",
    ),
    "key of a struct": (
        map_of(PHYSICAL, OTHER), pa.map_(IN_FILE, pa.struct([with_id("y", pa.int64(), 3)])),
        lambda name: [({name: 1}, {"y": 2})], "",
    ),
    "list": (array_of(PHYSICAL), pa.list_(IN_FILE), lambda name: [{name: 1}], ""),
    "value": (
        map_of("string", PHYSICAL), pa.map_(pa.string(), IN_FILE), lambda name: [("k", {name: 1})],
        "",
    ),
}  # fmt: skip


@pytest.mark.parametrize("has_ids", [True, False])
@pytest.mark.parametrize("container", IN_CONTAINERS)
def test_members_that_pyiceberg_finds_by_name_are_read_or_rejected(
    lake: Ledger, tmp_path: Path, container: str, *, has_ids: bool
) -> None:
    data_type, kind, value_of, misread = IN_CONTAINERS[container]
    folder = tmp_path / "source"
    folder.mkdir()
    schema = pa.schema([with_id("id", pa.int64(), 9), with_id("col-1", kind, 1)])
    arrays = [pa.array([1], pa.int64()), pa.array([value_of("col-2")], kind)]
    rows = pa.table(arrays, schema=schema if has_ids else without_ids(schema))
    parquet.write_table(rows, folder / "f.parquet")
    columns = [mapped("id", "long", 9, "id"), mapped("m", data_type, 1, "col-1")]
    protocol = {"protocol": {"minReaderVersion": 2, "minWriterVersion": 5}}
    mapping = {**MAPPING, "delta.columnMapping.maxColumnId": "9"}
    write(folder, 0, info(1), protocol, metadata(*columns, configuration=mapping))
    size = (folder / "f.parquet").stat().st_size
    write(folder, 1, info(2), add("f.parquet", size=size, stats='{"numRecords":1}'))
    lake.import_table("shop.t", str(folder), format_name="delta")

    def check(table: Table) -> None:
        if misread:
            with pytest.raises(
                UnsupportedError, match=rf"misread column m\.{misread}: .*\(col-2\)"
            ):
                table.at().to_arrow()
            assert table.at().to_arrow(columns=["id"]).to_pylist() == [{"id": 1}]
        else:
            assert table.at().to_arrow().to_pylist() == [{"id": 1, "m": value_of("x")}]

    check(lake.table("shop.t"))
    lake.promote("shop.t")
    table = lake.table("shop.t")
    check(table)
    declared = SetOption("ledger.formats", "delta,iceberg")
    warned = [each for each in table.plan([declared]).warnings if "were renamed" in each]
    assert [each.partition(": ")[0] for each in warned] == [f"column m.{misread}"] * bool(misread)
    table.alter([declared])
    check(table)


WIDENED: list[tuple[str, pa.DataType, Any, str, Any]] = [
    ("integer", pa.int32(), 1, "double", None),
    ("integer", pa.int32(), 1, "decimal(12,2)", None),
    ("long", pa.int64(), 1, "decimal(22,2)", None),
    ("date", pa.date32(), dt.date(2024, 1, 2), "timestamp_ntz", None),
    ("integer", pa.int32(), 1, "long", 1),
    ("float", pa.float32(), 0.5, "double", 0.5),
    ("decimal(6,2)", pa.decimal128(6, 2), Decimal("1.25"), "decimal(12,4)", Decimal("1.25")),
]
IN_DELTA_TYPES: dict[
    str, tuple[Callable[[Any], Any], Callable[[pa.DataType], pa.DataType], Callable[[Any], Any]]
] = {
    "a": (lambda kind: kind, lambda kind: kind, lambda value: value),
    "a.element": (array_of, pa.list_, lambda value: [value]),
    "a.value": (
        lambda kind: map_of("string", kind),
        lambda kind: pa.map_(pa.string(), kind),
        lambda value: [("k", value)],
    ),
    "a.x": (
        lambda kind: {"type": "struct", "fields": [mapped("x", kind, 2, "col-2")]},
        lambda kind: pa.struct([("col-2", kind)]),
        lambda value: {"col-2": value},
    ),
}


@pytest.mark.parametrize("is_promoted", [True, False])
@pytest.mark.parametrize("inside", IN_DELTA_TYPES)
@pytest.mark.parametrize("widened", WIDENED, ids=lambda each: f"{each[0]} to {each[3]}")
def test_a_type_of_a_version_that_was_not_imported_is_rejected_by_name(
    lake: Ledger,
    tmp_path: Path,
    widened: tuple[str, pa.DataType, Any, str, Any],
    inside: str,
    *,
    is_promoted: bool,
) -> None:
    before, arrow, value, after, wanted = widened
    type_of, arrow_of, value_of = IN_DELTA_TYPES[inside]
    folder = tmp_path / "source"
    folder.mkdir()
    column = pa.array([value_of(value)], arrow_of(arrow))
    parquet.write_table(pa.table({"col-1": column}), folder / "f.parquet")
    added = add("f.parquet", size=(folder / "f.parquet").stat().st_size, stats='{"numRecords":1}')
    features = ["typeWidening", "timestampNtz", "columnMapping"]
    versions = {"minReaderVersion": 3, "minWriterVersion": 7}
    protocol = {**versions, "readerFeatures": features, "writerFeatures": features}
    field = mapped("a", type_of(after), 1, "col-1")
    changes = [{"fromType": before, "toType": after}]
    path = {"element": "element", "value": "value"}.get(inside.partition(".")[2])
    if path is not None:
        changes = [{**changes[0], "fieldPath": path}]
    owner = field["type"]["fields"][0] if inside == "a.x" else field
    owner["metadata"]["delta.typeChanges"] = changes
    mapping = {**MAPPING, "delta.columnMapping.maxColumnId": "2"}
    # The log begins after the widening, as one that was cleaned up does.
    (folder / "_delta_log").mkdir()
    whole = [{"protocol": protocol}, metadata(field, configuration=mapping), added]
    parquet_rows(folder / f"_delta_log/{5:020d}.checkpoint.parquet", whole)
    lake.import_table("shop.t", str(folder), format_name="delta")
    if is_promoted:
        lake.promote("shop.t")
    if wanted is not None:
        found = value_of(wanted) if inside != "a.x" else {"x": wanted}
        assert rows_of(lake.table("shop.t")) == [{"a": found}]
        return
    with pytest.raises(UnsupportedError, match=rf"column {inside} from \w+ to \w+.*files from"):
        lake.table("shop.t").at().to_arrow()


def test_a_file_with_the_older_files_names_is_read(lake: Ledger) -> None:
    table = table_of(lake, a="INT")
    add_rows(table, "1.parquet", [{"a": 1}], has_ids=False)
    table.alter([RenameColumn(("a",), "b")])
    table.alter([AddColumn(("c",), "INT")])
    path = folder_of(table) / "2.parquet"
    kinds = {"a": pa.array([2], pa.int32()), "c": pa.array([3], pa.int32())}
    parquet.write_table(pa.table(kinds), path)
    table.add_files([str(path)])
    assert rows_of(table) == [{"b": 1, "c": None}, {"b": 2, "c": 3}]
