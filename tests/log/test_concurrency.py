"""Many writers on one table: every acknowledged change is there, exactly once."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

import ledger
from ledger import AddColumn, Schema
from ledger.stores import Store
from tests.lakes import lake_on, memory, orders, ticking
from tests.programs import race

WRITERS = 8
EACH = 50
ROOT = Path(__file__).parents[2]

WRITE = """
import sys, ledger
url, writer, each = sys.argv[1], sys.argv[2], int(sys.argv[3])
table = ledger.open(url).table("shop.orders")
print("ready", flush=True)
sys.stdin.readline()
for number in range(each):
    done = table.alter([ledger.AddColumn((f"w{writer}_{number}",), "INT")], author=writer)
    print(done.version, flush=True)
"""


def check(store_versions: list[int], table: ledger.Table) -> None:
    wanted = {f"w{writer}_{number}" for writer in range(WRITERS) for number in range(EACH)}
    commits = list(table.events())
    ids = [field.id for field in table.at().schema.fields]
    counts = [len(each.transactions) for each in commits[1:]]
    # Each answer names a commit, and each commit as many times as it has transactions.
    assert sorted(store_versions) == [v for v, count in enumerate(counts, 1) for _ in range(count)]
    assert sum(counts) == WRITERS * EACH
    assert set(table.at().schema.names) - {"id"} == wanted
    assert ids == list(range(WRITERS * EACH + 1))
    assert table.at().schema.id == WRITERS * EACH


def test_eight_processes_lose_nothing_on_a_local_disk(tmp_path: Path) -> None:
    lake = ledger.open(str(tmp_path))
    orders(lake, Schema.of({"id": "INT"}))
    commands = [("-c", WRITE, tmp_path, number, EACH) for number in range(WRITERS)]
    printed = race(*commands, timeout_s=300)

    acknowledged = [int(version) for words in printed for version in words.split()]
    check(acknowledged, ledger.open(str(tmp_path)).table("shop.orders"))


@pytest.mark.parametrize("handles", ["one", "each its own"])
def test_eight_threads_lose_nothing_in_memory(handles: str) -> None:
    store: Store = memory()
    # One for all: a starved writer with a clock of its own would fall a minute behind.
    clock = ticking()
    shared = orders(lake_on(store, clock), Schema.of({"id": "INT"}))
    versions: list[int] = []
    start = threading.Barrier(WRITERS)

    def write(writer: int) -> None:
        table = shared if handles == "one" else lake_on(store, clock).table("shop.orders")
        start.wait()
        for number in range(EACH):
            done = table.alter([AddColumn((f"w{writer}_{number}",), "INT")])
            versions.append(done.version)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(WRITERS)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()

    check(versions, lake_on(store).table("shop.orders"))
