"""Tables: lists, loads, commits, drops, renames."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from ledger.decide.catalog import RenameTable
from ledger.events.table import TableDropped
from ledger.ledger_writes import drop_table as drop_and_seal
from ledger.log.request import CommitOptions
from ledger.model.errors import NotFoundError
from ledger.model.messages import excerpt
from ledger.model.names import Identifier
from ledger.state.iceberg_origin import IcebergOrigin
from ledger.state.table import TableState
from ledger.table_handle import TableHandle
from projections.iceberg import served
from projections.iceberg.rest_commit import commit_updates
from projections.iceberg.rest_updates import (
    AddSnapshot,
    AssertCreate,
    SetLocation,
    SetProperties,
    TableRequirement,
    TableUpdate,
    requirement_from_json,
    table_update_from_json,
)
from projections.locations import check_table_folder
from projections.rest.commit_options import MESSAGE_PROPERTY
from projections.rest.iceberg.answers import (
    check_locations,
    entity_tag,
    is_unchanged,
    snapshots_mode,
    storage_credentials,
    table_reply,
)
from projections.rest.iceberg.catalog import IcebergCatalog
from projections.rest.iceberg.creation import check_namespace_of_new, create_by
from projections.rest.iceberg.earlier_attempts import (
    Traces,
    created_before,
    dropped_table_error,
    table_of_attempt,
)
from projections.rest.iceberg.errors import (
    create_requirement_failed,
    no_such_namespace,
    no_such_table,
)
from projections.rest.iceberg.renaming import Renaming, rename
from projections.rest.iceberg.requests import (
    commit_options,
    namespace_of,
    new_name,
    page_of,
    table_of,
)
from projections.rest.requests import (
    NO_CONTENT,
    Call,
    Endpoint,
    Reply,
    RequestError,
    after_commit,
)


class CommitTableRequest(Struct):
    """The body of a commit."""

    requirements: list[Any]
    updates: list[Any]


def list_tables(catalog: IcebergCatalog, call: Call) -> Reply:
    """List the tables of a namespace."""
    namespace = namespace_of(call)
    state = catalog.state
    if namespace not in state.databases:
        raise no_such_namespace(namespace)
    page = page_of(call, (each.name for each in state.tables if each.database == namespace))
    identifiers = [{"namespace": [namespace], "name": each} for each in page.items]
    return Reply.of({"identifiers": identifiers, "next-page-token": page.token})


def load_table(catalog: IcebergCatalog, call: Call) -> Reply:
    """Return a table's metadata, or that the client has the newest."""
    mode = snapshots_mode(call)
    table = catalog.table(table_of(call))
    state = table.state
    tag = entity_tag(catalog, state, mode)
    if is_unchanged(call, tag):
        return Reply(304, headers={"etag": tag})
    return table_reply(catalog, table, state, mode)


def check_table(catalog: IcebergCatalog, call: Call) -> Reply:
    """Answer whether a table exists."""
    catalog.table(table_of(call))
    return NO_CONTENT


def commit_table(catalog: IcebergCatalog, call: Call) -> Reply:
    """Commit updates of a table, or create it by them."""
    name = table_of(call)
    wanted = call.decode(CommitTableRequest)
    requirements = [requirement_from_json(each) for each in wanted.requirements]
    read = [table_update_from_json(each) for each in wanted.updates]
    updates, said = _without_message(read)
    check_locations(catalog, updates)
    asked = ["commitTable", wanted.requirements, wanted.updates]
    options = commit_options(call, catalog.handle.setting.author, asked, said)
    if any(isinstance(each, AssertCreate) for each in requirements):
        return _create_by_updates(catalog, name, updates, options)
    return _commit(catalog, name, requirements, updates, options)


def _commit(
    catalog: IcebergCatalog,
    name: Identifier,
    requirements: Sequence[TableRequirement],
    updates: Sequence[TableUpdate],
    options: CommitOptions,
) -> Reply:
    traces = Traces.of(requirements, updates, options)
    table = table_of_attempt(catalog, name, traces)
    _check_new_locations(catalog, table.state, updates)
    try:
        done = commit_updates(table, updates, requirements, **options)
    except NotFoundError as error:
        if name in catalog.state.tables:
            raise
        raise dropped_table_error(catalog, name, traces) from error
    with after_commit(f"version {done.version} of {name}"):
        return table_reply(catalog, table, done.state)


def _check_new_locations(
    catalog: IcebergCatalog, state: TableState, updates: Iterable[TableUpdate]
) -> None:
    """Check that a folder to which updates move a table is not another table's.

    Raises:
        InvalidChangeError, StoreError: As of `check_table_folder`.
    """
    if not isinstance(state.origin, IcebergOrigin) or state.owner.kind != "served":
        return
    tables = catalog.state
    for each in updates:
        if isinstance(each, SetLocation) and each.location != state.origin.location:
            check_table_folder(
                catalog.handle,
                tables,
                each.location,
                lambda table_id: table_id != state.table_id and table_id in tables.table_names,
            )


