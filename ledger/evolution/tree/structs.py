"""Edits of one struct's members: the columns of a table, or the fields of a nested ROW."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from attrs import evolve
from msgspec import UNSET, UnsetType

from ledger.events.schema_changes import Move
from ledger.evolution.tree.paths import dotted, member_named, replaced
from ledger.model.errors import ColumnExistsError, ColumnNotFoundError, InvalidChangeError
from ledger.model.messages.similar import meant
from ledger.model.types import DataField

Members = tuple[DataField, ...]


def added(members: Members, new: DataField, move: Move | None, path: Sequence[str]) -> Members:
    """Return the members with a new one, last or where `move` says.

    Raises:
        ColumnExistsError: The name is taken.
        ColumnNotFoundError: The move's reference does not exist.
    """
    if member_named(members, new.name) is not None:
        raise ColumnExistsError(f"column {dotted(path)} exists already; choose another name")
    place = len(members) if move is None else _place(members, move)
    return (*members[:place], new, *members[place:])


def renamed(members: Members, path: Sequence[str], field_id: int, new_name: str) -> Members:
    """Return the members with one renamed in place.

    Raises:
        ColumnExistsError: The new name is taken.
        InvalidChangeError: The member is missing, or has another id.
    """
    if member_named(members, new_name) is not None:
        taken = dotted([*path[:-1], new_name])
        raise ColumnExistsError(f"column {taken} exists already; choose another name")
    return edited(
        members,
        path,
        field_id,
        lambda each: evolve(each, name=new_name),
    )


def dropped(members: Members, path: Sequence[str], field_id: int) -> Members:
    """Return the members without one.

    Raises:
        InvalidChangeError: The member is missing, has another id, or is the last one.
    """
    gone = own(members, path, field_id)
    if len(members) == 1:
        raise InvalidChangeError(f"{dotted(path)} is the last member of its ROW; it cannot go")
    return tuple(each for each in members if each is not gone)


def edited(
    members: Members, path: Sequence[str], field_id: int, edit: Callable[[DataField], DataField]
) -> Members:
    """Return the members with one edited.

    Raises:
        InvalidChangeError: The member is missing, or has another id.
    """
    return replaced(members, edit(own(members, path, field_id)))


def moved(members: Members, move: Move, field_id: int, reference_id: int | UnsetType) -> Members:
    """Return the members in another order.

    Raises:
        InvalidChangeError: The member or the reference is missing, has another id, or both are one.
    """
    mover = own(members, (move.field_name,), field_id)
    if reference_id is not UNSET and move.reference_field_name is not None:
        own(members, (move.reference_field_name,), reference_id)
    if move.type in {"AFTER", "BEFORE"} and move.reference_field_name == move.field_name:
        raise InvalidChangeError(f"{move.field_name} cannot move {move.type} itself")
    rest = tuple(each for each in members if each is not mover)
    place = _place(rest, move)
    return (*rest[:place], mover, *rest[place:])


def own(members: Members, path: Sequence[str], field_id: int) -> DataField:
    """Return the member that a path's last segment names, if it has that id.

    Raises:
        ColumnNotFoundError: There is none of that name.
        InvalidChangeError: It has another id.
    """
    member = member_named(members, path[-1])
    if member is None:
        names = [each.name for each in members]
        hint = meant(path[-1], names)
        raise ColumnNotFoundError(f"column {dotted(path)} does not exist; {hint}")
    if member.id != field_id:
        raise InvalidChangeError(
            f"column {dotted(path)} has id {member.id}, but the event says {field_id}"
        )
    return member


def _place(members: Members, move: Move) -> int:
    match move.type:
        case "FIRST":
            return 0
        case "LAST":
            return len(members)
        case "AFTER":
            return _index(members, move) + 1
        case "BEFORE":
            return _index(members, move)


def _index(members: Members, move: Move) -> int:
    for index, each in enumerate(members):
        if each.name == move.reference_field_name:
            return index
    raise ColumnNotFoundError(
        f"column {move.reference_field_name} does not exist; {move.field_name} cannot go "
        f"{move.type} it"
    )
