"""SchemaChanges and layout changes from and to JSON.

SchemaChanges have DLF's `type` and Paimon's `action`; what only Iceberg has is written and read in
DLF's style, neither dialect having it. Reading accepts both and ignores unknown keys; a log record,
in contrast, is decoded strictly. Layout changes are written by no other program, so that unknown
keys in them are rejected.

Source: Paimon's SchemaChange and the DLF metadata API.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import lru_cache
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, get_args

import msgspec
from msgspec import Struct

from ledger.decide.change_reading import (
    invalid_value_error,
    require_json_object,
)
from ledger.decide.operation import SchemaOperation
from ledger.decide.operations import BY_ASKED, operation
from ledger.events.schema import (
    AddColumn,
    Move,
    MoveType,
    ReplaceSortOrder,
    RequestedChange,
    SchemaChange,
    SetIdentifierFields,
    SpecChange,
    UpdateColumnPosition,
    UpdatePartitionSpec,
)
from ledger.model.errors import (
    InvalidChangeError,
    InvalidInputError,
    InvalidTypeError,
    UnsupportedError,
)
from ledger.model.messages import excerpt, printable_line
from ledger.model.names import parse_column_path
from ledger.model.types import DataType
from ledger.model.types.sql import json_of_text, read_type
from ledger.model.types.text import parse_type
from ledger.model.types.wire import TypeObject, type_from_json, type_from_wire, type_to_wire

R = TypeVar("R", bound=Struct)

__all__ = [
    "Discriminator",
    "schema_change_from_json",
    "schema_change_to_json",
]

Discriminator = Literal["type", "action"]
_Json = Mapping[str, Any]
_MOVE_TYPES: tuple[MoveType, ...] = get_args(MoveType)


def schema_change_from_json(obj: Mapping[str, Any], *, path: str = "$") -> SchemaChange:
    """Read a change from decoded JSON, of the DLF metadata API or of Paimon's REST API.

    Types become canonical, and a ROW without ids gets them. Absent optional keys and nulls read
    as in Paimon: no comment, no move, `keepNullability` false. `newNullability` is required, unlike
    in Paimon, which makes a column NOT NULL without it.

    Args:
        obj: The decoded JSON.
        path: Path of `obj` in the document, for messages.

    Raises:
        InvalidChangeError: No such change; the message has the path, like `$.fieldNames`.

    Example:
        >>> change = schema_change_from_json(
        ...     {"action": "addColumn", "fieldNames": ["a"], "dataType": "int"}
        ... )
        >>> change.data_type
        'INT'
    """
    members = require_json_object(obj, path)
    name = _read_change_kind(members, path)
    reader = _READERS.get(name)
    if reader is None:
        raise invalid_value_error(
            path, f"unknown change {excerpt(name)}; there are {', '.join(_READERS)}"
        )
    return reader(members, path)


def schema_change_to_json(
    change: SchemaChange, *, discriminator: Discriminator = "type"
) -> dict[str, Any]:
    """Return a change as plain JSON.

    Args:
        change: The change.
        discriminator: "type" gives the DLF API's form and leaves absent keys out; what only
            Iceberg has (`setIdentifierFields`, the `defaultValue` of `addColumn`) is written in the
            same style. "action" gives Paimon's REST form, in which absent keys are null.

    Raises:
        UnsupportedError: Paimon's REST form cannot express it: a nested column moves, or the
            change is Iceberg's only.

    Example:
        >>> from ledger.events.schema import UpdateComment
        >>> schema_change_to_json(UpdateComment(), discriminator="action")
        {'action': 'updateComment', 'comment': None}
    """
    change = normalize_change(change)
    # By encoding and decoding: `to_builtins` would leave tuples where JSON has lists.
    plain: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(change))
    kind = plain.pop("type")
    if discriminator == "type":
        return {"type": kind, **plain, **_always_written_fields(change)}
    if isinstance(change, UpdateColumnPosition):
        if len(change.field_names) > 1:
            raise UnsupportedError(
                f"Paimon's wire form moves top-level columns only, not "
                f"{'.'.join(change.field_names)}"
            )
        return {"action": kind, "move": _move_to_json(change.move)}
    refuse_iceberg_only_change(change, "Paimon's wire form")
    full = {_camel_case(name): plain.get(_camel_case(name)) for name in change.__struct_fields__}
    if isinstance(change, AddColumn):
        del full["defaultValue"], full["fieldId"]
    if isinstance(change, AddColumn) and change.move is not None:
        full["move"] = _move_to_json(change.move)
    return {"action": kind, **full, **_always_written_fields(change)}


def refuse_iceberg_only_change(change: object, where: str) -> None:
    """Reject a change that a document of Paimon's or DLF's cannot express.

    Args:
        change: The object to be written, a change or not.
        where: Name of the document's format, for the message.

    Raises:
        UnsupportedError: The change is Iceberg's only.
    """
    row = BY_ASKED.get(type(change))
    lacks = row.lacks(change) if isinstance(row, SchemaOperation) else None
    if lacks is not None:
        raise UnsupportedError(f"{where} {lacks}; commit this change through the ledger")


def _always_written_fields(change: SchemaChange) -> dict[str, Any]:
    always = operation(change, SchemaOperation).always_written
    return {_camel_case(each): getattr(change, each) for each in always}


def _move_to_json(move: Move) -> dict[str, Any]:
    return {
        "fieldName": move.field_name,
        "referenceFieldName": move.reference_field_name,
        "type": move.type,
    }


def _camel_case(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(each.title() for each in rest)


def _read_change_kind(obj: _Json, path: str) -> str:
    kinds = sorted({obj[key] for key in ("action", "type") if isinstance(obj.get(key), str)})
    if len(kinds) != 1:
        found = " and ".join(map(excerpt, kinds)) or "none"
        raise invalid_value_error(
            path, f"needs one `type` (or `action`), such as addColumn; found {found}"
        )
    return str(kinds[0])


def _wire_tag(kind: Any) -> str:
    return str(kind.__struct_config__.tag)


_READERS: dict[str, Callable[[_Json, str], SchemaChange]] = {
    _wire_tag(kind): row.reads for kind, row in BY_ASKED.items() if isinstance(row, SchemaOperation)
}


def change_from_input(given: RequestedChange | Mapping[str, Any]) -> SchemaChange:
    """Return a change, given as such or as the JSON object of either dialect.

    Raises:
        InvalidChangeError: It is neither.
    """
    if isinstance(given, SchemaChange):
        return normalize_change(given)
    if isinstance(given, Mapping):
        return schema_change_from_json(given)
    raise _not_a_change_error(given)


def _not_a_change_error(given: object) -> InvalidChangeError:
    return InvalidChangeError(
        f"{excerpt(given)} is no SchemaChange; give one, such as "
        "AddColumn(('name',), 'STRING'), or its JSON object"
    )


def normalize_change(change: R) -> R:
    """Return a change with fields of the declared types, as if its JSON had been read.

    A column's name, or its path as text, becomes a path, and a type or its text the wire form.

    Raises:
        InvalidChangeError: A field is of another type; the message names it.
        InvalidTypeError: A type is none, or its text or JSON cannot be read; the message names the
            column.
    """
    if _has_plain_values(change):
        return change
    said = type(change).__name__
    plain = {each: getattr(change, each) for each in change.__struct_fields__}
    try:
        for name, convert in _CONVERTERS.items():
            if name in plain:
                plain[name] = convert(plain[name])
        if isinstance(change, SetIdentifierFields):
            plain["field_names"] = _paths_from_input(change.field_names)
        built = msgspec.to_builtins(type(change)(**plain), builtin_types=_NO_JSON)
        read_back = msgspec.convert(built, type(change))
    except (
        msgspec.ValidationError,
        TypeError,
        OverflowError,
        UnicodeError,
        RecursionError,
    ) as error:
        raise InvalidChangeError(f"{said}: {error}") from error
    except InvalidTypeError as error:
        path = plain["field_names"]
        column = ".".join(map(str, path)) if isinstance(path, tuple) else excerpt(path)
        raise InvalidTypeError(f"{said} {printable_line(column)}: {error.message}") from error
    except InvalidInputError as error:
        raise InvalidChangeError(f"{said}: {error.message}") from error
    return change if read_back == change else read_back


def _has_plain_values(change: Struct) -> bool:
    """Return whether every field has a plain type that it may have.

    Plain are texts, booleans, None, paths and moves. Most changes have no others and need no round
    trip through JSON.
    """
    for name, kinds in _plain_field_types(type(change)):
        value = getattr(change, name)
        kind = type(value)
        if name in _TYPE_FIELDS and (kind is not str or not _is_log_text(value)):
            return False
        if kind not in kinds or (kind in _INSIDE and not _INSIDE[kind](value)):
            return False
    return True


@lru_cache(maxsize=64)
def _plain_field_types(change: type[Struct]) -> tuple[tuple[str, frozenset[type]], ...]:
    """Return the fields of a class, each with the plain types that it may have."""
    return tuple(
        (each.name, frozenset(_PLAIN[kind] for kind in _union_members(each.type) if kind in _PLAIN))
        for each in msgspec.structs.fields(change)
    )


def _union_members(kind: Any) -> tuple[Any, ...]:
    return get_args(kind) if isinstance(kind, UnionType) else (kind,)


_PLAIN: dict[Any, type] = {
    str: str,
    bool: bool,
    NoneType: NoneType,
    MoveType: str,
    tuple[str, ...]: tuple,
    Move: Move,
}
_TEXTS = {str}
_INSIDE: dict[type, Callable[[Any], bool]] = {
    tuple: lambda path: {*map(type, path)} <= _TEXTS,
    Move: lambda move: move.type in _MOVE_TYPES and _has_plain_values(move),
}
"""Checks of the members of plain values, by the value's type."""

