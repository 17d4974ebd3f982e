"""Files wait for a lull, and have a small share of the time where there is none."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from itertools import chain, pairwise
from pathlib import Path

import pytest

from ledger.following import pace
from ledger.following.pace import Pace, PacedStep
from ledger.log.beside import give_way, is_alone
from ledger.stores import LocalStore
from projections.outputs import StoreOutputs
from tests.faults import Wrapped

LONG_S = 60.0


@contextmanager
def commits(paced: Pace) -> Iterator[None]:
    """Let somebody commit all the time."""
    ends = threading.Event()

    def commit() -> None:
        while not ends.wait(0.001):
            with paced.committing():
                ends.wait(0.001)

    writer = threading.Thread(target=commit)
    with paced.committing():
        pass
    writer.start()
    try:
        yield
    finally:
        ends.set()
        writer.join()


def steps(
    paced: Pace,
    number: int,
    length_s: float = 0.01,
    meets: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> list[tuple[float, float]]:
    """Return when some steps began and ended, each of which meets something."""
    found = []
    for _ in range(number):
        with paced.step(time.monotonic()):
            begun = time.monotonic()
            with meets():
                time.sleep(length_s)
            found.append((begun, time.monotonic()))
    return found


def test_files_wait_until_nobody_commits() -> None:
    paced = Pace()
    with paced.committing():
        pass
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
        found = steps(paced, 4, meets=paced.committing)
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
            threading.Thread(
                target=lambda: found.extend(steps(paced, 2, 0.005, meets=paced.committing))
            )
            for _ in range(4)
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


def working(paced: Pace, parts: int, part_s: float = 0.002) -> tuple[threading.Thread, list[float]]:
    """Start a step of some parts; return its thread, and when each part was done."""
    done: list[float] = []

    def work() -> None:
        with paced.step(0.0):
            for _ in range(parts):
                time.sleep(part_s)
                done.append(time.monotonic())
                give_way()

    worker = threading.Thread(target=work, daemon=True)
    worker.start()
    return worker, done


def until(said: Callable[[], bool]) -> None:
    ends_s = time.monotonic() + LONG_S
    while not said():
        assert time.monotonic() < ends_s
        time.sleep(0.001)


def test_a_step_stands_aside_for_the_commits_that_it_meets_and_not_for_those_that_come_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where several commit in turn there always is one under way."""
    monkeypatch.setattr(pace, "SHARE", 1e9)
    monkeypatch.setattr(pace, "LONGEST_S", LONG_S)
    paced = Pace()
    worker, done = working(paced, 50)
    until(lambda: len(done) > 3)
    with ExitStack() as others:
        ones = others.enter_context(ExitStack())
        ones.enter_context(paced.committing())
        time.sleep(0.01)
        before = len(done)
        time.sleep(0.1)
        assert len(done) - before <= 1
        ends_s = time.monotonic() + LONG_S
        while worker.is_alive() and time.monotonic() < ends_s:
            following = others.enter_context(ExitStack())
            following.enter_context(paced.committing())
            ones.close()
            ones = following
            time.sleep(0.005)
    assert len(done) == 50


def test_a_step_stands_aside_for_no_more_than_its_share(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace, "SHARE", 3)
    monkeypatch.setattr(pace, "LONGEST_S", LONG_S)
    paced = Pace()
    worker, done = working(paced, 5)
    until(lambda: bool(done))
    with paced.committing():
        # It never ends.
        worker.join(LONG_S)
    assert len(done) == 5


def test_what_a_step_stood_aside_counts_as_its_rest() -> None:
    now = [100.0]
    paced = Pace(lambda: now[0])
    step = PacedStep(paced, now[0])
    now[0] += 1
    assert step.owes_s(now[0]) == pace.SHARE
    step.stood_s = 0.5
    assert step.owes_s(now[0]) == pace.SHARE * 0.5 - 0.5


def test_a_commit_that_takes_very_long_holds_up_no_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace, "SHARE", 1e9)
    monkeypatch.setattr(pace, "LONGEST_S", 0.02)
    paced = Pace()
    with paced.committing():
        worker, done = working(paced, 5)
        worker.join(LONG_S)
        assert len(done) == 5


def test_whoever_waits_for_files_ends_standing_aside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace, "SHARE", 1e9)
    monkeypatch.setattr(pace, "LONGEST_S", 1e9)
    paced = Pace()
    worker, done = working(paced, 20)
    until(lambda: bool(done))
    with paced.committing():
        worker.join(0.2)
        assert worker.is_alive()
        with paced.hurried():
            worker.join(LONG_S)
    assert len(done) == 20


def test_no_step_begins_in_the_midst_of_a_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace, "LONGEST_S", LONG_S)
    paced = Pace()
    begun: list[float] = []

    def work() -> None:
        with paced.step(time.monotonic()):
            begun.append(time.monotonic())

    with paced.committing():
        worker = threading.Thread(target=work, daemon=True)
        worker.start()
        worker.join(4 * pace.QUIET_S)
        assert begun == []
    worker.join(LONG_S)
    assert len(begun) == 1


def test_a_thread_that_brings_no_files_on_gives_way_to_nobody() -> None:
    with Pace().committing():
        begun = time.monotonic()
        give_way()
        assert time.monotonic() < begun + LONG_S
        assert is_alone()


def test_files_are_written_few_at_a_time_beside_commits_alone(tmp_path: Path) -> None:
    paced = Pace()
    steps = [{f"a{number}": b"a" for number in range(20)}, {"b": b"b"}, {"c": b"c"}]

    class Counts(Wrapped):
        def create_many(
            self, steps: Sequence[Mapping[str, bytes]], met: Callable[[str, bytes], None]
        ) -> None:
            together.append([*chain.from_iterable(steps)])
            super().create_many(steps, met)

    together: list[list[str]] = []
    with paced.committing():
        pass
    with paced.step(time.monotonic()):
        StoreOutputs(Counts(LocalStore(tmp_path / "beside")), "").put_many(steps)
    assert [len(each) for each in together] == [8, 8, 6]
    assert [*chain.from_iterable(together)] == [*chain.from_iterable(steps)]
    together.clear()
    with Pace().step(time.monotonic()):
        StoreOutputs(Counts(LocalStore(tmp_path / "alone")), "").put_many(steps)
    assert [len(each) for each in together] == [22]
