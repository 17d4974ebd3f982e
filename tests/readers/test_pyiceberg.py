"""PyIceberg reads what was projected: every version of random lives, and agrees with the ledger."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet
from pyiceberg import expressions
from pyiceberg.table import StaticTable

import ledger
from ledger import (
    AddPartitionField,
    FileChange,
    Ledger,
    RemovePartitionField,
    ReplaceSortOrder,
    Schema,
    SortColumn,
    Table,
    UpdatePartitionSpec,
)
from ledger.state import TableState
from ledger.table_handle import handle_of
from projections.iceberg import ICEBERG, Names
from tests.readers.book import Book, Rows
from tests.readers.iceberg_life import CASES, life
from tests.readers.partitions import LAYOUTS


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Ledger:
    lake = ledger.open(str(tmp_path_factory.mktemp("iceberg")))
    lake.create_database("shop")
    return lake


@pytest.fixture(scope="module", params=CASES, ids=str)
def book(shop: Ledger, request: pytest.FixtureRequest) -> Book:
    return life(shop, request.param)


def _path(book: Book, version: int) -> str:
    return f"{book.table.location}/{Names(book.table.state.table_id).metadata(version)}"


def _opened(book: Book, version: int) -> Any:
    return StaticTable.from_metadata(_path(book, version))


def _rows(scan: Any) -> Rows:
    found: Rows = scan.to_arrow().to_pylist()
    return sorted(found, key=lambda row: int(row["id"]))


def _reachable(state: TableState) -> list[int]:
    return [each for each in range(1, state.last_snapshot_id + 1) if state.reachable(each)]


def test_every_version_says_what_the_ledger_says(book: Book) -> None:
    for version in range(book.table.state.version + 1):
        metadata, state = _opened(book, version).metadata, book.table.at(version=version).state
        assert str(metadata.table_uuid) == state.table_id
        assert [each.name for each in metadata.schema().fields] == list(state.schema.names)
        assert [each.field_id for each in metadata.schema().fields] == [
            each.id for each in state.schema.fields
        ]
        assert metadata.current_snapshot_id == (state.last_snapshot_id or None)
        assert [each.snapshot_id for each in metadata.snapshots] == _reachable(state)
        tags = {name: tag.snapshot_id for name, tag in state.tags.items()}
        main = {"main": state.last_snapshot_id} if state.last_snapshot_id else {}
        assert {name: ref.snapshot_id for name, ref in metadata.refs.items()} == tags | main
        assert metadata.last_updated_ms == state.effective_millis
        assert metadata.properties.get("owner") == state.schema.options.get("owner")
        assert [each.spec_id for each in metadata.partition_specs] == [
            each.spec_id for each in state.specs
        ]


def test_every_snapshot_reads_with_the_schema_of_its_time(book: Book) -> None:
    state = book.table.state
    newest = _opened(book, state.version)

    assert _rows(newest.scan()) == book.expected()
    for number in _reachable(state):
        assert _rows(newest.scan(snapshot_id=number)) == book.expected(number), number


def test_tags_and_times_lead_to_their_snapshot(book: Book) -> None:
    newest = _opened(book, book.table.state.version)

    for tag, number in book.tags.items():
        assert newest.snapshot_by_name(tag).snapshot_id == number
    for number in range(5, book.last + 1):
        millis = newest.snapshot_by_id(number).timestamp_ms
        assert newest.snapshot_as_of_timestamp(millis).snapshot_id == number
        then = book.table.at(timestamp=millis).snapshot
        assert then is not None
        assert then.id == number


def test_a_filter_on_the_partition_finds_that_partition(book: Book) -> None:
    newest = _opened(book, book.table.state.version)
    for day in (dt.date(2013, 1, 1), dt.date(2013, 1, 2), dt.date(2013, 1, 3)):
        found = _rows(newest.scan(row_filter=f"day = '{day}'"))
        assert found == [row for row in book.expected() if row["day"] == day]


def test_metadata_tables_agree(book: Book) -> None:
    state, newest = book.table.state, _opened(book, book.table.state.version)

    files = newest.inspect.files().to_pylist()
    live = {f"{book.table.location}/{each.path}": each for each in book.table.at().files}
    assert {each["file_path"] for each in files} == set(live)
    for each in files:
        change = live[each["file_path"]]
        assert each["record_count"] == change.record_count
        assert each["file_size_in_bytes"] == change.file_size_in_bytes
        assert dict(each["lower_bounds"]) == {
            key: bytes.fromhex(value) for key, value in dict(change.lower_bounds or {}).items()
        }
    snapshots = newest.inspect.snapshots().to_pylist()
    assert [each["snapshot_id"] for each in snapshots] == _reachable(state)
    assert len(newest.inspect.entries().to_pylist()) >= len(files)
    partitions = newest.inspect.partitions().to_pylist()
    assert sum(each["record_count"] for each in partitions) == state.totals.record_count
    assert sum(each["file_count"] for each in partitions) == len(files)
    refs = {each["name"]: each["snapshot_id"] for each in newest.inspect.refs().to_pylist()}
    assert refs == book.tags | {"main": book.last}
    log = newest.inspect.metadata_log_entries().to_pylist()
    assert [Path(each["file"]).name for each in log] == [
        Path(_path(book, each)).name
        for each in range(state.version + 1 - len(log), state.version + 1)
    ]
    assert all(Path(each["file"].removeprefix("file://")).exists() for each in log)


def test_the_header_has_the_format_version_of_its_time(book: Book) -> None:
    name = book.table.identifier.name
    first = int(name[len("life_v")])
    folder = Path(book.table.location.removeprefix("file://"))
    names = Names(book.table.state.table_id)
    newest = json.loads((folder / names.metadata(book.table.state.version)).read_bytes())
    oldest = json.loads((folder / names.metadata(0)).read_bytes())
    assert (oldest["format-version"], newest["format-version"]) == (first, min(3, first + 1))


def test_partition_values_of_every_type_are_found(partitioned: dict[str, Book]) -> None:
    for name, layout in LAYOUTS.items():
        if layout.legacy:
            continue
        book = partitioned[name]
        ICEBERG.project(handle_of(book.table))
        newest = _opened(book, book.table.state.version)
        assert _rows(newest.scan()) == book.expected()
        rows = book.expected()
        for key in layout.keys:
            for value in {row[key] for row in rows}:
                where = _is(key, value)
                found = _rows(newest.scan(row_filter=where))
                assert found == [row for row in rows if row[key] == value], (name, key, value)
                files = list(newest.scan(row_filter=where).plan_files())
                assert len(files) * 5 == len(found)


def _is(key: str, value: Any) -> Any:
    made: Any = expressions
    if value is None:
        return made.IsNull(key)
    return made.EqualTo(key, value.isoformat() if isinstance(value, dt.datetime) else value)


def test_a_table_whose_layout_evolved_prunes_files_of_every_spec(shop: Ledger) -> None:
    columns = {"id": "BIGINT NOT NULL", "ts": "TIMESTAMP(6)", "name": "STRING"}
    schema = Schema.of(columns, options={"ledger.formats": "iceberg"})
    table = shop.create_table("shop.layouts", schema)
    moment = dt.datetime(2013, 1, 2, 3, 4, 5, 6000)  # noqa: DTZ001 - a TIMESTAMP has no zone
    _add(table, 1, moment, "plain")
    table.alter([UpdatePartitionSpec(updates=(AddPartitionField(("ts",), "day"),))])
    _add(table, 2, moment, "by day", "2013-01-02")
    later = AddPartitionField(("name",), "truncate[2]"), RemovePartitionField("ts_day")
    table.alter([UpdatePartitionSpec(updates=later)])
    _add(table, 3, moment, "zebra", "ze")
    _add(table, 4, moment, "none", None)
    table.alter([ReplaceSortOrder((SortColumn(("name",)),))])
    table.delete_files(["4.parquet"])
    ICEBERG.project(handle_of(table))

    path = f"{table.location}/{Names(table.state.table_id).metadata(table.state.version)}"
    newest = StaticTable.from_metadata(path)
    assert [each["id"] for each in _rows(newest.scan())] == [1, 2, 3]
    assert {spec_id: len(spec.fields) for spec_id, spec in newest.specs().items()} == {
        each.spec_id: len(each.fields) for each in table.state.specs
    }
    assert newest.sort_order().order_id == table.state.default_order_id
    assert _planned(newest, "name = 'zebra'") == {"1.parquet", "2.parquet", "3.parquet"}
    assert _planned(newest, "name = 'aa'") == {"1.parquet", "2.parquet"}
    assert _planned(newest, "ts < '2013-01-02T00:00:00'") == {"1.parquet", "3.parquet"}
    wanted = {each.path: each.spec_id for each in table.at().files}
    files = newest.inspect.files().to_pylist()
    assert {each["file_path"].rpartition("/")[2]: each["spec_id"] for each in files} == wanted


def _planned(table: Any, where: str) -> set[str]:
    files = table.scan(row_filter=where).plan_files()
    return {each.file.file_path.rpartition("/")[2] for each in files}


def _add(table: Table, number: int, ts: dt.datetime, name: str, *partition: str | None) -> None:
    path = Path(table.location.removeprefix("file://")) / f"{number}.parquet"
    rows = pa.table(
        {"id": [number], "ts": [ts], "name": [name]}, schema=table.at().schema.to_arrow()
    )
    parquet.write_table(rows, path)
    change = FileChange(
        path=path.name,
        record_count=1,
        file_size_in_bytes=path.stat().st_size,
        field_ids=True,
        spec_id=table.state.default_spec_id,
        partition=partition,
    )
    table.append([change])
