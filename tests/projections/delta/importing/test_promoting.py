"""A promoted Delta table: its source lets nobody write any more, and its log goes on here."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyarrow import parquet

import ledger
from ledger import (
    AddColumn,
    DamagedLogError,
    DropColumn,
    FormatError,
    Ledger,
    LedgerError,
    RenameColumn,
    SetOption,
    StoreError,
    Table,
    UnsupportedError,
)
from ledger.events import TablePromoted
from ledger.stores import LocalStore, MemoryStore
from ledger.stores.file_access import FileAccess
from ledger.table_handle import handle_of
from projections.delta import DELTA, commit_path
from projections.delta.actions import FOLDER
from projections.importing.promoting import conditional_store
from tests.lakes import lake_on, memory
from tests.projections.delta.importing.test_following import (
    ID,
    PROTOCOL,
    add,
    info,
    metadata,
    remove,
    write,
)
from tests.projections.delta.importing.writing import READERS, Read, deltalake, read_by_all
from tests.projections.importing.what_came import now
from tests.projections.paimon.importing.paimon_source import rows as paimon_rows
from tests.pypaimon_or_skip import CatalogFactory
from tests.readers.engines import duckdb_rows
from tests.readers.test_delta_readers import folder_of

ROWS = pa.table({"id": pa.array([1, 2], pa.int64()), "name": ["a", "b"]})


def source(folder: Path) -> str:
    """A table of three versions: two that come, one that deletes."""
    for _ in range(2):
        write_deltalake(str(folder), ROWS, mode="append")
    DeltaTable(str(folder)).delete("id = 1")
    return str(folder)


def owned(tmp_path: Path, place: str) -> Table:
    lake = ledger.open(str(tmp_path / "lake"))
    lake.import_table("a.b", place, format_name="delta")
    lake.promote("a.b")
    return lake.table("a.b")


def own_file(table: Table, file: str, ids: list[int], /, **columns: list[Any]) -> str:
    """A data file in the ledger's place."""
    path = Path(folder_of(table)) / "data" / file
    path.parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(pa.table({"id": pa.array(ids, pa.int64()), **columns}), path)
    return f"{table.location}/data/{file}"


def read(table: Table, version: int | None = None) -> Read:
    """Rows that all readers return for a version of the projected log, the newest if None."""
    DELTA.project(handle_of(table))
    return read_by_all(folder_of(table), version)


def is_sound(table: Table) -> bool:
    DELTA.project(handle_of(table))
    found = DELTA.verify(handle_of(table))
    return found.is_empty and not found.foreign


def changed(table: Table) -> Iterator[tuple[list[str], list[tuple[Any, ...]]]]:
    """Changes by an owner, one after the other, each with the rows that exist then."""
    old = [(2, "b"), (2, "b")]
    yield ["id", "name"], old
    table.add_files(own_file(table, "one.parquet", [7], name=["z"]))
    yield ["id", "name"], [*old, (7, "z")]
    table.alter([RenameColumn(("name",), "title"), AddColumn(("age",), "INT")])
    yield ["id", "title", "age"], [(2, "b", None), (2, "b", None), (7, "z", None)]
    table.add_files(own_file(table, "two.parquet", [8], name=["y"]))
    table.create_tag("mine")
    yield ["id", "title", "age"], [(2, "b", None), (2, "b", None), (7, "z", None), (8, "y", None)]
    theirs = table.state.origin.source
    table.delete_files([each.path for each in table.at().files if theirs in each.path])
    yield ["id", "title", "age"], [(7, "z", None), (8, "y", None)]
    table.rollback(snapshot=1)
    yield ["id", "title", "age"], [(1, "a", None), (2, "b", None)]
    table.rollback(tag="mine")
    table.alter([DropColumn(("title",))])
    yield ["id", "age"], [(2, None), (2, None), (7, None), (8, None)]


