"""Iceberg's clients read tables that Paimon's engines write, and are told why where they cannot."""

from __future__ import annotations

import random
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.table import StaticTable

import ledger
from ledger import (
    AddColumn,
    DropColumn,
    InvalidChangeError,
    RenameColumn,
    Schema,
    UnsupportedError,
    UpdateColumnType,
)
from ledger.cli import main
from ledger.model.instant import SnapshotInstant
from ledger.state.table import TableState
from ledger.stores import LocalStore
from ledger.table_handle import TableHandle, handle_of
from projections.iceberg.rest_commit import commit_updates
from projections.iceberg.served import load
from projections.paimon.served_rollback import rollback_table
from tests.faults import Died, DiesAfter
from tests.lakes import lake_on
from tests.projections.iceberg.serving.catalog import ServedCatalog
from tests.projections.iceberg.serving.paimon_engine import COLUMNS, PaimonEngine, texts_of
from tests.projections.paimon.importing.paimon_source import PaimonSource
from tests.projections.paimon.importing.paimon_source import rows as rows_of
from tests.readers.engines import duckdb_rows
from tests.thorough import some


@pytest.fixture(name="engine")
def _engine(tmp_path: Path) -> PaimonEngine:
    return PaimonEngine(tmp_path / "lake")


def by_iceberg(engine: PaimonEngine, **scan: Any) -> list[str]:
    table = ServedCatalog(handle_of(engine.lake)).load_table("a.b")
    return texts_of(table.scan(**scan).to_arrow())


def loaded_rows(
    table: TableHandle, snapshot_id: int | None = None, *, at: TableState | None = None
) -> list[str]:
    found = StaticTable.from_metadata(load(table, at or table.state).location)
    return texts_of(found.scan(snapshot_id=snapshot_id).to_arrow())


def test_each_version_has_the_rows_that_the_engine_reads(engine: PaimonEngine) -> None:
    assert by_iceberg(engine) == []
    engine.append(1, 2)
    first = engine.rows()
    assert by_iceberg(engine) == first
    engine.alter(AddColumn("more", "STRING"), RenameColumn("name", "title"))
    engine.append(3, 4)
    assert by_iceberg(engine) == engine.rows()
    engine.overwrite(5)
    assert by_iceberg(engine) == engine.rows()
    assert by_iceberg(engine, snapshot_id=1) == first == engine.rows(**{"scan.snapshot-id": "1"})
    kept = [each for each in engine.rows() if "'kind': 'a'" in each]
    assert by_iceberg(engine, row_filter="kind = 'a'") == kept


def test_the_snapshots_say_what_the_engine_did(engine: PaimonEngine) -> None:
    engine.append(1, 2)
    engine.append(3)
    engine.overwrite(5)
    found = ServedCatalog(handle_of(engine.lake)).load_table("a.b")
    summaries = [each.summary for each in found.snapshots() if each.summary is not None]
    operations = [each.operation.value for each in summaries]
    assert operations == ["append", "append", "overwrite"]
    names = ("added-records", "deleted-records", "total-records", "engine-name")
    said = [[each.additional_properties.get(name) for name in names] for each in summaries]
    assert said == [
        ["2", None, "2", "paimon"],
        ["1", None, "3", "paimon"],
        ["1", "2", "2", "paimon"],
    ]
    assert [each.parent_snapshot_id for each in found.snapshots()] == [None, 1, 2]
    entries = found.inspect.entries(snapshot_id=3).to_pylist()
    assert sorted(each["status"] for each in entries) == [0, 1, 2, 2]
    assert "ledger.formats" not in found.properties


@pytest.mark.parametrize("seed", some(range(20), 3))
def test_a_mirrored_table_has_the_rows_of_its_owner_through_its_life(
    seed: int, tmp_path: Path
) -> None:
    source = PaimonSource(tmp_path / "theirs")
    lake = ledger.open(tmp_path / "lake")
    for _ in source.life(seed, 6):
        lake.import_table("a.b", str(source.folder), format_name="paimon")
        table = handle_of(lake.table("a.b"))
        assert loaded_rows(table) == rows_of(source.table)
        for each in source.snapshots:
            then = rows_of(source.table, scan_snapshot_id=str(each))
            assert loaded_rows(table, each) == then


