"""Iceberg's `update_schema`: changes against the schema as it was, compiled to SchemaChanges.

Pending changes are collected first, and compiled at the end, in this order: columns change under
their old names; columns are dropped; columns are renamed, innermost first; new columns are added,
under the new names, in the order of their ids; columns move; identifier fields are set.

Swapped names (a to b, b to a) need a temporary name, since no event may give two columns one name.
It is the old name with `_` appended, as often as needed; the log has it inside this one
transaction, and no reader ever sees a schema that has it.

`stops.value.lat` may be written `stops.lat`: a list's `element` and a map's `value` may be left out
where they are structs.

Source: the Iceberg reference implementation's UpdateSchema and its index by name.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, Protocol, Self, cast

from attrs import define, field, frozen
from msgspec import UNSET, UnsetType

from ledger.decide.errors import argument_error, state_error, unsupported_error
from ledger.events.schema import (
    AddColumn,
    DropColumn,
    Move,
    MoveType,
    RenameColumn,
    SchemaChange,
    SetIdentifierFields,
    UpdateColumnComment,
    UpdateColumnDefaultValue,
    UpdateColumnNullability,
    UpdateColumnPosition,
    UpdateColumnType,
)
from ledger.model import arguments as its
from ledger.model.arguments import validate_arguments
from ledger.model.errors import ColumnExistsError, ColumnNotFoundError
from ledger.model.messages import excerpt, name_hint
from ledger.model.schema import Schema
from ledger.model.types import (
    ArrayType,
    DataField,
    DataType,
    MapType,
    MultisetType,
    RowType,
    parts_of,
)
from ledger.model.types.casts import can_promote
from ledger.model.types.sql import read_type
from ledger.model.types.text import format_type
from ledger.model.types.wire import type_to_wire
from ledger.state.columns import dotted
from ledger.state.declared_formats import Rules

Path = tuple[str, ...]
"""A column's path in full, as `SchemaChange.field_names` has it."""

Part = Literal["column", "element", "key", "value"]


@frozen
class SchemaPlace:
    """A place in a schema that a name leads to.

    Attributes:
        path: In full, with every `element`, `key` and `value`.
        type: The type at the place.
        column: The column or ROW member; None for a list's element, a map's key or value.
        part: Which of these it is.
        in_key: Whether it is a map's key or inside of one, which never changes.
    """

    path: Path
    type: DataType
    column: DataField | None
    part: Part = "column"
    in_key: bool = False

    def __str__(self) -> str:
        return dotted(self.path)


class PlaceNameIndex:
    """Places of a schema by full name.

    Example:
        >>> from ledger.model.schema import Schema
        >>> from ledger.model.types.sql import read_type
        >>> stops = read_type("MAP<STRING, ROW<lat FLOAT>>")
        >>> index = PlaceNameIndex(Schema.of({"stops": stops}).fields)
        >>> index.find("stops.lat").path, index.find("STOPS")
        (('stops', 'value', 'lat'), None)
    """

    __slots__ = ("_full", "_short", "spots")

    def __init__(self, columns: Sequence[DataField]) -> None:
        self.spots: dict[Path, SchemaPlace] = {}
        self._full: dict[str, SchemaPlace] = {}
        self._short: dict[str, SchemaPlace] = {}
        for spot, short in _index_members(columns, (), (), in_key=False):
            self.spots[spot.path] = spot
            self._full.setdefault(dotted(spot.path), spot)
            self._short.setdefault(dotted(short), spot)

    def find(self, name: str) -> SchemaPlace | None:
        """Return the place that a name leads to, or None."""
        return self._full.get(name) or self._short.get(name)

    def find_ignoring_case(self, name: str) -> SchemaPlace | None:
        """Return the place that a name leads to, ignoring case, or None.

        Raises:
            InvalidChangeError: It could mean more than one column.
        """
        wanted = name.lower()
        for names in (self._full, self._short):
            found = [spot for each, spot in names.items() if each.lower() == wanted]
            if len(found) > 1:
                raise argument_error(
                    f"{name} could mean {' or '.join(map(str, found))}; mind the case"
                )
            if found:
                return found[0]
        return None


_Found = tuple[SchemaPlace, Path]


def _index_members(
    members: Sequence[DataField], path: Path, short: Path, *, in_key: bool
) -> Iterator[_Found]:
    for each in members:
        spot = SchemaPlace((*path, each.name), each.type, each, in_key=in_key)
        named = (*short, each.name)
        yield spot, named
        yield from _index_inside(spot, named)


def _index_inside(spot: SchemaPlace, short: Path) -> Iterator[_Found]:
    if isinstance(spot.type, MultisetType):
        return
    for each in parts_of(spot.type):
        if each.field is not None:
            yield from _index_members([each.field], spot.path, short, in_key=spot.in_key)
        else:
            yield from _index_part(spot, each.type, cast("Part", each.name), short)


