"""An interrupt affects its own thread alone; forks, pickles and handlers harm no handle."""

from __future__ import annotations

import ctypes
import gc
import multiprocessing
import os
import pickle
import random
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import ledger
from ledger import (
    FileChange,
    Identifier,
    InvalidInputError,
    SetOption,
    Table,
)
from ledger.state import TableBuilder
from ledger.table_handle import TableHandle, handle_of
from tests.lakes import lake_on, memory, orders
from tests.programs import output_of, run


class SoftTimeLimitError(Exception):
    """The error that a task queue raises in a thread that has worked for too long."""


class LimitAsTimeoutError(TimeoutError):
    """The same, of a class that the store's own failures have, too."""


def file(name: str) -> FileChange:
    return FileChange(path=f"{name}.parquet", record_count=1, file_size_in_bytes=9)


def plain(root: str) -> Table:
    lake = ledger.open(root, author="tester")
    lake.create_database("shop")
    return lake.create_table("shop.orders", ledger.Schema.of({"id": "BIGINT"}))


def raise_in(thread: threading.Thread, error: type[BaseException]) -> None:
    assert thread.ident is not None
    ctypes.pythonapi.PyThreadState_SetAsyncExc(
        ctypes.c_ulong(thread.ident), ctypes.py_object(error)
    )


class Outcomes:
    """Outcomes of the callers of one table, by the file that each wanted to add."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.acknowledged: set[str] = set()
        self.refused: dict[str, Exception] = {}
        self.interrupted: dict[str, BaseException] = {}

    def ask(self, name: str, interruption: type[BaseException]) -> None:
        """Append one file; whatever comes of it is kept."""
        try:
            self.table.append([file(name)])
        except interruption as error:
            self.interrupted[name] = error
        except Exception as error:  # noqa: BLE001 - any other error is what is tested
            self.refused[name] = error
        else:
            self.acknowledged.add(name)

    def check(self) -> None:
        """Check it against the log, as another process reads it."""
        live = {each.path.removesuffix(".parquet") for each in self.table.at().files}
        assert self.acknowledged <= live, "acknowledged and lost"
        assert self.refused == {}, "raised for what happened to another caller"
        outcomes = self.interrupted.items()
        for name, error in outcomes:
            (note,) = getattr(error, "__notes__", None) or ["never asked"]
            assert ("was committed" not in note) or name in live, note
            is_known = any(each in note for each in ("was committed", "may be", "may have"))
            assert name not in live or is_known, note


@pytest.fixture
def uncollected() -> Iterator[None]:
    """Let no garbage be collected, and no callback of its collector run."""
    gc.disable()
    yield
    gc.enable()


@pytest.mark.parametrize("error", [SoftTimeLimitError, LimitAsTimeoutError, KeyboardInterrupt])
@pytest.mark.usefixtures("uncollected")
def test_whatever_is_raised_in_one_thread_no_other_hears_of(
    error: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    # One that is raised between two calls' guards ends its thread. Nobody prints that end: the
    # next one would be raised in the printing, with a source file open.
    monkeypatch.setattr(threading, "excepthook", lambda _: None)
    # Nor is one reported that is raised while an object is freed; in a callback of the garbage
    # collector, which other tests register, it would harm these.
    monkeypatch.setattr(sys, "unraisablehook", lambda _: None)
    outcomes = Outcomes(plain(f"memory://interrupted-{error.__name__}"))
    # What the first commit imports is not raised into.
    outcomes.ask("first", ZeroDivisionError)
    dice, ends = random.Random(7), time.monotonic() + 1.5

    def victim(number: int) -> None:
        count = 0
        while time.monotonic() < ends:
            count += 1
            # Raised between two calls, it is nothing that the handle knows of.
            with suppress(error):
                outcomes.ask(f"v{number}-{count}", error)

    def other(number: int) -> None:
        count = 0
        while time.monotonic() < ends:
            count += 1
            outcomes.ask(f"o{number}-{count}", ZeroDivisionError)

    victims = [threading.Thread(target=victim, args=(n,), daemon=True) for n in range(2)]
    others = [threading.Thread(target=other, args=(n,), daemon=True) for n in range(4)]
    for each in [*victims, *others]:
        each.start()
    while time.monotonic() < ends - 0.2:
        raise_in(dice.choice(victims), error)
        time.sleep(dice.uniform(0.0005, 0.01))
    for each in [*victims, *others]:
        each.join(10)
        assert not each.is_alive(), "a thread hangs"
    assert len(outcomes.interrupted) > 5
    assert len(outcomes.acknowledged) > 20
    outcomes.check()


HANDLERS = """
import random, signal, sys, threading, time
import ledger

