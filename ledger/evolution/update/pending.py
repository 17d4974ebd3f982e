"""What an update of a schema wants so far, before any of it is compiled."""

from __future__ import annotations

from attrs import define, field
from msgspec import UNSET, UnsetType

from ledger.events.schema_changes import MoveType
from ledger.evolution.tree.paths import dotted
from ledger.evolution.update.names import NameIndex, Path, Spot
from ledger.model.schema import Schema
from ledger.model.types import DataType


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
