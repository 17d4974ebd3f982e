"""The newest entries of all tables are exact, whatever was known before and committed since."""

from __future__ import annotations

import itertools
import random
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
import pytest

import ledger
from ledger import DamagedLogError, Ledger, SetOption
from ledger.audit.entries import Entry, EntryFilter, entries, merge_entries_by_time
from ledger.history.verifying import Subject, Verification
from ledger.stores import MemoryStore, Store
from ledger.table_handle import handle_of
from tests.faults import Wrapped
from tests.lakes import lake_on, memory, ticking
from tests.projections.source.many_tables import ManyTables, name_of

COLUMNS = {"id": "BIGINT"}
TABLES = 70
HEADS = "/heads.json"

Shown = tuple[int, int, str, str]


def shown(found: Iterator[Entry], count: int | None = None) -> list[Shown]:
    return [
        (each.time_millis, each.version, each.transaction.id, each.transaction.author)
        for each in islice(found, count)
    ]


def everything(store: Store) -> list[Shown]:
    """Return all entries, from every log of the ledger read to its end."""
    handle = handle_of(lake_on(store))
    logs = [log for _, log in handle.streams() if log.refresh() is not None]
    return shown(merge_entries_by_time(entries(each, "", EntryFilter()) for each in logs))


def many(store: Store, clock: Callable[[], int], count: int = TABLES) -> Ledger:
    lake = lake_on(store, clock)
    lake.create_database("shop")
    for number in range(count):
        lake.create_table(f"shop.t{number}", COLUMNS)
    return lake


def alter(lake: Ledger, table: str, value: str = "x", **given: Any) -> None:
    lake.table(table).alter([SetOption("k", value)], **given)


def copy_of(store: MemoryStore) -> MemoryStore:
    other = memory()
    for key in store.keys(""):
        other.create(key, store.read(key) or b"")
    return other


@pytest.fixture(scope="module")
def kept() -> MemoryStore:
    """Return a ledger whose heads were saved by a reader, and one commit since."""
    store, clock = memory(), ticking()
    lake = many(store, clock)
    for number in range(0, TABLES, 3):
        alter(lake, f"shop.t{number}")
    assert shown(lake_on(store).entries()) == everything(store)
    assert any(key.endswith(HEADS) for key in store.keys(""))
    alter(lake, "shop.t7")
    return store


class Life:
    """Random commits of one process to a ledger that others read."""

    def __init__(self, store: Store, seed: int) -> None:
        self.random = random.Random(seed)
        self.lake = many(store, ticking(), 9)
        self.names = [f"shop.t{number}" for number in range(9)]
        self.dropped: list[str] = []
        self.made = 0

    def step(self) -> None:
        name = self.random.choice(self.names)
        act = self.random.choice([self._commit, self._commit, *(self._drop, self._rename)])
        act(name)
        if self.random.random() < 0.3:
            self._create()
        if self.dropped and self.random.random() < 0.4:
            self._restore()

    def _commit(self, name: str) -> None:
        author = self.random.choice(["ann", "bob"])
        for number in range(self.random.choice([1, 1, 2, 9])):
            alter(self.lake, name, f"{number}", author=author)

    def _drop(self, name: str) -> None:
        if len(self.names) > 3:
            self.lake.drop_table(name)
            self.names.remove(name)
            # A table of the same name follows some dropped ones.
            if self.random.random() < 0.5:
                self.lake.create_table(name, COLUMNS)
                self.names.append(name)
            else:
                self.dropped.append(name)

    def _rename(self, name: str) -> None:
        self.made += 1
        self.names.remove(name)
        self.names.append(f"shop.renamed{self.made}")
        self.lake.rename_table(name, self.names[-1])

    def _create(self) -> None:
        self.made += 1
        self.names.append(f"shop.made{self.made}")
        self.lake.create_table(self.names[-1], COLUMNS)

    def _restore(self) -> None:
        name = self.dropped.pop()
        self.lake.undrop_table(name)
        self.names.append(name)


@pytest.mark.parametrize("seed", range(4))
def test_a_warm_reader_misses_nothing_that_another_process_commits(seed: int) -> None:
    store = memory()
    life, reader = Life(store, seed), lake_on(store)
    for _ in range(25):
        life.step()
        expected = everything(store)
        assert shown(reader.entries(), 10) == expected[:10]
        since, until = expected[6][0], expected[2][0]
        assert shown(reader.entries(since=since, until=until)) == [
            each for each in expected if since <= each[0] <= until
        ]
        assert shown(reader.entries(author="ann")) == [
            each for each in expected if each[3] == "ann"
        ]
    assert shown(reader.entries()) == expected
    labels = [each.label for each in reader.entries()]
    assert labels == [each.label for each in lake_on(store).entries()]
    assert any("then" in each for each in labels)


