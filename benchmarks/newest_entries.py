"""Time of the newest entries of all tables, and its growth with the number of tables.

Ledgers with 10, 1,000 and 10,000 tables lie on a local disk; ten of the tables have a commit of
their own. The ten newest entries are read from an open handle, from a new handle of the same
process, and by `lakeledger log --all --limit 10`; `lakeledger ls` lists the tables. The probes of
all tables for a newer commit are timed alone: an exact answer needs them. Processor time.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from pathlib import Path

import cyclopts

from benchmarks.measure import (
    WORKDIR,
    Figure,
    Output,
    Report,
    in_turn,
    processor_ns,
    question_of,
    show,
)
from ledger import Ledger
from ledger import open as open_ledger
from ledger.audit.entries import Entry
from ledger.stores.local import LocalStore
from tests.projections.source.many_tables import ManyTables

NEWEST = 10
COMMITTED = 10
TIMES_SMALLEST = 2.0
ROOT = Path(__file__).parent.parent


def run(folder: Path, sizes: Sequence[int], *, repeats: int) -> Report:
    folders = {size: _ledger(folder / str(size), size) for size in sizes}
    lakes = {size: open_ledger(each) for size, each in folders.items()}
    newest = {size: [each.version for each in _newest(lake)] for size, lake in lakes.items()}
    figures = [*_in_process(folders, lakes, repeats), *_commands(folders, min(repeats, 3))]
    return Report(question_of(__doc__), f"versions={newest}", tuple(figures))


def _ledger(folder: Path, size: int) -> Path:
    """Return the folder of a ledger with some tables, of which a few have further commits."""
    many = ManyTables.of(size)
    for number in range(COMMITTED):
        many.commit(number * size // COMMITTED)
    many.settle()
    for key in many.store.inner.keys(""):
        path = folder / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(many.store.inner.read(key) or b"")
    return folder


def _newest(lake: Ledger) -> list[Entry]:
    return [*islice(lake.entries(), NEWEST)]


def _in_process(
    folders: dict[int, Path], lakes: dict[int, Ledger], repeats: int
) -> Iterator[Figure]:
    warm = _timed({size: partial(_newest, lake) for size, lake in lakes.items()}, repeats)
    probes = _timed({size: partial(_probe, at, size) for size, at in folders.items()}, repeats)
    smallest = min(lakes)
    for size in lakes:
        yield Figure(f"{size:,} tables: open handle", warm[size], "ms")
        yield Figure(f"{size:,} tables: probes alone", probes[size], "ms")
        if size != smallest:
            name = f"open handle, {size:,} tables / {smallest:,}"
            yield Figure(name, warm[size] / warm[smallest], "x", at_most=TIMES_SMALLEST)
    for size, folder in folders.items():
        others = [open_ledger(folder) for _ in range(repeats + 1)]
        for each in others:
            # Reading the catalog's state is another figure.
            each.databases()
        read = partial(_newest_of_next, iter(others))
        yield Figure(f"{size:,} tables: new handle", _timed({size: read}, repeats)[size], "ms")


def _newest_of_next(lakes: Iterator[Ledger]) -> list[Entry]:
    return _newest(next(lakes))


def _probe(folder: Path, size: int) -> None:
    store = LocalStore(folder)
    for number in range(size):
        store.exists(f"many.db/t{number}/_ledger/log/{2:020d}.json")


def _timed(cases: Mapping[int, Callable[[], object]], repeats: int) -> dict[int, float]:
    """Return the shortest time of each case, in milliseconds."""
    named = {str(size): case for size, case in cases.items()}
    times = in_turn(named, repeats, processor_ns)
    return {size: times[str(size)].minimum_ns / 1e6 for size in cases}


def _commands(folders: dict[int, Path], repeats: int) -> Iterator[Figure]:
    for words in (["log", "--all", "--limit", str(NEWEST)], ["ls"]):
        times = _timed({size: partial(_run, at, words) for size, at in folders.items()}, repeats)
        for size, took_ms in times.items():
            yield Figure(f"{size:,} tables: lakeledger {' '.join(words)}", took_ms, "ms")


def _run(folder: Path, words: Sequence[str]) -> None:
    command = [sys.executable, "-m", "ledger", *words, "--ledger", str(folder)]
    subprocess.run(command, cwd=ROOT, capture_output=True, check=True)


def main(
    *,
    sizes: tuple[int, ...] = (10, 1_000, 10_000),
    repeats: int = 9,
    workdir: Path = WORKDIR,
    output: Output = "text",
) -> None:
    """Read the newest ten entries of all tables.

    Args:
        sizes: Numbers of tables.
        repeats: Number of readings of each; the fastest counts.
        workdir: The folder whose file system is measured.
        output: text or json.
    """
    workdir.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=workdir) as folder:
        show(run(Path(folder), sizes, repeats=repeats), output)


if __name__ == "__main__":
    cyclopts.run(main)
