"""The activity index: announcements of commits, by time."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ledger import Ledger, SetOption, Table
from ledger.ledger_handle import LedgerHandle
from ledger.log.activity import (
    FOLDER,
    KEPT_MILLIS,
    MARKER,
    SLOT_MILLIS,
    ActivityWriter,
    first_complete_slot,
    folders_between,
    outdated_announcements,
    read_activity,
    slot_folder,
    slot_of,
)
from ledger.opening.context import TableSetting
from ledger.stores import LocalStore, Store
from tests.faults import Wrapped
from tests.lakes import START_MILLIS, data_file, lake_on, memory, orders

SLOT = slot_of(START_MILLIS)
MANY = 1_000_000


class Moment:
    def __init__(self, millis: int = START_MILLIS) -> None:
        self.millis = millis

    def __call__(self) -> int:
        return self.millis


def lake_at(store: Store, clock: Moment) -> Ledger:
    return Ledger(LedgerHandle(TableSetting(store, {}, "me", activity=ActivityWriter(clock))))


def orders_at(folder: Path, clock: Moment) -> tuple[Ledger, Table]:
    store = LocalStore(str(folder))
    first_complete_slot(store, SLOT - 9)
    lake = lake_at(store, clock)
    lake.init()
    return lake, orders(lake)


def announced(folder: Path) -> list[str]:
    found = LocalStore(str(folder)).keys(FOLDER)
    return [each.removeprefix(f"{FOLDER}/") for each in found if each != MARKER]


def test_nothing_is_announced_before_a_reader_asks_for_it(tmp_path: Path) -> None:
    clock, store = Moment(), LocalStore(str(tmp_path))
    lake = lake_at(store, clock)
    lake.init()
    table = orders(lake)
    lake.close()
    assert list(store.keys(FOLDER)) == []
    assert first_complete_slot(store, SLOT) == SLOT + 2
    assert first_complete_slot(store, SLOT + 7) == SLOT + 2
    # The marker is looked for once in a slot.
    for version in ([], [2]):
        table.alter([SetOption("k", str(version))])
        lake.close()
        assert [each.rpartition("-")[2] for each in announced(tmp_path)] == list(map(str, version))
        clock.millis += SLOT_MILLIS


@pytest.mark.parametrize("body", [b"\n", b"x", b"-1", b"9" * 30])
def test_a_marker_that_holds_no_slot_makes_the_index_unusable(tmp_path: Path, body: bytes) -> None:
    store = LocalStore(str(tmp_path))
    store.replace(MARKER, body)
    assert first_complete_slot(store, SLOT) is None


def test_a_slot_has_one_announcement_of_the_newest_version_of_a_table(tmp_path: Path) -> None:
    clock = Moment()
    lake, table = orders_at(tmp_path, clock)
    for number in range(1, 4):
        table.alter([SetOption("k", str(number))])
        lake.close()
    table_id = table.state.table_id
    first = f"{slot_folder(SLOT)}/{table_id}-3".removeprefix(f"{FOLDER}/")
    assert announced(tmp_path) == [first]

    clock.millis += SLOT_MILLIS
    table.alter([SetOption("k", "4")])
    lake.close()
    assert announced(tmp_path)[0] == first
    assert read_activity(LocalStore(str(tmp_path)), SLOT + 1, SLOT + 1, MANY) == {table_id: 4}


def test_branches_and_other_handles_announce_commits_of_the_table_too(tmp_path: Path) -> None:
    clock = Moment()
    lake, table = orders_at(tmp_path, clock)
    table.append([data_file("a.parquet")])
    table.create_branch("audit")
    table.branch("audit").append([data_file("b.parquet")])
    lake.close()
    (name,) = announced(tmp_path)
    assert name.endswith(f"{table.state.table_id}-{table.state.version}")
    lake.table("shop.orders").alter([SetOption("k", "v")])
    lake.close()
    assert announced(tmp_path)[-1].endswith(f"-{table.state.version}")


@pytest.mark.parametrize("slots", [1, 3, 6, 7, 40, 71, 73, 300, 2000, 8000])
def test_the_folders_of_any_range_hold_all_of_its_slots_and_are_few(slots: int) -> None:
    folders = folders_between(SLOT, SLOT + slots - 1)
    assert len(folders) <= max(6, slots // 288 + 2)
    for slot in range(SLOT, SLOT + slots):
        assert any(f"{slot_folder(slot)}/".startswith(f"{each}/") for each in folders)


@pytest.mark.parametrize("later", [0, 1, 10, 100, 1000])
def test_an_announcement_is_found_from_any_time_before(tmp_path: Path, later: int) -> None:
    store = LocalStore(str(tmp_path))
    store.replace(f"{slot_folder(SLOT + later)}/a-7", b"7\n")
    store.replace(f"{slot_folder(SLOT + later)}/a-5", b"5\n")
    assert read_activity(store, SLOT, SLOT + 1000, MANY) == {"a": 7}


def test_more_names_than_asked_for_or_a_time_before_the_index_is_unknown(tmp_path: Path) -> None:
    store = LocalStore(str(tmp_path))
    for number in range(5):
        store.replace(f"{slot_folder(SLOT)}/t-{number}", b"x")
    assert read_activity(store, SLOT, SLOT, 5) == {"t": 4}
    assert read_activity(store, SLOT, SLOT, 4) is None
    kept = KEPT_MILLIS // SLOT_MILLIS
    assert read_activity(store, SLOT - kept, SLOT, MANY) == {"t": 4}
    assert read_activity(store, SLOT - kept - 1, SLOT, MANY) is None


def test_foreign_names_in_the_index_are_ignored(tmp_path: Path) -> None:
    store = LocalStore(str(tmp_path))
    for name in ("README", "a-", "a-b", f"a-{'9' * 30}", "a-\u0661", "b-3"):
        store.replace(f"{slot_folder(SLOT)}/{name}", b"x")
    assert read_activity(store, SLOT, SLOT, MANY) == {"b": 3}


def test_announcements_are_outdated_after_thirty_days(tmp_path: Path) -> None:
    store = LocalStore(str(tmp_path))
    old, new = f"{slot_folder(SLOT)}/t-1", f"{slot_folder(SLOT + 288)}/t-2"
    for each in (old, new, f"{FOLDER}/notes/t-1"):
        store.replace(each, b"x")
    now = START_MILLIS + KEPT_MILLIS + 24 * 3_600_000 - SLOT_MILLIS
    ((key, ended),) = outdated_announcements(store, now)
    assert key == old
    assert START_MILLIS < ended <= now - KEPT_MILLIS + 24 * 3_600_000
    assert list(outdated_announcements(store, START_MILLIS + KEPT_MILLIS)) == []


class Unwritable(Wrapped):
    def replace(self, key: str, body: bytes) -> None:
        if key.startswith(FOLDER):
            raise OSError(f"no write of {key}")
        super().replace(key, body)


def test_a_failure_to_announce_harms_no_commit_and_is_logged_once(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    store = LocalStore(str(tmp_path))
    first_complete_slot(store, 0)
    lake = lake_at(Unwritable(store), Moment())
    lake.init()
    table = orders(lake)
    for number in range(3):
        table.alter([SetOption("k", str(number))])
        lake.close()
    assert table.state.version == 3
    assert announced(tmp_path) == []
    assert capfd.readouterr().err.count("announcing_failed") == 1


def test_a_ledger_in_memory_has_no_index() -> None:
    store = memory()
    lake = lake_on(store)
    orders(lake)
    lake.close()
    assert list(store.keys(FOLDER)) == []


_PROGRAM = """
import os, sys, ledger
lake = ledger.open(sys.argv[1])
table = lake.table("shop.orders")
for number in range(5):
    table.alter([ledger.SetOption("k", str(number))])
if sys.argv[2] == "killed":
    os._exit(9)
if sys.argv[2] == "forked":
    child = os.fork()
    if not child:
        table.alter([ledger.SetOption("k", "the child's")])
        os._exit(0 if lake.close() else 1)
    assert os.waitpid(child, 0)[1] == 0
"""


@pytest.mark.parametrize(
    ("end", "versions"),
    [
        ("exited", ["5"]),
        ("killed", []),
        pytest.param(
            "forked",
            ["5", "6"],
            marks=pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork"),
        ),
    ],
)
def test_a_process_announces_its_last_commits_when_it_exits(
    tmp_path: Path, end: str, versions: list[str]
) -> None:
    store = LocalStore(str(tmp_path))
    first_complete_slot(store, 0)
    orders(lake_on(store))
    subprocess.run([sys.executable, "-c", _PROGRAM, str(tmp_path), end], check=bool(versions))
    found = {each.rpartition("-")[2] for each in announced(tmp_path)}
    assert sorted(found - {"0"}) == versions