def test_a_commit_whose_writer_was_killed_is_the_newest_at_once(tmp_path: Path) -> None:
    lake = ledger.open(tmp_path)
    lake.create_database("shop")
    for number in range(4):
        lake.create_table(f"shop.t{number}", COLUMNS)
    reader = ledger.open(tmp_path)
    assert next(reader.entries("shop")).table == "shop.t3"
    program = (
        "import os, signal, sys, ledger\n"
        "table = ledger.open(sys.argv[1]).table('shop.t1')\n"
        "table.alter([ledger.SetOption('k', 'v')], commit_id='its last')\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=False)
    assert done.returncode == -signal.SIGKILL
    assert next(reader.entries()).transaction.id == "its last"


def test_another_process_begins_with_what_was_saved(kept: MemoryStore) -> None:
    store = copy_of(kept)
    expected = everything(store)
    assert shown(lake_on(store).entries(), 12) == expected[:12]
    assert shown(lake_on(store).entries()) == expected


def wrong_versions(body: bytes) -> bytes:
    """Return heads that were never those of the tables, with the right checksum."""
    header, records = map(msgspec.json.decode, body.splitlines())
    for number, each in enumerate(records):
        each[4] = (-1, 0, 1, 40, 7000)[number % 5]
    return _with_checksum(header, msgspec.json.encode(records))


def of_another_catalog(body: bytes) -> bytes:
    header, _ = map(msgspec.json.decode, body.splitlines())
    header["head"] = "0" * 64
    return _with_checksum(header, b"[]")


def of_another_catalog_before(body: bytes) -> bytes:
    header, _ = map(msgspec.json.decode, body.splitlines())
    header["head"], header["version"] = "0" * 64, header["version"] - 5
    return _with_checksum(header, b"[]")


def of_a_later_catalog(body: bytes) -> bytes:
    header, _ = map(msgspec.json.decode, body.splitlines())
    header["version"] += 10_000
    return _with_checksum(header, b"[]")


def of_a_later_format(body: bytes) -> bytes:
    header, _ = map(msgspec.json.decode, body.splitlines())
    header["format"] += 1
    return _with_checksum(header, b"[]")


def _with_checksum(header: dict[str, Any], records: bytes) -> bytes:
    header["check"] = sha256(records).hexdigest()
    return b"%s\n%s\n" % (msgspec.json.encode(header), records)


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "torn": lambda body: body[:-100],
    "a line only": lambda body: body.partition(b"\n")[0],
    "changed": lambda body: body.replace(b"shop", b"hops", 1),
    "no JSON": lambda _: b"\x00" * 100,
    "wrong versions": wrong_versions,
    "of another catalog": of_another_catalog,
    "of another catalog before": of_another_catalog_before,
    "of a later catalog": of_a_later_catalog,
    "of a later format": of_a_later_format,
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_what_was_saved_can_be_wrong(kept: MemoryStore, damage: str) -> None:
    store = copy_of(kept)
    key = next(key for key in store.keys("") if key.endswith(HEADS))
    store.replace(key, DAMAGES[damage](store.read(key) or b""))
    expected = everything(store)

    assert shown(lake_on(store).entries(), 12) == expected[:12]
    assert shown(lake_on(store).entries()) == expected


def test_a_reader_that_trusts_only_the_log_does_not_read_what_was_saved(kept: MemoryStore) -> None:
    url = copy_of(kept).url
    key = next(key for key in kept.keys("") if key.endswith(HEADS))
    lake = ledger.open(url, trust="log")
    # With a valid checksum, and no tables.
    header, _ = map(msgspec.json.decode, (kept.read(key) or b"").splitlines())
    handle_of(lake).setting.store.replace(key, _with_checksum(header, b"[]"))

    assert {each.table for each in ledger.open(url).entries()} == {""}
    assert len({each.table for each in lake.entries()}) == 1 + TABLES


def test_a_log_that_was_put_back_and_is_as_long_as_before_is_read(kept: MemoryStore) -> None:
    store = copy_of(kept)
    log = "shop.db/t3/_ledger"
    store.delete(f"{log}/log/{1:020d}.json")
    alter(lake_on(store, ticking(1_800_000_000_000)), "shop.t3", "other", commit_id="the other")

    newest = next(lake_on(store).entries())

    assert (newest.table, newest.version, newest.transaction.id) == ("shop.t3", 1, "the other")


def test_a_log_that_is_lost_is_an_error_and_a_dropped_one_is_left_out(tmp_path: Path) -> None:
    lake = ledger.open(tmp_path)
    lake.create_database("shop")
    for number in range(TABLES):
        lake.create_table(f"shop.t{number}", COLUMNS)
    reader = ledger.open(tmp_path)
    assert sum(1 for _ in reader.entries("shop")) == TABLES

    lake.drop_table("shop.t1")
    shutil.rmtree(tmp_path / "shop.db" / "t1")
    for each in (reader, ledger.open(tmp_path)):
        assert sum(1 for _ in each.entries("shop")) == TABLES - 1

    shutil.rmtree(tmp_path / "shop.db" / "t2")
    with pytest.raises(DamagedLogError, match=r"the log of table shop\.t2 .* is missing"):
        ledger.open(tmp_path).entries()


def test_commits_during_a_listing_are_left_out() -> None:
    store, clock = memory(), ticking()
    lake = many(store, clock, 3)
    expected = everything(store)
    listing = lake_on(store).entries()
    first = next(listing)

    for number in range(3):
        alter(lake, f"shop.t{number}")
    lake.drop_table("shop.t0")
    lake.rename_table("shop.t1", "shop.t0")
    lake.create_table("shop.t1", COLUMNS)

    assert [*shown(iter([first])), *shown(listing)] == expected


def test_an_effective_time_before_the_commits_own_keeps_its_place() -> None:
    store = memory()
    now = itertools.count(1_000)
    lake = lake_on(store, lambda: next(now))
    lake.create_database("shop")
    one, two = (lake.create_table(f"shop.t{number}", COLUMNS) for number in range(2))
    # The clock of one table's writer is ahead, and is corrected.
    now = itertools.count(50_000)
    one.alter([SetOption("k", "v")])
    now = itertools.count(2_000)
    one.correct_clock()
    for number in range(6):
        (one, two)[number % 2].alter([SetOption("n", f"{number}")])

    expected = everything(store)

    assert any(each.time_millis != each.commit.time_millis for each in lake.entries())
    reader = lake_on(store)
    for count in range(1, len(expected)):
        assert shown(reader.entries(), count) == expected[:count]


@pytest.mark.parametrize("tables", [30, 300])
def test_a_warm_reader_reads_commits_of_few_tables(tables: int) -> None:
    ledgers = ManyTables.of(tables)
    for number in range(20):
        ledgers.commit(number)
    reader = ledgers.reopened()
    shown(reader.entries(), 10)
    ledgers.commit(5)
    shown(reader.entries(), 10)
    ledgers.settle()

    found = [each.table for each in islice(reader.entries(), 10)]

    counts = ledgers.store.counts
    assert found == [name_of(each) for each in (5, *range(19, 10, -1))]
    # Four newest commits of each of eleven tables, at most, and what opening each one takes.
    assert counts["read"] <= 11 * (4 + 4)
    assert counts["exists"] <= tables + 11 * 10
    assert counts.keys() <= {"read", "exists"}


def test_a_new_process_reads_one_commit_of_each_table(kept: MemoryStore) -> None:
    asked: list[str] = []

    class Counted(MemoryStore):
        def read(self, key: str) -> bytes | None:
            asked.append(key)
            return super().read(key)

        def exists(self, key: str) -> bool:
            asked.append(key)
            return super().exists(key)

    store = Counted(copy_of(kept).url.removeprefix("memory://"))
    shown(lake_on(store).entries(), 1)

    # Its head and the version after it; of the one with a commit since, two more versions.
    of_others = [each for each in asked if each.startswith("shop.db/t9/")]
    assert len(of_others) == 2
    assert sum(each.startswith("shop.db/") for each in asked) <= 2 * TABLES + 20


class Unreadable(Wrapped):
    """A store that does not answer for some keys."""

    prefix = "-"

    def read(self, key: str) -> bytes | None:
        self._refuse(key)
        return super().read(key)

    def exists(self, key: str) -> bool:
        self._refuse(key)
        return super().exists(key)

    def _refuse(self, key: str) -> None:
        if key.startswith(self.prefix):
            raise OSError(f"no answer for {key}")


@pytest.mark.parametrize("is_warm", [True, False])
def test_a_table_that_does_not_answer_is_an_error_and_a_dropped_one_is_left_out(
    kept: MemoryStore, *, is_warm: bool
) -> None:
    inner = copy_of(kept)
    lake_on(inner, ticking(1_800_000_000_000)).drop_table("shop.t5")
    store = Unreadable(inner)
    reader = lake_on(store)
    if is_warm:
        assert "shop.t5" in {each.table for each in reader.entries()}

    store.prefix = "shop.db/t5/"
    assert {each.table for each in reader.entries("shop")} == {
        f"shop.t{number}" for number in range(TABLES) if number != 5
    }
    store.prefix = "shop.db/t6/"
    with pytest.raises(OSError, match=r"no answer for shop\.db/t6/"):
        reader.entries()


def test_what_was_saved_is_no_foreign_file(kept: MemoryStore) -> None:
    catalog = Subject("catalog", handle_of(lake_on(copy_of(kept))).log, has_files=False)
    assert [*Verification(catalog).run()] == []


def test_tables_on_a_remote_store_are_probed_concurrently(kept: MemoryStore) -> None:
    together = threading.Barrier(16, timeout=5)
    left = set(range(16))

    class Remote(Wrapped):
        def exists(self, key: str) -> bool:
            if key.startswith("shop.db/") and left:
                left.pop()
                together.wait()
            return super().exists(key)

    store = Remote(copy_of(kept))
    store.is_near = False

    # A barrier that is not met raises.
    assert next(lake_on(store).entries()).table == "shop.t7"
    assert not left
