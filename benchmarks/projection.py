"""Growth of the cost of projecting one more commit to Paimon with the history.

A table of appended files, projected up to its head; then one more commit is made, of each kind in
turn, and only its projection is timed. A tag or rollback to an older snapshot looks it up in the
checkpoints, which costs the logarithm of their number. For comparison, if installed, pypaimon's own
commit of one row: it writes the row's file, too, so it is no lower bound, only the usual cost of a
Paimon table. There is no fsync on either side.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import cyclopts

from benchmarks.measure import WORKDIR, Figure, Output, Report, Times, once_each, question_of, show
from ledger import (
    AddColumn,
    FileChange,
    Ledger,
    ReplaceSortOrder,
    Schema,
    SetOption,
    SnapshotPlan,
    SortColumn,
    Table,
)
from ledger.ledger_handle import LedgerHandle
from ledger.log.time_travel import head_state
from ledger.opening.context import TableSetting
from ledger.stores.local import Durability, LocalStore
from ledger.table_handle import handle_of
from projections.paimon.materialise import project

FLAT = 1.5
LOOKED_UP = 4.0
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
            for kind, change in KINDS.items():
                cases = {
                    f"{kind} at {size}": _projects(table, change) for size, table in tables.items()
                }
                for name, each in once_each(cases).items():
                    samples.setdefault(name, []).append(each)
            for name, each in once_each(rivals).items():
                samples.setdefault(name, []).append(each)
        times = {name: Times(tuple(each)) for name, each in samples.items()}
        snapshots = [head_state(handle_of(table).log).last_snapshot_id for table in tables.values()]
    figures = [Figure(name, each.median_ns / MILLISECOND, "ms") for name, each in times.items()]
    short, long = min(sizes), max(sizes)
    for kind in KINDS:
        ratio = times[f"{kind} at {long}"].median_ns / times[f"{kind} at {short}"].median_ns
        bound = LOOKED_UP if kind in OF_OLDER_SNAPSHOTS else FLAT
        figures.append(Figure(f"{kind}: at {long} / at {short}", ratio, "x", at_most=bound))
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
    lake = Ledger(LedgerHandle(setting))
    lake.create_database("bench")
    table = lake.create_table("bench.t", Schema.of({"id": "BIGINT", "name": "STRING"}))
    for number in range(snapshots):
        table.append([_file(number)])
    project(handle_of(table))
    return table


def _last(table: Table) -> int:
    return head_state(handle_of(table).log).last_snapshot_id


def _number(table: Table) -> int:
    return head_state(handle_of(table).log).version


KINDS: dict[str, Callable[[Table], object]] = {
    "append": lambda table: table.append([_file(_number(table))]),
    "delete": lambda table: table.delete_files([f"bucket-0/data-{_number(table) - 1}.parquet"]),
    "option": lambda table: table.alter([SetOption("k", f"{_number(table)}")]),
    "column": lambda table: table.alter([AddColumn((f"c{_number(table)}",), "INT")]),
    "layout": lambda table: table.alter([ReplaceSortOrder(_order(table))]),
    "analyze": lambda table: table.commit_snapshot(SnapshotPlan("ANALYZE")),
    "tag": lambda table: table.create_tag(f"t{_number(table)}"),
    "tag an old one": lambda table: table.create_tag("old", snapshot=_last(table) // 2),
    "replace a tag": lambda table: table.replace_tag("old", snapshot=_last(table) // 3),
    "delete a tag": lambda table: table.delete_tag("old"),
    "expire one": lambda table: table.expire_snapshots(before=_earliest(table) + 1),
    "roll back by one": lambda table: table.rollback(snapshot=_last(table) - 1),
}
"""In this order: each builds on the previous one. Deleted files were added right before."""

OF_OLDER_SNAPSHOTS = frozenset({"tag an old one", "replace a tag", "roll back by one"})


def _earliest(table: Table) -> int:
    return head_state(handle_of(table).log).earliest_snapshot_id


def _order(table: Table) -> tuple[SortColumn, ...]:
    is_sorted = bool(head_state(handle_of(table).log).sort_order.fields)
    return () if is_sorted else (SortColumn(("id",)),)


def _projects(table: Table, change: Callable[[Table], object]) -> Callable[[int], object]:
    """Commit a change and return a function that projects it; only the latter is timed."""
    change(table)
    return lambda _: project(handle_of(table))


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
    sizes: tuple[int, ...] = (200, 4_000),
    repeats: int = 20,
    workdir: Path = WORKDIR,
    output: Output = "text",
) -> None:
    """Print the figures."""
    show(run(workdir, sizes=sizes, repeats=repeats), output)


if __name__ == "__main__":
    cyclopts.run(main)
