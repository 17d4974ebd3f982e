"""Growth of the cost of opening, creating and renaming tables with the number of tables.

Each size is a ledger of its own, built table by table, the largest by `create_tables`. Renames then
bring each to 50 commits after a checkpoint, so that all have as much to read after it. Times are
processor time, medians of repeats in turn, on a disk without fsync.
"""

from __future__ import annotations

import itertools
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Final

import cyclopts

import ledger
from benchmarks.measure import WORKDIR, Figure, Output, Report, many_in_turn, question_of, show
from ledger import Schema
from ledger.log.layout import CHECKPOINT_INTERVAL

SIZES: Final = (10, 1_000, 10_000)

OPENED_AT_MOST: Final = 1.5
"""Bound of each cost, up to 10,000 tables, to that of the smallest size."""

HUGE_AT_MOST: Final = 3.0
"""The same of 100,000 tables."""

BUILT_AT_LEAST: Final = 200.0
"""Tables a second, built one by one."""

_HUGE: Final = 100_000
_AT_ONCE: Final = 200
_AFTER_CHECKPOINT: Final = 50
_SCHEMA: Final = Schema.of({"id": "BIGINT", "day": "DATE"})

_OPEN: Final = "open a ledger and a table"
_FRESH: Final = "create a table by a fresh handle"
_WARM: Final = "create a table by the same handle"
_RENAME: Final = "rename a table"


class _Lake:
    """A ledger of some tables, and its measured operations."""

    def __init__(self, root: Path, size: int) -> None:
        self.size = size
        self._root = str(root)
        self.lake = ledger.open(self._root, author="bench")
        self.lake.create_database("shop")
        begun = time.perf_counter()
        if size < _HUGE:
            for number in range(size):
                self.lake.create_table(_name("t", number), _SCHEMA)
        else:
            for first in range(0, size, _AT_ONCE):
                numbers = range(first, min(size, first + _AT_ONCE))
                self.lake.create_tables({_name("t", each): _SCHEMA for each in numbers})
        self.built_a_second = size / (time.perf_counter() - begun)
        self._renamed = itertools.count()
        while self.lake.state.version % CHECKPOINT_INTERVAL != _AFTER_CHECKPOINT:
            self.rename(0)
        self.lake.close()

    def open(self, number: int) -> None:
        """Open the ledger and one of its tables."""
        again = ledger.open(self._root)
        # Tables beyond those that renames reach.
        again.table(_name("t", self.size - 1 - number % 3))

    def create(self, number: int) -> None:
        """Create a table."""
        self.lake.create_table(_name("warm", number), _SCHEMA)

    def create_fresh(self, number: int) -> None:
        """Open the ledger and create a table."""
        ledger.open(self._root, author="bench").create_table(_name("fresh", number), _SCHEMA)

    def rename(self, _number: int) -> None:
        """Rename a table, and back at the next call of those that are few."""
        number = next(self._renamed)
        at, is_back = number // 2 % (self.size - 3), number % 2
        names = _name("t", at), _name("renamed", at)
        self.lake.rename_table(*(reversed(names) if is_back else names))


def _name(kind: str, number: int) -> str:
    return f"shop.{kind}{number + 1:06d}"


def run(workdir: Path, *, sizes: tuple[int, ...] = SIZES, repeats: int = 9) -> Report:
    workdir.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=workdir) as folder:
        lakes = [_Lake(Path(folder) / f"{size}", size) for size in sizes]
        operations: dict[str, Callable[[_Lake, int], None]] = {
            _OPEN: _Lake.open,
            _RENAME: _Lake.rename,
            _WARM: _Lake.create,
            _FRESH: _Lake.create_fresh,
        }
        figures = [*_built(lakes)]
        for name, operation in operations.items():
            cases = {str(each.size): partial(operation, each) for each in lakes}
            took = many_in_turn(cases, repeats, time.process_time_ns)
            figures += _compared(name, {size: took[str(size)].median_ns for size in sizes})
        landed = [len(each.lake.tables()) for each in lakes]
        for each in lakes:
            each.lake.close()
    return Report(question_of(__doc__), f"tables={landed}", tuple(figures))


def _built(lakes: list[_Lake]) -> Iterator[Figure]:
    # The first ledger's time is that of imports.
    for each in lakes[1:]:
        how = "one by one" if each.size < _HUGE else f"{_AT_ONCE} in a commit"
        name = f"build {each.size:,} tables {how}"
        yield Figure(name, each.built_a_second, "tables/s", at_least=BUILT_AT_LEAST)


def _compared(name: str, took_ns: dict[int, float]) -> Iterator[Figure]:
    smallest = next(iter(took_ns))
    for size, took in took_ns.items():
        yield Figure(f"{name}, of {size:,}", took / 1e6, "ms")
        if size != smallest:
            bound = OPENED_AT_MOST if size < _HUGE else HUGE_AT_MOST
            ratio = took / took_ns[smallest]
            yield Figure(f"{name}, {size:,} / {smallest:,}", ratio, "x", at_most=bound)


def main(*, largest: int = SIZES[-1], workdir: Path = WORKDIR, output: Output = "text") -> None:
    """Open, create and rename tables in ledgers of several sizes.

    Args:
        largest: The largest number of tables, such as 100,000.
        workdir: Folder of the ledgers.
        output: text or json.
    """
    show(run(workdir, sizes=tuple(sorted({*SIZES, largest}))), output)


if __name__ == "__main__":
    cyclopts.run(main)
