"""JSON to objects: takes both styles at once and casts nothing in silence."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any, TypeVar, get_args, get_origin

import attrs
from attrs import evolve
from cattrs import Converter, override
from cattrs.errors import BaseValidationError
from cattrs.gen import make_dict_structure_fn
from cattrs.preconf.msgspec import make_converter

from ledger.model.identifier import Identifier
from ledger.model.instant import SnapshotInstant, TagInstant
from ledger.model.schema import Schema
from ledger.model.snapshot import Snapshot
from ledger.model.type_json import field_from_json
from ledger.model.types import DataField
from ledger.model.view import ViewSchema
from projections.dlf.first_problem import refusal
from projections.dlf.keys import camel_case
from projections.dlf.views import GetTableResponse, GetViewResponse, Partition, TableSnapshot

T = TypeVar("T")

_JSON_NAMES: dict[type, str] = {
    str: "a string",
    int: "a whole number",
    bool: "true or false",
    dict: "an object",
    list: "a list",
}


def read(obj: object, kind: type[T]) -> T:
    """Read an object of the metadata API, in either style.

    Unknown keys are ignored and an explicit null reads as absent. A REST or DLF schema carries no
    highest field id: it is taken to be the greatest id present, so never fold changes onto it.

    Args:
        obj: What a JSON decoder gave.
        kind: What it is: a view of this package or a value of the model. For an Instant give
            either instant's class; the other one is taken as well.

    Raises:
        InvalidInputError: It is no such object; the message names the place, like
            `$.schema.fields[2].type`.

    Example:
        >>> read({"database": "shop", "object": "orders"}, Identifier)
        Identifier(database='shop', name='orders')
        >>> read({"databaseName": "shop", "tableName": 1}, Identifier)
        Traceback (most recent call last):
        ledger.model.errors.InvalidInputError: $.tableName: 1 is not a string
    """
    try:
        return _converter().structure(obj, kind)
    except (BaseValidationError, ValueError, KeyError) as error:
        raise refusal(error, kind, obj) from error


@cache
def _converter() -> Converter:
    converter: Converter = make_converter()
    # cattrs casts primitives by calling them: str(1), bool("false").
    for primitive in (str, int, bool):
        converter.register_structure_hook(primitive, _strict)
    # It takes the letters of a text for a list, and an object's keys too.
    converter.register_structure_hook_func(_is_tuple, partial(_tuple, converter))
    converter.register_structure_hook_func(_is_mapping, partial(_mapping, converter))
    # cattrs binds the hooks of a class's members when it makes the class's own: parts come first.
    converter.register_structure_hook(Identifier, _identifier)
    converter.register_structure_hook(DataField, lambda obj, _: field_from_json(obj))
    for instant in (SnapshotInstant, TagInstant):
        converter.register_structure_hook(instant, _instant)
    converter.register_structure_hook(Schema, _by_keys(Schema, converter, **_NOT_ON_THE_WIRE))
    offsets = override(rename="logOffsets", struct_hook=_log_offsets)
    snapshot = _by_keys(Snapshot, converter, log_offsets=offsets)
    converter.register_structure_hook(Snapshot, lambda obj, kind: snapshot(_counted(obj), kind))
    for view in (ViewSchema, GetViewResponse, TableSnapshot, Partition):
        converter.register_structure_hook(view, _by_keys(view, converter))
    table = _by_keys(
        GetTableResponse,
        converter,
        is_external=override(rename="isExternal", struct_hook=_flag),
        schema_id=override(rename="schemaId", struct_hook=_number),
    )
    converter.register_structure_hook(
        GetTableResponse, lambda obj, kind: _with_schema_id(table(obj, kind))
    )
    return converter


_NOT_ON_THE_WIRE = {
    name: override(omit=True) for name in ("id", "highest_field_id", "time_millis", "version")
}


def _by_keys(kind: type[T], converter: Converter, **special: Any) -> Callable[[Any, Any], T]:
    named = {each.name: override(rename=camel_case(each.name)) for each in attrs.fields(kind)}  # type: ignore[arg-type]  # every kind here is an attrs class
    structure: Callable[[Any, Any], T] = make_dict_structure_fn(
        kind, converter, **{**named, **special}
    )
    return lambda obj, target: structure(_present(obj), target)


def _present(obj: Any) -> dict[str, Any]:
    return {key: value for key, value in _checked(obj, dict).items() if value is not None}


def _checked(value: Any, kind: type[T]) -> T:
    # JSON's true and false are ints to Python.
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise ValueError(f"{value!r} is not {_JSON_NAMES[kind]}")
    return value


def _is_tuple(kind: Any) -> bool:
    return get_origin(kind) is tuple


def _tuple(converter: Converter, obj: object, kind: Any) -> tuple[Any, ...]:
    items: Any = list[get_args(kind)[0]]  # type: ignore[misc]  # a type known at run time only
    return tuple(converter.structure(_checked(obj, list), items))


def _is_mapping(kind: Any) -> bool:
    return get_origin(kind) is Mapping


def _mapping(converter: Converter, obj: object, kind: Any) -> Mapping[Any, Any]:
    members: Any = dict[get_args(kind)]  # type: ignore[misc]  # a type known at run time only
    content: Mapping[Any, Any] = converter.structure(_checked(obj, dict), members)
    return content


def _strict(value: Any, kind: type[T]) -> T:
    return _checked(value, kind)


def _flag(value: Any, _: object) -> bool:
    spelled = {"true": True, "false": False}
    return spelled[value] if value in ("true", "false") else _checked(value, bool)


def _number(value: Any, _: object) -> int:
    return int(value) if isinstance(value, str) and value.isdecimal() else _checked(value, int)


def _log_offsets(value: Any, _: object) -> Mapping[int, int]:
    return {
        _number(bucket, int): _checked(offset, int)
        for bucket, offset in _checked(value, dict).items()
    }


def _with_schema_id(table: GetTableResponse) -> GetTableResponse:
    return evolve(table, schema=evolve(table.schema, id=table.schema_id))


def _counted(obj: Any) -> dict[str, Any]:
    # Counts may be absent on the DLF page; Paimon's Java reads absent ones as 0.
    return {"totalRecordCount": 0, "deltaRecordCount": 0, **_present(obj)}


def _identifier(obj: Any, _: object) -> Identifier:
    content = _present(obj)
    dlf = "databaseName" in content or "tableName" in content
    keys = ("databaseName", "tableName") if dlf else ("database", "object")
    return Identifier(*(_member(content, key, str) for key in keys))


def _instant(obj: Any, _: object) -> SnapshotInstant | TagInstant:
    content = _present(obj)
    named = content.get("type")
    wrapped = [key for key in ("snapshotInstant", "tagInstant") if key in content]
    if named in ("snapshot", "tag") and not wrapped:
        place, inner, is_snapshot = "", content, named == "snapshot"
    elif named is None and len(wrapped) == 1:
        place, inner = f".{wrapped[0]}", _present(content[wrapped[0]])
        is_snapshot = wrapped[0] == "snapshotInstant"
    else:
        raise ValueError("an Instant is exactly one of snapshotInstant, tagInstant")
    if is_snapshot:
        return SnapshotInstant(_member(inner, "snapshotId", int, place))
    return TagInstant(_member(inner, "tagName", str, place))


def _member(content: dict[str, Any], key: str, kind: type[T], place: str = "") -> T:
    if key not in content:
        raise ValueError(f"${place}.{key}: is missing")
    try:
        return _checked(content[key], kind)
    except ValueError as error:
        raise ValueError(f"${place}.{key}: {error}") from error
