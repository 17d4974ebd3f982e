from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ledger import DamagedLogError, FileChange, SetOption, StoreError, Table
from ledger.files import store_changes
from ledger.files.change_lists import change_references
from ledger.history.garbage import (
    KEPT_MILLIS,
    OrphanedFile,
    orphaned_caches,
    orphaned_change_files,
    orphaned_drafts,
    remove,
)
from ledger.history.verifying import Subject
from ledger.history.verifying.surroundings import CatalogedTables
from ledger.stores import Durability, LocalStore, Store
from ledger.table_handle import handle_of
from tests.faults import Died, DiesAfter, RacesBefore, Wrapped
from tests.history.ledgers import LONG, contents, files_in
from tests.lakes import START_MILLIS, data_file, lake_on, memory, orders
from tests.thorough import examples

DAY = 24 * 3_600_000


class Clock:
    """Goes one millisecond a look, and as far as the test says."""

    def __init__(self) -> None:
        self.now = START_MILLIS

    def __call__(self) -> int:
        self.now += 1
        return self.now


class Unlocked(Wrapped):
    """A store that cannot lock, and so lets everybody in."""

    def lock(self, key: str) -> AbstractContextManager[None]:
        del key
        return nullcontext()


def _long_list(prefix: str) -> list[FileChange]:
    return [data_file(f"{prefix}/{number}.parquet") for number in range(LONG)]


def _left_behind(table: Table, name: str, clock: Clock) -> str:
    """Keep a list that is never committed; return its key."""
    kept = store_changes(
        handle_of(table).log.store, handle_of(table).log.layout, [data_file(name)], clock()
    )
    return f"{handle_of(table).log.layout.root}/{kept.path}"


def _orphans(table: Table, store: Store | None = None) -> list[str]:
    fresh = lake_on(store or handle_of(table).log.store).table("shop.orders")
    return [
        each.path
        for each in orphaned_change_files(Subject("t", handle_of(fresh).log, has_files=True), 0)
    ]


def _maintain(table: Table) -> list[str]:
    fresh = lake_on(handle_of(table).log.store).table("shop.orders")
    found = list(orphaned_change_files(Subject("t", handle_of(fresh).log, has_files=True), 0))
    for each in found:
        remove(handle_of(table).log.store, each)
    return [each.path for each in found]


def _remove_all(store: Store, keys: list[str]) -> None:
    for key in keys:
        remove(store, OrphanedFile("changes", key, None))


def _named(table: Table) -> Iterator[str]:
    for commit in table.events():
        for each in change_references(commit):
            yield f"{handle_of(table).log.layout.root}/{each.path}"


_STEPS = st.lists(
    st.one_of(
        st.sampled_from(["commit", "list", "orphan", "maintain", "reopen"]),
        st.integers(1, 10).map(lambda hours_or_days: hours_or_days * DAY),
        st.integers(1, 30).map(lambda hours: hours * 3_600_000),
    ),
    max_size=14,
)


@settings(deadline=None, max_examples=examples(40), suppress_health_check=[HealthCheck.too_slow])
@given(_STEPS)
def test_whatever_the_history_what_a_commit_names_stays_and_old_orphans_go(
    steps: list[str | int],
) -> None:
    clock = Clock()
    lake = lake_on(memory(), clock)
    table = orders(lake)
    left: dict[str, int] = {}
    for number, step in enumerate(steps):
        if isinstance(step, int):
            clock.now += step
        elif step == "commit":
            table.alter([SetOption("k", str(number))])
        elif step == "list":
            table.append(_long_list(str(number)))
        elif step == "orphan":
            left[_left_behind(table, f"o{number}", clock)] = clock.now
        elif step == "reopen":
            table = lake.table("shop.orders")
        else:
            gone = _maintain(table)
            newest = table.state.time_millis
            due = {key for key, when in left.items() if newest - when >= KEPT_MILLIS}
            assert set(gone) == due
            left = {key: when for key, when in left.items() if key not in due}

    store = handle_of(table).log.store
    assert all(store.exists(key) for key in (*_named(table), *left))


def test_a_list_written_and_not_yet_committed_survives_concurrent_maintenance() -> None:
    clock = Clock()
    inner = memory()
    table = orders(lake_on(inner, clock))
    gone: list[str] = []
    raced = RacesBefore(
        Unlocked(inner),
        lambda: gone.extend(_maintain(table)),
        on=lambda key: key.endswith("1.json"),
    )

    lake_on(raced, clock).table("shop.orders").append(_long_list("a"))

    assert gone == []
    assert len(table.at().files) == LONG


