"""Members of a group commit: each caller gets the commit that contains its transaction."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ledger import CommitConflictError, InvalidInputError, SetOption, Table
from ledger.decide import CommitSnapshot, TableChange, TableIntent
from ledger.events import DatabaseCreated
from ledger.log import Appended, Request
from ledger.log.append import MOST_BYTES, OpenCommit
from ledger.log.clock import CommitTimes
from ledger.log.codec import encode_transaction
from ledger.table_handle import handle_of
from tests.lakes import START_MILLIS, lake_on, memory, ticking
from tests.log.test_group_commit import Crowd, adds, appends, reopened


def version_of(done: object) -> int:
    assert isinstance(done, Appended)
    return done.version


def test_a_commit_that_is_full_leaves_the_others_to_the_next() -> None:
    crowd = Crowd()
    long = "m" * (MOST_BYTES // 2 + 1)

    asked = crowd.asks(*(adds(f"c{n}", message=long) for n in range(5)))

    assert [version_of(each.result()) for each in asked] == [2, 2, 3, 3, 4]
    table = reopened(crowd.table)
    assert [len(each.transactions) for each in table.events()] == [1, 1, 2, 2, 1]
    assert table.at().schema.names == ("id", "b", "c0", "c1", "c2", "c3", "c4")


def asks_without_looking(
    change: TableChange, commit_id: str, asked: str = "00", message: str = ""
) -> Callable[[Table], object]:
    """Submit with a look-up of committed ids that ran just too early."""

    def asks(table: Table) -> object:
        head = handle_of(table).log.head
        assert head is not None
        intent = handle_of(table).intent(head.state, lambda _: [change])
        assert isinstance(intent, TableIntent)
        return handle_of(table).appender.append(
            intent, Request(commit_id=commit_id, asked=asked, message=message)
        )

    return asks


def test_one_id_for_two_things_in_one_group_is_refused_to_the_second() -> None:
    crowd = Crowd()

    one, other = crowd.asks(
        asks_without_looking(SetOption("x", "1"), "mine", "00"),
        asks_without_looking(SetOption("x", "2"), "mine", "01"),
    )

    assert version_of(one.result()) == 2
    assert isinstance(other.exception(), InvalidInputError)
    assert "'mine' was used for something else in version 2" in str(other.exception())
    assert reopened(crowd.table).at().schema.options["x"] == "1"


def test_history_that_is_imported_is_committed_alone() -> None:
    crowd = Crowd()

    x, imported, y, z = crowd.asks(
        adds("x"), adds("i", effective_time=START_MILLIS + 3000), adds("y"), appends("f.parquet")
    )

    assert [version_of(each.result()) for each in (x, imported, y, z)] == [2, 3, 4, 4]


def test_two_equal_requests_in_one_group_both_succeed() -> None:
    crowd = Crowd()

    asked = crowd.asks(adds("n"), adds("n", author="bob"), adds("m"))

    assert [version_of(each.result()) for each in asked] == [2, 2, 2]
    assert reopened(crowd.table).at().schema.names == ("id", "b", "n", "m")


def test_a_rejection_that_rests_on_others_is_raised_once_they_are_committed() -> None:
    crowd = Crowd()

    lands, loses = crowd.asks(
        lambda table: table.alter([SetOption("k", "1")], author="ann"),
        lambda table: table.alter([SetOption("k", "2")]),
    )

    assert version_of(lands.result()) == 2
    assert "option k was changed by ann in version 2" in str(loses.exception())
    assert reopened(crowd.table).at().schema.options["k"] == "1"


def test_a_duplicate_returns_the_commit_that_contains_it_not_the_next() -> None:
    crowd = Crowd()
    long = "m" * (MOST_BYTES // 2 + 1)
    copy_of_error = CommitSnapshot(commit_kind="APPEND", commit_user="job", commit_identifier=1)

    asked = crowd.asks(
        asks_without_looking(copy_of_error, "one", message=long),
        adds("x", message=long),
        asks_without_looking(copy_of_error, "other"),
        adds("y"),
    )

    assert [version_of(each.result()) for each in asked] == [2, 2, 2, 3]
    assert [len(each.transactions) for each in reopened(crowd.table).events()] == [1, 1, 2, 1]


def test_a_commit_is_full_once_its_transactions_are_more_than_it_may_hold(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log = handle_of(lake_on(memory(), ticking())).log
    commit = OpenCommit(log, log.head, CommitTimes(START_MILLIS * 2), lambda _: None)
    for name in ("a", "b"):
        commit.join(
            (DatabaseCreated(name=name, path=f"{name}.db"),), Request(commit_id=name, asked="00")
        )
    size = sum(len(encode_transaction(each)) for each in commit.commit().transactions)

    for most, is_full in ((size, False), (size - 1, True)):
        monkeypatch.setattr("ledger.log.append.MOST_BYTES", most)
        assert commit.is_full == is_full


def test_of_two_writers_that_move_one_tag_in_one_group_the_second_names_the_first() -> None:
    crowd = Crowd()
    for name in "xyz":
        appends(f"{name}.parquet")(crowd.table)
    crowd.table.create_tag("v")

    lands, loses = crowd.asks(
        lambda table: table.replace_tag("v", snapshot=1),
        lambda table: table.replace_tag("v", snapshot=2),
    )

    assert version_of(lands.result()) == 6
    assert isinstance(loses.exception(), CommitConflictError)
    assert reopened(crowd.table).state.tags["v"].snapshot_id == 1
