"""Iceberg schemas, types and defaults as JSON.

Source: the Iceberg table specification, "Default values", appendices C and D.

Keys that a class does not have are ignored at every depth: newer writers have more.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping
from datetime import date, datetime, time
from functools import lru_cache
from typing import Any, TypeVar

import msgspec
from msgspec import inspect

from ledger.model.errors import InvalidInputError, InvalidTypeError, TooLargeError
from ledger.model.iceberg_objects import Int
from projections.iceberg.metadata_schema import (
    DecimalType,
    FixedType,
    ListType,
    MapType,
    NestedField,
    PlainType,
    Schema,
    StructType,
    Type,
    check_schema,
    primitive_type,
    shared_field,
    type_name,
    type_text,
)

DEEPEST = 64
"""Types nested deeper than this are rejected; no engine reads them."""


def schema_from_json(obj: Any, place: str = "$") -> Schema:
    """Read a schema and check it.

    Args:
        obj: The schema as decoded JSON.
        place: Its path in the document, for messages.

    Raises:
        InvalidInputError: It is not a valid schema; the message names the place.
    """
    struct = type_from_json(_required_member(obj, "type", str, place) and obj, place)
    if not isinstance(struct, StructType):
        raise _schema_error(place, 'a schema is an object of type "struct"')
    schema = Schema(
        _optional_member(obj, "schema-id", Int, place) or 0,
        struct.fields,
        tuple(_optional_member(obj, "identifier-field-ids", list[Int], place) or ()),
    )
    try:
        check_schema(schema)
    except InvalidInputError as error:
        raise _schema_error(place, str(error)) from error
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
        InvalidTypeError: It is not a type, or nested too deeply; the message names the place.

    Example:
        >>> type_from_json({"type": "list", "element-id": 1, "element": "int",
        ...                 "element-required": False}).element_id
        1
    """
    if isinstance(obj, str):
        try:
            return primitive_type(obj)
        except InvalidTypeError as error:
            raise _schema_error(place, str(error)) from error
    if depth > DEEPEST:
        raise _schema_error(place, f"types are nested more than {DEEPEST} deep")
    match _required_member(obj, "type", str, place):
        case "struct":
            return StructType(_parse_fields(obj, place, depth))
        case "list":
            return ListType(
                element_id=_required_member(obj, "element-id", Int, place),
                element=_parse_member_type(obj, "element", place, depth),
                element_required=_required_member(obj, "element-required", bool, place),
            )
        case "map":
            return MapType(
                key_id=_required_member(obj, "key-id", Int, place),
                key=_parse_member_type(obj, "key", place, depth),
                value_id=_required_member(obj, "value-id", Int, place),
                value=_parse_member_type(obj, "value", place, depth),
                value_required=_required_member(obj, "value-required", bool, place),
            )
        case other:
            raise _schema_error(f"{place}.type", f"{other!r:.80} is none of struct, list, map")


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


def _parse_fields(obj: Any, place: str, depth: int) -> tuple[NestedField, ...]:
    items = _required_member(obj, "fields", list, place)
    return tuple(
        _cached_field(each) or _parse_field(each, f"{place}.fields[{index}]", depth)
        for index, each in enumerate(items)
    )


def _cached_field(obj: Any) -> NestedField | None:
    """Return a field with only plain keys, from a cache; None if it needs the full parser."""
    if type(obj) is not dict or not obj.keys() <= _PLAIN_KEYS:
        return None
    key = obj.get("id"), obj.get("name"), obj.get("required"), obj.get("type"), obj.get("doc")
    if tuple(map(type, key)) not in _PLAIN_TYPES:
        return None
    return _parse_plain_field(*key)


_PLAIN_KEYS = {"id", "name", "required", "type", "doc"}
_PLAIN_TYPES = {(int, str, bool, str, type(None)), (int, str, bool, str, str)}


@lru_cache(maxsize=65_536)
def _parse_plain_field(
    field_id: int,
    name: str,
    required: bool,  # noqa: FBT001 - a part of the key
    kind: str,
    doc: str | None,
) -> NestedField | None:
    obj = {"id": field_id, "name": name, "required": required, "type": kind, "doc": doc}
    try:
        return shared_field(_parse_field(obj, "", 0))
    except InvalidInputError:
        # The full parser raises the error with its place.
        return None