class SoftTimeLimit(Exception):
    pass

what, root = sys.argv[1], sys.argv[2]
table = ledger.open(root).table("shop.orders")
table.append([ledger.FileChange(path="first.parquet", record_count=1, file_size_in_bytes=9)])
dice = random.Random(3)
count = [0]
outcomes = []

def file(name):
    return ledger.FileChange(path=name, record_count=1, file_size_in_bytes=9)

def raises(*_):
    raise SoftTimeLimit

def commits(*_):
    count[0] += 1
    name = f"h{count[0]}.parquet"
    try:
        table.append([file(name)])
    except ledger.InvalidInputError as error:
        assert "signal handler" in str(error), error
        outcomes.append((name, "refused"))
    else:
        outcomes.append((name, "committed"))

signal.signal(signal.SIGALRM, raises if what == "raises" else commits)
acked, heard = set(), 0
ends = time.monotonic() + 3
number = 0
while time.monotonic() < ends:
    number += 1
    name = f"m{number}.parquet"
    try:
        signal.setitimer(signal.ITIMER_REAL, dice.uniform(0.0002, 0.01))
        try:
            if number % 3:
                table.append([file(name)])
                acked.add(name)
            else:
                table.at()
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    except SoftTimeLimit:
        heard += 1
signal.signal(signal.SIGALRM, signal.SIG_IGN)
live = {each.path for each in ledger.open(root).table("shop.orders").at().files}
assert acked <= live
assert {name for name, outcome in outcomes if outcome == "committed"} <= live
assert not {name for name, outcome in outcomes if outcome == "refused"} & live
assert heard > 5 if what == "raises" else len(outcomes) > 5, (heard, outcomes)
print("ok")
"""


@pytest.mark.parametrize("what", ["raises", "commits"])
def test_a_signal_handler_may_raise_or_commit_at_any_moment(what: str, tmp_path: Path) -> None:
    plain(str(tmp_path))
    done = run("-c", HANDLERS, what, str(tmp_path), timeout_s=60)
    assert (done.returncode, done.stdout.strip()) == (0, "ok"), done.stderr


FIRST_DECODERS = """
import signal, sys
import msgspec

root, built = sys.argv[1], msgspec.json.Decoder
met = []

def interrupted(*args, **options):
    # As if a signal came while the import builds what reads commits.
    if args and "Commit[" in str(args[0]) and not met:
        met.append(args[0])
        signal.raise_signal(signal.SIGUSR1)
    return built(*args, **options)

def handler(*_):
    raise KeyboardInterrupt

signal.signal(signal.SIGUSR1, handler)
msgspec.json.Decoder = interrupted
import ledger

try:
    ledger.open
except KeyboardInterrupt:
    print(len(met))
found = ledger.open(root).table("shop.orders").at()
print(*found.schema.names)
"""


def test_a_thread_interrupted_while_the_decoders_are_built_may_try_again(tmp_path: Path) -> None:
    plain(str(tmp_path))
    done = run("-c", FIRST_DECODERS, str(tmp_path), timeout_s=30)
    assert (done.returncode, done.stdout.split()) == (0, ["1", "id"]), done.stderr


FORKS = """
import os, sys, threading, time, warnings
warnings.simplefilter("ignore")
import ledger

root = sys.argv[1]
lake = ledger.open(root, author="tester")
lake.create_database("shop")
table = lake.create_table("shop.orders", ledger.Schema.of({"id": "BIGINT"}))
stop = threading.Event()

def busy(number):
    count = 0
    while not stop.is_set():
        count += 1
        table.append([ledger.FileChange(path=f"p{number}-{count}.parquet", record_count=1,
                                        file_size_in_bytes=9)])

threads = [threading.Thread(target=busy, args=(n,)) for n in range(4)]
for each in threads:
    each.start()
hung = []
for child in range(20):
    time.sleep(0.01)
    process = os.fork()
    if process == 0:
        table.alter([ledger.SetOption(f"child-{child}", "1")])
        assert table.at().options[f"child-{child}"] == "1"
        os._exit(0)
    ends = time.monotonic() + 20
    while (found := os.waitpid(process, os.WNOHANG))[0] == 0 and time.monotonic() < ends:
        time.sleep(0.005)
    if found[0] == 0:
        os.kill(process, 9)
        os.waitpid(process, 0)
    if found[0] == 0 or found[1] != 0:
        hung.append(child)
