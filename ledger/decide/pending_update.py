"""Pending changes of a schema update, applied to the members of one struct.

Who goes, who is called what, who comes: before any of it is compiled.

`stops.value.lat` may be written `stops.lat`: a list's `element` and a map's `value` go without
saying where they are structs. Source: the Iceberg reference implementation's index by name.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, Self, cast

from attrs import define, field, frozen
from msgspec import UNSET, UnsetType

from ledger.decide.errors import argument
from ledger.events.schema import DropColumn, MoveType, RenameColumn, SchemaChange
from ledger.model.errors import ColumnExistsError
from ledger.model.schema import Schema
from ledger.model.types import DataField, DataType, MultisetType, RowType, parts_of
from ledger.state.columns import dotted

Path = tuple[str, ...]
"""A column's path in full, as `SchemaChange.field_names` has it."""

Part = Literal["column", "element", "key", "value"]


@frozen
class Spot:
    """Something that a name stands for.

    Attributes:
        path: In full, every `element`, `key` and `value` said.
        type: The type that stands there.
        column: The column or ROW member; None for a list's element, a map's key or value.
        part: Which of these it is.
        in_key: Whether it is a map's key or stands inside of one, which never changes.
    """

    path: Path
    type: DataType
    column: DataField | None
    part: Part = "column"
    in_key: bool = False

    def __str__(self) -> str:
        return dotted(self.path)


class NameIndex:
    """What every name of a schema stands for.

    Example:
        >>> from ledger.model.schema import Schema
        >>> from ledger.model.types.sql import read_type
        >>> stops = read_type("MAP<STRING, ROW<lat FLOAT>>")
        >>> index = NameIndex(Schema.of({"stops": stops}).fields)
        >>> index.find("stops.lat").path, index.find("STOPS")
        (('stops', 'value', 'lat'), None)
    """

    __slots__ = ("_full", "_short", "spots")

    def __init__(self, columns: Sequence[DataField]) -> None:
        self.spots: dict[Path, Spot] = {}
        self._full: dict[str, Spot] = {}
        self._short: dict[str, Spot] = {}
        for spot, short in _members(columns, (), (), in_key=False):
            self.spots[spot.path] = spot
            self._full.setdefault(dotted(spot.path), spot)
            self._short.setdefault(dotted(short), spot)

    def find(self, name: str) -> Spot | None:
        """Return what a name stands for, or None."""
        return self._full.get(name) or self._short.get(name)

    def find_ignoring_case(self, name: str) -> Spot | None:
        """Return what a name stands for in any case, or None.

        Raises:
            InvalidChangeError: It could mean more than one column.
        """
        wanted = name.lower()
        for names in (self._full, self._short):
            found = [spot for each, spot in names.items() if each.lower() == wanted]
            if len(found) > 1:
                raise argument(f"{name} could mean {' or '.join(map(str, found))}; mind the case")
            if found:
                return found[0]
        return None


_Found = tuple[Spot, Path]


def _members(
    members: Sequence[DataField], path: Path, short: Path, *, in_key: bool
) -> Iterator[_Found]:
    for each in members:
        spot = Spot((*path, each.name), each.type, each, in_key=in_key)
        named = (*short, each.name)
        yield spot, named
        yield from _inside(spot, named)


def _inside(spot: Spot, short: Path) -> Iterator[_Found]:
    if isinstance(spot.type, MultisetType):
        return
    for each in parts_of(spot.type):
        if each.field is not None:
            yield from _members([each.field], spot.path, short, in_key=spot.in_key)
        else:
            yield from _part(spot, each.type, cast("Part", each.name), short)


def _part(owner: Spot, data_type: DataType, part: Part, short: Path) -> Iterator[_Found]:
    in_key = owner.in_key or part == "key"
    spot = Spot((*owner.path, part), data_type, None, part, in_key)
    yield spot, (*short, part)
    is_skipped = isinstance(data_type, RowType) and part != "key"
    yield from _inside(spot, short if is_skipped else (*short, part))


@define
class Edit:
    """What changes of a column that exists; what is not set stays."""

    new_name: str | UnsetType = UNSET
    type: DataType | UnsetType = UNSET
    nullable: bool | UnsetType = UNSET
    doc: str | UnsetType | None = UNSET
    default: str | UnsetType | None = UNSET


