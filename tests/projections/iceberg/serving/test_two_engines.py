"""Two engines commit to one served table: what commutes lands, what does not is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.types import NestedField, StringType, StructType

import ledger
from ledger.table_handle import handle_of
from projections.iceberg import StaleBaseError
from projections.iceberg.rest_commit import commit_updates
from tests.projections.iceberg.serving.catalog import ServedCatalog

ROWS = pa.table(
    {
        "id": pa.array([1, 2], pa.int64()),
        "place": pa.array([{"city": "a"}, {"city": "b"}]),
        "tags": pa.array([[{"k": "x"}], []]),
    }
)


@pytest.fixture(name="engines")
def _engines(tmp_path: Path) -> tuple[Any, Any]:
    """Return the table `a.t` as two engines loaded it at the same time."""
    lake = ledger.open(tmp_path / "lake")
    lake.create_database("a")
    first = ServedCatalog(handle_of(lake))
    first.create_table("a.t", ROWS.schema).append(ROWS)
    second = ServedCatalog(handle_of(ledger.open(tmp_path / "lake")))
    return first.load_table("a.t"), second.load_table("a.t")


def names(table: Any) -> list[str]:
    return [*map(str, table.refresh().schema().column_names)]


def add(table: Any, *columns: Any) -> None:
    with table.update_schema() as update:
        for path in columns:
            update.add_column(path, StringType())


@pytest.mark.parametrize(
    ("one", "other", "both"),
    [
        (["x"], ["y"], ["x", "y"]),
        ([("place", "x")], [("place", "y")], ["place.x", "place.y"]),
        ([("place", "x")], ["y"], ["place.x", "y"]),
        ([("tags", "x")], [("tags", "y")], ["tags.element.x", "tags.element.y"]),
        (["x", "z"], ["y", ("place", "z")], ["x", "z", "y", "place.z"]),
    ],
    ids=["columns", "members", "member and column", "in lists", "several"],
)
def test_columns_that_two_engines_add_are_both_there(
    engines: tuple[Any, Any], one: list[Any], other: list[Any], both: list[str]
) -> None:
    first, second = engines
    add(first, *one)
    add(second, *other)
    for table in engines:
        found = table.refresh().schema()
        ids = [each.field_id for each in map(found.find_field, both)]
        assert len({*ids}) == len(both)
        assert table.metadata.last_column_id == max(ids)
        assert len(table.scan().to_arrow()) == 2


def test_a_column_of_a_name_that_another_engine_has_added_is_refused(
    engines: tuple[Any, Any],
) -> None:
    first, second = engines
    add(first, "x")
    with pytest.raises(StaleBaseError, match="Requirement failed: current schema changed"):
        add(second, "x")


def changed(table: Any, change: str) -> None:
    with table.update_schema() as update:
        match change:
            case "rename":
                update.rename_column("id", "key")
            case "drop":
                update.delete_column("tags")
            case "describe":
                update.add_column("z", StringType())
                update.update_column("id", doc="other")
            case "move":
                update.add_column("z", StringType())
                update.move_first("tags")
            case _:
                raise AssertionError(change)


@pytest.mark.parametrize("change", ["rename", "drop", "describe", "move"])
def test_other_changes_of_an_old_schema_are_refused(engines: tuple[Any, Any], change: str) -> None:
    first, second = engines
    add(first, "n")
    before = names(first)
    with pytest.raises(StaleBaseError, match="Requirement failed: current schema changed"):
        changed(second, change)
    assert names(second) == before


def test_a_request_that_relies_on_the_last_field_id_is_refused(engines: tuple[Any, Any]) -> None:
    first, second = engines
    last = second.metadata.last_column_id
    schema = second.schema().model_dump(by_alias=True)
    new = {"id": last + 1, "name": "y", "type": "string", "required": False}
    schema["fields"] = [*schema["fields"], new]
    add(first, "x")
    with pytest.raises(StaleBaseError, match="last assigned field id changed"):
        commit_updates(
            second.catalog.handle("a.t"),
            [
                {"action": "add-schema", "schema": schema},
                {"action": "set-current-schema", "schema-id": -1},
            ],
            [{"type": "assert-last-assigned-field-id", "last-assigned-field-id": last}],
        )


def test_a_tag_a_property_and_rows_of_two_engines_are_all_there(
    engines: tuple[Any, Any],
) -> None:
    first, second = engines
    tagged = second.current_snapshot().snapshot_id
    first.append(ROWS)
    second.manage_snapshots().create_tag(tagged, "before").commit()
    with second.transaction() as change:
        change.set_properties(owner="ann")
    assert first.refresh().properties["owner"] == "ann"
    assert first.metadata.refs["before"].snapshot_id == tagged
    assert len(second.refresh().scan().to_arrow()) == 4


def test_rows_for_a_branch_that_moved_are_refused(engines: tuple[Any, Any]) -> None:
    first, second = engines
    first.append(ROWS)
    with pytest.raises((CommitFailedException, StaleBaseError)):
        second.append(ROWS)
    assert len(second.refresh().scan().to_arrow()) == 4


@pytest.mark.parametrize("current", [[0], [1], [-1, 0], []], ids=str)
def test_an_old_schema_is_rebased_only_if_the_request_makes_the_added_one_current(
    engines: tuple[Any, Any], current: list[int]
) -> None:
    first, second = engines
    schema = second.schema().model_dump(by_alias=True)
    last = second.metadata.last_column_id
    new = {"id": last + 1, "name": "y", "type": "string", "required": False}
    schema["fields"] = [*schema["fields"], new]
    add(first, "x")
    before = names(first)
    with pytest.raises(StaleBaseError, match="current schema changed"):
        commit_updates(
            second.catalog.handle("a.t"),
            [
                {"action": "add-schema", "schema": schema},
                *({"action": "set-current-schema", "schema-id": each} for each in current),
            ],
            [{"type": "assert-current-schema-id", "current-schema-id": 0}],
        )
    assert names(second) == before


def test_a_column_appended_at_once_comes_after_the_other_engines(
    engines: tuple[Any, Any],
) -> None:
    first, second = engines
    add(first, "x")
    add(second, "y")
    assert names(first)[-2:] == ["x", "y"]


def test_a_member_of_a_struct_that_lost_its_members_is_refused(engines: tuple[Any, Any]) -> None:
    first, second = engines
    with first.update_schema() as update:
        update.add_column("outer", StructType(NestedField(90, "inner", _STRUCT, required=False)))
    second.refresh()
    with first.update_schema() as update:
        update.add_column(("outer", "other"), StringType())
        update.delete_column("outer.inner")
    with pytest.raises(StaleBaseError):
        add(second, ("outer", "inner", "more"))


_STRUCT = StructType(NestedField(91, "member", StringType(), required=False))
