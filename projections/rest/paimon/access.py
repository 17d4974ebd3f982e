"""Tokens, query authorization and permissions.

A token has the properties with which a client reaches a table's files. The operator configures
them, and a restart of the server changes them, so that a token ends after some hours. A client
requests the next one an hour before that.

Source: Paimon's RESTTokenFileIO, RESTCatalog and AuthTableQueryResponse; pypaimon's
RESTPermissionManagement.
"""

from __future__ import annotations

from typing import Final

from ledger.locations import with_scheme
from projections.dlf.objects import AuthTableQueryRequest, GetTableTokenResponse
from projections.paimon.served_origin import folder_of, is_engine_table
from projections.rest.paimon.catalog import PaimonCatalog
from projections.rest.paimon.errors import TABLE
from projections.rest.paimon.file_access import file_properties
from projections.rest.paimon.lines import Line, open_line
from projections.rest.paimon.requests import decode, reply
from projections.rest.requests import Call, Endpoint, Reply, RequestError

_HOUR_MS: Final = 3_600_000
_TOKEN_HOURS: Final = 3


def load_table_token(catalog: PaimonCatalog, call: Call) -> Reply:
    """Return the properties with which a client reaches a table's files."""
    line = open_line(catalog, call)
    location = _files_location(line)
    properties = file_properties(catalog.ledger.storage, location)
    if properties is None:
        raise RequestError(
            501,
            f"no prefix of the server's --storage-config holds {location}, the location of "
            f"{line.identifier}; add one, or set the client's option data-token.enabled = false "
            "and its own options of the file system",
            TABLE,
            line.identifier.name,
        )
    end = token_end(catalog.handle.setting.now_millis())
    return reply(GetTableTokenResponse(properties, end))


def token_end(now_millis: int) -> int:
    """Return when a token ends that is requested now, in Unix milliseconds.

    It is a full hour, two to three hours later. So clients share one file system, which they keep
    by token and end, for the tables of a location.

    Example:
        >>> token_end(5 * 3_600_000 + 1) // 3_600_000
        8
    """
    return (now_millis // _HOUR_MS + _TOKEN_HOURS) * _HOUR_MS


def _files_location(line: Line) -> str:
    table, state = line.table, line.whole
    return with_scheme(folder_of(table, state) if is_engine_table(state) else table.location)


def authorize_query(catalog: PaimonCatalog, call: Call) -> Reply:
    """Return the filters and masks for reading a table, which the catalog's policy decides."""
    line = open_line(catalog, call)
    select = decode(call, AuthTableQueryRequest).select if call.body else None
    return reply(catalog.query_policy(call.principal, line.table.identifier, select))


def reject_permissions(_catalog: PaimonCatalog, _call: Call) -> Reply:
    """Reject requests about permissions, of which a ledger has none.

    Raises:
        RequestError: Always.
    """
    raise RequestError(
        501,
        "a ledger records no permissions: every principal that the server authenticates may read "
        "and change everything in it; decide who gets a token or an access key, and restrict the "
        "object store",
    )


_TABLE: Final = "/v1/{prefix}/databases/{database}/tables/{table}"
_PERMISSIONS: Final = "/v1/{prefix}/permissions"

ENDPOINTS: Final[tuple[Endpoint[PaimonCatalog], ...]] = (
    Endpoint("GET", f"{_TABLE}/token", load_table_token),
    Endpoint("POST", f"{_TABLE}/auth", authorize_query),
    Endpoint("GET", _PERMISSIONS, reject_permissions),
    Endpoint("POST", f"{_PERMISSIONS}/grant", reject_permissions),
    Endpoint("POST", f"{_PERMISSIONS}/revoke", reject_permissions),
)
