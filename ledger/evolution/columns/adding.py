"""Deciding where a new column goes, what type and ids it gets, and what its comment orders."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import UNSET

from ledger.events.schema_changes import AddColumn, Move
from ledger.events.schema_events import ColumnAdded
from ledger.evolution.bounds import next_id
from ledger.evolution.columns import directives
from ledger.evolution.columns.draft import Anchor, SchemaDraft, struct_around
from ledger.evolution.columns.editing import check_default
from ledger.evolution.columns.iceberg_ids import numbered
from ledger.evolution.options.deciding import option_event
from ledger.evolution.refusals import argument
from ledger.evolution.tree.paths import dotted, member_named
from ledger.model.errors import ColumnExistsError, ColumnNotFoundError, FormatError
from ledger.model.types import DataField, DataType
from ledger.model.types.walk import walk_fields, walk_ids
from ledger.model.types.wire import type_from_wire, type_to_wire

MOST_SKIPPED_IDS = 10_000
"""An id that is asked for lies at most so far ahead, so that nobody uses up a table's ids."""


def decide_add(draft: SchemaDraft, change: AddColumn) -> Anchor:
    """Add a column or a member of a ROW, at the place that flags and move give.

    Raises:
        InvalidChangeError: It is NOT NULL and older rows have no value for it, its default cannot
            be read, or it stands below something that has no members.
        FormatError: It has a default in a table that Paimon can read.
        ColumnExistsError: The name is taken in that struct.
        ColumnNotFoundError: A parent, or the move's reference, does not exist.
    """
    path = change.field_names
    wanted, comment, edits = effective_column(draft, change)
    _check_older_rows(draft, change, wanted)
    siblings, parents = struct_around(draft, path)
    name = path[-1]
    if member_named(siblings, name) is not None:
        raise ColumnExistsError(f"column {dotted(path)} exists already; choose another name")
    move = change.move or _default_move(draft, path, siblings)
    reference = _reference(move, siblings)
    field_id, typed = _with_ids(draft, change, wanted)
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
    return Anchor((*parents, None), reference, assigned=assigned)


def _with_ids(draft: SchemaDraft, change: AddColumn, wanted: DataType) -> tuple[int, DataType]:
    """Return the new column's id, and its type with ids: those asked for where all are new."""
    highest, policy = draft.working.highest_field_id, draft.working.field_id_policy
    if change.field_id is not None:
        asked = [change.field_id, *walk_ids(wanted)]
        room = range(highest + 1, highest + MOST_SKIPPED_IDS + 1)
        fresh, _ = numbered(wanted, change.field_id, policy)
        is_numbered = len(list(walk_ids(fresh))) == len(asked) - 1
        if is_numbered and len(set(asked)) == len(asked) and all(each in room for each in asked):
            return change.field_id, wanted
    field_id = next_id(highest, policy, change.field_names)
    return field_id, numbered(wanted, field_id, policy)[0]


def _check_older_rows(draft: SchemaDraft, change: AddColumn, wanted: DataType) -> None:
    name = dotted(change.field_names)
    if change.default_value is not None:
        if draft.rules.paimon:
            raise read_as_null(name)
        check_default(change.field_names, change.default_value, wanted)
    if wanted.nullable:
        return
    if draft.rules.paimon:
        raise argument(
            f"column {name} cannot be added as NOT NULL: older rows have no value for it"
        )
    if change.default_value is None and not draft.rules.allow_incompatible:
        raise argument(
            f"column {name} cannot be added as NOT NULL: older rows have no value for it; give it "
            "a default, or allow incompatible changes"
        )


def read_as_null(name: str) -> FormatError:
    """Return the refusal of a column that older files would have to read as a default."""
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


def effective_column(
    draft: SchemaDraft, change: AddColumn
) -> tuple[DataType, str | None, list[directives.OptionEdit]]:
    """Return the type and comment that a column gets, and the options that its comment orders.

    Comments order something in Paimon only.

    Raises:
        InvalidChangeError: The comment orders something that the column cannot be.
    """
    path, wanted = change.field_names, type_from_wire(change.data_type)
    directive = directives.read_directive(change.comment) if draft.rules.paimon else None
    if directive is None:
        return wanted, change.comment, []
    if len(path) != 1:
        raise argument(f"column {dotted(path)} is nested: a comment directive works on top only")
    edits = directives.listing(directive, path[0], draft.working.options)
    return directives.directed_type(directive, path[0], wanted), directive.comment, edits


def _default_move(
    draft: SchemaDraft, path: tuple[str, ...], siblings: Sequence[DataField]
) -> Move | None:
    keys = draft.old.partition_keys
    if len(path) > 1 or not keys or not draft.old_options.is_true("add-column-before-partition"):
        return None
    first = next((each.name for each in siblings if each.name in keys), None)
    return None if first is None else Move(path[0], "BEFORE", first)


def _reference(move: Move | None, siblings: Sequence[DataField]) -> int | None:
    if move is None or move.type in {"FIRST", "LAST"}:
        return None
    reference = member_named(siblings, move.reference_field_name or "")
    if reference is None:
        raise ColumnNotFoundError(
            f"column {move.reference_field_name} does not exist: "
            f"{move.field_name} cannot go {move.type} it"
        )
    return reference.id
