"""Statuses are true: 4xx only if nothing was applied, 5xx if it is unknown, never a Retry-After."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from structlog.testing import capture_logs

import ledger
from ledger.log.request import RetryPolicy
from ledger.model.errors import (
    CommitConflictError,
    CommitUnknownError,
    DamagedLogError,
    InvalidChangeError,
    LedgerError,
    MissingDependencyError,
    NotFoundError,
    StoreError,
    UpgradeRequiredError,
)
from ledger.stores import LocalStore
from projections.rest.iceberg.errors import answer_error, error_type_of
from tests.faults import LosesAnswers, LosesRequests
from tests.projections.rest.application import (
    KEY,
    SCHEMA,
    Application,
    application,
    error_of,
    set_property,
)
from tests.projections.rest.test_tables import ORDERS

SOON = RetryPolicy(deadline_s=0.2)


def is_commit(key: str) -> bool:
    return "/log/" in f"/{key}" and key.endswith(".json")


def is_commit_of_table(key: str) -> bool:
    return is_commit(key) and "orders" in key and not key.endswith("00000.json")


@pytest.mark.parametrize("effect", ["read", "write"])
@pytest.mark.parametrize(
    ("error", "status"),
    [
        (CommitUnknownError("", "id", 1), 500),
        (StoreError(""), 503),
        (OSError(), 503),
        (DamagedLogError("", "file"), 500),
        (UpgradeRequiredError(""), 500),
        (MissingDependencyError(""), 500),
        (LedgerError(""), 500),
        (ValueError(), 500),
        (AssertionError(), 500),
        (InvalidChangeError(""), 400),
        (NotFoundError(""), 404),
        (CommitConflictError("", "cell", 1), 409),
    ],
)
def test_a_failure_of_the_server_is_an_unknown_outcome_of_a_write(
    error: Exception, status: int, effect: str
) -> None:
    found = error_type_of(error, "write" if effect == "write" else "read")
    reply = answer_error(error, "write" if effect == "write" else "read")

    assert {*map(str.lower, reply.headers)}.isdisjoint({"retry-after"})
    if status >= 500 and effect == "write":
        assert found == (500, "CommitStateUnknownException")
    else:
        assert found.status == status


def test_the_message_of_a_defect_is_not_shown_to_clients() -> None:
    assert b"password" not in answer_error(ValueError("password"), "read").body


def test_a_commit_whose_answer_is_lost_is_committed_or_unknown(tmp_path: Path) -> None:
    store = LosesAnswers(LocalStore(str(tmp_path / "lake")), on=is_commit_of_table)
    with application(store, retry_policy=SOON) as app:
        app.create()
        answer = app.commit(set_property("a", "b"), idempotency_key=KEY)
        again = app.commit(set_property("a", "b"), idempotency_key=KEY)
        version = app.lake.table("shop.orders").state.version

    assert store.hits > 0
    assert answer.status_code == again.status_code == 200
    assert version == 1


def test_a_commit_that_never_arrives_is_unknown(tmp_path: Path) -> None:
    store = LosesRequests(LocalStore(str(tmp_path / "lake")), on=is_commit_of_table)
    with application(store, retry_policy=SOON) as app:
        app.create()
        answer = app.commit(set_property("a", "b"))

    assert error_of(answer)[:2] == (500, "CommitStateUnknownException")


def test_a_namespace_whose_creation_never_arrives_is_unknown(tmp_path: Path) -> None:
    store = LosesRequests(LocalStore(str(tmp_path / "lake")), on=is_commit)
    with application(store, retry_policy=SOON) as app:
        answer = app.post("namespaces", {"namespace": ["shop"]})

    assert error_of(answer)[:2] == (500, "CommitStateUnknownException")


def is_metadata(key: str) -> bool:
    return key.endswith(".metadata.json")


def test_a_commit_whose_metadata_file_cannot_be_written_is_unknown_and_not_rejected(
    tmp_path: Path,
) -> None:
    at = tmp_path / "lake"
    with application(at) as app:
        made = app.create().json()
        folder = Path(made["metadata-location"].removeprefix("file://")).parent
        for each in folder.iterdir():
            each.unlink()
        folder.rmdir()
        folder.write_text("a file where the folder was")
        with capture_logs() as events:
            answer = app.commit(set_property("a", "b"))
        version = app.lake.table("shop.orders").state.version

    status, kind, message = error_of(answer)
    assert [each["event"] for each in events if each["log_level"] == "warning"] == [
        "request_failed"
    ]
    assert (status, kind) == (500, "CommitStateUnknownException")
    assert "version 1 of shop.orders was committed" in message
    assert version == 1


def test_a_table_whose_metadata_file_cannot_be_written_is_not_said_to_be_rejected(
    app: Application, tmp_path: Path
) -> None:
    app.post("namespaces", {"namespace": ["shop"]})
    blocked = tmp_path / "lake" / "blocked"
    blocked.write_text("a file")
    body = {"name": "orders", "schema": SCHEMA, "location": f"{app.lake.url}/blocked"}
    answer = app.post("namespaces/shop/tables", body)

    assert app.lake.tables("shop") == ["orders"]
    assert error_of(answer)[:2] == (500, "CommitStateUnknownException")


def test_a_table_that_another_process_dropped_is_absent(app: Application) -> None:
    app.create()
    app.commit(set_property("a", "b"))
    ledger.open(app.lake.url).drop_table("shop.orders")

    assert error_of(app.commit(set_property("a", "c")))[:2] == (404, "NoSuchTableException")
    assert error_of(app.get(ORDERS))[:2] == (404, "NoSuchTableException")
    assert app.create().status_code == 200
    assert app.get(ORDERS).json()["metadata"]["properties"].get("a") is None


def test_concurrent_commits_that_change_different_things_all_succeed(app: Application) -> None:
    app.create()
    answers: list[int] = []

    def commit(number: int) -> None:
        answers.append(app.commit(set_property(f"p{number}", "x")).status_code)

    threads = [threading.Thread(target=commit, args=(number,)) for number in range(16)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()

    assert answers == [200] * 16
    properties = app.get(ORDERS).json()["metadata"]["properties"]
    assert {f"p{number}" for number in range(16)} <= properties.keys()
