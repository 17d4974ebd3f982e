"""Paimon's published description of its API, and objects of each kind for requests about them.

The description is that of Paimon's main branch (commit 5dacde5), in tests/data/openapi, unchanged
and under its licence.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
import schemathesis
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from ledger import Schema
from projections.rest.paimon.routes import ENDPOINTS
from tests.projections.rest.application import Application

DESCRIPTION: Final = (
    Path(__file__).parents[3] / "data/openapi/paimon-rest-catalog-main-5dacde5.yaml"
)
MOUNT: Final = "/paimon"
CHECKS: Final = [
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
_TABLE: Final = "/v1/{prefix}/databases/{database}/tables/{table}"
_ONLY_OF_CLIENTS: Final = {
    f"{_TABLE}/replace",
    "/v1/{prefix}/permissions",
    "/v1/{prefix}/permissions/grant",
    "/v1/{prefix}/permissions/revoke",
}
"""Endpoints that the description does not have, and clients do."""


_WITH_PARTS: Final = {
    "/v1/{prefix}/databases/{database}/views/{view}",
    "/v1/{prefix}/databases/{database}/functions/{function}",
}
"""Objects whose dialects or definitions may exist already when a change adds one: 409, as Paimon's
own server answers."""
_NULLS: Final = {
    "ErrorResponse": ("resourceType", "resourceName"),
    "GetFunctionResponse": ("inputParams", "returnParams", "comment"),
}
"""Members that Paimon's own server prints as null, besides tokens of pages, and its description
does not say so. Clients read null and an absent member alike."""


def described() -> dict[str, Any]:
    """Return the description with what it leaves out: rejections of requests, and nulls."""
    document: dict[str, Any] = msgspec.yaml.decode(DESCRIPTION.read_bytes())
    schemas = document["components"]["schemas"]
    # A number in Paimon's classes, of its own server and of its clients.
    schemas["Snapshot"]["properties"]["commitIdentifier"] = {"type": "integer", "format": "int64"}
    for name, schema in schemas.items():
        for member in ("nextPageToken", *_NULLS.get(name, ())):
            if member in schema.get("properties", {}):
                found = schema["properties"][member]
                schema["properties"][member] = {"anyOf": [found, {"type": "null"}]}
    for path, item in document["paths"].items():
        for operation in item.values():
            responses = {str(status): each for status, each in operation["responses"].items()}
            responses.setdefault("400", _response("BadRequestErrorResponse"))
            if path in _WITH_PARTS and "requestBody" in operation:
                responses.setdefault("409", _response("ResourceAlreadyExistErrorResponse"))
            if "requestBody" in operation or "{table}" in path:
                # Of Paimon's own server, too: what is valid and not supported. Here that is also a
                # table of another format that Paimon cannot express.
                responses["501"] = _response("ServerErrorResponse")
            operation["responses"] = responses
    return {**document, "servers": [{"url": MOUNT}]}


def _response(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/responses/{name}"}


API: Final = schemathesis.openapi.from_dict(described())
OPERATIONS: Final = [
    (each.method, each.path) for each in ENDPOINTS if each.path not in _ONLY_OF_CLIENTS
]

FIELDS: Final = [
    {"id": 0, "name": "id", "type": "BIGINT NOT NULL"},
    {"id": 1, "name": "day", "type": "STRING"},
]
SCHEMA: Final[Mapping[str, Any]] = {
    "fields": FIELDS,
    "partitionKeys": ["day"],
    "primaryKeys": [],
    "options": {},
}
ICEBERG: Final[Mapping[str, Any]] = {
    "type": "struct",
    "fields": [
        {"id": 1, "name": "id", "type": "long", "required": True},
        {"id": 2, "name": "key", "type": "uuid", "required": False},
    ],
}
"""A schema of Iceberg's that Paimon cannot express."""

VIEW_SCHEMA: Final[Mapping[str, Any]] = {
    "query": "SELECT id FROM orders",
    "dialects": {},
    "comment": "",
    "options": {},
}
FUNCTION: Final[Mapping[str, Any]] = {
    "inputParams": FIELDS,
    "returnParams": FIELDS[:1],
    "deterministic": True,
    "definitions": {"spark": {"type": "sql", "definition": "id"}},
    "comment": "",
    "options": {},
}
SNAPSHOT: Final[Mapping[str, Any]] = {
    "version": 3,
    "id": 1,
    "schemaId": 0,
    "baseManifestList": "manifest-list-0",
    "deltaManifestList": "manifest-list-1",
    "commitUser": "ann",
    "commitIdentifier": 1,
    "commitKind": "APPEND",
    "timeMillis": 1_700_000_000_000,
    "totalRecordCount": 1,
    "deltaRecordCount": 1,
}
STATISTICS: Final[Mapping[str, Any]] = {
    "spec": {"day": "2025-01-01"},
    "recordCount": 1,
    "fileSizeInBytes": 10,
    "fileCount": 1,
    "lastFileCreationTime": 1_700_000_000_000,
    "totalBuckets": -1,
}


def ensure_objects(catalog: Application) -> None:
    """Create what the names say, where a request dropped or renamed it."""
    root = f"{MOUNT}/v1/any/databases"
    shop, orders = f"{root}/shop", f"{root}/shop/tables/orders"
    view = {"identifier": named("newest"), "schema": {**VIEW_SCHEMA, "fields": FIELDS}}

    def create(path: str, body: Any) -> bool:
        made = catalog.http.post(path, json=body)
        assert made.status_code in {200, 409}, made.text
        return made.status_code == 200

    create(root, {"name": "shop"})
    create(f"{shop}/views", view)
    create(f"{shop}/functions", {"name": "area", **FUNCTION})
    if create(f"{shop}/tables", {"identifier": named("orders"), "schema": SCHEMA}):
        table_id = catalog.http.get(orders).json()["id"]
        wanted = {"tableId": table_id, "snapshot": SNAPSHOT, "statistics": [STATISTICS]}
        assert catalog.http.post(f"{orders}/commit", json=wanted).json() == {"success": True}
    if "native" not in catalog.lake.tables("shop"):
        catalog.lake.create_table("shop.native", Schema.of({"id": "BIGINT", "day": "STRING"}))
    create("/v1/namespaces/shop/tables", {"name": "iceberg", "schema": ICEBERG})
    create(f"{orders}/tags", {"tagName": "first", "snapshotId": 1})
    create(f"{orders}/branches", {"branch": "dev", "fromTag": "first"})


def named(name: str) -> dict[str, str]:
    """Return the identifier of an object in the database `shop`."""
    return {"database": "shop", "object": name}


def validated(case: schemathesis.Case[Any], catalog: Application) -> int:
    """Send a request, check that its answer is described, and return the status."""
    answer = case.call_and_validate(base_url=f"{catalog.http.base_url}{MOUNT}", checks=CHECKS)
    # A failure of the server is described, and a bug.
    assert answer.status_code < 500 or answer.status_code == 501, answer.text
    return int(answer.status_code)
