"""Another process at a local store; run as `python -m tests.stores.local_worker ROLE ROOT ...`."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

from ledger.stores import Durability, LocalStore

STEPS = ("mkdir", "open", "write", "fsync", "link", "replace", "unlink", "close")


def body_of(writer: str, number: int) -> bytes:
    return f"{writer} wrote {number};".encode() * 2_000


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def race(root: str, writer: str, count: str) -> None:
    """Try to create every key and print the numbers of those that were won."""
    store = LocalStore(root)
    say("ready")
    sys.stdin.readline()
    for number in range(int(count)):
        if store.create(f"log/{number:020d}", body_of(writer, number)):
            say(str(number))


def write_for_ever(root: str, writer: str) -> None:
    """Create and replace, one key after the other, until this process is killed."""
    store = LocalStore(root, durable=Durability.NONE)
    number = 0
    say("ready")
    while True:
        store.create(f"log/{number:020d}", body_of(writer, number))
        store.replace("hint", body_of(writer, number % 10))
        number += 1


def hold_lock(root: str) -> None:
    with LocalStore(root).lock("table/log"):
        say("ready")
        time.sleep(60)


def count_under_lock(root: str, count: str) -> None:
    """Add one to a number in a file, `count` times; without the lock, additions get lost."""
    store = LocalStore(root)
    for _ in range(int(count)):
        with store.lock("counter"):
            before = int(store.read("counter") or b"0")
            time.sleep(0.0005)
            store.replace("counter", b"%d" % (before + 1))


def die_before(root: str, steps: str) -> None:
    """Create one key, and die before the system call with this number; write half of a write."""
    left = int(steps)

    def deadly(call: Callable[..., Any]) -> Callable[..., Any]:
        def step(*arguments: Any, **names: Any) -> Any:
            nonlocal left
            if left == 0:
                if call is write:
                    write(arguments[0], arguments[1][: len(arguments[1]) // 2])
                os.kill(os.getpid(), signal.SIGKILL)
            left -= 1
            return call(*arguments, **names)

        return step

    write = os.write
    store = LocalStore(root)
    for name in STEPS:
        setattr(os, name, deadly(getattr(os, name)))
    assert store.create("shop.db/log/0", body_of("dying", 0))
    left = sys.maxsize
    say("acknowledged")


ROLES: dict[str, Callable[..., None]] = {
    role.__name__: role for role in (race, write_for_ever, hold_lock, count_under_lock, die_before)
}

if __name__ == "__main__":
    ROLES[sys.argv[1]](*sys.argv[2:])
