"""Views of tables that others own, or owned: what their engines count is shown as they count it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyiceberg.partitioning import PartitionField as IcebergField
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.transforms import IdentityTransform

import ledger
from ledger import FileChange, Ledger, Table, UnsupportedError
from tests.projections.iceberg.importing.writing import appended, created
from tests.projections.paimon.importing.paimon_source import PaimonSource
from tests.projections.source.reading_all import rows_of


def snapshots(table: Table, *names: str) -> list[tuple[Any, ...]]:
    return [tuple(row[name] for name in names) for row in rows_of(table, "snapshots", length=2)]


def test_snapshots_of_paimon_are_shown_whatever_its_source_went_back_to(tmp_path: Path) -> None:
    source = PaimonSource(tmp_path / "paimon")
    for count in (2, 3, 1):
        source.append(count)
    lake = ledger.open(tmp_path / "lake")
    place = str(source.folder)
    lake.import_table("a.b", place, format_name="paimon")
    source.table.rollback_to(2)
    source.append(4)
    source.table.create_tag("v1")
    lake.import_table("a.b", place, format_name="paimon")
    table = lake.table("a.b")
    wanted = [(1, 2, 2), (2, 3, 5), (3, 1, 6), (3, 4, 9)]
    assert snapshots(table, "snapshot_id", "delta_record_count", "record_count") == wanted
    assert set(snapshots(table, "file_count", "file_size_in_bytes")) == {(-1, -1)}
    for each in (1, 2):
        (source.folder / f"snapshot/snapshot-{each}").unlink()
    (source.folder / "snapshot/EARLIEST").write_text("3")
    lake.import_table("a.later", place, format_name="paimon")
    assert snapshots(lake.table("a.later"), "snapshot_id", "record_count") == [(3, 9)]
    assert [row["tag_name"] for row in rows_of(table, "tags")] == ["v1"]
    names = [row["name"] for row in rows_of(table, "columns") if row["schema_id"] == 0]
    assert names == list(table.at().schema.names)
    assert len(rows_of(table, "commits")) == table.state.version + 1
    assert {"commitSnapshot", "createTag"} < {row["type"] for row in rows_of(table, "events")}
    for view in ("files", "partition_changes", "tiles"):
        with pytest.raises(UnsupportedError, match=r"of a\.b .* are not in the log"):
            rows_of(table, view)
    assert_partitions_are_those_of_live_files(table)
    live = len(table.at().files)
    lake.promote("a.b")
    gone = table.at().files[0]
    table.delete_files(gone.path)
    own = [(4, 9, live), (5, 9 - gone.record_count, live - 1)]
    assert snapshots(table, "snapshot_id", "record_count", "file_count")[-2:] == own
    assert [row["path"] for row in rows_of(table, "files")].count(gone.path) == 2


def assert_partitions_are_those_of_live_files(table: Table) -> None:
    wanted: dict[tuple[object, ...], tuple[int, int]] = {}
    for each in table.at().files:
        names = [field.name for field in table.state.specs[each.spec_id].fields]
        key = (each.content, *(f"{n}={v}" for n, v in zip(names, each.partition, strict=True)))
        records, files = wanted.get(key, (0, 0))
        wanted[key] = (records + each.record_count, files + 1)
    found = {
        (row["content"], *(f"{n}={v}" for n, v in row["partition"].items())): (
            row["record_count"],
            row["file_count"],
        )
        for row in rows_of(table, "partitions")
    }
    assert found == wanted


def owned(lake: Ledger, place: str) -> Table:
    lake.import_table("a.b", place)
    lake.promote("a.b")
    return lake.table("a.b")


def test_snapshots_of_a_promoted_table_are_shown_as_icebergs(tmp_path: Path) -> None:
    theirs = created(tmp_path / "t")
    first = appended(theirs, 1, 2, name=["a", "b"])
    table = owned(ledger.open(tmp_path / "lake"), theirs.metadata_location)
    path = f"{table.location}/new.parquet"
    table.append([FileChange(path=path, record_count=5, file_size_in_bytes=9, field_ids=True)])
    table.rollback(snapshot=first)
    found = snapshots(table, "delta_record_count", "record_count", "file_count", "operation")
    assert found[0] == (2, 2, 1, "append")
    assert [each[1:] for each in found[1:]] == [
        (2, 1, "replace"),
        (7, 2, "append"),
        (2, 1, "delete"),
    ]
    assert snapshots(table, "target_snapshot_id")[-1] == (first,)
    assert len(rows_of(table, "files")) >= 2


def test_partitions_of_a_mirrored_iceberg_table_are_those_of_its_live_files(
    tmp_path: Path,
) -> None:
    spec = PartitionSpec(IcebergField(2, 1000, IdentityTransform(), "name"))
    theirs = created(tmp_path / "t", spec=spec)
    appended(theirs, 1, 2, 3, name=["a", "b", None])
    appended(theirs, 4, name=["a"])
    with theirs.update_spec() as update:
        update.add_field("id", IdentityTransform(), "shard")
    appended(theirs, 5, name=["c"])
    theirs.delete("name = 'b'")
    lake = ledger.open(tmp_path / "lake")
    lake.import_table("a.b", theirs.metadata_location)
    table = lake.table("a.b")
    assert table.state.is_mirrored

    assert_partitions_are_those_of_live_files(table)
    partitions = [row["partition"] for row in rows_of(table, "partitions")]
    assert sorted(map(len, partitions)) == [1, 1, 2]
    assert {"name": None} in partitions
