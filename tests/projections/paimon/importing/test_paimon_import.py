"""A Paimon table of others: it comes in with its history, and reads here as it reads there."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

import ledger
from ledger import (
    AlreadyExistsError,
    InvalidInputError,
    Ledger,
    LedgerError,
    NotFoundError,
    Schema,
    Table,
)
from ledger.events import SchemaNamed, TableFactsSet, UpdateKeys
from ledger.state import TableStream
from ledger.table_handle import handle_of
from projections.materialising import PendingDeletes
from projections.paimon import schema_from_json, verify
from projections.paimon.importing import schema_events
from tests.lakes import lake_on, memory
from tests.projections.importing.what_came import now
from tests.projections.paimon.importing.paimon_source import PaimonSource, rows
from tests.pypaimon_or_skip import CatalogFactory
from tests.thorough import some

DATA = Path(__file__).parents[3] / "data/paimon"
FREE = {
    *("timeMillis", "tagCreateTime"),
    *(f"{each}ManifestListSize" for each in ("base", "delta", "changelog")),
}
"""Keys that may differ: sizes of lists that name whole paths, and times that went back."""
TABLES = sorted([*DATA.glob("java_wh/j.db/*"), *DATA.glob("pypaimon_wh/ledger.db/*")])


def taken(lake: Ledger, source: Path, name: str = "a.b") -> Any:
    return lake.import_table(name, str(source), format_name="paimon")


def said(path: Path) -> Any:
    """A metadata file's content, without what may differ; see the decision on Paimon's import."""
    if path.parent.name == "schema":
        # Writers spell nested types in different ways.
        return evolve(schema_from_json(path.read_bytes()), time_millis=0)
    content = json.loads(path.read_bytes())
    return {key: each for key, each in content.items() if each is not None and key not in FREE}


def assert_files_say_the_same(mine: Path, theirs: Path, table: Table | None = None) -> None:
    """Every metadata file is here, and else only what a table's older readers may hold."""
    leaving = PendingDeletes(handle_of(table), "paimon").paths() if table else frozenset()
    for pattern in ("schema/*", "snapshot/snapshot-*", "tag/*", "branch/*/*/*-*"):
        found = {each.relative_to(theirs): said(each) for each in theirs.glob(pattern)}
        here = {each.relative_to(mine): said(each) for each in mine.glob(pattern)}
        assert {path: it for path, it in here.items() if str(path) not in leaving} == found


@pytest.mark.parametrize("source", TABLES, ids=lambda each: each.name)
def test_a_known_table_comes_in_whole(source: Path, tmp_path: Path) -> None:
    lake = ledger.open(str(tmp_path / "lake"))
    planned = lake.plan_import("a.b", str(source), format_name="paimon")
    assert not lake.is_begun
    done = taken(lake, source)
    assert (done.transactions, done.snapshots) == (planned.transactions, planned.snapshots)
    assert taken(lake, source).transactions == 0
    table = lake.table("a.b")
    kept = TableStream().decode_state(TableStream().encode_state(table.state))
    assert kept == table.state
    table.project("paimon")
    assert_files_say_the_same(tmp_path / "lake" / handle_of(table).path, source)
    assert verify(handle_of(table)).is_empty
    for each in done.snapshots:
        at = table.at(snapshot=each)
        assert at.snapshot is not None
        assert at.schema.id == at.snapshot.schema_id


def assert_reads_the_same(lake: Ledger, root: Path, source: PaimonSource) -> None:
    table = lake.table("a.b")
    table.project("paimon")
    assert_files_say_the_same(root / handle_of(table).path, source.folder, table)
    mine, theirs = CatalogFactory.create({"warehouse": str(root)}).get_table("a.b"), source.table
    for each in source.snapshots:
        at = {"scan_snapshot_id": str(each)}
        assert rows(mine, **at) == rows(theirs, **at)
    for name in source.tags:
        assert rows(mine, scan_tag_name=name) == rows(theirs, scan_tag_name=name)


@pytest.mark.parametrize("seed", some(range(4), 2))
def test_a_followed_history_reads_the_same_at_every_snapshot_and_tag(
    seed: int, tmp_path: Path
) -> None:
    source = PaimonSource(tmp_path / "theirs", keyed=bool(seed % 2))
    lake, root = ledger.open(str(tmp_path / "lake")), tmp_path / "lake"
    for step, _ in enumerate(source.life(seed, 12)):
        taken(lake, source.folder)
        assert taken(lake, source.folder).transactions == 0
        if step % 4 == 0:
            assert_reads_the_same(lake, root, source)
    assert_reads_the_same(lake, root, source)
    assert verify(handle_of(lake.table("a.b"))).is_empty
    late = ledger.open(str(tmp_path / "late"))
    taken(late, source.folder)
    assert_reads_the_same(late, tmp_path / "late", source)


