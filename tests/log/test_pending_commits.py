"""Callers that wait for a pending commit are answered, whatever is raised in them meanwhile."""

from __future__ import annotations

import asyncio
import ctypes
import random
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import ledger
from ledger import (
    CommitUnknownError,
    FileChange,
    InvalidChangeError,
    Ledger,
    Schema,
    SetOption,
    Table,
)
from ledger.decide import TableIntent
from ledger.log import PendingCommit, Request
from ledger.state import TableState
from ledger.stores import Store
from ledger.table_handle import handle_of
from tests import programs
from tests.faults import Wrapped
from tests.lakes import lake_on, memory, orders
from tests.log.test_group_commit import Gate

RUNS = 200
CALLERS = 3
ANSWERED_WITHIN_S = 5.0


class InjectedError(Exception):
    """Raised in a thread by another, as task queues do for their time limits."""


class Slow(Wrapped):
    """A store whose creates take up to two milliseconds; keeps the names of their threads."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self.threads: set[str] = set()
        self._random = random.Random(5)

    def create(self, key: str, body: bytes) -> bool:
        self.threads.add(threading.current_thread().name)
        time.sleep(self._random.uniform(0, 0.002))
        return super().create(key, body)


def file(name: str) -> FileChange:
    return FileChange(path=f"{name}.parquet", record_count=1, file_size_in_bytes=9)


def plain(lake: Ledger) -> Table:
    return orders(lake, Schema.of({"id": "BIGINT"}))


def inject(thread: threading.Thread) -> None:
    assert thread.ident is not None
    ctypes.pythonapi.PyThreadState_SetAsyncExc(
        ctypes.c_ulong(thread.ident), ctypes.py_object(InjectedError)
    )


def submit(table: Table, key: str, value: str, commit_id: str) -> PendingCommit[TableState, Any]:
    """Submit an option's value without waiting for it."""
    intent = handle_of(table).intent(table.state, lambda _: [SetOption(key, value)])
    assert isinstance(intent, TableIntent)
    return handle_of(table).appender.submit(intent, Request(commit_id=commit_id, asked="00"))


class Callers:
    """Threads that append one file each, and the answer that each of them got."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.answers: dict[str, BaseException | None] = {}

    def ask(self, name: str, gate: threading.Barrier) -> None:
        try:
            gate.wait(ANSWERED_WITHIN_S)
            self.table.append([file(name)])
        except BaseException as error:  # noqa: BLE001 - each answer is checked
            self.answers[name] = error
        else:
            self.answers[name] = None


def test_exceptions_injected_into_waiting_callers_lose_no_answer_and_no_commit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # What is raised while an object is freed, or after a call, is reported nowhere else.
    monkeypatch.setattr(sys, "unraisablehook", lambda _: None)
    monkeypatch.setattr(threading, "excepthook", lambda _: None)
    store = memory()
    plain(lake_on(store))
    slow = Slow(store)
    table = lake_on(slow).table("shop.orders")
    table.append([file("first")])
    callers, dice = Callers(table), random.Random(45)
    injected = silent = 0
    for run in range(RUNS):
        gate = threading.Barrier(CALLERS + 1)
        threads = [
            threading.Thread(target=callers.ask, args=(f"{run}-{each}", gate), daemon=True)
            for each in range(CALLERS)
        ]
        for each in threads:
            each.start()
        gate.wait(ANSWERED_WITHIN_S)
        time.sleep(dice.uniform(0, 0.004))
        victims = dice.sample(threads, dice.randint(1, CALLERS))
        for each in victims:
            inject(each)
        for each in threads:
            each.join(ANSWERED_WITHIN_S)
            assert not each.is_alive(), "a caller got no answer"
        table.alter([SetOption("run", str(run))])
    live = {
        each.path.removesuffix(".parquet")
        for each in lake_on(store).table("shop.orders").at().files
    }
    for name, error in callers.answers.items():
        notes = " ".join(getattr(error, "__notes__", ()))
        assert error is None or isinstance(error, InjectedError), error
        if error is None or "was committed" in notes:
            assert name in live, (name, notes)
        # One raised after the last step that the handle knows of finds a commit that is done.
        silent += error is not None and not notes and name in live
        injected += bool(notes)
    assert len(callers.answers) > RUNS * CALLERS * 0.9
    assert injected > RUNS / 10
    assert silent <= RUNS / 50
    assert slow.threads == {"ledger-committer"}


SIGNALS = """
import random, signal, sys, time
import ledger

