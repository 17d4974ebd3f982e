"""Eight writing processes and a projector on one local ledger; then every promise is checked.

`LAKELEDGER_SOAK_SECONDS=600` lets them work for ten minutes.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import ledger
from ledger.history.subject import Subject
from ledger.history.verify import Verification
from ledger.stores import LocalStore
from projections.paimon.materialise import verify
from tests.lakes import lake_on, orders
from tests.programme.checker import places_of, read_log
from tests.programme.figures import FIGURES
from tests.programme.simulation import ROOT
from tests.programme.workload import digest_of

SECONDS = float(os.environ.get("LAKELEDGER_SOAK_SECONDS", "6"))
WRITERS = 8
REPOSITORY = Path(__file__).parents[2]


def started(role: str, url: Path, who: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.programme.soak_worker", role, str(url), who, str(SECONDS)],
        cwd=REPOSITORY,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def worked(root: Path) -> list[list[dict[str, Any]]]:
    """Let everybody work, and return what each said."""
    processes = [started("write", root, f"w{number}") for number in range(WRITERS)]
    processes.append(started("project", root, "projector"))
    for each in processes:
        assert each.stdout is not None
        assert "ready" in each.stdout.readline()
    for each in processes:
        assert each.stdin is not None
        each.stdin.write("go\n")
        each.stdin.flush()
    said = [each.communicate(timeout=SECONDS + 120)[0] for each in processes]
    assert [each.returncode for each in processes] == [0] * len(processes)
    return [[json.loads(line) for line in text.splitlines()] for text in said]


def test_eight_processes_and_a_projector_keep_every_promise(tmp_path: Path) -> None:
    root = tmp_path / "lake"
    orders(ledger.open(str(root)))
    *writers, projector = worked(root)

    acknowledged = {e["name"]: e["version"] for said in writers for e in said if "name" in e}
    store = LocalStore(root)
    bodies = {key: store.read(key) or b"" for key in store.keys("")}
    log = read_log(bodies, ROOT)
    places = places_of(log)
    FIGURES["lost"] += len(set(acknowledged) - set(places))
    assert len(acknowledged) > WRITERS
    assert projector[-1]["runs"] > 0
    assert {name: places.get(name) for name in acknowledged} == {
        name: [version] for name, version in acknowledged.items()
    }
    assert set(places) - {""} == set(acknowledged), "something is in the log that was refused"
    for said in writers:
        versions = [each["version"] for each in said if "name" in each]
        assert versions == sorted(set(versions)), "a writer's own order"
    FIGURES["commits"] += len(acknowledged)
    check_derived(root)


def check_derived(root: Path) -> None:
    """Checkpoint + tail is the replay, `verify` finds nothing, and the Paimon files are right."""
    table = ledger.open(str(root)).table("shop.orders")
    subject: Subject[Any, Any] = Subject("shop.orders", table.log, has_files=True)
    verification = Verification(subject)
    failures = [each for each in verification.run() if each.fails]
    assert not failures, failures
    assert verification.state is not None
    assert digest_of(verification.state) == digest_of(table.state)
    files = table.at().files
    table.project("paimon")
    assert verify(table).is_empty
    for cache in root.glob("shop.db/orders/_ledger/checkpoints"):
        shutil.rmtree(cache)
    cold = lake_on(LocalStore(root)).table("shop.orders")
    assert digest_of(cold.state) == digest_of(table.state)
    assert cold.at().files == files
