"""Cost of keeping Iceberg's files up to date, and its growth with the history.

First, 200 columns are added one by one, each projected at once; PyIceberg does the same with a
SQLite catalog, if it is installed. Then one snapshot is committed to tables of different age and
only its projection is timed: the part that grows with the history is copied as bytes, which are
reported, too. Then all but the last snapshots expire, so that the metadata file is short, and the
long ones are written and deleted no more; one change of each kind is projected on tables of
different age, in processor time; all of them are as far behind a checkpoint. The bytes written
besides metadata files are compared, too. Manifests merge every N appends: only `--repeats 200`
covers a whole cycle. There is no fsync on our side; PyIceberg syncs its catalog.

PyIceberg takes minutes to reach the 200th column; `--parts history` leaves the columns out. On ext4
a folder never shrinks: after ten thousand files, creating one stays slower, which a `--workdir` in
memory avoids.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Literal

import cyclopts

from benchmarks.measure import WORKDIR, Figure, Output, Report, Times, once_each, question_of, show
from benchmarks.rivals import rivals
from ledger import AddColumn, FileChange, Ledger, Schema, SetOption, SnapshotPlan, Table
from ledger.ledger_handle import LedgerHandle
from ledger.log.layout import CHECKPOINT_INTERVAL
from ledger.log.time_travel import head_state
from ledger.opening.context import TableSetting
from ledger.stores.local import Durability, LocalStore
from ledger.table_handle import handle_of
from projections.iceberg.materialise import project
from projections.iceberg.position import Names

Part = Literal["columns", "history"]
PARTS: tuple[Part, ...] = ("columns", "history")
MILLISECOND = 1e6
FASTER = 20.0
LAST = 10
KILOBYTE = 1e3
FLAT = 1.2
_PREVIOUS = 100
"""Number of previous metadata files kept by default, after which each commit deletes one."""
MORE_KB = 100
"""Additional kilobytes that a change may write after the longest history: a full manifest."""


def run(
    workdir: Path,
    *,
    columns: int,
    sizes: tuple[int, ...],
    repeats: int,
    parts: tuple[Part, ...] = PARTS,
) -> Report:
    workdir.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=workdir) as folder:
        figures = _columns(Path(folder), columns) if "columns" in parts else []
        aged = sizes if "history" in parts else ()
        tables = {size: _aged(Path(folder) / str(size), size, min(aged)) for size in aged}
        samples: dict[int, list[int]] = {size: [] for size in aged}
        for _ in range(repeats if tables else 0):
            cases = {str(size): _project_one(table) for size, table in tables.items()}
            for name, each in once_each(cases).items():
                samples[int(name)].append(each)
        for size, table in tables.items():
            times = Times(tuple(samples[size]))
            figures.append(
                Figure(f"project one more at {size}", times.median_ns / MILLISECOND, "ms")
            )
            figures.append(Figure(f"its metadata file at {size}", _metadata_kb(table), "kB"))
        figures += _kinds(tables, repeats) if tables else []
        snapshots = [head_state(handle_of(table).log).last_snapshot_id for table in tables.values()]
    return Report(question_of(__doc__), f"columns={columns} snapshots={snapshots}", tuple(figures))


def _columns(folder: Path, columns: int) -> list[Figure]:
    """Add columns one by one; return the cost of the last ones."""
    schema = Schema.of({"c0": "STRING"})
    table = _lake(folder / "columns").create_table("bench.t", schema)

    def add(number: int) -> None:
        table.alter([AddColumn((f"n{number}",), "INT")])
        project(handle_of(table))

    ours = _last(add, columns)
    name = f"add column {columns} and project it"
    figures = [Figure(name, ours, "ms")]
    rival = rivals("add column").get("PyIceberg")
    if rival is not None:
        theirs = _last(rival(folder / "rival", 1), columns)
        figures.append(Figure(f"add column {columns} with PyIceberg", theirs, "ms"))
        figures.append(Figure("PyIceberg / ledger", theirs / ours, "x", at_least=FASTER))
    return figures


def _last(add: Callable[[int], object], columns: int) -> float:
    samples = []
    for number in range(columns):
        start = time.perf_counter_ns()
        add(number)
        samples.append(time.perf_counter_ns() - start)
    return median(samples[-LAST:]) / MILLISECOND


def _lake(folder: Path) -> Ledger:
    store = LocalStore(str(folder), durable=Durability.NONE)
    lake = Ledger(LedgerHandle(TableSetting(store=store, storage_options={}, author="bench")))
    lake.create_database("bench")
    return lake


def _file(number: int) -> FileChange:
    return FileChange(
        path=f"data/{number}.parquet", record_count=10, file_size_in_bytes=1000, field_ids=True
    )


def _aged(folder: Path, snapshots: int, least: int) -> Table:
    """Return a projected table with some snapshots.

    It is as far behind its last checkpoint as the one with the fewest snapshots: a projection folds
    up to a hundred commits from there, whatever the history.
    """
    # Expired files are deleted at once, so that later measurements exclude it.
    options = {"ledger.reader-grace": "0 s"}
    schema = Schema.of({"id": "BIGINT", "name": "STRING"}, options=options)
    table = _lake(folder).create_table("bench.t", schema)
    for number in range((least - snapshots) % CHECKPOINT_INTERVAL):
        table.alter([SetOption("place", str(number))])
    for number in range(snapshots):
        table.append([_file(number)])
    project(handle_of(table))
    return table


def _project_one(table: Table) -> Callable[[int], object]:
    """Commit a snapshot and return a function that projects it; only the latter is timed."""
    table.append([_file(head_state(handle_of(table).log).last_snapshot_id)])
    return lambda _: project(handle_of(table))


def _kinds(tables: dict[int, Table], repeats: int) -> list[Figure]:
    """Return the cost of projecting a change of each kind, on tables of each age."""
    for table in tables.values():
        table.expire_snapshots(
            before=max(1, head_state(handle_of(table).log).last_snapshot_id - LAST)
        )
        for _ in range(_PREVIOUS):
            project(handle_of(table))
            _append(table)
        project(handle_of(table))
    figures = []
    for kind, change in KINDS.items():
        took: dict[int, list[int]] = {size: [] for size in tables}
        written: dict[int, list[int]] = {size: [] for size in tables}
        for _ in range(max(1, repeats // 2)):
            for size, table in tables.items():
                change(table)
                before = _files(table)
                start = time.process_time_ns()
                project(handle_of(table))
                took[size].append(time.process_time_ns() - start)
                new = _files(table).items() - before.items()
                written[size].append(sum(length for _, length in new))
        figures += [
            Figure(f"project {kind} at {size}", median(each) / MILLISECOND, "ms")
            for size, each in took.items()
        ]
        shortest, longest = min(tables), max(tables)
        more = median(written[longest]) - median(written[shortest])
        figures += [
            Figure(
                f"{kind}: time after the longest history / the shortest",
                median(took[longest]) / median(took[shortest]),
                "x",
                at_most=FLAT,
            ),
            Figure(
                f"{kind}: written more after the longest history",
                more / KILOBYTE,
                "kB",
                at_most=MORE_KB,
            ),
        ]
    return figures


def _files(table: Table) -> dict[str, int]:
    """Return the lengths of a projection's files, except those that list the snapshots."""
    folder = Path(table.location.removeprefix("file://")) / "metadata"
    return {
        each.name: each.stat().st_size
        for each in folder.iterdir()
        if not each.name.endswith(".metadata.json")
    }