@pytest.mark.parametrize("clock_is_behind_millis", [0, 30 * DAY])
def test_a_writer_that_stalled_for_a_week_is_refused_and_its_list_is_gone(
    clock_is_behind_millis: int,
) -> None:
    clock, others = Clock(), Clock()
    inner = memory()
    table = orders(lake_on(inner, others))
    others.now += 40 * DAY
    clock.now = others.now - 20_000
    gone: list[str] = []

    def week() -> None:
        # While the writer is between its list and its commit.
        others.now += KEPT_MILLIS + DAY
        table.alter([SetOption("k", "v")])
        gone.extend(_maintain(table))
        clock.now = others.now - clock_is_behind_millis

    raced = RacesBefore(Unlocked(inner), week, on=lambda key: key.endswith("1.json"))
    stalled = lake_on(raced, clock).table("shop.orders")

    with pytest.raises(StoreError) as refused:
        stalled.append(_long_list("a"))

    assert len(gone) == 1
    assert refused.value.kind == "STALE_CHANGES" or "clock is" in str(refused.value)
    assert list(_named(table)) == []
    assert handle_of(stalled).log.refresh() == table.state
    clock.now = others.now
    stalled.append(_long_list("a"))
    assert len(table.at().files) == LONG


def test_a_list_older_than_a_day_is_not_committed_even_when_nobody_else_wrote() -> None:
    clock = Clock()
    inner = memory()
    orders(lake_on(inner, clock))

    def night(_key: str) -> bool:
        clock.now += DAY * ("/changes/" in _key)
        return False

    slow = lake_on(RacesBefore(Unlocked(inner), lambda: None, on=night), clock).table("shop.orders")

    with pytest.raises(StoreError, match="more than a day before its commit"):
        slow.append(_long_list("a"))
    assert slow.state.snapshot is None


def test_lists_whose_names_hold_no_time_stay_and_are_read() -> None:
    clock = Clock()
    table = orders(lake_on(memory(), clock))
    old = handle_of(table).log.layout.changes("a" * 64 + ".parquet")
    handle_of(table).log.store.create(old, b"x")
    clock.now += 30 * DAY
    table.alter([SetOption("k", "v")])

    assert _maintain(table) == []
    assert handle_of(table).log.store.exists(old)


def test_looking_removes_nothing_and_dying_between_two_removals_leaves_the_rest(
    tmp_path: Path,
) -> None:
    clock = Clock()
    table = orders(lake_on(LocalStore(tmp_path, durable=Durability.NONE), clock))
    table.append(_long_list("a"))
    left = [_left_behind(table, str(number), clock) for number in range(4)]
    clock.now += KEPT_MILLIS + 10
    table.alter([SetOption("k", "v")])
    before = contents(files_in(tmp_path))

    assert _orphans(table) == sorted(left)
    assert contents(files_in(tmp_path)) == before

    for deletes in (0, 1, 2):
        with pytest.raises(Died):
            _remove_all(DiesAfter(handle_of(table).log.store, deletes), _orphans(table))
        assert all(handle_of(table).log.store.exists(key) for key in _named(table))
    assert len(_orphans(table)) == 1
    _maintain(table)
    assert set(before) - set(files_in(tmp_path)) == {tmp_path / key for key in left}
    assert len(table.at().files) == LONG


def test_nothing_goes_while_the_log_cannot_be_read(tmp_path: Path) -> None:
    clock = Clock()
    table = orders(lake_on(LocalStore(tmp_path, durable=Durability.NONE), clock))
    kept = _left_behind(table, "a", clock)
    clock.now += KEPT_MILLIS + 10
    for number in range(3):
        table.alter([SetOption("k", str(number))])
    (tmp_path / handle_of(table).log.layout.commit(1)).unlink()

    subject: Subject[Any, Any] = Subject("t", handle_of(table).again().log, has_files=True)
    with pytest.raises(DamagedLogError):
        list(orphaned_change_files(subject, 0))
    assert (tmp_path / kept).exists()