class Limit(Exception):
    pass

def limit(*_):
    raise Limit

def file(path):
    return ledger.FileChange(path=path, record_count=1, file_size_in_bytes=9)

table = ledger.open(sys.argv[1]).table("shop.orders")
table.append([file("first.parquet")])
signal.signal(signal.SIGALRM, limit)
signal.signal(signal.SIGINT, signal.default_int_handler)
dice, answers, longest_s = random.Random(7), {}, 0.0
for run in range(200):
    name, began_s = f"{run}", time.monotonic()
    try:
        signal.setitimer(signal.ITIMER_REAL, dice.uniform(0.0001, 0.003))
        table.append([file(f"{name}.parquet")])
        signal.setitimer(signal.ITIMER_REAL, 0)
        answers[name] = None
    except Limit as error:
        answers[name] = " ".join(getattr(error, "__notes__", ()))
    longest_s = max(longest_s, time.monotonic() - began_s)
signal.setitimer(signal.ITIMER_REAL, 0)
table.alter([ledger.SetOption("again", "1")])
files = ledger.open(sys.argv[1]).table("shop.orders").at().files
live = {each.path.removesuffix(".parquet") for each in files}
for name, notes in answers.items():
    if notes is None or "was committed" in notes:
        assert name in live, (name, notes)
# One raised after the last step that the handle knows of finds a commit that is done.
assert sum(notes == "" and name in live for name, notes in answers.items()) <= 8, answers
assert longest_s < 5, longest_s
assert sum(map(bool, answers.values())) > 10, answers
print("ok")
"""


def test_a_handler_that_raises_in_the_waiting_main_thread_loses_no_answer(tmp_path: Path) -> None:
    plain(ledger.open(str(tmp_path), author="tester"))

    assert_runs(SIGNALS, str(tmp_path))


def assert_runs(program: str, *args: str) -> subprocess.CompletedProcess[str]:
    """Run a program in a process of its own, which says at its end that all was well."""
    done = programs.run("-c", program, *args, timeout_s=60)
    assert (done.returncode, done.stdout.strip()) == (0, "ok"), done.stderr
    return done


def gated() -> tuple[Gate, Table]:
    """Return a handle whose next commit waits until its gate is opened."""
    store = memory()
    orders(lake_on(store))
    gate = Gate(store)
    table = lake_on(gate).table("shop.orders")
    table.state  # noqa: B018 - reading it is what opens it
    gate.closed = True
    return gate, table


def test_a_wait_that_times_out_names_the_commit_which_goes_on() -> None:
    gate, table = gated()
    pending = submit(table, "k", "1", "mine")

    with pytest.raises(TimeoutError) as timed_out:
        pending.wait(timeout_s=0.01)
    gate.opened.set()

    assert "commit mine is in progress and may be committed" in timed_out.value.__notes__[0]
    assert pending.wait(10).version == 1
    assert table.at().options["k"] == "1"


def test_several_threads_and_tasks_may_wait_for_one_commit() -> None:
    gate, table = gated()
    pending = submit(table, "k", "1", "mine")
    versions: list[int] = []
    threads = [
        threading.Thread(target=lambda: versions.append(pending.wait(10).version)) for _ in range(3)
    ]
    for each in threads:
        each.start()

    async def awaits() -> list[int]:
        futures = [pending.future(), pending.future()]
        gate.opened.set()
        return [(await pending).version, *[(await each).version for each in futures]]

    assert asyncio.run(awaits()) == [1, 1, 1]
    for each in threads:
        each.join(10)
    assert versions == [1, 1, 1]


def test_tasks_that_submit_together_share_commits() -> None:
    table = orders(lake_on(memory()))

    async def all_at_once() -> list[int]:
        pending = [submit(table, f"k{n}", "1", f"id{n}") for n in range(50)]
        return [done.version for done in await asyncio.gather(*(each.future() for each in pending))]

    versions = asyncio.run(all_at_once())

    assert len(set(versions)) < 50
    assert {f"k{n}" for n in range(50)} <= table.at().options.keys()


def test_a_task_that_is_cancelled_leaves_its_commit_on_its_way() -> None:
    gate, table = gated()
    notes: list[str] = []

    async def waits(pending: PendingCommit[TableState, Any]) -> None:
        try:
            await pending
        except asyncio.CancelledError as error:
            notes.extend(error.__notes__)
            raise

    async def cancels() -> None:
        task = asyncio.create_task(waits(submit(table, "k", "1", "mine")))
        await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.wait([task])

    asyncio.run(cancels())
    gate.opened.set()

    assert "commit mine is in progress and may be committed" in notes[0]
    table.alter([SetOption("next", "1")])
    assert table.at().options["k"] == "1"


def test_a_task_raises_the_reason_of_a_rejected_commit() -> None:
    table = orders(lake_on(memory()))

    async def asks() -> None:
        await submit(table, "bucket", "many", "mine")

    with pytest.raises(InvalidChangeError):
        asyncio.run(asks())


def test_a_future_whose_loop_is_closed_harms_no_other_waiter() -> None:
    gate, table = gated()
    pending = submit(table, "k", "1", "mine")

    async def leaves() -> None:
        pending.future()

    asyncio.run(leaves())
    gate.opened.set()

    assert pending.wait(10).version == 1
    assert table.alter([SetOption("next", "1")]).version == 2


EXITS = """
import signal, sys, threading, time
import ledger
from ledger.stores import LocalStore
from tests.faults import Wrapped
from tests.lakes import lake_on

