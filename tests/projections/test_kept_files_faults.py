"""Kills and races of those who keep a format's files: what a reader finds, and where it ends."""

from __future__ import annotations

import random
from functools import partial

import pytest

from ledger import DamagedLogError, SetOption, StoreError
from ledger.table_handle import handle_of
from projections.materialising import Difference
from tests.lakes import memory
from tests.projections.formats import DELTA, ICEBERG, PAIMON, Format, Saved, Unlocked, through
from tests.thorough import some


@pytest.mark.parametrize("seed", some(range(3), 1))
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


@pytest.mark.parametrize("seed", some(range(6), 2))
def test_a_projector_that_is_killed_again_and_again_gets_there(kept: Format, seed: int) -> None:
    store, table = kept.halfway(seed)
    writes = 0
    while kept.kill(store, writes):
        assert kept.is_consistent(table)
        writes += 1

    kept.assert_exact(table)


@pytest.mark.parametrize("seed", some(range(6), 2))
def test_files_of_a_killed_run_are_deleted_if_they_expired_since(kept: Format, seed: int) -> None:
    rng = random.Random(seed)
    store, table = kept.halfway(seed)
    for _ in range(10):
        kept.kill(store, rng.randrange(30))
        kept.go_on(table, rng, 6)

    kept.project(table)
    kept.assert_exact(table)


@pytest.mark.parametrize("seed", some(range(3), 1))
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


@pytest.mark.parametrize("seed", some(range(3), 1))
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


@pytest.mark.parametrize("is_exchanged", [False, True], ids=["cut", "exchanged"])
@pytest.mark.parametrize("goes_on", [False, True], ids=["as long", "longer"])
def test_a_log_that_does_not_reach_its_files_is_found_and_refused(
    kept: Format, *, is_exchanged: bool, goes_on: bool
) -> None:
    store = memory()
    table = kept.random_table(1, store, 10)
    version = kept.project(table)
    store.delete(handle_of(table).log.layout.commit(version))
    for number in range(is_exchanged * (1 + 2 * goes_on)):
        through(store).alter([SetOption("mine", str(number))])
    cut = through(store)

    found = kept.verify(cut)
    assert kept.position_key(table) in found.changed
    assert found.damage is not None
    assert found.damage.file == handle_of(table).log.layout.commit(version)
    with pytest.raises(DamagedLogError, match="commits were (removed|replaced)"):
        kept.project(cut)
    kept.rebuild(cut)
    assert kept.verify(cut).is_empty
    assert kept.verify(cut).damage is None
    kept.project(cut)
    left = kept.all_files(cut)
    assert kept.expected(cut).items() <= left.items()
    if kept.name == "iceberg":
        # Paimon quarantines a file in the way, as it cannot know its writer.
        kept.assert_exact(cut)


@pytest.mark.parametrize(
    ("of", "kind"),
    [
        pytest.param(each, kind, id=f"{each.name} {kind}")
        for each in (PAIMON, ICEBERG, DELTA)
        for kind in each.kinds
    ],
)
def test_a_foreign_file_in_the_way_is_reported_and_left_alone(of: Format, kind: str) -> None:
    store = memory()
    table = of.random_table(1, store)
    path = next(path for path in of.expected(table) if kind in path and "hint" not in path)
    key = f"{handle_of(table).path}/{path}"
    store.create(key, b"mine")

    with pytest.raises(StoreError, match=path) as raised:
        of.project(table)

    assert raised.value.kind == "FOREIGN_FILE"
    assert store.read(key) == b"mine"
    store.delete(key)
    of.project(table)
    of.assert_exact(table)


def test_a_foreign_checkpoint_where_a_delta_log_begins_is_not_taken_for_the_ledgers() -> None:
    store = memory()
    table = DELTA.random_table(1, store)
    path = next(path for path in DELTA.expected(table) if path.endswith(".checkpoint.parquet"))
    key = f"{handle_of(table).path}/{path}"
    store.create(key, b"mine")

    def version_by_version() -> None:
        for version in range(table.state.version + 1):
            DELTA.advance(table, version=version)

    with pytest.raises(StoreError, match=path) as raised:
        version_by_version()

    assert raised.value.kind == "FOREIGN_FILE"
    assert store.read(key) == b"mine"
    store.delete(key)
    DELTA.project(table)
    DELTA.assert_exact(table)


def test_foreign_files_are_listed_and_outlive_everything(kept: Format) -> None:
    store = memory()
    table = kept.random_table(1, store)
    kept.project(table)
    for path in kept.foreign:
        store.create(f"{handle_of(table).path}/{path}", b"mine")

    assert kept.verify(table) == Difference(foreign=kept.foreign)

    kept.go_on(table, random.Random(1), 20)
    kept.project(table)
    kept.rebuild(table)
    assert kept.verify(table) == Difference(foreign=kept.foreign)


def test_what_is_to_be_taken_away_is_so_after_a_kill_between(kept: Format) -> None:
    table = kept.random_table(1, memory(), 14)
    kept.project(table)
    stands = kept.position(table)
    left_over = f"{kept.kept.format.folders[0]}/left-over"
    handle_of(table).log.store.create(f"{handle_of(table).path}/{left_over}", b"x")
    files = kept.kept.format.positions
    files.save(
        handle_of(table).log.store,
        handle_of(table).log.layout,
        stands.with_pending_deletes((left_over,), stands.leaving_since),
    )

    kept.project(table)

    assert kept.position(table) == stands
    assert kept.verify(table).foreign == ()
