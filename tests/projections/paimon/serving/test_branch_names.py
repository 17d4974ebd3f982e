"""Names of branches that are given again: nothing of the former branch is left."""

from __future__ import annotations

import pytest

from ledger.events.schema import SetOption
from ledger.state.paimon_origin import PaimonOrigin
from ledger.stores import Store
from projections.paimon.branch_files import created_branch_event, dropped_branch_event
from projections.paimon.branch_lines import line_state
from projections.paimon.materialise import verify
from projections.paimon.served import alter_table
from projections.paimon.served_branches import create_branch, drop_branch, rename_branch
from projections.paimon.served_commits import commit_snapshot
from projections.paimon.served_consumers import consumers, reset_consumer
from projections.paimon.served_files import write_files
from projections.paimon.served_folder import list_tags, record_folder
from projections.paimon.served_tags import create_tag, delete_tag
from tests.lakes import memory
from tests.projections.paimon.serving.engines import Engine, lake_at, snapshot_json


def engine_with_tag(store: Store | None = None) -> Engine:
    """Return an engine of a table with two snapshots and a tag of the first one."""
    engine = Engine.of_new_table(store)
    first = engine.commit()
    engine.commit()
    create_tag(engine.table, "one", snapshot_id=first["id"])
    return engine


def commit_second(engine: Engine, branch: str) -> None:
    """Commit snapshot 2 to a branch that begins with the first one."""
    base = engine.snapshots()[1]["uuid"]
    sent = snapshot_json(2, commitUser="job", commitIdentifier=7, deltaManifestList="on-branch")
    assert commit_snapshot(engine.table, engine.request(sent, base), branch=branch)
    assert f"branch/branch-{branch}/snapshot/snapshot-2" in engine.files()


def test_a_commit_to_a_branch_of_a_former_name_is_another_one() -> None:
    engine = engine_with_tag()
    for _ in range(2):
        create_branch(engine.table, "b", tag="one")
        commit_second(engine, "b")
        drop_branch(engine.table, "b")
    create_branch(engine.table, "b", tag="one")
    rename_branch(engine.table, "b", "c")
    create_branch(engine.table, "b", tag="one")
    commit_second(engine, "b")
    commit_second(engine, "c")


def test_dropped_branches_leave_nothing_in_the_state() -> None:
    engine = engine_with_tag()
    before = engine.table.state.origin_of_kind(PaimonOrigin)
    for number in range(5):
        create_branch(engine.table, f"b{number}", tag="one")
        commit_second(engine, f"b{number}")
        rename_branch(engine.table, f"b{number}", "c")
        drop_branch(engine.table, "c")
    assert engine.table.state.origin_of_kind(PaimonOrigin) == before


def drop_and_die(engine: Engine, name: str) -> None:
    """Drop a branch as a server does that dies before it removes a file."""
    engine.table.commit_events(
        ["dropPaimonBranch", name], lambda state: (dropped_branch_event(state, name),)
    )


@pytest.mark.parametrize("tag", [None, "one"])
@pytest.mark.parametrize("is_known", [True, False])
def test_files_of_a_dropped_branch_are_not_those_of_a_new_one(
    tag: str | None,
    is_known: bool,  # noqa: FBT001 - a case
) -> None:
    store = memory()
    engine = engine_with_tag(store)
    other = Engine.of(lake_at(store))
    create_branch(engine.table, "b", tag="one")
    if is_known:
        write_files(other.table, other.table.state)
    create_tag(engine.table, "mine", branch="b")
    alter_table(engine.table, [SetOption("k", "old")], branch="b")
    reset_consumer(engine.table, engine.table.state, "job", 1, branch="b")
    delete_tag(engine.table, "one", branch="b")
    drop_and_die(engine, "b")
    alter_table(other.table, [SetOption("k", "new")])
    create_branch(other.table, "b", tag=tag)
    seen = Engine.of(lake_at(store))
    state = record_folder(seen.table, "b")
    assert verify(seen.table).is_empty
    assert sorted(state.tags) == ([] if tag is None else [tag])
    assert list_tags(seen.table, seen.table.state, "b") == sorted(state.tags)
    assert not list(consumers(seen.table, seen.table.state, "b"))
    assert state.schema.options.get("k") == ("new" if tag is None else None)


def test_a_new_branch_is_written_by_a_server_that_knows_the_dropped_one() -> None:
    store = memory()
    engine = engine_with_tag(store)
    create_branch(engine.table, "b")
    late = Engine.of(lake_at(store))
    write_files(late.table, late.table.state)
    drop_branch(engine.table, "b")
    # Created, and its server dies before it writes a file.
    table = Engine.of(lake_at(store)).table
    event = created_branch_event(table.state, "b", "one")
    table.commit_events(["createPaimonBranch"], lambda _: (event,))
    write_files(late.table, late.table.state)
    assert list_tags(late.table, late.table.state, "b") == ["one"]
    assert verify(late.table).is_empty


def test_a_tag_that_an_engine_deleted_from_a_branch_stays_deleted() -> None:
    store = memory()
    engine = engine_with_tag(store)
    create_branch(engine.table, "b", tag="one")
    engine.remove("branch/branch-b/tag/tag-one")
    other = Engine.of(lake_at(store))
    assert not record_folder(other.table, "b").tags
    assert not line_state(engine.table, engine.table.state, "b").tags


def test_consumers_go_with_a_renamed_branch() -> None:
    engine = engine_with_tag()
    create_branch(engine.table, "b", tag="one")
    reset_consumer(engine.table, engine.table.state, "job", 1, branch="b")
    rename_branch(engine.table, "b", "c")
    assert list(consumers(engine.table, engine.table.state, "c")) == [("job", 1)]
    assert not [each for each in engine.files() if each.startswith("branch/branch-b/")]
    drop_branch(engine.table, "c")
    assert not [each for each in engine.files() if each.startswith("branch/")]
    for name in ("b", "c"):
        create_branch(engine.table, name, tag="one")
        assert not list(consumers(engine.table, engine.table.state, name))
