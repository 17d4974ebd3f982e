"""Iceberg's schemas as the ledger's and back, exactly.

Where the ledger's types do not say all of a schema, its JSON is kept beside the columns.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

from msgspec import UnsetType

from ledger.events.born.iceberg import IcebergSchema
from ledger.model import types as t
from ledger.model.errors import InvalidTypeError, UnsupportedError
from ledger.model.types.iceberg import default_json
from ledger.model.types.wire import FieldObject, field_from_wire, field_to_wire
from projections.iceberg.metadata import schema as iceberg
from projections.iceberg.metadata import types as it
from projections.iceberg.metadata.schema_json import schema_from_json, schema_to_json
from projections.iceberg.table.schema import iceberg_column

_PLAIN: dict[str, t.DataType] = {
    "boolean": t.BooleanType(),
    "int": t.IntType(),
    "long": t.BigIntType(),
    "float": t.FloatType(),
    "double": t.DoubleType(),
    "date": t.DateType(),
    "time": t.TimeType(6),
    "timestamp": t.TimestampType(6),
    "timestamptz": t.LocalZonedTimestampType(6),
    "timestamp_ns": t.TimestampType(9),
    "timestamptz_ns": t.LocalZonedTimestampType(9),
    "string": t.VarCharType(t.MAX_LENGTH),
    "uuid": t.UuidType(),
    "binary": t.VarBinaryType(t.MAX_LENGTH),
    "unknown": t.UnknownType(),
    "variant": t.VariantType(),
}


def ledger_schema(schema: iceberg.Schema, format_version: int) -> IcebergSchema:
    """Return a schema of Iceberg's as the ledger has it.

    Args:
        schema: Iceberg's.
        format_version: The table's, which says whether defaults count.

    Raises:
        UnsupportedError: The ledger has no such type; the message names the column.
    """
    fields = tuple(_field(each, each.name) for each in schema.fields)
    made = IcebergSchema(
        schema_id=schema.schema_id,
        fields=tuple(map(field_to_wire, fields)),
        identifier_field_ids=schema.identifier_field_ids,
    )
    try:
        says_all = _said(made, format_version) == schema
    except UnsupportedError:
        says_all = False
    return made if says_all else _with_text(made, schema_text(schema))


def _with_text(made: IcebergSchema, text: str | UnsetType) -> IcebergSchema:
    return IcebergSchema(
        schema_id=made.schema_id,
        fields=made.fields,
        identifier_field_ids=made.identifier_field_ids,
        text=text,
    )


def schema_text(schema: iceberg.Schema) -> str:
    """Return a schema's compact JSON."""
    return json.dumps(schema_to_json(schema), separators=(",", ":"), ensure_ascii=False)


@lru_cache(maxsize=1024)
def source_schema(schema: IcebergSchema, format_version: int) -> iceberg.Schema:
    """Return what Iceberg said of a schema."""
    if not isinstance(schema.text, UnsetType):
        return schema_from_json(json.loads(schema.text))
    return _said(schema, format_version)


def _said(schema: IcebergSchema, format_version: int) -> iceberg.Schema:
    columns = tuple(_column(each, format_version) for each in schema.fields)
    return iceberg.Schema(schema.schema_id, columns, schema.identifier_field_ids)


def _column(column: FieldObject, format_version: int) -> it.NestedField:
    if isinstance(column.type, str):
        return _plain_column(column, format_version)
    return iceberg_column(field_from_wire(column), format_version)


@lru_cache(maxsize=65_536)
def _plain_column(column: FieldObject, format_version: int) -> it.NestedField:
    made = iceberg_column(field_from_wire(column), format_version)
    has_default = made.initial_default is not None or made.write_default is not None
    return made if has_default else it.shared(made)


def _field(member: it.NestedField, path: str) -> t.DataField:
    data_type = _type(member.type, path).with_nullability(nullable=not member.required)
    return t.DataField(
        member.id,
        member.name,
        data_type,
        member.doc,
        _default(member.write_default, data_type, path),
        _default(member.initial_default, data_type, path),
    )


def _default(value: Any, data_type: t.DataType, path: str) -> str | None:
    """Return a default's text; None, too, where no text says it."""
    if value is None or isinstance(value, dict):
        return None
    text = str(value).lower() if isinstance(value, bool) else str(value)
    try:
        return text if default_json(text, data_type, path) == value else None
    except UnsupportedError:
        return None


def _type(kind: it.Type, path: str) -> t.DataType:
    match kind:
        case it.StructType(fields=fields):
            return t.RowType([_field(each, f"{path}.{each.name}") for each in fields])
        case it.ListType():
            element = _type(kind.element, f"{path}.element")
            return t.ArrayType(
                element.with_nullability(nullable=not kind.element_required),
                element_id=kind.element_id,
            )
        case it.MapType():
            key, value = _type(kind.key, f"{path}.key"), _type(kind.value, f"{path}.value")
            return t.MapType(
                key.with_nullability(nullable=False),
                value.with_nullability(nullable=not kind.value_required),
                key_id=kind.key_id,
                value_id=kind.value_id,
            )
        case _:
            return _primitive(kind, path)


def _primitive(kind: it.PrimitiveType, path: str) -> t.DataType:
    try:
        match kind:
            case it.PlainType(name=name):
                return _PLAIN[name]
            case it.FixedType(length=length):
                return t.BinaryType(length) if length else t.VarBinaryType(t.MAX_LENGTH)
            case it.DecimalType(precision=precision, scale=scale):
                return t.DecimalType(precision, scale)
            case it.GeometryType(crs=crs):
                return t.GeometryType(crs)
            case it.GeographyType(crs=crs, algorithm=algorithm):
                return t.GeographyType(crs, algorithm)
    except InvalidTypeError as error:
        raise UnsupportedError(
            f"column {path} has Iceberg's type {it.type_text(kind)}, which the ledger cannot hold: "
            f"{error}"
        ) from error
