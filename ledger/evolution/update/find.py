"""What a call of a schema update is about, and the refusal of what it cannot be about."""

from __future__ import annotations

from ledger.evolution.refusals import argument
from ledger.evolution.tree.paths import dotted
from ledger.evolution.update.names import Path, Spot
from ledger.evolution.update.pending import Addition, Pending, Target
from ledger.model.errors import ColumnNotFoundError
from ledger.model.messages.excerpt import excerpt
from ledger.model.messages.similar import meant
from ledger.model.types import ArrayType, MapType, RowType

Name = str | tuple[str, ...]
"""A column: `address.zip`, or `("address", "zip")`."""


def parts(name: Name) -> Path:
    """Return a name's parts; a text is one part, dots or not.

    Raises:
        InvalidChangeError: It names nothing.
    """
    given = (name,) if isinstance(name, str) else name
    if not _are_names(given):
        raise argument(
            f"{excerpt(name)} names no column; give a text such as 'price', or a tuple of such"
        )
    return tuple(given)


def _are_names(given: object) -> bool:
    if not isinstance(given, tuple | list) or not given:
        return False
    return all(isinstance(each, str) and each for each in given)


def text(name: Name) -> str:
    """Return a name as it is looked up, dotted."""
    return dotted(parts(name))


def found(pending: Pending, name: Name) -> Spot:
    """Return what a name stands for in the schema before.

    Raises:
        ColumnNotFoundError: There is nothing of that name.
    """
    spot = pending.find(text(name))
    if spot is None:
        raise ColumnNotFoundError(
            f"column {text(name)} does not exist; {meant(text(name), pending.schema.names)}"
        )
    return spot


def column_of(pending: Pending, name: Name, verb: str) -> Spot:
    """Return a column of the schema before, or a member of one of its structs.

    Raises:
        ColumnNotFoundError: There is nothing of that name.
        InvalidChangeError: It is an element, a key or a value, or stands in a map's key.
    """
    spot = found(pending, name)
    if spot.in_key or spot.part != "column":
        what = "in a map's key" if spot.in_key else f"a {spot.part}, no column"
        raise argument(f"{spot} is {what}; it cannot be {verb}")
    return spot


def target_of(pending: Pending, name: Name) -> Spot | Addition:
    """Return what an update is about: something of the schema before, or else a new column.

    Raises:
        ColumnNotFoundError: There is nothing of that name.
        InvalidChangeError: It will be deleted, or stands in a map's key.
    """
    added = pending.addition(text(name))
    if added is not None and pending.find(text(name)) is None:
        return added
    spot = found(pending, name)
    refuse_deleted(pending, spot)
    if spot.in_key:
        raise argument(f"{spot} is in a map's key, which never changes")
    return spot


def movable(pending: Pending, name: Name) -> tuple[Target, Path]:
    """Return a column that can move, and the struct that it is in; a new one comes first.

    Raises:
        ColumnNotFoundError: There is nothing of that name.
        InvalidChangeError: It will be deleted, or is no member of a struct.
    """
    added = pending.addition(text(name))
    if added is not None:
        return added, added.parent
    spot = column_of(pending, name, "moved")
    refuse_deleted(pending, spot)
    return spot.path, spot.path[:-1]


def struct_of(pending: Pending, name: Name, member: str) -> Path:
    """Return the full path of the struct that a new member goes into.

    Raises:
        ColumnNotFoundError: There is nothing of that name.
        InvalidChangeError: It is no struct, will be deleted, or stands in a map's key.
    """
    spot = found(pending, name)
    if spot.in_key:
        raise argument(f"{spot} is in a map's key, which never changes; {member} cannot go in")
    path, data_type = spot.path, spot.type
    match data_type:
        case ArrayType(element=inner):
            path, data_type = (*path, "element"), inner
        case MapType(value=inner):
            path, data_type = (*path, "value"), inner
        case _:
            pass
    if not isinstance(data_type, RowType):
        raise argument(f"{dotted(path)} is {data_type.root}, no struct; {member} cannot go in")
    refuse_deleted(pending, spot)
    return path


def refuse_deleted(pending: Pending, spot: Spot) -> None:
    """Refuse to go on about a column that goes, or stands in one that does.

    Raises:
        InvalidChangeError: It does.
    """
    if pending.is_deleted(spot.path):
        raise argument(f"column {spot} will be deleted by this update")
