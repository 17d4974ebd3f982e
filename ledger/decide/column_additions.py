"""Decisions on new columns and restored columns: position, type, field ids."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet

from msgspec import UNSET

from ledger.decide.bounds import next_column_id
from ledger.decide.column_draft import (
    LISTS,
    ChangeAnchor,
    OptionEdit,
    SchemaDraft,
    assign_type_ids,
    directive_type,
    enclosing_struct,
    is_blob,
    listing_option_edits,
    read_directive,
    unlisting_option_edits,
)
from ledger.decide.column_edits import check_column_default
from ledger.decide.errors import argument_error, unsupported_error
from ledger.decide.option_changes import option_event
from ledger.decide.table_options import ColumnNames, comma_list
from ledger.events.schema import AddColumn, ColumnAdded, ColumnUndropped, Move, UndropColumn
from ledger.model.errors import ColumnExistsError, ColumnNotFoundError, FormatError
from ledger.model.messages import excerpt
from ledger.model.types import DataField, DataType, type_places, walk_fields, walk_ids
from ledger.model.types.wire import type_from_wire, type_to_wire
from ledger.state.columns import Level, PastColumn, Path, dotted
from ledger.state.struct_members import StructMembers

MOST_SKIPPED_IDS = 10_000
"""Limit of how far a requested id may be ahead, so that no writer uses up a table's ids."""


def decide_add_column(draft: SchemaDraft, change: AddColumn) -> ChangeAnchor:
    """Add a column or a member of a ROW, at the position that the change or options give.

    Raises:
        InvalidChangeError: It is NOT NULL and older rows have no value for it, its default cannot
            be parsed, or its parent is of a type without members.
        FormatError: It has a default in a table that Paimon can read.
        ColumnExistsError: The name is taken in that struct.
        ColumnNotFoundError: A parent, or the move's reference, does not exist.
    """
    path = change.field_names
    wanted, comment, edits = apply_comment_directive(draft, change)
    _check_older_rows_readable(draft, change, wanted)
    siblings, parents = enclosing_struct(draft, path)
    name = path[-1]
    if siblings.has_name(name):
        raise ColumnExistsError(f"column {dotted(path)} exists already; choose another name")
    move = change.move or _default_position(draft, path, siblings)
    reference = _reference_column_id(move, siblings)
    field_id, typed = _assign_column_ids(draft, change, wanted)
    owners = [each for each in parents if each is not None]
    for key, value in edits:
        draft.record(option_event(key, value))
    draft.record(
        ColumnAdded(
            field_names=path,
            data_type=type_to_wire(typed),
            comment=comment,
            move=move,
            default_value=change.default_value,
            field_id=field_id,
            parent_id=owners[-1] if owners else UNSET,
        )
    )
    assigned = tuple(each.id for each in walk_fields([DataField(field_id, name, typed)]))
    return ChangeAnchor((*parents, None), reference, assigned=assigned)


def _assign_column_ids(
    draft: SchemaDraft, change: AddColumn, wanted: DataType
) -> tuple[int, DataType]:
    """Return the new column's id, and its type with ids: the requested ones if all are new."""
    highest, policy = draft.working.highest_field_id, draft.working.field_id_policy
    if change.field_id is not None:
        asked = [change.field_id, *walk_ids(wanted)]
        room = range(highest + 1, highest + MOST_SKIPPED_IDS + 1)
        fresh, _ = assign_type_ids(wanted, change.field_id, policy)
        is_numbered = len(list(walk_ids(fresh))) == len(asked) - 1
        if is_numbered and len(set(asked)) == len(asked) and all(each in room for each in asked):
            return change.field_id, wanted
    field_id = next_column_id(highest, policy, change.field_names)
    return field_id, assign_type_ids(wanted, field_id, policy)[0]


def _check_older_rows_readable(draft: SchemaDraft, change: AddColumn, wanted: DataType) -> None:
    name = dotted(change.field_names)
    if change.default_value is not None:
        if draft.rules.paimon:
            raise unreadable_default_error(name)
        check_column_default(change.field_names, change.default_value, wanted)
    if wanted.nullable:
        return
    if draft.rules.paimon:
        raise argument_error(
            f"column {name} cannot be added as NOT NULL: older rows have no value for it"
        )
    if change.default_value is None and not draft.rules.allow_incompatible:
        raise argument_error(
            f"column {name} cannot be added as NOT NULL: older rows have no value for it; give it "
            "a default, or call update_schema().allow_incompatible_changes()"
        )


