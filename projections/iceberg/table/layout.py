"""Partition specs and sort orders of the ledger in Iceberg's words."""

from __future__ import annotations

from ledger.model.partition import PartitionSpec, SortOrder
from projections.iceberg.metadata import layout


def iceberg_spec(spec: PartitionSpec) -> layout.PartitionSpec:
    """Return a partition spec as a metadata file has it."""
    fields = (
        layout.PartitionField(each.name, each.transform, each.source_id, field_id=each.field_id)
        for each in spec.fields
    )
    return layout.PartitionSpec(spec.spec_id, tuple(fields))


def iceberg_order(order: SortOrder) -> layout.SortOrder:
    """Return a sort order as a metadata file has it."""
    fields = (
        layout.SortField(
            transform=each.transform,
            source_id=each.source_id,
            direction=each.direction,
            null_order=each.null_order,
        )
        for each in order.fields
    )
    return layout.SortOrder(order.order_id, tuple(fields))
