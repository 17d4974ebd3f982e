"""REST updates to a promoted table: they change what they ask for, or are rejected."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import ledger
from ledger import InvalidChangeError, LedgerError, Table
from ledger.state import IcebergOrigin
from projections.iceberg import StaleBaseError, commit_updates, expire_snapshots
from tests.projections.iceberg.importing.writing import appended, created

ADDED = {
    "type": "struct",
    "fields": [
        {"id": 1, "name": "id", "type": "long", "required": False},
        {"id": 2, "name": "title", "type": "string", "required": False},
        {"id": 3, "name": "day", "type": "date", "required": False},
    ],
}


def promoted(folder: Path) -> Table:
    theirs = created(folder / "t")
    for number in range(3):
        appended(theirs, number, name=[str(number)])
    lake = ledger.open(folder / "lake")
    lake.import_table("a.b", theirs.metadata_location)
    lake.promote("a.b")
    return lake.table("a.b")


def reopened(folder: Path) -> Table:
    return ledger.open(folder / "lake").table("a.b")


def origin(table: Table) -> IcebergOrigin:
    return table.state.origin_of_kind(IcebergOrigin)


def test_updates_become_the_events_of_what_they_change(tmp_path: Path) -> None:
    table = promoted(tmp_path)
    first, *_ = origin(table).snapshots
    current = origin(table).schema_id
    found = commit_updates(
        table,
        [
            {"action": "set-properties", "updates": {"owner": "ann"}},
            {"action": "add-schema", "schema": ADDED},
            {"action": "set-current-schema", "schema-id": -1},
            {
                "action": "add-spec",
                "spec": {
                    "spec-id": -1,
                    "fields": [{"source-id": 3, "transform": "month", "name": "month"}],
                },
            },
            {"action": "set-default-spec", "spec-id": -1},
            {
                "action": "set-snapshot-ref",
                "ref-name": "v1",
                "snapshot-id": first,
                "type": "tag",
                "max-ref-age-ms": 9,
            },
        ],
        [{"type": "assert-current-schema-id", "current-schema-id": current}],
        message="by engine",
    )
    assert found.state.schema.names == ("id", "title", "day")
    assert found.state.schema.options["owner"] == "ann"
    assert [each.transform for each in found.state.spec.fields] == ["month"]
    assert origin(table).refs["v1"].max_ref_age_ms == 9
    kinds = {type(e).__name__ for e in next(table.events(found.version)).transactions[0].events}
    assert {"ColumnRenamed", "ColumnAdded"} <= kinds
    assert not kinds & {"SchemaReplaced", "ColumnDropped", "SnapshotLogUpdated"}


def test_updates_that_change_nothing_commit_nothing(tmp_path: Path) -> None:
    table = promoted(tmp_path)
    before = table.state.version
    current = {"action": "set-current-schema", "schema-id": origin(table).schema_id}
    assert commit_updates(table, [current]).version == before
    assert reopened(tmp_path).state.version == before


def test_a_requirement_that_does_not_hold_commits_nothing(tmp_path: Path) -> None:
    table = promoted(tmp_path)
    before = table.state.version
    with pytest.raises(StaleBaseError, match="current schema"):
        commit_updates(
            table,
            [{"action": "set-current-schema", "schema-id": 0}],
            [{"type": "assert-current-schema-id", "current-schema-id": 77}],
        )
    assert reopened(tmp_path).state.version == before


def test_a_requirement_that_concerns_no_update_is_not_checked(tmp_path: Path) -> None:
    table = promoted(tmp_path)
    commit_updates(
        table,
        [{"action": "set-properties", "updates": {"owner": "ann"}}],
        [{"type": "assert-current-schema-id", "current-schema-id": 77}],
    )
    assert reopened(tmp_path).state.schema.options["owner"] == "ann"


def test_updates_are_decided_again_on_what_others_committed(tmp_path: Path) -> None:
    table = promoted(tmp_path)
    other = ledger.open(tmp_path / "lake").table("a.b")
    other.alter([ledger.SetOption("theirs", "1")])
    commit_updates(table, [{"action": "set-properties", "updates": {"ours": "2"}}])
    options = reopened(tmp_path).state.schema.options
    assert (options["theirs"], options["ours"]) == ("1", "2")


SNAPSHOT = {
    "snapshot-id": 9_000_000_000_000_000_001,
    "sequence-number": 99,
    "timestamp-ms": 1,
    "manifest-list": "file:/x",
}


@pytest.mark.parametrize(
    ("update", "problem"),
    [
        ({"action": "add-snapshot", "snapshot": SNAPSHOT}, "add a snapshot"),
        ({"action": "remove-snapshot-ref", "ref-name": "main"}, "move or remove main"),
        ({"action": "set-location", "location": "s3://elsewhere"}, "change the location"),
        ({"action": "set-properties", "updates": {"ledger.personal": "id"}}, "options of the"),
        (
            {
                "action": "add-encryption-key",
                "encryption-key": {"key-id": "k", "encrypted-key-metadata": "AA=="},
            },
            "encryption",
        ),
        ({"action": "assign-uuid", "uuid": "00000000-0000-0000-0000-000000000000"}, "uuid"),
    ],
)
def test_what_the_ledger_keeps_itself_is_rejected(
    tmp_path: Path, update: dict[str, Any], problem: str
) -> None:
    table = promoted(tmp_path)
    before = table.state.version
    with pytest.raises(InvalidChangeError, match=problem):
        commit_updates(table, [update])
    assert reopened(tmp_path).state.version == before


def test_a_table_that_follows_a_source_takes_no_updates(tmp_path: Path) -> None:
    theirs = created(tmp_path / "t")
    lake = ledger.open(tmp_path / "lake")
    lake.import_table("a.b", theirs.metadata_location)
    with pytest.raises(LedgerError, match="promote"):
        commit_updates(lake.table("a.b"), [{"action": "set-properties", "updates": {"a": "b"}}])


def test_expiry_keeps_what_the_retention_keeps(tmp_path: Path) -> None:
    table = promoted(tmp_path)
    *_, last = origin(table).snapshots
    made = {each.timestamp_ms for each in origin(table).snapshots.values()}
    expire_snapshots(table, max(made) + 1, older_than_ms=max(made) + 1, retain_last=1)
    assert list(origin(table).snapshots) == [last]
    assert [each.snapshot_id for each in origin(table).snapshot_log] == [last]
