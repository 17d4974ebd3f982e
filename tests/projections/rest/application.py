"""A ledger on a store of the test's choice, served by a thread of this process, and requests."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import uvicorn
from attrs import frozen
from httpx import Client, Response
from starlette.applications import Starlette

from ledger import Ledger
from ledger.ledger_handle import LedgerHandle
from ledger.log.request import RetryPolicy, now_millis
from ledger.stores import LocalStore, Store
from ledger.table_handle import handle_of
from projections.rest.app import Protocol, Serving, create_app
from projections.rest.authentication import Authenticate, accept_everybody
from projections.rest.iceberg.catalog import IcebergCatalog
from projections.rest.iceberg.routes import iceberg_protocol
from projections.rest.paimon.catalog import PaimonCatalog
from projections.rest.paimon.routes import paimon_protocol
from projections.rest.served_ledger import ServedLedger, StorageConfig
from projections.rest.server import Address, bound_socket
from projections.rest.worker_pool import PoolLimits, WorkerPool
from tests.lakes import lake_on

SCHEMA: Mapping[str, Any] = {
    "type": "struct",
    "schema-id": 0,
    "fields": [
        {"id": 7, "name": "id", "type": "long", "required": True},
        {"id": 9, "name": "name", "type": "string", "required": False},
    ],
}
KEY = "017f22e2-79b0-7cc3-98c4-dc0c0c07398f"


@frozen
class Application:
    """A served ledger: `lake`, and a client of its server."""

    lake: Ledger
    http: Client

    def get(self, path: str, **headers: str) -> Response:
        return self.http.get(f"/v1/{path}", headers=named(headers))

    def head(self, path: str) -> Response:
        return self.http.head(f"/v1/{path}")

    def post(self, path: str, body: Any, **headers: str) -> Response:
        return self.http.post(f"/v1/{path}", json=body, headers=named(headers))

    def send(self, path: str, body: bytes, **headers: str) -> Response:
        return self.http.post(f"/v1/{path}", content=body, headers=named(headers))

    def delete(self, path: str, **headers: str) -> Response:
        return self.http.delete(f"/v1/{path}", headers=named(headers))

    def create(self, name: str = "orders", **more: Any) -> Response:
        """Create a table in the namespace `shop`, which is created, too."""
        self.post("namespaces", {"namespace": ["shop"]})
        made = self.post("namespaces/shop/tables", {"name": name, "schema": SCHEMA, **more})
        assert made.status_code == 200, made.text
        return made

    def commit(self, *updates: Mapping[str, Any], **headers: str) -> Response:
        """Commit updates to shop.orders without requirements."""
        body = {"requirements": [], "updates": updates}
        return self.post("namespaces/shop/tables/orders", body, **headers)


def named(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.replace("_", "-"): value for name, value in headers.items()}


def set_property(name: str, value: str) -> dict[str, Any]:
    return {"action": "set-properties", "updates": {name: value}}


@contextmanager
def application(at: Path | Store, **settings: Any) -> Iterator[Application]:
    """Serve a new ledger by a thread; settings are those of `asgi_app`."""
    lake, app = asgi_app(at, **settings)
    with served(app) as uri, Client(base_url=uri) as client:
        yield Application(lake, client)


def asgi_app(
    at: Path | Store,
    *,
    authenticate: Authenticate = accept_everybody,
    limits: PoolLimits | None = None,
    storage: Mapping[str, Mapping[str, str]] | None = None,
    retry_policy: RetryPolicy | None = None,
    most_body_bytes: int = 1 << 20,
    body_timeout_s: float = 60.0,
) -> tuple[Ledger, Starlette]:
    """Return a new ledger, and the application that serves it."""
    store = LocalStore(str(at)) if isinstance(at, Path) else at
    lake = lake_on(store, clock=now_millis, retry_policy=retry_policy)
    lake.init()
    handle: LedgerHandle = handle_of(lake)
    ledger = ServedLedger(handle, StorageConfig(storage or {}))
    mounts: Mapping[str, Protocol[Any]] = {
        "": iceberg_protocol(IcebergCatalog(ledger)),
        "/paimon": paimon_protocol(PaimonCatalog(ledger)),
    }
    serving = Serving(
        WorkerPool(limits or PoolLimits()),
        authenticate=authenticate,
        most_body_bytes=most_body_bytes,
        body_timeout_s=body_timeout_s,
    )
    return lake, create_app(mounts, serving)


@contextmanager
def served(app: Starlette) -> Iterator[str]:
    """Serve an application in a thread; yields its URL."""
    config = uvicorn.Config(app, log_config=None, access_log=False, lifespan="off")
    server = uvicorn.Server(config)
    with bound_socket(Address("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        while not server.started:
            time.sleep(0.005)
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        server.should_exit = True
        thread.join()


def error_of(answer: Response) -> tuple[int, str, str]:
    """Return the status, type and message of an error, whose body has the protocol's shape."""
    assert "retry-after" not in answer.headers
    error = answer.json()["error"]
    assert error["code"] == answer.status_code
    return answer.status_code, error["type"], error["message"]
