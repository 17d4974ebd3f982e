"""Rebase of column changes on a newer schema; paths follow field ids."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Literal, TypeVar

from msgspec.structs import replace

from ledger.decide.column_additions import effective_column
from ledger.decide.column_draft import Anchor, SchemaDraft, struct_around
from ledger.decide.table_options import ColumnNames, option_text
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
from ledger.state.columns import dotted, locate, member_named, moved

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


class Following:
    """Resolves the columns of a batch of changes in a newer schema, by their ids.

    Args:
        draft: The decision being made, on the newer schema.
        touches: The effect of each change of the batch.
        anchors: The subject of each change when it was first decided.
    """

    def __init__(
        self, draft: SchemaDraft, touches: Sequence[Touches], anchors: Sequence[Anchor]
    ) -> None:
        self._draft = draft
        self._touched: dict[Touches, set[int | None]] = defaultdict(set)
        for touched, anchor in zip(touches, anchors, strict=True):
            self._touched[touched].update(anchor.ids if touched == "columns" else anchor.ids[-1:])
        self._given: dict[int, int] = {}

    def learn(self, before: Sequence[int], now: Sequence[int]) -> None:
        """Map ids that the batch assigned before to the ids that it assigns now."""
        self._given.update(zip(before, now, strict=True))

    def as_asked(self, change: AnyChange, _anchor: Anchor) -> AnyChange:
        """Return a change that names no columns."""
        return change

    def rename(self, change: RenameColumn, anchor: Anchor) -> RenameColumn | None:
        """Return a rename; None where the column has the name already."""
        renamed = self.at(change, anchor)
        return None if renamed.field_names[-1] == change.new_name else renamed

    def retype(self, change: UpdateColumnType, anchor: Anchor) -> UpdateColumnType | None:
        """Return a change of type; None where the column has it already."""
        retyped = self.at(change, anchor)
        return None if self._has_type(retyped) else retyped

    def remove_option(self, change: RemoveOption, anchor: Anchor) -> RemoveOption:
        """Return a removal with its key naming the same columns by their current names."""
        return RemoveOption(self._option(change.key, None, anchor)[0])

    def at(self, change: PathChange, anchor: Anchor) -> PathChange:
        """Return a change whose path leads to the same place now."""
        return replace(change, field_names=self._path(change.field_names, anchor.ids))

    def _path(self, path: tuple[str, ...], ids: Iterable[int | None]) -> tuple[str, ...]:
        """Return the path that leads to the same columns now."""
        found: list[str] = []
        for segment, old_id in zip(path, ids, strict=True):
            if old_id is None:
                found.append(segment)
                continue
            now = self._given.get(old_id, old_id)
            member = next((each for each in self._members(found) if each.id == now), None)
            if member is None:
                raise ColumnNotFoundError(
                    f"column {dotted(path)} does not exist any more; "
                    f"it was {segment} with id {now} when this change was made"
                )
            found.append(member.name)
        return tuple(found)

    def _members(self, parent: Sequence[str]) -> Iterable[DataField]:
        working = self._draft.working
        if not parent:
            return working.columns.values()
        place = locate(working.column(tuple(parent)), parent)
        return place.type.fields if isinstance(place.type, RowType) else ()

    def drop(self, change: DropColumn, anchor: Anchor) -> DropColumn | None:
        """Return a drop; None where the column is dropped already."""
        try:
            return self.at(change, anchor)
        except ColumnNotFoundError:
            return None

    def undrop(self, change: UndropColumn, anchor: Anchor) -> UndropColumn | None:
        """Return the restoration of a column, by its id; None where it exists already."""
        (field_id,) = anchor.assigned
        if any(each.id == field_id for each in walk_fields(self._members(()))):
            return None
        path = self._path(change.field_names, anchor.ids) if change.field_names else ()
        move = change.move
        if move is not None and path:
            move = self._move(move, path, anchor)
        return replace(change, field_names=path, field_id=field_id, move=move)

    def add(self, change: AddColumn, anchor: Anchor) -> AddColumn | None:
        """Return an addition; None where an equal column of another writer replaces it."""
        path = self._path(change.field_names, anchor.ids)
        followed = replace(change, field_names=path)
        siblings, _ = struct_around(self._draft, path)
        there = member_named(siblings, path[-1])
        if there is not None and self._may_be(there, anchor.assigned):
            wanted, comment, _ = effective_column(self._draft, followed)
            if assign_field_ids(wanted, 0) == assign_field_ids(there.type, 0) and (
                (comment, change.default_value) == (there.description, there.initial_default)
            ):
                self.learn(anchor.assigned, [each.id for each in walk_fields([there])])
                return None
        if change.move is None:
            return followed
        return replace(followed, move=self._move(change.move, path, anchor))

    def set_option(self, change: SetOption, anchor: Anchor) -> SetOption | None:
        """Return a setting that names the same columns; None where there is nothing to do."""
        if anchor.lapsed:
            return None
        key, value = self._option(change.key, change.value, anchor)
        followed = SetOption(key, change.value if value is None else value)
        old, working = self._draft.old.options, self._draft.working.options
        if old.get(key) == followed.value != working.get(key):
            # It was stored at first: the same value by another writer does not undo that.
            self._draft.record(followed)
            return None
        return followed

    def _option(self, key: str, value: str | None, anchor: Anchor) -> tuple[str, str | None]:
        option = option_text(key, value)
        if option is None:
            return key, value
        now = (each if each is None else self._given.get(each, each) for each in anchor.named)
        return ColumnNames(tuple(self._draft.working.columns.values())).say(option, now)

    def _may_be(self, there: DataField, assigned: Sequence[int]) -> bool:
        """Return whether another writer's column can replace the batch's own one.

        A batch that also drops, renames, moves or re-types the new column means its own column, and
        another's is left unchanged; except for a comment or a default that the other one lacks.
        """
        return self._touched["columns"].isdisjoint(assigned) and not any(
            (own in self._touched["comment"] and theirs.description is not None)
            or (own in self._touched["default"] and theirs.default_value is not None)
            for own, theirs in zip(assigned, walk_fields([there]), strict=False)
        )

    def identifiers(self, change: SetIdentifierFields, anchor: Anchor) -> SetIdentifierFields:
        """Return the identifier fields by their current names."""
        ids = iter(anchor.ids)
        paths = (self._path(path, islice(ids, len(path))) for path in change.field_names)
        return replace(change, field_names=tuple(paths))

    def position(self, change: UpdateColumnPosition, anchor: Anchor) -> UpdateColumnPosition | None:
        """Return a move with its reference; None where the column is there already."""
        asked = change.field_names or (change.move.field_name,)
        path = self._path(asked, anchor.ids)
        move = self._move(change.move, path, anchor)
        siblings, _ = struct_around(self._draft, path)
        mover = member_named(siblings, path[-1])
        if mover is not None and move.reference_field_name != path[-1]:
            reference = anchor.reference_id
            now = mover.id if reference is None else self._given.get(reference, reference)
            if moved(siblings, move, mover.id, now) == siblings:
                return None
        return replace(change, field_names=path if change.field_names else (), move=move)

    def _move(self, move: Move, path: tuple[str, ...], anchor: Anchor) -> Move:
        name = move.reference_field_name
        if anchor.reference_id is None or name is None:
            return replace(move, field_name=path[-1])
        wanted = self._given.get(anchor.reference_id, anchor.reference_id)
        found = next((each for each in self._members(path[:-1]) if each.id == wanted), None)
        if found is None:
            raise ColumnNotFoundError(
                f"column {dotted((*path[:-1], name))} does not exist any more; it had id {wanted} "
                f"when {path[-1]} was to go {move.type} it"
            )
        return replace(move, field_name=path[-1], reference_field_name=found.name)

    def _has_type(self, change: UpdateColumnType) -> bool:
        place = locate(self._draft.working.column(change.field_names), change.field_names)
        target = type_from_wire(change.new_data_type)
        if change.keep_nullability:
            target = target.with_nullability(place.type.nullable)
        return place.type == target
