"""Column migration: the ordered changes that turn one schema's columns into another's.

Each planned change is folded at once, by the fold that replays it later, so that every change uses
the names that columns have at its point.

Two instants of one table are matched by field id. Ids of two different tables are unrelated, so
that their columns are matched by name unless ids are requested.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from heapq import heappop, heappush
from typing import Literal, cast

import attrs
from attrs import define, field, frozen
from msgspec import UNSET, Struct

from ledger.audit.rename_order import order_renames
from ledger.decide.column_draft import assign_type_ids
from ledger.events.schema import (
    AddColumn,
    ColumnAdded,
    ColumnDropped,
    ColumnMoved,
    ColumnRenamed,
    ColumnUndropped,
    DropColumn,
    Move,
    RenameColumn,
    SchemaChange,
    SchemaEvent,
    UndropColumn,
    UpdateColumnComment,
    UpdateColumnDefaultValue,
    UpdateColumnNullability,
    UpdateColumnPosition,
    UpdateColumnType,
)
from ledger.model.schema import FieldIdPolicy, Schema
from ledger.model.types import (
    ArrayType,
    DataField,
    DataType,
    MapType,
    RowType,
    TypePlace,
    type_places,
    walk_fields,
    walk_ids,
)
from ledger.model.types.casts import can_alter
from ledger.model.types.wire import type_to_wire
from ledger.state.columns import PastColumns, resolve_path
from ledger.state.schema_builder import SchemaBuilder

Path = tuple[str, ...]
Level = tuple[int | str | None, ...]
"""Key of a struct: id of its nearest named field, then `element` or `value`; (None,) on top."""


ColumnMatch = Literal["id", "name"]
"""Rule by which the columns of two schemas are matched: their field ids, or their names."""


class _Place(Struct, frozen=True):
    """Struct of a column, and its current name in it."""

    level: Level
    name: str


@define
class ColumnSteps:
    """Ordered column changes that lead from one schema to another.

    Attributes:
        drops: Drops of columns.
        renames: Renames, each in terms of the names after the earlier ones.
        rest: Restored columns, new ones, moves, types, comments, defaults, and drops that are only
            possible after them.
    """

    drops: list[SchemaChange] = field(factory=list)
    renames: list[SchemaChange] = field(factory=list)
    rest: list[SchemaChange] = field(factory=list)


def column_steps(
    before: Schema, after: Schema, past: PastColumns, *, renames_first: bool
) -> ColumnSteps:
    """Return the changes of columns that lead from `before` to `after`.

    Args:
        before: The earlier schema, without primary key where the later one has none.
        after: The later one, in the earlier one's ids.
        past: The columns that the table had; a restored column has its last definition.
        renames_first: True to rename columns before any drop, so that each rename can be a
            transaction of its own.

    Raises:
        InvalidChangeError: The ids of `after` cannot be assigned in any order.
    """
    planner = _ColumnChangePlanner(before, after, past)
    phases = [planner.drop, planner.rename]
    for phase in reversed(phases) if renames_first else phases:
        phase()
    planner.restore_dropped_columns()
    planner.add()
    planner.move()
    planner.set_column_aspects()
    return planner.steps


class _ColumnChangePlanner:
    def __init__(self, before: Schema, after: Schema, past: PastColumns) -> None:
        self.steps = ColumnSteps()
        self._before, self._after, self._past = before, after, past
        self._builder = SchemaBuilder(before)
        self._target = dict(_named_fields(after.fields))
        self._wanted = dict(_struct_members(after.fields))
        self._wanted_places = {
            each.id: place
            for members in self._wanted.values()
            for place, each in enumerate(members)
        }
        self._existing: dict[int, _Place] = {}
        self._add_places(before.fields)

    # The current columns.

    @property
    def _fields(self) -> tuple[DataField, ...]:
        return tuple(self._builder.columns.values())

    def _path(self, field_id: int) -> Path:
        place = self._existing[field_id]
        return (*self._path_of_level(place.level), place.name)

    def _add_places(self, columns: Iterable[DataField], level: Level = (None,)) -> None:
        for field_id, (column, place) in _named_fields(columns):
            around = level if len(place.path) == 1 else place.level
            self._existing[field_id] = _Place(around, column.name)

    def _struct_members(self) -> dict[Level, tuple[DataField, ...]]:
        # Members of a column that is dropped, or is no longer a struct, are dropped with it.
        return {
            level: members
            for level, members in _struct_members(self._fields)
            if level in self._wanted
        }

    def _apply_change(
        self, change: SchemaChange, fact: SchemaEvent, into: list[SchemaChange]
    ) -> None:
        into.append(change)
        self._builder.apply(fact)

    def _target_column(self, field_id: int) -> DataField | None:
        found = self._target.get(field_id)
        return None if found is None else found[0]

    # Dropped columns, and the names of the others.

    def _find_dropped(self, members: Sequence[DataField]) -> list[DataField]:
        return [each for each in members if each.id not in self._target]

    def drop(self, into: list[SchemaChange] | None = None) -> None:
        """Drop unwanted columns, except the last members of structs, which may not be empty."""
        for members in self._struct_members().values():
            gone = self._find_dropped(members)
            if len(gone) < len(members):
                self._drop_columns(gone, self.steps.drops if into is None else into)

    def _drop_columns(self, gone: Sequence[DataField], into: list[SchemaChange]) -> None:
        for each in gone:
            if each.id in self._existing:
                path = self._path(each.id)
                fact = ColumnDropped(field_names=path, field_id=each.id)
                self._apply_change(DropColumn(path), fact, into)
                for inside in walk_fields([each]):
                    self._existing.pop(inside.id, None)

    def rename(self, into: list[SchemaChange] | None = None) -> None:
        """Rename every column to its target name, with temporary names for those in the way."""
        steps = self.steps.renames if into is None else into
        for level, members in self._struct_members().items():
            names = {each.id: each.name for each in members}
            targets = {
                each.id: wanted.name
                for each in members
                if (wanted := self._target_column(each.id)) is not None
            }
            # A column that is dropped after new ones are added must not block their names.
            taken = {each.name for each in self._wanted.get(level, ())}
            blockers = [each.id for each in self._find_dropped(members) if each.name in taken]
            for field_id, name in order_renames(names, targets, taken, blockers):
                path = self._path(field_id)
                fact = ColumnRenamed(field_names=path, new_name=name, field_id=field_id)
                self._apply_change(RenameColumn(path, name), fact, steps)
                self._existing[field_id] = _Place(level, name)

    # Restored columns.

    def restore_dropped_columns(self) -> None:
        """Restore dropped columns, outer ones first, and adjust their nested columns."""
        comes = False
        for field_id, (column, place) in self._target.items():
            # New columns were never dropped, and searching for them would read the whole past.
            if field_id in self._existing or field_id > self._before.highest_field_id:
                continue
            past = self._past.by_id(field_id)
            if past is None:
                continue
            path, back = (*self._path_of_level(place.level), column.name), past.restored_field
            move = self._position_among_members(column, place.level) or Move(column.name, "LAST")
            fact = ColumnUndropped(
                field_names=path,
                data_type=type_to_wire(back.type),
                comment=back.description,
                move=move,
                default_value=back.default_value,
                initial_default=back.initial_default,
                field_id=field_id,
            )
            self._apply_change(UndropColumn(path, field_id, move), fact, self.steps.rest)
            restored = attrs.evolve(back, name=column.name)
            self._add_places([restored], place.level)
            comes = True
        if comes:
            self.drop(self.steps.rest)
            self.rename(self.steps.rest)

    # New columns.

    def add(self) -> None:
        """Add new columns, in the order of the ids; then drop those that could not be before."""
        new = {key: each for key, (each, _) in self._target.items() if key not in self._existing}
        inside = {each.id for column in new.values() for each in _nested_fields(column)}
        roots = sorted(new.keys() - inside)
        while roots:
            field_id = heappop(roots)
            typed, late = _without_members_after(new[field_id].type, roots[0] if roots else None)
            for each in late:
                heappush(roots, each)
            self._add_column(*self._target[field_id], typed)
        for members in self._struct_members().values():
            self._drop_columns(self._find_dropped(members), self.steps.rest)

    def _add_column(self, column: DataField, place: TypePlace, typed: DataType) -> None:
        default = column.initial_default
        if default is None:
            # Older rows have no value for it; it becomes NOT NULL later, if the rules allow it.
            typed = typed.with_nullability(nullable=True)
        wire, natural_id = type_to_wire(typed), self._builder.highest_field_id + 1
        natural, _ = assign_type_ids(typed, natural_id, self._builder.field_id_policy)
        is_natural = (column.id, *walk_ids(typed)) == (natural_id, *walk_ids(natural))
        change = AddColumn(
            (*self._path_of_level(place.level), column.name),
            wire,
            column.description,
            self._position_among_members(column, place.level),
            default,
            None if is_natural else column.id,
        )
        fact = ColumnAdded(
            field_names=change.field_names,
            data_type=wire,
            comment=change.comment,
            move=change.move,
            default_value=default,
            field_id=column.id,
        )
        self._apply_change(change, fact, self.steps.rest)
        self._add_places([attrs.evolve(column, type=typed)], place.level)

    def _path_of_level(self, level: Level) -> Path:
        owner, *hops = level
        return (*self._path(int(owner)), *map(str, hops)) if owner is not None else ()

    def _position_among_members(self, column: DataField, level: Level) -> Move | None:
        """Return the position of a new member: after its nearest existing predecessor."""
        wanted = self._wanted[level]
        earlier = reversed(range(self._wanted_places[column.id]))
        nearest = next(
            (each for each in (wanted[at].id for at in earlier) if self._is_at(each, level)), None
        )
        if nearest is None:
            return Move(column.name, "FIRST")
        if self._last_member(level) == nearest:
            return None
        return Move(column.name, "AFTER", self._existing[nearest].name)

    def _is_at(self, field_id: int, level: Level) -> bool:
        place = self._existing.get(field_id)
        return place is not None and place.level == level

    def _last_member(self, level: Level) -> int:
        path = self._path_of_level(level)
        if path:
            row = resolve_path(self._builder.column(path), path).type
            return cast("RowType", row).fields[-1].id
        return self._builder.members.last.id

    # The order and the aspects of columns.

    def move(self) -> None:
        """Move members to their target order, with the fewest moves."""
        for level, members in self._struct_members().items():
            wanted = [each.id for each in self._wanted[level]]
            place = {each: index for index, each in enumerate(wanted)}
            staying = longest_increasing_subset([place[each.id] for each in members])
            around = self._path_of_level(level)
            for index, field_id in enumerate(wanted):
                if index not in staying:
                    self._move_column(field_id, wanted[index - 1] if index else None, around)

    def _move_column(self, field_id: int, behind: int | None, around: Path) -> None:
        name = self._target[field_id][0].name
        if behind is None:
            move = Move(name, "FIRST")
        else:
            move = Move(name, "AFTER", self._target[behind][0].name)
        path = (*around, name) if around else ()
        fact = ColumnMoved(
            move=move,
            field_names=path,
            field_id=field_id,
            reference_id=UNSET if behind is None else behind,
        )
        self._apply_change(UpdateColumnPosition(move, path), fact, self.steps.rest)

    def set_column_aspects(self) -> None:
        """Set the type, nullability, comment and default of every column and nested part."""
        now = dict(_type_places_by_level(self._fields))
        derived = set()
        if self._before.primary_keys != self._after.primary_keys:
            # NOT NULL of key columns follows from the key.
            derived = set(self._after.primary_keys)
        for key, place in _type_places_by_level(self._after.fields):
            there = now[key]
            is_derived = len(place.path) == 1 and place.path[0] in derived
            self.steps.rest.extend(_aspect_changes(there, place, is_derived=is_derived))


def _aspect_changes(
    now: TypePlace, wanted: TypePlace, *, is_derived: bool
) -> Iterator[SchemaChange]:
    path = wanted.path
    old, new = now.field, wanted.field
    before = None if old is None else old.default_value
    after = None if new is None else new.default_value
    bare = wanted.type.with_nullability(nullable=now.type.nullable)
    if not wanted.type.depth and bare != now.type:
        if before is not None and before != after:
            yield UpdateColumnDefaultValue(path, None)
            before = None
        yield UpdateColumnType(path, type_to_wire(bare), keep_nullability=True)
    if now.type.nullable != wanted.type.nullable and not is_derived:
        yield UpdateColumnNullability(path, wanted.type.nullable)
    if old is not None and new is not None and old.description != new.description:
        yield UpdateColumnComment(path, new.description)
    if before != after:
        yield UpdateColumnDefaultValue(path, after)


def _named_fields(fields: Iterable[DataField]) -> Iterator[tuple[int, tuple[DataField, TypePlace]]]:
    """Yield every named field that a change can address, by id."""
    for place in type_places(fields):
        if place.field is not None and _is_addressable(place):
            yield place.field.id, (place.field, place)


def _type_places_by_level(fields: Iterable[DataField]) -> Iterator[tuple[Level, TypePlace]]:
    """Yield every position that a change can address, keyed by its nearest field and steps."""
    for place in type_places(fields):
        if _is_addressable(place):
            if place.field is not None:
                yield (place.field.id,), place
            else:
                yield (*place.level, place.path[-1]), place


def _is_addressable(place: TypePlace) -> bool:
    """Return True if a change's path can address a position: not in map keys or multisets."""
    steps = zip(place.around, place.path[1:], strict=True)
    return all(
        isinstance(around, RowType | ArrayType) or (isinstance(around, MapType) and step == "value")
        for around, step in steps
    )


