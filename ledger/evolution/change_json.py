"""SchemaChanges from and to the JSON of the two dialects: DLF's `type` and Paimon's `action`.

What only Iceberg has is written and read in DLF's manner; neither dialect has it.

Source: Paimon's SchemaChange and the DLF metadata API. Reading takes both and ignores
unknown keys; a log record, in contrast, is read strictly by its codec.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, get_args

import msgspec

from ledger.events.base import Record
from ledger.events.schema_changes import (
    AddColumn,
    DropColumn,
    DropPrimaryKey,
    Move,
    MoveType,
    RemoveOption,
    RenameColumn,
    SchemaChange,
    SetIdentifierFields,
    SetOption,
    UpdateColumnComment,
    UpdateColumnDefaultValue,
    UpdateColumnNullability,
    UpdateColumnPosition,
    UpdateColumnType,
    UpdateComment,
)
from ledger.evolution import json_reading as read
from ledger.evolution.schema_json import schema_from_json
from ledger.model.errors import InvalidChangeError, InvalidTypeError, UnsupportedError
from ledger.model.excerpt import excerpt
from ledger.model.type_json import TypeJson, type_from_json, type_to_wire

__all__ = [
    "Discriminator",
    "schema_change_from_json",
    "schema_change_to_json",
    "schema_from_json",
]

Discriminator = Literal["type", "action"]
_Json = Mapping[str, Any]
_MOVE_TYPES: tuple[MoveType, ...] = get_args(MoveType)


def schema_change_from_json(obj: Mapping[str, Any], *, path: str = "$") -> SchemaChange:
    """Read a change from decoded JSON, of the DLF page or of Paimon's REST wire.

    Types come out canonical, and a ROW without ids gets them. Absent optional keys and nulls read
    as Paimon reads them: no comment, no move, `keepNullability` and `newNullability` false.

    Args:
        obj: What the JSON decoder gave.
        path: Where `obj` stands in the document, for messages.

    Raises:
        InvalidChangeError: No such change; the message names the place, like `$.fieldNames`.

    Example:
        >>> change = schema_change_from_json(
        ...     {"action": "addColumn", "fieldNames": ["a"], "dataType": "int"}
        ... )
        >>> change.data_type
        'INT'
    """
    members = read.as_object(obj, path)
    name = _kind(members, path)
    reader = _READERS.get(name)
    if reader is None:
        raise read.bad(path, f"unknown change {excerpt(name)}; there are {', '.join(_READERS)}")
    return reader(members, path)


def schema_change_to_json(
    change: SchemaChange, *, discriminator: Discriminator = "type"
) -> dict[str, Any]:
    """Return a change as plain JSON.

    Args:
        change: The change.
        discriminator: "type" gives the DLF page's form and leaves absent keys out; what only
            Iceberg has (`setIdentifierFields`, the `defaultValue` of `addColumn`) is said in the
            same manner. "action" gives Paimon's wire form, in which absent keys are null.

    Raises:
        UnsupportedError: Paimon's wire form cannot say it: a nested column moves, or the change
            is Iceberg's alone.

    Example:
        >>> schema_change_to_json(UpdateComment(), discriminator="action")
        {'action': 'updateComment', 'comment': None}
    """
    # Through the bytes and back: `to_builtins` would leave tuples where JSON has lists.
    plain: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(change))
    kind = plain.pop("type")
    if discriminator == "type":
        return {"type": kind, **plain, **_never_left_out(change)}
    if isinstance(change, UpdateColumnPosition):
        if len(change.field_names) > 1:
            raise UnsupportedError(
                f"Paimon's wire form moves top-level columns only, not "
                f"{'.'.join(change.field_names)}"
            )
        return {"action": kind, "move": _full_move(change.move)}
    refuse_iceberg_only(change, "Paimon's wire form")
    full = {_camel(name): plain.get(_camel(name)) for name in change.__struct_fields__}
    if isinstance(change, AddColumn):
        del full["defaultValue"]
    if isinstance(change, AddColumn) and change.move is not None:
        full["move"] = _full_move(change.move)
    return {"action": kind, **full, **_never_left_out(change)}


def refuse_iceberg_only(change: object, where: str) -> None:
    """Refuse to write what a document of Paimon's or DLF's has no word for.

    Args:
        change: What is to be written, a change or not.
        where: Whose document, for the message.

    Raises:
        UnsupportedError: The change is Iceberg's alone.
    """
    match change:
        case SetIdentifierFields():
            raise UnsupportedError(
                f"{where} cannot set identifier fields, which only Iceberg has; commit this "
                "change through the ledger"
            )
        case AddColumn(default_value=str(), field_names=path):
            raise UnsupportedError(
                f"{where} cannot add column {'.'.join(path)} with a default, which only Iceberg "
                "can; commit this change through the ledger"
            )
        case _:
            return


def _never_left_out(change: SchemaChange) -> dict[str, Any]:
    match change:
        case UpdateColumnType(keep_nullability=keep):
            return {"keepNullability": keep}
        case _:
            return {}


def _full_move(move: Move) -> dict[str, Any]:
    return {
        "fieldName": move.field_name,
        "referenceFieldName": move.reference_field_name,
        "type": move.type,
    }


def _camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(each.title() for each in rest)


def _kind(obj: _Json, path: str) -> str:
    kinds = {obj[key] for key in ("action", "type") if isinstance(obj.get(key), str)}
    if len(kinds) != 1:
        raise read.bad(path, f"needs one `type` (or `action`), such as addColumn; found {kinds}")
    return str(kinds.pop())


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


def _add_column(obj: _Json, path: str) -> AddColumn:
    move = obj.get("move")
    return AddColumn(
        _fields(obj, path),
        _type(obj, "dataType", path),
        read.optional_text(obj, "comment", path),
        None if move is None else _move(move, f"{path}.move"),
        read.optional_text(obj, "defaultValue", path),
    )


def _identifier_fields(obj: _Json, path: str) -> SetIdentifierFields:
    given = obj.get("fieldNames")
    if not isinstance(given, list | tuple):
        raise read.bad(f"{path}.fieldNames", "is missing; give a list of column paths")
    return SetIdentifierFields(
        tuple(
            _fields({"fieldNames": each}, f"{path}.fieldNames[{i}]") for i, each in enumerate(given)
        )
    )


def _update_type(obj: _Json, path: str) -> UpdateColumnType:
    return UpdateColumnType(
        _fields(obj, path),
        _type(obj, "newDataType", path),
        read.flag(obj, "keepNullability", path),
    )


def _update_position(obj: _Json, path: str) -> UpdateColumnPosition:
    move = _move(obj.get("move"), f"{path}.move")
    names = read.texts(obj, "fieldNames", path)
    if names and names[-1] != move.field_name:
        raise read.bad(
            f"{path}.move.fieldName", f"is {move.field_name!r}, but fieldNames end in {names[-1]!r}"
        )
    # The path of a top-level column says no more than the move itself.
    return UpdateColumnPosition(move, names if len(names) > 1 else ())


_READERS: dict[str, Callable[[_Json, str], SchemaChange]] = {
    "setOption": lambda obj, path: SetOption(
        read.text(obj, "key", path), read.text(obj, "value", path)
    ),
    "removeOption": lambda obj, path: RemoveOption(read.text(obj, "key", path)),
    "updateComment": lambda obj, path: UpdateComment(read.optional_text(obj, "comment", path)),
    "addColumn": _add_column,
    "renameColumn": lambda obj, path: RenameColumn(
        _fields(obj, path), read.text(obj, "newName", path)
    ),
    "dropColumn": lambda obj, path: DropColumn(_fields(obj, path)),
    "updateColumnType": _update_type,
    "updateColumnNullability": lambda obj, path: UpdateColumnNullability(
        _fields(obj, path), read.flag(obj, "newNullability", path)
    ),
    "updateColumnComment": lambda obj, path: UpdateColumnComment(
        _fields(obj, path), read.optional_text(obj, "newComment", path)
    ),
    "updateColumnDefaultValue": lambda obj, path: UpdateColumnDefaultValue(
        _fields(obj, path), read.optional_text(obj, "newDefaultValue", path)
    ),
    "updateColumnPosition": _update_position,
    "dropPrimaryKey": lambda _obj, _path: DropPrimaryKey(),
    "setIdentifierFields": _identifier_fields,
}


def as_change(given: SchemaChange | Mapping[str, Any]) -> SchemaChange:
    """Return a change, given as such or as the JSON object of either dialect.

    Raises:
        InvalidChangeError: It is neither.
    """
    if isinstance(given, Mapping):
        return schema_change_from_json(given)
    if not isinstance(given, Record):
        raise InvalidChangeError(
            f"{excerpt(given)} is no SchemaChange; give one, such as "
            "AddColumn(('name',), 'STRING'), or its JSON object"
        )
    return given
