"""Throughput, fairness and processor time of concurrent processes that change one table.

1, 2, 4 and 8 processes add columns of their own names to one table on a local disk, and, apart, set
options, in lakeledger, delta-rs, PyIceberg and pypaimon. Each has committed once before, so that
imports are not measured. A change that meets a conflict is retried after a refresh and a jittered
pause, some ten times, as the libraries' documentation advises; lakeledger retries itself. A change
is lost when the library reported it as committed and the table does not have it at the end.

Two lower bounds: one process that creates as many files with the same durability and does nothing
else, and SQLite, which syncs each commit to one file. The processor time of a commit is compared
with that of as many processes that change a table each, of about the same width: a processor that
is shared with other processes takes longer for the same work.
"""

from __future__ import annotations

import multiprocessing
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from multiprocessing.queues import SimpleQueue
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Final

import cyclopts
from attrs import field, frozen

from benchmarks.measure import WORKDIR, Figure, Output, Report, question_of, show
from benchmarks.raw_create import durable_create
from benchmarks.rival_writers import LAKELEDGER, PROMISES, SQLITE, Writer, contestants

WIDTH = 20
PROCESSES = (1, 2, 4, 8)
TRIES = 10
FIRST_PAUSE_S = 0.01
LONGEST_PAUSE_S = 0.5

TIMES_RIVAL = 8.0
"""Kept commits of `MOST` processes, relative to the best rival's."""
TIMES_UNCONTENDED = 3.0
"""Processor time of a kept commit, relative to one without contention."""
MOST_UNFAIR = 2.0
"""Kept commits of one process, relative to another's."""
MOST = 8
"""Number of processes that the bounds are for."""

KINDS: Final[Mapping[str, str]] = {"columns": "w{}_{}", "options": "team.w{}_{}"}
"""Kinds of changes, with the names that they use, by process and number."""


@frozen
class Told:
    """Results of one process.

    Attributes:
        accepted: The names reported as added.
        at_first: Number of them added at the first try.
        refused: Number of changes given up.
        took_ns: Latency of each accepted change, its retries included.
        ended_ns: Time at which each was accepted, by a clock that processes share.
        begun_ns: Start time, by the same clock.
        cpu_ns: Processor time of the process.
    """

    accepted: list[str] = field(factory=list)
    at_first: int = 0
    refused: int = 0
    took_ns: list[int] = field(factory=list)
    ended_ns: list[int] = field(factory=list)
    begun_ns: int = 0
    cpu_ns: int = 0


@frozen
class _Task:
    """Arguments of one run.

    Attributes:
        library: The library.
        kind: The kind of changes.
        size: Changes of each process.
        seconds: Time after which no process begins a change.
        width: Columns of a new table.
    """

    library: str
    kind: str
    size: int
    seconds: float
    width: int


