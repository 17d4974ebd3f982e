from __future__ import annotations

import random

import pytest
import structlog

from ledger import DamagedLogError, FileChange
from ledger.events import SnapshotCommitted
from ledger.files import LiveFiles, Net, Placed, file_key
from ledger.files.change_lists import read_changes_table, table_to_parquet
from ledger.files.runs import additions_still_live, check_file_content, run_rows_to_table
from ledger.log import at_version
from tests.files.building import Table, add, delete

RUN = "t/_ledger/caches/3/files/00000000000000000000-00000000000000000100.parquet"


def replayed(table: Table, version: int) -> dict[str, FileChange]:
    live: dict[str, FileChange] = {}
    for each in table.live.changes(0, version):
        if each.change.kind == "ADD":
            live[each.change.path] = each.change
        else:
            del live[each.change.path]
    return live


def random_history(seed: int, commits: int) -> Table:
    random_of = random.Random(seed)
    table = Table()
    live: list[str] = []
    gone: list[str] = []
    for number in range(commits):
        files = [add(f"{number}-{nth}") for nth in range(random_of.randrange(3))]
        if live and random_of.random() < 0.6:
            gone.append(live.pop(random_of.randrange(len(live))))
            files.append(delete(gone[-1]))
        elif gone and random_of.random() < 0.3:
            back = gone.pop(random_of.randrange(len(gone)))
            files.append(add(back))
        live += [each.path for each in files if each.kind == "ADD"]
        table.commit(*files)
    return table


@pytest.fixture(scope="module")
def long_table() -> Table:
    return random_history(7, 1040)


@pytest.mark.parametrize("version", [0, 1, 99, 100, 101, 199, 800, 801, 950, 1040])
def test_live_files_through_runs_are_those_of_a_replay_in_the_same_order(
    long_table: Table, version: int
) -> None:
    expected = replayed(long_table, version)

    found = long_table.live.at(version)

    assert list(found.items()) == list(expected.items())


@pytest.mark.parametrize("version", [5, 100, 555, 1003, 1020, 1040])
def test_looking_files_up_agrees_with_a_replay(long_table: Table, version: int) -> None:
    expected = replayed(long_table, version)
    every = {each.change.path for each in long_table.live.changes(0, 1040)}

    found = long_table.live.lookup([*sorted(every), "never"], version)

    assert found == expected


@pytest.mark.parametrize(("start", "end"), [(0, 1040), (1040, 0), (700, 640), (333, 1001), (9, 9)])
def test_the_difference_turns_one_set_into_the_other(
    long_table: Table, start: int, end: int
) -> None:
    before, after = replayed(long_table, start), replayed(long_table, end)

    log = long_table.log
    difference = long_table.live.difference(at_version(log, start), at_version(log, end))

    assert [each.path for each in difference] == sorted({*before} ^ {*after})
    turned = dict(before)
    for each in difference:
        if each.kind == "ADD":
            turned[each.path] = each
        else:
            assert turned.pop(each.path).record_count == each.record_count
    assert turned == after


def test_a_difference_takes_what_comes_back_from_the_commit_that_added_it() -> None:
    table = Table()
    then = table.commit(add("a", records=5))
    # An engine's DELETE may say less than the ADD did.
    now = table.commit(FileChange(kind="DELETE", path="a", record_count=5, file_size_in_bytes=0))

    states = at_version(table.log, now), at_version(table.log, then)
    assert table.live.difference(*states) == (add("a", records=5),)


def test_runs_are_kept_at_boundaries_and_merged_by_eight(long_table: Table) -> None:
    folder = "t/_ledger/caches/3/files/"

    kept = {
        tuple(map(int, each.removeprefix(folder).removesuffix(".parquet").split("-")))
        for each in long_table.store.keys(folder)
        if each.endswith(".parquet")
    }

    assert {(0, 100), (601, 700), (0, 800), (801, 900), (901, 1000)} <= kept
    # The eighth of a tier goes straight into the merged one.
    assert (701, 800) not in kept


class Counting(LiveFiles):
    """Remembers which commits were read one by one."""

    def __init__(self, table: Table) -> None:
        super().__init__(table.reopened()[0])
        self.scanned: list[tuple[int, int]] = []

    def changes(self, first: int, last: int):  # type: ignore[no-untyped-def]  # noqa: ANN201 - as in the class
        self.scanned.append((first, last))
        return super().changes(first, last)


def test_only_the_tail_is_read_from_the_log(long_table: Table) -> None:
    live = Counting(long_table)

    live.at(1040)

    assert live.scanned == [(1001, 1040)]


