"""Statuses are true: 4xx only if nothing was applied, 500 if it is unknown, never a Retry-After."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ledger.log.request import RetryPolicy
from ledger.model.errors import (
    AlreadyExistsError,
    ColumnExistsError,
    ColumnNotFoundError,
    CommitConflictError,
    CommitUnknownError,
    DamagedLogError,
    InvalidChangeError,
    InvalidInputError,
    LedgerError,
    NotFoundError,
    StoreError,
    TableDroppedError,
    UnsupportedError,
)
from ledger.stores import LocalStore
from projections.rest.paimon.errors import answer_error, status_of
from projections.rest.requests import RequestError
from tests.faults import LosesAnswers, LosesRequests, RacesBefore
from tests.projections.rest.paimon.paimon_application import (
    ORDERS,
    SCHEMA,
    PaimonApplication,
    paimon_application,
    resource_error,
    snapshot,
)

SOON = RetryPolicy(deadline_s=0.2)
REJECTIONS: list[tuple[Exception, int]] = [
    (TableDroppedError(""), 404),
    (ColumnNotFoundError(""), 404),
    (ColumnExistsError(""), 409),
    (AlreadyExistsError(""), 409),
    (InvalidInputError(""), 400),
    (InvalidChangeError(""), 400),
    (InvalidChangeError("", kind="ILLEGAL_STATE"), 400),
    (InvalidChangeError("", kind="UNSUPPORTED"), 501),
    (UnsupportedError(""), 501),
    (CommitConflictError("", "cell", 1), 400),
    (RequestError(403, ""), 403),
    (RequestError(503, ""), 503),
]
FAILURES: list[tuple[Exception, int]] = [
    (CommitUnknownError("", "id", 1), 500),
    (StoreError(""), 503),
    (OSError(), 503),
    (DamagedLogError("", "file"), 500),
    # Of what is missing, handlers say it.
    (NotFoundError(""), 500),
    (LedgerError(""), 500),
    (ValueError(), 500),
    (AssertionError(), 500),
]


@pytest.mark.parametrize(("error", "status"), REJECTIONS + FAILURES)
def test_a_read_has_the_status_of_its_error(error: Exception, status: int) -> None:
    reply = answer_error(error, "read")

    assert reply.status == status
    assert {*map(str.lower, reply.headers)}.isdisjoint({"retry-after"})


@pytest.mark.parametrize(("error", "status"), REJECTIONS)
def test_a_rejected_write_has_the_status_of_its_error(error: Exception, status: int) -> None:
    assert status_of(error, "write") == status


@pytest.mark.parametrize(("error", "_status"), FAILURES)
def test_a_failed_write_is_unknown_so_that_it_is_not_sent_again(
    error: Exception, _status: int
) -> None:
    assert status_of(error, "write") == 500


def test_the_message_of_a_defect_is_not_shown_to_clients() -> None:
    assert b"password" not in answer_error(ValueError("password"), "read").body


def is_commit(key: str) -> bool:
    return "/log/" in f"/{key}" and key.endswith(".json")


def is_commit_of_table(key: str) -> bool:
    return is_commit(key) and "orders" in key and not key.endswith("00000.json")


def is_snapshot_file(key: str) -> bool:
    return key.endswith("snapshot/snapshot-1")


def alter(paimon: PaimonApplication) -> Any:
    change = {"action": "addColumn", "fieldNames": ["amount"], "dataType": "INT"}
    return paimon.post(ORDERS, {"changes": [change]})


def commit(paimon: PaimonApplication) -> Any:
    return paimon.commit(snapshot(1), baseSnapshotUuid=None)


@pytest.mark.parametrize("write", [alter, commit])
def test_a_write_whose_answer_is_lost_is_found_in_the_log(
    tmp_path: Path, write: Callable[[PaimonApplication], Any]
) -> None:
    store = LosesAnswers(LocalStore(str(tmp_path)), on=is_commit_of_table)
    with paimon_application(store, retry_policy=SOON) as paimon:
        paimon.create()
        answer = write(paimon)

        assert store.hits > 0
        assert answer.status_code == 200
        assert paimon.lake.table("shop.orders").state.version == 1


@pytest.mark.parametrize("write", [alter, commit])
def test_a_write_that_never_arrives_is_unknown(
    tmp_path: Path, write: Callable[[PaimonApplication], Any]
) -> None:
    store = LosesRequests(LocalStore(str(tmp_path)), on=is_commit_of_table)
    with paimon_application(store, retry_policy=SOON) as paimon:
        paimon.create()

        assert resource_error(write(paimon)) == (500, None, None)


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "databases", {"name": "sales"}),
        ("POST", "databases/shop", {"removals": [], "updates": {"a": "b"}}),
        ("DELETE", "databases/shop", None),
        ("DELETE", ORDERS, None),
        (
            "POST",
            "tables/rename",
            {
                "source": {"database": "shop", "object": "orders"},
                "destination": {"database": "shop", "object": "bills"},
            },
        ),
        (
            "POST",
            "databases/shop/tables",
            {"identifier": {"database": "shop", "object": "bills"}, "schema": SCHEMA},
        ),
    ],
)
def test_no_write_that_never_arrives_is_rejected(
    tmp_path: Path, method: str, path: str, body: Any
) -> None:
    broken: list[bool] = []
    store = LosesRequests(LocalStore(str(tmp_path)), on=lambda key: bool(broken) and is_commit(key))
    with paimon_application(store, retry_policy=SOON) as paimon:
        paimon.create()
        broken.append(True)

        answer = paimon.http.request(method, paimon.url(path), json=body)

        assert resource_error(answer) == (500, None, None)


def test_a_snapshot_whose_file_cannot_be_written_is_unknown_until_it_is_sent_again(
    tmp_path: Path,
) -> None:
    store = LosesRequests(LocalStore(str(tmp_path)), on=is_snapshot_file, times=1)
    made = snapshot(1)
    with paimon_application(store, retry_policy=SOON) as paimon:
        table = paimon.create()
        answer = paimon.commit(made, baseSnapshotUuid=None)
        again = paimon.commit(made, baseSnapshotUuid=None)
        file = Path(table["path"].removeprefix("file://"), "snapshot/snapshot-1")

        assert resource_error(answer) == (500, None, None)
        assert again.json() == {"success": True}
        assert file.exists()


def test_a_table_that_is_dropped_after_a_commit_does_not_reject_it(tmp_path: Path) -> None:
    dropped: list[Any] = []
    inner = LocalStore(str(tmp_path))
    store = RacesBefore(inner, lambda: dropped[0].drop_table("shop.orders"), on=is_snapshot_file)
    with paimon_application(store, retry_policy=SOON) as paimon:
        paimon.create()
        dropped.append(paimon.lake)

        answer = paimon.commit(snapshot(1), baseSnapshotUuid=None)

        assert answer.status_code in {200, 500}
