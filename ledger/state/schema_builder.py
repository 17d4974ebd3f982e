"""SchemaBuilder: the mutable schema inside a fold.

The fold is mechanical and strict. It has no option guards and no table rules (those were checked
when the event was written), but it rejects an event that contradicts the state before it. Its rules
for events already written never change; new rules come as new events.

Only the types along the path to the nested column are rebuilt.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import Any, TypedDict, assert_never, cast

from attrs import evolve
from msgspec import UNSET

import ledger.state.columns as struct_edits
from ledger.events.schema import (
    ColumnAdded,
    ColumnCommentUpdated,
    ColumnDefaultValueUpdated,
    ColumnDropped,
    ColumnMoved,
    ColumnNullabilityUpdated,
    ColumnRenamed,
    ColumnTypeUpdated,
    ColumnUndropped,
    DropPrimaryKey,
    IdentifierFieldsSet,
    Move,
    MoveType,
    RemoveOption,
    SchemaEvent,
    SetOption,
    UpdateComment,
    UpdateKeys,
)
from ledger.model.column_index import column_index_of, reuse_indexed_columns
from ledger.model.errors import ColumnExistsError, ColumnNotFoundError, InvalidChangeError
from ledger.model.messages import name_hint
from ledger.model.schema import (
    FieldIdPolicy,
    Schema,
    highest_field_id,
)
from ledger.model.types import DataField, DataType, RowType, walk_ids
from ledger.model.types.text import parse_type
from ledger.model.types.wire import TypeJson, type_from_wire
from ledger.state.columns import Members, dotted, edit_type, resolve_path, with_type
from ledger.state.linked_order import LinkedOrder
from ledger.state.struct_members import StructMembers


class EditableColumn(TypedDict):
    """A column being changed. Building a `DataField` for every event would dominate a replay."""

    id: int
    name: str
    type: DataType
    description: str | None
    default_value: str | None
    initial_default: str | None


class ColumnStore:
    """Columns in order, each either a finished `DataField` or open for change.

    Most commits change no column, so the index is built on first use. Only moves need an order
    that links neighbours; it lasts until all columns are read.
    """

    __slots__ = ("_columns", "_given", "_ids", "_live_ids", "_open", "_order")

    def __init__(self, columns: tuple[DataField, ...]) -> None:
        self._given: tuple[DataField, ...] | None = columns
        # The dict keeps the order; None is the placeholder of a column in `_open`.
        self._columns: dict[int, DataField | None] = {}
        self._open: dict[int, EditableColumn] = {}
        self._ids: dict[str, int] = {}
        self._order: LinkedOrder | None = None
        self._live_ids: set[int] | None = None

    def _index_columns(self, given: tuple[DataField, ...]) -> None:
        self._given = None
        found = column_index_of(given)
        self._columns = {**found.by_id}
        # By way of the ids: where one occurred twice, both maps hold the same column.
        self._ids = {**found.ids}

    def _linked_order(self) -> LinkedOrder:
        if self._given is not None:
            self._index_columns(self._given)
        if self._order is None:
            self._order = LinkedOrder(self._columns)
        return self._order

    def __len__(self) -> int:
        return len(self.names)

    def __iter__(self) -> Iterator[DataField]:
        return iter(self.by_id().values())

    @property
    def first(self) -> DataField:
        """The first column."""
        # None stands for no column; a table has at least one.
        return self._finish(cast("int", self._linked_order().after(None)))

    @property
    def last(self) -> DataField:
        """The last column."""
        return self._finish(cast("int", self._linked_order().before(None)))

    def has_name(self, name: str) -> bool:
        """Return whether there is a column of that name."""
        return name in self.names

    def named(self, name: str) -> DataField | None:
        """Return the column of that name, finished; None where there is none."""
        return self.find((name,)) if name in self.names else None

    def with_id(self, field_id: int) -> DataField | None:
        """Return the column of that id, finished; None where there is none."""
        if self._given is not None:
            self._index_columns(self._given)
        return self._finish(field_id) if field_id in self._columns else None

    def before(self, field_id: int) -> int | None:
        """Return the id of the column directly before another one; None for the first."""
        return self._linked_order().before(field_id)

    def live_ids(self) -> AbstractSet[int]:
        """Return the ids of all columns and of everything nested in them."""
        if self._live_ids is None:
            columns = self.by_id().values()
            self._live_ids = {
                found for each in columns for found in (each.id, *walk_ids(each.type))
            }
        return self._live_ids

    @property
    def names(self) -> Mapping[str, int]:
        """Column name to field id."""
        if self._given is not None:
            self._index_columns(self._given)
        return self._ids

    def in_order(self) -> tuple[DataField, ...]:
        """Return all columns, finished."""
        return (
            reuse_indexed_columns(tuple(self.by_id().values()))
            if self._given is None
            else self._given
        )

    def by_id(self) -> Mapping[int, DataField]:
        """Return all columns, finished, in order."""
        if self._given is not None:
            return column_index_of(self._given).by_id
        for field_id, column in self._open.items():
            self._columns[field_id] = DataField(**column)
        self._open.clear()
        if self._order is not None:
            self._columns = {each: self._columns[each] for each in self._order}
            self._order = None
        # None is open now, so every column is present.
        return cast("dict[int, DataField]", self._columns).copy()

    def find(self, path: tuple[str, ...]) -> DataField:
        """Return the column that a path begins with, finished.

        Raises:
            ColumnNotFoundError: There is none.
            InvalidChangeError: The path is empty.
        """
        return self._finish(self.id_of(path))

    def _finish(self, field_id: int) -> DataField:
        column = self._columns[field_id]
        if column is None:
            column = self._columns[field_id] = DataField(**self._open.pop(field_id))
        return column

    def id_of(self, path: tuple[str, ...]) -> int:
        """Return the id of the column that a path begins with.

        Raises:
            ColumnNotFoundError: There is none.
            InvalidChangeError: The path is empty.
        """
        if not path:
            raise InvalidChangeError("fieldNames is empty: name the column, like ['price']")
        if self._given is not None:
            self._index_columns(self._given)
        field_id = self._ids.get(path[0])
        if field_id is None:
            raise ColumnNotFoundError(
                f"column {path[0]} does not exist; {name_hint(path[0], self._ids)}"
            )
        return field_id

    def check_column_id(self, name: str, field_id: int) -> None:
        """Reject an event about another column than the one of that name.

        Raises:
            InvalidChangeError: The column is missing or has another id.
        """
        found = self.id_of((name,))
        if found != field_id:
            raise wrong_id_error((name,), field_id, found)

    def check_name_is_free(self, name: str) -> None:
        """Reject a name that is taken.

        Raises:
            ColumnExistsError: It is.
        """
        if self._given is not None:
            self._index_columns(self._given)
        if name in self._ids:
            raise ColumnExistsError(f"column {name} exists already; choose another name")

    def open_for_edit(self, name: str, field_id: int) -> EditableColumn:
        """Return the column of that name and id for changes; its name changes by `rename` only.

        Raises:
            InvalidChangeError: The column is missing or has another id.
        """
        if self._given is not None:
            self._index_columns(self._given)
        if self._ids.get(name) != field_id:
            raise wrong_id_error((name,), field_id, self.id_of((name,)))
        opened = self._open.get(field_id)
        if opened is None:
            column = self.find((name,))
            opened = self._open[field_id] = {
                "id": field_id,
                "name": column.name,
                "type": column.type,
                "description": column.description,
                "default_value": column.default_value,
                "initial_default": column.initial_default,
            }
            self._columns[field_id] = self._live_ids = None
        return opened

    def append(
        self,
        field_id: int,
        name: str,
        data_type: DataType,
        comment: str | None,
        default: str | None,
    ) -> None:
        """Add a column at the end. Its name must be free (`check_name_is_free`) and its id new."""
        self._live_ids = None
        if self._order is not None:
            self._order.insert(field_id, self._order.before(None))
        self._columns[field_id] = None
        self._open[field_id] = {
            "id": field_id,
            "name": name,
            "type": data_type,
            "description": comment,
            "default_value": default,
            "initial_default": default,
        }
        self._ids[name] = field_id

    def rename(self, name: str, field_id: int, new_name: str) -> None:
        """Rename a column in place.

        Raises:
            InvalidChangeError: The column is missing or has another id.
            ColumnExistsError: The new name is taken.
        """
        column = self.open_for_edit(name, field_id)
        if new_name in self._ids:
            self.check_name_is_free(new_name)
        column["name"] = new_name
        self._ids[new_name] = self._ids.pop(name)

    def insert(self, column: DataField, move: Move | None) -> None:
        """Add a finished column where `move` says, or at the end. Its id must be new.

        Raises:
            ColumnExistsError: The name is taken.
            ColumnNotFoundError: The move's reference does not exist.
        """
        self.check_name_is_free(column.name)
        reference = None if move is None else self._reference_id(move)
        order = self._linked_order()
        order.insert(
            column.id, _predecessor(order, "LAST" if move is None else move.type, reference)
        )
        self._columns[column.id] = column
        self._ids[column.name] = column.id
        if self._live_ids is not None:
            self._live_ids.update((column.id, *walk_ids(column.type)))

    def move(self, event: ColumnMoved) -> None:
        """Move a column.

        Raises:
            ColumnNotFoundError: The column or the reference does not exist.
            InvalidChangeError: One of them has another id, or both are one column.
        """
        move = event.move
        self.check_column_id(move.field_name, event.field_id)
        if event.reference_id is not UNSET and move.reference_field_name is not None:
            self.check_column_id(move.reference_field_name, event.reference_id)
        struct_edits.check_not_own_reference(move)
        reference = self._reference_id(move)
        order = self._linked_order()
        order.remove(event.field_id)
        order.insert(event.field_id, _predecessor(order, move.type, reference))

    def _reference_id(self, move: Move) -> int | None:
        if move.type in {"FIRST", "LAST"}:
            return None
        reference = self.names.get(move.reference_field_name or "")
        if reference is None:
            raise struct_edits.missing_reference_error(move)
        return reference

    def remove(self, name: str) -> None:
        """Remove a column. It must exist (`check_column_id`)."""
        field_id = self._ids.pop(name)
        if self._order is not None:
            self._order.remove(field_id)
        self._live_ids = None
        del self._columns[field_id]
        self._open.pop(field_id, None)

    def replace(self, column: DataField) -> None:
        """Replace the column of the same id and name by a finished one."""
        self._live_ids = None
        self._columns[column.id] = column


def _predecessor(order: LinkedOrder, kind: MoveType, reference: int | None) -> int | None:
    """Return the id before the position that a move gives; None for the first position."""
    match kind:
        case "FIRST":
            return None
        case "LAST":
            return order.before(None)
        case "AFTER":
            return reference
        case "BEFORE":
            return None if reference is None else order.before(reference)
        case _:
            assert_never(kind)


def wrong_id_error(path: tuple[str, ...], said: int, found: int) -> InvalidChangeError:
    """Return the error for an event about another column than the one at its path."""
    return InvalidChangeError(f"column {dotted(path)} has id {found}, but the event says {said}")


def add(column: DataField, event: ColumnAdded | ColumnUndropped, new: DataField) -> DataField:
    """Return the column with a new member inside.

    Raises:
        InvalidChangeError: The parent is missing, is not a ROW, has another id, or has the name.
    """
    path = event.field_names
    owner = resolve_path(column, path[:-1]).owner
    if event.parent_id is not UNSET and owner.id != event.parent_id:
        raise wrong_id_error(path[:-1], event.parent_id, owner.id)
    return _edit_row_members(
        column, path, lambda members: struct_edits.add_member(members, new, event.move, path)
    )


def rename(column: DataField, event: ColumnRenamed) -> DataField:
    """Return the column with a member renamed.

    Raises:
        InvalidChangeError: The member is missing, has another id, or the new name is taken.
    """
    path = event.field_names
    return _edit_row_members(
        column,
        path,
        lambda members: struct_edits.rename_member(members, path, event.field_id, event.new_name),
    )


def drop(column: DataField, event: ColumnDropped) -> DataField:
    """Return the column without a member.

    Raises:
        InvalidChangeError: The member is missing, has another id, or is the last one.
    """
    path = event.field_names
    return _edit_row_members(
        column, path, lambda members: struct_edits.drop_member(members, path, event.field_id)
    )


def move(column: DataField, event: ColumnMoved) -> DataField:
    """Return the column with a member moved among its siblings.

    Raises:
        InvalidChangeError: The member or the reference is missing, or has another id.
    """
    return _edit_row_members(
        column,
        event.field_names,
        lambda members: struct_edits.move_member(
            members, event.move, event.field_id, event.reference_id
        ),
    )


def comment(column: DataField, event: ColumnCommentUpdated) -> DataField:
    """Return the column with a member's comment set.

    Raises:
        InvalidChangeError: The member is missing or has another id.
    """

    def commented(member: DataField) -> DataField:
        return evolve(member, description=event.new_comment)

    return _edit_member(column, event, commented)


def default(column: DataField, event: ColumnDefaultValueUpdated) -> DataField:
    """Return the column with a member's default set.

    Raises:
        InvalidChangeError: The member is missing or has another id.
    """

    def defaulted(member: DataField) -> DataField:
        return evolve(member, default_value=event.new_default_value)

    return _edit_member(column, event, defaulted)


def edit_type_at(
    column: DataField,
    path: tuple[str, ...],
    field_id: int,
    edit: Callable[[DataType], DataType],
) -> DataField:
    """Return the column with the type at a path edited; the path may end inside a wrapper.

    Raises:
        InvalidChangeError: The place is missing, or the named field around it has another id.
    """
    owner = resolve_path(column, path).owner
    if owner.id != field_id:
        raise wrong_id_error(path, field_id, owner.id)
    return with_type(column, edit_type(column.type, path, edit))


def _edit_member(
    column: DataField,
    event: ColumnCommentUpdated | ColumnDefaultValueUpdated,
    edit: Callable[[DataField], DataField],
) -> DataField:
    path = event.field_names
    return _edit_row_members(
        column, path, lambda members: struct_edits.edited(members, path, event.field_id, edit)
    )


def _edit_row_members(
    column: DataField, path: tuple[str, ...], edit: Callable[[Members], Members]
) -> DataField:
    """Edit the members of the ROW that holds the last segment of a path."""
    parent = path[:-1]

    def edit_row(data_type: DataType) -> DataType:
        if not isinstance(data_type, RowType):
            raise InvalidChangeError(
                f"{dotted(path)}: {dotted(parent)} is of type {data_type.root}, not a ROW"
            )
        return RowType(edit(data_type.fields), nullable=data_type.nullable)

    return with_type(column, edit_type(column.type, parent, edit_row))


class SchemaBuilder:
    """A schema being changed. Private to a fold: `freeze` returns it as a value.

    Attributes:
        partition_keys: Column names.
        primary_keys: Column names; a renamed key column is renamed here, too.
        options: Table options.
        comment: None when the table has none.
        highest_field_id: The highest id ever assigned, at any depth.
        identifier_field_ids: As in `Schema`.
        field_id_policy: As in `Schema`.

    Args:
        schema: The schema to start from, which is not modified.
    """

    __slots__ = (
        "_columns",
        "comment",
        "field_id_policy",
        "highest_field_id",
        "identifier_field_ids",
        "options",
        "partition_keys",
        "primary_keys",
    )

    def __init__(self, schema: Schema) -> None:
        self._columns = ColumnStore(schema.fields)
        self.partition_keys: tuple[str, ...] = schema.partition_keys
        self.primary_keys: tuple[str, ...] = schema.primary_keys
        self.options: dict[str, str] = dict(schema.options)
        self.comment: str | None = schema.comment
        self.highest_field_id: int = schema.highest_field_id
        self.identifier_field_ids: tuple[int, ...] = schema.identifier_field_ids
        self.field_id_policy: FieldIdPolicy = schema.field_id_policy

    @property
    def columns(self) -> Mapping[int, DataField]:
        """Top-level columns by field id, in column order, as of now."""
        return self._columns.by_id()

    @property
    def names(self) -> Mapping[str, int]:
        """Top-level column name to field id."""
        return self._columns.names

    @property
    def members(self) -> StructMembers:
        """Top-level columns, each as of now; reading one does not read all."""
        return self._columns

    @property
    def live_ids(self) -> AbstractSet[int]:
        """Field ids of all columns and of everything nested in them."""
        return self._columns.live_ids()

    def column(self, path: tuple[str, ...]) -> DataField:
        """Return the top-level column that a path begins with.

        Raises:
            ColumnNotFoundError: There is none.
            InvalidChangeError: The path is empty.
        """
        return self._columns.find(path)

    def freeze(self, *, schema_id: int, time_millis: int) -> Schema:
        """Return the current schema, with this id and time."""
        return Schema(
            fields=self._columns.in_order(),
            partition_keys=self.partition_keys,
            primary_keys=self.primary_keys,
            options=self.options,
            comment=self.comment,
            id=schema_id,
            highest_field_id=self.highest_field_id,
            time_millis=time_millis,
            identifier_field_ids=self.identifier_field_ids,
            field_id_policy=self.field_id_policy,
        )

    def apply(self, event: SchemaEvent) -> None:
        """Apply one event.

        Raises:
            InvalidChangeError: The event contradicts the state: an id or a name that does not
                exist, exists already, or belongs to another column.
        """
        (SCHEMA_RULES.get(type(event)) or schema_rule(event))(self, event)

    def add(self, event: ColumnAdded) -> None:
        """Add a column whose ids are all new."""
        path, field_id = event.field_names, event.field_id
        highest = self.highest_field_id
        data_type = _parse_type(event.data_type)
        if field_id <= highest:
            raise InvalidChangeError(
                f"{dotted(path)}: id {field_id} is not new; ids up to {highest} were assigned"
            )
        if data_type.depth:
            highest = self._highest_id_with(path, data_type, field_id)
        if len(path) == 1:
            self._add_column(path[0], data_type, event)
        else:
            new = _new_field(path[-1] if path else "", data_type, event)
            self._columns.replace(add(self.column(path), event, new))
        self.highest_field_id = max(highest, field_id)

    def _add_column(self, name: str, data_type: DataType, event: ColumnAdded) -> None:
        self._columns.check_name_is_free(name)
        move = event.move
        if move is None or move.type == "LAST":
            self._columns.append(
                event.field_id, name, data_type, event.comment, event.default_value
            )
        else:
            self._columns.insert(_new_field(name, data_type, event), move)

    def _highest_id_with(self, path: tuple[str, ...], data_type: DataType, *outer: int) -> int:
        """Return the highest id assigned after adding `data_type`, if all of its ids are new."""
        ids = [*outer, *walk_ids(data_type)]
        if len(set(ids)) < len(ids) or any(each <= self.highest_field_id for each in ids):
            raise InvalidChangeError(
                f"{dotted(path)}: ids {sorted(ids)} must be new and assigned once; "
                f"ids up to {self.highest_field_id} were assigned"
            )
        return max(ids, default=self.highest_field_id)

    def rename(self, event: ColumnRenamed) -> None:
        """Rename a column in place; a key column is renamed in the primary key, too."""
        path, new_name = event.field_names, event.new_name
        if len(path) != 1:
            self._columns.replace(rename(self.column(path), event))
            return
        old_name = path[0]
        if old_name in self.partition_keys:
            raise InvalidChangeError(f"{old_name} is a partition key, which keeps its name")
        self._columns.rename(old_name, event.field_id, new_name)
        if old_name in self.primary_keys:
            self.primary_keys = tuple(
                new_name if each == old_name else each for each in self.primary_keys
            )

    def drop(self, event: ColumnDropped) -> None:
        """Drop a column that is in no key and not the last."""
        path = event.field_names
        if len(path) != 1:
            self._columns.replace(drop(self.column(path), event))
            return
        self._columns.check_column_id(path[0], event.field_id)
        if path[0] in self.primary_keys or path[0] in self.partition_keys:
            raise InvalidChangeError(f"{path[0]} is part of a key; a key column cannot be dropped")
        if len(self.names) == 1:
            raise InvalidChangeError(f"{path[0]} is the table's last column; it cannot be dropped")
        self._columns.remove(path[0])

    def undrop(self, event: ColumnUndropped) -> None:
        """Restore a column under ids that were assigned before and that no column has now."""
        path, data_type = event.field_names, _parse_type(event.data_type)
        ids = [event.field_id, *walk_ids(data_type)]
        is_live = not self._columns.live_ids().isdisjoint(ids)
        if len(set(ids)) < len(ids) or max(ids) > self.highest_field_id or is_live:
            raise InvalidChangeError(
                f"{dotted(path)}: ids {sorted(ids)} are not those of a column that was dropped; "
                f"ids up to {self.highest_field_id} were assigned"
            )
        new = DataField(
            event.field_id,
            path[-1] if path else "",
            data_type,
            event.comment,
            event.default_value,
            event.initial_default,
        )
        if len(path) == 1:
            self._columns.insert(new, event.move)
        else:
            self._columns.replace(add(self.column(path), event, new))

    def update_type(self, event: ColumnTypeUpdated) -> None:
        """Change the type at a path."""
        path, target, keep = (
            event.field_names,
            _parse_type(event.new_data_type),
            event.keep_nullability,
        )
        highest = self.highest_field_id
        if target.depth:
            highest = self._highest_id_with(path, target)
        if len(path) == 1:
            column = self._columns.open_for_edit(path[0], event.field_id)
            nullable = column["type"].nullable if keep else target.nullable
            column["type"] = target.with_nullability(nullable)
        else:
            self._columns.replace(
                edit_type_at(
                    self.column(path),
                    path,
                    event.field_id,
                    lambda source: target.with_nullability(source.nullable) if keep else target,
                )
            )
        self.highest_field_id = highest

    def update_nullability(self, event: ColumnNullabilityUpdated) -> None:
        """Allow or forbid NULL at a path."""
        path, nullable = event.field_names, event.new_nullability
        if len(path) == 1:
            column = self._columns.open_for_edit(path[0], event.field_id)
            column["type"] = column["type"].with_nullability(nullable)
            return
        self._columns.replace(
            edit_type_at(
                self.column(path),
                path,
                event.field_id,
                lambda source: source.with_nullability(nullable),
            )
        )

    def update_comment(self, event: ColumnCommentUpdated) -> None:
        """Set a column's comment."""
        path = event.field_names
        if len(path) == 1:
            self._columns.open_for_edit(path[0], event.field_id)["description"] = event.new_comment
        else:
            self._columns.replace(comment(self.column(path), event))

    def update_default(self, event: ColumnDefaultValueUpdated) -> None:
        """Set a column's default."""
        path = event.field_names
        if len(path) == 1:
            self._columns.open_for_edit(path[0], event.field_id)["default_value"] = (
                event.new_default_value
            )
        else:
            self._columns.replace(default(self.column(path), event))

    def move(self, event: ColumnMoved) -> None:
        """Move a column among its siblings."""
        if len(event.field_names) > 1:
            self._columns.replace(move(self.column(event.field_names), event))
            return
        self._columns.move(event)

    def replace(self, fields: tuple[DataField, ...], identifier_field_ids: tuple[int, ...]) -> None:
        """Replace all columns; ids that were assigned stay so."""
        self._columns = ColumnStore(fields)
        self.identifier_field_ids = identifier_field_ids
        self.highest_field_id = max(self.highest_field_id, highest_field_id(fields))

    def set_option(self, event: SetOption) -> None:
        """Set a table option."""
        self.options[event.key] = event.value

    def remove_option(self, event: RemoveOption) -> None:
        """Remove a table option; one that is not set is no contradiction."""
        self.options.pop(event.key, None)

    def update_table_comment(self, event: UpdateComment) -> None:
        """Set the table's comment."""
        self.comment = event.comment

    def drop_primary_key(self, _event: DropPrimaryKey) -> None:
        """Empty the primary key; its columns stay as they are."""
        self.primary_keys = ()

    def update_keys(self, event: UpdateKeys) -> None:
        """Set both key lists to columns that exist."""
        for name in (*event.partition_keys, *event.primary_keys):
            self._columns.id_of((name,))
        self.partition_keys = event.partition_keys
        self.primary_keys = event.primary_keys

    def set_identifier_fields(self, event: IdentifierFieldsSet) -> None:
        """Set the identifier fields."""
        self.identifier_field_ids = event.field_ids