@pytest.mark.parametrize("key", [RUN, f"{RUN}.sha256"])
def test_a_missing_run_is_made_again_from_the_log(key: str) -> None:
    table = random_history(3, 130)
    table.store.delete(key)

    assert table.live.at(130) == replayed(table, 130)


def test_a_damaged_run_is_made_again_and_reported() -> None:
    table = random_history(3, 130)
    body = table.store.read(RUN)
    assert body is not None
    table.store.replace(RUN, body[:200] + b"?" + body[201:])

    with structlog.testing.capture_logs() as logs:
        found = table.live.at(130)

    assert found == replayed(table, 130)
    assert logs == [{"event": "file_run_damaged", "file": RUN, "log_level": "warning"}]


@pytest.mark.parametrize("lost", ["path", "format", "version"])
def test_what_is_no_run_though_its_check_says_so_is_made_again_and_reported(lost: str) -> None:
    table = random_history(3, 230)
    body = table_to_parquet(read_changes_table(table.store.read(RUN) or b"").drop([lost]))
    newest = RUN.replace("000-", "101-").replace("100.", "200.")
    assert table.store.read(newest)
    table.store.replace(newest, body)
    table.store.replace(f"{newest}.sha256", check_file_content(body))

    with structlog.testing.capture_logs() as logs:
        found = table.live.at(230)

    assert found == replayed(table, 230)
    assert [(each["event"], each["file"]) for each in logs] == [("file_run_unreadable", newest)]


def test_of_files_that_went_later_no_object_is_made(long_table: Table) -> None:
    tables = [
        run_rows_to_table([*Net(long_table.live.changes(*each)).rows()])
        for each in ((0, 9), (10, 99))
    ]
    there = Net(long_table.live.changes(0, 99)).added

    assert additions_still_live(tables) == [*there.values()]
    assert additions_still_live(tables, [*there][1:]) == [there[next(iter(there))]]


def test_a_net_of_parts_is_the_net_of_the_whole(long_table: Table) -> None:
    changes = list(long_table.live.changes(0, 300))
    whole = Net(changes)

    parts = Net()
    for start in range(0, len(changes), 17):
        parts.apply(Net(changes[start : start + 17]).rows())

    assert list(parts.added) == list(whole.added)
    assert set(parts.deleted) == set(whole.deleted)


def test_a_file_that_came_and_went_leaves_no_trace() -> None:
    net = Net([Placed(1, 1, add("a")), Placed(2, 2, delete("old")), Placed(3, 3, delete("a"))])

    assert [each.change.path for each in net.rows()] == ["old"]


def test_live_files_know_the_commit_and_snapshot_that_added_them() -> None:
    table = random_history(5, 120)

    placed = table.live.placed_files_at(120)

    expected = {}
    for each in table.live.changes(0, 120):
        expected[each.change.path] = (each.version, each.snapshot_id)
    assert placed
    assert {path: each[:2] for path, each in placed.items()} == {
        path: expected[path] for path in placed
    }


def test_long_lists_are_found_through_their_files() -> None:
    table = Table()
    version = table.commit(*(add(f"{nth}") for nth in range(1001)))

    event = table.log.commit_at(version).transactions[0].events[0]

    assert isinstance(event, SnapshotCommitted)
    assert bytes(event.files) == b""
    assert len(table.live.at(version)) == 1001
    assert list(table.live.lookup(["1000", "1001"], version)) == ["1000"]


def test_a_damaged_long_list_is_refused_but_does_not_fail_a_save() -> None:
    table = Table()
    version = table.commit(*(add(f"{nth}") for nth in range(1001)))
    table.commit(*[add("x")])
    (key,) = table.store.keys("t/_ledger/changes")
    table.store.replace(key, b"torn")

    with pytest.raises(DamagedLogError, match=key):
        table.live.at(version)
    with structlog.testing.capture_logs() as logs:
        table.live.save(100)
    assert [each["event"] for each in logs] == ["file_run_skipped"]


def test_a_commit_is_remembered_by_its_files_and_snapshots() -> None:
    table = Table()
    version = table.commit(add("a"))

    keys = list(table.live.keys_of(table.log.commit_at(version)))

    assert keys == ["snapshot:APPEND:1:u", file_key("a")]


def test_an_index_hit_of_another_file_is_passed_over() -> None:
    table = Table()
    # As a collision of hashes would: the index says that every commit named "a".
    table.log.set_cache_hooks(lambda _: [file_key("a")], lambda _: None)
    table.commit(add("a"))
    for number in range(105):
        table.commit(add(f"b{number}"))

    assert table.live.lookup(["a"], 106) == {"a": add("a")}