@pytest.mark.long
@pytest.mark.parametrize("kind", ["plain", "keyed"])
def test_a_history_of_three_hundred_steps_reads_the_same_at_every_snapshot(
    kind: str, tmp_path: Path
) -> None:
    source = PaimonSource(tmp_path / "theirs", keyed=kind == "keyed")
    lake, root = ledger.open(str(tmp_path / "lake")), tmp_path / "lake"
    for step, _ in enumerate(source.life(30, 300)):
        if step % 60 == 0:
            taken(lake, source.folder)
    taken(lake, source.folder)
    assert_reads_the_same(lake, root, source)
    assert verify(handle_of(lake.table("a.b"))).is_empty


def test_a_tag_that_says_when_it_was_set_comes_with_that_time(tmp_path: Path) -> None:
    source = PaimonSource(tmp_path / "theirs")
    source.append()
    source.append()
    source.table.create_tag("v1", snapshot_id=1)
    (file,) = source.folder.glob("tag/tag-v1")
    content = json.loads(file.read_bytes())
    millis = content["timeMillis"] + 1
    at = datetime.fromtimestamp(millis // 1000, UTC)
    parts = [at.year, at.month, at.day, at.hour, at.minute, at.second]
    content["tagCreateTime"] = [*parts, millis % 1000 * 1_000_000]
    file.write_text(json.dumps(content))
    lake = ledger.open(str(tmp_path / "lake"))

    taken(lake, source.folder)

    tag = lake.table("a.b").state.tags["v1"]
    assert (tag.snapshot_id, tag.create_time_millis) == (1, millis)


def test_a_branch_is_imported_with_its_snapshots_and_dropped_with_them(tmp_path: Path) -> None:
    source = PaimonSource(tmp_path / "theirs")
    source.append()
    source.table.create_tag("v1")
    source.table.branch_manager().create_branch("dev", "v1")
    lake, root = ledger.open(str(tmp_path / "lake")), tmp_path / "lake"
    assert "dev" in taken(lake, source.folder).refs
    table = lake.table("a.b")
    table.project("paimon")
    mine = CatalogFactory.create({"warehouse": str(root)})
    there = source.catalog.get_table("s.t$branch_dev")
    assert rows(mine.get_table("a.b$branch_dev")) == rows(there) != []
    assert {name: each.head_id for name, each in table.state.all_branches.items()} == {"dev": 1}
    with pytest.raises(NotFoundError, match="read it by an engine of Paimon"):
        table.at(branch="dev")
    source.table.branch_manager().drop_branch("dev")
    taken(lake, source.folder)
    table.project("paimon")
    assert not list((root / handle_of(table).path).glob("branch/*/*/*"))
    assert table.state.all_branches == {}


def test_a_rollback_at_the_source_is_history_here(tmp_path: Path) -> None:
    source = PaimonSource(tmp_path / "theirs")
    source.append()
    source.append()
    lake = ledger.open(str(tmp_path / "lake"))
    taken(lake, source.folder)
    before = lake.table("a.b").state.version
    source.table.rollback_to(1)
    source.append()
    assert taken(lake, source.folder).snapshots == (2,)
    table = lake.table("a.b")
    assert table.state.snapshot_ids == (2, 1)
    older = table.at(version=before).snapshot
    assert older is not None
    assert table.state.snapshot is not None
    assert older.id == table.state.snapshot.id == 2
    assert older.uuid != table.state.snapshot.uuid


def test_a_mirrored_table_is_not_projected_to_other_formats(tmp_path: Path) -> None:
    source = PaimonSource(tmp_path / "theirs")
    source.append()
    lake = lake_on(memory(), clock=now)
    taken(lake, source.folder)
    table = lake.table("a.b")
    for each in ("iceberg", "delta"):
        with pytest.raises(LedgerError, match=f"{each.title()} table: .* read it by paimon"):
            table.project(each)


@pytest.mark.parametrize("kind", ["plain", "keyed"])
def test_its_files_are_listed_and_planned_as_paimon_plans_them(tmp_path: Path, kind: str) -> None:
    source = PaimonSource(tmp_path / "theirs", keyed=kind == "keyed")
    for _ in range(3):
        source.append()
    lake = ledger.open(str(tmp_path / "lake"))
    taken(lake, source.folder)
    table = lake.table("a.b")
    scan = source.table.new_read_builder().new_scan()
    planned = {file.file_name for split in scan.plan().splits() for file in split.files}
    found = {Path(each.path).name: each for each in table.at().files}
    assert found.keys() == planned
    assert all(Path(each.path.removeprefix("file://")).is_file() for each in found.values())
    assert len(table.at(snapshot=source.snapshots[0]).files) < len(found)
    # Its writer says nothing of columns, and so no file is left out by them.
    assert len(table.at().plan("id >= 4").files) == len(found)
    if kind == "plain":
        assert {each.file.partition for each in table.at().plan("kind = 'a'").files} == {("a",)}


def test_another_table_is_rejected(tmp_path: Path) -> None:
    source = PaimonSource(tmp_path / "theirs")
    lake = lake_on(memory(), clock=now)
    taken(lake, source.folder)
    other = PaimonSource(tmp_path / "other")
    with pytest.raises(AlreadyExistsError, match="under another name"):
        taken(lake, other.folder)
    lake.create_table("a.own", Schema.of({"id": "INT"}))
    with pytest.raises(AlreadyExistsError, match="is the ledger's own"):
        taken(lake, source.folder, "a.own")
    shutil.rmtree(source.folder)
    shutil.copytree(TABLES[0], source.folder)
    with pytest.raises(AlreadyExistsError, match="dropped and recreated"):
        taken(lake, source.folder)


def test_bad_sources_are_reported_in_a_line_and_leave_nothing(tmp_path: Path) -> None:
    lake = lake_on(memory(), clock=now)
    (tmp_path / "empty").mkdir()
    half = PaimonSource(tmp_path / "half")
    half.append()
    path = half.folder / "snapshot/snapshot-1"
    path.write_bytes(path.read_bytes()[:-20])
    lost = PaimonSource(tmp_path / "lost")
    lost.append()
    next(lost.folder.glob("manifest/manifest-list*-1")).unlink()
    without = PaimonSource(tmp_path / "without")
    without.add("x")
    without.append()
    (without.folder / "schema/schema-1").unlink()
    bad: list[tuple[Path, type[Exception], str]] = [
        (tmp_path / "nowhere", NotFoundError, "holds no Paimon table"),
        (tmp_path / "empty", NotFoundError, "holds no Paimon table"),
        (half.folder, InvalidInputError, "snapshot-1"),
        (lost.folder, NotFoundError, "which snapshot 1 reads, is gone"),
        (without.folder, NotFoundError, "schema-1 is missing"),
    ]
    for source, error, match in bad:
        with pytest.raises(error, match=match) as refused:
            taken(lake, source)
        assert "\n" not in str(refused.value)
    with pytest.raises(InvalidInputError, match="credentials|user|password"):
        lake.import_table("a.b", "s3://me:secret@bucket/t", format_name="paimon")
    assert not lake.is_begun


def test_what_the_ledger_does_not_hold_is_named(tmp_path: Path) -> None:
    source = PaimonSource(tmp_path / "theirs")
    source.append()
    path = source.folder / "snapshot/snapshot-1"
    path.write_text(json.dumps({**json.loads(path.read_text()), "newThing": 1}))
    (source.folder / "consumer").mkdir()
    (source.folder / "consumer/consumer-x").write_text('{"nextSnapshot": 1}')
    done = taken(lake_on(memory(), clock=now), source.folder)
    assert len(done.not_carried) == 2
    assert "newThing" in done.not_carried[1]


def test_between_two_schemas_lie_their_keys_and_the_highest_id() -> None:
    before = Schema.of({"id": "BIGINT NOT NULL", "day": "DATE NOT NULL", "note": "STRING"})
    after = evolve(
        before,
        id=1,
        partition_keys=("day",),
        primary_keys=("day", "id"),
        highest_field_id=9,
    )

    assert list(schema_events(before, after)) == [
        UpdateKeys(("day",), ("day", "id")),
        TableFactsSet(last_column_id=9),
        SchemaNamed(1),
    ]
    assert list(schema_events(evolve(after, highest_field_id=9), evolve(after, id=2))) == [
        SchemaNamed(2)
    ]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"highestFieldId": 0}, r"schema-0: \$\.highestFieldId: is 0, below the id"),
        ({"partitionKeys": ["nope"]}, r"schema-0: \$\.partitionKeys: 'nope' is no column"),
        ({"primaryKeys": ["nope"]}, r"schema-0: \$\.primaryKeys: 'nope' is no column"),
        ({"id": 0}, r"schema-0: \$\.fields\[1\]: column .* has the id 0 of column"),
        ({"name": "same"}, r"schema-0: \$\.fields\[1\]\.name: 'same' is the name of"),
    ],
)
def test_a_table_whose_schema_contradicts_itself_is_rejected(
    tmp_path: Path, changed: dict[str, Any], message: str
) -> None:
    source = tmp_path / "source"
    shutil.copytree(DATA / "pypaimon_wh/ledger.db/append_part", source)
    file = source / "schema/schema-0"
    document = json.loads(file.read_text("utf-8"))
    for key, value in changed.items():
        document[key] = value
        if key in {"id", "name"}:
            document["fields"] = [{**each, key: value} for each in document["fields"]]
    file.write_text(json.dumps(document), "utf-8")

    with pytest.raises(InvalidInputError, match=message):
        taken(lake_on(memory()), source)
