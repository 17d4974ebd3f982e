"""JSON forms of data types.

Atomic types are their canonical text, constructed ones an object:
`{"type": "ARRAY NOT NULL", "element": "INT"}`. The wire form, in log records, is exact and has
every id. Plain JSON comes from users and other systems, so its reader accepts more, and its errors
name the position.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

import msgspec
from msgspec import UNSET, UnsetType

from ledger.model.errors import InvalidTypeError
from ledger.model.messages import excerpt, is_utf8_encodable
from ledger.model.types import (
    INT_MAX,
    MAX_DEPTH,
    ArrayType,
    DataField,
    DataType,
    MapType,
    MultisetType,
    RowType,
    VectorType,
)
from ledger.model.types.text import format_type, parse_type


class TypeObject(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, rename="camel"):
    """A constructed type in wire form; `type` determines the members that are set."""

    type: str
    element: str | TypeObject | UnsetType = UNSET
    key: str | TypeObject | UnsetType = UNSET
    value: str | TypeObject | UnsetType = UNSET
    fields: tuple[FieldObject, ...] | UnsetType = UNSET
    length: int | UnsetType = UNSET
    element_id: int | UnsetType = UNSET
    key_id: int | UnsetType = UNSET
    value_id: int | UnsetType = UNSET


class FieldObject(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, rename="camel"):
    """A column or ROW member in wire form."""

    id: int
    name: str
    type: str | TypeObject
    description: str | UnsetType = UNSET
    default_value: str | UnsetType = UNSET
    initial_default: str | UnsetType = UNSET


TypeJson: TypeAlias = str | TypeObject

# Constructor of each constructed type, and its members that are types.
_CONSTRUCTED: dict[str, tuple[Callable[..., DataType], tuple[str, ...]]] = {
    "ARRAY": (ArrayType, ("element",)),
    "MULTISET": (MultisetType, ("element",)),
    "MAP": (MapType, ("key", "value")),
    "VECTOR": (VectorType, ("element",)),
    "ROW": (RowType, ()),
}

_MEMBER_IDS = {"ARRAY": ("element_id",), "MAP": ("key_id", "value_id")}

# DLF's wrapper: exactly one of these keys is set.
_WRAPPERS = ("primitiveType", "arrayType", "multisetType", "mapType", "rowType")

_ICEBERG_KEYS = frozenset({"elementId", "keyId", "valueId", "initialDefault"})

_Kind = TypeVar("_Kind")

TextReader = Callable[[str], str | dict[str, Any]]
"""Returns the JSON that a type's text means: a text of Paimon's grammar, or an object."""


def _unchanged(text: str) -> str:
    return text


def type_from_wire(wire: TypeJson) -> DataType:
    """Return the type of its wire form, as log records have it.

    Raises:
        InvalidTypeError: The type is invalid; the message names the position, where `$` is `wire`.
    """
    return _type_from_wire(wire, "$", 1)


def type_to_wire(data_type: DataType) -> TypeJson:
    """Return the wire form of a type: canonical text, or an object."""
    name = data_type.root if data_type.nullable else f"{data_type.root} NOT NULL"
    match data_type:
        case ArrayType(element=element, element_id=element_id):
            return TypeObject(
                name, element=type_to_wire(element), element_id=_none_to_unset(element_id)
            )
        case MultisetType(element=element):
            return TypeObject(name, element=type_to_wire(element))
        case MapType(key=key, value=value, key_id=key_id, value_id=value_id):
            return TypeObject(
                name,
                key=type_to_wire(key),
                value=type_to_wire(value),
                key_id=_none_to_unset(key_id),
                value_id=_none_to_unset(value_id),
            )
        case RowType(fields=fields):
            return TypeObject(name, fields=tuple(map(field_to_wire, fields)))
        case VectorType(element=element, length=length):
            return TypeObject(name, element=type_to_wire(element), length=length)
        case _:
            return format_type(data_type)


def field_from_wire(wire: FieldObject) -> DataField:
    """Return the column of its wire form, as log records have it.

    Raises:
        InvalidTypeError: Its type is invalid; the message names the position.
    """
    return _field_from_wire(wire, "$", 1)


def field_to_wire(member: DataField) -> FieldObject:
    """Return the wire form of a column."""
    return FieldObject(
        id=member.id,
        name=member.name,
        type=type_to_wire(member.type),
        description=_none_to_unset(member.description),
        default_value=_none_to_unset(member.default_value),
        initial_default=_none_to_unset(member.initial_default),
    )


def type_from_json(obj: object, convert_text: TextReader = _unchanged) -> DataType:
    """Read a type from decoded JSON: text, Paimon's object, or DLF's wrapper around either.

    A ROW without any ids is numbered 0, 1, 2, ... in reading order across the whole type. Unknown
    keys are ignored; an explicit null reads as absent.

    Args:
        obj: The decoded JSON.
        convert_text: Converts the texts in it to JSON types; by default they have Paimon's grammar.

    Raises:
        InvalidTypeError: The JSON is not a type; the message names the position, like
            `$.fields[2].type`.

    Example:
        >>> type_from_json({"type": "ARRAY NOT NULL", "element": "INT"})
        ArrayType(nullable=False, element=IntType(nullable=True))
        >>> type_from_json({"type": "ROW", "fields": [{"id": 0, "name": "a", "type": "LONG"}]})
        Traceback (most recent call last):
            ...
        ledger.model.errors.InvalidTypeError: $.fields[0].type: cannot read type 'LONG' ...
    """
    return type_from_wire(_type_json_to_wire(obj, "$", _FieldIdAssigner(convert_text), 1))


def type_to_json(data_type: DataType) -> str | dict[str, Any]:
    """Return a type as plain JSON, in the canonical form that Paimon writes."""
    plain: str | dict[str, Any] = _to_plain_json(type_to_wire(data_type))
    return plain if isinstance(plain, str) else _without_iceberg_keys(plain)


def field_from_json(
    obj: object, *, path: str = "$", convert_text: TextReader = _unchanged
) -> DataField:
    """Read a column from decoded JSON. Its `id` is required, and so are those inside its type.

    Args:
        obj: The decoded JSON.
        path: Position of `obj` in the document, for messages, like `$.fields[2]`.
        convert_text: Converts the types that are texts, as in `type_from_json`.

    Raises:
        InvalidTypeError: The JSON is not a column; the message names the position.
    """
    wire = _field_json_to_wire(obj, path, _FieldIdAssigner(convert_text, all_given=True), 1)
    return _field_from_wire(wire, path, 1)


def field_to_json(member: DataField) -> dict[str, Any]:
    """Return a column as plain JSON; description and default are left out when absent."""
    return _without_iceberg_keys(_to_plain_json(field_to_wire(member)))


def _to_plain_json(wire: TypeJson | FieldObject) -> Any:
    # Through the bytes, since msgspec.to_builtins keeps tuples, which no JSON decoder returns.
    return msgspec.json.decode(msgspec.json.encode(wire))


def _without_iceberg_keys(plain: dict[str, Any]) -> dict[str, Any]:
    """Return plain JSON without the keys that only Iceberg has."""
    return {
        key: _without_iceberg_keys(value)
        if isinstance(value, dict)
        else [_without_iceberg_keys(each) for each in value]
        if isinstance(value, list)
        else value
        for key, value in plain.items()
        if key not in _ICEBERG_KEYS
    }


def _none_to_unset(value: _Kind | None) -> _Kind | UnsetType:
    return UNSET if value is None else value


def _unset_to_none(value: _Kind | UnsetType) -> _Kind | None:
    return None if isinstance(value, UnsetType) else value


def _error_at_path(path: str, rule: str) -> InvalidTypeError:
    return InvalidTypeError(f"{path}: {rule}")


def _check_depth(path: str, depth: int) -> None:
    if depth > MAX_DEPTH:
        # The path is as deep as the type; its beginning is enough.
        raise _error_at_path(
            f"{path[:80]}...", f"types nest deeper than {MAX_DEPTH}; flatten this one"
        )


def _constructed_type_root(name: str, path: str) -> str:
    # Paimon matches the beginning only: its Python client writes `ARRAY<INT>` here.
    for root in _CONSTRUCTED:
        if name.startswith(root):
            return root
    raise _error_at_path(
        f"{path}.type",
        f"{name!r} is not a constructed type: an object is one of {', '.join(_CONSTRUCTED)}; "
        "write an atomic type as plain text",
    )


def _type_from_wire(wire: TypeJson | UnsetType, path: str, depth: int) -> DataType:
    if isinstance(wire, UnsetType):
        raise _error_at_path(path, "is missing")
    try:
        if isinstance(wire, str):
            return parse_type(wire)
    except InvalidTypeError as error:
        raise _error_at_path(path, error.message) from error
    _check_depth(path, depth)
    root = _constructed_type_root(wire.type, path)
    make, names = _CONSTRUCTED[root]
    members: list[object] = [
        _type_from_wire(getattr(wire, name), f"{path}.{name}", depth + 1) for name in names
    ]
    if root == "VECTOR":
        members.append(_require_present(wire.length, f"{path}.length"))
    elif root == "ROW":
        fields = _require_present(wire.fields, f"{path}.fields")
        members.append(
            tuple(
                _field_from_wire(member, f"{path}.fields[{index}]", depth + 1)
                for index, member in enumerate(fields)
            )
        )
    given = {name: getattr(wire, name) for name in _MEMBER_IDS.get(root, ())}
    ids = {name: each for name, each in given.items() if each is not UNSET}
    try:
        return make(*members, nullable="NOT NULL" not in wire.type, **ids)
    except InvalidTypeError as error:
        raise _error_at_path(path, error.message) from error


def _field_from_wire(wire: FieldObject, path: str, depth: int) -> DataField:
    return DataField(
        wire.id,
        wire.name,
        _type_from_wire(wire.type, f"{path}.type", depth),
        _unset_to_none(wire.description),
        _unset_to_none(wire.default_value),
        _unset_to_none(wire.initial_default),
    )


def _require_present(value: _Kind | UnsetType, path: str) -> _Kind:
    if isinstance(value, UnsetType):
        raise _error_at_path(path, "is missing")
    return value


_NO_MIX = "partial ids: give every field an id, or none of them"
_REQUIRED = "is missing: every column and every member in its type needs an id of its own"


class _FieldIdAssigner:
    """Assigns ids to fields without ids; rejects a mix, in which an id could repeat."""

    def __init__(self, convert_text: TextReader, *, all_given: bool = False) -> None:
        self.convert_text = convert_text
        self._rule = _REQUIRED if all_given else _NO_MIX
        self._given = all_given
        self._next = 0

    def own_or_next_id(self, member: dict[str, Any], path: str) -> int:
        """Return the field's own id, or the next free one."""
        given = member.get("id")
        if (given is None and self._given) or (given is not None and self._next > 0):
            raise _error_at_path(f"{path}.id", self._rule)
        if given is None:
            self._next += 1
            return self._next - 1
        self._given = True
        number = _require_kind(given, int, f"{path}.id")
        if not 0 <= number <= INT_MAX:
            raise _error_at_path(
                f"{path}.id", f"{excerpt(number)} is out of range: ids are 0 to {INT_MAX}"
            )
        return number


