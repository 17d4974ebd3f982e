"""Latency and requests of reading newest commits and older states from an object store.

The ledger is on a real server on this machine (SeaweedFS) or in a bucket of yours, sealed as its
maintenance leaves it. The newest ten commits and an older state are read through a newly opened
ledger, as by a command; then older states by version, by snapshot and by time through an open
table. Every read or existence check is a request, whether batched or not.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import cyclopts

from benchmarks.bucket import Counting, place_for, upload
from benchmarks.history import SEED, TABLE, WIDTH, lake_at
from benchmarks.lives import lake_on
from benchmarks.measure import WORKDIR, Figure, Output, Report, question_of, show
from ledger import Table
from ledger.stores import LocalStore, open_store

MILLISECOND = 1e6
COMMAND_MS = 400
_NEWEST = 10


def run(
    url: str,
    options: Mapping[str, Any],
    workdir: Path,
    *,
    size: int,
    repeats: int,
    width: int = WIDTH,
) -> Report:
    store = Counting(open_store(url, options))
    lake = LocalStore(lake_at(workdir, size, width=width))
    upload(lake, lake.keys(""), store)
    choice = random.Random(SEED)  # noqa: S311 - a workload, not a secret

    def opened() -> Table:
        return lake_on(store).table(TABLE)

    table = opened()
    head = table.state
    begin, end = table.at(version=0).state.time_millis, head.time_millis
    ask: dict[str, Callable[[], object]] = {
        "log --limit 10": lambda: list(islice(opened().entries(), _NEWEST + 1)),
        "show --at": lambda: opened().at(version=choice.randrange(size)).state,
        "as of a version": lambda: table.at(version=choice.randrange(size)),
        "as of a snapshot": lambda: table.at(snapshot=1 + choice.randrange(head.last_snapshot_id)),
        "as of a time": lambda: table.at(timestamp=choice.randrange(begin, end)),
    }
    took: dict[str, list[int]] = {name: [] for name in ask}
    asked: dict[str, list[int]] = {name: [] for name in ask}
    for _ in range(repeats):
        for name, each in ask.items():
            before, start = store.asked, time.perf_counter_ns()
            each()
            took[name].append(time.perf_counter_ns() - start)
            asked[name].append(store.asked - before)
    return Report(
        question_of(__doc__),
        f"commits={size} (version, snapshot)={(head.version, head.last_snapshot_id)}",
        tuple(_figures(took, asked)),
    )


def _figures(
    took: Mapping[str, Sequence[int]], asked: Mapping[str, Sequence[int]]
) -> Iterator[Figure]:
    for name, each in took.items():
        most = COMMAND_MS if name in {"log --limit 10", "show --at"} else None
        yield Figure(name, statistics.median(each) / MILLISECOND, "ms", at_most=most)
        yield Figure(f"{name}, requests", statistics.median(asked[name]), "requests")
        yield Figure(f"{name}, most requests", max(asked[name]), "requests")


def main(
    *,
    url: str | None = None,
    size: int = 20_000,
    repeats: int = 25,
    workdir: Path = WORKDIR,
    output: Output = "text",
) -> None:
    """Read the newest commits and older states of a table of 200 columns in a bucket.

    Args:
        url: An empty s3://BUCKET/FOLDER, with credentials from the environment; None starts
            SeaweedFS.
        size: Commits.
        repeats: Number of repeats of each; the median counts.
        workdir: Folder of the cached histories.
        output: text or json.
    """
    with place_for(url) as (place, options):
        show(run(place, options, workdir, size=size, repeats=repeats), output)


if __name__ == "__main__":
    cyclopts.run(main)
