"""Tables: list, load, create, alter, rename, drop, register, replace."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Final

from ledger.decide.catalog import RenameTable
from ledger.events.schema import SchemaChange
from ledger.ledger_writes import drop_table as drop_and_seal
from ledger.model.errors import (
    AlreadyExistsError,
    ColumnExistsError,
    ColumnNotFoundError,
    CommitConflictError,
    DamagedLogError,
    LedgerError,
    NotFoundError,
    TableDroppedError,
    UnsupportedError,
)
from ledger.model.messages import excerpt
from ledger.model.names import Identifier
from ledger.observing.telemetry import warn
from projections.dlf.objects import (
    AlterTableRequest,
    CreateTableRequest,
    GetTableResponse,
    ListTableDetailsResponse,
    ListTablesGloballyResponse,
    ListTablesResponse,
    RegisterTableRequest,
    RenameRequest,
    ReplaceTableRequest,
)
from projections.paimon import (
    native_changes,
    served,
    served_registration,
    served_replacement,
)
from projections.rest.paimon.catalog import PaimonCatalog
from projections.rest.paimon.errors import (
    COLUMN,
    TABLE,
    already_exists,
    no_such_database,
    no_such_table,
    not_found,
)
from projections.rest.paimon.lines import main_line, missing_as_table, open_line
from projections.rest.paimon.paging import name_test, page_of
from projections.rest.paimon.requests import (
    EMPTY,
    check_database_in,
    commit_options,
    decode,
    main_table_of,
    reply,
    table_of,
)
from projections.rest.paimon.table_responses import (
    DEFAULT_TYPE,
    table_response,
    table_type,
)
from projections.rest.requests import Call, Endpoint, Reply, RequestError, after_commit

_LOGGER: Final = "projections.rest.paimon"


def list_tables(catalog: PaimonCatalog, call: Call) -> Reply:
    """List the names of a database's tables."""
    page = page_of(call, _names_in_database(catalog, call), str)
    return reply(ListTablesResponse(tables=page.items, next_page_token=page.token))


def list_table_details(catalog: PaimonCatalog, call: Call) -> Reply:
    """List a database's tables as `load_table` returns them."""
    page = page_of(call, _names_in_database(catalog, call), str)
    database = call.values["database"]
    found = tuple(
        details
        for name in page.items
        if (details := _details(catalog, Identifier(database, name))) is not None
    )
    return reply(ListTableDetailsResponse(table_details=found, next_page_token=page.token))


def list_tables_globally(catalog: PaimonCatalog, call: Call) -> Reply:
    """List the full names of tables in all databases."""
    in_database = name_test(call, "databaseNamePattern")
    is_named = name_test(call, "tableNamePattern")
    is_wanted = _type_test(catalog, call)
    found = [
        each
        for each in sorted(catalog.state.tables, key=str)
        if in_database(each.database) and is_named(each.name) and is_wanted(each)
    ]
    page = page_of(call, found, str)
    return reply(ListTablesGloballyResponse(tables=page.items, next_page_token=page.token))


def _names_in_database(catalog: PaimonCatalog, call: Call) -> list[str]:
    """Return the names of a database's tables that a call selects, sorted."""
    database = call.values["database"]
    catalog.check_database(database)
    is_named = name_test(call, "tableNamePattern")
    is_wanted = _type_test(catalog, call)
    return sorted(
        each.name
        for each in catalog.state.tables
        if each.database == database and is_named(each.name) and is_wanted(each)
    )


def _type_test(catalog: PaimonCatalog, call: Call) -> Callable[[Identifier], bool]:
    """Return a test of tables by their type; it reads their states only if a call asks for one."""
    wanted = call.query.get("tableType")
    if not wanted:
        return lambda _: True

    def is_wanted(identifier: Identifier) -> bool:
        found = None
        with _skipping_damaged(identifier):
            table = catalog.ledger.table(identifier)
            found = None if table is None else table_type(table.state.schema.options)
        return found == wanted

    return is_wanted


def _details(catalog: PaimonCatalog, identifier: Identifier) -> GetTableResponse | None:
    # One table that only another format's readers can read must not hide the others.
    with suppress(UnsupportedError), _skipping_damaged(identifier):
        table = catalog.ledger.table(identifier)
        return None if table is None else table_response(main_line(table))
    return None


@contextmanager
def _skipping_damaged(identifier: Identifier) -> Iterator[None]:
    """Leave a table that cannot be read out of a list, and log why."""
    try:
        yield
    except (DamagedLogError, TableDroppedError) as error:
        warn(_LOGGER, "table_not_listed", table=str(identifier), error=str(error))


def load_table(catalog: PaimonCatalog, call: Call) -> Reply:
    """Return a table, or a branch of it."""
    return reply(table_response(open_line(catalog, call)))


def load_table_by_id(catalog: PaimonCatalog, call: Call) -> Reply:
    """Return the table with an id."""
    table_id = call.values["tableId"]
    entry = catalog.state.table_by_id(table_id)
    table = None if entry is None else catalog.ledger.opened(entry)
    if table is None:
        raise not_found(TABLE, table_id, f"No table has the id {excerpt(table_id)}.")
    return reply(table_response(main_line(table)))


def create_table(catalog: PaimonCatalog, call: Call) -> Reply:
    """Create a table, in its own folder or where its option `path` says.

    A table of files alone, such as a format table, gets a folder apart from its log: engines
    delete all that is in it when they overwrite the table.
    """
    wanted = decode(call, CreateTableRequest)
    name, options = wanted.identifier, wanted.schema.options
    with _creating(catalog, call, name):
        is_apart = table_type(options) != DEFAULT_TYPE and served.PATH_OPTION not in options
        served.create_table(
            catalog.handle,
            name.checked(),
            wanted.schema,
            location=catalog.ledger.new_location(name) if is_apart else None,
            **commit_options(catalog, call, "createTable"),
        )
    return EMPTY


