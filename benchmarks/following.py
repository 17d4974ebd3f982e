"""What do files that follow cost a commit, and how far behind are they while commits keep coming?

Two tables get the same snapshots, one by one: files of three formats follow one of them. Their
commits are timed in turn, and files are waited for in between, so that no table pays for the
other's. A short burst ends before files are brought on; in a long one, and at a steady rate, they
are brought on meanwhile: how far stands beside each ratio, since without it a ratio says nothing.
Of the followed table's commits all are compared with those that met no such step, too, since both
come from the same seconds of the same machine. At last commits come to the followed table with
`lakeledger follow` in a process beside.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import cyclopts
from attrs import define, field, frozen

from benchmarks.bucket import place_for
from benchmarks.distance import at_distance
from benchmarks.measure import WORKDIR, Figure, Output, Report, question_of, show
from ledger import FileChange, Ledger, Schema, Table
from ledger import open as open_ledger
from ledger.following import files
from ledger.following.files import Freshness, KeptFormat, Stands

FORMATS = "iceberg,paimon,delta"
TIMES_NONE = 1.1
LOOKS_EVERY_S = 0.5
STARTS_S = 3.0


@frozen
class Load:
    """Commits that come one after the other.

    Attributes:
        name: What it is called.
        seconds: For so long.
        rate: So many a second; 0: as fast as they can.
        pairs: How often each table gets them.
    """

    name: str
    seconds: float
    rate: float
    pairs: int


@define
class Met:
    """What the commits of some loads met.

    Attributes:
        times_ms: Of each commit, by load.
        brought_on: By how many versions files went on meanwhile, all formats together.
        behind: The most commits that files lacked.
        millis: The longest that they lacked one.
        alone_ms: Of each commit beside which no files were brought on.
    """

    times_ms: list[list[float]] = field(factory=list)
    alone_ms: list[float] = field(factory=list)
    brought_on: int = 0
    behind: int = 0
    millis: int = 0

    @property
    def all_ms(self) -> list[float]:
        """Of each commit."""
        return [each for some in self.times_ms for each in some]

    def look(self, stands: list[Freshness]) -> None:
        """Take down how far behind files are."""
        self.behind = max([self.behind, *(each.behind for each in stands)])
        self.millis = max([self.millis, *(each.millis for each in stands)])


@define
class Steps:
    """Steps that bring files on in this process.

    Attributes:
        begun: How many have begun so far.
        under_way: How many have not ended yet.
    """

    begun: int = 0
    under_way: int = 0


@frozen
class _Counted:
    steps: Steps
    kept: KeptFormat

    def step(self, table: Any, *, commits: int) -> int:
        self.steps.begun += 1
        self.steps.under_way += 1
        try:
            return self.kept.step(table, commits=commits)
        finally:
            self.steps.under_way -= 1

    def freshness(self, table: Any) -> Stands:
        return self.kept.freshness(table)


@contextmanager
def _counted() -> Iterator[Steps]:
    """Count the steps of this process's followers."""
    steps, kept = Steps(), files.kept
    vars(files)["kept"] = lambda name: _Counted(steps, kept(name))
    try:
        yield steps
    finally:
        vars(files)["kept"] = kept


def run(
    place: str, options: Mapping[str, Any], loads: list[Load], *, beside: Load | None = None
) -> Report:
    lake = open_ledger(place, storage_options=dict(options), author="bench")
    lake.create_database("shop")
    tables = {name: _table(lake, name) for name in ("none", "followed")}
    with _counted() as steps:
        figures = [each for load in loads for each in _in_pairs(lake, tables, load, steps)]
        if beside is not None:
            figures += _beside(lake, tables["followed"], place, beside, steps)
    lake.close()
    behind = [each.behind for each in tables["followed"].freshness()]
    return Report(question_of(__doc__), f"behind={behind}", tuple(figures))


def _table(lake: Ledger, name: str) -> Table:
    follow = {"ledger.follow": FORMATS} if name == "followed" else {}
    options = {"ledger.formats": FORMATS, **follow}
    table = lake.create_table(f"shop.{name}", Schema.of({"id": "BIGINT"}, options=options))
    _commit(table)
    return table


def _commit(table: Table) -> None:
    path = f"data/{table.state.last_snapshot_id}.parquet"
    table.append([FileChange(path=path, record_count=1, file_size_in_bytes=9, field_ids=True)])