def test_duckdb_reads_the_same_rows(engine: PaimonEngine) -> None:
    engine.append(1, 2)
    engine.alter(RenameColumn("name", "title"), AddColumn("more", "STRING"))
    engine.append(3)
    location = load(engine.handle, engine.handle.state).location
    found = duckdb_rows(Path(location.removeprefix("file://")))
    assert sorted(map(str, found)) == engine.rows()


def test_a_primary_key_is_the_reason(tmp_path: Path) -> None:
    schema = Schema.of(COLUMNS, primary_keys=("id",), options={"bucket": "1"})
    keyed = PaimonEngine(tmp_path / "lake", schema)
    with pytest.raises(UnsupportedError, match="only Paimon's merge finds the newest rows"):
        load(keyed.handle, keyed.handle.state)


@pytest.mark.parametrize(
    ("columns", "options", "reason"),
    [
        ({"a": "TIME(3)"}, {}, "keep a TIME as milliseconds in 4 bytes"),
        (
            {"a": "BLOB"},
            {"row-tracking.enabled": "true", "data-evolution.enabled": "true"},
            "column a: Iceberg has no BLOB",
        ),
        ({"a": "INT"}, {"type": "format-table"}, "it is a 'format-table'"),
        ({"a": "INT"}, {"query-auth.enabled": "true"}, "ask the catalog which rows"),
        ({"a": "INT"}, {"scan.fallback-branch": "b"}, "are read from a branch"),
    ],
)
def test_what_iceberg_cannot_express_is_the_reason(
    columns: dict[str, str], options: dict[str, str], reason: str, tmp_path: Path
) -> None:
    schema = Schema.of({"id": "BIGINT", **columns}, options=options)
    engine = PaimonEngine(tmp_path / "lake", schema)
    with pytest.raises(UnsupportedError, match=reason):
        load(engine.handle, engine.handle.state)


def test_files_that_newer_schemas_cast_are_the_reason_until_they_are_gone(
    engine: PaimonEngine,
) -> None:
    engine.append(1, 2)
    engine.alter(UpdateColumnType("id", "STRING"))
    with pytest.raises(UnsupportedError, match="only ever widens types"):
        load(engine.handle, engine.handle.state)
    engine.overwrite(3, 4)
    assert by_iceberg(engine) == engine.rows()
    found = load(engine.handle, engine.handle.state).metadata
    assert [each.snapshot_id for each in found.snapshots] == [1, 2]


def test_a_name_of_two_columns_is_the_reason(engine: PaimonEngine) -> None:
    engine.append(1, 2)
    engine.alter(DropColumn("name"), AddColumn("name", "STRING"))
    engine.append(3)
    with pytest.raises(UnsupportedError, match="the name would refer to field"):
        load(engine.handle, engine.handle.state)
    engine.overwrite(4, 5)
    assert by_iceberg(engine) == engine.rows()
    found = load(engine.handle, engine.handle.state).metadata
    # A mapping of names has one meaning for all snapshots.
    assert [each.snapshot_id for each in found.snapshots] == [3]


EVOLUTION = {"row-tracking.enabled": "true", "data-evolution.enabled": "true"}


def test_rows_in_several_files_are_the_reason(tmp_path: Path) -> None:
    engine = PaimonEngine(tmp_path / "lake", Schema.of(COLUMNS, options=EVOLUTION))
    engine.append(1, 2, 3)
    assert by_iceberg(engine) == engine.rows()
    engine.update(2, "new")
    with pytest.raises(UnsupportedError, match="has the columns name only"):
        load(engine.handle, engine.handle.state)
    with pytest.raises(UnsupportedError, match="has the columns name only"):
        engine.table.at().to_arrow()