def test_rows_are_equal_before_and_after_for_every_reader_at_every_version(tmp_path: Path) -> None:
    place = source(tmp_path / "t")
    before = {n: [reader(place, n) for reader in READERS] for n in range(3)}
    table = owned(tmp_path, place)
    for names, rows in changed(table):
        assert read(table) == (names, sorted(rows, key=repr))
        assert is_sound(table)
    for version, expected in before.items():
        assert [reader(place, version) for reader in READERS] == expected
        assert read(table, version) == expected[0]
    assert read(table, 3) == READERS[0](place, 3) == before[2][0]
    DELTA.rebuild(handle_of(table))
    assert read(table) == (names, rows)
    table.alter([SetOption("ledger.formats", "delta,iceberg")])
    assert sorted(map(str, table.at().to_arrow().to_pylist())) == sorted(
        str(dict(zip(names, each, strict=True))) for each in rows
    )
    assert sorted(table.at(snapshot=2).to_arrow()["id"].to_pylist()) == [1, 1, 2, 2]


def test_a_writer_at_the_source_is_rejected_and_may_read(tmp_path: Path) -> None:
    place = source(tmp_path / "t")
    held = DeltaTable(place)
    table = owned(tmp_path, place)
    there = sorted(each.name for each in (tmp_path / "t/_delta_log").iterdir())
    for it, said in ((held, "Protocol changed"), (place, r'Unknown\("lakeledger')):
        with pytest.raises(deltalake.exceptions.DeltaError, match=said):
            write_deltalake(it, ROWS, mode="append")
    assert sorted(each.name for each in (tmp_path / "t/_delta_log").iterdir()) == there
    assert DeltaTable(place).history(1)[0]["operationParameters"]["owner"] == table.location


def test_the_deprecated_call_for_a_plan_returns_the_same_and_warns(tmp_path: Path) -> None:
    lake = ledger.open(str(tmp_path / "lake"))
    lake.import_table("a.b", source(tmp_path / "t"), format_name="delta")

    with pytest.warns(DeprecationWarning, match="plan_promotion") as caught:
        planned = lake.promote("a.b", dry_run=True)

    assert [each.filename for each in caught] == [__file__]
    assert planned == lake.plan_promotion("a.b")
    assert lake.table("a.b").state.is_mirrored


def test_log_instants_blame_and_plans_continue_after_promotion(tmp_path: Path) -> None:
    table = owned(tmp_path, source(tmp_path / "t"))
    promoted = table.state.version
    table.alter([AddColumn(("age",), "INT")])
    table.add_files(own_file(table, "one.parquet", [70], name=["z"]))
    assert [len(table.at(snapshot=each).files) for each in (1, 2, 3, 4)] == [1, 2, 1, 2]
    assert table.at(version=promoted).schema.names == ("id", "name")
    assert table.blame("age")
    (planned,) = table.at().plan("id > 50").files
    assert planned.file.path.endswith("one.parquet")
    assert table.state.totals.record_count == 3
    with pytest.raises(UnsupportedError, match="main only"):
        table.create_branch("audit")
    (said,) = (
        e
        for c in table.events(promoted)
        for t in c.transactions
        for e in t.events
        if isinstance(e, TablePromoted)
    )
    assert said.source == str(tmp_path / "t")


@pytest.mark.parametrize("often", [True, False])
@pytest.mark.parametrize("oldest", [2, 3, 4])
def test_a_log_begins_where_the_oldest_snapshot_does(
    tmp_path: Path, oldest: int, *, often: bool
) -> None:
    lake = ledger.open(str(tmp_path / "lake"))
    place = source(tmp_path / "t")
    lake.import_table("a.b", place, format_name="delta")
    table = lake.table("a.b")
    if often:
        DELTA.project(handle_of(table))
    lake.promote("a.b")
    table.add_files(own_file(table, "one.parquet", [7], name=["z"]))
    table.alter([SetOption("ledger.reader-grace", "0")])
    table.expire_snapshots(before=oldest)
    assert is_sound(table)
    log = Path(folder_of(table)) / "_delta_log"
    first = {2: 1, 3: 2, 4: 5}[oldest]
    assert min(int(each.name[:20]) for each in log.glob("*.json")) == first
    assert read(table)[1] == [(2, "b"), (2, "b"), (7, "z")]
    assert len(read(table, first)[1]) == {2: 4, 3: 2, 4: 3}[oldest]


