"""A ledger's schema as Iceberg's: types, ids, identifier fields, defaults."""

from __future__ import annotations

from typing import Any

from attrs import frozen

from ledger.model import types as t
from ledger.model.errors import UnsupportedError
from ledger.model.schema import Schema
from ledger.model.types.arrow import nested_ids
from ledger.model.types.iceberg import default_json, iceberg_type
from projections.iceberg.metadata import schema as iceberg
from projections.iceberg.metadata.schema import DEFAULTS_SINCE
from projections.iceberg.metadata.types import (
    ListType,
    MapType,
    NestedField,
    StructType,
    Type,
    primitive_type,
)


def iceberg_schema(schema: Schema, *, schema_id: int, format_version: int) -> iceberg.Schema:
    """Return a schema as an Iceberg table of that format version has it.

    Lists and maps have the ids that were given out with the schema, or else those of Paimon's
    formula, which files written through `Schema.to_arrow` carry.

    Args:
        schema: The ledger's.
        schema_id: Iceberg's number for it.
        format_version: 1, 2 or 3; defaults need 3 and are left out before.

    Raises:
        UnsupportedError: Iceberg cannot say a column; the message names it.

    Example:
        >>> lists = Schema.of({"a": t.ArrayType(t.IntType())})
        >>> made = iceberg_schema(lists, schema_id=0, format_version=2)
        >>> made.fields[0].type.element_id
        536870912
    """
    fields = tuple(_field(each, each.name, format_version) for each in schema.fields)
    return iceberg.Schema(schema_id, fields, _identifiers(schema))


def iceberg_column(member: t.DataField, format_version: int) -> NestedField:
    """Return a column as an Iceberg table of that format version has it; see `iceberg_schema`."""
    return _field(member, member.name, format_version)


def _identifiers(schema: Schema) -> tuple[int, ...]:
    """Return the fields that identify a row: those that were set, or else the primary key's."""
    if schema.identifier_field_ids:
        return schema.identifier_field_ids
    keys = [schema.field(name) for name in schema.primary_keys]
    inexact = (t.FloatType, t.DoubleType)
    if any(each.type.nullable or isinstance(each.type, inexact) for each in keys):
        return ()
    return tuple(each.id for each in keys)


def _field(member: t.DataField, path: str, format_version: int) -> NestedField:
    defaults = {}
    if format_version >= DEFAULTS_SINCE:
        defaults = {
            "initial_default": _default(member.initial_default, member.type, path),
            "write_default": _default(member.default_value, member.type, path),
        }
    return NestedField(
        id=member.id,
        name=member.name,
        type=_type(member.type, _Place(path, format_version, member.id)),
        required=not member.type.nullable,
        doc=member.description,
        **defaults,
    )


def _default(text: str | None, data_type: t.DataType, path: str) -> Any:
    return None if text is None else default_json(text, data_type, path)


@frozen
class _Place:
    """Where a type stands: its path, the named field around it, the lists and maps since."""

    path: str
    format_version: int
    field_id: int
    depth: int = 0

    def inside(self, name: str) -> _Place:
        return _Place(f"{self.path}.{name}", self.format_version, self.field_id, self.depth + 1)

    def ids(self, data_type: t.DataType) -> tuple[int, ...]:
        return nested_ids(data_type, self.field_id, self.depth + 1)


def _type(data_type: t.DataType, place: _Place) -> Type:
    match data_type:
        case t.RowType(fields=fields):
            members = (
                _field(each, f"{place.path}.{each.name}", place.format_version) for each in fields
            )
            return StructType(tuple(members))
        case t.ArrayType(element=element):
            (number,) = place.ids(data_type)
            return ListType(
                element_id=number,
                element=_type(element, place.inside("element")),
                element_required=not element.nullable,
            )
        case t.MapType():
            return _map(data_type, place)
        case _:
            return _primitive(data_type, place)


def _map(data_type: t.MapType, place: _Place) -> MapType:
    key_id, value_id = place.ids(data_type)
    return MapType(
        key_id=key_id,
        key=_type(data_type.key, place.inside("key")),
        value_id=value_id,
        value=_type(data_type.value, place.inside("value")),
        value_required=not data_type.value.nullable,
    )


def _primitive(data_type: t.DataType, place: _Place) -> Type:
    try:
        return primitive_type(iceberg_type(data_type, format_version=place.format_version))
    except UnsupportedError as error:
        raise UnsupportedError(
            f"column {place.path} cannot stand in an Iceberg table: {error}"
        ) from error
