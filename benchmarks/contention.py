"""Throughput and fairness of eight processes that commit to one local table.

Each adds columns and sets options in turn, after one commit to its own table: the imports of a
process's first commit are measured by `benchmarks.start`. The lower bound is one process that
creates as many files with the same durability and does nothing else.
"""

from __future__ import annotations

import multiprocessing
import tempfile
import time
from multiprocessing.queues import SimpleQueue
from multiprocessing.synchronize import Barrier
from pathlib import Path

import cyclopts

import ledger
from benchmarks.measure import WORKDIR, Figure, Output, Report, question_of, show
from benchmarks.raw_create import durable_create
from ledger import AddColumn, Schema, SetOption

TABLE = "bench.shared"
WRITERS = 8
WIDTH = 20


def run(workdir: Path, *, size: int, repeats: int, writers: int = WRITERS) -> Report:
    workdir.mkdir(parents=True, exist_ok=True)
    floors: list[float] = []
    alone: list[float] = []
    together: list[float] = []
    shares: list[float] = []
    landed: set[tuple[int, int]] = set()
    for _ in range(repeats):
        with tempfile.TemporaryDirectory(dir=workdir) as folder:
            place = Path(folder)
            floors.append(_floor(place / "raw", size * writers))
            one = _contend(place / "one", 1, size)
            alone.append(_rate(one))
            all_of_them = _contend(place / "all", writers, size)
            together.append(_rate(all_of_them))
            shares.append(_fairness(all_of_them))
            landed.add(_landed(place / "all"))
    floor, rate = max(floors), max(together)
    return Report(
        question_of(__doc__),
        f"writers={writers} each={size} (version, columns)={sorted(landed)}",
        (
            Figure("floor: raw durable creates, one process", floor, "creates/s"),
            Figure("one writer", max(alone), "commits/s"),
            Figure(f"{writers} writers", rate, "commits/s"),
            Figure(f"{writers} writers / floor", rate / floor, "x"),
            Figure(f"{writers} writers / one writer", rate / max(alone), "x"),
            Figure("fewest / most commits of a writer", min(shares), "x"),
        ),
    )


def _floor(folder: Path, creates: int) -> float:
    folder.mkdir()
    start = time.perf_counter_ns()
    for number in range(creates):
        durable_create(folder, number)
    return creates * 1e9 / (time.perf_counter_ns() - start)


def _contend(root: Path, writers: int, each: int) -> dict[int, list[int]]:
    """Return the times of each writer's commits, by a clock that processes share."""
    lake = ledger.open(str(root), author="bench")
    lake.create_database(TABLE.split(".", maxsplit=1)[0])
    for name in (TABLE, *map(_own, range(writers))):
        lake.create_table(name, Schema.of({f"c{nth}": "INT" for nth in range(WIDTH)}))
    context = multiprocessing.get_context("spawn")
    start = context.Barrier(writers)
    answers: SimpleQueue[tuple[int, list[int]]] = context.SimpleQueue()
    processes = [
        context.Process(target=_write, args=(str(root), nth, each, start, answers))
        for nth in range(writers)
    ]
    for process in processes:
        process.start()
    moments = dict(answers.get() for _ in processes)
    for process in processes:
        process.join()
    answers.close()
    return moments


def _write(
    url: str, writer: int, each: int, start: Barrier, answers: SimpleQueue[tuple[int, list[int]]]
) -> None:
    lake = ledger.open(url, author=f"writer {writer}")
    lake.table(_own(writer)).alter([SetOption("team.warm", "x")])
    table = lake.table(TABLE)
    table.state  # noqa: B018 - reading it warms the handle
    start.wait()
    moments = [time.monotonic_ns()]
    for number in range(each):
        name = f"w{writer}_{number}"
        table.alter([SetOption(f"team.{name}", "x") if number % 2 else AddColumn((name,), "INT")])
        moments.append(time.monotonic_ns())
    answers.put((writer, moments))


def _own(writer: int) -> str:
    return f"bench.own{writer}"


def _rate(moments: dict[int, list[int]]) -> float:
    begun = min(each[0] for each in moments.values())
    ended = max(each[-1] for each in moments.values())
    return sum(len(each) - 1 for each in moments.values()) * 1e9 / (ended - begun)


def _fairness(moments: dict[int, list[int]]) -> float:
    """Return the fewest over the most commits of a writer, when the first was done."""
    first_done = min(each[-1] for each in moments.values())
    counts = [sum(moment <= first_done for moment in each[1:]) for each in moments.values()]
    return min(counts) / max(counts)


def _landed(root: Path) -> tuple[int, int]:
    state = ledger.open(str(root)).table(TABLE).state
    return state.version, len(state.schema.fields)


def main(
    *, size: int = 100, repeats: int = 3, workdir: Path = WORKDIR, output: Output = "text"
) -> None:
    """Let eight processes write to one table.

    Args:
        size: Commits of each writer.
        repeats: Number of repeats; the best rate and the worst share count.
        workdir: The folder whose file system is measured.
        output: text or json.
    """
    show(run(workdir, size=size, repeats=repeats), output)


if __name__ == "__main__":
    cyclopts.run(main)