def _type_json_to_wire(obj: object, path: str, ids: _FieldIdAssigner, depth: int) -> TypeJson:
    if isinstance(obj, str):
        try:
            read = ids.convert_text(obj)
        except InvalidTypeError as error:
            raise _error_at_path(path, error.message) from error
        return read if isinstance(read, str) else _object_json_to_wire(read, path, ids, depth)
    _check_depth(path, depth)
    if not isinstance(obj, dict):
        raise _error_at_path(path, f"{excerpt(obj)} is no data type: a type is a text or an object")
    if obj.get("type") is None:
        return _wrapped_json_to_wire(obj, path, ids, depth)
    return _object_json_to_wire(obj, path, ids, depth)


def _wrapped_json_to_wire(
    obj: dict[str, Any], path: str, ids: _FieldIdAssigner, depth: int
) -> TypeJson:
    present = [name for name in _WRAPPERS if obj.get(name) is not None]
    if len(present) != 1:
        found = " and ".join(present) or "none"
        raise _error_at_path(
            path, f'needs "type", or exactly one of {", ".join(_WRAPPERS)}; found {found}'
        )
    place = f"{path}.{present[0]}"
    inner = obj[present[0]]
    if present[0] == "primitiveType":
        # The wrapper is DLF's, and so is the text in it.
        return _require_kind(inner, str, place)
    return _object_json_to_wire(_require_kind(inner, dict, place), place, ids, depth)


