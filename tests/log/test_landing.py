"""Retries of a writer, the outcome of a create, and the meaning of a missing response."""

from __future__ import annotations

import pickle
import random

import pytest

from ledger import CommitUnknownError, DamagedLogError, StoreError
from ledger.log import Request
from ledger.log.request import (
    Committed,
    LogFile,
    LostRace,
    RetryPolicy,
    Unknown,
    commit_file,
    commit_file_once,
    commit_file_or_raise,
    confirm_loss,
    create_unique_file,
    describe_status,
    ensure_durable,
    unknown,
)
from ledger.stores import Store
from tests.faults import LosesAnswers, LosesRequests, Wrapped
from tests.lakes import memory

FILE = LogFile("t/log/7.json", b"mine", 7)


class Watch:
    """A clock that only sleeping moves; it remembers every sleep."""

    def __init__(self) -> None:
        self.now = 100.0
        self.slept: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds

    def retry_policy(self, deadline_s: float) -> RetryPolicy:
        return RetryPolicy(
            deadline_s=deadline_s,
            first_wait_s=1.0,
            longest_wait_s=10.0,
            sleep=self.sleep,
            monotonic=lambda: self.now,
            uniform=lambda _low, high: high,
        )


class Silent(Wrapped):
    """Answers no question about what is there, a number of times at first."""

    def __init__(self, inner: Store, times: int) -> None:
        super().__init__(inner)
        self.times = times
        self.asked = 0

    def confirm(self, key: str) -> bytes | None:
        self.asked += 1
        if self.asked <= self.times:
            raise OSError(f"no answer about {key} to question {self.asked}")
        return self.inner.confirm(key)


def test_pauses_double_from_the_third_attempt_on_up_to_the_longest() -> None:
    watch = Watch()

    attempts = list(watch.retry_policy(40).attempts())

    assert watch.slept == [4, 8, 10, 10, 10]
    assert attempts == [1, 2, 3, 4, 5, 6]


def test_pauses_are_drawn_between_nothing_and_the_longest() -> None:
    drawn: list[tuple[float, float]] = []

    def uniform(low: float, high: float) -> float:
        drawn.append((low, high))
        return low

    RetryPolicy(sleep=lambda _: None, uniform=uniform).pause(3)

    assert drawn == [(0, 0.016)]


def test_processes_of_one_seed_do_not_wait_as_long_as_one_another() -> None:
    pauses: list[float] = []
    for _ in range(2):
        random.seed(7)
        RetryPolicy(sleep=pauses.append).pause(12)
    before = random.getstate()
    RetryPolicy(sleep=pauses.append).pause(12)

    assert len(set(pauses)) == 3
    # Nor do a program's own draws hang on how often it waited.
    assert random.getstate() == before


def test_a_writer_with_no_time_left_still_tries_once() -> None:
    watch = Watch()

    assert list(watch.retry_policy(-1).attempts()) == [1]
    assert list(watch.retry_policy(0).attempts())[:2] == [1, 2]


def test_another_file_in_the_place_is_a_loss() -> None:
    store = memory()
    store.create(FILE.key, b"theirs")

    assert commit_file(store, FILE, Watch().retry_policy(9)) == LostRace(7)
    assert commit_file(LosesAnswers(store, times=1), FILE, Watch().retry_policy(9)) == LostRace(7)
    assert store.read(FILE.key) == b"theirs"


@pytest.mark.parametrize("fault", [LosesAnswers, LosesRequests])
def test_what_stands_there_in_the_end_is_found_out(fault: type[LosesAnswers]) -> None:
    store = memory()

    assert commit_file(fault(store, times=2), FILE, Watch().retry_policy(9)) == Committed(7)
    assert store.read(FILE.key) == b"mine"


def test_a_committed_file_that_could_not_be_read_back_is_found_on_the_next_attempt() -> None:
    store = memory()

    committed = commit_file(
        Silent(LosesAnswers(store, times=2), times=1), FILE, Watch().retry_policy(9)
    )

    assert committed == Committed(7)
    assert store.read(FILE.key) == b"mine"


def test_an_outcome_not_found_in_time_is_unknown_to_each_caller_by_its_own_id() -> None:
    watch = Watch()

    outcome = commit_file(Silent(LosesRequests(memory()), times=99), FILE, watch.retry_policy(20))

    assert isinstance(outcome, Unknown)
    for name in ("my-id", "another"):
        raised = outcome.as_error(name)
        assert f"7.json: the store gave no answer and could not be read back; commit {name}" in str(
            raised
        )
        assert (raised.commit_id, raised.version) == (name, 7)
        assert isinstance(raised.__cause__, OSError)
    assert watch.slept == [4, 8, 10]


class Refuses(Wrapped):
    """Refuses to create anything from some time on, as a full disk does."""

    def __init__(self, inner: Store, after: int = 0) -> None:
        super().__init__(inner)
        self.after = after
        self.asked = 0

    def create(self, key: str, body: bytes) -> bool:
        self.asked += 1
        if self.asked > self.after:
            raise StoreError("no space left on device")
        return super().create(key, body)


