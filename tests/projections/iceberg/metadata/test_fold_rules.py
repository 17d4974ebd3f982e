"""Rules of a commit that the checked cases leave open, one by one."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from attrs import evolve

from ledger import InvalidInputError, UnsupportedError
from ledger.model import MetadataLogEntry, PartitionField, PartitionSpec, SortField, SortOrder
from ledger.model.iceberg_objects import SnapshotLogEntry
from projections.iceberg import (
    StaleBaseError,
    TableMetadata,
    apply_updates,
    read_metadata,
    write_metadata,
)
from projections.iceberg.metadata_schema import PlainType
from projections.iceberg.metadata_update import empty_metadata, partition_type
from projections.iceberg.table_metadata import check_metadata_times
from tests.projections.iceberg.metadata.cases import UUID
from tests.projections.iceberg.metadata.creation import NewTable, creating
from tests.projections.iceberg.metadata.small_tables import (
    SCHEMA,
    START_MS,
    added,
    commit,
    pointed,
    table,
    three,
)


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
        ([added(3, 2)], "use another id"),
        ([pointed("main", 3, "tag")], "main is a branch"),
        ([pointed("b", 99)], "no such snapshot"),
        ([{"action": "set-current-schema", "schema-id": 5}], "no such id"),
        ([{"action": "set-default-spec", "spec-id": -1}], "the batch added none"),
        ([{"action": "set-default-sort-order", "sort-order-id": 4}], "no such id"),
        ([{"action": "remove-schemas", "schema-ids": [0]}], "is the current one"),
    ],
)
def test_a_contradiction_is_rejected(batch: list[dict[str, Any]], problem: str) -> None:
    with pytest.raises(InvalidInputError, match=problem):
        commit(three(), *batch)


def test_an_unknown_format_version_is_unsupported() -> None:
    with pytest.raises(UnsupportedError):
        commit(three(), {"action": "upgrade-format-version", "format-version": 4})
    with pytest.raises(UnsupportedError):
        table(format_version=4)
    begun = [{"action": "upgrade-format-version", "format-version": 4}]
    with pytest.raises(UnsupportedError, match="cannot be of format version 4"):
        commit(None, *begun)


def test_specs_go_by_their_ids_and_the_others_stay() -> None:
    base = three()
    for buckets in (2, 3, 4):
        field = {"source-id": 1, "transform": f"bucket[{buckets}]", "name": f"b{buckets}"}
        spec = {"spec-id": -1, "fields": [field]}
        base = commit(base, {"action": "add-spec", "spec": spec})
    ids = [each.spec_id for each in base.partition_specs]

    found = commit(base, {"action": "remove-partition-specs", "spec-ids": [ids[1], ids[3]]})

    assert [each.spec_id for each in found.partition_specs] == [ids[0], ids[2]]


def test_values_of_a_spec_are_optional_and_of_no_known_type_where_their_column_is_gone() -> None:
    base = table()
    fields = (
        PartitionField("b", "bucket[4]", source_id=1, field_id=1000),
        PartitionField("gone", "identity", source_id=77, field_id=1001),
    )
    found = partition_type(PartitionSpec(0, fields), base.schema)
    assert [(each.name, each.type, each.required) for each in found.fields] == [
        ("b", PlainType("int"), False),
        ("gone", PlainType("unknown"), False),
    ]


def test_the_first_partition_field_of_a_table_has_id_1000() -> None:
    assert empty_metadata(2, START_MS).last_partition_id == 999
    bare = apply_updates(
        None, creating(NewTable(uuid=UUID, location="mem:/t", schema=SCHEMA)), now_ms=START_MS
    )
    assert bare.last_partition_id == 999


def test_a_commit_far_before_the_last_one_is_rejected() -> None:
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
            "occurs twice",
        ),
        ([{"name": "b", "transform": "bucket[0]", "source-id": 1}], "at least 1"),
        ([{"name": "b", "transform": "identity"}], "source-id"),
    ],
)
def test_a_spec_that_does_not_fit_is_rejected(fields: list[dict[str, Any]], problem: str) -> None:
    with pytest.raises(InvalidInputError, match=problem):
        commit(table(), {"action": "add-spec", "spec": {"spec-id": 0, "fields": fields}})


def test_version_1_numbers_partition_fields_without_gaps() -> None:
    field = {"name": "x", "transform": "day", "source-id": 2, "field-id": 1001}
    add = {"action": "add-spec", "spec": {"spec-id": 0, "fields": [field]}}
    assert commit(table(), add).last_partition_id == 1001
    with pytest.raises(InvalidInputError, match="without gaps"):
        commit(table(format_version=1), add)


def test_dropping_a_column_of_the_default_spec_is_rejected() -> None:
    base = table(spec=PartitionSpec(0, (PartitionField("d", "day", 2),)))
    dropped = {"type": "struct", "fields": [{"id": 1, "name": "id", "required": True}]}
    dropped["fields"][0]["type"] = "long"  # type: ignore[index]
    with pytest.raises(InvalidInputError, match="no such field"):
        commit(
            base,
            {"action": "add-schema", "schema": dropped},
            {"action": "set-current-schema", "schema-id": -1},
        )


def snapshots_logged(base: TableMetadata, *times_ms: int) -> TableMetadata:
    return evolve(base, snapshot_log=tuple(SnapshotLogEntry(each, 1) for each in times_ms))


def files_logged(base: TableMetadata, *times_ms: int) -> TableMetadata:
    return evolve(base, metadata_log=tuple(MetadataLogEntry(each, "m") for each in times_ms))


@pytest.mark.parametrize("log", [snapshots_logged, files_logged])
def test_clocks_of_writers_lie_a_minute_apart_at_most(
    log: Callable[..., TableMetadata],
) -> None:
    made = table()
    last = made.last_updated_ms
    logged = partial(log, made)

    for fine in ((), (last + 60_000,), (last, last - 60_000), (last - 200_000, last)):
        check_metadata_times(logged(*fine))
    with pytest.raises(InvalidInputError, match=r"is more than a minute before the last entry"):
        check_metadata_times(logged(last, last + 60_001))
    with pytest.raises(InvalidInputError, match=r"\[1\]: is more than a minute older"):
        check_metadata_times(logged(last, last - 60_001, last))
