"""Kills, races, and files of others: what a reader finds, and where it ends."""

from __future__ import annotations

import random
from functools import partial

import pytest

from ledger import FileChange, Schema, SetOption, SnapshotPlan, StoreError, Table, UnsupportedError
from ledger.stores import Store
from projections.iceberg import position
from projections.iceberg.materialise import advance, expected, project, rebuild, verify
from projections.materialisation import Difference
from tests.faults import Died, DiesAfter
from tests.lakes import lake_on, memory, orders
from tests.projections.iceberg.projecting import Left, go_on, is_consistent, random_table
from tests.projections.paimon.test_materialise_faults import Saved, Unlocked, through


def is_position(key: str) -> bool:
    return key.endswith("/projections/iceberg.json")


def is_file(key: str) -> bool:
    return not is_position(key)


def halfway(seed: int) -> tuple[Store, Table]:
    """Return a table whose newer half, which expires some of the older, is yet to project."""
    store = memory()
    table = random_table(seed, store, 14)
    project(table)
    go_on(table, random.Random(seed), 16)
    return store, table


def assert_exact(table: Table) -> None:
    assert Left.by(table).newest(table) == expected(table)
    assert verify(table).is_empty


def kill(store: Store, writes: int) -> bool:
    """Project with a process that is killed before a write; return whether it was."""
    try:
        project(through(DiesAfter(store, writes)))
    except Died:
        return True
    return False


@pytest.mark.parametrize("seed", range(3))
def test_readers_see_whole_tables_after_a_kill_before_any_write(seed: int) -> None:
    store, table = halfway(seed)
    begun, wanted = Saved(store), expected(table)
    for writes in range(1000):
        table = begun.restore()
        killed = kill(store, writes)
        assert is_consistent(Left.by(table)), writes
        project(table)
        assert Left.by(table).newest(table) == wanted
        if not killed:
            assert writes > 10
            return
    pytest.fail("it never came to an end")


@pytest.mark.parametrize("seed", range(6))
def test_a_projector_that_is_killed_again_and_again_gets_there(seed: int) -> None:
    store, table = halfway(seed)
    writes = 0
    while kill(store, writes):
        assert is_consistent(Left.by(table))
        writes += 1

    assert_exact(table)


@pytest.mark.parametrize("seed", range(6))
def test_what_a_killed_run_left_goes_when_it_expired_meanwhile(seed: int) -> None:
    rng = random.Random(seed)
    store, table = halfway(seed)
    for _ in range(10):
        kill(store, rng.randrange(30))
        go_on(table, rng, 6)

    project(table)
    assert_exact(table)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("inner_is_older", [False, True])
def test_two_projectors_at_once_do_no_harm(seed: int, *, inner_is_older: bool) -> None:
    store, table = halfway(seed)
    begun, wanted = Saved(store), expected(table)
    for nth in range(1, 1000):
        table = begun.restore()
        start = position.load(store, table.log.layout).version
        older = (start + table.state.version + 1) // 2
        inner, outer = (older, None) if inner_is_older else (None, older)
        racing = Unlocked(store, nth, partial(advance, table, version=inner), is_file)
        advance(through(racing), version=outer)
        assert is_consistent(Left.by(table)), nth
        project(table)
        assert Left.by(table).newest(table) == wanted
        if racing.writes_left > 0:
            assert nth > 5
            return
    pytest.fail("it never came to an end")


@pytest.mark.parametrize("seed", range(3))
def test_one_that_saves_its_position_over_anothers_is_healed_by_rebuilding(seed: int) -> None:
    store, table = halfway(seed)
    older = (position.load(store, table.log.layout).version + table.state.version + 1) // 2
    racing = Unlocked(store, 1, partial(advance, table, version=older), is_position)

    project(through(racing))
    assert racing.writes_left <= 0

    rebuild(table)
    assert_exact(table)


@pytest.mark.parametrize("kind", ["-m0.avro", "/snap-", "metadata/0", "metadata/v"])
def test_a_foreign_file_in_the_way_is_reported_and_left_alone(kind: str) -> None:
    store = memory()
    table = random_table(1, store)
    path = next(path for path in expected(table) if kind in path and "hint" not in path)
    key = f"{table.path}/{path}"
    store.create(key, b"mine")

    with pytest.raises(StoreError, match=path) as raised:
        project(table)

    assert raised.value.kind == "FOREIGN_FILE"
    assert store.read(key) == b"mine"
    store.delete(key)
    project(table)
    assert_exact(table)


def test_foreign_files_are_listed_and_outlive_everything() -> None:
    store = memory()
    table = random_table(1, store)
    project(table)
    foreign = ("metadata/00001-mine.metadata.json", "metadata/mine-m0.avro", "metadata/mine.stats")
    for path in foreign:
        store.create(f"{table.path}/{path}", b"mine")

    assert verify(table) == Difference(foreign=foreign)

    go_on(table, random.Random(1), 20)
    project(table)
    rebuild(table)
    assert verify(table) == Difference(foreign=foreign)


def test_a_hint_to_another_table_is_reported_and_left_alone() -> None:
    store = memory()
    table = random_table(1, store)
    theirs = {"v99.metadata.json": b'{"table-uuid":"mine"}', "version-hint.text": b"99"}
    for name, body in theirs.items():
        store.create(f"{table.path}/metadata/{name}", body)

    with pytest.raises(StoreError, match="leads to the metadata of another table"):
        project(table)

    assert {path.removeprefix("metadata/") for path in Left.by(table).files} == set(theirs)


def keyed() -> Table:
    schema = Schema.of({"id": "BIGINT NOT NULL"}, primary_keys=["id"], options={"bucket": "2"})
    return orders(lake_on(memory()), schema)


def test_a_table_with_a_primary_key_projects_its_schema_alone() -> None:
    table = keyed()
    project(table)
    newest = Left.by(table).metadata(0, table)
    assert newest["schemas"][0]["identifier-field-ids"] == [0]

    table.append([FileChange(path="a.parquet", record_count=1, file_size_in_bytes=1)])
    with pytest.raises(UnsupportedError, match="primary key, whose newest rows .* drop the"):
        project(table)


def test_an_engines_own_manifests_are_refused() -> None:
    table = keyed()
    lists = {"base_manifest_list": "manifest-list-1", "delta_manifest_list": "manifest-list-2"}
    table.commit_snapshot(SnapshotPlan("APPEND", commit_user="flink", facts=lists))
    with pytest.raises(UnsupportedError, match="snapshot 1 .* Paimon manifests of its own"):
        project(table)


def test_a_table_that_is_not_declared_iceberg_is_refused() -> None:
    table = orders(lake_on(memory()))
    table.alter([SetOption("ledger.formats", "paimon")])
    with pytest.raises(UnsupportedError, match="add iceberg to its option"):
        project(table)


def test_a_manifest_that_two_snapshots_share_stays_until_both_expired() -> None:
    store = memory()
    table = random_table(6, store, 0)
    rng = random.Random(6)
    while table.state.last_snapshot_id < 12:
        go_on(table, rng, 1)
    first = table.state.earliest_snapshot_id
    table.create_tag("kept", snapshot=first)
    project(table)
    table.expire_snapshots(before=table.state.last_snapshot_id)
    project(table)
    assert is_consistent(Left.by(table))

    for name in table.state.tags:
        table.delete_tag(name)
    project(table)
    assert_exact(table)
    lists = [path for path in Left.by(table).files if "/snap-" in path]
    assert len(lists) == 1
