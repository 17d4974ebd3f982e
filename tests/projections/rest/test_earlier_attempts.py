"""A request that is sent again is never said to be rejected if its first attempt was applied."""

from __future__ import annotations

from typing import Any

import pytest
from httpx import Response

from tests.projections.rest.application import (
    KEY,
    SCHEMA,
    Application,
    error_of,
    set_property,
)
from tests.projections.rest.test_tables import ORDERS, set_main, snapshot

OTHER_KEY = f"{KEY[:-1]}0"
UNKNOWN = (500, "CommitStateUnknownException")


def rename(app: Application, source: str, destination: str) -> None:
    names = {"source": source, "destination": destination}
    body = {key: {"namespace": ["shop"], "name": name} for key, name in names.items()}
    assert app.post("tables/rename", body).status_code == 204


def rename_to_sales(app: Application) -> None:
    rename(app, "orders", "sales")


def replace_by_rename(app: Application) -> None:
    rename(app, "orders", "sales")
    app.create()


def drop(app: Application) -> None:
    assert app.delete(ORDERS).status_code == 204


def rename_and_drop(app: Application) -> None:
    rename(app, "orders", "sales")
    assert app.delete("namespaces/shop/tables/sales").status_code == 204


def replace_by_drop(app: Application) -> None:
    drop(app)
    app.create()


CHANGES = [rename_to_sales, replace_by_rename, drop, rename_and_drop, replace_by_drop]


def data_commit(app: Application) -> dict[str, Any]:
    uuid = app.get(ORDERS).json()["metadata"]["table-uuid"]
    return {
        "requirements": [{"type": "assert-table-uuid", "uuid": uuid}],
        "updates": [snapshot(app, 1), set_main(1)],
    }


@pytest.mark.parametrize("change", CHANGES, ids=lambda each: each.__name__)
@pytest.mark.parametrize("headers", [{}, {"idempotency_key": KEY}], ids=["no key", "key"])
def test_a_commit_that_was_applied_is_not_rejected_after_its_table_lost_the_name(
    app: Application, change: Any, headers: dict[str, str]
) -> None:
    app.create()
    body = data_commit(app)
    assert app.post(ORDERS, body, **headers).status_code == 200
    change(app)
    again = app.post(ORDERS, body, **headers)

    if change in {rename_to_sales, replace_by_rename}:
        found = app.get("namespaces/shop/tables/sales").json()
        assert again.status_code == 200
        assert again.json()["metadata"] == found["metadata"]
        assert len(found["metadata"]["snapshots"]) == 1
    else:
        assert error_of(again)[:2] == UNKNOWN


@pytest.mark.parametrize("change", CHANGES, ids=lambda each: each.__name__)
@pytest.mark.parametrize("headers", [{}, {"idempotency_key": KEY}], ids=["no key", "key"])
def test_a_commit_that_was_not_applied_is_rejected(
    app: Application, change: Any, headers: dict[str, str]
) -> None:
    app.create()
    body = data_commit(app)
    change(app)
    answer = app.post(ORDERS, body, **headers)

    assert error_of(answer)[0] == (409 if change.__name__.startswith("replace") else 404)


@pytest.mark.parametrize("change", [rename_to_sales, drop])
def test_a_change_of_properties_is_found_by_its_key(app: Application, change: Any) -> None:
    app.create()
    assert app.commit(set_property("a", "b"), idempotency_key=KEY).status_code == 200
    change(app)
    again = app.commit(set_property("a", "b"), idempotency_key=KEY)

    assert again.status_code == (200 if change is rename_to_sales else 500)


def creation(app: Application, uuid: str = KEY) -> dict[str, Any]:
    """Return the creation of a table with data, as of CREATE TABLE AS SELECT."""
    updates = [
        {"action": "assign-uuid", "uuid": uuid},
        {"action": "upgrade-format-version", "format-version": 2},
        {"action": "add-schema", "schema": SCHEMA, "last-column-id": 9},
        {"action": "set-current-schema", "schema-id": -1},
        {"action": "add-spec", "spec": {"spec-id": 0, "fields": []}},
        {"action": "set-default-spec", "spec-id": -1},
        {"action": "add-sort-order", "sort-order": {"order-id": 0, "fields": []}},
        {"action": "set-default-sort-order", "sort-order-id": -1},
        {"action": "set-location", "location": f"{app.lake.url}/orders-{uuid}"},
        snapshot(app, 1),
        set_main(1),
    ]
    return {"requirements": [{"type": "assert-create"}], "updates": updates}


def test_a_creation_with_data_that_is_sent_twice_is_one_creation(app: Application) -> None:
    app.post("namespaces", {"namespace": ["shop"]})
    body = creation(app)
    first, again = app.post(ORDERS, body), app.post(ORDERS, body)

    assert first.status_code == 200, first.text
    assert again.json() == first.json()
    assert app.lake.tables() == ["shop.orders"]


@pytest.mark.parametrize(("index", "change"), [(0, {"uuid": OTHER_KEY}), (9, {})])
def test_another_creation_with_the_same_data_is_unknown(
    app: Application, index: int, change: dict[str, str]
) -> None:
    app.post("namespaces", {"namespace": ["shop"]})
    body = creation(app)
    app.post(ORDERS, body)
    body["updates"][index].update(change)
    body["updates"].append(set_property("a", "b"))

    assert error_of(app.post(ORDERS, body))[:2] == UNKNOWN


def test_another_creation_is_rejected(app: Application) -> None:
    app.post("namespaces", {"namespace": ["shop"]})
    app.post(ORDERS, creation(app))
    other = creation(app, OTHER_KEY)
    other["updates"] = other["updates"][:-2]

    assert error_of(app.post(ORDERS, other))[:2] == (409, "CommitFailedException")


def create_by_name(app: Application) -> Response:
    body = {"name": "orders", "schema": SCHEMA}
    return app.post("namespaces/shop/tables", body, idempotency_key=KEY)


def create_by_updates(app: Application) -> Response:
    body = creation(app)
    body["updates"] = body["updates"][:-2]
    return app.post(ORDERS, body, idempotency_key=KEY)


@pytest.mark.parametrize("create", [create_by_name, create_by_updates])
@pytest.mark.parametrize("is_namespace_dropped", [False, True])
def test_a_creation_whose_table_was_dropped_since_is_unknown(
    app: Application, create: Any, *, is_namespace_dropped: bool
) -> None:
    app.post("namespaces", {"namespace": ["shop"]})
    assert create(app).status_code == 200
    drop(app)
    if is_namespace_dropped:
        assert app.delete("namespaces/shop").status_code == 204

    assert error_of(create(app))[:2] == UNKNOWN


@pytest.mark.parametrize("is_name_taken", [False, True])
def test_a_removal_is_repeated_by_its_key(app: Application, *, is_name_taken: bool) -> None:
    made = app.create().json()
    first = app.post(f"{ORDERS}/unregister", {}, idempotency_key=KEY)
    if is_name_taken:
        app.create()
    again = app.post(f"{ORDERS}/unregister", {}, idempotency_key=KEY)

    assert (first.status_code, again.status_code) == (200, 200), again.text
    assert again.json()["metadata"]["table-uuid"] == made["metadata"]["table-uuid"]
    assert app.lake.tables() == (["shop.orders"] if is_name_taken else [])
