"""Statistics of tables that engines list the files of, against what plain readers read."""

from __future__ import annotations

import re
from collections import Counter
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.table import StaticTable
from pyiceberg.transforms import IdentityTransform

import ledger
from ledger import FileChange, Ledger, Table, TableAt, UnsupportedError
from ledger.state import IcebergOrigin
from ledger.table_handle import handle_of
from projections.dlf import table_snapshot
from projections.iceberg import Names, verify
from projections.iceberg import statistics_files as publish_distinct
from projections.iceberg import statistics_files as publish_iceberg
from projections.statistics import Kept, query, refresh
from projections.statistics.column_history import (
    column_statistics_at,
    column_statistics_by_snapshot,
)
from projections.statistics.engine_listed import existing_ancestors
from projections.statistics.materialise import LocalEngine
from projections.statistics.partition_views import snapshot_statistics
from projections.statistics.query import StatisticsSource, growth, totals
from projections.statistics.questions import (
    Question,
    Thresholds,
    answer,
    statistics_for_question,
)
from projections.statistics.report import refreshed_statistics, report_of
from tests.projections.delta.importing.writing import Life
from tests.projections.iceberg.importing.writing import COLUMNS, created
from tests.projections.paimon.importing.paimon_source import PaimonSource
from tests.projections.source.reading_all import rows_of
from tests.projections.statistics.test_publish_distinct import ONE

BY_NAME = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "name"), spec_id=0)


def counted(table: Table, at: TableAt) -> StatisticsSource:
    return refreshed_statistics(table, at, LocalEngine(handle_of(table).log), pytest.fail)


def rows_by_partition(table: Table, at: TableAt, key: str) -> dict[str, int]:
    """Counts of the report, by the value of its only key."""
    report = report_of(table, counted(table, at), at, "local")
    assert report.sums["fileCount"] == len(at.files)
    assert report.sums["fileSizeInBytes"] == sum(each.file_size_in_bytes for each in at.files)
    shown = query.render_partitions(report.partitions, report.rendering)
    return {each.spec[key]: each.record_count for each in shown}


def appended(theirs: Any, *names: str) -> None:
    theirs.append(pa.table({"id": pa.array(range(len(names)), pa.int64()), "name": list(names)}))


def iceberg_life(folder: Path) -> Any:
    """Appends, a delete, an overwrite, a rollback, and more."""
    theirs = created(folder, COLUMNS, spec=BY_NAME)
    appended(theirs, "a", "a", "b")
    appended(theirs, "b", "c")
    theirs.delete("name = 'a'")
    back = theirs.metadata.snapshots[1].snapshot_id
    appended(theirs, "d")
    theirs.manage_snapshots().rollback_to_snapshot(back).commit()
    appended(theirs, "e", "b")
    theirs.overwrite(pa.table({"id": pa.array([7], pa.int64()), "name": ["c"]}), "name = 'c'")
    return theirs


def mirrored(theirs: Any, tmp_path: Path) -> Ledger:
    lake = ledger.open(tmp_path / "lake", allowed_locations=[f"file://{tmp_path}"])
    lake.import_table("a.b", theirs.metadata_location)
    return lake


def test_partitions_of_an_iceberg_table_are_what_pyiceberg_reads_at_every_snapshot(
    tmp_path: Path,
) -> None:
    theirs = iceberg_life(tmp_path / "t")
    table = mirrored(theirs, tmp_path).table("a.b")
    for snapshot in theirs.metadata.snapshots:
        read = theirs.scan(snapshot_id=snapshot.snapshot_id).to_arrow()["name"].to_pylist()
        at = table.at(snapshot=snapshot.snapshot_id)
        assert rows_by_partition(table, at, "name") == Counter(read)


def test_the_history_of_an_iceberg_table_is_that_of_the_snapshots_that_led_there(
    tmp_path: Path,
) -> None:
    theirs = iceberg_life(tmp_path / "t")
    table = mirrored(theirs, tmp_path).table("a.b")
    line = [theirs.current_snapshot()]
    while line[-1].parent_snapshot_id is not None:
        line.append(theirs.snapshot_by_id(line[-1].parent_snapshot_id))
    wanted = [
        (each.snapshot_id, len(theirs.scan(snapshot_id=each.snapshot_id).to_arrow()))
        for each in reversed(line)
    ]
    # What was rolled back led nowhere.
    assert len(wanted) < len(theirs.metadata.snapshots)
    at = table.at()
    kept = counted(table, at)
    found = totals(kept, at)
    assert [(each.snapshot_id, each.record_count) for each in found] == wanted
    for each in found:
        assert table.at(version=each.version).state.origin.format_name == "iceberg"
    of_b = growth(kept, at, {"name": "b"})
    assert [each.record_count for each in of_b] == [1, 2, 3]


