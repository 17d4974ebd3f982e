"""The endpoints of Iceberg's REST catalog, and the configuration that lists them."""

from __future__ import annotations

from typing import Any, Final

from attrs import evolve

from projections.rest.app import Protocol
from projections.rest.iceberg import creation, namespaces, planning, tables, views
from projections.rest.iceberg.catalog import IcebergCatalog
from projections.rest.iceberg.errors import answer_error
from projections.rest.requests import Call, Endpoint, Reply

KEY_LIFETIME: Final = "P3650D"
"""Lifetime of idempotency keys that clients are told, ten years: a key is a commit's id in the log,
and never expires."""


def load_config(catalog: IcebergCatalog, _call: Call) -> Reply:
    """Return the configuration of clients; a ledger is served whatever warehouse they name."""
    content: dict[str, Any] = {
        "defaults": {},
        "overrides": {},
        "endpoints": catalog.endpoints,
        "idempotency-key-lifetime": KEY_LIFETIME,
    }
    return Reply.of(content)


ENDPOINTS: Final[tuple[Endpoint[IcebergCatalog], ...]] = (
    Endpoint("GET", "/v1/config", load_config),
    *namespaces.ENDPOINTS,
    *creation.ENDPOINTS,
    *tables.ENDPOINTS,
    *views.ENDPOINTS,
    *planning.ENDPOINTS,
)
"""Every endpoint. `POST /v1/{prefix}/transactions/commit` is missing on purpose: a
commit of several tables is not atomic, and clients use it if it is listed.
"""


def iceberg_protocol(catalog: IcebergCatalog) -> Protocol[IcebergCatalog]:
    """Return the protocol over a catalog, whose endpoints have no prefix."""
    catalog.endpoints = [f"{each.method} {each.path}" for each in ENDPOINTS]
    routed = [evolve(each, path=each.path.replace("/{prefix}", "")) for each in ENDPOINTS]
    hint = "GET /v1/config lists those that exist"
    return Protocol(routed, catalog, answer_error, catalog.ledger.check_ready, hint)
