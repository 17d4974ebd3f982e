"""Kills, races, and files of others: what a reader finds, and where it ends."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial

import pytest

from ledger import StoreError, Table
from ledger.stores import Store
from projections.materialisation import Difference
from projections.paimon import position
from projections.paimon.materialise import expected, project, rebuild, verify
from tests.faults import Died, DiesAfter, Wrapped
from tests.lakes import lake_on, memory
from tests.projections.paimon.projecting import Left, go_on, is_consistent, random_table


class Unlocked(Wrapped):
    """A store that lets everybody in; `action` runs right before write `nth` among those `on`."""

    def __init__(
        self, inner: Store, nth: int, action: Callable[[], object], on: Callable[[str], bool]
    ) -> None:
        super().__init__(inner)
        self.writes_left = nth
        self._action = action
        self._on = on

    def lock(self, key: str) -> AbstractContextManager[None]:
        del key
        return nullcontext()

    def create(self, key: str, body: bytes) -> bool:
        self._writing(key)
        return super().create(key, body)

    def replace(self, key: str, body: bytes) -> None:
        self._writing(key)
        super().replace(key, body)

    def delete(self, key: str) -> None:
        self._writing(key)
        super().delete(key)

    def _writing(self, key: str) -> None:
        self.writes_left -= self._on(key)
        if self.writes_left == 0 and self._on(key):
            self._action()


def is_position(key: str) -> bool:
    return key.endswith("/projections/paimon.json")


def is_file(key: str) -> bool:
    return not is_position(key)


def through(store: Store) -> Table:
    return lake_on(store).table("shop.orders")


def halfway(seed: int) -> tuple[Store, Table]:
    """Return a table whose newer half, which expires some of the older, is yet to project."""
    store = memory()
    table = random_table(seed, store, 14)
    project(table)
    go_on(table, random.Random(seed), 16)
    return store, table


class Saved:
    """What a store held, to go back to."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._bodies = {key: store.read(key) or b"" for key in store.keys("")}

    def restore(self) -> Table:
        for key in list(self._store.keys("")):
            self._store.delete(key)
        for key, body in self._bodies.items():
            self._store.create(key, body)
        return through(self._store)


def assert_exact(table: Table) -> None:
    assert Left.by(table).files == expected(table)
    assert verify(table) == Difference()


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
        assert Left.by(table).files == wanted
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
        racing = Unlocked(store, nth, partial(project, table, version=inner), is_file)
        project(through(racing), version=outer)
        assert is_consistent(Left.by(table)), nth
        project(table)
        assert Left.by(table).files == wanted
        if racing.writes_left > 0:
            assert nth > 5
            return
    pytest.fail("it never came to an end")


@pytest.mark.parametrize("seed", range(3))
def test_one_that_saves_its_position_over_anothers_is_healed_by_rebuilding(seed: int) -> None:
    store, table = halfway(seed)
    older = (position.load(store, table.log.layout).version + table.state.version + 1) // 2
    racing = Unlocked(store, 1, partial(project, table, version=older), is_position)

    project(through(racing))
    assert racing.writes_left == 0

    rebuild(table)
    assert_exact(table)


@pytest.mark.parametrize("kind", ["schema", "snapshot", "manifest"])
def test_a_foreign_file_in_the_way_is_reported_and_left_alone(kind: str) -> None:
    store = memory()
    table = random_table(1, store)
    path = next(path for path in expected(table) if path.startswith(f"{kind}/{kind}-"))
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
    foreign = ("snapshot/snapshot-x", "tag/tag-mine", "manifest/manifest-mine")
    for path in foreign:
        store.create(f"{table.path}/{path}", b"mine")

    assert verify(table).is_empty
    assert verify(table).foreign == foreign

    go_on(table, random.Random(1), 20)
    project(table)
    rebuild(table)
    assert verify(table).foreign == foreign


def test_expiry_keeps_what_tags_name() -> None:
    store = memory()
    table = random_table(5, store, 0)
    rng = random.Random(5)
    while table.state.last_snapshot_id < 12:
        go_on(table, rng, 1)
    first = table.state.earliest_snapshot_id
    table.create_tag("kept", snapshot=first)
    project(table)
    before = Left.by(table)
    table.expire_snapshots(before=table.state.last_snapshot_id)
    project(table)
    after = Left.by(table)

    assert f"snapshot/snapshot-{first}" not in after.files
    tagged = after.snapshots()["tag/tag-kept"]
    assert after.entries(tagged) == before.entries(tagged)
    assert after.live(table, tagged) == [each.path for each in table.at(tag="kept").files]

    for name in table.state.tags:
        table.delete_tag(name)
    project(table)
    assert_exact(table)
    assert len(Left.by(table).snapshots()) == 1