_TYPE_FIELDS = {"data_type", "new_data_type"}

# msgspec would encode these as texts, and decode the texts as if they had been given.
_NO_JSON = (bytes, bytearray, datetime, date, time, timedelta, Decimal)


def _type_from_input(given: Any) -> Any:
    """Return the wire form of a type that is given as a type, as a text or as JSON."""
    match given:
        case DataType():
            return type_to_wire(given)
        case str():
            return given if _is_log_text(given) else type_to_wire(read_type(given))
        case Mapping():
            with suppress(msgspec.ValidationError, InvalidTypeError):
                wire = msgspec.convert(given, TypeObject)
                type_from_wire(wire)
                return wire
            return type_to_wire(type_from_json(given, json_of_text))
        # What a change of a log holds.
        case TypeObject():
            return given
        case _:
            raise InvalidTypeError(
                f'{excerpt(given)} is not a type, or its text; write one such as "BIGINT" or '
                '"ARRAY<INT>"'
            )


@lru_cache(maxsize=1024)
def _is_log_text(text: str) -> bool:
    """Return whether a text means the same type in a log.

    Such a text stays as it was written, and so does the digest of the request.
    """
    try:
        return parse_type(text) == read_type(text)
    except InvalidTypeError:
        return False


def _path_from_input(given: Any) -> Any:
    if isinstance(given, str):
        return parse_column_path(given)
    return tuple(given) if isinstance(given, Sequence) else given


