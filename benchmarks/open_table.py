"""Latency of opening a table, and its growth with the history.

A fresh process opens the ledger and the table and reads its first state. The table is 99 commits
after its last checkpoint, the longest possible tail. Then older states are read from an open table
with the longest history, in processor time. Warm file cache.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import cyclopts
from attrs import frozen

from benchmarks.history import SEED, TABLE, WIDTH, copy, lake_at
from benchmarks.measure import (
    WORKDIR,
    Figure,
    Output,
    Report,
    Times,
    in_turn,
    processor_ns,
    question_of,
    show,
)
from ledger import Ledger, SetOption
from ledger import open as open_ledger
from ledger.ledger_handle import LedgerHandle
from ledger.log.layout import CHECKPOINT_INTERVAL
from ledger.opening.context import TableSetting
from ledger.stores.local import Durability, LocalStore

AT_MOST_MS = 50
AS_OF_MS = 10
FLAT = 1.2
MILLISECOND = 1e6
ROOT = Path(__file__).parent.parent

_OPEN = """
import json, sys, time
start = time.perf_counter_ns()
import ledger; ledger.open
imported = time.perf_counter_ns()
state = ledger.open(sys.argv[1]).table(sys.argv[2]).state
opened = time.perf_counter_ns()
facts = [state.version, len(state.schema.fields), state.last_snapshot_id]
print(json.dumps([imported - start, opened - imported, facts]))
"""


@frozen
class Opening:
    """Output of a fresh process."""

    import_ns: int
    open_ns: int
    facts: tuple[int, ...]


def run(workdir: Path, *, sizes: tuple[int, ...], repeats: int, width: int = WIDTH) -> Report:
    lakes = {size: lake_at(workdir, size, width=width) for size in sizes}
    with tempfile.TemporaryDirectory(dir=workdir) as folder:
        tailed = {size: _with_tail(lake, Path(folder) / str(size)) for size, lake in lakes.items()}
        openings: dict[int, list[Opening]] = {size: [] for size in sizes}
        for lake in tailed.values():
            _open(lake)
        for _ in range(repeats):
            for size, lake in tailed.items():
                openings[size].append(_open(lake))
    times = {size: Times(tuple(one.open_ns for one in each)) for size, each in openings.items()}
    imports = Times(tuple(one.import_ns for each in openings.values() for one in each))
    shortest, longest = min(sizes), max(sizes)
    figures = [
        Figure(f"open at {size}", each.median_ns / MILLISECOND, "ms", at_most=AT_MOST_MS)
        for size, each in times.items()
    ]
    ratio = times[longest].median_ns / times[shortest].median_ns
    figures += [
        Figure(f"open at {longest} / at {shortest}", ratio, "x", at_most=FLAT),
        Figure("import ledger, paid once before", imports.median_ns / MILLISECOND, "ms"),
    ]
    figures += _as_of(lakes[longest], longest, repeats)
    facts = {size: sorted({one.facts for one in each}) for size, each in openings.items()}
    return Report(question_of(__doc__), f"(version, columns, snapshot) {facts}", tuple(figures))


def _as_of(lake: Path, size: int, repeats: int) -> list[Figure]:
    """Return the latency of reading older states at random, from an open table."""
    table = open_ledger(str(lake)).table(TABLE)
    choice = random.Random(SEED)  # noqa: S311 - a workload, not a secret
    last = table.state.last_snapshot_id
    begin, end = table.at(version=0).state.time_millis, table.state.time_millis
    ask: dict[str, Callable[[], object]] = {
        "a version": lambda: table.at(version=choice.randrange(size)),
        "a snapshot": lambda: table.at(snapshot=1 + choice.randrange(last)),
        "a time": lambda: table.at(timestamp=choice.randrange(begin, end)),
    }
    times = in_turn(ask, 4 * repeats, processor_ns)
    return [
        Figure(f"as of {name} at {size}", each.median_ns / MILLISECOND, "ms", at_most=AS_OF_MS)
        for name, each in times.items()
    ]


def _with_tail(lake: Path, to: Path) -> Path:
    store = LocalStore(copy(lake, to), durable=Durability.NONE)
    table = Ledger(
        LedgerHandle(TableSetting(store=store, storage_options={}, author="bench"))
    ).table(TABLE)
    while table.state.version % CHECKPOINT_INTERVAL != CHECKPOINT_INTERVAL - 1:
        table.alter([SetOption("team.option", str(table.state.version))])
    return to


def _open(lake: Path) -> Opening:
    command = [sys.executable, "-c", _OPEN, str(lake), TABLE]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    import_ns, open_ns, facts = json.loads(done.stdout)
    return Opening(import_ns, open_ns, tuple(facts))


def main(
    *, size: int = 100_000, repeats: int = 15, workdir: Path = WORKDIR, output: Output = "text"
) -> None:
    """Open tables of 200 columns: at a hundredth and a tenth of `size` commits, and at `size`.

    Args:
        size: Commits of the longest history.
        repeats: Number of openings of each; the median counts.
        workdir: Folder of the cached histories.
        output: text or json.
    """
    sizes = (max(size // 100, 1), max(size // 10, 1), size)
    show(run(workdir, sizes=sizes, repeats=repeats), output)


if __name__ == "__main__":
    cyclopts.run(main)