SchemaRule = Callable[[SchemaBuilder, Any], None]
SCHEMA_RULES: dict[type, SchemaRule] = {}
"""The rule for each kind of event: one dict look-up, where `match` tests kind by kind."""


def schema_rule(event: SchemaEvent) -> SchemaRule:
    """Return the rule that applies events of this one's kind."""
    rule = SCHEMA_RULES[type(event)] = _find_schema_rule(event)
    return rule


def _find_schema_rule(  # noqa: C901, PLR0911, PLR0912 - one case an event
    event: SchemaEvent,
) -> SchemaRule:
    match event:
        case ColumnAdded():
            return SchemaBuilder.add
        case SetOption():
            return SchemaBuilder.set_option
        case ColumnRenamed():
            return SchemaBuilder.rename
        case ColumnTypeUpdated():
            return SchemaBuilder.update_type
        case ColumnDropped():
            return SchemaBuilder.drop
        case ColumnUndropped():
            return SchemaBuilder.undrop
        case ColumnCommentUpdated():
            return SchemaBuilder.update_comment
        case ColumnMoved():
            return SchemaBuilder.move
        case ColumnNullabilityUpdated():
            return SchemaBuilder.update_nullability
        case ColumnDefaultValueUpdated():
            return SchemaBuilder.update_default
        case RemoveOption():
            return SchemaBuilder.remove_option
        case UpdateComment():
            return SchemaBuilder.update_table_comment
        case DropPrimaryKey():
            return SchemaBuilder.drop_primary_key
        case UpdateKeys():
            return SchemaBuilder.update_keys
        case IdentifierFieldsSet():
            return SchemaBuilder.set_identifier_fields
        case _:
            assert_never(event)


def _new_field(name: str, data_type: DataType, event: ColumnAdded) -> DataField:
    default = event.default_value
    return DataField(event.field_id, name, data_type, event.comment, default, default)


def _parse_type(wire: TypeJson) -> DataType:
    return parse_type(wire) if isinstance(wire, str) else type_from_wire(wire)
