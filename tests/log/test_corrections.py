"""Correcting a clock with concurrent writers: once, by meaning, and without delaying them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from attrs import define
from msgspec import UNSET

from ledger import CommitConflictError, InvalidChangeError, InvalidInputError, SetOption, Table
from ledger.stores import Store
from ledger.table_handle import handle_of
from tests.lakes import START_MILLIS, data_file, lake_on, memory, orders

A_YEAR = 365 * 86_400_000
AN_HOUR = 3_600_000


@define
class Clock:
    """Advances by an hour on each call."""

    millis: int = START_MILLIS

    def __call__(self) -> int:
        return self.millis

    def hour(self) -> int:
        self.millis += AN_HOUR
        return self.millis


def a_year_ahead(clock: Clock, store: Store) -> Table:
    table = orders(lake_on(store, clock))
    clock.hour()
    fast = lake_on(store, lambda: clock() + A_YEAR).table("shop.orders")
    fast.append([data_file("a.parquet")])
    clock.hour()
    table.alter([SetOption("good", "1")])
    clock.hour()
    return table


def test_moments_before_inside_and_after_the_wrong_range_read_as_they_were() -> None:
    clock = Clock()
    table = a_year_ahead(clock, memory())
    before = START_MILLIS + AN_HOUR
    corrected = clock.millis
    plan = table.plan_clock_correction()
    assert (plan.first_version, plan.newest_version, plan.true_time_millis) == (1, 2, corrected)
    assert table.correct_clock().version == 3
    clock.hour()
    table.alter([SetOption("later", "1")])

    assert table.at(timestamp=before).version == 0
    assert table.at(timestamp=corrected - 1).version == 0
    assert table.at(timestamp=corrected).version == 3
    assert table.at(timestamp=clock.millis).version == 4
    # By what the wrong clock said.
    assert table.at(timestamp=START_MILLIS + A_YEAR + AN_HOUR).version == 4
    state = table.at().state
    assert state.snapshot is not None
    assert state.snapshot.time_millis == corrected
    assert state.updated_at == clock.millis
    assert table.at(version=2).state.effective_millis > START_MILLIS + A_YEAR


def test_of_branches_only_snapshots_that_are_ahead_are_corrected() -> None:
    clock, store = Clock(), memory()
    table = orders(lake_on(store, clock))
    table.append([data_file("a.parquet")])
    for name in ("bare", "timely", "ahead"):
        table.create_branch(name)
    table.branch("timely").append([data_file("b.parquet")])
    before = table.state.branch("timely").snapshot
    clock.hour()
    fast = lake_on(store, lambda: clock() + A_YEAR).table("shop.orders")
    fast.branch("ahead").append([data_file("c.parquet")])
    corrected = clock.hour()

    table.correct_clock()

    assert table.state.branch("bare").snapshot is None
    assert table.state.branch("timely").snapshot == before
    ahead = table.state.branch("ahead").snapshot
    assert ahead is not None
    assert ahead.time_millis == corrected


def test_a_writer_may_state_when_a_change_happened() -> None:
    clock = Clock()
    table = a_year_ahead(clock, memory())
    then = datetime.fromtimestamp((START_MILLIS + AN_HOUR) / 1000, UTC)

    table.correct_clock(then)

    assert table.at(timestamp=then).version == 2
    assert table.at(timestamp=START_MILLIS + AN_HOUR - 1).version == 0
    with pytest.raises(InvalidInputError, match="no time zone"):
        table.correct_clock(datetime(2024, 1, 1))  # noqa: DTZ001 - what is rejected


def test_what_is_not_ahead_is_not_corrected() -> None:
    clock = Clock()
    table = orders(lake_on(memory(), clock))
    with pytest.raises(InvalidChangeError, match="nothing to correct"):
        table.correct_clock()
    with pytest.raises(InvalidInputError, match="is in the future"):
        table.correct_clock(clock.millis + 1)


def test_a_correction_is_committed_with_concurrent_changes_and_once_by_its_id() -> None:
    clock, store = Clock(), memory()
    mine = a_year_ahead(clock, store)
    theirs = lake_on(store, clock).table("shop.orders")
    theirs.at()
    mine.correct_clock(commit_id="fix")

    theirs.append([data_file("b.parquet")])
    assert theirs.state.effective_millis == clock.millis
    again = theirs.correct_clock(commit_id="fix")
    assert (again.version, again.repeated) == (3, True)
    assert len(theirs.state.corrections) == 1


def test_two_corrections_to_different_times_conflict() -> None:
    clock, store = Clock(), memory()
    mine = a_year_ahead(clock, store)
    theirs = lake_on(store, clock).table("shop.orders")
    theirs.alter([SetOption("warm", "1")])
    # Planned on the newest state, decided on one that was corrected meanwhile.
    planned = theirs.plan_clock_correction(START_MILLIS + 1).change
    mine.correct_clock()

    with pytest.raises(CommitConflictError, match="clock was changed by tester in version 4"):
        handle_of(theirs).commit(["late"], {"effective_time": clock.millis}, lambda _: [planned])


def test_a_clock_that_is_ahead_again_is_corrected_again() -> None:
    clock, store = Clock(), memory()
    table = a_year_ahead(clock, store)
    table.correct_clock()
    first = clock.millis
    clock.hour()
    fast = lake_on(store, lambda: clock() + A_YEAR // 2).table("shop.orders")
    fast.alter([SetOption("again", "1")])
    clock.hour()
    assert table.at(timestamp=clock.millis).version == 3
    table.correct_clock()
    second = clock.millis
    clock.hour()
    table.alter([SetOption("last", "1")])

    assert [each.true_time_millis for each in table.state.corrections] == [first, second]
    wanted = {first - 1: 0, first: 3, second - 1: 3, second: 5, clock.millis: 6}
    assert {moment: table.at(timestamp=moment).version for moment in wanted} == wanted


def test_once_the_clock_has_caught_up_commits_have_its_time_again() -> None:
    clock = Clock()
    table = a_year_ahead(clock, memory())
    table.correct_clock()
    clock.millis += 2 * A_YEAR
    table.alter([SetOption("k", "v")])

    (newest,) = table.events(4)
    assert newest.time_millis == clock.millis
    assert newest.transactions[0].effective_time_millis is UNSET
    assert table.state.effective_millis == clock.millis


def test_imported_history_is_not_taken_from_the_future_after_a_correction() -> None:
    clock = Clock()
    table = a_year_ahead(clock, memory())
    table.correct_clock()
    clock.hour()
    with pytest.raises(InvalidInputError, match="lies in the future"):
        table.alter([SetOption("k", "v")], effective_time=clock.millis + 1)

    table.alter([SetOption("k", "v")], effective_time=clock.millis - 1)
    assert table.state.effective_millis == clock.millis - 1


def test_the_catalogs_clock_is_its_own() -> None:
    clock, store = Clock(), memory()
    lake = lake_on(store, clock)
    lake_on(store, lambda: clock() + A_YEAR).create_database("early")
    clock.hour()

    assert lake.plan_clock_correction().first_version == 0
    lake.correct_clock(message="the new machine")
    lake.create_database("later")

    assert lake.state.effective_millis == clock.millis
    assert lake.state.databases["early"].audit.created_at == clock.millis
    with pytest.raises(InvalidChangeError, match="nothing to correct"):
        lake.correct_clock()
