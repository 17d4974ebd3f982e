"""A handle that was idle while files were removed does not continue from what is gone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress

import pytest
from attrs import define

from ledger import DamagedLogError, SetOption, Table
from ledger.log.request import RetryPolicy
from ledger.log.stream_log import SURE_FOR_S
from ledger.stores import MemoryStore, Store
from ledger.table_handle import handle_of
from tests.faults import Wrapped
from tests.lakes import lake_on, memory, orders


@define
class Watch:
    seconds: float = 0.0

    def __call__(self) -> float:
        return self.seconds


class CountsReads(Wrapped):
    """Counts what is asked of the table; the catalog's rules are looked at with every change."""

    reads = 0

    def read(self, key: str) -> bytes | None:
        self.reads += "orders" in key
        return super().read(key)

    def exists(self, key: str) -> bool:
        self.reads += "orders" in key
        return super().exists(key)


def warm(store: MemoryStore | CountsReads, watch: Watch) -> Table:
    table = orders(lake_on(store, retry_policy=RetryPolicy(monotonic=watch)))
    for value in ("0", "1", "2"):
        table.alter([SetOption("k", value)])
    return table


def keys(table: Table, versions: Sequence[int]) -> list[str]:
    return [handle_of(table).log.layout.commit(each) for each in versions]


@pytest.mark.parametrize("body", [None, b"{}\n"])
def test_a_handle_whose_newest_commit_was_taken_away_is_refused(body: bytes | None) -> None:
    store, watch = memory(), Watch()
    table = warm(store, watch)
    (newest, following) = keys(table, (3, 4))
    store.delete(newest)
    if body is not None:
        store.create(newest, body)
    watch.seconds += SURE_FOR_S

    with pytest.raises(DamagedLogError, match="0003.json was read before") as refused:
        table.alter([SetOption("k", "v")])

    assert refused.value.file == newest
    assert not store.exists(following)


def test_a_handle_does_not_fill_the_hole_that_somebody_made_behind_it() -> None:
    store, watch = memory(), Watch()
    table = warm(store, watch)
    other = lake_on(store).table("shop.orders")
    other.alter([SetOption("a", "v")])
    other.alter([SetOption("b", "v")])
    hole = keys(table, (4,))[0]
    store.delete(hole)
    watch.seconds += SURE_FOR_S

    with pytest.raises(DamagedLogError, match="the log has a gap"):
        table.alter([SetOption("k", "v")])
    assert not store.exists(hole)


def test_a_writer_at_work_does_not_look_again() -> None:
    store, watch = CountsReads(memory()), Watch()
    table = warm(store, watch)
    before = store.reads

    table.alter([SetOption("k", "3")])
    assert store.reads == before

    watch.seconds += SURE_FOR_S
    table.alter([SetOption("k", "4")])
    table.alter([SetOption("k", "5")])
    assert store.reads == before + 2


class SpoilsEveryThird(Wrapped):
    """Loses the answer to every third read, once it is bad."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self.is_bad = False
        self.asked = 0

    def read(self, key: str) -> bytes | None:
        if self.is_bad:
            self.asked += 1
            if self.asked % 3 == 0:
                raise OSError(f"the answer to {key!r} was lost")
        return super().read(key)

    def read_many(self, keys: Sequence[str]) -> Iterator[bytes | None]:
        return map(self.read, keys)


def test_a_reader_keeps_what_it_has_read_when_a_response_is_lost() -> None:
    store = memory()
    others = orders(lake_on(store))
    bad = SpoilsEveryThird(store)
    late = lake_on(bad).table("shop.orders")
    for number in range(20):
        others.alter([SetOption("k", str(number))])
    bad.is_bad = True
    reached: list[int] = []
    while not reached or reached[-1] < others.state.version:
        with suppress(OSError):
            handle_of(late).log.catch_up()
        head = handle_of(late).log.head
        reached.append(head.state.version if head else -1)
    assert len(reached) > 5
    assert reached == sorted(set(reached)), "a look came to nothing"
    assert late.state == others.state