def _index_part(
    owner: SchemaPlace, data_type: DataType, part: Part, short: Path
) -> Iterator[_Found]:
    in_key = owner.in_key or part == "key"
    spot = SchemaPlace((*owner.path, part), data_type, None, part, in_key)
    yield spot, (*short, part)
    is_skipped = isinstance(data_type, RowType) and part != "key"
    yield from _index_inside(spot, short if is_skipped else (*short, part))


@define
class ColumnEdit:
    """Pending change of an existing column; unset attributes stay."""

    new_name: str | UnsetType = UNSET
    type: DataType | UnsetType = UNSET
    nullable: bool | UnsetType = UNSET
    doc: str | UnsetType | None = UNSET
    default: str | UnsetType | None = UNSET


@define(eq=False)
class ColumnAddition:
    """A column to be added.

    Attributes:
        parent: The struct that it is added to, in full; empty for a top-level column.
        name: Its name, which may contain dots.
        alias: Its path as it was given.
        type: Its type; ids in it are ignored.
        doc: Its comment.
        default: The value that older files read as, and new rows get.
        write_default: The value that new rows get instead, if that was changed since.
    """

    parent: Path
    name: str
    alias: str
    type: DataType
    doc: str | None
    default: str | None
    write_default: str | UnsetType | None = UNSET

    @property
    def path(self) -> Path:
        """Its path in full."""
        return (*self.parent, self.name)


Target = Path | ColumnAddition
"""An existing column, by its path in full, or one to be added."""


@define
class ColumnMove:
    """A move of a column among its siblings."""

    parent: Path
    column: Target
    type: MoveType
    reference: Target | None = None


@define
class PendingUpdate:
    """Everything requested of a schema, by the names that it had before.

    Attributes:
        schema: The schema before.
        deleted: Columns to drop.
        edits: Columns to change, by their paths.
        additions: New columns, in the order of the calls, which is that of their ids.
        placings: Columns to move, one after the other.
        identifier_names: The wanted identifier fields; None to leave them unchanged.
        allows_incompatible: Whether columns may become required although older rows may lack them.
        ignores_case: Whether names are found, and clash, ignoring case.
    """

    schema: Schema
    deleted: dict[Path, SchemaPlace] = field(factory=dict)
    edits: dict[Path, ColumnEdit] = field(factory=dict)
    additions: list[ColumnAddition] = field(factory=list)
    placings: list[ColumnMove] = field(factory=list)
    identifier_names: tuple[str, ...] | None = None
    allows_incompatible: bool = False
    ignores_case: bool = False
    names: PlaceNameIndex = field(init=False)

    @names.default
    def _place_index(self) -> PlaceNameIndex:
        return PlaceNameIndex(self.schema.fields)

    def find(self, name: str) -> SchemaPlace | None:
        """Return the place that a name leads to in the schema before, or None."""
        return self.names.find_ignoring_case(name) if self.ignores_case else self.names.find(name)

    def addition(self, name: str) -> ColumnAddition | None:
        """Return the new column of that name, or None."""
        wanted = self.folded(name)
        for each in self.additions:
            if wanted in (self.folded(each.alias), self.folded(dotted(each.path))):
                return each
        return None

    def folded(self, name: str) -> str:
        """Return the form of a name in which clashing names are equal."""
        return name.lower() if self.ignores_case else name

    def is_deleted(self, path: Path) -> bool:
        """Return whether a column, or one around it, will be dropped."""
        return any(path[:depth] in self.deleted for depth in range(1, len(path) + 1))

    def type_of(self, target: SchemaPlace | ColumnAddition) -> DataType:
        """Return a column's future type; its nullability is in `is_nullable`."""
        edit = None if isinstance(target, ColumnAddition) else self.edits.get(target.path)
        if edit is None or isinstance(edit.type, UnsetType):
            return target.type
        return edit.type

    def is_nullable(self, target: SchemaPlace | ColumnAddition) -> bool:
        """Return whether a column will be nullable."""
        edit = None if isinstance(target, ColumnAddition) else self.edits.get(target.path)
        if edit is None or isinstance(edit.nullable, UnsetType):
            return target.type.nullable
        return edit.nullable


