"""Tables whose snapshots name Iceberg manifest lists: what PyIceberg says of its own tables."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import TYPE_CHECKING, Any

import fastavro
import pyarrow as pa
import pytest

from ledger import DamagedLogError, SnapshotPlan, UnsupportedError
from ledger.table_handle import handle_of
from projections.statistics import Kept, query, rebuild, refresh, verify
from projections.statistics.spark_executors import SparkEngine
from projections.statistics.spark_source import LogSource
from tests.projections.statistics.iceberg_writer import COLUMNS, IcebergWriter
from tests.projections.statistics.lives import listed_partitions
from tests.projections.statistics.paimon_writer import rows
from tests.projections.statistics.test_manifest_lists import counted, version_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def a_life(root: Path, format_version: int = 2) -> IcebergWriter:
    writer = IcebergWriter(root, format_version=format_version)
    writer.append(rows(20))
    writer.append([(1, None, "b"), *rows(3)])
    # Whole files go, and a file is written again with fewer rows.
    writer.delete("day = '2024-01-01'")
    writer.delete("id = 4")
    writer.overwrite(rows(6, start=2), "kind = 'a'")
    writer.append([(2, dt.date(2024, 1, 1), "b")])
    return writer


@pytest.mark.parametrize("format_version", [1, 2])
def test_every_snapshot_counts_what_pyiceberg_counts(tmp_path: Path, format_version: int) -> None:
    writer = a_life(tmp_path, format_version)
    table = writer.table
    last = table.state.last_snapshot_id

    assert last > 6
    for snapshot_id in range(1, last + 1):
        wanted = writer.partitions(snapshot_id)
        assert counted(table, version_of(table, snapshot_id)) == wanted, snapshot_id

    refresh(handle_of(table).log)
    assert counted(table) == writer.partitions(last)
    assert verify(handle_of(table).log).is_empty


def test_the_first_snapshot_holds_what_was_there_before(tmp_path: Path) -> None:
    writer = IcebergWriter(tmp_path)
    for each in (rows(9), rows(4)):
        columns = [list(values) for values in zip(*each, strict=True)]
        writer.theirs.append(pa.table(columns, schema=COLUMNS))
    facts = {"base_manifest_list": writer.theirs.metadata.snapshots[1].manifest_list}
    writer.table.commit_snapshot(SnapshotPlan("APPEND", commit_user="x", facts=facts))

    assert counted(writer.table) == writer.partitions(2)


def test_a_files_time_is_that_of_the_snapshot_that_added_it(tmp_path: Path) -> None:
    writer = IcebergWriter(tmp_path)
    writer.append(rows(3))
    moment = writer.table.state.effective_millis
    writer.append([(1, None, None)])

    found = listed_partitions(Kept.of(handle_of(writer.table).log), writer.table.at())

    times = {each.spec["day"]: each.last_file_creation_time for each in found}
    assert times.pop("__DEFAULT_PARTITION__") == writer.table.state.effective_millis
    assert set(times.values()) == {moment}


def test_a_rollback_is_the_difference_of_two_lists(spark: SparkSession, tmp_path: Path) -> None:
    writer = a_life(tmp_path)
    table = writer.table
    seen = {each: writer.partitions(each) for each in range(1, table.state.last_snapshot_id + 1)}
    for target in (2, 5, 1):
        table.rollback(snapshot=target)
        seen[table.state.last_snapshot_id] = seen[target]

    for snapshot_id, wanted in seen.items():
        assert counted(table, version_of(table, snapshot_id)) == wanted, snapshot_id
    refresh(handle_of(table).log, SparkEngine(spark, LogSource.of(table)))
    assert verify(handle_of(table).log).is_empty


def test_statistics_begin_with_the_first_list_that_is_there(tmp_path: Path) -> None:
    writer = a_life(tmp_path)
    table = writer.table
    last = table.state.last_snapshot_id
    for each in writer.theirs.metadata.snapshots[:3]:
        Path(each.manifest_list.removeprefix("file://")).unlink()
    table.expire_snapshots(before=4)

    totals = query.totals(Kept.of(handle_of(table).log), table.at())

    assert [each.snapshot_id for each in totals] == list(range(4, last + 1))
    for snapshot_id in range(4, last + 1):
        assert counted(table, version_of(table, snapshot_id)) == writer.partitions(snapshot_id)
    refresh(handle_of(table).log)
    assert verify(handle_of(table).log).is_empty
    rebuild(handle_of(table).log)
    assert counted(table) == writer.partitions(last)


@pytest.mark.parametrize("harm", ["cut", "garbage", "gone"])
def test_the_error_of_a_damaged_list_names_its_file_and_snapshot(tmp_path: Path, harm: str) -> None:
    writer = IcebergWriter(tmp_path)
    writer.append(rows(3))
    path = Path(writer.theirs.metadata.snapshots[0].manifest_list.removeprefix("file://"))
    body = path.read_bytes()
    match harm:
        case "cut":
            path.write_bytes(body[:-20])
        case "garbage":
            path.write_bytes(b"x" * len(body))
        case "gone":
            path.unlink()

    with pytest.raises(DamagedLogError, match=path.name) as raised:
        refresh(handle_of(writer.table).log)
    assert "snapshot 1" in str(raised.value)


def test_the_error_of_a_manifest_with_an_unknown_spec_names_its_file(tmp_path: Path) -> None:
    writer = IcebergWriter(tmp_path)
    writer.append(rows(3))
    path = Path(writer.theirs.metadata.snapshots[0].manifest_list.removeprefix("file://"))
    with path.open("rb") as file:
        reader_of_list: Any = fastavro.reader(file)
        schema, said = reader_of_list.writer_schema, dict(reader_of_list.metadata)
        (listed,) = reader_of_list
    named = Path(listed["manifest_path"]).name
    kept = {key: value for key, value in said.items() if not key.startswith("avro.")}
    with path.open("wb") as file:
        fastavro.writer(file, schema, [listed | {"partition_spec_id": 99}], metadata=kept)

    with pytest.raises(DamagedLogError, match=rf"{named}.*partition spec 99 does not exist"):
        refresh(handle_of(writer.table).log)


def test_a_list_outside_of_the_tables_store_is_rejected(tmp_path: Path) -> None:
    writer = IcebergWriter(tmp_path)
    facts = {"base_manifest_list": "s3://elsewhere/metadata/snap-1.avro"}
    writer.table.commit_snapshot(SnapshotPlan("APPEND", commit_user="x", facts=facts))

    with pytest.raises(UnsupportedError, match="s3://elsewhere/metadata/snap-1.avro is outside"):
        refresh(handle_of(writer.table).log)
