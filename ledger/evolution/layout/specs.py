"""Partition specs and sort orders between their records in the log and their values."""

from __future__ import annotations

from collections.abc import Iterable

from ledger.events.spec_events import PartitionFieldRecord, SortFieldRecord
from ledger.model.partition import (
    FIRST_PARTITION_FIELD_ID,
    PartitionField,
    PartitionSpec,
    SortField,
    SortOrder,
)
from ledger.model.schema import Schema


def identity_spec(schema: Schema) -> PartitionSpec:
    """Return spec 0 of a table: identity over its partition keys.

    Example:
        >>> identity_spec(Schema.of({"day": "DATE"}, partition_keys=["day"])).fields[0].name
        'day'
    """
    fields = (
        PartitionField(schema.field(name).id, FIRST_PARTITION_FIELD_ID + index, name)
        for index, name in enumerate(schema.partition_keys)
    )
    return PartitionSpec(0, tuple(fields))


def spec_of(spec_id: int, fields: Iterable[PartitionFieldRecord]) -> PartitionSpec:
    """Return the spec that a record holds."""
    made = (
        PartitionField(each.source_id, each.field_id, each.name, each.transform) for each in fields
    )
    return PartitionSpec(spec_id, tuple(made))


def order_of(order_id: int, fields: Iterable[SortFieldRecord]) -> SortOrder:
    """Return the sort order that a record holds."""
    made = (
        SortField(each.source_id, each.transform, each.direction, each.null_order)
        for each in fields
    )
    return SortOrder(order_id, tuple(made))


def spec_records(spec: PartitionSpec) -> tuple[PartitionFieldRecord, ...]:
    """Return what the log records of a spec."""
    return tuple(
        PartitionFieldRecord(each.source_id, each.field_id, each.name, each.transform)
        for each in spec.fields
    )


def order_records(order: SortOrder) -> tuple[SortFieldRecord, ...]:
    """Return what the log records of a sort order."""
    return tuple(
        SortFieldRecord(each.source_id, each.transform, each.direction, each.null_order)
        for each in order.fields
    )
