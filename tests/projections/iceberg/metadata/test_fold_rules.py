"""Rules of a commit that the checked cases leave open, one by one."""

from __future__ import annotations

import json
from typing import Any

import pytest
from attrs import evolve

from ledger.model.errors import InvalidInputError, UnsupportedError
from projections.iceberg.metadata import (
    Schema,
    StaleBaseError,
    TableMetadata,
    apply_updates,
    apply_view_updates,
    check_requirements,
    check_view_requirements,
    read_metadata,
    read_view_metadata,
    requirement_from_json,
    requirements_of,
    requirements_of_replacement,
    schema_from_json,
    table_update_from_json,
    view_update_from_json,
    write_metadata,
)
from projections.iceberg.metadata.creation import NewTable, creating
from projections.iceberg.metadata.expiry import Retention, expiring
from projections.iceberg.metadata.file_names import file_version, next_location
from projections.iceberg.metadata.heads import remove_ref, rollback_to, set_current_snapshot
from projections.iceberg.metadata.layout import PartitionField, PartitionSpec, SortField, SortOrder
from projections.iceberg.metadata.requirements import AssertTableUuid
from projections.iceberg.metadata.snapshot import SnapshotLogEntry
from projections.iceberg.metadata.types import NestedField, PlainType
from tests.projections.iceberg.metadata.cases import DATA, UUID

VIEW = (DATA / "java-view/ValidViewMetadata.json").read_bytes()
SCHEMA = Schema(
    0,
    (
        NestedField(1, "id", PlainType("long"), required=True),
        NestedField(2, "day", PlainType("date"), required=False),
    ),
)
START_MS = 1_700_000_000_000


def table(**values: Any) -> TableMetadata:
    """Return a new table with what is given."""
    new = NewTable(uuid=UUID, location="mem:/t", schema=SCHEMA, **values)
    return apply_updates(None, creating(new), now_ms=START_MS)


def commit(base: TableMetadata | None, *batch: dict[str, Any], at: int = 9) -> TableMetadata:
    """Return the table after a commit `at` milliseconds after the start."""
    return apply_updates(
        base, [table_update_from_json(each) for each in batch], now_ms=START_MS + at
    )


def added(number: int, parent: int | None = None, **values: Any) -> dict[str, Any]:
    snapshot = {
        "sequence-number": number,
        "snapshot-id": number,
        "timestamp-ms": START_MS + number,
        "summary": {"operation": "append"},
        "manifest-list": f"mem:/t/snap-{number}.avro",
        **({"parent-snapshot-id": parent} if parent else {}),
        **values,
    }
    return {"action": "add-snapshot", "snapshot": snapshot}


def pointed(
    name: str, number: int, kind: str = "branch", retention: dict[str, int] | None = None
) -> dict[str, Any]:
    ref = {"ref-name": name, "snapshot-id": number, "type": kind}
    return {"action": "set-snapshot-ref", **ref, **(retention or {})}


def three() -> TableMetadata:
    """Return a table of three snapshots in a row, committed one by one."""
    base = commit(table(), added(1), pointed("main", 1))
    base = commit(base, added(2, 1), pointed("main", 2))
    return commit(base, added(3, 2), pointed("main", 3))


def test_a_commit_that_changes_nothing_gives_the_same_object() -> None:
    base = three()
    noops = [
        pointed("main", 3),
        {"action": "remove-snapshots", "snapshot-ids": [77]},
        {"action": "set-location", "location": "mem:/t/"},
        {"action": "assign-uuid", "uuid": UUID},
        {"action": "set-current-schema", "schema-id": 0},
        {"action": "set-properties", "updates": {}},
    ]
    assert commit(base, *noops) is base


def test_a_rollback_is_logged_with_the_time_of_its_commit() -> None:
    base = commit(three(), pointed("main", 1), at=50)
    assert base.snapshot_log[-1] == SnapshotLogEntry(START_MS + 50, 1)
    assert [each.snapshot_id for each in base.snapshot_log] == [1, 2, 3, 1]
    assert base.last_updated_ms == START_MS + 50


