"""Heads, requirements, names and defaults, where the checked cases are silent."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve

from ledger import InvalidInputError
from projections.iceberg import (
    Retention,
    StaleBaseError,
    apply_updates,
    check_requirements,
    expiring,
    remove_ref,
    requirement_from_json,
    requirements_of,
    rollback_to,
    set_current_snapshot,
    table_update_from_json,
)
from projections.iceberg.rest_updates import AssertTableUuid, requirements_of_replacement
from projections.iceberg.schema_json import schema_from_json
from tests.projections.iceberg.metadata.cases import UUID
from tests.projections.iceberg.metadata.small_tables import (
    START_MS,
    commit,
    pointed,
    three,
)


def test_a_missing_table_satisfies_nothing_but_that_it_is_missing() -> None:
    base = three()
    assert requirements_of(None, []) == [requirement_from_json({"type": "assert-create"})]
    for each in requirements_of(base, []):
        check_requirements(base, [each])
        with pytest.raises(StaleBaseError):
            check_requirements(None, [each])
    with pytest.raises(StaleBaseError):
        check_requirements(base, requirements_of(None, []))


def test_a_uuid_is_the_same_in_any_case() -> None:
    shouted = requirement_from_json({"type": "assert-table-uuid", "uuid": UUID.upper()})
    assert isinstance(shouted, AssertTableUuid)
    check_requirements(three(), [shouted])


def test_removing_schemas_pins_every_branch_but_main() -> None:
    base = commit(three(), pointed("audit", 2), pointed("v1", 1, "tag"))
    batch = [table_update_from_json({"action": "remove-schemas", "schema-ids": [4]})]
    assert [type(each).__name__ for each in requirements_of(base, batch)] == [
        "AssertTableUuid",
        "AssertCurrentSchemaId",
        "AssertRefSnapshotId",
    ]
    assert [type(each).__name__ for each in requirements_of_replacement(base, batch)] == [
        "AssertTableUuid"
    ]


def test_expiry_rejects_to_take_a_head_and_a_shared_tables_files() -> None:
    base = three()
    keep = Retention(older_than_ms=0)
    assert expiring(base, keep, now_ms=START_MS) == []
    (removed,) = expiring(base, keep, now_ms=START_MS, snapshot_ids=[1])
    after = apply_updates(base, [removed], now_ms=START_MS)
    assert [each.snapshot_id for each in after.snapshots] == [2, 3]
    with pytest.raises(InvalidInputError, match="head of main"):
        expiring(base, keep, now_ms=START_MS, snapshot_ids=[3])
    shared = evolve(base, properties={"gc.enabled": "false"})
    with pytest.raises(InvalidInputError, match="gc.enabled"):
        expiring(shared, keep, now_ms=START_MS)


@pytest.mark.parametrize(("later_ms", "left"), [(432_000_000, [1, 2, 3]), (432_100_000, [3])])
def test_snapshots_stay_for_five_days_where_no_property_says_otherwise(
    later_ms: int, left: list[int]
) -> None:
    base = three()
    first_ms = base.snapshots[0].timestamp_ms
    removed = expiring(base, Retention(), now_ms=first_ms + later_ms)
    after = apply_updates(base, removed, now_ms=first_ms + later_ms) if removed else base
    assert [each.snapshot_id for each in after.snapshots] == left


def test_an_old_ref_goes_and_main_never_does() -> None:
    base = commit(three(), pointed("v1", 1, "tag", {"max-ref-age-ms": 10}))
    removed = expiring(base, Retention(), now_ms=START_MS + 10**12)
    after = apply_updates(base, removed, now_ms=START_MS)
    assert set(after.refs) == {"main"}
    assert [each.snapshot_id for each in after.snapshots] == [3]


def test_heads_move_as_asked_and_main_stays() -> None:
    base = commit(three(), pointed("main", 3, "branch", {"min-snapshots-to-keep": 2}))
    moved = apply_updates(base, [rollback_to(base, 1)], now_ms=START_MS)
    # Not an ancestor of the head any more, but a snapshot of the table.
    forward = apply_updates(moved, [set_current_snapshot(moved, 3)], now_ms=START_MS)
    assert (moved.current_snapshot_id, forward.current_snapshot_id) == (1, 3)
    assert forward.refs == base.refs
    with pytest.raises(InvalidInputError, match="main cannot be removed"):
        remove_ref(base, "main")


def test_names_are_found_in_full_and_short() -> None:
    point = {"type": "struct", "fields": [{"id": 3, "name": "x", "required": True, "type": "int"}]}
    listed = {"type": "list", "element-id": 2, "element": point, "element-required": True}
    schema = schema_from_json(
        {
            "type": "struct",
            "fields": [{"id": 1, "name": "points", "required": False, "type": listed}],
        }
    )
    for name in ("points.element.x", "points.x"):
        found = schema.find(name)
        assert found is not None
        assert found.id == 3
    assert schema.find("points.element") is not None
    assert schema.find("x") is None


def test_a_short_name_keeps_elements_that_are_no_structs() -> None:
    point = {"type": "struct", "fields": [{"id": 4, "name": "x", "required": True, "type": "int"}]}
    row = {"type": "list", "element-id": 3, "element": point, "element-required": True}
    grid = {"type": "list", "element-id": 2, "element": row, "element-required": True}
    field = {"id": 1, "name": "grid", "required": False, "type": grid}
    schema = schema_from_json({"type": "struct", "fields": [field]})
    assert schema.name_of(4) == "grid.element.element.x"
    assert schema.find("grid.element.x") is not None
    assert schema.find("grid.x") is None


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        ("boolean", True, 1),
        ("int", 2**31 - 1, 2**31),
        ("long", -(2**63), 1.0),
        ("double", 1.0, 1),
        ("decimal(9, 2)", "14.20", "14.2"),
        ("date", "2017-11-16", "2017-11-31"),
        ("time", "22:31:08.123456", "24:31:08"),
        ("timestamp", "2017-11-16T22:31:08.123456", "2017-11-16"),
        ("timestamptz", "2017-11-16T22:31:08+00:00", "2017-11-16T22:31:08+01:00"),
        ("timestamp_ns", "2017-11-16T22:31:08.123456789", "x"),
        ("uuid", UUID, "9c12d441"),
        ("fixed[2]", "00FF", "00"),
        ("binary", "00ff", "0"),
        ("string", "a", 1),
        ("unknown", None, 1),
        ("variant", None, {}),
        ("geometry", None, "00"),
    ],
)
def test_a_default_is_a_value_of_its_type(kind: str, good: Any, bad: Any) -> None:
    def schema(default: Any) -> dict[str, Any]:
        field = {"id": 1, "name": "a", "required": False, "type": kind, "write-default": default}
        return {"type": "struct", "fields": [field]}

    assert schema_from_json(schema(good)).fields[0].write_default == good
    with pytest.raises(InvalidInputError, match="write-default"):
        schema_from_json(schema(bad))
