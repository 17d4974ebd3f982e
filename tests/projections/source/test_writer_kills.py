"""The writer is killed at random: its workers, its executors, its driver. Nothing is lost or twice.

Batches have a key and are repeated until they are acknowledged; streams are started again with the
same checkpoint. The rows are counted by PyArrow over the files of the newest version.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from attrs import asdict, define, field, frozen
from fsspec.core import url_to_fs

import ledger
from ledger import Schema, SetOption, Table
from ledger.cli import main as run_command
from ledger.files.change_lists import commit_files
from ledger.log.request import now_millis
from ledger.stores import open_store
from ledger.stores.wrappers import ForwardingStore
from ledger.table_handle import handle_of
from tests.lakes import lake_on
from tests.projections.source.write_jobs import ROWS, Work
from tests.stores.servers.buckets import S3Server, root

ROOT = Path(__file__).parents[3]
DAY = 24 * 3_600_000


@frozen
class Process:
    """A process of this machine."""

    pid: int
    parent: int
    command: str

    def kill(self) -> None:
        try:
            os.kill(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            return


def processes() -> dict[int, Process]:
    found = {}
    for each in Path("/proc").glob("[0-9]*"):
        try:
            command = (each / "cmdline").read_text().replace("\0", " ")
            status = (each / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        found[int(each.name)] = Process(int(each.name), int(status[1]), command)
    return found


def descendants_of(pid: int) -> list[Process]:
    every = processes()
    found, left = [], [pid]
    while left:
        parent = left.pop()
        for each in every.values():
            if each.parent == parent:
                found.append(each)
                left.append(each.pid)
    return found


@define
class Driver:
    """A driver process that is started again whenever it was killed."""

    kind: str
    work: Work
    environment: Mapping[str, str]
    log: Path
    _process: subprocess.Popen[bytes] | None = None
    starts: int = 0

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        self.starts += 1
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "tests.projections.source.write_jobs"),
                    *(self.kind, json.dumps(asdict(self.work))),
                ],
                env=self.environment,
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def of(self, kind: str) -> list[Process]:
        """Return the processes of a kind that can be killed now."""
        if self._process is None or not self.is_running:
            return []
        there = descendants_of(self._process.pid)
        workers = [each for each in there if "pyspark.daemon" in each.command]
        if kind == "worker":
            daemons = {each.pid for each in workers}
            return [each for each in workers if each.parent in daemons]
        if kind == "executor":
            return [each for each in there if "CoarseGrainedExecutorBackend" in each.command]
        # A driver is killed once it is at work.
        return [Process(self._process.pid, 0, "")] if workers else []

    def kill_all(self) -> None:
        """Kill the driver and all that it started."""
        if self._process is not None:
            every = [*descendants_of(self._process.pid), Process(self._process.pid, 0, "")]
            for each in every:
                each.kill()
            self._process.wait(30)

    def wait(self, seconds: float) -> int:
        assert self._process is not None
        return self._process.wait(seconds)


@define
class Killing:
    """Kills processes of a driver at random moments until all kills are done."""

    driver: Driver
    dice: random.Random
    version: Callable[[], int]
    files: Callable[[], frozenset[str]]
    done: Counter[str] = field(factory=Counter)
    _seen: tuple[int, frozenset[str]] = (0, frozenset())

    def run(self, kinds: Sequence[str], feed: Callable[[], None], deadline_s: float) -> None:
        end = time.monotonic() + deadline_s
        for kind in kinds:
            self._kill_one(kind, feed, end)
        (Path(self.driver.work.folder) / "stop").touch()
        while not self.driver.is_running or self.driver.wait(end - time.monotonic()):
            assert time.monotonic() < end, "the driver does not finish"
            self.driver.start()

    def _kill_one(self, kind: str, feed: Callable[[], None], end: float) -> None:
        while True:
            assert time.monotonic() < end, f"{self.done} kills before the time was up"
            feed()
            if not self.driver.is_running:
                self.driver.start()
            # Between two kills some rows are written or committed, so that all parts are hit.
            signs = (self.version, self.files)[bool(self.done.total() % 3)]()
            if signs not in self._seen and self.driver.of(kind):
                self._seen = (self.version(), self.files())
                break
            time.sleep(0.1)
        time.sleep(self.dice.uniform(0, 1.5))
        victims = self.driver.of(kind)
        if not victims:
            self._kill_one(kind, feed, end)
        elif kind == "driver":
            self._kill_driver(victims[0])
        else:
            self.dice.choice(victims).kill()
            self.done[kind] += 1

    def _kill_driver(self, driver: Process) -> None:
        others = descendants_of(driver.pid)
        driver.kill()
        self.driver.wait(30)
        # Its JVM and executors go on for a while.
        time.sleep(self.dice.choice([0, 0.3, 1.5]))
        for each in others:
            each.kill()
        self.done["driver"] += 1


class Undated(ForwardingStore):
    """A store that does not say what time it is, so that a test's clock may be days ahead."""

    def clock(self) -> None:
        return None

    def ask_clock(self) -> None:
        return None


