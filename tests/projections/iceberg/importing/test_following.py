"""A mirrored table: exactly once, after a kill anywhere, and owned by its source."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyiceberg.table.statistics import StatisticsFile
from pyiceberg.types import LongType

import ledger
from ledger import (
    AlreadyExistsError,
    InvalidInputError,
    Ledger,
    NotFoundError,
    Schema,
    StoreError,
    UnsupportedError,
)
from ledger.events import PartitionSpecUpdated
from ledger.events.imported import SnapshotAdded
from ledger.state.iceberg_origin import IcebergOrigin
from ledger.stores import MemoryStore
from ledger.table_handle import handle_of
from tests.lakes import lake_on, memory
from tests.projections.iceberg.importing.writing import COLUMNS, appended, created, sql_catalog
from tests.projections.importing.what_came import now, transactions_of


def written(folder: Path) -> str:
    """A table with a few snapshots, of which only the last metadata file is left."""
    theirs = created(folder)
    for each in range(3):
        appended(theirs, each, name=["x"])
    theirs.manage_snapshots().create_tag(theirs.metadata.snapshots[0].snapshot_id, "v1").commit()
    for older in sorted((folder / "metadata").glob("*.metadata.json"))[:-2]:
        older.unlink()
    return theirs.metadata_location


def mirrored(tmp_path: Path, store: MemoryStore | None = None) -> tuple[Any, Ledger]:
    theirs = created(tmp_path / "t")
    appended(theirs, 1, name=["x"])
    lake = lake_on(store or memory(), clock=now)
    lake.import_table("a.b", theirs.metadata_location)
    return theirs, lake


def test_its_files_are_listed_and_planned_by_what_its_engines_manifests_say(tmp_path: Path) -> None:
    theirs = created(tmp_path / "t")
    first = appended(theirs, 1, 2, name=["x", "y"])
    appended(theirs, 3, name=["z"])
    lake = ledger.open(str(tmp_path / "lake"))
    lake.import_table("a.b", theirs.metadata_location)
    table = lake.table("a.b")
    wanted = {str(each.file.file_path): each.file for each in theirs.scan().plan_files()}
    found = {each.path: each for each in table.at().files}
    assert found.keys() == wanted.keys()
    assert [each.record_count for each in found.values()] == [1, 2]
    (planned,) = table.at().plan("id > 2").files
    assert [planned.file.path] == [
        str(each.file.file_path) for each in theirs.scan("id > 2").plan_files()
    ]
    assert len(table.at(snapshot=first).files) == 1
    with pytest.raises(
        UnsupportedError, match="imported from Iceberg and is owned there; read it by iceberg"
    ):
        table.project("paimon")


def test_a_name_that_is_taken_is_rejected(tmp_path: Path) -> None:
    theirs, lake = mirrored(tmp_path)
    lake.create_table("a.own", Schema.of({"id": "INT"}))
    with pytest.raises(AlreadyExistsError, match="is the ledger's own"):
        lake.import_table("a.own", theirs.metadata_location)
    other = created(tmp_path / "other")
    with pytest.raises(AlreadyExistsError, match="it is another table"):
        lake.import_table("a.b", other.metadata_location)


def test_a_spec_of_the_source_comes_once_however_often_it_is_looked_at(tmp_path: Path) -> None:
    theirs, lake = mirrored(tmp_path)
    with theirs.update_spec() as update:
        update.add_identity("name")
    for number in (2, 3, 4):
        appended(theirs, number, name=["y"])
        lake.import_table("a.b", theirs.metadata_location)
    specs = [
        event.spec_id
        for _, _, _, events in transactions_of(lake)
        for event in events
        if isinstance(event, PartitionSpecUpdated)
    ]
    assert specs == [1]


def with_statistics(lake: Ledger) -> list[int]:
    return [*lake.table("a.b").state.puffin_files]


def test_statistics_that_the_source_takes_away_go_here_too(tmp_path: Path) -> None:
    theirs, lake = mirrored(tmp_path)
    snapshot_id = appended(theirs, 2, name=["y"])
    puffin = StatisticsFile.model_validate(
        {
            "snapshot-id": snapshot_id,
            "statistics-path": f"{theirs.location()}/metadata/ndv.puffin",
            "file-size-in-bytes": 9,
            "file-footer-size-in-bytes": 3,
            "blob-metadata": [],
        }
    )
    with theirs.update_statistics() as update:
        update.set_statistics(puffin)
    lake.import_table("a.b", theirs.metadata_location)
    assert with_statistics(lake) == [snapshot_id]
    with theirs.update_statistics() as update:
        update.remove_statistics(snapshot_id)
    lake.import_table("a.b", theirs.metadata_location)
    assert with_statistics(lake) == []


def test_a_source_whose_manifests_are_gone_is_rejected_before_anything_is_written(
    tmp_path: Path,
) -> None:
    theirs = created(tmp_path / "t")
    appended(theirs, 1, name=["x"])
    for each in (tmp_path / "t/metadata").glob("*-m0.avro"):
        each.unlink()
    lake = lake_on(memory(), clock=now)
    with pytest.raises(NotFoundError, match="which main points to, cannot be read"):
        lake.import_table("a.b", theirs.metadata_location)
    assert not lake.is_begun


def test_bad_sources_are_reported_in_a_line(tmp_path: Path) -> None:
    lake = lake_on(memory(), clock=now)
    (tmp_path / "empty").mkdir()
    (tmp_path / "other/metadata").mkdir(parents=True)
    (tmp_path / "other/metadata/readme.txt").write_text("no")
    half = created(tmp_path / "half").metadata_location.removeprefix("file://")
    Path(half).write_bytes(Path(half).read_bytes()[:-20])
    bad: list[tuple[str, type[Exception], str]] = [
        ("nowhere", NotFoundError, "no folder metadata/"),
        ("empty", NotFoundError, "no folder metadata/"),
        ("other", InvalidInputError, "holds no metadata file"),
        ("half", InvalidInputError, "is not Iceberg table metadata"),
        ("gone.metadata.json", NotFoundError, "does not exist"),
    ]
    for name, error, said in bad:
        with pytest.raises(error, match=said) as refused:
            lake.import_table("a.b", str(tmp_path / name))
        assert "\n" not in str(refused.value)
    with pytest.raises(InvalidInputError, match="credentials|user|password"):
        lake.import_table("a.b", "s3://me:secret@bucket/t")
    assert not lake.is_begun


def test_a_catalog_is_asked_by_pyicebergs_own_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog = sql_catalog(tmp_path, monkeypatch)
    theirs = catalog.create_table("s.t", COLUMNS)
    appended(theirs, 1, name=["x"])
    lake = ledger.open(str(tmp_path / "lake"))
    assert lake.import_table("a.b", "here:s.t").source == "here:s.t"
    assert lake.import_table("a.b", theirs.metadata_location).transactions == 0
    closed: list[str] = []
    monkeypatch.setattr(type(catalog), "close", lambda each: closed.append(each.name))
    appended(theirs, 2, name=["y"])
    assert lake.import_table("a.b", "here:s.t").transactions == 1
    assert lake.tables_to_import("here:") == {"s.t": "here:s.t"}
    assert closed == ["here", "here"]
    with pytest.raises(NotFoundError, match="catalog here has no table s.none"):
        lake.import_table("a.c", "here:s.none")
    with pytest.raises(StoreError, match="catalog nowhere cannot load"):
        lake.import_table("a.c", "nowhere:s.t")


def test_a_kept_snapshot_stays_the_one_of_its_commit_when_its_parent_expires(
    tmp_path: Path,
) -> None:
    theirs = created(tmp_path / "theirs")
    first, second = (appended(theirs, each, name=["a"]) for each in (1, 2))
    with theirs.manage_snapshots() as refs:
        refs.create_tag(second, "kept")
    lake = ledger.open(tmp_path / "lake", allowed_locations=[str(tmp_path)])
    lake.import_table("a.b", str(tmp_path / "theirs"))
    table = lake.table("a.b")
    before = table.at(snapshot=second).state
    tagged = table.state.tags["kept"]
    with theirs.update_schema() as columns:
        columns.add_column("later", LongType())
    theirs.maintenance.expire_snapshots().by_id(first).commit()
    assert theirs.snapshots()[0].parent_snapshot_id is None

    lake.import_table("a.b", str(tmp_path / "theirs"))

    after = table.at(snapshot=second)
    assert table.state.snapshot_ids == (second,)
    assert (after.version, after.state.updated_at) == (before.version, before.updated_at)
    assert "later" not in after.schema.names
    assert table.state.tags["kept"] == tagged
    ours = table.state.origin
    assert isinstance(ours, IcebergOrigin)
    assert ours.snapshots[second].parent_snapshot_id is None
    commits = handle_of(table).events()
    events = [event for it in commits for each in it.transactions for event in each.events]
    assert sum(isinstance(each, SnapshotAdded) for each in events) == 2
    assert lake.import_table("a.b", str(tmp_path / "theirs")).transactions == 0
