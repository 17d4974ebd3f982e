"""Operation rows of SchemaChanges: columns, options, comment, keys."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import UnsetType

from ledger.decide.change_reading import (
    add_column,
    drop_column,
    drop_primary_key,
    identifier_fields,
    remove_option,
    rename_column,
    set_option,
    table_comment,
    undrop_column,
    update_comment,
    update_default,
    update_nullability,
    update_position,
    update_type,
)
from ledger.decide.column_additions import decide_add, decide_undrop
from ledger.decide.column_edits import (
    decide_comment,
    decide_default,
    decide_drop,
    decide_identifier_fields,
    decide_nullability,
    decide_position,
    decide_rename,
    decide_type,
)
from ledger.decide.column_rebase import Following
from ledger.decide.operation import Cell, Cells, Operation, SchemaOperation, no_cells
from ledger.decide.option_changes import (
    decide_drop_primary_key,
    decide_remove_option,
    decide_set_option,
    decide_table_comment,
)
from ledger.events import schema
from ledger.events.schema import UpdateKeys
from ledger.model.names import shown_path
from ledger.model.types.text import format_type
from ledger.model.types.wire import TypeJson, type_from_wire

ROOT = -1
"""Parent id of top-level columns; nested ones have the id of the enclosing field."""


def _owner(parent: int | UnsetType) -> int:
    return ROOT if isinstance(parent, UnsetType) else parent


def _text(wire: TypeJson) -> str:
    """Return a type's SQL text, without ids: two writers assign different ones."""
    return format_type(type_from_wire(wire))


def _added(fact: schema.ColumnAdded) -> Iterator[tuple[Cell, Any]]:
    column = (_text(fact.data_type), fact.comment, fact.move, fact.default_value)
    yield ("name", _owner(fact.parent_id), fact.field_names[-1]), column


def _renamed(fact: schema.ColumnRenamed) -> Iterator[tuple[Cell, Any]]:
    yield ("column", fact.field_id, "name"), fact.new_name
    yield ("name", _owner(fact.parent_id), fact.new_name), fact.field_id


def _dropped(fact: schema.ColumnDropped) -> Iterator[tuple[Cell, Any]]:
    yield ("column", fact.field_id, "exists"), False


def _undropped(fact: schema.ColumnUndropped) -> Iterator[tuple[Cell, Any]]:
    yield ("column", fact.field_id, "exists"), True
    yield ("column", fact.field_id, "name"), fact.field_names[-1]
    yield ("name", _owner(fact.parent_id), fact.field_names[-1]), fact.field_id


def _retyped(fact: schema.ColumnTypeUpdated) -> Iterator[tuple[Cell, Any]]:
    wanted = type_from_wire(fact.new_data_type)
    bare = wanted.with_nullability(nullable=True)
    yield ("column", fact.field_id, "type"), format_type(bare)
    if not fact.keep_nullability:
        yield ("column", fact.field_id, "nullability"), wanted.nullable


def _aspect(aspect: str, attribute: str) -> Cells:
    """Return the one cell of a fact that sets an aspect of a column."""

    def cells(fact: Any) -> Iterator[tuple[Cell, Any]]:
        yield ("column", fact.field_id, aspect), getattr(fact, attribute)

    return cells


def _moved(fact: schema.ColumnMoved) -> Iterator[tuple[Cell, Any]]:
    reference = fact.reference_id
    place = None if isinstance(reference, UnsetType) else reference
    yield ("column", fact.field_id, "position"), (fact.move.type, place)


def _identified(fact: schema.IdentifierFieldsSet) -> Iterator[tuple[Cell, Any]]:
    yield ("identifierFields",), fact.field_ids


def _path(change: Any) -> str:
    return shown_path(tuple(change.field_names))


def _id(change: Any) -> str:
    field_id = getattr(change, "field_id", None)
    return "" if field_id is None else f" (id {field_id})"


def _column(change: Any) -> str:
    return f"column {_path(change)}{_id(change)}"


def _describe_comment(change: schema.UpdateColumnComment) -> str:
    said = "removed the comment of" if change.new_comment is None else "commented"
    return f"{said} {_column(change)}"


def _describe_default(change: schema.UpdateColumnDefaultValue) -> str:
    if change.new_default_value is None:
        return f"removed the default of {_column(change)}"
    return f"set the default of {_column(change)} to {change.new_default_value}"


def _describe_undrop(change: schema.UndropColumn | schema.ColumnUndropped) -> str:
    text = f" {_text(change.data_type)}" if isinstance(change, schema.ColumnUndropped) else ""
    path = f" {_path(change)}" if change.field_names else ""
    return f"restored column{path}{text}{_id(change)}"


def _describe_move(change: schema.UpdateColumnPosition) -> str:
    path = shown_path(change.field_names or (change.move.field_name,))
    place = [change.move.type.lower(), change.move.reference_field_name or ""]
    return f"moved column {path} {' '.join(place).strip()}{_id(change)}"


def _no_default(change: schema.AddColumn) -> str | None:
    if change.default_value is None:
        return None
    path = ".".join(change.field_names)
    return f"cannot add column {path} with a default, which only Iceberg can"


