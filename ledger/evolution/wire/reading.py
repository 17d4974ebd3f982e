"""Reading SchemaChanges from decoded JSON, one reader a kind; `changes` chooses among them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

from ledger.events.schema_changes import (
    AddColumn,
    DropColumn,
    DropPrimaryKey,
    Move,
    MoveType,
    RemoveOption,
    RenameColumn,
    SetIdentifierFields,
    SetOption,
    UndropColumn,
    UpdateColumnComment,
    UpdateColumnDefaultValue,
    UpdateColumnNullability,
    UpdateColumnPosition,
    UpdateColumnType,
    UpdateComment,
)
from ledger.evolution.wire import members as read
from ledger.model.errors import InvalidChangeError, InvalidTypeError
from ledger.model.messages.excerpt import excerpt
from ledger.model.types.wire import TypeJson, type_from_json, type_to_wire

_Json = Mapping[str, Any]
_MOVE_TYPES: tuple[MoveType, ...] = get_args(MoveType)


def _fields(obj: _Json, path: str) -> tuple[str, ...]:
    names = read.texts(obj, "fieldNames", path)
    if not names:
        raise read.bad(f"{path}.fieldNames", "is missing or empty; give the column's path")
    return names


def _type(obj: _Json, key: str, path: str) -> TypeJson:
    if obj.get(key) is None:
        raise read.bad(f"{path}.{key}", "is missing; give a data type")
    try:
        return type_to_wire(type_from_json(obj[key]))
    except InvalidTypeError as error:
        # The message begins with a path of its own, `$` being the type.
        raise InvalidChangeError(f"{path}.{key}{error.message.removeprefix('$')}") from error


def _move(value: object, path: str) -> Move:
    obj = read.as_object(value, path)
    asked = read.text(obj, "type", path)
    move_type = next((each for each in _MOVE_TYPES if each == asked), None)
    if move_type is None:
        raise read.bad(f"{path}.type", f"is {excerpt(asked)}; use one of {', '.join(_MOVE_TYPES)}")
    reference = read.optional_text(obj, "referenceFieldName", path)
    if reference is None and move_type in {"AFTER", "BEFORE"}:
        raise read.bad(f"{path}.referenceFieldName", f"is missing; {move_type} which column?")
    return Move(
        read.text(obj, "fieldName", path),
        move_type,
        reference if move_type in {"AFTER", "BEFORE"} else None,
    )


def add_column(obj: _Json, path: str) -> AddColumn:
    """Read `addColumn`."""
    move = obj.get("move")
    return AddColumn(
        _fields(obj, path),
        _type(obj, "dataType", path),
        read.optional_text(obj, "comment", path),
        None if move is None else _move(move, f"{path}.move"),
        read.optional_text(obj, "defaultValue", path),
        read.optional_number(obj, "fieldId", path),
    )


def identifier_fields(obj: _Json, path: str) -> SetIdentifierFields:
    """Read `setIdentifierFields`."""
    given = obj.get("fieldNames")
    if not isinstance(given, list | tuple):
        raise read.bad(f"{path}.fieldNames", "is missing; give a list of column paths")
    return SetIdentifierFields(
        tuple(
            _fields({"fieldNames": each}, f"{path}.fieldNames[{i}]") for i, each in enumerate(given)
        )
    )


def update_type(obj: _Json, path: str) -> UpdateColumnType:
    """Read `updateColumnType`."""
    return UpdateColumnType(
        _fields(obj, path),
        _type(obj, "newDataType", path),
        read.flag(obj, "keepNullability", path),
    )


def update_position(obj: _Json, path: str) -> UpdateColumnPosition:
    """Read `updateColumnPosition`."""
    move = _move(obj.get("move"), f"{path}.move")
    names = read.texts(obj, "fieldNames", path)
    if names and names[-1] != move.field_name:
        raise read.bad(
            f"{path}.move.fieldName", f"is {move.field_name!r}, but fieldNames end in {names[-1]!r}"
        )
    # The path of a top-level column says no more than the move itself.
    return UpdateColumnPosition(move, names if len(names) > 1 else ())


def set_option(obj: _Json, path: str) -> SetOption:
    """Read `setOption`."""
    return SetOption(read.text(obj, "key", path), read.text(obj, "value", path))


def remove_option(obj: _Json, path: str) -> RemoveOption:
    """Read `removeOption`."""
    return RemoveOption(read.text(obj, "key", path))


def table_comment(obj: _Json, path: str) -> UpdateComment:
    """Read `updateComment`."""
    return UpdateComment(read.optional_text(obj, "comment", path))


def drop_primary_key(_obj: _Json, _path: str) -> DropPrimaryKey:
    """Read `dropPrimaryKey`."""
    return DropPrimaryKey()


def rename_column(obj: _Json, path: str) -> RenameColumn:
    """Read `renameColumn`."""
    return RenameColumn(_fields(obj, path), read.text(obj, "newName", path))


def drop_column(obj: _Json, path: str) -> DropColumn:
    """Read `dropColumn`."""
    return DropColumn(_fields(obj, path))


def undrop_column(obj: _Json, path: str) -> UndropColumn:
    """Read `undropColumn`."""
    move = obj.get("move")
    return UndropColumn(
        read.texts(obj, "fieldNames", path),
        read.optional_number(obj, "fieldId", path),
        None if move is None else _move(move, f"{path}.move"),
    )


def update_nullability(obj: _Json, path: str) -> UpdateColumnNullability:
    """Read `updateColumnNullability`."""
    return UpdateColumnNullability(_fields(obj, path), read.flag(obj, "newNullability", path))


def update_comment(obj: _Json, path: str) -> UpdateColumnComment:
    """Read `updateColumnComment`."""
    return UpdateColumnComment(_fields(obj, path), read.optional_text(obj, "newComment", path))


def update_default(obj: _Json, path: str) -> UpdateColumnDefaultValue:
    """Read `updateColumnDefaultValue`."""
    given = read.optional_text(obj, "newDefaultValue", path)
    return UpdateColumnDefaultValue(_fields(obj, path), given)
