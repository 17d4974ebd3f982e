"""Segments next to their commits: verified, restored, and made where writers did not."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger import SetOption
from ledger.history.verifying import Subject
from ledger.history.verifying.caches import missing_segments
from ledger.log import digest, is_same_segment, read_segment, write_segment
from ledger.log.replay import START
from ledger.table_handle import handle_of
from tests.history.ledgers import Place, contents, files_in, flip
from tests.history.test_verify import ON_ONE_FOLDER
from tests.lakes import memory
from tests.log.long_logs import ROOT, Without, long_table, sealed, table_on


def segment(place: Place) -> Path:
    (found,) = files_in(place.stream / "segments")
    return found


def subject_on(store: Any) -> Subject[Any, Any]:
    return Subject("shop.orders", handle_of(table_on(store)).log, has_files=True)


def test_a_writer_leaves_a_segment_that_verifies(long: Place) -> None:
    path = segment(long)
    lines = read_segment(path.read_bytes(), 0, 800)

    assert lines == [long.commit(version).read_bytes() for version in range(801)]
    assert long.look().findings == []
    assert list(missing_segments(long.subject())) == []


def test_a_missing_segment_is_reported_and_is_no_failure(long: Place) -> None:
    before = contents([segment(long)])
    shutil.rmtree(long.stream / "segments")

    (found,) = long.look().findings
    assert (found.kind, found.version, found.fails) == ("absent", 800, False)
    long.repair()
    assert contents([segment(long)]) == before


def forged(body: bytes, start: int) -> bytes:
    lines = read_segment(body, 0, 800)
    for place in range(start, len(lines)):
        commit = msgspec.json.decode(lines[place])
        commit["transactions"][0]["author"] = "nobody"
        if place:
            commit["parent"] = digest(lines[place - 1])
        lines[place] = msgspec.json.encode(commit) + b"\n"
    return write_segment(lines)


@pytest.mark.parametrize("start", [0, 400, 800])
def test_a_forged_segment_fails_and_is_restored(long: Place, start: int) -> None:
    path = segment(long)
    whole = path.read_bytes()
    path.write_bytes(forged(whole, start))

    (found,) = long.look().findings
    assert (found.kind, found.fails, found.version) == ("derived", True, 800)
    assert long.repair() == [found]
    assert path.read_bytes() == whole
    assert long.look().findings == []


@ON_ONE_FOLDER
@given(data=st.data())
def test_a_bit_flipped_in_a_segment_is_found_or_changes_nothing_that_is_read(
    long_template: Place, data: st.DataObject
) -> None:
    path = segment(long_template)
    offset = data.draw(st.integers(0, path.stat().st_size - 1))
    before = flip(path, offset, data.draw(st.integers(0, 7)))
    try:
        body = path.read_bytes()
    finally:
        path.write_bytes(before)
    if is_same_segment(before, body):
        assert read_segment(body, 0, 800) == read_segment(before, 0, 800)


def test_a_file_that_is_no_segment_is_reported(long: Place) -> None:
    strangers = ["notes.txt", f"{0:020d}-{100:020d}.parquet"]
    for name in strangers:
        (long.stream / "segments" / name).write_bytes(b"hello")

    found = long.look().findings

    assert {each.kind for each in found} == {"foreign"}
    assert {each.file.rpartition("/")[2] for each in found} == set(strangers)
    assert not any(each.fails for each in found)


def test_a_tail_cut_below_a_segment_is_found_by_it(long: Place) -> None:
    shutil.rmtree(long.stream / "caches")
    for version in range(790, 831):
        long.commit(version).unlink()

    first = long.look().damages[0]

    assert first.version == 790
    assert "written at version 800" in first.what


def test_a_segment_of_commits_that_are_too_long_is_reported(
    long: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ledger.history.verifying.caches.MOST_BYTES", 10_000)

    (found,) = long.look().findings

    assert found.kind == "foreign"
    assert "too long" in found.what


def test_maintenance_makes_what_is_missing_and_nothing_else() -> None:
    store = memory()
    table = long_table(store, 2_450)
    sealed(table, 800)
    kept = dict(contents_of(store))

    made = list(missing_segments(subject_on(store)))

    assert [(each.first, each.last) for each in made] == [(801, 1_600), (1_601, 2_400)]
    assert contents_of(store) == kept
    for each in made:
        store.replace(each.path, each.body)
    assert list(missing_segments(subject_on(store))) == []
    reader, plain = (
        handle_of(table_on(store)).log.reader,
        handle_of(table_on(Without(store))).log.reader,
    )
    assert list(reader.after(START, 2_450)) == list(plain.after(START, 2_450))


def test_maintenance_leaves_a_log_with_a_gap_alone() -> None:
    store = memory()
    table = long_table(store, 1_600)
    handle_of(table).log.checkpoints.save(handle_of(table).log.head)  # type: ignore[arg-type]
    store.delete(handle_of(table).log.layout.commit(70))

    made = list(missing_segments(subject_on(store)))

    assert [each.first for each in made] == [801]


class Crew:
    """Threads that repeat their work until they are stopped, and the errors in them."""

    def __init__(self) -> None:
        self.failures: list[BaseException] = []
        self._is_over = threading.Event()
        self._threads: list[threading.Thread] = []

    def begin(self, work: Callable[[], object]) -> None:
        def run() -> None:
            try:
                while not self._is_over.is_set():
                    work()
            except BaseException as error:  # noqa: BLE001 - reported by the test
                self.failures.append(error)

        self._threads.append(threading.Thread(target=run))
        self._threads[-1].start()

    def end(self) -> list[BaseException]:
        self._is_over.set()
        for each in self._threads:
            each.join()
        return self.failures


def test_maintenance_harms_no_concurrent_writers_and_readers() -> None:
    store = memory()
    long_table(store, 1_590)

    def maintain() -> None:
        for each in missing_segments(subject_on(store)):
            store.replace(each.path, each.body)

    def look() -> None:
        reads = handle_of(table_on(store)).log.reader.after(START)
        found = [each.commit.version for each in reads]
        assert found == list(range(len(found)))

    crew = Crew()
    for work in (maintain, maintain, look):
        crew.begin(work)
    table = table_on(store)
    for number in range(30):
        table.alter([SetOption("k", str(number))])

    assert crew.end() == []
    assert table_on(store).state.version == 1_620
    assert len(list(store.keys(f"{ROOT}/segments"))) == 2


def contents_of(store: Any) -> dict[str, bytes]:
    return {key: store.read(key) for key in store.keys("")}
