"""Laws of a format's files beside the log, over random histories."""

from __future__ import annotations

import random

import pytest

from ledger.table_handle import handle_of
from projections.materialising import Lag
from tests.lakes import memory
from tests.projections.formats import Format
from tests.thorough import some

SEEDS = some(range(4), 2)


@pytest.mark.parametrize("seed", SEEDS)
def test_cuts_on_the_way_leave_no_trace(kept: Format, seed: int) -> None:
    table = kept.random_table(seed, memory(), 60)
    rng = random.Random(seed)
    for version in sorted(rng.sample(range(table.state.version), 3)):
        assert kept.advance(table, version=version) == version
        kept.assert_exact(table, version)

    assert kept.project(table) == table.state.version
    kept.assert_exact(table)


@pytest.mark.parametrize("seed", SEEDS)
def test_every_version_one_by_one_ends_where_one_run_ends(kept: Format, seed: int) -> None:
    table = kept.random_table(seed, memory())
    for version in range(table.state.version + 1):
        kept.advance(table, version=version)
        kept.assert_exact(table, version)
    kept.assert_exact(table)


@pytest.mark.parametrize("seed", SEEDS)
def test_following_a_growing_table_keeps_it_exact(kept: Format, seed: int) -> None:
    table = kept.random_table(seed, memory(), 0)
    rng = random.Random(seed)
    for _ in range(20):
        kept.go_on(table, rng, rng.randrange(1, 6))
        kept.project(table)

    kept.assert_exact(table)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_lost_or_damaged_position_costs_only_time(kept: Format, seed: int) -> None:
    table = kept.random_table(seed, memory())
    store, key = handle_of(table).log.store, kept.position_key(table)
    rng = random.Random(seed)
    for damage in (None, b"{", b'{"format":1,"check":"0","position":{"version":3}}', b"[]"):
        kept.project(table)
        kept.go_on(table, rng, 8)
        if damage is None:
            store.delete(key)
        else:
            store.replace(key, damage)
        kept.project(table)
        kept.assert_exact(table)


@pytest.mark.parametrize("seed", [0, 11, *some(range(12, 24), 1)])
def test_files_are_the_same_for_every_split_of_the_versions_over_runs(
    kept: Format, seed: int
) -> None:
    table = kept.random_table(seed, memory())
    kept.go_on(table, random.Random(seed), 8)
    for version in range(table.state.version):
        kept.advance(table, version=version)
    kept.project(table)
    kept.assert_exact(table)

    kept.go_on(table, random.Random(seed), 8)
    handle_of(table).log.store.delete(kept.position_key(table))
    for version in range(0, table.state.version, 2):
        kept.advance(table, version=version)
    kept.project(table)
    kept.assert_exact(table)


def test_a_lost_or_damaged_file_is_named_and_restored(kept: Format) -> None:
    table = kept.random_table(1, memory(), 40)
    table.create_tag("kept")
    kept.project(table)
    store, whole = handle_of(table).log.store, kept.all_files(table)
    for kind in kept.kinds:
        path = next(each for each in reversed(whole) if kind in each and "hint" not in each)
        key = f"{handle_of(table).path}/{path}"

        store.delete(key)
        assert kept.verify(table).missing == (path,)
        assert kept.rebuild(table).missing == (path,)
        assert kept.all_files(table) == whole

        store.replace(key, whole[path] + b"x")
        assert kept.verify(table).changed == (path,)
        assert kept.rebuild(table).changed == (path,)
        assert kept.all_files(table) == whole
        assert kept.verify(table).is_empty


def test_rebuilding_needs_no_position(kept: Format) -> None:
    table = kept.random_table(2, memory())
    kept.project(table)
    whole = kept.all_files(table)
    path = next(each for each in reversed(whole) if kept.kinds[0] in each)
    handle_of(table).log.store.replace(f"{handle_of(table).path}/{path}", b"damage")
    handle_of(table).log.store.delete(kept.position_key(table))

    assert path in kept.rebuild(table).changed

    assert kept.all_files(table) == whole
    assert kept.verify(table).is_empty


def test_the_lag_of_the_files_is_reported(kept: Format) -> None:
    table = kept.random_table(1, memory(), 14)
    newest = table.state.version
    assert kept.kept.freshness(handle_of(table)) == Lag(-1, newest)

    kept.advance(table, version=newest - 2)

    assert kept.kept.freshness(handle_of(table)) == Lag(newest - 2, newest)
    assert kept.kept.freshness(handle_of(table)).behind == 2
    assert kept.advance(table, version=1) == newest - 2
    kept.assert_exact(table, newest - 2)
