"""Files of the formats in `ledger.follow` follow the commits, and no commit waits."""

from __future__ import annotations

import io
import json
import re
import shutil
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import fastavro
import pytest
from pyiceberg.table import StaticTable
from structlog.testing import capture_logs

import ledger
from ledger import InvalidChangeError, Ledger, Schema, SetOption, StoreError, Table
from ledger.following import files as followed
from ledger.following.files import Follower, advance, wait
from ledger.log import commit_queue as worker
from ledger.stores import LocalStore, Store
from ledger.table_handle import TableHandle, handle_of
from projections.delta import DELTA
from projections.iceberg import ICEBERG
from projections.materialising import Difference, Materialisation, files_of, target_state
from projections.paimon import PAIMON
from tests.faults import Died, Mortal, Wrapped
from tests.lakes import data_file, lake_on
from tests.readers.lakehouse import folder_of

COLUMNS = {"id": "BIGINT NOT NULL", "day": "DATE", "amount": "INT"}
KEPT: dict[str, Materialisation[Any]] = {"iceberg": ICEBERG, "paimon": PAIMON, "delta": DELTA}
ALL = "iceberg,paimon,delta"


@pytest.fixture(autouse=True)
def offered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Offer the formats as an installation does; a checkout may have been installed before."""
    monkeypatch.setattr(followed, "find_projection", KEPT.__getitem__)


def table_in(folder: Path, follow: str = "iceberg,paimon") -> tuple[Ledger, Table]:
    lake = ledger.open(folder)
    lake.create_database("shop")
    options = {"ledger.formats": ALL, "ledger.follow": follow}
    schema = Schema.of(COLUMNS, partition_keys=["day"], options=options)
    return lake, lake.create_table("shop.orders", schema)


def files_in(folder: Path) -> dict[str, bytes]:
    kinds = ("metadata", "schema", "snapshot", "manifest", "tag", "_delta_log")
    found = (each for kind in kinds for each in (folder / kind).rglob("*") if each.is_file())
    return {str(each.relative_to(folder)): each.read_bytes() for each in found}


def as_new(table: Table, name: str) -> dict[str, bytes]:
    return files_of(KEPT[name].format, handle_of(table), target_state(handle_of(table), None))


def stands(table: Table) -> list[tuple[str, int]]:
    return [(each.format, each.behind) for each in table.freshness()]


def test_after_close_every_format_has_the_newest_commit(tmp_path: Path) -> None:
    with table_in(tmp_path)[0] as lake:
        table = lake.table("shop.orders")
        for number in range(5):
            table.append([data_file(f"{number}.parquet")])
    assert stands(table) == [("iceberg", 0), ("paimon", 0)]
    (metadata,) = {
        each
        for each in (tmp_path / "shop.db/orders/metadata").glob("*.metadata.json")
        if each.name.startswith("00005")
    }
    read = StaticTable.from_metadata(str(metadata))
    snapshot = read.current_snapshot()
    assert snapshot is not None
    assert snapshot.snapshot_id == 5
    assert (tmp_path / "shop.db/orders/snapshot/snapshot-5").exists()


BESIDE = ("_ledger/projections", "_ledger/pending-deletes")

SCRIPT = """
import sys, ledger
from tests.lakes import data_file
ledger.open(sys.argv[1]).table("shop.orders").append([data_file("late.parquet")])
"""


def script(text: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a process with what is installed in a folder."""
    here = Path(__file__).parents[2]
    return subprocess.run(
        [sys.executable, "-c", text, str(folder)],
        capture_output=True,
        text=True,
        check=False,
        cwd=here,
        env={"PYTHONPATH": f"{here}:{folder / 'site'}"},
        timeout=120,
    )


def test_a_script_that_appends_and_exits_leaves_the_snapshot_readable(
    tmp_path: Path, installed: None
) -> None:
    del installed
    lake, table = table_in(tmp_path)
    lake.close()
    ran = script(SCRIPT, tmp_path)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert stands(table) == [("iceberg", 0), ("paimon", 0)]
    assert (tmp_path / "shop.db/orders/snapshot/snapshot-1").exists()