def test_a_removed_snapshot_takes_its_statistics_its_refs_and_the_log_before_it_along() -> None:
    base = commit(
        three(),
        pointed("old", 2, "tag"),
        {
            "action": "set-partition-statistics",
            "partition-statistics": {
                "snapshot-id": 2,
                "statistics-path": "p",
                "file-size-in-bytes": 1,
            },
        },
    )
    assert len(base.partition_statistics) == 1
    base = commit(base, {"action": "remove-snapshots", "snapshot-ids": [2]})
    assert base.partition_statistics == ()
    assert set(base.refs) == {"main"}
    assert [each.snapshot_id for each in base.snapshot_log] == [3]
    assert [each.parent_snapshot_id for each in base.snapshots] == [None, 2]


def test_removing_the_head_of_main_leaves_no_current_snapshot() -> None:
    base = commit(three(), {"action": "remove-snapshots", "snapshot-ids": [3]})
    assert base.current_snapshot_id is None
    assert base.refs == {}
    assert read_metadata(write_metadata(base)) == base


def test_a_snapshot_made_for_an_older_table_is_stale() -> None:
    with pytest.raises(StaleBaseError, match="sequence number 3"):
        commit(three(), added(4, 2, **{"sequence-number": 3}))


@pytest.mark.parametrize(
    ("batch", "problem"),
    [
        ([added(3, 2)], "draw another id"),
        ([pointed("main", 3, "tag")], "main is a branch"),
        ([pointed("b", 99)], "no such snapshot"),
        ([{"action": "set-current-schema", "schema-id": 5}], "none such"),
        ([{"action": "set-default-spec", "spec-id": -1}], "the batch added none"),
        ([{"action": "set-default-sort-order", "sort-order-id": 4}], "none such"),
        ([{"action": "remove-schemas", "schema-ids": [0]}], "is the current one"),
    ],
)
def test_a_contradiction_is_refused(batch: list[dict[str, Any]], problem: str) -> None:
    with pytest.raises(InvalidInputError, match=problem):
        commit(three(), *batch)


def test_a_format_version_that_nobody_knows_is_unsupported() -> None:
    with pytest.raises(UnsupportedError):
        commit(three(), {"action": "upgrade-format-version", "format-version": 4})
    with pytest.raises(UnsupportedError):
        table(format_version=4)


def test_a_commit_far_before_the_last_one_is_refused() -> None:
    base = commit(three(), pointed("main", 1), at=100_000)
    with pytest.raises(InvalidInputError, match="more than a minute"):
        commit(base, pointed("main", 2), at=39_999)
    assert commit(base, pointed("main", 2), at=40_000).current_snapshot_id == 2


@pytest.mark.parametrize("missing", ["AssignUuid", "SetLocation", "AddSchema", "AddSpec"])
def test_a_new_table_needs_all_its_parts(missing: str) -> None:
    new = NewTable(uuid=UUID, location="mem:/t", schema=SCHEMA)
    batch = [each for each in creating(new) if type(each).__name__ != missing]
    with pytest.raises(InvalidInputError):
        apply_updates(None, batch, now_ms=START_MS)


def test_a_new_table_points_its_layouts_to_the_new_ids() -> None:
    shifted = evolve(SCHEMA, fields=(SCHEMA.fields[1], SCHEMA.fields[0]))
    new = NewTable(
        uuid=UUID,
        location="mem:/t",
        schema=shifted,
        spec=PartitionSpec(7, (PartitionField("d", "month", 2, field_id=4000),)),
        sort_order=SortOrder(
            9,
            (
                SortField(
                    transform="identity", source_id=1, direction="asc", null_order="nulls-last"
                ),
            ),
        ),
    )
    made = apply_updates(None, creating(new), now_ms=START_MS)
    assert [(each.name, each.id) for each in made.schema.fields] == [("day", 1), ("id", 2)]
    assert made.spec == PartitionSpec(0, (PartitionField("d", "month", 1, field_id=1000),))
    assert (made.sort_order.order_id, made.sort_order.fields[0].source_id) == (1, 2)
    assert made.last_partition_id == 1000


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ([{"name": "day", "transform": "bucket[4]", "source-id": 1}], "not its source"),
        ([{"name": "h", "transform": "hour", "source-id": 2}], "of type date"),
        ([{"name": "x", "transform": "identity", "source-id": 8}], "no such field"),
        (
            [
                {"name": "x", "transform": "identity", "source-id": 1},
                {"name": "x", "transform": "day", "source-id": 2},
            ],
            "there twice",
        ),
        ([{"name": "b", "transform": "bucket[0]", "source-id": 1}], "at least 1"),
        ([{"name": "b", "transform": "identity"}], "source-id"),
    ],
)
def test_a_spec_that_does_not_fit_is_refused(fields: list[dict[str, Any]], problem: str) -> None:
    with pytest.raises(InvalidInputError, match=problem):
        commit(table(), {"action": "add-spec", "spec": {"spec-id": 0, "fields": fields}})