@frozen
class StructUpdate:
    """Members of one struct, before and afterwards.

    Attributes:
        parent: The struct's path before; empty for the table itself.
        before: Its members' names, in order.
        gone: The names of dropped members.
        renames: Old name to new one, for renamed members.
        added: Its new members.
    """

    parent: Path
    before: tuple[str, ...]
    gone: tuple[str, ...]
    renames: dict[str, str]
    added: tuple[ColumnAddition, ...]

    @classmethod
    def of(cls, pending: PendingUpdate, parent: Path) -> Self:
        """Return the pending update of the struct at `parent`.

        Raises:
            InvalidChangeError: Two members would have one name, or none would be left.
        """
        around = pending.names.spots[parent].type if parent else None
        members = around.fields if isinstance(around, RowType) else pending.schema.fields
        before = tuple(each.name for each in members)
        renames: dict[str, str] = {}
        for name in before:
            edit = pending.edits.get((*parent, name))
            if edit is not None and not isinstance(edit.new_name, UnsetType):
                renames[name] = edit.new_name
        gone = tuple(name for name in before if (*parent, name) in pending.deleted)
        added = tuple(each for each in pending.additions if each.parent == parent)
        made = cls(parent, before, gone, renames, added)
        made._check_unique_names(pending)
        return made

    def _check_unique_names(self, pending: PendingUpdate) -> None:
        seen: set[str] = set()
        for name in self._names_after():
            folded = pending.folded(name)
            if folded in seen:
                taken = dotted((*self.parent, name))
                raise ColumnExistsError(f"column {taken} exists already; choose another name")
            seen.add(folded)
        if not seen:
            raise argument_error(
                f"{dotted(self.parent) or 'the table'} would have no column left; "
                "delete the whole instead"
            )

    def _kept_names(self) -> list[str]:
        return [name for name in self.before if name not in self.gone]

    def _names_after(self) -> list[str]:
        kept = [self.renames.get(name, name) for name in self._kept_names()]
        return [*kept, *(each.name for each in self.added)]

    @property
    def _last_dropped_member(self) -> str | None:
        """The member to drop after the new ones are added: a struct is never empty."""
        return None if self._kept_names() else self.before[-1]

    def result(self) -> list[Target]:
        """Return the members afterwards, in order, before any of them moves."""
        return [*((*self.parent, name) for name in self._kept_names()), *self.added]

    def drops(self) -> Iterator[SchemaChange]:
        """Yield the drops before any rename or addition."""
        for name in self.gone:
            if name != self._last_dropped_member:
                yield DropColumn((*self.parent, name))

    def late_drops(self, parent: Path) -> Iterator[SchemaChange]:
        """Yield the drop after the new members were added; `parent` is the path by then."""
        last = self._last_dropped_member
        if last is not None:
            spare = self._unused_name(last) if self._is_added_name(last) else last
            yield DropColumn((*parent, spare))

    def renames_in_order(self) -> Iterator[SchemaChange]:
        """Yield the renames, in an order in which no two members ever have one name."""
        waiting = {old: new for old, new in self.renames.items() if old != new}
        last = self._last_dropped_member
        if last is not None and self._is_added_name(last):
            waiting[last] = self._unused_name(last)
        there = {*self._kept_names(), *((last,) if last else ())}
        while waiting:
            old = next((each for each, new in waiting.items() if new not in there), None)
            if old is None:
                # They swap names in a cycle: one of them gets a temporary name.
                old = next(iter(waiting))
                spare_name = self._unused_name(old)
                waiting[spare_name] = waiting[old]
                waiting[old] = spare_name
            new = waiting.pop(old)
            there.symmetric_difference_update({old, new})
            yield RenameColumn((*self.parent, old), new)

    def _is_added_name(self, name: str) -> bool:
        return any(each.name == name for each in self.added)

    def _unused_name(self, name: str) -> str:
        taken = {*self.before, *self._names_after()}
        while name in taken:
            name += "_"
        return name


_PLACE_OPTION = "add-column-before-partition"


def compile_changes(pending: PendingUpdate) -> tuple[SchemaChange, ...]:
    """Return the changes that implement the pending ones; none when there is nothing to do.

    Raises:
        InvalidChangeError: Two columns of a struct would have one name, a struct would be empty,
            or a column to move was dropped.
        ColumnNotFoundError: An identifier field does not exist.
    """
    structs = [StructUpdate.of(pending, parent) for parent in _changed_structs(pending)]
    return (
        *_compile_edits(pending),
        *(change for each in structs for change in each.drops()),
        *(change for each in structs for change in each.renames_in_order()),
        *(_add_column_change(pending, each) for each in pending.additions),
        *_write_default_changes(pending),
        *(
            change
            for each in structs
            for change in each.late_drops(_current_path(pending, each.parent))
        ),
        *(change for each in structs for change in _move_changes(pending, each)),
        *_identifier_changes(pending),
    )


