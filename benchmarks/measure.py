"""Timing in turn, and the report that a benchmark prints."""

from __future__ import annotations

import gc
import json
import os
import resource
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal

from attrs import asdict, define, field, frozen

Output = Literal["text", "json"]

_TICKS = os.sysconf("SC_CLK_TCK")

WORKDIR = Path(tempfile.gettempdir()) / "lakeledger-benchmarks"
"""Default folder of histories that are cached between runs."""


@frozen
class Times:
    """Durations of the repeats of one case, in nanoseconds."""

    samples: tuple[int, ...]

    @property
    def minimum_ns(self) -> int:
        """Minimum: the least disturbed repeat."""
        return min(self.samples)

    @property
    def median_ns(self) -> float:
        """Median: the typical repeat."""
        return statistics.median(self.samples)


@frozen
class Figure:
    """One number, and its bound, if any."""

    name: str
    value: float
    unit: str
    at_most: float | None = None
    at_least: float | None = None

    @property
    def holds(self) -> bool | None:
        """Return whether the bound holds; None without one."""
        if self.at_most is not None:
            return self.value <= self.at_most
        return None if self.at_least is None else self.value >= self.at_least

    def line(self) -> str:
        """Return the figure as a line of text."""
        bound = ""
        if self.holds is not None:
            limit = f"<= {self.at_most:g}" if self.at_most is not None else f">= {self.at_least:g}"
            bound = f"  {limit} {'holds' if self.holds else 'MISSED'}"
        return f"{self.name:<52} {self.value:>12,.3f} {self.unit}{bound}"


@frozen
class Report:
    """Result of one run.

    Attributes:
        question: The benchmark's docstring, first line.
        fingerprint: Digest of the results, the same for the same size.
        figures: The figures, in reading order.
        notes: Remarks on comparisons.
    """

    question: str
    fingerprint: str
    figures: tuple[Figure, ...]
    notes: tuple[str, ...] = ()

    def value(self, name: str) -> float:
        """Return the value of the figure of that name."""
        return next(each.value for each in self.figures if each.name == name)


def show(report: Report, output: Output) -> None:
    """Print a report to stdout."""
    if output == "json":
        figures = [{**asdict(each), "holds": each.holds} for each in report.figures]
        print(json.dumps({**asdict(report), "figures": figures}))
        return
    lines = [report.question, *(each.line() for each in report.figures)]
    lines += [f"note: {each}" for each in report.notes]
    print("\n".join([*lines, f"fingerprint {report.fingerprint}"]))


def in_turn(
    cases: Mapping[str, Callable[[], object]],
    repeats: int,
    clock: Callable[[], int] = time.perf_counter_ns,
) -> dict[str, Times]:
    """Time each case `repeats` times, one after the other, so that all meet the same disturbances.

    Each runs once before, untimed.

    Args:
        cases: What to time, by name.
        repeats: Number of repeats.
        clock: Clock in nanoseconds; `processor_ns` where other work shares the cores.
    """
    samples: dict[str, list[int]] = {name: [] for name in cases}
    for case in cases.values():
        case()
    for _ in range(repeats):
        for name, case in cases.items():
            gc.collect()
            start = clock()
            case()
            samples[name].append(clock() - start)
    return {name: Times(tuple(each)) for name, each in samples.items()}


def processor_ns() -> int:
    """Return the processor time of this process and of those that it waited for."""
    used = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return round(sum(each.ru_utime + each.ru_stime for each in used) * 1e9)


def many_in_turn(
    cases: Mapping[str, Callable[[int], object]],
    repeats: int,
    clock: Callable[[], int] = time.perf_counter_ns,
) -> dict[str, Times]:
    """Time short cases in turn; each is called with the number of the repeat."""
    samples: dict[str, list[int]] = {name: [] for name in cases}
    with _without_collector():
        for number in range(-1, repeats):
            for name, case in cases.items():
                start = clock()
                case(number)
                took = clock() - start
                if number >= 0:
                    samples[name].append(took)
    return {name: Times(tuple(each)) for name, each in samples.items()}


