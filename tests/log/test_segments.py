"""Segments change the cost of reading and never what is read, whatever they contain."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from typing import Final

import msgspec
import pytest
import structlog
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger import DamagedLogError, SetOption
from ledger.log import CHECKPOINT_INTERVAL, Head, Position, digest, read_segment, write_segment
from ledger.log.replay import START
from ledger.stores import LocalStore, MemoryStore, Store
from ledger.table_handle import handle_of
from tests.faults import Died, DiesAfter, RacesBefore, Wrapped
from tests.lakes import lake_on, memory, ticking
from tests.log.long_logs import ROOT, Without, long_log, long_table, sealed, store_of, table_on
from tests.programs import output_of
from tests.thorough import examples

COMMITS: Final = 1_700
SPANS: Final = ((0, 800), (801, 1_600))
WIDTHS: Final = (2, 3)
_numbers = itertools.count()

Read = tuple[int, str]


class Counting(Wrapped):
    """A store at a distance that counts what is asked for."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self.is_near = False
        self.asked: list[str] = []

    def read(self, key: str) -> bytes | None:
        self.asked.append(key)
        return super().read(key)

    def read_many(self, keys: Sequence[str]) -> Iterator[bytes | None]:
        for key in keys:
            yield self.read(key)


class Unlocked(Wrapped):
    """A store that cannot lock, and so lets everybody in."""

    def lock(self, key: str) -> AbstractContextManager[None]:
        del key
        return nullcontext()


def fresh(bodies: dict[str, bytes]) -> MemoryStore:
    return store_of(bodies, f"segments-{next(_numbers)}")


def key_of(span: tuple[int, int]) -> str:
    return f"{ROOT}/segments/{span[0]:020d}-{span[1]:020d}.parquet"


def commit_key(version: int) -> str:
    return f"{ROOT}/log/{version:020d}.json"


def all_of(store: Store, position: Position, last: int | None) -> list[Read]:
    reads = handle_of(table_on(store)).log.reader.after(position, last)
    return [(each.commit.version, each.digest) for each in reads]


def rewritten(lines: list[bytes], start: int) -> list[bytes]:
    """Return commits of which those from `start` on say something else, with a chain that fits."""
    found = lines[:start]
    for line in lines[start:]:
        commit = msgspec.json.decode(line)
        commit["transactions"][0]["author"] = "nobody"
        if found:
            commit["parent"] = digest(found[-1])
        found.append(msgspec.json.encode(commit) + b"\n")
    return found


def forged(log: dict[str, bytes], span: tuple[int, int], data: st.DataObject) -> bytes:
    """Return a valid segment that says something else than the log."""
    lines = read_segment(log[key_of(span)], *span)
    false = rewritten(lines, data.draw(st.integers(0, len(lines) - 1)))
    if data.draw(st.booleans()):
        # Its end is the log's; the chain breaks right before it.
        false[-1] = lines[-1]
    return write_segment(false)


def damaged(body: bytes, data: st.DataObject) -> bytes:
    cut = data.draw(st.integers(1, len(body)))
    changed = bytearray(body[:cut])
    changed[data.draw(st.integers(0, cut - 1))] ^= 1 << data.draw(st.integers(0, 7))
    return bytes(changed)


@settings(deadline=None, max_examples=examples(30))
@given(data=st.data())
def test_whatever_the_segments_are_what_is_read_is_the_same(data: st.DataObject) -> None:
    width, other = data.draw(st.permutations(WIDTHS))
    log = dict(long_log(COMMITS, width))
    for span in SPANS:
        body = log.pop(key_of(span))
        match data.draw(
            st.sampled_from(["whole", "missing", "damaged", "forged", "stale", "other"])
        ):
            case "whole":
                log[key_of(span)] = body
            case "damaged":
                log[key_of(span)] = damaged(body, data)
            case "forged":
                log[key_of(span)] = forged(long_log(COMMITS, width), span, data)
            case "stale":
                log[key_of(span)] = long_log(COMMITS, other)[key_of(span)]
            case "other":
                log[key_of(span)] = long_log(COMMITS, width)[
                    key_of(data.draw(st.sampled_from(SPANS)))
                ]
    first = data.draw(st.one_of(st.just(0), st.integers(0, COMMITS)))
    last = data.draw(st.one_of(st.none(), st.integers(first, COMMITS)))
    before = digest(log[commit_key(first - 1)]) if first else ""
    store = fresh(log)

    for start in (Position(first - 1, before), Position(first - 1, "")):
        assert all_of(store, start, last) == all_of(Without(store), start, last)


@pytest.mark.parametrize("last", [COMMITS, None])
def test_a_long_log_is_read_from_few_files(last: int | None) -> None:
    store = Counting(fresh(long_log(COMMITS)))
    table = table_on(store)
    store.asked.clear()

    assert len(list(handle_of(table).log.reader.after(START, last))) == COMMITS + 1
    # A segment and the commit that vouches for it, twice, and the tail.
    most = 4 + 100 if last else 128 + 4 + 103
    assert len(store.asked) <= most
    for_state = Counting(fresh(long_log(COMMITS)))
    assert table_on(for_state).state.version == COMMITS
    assert len([key for key in for_state.asked if "/log/" in key]) < 240