def unreadable_default_error(name: str) -> FormatError:
    """Return the error for a column that older files would have to read as a default."""
    rule = "a column that a file does not have reads as NULL, whatever its default"
    alternative = (
        "add it without a default and set the default for new rows afterwards, or take paimon out "
        "of ledger.formats first"
    )
    return FormatError(
        f"column {name} cannot be added with a default: in Paimon {rule}; {alternative}",
        "paimon",
        rule,
        alternative,
    )


def apply_comment_directive(
    draft: SchemaDraft, change: AddColumn
) -> tuple[DataType, str | None, list[OptionEdit]]:
    """Return the type and comment that a column gets, and the options that its comment orders.

    Comment directives exist in Paimon only.

    Raises:
        InvalidChangeError: The column cannot have the type that the comment requires.
    """
    path, wanted = change.field_names, type_from_wire(change.data_type)
    directive = read_directive(change.comment) if draft.rules.paimon else None
    if directive is None:
        return wanted, change.comment, []
    if len(path) != 1:
        raise argument_error(
            f"column {dotted(path)} is nested: a comment directive works on top only"
        )
    edits = listing_option_edits(directive, path[0], draft.working.options)
    return directive_type(directive, path[0], wanted), directive.comment, edits


def _default_position(
    draft: SchemaDraft, path: tuple[str, ...], siblings: StructMembers
) -> Move | None:
    keys = draft.old.partition_keys
    if len(path) > 1 or not keys or not draft.old_options.is_true("add-column-before-partition"):
        return None
    first = next((each.name for each in siblings if each.name in keys), None)
    return None if first is None else Move(path[0], "BEFORE", first)


def _reference_column_id(move: Move | None, siblings: StructMembers) -> int | None:
    if move is None or move.type in {"FIRST", "LAST"}:
        return None
    reference = siblings.named(move.reference_field_name or "")
    if reference is None:
        raise ColumnNotFoundError(
            f"column {move.reference_field_name} does not exist: "
            f"{move.field_name} cannot go {move.type} it"
        )
    return reference.id


def decide_undrop_column(draft: SchemaDraft, change: UndropColumn) -> ChangeAnchor:
    """Restore a column in its last form, under its own ids, with its options.

    It is nullable where rows without a value for it were written since.

    Raises:
        InvalidChangeError: The column exists, or its struct was dropped; it has a default that
            Paimon's readers do not support, or holds BLOBs and would be renamed.
        ColumnExistsError: Its name is taken.
        ColumnNotFoundError: No such column was ever dropped.
    """
    past = _find_dropped_column(draft, change)
    around = _enclosing_struct_path(draft, past)
    name = change.field_names[-1] if change.field_names else past.path[-1]
    path = (*around, name)
    _check_undrop_path(draft, change, past, path)
    siblings, parents = enclosing_struct(draft, path)
    if siblings.has_name(name):
        raise ColumnExistsError(
            f"column {dotted(path)} exists already: rename it first, or restore the dropped one "
            f"(id {past.field.id}) under another name"
        )
    move = change.move or _former_position(past, name, siblings)
    owners = [each for each in parents if each is not None]
    column = past.restored_field
    draft.record(
        ColumnUndropped(
            field_names=path,
            data_type=type_to_wire(column.type),
            comment=column.description,
            move=move,
            default_value=column.default_value,
            initial_default=column.initial_default,
            field_id=column.id,
            parent_id=owners[-1] if owners else UNSET,
        )
    )
    if len(path) == 1 and draft.rules.paimon:
        for key, value in _restored_option_edits(draft, past, name):
            draft.record(option_event(key, value))
    reference = None if change.move is None else _move_reference_id(change.move, draft, path)
    return ChangeAnchor((*parents, None), reference, assigned=(column.id,))


