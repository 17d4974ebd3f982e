"""An event that contradicts the table's state is rejected; the error names the contradiction."""

from __future__ import annotations

from typing import Any

import pytest

from ledger import InvalidChangeError, SetOption, TableDroppedError
from ledger.events import (
    ColumnDropped,
    SchemaRecord,
    SnapshotsExpired,
    TableCreated,
    TableDropped,
    TableEvent,
    TableUndropped,
    TagCreated,
    TagDeleted,
    TagReplaced,
)
from tests.evolution.folds import NAME, commit, grown, order, snapshot, spec

CONTRADICTIONS: dict[str, tuple[tuple[TableEvent, ...], TableEvent, str]] = {
    "another spec of that id": ((spec(1),), spec(1, "void"), "partition spec 1 has other fields"),
    "another order of that id": ((order(1),), order(1, "nulls-last"), "sort order 1 has other"),
    "a snapshot too far": ((), snapshot(2), "snapshot 2 with schema 0 cannot follow snapshot 0"),
    "a snapshot of a schema to come": ((), snapshot(1, schema_id=1), "with schema 1 cannot follow"),
    "a wrong sum": ((), snapshot(1, total_record_count=9), "says 9 records.*0 and its 10 make 10"),
    "a tag twice": (
        (snapshot(1), TagCreated(tag_name="n", snapshot_id=1)),
        TagCreated(tag_name="n", snapshot_id=1),
        "tag 'n' exists",
    ),
    "a tag that is not there": ((), TagDeleted(tag_name="n"), "tag 'n' does not exist"),
    "a tag of no snapshot": (
        (snapshot(1),),
        TagCreated(tag_name="n", snapshot_id=0),
        "tag 'n' names snapshot 0; the newest is 1",
    ),
    "a tag of a snapshot to come": (
        (snapshot(1), TagCreated(tag_name="n", snapshot_id=1)),
        TagReplaced(tag_name="n", snapshot_id=2),
        "tag 'n' names snapshot 2; the newest is 1",
    ),
    "an expiry of all": (
        (snapshot(1),),
        SnapshotsExpired(earliest_snapshot_id=2),
        "before 2 cannot expire: those from 1 to 1 exist",
    ),
    "an expiry that goes back": (
        (snapshot(1), snapshot(2), SnapshotsExpired(earliest_snapshot_id=2)),
        SnapshotsExpired(earliest_snapshot_id=1),
        "before 1 cannot expire: those from 2 to 2 exist",
    ),
    "a drop of the last column": (
        (),
        ColumnDropped(field_names=("id",), field_id=0),
        "id is the table's last column",
    ),
    "a second creation": (
        (),
        TableCreated(identifier=NAME, table_id="t", path="p", schema=SchemaRecord((), 0)),
        "a table is created by version 0 only",
    ),
}


OF_ARGUMENTS = {
    "a drop of the last column",
    "a tag of no snapshot",
    "a tag of a snapshot to come",
    "an expiry of all",
    "an expiry that goes back",
}


@pytest.mark.parametrize("case", CONTRADICTIONS)
def test_an_event_that_contradicts_is_refused(case: str) -> None:
    events, wrong, message = CONTRADICTIONS[case]

    with pytest.raises(InvalidChangeError, match=message) as refused:
        grown(*events, wrong)

    assert refused.value.kind == ("ILLEGAL_ARGUMENT" if case in OF_ARGUMENTS else "ILLEGAL_STATE")


@pytest.mark.parametrize(("version", "millis"), [(0, 900), (2, 900), (1, 99)])
def test_a_commit_that_cannot_follow_is_refused(version: int, millis: int) -> None:
    message = f"commit {version} at {millis} cannot follow commit 0 at 100"
    with pytest.raises(InvalidChangeError, match=message) as refused:
        grown().begin(version, millis)

    assert refused.value.kind == "ILLEGAL_STATE"


@pytest.mark.parametrize("millis", [99, 201])
def test_a_time_of_effect_outside_its_place_is_refused(millis: int) -> None:
    with pytest.raises(
        InvalidChangeError, match=f"t1 took effect at {millis}, outside of 100 .*200"
    ):
        grown().commit(commit(1, effective_time_millis=millis))


def test_nothing_follows_a_drop() -> None:
    dropped = grown(TableDropped(identifier=NAME, table_id="t"))

    assert dropped.freeze().dropped
    with pytest.raises(TableDroppedError, match="nothing can follow"):
        dropped.commit(commit(2, SetOption("k", "v")))


@pytest.mark.parametrize(
    "events",
    [
        [TableUndropped(identifier=NAME, table_id="t", sealed_version=0)],
        [
            TableDropped(identifier=NAME, table_id="t"),
            TableUndropped(identifier=NAME, table_id="t", sealed_version=0),
        ],
        [
            TableDropped(identifier=NAME, table_id="t"),
            TableUndropped(identifier=NAME, table_id="other", sealed_version=1),
        ],
        [
            TableDropped(identifier=NAME, table_id="t"),
            TableUndropped(identifier=NAME, table_id="t"),
        ],
    ],
)
def test_only_the_restoration_of_the_last_seal_continues_a_stream(events: list[Any]) -> None:
    with pytest.raises(InvalidChangeError, match="restores table"):
        grown(*events)
