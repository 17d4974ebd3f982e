"""Time to refresh statistics after a thousand new entries, by size of the table.

All statistics of a large and of a small table are kept before; `benchmarks.statistics_spark`
measures that. Then commits of a thousand new entries follow, and each time they are refreshed.
"""

from __future__ import annotations

import itertools
import os
import shutil
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from statistics import median

import cyclopts
import numpy as np
import pyarrow as pa
from attrs import define, field
from msgspec import UNSET, Raw
from msgspec import json as msgspec_json

import ledger
from benchmarks.measure import (
    WORKDIR,
    Figure,
    Output,
    Report,
    question_of,
    show,
    waited_for_core_ns,
)
from ledger.events import TableEvent
from ledger.events.commit import FORMAT, Commit, Transaction
from ledger.events.snapshots import NO_FILES, ChangesReference, SnapshotCommitted
from ledger.files.change_lists import table_to_parquet, to_table
from ledger.log.codec import digest, encode
from ledger.model.file_change import FileChange
from ledger.table_handle import handle_of
from projections.statistics import Kept, query, refresh

SEED = 42
START_MILLIS = 1_700_000_000_000
NAME = "bench.files"
ENTRIES_A_COMMIT = 2_000
NEW_ENTRIES = 1_000
REFRESH_AT_MOST_MS = 15
COMPARED_WITH = 1_000_000
"""Size of the table for comparison of refreshes, unless a quarter of the size is less."""
GROWS_AT_MOST = 1.5


