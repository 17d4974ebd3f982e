"""DLF views of tables, views and functions, as pure functions of their states.

Source: the DLF page's GetTableResponse, TableSnapshot and GetViewResponse; Paimon's
GetFunctionResponse.
"""

from __future__ import annotations

from attrs import evolve

from ledger.locations import below
from ledger.model.functions import Function
from ledger.model.names import Identifier
from ledger.model.snapshot import Snapshot
from ledger.state.catalog import FunctionEntry, ViewEntry
from ledger.state.iceberg_origin import IcebergOrigin
from ledger.state.table import TableState
from projections.dlf.objects import (
    CreateFunctionRequest,
    GetFunctionResponse,
    GetTableResponse,
    GetViewResponse,
    TableSnapshot,
)
from projections.manifest_files.lists import manifest_list_names


def get_table_response(
    state: TableState, identifier: Identifier, *, root_url: str, owner: str | None = None
) -> GetTableResponse:
    """Return a table's GetTableResponse at the instant of a state.

    Args:
        state: The table's state.
        identifier: Its name at that instant, which the state does not have.
        root_url: The ledger's root, against which a relative location is resolved.
        owner: The owner; by default the creator.

    Example:
        >>> from ledger.model.schema import Schema
        >>> state = TableState(
        ...     version=0, time_millis=1, effective_millis=1, table_id="f3", path="shop.db/orders",
        ...     schema=Schema.of({"id": "INT"}), specs=(), created_at=1, created_by="ann",
        ...     updated_at=1, updated_by="ann",
        ... )
        >>> get_table_response(state, Identifier("shop", "orders"), root_url="oss://lake").path
        'oss://lake/shop.db/orders'
    """
    return GetTableResponse(
        id=state.table_id,
        name=identifier.name,
        database=identifier.database,
        path=below(root_url.rstrip("/"), state.path),
        is_external=state.is_external,
        schema_id=state.schema.id,
        schema=state.schema,
        owner=owner or state.created_by,
        created_at=state.created_at,
        created_by=state.created_by,
        updated_at=state.updated_at,
        updated_by=state.updated_by,
    )


def table_snapshot(state: TableState, *, snapshot: Snapshot | None = None) -> TableSnapshot | None:
    """Return a table's TableSnapshot; None when it has no snapshot at that instant.

    The page's Snapshot always names its manifest lists. If no engine wrote any, they have the names
    that a projection to Paimon gives them, whether or not they exist.

    Args:
        state: The table's state.
        snapshot: The same snapshot with more facts from a projection, such as the names of its
            manifest lists; by default the state's own.

    Example:
        >>> from ledger.model.schema import Schema
        >>> state = TableState(
        ...     version=0, time_millis=1, effective_millis=1, table_id="f3", path="shop.db/orders",
        ...     schema=Schema.of({"id": "INT"}), specs=(), created_at=1, created_by="ann",
        ...     updated_at=1, updated_by="ann",
        ... )
        >>> table_snapshot(state) is None
        True
    """
    current = snapshot or state.snapshot
    if current is None:
        return None
    # A table from Iceberg has no manifest lists from a projection to Paimon.
    is_iceberg = isinstance(state.origin, IcebergOrigin)
    base, delta = ("", "") if is_iceberg else manifest_list_names(state.table_id, current.id)
    named = evolve(
        current,
        base_manifest_list=current.base_manifest_list or base,
        delta_manifest_list=current.delta_manifest_list or delta,
    )
    return TableSnapshot(
        snapshot=named,
        record_count=state.totals.record_count,
        file_size_in_bytes=state.totals.file_size_in_bytes,
        file_count=state.totals.file_count,
        last_file_creation_time=state.totals.last_file_creation_time,
    )


def get_view_response(entry: ViewEntry, *, owner: str | None = None) -> GetViewResponse:
    """Return a view's GetViewResponse at the instant of a catalog entry.

    Args:
        entry: The view's entry in the catalog's state.
        owner: The owner; by default the creator.

    Example:
        >>> from ledger.state.catalog import Audit
        >>> from ledger.model.schema import ViewSchema
        >>> entry = ViewEntry(
        ...     Identifier("shop", "counts"), "v1", ViewSchema((), "SELECT 1"),
        ...     Audit(1, "ann", 2, "bob"),
        ... )
        >>> view = get_view_response(entry)
        >>> view.name, view.owner, view.updated_by
        ('counts', 'ann', 'bob')
    """
    return GetViewResponse(
        id=entry.view_id,
        name=entry.identifier.name,
        schema=entry.schema,
        owner=owner or entry.audit.created_by,
        created_at=entry.audit.created_at,
        created_by=entry.audit.created_by,
        updated_at=entry.audit.updated_at,
        updated_by=entry.audit.updated_by,
    )


def get_function_response(entry: FunctionEntry, *, owner: str | None = None) -> GetFunctionResponse:
    """Return a function's GetFunctionResponse at the instant of a catalog entry.

    Args:
        entry: The function's entry in the catalog's state.
        owner: The owner; by default the creator.

    Example:
        >>> from ledger.state.catalog import Audit
        >>> entry = FunctionEntry(
        ...     Identifier("shop", "area"), "f1", Function(comment="a * b"),
        ...     Audit(1, "ann", 2, "bob"),
        ... )
        >>> area = get_function_response(entry)
        >>> area.name, area.owner, area.comment
        ('area', 'ann', 'a * b')
    """
    function = entry.function
    return GetFunctionResponse(
        uuid=entry.function_id,
        name=entry.identifier.name,
        input_params=function.input_params,
        return_params=function.return_params,
        deterministic=function.deterministic,
        definitions=function.definitions,
        comment=function.comment,
        options=function.options,
        owner=owner or entry.audit.created_by,
        created_at=entry.audit.created_at,
        created_by=entry.audit.created_by,
        updated_at=entry.audit.updated_at,
        updated_by=entry.audit.updated_by,
    )


def function_of_request(request: CreateFunctionRequest) -> Function:
    """Return the function that a CreateFunctionRequest describes."""
    return Function(
        input_params=request.input_params,
        return_params=request.return_params,
        deterministic=request.deterministic,
        definitions=request.definitions,
        comment=request.comment,
        options=request.options,
    )
