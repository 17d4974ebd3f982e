"""Files that are lost, damaged, older, half a run's or somebody else's: what is said and done."""

from __future__ import annotations

import random
import tarfile
from contextlib import suppress
from pathlib import Path

import pytest

from ledger import DamagedLogError, InvalidInputError, StoreError, Table
from ledger.cli.commands.verify import differences
from ledger.stores import MemoryStore, Store
from ledger.table_handle import handle_of
from projections.paimon import expected, rebuild, verify
from projections.paimon.materialise import follow, project
from projections.paimon.paths import quarantine_path
from tests.faults import Died, DiesAfter
from tests.lakes import START_MILLIS, data_file, lake_on, memory, ticking
from tests.projections.formats import PAIMON
from tests.projections.paimon.projecting import Left, is_consistent, random_table
from tests.thorough import some

OLDER = Path(__file__).parents[2] / "data/paimon/projected_by_renderer_1.tar.xz"
"""Two tables whose newest commit is not projected: `rolled` has rollbacks."""


def older(name: str) -> Table:
    bodies: dict[str, bytes] = {}
    with tarfile.open(OLDER) as files:
        for each in files:
            body = files.extractfile(each)
            assert body is not None
            bodies[each.name] = body.read()
    # Files name the place where they lie.
    return on(filled(MemoryStore("older"), bodies), name)


def filled(store: Store, bodies: dict[str, bytes]) -> Store:
    for key in list(store.keys("")):
        store.delete(key)
    for key, body in bodies.items():
        store.create(key, body)
    return store


def on(store: Store, name: str = "orders") -> Table:
    return lake_on(store, ticking(START_MILLIS * 2)).table(f"shop.{name}")


@pytest.mark.parametrize("name", ["plain", "rolled"])
@pytest.mark.parametrize("how", [project, rebuild])
def test_files_of_an_older_version_are_made_anew(name: str, how: object) -> None:
    table = older(name)
    stood = PAIMON.stands(table)
    assert stood == table.state.version - 1
    with pytest.raises(InvalidInputError, match="only go forward"):
        project(handle_of(table), version=stood - 1)

    assert callable(how)
    how(handle_of(table))

    PAIMON.assert_exact(table)
    assert is_consistent(Left.by(table))
    assert verify(handle_of(table)).foreign == ()


def test_files_of_an_older_version_are_reported_where_they_differ_now() -> None:
    assert verify(handle_of(older("plain"))).is_empty
    table = older("rolled")

    found = verify(handle_of(table))

    assert found.changed == (PAIMON.position_key(table),)
    assert "made by an older version" in found.reason


@pytest.mark.parametrize("writes", range(0, 60, 3))
def test_making_older_files_anew_can_be_killed_anywhere(writes: int) -> None:
    table = older("rolled")
    with suppress(Died):
        project(handle_of(on(DiesAfter(handle_of(table).log.store, writes), "rolled")))

    project(handle_of(table))

    PAIMON.assert_exact(table)
    assert verify(handle_of(table)).foreign == ()


@pytest.mark.parametrize("seed", some(range(4), 2))
@pytest.mark.parametrize("moved_on", [0, 5])
def test_what_a_killed_run_left_is_neither_foreign_nor_damage(seed: int, moved_on: int) -> None:
    begun, table = PAIMON.halfway(seed)
    bodies = {key: begun.read(key) or b"" for key in begun.keys("")}
    for writes in range(0, 300, 5):
        store = filled(begun, bodies)
        killed = PAIMON.kill(store, writes)
        table = on(store)
        PAIMON.go_on(table, random.Random(seed), moved_on)

        found = verify(handle_of(table))

        # A tag that came and went meanwhile is nowhere in the newest state.
        assert [each for each in found.foreign if not each.startswith("tag/")] == []
        assert found.is_empty, writes
        if not killed:
            return
    pytest.fail("it never came to an end")


@pytest.mark.parametrize("kind", PAIMON.kinds)
@pytest.mark.parametrize("damage", [None, b"x"])
def test_projecting_where_nothing_is_new_heals(kind: str, damage: bytes | None) -> None:
    table = random_table(1, memory(), 40)
    table.create_tag("kept")
    project(handle_of(table))
    whole = Left.by(table).files
    path = next(each for each in reversed(whole) if kind in each)
    key = f"{handle_of(table).path}/{path}"
    if damage is None:
        handle_of(table).log.store.delete(key)
    else:
        handle_of(table).log.store.replace(key, damage)

    project(handle_of(table))

    assert Left.by(table).files == whole


