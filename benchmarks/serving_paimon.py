"""Commits of pypaimon through `lakeledger serve`, compared with its own file-system catalog.

One writer commits one row at a time, and 100,000 at a time; eight writers commit one row at a time
to one table. Both catalogs keep their files on the same disk; pypaimon's own commits by renaming a
file, and syncs nothing. A commit counts as kept if it was acknowledged and its row is there at the
end; an acknowledged row that is not there is lost. Loads of the table, of the newest snapshot and
of pages are compared between short and long histories.
"""

from __future__ import annotations

import itertools
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import cyclopts
import pyarrow as pa
import pyarrow.compute as pc
from attrs import field, frozen
from pypaimon import CatalogFactory
from pypaimon import Schema as PaimonSchema

import ledger
from benchmarks.measure import WORKDIR, Figure, Output, Report, question_of, show
from benchmarks.paimon_writer import FILLER, SCHEMA
from tests.projections.rest.rest_servers import RestServer, ledger_server

OURS, RIVAL = "lakeledger", "file system"
ONE_WRITER = 1.3
EIGHT_WRITERS = 3.0
FLAT = 2.0
WRITERS = 8
ROWS = 100_000
SIZES = (10, 10_000)
_LOADS = 60
_FIRST_MILLIS = 1_700_000_000_000
_LOADED = {
    "table": "",
    "snapshot": "/snapshot",
    "page of partitions": "/partitions?maxResults=10",
    "page of snapshots": "/snapshots?maxResults=10",
}
"""Paths below a table, by the kind of load; a short table has a full page, too."""


@frozen
class Load:
    """Result of writers that committed to one table.

    Attributes:
        kept: Number of acknowledged rows that are in the table.
        lost: Number of acknowledged rows that are not.
        failed: Number of commits that failed.
        seconds: Time from the first commit to the last.
        took_ms: Latency of each acknowledged commit, milliseconds.
    """

    kept: int
    lost: int
    failed: int
    seconds: float
    took_ms: Sequence[float] = field(repr=False)

    @property
    def rate(self) -> float:
        """Kept commits per second."""
        return self.kept / self.seconds


def run(  # noqa: PLR0913 - what a test makes small
    workdir: Path,
    *,
    commits: int,
    seconds: float,
    rounds: int,
    sizes: Sequence[int] = SIZES,
    writers: int = WRITERS,
    rows: int = ROWS,
) -> Report:
    workdir.mkdir(parents=True, exist_ok=True)
    alone: dict[str, list[Load]] = {OURS: [], RIVAL: []}
    large: dict[str, list[Load]] = {OURS: [], RIVAL: []}
    together: dict[str, list[Load]] = {OURS: [], RIVAL: []}
    with tempfile.TemporaryDirectory(dir=workdir) as folder, _catalogs(Path(folder)) as catalogs:
        for nth in range(rounds):
            # Neither is always the first.
            for name in sorted(catalogs, reverse=nth % 2 == 1):
                one = Work(f"alone{nth}", 1, 1, commits, 0)
                alone[name].append(_write(catalogs[name], one))
                big = Work(f"large{nth}", 1, rows, commits, 0)
                large[name].append(_write(catalogs[name], big))
                many = Work(f"together{nth}", writers, 1, 0, seconds)
                together[name].append(_write(catalogs[name], many))
    with tempfile.TemporaryDirectory(dir=workdir) as folder:
        loads = _loads(Path(folder), sizes)
    lost = sum(each.lost for each in (*alone[OURS], *large[OURS], *together[OURS]))
    return Report(
        question_of(__doc__),
        f"writers={writers} lost={lost}",
        (
            *_time_figures("1 writer, 1 row", alone),
            *_time_figures(f"1 writer, {rows:,} rows", large),
            *_rate_figures(together, writers),
            *_load_figures(loads),
        ),
        (
            *_rows("1 writer, 1 row", alone),
            *_rows(f"1 writer, {rows:,} rows", large),
            *_rows(f"{writers} writers", together),
            *_load_rows(loads),
        ),
    )


@contextmanager
def _catalogs(folder: Path) -> Iterator[Mapping[str, dict[str, str]]]:
    """Yield the options of both catalogs."""
    with _server(folder) as server:
        yield {
            OURS: {
                "metastore": "rest",
                "uri": f"{server.uri}/paimon",
                "warehouse": "lake",
                "token.provider": "bear",
                "token": "none",
            },
            RIVAL: {"warehouse": str(folder / "warehouse")},
        }