def _changed_structs(pending: PendingUpdate) -> list[Path]:
    """Return the structs with members to drop, add, move or rename, innermost first."""
    renamed = (path for path, edit in pending.edits.items() if edit.new_name)
    parents = {
        *(path[:-1] for path in pending.deleted),
        *(path[:-1] for path in renamed),
        *(each.parent for each in pending.additions),
        *(each.parent for each in pending.placings),
    }
    left = [each for each in parents if not pending.is_deleted(each)]
    return sorted(left, key=lambda each: (-len(each), each))


def _compile_edits(pending: PendingUpdate) -> Iterator[SchemaChange]:
    for path, edit in pending.edits.items():
        if not pending.is_deleted(path):
            yield from _column_edit(path, edit)


def _column_edit(path: Path, edit: ColumnEdit) -> Iterator[SchemaChange]:
    if not isinstance(edit.type, UnsetType):
        yield UpdateColumnType(path, type_to_wire(edit.type), keep_nullability=True)
    if not isinstance(edit.nullable, UnsetType):
        yield UpdateColumnNullability(path, edit.nullable)
    if not isinstance(edit.doc, UnsetType):
        yield UpdateColumnComment(path, edit.doc)
    if not isinstance(edit.default, UnsetType):
        yield UpdateColumnDefaultValue(path, edit.default)


def _current_path(pending: PendingUpdate, path: Path) -> Path:
    """Return the current form of a path of the schema before, once names have changed."""
    names = list(path)
    for depth in range(1, len(path) + 1):
        edit = pending.edits.get(path[:depth])
        if edit is not None and not isinstance(edit.new_name, UnsetType):
            names[depth - 1] = edit.new_name
    return tuple(names)


def _target_path(pending: PendingUpdate, target: Target) -> Path:
    if isinstance(target, ColumnAddition):
        return (*_current_path(pending, target.parent), target.name)
    return _current_path(pending, target)


def _add_column_change(pending: PendingUpdate, column: ColumnAddition) -> AddColumn:
    schema = pending.schema
    # Paimon's option would put it elsewhere; here a new column is the last.
    moves_last = not column.parent and schema.partition_keys and _PLACE_OPTION in schema.options
    return AddColumn(
        _target_path(pending, column),
        type_to_wire(column.type),
        column.doc,
        Move(column.name, "LAST") if moves_last else None,
        column.default,
    )


def _write_default_changes(pending: PendingUpdate) -> Iterator[SchemaChange]:
    for each in pending.additions:
        if not isinstance(each.write_default, UnsetType) and each.write_default != each.default:
            yield UpdateColumnDefaultValue(_target_path(pending, each), each.write_default)


def _move_changes(pending: PendingUpdate, struct: StructUpdate) -> Iterator[SchemaChange]:
    order = struct.result()
    for placing in pending.placings:
        if placing.parent != struct.parent:
            continue
        for each in (placing.column, placing.reference):
            if each is not None and each not in order:
                raise argument_error(
                    f"column {dotted(_target_path(pending, each))} is deleted; it cannot move"
                )
        rest = [each for each in order if each != placing.column]
        place = 0
        if placing.reference is not None:
            place = rest.index(placing.reference) + (placing.type == "AFTER")
        moved = [*rest[:place], placing.column, *rest[place:]]
        if moved != order:
            yield _move_column(pending, placing.column, placing.reference, placing.type)
        order = moved


def _move_column(
    pending: PendingUpdate, column: Target, reference: Target | None, kind: MoveType
) -> UpdateColumnPosition:
    path = _target_path(pending, column)
    beside = None if reference is None else _target_path(pending, reference)[-1]
    # The path of a top-level column adds nothing to the move itself.
    return UpdateColumnPosition(Move(path[-1], kind, beside), path if len(path) > 1 else ())


def _identifier_changes(pending: PendingUpdate) -> Iterator[SchemaChange]:
    if pending.identifier_names is None:
        return
    paths: list[Path] = []
    ids: set[int | None] = set()
    for name in pending.identifier_names:
        spot, added = pending.find(name), pending.addition(name)
        if spot is not None and not pending.is_deleted(spot.path):
            paths.append(_current_path(pending, spot.path))
            ids.add(spot.column.id if spot.column else None)
        elif added is not None:
            paths.append(_target_path(pending, added))
            ids.add(None)
        else:
            raise ColumnNotFoundError(f"column {name} does not exist; it cannot identify a row")
    if ids != set(pending.schema.identifier_field_ids):
        yield SetIdentifierFields(tuple(paths))


class UnionableUpdate(Protocol):
    """The part of a schema update that a union calls."""

    def add_column(self, name: Path, data_type: DataType, *, doc: str | None) -> object:
        """Add a column at the end of its struct."""

    def update_column(
        self,
        name: Path,
        data_type: DataType | UnsetType = UNSET,
        *,
        doc: str | UnsetType | None = UNSET,
        default: str | UnsetType | None = UNSET,
    ) -> object:
        """Change a column's type, comment or default for new rows."""

    def make_optional(self, name: Path) -> object:
        """Make a column nullable."""


