"""Reading rows: at every instant with its schema, by every library, and clear mistakes."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from pyarrow import parquet
from pyiceberg.table import DataScan

import ledger
from ledger import (
    AddColumn,
    ColumnNotFoundError,
    DropColumn,
    InvalidInputError,
    Ledger,
    MissingDependencyError,
    NotFoundError,
    RenameColumn,
    Schema,
    SetOption,
    Table,
    UnsupportedError,
    UpdateColumnType,
)
from ledger.table_handle import handle_of
from projections.iceberg import ICEBERG, Names
from projections.iceberg.rows import scan
from tests.programs import output_of
from tests.readers.lakehouse import Rows, add_rows, by_id, folder_of
from tests.readers.typed_rows import mixed_table, row_of


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Ledger:
    lake = ledger.open(str(tmp_path_factory.mktemp("rows")))
    lake.create_database("shop")
    return lake


@pytest.fixture(scope="module")
def mixed(lake: Ledger) -> Table:
    return mixed_table(lake)


def test_columns_come_in_the_tables_order(mixed: Table) -> None:
    at = mixed.at()
    assert at.to_arrow(columns=["name", "id"]).schema.names == ["id", "name"]
    assert at.to_arrow(columns="price").schema.names == ["price"]
    inner = at.to_arrow("id = 1", columns=["place.zip"])
    assert inner.to_pylist() == [{"place": {"zip": 1}}]
    filtered = at.to_arrow("small = 2", columns=["name"])
    assert filtered.schema.names == ["name"]
    assert filtered.num_rows == sum(row_of(each)["small"] == 2 for each in range(48))


def test_a_scan_hands_rows_to_every_library(mixed: Table) -> None:
    found = mixed.at().scan("id < 3", ["id", "name"])
    assert isinstance(found, DataScan)
    assert sorted(found.to_pandas()["id"]) == [0, 1, 2]
    assert sorted(found.to_polars()["id"]) == [0, 1, 2]
    assert found.count() == 3
    with found.to_duckdb("rows") as duck:
        assert duck.sql("SELECT max(id) FROM rows").fetchall() == [(2,)]
    assert found.to_arrow_batch_reader().read_all().num_rows == 3


def test_a_scan_can_be_narrowed_and_moved_to_another_instant(mixed: Table) -> None:
    found = mixed.at().scan("id < 3", ["id"])
    assert found.filter("id > 1").to_arrow().to_pylist() == [{"id": 2}]
    assert found.filter("id > 1").count() == 1
    assert found.update(limit=2).to_arrow().num_rows == 2
    assert found.select("name").projection().fields == ()
    assert found.update(row_filter="id = 7").to_arrow().to_pylist() == [{"id": 7}]
    assert found.update(snapshot_id=1, row_filter="id = 35").to_arrow().num_rows == 0
    assert found.update(snapshot_id=2, row_filter="id = 35").to_arrow().num_rows == 1


def test_polars_reads_the_newest_metadata_file(lived: Table) -> None:
    lived.project("iceberg")
    metadata = f"{lived.location}/{Names(lived.state.table_id).metadata(lived.state.version)}"
    assert by_id(pl.scan_iceberg(metadata).collect().to_dicts()) == _NOW


@pytest.fixture(scope="module")
def lived(lake: Ledger) -> Table:
    """Versions: 0 created, 1 snapshot 1, 2 renamed, 3 and 4 changed, 5 snapshot 2, 6 dropped."""
    table = lake.create_table("shop.lived", Schema.of({"id": "INT NOT NULL", "a": "INT"}))
    add_rows(table, "1.parquet", [{"id": 1, "a": 10}, {"id": 2, "a": None}])
    table.alter([RenameColumn(("a",), "b")])
    table.alter([AddColumn(("a",), "STRING")])
    table.alter([UpdateColumnType(("b",), "BIGINT")])
    add_rows(table, "2.parquet", [{"id": 3, "a": "x", "b": 2**40}])
    table.alter([DropColumn(("b",))])
    table.create_tag("first", snapshot=1)
    return table


_OLD: Rows = [{"id": 1, "a": 10}, {"id": 2, "a": None}]
_RENAMED = [{"id": 1, "b": 10}, {"id": 2, "b": None}]
_WIDE: Rows = [{"id": 1, "b": 10, "a": None}, {"id": 2, "b": None, "a": None}]
_BOTH = [*_WIDE, {"id": 3, "b": 2**40, "a": "x"}]
_NOW = [{"id": each["id"], "a": each["a"]} for each in _BOTH]


@pytest.mark.parametrize(
    ("instant", "rows"),
    [
        ({}, _NOW),
        ({"snapshot": 1}, _OLD),
        ({"tag": "first"}, _OLD),
        ({"version": 1}, _OLD),
        ({"version": 2}, _RENAMED),
        ({"version": 4}, _WIDE),
        ({"version": 5}, _BOTH),
        ({"snapshot": 2}, _BOTH),
        ({"version": 6}, _NOW),
    ],
    ids=str,
)
def test_an_instant_reads_with_its_schema(
    lived: Table, instant: dict[str, Any], rows: Rows
) -> None:
    at = lived.at(**instant)
    read = at.to_arrow()
    assert by_id(read.to_pylist()) == rows
    assert read.schema.names == list(at.schema.names)
    wanted = [str(each.type) for each in at.schema.to_arrow()]
    assert [str(each.type).removeprefix("large_") for each in read.schema] == wanted


def test_names_in_a_filter_are_those_of_the_instant(lived: Table) -> None:
    assert lived.at(snapshot=1).to_arrow("a = 10").num_rows == 1
    assert lived.at(version=2).to_arrow("b = 10").num_rows == 1
    assert lived.at(version=5).to_arrow("b >= 10").num_rows == 2
    assert lived.at(version=5).to_arrow("b > 1099511627775 AND a = 'x'").num_rows == 1
    with pytest.raises(InvalidInputError, match="a is STRING"):
        lived.at().to_arrow([("a", "=", 10)])
    with pytest.raises(ColumnNotFoundError, match="b"):
        lived.at().to_arrow("b = 10")


def test_before_the_first_snapshot_there_are_no_rows_but_a_schema(lived: Table) -> None:
    at = lived.at(version=0)
    for where in (None, "a > 5"):
        read = at.to_arrow(where)
        assert (read.num_rows, read.schema.names) == (0, ["id", "a"])
        assert read.schema.field("a").type == pa.int32()


def test_a_timestamp_reads_what_was_current(lived: Table) -> None:
    millis = lived.at(version=2).state.effective_millis
    at = lived.at(timestamp=millis)
    assert by_id(at.to_arrow().to_pylist()) == by_id(
        lived.at(version=at.version).to_arrow().to_pylist()
    )
    with pytest.raises(NotFoundError):
        lived.at(timestamp=1)


def test_a_version_whose_snapshot_expired_still_reads(lake: Ledger) -> None:
    table = lake.create_table("shop.expired", Schema.of({"id": "INT NOT NULL", "a": "INT"}))
    held = []
    for number in range(4):
        name, other = ("a", "b") if number % 2 == 0 else ("b", "a")
        add_rows(table, f"{number}.parquet", [{"id": number, name: number}])
        table.alter([RenameColumn((name,), other)])
        held.append(table.at())
    before = [by_id(each.to_arrow().to_pylist()) for each in held]
    table.expire_snapshots(before=4)
    table.project("iceberg")
    files = sorted(path.name for path in (folder_of(table) / "metadata").iterdir())

    after = [by_id(each.to_arrow().to_pylist()) for each in held]
    assert after == before
    assert [len(each) for each in after] == [1, 2, 3, 4]
    assert held[1].to_arrow("a = 1").to_pylist() == [{"id": 1, "a": 1}]
    assert sorted(path.name for path in (folder_of(table) / "metadata").iterdir()) == files
    with pytest.raises(NotFoundError, match="snapshot 1"):
        table.at(snapshot=1)


@pytest.mark.parametrize("version", ["1", "2", "3"])
def test_tables_of_every_format_version_read(lake: Ledger, version: str) -> None:
    options = {"format-version": version, "ledger.formats": "iceberg"}
    schema = Schema.of({"id": "INT NOT NULL", "a": "INT"}, options=options)
    table = lake.create_table(f"shop.v{version}", schema)
    add_rows(table, "1.parquet", [{"id": 1, "a": 1}])
    default = "7" if version == "3" else None
    table.alter([AddColumn(("b",), "INT", default_value=default)])
    add_rows(table, "2.parquet", [{"id": 2, "a": 2, "b": 2}])
    table.delete_files(["2.parquet"])

    first, second = {"id": 1, "a": 1, "b": 7 if default else None}, {"id": 2, "a": 2, "b": 2}
    assert table.at().to_arrow().to_pylist() == [first]
    assert by_id(table.at(snapshot=2).to_arrow().to_pylist()) == [first, second]
    assert table.at(snapshot=1).to_arrow("a = 1").to_pylist() == [{"id": 1, "a": 1}]
    assert table.at(snapshot=2).to_arrow("b = 7").num_rows == (1 if default else 0)
    assert table.at(snapshot=2).to_arrow("b IS NULL").num_rows == (0 if default else 1)
    assert table.at(snapshot=2).to_arrow("b <> 7").to_pylist() == [second]


def test_a_table_outside_of_the_ledgers_folder_is_read_there(lake: Ledger, tmp_path: Path) -> None:
    schema = Schema.of({"id": "INT"})
    table = lake.create_table("shop.outside", schema, location=str(tmp_path / "elsewhere"))
    add_rows(table, "1.parquet", [{"id": 1}])
    strange = tmp_path / "strange"
    strange.mkdir()
    parquet.write_table(pa.table({"id": pa.array([2], pa.int32())}), strange / "2.parquet")
    table.add_files([str(strange)])
    assert [each["id"] for each in by_id(table.at().to_arrow().to_pylist())] == [1, 2]
    assert table.at().to_arrow("id = 2").num_rows == 1


def test_later_commits_do_not_move_an_instant(lake: Ledger) -> None:
    table = lake.create_table("shop.moving", Schema.of({"id": "INT"}))
    add_rows(table, "1.parquet", [{"id": 1}])
    at = table.at()
    other = lake.table("shop.moving")
    other.alter([RenameColumn(("id",), "key")])
    other.delete_files(["1.parquet"])
    assert at.to_arrow("id = 1").to_pylist() == [{"id": 1}]
    assert table.at().to_arrow().to_pylist() == []
    assert table.at().to_arrow().schema.names == ["key"]


def test_mistakes_are_named(lake: Ledger, mixed: Table) -> None:
    at = mixed.at()
    with pytest.raises(ColumnNotFoundError, match="nme.*name"):
        at.scan(columns=["id", "nme"])
    with pytest.raises(InvalidInputError, match="no columns"):
        at.scan(columns=[])
    with pytest.raises(InvalidInputError, match="cannot be read"):
        at.scan(where=5)  # type: ignore[arg-type]  # what a caller may get wrong
    gone = lake.create_table("shop.gone", Schema.of({"id": "INT"}))
    add_rows(gone, "1.parquet", [{"id": 1}])
    (folder_of(gone) / "1.parquet").unlink()
    with pytest.raises(NotFoundError, match=r"1\.parquet of the table does not exist"):
        gone.at().to_arrow()
    found = at.scan()
    with pytest.raises(UnsupportedError, match="through a scan"):
        found.io.delete("x")
    with pytest.raises(UnsupportedError, match="through a scan"):
        found.io.new_output("x")


def test_a_table_in_memory_is_rejected_with_a_reason() -> None:
    lake = ledger.open("memory://rows")
    lake.create_database("shop")
    table = lake.create_table("shop.orders", Schema.of({"id": "INT"}))
    with pytest.raises(UnsupportedError, match="memory://rows.*keep the ledger in a folder"):
        table.at().scan()


def test_a_table_that_is_not_icebergs_is_rejected_with_a_reason(lake: Ledger) -> None:
    options = {"ledger.formats": "paimon", "bucket": "1"}
    columns = {"id": "INT NOT NULL"}
    schema = Schema.of(columns, primary_keys=["id"], options=options)
    table = lake.create_table("shop.paimon", schema)
    with pytest.raises(UnsupportedError, match=r"ledger\.formats"):
        table.at().to_arrow()


def test_without_pyiceberg_the_message_says_what_to_install(
    mixed: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    for each in [name for name in sys.modules if name.startswith("projections.iceberg.row")]:
        monkeypatch.delitem(sys.modules, each)
    monkeypatch.setitem(sys.modules, "pyiceberg.table", None)
    with pytest.raises(MissingDependencyError, match=r"pip install .*\[iceberg\]"):
        scan(handle_of(mixed), mixed.at())


def test_ledger_starts_without_pyiceberg() -> None:
    program = "import sys, ledger, projections.iceberg.rows; print('pyiceberg' in sys.modules)"
    assert output_of("-c", program) == "False\n"


def test_odd_names_of_folders_and_columns_are_read(lake: Ledger) -> None:
    schema = Schema.of({"id": "INT", "odd name?": "STRING", "größe": "INT"})
    table = lake.create_table("shop.odd", schema)
    rows = [{"id": 1, "odd name?": "x#y", "größe": 3}]
    for number, folder in enumerate(["a b", "c#d", "e?f", "g%20h", "ü&+"]):
        add_rows(table, f"{folder}/1.parquet", [{**rows[0], "id": number}])
    assert [each["id"] for each in by_id(table.at().to_arrow().to_pylist())] == [0, 1, 2, 3, 4]
    where = [("odd name?", "=", "x#y"), ("größe", "=", 3), ("id", "=", 2)]
    assert table.at().to_arrow(where).to_pylist() == [{**rows[0], "id": 2}]


def with_rows(root: Path) -> Table:
    lake = ledger.open(str(root))
    lake.create_database("shop")
    table = lake.create_table("shop.orders", Schema.of({"id": "BIGINT"}))
    place = folder_of(table) / "a.parquet"
    place.parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(pa.table({"id": [1, 2, 3]}), place)
    table.add_files([str(place)])
    return table


@pytest.mark.parametrize("is_moved", [True, False])
def test_a_moved_ledger_gives_the_same_rows(tmp_path: Path, *, is_moved: bool) -> None:
    table = with_rows(tmp_path / "one")
    assert table.at().to_arrow()["id"].to_pylist() == [1, 2, 3]
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    if is_moved:
        shutil.rmtree(tmp_path / "one")

    there = ledger.open(str(tmp_path / "two")).table("shop.orders")
    for _ in range(2):
        assert there.at().to_arrow()["id"].to_pylist() == [1, 2, 3]
        assert there.at().to_arrow("id > 1")["id"].to_pylist() == [2, 3]
    assert there.at(snapshot=1).to_arrow().num_rows == 3


def test_iceberg_files_that_named_another_place_are_made_for_this_one(tmp_path: Path) -> None:
    table = with_rows(tmp_path / "one")
    ICEBERG.project(handle_of(table))
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    ledger.open(str(tmp_path / "two")).record_move()
    there = ledger.open(str(tmp_path / "two")).table("shop.orders")
    # What was projected before goes on at another place, beside lists that name the old one.
    there.alter([SetOption("k", "v")])
    ICEBERG.project(handle_of(there))

    assert there.at().to_arrow()["id"].to_pylist() == [1, 2, 3]


def test_rows_are_read_where_nothing_may_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = with_rows(tmp_path / "lake")

    def refuse(_table: Table) -> int:
        raise ledger.StoreError("read-only", "READ_ONLY")

    monkeypatch.setattr("projections.iceberg.rows.advance", refuse)
    assert table.at().to_arrow()["id"].to_pylist() == [1, 2, 3]
