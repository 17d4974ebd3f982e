"""Laws of the Paimon files on a store, over random histories."""

from __future__ import annotations

import random

import pytest

from ledger import Table
from projections.materialisation import Difference
from projections.paimon import position
from projections.paimon.materialise import expected, project, rebuild, verify
from tests.lakes import memory
from tests.projections.paimon.projecting import Left, go_on, is_consistent, random_table

KINDS = ("schema/", "snapshot/snapshot-", "tag/", "manifest/manifest-list-", "manifest/manifest-")
SEEDS = range(12)


def assert_exact(table: Table, version: int | None = None) -> None:
    left = Left.by(table).files
    wanted = expected(table, version=version)
    assert sorted(left) == sorted(wanted)
    assert left == wanted
    assert verify(table) == Difference()


@pytest.mark.parametrize("seed", SEEDS)
def test_cuts_on_the_way_leave_no_trace(seed: int) -> None:
    table = random_table(seed, memory(), 60)
    rng = random.Random(seed)
    for version in sorted(rng.sample(range(table.state.version), 3)):
        assert project(table, version=version) == version
        assert_exact(table, version)

    assert project(table) == table.state.version
    assert_exact(table)


@pytest.mark.parametrize("seed", SEEDS)
def test_every_version_one_by_one_ends_where_one_run_ends(seed: int) -> None:
    table = random_table(seed, memory())
    for version in range(table.state.version + 1):
        project(table, version=version)
        assert_exact(table, version)


@pytest.mark.parametrize("seed", SEEDS)
def test_following_a_growing_table_keeps_it_exact(seed: int) -> None:
    table = random_table(seed, memory(), 0)
    rng = random.Random(seed)
    for _ in range(20):
        go_on(table, rng, rng.randrange(1, 6))
        project(table)

    assert_exact(table)


@pytest.mark.parametrize("seed", SEEDS)
def test_manifests_fold_to_the_live_files_at_every_snapshot_and_tag(seed: int) -> None:
    table = random_table(seed, memory(), 120)
    project(table)
    left = Left.by(table)

    assert is_consistent(left)
    state = table.state
    kept = [
        f"snapshot/snapshot-{each}"
        for each in range(state.earliest_snapshot_id, state.last_snapshot_id + 1)
    ]
    found = left.snapshots()
    assert sorted(found) == sorted([*kept, *(f"tag/tag-{name}" for name in state.tags)])
    for path, snapshot in found.items():
        then = table.at(snapshot=snapshot.id)
        assert left.live(table, snapshot) == sorted(each.path for each in then.files), path
        assert snapshot.total_record_count == then.totals.record_count
        if path.startswith("tag/"):
            assert table.at(tag=path.removeprefix("tag/tag-")).snapshot == then.snapshot
        else:
            assert path == f"snapshot/snapshot-{snapshot.id}"


@pytest.mark.parametrize("seed", SEEDS)
def test_a_lost_or_damaged_position_costs_only_time(seed: int) -> None:
    table = random_table(seed, memory())
    store, layout = table.log.store, table.log.layout
    rng = random.Random(seed)
    for damage in (None, b"{", b'{"format":1,"check":"0","position":{"version":3}}', b"[]"):
        project(table)
        go_on(table, rng, 8)
        if damage is None:
            store.delete(position.key(layout))
        else:
            store.replace(f"{layout.root}/projections/paimon.json", damage)
        project(table)
        assert_exact(table)


@pytest.mark.parametrize("kind", KINDS)
def test_a_lost_or_damaged_file_is_named_and_restored(kind: str) -> None:
    table = random_table(1, memory(), 40)
    table.create_tag("kept")
    project(table)
    store = table.log.store
    whole = Left.by(table).files
    path = next(each for each in reversed(whole) if each.startswith(kind))
    key = f"{table.path}/{path}"

    store.delete(key)
    assert verify(table).missing == (path,)
    assert rebuild(table).missing == (path,)
    assert Left.by(table).files == whole

    store.replace(key, whole[path] + b"x")
    assert verify(table).changed == (path,)
    assert rebuild(table).changed == (path,)
    assert Left.by(table).files == whole
    assert verify(table).is_empty


def test_rebuilding_needs_no_position() -> None:
    table = random_table(2, memory())
    project(table)
    whole = Left.by(table).files
    table.log.store.replace(f"{table.path}/schema/schema-0", b"damage")
    table.log.store.delete(position.key(table.log.layout))

    assert rebuild(table).changed == ("schema/schema-0",)

    assert Left.by(table).files == whole
    assert verify(table).is_empty
