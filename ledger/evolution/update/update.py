"""Iceberg's way to ask for changes of a schema: all of them against the schema as it was.

Source: the Iceberg reference implementation's UpdateSchema.
"""

from __future__ import annotations

from typing import Self

from msgspec import UNSET, UnsetType

from ledger.events.schema_changes import MoveType, SchemaChange
from ledger.evolution.declared.rules import Rules
from ledger.evolution.refusals import argument, state, unsupported
from ledger.evolution.tree.paths import dotted
from ledger.evolution.update.compile import compile_changes
from ledger.evolution.update.find import (
    Name,
    column_of,
    movable,
    parts,
    refuse_deleted,
    struct_of,
    target_of,
    text,
)
from ledger.evolution.update.names import Spot
from ledger.evolution.update.pending import Addition, Edit, Pending, Placing
from ledger.evolution.update.union import union_columns
from ledger.model import arguments as its
from ledger.model.arguments import takes
from ledger.model.errors import ColumnExistsError
from ledger.model.messages.excerpt import excerpt
from ledger.model.schema import Schema
from ledger.model.types import DataType
from ledger.model.types.casting import can_promote
from ledger.model.types.sql import read_type
from ledger.model.types.text import format_type

_DOC = its.Form(
    "a text, or None", lambda value: value is UNSET or value is None or isinstance(value, str)
)