def test_deletion_vectors_are_the_reason(tmp_path: Path) -> None:
    options = {**EVOLUTION, "deletion-vectors.enabled": "true"}
    engine = PaimonEngine(tmp_path / "lake", Schema.of(COLUMNS, options=options))
    engine.append(1, 2, 3)
    assert by_iceberg(engine) == engine.rows()
    engine.delete(2)
    with pytest.raises(UnsupportedError, match="it leaves rows out by deletion vectors"):
        load(engine.handle, engine.handle.state)
    with pytest.raises(UnsupportedError, match="it leaves rows out by deletion vectors"):
        engine.table.at().to_arrow()
    assert loaded_rows(engine.handle, at=engine.table.at(snapshot=1).state) == [
        "{'id': 1, 'kind': 'b', 'name': '1'}",
        "{'id': 2, 'kind': 'a', 'name': '2'}",
        "{'id': 3, 'kind': 'b', 'name': '3'}",
    ]


def test_python_reads_the_rows_of_every_snapshot(engine: PaimonEngine) -> None:
    engine.append(1, 2)
    engine.alter(AddColumn("more", "STRING"))
    engine.append(3)
    table = engine.table
    assert texts_of(table.at().to_arrow()) == engine.rows()
    then = engine.rows(**{"scan.snapshot-id": "1"})
    assert texts_of(table.at(snapshot=1).to_arrow()) == then
    assert table.at().scan("id > 1", columns=["more"]).to_arrow().column_names == ["more"]
    assert table.at().head(2).num_rows == 2
    assert len(table.at().files) == 3
    assert not [*engine.folder.glob("metadata/*")]


def test_python_says_that_only_paimon_merges_by_a_key(tmp_path: Path) -> None:
    schema = Schema.of(COLUMNS, primary_keys=("id",), options={"bucket": "1"})
    keyed = PaimonEngine(tmp_path / "lake", schema)
    keyed.append(1, 2)
    with pytest.raises(UnsupportedError, match="only Paimon's merge finds the newest rows"):
        keyed.table.at().to_arrow()
    assert len(keyed.table.at().files) == 1


def test_icebergs_clients_only_read(engine: PaimonEngine) -> None:
    engine.append(1, 2)
    version = engine.handle.state.version
    with pytest.raises(InvalidChangeError, match="through the paimon protocol"):
        commit_updates(engine.handle, [{"action": "set-properties", "updates": {"k": "v"}}])
    assert engine.handle.state.version == version


def test_a_new_process_reads_only_what_is_new(engine: PaimonEngine) -> None:
    engine.append(0)
    engine.append(1)
    known = set(engine.folder.glob("manifest/manifest-*"))
    engine.append(2)
    load(engine.handle, engine.handle.state)
    engine.append(3)
    expected = engine.rows()
    for each in known:
        each.rename(each.with_name(f"away-{each.name}"))
    table = handle_of(ledger.open(engine.folder.parent.parent).table("a.b"))
    found = load(table, table.state)
    assert [each.snapshot_id for each in found.metadata.snapshots] == [1, 2, 3, 4]
    assert texts_of(StaticTable.from_metadata(found.location).scan().to_arrow()) == expected


def test_lost_files_are_written_again(engine: PaimonEngine) -> None:
    engine.append(1, 2)
    load(engine.handle, engine.handle.state)
    for each in engine.folder.glob("metadata/*"):
        each.unlink()
    table = handle_of(ledger.open(engine.folder.parent.parent).table("a.b"))
    assert loaded_rows(table) == engine.rows()


