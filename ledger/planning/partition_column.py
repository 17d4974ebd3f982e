"""A partition field as a column that predicates can name."""

from __future__ import annotations

from attrs import frozen

from ledger.model import types as t
from ledger.model.partition import PartitionSpec
from ledger.model.schema import Schema
from ledger.model.transforms import Period, Transform, transform_of
from ledger.model.transforms.paths import field_types, human_text
from ledger.model.transforms.values import Value
from ledger.planning.expression import Column


@frozen
class PartitionColumn(Column):
    """One field of a spec; its id is the partition field's.

    Attributes:
        position: Where its value stands in a file's partition, from 0.
        source_id: The field id of the column that it derives from.
        source: That column's type; UNKNOWN when it was dropped.
        transform: How.
    """

    position: int
    source_id: int
    source: t.DataType
    transform: Transform

    def value_text(self, value: Value) -> str:
        """Return one of its values for people: years, months and hours as such."""
        if isinstance(self.transform, Period):
            return human_text(value, self.transform, self.source)
        return super().value_text(value)


def partition_columns(spec: PartitionSpec, schema: Schema) -> tuple[PartitionColumn, ...]:
    """Return a spec's fields as columns, in its order.

    Example:
        >>> from ledger.model.partition import PartitionField
        >>> spec = PartitionSpec(0, (PartitionField(0, 1000, "ts_month", "month"),))
        >>> partition_columns(spec, Schema.of({"ts": "DATE"}))[0].value_text(575)
        '2017-12'
    """
    types = field_types(schema)
    found = []
    for position, each in enumerate(spec.fields):
        transform = transform_of(each.transform)
        source = types.get(each.source_id, t.UnknownType())
        found.append(
            PartitionColumn(
                id=each.field_id,
                name=each.name,
                type=transform.result_type(source),
                position=position,
                source_id=each.source_id,
                source=source,
                transform=transform,
            )
        )
    return tuple(found)
