"""A schema: columns with ids, and the names by which they are found; and what it must keep.

Source: the Iceberg table specification, "Schemas" and "Identifier Field IDs"; the messages' rules
are those of Java's Schema class.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property

from attrs import field, frozen

from ledger.model.errors import InvalidInputError, UnsupportedError
from projections.iceberg.metadata.types import (
    GeographyType,
    GeometryType,
    ListType,
    MapType,
    NestedField,
    PlainType,
    StructType,
    Type,
)


def _ascending(ids: Iterable[int]) -> tuple[int, ...]:
    return tuple(sorted(set(ids)))


@frozen
class Schema:
    """The columns of a table or view under a schema id.

    Two schemas with the same columns and identifier fields are the same one under different ids;
    `same_schema` says so.

    Attributes:
        schema_id: Its number in the metadata.
        fields: The columns.
        identifier_field_ids: Ids of the fields that identify a row, ascending.

    Example:
        >>> from projections.iceberg.metadata.types import PlainType
        >>> schema = Schema(0, (NestedField(1, "id", PlainType("long"), required=True),))
        >>> schema.find("id").id, schema.highest_field_id
        (1, 1)
    """

    schema_id: int
    fields: tuple[NestedField, ...] = ()
    identifier_field_ids: tuple[int, ...] = field(default=(), converter=_ascending)

    @property
    def struct(self) -> StructType:
        """The columns as a struct."""
        return StructType(self.fields)

    @cached_property
    def placed_fields(self) -> tuple[PlacedField, ...]:
        """Every field at every depth, parents before children, in the order of the columns."""
        return tuple(_placed(self.struct, ()))

    @cached_property
    def by_id(self) -> Mapping[int, PlacedField]:
        """Every field by its id."""
        return {each.field.id: each for each in self.placed_fields}

    @cached_property
    def by_name(self) -> Mapping[str, PlacedField]:
        """Every field by its full name and by its short one, where that is not taken."""
        full = {each.name: each for each in self.placed_fields}
        return {each.short_name: each for each in reversed(self.placed_fields)} | full

    @property
    def highest_field_id(self) -> int:
        """The highest id of a field at any depth; 0 without fields."""
        return max((each.field.id for each in self.placed_fields), default=0)

    def find(self, name: str) -> NestedField | None:
        """Return the field of that full or short name, or None."""
        found = self.by_name.get(name)
        return found.field if found else None

    def name_of(self, field_id: int) -> str | None:
        """Return the full name of a field, or None."""
        found = self.by_id.get(field_id)
        return found.name if found else None


@frozen
class PlacedField:
    """A field where it stands in a schema.

    List elements, map keys and map values stand as fields named `element`, `key`, `value`.

    Attributes:
        field: The field.
        parents: What it stands in, outermost first.
    """

    field: NestedField
    parents: tuple[NestedField, ...] = ()

    @property
    def name(self) -> str:
        """The full name: all names on the way, joined with dots."""
        if not self.parents:
            return self.field.name
        return ".".join(each.name for each in (*self.parents, self.field))

    @property
    def short_name(self) -> str:
        """The full name without `element` and `value` where these are structs on the way."""
        parts = []
        inside: Type | None = None
        for each in (*self.parents, self.field):
            skipped = (
                each is not self.field
                and isinstance(inside, ListType | MapType)
                and each.name != "key"
                and isinstance(each.type, StructType)
            )
            if not skipped:
                parts.append(each.name)
            inside = each.type
        return ".".join(parts)


def same_schema(one: Schema, other: Schema) -> bool:
    """Return whether two schemas differ at most in their ids."""
    return one.fields == other.fields and one.identifier_field_ids == other.identifier_field_ids


def children(kind: Type) -> tuple[NestedField, ...]:
    """Return what stands directly in a type: fields, or `element`, or `key` and `value`."""
    match kind:
        case StructType(fields=fields):
            return fields
        case ListType():
            return (NestedField(kind.element_id, "element", kind.element, kind.element_required),)
        case MapType():
            return (
                NestedField(kind.key_id, "key", kind.key, required=True),
                NestedField(kind.value_id, "value", kind.value, kind.value_required),
            )
        case _:
            return ()


def _placed(kind: Type, parents: tuple[NestedField, ...]) -> Iterator[PlacedField]:
    for child in children(kind):
        yield PlacedField(child, parents)
        if isinstance(child.type, StructType | ListType | MapType):
            yield from _placed(child.type, (*parents, child))


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
        if placed.field.required and placed.field.type == PlainType("unknown"):
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