class Lists:
    """Generator of lists of file changes, one in ten a deletion, column by column."""

    def __init__(self, partitions: int, count: int = ENTRIES_A_COMMIT) -> None:
        self._count = count
        self._rng = np.random.default_rng(SEED)
        self._partitions = partitions
        self._before: pa.Table | None = None
        one = FileChange(path="f", partition=(0,), record_count=0, file_size_in_bytes=0)
        self._template = to_table([one]).take(np.zeros(count, np.int64))

    def table(self) -> pa.Table:
        """Return one commit's list."""
        count = self._count
        numbers = self._rng.integers(0, self._partitions, count)
        records = self._rng.integers(1, 100_000, count)
        columns = {
            "path": pa.array(
                [f"data-{each:x}.parquet" for each in self._rng.integers(0, 2**62, count)]
            ),
            "partition": pa.array([[str(each)] for each in numbers], pa.list_(pa.string())),
            "record_count": pa.array(records),
            "file_size_in_bytes": pa.array(records * 97),
            "creation_time": pa.array(START_MILLIS + self._rng.integers(0, 10**9, count)),
        }
        table = self._template
        for name, values in columns.items():
            table = table.set_column(table.schema.get_field_index(name), name, values)
        before, self._before = self._before, table
        if before is None:
            return table
        gone = before.slice(0, count // 10)
        kinds = pa.array(["DELETE"] * len(gone))
        gone = gone.set_column(gone.schema.get_field_index("kind"), "kind", kinds)
        return pa.concat_tables([gone, table.slice(len(gone))])


def lake_at(workdir: Path, entries: int, partitions: int) -> Path:
    """Return a ledger whose table `NAME` has some entries; built once, to be copied."""
    lake = workdir / f"statistics-{entries}-{partitions}"
    if not lake.exists():
        workdir.mkdir(parents=True, exist_ok=True)
        draft = workdir / f".building-{os.getpid()}-{lake.name}"
        _build(draft, entries // ENTRIES_A_COMMIT, partitions)
        draft.rename(lake)
    return lake


def _build(root: Path, commits: int, partitions: int) -> None:
    ticks = itertools.count(START_MILLIS, 1000)
    lake = ledger.open(str(root), author="bench", clock=lambda: next(ticks))
    lake.create_database("bench")
    schema = ledger.Schema.of({"id": "BIGINT", "shard": "INT"}, partition_keys=["shard"])
    table = lake.create_table(NAME, schema)
    lists = Lists(partitions)
    head = handle_of(table).log.head
    parent = head.digest if head else ""
    folder = root / handle_of(table).path / "_ledger"
    (folder / "changes").mkdir()
    for version in range(1, commits + 1):
        body = table_to_parquet(lists.table().replace_schema_metadata(lists_metadata()))
        sha256 = digest(body).removeprefix("sha256:")
        name = f"{START_MILLIS:013d}-{sha256}.parquet"
        (folder / "changes" / name).write_bytes(body)
        reference = ChangesReference(f"changes/{name}", sha256, ENTRIES_A_COMMIT)
        commit = commit_of(snapshot(version, reference), version, parent)
        encoded = encode(commit)
        (root / handle_of(table).log.layout.commit(version)).write_bytes(encoded)
        parent = digest(encoded)


def lists_metadata() -> dict[bytes, bytes]:
    metadata: dict[bytes, bytes] = to_table([]).schema.metadata
    return metadata


def snapshot(
    snapshot_id: int, reference: ChangesReference | None, files: Raw = NO_FILES
) -> SnapshotCommitted:
    return SnapshotCommitted(
        snapshot_id=snapshot_id,
        schema_id=0,
        commit_user="bench",
        commit_kind="APPEND",
        total_record_count=0,
        delta_record_count=0,
        changes=UNSET if reference is None else reference,
        files=files,
    )


def commit_of(event: SnapshotCommitted, version: int, parent: str) -> Commit[TableEvent]:
    facts: tuple[TableEvent, ...] = (event,)
    unique = f"00000000-0000-7000-8000-{version:012d}"
    return Commit(
        format=FORMAT,
        version=version,
        time_millis=START_MILLIS + 10**6 + version * 1000,
        parent=parent,
        transactions=(Transaction(asked="", id=unique, author="bench", events=facts),),
    )


def new_commits(root: Path, partitions: int) -> Iterator[None]:
    """Append commits of a thousand entries without end, as another process would."""
    rng = np.random.default_rng(SEED + 1)
    table = ledger.open(str(root)).table(NAME)
    while True:
        handle_of(table).log.refresh()
        head = handle_of(table).log.head
        assert head is not None
        version = head.state.version + 1
        files = [
            FileChange(
                path=f"new-{version}-{nth}.parquet",
                partition=(int(shard),),
                record_count=10,
                file_size_in_bytes=970,
                creation_time=START_MILLIS,
            )
            for nth, shard in enumerate(rng.integers(0, partitions, NEW_ENTRIES))
        ]
        event = snapshot(version, None, Raw(msgspec_json.encode(files, order="deterministic")))
        commit = commit_of(event, version, head.digest)
        (root / handle_of(table).log.layout.commit(version)).write_bytes(encode(commit))
        yield


def smaller(size: int) -> int:
    return min(size // 4, COMPARED_WITH)


def run(workdir: Path, *, size: int, partitions: int, repeats: int) -> Report:
    root = workdir / f"statistics-at-work-{os.getpid()}"
    small = root.with_name(f"{root.name}-small")
    shutil.copytree(lake_at(workdir, size, partitions), root)
    shutil.copytree(lake_at(workdir, smaller(size), partitions), small)
    try:
        return _measured(root, small, size, repeats)
    finally:
        shutil.rmtree(root)
        shutil.rmtree(small)


def _measured(root: Path, small: Path, size: int, repeats: int) -> Report:
    tables = [ledger.open(str(each)).table(NAME) for each in (root, small)]
    for table in tables:
        refresh(handle_of(table).log)
    rows = query.partition_sums(Kept.of(handle_of(tables[0]).log), tables[0].state)
    refreshes, compared = _refreshes_in_turn(root, small, repeats)
    return Report(
        question_of(__doc__),
        f"entries={size} partitions={len(rows)} files={sum(rows['file_count'].to_pylist())}",
        (
            Figure(
                f"refresh after {NEW_ENTRIES:,} new entries, median",
                median(refreshes.own_ns) / 1e6,
                "ms",
                at_most=REFRESH_AT_MOST_MS,
            ),
            Figure("the same, processor time", median(refreshes.cpu_ns) / 1e6, "ms"),
            Figure("the same, and waiting for a core", median(refreshes.wall_ns) / 1e6, "ms"),
            Figure("refresh, the longest (a block merges)", max(refreshes.own_ns) / 1e6, "ms"),
            Figure(
                f"refresh / refresh at {smaller(size):,} entries",
                median(refreshes.own_ns) / median(compared.own_ns),
                "x",
                at_most=GROWS_AT_MOST,
            ),
            Figure(
                "the same, processor time", median(refreshes.cpu_ns) / median(compared.cpu_ns), "x"
            ),
        ),
        (f"{repeats} commits of {NEW_ENTRIES:,} new entries",),
    )


@define
class Refreshes:
    """Durations of the refreshes of one table, in nanoseconds."""

    wall_ns: list[int] = field(factory=list)
    own_ns: list[int] = field(factory=list)
    """Without the time spent waiting for a core: the wall-clock time on an idle machine."""
    cpu_ns: list[int] = field(factory=list)

    def add(self, work: Callable[[], object]) -> None:
        """Time one refresh."""
        waited, cpu, start = waited_for_core_ns(), time.process_time_ns(), time.perf_counter_ns()
        work()
        self.wall_ns.append(time.perf_counter_ns() - start)
        self.cpu_ns.append(time.process_time_ns() - cpu)
        self.own_ns.append(self.wall_ns[-1] - (waited_for_core_ns() - waited))


def _refreshes_in_turn(root: Path, small: Path, repeats: int) -> tuple[Refreshes, Refreshes]:
    """Time refreshes of two tables in turn, so that both meet the same disturbances."""
    tables = [ledger.open(str(each)).table(NAME) for each in (root, small)]
    partitions = len(query.partition_sums(Kept.of(handle_of(tables[0]).log), tables[0].state))
    commits = [new_commits(each, partitions) for each in (root, small)]
    found = Refreshes(), Refreshes()
    for table in tables:
        refresh(handle_of(table).log)
    for _ in range(repeats):
        for table, more, mine in zip(tables, commits, found, strict=True):
            next(more)
            mine.add(partial(refresh, handle_of(table).log))
    return found


def main(
    *,
    size: int = 1_000_000,
    partitions: int = 50_000,
    repeats: int = 64,
    workdir: Path = WORKDIR,
    output: Output = "text",
) -> None:
    """Refresh the statistics of a table of many files.

    Args:
        size: File changes.
        partitions: Number of partitions of the files.
        repeats: Number of commits of a thousand new entries; 64 cover every kind of merge.
        workdir: Folder of the ledger.
        output: text or json.
    """
    show(run(workdir, size=size, partitions=partitions, repeats=repeats), output)


if __name__ == "__main__":
    cyclopts.run(main)
