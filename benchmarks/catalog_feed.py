"""Requests and time of a trigger of a feed of many tables, and cost of announcing commits.

Ledgers with 10, 1,000 and 10,000 tables are followed in a process, on a store in memory that counts
requests as a service would: a list costs one for each thousand names. A trigger finds nothing new,
or ten tables with a commit each; a restart knows the offset, as in Spark 4.2 and newer, or not, as
in Spark 4.1. Commits to one table of a ledger on a disk are timed with and without the activity
index, one after the other in turn.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import cyclopts

from benchmarks.measure import WORKDIR, Figure, Output, Report, many_in_turn, question_of, show
from ledger import Ledger, SetOption, Table
from ledger.ledger_handle import LedgerHandle
from ledger.log.activity import ActivityWriter, first_complete_slot
from ledger.opening.context import TableSetting
from ledger.stores import Store, open_store
from projections.source.feed_offset import Offset
from tests.projections.source.many_tables import ManyTables

MOST_REQUESTS = 10
MOST_BYTES = 10_000
TIMES_NONE = 1.05
CHANGED = 10


class NoActivity(ActivityWriter):
    """Announces nothing, for comparison."""

    __slots__ = ()

    def announce(self, store: Store, table_id: str, version: int) -> None:
        """Do nothing."""


def run(folder: Path, sizes: tuple[int, ...], *, repeats: int, commits: int) -> Report:
    figures = [figure for size in sizes for figure in _triggers(size, repeats)]
    figures += _commits(folder, commits)
    return Report(question_of(__doc__), f"sizes={sizes}", tuple(figures))


def _triggers(size: int, repeats: int) -> Iterator[Figure]:
    many = ManyTables.of(size)
    feed = many.feed()
    start = feed.initial()
    yield from _measured(many, f"{size:,} tables: first trigger", lambda: feed.latest(start))
    offset = feed.latest(start)
    nothing = [_once(many, lambda: feed.latest(offset)) for _ in range(repeats)]
    name = f"{size:,} tables: nothing new"
    most = max(requests for _, requests in nothing)
    yield Figure(f"{name}, requests", most, "", at_most=MOST_REQUESTS)
    yield Figure(f"{name}, time", statistics.median(each for each, _ in nothing), "ms")
    for number in range(CHANGED):
        many.commit(number * size // CHANGED)
    many.settle()
    changed: list[Offset] = []
    yield from _measured(
        many, f"{size:,} tables: {CHANGED} changed", lambda: changed.append(feed.latest(offset))
    )
    length = max(len(str(each)) for each in (offset, *changed))
    yield Figure(f"{size:,} tables: longest offset", length, "bytes", at_most=MOST_BYTES)
    for name, given in (("4.2", changed[-1]), ("4.1", None)):
        again = many.feed()
        many.store.take_count()
        named = f"{size:,} tables: restart in Spark {name}"
        yield from _measured(many, named, lambda feed=again, given=given: feed.latest(given))  # type: ignore[misc]


def _measured(many: ManyTables, name: str, work: Callable[[], object]) -> Iterator[Figure]:
    took_ms, requests = _once(many, work)
    yield Figure(f"{name}, requests", requests, "")
    yield Figure(f"{name}, time", took_ms, "ms")


def _once(many: ManyTables, work: Callable[[], object]) -> tuple[float, int]:
    many.store.take_count()
    begun = time.perf_counter()
    work()
    return (time.perf_counter() - begun) * 1e3, many.store.take_count()


def _commits(folder: Path, commits: int) -> Iterator[Figure]:
    lakes = {
        "announced": _lake(folder / "announced", ActivityWriter()),
        "not announced": _lake(folder / "not", NoActivity()),
    }
    cases = {name: _committing(lake.table("shop.orders")) for name, lake in lakes.items()}
    times = many_in_turn(cases, commits)
    for lake in lakes.values():
        # Before the folder is removed.
        lake.close()
    for name, each in times.items():
        yield Figure(f"a commit, {name}, median", each.median_ns / 1e6, "ms")
    pairs = zip(times["announced"].samples, times["not announced"].samples, strict=True)
    ratio = statistics.median(one / other for one, other in pairs)
    yield Figure("a commit, announced / not announced", ratio, "x", at_most=TIMES_NONE)


def _lake(folder: Path, activity: ActivityWriter) -> Ledger:
    store = open_store(str(folder), {})
    lake = Ledger(LedgerHandle(TableSetting(store, {}, "bench", activity=activity)))
    lake.init()
    # As a feed does.
    first_complete_slot(store, 0)
    lake.create_database("shop")
    lake.create_table("shop.orders", {"id": "BIGINT"})
    return lake


def _committing(table: Table) -> Callable[[int], object]:
    return lambda number: table.alter([SetOption("k", str(number))])


def main(
    *,
    sizes: tuple[int, ...] = (10, 1_000, 10_000),
    repeats: int = 20,
    commits: int = 3_000,
    workdir: Path = WORKDIR,
    output: Output = "text",
) -> None:
    """Measure triggers of a feed of many tables.

    Args:
        sizes: Numbers of tables.
        repeats: Number of triggers with nothing new.
        commits: Number of commits, with and without announcements each.
        workdir: The folder whose file system is measured.
        output: text or json.
    """
    workdir.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=workdir) as folder:
        show(run(Path(folder), sizes, repeats=repeats, commits=commits), output)


if __name__ == "__main__":
    cyclopts.run(main)
