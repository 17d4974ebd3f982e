"""Namespaces: databases of the ledger, with one level."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import quote, quote_plus

import pytest

from tests.projections.rest.application import KEY, SCHEMA, Application, error_of


def test_a_namespace_is_a_database_with_its_properties(app: Application) -> None:
    made = app.post("namespaces", {"namespace": ["shop"], "properties": {"owner": "ann"}})

    assert made.json() == {"namespace": ["shop"], "properties": {"owner": "ann"}}
    assert app.lake.state.database("shop").options == {"owner": "ann"}
    located = made.json()["properties"] | {"location": f"{app.lake.url}/shop.db"}
    assert app.get("namespaces/shop").json() == {"namespace": ["shop"], "properties": located}
    assert app.head("namespaces/shop").status_code == 204
    assert app.get("namespaces").json() == {"namespaces": [["shop"]], "next-page-token": None}
    assert app.delete("namespaces/shop").status_code == 204
    assert app.lake.databases() == []
    assert app.head("namespaces/shop").status_code == 404


def test_properties_are_set_removed_and_reported_as_missing(app: Application) -> None:
    app.post("namespaces", {"namespace": ["shop"], "properties": {"a": "1", "b": "2"}})
    changed = app.post(
        "namespaces/shop/properties", {"removals": ["a", "gone"], "updates": {"c": "3"}}
    )

    assert changed.json() == {"updated": ["c"], "removed": ["a"], "missing": ["gone"]}
    assert app.lake.state.database("shop").options == {"b": "2", "c": "3"}


@pytest.mark.parametrize("encode", [quote, quote_plus], ids=["as Python", "as Java"])
def test_names_are_found_by_either_encoding_of_blanks(
    app: Application, encode: Callable[..., str]
) -> None:
    app.post("namespaces", {"namespace": ["a b+c-ä"]})
    path = f"namespaces/{encode('a b+c-ä', safe='')}"
    made = app.post(f"{path}/tables", {"name": "x y+ü", "schema": SCHEMA})

    assert made.status_code == 200, made.text
    assert app.get(path).json()["namespace"] == ["a b+c-ä"]
    assert app.head(f"{path}/tables/{encode('x y+ü', safe='')}").status_code == 204
    assert app.lake.tables() == ["a b+c-ä.x y+ü"]


def test_tables_go_below_the_location_that_their_namespace_answers(app: Application) -> None:
    chosen = f"{app.lake.url}/elsewhere"
    long = "n" * 255
    for name, properties in (("shop", {}), ("other", {"location": chosen}), (long, {})):
        app.post("namespaces", {"namespace": [name], "properties": properties})
        answered = app.get(f"namespaces/{name}").json()["properties"]["location"]
        made = app.post(f"namespaces/{name}/tables", {"name": "orders", "schema": SCHEMA}).json()
        assert made["metadata"]["location"].rpartition("/orders-")[0] == answered
        assert answered == properties.get("location", answered)


def test_setting_and_removing_one_property_at_once_is_rejected(app: Application) -> None:
    app.post("namespaces", {"namespace": ["shop"]})
    both = app.post("namespaces/shop/properties", {"removals": ["a"], "updates": {"a": "3"}})

    assert error_of(both)[:2] == (422, "UnprocessableEntityException")


def test_a_namespace_with_tables_is_not_dropped(app: Application) -> None:
    app.create("orders")
    status, kind, message = error_of(app.delete("namespaces/shop"))

    assert (status, kind) == (409, "NamespaceNotEmptyException")
    assert "is not empty" in message
    assert "shop.orders" in message


def test_names_that_are_taken_are_rejected(app: Application) -> None:
    app.post("namespaces", {"namespace": ["shop"]})
    again = app.post("namespaces", {"namespace": ["shop"]})

    assert error_of(again) == (409, "AlreadyExistsException", "Namespace already exists: shop")


@pytest.mark.parametrize("path", ["namespaces/gone", "namespaces/shop%1Finner"])
def test_namespaces_of_several_levels_are_absent_like_unknown_ones(
    app: Application, path: str
) -> None:
    app.post("namespaces", {"namespace": ["shop"]})

    for answer in (
        app.get(path),
        app.delete(path),
        app.post(f"{path}/properties", {"updates": {"a": "b"}}),
        app.get(f"{path}/tables"),
        app.post(f"{path}/tables", {"name": "t", "schema": {"type": "struct", "fields": []}}),
    ):
        assert error_of(answer)[:2] == (404, "NoSuchNamespaceException")
    # Java's client looks for a metadata table `ns.table.files` like this, and wants this type.
    assert error_of(app.get(f"{path}/tables/orders"))[:2] == (404, "NoSuchTableException")


def test_namespaces_of_several_levels_cannot_be_created(app: Application) -> None:
    answer = app.post("namespaces", {"namespace": ["a", "b"]})

    assert error_of(answer)[:2] == (400, "BadRequestException")
    assert app.lake.databases() == []


def test_a_namespace_has_no_children(app: Application) -> None:
    app.post("namespaces", {"namespace": ["shop"]})

    assert app.get("namespaces?parent=shop").json()["namespaces"] == []
    assert error_of(app.get("namespaces?parent=gone"))[0] == 404


def pages(app: Application, path: str, key: str) -> list[list[Any]]:
    found: list[list[Any]] = []
    token: str | None = ""
    while token is not None:
        page = app.get(f"{path}?pageSize=2&pageToken={token}").json()
        found.append(page[key])
        token = page["next-page-token"]
    return found


def test_pages_list_each_name_once(app: Application) -> None:
    names = [f"ns-{number}" for number in range(5)]
    for name in names:
        app.post("namespaces", {"namespace": [name]})
        app.create(name)
    found = pages(app, "namespaces", "namespaces")
    tables = pages(app, "namespaces/shop/tables", "identifiers")

    assert found == [[["ns-0"], ["ns-1"]], [["ns-2"], ["ns-3"]], [["ns-4"], ["shop"]]]
    assert [each["name"] for page in tables for each in page] == names
    # Java's client sends an empty token and no size.
    whole = app.get("namespaces?pageToken=").json()
    assert (len(whole["namespaces"]), whole["next-page-token"]) == (6, None)


@pytest.mark.parametrize("query", ["pageSize=0", "pageSize=-1", "pageSize=x", "pageToken=%C3%A9"])
def test_pages_that_cannot_be_are_rejected(app: Application, query: str) -> None:
    assert error_of(app.get(f"namespaces?{query}"))[0] == 400


def test_a_repeated_key_repeats_the_answer_and_changes_nothing(app: Application) -> None:
    body = {"namespace": ["shop"], "properties": {"a": "b"}}
    first = app.post("namespaces", body, idempotency_key=KEY)
    version = app.lake.state.version
    again = app.post("namespaces", body, idempotency_key=KEY.upper())
    dropped = [app.delete("namespaces/shop", idempotency_key=KEY[:-1] + "0") for _ in range(2)]

    assert (first.status_code, again.status_code) == (200, 200)
    assert first.json() == again.json()
    assert [each.status_code for each in dropped] == [204, 204]
    assert app.lake.state.version == version + 1
