"""Tables that PyIceberg writes: imported, followed and projected, they have the same rows."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.table import StaticTable, Table
from pyiceberg.types import IntegerType, StringType

import ledger
from ledger import Ledger
from ledger.stores.file_access import FileAccess
from ledger.table_handle import handle_of
from projections.iceberg import metadata_of, open_source, rebuild, verify
from projections.iceberg.imported_metadata import differing_fields
from projections.iceberg.materialise import project
from tests.projections.iceberg.importing.writing import appended, created, rows
from tests.readers.engines import duckdb_rows
from tests.thorough import some

Step = Callable[[Table, random.Random], object]


def append(table: Table, rng: random.Random) -> None:
    ids = [rng.randrange(100) for _ in range(rng.randrange(1, 4))]
    columns = {
        each.name: pa.array(
            [rng.randrange(9) if isinstance(each.field_type, IntegerType) else "x"] * len(ids),
            pa.int32() if isinstance(each.field_type, IntegerType) else pa.string(),
        )
        for each in table.schema().fields
        if each.name != "id"
    }
    appended(table, *ids, **columns)


def delete(table: Table, rng: random.Random) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        table.delete(f"id < {rng.randrange(60)}")


def add_column(table: Table, rng: random.Random) -> None:
    with table.update_schema() as update:
        name = f"c{table.metadata.last_column_id + 1}"
        kind = rng.choice((IntegerType(), StringType()))
        update.add_column(name, kind, doc=rng.choice((None, "d")))


def change_column(table: Table, rng: random.Random) -> None:
    others = [each.name for each in table.schema().fields if each.name != "id"]
    if not others:
        return
    name = rng.choice(others)
    with table.update_schema() as update:
        match rng.randrange(4):
            case 0:
                update.rename_column(name, f"{name}r")
            case 1 if len(others) > 1:
                update.delete_column(name)
            case 2:
                update.move_first(name)
            case _:
                update.update_column(name, doc=f"about {rng.randrange(99)}")


def lay_out(table: Table, _rng: random.Random) -> None:
    if len(table.specs()) == 1:
        with table.update_spec() as update:
            update.add_identity("id")


def set_properties(table: Table, rng: random.Random) -> None:
    with table.transaction() as transaction:
        transaction.set_properties({f"k{rng.randrange(3)}": str(rng.randrange(9))})


def name_snapshot(table: Table, rng: random.Random) -> None:
    snapshot = rng.choice(table.metadata.snapshots).snapshot_id
    refs = table.manage_snapshots()
    name = f"r{rng.randrange(3)}"
    if name in table.metadata.refs:
        return
    (refs.create_tag if rng.randrange(2) else refs.create_branch)(snapshot, name).commit()


def roll_back(table: Table, _rng: random.Random) -> None:
    snapshot = table.current_snapshot()
    if snapshot is not None and snapshot.parent_snapshot_id is not None:
        known = {each.snapshot_id for each in table.metadata.snapshots}
        if snapshot.parent_snapshot_id in known:
            table.manage_snapshots().rollback_to_snapshot(snapshot.parent_snapshot_id).commit()


def expire(table: Table, rng: random.Random) -> None:
    named = {each.snapshot_id for each in table.metadata.refs.values()}
    others = [each for each in table.metadata.snapshots if each.snapshot_id not in named]
    if others:
        table.maintenance.expire_snapshots().by_id(rng.choice(others).snapshot_id).commit()


STEPS: tuple[Step, ...] = (
    append,
    append,
    append,
    delete,
    add_column,
    change_column,
    lay_out,
    set_properties,
    name_snapshot,
    roll_back,
    expire,
)


def lived(table: Table, rng: random.Random, steps: int) -> None:
    for _ in range(steps):
        rng.choice(STEPS)(table, rng)


def assert_same(lake: Ledger, theirs: Table, folder: Path) -> None:
    """The table says what its source says, and reads so at every snapshot, branch and tag."""
    ours = lake.table("a.b")
    wanted = open_source(theirs.metadata_location, FileAccess(("file", ""), {})).newest.metadata
    assert differing_fields(metadata_of(ours.state), wanted) == []
    version = project(handle_of(ours))
    read = StaticTable.from_metadata(str(folder / f"a.db/b/metadata/v{version}.metadata.json"))
    assert {name: each.snapshot_id for name, each in read.metadata.refs.items()} == {
        name: each.snapshot_id for name, each in theirs.metadata.refs.items()
    }
    for each in theirs.metadata.snapshots:
        assert rows(read, each.snapshot_id) == rows(theirs, each.snapshot_id)
    assert rows(read) == rows(theirs)
    for tag in ours.state.tags.values():
        found = ours.at(tag=tag.name).to_arrow().to_pylist()
        assert sorted(found, key=str) == rows(theirs, tag.snapshot_id)
    assert verify(handle_of(ours)).is_empty


@pytest.mark.parametrize("seed", some(range(4), 2))
def test_a_followed_history_reads_the_same_at_every_snapshot(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    theirs = created(tmp_path / "t", version=1 + seed % 2)
    append(theirs, rng)
    lake = ledger.open(str(tmp_path / "lake"))
    for _ in range(4):
        lived(theirs, rng, 5)
        lake.import_table("a.b", theirs.metadata_location)
        assert_same(lake, theirs, tmp_path / "lake")
        assert lake.import_table("a.b", str(tmp_path / "t")).transactions == 0
    late = ledger.open(str(tmp_path / "late"))
    late.import_table("a.b", theirs.metadata_location)
    assert_same(late, theirs, tmp_path / "late")


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2))
def test_a_history_of_three_hundred_steps_reads_the_same_at_every_snapshot(
    seed: int, tmp_path: Path
) -> None:
    rng = random.Random(20 + seed)
    theirs = created(tmp_path / "t", version=1 + seed)
    append(theirs, rng)
    lake = ledger.open(str(tmp_path / "lake"))
    for _ in range(5):
        lived(theirs, rng, 60)
        lake.import_table("a.b", theirs.metadata_location)
    assert_same(lake, theirs, tmp_path / "lake")


def test_duckdb_reads_the_projected_table_as_it_reads_the_source(tmp_path: Path) -> None:
    theirs = created(tmp_path / "t")
    first = appended(theirs, 1, 2, name=["a", "b"])
    add_column(theirs, random.Random(0))
    appended(theirs, 3, name=["c"])
    lake = ledger.open(str(tmp_path / "lake"))
    lake.import_table("a.b", theirs.metadata_location)
    project(handle_of(lake.table("a.b")))
    ours = tmp_path / "lake/a.db/b"
    for snapshot in (None, first):
        found = sorted(duckdb_rows(ours, snapshot), key=str)
        assert [each["id"] for each in found] == [each["id"] for each in rows(theirs, snapshot)]


def test_its_files_are_made_again_byte_for_byte(tmp_path: Path) -> None:
    theirs = created(tmp_path / "t")
    appended(theirs, 1, name=["a"])
    lake = ledger.open(str(tmp_path / "lake"))
    lake.import_table("a.b", theirs.metadata_location)
    table = lake.table("a.b")
    project(handle_of(table), every=1)
    metadata = tmp_path / "lake/a.db/b/metadata"
    before = {each.name: each.read_bytes() for each in metadata.iterdir()}
    for each in metadata.glob("v*.metadata.json"):
        each.write_bytes(b"{}")
    assert not verify(handle_of(table)).is_empty
    rebuild(handle_of(table))
    assert {each.name: each.read_bytes() for each in metadata.iterdir()} == before


def test_the_source_stays_as_it_is(tmp_path: Path) -> None:
    theirs = created(tmp_path / "t")
    appended(theirs, 1, name=["a"])
    before = {each: each.read_bytes() for each in (tmp_path / "t").rglob("*") if each.is_file()}
    lake = ledger.open(str(tmp_path / "lake"))
    lake.import_table("a.b", theirs.metadata_location)
    project(handle_of(lake.table("a.b")))
    after = {each: each.read_bytes() for each in (tmp_path / "t").rglob("*") if each.is_file()}
    assert before == after


def test_the_user_of_a_snapshot_is_its_author(tmp_path: Path) -> None:
    theirs = created(tmp_path / "t")
    appended(theirs, 1, name=["a"])
    lake = ledger.open(str(tmp_path / "lake"))
    lake.import_table("a.b", theirs.metadata_location)
    transactions: Any = [each.transactions[0] for each in lake.table("a.b").events()]
    assert transactions[-1].author == "ann"
    assert transactions[-1].properties["source.metadata-file"] == theirs.metadata_location
    snapshot = theirs.current_snapshot()
    assert snapshot is not None
    assert transactions[-1].effective_time_millis == snapshot.timestamp_ms
