"""Requests of Paimon's protocol to a served ledger, and the snapshots of an engine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from attrs import frozen
from httpx import Client, Response

from ledger import Ledger
from ledger.log.request import fresh_id
from ledger.stores import Store
from tests.projections.rest.application import application, named

SCHEMA: Mapping[str, Any] = {
    "fields": [
        {"id": 0, "name": "id", "type": "BIGINT NOT NULL"},
        {"id": 1, "name": "name", "type": "STRING"},
        {"id": 2, "name": "day", "type": "STRING NOT NULL"},
    ],
    "partitionKeys": ["day"],
    "primaryKeys": ["id", "day"],
    "options": {"bucket": "2"},
    "comment": "orders of the shop",
}
BATCH = 2**63 - 1
ORDERS = "databases/shop/tables/orders"


@frozen
class PaimonApplication:
    """A served ledger: `lake`, and a client of its server."""

    lake: Ledger
    http: Client
    prefix: str = "any%20prefix"

    def url(self, path: str) -> str:
        return f"/paimon/v1/{self.prefix}/{path}"

    def get(self, path: str, **query: str) -> Response:
        return self.http.get(self.url(path), params=query)

    def post(self, path: str, body: Any, **headers: str) -> Response:
        return self.http.post(self.url(path), json=body, headers=named(headers))

    def send(self, path: str, body: bytes) -> Response:
        return self.http.post(self.url(path), content=body)

    def delete(self, path: str) -> Response:
        return self.http.delete(self.url(path))

    def create_database(self, name: str = "shop", **options: str) -> None:
        made = self.post("databases", {"name": name, "options": options})
        assert made.status_code == 200, made.text

    def try_create(
        self, name: str = "orders", schema: Mapping[str, Any] = SCHEMA, database: str = "shop"
    ) -> Response:
        identifier = {"database": database, "object": name}
        body = {"identifier": identifier, "schema": schema}
        return self.post(f"databases/{database}/tables", body)

    def create(self, name: str = "orders", schema: Mapping[str, Any] = SCHEMA) -> dict[str, Any]:
        """Create a table in the database `shop`, which is created as well, and load it."""
        if self.get("databases/shop").status_code == 404:
            self.create_database()
        made = self.try_create(name, schema)
        assert made.status_code == 200, made.text
        return self.table(name)

    def table(self, name: str = "orders") -> dict[str, Any]:
        found = self.get(f"databases/shop/tables/{quote(name)}")
        assert found.status_code == 200, found.text
        return dict(found.json())

    def commit(
        self,
        snapshot: Mapping[str, Any],
        table: str = "orders",
        headers: Mapping[str, str] = {},
        **more: Any,
    ) -> Response:
        """Commit a snapshot to a table of `shop`; `more` are further keys of the body."""
        body = {"tableId": self.table(table)["id"], "snapshot": snapshot, "statistics": []}
        return self.post(f"databases/shop/tables/{table}/commit", {**body, **more}, **headers)

    def commit_next(self, table: str = "orders", **more: Any) -> dict[str, Any]:
        """Commit one more snapshot to a table of `shop`, and return it."""
        newest = self.get(f"databases/shop/tables/{table}/snapshot")
        before = newest.json()["snapshot"]["snapshot"] if newest.status_code == 200 else {}
        made = snapshot(before.get("id", 0) + 1)
        done = self.commit(made, table, baseSnapshotUuid=before.get("uuid"), **more)
        assert done.json() == {"success": True}, done.text
        return made


def snapshot(snapshot_id: int, **more: Any) -> dict[str, Any]:
    """Return a snapshot as an engine commits it."""
    lists = {f"{kind}ManifestList": f"manifest-list-{fresh_id()}-0" for kind in ("base", "delta")}
    return {
        "version": 3,
        "uuid": fresh_id(),
        "id": snapshot_id,
        "schemaId": 0,
        **lists,
        "baseManifestListSize": 884,
        "deltaManifestListSize": 1003,
        "commitUser": f"job-{fresh_id()}",
        "commitIdentifier": snapshot_id,
        "commitKind": "APPEND",
        "timeMillis": 1_600_000_000_000 + snapshot_id,
        "totalRecordCount": 10 * snapshot_id,
        "deltaRecordCount": 10,
        **more,
    }


def statistics(day: str, records: int, files: int = 1) -> dict[str, Any]:
    """Return what a commit says about the partition of a day."""
    return {
        "spec": {"day": day},
        "recordCount": records,
        "fileSizeInBytes": 100 * records,
        "fileCount": files,
        "lastFileCreationTime": 1_600_000_000_000,
        "totalBuckets": 2,
    }


@contextmanager
def paimon_application(at: Path | Store, **settings: Any) -> Iterator[PaimonApplication]:
    """Serve a new ledger; settings are those of `application`."""
    with application(at, **settings) as found:
        yield PaimonApplication(found.lake, found.http)


def resource_error(answer: Response) -> tuple[int, str | None, str | None]:
    """Return the status, resource type and resource name of an error, after a check of its body."""
    assert "retry-after" not in answer.headers
    error = answer.json()
    assert sorted(error) == ["code", "message", "resourceName", "resourceType"]
    assert error["code"] == answer.status_code
    assert error["message"]
    return answer.status_code, error["resourceType"], error["resourceName"]
