"""Files without rows, as Spark writes them for empty tasks, hinder no reader of a table."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet
from pyiceberg.table import StaticTable

import ledger
from ledger import FileChange, Ledger, RenameColumn, Schema, SetOption, Table
from tests.projections.delta.importing.test_following import ID, PROTOCOL, add, metadata, write
from tests.projections.iceberg.importing.writing import created
from tests.readers.engines import duckdb_rows
from tests.readers.lakehouse import add_rows, folder_of

COLUMNS = pa.schema([("id", pa.int64())])
ROW_GROUPS = pytest.mark.parametrize("row_groups", [0, 1, 2])
"""Row groups of the empty file; some writers close a file without any."""


def empty_file(path: Path, row_groups: int, columns: pa.Schema = COLUMNS) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    with parquet.ParquetWriter(path, columns) as writer:
        for _ in range(row_groups):
            writer.write_table(columns.empty_table())
    found = parquet.read_metadata(path)
    assert (found.num_rows, found.num_row_groups) == (0, row_groups)
    return str(path)


def lake_in(folder: Path) -> Ledger:
    lake = ledger.open(folder / "lake")
    lake.create_database("d")
    return lake


def native(folder: Path) -> Table:
    return lake_in(folder).create_table("d.t", Schema.of({"id": "BIGINT"}))


def promoted_delta(folder: Path) -> Table:
    write(folder / "t", 0, PROTOCOL, metadata(ID))
    lake = lake_in(folder)
    lake.import_table("d.t", str(folder / "t"), format_name="delta")
    lake.promote("d.t")
    table = lake.table("d.t")
    table.alter([SetOption("ledger.formats", "delta,iceberg")])
    return table


def promoted_iceberg(folder: Path) -> Table:
    theirs = created(folder / "t")
    lake = lake_in(folder)
    lake.import_table("d.t", theirs.metadata_location)
    lake.promote("d.t")
    return lake.table("d.t")


OWNED = pytest.mark.parametrize("owned", [native, promoted_delta, promoted_iceberg])


def ids(table: Table, where: str | None = None) -> list[int]:
    return sorted(table.at().to_arrow(where)["id"].to_pylist())


@ROW_GROUPS
@OWNED
def test_a_table_whose_only_file_is_empty_has_no_rows(
    tmp_path: Path, owned: Callable[[Path], Table], row_groups: int
) -> None:
    table = owned(tmp_path)
    table.add_files([empty_file(folder_of(table) / "e.parquet", row_groups)])
    assert ids(table) == ids(table, "id > 1") == ids(table, "id is null") == []
    scan = table.at().scan("id > 1")
    assert (scan.count(), scan.filter("id < 9").to_arrow().num_rows) == (0, 0)
    assert table.at().to_arrow().schema.names[0] == "id"


@ROW_GROUPS
@OWNED
def test_rows_next_to_an_empty_file_are_read_at_each_snapshot(
    tmp_path: Path, owned: Callable[[Path], Table], row_groups: int
) -> None:
    table = owned(tmp_path)
    home = folder_of(table)
    add_rows(table, "1.parquet", [{"id": 1}])
    table.add_files([empty_file(home / "e.parquet", row_groups)])
    add_rows(table, "2.parquet", [{"id": 2}])
    assert ids(table) == ids(table, "id > 0") == [1, 2]
    assert ids(table, "id > 1") == [2]
    table.alter([RenameColumn(("id",), "nr")])
    assert table.at().to_arrow("nr > 1").to_pylist()[0]["nr"] == 2
    version = table.project("iceberg")
    by_pyiceberg = StaticTable.from_metadata(f"{home}/metadata/v{version}.metadata.json")
    assert sorted(by_pyiceberg.scan().to_arrow()["nr"].to_pylist()) == [1, 2]
    assert sorted(each["nr"] for each in duckdb_rows(home)) == [1, 2]


@ROW_GROUPS
@pytest.mark.parametrize("in_file", [False, True])
def test_a_partition_may_have_empty_files_alone(
    tmp_path: Path, row_groups: int, *, in_file: bool
) -> None:
    schema = Schema.of({"id": "BIGINT", "p": "INT"}, partition_keys=("p",))
    table = lake_in(tmp_path).create_table("d.t", schema)
    columns = COLUMNS.append(pa.field("p", pa.int32())) if in_file else COLUMNS
    home = folder_of(table)
    for partition in (1, 2):
        path = home / f"p={partition}/e.parquet"
        table.add_files([empty_file(path, row_groups, columns)])
        assert ids(table) == ids(table, f"p = {partition}") == []
    rows = home / "p=2/r.parquet"
    parquet.write_table(pa.table({"id": [7], "p": pa.array([2], pa.int32())}), rows)
    table.add_files([str(rows)])
    assert (ids(table), ids(table, "p = 1"), ids(table, "p = 2")) == ([7], [], [7])


def test_deletes_may_refer_to_an_empty_file(tmp_path: Path) -> None:
    table = native(tmp_path)
    table.alter([SetOption("ledger.formats", "iceberg")])
    home = folder_of(table)
    add_rows(table, "1.parquet", [{"id": 1}, {"id": 2}])
    table.add_files([empty_file(home / "e.parquet", 1)])
    named = [f"{table.location}/1.parquet", f"{table.location}/e.parquet"]
    deletes = pa.table({"file_path": named, "pos": pa.array([0, 0], pa.int64())})
    parquet.write_table(deletes, home / "deletes.parquet")
    size = (home / "deletes.parquet").stat().st_size
    found = FileChange(
        path="deletes.parquet",
        content="position-deletes",
        record_count=2,
        file_size_in_bytes=size,
        field_ids=True,
    )
    table.append([found])
    assert ids(table) == [2]


@pytest.mark.parametrize("other", [(), ("1.parquet",)])
def test_statistics_of_a_source_alone_may_call_a_file_empty(
    tmp_path: Path, other: tuple[str, ...]
) -> None:
    home = tmp_path / "t"
    empty_file(home / "e.parquet", 1)
    parquet.write_table(pa.table({"id": [1, 2]}), home / "1.parquet")
    adds = [add("e.parquet", stats='{"numRecords":0}'), *map(add, other)]
    write(home, 0, PROTOCOL, metadata(ID), *adds)
    lake = lake_in(tmp_path)
    lake.import_table("d.t", str(home), format_name="delta")
    lake.promote("d.t")
    table = lake.table("d.t")
    table.alter([SetOption("ledger.formats", "delta,iceberg")])
    assert ids(table) == ([1, 2] if other else [])
