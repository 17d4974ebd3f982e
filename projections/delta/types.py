"""Data types as Delta's.

Source: the Delta transaction protocol, "Schema Serialization Format" and "Type Widening".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from attrs import field, frozen

from ledger.model import types as t
from ledger.model.errors import UnsupportedError
from ledger.model.types import type_places

TIMESTAMP_NTZ = "timestampNtz"
"""Table feature needed for columns of type timestamp without time zone."""

INVARIANTS = "invariants"
"""Table feature needed for NOT NULL columns."""

_MICROSECONDS = 6
_PLAIN = {
    "BOOLEAN": "boolean",
    "TINYINT": "byte",
    "SMALLINT": "short",
    "INT": "integer",
    "BIGINT": "long",
    "FLOAT": "float",
    "DOUBLE": "double",
    "DATE": "date",
    **dict.fromkeys(("CHAR", "VARCHAR"), "string"),
    **dict.fromkeys(("BINARY", "VARBINARY"), "binary"),
}
_MOMENTS = {"TIMESTAMP": "timestamp_ntz", "TIMESTAMP_LTZ": "timestamp"}
_WHOLE = ("byte", "short", "integer", "long")
_DIGITS = {"byte": 10, "short": 10, "integer": 10, "long": 20}
"""Digits that a decimal needs before its point to hold every value of an integer type."""

Changes = Mapping[int, Sequence[Mapping[str, str]]]
"""Type changes by field id, in the form of `delta.typeChanges`."""


def primitive_type_name(data_type: t.DataType) -> str:
    """Return Delta's name of a primitive type.

    Raises:
        UnsupportedError: Delta has no such type.

    Example:
        >>> primitive_type_name(t.DecimalType(9, 2)), primitive_type_name(t.TimestampType(3))
        ('decimal(9,2)', 'timestamp_ntz')
    """
    if isinstance(data_type, t.DecimalType):
        return f"decimal({data_type.precision},{data_type.scale})"
    if isinstance(data_type, t.TimestampType | t.LocalZonedTimestampType):
        if data_type.precision > _MICROSECONDS:
            raise UnsupportedError(f"Delta has microseconds, and no finer {data_type.root}")
        return _MOMENTS[data_type.root]
    name = _PLAIN.get(data_type.root)
    if name is None:
        raise UnsupportedError(f"Delta has no {data_type.root}")
    return name


@frozen
class FieldNaming:
    """Names and metadata of a schema's columns.

    Attributes:
        physical: The name in files by field id; None where no column is mapped, so that files have
            the columns' own names.
        changes: The type changes, by field id.
        nested_ids: The ids of elements, keys and values, by the id of the column around
            them and by their paths in it.
    """

    physical: Mapping[int, str] | None = None
    changes: Changes = field(factory=dict)
    nested_ids: Mapping[int, Mapping[str, int]] = field(factory=dict)

    def name(self, member: t.DataField) -> str:
        """Return a column's name in files and in the log."""
        return member.name if self.physical is None else self.physical[member.id]


def struct_json(fields: Sequence[t.DataField], naming: FieldNaming) -> dict[str, Any]:
    """Return columns as Delta schema fields.

    Raises:
        UnsupportedError: Delta has no such type.

    Example:
        >>> struct_json([t.DataField(0, "id", t.BigIntType(nullable=False))], FieldNaming())[
        ...     "fields"
        ... ]
        [{'name': 'id', 'type': 'long', 'nullable': False, 'metadata': {}}]
    """
    return {"type": "struct", "fields": [_field_json(each, naming) for each in fields]}


def _field_json(member: t.DataField, naming: FieldNaming) -> dict[str, Any]:
    return {
        "name": member.name,
        "type": _type_json(member.type, naming),
        "nullable": member.type.nullable,
        "metadata": dict(_column_metadata(member, naming)),
    }


def _column_metadata(member: t.DataField, naming: FieldNaming) -> Iterator[tuple[str, Any]]:
    if member.description is not None:
        yield "comment", member.description
    if naming.physical is not None:
        yield "delta.columnMapping.id", member.id
        yield "delta.columnMapping.physicalName", naming.physical[member.id]
    if nested := naming.nested_ids.get(member.id):
        yield "delta.columnMapping.nested.ids", dict(nested)
    if changes := naming.changes.get(member.id):
        yield "delta.typeChanges", [dict(each) for each in changes]