def _append(table: Table) -> None:
    table.append([_file(head_state(handle_of(table).log).last_snapshot_id)])


def _old(table: Table) -> str:
    """Return a file from the middle of the table."""
    files = table.at().files
    return files[len(files) // 2].path


def _remove_old(table: Table) -> None:
    table.delete_files([_old(table)])


def _overwrite_old(table: Table) -> None:
    new = _file(head_state(handle_of(table).log).last_snapshot_id)
    table.commit_snapshot(SnapshotPlan("OVERWRITE", (new,), delete=(_old(table),)))


def _remove(table: Table) -> None:
    _append(table)
    project(handle_of(table))
    table.delete_files([f"data/{head_state(handle_of(table).log).last_snapshot_id - 1}.parquet"])


def _roll_back(table: Table) -> None:
    _remove(table)
    project(handle_of(table))
    table.rollback(snapshot=head_state(handle_of(table).log).last_snapshot_id - 1)


def _tag(table: Table) -> None:
    table.create_tag(f"t{head_state(handle_of(table).log).version}")


def _expire(table: Table) -> None:
    table.expire_snapshots(before=head_state(handle_of(table).log).earliest_snapshot_id + 1)


KINDS: dict[str, Callable[[Table], object]] = {
    "an append": _append,
    "a removal": _remove,
    "a removal of an old file": _remove_old,
    "an overwrite of an old file": _overwrite_old,
    "a rollback": _roll_back,
    "a tag": _tag,
    "an expiry": _expire,
}


def _metadata_kb(table: Table) -> float:
    state = head_state(handle_of(table).log)
    path = f"{handle_of(table).path}/{Names(state.table_id).metadata(state.version)}"
    return len(handle_of(table).log.store.read(path) or b"") / 1000


def main(
    *,
    columns: int = 200,
    sizes: tuple[int, ...] = (10, 1_000, 10_000),
    repeats: int = 20,
    parts: tuple[Part, ...] = PARTS,
    workdir: Path = WORKDIR,
    output: Output = "text",
) -> None:
    """Print the figures.

    Args:
        columns: Number of columns added one by one.
        sizes: Snapshots of the tables of different age.
        repeats: Number of repeats of each change; the median counts.
        parts: The parts to measure.
        workdir: Folder of the tables; its file system is measured.
        output: text or json.
    """
    show(run(workdir, columns=columns, sizes=sizes, repeats=repeats, parts=parts), output)


if __name__ == "__main__":
    cyclopts.run(main)
