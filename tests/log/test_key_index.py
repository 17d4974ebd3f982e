from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from ledger import Table, UpdateComment
from ledger.events import TableEvent
from ledger.files import file_key
from ledger.log import CHECKPOINT_INTERVAL, Commit, KeyIndex, Transaction
from ledger.log.key_index import IntervalTail, KeyLookup, hash_key, tiles
from ledger.log.layout import cut_key
from ledger.log.replay import Reader
from ledger.stores import MemoryStore
from ledger.table_handle import handle_of
from tests.faults import Wrapped
from tests.lakes import data_file, lake_on, memory, orders
from tests.log.long_logs import long_log, store_of, table_on


@given(st.integers(1, 5000))
def test_tiles_cover_every_version_once(steps: int) -> None:
    covered = [each for first, last in tiles(steps * 100) for each in range(last, first - 1, -100)]
    intervals = list(tiles(steps * 100))
    assert intervals[0][1] == steps * 100
    assert intervals[-1][0] == 0
    assert all(newer[0] == older[1] + 1 for newer, older in pairwise(intervals))
    assert len(intervals) <= 7 * 5
    assert covered


@given(st.lists(st.tuples(st.text(), st.integers(0, 2**40))))
def test_an_index_finds_every_version_of_a_key(pairs: list[tuple[str, int]]) -> None:
    index = KeyIndex.of((hash_key(key), version) for key, version in pairs)
    again = KeyIndex.from_bytes(index.to_bytes())
    assert again == index
    for key, _ in pairs:
        expected = sorted((version for name, version in pairs if name == key), reverse=True)
        assert index.find(key) == expected


@pytest.mark.parametrize("at", [0, 9, 20, -1])
def test_a_changed_index_is_not_believed(at: int) -> None:
    body = bytearray(KeyIndex.of([(1, 2), (3, 4)]).to_bytes())
    body[at] ^= 1
    assert KeyIndex.from_bytes(bytes(body)) is None
    assert KeyIndex.from_bytes(b"") is None


@given(st.lists(st.integers(0, 2**64 - 1)), st.integers(0, 6))
def test_the_cuts_of_an_index_hold_all_of_it_once(hashes: list[int], bits: int) -> None:
    index = KeyIndex.of((each, 7) for each in hashes)
    cuts = [index.part_with_prefix(bits, number) for number in range(1 << bits)]
    assert [pair for each in cuts for pair in each.pairs()] == list(index.pairs())
    for number, each in enumerate(cuts):
        assert all(found >> (64 - bits) == number for found in each.hashes if bits)


CUT = 6400


def indexed(name: str) -> tuple[MemoryStore, dict[str, int]]:
    """Return a log with all its indexes, and where each file of it was named."""
    store = store_of(long_log(CUT + 10), name)
    table = table_on(store)
    assert table.state.version == CUT + 10
    for version in range(100, CUT + 1, 100):
        handle_of(table).log.lookup.save(version)
    return store, {
        each.change.path: each.version for each in handle_of(table).live.changes(0, CUT + 10)
    }


def found(table: Table, paths: list[str]) -> dict[str, list[int]]:
    return {each: list(handle_of(table).log.last_named(file_key(each))) for each in paths}


class Sized(Wrapped):
    """Remembers what was read."""

    def __init__(self, inner: MemoryStore) -> None:
        super().__init__(inner)
        self.read_bytes: dict[str, int] = {}

    def read(self, key: str) -> bytes | None:
        body = super().read(key)
        self.read_bytes[key] = len(body or b"")
        return body


def test_one_look_up_in_a_long_log_reads_little_of_its_index() -> None:
    store, named = indexed("key-index-cut")
    key = handle_of(table_on(store)).log.layout.index(0, CUT)
    whole = len(store.read(key) or b"")
    sized = Sized(store)
    table = table_on(sized)
    paths = list(named)[:40]
    handle_of(table).log.refresh()
    assert found(table, paths[:1]) == {paths[0]: [named[paths[0]]]}
    read = [size for each, size in sized.read_bytes.items() if each.endswith(".idx")]
    assert len(read) == 1
    assert read[0] < whole / 6

    # A caller that repeats look-ups has all of it soon, and reads no more.
    assert found(table, paths[1:]) == {each: [named[each]] for each in paths[1:]}
    read = [size for each, size in sized.read_bytes.items() if each.endswith(".idx")]
    assert len(read) <= 5
    assert max(read) == whole


