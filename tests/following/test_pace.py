"""Files wait for a lull, and have a small share of the time where there is none."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import pairwise

import pytest

from ledger.following import pace
from ledger.following.pace import Pace

LONG_S = 60.0


@contextmanager
def commits(paced: Pace) -> Iterator[None]:
    """Let somebody commit all the time."""
    ends = threading.Event()

    def commit() -> None:
        while not ends.wait(0.001):
            paced.committed()

    writer = threading.Thread(target=commit)
    paced.committed()
    writer.start()
    try:
        yield
    finally:
        ends.set()
        writer.join()


def steps(paced: Pace, number: int, length_s: float = 0.01) -> list[tuple[float, float]]:
    """Return when some steps began and ended."""
    found = []
    for _ in range(number):
        with paced.step(time.monotonic()):
            begun = time.monotonic()
            time.sleep(length_s)
            found.append((begun, time.monotonic()))
    return found


def test_files_wait_until_nobody_commits() -> None:
    paced = Pace()
    paced.committed()
    committed = time.monotonic()
    ((begun, _),) = steps(paced, 1)
    assert begun >= committed + pace.QUIET_S * 0.9


def test_where_nobody_commits_steps_follow_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace, "SHARE", 1e9)
    found = steps(Pace(), 5)
    assert found[-1][1] - found[0][0] < LONG_S


def test_where_commits_never_cease_files_are_brought_on_in_a_small_share_of_the_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pace, "LATEST_S", 0.02)
    paced = Pace()
    with commits(paced):
        found = steps(paced, 4)
    for (begun, ended), (following, _) in pairwise(found):
        assert following - ended >= pace.SHARE * (ended - begun) * 0.9


def test_beside_commits_the_files_of_all_tables_share_one_share(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pace, "LATEST_S", 0.02)
    paced = Pace()
    found: list[tuple[float, float]] = []
    with commits(paced):
        tables = [
            threading.Thread(target=lambda: found.extend(steps(paced, 2, 0.005))) for _ in range(4)
        ]
        for each in tables:
            each.start()
        for each in tables:
            each.join()
    found.sort()
    assert len(found) == 8
    for (begun, ended), (following, _) in pairwise(found):
        assert following - ended >= pace.SHARE * (ended - begun) * 0.9


def test_a_rest_ends_with_the_commits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace, "SHARE", 1e9)
    monkeypatch.setattr(pace, "LULL_S", 0.1)
    monkeypatch.setattr(pace, "LATEST_S", 0.02)
    paced = Pace()
    with commits(paced):
        steps(paced, 1)
    ended = time.monotonic()
    ((begun, _),) = steps(paced, 1)
    assert ended - pace.LULL_S <= begun < ended + LONG_S


def test_nothing_waits_while_somebody_waits_for_the_files(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SHARE", "LULL_S", "LATEST_S", "QUIET_S"):
        monkeypatch.setattr(pace, name, 1e6)
    paced = Pace()
    with commits(paced):
        first, second = paced.hurried(), paced.hurried()
        with first:
            with second:
                steps(paced, 3)
            # One who waits no longer lets the others not wait longer.
            steps(paced, 3)
        waiting = threading.Thread(target=lambda: steps(paced, 1), daemon=True)
        waiting.start()
        waiting.join(0.1)
        assert waiting.is_alive()
        paced.hurry()
        waiting.join(LONG_S)
        assert not waiting.is_alive()


def test_where_nobody_commits_no_table_waits_for_the_files_of_another() -> None:
    paced = Pace()
    with ExitStack() as long:
        with commits(paced):
            # Beside commits, one table at a time.
            long.enter_context(paced.step(time.monotonic() - LONG_S))
        other = threading.Thread(target=steps, args=(paced, 1), daemon=True)
        other.start()
        other.join(5)
        assert not other.is_alive()
