"""The second reader computes the same states of imported tables, at every version."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from ledger import AddColumn, FileChange, InvalidChangeError, Ledger
from ledger.events import TableEvent
from ledger.log import Codec
from ledger.state import TableBuilder
from ledger.stores import LocalStore
from tests.independent.agreeing import agrees, compared
from tests.independent.elsewhere import imported_table
from tests.independent.replayer import BrokenError
from tests.lakes import lake_on
from tests.projections.delta.importing.test_following import written
from tests.projections.iceberg.importing.writing import appended, created
from tests.projections.importing.what_came import now
from tests.projections.paimon.importing.test_paimon_import import DATA as PAIMON

DATA = Path(__file__).parents[1] / "data/born"


@pytest.mark.parametrize("name", sorted(each.name for each in DATA.glob("*.jsonl")))
def test_an_imported_table_is_read_the_same(name: str) -> None:
    lines = (DATA / name).read_bytes().splitlines(keepends=True)
    assert compared(lines, imported_table(json.loads(lines[0]), Path())) == len(lines) > 2


def lake_in(folder: Path) -> Ledger:
    return lake_on(LocalStore(folder), clock=now)


@pytest.mark.parametrize("source", sorted(PAIMON.glob("pypaimon_wh/ledger.db/*")), ids=str)
def test_a_table_of_pypaimon_is_read_the_same_after_its_import(
    source: Path, tmp_path: Path
) -> None:
    lake = lake_in(tmp_path)
    lake.import_table("a.b", str(source), format_name="paimon")
    assert agrees(tmp_path, lake) > 1


def test_a_table_of_pypaimon_is_read_the_same_before_and_after_its_promotion(
    tmp_path: Path,
) -> None:
    source = tmp_path / "theirs"
    shutil.copytree(PAIMON / "pypaimon_wh/ledger.db/append_part", source)
    lake = lake_in(tmp_path / "lake")
    lake.import_table("a.b", str(source), format_name="paimon")
    count = agrees(tmp_path / "lake", lake)
    lake.promote("a.b", protocol="paimon")
    table = lake.table("a.b")
    table.alter([AddColumn(("day",), "DATE")])
    table.create_tag("served")
    assert agrees(tmp_path / "lake", lake) == count + 3
    table.stop_serving()
    table.delete_files(table.at().files[0].path)
    table.create_tag("mine")
    table.rollback(snapshot=1)
    table.expire_snapshots(before=table.state.last_snapshot_id)
    assert agrees(tmp_path / "lake", lake) == count + 8


def test_a_table_of_pyiceberg_is_read_the_same_before_and_after_its_promotion(
    tmp_path: Path,
) -> None:
    theirs = created(tmp_path / "theirs")
    first = appended(theirs, 1, name=["x"])
    with theirs.update_schema() as update:
        update.rename_column("name", "called")
    appended(theirs, 2, called=["y"])
    theirs.manage_snapshots().create_tag(first, "v1").create_branch(first, "audit").commit()
    lake = lake_in(tmp_path / "lake")
    lake.import_table("a.b", theirs.metadata_location)
    count = agrees(tmp_path / "lake", lake)
    lake.promote("a.b", protocol="iceberg")
    table = lake.table("a.b")
    table.alter([AddColumn(("day",), "DATE")])
    table.create_tag("served")
    assert agrees(tmp_path / "lake", lake) == count + 3
    table.stop_serving()
    path = f"{table.location}/1.parquet"
    table.append([FileChange(path=path, record_count=1, file_size_in_bytes=9, field_ids=True)])
    table.create_tag("mine")
    table.delete_files(path)
    table.expire_snapshots(before=table.state.last_snapshot_id)
    assert agrees(tmp_path / "lake", lake) == count + 8


def test_a_table_that_follows_a_delta_log_is_read_the_same(tmp_path: Path) -> None:
    source = written(tmp_path / "theirs")
    lake = lake_in(tmp_path / "lake")
    lake.import_table("a.b", source, format_name="delta")
    assert agrees(tmp_path / "lake", lake) == 5
    lake.promote("a.b")
    table = lake.table("a.b")
    table.alter([AddColumn(("day",), "DATE")])
    table.append([FileChange(path="new", record_count=1, file_size_in_bytes=9)])
    table.create_tag("mine")
    assert agrees(tmp_path / "lake", lake) == 10


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        (
            "commits.jsonl",
            b'"refName":"main","ref":{"snapshot-id":7',
            b'"refName":"main","ref":{"snapshot-id":8',
        ),
        ("paimon.jsonl", b'"snapshotId":5,"schemaId":3', b'"snapshotId":3,"schemaId":3'),
        ("promoted.jsonl", b'"snapshotId":7,"schemaId":1', b'"snapshotId":9,"schemaId":1'),
        ("delta.jsonl", b'"deltaVersion":9', b'"deltaVersion":5'),
    ],
)
def test_events_that_contradict_an_imported_table_fail_in_both_readers(
    name: str, old: bytes, new: bytes
) -> None:
    lines = (DATA / name).read_bytes()
    assert lines.count(old) >= 1
    forged = lines.replace(old, new, 1).splitlines()
    codec: Codec[TableEvent] = Codec(TableEvent)
    builder, other = TableBuilder(), imported_table(json.loads(forged[0]), Path())

    def fold_mine() -> None:
        for each in forged:
            builder.commit(codec.decode(each, "a line"))

    def fold_theirs() -> None:
        for each in forged:
            other.fold(json.loads(each))

    with pytest.raises(InvalidChangeError):
        fold_mine()
    with pytest.raises((BrokenError, KeyError)):
        fold_theirs()