def _struct_members(fields: tuple[DataField, ...]) -> Iterator[tuple[Level, tuple[DataField, ...]]]:
    """Yield the members of every struct, keyed by its level, outer structs first."""
    yield (None,), fields
    for level, place in _type_places_by_level(fields):
        if isinstance(place.type, RowType):
            yield level, place.type.fields


def _nested_fields(column: DataField) -> Iterator[DataField]:
    return (each for each in walk_fields([column]) if each is not column)


def _without_members_after(data_type: DataType, limit: int | None) -> tuple[DataType, list[int]]:
    """Return a type without the members with ids above `limit`, and those ids.

    Ids are assigned in order, so that these members can only be added one by one.
    """
    if limit is None:
        return data_type, []
    match data_type:
        case RowType(fields=fields):
            late = [each.id for each in fields if each.id > limit]
            if len(late) == len(fields):
                # A struct cannot be empty, so its first member gets another id.
                late = late[1:]
            kept, inner = [], []
            for each in fields:
                if each.id not in late:
                    typed, more = _without_members_after(each.type, limit)
                    kept.append(attrs.evolve(each, type=typed))
                    inner += more
            return attrs.evolve(data_type, fields=kept), [*late, *inner]
        case ArrayType(element=element):
            typed, late = _without_members_after(element, limit)
            return attrs.evolve(data_type, element=typed), late
        case MapType(value=value):
            typed, late = _without_members_after(value, limit)
            return attrs.evolve(data_type, value=typed), late
        case _:
            return data_type, []


