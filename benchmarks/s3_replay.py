"""Latency of replaying a table's log from an object store, with and without segments.

The log is on a real server on this machine (SeaweedFS) or in a bucket of yours. Both ways read
along the hash chain, decode and fold; without segments each commit is a request.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import cyclopts

import ledger
from benchmarks.bucket import Counting, place_for, upload
from benchmarks.history import TABLE, WIDTH, fingerprint, lake_at
from benchmarks.measure import WORKDIR, Figure, Output, Report, once_each, question_of, show
from benchmarks.replay import replay
from ledger.history.verifying.caches import missing_segments
from ledger.history.verifying.subject import Subject
from ledger.stores import LocalStore, open_store
from ledger.table_handle import handle_of
from tests.log.long_logs import Without

MILLISECOND = 1e6
TIMES_CHEAPER = 10


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
    upload(lake, (each for each in lake.keys("") if "/segments/" not in each), store)
    table = ledger.open(url, options).table(TABLE)
    subject = Subject(TABLE, handle_of(table).log, has_files=True)
    began = time.perf_counter_ns()
    made = list(missing_segments(subject))
    for each in made:
        store.replace(each.path, each.body)
    sealing_ns = time.perf_counter_ns() - began
    logs = {"segments": subject.on(store), "files": subject.on(Without(store))}
    asked: dict[str, int] = {}
    states = {fingerprint(table.state)}

    def case(name: str, _number: int) -> None:
        store.asked = 0
        states.add(fingerprint(replay(logs[name])))
        asked[name] = store.asked

    # No warm-up: without segments that takes longer than all the rest.
    cases = {name: partial(case, name) for name in logs}
    rounds = [once_each(cases) for _ in range(repeats)]
    assert len(states) == 1
    took = {name: statistics.median(each[name] for each in rounds) / MILLISECOND for name in logs}
    return Report(
        question_of(__doc__),
        f"{fingerprint(table.state)} commits={size} segments={len(made)}",
        (
            Figure("replay through segments", took["segments"], "ms"),
            Figure("replay of the log's files", took["files"], "ms"),
            Figure(
                "files / segments", took["files"] / took["segments"], "x", at_least=TIMES_CHEAPER
            ),
            Figure("requests through segments", asked["segments"], "requests"),
            Figure("requests for the log's files", asked["files"], "requests"),
            Figure("sealing, a segment", sealing_ns / MILLISECOND / max(1, len(made)), "ms"),
        ),
    )


def main(
    *,
    url: str | None = None,
    size: int = 10_000,
    repeats: int = 1,
    workdir: Path = WORKDIR,
    output: Output = "text",
) -> None:
    """Replay a table of 200 columns from a bucket.

    Args:
        url: An empty s3://BUCKET/FOLDER, with credentials from the environment; None starts
            SeaweedFS.
        size: Commits.
        repeats: Number of repeats of each way; the median counts.
        workdir: Folder of the cached histories.
        output: text or json.
    """
    with place_for(url) as (place, options):
        show(run(place, options, workdir, size=size, repeats=repeats), output)


if __name__ == "__main__":
    cyclopts.run(main)
