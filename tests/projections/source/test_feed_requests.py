"""Requests of a feed of many tables, the length of its offsets, and its positions on the store."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from attrs import frozen

from ledger import InvalidInputError, StoreError
from ledger.log.activity import FOLDER as ACTIVITY
from ledger.log.activity import KEPT_MILLIS, MARKER, SLOT_MILLIS
from ledger.log.feed_files import FOLDER, RENEWED_MILLIS
from ledger.stores import Store
from projections.source.commit_feed import CommitFeed
from projections.source.feed_offset import Offset
from tests.projections.source.many_tables import ManyTables, name_of, spans_of

HOUR = 3_600_000


class Moment:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.millis = 1_700_000_000_000

    def __call__(self) -> int:
        return self.millis


def kept(offset: Offset) -> Offset:
    """Return an offset as a checkpoint gives it back."""
    found: Offset = json.loads(json.dumps(offset))
    return found


def length(offset: Offset) -> int:
    return len(json.dumps(offset))


@frozen
class Followed:
    """A ledger of 10,000 tables, its feed and that feed's first batch."""

    many: ManyTables
    feed: CommitFeed
    start: Offset
    offset: Offset


@pytest.fixture(scope="module")
def followed() -> Followed:
    many = ManyTables.of(10_000)
    feed = many.feed()
    start = feed.initial()
    return Followed(many, feed, start, feed.latest(start))


def test_nothing_new_in_ten_thousand_tables_costs_at_most_ten_requests(followed: Followed) -> None:
    feed, offset = followed.feed, followed.offset
    assert length(offset) < 10_000
    assert sum(map(len, spans_of(feed, followed.start, offset).values())) == 10_000
    for _ in range(20):
        followed.many.store.take_count()
        assert feed.latest(offset) == offset
        assert followed.many.store.take_count() <= 10


def test_ten_of_ten_thousand_tables_cost_requests_for_ten_also_after_a_restart(
    followed: Followed,
) -> None:
    many, feed, offset = followed.many, followed.feed, followed.offset
    changed = {name_of(each): [1] for each in range(7_000, 7_100, 10)}
    for number in range(7_000, 7_100, 10):
        many.commit(number)
    many.settle()
    after = feed.latest(offset)
    assert many.store.take_count() <= 10 + 2 * len(changed)
    assert spans_of(feed, offset, after) == changed
    assert length(after) < 10_000

    again = many.feed()
    many.store.take_count()
    later = again.latest(kept(offset))
    # The catalog is opened again, and the positions are read.
    assert many.store.take_count() <= 60
    assert spans_of(again, offset, later) == changed


def test_a_commit_without_an_announcement_comes_in_rotation_once() -> None:
    many = ManyTables.of(100)
    feed = many.feed()
    offset = feed.latest(feed.initial())
    _commit_unannounced(many, 77)
    found = []
    for _ in range(25):
        after = feed.latest(offset)
        found.append(spans_of(feed, offset, after))
        offset = after
    assert [each for each in found if each] == [{name_of(77): [1]}]


def test_a_commit_without_an_announcement_comes_with_the_next_one_of_its_table() -> None:
    many = ManyTables.of(1_000)
    feed = many.feed()
    offset = feed.latest(feed.initial())
    _commit_unannounced(many, 900)
    many.commit(900)
    many.settle()
    assert spans_of(feed, offset, feed.latest(offset)) == {name_of(900): [1, 2]}


def _commit_unannounced(many: ManyTables, number: int) -> None:
    known = set(many.store.inner.keys(ACTIVITY))
    many.commit(number)
    many.settle()
    for key in set(many.store.inner.keys(ACTIVITY)) - known:
        many.store.inner.delete(key)


def test_a_wrong_announcement_is_looked_into_once() -> None:
    many = ManyTables.of(1_000)
    feed = many.feed()
    offset = feed.latest(feed.initial())
    folder = min(many.store.inner.keys(ACTIVITY)).rpartition("/")[0]
    many.store.inner.replace(f"{folder}/00000000-0000-7000-8000-{500:012d}-77", b"x")
    many.store.inner.replace(f"{folder}/of-another-ledger-77", b"x")
    many.store.take_count()
    assert feed.latest(offset) == offset
    first = many.store.take_count()
    assert feed.latest(offset) == offset
    assert many.store.take_count() == first - 2