def _in_pairs(lake: Ledger, tables: dict[str, Table], load: Load, steps: Steps) -> Iterator[Figure]:
    met = {name: Met() for name in tables}
    waited_s = 0.0
    lake.close()
    for turn in range(load.pairs):
        # Forwards and backwards: a log that grows, and a machine that tires, is nobody's.
        for name in sorted(tables, reverse=turn % 2 == 1):
            _put_on(tables[name], load, met[name], steps)
            begun_s = time.perf_counter()
            lake.close()
            waited_s = max(waited_s, time.perf_counter() - begun_s)
    followed, none = met["followed"], met["none"]
    for what, of in (("median", statistics.median), ("mean", statistics.fmean)):
        yield Figure(f"{load.name}: {what} commit, nothing follows", of(none.all_ms), "ms")
        pairs = zip(followed.times_ms, none.times_ms, strict=True)
        ratio = statistics.median(of(ones) / of(others) for ones, others in pairs)
        name = f"{load.name}: {what}, three formats / nothing"
        yield Figure(name, ratio, "x", at_most=TIMES_NONE)
    p99 = _p99(followed.all_ms) / _p99(none.all_ms)
    yield Figure(f"{load.name}: p99, three formats / nothing", p99, "x")
    yield from _of_steps(load, followed)
    yield from _lag(load, followed, waited_s)


def _of_steps(load: Load, met: Met) -> Iterator[Figure]:
    share = 1 - len(met.alone_ms) / len(met.all_ms)
    yield Figure(f"{load.name}: commits that met a step", 100 * share, "%")
    mean = statistics.fmean(met.all_ms) / statistics.fmean(met.alone_ms)
    yield Figure(
        f"{load.name}: mean of all / of those that met none", mean, "x", at_most=TIMES_NONE
    )


def _p99(times: list[float]) -> float:
    return sorted(times)[int(0.99 * len(times))]


def _lag(load: Load, met: Met, waited_s: float) -> Iterator[Figure]:
    yield Figure(f"{load.name}: commits that came", len(met.all_ms), "")
    yield Figure(f"{load.name}: versions brought on meanwhile", met.brought_on / 3, "")
    yield Figure(f"{load.name}: most commits behind", met.behind, "")
    yield Figure(f"{load.name}: longest behind", met.millis / 1000, "s")
    yield Figure(f"{load.name}: until all is there afterwards", waited_s, "s")


def _put_on(table: Table, load: Load, met: Met, steps: Steps) -> None:
    stood = sum(each.version for each in table.freshness())
    times: list[float] = []
    begun_s = looked_s = time.perf_counter()
    while (now_s := time.perf_counter()) < begun_s + load.seconds:
        if load.rate:
            time.sleep(max(0.0, begun_s + len(times) / load.rate - now_s))
        begun, is_met = steps.begun, steps.under_way > 0
        start_ns = time.perf_counter_ns()
        _commit(table)
        times.append((time.perf_counter_ns() - start_ns) / 1e6)
        if not is_met and steps.begun == begun:
            met.alone_ms.append(times[-1])
        if now_s > looked_s + LOOKS_EVERY_S:
            met.look(table.freshness())
            looked_s = time.perf_counter()
    stands = table.freshness()
    met.look(stands)
    met.times_ms.append(times)
    met.brought_on += sum(each.version for each in stands) - stood


def _beside(lake: Ledger, table: Table, place: str, load: Load, steps: Steps) -> Iterator[Figure]:
    met = Met()
    lake.close()
    with _follows_beside(place):
        _put_on(table, load, met, steps)
        begun_s = time.perf_counter()
        lake.close()
    yield Figure(f"{load.name}: median commit", statistics.median(met.all_ms), "ms")
    yield from _lag(load, met, time.perf_counter() - begun_s)


@contextmanager
def _follows_beside(place: str) -> Iterator[None]:
    line = [sys.executable, "-m", "ledger", "follow", "--interval", "0.2", "--ledger", place]
    with subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            time.sleep(STARTS_S)
            yield
        finally:
            process.terminate()


def main(  # noqa: PLR0913 - what a user may ask for
    *,
    pairs: int = 2,
    short: float = 0.5,
    long: float = 5,
    steady: float = 3,
    beside: float = 8,
    round_trip_ms: float = 0,
    workdir: Path = WORKDIR,
    output: Output = "text",
) -> None:
    """Commit to a table that nothing follows, and to one that three formats follow.

    Args:
        pairs: How often each table gets each load, in turn; short bursts five times as often, 10
            commits a second, which are few, thrice.
        short: Seconds that a short burst takes.
        long: Seconds that a long burst takes.
        steady: Seconds of 10 commits a second, and of 100.
        beside: Seconds of 100 commits a second with `lakeledger follow` beside, on a disk.
        round_trip_ms: Measure a bucket of a server made for it, which answers so much later; 0: a
            disk.
        workdir: The file system that is measured.
        output: text or json.
    """
    loads = [
        Load("short bursts", short, 0, 5 * pairs),
        Load("long bursts", long, 0, pairs),
        Load("10 a second", steady, 10, 3 * pairs),
        Load("100 a second", steady, 100, pairs),
    ]
    if round_trip_ms:
        with place_for(None) as (place, options), at_distance(options, round_trip_ms) as away:
            show(run(place, away, loads), output)
        return
    workdir.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=workdir) as folder:
        last = Load("100 a second, with a process beside", beside, 100, 1)
        show(run(folder, {}, loads, beside=last), output)


if __name__ == "__main__":
    cyclopts.run(main)
