"""Commits of snapshots and rollbacks through Paimon's protocol."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.log.request import fresh_id
from ledger.table_handle import handle_of
from tests.projections.rest.paimon.paimon_application import (
    BATCH,
    ORDERS,
    SCHEMA,
    PaimonApplication,
    resource_error,
    snapshot,
    statistics,
)


def newest(paimon: PaimonApplication) -> dict[str, Any]:
    return dict(paimon.get(f"{ORDERS}/snapshot").json()["snapshot"])


def ids(paimon: PaimonApplication) -> list[int]:
    return [each["id"] for each in paimon.get(f"{ORDERS}/snapshots").json()["snapshots"]]


def snapshot_file(paimon: PaimonApplication, number: int, table: str = "orders") -> dict[str, Any]:
    folder = Path(paimon.table(table)["path"].removeprefix("file://"))
    return dict(json.loads((folder / f"snapshot/snapshot-{number}").read_text()))


def without_nothing(content: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in content.items() if value not in (None, {})}


COUNTS = st.integers(-(2**63), 2**63 - 1)
NAMES = st.from_regex(r"[a-z]{1,8}-[0-9]{1,4}", fullmatch=True)
MORE = st.fixed_dictionaries(
    {},
    optional={
        "changelogManifestList": NAMES,
        "changelogManifestListSize": st.integers(0, 2**40),
        "indexManifest": NAMES,
        "writerVersion": NAMES,
        "changelogRecordCount": st.integers(0, 2**60),
        "watermark": COUNTS,
        "statistics": NAMES,
        "properties": st.dictionaries(NAMES, st.text(max_size=20), max_size=3),
        "nextRowId": st.integers(0, 2**60),
        "operation": st.sampled_from(["WRITE", "COMPACT"]),
        "commitKind": st.sampled_from(["APPEND", "COMPACT", "OVERWRITE", "ANALYZE"]),
        "commitIdentifier": COUNTS,
        "timeMillis": st.integers(0, 2**45),
    },
)


def test_a_snapshot_is_recorded_key_by_key(paimon: PaimonApplication) -> None:
    numbers = count()

    @settings(max_examples=40, deadline=None)
    @given(st.lists(MORE, min_size=1, max_size=3))
    def check(drawn: list[dict[str, Any]]) -> None:
        table = f"orders_{next(numbers)}"
        paimon.create(table)
        sent = [snapshot(number, **more) for number, more in enumerate(drawn, 1)]
        base = None
        for each in sent:
            done = paimon.commit(each, table, baseSnapshotUuid=base)
            assert done.json() == {"success": True}, done.text
            base = each["uuid"]
            written = snapshot_file(paimon, each["id"], table)
            assert without_nothing(written) == without_nothing(each)

        listed = paimon.get(f"databases/shop/tables/{table}/snapshots").json()["snapshots"]
        assert [*map(without_nothing, listed)] == [*map(without_nothing, sent)]

    check()


@pytest.mark.parametrize("base", [{}, {"baseSnapshotUuid": None}])
def test_the_first_snapshot_has_no_base(paimon: PaimonApplication, base: dict[str, Any]) -> None:
    paimon.create()

    assert paimon.commit(snapshot(1), **base).json() == {"success": True}
    assert paimon.commit(snapshot(1), **base).json() == {"success": False}
    assert ids(paimon) == [1]


def test_without_a_base_the_next_id_is_the_only_guard(paimon: PaimonApplication) -> None:
    paimon.create()
    paimon.commit_next()

    assert paimon.commit(snapshot(3)).json() == {"success": False}
    assert paimon.commit(snapshot(1)).json() == {"success": False}
    assert paimon.commit(snapshot(2)).json() == {"success": True}


def test_another_base_is_a_conflict(paimon: PaimonApplication) -> None:
    paimon.create()
    first, second = paimon.commit_next(), paimon.commit_next()

    for base in (None, first["uuid"], "none"):
        assert paimon.commit(snapshot(3), baseSnapshotUuid=base).json() == {"success": False}
    assert paimon.commit(snapshot(3), baseSnapshotUuid=second["uuid"]).json() == {"success": True}


@pytest.mark.parametrize("identifier", [7, BATCH])
def test_the_same_commit_again_has_the_first_result(
    paimon: PaimonApplication, identifier: int
) -> None:
    paimon.create()
    made = snapshot(1, commitIdentifier=identifier)
    said = [statistics("mon", 5)]
    answers = [paimon.commit(made, baseSnapshotUuid=None, statistics=said) for _ in range(3)]
    paimon.commit_next()
    answers.append(paimon.commit(made, baseSnapshotUuid=None, statistics=said))

    assert [each.json() for each in answers] == [{"success": True}] * 4
    assert ids(paimon) == [1, 2]
    assert newest(paimon)["recordCount"] == 5


def test_commits_are_added_to_the_sums_of_the_newest_snapshot(paimon: PaimonApplication) -> None:
    paimon.create()
    assert resource_error(paimon.get(f"{ORDERS}/snapshot"))[:2] == (404, "SNAPSHOT")

    paimon.commit_next(statistics=[statistics("mon", 5), statistics("tue", 7)])
    made = paimon.commit_next(statistics=[statistics("mon", -2, files=-1)])

    found = newest(paimon)
    assert without_nothing(found.pop("snapshot")) == made
    assert found == {
        "recordCount": 10,
        "fileSizeInBytes": 1000,
        "fileCount": 1,
        "lastFileCreationTime": 1_600_000_000_000,
    }


def test_a_commit_to_another_table_is_not_found(paimon: PaimonApplication) -> None:
    paimon.create()

    answer = paimon.commit(snapshot(1), tableId=fresh_id())

    assert resource_error(answer) == (404, "TABLE", "orders")
    assert resource_error(paimon.get(f"{ORDERS}/snapshot"))[0] == 404


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"unknownKey": 1}, "unknownKey"),
        ({"version": 2}, "version"),
        ({"schemaId": 7}, "schema 7"),
        ({"commitKind": "MERGE"}, "commitKind"),
        ({"deltaManifestList": "../../etc/passwd"}, "manifest list"),
        ({"timeMillis": -(2**63)}, "time"),
        ({"id": "one"}, "id"),
    ],
)
def test_a_snapshot_that_cannot_be_kept_is_rejected(
    paimon: PaimonApplication, more: dict[str, Any], said: str
) -> None:
    paimon.create()

    answer = paimon.commit(snapshot(1) | more, baseSnapshotUuid=None)

    assert resource_error(answer)[0] == 400
    assert said.lower() in answer.json()["message"].lower().replace("_", "")
    assert paimon.get(f"{ORDERS}/snapshots").json()["snapshots"] == []


@pytest.mark.parametrize(
    "body",
    [
        {},
        [],
        {"tableId": 1},
        {"tableId": "x", "snapshot": None},
        {"snapshot": {"id": 1}},
        "x",
        None,
    ],
)
def test_a_body_that_is_no_commit_is_rejected(paimon: PaimonApplication, body: Any) -> None:
    paimon.create()

    assert resource_error(paimon.post(f"{ORDERS}/commit", body))[0] == 400


def test_the_log_has_who_committed_with_which_client_and_why(paimon: PaimonApplication) -> None:
    paimon.create()
    headers = {"user_agent": "flink/2", "x_lakeledger_message": "hourly load"}

    paimon.commit(snapshot(1), headers=headers, baseSnapshotUuid=None)

    (transaction,) = handle_of(paimon.lake.table("shop.orders")).log.commit_at(1).transactions
    assert (transaction.author, transaction.message) == ("tester", "hourly load")
    assert transaction.properties == {"client": "flink/2"}


def test_a_property_of_the_snapshot_is_its_reason(paimon: PaimonApplication) -> None:
    paimon.create()

    made = snapshot(1, properties={"lakeledger.message": "backfill"})
    paimon.commit(made, baseSnapshotUuid=None)

    (transaction,) = handle_of(paimon.lake.table("shop.orders")).log.commit_at(1).transactions
    assert transaction.message == "backfill"


def roll_back(paimon: PaimonApplication, instant: Mapping[str, Any], **more: Any) -> Any:
    return paimon.post(f"{ORDERS}/rollback", {"instant": instant, **more})


def test_a_rollback_removes_the_snapshots_after_one_and_their_ids_are_given_again(
    paimon: PaimonApplication,
) -> None:
    paimon.create()
    made = [paimon.commit_next(statistics=[statistics("mon", 10)]) for _ in range(3)]

    answer = roll_back(paimon, {"type": "snapshot", "snapshotId": 1}, fromSnapshot=3)

    assert (answer.status_code, answer.content) == (200, b"")
    assert ids(paimon) == [1]
    assert newest(paimon)["recordCount"] == 10
    # A job that starts again from its older state repeats its identifiers.
    again = {**made[1], "uuid": fresh_id()}
    done = paimon.commit(again, baseSnapshotUuid=made[0]["uuid"])
    assert done.json() == {"success": True}
    assert snapshot_file(paimon, 2)["uuid"] == again["uuid"] != made[1]["uuid"]


@pytest.mark.parametrize(
    ("instant", "expected"),
    [
        ({"type": "snapshot", "snapshotId": 9}, (404, "SNAPSHOT", "9")),
        ({"type": "tag", "tagName": "none"}, (404, "TAG", "none")),
        ({"type": "none"}, (400, None, None)),
    ],
)
def test_a_rollback_to_what_does_not_exist_says_so(
    paimon: PaimonApplication,
    instant: dict[str, Any],
    expected: tuple[int, str | None, str | None],
) -> None:
    paimon.create()
    paimon.commit_next()

    assert resource_error(roll_back(paimon, instant)) == expected
    assert ids(paimon) == [1]


def test_a_rollback_from_another_snapshot_is_rejected(paimon: PaimonApplication) -> None:
    paimon.create()
    paimon.commit_next()
    paimon.commit_next()

    answer = roll_back(paimon, {"type": "snapshot", "snapshotId": 1}, fromSnapshot=3)

    assert resource_error(answer)[0] == 400
    assert "Latest snapshot 2 is not 3" in answer.json()["message"]


def test_a_rollback_of_schemas_removes_those_after_one(paimon: PaimonApplication) -> None:
    paimon.create()
    for name in ("a", "b"):
        column = {"action": "addColumn", "fieldNames": [name], "dataType": "INT"}
        paimon.post(ORDERS, {"changes": [column]})
    paimon.commit(snapshot(1, schemaId=1), baseSnapshotUuid=None)
    path = f"{ORDERS}/rollback-schema"

    assert resource_error(paimon.post(path, {"schemaId": 0}))[0] == 400
    assert resource_error(paimon.post(path, {"schemaId": 9}))[0] == 400
    assert paimon.post(path, {"schemaId": 1}).status_code == 200

    table = paimon.table()
    assert (table["schemaId"], len(table["schema"]["fields"])) == (1, len(SCHEMA["fields"]) + 1)