@pytest.mark.parametrize("pause", [SLOT_MILLIS, HOUR, 30 * HOUR, 29 * 24 * HOUR])
@pytest.mark.parametrize("process", ["same", "restarted"])
def test_after_a_pause_of_any_length_the_index_is_read_from_there(pause: int, process: str) -> None:
    clock = Moment()
    many = ManyTables.of(200, clock)
    feed = many.feed()
    offset = feed.latest(feed.initial())
    clock.millis += pause // 2
    many.commit(150)
    clock.millis += pause - pause // 2
    many.settle()
    after = (feed if process == "same" else many.feed()).latest(offset)
    # At most one list a day, and those of opening the catalog.
    assert many.store.take_count() <= 60
    assert spans_of(feed, offset, after) == {name_of(150): [1]}


def test_a_feed_older_than_the_index_probes_every_table_once() -> None:
    clock = Moment()
    many = ManyTables.of(200, clock)
    feed = many.feed()
    offset = feed.latest(feed.initial())
    _commit_unannounced(many, 150)
    clock.millis += KEPT_MILLIS + 2 * SLOT_MILLIS
    after = feed.latest(offset)
    assert spans_of(feed, offset, after) == {name_of(150): [1]}
    many.store.take_count()
    assert feed.latest(after) == after
    assert many.store.take_count() <= 10


def test_the_first_feed_asks_for_announcements_and_probes_until_they_are_complete() -> None:
    clock = Moment()
    many = ManyTables.of(200, clock)
    for key in list(many.store.inner.keys(ACTIVITY)):
        many.store.inner.delete(key)
    fresh = ManyTables(many.store, many.reopened(), clock)
    fresh.commit(3)
    fresh.settle()
    assert list(many.store.inner.keys(ACTIVITY)) == []

    feed = fresh.feed()
    offset = feed.latest(feed.initial())
    assert list(many.store.inner.keys(ACTIVITY)) == [MARKER]
    # Its writer looked for the marker in this slot already.
    fresh.commit(150)
    fresh.settle()
    before, offset = offset, feed.latest(offset)
    assert spans_of(feed, before, offset) == {name_of(150): [1]}
    for number in (151, 152, 153):
        clock.millis += SLOT_MILLIS
        fresh.commit(number)
        fresh.settle()
        before, offset = offset, feed.latest(offset)
        assert spans_of(feed, before, offset) == {name_of(number): [1]}
    clock.millis += SLOT_MILLIS
    feed.latest(offset)
    many.store.take_count()
    assert feed.latest(offset) == offset
    assert many.store.take_count() <= 10