def union_columns(
    update: UnionableUpdate, pending: PendingUpdate, columns: Sequence[DataField], parent: Path = ()
) -> None:
    """Add and widen columns, so that the struct at `parent` has these members.

    Raises:
        InvalidChangeError: A member has a type that neither side can become.
    """
    for each in columns:
        path = (*parent, each.name)
        spot = pending.find(dotted(path))
        if spot is None or spot.path[:-1] != parent:
            _add_union_column(update, path, each)
            continue
        _widen_column(update, pending, spot, each.type)
        if each.description is not None:
            update.update_column(spot.path, doc=each.description)
        if each.default_value is not None:
            update.update_column(spot.path, default=each.default_value)


def _add_union_column(update: UnionableUpdate, path: Path, column: DataField) -> None:
    optional = column.type.with_nullability(nullable=True)
    update.add_column(path, optional, doc=column.description)
    if column.default_value is not None:
        update.update_column(path, default=column.default_value)


def _widen_column(
    update: UnionableUpdate, pending: PendingUpdate, spot: SchemaPlace, other: DataType
) -> None:
    if other.nullable and not spot.type.nullable:
        update.make_optional(spot.path)
    match spot.type, other:
        case RowType(), RowType(fields=members):
            union_columns(update, pending, members, spot.path)
        case ArrayType(), ArrayType(element=inner):
            _widen_column(update, pending, pending.names.spots[*spot.path, "element"], inner)
        case MapType(key=key), MapType(key=wanted, value=inner):
            _check_map_key(pending, spot, key, wanted)
            _widen_column(update, pending, pending.names.spots[*spot.path, "value"], inner)
        case _ if spot.type.depth or other.depth:
            raise _no_common_type_error(spot, spot.type, other)
        case _:
            _promote_type(update, pending, spot, other)


def _promote_type(
    update: UnionableUpdate, pending: PendingUpdate, spot: SchemaPlace, other: DataType
) -> None:
    version = Rules.of(pending.schema.options).format_version
    if can_promote(spot.type, other, format_version=version):
        update.update_column(spot.path, other)
    elif not can_promote(other, spot.type, format_version=version):
        raise _no_common_type_error(spot, spot.type, other)


def _check_map_key(
    pending: PendingUpdate, spot: SchemaPlace, key: DataType, other: DataType
) -> None:
    version = Rules.of(pending.schema.options).format_version
    if not can_promote(other, key, format_version=version):
        raise state_error(
            f"column {spot}: a map's key never changes, but {format_type(key)} would have to "
            f"become {format_type(other)}"
        )


def _no_common_type_error(spot: SchemaPlace, mine: DataType, other: DataType) -> Exception:
    return state_error(
        f"column {spot}: neither of {format_type(mine)} and {format_type(other)} can become the "
        "other"
    )


Name = str | Sequence[str]
"""Name of a column: `address.zip`, or `("address", "zip")`."""


def name_parts(name: Name) -> Path:
    """Return a name's parts; a text is one part, with dots or without.

    Raises:
        InvalidChangeError: It names nothing.
    """
    given = (name,) if isinstance(name, str) else name
    if not _is_name_sequence(given):
        raise argument_error(
            f"{excerpt(name)} names no column; give a text such as 'price', or a tuple of such"
        )
    return tuple(given)


def _is_name_sequence(given: object) -> bool:
    if not isinstance(given, Sequence) or not given:
        return False
    return all(isinstance(each, str) and each for each in given)


def text(name: Name) -> str:
    """Return a name in its dotted form, by which it is looked up."""
    return dotted(name_parts(name))


def find_place(pending: PendingUpdate, name: Name) -> SchemaPlace:
    """Return the place that a name leads to in the schema before.

    Raises:
        ColumnNotFoundError: There is nothing of that name.
    """
    spot = pending.find(text(name))
    if spot is None:
        raise ColumnNotFoundError(
            f"column {text(name)} does not exist; {name_hint(text(name), pending.schema.names)}"
        )
    return spot


def require_column(pending: PendingUpdate, name: Name, verb: str) -> SchemaPlace:
    """Return a column of the schema before, or a member of one of its structs.

    Raises:
        ColumnNotFoundError: There is nothing of that name.
        InvalidChangeError: It is an element, a key or a value, or is inside a map's key.
    """
    spot = find_place(pending, name)
    if spot.in_key or spot.part != "column":
        what = "in a map's key" if spot.in_key else f"a {spot.part}, no column"
        raise argument_error(f"{spot} is {what}; it cannot be {verb}")
    return spot


