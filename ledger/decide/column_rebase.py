"""Rebase of column changes on a newer schema; paths follow field ids."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Literal, TypeVar, assert_never

from msgspec.structs import replace

from ledger.decide.column_additions import apply_comment_directive
from ledger.decide.column_draft import ChangeAnchor, SchemaDraft, enclosing_struct
from ledger.decide.table_options import ColumnNames, split_option_columns
from ledger.events.schema import (
    AddColumn,
    DropColumn,
    Move,
    RemoveOption,
    RenameColumn,
    SchemaChange,
    SetIdentifierFields,
    SetOption,
    UndropColumn,
    UpdateColumnComment,
    UpdateColumnDefaultValue,
    UpdateColumnNullability,
    UpdateColumnPosition,
    UpdateColumnType,
)
from ledger.model.errors import ColumnNotFoundError
from ledger.model.types import DataField, RowType, assign_field_ids, walk_fields
from ledger.model.types.wire import type_from_wire
from ledger.state.columns import dotted, resolve_path
from ledger.state.struct_members import RowMembers, StructMembers

AnyChange = TypeVar("AnyChange", bound=SchemaChange)
PathChange = TypeVar("PathChange", bound="_PathChange")
_PathChange = (
    RenameColumn
    | DropColumn
    | UpdateColumnType
    | UpdateColumnNullability
    | UpdateColumnComment
    | UpdateColumnDefaultValue
)


Touches = Literal["nothing", "comment", "default", "columns"]
"""Kind of effect that a change has on the columns in its paths."""


class ColumnRebase:
    """Resolves the columns of a batch of changes in a newer schema, by their ids.

    Args:
        draft: The decision being made, on the newer schema.
        touches: The effect of each change of the batch.
        anchors: The subject of each change when it was first decided.
    """

    def __init__(
        self, draft: SchemaDraft, touches: Sequence[Touches], anchors: Sequence[ChangeAnchor]
    ) -> None:
        self._draft = draft
        self._touched: dict[Touches, set[int | None]] = defaultdict(set)
        for touched, anchor in zip(touches, anchors, strict=True):
            self._touched[touched].update(anchor.ids if touched == "columns" else anchor.ids[-1:])
        self._given: dict[int, int] = {}

    def map_reassigned_ids(self, before: Sequence[int], now: Sequence[int]) -> None:
        """Map ids that the batch assigned before to the ids that it assigns now."""
        self._given.update(zip(before, now, strict=True))

    def keep_unchanged(self, change: AnyChange, _anchor: ChangeAnchor) -> AnyChange:
        """Return a change that names no columns."""
        return change

    def rebase_rename(self, change: RenameColumn, anchor: ChangeAnchor) -> RenameColumn | None:
        """Return a rename; None where the column has the name already."""
        renamed = self.rebase_path(change, anchor)
        return None if renamed.field_names[-1] == change.new_name else renamed

    def rebase_type_change(
        self, change: UpdateColumnType, anchor: ChangeAnchor
    ) -> UpdateColumnType | None:
        """Return a change of type; None where the column has it already."""
        retyped = self.rebase_path(change, anchor)
        return None if self._already_has_type(retyped) else retyped

    def rebase_remove_option(self, change: RemoveOption, anchor: ChangeAnchor) -> RemoveOption:
        """Return a removal with its key naming the same columns by their current names."""
        return RemoveOption(self._rebase_option(change.key, None, anchor)[0])

    def rebase_path(self, change: PathChange, anchor: ChangeAnchor) -> PathChange:
        """Return a change whose path leads to the same place now."""
        return replace(change, field_names=self._current_path(change.field_names, anchor.ids))

    def _current_path(self, path: tuple[str, ...], ids: Iterable[int | None]) -> tuple[str, ...]:
        """Return the path that leads to the same columns now."""
        found: list[str] = []
        for segment, old_id in zip(path, ids, strict=True):
            if old_id is None:
                found.append(segment)
                continue
            now = self._given.get(old_id, old_id)
            members = self._current_members(found)
            member = None if members is None else members.with_id(now)
            if member is None:
                raise ColumnNotFoundError(
                    f"column {dotted(path)} does not exist any more; "
                    f"it was {segment} with id {now} when this change was made"
                )
            found.append(member.name)
        return tuple(found)

    def _current_members(self, parent: Sequence[str]) -> StructMembers | None:
        working = self._draft.working
        if not parent:
            return working.members
        place = resolve_path(working.column(tuple(parent)), parent)
        return RowMembers(place.type.fields) if isinstance(place.type, RowType) else None

    def rebase_drop(self, change: DropColumn, anchor: ChangeAnchor) -> DropColumn | None:
        """Return a drop; None where the column is dropped already."""
        try:
            return self.rebase_path(change, anchor)
        except ColumnNotFoundError:
            return None

    def rebase_undrop(self, change: UndropColumn, anchor: ChangeAnchor) -> UndropColumn | None:
        """Return the restoration of a column, by its id; None where it exists already."""
        (field_id,) = anchor.assigned
        if field_id in self._draft.working.live_ids:
            return None
        path = self._current_path(change.field_names, anchor.ids) if change.field_names else ()
        move = change.move
        if move is not None and path:
            move = self._rebase_move(move, path, anchor)
        return replace(change, field_names=path, field_id=field_id, move=move)

    def rebase_addition(self, change: AddColumn, anchor: ChangeAnchor) -> AddColumn | None:
        """Return an addition; None where an equal column of another writer replaces it."""
        path = self._current_path(change.field_names, anchor.ids)
        followed = replace(change, field_names=path)
        siblings, _ = enclosing_struct(self._draft, path)
        there = siblings.named(path[-1])
        if there is not None and self._can_replace_column(there, anchor.assigned):
            wanted, comment, _ = apply_comment_directive(self._draft, followed)
            if assign_field_ids(wanted, 0) == assign_field_ids(there.type, 0) and (
                (comment, change.default_value) == (there.description, there.initial_default)
            ):
                self.map_reassigned_ids(anchor.assigned, [each.id for each in walk_fields([there])])
                return None
        if change.move is None:
            return followed
        return replace(followed, move=self._rebase_move(change.move, path, anchor))

    def rebase_set_option(self, change: SetOption, anchor: ChangeAnchor) -> SetOption | None:
        """Return a setting that names the same columns; None where there is nothing to do."""
        if anchor.lapsed:
            return None
        key, value = self._rebase_option(change.key, change.value, anchor)
        followed = SetOption(key, change.value if value is None else value)
        old, working = self._draft.old.options, self._draft.working.options
        if old.get(key) == followed.value != working.get(key):
            # It was stored at first: the same value by another writer does not undo that.
            self._draft.record(followed)
            return None
        return followed

    def _rebase_option(
        self, key: str, value: str | None, anchor: ChangeAnchor
    ) -> tuple[str, str | None]:
        option = split_option_columns(key, value)
        if option is None:
            return key, value
        now = (each if each is None else self._given.get(each, each) for each in anchor.named)
        return ColumnNames(tuple(self._draft.working.columns.values())).say(option, now)

    def _can_replace_column(self, there: DataField, assigned: Sequence[int]) -> bool:
        """Return whether another writer's column can replace the batch's own one.

        A batch that also drops, renames, moves or re-types the new column means its own column, and
        another's is left unchanged; except for a comment or a default that the other one lacks.
        """
        return self._touched["columns"].isdisjoint(assigned) and not any(
            (own in self._touched["comment"] and theirs.description is not None)
            or (own in self._touched["default"] and theirs.default_value is not None)
            for own, theirs in zip(assigned, walk_fields([there]), strict=False)
        )

    def rebase_identifier_fields(
        self, change: SetIdentifierFields, anchor: ChangeAnchor
    ) -> SetIdentifierFields:
        """Return the identifier fields by their current names."""
        ids = iter(anchor.ids)
        paths = (self._current_path(path, islice(ids, len(path))) for path in change.field_names)
        return replace(change, field_names=tuple(paths))

    def rebase_position(
        self, change: UpdateColumnPosition, anchor: ChangeAnchor
    ) -> UpdateColumnPosition | None:
        """Return a move with its reference; None where the column is there already."""
        asked = change.field_names or (change.move.field_name,)
        path = self._current_path(asked, anchor.ids)
        move = self._rebase_move(change.move, path, anchor)
        siblings, _ = enclosing_struct(self._draft, path)
        mover = siblings.named(path[-1])
        if mover is not None and move.reference_field_name != path[-1]:
            reference = anchor.reference_id
            now = mover.id if reference is None else self._given.get(reference, reference)
            if _is_in_place(siblings, move, mover.id, now):
                return None
        return replace(change, field_names=path if change.field_names else (), move=move)

    def _rebase_move(self, move: Move, path: tuple[str, ...], anchor: ChangeAnchor) -> Move:
        name = move.reference_field_name
        if anchor.reference_id is None or name is None:
            return replace(move, field_name=path[-1])
        wanted = self._given.get(anchor.reference_id, anchor.reference_id)
        members = self._current_members(path[:-1])
        found = None if members is None else members.with_id(wanted)
        if found is None:
            raise ColumnNotFoundError(
                f"column {dotted((*path[:-1], name))} does not exist any more; it had id {wanted} "
                f"when {path[-1]} was to go {move.type} it"
            )
        return replace(move, field_name=path[-1], reference_field_name=found.name)

    def _already_has_type(self, change: UpdateColumnType) -> bool:
        place = resolve_path(self._draft.working.column(change.field_names), change.field_names)
        target = type_from_wire(change.new_data_type)
        if change.keep_nullability:
            target = target.with_nullability(place.type.nullable)
        return place.type == target


def _is_in_place(siblings: StructMembers, move: Move, mover: int, reference: int) -> bool:
    """Return whether a move would leave its column where it is."""
    match move.type:
        case "FIRST":
            return siblings.first.id == mover
        case "LAST":
            return siblings.last.id == mover
        case "AFTER":
            return siblings.before(mover) == reference
        case "BEFORE":
            return siblings.before(reference) == mover
        case _:
            assert_never(move.type)