@frozen
class Outcome:
    """Results of one run of one library."""

    library: str
    kind: str
    told: tuple[Told, ...]
    names: frozenset[str]

    @property
    def processes(self) -> int:
        """Number of processes."""
        return len(self.told)

    @property
    def accepted(self) -> list[str]:
        """Names that were reported as added."""
        return [name for each in self.told for name in each.accepted]

    @property
    def lost(self) -> int:
        """Number of reported names that the table lacks."""
        return len(set(self.accepted) - self.names)

    @property
    def kept_a_second(self) -> float:
        """Rate of reported names that exist, per second from the first start to the last end."""
        begun = min(each.begun_ns for each in self.told)
        ended = max((moment for each in self.told for moment in each.ended_ns), default=begun + 1)
        return (len(self.accepted) - self.lost) * 1e9 / (ended - begun)

    @property
    def cpu_ms(self) -> float:
        """Processor time of all processes for each kept change, milliseconds."""
        kept = len(self.accepted) - self.lost
        return sum(each.cpu_ns for each in self.told) / 1e6 / max(kept, 1)

    @property
    def unfairness(self) -> float:
        """The most over the fewest changes of a process, when the first process was done."""
        first_done = min(max(each.ended_ns, default=0) for each in self.told)
        counts = [sum(at <= first_done for at in each.ended_ns) for each in self.told]
        return max(counts) / min(counts) if min(counts) else float("inf")

    def percentile_ms(self, percent: int) -> float:
        """Latency of accepted changes at a percentile, retries included, milliseconds."""
        took = [nanoseconds / 1e6 for each in self.told for nanoseconds in each.took_ns]
        if len(took) < 2:
            return took[0] if took else 0.0
        return statistics.quantiles(took, n=100, method="inclusive")[percent - 1]

    def row(self) -> str:
        """Return the outcome as a line below `_header`."""
        at_first = sum(each.at_first for each in self.told)
        refused = sum(each.refused for each in self.told)
        return (
            f"{self.library:<21} {self.processes:>9} {len(self.accepted):>8} {at_first:>8} "
            f"{refused:>7} {self.lost:>5} {self.kept_a_second:>8.1f} "
            f"{self.percentile_ms(50):>8.1f} {self.percentile_ms(99):>8.1f} "
            f"{self.cpu_ms:>8.2f} {self.unfairness:>8.2f}"
        )


