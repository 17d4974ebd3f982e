"""Databases: list, create, load, alter, drop."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, suppress
from functools import partial
from typing import Final

from ledger.decide.catalog import AlterDatabase, CreateDatabase, DropDatabase, DropView
from ledger.decide.functions import DropFunction
from ledger.ledger_writes import drop_table
from ledger.log.request import CommitOptions
from ledger.model.errors import (
    AlreadyExistsError,
    CommitConflictError,
    InvalidChangeError,
    NotFoundError,
)
from ledger.state.catalog import DatabaseEntry
from projections.dlf.objects import (
    AlterDatabaseRequest,
    AlterDatabaseResponse,
    CreateDatabaseRequest,
    GetDatabaseResponse,
    ListDatabasesResponse,
)
from projections.locations import check_location
from projections.rest.ledger_options import client_options, reject_ledger_options
from projections.rest.paimon.catalog import PaimonCatalog
from projections.rest.paimon.errors import DATABASE, already_exists, no_such_database
from projections.rest.paimon.paging import name_test, page_of
from projections.rest.paimon.requests import EMPTY, commit_options, decode, reply
from projections.rest.requests import Call, Endpoint, Reply, after_commit

_LOCATION: Final = "location"
_MOST_ROUNDS: Final = 10
"""Times that the contents of a database are dropped, if other clients create more meanwhile."""


def list_databases(catalog: PaimonCatalog, call: Call) -> Reply:
    """List the names of databases."""
    matches = name_test(call, "databaseNamePattern")
    page = page_of(call, sorted(filter(matches, catalog.state.databases)), str)
    return reply(ListDatabasesResponse(databases=page.items, next_page_token=page.token))


def create_database(catalog: PaimonCatalog, call: Call) -> Reply:
    """Create a database."""
    wanted = decode(call, CreateDatabaseRequest)
    reject_ledger_options(wanted.options)
    _check_location(catalog, wanted.options)
    try:
        catalog.handle.ask(
            CreateDatabase(wanted.name, wanted.options),
            commit_options(catalog, call, "createDatabase"),
        )
    except AlreadyExistsError as error:
        raise already_exists(
            DATABASE, wanted.name, f"Database {wanted.name} already exists."
        ) from error
    return EMPTY


def load_database(catalog: PaimonCatalog, call: Call) -> Reply:
    """Return a database with its options, its location and its audit."""
    found = _database(catalog, call)
    audit, options = found.audit, client_options(found.options)
    options.pop(_LOCATION, None)
    return reply(
        GetDatabaseResponse(
            # No other database ever has its folder.
            id=found.path,
            name=found.name,
            location=catalog.ledger.location_of(found),
            options=options,
            owner=audit.created_by,
            created_at=audit.created_at,
            created_by=audit.created_by,
            updated_at=audit.updated_at,
            updated_by=audit.updated_by,
        )
    )


def alter_database(catalog: PaimonCatalog, call: Call) -> Reply:
    """Set and remove options of a database."""
    wanted = decode(call, AlterDatabaseRequest)
    found = _database(catalog, call)
    reject_ledger_options((*wanted.removals, *wanted.updates))
    removals = tuple(dict.fromkeys(wanted.removals))
    # What is both set and removed is removed, as Paimon's server does it.
    updates = {key: each for key, each in wanted.updates.items() if key not in removals}
    _check_location(catalog, updates)
    try:
        catalog.handle.ask(
            AlterDatabase(found.name, removals, updates),
            commit_options(catalog, call, "alterDatabase"),
        )
    except NotFoundError as error:
        raise no_such_database(found.name) from error
    return reply(
        AlterDatabaseResponse(
            removed=tuple(each for each in removals if each in found.options),
            updated=tuple(updates),
            missing=tuple(each for each in removals if each not in found.options),
        )
    )


def drop_database(catalog: PaimonCatalog, call: Call) -> Reply:
    """Drop a database with everything in it, as clients request after they checked that.

    Each table, view and function is dropped by a commit of its own, those included that other
    clients create meanwhile. The same request again continues a drop that was interrupted. Dropped
    tables can be restored.

    Raises:
        RequestError: There is no such database; or a part of its contents was dropped, and the rest
            cannot be.
    """
    name = _database(catalog, call).name
    with ExitStack() as commits:
        has_committed = False
        for _ in range(_MOST_ROUNDS):
            for drop in _drops_of_contents(catalog, call, name):
                # Another client may have dropped or changed it.
                with suppress(NotFoundError, CommitConflictError):
                    drop()
                if not has_committed:
                    commits.enter_context(after_commit(f"a part of the drop of database {name}"))
                    has_committed = True
            try:
                options = commit_options(catalog, call, "dropDatabase")
                catalog.handle.ask(DropDatabase(name), options)
            except NotFoundError as error:
                if has_committed:
                    return EMPTY
                raise no_such_database(name) from error
            except (InvalidChangeError, CommitConflictError) as error:
                # Another client may have created something.
                reason = error
            else:
                return EMPTY
        raise reason


def _drops_of_contents(
    catalog: PaimonCatalog, call: Call, database: str
) -> Iterator[Callable[[], object]]:
    """Yield a function for each table, view and function in a database, which drops it."""

    def options(operation: str) -> CommitOptions:
        return commit_options(catalog, call, operation)

    handle, state = catalog.handle, catalog.state
    for table in [each for each in state.tables if each.database == database]:
        yield partial(drop_table, handle, table, options("dropTable"), purge=False)
        catalog.ledger.forget(state.tables[table].table_id)
    for view in [each for each in state.views if each.database == database]:
        yield partial(handle.ask, DropView(view), options("dropView"))
    for function in [each for each in state.functions if each.database == database]:
        yield partial(handle.ask, DropFunction(function), options("dropFunction"))


def _database(catalog: PaimonCatalog, call: Call) -> DatabaseEntry:
    name = call.values["database"]
    found = catalog.state.databases.get(name)
    if found is None:
        raise no_such_database(name)
    return found


def _check_location(catalog: PaimonCatalog, options: Mapping[str, str]) -> None:
    if _LOCATION in options:
        check_location(catalog.handle, options[_LOCATION], _LOCATION)


_ALL: Final = "/v1/{prefix}/databases"
_ONE: Final = "/v1/{prefix}/databases/{database}"

ENDPOINTS: Final[tuple[Endpoint[PaimonCatalog], ...]] = (
    Endpoint("GET", _ALL, list_databases),
    Endpoint("POST", _ALL, create_database, "write"),
    Endpoint("GET", _ONE, load_database),
    Endpoint("POST", _ONE, alter_database, "write"),
    Endpoint("DELETE", _ONE, drop_database, "write"),
)
