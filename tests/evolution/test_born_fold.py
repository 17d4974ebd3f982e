"""What the fold makes of a table that was born in Iceberg, and what it refuses."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_args

import pytest

from ledger.events import TableEvent
from ledger.events import iceberg_events as e
from ledger.events import snapshot_events as n
from ledger.events.formats import needed_format
from ledger.events.iceberg_events import IcebergEvent
from ledger.events.schema_changes import SetOption
from ledger.evolution.fold.table_builder import TableBuilder
from ledger.evolution.fold.table_record import TableStream
from ledger.log.codec import Codec, encode
from ledger.model.errors import DamagedLogError, InvalidChangeError, UpgradeRequiredError
from tests.evolution import folds
from tests.evolution.born import (
    CREATED,
    DAY,
    FIRST,
    ID,
    LIFE,
    SECOND,
    STAGED,
    born,
    commit,
    commits,
    ref,
    snapshot,
)

STREAM = TableStream()


def test_the_life_has_every_kind_of_fact_that_only_such_tables_have() -> None:
    there = {type(each) for events in LIFE for each in events}
    assert set(get_args(IcebergEvent)) <= there


def test_ids_and_numbers_are_the_sources() -> None:
    state = born(3).freeze()
    assert state.born is not None
    assert state.snapshot is not None
    assert (state.snapshot.id, state.schema.id, state.born.last_sequence_number) == (SECOND, 1, 2)
    assert list(state.born.snapshots) == [FIRST, SECOND]
    assert (state.default_spec_id, state.default_order_id, state.born.next_row_id) == (4, 3, 4)
    assert [(each.name, each.snapshot_id) for each in state.tags.values()] == [("v1", FIRST)]
    assert state.snapshot_ids == (SECOND, FIRST)
    assert state.born.added_in == {FIRST: 1, SECOND: 3}


def test_totals_are_those_of_the_summary_and_unknown_where_it_has_none() -> None:
    assert born(1).freeze().totals.record_count == 3
    assert born(1).freeze().totals.file_count == -1
    assert born(3).freeze().totals.record_count == -1


def test_a_ref_points_back_and_a_schema_comes_back_with_its_dropped_ids() -> None:
    state = born(5).freeze()
    assert state.snapshot is not None
    assert (state.snapshot.id, state.schema.id, state.schema.names) == (FIRST, 0, ("id",))
    assert state.schema.highest_field_id == 2
    assert state.born is not None
    assert STAGED in state.born.snapshots


def test_an_option_alone_makes_no_schema_id() -> None:
    builder = born(1)
    builder.commit(commit(2, SetOption("owner", "bob")))
    assert builder.freeze().schema.id == 0
    assert builder.freeze().schema.options == {"owner": "bob"}


def test_what_was_removed_is_gone_with_all_that_hangs_on_it() -> None:
    state = born().freeze()
    assert state.born is not None
    assert set(state.born.snapshots) == {FIRST, STAGED}
    assert (state.born.statistics, state.partition_statistics, state.tags) == ({}, {}, {})
    assert set(state.born.schemas) == {0, 1, 10}
    assert [each.spec_id for each in state.specs] == [4]
    assert (state.last_partition_id, state.schema.highest_field_id) == (1004, 7)
    assert state.schema.names == ("day", "id")
    assert (state.born.format_version, state.born.last_updated_millis) == (3, 77)
    assert not state.reachable(SECOND)


@pytest.mark.parametrize("cut", range(len(LIFE) + 1))
def test_a_checkpoint_and_the_tail_are_the_replay_of_all(cut: int) -> None:
    kept = STREAM.encode_state(born(cut).freeze())
    resumed = TableBuilder(STREAM.decode_state(kept))
    for each in commits()[cut + 1 :]:
        resumed.commit(each)
    whole = born().freeze()
    assert resumed.freeze() == whole
    assert STREAM.encode_state(resumed.freeze()) == STREAM.encode_state(whole)


def test_a_frozen_state_does_not_change_when_its_builder_goes_on() -> None:
    builder = born(4)
    before = builder.freeze()
    kept = STREAM.encode_state(before)
    for each in commits()[5:]:
        builder.commit(each)
    assert STREAM.encode_state(before) == kept


GOLDEN = Path(__file__).parents[1] / "data/born/commits.jsonl"
CODEC: Codec[TableEvent] = Codec(TableEvent)


def test_the_bytes_of_every_kind_of_fact_are_frozen() -> None:
    lines = GOLDEN.read_bytes().splitlines(keepends=True)
    assert [encode(each) for each in commits()] == lines
    assert [encode(CODEC.decode(each, "file")) for each in lines] == lines


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place of a decoded file, but the file itself."""
    if path:
        yield path
    inner: Any = enumerate(value) if isinstance(value, list) else ()
    for key, each in value.items() if isinstance(value, dict) else inner:
        yield from places(each, (*path, key))


