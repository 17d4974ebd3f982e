"""What facts about nested columns do to the top-level column that holds them.

Only the types on the way to the nested column are built anew.
"""

from __future__ import annotations

from collections.abc import Callable

from attrs import evolve
from msgspec import UNSET

from ledger.events.schema_events import (
    ColumnAdded,
    ColumnCommentUpdated,
    ColumnDefaultValueUpdated,
    ColumnDropped,
    ColumnMoved,
    ColumnRenamed,
    ColumnUndropped,
)
from ledger.evolution.tree import structs as struct_edits
from ledger.evolution.tree.paths import dotted, edit_type, locate, with_type
from ledger.evolution.tree.store import other_id
from ledger.evolution.tree.structs import Members
from ledger.model.errors import InvalidChangeError
from ledger.model.types import DataField, DataType, RowType


def add(column: DataField, event: ColumnAdded | ColumnUndropped, new: DataField) -> DataField:
    """Return the column with a new member inside.

    Raises:
        InvalidChangeError: The parent is missing, is no ROW, has another id, or has the name.
    """
    path = event.field_names
    owner = locate(column, path[:-1]).owner
    if event.parent_id is not UNSET and owner.id != event.parent_id:
        raise other_id(path[:-1], event.parent_id, owner.id)
    return _in_struct(
        column, path, lambda members: struct_edits.added(members, new, event.move, path)
    )


def rename(column: DataField, event: ColumnRenamed) -> DataField:
    """Return the column with a member renamed.

    Raises:
        InvalidChangeError: The member is missing, has another id, or the new name is taken.
    """
    path = event.field_names
    return _in_struct(
        column,
        path,
        lambda members: struct_edits.renamed(members, path, event.field_id, event.new_name),
    )


def drop(column: DataField, event: ColumnDropped) -> DataField:
    """Return the column without a member.

    Raises:
        InvalidChangeError: The member is missing, has another id, or is the last one.
    """
    path = event.field_names
    return _in_struct(
        column, path, lambda members: struct_edits.dropped(members, path, event.field_id)
    )


def move(column: DataField, event: ColumnMoved) -> DataField:
    """Return the column with a member elsewhere among its siblings.

    Raises:
        InvalidChangeError: The member or the reference is missing, or has another id.
    """
    return _in_struct(
        column,
        event.field_names,
        lambda members: struct_edits.moved(members, event.move, event.field_id, event.reference_id),
    )


def comment(column: DataField, event: ColumnCommentUpdated) -> DataField:
    """Return the column with a member's comment set.

    Raises:
        InvalidChangeError: The member is missing or has another id.
    """

    def commented(member: DataField) -> DataField:
        return evolve(member, description=event.new_comment)

    return _in_member(column, event, commented)


def default(column: DataField, event: ColumnDefaultValueUpdated) -> DataField:
    """Return the column with a member's default set.

    Raises:
        InvalidChangeError: The member is missing or has another id.
    """

    def defaulted(member: DataField) -> DataField:
        return evolve(member, default_value=event.new_default_value)

    return _in_member(column, event, defaulted)


def edit_place(
    column: DataField,
    path: tuple[str, ...],
    field_id: int,
    edit: Callable[[DataType], DataType],
) -> DataField:
    """Return the column with the type at a path edited; the path may end inside a wrapper.

    Raises:
        InvalidChangeError: The place is missing, or the named field around it has another id.
    """
    owner = locate(column, path).owner
    if owner.id != field_id:
        raise other_id(path, field_id, owner.id)
    return with_type(column, edit_type(column.type, path, edit))


def _in_member(
    column: DataField,
    event: ColumnCommentUpdated | ColumnDefaultValueUpdated,
    edit: Callable[[DataField], DataField],
) -> DataField:
    path = event.field_names
    return _in_struct(
        column, path, lambda members: struct_edits.edited(members, path, event.field_id, edit)
    )


def _in_struct(
    column: DataField, path: tuple[str, ...], edit: Callable[[Members], Members]
) -> DataField:
    """Edit the members of the ROW that holds the last segment of a path."""
    parent = path[:-1]

    def edit_row(data_type: DataType) -> DataType:
        if not isinstance(data_type, RowType):
            raise InvalidChangeError(
                f"{dotted(path)}: {dotted(parent)} is of type {data_type.root}, not a ROW"
            )
        return RowType(edit(data_type.fields), nullable=data_type.nullable)

    return with_type(column, edit_type(column.type, parent, edit_row))