def test_what_is_missing_of_an_index_is_found_in_what_it_was_made_of() -> None:
    store, named = indexed("key-index-uncut")
    paths = list(named)[::97]
    expected = {each: [named[each]] for each in paths}
    table = table_on(store)
    handle_of(table).log.refresh()
    assert found(table, paths) == expected

    key = handle_of(table).log.layout.index(0, CUT)
    for number in range(8):
        # As an older client leaves it.
        store.delete(cut_key(key, number))
    again = table_on(store)
    handle_of(again).log.refresh()
    assert found(again, paths) == expected

    store.delete(key)
    last = table_on(store)
    handle_of(last).log.refresh()
    assert found(last, paths) == expected


class Gone(Wrapped):
    """A store without any index."""

    def read(self, key: str) -> bytes | None:
        assert not key.endswith(".idx"), key
        return super().read(key)


def test_a_following_writer_merges_what_it_knows_and_makes_no_request_for_it() -> None:
    writer = orders(lake_on(memory()))
    follower = table_on(Gone(handle_of(writer).log.store))
    for number in range(1650):
        writer.append([data_file(f"f{number}.parquet")])
        handle_of(follower).log.refresh()
        if number % 100 == 50:
            assert found(follower, ["f0.parquet"]) == {"f0.parquet": [1]}
    assert handle_of(writer).log.wait_for_caches()
    lookup = handle_of(follower).log.lookup
    assert lookup.merge_next()
    while lookup.merge_next():
        pass
    wanted = [0, 99, 100, 700, 799, 800, 1500, 1649]
    assert found(follower, [f"f{each}.parquet" for each in wanted]) == {
        f"f{each}.parquet": [each + 1] for each in wanted
    }


def test_a_following_writer_merges_completed_indexes_with_its_next_commit() -> None:
    writer = orders(lake_on(memory()))
    follower = table_on(handle_of(writer).log.store)
    for number in range(CHECKPOINT_INTERVAL + 1):
        writer.append([data_file(f"f{number}.parquet")])
        handle_of(follower).log.refresh()
        if number == 50:
            assert found(follower, ["f0.parquet"]) == {"f0.parquet": [1]}
    assert handle_of(follower).log.lookup.queued_merges == 1

    follower.append([data_file("mine.parquet")])

    assert handle_of(follower).log.wait_for_caches()
    assert not handle_of(follower).log.lookup.merge_next(), "it was not merged before"


def test_what_is_at_hand_of_an_interval_says_from_where_on_it_has_to_be_read() -> None:
    tail: IntervalTail[UpdateComment] = IntervalTail(1, lambda _: ())
    first = tail.first
    for version in (first, first + 2):
        tail.add_commits([Commit(format=3, version=version, time_millis=0, transactions=())])

    assert tail.lacks(first) == range(first + 1, first + 1)
    assert tail.lacks(first + 2) == range(first + 1, first + 3)
    tail.add_commits([Commit(format=3, version=first + 1, time_millis=0, transactions=())])
    assert not tail.lacks(first + 2)
    assert [*tail.lacks(first + 3)] == [first + 3]


def test_indexes_that_cannot_be_merged_are_logged_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def full() -> bool:
        raise OSError("no space left")

    table = orders(lake_on(memory()))
    monkeypatch.setattr(handle_of(table).log.lookup, "merge_next", full)

    with capture_logs() as logged:
        assert handle_of(table).log.save_next_caches()

    assert [(each["event"], str(each["error"])) for each in logged] == [
        ("merging_failed", "no space left")
    ]


def test_what_is_read_over_a_boundary_is_noted_of_the_interval_that_it_is_of() -> None:
    log = handle_of(orders(lake_on(memory()))).log
    lookup: KeyLookup[TableEvent] = KeyLookup(
        log.store, log.layout, Reader(log.store, log.layout, log.codec), lambda _: ["k"]
    )
    commits: list[Commit[TableEvent]] = [
        Commit(
            format=3,
            version=each,
            time_millis=0,
            transactions=(Transaction(asked="", id=f"c{each}"),),
        )
        for each in range(CHECKPOINT_INTERVAL - 3, CHECKPOINT_INTERVAL + 4)
    ]
    lookup.add_commits(commits)

    # Of the one before nothing is kept that was not requested.
    assert [lookup.keys_of_commit(each) is not None for each in commits] == [False] * 4 + [True] * 3
