"""Laws of times: whatever clocks do, a search by time is that of a plain model."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator
from typing import Literal

import pytest
from attrs import define, field
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger import InvalidChangeError, InvalidInputError, NotFoundError, SetOption, Table
from ledger.state import TableState, TableStream
from tests.lakes import START_MILLIS, lake_on, memory, no_time, orders
from tests.thorough import examples

A_YEAR = 365 * 86_400_000

Kind = Literal["alter", "correct"]
# Most clocks advance; some stand still, are set back a little or a lot, or jump far ahead.
JUMPS = st.sampled_from([0, 0, 1, 1, 7, 1000, -1, -5, A_YEAR, -A_YEAR, 90_000, -90_000])
STEPS = st.lists(st.tuples(JUMPS, st.sampled_from(["alter"] * 4 + ["correct"])), max_size=24)


@pytest.fixture(scope="module", autouse=True)
def soon_checkpointed() -> Iterator[None]:
    """Let a checkpoint be due after every third commit, so that short logs have many."""
    with pytest.MonkeyPatch.context() as patch:
        for name, module in list(sys.modules.items()):
            if name.startswith("ledger.") and hasattr(module, "CHECKPOINT_INTERVAL"):
                patch.setattr(module, "CHECKPOINT_INTERVAL", 3)
        yield


@define
class Model:
    """A plain model of the time at which each commit took effect."""

    time_millis: int
    effects: list[int] = field(factory=list)

    def commit(self, now: int) -> None:
        if now > self.time_millis:
            effect = self.time_millis = now
        else:
            effect = max(now, self.effects[-1])
        self.effects.append(effect)

    def may_correct(self, now: int) -> bool:
        return self.effects[-1] > now

    def correct(self, now: int) -> None:
        self.effects = [min(each, now) for each in self.effects] + [now]

    def as_of(self, moment: int) -> int | None:
        found = [version for version, each in enumerate(self.effects) if each <= moment]
        return found[-1] if found else None


class Life:
    """A table next to its model; the clock is set by the test."""

    def __init__(self) -> None:
        self.now = START_MILLIS
        self.store = memory()
        self.lake = lake_on(self.store, lambda: self.now, no_time())
        self.table = orders(self.lake)
        begun = self.table.state.time_millis
        self.model = Model(begun, [begun])

    def step(self, jump: int, kind: Kind) -> None:
        self.now = max(1, self.now + jump)
        if kind == "alter":
            self.table.alter([SetOption("k", str(len(self.model.effects)))])
            self.model.commit(self.now)
        elif self.model.may_correct(self.now):
            self.table.correct_clock()
            self.model.correct(self.now)
        else:
            with pytest.raises((InvalidChangeError, InvalidInputError)):
                self.table.correct_clock()

    def afresh(self) -> Table:
        return lake_on(self.store, lambda: self.now, no_time()).table("shop.orders")


def found_at(table: Table, moment: int) -> int | None:
    try:
        return table.at(timestamp=moment).version
    except NotFoundError:
        return None


def replayed(table: Table) -> list[TableState]:
    builder = TableStream().builder(None)
    states = []
    for commit in table.events():
        builder.commit(commit)
        states.append(builder.freeze())
    return states


@settings(deadline=None, max_examples=examples(120))
@given(STEPS)
def test_a_search_by_time_is_that_of_the_model(steps: list[tuple[int, Kind]]) -> None:
    life = Life()
    for each in steps:
        life.step(*each)

    effects = life.model.effects
    for table in (life.table, life.afresh()):
        moments = {moment + off for moment in effects for off in (-1, 0, 1)}
        for moment in sorted(moments):
            assert found_at(table, moment) == life.model.as_of(moment)


@settings(deadline=None, max_examples=examples(60))
@given(STEPS)
def test_a_checkpoint_and_its_tail_are_the_replay(steps: list[tuple[int, Kind]]) -> None:
    life = Life()
    for each in steps:
        life.step(*each)

    table, stream = life.afresh(), TableStream()
    states = replayed(table)
    assert table.state == states[-1] == life.table.state
    for version, state in enumerate(states):
        assert table.at(version=version).state == state
        assert stream.decode_state(stream.encode_state(state)) == state


@settings(deadline=None, max_examples=examples(60))
@given(STEPS)
def test_times_never_go_back(steps: list[tuple[int, Kind]]) -> None:
    life = Life()
    for each in steps:
        life.step(*each)

    commits = list(life.table.events())
    for before, after in itertools.pairwise(commits):
        assert after.time_millis >= before.time_millis
