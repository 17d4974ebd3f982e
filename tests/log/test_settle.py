"""How long a writer goes on, and what an answer that does not come means."""

from __future__ import annotations

import pytest

from ledger import CommitUnknownError
from ledger.log.settle import Draft, Patience, make_sure, settle
from ledger.stores import Store
from tests.faults import LosesAnswers, LosesRequests, Wrapped
from tests.lakes import memory

DRAFT = Draft("t/log/7.json", b"mine", 7, "my-id")


class Watch:
    """A clock that only sleeping moves; it remembers every sleep."""

    def __init__(self) -> None:
        self.now = 100.0
        self.slept: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds

    def patience(self, deadline_s: float) -> Patience:
        return Patience(
            deadline_s=deadline_s,
            first_wait_s=1.0,
            longest_wait_s=10.0,
            sleep=self.sleep,
            monotonic=lambda: self.now,
            uniform=lambda _low, high: high,
        )


class Silent(Wrapped):
    """Answers no question about what is there, the first so many times."""

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

    attempts = list(watch.patience(40).attempts())

    assert watch.slept == [4, 8, 10, 10, 10]
    assert attempts == [1, 2, 3, 4, 5, 6]


def test_pauses_are_drawn_between_nothing_and_the_longest() -> None:
    drawn: list[tuple[float, float]] = []

    def uniform(low: float, high: float) -> float:
        drawn.append((low, high))
        return low

    Patience(sleep=lambda _: None, uniform=uniform).pause(3)

    assert drawn == [(0, 0.016)]


def test_whoever_has_no_time_left_still_tries_once() -> None:
    watch = Watch()

    assert list(watch.patience(-1).attempts()) == [1]
    assert list(watch.patience(0).attempts())[:2] == [1, 2]


def test_another_file_in_the_place_is_a_loss() -> None:
    store = memory()
    store.create(DRAFT.key, b"theirs")

    assert settle(store, DRAFT, Watch().patience(9)) is False
    assert settle(LosesAnswers(store, times=1), DRAFT, Watch().patience(9)) is False
    assert store.read(DRAFT.key) == b"theirs"


@pytest.mark.parametrize("fault", [LosesAnswers, LosesRequests])
def test_what_stands_there_in_the_end_is_found_out(fault: type[LosesAnswers]) -> None:
    store = memory()

    assert settle(fault(store, times=2), DRAFT, Watch().patience(9)) is True
    assert store.read(DRAFT.key) == b"mine"


def test_a_file_that_landed_and_could_not_be_read_back_is_found_on_the_next_attempt() -> None:
    store = memory()

    landed = settle(Silent(LosesAnswers(store, times=2), times=1), DRAFT, Watch().patience(9))

    assert landed is True
    assert store.read(DRAFT.key) == b"mine"


def test_what_cannot_be_found_out_in_time_is_unknown_by_its_id() -> None:
    watch = Watch()

    with pytest.raises(CommitUnknownError, match=r"7\.json: .* commit my-id may have") as told:
        settle(Silent(LosesRequests(memory()), times=99), DRAFT, watch.patience(20))

    assert (told.value.commit_id, told.value.version) == ("my-id", 7)
    assert isinstance(told.value.__cause__, OSError)
    assert watch.slept == [4, 8, 10]


def test_a_commit_that_was_read_is_sure_once_the_store_confirms_it() -> None:
    store = Silent(memory(), times=2)

    make_sure(store, DRAFT.key, Watch().patience(9), version=7, commit_id="my-id")

    assert store.asked == 3
    with pytest.raises(CommitUnknownError, match=r"7\.json: .* commit my-id may") as told:
        make_sure(
            Silent(memory(), times=99),
            DRAFT.key,
            Watch().patience(9),
            version=7,
            commit_id="my-id",
        )
    assert (told.value.commit_id, told.value.version) == ("my-id", 7)
    assert "to question 3" in str(told.value.__cause__)