from ledger.log import commit_queue as worker

class Slow(Wrapped):
    def create(self, key, body):
        if "/log/" in key and self.takes_s:
            signal.pthread_kill(threading.main_thread().ident, signal.SIGALRM)
            time.sleep(self.takes_s)
        return super().create(key, body)

class Limit(Exception):
    pass

def limit(*_):
    raise Limit

signal.signal(signal.SIGALRM, limit)
worker.EXIT_WAITS_S = 1.0
slow = Slow(LocalStore(sys.argv[1]))
slow.takes_s = 0
table = lake_on(slow).table("shop.orders")
table.alter([ledger.SetOption("first", "1")])
slow.takes_s = float(sys.argv[2])
try:
    table.alter([ledger.SetOption("last", "1")], commit_id="mine")
except Limit as error:
    assert "commit mine" in error.__notes__[0]
    print("ok")
"""


@pytest.mark.parametrize("takes_s", [0.3, 50.0])
def test_a_commit_pending_at_exit_is_finished_or_reported_as_unknown(
    takes_s: float, tmp_path: Path
) -> None:
    is_finished = takes_s < 1
    plain(ledger.open(str(tmp_path), author="tester"))
    began_s = time.monotonic()

    done = assert_runs(EXITS, str(tmp_path), str(takes_s))

    # The start of an interpreter and a wait of a second, and not of fifty.
    assert time.monotonic() - began_s < 45
    there = ledger.open(str(tmp_path)).table("shop.orders").at().options
    assert ("last" in there) == is_finished
    assert ("commits_unknown_at_exit" in done.stderr) != is_finished
    assert ("mine" in done.stderr) != is_finished


FORK = """
import os, threading, time, warnings
warnings.simplefilter("ignore")
import ledger
from tests.lakes import lake_on, memory, orders
from tests.log.test_group_commit import Gate

store = memory()
orders(lake_on(store))
gate = Gate(store)
table = lake_on(gate).table("shop.orders")
table.state
gate.closed = True
parents = threading.Thread(target=lambda: table.alter([ledger.SetOption("parents", "1")]))
parents.start()
assert gate.waiting.wait(10)
child = os.fork()
if child == 0:
    table.alter([ledger.SetOption("childs", "1")])
    os._exit(0 if table.at().options.keys() >= {"childs"} else 1)
