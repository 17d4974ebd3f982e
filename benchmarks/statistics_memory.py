"""Peak memory of a worker that counts wide commits.

Each case is a table whose commits list some number of files. A process of its own, as a task of
Spark has one, counts all of them as one share and writes their tiles. Its peak is that of the
process, libraries included; all commits of a table name one list, which is written once.
"""

from __future__ import annotations

import itertools
import shutil
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import cyclopts

import ledger
from benchmarks.measure import WORKDIR, Figure, Output, Report, question_of, show
from benchmarks.statistics_refresh import (
    NAME,
    START_MILLIS,
    Lists,
    commit_of,
    lists_metadata,
    snapshot,
)
from ledger.events.snapshots import ChangesReference
from ledger.files.change_lists import table_to_parquet
from ledger.log.codec import digest, encode
from ledger.table_handle import handle_of
from projections.statistics import Kept, query
from projections.statistics.materialise import refresh_range
from projections.statistics.spark_source import LogSource

AT_MOST_MB = 1_000
CASES = ((2_000, 512), (8_000, 512), (100_000, 64), (1_000_000, 64))
"""Numbers of entries of a commit, and of commits."""


def run(workdir: Path, *, cases: Sequence[tuple[int, int]], partitions: int) -> Report:
    figures = []
    counted = []
    for entries, commits in cases:
        root = _lake(workdir, entries, commits, partitions)
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            before_mb, peak_mb, wall_s, count = pool.submit(_count, str(root)).result()
        shutil.rmtree(root)
        assert count == entries * commits
        counted.append(count)
        name = f"{commits:,} commits of {entries:,} entries"
        figures += [
            Figure(f"{name}: peak", peak_mb, "MB", at_most=AT_MOST_MB),
            Figure(f"{name}: of it before", before_mb, "MB"),
            Figure(f"{name}: a million entries", wall_s / count * 1e6, "s"),
        ]
    return Report(
        question_of(__doc__),
        f"partitions={partitions} entries={counted}",
        tuple(figures),
        ("a process is started for each case",),
    )


def _count(root: str) -> tuple[float, float, float, int]:
    """Return the process's memory before and at its peak in MB, seconds, and the files counted."""
    table = ledger.open(root).table(NAME)
    log = LogSource.of(table).log()
    log.refresh()
    before_mb, start_s = _most_mb(), time.perf_counter()
    refresh_range(log, Kept.of(log), 0, table.state.version)
    wall_s, peak_mb = time.perf_counter() - start_s, _most_mb()
    counted = query.totals(Kept.of(handle_of(table).log), table.at())[-1].file_count
    return before_mb, peak_mb, wall_s, counted


def _most_mb() -> float:
    # Unlike that of getrusage, not inherited from the process that started this one.
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1e3


def _lake(workdir: Path, entries: int, commits: int, partitions: int) -> Path:
    root = workdir / f"statistics-memory-{entries}-{commits}"
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir(parents=True)
    ticks = itertools.count(START_MILLIS, 1000)
    lake = ledger.open(str(root), author="bench", clock=lambda: next(ticks))
    lake.create_database("bench")
    schema = ledger.Schema.of({"id": "BIGINT", "shard": "INT"}, partition_keys=["shard"])
    table = lake.create_table(NAME, schema)
    head = handle_of(table).log.head
    parent = head.digest if head else ""
    folder = root / handle_of(table).path / "_ledger" / "changes"
    folder.mkdir()
    rows = Lists(partitions, entries).table()
    body = table_to_parquet(rows.replace_schema_metadata(lists_metadata()))
    sha256 = digest(body).removeprefix("sha256:")
    name = f"{START_MILLIS:013d}-{sha256}.parquet"
    (folder / name).write_bytes(body)
    reference = ChangesReference(f"changes/{name}", sha256, entries)
    for version in range(1, commits + 1):
        encoded = encode(commit_of(snapshot(version, reference), version, parent))
        (root / handle_of(table).log.layout.commit(version)).write_bytes(encoded)
        parent = digest(encoded)
    return root


def main(
    *,
    partitions: int = 50_000,
    widest: int = 1_000_000,
    workdir: Path = WORKDIR,
    output: Output = "text",
) -> None:
    """Measure the memory of a worker that counts wide commits.

    Args:
        partitions: Number of partitions of the files.
        widest: Entries of the widest commits; cases beyond are left out.
        workdir: Folder of the ledgers.
        output: text or json.
    """
    cases = [each for each in CASES if each[0] <= widest]
    show(run(workdir, cases=cases, partitions=partitions), output)


if __name__ == "__main__":
    cyclopts.run(main)
