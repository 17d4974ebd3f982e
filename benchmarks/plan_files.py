"""Speed and memory of planning a selective filter over a million files.

Through Arrow tables, as tables are planned, and over objects, as lists of files are; the lower
bound is pyarrow's own filter over the same Parquet, on the partition column alone. Memory is
Arrow's peak while planning, and for objects their size before. Processor time, since other work may
share cores.
"""

from __future__ import annotations

import random
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import cyclopts
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from benchmarks.measure import (
    WORKDIR,
    Figure,
    Output,
    Report,
    in_turn,
    processor_ns,
    question_of,
    show,
)
from ledger.files.change_lists import (
    changes_from_table,
    read_changes_table,
    table_to_parquet,
    to_table,
)
from ledger.model.file_change import FileChange
from ledger.model.iceberg_layout import PartitionField, PartitionSpec
from ledger.model.schema import Schema
from ledger.model.single_values import date_text
from ledger.planning.plan import FilePlan, TableFilter, plan_files, plan_tables

SEED = 42
DAYS = 1000
BATCH = 50_000
MOST_OVER_READING = 2
SCHEMA = Schema.of({"id": "BIGINT", "ts": "TIMESTAMP(6)", "category": "STRING"})
SPECS = (
    PartitionSpec(0, (PartitionField("ts_day", "day", 1, field_id=1000),)),
    PartitionSpec(1, (PartitionField("ts_month", "month", 1, field_id=1001),)),
)
SELECTIVE = "ts >= '2022-09-26' AND id < 500000"
BY_METRICS = "id < 5000"


def batches(size: int) -> Iterator[list[FileChange]]:
    random_of = random.Random(SEED)  # noqa: S311 - a workload, not a secret
    for start in range(0, size, BATCH):
        yield [_file(random_of, nth, size) for nth in range(start, min(start + BATCH, size))]


def _file(random_of: random.Random, number: int, size: int) -> FileChange:
    day = 18_262 + number * DAYS // size
    low = random_of.randrange(1_000_000)
    by_day = number % 10 != 0
    return FileChange(
        path=f"data/{date_text(day)}/part-{number:09d}.parquet",
        partition=(date_text(day) if by_day else 600 + (day - 18_262) * 12 // 365,),
        spec_id=0 if by_day else 1,
        record_count=1000,
        file_size_in_bytes=1 << 20,
        value_counts={0: 1000, 1: 1000, 2: 1000},
        null_value_counts={0: 0, 1: 0, 2: 5},
        lower_bounds={0: _hex(low), 1: _hex(day * 86_400_000_000), 2: b"a".hex()},
        upper_bounds={0: _hex(low + 999), 1: _hex((day + 1) * 86_400_000_000 - 1), 2: b"z".hex()},
    )


def _hex(value: int) -> str:
    return value.to_bytes(8, "little", signed=True).hex()


def run_at(workdir: Path, size: int) -> Path:
    """Return the Parquet file of a table's live files, built once."""
    path = workdir / f"live-files-{size}.parquet"
    if not path.exists():
        workdir.mkdir(parents=True, exist_ok=True)
        path.write_bytes(
            table_to_parquet(pa.concat_tables(to_table(each) for each in batches(size)))
        )
    return path


def run(workdir: Path, *, size: int, repeats: int) -> Report:
    path = run_at(workdir, size)

    def plan(where: str) -> FilePlan:
        return plan_tables(
            lambda: [read_changes_table(path.read_bytes())], TableFilter(SCHEMA, SPECS, where, {})
        )

    def floor() -> int:
        table = parquet.read_table(path, columns=["spec_id", "partition"])
        first = pc.list_element(table["partition"], 0)
        kept = pc.and_(pc.equal(table["spec_id"], 0), pc.greater_equal(first, '"2022-09-26"'))
        return len(table.filter(kept))

    pa.default_memory_pool().release_unused()
    before = pa.default_memory_pool().bytes_allocated()
    tracemalloc.start()
    selective, by_metrics = plan(SELECTIVE), plan(BY_METRICS)
    _, python_peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    arrow_peak = pa.default_memory_pool().max_memory() - before
    sample = changes_from_table(read_changes_table(path.read_bytes()).slice(0, min(size, BATCH)))

    times = in_turn(
        {
            "floor": floor,
            "read": lambda: read_changes_table(path.read_bytes()),
            "selective": lambda: plan(SELECTIVE),
            "metrics": lambda: plan(BY_METRICS),
            "objects": lambda: plan_files(sample, schema=SCHEMA, specs=SPECS, where=SELECTIVE),
        },
        repeats,
        processor_ns,
    )
    took = {name: each.minimum_ns / 1e9 for name, each in times.items()}
    return Report(
        question_of(__doc__),
        f"files={size} kept={len(selective.files)} by metrics alone={len(by_metrics.files)}",
        (
            Figure("selective filter", size / took["selective"], "files/s"),
            Figure("selective filter", took["selective"], "s"),
            Figure(
                "selective filter / reading the Parquet alone",
                took["selective"] / took["read"],
                "x",
                at_most=MOST_OVER_READING,
            ),
            Figure("floor: pyarrow's filter on the partition", took["floor"], "s"),
            Figure("selective filter / floor", took["selective"] / took["floor"], "x"),
            Figure("reading the Parquet alone", took["read"], "s"),
            Figure("filter on metrics alone", took["metrics"], "s"),
            Figure("over objects", len(sample) / took["objects"], "files/s"),
            Figure("most memory: Arrow", arrow_peak / 1e6, "MB"),
            Figure("most memory: Python", python_peak / 1e6, "MB"),
        ),
        (f"over objects: a sample of {len(sample)} files, made beforehand",),
    )


def main(
    *, size: int = 1_000_000, repeats: int = 2, workdir: Path = WORKDIR, output: Output = "text"
) -> None:
    """Plan a table of many files.

    Args:
        size: Files.
        repeats: Number of repeats of each part; the minimum counts.
        workdir: Folder of the cached list of files.
        output: text or json.
    """
    show(run(workdir, size=size, repeats=repeats), output)


if __name__ == "__main__":
    cyclopts.run(main)
