"""The times of commits: by whichever clocks, at whatever rate, in both formats."""

from __future__ import annotations

import json
from collections.abc import Callable, MutableMapping
from typing import Any, NoReturn

import pytest
import structlog
from attrs import define

import ledger
from ledger import AddColumn, Ledger, SetOption, Table
from ledger.log.patience import Patience
from ledger.stores import Store
from tests.lakes import START_MILLIS, data_file, format_1, lake_on, memory, orders, ticking

A_YEAR = 365 * 86_400_000


@define
class Machine:
    """A clock, and a sleep that lets it go on; a commit takes no time at all."""

    millis: float = START_MILLIS
    slept_s: float = 0.0

    def now_millis(self) -> int:
        return int(self.millis)

    def sleep(self, seconds: float) -> None:
        self.slept_s += seconds
        self.millis += seconds * 1000

    @property
    def patience(self) -> Patience:
        return Patience(sleep=self.sleep, monotonic=lambda: self.millis / 1000)

    def lake(self, store: Store) -> Ledger:
        return lake_on(store, self.now_millis, self.patience)


def lead_after(store: Store, commits: int) -> tuple[float, float]:
    """Return by how much so many commits made the log run ahead, and how long that took."""
    machine = Machine()
    table = orders(machine.lake(store))
    for number in range(commits):
        table.alter([SetOption("k", str(number))])
    return table.state.time_millis - machine.millis, machine.slept_s


class Warnings(structlog.testing.LogCapture):
    """What went wrong; commits that landed are told to who listens, too."""

    def __call__(self, logger: Any, method: str, line: MutableMapping[str, Any]) -> NoReturn:
        if method == "warning":
            super().__call__(logger, method, line)
        raise structlog.DropEvent


@pytest.fixture
def told() -> list[MutableMapping[str, Any]]:
    found = Warnings()
    structlog.configure(processors=[found])
    return found.entries


def test_no_rate_of_commits_makes_a_log_of_format_2_run_ahead(
    told: list[MutableMapping[str, Any]],
) -> None:
    assert lead_after(memory(), 2_000) == (0, 0)
    assert told == []


def test_in_format_1_a_lead_that_its_own_rate_made_is_waited_out_beyond_a_second(
    told: list[MutableMapping[str, Any]],
) -> None:
    lead, slept = lead_after(format_1(memory()), 2_000)

    assert 900 <= lead <= 1_002
    assert 0.9 <= slept <= 1.1
    assert [(each["event"], each["next_step"]) for each in told] == [
        ("commits_held_back", "lakeledger upgrade")
    ]


def test_what_others_commit_meanwhile_is_of_the_streams_rate_too() -> None:
    machine = Machine()
    store = format_1(memory())
    mine = orders(machine.lake(store))
    theirs = machine.lake(store).table("shop.orders")
    for number in range(700):
        mine.alter([SetOption("mine", str(number))])
        theirs.alter([SetOption("theirs", str(number))])

    assert mine.state.time_millis - machine.millis <= 1_002


def test_handles_one_after_the_other_add_no_lead_of_their_own() -> None:
    machine = Machine()
    store = format_1(memory())
    orders(machine.lake(store))
    for handle in range(5):
        table = machine.lake(store).table("shop.orders")
        for number in range(600):
            table.alter([SetOption("k", f"{handle} {number}")])

    assert table.state.time_millis - machine.millis <= 1_005


def test_in_format_1_a_lead_that_somebodys_clock_made_is_not_waited_for(
    told: list[MutableMapping[str, Any]],
) -> None:
    machine, store = Machine(), format_1(memory())
    table = orders(machine.lake(store))
    fast = lake_on(store, lambda: machine.now_millis() + A_YEAR)
    fast.table("shop.orders").alter([SetOption("k", "fast")])
    for number in range(200):
        table.alter([SetOption("good", str(number))])

    assert machine.slept_s == 0
    assert [each["event"] for each in told] == ["newest_commit_is_ahead"]


