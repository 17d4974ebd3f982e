"""Decisions on changes of existing columns, by Paimon's rules."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import UNSET

from ledger.decide.column_draft import (
    ChangeAnchor,
    SchemaDraft,
    carries_member_ids,
    enclosing_struct,
    is_blob,
    locate_named_column,
    read_directive,
    unlisting_option_edits,
)
from ledger.decide.errors import argument_error, runtime_error, state_error, unsupported_error
from ledger.decide.option_changes import option_event
from ledger.decide.table_options import INDEX_COLUMN_OPTIONS
from ledger.events.schema import (
    ColumnCommentUpdated,
    ColumnDefaultValueUpdated,
    ColumnDropped,
    ColumnMoved,
    ColumnNullabilityUpdated,
    ColumnRenamed,
    ColumnTypeUpdated,
    DropColumn,
    IdentifierFieldsSet,
    RenameColumn,
    SetIdentifierFields,
    UpdateColumnComment,
    UpdateColumnDefaultValue,
    UpdateColumnNullability,
    UpdateColumnPosition,
    UpdateColumnType,
)
from ledger.model.types import ArrayType, DataType, MapType
from ledger.model.types.casts import can_alter, can_promote, default_value_fits
from ledger.model.types.text import format_type
from ledger.model.types.wire import type_from_wire, type_to_wire
from ledger.state.columns import dotted, edit_type, resolve_path, with_type


def check_not_partition_key(draft: SchemaDraft, path: tuple[str, ...], verb: str) -> None:
    """Reject a change of a partition column.

    Raises:
        InvalidChangeError: UNSUPPORTED.
    """
    if len(path) == 1 and path[0] in draft.old.partition_keys:
        raise unsupported_error(
            f"partition column {path[0]} cannot be {verb}: partition keys are a table's for good; "
            "create another table with the keys that you want, and write the rows there"
        )


def check_not_primary_key(draft: SchemaDraft, path: tuple[str, ...], verb: str) -> None:
    """Reject a change of a primary-key column, under its old name or one given in this batch.

    Raises:
        InvalidChangeError: UNSUPPORTED.
    """
    if len(path) == 1 and path[0] in draft.old.primary_keys:
        raise unsupported_error(f"primary-key column {path[0]} cannot be {verb}")


def check_not_key(draft: SchemaDraft, path: tuple[str, ...]) -> None:
    """Reject the drop of a partition or primary-key column.

    Raises:
        InvalidChangeError: UNSUPPORTED.
    """
    check_not_partition_key(draft, path, "dropped")
    check_not_primary_key(draft, path, "dropped")


def check_not_index_column(draft: SchemaDraft, path: tuple[str, ...], verb: str) -> None:
    """Reject a change of a column that one of Paimon's primary-key indexes is built on.

    Raises:
        InvalidChangeError: UNSUPPORTED.
    """
    if len(path) != 1 or not draft.rules.paimon:
        return
    given = draft.old_options
    for option in INDEX_COLUMN_OPTIONS:
        if option in given.values and path[0] in given.names(option):
            raise unsupported_error(f"column {path[0]} is listed in {option}; it cannot be {verb}")


def decide_rename_column(draft: SchemaDraft, change: RenameColumn) -> ChangeAnchor:
    """Rename a column; id, type, comment and default stay.

    Raises:
        InvalidChangeError: Partition, BLOB and primary-key index columns keep their names.
        ColumnExistsError, ColumnNotFoundError: By name.
    """
    path = change.field_names
    check_not_partition_key(draft, path, "renamed")
    check_not_index_column(draft, path, "renamed")
    is_column = len(path) == 1 and path[0] in draft.working.names
    holds_blob = is_column and is_blob(draft.working.column(path).type)
    if holds_blob and draft.rules.paimon:
        raise unsupported_error(f"column {path[0]} holds BLOBs, which are found by its name")
    place = locate_named_column(draft, path)
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
    return ChangeAnchor(place.ids)


def decide_drop_column(draft: SchemaDraft, change: DropColumn) -> ChangeAnchor:
    """Drop a column, and remove a BLOB, VECTOR or MAP from the options that list it.

    Raises:
        InvalidChangeError: It is part of a key, an index column, or the last of its struct.
        ColumnNotFoundError: There is none.
    """
    path = change.field_names
    check_not_key(draft, path)
    check_not_index_column(draft, path, "dropped")
    place = locate_named_column(draft, path)
    if len(path) == 1 and path[0] in draft.working.primary_keys:
        raise state_error(
            f"column {path[0]} is in the primary key under its new name; cannot drop it"
        )
    siblings, _ = enclosing_struct(draft, path)
    if len(siblings) == 1:
        raise argument_error(
            f"column {dotted(path)} is the last of its struct; drop the whole instead"
        )
    draft.record(ColumnDropped(field_names=path, field_id=place.owner.id))
    if len(path) == 1 and draft.rules.paimon:
        options = draft.working.options
        for key, value in unlisting_option_edits(path[0], place.type, options):
            draft.record(option_event(key, value))
    return ChangeAnchor(place.ids)


def decide_column_comment(draft: SchemaDraft, change: UpdateColumnComment) -> ChangeAnchor:
    """Set or remove a column's comment.

    Raises:
        InvalidChangeError: The comment is a directive, which would re-type the column.
        ColumnNotFoundError: There is no such column.
    """
    path = change.field_names
    if draft.rules.paimon and read_directive(change.new_comment) is not None:
        raise argument_error(f"column {dotted(path)} exists: a directive works on new columns only")
    place = locate_named_column(draft, path)
    draft.record(
        ColumnCommentUpdated(
            field_names=path, new_comment=change.new_comment, field_id=place.owner.id
        )
    )
    return ChangeAnchor(place.ids)


def decide_column_default(draft: SchemaDraft, change: UpdateColumnDefaultValue) -> ChangeAnchor:
    """Set or remove a column's default.

    Raises:
        InvalidChangeError: RUNTIME: the text cannot be parsed as the column's type.
        ColumnNotFoundError: There is no such column.
    """
    path = change.field_names
    place = locate_named_column(draft, path)
    check_column_default(path, change.new_default_value, place.type)
    draft.record(
        ColumnDefaultValueUpdated(
            field_names=path,
            new_default_value=change.new_default_value,
            field_id=place.owner.id,
        )
    )
    return ChangeAnchor(place.ids)


def check_column_default(path: Sequence[str], text: str | None, data_type: DataType) -> None:
    """Reject a default that cannot be parsed as the column's type.

    Raises:
        InvalidChangeError: RUNTIME.
    """
    if text is not None and not default_value_fits(text, data_type):
        raise runtime_error(
            f"column {dotted(path)}: default {text!r} cannot be read as {data_type.root}"
        )


def decide_column_position(draft: SchemaDraft, change: UpdateColumnPosition) -> ChangeAnchor:
    """Move a column within its struct.

    Raises:
        InvalidChangeError: The column or the reference is missing, or it is there already.
    """
    move = change.move
    path = change.field_names or (move.field_name,)
    if path[-1] != move.field_name:
        raise argument_error(f"move.fieldName {move.field_name} must be the end of {dotted(path)}")
    siblings, parents = enclosing_struct(draft, path)
    mover = siblings.named(move.field_name)
    if mover is None:
        raise argument_error(f"column {dotted(path)} to move was not found")
    reference = None
    if move.type in {"AFTER", "BEFORE"}:
        reference = siblings.named(move.reference_field_name or "")
        if reference is None:
            raise argument_error(
                f"column {move.reference_field_name} to move {move.type} was not found"
            )
    neighbour = {"FIRST": siblings.first, "LAST": siblings.last}.get(move.type, reference)
    if neighbour is mover:
        raise unsupported_error(f"column {dotted(path)} cannot move {move.type} itself")
    draft.record(
        ColumnMoved(
            move=move,
            field_names=change.field_names,
            field_id=mover.id,
            reference_id=UNSET if reference is None else reference.id,
        )
    )
    return ChangeAnchor((*parents, mover.id), None if reference is None else reference.id)


def decide_identifier_fields(draft: SchemaDraft, change: SetIdentifierFields) -> ChangeAnchor:
    """Set the identifier fields; they are validated when the batch is done.

    Raises:
        ColumnNotFoundError: There is no such column.
    """
    places = [locate_named_column(draft, path) for path in change.field_names]
    field_ids = tuple(sorted({each.owner.id for each in places}))
    draft.record(IdentifierFieldsSet(field_names=change.field_names, field_ids=field_ids))
    return ChangeAnchor(tuple(each for place in places for each in place.ids))


def decide_column_type(draft: SchemaDraft, change: UpdateColumnType) -> ChangeAnchor:
    """Change a type along Paimon's cast tables, or Iceberg's promotions; the id stays.

    Raises:
        InvalidChangeError: Under Paimon keys, index columns and BLOBs keep their types; the cast
            is not allowed or has no implementation; the default cannot be parsed as the new type.
        ColumnNotFoundError: There is no such column.
    """
    path = change.field_names
    target = type_from_wire(change.new_data_type)
    if draft.rules.paimon:
        _check_paimon_can_retype(draft, path, target)
    column = draft.working.column(path)
    place = resolve_path(column, path)
    if draft.rules.paimon and len(path) == 1 and path[0] in draft.working.primary_keys:
        raise unsupported_error(f"primary-key column {path[0]} cannot be re-typed, renamed or not")
    if change.keep_nullability:
        target = target.with_nullability(place.type.nullable)
    else:
        _check_nullability(draft, path, place.type, is_nullable=target.nullable)
    _check_cast(draft, path, place.type, target)
    retyped = with_type(column, edit_type(column.type, path, lambda _: target))
    check_column_default(path, place.owner.default_value, resolve_path(retyped, path).owner.type)
    for inner, wanted in _retyped_places(draft, path, place.type, target):
        draft.record(
            ColumnTypeUpdated(
                field_names=inner,
                new_data_type=type_to_wire(wanted),
                keep_nullability=change.keep_nullability,
                field_id=place.owner.id,
            )
        )
    return ChangeAnchor(place.ids)


def _retyped_places(
    draft: SchemaDraft, path: tuple[str, ...], source: DataType, target: DataType
) -> list[tuple[tuple[str, ...], DataType]]:
    """Return the places that get another type: where types carry ids, those without members.

    A list or map recorded whole would get other ids than before, so only its members are.
    """
    if not target.depth:
        return [(path, target)]
    if draft.working.field_id_policy == "paimon" and not carries_member_ids(source):
        return [(path, target)]
    if source.nullable != target.nullable:
        raise argument_error(
            f"column {dotted(path)} is {source.root}: change whether it may be NULL on its own"
        )
    match source, target:
        case ArrayType(element=before), ArrayType(element=after):
            return _retyped_places(draft, (*path, "element"), before, after)
        case MapType(key=key, value=before), MapType(key=same, value=after) if key == same:
            return _retyped_places(draft, (*path, "value"), before, after)
        case _:
            raise argument_error(
                f"column {dotted(path)} is {source.root}: change its members one by one, "
                "so that they keep their ids"
            )


def _check_paimon_can_retype(draft: SchemaDraft, path: tuple[str, ...], target: DataType) -> None:
    check_not_partition_key(draft, path, "re-typed")
    check_not_primary_key(draft, path, "re-typed")
    check_not_index_column(draft, path, "re-typed")
    if len(path) != 1 or path[0] not in draft.working.names:
        return
    source = draft.working.column(path).type
    if is_blob(source) or is_blob(target):
        raise unsupported_error(f"column {path[0]}: no type becomes a BLOB, or stops being one")


def _check_cast(
    draft: SchemaDraft, path: tuple[str, ...], source: DataType, target: DataType
) -> None:
    if not draft.rules.paimon:
        version = draft.rules.format_version
        if draft.rules.only_promotes and not can_promote(source, target, format_version=version):
            raise state_error(
                f"column {dotted(path)}: {_type_text(source)} cannot become {_type_text(target)}; "
                f"Iceberg {version} reads old files through the new type and casts nothing"
            )
        return
    explicit_allowed = not draft.old_options.is_true("disable-explicit-type-casting")
    if can_alter(source, target, explicit_allowed=explicit_allowed):
        return
    if source.with_nullability(nullable=target.nullable) == target:
        raise state_error(
            f"column {dotted(path)} is {_type_text(source)} already, and Paimon converts no "
            f"{source.root} to itself; leave this change out, and change by itself whether it may "
            "be NULL"
        )
    if source.depth and source.root == target.root:
        raise state_error(
            f"column {dotted(path)}: a {source.root} is not converted as a whole; change what is "
            "inside it by its path"
        )
    raise state_error(
        f"column {dotted(path)}: {_type_text(source)} cannot be converted to "
        f"{_type_text(target)} without losing information"
    )


def _type_text(data_type: DataType) -> str:
    return data_type.root if data_type.depth else format_type(data_type)


def decide_column_nullability(draft: SchemaDraft, change: UpdateColumnNullability) -> ChangeAnchor:
    """Allow NULL in a column, or forbid it where the table's flag or the request lets that happen.

    Raises:
        InvalidChangeError: UNSUPPORTED: a primary-key column, or older rows may hold NULL.
        ColumnNotFoundError: There is no such column.
    """
    path = change.field_names
    if change.new_nullability:
        check_not_primary_key(draft, path, "made nullable")
    place = resolve_path(draft.working.column(path), path)
    _check_nullability(draft, path, place.type, is_nullable=change.new_nullability)
    draft.record(
        ColumnNullabilityUpdated(
            field_names=path, new_nullability=change.new_nullability, field_id=place.owner.id
        )
    )
    return ChangeAnchor(place.ids)


def _check_nullability(
    draft: SchemaDraft, path: tuple[str, ...], source: DataType, *, is_nullable: bool
) -> None:
    if is_nullable or not source.nullable:
        return
    if not draft.rules.paimon:
        if not draft.rules.allow_incompatible:
            raise unsupported_error(
                f"column {dotted(path)} may hold NULL already; call "
                "update_schema().allow_incompatible_changes() to make it NOT NULL"
            )
        return
    option = "alter-column-null-to-not-null.disabled"
    if draft.old_options.is_true(option, default=True):
        raise unsupported_error(
            f"column {dotted(path)} may hold NULL already; set {option}=false to make it NOT NULL"
        )
