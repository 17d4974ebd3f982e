"""Minimal forms of what schedules found: answers lost one after the other, in the wrong places."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import combinations

import pytest

from ledger import CommitUnknownError, Ledger, Schema, SetOption, Table, ViewSchema
from ledger.stores import Store
from tests.faults import Wrapped
from tests.lakes import lake_on, memory, no_time, orders
from tests.programme.checker import places_of, read_log
from tests.programme.simulation import ROOT

SCHEMA = Schema.of({"id": "BIGINT"})
VIEW = ViewSchema(SCHEMA.fields, "SELECT 1")


class LosesTheseAnswers(Wrapped):
    """Applies everything; the answers whose numbers are in `lost` never arrive."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self.lost: Collection[int] = ()
        self.asked = 0

    def _answer(self) -> None:
        self.asked += 1
        if self.asked in self.lost:
            raise OSError("the answer was lost")

    def create(self, key: str, body: bytes) -> bool:
        answer = super().create(key, body)
        self._answer()
        return answer

    def read(self, key: str) -> bytes | None:
        self._answer()
        return super().read(key)

    def confirm(self, key: str) -> bytes | None:
        self._answer()
        return super().confirm(key)

    def exists(self, key: str) -> bool:
        self._answer()
        return super().exists(key)

    def read_many(self, keys: Sequence[str]) -> Iterator[bytes | None]:
        self._answer()
        yield from super().read_many(keys)


ASKED: dict[str, Callable[[Ledger, Table], object]] = {
    "alter": lambda _, table: table.alter([SetOption("k", "v")], message="mine"),
    "create a table": lambda lake, _: lake.create_table("shop.new", SCHEMA, message="mine"),
    "create a view": lambda lake, _: lake.create_view("shop.v", VIEW, message="mine"),
    "drop a table": lambda lake, _: lake.drop_table("shop.orders", message="mine"),
}


def tried(what: str, lost: Collection[int]) -> tuple[str, bool]:
    """Lose some responses of one call; return its outcome, and whether it was committed."""
    inner = memory()
    store = LosesTheseAnswers(inner)
    lake = lake_on(store, retry_policy=no_time())
    table = orders(lake)
    store.asked, store.lost = 0, lost
    try:
        ASKED[what](lake, table)
        outcome = "acknowledged"
    except CommitUnknownError:
        outcome = "unknown"
    except OSError:
        outcome = "failed"
    bodies = {key: inner.read(key) or b"" for key in inner.keys("")}
    return outcome, any("mine" in places_of(read_log(bodies, each)) for each in (ROOT, "_ledger"))


LOST = [frozenset(some) for size in (1, 2, 3) for some in combinations(range(1, 10), size)]


@pytest.mark.parametrize("lost", LOST, ids=lambda lost: " ".join(map(str, sorted(lost))))
def test_no_lost_responses_make_a_committed_transaction_a_failed_one(lost: frozenset[int]) -> None:
    outcome, committed = tried("alter", lost)

    assert not (outcome == "failed" and committed)
    assert not (outcome == "acknowledged" and not committed)


@pytest.mark.parametrize("what", ASKED)
def test_a_store_that_falls_silent_makes_no_committed_transaction_a_failure(what: str) -> None:
    """From some answer on, none arrives: before the commit, in the middle, or after it."""
    outcomes = [tried(what, range(first, 10_000)) for first in range(1, 40)]

    assert not [each for each in outcomes if each in (("failed", True), ("acknowledged", False))]
    assert ("unknown", True) in outcomes
    assert outcomes[-1] == ("acknowledged", True)
