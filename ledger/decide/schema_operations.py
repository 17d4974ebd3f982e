"""Operation rows of SchemaChanges: columns, options, comment, keys."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import UnsetType

from ledger.decide.change_reading import (
    read_add_column,
    read_drop_column,
    read_drop_primary_key,
    read_identifier_fields,
    read_remove_option,
    read_rename_column,
    read_set_option,
    read_table_comment,
    read_undrop_column,
    read_update_comment,
    read_update_default,
    read_update_nullability,
    read_update_position,
    read_update_type,
)
from ledger.decide.column_additions import decide_add_column, decide_undrop_column
from ledger.decide.column_edits import (
    decide_column_comment,
    decide_column_default,
    decide_column_nullability,
    decide_column_position,
    decide_column_type,
    decide_drop_column,
    decide_identifier_fields,
    decide_rename_column,
)
from ledger.decide.column_rebase import ColumnRebase
from ledger.decide.operation import Cell, Cells, Operation, SchemaOperation, no_cells
from ledger.decide.option_changes import (
    decide_drop_primary_key,
    decide_remove_option,
    decide_set_option,
    decide_table_comment,
)
from ledger.events import schema
from ledger.events.schema import UpdateKeys
from ledger.model.names import quote_path
from ledger.model.types.text import format_type
from ledger.model.types.wire import TypeJson, type_from_wire

ROOT = -1
"""Parent id of top-level columns; nested ones have the id of the enclosing field."""


def _parent_id_or_root(parent: int | UnsetType) -> int:
    return ROOT if isinstance(parent, UnsetType) else parent


def _type_text(wire: TypeJson) -> str:
    """Return a type's SQL text, without ids: two writers assign different ones."""
    return format_type(type_from_wire(wire))


def _added_column_cells(fact: schema.ColumnAdded) -> Iterator[tuple[Cell, Any]]:
    column = (_type_text(fact.data_type), fact.comment, fact.move, fact.default_value)
    yield ("name", _parent_id_or_root(fact.parent_id), fact.field_names[-1]), column


def _renamed_column_cells(fact: schema.ColumnRenamed) -> Iterator[tuple[Cell, Any]]:
    yield ("column", fact.field_id, "name"), fact.new_name
    yield ("name", _parent_id_or_root(fact.parent_id), fact.new_name), fact.field_id


def _dropped_column_cells(fact: schema.ColumnDropped) -> Iterator[tuple[Cell, Any]]:
    yield ("column", fact.field_id, "exists"), False


def _undropped_column_cells(fact: schema.ColumnUndropped) -> Iterator[tuple[Cell, Any]]:
    yield ("column", fact.field_id, "exists"), True
    yield ("column", fact.field_id, "name"), fact.field_names[-1]
    yield ("name", _parent_id_or_root(fact.parent_id), fact.field_names[-1]), fact.field_id


def _retyped_column_cells(fact: schema.ColumnTypeUpdated) -> Iterator[tuple[Cell, Any]]:
    wanted = type_from_wire(fact.new_data_type)
    bare = wanted.with_nullability(nullable=True)
    yield ("column", fact.field_id, "type"), format_type(bare)
    if not fact.keep_nullability:
        yield ("column", fact.field_id, "nullability"), wanted.nullable


def _make_column_aspect_cells(aspect: str, attribute: str) -> Cells:
    """Return the one cell of a fact that sets an aspect of a column."""

    def cells(fact: Any) -> Iterator[tuple[Cell, Any]]:
        yield ("column", fact.field_id, aspect), getattr(fact, attribute)

    return cells


def _moved_column_cells(fact: schema.ColumnMoved) -> Iterator[tuple[Cell, Any]]:
    reference = fact.reference_id
    place = None if isinstance(reference, UnsetType) else reference
    yield ("column", fact.field_id, "position"), (fact.move.type, place)


def _identifier_field_cells(fact: schema.IdentifierFieldsSet) -> Iterator[tuple[Cell, Any]]:
    yield ("identifierFields",), fact.field_ids


def _path_text(change: Any) -> str:
    return quote_path(tuple(change.field_names))


def _id_suffix(change: Any) -> str:
    field_id = getattr(change, "field_id", None)
    return "" if field_id is None else f" (id {field_id})"