def _type_json(data_type: t.DataType, naming: FieldNaming) -> Any:
    match data_type:
        case t.RowType(fields=fields):
            return struct_json(fields, naming)
        case t.ArrayType(element=element):
            return {
                "type": "array",
                "elementType": _type_json(element, naming),
                "containsNull": element.nullable,
            }
        case t.MapType(key=key, value=value):
            return {
                "type": "map",
                "keyType": _type_json(key, naming),
                "valueType": _type_json(value, naming),
                "valueContainsNull": value.nullable,
            }
        case _:
            return primitive_type_name(data_type)


def required_features(fields: Sequence[t.DataField]) -> Iterator[str]:
    """Yield the table features that some columns need, with repetitions.

    A NOT NULL column is an invariant, which only writers must support.

    Example:
        >>> [*required_features([t.DataField(0, "a", t.TimestampType(nullable=False))])]
        ['timestampNtz', 'invariants']
    """
    for place in type_places(fields):
        if isinstance(place.type, t.TimestampType):
            yield TIMESTAMP_NTZ
        if place.field is not None and not place.type.nullable:
            yield INVARIANTS


@frozen
class TypeChange:
    """Change of the type of a field or of a type nested in it.

    Attributes:
        path: From the nearest named field: `element`, `key` and `value`; empty for the field.
        before: The old type.
        after: The new type.
    """

    path: tuple[str, ...]
    before: t.DataType
    after: t.DataType

    @property
    def is_widening(self) -> bool:
        """Return whether Delta's type widening allows the change."""
        if self.before.depth or self.after.depth:
            return False
        return is_type_widening(primitive_type_name(self.before), primitive_type_name(self.after))

    def to_json(self) -> dict[str, str]:
        """Return the change as an entry of `delta.typeChanges`."""
        found = {
            "fromType": primitive_type_name(self.before),
            "toType": primitive_type_name(self.after),
        }
        return {**found, "fieldPath": ".".join(self.path)} if self.path else found


def type_changes(before: t.DataType, after: t.DataType) -> Iterator[TypeChange]:
    """Yield the changes of Delta's type of one field, without those of ROW members."""
    yield from _nested_type_changes((), before, after)


def _nested_type_changes(
    path: tuple[str, ...], before: t.DataType, after: t.DataType
) -> Iterator[TypeChange]:
    match before, after:
        case t.RowType(), t.RowType():
            # Its members are fields of their own.
            return
        case t.ArrayType(element=old), t.ArrayType(element=new):
            yield from _nested_type_changes((*path, "element"), old, new)
        case t.MapType(), t.MapType():
            yield from _nested_type_changes((*path, "key"), before.key, after.key)
            yield from _nested_type_changes((*path, "value"), before.value, after.value)
        case _ if (
            before.depth or after.depth or primitive_type_name(before) != primitive_type_name(after)
        ):
            yield TypeChange(path, before, after)


def is_type_widening(before: str, after: str) -> bool:
    """Return whether Delta reads files of one type as another under type widening.

    The protocol also lets a DATE become a timestamp; no tested reader reads such files.

    Example:
        >>> is_type_widening("integer", "long"), is_type_widening("decimal(9,2)", "decimal(11,3)")
        (True, True)
        >>> is_type_widening("long", "double"), is_type_widening("date", "timestamp_ntz")
        (False, False)
    """
    if before in _WHOLE and after in _WHOLE:
        return _WHOLE.index(before) < _WHOLE.index(after)
    if after == "double":
        return before in ("float", "byte", "short", "integer")
    if not after.startswith("decimal"):
        return False
    precision, scale = _parse_decimal(after)
    if before in _DIGITS:
        return precision - scale >= _DIGITS[before]
    if not before.startswith("decimal"):
        return False
    old_precision, old_scale = _parse_decimal(before)
    return scale >= old_scale and precision - scale >= old_precision - old_scale


def _parse_decimal(name: str) -> tuple[int, int]:
    precision, _, scale = name.removeprefix("decimal(").removesuffix(")").partition(",")
    return int(precision), int(scale)
