"""Throughput of 64 threads through one handle, compared with a single writer.

Each appends its own data files to one table in a bucket of a real server on this machine
(SeaweedFS), or of yours, then changes its own option, and then appends to further tables, in turn
with its own commit ids and without; concurrent transactions of the threads are submitted as one
commit. A local server answers sooner than any remote one: `--round-trip-ms 20` simulates the
distance of a region's S3. Fairness is the slowest thread's count, when the first is done, divided
by an equal share.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from statistics import median
from typing import Any

import cyclopts

import ledger
from benchmarks.bucket import place_for
from benchmarks.distance import at_distance
from benchmarks.measure import Figure, Output, Report, question_of, show
from ledger import FileChange, Schema, SetOption, Table

THREADS = 64
TURNS = 3
"""Number of alternations of appends with ids and without, so that both meet the same load."""
TIMES_ALONE = 20.0
SHARE_WITH_IDS = 0.8


def run(url: str, options: Mapping[str, Any], *, each: int, threads: int = THREADS) -> Report:
    lake = ledger.open(url, options, author="bench")
    lake.create_database("shop")
    figures: list[Figure] = []
    landed: list[int] = []
    for name, ask in (("appends", _append), ("options", _set_option)):
        alone = _table(lake, f"{name}_alone")
        start = time.perf_counter()
        for number in range(each):
            ask(alone, 0, number)
        rate_alone = each / (time.perf_counter() - start)
        shared = _table(lake, name)
        counts, seconds = _together(shared, ask, threads, each)
        rate = threads * each / seconds
        landed.append(_landed(shared))
        figures += (
            Figure(f"{name}: one writer", rate_alone, "transactions/s"),
            Figure(f"{name}: {threads} threads", rate, "transactions/s"),
            Figure(
                f"{name}: {threads} threads / one writer",
                rate / rate_alone,
                "x",
                at_least=TIMES_ALONE,
            ),
            Figure(f"{name}: transactions / commit", landed[-1] / shared.state.version, "x"),
            Figure(f"{name}: slowest thread / equal share", min(counts) / each, "x"),
        )
    took: dict[str, list[float]] = {"with_ids": [], "without": []}
    for turn in range(TURNS):
        for name, ask in (("with_ids", _append_by_id), ("without", _append)):
            table = _table(lake, f"{name}_{turn}")
            took[name].append(_together(table, ask, threads, each)[1])
            landed.append(_landed(table))
    figures.append(
        Figure(
            "appends under ids of the callers' / without",
            median(took["without"]) / median(took["with_ids"]),
            "x",
            at_least=SHARE_WITH_IDS,
        )
    )
    return Report(
        question_of(__doc__),
        f"(transactions committed, asked)={(landed, threads * each)}",
        tuple(figures),
    )


def _table(lake: ledger.Ledger, name: str) -> Table:
    return lake.create_table(f"shop.{name}", Schema.of({"id": "BIGINT"}))


def _landed(table: Table) -> int:
    return sum(len(commit.transactions) for commit in table.events(1))


def _append(table: Table, writer: int, number: int) -> None:
    path = f"bucket-0/{writer}-{number}.parquet"
    table.append([FileChange(path=path, record_count=1, file_size_in_bytes=1000, field_ids=True)])


def _append_by_id(table: Table, writer: int, number: int) -> None:
    path = f"bucket-0/{writer}-{number}.parquet"
    file = FileChange(path=path, record_count=1, file_size_in_bytes=1000, field_ids=True)
    table.append([file], commit_id=f"job-{writer}-{number}")


def _set_option(table: Table, writer: int, number: int) -> None:
    table.alter([SetOption(f"team.writer{writer}", str(number))])


Ask = Callable[[Table, int, int], None]


def _together(table: Table, ask: Ask, threads: int, each: int) -> tuple[list[int], float]:
    """Return each thread's commits when the first was done, and the total duration."""
    done = [0] * threads
    at_first_end: list[list[int]] = []
    barrier = threading.Barrier(threads + 1)

    def write(writer: int) -> None:
        barrier.wait()
        for number in range(each):
            ask(table, writer, number)
            done[writer] += 1
        at_first_end.append(list(done))

    workers = [threading.Thread(target=write, args=(number,)) for number in range(threads)]
    for worker in workers:
        worker.start()
    barrier.wait()
    start = time.perf_counter()
    for worker in workers:
        worker.join()
    return at_first_end[0], time.perf_counter() - start


def main(
    *,
    url: str | None = None,
    each: int = 30,
    round_trip_ms: float = 0,
    output: Output = "text",
) -> None:
    """Commit transactions from many threads.

    Args:
        url: An empty s3://BUCKET/FOLDER, with credentials from the environment, or a local
            folder; None starts SeaweedFS.
        each: Transactions per thread.
        round_trip_ms: Simulated delay of the server started here.
        output: text or json.
    """
    with place_for(url) as (place, options), at_distance(options, round_trip_ms) as options:
        show(run(place, options, each=each), output)


if __name__ == "__main__":
    cyclopts.run(main)
