"""Processor time of commits to a table after one commit that added many files.

A first commit adds the files. A hundred appends of one file follow, then removals of one file each:
by the handle that committed before, and by one that has just opened the table. Each number of files
is compared with the smallest. PyArrow's readers are loaded before.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path
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

APPENDS = 100
REMOVALS = 5
NAME = "bench.wide"

APPEND_AT_MOST = 1.5
SLOWEST_AT_MOST = 20.0
WARM_AT_MOST = 5.0
FRESH_AT_MOST = 10.0


@frozen
class Measured:
    """Processor times after a commit of some files, in milliseconds."""

    files: int
    wide: float
    append: float
    slowest: float
    warm: float
    fresh: float


def run(workdir: Path, *, sizes: tuple[int, ...]) -> Report:
    found = [_measured(workdir / f"wide-{size}", size) for size in sizes]
    small = found[0]
    figures = []
    for each in found:
        at = f"after a commit of {each.files:,} files"
        figures += [
            Figure(f"the commit of {each.files:,} files", each.wide, "ms"),
            Figure(f"append {at}, median", each.append, "ms"),
            Figure(f"slowest of {APPENDS} / median", each.slowest / each.append, "x")
            if each is small
            else Figure(
                f"slowest of {APPENDS} / median, {at}",
                each.slowest / each.append,
                "x",
                at_most=SLOWEST_AT_MOST,
            ),
            Figure(f"removal {at}, the same handle", each.warm, "ms"),
            Figure(f"removal {at}, a fresh handle", each.fresh, "ms"),
        ]
        if each is not small:
            what = f"{each.files:,} / {small.files:,}"
            figures += [
                Figure(f"append, {what}", each.append / small.append, "x", at_most=APPEND_AT_MOST),
                Figure(f"removal, {what}", each.warm / small.warm, "x", at_most=WARM_AT_MOST),
                Figure(
                    f"removal by a fresh handle, {what}",
                    each.fresh / small.fresh,
                    "x",
                    at_most=FRESH_AT_MOST,
                ),
            ]
    return Report(
        question_of(__doc__),
        " ".join(f"{each.files}" for each in found),
        tuple(figures),
        (f"{APPENDS} appends, medians of {REMOVALS} removals, one run",),
    )


def _measured(root: Path, size: int) -> Measured:
    shutil.rmtree(root, ignore_errors=True)
    try:
        lake = _lake_at(root)
        table = lake.table(NAME)
        files = [_file(f"data/{UUID(int=each)}.parquet") for each in range(size)]
        wide = _spent_ms(lambda: table.append(files))
        appends = [_append(table, number) for number in range(APPENDS)]
        removals = iter(files)
        warm = [_remove(table, next(removals).path) for _ in range(REMOVALS)]
        fresh = []
        for _ in range(REMOVALS):
            again = ledger.open(str(root))
            fresh.append(_remove(again.table(NAME), next(removals).path))
            again.close()
        # Caches are saved before the folder is removed.
        lake.close()
        assert table.at().totals.file_count == size + APPENDS - 2 * REMOVALS
        return Measured(size, wide, median(appends), max(appends), median(warm), median(fresh))
    finally:
        shutil.rmtree(root, ignore_errors=True)


def _lake_at(root: Path) -> Ledger:
    lake = ledger.open(str(root), author="bench")
    lake.create_database("bench")
    lake.create_table(NAME, ledger.Schema.of({"id": "BIGINT"}))
    return lake


def _file(path: str) -> FileChange:
    return FileChange(path=path, record_count=10, file_size_in_bytes=1_000)


def _append(table: Table, number: int) -> float:
    return _spent_ms(lambda: table.append([_file(f"small/{number}.parquet")]))


def _remove(table: Table, path: str) -> float:
    return _spent_ms(lambda: table.delete_files([path]))


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
