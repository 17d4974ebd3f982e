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
from ledger.model.messages import excerpt, is_storable
from ledger.model.types.wire import TypeJson, type_from_json, type_to_wire


def bad(path: str, rule: str) -> InvalidChangeError:
    """Return the error for the value at `path`."""
    return InvalidChangeError(f"{path}: {rule}")


def as_object(value: object, path: str) -> Mapping[str, Any]:
    """Return a JSON object unchanged.

    Raises:
        InvalidChangeError: It is something else.
    """
    if not isinstance(value, Mapping):
        raise bad(path, f"is {excerpt(value)}, not an object")
    return value


def text(obj: Mapping[str, Any], key: str, path: str) -> str:
    """Return a required text.

    Raises:
        InvalidChangeError: It is missing, null or not a text.
    """
    value = optional_text(obj, key, path)
    if value is None:
        raise bad(f"{path}.{key}", "is missing; give a text")
    return value


def optional_text(obj: Mapping[str, Any], key: str, path: str) -> str | None:
    """Return a text, or None where it is missing or null.

    Raises:
        InvalidChangeError: It is not a text.
    """
    value = obj.get(key)
    return None if value is None else _storable(value, f"{path}.{key}")


def _storable(value: object, path: str) -> str:
    if not isinstance(value, str):
        raise bad(path, f"is {excerpt(value)}, not a text")
    if not is_storable(value):
        raise bad(path, f"is {excerpt(value)}: half a surrogate pair is no character")
    return value


def optional_number(obj: Mapping[str, Any], key: str, path: str) -> int | None:
    """Return an integer, or None where it is missing or null.

    Raises:
        InvalidChangeError: It is not an integer.
    """
    value = obj.get(key)
    if value is not None and (not isinstance(value, int) or isinstance(value, bool)):
        raise bad(f"{path}.{key}", f"is {excerpt(value)}, no whole number")
    return value


def flag(obj: Mapping[str, Any], key: str, path: str) -> bool:
    """Return a boolean; False where it is missing or null, as in Paimon.

    Raises:
        InvalidChangeError: It is neither true nor false.
    """
    value = obj.get(key)
    if value is None:
        return False
    if not isinstance(value, bool):
        raise bad(f"{path}.{key}", f"is {excerpt(value)}, neither true nor false")
    return value


def texts(obj: Mapping[str, Any], key: str, path: str) -> tuple[str, ...]:
    """Return a list of texts; empty where it is missing or null.

    Raises:
        InvalidChangeError: It is not a list, or holds something else; the message has the index.
    """
    value = obj.get(key)
    if value is None:
        return ()
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise bad(f"{path}.{key}", f"is {excerpt(value)}, not a list of texts")
    return tuple(_storable(each, f"{path}.{key}[{i}]") for i, each in enumerate(value))


def text_map(obj: Mapping[str, Any], key: str, path: str) -> dict[str, str]:
    """Return a map of texts; empty where it is missing or null.

    Raises:
        InvalidChangeError: It is not an object, or a value is not a text.
    """
    given = obj.get(key)
    value = as_object({} if given is None else given, f"{path}.{key}")
    return {
        _storable(name, f"{path}.{key}"): _storable(each, f"{path}.{key}.{name}")
        for name, each in value.items()
    }


_Json = Mapping[str, Any]
_MOVE_TYPES: tuple[MoveType, ...] = get_args(MoveType)


def _fields(obj: _Json, path: str) -> tuple[str, ...]:
    names = texts(obj, "fieldNames", path)
    if not names:
        raise bad(f"{path}.fieldNames", "is missing or empty; give the column's path")
    return names


def _type(obj: _Json, key: str, path: str) -> TypeJson:
    if obj.get(key) is None:
        raise bad(f"{path}.{key}", "is missing; give a data type")
    try:
        return type_to_wire(type_from_json(obj[key]))
    except InvalidTypeError as error:
        # The message begins with a path of its own, `$` being the type.
        raise InvalidChangeError(f"{path}.{key}{error.message.removeprefix('$')}") from error


