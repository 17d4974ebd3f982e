"""Laws of imported tables of every format."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_args

import pytest

from ledger import DamagedLogError, InvalidChangeError, UpgradeRequiredError
from ledger.events import (
    DeltaFollowed,
    IcebergEvent,
    PaimonBranchUpdated,
    PartitionsUpdated,
    TableEvent,
    TablePromoted,
)
from ledger.events import imported as e
from ledger.events import snapshots as n
from ledger.log import Codec, encode
from ledger.state import TableBuilder, TableStream
from tests.evolution import folds
from tests.evolution.born import (
    DAY,
    FIRST,
    LIVES,
    SECOND,
    builder_of,
    commit,
    commits,
    ref,
    snapshot,
)

STREAM = TableStream()
CODEC: Codec[TableEvent] = Codec(TableEvent)
GOLDEN = Path(__file__).parents[1] / "data/born"
FILES = {
    "iceberg": "commits.jsonl",
    "paimon": "paimon.jsonl",
    "delta": "delta.jsonl",
    "promoted": "promoted.jsonl",
}
OWN: dict[str, tuple[type, ...]] = {
    "iceberg": get_args(IcebergEvent),
    "paimon": (PaimonBranchUpdated, PartitionsUpdated),
    "delta": (DeltaFollowed,),
    "promoted": (TablePromoted,),
}
"""The facts that only such tables have; Paimon's and Delta's have some of Iceberg's, too."""

each_life = pytest.mark.parametrize("life", LIVES)
each_commit = pytest.mark.parametrize(
    ("life", "cut"), [(life, cut) for life in LIVES for cut in range(len(LIVES[life]))]
)


@each_life
def test_its_life_here_has_every_kind_of_fact_that_only_such_tables_have(life: str) -> None:
    assert set(OWN[life]) <= {type(each) for events in LIVES[life] for each in events}


@each_commit
def test_a_checkpoint_and_the_tail_are_the_replay_of_all(life: str, cut: int) -> None:
    kept = STREAM.encode_state(builder_of(cut, life).freeze())
    assert STREAM.encode_state(builder_of(cut, life).freeze()) == kept
    resumed = TableBuilder(STREAM.decode_state(kept))
    for each in commits(life)[cut + 1 :]:
        resumed.commit(each)
    whole = builder_of(life=life).freeze()
    assert resumed.freeze() == whole
    assert STREAM.encode_state(resumed.freeze()) == STREAM.encode_state(whole)


@each_commit
def test_a_frozen_state_does_not_change_when_its_builder_goes_on(life: str, cut: int) -> None:
    builder = builder_of(cut, life)
    before = builder.freeze()
    kept = STREAM.encode_state(before)
    for each in commits(life)[cut + 1 :]:
        builder.commit(each)
    assert STREAM.encode_state(before) == kept


@each_life
def test_the_bytes_of_its_facts_are_frozen(life: str) -> None:
    lines = (GOLDEN / FILES[life]).read_bytes().splitlines(keepends=True)
    assert [encode(each) for each in commits(life)] == lines
    assert [CODEC.decode(each, "file") for each in lines] == commits(life)


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


@each_life
@pytest.mark.parametrize("change", [drop, exchange, more])
def test_every_fault_in_a_file_is_reported_as_damage_or_as_newer(
    life: str, change: Callable[[Any, Any], None]
) -> None:
    for line in (GOLDEN / FILES[life]).read_bytes().splitlines():
        for path in places(json.loads(line)):
            try:
                CODEC.decode(changed(line, path, change), "file")
            except (DamagedLogError, UpgradeRequiredError):
                continue
            # What may be absent, and what knows keys of its own: types, and texts by name.
            named = {"fields", "schema", "columns", "txns"}
            assert change is drop or named & set(path), (change, path)


def own_facts(life: str) -> Iterator[TableEvent]:
    for events in LIVES[life]:
        yield from (each for each in events if isinstance(each, OWN[life]))


@each_life
def test_the_ledgers_own_tables_hold_none_of_them(life: str) -> None:
    kind = f"imported from {life.title()}"
    said = "follows no source" if life == "promoted" else kind
    for each in own_facts(life):
        # A ref of the ledger's own tables is a branch, and says what it begins with.
        is_ref = isinstance(each, e.SnapshotRefSet | e.SnapshotRefRemoved)
        message = "is not a branch|does not exist" if is_ref else said
        if isinstance(each, e.StatisticsSet):
            # They may have those, of snapshots of theirs.
            message = "the newest is 0"
        with pytest.raises(InvalidChangeError, match=message):
            folds.grown().commit(commit(1, each))