def _parse_field(obj: Any, place: str, depth: int) -> NestedField:
    kind = _parse_member_type(obj, "type", place, depth)
    defaults = {key: obj.get(key) for key in ("initial-default", "write-default")}
    for key, value in defaults.items():
        try:
            check_default(kind, value)
        except InvalidInputError as error:
            raise _schema_error(f"{place}.{key}", str(error)) from error
    return NestedField(
        id=_required_member(obj, "id", Int, place),
        name=_required_member(obj, "name", str, place),
        type=kind,
        required=_required_member(obj, "required", bool, place),
        doc=_optional_member(obj, "doc", str, place),
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


def _parse_member_type(obj: Any, key: str, place: str, depth: int) -> Type:
    return type_from_json(_required_member(obj, key, object, place), f"{place}.{key}", depth + 1)


def _required_member(obj: Any, key: str, kind: Any, place: str) -> Any:
    if not isinstance(obj, dict):
        raise _schema_error(place, f"{obj!r:.80} is not an object")
    if key not in obj:
        raise _schema_error(f"{place}.{key}", "is missing")
    return _convert_value(obj[key], kind, f"{place}.{key}")


def _optional_member(obj: Any, key: str, kind: Any, place: str) -> Any:
    return None if obj.get(key) is None else _convert_value(obj[key], kind, f"{place}.{key}")


def _convert_value(value: Any, kind: Any, place: str) -> Any:
    if kind is object or type(value) is kind:
        return value
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise _schema_error(place, str(error)) from error


def _schema_error(place: str, problem: str) -> InvalidTypeError:
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
    """Check that JSON is a value of a type; null is valid for every type.

    Of nested types only a struct has a default other than null, and it is `{}`.

    Raises:
        InvalidInputError: It is not a value of the type.

    Example:
        >>> check_default(DecimalType(9, 2), "14.20")
    """
    if value is None:
        return
    match kind:
        case StructType():
            fits = value == {} and isinstance(value, dict)
        case PlainType(name=name):
            fits = _is_plain_value(name, value)
        case FixedType(length=length):
            fits = _matches_pattern(_HEX, value) and len(value) == 2 * length
        case DecimalType():
            fits = _is_decimal_value(kind, value)
        case _:
            fits = False
    if not fits:
        raise InvalidInputError(
            f"{value!r:.80} is no default of type {type_name(kind)}; defaults are single-value JSON"
        )


def _is_plain_value(name: str, value: Any) -> bool:
    if name in _INTEGER_BITS:
        most = 2 ** (_INTEGER_BITS[name] - 1)
        return type(value) is int and -most <= value < most
    if name in _JSON_TYPES:
        return isinstance(value, _JSON_TYPES[name])
    if name in _PATTERNS:
        return _matches_pattern(_PATTERNS[name], value)
    return name in _TIMES and _is_time_value(name, value)


def _matches_pattern(pattern: re.Pattern[str], value: Any) -> bool:
    return isinstance(value, str) and pattern.fullmatch(value) is not None


def _is_decimal_value(kind: DecimalType, value: Any) -> bool:
    found = _DECIMAL.fullmatch(value) if isinstance(value, str) else None
    if found is None or len(found[1] or "") != kind.scale:
        return False
    return len(value.lstrip("-").replace(".", "").lstrip("0")) <= kind.precision


def _is_time_value(name: str, value: Any) -> bool:
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


MOST_BYTES = 2**30
"""Limit for the size of a file's content, compressed or not."""

_GZIP_FLOOR = 32 << 20
_GZIP_EXPANSION = 100
"""Limit for the expansion of a gzip file beyond the floor. Metadata of 5,000 snapshots with
similar summaries expands 15 to 30 times."""

_VALUES_FLOOR = 2_000_000
_VALUES_PER_BYTE = 4
"""Limit for values per compressed byte; the shortest take 30 times their bytes in memory."""

_GZIP = b"\x1f\x8b"
_GZIP_WINDOW = zlib.MAX_WBITS | 16

_Record = TypeVar("_Record")
_encoder = msgspec.json.Encoder()


def decode_record(content: bytes | str, kind: type[_Record], what: str) -> _Record:
    """Return JSON as a typed record; unknown keys are ignored at every depth.

    Args:
        content: The JSON.
        kind: The record's class.
        what: The name of the expected JSON, for the message.

    Raises:
        InvalidInputError: The JSON is not such a record; the message names the place.
    """
    try:
        return msgspec.json.decode(content, type=kind)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        if isinstance(error, msgspec.ValidationError) and _UNKNOWN in str(error):
            return convert_record(msgspec.json.decode(content), kind, what)
        raise invalid_json_error(what, error) from error


def convert_record(obj: Any, kind: type[_Record], what: str) -> _Record:
    """Return decoded JSON as a typed record, as `decode_record` does.

    Raises:
        InvalidInputError: The JSON is not such a record; the message names the place.
    """
    try:
        return msgspec.convert(obj, kind)
    except (msgspec.ValidationError, RecursionError, UnicodeError) as error:
        if _UNKNOWN not in str(error):
            raise invalid_json_error(what, error) from error
    try:
        return msgspec.convert(_without_unknown_keys(obj, inspect.type_info(kind)), kind)
    except (msgspec.ValidationError, RecursionError, UnicodeError) as error:
        raise invalid_json_error(what, error) from error


_UNKNOWN = "unknown field"


def _without_unknown_keys(value: Any, kind: inspect.Type) -> Any:
    """Return decoded JSON without keys that a type does not have, as newer writers add them."""
    match kind:
        case inspect.StructType(fields=fields) if isinstance(value, dict):
            own = {each.encode_name: each.type for each in fields}
            tag = kind.tag_field
            return {
                key: _without_unknown_keys(each, own[key]) if key in own else each
                for key, each in value.items()
                if key in own or key == tag
            }
        case inspect.CollectionType(item_type=item) if isinstance(value, list):
            return [_without_unknown_keys(each, item) for each in value]
        case inspect.DictType(value_type=inside) if isinstance(value, dict):
            return {key: _without_unknown_keys(each, inside) for key, each in value.items()}
        case inspect.UnionType(types=types):
            return _without_unknown_keys(value, _union_member_of(value, types))
        case _:
            return value


def _union_member_of(value: Any, types: tuple[inspect.Type, ...]) -> inspect.Type:
    """Return the member of a union that a value belongs to; the first one if no tag decides."""
    for each in types:
        if isinstance(each, inspect.StructType) and each.tag_field is not None:
            if isinstance(value, dict) and value.get(each.tag_field) == each.tag:
                return each
        elif isinstance(each, inspect.StructType | inspect.CollectionType | inspect.DictType):
            return each
    return types[0]


def invalid_json_error(what: str, error: Exception | str) -> InvalidInputError:
    """Return the error for invalid JSON."""
    return InvalidInputError(f"not Iceberg {what}: {error}; see the Iceberg specification")


def encode_record(value: Any) -> bytes:
    """Return a record as compact JSON, keys in the record's order."""
    return _encoder.encode(value)


def inflate_if_gzip(content: bytes | str) -> bytes | str:
    """Return the content of a file that may be compressed with gzip.

    Raises:
        InvalidInputError: The compressed bytes are cut short, or the content is not UTF-8. The JSON
            decoder skips texts of unknown keys, so it does not check those.
        TooLargeError: It unpacks to more than a writer's metadata does.
    """
    if len(content) > MOST_BYTES:
        raise TooLargeError(f"a metadata file of more than {MOST_BYTES} bytes is not read")
    if isinstance(content, str):
        return content
    found = _inflate_limited(content) if content.startswith(_GZIP) else content
    try:
        found.decode()
    except UnicodeDecodeError as error:
        raise InvalidInputError(
            f"byte {error.start} of a metadata file is not UTF-8; have its owner write it again"
        ) from error
    return found


def _inflate_limited(content: bytes) -> bytes:
    most = min(_GZIP_FLOOR + _GZIP_EXPANSION * len(content), MOST_BYTES)
    inflater = zlib.decompressobj(_GZIP_WINDOW)
    try:
        found = inflater.decompress(content, most + 1)
    except zlib.error as error:
        raise InvalidInputError(f"not gzip: {error}; fetch the metadata file again") from error
    if len(found) > most:
        raise TooLargeError(
            f"the gzip data unpacks to more than {most} bytes, the limit for {len(content)} bytes "
            "of it: have its owner write the metadata file again"
        )
    if not inflater.eof:
        raise InvalidInputError("the gzip data ends early; fetch the metadata file again")
    values = found.count(b",") + found.count(b"[") + found.count(b"{")
    if values > _VALUES_FLOOR + _VALUES_PER_BYTE * len(content):
        raise TooLargeError(
            f"the gzip data holds {values} values, and the limit for {len(content)} bytes of it is "
            f"{_VALUES_FLOOR + _VALUES_PER_BYTE * len(content)}: have its owner write the metadata "
            "file again"
        )
    return found


def kebab_case(class_name: str) -> str:
    """Return a class's name as its tag in JSON.

    Example:
        >>> kebab_case("AddSnapshot")
        'add-snapshot'
    """
    words = "".join(f"-{each.lower()}" if each.isupper() else each for each in class_name)
    return words.removeprefix("-")


def integer_property(properties: Mapping[str, str], key: str, default: int) -> int:
    """Return an integer property.

    Raises:
        InvalidInputError: Its value is not an integer.
    """
    text = properties.get(key)
    if text is None:
        return default
    try:
        return int(text)
    except ValueError as error:
        raise InvalidInputError(f"property {key} is {text!r:.80} and should be a number") from error


def boolean_property(properties: Mapping[str, str], key: str, *, default: bool) -> bool:
    """Return a boolean property; as in Java, every value but `true` is false."""
    text = properties.get(key)
    return default if text is None else text.lower() == "true"
