"""Missing commits are restored from segments, byte for byte, and nothing else is."""

from __future__ import annotations

import random
from functools import lru_cache
from typing import Any

import pytest

from ledger.history.verifying import Finding, Subject, Verification
from ledger.history.verifying.surroundings import restore_missing_commits
from ledger.log import StreamLog, read_segment, write_segment
from ledger.state import TableStream
from ledger.stores import Store
from tests.faults import Died, Mortal
from tests.lakes import memory, no_time
from tests.log.long_logs import ROOT, long_table, sealed
from tests.thorough import some

COMMITS = 1_700
"""Two segments and a hundred commits behind them."""
SEALED = 1_600


@lru_cache(maxsize=1)
def whole() -> dict[str, bytes]:
    store = memory()
    sealed(long_table(store, COMMITS), COMMITS)
    return {key: store.read(key) or b"" for key in store.keys(ROOT)}


def log_of(version: int) -> str:
    return f"{ROOT}/log/{version:020d}.json"


def without(*versions: int) -> Store:
    store = memory()
    gone = {*map(log_of, versions)}
    for key, body in whole().items():
        if key not in gone:
            store.create(key, body)
    return store


def subject_on(store: Store) -> Subject[Any, Any]:
    log: StreamLog[Any, Any] = StreamLog(store, ROOT, TableStream())
    return Subject("shop.orders", log, has_files=True)


def found_by(store: Store) -> list[Finding]:
    return [*restore_missing_commits(subject_on(store), no_time())]


def damages(store: Store) -> list[Finding]:
    return [each for each in Verification(subject_on(store)).run() if each.kind == "damage"]


def missing(store: Store) -> list[str]:
    return [key for key, body in whole().items() if store.read(key) != body]


GONE = {
    "one": [17],
    "the first": [0],
    "a whole segment": range(801),
    "all that is sealed": range(SEALED + 1),
    "the end of a segment": [800],
    "where two meet": [799, 800, 801, 802],
    "several stretches": [3, 4, 5, 900, 1_200, 1_599],
    "the end of the log": range(1_500, COMMITS + 1),
    "everything": range(COMMITS + 1),
}


@pytest.mark.parametrize("gone", GONE)
def test_what_segments_hold_comes_back(gone: str) -> None:
    store = without(*GONE[gone])
    found = found_by(store)
    assert found
    assert all(each.kind == "damage" and each.version is not None for each in found)
    # What no segment holds stays away.
    assert missing(store) == [log_of(each) for each in GONE[gone] if each > SEALED]
    if max(GONE[gone]) < COMMITS:
        assert damages(store) == []
    assert found_by(store) == []


def test_a_sound_log_is_left_alone() -> None:
    assert found_by(without()) == []


@pytest.mark.parametrize("seed", some(range(6), 2))
def test_any_holes_in_what_is_sealed_are_filled(seed: int) -> None:
    rng = random.Random(seed)
    store = without(*rng.sample(range(SEALED), 40))
    found_by(store)
    assert missing(store) == []


def test_a_segment_of_another_log_gives_nothing() -> None:
    key = f"{ROOT}/segments/{801:020d}-{1600:020d}.parquet"
    lines = read_segment(whole()[key], 801, 1600)
    others = [each.replace(b'"author":"etl@prod"', b'"author":"evil@evil"') for each in lines]
    store = without(*range(1_000, 1_010))
    store.replace(key, write_segment(others))
    assert found_by(store) == []
    store.replace(key, b"PAR1 and nothing")
    assert found_by(store) == []
    assert len(missing(store)) == 11


def test_before_a_repair_verify_says_that_segments_may_hold_it() -> None:
    (damage,) = damages(without(17))
    assert "lakeledger verify --repair" in damage.advice
    (damage,) = damages(without(1_650))
    assert "backup" in damage.advice


def test_a_kill_at_any_write_is_gone_on_from() -> None:
    store = without(*range(790, 810))
    for _ in range(30):
        try:
            found_by(Mortal(store, 3))
        except Died:
            continue
        break
    assert missing(store) == []
