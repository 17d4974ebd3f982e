"""Reads, writes and results of a batch of concurrent commits."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest

from ledger import FileChange, SetOption, Table
from ledger.log import encode
from ledger.stores import Store
from ledger.table_handle import handle_of
from tests.lakes import lake_on
from tests.log.test_group_commit import Crowd, Gate, adds


def appends(name: str) -> Callable[[Table], object]:
    file = FileChange(path=name, record_count=1, file_size_in_bytes=1, field_ids=True)
    return lambda table: table.append([file])


def until(condition: object, seconds: float = 10) -> None:
    assert callable(condition)
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.001)


class Counting(Gate):
    """Counts what is read of the log."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self.read_keys: list[str] = []

    def read(self, key: str) -> bytes | None:
        self.read_keys += [key] if "/log/" in key else []
        return super().read(key)

    def read_many(self, keys: object) -> Iterator[bytes | None]:
        for key in keys:  # type: ignore[attr-defined]
            yield self.read(key)


def test_a_process_does_not_read_its_own_commits_again() -> None:
    crowd = Crowd.__new__(Crowd)
    crowd.gate = gate = Counting(Crowd().gate.inner)
    crowd.table = lake_on(gate).table("db.t")
    before = crowd.table.state.version
    gate.read_keys.clear()

    asked = crowd.asks(*(appends(f"f{number}.parquet") for number in range(4)), adds("x"))

    # All five looked at the state before the first one's commit, and have to know what it did.
    looked_at = [*gate.read_keys]
    assert {each.result().version for each in asked} == {before + 2}  # type: ignore[attr-defined]
    assert handle_of(crowd.table).log.layout.commit(before + 1) not in looked_at


def test_a_commit_of_many_has_the_bytes_that_it_would_have_been_encoded_to() -> None:
    crowd = Crowd()
    asked = crowd.asks(
        lambda table: table.alter(
            [SetOption("ключ", '\u2028"\\')], message="so\nso", properties={"b": "1", "a": "2"}
        ),
        appends("f.parquet"),
        adds("x", commit_id="mine"),
    )
    assert [each.exception() for each in asked] == [None] * 3
    log = handle_of(crowd.table).log
    for version in range(3):
        body = log.store.read(log.layout.commit(version))
        assert body is not None
        assert encode(log.codec.decode(body, "file")) == body


@pytest.mark.parametrize("count", [1, 2, 5])
def test_each_caller_of_one_commit_gets_the_state_after_all(count: int) -> None:
    crowd = Crowd()
    asked = crowd.asks(*(adds(f"c{number}") for number in range(count)))
    states = [each.result().state for each in asked]  # type: ignore[attr-defined]
    assert all(each == crowd.table.at().state for each in states)
