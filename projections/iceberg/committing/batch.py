"""One batch of updates on its way: the table so far, and what Java's rules remember of a batch."""

from __future__ import annotations

from attrs import Factory, define

from ledger.model.iceberg.layout import FIRST_PARTITION_FIELD_ID
from ledger.model.iceberg.snapshot import IcebergSnapshot
from projections.iceberg.metadata.table import TableMetadata


@define
class Batch:
    """The state of a batch.

    Attributes:
        table: The table after the updates so far.
        now_ms: When the batch is committed, in milliseconds since 1970.
        snapshots: All snapshots so far, by id.
        last_schema_id: The schema that -1 stands for.
        last_spec_id: The spec that -1 stands for.
        last_order_id: The sort order that -1 stands for.
        added_schemas: Ids of the schemas that the batch added.
        added_snapshots: Ids of the snapshots that the batch added.
        made_current: Those of them that `main` pointed to after some update.
        has_removed_snapshots: Whether the batch removed snapshots.
    """

    table: TableMetadata
    now_ms: int
    snapshots: dict[int, IcebergSnapshot] = Factory(
        lambda self: dict(self.table.snapshots_by_id), takes_self=True
    )
    last_schema_id: int | None = None
    last_spec_id: int | None = None
    last_order_id: int | None = None
    added_schemas: set[int] = Factory(set)
    added_snapshots: set[int] = Factory(set)
    made_current: set[int] = Factory(set)
    has_removed_snapshots: bool = False


def nothing(format_version: int, now_ms: int) -> TableMetadata:
    """Return what a table is before its first update."""
    return TableMetadata(
        format_version=format_version,
        table_uuid=None,
        location="",
        last_updated_ms=now_ms,
        last_column_id=0,
        schemas=(),
        partition_specs=(),
        last_partition_id=FIRST_PARTITION_FIELD_ID - 1,
        sort_orders=(),
    )
