"""Does projecting one more snapshot to Paimon's files cost more as history grows?

A table of appended files, projected up to its head; then one snapshot more is committed and only
its projection is timed. Beside it, where it can be imported, pypaimon's own commit of one row: it
writes the row's file, too, so it is no floor, only what a Paimon table costs otherwise. Nothing is
synced on either side.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import cyclopts

from benchmarks.measure import WORKDIR, Figure, Output, Report, Times, once_each, question_of, show
from ledger import FileChange, Ledger, Schema, Table
from ledger.log.travel import head_state
from ledger.stores.local import Durability, LocalStore
from ledger.table_setting import TableSetting
from projections.paimon.materialise import project

FLAT = 1.5
MILLISECOND = 1e6
RIVAL_HISTORY = 200


def run(workdir: Path, *, sizes: tuple[int, ...], repeats: int) -> Report:
    workdir.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=workdir) as folder:
        tables = {size: _table(Path(folder) / str(size), size) for size in sizes}
        rivals: dict[str, Callable[[int], object]] = {}
        if find_spec("pypaimon"):
            for size in sorted({min(sizes), min(max(sizes), RIVAL_HISTORY)}):
                name = f"pypaimon's own commit at {size}"
                rivals[name] = _rival(Path(folder) / f"rival-{size}", size)
        samples: dict[str, list[int]] = {}
        for _ in range(repeats):
            cases = {f"project one more at {n}": _project_one(each) for n, each in tables.items()}
            for name, each in once_each({**cases, **rivals}).items():
                samples.setdefault(name, []).append(each)
        times = {name: Times(tuple(each)) for name, each in samples.items()}
        snapshots = [head_state(table.log).last_snapshot_id for table in tables.values()]
    figures = [Figure(name, each.median_ns / MILLISECOND, "ms") for name, each in times.items()]
    shortest, longest = (times[f"project one more at {size}"] for size in (min(sizes), max(sizes)))
    ratio = longest.median_ns / shortest.median_ns
    figures.append(Figure(f"at {max(sizes)} / at {min(sizes)}", ratio, "x", at_most=FLAT))
    notes = () if find_spec("pypaimon") else ("pypaimon is not installed here",)
    return Report(question_of(__doc__), f"snapshots={snapshots}", tuple(figures), notes)


def _file(number: int) -> FileChange:
    return FileChange(
        path=f"bucket-0/data-{number}.parquet", record_count=10, file_size_in_bytes=1000
    )


def _table(folder: Path, snapshots: int) -> Table:
    setting = TableSetting(
        store=LocalStore(str(folder), durable=Durability.NONE), storage_options={}, author="bench"
    )
    lake = Ledger(setting)
    lake.create_database("bench")
    table = lake.create_table("bench.t", Schema.of({"id": "BIGINT", "name": "STRING"}))
    for number in range(snapshots):
        table.append([_file(number)])
    project(table)
    return table


def _project_one(table: Table) -> Callable[[int], object]:
    """Commit a snapshot and return what projects it; the caller times only the second."""
    table.append([_file(head_state(table.log).last_snapshot_id)])
    return lambda _: project(table)


def _rival(folder: Path, snapshots: int) -> Callable[[int], object]:
    import pyarrow as pa
    from pypaimon import CatalogFactory
    from pypaimon import Schema as PaimonSchema

    catalog = CatalogFactory.create({"warehouse": str(folder)})
    catalog.create_database("bench", ignore_if_exists=True)
    columns = pa.schema([("id", pa.int64()), ("name", pa.string())])
    catalog.create_table(
        "bench.t", PaimonSchema.from_pyarrow_schema(columns), ignore_if_exists=False
    )
    row = pa.table({"id": [1], "name": ["a"]}, schema=columns)

    def commit(_number: int) -> object:
        table: Any = catalog.get_table("bench.t")
        builder = table.new_batch_write_builder()
        write, landing = builder.new_write(), builder.new_commit()
        write.write_arrow(row)
        landing.commit(write.prepare_commit())
        write.close()
        landing.close()
        return None

    for _ in range(snapshots):
        commit(0)
    return commit


def main(
    *,
    sizes: tuple[int, ...] = (10, 10_000),
    repeats: int = 40,
    workdir: Path = WORKDIR,
    output: Output = "text",
) -> None:
    """Print the figures."""
    show(run(workdir, sizes=sizes, repeats=repeats), output)


if __name__ == "__main__":
    cyclopts.run(main)
