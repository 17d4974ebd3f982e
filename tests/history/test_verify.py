from __future__ import annotations

import gc
import shutil
import threading
import tracemalloc
from array import array
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ledger import InvalidInputError, SetOption, Table
from ledger.files.runs import NO_ROWS, check_file_content
from ledger.history.verifying import Expected, Finding, Subject, Verification, repair
from ledger.history.verifying.caches import Caches, key_filter_findings
from ledger.history.verifying.verify import MOST_DAMAGES
from ledger.log import KeyFilter, Layout, digest, now_millis
from ledger.log.layout import cut_key
from ledger.state import FOLD_VERSION
from ledger.stores import Durability, LocalStore
from ledger.table_handle import handle_of
from tests.history.ledgers import Place, contents, files_in, flip
from tests.lakes import START_MILLIS, data_file, lake_on, memory, orders, ticking
from tests.log.long_logs import ROOT, long_table, table_on
from tests.thorough import examples

CHECKPOINTS = f"caches/{FOLD_VERSION}"
LAYOUT = Layout.of_fold(ROOT, FOLD_VERSION)
ON_ONE_FOLDER = settings(
    deadline=None,
    max_examples=examples(60),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


def test_a_healthy_ledger_has_nothing_to_find_and_shows_its_head(long: Place) -> None:
    before = contents(files_in(long.folder))

    looked = long.look()

    assert looked.findings == []
    assert (looked.version, looked.digest) == (830, digest(long.commit(830).read_bytes()))
    assert contents(files_in(long.folder)) == before


@ON_ONE_FOLDER
@given(data=st.data())
def test_one_bit_flipped_anywhere_in_a_log_names_its_version(
    short_template: Place, data: st.DataObject
) -> None:
    head = Expected(digest(short_template.commit(76).read_bytes()), 76)
    version = data.draw(st.integers(0, 76))
    path = short_template.commit(version)
    offset = data.draw(st.integers(0, path.stat().st_size - 1))
    before = flip(path, offset, data.draw(st.integers(0, 7)))
    try:
        looked = short_template.look(head)
    finally:
        path.write_bytes(before)

    assert looked.damages[0].version == version


@settings(ON_ONE_FOLDER, max_examples=examples(25))
@given(data=st.data())
def test_one_bit_flipped_in_a_cache_or_a_side_file_is_found(
    long_template: Place, data: st.DataObject
) -> None:
    folder = long_template.stream
    paths = [*long_template.caches(), *files_in(folder / "changes")]
    path = data.draw(st.sampled_from(paths))
    offset = data.draw(st.integers(0, path.stat().st_size - 1))
    before = flip(path, offset, data.draw(st.integers(0, 7)))
    try:
        looked = long_template.look()
        concerned = {each.file for each in looked.findings}
    finally:
        path.write_bytes(before)

    key = path.relative_to(long_template.folder).as_posix()
    if path.name == "LATEST" and before[1:] == b"00\n" and not concerned:
        return  # another checkpoint's version: a floor to search from is all that it is
    assert key.removesuffix(".sha256") in {each.removesuffix(".sha256") for each in concerned}


@pytest.mark.parametrize("version", [0, 1, 40, 75])
def test_a_missing_commit_is_named(short: Place, version: int) -> None:
    short.commit(version).unlink()

    first = short.look().damages[0]

    assert (first.version, first.file) == (version, _key(short, short.commit(version)))
    assert "missing" in first.what


def test_a_long_gap_is_one_finding_and_what_is_behind_it_is_looked_at(short: Place) -> None:
    for version in range(10, 30):
        short.commit(version).unlink()
    flip(short.commit(50), 90, 0)

    damages = short.look().damages

    assert [each.version for each in damages] == [10, 50]
    assert "10 to 29 are missing" in damages[0].what


def test_a_missing_or_damaged_list_of_files_names_the_commit_that_names_it(short: Place) -> None:
    (path,) = files_in(short.stream / "changes")
    whole = path.read_bytes()
    path.unlink()
    missing = short.look().damages[0]
    path.write_bytes(whole[:-9])
    torn = short.look().damages[0]

    for each in (missing, torn):
        assert (each.version, each.file) == (75, _key(short, path))


def test_every_missing_cache_is_reported_and_is_no_failure(long: Place) -> None:
    caches = long.caches()
    for path in caches:
        path.unlink()

    looked = long.look()

    assert {each.kind for each in looked.findings} == {"absent"}
    named = {key for each in looked.findings for key, _ in each.remedy}
    assert named == {_key(long, path) for path in caches}


def test_a_merged_index_and_its_cuts_are_compared_and_restored() -> None:
    store, newest = memory(), 6_400
    long_table(store, newest)

    def look() -> list[Finding]:
        subject: Subject[Any, Any] = Subject("t", handle_of(table_on(store)).log, has_files=True)
        found = list(Verification(subject).run())
        assert all(repair(subject, each) for each in found)
        return found

    def indexes() -> dict[str, bytes | None]:
        return {key: store.read(key) for key in store.keys("") if key.endswith(".idx")}

    assert {each.kind for each in look()} == {"absent"}
    whole = indexes()
    handle_of(table_on(store)).log.lookup.save(newest)
    assert indexes() == whole

    merged, part = LAYOUT.index(0, newest), LAYOUT.index(0, 800)
    changed, gone = cut_key(merged, 3), cut_key(merged, 1)
    store.replace(changed, store.read(cut_key(merged, 2)) or b"")
    store.delete(gone)
    store.replace(part, store.read(LAYOUT.index(801, 1_600)) or b"")
    found = {(each.kind, each.file) for each in look()}
    assert found == {("derived", part), ("derived", changed), ("absent", gone)}
    store.delete(merged)
    assert {(each.kind, each.file, each.version) for each in look()} == {("absent", merged, newest)}
    assert indexes() == whole

    # A run that fits its check and is another one's.
    run, part = (LAYOUT.file_run(0, last) for last in (newest, 800))
    for end in ("", ".sha256"):
        store.replace(run + end, store.read(part + end) or b"")
    assert {(each.kind, each.file) for each in look()} == {("derived", run)}
    store.replace(run, b"PAR1 and no more PAR1")
    store.replace(run + ".sha256", check_file_content(b"PAR1 and no more PAR1"))
    assert {(each.kind, each.file) for each in look()} == {("derived", run)}
    store.replace(run + ".sha256", NO_ROWS)
    assert {(each.kind, each.file) for each in look()} == {("derived", run)}
    # Its writer puts the check there last.
    store.delete(run + ".sha256")
    assert {(each.kind, each.file) for each in look()} == {("absent", run)}
    assert look() == []


def test_filters_and_their_cuts_are_compared_as_far_as_they_go_and_restored() -> None:
    store, newest = memory(), 6_600
    long_table(store, newest)

    def look() -> set[tuple[str, str]]:
        subject: Subject[Any, Any] = Subject("t", handle_of(table_on(store)).log, has_files=True)
        found = list(Verification(subject).run())
        assert all(repair(subject, each) for each in found)
        return {(each.kind, each.file) for each in found}

    def filters() -> dict[str, bytes | None]:
        return {key: store.read(key) for key in store.keys("") if key.endswith(".flt")}

    assert look()
    whole = filters()
    recent, older = LAYOUT.filter(0, 6_401), LAYOUT.filter(1, 0)
    assert len(whole) == 2 + 64

    changed, gone = cut_key(older, 3), cut_key(older, 1)
    store.replace(changed, store.read(cut_key(older, 2)) or b"")
    store.delete(gone)
    # As a writer leaves it that was killed, or an older one that went on.
    handle_of(table_on(store)).log.lookup.named.save_filter(6_500)
    assert look() == {("derived", changed), ("absent", gone), ("absent", recent)}
    assert filters() == whole

    beyond = KeyFilter(newest + 100, array("I"))
    store.replace(recent, beyond.to_bytes())
    store.replace(older, b"torn")
    assert look() == {("derived", recent), ("derived", older)}
    assert filters() == whole


def test_filters_of_which_none_is_there_are_one_finding_a_layer() -> None:
    table = orders(lake_on(memory()))
    subject: Subject[Any, Any] = Subject("t", handle_of(table).log, has_files=True)

    found = list(key_filter_findings(Caches(subject, mends=False), 6_500, set()))

    recent, older = subject.layout.filter(0, 6_401), subject.layout.filter(1, 0)
    assert [(each.kind, each.file, each.remedy) for each in found] == [
        ("absent", recent, ()),
        ("absent", older, ()),
    ]


@pytest.mark.parametrize(("one", "other"), [(3, 9), (0, 76), (75, 76)])
def test_two_swapped_commits_name_the_first(short: Place, one: int, other: int) -> None:
    _swap(short.commit(one), short.commit(other))

    assert short.look().damages[0].version == one


@pytest.mark.parametrize(
    "pattern",
    [f"{CHECKPOINTS}/*.json", f"{CHECKPOINTS}/keys/*.idx", f"{CHECKPOINTS}/files/*.parquet"],
)
def test_two_swapped_caches_are_both_found_and_restored(long: Place, pattern: str) -> None:
    one, other = sorted(long.stream.glob(pattern))[1:3]
    before = contents(long.caches())
    _swap(one, other)

    found = long.look().findings
    assert {each.file for each in found} == {_key(long, one), _key(long, other)}
    assert {each.kind for each in found} == {"derived"}

    long.repair()
    assert contents(long.caches()) == before


def test_a_tail_cut_below_a_checkpoint_is_found_by_what_was_made_from_it(long: Place) -> None:
    for version in range(795, 831):
        long.commit(version).unlink()

    first = long.look().damages[0]

    assert first.version == 795
    assert "ends at version 794" in first.what


def test_a_shorter_cut_shows_only_against_a_head_kept_elsewhere(long: Place) -> None:
    head = long.look().head
    long.commit(830).unlink()

    assert long.look().findings == []
    (found,) = long.look(head).findings
    assert (found.kind, found.version) == ("damage", 830)
    (found,) = long.look(Expected(head.digest)).findings
    assert "cut or rewritten" in found.what


def test_a_log_rewritten_whole_shows_only_against_a_head_kept_elsewhere(short: Place) -> None:
    head = short.look().head
    parent: str | None = None
    for version in range(77):
        commit = msgspec.json.decode(short.commit(version).read_bytes())
        if version == 1:
            commit["transactions"][0]["author"] = "nobody"
        if parent is not None:
            commit["parent"] = parent
        body = msgspec.json.encode(commit) + b"\n"
        short.commit(version).write_bytes(body)
        parent = digest(body)

    assert short.look().findings == []
    (found,) = short.look(head).findings
    assert (found.kind, found.version) == ("damage", 76)


def test_a_log_rewritten_under_its_checkpoints_shows_by_them(long: Place) -> None:
    parent = digest(long.commit(99).read_bytes())
    for version in range(100, 831):
        commit = msgspec.json.decode(long.commit(version).read_bytes())
        commit["parent"] = parent
        commit["transactions"][0]["author"] = "nobody"
        body = msgspec.json.encode(commit) + b"\n"
        long.commit(version).write_bytes(body)
        parent = digest(body)

    found = long.look().damages[0]
    assert found.version == 100
    assert "another commit" in found.what
    checkpoints = contents((long.stream / CHECKPOINTS).glob("*.json"))
    long.repair()
    assert contents((long.stream / CHECKPOINTS).glob("*.json")) == checkpoints


def test_an_older_head_is_met_by_a_log_that_went_on(short: Place) -> None:
    older = Expected(digest(short.commit(30).read_bytes()), 30)

    assert short.look(older, Expected(older.digest)).findings == []
    (found,) = short.look(Expected(older.digest, 31)).findings
    # One that is there says nothing of the next.
    assert short.look(older, Expected(older.digest, 31)).findings == [found]
    assert found.version == 31


def test_a_foreign_file_in_the_log_folder_fails_and_one_next_to_checkpoints_is_reported(
    long: Place,
) -> None:
    (long.stream / "log" / "notes.txt").write_text("hello")
    (long.stream / CHECKPOINTS / "notes.txt").write_text("hello")

    found = {each.file.rpartition("/_ledger/")[2]: each for each in long.look().findings}

    assert found["log/notes.txt"].fails
    assert not found[f"{CHECKPOINTS}/notes.txt"].fails
    assert len(found) == 2


def test_bytes_that_say_the_same_otherwise_are_found(short: Place) -> None:
    path = short.commit(76)
    path.write_bytes(path.read_bytes().replace(b'":', b'": ', 1))

    assert short.look().damages[0].version == 76


def test_a_commit_that_contradicts_the_ones_before_it_is_found(short: Place) -> None:
    path = short.commit(76)
    commit = msgspec.json.decode(path.read_bytes())
    commit["timeMillis"] = 1
    path.write_bytes(msgspec.json.encode(commit) + b"\n")

    (found,) = short.look().damages
    assert found.version == 76
    assert "contradicts" in found.what


def test_a_parent_mismatch_is_found_before_an_unreadable_commit(short: Place) -> None:
    path = short.commit(10)
    commit = msgspec.json.decode(path.read_bytes())
    commit["parent"] = digest(b"another")
    path.write_bytes(msgspec.json.encode(commit) + b"\n")
    short.commit(11).write_bytes(b"{}\n")

    assert [each.version for each in short.look().damages] == [9, 11]


def test_a_log_that_is_another_altogether_ends_after_so_many_findings(long: Place) -> None:
    for version in range(200):
        long.commit(version).write_bytes(b"{}\n")

    assert len(long.look().damages) == MOST_DAMAGES + 1


def test_repair_restores_every_cache_byte_by_byte_and_touches_no_log(long: Place) -> None:
    before = contents(files_in(long.folder))
    shutil.rmtree(long.stream / CHECKPOINTS)

    long.repair()

    assert contents(files_in(long.folder)) == before
    assert long.look().findings == []
    assert long.repair() == []


def test_repair_restores_caches_up_to_the_first_damage_only(long: Place) -> None:
    shutil.rmtree(long.stream / CHECKPOINTS)
    flip(long.commit(350), 60, 2)
    logs = contents(files_in(long.stream / "log"))

    long.repair()

    assert contents(files_in(long.stream / "log")) == logs
    kept = sorted(each.name for each in (long.stream / CHECKPOINTS).glob("*.json"))
    assert kept == [f"{version:020d}.json" for version in (100, 200, 300)]


def test_verifying_needs_no_more_memory_for_a_longer_log(tmp_path: Path) -> None:
    # From one segment on: the one at hand is held.
    peaks = [_peak(tmp_path / str(commits), commits) for commits in (850, 2_700)]

    # The further commits alone are 550 kB.
    assert peaks[1] - peaks[0] < 100_000


def _peak(folder: Path, commits: int) -> int:
    store = LocalStore(folder, durable=Durability.NONE)
    table = orders(lake_on(store, ticking(START_MILLIS, 1)))
    for number in range(commits):
        table.alter([SetOption("k", str(number))])
    # The first brings modules in, and what else a process does meanwhile is counted, too.
    return min(_peak_of_verifying(table) for _ in range(3))


def _peak_of_verifying(table: Table) -> int:
    gc.collect()
    tracemalloc.start()
    try:
        subject: Subject[Any, Any] = Subject("t", handle_of(table).log, has_files=True)
        assert list(Verification(subject).run()) == []
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("text", ["", "12", "sha256:xyz", "v1:sha256:" + "a" * 64, "a" * 63])
def test_what_is_no_head_is_refused(text: str) -> None:
    with pytest.raises(InvalidInputError, match="is no head"):
        Expected.parse(text)


@pytest.mark.parametrize("prefix", ["", "sha256:", "12:sha256:"])
def test_a_head_is_read_as_it_is_printed(prefix: str) -> None:
    parsed = Expected.parse(prefix + "a" * 64)

    assert parsed.digest == "sha256:" + "a" * 64
    assert Expected.parse(str(parsed)) == parsed


def _key(place: Place, path: Path) -> str:
    return path.relative_to(place.folder).as_posix()


def _swap(one: Path, other: Path) -> None:
    first, second = one.read_bytes(), other.read_bytes()
    one.write_bytes(second)
    other.write_bytes(first)


def test_verifying_alongside_writers_finds_nothing_wrong(tmp_path: Path) -> None:
    table = orders(lake_on(LocalStore(tmp_path, durable=Durability.NONE), now_millis))

    def write() -> None:
        for number in range(450):
            table.append([data_file(f"f{number}.parquet")], commit_id=f"id-{number}")

    writer = threading.Thread(target=write)
    writer.start()
    failures: list[Finding] = []
    while writer.is_alive():
        # As another process would: a handle of its own.
        log = handle_of(table).again().log
        found = Verification[Any, Any](Subject("t", log, has_files=True)).run()
        failures += [each for each in found if each.fails]
    writer.join()

    assert failures == []
