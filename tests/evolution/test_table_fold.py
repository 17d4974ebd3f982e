"""Each event's content is in the table's state after it."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET

from ledger import SetOption
from ledger.events import RolledBack, SchemaRecord, TableCreated
from ledger.model import FieldObject, Totals
from ledger.state import TableBuilder
from tests.evolution.folds import NAME, commit, grown, order, snapshot, spec

FACTS: dict[str, Any] = {
    "base_manifest_list": "base",
    "base_manifest_list_size": 1,
    "delta_manifest_list": "delta",
    "delta_manifest_list_size": 2,
    "changelog_manifest_list": "changelog",
    "changelog_manifest_list_size": 3,
    "index_manifest": "index",
    "log_offsets": {0: 4},
    "changelog_record_count": 5,
    "watermark": 6,
    "statistics": "statistics",
    "uuid": "uuid",
    "next_row_id": 7,
    "writer_version": "writer",
    "operation": "operation",
}


def test_a_snapshot_says_all_that_its_event_said() -> None:
    state = grown(
        snapshot(1, commit_identifier=3, snapshot_properties={"k": "v"}, **FACTS)
    ).freeze()

    said = state.snapshot
    assert said is not None
    assert {name: getattr(said, name) for name in FACTS} == FACTS
    assert (said.commit_user, said.commit_identifier, said.properties) == ("job", 3, {"k": "v"})
    assert (said.time_millis, said.total_record_count, said.delta_record_count) == (200, 10, 10)


def test_what_an_event_does_not_say_is_none() -> None:
    said = grown(snapshot(1)).freeze().snapshot

    assert {name: getattr(said, name) for name in (*FACTS, "properties")} == dict.fromkeys(
        (*FACTS, "properties")
    )


def test_a_rollback_is_an_overwrite_with_the_schema_of_its_day() -> None:
    back = RolledBack(
        snapshot_id=3,
        schema_id=1,
        commit_user="ann",
        commit_identifier=8,
        total_record_count=10,
        delta_record_count=-10,
        delta_file_count=-1,
        delta_file_size_in_bytes=-100,
        target_snapshot_id=1,
    )
    state = grown(snapshot(1), snapshot(2), SetOption("k", "v"), back).freeze()

    said = state.snapshot
    assert said is not None
    assert (said.id, said.schema_id, said.commit_kind) == (3, 1, "OVERWRITE")
    assert (said.commit_user, said.commit_identifier, said.time_millis) == ("ann", 8, 500)
    assert (said.total_record_count, said.delta_record_count) == (10, -10)
    assert state.totals == Totals(record_count=10, file_size_in_bytes=100, file_count=1)


def test_the_newest_file_time_is_the_greatest_so_far() -> None:
    times = [
        grown(*(snapshot(n, last_file_creation_time=at) for n, at in enumerate(each, 1)))
        .freeze()
        .totals.last_file_creation_time
        for each in ([], [UNSET], [5], [5, 3], [3, 5], [5, UNSET])
    ]

    assert times == [None, None, 5, 5, 5, 5]


def test_author_and_time_are_those_of_the_first_and_the_last_transaction() -> None:
    builder = grown(SetOption("k", "v"))
    builder.commit(commit(2, SetOption("k", "w"), effective_time_millis=250))
    state = builder.freeze()

    assert (state.created_at, state.created_by) == (100, "ann")
    assert (state.updated_at, state.effective_millis, state.time_millis) == (250, 250, 300)
    assert (state.schema.id, state.schema.time_millis) == (2, 250)


def test_a_layout_that_is_there_becomes_the_default_again() -> None:
    state = grown(
        spec(1), order(1), spec(2, "bucket[2]"), order(2, "nulls-last"), spec(1), order(1)
    )
    after = state.freeze()

    assert [each.spec_id for each in after.specs] == [0, 1, 2]
    assert [each.order_id for each in after.sort_orders] == [0, 1, 2]
    assert (after.default_spec_id, after.default_order_id) == (1, 1)
    assert after.last_partition_id == 1000


def test_a_creation_holds_all_of_the_first_state() -> None:
    record = SchemaRecord(
        (FieldObject(3, "id", "INT NOT NULL"), FieldObject(4, "day", "DATE")),
        highest_field_id=7,
        partition_keys=("day",),
        primary_keys=("id",),
        options={"k": "v"},
        comment="orders",
        identifier_field_ids=(3,),
    )
    created = TableCreated(
        identifier=NAME,
        table_id="t",
        path="s3://x/t",
        schema=record,
        is_external=True,
        field_id_policy="iceberg",
    )
    builder = TableBuilder()
    builder.commit(commit(0, created))
    state = builder.freeze()

    schema = state.schema
    assert (schema.names, [each.id for each in schema.fields]) == (("id", "day"), [3, 4])
    assert (schema.partition_keys, schema.primary_keys) == (("day",), ("id",))
    assert (dict(schema.options), schema.comment) == ({"k": "v"}, "orders")
    assert (schema.highest_field_id, schema.identifier_field_ids) == (7, (3,))
    assert (schema.field_id_policy, schema.id, schema.time_millis) == ("iceberg", 0, 100)
    assert (state.table_id, state.path, state.is_external) == ("t", "s3://x/t", True)
    assert [each.source_id for each in state.spec.fields] == [4]
    assert (state.default_order_id, state.snapshot, state.earliest_snapshot_id) == (0, None, 1)
