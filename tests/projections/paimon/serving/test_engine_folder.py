"""The folder of a served table: what engines do to it by themselves, and what is lost in it."""

from __future__ import annotations

from collections import Counter

import pytest

from ledger import AlreadyExistsError, InvalidInputError, NotFoundError
from ledger.model.snapshot import Tag
from ledger.table_handle import handle_of
from projections.paimon.materialise import project, rebuild, verify
from projections.paimon.served_files import write_files
from projections.paimon.served_folder import record_folder
from projections.paimon.served_tags import create_tag, delete_tag
from projections.paimon.snapshot_file import NO_WATERMARK, snapshot_from_json, tag_file
from tests.lakes import START_MILLIS, memory
from tests.projections.paimon.serving.engines import NAME, Engine, lake_at
from tests.projections.paimon.test_flat_costs import Counting

DAY = 86_400_000


def engine_with(snapshots: int) -> Engine:
    engine = Engine.of_new_table()
    for _ in range(snapshots):
        engine.commit()
    return engine


def tag_by_engine(engine: Engine, name: str, snapshot_id: int, retained: int | None = None) -> None:
    """Write a tag's file, as engines do without the catalog."""
    snapshot = snapshot_from_json(engine.files()[f"snapshot/snapshot-{snapshot_id}"])
    body = tag_file(snapshot, create_time_millis=START_MILLIS + 5, time_retained_millis=retained)
    engine.put(f"tag/tag-{name}", body)


def test_snapshots_that_engines_expired_are_expired_in_the_log() -> None:
    engine = engine_with(5)
    for number in (1, 2, 3):
        engine.remove(f"snapshot/snapshot-{number}")
    assert verify(engine.table).is_empty
    state = record_folder(engine.table)
    assert [*state.origin.snapshots] == [4, 5]  # type: ignore[union-attr]
    assert state.earliest_snapshot_id == 4
    assert record_folder(engine.table).version == state.version


def test_a_commit_records_what_expired_before_it_in_the_same_transaction() -> None:
    engine = engine_with(3)
    engine.remove("snapshot/snapshot-1")
    engine.commit()
    assert engine.table.state.version == 4
    assert [*engine.table.state.origin.snapshots] == [2, 3, 4]  # type: ignore[union-attr]


@pytest.mark.parametrize("expired", [1, 3, 30])
def test_a_commit_records_how_many_expired_and_which_tags_are_new(expired: int) -> None:
    engine = engine_with(40)
    for name in ("kept", "deleted", "moved"):
        create_tag(engine.table, name, snapshot_id=1)
    tag_by_engine(engine, "new", 1)
    tag_by_engine(engine, "moved", 40)
    engine.remove("tag/tag-deleted")
    for number in range(1, expired + 1):
        engine.remove(f"snapshot/snapshot-{number}")
    engine.commit()
    state = engine.table.state
    assert state.earliest_snapshot_id == expired + 1
    assert state.tags.keys() == {"kept", "new", "moved"}
    assert {state.tags[each].snapshot_id for each in ("kept", "new")} == {1}
    assert state.reachable(1)
    assert record_folder(engine.table).tags["moved"].snapshot_id == 40


def commit_cost(snapshots: int, tags: int) -> Counter[str]:
    """Return the requests of a commit of a job that expires one snapshot with each."""
    store = Counting(memory())
    engine = Engine.of_new_table(store)
    for _ in range(snapshots):
        engine.commit()
    for each in range(tags):
        create_tag(engine.table, f"t{each}", snapshot_id=snapshots)
    for number in (1, 2):
        engine.remove(f"snapshot/snapshot-{number}")
        store.asked.clear()
        engine.commit()
        asked = store.asked.copy()
    return asked


def test_a_commit_of_a_job_that_expires_reads_no_known_file() -> None:
    few, many = commit_cost(4, 2), commit_cost(24, 22)
    assert many["read"] == few["read"]
    # The names of the tags alone are listed, a thousand with each request.
    assert many["keys"] - few["keys"] == 20
    assert many["exists"] == few["exists"]