def test_few_commits_are_read_without_a_look_for_segments() -> None:
    store = Counting(fresh(long_log(COMMITS)))
    table = table_on(store)
    log, head = handle_of(table).log, handle_of(table).log.head
    assert head is not None
    store.asked.clear()

    table.alter([SetOption("k", "1")])
    list(log.commits(1_500, 1_650))
    list(log.commits(700, 850))
    log.commit_at(1_600)
    table_on(store.inner).alter([SetOption("k", "2")])
    log.catch_up()

    assert not [key for key in store.asked if "/segments/" in key]


@pytest.mark.parametrize("is_near", [True, False])
def test_an_older_state_is_read_from_what_lies_before_the_next_checkpoint(*, is_near: bool) -> None:
    store = Counting(fresh(long_log(COMMITS)))
    log = handle_of(table_on(store.inner)).log
    builder = log.stream.builder(None)
    for read in log.commits(0, COMMITS):
        builder.commit(read.commit)
        if read.commit.version % CHECKPOINT_INTERVAL == 0:
            log.checkpoints.save(Head(builder.freeze(), read.digest))
    table = table_on(store)
    store.is_near = is_near
    store.asked.clear()

    assert table.at(version=450).version == 450
    # Whether anything is new is asked first.
    asked = [key for key in store.asked if "/caches/" not in key and key != commit_key(COMMITS + 1)]
    # A file is cheap where it is near; elsewhere a segment is, and the commit that vouches for it.
    expected = [*map(commit_key, range(401, 452))]
    assert asked == (expected if is_near else [commit_key(800), key_of(SPANS[0])])

    table.at(snapshot=200)
    table.at(timestamp=table.at(version=777).state.time_millis)
    if is_near:
        assert not [key for key in store.asked if "/segments/" in key]


def test_segments_that_are_not_there_cost_one_look_each() -> None:
    store = Counting(Without(fresh(long_log(COMMITS))))
    log = handle_of(table_on(store)).log
    store.asked.clear()

    assert len(list(log.commits(0, COMMITS))) == COMMITS + 1

    assert len([key for key in store.asked if "/segments/" in key]) == 2
    assert len(store.asked) == COMMITS + 1 + 4


@pytest.mark.parametrize("kind", ["damaged", "forged"])
def test_a_segment_that_does_not_fit_is_logged(kind: str) -> None:
    log = dict(long_log(COMMITS))
    key = key_of(SPANS[1])
    lines = read_segment(log[key], *SPANS[1])
    log[key] = b"PAR1" if kind == "damaged" else write_segment(rewritten(lines, 5))

    with structlog.testing.capture_logs() as logged:
        assert len(all_of(fresh(log), START, COMMITS)) == COMMITS + 1

    warned = [each for each in logged if each["event"] == "segment_passed_over"]
    assert {each["file"] for each in warned} == {key}
    assert "lakeledger verify --repair" in warned[0]["advice"]


def test_a_segment_does_not_hide_that_its_last_commit_is_gone() -> None:
    log = dict(long_log(COMMITS))
    store = fresh(log)
    table = table_on(store)
    store.delete(commit_key(1_600))

    with pytest.raises(DamagedLogError, match="00001600.json is missing"):
        list(handle_of(table).log.commits(0, COMMITS))


def test_a_segment_does_not_hide_that_the_commits_after_it_follow_another() -> None:
    log = dict(long_log(COMMITS))
    log[commit_key(801)] = rewritten([log[commit_key(801)]], 0)[0]
    del log[key_of(SPANS[1])]
    with pytest.raises(DamagedLogError, match=r"names another parent than .*00801.json is"):
        all_of(fresh(log), START, COMMITS)


def test_a_boundary_writes_the_segment_and_no_other_version_does() -> None:
    store = memory()
    table = long_table(store, 798)
    for _ in range(4):
        table.alter([SetOption("k", str(table.state.version))])

    assert list(store.keys(f"{ROOT}/segments")) == [key_of((0, 800))]
    body = store.read(key_of((0, 800)))
    assert body is not None
    assert read_segment(body, 0, 800) == [store.read(commit_key(each)) for each in range(801)]


def test_where_files_are_requests_a_segment_is_sealed_by_the_process_that_holds_its_commits() -> (
    None
):
    bodies = dict(long_log(799))
    asked: list[int] = []
    for at_hand in (True, False):
        store = Counting(fresh(bodies))
        table = table_on(store)
        if not at_hand:
            state = table.at(version=700).state
            handle_of(table).log.checkpoints.save(Head(state, digest(bodies[commit_key(700)])))
            table = table_on(store)
        store.asked.clear()
        table.alter([SetOption("k", "v")])
        assert bool(list(store.keys(f"{ROOT}/segments"))) == at_hand
        asked.append(len([each for each in store.asked if "/log/" in each]))
    # Sealing has read nothing: a writer with more in memory reads less for the other caches.
    assert asked[0] <= asked[1]


