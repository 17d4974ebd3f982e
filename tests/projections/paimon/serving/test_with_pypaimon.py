"""Served tables with manifests and data that pypaimon wrote, read by pypaimon from the folder."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from attrs import define

import ledger
from ledger import Ledger, Schema, UnsupportedError
from ledger.events.schema import AddColumn
from ledger.model.instant import SnapshotInstant, VersionInstant
from ledger.model.names import Identifier
from ledger.table_handle import handle_of
from projections.paimon.materialise import verify
from projections.paimon.served import alter_table, create_table
from projections.paimon.served_registration import register_table
from projections.paimon.served_replacement import replace_table
from projections.paimon.served_rollback import rollback_table
from tests.projections.paimon.serving.engines import Engine

pypaimon = pytest.importorskip("pypaimon")

ROWS = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("day", pa.string())])
NAME = Identifier("a", "t")


@define
class Lakes:
    """A ledger, and a warehouse of pypaimon in which it writes what is then committed here."""

    root: Path
    lake: Ledger
    engine: Engine

    @classmethod
    def created(cls, root: Path, *keys: str, **options: str) -> Lakes:
        """Return both with the table `a.t`: with primary keys, or without."""
        lake = ledger.open(root / "lake")
        lake.create_database("a")
        wanted = Schema.of(
            {"id": "BIGINT NOT NULL", "day": "STRING"}, primary_keys=keys, options=options
        )
        engine = Engine(create_table(handle_of(lake), NAME, wanted))
        catalog = pypaimon.CatalogFactory.create({"warehouse": str(root / "scratch")})
        catalog.create_database("a", ignore_if_exists=True)
        schema = pypaimon.Schema.from_pyarrow_schema(ROWS, primary_keys=list(keys), options=options)
        catalog.create_table("a.t", schema, ignore_if_exists=False)
        return cls(root, lake, engine)

    @property
    def folder(self) -> Path:
        return Path(self.engine.table.location.removeprefix("file://"))

    def write(self, *ids: int) -> dict[str, Any]:
        """Let pypaimon write rows; commit its snapshot here, and copy its files."""
        catalog = pypaimon.CatalogFactory.create({"warehouse": str(self.root / "scratch")})
        builder = catalog.get_table("a.t").new_batch_write_builder()
        write, commit = builder.new_write(), builder.new_commit()
        rows = [{"id": each, "day": f"day {each}"} for each in ids]
        write.write_arrow(pa.Table.from_pylist(rows, ROWS))
        commit.commit(write.prepare_commit())
        write.close()
        commit.close()
        source = self.root / "scratch/a.db/t"
        for each in source.rglob("*"):
            inside = each.relative_to(source)
            if each.is_file() and inside.parts[0] not in {"schema", "snapshot"}:
                (self.folder / inside).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(each, self.folder / inside)
        number = 1 if self.engine.sent is None else self.engine.sent["id"] + 1
        snapshot: dict[str, Any] = json.loads((source / f"snapshot/snapshot-{number}").read_text())
        base = None if self.engine.sent is None else self.engine.sent["uuid"]
        assert self.engine.send(snapshot, base)
        self.engine.sent = snapshot
        return snapshot

    def read(self) -> list[int]:
        """Return the ids that pypaimon reads from the served table's folder."""
        catalog = pypaimon.CatalogFactory.create({"warehouse": str(self.root / "lake")})
        builder = catalog.get_table("a.t").new_read_builder()
        found = builder.new_read().to_arrow(builder.new_scan().plan().splits())
        return sorted(found["id"].to_pylist())


@pytest.mark.parametrize("keys", [(), ("id",)])
def test_what_pypaimon_committed_is_read_by_it_and_listed_here(
    keys: tuple[str, ...], tmp_path: Path
) -> None:
    lakes = Lakes.created(tmp_path, *keys, **({"bucket": "1"} if keys else {}))
    lakes.write(1, 2)
    lakes.write(3)
    assert lakes.read() == [1, 2, 3]
    table = lakes.lake.table("a.t")
    assert sum(each.record_count for each in table.at().files) == 3
    assert sum(each.record_count for each in table.at(snapshot=1).files) == 2
    assert table.at().totals.record_count == 3
    assert verify(lakes.engine.table).is_empty


