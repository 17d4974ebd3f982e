"""A promoted table: the ledger's own, with the rows that it had and those that come."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from attrs import evolve
from msgspec.structs import replace
from pyarrow import parquet
from pyiceberg.catalog import Catalog
from pyiceberg.table import StaticTable
from pyiceberg.transforms import IdentityTransform

import ledger
from ledger import (
    AddColumn,
    AlreadyExistsError,
    FormatError,
    InvalidChangeError,
    InvalidInputError,
    NotFoundError,
    RenameColumn,
    Table,
)
from ledger.cli import main
from ledger.events import TablePromoted
from ledger.events.snapshots import RolledBack
from ledger.log import digest, encode, fresh_id
from ledger.state.iceberg_summary import RESERVED
from ledger.table_handle import handle_of
from projections.iceberg import Names, position, rebuild, verify
from tests.projections.iceberg.importing.writing import (
    COLUMNS,
    appended,
    created,
    rows,
    sql_catalog,
)
from tests.readers.engines import duckdb_rows

Rows = list[dict[str, Any]]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Catalog:
    return sql_catalog(tmp_path, monkeypatch)


def own_file(table: Table, file: str, /, *ids: int, **columns: list[Any]) -> str:
    """A data file in the ledger's place, with the table's field ids."""
    path = Path(table.location.removeprefix("file://")) / "data" / file
    path.parent.mkdir(parents=True, exist_ok=True)
    found = pa.table({"id": pa.array(ids, pa.int64()), **columns})
    schema = table.at().schema.to_arrow()
    whole = {
        each.name: found[each.name] if each.name in found.column_names else pa.nulls(len(ids))
        for each in schema
    }
    parquet.write_table(pa.table(whole).cast(schema), path)
    return f"{table.location}/data/{file}"


def raised(theirs: Any) -> str:
    """The table as of format version 3, which PyIceberg reads and does not write."""
    path = Path(theirs.metadata_location.removeprefix("file:").removeprefix("//"))
    metadata = json.loads(path.read_text())
    metadata |= {"format-version": 3, "next-row-id": 0}
    newer = path.with_name(f"99999-{fresh_id()}.metadata.json")
    newer.write_text(json.dumps(metadata))
    return f"file://{newer}"


def by_ledger(table: Table, **instant: Any) -> Rows:
    return sorted(table.at(**instant).to_arrow().to_pylist(), key=str)


def by_pyiceberg(table: Table, snapshot_id: int | None = None) -> Rows:
    """Rows that PyIceberg reads from the ledger's own files, which it finds by their hint."""
    version = table.project("iceberg")
    read = StaticTable.from_metadata(f"{table.location}/metadata/v{version}.metadata.json")
    return rows(read, snapshot_id)


def is_sound(table: Table) -> bool:
    found = verify(handle_of(table))
    return not (found.missing or found.changed or found.foreign)


def changed(table: Table) -> Iterator[str]:
    """Everything that an owner does, one change after the other."""
    old = [each.path for each in table.at().files]
    yield "promoted"
    table.add_files(own_file(table, "one.parquet", 10, 11, name=["j", "k"]))
    yield "appended"
    table.alter([RenameColumn(("name",), "title"), AddColumn(("age",), "INT")])
    yield "altered"
    table.add_files(own_file(table, "two.parquet", 12, title=["l"], age=[7]))
    yield "appended with the new schema"
    table.create_tag("mine")
    table.delete_files(old[0])
    yield "an engine's file deleted"
    table.rollback(tag="v1")
    yield "rolled back to a snapshot of the engine"
    table.rollback(tag="mine")
    yield "rolled back to one of its own"
    table.delete_files(f"{table.location}/data/one.parquet")
    yield "deleted after a rollback"
    table.alter([ledger.SetOption("comment", "ours")])
    yield "an option set"


