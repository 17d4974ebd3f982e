"""What do files that follow cost a commit, and how far behind are they while commits keep coming?

Two tables get the same snapshots, one by one: files of three formats follow one of them. Their
commits are timed in blocks, in turn, and files are waited for between blocks, so that no table pays
for the other's. Then commits come at a steady rate, and freshness is asked now and then.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import cyclopts

from benchmarks.measure import WORKDIR, Figure, Output, Report, question_of, show
from ledger import FileChange, Ledger, Schema, Table
from ledger import open as open_ledger

FORMATS = "iceberg,paimon,delta"
TIMES_NONE = 1.1
MILLISECOND = 1e6
LOOKS_EVERY = 25


def run(workdir: Path, *, blocks: int, block: int, rate: int, seconds: float) -> Report:
    with tempfile.TemporaryDirectory(dir=workdir) as folder:
        lake = open_ledger(folder, author="bench")
        lake.create_database("shop")
        tables = {name: _table(lake, name, name == "followed") for name in ("none", "followed")}
        figures = [*_latency(lake, tables, blocks, block)]
        figures += _lag(lake, tables["followed"], rate, round(rate * seconds))
        behind = [each.behind for each in tables["followed"].freshness()]
        landed = [each.state.last_snapshot_id for each in tables.values()]
    return Report(question_of(__doc__), f"landed={landed} behind={behind}", tuple(figures))


def _table(lake: Ledger, name: str, is_followed: bool) -> Table:  # noqa: FBT001 - which of the two
    options = {"ledger.formats": FORMATS} | ({"ledger.follow": FORMATS} if is_followed else {})
    table = lake.create_table(f"shop.{name}", Schema.of({"id": "BIGINT"}, options=options))
    _commit(table, -1)
    return table


def _commit(table: Table, number: int) -> None:
    file = FileChange(
        path=f"data/{number}.parquet", record_count=1, file_size_in_bytes=9, field_ids=True
    )
    table.append([file])


def _latency(lake: Ledger, tables: dict[str, Table], blocks: int, block: int) -> Iterator[Figure]:
    medians: dict[str, list[float]] = {name: [] for name in tables}
    for turn in range(blocks):
        for name, table in tables.items():
            lake.close()
            times = []
            for number in range(turn * block, (turn + 1) * block):
                begun = time.perf_counter_ns()
                _commit(table, number)
                times.append(time.perf_counter_ns() - begun)
            medians[name].append(statistics.median(times))
    none, followed = (statistics.median(each) for each in medians.values())
    ratios = [one / other for one, other in zip(medians["followed"], medians["none"], strict=True)]
    yield Figure("commit, nothing follows", none / MILLISECOND, "ms")
    yield Figure("commit, three formats follow", followed / MILLISECOND, "ms")
    yield Figure(
        "three formats / nothing, in pairs", statistics.median(ratios), "x", at_most=TIMES_NONE
    )


def _lag(lake: Ledger, table: Table, rate: int, commits: int) -> Iterator[Figure]:
    lake.close()
    most_behind, most_millis = 0, 0
    first = table.state.last_snapshot_id + 1_000_000
    begun = time.perf_counter()
    for number in range(commits):
        time.sleep(max(0.0, begun + number / rate - time.perf_counter()))
        _commit(table, first + number)
        if number % LOOKS_EVERY == 0:
            stands = table.freshness()
            most_behind = max(most_behind, *(each.behind for each in stands))
            most_millis = max(most_millis, *(each.millis for each in stands))
    took = time.perf_counter() - begun
    waited = time.perf_counter()
    lake.close()
    yield Figure("commits a second that came", commits / took, "1/s")
    yield Figure("most commits behind meanwhile", most_behind, "commits")
    yield Figure("longest behind meanwhile", most_millis / 1000, "s")
    yield Figure("until all is there afterwards", time.perf_counter() - waited, "s")


def main(
    *,
    blocks: int = 7,
    block: int = 100,
    rate: int = 100,
    seconds: float = 20,
    workdir: Path = WORKDIR,
    output: Output = "text",
) -> None:
    """Commit to a table that nothing follows, and to one that three formats follow.

    Args:
        blocks: How many blocks of commits each table gets, in turn.
        block: How many commits a block has.
        rate: Commits a second while the lag is looked at.
        seconds: For so long.
        workdir: The file system that is measured.
        output: text or json.
    """
    workdir.mkdir(parents=True, exist_ok=True)
    show(run(workdir, blocks=blocks, block=block, rate=rate, seconds=seconds), output)


if __name__ == "__main__":
    cyclopts.run(main)
