"""Threads that wait for one commit go on one after the other, whatever becomes of one of them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import pytest

from ledger import FileChange, SetOption, Table
from ledger.log.codec import encode
from ledger.log.group.riders import Group, Rider
from ledger.log.request import Appended, Request
from ledger.stores import Store
from tests.lakes import lake_on
from tests.log.test_group_commit import Crowd, Gate, adds

Plain = Rider[int, str]


class Interrupted(Plain):
    """A rider whose thread is interrupted right when it was woken."""

    def wait(self) -> None:
        super().wait()
        raise KeyboardInterrupt


class Lost(Plain):
    """A rider whose thread never comes back from waiting."""

    def wait(self) -> None:
        super().wait()
        threading.Event().wait()


def appends(name: str) -> Callable[[Table], object]:
    file = FileChange(path=name, record_count=1, file_size_in_bytes=1, field_ids=True)
    return lambda table: table.append([file])


def rider(kind: type[Plain], name: str) -> Plain:
    return kind(None, Request(commit_id=name, asked="00"))  # type: ignore[arg-type]


@contextmanager
def a_group(*kinds: type[Plain]) -> Iterator[list[str]]:
    """Let riders of these kinds land together; yield who has gone on."""
    opened = threading.Event()
    trips: list[int] = []

    def land(riders: Sequence[Plain]) -> None:
        trips.append(len(riders))
        assert opened.wait(10)
        for each in riders:
            each.landed(Appended(0, 0))

    group: Group[int, str] = Group()
    gone_on: list[str] = []

    def rides(each: Plain) -> None:
        try:
            group.ride(each, land)
        except KeyboardInterrupt:
            return
        gone_on.append(each.request.commit_id)

    def starts(each: Plain) -> None:
        threading.Thread(target=rides, args=(each,), daemon=True).start()

    starts(rider(Plain, "first"))
    until(lambda: trips == [1])
    for number, kind in enumerate(kinds):
        starts(rider(kind, str(number)))
        until(lambda count=number + 1: len(group) == count)
    opened.set()
    until(lambda: "first" in gone_on)
    yield gone_on
    assert trips == [1, len(kinds)]


def until(condition: object, seconds: float = 10) -> None:
    assert callable(condition)
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.001)


def went(gone_on: list[str], *numbers: int) -> None:
    until(lambda: sorted(gone_on) == sorted(["first", *map(str, numbers)]))


def test_all_go_on() -> None:
    with a_group(*[Plain] * 16) as gone_on:
        went(gone_on, *range(16))


def test_who_is_interrupted_wakes_the_next_all_the_same() -> None:
    with a_group(Plain, Interrupted, Interrupted, Plain) as gone_on:
        went(gone_on, 0, 3)


def test_what_a_handler_asks_waits_for_nobody_whom_it_has_stopped() -> None:
    """A rider is woken by the one before it, and that one's thread is in the handler."""
    opened, here = threading.Event(), threading.get_ident()
    trips: list[list[str]] = []
    looked_s: list[float] = []

    def land(riders: Sequence[Plain]) -> None:
        trips.append([each.request.commit_id for each in riders])
        assert opened.wait(10)
        for each in riders:
            each.landed(Appended(0, 0))

    class Handlers(Plain):
        @property
        def is_answered(self) -> bool:
            if threading.get_ident() == here:
                looked_s.append(time.monotonic())
            return super().is_answered

        def wait(self) -> None:
            opened.set()
            super().wait()

    class Stopped(Plain):
        def wait(self) -> None:
            group.ride(rider(Handlers, "the handler's"), land)
            super().wait()

    group: Group[int, str] = Group()
    other = threading.Thread(target=lambda: group.ride(rider(Plain, "first"), land))
    other.start()
    until(lambda: trips == [["first"]])
    group.ride(rider(Stopped, "stopped"), land)
    other.join(10)

    assert trips == [["first"], ["stopped", "the handler's"]]
    # Who was not woken looks for himself, a second later.
    assert looked_s == []


def test_who_never_comes_back_holds_up_the_others_for_a_second_at_most() -> None:
    with a_group(Plain, Lost, Plain, Plain) as gone_on:
        went(gone_on, 0, 2, 3)


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


def test_nobody_reads_again_what_this_process_has_landed() -> None:
    crowd = Crowd.__new__(Crowd)
    crowd.gate = gate = Counting(Crowd().gate.inner)
    crowd.table = lake_on(gate).table("db.t")
    before = crowd.table.state.version
    gate.read_keys.clear()

    asked = crowd.asks(*(appends(f"f{number}.parquet") for number in range(4)), adds("x"))

    # All five looked at the state before the first one's commit, and have to know what it did.
    looked_at = [*gate.read_keys]
    assert {each.result().version for each in asked} == {before + 2}  # type: ignore[attr-defined]
    assert crowd.table.log.layout.commit(before + 1) not in looked_at


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
    log = crowd.table.log
    for version in range(3):
        body = log.store.read(log.layout.commit(version))
        assert body is not None
        assert encode(log.codec.decode(body, "file")) == body


@pytest.mark.parametrize("count", [1, 2, 5])
def test_each_of_one_commit_is_told_the_state_after_all(count: int) -> None:
    crowd = Crowd()
    asked = crowd.asks(*(adds(f"c{number}") for number in range(count)))
    states = [each.result().state for each in asked]  # type: ignore[attr-defined]
    assert all(each == crowd.table.at().state for each in states)


def test_a_rider_waits_however_long_it_takes_and_needs_nobody_to_wake_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("ledger.log.group.riders._LOOKS_AFTER_S", 0.01)
    slow = rider(Plain, "slow")
    threading.Timer(0.05, slow.landed, [Appended(0, 0)]).start()

    slow.wait()

    assert slow.is_answered


def test_nobody_waits_for_one_who_was_answered() -> None:
    may_end, looked = threading.Event(), []

    def land(riders: Sequence[Plain]) -> None:
        looked.append(group.is_busy)
        for each in riders:
            each.landed(Appended(1, 0))
            each.wake()
        may_end.wait(10)

    group: Group[int, str] = Group()
    assert group.ride(rider(Plain, "alone"), land).version == 0

    assert (looked, group.is_busy) == ([True], False)
    may_end.set()
