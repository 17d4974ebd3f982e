"""After a ledger is closed, none of its threads work there."""

from __future__ import annotations

import math
from pathlib import Path
from threading import Event

import pytest

import ledger
from ledger import SetOption
from ledger.log import CHECKPOINT_INTERVAL
from ledger.log.commit_queue import EXIT_WAITS_S
from ledger.stores import MemoryStore
from ledger.table_handle import handle_of
from tests.faults import Wrapped
from tests.lakes import lake_on, memory, orders
from tests.programs import output_of

pytestmark = pytest.mark.own_keeper


class Held(Wrapped):
    """Lets checkpoints be written once the test says so."""

    def __init__(self, inner: MemoryStore) -> None:
        super().__init__(inner)
        self.go_on, self.written = Event(), Event()

    def replace(self, key: str, body: bytes) -> None:
        if "/caches/" in key:
            assert self.go_on.wait(30)
            self.written.set()
        super().replace(key, body)


def test_closing_waits_for_caches_of_all_handles_of_the_place() -> None:
    store = Held(memory())
    lake = lake_on(store)
    table = orders(lake)
    for number in range(CHECKPOINT_INTERVAL):
        table.alter([SetOption("a", str(number))])

    assert lake.close(timeout_s=0.01), "files follow nothing, so all of them are there"
    assert not store.written.is_set()
    assert lake_on(memory()).close(), "another place owes nothing"

    store.go_on.set()
    with lake_on(store):
        pass
    assert store.written.is_set()
    assert handle_of(table).log.wait_for_caches(0)


@pytest.mark.parametrize(
    ("given", "least", "most"),
    [
        ({"timeout_s": 0.25}, -math.inf, 0.25),
        ({"timeout_s": 60}, 9.0, EXIT_WAITS_S),
        ({}, 9.0, EXIT_WAITS_S),
    ],
)
def test_caches_are_waited_for_as_long_as_the_caller_says_and_ten_seconds_at_most(
    given: dict[str, float], least: float, most: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = lake_on(memory())
    waited: list[float] = []

    def wait(timeout_s: float) -> bool:
        waited.append(timeout_s)
        return True

    tables = (orders(lake), lake.table("shop.orders"))
    for table in tables:
        monkeypatch.setattr(handle_of(table).log._keeper, "wait", wait)

    assert lake.close(**given)

    assert len(waited) == len(tables)
    assert all(least <= each <= most for each in waited)


def test_a_place_that_was_closed_stays_as_it_is(tmp_path: Path) -> None:
    with ledger.open(tmp_path) as lake:
        table = orders(lake)
        for number in range(CHECKPOINT_INTERVAL):
            table.alter([SetOption("a", str(number))])
    before = sorted(tmp_path.rglob("*"))

    assert handle_of(table).log.wait_for_caches(10)

    assert sorted(tmp_path.rglob("*")) == before
    assert any("caches" in str(each) for each in before)


ENDS = """
import sys, time
from ledger.log.commit_queue import BackgroundWorker

done = []

def follow():
    if done:
        return False
    time.sleep(0.1)
    done.append("second")
    print("second", flush=True)
    return True

def lead():
    if begun:
        return False
    begun.append(True)
    time.sleep(0.1)
    second.ask(follow)
    return True

begun = []
first, second = BackgroundWorker("first"), BackgroundWorker("second")
first.ask(lead)
"""


def test_a_process_that_ends_waits_for_the_calls_of_its_workers(tmp_path: Path) -> None:
    script = tmp_path / "ends.py"
    script.write_text(ENDS)
    for _ in range(4):
        assert output_of(script) == "second\n"
