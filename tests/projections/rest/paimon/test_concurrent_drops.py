"""Objects that other clients drop or create during a request: the answer is true."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from ledger import Ledger
from ledger.ledger_handle import LedgerHandle
from projections.rest.paimon import branches, commits, databases, partitions, tables, tags
from tests.projections.rest.paimon.paimon_application import (
    ORDERS,
    SCHEMA,
    PaimonApplication,
    resource_error,
    snapshot,
)

VIEW = {"fields": [], "query": "SELECT 1", "dialects": {}, "options": {}}
FUNCTION = {
    "name": "area",
    "inputParams": [],
    "returnParams": [],
    "deterministic": True,
    "definitions": {},
    "options": {},
}
Action = Callable[[Ledger], object]


def race_before(
    patch: pytest.MonkeyPatch, place: Any, function: str, action: Callable[[], object]
) -> list[int]:
    """Run an action of another client before the next call of a function; return the runs."""
    inner, runs = getattr(place, function), [0]

    def racing(*args: Any, **options: Any) -> Any:
        if not runs[0]:
            runs[0] += 1
            action()
        return inner(*args, **options)

    patch.setattr(place, function, racing)
    return runs


def name(of: str) -> dict[str, str]:
    return {"database": "shop", "object": of}


def drop_bills(lake: Ledger) -> None:
    lake.drop_table("shop.bills")


def drop_view(lake: Ledger) -> None:
    lake.drop_view("shop.totals")


def drop_function(lake: Ledger) -> None:
    lake.drop_function("shop.area")


def create_more(lake: Ledger) -> None:
    lake.create_table("shop.more", {"id": "INT"})


def rename_bills(lake: Ledger) -> None:
    lake.rename_table("shop.bills", "shop.a_bill")


def fill(paimon: PaimonApplication) -> None:
    paimon.create()
    assert paimon.try_create("bills").status_code == 200
    paimon.post("databases/shop/views", {"identifier": name("totals"), "schema": VIEW})
    assert paimon.post("databases/shop/functions", FUNCTION).status_code == 200


@pytest.mark.parametrize(
    "action", [drop_bills, drop_view, drop_function, create_more, rename_bills]
)
def test_a_database_is_dropped_while_its_contents_change(
    paimon: PaimonApplication, monkeypatch: pytest.MonkeyPatch, action: Action
) -> None:
    fill(paimon)
    runs = race_before(monkeypatch, databases, "drop_table", lambda: action(paimon.lake))

    answer = paimon.delete("databases/shop")

    assert answer.status_code == 200, answer.text
    assert runs == [1]
    assert paimon.lake.databases() == []


def test_a_database_of_which_a_part_was_dropped_is_not_a_rejected_request(
    paimon: PaimonApplication, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(paimon)
    race_before(monkeypatch, databases, "DropView", lambda: require_messages(paimon.lake))

    answer = paimon.delete("databases/shop")

    assert resource_error(answer) == (500, None, None)
    assert paimon.get("databases/shop/tables").json()["tables"] == []
    # Now the database cannot be dropped without a message, so nothing is.
    assert paimon.delete("databases/shop").status_code == 501


def require_messages(lake: Ledger) -> None:
    lake.alter_database("shop", updates={"ledger.require-message": "true"})


def create_bills(paimon: PaimonApplication) -> Any:
    return paimon.try_create("bills")


def create_totals(paimon: PaimonApplication) -> Any:
    return paimon.post("databases/shop/views", {"identifier": name("totals"), "schema": VIEW})


def create_area(paimon: PaimonApplication) -> Any:
    return paimon.post("databases/shop/functions", FUNCTION)


@pytest.mark.parametrize(
    ("create", "drop"),
    [(create_bills, drop_bills), (create_totals, drop_view), (create_area, drop_function)],
)
def test_what_is_created_and_dropped_at_once_is_not_a_rejected_request(
    paimon: PaimonApplication,
    monkeypatch: pytest.MonkeyPatch,
    create: Callable[[PaimonApplication], Any],
    drop: Action,
) -> None:
    paimon.create()
    runs = race_before(monkeypatch, LedgerHandle, "after", lambda: drop(paimon.lake))

    answer = create(paimon)

    assert runs == [1]
    assert resource_error(answer) == (500, None, None)
    assert "was committed" in answer.json()["message"]


def drop_orders(lake: Ledger) -> None:
    lake.drop_table("shop.orders")


@pytest.mark.parametrize(
    ("module", "path", "body"),
    [
        (tables, "", {"changes": [{"action": "setOption", "key": "a", "value": "b"}]}),
        (commits, "/rollback", {"instant": {"type": "snapshot", "snapshotId": 1}}),
        (tags, "/tags", {"tagName": "t"}),
        (branches, "/branches", {"branch": "b"}),
        (partitions, "/partitions", {"partitionSpecs": [{"day": "a"}], "ignoreIfExists": True}),
        (partitions, "/partitions/mark", {"specs": [{"day": "a"}]}),
    ],
)
def test_a_table_that_is_dropped_during_a_request_is_named(
    paimon: PaimonApplication,
    monkeypatch: pytest.MonkeyPatch,
    module: ModuleType,
    path: str,
    body: Any,
) -> None:
    paimon.create()
    paimon.commit_next()
    paimon.commit_next()
    runs = race_before(monkeypatch, module, "commit_options", lambda: drop_orders(paimon.lake))

    answer = paimon.post(f"{ORDERS}{path}", body)

    assert runs == [1]
    assert resource_error(answer) == (404, "TABLE", "orders")


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("GET", "/partitions", None, 501),
        ("POST", "/partitions/list-by-names", {"specs": [{"day": "a"}]}, 501),
        ("POST", "/partitions/list-by-filter", {"filter": "{}"}, 501),
        ("POST", "/replace", {"schema": SCHEMA}, 500),
    ],
)
def test_a_missing_file_of_an_engine_is_no_missing_table(
    paimon: PaimonApplication, method: str, path: str, body: Any, status: int
) -> None:
    paimon.create()
    made = snapshot(1)
    # Without statistics the partitions are in the manifests, which do not exist.
    done = paimon.commit(made, baseSnapshotUuid=None, statistics=None)
    assert done.json() == {"success": True}

    answer = paimon.http.request(method, paimon.url(f"{ORDERS}{path}"), json=body)

    assert resource_error(answer) == (status, None, None)