def find_update_target(pending: PendingUpdate, name: Name) -> SchemaPlace | ColumnAddition:
    """Return the subject of an update: a place of the schema before, or else a new column.

    Raises:
        ColumnNotFoundError: There is nothing of that name.
        InvalidChangeError: It will be deleted, or is inside a map's key.
    """
    added = pending.addition(text(name))
    if added is not None and pending.find(text(name)) is None:
        return added
    spot = find_place(pending, name)
    refuse_deleted_column(pending, spot)
    if spot.in_key:
        raise argument_error(f"{spot} is in a map's key, which never changes")
    return spot


def find_movable_column(pending: PendingUpdate, name: Name) -> tuple[Target, Path]:
    """Return a column that can move, and its struct; a new column takes precedence.

    Raises:
        ColumnNotFoundError: There is nothing of that name.
        InvalidChangeError: It will be deleted, or is not a member of a struct.
    """
    added = pending.addition(text(name))
    if added is not None:
        return added, added.parent
    spot = require_column(pending, name, "moved")
    refuse_deleted_column(pending, spot)
    return spot.path, spot.path[:-1]


def find_member_struct(pending: PendingUpdate, name: Name, member: str) -> Path:
    """Return the full path of the struct that a new member goes into.

    Raises:
        ColumnNotFoundError: There is nothing of that name.
        InvalidChangeError: It is not a struct, will be deleted, or is inside a map's key.
    """
    spot = find_place(pending, name)
    if spot.in_key:
        raise argument_error(
            f"{spot} is in a map's key, which never changes; {member} cannot go in"
        )
    path, data_type = spot.path, spot.type
    match data_type:
        case ArrayType(element=inner):
            path, data_type = (*path, "element"), inner
        case MapType(value=inner):
            path, data_type = (*path, "value"), inner
        case _:
            pass
    if not isinstance(data_type, RowType):
        raise argument_error(
            f"{dotted(path)} is {data_type.root}, no struct; {member} cannot go in"
        )
    refuse_deleted_column(pending, spot)
    return path


def refuse_deleted_column(pending: PendingUpdate, spot: SchemaPlace) -> None:
    """Reject updates of a column that will be deleted, or is inside of one that will be.

    Raises:
        InvalidChangeError: It will be.
    """
    if pending.is_deleted(spot.path):
        raise argument_error(f"column {spot} will be deleted by this update")


_DOC = its.ArgumentForm(
    "a text, or None", lambda value: value is UNSET or value is None or isinstance(value, str)
)


