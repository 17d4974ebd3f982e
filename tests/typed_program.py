"""A program of a user: everything that the library takes, as a strict type checker sees it.

`tests/test_typing.py` runs it, and checks it with `mypy --strict`.
"""

from __future__ import annotations

from collections import deque
from datetime import UTC, datetime
from pathlib import Path

import pandas as pd
import polars as pl
import pyarrow as pa
from pyarrow import parquet

import ledger
from ledger import (
    AddColumn,
    AddPartitionField,
    DropColumn,
    FileChange,
    Function,
    Identifier,
    Ledger,
    Move,
    RemovePartitionField,
    RenameColumn,
    RenamePartitionField,
    ReplaceSortOrder,
    Schema,
    SchemaChange,
    SetIdentifierFields,
    SetOption,
    SnapshotPlan,
    SortColumn,
    SqlFunctionDefinition,
    Table,
    UndropColumn,
    UpdateColumnComment,
    UpdateColumnDefaultValue,
    UpdateColumnNullability,
    UpdateColumnPosition,
    UpdateColumnType,
    UpdateComment,
    UpdatePartitionSpec,
    ViewSchema,
    evolve,
    schema_change_to_json,
    schema_of_files,
)
from ledger.transforms import bucket, day


def open_ledger(folder: Path) -> Ledger:
    """Open a ledger at a path, at a text, and with locations of several kinds."""
    ledger.open(str(folder), allowed_locations=["/tmp"])  # noqa: S108 - never read
    ledger.open(folder, author="ada", allowed_locations={str(folder)})
    lake = ledger.open(folder / "lake", author="ada")
    lake.create_database("shop", {"owner": "ada"})
    lake.alter_database("shop", removals={"gone"}, updates={"owner": "bob"})
    return lake


def define_schemas() -> list[Schema]:
    """Define schemas by texts, types, frames and schemas of other libraries."""
    number = Schema.of({"id": "int64"}).field("id").type
    frame = pd.DataFrame({"id": [1]})
    return [
        Schema.of({"id": "BIGINT", "tags": "ARRAY<STRING>", "n": number}),
        Schema.of({"id": number}, partition_keys="id"),
        Schema.of({"id": "INT", "tags": {"type": "ARRAY", "element": "STRING"}}),
        Schema.of({"id": "int64", "day": "date"}, partition_keys=["day"], primary_keys=("id",)),
        Schema.of({"id": "int64", "day": "date"}, partition_keys={"day"}, options={"a": "b"}),
        Schema.of(pa.schema([("id", pa.int64())]), comment="of Arrow"),
        Schema.of(pa.table({"id": [1]})),
        Schema.of(pl.DataFrame({"id": [1]}), partition_keys=(name for name in ["id"])),
        Schema.of(pl.DataFrame({"id": [1]}).schema),
        Schema.of(frame),
        Schema(fields=[*Schema.of(frame).fields], partition_keys=["id"]),
    ]


def create_tables(lake: Ledger) -> Table:
    """Create tables of each kind of schema, with layouts of each kind of field."""
    columns = {
        "id": "int64 not null",
        "day": "date",
        "address": "struct<zip: string, city: string>",
    }
    lake.create_table("shop.a", {"id": "text"}, partition_spec=["id"], sort_order=("id",))
    lake.create_table(Identifier("shop", "b"), pa.schema([("id", pa.int64())]))
    lake.create_table("shop.c", pl.DataFrame({"id": [1]}))
    lake.create_table("shop.d", pd.DataFrame({"id": [1]}))
    lake.create_table(
        "shop.e",
        columns,
        partition_spec=[day("day"), ["address", "zip"], AddPartitionField("id", "bucket[8]")],
        sort_order=[SortColumn("id", direction="desc"), bucket("id", 4), ("address", "city")],
    )
    lake.create_view("shop.v", ViewSchema([*Schema.of(columns).fields], "SELECT 1", {"spark": "x"}))
    lake.alter_view("shop.v", [UpdateComment("all"), SetOption("a", "b")])
    area = Function(definitions={"trino": SqlFunctionDefinition("a * b")})
    lake.create_function("shop.area", area)
    lake.alter_function("shop.area", [UpdateComment("all"), SetOption("a", "b")])
    of_view = [UpdateComment("none"), SetOption("a", "c")]
    lake.alter_view("shop.v", of_view)
    return lake.create_table("shop.orders", columns)


