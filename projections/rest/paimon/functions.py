"""Functions: list, create, load, alter, drop. Their code is recorded, and never run."""

from __future__ import annotations

from typing import Final

from attrs import evolve

from ledger.decide.functions import AlterFunction, DropFunction
from ledger.ledger_writes import create_function as commit_function
from ledger.model.errors import AlreadyExistsError, NotFoundError
from ledger.model.names import Identifier
from ledger.state.catalog import FunctionEntry
from projections.dlf.objects import (
    AlterFunctionRequest,
    CreateFunctionRequest,
    GetFunctionResponse,
    ListFunctionDetailsResponse,
    ListFunctionsGloballyResponse,
    ListFunctionsResponse,
)
from projections.dlf.table_views import function_of_request, get_function_response
from projections.rest.paimon.catalog import PaimonCatalog
from projections.rest.paimon.errors import (
    FUNCTION,
    not_found,
)
from projections.rest.paimon.listing import (
    page_in_catalog,
    page_in_database,
    part_error,
    taking_name,
)
from projections.rest.paimon.requests import EMPTY, commit_options, decode, reply
from projections.rest.requests import Call, Endpoint, Reply, RequestError

_PATTERN: Final = "functionNamePattern"


def list_functions(catalog: PaimonCatalog, call: Call) -> Reply:
    """List the names of a database's functions."""
    page = page_in_database(catalog, call, catalog.state.functions, _PATTERN)
    return reply(ListFunctionsResponse(functions=page.items, next_page_token=page.token))


def list_function_details(catalog: PaimonCatalog, call: Call) -> Reply:
    """List a database's functions in full."""
    functions = catalog.state.functions
    page = page_in_database(catalog, call, functions, _PATTERN)
    names = (Identifier(call.values["database"], each) for each in page.items)
    details = tuple(_response(catalog, functions[name]) for name in names)
    return reply(ListFunctionDetailsResponse(function_details=details, next_page_token=page.token))


def list_functions_globally(catalog: PaimonCatalog, call: Call) -> Reply:
    """List the full names of functions in all databases."""
    page = page_in_catalog(call, catalog.state.functions, _PATTERN)
    return reply(ListFunctionsGloballyResponse(functions=page.items, next_page_token=page.token))


def create_function(catalog: PaimonCatalog, call: Call) -> Reply:
    """Create a function."""
    wanted = decode(call, CreateFunctionRequest)
    name = Identifier(call.values["database"], wanted.name)
    catalog.check_database(name.database)
    options = commit_options(catalog, call, "createFunction")
    with taking_name(
        catalog, FUNCTION, name, lambda: "function" if name in catalog.state.functions else None
    ):
        commit_function(catalog.handle, name, function_of_request(wanted), options)
    return EMPTY


def load_function(catalog: PaimonCatalog, call: Call) -> Reply:
    """Return a function."""
    return reply(_response(catalog, _function(catalog, _name_of(call))))


def alter_function(catalog: PaimonCatalog, call: Call) -> Reply:
    """Change a function's options, comment or definitions."""
    name = _name_of(call)
    wanted = decode(call, AlterFunctionRequest)
    options = commit_options(catalog, call, "alterFunction")
    try:
        catalog.handle.ask(AlterFunction(name, wanted.changes), options)
    except (AlreadyExistsError, NotFoundError) as error:
        reason = part_error(name, _function(catalog, name).function, wanted.changes)
        if reason is None:
            raise
        raise reason from error
    return EMPTY


def drop_function(catalog: PaimonCatalog, call: Call) -> Reply:
    """Drop a function."""
    name = _name_of(call)
    options = commit_options(catalog, call, "dropFunction")
    try:
        catalog.handle.ask(DropFunction(name), options)
    except NotFoundError as error:
        raise _no_such_function(name) from error
    return EMPTY


def _name_of(call: Call) -> Identifier:
    return Identifier(call.values["database"], call.values["function"])


def _function(catalog: PaimonCatalog, name: Identifier) -> FunctionEntry:
    found = catalog.state.functions.get(name)
    if found is None:
        raise _no_such_function(name)
    return found


def _no_such_function(name: Identifier) -> RequestError:
    return not_found(FUNCTION, name.name, f"Function {name} does not exist.")


def _response(catalog: PaimonCatalog, entry: FunctionEntry) -> GetFunctionResponse:
    audit = catalog.handle.log.personal.named(entry.audit)
    return get_function_response(evolve(entry, audit=audit))


_DATABASE: Final = "/v1/{prefix}/databases/{database}"
_ALL: Final = f"{_DATABASE}/functions"
_ONE: Final = f"{_DATABASE}/functions/{{function}}"

ENDPOINTS: Final[tuple[Endpoint[PaimonCatalog], ...]] = (
    Endpoint("GET", _ALL, list_functions),
    Endpoint("POST", _ALL, create_function, "write"),
    Endpoint("GET", f"{_DATABASE}/function-details", list_function_details),
    Endpoint("GET", "/v1/{prefix}/functions", list_functions_globally),
    Endpoint("GET", _ONE, load_function),
    Endpoint("POST", _ONE, alter_function, "write"),
    Endpoint("DELETE", _ONE, drop_function, "write"),
)
