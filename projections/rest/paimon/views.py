"""Views: list, create, load, alter, rename, drop.

An Iceberg view is shown by its current version. One that Paimon cannot express is not in a list of
details, and loading it is an error with the reason.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from attrs import evolve

from ledger.decide.catalog import AlterView, DropView, RenameView
from ledger.events.schema import RemoveOption, SetOption
from ledger.ledger_writes import create_view as commit_view
from ledger.model.errors import (
    AlreadyExistsError,
    NotFoundError,
    UnsupportedError,
)
from ledger.model.names import Identifier
from ledger.state.catalog import ViewEntry
from projections.dlf.keys import Style
from projections.dlf.objects import (
    AlterViewRequest,
    CreateViewRequest,
    GetViewResponse,
    ListViewDetailsResponse,
    ListViewsGloballyResponse,
    ListViewsResponse,
    RenameRequest,
)
from projections.dlf.rendering import render
from projections.dlf.table_views import get_view_response
from projections.rest.ledger_options import client_options, reject_ledger_options
from projections.rest.paimon.catalog import PaimonCatalog
from projections.rest.paimon.errors import VIEW, not_found
from projections.rest.paimon.listing import (
    page_in_catalog,
    page_in_database,
    part_error,
    taking_name,
)
from projections.rest.paimon.requests import EMPTY, check_database_in, commit_options, decode, reply
from projections.rest.requests import Call, Endpoint, Reply, RequestError

_PATTERN: Final = "viewNamePattern"


def list_views(catalog: PaimonCatalog, call: Call) -> Reply:
    """List the names of a database's views."""
    page = page_in_database(catalog, call, catalog.state.views, _PATTERN)
    return reply(ListViewsResponse(views=page.items, next_page_token=page.token))


def list_view_details(catalog: PaimonCatalog, call: Call) -> Reply:
    """List a database's views in full, as far as Paimon can express them."""
    views = catalog.state.views
    page = page_in_database(catalog, call, views, _PATTERN)
    details: list[GetViewResponse] = []
    for each in page.items:
        with suppress(UnsupportedError):
            details.append(_response(catalog, views[Identifier(call.values["database"], each)]))
    return reply(ListViewDetailsResponse(view_details=tuple(details), next_page_token=page.token))


def list_views_globally(catalog: PaimonCatalog, call: Call) -> Reply:
    """List the full names of views in all databases."""
    page = page_in_catalog(call, catalog.state.views, _PATTERN)
    return reply(ListViewsGloballyResponse(views=page.items, next_page_token=page.token))


def create_view(catalog: PaimonCatalog, call: Call) -> Reply:
    """Create a view."""
    wanted = decode(call, CreateViewRequest)
    name = wanted.identifier
    check_database_in(call, name)
    catalog.check_database(name.database)
    reject_ledger_options(wanted.schema.options)
    options = commit_options(catalog, call, "createView")
    with taking_name(catalog, VIEW, name, lambda: catalog.state.kind_of(name)):
        commit_view(catalog.handle, name, wanted.schema, options)
    return EMPTY


def load_view(catalog: PaimonCatalog, call: Call) -> Reply:
    """Return a view."""
    return reply(_response(catalog, _view(catalog, _name_of(call))))


def alter_view(catalog: PaimonCatalog, call: Call) -> Reply:
    """Change a view's options, comment or dialects."""
    name = _name_of(call)
    wanted = decode(call, AlterViewRequest)
    reject_ledger_options(
        each.key for each in wanted.changes if isinstance(each, SetOption | RemoveOption)
    )
    options = commit_options(catalog, call, "alterView")
    try:
        catalog.handle.ask(AlterView(name, wanted.changes), options)
    except (AlreadyExistsError, NotFoundError) as error:
        reason = part_error(name, _view(catalog, name).schema, wanted.changes)
        if reason is None:
            raise
        raise reason from error
    return EMPTY


def rename_view(catalog: PaimonCatalog, call: Call) -> Reply:
    """Rename a view, within its database or to another."""
    wanted = decode(call, RenameRequest)
    options = commit_options(catalog, call, "renameView")
    _view(catalog, wanted.source)
    target = wanted.destination
    with taking_name(catalog, VIEW, target, lambda: catalog.state.kind_of(target)):
        catalog.handle.ask(RenameView(wanted.source, target), options)
    return EMPTY


def drop_view(catalog: PaimonCatalog, call: Call) -> Reply:
    """Drop a view."""
    name = _name_of(call)
    options = commit_options(catalog, call, "dropView")
    try:
        catalog.handle.ask(DropView(name), options)
    except NotFoundError as error:
        raise _no_such_view(name) from error
    return EMPTY


def _name_of(call: Call) -> Identifier:
    return Identifier(call.values["database"], call.values["view"])


def _view(catalog: PaimonCatalog, name: Identifier) -> ViewEntry:
    found = catalog.state.views.get(name)
    if found is None:
        raise _no_such_view(name)
    return found


def _no_such_view(name: Identifier) -> RequestError:
    return not_found(VIEW, name.name, f"View {name} does not exist.")


def _response(catalog: PaimonCatalog, entry: ViewEntry) -> GetViewResponse:
    """Return a view as an object of the API.

    Raises:
        UnsupportedError: Paimon cannot express it; the message says why.
    """
    if entry.iceberg is not None and not entry.iceberg.current_version.representations:
        raise UnsupportedError(
            f"the current version of Iceberg view {entry.identifier} has no SQL query, which "
            "Paimon's views need; replace the view in an engine"
        )
    audit = catalog.handle.log.personal.named(entry.audit)
    response = get_view_response(evolve(entry, audit=audit))
    schema = evolve(response.schema, options=client_options(response.schema.options))
    response = evolve(response, schema=schema)
    try:
        render(response.schema, Style.PAIMON_REST)
    except UnsupportedError as error:
        raise UnsupportedError(f"view {entry.identifier}: {error}") from error
    return response


_DATABASE: Final = "/v1/{prefix}/databases/{database}"
_ALL: Final = f"{_DATABASE}/views"
_ONE: Final = f"{_DATABASE}/views/{{view}}"

ENDPOINTS: Final[tuple[Endpoint[PaimonCatalog], ...]] = (
    Endpoint("GET", _ALL, list_views),
    Endpoint("POST", _ALL, create_view, "write"),
    Endpoint("GET", f"{_DATABASE}/view-details", list_view_details),
    Endpoint("GET", "/v1/{prefix}/views", list_views_globally),
    Endpoint("POST", "/v1/{prefix}/views/rename", rename_view, "write"),
    Endpoint("GET", _ONE, load_view),
    Endpoint("POST", _ONE, alter_view, "write"),
    Endpoint("DELETE", _ONE, drop_view, "write"),
)