@pytest.mark.parametrize("version", [1, 2, 3])
def test_rows_are_equal_before_and_after_for_every_reader_at_every_snapshot(
    tmp_path: Path, version: int
) -> None:
    theirs = created(tmp_path / "t", version=min(version, 2))
    first = appended(theirs, 1, 2, name=["a", "b"])
    appended(theirs, 3, name=["c"])
    theirs.manage_snapshots().create_tag(first, "v1").commit()
    theirs.delete("id = 2")
    lake = ledger.open(tmp_path / "lake")
    lake.import_table("a.b", theirs.metadata_location if version < 3 else raised(theirs))
    before = {each.snapshot_id: rows(theirs, each.snapshot_id) for each in theirs.snapshots()}
    lake.promote("a.b")
    table = lake.table("a.b")
    then: dict[int, Rows] = {}
    for _ in changed(table):
        newest = table.state.last_snapshot_id
        now = by_ledger(table)
        assert by_pyiceberg(table) == now
        assert sum(each.record_count for each in table.at().files) == len(now)
        assert table.state.totals.record_count == len(now)
        folder = Path(table.location.removeprefix("file://"))
        assert sorted(duckdb_rows(folder), key=str) == now
        then.setdefault(newest, by_ledger(table, snapshot=newest))
        for each, expected in {**before, **then}.items():
            assert by_pyiceberg(table, each) == expected
    assert by_ledger(table) == then[newest]
    assert is_sound(table)
    rebuild(handle_of(table))
    assert by_pyiceberg(table) == by_ledger(table)


@pytest.mark.parametrize("often", [True, False])
def test_what_only_a_rollback_brought_back_is_listed_and_goes_as_other_files_do(
    tmp_path: Path, *, often: bool
) -> None:
    theirs = created(tmp_path / "t")
    appended(theirs, 1, 2, name=["a", "b"])
    second = appended(theirs, 3, name=["c"])
    held = rows(theirs, second)
    theirs.delete("id = 3")
    lake = ledger.open(tmp_path / "lake")
    lake.import_table("a.b", theirs.metadata_location)
    lake.promote("a.b")
    table = lake.table("a.b")

    def shown() -> Rows:
        if often:
            table.project("iceberg")
        return by_ledger(table)

    table.add_files(own_file(table, "one.parquet", 10, name=["j"]))
    assert [each["id"] for each in shown()] == [1, 10, 2]
    table.rollback(snapshot=second)
    assert shown() == held
    assert [each.record_count for each in table.at().files] == [2, 1]
    assert (table.state.totals.record_count, table.state.totals.file_count) == (3, 2)
    (third,) = table.at().plan("id = 3").files
    table.delete_files(third.file.path)
    assert shown() == held[:2] == by_pyiceberg(table)
    table.rollback(snapshot=second)
    assert shown() == held == by_pyiceberg(table)
    assert is_sound(table)


def forge_rollback_to(table: Table, target: int) -> int:
    """Append a commit that repeats the newest one, a rollback, with another target."""
    log = handle_of(table).log
    newest = log.commit_at(table.state.version)
    transaction = newest.transactions[0]
    (event,) = transaction.events
    assert isinstance(event, RolledBack)
    forged = replace(event, snapshot_id=event.snapshot_id + 1, target_snapshot_id=target)
    path = max(Path(table.location.removeprefix("file://"), "_ledger", "log").glob("*.json"))
    commit = replace(
        newest,
        version=newest.version + 1,
        time_millis=newest.time_millis + 1,
        parent=digest(path.read_bytes()),
        transactions=(replace(transaction, id="forged", events=(forged,)),),
    )
    path.with_name(f"{commit.version:020}.json").write_bytes(encode(commit))
    return commit.version


def test_a_rollback_to_an_imported_snapshot_verifies_and_one_to_no_snapshot_does_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    theirs = created(tmp_path / "t")
    first = appended(theirs, 1, name=["a"])
    appended(theirs, 2, name=["b"])
    lake = ledger.open(tmp_path / "lake")
    lake.import_table("a.b", theirs.metadata_location)
    lake.promote("a.b")
    line = ["--ledger", str(tmp_path / "lake")]

    assert main(["rollback", "a.b", "--to", f"snapshot:{first}", *line]) == 0
    assert main(["verify", *line]) == 0, capsys.readouterr().out

    version = forge_rollback_to(lake.table("a.b"), first + 1)
    capsys.readouterr()
    assert main(["verify", *line]) == 6
    said = capsys.readouterr().out
    assert f"it rolls back to snapshot {first + 1}, which does not exist or was expired" in said
    assert f"{version:020}.json" in said


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("scheme", ["file:", "file://"])
def test_files_go_and_come_back_however_their_places_are_spelled(
    tmp_path: Path, scheme: str, version: int
) -> None:
    theirs = created(tmp_path / "t", scheme=scheme, version=min(version, 2))
    first = appended(theirs, 1, name=["a"])
    second = appended(theirs, 2, name=["b"])
    lake = ledger.open(tmp_path / "lake")
    lake.import_table("a.b", theirs.metadata_location if version < 3 else raised(theirs))
    lake.promote("a.b")
    table = lake.table("a.b")
    assert all(each.path.startswith(f"{scheme}/") for each in table.at().files)
    both = by_ledger(table)
    assert by_pyiceberg(table) == both == rows(theirs)
    (gone,) = table.at().plan("id = 2").files
    table.delete_files(gone.file.path)
    assert by_pyiceberg(table) == by_ledger(table) == rows(theirs, first)
    table.add_files(own_file(table, "one.parquet", 10, name=["j"]))
    mine = table.state.last_snapshot_id
    assert by_pyiceberg(table) == by_ledger(table)
    table.rollback(snapshot=first)
    assert by_pyiceberg(table) == by_ledger(table) == rows(theirs, first)
    table.rollback(snapshot=second)
    assert by_pyiceberg(table) == by_ledger(table) == both
    table.rollback(snapshot=mine)
    assert by_pyiceberg(table) == by_ledger(table) == by_ledger(table, snapshot=mine)
    assert is_sound(table)


