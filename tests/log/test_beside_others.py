"""Concurrent writers hold the lock for as short as they can."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from threading import Thread

import pytest

from ledger import CommitConflictError, SetOption, Table
from ledger.stores import Store, Turn
from ledger.table_handle import handle_of
from tests.faults import Wrapped
from tests.lakes import data_file, lake_on, memory, orders
from tests.log.test_group_commit import Crowd, adds, reopened
from tests.log.test_group_waiting import until


class Far(Wrapped):
    is_near = False

    def __init__(self, inner: Wrapped) -> None:
        self.inner = inner


def head_of(table: Table) -> int:
    """Return the newest version that a handle knows, without looking."""
    head = handle_of(table).log.head
    assert head is not None
    return head.state.version


def beside_another(*, is_near: bool = True) -> tuple[Table, Table]:
    """Return two handles of one table, of which the first has met a commit of the second."""
    store = Wrapped(memory())
    orders(lake_on(store))
    ours = lake_on(store if is_near else Far(store)).table("shop.orders")
    other = lake_on(store).table("shop.orders")
    assert ours.state == other.state
    other.alter([SetOption("a", "1")])
    assert ours.alter([SetOption("b", "1")]).attempts == 2, "nobody was met before"
    return ours, other


@pytest.mark.parametrize(("is_near", "attempts"), [(True, 1), (False, 2)])
def test_a_writer_that_met_others_reads_the_tail_before_deciding_where_that_is_cheap(
    *, is_near: bool, attempts: int
) -> None:
    ours, other = beside_another(is_near=is_near)
    other.alter([SetOption("a", "2")])

    committed = ours.alter([SetOption("b", "2")], commit_id="mine")

    assert committed.attempts == attempts
    assert (committed.version, committed.state.schema.options["a"]) == (4, "2")
    assert ours.alter([SetOption("b", "2")], commit_id="mine").repeated


def test_a_writer_that_cannot_read_ahead_finds_out_by_trying(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ours, other = beside_another()
    other.alter([SetOption("a", "2")])
    catch_up = handle_of(ours).log.catch_up
    looks = iter((OSError("in line"), OSError("stale file handle")))

    def unreadable_at_first() -> object:
        for error in looks:
            raise error
        return catch_up()

    monkeypatch.setattr(handle_of(ours).log, "catch_up", unreadable_at_first)

    assert ours.alter([SetOption("b", "2")]).attempts == 2


def test_only_the_next_writer_in_line_reads_while_another_holds_the_lock() -> None:
    ours, other = beside_another()
    behind = lake_on(handle_of(ours).log.store).table("shop.orders")
    before = behind.state.version
    handle_of(behind).log._met_others_s = time.monotonic()
    other.alter([SetOption("a", "2")])
    newest = other.state.version

    with ThreadPoolExecutor(2) as threads:
        with handle_of(other).log.store.lock(handle_of(other).log.layout.lock):
            first = threads.submit(ours.alter, [SetOption("b", "2")])
            until(lambda: head_of(ours) == newest)
            second = threads.submit(behind.alter, [SetOption("c", "2")])
            time.sleep(0.05)
            assert not first.done()
            assert head_of(behind) == before
        assert [each.result(10).attempts for each in (first, second)] == [1, 1]
    assert second.result().version == newest + 2


def test_what_was_read_in_line_still_wins_over_what_contradicts_it() -> None:
    ours, other = beside_another()
    other.alter([SetOption("a", "theirs")])

    with pytest.raises(CommitConflictError, match="option a") as refused:
        ours.alter([SetOption("a", "mine")])
    assert refused.value.version == other.state.version

    other.append([data_file("theirs.parquet")])
    with pytest.raises(CommitConflictError, match=r"theirs\.parquet"):
        ours.append([data_file("theirs.parquet")])
    assert ours.append([data_file("mine.parquet")]).attempts == 1


class Locks(Wrapped):
    """Says which locks were taken."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self.taken: list[str] = []

    def lock(self, key: str) -> AbstractContextManager[Turn | None]:
        self.taken.append(key)
        return super().lock(key)


def test_each_commit_waits_in_line_anew_so_that_nobody_waits_for_several_of_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ours, _ = beside_another()
    locks = Locks(handle_of(ours).log.store)
    monkeypatch.setattr(handle_of(ours).log, "store", locks)

    for number in range(3):
        ours.alter([SetOption("b", str(number))])

    assert locks.taken.count(handle_of(ours).log.layout.line) == 3
    assert locks.taken.count(handle_of(ours).log.layout.lock) == 3


def test_caches_are_not_saved_while_others_wait_for_the_lock() -> None:
    ours, _ = beside_another()
    saving = Thread(target=handle_of(ours).log.save_next_caches)

    with handle_of(ours).log.hold_append_lock():
        saving.start()
        saving.join(0.1)
        assert saving.is_alive()
    saving.join(10)
    assert not saving.is_alive()


def test_a_single_writer_need_not_wait_for_its_caches() -> None:
    table = orders(lake_on(memory()))
    saving = Thread(target=handle_of(table).log.save_next_caches)

    with handle_of(table).log.hold_append_lock():
        saving.start()
        saving.join(0.5)
        assert not saving.is_alive()


class Turns(Wrapped):
    """Says what was to be created in turns, and with what they were to end."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self.said: list[tuple[str, str]] = []

    @contextmanager
    def lock(self, key: str) -> Iterator[Turn]:
        with super().lock(key):
            yield self

    def announce_create(self, key: str) -> None:
        self.said.append(("goes on", key[-6:]))

    def announce_last_create(self, key: str) -> None:
        self.said.append(("ends", key[-6:]))


def test_a_turn_ends_with_the_commit_that_is_made_in_it() -> None:
    store = Turns(memory())
    orders(lake_on(store))
    ours, other = (lake_on(each).table("shop.orders") for each in (store, store.inner))
    store.said.clear()

    # The first follows what was read, the second what it wrote itself.
    for number in range(2):
        ours.alter([SetOption("a", str(number))])
    other.alter([SetOption("b", "1")])
    ours.alter([SetOption("a", "2")])
    # In line, as with the other writers that it has met.
    ours.alter([SetOption("a", "3")])

    assert store.said == [("ends", f"{version}.json") for version in (1, 4, 5)]


def test_a_turn_continues_while_there_is_more_to_commit_in_it() -> None:
    crowd = Crowd()
    reopened(crowd.table).alter([SetOption("theirs", "1")])
    crowd.table.alter([SetOption("ours", "1")])
    store = Turns(crowd.gate)
    handle_of(crowd.table).log.store = store

    asked = crowd.asks(adds("c"), adds("d", expect_version=4), adds("e"), adds("f"))

    assert [each.result().version for each in asked] == [4, 5, 6, 6]  # type: ignore[attr-defined]
    assert store.said == [
        ("ends", "3.json"),
        ("goes on", "4.json"),
        ("goes on", "5.json"),
        ("ends", "6.json"),
    ]
