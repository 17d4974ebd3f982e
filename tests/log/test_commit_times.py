"""The times of commits: by whichever clocks, at whatever rate."""

from __future__ import annotations

import json
from collections.abc import MutableMapping
from typing import Any, NoReturn

import pytest
import structlog
from attrs import define

from ledger import AddColumn, Ledger, SetOption, UnsupportedError, UpgradeRequiredError
from ledger.log.request import RetryPolicy
from ledger.stores import Store
from tests.lakes import START_MILLIS, data_file, lake_on, memory, orders, ticking

A_YEAR = 365 * 86_400_000


@define
class Machine:
    """A clock, and a sleep that advances it; a commit takes no time at all."""

    millis: float = START_MILLIS
    slept_s: float = 0.0

    def now_millis(self) -> int:
        return int(self.millis)

    def sleep(self, seconds: float) -> None:
        self.slept_s += seconds
        self.millis += seconds * 1000

    @property
    def retry_policy(self) -> RetryPolicy:
        return RetryPolicy(sleep=self.sleep, monotonic=lambda: self.millis / 1000)

    def lake(self, store: Store) -> Ledger:
        return lake_on(store, self.now_millis, self.retry_policy)


def lead_after(store: Store, commits: int) -> tuple[float, float]:
    """Return how far a number of commits made the log run ahead, and how long that took."""
    machine = Machine()
    table = orders(machine.lake(store))
    for number in range(commits):
        table.alter([SetOption("k", str(number))])
    return table.state.time_millis - machine.millis, machine.slept_s


class Warnings(structlog.testing.LogCapture):
    """Collects warnings; drops the events of commits, which are logged, too."""

    def __call__(self, logger: Any, method: str, line: MutableMapping[str, Any]) -> NoReturn:
        if method == "warning":
            super().__call__(logger, method, line)
        raise structlog.DropEvent


@pytest.fixture
def warnings_logged() -> list[MutableMapping[str, Any]]:
    found = Warnings()
    structlog.configure(processors=[found])
    return found.entries


def test_no_rate_of_commits_makes_a_log_run_ahead(
    warnings_logged: list[MutableMapping[str, Any]],
) -> None:
    assert lead_after(memory(), 2_000) == (0, 0)
    assert warnings_logged == []


def test_a_clock_that_is_set_back_holds_nobody_up() -> None:
    machine, store = Machine(), memory()
    table = orders(machine.lake(store))
    machine.millis -= A_YEAR
    monotonic = RetryPolicy(sleep=machine.sleep, monotonic=lambda: 1.0)
    again = lake_on(store, machine.now_millis, monotonic).table("shop.orders")
    for number in range(100):
        again.alter([SetOption("k", str(number))])

    assert machine.slept_s == 0
    assert again.state.version == 100
    assert table.state.version == 100


def test_commits_may_have_equal_times() -> None:
    table = orders(lake_on(memory(), clock=lambda: START_MILLIS))
    for number in range(2):
        table.alter([SetOption("k", str(number))])

    assert [each.time_millis for each in table.events()] == [START_MILLIS] * 3
    assert table.at(timestamp=START_MILLIS).version == 2


@pytest.mark.parametrize("ahead", [90_000, A_YEAR])
def test_one_clock_that_is_ahead_stops_no_writer_and_is_logged_once(
    ahead: int, warnings_logged: list[MutableMapping[str, Any]]
) -> None:
    store = memory()
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
    warnings = [each for each in warnings_logged if each["log_level"] == "warning"]
    assert [each["event"] for each in warnings] == ["newest_commit_is_ahead"] * 2
    assert str(warnings[0]["stream"]).endswith("/_ledger")
    assert abs(int(str(warnings[0]["seconds"])) - ahead / 1000) <= 10
    assert "correct-clock" in str(warnings[0]["next_step"])


def test_the_root_and_every_commit_of_a_ledger_say_format_3() -> None:
    store = memory()
    table = orders(lake_on(store))
    table.append([data_file("a.parquet")])

    keys = [key for key in store.walk("") if key.endswith("ledger.json") or "/log/" in key]
    assert len(keys) == 5
    assert {json.loads(store.read(key) or b"")["format"] for key in keys} == {3}


@pytest.mark.parametrize(
    ("number", "kind", "says"),
    [
        (1, UnsupportedError, "never released"),
        (2, UnsupportedError, "never released"),
        (4, UpgradeRequiredError, "upgrade lakeledger"),
    ],
)
@pytest.mark.parametrize("name", ["_ledger/ledger.json", "shop.db/orders/_ledger/log/0"])
def test_a_ledger_of_another_format_is_rejected_with_its_number(
    name: str, number: int, kind: type[Exception], says: str
) -> None:
    store = memory()
    orders(lake_on(store))
    (key,) = (each for each in store.walk("") if each.startswith(name))
    body = store.read(key) or b""
    store.replace(key, body.replace(b'"format":3', b'"format":%d' % number))

    with pytest.raises(kind, match=f"has format {number}.*{says}"):
        lake_on(store).table("shop.orders")