def all_changes() -> list[SchemaChange]:
    """Return changes with paths as texts, lists, tuples and other sequences."""
    return [
        AddColumn("x", "INT"),
        AddColumn(["address", "street"], "VARCHAR(20)", "the street", Move("street", "FIRST")),
        AddColumn(("tags",), "list<item: int64>"),
        AddColumn(deque(["more"]), {"type": "ARRAY", "element": "int64"}),
        AddColumn("again", Schema.of({"x": "ROW<a INT>"}).field("x").type, field_id=77),
        UpdateColumnType("x", "int64", keep_nullability=True),
        UpdateColumnType(["x"], Schema.of({"x": "BIGINT"}).field("x").type),
        UpdateColumnComment("address.zip", "five digits"),
        UpdateColumnComment(["address", "zip"], None),
        UpdateColumnDefaultValue("x", "7"),
        UpdateColumnPosition(Move("x", "AFTER", "id")),
        UpdateColumnPosition(Move("city", "FIRST"), "address.city"),
        UpdateColumnPosition(Move("zip", "FIRST"), ["address", "zip"]),
        RenameColumn("address.zip", "code"),
        UpdateColumnNullability("x", new_nullability=True),
        SetIdentifierFields(["id"]),
        SetIdentifierFields("id"),
        SetIdentifierFields([["id"]]),
        SetIdentifierFields((("id",),)),
        SetOption("note", "x"),
        UpdateComment("orders"),
    ]


def alter_table(table: Table) -> None:
    """Change a table by each kind of call."""
    table.plan(each for each in all_changes())
    now = datetime.now(UTC)  # noqa: TID251 - about now
    table.alter(all_changes(), author="ada", properties={"a": "b"}, effective_time=now)
    table.alter([RenameColumn(["address", "code"], "zip")])
    later = [AddColumn("y", "INT"), RenameColumn("y", "z"), DropColumn("z"), SetOption("a", "b")]
    table.plan(later)
    table.alter(later)
    table.alter([DropColumn("tags"), DropColumn(["again"])])
    table.alter([UndropColumn("tags"), UndropColumn(["again"], move=Move("again", "FIRST"))])
    table.alter([{"type": "addColumn", "fieldNames": ["json"], "dataType": "map<string, int>"}])
    table.alter(
        [
            UpdatePartitionSpec([AddPartitionField("id", "bucket[8]", "shard")]),
            ReplaceSortOrder([SortColumn("id"), SortColumn(["address", "city"])]),
        ]
    )
    removal = RemovePartitionField(source="id", transform="bucket[8]")
    table.alter((UpdatePartitionSpec([removal, AddPartitionField(["id"])]),))
    fields = [AddPartitionField("id", "truncate[4]", "cut"), RenamePartitionField("id", "id_key")]
    table.plan([UpdatePartitionSpec(fields)])
    layout = [UpdatePartitionSpec(fields), ReplaceSortOrder([SortColumn("id")]), DropColumn("more")]
    table.plan(layout)
    table.alter([UpdatePartitionSpec((RenamePartitionField("id", "key"),))])
    update = table.update_schema().add_column("u", "struct<a: int>")
    update.add_column(["address", "b"], "text").commit()
    table.update_spec().remove_field("key").add_field(("address", "city")).commit()
    table.replace_sort_order().asc("id", "last").desc(["address", "city"]).commit()
    evolve(table.schema, [DropColumn("u"), {"type": "dropColumn", "fieldNames": ["x"]}])
    for change in all_changes():
        schema_change_to_json(change)