def test_a_commit_does_not_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    let_go = threading.Event()

    class Slow:
        def step(self, table: TableHandle, *, commits: int) -> int:
            assert let_go.wait(60)
            return PAIMON.step(table, commits=commits)

        def freshness(self, table: TableHandle) -> Any:
            return PAIMON.freshness(table)

    monkeypatch.setattr(followed, "find_projection", lambda _: Slow())
    lake, table = table_in(tmp_path, "paimon")
    for number in range(3):
        table.append([data_file(f"{number}.parquet")])
    assert not lake.close(timeout_s=0.2)
    (events,) = table.freshness()
    assert (events.version, events.behind) == (-1, 4)
    assert events.millis > 0
    let_go.set()
    assert lake.close()
    assert stands(table) == [("paimon", 0)]


def count_steps(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list that gets the name of a format for each of its steps."""
    steps: list[str] = []

    class Counting:
        def __init__(self, name: str) -> None:
            self.name = name

        def step(self, table: TableHandle, *, commits: int) -> int:
            steps.append(self.name)
            return KEPT[self.name].step(table, commits=commits)

        def freshness(self, table: TableHandle) -> Any:
            return KEPT[self.name].freshness(table)

    monkeypatch.setattr(followed, "find_projection", Counting)
    return steps


def until_up_to_date(table: Table) -> None:
    deadline = time.monotonic() + 60
    while any(behind for _, behind in stands(table)):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_commits_in_quick_succession_are_projected_in_one_step_after_the_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake, table = table_in(tmp_path)
    assert lake.close()
    monkeypatch.setattr(followed, "QUIET_S", 3600.0)
    monkeypatch.setattr(followed, "LATEST_S", 3600.0)
    steps = count_steps(monkeypatch)
    for number in range(5):
        table.append([data_file(f"{number}.parquet")])
    time.sleep(0.3)
    last = time.monotonic()
    table.append([data_file("last.parquet")])
    assert steps == []
    monkeypatch.setattr(followed, "QUIET_S", 0.3)
    while not steps:
        time.sleep(0.001)
    assert time.monotonic() >= last + 0.3
    assert lake.close()
    assert stands(table) == [("iceberg", 0), ("paimon", 0)]
    assert steps == ["iceberg", "paimon"]


def test_commits_that_never_pause_are_projected_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake, table = table_in(tmp_path)
    assert lake.close()
    monkeypatch.setattr(followed, "QUIET_S", 3600.0)
    monkeypatch.setattr(followed, "LATEST_S", 0.2)
    begun = time.monotonic()
    table.append([data_file("a.parquet")])
    until_up_to_date(table)
    assert time.monotonic() >= begun + 0.2
    # The delay begins anew with the next commit.
    monkeypatch.setattr(followed, "LATEST_S", 3600.0)
    steps = count_steps(monkeypatch)
    table.append([data_file("b.parquet")])
    assert steps == []
    monkeypatch.setattr(followed, "LATEST_S", 0.2)
    until_up_to_date(table)
    assert steps == ["iceberg", "paimon"]


def test_close_does_not_wait_for_a_pause(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake, table = table_in(tmp_path)
    assert lake.close()
    monkeypatch.setattr(followed, "QUIET_S", 3600.0)
    monkeypatch.setattr(followed, "LATEST_S", 3600.0)
    monkeypatch.setattr(followed, "STEP_COMMITS", 1)
    for number in range(3):
        table.append([data_file(f"{number}.parquet")])
    assert stands(table) == [("iceberg", 4), ("paimon", 4)]
    assert lake.close(timeout_s=60)
    assert stands(table) == [("iceberg", 0), ("paimon", 0)]


NEVER_PAUSES = """
from ledger.following import files
files.QUIET_S = files.LATEST_S = 3600.0
"""


def test_an_exit_does_not_wait_for_a_pause(tmp_path: Path, installed: None) -> None:
    del installed
    lake, table = table_in(tmp_path)
    lake.close()
    ran = script(NEVER_PAUSES + SCRIPT, tmp_path)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert stands(table) == [("iceberg", 0), ("paimon", 0)]


OUTLIVES_MAIN = """
import sys, threading, time, ledger
from tests.lakes import data_file

def run():
    threading.main_thread().join()
    table = ledger.open(sys.argv[1]).table("shop.orders")
    table.append([data_file("late.parquet")])
    time.sleep(0.5)
    print([each.behind for each in table.freshness()])

threading.Thread(target=run).start()
"""


def test_steps_are_debounced_while_threads_outlive_the_main_thread(
    tmp_path: Path, installed: None
) -> None:
    del installed
    table_in(tmp_path)
    ran = script(NEVER_PAUSES + OUTLIVES_MAIN, tmp_path)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "[2, 2]\n", "")
    assert stands(ledger.open(tmp_path).table("shop.orders")) == [("iceberg", 0), ("paimon", 0)]


def test_a_format_that_fails_is_logged_and_fails_no_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Broken:
        def step(self, _table: TableHandle, **_by: int) -> int:
            raise StoreError("the disk is full")

        def freshness(self, table: TableHandle) -> Any:
            return ICEBERG.freshness(table)

    monkeypatch.setattr(
        followed, "find_projection", lambda name: Broken() if name == "iceberg" else KEPT[name]
    )
    lake, table = table_in(tmp_path)
    table.append([data_file("a.parquet")])
    assert lake.close()
    iceberg, paimon = table.freshness()
    assert (iceberg.behind, paimon.behind) == (2, 0)
    assert iceberg.problem == "the disk is full"
    assert "format_could_not_follow" in capsys.readouterr().err
    monkeypatch.setattr(followed, "find_projection", KEPT.__getitem__)
    # The next commit heals it.
    table.append([data_file("b.parquet")])
    lake.close()
    assert [(each.behind, each.problem) for each in table.freshness()] == [(0, None)] * 2


def test_several_followers_at_once_make_what_one_makes(tmp_path: Path) -> None:
    lake, table = table_in(tmp_path, ALL)
    for number in range(8):
        table.append([data_file(f"{number}.parquet")])
    threads = [
        threading.Thread(target=lambda: [*advance(handle_of(table).again())]) for _ in range(4)
    ]
    for each in threads:
        each.start()
    for number in range(8, 12):
        table.append([data_file(f"{number}.parquet")])
    for each in threads:
        each.join()
    assert lake.close()
    there = files_in(tmp_path / "shop.db/orders")
    for name, kept in KEPT.items():
        right = as_new(table, name)
        # On the way metadata was written for versions that are not the newest any more.
        assert {key: there.get(key) for key in right} == right
        assert kept.verify(handle_of(table)) == Difference()


class Unlocked(Wrapped):
    """Lets everybody in at once, as a bucket does with processes."""

    def lock(self, key: str) -> AbstractContextManager[None]:
        del key
        return nullcontext()


def test_several_followers_that_nothing_locks_out_make_what_one_makes(tmp_path: Path) -> None:
    lake, table = table_in(tmp_path, "")
    table.alter([SetOption("ledger.follow", ALL)])
    assert lake.close()
    tables = [lake_on(Unlocked(LocalStore(tmp_path))).table("shop.orders") for _ in range(4)]
    ends = threading.Event()

    def go_on(one: Table) -> None:
        while not ends.is_set():
            assert [
                each for _, each in advance(handle_of(one)) if isinstance(each, StoreError)
            ] == []

    threads = [threading.Thread(target=go_on, args=[each]) for each in tables]
    for each in threads:
        each.start()
    for number in range(20):
        table.append([data_file(f"{number}.parquet")])
    ends.set()
    for each in threads:
        each.join()
    assert lake.close()
    there = files_in(tmp_path / "shop.db/orders")
    for name, kept in KEPT.items():
        right = as_new(table, name)
        assert {key: there.get(key) for key in right} == right
        found = kept.verify(handle_of(table))
        assert (found.missing, found.changed) == ((), ())


@pytest.mark.parametrize("commits_a_step", [1, 3])
def test_files_that_go_on_in_steps_are_those_that_are_made_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, commits_a_step: int
) -> None:
    monkeypatch.setattr(followed, "STEP_COMMITS", commits_a_step)
    lake, table = table_in(tmp_path, "")
    for number in range(6):
        table.append([data_file(f"{number}.parquet")])
    table.create_tag("kept", snapshot=1)
    table.expire_snapshots(before=4)
    table.append([data_file("last.parquet")])
    # From here on a thread does it, step by step.
    table.alter([SetOption("ledger.follow", ALL)])
    assert lake.close()
    assert stands(table) == [(name, 0) for name in ALL.split(",")]
    there = files_in(tmp_path / "shop.db/orders")
    for name, kept in KEPT.items():
        right = as_new(table, name)
        assert {key: there.get(key) for key in right} == right
        assert kept.verify(handle_of(table)) == Difference()


class Counts(Wrapped):
    """Counts the attempts to create files, by key."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self.made: Counter[str] = Counter()

    def create(self, key: str, body: bytes) -> bool:
        self.made[key] += 1
        return super().create(key, body)


def test_several_followers_at_once_do_the_work_of_one(tmp_path: Path) -> None:
    lake, table = table_in(tmp_path / "lake", "")
    for number in range(5):
        table.append([data_file(f"{number}.parquet")])
    table.alter([SetOption("ledger.follow", ALL)])
    assert lake.close()
    for kind in (*(each.split("/")[0] for each in files_in(folder_of(table))), *BESIDE):
        shutil.rmtree(folder_of(table) / kind, ignore_errors=True)
    alone, together = tmp_path / "alone", tmp_path / "together"
    shutil.copytree(tmp_path / "lake", alone)
    shutil.copytree(tmp_path / "lake", together)

    def made_by(place: Path, followers: int) -> Counter[str]:
        stores = [Counts(LocalStore(place)) for _ in range(followers)]
        tables = [lake_on(each).table("shop.orders") for each in stores]
        threads = [
            threading.Thread(target=lambda it=it: [*advance(handle_of(it))]) for it in tables
        ]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        every = sum((each.made for each in stores), Counter[str]())
        # Names of files hold nothing of a place, and readers keep caches of their own.
        return Counter({key: count for key, count in every.items() if "/_ledger/" not in key})

    assert made_by(together, 4) == made_by(alone, 1) != Counter()


class Backwards(Mortal):
    """Dies at a write, and writes the files of each step from the last to the first."""

    def create_many(
        self, steps: Sequence[Mapping[str, bytes]], met: Callable[[str, bytes], None]
    ) -> None:
        super().create_many([dict(reversed([*step.items()])) for step in steps], met)


def avro(file: Path) -> list[Any]:
    return list(fastavro.reader(io.BytesIO(file.read_bytes())))


def named_by_what_readers_find(folder: Path) -> Iterator[Path]:
    """Yield the files that those name that readers come upon."""
    # Files that only a metadata log names may name snapshots that expired since.
    for each in folder.glob("metadata/v*.metadata.json"):
        for snapshot in json.loads(each.read_bytes()).get("snapshots", ()):
            listed = Path(snapshot["manifest-list"].removeprefix("file://"))
            yield listed
            if listed.exists():
                rows = avro(listed)
                yield from (Path(row["manifest_path"].removeprefix("file://")) for row in rows)
    for each in folder.glob("snapshot/snapshot-*"):
        said = json.loads(each.read_bytes())
        yield folder / "schema" / f"schema-{said['schemaId']}"
        for name in (said["baseManifestList"], said["deltaManifestList"]):
            yield folder / "manifest" / name
            if (folder / "manifest" / name).exists():
                rows = avro(folder / "manifest" / name)
                yield from (folder / "manifest" / row["_FILE_NAME"] for row in rows)
    # Each of these continues from the one before.
    for pattern in ("snapshot/snapshot-{}", "_delta_log/{:020d}.json"):
        there = folder.glob(re.sub(r"{.*}", "*", pattern))
        found = sorted(int(re.sub(r"\D", "", each.name)) for each in there)
        between = range(found[0], found[-1]) if found else ()
        yield from (folder / pattern.format(number) for number in between)


def test_a_kill_at_any_write_of_a_follower_is_healed_by_the_next(tmp_path: Path) -> None:
    _, table = table_in(tmp_path / "lake", ALL)
    for number in range(3):
        table.append([data_file(f"{number}.parquet")])
    table.create_tag("kept", snapshot=1)
    table.expire_snapshots(before=3)
    assert wait(handle_of(table).ledger_url, 120)
    for kind in (*(each.split("/")[0] for each in files_in(folder_of(table))), *BESIDE):
        shutil.rmtree(folder_of(table) / kind, ignore_errors=True)
    writes = 0
    while True:
        place = tmp_path / str(writes)
        shutil.copytree(tmp_path / "lake", place)
        dying = lake_on(Backwards(LocalStore(place), writes)).table("shop.orders")
        try:
            list(advance(handle_of(dying)))
            break
        except Died:
            writes += 1
        healed = ledger.open(place).table("shop.orders")
        # Readers of what a kill left miss nothing that it names.
        left = set(named_by_what_readers_find(folder_of(healed)))
        assert [each for each in left if not each.exists()] == []
        assert not [
            reached for _, reached in advance(handle_of(healed)) if isinstance(reached, Exception)
        ]
        found = files_in(folder_of(healed))
        for name in KEPT:
            made = as_new(healed, name)
            assert {path: found.get(path) for path in made} == made
        for each in KEPT.values():
            assert each.verify(handle_of(healed)).is_empty
    assert writes > 10


HANGS = """
import sys, threading, ledger
from ledger.log import commit_queue as worker
from ledger.stores import LocalStore
from tests.faults import Wrapped
from tests.lakes import data_file, lake_on

class Hangs(Wrapped):
    def create(self, key, body):
        if "/snapshot/" in key:
            threading.Event().wait()
        return super().create(key, body)

worker.EXIT_WAITS_S /= 10
lake_on(Hangs(LocalStore(sys.argv[1]))).table("shop.orders").append([data_file("late.parquet")])
print("appended")
"""


def test_an_exit_waits_for_a_hanging_follower_for_a_limited_time_and_logs_it(
    tmp_path: Path, installed: None
) -> None:
    """The script waits a tenth as long, so that the test takes a second."""
    del installed
    assert worker.EXIT_WAITS_S == 10
    lake, table = table_in(tmp_path)
    assert lake.close()
    ran = script(HANGS, tmp_path)
    # A hanging follower never returns, so that only the exit ends the process.
    assert (ran.returncode, ran.stdout) == (0, "appended\n")
    assert "files_left_behind" in ran.stderr
    assert "shop.orders" in ran.stderr
    assert "lakeledger follow" in ran.stderr
    assert dict(stands(table))["paimon"] > 0
    assert [
        name for name, reached in advance(handle_of(table)) if isinstance(reached, Exception)
    ] == []
    assert stands(table) == [("iceberg", 0), ("paimon", 0)]


def test_what_is_not_declared_cannot_follow(tmp_path: Path) -> None:
    _, table = table_in(tmp_path, "")
    table.alter([SetOption("ledger.formats", "iceberg,paimon")])
    for wrong in ("delta", "iceberg,csv"):
        with pytest.raises(InvalidChangeError, match=r"ledger\.follow names"):
            table.alter([SetOption("ledger.follow", wrong)])
    table.alter([SetOption("ledger.follow", "paimon")])
    with pytest.raises(InvalidChangeError, match=r"ledger\.follow names 'paimon'"):
        table.alter([SetOption("ledger.formats", "iceberg")])


def test_a_table_without_the_option_writes_no_files_and_starts_no_thread(tmp_path: Path) -> None:
    before = {*threading.enumerate()}
    lake, table = table_in(tmp_path, "")
    table.append([data_file("a.parquet")])
    assert lake.close()
    assert table.freshness() == []
    assert files_in(tmp_path / "shop.db/orders") == {}
    new = {*threading.enumerate()} - before
    assert not [each for each in new if each.name == "lakeledger-follow"]


def test_a_renamed_and_a_dropped_table_are_no_failure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lake, table = table_in(tmp_path)
    table.append([data_file("a.parquet")])
    lake.rename_table("shop.orders", "shop.sales")
    lake.table("shop.sales").append([data_file("b.parquet")])
    lake.drop_table("shop.sales")
    assert lake.close()
    assert capsys.readouterr().err == ""


def test_a_commit_succeeds_though_no_format_can_follow_it_and_logs_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(_table: object) -> None:
        raise StoreError("no more threads")

    lake, table = table_in(tmp_path)
    lake.close()
    monkeypatch.setattr(followed, "Follower", refused)
    other = ledger.open(tmp_path).table("shop.orders")
    with capture_logs() as events:
        other.append([data_file("a.parquet")])
    (failed,) = [each for each in events if each["event"] == "follow_failed"]
    assert (failed["table"], failed["error"]) == ("shop.orders", "no more threads")
    assert table.at(version=other.state.version).files


def test_a_follower_is_idle_once_its_steps_are_done_and_none_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Broken:
        def freshness(self, _table: Table) -> Any:
            raise StoreError("the disk is full")

    _, table = table_in(tmp_path)
    follower = Follower(handle_of(table).again())
    follower.request()
    assert follower.wait(60)
    assert (follower.is_idle, follower.problems) == (True, {})
    monkeypatch.setattr(followed, "find_projection", lambda _: Broken())
    follower.request()
    assert follower.wait(60)
    assert not follower.is_idle
    assert follower.problems.keys() == {"iceberg", "paimon"}