@frozen
class Target:
    """The table that is written, as another process sees it."""

    url: str
    options: Mapping[str, Any]

    @property
    def table(self) -> Table:
        return ledger.open(self.url, self.options).table("shop.orders")

    def create(self) -> None:
        lake = ledger.open(self.url, self.options)
        lake.create_database("shop")
        columns = {"id": "BIGINT", "day": "DATE", "note": "STRING"}
        lake.create_table("shop.orders", Schema.of(columns, partition_keys=["day"]))

    def ids(self) -> list[int]:
        """Return the ids of all rows by reading each live file whole, sorted."""
        table = self.table
        filesystem, location = url_to_fs(table.location, **self.options)
        found: list[int] = []
        for each in table.at().files:
            with filesystem.open(f"{location}/{each.path}") as file:
                rows = pq.ParquetFile(file).read(["id"])["id"].to_pylist()
            assert len(rows) == each.record_count
            found += rows
        return sorted(found)

    def version(self) -> int:
        return self.table.state.version

    def data_files(self) -> frozenset[str]:
        """Return the paths of all data files in the table's location."""
        log = handle_of(self.table).log
        start = log.layout.key_of("")
        return frozenset(each.removeprefix(start) for each in log.store.keys(f"{start}data"))

    def named_files(self) -> set[str]:
        table = self.table
        log = handle_of(table).log
        commits = table.events()
        return {f.path for each in commits for f in commit_files(log.store, log.layout, each)}

    def maintain(self) -> None:
        plain = {key: value for key, value in self.options.items() if isinstance(value, str)}
        flags = [f"--storage-option={key}={value}" for key, value in plain.items()]
        assert run_command(["maintain", "--ledger", self.url, *flags]) == 0

    def let_days_pass(self) -> None:
        """Commit as somebody does in ten days."""
        later = lake_on(
            Undated(open_store(self.url, self.options)), lambda: now_millis() + 10 * DAY
        )
        later.table("shop.orders").alter([SetOption("k", "v")])


@frozen
class Kills:
    """A run: what is written, and which processes are killed in which order."""

    kind: str
    kinds: Sequence[str]
    master: str
    seconds: float
    seed: int

    def run(self, target: Target, folder: Path) -> Counter[str]:
        """Write while processes are killed; check rows, files and orphans."""
        target.create()
        work_folder = folder / "work"
        (work_folder / "input").mkdir(parents=True)
        work = Work(
            url=target.url,
            options=dict(target.options),
            folder=str(work_folder),
            master=self.master,
            root=str(ROOT),
        )
        log = folder / "driver.log"
        driver = Driver(self.kind, work, environment(folder), log)
        killing = Killing(driver, random.Random(self.seed), target.version, target.data_files)
        inputs = 0

        def feed() -> None:
            nonlocal inputs
            if self.kind == "stream" and inputs < 4 + killing.done.total():
                first = inputs * ROWS
                path = work_folder / "input" / f"{inputs}.parquet"
                pq.write_table(pa.table({"id": range(first, first + ROWS)}), f"{path}.part")
                path.with_name(f"{path.name}.part").rename(path)
                inputs += 1

        try:
            killing.run(self.kinds, feed, self.seconds)
        except BaseException as error:
            error.add_note(log.read_text()[-5000:])
            raise
        finally:
            driver.kill_all()
        batches = inputs if self.kind == "stream" else len(work.acknowledged)
        assert target.ids() == list(range(batches * ROWS))
        killing.done["orphans"] = self._check_orphans(target, batches)
        killing.done["batches"] = batches
        sys.stdout.write(f"{self.kind}: {dict(killing.done)}, {driver.starts} starts\n")
        return killing.done

    def _check_orphans(self, target: Target, batches: int) -> int:
        named, there = target.named_files(), target.data_files()
        assert named <= there
        target.maintain()
        assert target.data_files() == there
        target.let_days_pass()
        target.maintain()
        assert target.data_files() == named
        assert target.ids() == list(range(batches * ROWS))
        return len(there - named)


def environment(folder: Path) -> dict[str, str]:
    """Return that of a driver, whose cluster keeps its folders in `folder`."""
    import pyspark

    home = folder / "spark"
    home.mkdir()
    for name in ("bin", "jars"):
        (home / name).symlink_to(Path(pyspark.__file__).parent / name)
    return {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_HOME": str(home),
    }


def shuffled(seed: int, **counts: int) -> list[str]:
    """Return kills in random order."""
    kinds = [kind for kind, count in counts.items() for _ in range(count)]
    random.Random(seed).shuffle(kinds)
    return kinds


@pytest.mark.spark
def test_a_batch_writer_whose_workers_and_driver_are_killed_writes_each_row_once(
    tmp_path: Path,
) -> None:
    target = Target((tmp_path / "lake").as_uri(), {})
    run = Kills("batch", ["worker", "worker", "driver", "worker"], "local[2,8]", 200, 1)

    done = run.run(target, tmp_path)

    assert done["driver"] == 1
    assert done["batches"] > 1


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("kind", ["batch", "stream"])
@pytest.mark.parametrize("place", ["local", "seaweedfs"])
def test_two_hundred_kills_lose_nothing_and_write_nothing_twice(
    kind: str, place: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    if place == "local":
        target = Target((tmp_path / "lake").as_uri(), {})
    else:
        server: S3Server = request.getfixturevalue("seaweedfs")
        target = Target(root(server, f"kills-{kind}"), server.options)
    kinds = shuffled(7, worker=36, executor=9, driver=5)
    run = Kills(kind, kinds, "local-cluster[2,1,1024]", 1500, 7)

    done = run.run(target, tmp_path)

    assert sum(done[each] for each in ("worker", "executor", "driver")) == 50
    assert done["batches"] > 10
    assert done["orphans"] > 0