def test_the_ledger_lists_all_files_plans_and_finds_what_is_there_twice(tmp_path: Path) -> None:
    theirs = created(tmp_path / "t")
    appended(theirs, 1, 2, name=["a", "b"])
    lake = ledger.open(tmp_path / "lake")
    lake.import_table("a.b", theirs.metadata_location)
    table = lake.table("a.b")
    before = [each.path for each in table.at().files]
    lake.promote("a.b")
    assert [each.path for each in table.at().files] == before
    assert table.state.totals.record_count == 2
    assert table.at().plan("id > 5").files == ()
    assert len(table.at().plan("id = 1").files) == 1
    with pytest.raises(InvalidChangeError, match="live"):
        table.add_files(before[0])
    assert table.blame("id")


def test_a_partitioned_table_keeps_its_partitions_after_promotion(tmp_path: Path) -> None:
    theirs = created(tmp_path / "t")
    with theirs.update_spec() as update:
        update.add_field("name", IdentityTransform())
    appended(theirs, 1, 2, 3, name=["a", "b", "a"])
    lake = ledger.open(tmp_path / "lake")
    lake.import_table("a.b", theirs.metadata_location)
    lake.promote("a.b")
    table = lake.table("a.b")
    planned = [each.file.partition for each in table.at().plan("name = 'a'").files]
    assert planned == [("a",)]
    table.overwrite([], where={"name": "a"})
    assert by_pyiceberg(table) == by_ledger(table) == [{"id": 2, "name": "b"}]


def test_snapshots_expire_by_what_came_before(tmp_path: Path) -> None:
    theirs = created(tmp_path / "t")
    first = appended(theirs, 1, name=["a"])
    appended(theirs, 2, name=["b"])
    theirs.manage_snapshots().create_tag(first, "v1").commit()
    lake = ledger.open(tmp_path / "lake")
    lake.import_table("a.b", theirs.metadata_location)
    lake.promote("a.b")
    table = lake.table("a.b")
    for number in (3, 4, 5):
        table.add_files(own_file(table, f"{number}.parquet", number, name=["x"]))
        table.project("iceberg")
    with pytest.raises(NotFoundError, match="does not exist"):
        table.expire_snapshots(before=12)
    table.alter([ledger.SetOption("ledger.reader-grace", "0")])
    table.expire_snapshots(before=table.state.last_snapshot_id)
    assert table.state.snapshot_ids == (table.state.last_snapshot_id, first)
    assert by_pyiceberg(table) == by_ledger(table)
    assert by_pyiceberg(table, first) == [{"id": 1, "name": "a"}]
    assert is_sound(table)
    folder = Path(table.location.removeprefix("file://")) / "metadata"
    assert len(list(folder.glob("snap-*"))) == 1


