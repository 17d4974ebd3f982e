"""A promoted Paimon table: its source lets nobody commit any more, and its snapshots go on here."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

import ledger
from ledger import (
    AddColumn,
    Ledger,
    NotFoundError,
    RenameColumn,
    SetOption,
    Table,
    TableAt,
    UnsupportedError,
)
from ledger.table_handle import handle_of
from projections.paimon import PAIMON
from projections.paimon import importing as promoting
from tests.projections.paimon.importing.paimon_source import PaimonSource, grown, impatient, rows
from tests.pypaimon_or_skip import CatalogFactory
from tests.thorough import some


def followed(tmp_path: Path, source: PaimonSource) -> Ledger:
    lake = ledger.open(str(tmp_path / "lake"))
    lake.import_table("a.b", str(source.folder), format_name="paimon")
    return lake


def owned(tmp_path: Path, source: PaimonSource) -> Table:
    lake = followed(tmp_path, source)
    lake.promote("a.b")
    return lake.table("a.b")


def own_file(table: Table, file: str, ids: list[int], kind: str, **columns: list[Any]) -> str:
    """A data file in the ledger's place, of one partition."""
    path = Path(table.location.removeprefix("file://")) / "data" / file
    path.parent.mkdir(parents=True, exist_ok=True)
    said = {"id": pa.array(ids, pa.int64()), "kind": [kind] * len(ids), **columns}
    parquet.write_table(pa.table(said), path)
    return f"{table.location}/data/{file}"


def read(table: Table, **options: str) -> list[str]:
    """Rows that pypaimon reads from the projected files."""
    PAIMON.project(handle_of(table))
    place = Path(table.location.removeprefix("file://"))
    found = CatalogFactory.create({"warehouse": str(place.parents[1])}).get_table("a.b")
    return rows(found, **options)


def at(snapshot: int) -> dict[str, str]:
    return {"scan_snapshot_id": str(snapshot)}


def is_sound(table: Table) -> bool:
    PAIMON.project(handle_of(table))
    found = PAIMON.verify(handle_of(table))
    return found.is_empty and not found.foreign


def changed(table: Table) -> Iterator[tuple[int, list[int]]]:
    """Changes by an owner, one after the other, each with the snapshot and its ids then."""
    table.add_files(own_file(table, "one.parquet", [70], "a", name=["z"], c1=["y"]))
    yield 5, [0, 1, 1, 2, 3, 3, 4, 70]
    table.alter([RenameColumn(("name",), "title"), AddColumn(("age",), "INT")])
    table.add_files(own_file(table, "two.parquet", [80], "b", title=["x"], c1=["w"], age=[None]))
    table.create_tag("mine")
    yield 6, [0, 1, 1, 2, 3, 3, 4, 70, 80]
    theirs = table.state.origin.source
    table.delete_files([each.path for each in table.at().files if theirs in each.path])
    yield 7, [70, 80]
    table.rollback(snapshot=1)
    yield 8, [0, 1]
    table.delete_files(own := [each.path for each in table.at().files][:1])
    assert "kind=a" in own[0]
    yield 9, [1]
    table.rollback(tag="mine")
    yield 10, [0, 1, 1, 2, 3, 3, 4, 70, 80]
    table.rollback(snapshot=8)
    yield 11, [0, 1]
    for number in range(12, 24):
        path = own_file(table, f"{number}.parquet", [number], "a", title=["v"])
        table.add_files(path)
        yield number, [0, 1, *range(12, number + 1)]


def ids(found: list[str]) -> list[int]:
    return sorted(int(each.split("'id': ")[1].split(",")[0]) for each in found)


def test_rows_are_equal_before_and_after_at_every_snapshot_and_tag(tmp_path: Path) -> None:
    source = grown(tmp_path / "wh")
    before = {number: rows(source.table, **at(number)) for number in (1, 2, 3)}
    table = owned(tmp_path, source)
    assert (table.state.is_promoted, table.state.origin.source) == (True, str(source.folder))
    assert read(table) == before[3] == rows(source.table)
    seen = {4: ids(before[3])}
    for snapshot, expected in changed(table):
        assert ids(read(table)) == expected
        assert table.state.totals.record_count == len(expected)
        seen[snapshot] = expected
    assert is_sound(table)
    for number, texts in before.items():
        assert rows(source.table, **at(number)) == read(table, **at(number)) == texts
    for number, found in seen.items():
        assert ids(read(table, **at(number))) == found
        there = table.at(snapshot=number)
        assert sum(each.record_count for each in there.files) == len(found)
        assert there.state.totals.record_count == len(found)
    assert read(table, scan_tag_name="t1") == before[1]
    assert ids(read(table, scan_tag_name="mine")) == seen[6]
    PAIMON.rebuild(handle_of(table))
    assert ids(read(table)) == seen[23]


