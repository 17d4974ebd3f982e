"""Hard cases of a projection: layouts, versions and formats that change, and bad files."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace

from ledger import (
    AddColumn,
    AddPartitionField,
    DropColumn,
    FileChange,
    RemovePartitionField,
    RenameColumn,
    ReplaceSortOrder,
    Schema,
    SetOption,
    SnapshotPlan,
    SortColumn,
    Table,
    UnsupportedError,
    UpdateColumnDefaultValue,
    UpdatePartitionSpec,
)
from ledger.model.types import IntType, MultisetType
from ledger.table_handle import handle_of
from projections.iceberg import TableMetadata, expected, read_metadata, verify
from projections.iceberg.materialise import project
from projections.materialising import Difference, PendingDeletes
from tests.lakes import lake_on, memory, orders
from tests.projections.iceberg.older_logs import record, record_file
from tests.projections.iceberg.projecting import (
    Left,
    is_metadata,
    metadata_names,
    records,
)

ICEBERG = SetOption("ledger.formats", "iceberg")


def table_of(columns: dict[str, Any], **options: str) -> Table:
    texts = {name.replace("_", "-"): value for name, value in options.items()}
    return orders(lake_on(memory()), Schema.of(columns, options=texts))


def paimon_table(columns: dict[str, Any]) -> Table:
    schema = Schema.of(columns, options={"ledger.formats": "paimon"})
    return orders(lake_on(memory()), schema)


def file(path: str, *partition: Any, schema_id: int = 0, spec_id: int = 0) -> FileChange:
    return FileChange(
        path=path,
        partition=partition,
        schema_id=schema_id,
        spec_id=spec_id,
        record_count=1,
        file_size_in_bytes=10,
        field_ids=True,
    )


def newest(table: Table) -> TableMetadata:
    files = expected(handle_of(table))
    return read_metadata(files[metadata_names(table, table.state.version)[0]])


def assert_found_alike(table: Table) -> None:
    """Assert that what stands on the store is what a run from nothing makes."""
    assert Left.by(table).newest(table) == expected(handle_of(table))
    assert verify(handle_of(table)).is_empty


# Schemas that Iceberg cannot say, or could not at the time


def test_a_schema_that_nothing_can_be_read_with_does_not_bar_a_table_from_iceberg() -> None:
    table = paimon_table({"id": "INT", "tags": MultisetType(IntType())})
    table.append([file("1.parquet")])
    table.alter([DropColumn(("tags",))])
    table.append([file("2.parquet", schema_id=1)])
    table.delete_files(["1.parquet"])
    table.expire_snapshots(before=3)
    table.alter([ICEBERG])
    project(handle_of(table))

    metadata = newest(table)
    assert [each.name for each in metadata.schema.fields] == ["id"]
    assert [each.schema_id for each in metadata.schemas] == [1]
    table.append([file("3.parquet", schema_id=2)])
    project(handle_of(table))
    assert_found_alike(table)


def test_a_snapshot_gets_the_schema_that_only_a_later_format_version_can_say() -> None:
    table = paimon_table({"id": "INT"})
    table.append([file("0.parquet")])
    table.alter([AddColumn(("at",), "TIMESTAMP(9)")])
    table.append([file("1.parquet", schema_id=1)])
    table.alter([DropColumn(("at",))])
    table.append([file("2.parquet", schema_id=2)])
    table.alter([SetOption("format-version", "3"), ICEBERG])
    project(handle_of(table))

    metadata = newest(table)
    named = {each.schema_id: [c.name for c in each.fields] for each in metadata.schemas}
    assert [named[each.schema_id or 0] for each in metadata.snapshots] == [
        ["id"],
        ["id", "at"],
        ["id"],
    ]
    assert metadata.current_schema_id == metadata.snapshots[2].schema_id
    table.append([file("3.parquet", schema_id=3)])
    project(handle_of(table))
    assert_found_alike(table)


def test_a_default_that_iceberg_cannot_express_blocks_the_projection_only_while_set() -> None:
    table = table_of({"id": "INT"}, format_version="3")
    table.alter([AddColumn(("day",), "DATE")])
    table.append([file("1.parquet", schema_id=1)])
    project(handle_of(table))
    record(table, UpdateColumnDefaultValue(("day",), "2024-02-30"))
    table.append([file("2.parquet", schema_id=2)])
    with pytest.raises(UnsupportedError, match="'2024-02-30' of day"):
        project(handle_of(table))

    table.alter([UpdateColumnDefaultValue(("day",), "2024-02-29")])
    with pytest.raises(UnsupportedError, match="snapshot 2 .* '2024-02-30' of day"):
        project(handle_of(table))
    table.append([file("3.parquet", schema_id=3)])
    table.expire_snapshots(before=3)
    project(handle_of(table))
    assert [each.snapshot_id for each in newest(table).snapshots] == [3]
    assert_found_alike(table)


def test_versions_that_iceberg_cannot_say_are_left_out_of_those_on_the_way() -> None:
    table = table_of({"id": "INT"}, format_version="3")
    table.alter([AddColumn(("day",), "DATE")])
    record(table, UpdateColumnDefaultValue(("day",), "2024-02-30"))
    table.alter([UpdateColumnDefaultValue(("day",), "2024-02-29")])
    table.alter([SetOption("k", "v")])
    project(handle_of(table), every=1)

    versions = [each for each in range(5) if metadata_names(table, each)[0] in Left.by(table).files]
    assert versions == [0, 1, 3, 4]
    assert verify(handle_of(table)).is_empty


def test_a_shape_that_comes_back_has_the_schema_id_that_it_had() -> None:
    table = table_of({"id": "INT"})
    table.alter([AddColumn(("n",), "INT")])
    table.append([file("1.parquet", schema_id=1)])
    table.alter([DropColumn(("n",))])
    table.append([file("2.parquet", schema_id=2)])
    table.alter([SetOption("k", "v")])
    table.append([file("3.parquet", schema_id=3)])

    metadata = newest(table)
    assert [each.schema_id for each in metadata.schemas] == [0, 1]
    assert [each.schema_id for each in metadata.snapshots] == [1, 0, 0]
    assert metadata.current_schema_id == 0


def test_a_name_that_comes_back_to_its_first_column_stands_for_that_one_again() -> None:
    table = table_of({"x": "INT", "y": "INT"})
    _register_and_forget(table, "a.parquet")
    table.alter([RenameColumn(("x",), "z"), AddColumn(("x",), "INT")])
    _register_and_forget(table, "b.parquet")
    table.alter([DropColumn(("x",)), RenameColumn(("z",), "x")])
    table.append([_nameless("c.parquet", table)])
    table.alter([RenameColumn(("x",), "w")])

    mapping = json.loads(newest(table).properties["schema.name-mapping.default"])
    names = {each["field-id"]: each["names"] for each in mapping}
    assert names == {0: ["z", "x", "w"], 1: ["y"], 2: []}


def _register_and_forget(table: Table, path: str) -> None:
    table.append([_nameless(path, table)])
    table.delete_files([path])
    table.expire_snapshots(before=table.state.last_snapshot_id)


def _nameless(path: str, table: Table) -> FileChange:
    return replace(file(path, schema_id=table.state.schema.id), field_ids=False)


# Files that Iceberg cannot say

WRONG: dict[str, tuple[FileChange, dict[str, Any], str]] = {
    "a format that no reader knows": (file("f.parquet", 1), {"format": "lance"}, "format lance"),
    "a value of another type": (file("f.parquet", "x"), {}, "'x', which is no INT"),
    "a value out of range": (file("f.parquet", 1 << 40), {}, "1099511627776, which is no INT"),
    "bounds of no bytes": (file("f.parquet", 1), {"lower_bounds": {0: "zz"}}, "not hexadecimal"),
    "equality deletes": (file("f.parquet", 1), {"content": "equality-deletes"}, "equality-deletes"),
}


@pytest.mark.parametrize("kind", WRONG)
def test_a_bad_file_is_named_and_no_longer_blocks_once_it_is_unreadable(kind: str) -> None:
    whole, wrong, message = WRONG[kind]
    options = {"ledger.formats": "iceberg"}
    schema = Schema.of({"id": "INT", "k": "INT"}, partition_keys=["k"], options=options)
    table = orders(lake_on(memory()), schema)
    table.append([file("good.parquet", 1)])
    project(handle_of(table))
    record_file(table, replace(whole, **wrong))
    with pytest.raises(UnsupportedError, match=f"^f.parquet .*{message}"):
        project(handle_of(table))

    table.delete_files(["f.parquet"])
    table.append([file("better.parquet", 2)])
    with pytest.raises(UnsupportedError, match=message):
        project(handle_of(table))
    table.expire_snapshots(before=3)
    project(handle_of(table))
    assert_found_alike(table)
    table.delete_files(["better.parquet"])
    project(handle_of(table))
    assert_found_alike(table)


# Layouts


def test_partition_fields_whose_names_avro_takes_for_one_keep_their_own_values() -> None:
    schema = Schema.of({"a b": "INT", "a_x20b": "INT"}, options={"ledger.formats": "iceberg"})
    table = orders(lake_on(memory()), schema)
    added = AddPartitionField(("a b",), "identity"), AddPartitionField(("a_x20b",), "identity")
    table.alter([UpdatePartitionSpec(updates=added)])
    table.append([file("1.parquet", 1, 2, spec_id=1), file("2.parquet", 3, 4, spec_id=1)])
    table.delete_files(["2.parquet"])
    project(handle_of(table))

    bodies = [body for path, body in Left.by(table).files.items() if "-m" in path]
    rows = {
        each["data_file"]["file_path"][-9]: tuple(each["data_file"]["partition"].values())
        for body in bodies
        for each in records(body)
    }
    assert rows == {"1": (1, 2), "2": (3, 4)}
    assert_found_alike(table)


def test_a_table_created_sorted_and_partitioned_evolves_by_ids_that_nobody_had() -> None:
    schema = Schema.of(
        {"a": "INT", "b": "INT"}, options={"ledger.formats": "iceberg", "format-version": "1"}
    )
    lake = lake_on(memory())
    lake.create_database("shop")
    table = lake.create_table(
        "shop.sorted",
        schema,
        sort_order=[SortColumn(("b",))],
        partition_spec=[AddPartitionField(("a",), "bucket[4]")],
    )
    metadata = newest(table)
    assert [each.order_id for each in metadata.sort_orders] == [1]
    assert (metadata.default_sort_order_id, metadata.last_partition_id) == (1, 1000)

    table.alter([ReplaceSortOrder(())])
    table.alter([UpdatePartitionSpec(updates=(RemovePartitionField("a_bucket"),))])
    metadata = newest(table)
    assert metadata.default_sort_order_id == 0
    default = metadata.partition_specs[-1]
    assert [(each.field_id, each.transform) for each in default.fields] == [(1000, "void")]
    assert (metadata.default_spec_id, metadata.last_partition_id) == (1, 1000)

    table.alter([ReplaceSortOrder((SortColumn(("b",)),))])
    assert newest(table).default_sort_order_id == 1


def test_going_back_to_an_old_layout_makes_its_spec_the_default_again() -> None:
    table = orders(
        lake_on(memory()), Schema.of({"a": "INT"}, options={"ledger.formats": "iceberg"})
    )
    table.alter([UpdatePartitionSpec(updates=(AddPartitionField(("a",), "identity"),))])
    table.append([file("1.parquet", 7, spec_id=1)])
    table.alter([UpdatePartitionSpec(updates=(RemovePartitionField("a"),))])

    metadata = newest(table)
    assert [each.spec_id for each in metadata.partition_specs] == [0, 1]
    assert (metadata.default_spec_id, metadata.last_partition_id) == (0, 1000)


# Versions, summaries, properties


def test_rows_of_an_upgraded_table_get_ids_with_the_next_snapshot_each_once() -> None:
    table = table_of({"id": "INT"}, format_version="1")
    table.append([file("a.parquet"), file("b.parquet")])
    table.alter([SetOption("format-version", "3")])
    assert (newest(table).next_row_id, newest(table).last_sequence_number) == (0, 0)
    table.append([file("c.parquet", schema_id=1)])
    table.delete_files(["a.parquet"])
    table.rollback(snapshot=2)

    metadata = newest(table)
    assert [(s.sequence_number, s.first_row_id, s.added_rows) for s in metadata.snapshots] == [
        (0, None, None),
        (2, 0, 3),
        (3, 3, 0),
        # What comes back has its rows' ids still.
        (4, 3, 0),
    ]
    assert (metadata.next_row_id, metadata.last_sequence_number) == (3, 4)


def test_what_a_writer_says_of_a_snapshot_never_passes_for_a_count() -> None:
    table = table_of({"id": "INT"})
    said = {"operation": "delete", "total-records": "9", "deleted-records": "7", "job": "etl"}
    plan = SnapshotPlan("APPEND", (file("a.parquet"),), facts={"snapshot_properties": said})
    table.commit_snapshot(plan)

    found = newest(table).snapshots[0].summary or {}
    assert (found["operation"], found["total-records"], found["job"]) == ("append", "1", "etl")
    assert "deleted-records" not in found


@pytest.mark.parametrize(
    ("kind", "operation"), [("ANALYZE", "replace"), ("COMPACT", "replace"), ("OVERWRITE", "delete")]
)
def test_the_operation_is_what_happened_to_the_rows(kind: Any, operation: str) -> None:
    table = table_of({"id": "INT"}, format_version="1")
    table.append([file("a.parquet"), file("b.parquet")])
    gone = () if kind == "ANALYZE" else ("a.parquet",)
    come = (file("c.parquet"),) if kind == "COMPACT" else ()
    table.commit_snapshot(SnapshotPlan(kind, come, delete=gone))

    found = newest(table).snapshots[1].summary or {}
    assert found["operation"] == operation
    assert found["changed-partition-count"] == ("0" if kind == "ANALYZE" else "1")


@pytest.mark.parametrize(
    ("most", "lengths"),
    [
        ("-3", [1, 0] * 7),
        ("0", [1, 0] * 7),
        ("+2", [1, 2, 0] * 4),
        ("10", [*range(1, 11), 0, 1]),
        ("many", [*range(1, 11), 0, 1]),
        ("1" + "0" * 5000, [*range(1, 11), 0, 1]),
        ("100", [*range(1, 13)]),
    ],
)
def test_the_metadata_log_begins_anew_where_it_would_exceed_the_property(
    most: str, lengths: list[int]
) -> None:
    table = table_of({"id": "INT"})
    table.alter([SetOption("write.metadata.previous-versions-max", most)])
    found = [len(newest(table).metadata_log)]
    for number in range(len(lengths) - 1):
        table.append([file(f"{number}.parquet", schema_id=1)])
        found.append(len(newest(table).metadata_log))
    assert found == lengths


def test_a_log_has_a_hundred_versions_at_most() -> None:
    options = {"write.metadata.previous-versions-max": "1000", "ledger.formats": "iceberg"}
    table = orders(lake_on(memory()), Schema.of({"id": "INT"}, options=options))
    lengths = []
    for number in range(103):
        lengths.append(len(newest(table).metadata_log))
        table.append([file(f"{number}.parquet")])
    assert lengths == [*range(101), 0, 1]


def test_a_log_that_may_be_longer_again_names_no_file_that_went() -> None:
    table = table_of({"id": "INT"})
    for number, most in enumerate(("9", "1", "9", "9"), 1):
        table.alter([SetOption("write.metadata.previous-versions-max", most), SetOption("n", most)])
        table.append([file(f"{number}.parquet", schema_id=table.state.schema.id)])
        project(handle_of(table))
        assert_found_alike(table)
    there = {path for path in Left.by(table).files if is_metadata(path)}
    there -= PendingDeletes(handle_of(table), "iceberg").paths()
    logged = {
        each.metadata_file.removeprefix(f"{table.location}/") for each in newest(table).metadata_log
    }
    projected = [path for path in there if "/v" not in path]
    assert set(projected) <= logged | {metadata_names(table, table.state.version)[0]}


def test_a_later_version_on_request_and_what_it_names_are_not_foreign() -> None:
    table = table_of({"id": "INT"})
    table.append([file("a.parquet")])
    project(handle_of(table))
    table.append([file("b.parquet")])
    table.append([file("c.parquet")])
    project(handle_of(table), version=2)
    assert verify(handle_of(table)) == Difference()

    project(handle_of(table))
    assert_found_alike(table)
    assert verify(handle_of(table)) == Difference()


# Tags


def _ends(table: Table, name: str) -> int | None:
    """Return when Iceberg lets a tag go, in Unix milliseconds; None for never."""
    metadata = newest(table)
    ref = metadata.refs[name]
    (made,) = (e.timestamp_ms for e in metadata.snapshots if e.snapshot_id == ref.snapshot_id)
    return None if ref.max_ref_age_ms is None else made + ref.max_ref_age_ms


def test_a_tag_ends_when_the_ledger_says_however_old_its_snapshot_was() -> None:
    table = table_of({"id": "INT"})
    table.append([file("a.parquet")])
    for number in range(30):
        table.alter([SetOption("n", str(number))])
    for name, retained in (("short", 1), ("long", 86_400_000), ("ever", None)):
        table.create_tag(name, snapshot=1, time_retained_millis=retained)
    table.append([file("b.parquet", schema_id=30)])
    table.expire_snapshots(before=2)
    table.replace_tag("long", snapshot=1, time_retained_millis=86_400_000)

    for name, retained in (("short", 1), ("long", 86_400_000)):
        assert _ends(table, name) == table.state.tags[name].create_time_millis + retained
    assert _ends(table, "ever") is None


def test_a_tag_for_ever_outlives_the_property_that_ends_refs() -> None:
    table = table_of({"id": "INT"}, **{"history.expire.max-ref-age-ms": "1"})
    table.append([file("a.parquet")])
    table.create_tag("t", snapshot=1)
    assert newest(table).refs["t"].max_ref_age_ms == 2**63 - 1