COLUMN_OPERATIONS: tuple[SchemaOperation, ...] = (
    SchemaOperation(
        asked=schema.AddColumn,
        facts=(schema.ColumnAdded,),
        reads=add_column,
        lacks=_no_default,
        names=Following.add,
        touches="nothing",
        decide=decide_add,
        sets=_added,
        says=lambda it: f"added column {_path(it)} {_text(it.data_type)}{_id(it)}",
    ),
    SchemaOperation(
        asked=schema.RenameColumn,
        facts=(schema.ColumnRenamed,),
        reads=rename_column,
        names=Following.rename,
        touches="columns",
        decide=decide_rename,
        sets=_renamed,
        says=lambda it: f"renamed column {_path(it)} to {it.new_name}{_id(it)}",
    ),
    SchemaOperation(
        asked=schema.DropColumn,
        facts=(schema.ColumnDropped,),
        reads=drop_column,
        names=Following.drop,
        touches="columns",
        decide=decide_drop,
        sets=_dropped,
        says=lambda it: f"dropped {_column(it)}",
    ),
    SchemaOperation(
        asked=schema.UndropColumn,
        facts=(schema.ColumnUndropped,),
        reads=undrop_column,
        lacks=lambda _: "cannot bring a dropped column back",
        names=Following.undrop,
        touches="nothing",
        decide=decide_undrop,
        sets=_undropped,
        says=_describe_undrop,
    ),
    SchemaOperation(
        asked=schema.UpdateColumnType,
        facts=(schema.ColumnTypeUpdated,),
        reads=update_type,
        always_written=("keep_nullability",),
        names=Following.retype,
        touches="columns",
        decide=decide_type,
        sets=_retyped,
        says=lambda it: f"changed {_column(it)} to {_text(it.new_data_type)}",
    ),
    SchemaOperation(
        asked=schema.UpdateColumnNullability,
        facts=(schema.ColumnNullabilityUpdated,),
        reads=update_nullability,
        names=Following.at,
        touches="columns",
        decide=decide_nullability,
        sets=_aspect("nullability", "new_nullability"),
        says=lambda it: f"{'allowed' if it.new_nullability else 'forbade'} NULL in {_column(it)}",
    ),
    SchemaOperation(
        asked=schema.UpdateColumnComment,
        facts=(schema.ColumnCommentUpdated,),
        reads=update_comment,
        names=Following.at,
        touches="comment",
        decide=decide_comment,
        sets=_aspect("comment", "new_comment"),
        says=_describe_comment,
    ),
    SchemaOperation(
        asked=schema.UpdateColumnDefaultValue,
        facts=(schema.ColumnDefaultValueUpdated,),
        reads=update_default,
        names=Following.at,
        touches="default",
        decide=decide_default,
        sets=_aspect("default", "new_default_value"),
        says=_describe_default,
    ),
    SchemaOperation(
        asked=schema.UpdateColumnPosition,
        facts=(schema.ColumnMoved,),
        reads=update_position,
        names=Following.position,
        touches="columns",
        decide=decide_position,
        sets=_moved,
        says=_describe_move,
    ),
    SchemaOperation(
        asked=schema.SetIdentifierFields,
        facts=(schema.IdentifierFieldsSet,),
        reads=identifier_fields,
        lacks=lambda _: "cannot set identifier fields, which only Iceberg has",
        names=Following.identifiers,
        touches="nothing",
        decide=decide_identifier_fields,
        sets=_identified,
        says=lambda it: (
            f"set the identifier fields to {[shown_path(each) for each in it.field_names]}"
        ),
    ),
)


def _set(fact: schema.SetOption) -> Iterator[tuple[Cell, Any]]:
    yield ("option", fact.key), fact.value


def _removed(fact: schema.RemoveOption) -> Iterator[tuple[Cell, Any]]:
    yield ("option", fact.key), None


def _commented(fact: schema.UpdateComment) -> Iterator[tuple[Cell, Any]]:
    yield ("comment",), fact.comment


def _dropped_key(_fact: schema.DropPrimaryKey) -> Iterator[tuple[Cell, Any]]:
    yield ("primaryKey",), ()


def _keys(fact: UpdateKeys) -> Iterator[tuple[Cell, Any]]:
    yield ("primaryKey",), fact.primary_keys
    yield ("partitionKeys",), fact.partition_keys


def _sets_table_comment(change: schema.UpdateComment) -> str:
    return f"{'removed' if change.comment is None else 'changed'} the table's comment"


def _describe_keys(fact: UpdateKeys) -> str:
    keys = f"partition keys to {list(fact.partition_keys)}"
    return f"set the {keys}, the primary keys to {list(fact.primary_keys)}"


OPTION_OPERATIONS: tuple[Operation, ...] = (
    SchemaOperation(
        asked=schema.SetOption,
        facts=(schema.SetOption,),
        reads=set_option,
        names=Following.set_option,
        touches="nothing",
        decide=decide_set_option,
        sets=_set,
        says=lambda it: f"set option {it.key} to {it.value}",
    ),
    SchemaOperation(
        asked=schema.RemoveOption,
        facts=(schema.RemoveOption,),
        reads=remove_option,
        names=Following.remove_option,
        touches="nothing",
        decide=decide_remove_option,
        sets=_removed,
        says=lambda it: f"removed option {it.key}",
    ),
    SchemaOperation(
        asked=schema.UpdateComment,
        facts=(schema.UpdateComment,),
        reads=table_comment,
        names=Following.as_asked,
        touches="nothing",
        decide=decide_table_comment,
        sets=_commented,
        says=_sets_table_comment,
    ),
    SchemaOperation(
        asked=schema.DropPrimaryKey,
        facts=(schema.DropPrimaryKey,),
        reads=drop_primary_key,
        names=Following.as_asked,
        touches="nothing",
        decide=decide_drop_primary_key,
        sets=_dropped_key,
        says=lambda _: "dropped the primary key",
    ),
    # Options that are keys became it; they claim what they mean, by id.
    Operation(facts=(UpdateKeys,), sets=_keys, claims=no_cells, says=_describe_keys),
)
