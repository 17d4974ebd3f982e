"""What the fold makes of a table that was born in Paimon, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from ledger.events import TableEvent
from ledger.events.formats import needed_format
from ledger.events.iceberg_events import (
    CurrentSchemaSet,
    SchemaNamed,
    SchemaReplaced,
    SchemasRemoved,
    SnapshotRefRemoved,
    SnapshotsRemoved,
    TableFactsSet,
)
from ledger.events.paimon_events import PaimonBirth, PaimonBranchUpdated
from ledger.events.schema_changes import SetOption
from ledger.events.schema_events import ColumnAdded
from ledger.events.snapshot_events import SnapshotsExpired, TagCreated, TagDeleted
from ledger.events.table_events import SchemaRecord, TableCreated
from ledger.evolution.fold.table_builder import TableBuilder
from ledger.evolution.fold.table_record import TableStream
from ledger.log.codec import Codec, encode
from ledger.model.errors import InvalidChangeError
from ledger.model.types.wire import FieldObject
from tests.evolution import folds
from tests.evolution.born import commit
from tests.evolution.folds import NAME, snapshot

STREAM = TableStream()
GOLDEN = Path(__file__).parents[1] / "data/born/paimon.jsonl"
CODEC: Codec[TableEvent] = Codec(TableEvent)
ID, DAY = FieldObject(0, "id", "BIGINT NOT NULL"), FieldObject(4, "day", "DATE")
CREATED = TableCreated(
    identifier=NAME,
    table_id="t",
    path="db.db/t",
    schema=SchemaRecord((ID,), highest_field_id=0, options={"bucket": "2"}),
    born_in_paimon=PaimonBirth(source="/lake/t", location="file:/lake/t", schema_id=2),
)
LIFE: tuple[tuple[TableEvent, ...], ...] = (
    (CREATED,),
    (snapshot(3, schema_id=2, base_manifest_list="m"),),
    (
        ColumnAdded(("day",), "DATE", field_id=4),
        SetOption("bucket", "3"),
        TableFactsSet(last_column_id=7),
        SchemaNamed(3),
    ),
    (snapshot(5, schema_id=3, base_manifest_list="n"), TagCreated(tag_name="kept", snapshot_id=3)),
    (SnapshotsExpired(earliest_snapshot_id=5),),
    (PaimonBranchUpdated(branch_name="dev", added={"schema/schema-0": "{}", "tag/tag-a": "{}"}),),
    (snapshot(6, schema_id=3, base_manifest_list="o"),),
    (CurrentSchemaSet(2), SnapshotsRemoved((6,)), SchemasRemoved(())),
    (SchemaReplaced((DAY, ID)), SchemaNamed(4)),
    (
        snapshot(6, schema_id=4, base_manifest_list="p"),
        PaimonBranchUpdated(branch_name="dev", removed=("tag/tag-a",)),
    ),
)


def born(until: int = len(LIFE)) -> TableBuilder:
    builder = TableBuilder()
    for version, events in enumerate(LIFE[:until]):
        builder.commit(commit(version, *events))
    return builder


def test_ids_are_the_sources_and_come_again_after_its_rollback() -> None:
    state = born().freeze()
    assert state.paimon is not None
    assert state.snapshot is not None
    assert (state.snapshot.id, state.snapshot.base_manifest_list) == (6, "p")
    assert (state.schema.id, state.schema.names) == (4, ("day", "id"))
    assert state.schema.options == {"bucket": "2"}
    assert state.snapshot_ids == (6, 5, 3)
    assert not state.reachable(4)
    assert state.paimon.added_in == {3: 1, 5: 3, 6: 9}
    assert state.paimon.branches == {"dev": {"schema/schema-0": "{}"}}
    assert state.paimon.schema(3).highest_field_id == 7
    assert state.followed == "/lake/t"


def test_an_expired_snapshot_goes_with_its_last_tag() -> None:
    builder = born()
    builder.commit(commit(len(LIFE), TagDeleted(tag_name="kept")))
    assert builder.freeze().snapshot_ids == (6, 5)


@pytest.mark.parametrize("cut", range(1, len(LIFE) + 1))
def test_a_checkpoint_and_the_tail_are_the_replay_of_all(cut: int) -> None:
    kept = STREAM.encode_state(born(cut).freeze())
    resumed = TableBuilder(STREAM.decode_state(kept))
    for version, events in list(enumerate(LIFE))[cut:]:
        resumed.commit(commit(version, *events))
    assert resumed.freeze() == born().freeze()
    assert STREAM.encode_state(born(cut).freeze()) == kept


def test_the_bytes_of_its_facts_are_frozen() -> None:
    lines = GOLDEN.read_bytes().splitlines(keepends=True)
    written = [commit(version, *events) for version, events in enumerate(LIFE)]
    assert [encode(each) for each in written] == lines
    assert [CODEC.decode(each, "file") for each in lines] == written


def test_its_facts_need_format_2() -> None:
    assert needed_format((CREATED,)) == needed_format(LIFE[5]) == 2
    with pytest.raises(InvalidChangeError, match="format 1 cannot hold TableCreated"):
        TableBuilder().commit(commit(0, CREATED, format_version=1))


@pytest.mark.parametrize(
    "event",
    [
        snapshot(6, schema_id=4),
        snapshot(7, schema_id=9),
        TagCreated(tag_name="new", snapshot_id=4),
        SchemaNamed(3),
        CurrentSchemaSet(9),
        SchemasRemoved((4,)),
        SnapshotsRemoved((7,)),
        SnapshotRefRemoved("dev"),
        PaimonBranchUpdated(branch_name="dev", removed=("tag/tag-b",)),
    ],
)
def test_what_contradicts_the_table_is_refused(event: TableEvent) -> None:
    with pytest.raises(InvalidChangeError):
        born().commit(commit(len(LIFE), event))


def test_another_table_has_no_branches_of_paimons() -> None:
    builder = folds.grown()
    with pytest.raises(InvalidChangeError, match="not born in Paimon"):
        builder.commit(commit(1, PaimonBranchUpdated(branch_name="dev", removed=("a",))))
