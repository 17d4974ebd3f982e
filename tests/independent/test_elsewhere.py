"""The second reader comes to the same of tables that were born elsewhere, at every version."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ledger import AddColumn, FileChange, Ledger
from ledger.events import TableEvent
from ledger.evolution.fold.table_builder import TableBuilder
from ledger.evolution.state import TableState
from ledger.log.codec import Codec
from ledger.model.errors import InvalidChangeError
from ledger.model.schema import Schema
from ledger.model.types.wire import field_to_wire
from ledger.stores import LocalStore
from tests.independent.elsewhere import FromDelta, FromIceberg, FromPaimon, born
from tests.independent.replayer import BrokenError, Doc, Table, commits, tables
from tests.lakes import lake_on
from tests.projections.delta.importing.test_following import now, written
from tests.projections.iceberg.importing.writing import appended, created
from tests.projections.paimon.importing.test_paimon_import import DATA as PAIMON

DATA = Path(__file__).parents[1] / "data/born"
NOTHING: tuple[Any, ...] = (None, {}, [], "", 0, -1)


def plain(said: Any) -> Any:
    """Return what stands in JSON, without what is as good as not said."""
    told = json.loads(json.dumps(said))

    def less(it: Any) -> Any:
        if isinstance(it, dict):
            kept = {key: less(each) for key, each in it.items()}
            return {key: each for key, each in kept.items() if each not in NOTHING}
        return [less(each) for each in it] if isinstance(it, list) else it

    return less(told)


def schema_of(schema: Schema) -> Doc:
    return {
        "fields": msgspec.to_builtins([field_to_wire(each) for each in schema.fields]),
        "options": dict(schema.options),
        "partitionKeys": list(schema.partition_keys),
        "primaryKeys": list(schema.primary_keys),
        "comment": schema.comment,
        "identifierFieldIds": list(schema.identifier_field_ids),
        "highestFieldId": schema.highest_field_id,
    }


def mine(state: TableState) -> Doc:
    """Return a state as the other reader says it."""
    schema = state.schema
    found: Doc = {
        **schema_of(schema),
        "schemaId": schema.id,
        "specs": {e.spec_id: len(e.fields) for e in state.specs},
        "spec": state.default_spec_id,
        "orders": {e.order_id: len(e.fields) for e in state.sort_orders},
        "order": state.default_order_id,
        "updated": [state.updated_at, state.updated_by],
        "version": state.version,
    }
    if state.born is not None:
        found["elsewhere"] = msgspec.to_builtins(state.born, str_keys=True)
    if state.delta is not None:
        found["elsewhere"] = msgspec.to_builtins(state.delta)
        found["files"] = state.totals.file_count
    if state.paimon is not None:
        paimon = state.paimon
        found["elsewhere"] = {
            "schemas": {key: schema_of(paimon.schema(key)) for key in paimon.schemas},
            "snapshots": {key: each.total_record_count for key, each in paimon.snapshots.items()},
            "kept": {key: each.total_record_count for key, each in paimon.kept.items()},
            "addedIn": paimon.added_in,
            "branches": paimon.branches,
            "tags": {name: each.snapshot_id for name, each in state.tags.items()},
        }
    return found


def theirs(table: Table) -> Doc:
    """Return what the other reader came to."""
    state = table.state
    names = ("partitionKeys", "primaryKeys", "comment", "identifierFieldIds", "schemaId")
    more = ("highestFieldId", "spec", "order", "updated", "version")
    found: Doc = {
        **{name: state[name] for name in (*names, *more)},
        "fields": table.fields,
        "options": table.options,
        "specs": {key: len(each) for key, each in state["specs"].items()},
        "orders": {key: len(each) for key, each in state["orders"].items()},
    }
    match table:
        case FromIceberg():
            found["elsewhere"] = table.born
        case FromDelta():
            found["elsewhere"], found["files"] = table.delta, state["totals"][2]
        case FromPaimon():
            snapshots = ((k, e["totalRecordCount"]) for k, e in table.snapshots.items())
            found["elsewhere"] = {
                "schemas": table.schemas,
                "snapshots": dict(snapshots),
                "kept": {k: e["totalRecordCount"] for k, e in table.kept.items()},
                "addedIn": table.added_in,
                "branches": table.branch_files,
                "tags": {name: each[0] for name, each in state["tags"].items()},
            }
    return found


def compared(lines: Iterable[bytes]) -> int:
    """Compare both readers after each commit; return how many there were."""
    lines = list(lines)
    codec: Codec[TableEvent] = Codec(TableEvent)
    builder = TableBuilder()
    other = born(json.loads(lines[0]), Path())
    for number, line in enumerate(lines):
        builder.commit(codec.decode(line, "a line"))
        other.fold(json.loads(line))
        assert plain(theirs(other)) == plain(mine(builder.freeze())), (number, line)
    return len(lines)


@pytest.mark.parametrize("name", sorted(each.name for each in DATA.glob("*.jsonl")))
def test_a_table_that_was_born_elsewhere_is_read_the_same(name: str) -> None:
    assert compared((DATA / name).read_bytes().splitlines()) > 2


def agrees(root: Path) -> int:
    """Compare both readers of the table of a ledger, whose chain the other one checks, too."""
    (stream,) = tables(root)
    assert list(commits(root / "_ledger"))
    count = len(list(commits(stream)))
    bodies = (each.read_bytes().rstrip() for each in sorted((stream / "log").glob("*.json")))
    assert compared(bodies) == count
    return count


def lake_in(folder: Path) -> Ledger:
    return lake_on(LocalStore(folder), clock=now)


@pytest.mark.parametrize("source", sorted(PAIMON.glob("pypaimon_wh/ledger.db/*")), ids=str)
def test_what_pypaimon_wrote_is_read_the_same_once_it_came_in(source: Path, tmp_path: Path) -> None:
    lake_in(tmp_path).import_table("a.b", str(source), format_name="paimon")
    assert agrees(tmp_path) > 1


def test_what_pyiceberg_wrote_is_read_the_same_before_and_after_its_promotion(
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
    count = agrees(tmp_path / "lake")
    lake.promote("a.b")
    table = lake.table("a.b")
    table.alter([AddColumn(("day",), "DATE")])
    path = f"{table.location}/1.parquet"
    table.append([FileChange(path=path, record_count=1, file_size_in_bytes=9, field_ids=True)])
    table.create_tag("mine")
    table.delete_files(path)
    table.expire_snapshots(before=table.state.last_snapshot_id)
    assert agrees(tmp_path / "lake") == count + 6


def test_what_follows_a_delta_log_is_read_the_same(tmp_path: Path) -> None:
    source = written(tmp_path / "theirs")
    lake = lake_in(tmp_path / "lake")
    lake.import_table("a.b", source, format_name="delta")
    assert agrees(tmp_path / "lake") == 5
    lake.promote("a.b")
    table = lake.table("a.b")
    table.alter([AddColumn(("day",), "DATE")])
    table.append([FileChange(path="new", record_count=1, file_size_in_bytes=9)])
    table.create_tag("mine")
    assert agrees(tmp_path / "lake") == 10


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        (
            "commits.jsonl",
            b'"refName":"main","ref":{"snapshotId":7',
            b'"refName":"main","ref":{"snapshotId":8',
        ),
        ("paimon.jsonl", b'"snapshotId":5,"schemaId":3', b'"snapshotId":3,"schemaId":3'),
        ("promoted.jsonl", b'"snapshotId":7,"schemaId":1', b'"snapshotId":9,"schemaId":1'),
        ("delta.jsonl", b'"deltaVersion":9', b'"deltaVersion":5'),
    ],
)
def test_what_contradicts_such_a_table_is_broken_for_both(
    name: str, old: bytes, new: bytes
) -> None:
    lines = (DATA / name).read_bytes()
    assert lines.count(old) >= 1
    forged = lines.replace(old, new, 1).splitlines()
    codec: Codec[TableEvent] = Codec(TableEvent)
    builder, other = TableBuilder(), born(json.loads(forged[0]), Path())

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
