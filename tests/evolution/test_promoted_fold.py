"""The fold of a promoted Iceberg table: accepted and rejected events."""

from __future__ import annotations

import json

import pytest
from attrs import evolve
from msgspec import UNSET
from msgspec.structs import replace

from ledger import InvalidChangeError
from ledger.events import (
    DeltaFollowed,
    PaimonBranchUpdated,
    SchemaNamed,
    SnapshotsRemoved,
    TableEvent,
    TablePromoted,
)
from ledger.events import snapshots as n
from ledger.events.imported import ImportedIcebergTable
from ledger.state import DeltaOrigin, IcebergOrigin, TableBuilder
from tests.evolution import folds
from tests.evolution.born import CREATED, FIRST, OWN, PROMOTED, builder_of, commit, own


def grown(until: int | None = None) -> TableBuilder:
    """The table after a number of its commits."""
    return builder_of(None if until is None else until - 1, "promoted")


def test_the_ledger_owns_it_and_its_snapshots_are_the_next_ones_of_main() -> None:
    state = grown(5).freeze()
    assert (state.is_mirrored, state.is_promoted, state.lists_files) == (False, True, True)
    assert state.origin.source == "file:/lake/t"
    origin = state.origin_of_kind(IcebergOrigin)
    assert state.snapshot is not None
    assert (state.snapshot.id, state.schema.id, state.snapshot.operation) == (
        OWN + 2,
        1,
        "overwrite",
    )
    parents = {each.snapshot_id: each.parent_snapshot_id for each in origin.snapshots.values()}
    assert parents == {FIRST: None, OWN: FIRST, OWN + 1: OWN, OWN + 2: OWN + 1}
    assert [each.sequence_number for each in origin.snapshots.values()] == [1, 2, 3, 4]
    assert [each.snapshot_id for each in origin.snapshot_log] == [OWN, OWN + 1, OWN + 2]
    assert {name: each.snapshot_id for name, each in state.tags.items()} == {"v1": OWN + 1}
    assert not grown(2).freeze().lists_files


def test_the_log_of_current_snapshots_begins_after_what_went() -> None:
    state = grown(6).freeze()
    origin = state.origin_of_kind(IcebergOrigin)
    assert [each.snapshot_id for each in origin.snapshot_log] == [OWN + 2]
    assert state.tags == {}


def test_rows_get_ids_in_format_version_3() -> None:
    origin = grown().freeze().origin_of_kind(IcebergOrigin)
    newest = origin.snapshots[OWN + 3]
    assert (newest.first_row_id, newest.added_rows, origin.next_row_id) == (4, 10, 14)


REFUSED: dict[str, tuple[int, tuple[TableEvent, ...]]] = {
    "twice": (3, (PROMOTED,)),
    "an id that is taken": (2, (replace(PROMOTED, last_snapshot_id=-1),)),
    "no last id": (2, (TablePromoted(source="s"),)),
    "a snapshot before it": (2, (own(OWN),)),
    "a tag before it": (2, (n.TagCreated(tag_name="a", snapshot_id=FIRST),)),
    "a gap": (3, (own(OWN + 2),)),
    "an older id": (3, (own(OWN),)),
    "another schema": (3, (own(OWN + 1, schema_id=7),)),
    "an expiry by a bound": (3, (n.SnapshotsExpired(earliest_snapshot_id=OWN),)),
    "a tag that is there": (4, (n.TagCreated(tag_name="v1", snapshot_id=OWN),)),
    "a tag that is not": (4, (n.TagReplaced(tag_name="v2", snapshot_id=OWN),)),
    "a branch as a tag": (4, (n.TagReplaced(tag_name="main", snapshot_id=OWN),)),
    "a tag of nothing": (4, (n.TagCreated(tag_name="v2", snapshot_id=1),)),
    "row ids twice": (7, (own(OWN + 3, schema_id=1, next_row_id=3),)),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_contradicts_it_is_refused(name: str) -> None:
    until, events = REFUSED[name]
    with pytest.raises(InvalidChangeError):
        grown(until).commit(commit(until, *events))


def test_nothing_but_a_table_from_iceberg_has_its_summary_and_nobody_else_is_promoted() -> None:
    builder = folds.grown()
    with pytest.raises(InvalidChangeError, match="Iceberg's summary"):
        builder.commit(commit(1, own(1)))
    with pytest.raises(InvalidChangeError, match="follows no source"):
        folds.grown().commit(commit(1, PROMOTED))


def test_only_a_table_from_paimon_has_times_of_its_engines() -> None:
    with pytest.raises(InvalidChangeError, match="time of Paimon's"):
        folds.grown().commit(commit(1, replace(own(1), summary=UNSET, time_millis=5)))
    with pytest.raises(InvalidChangeError, match="time of Paimon's"):
        grown(3).commit(commit(3, replace(own(OWN + 1), time_millis=5)))
    with pytest.raises(InvalidChangeError, match="time of Paimon's"):
        grown(2).commit(commit(2, SchemaNamed(schema_id=7, time_millis=5)))


def test_a_table_from_delta_follows_no_more_once_it_is_promoted() -> None:
    builder = builder_of(life="delta")
    there = builder.freeze().version + 1
    builder.commit(commit(there, TablePromoted(source="/lake/t")))
    state = builder.freeze()
    assert (state.is_mirrored, state.is_promoted, state.lists_files) == (False, True, True)
    assert state.origin.source == "/lake/t"
    origin = state.origin_of_kind(DeltaOrigin)
    assert (origin.promoted_in, origin.source_schema_id) == (there, state.schema.id)
    with pytest.raises(InvalidChangeError, match="follows /lake/t no more"):
        builder.commit(commit(there + 1, DeltaFollowed(delta_version=11, timestamp_millis=99)))


@pytest.mark.parametrize(
    "event",
    [
        PaimonBranchUpdated(branch_name="dev", removed=("tag/tag-a",)),
        SchemaNamed(schema_id=9),
        SnapshotsRemoved(snapshot_ids=(1,)),
    ],
)
def test_a_table_from_paimon_follows_no_more_once_it_is_promoted(event: TableEvent) -> None:
    builder = builder_of(life="paimon")
    there = builder.freeze().version + 1
    builder.commit(commit(there, TablePromoted(source="/lake/t")))
    with pytest.raises(InvalidChangeError, match="follows /lake/t no more"):
        builder.commit(commit(there + 1, event))


def test_columns_stay_where_the_ledger_cannot_say_the_schemas_types() -> None:
    said = {"type": "struct", "schema-id": 0, "fields": [{"type": "fixed[16]"}]}
    assert isinstance(CREATED.origin, ImportedIcebergTable)
    created = replace(CREATED, origin=replace(CREATED.origin, text=json.dumps(said)))
    builder = TableBuilder()
    builder.commit(commit(0, created))
    builder.commit(commit(1, PROMOTED))
    state = builder.freeze()
    origin = state.origin_of_kind(IcebergOrigin)

    owned = state.schema.with_options({"owner": "ann"})
    assert origin.schema_change_effects(state.schema, owned).events == ()
    less = evolve(state.schema, fields=())
    with pytest.raises(InvalidChangeError, match=r"such as fixed\[16\], and its columns cannot"):
        origin.schema_change_effects(state.schema, less)
