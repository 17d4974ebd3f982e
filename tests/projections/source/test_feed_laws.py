"""Laws of a feed: every commit comes once, whatever happens to writers and readers."""

from __future__ import annotations

import json
from collections import defaultdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger import SetOption
from ledger.log.activity import FOLDER as ACTIVITY
from ledger.log.activity import MARKER, SLOT_MILLIS
from ledger.table_handle import handle_of
from projections.source.commit_feed import CommitFeed, limit_commits
from projections.source.feed_offset import Offset
from tests.projections.source.many_tables import COLUMNS, ManyTables

TABLES = 7


class Moment:
    def __init__(self) -> None:
        self.millis = 1_700_000_000_000

    def __call__(self) -> int:
        return self.millis


class History:
    """A ledger whose tables change at random, and the batches that a query reads of it."""

    def __init__(self) -> None:
        self.clock = Moment()
        self.many = ManyTables.of(0, self.clock)
        # The feed asks for announcements itself.
        self.many.store.inner.delete(MARKER)
        self.feed: CommitFeed = self.many.feed()
        self.offset: Offset = self.feed.initial()
        self.read: dict[str, list[int]] = defaultdict(list)
        self.names: list[str] = []
        self.made = 0

    def create(self) -> None:
        name = f"many.x{self.made}"
        self.made += 1
        self.many.lake.create_table(name, COLUMNS)
        self.names.append(name)

    def change(self, number: int, commits: int) -> None:
        if self.names:
            table = self.many.lake.table(self.names[number % len(self.names)])
            for each in range(commits):
                table.alter([SetOption("k", str(each))])

    def rename(self, number: int) -> None:
        if self.names:
            place = number % len(self.names)
            new = f"many.x{self.made}"
            self.made += 1
            self.many.lake.rename_table(self.names[place], new)
            self.names[place] = new

    def drop(self, number: int) -> None:
        if self.names:
            self.many.lake.drop_table(self.names.pop(number % len(self.names)))

    def lose_announcements(self) -> None:
        """The writers were killed before they announced their last commits."""
        self.many.settle()
        for key in set(self.many.store.inner.keys(ACTIVITY)) - {MARKER}:
            self.many.store.inner.delete(key)

    def wait(self) -> None:
        self.many.settle()
        self.clock.millis += 3 * SLOT_MILLIS

    def restart(self) -> None:
        self.feed = self.many.feed()
        self.offset = json.loads(json.dumps(self.offset))

    def trigger(self, most: int | None, *, is_told: bool, dies: bool) -> None:
        """Read a batch; a query that dies in it reads it again after a restart."""
        end = self.feed.latest(self.offset, most) if is_told else self.feed.latest()
        spans = self.feed.spans(self.offset, end)
        if dies:
            before = self.offset
            self.restart()
            assert self.feed.spans(before, end) == spans
        if most is not None and is_told:
            assert sum(each.end.version - each.first + 1 for each in spans) <= most
        for each in spans:
            self.read[each.table.table_id] += range(each.first, each.end.version + 1)
        self.offset = end
        self.feed.commit(end)

    def committed(self) -> dict[str, list[int]]:
        handle = handle_of(self.many.lake)
        found = {each.table_id: handle.log_at(each).refresh() for each in handle.cataloged_tables()}
        return {key: list(range(state.version + 1)) for key, state in found.items() if state}


numbers = st.integers(0, TABLES)
steps = st.one_of(
    st.tuples(st.just("create")),
    st.tuples(st.just("change"), numbers, st.integers(1, 3)),
    st.tuples(st.just("change"), numbers, st.integers(1, 3)),
    st.tuples(st.just("rename"), numbers),
    st.tuples(st.just("drop"), numbers),
    st.tuples(st.just("lose_announcements")),
    st.tuples(st.just("wait")),
    st.tuples(st.just("restart")),
    st.tuples(st.just("trigger"), st.none() | st.integers(1, 5), st.booleans()),
    st.tuples(st.just("trigger"), st.none() | st.integers(1, 5), st.booleans()),
)


@pytest.mark.parametrize("spark", ["tells its position", "does not"])
@given(first=st.integers(0, TABLES), done=st.lists(steps, max_size=25))
@settings(max_examples=60, deadline=None)
def test_every_commit_comes_once_in_order_and_at_last_all_have_come(
    spark: str, first: int, done: list[tuple[object, ...]]
) -> None:
    is_told = spark == "tells its position"
    history = History()
    for _ in range(first):
        history.create()
    for name, *arguments in done:
        if name == "trigger":
            most, dies = arguments
            assert most is None or isinstance(most, int)
            history.trigger(most if is_told else None, is_told=is_told, dies=bool(dies))
        else:
            getattr(history, str(name))(*arguments)
    history.many.settle()
    # As many triggers as the rotation needs for all tables, and the rate for all commits.
    for _ in range(4 + history.made):
        history.trigger(None, is_told=is_told, dies=False)
    assert history.read == history.committed()


positions = st.dictionaries(st.sampled_from("abcdefgh"), st.integers(-1, 9))


@given(
    begun=positions, more=positions, most=st.integers(1, 12), turn=st.none() | st.sampled_from("az")
)
def test_a_limit_takes_all_that_it_may_and_leaves_no_table_behind(
    begun: dict[str, int], more: dict[str, int], most: int, turn: str | None
) -> None:
    heads = {key: begun.get(key, -1) + 1 + each for key, each in more.items()}
    heads = {**begun, **heads}
    left = sum(heads[key] - begun.get(key, -1) for key in heads)
    rounds = 0
    while left > 0:
        ends, turn = limit_commits(begun, heads, list("abcdefgh"), most, turn)
        taken = sum(ends[key] - begun.get(key, -1) for key in ends)
        assert taken == min(most, left)
        assert all(begun.get(key, -1) <= ends[key] <= heads[key] for key in ends)
        begun, left, rounds = ends, left - taken, rounds + 1
    assert rounds <= 100


@given(most=st.integers(1, 8), first=st.integers(2, 8))
def test_a_limit_serves_each_table_in_its_turn_however_busy_others_are(
    most: int, first: int
) -> None:
    names = list("abcdefgh"[:first])
    begun, turn = dict.fromkeys(names, 0), None
    for _ in range(-(-len(names) // most)):
        # All tables always have more than a batch takes.
        heads = {key: each + 100 for key, each in begun.items()}
        begun, turn = limit_commits(begun, heads, names, most, turn)
    assert min(begun.values()) >= 1
