"""Iceberg table and view metadata: values, JSON, and the fold of REST updates. Pure, no I/O.

- `table`, `snapshot`, `schema`, `types`, `layout` (partition specs, sort orders), `view`: values.
- `table_json`, `view_json`: metadata files; `schema_json`, `type_text`, `default_values`: parts.
- `updates`, `requirements`: what a commit does, and what must still hold for it.
- `fold` (with `batch`, `fold_layouts`, `fold_snapshots`), `view_fold`: metadata after a commit.
- `table_checks`, `schema_checks`, `transform_types`: what metadata must keep.
- `creation`, `heads`, `expiry`: updates for creating a table, moving refs, expiring snapshots.
- `history`, `file_names`, `properties`, `conflicts`, `wire`: small things.

Source: the Iceberg table, view and REST catalog specifications.

Example:
    >>> from projections.iceberg.metadata.creation import NewTable, creating
    >>> from projections.iceberg.metadata.schema import Schema
    >>> new = NewTable(uuid="9c12d441", location="mem:/t", schema=Schema(0))
    >>> table = apply_updates(None, creating(new), now_ms=1)
    >>> read_metadata(write_metadata(table)) == table
    True
"""

from __future__ import annotations

from projections.iceberg.metadata.conflicts import StaleBaseError
from projections.iceberg.metadata.fold import apply_updates
from projections.iceberg.metadata.requirements import (
    check_requirements,
    check_view_requirements,
    requirement_from_json,
    requirement_to_json,
    requirements_of,
    requirements_of_replacement,
)
from projections.iceberg.metadata.schema import Schema
from projections.iceberg.metadata.schema_json import schema_from_json, schema_to_json
from projections.iceberg.metadata.snapshot import Snapshot, SnapshotRef, snapshot_json
from projections.iceberg.metadata.table import TableMetadata
from projections.iceberg.metadata.table_checks import check_same_table
from projections.iceberg.metadata.table_json import read_metadata, write_metadata
from projections.iceberg.metadata.updates import (
    table_update_from_json,
    update_to_json,
    view_update_from_json,
)
from projections.iceberg.metadata.view import ViewMetadata
from projections.iceberg.metadata.view_fold import apply_view_updates
from projections.iceberg.metadata.view_json import read_view_metadata, write_view_metadata

__all__ = [
    "Schema",
    "Snapshot",
    "SnapshotRef",
    "StaleBaseError",
    "TableMetadata",
    "ViewMetadata",
    "apply_updates",
    "apply_view_updates",
    "check_requirements",
    "check_same_table",
    "check_view_requirements",
    "read_metadata",
    "read_view_metadata",
    "requirement_from_json",
    "requirement_to_json",
    "requirements_of",
    "requirements_of_replacement",
    "schema_from_json",
    "schema_to_json",
    "snapshot_json",
    "table_update_from_json",
    "update_to_json",
    "view_update_from_json",
    "write_metadata",
    "write_view_metadata",
]