def changed(body: bytes, path: tuple[Any, ...], change: Callable[[Any, Any], None]) -> bytes:
    """A file after a change of the object or list that holds a place."""
    value = around = json.loads(body)
    for each in path[:-1]:
        around = around[each]
    change(around, path[-1])
    return json.dumps(value).encode()


def drop(around: Any, key: Any) -> None:
    del around[key]


def exchange(around: Any, key: Any) -> None:
    around[key] = [None] if not isinstance(around[key], list) else "x"


def more(around: Any, key: Any) -> None:
    if isinstance(around[key], dict):
        around[key]["unheardOf"] = 1
    else:
        around[key] = {"unheardOf": 1}


@pytest.mark.parametrize("change", [drop, exchange, more])
def test_whatever_is_wrong_in_a_file_is_told_as_damage_or_as_newer(
    change: Callable[[Any, Any], None],
) -> None:
    for line in GOLDEN.read_bytes().splitlines():
        for path in places(json.loads(line)):
            try:
                CODEC.decode(changed(line, path, change), "file")
            except (DamagedLogError, UpgradeRequiredError):
                continue
            # What may be absent, and what knows keys of its own: types.
            assert change is drop or {"fields", "schema"} & set(path), (change, path)


def test_every_commit_is_read_as_it_was_written() -> None:
    for each in commits():
        assert needed_format(each.transactions[0].events) == 2
        assert CODEC.decode(encode(each), "file") == each


WRONG: dict[str, tuple[TableEvent, ...]] = {
    "a snapshot twice": (snapshot(FIRST, 9),),
    "a ref to nothing": (e.SnapshotRefSet("x", ref(1)),),
    "main as a tag": (e.SnapshotRefSet("main", ref(FIRST, ref_type="tag")),),
    "no such ref": (e.SnapshotRefRemoved("x"),),
    "no such snapshot": (e.SnapshotsRemoved((1,)),),
    "a schema with other columns": (e.SchemaAdded(e.IcebergSchema(schema_id=0, fields=(DAY,))),),
    "columns under another's id": (e.SchemaReplaced((DAY,)), e.SchemaNamed(0)),
    "no such schema": (e.CurrentSchemaSet(44),),
    "the current schema goes": (e.SchemasRemoved((1,)),),
    "a schema goes that is not there": (e.SchemasRemoved((44,)),),
    "the default spec goes": (e.LayoutsRemoved(spec_ids=(4,)),),
    "the default order goes": (e.LayoutsRemoved(order_ids=(3,)),),
    "no such statistics": (e.StatisticsRemoved(snapshot_ids=(SECOND,)),),
    "no such key": (e.EncryptionKeyRemoved("k"),),
    "more of a log than there is": (e.SnapshotLogUpdated(dropped=2),),
    "an older format version": (e.TableFactsSet(format_version=1),),
    "a snapshot of the ledger's own": (folds.snapshot(1),),
    "a tag of the ledger's own": (n.TagCreated(tag_name="t", snapshot_id=FIRST),),
    "an expiry of the ledger's own": (n.SnapshotsExpired(earliest_snapshot_id=1),),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_contradicts_the_table_is_refused(case: str) -> None:
    with pytest.raises(InvalidChangeError):
        born(3).commit(commit(4, *WRONG[case]))


def test_the_ledgers_own_tables_hold_none_of_it() -> None:
    for events in LIFE:
        for each in events:
            if isinstance(each, get_args(IcebergEvent)):
                builder = folds.grown()
                with pytest.raises(InvalidChangeError, match="not born in Iceberg"):
                    builder.commit(commit(1, each))


def test_format_1_holds_none_of_it() -> None:
    with pytest.raises(InvalidChangeError, match="format 1 cannot hold TableCreated"):
        TableBuilder().commit(commit(0, CREATED, format_version=1))
    builder = TableBuilder()
    builder.commit(commit(0, CREATED))
    with pytest.raises(InvalidChangeError, match="format 1 cannot hold SnapshotAdded"):
        builder.commit(commit(1, snapshot(1, 1), format_version=1))


def test_the_first_schema_has_the_sources_id() -> None:
    state = born(0).freeze()
    assert (state.schema.id, state.schema.names, state.snapshot) == (0, ("id",), None)
    assert state.born is not None
    assert state.born.schemas[0].fields == (ID,)
