"""The mutable schema inside a fold: facts go in one after the other, a `Schema` comes out.

The fold is mechanical and strict. It knows no option guards and no table rules (those were decided
when the fact was written), but it refuses a fact that contradicts the state it follows. Its rules
for facts already written never change; new rules come as new events.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, assert_never

from ledger.events.schema_changes import (
    DropPrimaryKey,
    RemoveOption,
    SetOption,
    UpdateComment,
)
from ledger.events.schema_events import (
    ColumnAdded,
    ColumnCommentUpdated,
    ColumnDefaultValueUpdated,
    ColumnDropped,
    ColumnMoved,
    ColumnNullabilityUpdated,
    ColumnRenamed,
    ColumnTypeUpdated,
    ColumnUndropped,
    IdentifierFieldsSet,
    SchemaEvent,
    UpdateKeys,
)
from ledger.evolution.tree import nested as nested_edits
from ledger.evolution.tree import structs as struct_edits
from ledger.evolution.tree.paths import dotted
from ledger.evolution.tree.store import ColumnStore
from ledger.model.errors import InvalidChangeError
from ledger.model.schema import FieldIdPolicy, Schema, highest_field_id
from ledger.model.types import DataField, DataType
from ledger.model.types.text import parse_type
from ledger.model.types.walk import walk_ids
from ledger.model.types.wire import TypeJson, type_from_wire


class SchemaBuilder:
    """A schema under change. Private to a fold: `freeze` is how a value leaves it.

    Attributes:
        partition_keys: Column names.
        primary_keys: Column names; a renamed key column is renamed here, too.
        options: Table options.
        comment: None when the table has none.
        highest_field_id: The highest id ever given out, at any depth.
        identifier_field_ids: As in `Schema`.
        field_id_policy: As in `Schema`.

    Args:
        schema: What it starts from, and which itself stays as it is.
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

    def column(self, path: tuple[str, ...]) -> DataField:
        """Return the top-level column that a path begins with.

        Raises:
            ColumnNotFoundError: There is none.
            InvalidChangeError: The path is empty.
        """
        return self._columns.find(path)

    def freeze(self, *, schema_id: int, time_millis: int) -> Schema:
        """Return the schema as it stands now, under this id and time."""
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
        """Apply one fact.

        Raises:
            InvalidChangeError: The fact contradicts the state: an id or a name that is not there,
                is there already, or belongs to another column.
        """
        (SCHEMA_RULES.get(type(event)) or schema_rule(event))(self, event)

    def add(self, event: ColumnAdded) -> None:
        """Add a column whose ids are all new."""
        path, field_id = event.field_names, event.field_id
        highest = self.highest_field_id
        data_type = _read(event.data_type)
        if field_id <= highest:
            raise InvalidChangeError(
                f"{dotted(path)}: id {field_id} is not new; ids up to {highest} were given out"
            )
        if data_type.depth:
            highest = self._highest_with(path, data_type, field_id)
        if len(path) == 1:
            self._add_column(path[0], data_type, event)
        else:
            new = _new_field(path[-1] if path else "", data_type, event)
            self._columns.replace(nested_edits.add(self.column(path), event, new))
        self.highest_field_id = max(highest, field_id)

    def _add_column(self, name: str, data_type: DataType, event: ColumnAdded) -> None:
        self._columns.check_free(name)
        move = event.move
        if move is None or move.type == "LAST":
            self._columns.append(
                event.field_id, name, data_type, event.comment, event.default_value
            )
        else:
            new = _new_field(name, data_type, event)
            columns = self._columns.in_order()
            self._columns.reorder(struct_edits.added(columns, new, move, (name,)))

    def _highest_with(self, path: tuple[str, ...], data_type: DataType, *outer: int) -> int:
        """Return the highest id given out once `data_type` stands, if all of its ids are new."""
        ids = [*outer, *walk_ids(data_type)]
        if len(set(ids)) < len(ids) or any(each <= self.highest_field_id for each in ids):
            raise InvalidChangeError(
                f"{dotted(path)}: ids {sorted(ids)} must be new and given out once; "
                f"ids up to {self.highest_field_id} were given out"
            )
        return max(ids, default=self.highest_field_id)

    def rename(self, event: ColumnRenamed) -> None:
        """Rename a column in place; a key column is renamed in the primary key, too."""
        path, new_name = event.field_names, event.new_name
        if len(path) != 1:
            self._columns.replace(nested_edits.rename(self.column(path), event))
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
            self._columns.replace(nested_edits.drop(self.column(path), event))
            return
        self._columns.check_id(path[0], event.field_id)
        if path[0] in self.primary_keys or path[0] in self.partition_keys:
            raise InvalidChangeError(f"{path[0]} is part of a key; a key column cannot go")
        if len(self.names) == 1:
            raise InvalidChangeError(f"{path[0]} is the table's last column; it cannot go")
        self._columns.remove(path[0])

    def undrop(self, event: ColumnUndropped) -> None:
        """Take a column back under ids that were given out before and do not stand."""
        path, data_type = event.field_names, _read(event.data_type)
        ids = [event.field_id, *walk_ids(data_type)]
        columns = self._columns.in_order()
        standing = {found for each in columns for found in (each.id, *walk_ids(each.type))}
        if len(set(ids)) < len(ids) or max(ids) > self.highest_field_id or standing & set(ids):
            raise InvalidChangeError(
                f"{dotted(path)}: ids {sorted(ids)} are not those of a column that was dropped; "
                f"ids up to {self.highest_field_id} were given out"
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
            self._columns.reorder(struct_edits.added(columns, new, event.move, path))
        else:
            self._columns.replace(nested_edits.add(self.column(path), event, new))

    def update_type(self, event: ColumnTypeUpdated) -> None:
        """Give the place at a path another type."""
        path, target, keep = event.field_names, _read(event.new_data_type), event.keep_nullability
        highest = self.highest_field_id
        if target.depth:
            highest = self._highest_with(path, target)
        if len(path) == 1:
            column = self._columns.open(path[0], event.field_id)
            nullable = column["type"].nullable if keep else target.nullable
            column["type"] = target.with_nullability(nullable)
        else:
            self._columns.replace(
                nested_edits.edit_place(
                    self.column(path),
                    path,
                    event.field_id,
                    lambda source: target.with_nullability(source.nullable) if keep else target,
                )
            )
        self.highest_field_id = highest

    def update_nullability(self, event: ColumnNullabilityUpdated) -> None:
        """Make the place at a path hold NULL, or not."""
        path, nullable = event.field_names, event.new_nullability
        if len(path) == 1:
            column = self._columns.open(path[0], event.field_id)
            column["type"] = column["type"].with_nullability(nullable)
            return
        self._columns.replace(
            nested_edits.edit_place(
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
            self._columns.open(path[0], event.field_id)["description"] = event.new_comment
        else:
            self._columns.replace(nested_edits.comment(self.column(path), event))

    def update_default(self, event: ColumnDefaultValueUpdated) -> None:
        """Set a column's default."""
        path = event.field_names
        if len(path) == 1:
            self._columns.open(path[0], event.field_id)["default_value"] = event.new_default_value
        else:
            self._columns.replace(nested_edits.default(self.column(path), event))

    def move(self, event: ColumnMoved) -> None:
        """Put a column elsewhere among its siblings."""
        if len(event.field_names) > 1:
            self._columns.replace(nested_edits.move(self.column(event.field_names), event))
            return
        columns = self._columns.in_order()
        self._columns.reorder(
            struct_edits.moved(columns, event.move, event.field_id, event.reference_id)
        )

    def replace(self, fields: tuple[DataField, ...], identifier_field_ids: tuple[int, ...]) -> None:
        """Take other columns for all that stand; ids that were given out stay so."""
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
        """Say which columns identify a row."""
        self.identifier_field_ids = event.field_ids


SchemaRule = Callable[[SchemaBuilder, Any], None]
SCHEMA_RULES: dict[type, SchemaRule] = {}
"""Which rule applies a kind of fact: one dict look-up a fact, where matching tests kind by kind."""


def schema_rule(event: SchemaEvent) -> SchemaRule:
    """Return the rule that applies facts of this one's kind."""
    rule = SCHEMA_RULES[type(event)] = _matching_rule(event)
    return rule


def _matching_rule(  # noqa: C901, PLR0911, PLR0912 - one case an event
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


def _read(wire: TypeJson) -> DataType:
    return parse_type(wire) if isinstance(wire, str) else type_from_wire(wire)
