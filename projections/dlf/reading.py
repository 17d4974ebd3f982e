"""JSON to objects, in both spellings, without implicit casts.

Errors of cattrs are reported in one sentence that names the place.

The ledger's own reader of types accepts both spellings and is lenient about a mix of them; the
page is not.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache, partial
from types import UnionType
from typing import Any, Literal, TypeAlias, TypeVar, get_args, get_origin, overload

import attrs
import msgspec
from attrs import evolve
from cattrs import Converter, override
from cattrs.errors import (
    AttributeValidationNote,
    BaseValidationError,
    ClassValidationError,
    IterableValidationError,
    IterableValidationNote,
)
from cattrs.gen import make_dict_structure_fn

from ledger.decide.change_json import schema_change_from_json
from ledger.events.catalog import ViewChange
from ledger.events.functions import FunctionChange
from ledger.events.schema import Move, SchemaChange, UpdateColumnPosition
from ledger.model.errors import InvalidChangeError, InvalidInputError, InvalidTypeError
from ledger.model.functions import FunctionDefinition
from ledger.model.instant import SnapshotInstant, TagInstant
from ledger.model.messages import is_utf8_encodable
from ledger.model.names import Identifier
from ledger.model.schema import Schema
from ledger.model.snapshot import Snapshot
from ledger.model.types import MAX_DEPTH, DataField, DataType
from ledger.model.types.text import parse_type
from ledger.model.types.wire import field_from_json, type_from_json
from projections.dlf.keys import (
    CHANGES,
    DEFINITIONS,
    FUNCTION_PARTS,
    VALUES,
    VIEWS,
    camel_case,
    change_tag,
    changes_by_tag,
)
from projections.dlf.objects import (
    ApiInstant,
    ErrorResponse,
    GetTableResponse,
)

# The DLF spelling of a ROW opens four containers: wrapper, type, list of fields, field.
_MAX_NESTING = 4 * MAX_DEPTH + 32
_LONGS = range(-(2**63), 2**63)
_PLAIN_KEY = re.compile(r"\w{1,64}")

# Position of a value: that of its container, and the key or index in it.
_Place: TypeAlias = "tuple[_Place, str | int] | None"


def decode_document(obj: object) -> object:
    """Return a JSON document as plain Python, after checking that it is harmless.

    Harmless: JSON's own types, keys that are texts, integers of 64 bits, Unicode that can be
    encoded, and no deeper than the deepest type. The check takes time in proportion to the document
    and uses no recursion.

    Args:
        obj: JSON text, or decoded JSON.

    Raises:
        InvalidInputError: It is not harmless; the message names the place.

    Example:
        >>> decode_document('{"id": 1}')
        {'id': 1}
        >>> decode_document({"id": 2**70})
        Traceback (most recent call last):
        ledger.model.errors.InvalidInputError: $.id: has more than 64 bits; ...
    """
    document = _parse_json(obj) if isinstance(obj, str | bytes) else obj
    waiting: list[tuple[object, _Place, int]] = [(document, None, 0)]
    while waiting:
        value, place, depth = waiting.pop()
        problem = _too_deep_message() if depth > _MAX_NESTING else _value_problem(value)
        if problem is not None:
            raise InvalidInputError(f"{_place_text(place)}: {problem}")
        members: Any = ()
        if isinstance(value, dict):
            members = value.items()
        elif isinstance(value, list):
            members = enumerate(value)
        # The last one pushed is checked first, and errors are reported from the top.
        waiting.extend((each, (place, key), depth + 1) for key, each in reversed([*members]))
    return document


def _parse_json(text: str | bytes) -> object:
    try:
        return msgspec.json.decode(text)
    except RecursionError as error:
        raise InvalidInputError(f"$: {_too_deep_message()}") from error
    except (msgspec.DecodeError, UnicodeError) as error:
        raise InvalidInputError(f"$: not JSON: {error}; send one whole JSON document") from error


def _value_problem(value: object) -> str | None:
    """Return the problem of one value, without those of its members."""
    match value:
        case None | bool() | float() | list():
            return None
        case int():
            sound, rule = value in _LONGS, "has more than 64 bits; send a smaller number"
        case str():
            sound, rule = is_utf8_encodable(value), "has half a character; send whole Unicode"
        case dict():
            sound = all(isinstance(key, str) and is_utf8_encodable(key) for key in value)
            rule = "has a key that is not a text; JSON's keys are texts"
        case _:
            return f"{type(value).__name__} is not a JSON type; give decoded JSON"
    return None if sound else rule


def _too_deep_message() -> str:
    return f"nests deeper than {_MAX_NESTING}; flatten it"


def _place_text(place: _Place) -> str:
    steps: list[str] = []
    while place is not None:
        place, key = place
        plain = isinstance(key, str) and _PLAIN_KEY.fullmatch(key)
        steps.append(f".{key}" if plain else f"[{key!r:.80}]")
    # The beginning of a very deep path is enough.
    return "$" + "".join(reversed(steps))[:200]


def reading_error(error: Exception, kind: object, obj: object) -> InvalidInputError:
    """Return the error to raise for an error of a reader: the first problem and its place.

    Args:
        error: The reader's error.
        kind: The class to be read.
        obj: The JSON that it was read from.

    Example:
        >>> reading_error(ValueError("$.name: is missing"), str, {}).message
        '$.name: is missing'
    """
    path, cause = _first_error(error, "$")
    text = cause.args[0] if cause.args else cause
    if isinstance(cause, KeyError):
        return InvalidInputError(f"{path}: is missing")
    if isinstance(cause, RecursionError):
        return InvalidInputError(f"{path}: nests too deep for the stack left here; flatten it")
    if str(text).startswith("$"):
        # The reader of a part gives the place inside the part: `$.type: ...`.
        return InvalidInputError(f"{path}{str(text)[1:]}")
    if path == "$":
        name = getattr(kind, "__name__", "object of this kind")
        return InvalidInputError(f"$: {obj!r:.80} is no {name}: {text}")
    return InvalidInputError(f"{path}: {text}")


def _first_error(error: Exception, path: str) -> tuple[str, Exception]:
    if not isinstance(error, BaseValidationError):
        return path, error
    inner, note = _errors_with_notes(error)[0]
    if isinstance(note, AttributeValidationNote):
        path = f"{path}.{camel_case(note.name)}"
    elif isinstance(note, IterableValidationNote):
        path = f"{path}[{note.index!r}]"
    return _first_error(inner, path)


def _errors_with_notes(
    error: BaseValidationError,
) -> list[tuple[Exception, AttributeValidationNote | IterableValidationNote | None]]:
    if isinstance(error, ClassValidationError | IterableValidationError):
        noted, plain = error.group_exceptions()
        return [*noted, *((each, None) for each in plain)]
    return [(each, None) for each in error.exceptions]


T = TypeVar("T")

_JSON_NAMES: dict[type, str] = {
    str: "a string",
    int: "a whole number",
    bool: "true or false",
    dict: "an object",
    list: "a list",
}
_LONG = re.compile(r"-?[0-9]{1,19}")


def strict_converter() -> Converter:
    """Return a converter that accepts texts, numbers, lists and maps without casts.

    Example:
        >>> strict_converter().structure(["a"], tuple[str, ...])
        ('a',)
    """
    converter = Converter()
    for primitive in (str, int, bool):
        converter.register_structure_hook(primitive, check_json_type)
    converter.register_structure_hook_func(_is_literal, _check_literal)
    # cattrs accepts a text or an object as a list, of its letters or keys.
    converter.register_structure_hook_func(_is_tuple, partial(_structure_tuple, converter))
    converter.register_structure_hook_func(_is_mapping, partial(_structure_mapping, converter))
    return converter


def check_json_type(value: Any, kind: type[T]) -> T:
    """Return a value of one of JSON's own types, unchanged.

    Raises:
        ValueError: It is of another type.
    """
    # JSON's true and false are ints in Python.
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise ValueError(f"{value!r:.80} is not {_JSON_NAMES[kind]}")
    return value


def present(obj: Any) -> dict[str, Any]:
    """Return an object's members without those that are null.

    Raises:
        ValueError: It is not an object.
    """
    return {key: value for key, value in check_json_type(obj, dict).items() if value is not None}


def require_member(content: dict[str, Any], key: str, kind: type[T], place: str = "") -> T:
    """Return one member of an object.

    Args:
        content: The object's members, without null ones.
        key: The member's key.
        kind: One of JSON's own types.
        place: The object's place in the document: "" or like `.tagInstant`.

    Raises:
        ValueError: It is missing or of another type; the message names the place.
    """
    if key not in content:
        raise ValueError(f"${place}.{key}: is missing")
    try:
        return check_json_type(content[key], kind)
    except ValueError as error:
        raise ValueError(f"${place}.{key}: {error}") from error


def read_integer(value: Any, _: object) -> int:
    """Return an integer, also from its digits: the DLF page has some as texts.

    Raises:
        ValueError: It is not an integer, or has more than 64 bits.

    Example:
        >>> read_integer("12", int)
        12
    """
    if isinstance(value, str) and _LONG.fullmatch(value) and -(2**63) <= int(value) < 2**63:
        return int(value)
    return check_json_type(value, int)


def read_boolean(value: Any, _: object) -> bool:
    """Return a boolean, also from its name: the DLF page has one as a text.

    Raises:
        ValueError: It is neither.

    Example:
        >>> read_boolean("false", bool)
        False
    """
    if value in ("true", "false"):
        return bool(value == "true")
    return check_json_type(value, bool)


def _is_literal(kind: Any) -> bool:
    return get_origin(kind) is Literal


def _check_literal(value: Any, kind: Any) -> Any:
    if value not in get_args(kind):
        raise ValueError(f"{value!r:.80} is not one of {', '.join(get_args(kind))}")
    return value


def _is_tuple(kind: Any) -> bool:
    return get_origin(kind) is tuple


def _is_mapping(kind: Any) -> bool:
    return get_origin(kind) is Mapping


def _structure_tuple(converter: Converter, obj: object, kind: Any) -> tuple[Any, ...]:
    items: Any = list[get_args(kind)[0]]  # type: ignore[misc]  # a type known at run time only
    return tuple(converter.structure(check_json_type(obj, list), items))


def _structure_mapping(converter: Converter, obj: object, kind: Any) -> Mapping[Any, Any]:
    members: Any = dict[get_args(kind)]  # type: ignore[misc]  # a type known at run time only
    content: Mapping[Any, Any] = converter.structure(check_json_type(obj, dict), members)
    return content


# What the `type` inside each wrapper begins with, by the page's patterns.
_ROOTS = {
    "arrayType": "ARRAY",
    "multisetType": "MULTISET",
    "mapType": "MAP",
    "rowType": "ROW",
}
_CONSTRUCTED = frozenset({*_ROOTS.values(), "VECTOR"})
_KEYS = ("primitiveType", *_ROOTS)
_MEMBERS = ("element", "key", "value")


def check_wrappers(data_type: object, path: str) -> None:
    """Reject a data type in which a wrapper does not fit; other errors are not checked.

    Args:
        data_type: The decoded JSON of a type, in either style.
        path: Its place in the document, for messages.

    Raises:
        InvalidTypeError: The message names the place.

    Example:
        >>> check_wrappers({"primitiveType": "INT", "arrayType": {"type": "ARRAY"}}, "$.type")
        Traceback (most recent call last):
        ledger.model.errors.InvalidTypeError: $.type: sets primitiveType and arrayType: ...
    """
    waiting: list[tuple[object, str]] = [(data_type, path)]
    while waiting:
        value, place = waiting.pop()
        if isinstance(value, dict):
            inner, inside = _unwrap_type(value, place)
            waiting.extend(_nested_types(inner, inside))


def _unwrap_type(value: dict[str, Any], place: str) -> tuple[dict[str, Any], str]:
    present = [key for key in ("type", *_KEYS) if value.get(key) is not None]
    if len(present) > 1:
        raise InvalidTypeError(f"{place}: sets {' and '.join(present)}: set exactly one of them")
    if not present or present == ["type"]:
        return value, place
    key, inner = present[0], value[present[0]]
    inside = f"{place}.{key}"
    if key == "primitiveType":
        _check_primitive(inner, inside)
    elif isinstance(inner, dict):
        name = inner.get("type")
        if isinstance(name, str) and not name.startswith(_ROOTS[key]):
            raise InvalidTypeError(
                f"{inside}.type: is {name!r:.80}, but in {key} it begins with {_ROOTS[key]}"
            )
        return inner, inside
    return {}, inside


def _check_primitive(text: object, place: str) -> None:
    if not isinstance(text, str):
        return
    try:
        root = parse_type(text).root
    except InvalidTypeError:
        return
    if root in _CONSTRUCTED:
        raise InvalidTypeError(f"{place}: {text!r:.80} is not a primitive type; wrap it as {root}")


def _nested_types(value: dict[str, Any], place: str) -> list[tuple[object, str]]:
    found = [(value[key], f"{place}.{key}") for key in _MEMBERS if key in value]
    fields = value.get("fields")
    if isinstance(fields, list):
        found.extend(
            (each.get("type"), f"{place}.fields[{index}].type")
            for index, each in enumerate(fields)
            if isinstance(each, dict)
        )
    return found


_Read = Callable[[Any, Any], Any]


@overload
def read(obj: object, kind: type[T]) -> T: ...
@overload
def read(obj: object, kind: UnionType) -> Any: ...
def read(obj: object, kind: Any) -> Any:
    """Read an object of the metadata API, in either style.

    Unknown keys are ignored and an explicit null reads as absent. A REST or DLF schema has no
    highest field id: the greatest id present is used, so never fold changes onto it.
    Source: the DLF page; Paimon's REST classes.

    Args:
        obj: JSON text, or decoded JSON.
        kind: The class: a view of this package, a value of the model, or a union of them such as
            `SchemaChange`. For an Instant give either instant's class; the other one is accepted as
            well.

    Raises:
        InvalidInputError: It is not such an object; the message names the place, like
            `$.schema.fields[2].type`.

    Example:
        >>> read('{"database": "shop", "object": "orders"}', Identifier)
        Identifier(database='shop', name='orders')
        >>> read({"databaseName": "shop", "tableName": 1}, Identifier)
        Traceback (most recent call last):
        ledger.model.errors.InvalidInputError: $.tableName: 1 is not a string
    """
    document = decode_document(obj)
    try:
        return _converter().structure(document, kind)
    except (BaseValidationError, ValueError, KeyError, RecursionError) as error:
        raise reading_error(error, kind, document) from error


@cache
def _converter() -> Converter:
    converter = strict_converter()
    # Created on first use, since cattrs binds the hooks of a class's members into the class's.
    converter.register_structure_hook_factory(
        lambda kind: kind in VIEWS or kind in VALUES, lambda kind: _class_hook(kind, converter)
    )
    converter.register_structure_hook(Identifier, _read_identifier)
    converter.register_structure_hook(DataField, _read_field)
    converter.register_structure_hook(DataType, _read_data_type)
    for instant in (SnapshotInstant, TagInstant):
        converter.register_structure_hook(instant, _read_instant)
    converter.register_structure_hook_func(lambda kind: kind == ApiInstant, _read_instant)
    register_changes(converter)
    return converter


def _class_hook(kind: Any, converter: Converter) -> _Read:
    """Return the hook of one class: its keys, and its special cases."""
    if kind is Schema:
        not_on_the_wire = ("id", "highest_field_id", "time_millis", "version")
        return _structure_hook_by_keys(
            kind, converter, dict.fromkeys(not_on_the_wire, override(omit=True))
        )
    if kind is Snapshot:
        offsets = override(rename="logOffsets", struct_hook=_read_log_offsets)
        return _prepared_hook(
            _fill_record_counts, _structure_hook_by_keys(kind, converter, {"log_offsets": offsets})
        )
    if kind is ErrorResponse:
        return _prepared_hook(_normalize_gateway_error, _structure_hook_by_keys(kind, converter))
    if kind is GetTableResponse:
        texts = {
            "is_external": override(rename="isExternal", struct_hook=read_boolean),
            "schema_id": override(rename="schemaId", struct_hook=read_integer),
        }
        by_keys = _structure_hook_by_keys(kind, converter, texts)
        return lambda obj, target: _with_schema_id(by_keys(obj, target))
    return _structure_hook_by_keys(kind, converter)


def _structure_hook_by_keys(
    kind: Any, converter: Converter, special: Mapping[str, Any] | None = None
) -> _Read:
    named = {each.name: override(rename=camel_case(each.name)) for each in attrs.fields(kind)}
    by_name: Any = {**named, **(special or {})}
    structure: _Read = make_dict_structure_fn(kind, converter, **by_name)
    return _prepared_hook(present, structure)


def _prepared_hook(prepare: Callable[[Any], Any], structure: _Read) -> _Read:
    return lambda obj, kind: structure(prepare(obj), kind)


def _read_log_offsets(value: Any, _: object) -> Mapping[int, int]:
    return {
        read_integer(bucket, int): check_json_type(offset, int)
        for bucket, offset in check_json_type(value, dict).items()
    }


def _with_schema_id(table: GetTableResponse) -> GetTableResponse:
    return evolve(table, schema=evolve(table.schema, id=table.schema_id))


def _fill_record_counts(obj: Any) -> dict[str, Any]:
    # Counts may be absent on the DLF page; Paimon's Java reads absent ones as 0.
    content = {"totalRecordCount": 0, "deltaRecordCount": 0, **present(obj)}
    # The same as rendered where no place is named.
    nameless = [key for key in ("baseManifestList", "deltaManifestList") if content.get(key) == ""]
    return {key: value for key, value in content.items() if key not in nameless}


def _normalize_gateway_error(obj: Any) -> dict[str, Any]:
    content = present(obj)
    capital = {key.lower(): content[key] for key in ("Message", "Code") if key in content}
    return {**capital, **content}


def _read_identifier(obj: Any, _: object) -> Identifier:
    content = present(obj)
    dlf = "databaseName" in content or "tableName" in content
    keys = ("databaseName", "tableName") if dlf else ("database", "object")
    return Identifier(*(require_member(content, key, str) for key in keys))


def _read_field(obj: Any, _: object) -> DataField:
    check_wrappers(check_json_type(obj, dict).get("type"), "$.type")
    return field_from_json(obj)


def _read_data_type(obj: Any, kind: type[T]) -> T:
    check_wrappers(obj, "$")
    data_type = type_from_json(obj)
    if not isinstance(data_type, kind):
        raise InvalidInputError(f"$: is {data_type.root}, not {kind.__name__}")
    return data_type


def _read_instant(obj: Any, _: object) -> SnapshotInstant | TagInstant:
    content = present(obj)
    named = content.get("type")
    wrapped = [key for key in ("snapshotInstant", "tagInstant") if key in content]
    if named in ("snapshot", "tag") and not wrapped:
        place, inner, is_snapshot = "", content, named == "snapshot"
    elif named is None and len(wrapped) == 1:
        place, inner = f".{wrapped[0]}", present(require_member(content, wrapped[0], dict))
        is_snapshot = wrapped[0] == "snapshotInstant"
    else:
        raise ValueError("an Instant is exactly one of snapshotInstant, tagInstant")
    if is_snapshot:
        return SnapshotInstant(require_member(inner, "snapshotId", int, place))
    return TagInstant(require_member(inner, "tagName", str, place))


_TAG_KEYS = ("action", "type")


def register_changes(converter: Converter) -> None:
    """Add hooks to read changes and definitions, alone or as members of their unions."""
    read_record = partial(_read_record, converter)
    for kind in CHANGES:
        # Three changes of a view or function are changes of a table as well.
        of_tables = kind in get_args(SchemaChange)
        converter.register_structure_hook(
            kind, _read_table_change if of_tables else partial(_read_tagged_change, read_record)
        )
    for kind in FUNCTION_PARTS:
        converter.register_structure_hook(kind, read_record)
    converter.register_structure_hook(Move, _read_move)
    _register_union(converter, SchemaChange, lambda obj, _: _read_table_change(obj, object))
    for union in (ViewChange, FunctionChange):
        by_tag = changes_by_tag(union)
        _register_union(converter, union, _tagged_union_hook(converter, by_tag, _TAG_KEYS))
    _register_union(
        converter, FunctionDefinition, _tagged_union_hook(converter, DEFINITIONS, ("type",))
    )


def _register_union(converter: Converter, union: Any, read: Callable[[Any, Any], Any]) -> None:
    converter.register_structure_hook_func(lambda kind: kind == union, read)


def _read_table_change(obj: Any, kind: type[T]) -> T:
    members = check_json_type(obj, dict)
    for key in ("dataType", "newDataType"):
        check_wrappers(members.get(key), f"$.{key}")
    change = schema_change_from_json(members)
    if not isinstance(change, kind):
        raise InvalidInputError(f"$: is {change_tag(type(change))}, not {change_tag(kind)}")
    return change


def _read_move(obj: Any, _: object) -> Move:
    try:
        change = schema_change_from_json({"type": "updateColumnPosition", "move": obj})
    except InvalidChangeError as error:
        raise ValueError(f"${error.message.removeprefix('$.move')}") from error
    assert isinstance(change, UpdateColumnPosition)  # noqa: S101 - the class requested above
    return change.move


def _read_tagged_change(read_record: _Read, obj: Any, kind: Any) -> Any:
    content = present(obj)
    tag = _tag_of(content, _TAG_KEYS)
    if tag != change_tag(kind):
        raise ValueError(f"$: is {tag!r:.80}, not {change_tag(kind)}")
    return read_record(content, kind)


def _read_record(converter: Converter, obj: Any, kind: Any) -> Any:
    """Read one of the ledger's own records, key by key; unknown keys are ignored."""
    content = present(obj)
    values: dict[str, Any] = {}
    for each in msgspec.structs.fields(kind):
        if each.encode_name in content:
            values[each.name] = _read_member(converter, content, each.encode_name, each.type)
        elif each.required:
            raise ValueError(f"$.{each.encode_name}: is missing")
    return kind(**values)


def _read_member(converter: Converter, content: dict[str, Any], key: str, kind: Any) -> Any:
    try:
        return converter.structure(content[key], kind)
    except (BaseValidationError, ValueError) as error:
        path, cause = _first_error(error, f"$.{key}")
        text = str(cause)
        message = f"{path}{text[1:]}" if text.startswith("$") else f"{path}: {text}"
        raise ValueError(message) from error


def _tagged_union_hook(
    converter: Converter, by_tag: Mapping[str, type], keys: tuple[str, ...]
) -> Callable[[Any, Any], Any]:
    def read(obj: Any, _: object) -> Any:
        content = present(obj)
        tag = _tag_of(content, keys)
        if tag not in by_tag:
            raise ValueError(f"$.{keys[-1]}: is {tag!r:.80}; use one of {', '.join(by_tag)}")
        return converter.structure(content, by_tag[tag])

    return read


def _tag_of(content: dict[str, Any], keys: tuple[str, ...]) -> str:
    tags = [require_member(content, key, str) for key in keys if key in content]
    if not tags:
        raise ValueError(f"$.{keys[-1]}: is missing")
    if len(set(tags)) > 1:
        raise ValueError(f"$: {' and '.join(keys)} contradict each other; give one of them")
    return tags[0]
