"""The history of tables that engines own: log, blame, diff, undo, erasure, corrected clocks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.types import StringType

import ledger
from ledger import InvalidChangeError, Ledger, SetOption, Table
from ledger.model.iceberg_objects import IcebergSnapshot
from ledger.table_handle import TableHandle, handle_of
from projections.iceberg import read_metadata
from projections.iceberg import rest_updates as u
from projections.iceberg.rest_commit import commit_updates
from projections.iceberg.served import load
from tests.independent.agreeing import agrees
from tests.lakes import lake_on
from tests.projections.iceberg.serving.catalog import ServedCatalog
from tests.projections.iceberg.serving.lakes import NAME, Clock, as_sent, lake_in, send, small_table

ROWS = pa.table(
    {
        "id": pa.array([1, 2], pa.int64()),
        "name": ["x", "y"],
        "place": [{"city": "a"}, {"city": "b"}],
    }
)


@pytest.fixture(name="lake")
def _lake(tmp_path: Path) -> Iterator[Ledger]:
    lake = ledger.open(tmp_path / "lake")
    lake.create_database("a")
    yield lake
    lake.close()


@pytest.fixture(name="engine")
def _engine(lake: Ledger) -> Any:
    """Return `a.t` with rows, then a renamed column, an added one, a renamed member and a spec."""
    table = ServedCatalog(handle_of(lake)).create_table("a.t", ROWS.schema)
    table.append(ROWS)
    with table.update_schema() as update:
        update.rename_column("name", "title")
    with table.update_schema() as update:
        update.add_column("extra", StringType())
    with table.update_schema() as update:
        update.rename_column(("place", "city"), "town")
    with table.update_spec() as update:
        update.add_identity("id")
    return table


def kinds(table: Table, version: int) -> list[str]:
    commit = next(table.events(version, version))
    return [type(each).__name__ for each in commit.transactions[0].events]


def test_each_change_of_an_engine_is_an_event_of_its_kind(lake: Ledger, engine: Any) -> None:
    del engine
    table = lake.table("a.t")
    assert [kinds(table, each)[0] for each in range(6)] == [
        "TableCreated",
        "SnapshotAdded",
        "ColumnRenamed",
        "ColumnAdded",
        "ColumnRenamed",
        "PartitionSpecUpdated",
    ]
    assert agrees(Path(lake.url.removeprefix("file://")), lake) == 6


def test_blame_and_diff_name_the_commits_of_engines(lake: Ledger, engine: Any) -> None:
    del engine
    table = lake.table("a.t")
    blamed = {each.subject: each.origins[-1].cause.version for each in table.blame()}
    assert (blamed["column title"], blamed["column extra"], blamed["partition spec"]) == (2, 3, 5)
    changed = {each.what: (each.before, each.after) for each in table.diff(1).rows}
    assert changed["field 2"] == ("name STRING", "title STRING")
    assert changed["field 4"] == ("place.city STRING", "place.town STRING")
    assert changed["field 5"] == (None, "extra STRING")


@pytest.mark.parametrize(
    ("version", "columns"),
    [
        (2, ["id", "name", "place", "place.town", "extra"]),
        (3, ["id", "title", "place", "place.town"]),
        (4, ["id", "title", "place", "place.city", "extra"]),
    ],
    ids=["rename", "added column", "rename of a member"],
)
def test_one_change_of_an_engine_is_undone_while_another_engine_goes_on(
    lake: Ledger, engine: Any, version: int, columns: list[str]
) -> None:
    other = ServedCatalog(handle_of(ledger.open(lake.url))).load_table("a.t")
    lake.table("a.t").undo(version)
    other.append(ROWS.select(["id"]))
    found = engine.refresh()
    assert {*found.schema().column_names} == {*columns}
    assert found.scan().to_arrow()["id"].to_pylist() == [1, 2, 1, 2]


def test_rows_of_an_engine_are_not_undone(lake: Ledger, engine: Any) -> None:
    del engine
    with pytest.raises(InvalidChangeError, match="whose data stays"):
        lake.table("a.t").undo(1)


# Ledgers of other kinds


def erasable(folder: Path) -> Ledger:
    lake = ledger.open(folder / "lake", author="admin")
    lake.init(erasable=True)
    lake.create_database("a")
    return lake


def rows(number: int, sequence: int, millis: int, parent: int | None = None) -> list[Any]:
    made = IcebergSnapshot(
        sequence_number=sequence,
        snapshot_id=number,
        parent_snapshot_id=parent,
        timestamp_ms=millis,
        manifest_list=f"file:/x/{number}.avro",
    )
    move = u.SetSnapshotRef(ref_name="main", snapshot_id=number, type="branch")
    return [u.AddSnapshot(snapshot=made), move]


def test_an_erasable_ledger_keeps_and_erases_the_author_of_an_engines_commit(
    tmp_path: Path,
) -> None:
    lake = erasable(tmp_path)
    table = small_table(lake)
    sent = as_sent(rows(7, 1, table.state.effective_millis))
    first = commit_updates(table, sent, author="ann", message="by ann")
    assert commit_updates(table, sent, author="ann", message="by ann").version == first.version
    for each in range(3):
        send(table, u.SetProperties(updates={"n": str(each)}))
    again = handle_of(ledger.open(tmp_path / "lake")).table(NAME)
    assert load(again, again.state) == load(table, table.state)
    assert next(lake.table("a.t").events(1, 1)).transactions[0].author == "ann"
    lake.erase(author="ann")
    assert next(lake.table("a.t").events(1, 1)).transactions[0].author != "ann"
    assert load(again, again.state).metadata.current_snapshot_id == 7


def test_engines_neither_set_nor_break_the_marks_of_personal_columns(tmp_path: Path) -> None:
    lake = erasable(tmp_path)
    table = small_table(lake)
    lake.table("a.t").alter([SetOption("ledger.personal", "name")])
    with pytest.raises(InvalidChangeError, match="options of the ledger"):
        send(table, u.SetProperties(updates={"ledger.personal": "id"}))
    columns = load(table, table.state).metadata.schema
    with pytest.raises(InvalidChangeError, match="marked as personal"):
        send(table, u.AddSchema(schema=without(columns, "name")), u.SetCurrentSchema(schema_id=-1))
    send(table, *rows(7, 1, table.state.effective_millis))
    assert load(table, table.state).metadata.current_snapshot_id == 7


def without(schema: Any, name: str) -> Any:
    return type(schema)(1, tuple(each for each in schema.fields if each.name != name))


A_YEAR = 365 * 86_400_000


@pytest.mark.parametrize("change", ["property", "rollback", "rows"])
def test_a_table_is_loaded_and_written_after_a_clock_was_corrected(
    change: str, tmp_path: Path
) -> None:
    clock = Clock()
    lake = lake_in(tmp_path / "lake", clock)
    table = small_table(lake)
    send(table, *rows(1, 1, clock.millis))
    send(table, *rows(2, 2, clock.millis, 1))
    ahead = clock.millis + A_YEAR
    fast = handle_of(lake_on(handle_of(lake).setting.store, clock=lambda: ahead)).table(NAME)
    updates: dict[str, list[Any]] = {
        "property": [u.SetProperties(updates={"a": "b"})],
        "rollback": [u.SetSnapshotRef(ref_name="main", snapshot_id=1, type="branch")],
        "rows": rows(3, 3, ahead, 2),
    }
    send(fast, *updates[change])
    lake.table("a.t").correct_clock()
    for number in range(3):
        clock.millis += 100_000
        assert_readable(table)
        send(table, u.SetProperties(updates={"n": str(number)}))
    assert_readable(table)
    assert agrees(tmp_path / "lake", lake) == table.state.version + 1


def assert_readable(table: TableHandle) -> None:
    loaded = load(table, table.state)
    assert read_metadata(loaded.body) == loaded.metadata