def _move(value: object, path: str) -> Move:
    obj = as_object(value, path)
    asked = text(obj, "type", path)
    move_type = next((each for each in _MOVE_TYPES if each == asked), None)
    if move_type is None:
        raise bad(f"{path}.type", f"is {excerpt(asked)}; use one of {', '.join(_MOVE_TYPES)}")
    reference = optional_text(obj, "referenceFieldName", path)
    if reference is None and move_type in {"AFTER", "BEFORE"}:
        raise bad(f"{path}.referenceFieldName", f"is missing; {move_type} which column?")
    return Move(
        text(obj, "fieldName", path),
        move_type,
        reference if move_type in {"AFTER", "BEFORE"} else None,
    )


def add_column(obj: _Json, path: str) -> AddColumn:
    """Read `addColumn`."""
    move = obj.get("move")
    return AddColumn(
        _fields(obj, path),
        _type(obj, "dataType", path),
        optional_text(obj, "comment", path),
        None if move is None else _move(move, f"{path}.move"),
        optional_text(obj, "defaultValue", path),
        optional_number(obj, "fieldId", path),
    )


def identifier_fields(obj: _Json, path: str) -> SetIdentifierFields:
    """Read `setIdentifierFields`."""
    given = obj.get("fieldNames")
    if not isinstance(given, list | tuple):
        raise bad(f"{path}.fieldNames", "is missing; give a list of column paths")
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
        flag(obj, "keepNullability", path),
    )


def update_position(obj: _Json, path: str) -> UpdateColumnPosition:
    """Read `updateColumnPosition`."""
    move = _move(obj.get("move"), f"{path}.move")
    names = texts(obj, "fieldNames", path)
    if names and names[-1] != move.field_name:
        raise bad(
            f"{path}.move.fieldName", f"is {move.field_name!r}, but fieldNames end in {names[-1]!r}"
        )
    # The path of a top-level column adds nothing to the move itself.
    return UpdateColumnPosition(move, names if len(names) > 1 else ())


def set_option(obj: _Json, path: str) -> SetOption:
    """Read `setOption`."""
    return SetOption(text(obj, "key", path), text(obj, "value", path))


def remove_option(obj: _Json, path: str) -> RemoveOption:
    """Read `removeOption`."""
    return RemoveOption(text(obj, "key", path))


def table_comment(obj: _Json, path: str) -> UpdateComment:
    """Read `updateComment`."""
    return UpdateComment(optional_text(obj, "comment", path))


def drop_primary_key(_obj: _Json, _path: str) -> DropPrimaryKey:
    """Read `dropPrimaryKey`."""
    return DropPrimaryKey()


def rename_column(obj: _Json, path: str) -> RenameColumn:
    """Read `renameColumn`."""
    return RenameColumn(_fields(obj, path), text(obj, "newName", path))


def drop_column(obj: _Json, path: str) -> DropColumn:
    """Read `dropColumn`."""
    return DropColumn(_fields(obj, path))


def undrop_column(obj: _Json, path: str) -> UndropColumn:
    """Read `undropColumn`."""
    move = obj.get("move")
    return UndropColumn(
        texts(obj, "fieldNames", path),
        optional_number(obj, "fieldId", path),
        None if move is None else _move(move, f"{path}.move"),
    )


def update_nullability(obj: _Json, path: str) -> UpdateColumnNullability:
    """Read `updateColumnNullability`."""
    return UpdateColumnNullability(_fields(obj, path), flag(obj, "newNullability", path))


def update_comment(obj: _Json, path: str) -> UpdateColumnComment:
    """Read `updateColumnComment`."""
    return UpdateColumnComment(_fields(obj, path), optional_text(obj, "newComment", path))


def update_default(obj: _Json, path: str) -> UpdateColumnDefaultValue:
    """Read `updateColumnDefaultValue`."""
    given = optional_text(obj, "newDefaultValue", path)
    return UpdateColumnDefaultValue(_fields(obj, path), given)
