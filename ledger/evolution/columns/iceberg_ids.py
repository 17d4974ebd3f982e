"""Field ids inside new types: Paimon's order or Iceberg's, whichever counts the table's ids.

Source: the Iceberg reference implementation, which numbers one struct's members one after the
other before it looks into any of them. Neither pre-order nor breadth-first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from attrs import evolve

from ledger.model.schema import FieldIdPolicy
from ledger.model.types import DataField, DataType, MultisetType
from ledger.model.types.walk import assign_field_ids, parts_of, walk_ids, with_parts

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
    highest = FIRST_ICEBERG_ID - 1 + len(columns)
    made = []
    for field_id, column in enumerate(columns, FIRST_ICEBERG_ID):
        inner, highest = _fresh(column.type, highest)
        made.append(evolve(column, id=field_id, type=inner))
    return tuple(made)


def carries_iceberg_ids(columns: Iterable[DataField]) -> bool:
    """Return whether everything has an id that Iceberg could have given: none missing, none 0.

    Example:
        >>> from ledger.model.schema import Schema
        >>> carries_iceberg_ids(Schema.of({"id": "INT"}).fields)
        False
    """
    ids = [found for each in columns for found in (each.id, *_all_ids(each.type))]
    return all(each is not None and each >= FIRST_ICEBERG_ID for each in ids)


def carries_member_ids(data_type: DataType) -> bool:
    """Return whether an element, key or value inside a type has an id.

    Example:
        >>> from ledger.model.types.sql import read_type
        >>> kind = read_type("ARRAY<INT>")
        >>> carries_member_ids(kind), carries_member_ids(numbered(kind, 1, "iceberg")[0])
        (False, True)
    """
    return any(
        (each.field is None and each.id is not None) or carries_member_ids(each.type)
        for each in parts_of(data_type)
    )


def without_member_ids(columns: Iterable[DataField]) -> tuple[DataField, ...]:
    """Return columns whose elements, keys and values have no ids, as Paimon counts."""
    return tuple(
        evolve(each, type=_without_member_ids(each.type)) if each.type.depth else each
        for each in columns
    )


def _fresh(data_type: DataType, highest: int) -> tuple[DataType, int]:
    # Nobody but Paimon has multisets, and their elements have no ids.
    counted = not isinstance(data_type, MultisetType)
    parts, first = parts_of(data_type), highest + 1
    highest += len(parts) if counted else 0
    made = []
    for number, part in enumerate(parts, first):
        inner, highest = _fresh(part.type, highest)
        made.append(part._replace(type=inner, id=number if counted else None))
    return with_parts(data_type, made), highest


def _all_ids(data_type: DataType) -> Iterator[int | None]:
    if isinstance(data_type, MultisetType):
        yield from walk_ids(data_type)
        return
    for each in parts_of(data_type):
        yield each.id
        yield from _all_ids(each.type)


def _without_member_ids(data_type: DataType) -> DataType:
    return with_parts(
        data_type,
        [
            each._replace(type=_without_member_ids(each.type), id=each.id if each.field else None)
            for each in parts_of(data_type)
        ],
    )