def test_tags_that_engines_made_moved_and_deleted_are_recorded() -> None:
    engine = engine_with(3)
    create_tag(engine.table, "by-server", snapshot_id=2)
    tag_by_engine(engine, "by-engine", 1, DAY)
    state = record_folder(engine.table)
    assert state.tags["by-engine"] == Tag("by-engine", 1, START_MILLIS + 5, DAY)
    tag_by_engine(engine, "by-engine", 3)
    engine.remove("tag/tag-by-server")
    state = record_folder(engine.table)
    assert {name: each.snapshot_id for name, each in state.tags.items()} == {"by-engine": 3}
    engine.put("tag/tag-damaged", b"no tag")
    assert record_folder(engine.table).version == state.version


def test_a_tag_of_a_snapshot_with_the_watermark_of_batch_jobs_is_recorded() -> None:
    engine = Engine.of_new_table()
    engine.commit(watermark=NO_WATERMARK)
    engine.put("tag/tag-early", engine.files()["snapshot/snapshot-1"])
    assert [*record_folder(engine.table).tags] == ["early"]


def test_an_expired_snapshot_that_only_a_tag_of_an_engine_keeps_can_be_read() -> None:
    engine = engine_with(3)
    first = engine.snapshots()[1]
    tag_by_engine(engine, "kept", 1)
    engine.remove("snapshot/snapshot-1")
    # A commit without a look at the tags, as of a server that had seen no tag, drops it.
    state = record_folder(engine.table)
    assert state.reachable(1)
    engine.remove("tag/tag-kept")
    assert not record_folder(engine.table).reachable(1)
    body = tag_file(snapshot_from_json(first), create_time_millis=None, time_retained_millis=None)
    engine.put("tag/tag-late", body)
    state = record_folder(engine.table)
    assert state.reachable(1)
    assert [*state.origin.snapshots] == [2, 3]  # type: ignore[union-attr]


def test_tags_are_created_and_deleted_once() -> None:
    engine = engine_with(2)
    create_tag(engine.table, "v1", time_retained_millis=DAY, commit_id="monday")
    create_tag(engine.table, "v1", time_retained_millis=DAY, commit_id="monday")
    assert engine.table.state.tags["v1"].snapshot_id == 2
    with pytest.raises(AlreadyExistsError, match="v1"):
        create_tag(engine.table, "v1", snapshot_id=1)
    with pytest.raises(NotFoundError, match="snapshot 7"):
        create_tag(engine.table, "v7", snapshot_id=7)
    with pytest.raises(InvalidInputError):
        create_tag(engine.table, "../v", snapshot_id=1)
    delete_tag(engine.table, "v1")
    assert engine.tags() == []
    with pytest.raises(NotFoundError, match="v1"):
        delete_tag(engine.table, "v1")


@pytest.mark.parametrize("path", ["snapshot/snapshot-2", "snapshot/snapshot-3", "schema/schema-0"])
@pytest.mark.parametrize("damage", ["lost", "other"])
def test_a_lost_or_damaged_file_is_found_and_restored(path: str, damage: str) -> None:
    engine = engine_with(3)
    before = engine.files()
    if damage == "lost":
        engine.remove(path)
    else:
        engine.put(path, b"{}")
    found = verify(engine.table)
    assert (*found.missing, *found.changed) == (path,)
    project(engine.table)
    assert engine.files() == before
    assert verify(engine.table).is_empty


def test_a_snapshot_of_another_writer_is_moved_out_of_the_way() -> None:
    engine = engine_with(2)
    engine.put("snapshot/snapshot-3", b"{}")
    assert verify(engine.table).changed == ("snapshot/snapshot-3",)
    rebuild(engine.table)
    assert engine.latest() == 2
    assert any("foreign" in each for each in engine.files())
    assert verify(engine.table).is_empty


def test_files_of_engines_in_their_own_spelling_stay() -> None:
    engine = engine_with(1)
    body = engine.files()["snapshot/snapshot-1"].replace(b" : ", b":")
    engine.put("snapshot/snapshot-1", body)
    assert verify(engine.table).is_empty
    fresh = engine.table.again()
    write_files(fresh, fresh.state)
    assert engine.files()["snapshot/snapshot-1"] == body


def test_the_files_exist_once_a_table_is_loaded_by_another_process() -> None:
    store = memory()
    engine = Engine.of_new_table(store)
    engine.commit()
    before = engine.files()
    for path in before:
        engine.remove(path)
    other = handle_of(lake_at(store)).table(NAME)
    write_files(other, other.state)
    assert engine.files() == before