def _object_json_to_wire(
    obj: dict[str, Any], path: str, ids: _FieldIdAssigner, depth: int
) -> TypeObject:
    name = _require_kind(obj.get("type"), str, f"{path}.type")
    root = _constructed_type_root(name, path)
    parts: dict[str, Any] = {
        member: _type_json_to_wire(
            _require_member(obj, member, path), f"{path}.{member}", ids, depth + 1
        )
        for member in _CONSTRUCTED[root][1]
    }
    if root == "VECTOR":
        parts["length"] = _require_kind(_require_member(obj, "length", path), int, f"{path}.length")
    elif root == "ROW":
        fields = _require_kind(_require_member(obj, "fields", path), list, f"{path}.fields")
        parts["fields"] = tuple(
            _field_json_to_wire(member, f"{path}.fields[{index}]", ids, depth + 1)
            for index, member in enumerate(fields)
        )
    return TypeObject(name, **parts)


def _field_json_to_wire(obj: object, path: str, ids: _FieldIdAssigner, depth: int) -> FieldObject:
    member: dict[str, Any] = _require_kind(obj, dict, path)
    number = ids.own_or_next_id(member, path)
    texts = {
        key: UNSET if member.get(key) is None else _require_kind(member[key], str, f"{path}.{key}")
        for key in ("description", "defaultValue")
    }
    return FieldObject(
        id=number,
        name=_require_kind(_require_member(member, "name", path), str, f"{path}.name"),
        type=_type_json_to_wire(_require_member(member, "type", path), f"{path}.type", ids, depth),
        description=texts["description"],
        default_value=texts["defaultValue"],
    )


def _require_member(obj: dict[str, Any], name: str, path: str) -> object:
    if obj.get(name) is None:
        raise _error_at_path(f"{path}.{name}", "is missing")
    return obj[name]


_JSON_NAMES = {str: "a text", int: "a whole number", dict: "an object", list: "a list"}


def _require_kind(value: object, kind: type[_Kind], path: str) -> _Kind:
    # JSON's true and false are ints to Python.
    if not isinstance(value, kind) or isinstance(value, bool):
        raise _error_at_path(path, f"{excerpt(value)} is not {_JSON_NAMES[kind]}")
    if isinstance(value, str) and not is_utf8_encodable(value):
        raise _error_at_path(path, f"{excerpt(value)}: half a surrogate pair is no character")
    return value