WRONG: dict[tuple[str, str], tuple[TableEvent, ...]] = {
    ("iceberg", "a snapshot twice"): (snapshot(FIRST, 9),),
    ("iceberg", "a ref to nothing"): (e.SnapshotRefSet("x", ref(1)),),
    ("iceberg", "main as a tag"): (e.SnapshotRefSet("main", ref(FIRST, type="tag")),),
    ("iceberg", "no such ref"): (e.SnapshotRefRemoved("x"),),
    ("iceberg", "no such snapshot"): (e.SnapshotsRemoved((1,)),),
    ("iceberg", "metadata of no snapshot"): (e.SnapshotReplaced(snapshot(1, 9).snapshot),),
    ("iceberg", "a schema with other columns"): (
        e.SchemaAdded(e.IcebergSchema(schema_id=0, fields=(DAY,))),
    ),
    ("iceberg", "columns under another's id"): (e.SchemaReplaced((DAY,)), e.SchemaNamed(0)),
    ("iceberg", "no such schema"): (e.CurrentSchemaSet(44),),
    ("iceberg", "the current schema goes"): (e.SchemasRemoved((1,)),),
    ("iceberg", "a schema goes that is not there"): (e.SchemasRemoved((44,)),),
    ("iceberg", "the default spec goes"): (e.LayoutsRemoved(spec_ids=(4,)),),
    ("iceberg", "the default order goes"): (e.LayoutsRemoved(order_ids=(3,)),),
    ("iceberg", "no such statistics"): (e.StatisticsRemoved(snapshot_ids=(SECOND,)),),
    ("iceberg", "no such key"): (e.EncryptionKeyRemoved("k"),),
    ("iceberg", "more of a log than there is"): (e.SnapshotLogUpdated(dropped=2),),
    ("iceberg", "an older format version"): (e.TableFactsSet(format_version=1),),
    ("iceberg", "a snapshot of the ledger's own"): (folds.snapshot(1),),
    ("iceberg", "a tag of the ledger's own"): (n.TagCreated(tag_name="t", snapshot_id=FIRST),),
    ("iceberg", "an expiry of the ledger's own"): (n.SnapshotsExpired(earliest_snapshot_id=1),),
    ("paimon", "a snapshot twice"): (folds.snapshot(6, schema_id=4),),
    ("paimon", "a snapshot of no schema"): (folds.snapshot(7, schema_id=9),),
    ("paimon", "a tag of nothing"): (n.TagCreated(tag_name="new", snapshot_id=4),),
    ("paimon", "a schema's id again"): (e.SchemaNamed(3),),
    ("paimon", "no such schema"): (e.CurrentSchemaSet(9),),
    ("paimon", "the current schema goes"): (e.SchemasRemoved((5,)),),
    ("paimon", "facts that are Iceberg's"): (e.TableFactsSet(format_version=3),),
    ("paimon", "no such snapshot"): (e.SnapshotsRemoved((7,)),),
    ("paimon", "no such ref"): (e.SnapshotRefRemoved("dev"),),
    ("paimon", "no such file of a branch"): (
        PaimonBranchUpdated(branch_name="prod", removed=("tag/tag-a",)),
    ),
    ("paimon", "no such branch to rename"): (
        PaimonBranchUpdated(branch_name="new", renamed_from="dev"),
    ),
    ("paimon", "a branch renamed to itself"): (
        PaimonBranchUpdated(branch_name="prod", renamed_from="prod"),
    ),
    ("paimon", "partitions of an earlier snapshot"): (PartitionsUpdated(snapshot_id=6),),
    ("paimon", "partitions of no branch"): (PartitionsUpdated(branch_name="dev"),),
    ("delta", "a version again"): (DeltaFollowed(delta_version=9, timestamp_millis=0),),
    ("delta", "another id for a column"): (
        DeltaFollowed(delta_version=10, timestamp_millis=0, columns={"id": 3}),
    ),
    ("delta", "no such snapshot"): (e.SnapshotsRemoved((1,)),),
}
BEFORE = {"iceberg": 3, "paimon": None, "delta": None}
"""The commit after which it comes; the last where none is named."""


@pytest.mark.parametrize(("life", "case"), WRONG)
def test_what_contradicts_the_table_is_refused(life: str, case: str) -> None:
    builder = builder_of(BEFORE[life], life)
    there = builder.freeze().version + 1
    with pytest.raises(InvalidChangeError):
        builder.commit(commit(there, *WRONG[life, case]))
