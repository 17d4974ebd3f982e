"""Who writes alone, where nothing but Ctrl-C interrupts him, lands his commits himself.

Ctrl-C waits meanwhile; where it cannot wait, or others write, too, a thread of the handle's own
lands them.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from itertools import count
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import ledger
from ledger import FileChange, Schema, SetOption, Table
from ledger.log.group import riders
from ledger.log.group.interruptions import INSISTS_AFTER_S
from ledger.stores import LocalStore, Store, Turn
from tests.faults import Wrapped
from tests.lakes import lake_on, memory, orders
from tests.log.test_group_waiting import until

MAIN = "MainThread"
APART = "ledger-commits"
STEP = 5
"""Every so manieth call, from another one on in each case."""

pytestmark = pytest.mark.alone


@pytest.fixture(autouse=True)
def ctrl_c_is_heard() -> Iterator[None]:
    """Let Ctrl-C do what it does in every program, also where the tests' parent ignores it."""
    with handled(signal.SIGINT, signal.default_int_handler):
        yield


class Told(Wrapped):
    """Keeps the names of the threads that create commits, and runs what it is given there."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self.threads: list[str] = []
        self.before: Callable[[], None] = lambda: None
        self.after: Callable[[], None] = lambda: None

    def create(self, key: str, body: bytes) -> bool:
        self.threads.append(threading.current_thread().name)
        self.before()
        created = super().create(key, body)
        self.after()
        return created


def file(name: str) -> FileChange:
    return FileChange(path=f"{name}.parquet", record_count=1, file_size_in_bytes=9)


def plain(store: Store) -> None:
    orders(lake_on(store), Schema.of({"id": "BIGINT"}))


def table_on(store: Store) -> Table:
    plain(store)
    table = lake_on(store).table("shop.orders")
    table.state  # noqa: B018 - reading it is what opens it
    return table


def lands_in(store: Told, ask: Callable[[], object]) -> str:
    """Return the name of the thread that lands what is asked."""
    store.threads.clear()
    ask()
    (name,) = store.threads
    return name


@contextmanager
def handled(
    number: int, handler: Callable[[int, FrameType | None], object] | int
) -> Iterator[None]:
    before = signal.signal(number, handler)
    try:
        yield
    finally:
        signal.signal(number, before)


@contextmanager
def traced() -> Iterator[None]:
    before = sys.gettrace()
    sys.settrace(lambda *_: None)
    try:
        yield
    finally:
        sys.settrace(before)


def ctrl_c() -> None:
    signal.raise_signal(signal.SIGINT)


def is_as_ever() -> bool:
    """Whether Ctrl-C does what it does in every program."""
    return signal.getsignal(signal.SIGINT) is signal.default_int_handler


SITUATIONS: dict[str, tuple[Callable[[], AbstractContextManager[object]], str]] = {
    "nothing interrupts": (nullcontext, MAIN),
    "Ctrl-C is ignored": (lambda: handled(signal.SIGINT, signal.SIG_IGN), MAIN),
    "Ctrl-C has a handler": (lambda: handled(signal.SIGINT, lambda *_: None), APART),
    "a signal has a handler": (lambda: handled(signal.SIGALRM, lambda *_: None), APART),
    "each line is traced": (traced, APART),
}


@pytest.mark.parametrize("situation", SITUATIONS)
def test_the_main_thread_lands_its_own_where_nothing_but_ctrl_c_interrupts_it(
    situation: str,
) -> None:
    store = Told(memory())
    table = table_on(store)
    interrupts, name = SITUATIONS[situation]

    with interrupts():
        before = signal.getsignal(signal.SIGINT)
        assert lands_in(store, lambda: table.append([file("a")])) == name
        assert signal.getsignal(signal.SIGINT) is before


def test_a_thread_into_which_somebody_may_raise_leaves_its_own_to_another() -> None:
    store = Told(memory())
    table = table_on(store)

    with ThreadPoolExecutor(1) as pool:
        name = lands_in(store, lambda: pool.submit(table.append, [file("a")]).result())

    assert name == APART


def test_what_takes_long_is_landed_apart() -> None:
    far, near = Told(memory()), Told(memory())
    far.is_near = False
    away = table_on(far)
    ours, other = table_on(near), lake_on(near.inner).table("shop.orders")

    assert lands_in(far, lambda: away.append([file("a")])) == APART
    other.append([file("a")])
    near.threads.clear()
    ours.alter([SetOption("first", "loses")])
    assert near.threads == [MAIN, MAIN]
    assert lands_in(near, lambda: ours.alter([SetOption("second", "waits")])) == APART


def test_who_comes_while_the_main_thread_lands_waits_for_it_and_is_landed_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # He is told, and does not find out by looking again.
    monkeypatch.setattr(riders, "LOOKS_AGAIN_S", 60.0)
    store = Told(memory())
    table = table_on(store)
    numbers = count()
    with ThreadPoolExecutor(3) as pool:
        later: list[Future[Any]] = []

        def others_come() -> None:
            store.before = lambda: None
            assert table._appender.is_outrun
            later.extend(pool.submit(table.append, [file(f"b{n}")]) for n in range(3))
            until(lambda: len(table._appender._group) == 3)
            time.sleep(0.05)
            assert store.threads == [MAIN], "both landed at once"

        store.before = others_come
        store.threads.clear()
        mine = table.append([file("a")])
        versions = {each.result(10).version for each in later}

    assert versions == {mine.version + 1}
    assert store.threads == [MAIN, APART]
    until(lambda: lands_in(store, lambda: table.append([file(f"c{next(numbers)}")])) == MAIN)


def test_who_comes_while_another_thread_lands_leaves_his_own_to_it() -> None:
    store = Told(memory())
    table = table_on(store)
    is_landing = threading.Event()

    def main_comes() -> None:
        store.before = lambda: None
        is_landing.set()
        until(lambda: len(table._appender._group) == 1)

    store.before = main_comes
    store.threads.clear()
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(table.append, [file("a")])
        assert is_landing.wait(10)
        mine = table.append([file("b")])

    assert mine.version == first.result(10).version + 1
    assert store.threads == [APART, APART]


def test_main_thread_and_others_lose_nothing_beside_one_another(tmp_path: Path) -> None:
    table = table_on(LocalStore(tmp_path))
    ends = time.monotonic() + 1.0

    def asks(who: str) -> list[str]:
        landed: list[str] = []
        while time.monotonic() < ends:
            name = f"{who}{len(landed)}"
            table.append([file(name)])
            landed.append(f"{name}.parquet")
            time.sleep(random.Random(name).uniform(0, 0.003))
        return landed

    with ThreadPoolExecutor(2) as pool:
        others = [pool.submit(asks, each) for each in ("a", "b")]
        mine = asks("main")
        theirs = [name for each in others for name in each.result(30)]

    live = [each.path for each in lake_on(LocalStore(tmp_path)).table("shop.orders").at().files]
    assert sorted(live) == sorted([*mine, *theirs])


def test_ctrl_c_waits_until_the_commit_has_landed() -> None:
    store = Told(memory())
    table = table_on(store)
    store.before = ctrl_c

    with pytest.raises(KeyboardInterrupt) as interrupted:
        table.append([file("a")])

    (note,) = interrupted.value.__notes__
    assert f"has landed in version {table.state.version}" in note
    assert [each.path for each in lake_on(store).table("shop.orders").at().files] == ["a.parquet"]
    assert is_as_ever()


def test_ctrl_c_is_raised_although_the_commit_is_refused() -> None:
    store = Told(memory())
    table = table_on(store)
    lake_on(store.inner).table("shop.orders").alter([SetOption("a", "theirs")])
    store.before = ctrl_c

    with pytest.raises(KeyboardInterrupt) as interrupted:
        table.alter([SetOption("a", "ours")])

    (note,) = interrupted.value.__notes__
    assert "did not land: " in note
    assert is_as_ever()


def test_who_presses_ctrl_c_again_after_a_second_is_heard_at_once() -> None:
    store = Told(memory())
    table = table_on(store)
    waited_s = []

    def hangs() -> None:
        ctrl_c()
        ctrl_c()
        began_s = time.monotonic()
        with suppress(KeyboardInterrupt):
            for _ in range(100):
                time.sleep(0.05)
                ctrl_c()
        waited_s.append(time.monotonic() - began_s)
        raise KeyboardInterrupt

    store.after = hangs

    with pytest.raises(KeyboardInterrupt) as interrupted:
        table.append([file("a")])

    (note,) = interrupted.value.__notes__
    assert "may have landed" in note
    # Five seconds would be to the end of pressing.
    assert INSISTS_AFTER_S <= waited_s[0] < 5
    assert is_as_ever()
    store.after = lambda: None
    # What had landed is found, and goes before what comes next.
    assert table.append([file("b")]).version == 2
    assert len(table.at().files) == 2


class Held(Told):
    """Its lock is somebody else's, until Ctrl-C comes."""

    @contextmanager
    def lock(self, key: str) -> Iterator[Turn | None]:
        ctrl_c()
        with super().lock(key) as turn:
            yield turn