def test_only_old_drafts_go_and_never_the_file_that_shares_their_bytes(tmp_path: Path) -> None:
    store = LocalStore(tmp_path, durable=Durability.NONE)
    table = orders(lake_on(store))
    folder = tmp_path / "shop.db" / "orders" / "_ledger" / "log"
    commit = folder / f"{0:020d}.json"
    old, young, others = (folder / f".tmp-{digit * 16}" for digit in "a1z")
    os.link(commit, old)
    young.write_bytes(b"half")
    others.write_bytes(b"not a draft's name")
    now = START_MILLIS + 100 * DAY
    for path, age in ((old, KEPT_MILLIS), (young, KEPT_MILLIS - 2_000), (others, KEPT_MILLIS)):
        os.utime(path, ((now - age) / 1000,) * 2)

    found = list(orphaned_drafts(store, "shop.db/orders", now))
    assert [each.path for each in found] == [old.relative_to(tmp_path).as_posix()]
    for each in (*found, *found):
        remove(store, each)

    assert (old.exists(), young.exists(), others.exists()) == (False, True, True)
    assert table.state.version == 0


def test_a_writer_whose_draft_was_taken_away_commits_all_the_same(tmp_path: Path) -> None:
    class Sweeping(LocalStore):
        swept = 0

        def _link(self, folder: int, draft: str, name: str) -> None:
            if not self.swept and name.startswith("0000000000000000000"):
                self.swept += 1
                for each in orphaned_drafts(self, "shop.db", 1 << 60):
                    remove(self, each)
            super()._link(folder, draft, name)

    store = Sweeping(tmp_path, durable=Durability.NONE)
    table = orders(lake_on(store))
    store.swept = 0

    assert table.alter([SetOption("k", "v")]).version == 1
    assert store.swept == 1


def test_of_a_dropped_table_only_caches_go_and_only_after_seven_days(tmp_path: Path) -> None:
    clock = Clock()
    lake = lake_on(LocalStore(tmp_path, durable=Durability.NONE), clock)
    table = orders(lake)
    for number in range(101):
        table.append([data_file(f"{number}.parquet")], commit_id=str(number))
    left = _left_behind(table, "x", clock)
    lake.drop_table("shop.orders")
    (cataloged,) = CatalogedTables.of(lake.events())
    dropped = cataloged.dropped_millis
    assert dropped is not None
    subject: Subject[Any, Any] = Subject(cataloged.name, handle_of(table).log, has_files=True)

    early, late = dropped + KEPT_MILLIS - DAY, dropped + KEPT_MILLIS
    assert list(orphaned_caches(subject, dropped, early)) == []
    assert list(orphaned_change_files(subject, early)) == []
    found = [
        *orphaned_caches(subject, dropped, late),
        *orphaned_change_files(subject, late),
    ]
    before = set(files_in(tmp_path))
    for each in found:
        remove(handle_of(table).log.store, each)

    gone = {each.relative_to(tmp_path).as_posix() for each in before - set(files_in(tmp_path))}
    root = handle_of(table).log.layout.root
    span = f"{0:020d}-{100:020d}"
    assert gone == {
        left,
        f"{root}/caches/3/keys/{span}.idx",
        f"{root}/caches/3/filters/0-{0:020d}.flt",
        f"{root}/caches/3/files/{span}.parquet",
        f"{root}/caches/3/files/{span}.parquet.sha256",
    }


def test_an_open_table_reads_on_after_all_that_maintenance_takes() -> None:
    clock = Clock()
    store = memory()
    lake = lake_on(store, clock)
    table = orders(lake)
    table.append(_long_list("a"))
    for number in range(900):
        table.alter([SetOption("k", str(number))])
    table.append([data_file("b.parquet")])
    handle_of(table).log.wait_for_caches()
    _left_behind(table, "c", clock)
    held, cold = table.at(snapshot=1), table.at(version=table.state.version)
    before = [each.path for each in table.at(snapshot=1).files]
    planned = sorted(each.path for each in table.at(snapshot=2).files)
    lake.drop_table("shop.orders")
    clock.now += KEPT_MILLIS + DAY

    (cataloged,) = CatalogedTables.of(
        read.commit for read in handle_of(lake).log.commits(0, lake.state.version)
    )
    subject = Subject("t", handle_of(lake).log_at(cataloged), has_files=True)
    gone = [
        *orphaned_change_files(subject, clock.now),
        *orphaned_caches(subject, cataloged.dropped_millis or 0, clock.now),
        *orphaned_drafts(store, "", clock.now),
    ]
    assert {each.sort for each in gone} == {"changes", "cache"}
    for each in gone:
        remove(store, each)

    assert [each.path for each in held.files] == before
    assert sorted(each.path for each in cold.files) == planned
    assert [each.version for each in table.events()] == [*range(904)]
    assert table.at(version=450).schema.options["k"] == "448"