def test_its_files_follow_in_every_format_and_read_the_same_at_every_snapshot(
    tmp_path: Path,
) -> None:
    place = source(tmp_path / "t")
    before = {number: READERS[0](place, number - 1)[1] for number in (1, 2, 3)}
    every = "delta,iceberg,paimon"
    with ledger.open(str(tmp_path / "lake")) as lake:
        lake.import_table("a.b", place, format_name="delta")
        lake.promote("a.b")
        table = lake.table("a.b")
        table.alter([SetOption("ledger.formats", every), SetOption("ledger.follow", every)])
        table.add_files(own_file(table, "one.parquet", [7], name=["z"]))
        table.rollback(snapshot=1)
    assert sorted((each.format, each.behind) for each in table.freshness()) == [
        (each, 0) for each in every.split(",")
    ]
    wanted = {**before, 4: [*before[3], (7, "z")], 5: before[1]}
    found = CatalogFactory.create({"warehouse": str(tmp_path / "lake")}).get_table("a.b")
    for number, expected in wanted.items():
        texts = sorted(str({"id": key, "name": name}) for key, name in expected)
        assert paimon_rows(found, scan_snapshot_id=str(number)) == texts
        there = table.at(snapshot=number).to_arrow().to_pylist()
        assert sorted(map(str, there)) == texts
    assert read(table)[1] == sorted(wanted[5])
    assert sorted(map(str, duckdb_rows(Path(folder_of(table))))) == texts


MAPPED = {"protocol": {"minReaderVersion": 2, "minWriterVersion": 5}}
BY_NAME = {"delta.columnMapping.mode": "name", "delta.constraints.sound": "id > 0"}


def mapped(name: str, number: int, **more: Any) -> dict[str, Any]:
    said = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": f"col-{number}"}
    return {**ID, "name": name, "metadata": said, **more}


def mapped_file(folder: Path, name: str, ids: list[int], names: list[str]) -> dict[str, Any]:
    """A file as Delta's mapping has it: with physical names, and Delta's ids."""
    folder.mkdir(exist_ok=True)
    kinds = (pa.int64(), pa.string())
    schema = pa.schema(
        pa.field(f"col-{number}", kind, metadata={"PARQUET:field_id": str(number)})
        for number, kind in enumerate(kinds, 1)
    )
    parquet.write_table(pa.table([ids, names], schema=schema), folder / name)
    stats = {"numRecords": len(ids), "minValues": {"col-1": min(ids)}, "nullCount": {"col-1": 0}}
    return add(name, size=(folder / name).stat().st_size, stats=json.dumps(stats))


def with_mapping(folder: Path) -> str:
    """A table of four versions whose second column gets another name."""
    label = {"type": "string"}
    for version, name in ((0, "name"), (2, "label")):
        columns = metadata(mapped("id", 1), mapped(name, 2, **label), configuration=BY_NAME)
        said = (mapped_file(folder, "a.parquet", [1, 2], ["a", "b"]),) if not version else ()
        write(folder, version, info(10 + version), *(() if version else (MAPPED,)), columns, *said)
    write(folder, 1, info(11), mapped_file(folder, "b.parquet", [3], ["c"]))
    write(folder, 3, info(13), mapped_file(folder, "c.parquet", [4], ["d"]), remove("b.parquet"))
    return str(folder)