@contextmanager
def _server(folder: Path) -> Iterator[RestServer]:
    url = str(folder / "ledger")
    ledger.open(url).init()
    with ledger_server(folder, url, "--log-level", "warning") as server:
        yield server


@frozen
class Work:
    """Work of writers on one table.

    Attributes:
        table: The table's name.
        writers: Number of writers.
        rows: Number of rows of a commit.
        commits: Number of commits of each writer; 0 for as many as there is time for.
        seconds: That time.
    """

    table: str
    writers: int
    rows: int
    commits: int
    seconds: float


def _write(options: dict[str, str], work: Work) -> Load:
    """Run writers in processes of their own, and count the rows afterwards."""
    catalog = CatalogFactory.create(options)
    catalog.create_database("bench", ignore_if_exists=True)
    name = f"bench.{work.table}"
    catalog.create_table(name, PaimonSchema.from_pyarrow_schema(SCHEMA), ignore_if_exists=False)
    program = [sys.executable, "-m", "benchmarks.paimon_writer", json.dumps(options)]
    processes = [
        subprocess.Popen(
            [*program, name, str(nth), str(work.rows), str(work.commits)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        for nth in range(work.writers)
    ]
    try:
        for each in processes:
            assert _stdout(each).readline() == "ready\n"
        start = time.perf_counter()
        for each in processes:
            _send(each, "go\n")
        if not work.commits:
            time.sleep(work.seconds)
            for each in processes:
                _send(each, "stop\n")
        found = [json.loads(_stdout(each).readline()) for each in processes]
        took = time.perf_counter() - start
    finally:
        for each in processes:
            each.kill()
            each.communicate()
    there = _rows_of(options, name)
    acknowledged = {row for each in found for row in each["rows"]}
    return Load(
        kept=len(acknowledged & there),
        lost=len(acknowledged - there),
        failed=sum(each["failed"] for each in found),
        seconds=took,
        took_ms=[ms for each in found for ms in each["took_ms"]],
    )


def _stdout(process: subprocess.Popen[str]) -> Any:
    assert process.stdout is not None
    return process.stdout


def _send(process: subprocess.Popen[str], line: str) -> None:
    assert process.stdin is not None
    process.stdin.write(line)
    process.stdin.flush()


def _rows_of(options: dict[str, str], name: str) -> set[int]:
    builder = CatalogFactory.create(options).get_table(name).new_read_builder()
    found = builder.new_read().to_arrow(builder.new_scan().plan().splits())
    ids = pa.chunked_array([[]], pa.int64()) if found is None else found["id"]
    rows: list[int] = ids.filter(pc.not_equal(ids, FILLER)).to_pylist()
    assert len(rows) == len(set(rows)), "a row was committed twice"
    return set(rows)


def _loads(folder: Path, sizes: Sequence[int]) -> dict[str, dict[int, float]]:
    """Return the median latency of each kind of load by the size of the table, milliseconds."""
    with _server(folder) as server:
        client = _Client(HTTPConnection(urlsplit(server.uri).netloc, timeout=60))
        client.call("POST", "databases", {"name": "bench", "options": {}})
        for each in sizes:
            client.create_long_table(f"t{each}", each)
        client.connection.close()
    took: dict[str, dict[int, list[float]]] = {kind: {} for kind in _LOADED}
    with ledger_server(folder, server.warehouse, "--log-level", "warning") as server:
        client = _Client(HTTPConnection(urlsplit(server.uri).netloc, timeout=60))
        for nth in range(_LOADS + 1):
            for size, (kind, path) in itertools.product(sizes, _LOADED.items()):
                start = time.perf_counter()
                client.call("GET", f"databases/bench/tables/t{size}{path}")
                # The first load of a process reads the table's log.
                if nth:
                    spent = (time.perf_counter() - start) * 1e3
                    took[kind].setdefault(size, []).append(spent)
        client.connection.close()
    return {
        kind: {size: statistics.median(each) for size, each in by_size.items()}
        for kind, by_size in took.items()
    }


@frozen
class _Client:
    connection: HTTPConnection

    def call(self, method: str, path: str, body: object = None) -> Any:
        """Return the body of a successful response."""
        sent = None if body is None else json.dumps(body)
        headers = {"Content-Type": "application/json"}
        self.connection.request(method, f"/paimon/v1/lakeledger/{path}", sent, headers)
        response = self.connection.getresponse()
        found = response.read()
        assert response.status // 100 == 2, (path, response.status, found[:500])
        return json.loads(found) if found else None

    def create_long_table(self, name: str, size: int) -> None:
        """Create a table of as many snapshots as partitions, without data."""
        fields = [
            {"id": 0, "name": "id", "type": "BIGINT"},
            {"id": 1, "name": "day", "type": "INT"},
        ]
        schema = {"fields": fields, "partitionKeys": ["day"], "primaryKeys": [], "options": {}}
        identifier = {"database": "bench", "object": name}
        self.call("POST", "databases/bench/tables", {"identifier": identifier, "schema": schema})
        table = f"databases/bench/tables/{name}"
        table_id = self.call("GET", table)["id"]
        for nth in range(1, size + 1):
            snapshot = {
                "version": 3,
                "id": nth,
                "schemaId": 0,
                "uuid": f"uuid-{nth}",
                "baseManifestList": f"manifest-list-{nth}-0",
                "baseManifestListSize": 1,
                "deltaManifestList": f"manifest-list-{nth}-1",
                "deltaManifestListSize": 1,
                "commitUser": "bench",
                "commitIdentifier": nth,
                "commitKind": "APPEND",
                "timeMillis": _FIRST_MILLIS + nth,
                "totalRecordCount": nth,
                "deltaRecordCount": 1,
            }
            counts = {"recordCount": 1, "fileSizeInBytes": 1_000, "fileCount": 1}
            created = {"lastFileCreationTime": _FIRST_MILLIS + nth, "totalBuckets": -1}
            request = {
                "tableId": table_id,
                "baseSnapshotUuid": f"uuid-{nth - 1}" if nth > 1 else None,
                "snapshot": snapshot,
                "statistics": [{"spec": {"day": str(nth)}, **counts, **created}],
            }
            assert self.call("POST", f"{table}/commit", request) == {"success": True}


def _time_figures(scenario: str, loads: Mapping[str, Sequence[Load]]) -> Iterator[Figure]:
    took = statistics.median(
        statistics.median(ours.took_ms) / statistics.median(theirs.took_ms)
        for ours, theirs in zip(loads[OURS], loads[RIVAL], strict=True)
    )
    yield Figure(f"{scenario}: time of a commit, / {RIVAL}", took, "x", at_most=ONE_WRITER)


def _rate_figures(together: Mapping[str, Sequence[Load]], writers: int) -> Iterator[Figure]:
    rate = statistics.median(
        ours.rate / max(theirs.rate, 1e-9)
        for ours, theirs in zip(together[OURS], together[RIVAL], strict=True)
    )
    name = f"{writers} writers: kept/s, / {RIVAL}"
    yield Figure(name, rate, "x", at_least=EIGHT_WRITERS)
    lost = sum(each.lost for each in together[OURS])
    yield Figure(f"{writers} writers: acknowledged and lost", lost, "rows", at_most=0)


def _load_figures(loads: Mapping[str, Mapping[int, float]]) -> Iterator[Figure]:
    for kind, by_size in loads.items():
        least, most = min(by_size), max(by_size)
        name = f"{kind}, {most:,} snapshots and partitions / {least:,}"
        yield Figure(name, by_size[most] / by_size[least], "x", at_most=FLAT)


def _rows(scenario: str, loads: Mapping[str, Sequence[Load]]) -> Iterator[str]:
    for name, each in loads.items():
        took = [ms for load in each for ms in load.took_ms]
        yield (
            f"{scenario}, {name}: {statistics.median(load.rate for load in each):.1f} kept/s, "
            f"p50 {statistics.median(took):.1f} ms, {sum(load.kept for load in each)} kept, "
            f"{sum(load.lost for load in each)} lost, {sum(load.failed for load in each)} failed"
        )


def _load_rows(loads: Mapping[str, Mapping[int, float]]) -> Iterator[str]:
    for kind, by_size in loads.items():
        texts = (f"{ms:.2f} ms at {size:,}" for size, ms in by_size.items())
        yield f"{kind}: {', '.join(texts)}"


def main(
    *,
    commits: int = 40,
    seconds: float = 8.0,
    rounds: int = 3,
    workdir: Path = WORKDIR,
    output: Output = "text",
) -> None:
    """Commit through both catalogs.

    Args:
        commits: Number of commits of the single writer.
        seconds: Length of each load of eight writers.
        rounds: Number of rounds; the median counts.
        workdir: The folder whose file system is measured.
        output: text or json.
    """
    show(run(workdir, commits=commits, seconds=seconds, rounds=rounds), output)


if __name__ == "__main__":
    cyclopts.run(main)