def test_the_record_of_what_was_rendered_is_a_cache(engine: PaimonEngine) -> None:
    engine.append(1, 2)
    engine.overwrite(3, 4)
    first = load(engine.handle, engine.handle.state)
    files = {*engine.folder.glob("metadata/*")}
    (record,) = engine.folder.glob("**/iceberg-foreign.json")
    for content in (None, b"damaged"):
        record.unlink()
        if content is not None:
            record.write_bytes(content)
        table = handle_of(ledger.open(engine.folder.parent.parent).table("a.b"))
        again = load(table, table.state)
        assert (again.location, again.body) == (first.location, first.body)
        assert {*engine.folder.glob("metadata/*")} == files


def test_what_no_version_needs_is_deleted_after_the_time_for_readers(tmp_path: Path) -> None:
    engine = PaimonEngine(tmp_path / "lake")
    engine.table.alter([ledger.SetOption("ledger.reader-grace", "0")])
    for each in range(4):
        engine.append(each)
        load(engine.handle, engine.handle.state)
    metadata = [*engine.folder.glob("metadata/*.metadata.json")]
    assert len(metadata) <= 2
    assert by_iceberg(engine) == engine.rows()


@pytest.mark.parametrize("writes", range(14))
def test_a_kill_at_any_write_leaves_what_the_next_load_completes(
    writes: int, tmp_path: Path
) -> None:
    engine = PaimonEngine(tmp_path / "lake")
    engine.table.alter([ledger.SetOption("ledger.reader-grace", "0")])
    engine.append(1, 2)
    load(engine.handle, engine.handle.state)
    engine.append(3)
    engine.overwrite(4, 5)
    dying = handle_of(lake_on(DiesAfter(LocalStore(str(tmp_path / "lake")), writes)).table("a.b"))
    with suppress(Died):
        load(dying, dying.state)
    table = handle_of(ledger.open(tmp_path / "lake").table("a.b"))
    assert loaded_rows(table) == engine.rows()
    for each in (1, 2, 3):
        assert loaded_rows(table, each) == engine.rows(**{"scan.snapshot-id": str(each)})
    for _ in range(3):
        engine.append(6)
        assert loaded_rows(table) == engine.rows()


@pytest.mark.parametrize("seed", some(range(20), 3))
def test_two_processes_delete_nothing_that_the_other_needs(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    engine = PaimonEngine(tmp_path / "lake")
    engine.table.alter([ledger.SetOption("ledger.reader-grace", "0")])
    engine.append(0)
    tables = [handle_of(ledger.open(tmp_path / "lake").table("a.b")) for _ in range(2)]
    for number in range(1, 20):
        match rng.choice(["append", "append", "overwrite", "roll back"]):
            case "append":
                engine.append(number)
            case "overwrite":
                engine.overwrite(number)
            case _:
                target = rng.choice(list(engine.handle.state.snapshot_ids))
                rollback_table(engine.handle, SnapshotInstant(target))
        # One of them may skip versions.
        table = rng.choice(tables)
        assert loaded_rows(table) == engine.rows()
        if rng.random() < 0.3:
            each = rng.choice(list(table.state.snapshot_ids))
            assert loaded_rows(table, each) == engine.rows(**{"scan.snapshot-id": str(each)})


def test_statistics_count_the_files_of_engines(engine: PaimonEngine) -> None:
    engine.append(1, 2)
    engine.overwrite(3)
    folder = str(engine.folder.parent.parent)
    assert main(["stats", "a.b", "--ledger", folder]) == 0
    assert main(["stats", "a.b", "--verify", "--ledger", folder]) == 0


def test_a_rollback_gives_ids_again_and_files_of_their_own(tmp_path: Path) -> None:
    source = PaimonSource(tmp_path / "theirs")
    lake = ledger.open(tmp_path / "lake")
    seen = []
    for _ in range(2):
        source.append()
        source.append()
        lake.import_table("a.b", str(source.folder), format_name="paimon")
        table = handle_of(lake.table("a.b"))
        assert loaded_rows(table) == rows_of(source.table)
        seen.append(load(table, table.state).metadata.snapshots[-1].manifest_list)
        source.table.rollback_to(1)
    assert len({*seen}) == 2
