"""Local stores shared by processes, some of which get killed."""

from __future__ import annotations

import random
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ledger.stores import LocalStore
from tests.programs import output_of, race, start
from tests.stores.local_worker import body_of
from tests.thorough import some

WORKER = "tests.stores.local_worker"


def worker(*arguments: object) -> subprocess.Popen[str]:
    return start("-m", WORKER, *arguments)


@contextmanager
def killed_at_the_end(*arguments: object) -> Iterator[subprocess.Popen[str]]:
    with worker(*arguments) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        try:
            yield process
        finally:
            process.kill()


def test_racing_processes_have_one_winner_a_key(tmp_path: Path) -> None:
    writers, count = 4, 150
    commands = [
        ("-m", WORKER, "race", tmp_path, f"writer-{number}", count) for number in range(writers)
    ]
    won = [printed.split() for printed in race(*commands, timeout_s=60)]

    owners = {int(number): f"writer-{who}" for who, numbers in enumerate(won) for number in numbers}
    assert sum(map(len, won)) == len(owners) == count
    store = LocalStore(tmp_path)
    for number in range(count):
        assert store.read(f"log/{number:020d}") == body_of(owners[number], number)


def test_a_kill_before_any_step_leaves_nothing_or_everything(tmp_path: Path) -> None:
    whole = body_of("dying", 0)
    seen = []
    for steps in range(100):
        root = tmp_path / str(steps)
        with worker("die_before", root, steps) as process:
            output, _ = process.communicate(timeout=60)
        found = LocalStore(root).read("shop.db/log/0")
        seen.append(found)
        assert found in (None, whole)
        assert list(LocalStore(root).keys("")) == (["shop.db/log/0"] if found else [])
        assert LocalStore(root).create("shop.db/log/0", b"next") is (found is None)
        if process.returncode == 0:
            break
        assert process.returncode == -signal.SIGKILL
        assert output == ""

    assert process.returncode == 0
    assert output == "acknowledged\n"
    assert seen == sorted(seen, key=bool), "once visible, always visible"
    assert len(seen) > 10
    assert seen[-2:] == [whole, whole]


@pytest.mark.parametrize("seed", some(range(8), 3))
def test_a_kill_at_any_moment_leaves_only_whole_files(tmp_path: Path, seed: int) -> None:
    with killed_at_the_end("write_for_ever", tmp_path, "writer"):
        time.sleep(random.Random(seed).uniform(0.01, 0.08))
    store = LocalStore(tmp_path)
    keys = list(store.keys("log"))

    assert keys == [f"log/{number:020d}" for number in range(len(keys))]
    for number, body in enumerate(store.read_many(keys)):
        assert body == body_of("writer", number)
    assert store.read("hint") in {None, *(body_of("writer", number) for number in range(10))}
    assert store.create(f"log/{len(keys):020d}", b"next") is True


def test_processes_take_turns_under_the_lock(tmp_path: Path) -> None:
    processes = [worker("count_under_lock", tmp_path, 50) for _ in range(4)]
    for process in processes:
        process.communicate(timeout=60)

    assert LocalStore(tmp_path).read("counter") == b"200"


def test_a_killed_holder_lets_go_of_the_lock(tmp_path: Path) -> None:
    entered = threading.Event()

    def enter() -> None:
        with LocalStore(tmp_path).lock("table/log"):
            entered.set()

    waiting = threading.Thread(target=enter)
    with killed_at_the_end("hold_lock", tmp_path):
        waiting.start()
        assert not entered.wait(0.2)
    assert entered.wait(30)
    waiting.join()


def test_a_child_forked_under_the_lock_does_not_keep_it(tmp_path: Path) -> None:
    """The child inherits the descriptor; only an explicit unlock frees the lock for both."""
    script = (
        "import os, sys, time\n"
        "from ledger.stores import LocalStore\n"
        "store = LocalStore(sys.argv[1])\n"
        "with store.lock('log'):\n"
        "    child = os.fork()\n"
        "    if child == 0:\n"
        "        time.sleep(60)\n"
        "        os._exit(0)\n"
        "with store.lock('log'):\n"
        "    print('free')\n"
        "os.kill(child, 9)\n"
        "os.waitpid(child, 0)\n"
    )
    assert output_of("-c", script, tmp_path, timeout_s=30) == "free\n"
