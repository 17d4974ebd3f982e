"""Processor time of commits to a table after one commit that added many files.

A first commit adds the files. A fresh handle removes files one by one, a hundred appends of one
file follow, then removals of one file each: by the handle that committed before, and by one that
opens the table for it. At last ten files are overwritten by a filter, and then all. Each number
of files is compared with the smallest. Caches of the first hundred commits are saved after the
appends, and their time is a figure of its own. PyArrow's readers are loaded before.
"""

from __future__ import annotations

import resource
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from statistics import median
from uuid import UUID

import cyclopts

# Loaded, as in any process that reads Parquet: the first use would be timed otherwise.
import pyarrow.compute
import pyarrow.parquet  # noqa: F401
from attrs import frozen

import ledger
from benchmarks.measure import WORKDIR, Figure, Output, Report, question_of, show
from ledger import FileChange, Ledger, Table
from ledger.table_handle import handle_of

APPENDS = 100
REMOVALS = 5
OVERWRITTEN = 10
NAME = "bench.wide"

APPEND_AT_MOST = 1.5
SLOWEST_AT_MOST = 20.0
WARM_AT_MOST = 5.0
FRESH_AT_MOST = 10.0
WIDE_AT_MOST_US = 20.0
"""A commit of 100,000 files in two seconds."""
WIDE_AT_MOST_BYTES = 2_000.0
"""A commit of 100,000 files in 200 MB."""
FEW = 1_000
"""Number of files up to which the fixed costs of a commit are most of it."""


@frozen
class Measured:
    """Processor times after a commit of some files, in milliseconds, and its memory in bytes."""

    files: int
    wide: float
    memory: float
    append: float
    slowest: float
    caches: float
    warm: float
    early: float
    fresh: float
    some: float
    every: float


def run(workdir: Path, *, sizes: tuple[int, ...]) -> Report:
    found = [_measured(workdir / f"wide-{size}", size) for size in sizes]
    small = found[0]
    figures = []
    for each in found:
        at = f"after a commit of {each.files:,} files"
        figures += [
            Figure(f"the commit of {each.files:,} files", each.wide, "ms"),
            Figure(f"append {at}, median", each.append, "ms"),
            Figure(f"caches of {APPENDS} commits {at}", each.caches, "ms"),
            Figure(f"removal {at}, the same handle", each.warm, "ms"),
            Figure(f"removal {at}, a fresh handle at once", each.early, "ms"),
            Figure(f"removal {at}, a fresh handle", each.fresh, "ms"),
            Figure(
                f"overwrite of {OVERWRITTEN} of {each.files:,} files by a filter", each.some, "ms"
            ),
            Figure(f"overwrite of all {each.files:,} files", each.every, "ms"),
        ]
        if each.files > FEW:
            figures += _by_file(each)
        if each is small:
            figures.append(
                Figure(f"slowest of {APPENDS} / median", each.slowest / each.append, "x")
            )
        else:
            figures += _compared(each, small)
    return Report(
        question_of(__doc__),
        " ".join(f"{each.files}" for each in found),
        tuple(figures),
        (f"{APPENDS} appends, medians of {REMOVALS} removals, one run",),
    )


def _by_file(each: Measured) -> list[Figure]:
    what = f"the commit of {each.files:,} files, by file"
    return [
        Figure(what, each.wide * 1_000 / each.files, "us", at_most=WIDE_AT_MOST_US),
        Figure(what, each.memory / each.files, "bytes", at_most=WIDE_AT_MOST_BYTES),
        Figure(
            f"overwrite of all {each.files:,} files / their commit",
            each.every / each.wide,
            "x",
        ),
    ]


