"""Throughput and lost changes of concurrent processes that change one table.

1, 2, 4 and 8 processes add columns of their own names to one table on a local disk, in lakeledger,
delta-rs, PyIceberg and pypaimon. A change that meets a conflict is retried after a refresh and a
jittered pause, some ten times, as the libraries' documentation advises; lakeledger retries itself.
A change is lost when the library reported it as committed and the table does not have it at the
end.
"""

from __future__ import annotations

import multiprocessing
import random
import statistics
import tempfile
import time
from collections.abc import Sequence
from multiprocessing.queues import SimpleQueue
from multiprocessing.synchronize import Barrier
from pathlib import Path

import cyclopts
from attrs import field, frozen

from benchmarks.measure import WORKDIR, Figure, Output, Report, question_of, show
from benchmarks.rival_writers import LAKELEDGER, PROMISES, Writer, contestants

WIDTH = 20
PROCESSES = (1, 2, 4, 8)
TRIES = 10
FIRST_PAUSE_S = 0.01
LONGEST_PAUSE_S = 0.5


@frozen
class Told:
    """Results that a library reported to one process.

    Attributes:
        accepted: The columns reported as added.
        at_first: Number of them added at the first try.
        refused: Number of changes given up.
        took_ns: Latency of each accepted change, its retries included.
        begun_ns: Start time, by a clock that processes share.
        ended_ns: End time, by the same clock.
    """

    accepted: list[str] = field(factory=list)
    at_first: int = 0
    refused: int = 0
    took_ns: list[int] = field(factory=list)
    begun_ns: int = 0
    ended_ns: int = 0


@frozen
class _Task:
    """Arguments of one process."""

    library: str
    place: Path
    nth: int
    size: int
    seconds: float


@frozen
class Outcome:
    """Results of one run of one library."""

    library: str
    processes: int
    told: tuple[Told, ...]
    columns: frozenset[str]

    @property
    def accepted(self) -> list[str]:
        """Columns that were reported as added."""
        return [name for each in self.told for name in each.accepted]

    @property
    def lost(self) -> int:
        """Number of reported columns that the table lacks."""
        return len(set(self.accepted) - self.columns)

    @property
    def kept_a_second(self) -> float:
        """Rate of reported columns that exist, per second from the first start to the last end."""
        begun = min(each.begun_ns for each in self.told)
        ended = max(each.ended_ns for each in self.told)
        return (len(self.accepted) - self.lost) * 1e9 / (ended - begun)

    def percentile_ms(self, percent: int) -> float:
        """Latency of accepted changes at a percentile, retries included, milliseconds."""
        took = [nanoseconds / 1e6 for each in self.told for nanoseconds in each.took_ns]
        if len(took) < 2:
            return took[0] if took else 0.0
        return statistics.quantiles(took, n=100, method="inclusive")[percent - 1]

    def row(self) -> str:
        """Return the outcome as a line below `HEADER`."""
        at_first = sum(each.at_first for each in self.told)
        refused = sum(each.refused for each in self.told)
        return (
            f"{self.library:<21} {self.processes:>9} {len(self.accepted):>8} {at_first:>8} "
            f"{refused:>7} {self.lost:>5} {self.kept_a_second:>8.1f} "
            f"{self.percentile_ms(50):>8.1f} {self.percentile_ms(99):>8.1f}"
        )


HEADER = (
    f"{'library':<21} {'processes':>9} {'accepted':>8} {'at first':>8} {'refused':>7} {'lost':>5} "
    f"{'kept/s':>8} {'p50 ms':>8} {'p99 ms':>8}"
)