def test_changes_of_a_snapshot_of_an_engine_are_counted_by_partition(tmp_path: Path) -> None:
    theirs = iceberg_life(tmp_path / "t")
    table = mirrored(theirs, tmp_path).table("a.b")
    third = theirs.metadata.snapshots[2].snapshot_id
    at = table.at(snapshot=third)
    (gone,) = snapshot_statistics(counted(table, at), at)
    assert (dict(gone.spec), gone.record_count, gone.file_count) == ({"name": "a"}, -2, -1)


def test_the_oldest_snapshot_that_is_there_stands_for_those_that_expired(tmp_path: Path) -> None:
    theirs = created(tmp_path / "t", COLUMNS, spec=BY_NAME)
    for name in "abc":
        appended(theirs, name)
    first = theirs.metadata.snapshots[0].snapshot_id
    theirs.maintenance.expire_snapshots().by_id(first).commit()
    for older in sorted((tmp_path / "t/metadata").glob("*.metadata.json"))[:-1]:
        older.unlink()
    table = mirrored(theirs, tmp_path).table("a.b")
    at = table.at()
    kept = counted(table, at)
    assert [each.record_count for each in totals(kept, at)] == [2, 3]
    assert report_of(table, kept, at, "local").opening_snapshot_id == (
        theirs.metadata.snapshots[0].snapshot_id
    )


def test_partitions_of_a_paimon_table_are_what_pypaimon_reads_at_every_snapshot(
    tmp_path: Path,
) -> None:
    source = PaimonSource(tmp_path / "paimon")
    for count in (2, 3, 1):
        source.append(count)
    source.table.rollback_to(2)
    source.append(4)
    lake = ledger.open(tmp_path / "lake", allowed_locations=[f"file://{tmp_path}"])
    lake.import_table("a.b", str(source.folder), format_name="paimon")
    table = lake.table("a.b")
    for snapshot_id in source.snapshots:
        at = table.at(snapshot=snapshot_id)
        builder = source.table.copy({"scan.snapshot-id": str(snapshot_id)}).new_read_builder()
        read = builder.new_read().to_arrow(builder.new_scan().plan().splits())
        assert rows_by_partition(table, at, "kind") == Counter(read["kind"].to_pylist())
    at = table.at()
    found = totals(counted(table, at), at)
    assert [each.snapshot_id for each in found] == source.snapshots
    assert found[-1].record_count == sum(rows_by_partition(table, at, "kind").values())


def test_partitions_of_a_delta_table_are_those_that_delta_reads_after_each_commit(
    tmp_path: Path,
) -> None:
    source = Life(tmp_path / "delta", 5, "number")
    lake = ledger.open(tmp_path / "lake", allowed_locations=[f"file://{tmp_path}"])
    for _ in range(6):
        source.step()
        lake.import_table("a.b", source.folder, format_name="delta")
        table = lake.table("a.b")
        at = table.at()
        kept = counted(table, at)
        # Its files stand in the ledger's own lists, so that what is counted of them is kept.
        assert isinstance(kept, Kept)
        read = Counter(source.table.to_pyarrow_table()["number"].to_pylist())
        report = report_of(table, kept, at, "local")
        assert sorted(report.partitions["record_count"].to_pylist()) == sorted(read.values())
        assert report.sums["fileCount"] == len(source.table.file_uris())


def test_the_statistics_of_a_promoted_table_continue_as_of_any_table(tmp_path: Path) -> None:
    theirs = iceberg_life(tmp_path / "t")
    lake = mirrored(theirs, tmp_path)
    lake.promote("a.b")
    table = lake.table("a.b")
    before = theirs.metadata.snapshots[1].snapshot_id
    old = table.at(snapshot=before)
    read = theirs.scan(snapshot_id=before).to_arrow()["name"].to_pylist()
    assert rows_by_partition(table, old, "name") == Counter(read)
    held = rows_by_partition(table, table.at(), "name")
    assert held == Counter(theirs.scan().to_arrow()["name"].to_pylist())
    more = FileChange(
        path="data/more.parquet",
        partition=("b",),
        record_count=5,
        file_size_in_bytes=9,
        field_ids=True,
    )
    table.append([more])
    assert rows_by_partition(table, table.at(), "name") == {**held, "b": held["b"] + 5}