def _header(kind: str) -> str:
    return (
        f"{kind:<21} {'processes':>9} {'accepted':>8} {'at first':>8} {'refused':>7} {'lost':>5} "
        f"{'kept/s':>8} {'p50 ms':>8} {'p99 ms':>8} {'cpu ms':>8} {'unfair':>8}"
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
    notes: list[str] = []
    figures: list[Figure] = []
    told: list[tuple[int, int, int]] = []
    with tempfile.TemporaryDirectory(dir=workdir) as folder:
        root = Path(folder)
        floor = _raw_creates_a_second(root / "raw", size * max(processes))
        figures.append(Figure("floor: raw durable creates, one process", floor, "creates/s"))
        for kind in KINDS:
            notes.append(_header(kind))
            for count in processes:
                together = [
                    _contend(
                        _Task(library, kind, size, seconds, WIDTH),
                        [root / f"{library}-{kind}-{count}"] * count,
                    )
                    for library in (contestants() if libraries is None else libraries)
                ]
                notes += [each.row() for each in together]
                ours = next((each for each in together if each.library == LAKELEDGER), None)
                if ours is not None:
                    # As wide as the common table in the middle of the run.
                    width = WIDTH + (size * (count - 1) // 2 if kind == "columns" else 0)
                    apart = _contend(
                        _Task(LAKELEDGER, kind, size, seconds, width),
                        [root / f"apart-{kind}-{count}" / str(nth) for nth in range(count)],
                    )
                    figures += _figures(ours, apart, together)
                    told.append((count, len(ours.accepted), ours.lost))
    return Report(
        question_of(__doc__),
        f"each={size} {LAKELEDGER}: (processes, accepted, lost)={told}",
        tuple(figures),
        (*notes, *PROMISES),
    )


def _figures(ours: Outcome, apart: Outcome, outcomes: list[Outcome]) -> Iterator[Figure]:
    count = ours.processes
    many = f"{count} process{'es' if count > 1 else ''}, {ours.kind}"
    is_bounded = count == MOST
    yield Figure(f"{many}: kept", ours.kept_a_second, "changes/s")
    yield Figure(f"{many}: lost", ours.lost, "changes", at_most=0)
    rivals = [
        each.kept_a_second
        for each in outcomes
        if not each.library.startswith(LAKELEDGER) and each.library != SQLITE
    ]
    if any(rivals):
        yield Figure(
            f"{many}: kept / best rival",
            ours.kept_a_second / max(rivals),
            "x",
            at_least=TIMES_RIVAL if is_bounded else None,
        )
    for each in outcomes:
        if each.library == SQLITE:
            yield Figure(f"{many}: kept / {SQLITE}", ours.kept_a_second / each.kept_a_second, "x")
    yield Figure(f"{many}: processor time of a commit", ours.cpu_ms, "ms")
    yield Figure(f"{many}: the same on a table each", apart.cpu_ms, "ms")
    yield Figure(
        f"{many}: processor time, one table / a table each",
        ours.cpu_ms / apart.cpu_ms,
        "x",
        at_most=TIMES_UNCONTENDED if is_bounded else None,
    )
    yield Figure(
        f"{many}: most / fewest commits of a process",
        ours.unfairness,
        "x",
        at_most=MOST_UNFAIR if is_bounded else None,
    )


def _raw_creates_a_second(folder: Path, creates: int) -> float:
    folder.mkdir()
    start = time.perf_counter_ns()
    for number in range(creates):
        durable_create(folder, number)
    return creates * 1e9 / (time.perf_counter_ns() - start)


def _contend(task: _Task, places: Sequence[Path]) -> Outcome:
    """Let one process per place change the table there; places may be the same."""
    contestant = contestants()[task.library]
    for place in dict.fromkeys(places):
        contestant.create(place, task.width)
    context = multiprocessing.get_context("spawn")
    start = context.Barrier(len(places))
    answers: SimpleQueue[Told] = context.SimpleQueue()
    workers = [
        context.Process(target=_write, args=(task, place, nth, start, answers))
        for nth, place in enumerate(places)
    ]
    for worker in workers:
        worker.start()
    told = tuple(answers.get() for _ in workers)
    for worker in workers:
        worker.join()
    answers.close()
    names = {name for place in places for name in contestant.writer(place).names()}
    return Outcome(task.library, task.kind, told, frozenset(names))


def _write(task: _Task, place: Path, nth: int, start: Barrier, answers: SimpleQueue[Told]) -> None:
    writer = contestants()[task.library].writer(place)
    change = writer.add if task.kind == "columns" else writer.set_option
    names = [KINDS[task.kind].format(nth, number) for number in range(task.size)]
    # Imports and the first reading are not timed.
    writer.names()
    _try_change(writer, change, KINDS[task.kind].format(nth, "first"))
    accepted: list[str] = []
    took: list[int] = []
    ended: list[int] = []
    at_first = refused = 0
    start.wait()
    begun, used = time.monotonic_ns(), time.process_time_ns()
    for name in names:
        moment = time.monotonic_ns()
        if moment - begun > task.seconds * 1e9:
            break
        tries = _try_change(writer, change, name)
        if tries is None:
            refused += 1
            continue
        ended.append(time.monotonic_ns())
        took.append(ended[-1] - moment)
        accepted.append(name)
        at_first += tries == 1
    spent = time.process_time_ns() - used
    answers.put(Told(accepted, at_first, refused, took, ended, begun, spent))


def _try_change(writer: Writer, change: Callable[[str], object], name: str) -> int | None:
    """Return the try at which a change was accepted; None if all were rejected."""
    for tries in range(1, TRIES + 1):
        try:
            if tries > 1:
                writer.refresh()
            change(name)
        except Exception:  # noqa: BLE001 - each library has its own errors for a lost race
            longest = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2**tries)
            time.sleep(random.uniform(0, longest))  # noqa: S311 - a pause is no secret
        else:
            return tries
    return None


def main(
    *,
    processes: tuple[int, ...] = PROCESSES,
    size: int = 100,
    seconds: float = 20.0,
    workdir: Path = WORKDIR,
    output: Output = "text",
) -> None:
    """Let 1, 2, 4 and 8 processes change one table of each library.

    Args:
        processes: Numbers of processes.
        size: Changes of each process.
        seconds: Time after which no process begins a change.
        workdir: The folder whose file system is measured.
        output: text or json.
    """
    show(run(workdir, size=size, processes=processes, seconds=seconds), output)


if __name__ == "__main__":
    cyclopts.run(main)
