"""Field ids inside types: giving them out as Paimon does."""

from __future__ import annotations

import attrs

from ledger.model.types import (
    ArrayType,
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
        >>> from ledger.model.types import DataField, IntType
        >>> from ledger.model.types.walk import walk_fields
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