def _column_text(change: Any) -> str:
    return f"column {_path_text(change)}{_id_suffix(change)}"


def _describe_comment(change: schema.UpdateColumnComment) -> str:
    said = "removed the comment of" if change.new_comment is None else "commented"
    return f"{said} {_column_text(change)}"


def _describe_default(change: schema.UpdateColumnDefaultValue) -> str:
    if change.new_default_value is None:
        return f"removed the default of {_column_text(change)}"
    return f"set the default of {_column_text(change)} to {change.new_default_value}"


def _describe_undrop(change: schema.UndropColumn | schema.ColumnUndropped) -> str:
    text = f" {_type_text(change.data_type)}" if isinstance(change, schema.ColumnUndropped) else ""
    path = f" {_path_text(change)}" if change.field_names else ""
    return f"restored column{path}{text}{_id_suffix(change)}"


def _describe_move(change: schema.UpdateColumnPosition) -> str:
    path = quote_path(change.field_names or (change.move.field_name,))
    place = [change.move.type.lower(), change.move.reference_field_name or ""]
    return f"moved column {path} {' '.join(place).strip()}{_id_suffix(change)}"


def _default_refusal(change: schema.AddColumn) -> str | None:
    if change.default_value is None:
        return None
    path = ".".join(change.field_names)
    return f"cannot add column {path} with a default, which only Iceberg can"


COLUMN_OPERATIONS: tuple[SchemaOperation, ...] = (
    SchemaOperation(
        asked=schema.AddColumn,
        facts=(schema.ColumnAdded,),
        reads=read_add_column,
        lacks=_default_refusal,
        names=ColumnRebase.rebase_addition,
        touches="nothing",
        decide=decide_add_column,
        sets=_added_column_cells,
        says=lambda it: f"added column {_path_text(it)} {_type_text(it.data_type)}{_id_suffix(it)}",
    ),
    SchemaOperation(
        asked=schema.RenameColumn,
        facts=(schema.ColumnRenamed,),
        reads=read_rename_column,
        names=ColumnRebase.rebase_rename,
        touches="columns",
        decide=decide_rename_column,
        sets=_renamed_column_cells,
        says=lambda it: f"renamed column {_path_text(it)} to {it.new_name}{_id_suffix(it)}",
    ),
    SchemaOperation(
        asked=schema.DropColumn,
        facts=(schema.ColumnDropped,),
        reads=read_drop_column,
        names=ColumnRebase.rebase_drop,
        touches="columns",
        decide=decide_drop_column,
        sets=_dropped_column_cells,
        says=lambda it: f"dropped {_column_text(it)}",
    ),
    SchemaOperation(
        asked=schema.UndropColumn,
        facts=(schema.ColumnUndropped,),
        reads=read_undrop_column,
        lacks=lambda _: "cannot bring a dropped column back",
        names=ColumnRebase.rebase_undrop,
        touches="nothing",
        decide=decide_undrop_column,
        sets=_undropped_column_cells,
        says=_describe_undrop,
    ),
    SchemaOperation(
        asked=schema.UpdateColumnType,
        facts=(schema.ColumnTypeUpdated,),
        reads=read_update_type,
        always_written=("keep_nullability",),
        names=ColumnRebase.rebase_type_change,
        touches="columns",
        decide=decide_column_type,
        sets=_retyped_column_cells,
        says=lambda it: f"changed {_column_text(it)} to {_type_text(it.new_data_type)}",
    ),
    SchemaOperation(
        asked=schema.UpdateColumnNullability,
        facts=(schema.ColumnNullabilityUpdated,),
        reads=read_update_nullability,
        names=ColumnRebase.rebase_path,
        touches="columns",
        decide=decide_column_nullability,
        sets=_make_column_aspect_cells("nullability", "new_nullability"),
        says=lambda it: (
            f"{'allowed' if it.new_nullability else 'forbade'} NULL in {_column_text(it)}"
        ),
    ),
    SchemaOperation(
        asked=schema.UpdateColumnComment,
        facts=(schema.ColumnCommentUpdated,),
        reads=read_update_comment,
        names=ColumnRebase.rebase_path,
        touches="comment",
        decide=decide_column_comment,
        sets=_make_column_aspect_cells("comment", "new_comment"),
        says=_describe_comment,
    ),
    SchemaOperation(
        asked=schema.UpdateColumnDefaultValue,
        facts=(schema.ColumnDefaultValueUpdated,),
        reads=read_update_default,
        names=ColumnRebase.rebase_path,
        touches="default",
        decide=decide_column_default,
        sets=_make_column_aspect_cells("default", "new_default_value"),
        says=_describe_default,
    ),
    SchemaOperation(
        asked=schema.UpdateColumnPosition,
        facts=(schema.ColumnMoved,),
        reads=read_update_position,
        names=ColumnRebase.rebase_position,
        touches="columns",
        decide=decide_column_position,
        sets=_moved_column_cells,
        says=_describe_move,
    ),
    SchemaOperation(
        asked=schema.SetIdentifierFields,
        facts=(schema.IdentifierFieldsSet,),
        reads=read_identifier_fields,
        lacks=lambda _: "cannot set identifier fields, which only Iceberg has",
        names=ColumnRebase.rebase_identifier_fields,
        touches="nothing",
        decide=decide_identifier_fields,
        sets=_identifier_field_cells,
        says=lambda it: (
            f"set the identifier fields to {[quote_path(each) for each in it.field_names]}"
        ),
    ),
)


