"""Requests to a local store of two handles that commit to one table in turn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from ledger import AddColumn, SetOption, Table
from ledger.stores.local import LocalStore
from tests.faults import Wrapped
from tests.lakes import lake_on, orders


class CountsCommitFiles(Wrapped):
    """Lists what is asked about the table's commit files: `+` found, `-` missing, `create`."""

    def __init__(self, inner: LocalStore) -> None:
        super().__init__(inner)
        self.asked: list[str] = []

    def _note(self, key: str, *, is_there: bool) -> None:
        if "orders/_ledger/log/" in key and key.endswith(".json"):
            self.asked.append("+" if is_there else "-")

    def read(self, key: str) -> bytes | None:
        body = super().read(key)
        self._note(key, is_there=body is not None)
        return body

    def read_many(self, keys: Sequence[str]) -> Iterator[bytes | None]:
        # Lazily, as the store does: a reader stops at the first one that is missing.
        for key, body in zip(keys, super().read_many(keys), strict=False):
            self._note(key, is_there=body is not None)
            yield body

    def exists(self, key: str) -> bool:
        is_there = super().exists(key)
        self._note(key, is_there=is_there)
        return is_there

    def create(self, key: str, body: bytes) -> bool:
        if "orders/_ledger/log/" in key:
            self.asked.append("create")
        return super().create(key, body)


def alternating(folder: Path) -> tuple[CountsCommitFiles, Table, Table]:
    """Return two handles that have met one another's commits, the first with a counted store."""
    store = CountsCommitFiles(LocalStore(folder))
    mine = orders(lake_on(store))
    other = lake_on(LocalStore(folder)).table("shop.orders")
    for number in range(3):
        other.alter([SetOption("theirs", str(number))])
        mine.alter([SetOption("mine", str(number))])
    store.asked.clear()
    return store, mine, other


@pytest.mark.parametrize("count", [1, 7])
def test_a_commit_reads_each_commit_of_another_writer_once(tmp_path: Path, count: int) -> None:
    store, mine, other = alternating(tmp_path)
    for number in range(count):
        other.alter([AddColumn((f"theirs{number}",), "INT")])

    added = mine.alter([AddColumn(("mine",), "INT")])

    assert added.attempts == 1
    # The first that is missing is asked for while waiting for the lock, and again under it.
    assert store.asked == [*"+" * count, "-", "-", "create"]


def test_writers_in_turn_lose_no_attempt(tmp_path: Path) -> None:
    store, mine, other = alternating(tmp_path)
    attempts = [
        table.alter([SetOption(f"team.{table is mine}", str(number))]).attempts
        for number in range(5)
        for table in (other, mine)
    ]
    assert attempts == [1] * 10
    assert store.asked.count("create") == store.asked.count("+") == 5
