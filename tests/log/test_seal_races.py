"""Caches are saved while no caller waits, and a segment is sealed however soon the next begins."""

from __future__ import annotations

import threading

import pytest
from msgspec.structs import replace

from ledger import SetOption
from ledger.log import stream_log
from ledger.table_handle import handle_of
from tests.faults import Wrapped
from tests.lakes import data_file, lake_on, memory, orders
from tests.log.long_logs import ROOT, long_table, table_on

LENGTH = 800


pytestmark = pytest.mark.own_keeper


def test_the_next_commits_do_not_keep_a_segment_from_being_sealed() -> None:
    store = memory()
    long_table(store, LENGTH - 1)
    table = table_on(store)

    assert table.state.version == LENGTH - 1
    for value in ("1", "2", "3"):
        table.alter([SetOption("k", value)])

    assert table.state.version == LENGTH + 2
    assert handle_of(table).log.wait_for_caches()
    assert store.exists(handle_of(table).log.layout.segment(0, LENGTH))


def test_no_commit_waits_for_caches() -> None:
    class Slow(Wrapped):
        """Answers to no replacing before it is released."""

        is_let_go = threading.Event()
        asked = threading.Event()

        def replace(self, key: str, body: bytes) -> None:
            if f"{ROOT}/" in key:
                self.asked.set()
                assert self.is_let_go.wait(30)
            super().replace(key, body)

    store = Slow(memory())
    table = orders(lake_on(store))
    for number in range(220):
        table.alter([SetOption("k", str(number))])
        table.append([replace(data_file(f"f{number}.parquet"), field_ids=True)])

    assert store.asked.wait(120)
    assert table.state.version == 440
    assert not handle_of(table).log.wait_for_caches(0)
    store.is_let_go.set()
    assert handle_of(table).log.wait_for_caches(30)
    keys = set(store.keys(ROOT))
    layout = handle_of(table).log.layout
    assert {layout.checkpoint(n) for n in (100, 200, 300, 400)} < keys
    assert {layout.index(n * 100 + 1 if n else 0, n * 100 + 100) for n in range(4)} < keys


def test_caches_are_saved_when_commits_cease_and_where_they_never_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(stream_log, "QUIET_S", 3_600.0)
    monkeypatch.setattr(stream_log, "PATIENT_S", 3_600.0)
    store = memory()
    table = orders(lake_on(store))
    for number in range(250):
        table.alter([SetOption("k", str(number))])
    layout = handle_of(table).log.layout

    assert not store.exists(layout.checkpoint(100))
    # They have waited for long.
    monkeypatch.setattr(stream_log, "PATIENT_S", 0.0)
    assert handle_of(table).log.wait_for_caches(120)
    assert store.exists(layout.checkpoint(100))

    monkeypatch.setattr(stream_log, "PATIENT_S", 3_600.0)
    for number in range(50):
        table.alter([SetOption("k", f"again {number}")])
    assert not store.exists(layout.checkpoint(300))
    # Nothing is committed any more.
    monkeypatch.setattr(stream_log, "QUIET_S", 0.0)
    assert handle_of(table).log.wait_for_caches(120)
    assert store.exists(layout.checkpoint(300))