def longest_increasing_subset(numbers: Sequence[int]) -> set[int]:
    """Return the numbers of a longest increasing subsequence.

    Example:
        >>> sorted(longest_increasing_subset([3, 0, 1, 2]))
        [0, 1, 2]
    """
    tails: list[int] = []
    before: dict[int, int | None] = {}
    for each in numbers:
        at = bisect_left(tails, each)
        before[each] = tails[at - 1] if at else None
        tails[at : at + 1] = [each]
    found: set[int] = set()
    last = tails[-1] if tails else None
    while last is not None:
        found.add(last)
        last = before[last]
    return found


@frozen
class AlignedSchema:
    """Target schema in the earlier schema's field ids.

    Attributes:
        schema: The later schema, with the earlier ids of columns that are the same, else new ids.
        lost: Later id to its replacement, if the id itself is not available: it was used before
            and cannot be restored, or belongs to another table.
    """

    schema: Schema
    lost: dict[int, int]


def align_schema(
    before: Schema, after: Schema, past: PastColumns, *, match: ColumnMatch
) -> AlignedSchema:
    """Return `after` in the ids of `before`.

    Args:
        before: The earlier schema.
        after: The later one.
        past: The columns that the table had up to the earlier one, which can be restored.
        match: "id" for schemas of one table, "name" for those of tables with unrelated ids.

    Example:
        >>> one, two = Schema.of({"a": "INT", "b": "INT"}), Schema.of({"b": "INT", "c": "INT"})
        >>> [
        ...     each.id
        ...     for each in align_schema(
        ...         one, two, PastColumns(), match="name"
        ...     ).schema.fields
        ... ]
        [1, 2]
    """
    existing = frozenset(
        found for each in before.fields for found in (each.id, *walk_ids(each.type))
    )
    aligner = _SchemaAligner(
        before.highest_field_id, before.field_id_policy, past, existing, match=match
    )
    fields = aligner.members(before.fields, after.fields)
    fields = aligner.number(fields)
    highest = max(
        [before.highest_field_id, *(each.id for each in walk_fields(fields))]
        + [each for member in fields for each in walk_ids(member.type)]
    )
    schema = attrs.evolve(
        after,
        fields=fields,
        highest_field_id=highest,
        field_id_policy=before.field_id_policy,
        identifier_field_ids=tuple(
            sorted(aligner.ids.get(each, each) for each in after.identifier_field_ids)
        ),
    )
    return AlignedSchema(schema, {old: new for old, new in aligner.ids.items() if old != new})


