"""Deciding changes of columns: Paimon's rules, row by row."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import UNSET

from ledger.events.schema_changes import (
    DropColumn,
    RenameColumn,
    SetIdentifierFields,
    UpdateColumnComment,
    UpdateColumnDefaultValue,
    UpdateColumnPosition,
)
from ledger.events.schema_events import (
    ColumnCommentUpdated,
    ColumnDefaultValueUpdated,
    ColumnDropped,
    ColumnMoved,
    ColumnRenamed,
    IdentifierFieldsSet,
)
from ledger.evolution.columns import directives
from ledger.evolution.columns.anchor import Anchor
from ledger.evolution.columns.draft import Draft, named_place, struct_around
from ledger.evolution.columns.guards import (
    check_not_index_column,
    check_not_key,
    check_not_partition_key,
)
from ledger.evolution.options.deciding import option_event
from ledger.evolution.refusals import argument, runtime, state, unsupported
from ledger.evolution.tree.paths import dotted, member_named
from ledger.model.types import DataType
from ledger.model.types.defaults import default_value_fits


def decide_rename(draft: Draft, change: RenameColumn) -> Anchor:
    """Rename a column; id, type, comment and default stay.

    Raises:
        InvalidChangeError: Partition, BLOB and primary-key index columns keep their names.
        ColumnExistsError, ColumnNotFoundError: By name.
    """
    path = change.field_names
    check_not_partition_key(draft, path, "renamed")
    check_not_index_column(draft, path, "renamed")
    is_column = len(path) == 1 and path[0] in draft.working.names
    is_blob = is_column and directives.is_blob(draft.working.column(path).type)
    if is_blob and draft.rules.paimon:
        raise unsupported(f"column {path[0]} holds BLOBs, which are found by its name")
    place = named_place(draft, path)
    owners = [each for each in place.ids[:-1] if each is not None]
    draft.record(
        ColumnRenamed(
            field_names=path,
            new_name=change.new_name,
            field_id=place.owner.id,
            parent_id=owners[-1] if owners else UNSET,
        )
    )
    draft.renames.append(change)
    return Anchor(place.ids)


def decide_drop(draft: Draft, change: DropColumn) -> Anchor:
    """Drop a column, and with it what the options say about it as a BLOB, VECTOR or MAP.

    Raises:
        InvalidChangeError: It is part of a key, an index column, or the last of its struct.
        ColumnNotFoundError: There is none.
    """
    path = change.field_names
    check_not_key(draft, path)
    check_not_index_column(draft, path, "dropped")
    place = named_place(draft, path)
    if len(path) == 1 and path[0] in draft.working.primary_keys:
        raise state(f"column {path[0]} is in the primary key under its new name; it cannot go")
    siblings, _ = struct_around(draft, path)
    if len(siblings) == 1:
        raise argument(f"column {dotted(path)} is the last of its struct; drop the whole instead")
    draft.record(ColumnDropped(field_names=path, field_id=place.owner.id))
    if len(path) == 1 and draft.rules.paimon:
        options = draft.working.options
        for key, value in directives.unlisting(path[0], place.type, options):
            draft.record(option_event(key, value))
    return Anchor(place.ids)


def decide_comment(draft: Draft, change: UpdateColumnComment) -> Anchor:
    """Set or remove a column's comment.

    Raises:
        InvalidChangeError: The comment is a directive, which would re-type the column.
        ColumnNotFoundError: There is no such column.
    """
    path = change.field_names
    if draft.rules.paimon and directives.read_directive(change.new_comment) is not None:
        raise argument(f"column {dotted(path)} exists: a directive works on new columns only")
    place = named_place(draft, path)
    draft.record(
        ColumnCommentUpdated(
            field_names=path, new_comment=change.new_comment, field_id=place.owner.id
        )
    )
    return Anchor(place.ids)


def decide_default(draft: Draft, change: UpdateColumnDefaultValue) -> Anchor:
    """Set or remove a column's default.

    Raises:
        InvalidChangeError: RUNTIME: the text cannot be read as the column's type.
        ColumnNotFoundError: There is no such column.
    """
    path = change.field_names
    place = named_place(draft, path)
    check_default(path, change.new_default_value, place.type)
    draft.record(
        ColumnDefaultValueUpdated(
            field_names=path,
            new_default_value=change.new_default_value,
            field_id=place.owner.id,
        )
    )
    return Anchor(place.ids)


def check_default(path: Sequence[str], text: str | None, data_type: DataType) -> None:
    """Refuse a default that cannot be read as the column's type.

    Raises:
        InvalidChangeError: RUNTIME.
    """
    if text is not None and not default_value_fits(text, data_type):
        raise runtime(f"column {dotted(path)}: default {text!r} cannot be read as {data_type.root}")


def decide_position(draft: Draft, change: UpdateColumnPosition) -> Anchor:
    """Move a column within its struct.

    Raises:
        InvalidChangeError: The column or the reference is missing, or it stands there already.
    """
    move = change.move
    path = change.field_names or (move.field_name,)
    if path[-1] != move.field_name:
        raise argument(f"move.fieldName {move.field_name} must be the end of {dotted(path)}")
    siblings, parents = struct_around(draft, path)
    mover = member_named(siblings, move.field_name)
    if mover is None:
        raise argument(f"column {dotted(path)} to move was not found")
    reference = None
    if move.type in {"AFTER", "BEFORE"}:
        reference = member_named(siblings, move.reference_field_name or "")
        if reference is None:
            raise argument(f"column {move.reference_field_name} to move {move.type} was not found")
    stands = {"FIRST": siblings[0], "LAST": siblings[-1]}.get(move.type, reference)
    if stands is mover:
        raise unsupported(f"column {dotted(path)} cannot move {move.type} itself")
    draft.record(
        ColumnMoved(
            move=move,
            field_names=change.field_names,
            field_id=mover.id,
            reference_id=UNSET if reference is None else reference.id,
        )
    )
    return Anchor((*parents, mover.id), None if reference is None else reference.id)


def decide_identifier_fields(draft: Draft, change: SetIdentifierFields) -> Anchor:
    """Say which columns identify a row; whether they can is looked at when the batch is done.

    Raises:
        ColumnNotFoundError: There is no such column.
    """
    places = [named_place(draft, path) for path in change.field_names]
    field_ids = tuple(sorted({each.owner.id for each in places}))
    draft.record(IdentifierFieldsSet(field_names=change.field_names, field_ids=field_ids))
    return Anchor(tuple(each for place in places for each in place.ids))
