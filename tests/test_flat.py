"""A commit costs no more in a long history: counted, without a clock.

The kinds of change and of table are those of `benchmarks/flat.py`, which times them, too.
"""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Callable
from functools import cache
from types import FrameType
from typing import Any, Self

import pytest
from attrs import frozen

from benchmarks.flat import BY, most_requests
from benchmarks.lives import (
    KINDS,
    NAME,
    Counted,
    Kind,
    Life,
    born,
    changes_of,
    lake_on,
)
from ledger import AddPartitionField, SetOption, Table, UpdatePartitionSpec
from ledger.decide import rule_rows as rows
from ledger.decide import schema_rules as whole
from ledger.log import CHECKPOINT_INTERVAL
from ledger.table_handle import handle_of
from tests.lakes import data_file, memory, orders
from tests.log.long_logs import store_of

pytestmark = pytest.mark.usefixtures("nothing_old_to_collect")

SHORT = 50
LONG = SHORT + 15 * CHECKPOINT_INTERVAL
LOGARITHMIC = 2
"""Requests for data older than a checkpoint: a few files more, each looked up in memory."""


class Calls:
    """Counts the calls of functions, Python's and C's, in this thread and those that it starts."""

    def __init__(self) -> None:
        self.count = 0

    def __enter__(self) -> Self:
        # What other tests left is not collected meanwhile: its finalizers are calls, too.
        gc.collect()
        gc.freeze()
        threading.setprofile(self._meet)
        sys.setprofile(self._meet)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)
        threading.setprofile(None)
        gc.unfreeze()

    def _meet(self, _frame: FrameType, event: str, _argument: object) -> None:
        self.count += event in {"call", "c_call"}


@frozen
class Cost:
    """The costs of one commit."""

    requests: int
    calls: int


Past = tuple[dict[str, bytes], tuple[str, ...]]


@cache
def lived(kind: Kind, version: int) -> Past:
    """Return the bodies of a ledger whose table is at a version, and the files last added."""
    store = memory()
    life = born(kind, store)
    life.live(range(1, version + 1))
    return {key: store.read(key) or b"" for key in store.keys("")}, life.added


class Side:
    """A table of a kind at a version, on a store that counts."""

    def __init__(self, kind: Kind, past: Past, name: str, calls: Calls) -> None:
        bodies, added = past
        self.store = Counted(store_of(bodies, name))
        self.life = Life(kind, lake_on(self.store).table(NAME), list(added))
        self.number = 0
        self.calls = calls

    def by_the_same_handle(self, change: Callable[[Life, int], object]) -> Cost:
        return self.costs(lambda: change(self.life, self.number))

    def by_a_fresh_handle(self, change: Callable[[Life, int], object]) -> Cost:
        def opened() -> None:
            self.life = self.life.reopened(self.store)
            change(self.life, self.number)

        return self.costs(opened)

    def by_a_loser(self, change: Callable[[Life, int], object]) -> Cost:
        handle_of(self.life.table).log.refresh()
        option = SetOption("team.winner", str(self.number))
        lake_on(self.store).table(NAME).alter([option])
        return self.costs(lambda: change(self.life, self.number))

    def costs(self, commit: Callable[[], object]) -> Cost:
        self.number += 1
        handle_of(self.life.table).log.refresh()
        self.store.requests = self.calls.count = 0
        commit()
        return Cost(self.store.requests, self.calls.count)


ASKED: dict[str, Callable[[Side, Callable[[Life, int], object]], Cost]] = dict(
    zip(BY, (Side.by_the_same_handle, Side.by_a_fresh_handle, Side.by_a_loser), strict=True)
)


@pytest.mark.parametrize("by", ASKED)
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_commit_costs_the_same_in_a_long_history(kind: Kind, by: str) -> None:
    grown: list[str] = []
    changes = changes_of(kind)
    ages = [(each, lived(kind, each)) for each in (SHORT, LONG)]
    # Around everything, since committer threads are counted from their start.
    with Calls() as calls:
        sides = [Side(kind, past, f"flat-{kind.name}-{by}-{age}", calls) for age, past in ages]
        for change in changes.values():
            for side in sides:
                # The first call reads what the handle then caches.
                side.by_the_same_handle(change)
        for name, change in changes.items():
            short, long = (ASKED[by](side, change) for side in sides)
            if long.requests > short.requests * most_requests(by, name):
                grown.append(f"{name}: {short.requests} requests, then {long.requests}")
            if long.calls > short.calls * LOGARITHMIC:
                grown.append(f"{name}: {short.calls} calls, then {long.calls}")
    assert grown == []


def test_an_option_change_is_validated_once(monkeypatch: pytest.MonkeyPatch) -> None:
    table = orders(lake_on(memory()))
    validated: list[str] = []
    check = rows.check_schema_rules

    def counted(*asked: Any, **more: Any) -> Any:
        validated.append(threading.current_thread().name)
        return check(*asked, **more)

    monkeypatch.setattr(whole, "check_schema_rules", counted)
    table.alter([SetOption("snapshot.num-retained.max", "30")])

    assert len(validated) == 1


def test_a_commit_of_files_copies_nothing_that_it_does_not_change() -> None:
    table = orders(lake_on(memory()))
    table.append([data_file("f.parquet")])
    table.create_tag("t")
    before = table.state
    after = table.append([data_file("g.parquet")]).state
    assert after.tags is before.tags
    assert after.partition_statistics is before.partition_statistics
    assert after.schema is before.schema
    assert after.specs is before.specs
    assert after.named_schema_ids is before.named_schema_ids


def test_a_state_keeps_the_tags_that_it_had_whatever_comes_after() -> None:
    table = orders(lake_on(memory()))
    table.append([data_file("f.parquet")])
    table.set_partition_statistics(1, "statistics/1", 7)
    first = table.create_tag("t").state
    table.create_tag("u")
    table.set_partition_statistics(1, "statistics/2", 7)
    table.delete_tag("t")
    assert list(first.tags) == ["t"]
    assert [each.statistics_path for each in first.partition_statistics.values()] == [
        "statistics/1"
    ]
    assert list(table.state.tags) == ["u"]


def test_files_cost_the_same_under_many_layouts_tags_options_and_schemas() -> None:
    counts: list[int] = []
    with Calls() as calls:
        for often in (1, 60):
            table = orders(lake_on(memory()))
            for number in range(often):
                bucket = AddPartitionField(("id",), f"bucket[{number + 2}]")
                table.alter([UpdatePartitionSpec((bucket,))])
                table.append([data_file(f"{number}.parquet")])
                table.create_tag(f"t{number}")
                table.alter([SetOption(f"team.{number}", "x")])
            # Collections of garbage and caches that fall due count as calls, too.
            counts.append(min(counted(table, calls, f"f{each}") for each in range(4)))
    assert counts[1] <= counts[0] * 1.1


def counted(table: Table, calls: Calls, name: str) -> int:
    calls.count = 0
    table.append([data_file(f"{name}.parquet")])
    return calls.count