def test_nothing_is_kept_of_what_an_engine_lists(tmp_path: Path) -> None:
    table = mirrored(iceberg_life(tmp_path / "t"), tmp_path).table("a.b")
    with pytest.raises(UnsupportedError, match="counted on request"):
        refresh(handle_of(table).log)


def test_views_and_objects_of_an_iceberg_table_say_what_its_metadata_says(tmp_path: Path) -> None:
    theirs = iceberg_life(tmp_path / "t")
    table = mirrored(theirs, tmp_path).table("a.b")
    wanted = [
        (each.snapshot_id, int(each.summary["total-records"]), each.summary.operation.value)
        for each in theirs.metadata.snapshots
    ]
    rows = rows_of(table, "snapshots")
    assert [(row["snapshot_id"], row["record_count"], row["operation"]) for row in rows] == wanted
    running = {None: 0}
    for row, snapshot in zip(rows, theirs.metadata.snapshots, strict=True):
        before = running[snapshot.parent_snapshot_id]
        assert before + row["delta_record_count"] == row["record_count"]
        running[snapshot.snapshot_id] = row["record_count"]
        then = table_snapshot(table.at(snapshot=snapshot.snapshot_id).state)
        assert then is not None
        assert (then.record_count, then.file_count) == (row["record_count"], row["file_count"])
    for view in ("files", "partition_changes", "tiles"):
        with pytest.raises(UnsupportedError, match="not in the log"):
            rows_of(table, view)


def test_a_summary_whose_counts_are_none_has_a_row(tmp_path: Path) -> None:
    theirs = created(tmp_path / "t", COLUMNS)
    appended(theirs, "a")
    metadata = Path(theirs.metadata_location.removeprefix("file://"))
    metadata.write_text(re.sub(r'("added-data-files"):"1"', r'\1:"one"', metadata.read_text()))
    [row] = rows_of(mirrored(theirs, tmp_path).table("a.b"), "snapshots")
    assert (row["delta_file_count"], row["delta_record_count"], row["file_count"]) == (0, 1, 1)


def test_a_promoted_tables_statistics_are_published_where_its_readers_look(tmp_path: Path) -> None:
    theirs = iceberg_life(tmp_path / "t")
    lake = mirrored(theirs, tmp_path)
    lake.promote("a.b")
    table = lake.table("a.b")
    refresh(handle_of(table).log)

    of_partitions = publish_iceberg.publish_partition_statistics(
        handle_of(table), Kept.of(handle_of(table).log), table.at()
    )
    newest = table.state.last_snapshot_id
    of_columns = publish_distinct.publish_distinct_counts(
        handle_of(table), table.at(), newest, {1: ONE}, {1: 1}
    )

    root = Path(table.location.removeprefix("file://"))
    named = StaticTable.from_metadata(
        f"{table.location}/{Names(table.state.table_id).metadata(table.state.version)}"
    ).metadata
    ours = [each for each in named.statistics if each.snapshot_id == newest]
    assert [each.statistics_path for each in ours] == [f"{table.location}/{of_columns.path}"]
    (blob,) = ours[0].blob_metadata
    snapshot = named.snapshot_by_id(newest)
    assert snapshot is not None
    assert blob.sequence_number == snapshot.sequence_number
    assert (root / of_columns.path).stat().st_size == ours[0].file_size_in_bytes
    (parts,) = named.partition_statistics
    assert parts.statistics_path == f"{table.location}/{of_partitions.path}"
    assert (root / of_partitions.path).exists()
    assert verify(handle_of(table)).is_empty


def ask(table: Table, question: Question, **bounds: Any) -> list[dict[str, Any]]:
    at = table.at()
    given = Thresholds(**{"now_millis": at.state.time_millis, **bounds})
    found: list[dict[str, Any]] = answer(
        question, counted(table, at), handle_of(table).log, at, given
    ).to_pylist()
    return found


