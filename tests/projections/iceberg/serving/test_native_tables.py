"""Engines read tables that the ledger created, and change their metadata through the server."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.types import IntegerType, ListType, LongType, NestedField, StringType, StructType

import ledger
from ledger.table_handle import handle_of
from projections.iceberg import StaleBaseError
from projections.iceberg.rest_commit import commit_updates
from projections.iceberg.served import load
from tests.projections.iceberg.serving.served_table import ARROW, Served

COLUMNS = {
    "id": "INT",
    "day": "STRING",
    "at": "TIMESTAMP(3)",
    "place": "ROW<city STRING, codes ARRAY<INT>>",
}


@pytest.fixture(name="native", params=["iceberg", "paimon,iceberg"])
def _native(request: pytest.FixtureRequest, tmp_path: Path) -> Served:
    lake = ledger.open(tmp_path / "lake")
    lake.create_database("a")
    options = {"ledger.formats": request.param}
    table = lake.create_table("a.b", ledger.Schema.of(COLUMNS, options=options))
    path = tmp_path / "one.parquet"
    rows = pa.Table.from_pylist(
        [{"id": 1, "day": "x", "at": None, "place": None}], table.schema.to_arrow()
    )
    pa.parquet.write_table(rows, path)
    table.add_files(str(path))
    return Served(lake)


def test_engines_load_and_scan_a_native_table_at_once(native: Served) -> None:
    assert native.rows_of_engine() == native.rows() == [1]
    native.table.create_tag("t")
    assert set(native.engine().refs()) == {"main", "t"}
    loaded = load(handle_of(native.table), native.table.state)
    assert load(handle_of(native.table), native.table.state) is loaded
    older = load(handle_of(native.table), native.table.at(version=1).state)
    assert (older.version, set(older.metadata.refs)) == (1, {"main"})


def with_columns(*changes: Callable[[Any], Any]) -> Callable[[Any], None]:
    def change(table: Any) -> None:
        with table.update_schema(allow_incompatible_changes=True) as update:
            for each in changes:
                each(update)

    return change


STRUCT = StructType(
    NestedField(1, "a", StringType(), required=False),
    NestedField(2, "b", StructType(NestedField(3, "c", LongType(), required=False))),
)


def set_property(table: Any) -> None:
    with table.transaction() as update:
        update.set_properties({"k": "v", "comment": "about"})


def remove_property(table: Any) -> None:
    set_property(table)
    with table.refresh().transaction() as update:
        update.remove_properties("k")


def create_tag(table: Any) -> None:
    table.manage_snapshots().create_tag(table.current_snapshot().snapshot_id, "t", 5000).commit()


def remove_tag(table: Any) -> None:
    create_tag(table)
    table.refresh().manage_snapshots().remove_tag("t").commit()


METADATA: dict[str, Callable[[Any], None]] = {
    "set a property": set_property,
    "remove a property": remove_property,
    "add a column": with_columns(lambda u: u.add_column("note", StringType(), "why")),
    "add a struct": with_columns(lambda u: u.add_column("more", STRUCT)),
    "add two columns": with_columns(
        lambda u: u.add_column("b", LongType()), lambda u: u.add_column("c", STRUCT)
    ),
    "add a member": with_columns(lambda u: u.add_column(("place", "street"), StringType())),
    "rename": with_columns(lambda u: u.rename_column("day", "date")),
    "rename a member": with_columns(lambda u: u.rename_column(("place", "city"), "town")),
    "drop": with_columns(lambda u: u.delete_column("day")),
    "move": with_columns(lambda u: u.move_first("day")),
    "document": with_columns(lambda u: u.update_column("day", doc="the day")),
    "widen": with_columns(lambda u: u.update_column("id", LongType())),
    "tag": create_tag,
    "remove a tag": remove_tag,
}


@pytest.mark.parametrize("name", METADATA)
def test_changes_of_metadata_are_changes_of_the_ledger(native: Served, name: str) -> None:
    table = native.engine()
    METADATA[name](table)
    wanted = table.refresh().metadata
    found = native.engine().metadata
    assert (wanted.schema(), dict(wanted.properties)) == (found.schema(), dict(found.properties))
    assert native.table.state.version > 1
    kinds = {
        type(e).__name__ for c in native.table.events(2) for t in c.transactions for e in t.events
    }
    assert "SchemaReplaced" not in kinds
    assert native.rows() == native.rows_of_engine() == [1]


def test_data_is_committed_by_the_ledger_and_the_error_names_the_alternative(
    native: Served,
) -> None:
    version = native.table.state.version
    rows = pa.Table.from_pylist([{"id": 2, "day": "x"}], ARROW)
    with pytest.raises(ledger.InvalidChangeError, match="lakeledger serve-table"):
        native.engine().append(rows.cast(pa.schema([("id", pa.int32()), ("day", pa.string())])))
    main = native.engine().current_snapshot().snapshot_id
    for update in (
        {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": main},
        {"action": "remove-snapshots", "snapshot-ids": [main]},
        {"action": "set-location", "location": "file:///elsewhere"},
        {"action": "set-properties", "updates": {"ledger.formats": "paimon"}},
        {"action": "assign-uuid", "uuid": "01a1f54c-0000-7000-8000-000000000000"},
    ):
        with pytest.raises(ledger.InvalidChangeError):
            commit_updates(handle_of(native.table), [update])
    assert native.table.state.version == version


def test_a_requirement_that_does_not_hold_rejects_the_updates(native: Served) -> None:
    updates = [{"action": "set-properties", "updates": {"k": "v"}}]
    required = [{"type": "assert-table-uuid", "uuid": "01a1f54c-0000-7000-8000-000000000000"}]
    with pytest.raises(StaleBaseError):
        commit_updates(handle_of(native.table), updates, required)


def test_a_request_is_committed_once_by_its_id_and_rebased(native: Served) -> None:
    stale = handle_of(ledger.open(native.lake.url).table("a.b"))
    assert stale.state.version == 1
    native.table.alter([ledger.SetOption("other", "1")])
    updates = [{"action": "set-properties", "updates": {"k": "v"}}]
    first = commit_updates(stale, updates, commit_id="c")
    ledger.open(native.lake.url).table("a.b").alter([ledger.SetOption("k", "w")])
    assert commit_updates(stale, updates, commit_id="c").version == first.version
    assert native.table.state.schema.options["k"] == "w"
    assert native.table.state.schema.options["other"] == "1"


def test_lists_whose_elements_the_ledger_numbers_are_not_added_by_engines(native: Served) -> None:
    numbers = ListType(1, IntegerType(), element_required=False)
    with pytest.raises(ledger.UnsupportedError, match="columns would differ .*Table.alter"):
        with_columns(lambda u: u.add_column("numbers", numbers))(native.engine())
    native.table.alter([ledger.AddColumn(("numbers",), "ARRAY<INT>")])
    with_columns(lambda u: u.rename_column("numbers", "figures"))(native.engine())
    assert native.rows() == native.rows_of_engine() == [1]


def test_what_the_tables_formats_cannot_express_is_rejected(native: Served) -> None:
    with pytest.raises(ledger.LedgerError):
        with_columns(lambda u: u.update_column("day", required=True))(native.engine())
    assert native.table.state.version == 1


def test_a_schema_that_does_not_become_current_is_rejected(native: Served) -> None:
    handle = handle_of(native.table)
    schema = native.engine().schema().model_dump(by_alias=True)
    new = {"id": 99, "name": "zz", "type": "string", "required": False}
    added = {"action": "add-schema", "schema": {**schema, "fields": [*schema["fields"], new]}}
    with pytest.raises(ledger.UnsupportedError, match="does not become the current one"):
        commit_updates(handle, [added])