@define
class _SchemaAligner:
    highest: int
    policy: FieldIdPolicy
    past: PastColumns
    existing: frozenset[int]
    match: ColumnMatch = field(kw_only=True)
    ids: dict[int, int] = field(factory=dict)
    """The earlier or new id for each later id."""
    _next: int = 0

    def members(
        self, before: Sequence[DataField], after: Sequence[DataField]
    ) -> tuple[DataField, ...]:
        """Return a struct's members with the ids of the earlier members that they continue."""
        pairs = self._matching_members(before, after)
        return tuple(self._align_member(pairs.get(each.id), each) for each in after)

    def _matching_members(
        self, before: Sequence[DataField], after: Sequence[DataField]
    ) -> dict[int, DataField]:
        if self.match == "id":
            old = {each.id: each for each in before}
            return {
                each.id: old[each.id]
                for each in after
                if each.id in old and has_compatible_shape(old[each.id].type, each.type)
            }
        named = {each.name: each for each in before}
        return {
            each.id: named[each.name]
            for each in after
            if each.name in named and has_compatible_shape(named[each.name].type, each.type)
        }

    def _align_member(self, old: DataField | None, new: DataField) -> DataField:
        if old is not None:
            self.ids[new.id] = old.id
            return attrs.evolve(new, id=old.id, type=self._align_type(old.type, new.type))
        own = [new.id, *walk_ids(new.type)]
        if self.match == "id" and all(each > self.highest for each in own):
            self.ids |= {each.id: each.id for each in walk_fields([new])}
            return new
        gone = self._find_dropped(new)
        if gone is not None:
            self.ids[new.id] = new.id
            return attrs.evolve(new, type=self._align_type(gone.type, new.type))
        return attrs.evolve(new, id=_placeholder_id(new.id))

    def _find_dropped(self, column: DataField) -> DataField | None:
        """Return the dropped column that a column restores, in restored form; None if it cannot."""
        if self.match == "name" or column.id > self.highest:
            return None
        found = self.past.by_id(column.id)
        if found is None or not has_compatible_shape(found.field.type, column.type):
            return None
        back = found.restored_field
        own = {back.id, *walk_ids(back.type)}
        return back if self.existing.isdisjoint(own) else None

    def _align_type(self, old: DataType, new: DataType) -> DataType:
        match old, new:
            case RowType(fields=before), RowType(fields=after):
                return attrs.evolve(new, fields=self.members(before, after))
            case ArrayType(element=before), ArrayType(element=after):
                element = self._align_type(before, after)
                return attrs.evolve(new, element=element, element_id=old.element_id)
            case MapType(value=before), MapType(value=after):
                return attrs.evolve(
                    old, nullable=new.nullable, value=self._align_type(before, after)
                )
            case _:
                return new

    def number(self, fields: tuple[DataField, ...]) -> tuple[DataField, ...]:
        """Return columns with new ids for those whose own ids are not available."""
        kept = (each for member in fields for each in (member.id, *walk_ids(member.type)))
        self._next = max(self.highest, *kept, 0) + 1 if self.match == "id" else self.highest + 1
        return self._number_fields(fields)

    def _number_fields(self, fields: tuple[DataField, ...]) -> tuple[DataField, ...]:
        return tuple(map(self._number_field, fields))

    def _number_field(self, member: DataField) -> DataField:
        if member.id >= 0:
            return attrs.evolve(member, type=self._number_type(member.type))
        typed, highest = assign_type_ids(member.type, self._next, self.policy)
        fresh = attrs.evolve(member, id=self._next, type=typed)
        self._next = max(highest, self._next) + 1
        own = attrs.evolve(member, id=_placeholder_id(member.id))
        for old, new in zip(walk_fields([own]), walk_fields([fresh]), strict=True):
            self.ids[old.id] = new.id
        return fresh

    def _number_type(self, data_type: DataType) -> DataType:
        match data_type:
            case RowType(fields=fields):
                return attrs.evolve(data_type, fields=self._number_fields(fields))
            case ArrayType(element=element):
                return attrs.evolve(data_type, element=self._number_type(element))
            case MapType(value=value):
                return attrs.evolve(data_type, value=self._number_type(value))
            case _:
                return data_type


def _placeholder_id(field_id: int) -> int:
    """Return the placeholder for an id that is not available; of a placeholder, the id."""
    return -field_id - 1


def has_compatible_shape(before: DataType, after: DataType) -> bool:
    """Return whether the shapes of two types allow changes from one to the other.

    Example:
        >>> from ledger.model.types import STRING, IntType
        >>> (
        ...     has_compatible_shape(IntType(), STRING),
        ...     has_compatible_shape(IntType(), ArrayType(IntType())),
        ... )
        (True, False)
    """
    match before, after:
        case RowType(), RowType():
            return True
        case ArrayType(element=old), ArrayType(element=new):
            return has_compatible_shape(old, new)
        case MapType(key=same, value=old), MapType(key=key, value=new):
            return same == key and has_compatible_shape(old, new)
        case _:
            bare = before.with_nullability(nullable=after.nullable)
            if before.depth and not after.depth:
                return can_alter(before, after, explicit_allowed=True)
            return bare == after or not (before.depth or after.depth)
