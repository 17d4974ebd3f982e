"""Databases through Paimon's protocol."""

from __future__ import annotations

from typing import Any

import pytest

from tests.projections.rest.paimon.paimon_application import PaimonApplication, resource_error


def test_a_database_is_created_loaded_altered_and_dropped(paimon: PaimonApplication) -> None:
    made = paimon.post("databases", {"name": "shop", "options": {"a": "1", "b": "2"}})
    assert (made.status_code, made.content) == (200, b"")

    found = paimon.get("databases/shop").json()
    assert (found["name"], found["options"], found["owner"]) == (
        "shop",
        {"a": "1", "b": "2"},
        "tester",
    )
    assert found["createdAt"] == found["updatedAt"] > 0
    assert found["location"].startswith("file:///")

    changes = {"removals": ["a", "none"], "updates": {"a": "2", "b": "3", "c": "4"}}
    altered = paimon.post("databases/shop", changes).json()
    assert altered == {"removed": ["a"], "updated": ["b", "c"], "missing": ["none"]}
    assert paimon.get("databases/shop").json()["options"] == {"b": "3", "c": "4"}

    assert paimon.delete("databases/shop").status_code == 200
    missing = paimon.get("databases/shop")
    assert resource_error(missing) == (404, "DATABASE", "shop")


def test_databases_are_listed_by_pattern_in_pages(paimon: PaimonApplication) -> None:
    for name in ("shop", "a_b", "axb", "sales"):
        paimon.create_database(name)

    assert paimon.get("databases").json() == {
        "databases": ["a_b", "axb", "sales", "shop"],
        "nextPageToken": None,
    }
    assert paimon.get("databases", databaseNamePattern="s%").json()["databases"] == [
        "sales",
        "shop",
    ]
    assert paimon.get("databases", databaseNamePattern="a_%").json()["databases"] == ["a_b"]
    first = paimon.get("databases", maxResults="3").json()
    assert first == {"databases": ["a_b", "axb", "sales"], "nextPageToken": "sales"}
    rest = paimon.get("databases", maxResults="3", pageToken=first["nextPageToken"]).json()
    assert rest == {"databases": ["shop"], "nextPageToken": None}


def test_a_dropped_database_drops_its_tables_which_can_be_restored(
    paimon: PaimonApplication,
) -> None:
    paimon.create()
    paimon.create("items")
    view = {"fields": [], "query": "SELECT 1", "dialects": {}, "options": {}}
    paimon.post("databases/shop/views", {"identifier": _name("v"), "schema": view})

    assert paimon.delete("databases/shop").status_code == 200

    assert paimon.lake.databases() == []
    paimon.create_database()
    paimon.lake.undrop_table("shop.orders")
    assert paimon.table()["name"] == "orders"


def _name(name: str) -> dict[str, str]:
    return {"database": "shop", "object": name}


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"name": "shop"}, (409, "DATABASE", "shop")),
        ({"name": "a/b"}, (400, None, None)),
        ({"name": "b", "options": {"location": "/etc"}}, (501, None, None)),
        ({"name": 1}, (400, None, None)),
        ({}, (400, None, None)),
        ([], (400, None, None)),
    ],
)
def test_a_database_that_cannot_be_created_says_why(
    paimon: PaimonApplication, body: Any, expected: tuple[int, str | None, str | None]
) -> None:
    paimon.create_database()

    assert resource_error(paimon.post("databases", body)) == expected
    assert list(paimon.lake.databases()) == ["shop"]


def test_requests_for_a_missing_database_name_it(paimon: PaimonApplication) -> None:
    answers = [
        paimon.get("databases/none"),
        paimon.post("databases/none", {"removals": [], "updates": {}}),
        paimon.delete("databases/none"),
        paimon.get("databases/none/tables"),
        paimon.get("databases/none/table-details"),
        paimon.try_create(database="none"),
    ]

    assert {resource_error(each) for each in answers} == {(404, "DATABASE", "none")}


def test_pypaimon_takes_errors_about_databases(
    paimon: PaimonApplication, pypaimon_catalog: Any
) -> None:
    from pypaimon.catalog.catalog_exception import (
        DatabaseAlreadyExistException,
        DatabaseNotExistException,
    )

    pypaimon_catalog.create_database("shop", ignore_if_exists=False, properties={"k": "v"})
    pypaimon_catalog.create_database("shop", ignore_if_exists=True)

    assert pypaimon_catalog.get_database("shop").options["k"] == "v"
    with pytest.raises(DatabaseAlreadyExistException):
        pypaimon_catalog.create_database("shop", ignore_if_exists=False)
    with pytest.raises(DatabaseNotExistException):
        pypaimon_catalog.get_database("none")
    pypaimon_catalog.drop_database("shop")
    assert paimon.get("databases").json()["databases"] == []