def test_files_are_the_same_whether_projected_step_by_step_or_at_once(tmp_path: Path) -> None:
    table = owned(tmp_path, grown(tmp_path / "wh"))
    for _ in changed(table):
        PAIMON.project(handle_of(table))
    table.alter([SetOption("ledger.reader-grace", "0")])
    table.expire_snapshots(before=10)
    assert is_sound(table)
    assert table.state.snapshot_ids == (*range(23, 9, -1), 6, 1)
    assert ids(read(table, scan_tag_name="mine")) == [0, 1, 1, 2, 3, 3, 4, 70, 80]
    table.delete_tag("mine")
    assert is_sound(table)
    with pytest.raises(NotFoundError, match="does not exist or was expired"):
        table.at(snapshot=6)


@pytest.mark.parametrize("seed", some(range(12), 2))
def test_the_history_of_the_source_continues_unchanged(tmp_path: Path, seed: int) -> None:
    source = PaimonSource(tmp_path / "wh")
    lake = None
    for _ in source.life(seed, 12):
        lake = followed(tmp_path, source)
    assert lake is not None
    before = {number: rows(source.table, **at(number)) for number in source.snapshots}
    newest = rows(source.table)
    lake.promote("a.b")
    table = lake.table("a.b")
    assert read(table) == newest
    for number, expected in before.items():
        assert read(table, **at(number)) == expected
    gone = table.at().files[0]
    table.delete_files(gone.path)
    assert len(read(table)) == len(newest) - gone.record_count
    table.rollback(snapshot=min(before))
    assert len(read(table)) == len(before[min(before)])
    assert is_sound(table)


def test_a_writer_at_the_source_is_rejected_and_may_read(tmp_path: Path) -> None:
    source = impatient(grown(tmp_path / "wh"))
    held = source.table.new_batch_write_builder()
    write, commit = held.new_write(), held.new_commit()
    data = pa.table({"id": pa.array([9], pa.int64()), "kind": ["a"], "name": ["z"], "c1": ["y"]})
    required = pa.schema([pa.field("id", pa.int64(), nullable=False), *list(data.schema)[1:]])
    write.write_arrow(data.cast(required))
    said = write.prepare_commit()
    before = rows(source.table)
    table = owned(tmp_path, source)
    there = sorted(each.name for each in source.folder.glob("snapshot/*"))
    for late in (
        lambda: commit.commit(said),
        source.append,
        lambda: source.table.new_batch_write_builder().new_commit().truncate_table(),
    ):
        with pytest.raises(RuntimeError, match="Commit failed 4 after"):
            late()
    assert sorted(each.name for each in source.folder.glob("snapshot/*")) == there
    assert rows(source.table) == before == rows(source.table, **at(3))
    fence = json.loads((source.folder / "snapshot/snapshot-4").read_text())
    assert (fence["id"], fence["properties"]["lakeledger.location"]) == (3, table.location)


