"""Growth of the cost of a commit with the history, by kind of change and of table.

Two tables of each kind have the same history, one of them two thousand times longer (`lives`). Each
change is made to both in turn: by the handle that wrote before, by one that has just opened the
table, and by one that lost a race to a change of an option. Ratios are long to short: of the lower
quartile of times on a disk without fsync, and of the requests to a distant store.

A last kind of table keeps its tags, a thousand in a hundred thousand commits: it shows the cost of
a larger state rather than of history. Opening a table reads its state.

An append at a checkpoint, and the one after it, while caches are saved, are also compared with an
ordinary append of the same handle.
"""

from __future__ import annotations

import gc
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Final

import cyclopts
from attrs import define, evolve, field, frozen

from benchmarks.history import copy
from benchmarks.lives import (
    KINDS,
    NAME,
    TAGGED,
    Counted,
    Kind,
    Life,
    changes_of,
    lake_on,
    life_at,
)
from benchmarks.measure import WORKDIR, Figure, Output, Report, question_of, show
from ledger import SetOption
from ledger.log.layout import CHECKPOINT_INTERVAL
from ledger.stores import Store
from ledger.stores.local import Durability, LocalStore
from ledger.table_handle import handle_of

SHORT: Final = 50
BY: Final = ("the same handle", "a fresh handle", "a loser")

AT, BEHIND = "append at a checkpoint", "append behind it"

_FLAT: Final = 1.2
_UNDISTURBED: Final = 1.5
_LISTED: Final = 4.0
_LARGER: Final = 1.5
"""Bound for a table whose thousand tags are ten times the rest of its state."""


NOT_ASKED: Final = (
    "a table of an engine's manifests names no file, so that none is deleted by its path",
    "files by the names of an older schema come to the table by name alone",
    "the commit at a checkpoint is asked of the same handle: who opens anew saves the same caches",
)
"""Limits of the comparison."""

_FAR_REPEATS: Final = 3
"""The first repeat finds less in memory than later ones; the median counts."""

_CHECKPOINTS_LESS: Final = 5
"""Fewer repeats: each takes a hundred commits, and the short history must stay short."""


def most_requests(by: str, change: str) -> float:
    """Return the bound of the ratio of requests, long history to short."""
    return 1.5 if _lists_anew(by, change) else _FLAT


def most_time(kind: str, by: str, change: str) -> float:
    """Return the bound of the ratio of times, long history to short."""
    if _lists_anew(by, change):
        return _LISTED
    return _LARGER if kind == TAGGED.name else _FLAT


def _lists_anew(by: str, change: str) -> bool:
    # A handle without a file index reads runs, whose number grows logarithmically.
    return (by, change) == (BY[1], "overwrite")


@define
class _Side:
    """One of the two tables, and the costs of its changes."""

    life: Life
    store: Store
    took_ns: dict[tuple[str, str], list[int]] = field(factory=dict)
    requests: dict[tuple[str, str], list[int]] = field(factory=dict)

    def change(self, by: str, name: str, change: Callable[[Life, int], object]) -> None:
        """Time one commit."""
        number = sum(map(len, self.took_ns.values()))
        prepared = self._prepared(by, number)
        asked = self.store.requests if isinstance(self.store, Counted) else 0
        gc.disable()
        start = time.perf_counter_ns()
        life = prepared()
        change(life, number)
        took = time.perf_counter_ns() - start
        gc.enable()
        self.took_ns.setdefault((by, name), []).append(took)
        if isinstance(self.store, Counted):
            self.requests.setdefault((by, name), []).append(self.store.requests - asked)
        if by == BY[1]:
            self.life = life
            self.life.table.state  # noqa: B018 - warms the handle for the next change

    def meet_checkpoint(self) -> None:
        """Time the commit at which caches are due, and the one while they may be saved."""
        while (self.life.table.state.version + 1) % CHECKPOINT_INTERVAL:
            self.change("on the way", BEHIND, _append)
        handle_of(self.life.table).log.wait_for_caches()
        for name in (AT, BEHIND):
            self.change(BY[0], name, _append)
        handle_of(self.life.table).log.wait_for_caches()

    def _prepared(self, by: str, number: int) -> Callable[[], Life]:
        if by == BY[1]:
            return partial(self.life.reopened, self.store)
        self.life.table.state  # noqa: B018 - refreshes to the newest version
        if by == BY[2]:
            winner = lake_on(self.store).table(NAME)
            winner.alter([SetOption("team.winner", str(number))])
        return lambda: self.life


def _append(life: Life, number: int) -> None:
    life.append(f"x{number}", 2 * number)