def test_a_clock_that_is_set_back_holds_nobody_up() -> None:
    for store in (memory(), format_1(memory())):
        machine = Machine()
        table = orders(machine.lake(store))
        machine.millis -= A_YEAR
        monotonic = Patience(sleep=machine.sleep, monotonic=lambda: 1.0)
        again = lake_on(store, machine.now_millis, monotonic).table("shop.orders")
        for number in range(100):
            again.alter([SetOption("k", str(number))])

        assert machine.slept_s == 0
        assert again.state.version == 100
        assert table.state.version == 100


def times_of(table: Table) -> list[tuple[int, int]]:
    return [(each.format, each.time_millis) for each in table.events()]


def test_in_format_2_equal_times_stand_and_a_commit_says_so() -> None:
    table = orders(lake_on(memory(), clock=lambda: START_MILLIS))
    for number in range(2):
        table.alter([SetOption("k", str(number))])

    assert times_of(table) == [(1, START_MILLIS), (2, START_MILLIS), (2, START_MILLIS)]
    assert table.at(timestamp=START_MILLIS).version == 2


def test_a_commit_that_holds_nothing_new_says_format_1_in_either() -> None:
    for store in (memory(), format_1(memory())):
        table = orders(lake_on(store, clock=ticking()))
        table.alter([AddColumn(("n",), "INT")])
        table.append([data_file("a.parquet")])
        assert {each for each, _ in times_of(table)} == {1}


def test_in_format_1_times_increase_even_when_the_clock_does_not() -> None:
    table = orders(lake_on(format_1(memory()), clock=lambda: START_MILLIS))
    for number in range(2):
        table.alter([SetOption("k", str(number))])

    assert times_of(table) == [(1, START_MILLIS + each) for each in (1, 2, 3)]


@pytest.mark.parametrize("begun", [lambda store: store, format_1])
@pytest.mark.parametrize("ahead", [90_000, A_YEAR])
def test_one_clock_that_is_ahead_stops_nobody_and_is_told_once(
    begun: Callable[[Store], Store], ahead: int, told: list[MutableMapping[str, Any]]
) -> None:
    store = begun(memory())
    clock = ticking()
    table = orders(lake_on(store, clock))
    fast = lake_on(store, lambda: clock() + ahead)
    fast.table("shop.orders").alter([SetOption("k", "fast")])
    fast.create_database("early")

    good = lake_on(store, clock)
    good.create_database("later")
    good.create_database("even-later")
    table.alter([AddColumn(("a",), "INT")])
    table.append([data_file(f"{each}.parquet") for each in range(1_001)])

    assert table.state.version == 3
    assert good.databases() == ["early", "even-later", "later", "shop"]
    warnings = [each for each in told if each["log_level"] == "warning"]
    assert [each["event"] for each in warnings] == ["newest_commit_is_ahead"] * 2
    assert str(warnings[0]["stream"]).endswith("/_ledger")
    assert abs(int(str(warnings[0]["seconds"])) - ahead / 1000) <= 10
    assert "correct-clock" in str(warnings[0]["next_step"])


def test_what_needs_format_2_is_refused_while_older_clients_are_admitted() -> None:
    store = format_1(memory())
    clock = ticking()
    table = orders(lake_on(store, clock))
    lake_on(store, lambda: clock() + A_YEAR).table("shop.orders").alter([SetOption("k", "v")])
    before = table.state

    with pytest.raises(ledger.InvalidInputError, match="lakeledger upgrade") as refused:
        table.correct_clock()

    assert refused.value.kind == "UPGRADE_LEDGER"
    assert table.state == before


def test_the_root_of_a_new_ledger_says_format_2_and_an_older_one_is_kept() -> None:
    new, old = memory(), format_1(memory())
    for store, wanted in ((new, 2), (old, 1)):
        lake = lake_on(store)
        lake.create_database("shop")
        assert json.loads(store.read("_ledger/ledger.json") or b"")["format"] == wanted
        assert lake.format == wanted
        assert lake_on(store).format == wanted