def run(
    workdir: Path,
    *,
    size: int,
    processes: Sequence[int] = PROCESSES,
    seconds: float = 20.0,
    libraries: Sequence[str] | None = None,
) -> Report:
    workdir.mkdir(parents=True, exist_ok=True)
    outcomes = []
    with tempfile.TemporaryDirectory(dir=workdir) as folder:
        for count in processes:
            for library in contestants() if libraries is None else libraries:
                place = Path(folder) / f"{library}-{count}"
                outcomes.append(_contend(library, place, count, size, seconds))
    ours = [each for each in outcomes if each.library == LAKELEDGER]
    told = [(each.processes, len(each.accepted), each.lost) for each in ours]
    return Report(
        question_of(__doc__),
        f"each={size} {LAKELEDGER}: (processes, accepted, lost)={told}",
        tuple(_figures(ours, outcomes)),
        (HEADER, *(each.row() for each in outcomes), *PROMISES),
    )


def _figures(ours: list[Outcome], outcomes: list[Outcome]) -> list[Figure]:
    figures = []
    for each in ours:
        many = f"{each.processes} process{'es' if each.processes > 1 else ''}"
        rivals = [
            other.kept_a_second
            for other in outcomes
            if other.processes == each.processes and not other.library.startswith(LAKELEDGER)
        ]
        figures.append(Figure(f"{many}: {LAKELEDGER}, kept", each.kept_a_second, "changes/s"))
        figures.append(Figure(f"{many}: {LAKELEDGER}, lost", each.lost, "changes", at_most=0))
        if rivals:
            ratio = each.kept_a_second / max(rivals) if max(rivals) else float("inf")
            figures.append(Figure(f"{many}: {LAKELEDGER} / best rival, kept", ratio, "x"))
    return figures


def _contend(library: str, place: Path, processes: int, size: int, seconds: float) -> Outcome:
    contestant = contestants()[library]
    contestant.create(place, WIDTH)
    context = multiprocessing.get_context("spawn")
    start = context.Barrier(processes)
    answers: SimpleQueue[Told] = context.SimpleQueue()
    workers = [
        context.Process(
            target=_write, args=(_Task(library, place, nth, size, seconds), start, answers)
        )
        for nth in range(processes)
    ]
    for worker in workers:
        worker.start()
    told = tuple(answers.get() for _ in workers)
    for worker in workers:
        worker.join()
    answers.close()
    return Outcome(library, processes, told, frozenset(contestant.writer(place).columns()))


def _write(task: _Task, start: Barrier, answers: SimpleQueue[Told]) -> None:
    writer = contestants()[task.library].writer(task.place)
    # Imports and the first reading are not timed.
    writer.columns()
    accepted: list[str] = []
    took: list[int] = []
    at_first = refused = 0
    start.wait()
    begun = time.monotonic_ns()
    for number in range(task.size):
        name = f"w{task.nth}_{number}"
        moment = time.monotonic_ns()
        if moment - begun > task.seconds * 1e9:
            break
        tries = _add(writer, name)
        if tries is None:
            refused += 1
            continue
        took.append(time.monotonic_ns() - moment)
        accepted.append(name)
        at_first += tries == 1
    answers.put(Told(accepted, at_first, refused, took, begun, time.monotonic_ns()))


def _add(writer: Writer, name: str) -> int | None:
    """Return the try at which a column was accepted; None if all were rejected."""
    for tries in range(1, TRIES + 1):
        try:
            if tries > 1:
                writer.refresh()
            writer.add(name)
        except Exception:  # noqa: BLE001 - each library has its own errors for a lost race
            longest = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2**tries)
            time.sleep(random.uniform(0, longest))  # noqa: S311 - a pause is no secret
        else:
            return tries
    return None


def main(
    *, size: int = 25, seconds: float = 20.0, workdir: Path = WORKDIR, output: Output = "text"
) -> None:
    """Let 1, 2, 4 and 8 processes add columns to one table of each library.

    Args:
        size: Changes of each process.
        seconds: Time after which no process begins a change.
        workdir: The folder whose file system is measured.
        output: text or json.
    """
    show(run(workdir, size=size, seconds=seconds), output)


if __name__ == "__main__":
    cyclopts.run(main)
