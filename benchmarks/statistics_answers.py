"""Time of answers from kept statistics, and of DuckDB's to the same questions over the same tiles.

The questions: the sums of all partitions that have files, and the history of one partition. Both
answer in turn, on one thread, and the answers are compared. Then `lakeledger stats --limit 10` runs
in a process of its own, whose start is included.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

import cyclopts
import duckdb
import pyarrow as pa
from attrs import frozen

import ledger
from benchmarks.measure import WORKDIR, Figure, Output, Report, Spent, question_of, show
from benchmarks.statistics_refresh import NAME, lake_at
from ledger.table_handle import handle_of
from projections.statistics import Kept, query, refresh

ALL_AT_MOST = 1.5
ONE_AT_MOST = 3.0
TOP = 10
HISTORIES_AT_ONCE = 10
"""Histories in one timing: a single one takes about a tick of the processor's clock."""


@frozen
class DuckTiles:
    """DuckDB over the tiles of deltas."""

    connection: duckdb.DuckDBPyConnection
    files: str

    @classmethod
    def of(cls, folder: Path) -> DuckTiles:
        """Return a connection of one thread."""
        connection = duckdb.connect(config={"threads": 1})
        return cls(connection, f"read_parquet('{folder}/deltas/*.parquet')")

    def partitions(self) -> pa.Table:
        """Return the sums of partitions that have files, as Arrow."""
        statement = f"""select spec_id, partition, content, sum(record_count) as record_count,
            sum(file_size_in_bytes), sum(file_count), max(last_file_creation_time)
            from {self.files} where spec_id is not null group by all
            having sum(file_count) > 0"""  # noqa: S608 - our own paths
        return self.connection.execute(statement).to_arrow_table()

    def history(self, partition: str) -> list[int]:
        """Return the rows of one partition after each snapshot that changed it."""
        statement = f"""select sum(record_count) over (order by version, snapshot_id),
            sum(file_size_in_bytes) over (order by version, snapshot_id),
            sum(file_count) over (order by version, snapshot_id),
            max(last_file_creation_time) over (order by version, snapshot_id)
            from {self.files} where spec_id = 0 and partition = ?
            order by version, snapshot_id"""  # noqa: S608 - our own paths
        return [row[0] for row in self.connection.execute(statement, [partition]).fetchall()]


def run(workdir: Path, *, size: int, partitions: int, repeats: int) -> Report:
    root = workdir / f"statistics-answers-{os.getpid()}"
    shutil.copytree(lake_at(workdir, size, partitions), root)
    try:
        return _measured(root, size, partitions, repeats)
    finally:
        shutil.rmtree(root)


def _measured(root: Path, size: int, partitions: int, repeats: int) -> Report:
    table = ledger.open(str(root)).table(NAME)
    refresh(handle_of(table).log)
    kept, at = Kept.of(handle_of(table).log), table.at()
    duck = DuckTiles.of(root / handle_of(table).path / "_ledger" / "statistics")
    ours_all, duck_all, ours_one, duck_one = (Spent(time.process_time) for _ in range(4))
    shards = [str(each) for each in range(0, partitions, max(1, partitions // HISTORIES_AT_ONCE))]
    shards = [each for each in shards if duck.history(f"[{each}]")]
    found = _summary(duck.partitions())
    for _ in range(repeats):
        with ours_all.timed():
            shown = query.partitions(kept, at)
        with duck_all.timed():
            duck.partitions()
        with ours_one.timed():
            ours = [[t.record_count for t in query.growth(kept, at, {"shard": e})] for e in shards]
        with duck_one.timed():
            theirs = [duck.history(f"[{each}]") for each in shards]
        assert (len(shown), ours) == (found[0], theirs)
    assert _summary(query.partitions(kept, at)) == found
    command, command_cpu = _command(root)
    all_ratio = median(ours_all.cpu_s) / median(duck_all.cpu_s)
    one_ratio = median(ours_one.cpu_s) / median(duck_one.cpu_s)
    per_one = 1e3 / len(shards)
    return Report(
        question_of(__doc__),
        f"entries={size} partitions={found[0]} rows={found[1]}",
        (
            Figure("partitions(), processor time", median(ours_all.cpu_s) * 1e3, "ms"),
            Figure("DuckDB: the same sums", median(duck_all.cpu_s) * 1e3, "ms"),
            Figure("partitions() / DuckDB", all_ratio, "x", at_most=ALL_AT_MOST),
            Figure("history of a partition", median(ours_one.cpu_s) * per_one, "ms"),
            Figure("DuckDB: the same history", median(duck_one.cpu_s) * per_one, "ms"),
            Figure("history / DuckDB", one_ratio, "x", at_most=ONE_AT_MOST),
            Figure(f"lakeledger stats --limit {TOP}, by the clock", command, "s"),
            Figure("the same, processor time", command_cpu, "s"),
        ),
        (
            f"medians of {repeats}; DuckDB: one thread; load {os.getloadavg()[0]:.1f}",
            "the command includes the start of Python and the check for new commits",
        ),
    )


def _summary(partitions: pa.Table) -> list[int]:
    return [len(partitions), int(sum(partitions["record_count"].to_pylist()))]


def _command(root: Path) -> tuple[float, float]:
    """Return the wall-clock and the processor time of the command, in seconds."""
    words = ["stats", NAME, "--ledger", str(root), "--limit", str(TOP)]
    line = [sys.executable, "-m", "ledger", *words]
    env = {key: each for key, each in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    # The first run compiles the modules.
    subprocess.run(line, check=True, capture_output=True, env=env)
    before, start = os.times(), time.perf_counter()
    subprocess.run(line, check=True, capture_output=True, env=env)
    wall, after = time.perf_counter() - start, os.times()
    cpu = after.children_user - before.children_user
    return wall, cpu + after.children_system - before.children_system


def main(
    *,
    size: int = 1_000_000,
    partitions: int = 200_000,
    repeats: int = 9,
    workdir: Path = WORKDIR,
    output: Output = "text",
) -> None:
    """Answer questions from the statistics of a table of many partitions.

    Args:
        size: File changes.
        partitions: Number of partitions of the files.
        repeats: Number of repeats of each question, in turn.
        workdir: Folder of the ledger.
        output: text or json.
    """
    show(run(workdir, size=size, partitions=partitions, repeats=repeats), output)


if __name__ == "__main__":
    cyclopts.run(main)
