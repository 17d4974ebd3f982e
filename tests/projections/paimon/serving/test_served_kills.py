"""Servers that die at any write: a change is whole or absent, and made once when sent again."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import pytest

from ledger import AlreadyExistsError, CommitUnknownError, NotFoundError
from ledger.events.schema import AddColumn
from ledger.model.instant import SnapshotInstant, TagInstant
from ledger.stores import MemoryStore
from ledger.table_handle import handle_of
from projections.paimon.materialise import verify
from projections.paimon.served import alter_table, create_table
from projections.paimon.served_files import write_files
from projections.paimon.served_folder import record_folder
from projections.paimon.served_rollback import rollback_schema, rollback_table
from projections.paimon.served_tags import create_tag, delete_tag
from tests.faults import Died, DiesAfter, LosesAnswers, LosesRequests
from tests.lakes import memory
from tests.projections.paimon.serving.engines import (
    NAME,
    SCHEMA,
    Engine,
    lake_at,
    snapshot_json,
)

MOST_WRITES = 60
"""More writes than any of the calls makes."""


def test_a_table_whose_creator_dies_is_whole_or_absent() -> None:
    for writes in range(MOST_WRITES):
        inner = memory()
        lake_at(inner)
        store = DiesAfter(inner, writes)
        with suppress(Died):
            create_table(handle_of(lake_at(store)), NAME, SCHEMA, commit_id="monday")
        table = create_table(handle_of(lake_at(inner)), NAME, SCHEMA, commit_id="monday")
        assert table.state.version == 0
        assert "schema/schema-0" in Engine(table).files()
        if not store.is_dead:
            return
    pytest.fail("the call makes more writes than the test knows")


def commit_next(engine: Engine) -> None:
    engine.send(snapshot_json(4), snapshot_json(3)["uuid"])


def roll_back(engine: Engine) -> None:
    rollback_table(engine.table, SnapshotInstant(2), commit_id="c")


def roll_back_to_tag(engine: Engine) -> None:
    rollback_table(engine.table, TagInstant("old"), commit_id="c")


def roll_back_schema(engine: Engine) -> None:
    rollback_schema(engine.table, 0, commit_id="c")


def alter(engine: Engine) -> None:
    alter_table(engine.table, [AddColumn(("b",), "INT")], commit_id="c")


def tag(engine: Engine) -> None:
    with suppress(AlreadyExistsError):
        create_tag(engine.table, "new", commit_id="c")


def delete(engine: Engine) -> None:
    with suppress(NotFoundError):
        delete_tag(engine.table, "old", commit_id="c")


def record(engine: Engine) -> None:
    record_folder(engine.table)


def prepared() -> MemoryStore:
    """Return a store with a table of three snapshots, of which the tagged first one expired."""
    store = memory()
    engine = Engine.of_new_table(store)
    for _ in range(3):
        engine.commit()
    create_tag(engine.table, "old", snapshot_id=1)
    alter_table(engine.table, [AddColumn(("a",), "INT")])
    engine.remove("snapshot/snapshot-1")
    return store


def consistent(engine: Engine) -> None:
    """Check that the folder says what the log says."""
    state = record_folder(engine.table)
    assert verify(engine.table).is_empty
    origin = state.origin
    assert [*engine.snapshots()] == sorted(origin.snapshots)  # type: ignore[union-attr]
    assert engine.tags() == sorted(state.tags)
    assert engine.latest() == state.last_snapshot_id
    schemas = [each for each in engine.files() if each.startswith("schema/schema-")]
    assert schemas == [f"schema/schema-{each}" for each in range(state.schema.id + 1)]


@pytest.mark.parametrize(
    "change",
    [commit_next, roll_back, roll_back_to_tag, roll_back_schema, alter, tag, delete, record],
)
def test_a_change_whose_server_dies_is_whole_or_absent_and_made_once(
    change: Callable[[Engine], None],
) -> None:
    whole = Engine.of(lake_at(prepared()))
    change(whole)
    wanted = whole.files()
    for writes in range(MOST_WRITES):
        inner = prepared()
        store = DiesAfter(inner, writes)
        with suppress(Died):
            change(Engine.of(lake_at(store)))
        # Another server loads the table, as an engine asks it to.
        loading = Engine.of(lake_at(inner))
        write_files(loading.table, loading.table.state)
        consistent(loading)
        again = Engine.of(lake_at(inner))
        change(again)
        consistent(again)
        assert again.table.state.schema == whole.table.state.schema
        assert again.files().keys() >= wanted.keys() - {"snapshot/EARLIEST"}
        assert again.snapshots() == whole.snapshots()
        if not store.is_dead:
            return
    pytest.fail("the call makes more writes than the test knows")


@pytest.mark.parametrize("fault", [LosesAnswers, LosesRequests])
def test_a_commit_without_an_answer_is_made_once(
    fault: type[LosesAnswers | LosesRequests],
) -> None:
    inner = memory()
    Engine.of_new_table(inner).commit()
    engine = Engine.of(lake_at(fault(inner, on=lambda key: "/log/" in key)))
    assert engine.sent is not None
    wanted = snapshot_json(2)
    if fault is LosesAnswers:
        assert engine.send(wanted, engine.sent["uuid"])
    else:
        with pytest.raises(CommitUnknownError):
            engine.send(wanted, engine.sent["uuid"])
    after = Engine.of(lake_at(inner))
    assert after.send(wanted, engine.sent["uuid"])
    assert after.table.state.version == 2
    assert after.snapshots()[2] == wanted


def test_a_snapshot_whose_file_cannot_be_written_is_written_when_sent_again() -> None:
    inner = memory()
    Engine.of_new_table(inner).commit()
    store = LosesRequests(inner, on=lambda key: key.endswith("snapshot-2"))
    engine = Engine.of(lake_at(store))
    assert engine.sent is not None
    with pytest.raises(OSError, match="snapshot-2"):
        engine.send(snapshot_json(2), engine.sent["uuid"])
    assert 2 not in engine.snapshots()
    after = Engine.of(lake_at(inner))
    assert after.send(snapshot_json(2), engine.sent["uuid"])
    assert after.snapshots()[2] == snapshot_json(2)
    assert after.table.state.version == 2
