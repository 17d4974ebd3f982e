"""Updates of engines that are rejected, or that must not make a table unreadable."""

from __future__ import annotations

from pathlib import Path

import pytest
from attrs import evolve

from ledger import InvalidInputError, LedgerError, SetOption, UnsupportedError
from ledger.model.iceberg_layout import PartitionField, PartitionSpec
from ledger.model.iceberg_objects import IcebergSnapshot, StatisticsFile
from ledger.table_handle import TableHandle
from projections.iceberg import StaleBaseError, read_metadata
from projections.iceberg import rest_updates as u
from projections.iceberg.metadata_schema import NestedField, PlainType
from projections.iceberg.position import METADATA_PATH
from projections.iceberg.rest_updates import TableUpdate
from projections.iceberg.served import load
from projections.iceberg.table_metadata import PREVIOUS_VERSIONS
from tests.lakes import START_MILLIS
from tests.projections.iceberg.serving.lakes import lake_in, location_in, send, small_table


@pytest.fixture(name="table")
def _table(tmp_path: Path) -> TableHandle:
    return small_table(lake_in(tmp_path / "lake"))


def assert_unchanged(table: TableHandle) -> None:
    assert table.state.version == 0
    assert load(table, table.state).metadata.properties == {}


@pytest.mark.parametrize("key", ["location", METADATA_PATH])
@pytest.mark.parametrize(
    "place", ["{root}/other", "file://{root}/other", "{root}/lake/../other", "s3://other/t"]
)
def test_a_table_moves_to_no_place_that_clients_may_not_name(
    key: str, place: str, table: TableHandle, tmp_path: Path
) -> None:
    url = place.format(root=tmp_path)
    update: TableUpdate = (
        u.SetLocation(location=url)
        if key == "location"
        else u.SetProperties(updates={METADATA_PATH: url})
    )
    with pytest.raises(UnsupportedError):
        send(table, update)
    assert_unchanged(table)
    assert not (tmp_path / "other").exists()


def test_metadata_files_follow_the_table_to_another_place_in_the_ledger(tmp_path: Path) -> None:
    lake = lake_in(tmp_path / "lake")
    table, other = small_table(lake), f"{lake.url}/elsewhere"
    before = load(table, table.state).location
    send(table, u.SetLocation(location=f"{other}/"))
    moved = load(table, table.state)
    assert before.startswith(location_in(lake))
    assert moved.location.startswith(f"{other}/metadata/")
    assert [each.metadata_file for each in moved.metadata.metadata_log] == [before]
    send(table, u.SetProperties(updates={METADATA_PATH: f"{lake.url}/files"}))
    last = load(table, table.state)
    assert last.location.startswith(f"{lake.url}/files/0")
    assert last.metadata.location == other
    assert [each.metadata_file for each in last.metadata.metadata_log] == [before, moved.location]


def test_a_length_of_the_metadata_log_that_is_no_number_is_rejected(table: TableHandle) -> None:
    with pytest.raises(InvalidInputError, match=PREVIOUS_VERSIONS):
        send(table, u.SetProperties(updates={PREVIOUS_VERSIONS: "none"}))
    assert_unchanged(table)


def test_a_table_stays_readable_whatever_length_of_its_log_a_program_sets(tmp_path: Path) -> None:
    lake = lake_in(tmp_path / "lake")
    table = small_table(lake)
    lake.table("a.t").alter([SetOption(PREVIOUS_VERSIONS, "none")])
    loaded = load(table, table.state)
    assert read_metadata(loaded.body) == loaded.metadata
    send(table, u.SetProperties(updates={PREVIOUS_VERSIONS: "1"}))
    assert len(load(table, table.state).metadata.metadata_log) == 1


@pytest.mark.parametrize("number", [0, -1])
def test_a_value_that_no_log_can_hold_is_rejected_and_named(
    number: int, table: TableHandle
) -> None:
    file = StatisticsFile(
        snapshot_id=number,
        statistics_path="file:/x.puffin",
        file_size_in_bytes=1,
        file_footer_size_in_bytes=1,
        blob_metadata=(),
    )
    with pytest.raises(InvalidInputError, match=f"snapshot-id is {number}, .* nothing was written"):
        send(table, u.SetStatistics(statistics=file))
    assert_unchanged(table)


def test_a_batch_with_one_wrong_update_commits_none(table: TableHandle) -> None:
    with pytest.raises(LedgerError):
        send(table, u.SetProperties(updates={"a": "b"}), u.SetDefaultSpec(spec_id=7))
    assert_unchanged(table)


@pytest.mark.parametrize("key", ["location", METADATA_PATH])
@pytest.mark.parametrize(
    "inside", ["_ledger/log", "_Ledger/caches", "a.db/t/_ledger", "_ledger", f"{'n' * 256}/t"]
)
def test_a_table_moves_to_no_folder_of_the_ledger_itself(
    key: str, inside: str, table: TableHandle, tmp_path: Path
) -> None:
    url = f"file://{tmp_path}/lake/{inside}"
    update: TableUpdate = (
        u.SetLocation(location=url)
        if key == "location"
        else u.SetProperties(updates={METADATA_PATH: url})
    )
    with pytest.raises(InvalidInputError, match="choose another place"):
        send(table, update)
    assert_unchanged(table)


def test_a_property_that_is_a_secret_is_not_recorded(table: TableHandle) -> None:
    with pytest.raises(InvalidInputError, match="a ledger keeps no credentials"):
        send(table, u.SetProperties(updates={"s3.secret-access-key": "SECRET"}))
    assert_unchanged(table)


def test_a_snapshot_of_a_schema_that_was_removed_is_stale(table: TableHandle) -> None:
    with pytest.raises(StaleBaseError, match="schema 7 of snapshot 5 was removed"):
        send(table, u.AddSnapshot(snapshot=_snapshot(schema_id=7)))
    assert_unchanged(table)


def test_no_column_gets_the_name_of_a_partition_field_of_another_column(
    table: TableHandle,
) -> None:
    field = PartitionField("p", "bucket[4]", 1)
    send(table, u.AddSpec(spec=PartitionSpec(1, (field,))), u.SetDefaultSpec(spec_id=-1))
    schema = load(table, table.state).metadata.schema
    column = NestedField(99, "p", PlainType("string"), required=False)
    wider = evolve(schema, fields=(*schema.fields, column))
    with pytest.raises(InvalidInputError, match="column p has the name of a partition field"):
        send(table, u.AddSchema(schema=wider), u.SetCurrentSchema(schema_id=-1))
    assert table.state.version == 1


def _snapshot(schema_id: int) -> IcebergSnapshot:
    return IcebergSnapshot(
        snapshot_id=5,
        sequence_number=1,
        timestamp_ms=START_MILLIS,
        manifest_list="file:///nowhere",
        summary={"operation": "append"},
        schema_id=schema_id,
    )
