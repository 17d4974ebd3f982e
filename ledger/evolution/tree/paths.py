"""Column paths: where `["v", "element", "value", "f1"]` leads, and how to change what is there.

One segment a ROW level and one a wrapper: `element` for an ARRAY, `value` for a MAP. Map keys,
multisets and vectors are never descended into.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from attrs import evolve
from msgspec import Struct

from ledger.model.errors import ColumnNotFoundError, InvalidChangeError
from ledger.model.types import ArrayType, DataField, DataType, MapType, RowType


def dotted(path: Iterable[str]) -> str:
    """Return a path as people read it: `v.element.f1`."""
    return ".".join(path)


class Located(Struct, frozen=True):
    """What a path leads to.

    Attributes:
        ids: One id a segment; None for a wrapper segment, which has no id of its own.
        type: The type that stands there.
        owner: The named field at the place, or the nearest one around it.
        is_wrapped: The path ends inside a wrapper, so `owner` is not what it names.
    """

    ids: tuple[int | None, ...]
    type: DataType
    owner: DataField
    is_wrapped: bool


def locate(column: DataField, path: Sequence[str]) -> Located:
    """Return the place that `path` leads to; its first segment has already found `column`.

    Raises:
        ColumnNotFoundError: A segment names no member; the message ends at that segment.
        InvalidChangeError: A wrapper's segment is not `element` or `value`.
    """
    ids: list[int | None] = [column.id]
    owner, current, is_wrapped = column, column.type, False
    for depth in range(1, len(path)):
        member = _step(current, path, depth)
        is_wrapped = not isinstance(member, DataField)
        if isinstance(member, DataField):
            owner, current = member, member.type
            ids.append(member.id)
        else:
            current = member
            ids.append(None)
    return Located(tuple(ids), current, owner, is_wrapped)


def edit_type(
    data_type: DataType,
    path: Sequence[str],
    edit: Callable[[DataType], DataType],
    depth: int = 1,
) -> DataType:
    """Return `data_type` with what `path[depth:]` leads to replaced by `edit` of it.

    Only the types on the way are built anew.

    Raises:
        ColumnNotFoundError, InvalidChangeError: As `locate`.
    """
    if depth == len(path):
        return edit(data_type)
    member = _step(data_type, path, depth)
    inner = member.type if isinstance(member, DataField) else member
    edited = edit_type(inner, path, edit, depth + 1)
    match data_type:
        case RowType(fields=fields) if isinstance(member, DataField):
            renewed = with_type(member, edited)
            return RowType(replaced(fields, renewed), nullable=data_type.nullable)
        case MapType():
            return evolve(data_type, value=edited)
        case ArrayType():
            return evolve(data_type, element=edited)
        case _:
            return ArrayType(edited, nullable=data_type.nullable)


def with_type(member: DataField, data_type: DataType) -> DataField:
    """Return the same field with another type."""
    return evolve(member, type=data_type)


def replaced(fields: Sequence[DataField], renewed: DataField) -> tuple[DataField, ...]:
    """Return `fields` with the one that has the id of `renewed` replaced by it."""
    return tuple(renewed if each.id == renewed.id else each for each in fields)


def member_named(fields: Sequence[DataField], name: str) -> DataField | None:
    """Return the member of that name, or None."""
    return next((each for each in fields if each.name == name), None)


def _step(data_type: DataType, path: Sequence[str], depth: int) -> DataField | DataType:
    segment = path[depth]
    match data_type:
        case RowType(fields=fields):
            member = member_named(fields, segment)
            if member is not None:
                return member
        case ArrayType(element=element):
            _check_wrapper(path, depth, "element", "an ARRAY")
            return element
        case MapType(value=value):
            _check_wrapper(path, depth, "value", "a MAP")
            return value
        case _:
            pass
    raise ColumnNotFoundError(
        f"column {dotted(path[: depth + 1])} does not exist; "
        f"{dotted(path[:depth])} is {_described(data_type)}"
    )


def _check_wrapper(path: Sequence[str], depth: int, expected: str, kind: str) -> None:
    if path[depth] != expected:
        raise InvalidChangeError(
            f"{dotted(path[: depth + 1])}: below {kind} only {expected!r} can be addressed "
            f"(map keys never change); write {dotted([*path[:depth], expected])}"
        )


def _described(data_type: DataType) -> str:
    if isinstance(data_type, RowType):
        return f"a ROW of {[each.name for each in data_type.fields]}"
    return f"of type {data_type.root}, which has no members to address"
