"""The faults have the habit that they are named for, and no other."""

from __future__ import annotations

import pytest

from ledger.stores import MemoryStore
from tests.faults import DeliversTwice, Died, DiesAfter, LosesAnswers, LosesRequests, RacesBefore


@pytest.fixture
def inner(request: pytest.FixtureRequest) -> MemoryStore:
    return MemoryStore(f"faults-{request.node.name}")


def test_a_lost_answer_was_applied(inner: MemoryStore) -> None:
    store = LosesAnswers(inner, times=1)
    with pytest.raises(OSError, match="lost"):
        store.create("a", b"1")

    assert inner.read("a") == b"1"
    assert store.create("b", b"1") is True
    assert store.hits == 1


def test_a_lost_request_was_not_applied(inner: MemoryStore) -> None:
    store = LosesRequests(inner, on=lambda key: key == "b")
    assert store.create("a", b"1") is True
    for _ in range(2):
        with pytest.raises(OSError, match="lost"):
            store.create("b", b"1")

    assert list(inner.keys("")) == ["a"]


def test_a_create_delivered_twice_tells_the_winner_that_it_lost(inner: MemoryStore) -> None:
    assert DeliversTwice(inner).create("a", b"1") is False
    assert inner.read("a") == b"1"


def test_the_other_writer_is_faster_once(inner: MemoryStore) -> None:
    store = RacesBefore(inner, lambda: inner.create("a", b"theirs"))

    assert store.create("a", b"mine") is False
    assert inner.read("a") == b"theirs"
    assert store.create("b", b"mine") is True
    assert store.hits == 1


@pytest.mark.parametrize("writes", [0, 1, 2, 3])
def test_the_dead_do_nothing_more(inner: MemoryStore, writes: int) -> None:
    store = DiesAfter(inner, writes)
    for number in range(writes):
        store.replace(f"{number}", b"1")
    assert store.exists("0") is (writes > 0)

    with pytest.raises(Died):
        store.create("x", b"1")
    with pytest.raises(Died):
        store.read("0")
    with pytest.raises(Died):
        store.delete("0")
    assert len(list(inner.keys(""))) == writes
