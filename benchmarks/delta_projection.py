"""Cost of projecting one more version to Delta, and its growth with the history.

A snapshot is committed to tables of different age, in turn, and only its projection is timed.
Versions with a checkpoint are reported separately: a checkpoint lists every live file, and the
larger it is, the rarer they are, so that its bytes per version are reported, too. There is no
fsync.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from statistics import median

import cyclopts

from benchmarks.measure import WORKDIR, Figure, Output, Report, question_of, show
from ledger import FileChange, Ledger, Schema, Table
from ledger.ledger_handle import LedgerHandle
from ledger.log.time_travel import head_state
from ledger.opening.context import TableSetting
from ledger.stores.local import Durability, LocalStore
from ledger.table_handle import handle_of
from projections.delta.materialise import project

MILLISECOND = 1e6
FLAT = 2.0
"""Maximum ratio of times without a checkpoint, longest history to shortest."""


def run(workdir: Path, *, sizes: tuple[int, ...], repeats: int) -> Report:
    workdir.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=workdir) as folder:
        tables = {size: _aged(Path(folder) / str(size), size) for size in sizes}
        plain: dict[int, list[int]] = {size: [] for size in sizes}
        listed: dict[int, list[int]] = {size: [] for size in sizes}
        for _ in range(repeats):
            for size, table in tables.items():
                taken, has_checkpoint = _one_more(table)
                (listed if has_checkpoint else plain)[size].append(taken)
        figures = [*_figures(plain, listed), *_bytes(tables, repeats)]
        shortest, longest = (median(plain[each] or [1]) for each in (min(sizes), max(sizes)))
        figures.append(Figure("one more, long / short", longest / shortest, "x", at_most=FLAT))
    return Report(question_of(__doc__), f"versions={list(sizes)}", tuple(figures))


def _aged(folder: Path, snapshots: int) -> Table:
    store = LocalStore(str(folder), durable=Durability.NONE)
    lake = Ledger(LedgerHandle(TableSetting(store=store, storage_options={}, author="bench")))
    lake.create_database("bench")
    schema = Schema.of({"id": "BIGINT"}, options={"ledger.formats": "delta"})
    table = lake.create_table("bench.t", schema)
    for _ in range(snapshots):
        _append(table)
    project(handle_of(table))
    return table


def _append(table: Table) -> None:
    number = head_state(handle_of(table).log).last_snapshot_id
    table.append([FileChange(path=f"{number}.parquet", record_count=10, file_size_in_bytes=1000)])


def _one_more(table: Table) -> tuple[int, bool]:
    """Return the duration of one projection, and whether it writes a checkpoint."""
    _append(table)
    before = len(_checkpoints(table))
    start = time.perf_counter_ns()
    project(handle_of(table))
    return time.perf_counter_ns() - start, len(_checkpoints(table)) > before


def _checkpoints(table: Table) -> list[Path]:
    folder = Path(table.location.removeprefix("file://"))
    return sorted((folder / "_delta_log").glob("*.checkpoint.parquet"))


def _figures(plain: dict[int, list[int]], listed: dict[int, list[int]]) -> list[Figure]:
    said = (("one more", plain), ("one more with a checkpoint", listed))
    return [
        Figure(f"{what} at {size}", median(times) / MILLISECOND, "ms")
        for what, samples in said
        for size, times in samples.items()
        if times
    ]


def _bytes(tables: dict[int, Table], repeats: int) -> list[Figure]:
    figures = []
    for size, table in tables.items():
        found = _checkpoints(table)
        if not found:
            continue
        kilobytes = found[-1].stat().st_size / 1000
        figures.append(Figure(f"the newest checkpoint at {size}", kilobytes, "kB"))
        each = sum(path.stat().st_size for path in found) / 1000 / (size + repeats)
        figures.append(Figure(f"checkpoints for each version at {size}", each, "kB"))
    return figures


def main(
    *,
    sizes: tuple[int, ...] = (10, 1_000, 10_000),
    repeats: int = 110,
    workdir: Path = WORKDIR,
    output: Output = "text",
) -> None:
    """Print the figures."""
    show(run(workdir, sizes=sizes, repeats=repeats), output)


if __name__ == "__main__":
    cyclopts.run(main)
