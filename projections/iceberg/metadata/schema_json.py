"""Schemas, types and default values as JSON.

Source: the Iceberg table specification, "Default values", appendices C and D.
"""

from __future__ import annotations

import re
from datetime import date, datetime, time
from functools import lru_cache
from typing import Any

import msgspec

from ledger.model.errors import InvalidInputError, InvalidTypeError
from ledger.model.iceberg.snapshot import Int
from projections.iceberg.metadata.schema import Schema, check_schema
from projections.iceberg.metadata.types import (
    DecimalType,
    FixedType,
    ListType,
    MapType,
    NestedField,
    PlainType,
    StructType,
    Type,
    primitive_type,
    shared,
    type_name,
    type_text,
)

DEEPEST = 64
"""Types nested deeper than this are refused; no engine reads them."""


def schema_from_json(obj: Any, place: str = "$") -> Schema:
    """Read a schema and check it.

    Args:
        obj: What a JSON decoder made of it.
        place: Where it stands in what is being read, for messages.

    Raises:
        InvalidInputError: It is no schema, or contradicts itself; the message names the place.
    """
    struct = type_from_json(_member(obj, "type", str, place) and obj, place)
    if not isinstance(struct, StructType):
        raise _wrong(place, 'a schema is an object of type "struct"')
    schema = Schema(
        _optional(obj, "schema-id", Int, place) or 0,
        struct.fields,
        tuple(_optional(obj, "identifier-field-ids", list[Int], place) or ()),
    )
    try:
        check_schema(schema)
    except InvalidInputError as error:
        raise _wrong(place, str(error)) from error
    return schema


def schema_to_json(schema: Schema) -> dict[str, Any]:
    """Return a schema's JSON, keys in Java's order."""
    identifiers = list(schema.identifier_field_ids)
    return {
        "type": "struct",
        "schema-id": schema.schema_id,
        **({"identifier-field-ids": identifiers} if identifiers else {}),
        "fields": [_field_to_json(each) for each in schema.fields],
    }


def type_from_json(obj: Any, place: str = "$", depth: int = 0) -> Type:
    """Read a type.

    Raises:
        InvalidTypeError: It is none, or nested too deeply; the message names the place.

    Example:
        >>> type_from_json({"type": "list", "element-id": 1, "element": "int",
        ...                 "element-required": False}).element_id
        1
    """
    if isinstance(obj, str):
        try:
            return primitive_type(obj)
        except InvalidTypeError as error:
            raise _wrong(place, str(error)) from error
    if depth > DEEPEST:
        raise _wrong(place, f"types are nested more than {DEEPEST} deep")
    match _member(obj, "type", str, place):
        case "struct":
            return StructType(_fields(obj, place, depth))
        case "list":
            return ListType(
                element_id=_member(obj, "element-id", Int, place),
                element=_inner(obj, "element", place, depth),
                element_required=_member(obj, "element-required", bool, place),
            )
        case "map":
            return MapType(
                key_id=_member(obj, "key-id", Int, place),
                key=_inner(obj, "key", place, depth),
                value_id=_member(obj, "value-id", Int, place),
                value=_inner(obj, "value", place, depth),
                value_required=_member(obj, "value-required", bool, place),
            )
        case other:
            raise _wrong(f"{place}.type", f"{other!r:.80} is none of struct, list, map")


def type_to_json(kind: Type) -> str | dict[str, Any]:
    """Return a type's JSON, keys in Java's order."""
    match kind:
        case StructType(fields=fields):
            return {"type": "struct", "fields": [_field_to_json(each) for each in fields]}
        case ListType():
            return {
                "type": "list",
                "element-id": kind.element_id,
                "element": type_to_json(kind.element),
                "element-required": kind.element_required,
            }
        case MapType():
            return {
                "type": "map",
                "key-id": kind.key_id,
                "key": type_to_json(kind.key),
                "value-id": kind.value_id,
                "value": type_to_json(kind.value),
                "value-required": kind.value_required,
            }
        case _:
            return type_text(kind)


def _fields(obj: Any, place: str, depth: int) -> tuple[NestedField, ...]:
    items = _member(obj, "fields", list, place)
    return tuple(
        _known(each) or _field(each, f"{place}.fields[{index}]", depth)
        for index, each in enumerate(items)
    )


def _known(obj: Any) -> NestedField | None:
    """Return a field that says nothing unusual; None where it has to be looked at closely."""
    if type(obj) is not dict or not obj.keys() <= _PLAIN_KEYS:
        return None
    key = obj.get("id"), obj.get("name"), obj.get("required"), obj.get("type"), obj.get("doc")
    if tuple(map(type, key)) not in _PLAIN_TYPES:
        return None
    return _plain_field(*key)


_PLAIN_KEYS = {"id", "name", "required", "type", "doc"}
_PLAIN_TYPES = {(int, str, bool, str, type(None)), (int, str, bool, str, str)}


@lru_cache(maxsize=65_536)
def _plain_field(
    field_id: int,
    name: str,
    required: bool,  # noqa: FBT001 - a part of the key
    kind: str,
    doc: str | None,
) -> NestedField | None:
    obj = {"id": field_id, "name": name, "required": required, "type": kind, "doc": doc}
    try:
        return shared(_field(obj, "", 0))
    except InvalidInputError:
        # Whoever looks closely says where it stands.
        return None