def _find_dropped_column(draft: SchemaDraft, change: UndropColumn) -> PastColumn:
    live_ids, path = draft.working.live_ids, change.field_names
    if change.field_id is not None:
        found = draft.past.by_id(change.field_id)
        if change.field_id in live_ids:
            there = ColumnNames(tuple(draft.working.columns.values())).path(change.field_id)
            raise argument_error(
                f"column {dotted(there or ())} (id {change.field_id}) was not dropped; there is "
                "nothing to restore"
            )
        if found is None:
            raise ColumnNotFoundError(
                f"no column of id {excerpt(change.field_id)} was dropped; lakeledger log --kind "
                "dropColumn lists those that were"
            )
        return found
    if not path:
        raise argument_error(
            "fieldNames and fieldId are both missing: name the column that was dropped"
        )
    found = draft.past.at(path, _current_struct_level(draft, path[:-1]), live_ids)
    if found is None:
        raise _not_dropped_error(draft, path, live_ids)
    return found


def _current_struct_level(draft: SchemaDraft, around: Path) -> Level | None:
    """Return the struct that a path leads to now; None where it leads to none."""
    if not around:
        return (None,)
    places = type_places(draft.working.columns.values())
    found = next((each for each in places if each.path == around), None)
    if found is None:
        return None
    return (found.field.id,) if found.field is not None else (*found.level, around[-1])


def _not_dropped_error(draft: SchemaDraft, path: Path, live_ids: AbstractSet[int]) -> Exception:
    said = dotted(path)
    places = type_places(draft.working.columns.values())
    if any(each.path == path for each in places):
        return argument_error(f"column {said} was not dropped; there is nothing to restore")
    called = draft.past.called(path)
    if called is None:
        return ColumnNotFoundError(f"no column {said} was ever dropped; see lakeledger blame")
    now = ColumnNames(tuple(draft.working.columns.values())).path(called.field.id)
    if called.field.id in live_ids:
        return argument_error(
            f"column {said} was renamed, not dropped: it is {dotted(now or ())} now"
        )
    return ColumnNotFoundError(
        f"column {said} (id {called.field.id}) was called {dotted(called.path)} when it was "
        "dropped; restore it by that name"
    )


def _enclosing_struct_path(draft: SchemaDraft, past: PastColumn) -> Path:
    """Return the current path of the struct that a column was in."""
    if past.owner is None:
        return ()
    found = ColumnNames(tuple(draft.working.columns.values())).path(past.owner)
    if found is None:
        raise argument_error(
            f"column {dotted(past.path)} was inside id {past.owner}, which was dropped, too; "
            "restore that, which restores what was dropped with it"
        )
    return (*found, *past.wrapper_segments)


def _check_undrop_path(
    draft: SchemaDraft, change: UndropColumn, past: PastColumn, path: Path
) -> None:
    asked = change.field_names
    if asked and asked[:-1] not in (path[:-1], past.path[:-1]):
        raise argument_error(
            f"column {dotted(past.path)} (id {past.field.id}) cannot be restored as "
            f"{dotted(asked)}: columns never change their struct; write {dotted(path)}"
        )
    if not draft.rules.paimon:
        return
    if past.field.initial_default is not None:
        raise unreadable_default_error(dotted(path))
    if is_blob(past.field.type) and path[-1] != past.path[-1]:
        raise unsupported_error(f"column {past.path[-1]} holds BLOBs, which are found by its name")


def _former_position(past: PastColumn, name: str, siblings: StructMembers) -> Move | None:
    """Return the column's former position among the remaining columns."""
    found = (siblings.with_id(each) for each in past.before)
    nearest = next((each for each in found if each is not None), None)
    if nearest is None:
        return Move(name, "FIRST")
    if siblings.last is nearest:
        return None
    return Move(name, "AFTER", nearest.name)


def _move_reference_id(move: Move, draft: SchemaDraft, path: Path) -> int | None:
    siblings, _ = enclosing_struct(draft, path)
    found = siblings.named(move.reference_field_name or "")
    return None if found is None else found.id


def _restored_option_edits(draft: SchemaDraft, past: PastColumn, name: str) -> Iterator[OptionEdit]:
    """Yield what the options said of a BLOB, VECTOR or MAP before its drop made them forget."""
    then, old = past.schema.options, past.path[-1]
    for key, rest in unlisting_option_edits(old, past.field.type, then):
        own = key.replace(f".{old}.", f".{name}.")
        if own != key or key not in LISTS:
            yield own, then[key]
        elif draft.working.options.get(key) == rest and name == old:
            yield key, then[key]
        else:
            listed = comma_list(draft.working.options.get(key) or "")
            yield key, ",".join(dict.fromkeys((*listed, name)))
