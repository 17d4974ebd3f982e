"""Time of the statistics of two hundred tables, as one Spark job and sequentially.

Tables are of mixed sizes: a few of many files, many of a few. One process does them sequentially on
one core; Spark does a table per task, the longest first, on two. Both start from scratch each time,
with the same result; the start of Spark is not timed.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import cyclopts

import ledger
from benchmarks.measure import WORKDIR, Figure, Output, Report, Spent, in_turn, question_of, show
from ledger import FileChange, Table
from ledger.table_handle import handle_of
from projections.statistics import Kept, query, refresh
from projections.statistics.session import parallelism_of, spark_session
from projections.statistics.spark_many import refresh_all

_MANY = 20
"""Number of tables after which sizes repeat; each has a quarter fewer files than the previous."""

_A_COMMIT = 500


def run(workdir: Path, *, tables: int, size: int, repeats: int) -> Report:
    root = _lake(workdir, tables, size)
    spark = spark_session()
    # Workers are started, and import their modules, before anything is timed.
    refresh_all(_opened(root)[-4:], spark=spark)
    done: dict[str, int] = {}

    def one_by_one() -> None:
        for each in _emptied(root):
            refresh(handle_of(each).log)
        done["one by one"] = _rows(root)

    def as_one_job() -> None:
        found = refresh_all(_emptied(root), spark=spark)
        assert not [each for each in found if each.problem]
        done["one job"] = _rows(root)

    cases: dict[str, Callable[[], object]] = {"one by one": one_by_one, "one job": as_one_job}
    times = in_turn(cases, repeats)
    assert done["one by one"] == done["one job"]
    processor = {name: Spent() for name in cases}
    for name, case in cases.items():
        with processor[name].timed():
            case()
    alone_s, together_s = (each.cpu_s[0] for each in processor.values())
    alone, together = (times[name].minimum_ns for name in cases)
    return Report(
        question_of(__doc__),
        f"tables={tables} rows={done['one job']}",
        (
            Figure("one after the other, one core", alone / 1e9, "s"),
            Figure(f"one Spark job, {parallelism_of(spark)} cores", together / 1e9, "s"),
            Figure("one Spark job / one after the other", together / alone, "x"),
            Figure("the same, processor time", together_s / alone_s, "x"),
        ),
        (f"the largest has {size:,} file changes; the least of {repeats}",),
    )


def _opened(root: Path) -> list[Table]:
    lake = ledger.open(str(root))
    return [lake.table(f"bench.{name}") for name in lake.tables("bench")]


def _emptied(root: Path) -> list[Table]:
    found = _opened(root)
    for each in found:
        shutil.rmtree(root / handle_of(each).path / "_ledger" / "statistics", ignore_errors=True)
    return found


def _rows(root: Path) -> int:
    kept = [(Kept.of(handle_of(each).log), each.at()) for each in _opened(root)]
    return sum(query.totals(each, at)[-1].record_count for each, at in kept)


def _lake(workdir: Path, tables: int, size: int) -> Path:
    """Return a ledger of some tables; built at the first call and cached."""
    lake = workdir / f"many-{tables}-{size}"
    if lake.exists():
        return lake
    workdir.mkdir(parents=True, exist_ok=True)
    draft = workdir / f".building-{os.getpid()}-{lake.name}"
    handle = ledger.open(str(draft), author="bench")
    handle.create_database("bench")
    schema = ledger.Schema.of({"id": "BIGINT", "shard": "INT"}, partition_keys=["shard"])
    for number in range(tables):
        table = handle.create_table(f"bench.t{number:03}", schema)
        left = max(1, int(size * 0.75 ** (number % _MANY)))
        while left > 0:
            table.append([_file(left - each) for each in range(min(left, _A_COMMIT))])
            left -= _A_COMMIT
    draft.rename(lake)
    return lake


def _file(number: int) -> FileChange:
    return FileChange(
        path=f"data-{number}.parquet",
        partition=(number % 50,),
        record_count=number,
        file_size_in_bytes=number * 97,
        field_ids=True,
    )


def main(
    *,
    tables: int = 200,
    size: int = 20_000,
    repeats: int = 3,
    workdir: Path = WORKDIR,
    output: Output = "text",
) -> None:
    """Compute the statistics of many tables.

    Args:
        tables: Number of tables.
        size: File changes of the largest.
        repeats: Number of repeats of each way; the minimum counts.
        workdir: Folder of the ledger.
        output: text or json.
    """
    show(run(workdir, tables=tables, size=size, repeats=repeats), output)


if __name__ == "__main__":
    cyclopts.run(main)