def _set_option_cells(fact: schema.SetOption) -> Iterator[tuple[Cell, Any]]:
    yield ("option", fact.key), fact.value


def _removed_option_cells(fact: schema.RemoveOption) -> Iterator[tuple[Cell, Any]]:
    yield ("option", fact.key), None


def _table_comment_cells(fact: schema.UpdateComment) -> Iterator[tuple[Cell, Any]]:
    yield ("comment",), fact.comment


def _dropped_primary_key_cells(_fact: schema.DropPrimaryKey) -> Iterator[tuple[Cell, Any]]:
    yield ("primaryKey",), ()


def _key_cells(fact: UpdateKeys) -> Iterator[tuple[Cell, Any]]:
    yield ("primaryKey",), fact.primary_keys
    yield ("partitionKeys",), fact.partition_keys


def _describe_table_comment(change: schema.UpdateComment) -> str:
    return f"{'removed' if change.comment is None else 'changed'} the table's comment"


def _describe_keys(fact: UpdateKeys) -> str:
    keys = f"partition keys to {list(fact.partition_keys)}"
    return f"set the {keys}, the primary keys to {list(fact.primary_keys)}"


OPTION_OPERATIONS: tuple[Operation, ...] = (
    SchemaOperation(
        asked=schema.SetOption,
        facts=(schema.SetOption,),
        reads=read_set_option,
        names=ColumnRebase.rebase_set_option,
        touches="nothing",
        decide=decide_set_option,
        sets=_set_option_cells,
        says=lambda it: f"set option {it.key} to {it.value}",
    ),
    SchemaOperation(
        asked=schema.RemoveOption,
        facts=(schema.RemoveOption,),
        reads=read_remove_option,
        names=ColumnRebase.rebase_remove_option,
        touches="nothing",
        decide=decide_remove_option,
        sets=_removed_option_cells,
        says=lambda it: f"removed option {it.key}",
    ),
    SchemaOperation(
        asked=schema.UpdateComment,
        facts=(schema.UpdateComment,),
        reads=read_table_comment,
        names=ColumnRebase.keep_unchanged,
        touches="nothing",
        decide=decide_table_comment,
        sets=_table_comment_cells,
        says=_describe_table_comment,
    ),
    SchemaOperation(
        asked=schema.DropPrimaryKey,
        facts=(schema.DropPrimaryKey,),
        reads=read_drop_primary_key,
        names=ColumnRebase.keep_unchanged,
        touches="nothing",
        decide=decide_drop_primary_key,
        sets=_dropped_primary_key_cells,
        says=lambda _: "dropped the primary key",
    ),
    # Options that are keys became it; they claim what they mean, by id.
    Operation(facts=(UpdateKeys,), sets=_key_cells, claims=no_cells, says=_describe_keys),
)
