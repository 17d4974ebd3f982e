"""The page is for its reader only: authentication, hosts, methods, headers, time."""

from __future__ import annotations

import base64
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from httpx import Client

from ledger import Ledger
from ledger.log.request import now_millis
from ledger.stores import MemoryStore
from ledger.table_handle import handle_of
from projections.rest.app import Serving, create_app
from projections.rest.authentication import add_token, bearer_authentication, read_token_file
from projections.rest.iceberg.catalog import IcebergCatalog
from projections.rest.iceberg.routes import iceberg_protocol
from projections.rest.page.rendering import static_url
from projections.rest.page.routes import PageSite, page_routes
from projections.rest.served_ledger import ServedLedger
from tests.lakes import data_file, lake_on, memory, orders
from tests.projections.rest.application import served
from tests.projections.rest.page.page_client import EVERY_PAGE, ORDERS, page_client

HEADERS = {
    "content-security-policy": (
        "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; "
        "base-uri 'none'; frame-ancestors 'none'"
    ),
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}


def small_lake() -> Ledger:
    lake = lake_on(memory(), clock=now_millis)
    orders(lake).append([data_file("a.parquet")])
    return lake


def basic(user: str, password: str) -> dict[str, str]:
    encoded = base64.b64encode(f"{user}:{password}".encode()).decode()
    return {"authorization": f"Basic {encoded}"}


def assert_guarded(answer: httpx.Response) -> None:
    assert {name: answer.headers.get(name) for name in HEADERS} == HEADERS
    assert "access-control-allow-origin" not in answer.headers
    assert "set-cookie" not in answer.headers


@contextmanager
def server_with_tokens(folder: Path) -> Iterator[tuple[Client, str]]:
    """Yield a client of a catalog with the page, and a token of it."""
    token = add_token(folder / "tokens", "ann")
    authenticate = bearer_authentication(read_token_file(folder / "tokens"))
    ledger = ServedLedger(handle_of(small_lake()))
    site = PageSite(ledger, authenticate)
    mounts = {"": iceberg_protocol(IcebergCatalog(ledger))}
    app = create_app(mounts, Serving(authenticate=authenticate), page_routes(site))
    with served(app) as uri, Client(base_url=uri) as client:
        yield client, token


def test_every_answer_has_the_same_headers() -> None:
    with page_client(small_lake()) as client:
        for path in (*EVERY_PAGE, static_url("style.css"), static_url("icon.svg"), "/none"):
            assert_guarded(client.get(path))
        assert_guarded(client.get(ORDERS, params={"version": "x"}))
        assert_guarded(client.get("/", headers={"host": "evil.example"}))
        assert client.get(static_url("style.css")).headers["content-type"].startswith("text/css")


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
def test_only_get_and_head_are_answered(method: str) -> None:
    with page_client(small_lake()) as client:
        for path in ("/", ORDERS, "/none"):
            answer = client.request(method, path)
            assert (answer.status_code, answer.headers["allow"]) == (405, "GET, HEAD")
            assert_guarded(answer)


def test_no_page_is_shown_without_a_token(tmp_path: Path) -> None:
    with server_with_tokens(tmp_path) as (client, token):
        wrong: tuple[dict[str, str], ...] = (
            {},
            basic("ann", token[:-1]),
            basic(token, ""),
            {"authorization": "Basic ?"},
        )
        for path in (*EVERY_PAGE, "/ui/none", static_url("style.css")):
            for headers in wrong:
                answer = client.get(path, headers=headers)
                assert answer.status_code == 401, path
                assert answer.headers["www-authenticate"].startswith('Basic realm="lakeledger"')
                assert "shop" not in answer.text
                assert_guarded(answer)


def test_a_token_is_the_password_of_a_browser_or_a_bearer_token(tmp_path: Path) -> None:
    with server_with_tokens(tmp_path) as (client, token):
        bearer = {"authorization": f"Bearer {token}"}
        for headers in (basic("ann", token), basic("", token), bearer):
            for path in EVERY_PAGE:
                assert client.get(path, headers=headers).status_code == 200, path