def test_without_a_write_barrier_the_owner_is_shown_the_later_snapshots(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = grown(tmp_path / "wh")
    monkeypatch.setattr(promoting, "conditional_store", lambda *_: None)
    lake = followed(tmp_path, source)
    lake.promote("a.b")
    source.append()
    again = lake.promote("a.b").instructions
    assert again[1].startswith(f"snapshots 4 were committed to {source.folder} after the promotion")
    assert len(read(lake.table("a.b"))) == 7


def test_a_table_without_snapshots_is_owned_by_instruction(tmp_path: Path) -> None:
    source = PaimonSource(tmp_path / "wh")
    lake = followed(tmp_path, source)
    done = lake.promote("a.b")
    assert (done.files, done.instructions[0][:16]) == (0, "stop all writers")
    table = lake.table("a.b")
    assert source.snapshots == []
    table.add_files(own_file(table, "one.parquet", [7], "a", name=["z"]))
    assert ids(read(table)) == [7]
    assert table.state.last_snapshot_id == 1
    assert is_sound(table)


def test_log_instants_blame_and_plans_continue_after_promotion(tmp_path: Path) -> None:
    table = owned(tmp_path, grown(tmp_path / "wh"))
    promoted = table.state.version
    table.alter([AddColumn(("age",), "INT")])
    table.add_files(own_file(table, "one.parquet", [70], "a", name=["z"]))
    assert [len(table.at(snapshot=each).files) for each in (1, 2, 3, 4, 5)] == [2, 4, 6, 6, 7]
    assert table.at(version=promoted).schema.names == ("id", "kind", "name", "c1")
    assert [each.id for each in table.schemas()] == [2, 1, 0]
    assert table.blame("age")
    # Its engine says nothing of its files' columns: only the ledger's own is left out.
    planned = [each.file.path for each in table.at().plan("id < 50").files]
    assert len(planned) == 6
    assert not any(each.endswith("one.parquet") for each in planned)
    assert [each.file.partition for each in table.at().plan("kind = 'b'").files] == [("b",)] * 3
    with pytest.raises(UnsupportedError, match="main only"):
        table.create_branch("audit")


def keyed(folder: Path) -> PaimonSource:
    source = PaimonSource(folder, keyed=True)
    source.append()
    return source


def tracked(folder: Path) -> PaimonSource:
    tracking: Any = {"row-tracking.enabled": "true"}
    source = PaimonSource(folder, **tracking)
    source.append()
    return source


def evolving(folder: Path) -> PaimonSource:
    options: Any = {"data-evolution.enabled": "true"}
    source = PaimonSource(folder, **options)
    source.append()
    return source


def indexed(folder: Path) -> PaimonSource:
    """A table whose newest snapshot reads an index manifest, as of deletion vectors."""
    source = PaimonSource(folder)
    source.append()
    snapshot = source.folder / "snapshot/snapshot-1"
    said = json.loads(snapshot.read_bytes())
    snapshot.write_text(json.dumps({**said, "indexManifest": "index-manifest-1"}))
    return source


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (keyed, "primary key id, and only Paimon.s engines merge.*create, then add-files"),
        (tracked, "row-tracking.enabled, so that its engines assign row ids"),
        (evolving, "data-evolution.enabled, so that its files hold subsets of the columns"),
    ],
)
def test_what_only_its_engines_can_write_stays_theirs(tmp_path: Path, made: Any, said: str) -> None:
    source = made(tmp_path / "wh")
    lake = followed(tmp_path, source)
    for asked in (lake.plan_promotion, lake.promote):
        with pytest.raises(UnsupportedError, match=f"stays its engines': .*{said}"):
            asked("a.b")
    source.append()
    assert source.snapshots == [1, 2]
    assert lake.import_table("a.b", str(source.folder), format_name="paimon").transactions == 1


def test_a_table_that_reads_index_manifests_stays_its_engines(tmp_path: Path) -> None:
    lake = followed(tmp_path, indexed(tmp_path / "wh"))
    for asked in (lake.plan_promotion, lake.promote):
        with pytest.raises(
            UnsupportedError, match="snapshot 1 reads the index manifest index-manifest-1.*compact"
        ):
            asked("a.b")
    assert [each.name for each in (tmp_path / "wh").rglob("snapshot-2")] == []


def test_a_table_with_files_of_a_schema_that_is_gone_stays_its_engines(tmp_path: Path) -> None:
    source = PaimonSource(tmp_path / "wh")
    source.append()
    source.add("c1")
    source.append()
    lake = followed(tmp_path, source)
    (source.folder / "schema/schema-0").unlink()
    with pytest.raises(UnsupportedError, match="written with schema 0.*write its rows again"):
        lake.promote("a.b")


def test_the_rows_of_a_promoted_table_are_read_as_before(tmp_path: Path) -> None:
    source = PaimonSource(tmp_path / "warehouse")
    source.append(3)
    source.append(2)
    lake = followed(tmp_path, source)
    table = lake.table("a.b")

    def found(at: TableAt) -> list[str]:
        return sorted(map(str, at.to_arrow().to_pylist()))

    before = found(table.at())
    assert len(before) == 5
    lake.promote("a.b")
    assert found(table.at()) == before
    table.append([{"id": 70, "kind": "a", "name": "new"}])
    assert len(found(table.at())) == 6
    assert found(table.at(version=table.state.version - 1)) == before
    assert found(table.at(snapshot=2)) == before
