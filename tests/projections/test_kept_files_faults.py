"""Kills and races of those who keep a format's files: what a reader finds, and where it ends."""

from __future__ import annotations

import random
from functools import partial

import pytest

from tests.projections.formats import Format, Saved, Unlocked, through


@pytest.mark.parametrize("seed", range(3))
def test_readers_see_whole_tables_after_a_kill_before_any_write(kept: Format, seed: int) -> None:
    store, table = kept.halfway(seed)
    begun, wanted = Saved(store), kept.expected(table)
    for writes in range(1000):
        table = begun.restore()
        killed = kept.kill(store, writes)
        assert kept.is_consistent(table), writes
        kept.project(table)
        assert kept.left(table) == wanted
        if not killed:
            assert writes > 10
            return
    pytest.fail("it never came to an end")


@pytest.mark.parametrize("seed", range(6))
def test_a_projector_that_is_killed_again_and_again_gets_there(kept: Format, seed: int) -> None:
    store, table = kept.halfway(seed)
    writes = 0
    while kept.kill(store, writes):
        assert kept.is_consistent(table)
        writes += 1

    kept.assert_exact(table)


@pytest.mark.parametrize("seed", range(6))
def test_what_a_killed_run_left_goes_when_it_expired_meanwhile(kept: Format, seed: int) -> None:
    rng = random.Random(seed)
    store, table = kept.halfway(seed)
    for _ in range(10):
        kept.kill(store, rng.randrange(30))
        kept.go_on(table, rng, 6)

    kept.project(table)
    kept.assert_exact(table)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("inner_is_older", [False, True])
def test_two_projectors_at_once_do_no_harm(
    kept: Format, seed: int, *, inner_is_older: bool
) -> None:
    store, table = kept.halfway(seed)
    begun, wanted = Saved(store), kept.expected(table)
    for nth in range(1, 1000):
        table = begun.restore()
        older = (kept.stands(table) + table.state.version + 1) // 2
        inner, outer = (older, None) if inner_is_older else (None, older)
        action = partial(kept.advance, table, version=inner)
        racing = Unlocked(store, nth, action, lambda key: not kept.is_position(key))
        kept.advance(through(racing), version=outer)
        assert kept.is_consistent(table), nth
        kept.project(table)
        assert kept.left(table) == wanted
        if racing.writes_left > 0:
            assert nth > 5
            return
    pytest.fail("it never came to an end")


@pytest.mark.parametrize("seed", range(3))
def test_one_that_saves_its_position_over_anothers_is_healed_by_rebuilding(
    kept: Format, seed: int
) -> None:
    store, table = kept.halfway(seed)
    older = (kept.stands(table) + table.state.version + 1) // 2
    racing = Unlocked(store, 1, partial(kept.advance, table, version=older), kept.is_position)

    kept.project(through(racing))
    assert racing.writes_left <= 0

    kept.rebuild(table)
    kept.assert_exact(table)
