"""Going through types: what stands inside one, and every place of a schema.

Nothing else takes types apart but what makes other types or values of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import attrs
from msgspec import Struct

from ledger.model.types import ArrayType, DataField, DataType, MapType, MultisetType, RowType


class Part(NamedTuple):
    """What stands directly inside a type.

    Attributes:
        name: A member's name; `element`, `key` or `value` for what has none.
        type: What stands there.
        field: The member of a ROW; None for an element, key or value.
        id: Its field id; None where it has none.
    """

    name: str
    type: DataType
    field: DataField | None
    id: int | None


def parts_of(data_type: DataType) -> tuple[Part, ...]:
    """Return what stands directly inside a type; nothing for one that holds plain values.

    Example:
        >>> from ledger.model.types import STRING, IntType
        >>> [(each.name, each.id) for each in parts_of(MapType(STRING, IntType()))]
        [('key', None), ('value', None)]
    """
    if not data_type.depth:
        return ()
    if isinstance(data_type, RowType):
        return tuple(Part(each.name, each.type, each, each.id) for each in data_type.fields)
    if isinstance(data_type, ArrayType):
        return (Part("element", data_type.element, None, data_type.element_id),)
    if isinstance(data_type, MultisetType):
        return (Part("element", data_type.element, None, None),)
    if isinstance(data_type, MapType):
        return (
            Part("key", data_type.key, None, data_type.key_id),
            Part("value", data_type.value, None, data_type.value_id),
        )
    return ()


def with_parts(data_type: DataType, parts: Sequence[Part]) -> DataType:
    """Return a type that holds other types and ids than before.

    Args:
        data_type: The type.
        parts: What `parts_of` it gives, in that order, with the types and ids to have.

    Example:
        >>> from ledger.model.types import STRING, IntType
        >>> (part,) = parts_of(ArrayType(STRING))
        >>> with_parts(ArrayType(STRING), [part._replace(type=IntType(), id=3)]).element_id
        3
    """
    if isinstance(data_type, RowType):
        fields = [
            attrs.evolve(each.field, id=each.id, type=each.type)
            for each in parts
            if each.field is not None and each.id is not None
        ]
        return attrs.evolve(data_type, fields=fields)
    if isinstance(data_type, ArrayType):
        (element,) = parts
        return attrs.evolve(data_type, element=element.type, element_id=element.id)
    if isinstance(data_type, MultisetType):
        (element,) = parts
        return attrs.evolve(data_type, element=element.type)
    if isinstance(data_type, MapType):
        key, value = parts
        return attrs.evolve(
            data_type, key=key.type, value=value.type, key_id=key.id, value_id=value.id
        )
    return data_type


def walk_fields(fields: Iterable[DataField]) -> Iterator[DataField]:
    """Yield every field, each before those nested in it (through arrays, maps, multisets).

    >>> from ledger.model.types import STRING, IntType
    >>> inner = RowType((DataField(2, "x", IntType()),))
    >>> [each.name for each in walk_fields([DataField(1, "a", MapType(STRING, inner))])]
    ['a', 'x']
    """
    for each in fields:
        yield each
        if each.type.depth:
            yield from _fields_inside(each.type)


def _fields_inside(data_type: DataType) -> Iterator[DataField]:
    for each in parts_of(data_type):
        if each.field is not None:
            yield each.field
        yield from _fields_inside(each.type)


def walk_ids(data_type: DataType) -> Iterator[int]:
    """Yield every id inside a type: of ROW members, and of elements, keys and values with one.

    >>> from ledger.model.types import IntType
    >>> list(walk_ids(ArrayType(RowType((DataField(2, "x", IntType()),)), element_id=1)))
    [1, 2]
    """
    if not data_type.depth:
        return
    parts = parts_of(data_type)
    if isinstance(data_type, MapType):
        # The ids of a key and a value are given out together.
        yield from (each.id for each in parts if each.id is not None)
    for each in parts:
        if each.id is not None and not isinstance(data_type, MapType):
            yield each.id
        yield from walk_ids(each.type)


class TypePlace(Struct, frozen=True):
    """One place.

    Attributes:
        path: Names from the column on; `element`, `key` and `value` for what has none.
        type: What stands there.
        field: The named field that stands there; None for an element, key or value.
        level: Among what its name has to be unique: the id of the named field around it (None on
            top), then `element`, `key` and `value` since.
        around: The types that it stands in, outermost first.
    """

    path: tuple[str, ...]
    type: DataType
    field: DataField | None
    level: tuple[int | str | None, ...]
    around: tuple[DataType, ...] = ()

    @property
    def name(self) -> str:
        """The path as people read it."""
        return ".".join(self.path)


def type_places(fields: Iterable[DataField]) -> Iterator[TypePlace]:
    """Yield every place, each before those inside it.

    Example:
        >>> from ledger.model.types import IntType
        >>> row = RowType([DataField(1, "x", IntType())])
        >>> [each.name for each in type_places([DataField(0, "a", ArrayType(row))])]
        ['a', 'a.element', 'a.element.x']
    """
    for each in fields:
        place = TypePlace((each.name,), each.type, each, (None,))
        yield place
        if each.type.depth:
            yield from _places_inside(place)


def _places_inside(place: TypePlace) -> Iterator[TypePlace]:
    around = (*place.around, place.type)
    level: tuple[int | str | None, ...] = (
        (*place.level, place.path[-1]) if place.field is None else (place.field.id,)
    )
    for part in parts_of(place.type):
        inner = TypePlace((*place.path, part.name), part.type, part.field, level, around)
        yield inner
        if part.type.depth:
            yield from _places_inside(inner)


def assign_field_ids(data_type: DataType, highest: int) -> tuple[DataType, int]:
    """Give every ROW member in `data_type` a fresh id; return the type and the greatest id given.

    Paimon's order: the ids inside a member come before its own, a map's key before its value.

    Args:
        data_type: Whatever ids it holds are discarded.
        highest: The greatest id given out so far; the first new one is `highest + 1`.

    Example:
        >>> from ledger.model.types import DataField, IntType
        >>> from ledger.model.types.walk import walk_fields
        >>> row = RowType((DataField(0, "a", ArrayType(RowType((DataField(0, "x", IntType()),)))),))
        >>> [member.id for member in walk_fields(assign_field_ids(row, 5)[0].fields)]
        [7, 6]
    """
    parts = []
    for part in parts_of(data_type):
        inner, highest = assign_field_ids(part.type, highest)
        highest += part.field is not None
        parts.append(part._replace(type=inner, id=highest if part.field else part.id))
    return with_parts(data_type, parts), highest
