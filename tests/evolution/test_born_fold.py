"""The fold of imported tables."""

from __future__ import annotations

import pytest

from ledger import SetOption
from ledger.events import MetadataLogUpdated, TagDeleted
from ledger.model import MetadataLogEntry, Totals
from ledger.state import DeltaOrigin, IcebergOrigin, PaimonOrigin
from ledger.state.iceberg_origin import iceberg_delta_totals, iceberg_snapshot, iceberg_totals
from tests.evolution.born import (
    FIRST,
    ID,
    SECOND,
    STAGED,
    builder_of,
    commit,
    snapshot,
)


def test_ids_and_numbers_are_the_sources() -> None:
    state = builder_of(3).freeze()
    origin = state.origin_of_kind(IcebergOrigin)
    assert state.snapshot is not None
    assert (state.snapshot.id, state.schema.id, origin.last_sequence_number) == (SECOND, 1, 2)
    assert list(origin.snapshots) == [FIRST, SECOND]
    assert (state.default_spec_id, state.default_order_id, origin.next_row_id) == (4, 3, 4)
    assert [(each.name, each.snapshot_id) for each in state.tags.values()] == [("v1", FIRST)]
    assert state.snapshot_ids == (SECOND, FIRST)
    assert origin.added_in == {FIRST: 1, SECOND: 3}


def test_totals_are_those_of_the_summary_and_unknown_where_it_has_none() -> None:
    assert builder_of(1).freeze().totals.record_count == 3
    assert builder_of(1).freeze().totals.file_count == -1
    assert builder_of(3).freeze().totals.record_count == -1


@pytest.mark.parametrize("text", ["", "abc", "-3", "1e3", "٣", str(2**63), "9" * 5000])
def test_a_count_that_is_none_is_one_that_the_summary_does_not_say(text: str) -> None:
    wrong = ("added-records", "deleted-data-files", "removed-files-size", "total-records")
    said = {"added-data-files": "3", "total-data-files": "5", "total-files-size": str(2**63 - 1)}
    added = snapshot(FIRST, 1, summary={**dict.fromkeys(wrong, text), **said}).snapshot
    assert iceberg_delta_totals(added) == Totals(file_count=3)
    assert iceberg_totals(added) == Totals(-1, 2**63 - 1, 5)
    assert iceberg_snapshot(added, 0).total_record_count == -1


def test_a_ref_points_back_and_a_schema_comes_back_with_its_dropped_ids() -> None:
    state = builder_of(5).freeze()
    assert state.snapshot is not None
    assert (state.snapshot.id, state.schema.id, state.schema.names) == (FIRST, 0, ("id",))
    assert state.schema.highest_field_id == 2
    origin = state.origin_of_kind(IcebergOrigin)
    assert STAGED in origin.snapshots


def test_a_snapshot_with_other_metadata_stays_that_of_its_commit() -> None:
    before, after = (builder_of(each).freeze() for each in (5, None))
    old, new = (each.origin_of_kind(IcebergOrigin) for each in (before, after))
    assert old.added_in[STAGED] == new.added_in[STAGED] == 4
    parents = [each.snapshots[STAGED].parent_snapshot_id for each in (old, new)]
    assert parents == [SECOND, None]


def test_an_option_alone_makes_no_schema_id() -> None:
    builder = builder_of(1)
    builder.commit(commit(2, SetOption("owner", "bob")))
    assert builder.freeze().schema.id == 0
    assert builder.freeze().schema.options == {"owner": "bob"}


def test_a_log_that_goes_on_keeps_what_it_had_unless_it_says_what_it_lost() -> None:
    builder = builder_of(5)
    for number, name in enumerate("bc", 6):
        entry = MetadataLogEntry(timestamp_ms=number, metadata_file=name)
        builder.commit(commit(number, MetadataLogUpdated(added=(entry,))))
    state = builder.freeze()
    origin = state.origin_of_kind(IcebergOrigin)
    assert [each.metadata_file for each in origin.metadata_log] == ["b", "c"]


def test_what_was_removed_is_gone_with_all_that_hangs_on_it() -> None:
    state = builder_of().freeze()
    origin = state.origin_of_kind(IcebergOrigin)
    assert set(origin.snapshots) == {FIRST, STAGED}
    assert (origin.statistics, state.partition_statistics, state.tags) == ({}, {}, {})
    assert set(origin.schemas) == {0, 1, 10}
    assert [each.spec_id for each in state.specs] == [4]
    assert (state.last_partition_id, state.schema.highest_field_id) == (1004, 7)
    assert state.schema.names == ("day", "id")
    assert (origin.format_version, origin.last_updated_millis) == (3, 77)
    assert not state.reachable(SECOND)


def test_the_first_schema_has_the_sources_id() -> None:
    state = builder_of(0).freeze()
    assert (state.schema.id, state.schema.names, state.snapshot) == (0, ("id",), None)
    origin = state.origin_of_kind(IcebergOrigin)
    assert origin.schemas[0].fields == (ID,)


def test_paimons_ids_are_the_sources_and_come_again_after_its_rollback() -> None:
    state = builder_of(life="paimon").freeze()
    origin = state.origin_of_kind(PaimonOrigin)
    assert state.snapshot is not None
    assert (state.snapshot.id, state.snapshot.base_manifest_list) == (9, "r")
    assert (state.schema.id, state.schema.names) == (5, ("day", "id"))
    assert state.schema.options == {"bucket": "4"}
    assert state.snapshot_ids == (9, 8, 6, 5)
    assert not state.reachable(4)
    assert origin.added_in == {5: 3, 6: 9, 8: 10, 9: 11}
    assert origin.branches == {"prod": {"schema/schema-0": "{}", "tag/tag-b": "{}"}}
    assert origin.schema(3).highest_field_id == 7
    assert (state.is_mirrored, state.origin.source) == (True, "/lake/t")


def test_an_expired_snapshot_of_paimons_goes_with_its_last_tag() -> None:
    builder = builder_of(9, "paimon")
    builder.commit(commit(builder.freeze().version + 1, TagDeleted(tag_name="kept")))
    assert builder.freeze().snapshot_ids == (6, 5)


def test_times_that_paimon_gave_are_kept_beside_those_of_their_commits() -> None:
    state = builder_of(life="paimon").freeze()
    assert state.snapshot is not None
    times = (state.schema.time_millis, state.snapshot.time_millis, state.effective_millis)
    assert times == (70, 80, 1200)
    assert [state.tags[each].create_time_millis for each in ("copied", "kept")] == [90, 60]


def test_a_table_from_delta_counts_as_the_ledgers_own_tables_do_and_names_its_owner() -> None:
    state = builder_of(life="delta").freeze()
    assert state.snapshot is not None
    assert (state.snapshot.id, state.schema.id, state.schema.names) == (1, 2, ("day", "id"))
    assert (state.is_mirrored, state.origin.source) == (True, "/lake/t")
    origin = state.origin_of_kind(DeltaOrigin)
    assert (origin.delta_version, origin.protocol) == (9, "{}")
    assert (origin.metadata, origin.sha256) == ('{"id":"v"}', "")
    assert origin.columns == {"id": 1, "day": 2}


def test_the_first_snapshot_of_a_paimon_table_follows_none() -> None:
    paimon = builder_of(life="paimon").freeze().origin_of_kind(PaimonOrigin)
    assert [paimon.has_parent(each) for each in (1, 2)] == [False, True]
