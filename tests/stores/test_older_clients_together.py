"""Clients of format 1 and of today write to one ledger at once, and are killed all the while.

They work until there are hundreds of commits, however slow the machine is: what a process takes to
begin is no time to be killed in again and again, so a kill waits for commits and not for a clock.
`LAKELEDGER_SOAK_SECONDS=600` lets them work for ten minutes at least.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import IO, Any

import pytest
from attrs import define, field

import ledger
from ledger import Schema
from ledger.stores import open_store
from tests.lakes import format_1
from tests.log.older_client import state_hash
from tests.log.test_older_clients import older_code
from tests.programme.figures import FIGURES
from tests.stores.servers.buckets import root

__all__ = ["older_code"]

REPOSITORY = Path(__file__).parents[2]
WORKER = REPOSITORY / "tests/log/mixed_worker.py"
WRITERS = 8
COMMITS, OF_EACH_KIND = 400, 100
COMMITS_FOR_A_KILL = 16
LATEST_KILL_S = 0.5
LONGEST_S = 480.0
SECONDS = float(os.environ.get("LAKELEDGER_SOAK_SECONDS", "30"))


@define
class Writer:
    """A place that one process after another works at.

    Attributes:
        code: The code that it runs on.
        kind: Whether that is older or newer.
        who: Its name.
        said: Where its processes say what they do.
        url: The ledger.
        options: What its store takes.
        end: The file that tells them to end.
    """

    code: Path
    kind: str
    who: str
    said: Path
    url: str
    options: dict[str, Any]
    end: Path
    process: subprocess.Popen[bytes] = field(init=False)

    def start(self) -> None:
        """Let one more process go on from what the last one had asked and was not told."""
        asked = [each[1] for each in self.lines() if each[0] == "asks"]
        # Of this repository nothing is on the path but the code that it is to run on.
        bootstrap = (
            "import runpy, sys; del sys.argv[0]; runpy.run_path(sys.argv[0], {}, '__main__')"
        )
        told = (self.url, json.dumps(self.options), self.who)
        last = (str(max(asked, default=0)), str(self.end))
        with self.said.open("ab") as out, Path(f"{self.said}.err").open("ab") as err:
            self.process = subprocess.Popen(
                [sys.executable, "-c", bootstrap, str(WORKER), *told, *last],
                cwd=self.code,
                env={"PYTHONPATH": str(self.code), "PATH": "/usr/bin:/bin"},
                stdout=out,
                stderr=err,
            )

    def lines(self) -> list[Any]:
        """Return what was said; a killed process may have left half a line."""
        said = self.said.read_bytes() if self.said.exists() else b""
        whole = said[: said.rfind(b"\n") + 1].splitlines()
        return [json.loads(each) for each in whole if each.startswith(b"[") and each[-1:] == b"]"]

    def told(self) -> int:
        """Return how many commits were acknowledged to it."""
        return self.said.read_bytes().count(b'["done", ') if self.said.exists() else 0

    def kill(self) -> None:
        """Kill its process, and begin another on a line of its own."""
        self.process.kill()
        self.process.wait()
        out: IO[bytes]
        with self.said.open("ab") as out:
            out.write(b"\n")
        self.start()


def work(writers: list[Writer]) -> int:
    """Let them work, killing one after every few commits; return how many kills there were."""
    rng, kills, at_last_kill, began = random.Random(11), 0, 0, time.monotonic()
    while True:
        time.sleep(0.1)
        told = Counter(kind for each in writers for kind in [each.kind] * each.told())
        enough = told.total() >= COMMITS and min(told["older"], told["newer"]) >= OF_EACH_KIND
        spent = time.monotonic() - began
        if spent >= SECONDS and (enough or spent >= SECONDS + LONGEST_S):
            return kills
        if told.total() - at_last_kill >= COMMITS_FOR_A_KILL:
            time.sleep(rng.uniform(0, LATEST_KILL_S))
            rng.choice(writers).kill()
            kills, at_last_kill = kills + 1, told.total()


@pytest.mark.long
@pytest.mark.timeout(SECONDS + 2 * LONGEST_S)
@pytest.mark.parametrize("store", ["local", "seaweedfs"])
def test_eight_older_and_newer_writers_lose_nothing_while_they_are_killed(
    store: str, older_code: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    url, options = str(tmp_path / "lake"), {}
    if store != "local":
        server = request.getfixturevalue(store)
        url, options = root(server, "lakes/mixed"), dict(server.options)
    format_1(open_store(url, options))
    lake = ledger.open(url, options)
    lake.create_database("shop")
    lake.create_table("shop.orders", Schema.of({"id": "BIGINT"}))
    end = tmp_path / "end"
    writers = [
        Writer(
            older_code if kind == "older" else REPOSITORY,
            kind,
            f"{kind}{number}",
            tmp_path / f"said{number}",
            url,
            options,
            end,
        )
        for number, kind in enumerate(["newer", "older"] * (WRITERS // 2))
    ]
    for each in writers:
        each.start()
    kills = work(writers)
    end.touch()
    for each in writers:
        assert each.process.wait(timeout=300) == 0, Path(f"{each.said}.err").read_text()[-3000:]

    table = ledger.open(url, options).table("shop.orders")
    landed: dict[str, int] = {}
    for commit in table.events(1):
        for transaction in commit.transactions:
            assert transaction.id not in landed, f"{transaction.id} landed twice"
            assert transaction.message == transaction.id
            landed[transaction.id] = commit.version
        assert commit.format == 1
    told = {
        f"{each.who}-{line[1]}": line[2]
        for each in writers
        for line in each.lines()
        if line[0] == "done"
    }
    assert {key: landed[key] for key in told} == told
    counts = Counter("older" if key.startswith("older") else "newer" for key in told)
    assert min(counts["older"], counts["newer"]) >= OF_EACH_KIND, "the machine is too slow"
    assert kills >= COMMITS // (3 * COMMITS_FOR_A_KILL)
    # From the newest checkpoint, whoever made it, and from nothing but the log.
    from_log = ledger.open(url, options, trust="log").table("shop.orders")
    assert state_hash(table.again().state) == state_hash(from_log.state)
    FIGURES["kills"] += kills
    FIGURES["commits"] += len(told)
    print(f"{store}: {dict(counts)} acknowledged, {len(landed)} landed, {kills} kills")  # noqa: T201 - counts