def test_a_mapped_table_is_found_by_the_names_that_its_files_hold(tmp_path: Path) -> None:
    place = with_mapping(tmp_path / "t")
    table = owned(tmp_path, place)
    assert dict(table.state.schema.options) == {"ledger.formats": "delta"}
    for version in range(4):
        assert read(table, version) == READERS[0](place, version)
    rows = [(1, "a"), (2, "b"), (4, "d")]
    assert read(table) == (["id", "label"], rows)
    table.alter([RenameColumn(("label",), "title"), AddColumn(("age",), "INT")])
    assert read(table) == (["id", "title", "age"], [(*each, None) for each in rows])
    plain = own_file(table, "own.parquet", [7], title=["z"])
    with pytest.raises(FormatError, match="files hold it as col-1 and as id"):
        table.add_files(plain)
    table.delete_files([each.path for each in table.at().files if "c.parquet" in each.path])
    assert read(table)[1] == [(1, "a", None), (2, "b", None)]
    table.overwrite(table.data_files([plain]))
    assert read(table) == (["id", "title", "age"], [(7, "z", None)])
    table.rollback(snapshot=3)
    assert read(table)[1] == [(*each, None) for each in rows]
    assert is_sound(table)
    table.alter([SetOption("ledger.formats", "iceberg")])
    assert [each["title"] for each in table.at().to_arrow().to_pylist()] == ["a", "b", "d"]


def test_paimon_is_not_declared_where_files_hold_columns_under_other_names(tmp_path: Path) -> None:
    table = owned(tmp_path, with_mapping(tmp_path / "t"))
    with pytest.raises(FormatError, match="column id: files of .*/t hold it as col-1, and Paimon"):
        table.alter([SetOption("ledger.formats", "delta,paimon")])
    table.delete_files([each.path for each in table.at().files])
    last = table.at().snapshot
    assert last is not None
    table.expire_snapshots(before=last.id)
    table.alter([SetOption("ledger.formats", "delta,paimon")])


def test_types_that_were_wider_and_readers_features_stay(tmp_path: Path) -> None:
    before = [{"fromType": "short", "toType": "long"}]
    wide = {**ID, "metadata": {"delta.typeChanges": before}}
    features = ["typeWidening", "vacuumProtocolCheck"]
    protocol = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": features}
    said = {"protocol": {**protocol, "writerFeatures": [*features, "changeDataFeed"]}}
    write(tmp_path / "t", 0, info(1), said, metadata(wide), add("x"))
    table = owned(tmp_path, str(tmp_path / "t"))
    DELTA.project(handle_of(table))
    text = (Path(folder_of(table)) / f"_delta_log/{2:020d}.json").read_text()
    lines = [json.loads(each) for each in text.splitlines()]
    (asked,) = (each["protocol"] for each in lines if "protocol" in each)
    assert asked["readerFeatures"] == features
    (made,) = (each["metaData"] for each in lines if "metaData" in each)
    (column,) = json.loads(made["schemaString"])["fields"]
    assert (made["id"], column["metadata"]["delta.typeChanges"]) == ("u", before)


def refused_variant(folder: Path) -> None:
    write(folder, 0, info(1), PROTOCOL, metadata({**ID, "type": "variant"}), add("x"))


def refused_names(folder: Path) -> None:
    """Files of before the mapping, ids that are not Delta's, and a rename."""
    write(folder, 0, info(1), PROTOCOL, metadata(ID), add("x"))
    other = {"delta.columnMapping.id": 9, "delta.columnMapping.physicalName": "id"}
    renamed = {**ID, "name": "new", "metadata": other}
    write(folder, 1, info(2), MAPPED, metadata(renamed, configuration=BY_NAME), add("y"))


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (refused_variant, "cannot be promoted: column id: Delta has no VARIANT"),
        (refused_names, "cannot be promoted: file .*/y has no field ids of the table"),
    ],
)
def test_a_log_that_the_ledger_cannot_continue_is_rejected_before_anything_is_written(
    tmp_path: Path, make: Any, said: str
) -> None:
    make(tmp_path / "t")
    lake = lake_on(memory(), clock=now)
    lake.import_table("a.b", str(tmp_path / "t"), format_name="delta")
    there = sorted((tmp_path / "t/_delta_log").iterdir())
    for asked in (lake.plan_promotion, lake.promote):
        with pytest.raises(UnsupportedError, match=said):
            asked("a.b", source=str(tmp_path / "t"))
    assert sorted((tmp_path / "t/_delta_log").iterdir()) == there
    assert lake.table("a.b").state.is_mirrored
    assert lake.table("a.b").state.origin.source == str(tmp_path / "t")