def _create_by_updates(
    catalog: IcebergCatalog,
    name: Identifier,
    updates: Sequence[TableUpdate],
    options: CommitOptions,
) -> Reply:
    new_name(name.database, name.name)
    check_namespace_of_new(catalog, name.database, options)
    try:
        table = create_by(
            catalog,
            name,
            options,
            lambda: served.create_table(catalog.handle, name, updates, **options),
            create_requirement_failed,
        )
    except RequestError as error:
        known = created_before(catalog, name, updates, options) if error.status == 409 else None  # noqa: PLR2004 - HTTP
        if known is None:
            raise
        table = known
    with after_commit(f"the creation of {name}"):
        return table_reply(catalog, table, table.state)


def _without_message(
    updates: Iterable[TableUpdate],
) -> tuple[list[TableUpdate], Mapping[str, str]]:
    """Return updates without the property that is the commit's reason, and what they say.

    Returns:
        The updates, and the properties of the request: those that it sets, and the summary of its
        last snapshot.
    """
    kept: list[TableUpdate] = []
    said: dict[str, str] = {}
    for update in updates:
        if isinstance(update, AddSnapshot):
            said.update(update.snapshot.summary or {})
        elif isinstance(update, SetProperties) and MESSAGE_PROPERTY in update.updates:
            rest = dict(update.updates)
            said[MESSAGE_PROPERTY] = rest.pop(MESSAGE_PROPERTY)
            if rest:
                kept.append(SetProperties(updates=rest))
            continue
        kept.append(update)
    return kept, said


def drop_table(catalog: IcebergCatalog, call: Call) -> Reply:
    """Drop a table; no file is deleted, and those of a purge only by a later `maintain`."""
    name = table_of(call)
    purge = _is_purge_requested(call)
    options = commit_options(call, catalog.handle.setting.author, ["dropTable", str(name)])
    _drop(catalog, name, options, purge=purge)
    return NO_CONTENT


def _drop(
    catalog: IcebergCatalog, name: Identifier, options: CommitOptions, *, purge: bool
) -> None:
    entry = catalog.state.tables.get(name)
    try:
        drop_and_seal(catalog.handle, name, options, purge=purge)
    except NotFoundError as error:
        raise no_such_table(str(name)) from error
    if entry is not None:
        catalog.ledger.forget(entry.table_id)


def _is_purge_requested(call: Call) -> bool:
    asked = call.query.get("purgeRequested", "false").lower()
    if asked not in {"true", "false"}:
        raise RequestError(400, f"purgeRequested={excerpt(asked)} is neither true nor false")
    return asked == "true"


def unregister_table(catalog: IcebergCatalog, call: Call) -> Reply:
    """Remove a table from the catalog, and return its metadata."""
    name = table_of(call)
    options = commit_options(call, catalog.handle.setting.author, ["unregisterTable", str(name)])
    key = options.get("commit_id", "")
    if catalog.handle.find_commit(key) is None:
        try:
            table = catalog.table(name)
        except RequestError:
            # Opening the table may have completed the drop of an earlier attempt.
            if catalog.handle.find_commit(key) is None:
                raise
        else:
            reply = table_reply(catalog, table, table.state)
            _drop(catalog, name, options, purge=False)
            return Reply(200, reply.body)
    # Rejects a key that was used for another request.
    _drop(catalog, name, options, purge=False)
    with after_commit(f"the removal of {name}"):
        return Reply(200, _dropped_table_reply(catalog, key).body)


def _dropped_table_reply(catalog: IcebergCatalog, key: str) -> Reply:
    """Return the answer with the metadata of the table that a commit of the catalog dropped."""
    commit = catalog.handle.find_commit(key)
    events = () if commit is None else (e for t in commit.transactions for e in t.events)
    dropped = next((each for each in events if isinstance(each, TableDropped)), None)
    gone = None if dropped is None else catalog.state.dropped.get(dropped.table_id)
    if gone is None:
        raise NotFoundError("the table that it removed is not there any more")
    table = TableHandle(gone.identifier, gone.entry.path, catalog.handle.setting)
    return table_reply(catalog, table, table.state)


def rename_table(catalog: IcebergCatalog, call: Call) -> Reply:
    """Rename a table; its files stay where they are."""
    return rename(catalog, call, Renaming("table", RenameTable, no_such_table))


def report_metrics(catalog: IcebergCatalog, call: Call) -> Reply:
    """Accept a report of a scan or a commit, and keep nothing of it."""
    catalog.table(table_of(call))
    call.decode(dict)
    return NO_CONTENT


def load_credentials(catalog: IcebergCatalog, call: Call) -> Reply:
    """Return the client configuration for a table's location."""
    table = catalog.table(table_of(call))
    location = served.load(table, table.state).metadata.location
    return Reply.of(
        {"storage-credentials": storage_credentials(catalog.ledger.storage.of(location))}
    )


_ALL = "/v1/{prefix}/namespaces/{namespace}/tables"
_ONE = "/v1/{prefix}/namespaces/{namespace}/tables/{table}"

ENDPOINTS = (
    Endpoint("GET", _ALL, list_tables),
    Endpoint("GET", _ONE, load_table),
    Endpoint("HEAD", _ONE, check_table),
    Endpoint("POST", _ONE, commit_table, "write"),
    Endpoint("DELETE", _ONE, drop_table, "write"),
    Endpoint("POST", f"{_ONE}/unregister", unregister_table, "write"),
    Endpoint("POST", f"{_ONE}/metrics", report_metrics),
    Endpoint("GET", f"{_ONE}/credentials", load_credentials),
    Endpoint("POST", "/v1/{prefix}/tables/rename", rename_table, "write"),
)
