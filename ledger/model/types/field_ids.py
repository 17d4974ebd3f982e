"""Field ids inside types: giving them out as Paimon does, and finding them all."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import attrs

from ledger.model.types import (
    ArrayType,
    DataField,
    DataType,
    MapType,
    MultisetType,
    RowType,
)


def assign_field_ids(data_type: DataType, highest: int) -> tuple[DataType, int]:
    """Give every ROW member in `data_type` a fresh id; return the type and the greatest id given.

    Paimon's order: the ids inside a member come before its own, a map's key before its value.

    Args:
        data_type: Whatever ids it holds are discarded.
        highest: The greatest id given out so far; the first new one is `highest + 1`.

    Example:
        >>> from ledger.model.types import IntType
        >>> row = RowType((DataField(0, "a", ArrayType(RowType((DataField(0, "x", IntType()),)))),))
        >>> [member.id for member in walk_fields(assign_field_ids(row, 5)[0].fields)]
        [7, 6]
    """
    match data_type:
        case ArrayType(element=element) | MultisetType(element=element):
            element, highest = assign_field_ids(element, highest)
            return attrs.evolve(data_type, element=element), highest
        case MapType(key=key, value=value):
            key, highest = assign_field_ids(key, highest)
            value, highest = assign_field_ids(value, highest)
            return attrs.evolve(data_type, key=key, value=value), highest
        case RowType(fields=fields):
            members = []
            for member in fields:
                inner, highest = assign_field_ids(member.type, highest)
                highest += 1
                members.append(attrs.evolve(member, id=highest, type=inner))
            return attrs.evolve(data_type, fields=tuple(members)), highest
        case _:
            return data_type, highest


def walk_fields(fields: Iterable[DataField]) -> Iterator[DataField]:
    """Yield every field, each before those nested in it (through arrays, maps, multisets).

    >>> from ledger.model.types import STRING, IntType
    >>> inner = RowType((DataField(2, "x", IntType()),))
    >>> [each.name for each in walk_fields([DataField(1, "a", MapType(STRING, inner))])]
    ['a', 'x']
    """
    for each in fields:
        yield each
        yield from _walk_type(each.type)


def walk_ids(data_type: DataType) -> Iterator[int]:
    """Yield every id inside a type: of ROW members, and of elements, keys and values with one.

    >>> from ledger.model.types import IntType
    >>> list(walk_ids(ArrayType(RowType((DataField(2, "x", IntType()),)), element_id=1)))
    [1, 2]
    """
    match data_type:
        case RowType(fields=fields):
            for each in fields:
                yield each.id
                yield from walk_ids(each.type)
        case ArrayType(element=element, element_id=element_id):
            yield from (element_id,) if element_id is not None else ()
            yield from walk_ids(element)
        case MultisetType(element=element):
            yield from walk_ids(element)
        case MapType(key=key, value=value, key_id=key_id, value_id=value_id):
            yield from (each for each in (key_id, value_id) if each is not None)
            yield from walk_ids(key)
            yield from walk_ids(value)
        case _:
            return


def _walk_type(data_type: DataType) -> Iterator[DataField]:
    match data_type:
        case RowType(fields=fields):
            yield from walk_fields(fields)
        case ArrayType(element=element) | MultisetType(element=element):
            yield from _walk_type(element)
        case MapType(key=key, value=value):
            yield from _walk_type(key)
            yield from _walk_type(value)
