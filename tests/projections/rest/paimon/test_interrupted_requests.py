"""Servers that stop at any write of a request: statuses are true, and the next load completes it.

The store answers nothing any more after any write of a request. Another server on the same store
then loads the table, and gets the same request.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

import pytest
from attrs import frozen
from httpx import ASGITransport, BaseTransport, Client, Request, Response
from starlette.applications import Starlette

from ledger.log.request import RetryPolicy
from ledger.model.errors import (
    CommitConflictError,
    CommitUnknownError,
    DamagedLogError,
    InvalidChangeError,
    MissingDependencyError,
    NotFoundError,
    StoreError,
    TableDroppedError,
    UpgradeRequiredError,
)
from ledger.stores import MemoryStore, Store
from ledger.table_handle import TableHandle, handle_of
from projections.paimon.materialise import verify
from projections.paimon.served_files import outputs_of_engines
from projections.rest.paimon.errors import answer_error
from tests.faults import DiesAfter, LosesAnswers, LosesRequests
from tests.lakes import memory
from tests.projections.rest.application import asgi_app
from tests.projections.rest.paimon.paimon_application import (
    ORDERS,
    PaimonApplication,
    snapshot,
    statistics,
)

SOON: Final = RetryPolicy(deadline_s=0.05)
MOST_WRITES: Final = 40
"""More writes than any of the requests makes."""

BRANCH: Final = f"{ORDERS}$branch_work"


def unreachable() -> OSError:
    return OSError("the store does not answer")


@frozen
class InProcess(BaseTransport):
    """Hands requests to an application without a socket."""

    app: Starlette

    def handle_request(self, request: Request) -> Response:
        async def answer() -> Response:
            found = await ASGITransport(self.app).handle_async_request(request)
            body = await found.aread()
            return Response(found.status_code, headers=found.headers, content=body)

        return asyncio.run(answer())


def served(store: Store) -> PaimonApplication:
    """Serve a ledger without a socket."""
    lake, app = asgi_app(store, retry_policy=SOON)
    return PaimonApplication(lake, Client(transport=InProcess(app), base_url="http://server"))


def copied(store: MemoryStore) -> MemoryStore:
    found = memory()
    for key in store.keys(""):
        body = store.read(key)
        assert body is not None
        found.create(key, body)
    return found


def ok(answer: Response) -> None:
    assert answer.status_code == 200, answer.text


def add_column(app: PaimonApplication, name: str) -> Response:
    change = {"action": "addColumn", "fieldNames": [name], "dataType": "STRING"}
    return app.post(ORDERS, {"changes": [change]})


SENT: Final = snapshot(4, commitUser="job-2")
SENT_TO_BRANCH: Final = snapshot(2, commitUser="job-2")


@frozen
class Prepared:
    """A store with a table of two schemas and three snapshots, with a tag and a branch.

    Attributes:
        store: The store.
        table_id: The table's id.
        newest: The uuid of its newest snapshot.
        newest_of_branch: That of the branch.
    """

    store: MemoryStore
    table_id: str
    newest: str
    newest_of_branch: str

    def commit(
        self, app: PaimonApplication, path: str, sent: Mapping[str, Any], base: str
    ) -> Response:
        """Commit a snapshot on the one before it."""
        body = {
            "tableId": self.table_id,
            "baseSnapshotUuid": base,
            "snapshot": sent,
            "statistics": [statistics("monday", 10)],
        }
        return app.post(f"{path}/commit", body)


@pytest.fixture(scope="module")
def prepared() -> Prepared:
    store = memory()
    app = served(store)
    app.create()
    first = app.commit_next(statistics=[statistics("monday", 10)])
    app.commit_next(statistics=[statistics("tuesday", 10)])
    ok(app.post(f"{ORDERS}/tags", {"tagName": "old", "snapshotId": 1}))
    ok(app.post(f"{ORDERS}/branches", {"branch": "work", "fromTag": "old"}))
    ok(add_column(app, "extra"))
    newest = app.commit_next(statistics=[statistics("tuesday", 10)])
    return Prepared(store, app.table()["id"], newest["uuid"], first["uuid"])


Ask = Callable[[PaimonApplication, Prepared], Response]


def commit(app: PaimonApplication, known: Prepared) -> Response:
    return known.commit(app, ORDERS, SENT, known.newest)


def commit_to_branch(app: PaimonApplication, known: Prepared) -> Response:
    return known.commit(app, BRANCH, SENT_TO_BRANCH, known.newest_of_branch)


def alter(app: PaimonApplication, _: Prepared) -> Response:
    return add_column(app, "more")


def create_tag(app: PaimonApplication, _: Prepared) -> Response:
    return app.post(f"{ORDERS}/tags", {"tagName": "new"})


def delete_tag(app: PaimonApplication, _: Prepared) -> Response:
    return app.delete(f"{ORDERS}/tags/old")


def create_branch(app: PaimonApplication, _: Prepared) -> Response:
    return app.post(f"{ORDERS}/branches", {"branch": "next", "fromTag": "old"})


def drop_branch(app: PaimonApplication, _: Prepared) -> Response:
    return app.delete(f"{ORDERS}/branches/work")


def rename_branch(app: PaimonApplication, _: Prepared) -> Response:
    return app.post(f"{ORDERS}/branches/work/rename", {"toBranch": "play"})


def forward_branch(app: PaimonApplication, _: Prepared) -> Response:
    return app.post(f"{ORDERS}/branches/work/forward", {})


def roll_back(app: PaimonApplication, _: Prepared) -> Response:
    instant = {"type": "snapshot", "snapshotId": 2}
    return app.post(f"{ORDERS}/rollback", {"instant": instant})


def create_table(app: PaimonApplication, _: Prepared) -> Response:
    return app.try_create("items")


def rename_table(app: PaimonApplication, _: Prepared) -> Response:
    names = {
        key: {"database": "shop", "object": name}
        for key, name in (("source", "orders"), ("destination", "sales"))
    }
    return app.post("tables/rename", names)


def drop_table(app: PaimonApplication, _: Prepared) -> Response:
    return app.delete(ORDERS)


@frozen
class Case:
    """A request, and the statuses that it has when it was applied before."""

    ask: Ask
    again: frozenset[int] = frozenset({200})


CASES: Final = [
    Case(commit),
    Case(commit_to_branch),
    Case(roll_back),
    Case(forward_branch, frozenset({200, 404})),
    Case(alter, frozenset({409})),
    Case(create_tag, frozenset({409})),
    Case(create_branch, frozenset({409})),
    Case(create_table, frozenset({409})),
    Case(delete_tag, frozenset({404})),
    Case(drop_branch, frozenset({404})),
    Case(rename_branch, frozenset({404})),
    Case(rename_table, frozenset({404})),
    Case(drop_table, frozenset({404})),
]


EACH_CASE: Final = pytest.mark.parametrize("case", CASES, ids=lambda each: each.ask.__name__)


@EACH_CASE
@pytest.mark.parametrize("is_last_answer_lost", [False, True])
def test_a_request_whose_server_stops_is_whole_or_absent_and_the_next_load_completes_it(
    case: Case, prepared: Prepared, *, is_last_answer_lost: bool
) -> None:
    for writes in range(MOST_WRITES):
        inner = copied(prepared.store)
        stopped = DiesAfter(inner, writes, unreachable)
        store = LosesAnswers(stopped, on=partial(is_last, stopped), times=int(is_last_answer_lost))
        first = case.ask(served(store), prepared)
        is_applied = logs(inner) != logs(prepared.store)
        if first.status_code == 200:
            assert is_applied
            assert first.content == b"" or first.json().get("success", True)
        else:
            assert first.status_code == 500, first.text
            assert "retry-after" not in first.headers

        check_folders(served(inner))
        again = case.ask(served(inner), prepared)
        assert again.status_code in (case.again if is_applied else case.again | {200}), again.text
        check_folders(served(inner))
        if not stopped.is_dead and not store.hits:
            assert first.status_code == 200, first.text
            return
    pytest.fail("the request makes more writes than the test knows")


def is_last(store: DiesAfter, _key: str) -> bool:
    return store.writes_left == 0


def logs(store: Store) -> dict[str, bytes | None]:
    """Return the files of all logs, by their keys."""
    return {key: store.read(key) for key in store.keys("") if "_ledger/log/" in key}


def check_folders(app: PaimonApplication) -> None:
    """Load the tables, and check that their folders say what the log says."""
    for name in app.get("databases/shop/tables").json()["tables"] or ():
        path = f"databases/shop/tables/{name}"
        branches = app.get(f"{path}/branches")
        if branches.status_code == 404:
            # Its drop began, and nothing else can be done to it.
            continue
        newest = {"": app.get(f"{path}/snapshot")}
        for branch in branches.json()["branches"] or ():
            newest[f"branch/branch-{branch}/"] = app.get(f"{path}$branch_{branch}/snapshot")
        table = handle_of(app.lake.table(f"shop.{name}"))
        for folder, answer in newest.items():
            if answer.status_code != 404:
                check_newest(table, f"{folder}snapshot", answer.json()["snapshot"]["snapshot"])
        assert app.get(path).status_code == 200
        assert verify(table).is_empty


def check_newest(table: TableHandle, folder: str, snapshot: dict[str, Any]) -> None:
    """Check the files of the newest snapshot of a line, which a client has been told of."""
    outputs, number = outputs_of_engines(table, table.state), snapshot["id"]
    body = outputs.read(f"{folder}/snapshot-{number}")
    assert body is not None
    assert json.loads(body)["uuid"] == snapshot["uuid"]
    assert outputs.read(f"{folder}/LATEST") == b"%d" % number


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (CommitUnknownError("", "id", 1), 500),
        (StoreError(""), 503),
        (OSError(), 503),
        (DamagedLogError("", "file"), 500),
        (UpgradeRequiredError(""), 500),
        (MissingDependencyError(""), 500),
        (ValueError(), 500),
        (InvalidChangeError(""), 400),
        (TableDroppedError(""), 404),
        (NotFoundError(""), 500),
        (CommitConflictError("", "cell", 1), 400),
    ],
)
def test_a_failure_of_the_server_is_an_unknown_outcome_of_a_write(
    error: Exception, status: int
) -> None:
    assert answer_error(error, "read").status == status
    assert answer_error(error, "write").status == min(status, 500)
    assert not {*answer_error(error, "write").headers} & {"retry-after", "Retry-After"}


@pytest.mark.parametrize("fault", [LosesAnswers, LosesRequests])
@pytest.mark.parametrize("ask", [commit, commit_to_branch], ids=lambda each: each.__name__)
def test_only_a_commit_that_was_not_applied_has_no_success(
    fault: type[LosesAnswers | LosesRequests], ask: Ask, prepared: Prepared
) -> None:
    inner = copied(prepared.store)
    store = fault(inner, on=lambda key: "orders/_ledger/log/" in key)
    answer = ask(served(store), prepared)
    if fault is LosesAnswers:
        assert answer.json() == {"success": True}
    else:
        assert answer.status_code == 500
        assert logs(inner) == logs(prepared.store)
    again = ask(served(inner), prepared)
    assert again.json() == {"success": True}
    assert len(logs(inner)) == len(logs(prepared.store)) + 1


@pytest.mark.parametrize("ask", [commit, commit_to_branch], ids=lambda each: each.__name__)
def test_a_snapshot_whose_file_cannot_be_written_is_no_success_and_no_rejection(
    ask: Ask, prepared: Prepared
) -> None:
    number = 4 if ask is commit else 2
    inner = copied(prepared.store)
    store = LosesRequests(inner, on=lambda key: key.endswith(f"snapshot-{number}"))
    assert ask(served(store), prepared).status_code == 500
    assert ask(served(inner), prepared).json() == {"success": True}
    check_folders(served(inner))