def test_the_catalog_is_sealed_too() -> None:
    store = memory()
    lake = lake_on(store, ticking())
    for number in range(801):
        lake.create_database(f"d{number}")

    (key,) = store.keys("_ledger/segments")
    assert key == "_ledger/segments/00000000000000000000-00000000000000000800.parquet"
    counting = Counting(store)
    assert len(list(lake_on(counting).events())) == 801
    assert len([each for each in counting.asked if "_ledger/log/" in each]) < 10


def test_commits_too_long_for_a_segment_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ledger.log.segments.MOST_BYTES", 100_000)
    monkeypatch.setattr("ledger.log.segments.MOST_BYTES", 100_000)
    store = memory()
    table = long_table(store, 799)

    table.alter([SetOption("k", "v")])

    assert list(store.keys(f"{ROOT}/segments")) == []
    assert handle_of(table).log.segments.made(0, 800) is None
    assert len(all_of(store, START, 800)) == 801


def test_a_writer_killed_at_any_write_of_a_boundary_harms_nothing() -> None:
    bodies = long_log(799)
    for writes in itertools.count():
        inner = fresh(dict(bodies))
        store = DiesAfter(inner, writes)
        with suppress(Died):
            table_on(store).alter([SetOption("k", "v")], commit_id="mine")
        table = table_on(inner)
        assert table.state.version == (800 if writes else 799)
        assert all_of(inner, START, table.state.version) == all_of(
            Without(inner), START, table.state.version
        )
        assert table.alter([SetOption("k", "v")], commit_id="mine").repeated == bool(writes)
        if not store.is_dead:
            assert list(inner.keys(f"{ROOT}/segments"))
            break
    # The commit, the checkpoint and its hint, two indexes, a run, and the segment.
    assert writes >= 7


def test_a_segment_that_cannot_be_written_fails_no_commit() -> None:
    class Full(Wrapped):
        def replace(self, key: str, body: bytes) -> None:
            if "/segments/" in key:
                raise OSError("no space left on device")
            super().replace(key, body)

    store = Full(fresh(dict(long_log(799))))
    assert table_on(store).alter([SetOption("k", "v")]).state.version == 800
    assert list(store.keys(f"{ROOT}/segments")) == []


def test_two_writers_at_a_boundary_leave_one_segment_that_fits() -> None:
    inner = Unlocked(fresh(dict(long_log(799))))
    other = table_on(inner)
    store = RacesBefore(
        inner,
        lambda: [other.alter([SetOption("a", str(each))]) for each in range(3)],
        on=lambda key: key.endswith("800.json"),
    )

    assert table_on(store).alter([SetOption("b", "1")]).state.version == 803

    table = table_on(inner)
    sealed(table, 800)
    assert all_of(inner, START, 803) == all_of(Without(inner), START, 803)


def test_readers_near_a_boundary_read_every_commit_once() -> None:
    inner = fresh(dict(long_log(790)))
    writer = table_on(inner)
    failures: list[BaseException] = []
    is_over = threading.Event()

    def look() -> None:
        try:
            while not is_over.is_set():
                newest = table_on(inner).state.version
                found = [each for each, _ in all_of(inner, START, None)]
                assert found == list(range(len(found)))
                assert len(found) > newest
        except BaseException as error:  # noqa: BLE001 - reported by the test
            failures.append(error)

    readers = [threading.Thread(target=look) for _ in range(2)]
    for each in readers:
        each.start()
    for number in range(30):
        writer.alter([SetOption("k", str(number))])
    is_over.set()
    for each in readers:
        each.join()

    assert failures == []
    assert list(inner.keys(f"{ROOT}/segments")) == [key_of((0, 800))]


READ = """
import sys
import ledger
table = ledger.open(sys.argv[1]).table("shop.orders")
print(sum(1 for _ in table.events()), "pyarrow" in sys.modules)
"""


def test_reading_a_short_log_of_a_local_disk_loads_no_parquet_library(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    for key, body in long_log(1_700).items():
        store.replace(key, body)
    assert output_of("-c", READ, tmp_path).split() == ["1701", "False"]


def test_a_change_of_the_log_below_a_segment_is_found_by_verifying_alone() -> None:
    """As with checkpoints: what a cache vouches for again is not read from the log."""
    log = dict(long_log(COMMITS))
    log[commit_key(300)] = b"torn"
    store = fresh(log)

    assert all_of(store, START, COMMITS) == all_of(fresh(long_log(COMMITS)), START, COMMITS)
    with pytest.raises(DamagedLogError, match="torn"):
        all_of(Without(store), START, COMMITS)
