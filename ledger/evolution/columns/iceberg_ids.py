"""Field ids inside new types: Paimon's order or Iceberg's, whichever counts the table's ids.

Source: the Iceberg reference implementation, which numbers one struct's members one after the
other before it looks into any of them. Neither pre-order nor breadth-first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from attrs import evolve

from ledger.model.schema import FieldIdPolicy
from ledger.model.types import ArrayType, DataField, DataType, MapType, MultisetType, RowType
from ledger.model.types.walk import assign_field_ids, parts_of, walk_ids

FIRST_ICEBERG_ID = 1


def numbered(data_type: DataType, highest: int, policy: FieldIdPolicy) -> tuple[DataType, int]:
    """Give everything inside a type a fresh id; return the type and the greatest id given.

    Args:
        data_type: Whatever ids it holds are discarded.
        highest: The greatest id given out so far.
        policy: Whose order; under Paimon's, elements, keys and values have no ids.

    Example:
        >>> from ledger.model.types.sql import read_type
        >>> kv = read_type("MAP<STRING, ROW<a INT>>")
        >>> [list(walk_ids(numbered(kv, 9, each)[0])) for each in ("iceberg", "paimon")]
        [[10, 11, 12], [10]]
    """
    if not data_type.depth:
        return data_type, highest
    if policy == "paimon":
        return assign_field_ids(_without_member_ids(data_type), highest)
    return _fresh(data_type, highest)


def fresh_columns(columns: Sequence[DataField]) -> tuple[DataField, ...]:
    """Return columns with Iceberg's ids, counted from 1.

    Example:
        >>> from ledger.model.schema import Schema
        >>> from ledger.model.types.sql import read_type
        >>> points = read_type("ARRAY<ROW<x INT>>")
        >>> made = Schema.of({"id": "INT", "points": points, "note": "STRING"})
        >>> [(each.id, *walk_ids(each.type)) for each in fresh_columns(made.fields)]
        [(1,), (2, 4, 5), (3,)]
    """
    return _fresh_members(columns, FIRST_ICEBERG_ID - 1)[0]


def carries_iceberg_ids(columns: Iterable[DataField]) -> bool:
    """Return whether everything has an id that Iceberg could have given: none missing, none 0.

    Example:
        >>> from ledger.model.schema import Schema
        >>> carries_iceberg_ids(Schema.of({"id": "INT"}).fields)
        False
    """
    ids = [found for each in columns for found in (each.id, *_all_ids(each.type))]
    return all(each is not None and each >= FIRST_ICEBERG_ID for each in ids)


def without_member_ids(columns: Iterable[DataField]) -> tuple[DataField, ...]:
    """Return columns whose elements, keys and values have no ids, as Paimon counts."""
    return tuple(
        evolve(each, type=_without_member_ids(each.type)) if each.type.depth else each
        for each in columns
    )


def _fresh(data_type: DataType, highest: int) -> tuple[DataType, int]:
    match data_type:
        case RowType(fields=fields):
            members, highest = _fresh_members(fields, highest)
            return evolve(data_type, fields=members), highest
        case ArrayType(element=element):
            element_id = highest + 1
            element, highest = _fresh(element, element_id)
            return evolve(data_type, element=element, element_id=element_id), highest
        case MapType(key=key, value=value):
            key_id, value_id = highest + 1, highest + 2
            key, highest = _fresh(key, value_id)
            value, highest = _fresh(value, highest)
            made = evolve(data_type, key=key, value=value, key_id=key_id, value_id=value_id)
            return made, highest
        case MultisetType(element=element):
            element, highest = _fresh(element, highest)
            return evolve(data_type, element=element), highest
        case _:
            return data_type, highest


def _fresh_members(members: Sequence[DataField], highest: int) -> tuple[tuple[DataField, ...], int]:
    first, made = highest + 1, []
    highest += len(members)
    for field_id, member in enumerate(members, first):
        inner, highest = _fresh(member.type, highest)
        made.append(evolve(member, id=field_id, type=inner))
    return tuple(made), highest


def _all_ids(data_type: DataType) -> Iterator[int | None]:
    if isinstance(data_type, MultisetType):
        # Nobody but Paimon has them, and its elements have no ids.
        yield from walk_ids(data_type)
        return
    for each in parts_of(data_type):
        yield each.id
        yield from _all_ids(each.type)


def _without_member_ids(data_type: DataType) -> DataType:
    changed: dict[str, Any]
    match data_type:
        case RowType(fields=fields):
            changed = {"fields": without_member_ids(fields)}
        case ArrayType(element=element):
            changed = {"element": _without_member_ids(element), "element_id": None}
        case MultisetType(element=element):
            changed = {"element": _without_member_ids(element)}
        case MapType(key=key, value=value):
            changed = {
                "key": _without_member_ids(key),
                "value": _without_member_ids(value),
                "key_id": None,
                "value_id": None,
            }
        case _:
            return data_type
    return evolve(data_type, **changed)
