"""Minimal forms of what schedules found: answers lost one after the other, in the wrong places."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

import pytest

from ledger import CommitUnknownError, SetOption
from ledger.stores import Store
from tests.faults import Wrapped
from tests.lakes import lake_on, memory, no_time, orders
from tests.programme.checker import places_of, read_log
from tests.programme.simulation import ROOT


class LosesTheseAnswers(Wrapped):
    """Applies everything; the answers whose numbers are in `lost` never arrive."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self.lost: frozenset[int] = frozenset()
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


def tried(lost: frozenset[int]) -> tuple[str, bool]:
    """Lose some answers of one commit; return what its writer was told, and whether it landed."""
    inner = memory()
    store = LosesTheseAnswers(inner)
    table = orders(lake_on(store, patience=no_time()))
    store.asked, store.lost = 0, lost
    try:
        table.alter([SetOption("k", "v")], message="mine")
        told = "acknowledged"
    except CommitUnknownError:
        told = "unknown"
    except OSError:
        told = "failed"
    bodies = {key: inner.read(key) or b"" for key in inner.keys("")}
    return told, "mine" in places_of(read_log(bodies, ROOT))


LOST = [frozenset(some) for size in (1, 2, 3) for some in combinations(range(1, 10), size)]


@pytest.mark.parametrize("lost", LOST, ids=lambda lost: " ".join(map(str, sorted(lost))))
def test_no_lost_answers_make_a_commit_that_landed_a_failed_one(lost: frozenset[int]) -> None:
    told, landed = tried(lost)

    assert not (told == "failed" and landed)
    assert not (told == "acknowledged" and not landed)
