"""The table of errors of readers: each row that can be tried is, and a plan warns of it."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

import msgspec
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import parquet
from pyiceberg.exceptions import ResolveError
from pyiceberg.io.pyarrow import UnsupportedPyArrowTypeException, schema_to_pyarrow
from pyiceberg.schema import Schema as IcebergSchema
from pyiceberg.table import StaticTable
from pyiceberg.types import ListType, LongType, NestedField, StructType

import ledger
from ledger import (
    AddColumn,
    AddPartitionField,
    DropColumn,
    FileChange,
    FormatError,
    InvalidChangeError,
    Ledger,
    Move,
    RemovePartitionField,
    RenameColumn,
    Schema,
    SchemaChange,
    SetOption,
    Table,
    UnsupportedError,
    UpdateColumnPosition,
    UpdateColumnType,
    UpdatePartitionSpec,
)
from ledger.cli import main
from ledger.events import SpecChange
from ledger.model import read_type, type_to_wire
from projections.iceberg import Names
from projections.iceberg.planned import LIMITS
from tests.programs import run
from tests.projections.iceberg.importing.writing import created
from tests.readers.engines import HAS_CHDB, chdb_rows, duckdb_rows
from tests.readers.lakehouse import add_rows, folder_of, write_rows
from tests.readers.typed_rows import MOMENT, VALUES

Change = SchemaChange | SpecChange


@pytest.fixture
def lake(tmp_path: Path) -> Ledger:
    lake = ledger.open(str(tmp_path / "lake"))
    lake.create_database("shop")
    return lake


def table_of(lake: Ledger, columns: dict[str, Any], version: str = "2") -> Table:
    options = {"ledger.formats": "iceberg", "format-version": version}
    return lake.create_table("shop.t", Schema.of(columns, options=options))


def test_every_row_is_of_a_reader_a_version_and_something_that_a_change_brings() -> None:
    assert len({(each.reader, each.says) for each in LIMITS}) == len(LIMITS)
    assert all(each.reader and each.version and each.says for each in LIMITS)


_STRUCTS = read_type("ARRAY<ROW<x INT>>")
_MAP = read_type("MAP<STRING NOT NULL, ROW<x INT>>")
BROUGHT: dict[str, tuple[dict[str, Any], str, list[Change], set[str]]] = {
    "a list of structs": (
        {"id": "INT"}, "2", [AddColumn(("l",), type_to_wire(_STRUCTS))],
        {"column l: PyIceberg", "columns l, l.element: ClickHouse"},
    ),
    "a map of structs": (
        {"id": "INT"}, "2", [AddColumn(("m",), type_to_wire(_MAP))],
        {"column m: PyIceberg", "column m.value: ClickHouse"},
    ),
    "a default": (
        {"id": "INT"}, "3", [AddColumn(("d",), "INT", default_value="7")],
        {"column d: Trino", "column d: ClickHouse"},
    ),
    "a name with a dot": (
        {"id": "INT"}, "2", [AddColumn(("x.y",), "INT")],
        {"column x.y: PyIceberg"},
    ),
    "a time": (
        {"id": "INT"}, "2", [AddColumn(("t",), "TIME(3)")],
        {"column t: PyIceberg", "column t: Spark with Iceberg", "column t: ClickHouse"},
    ),
    "a time in microseconds": (
        {"id": "INT"}, "2", [AddColumn(("t",), "TIME(6)")],
        {"column t: Spark with Iceberg", "column t: ClickHouse"},
    ),
    "a moment in milliseconds": (
        {"id": "INT"}, "2", [AddColumn(("t",), "TIMESTAMP(3)")],
        {"column t: Spark with Iceberg", "column t: Polars (native)"},
    ),
    "moments in milliseconds, inside": (
        {"id": "INT", "r": read_type("ROW<x INT>")}, "2",
        [
            AddColumn(("r", "t"), "TIMESTAMP(0)"),
            AddColumn(("l",), type_to_wire(read_type("ARRAY<TIMESTAMP_LTZ(3)>"))),
        ],
        {"columns r.t, l.element: Polars (native)", "column l: ClickHouse"},
    ),
    "a moment of more digits": (
        {"t": "TIMESTAMP(3)"}, "2", [UpdateColumnType(("t",), "TIMESTAMP(6)")], set(),
    ),
    "nanoseconds": (
        {"id": "INT"}, "3",
        [AddColumn(("n",), "TIMESTAMP(9)"), AddColumn(("o",), "TIMESTAMP(7)")],
        {"columns n, o: Spark with Iceberg"},
    ),
    "a wider decimal": (
        {"id": "INT", "d": "DECIMAL(9, 2)"}, "2",
        [UpdateColumnType(("d",), "DECIMAL(12, 2)", keep_nullability=True)],
        {"column d: Polars (native)"},
    ),
    "a wider decimal in a struct": (
        {"id": "INT", "r": read_type("ROW<d DECIMAL(9, 2)>")}, "2",
        [UpdateColumnType(("r", "d"), "DECIMAL(12, 2)", keep_nullability=True)],
        {"column r.d: Polars (native)", "column r.d: ClickHouse"},
    ),
    "a wider decimal in a list and a map": (
        {"id": "INT", "l": read_type("ARRAY<DECIMAL(9, 2)>"),
         "m": read_type("MAP<STRING NOT NULL, DECIMAL(9, 2)>")}, "2",
        [
            UpdateColumnType(("l", "element"), "DECIMAL(12, 2)", keep_nullability=True),
            UpdateColumnType(("m", "value"), "DECIMAL(12, 2)", keep_nullability=True),
        ],
        {"columns l.element, m.value: Polars (native)"},
    ),
    "a small integer that becomes a BIGINT": (
        {"a": "TINYINT", "b": "SMALLINT NOT NULL", "c": "INT"}, "2",
        [UpdateColumnType((each,), "BIGINT", keep_nullability=True) for each in "abc"],
        {"columns a, b: Spark with Iceberg"},
    ),
    "a small integer that becomes an INT": (
        {"a": "TINYINT", "b": "SMALLINT"}, "2",
        [UpdateColumnType((each,), "INT") for each in "ab"], set(),
    ),
    "a small integer inside that becomes a BIGINT": (
        {"id": "INT", "r": read_type("ROW<a SMALLINT>")}, "2",
        [UpdateColumnType(("r", "a"), "BIGINT")], set(),
    ),
    "a partition field of a DOUBLE": (
        {"id": "INT", "v": "DOUBLE"}, "2",
        [UpdatePartitionSpec((AddPartitionField(("v",), "identity"),))],
        {"partition field v: PyIceberg 0.12 reads a DOUBLE"},
    ),
    "a partition field of a FLOAT": (
        {"id": "INT", "v": "FLOAT"}, "2",
        [UpdatePartitionSpec((AddPartitionField(("v",), "identity"),))], set(),
    ),
    "a partition field of a NOT NULL column": (
        {"id": "INT", "v": "DATE NOT NULL"}, "2",
        [UpdatePartitionSpec((AddPartitionField(("v",), "identity"),))],
        {"partition field v: PyIceberg 0.12 cannot read a NOT NULL"},
    ),
    "a partition field with another transform of a NOT NULL column": (
        {"id": "INT", "v": "DATE NOT NULL"}, "2",
        [UpdatePartitionSpec((AddPartitionField(("v",), "month"),))], set(),
    ),
    "a renamed list of structs": (
        {"id": "INT", "l": _STRUCTS}, "2", [RenameColumn(("l",), "k")], set(),
    ),
    "a name like another": (
        {"a": "INT"}, "2", [AddColumn(("A",), "INT")],
        {"columns a and A: Spark with Iceberg", "columns a and A: DuckDB"},
    ),
    "a name that becomes like another": (
        {"a": "INT", "b": "INT"}, "2", [RenameColumn(("b",), "A")],
        {"columns a and A: Spark with Iceberg", "columns a and A: DuckDB"},
    ),
    "the other of two alike goes": (
        {"a": "INT", "A": "INT"}, "2", [DropColumn(("a",))], set(),
    ),
    "a plain column": ({"id": "INT"}, "2", [AddColumn(("n",), "INT")], set()),
}  # fmt: skip


@pytest.mark.parametrize("what", BROUGHT)
def test_a_plan_warns_of_what_a_change_brings_and_only_of_that(lake: Ledger, what: str) -> None:
    columns, version, changes, wanted = BROUGHT[what]
    planned = table_of(lake, columns, version).plan(changes)
    assert planned.refusals == ()
    found = {" ".join(each.split(" ")) for each in planned.warnings}
    assert len(found) == len(wanted)
    for start in wanted:
        assert any(each.startswith(start) for each in found), (start, found)


def test_a_void_of_format_version_1_is_warned_of(lake: Ledger) -> None:
    table = table_of(lake, {"id": "INT"}, "1")
    table.alter([UpdatePartitionSpec((AddPartitionField(("id",), "bucket[4]"),))])
    change = UpdatePartitionSpec((RemovePartitionField(name="id_bucket_4"),))
    (said,) = table.plan([change]).warnings
    assert said.startswith("partition field id_bucket_4: DuckDB")


def test_a_column_that_was_small_long_ago_is_warned_of(lake: Ledger) -> None:
    table = table_of(lake, {"a": "SMALLINT", "b": "INT"})
    assert table.plan([UpdateColumnType(("a",), "INT")]).warnings == ()
    table.alter([UpdateColumnType(("a",), "INT")])
    table.alter([RenameColumn(("a",), "c")])
    wider = [UpdateColumnType((each,), "BIGINT") for each in "bc"]
    (said,) = table.plan(wider).warnings
    assert said.startswith("column c: Spark with Iceberg 1.11 cannot read as BIGINT")
    table.alter(wider)
    assert table.plan([RenameColumn(("c",), "d")]).warnings == ()


def test_a_partition_column_is_warned_of_once(lake: Ledger) -> None:
    table = table_of(lake, {"id": "INT", "v": "FLOAT NOT NULL"})
    field = UpdatePartitionSpec((AddPartitionField(("v",), "identity"),))
    (said,) = table.plan([field]).warnings
    assert said.startswith("partition field v: PyIceberg 0.12 cannot read a NOT NULL")
    table.alter([field])
    (said,) = table.plan([UpdateColumnType(("v",), "DOUBLE", keep_nullability=True)]).warnings
    assert said.startswith("partition field v: PyIceberg 0.12 reads a DOUBLE")
    assert table.plan([RenameColumn(("v",), "w"), AddColumn(("v",), "INT")]).warnings == ()


def test_a_format_that_is_newly_declared_is_warned_of_as_at_creation(lake: Ledger) -> None:
    columns = {"id": "INT", "s": "SMALLINT", "v": "DOUBLE NOT NULL", "t": "TIMESTAMP(3)"}
    options = {"ledger.formats": "delta"}
    schema = Schema.of(columns, partition_keys=["v"], options=options)
    table = lake.create_table("shop.t", schema)
    add_rows(table, "v=1.5/1.parquet", [{"id": 1, "v": 1.5}], has_ids=False)
    table.alter([UpdateColumnType(("s",), "BIGINT")])

    said = table.plan([SetOption("ledger.formats", "delta,iceberg")]).warnings
    assert [each.partition(" 1.")[0].partition(" 0.")[0] for each in said] == [
        "partition field v: PyIceberg",
        "partition field v: PyIceberg",
        "the table: PyIceberg",
        "column s: Spark with Iceberg",
        "column t: Spark with Iceberg",
        "column t: Polars (native)",
    ]
    table.alter([SetOption("ledger.formats", "delta,iceberg")])
    assert table.plan([SetOption("k", "v")]).warnings == ()


def test_the_command_line_shows_warnings(
    lake: Ledger, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table_of(lake, {"id": "INT"})
    words = ["plan", "shop.t", "--add", "t TIME(3)", "--ledger", str(tmp_path / "lake")]
    assert main(words) == 0
    assert "column t: ClickHouse 26.9 reads TIME as whole seconds" in capsys.readouterr().out
    assert main([*words, "--output", "json"]) == 0
    reported = json.loads(capsys.readouterr().out)["formats"]["iceberg"]["warnings"]
    assert [each.partition(":")[0] for each in reported] == ["column t"] * 3


def test_a_creation_is_warned_of_what_readers_get_wrong_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ledger.open(str(tmp_path / "lake")).create_database("shop")
    columns = ["--column", "id INT", "--column", "ID INT"]
    words = ["create", "shop.t", *columns, "--ledger", str(tmp_path / "lake")]
    assert main(words) == 0
    reported = capsys.readouterr()
    assert reported.out.startswith("created table shop.t")
    assert "columns id and ID: DuckDB 1.5 renames" in reported.out
    words[1] = "shop.u"
    assert main([*words, "--output", "json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["warnings"]) == 2
    assert main(["create", "shop.v", *columns[:2], *words[-2:]]) == 0
    assert capsys.readouterr().out.count("\n") == 1


def test_a_table_without_columns_is_for_paimon_alone(lake: Ledger) -> None:
    with pytest.raises(FormatError, match="a table without columns: readers fail on it"):
        lake.create_table("shop.t", Schema.of({}))
    paimons = lake.create_table("shop.p", Schema.of({}, options={"ledger.formats": "paimon"}))
    with pytest.raises(FormatError, match="a table without columns"):
        paimons.alter([SetOption("ledger.formats", "paimon,iceberg")])
    paimons.alter([AddColumn(("a",), "INT")])
    paimons.alter([SetOption("ledger.formats", "paimon,iceberg")])


# What the readers that are installed do


def limit(reader: str, says: str) -> None:
    """Assert that the table has a row, so that removing a row fails its test."""
    assert any(each.reader == reader and says in each.says for each in LIMITS)


def newest(table: Table) -> str:
    table.project("iceberg")
    version = table.state.version
    return f"{table.location}/{Names(table.state.table_id).metadata(version)}"


def test_pyiceberg_cannot_filter_by_a_name_with_a_dot(lake: Ledger) -> None:
    limit("PyIceberg", "a name with a dot in it")
    table = table_of(lake, {"x.y": "INT"})
    add_rows(table, "1.parquet", [{"x.y": 1}, {"x.y": 2}])
    there = StaticTable.from_metadata(newest(table))
    assert there.scan().to_arrow()["x.y"].to_pylist() == [1, 2]

    with pytest.raises(pa.ArrowInvalid, match="No match for FieldRef"):
        there.scan(row_filter="x.y > 1").to_arrow()


@pytest.mark.parametrize(
    ("kind", "text"),
    [("list", "ARRAY<ROW<x INT>>"), ("map", "MAP<STRING NOT NULL, ROW<x INT>>")],
)
def test_pyiceberg_reads_a_null_list_or_map_of_structs_as_an_empty_one(
    lake: Ledger, kind: str, text: str
) -> None:
    limit("PyIceberg", f"NULL {'list or map'} of structs")
    table = table_of(lake, {"id": "INT", "v": read_type(text)})
    add_rows(table, "1.parquet", [{"id": 1, "v": None}, {"id": 2, "v": []}])
    path = str(folder_of(table) / "1.parquet")
    plain = parquet.read_table(path)["v"].to_pylist()
    assert plain == [None, []], kind
    found = StaticTable.from_metadata(newest(table)).scan().to_arrow()["v"].to_pylist()
    assert found == [[], []]


_MEMBERS = "ROW<q INT, r INT>"
_FILE_STRUCT = {"q": 5, "r": 6}
_CONTAINERS: dict[str, tuple[str, tuple[str, ...], Callable[[Any], Any], bool]] = {
    "list": ("ARRAY<{}>", ("element",), lambda value: [value], False),
    "map value": ("MAP<INT, {}>", ("value",), lambda value: [(1, value)], False),
    "list in a list": ("ARRAY<ARRAY<{}>>", ("element",) * 2, lambda value: [[value]], True),
    "list in a map": (
        "MAP<INT, ARRAY<{}>>", ("value", "element"), lambda value: [(1, [value])], True,
    ),
    "map in a list": (
        "ARRAY<MAP<INT, {}>>", ("element", "value"), lambda value: [[(1, value)]], True,
    ),
    "list in a struct in a list": (
        "ARRAY<ROW<s ARRAY<{}>>>", ("element", "s", "element"), lambda value: [{"s": [value]}],
        False,
    ),
    "list in a struct in a list in a list": (
        "ARRAY<ARRAY<ROW<s ARRAY<{}>>>>", ("element", "element", "s", "element"),
        lambda value: [[{"s": [value]}]], True,
    ),
}  # fmt: skip
_MEMBER_CHANGES: dict[str, tuple[Callable[[tuple[str, ...]], list[Change]], Any, bool]] = {
    "a rename": (
        lambda path: [RenameColumn((*path, "q"), "x")], {"x": 5, "r": 6}, True,
    ),
    "a new member": (
        lambda path: [AddColumn((*path, "x"), "INT")], {**_FILE_STRUCT, "x": None}, False,
    ),
    "a wider member": (
        lambda path: [UpdateColumnType((*path, "q"), "BIGINT")], _FILE_STRUCT, False,
    ),
    "a drop": (lambda path: [DropColumn((*path, "q"))], {"r": 6}, False),
    "a drop and an add": (
        lambda path: [DropColumn((*path, "r")), AddColumn((*path, "r"), "INT")],
        {"q": 5, "r": None}, True,
    ),
    "a move": (
        lambda path: [UpdateColumnPosition(Move("r", "FIRST"), (*path, "r"))],
        {"r": 6, "q": 5}, True,
    ),
}  # fmt: skip


@pytest.mark.parametrize("change", _MEMBER_CHANGES)
@pytest.mark.parametrize("container", _CONTAINERS)
def test_pyiceberg_misreads_changed_members_of_structs_that_it_casts_by_name(
    lake: Ledger, container: str, change: str
) -> None:
    limit("PyIceberg", "misreads or cannot read members that were renamed")
    text, inside, value_of, is_by_name = _CONTAINERS[container]
    changes_at, wanted, is_misread = _MEMBER_CHANGES[change]
    table = table_of(lake, {"id": "INT", "m": read_type(text.format(_MEMBERS))})
    add_rows(table, "1.parquet", [{"id": 1, "m": value_of(_FILE_STRUCT)}])
    changes = changes_at(("m", *inside))
    warned = [each for each in table.plan(changes).warnings if "misreads or cannot" in each]
    for each in changes:
        table.alter([each])

    rows = [{"id": 1, "m": value_of(wanted)}]
    try:
        found = StaticTable.from_metadata(newest(table)).scan().to_arrow().to_pylist()
    except pa.ArrowTypeError:
        found = []
    assert (found != rows) is bool(warned) is (is_by_name and is_misread)
    if warned:
        path = ".".join(("m", *inside))
        with pytest.raises(UnsupportedError, match=rf"would misread column {path}\.\w: .*\(q, r\)"):
            table.at().to_arrow()
        assert table.at().to_arrow(columns=["id"]).to_pylist() == [{"id": 1}]
    else:
        assert table.at().to_arrow().to_pylist() == rows
    table.overwrite(table.data_files([str(write_rows(table, "2.parquet", rows))]))
    assert table.at().to_arrow().to_pylist() == rows


@pytest.mark.parametrize("is_promoted", [True, False])
def test_renamed_members_of_an_imported_iceberg_table_are_rejected_by_name(
    lake: Ledger, tmp_path: Path, *, is_promoted: bool
) -> None:
    member = NestedField(4, "q", LongType(), required=False)
    inner = ListType(3, StructType(member), element_required=False)
    column = NestedField(1, "m", ListType(2, inner, element_required=False), required=False)
    source = created(tmp_path / "source", IcebergSchema(column))
    rows = [{"m": [[{"q": 1}]]}]
    source.append(pa.Table.from_pylist(rows, schema=schema_to_pyarrow(source.schema())))

    def table() -> Table:
        lake.import_table("shop.t", source.metadata_location)
        if is_promoted:
            lake.promote("shop.t")
        return lake.table("shop.t")

    if not is_promoted:
        assert table().at().to_arrow().to_pylist() == rows
    with source.update_schema() as update:
        update.rename_column(("m", "element", "element", "q"), "x")
    with pytest.raises(UnsupportedError, match=r"misread column m\.element\.element\.x: .*\(q\)"):
        table().at().to_arrow()


def test_pyiceberg_cannot_read_files_that_have_time_in_milliseconds(lake: Ledger) -> None:
    limit("PyIceberg", "TIME in milliseconds")
    table = table_of(lake, {"id": "INT", "t": "TIME(3)"})
    add_rows(table, "1.parquet", [{"id": 1, "t": dt.time(1, 2)}])
    with pytest.raises(UnsupportedPyArrowTypeException, match=r"time32\[ms\]"):
        StaticTable.from_metadata(newest(table)).scan().to_arrow()


_PARTITION_TYPES = {
    **{text: values[0] for text, values in VALUES.items() if text != "TIME(3)"},
    "UUID": bytes(range(16)),
    "TIMESTAMP(9)": MOMENT,
    "TIMESTAMP_LTZ(9)": MOMENT.replace(tzinfo=dt.UTC),
}


@pytest.mark.parametrize("nullability", ["", " NOT NULL"])
@pytest.mark.parametrize("text", _PARTITION_TYPES)
def test_a_plan_warns_of_partition_values_that_pyiceberg_misreads_and_only_of_those(
    lake: Ledger, text: str, nullability: str
) -> None:
    table = table_of(lake, {"id": "INT", "v": f"{text}{nullability}"}, "3")
    change = UpdatePartitionSpec((AddPartitionField(("v",), "identity"),))
    says = {each.says for each in LIMITS}
    warned = [each for each in table.plan([change]).warnings if "PyIceberg" in each]
    assert {each.partition(" 0.12 ")[2] for each in warned} <= says
    table.alter([change])

    assert bool(warned) == bool(_misread_with_and_without_the_column(table, _PARTITION_TYPES[text]))


def _misread_with_and_without_the_column(table: Table, value: Any) -> list[str]:
    """Return the errors of PyIceberg with a file that has a partition column, then without it."""
    arrow = table.at().schema.to_arrow()
    rows = pa.Table.from_pylist([{"id": 1, "v": value}, {"id": 2, "v": value}], schema=arrow)
    # No statistics tell a floating-point value, but a folder does.
    folder = f"v={value}" if isinstance(value, float) else "."
    path = folder_of(table) / folder / "1.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(rows, path)
    table.add_files([str(path)])
    problems = [_misread(table, rows)]
    (whole,) = table.at().files
    table.delete_files([whole.path])
    path = folder_of(table) / "2.parquet"
    parquet.write_table(rows.select(["id"]), path)
    size = path.stat().st_size
    table.append([msgspec.structs.replace(whole, path="2.parquet", file_size_in_bytes=size)])
    problems.append(_misread(table, rows))
    return [each for each in problems if each]


def _misread(table: Table, rows: pa.Table) -> str:
    try:
        found = StaticTable.from_metadata(newest(table)).scan().to_arrow()
    except (ResolveError, ValueError, pa.ArrowTypeError) as error:
        return str(error)
    return "" if found["v"].to_pylist() == rows["v"].to_pylist() else str(found["v"])


def test_pyiceberg_skips_rows_of_a_double_partition(lake: Ledger) -> None:
    limit("PyIceberg", "reads a DOUBLE partition value as FLOAT")
    table = table_of(lake, {"id": "INT", "v": "DOUBLE"})
    table.alter([UpdatePartitionSpec((AddPartitionField(("v",), "identity"),))])
    add_rows(table, "v=1.1/1.parquet", [{"id": 1, "v": 1.1}])
    there = StaticTable.from_metadata(newest(table))
    assert there.scan().to_arrow().to_pylist() == [{"id": 1, "v": 1.1}]
    assert there.scan(row_filter="v = 1.1").to_arrow().to_pylist() == []
    assert table.at().to_arrow(where="v = 1.1").to_pylist() == [{"id": 1, "v": 1.1}]


_EXTRA_COLUMNS: dict[str, pa.Array] = {
    "a column": pa.array([5]),
    "a struct": pa.array([{"x": 1}]),
    "a list": pa.array([[1]]),
    "a map": pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int64())),
    "a member": pa.array([{"x": 1, "y": 2}], pa.struct([("x", pa.int32()), ("y", pa.int32())])),
}


@pytest.mark.parametrize("what", _EXTRA_COLUMNS)
def test_pyiceberg_cannot_read_more_columns_than_a_name_mapping_has(
    lake: Ledger, what: str
) -> None:
    limit("PyIceberg", "more columns than the table ever had")
    columns = {"id": "INT", "old": "INT", "r": read_type("ROW<x INT>")}
    table = table_of(lake, columns)
    add_rows(table, "1.parquet", [{"id": 1, "old": 2}], has_ids=False)
    table.alter([DropColumn(("old",))])
    there = StaticTable.from_metadata(newest(table)).scan()
    assert there.to_arrow().to_pylist() == [{"id": 1, "r": None}]

    name = "r" if what == "a member" else "extra"
    rows = pa.table({"id": pa.array([1], pa.int32()), name: _EXTRA_COLUMNS[what]})
    path = folder_of(table) / "2.parquet"
    parquet.write_table(rows, path)
    size = path.stat().st_size
    # What the ledger looks into is rejected; engines append what they wrote.
    with pytest.raises(InvalidChangeError, match="fits no schema"):
        table.add_files([str(path)])
    table.append([FileChange(path="2.parquet", record_count=1, file_size_in_bytes=size)])
    with pytest.raises(ValueError, match="Could not find field with name"):
        StaticTable.from_metadata(newest(table)).scan().to_arrow()


@pytest.mark.parametrize("text", [each for each in VALUES if each.startswith("TIMESTAMP")])
@pytest.mark.parametrize("inside", ["{}", "ROW<x {}>", "ARRAY<{}>"])
def test_polars_by_itself_fails_on_milliseconds(lake: Ledger, text: str, inside: str) -> None:
    limit("Polars (native)", "timestamps in milliseconds")
    table = table_of(lake, {"id": "INT"})
    added = AddColumn(("v",), type_to_wire(read_type(inside.format(text))))
    is_warned = any("Polars (native)" in each for each in table.plan([added]).warnings)
    table.alter([added])
    add_rows(table, "1.parquet", [{"id": 1}])
    scan = pl.scan_iceberg(newest(table), reader_override="native")
    if is_warned:
        with pytest.raises(pl.exceptions.PolarsError):
            scan.collect()
    else:
        assert scan.collect()["id"].to_list() == [1]


def test_polars_by_itself_fails_on_a_decimal_that_was_widened(lake: Ledger) -> None:
    limit("Polars (native)", "DECIMAL that was widened")
    table = table_of(lake, {"id": "INT", "d": "DECIMAL(9, 2)"})
    add_rows(table, "1.parquet", [{"id": 1, "d": 1}])
    table.alter([UpdateColumnType(("d",), "DECIMAL(12, 2)")])
    scan = pl.scan_iceberg(newest(table), reader_override="native")
    with pytest.raises(pl.exceptions.PolarsError):
        scan.collect()
    assert table.at().to_arrow()["d"].to_pylist() == [1]


_BY_CLICKHOUSE: dict[str, tuple[str, str, Any, Any]] = {
    "TIME as whole seconds": ("TIME(6)", "2", 45_296_123_456, 45_296),
    "NULL list or struct": ("ARRAY<INT>", "2", None, []),
}


@pytest.mark.skipif(not HAS_CHDB, reason="chdb is not installed")
@pytest.mark.parametrize("says", _BY_CLICKHOUSE)
def test_clickhouse_reads_some_types_otherwise(lake: Ledger, says: str) -> None:
    limit("ClickHouse", says)
    text, version, value, wrong = _BY_CLICKHOUSE[says]
    table = table_of(lake, {"id": "INT", "v": read_type(text)}, version)
    arrow = table.at().schema.to_arrow()
    kind = arrow.field("v").type
    column = pa.array([value], pa.int64() if pa.types.is_time(kind) else kind)
    body = pa.table([pa.array([1], pa.int32()), column.cast(kind)], schema=arrow)
    parquet.write_table(body, folder_of(table) / "1.parquet")
    table.add_files([str(folder_of(table) / "1.parquet")])
    table.project("iceberg")
    (row,) = chdb_rows(folder_of(table))
    assert row["v"] == wrong


@pytest.mark.skipif(not HAS_CHDB, reason="chdb is not installed")
def test_clickhouse_reads_null_where_older_files_have_the_default(lake: Ledger) -> None:
    limit("ClickHouse", "older files have the default")
    table = table_of(lake, {"id": "INT"}, "3")
    add_rows(table, "1.parquet", [{"id": 1}])
    table.alter([AddColumn(("d",), "INT", default_value="7")])
    table.project("iceberg")
    assert table.at().to_arrow()["d"].to_pylist() == [7]
    assert [each["d"] for each in chdb_rows(folder_of(table))] == [None]


def test_duckdb_aborts_on_a_void_partition_field_of_version_1(lake: Ledger) -> None:
    limit("DuckDB", "void partition field")
    table = table_of(lake, {"id": "INT", "day": "DATE"}, "1")
    table.alter([UpdatePartitionSpec((AddPartitionField(("day",), "month"),))])
    add_rows(table, "1.parquet", [{"id": 1, "day": dt.date(2013, 1, 1)}])
    table.alter([UpdatePartitionSpec((RemovePartitionField(name="day_month"),))])
    add_rows(table, "2.parquet", [{"id": 2, "day": dt.date(2013, 1, 1)}])
    table.project("iceberg")
    program = (
        "import sys; from pathlib import Path; from tests.readers.engines import duckdb_rows; "
        "duckdb_rows(Path(sys.argv[1]))"
    )
    ran = run("-c", program, folder_of(table))
    # The whole process ends, as no exception would let it.
    assert ran.returncode < 0
    assert "Unimplemented type for cast" in ran.stderr


def test_duckdb_renames_one_of_two_names_that_differ_by_case_alone(lake: Ledger) -> None:
    limit("DuckDB", "differ by case alone")
    table = table_of(lake, {"a": "INT", "A": "INT"})
    add_rows(table, "1.parquet", [{"a": 1, "A": 2}])
    table.project("iceberg")
    assert duckdb_rows(folder_of(table)) == [{"a": 1, "A_1": 2}]
    assert table.at().to_arrow().to_pylist() == [{"a": 1, "A": 2}]


_TRIED: dict[str, Callable[[], str]] = {
    "PyIceberg": lambda: metadata.version("pyiceberg"),
    "Polars (native)": lambda: metadata.version("polars"),
}


@pytest.mark.parametrize("reader", _TRIED)
def test_the_table_names_the_versions_that_were_tried(reader: str) -> None:
    for each in LIMITS:
        if each.reader == reader:
            assert _TRIED[reader]().startswith(each.version), "try it, and name the new version"