def register_table(catalog: PaimonCatalog, call: Call) -> Reply:
    """Create a table from an existing folder of Paimon's, with its history."""
    wanted = decode(call, RegisterTableRequest)
    with _creating(catalog, call, wanted.identifier):
        served_registration.register_table(
            catalog.handle,
            wanted.identifier.checked(),
            wanted.path,
            **commit_options(catalog, call, "registerTable"),
        )
    return EMPTY


@contextmanager
def _creating(catalog: PaimonCatalog, call: Call, name: Identifier) -> Iterator[None]:
    """Report the failures of a creation as clients expect them."""
    database = call.values["database"]
    check_database_in(call, name)
    catalog.check_database(database)
    existed = name in catalog.state.tables
    try:
        yield
    except (AlreadyExistsError, CommitConflictError) as error:
        if catalog.state.kind_of(name) is None:
            raise
        raise _name_taken(catalog, name) from error
    except TableDroppedError:
        with after_commit(f"the creation of {name}"):
            raise
    except LedgerError as error:
        if not existed and name in catalog.state.tables:
            # A step after the creation may have failed, such as writing the schema's file.
            with after_commit(f"the creation of {name}"):
                raise
        if not isinstance(error, NotFoundError):
            raise
        if database not in catalog.state.databases:
            raise no_such_database(database) from error
        # A file that a registered table reads; clients take 404 for the database.
        raise RequestError(400, str(error)) from error


def _name_taken(catalog: PaimonCatalog, name: Identifier) -> RequestError:
    kind = catalog.state.kind_of(name) or "table"
    return already_exists(TABLE, name.name, f"{kind.title()} {name} already exists.")


def alter_table(catalog: PaimonCatalog, call: Call) -> Reply:
    """Change a table's schema, or that of a branch of it."""
    name = table_of(call)
    wanted = decode(call, AlterTableRequest)
    table = catalog.table(name.identifier)
    options = commit_options(catalog, call, "alterTable")
    try:
        with missing_as_table(name.name):
            if name.branch is None and native_changes.is_native(table.state):
                native_changes.alter_table(table, wanted.changes, **options)
            else:
                served.alter_table(table, wanted.changes, branch=name.branch, **options)
    except ColumnNotFoundError as error:
        raise not_found(COLUMN, _column_in(wanted.changes, error), str(error)) from error
    except ColumnExistsError as error:
        raise already_exists(COLUMN, _column_in(wanted.changes, error), str(error)) from error
    return EMPTY


def _column_in(changes: tuple[SchemaChange, ...], error: Exception) -> str:
    """Return the name of the changed column that a message is about; empty if none is."""
    paths = {".".join(getattr(each, "field_names", ())) for each in changes}
    names = paths | {getattr(each, "new_name", "") for each in changes}
    words = re.split(r"[^\w.$-]+", str(error))
    return next((each for each in words if each in names), "")


def replace_table(catalog: PaimonCatalog, call: Call) -> Reply:
    """Remove all rows of a table and replace its schema."""
    identifier = main_table_of(call)
    wanted = decode(call, ReplaceTableRequest)
    table = catalog.table(identifier)
    options = commit_options(catalog, call, "replaceTable")
    with missing_as_table(identifier):
        served_replacement.replace_table(table, wanted.schema, **options)
    return EMPTY


def drop_table(catalog: PaimonCatalog, call: Call) -> Reply:
    """Drop a table, which can be restored; no file is deleted."""
    identifier = main_table_of(call)
    entry = catalog.state.tables.get(identifier)
    options = commit_options(catalog, call, "dropTable")
    try:
        drop_and_seal(catalog.handle, identifier, options, purge=False)
    except NotFoundError as error:
        raise no_such_table(identifier) from error
    if entry is not None:
        catalog.ledger.forget(entry.table_id)
    return EMPTY


def rename_table(catalog: PaimonCatalog, call: Call) -> Reply:
    """Rename a table; its files stay where they are."""
    wanted = decode(call, RenameRequest)
    source, target = wanted.source, wanted.destination.checked()
    options = commit_options(catalog, call, "renameTable")
    try:
        catalog.handle.ask(RenameTable(source, target), options)
    except NotFoundError as error:
        if isinstance(error, TableDroppedError) or source not in catalog.state.tables:
            raise no_such_table(source) from error
        raise no_such_database(target.database) from error
    except (AlreadyExistsError, CommitConflictError) as error:
        if catalog.state.kind_of(target) is None:
            raise
        raise _name_taken(catalog, target) from error
    return EMPTY


_DATABASE: Final = "/v1/{prefix}/databases/{database}"
_ONE: Final = f"{_DATABASE}/tables/{{table}}"

ENDPOINTS: Final[tuple[Endpoint[PaimonCatalog], ...]] = (
    Endpoint("GET", f"{_DATABASE}/tables", list_tables),
    Endpoint("POST", f"{_DATABASE}/tables", create_table, "write"),
    Endpoint("GET", f"{_DATABASE}/table-details", list_table_details),
    Endpoint("POST", f"{_DATABASE}/register", register_table, "write"),
    Endpoint("GET", "/v1/{prefix}/tables", list_tables_globally),
    Endpoint("POST", "/v1/{prefix}/tables/rename", rename_table, "write"),
    Endpoint("GET", "/v1/{prefix}/tables/id/{tableId}", load_table_by_id),
    Endpoint("GET", _ONE, load_table),
    Endpoint("POST", _ONE, alter_table, "write"),
    Endpoint("DELETE", _ONE, drop_table, "write"),
    Endpoint("POST", f"{_ONE}/replace", replace_table, "write"),
)
