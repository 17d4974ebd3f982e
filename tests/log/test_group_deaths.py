"""A thread that is killed on its way takes no other along, and nobody's transaction lands twice."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from linecache import getline
from types import FrameType
from typing import Any

import pytest

from ledger import Schema, SetOption, Table
from ledger.events.schema_events import ColumnAdded
from ledger.log import append as append_module
from ledger.log import entry as entry_module
from ledger.log import waiting as waiting_module
from ledger.log.entry import Entry
from ledger.log.request import Request
from ledger.log.waiting import Waiting
from tests.faults import Died
from tests.lakes import lake_on, memory
from tests.log.test_group_commit import adds, appends, reopened
from tests.log.test_group_hazards import trapped
from tests.log.test_group_waiting import until

Plain = Entry[int, str]

_WATCHED = {each.__file__ for each in (append_module, entry_module, waiting_module)}


class Turn:
    """A mutex that does something of a test's choice before it is taken, or after it is free."""

    def __init__(
        self,
        before: Callable[[], object] = lambda: None,
        after: Callable[[], object] = lambda: None,
    ) -> None:
        self._inner = threading.RLock()
        self._depth = 0
        self.before = before
        self.after = after

    def __enter__(self) -> None:
        before, self.before = self.before, lambda: None
        before()
        self._inner.acquire()
        self._depth += 1

    def __exit__(self, *_: object) -> None:
        self._depth -= 1
        is_free = not self._depth
        self._inner.release()
        if is_free:
            self.after()


def goes_on(table: Table, name: str = "z") -> None:
    """Check that the handle still commits, in a thread that a failure does not hang."""
    done: list[object] = []
    thread = threading.Thread(target=lambda: done.append(adds(name)(table)), daemon=True)
    thread.start()
    thread.join(4)
    assert done, "the handle hangs"


def plain(name: str) -> Plain:
    return Plain(None, Request(commit_id=name))  # type: ignore[arg-type]


def plain_table() -> Table:
    lake = lake_on(memory())
    lake.create_database("db")
    return lake.create_table("db.t", Schema.of({"id": "INT"}))


def test_who_is_interrupted_before_his_turn_holds_up_nobody() -> None:
    table = plain_table()

    def dies() -> None:
        raise Died

    table.log.mutex = Turn(before=dies)  # type: ignore[assignment]
    with pytest.raises(Died):
        table.alter([SetOption("k", "1")])

    goes_on(table)
    assert "k" not in reopened(table).at().schema.options


def test_a_rider_that_is_gone_does_not_lead_when_his_leader_dies() -> None:
    waiting: Waiting[int, str] = Waiting()
    leader, other = plain("leader"), plain("other")
    waiting.come(leader)

    class Taken(Plain):
        def wait(self) -> None:
            waiting.gathered()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        waiting.come(Taken(None, Request(commit_id="rider")))  # type: ignore[arg-type]
    waiting.hand_over(())

    thread = threading.Thread(target=waiting.come, args=(other,), daemon=True)
    thread.start()
    thread.join(3)
    assert not thread.is_alive()


@pytest.mark.parametrize("work", [lambda n: appends(f"f{n}"), lambda n: adds(f"c{n}")])
def test_what_a_dead_leader_landed_and_others_read_lands_once(
    work: Callable[[int], Callable[[Table], object]],
) -> None:
    turn = Turn()

    def lands_and_dies(create: Callable[[], bool]) -> bool:
        create()
        turn.after = others_read
        raise Died

    def others_read() -> None:
        # A thread that only looks has waited for its turn, and takes it.
        turn.after = lambda: None
        reader = threading.Thread(target=crowd.table.log.refresh)
        reader.start()
        reader.join()

    crowd = trapped(lands_and_dies)
    crowd.table.log.mutex = turn  # type: ignore[assignment]

    asked = crowd.asks(*(work(n) for n in range(3)))

    failed = [each.exception() for each in asked if each.exception() is not None]
    assert [type(each) for each in failed] == [Died]
    landed = [each for commit in reopened(crowd.table).events() for each in commit.transactions]
    assert len(landed) == 2 + 3
    assert {each.result().version for each in asked if each.exception() is None} == {2}  # type: ignore[attr-defined]


@contextmanager
def killed_at(moment: int) -> Iterator[Callable[[], bool]]:
    """Kill this thread at a line of the commit path; yield a way to ask whether it came to it."""
    lines = count()
    killed = False

    def trace(frame: FrameType, event: str, _arg: Any) -> Any:
        nonlocal killed
        if frame.f_code.co_filename not in _WATCHED:
            return None
        text = getline(frame.f_code.co_filename, frame.f_lineno).lstrip()
        # Python interrupts nobody between the end of a block and giving back its lock.
        if event != "line" or killed or text.startswith("with "):
            return trace
        if next(lines) == moment:
            killed = True
            raise Died
        return trace

    sys.settrace(trace)
    try:
        yield lambda: killed
    finally:
        sys.settrace(None)


def test_wherever_a_thread_is_killed_the_handle_goes_on() -> None:
    hung = []
    for moment in range(1_000):
        table = plain_table()
        table.state  # noqa: B018 - reading it is what warms the handle
        with killed_at(moment) as was_killed, suppress(Died):
            table.alter([SetOption("k", "1")])
        if not was_killed():
            break
        try:
            goes_on(table)
        except AssertionError:
            hung.append(moment)
    assert moment > 50
    assert not hung


def test_wherever_a_leader_is_killed_who_rides_with_him_lands_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Killed while he hands over, he wakes nobody.
    monkeypatch.setattr(entry_module, "_LOOKS_AFTER_S", 0.02)
    for moment in range(1_000):
        table = plain_table()
        table.state  # noqa: B018 - reading it is what warms the handle
        done: list[object] = []
        rider = threading.Thread(target=lambda: done.append(adds("r")(table)), daemon=True)  # noqa: B023

        def gathers(table: Table = table, rider: threading.Thread = rider) -> None:
            rider.start()
            until(lambda: len(table._appender._waiting) == 2)

        table.log.mutex = Turn(before=gathers)  # type: ignore[assignment]
        with killed_at(moment) as was_killed, suppress(Died):
            table.alter([SetOption("k", "1")])
        if not was_killed():
            break
        if not rider.ident:
            continue
        rider.join(4)
        assert len(done) == 1, f"the rider hangs when his leader is killed at {moment}"
        table.log.mutex = threading.RLock()
        commits = list(reopened(table).events())
        landed = [
            commit.version
            for commit in commits
            for transaction in commit.transactions
            for event in transaction.events
            if isinstance(event, ColumnAdded)
        ]
        assert landed == [done[0].version]  # type: ignore[attr-defined]
    assert moment > 50
