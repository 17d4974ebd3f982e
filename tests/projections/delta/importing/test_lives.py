"""An imported table that is projected again reads as its source does, at every version."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from ledger.table_handle import handle_of

pytest.importorskip("deltalake")

import pyarrow as pa
from deltalake import write_deltalake

import ledger
from ledger import Ledger, Table
from ledger.events import DeltaFollowed
from projections.delta import DELTA
from tests.projections.delta.importing.writing import KEYS, READERS, Life, authors, clean
from tests.readers.test_delta_readers import folder_of


def mirrored(lake: Ledger, life: Life) -> Table:
    lake.import_table("a.b", life.folder, format_name="delta")
    table = lake.table("a.b")
    DELTA.project(handle_of(table))
    assert DELTA.verify(handle_of(table)).is_empty
    return table


def assert_alike(life: Life, table: Table, versions: list[int]) -> None:
    for version in versions:
        for reader in READERS:
            assert reader(folder_of(table), version) == reader(life.folder, version), version


def followed(table: Table) -> list[int]:
    return [
        event.delta_version
        for commit in table.events(1)
        for each in commit.transactions
        for event in each.events
        if isinstance(event, DeltaFollowed)
    ]


@pytest.mark.parametrize("seed", range(2))
def test_every_version_of_a_random_history_reads_as_at_the_source(
    tmp_path: Path, seed: int
) -> None:
    key = random.Random(seed).choice([None, "text", "day"])
    life = Life(tmp_path / "t", seed, key)
    lake = ledger.open(str(tmp_path / "lake"))
    for _ in range(8):
        life.step()
    mirrored(lake, life)
    for _ in range(6):
        life.step()
    table = mirrored(lake, life)
    assert followed(table) == list(range(life.version + 1))
    rng = random.Random(seed)
    assert_alike(life, table, [0, *rng.sample(range(life.version), 2), life.version])
    said = [each.author for commit in table.events(1) for each in commit.transactions]
    assert said == authors(tmp_path / "t")
    at = table.at()
    assert len(at.files) == len(life.table.file_uris())
    assert sum(each.record_count for each in at.files) == life.table.to_pyarrow_table().num_rows


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2))
def test_a_history_of_three_hundred_steps_reads_as_at_the_source(tmp_path: Path, seed: int) -> None:
    life = Life(tmp_path / "t", 10 + seed, random.Random(seed).choice([None, "text", "day"]))
    lake = ledger.open(str(tmp_path / "lake"))
    for _ in range(5):
        for _ in range(60):
            life.step()
        table = mirrored(lake, life)
    assert followed(table) == list(range(life.version + 1))
    assert life.version > 250
    assert_alike(life, table, [*range(0, life.version, 10), life.version])
    for version in range(life.version + 1):
        assert READERS[0](folder_of(table), version) == READERS[0](life.folder, version), version


@pytest.mark.parametrize("key", KEYS)
def test_partitions_of_every_type_come_in(tmp_path: Path, key: str) -> None:
    life = Life(tmp_path / "t", 3, key)
    life.write("append")
    assert_alike(life, mirrored(ledger.open(str(tmp_path / "lake")), life), [1])


def test_each_partition_column_of_a_table_has_a_field_id_of_its_own(tmp_path: Path) -> None:
    rows = pa.table({"id": [1], "day": ["a"], "hour": [2]})
    write_deltalake(str(tmp_path / "t"), rows, partition_by=["day", "hour"])
    lake = ledger.open(str(tmp_path / "lake"))
    lake.import_table("a.b", str(tmp_path / "t"), format_name="delta")

    fields = lake.table("a.b").state.spec.fields

    assert [(each.name, each.field_id) for each in fields] == [("day", 1000), ("hour", 1001)]


def test_a_log_that_lost_its_beginning_begins_where_its_checkpoint_does(tmp_path: Path) -> None:
    life = Life(tmp_path / "t", 5, "day")
    for _ in range(9):
        life.write("append")
    life.table.create_checkpoint()
    for _ in range(2):
        life.step()
    clean(tmp_path / "t", 9)
    table = mirrored(ledger.open(str(tmp_path / "lake")), life)
    assert followed(table) == [9, 10, 11]
    assert_alike(life, table, [9, 10, 11])


def test_versions_that_a_mirror_missed_are_imported_as_one(tmp_path: Path) -> None:
    life = Life(tmp_path / "t", 6)
    lake = ledger.open(str(tmp_path / "lake"))
    life.step()
    mirrored(lake, life)
    for _ in range(7):
        life.step()
    life.table.create_checkpoint()
    life.write("append")
    clean(tmp_path / "t", 8)
    table = mirrored(lake, life)
    assert followed(table) == [0, 1, 8, 9]
    assert_alike(life, table, [8, 9])
    assert len(table.at().files) == len(life.table.file_uris())