@pytest.mark.parametrize(
    ("version", "is_projected"), [(1, False), (3, False), (4, False), (3, True), (4, True)]
)
def test_a_source_keeps_its_owner_where_another_files_name_is_needed(
    tmp_path: Path, version: int, *, is_projected: bool
) -> None:
    place = source(tmp_path / "t")
    lake = ledger.open(str(tmp_path / "lake"))
    lake.import_table("a.b", place, format_name="delta")
    table = lake.table("a.b")
    if is_projected:
        DELTA.project(handle_of(table))
    other = write(Path(folder_of(table)), version, info(1), add("of-another-program"))
    refused_untouched(lake, place, StoreError, "is not a file of the ledger's")
    other.unlink()
    DELTA.rebuild(handle_of(table))
    lake.promote("a.b")
    assert is_sound(lake.table("a.b"))


def test_a_source_keeps_its_owner_where_the_projected_log_lacks_a_file(tmp_path: Path) -> None:
    place = source(tmp_path / "t")
    lake = ledger.open(str(tmp_path / "lake"))
    lake.import_table("a.b", place, format_name="delta")
    table = lake.table("a.b")
    DELTA.project(handle_of(table))
    (Path(folder_of(table)) / commit_path(1)).unlink()
    refused_untouched(lake, place, DamagedLogError, "00001.json is missing")
    DELTA.rebuild(handle_of(table))
    lake.promote("a.b")
    assert is_sound(lake.table("a.b"))


def refused_untouched(lake: Ledger, place: str, error: type[LedgerError], said: str) -> None:
    """Check that neither a plan nor a promotion succeeds, and that the source stays as it was."""
    there = {each.name: each.read_bytes() for each in (Path(place) / FOLDER).iterdir()}
    for asked in (lake.plan_promotion, lake.promote):
        with pytest.raises(error, match=said):
            asked("a.b")
    assert {each.name: each.read_bytes() for each in (Path(place) / FOLDER).iterdir()} == there
    assert lake.table("a.b").state.is_mirrored
    assert lake.table("a.b").state.origin.source == place


def test_times_rise_where_the_source_keeps_them_in_its_commits(tmp_path: Path) -> None:
    timed = {"delta.enableInCommitTimestamps": "true"}
    feature = {
        "minReaderVersion": 1,
        "minWriterVersion": 7,
        "writerFeatures": ["inCommitTimestamp"],
    }
    later = now() + 50
    first = {"commitInfo": {"inCommitTimestamp": later, "timestamp": later, "operation": "WRITE"}}
    columns = metadata(ID, configuration=timed)
    write(tmp_path / "t", 0, first, {"protocol": feature}, columns, add("x"))
    lake = lake_on(LocalStore(tmp_path / "lake"), clock=now)
    lake.import_table("a.b", str(tmp_path / "t"), format_name="delta")
    lake.promote("a.b")
    text = (tmp_path / f"t/_delta_log/{1:020d}.json").read_text()
    assert json.loads(text.splitlines()[0])["commitInfo"]["inCommitTimestamp"] == later + 1


def test_a_store_that_creates_once_is_found_for_a_place() -> None:
    access = FileAccess(("s3", ""), {"key": "of another"})
    assert isinstance(conditional_store("/lake/t", access), LocalStore)
    assert isinstance(conditional_store("memory://lake/t", access), MemoryStore)
    assert conditional_store("sftp://host/lake/t", access) is None