@frozen
class Cell:
    """Costs of one change by one kind of handle and table, long history and short."""

    kind: str
    by: str
    change: str
    time: float
    requests: float
    to_ordinary: float | None = None

    @property
    def name(self) -> str:
        """Name in the report."""
        return f"{self.kind}, {self.by}: {self.change}"

    def figures(self) -> tuple[Figure, Figure]:
        """Return both ratios of long to short, each with its target."""
        times = most_time(self.kind, self.by, self.change)
        requests = most_requests(self.by, self.change)
        return (
            Figure(f"{self.name}, time", self.time, "x", at_most=times),
            Figure(f"{self.name}, requests", self.requests, "x", at_most=requests),
        )

    def beside(self) -> Iterator[Figure]:
        """Yield the ratio of its time to that of an ordinary append, for appends at checkpoints."""
        if self.to_ordinary is not None:
            name = f"{self.name}, to an ordinary one"
            yield Figure(name, self.to_ordinary, "x", at_most=_UNDISTURBED)


def run(
    workdir: Path,
    *,
    size: int,
    repeats: int,
    kinds: tuple[Kind, ...] = (*KINDS, TAGGED),
    short: int = SHORT,
) -> Report:
    cells: list[Cell] = []
    versions: set[int] = set()
    for kind in kinds:
        # At the same distance from a checkpoint, so that both have as much to read after it.
        lakes = {each: life_at(workdir, kind, each) for each in (short, size + short)}
        with tempfile.TemporaryDirectory(dir=workdir) as folder:
            place = Path(folder)
            near = _sides(kind, {each: copy(lakes[each], place / f"near-{each}") for each in lakes})
            _live(kind, near, repeats)
            _meet(near, max(2, repeats // _CHECKPOINTS_LESS))
            far = _sides(
                kind, {each: copy(lakes[each], place / f"far-{each}") for each in lakes}, Counted
            )
            _live(kind, far, _FAR_REPEATS)
            _meet(far, 1)
        cells += _cells(kind, near, far)
        versions |= {side.life.table.state.version - each for each, side in far.items()}
    landed = f"commits={size} committed={sorted(versions)}"
    return Report(question_of(__doc__), landed, tuple(_figures(cells)), NOT_ASKED)


def _sides(
    kind: Kind, lakes: Mapping[int, Path], far: Callable[[Store], Store] = lambda store: store
) -> dict[int, _Side]:
    made: dict[int, _Side] = {}
    for version, lake in lakes.items():
        store = far(LocalStore(lake, durable=Durability.NONE))
        made[version] = _Side(Life(kind, lake_on(store).table(NAME)), store)
    return made


def _live(kind: Kind, sides: Mapping[int, _Side], repeats: int) -> None:
    for by in BY:
        # The first repeat warms up.
        for each in range(-1, repeats):
            for name, change in changes_of(kind).items():
                for side in sides.values():
                    side.change(by if each >= 0 else "warming up", name, change)


def _meet(sides: Mapping[int, _Side], repeats: int) -> None:
    for _ in range(repeats):
        for side in sides.values():
            side.meet_checkpoint()


def _cells(kind: Kind, near: Mapping[int, _Side], far: Mapping[int, _Side]) -> Iterator[Cell]:
    short, long = min(near), max(near)
    asked_of = [(by, name) for by in BY for name in changes_of(kind)]
    for by, name in (*asked_of, (BY[0], AT), (BY[0], BEHIND)):
        times = [_undisturbed(near[each].took_ns[by, name]) for each in (short, long)]
        asked = [statistics.median(far[each].requests[by, name]) for each in (short, long)]
        ordinary = _undisturbed(near[long].took_ns[BY[0], "append"])
        beside = times[1] / ordinary if name in {AT, BEHIND} else None
        yield Cell(kind.name, by, name, times[1] / times[0], asked[1] / asked[0], beside)


def _undisturbed(took_ns: list[int]) -> float:
    """Return the lower quartile: other processes only ever make a commit slower."""
    return sorted(took_ns)[len(took_ns) // 4]


def _figures(cells: list[Cell]) -> Iterator[Figure]:
    pairs = [each.figures() for each in cells]
    yield from (figure for pair in pairs for figure in pair)
    yield from (figure for each in cells for figure in each.beside())
    for told, some in zip(("worst", "busiest"), zip(*pairs, strict=True), strict=True):
        worst = max(some, key=lambda each: each.value / (each.at_most or 1))
        yield evolve(worst, name=f"{told}: {worst.name}")


def main(
    *,
    size: int = 100_000,
    repeats: int = 25,
    workdir: Path = WORKDIR,
    output: Output = "text",
) -> None:
    """Commit every kind of change to short and long tables of every kind.

    Args:
        size: Number of commits by which the long history is longer.
        repeats: Number of repeats of each change; the median counts.
        workdir: Folder of the cached histories; its file system is measured.
        output: text or json.
    """
    show(run(workdir, size=size, repeats=repeats), output)


if __name__ == "__main__":
    cyclopts.run(main)
