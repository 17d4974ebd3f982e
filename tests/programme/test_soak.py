"""Eight writing processes on one local ledger, others that keep its files and maintain it, and
random kills of all of them; then every promise is checked.

`LAKELEDGER_SOAK_SECONDS=600` lets them work for ten minutes.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

import ledger
from ledger.history.verifying import Subject, Verification
from ledger.stores import LocalStore
from ledger.table_handle import handle_of
from projections.iceberg import materialise as iceberg
from projections.paimon import materialise as paimon
from projections.statistics import materialise as statistics
from tests.lakes import lake_on
from tests.programme.checker import check_log, check_observations, read_log
from tests.programme.crew import Crew
from tests.programme.figures import FIGURES
from tests.programme.kill_worker import lay_out
from tests.programme.simulation import ROOT, replayed
from tests.programme.soak_worker import Role, tend
from tests.programme.workload import digest_of

SECONDS = float(os.environ.get("LAKELEDGER_SOAK_SECONDS", "8"))
WRITERS = 8
KEEPERS: tuple[Role, ...] = ("paimon", "iceberg", "tend")
KILL_EVERY_S = 0.7
PAUSE_S = max(0.0, SECONDS - 60) / 150
"""The longest pause of a writer: each of Iceberg's metadata files holds all schemas that there ever
were, so that five minutes without a pause end in files of a gigabyte."""
BEGINNING = 795
"""Right before caches are merged, and the first segment is due."""


@pytest.mark.timeout(600 + 6 * SECONDS)
def test_eight_writers_and_three_keepers_keep_every_promise_while_they_are_killed(
    tmp_path: Path,
) -> None:
    root, said = tmp_path / "lake", tmp_path / "said"
    said.mkdir()
    lay_out(root, BEGINNING)
    crew = Crew(said, str(root), SECONDS)
    crew.start("write", WRITERS, at_least=1, pause_s=PAUSE_S)
    for role in KEEPERS:
        crew.start(role)
    crew.kill_some(KILL_EVERY_S, seed=6)
    crew.done(within_s=180)
    assert set(crew.runs()) == set(KEEPERS)
    tend(ledger.open(str(root)).table("shop.orders"))
    assert list(root.glob("shop.db/orders/_ledger/segments/*")), "nothing was sealed"

    store, history = LocalStore(root), crew.history()
    bodies = {key: store.read(key) or b"" for key in store.keys("")}
    log = read_log(bodies, ROOT)
    check_log(history, log)
    states = replayed(bodies, log, {each.version for each in history.observations})
    FIGURES["reads checked"] += check_observations(history, lambda each: digest_of(states[each]))
    acknowledged = {e.name for e in history.attempts if e.outcome == "acknowledged"}
    assert len(acknowledged) > WRITERS
    FIGURES["commits"] += len(acknowledged)
    check_derived(root)


def check_derived(root: Path) -> None:
    """Checkpoint + tail is the replay, and everything derived is what one makes of nothing."""
    table = ledger.open(str(root)).table("shop.orders")
    subject: Subject[Any, Any] = Subject("shop.orders", handle_of(table).log, has_files=True)
    verification = Verification(subject)
    failures = [each for each in verification.run() if each.fails]
    assert not failures, failures
    assert verification.state is not None
    assert digest_of(verification.state) == digest_of(table.state)
    files = table.at().files
    for name, verify in {"paimon": paimon.verify, "iceberg": iceberg.verify}.items():
        table.project(name)
        assert verify(handle_of(table)).is_empty, name
    statistics.refresh(handle_of(table).log)
    assert statistics.verify(handle_of(table).log).is_empty
    shutil.rmtree(root / "shop.db" / "orders" / "_ledger" / "caches")
    cold = lake_on(LocalStore(root)).table("shop.orders")
    assert digest_of(cold.state) == digest_of(table.state)
    assert cold.at().files == files
