"""The endpoints of Paimon's REST catalog, and the configuration of its clients."""

from __future__ import annotations

from typing import Final

from projections.rest.app import Protocol
from projections.rest.paimon import (
    access,
    branches,
    commits,
    consumers,
    databases,
    functions,
    partitions,
    snapshots,
    tables,
    tags,
    views,
)
from projections.rest.paimon.catalog import PaimonCatalog
from projections.rest.paimon.errors import answer_error
from projections.rest.paimon.requests import reply
from projections.rest.requests import Call, Endpoint, Reply


def load_config(catalog: PaimonCatalog, _call: Call) -> Reply:
    """Return the configuration of clients; a ledger is served whatever warehouse they name."""
    return reply(catalog.config)


ENDPOINTS: Final[tuple[Endpoint[PaimonCatalog], ...]] = (
    Endpoint("GET", "/v1/config", load_config),
    *databases.ENDPOINTS,
    *tables.ENDPOINTS,
    *commits.ENDPOINTS,
    *snapshots.ENDPOINTS,
    *partitions.ENDPOINTS,
    *tags.ENDPOINTS,
    *branches.ENDPOINTS,
    *views.ENDPOINTS,
    *functions.ENDPOINTS,
    *consumers.ENDPOINTS,
    *access.ENDPOINTS,
)
"""Every endpoint; a prefix of any value is accepted where a path has one."""


def paimon_protocol(catalog: PaimonCatalog) -> Protocol[PaimonCatalog]:
    """Return the protocol over a catalog."""
    hint = "see Paimon's REST catalog specification for those that exist"
    return Protocol(ENDPOINTS, catalog, answer_error, catalog.ledger.check_ready, hint)