def test_who_waits_for_the_lock_is_interrupted_and_has_asked_for_nothing() -> None:
    store = memory()
    plain(store)
    held = Held(store)
    table = lake_on(held).table("shop.orders")
    before = table.state.version

    with pytest.raises(KeyboardInterrupt) as interrupted:
        table.append([file("a")])

    assert not hasattr(interrupted.value, "__notes__")
    assert lake_on(store).table("shop.orders").state.version == before
    assert is_as_ever()


def calls_until(at: int, ask: Callable[[], object]) -> tuple[BaseException | None, bool]:
    """Ask, and press Ctrl-C where Python asks for signals the `at`-th time in our own code.

    Returns:
        What came out, and whether it came to that.
    """
    own = str(Path(ledger.__file__).parent)
    count = 0

    def profile(frame: FrameType, event: str, _: object) -> None:
        nonlocal count
        if event in {"call", "c_return"} and frame.f_code.co_filename.startswith(own):
            count += 1
            if count == at:
                sys.setprofile(None)
                ctrl_c()

    sys.setprofile(profile)
    try:
        ask()
    except KeyboardInterrupt as error:
        return error, True
    finally:
        sys.setprofile(None)
    return None, count >= at


def is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


def open_files() -> int:
    """Return how many of this process's files are open; not every system lists them."""
    return sum(map(is_open, range(512)))