def test_a_count_beyond_any_of_iceberg_is_passed_over(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    theirs = created(tmp_path / "t")
    appended(theirs, 1, name=["a"])
    path = Path(theirs.metadata_location.removeprefix("file:").removeprefix("//"))
    metadata = json.loads(path.read_text())
    metadata["snapshots"][0]["summary"] |= {"added-records": "9" * 5_000}
    path.write_text(json.dumps(metadata))
    lake = ledger.open(tmp_path / "lake")
    lake.import_table("a.b", theirs.metadata_location)
    lake.promote("a.b")

    assert main(["log", "a.b", "--ledger", str(tmp_path / "lake")]) == 0
    assert "append, +1 file" in capsys.readouterr().out


def test_the_command_lists_the_expired_snapshots_for_any_ids(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    theirs = created(tmp_path / "t")
    ids = [appended(theirs, each, name=["a"]) for each in range(4)]
    theirs.manage_snapshots().create_tag(ids[1], "v1").commit()
    lake = ledger.open(tmp_path / "lake")
    lake.import_table("a.b", theirs.metadata_location)
    lake.promote("a.b")
    line = ["expire", "a.b", "--before", str(ids[3]), "--ledger", str(tmp_path / "lake")]

    assert main([*line, "--output", "json"]) == 0
    expiry = json.loads(capsys.readouterr().out)
    assert expiry["expired"] == [ids[0], ids[2]]
    assert expiry["keptByTags"] == [{"tagName": "v1", "snapshotId": ids[1]}]
    capsys.readouterr()
    line += ["--yes", "--commit-id", "mine", "--output", "json"]
    for _ in ("committed", "committed before"):
        assert main(line) == 0
        done = json.loads(capsys.readouterr().out)
        assert done["expired"] == [ids[0], ids[2]]
    left = lake.table("a.b").state.snapshot_ids
    assert [each for each in ids if each in left] == [ids[1], ids[3]]


def test_a_catalog_points_to_the_ledger_and_is_updated_by_a_retry(
    here: Catalog, tmp_path: Path
) -> None:
    theirs = here.create_table("s.t", COLUMNS)
    appended(theirs, 1, name=["a"])
    lake = ledger.open(tmp_path / "lake")
    lake.import_table("a.b", "here:s.t")
    appended(theirs, 2, name=["b"])
    planned = lake.plan_promotion("a.b")
    assert (planned.version, planned.transactions, planned.catalog) == (None, 1, "here:s.t")
    assert lake.table("a.b").state.is_mirrored
    assert lake.table("a.b").state.origin.source == "here:s.t"
    done = lake.promote("a.b")
    assert (done.catalog, done.transactions, done.files) == ("here:s.t", 1, 2)
    table = lake.table("a.b")
    assert here.load_table("s.t").metadata_location.startswith(f"{table.location}/metadata/")
    table.add_files(own_file(table, "one.parquet", 3, name=["c"]))
    assert len(rows(here.load_table("s.t"))) == 2
    assert not lake.promote("a.b").is_new
    assert rows(here.load_table("s.t")) == by_ledger(table)
    assert sum(isinstance(e, TablePromoted) for e in events_of(table)) == 1


def test_a_foreign_commit_to_the_catalog_after_promotion_is_reported_and_kept(
    here: Catalog, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    theirs = here.create_table("s.t", COLUMNS)
    appended(theirs, 1, name=["a"])
    lake = ledger.open(tmp_path / "lake")
    lake.import_table("a.b", "here:s.t")
    lake.promote("a.b")
    appended(here.load_table("s.t"), 2, name=["b"])
    foreign = here.load_table("s.t").metadata_location
    table = lake.table("a.b")
    table.alter([AddColumn(("age",), "INT")])
    place = ["--ledger", str(tmp_path / "lake")]

    for line in (["promote", "a.b", *place], ["promote", "a.b", "--dry-run", *place]):
        assert main(line) == 4
        said = capsys.readouterr()
        assert said.out == ""
        assert f"here:s.t points to {foreign}, which the ledger did not write" in said.err
        assert "lakeledger import iceberg here:s.t a.b_foreign" in said.err
        assert here.load_table("s.t").metadata_location == foreign

    lake.import_table("a.b_foreign", "here:s.t")
    assert len(by_ledger(lake.table("a.b_foreign"))) == 2
    here.drop_table("s.t")
    assert main(["promote", "a.b", *place]) == 3
    assert "here:s.t does not exist in its catalog" in capsys.readouterr().err
    version = table.project("iceberg")
    names = Names(table.state.table_id)
    here.register_table("s.t", f"{table.location}/{names.metadata(version)}")
    assert main(["promote", "a.b", *place]) == 0
    assert "age" in here.load_table("s.t").schema().column_names


def test_a_catalog_that_points_to_an_earlier_location_of_the_table_is_reported(
    here: Catalog, tmp_path: Path
) -> None:
    appended(here.create_table("s.t", COLUMNS), 1, name=["a"])
    lake = ledger.open(tmp_path / "lake")
    lake.import_table("a.b", "here:s.t")
    lake.promote("a.b")
    older = here.load_table("s.t").metadata_location
    shutil.copytree(tmp_path / "lake", tmp_path / "moved")

    with pytest.raises(InvalidInputError, match="a metadata file of a.b at another location"):
        ledger.open(tmp_path / "moved").promote("a.b")
    assert here.load_table("s.t").metadata_location == older


def events_of(table: Table) -> Iterator[Any]:
    for commit in table.events():
        for each in commit.transactions:
            yield from each.events


def test_a_pointer_to_an_older_renderers_files_is_led_on(
    here: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = here.create_table("s.t", COLUMNS)
    appended(theirs, 1, name=["a"])
    lake = ledger.open(tmp_path / "lake")
    lake.import_table("a.b", "here:s.t")
    named = Names.__init__
    with monkeypatch.context() as by_older:
        by_older.setattr(Names, "__init__", lambda its, of, by=1: named(its, of, by))
        lake.promote("a.b")
    older = here.load_table("s.t").metadata_location
    table = lake.table("a.b")
    version, table_id = table.state.version, table.state.table_id
    stood = position.FILE.load(handle_of(table).log.store, handle_of(table).log.layout)
    position.FILE.save(
        handle_of(table).log.store, handle_of(table).log.layout, evolve(stood, renderer=1)
    )
    assert older == f"{table.location}/{Names(table_id, 1).metadata(version)}"

    lake.promote("a.b")
    newest = here.load_table("s.t")
    assert newest.metadata_location == f"{table.location}/{Names(table_id).metadata(version)}"
    assert rows(newest) == by_ledger(table)


def test_an_empty_table_is_promoted_too(tmp_path: Path) -> None:
    theirs = created(tmp_path / "t")
    lake = ledger.open(tmp_path / "lake")
    lake.import_table("a.b", theirs.metadata_location)
    done = lake.promote("a.b")
    assert done.files == 0
    table = lake.table("a.b")
    stop, read, keep, on = done.instructions
    assert stop.startswith(f"stop all writers of {theirs.location()}")
    assert table.location in read
    assert keep.startswith(f"keep the files below {theirs.location()}")
    assert on.endswith("lakeledger project iceberg a.b")
    assert by_pyiceberg(table) == []
    table.add_files(own_file(table, "one.parquet", 1, name=["a"]))
    assert by_pyiceberg(table) == by_ledger(table) == [{"id": 1, "name": "a"}]


def test_iceberg_metadata_of_a_promoted_table_continues_as_icebergs(tmp_path: Path) -> None:
    theirs = created(tmp_path / "t")
    appended(theirs, 1, name=["a"])
    theirs.manage_snapshots().create_branch(theirs.metadata.snapshots[0].snapshot_id, "b").commit()
    lake = ledger.open(tmp_path / "lake")
    lake.import_table("a.b", theirs.metadata_location)
    lake.promote("a.b")
    table = lake.table("a.b")
    with pytest.raises(AlreadyExistsError, match="is a branch"):
        table.create_tag("b")
    with pytest.raises((InvalidChangeError, FormatError)):
        table.alter([ledger.SetOption("format-version", "1")])
    table.add_files(own_file(table, "one.parquet", 2, name=["b"]))
    version = table.project("iceberg")
    read = StaticTable.from_metadata(f"{table.location}/metadata/v{version}.metadata.json")
    snapshots = read.metadata.snapshots
    assert [each.sequence_number for each in snapshots] == [1, 2, 3]
    assert snapshots[2].parent_snapshot_id == snapshots[1].snapshot_id
    assert snapshots[2].summary is not None
    assert snapshots[2].summary["total-records"] == "2"
    assert read.metadata.refs["b"].snapshot_id == snapshots[0].snapshot_id
    assert str(read.metadata.table_uuid) == str(theirs.metadata.table_uuid)


def test_what_a_snapshot_counts_is_not_its_writers_to_say(tmp_path: Path) -> None:
    theirs = created(tmp_path / "t")
    appended(theirs, 1, name=["a"])
    lake = ledger.open(tmp_path / "lake")
    lake.import_table("a.b", theirs.metadata_location)
    lake.promote("a.b")
    table = lake.table("a.b")
    path = own_file(table, "one.parquet", 2, 3, name=["b", "c"])
    said = {"snapshot_properties": {**dict.fromkeys(RESERVED, "77"), "job": "nightly"}}
    table.commit_snapshot(ledger.SnapshotPlan("APPEND", table.data_files(path), facts=said))

    found = table.state.snapshot
    assert found is not None
    assert (found.commit_kind, found.total_record_count, found.delta_record_count) == (
        "APPEND",
        3,
        2,
    )
    version = table.project("iceberg")
    read = StaticTable.from_metadata(f"{table.location}/metadata/v{version}.metadata.json")
    newest = read.metadata.snapshots[-1].summary
    assert newest is not None
    counted = newest.model_dump()
    assert (counted.pop("operation"), counted.pop("job")) == ("append", "nightly")
    assert "77" not in counted.values()
    assert counted["added-records"] == "2"
    assert counted["changed-partition-count"] == "1"
