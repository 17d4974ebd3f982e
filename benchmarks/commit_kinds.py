"""Latency of the smallest durable commit of each kind, on tables of few and many columns.

Each kind of change has its own process that commits to its own table, a few times in turn with the
raw creation of a file with the same durability; with `--against`, also in turn with another version
of lakeledger.
"""

from __future__ import annotations

import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from itertools import product
from pathlib import Path

import cyclopts
from attrs import define, field

from benchmarks.committing import KINDS
from benchmarks.measure import WORKDIR, Figure, Output, Report, question_of, show
from benchmarks.raw_create import durable_create

COLUMNS = (5, 200, 2_000)
ROUNDS = 30
EACH = 20
_COLD = 4
"""Number of warm-up commits per round, after other processes used the caches."""

_OURS = Path(__file__).parents[1]
_PROGRAM = Path(__file__).with_name("committing.py")
_MICROSECOND = 1e3


@define
class Committer:
    """A process that commits on request.

    Attributes:
        process: The process.
        took_ns: Latencies of its commits so far, nanoseconds.
    """

    process: subprocess.Popen[str]
    took_ns: list[int] = field(factory=list)

    def commit(self, times: int) -> None:
        """Run some commits, after a few that do not count."""
        self.ask(times + _COLD)
        self.took_ns += json.loads(self.answer())[_COLD:]

    def ask(self, times: int) -> None:
        """Send a request."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{times}\n")
        self.process.stdin.flush()

    def answer(self) -> str:
        """Return the next line of output."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError("a committing process has ended; see its output above")
        return line


@define
class Floor:
    """The lower bound: raw file creation in this process.

    Attributes:
        folder: The folder.
        made: Number of files so far.
        took_ns: Durations, nanoseconds.
    """

    folder: Path
    made: int = 0
    took_ns: list[int] = field(factory=list)

    def commit(self, times: int) -> None:
        """Create some files, after a few that do not count."""
        for number in range(times + _COLD):
            begun = time.perf_counter_ns()
            durable_create(self.folder, self.made)
            took_ns = time.perf_counter_ns() - begun
            self.made += 1
            if number >= _COLD:
                self.took_ns.append(took_ns)


def run(
    workdir: Path,
    *,
    kinds: Sequence[str] = tuple(KINDS),
    columns: Sequence[int] = COLUMNS,
    rounds: int = ROUNDS,
    each: int = EACH,
    against: Path | None = None,
) -> Report:
    trees = {"this": _OURS} | ({"that": against} if against else {})
    figures: list[Figure] = []
    ratios: list[float] = []
    workdir.mkdir(parents=True, exist_ok=True)
    # Deleted at the end only: some file systems are slow for minutes after many deletions.
    with tempfile.TemporaryDirectory(dir=workdir) as folder:
        for width, kind in product(columns, kinds):
            place = Path(folder, f"{width} {kind}")
            medians = _measured(place, kind, width, trees, rounds, each)
            figures += _figures(f"{kind}, {width} columns", medians)
            if against:
                ratios.append(medians["this"] / medians["that"])
    if ratios:
        mean = math.exp(statistics.fmean(map(math.log, ratios)))
        figures.append(Figure("all kinds, geometric mean: this / that", mean, "x", at_most=1.0))
    count = len(kinds) * len(columns)
    return Report(question_of(__doc__), f"cases={count} commits={rounds * each}", tuple(figures))


def _measured(
    place: Path, kind: str, columns: int, trees: Mapping[str, Path], rounds: int, each: int
) -> dict[str, float]:
    """Return the median latency of each committer, in nanoseconds."""
    raw = place / "raw"
    raw.mkdir(parents=True)
    with ExitStack() as stack:
        sides: dict[str, Committer | Floor] = {"raw": Floor(raw)}
        for name, tree in trees.items():
            sides[name] = stack.enter_context(_committer(tree, kind, columns, place / name))
        for side in sides.values():
            if isinstance(side, Committer):
                assert side.answer() == "ready\n"
        order = list(sides.values())
        for number in range(rounds):
            # The order is changed each time.
            for side in order if number % 2 else reversed(order):
                side.commit(each)
    return {name: statistics.median(side.took_ns) for name, side in sides.items()}


@contextmanager
def _committer(tree: Path, kind: str, columns: int, folder: Path) -> Iterator[Committer]:
    process = subprocess.Popen(
        [sys.executable, str(_PROGRAM), kind, str(columns), str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(tree)},
    )
    try:
        yield Committer(process)
    finally:
        # It ends at the end of its input, after pending work.
        process.communicate()


def _figures(name: str, medians: Mapping[str, float]) -> Iterable[Figure]:
    yield Figure(name, medians["this"] / _MICROSECOND, "us")
    yield Figure(f"{name} / raw create", medians["this"] / medians["raw"], "x")
    if "that" in medians:
        yield Figure(f"{name}: this / that", medians["this"] / medians["that"], "x")


def main(
    *,
    columns: tuple[int, ...] = COLUMNS,
    rounds: int = ROUNDS,
    against: Path | None = None,
    workdir: Path = WORKDIR,
    output: Output = "text",
) -> None:
    """Commit each kind of change to a table of its own.

    Args:
        columns: Numbers of columns of the tables.
        rounds: Number of rounds of 20 commits each; the median of all counts.
        against: The source tree of another version of lakeledger.
        workdir: The file system that is measured.
        output: text or json.
    """
    show(run(workdir, columns=columns, rounds=rounds, against=against), output)


if __name__ == "__main__":
    cyclopts.run(main)