@pytest.mark.parametrize("first", range(1, STEP + 1))
def test_whenever_ctrl_c_is_pressed_it_is_told_what_came_of_the_commit(
    first: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What is raised while an object is freed, Python tells nobody but this.
    lost: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", lost.append)
    plain(LocalStore(tmp_path))
    table = lake_on(LocalStore(tmp_path)).table("shop.orders")
    reader = lake_on(LocalStore(tmp_path)).table("shop.orders")
    table.append([file("first")])
    before = open_files()
    at, landed, untold, unheard = first, 0, 0, 0
    while True:
        name = f"a{at}"
        error, was_reached = calls_until(at, lambda name=name: table.append([file(name)]))  # type: ignore[misc]
        if not was_reached:
            break
        assert is_as_ever()
        stands = any(each.path == f"{name}.parquet" for each in reader.at().files)
        notes = " ".join(getattr(error, "__notes__", ()))
        assert error is not None or lost, at
        assert stands == ("has landed" in notes) or error is None, (at, notes)
        landed, untold = landed + stands, untold + (not notes)
        unheard += error is None
        lost.clear()
        at += STEP
    assert landed > 10
    assert untold > 10
    assert unheard < 5
    assert open_files() <= before + 3
    # Nobody holds the lock.
    assert reader.append([file("last")]).version == table.state.version


def assert_runs(program: str, *args: str) -> None:
    """Run a program in a process of its own, which says at its end that all was well."""
    done = subprocess.run(
        [sys.executable, "-c", program, *args],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        cwd=Path(__file__).parents[2],
    )
    assert (done.returncode, done.stdout.strip()) == (0, "ok"), done.stderr


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
landed, unsaid, heard, number = set(), set(), 0, 0
ends = time.monotonic() + 3
presser.start()
while not is_over:
    try:
        while time.monotonic() < ends:
            number += 1
            name = f"m{number}.parquet"
            try:
                table.append([ledger.FileChange(path=name, record_count=1, file_size_in_bytes=9)])
                landed.add(name)
            except KeyboardInterrupt as error:
                heard += 1
                notes = " ".join(getattr(error, "__notes__", ()))
                (landed if "has landed" in notes else unsaid).add(name)
                assert not notes or "landed" in notes or "may land" in notes, notes
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
assert landed <= live, landed - live
assert heard > 50 and len(landed) > 50, (heard, len(landed))
print("ok")
"""


def test_a_storm_of_ctrl_c_loses_nothing(tmp_path: Path) -> None:
    lake = ledger.open(str(tmp_path), author="tester")
    lake.create_database("shop")
    lake.create_table("shop.orders", ledger.Schema.of({"id": "BIGINT"}))

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


def test_a_child_that_another_thread_forks_meanwhile_hears_of_ctrl_c_and_commits() -> None:
    assert_runs(FORKS)