def once_each(cases: Mapping[str, Callable[[int], object]]) -> dict[str, int]:
    """Time each case once, in turn, for cases with a setup of their own; in nanoseconds."""
    took: dict[str, int] = {}
    with _without_collector():
        for name, case in cases.items():
            start = time.perf_counter_ns()
            case(0)
            took[name] = time.perf_counter_ns() - start
    return took


@contextmanager
def _without_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def question_of(docstring: str | None) -> str:
    """Return the first line of a benchmark's docstring."""
    return (docstring or "").strip().splitlines()[0]


def waited_for_core_ns() -> int:
    """Return the total time that this thread waited for a core; 0 where unknown."""
    try:
        return int(Path("/proc/thread-self/schedstat").read_text().split()[1])
    except OSError:
        return 0


def tree_cpu_s() -> float:
    """Return the processor time of this process and all its descendants, in seconds."""
    return _cpu_below_s(os.getpid(), *_processes())


def process_cpu_s(pid: int) -> float:
    """Return the processor time of a process and all its descendants, in seconds."""
    return _cpu_below_s(pid, *_processes())


def programs_cpu_s(name: str) -> dict[int, float]:
    """Return the processor time of processes that run a program, and their descendants.

    Args:
        name: A part of their command lines.
    """
    below, ticks = _processes()
    found = {}
    for pid in ticks:
        with suppress(OSError):
            if name.encode() in Path(f"/proc/{pid}/cmdline").read_bytes():
                found[pid] = _cpu_below_s(pid, below, ticks)
    return found


def _processes() -> tuple[dict[int, list[int]], dict[int, int]]:
    """Return the children of each process, and the processor time of each, in ticks."""
    below: dict[int, list[int]] = {}
    ticks: dict[int, int] = {}
    for each in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = each.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        pid = int(each.parent.name)
        below.setdefault(int(fields[1]), []).append(pid)
        # Its own, and that of children that ended and were waited for.
        ticks[pid] = sum(map(int, fields[11:15]))
    return below, ticks


def _cpu_below_s(pid: int, below: dict[int, list[int]], ticks: dict[int, int]) -> float:
    found, todo = 0, [pid]
    while todo:
        pid = todo.pop()
        found += ticks.get(pid, 0)
        todo += below.get(pid, [])
    return found / _TICKS


@define
class Spent:
    """Durations of the repeats of one case.

    Attributes:
        processor_s: Returns the processor time so far; for a case within this process
            `time.process_time`, so that an idle Java process does not count.
        wall_s: Wall-clock times.
        cpu_s: Processor times, at least a tick, the kernel's unit for a process tree: a ratio to
            zero would be undefined.
    """

    processor_s: Callable[[], float] = tree_cpu_s
    wall_s: list[float] = field(factory=list)
    cpu_s: list[float] = field(factory=list)

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Record the time of the block."""
        cpu, start = self.processor_s(), time.perf_counter()
        yield
        self.wall_s.append(time.perf_counter() - start)
        self.cpu_s.append(max(self.processor_s() - cpu, 1 / _TICKS))


@define
class Memory:
    """Peak memory of one case.

    Attributes:
        pid: The process to watch; None: this one and all its descendants, together.
        most_mb: The peak.
    """

    pid: int | None = None
    most_mb: float = 0.0

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Sample the memory twice a second during the block."""
        over = threading.Event()

        def look() -> None:
            while not over.wait(0.5):
                self.most_mb = max(self.most_mb, self._held_mb())

        watcher = threading.Thread(target=look, daemon=True)
        watcher.start()
        try:
            yield
        finally:
            over.set()
            watcher.join()
            self.most_mb = max(self.most_mb, self._held_mb())

    def _held_mb(self) -> float:
        if self.pid is not None:
            return _held_kb(self.pid) / 1e3
        below, _ = _processes()
        found, todo = 0, [os.getpid()]
        while todo:
            pid = todo.pop()
            found += _held_kb(pid)
            todo += below.get(pid, [])
        return found / 1e3


def highest_memory_mb() -> float:
    """Return the peak memory of this process, in MB."""
    with suppress(OSError):
        for line in Path("/proc/self/status").read_text().splitlines():
            # The figure of resource includes the time before this program was executed.
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1e3
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def _held_kb(pid: int) -> int:
    """Return a process's share of the memory that it maps; 0 if it has ended."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1])
    return 0