class SchemaUpdate:
    """A schema update in progress. Names mean what they meant before it; each call returns itself.

    A list's `element` and a map's `value` may be left out of a path where they are structs. An
    update that contradicts the schema or an earlier call is rejected at once; a problem of the
    result (two columns of one name) by `changes`.

    Example:
        >>> update = SchemaUpdate(Schema.of({"a": "INT", "b": "STRING"}))
        >>> _ = update.rename_column("a", "b").rename_column("b", "a").move_first("b")
        >>> [type(each).__name__ for each in update.changes()]
        ['RenameColumn', 'RenameColumn', 'RenameColumn', 'UpdateColumnPosition']
    """

    def __init__(self, schema: Schema) -> None:
        self._pending = PendingUpdate(schema)

    @property
    def allows_incompatible(self) -> bool:
        """True if columns may become required although older rows may lack them."""
        return self._pending.allows_incompatible

    def changes(self) -> tuple[SchemaChange, ...]:
        """Return the SchemaChanges that implement the update, in order.

        Raises:
            InvalidChangeError: The result would be no valid schema.
        """
        return compile_changes(self._pending)

    @validate_arguments(doc=its.words.or_none())
    def add_column(
        self,
        name: Name,
        data_type: DataType | str,
        *,
        doc: str | None = None,
        required: bool = False,
        default: str | None = None,
    ) -> Self:
        """Add a column at the end of its struct; ids are assigned in the order of the calls.

        Args:
            name: A name without a dot for a top-level column, else a tuple: `("address", "zip")`.
            data_type: Its type, or the text of one, such as `ROW<x INT>`; ids inside are ignored.
            doc: Its comment.
            required: Whether it is never NULL; older rows then need a default.
            default: The value that older files read as and new rows get, as text.

        Raises:
            ColumnExistsError: The name is taken, by a column that keeps another name, too.
            ColumnNotFoundError: There is no such struct.
            InvalidChangeError: A name with a dot could mean a path, the struct will be deleted, or
                older rows have no value.
        """
        if isinstance(name, str) and "." in name:
            raise argument_error(f"{name} could mean a path or a name; give a tuple of its parts")
        above, last = name_parts(name)[:-1], name_parts(name)[-1]
        parent = find_member_struct(self._pending, above, last) if above else ()
        added = ColumnAddition(
            parent, last, dotted((*above, last)), _to_data_type(data_type), doc, default
        )
        self._check_name_free(added)
        if default is not None and added.type.depth:
            raise argument_error(f"column {added.alias} is {added.type.root}, which has no default")
        added.type = added.type.with_nullability(added.type.nullable and not required)
        if not added.type.nullable and default is None:
            self._check_incompatible_allowed(f"column {added.alias} cannot be added as required")
        self._pending.additions.append(added)
        return self

    def delete_column(self, name: Name) -> Self:
        """Delete a column; its id is never assigned again.

        Raises:
            ColumnNotFoundError: There was none before this update.
            InvalidChangeError: It is a list's element or a map's key or value, or this update
                changes it or adds to it.
        """
        spot = require_column(self._pending, name, "deleted")
        if spot.path in self._pending.edits:
            raise argument_error(
                f"column {spot} has updates; it cannot be deleted in the same update"
            )
        if any(each.parent[: len(spot.path)] == spot.path for each in self._pending.additions):
            raise argument_error(
                f"column {spot} has additions; it cannot be deleted in the same update"
            )
        self._pending.deleted[spot.path] = spot
        return self

    def rename_column(self, name: Name, new_name: str) -> Self:
        """Rename a column; a dot in the new name means nothing. Further calls use the old name.

        Raises:
            ColumnNotFoundError: There was none before this update.
            InvalidChangeError: It will be deleted, or has no name of its own.
        """
        spot = require_column(self._pending, name, "renamed")
        (new_name,) = name_parts((new_name,))
        refuse_deleted_column(self._pending, spot)
        self._column_edit(spot).new_name = new_name
        return self

    @validate_arguments(doc=_DOC)
    def update_column(
        self,
        name: Name,
        data_type: DataType | str | UnsetType = UNSET,
        *,
        doc: str | UnsetType | None = UNSET,
        default: str | UnsetType | None = UNSET,
    ) -> Self:
        """Change a column's type, comment or default for new rows; what is left out stays.

        Args:
            name: The column; for its type a list's element or a map's value, too.
            data_type: A type that it can be promoted to; its nullability stays.
            doc: The comment; None removes it.
            default: The value that new rows get, as text; None removes it. Older files stay the
                same.

        Raises:
            ColumnNotFoundError: There is none, new or old.
            InvalidChangeError: It will be deleted, is inside a map's key, cannot become that type,
                or has no single value to be a default.
        """
        target = find_update_target(self._pending, name)
        if not isinstance(data_type, UnsetType):
            self._set_type(target, _to_data_type(data_type))
        if not isinstance(doc, UnsetType):
            self._set_comment(target, doc)
        if not isinstance(default, UnsetType):
            self._set_default(target, default)
        return self

    def make_optional(self, name: Name) -> Self:
        """Make a column nullable.

        Raises:
            ColumnNotFoundError: There is none, new or old.
            InvalidChangeError: It will be deleted, or is inside a map's key.
        """
        self._set_nullable(find_update_target(self._pending, name), nullable=True)
        return self

    def require(self, name: Name) -> Self:
        """Make a column NOT NULL.

        Raises:
            ColumnNotFoundError: There is none, new or old.
            InvalidChangeError: Older rows may hold NULL, it will be deleted, or is inside a map's
                key.
        """
        target = find_update_target(self._pending, name)
        if not self._pending.is_nullable(target):
            return self
        if not isinstance(target, ColumnAddition) or target.default is None:
            self._check_incompatible_allowed(f"column {_named(target)} cannot become required")
        self._set_nullable(target, nullable=False)
        return self

    def move_first(self, name: Name) -> Self:
        """Move a column to the beginning of its struct.

        Raises:
            ColumnNotFoundError, InvalidChangeError: As `move_before`.
        """
        return self._move_column(name, "FIRST")

    def move_before(self, name: Name, reference: Name) -> Self:
        """Move a column before another one of its struct; new columns move, too.

        Raises:
            ColumnNotFoundError: One of them does not exist.
            InvalidChangeError: One of them will be deleted, they are the same, or of different
                structs.
        """
        return self._move_column(name, "BEFORE", reference)

    def move_after(self, name: Name, reference: Name) -> Self:
        """Move a column after another one of its struct; new columns move, too.

        Raises:
            ColumnNotFoundError, InvalidChangeError: As `move_before`.
        """
        return self._move_column(name, "AFTER", reference)

    def set_identifier_fields(self, *names: Name) -> Self:
        """Set the columns that together identify a row; no names: none do.

        Columns that this update adds may be named. Whether they exist and can identify a row is
        checked by `changes`.
        """
        self._pending.identifier_names = tuple(map(text, names))
        return self

    def union_by_name(self, schema: Schema) -> Self:
        """Add the columns that another schema has in addition, and widen types; drop nothing.

        New columns are optional. A narrower type, a required column and a column that the other
        schema lacks change nothing; its comments and defaults for new rows are adopted.

        Raises:
            InvalidChangeError: A column has a type that neither can become.
        """
        if not isinstance(schema, Schema):
            raise argument_error(f"{excerpt(schema)} is no Schema; give one")
        union_columns(self, self._pending, schema.fields)
        return self

    def allow_incompatible_changes(self) -> Self:
        """Let this update make columns required although older rows may lack them."""
        self._pending.allows_incompatible = True
        return self

    def case_sensitive(self, sensitive: bool) -> Self:  # noqa: FBT001 - the value, not a switch
        """Set whether names that differ in case are different names, which is the default."""
        self._pending.ignores_case = not sensitive
        return self

    def _check_name_free(self, added: ColumnAddition) -> None:
        name = dotted(added.path)
        there = self._pending.find(name)
        taken = there is not None and not self._pending.is_deleted(there.path)
        if taken or self._pending.addition(name) is not None:
            raise ColumnExistsError(f"column {name} exists already; choose another name")

    def _check_incompatible_allowed(self, refusal: str) -> None:
        if not self._pending.allows_incompatible:
            raise unsupported_error(
                f"{refusal}: older rows have no value; give it a default when adding it, or call "
                "allow_incompatible_changes() first"
            )

    def _column_edit(self, spot: SchemaPlace) -> ColumnEdit:
        return self._pending.edits.setdefault(spot.path, ColumnEdit())

    def _set_type(self, target: SchemaPlace | ColumnAddition, wanted: DataType) -> None:
        now = self._pending.type_of(target)
        if now.with_nullability(nullable=True) == wanted.with_nullability(nullable=True):
            return
        if now.depth or wanted.depth:
            raise state_error(
                f"column {_named(target)} is {now.root}; change what it holds instead"
            )
        version = Rules.of(self._pending.schema.options).format_version
        if not can_promote(now, wanted, format_version=version):
            raise state_error(
                f"column {_named(target)}: {format_type(now)} cannot become {format_type(wanted)} "
                "without rewriting files; add a column instead"
            )
        kept = wanted.with_nullability(now.nullable)
        if isinstance(target, ColumnAddition):
            target.type = kept
        else:
            self._column_edit(target).type = kept

    def _set_comment(self, target: SchemaPlace | ColumnAddition, doc: str | None) -> None:
        if isinstance(target, ColumnAddition):
            target.doc = doc
        elif target.column is None:
            raise argument_error(f"{target} is a {target.part}, which has no comment of its own")
        elif doc != target.column.description or target.path in self._pending.edits:
            self._column_edit(target).doc = doc

    def _set_default(self, target: SchemaPlace | ColumnAddition, default: str | None) -> None:
        if self._pending.type_of(target).depth and default is not None:
            raise argument_error(f"column {_named(target)} is nested, so it has no default")
        if isinstance(target, ColumnAddition):
            target.write_default = default
        elif target.column is None:
            raise argument_error(f"{target} is a {target.part}, which has no default of its own")
        elif default != target.column.default_value or target.path in self._pending.edits:
            self._column_edit(target).default = default

    def _set_nullable(self, target: SchemaPlace | ColumnAddition, *, nullable: bool) -> None:
        if self._pending.is_nullable(target) is nullable:
            return
        if isinstance(target, ColumnAddition):
            target.type = target.type.with_nullability(nullable)
        else:
            self._column_edit(target).nullable = nullable

    def _move_column(self, name: Name, kind: MoveType, reference: Name | None = None) -> Self:
        mover, parent = find_movable_column(self._pending, name)
        if reference is None:
            self._pending.placings.append(ColumnMove(parent, mover, kind))
            return self
        other, around = find_movable_column(self._pending, reference)
        if around != parent:
            raise argument_error(f"{text(name)} and {text(reference)} are not of one struct")
        if other == mover:
            raise argument_error(f"column {text(name)} cannot move {kind} itself")
        self._pending.placings.append(ColumnMove(parent, mover, kind, other))
        return self


def _named(target: SchemaPlace | ColumnAddition) -> str:
    return dotted(target.path)


def _to_data_type(given: DataType | str) -> DataType:
    if isinstance(given, DataType):
        return given
    if isinstance(given, str):
        return read_type(given)
    raise argument_error(f"{excerpt(given)} is no data type; give one, or its text")
