"""What a schema must keep: unique ids and names, sane identifiers, types that its version has.

Source: the Iceberg table specification; the messages' rules are those of Java's Schema class.
"""

from __future__ import annotations

from ledger.model.errors import InvalidInputError, UnsupportedError
from projections.iceberg.metadata.schema import PlacedField, Schema
from projections.iceberg.metadata.types import (
    GeographyType,
    GeometryType,
    ListType,
    MapType,
    PlainType,
    StructType,
    Type,
)

DEFAULTS_SINCE = 3
_PLAIN_SINCE = {"timestamp_ns": 3, "timestamptz_ns": 3, "unknown": 3, "variant": 3}
_GEO_SINCE = 3
_INEXACT = {"float", "double"}


def check_schema(schema: Schema) -> None:
    """Check that a schema does not contradict itself.

    Raises:
        InvalidInputError: An id or a full name is there twice, an identifier field cannot
            identify a row, or a field of type unknown is required.
    """
    ids: dict[int, str] = {}
    names: dict[str, int] = {}
    for placed in schema.placed_fields:
        field_id, name = placed.field.id, placed.name
        if field_id in ids:
            raise InvalidInputError(
                f"field id {field_id} stands for {ids[field_id]} and for {name}; give each its own"
            )
        if name in names:
            raise InvalidInputError(
                f"the name {name} stands for fields {names[name]} and {field_id}; rename one"
            )
        ids[field_id], names[name] = name, field_id
        if placed.field.type == PlainType("unknown") and placed.field.required:
            raise InvalidInputError(f"{name} is of type unknown, so it must be optional")
    for field_id in schema.identifier_field_ids:
        _check_identifier(schema, field_id)


def _check_identifier(schema: Schema, field_id: int) -> None:
    placed = schema.by_id.get(field_id)
    if placed is None:
        raise InvalidInputError(f"identifier field {field_id} is not in the schema")
    problem = _identifier_problem(placed)
    if problem:
        raise InvalidInputError(f"{placed.name} cannot be an identifier field: {problem}")


def _identifier_problem(placed: PlacedField) -> str | None:
    kind = placed.field.type
    if isinstance(kind, StructType | ListType | MapType):
        return "it is not primitive"
    if isinstance(kind, PlainType) and kind.name in _INEXACT:
        return f"it is a {kind.name}"
    if not placed.field.required:
        return "it is optional"
    for parent in placed.parents:
        if not isinstance(parent.type, StructType):
            return f"it stands in the list or map {parent.name}"
        if not parent.required:
            return f"it stands in the optional struct {parent.name}"
    return None


def check_features(schema: Schema, format_version: int) -> None:
    """Check that a format version has every type and default of a schema.

    Raises:
        UnsupportedError: It has not; the message names all fields concerned.
    """
    problems = []
    for placed in schema.placed_fields:
        since = _since(placed.field.type)
        if since > format_version:
            problems.append(f"{placed.name} is of a type that needs v{since}")
        if placed.field.initial_default is not None and format_version < DEFAULTS_SINCE:
            problems.append(f"{placed.name} has an initial default, which needs v{DEFAULTS_SINCE}")
    if problems:
        raise UnsupportedError(
            f"not a schema for format version {format_version}: {'; '.join(problems)}"
        )


def _since(kind: Type) -> int:
    match kind:
        case PlainType(name=name):
            return _PLAIN_SINCE.get(name, 1)
        case GeometryType() | GeographyType():
            return _GEO_SINCE
        case _:
            return 1