class SchemaUpdate:
    """An update in the making. Names mean what they meant before it; each call returns itself.

    A list's `element` and a map's `value` may be left out of a path where they are structs. What
    contradicts the schema or an earlier call is refused at once; what only the result shows (two
    columns of one name) by `changes`.

    Example:
        >>> update = SchemaUpdate(Schema.of({"a": "INT", "b": "STRING"}))
        >>> _ = update.rename_column("a", "b").rename_column("b", "a").move_first("b")
        >>> [type(each).__name__ for each in update.changes()]
        ['RenameColumn', 'RenameColumn', 'RenameColumn', 'UpdateColumnPosition']
    """

    def __init__(self, schema: Schema) -> None:
        self._pending = Pending(schema)

    @property
    def allows_incompatible(self) -> bool:
        """Whether columns may become required although older rows may lack them."""
        return self._pending.allows_incompatible

    def changes(self) -> tuple[SchemaChange, ...]:
        """Return the changes that, one after the other, have the wanted effect.

        Raises:
            InvalidChangeError: The result would be no schema.
        """
        return compile_changes(self._pending)

    @takes(doc=its.words.or_none())
    def add_column(
        self,
        name: Name,
        data_type: DataType | str,
        *,
        doc: str | None = None,
        required: bool = False,
        default: str | None = None,
    ) -> Self:
        """Add a column at the end of its struct; ids are given out in the order of the calls.

        Args:
            name: A name without a dot for a top-level column, else a tuple: `("address", "zip")`.
            data_type: Its type, or the text of one, such as `ROW<x INT>`; ids inside do not matter.
            doc: Its comment.
            required: Whether it is never NULL; older rows then need a default.
            default: What older files read as and new rows get, as text.

        Raises:
            ColumnExistsError: The name is taken, by a column that keeps another name, too.
            ColumnNotFoundError: There is no such struct.
            InvalidChangeError: A name with a dot could mean a path, the struct goes, or older rows
                have no value.
        """
        if isinstance(name, str) and "." in name:
            raise argument(f"{name} could mean a path or a name; give a tuple of its parts")
        above, last = parts(name)[:-1], parts(name)[-1]
        parent = struct_of(self._pending, above, last) if above else ()
        added = Addition(parent, last, dotted((*above, last)), _type(data_type), doc, default)
        self._check_free(added)
        if default is not None and added.type.depth:
            raise argument(f"column {added.alias} is {added.type.root}, which has no default")
        added.type = added.type.with_nullability(added.type.nullable and not required)
        if not added.type.nullable and default is None:
            self._check_allowed(f"column {added.alias} cannot be added as required")
        self._pending.additions.append(added)
        return self

    def delete_column(self, name: Name) -> Self:
        """Delete a column; its id never comes back.

        Raises:
            ColumnNotFoundError: There was none before this update.
            InvalidChangeError: It is a list's element or a map's key or value, or this update
                changes it or adds to it.
        """
        spot = column_of(self._pending, name, "deleted")
        if spot.path in self._pending.edits:
            raise argument(f"column {spot} has updates; it cannot be deleted in the same update")
        if any(each.parent[: len(spot.path)] == spot.path for each in self._pending.additions):
            raise argument(f"column {spot} has additions; it cannot be deleted in the same update")
        self._pending.deleted[spot.path] = spot
        return self

    def rename_column(self, name: Name, new_name: str) -> Self:
        """Rename a column; a dot in the new name means nothing. Go on using the old name here.

        Raises:
            ColumnNotFoundError: There was none before this update.
            InvalidChangeError: It is to be deleted, or has no name of its own.
        """
        spot = column_of(self._pending, name, "renamed")
        (new_name,) = parts((new_name,))
        refuse_deleted(self._pending, spot)
        self._edit(spot).new_name = new_name
        return self

    @takes(doc=_DOC)
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
            data_type: A type that it can be promoted to; whether it may be NULL stays.
            doc: The comment; None removes it.
            default: What new rows get, as text; None removes it. Older files stay as they read.

        Raises:
            ColumnNotFoundError: There is none, new or old.
            InvalidChangeError: It is to be deleted, stands in a map's key, cannot become that
                type, or has no single value to be a default.
        """
        target = target_of(self._pending, name)
        if not isinstance(data_type, UnsetType):
            self._retype(target, _type(data_type))
        if not isinstance(doc, UnsetType):
            self._comment(target, doc)
        if not isinstance(default, UnsetType):
            self._default(target, default)
        return self

    def make_optional(self, name: Name) -> Self:
        """Let a column be NULL.

        Raises:
            ColumnNotFoundError: There is none, new or old.
            InvalidChangeError: It is to be deleted, or stands in a map's key.
        """
        self._set_nullable(target_of(self._pending, name), nullable=True)
        return self

    def require(self, name: Name) -> Self:
        """Forbid NULL in a column.

        Raises:
            ColumnNotFoundError: There is none, new or old.
            InvalidChangeError: Older rows may hold NULL, it is to be deleted, or stands in a map's
                key.
        """
        target = target_of(self._pending, name)
        if not self._pending.is_nullable(target):
            return self
        if not isinstance(target, Addition) or target.default is None:
            self._check_allowed(f"column {_named(target)} cannot become required")
        self._set_nullable(target, nullable=False)
        return self

    def move_first(self, name: Name) -> Self:
        """Move a column to the beginning of its struct.

        Raises:
            ColumnNotFoundError, InvalidChangeError: As `move_before`.
        """
        return self._move(name, "FIRST")

    def move_before(self, name: Name, reference: Name) -> Self:
        """Move a column before another one of its struct; new columns move, too.

        Raises:
            ColumnNotFoundError: One of them does not exist.
            InvalidChangeError: One of them goes, they are one, or of different structs.
        """
        return self._move(name, "BEFORE", reference)

    def move_after(self, name: Name, reference: Name) -> Self:
        """Move a column after another one of its struct; new columns move, too.

        Raises:
            ColumnNotFoundError, InvalidChangeError: As `move_before`.
        """
        return self._move(name, "AFTER", reference)

    def set_identifier_fields(self, *names: Name) -> Self:
        """Say which columns together identify a row; none: that nothing does.

        Columns that this update adds may be named. Whether they exist and can identify a row is
        looked at in the end.
        """
        self._pending.identifier_names = tuple(map(text, names))
        return self

    def union_by_name(self, schema: Schema) -> Self:
        """Add what another schema has more, and widen what it has wider; nothing goes.

        New columns are optional. A narrower type, a required column and a column that the other
        schema lacks change nothing; its comments and defaults for new rows are taken.

        Raises:
            InvalidChangeError: A column has a type that neither can become.
        """
        if not isinstance(schema, Schema):
            raise argument(f"{excerpt(schema)} is no Schema; give one")
        union_columns(self, self._pending, schema.fields)
        return self

    def allow_incompatible_changes(self) -> Self:
        """Let this update make columns required although older rows may lack them."""
        self._pending.allows_incompatible = True
        return self

    def case_sensitive(self, sensitive: bool) -> Self:  # noqa: FBT001 - the value, not a switch
        """Say whether names of another case are other names, as they are unless told so."""
        self._pending.ignores_case = not sensitive
        return self

    def _check_free(self, added: Addition) -> None:
        name = dotted(added.path)
        there = self._pending.find(name)
        taken = there is not None and not self._pending.is_deleted(there.path)
        if taken or self._pending.addition(name) is not None:
            raise ColumnExistsError(f"column {name} exists already; choose another name")

    def _check_allowed(self, refusal: str) -> None:
        if not self._pending.allows_incompatible:
            raise unsupported(
                f"{refusal}: older rows have no value; give it a default when adding it, or call "
                "allow_incompatible_changes() first"
            )

    def _edit(self, spot: Spot) -> Edit:
        return self._pending.edits.setdefault(spot.path, Edit())

    def _retype(self, target: Spot | Addition, wanted: DataType) -> None:
        now = self._pending.type_of(target)
        if now.with_nullability(nullable=True) == wanted.with_nullability(nullable=True):
            return
        if now.depth or wanted.depth:
            raise state(f"column {_named(target)} is {now.root}; change what it holds instead")
        version = Rules.of(self._pending.schema.options).format_version
        if not can_promote(now, wanted, format_version=version):
            raise state(
                f"column {_named(target)}: {format_type(now)} cannot become {format_type(wanted)} "
                "without rewriting files; add a column instead"
            )
        kept = wanted.with_nullability(now.nullable)
        if isinstance(target, Addition):
            target.type = kept
        else:
            self._edit(target).type = kept

    def _comment(self, target: Spot | Addition, doc: str | None) -> None:
        if isinstance(target, Addition):
            target.doc = doc
        elif target.column is None:
            raise argument(f"{target} is a {target.part}, which has no comment of its own")
        elif doc != target.column.description or target.path in self._pending.edits:
            self._edit(target).doc = doc

    def _default(self, target: Spot | Addition, default: str | None) -> None:
        if self._pending.type_of(target).depth and default is not None:
            raise argument(f"column {_named(target)} is nested, so it has no default")
        if isinstance(target, Addition):
            target.write_default = default
        elif target.column is None:
            raise argument(f"{target} is a {target.part}, which has no default of its own")
        elif default != target.column.default_value or target.path in self._pending.edits:
            self._edit(target).default = default

    def _set_nullable(self, target: Spot | Addition, *, nullable: bool) -> None:
        if self._pending.is_nullable(target) is nullable:
            return
        if isinstance(target, Addition):
            target.type = target.type.with_nullability(nullable)
        else:
            self._edit(target).nullable = nullable

    def _move(self, name: Name, kind: MoveType, reference: Name | None = None) -> Self:
        mover, parent = movable(self._pending, name)
        if reference is None:
            self._pending.placings.append(Placing(parent, mover, kind))
            return self
        other, around = movable(self._pending, reference)
        if around != parent:
            raise argument(f"{text(name)} and {text(reference)} are not of one struct")
        if other == mover:
            raise argument(f"column {text(name)} cannot move {kind} itself")
        self._pending.placings.append(Placing(parent, mover, kind, other))
        return self


def _named(target: Spot | Addition) -> str:
    return dotted(target.path)


def _type(given: DataType | str) -> DataType:
    if isinstance(given, DataType):
        return given
    if isinstance(given, str):
        return read_type(given)
    raise argument(f"{excerpt(given)} is no data type; give one, or its text")