def test_what_a_store_refuses_is_raised_at_once_with_its_reason() -> None:
    store, watch = Refuses(memory()), Watch()

    with pytest.raises(StoreError, match="no space left"):
        commit_file(store, FILE, watch.retry_policy(9))

    assert store.asked == 1
    assert watch.slept == []


def test_a_refusal_after_an_unsure_answer_says_nothing_of_the_first_attempt() -> None:
    late = Refuses(Silent(LosesRequests(memory(), times=1), times=0), after=1)

    outcome = commit_file(late, FILE, Watch().retry_policy(9))

    assert isinstance(outcome, Unknown)
    assert isinstance(outcome.cause, StoreError)


def test_a_refusal_after_a_lost_response_is_found_to_be_committed() -> None:
    store = Refuses(Silent(LosesAnswers(memory(), times=1), times=1), after=1)

    assert commit_file(store, FILE, Watch().retry_policy(9)) == Committed(7)


def test_silence_about_a_file_that_is_no_commit_is_raised_with_its_meaning() -> None:
    silent = Silent(LosesRequests(memory(), times=99), times=99)

    with pytest.raises(StoreError, match=r"7\.json: .* no answer \(.* was lost\); ask") as raised:
        commit_file_or_raise(silent, FILE, Watch().retry_policy(9), "ask again")

    assert isinstance(raised.value.__cause__, OSError)
    store = memory()
    assert commit_file_or_raise(store, FILE, Watch().retry_policy(9), "") == Committed(7)
    assert commit_file_or_raise(store, FILE, Watch().retry_policy(9), "") == LostRace(7)


@pytest.mark.parametrize("silences", [0, 2])
def test_a_file_under_a_name_of_its_own_may_be_said_to_be_there(silences: int) -> None:
    store = memory()
    store.create(FILE.key, b"mine")

    create_unique_file(Silent(store, silences), FILE, Watch().retry_policy(9), "values")
    with pytest.raises(StoreError, match="no answer .* to question 3.*; values have to be stored"):
        create_unique_file(Silent(store, times=99), FILE, Watch().retry_policy(9), "values")


def test_a_loser_reads_on() -> None:
    store = memory()
    store.create(FILE.key, b"theirs")
    read: list[int] = []

    assert confirm_loss(store, FILE, Watch().retry_policy(9), lambda: read.append(1)) == LostRace(7)
    assert read == [1]


def test_a_writer_that_finds_its_own_file_before_an_unreadable_one_has_committed() -> None:
    store = memory()
    store.create(FILE.key, b"mine")

    def read_on() -> None:
        raise DamagedLogError("8.json is torn", "t/log/8.json")

    assert confirm_loss(store, FILE, Watch().retry_policy(9), read_on) == Committed(7)
    store.delete(FILE.key)
    with pytest.raises(DamagedLogError):
        confirm_loss(store, FILE, Watch().retry_policy(9), read_on)


def test_a_writer_that_cannot_read_the_winner_has_an_unknown_outcome() -> None:
    def read_on() -> None:
        raise OSError("silence")

    outcome = confirm_loss(memory(), FILE, Watch().retry_policy(9), read_on)

    assert isinstance(outcome, Unknown)
    assert "silence" in str(outcome.as_error("my-id").__cause__)


def test_a_file_that_all_write_alike_may_be_anybodys() -> None:
    store = memory()
    store.create(FILE.key, b"mine")

    commit_file_once(store, FILE, Watch().retry_policy(9), "my-id")
    with pytest.raises(CommitUnknownError, match="commit my-id may"):
        commit_file_once(
            Silent(LosesRequests(memory()), times=99), FILE, Watch().retry_policy(9), "my-id"
        )


def test_a_commit_that_was_read_is_sure_once_the_store_confirms_it() -> None:
    store = Silent(memory(), times=2)

    ensure_durable(store, FILE.key, Watch().retry_policy(9), version=7, commit_id="my-id")

    assert store.asked == 3
    with pytest.raises(CommitUnknownError, match=r"7\.json: .* commit my-id may") as raised:
        ensure_durable(
            Silent(memory(), times=99),
            FILE.key,
            Watch().retry_policy(9),
            version=7,
            commit_id="my-id",
        )
    assert (raised.value.commit_id, raised.value.version) == ("my-id", 7)
    assert "to question 3" in str(raised.value.__cause__)


def test_an_unknown_outcome_reads_the_same_after_a_wait_and_after_an_interrupt() -> None:
    raised = unknown(FILE.key, 7, "my-id")

    mine = Request(commit_id="my-id", asked="00")
    on_its_way = describe_status(mine)
    mine.status.error = raised

    assert str(raised).endswith(f"; {describe_status(mine)}")
    assert on_its_way == describe_status(mine).replace(
        "may have been committed", "is in progress and may be committed"
    )


def test_a_retry_policy_is_kept_when_a_handle_moves_to_another_process() -> None:
    assert pickle.loads(pickle.dumps(RetryPolicy())) == RetryPolicy()  # noqa: S301 - our own bytes