def test_questions_about_an_iceberg_table_are_answered_by_its_own_snapshots_and_times(
    tmp_path: Path,
) -> None:
    theirs = iceberg_life(tmp_path / "t")
    table = mirrored(theirs, tmp_path).table("a.b")
    plans = {
        each.snapshot_id: {
            task.file.file_path: task.file
            for task in theirs.scan(snapshot_id=each.snapshot_id).plan_files()
        }
        for each in theirs.metadata.snapshots
    }
    line = existing_ancestors(table.at().state)
    now = plans[line[-1]]

    by_name = Counter(each.partition[0] for each in now.values())
    rows = ask(table, "compaction")
    assert {row["partition"]: row["file_count"] for row in rows} == {
        f"name={name}": count for name, count in by_name.items()
    }
    grown = ask(table, "growth")
    assert sum(row["snapshot_count"] for row in grown) == len(line)
    assert grown[-1]["record_count"] == sum(each.record_count for each in now.values())

    changed: dict[str, int] = {}
    for before, after in pairwise((0, *line)):
        old, new = plans.get(before, {}), plans[after]
        for path in old.keys() ^ new.keys():
            changed[f"name={(old | new)[path].partition[0]}"] = after
    moments = {each.snapshot_id: each.timestamp_ms for each in theirs.metadata.snapshots}
    there = {
        row["partition"]: row["last_change"] for row in ask(table, "untouched", untouched_days=0)
    }
    assert there == {
        each: datetime.fromtimestamp(moments[changed[each]] / 1000, UTC).isoformat()
        for each in there
    }
    assert there.keys() == {f"name={name}" for name in by_name}
    origin = table.state.origin_of_kind(IcebergOrigin)
    assert {
        row["partition"]: row["last_change_version"]
        for row in ask(table, "untouched", untouched_days=0)
    } == {each: origin.added_in[changed[each]] for each in there}

    # Before the second snapshot there is nothing that only older ones read.
    assert ask(table, "retention", now_millis=moments[line[0]], retained_days=0) == []
    cut = line[-2]
    stays = {path for each in line[line.index(cut) :] for path in plans[each]}
    every = {path: file for plan in plans.values() for path, file in plan.items()}
    gone = [every[path] for path in every.keys() - stays]
    assert gone
    freed = ask(table, "retention", now_millis=moments[cut], retained_days=0)
    assert {row["partition"]: row["freed_file_count"] for row in freed} == {
        f"name={name}": count for name, count in Counter(each.partition[0] for each in gone).items()
    }
    (cost,) = ask(table, "filter", where="name = 'c'")
    assert (cost["file_count"], cost["files_read"]) == (len(now), by_name["c"])
    assert ask(table, "late") == []


def test_rows_of_an_iceberg_table_are_late_by_when_its_snapshots_were_made(tmp_path: Path) -> None:
    theirs = created(tmp_path / "t", COLUMNS, spec=BY_NAME)
    appended(theirs, "2024-01-01", "2024-01-01")
    appended(theirs, "2024-01-01")
    table = mirrored(theirs, tmp_path).table("a.b")

    (row,) = ask(table, "late")

    newest = datetime.fromtimestamp(theirs.metadata.snapshots[-1].timestamp_ms / 1000, UTC)
    assert row["newest_arrival"] == newest.isoformat()
    assert (row["partition"], row["snapshot_count"], row["late_record_count"]) == (
        "name=2024-01-01",
        2,
        3,
    )


def test_questions_about_a_paimon_table_are_answered_by_its_own_snapshots(tmp_path: Path) -> None:
    source = PaimonSource(tmp_path / "paimon")
    for count in (2, 3, 1):
        source.append(count)
    lake = ledger.open(tmp_path / "lake", allowed_locations=[f"file://{tmp_path}"])
    lake.import_table("a.b", str(source.folder), format_name="paimon")
    table = lake.table("a.b")
    live = len(table.at().files)

    assert sum(row["file_count"] for row in ask(table, "compaction")) == live
    assert ask(table, "growth")[-1]["record_count"] == 6
    assert sum(row["file_count"] for row in ask(table, "untouched", untouched_days=0)) == live
    # What only grows frees nothing.
    assert ask(table, "retention", retained_days=0) == []
    assert sum(row["file_count"] for row in ask(table, "filter")) == live


