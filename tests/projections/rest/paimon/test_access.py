"""Tokens for files, authorization of queries, and permissions, as Paimon's clients request them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from httpx import Client, Response
from hypothesis import given
from hypothesis import strategies as st

from ledger import Schema
from ledger.log.request import now_millis
from ledger.model.names import Identifier
from ledger.stores import LocalStore
from ledger.table_handle import handle_of
from projections.dlf.objects import AuthTableQueryResponse
from projections.paimon import served as served_tables
from projections.rest.app import Serving, create_app
from projections.rest.authentication import (
    TokenHash,
    accept_everybody,
    bearer_authentication,
)
from projections.rest.paimon.access import token_end
from projections.rest.paimon.catalog import PaimonCatalog
from projections.rest.paimon.file_access import default_options, file_properties
from projections.rest.paimon.routes import paimon_protocol
from projections.rest.requests import RequestError
from projections.rest.served_ledger import ServedLedger, StorageConfig
from projections.rest.worker_pool import PoolLimits, WorkerPool
from tests.lakes import lake_on
from tests.projections.rest.application import Application, application, served

ORDERS = "databases/shop/tables/orders"
HOUR = 3_600_000


def call(app: Application, method: str, path: str, body: Any = None) -> Response:
    return app.http.request(method, f"/paimon/v1/lakeledger/{path}", json=body)


def create_orders(app: Application) -> None:
    app.lake.create_database("shop")
    schema = Schema.of({"id": "BIGINT NOT NULL"}, primary_keys=["id"], options={"bucket": "1"})
    served_tables.create_table(handle_of(app.lake), Identifier("shop", "orders"), schema)


def paimon_error(answer: Response) -> tuple[int, str, str]:
    """Return the status, resource type and message of an error, whose body has Paimon's shape."""
    error = answer.json()
    assert error["code"] == answer.status_code
    return answer.status_code, error.get("resourceType", ""), error["message"]


def test_a_token_has_the_properties_of_the_longest_prefixes(tmp_path: Path) -> None:
    storage = {
        f"file://{tmp_path}": {"s3.endpoint": "outer", "s3.region": "eu"},
        f"file://{tmp_path}/lake": {"s3.endpoint": "inner", "s3.access-key-id": "ann"},
        "s3://other": {"s3.endpoint": "other"},
    }
    with application(tmp_path / "lake", storage=storage) as app:
        create_orders(app)
        answer = call(app, "GET", f"{ORDERS}/token").json()
        config = app.http.get("/paimon/v1/config").json()

    assert answer["token"] == {
        "s3.endpoint": "inner",
        "s3.region": "eu",
        "s3.endpoint.region": "eu",
        "s3.access-key-id": "ann",
        "s3.access-key": "ann",
    }
    # Clients request the next token an hour before the end.
    assert answer["expiresAtMillis"] - now_millis() > 2 * HOUR - 60_000
    # Tokens are for object stores only.
    assert config == {"defaults": {}, "overrides": {"prefix": "lakeledger"}}


def test_a_location_without_configuration_has_no_token(tmp_path: Path) -> None:
    with application(tmp_path / "lake", storage={"s3://other": {"s3.endpoint": "x"}}) as app:
        create_orders(app)
        status, kind, message = paimon_error(call(app, "GET", f"{ORDERS}/token"))

    assert (status, kind) == (501, "TABLE")
    assert "--storage-config" in message
    assert f"file://{tmp_path}" in message


@pytest.mark.parametrize(("method", "end"), [("GET", "token"), ("POST", "auth")])
def test_a_missing_table_is_not_found(tmp_path: Path, method: str, end: str) -> None:
    with application(tmp_path / "lake") as app:
        create_orders(app)
        for table in ("shop/tables/none", "none/tables/orders", "shop/tables/orders$branch_none"):
            answer = call(app, method, f"databases/{table}/{end}", {} if method == "POST" else None)
            assert paimon_error(answer)[:2] == (404, "TABLE")


