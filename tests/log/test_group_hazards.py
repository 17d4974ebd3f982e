"""Failures of a group commit: no loss is reported that did not happen, and no caller hangs."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import pytest

from ledger import (
    CommitUnknownError,
    DropColumn,
    SetOption,
    Table,
    TableDroppedError,
    UpdateColumnComment,
)
from ledger.decide import RecentlyTouched, TableIntent
from ledger.events import TableEvent
from ledger.formats import INSTALLED
from ledger.history.past import TablePast
from ledger.log import PendingCommit, Request
from ledger.log.commit_queue import copy_of_error
from ledger.log.request import describe_status
from ledger.state import TableState
from ledger.stores import Store
from ledger.table_handle import handle_of
from tests.faults import Wrapped
from tests.lakes import lake_on
from tests.log.test_group_commit import Crowd, Gate, adds, reopened


class Trap(Gate):
    """Springs once, at the second commit: the one that holds all the others."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self.springs: Callable[[Callable[[], bool]], bool] | None = None

    def create(self, key: str, body: bytes) -> bool:
        if not self.closed and self.springs is not None and "/log/" in key:
            springs, self.springs = self.springs, None
            return springs(lambda: self.inner.create(key, body))
        return super().create(key, body)


def trapped(springs: Callable[[Callable[[], bool]], bool]) -> Crowd:
    crowd = Crowd.__new__(Crowd)
    crowd.gate = trap = Trap(Crowd().gate.inner)
    crowd.table = lake_on(trap).table("db.t")
    crowd.table.state  # noqa: B018 - reading it is what warms the handle
    trap.springs = springs
    return crowd


class Unlocked(Wrapped):
    """A writer on another machine, which shares no lock."""

    def lock(self, _key: str) -> AbstractContextManager[None]:
        return nullcontext()


def test_a_rejection_that_rests_on_a_lost_commit_is_not_reported() -> None:
    store: list[Store] = []

    def somebody_is_faster(create: Callable[[], bool]) -> bool:
        lake_on(Unlocked(store[0])).table("db.t").alter([SetOption("k", "theirs")])
        return create()

    crowd = trapped(somebody_is_faster)
    store.append(crowd.gate.inner)

    drops, comments = crowd.asks(
        lambda table: table.alter([SetOption("k", "mine"), DropColumn(("b",))]),
        lambda table: table.alter([UpdateColumnComment(("b",), "kept")]),
    )

    assert "k was changed by tester" in str(drops.exception())
    assert comments.exception() is None
    assert reopened(crowd.table).at().schema.field("b").description == "kept"


def test_the_same_id_in_one_group_is_committed_once() -> None:
    crowd = Crowd()

    def asks_without_looking(table: Table) -> object:
        head = handle_of(table).log.head
        assert head is not None
        intent = handle_of(table).intent(head.state, lambda _: [SetOption("x", "1")])
        assert isinstance(intent, TableIntent)
        return handle_of(table).appender.append(intent, Request(commit_id="mine", asked="00"))

    one, other = crowd.asks(asks_without_looking, asks_without_looking)

    assert {one.result().version, other.result().version} == {2}  # type: ignore[attr-defined]
    assert len(list(reopened(crowd.table).events())) == 3


@pytest.mark.parametrize("outcome", ["committed", "lost"])
def test_where_a_store_breaks_its_contract_the_outcome_is_unknown_and_a_retry_commits_once(
    outcome: str,
) -> None:
    def breaks(create: Callable[[], bool]) -> bool:
        if outcome == "committed":
            create()
        raise ZeroDivisionError("a bug in a client")

    crowd = trapped(breaks)

    asked = crowd.asks(*(adds(f"c{n}") for n in range(4)))

    errors = [each.exception() for each in asked]
    ids = [each.commit_id for each in errors if isinstance(each, CommitUnknownError)]
    assert len(set(ids)) == 4
    again = [adds(f"c{n}", commit_id=ids[n])(crowd.table) for n in range(4)]
    assert {each.repeated for each in again} == {outcome == "committed"}  # type: ignore[attr-defined]
    commits = reopened(crowd.table).events()
    committed = [each.id for commit in commits for each in commit.transactions]
    assert [committed.count(each) for each in ids] == [1] * 4


def test_one_that_breaks_in_an_unforeseen_way_harms_no_other() -> None:
    class Broken:
        base_version: int | None = None

        def decide(self, _state: object, _winners: object) -> tuple[object, ...]:
            raise ZeroDivisionError

    crowd = Crowd()
    broken: Any = Broken()

    good, bad, other = crowd.asks(
        adds("x"),
        lambda table: handle_of(table).append(broken, Request(commit_id="broken", asked="00")),
        adds("y"),
    )

    assert isinstance(bad.exception(), ZeroDivisionError)
    assert good.exception() is None
    assert other.exception() is None
    assert reopened(crowd.table).at().schema.names == ("id", "b", "x", "y")


def test_nothing_follows_a_drop_in_its_group() -> None:
    crowd = Crowd()

    before, dropped, again, after = crowd.asks(
        adds("x"),
        lambda table: handle_of(table).seal(),
        lambda table: handle_of(table).seal(),
        adds("y"),
    )

    assert before.exception() is None
    assert {dropped.result().version, again.result().version} == {2}  # type: ignore[attr-defined]
    assert isinstance(after.exception(), TableDroppedError)
    commits = list(crowd.table.events())
    assert [len(each.transactions) for each in commits] == [1, 1, 2]


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (TableDroppedError("it was dropped"), "was not committed: it was dropped"),
        (CommitUnknownError("no answer", "x", 7), "may have been committed"),
        (MemoryError("no room"), "may have been committed"),
    ],
)
def test_an_interrupted_wait_reports_a_loss_only_where_one_is_known(
    error: BaseException, says: str
) -> None:
    table = Crowd().table
    touched = RecentlyTouched(lambda _: ())
    intent = TableIntent(
        (),
        table.state,
        touched,
        TablePast(
            handle_of(table).log, handle_of(table).live, handle_of(table).past.open_data_file
        ),
        INSTALLED,
    )
    request = Request(commit_id="x", asked="00")
    pending: PendingCommit[TableState, TableEvent] = PendingCommit(intent, request)

    pending.fail(error)

    assert says in describe_status(request)
    assert ("was not committed" in describe_status(request)) == ("was not committed" in says)


class Odd(Exception):  # noqa: N818 - as programs call theirs
    """An error that is not made of its arguments."""

    def __init__(self, what: str, where: str) -> None:
        super().__init__(f"{what} {where}")


def test_each_thread_raises_an_error_of_its_own_where_one_can_be_made() -> None:
    plain, odd = ValueError("no"), Odd("no", "here")

    assert copy_of_error(plain) is not plain
    assert (copy_of_error(plain).args, copy_of_error(plain).__cause__) == (plain.args, plain)
    assert copy_of_error(odd) is odd