def test_version_1_numbers_partition_fields_without_gaps() -> None:
    field = {"name": "x", "transform": "day", "source-id": 2, "field-id": 1001}
    add = {"action": "add-spec", "spec": {"spec-id": 0, "fields": [field]}}
    assert commit(table(), add).last_partition_id == 1001
    with pytest.raises(InvalidInputError, match="without gaps"):
        commit(table(format_version=1), add)


def test_dropping_a_column_of_the_default_spec_is_refused() -> None:
    base = table(spec=PartitionSpec(0, (PartitionField("d", "day", 2),)))
    dropped = {"type": "struct", "fields": [{"id": 1, "name": "id", "required": True}]}
    dropped["fields"][0]["type"] = "long"  # type: ignore[index]
    with pytest.raises(InvalidInputError, match="no such field"):
        commit(
            base,
            {"action": "add-schema", "schema": dropped},
            {"action": "set-current-schema", "schema-id": -1},
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


def test_expiry_refuses_to_take_a_head_and_a_shared_tables_files() -> None:
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


def test_files_are_numbered_after_the_file_before() -> None:
    base = table()
    assert next_location(base, None, "u") == "mem:/t/metadata/00000-u.metadata.json"
    moved = evolve(
        base,
        properties={
            "write.metadata.path": "mem:/m/",
            "write.metadata.compression-codec": "gzip",
        },
    )
    assert next_location(moved, "mem:/t/00041-x.metadata.json", "u") == (
        "mem:/m/00042-u.gz.metadata.json"
    )
    assert next_location(base, "mem:/t/imported.metadata.json", "u").endswith(
        "/00000-u.metadata.json"
    )
    names = [
        "v7.metadata.json",
        "v7.gz.metadata.json",
        "v7.metadata.json.gz",
        "00007-a.gz.metadata.json",
    ]
    assert {file_version(f"mem:/t/{each}") for each in names} == {7}


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


def test_a_view_keeps_its_uuid_and_its_dialects() -> None:
    view = read_view_metadata(VIEW)
    check_view_requirements(
        view,
        [requirement_from_json({"type": "assert-view-uuid", "uuid": view.view_uuid})],  # type: ignore[list-item]
    )
    with pytest.raises(InvalidInputError, match="cannot change"):
        apply_view_updates(
            view, [view_update_from_json({"action": "assign-uuid", "uuid": UUID})], now_ms=1
        )
    other = {
        "version-id": 1,
        "timestamp-ms": 1,
        "schema-id": 0,
        "summary": {},
        "default-namespace": [],
        "representations": [{"type": "sql", "sql": "select 1", "dialect": "trino"}],
    }
    replaced = [
        {"action": "add-view-version", "view-version": other},
        {"action": "set-current-view-version", "view-version-id": -1},
    ]
    with pytest.raises(InvalidInputError, match="spark-sql"):
        apply_view_updates(view, [view_update_from_json(each) for each in replaced], now_ms=1)
    known = json.loads(VIEW)["versions"][0]
    reused = [
        {"action": "add-view-version", "view-version": known | {"version-id": 7}},
        {"action": "set-current-view-version", "view-version-id": -1},
    ]
    with pytest.raises(InvalidInputError, match="the batch added none"):
        apply_view_updates(view, [view_update_from_json(each) for each in reused], now_ms=1)
    # An older version is current again from the time of the commit on.
    back = {"action": "set-current-view-version", "view-version-id": 1}
    moved = apply_view_updates(view, [view_update_from_json(back)], now_ms=6666)
    assert moved.version_log[-1].timestamp_ms == 6666
