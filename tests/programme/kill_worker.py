"""Commits on a local ledger, killed at one of their system calls.

`python -m tests.programme.kill_worker FOLDER CASE HOW` forks a child for every such call, and lets
it die of SIGKILL right there. HOW says what counts:

- `changing`: the calls of Python's `os` that change something. The child dies right before one,
  or after half of it where it is a write.
- `any`: every call that the kernel sees, reads and memory too. The child is traced, and dies
  right before it.

It prints one JSON object a kill: what the child had acknowledged, and where it left its ledger.
The last child comes to its end.
"""

from __future__ import annotations

import fcntl
import importlib
import json
import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from ledger import AddColumn, SetOption
from ledger.stores import Durability, LocalStore
from tests.lakes import data_file, lake_on, orders, ticking
from tests.programme.simulation import beginning
from tests.programme.traced import killed_at

LATER: Final = 1_800_000_000_000
CALLS: Final = ("open", "write", "fsync", "link", "replace", "rename", "unlink", "mkdir")
"""A kill at any other call leaves what one at the next of these does; opens count that make."""

STARTS: Final = {"create": None, "checkpoint": 99}
"""The version to begin at, where it is not 2."""


def create_table(root: str, acknowledge: Callable[[str], None]) -> None:
    table = orders(lake_on(LocalStore(root), ticking(LATER)))
    table.alter([SetOption("k", "v")], message="first")
    acknowledge("first")


def alter(root: str, acknowledge: Callable[[str], None]) -> None:
    table = lake_on(LocalStore(root), ticking(LATER)).table("shop.orders")
    for number in range(2):
        name = f"alter-{number}"
        table.alter([AddColumn((f"c{number}",), "INT")], message=name, commit_id=name)
        acknowledge(name)


def checkpoint(root: str, acknowledge: Callable[[str], None]) -> None:
    table = lake_on(LocalStore(root), ticking(LATER)).table("shop.orders")
    table.append([data_file("a.parquet")], message="append")
    acknowledge("append")


def long_list(root: str, acknowledge: Callable[[str], None]) -> None:
    table = lake_on(LocalStore(root), ticking(LATER)).table("shop.orders")
    files = [data_file(f"f{number}.parquet") for number in range(1_001)]
    table.append(files, message="long")
    acknowledge("long")


def drop(root: str, acknowledge: Callable[[str], None]) -> None:
    lake = lake_on(LocalStore(root), ticking(LATER))
    lake.drop_table("shop.orders", message="drop")
    acknowledge("drop")


def undrop(root: str, acknowledge: Callable[[str], None]) -> None:
    lake = lake_on(LocalStore(root), ticking(LATER))
    lake.drop_table("shop.orders", message="drop")
    acknowledge("drop")
    lake.undrop_table("shop.orders", message="undrop")
    acknowledge("undrop")


def snapshots(root: str, acknowledge: Callable[[str], None]) -> None:
    table = lake_on(LocalStore(root), ticking(LATER)).table("shop.orders")
    asked: dict[str, Callable[..., object]] = {
        "append": lambda **how: table.append(
            [data_file("a.parquet"), data_file("b.parquet")], **how
        ),
        "delete": lambda **how: table.delete_files(["a.parquet"], **how),
        "tag": lambda **how: table.create_tag("t", **how),
        "rollback": lambda **how: table.rollback(snapshot=1, **how),
        "overwrite": lambda **how: table.overwrite(
            [data_file("c.parquet")], where={"day": "2013-01-01"}, **how
        ),
        "expire": lambda **how: table.expire_snapshots(before=2, **how),
    }
    for name, ask in asked.items():
        ask(message=name, commit_id=name)
        acknowledge(name)


def catalog(root: str, acknowledge: Callable[[str], None]) -> None:
    lake = lake_on(LocalStore(root), ticking(LATER))
    lake.create_database("other", message="database", commit_id="database")
    lake.rename_table("shop.orders", "other.o", message="rename", commit_id="rename")
    lake.rename_table("other.o", "shop.orders", message="back", commit_id="back")
    # Acknowledged together: the checks look for messages in the table's stream alone.
    table = lake.table("shop.orders")
    table.alter([SetOption("k", "v")], message="after all", commit_id="after all")
    acknowledge("after all")


WORK: Final = {
    "create": create_table,
    "alter": alter,
    "checkpoint": checkpoint,
    "list": long_list,
    "drop": drop,
    "undrop": undrop,
    "snapshots": snapshots,
    "catalog": catalog,
}


def arm(fatal: int) -> None:
    """Let this process die at one of the calls to come."""
    left = fatal
    real_write = os.write

    def deadly(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def step(*arguments: Any, **names: Any) -> Any:
            nonlocal left
            if name == "open" and not arguments[1] & os.O_CREAT:
                return call(*arguments, **names)
            if left == 0:
                if name == "write":
                    real_write(arguments[0], arguments[1][: len(arguments[1]) // 2])
                os.kill(os.getpid(), signal.SIGKILL)
            left -= 1
            # A kill takes nothing back that the kernel has, so the syncs themselves are left out.
            return None if name == "fsync" else call(*arguments, **names)

        return step

    for name in CALLS:
        setattr(os, name, deadly(name, getattr(os, name)))
    fcntl.flock = deadly("flock", fcntl.flock)


def lay_out(root: Path, start: int | None) -> None:
    store = LocalStore(root, durable=Durability.NONE)
    for key, body in beginning(start).items() if start is not None else ():
        store.create(key, body)


def no_thread(_: threading.Thread) -> None:
    raise RuntimeError("can't start new thread")


def dying_at(work: Callable[[], None], fatal: int) -> int:
    """Let a child die at a call that changes something; return its status."""
    process = os.fork()
    if process == 0:
        code = 1
        try:
            arm(fatal)
            work()
            code = 0
        finally:
            os._exit(code)
    return os.waitpid(process, 0)[1]


def kill_at(root: Path, case: str, how: str, fatal: int) -> bool:
    """Kill a child at a call; return whether it came that far."""
    lay_out(root, STARTS.get(case, 2))
    # What a case acknowledges is a few names, which a pipe holds until they are read.
    listening, speaking = os.pipe()
    say = os.write

    def acknowledge(name: str) -> None:
        say(speaking, f"{name}\n".encode())

    def work() -> None:
        # Without a second thread, a handle works in its caller's: one order of all calls.
        threading.Thread.start = no_thread  # type: ignore[method-assign,assignment]
        WORK[case](str(root), acknowledge)

    status = killed_at(work, fatal)[1] if how == "any" else dying_at(work, fatal)
    os.close(speaking)
    with os.fdopen(listening) as said:
        acknowledged = said.read().splitlines()
    was_killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
    line = {
        "root": str(root),
        "acknowledged": acknowledged,
        "killed": was_killed,
        "code": None if was_killed else os.waitstatus_to_exitcode(status),
    }
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()
    return was_killed


def main(folder: str, case: str, how: str) -> None:
    # Before the forks: each child would load it again.
    importlib.import_module("pyarrow.parquet")
    fatal = 0
    while kill_at(Path(folder, str(fatal)), case, how, fatal):
        fatal += 1


if __name__ == "__main__":
    main(*sys.argv[1:])
