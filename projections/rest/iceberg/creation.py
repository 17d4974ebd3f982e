"""New tables: creations, staged creations and registrations.

Source: the Iceberg REST catalog specification, CreateTableRequest and RegisterTableRequest; Java's
TableMetadata.newTableMetadata for the properties that each new table gets.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec
from msgspec import Struct

from ledger.log.request import COMMIT_ID_REUSED, CommitOptions, fresh_id
from ledger.model.errors import (
    AlreadyExistsError,
    CommitConflictError,
    InvalidInputError,
    LedgerError,
    NotFoundError,
    TableDroppedError,
)
from ledger.model.iceberg_layout import UNSORTED_ID, PartitionSpec, SortOrder
from ledger.model.names import Identifier
from ledger.table_handle import TableHandle
from projections.iceberg import served
from projections.iceberg.creation_updates import creation_updates
from projections.iceberg.metadata_update import apply_updates
from projections.iceberg.schema_json import convert_record, schema_from_json
from projections.locations import check_location, check_unowned_folder
from projections.rest.commit_options import MESSAGE_PROPERTY
from projections.rest.iceberg.answers import check_locations, staged_reply, table_reply
from projections.rest.iceberg.catalog import IcebergCatalog
from projections.rest.iceberg.errors import no_such_namespace, table_name_taken
from projections.rest.iceberg.requests import (
    commit_options,
    namespace_of,
    new_name,
)
from projections.rest.requests import Call, Endpoint, Reply, RequestError, after_commit

_DEFAULTS: Final = {"write.parquet.compression-codec": "zstd"}
"""Properties that each new table gets, since writers take another default without them."""


class CreateTableRequest(Struct, rename="kebab"):
    """The body of a creation."""

    name: str
    schema: Any
    location: str | None = None
    partition_spec: dict[str, Any] | None = None
    write_order: dict[str, Any] | None = None
    stage_create: bool | None = False
    properties: dict[str, str] | None = None


class RegisterTableRequest(Struct, rename="kebab"):
    """The body of a registration."""

    name: str
    metadata_location: str
    overwrite: bool | None = False


def create_table(catalog: IcebergCatalog, call: Call) -> Reply:
    """Create a table, or return the metadata that it would have."""
    namespace = namespace_of(call)
    wanted = call.decode(CreateTableRequest)
    name = new_name(namespace, wanted.name)
    properties = dict(wanted.properties or {})
    asked = ["createTable", str(name), msgspec.to_builtins(wanted)]
    options = commit_options(call, catalog.handle.setting.author, asked, properties)
    check_namespace_of_new(catalog, namespace, options)
    updates = creation_updates(
        schema_from_json(wanted.schema, "$.schema"),
        uuid=fresh_id(),
        location=(wanted.location or catalog.ledger.new_location(name)).rstrip("/"),
        spec=_read_spec(wanted.partition_spec),
        order=_read_order(wanted.write_order),
        properties=_DEFAULTS
        | {key: properties[key] for key in properties if key != MESSAGE_PROPERTY},
    )
    check_locations(catalog, updates)
    if wanted.stage_create:
        _check_free(catalog, name)
        now_ms = catalog.handle.setting.now_millis()
        staged = apply_updates(None, updates, now_ms=now_ms)
        check_unowned_folder(catalog.handle, catalog.state, staged.location)
        return staged_reply(catalog, staged)
    table = create_by(
        catalog,
        name,
        options,
        lambda: served.create_table(catalog.handle, name, updates, **options),
        table_name_taken,
    )
    with after_commit(f"the creation of {name}"):
        return table_reply(catalog, table, table.state)


def register_table(catalog: IcebergCatalog, call: Call) -> Reply:
    """Create a table from an existing metadata file."""
    namespace = namespace_of(call)
    wanted = call.decode(RegisterTableRequest)
    name = new_name(namespace, wanted.name)
    location = wanted.metadata_location
    asked = ["registerTable", str(name), location]
    options = commit_options(call, catalog.handle.setting.author, asked)
    check_namespace_of_new(catalog, namespace, options)
    check_location(catalog.handle, location, "metadata-location")
    if wanted.overwrite:
        raise RequestError(
            400,
            "a registration cannot overwrite a table, whose history would be lost; drop the table "
            "first, or register the file under another name",
        )
    table = create_by(
        catalog,
        name,
        options,
        lambda: served.register(catalog.handle, name, location, **options),
        table_name_taken,
    )
    with after_commit(f"the registration of {name}"):
        return table_reply(catalog, table, table.state)


def check_namespace_of_new(catalog: IcebergCatalog, namespace: str, options: CommitOptions) -> None:
    """Check that the namespace of a new table exists.

    Raises:
        RequestError: It does not; or an earlier attempt created the table, and it was dropped with
            the namespace since.
        InvalidInputError: The key was used for another request.
    """
    try:
        catalog.check_namespace(namespace)
    except RequestError:
        if not _is_committed(catalog, options):
            raise
        with after_commit("a table"):
            raise


def create_by(
    catalog: IcebergCatalog,
    name: Identifier,
    options: CommitOptions,
    create: Callable[[], TableHandle],
    taken_error: Callable[[Identifier, str], RequestError],
) -> TableHandle:
    """Create a table by a function, and translate what contradicts its name.

    Args:
        catalog: The catalog.
        name: The table's name.
        options: The options of the commit.
        create: Creates the table.
        taken_error: Returns the error if a table or view has the name; takes the name and the kind.

    Raises:
        RequestError: The name is taken, the namespace does not exist, or the outcome is unknown.
    """
    was_there = name in catalog.state.tables
    try:
        return create()
    except (AlreadyExistsError, CommitConflictError) as error:
        kind = catalog.state.kind_of(name)
        if kind is None:
            raise
        raise taken_error(name, kind) from error
    except NotFoundError as error:
        if isinstance(error, TableDroppedError) or _is_committed(catalog, options):
            # This or an earlier attempt created the table, and it was dropped since.
            with after_commit(f"the creation of {name}"):
                raise
        if name.database in catalog.state.databases:
            raise
        raise no_such_namespace(name.database) from error
    except LedgerError as error:
        if was_there and isinstance(error, InvalidInputError) and error.kind != COMMIT_ID_REUSED:
            raise taken_error(name, "table") from error
        # A step after the creation may have failed, for instance writing the metadata file.
        if was_there or name not in catalog.state.tables:
            raise
        with after_commit(f"the creation of {name}"):
            raise


def _is_committed(catalog: IcebergCatalog, options: CommitOptions) -> bool:
    """Return whether an earlier attempt of a request with a key was committed."""
    key, asked = options.get("commit_id"), options.get("asked")
    return key is not None and catalog.handle.committed_before(key, asked) is not None


def _check_free(catalog: IcebergCatalog, name: Identifier) -> None:
    kind = catalog.state.kind_of(name)
    if kind is not None:
        raise table_name_taken(name, kind)


def _read_spec(obj: dict[str, Any] | None) -> PartitionSpec:
    """Read a partition spec, whose id is the server's to choose."""
    given = obj or {"fields": []}
    return convert_record({**given, "spec-id": 0}, PartitionSpec, "partition-spec")


def _read_order(obj: dict[str, Any] | None) -> SortOrder:
    """Read a sort order, whose id is the server's to choose."""
    given = obj or {"fields": []}
    order_id = UNSORTED_ID + 1 if given.get("fields") else UNSORTED_ID
    return convert_record({**given, "order-id": order_id}, SortOrder, "write-order")


ENDPOINTS = (
    Endpoint("POST", "/v1/{prefix}/namespaces/{namespace}/tables", create_table, "write"),
    Endpoint("POST", "/v1/{prefix}/namespaces/{namespace}/register", register_table, "write"),
)