@pytest.mark.parametrize("kind", ["manifest/manifest-list-", "manifest/manifest-"])
@pytest.mark.parametrize("change", ["tag", "rollback"])
def test_a_snapshot_whose_manifests_are_lost_is_tagged_and_rolled_back_to(
    kind: str, change: str
) -> None:
    table = random_table(3, memory(), 0)
    for number in range(20):
        table.append([data_file(f"f{number}.parquet")])
    project(handle_of(table))
    for path in Left.by(table).files:
        if path.startswith(kind):
            handle_of(table).log.store.replace(f"{handle_of(table).path}/{path}", b"damage")
    if change == "tag":
        table.create_tag("t", snapshot=5)
    else:
        table.rollback(snapshot=5)

    project(handle_of(table))
    project(handle_of(table))

    PAIMON.assert_exact(table)


def test_a_list_of_another_snapshot_is_not_believed() -> None:
    table = random_table(3, memory(), 0)
    for number in range(12):
        table.append([data_file(f"f{number}.parquet")])
    project(handle_of(table))
    wanted = expected(handle_of(table))
    empty = next(path for path, body in wanted.items() if b"_NUM_ADDED" in body)
    for path in wanted:
        if "manifest-list" in path:
            handle_of(table).log.store.replace(f"{handle_of(table).path}/{path}", wanted[empty])
    table.rollback(snapshot=5)

    project(handle_of(table))
    project(handle_of(table))

    PAIMON.assert_exact(table)


def test_a_foreign_file_in_the_next_place_is_found_and_quarantined() -> None:
    table = random_table(1, memory(), 20)
    project(handle_of(table))
    path = f"snapshot/snapshot-{table.state.last_snapshot_id + 1}"
    store, key = handle_of(table).log.store, f"{handle_of(table).path}/{path}"
    store.create(key, b"mine")

    assert verify(handle_of(table)).changed == (path,)
    (findings,) = [each for name, each in differences(handle_of(table)) if name == "paimon"]
    assert [(each.file, each.fails) for each in findings] == [(path, True)]
    project(handle_of(table))
    assert store.read(key) == b"mine"

    table.append([data_file("next.parquet")])
    with pytest.raises(StoreError, match=path):
        project(handle_of(table))
    assert verify(handle_of(table)).changed == (path,)

    assert rebuild(handle_of(table)).changed == (path,)
    quarantined = quarantine_path(path, b"mine")
    assert Left.by(table).files == expected(handle_of(table)) | {quarantined: b"mine"}
    assert verify(handle_of(table)).is_empty
    assert verify(handle_of(table)).foreign == (quarantined,)


def test_a_log_that_ends_before_its_files_is_damage() -> None:
    store = memory()
    table = random_table(1, store, 20)
    project(handle_of(table))
    stood = table.state.version
    store.delete(handle_of(table).log.layout.commit(stood))
    table = on(store)

    said = f"at version {stood}, and its log ends at"
    for attempt in (project, lambda table: next(follow(table))):
        with pytest.raises(DamagedLogError, match=said):
            attempt(handle_of(table))
    found = verify(handle_of(table))
    assert PAIMON.position_key(table) in found.changed
    assert found.damage is not None
    assert said in found.damage.message

    rebuild(handle_of(table))
    assert verify(handle_of(table)).is_empty


def test_following_only_goes_forward() -> None:
    table = random_table(1, memory(), 20)
    project(handle_of(table))
    path = next(each for each in Left.by(table).files if "snapshot-" in each)
    handle_of(table).log.store.delete(f"{handle_of(table).path}/{path}")

    assert next(follow(handle_of(table))) == table.state.version

    assert verify(handle_of(table)).missing == (path,)


def test_a_healing_run_can_be_killed_anywhere() -> None:
    table = random_table(2, memory(), 20)
    project(handle_of(table))
    for path in list(Left.by(table).files)[::3]:
        handle_of(table).log.store.delete(f"{handle_of(table).path}/{path}")
    for writes in range(1000):
        try:
            project(handle_of(on(DiesAfter(handle_of(table).log.store, writes))))
        except Died:
            continue
        break
    PAIMON.assert_exact(table)
