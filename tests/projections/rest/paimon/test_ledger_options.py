"""Options of the ledger: clients of both protocols neither see nor change them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.projections.rest.paimon.paimon_application import PaimonApplication, resource_error

OPTION = "ledger.require-message"
VIEW: dict[str, Any] = {"fields": [], "query": "SELECT 1", "dialects": {}, "options": {}}
TOTALS = {"database": "shop", "object": "totals"}


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("databases", {"name": "sales", "options": {OPTION: "true"}}),
        ("databases/shop", {"removals": [], "updates": {OPTION: "false"}}),
        ("databases/shop", {"removals": [OPTION], "updates": {}}),
        (
            "databases/shop/views",
            {
                "identifier": {**TOTALS, "object": "other"},
                "schema": {**VIEW, "options": {OPTION: "true"}},
            },
        ),
        (
            "databases/shop/views/totals",
            {"changes": [{"action": "setOption", "key": OPTION, "value": "true"}]},
        ),
        (
            "databases/shop/views/totals",
            {"changes": [{"action": "removeOption", "key": OPTION}]},
        ),
    ],
)
def test_paimon_s_clients_do_not_change_them(
    paimon: PaimonApplication, path: str, body: Any
) -> None:
    paimon.create_database()
    made = paimon.post("databases/shop/views", {"identifier": TOTALS, "schema": VIEW})
    assert made.status_code == 200, made.text
    paimon.lake.alter_database("shop", updates={"ledger.x": "y"})

    answer = paimon.post(path, body)

    assert resource_error(answer) == (400, None, None)
    assert OPTION in answer.json()["message"]
    assert dict(paimon.lake.state.database("shop").options) == {"ledger.x": "y"}


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("namespaces", {"namespace": ["sales"], "properties": {OPTION: "true"}}),
        ("namespaces/shop/properties", {"removals": [], "updates": {OPTION: "true"}}),
        ("namespaces/shop/properties", {"removals": [OPTION], "updates": {}}),
    ],
)
def test_iceberg_s_clients_do_not_change_them(
    paimon: PaimonApplication, path: str, body: Any
) -> None:
    paimon.create_database()

    answer = paimon.http.post(f"/v1/{path}", json=body)

    assert answer.status_code == 400, answer.text
    assert list(paimon.lake.databases()) == ["shop"]
    assert OPTION not in paimon.lake.state.database("shop").options


def test_no_client_sees_them(paimon: PaimonApplication) -> None:
    paimon.create_database(owner="ann")
    paimon.lake.alter_database("shop", updates={OPTION: "true"})

    iceberg = paimon.http.get("/v1/namespaces/shop").json()

    assert paimon.get("databases/shop").json()["options"] == {"owner": "ann"}
    assert sorted(iceberg["properties"]) == ["location", "owner"]
