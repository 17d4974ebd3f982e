"""Rollbacks of served tables: newer snapshots, tags and schemas go, in the log and the folder."""

from __future__ import annotations

import pytest

from ledger import InvalidChangeError, NotFoundError
from ledger.events.schema import AddColumn
from ledger.model.instant import SnapshotInstant, TagInstant, VersionInstant
from projections.paimon.served import alter_table
from projections.paimon.served_rollback import rollback_schema, rollback_table
from projections.paimon.served_tags import create_tag
from tests.lakes import memory
from tests.projections.paimon.serving.engines import Engine, lake_at


def engine_with(snapshots: int) -> Engine:
    engine = Engine.of_new_table()
    for _ in range(snapshots):
        engine.commit()
    return engine


def test_newer_snapshots_and_tags_go() -> None:
    engine = engine_with(4)
    for number in (1, 2, 3, 4):
        create_tag(engine.table, f"t{number}", snapshot_id=number)
    rollback_table(engine.table, SnapshotInstant(2), from_snapshot=4)
    assert [*engine.snapshots()] == [1, 2]
    assert engine.tags() == ["t1", "t2"] == sorted(engine.table.state.tags)
    assert engine.latest() == 2
    # The log keeps what went.
    before = engine.table.state_at(engine.table.state, VersionInstant(8))
    assert before.last_snapshot_id == 4
    assert sorted(before.tags) == ["t1", "t2", "t3", "t4"]


def test_ids_are_given_again_and_each_version_has_its_own_snapshot() -> None:
    engine = engine_with(2)
    lost = engine.snapshots()[2]
    rollback_table(engine.table, SnapshotInstant(1))
    engine.sent = engine.snapshots()[1]
    again = engine.commit(deltaManifestList="again")
    head = engine.table.state
    uuids = [
        getattr(engine.table.state_at(head, VersionInstant(each)).snapshot, "uuid", None)
        for each in range(head.version + 1)
    ]
    first = engine.snapshots()[1]["uuid"]
    assert uuids == [None, first, lost["uuid"], first, again["uuid"]]
    at_id = engine.table.state_at(head, SnapshotInstant(2)).snapshot
    assert at_id is not None
    assert at_id.uuid == again["uuid"]


def test_a_tagged_snapshot_that_expired_becomes_the_newest_again() -> None:
    engine = engine_with(4)
    tagged = engine.snapshots()[1]
    create_tag(engine.table, "old", snapshot_id=1)
    engine.remove("snapshot/snapshot-1")
    engine.remove("snapshot/snapshot-2")
    rollback_table(engine.table, TagInstant("old"))
    assert engine.snapshots() == {1: tagged}
    assert engine.latest() == 1
    assert engine.files()["snapshot/EARLIEST"] == b"1"
    engine.sent = tagged
    engine.commit(deltaManifestList="after")
    assert [*engine.snapshots()] == [1, 2]
    assert engine.tags() == ["old"]


def test_a_rollback_needs_the_snapshot_that_it_names() -> None:
    engine = engine_with(3)
    with pytest.raises(InvalidChangeError, match="Latest snapshot 3 is not 2"):
        rollback_table(engine.table, SnapshotInstant(1), from_snapshot=2)
    with pytest.raises(NotFoundError, match="snapshot 7"):
        rollback_table(engine.table, SnapshotInstant(7))
    with pytest.raises(NotFoundError, match="tag 'no'"):
        rollback_table(engine.table, TagInstant("no"))
    assert engine.table.state.version == 3
    rollback_table(engine.table, SnapshotInstant(3))
    assert engine.table.state.version == 3


def test_a_schema_is_rolled_back_and_its_id_given_again() -> None:
    engine = engine_with(1)
    alter_table(engine.table, [AddColumn(("a",), "INT")])
    alter_table(engine.table, [AddColumn(("b",), "INT")])
    rollback_schema(engine.table, 0)
    assert engine.table.state.schema.names == ("id", "day")
    assert [e for e in engine.files() if e.startswith("schema/")] == ["schema/schema-0"]
    alter_table(engine.table, [AddColumn(("c",), "DATE")])
    assert engine.table.state.schema.id == 1
    assert b'"c"' in engine.files()["schema/schema-1"]
    # Schema 1 is another one before the rollback than after it.
    then = engine.table.state_at(engine.table.state, VersionInstant(2))
    assert then.schema.names == ("id", "day", "a")


def test_a_snapshot_keeps_the_schema_that_it_was_written_with() -> None:
    engine = engine_with(1)
    alter_table(engine.table, [AddColumn(("a",), "INT")])
    engine.commit(schemaId=1)
    alter_table(engine.table, [AddColumn(("b",), "INT")])
    with pytest.raises(InvalidChangeError, match="schema 1 is still used"):
        rollback_schema(engine.table, 0)
    with pytest.raises(NotFoundError, match="schema 9"):
        rollback_schema(engine.table, 9)
    rollback_schema(engine.table, 1)
    assert engine.table.state.schema.names == ("id", "day", "a")


def test_a_rollback_is_made_once_by_its_key() -> None:
    engine = engine_with(2)
    rollback_table(engine.table, SnapshotInstant(1), commit_id="undo")
    engine.sent = engine.snapshots()[1]
    engine.commit(deltaManifestList="again")
    rollback_table(engine.table, SnapshotInstant(1), commit_id="undo")
    assert [*engine.snapshots()] == [1, 2]


def test_a_column_with_an_id_given_again_is_another_column() -> None:
    store = memory()
    engine = Engine.of_new_table(store)
    alter_table(engine.table, [AddColumn(("a",), "INT")])
    rollback_schema(engine.table, 0)
    alter_table(engine.table, [AddColumn(("b",), "STRING")])
    table = lake_at(store).table("a.t")
    assert table.state.schema.field("b").id == 2
    assert set(table.blame("b").to_pandas()["version"]) == {3}