def test_rows_after_a_rollback_are_those_of_the_snapshot(tmp_path: Path) -> None:
    lakes = Lakes.created(tmp_path)
    lakes.write(1)
    lakes.write(2)
    rollback_table(lakes.engine.table, SnapshotInstant(1))
    assert lakes.read() == [1]
    then = lakes.lake.table("a.t").at(version=2).files
    assert sum(each.record_count for each in then) == 2


def test_a_replaced_table_has_no_rows_and_its_history(tmp_path: Path) -> None:
    lakes = Lakes.created(tmp_path)
    lakes.write(1, 2)
    wanted = Schema.of({"name": "STRING", "count": "INT"}, options={"team": "x"})
    replace_table(lakes.engine.table, wanted)
    state = lakes.engine.table.state
    assert (state.version, state.schema.id, state.schema.names) == (2, 1, ("name", "count"))
    assert state.schema.options == {"team": "x", "ledger.formats": "paimon"}
    catalog = pypaimon.CatalogFactory.create({"warehouse": str(tmp_path / "lake")})
    table = catalog.get_table("a.t")
    builder = table.new_read_builder()
    assert builder.new_scan().plan().splits() == []
    assert [each.name for each in table.fields] == ["name", "count"]
    assert lakes.engine.table.files_at(state) == ()
    before = lakes.engine.table.state_at(state, VersionInstant(1))
    assert sum(each.record_count for each in lakes.engine.table.files_at(before)) == 2
    assert verify(lakes.engine.table).is_empty
    # The latest snapshot has no rows, so that only the schema is replaced.
    replace_table(lakes.engine.table, wanted)
    assert lakes.engine.table.state.last_snapshot_id == 2
    with pytest.raises(UnsupportedError, match="partition keys"):
        replace_table(lakes.engine.table, Schema.of({"a": "INT", "b": "INT"}, partition_keys=["a"]))


def test_a_moved_ledger_takes_its_served_tables_along(tmp_path: Path) -> None:
    lakes = Lakes.created(tmp_path)
    lakes.write(1)
    shutil.move(tmp_path / "lake", tmp_path / "there")
    lake = ledger.open(tmp_path / "there")
    lake.record_move()
    table = lake.table("a.t")
    (file,) = table.at().files
    assert file.path.startswith(f"file://{tmp_path}/there/")
    alter_table(handle_of(table), [AddColumn(("more",), "INT")])
    assert (tmp_path / "there/a.db/t/schema/schema-1").exists()
    assert verify(handle_of(table)).is_empty


def test_a_registered_table_is_read_and_continued(tmp_path: Path) -> None:
    lakes = Lakes.created(tmp_path)
    lakes.write(1)
    lakes.write(2)
    copy = tmp_path / "lake/elsewhere/t"
    shutil.copytree(tmp_path / "scratch/a.db/t", copy)
    before = {each: each.read_bytes() for each in copy.rglob("*") if each.is_file()}
    table = register_table(handle_of(lakes.lake), Identifier("a", "b"), str(copy))
    assert table.state.version == 0
    assert [*table.state.origin.snapshots] == [1, 2]  # type: ignore[union-attr]
    assert sum(each.record_count for each in table.files_at(table.state)) == 2
    assert {each: each.read_bytes() for each in before} == before
    engine = Engine(table, json.loads((copy / "snapshot/snapshot-2").read_text()))
    engine.commit(deltaManifestList=None)
    assert [*table.state.origin.snapshots] == [1, 2, 3]  # type: ignore[union-attr]
    assert json.loads((copy / "snapshot/snapshot-3").read_text())["id"] == 3
    assert verify(table).is_empty
