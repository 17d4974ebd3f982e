"""Laws of Iceberg's files over lives with every hazard, read as Java and PyIceberg read them."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.table import StaticTable

import ledger
from ledger import (
    FileChange,
    Schema,
    Table,
)
from ledger.table_handle import handle_of
from projections.iceberg import ICEBERG, IcebergFiles, advance, expected, read_metadata, verify
from projections.iceberg import manifest_writing as layout
from projections.materialising import Materialisation
from tests.lakes import orders
from tests.projections.iceberg.hazards import COLUMNS, hard_life, try_step
from tests.projections.iceberg.projecting import (
    DELETED,
    Left,
    metadata_names,
)
from tests.thorough import some

SEEDS = some(range(3), 1)


@pytest.fixture
def _small_manifests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "MOST_ENTRIES", 4)


def assert_found_alike(table: Table) -> None:
    """Assert that what stands on the store is what a run from nothing makes."""
    assert Left.by(table).newest(table) == expected(handle_of(table))
    assert verify(handle_of(table)).is_empty


@pytest.mark.usefixtures("_small_manifests")
@pytest.mark.parametrize("seed", SEEDS)
def test_a_hard_history_in_steps_ends_as_in_one_run_and_java_reads_every_version(
    seed: int,
) -> None:
    table = hard_life(seed)
    rng = random.Random(seed)
    for version in sorted(rng.sample(range(table.state.version), 4)):
        advance(handle_of(table), version=version)
    ICEBERG.project(handle_of(table))
    assert_found_alike(table)

    every = Materialisation(IcebergFiles(lambda _: True)).expected(handle_of(table))
    for version in range(table.state.version + 1):
        metadata = read_metadata(every[metadata_names(table, version)[0]])
        then = table.at(version=version).state
        assert metadata.default_spec_id == then.default_spec_id
        assert metadata.last_partition_id == then.last_partition_id
        assert metadata.default_sort_order_id == then.default_order_id
        assert metadata.schema.identifier_field_ids == then.schema.identifier_field_ids


@pytest.mark.usefixtures("_small_manifests")
@pytest.mark.parametrize("seed", SEEDS)
def test_totals_and_manifests_are_those_of_the_live_files_whatever_their_spec(seed: int) -> None:
    table = hard_life(seed + 10)
    ICEBERG.project(handle_of(table))
    left = Left.by(table)

    for snapshot in left.metadata(table.state.version, table)["snapshots"]:
        live = list(table.at(snapshot=snapshot["snapshot-id"]).files)
        entries = [each for each in left.entries(snapshot) if each["status"] != DELETED]
        found = Counter(each["path"] for each in entries)
        assert found == Counter(f"{table.location}/{each.path}" for each in live)
        data = [each for each in live if each.content == "data"]
        deletes = [each for each in live if each.content != "data"]
        wanted = {
            "total-data-files": len(data),
            "total-delete-files": len(deletes),
            "total-records": sum(each.record_count for each in data),
            "total-position-deletes": sum(each.record_count for each in deletes),
            "total-files-size": sum(each.file_size_in_bytes for each in live),
        }
        assert {name: int(snapshot["summary"][name]) for name in wanted} == wanted


@pytest.mark.parametrize("seed", SEEDS)
def test_pyiceberg_finds_the_live_files_of_every_snapshot_in_a_folder_of_a_strange_name(
    tmp_path: Path, seed: int
) -> None:
    lake = ledger.open(str(tmp_path / "a b%20ü"))
    options = {"ledger.formats": "iceberg", "format-version": str(1 + seed)}
    table = orders(lake, Schema.of(COLUMNS, options=options))
    rng = random.Random(seed)
    for _ in range(30):
        try_step(table, rng)
    ICEBERG.project(handle_of(table))
    name = metadata_names(table, table.state.version)[0]
    read = StaticTable.from_metadata(f"{table.location}/{name}")

    for snapshot in read.metadata.snapshots:
        live = {f"{table.location}/{each.path}": each for each in _files(table, snapshot)}
        # PyIceberg cannot say that there is none.
        if live:
            files = read.inspect.files(snapshot.snapshot_id).to_pylist()
            assert sorted(each["file_path"] for each in files) == sorted(live)
            assert all(each["spec_id"] == live[each["file_path"]].spec_id for each in files)
        partitions = read.inspect.partitions(snapshot.snapshot_id).to_pylist()
        data = [each for each in live.values() if each.content == "data"]
        assert sum(each["file_count"] for each in partitions) == len(data)
        assert sum(each["record_count"] for each in partitions) == sum(
            each.record_count for each in data
        )


def _files(table: Table, snapshot: Any) -> list[FileChange]:
    return list(table.at(snapshot=snapshot.snapshot_id).files)