def test_credentials_that_a_browser_sends_by_itself_open_no_endpoint(tmp_path: Path) -> None:
    with server_with_tokens(tmp_path) as (client, token):
        body = {"namespace": ["stolen"]}
        sent = client.post("/v1/namespaces", json=body, headers=basic("ann", token))
        bearer = {"authorization": f"Bearer {token}"}
        assert sent.status_code == 401
        assert client.get("/v1/namespaces", headers=basic("ann", token)).status_code == 401
        found = client.get("/v1/namespaces", headers=bearer).json()
        assert found["namespaces"] == [["shop"]]


def test_endpoints_and_their_errors_stay_as_they_are(tmp_path: Path) -> None:
    with server_with_tokens(tmp_path) as (client, token):
        bearer = {"authorization": f"Bearer {token}"}
        assert client.get("/v1/config", headers=bearer).json()["endpoints"]
        assert client.get("/v1/none", headers=bearer).json()["error"]["code"] == 404
        assert client.get("/elsewhere").json()["error"]["code"] == 404
        assert client.get("/health").json() == {"status": "up"}


@pytest.mark.parametrize("host", ["localhost", "localhost:1", "127.0.0.1:99", "[::1]:8188"])
def test_names_of_this_machine_reach_the_page(host: str) -> None:
    with page_client(small_lake()) as client:
        assert client.get("/", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "evil.example"},
        {"host": "evil.example:8188"},
        {"host": "127.0.0.1.evil.example"},
        {"host": "192.168.1.7:8188"},
        {"origin": "http://evil.example"},
        {"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"},
        {"sec-fetch-site": "cross-site", "sec-fetch-mode": "cors"},
    ],
)
def test_other_sites_cannot_read_the_page_through_a_browser(headers: dict[str, str]) -> None:
    with page_client(small_lake()) as client:
        for path in ("/", ORDERS, "/none"):
            answer = client.get(path, headers=headers)
            assert answer.status_code == 403
            assert "shop" not in answer.text


def test_a_link_on_another_site_leads_to_the_page() -> None:
    headers = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}
    with page_client(small_lake()) as client:
        assert client.get("/", headers=headers).status_code == 200


class StuckStore(MemoryStore):
    """A store whose reads of one table wait, while they are stuck, until they are released."""

    def __init__(self) -> None:
        super().__init__("stuck")
        self.is_stuck = False
        self.released = threading.Event()

    def read(self, key: str) -> bytes | None:
        if self.is_stuck and "orders" in key:
            self.released.wait(30)
        return super().read(key)

    def exists(self, key: str) -> bool:
        if self.is_stuck and "orders" in key:
            self.released.wait(30)
        return super().exists(key)


def test_a_store_that_hangs_holds_up_neither_the_answer_nor_other_pages() -> None:
    store = StuckStore()
    lake = lake_on(store, clock=now_millis)
    orders(lake).append([data_file("a.parquet")])
    lake.create_database("other")
    with page_client(lake, answer_seconds=0.5) as client:
        store.is_stuck = True
        stuck = client.get(f"{ORDERS}/history")
        other = client.get("/ui/databases/other")
        store.released.set()

    assert stuck.status_code == 503
    assert "not ready within 0.5 seconds" in stuck.text
    assert other.status_code == 200


class BrokenStore(MemoryStore):
    """A store whose reads fail, once it is broken."""

    def __init__(self, name: str, error: OSError) -> None:
        super().__init__(name)
        self.error = error
        self.is_broken = False

    def read(self, key: str) -> bytes | None:
        if self.is_broken:
            raise self.error
        return super().read(key)

    def exists(self, key: str) -> bool:
        if self.is_broken:
            raise self.error
        return super().exists(key)


@pytest.mark.parametrize(
    "error", [PermissionError(13, "Permission denied"), TimeoutError(110, "Connection timed out")]
)
def test_a_store_that_fails_is_a_page_with_its_reason(error: OSError) -> None:
    store = BrokenStore(type(error).__name__, error)
    lake = lake_on(store, clock=now_millis)
    orders(lake)
    with page_client(lake) as client:
        store.is_broken = True
        answer = client.get(ORDERS)

    assert answer.status_code == 503
    assert str(error.strerror) in answer.text
    assert_guarded(answer)


def test_a_page_that_is_too_large_is_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("projections.rest.page.routes.MOST_PAGE_BYTES", 1_000)
    with page_client(small_lake()) as client:
        answer = client.get(ORDERS)

    assert answer.status_code == 503
    assert "more than 1,000 bytes" in answer.text
