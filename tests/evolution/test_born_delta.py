"""What the fold makes of a table that was born in Delta, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from ledger.events import TableEvent
from ledger.events.delta_events import DeltaBirth, DeltaFollowed
from ledger.events.formats import needed_format
from ledger.events.iceberg_events import SchemaReplaced, SnapshotsRemoved
from ledger.events.schema_events import ColumnAdded
from ledger.events.table_events import SchemaRecord, TableCreated
from ledger.evolution.fold.table_builder import TableBuilder
from ledger.evolution.fold.table_record import TableStream
from ledger.log.codec import Codec, encode
from ledger.model.errors import InvalidChangeError
from tests.evolution import folds
from tests.evolution.born import DAY, ID, commit
from tests.evolution.folds import NAME

STREAM = TableStream()
GOLDEN = Path(__file__).parents[1] / "data/born/delta.jsonl"
CODEC: Codec[TableEvent] = Codec(TableEvent)
CREATED = TableCreated(
    identifier=NAME,
    table_id="t",
    path="db.db/t",
    schema=SchemaRecord((ID,), highest_field_id=1),
    born_in_delta=DeltaBirth(source="/lake/t", table_id="u"),
)
LIFE: tuple[tuple[TableEvent, ...], ...] = (
    (CREATED,),
    (
        DeltaFollowed(
            delta_version=4,
            timestamp_millis=90,
            protocol="{}",
            metadata='{"id":"u"}',
            columns={"id": 1},
        ),
    ),
    (
        ColumnAdded(("day",), "DATE", field_id=2),
        folds.snapshot(1, schema_id=1),
        DeltaFollowed(
            delta_version=5,
            timestamp_millis=95,
            sha256=64 * "a",
            metadata='{"id":"v"}',
            columns={"day": 2},
            txns={"job": 7},
        ),
    ),
    (SchemaReplaced((DAY, ID)), DeltaFollowed(delta_version=9, timestamp_millis=80)),
)


def born(until: int = len(LIFE)) -> TableBuilder:
    builder = TableBuilder()
    for version, events in enumerate(LIFE[:until]):
        builder.commit(commit(version, *events))
    return builder


def test_it_counts_as_the_ledgers_own_tables_do_and_says_whose_it_is() -> None:
    state = born().freeze()
    assert state.snapshot is not None
    assert (state.snapshot.id, state.schema.id, state.schema.names) == (1, 2, ("day", "id"))
    assert state.followed == "/lake/t"
    assert state.delta is not None
    assert (state.delta.delta_version, state.delta.protocol) == (9, "{}")
    assert (state.delta.metadata, state.delta.sha256) == ('{"id":"v"}', "")
    assert state.delta.columns == {"id": 1, "day": 2}


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
    for events in LIFE:
        assert needed_format(events) == 2
    with pytest.raises(InvalidChangeError, match="format 1 cannot hold TableCreated"):
        TableBuilder().commit(commit(0, CREATED, format_version=1))


@pytest.mark.parametrize(
    "event",
    [
        DeltaFollowed(delta_version=9, timestamp_millis=0),
        DeltaFollowed(delta_version=10, timestamp_millis=0, columns={"id": 3}),
        SnapshotsRemoved((1,)),
    ],
)
def test_what_contradicts_the_table_is_refused(event: TableEvent) -> None:
    with pytest.raises(InvalidChangeError):
        born().commit(commit(len(LIFE), event))


def test_another_table_follows_no_delta_log() -> None:
    builder = folds.grown()
    with pytest.raises(InvalidChangeError, match="not born in Delta"):
        builder.commit(commit(1, DeltaFollowed(delta_version=0, timestamp_millis=0)))