@define(eq=False)
class Addition:
    """A new column.

    Attributes:
        parent: The struct that it stands in, in full; empty for a top-level column.
        name: Its name; a dot in it means nothing.
        alias: Its path as it was asked for.
        type: Its type, whatever ids stand in it.
        doc: Its comment.
        default: What older files read as, and new rows get.
        write_default: What new rows get instead, if that was changed since.
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


Target = Path | Addition
"""A column that exists, by its path in full, or one that is new."""


@define
class Placing:
    """A column that goes elsewhere among its siblings."""

    parent: Path
    column: Target
    type: MoveType
    reference: Target | None = None


@define
class Pending:
    """Everything that was asked of a schema, by the names that it had before.

    Attributes:
        schema: The schema before.
        deleted: Columns that go.
        edits: Columns that change, by their paths.
        additions: New columns, in the order of the calls, which is that of their ids.
        placings: Columns that move, one after the other.
        identifier_names: The wanted identifier fields; None to leave them as they are.
        allows_incompatible: Whether columns may become required although older rows may lack them.
        ignores_case: Whether names are found, and clash, whatever their case.
    """

    schema: Schema
    deleted: dict[Path, Spot] = field(factory=dict)
    edits: dict[Path, Edit] = field(factory=dict)
    additions: list[Addition] = field(factory=list)
    placings: list[Placing] = field(factory=list)
    identifier_names: tuple[str, ...] | None = None
    allows_incompatible: bool = False
    ignores_case: bool = False
    names: NameIndex = field(init=False)

    @names.default
    def _index(self) -> NameIndex:
        return NameIndex(self.schema.fields)

    def find(self, name: str) -> Spot | None:
        """Return what a name stands for in the schema before, or None."""
        return self.names.find_ignoring_case(name) if self.ignores_case else self.names.find(name)

    def addition(self, name: str) -> Addition | None:
        """Return the new column of that name, or None."""
        wanted = self.folded(name)
        for each in self.additions:
            if wanted in (self.folded(each.alias), self.folded(dotted(each.path))):
                return each
        return None

    def folded(self, name: str) -> str:
        """Return what two names have in common that clash."""
        return name.lower() if self.ignores_case else name

    def is_deleted(self, path: Path) -> bool:
        """Return whether a column, or one that it stands in, goes."""
        return any(path[:depth] in self.deleted for depth in range(1, len(path) + 1))

    def type_of(self, target: Spot | Addition) -> DataType:
        """Return a column's type as it will be; whether it is nullable does `is_nullable` say."""
        edit = None if isinstance(target, Addition) else self.edits.get(target.path)
        if edit is None or isinstance(edit.type, UnsetType):
            return target.type
        return edit.type

    def is_nullable(self, target: Spot | Addition) -> bool:
        """Return whether a column may be NULL as it will be."""
        edit = None if isinstance(target, Addition) else self.edits.get(target.path)
        if edit is None or isinstance(edit.nullable, UnsetType):
            return target.type.nullable
        return edit.nullable


@frozen
class StructUpdate:
    """One struct's members, before and afterwards.

    Attributes:
        parent: The struct's path before; empty for the table itself.
        before: Its members' names, in order.
        gone: Those that go.
        renames: Old name to new one, for those that are renamed.
        added: Its new members.
    """

    parent: Path
    before: tuple[str, ...]
    gone: tuple[str, ...]
    renames: dict[str, str]
    added: tuple[Addition, ...]

    @classmethod
    def of(cls, pending: Pending, parent: Path) -> Self:
        """Return what is pending for the struct at `parent`.

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
        made._check(pending)
        return made

    def _check(self, pending: Pending) -> None:
        seen: set[str] = set()
        for name in self._names_after():
            folded = pending.folded(name)
            if folded in seen:
                taken = dotted((*self.parent, name))
                raise ColumnExistsError(f"column {taken} exists already; choose another name")
            seen.add(folded)
        if not seen:
            raise argument(
                f"{dotted(self.parent) or 'the table'} would have no column left; "
                "delete the whole instead"
            )

    def _kept(self) -> list[str]:
        return [name for name in self.before if name not in self.gone]

    def _names_after(self) -> list[str]:
        kept = [self.renames.get(name, name) for name in self._kept()]
        return [*kept, *(each.name for each in self.added)]

    @property
    def _last_to_go(self) -> str | None:
        """The member that goes after the new ones came: a struct is never empty."""
        return None if self._kept() else self.before[-1]

    def result(self) -> list[Target]:
        """Return the members afterwards, in order, before any of them moves."""
        return [*((*self.parent, name) for name in self._kept()), *self.added]

    def drops(self) -> Iterator[SchemaChange]:
        """Yield the drops that come before anything is renamed or added."""
        for name in self.gone:
            if name != self._last_to_go:
                yield DropColumn((*self.parent, name))

    def late_drops(self, parent: Path) -> Iterator[SchemaChange]:
        """Yield the drop that has to wait for the new members; `parent` is the path by then."""
        last = self._last_to_go
        if last is not None:
            spare = self._spare(last) if self._is_wanted(last) else last
            yield DropColumn((*parent, spare))

    def renames_in_order(self) -> Iterator[SchemaChange]:
        """Yield the renames such that no two members ever have one name."""
        waiting = {old: new for old, new in self.renames.items() if old != new}
        last = self._last_to_go
        if last is not None and self._is_wanted(last):
            waiting[last] = self._spare(last)
        there = {*self._kept(), *((last,) if last else ())}
        while waiting:
            old = next((each for each, new in waiting.items() if new not in there), None)
            if old is None:
                # They change places in a circle: one of them steps aside.
                old = next(iter(waiting))
                aside = self._spare(old)
                waiting[aside] = waiting[old]
                waiting[old] = aside
            new = waiting.pop(old)
            there.symmetric_difference_update({old, new})
            yield RenameColumn((*self.parent, old), new)

    def _is_wanted(self, name: str) -> bool:
        return any(each.name == name for each in self.added)

    def _spare(self, name: str) -> str:
        taken = {*self.before, *self._names_after()}
        while name in taken:
            name += "_"
        return name