@pytest.mark.parametrize("body", [{}, {"select": ["id"]}, {"select": None}, None])
def test_a_query_has_no_filters_and_masks_without_a_policy(tmp_path: Path, body: Any) -> None:
    with application(tmp_path / "lake") as app:
        create_orders(app)
        answer = call(app, "POST", f"{ORDERS}/auth", body)

    assert answer.json() == {"filter": [], "columnMasking": {}}


@pytest.mark.parametrize("body", [b"[", b"[]", b'{"select": 1}', b'{"select": [1]}'])
def test_a_malformed_query_is_rejected(tmp_path: Path, body: bytes) -> None:
    with application(tmp_path / "lake") as app:
        create_orders(app)
        path = f"/paimon/v1/lakeledger/{ORDERS}/auth"
        assert app.http.post(path, content=body).status_code == 400


def test_a_policy_decides_by_principal_table_and_columns(tmp_path: Path) -> None:
    lake = lake_on(LocalStore(str(tmp_path / "lake")), clock=now_millis)
    lake.init()

    def policy(
        principal: str | None, table: Identifier, select: tuple[str, ...] | None
    ) -> AuthTableQueryResponse:
        if principal != "ann":
            raise RequestError(403, f"{principal} may not read {table}", "TABLE", table.name)
        return AuthTableQueryResponse(filter=(f"{table}: {select}",), column_masking={"id": "x"})

    catalog = PaimonCatalog(ServedLedger(handle_of(lake)), query_policy=policy)
    tokens = bearer_authentication((TokenHash.of("ann", "a"), TokenHash.of("bob", "b")))
    serving = Serving(WorkerPool(PoolLimits()), authenticate=tokens)
    with served(create_app({"": paimon_protocol(catalog)}, serving)) as uri, Client() as client:
        create_orders(Application(lake, client))
        allowed, rejected = (
            client.post(
                f"{uri}/v1/any/{ORDERS}/auth",
                json={"select": ["id"]},
                headers={"authorization": f"Bearer {token}"},
            )
            for token in "ab"
        )

    assert allowed.json() == {"filter": ["shop.orders: ('id',)"], "columnMasking": {"id": "x"}}
    assert paimon_error(rejected) == (403, "TABLE", "bob may not read shop.orders")


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "permissions"), ("POST", "permissions/grant"), ("POST", "permissions/revoke")],
)
def test_permissions_do_not_exist(tmp_path: Path, method: str, path: str) -> None:
    with application(tmp_path / "lake", authenticate=accept_everybody) as app:
        answer = call(app, method, path)

    assert paimon_error(answer)[0] == 501
    assert "permissions" in paimon_error(answer)[2]


@given(st.integers(0, 2**45))
def test_a_token_ends_two_to_three_hours_later(now: int) -> None:
    assert 2 * HOUR < token_end(now) - now <= 3 * HOUR


@pytest.mark.parametrize(
    ("configured", "expected"),
    [
        ({"s3.access-key-id": "a"}, {"s3.access-key": "a"}),
        ({"s3.access-key-id": "a", "s3.access-key": "b"}, {"s3.access-key": "b"}),
        ({"client.region": "eu"}, {"s3.region": "eu", "s3.endpoint.region": "eu"}),
        ({"fs.oss.accessKeyId": "a"}, {}),
        ({}, {}),
    ],
)
def test_names_of_iceberg_are_translated(
    configured: Mapping[str, str], expected: Mapping[str, str]
) -> None:
    storage = StorageConfig({"s3://lake/": configured})

    assert file_properties(storage, "s3://lake/t") == {**configured, **expected}


@pytest.mark.parametrize(
    ("home", "is_default"),
    [("s3://lake/ledger", True), ("s3://other/ledger", False), ("file:///lake", False)],
)
def test_tokens_are_the_default_where_the_configuration_holds_the_ledger(
    home: str, *, is_default: bool
) -> None:
    storage = StorageConfig({"s3://lake/": {}, "file:///lake": {}})

    assert default_options(storage, home) == ({"data-token.enabled": "true"} if is_default else {})
