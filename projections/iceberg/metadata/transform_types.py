"""Which types a partition transform takes, and which type its values have.

Source: the Iceberg table specification, "Partition Transforms"; a day is a date as in Java.
"""

from __future__ import annotations

from ledger.model.errors import InvalidInputError
from projections.iceberg.metadata.layout import PartitionField, PartitionSpec, SortField
from projections.iceberg.metadata.schema import Schema
from projections.iceberg.metadata.type_text import type_name
from projections.iceberg.metadata.types import (
    DecimalType,
    FixedType,
    ListType,
    MapType,
    NestedField,
    PlainType,
    StructType,
    Type,
)

_TIMESTAMPS = frozenset({"timestamp", "timestamptz", "timestamp_ns", "timestamptz_ns"})
_DAYS = _TIMESTAMPS | {"date"}
_WIDTHS = frozenset({"int", "long", "decimal", "string", "binary"})
_SOURCES = {
    "bucket": _WIDTHS | _DAYS | {"time", "uuid", "fixed"},
    "truncate": _WIDTHS,
    "year": _DAYS,
    "month": _DAYS,
    "day": _DAYS,
    "hour": _TIMESTAMPS,
}
_NEVER_IDENTITY = frozenset({"geometry", "geography", "variant"})
_RESULTS = {"bucket": "int", "year": "int", "month": "int", "day": "date", "hour": "int"}
_SAME = frozenset({"identity", "truncate", "void"})


def can_transform(transform: str, source: Type) -> bool:
    """Return whether a transform takes a type; an unknown one takes anything.

    Example:
        >>> can_transform("hour", PlainType("date")), can_transform("zorder", PlainType("date"))
        (False, True)
    """
    name = _name(transform)
    if name == "identity":
        return (
            not isinstance(source, StructType | ListType | MapType)
            and _kind(source) not in _NEVER_IDENTITY
        )
    return name not in _SOURCES or _kind(source) in _SOURCES[name]


def result_type(transform: str, source: Type) -> Type:
    """Return the type of a transform's values; those of an unknown one are strings."""
    name = _name(transform)
    if name in _SAME:
        return source
    match _RESULTS.get(name):
        case "int":
            return PlainType("int")
        case "date":
            return PlainType("date")
        case _:
            return PlainType("string")


def partition_type(spec: PartitionSpec, schema: Schema) -> StructType:
    """Return the struct of a spec's values; all of its fields are optional.

    A field whose source column is gone has values of type unknown.
    """
    return StructType(
        tuple(
            NestedField(each.field_id, each.name, _result(each, schema), required=False)
            for each in spec.fields
        )
    )


def check_layout(
    fields: tuple[PartitionField, ...] | tuple[SortField, ...], schema: Schema
) -> None:
    """Check that a partition spec or sort order fits a schema.

    Every source is a primitive field of a type that the transform takes; that of a partition
    field stands in no list and no map. A void field fits any schema.

    Raises:
        InvalidInputError: One does not fit; the message names the field.
    """
    for each in fields:
        if isinstance(each, PartitionField) and each.transform == "void":
            continue
        for source_id in each.sources:
            _check_source(each, source_id, schema)


def _check_source(each: PartitionField | SortField, source_id: int, schema: Schema) -> None:
    name = f"{each.transform} of field {source_id}"
    placed = schema.by_id.get(source_id)
    if placed is None:
        raise InvalidInputError(f"{name}: schema {schema.schema_id} has no such field")
    kind = placed.field.type
    if isinstance(kind, StructType | ListType | MapType) or not can_transform(each.transform, kind):
        raise InvalidInputError(f"{name}: {placed.name} is of type {type_name(kind)}")
    if isinstance(each, PartitionField) and not all(
        isinstance(parent.type, StructType) for parent in placed.parents
    ):
        raise InvalidInputError(f"{name}: {placed.name} stands in a list or map")


def _result(each: PartitionField, schema: Schema) -> Type:
    placed = schema.by_id.get(each.sources[0])
    return result_type(each.transform, placed.field.type if placed else PlainType("unknown"))


def _name(transform: str) -> str:
    return transform.partition("[")[0]


def _kind(source: Type) -> str:
    match source:
        case PlainType(name=name):
            return name
        case DecimalType():
            return "decimal"
        case FixedType():
            return "fixed"
        case _:
            return type(source).__name__.removesuffix("Type").lower()
