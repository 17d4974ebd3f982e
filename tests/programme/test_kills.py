"""kill -9 at system calls of local commits: nothing acknowledged is lost, nothing is half.

Two ways, since each shows what the other cannot. Short cases run under `ptrace`, and die right
before every system call that the kernel sees, in every thread. All cases die right before every
call of Python's `os` that changes a file, a name or a lock, and after half of every write; the
local store makes no others. Nothing is synced there, since a kill takes nothing back that the
kernel has; `test_power_loss` is about what is lost with the power.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ledger import Identifier, NotFoundError, SetOption, Table
from ledger.history.verifying import Subject, Verification
from ledger.stores import Durability, LocalStore
from ledger.table_handle import TableHandle, handle_of
from tests.lakes import lake_on, ticking
from tests.programme.checker import places_of, read_log
from tests.programme.figures import FIGURES
from tests.programme.kill_worker import LATER, WORK
from tests.programme.simulation import ROOT
from tests.programme.traced import can_trace
from tests.thorough import some

REPOSITORY = Path(__file__).parents[2]


def bodies_in(root: Path) -> dict[str, bytes]:
    store = LocalStore(root)
    return {key: store.read(key) or b"" for key in store.keys("")}


def examine(root: Path, acknowledged: list[str], case: str) -> int:
    """Check one ledger that a killed writer left, and continue with it; return its commits."""
    bodies = bodies_in(root)
    catalog = places_of(read_log(bodies, "_ledger"))
    log = read_log(bodies, ROOT)
    places = places_of(log)
    for name in acknowledged:
        FIGURES["lost"] += name not in places
        assert len(places.get(name, [])) == 1, f"{name} is lost"
        assert case not in ("drop", "undrop") or len(catalog.get(name, [])) == 1, (
            f"{name} is half done"
        )
    assert all(len(found) == 1 for name, found in places.items() if name), places
    lake = lake_on(LocalStore(root, durable=Durability.NONE), ticking(LATER))
    if log:
        shell = Table(
            TableHandle(Identifier("shop", "orders"), "shop.db/orders", handle_of(lake).setting)
        )
        subject: Subject[Any, Any] = Subject("shop.orders", handle_of(shell).log, has_files=True)
        damages = [each for each in Verification(subject).run() if each.kind == "damage"]
        assert not damages, damages
    if not lake.is_begun:
        assert (case, log) == ("create", [])
        return 0
    # The process that renames it may have died on the way.
    name = "other.o" if Identifier("other", "o") in lake.state.tables else "shop.orders"
    try:
        table = lake.table(name)
    except NotFoundError:
        assert case in ("create", "drop", "undrop")
        return len(log)
    table.alter([SetOption("after", "1")], message="after")
    assert "after" in places_of(read_log(bodies_in(root), ROOT))
    return len(log)


def killed_everywhere(case: str, how: str, folder: Path) -> int:
    """Check a case killed at each of its calls; return how many there were."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.programme.kill_worker", str(folder), case, how],
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        check=True,
        timeout=300,
    )
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [each["killed"] for each in lines] == [True] * (len(lines) - 1) + [False]
    assert lines[-1]["code"] == 0
    reached = [examine(Path(each["root"]), each["acknowledged"], case) for each in lines]
    counts = [len(each["acknowledged"]) for each in lines]
    assert reached == sorted(reached), "once visible, always visible"
    assert counts == sorted(counts)
    assert counts[0] == 0
    assert counts[-1] > 0
    FIGURES["kills"] += len(lines) - 1
    FIGURES["commits"] += sum(counts)
    return len(lines) - 1


@pytest.mark.parametrize("case", WORK)
def test_a_kill_at_any_call_that_changes_something_loses_nothing(case: str, tmp_path: Path) -> None:
    assert killed_everywhere(case, "changing", tmp_path) > 10


@pytest.mark.skipif(not can_trace(), reason="nobody may trace a process here")
@pytest.mark.parametrize(
    "case", some(["alter", "create", "drop", "undrop", "snapshots", "catalog"], 1)
)
def test_a_kill_at_any_system_call_loses_nothing(case: str, tmp_path: Path) -> None:
    assert killed_everywhere(case, "any", tmp_path) > 50
