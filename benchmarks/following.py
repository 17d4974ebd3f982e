"""Effect of following by three formats on commits to a table.

Two tables, of which one is followed, get the same snapshots, one commit at a time, in turn: a burst
as fast as possible, 100 and 10 commits a second. The files are completed in between, so that no
table pays for the other's. A ratio is the median over the pairs of runs; the progress of the files
is reported with it. At last, the followed table gets commits while `lakeledger follow` runs in a
second process.
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
from ledger.following.files import Freshness

FORMATS = "iceberg,paimon,delta"
TIMES_NONE = 1.5
READS_EVERY_S = 0.5
STARTS_S = 3.0


@frozen
class Load:
    """A sequence of commits.

    Attributes:
        name: Name in the report.
        seconds: Duration.
        rate: Commits a second; 0: as fast as possible.
    """

    name: str
    seconds: float
    rate: float


@define
class Measured:
    """Measurements of one load on one table.

    Attributes:
        times_ms: The latency of each commit, by run.
        projected: Number of versions that files advanced meanwhile, summed over formats.
        behind: Maximum number of commits that files lacked.
        millis: Maximum time that they lacked one, milliseconds.
    """

    times_ms: list[list[float]] = field(factory=list)
    projected: int = 0
    behind: int = 0
    millis: int = 0

    @property
    def all_ms(self) -> list[float]:
        """The latency of each commit of all runs."""
        return [time_ms for run in self.times_ms for time_ms in run]

    def note(self, freshness: list[Freshness]) -> None:
        """Record the lag of the files."""
        self.behind = max([self.behind, *(each.behind for each in freshness)])
        self.millis = max([self.millis, *(each.millis for each in freshness)])


def run(
    place: str,
    options: Mapping[str, Any],
    loads: list[Load],
    *,
    pairs: int = 5,
    beside: Load | None = None,
) -> Report:
    lake = open_ledger(place, storage_options=dict(options), author="bench")
    lake.create_database("shop")
    tables = {name: _table(lake, name) for name in ("none", "followed")}
    figures = [figure for load in loads for figure in _in_pairs(lake, tables, load, pairs)]
    if beside is not None:
        figures += _beside(lake, tables["followed"], place, beside)
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


def _in_pairs(lake: Ledger, tables: dict[str, Table], load: Load, pairs: int) -> Iterator[Figure]:
    measured = {name: Measured() for name in tables}
    waited_s = 0.0
    lake.close()
    for turn in range(pairs):
        # In alternating order, as logs grow and a machine may slow down.
        for name in sorted(tables, reverse=turn % 2 == 1):
            _put_on(tables[name], load, measured[name])
            begun_s = time.perf_counter()
            lake.close()
            waited_s = max(waited_s, time.perf_counter() - begun_s)
    followed, none = measured["followed"], measured["none"]
    for what, of, at_most in (
        ("median", statistics.median, TIMES_NONE),
        ("mean", statistics.fmean, None),
        ("p99", _p99, None),
    ):
        yield Figure(f"{load.name}: {what} commit, nothing follows", of(none.all_ms), "ms")
        both = zip(followed.times_ms, none.times_ms, strict=True)
        ratio = statistics.median(of(ones) / of(others) for ones, others in both)
        name = f"{load.name}: {what}, three formats / nothing"
        yield Figure(name, ratio, "x", at_most=at_most)
    yield from _lag(load, followed, waited_s)


def _p99(times: list[float]) -> float:
    return sorted(times)[int(0.99 * len(times))]


def _lag(load: Load, measured: Measured, waited_s: float) -> Iterator[Figure]:
    yield Figure(f"{load.name}: commits", len(measured.all_ms), "")
    yield Figure(f"{load.name}: versions projected meanwhile", measured.projected / 3, "")
    yield Figure(f"{load.name}: most commits behind", measured.behind, "")
    yield Figure(f"{load.name}: longest behind", measured.millis / 1000, "s")
    yield Figure(f"{load.name}: until up to date afterwards", waited_s, "s")


def _put_on(table: Table, load: Load, measured: Measured) -> None:
    projected = sum(each.version for each in table.freshness())
    times: list[float] = []
    begun_s = read_s = time.perf_counter()
    while (now_s := time.perf_counter()) < begun_s + load.seconds:
        if load.rate:
            time.sleep(max(0.0, begun_s + len(times) / load.rate - now_s))
        start_ns = time.perf_counter_ns()
        _commit(table)
        times.append((time.perf_counter_ns() - start_ns) / 1e6)
        if now_s > read_s + READS_EVERY_S:
            measured.note(table.freshness())
            read_s = time.perf_counter()
    freshness = table.freshness()
    measured.note(freshness)
    measured.times_ms.append(times)
    measured.projected += sum(each.version for each in freshness) - projected


def _beside(lake: Ledger, table: Table, place: str, load: Load) -> Iterator[Figure]:
    measured = Measured()
    lake.close()
    with _follows_beside(place):
        _put_on(table, load, measured)
        begun_s = time.perf_counter()
        lake.close()
    yield Figure(f"{load.name}: median commit", statistics.median(measured.all_ms), "ms")
    yield from _lag(load, measured, time.perf_counter() - begun_s)


@contextmanager
def _follows_beside(place: str) -> Iterator[None]:
    line = [sys.executable, "-m", "ledger", "follow", "--interval", "0.2", "--ledger", place]
    with subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            time.sleep(STARTS_S)
            yield
        finally:
            process.terminate()


def main(  # noqa: PLR0913 - options of the benchmark
    *,
    pairs: int = 5,
    burst: float = 5,
    steady: float = 5,
    beside: float = 8,
    round_trip_ms: float = 0,
    workdir: Path = WORKDIR,
    output: Output = "text",
) -> None:
    """Commit to a table that nothing follows, and to one that three formats follow.

    Args:
        pairs: Runs of each load on each table, in turn.
        burst: Seconds of commits as fast as possible.
        steady: Seconds of 10 commits a second, and of 100.
        beside: Seconds of 100 commits a second with `lakeledger follow` concurrently, on a disk.
        round_trip_ms: Measure a bucket of a temporary server with this delay; 0: a disk.
        workdir: The folder whose file system is measured.
        output: text or json.
    """
    loads = [
        Load("as fast as possible", burst, 0),
        Load("100 a second", steady, 100),
        Load("10 a second", steady, 10),
    ]
    if round_trip_ms:
        with place_for(None) as (place, options), at_distance(options, round_trip_ms) as away:
            show(run(place, away, loads, pairs=pairs), output)
        return
    workdir.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=workdir) as folder:
        last = Load("100 a second, with a process beside", beside, 100)
        show(run(folder, {}, loads, pairs=pairs, beside=last), output)


if __name__ == "__main__":
    cyclopts.run(main)
