"""Readers of SchemaChanges from decoded JSON, one for each kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, get_args

from ledger.events.schema import (
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
from ledger.model.errors import InvalidChangeError, InvalidTypeError
from ledger.model.messages import excerpt, is_utf8_encodable
from ledger.model.types.sql import json_of_text
from ledger.model.types.wire import TypeJson, type_from_json, type_to_wire


def invalid_value_error(path: str, rule: str) -> InvalidChangeError:
    """Return the error for the value at `path`."""
    return InvalidChangeError(f"{path}: {rule}")


def require_json_object(value: object, path: str) -> Mapping[str, Any]:
    """Return a JSON object unchanged.

    Raises:
        InvalidChangeError: It is something else.
    """
    if not isinstance(value, Mapping):
        raise invalid_value_error(path, f"is {excerpt(value)}, not an object")
    return value


def read_required_text(obj: Mapping[str, Any], key: str, path: str) -> str:
    """Return a required text.

    Raises:
        InvalidChangeError: It is missing, null or not a text.
    """
    value = read_optional_text(obj, key, path)
    if value is None:
        raise invalid_value_error(f"{path}.{key}", "is missing; give a text")
    return value


def read_optional_text(obj: Mapping[str, Any], key: str, path: str) -> str | None:
    """Return a text, or None where it is missing or null.

    Raises:
        InvalidChangeError: It is not a text.
    """
    value = obj.get(key)
    return None if value is None else _require_storable_text(value, f"{path}.{key}")


def _require_storable_text(value: object, path: str) -> str:
    if not isinstance(value, str):
        raise invalid_value_error(path, f"is {excerpt(value)}, not a text")
    if not is_utf8_encodable(value):
        raise invalid_value_error(
            path, f"is {excerpt(value)}: half a surrogate pair is no character"
        )
    return value


def read_optional_number(obj: Mapping[str, Any], key: str, path: str) -> int | None:
    """Return an integer, or None where it is missing or null.

    Raises:
        InvalidChangeError: It is not an integer.
    """
    value = obj.get(key)
    if value is not None and (not isinstance(value, int) or isinstance(value, bool)):
        raise invalid_value_error(f"{path}.{key}", f"is {excerpt(value)}, no whole number")
    return value


def read_flag(obj: Mapping[str, Any], key: str, path: str) -> bool:
    """Return a boolean; False where it is missing or null, as in Paimon.

    Raises:
        InvalidChangeError: It is neither true nor false.
    """
    value = obj.get(key)
    if value is None:
        return False
    if not isinstance(value, bool):
        raise invalid_value_error(f"{path}.{key}", f"is {excerpt(value)}, neither true nor false")
    return value


def read_required_flag(obj: Mapping[str, Any], key: str, path: str) -> bool:
    """Return a required boolean.

    Raises:
        InvalidChangeError: It is missing, null, or neither true nor false.
    """
    if obj.get(key) is None:
        raise invalid_value_error(f"{path}.{key}", "is missing; give true or false")
    return read_flag(obj, key, path)


def read_texts(obj: Mapping[str, Any], key: str, path: str) -> tuple[str, ...]:
    """Return a list of texts; empty where it is missing or null.

    Raises:
        InvalidChangeError: It is not a list, or holds something else; the message has the index.
    """
    value = obj.get(key)
    if value is None:
        return ()
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise invalid_value_error(f"{path}.{key}", f"is {excerpt(value)}, not a list of texts")
    return tuple(_require_storable_text(each, f"{path}.{key}[{i}]") for i, each in enumerate(value))


def read_text_map(obj: Mapping[str, Any], key: str, path: str) -> dict[str, str]:
    """Return a map of texts; empty where it is missing or null.

    Raises:
        InvalidChangeError: It is not an object, or a value is not a text.
    """
    given = obj.get(key)
    value = require_json_object({} if given is None else given, f"{path}.{key}")
    return {
        _require_storable_text(name, f"{path}.{key}"): _require_storable_text(
            each, f"{path}.{key}.{name}"
        )
        for name, each in value.items()
    }


_Json = Mapping[str, Any]
_MOVE_TYPES: tuple[MoveType, ...] = get_args(MoveType)


def _read_column_path(obj: _Json, path: str, key: str = "fieldNames") -> tuple[str, ...]:
    names = read_texts(obj, key, path)
    if not names:
        raise invalid_value_error(f"{path}.{key}", "is missing or empty; give the column's path")
    return names


def _read_type(obj: _Json, key: str, path: str) -> TypeJson:
    if obj.get(key) is None:
        raise invalid_value_error(f"{path}.{key}", "is missing; give a data type")
    try:
        return type_to_wire(type_from_json(obj[key], json_of_text))
    except InvalidTypeError as error:
        # The message begins with a path of its own, `$` being the type.
        raise InvalidChangeError(f"{path}.{key}{error.message.removeprefix('$')}") from error


def _read_move(value: object, path: str) -> Move:
    obj = require_json_object(value, path)
    asked = read_required_text(obj, "type", path)
    move_type = next((each for each in _MOVE_TYPES if each == asked), None)
    if move_type is None:
        raise invalid_value_error(
            f"{path}.type", f"is {excerpt(asked)}; use one of {', '.join(_MOVE_TYPES)}"
        )
    reference = read_optional_text(obj, "referenceFieldName", path)
    if reference is None and move_type in {"AFTER", "BEFORE"}:
        raise invalid_value_error(
            f"{path}.referenceFieldName", f"is missing; {move_type} which column?"
        )
    return Move(
        read_required_text(obj, "fieldName", path),
        move_type,
        reference if move_type in {"AFTER", "BEFORE"} else None,
    )


def read_add_column(obj: _Json, path: str) -> AddColumn:
    """Read `addColumn`."""
    move = obj.get("move")
    return AddColumn(
        _read_column_path(obj, path),
        _read_type(obj, "dataType", path),
        read_optional_text(obj, "comment", path),
        None if move is None else _read_move(move, f"{path}.move"),
        read_optional_text(obj, "defaultValue", path),
        read_optional_number(obj, "fieldId", path),
    )


def read_identifier_fields(obj: _Json, path: str) -> SetIdentifierFields:
    """Read `setIdentifierFields`."""
    given = obj.get("fieldNames")
    if not isinstance(given, list | tuple):
        raise invalid_value_error(f"{path}.fieldNames", "is missing; give a list of column paths")
    return SetIdentifierFields(
        tuple(
            _read_column_path({f"fieldNames[{i}]": each}, path, f"fieldNames[{i}]")
            for i, each in enumerate(given)
        )
    )


def read_update_type(obj: _Json, path: str) -> UpdateColumnType:
    """Read `updateColumnType`."""
    return UpdateColumnType(
        _read_column_path(obj, path),
        _read_type(obj, "newDataType", path),
        read_flag(obj, "keepNullability", path),
    )


def read_update_position(obj: _Json, path: str) -> UpdateColumnPosition:
    """Read `updateColumnPosition`."""
    move = _read_move(obj.get("move"), f"{path}.move")
    names = read_texts(obj, "fieldNames", path)
    if names and names[-1] != move.field_name:
        raise invalid_value_error(
            f"{path}.move.fieldName", f"is {move.field_name!r}, but fieldNames end in {names[-1]!r}"
        )
    # The path of a top-level column adds nothing to the move itself.
    return UpdateColumnPosition(move, names if len(names) > 1 else ())


def read_set_option(obj: _Json, path: str) -> SetOption:
    """Read `setOption`."""
    return SetOption(read_required_text(obj, "key", path), read_required_text(obj, "value", path))


def read_remove_option(obj: _Json, path: str) -> RemoveOption:
    """Read `removeOption`."""
    return RemoveOption(read_required_text(obj, "key", path))


def read_table_comment(obj: _Json, path: str) -> UpdateComment:
    """Read `updateComment`."""
    return UpdateComment(read_optional_text(obj, "comment", path))


def read_drop_primary_key(_obj: _Json, _path: str) -> DropPrimaryKey:
    """Read `dropPrimaryKey`."""
    return DropPrimaryKey()


def read_rename_column(obj: _Json, path: str) -> RenameColumn:
    """Read `renameColumn`."""
    return RenameColumn(_read_column_path(obj, path), read_required_text(obj, "newName", path))


def read_drop_column(obj: _Json, path: str) -> DropColumn:
    """Read `dropColumn`."""
    return DropColumn(_read_column_path(obj, path))


def read_undrop_column(obj: _Json, path: str) -> UndropColumn:
    """Read `undropColumn`."""
    move = obj.get("move")
    return UndropColumn(
        read_texts(obj, "fieldNames", path),
        read_optional_number(obj, "fieldId", path),
        None if move is None else _read_move(move, f"{path}.move"),
    )


def read_update_nullability(obj: _Json, path: str) -> UpdateColumnNullability:
    """Read `updateColumnNullability`."""
    return UpdateColumnNullability(
        _read_column_path(obj, path), read_required_flag(obj, "newNullability", path)
    )


def read_update_comment(obj: _Json, path: str) -> UpdateColumnComment:
    """Read `updateColumnComment`."""
    return UpdateColumnComment(
        _read_column_path(obj, path), read_optional_text(obj, "newComment", path)
    )


def read_update_default(obj: _Json, path: str) -> UpdateColumnDefaultValue:
    """Read `updateColumnDefaultValue`."""
    given = read_optional_text(obj, "newDefaultValue", path)
    return UpdateColumnDefaultValue(_read_column_path(obj, path), given)
