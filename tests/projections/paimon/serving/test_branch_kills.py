"""Servers that die at any write of a change of branches: it is whole or absent."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import pytest

from ledger import AlreadyExistsError, NotFoundError
from ledger.events.schema import AddColumn
from ledger.model.instant import SnapshotInstant
from ledger.state.paimon_origin import PaimonOrigin
from ledger.stores import MemoryStore
from projections.paimon.branch_files import MAIN, branch_names, line_texts
from projections.paimon.branch_lines import line_state
from projections.paimon.served import alter_table
from projections.paimon.served_branches import (
    create_branch,
    drop_branch,
    forward_branch,
    rename_branch,
)
from projections.paimon.served_commits import commit_snapshot
from projections.paimon.served_files import line_path, write_files
from projections.paimon.served_folder import record_folder
from projections.paimon.served_rollback import rollback_table
from projections.paimon.served_tags import create_tag, delete_tag
from tests.faults import Died, DiesAfter
from tests.lakes import memory
from tests.projections.paimon.serving.engines import Engine, lake_at, snapshot_json

MOST_WRITES = 60
"""More writes than any of the calls makes."""


def commit_on(engine: Engine, branch: str, number: int) -> None:
    """Commit the snapshot of a number to a branch, based on the one before."""
    state = line_state(engine.table, engine.table.state, branch)
    before = state.snapshot
    if before is not None and before.id == number:
        return
    request = engine.request(
        snapshot_json(number, commitUser=branch),
        None if before is None else before.uuid,
    )
    assert commit_snapshot(engine.table, request, branch=branch)


def commit(engine: Engine) -> None:
    commit_on(engine, "b1", 4)


def create_from_tag(engine: Engine) -> None:
    create_branch(engine.table, "new", tag="v")


def create_empty(engine: Engine) -> None:
    create_branch(engine.table, "new")


def create_from_branch(engine: Engine) -> None:
    create_branch(engine.table, "new", tag="w", line="b1")


def rename(engine: Engine) -> None:
    rename_branch(engine.table, "b1", "new")


def drop(engine: Engine) -> None:
    drop_branch(engine.table, "b1")


def forward(engine: Engine) -> None:
    forward_branch(engine.table, "b1")


def forward_to_branch(engine: Engine) -> None:
    forward_branch(engine.table, "b1", line="b2")


def tag(engine: Engine) -> None:
    create_tag(engine.table, "x", branch="b1")


def untag(engine: Engine) -> None:
    delete_tag(engine.table, "w", branch="b1")


def roll_back(engine: Engine) -> None:
    rollback_table(engine.table, SnapshotInstant(2), branch="b1")


def alter(engine: Engine) -> None:
    with suppress(AlreadyExistsError):
        if "c" not in line_state(engine.table, engine.table.state, "b1").schema.names:
            alter_table(engine.table, [AddColumn(("c",), "INT")], branch="b1")


CHANGES = [
    *(commit, create_from_tag, create_empty, create_from_branch, rename, drop, forward),
    *(forward_to_branch, tag, untag, roll_back, alter),
]


def prepared() -> MemoryStore:
    """Return a store with a table of three snapshots and two branches."""
    store = memory()
    engine = Engine.of_new_table(store)
    for _ in range(3):
        engine.commit()
    create_tag(engine.table, "v", snapshot_id=2)
    create_tag(engine.table, "late", snapshot_id=3)
    create_branch(engine.table, "b1", tag="v")
    create_branch(engine.table, "b2")
    alter_table(engine.table, [AddColumn(("b",), "INT")], branch="b1")
    commit_on(engine, "b1", 3)
    create_tag(engine.table, "w", branch="b1")
    return store


def files(engine: Engine) -> dict[str, str]:
    """Return the texts of the files that readers take for those of a line."""
    found = {path: body.decode() for path, body in engine.files().items()}
    return {
        path: text
        for path, text in found.items()
        if path.split("/")[-1].startswith(f"{path.split('/')[-2]}-")
    }


def recorded(engine: Engine) -> dict[str, str]:
    """Return the same texts as the log has them."""
    state = engine.table.state
    return {
        line_path(line, path): text()
        for line in (MAIN, *branch_names(state))
        for path, text in line_texts(state, line).items()
    }


def assert_consistent(engine: Engine) -> None:
    """Check that the folder of each line says what the log says."""
    for line in (MAIN, *branch_names(engine.table.state)):
        record_folder(engine.table, line)
    there, known = files(engine), recorded(engine)
    lost = {each for each in there.keys() - known.keys() if each.startswith("branch/")}
    # Files of a branch that does not exist are no branch for engines, which ask the server.
    for each in lost:
        assert each.split("/")[1].removeprefix("branch-") not in engine.table.state.branches
        assert not any(path.startswith("/".join(each.split("/")[:2]) + "/") for path in known)
    assert {path: text for path, text in there.items() if path not in lost} == known


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_whose_server_dies_is_whole_or_absent(change: Callable[[Engine], None]) -> None:
    whole = Engine.of(lake_at(prepared()))
    change(whole)
    wanted = files(whole)
    assert_consistent(whole)
    for writes in range(MOST_WRITES):
        inner = prepared()
        store = DiesAfter(inner, writes)
        with suppress(Died):
            change(Engine.of(lake_at(store)))
        # Another server loads the table, as an engine asks it to.
        loading = Engine.of(lake_at(inner))
        write_files(loading.table, loading.table.state)
        assert_consistent(loading)
        again = Engine.of(lake_at(inner))
        with suppress(AlreadyExistsError, NotFoundError):
            change(again)
        assert_consistent(again)
        known = {**dict.fromkeys(wanted), **recorded(again)}
        assert known == wanted
        if not store.is_dead:
            return
    pytest.fail("the call makes more writes than the test knows")


def with_other_tags() -> MemoryStore:
    """Return a store as `prepared` does; a forward creates, replaces and removes tags."""
    store = prepared()
    engine = Engine.of(lake_at(store))
    create_tag(engine.table, "gone", snapshot_id=2)
    create_tag(engine.table, "moved", snapshot_id=1)
    create_tag(engine.table, "moved", snapshot_id=3, branch="b1")
    return store


def tags_of_main(engine: Engine) -> dict[str, str]:
    """Return the uuids of the snapshots that the tags of the main line name, by name."""
    state = record_folder(engine.table)
    snapshots = state.origin_of_kind(PaimonOrigin).readable_snapshots
    named = {name: str(snapshots[tag.snapshot_id].uuid) for name, tag in state.tags.items()}
    assert sorted(named) == engine.tags()
    return named


def test_no_tag_is_lost_when_a_server_dies_that_forwards_a_branch() -> None:
    engine = Engine.of(lake_at(with_other_tags()))
    before, snapshots = tags_of_main(engine), engine.table.state.origin_of_kind(PaimonOrigin)
    forward(engine)
    after = tags_of_main(engine)
    assert before.keys() - after.keys() == {"gone", "late"}
    assert before["moved"] != after["moved"]
    for writes in range(MOST_WRITES):
        inner = with_other_tags()
        store = DiesAfter(inner, writes)
        with suppress(Died):
            forward(Engine.of(lake_at(store)))
        loading = Engine.of(lake_at(inner))
        found = tags_of_main(loading)
        origin = loading.table.state.origin_of_kind(PaimonOrigin)
        if origin.snapshots == snapshots.snapshots:
            assert found == before
        else:
            assert found.items() >= after.items()
            # A tag that names a snapshot of both may be left, as if it was created afterwards.
            assert found.keys() - after.keys() <= {"gone"}
        if not store.is_dead:
            assert found == after
            return
    pytest.fail("the call makes more writes than the test knows")