def _compared(each: Measured, small: Measured) -> list[Figure]:
    what = f"{each.files:,} / {small.files:,}"
    slowest = f"slowest of {APPENDS} / median, after a commit of {each.files:,} files"
    early = f"removal by a fresh handle at once, {what}"
    return [
        Figure(slowest, each.slowest / each.append, "x", at_most=SLOWEST_AT_MOST),
        Figure(f"append, {what}", each.append / small.append, "x", at_most=APPEND_AT_MOST),
        Figure(f"removal, {what}", each.warm / small.warm, "x", at_most=WARM_AT_MOST),
        Figure(early, each.early / small.early, "x", at_most=FRESH_AT_MOST),
        Figure(
            f"removal by a fresh handle, {what}",
            each.fresh / small.fresh,
            "x",
            at_most=FRESH_AT_MOST,
        ),
        Figure(f"overwrite of {OVERWRITTEN} files, {what}", each.some / small.some, "x"),
    ]


def _measured(root: Path, size: int) -> Measured:
    shutil.rmtree(root, ignore_errors=True)
    try:
        lake = _lake_at(root)
        table = lake.table(NAME)
        numbers = Random(size)  # noqa: S311 - names of files
        files = [
            _file(f"data/{UUID(int=numbers.getrandbits(128))}.parquet", each // OVERWRITTEN)
            for each in range(size)
        ]
        before = _peak_bytes()
        wide = _spent_ms(lambda: table.append(files))
        memory = _peak_bytes() - before
        removals = iter(files[OVERWRITTEN:])
        early = [_remove_afresh(root, next(removals).path) for _ in range(REMOVALS)]
        appends = [_append(table, number) for number in range(APPENDS)]
        caches = _spent_ms(handle_of(table).log.wait_for_caches)
        warm = [_remove(table, next(removals).path) for _ in range(REMOVALS)]
        fresh = [_remove_afresh(root, next(removals).path) for _ in range(REMOVALS)]
        assert table.at().totals.file_count == size + APPENDS - 3 * REMOVALS
        come = [_file("data/come.parquet", 0)]
        some = _spent_ms(lambda: table.overwrite(come, where={"day": 0}))
        assert table.at().totals.file_count == size - OVERWRITTEN + APPENDS - 3 * REMOVALS + 1
        every = _spent_ms(lambda: table.overwrite([_file("data/last.parquet", 0)]))
        # Caches are saved before the folder is removed.
        lake.close()
        return Measured(
            size,
            wide,
            memory,
            median(appends),
            max(appends),
            caches,
            median(warm),
            median(early),
            median(fresh),
            some,
            every,
        )
    finally:
        shutil.rmtree(root, ignore_errors=True)


def _lake_at(root: Path) -> Ledger:
    lake = ledger.open(str(root), author="bench")
    lake.create_database("bench")
    columns = {"id": "BIGINT", "day": "INT"}
    lake.create_table(NAME, ledger.Schema.of(columns, partition_keys=["day"]))
    return lake


def _file(path: str, day: int) -> FileChange:
    return FileChange(path=path, partition=(day,), record_count=10, file_size_in_bytes=1_000)


def _append(table: Table, number: int) -> float:
    return _spent_ms(lambda: table.append([_file(f"small/{number}.parquet", -1)]))


def _remove(table: Table, path: str) -> float:
    return _spent_ms(lambda: table.delete_files([path]))


def _remove_afresh(root: Path, path: str) -> float:
    lake = ledger.open(str(root))
    found = _spent_ms(lambda: lake.table(NAME).delete_files([path]))
    lake.close()
    return found


def _peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1_024


def _spent_ms(act: Callable[[], object]) -> float:
    begun = time.process_time_ns()
    act()
    return (time.process_time_ns() - begun) / 1e6


def main(
    *,
    sizes: tuple[int, ...] = (100, 1_000, 10_000, 100_000),
    workdir: Path = WORKDIR,
    output: Output = "text",
) -> None:
    """Commit many files at once, then few.

    Args:
        sizes: Numbers of files; the others are compared with the first.
        workdir: Folder of the ledgers.
        output: text or json.
    """
    show(run(workdir, sizes=sizes), output)


if __name__ == "__main__":
    cyclopts.run(main)
