"""JSON to objects: takes both styles at once and casts nothing in silence."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from types import UnionType
from typing import Any, TypeVar, get_args, overload

import attrs
import msgspec
from attrs import evolve
from cattrs import Converter, override
from cattrs.errors import BaseValidationError
from cattrs.gen import make_dict_structure_fn

from ledger.events.catalog_events import ViewChange
from ledger.events.schema_changes import Move, SchemaChange, UpdateColumnPosition
from ledger.evolution.wire.changes import schema_change_from_json
from ledger.model.errors import InvalidChangeError, InvalidInputError
from ledger.model.identifier import Identifier
from ledger.model.instant import SnapshotInstant, TagInstant
from ledger.model.schema import Schema
from ledger.model.snapshot import Snapshot
from ledger.model.types import DataField, DataType
from ledger.model.types.wire import field_from_json, type_from_json
from projections.dlf.objects.functions import FunctionChange, FunctionDefinition
from projections.dlf.objects.service import ErrorResponse
from projections.dlf.objects.snapshots import ApiInstant
from projections.dlf.objects.tables import GetTableResponse
from projections.dlf.wire.document import decoded, refusal
from projections.dlf.wire.keys import (
    CHANGES,
    DEFINITIONS,
    VALUES,
    VIEWS,
    camel_case,
    change_tag,
    changes_by_tag,
)
from projections.dlf.wire.strict import checked, flag, member, number, present, strict_converter
from projections.dlf.wire.wrappers import check_wrappers

T = TypeVar("T")

_Read = Callable[[Any, Any], Any]


@overload
def read(obj: object, kind: type[T]) -> T: ...
@overload
def read(obj: object, kind: UnionType) -> Any: ...
def read(obj: object, kind: Any) -> Any:
    """Read an object of the metadata API, in either style.

    Unknown keys are ignored and an explicit null reads as absent. A REST or DLF schema carries no
    highest field id: it is taken to be the greatest id present, so never fold changes onto it.
    Source: the DLF page; Paimon's REST classes.

    Args:
        obj: JSON text, or what a JSON decoder made of it.
        kind: What it is: a view of this package, a value of the model, or a union of them such as
            `SchemaChange`. For an Instant give either instant's class; the other one is taken as
            well.

    Raises:
        InvalidInputError: It is no such object; the message names the place, like
            `$.schema.fields[2].type`.

    Example:
        >>> read('{"database": "shop", "object": "orders"}', Identifier)
        Identifier(database='shop', name='orders')
        >>> read({"databaseName": "shop", "tableName": 1}, Identifier)
        Traceback (most recent call last):
        ledger.model.errors.InvalidInputError: $.tableName: 1 is not a string
    """
    document = decoded(obj)
    try:
        return _converter().structure(document, kind)
    except (BaseValidationError, ValueError, KeyError, RecursionError) as error:
        raise refusal(error, kind, document) from error


@cache
def _converter() -> Converter:
    converter = strict_converter()
    # Made when first needed, since cattrs binds the hooks of a class's members into the class's.
    converter.register_structure_hook_factory(
        lambda kind: kind in VIEWS or kind in VALUES, lambda kind: _reader(kind, converter)
    )
    converter.register_structure_hook(Identifier, _identifier)
    converter.register_structure_hook(DataField, _field)
    converter.register_structure_hook(DataType, _data_type)
    for instant in (SnapshotInstant, TagInstant):
        converter.register_structure_hook(instant, _instant)
    converter.register_structure_hook_func(lambda kind: kind == ApiInstant, _instant)
    register_changes(converter)
    return converter


def _reader(kind: Any, converter: Converter) -> _Read:
    """Return the hook of one class: by its keys, and what is special about it."""
    if kind is Schema:
        not_on_the_wire = ("id", "highest_field_id", "time_millis", "version")
        return _by_keys(kind, converter, dict.fromkeys(not_on_the_wire, override(omit=True)))
    if kind is Snapshot:
        offsets = override(rename="logOffsets", struct_hook=_log_offsets)
        return _after(_counted, _by_keys(kind, converter, {"log_offsets": offsets}))
    if kind is ErrorResponse:
        return _after(_from_gateway, _by_keys(kind, converter))
    if kind is GetTableResponse:
        texts = {
            "is_external": override(rename="isExternal", struct_hook=flag),
            "schema_id": override(rename="schemaId", struct_hook=number),
        }
        by_keys = _by_keys(kind, converter, texts)
        return lambda obj, target: _with_schema_id(by_keys(obj, target))
    return _by_keys(kind, converter)


def _by_keys(kind: Any, converter: Converter, special: Mapping[str, Any] | None = None) -> _Read:
    named = {each.name: override(rename=camel_case(each.name)) for each in attrs.fields(kind)}
    by_name: Any = {**named, **(special or {})}
    structure: _Read = make_dict_structure_fn(kind, converter, **by_name)
    return _after(present, structure)


def _after(prepare: Callable[[Any], Any], structure: _Read) -> _Read:
    return lambda obj, kind: structure(prepare(obj), kind)


def _log_offsets(value: Any, _: object) -> Mapping[int, int]:
    return {
        number(bucket, int): checked(offset, int) for bucket, offset in checked(value, dict).items()
    }


def _with_schema_id(table: GetTableResponse) -> GetTableResponse:
    return evolve(table, schema=evolve(table.schema, id=table.schema_id))


def _counted(obj: Any) -> dict[str, Any]:
    # Counts may be absent on the DLF page; Paimon's Java reads absent ones as 0.
    content = {"totalRecordCount": 0, "deltaRecordCount": 0, **present(obj)}
    # As it is rendered where none is named.
    nameless = [key for key in ("baseManifestList", "deltaManifestList") if content.get(key) == ""]
    return {key: value for key, value in content.items() if key not in nameless}


def _from_gateway(obj: Any) -> dict[str, Any]:
    content = present(obj)
    capital = {key.lower(): content[key] for key in ("Message", "Code") if key in content}
    return {**capital, **content}


def _identifier(obj: Any, _: object) -> Identifier:
    content = present(obj)
    dlf = "databaseName" in content or "tableName" in content
    keys = ("databaseName", "tableName") if dlf else ("database", "object")
    return Identifier(*(member(content, key, str) for key in keys))


def _field(obj: Any, _: object) -> DataField:
    check_wrappers(checked(obj, dict).get("type"), "$.type")
    return field_from_json(obj)


def _data_type(obj: Any, kind: type[T]) -> T:
    check_wrappers(obj, "$")
    data_type = type_from_json(obj)
    if not isinstance(data_type, kind):
        raise InvalidInputError(f"$: is {data_type.root}, not {kind.__name__}")
    return data_type


def _instant(obj: Any, _: object) -> SnapshotInstant | TagInstant:
    content = present(obj)
    named = content.get("type")
    wrapped = [key for key in ("snapshotInstant", "tagInstant") if key in content]
    if named in ("snapshot", "tag") and not wrapped:
        place, inner, is_snapshot = "", content, named == "snapshot"
    elif named is None and len(wrapped) == 1:
        place, inner = f".{wrapped[0]}", present(member(content, wrapped[0], dict))
        is_snapshot = wrapped[0] == "snapshotInstant"
    else:
        raise ValueError("an Instant is exactly one of snapshotInstant, tagInstant")
    if is_snapshot:
        return SnapshotInstant(member(inner, "snapshotId", int, place))
    return TagInstant(member(inner, "tagName", str, place))


_TAG_KEYS = ("action", "type")


def register_changes(converter: Converter) -> None:
    """Let a converter read changes and definitions, alone or as a member of their unions."""
    for kind in CHANGES:
        # Three changes of a view are changes of a table, too.
        of_tables = kind in get_args(SchemaChange)
        converter.register_structure_hook(kind, _table_change if of_tables else _dialect_change)
    converter.register_structure_hook(Move, _move)
    _register_union(converter, SchemaChange, lambda obj, _: _table_change(obj, object))
    for union in (ViewChange, FunctionChange):
        by_tag = changes_by_tag(union)
        _register_union(converter, union, _tagged(converter, by_tag, _TAG_KEYS))
    _register_union(converter, FunctionDefinition, _tagged(converter, DEFINITIONS, ("type",)))


def _register_union(converter: Converter, union: Any, read: Callable[[Any, Any], Any]) -> None:
    converter.register_structure_hook_func(lambda kind: kind == union, read)


def _table_change(obj: Any, kind: type[T]) -> T:
    members = checked(obj, dict)
    for key in ("dataType", "newDataType"):
        check_wrappers(members.get(key), f"$.{key}")
    change = schema_change_from_json(members)
    if not isinstance(change, kind):
        raise InvalidInputError(f"$: is {change_tag(type(change))}, not {change_tag(kind)}")
    return change


def _move(obj: Any, _: object) -> Move:
    try:
        change = schema_change_from_json({"type": "updateColumnPosition", "move": obj})
    except InvalidChangeError as error:
        raise ValueError(f"${error.message.removeprefix('$.move')}") from error
    assert isinstance(change, UpdateColumnPosition)  # noqa: S101 - what was asked for just above
    return change.move


def _dialect_change(obj: Any, kind: Any) -> Any:
    content = present(obj)
    tag = _tag_of(content, _TAG_KEYS)
    if tag != change_tag(kind):
        raise ValueError(f"$: is {tag!r:.80}, not {change_tag(kind)}")
    return kind(*(member(content, each.name, str) for each in msgspec.structs.fields(kind)))


def _tagged(
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
    tags = [member(content, key, str) for key in keys if key in content]
    if not tags:
        raise ValueError(f"$.{keys[-1]}: is missing")
    if len(set(tags)) > 1:
        raise ValueError(f"$: {' and '.join(keys)} contradict each other; give one of them")
    return tags[0]
