"""The views of a table and of a view, as pure functions of their states."""

from __future__ import annotations

from ledger.evolution.state import TableState
from ledger.model.identifier import Identifier
from ledger.model.snapshot import Snapshot
from ledger.model.view import ViewSchema
from projections.dlf.views import GetTableResponse, GetViewResponse, TableSnapshot


def get_table_response(
    state: TableState, identifier: Identifier, *, root_url: str, owner: str | None = None
) -> GetTableResponse:
    """Return a table's GetTableResponse at the instant that `state` stands at.

    Args:
        state: The table's state.
        identifier: Its name at that instant; the state does not know it.
        root_url: The ledger's root, which a relative location is resolved against.
        owner: Who owns it; whoever created it, unless given.
    """
    return GetTableResponse(
        id=state.table_id,
        name=identifier.name,
        database=identifier.database,
        path=_absolute(root_url, state.path),
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

    Args:
        state: The table's state.
        snapshot: The same snapshot with what a projection knows besides, such as the names of its
            manifest lists; the state's own unless given.
    """
    current = snapshot or state.snapshot
    if current is None:
        return None
    return TableSnapshot(
        snapshot=current,
        record_count=state.totals.record_count,
        file_size_in_bytes=state.totals.file_size_in_bytes,
        file_count=state.totals.file_count,
        last_file_creation_time=state.totals.last_file_creation_time,
    )


def get_view_response(view_id: str, identifier: Identifier, schema: ViewSchema) -> GetViewResponse:
    """Return a view's GetViewResponse."""
    return GetViewResponse(id=view_id, name=identifier.name, schema=schema)


def _absolute(root_url: str, path: str) -> str:
    if "://" in path or path.startswith("/"):
        return path
    return f"{root_url.rstrip('/')}/{path}"
