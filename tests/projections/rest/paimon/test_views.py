"""Views through Paimon's protocol; those of Iceberg's engines are shown where Paimon has a form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from httpx import Response

from ledger import ViewSchema
from tests.projections.rest.application import SCHEMA as ICEBERG_SCHEMA
from tests.projections.rest.application import Application
from tests.projections.rest.paimon.test_functions import call, error_of, get
from tests.projections.rest.test_views import body as iceberg_body
from tests.projections.rest.test_views import version

VIEWS = "databases/shop/views"
RECENT = f"{VIEWS}/recent"
SCHEMA: Mapping[str, Any] = {
    "fields": [
        {"id": 0, "name": "id", "type": "BIGINT NOT NULL"},
        {"id": 1, "name": "marks", "type": {"type": "ARRAY", "element": "STRING"}},
    ],
    "query": "SELECT * FROM orders",
    "dialects": {"spark": "SELECT * FROM shop.orders"},
    "comment": "newest",
    "options": {"a": "b"},
}


def body(name: str = "recent", **more: Any) -> dict[str, Any]:
    schema = {**SCHEMA, **more}
    return {"identifier": {"database": "shop", "object": name}, "schema": schema}


def create(app: Application, *names: str) -> None:
    app.lake.init()
    if not app.lake.databases():
        app.lake.create_database("shop")
    for name in names:
        made = call(app, "POST", VIEWS, body(name))
        assert (made.status_code, made.content) == (200, b"")


def alter(app: Application, *changes: Mapping[str, Any], path: str = RECENT) -> Response:
    return call(app, "POST", path, {"changes": changes})


def rename(app: Application, source: str, target: str, database: str = "shop") -> Response:
    names = {
        "source": {"database": "shop", "object": source},
        "destination": {"database": database, "object": target},
    }
    return call(app, "POST", "views/rename", names)


def create_iceberg_view(app: Application, name: str, **more: Any) -> None:
    app.post("namespaces", {"namespace": ["shop"]})
    made = app.post("namespaces/shop/views", iceberg_body(name, **more))
    assert made.status_code == 200, made.text


def test_a_view_is_loaded_as_it_was_created(app: Application) -> None:
    create(app, "recent")
    found = get(app, RECENT)
    entry = app.lake.view("shop.recent")
    assert found["schema"] == SCHEMA
    assert (found["id"], found["name"]) == (entry.view_id, "recent")
    assert found["owner"] == found["createdBy"] == entry.audit.created_by
    assert found["createdAt"] == entry.audit.created_at
    assert entry.schema.dialects == SCHEMA["dialects"]


def test_changes_are_applied_in_order_all_or_none(app: Application) -> None:
    create(app, "recent")
    done = alter(
        app,
        {"action": "setOption", "key": "k", "value": "v"},
        {"action": "removeOption", "key": "a"},
        {"action": "updateComment", "comment": "other"},
        {"action": "dropDialect", "dialect": "spark"},
        {"action": "addDialect", "dialect": "spark", "query": "SELECT 2"},
        {"action": "addDialect", "dialect": "flink", "query": "SELECT 3"},
        {"action": "updateDialect", "dialect": "flink", "query": "SELECT 4"},
    )
    assert (done.status_code, done.content) == (200, b"")
    schema = get(app, RECENT)["schema"]
    assert (schema["options"], schema["comment"]) == ({"k": "v"}, "other")
    assert schema["dialects"] == {"flink": "SELECT 4", "spark": "SELECT 2"}
    before = app.lake.state.version
    refused = alter(
        app,
        {"action": "setOption", "key": "k", "value": "w"},
        {"action": "addDialect", "dialect": "flink", "query": "SELECT 5"},
    )
    assert error_of(refused) == (409, "DIALECT", "flink")
    assert app.lake.state.version == before


def test_errors_name_the_resource_that_clients_look_for(app: Application) -> None:
    create(app, "recent")
    app.lake.create_table("shop.orders", {"id": "INT"})
    gone = f"{VIEWS}/gone"
    dropped = {"action": "dropDialect", "dialect": "trino"}
    assert error_of(call(app, "POST", VIEWS, body())) == (409, "VIEW", "recent")
    assert error_of(call(app, "POST", VIEWS, body("orders"))) == (409, "VIEW", "orders")
    assert error_of(alter(app, dropped)) == (404, "DIALECT", "trino")
    for method in ("GET", "DELETE"):
        assert error_of(call(app, method, gone)) == (404, "VIEW", "gone")
        assert error_of(call(app, method, f"{VIEWS}/orders")) == (404, "VIEW", "orders")
    assert error_of(alter(app, dropped, path=gone)) == (404, "VIEW", "gone")
    assert error_of(rename(app, "gone", "other")) == (404, "VIEW", "gone")
    assert error_of(rename(app, "recent", "orders")) == (409, "VIEW", "orders")
    assert error_of(rename(app, "recent", "x", "attic")) == (404, "DATABASE", "attic")
    attic = body()
    attic["identifier"]["database"] = "attic"
    assert error_of(call(app, "POST", VIEWS, attic))[0] == 400
    created = call(app, "POST", "databases/attic/views", attic)
    assert error_of(created) == (404, "DATABASE", "attic")
    for path in ("databases/attic/views", "databases/attic/view-details"):
        assert error_of(call(app, "GET", path)) == (404, "DATABASE", "attic")


@pytest.mark.parametrize(
    "wrong",
    [
        body("a/b"),
        body("v", fields=[{"id": 0, "name": "a", "type": "NUMBER"}]),
        body("v", fields=[{"id": 2**31, "name": "a", "type": "INT"}]),
        body("v", query=None),
        body("v", dialects=[]),
        {"schema": SCHEMA},
    ],
)
def test_a_request_that_is_no_view_is_rejected_and_not_applied(
    app: Application, wrong: dict[str, Any]
) -> None:
    app.lake.create_database("shop")
    assert error_of(call(app, "POST", VIEWS, wrong))[0] == 400
    assert app.lake.views("shop") == []


def test_a_view_is_renamed_within_its_database_and_to_another(app: Application) -> None:
    create(app, "recent")
    app.lake.create_database("attic")
    first = get(app, RECENT)["id"]
    assert rename(app, "recent", "newest").status_code == 200
    assert rename(app, "newest", "old", "attic").status_code == 200
    assert get(app, "databases/attic/views/old")["id"] == first
    assert get(app, VIEWS)["views"] == []


def test_a_dropped_view_is_gone(app: Application) -> None:
    create(app, "recent")
    done = call(app, "DELETE", RECENT)
    assert (done.status_code, done.content) == (200, b"")
    assert app.lake.views("shop") == []


def test_lists_have_pages_and_patterns(app: Application) -> None:
    create(app, "view1", "view2", "abd")
    app.lake.create_database("attic")
    app.lake.create_view("attic.view1", ViewSchema((), "SELECT 1"))
    app.lake.create_table("shop.view3", {"id": "INT"})
    assert get(app, VIEWS) == {"views": ["abd", "view1", "view2"], "nextPageToken": None}
    page = get(app, VIEWS, maxResults=2)
    assert page == {"views": ["abd", "view1"], "nextPageToken": "view1"}
    assert get(app, VIEWS, maxResults=2, pageToken="view1")["views"] == ["view2"]
    assert get(app, VIEWS, viewNamePattern="view%")["views"] == ["view1", "view2"]
    details = get(app, "databases/shop/view-details", viewNamePattern="view%", maxResults=1)
    assert details["viewDetails"] == [get(app, f"{VIEWS}/view1")]
    assert details["nextPageToken"] == "view1"
    everywhere = get(app, "views", viewNamePattern="view1")
    names = [(each["database"], each["object"]) for each in everywhere["views"]]
    assert names == [("attic", "view1"), ("shop", "view1")]
    assert get(app, "views", databaseNamePattern="at%")["views"] == everywhere["views"][:1]


def test_a_view_of_an_iceberg_engine_is_shown_by_its_current_version(app: Application) -> None:
    create_iceberg_view(app, "daily", **{"view-version": version("select 1", "spark", "trino")})
    found = get(app, f"{VIEWS}/daily")["schema"]
    assert found["query"] == "select 1"
    assert found["dialects"] == {"spark": "select 1", "trino": "select 1"}
    assert [each["name"] for each in found["fields"]] == ["id", "name"]
    assert found["options"] == {"owner": "ann"}
    done = alter(
        app,
        {"action": "updateComment", "comment": "by day"},
        {"action": "setOption", "key": "k", "value": "v"},
        path=f"{VIEWS}/daily",
    )
    assert done.status_code == 200
    seen = app.get("namespaces/shop/views/daily").json()["metadata"]["properties"]
    assert seen == {"owner": "ann", "comment": "by day", "k": "v"}
    # Its queries belong to versions with schemas, which only an engine's request has.
    refused = alter(
        app,
        {"action": "addDialect", "dialect": "flink", "query": "select 2"},
        path=f"{VIEWS}/daily",
    )
    assert refused.status_code == 400
    assert "replace the view in an engine" in refused.json()["message"]


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        (
            {
                "schema": {
                    **ICEBERG_SCHEMA,
                    "fields": [{"id": 1, "name": "key", "type": "uuid", "required": False}],
                }
            },
            "column key is UUID",
        ),
        ({"view-version": {**version(), "representations": []}}, "has no SQL query"),
    ],
)
def test_a_view_that_paimon_cannot_express_is_an_error_with_the_reason(
    app: Application, more: dict[str, Any], reason: str
) -> None:
    create_iceberg_view(app, "daily", **more)
    create(app, "recent")
    refused = call(app, "GET", f"{VIEWS}/daily")
    assert refused.status_code == 501
    assert "daily" in refused.json()["message"]
    assert reason in refused.json()["message"]
    assert get(app, VIEWS)["views"] == ["daily", "recent"]
    details = get(app, "databases/shop/view-details")["viewDetails"]
    assert [each["name"] for each in details] == ["recent"]


def test_a_view_of_paimon_is_loaded_by_iceberg_clients(app: Application) -> None:
    create(app, "recent")
    found = app.get("namespaces/shop/views/recent").json()["metadata"]
    queries = found["versions"][0]["representations"]
    assert {each["dialect"]: each["sql"] for each in queries} == {
        "default": SCHEMA["query"],
        **SCHEMA["dialects"],
    }