stop.set()
for each in threads:
    each.join()
seen = sum(key.startswith("child-") for key in ledger.open(root).table("shop.orders").at().options)
print(hung, seen)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
@pytest.mark.parametrize("place", ["local", "memory"])
def test_a_child_of_a_busy_handle_commits(place: str, tmp_path: Path) -> None:
    root = str(tmp_path) if place == "local" else "memory://forks"
    done = run("-c", FORKS, root, timeout_s=300)
    # What a child does to memory, its parent does not see.
    assert done.stdout.split("\n")[0] == f"[] {20 if place == 'local' else 0}", done.stderr


LOCKS = """
import os, signal, sys, time
from ledger.stores import LocalStore

store = LocalStore(sys.argv[1])
parent = os.fork()
if parent == 0:
    with store.lock("a/b"):
        if os.fork() == 0:
            time.sleep(5)
            os._exit(0)
        os.kill(os.getpid(), signal.SIGKILL)
os.waitpid(parent, 0)
signal.alarm(4)
with store.lock("a/b"):
    print("free")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_the_child_of_a_holder_that_was_killed_holds_no_lock(tmp_path: Path) -> None:
    done = run("-c", LOCKS, str(tmp_path), timeout_s=60)
    assert done.stdout == "free\n", done.stderr


def commits_there(pickled: bytes, name: str) -> int:
    table = pickle.loads(pickled)  # noqa: S301 - made below
    assert isinstance(table, Table)
    return table.append([file(name)]).version


def test_handles_pickle_and_commit_where_they_come_to(tmp_path: Path) -> None:
    table = plain(str(tmp_path))
    table.append([file("here")])

    with multiprocessing.get_context("spawn").Pool(1) as pool:
        version = pool.apply(commits_there, (pickle.dumps(table), "there"))

    assert version == 2
    assert {each.path for each in table.at().files} == {"here.parquet", "there.parquet"}
    lake = pickle.loads(pickle.dumps(ledger.open(str(tmp_path))))  # noqa: S301 - our own
    assert lake.tables("shop") == ["orders"]
    at = pickle.loads(pickle.dumps(table.at(version=1)))  # noqa: S301 - our own
    assert [each.path for each in at.files] == ["here.parquet"]


def test_a_table_in_memory_pickles_within_its_process() -> None:
    table = orders(lake_on(memory(), clock=clock))
    assert pickle.loads(pickle.dumps(table)).at().version == 0  # noqa: S301 - our own


def clock() -> int:
    return 1_700_000_000_000


def test_a_process_that_ends_saves_the_caches_that_it_owes(tmp_path: Path) -> None:
    plain(str(tmp_path))
    script = (
        "import sys, ledger\n"
        "table = ledger.open(sys.argv[1]).table('shop.orders')\n"
        "for n in range(100): table.alter([ledger.SetOption('k', str(n))])\n"
    )
    output_of("-c", script, tmp_path, timeout_s=60)

    layout = handle_of(ledger.open(str(tmp_path)).table("shop.orders")).log.layout
    assert (tmp_path / layout.checkpoint(100)).exists()


def test_what_a_handler_is_refused_while_its_thread_reads_is_no_damage(tmp_path: Path) -> None:
    plain(str(tmp_path)).alter([SetOption("k", "1")])
    lake = ledger.open(str(tmp_path), author="tester", trust="log")
    table = Table(
        TableHandle(Identifier("shop", "orders"), "shop.db/orders", handle_of(lake).setting)
    )

    def handler(frame: FrameType, event: str, _: object) -> Any:
        if frame.f_code is TableBuilder.add.__code__ and event == "line":
            sys.settrace(None)
            table.alter([SetOption("handler", "1")])
        return handler

    before = sys.gettrace()
    sys.settrace(handler)
    try:
        with pytest.raises(InvalidInputError, match="is reading this very handle") as refused:
            table.state  # noqa: B018 - reading it is what is interrupted
    finally:
        sys.settrace(before)
    assert refused.value.kind == "REENTERED"
    assert "handler" not in table.state.schema.options
    assert table.alter([SetOption("handler", "1")]).state.schema.options["handler"] == "1"