def _paths_from_input(given: Any) -> Any:
    if isinstance(given, str) or not isinstance(given, Iterable):
        return (_path_from_input(given),)
    return tuple(map(_path_from_input, given))


def _parts_from_input(given: Any) -> Any:
    """Return the parts of a layout change, each with fields of the declared types."""
    if isinstance(given, str) or not isinstance(given, Iterable):
        return given
    return tuple(normalize_change(each) if isinstance(each, Struct) else each for each in given)


_CONVERTERS: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys(("field_names", "source"), _path_from_input),
    **dict.fromkeys(_TYPE_FIELDS, _type_from_input),
    **dict.fromkeys(("updates", "columns"), _parts_from_input),
}
"""Conversions of fields that accept more than their declared types, by name."""


# Built once: every commit uses it.
_Change = SchemaChange | UpdatePartitionSpec | ReplaceSortOrder

_KINDS: dict[str, type[UpdatePartitionSpec | ReplaceSortOrder]] = {
    "updatePartitionSpec": UpdatePartitionSpec,
    "replaceSortOrder": ReplaceSortOrder,
}
# msgspec's decoders of these classes are built here, since building them is not thread-safe.
_BUILT = [msgspec.json.Decoder(each) for each in _KINDS.values()]


def as_table_change(
    given: RequestedChange | Mapping[str, Any],
) -> SchemaChange | SpecChange:
    """Return a change of the schema or the layout, given as such or as its JSON object.

    Raises:
        InvalidChangeError: It is neither.
    """
    if isinstance(given, _Change):
        return normalize_change(given)
    if isinstance(given, Mapping):
        return table_change_from_json(given)
    raise _not_a_change_error(given)


def table_change_from_json(obj: Any, *, path: str = "$") -> SchemaChange | SpecChange:
    """Read a change of the schema or the layout from decoded JSON.

    Args:
        obj: The decoded JSON.
        path: Path of `obj` in the document, for messages.

    Raises:
        InvalidChangeError: No such change; the message has the path.

    Example:
        >>> change = table_change_from_json({
        ...     "type": "updatePartitionSpec",
        ...     "updates": [
        ...         {"type": "addPartitionField", "source": ["ts"], "transform": "day"},
        ...         {"type": "removePartitionField", "name": "ts_hour"},
        ...         {"type": "renamePartitionField", "name": "shard", "newName": "part"},
        ...     ],
        ... })
        >>> change.updates[0].transform
        'day'
    """
    kind = _KINDS.get(obj["type"]) if _is_type_object(obj) else None
    if kind is None:
        return schema_change_from_json(obj, path=path)
    try:
        return msgspec.convert(obj, kind)
    except msgspec.ValidationError as error:
        rule, _, place = str(error).partition(" - at `$")
        raise InvalidChangeError(f"{path}{place.rstrip('`')}: {rule}") from error


def _is_type_object(obj: object) -> bool:
    return isinstance(obj, Mapping) and isinstance(obj.get("type"), str)