def commit_files(table: Table, folder: Path) -> None:
    """Register, add, replace and delete files, named by paths and texts."""
    file = folder / "a.parquet"
    parquet.write_table(pa.table({"id": [1]}), file)
    for paths in (file, str(file), [file], (str(file),)):
        schema_of_files(paths)
    table.alter([UpdatePartitionSpec([RemovePartitionField("address.city")])], message="one file")
    table.append([_added("b.parquet")])
    table.commit_snapshot(SnapshotPlan("OVERWRITE", delete=["b.parquet"]))
    table.commit_snapshot(SnapshotPlan("APPEND", [_added("c.parquet")]))
    table.delete_files(Path("c.parquet"))
    table.overwrite([_added("d.parquet")], where={})
    table.delete_files(["d.parquet"])


def append_rows(lake: Ledger) -> Table:
    """Create a table of rows, and append and overwrite rows of each kind."""
    rows: list[dict[str, object]] = [{"id": 1, "city": "Oslo"}, {"id": 2, "city": None}]
    towns = lake.create_table("shop.towns", rows, append=True, message="the first two")
    arrow = pa.table({"id": [3], "city": ["Rome"]})
    for data in (arrow, arrow.to_batches()[0], arrow.to_reader()):
        towns.append(data)
    towns.append(pd.DataFrame({"id": [4]}), commit_id="monday")
    towns.append(pl.DataFrame({"id": [5]}))
    towns.append(each for each in [{"id": 6}])
    towns.overwrite(rows, where={}, author="bob")
    towns.branch("audit").create()
    towns.branch("audit").append([{"id": 7}])
    return towns


def read_rows(towns: Table) -> None:
    """Read rows at each kind of instant, into each library."""
    for instant in (0, -1, "HEAD~1", "branch:audit", "now", datetime(9999, 1, 1, tzinfo=UTC)):
        assert towns.at(instant).version <= towns.state.version
    assert pa.table(towns.at()).num_rows == pl.DataFrame(towns.at()).height == 2
    reader: pa.RecordBatchReader = towns.at().to_arrow_batch_reader("id > 1", columns=["id"])
    assert reader.read_all().num_rows == 1
    assert towns.at("HEAD").to_polars().height == len(towns.to_pandas())
    towns.alter([SetOption("a", "b")])
    towns.undo("HEAD", message="not needed")
    assert [*towns.entries(since="15m ago", until="9999-12-31")]
    towns.diff("version:0", towns.at("now"))
    assert towns.plan_restore("HEAD").changes == ()


def _added(path: str) -> FileChange:
    return FileChange(
        path=path, partition=[], record_count=1, file_size_in_bytes=9, extra_files=["x"], spec_id=0
    )


def read_history(table: Table) -> None:
    """Read the past by each kind of instant and filter."""
    for since in ("2020-01-01T00:00:00Z", datetime(2020, 1, 1, tzinfo=UTC), 0):
        list(table.entries(since=since, until="2100-01-01T00:00:00Z", kinds="addColumn"))
    list(table.entries(kinds=["addColumn"], column=["address", "zip"]))
    table.at(timestamp="2100-01-01T00:00:00Z").plan([("id", ">", 3)])
    table.at().plan([[("id", ">", 3)], [("id", "==", 1)]])
    table.at().plan("id > 3")
    table.blame("address.zip")
    table.column_id(["address", "zip"])
    table.diff(0, table.at())
    table.plan_clock_correction("2020-01-01T00:00:00Z")


def main(folder: Path) -> None:
    """Run everything in an empty folder."""
    assert len(define_schemas()) == len({*map(id, define_schemas())})
    lake = open_ledger(folder)
    table = create_tables(lake)
    alter_table(table)
    commit_files(table, folder)
    read_history(table)
    read_rows(append_rows(lake))