def test_a_feed_that_cannot_ask_for_announcements_probes_every_table(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = Moment()
    many = ManyTables.of(20, clock)
    many.store.inner.delete(MARKER)

    def refuse(key: str, _body: bytes) -> bool:
        raise StoreError(f"create {key}: permission denied")

    monkeypatch.setattr(many.store, "create", refuse)
    feed = many.feed()
    offset = feed.latest(feed.initial())
    monkeypatch.undo()
    _commit_unannounced(many, 17)
    clock.millis += 5 * SLOT_MILLIS
    monkeypatch.setattr(many.store, "create", refuse)
    assert spans_of(feed, offset, feed.latest(offset)) == {name_of(17): [1]}


def test_a_clock_of_a_writer_may_be_five_minutes_behind() -> None:
    clock = Moment()
    many = ManyTables.of(200, clock)
    ahead = many.feed()
    ahead.now_millis = lambda: clock() + SLOT_MILLIS
    offset = ahead.latest(ahead.initial())
    many.commit(150)
    many.settle()
    assert spans_of(ahead, offset, ahead.latest(offset)) == {name_of(150): [1]}


def offsets_of_all(
    many: ManyTables, feed: CommitFeed, rounds: int
) -> Iterator[tuple[Offset, Offset]]:
    """Yield the batches of commits to a fifth of the tables, again and again."""
    start = feed.initial()
    for _ in range(rounds):
        end = feed.latest(start)
        yield start, end
        start = end
        for number in range(0, 1_000, 5):
            many.commit(number)
        many.settle()


def feeds_on(store: Store) -> list[str]:
    return list(store.keys(FOLDER))


def test_positions_of_many_tables_are_one_file_which_is_deleted_with_its_batch() -> None:
    many = ManyTables.of(1_000)
    feed = many.feed()
    files = []
    for start, end in offsets_of_all(many, feed, 4):
        assert length(end) < 10_000
        spans = spans_of(feed, start, end)
        # The same in another process, before and after the commit.
        assert spans_of(many.feed(), kept(start), kept(end)) == spans
        feed.commit(kept(end))
        files.append(feeds_on(many.store.inner))
    assert all(len(each) == 1 for each in files)
    assert len({each[0] for each in files}) == 4


def test_positions_of_few_tables_need_no_permission_to_write() -> None:
    many = ManyTables.of(100)
    feed = many.feed()
    offset = feed.latest(feed.initial())
    many.commit(7)
    many.settle()
    feed.commit(feed.latest(offset))
    assert feeds_on(many.store.inner) == []
    assert not {"create", "replace", "delete"} & many.store.counts.keys()


def test_positions_that_cannot_be_written_are_an_error_that_names_the_folder(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    many = ManyTables.of(1_000)
    feed = many.feed()

    def refuse(key: str, _body: bytes) -> bool:
        raise StoreError(f"create {key}: permission denied")

    monkeypatch.setattr(many.store, "create", refuse)
    with pytest.raises(StoreError, match=r"1,000 tables .*/_ledger/feeds: .*permission denied"):
        feed.latest(feed.initial())


@pytest.mark.parametrize("body", [None, b"{", b'{"tables":{"a":"b"}}'])
def test_lost_positions_are_an_error_that_says_what_to_do(body: bytes | None) -> None:
    many = ManyTables.of(1_000)
    feed = many.feed()
    offset = kept(feed.latest(feed.initial()))
    (key,) = feeds_on(many.store.inner)
    many.store.inner.delete(key)
    if body is not None:
        many.store.inner.replace(key, body)
    again = many.feed()
    with pytest.raises(InvalidInputError, match="another checkpoint location and startingOffsets"):
        again.latest(offset)
    with pytest.raises(InvalidInputError, match=key):
        again.spans(again.initial(), offset)


def test_positions_are_renewed_so_that_maintenance_keeps_those_in_use() -> None:
    clock = Moment()
    many = ManyTables.of(1_000, clock)
    feed = many.feed()
    offset = feed.latest(feed.initial())
    for _ in range(3):
        before = offset["base"]
        clock.millis += RENEWED_MILLIS // 2
        many.commit(3)
        many.settle()
        assert feed.latest(offset)["base"] == before
        clock.millis += RENEWED_MILLIS
        offset = feed.latest(offset)
        assert offset["base"] != before
        assert offset["replaced"] == before


@pytest.mark.parametrize(
    "offset",
    [
        {"catalog": 1, "tables": {"a": "b"}},
        {"catalog": 1, "tables": {}, "more": 1},
        {"catalog": 1, "tables": {}, "base": "../../etc/passwd"},
        {"catalog": 1, "tables": {}, "replaced": "20269999-x.json"},
        {"a": {"identifier": "shop.a"}},
    ],
)
def test_an_offset_of_another_source_is_refused(offset: Offset) -> None:
    feed = ManyTables.of(3).feed()
    with pytest.raises(InvalidInputError, match="start the query with another checkpoint"):
        feed.latest(offset)


def test_a_checkpoint_of_another_ledger_is_refused() -> None:
    other = ManyTables.of(5).feed()
    end = kept(other.latest(other.initial()))
    end["tables"]["unknown"] = 4
    with pytest.raises(InvalidInputError, match="names table unknown"):
        other.spans(other.initial(), end)