def _field(obj: Any, place: str, depth: int) -> NestedField:
    kind = _inner(obj, "type", place, depth)
    defaults = {key: obj.get(key) for key in ("initial-default", "write-default")}
    for key, value in defaults.items():
        try:
            check_default(kind, value)
        except InvalidInputError as error:
            raise _wrong(f"{place}.{key}", str(error)) from error
    return NestedField(
        id=_member(obj, "id", Int, place),
        name=_member(obj, "name", str, place),
        type=kind,
        required=_member(obj, "required", bool, place),
        doc=_optional(obj, "doc", str, place),
        initial_default=defaults["initial-default"],
        write_default=defaults["write-default"],
    )


def _field_to_json(each: NestedField) -> dict[str, Any]:
    extras = {
        "doc": each.doc,
        "initial-default": each.initial_default,
        "write-default": each.write_default,
    }
    return {
        "id": each.id,
        "name": each.name,
        "required": each.required,
        "type": type_to_json(each.type),
        **{key: value for key, value in extras.items() if value is not None},
    }


def _inner(obj: Any, key: str, place: str, depth: int) -> Type:
    return type_from_json(_member(obj, key, object, place), f"{place}.{key}", depth + 1)


def _member(obj: Any, key: str, kind: Any, place: str) -> Any:
    if not isinstance(obj, dict):
        raise _wrong(place, f"{obj!r:.80} is not an object")
    if key not in obj:
        raise _wrong(f"{place}.{key}", "is missing")
    return _typed(obj[key], kind, f"{place}.{key}")


def _optional(obj: Any, key: str, kind: Any, place: str) -> Any:
    return None if obj.get(key) is None else _typed(obj[key], kind, f"{place}.{key}")


def _typed(value: Any, kind: Any, place: str) -> Any:
    if kind is object or type(value) is kind:
        return value
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise _wrong(place, str(error)) from error


def _wrong(place: str, problem: str) -> InvalidTypeError:
    return InvalidTypeError(f"{place}: {problem}")


_INTEGER_BITS = {"int": 32, "long": 64}
_JSON_TYPES: dict[str, type] = {"boolean": bool, "float": float, "double": float, "string": str}
_DECIMAL = re.compile(r"-?[0-9]+(?:\.([0-9]+))?")
_HEX = re.compile(r"(?:[0-9a-fA-F]{2})*")
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_PATTERNS = {"binary": _HEX, "uuid": _UUID}
_CLOCK = r"((?!24)[0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,9})?)?)"
_DAY = r"([+-]?[0-9]{4,9}-[0-9]{2}-[0-9]{2})"
_TIMES = {
    "date": re.compile(_DAY),
    "time": re.compile(_CLOCK),
    "timestamp": re.compile(f"{_DAY}T{_CLOCK}"),
    "timestamptz": re.compile(rf"{_DAY}T{_CLOCK}(?:\+00:00|Z)"),
    "timestamp_ns": re.compile(f"{_DAY}T{_CLOCK}"),
    "timestamptz_ns": re.compile(rf"{_DAY}T{_CLOCK}(?:\+00:00|Z)"),
}


def check_default(kind: Type, value: Any) -> None:
    """Check that JSON is a value of a type; null is one of every type.

    Of nested types only a struct has a default other than null, and it is `{}`.

    Raises:
        InvalidInputError: It is none.

    Example:
        >>> check_default(DecimalType(9, 2), "14.20")
    """
    if value is None:
        return
    match kind:
        case StructType():
            fits = value == {} and isinstance(value, dict)
        case PlainType(name=name):
            fits = _fits_plain(name, value)
        case FixedType(length=length):
            fits = _fits(_HEX, value) and len(value) == 2 * length
        case DecimalType():
            fits = _fits_decimal(kind, value)
        case _:
            fits = False
    if not fits:
        raise InvalidInputError(
            f"{value!r:.80} is no default of type {type_name(kind)}; defaults are single-value JSON"
        )


def _fits_plain(name: str, value: Any) -> bool:
    if name in _INTEGER_BITS:
        most = 2 ** (_INTEGER_BITS[name] - 1)
        return type(value) is int and -most <= value < most
    if name in _JSON_TYPES:
        return isinstance(value, _JSON_TYPES[name])
    if name in _PATTERNS:
        return _fits(_PATTERNS[name], value)
    return name in _TIMES and _fits_time(name, value)


def _fits(pattern: re.Pattern[str], value: Any) -> bool:
    return isinstance(value, str) and pattern.fullmatch(value) is not None


def _fits_decimal(kind: DecimalType, value: Any) -> bool:
    found = _DECIMAL.fullmatch(value) if isinstance(value, str) else None
    if found is None or len(found[1] or "") != kind.scale:
        return False
    return len(value.lstrip("-").replace(".", "").lstrip("0")) <= kind.precision


def _fits_time(name: str, value: Any) -> bool:
    found = _TIMES[name].fullmatch(value) if isinstance(value, str) else None
    if found is None:
        return False
    try:
        for part in found.groups():
            if ":" in part:
                time.fromisoformat(part[:15])
            elif len(part) == len("2017-11-16"):
                date.fromisoformat(part)
            else:
                # Python ends at year 9999; the days of a month repeat every 400 years.
                year, month, day = part.lstrip("+-").split("-")
                datetime(2000 + int(year) % 400, int(month), int(day))  # noqa: DTZ001  # a check
    except ValueError:
        return False
    return True
