"""A schema: columns with ids, and the names by which they are found.

Source: the Iceberg table specification, "Schemas" and "Identifier Field IDs".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property

from attrs import field, frozen

from projections.iceberg.metadata.types import (
    ListType,
    MapType,
    NestedField,
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
        yield from _placed(child.type, (*parents, child))