def test_columns_of_an_iceberg_table_are_counted_at_every_snapshot_before_it(
    tmp_path: Path,
) -> None:
    theirs = iceberg_life(tmp_path / "t")
    table = mirrored(theirs, tmp_path).table("a.b")
    at = table.at()

    def read(snapshot_id: int) -> dict[str, tuple[int, str, str]]:
        rows = theirs.scan(snapshot_id=snapshot_id).to_arrow().to_pylist()
        ids: dict[str, list[int]] = {}
        for row in rows:
            ids.setdefault(f"name={row['name']}", []).append(row["id"])
        return {key: (len(each), str(min(each)), str(max(each))) for key, each in ids.items()}

    def by_partition(rows: list[dict[str, Any]]) -> dict[str, tuple[int, str, str]]:
        return {
            row["partition"]: (row["row_count"], row["lower"], row["upper"])
            for row in rows
            if row["column"] == "id" and row["file_count"]
        }

    assert by_partition(column_statistics_at(table, at).to_pylist()) == read(
        at.state.last_snapshot_id
    )
    so_far: dict[str, dict[str, Any]] = {}
    rows = [
        row for row in column_statistics_by_snapshot(table, at).to_pylist() if row["column"] == "id"
    ]
    for snapshot_id in existing_ancestors(at.state):
        so_far |= {row["partition"]: row for row in rows if row["snapshot_id"] == snapshot_id}
        assert by_partition(list(so_far.values())) == read(snapshot_id)


def freed_by(table: Table, **bounds: Any) -> dict[str, int]:
    """Count the files that a retention would free, by partition."""
    at = table.at()
    given = Thresholds(**{"now_millis": at.state.time_millis, "retained_days": 0, **bounds})
    kept = statistics_for_question("retention", table, at, counted(table, at))
    rows = answer("retention", kept, handle_of(table).log, at, given).to_pylist()
    return {row["partition"]: row["freed_file_count"] for row in rows}


def test_a_promoted_paimon_table_is_counted_once_and_says_what_a_retention_frees(
    tmp_path: Path,
) -> None:
    source = PaimonSource(tmp_path / "paimon")
    for count in (2, 3):
        source.append(count)
    lake = ledger.open(tmp_path / "lake", allowed_locations=[f"file://{tmp_path}"])
    lake.import_table("a.b", str(source.folder), format_name="paimon")
    lake.promote("a.b")
    table = lake.table("a.b")
    for _ in range(2):
        # Its files name the engine's manifests, and none of them counts again.
        assert sum(row["file_count"] for row in ask(table, "compaction")) == 4
        assert ask(table, "growth")[-1]["record_count"] == 5
        table.project("paimon")
    assert freed_by(table) == {}
    first, second = (table.at(snapshot=each).files for each in (1, 2))
    table.delete_files([each.path for each in second])
    assert freed_by(table) == {"kind=a": 2, "kind=b": 2}
    assert freed_by(table, retained_days=1) == {}
    table.create_tag("kept", snapshot=1)
    assert sum(freed_by(table).values()) == len(second) - len(first)
    table.rollback(snapshot=1)
    assert ask(table, "growth")[-1]["record_count"] == 2
    assert sum(row["file_count"] for row in ask(table, "compaction")) == len(first)


def test_a_retention_of_a_promoted_iceberg_table_keeps_what_its_branches_read(
    tmp_path: Path,
) -> None:
    theirs = created(tmp_path / "t", COLUMNS, spec=BY_NAME)
    appended(theirs, "a")
    held = theirs.metadata.snapshots[-1].snapshot_id
    theirs.manage_snapshots().create_branch(held, "audit").commit()
    theirs.delete("name = 'a'")
    appended(theirs, "b")
    theirs.delete("name = 'b'")
    appended(theirs, "c")
    table = mirrored(theirs, tmp_path).table("a.b")
    assert freed_by(table) == {"name=b": 1}
    mirrored(theirs, tmp_path).promote("a.b")
    # What its former owner's snapshots read goes with them.
    assert freed_by(table) == {"name=b": 1}
    table.delete_files([each.path for each in table.at().files])
    assert freed_by(table) == {"name=b": 1, "name=c": 1}
    table.rollback(snapshot=held)
    assert freed_by(table) == {"name=b": 1, "name=c": 1}
    assert sum(row["file_count"] for row in ask(table, "compaction")) == 1
    table.expire_snapshots(before=table.state.last_snapshot_id)
    assert freed_by(table) == {}