gate.opened.set()
assert os.waitpid(child, 0)[1] == 0
parents.join(10)
assert table.at().options["parents"] == "1"
print("ok")
"""


def test_a_child_forked_during_a_commit_starts_with_a_fresh_handle() -> None:
    assert_runs(FORK)


def test_the_same_id_again_finds_what_an_interrupted_caller_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(threading, "excepthook", lambda _: None)
    gate, table = gated()
    callers = Callers(table)
    barrier = threading.Barrier(1)

    def asks() -> None:
        try:
            barrier.wait()
            table.alter([SetOption("k", "1")], commit_id="mine")
        except InjectedError as error:
            callers.answers["mine"] = error

    thread = threading.Thread(target=asks)
    thread.start()
    assert gate.waiting.wait(10)
    inject(thread)
    gate.opened.set()
    thread.join(ANSWERED_WITHIN_S)
    assert not thread.is_alive()

    again = table.alter([SetOption("k", "1")], commit_id="mine")

    assert again.repeated
    assert again.version == 1
    assert not isinstance(callers.answers.get("mine"), CommitUnknownError)


STORM = """
import os, random, signal, sys, threading, time
import ledger

signal.signal(signal.SIGINT, signal.default_int_handler)
table = ledger.open(sys.argv[1]).table("shop.orders")
table.append([ledger.FileChange(path="first.parquet", record_count=1, file_size_in_bytes=9)])
is_over = []

def presses():
    dice = random.Random(5)
    while not is_over:
        time.sleep(dice.uniform(0.0003, 0.004))
        os.kill(os.getpid(), signal.SIGINT)

presser = threading.Thread(target=presses)
committed, unsaid, heard, number = set(), set(), 0, 0
ends = time.monotonic() + 3
presser.start()
while not is_over:
    try:
        while time.monotonic() < ends:
            number += 1
            name = f"m{number}.parquet"
            try:
                table.append([ledger.FileChange(path=name, record_count=1, file_size_in_bytes=9)])
                committed.add(name)
            except KeyboardInterrupt as error:
                heard += 1
                notes = " ".join(getattr(error, "__notes__", ()))
                (committed if "was committed" in notes else unsaid).add(name)
                assert not notes or "was not committed" not in notes, notes
        is_over.append(True)
    except KeyboardInterrupt:
        heard += 1
while presser.is_alive():
    try:
        presser.join()
    except KeyboardInterrupt:
        pass
try:
    time.sleep(0.1)
except KeyboardInterrupt:
    pass
assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
live = {each.path for each in ledger.open(sys.argv[1]).table("shop.orders").at().files}
assert committed <= live, committed - live
assert heard > 50 and len(committed) > 50, (heard, len(committed))
print("ok")
"""


def test_a_storm_of_ctrl_c_loses_nothing(tmp_path: Path) -> None:
    plain(ledger.open(str(tmp_path), author="tester"))

    assert_runs(STORM, str(tmp_path))


FORKS = """
import os, signal, sys, threading, time, warnings
warnings.simplefilter("ignore")
from ledger import SetOption
from tests.faults import Wrapped
from tests.lakes import lake_on, memory, orders

class Forked(Wrapped):
    child = None

    def create(self, key, body):
        if self.child is None:
            self.child = 0
            other = threading.Thread(target=self.fork)
            other.start()
            other.join()
        return super().create(key, body)

    def fork(self):
        self.child = os.fork()
        if self.child == 0:
            try:
                # First in a thread of the child's, then in its main one.
                other = threading.Thread(target=table.alter, args=([SetOption("its", "1")],))
                other.start()
                other.join(10)
                assert table.at().options["its"] == "1"
                table.alter([SetOption("child", "1")])
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(5)
            except KeyboardInterrupt:
                os._exit(0 if table.at().options["child"] == "1" else 2)
            os._exit(1)

signal.signal(signal.SIGINT, signal.default_int_handler)
store = memory()
orders(lake_on(store))
forked = Forked(store)
table = lake_on(forked).table("shop.orders")
table.alter([SetOption("parent", "1")])
assert os.waitpid(forked.child, 0)[1] == 0, "the child never heard of it, or could not commit"
assert table.at().options["parent"] == "1"
print("ok")
"""


def test_a_child_forked_by_the_committer_thread_hears_ctrl_c_and_commits() -> None:
    assert_runs(FORKS)
