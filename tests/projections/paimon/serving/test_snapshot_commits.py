"""Snapshots that engines commit: recorded key by key, once, on the snapshot they are based on."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger import InvalidChangeError, InvalidInputError, NotFoundError
from ledger.ledger_handle import LedgerHandle
from ledger.model.instant import SnapshotInstant
from ledger.table_handle import handle_of
from projections.paimon.served_commits import SnapshotRequest, commit_snapshot
from projections.paimon.served_rollback import rollback_table
from projections.paimon.snapshot_file import snapshot_of_request, snapshot_to_json
from tests.lakes import memory
from tests.projections.paimon.serving.engines import (
    BATCH,
    NAME,
    Engine,
    lake_at,
    snapshot_json,
)

LONG = st.integers(-(2**63), 2**63 - 1)
COUNT = st.integers(0, 2**63 - 1)
NAMES = st.text("abc-0", min_size=1, max_size=20)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
OPTIONAL: dict[str, st.SearchStrategy[Any]] = {
    "baseManifestListSize": COUNT,
    "deltaManifestListSize": COUNT,
    "changelogManifestList": NAMES,
    "changelogManifestListSize": COUNT,
    "indexManifest": NAMES,
    "writerVersion": TEXT,
    "logOffsets": st.dictionaries(st.integers(0, 9).map(str), LONG, max_size=2),
    "changelogRecordCount": COUNT,
    "watermark": LONG,
    "statistics": NAMES,
    "properties": st.dictionaries(TEXT, TEXT, max_size=2),
    "nextRowId": COUNT,
    "operation": st.sampled_from(["WRITE", "TRUNCATE", "SOMETHING_NEW"]),
}
SNAPSHOTS = st.fixed_dictionaries(
    {
        "version": st.just(3),
        "uuid": st.uuids().map(str),
        "id": st.just(1),
        "schemaId": st.just(0),
        "baseManifestList": NAMES | st.none(),
        "deltaManifestList": NAMES | st.none(),
        "commitUser": TEXT,
        "commitIdentifier": LONG,
        "commitKind": st.sampled_from(["APPEND", "COMPACT", "OVERWRITE", "ANALYZE"]),
        "timeMillis": st.integers(0, 253_402_300_799_999),
        "totalRecordCount": LONG,
        "deltaRecordCount": LONG,
    },
    optional={key: each | st.none() for key, each in OPTIONAL.items()},
)


def said(snapshot: dict[str, Any]) -> dict[str, Any]:
    """Return what a snapshot says: absent and null are the same, and so is an empty map."""
    return {key: each for key, each in snapshot.items() if each is not None and each != {}}


@given(snapshot=SNAPSHOTS)
def test_the_recorded_snapshot_says_what_the_request_said(snapshot: dict[str, Any]) -> None:
    engine = Engine.of_new_table()
    assert engine.send(snapshot, None)
    recorded = engine.table.again().state.snapshot
    assert recorded is not None
    assert said(snapshot_to_json(recorded)) == said(snapshot)
    assert said(engine.snapshots()[1]) == said(snapshot)


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"bucketCount": 4}, "bucketCount=4"),
        ({"version": 4}, "version 4"),
        ({"baseManifestList": "../elsewhere"}, "base manifest list"),
        ({"timeMillis": -1}, "-1"),
        ({"watermark": 2**63}, "watermark"),
        ({"totalRecordCount": "7"}, "totalRecordCount"),
        ({"id": 0}, "snapshot id"),
        ({"commitKind": "MERGE"}, "commitKind"),
    ],
)
def test_a_snapshot_that_cannot_be_kept_is_rejected_by_name(
    wrong: dict[str, Any], named: str
) -> None:
    engine = Engine.of_new_table()
    with pytest.raises(InvalidInputError, match=named):
        engine.send(snapshot_json(1) | wrong, None)
    assert engine.table.again().state.version == 0
    assert not engine.snapshots()


def test_a_snapshot_is_committed_on_the_one_that_it_is_based_on() -> None:
    engine = Engine.of_new_table()
    first = engine.commit()
    second = snapshot_json(2)
    assert not engine.send(second, None)
    assert not engine.send(second, "another")
    assert not engine.send(snapshot_json(2, deltaManifestList="other"), second["uuid"])
    with pytest.raises(InvalidInputError, match="the next snapshot is 2"):
        engine.send(snapshot_json(5), first["uuid"])
    assert engine.send(second, first["uuid"])
    assert [*engine.snapshots()] == [1, 2]


def test_an_engine_that_names_no_base_commits_the_next_id_alone() -> None:
    engine = Engine.of_new_table()
    assert engine.send(snapshot_json(1))
    assert not engine.send(snapshot_json(1, deltaManifestList="another"))
    assert not engine.send(snapshot_json(3))
    assert engine.send(snapshot_json(2))


def test_a_snapshot_of_an_older_engine_has_no_uuid_to_name() -> None:
    engine = Engine.of_new_table()
    assert engine.send({**snapshot_json(1), "uuid": None}, None)
    assert engine.send(snapshot_json(2), None)
    assert not engine.send(snapshot_json(3), None)


def test_what_the_request_names_has_to_exist() -> None:
    engine = Engine.of_new_table()
    request = SnapshotRequest(
        table_id="another", snapshot=snapshot_of_request(snapshot_json(1)), base_snapshot_uuid=None
    )
    with pytest.raises(NotFoundError, match="another"):
        commit_snapshot(engine.table, request)
    with pytest.raises(NotFoundError, match="schema 1"):
        engine.send(snapshot_json(1, schemaId=1), None)


@pytest.mark.parametrize("identifier", [BATCH, 7])
def test_a_request_that_is_sent_again_is_committed_once(identifier: int) -> None:
    store = memory()
    engine = Engine.of_new_table(store)
    first = engine.commit(commitIdentifier=identifier)
    engine.commit()
    # Another server, whose handle has seen nothing, is asked again.
    other = Engine.of(lake_at(store))
    assert other.send(first, None)
    assert other.send(first)
    assert other.table.state.version == 2


def test_a_request_is_found_after_its_snapshot_expired() -> None:
    engine = Engine.of_new_table()
    first = engine.commit(commitIdentifier=7)
    second = engine.commit(commitIdentifier=8)
    engine.remove("snapshot/snapshot-1")
    third = engine.commit(commitIdentifier=9)
    assert [*engine.table.state.origin.snapshots] == [2, 3]  # type: ignore[union-attr]
    assert engine.send(first, None)
    assert engine.send(second, first["uuid"])
    assert engine.send(third, second["uuid"])
    assert engine.table.state.version == 3


def test_a_job_that_starts_again_without_a_rollback_has_the_first_results() -> None:
    engine = Engine.of_new_table()
    engine.commit(commitIdentifier=7)
    first = engine.commit(commitIdentifier=8)
    newest = engine.commit(commitIdentifier=9)
    other = {"commitIdentifier": 8, "deltaManifestList": "other-rows", "uuid": "fresh"}
    assert engine.send(snapshot_json(4, **other), newest["uuid"])
    assert engine.table.state.version == 3
    assert engine.snapshots()[2] == said(first)
    assert [*engine.snapshots()] == [1, 2, 3]
    # Another user, or another kind, is another commit.
    engine.commit(**other, commitUser="job-2")
    engine.commit(**other, commitKind="COMPACT")
    assert [*engine.snapshots()] == [1, 2, 3, 4, 5]


def test_a_job_that_starts_again_after_a_rollback_commits_again() -> None:
    engine = Engine.of_new_table()
    first = engine.commit(commitIdentifier=7)
    lost = engine.commit(commitIdentifier=8)
    rollback_table(engine.table, SnapshotInstant(1))
    engine.sent = first
    again = engine.commit(commitIdentifier=8, deltaManifestList="again")
    assert again["id"] == lost["id"] == 2
    assert engine.snapshots()[2]["deltaManifestList"] == "again"
    # Sent again, it is found; the lost one is still to be found by its version.
    assert engine.send(again, first["uuid"])
    assert engine.table.state.version == 4
    at_lost = engine.table.state_at(engine.table.state, None)
    assert at_lost.snapshot is not None
    assert at_lost.snapshot.uuid == again["uuid"]


def test_engines_cannot_commit_to_a_table_of_the_ledger() -> None:
    lake = lake_at(memory())
    handle: LedgerHandle = handle_of(lake)
    lake.create_table("a.t", {"id": "BIGINT"})
    engine = Engine(handle.table(NAME))
    with pytest.raises(InvalidChangeError, match="ledger commits the data"):
        engine.send(snapshot_json(1), None)


@pytest.mark.parametrize(
    ("most", "more", "said"),
    [
        ({"commitUser": "u" * 1_024}, {"commitUser": "u" * 1_025}, "commitUser has 1025 .* 1024"),
        (
            {"properties": {"k": "v" * 65_000}},
            {"properties": {"k": "v" * 65_536}},
            "properties and other texts .* 65536",
        ),
        ({"operation": "o" * 65_000}, {"operation": "o" * 65_536}, "other texts .* 65536"),
    ],
)
def test_texts_of_a_snapshot_are_bounded(
    most: dict[str, Any], more: dict[str, Any], said: str
) -> None:
    engine = Engine.of_new_table()
    with pytest.raises(InvalidInputError, match=said):
        engine.send(snapshot_json(1, **more), None)
    assert engine.table.state.version == 0
    assert engine.send(snapshot_json(1, **most), None)
