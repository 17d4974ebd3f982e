"""Objects to JSON, by one cattrs converter per spelling.

Data types differ most: the DLF page wraps every type, `{"primitiveType": "INT NOT NULL"}`,
`{"arrayType": {...}}`; a value without a form in a style is rejected.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any, overload

import msgspec
from cattrs import Converter

from ledger.decide.change_json import refuse_iceberg_only_change
from ledger.events.schema import (
    AddColumn,
    SetIdentifierFields,
    UpdateColumnPosition,
    UpdateColumnType,
)
from ledger.model.errors import InvalidInputError, UnsupportedError
from ledger.model.instant import (
    Instant,
    SnapshotInstant,
    TagInstant,
    TimestampInstant,
    VersionInstant,
)
from ledger.model.types import (
    ArrayType,
    DataField,
    DataType,
    MapType,
    MultisetType,
    RowType,
    VectorType,
)
from ledger.model.types.text import format_type
from ledger.model.types.wire import type_from_wire
from projections.dlf.keys import (
    DEFINITIONS,
    NEVER_NULL,
    RENDERED,
    Style,
    attributes_of,
    change_tag,
    is_left_out,
    key_of,
)
from projections.dlf.objects import GetTableResponse

_TEXT_IN_DLF = frozenset({"is_external", "schema_id"})
_INSTANTS = (SnapshotInstant, TagInstant, VersionInstant, TimestampInstant)


@overload
def render(view: DataType, style: Style = Style.DLF) -> Any: ...
@overload
def render(view: object, style: Style = Style.DLF) -> dict[str, Any]: ...
def render(view: object, style: Style = Style.DLF) -> Any:
    """Return an object of the metadata API as JSON, keys in the API's order.

    In the DLF spelling, optional keys without a value are left out, and a Snapshot that names no
    manifest lists has empty texts for them; `table_snapshot` has their names. In Paimon's, keys
    are null where its Java classes print null, and left out where those leave them out. A map's
    keys are sorted. Source: the DLF page; Paimon's REST classes.

    Args:
        view: A view of this package, or one of the ledger's own values: Schema, ViewSchema,
            Snapshot, Identifier, DataField, DataType, Move, a SchemaChange, a ViewChange,
            SnapshotInstant, TagInstant.
        style: The spelling.

    Raises:
        UnsupportedError: The style has no form for it; the message names the column, the change
            or the instant.
        InvalidInputError: It is not an object of the metadata API.

    Example:
        >>> from ledger.model.names import Identifier
        >>> render(Identifier("shop", "orders"))
        {'databaseName': 'shop', 'tableName': 'orders'}
        >>> render(TagInstant("v1"), Style.PAIMON_REST)
        {'type': 'tag', 'tagName': 'v1'}
    """
    if type(view) not in RENDERED and not isinstance(view, (*_INSTANTS, DataField, DataType)):
        raise InvalidInputError(
            f"{view!r:.80} is not an object of the metadata API; render a view of projections.dlf"
        )
    return _converter(style).unstructure(view)


@cache
def _converter(style: Style) -> Converter:
    converter = Converter()
    for kind in RENDERED:
        converter.register_unstructure_hook(kind, _keys_hook(kind, style, converter))
    for instant in _INSTANTS:
        converter.register_unstructure_hook(instant, partial(_instant_json, style=style))
    converter.register_unstructure_hook(DataField, partial(field_json, style=style))
    converter.register_unstructure_hook(DataType, partial(type_json, style=style, where="type"))
    converter.register_unstructure_hook(UpdateColumnPosition, _position_hook(style, converter))
    for kind in (AddColumn, SetIdentifierFields):
        converter.register_unstructure_hook(kind, _refuse_iceberg_hook(kind, style, converter))
    return converter


def _keys_hook(kind: type, style: Style, converter: Converter) -> Callable[[Any], dict[str, Any]]:
    keys = [
        (name, key_of(kind, name, style), is_left_out(kind, name, style))
        for name in attributes_of(kind, style)
    ]
    tag = _tag_member(kind, style)
    spelled = _special_spellings(kind, style)

    def unstructure(view: Any) -> dict[str, Any]:
        content: dict[str, Any] = dict(tag)
        for name, key, left_out in keys:
            value = getattr(view, name)
            if value is None and left_out:
                continue
            content[key] = (
                spelled[name](view, value) if name in spelled else _to_json_value(value, converter)
            )
        return content

    return unstructure


def _tag_member(kind: type, style: Style) -> dict[str, str]:
    if (tag := change_tag(kind)) is not None:
        return {"type" if style is Style.DLF else "action": tag}
    names = [name for name, each in DEFINITIONS.items() if each is kind]
    return {"type": names[0]} if names else {}


def _special_spellings(kind: type, style: Style) -> dict[str, Callable[[Any, Any], Any]]:
    """Return the attributes whose own value has a special spelling."""
    if kind is GetTableResponse and style is Style.DLF:
        return dict.fromkeys(_TEXT_IN_DLF, lambda _, value: str(value).lower())
    if style is Style.DLF and kind in NEVER_NULL:
        return dict.fromkeys(NEVER_NULL[kind], lambda _, value: value or "")
    if kind in (AddColumn, UpdateColumnType):
        return dict.fromkeys(
            ("data_type", "new_data_type"),
            lambda change, wire: type_json(
                type_from_wire(wire), style, ".".join(change.field_names)
            ),
        )
    return {}


def _to_json_value(value: Any, converter: Converter) -> Any:
    if isinstance(value, dict):
        # A map's order has no meaning, so equal maps give equal texts; JSON's keys are strings.
        return {str(key): _to_json_value(value[key], converter) for key in sorted(value)}
    if isinstance(value, tuple):
        return [_to_json_value(each, converter) for each in value]
    return converter.unstructure(value)


def _refuse_iceberg_hook(
    kind: type, style: Style, converter: Converter
) -> Callable[[Any], dict[str, Any]]:
    by_keys = _keys_hook(kind, style, converter)

    def unstructure(change: Any) -> dict[str, Any]:
        refuse_iceberg_only_change(change, f"{style.value} objects")
        return by_keys(change)

    return unstructure


def _position_hook(
    style: Style, converter: Converter
) -> Callable[[UpdateColumnPosition], dict[str, Any]]:
    by_keys = _keys_hook(UpdateColumnPosition, style, converter)

    def unstructure(change: UpdateColumnPosition) -> dict[str, Any]:
        if style is Style.PAIMON_REST and len(change.field_names) > 1:
            raise UnsupportedError(
                f"column {'.'.join(change.field_names)} is nested: {style.value} objects move "
                "top-level columns only; commit this change through the ledger"
            )
        # The page requires the path even if the move alone has it.
        names = change.field_names or (change.move.field_name,)
        return by_keys(msgspec.structs.replace(change, field_names=names))

    return unstructure


def _instant_json(instant: Instant, style: Style) -> dict[str, Any]:
    content: dict[str, Any]
    match instant:
        case SnapshotInstant(snapshot_id=snapshot_id):
            name, content = "snapshot", {"snapshotId": snapshot_id}
        case TagInstant(tag_name=tag_name):
            name, content = "tag", {"tagName": tag_name}
        case _:
            raise UnsupportedError(
                f"{instant} has no {style.value} form: an Instant is a snapshot or a tag; "
                "look up the snapshot that was current then"
            )
    return {f"{name}Instant": content} if style is Style.DLF else {"type": name, **content}


# The page's valid values of primitiveType. TIMESTAMP_LTZ is spelled `TIMESTAMP(p) WITH ...`, so it
# begins with a valid one; STRING and BYTES are VARCHAR and VARBINARY of the greatest length.
_DLF_PRIMITIVES = frozenset(
    {
        *("BIGINT", "BINARY", "BOOLEAN", "CHAR", "DATE", "DECIMAL", "DOUBLE", "FLOAT", "INT"),
        *("SMALLINT", "TIMESTAMP", "TIMESTAMP_LTZ", "TINYINT", "VARBINARY", "VARCHAR", "VARIANT"),
    }
)
_NOT_IN_PAIMON = frozenset({"UUID", "UNKNOWN"})


def field_json(column: DataField, style: Style, where: str = "") -> dict[str, Any]:
    """Return a DataField; `description` and `defaultValue` are left out when absent.

    The DLF page does not list these two, but has changes that set the first, so both are written
    if a column has them: nothing is dropped silently.

    Args:
        column: The column, or the member of a ROW.
        style: The spelling.
        where: The dotted name of its container, for messages.

    Raises:
        UnsupportedError: Its type has no form in this style.
    """
    name = f"{where}.{column.name}" if where else column.name
    content = {"id": column.id, "name": column.name, "type": type_json(column.type, style, name)}
    if column.description is not None:
        content["description"] = column.description
    if column.default_value is not None:
        content["defaultValue"] = column.default_value
    return content


def type_json(data_type: DataType, style: Style, where: str) -> Any:
    """Return a DataType.

    Args:
        data_type: The type.
        style: The spelling.
        where: The dotted name of the column, for messages.

    Raises:
        UnsupportedError: It, or a type inside it, has no form in this style.

    Example:
        >>> from ledger.model.types.text import parse_type
        >>> type_json(ArrayType(parse_type("INT")), Style.DLF, "tags")
        {'arrayType': {'type': 'ARRAY', 'element': {'primitiveType': 'INT'}}}
        >>> type_json(ArrayType(parse_type("INT")), Style.PAIMON_REST, "tags")
        {'type': 'ARRAY', 'element': 'INT'}
    """
    content: dict[str, Any]
    match data_type:
        case ArrayType(element=element) | MultisetType(element=element):
            content = {"element": type_json(element, style, f"{where}.element")}
        case MapType(key=key, value=value):
            content = {
                "key": type_json(key, style, f"{where}.key"),
                "value": type_json(value, style, f"{where}.value"),
            }
        case RowType(fields=fields):
            content = {"fields": [field_json(each, style, where) for each in fields]}
        case VectorType(element=element, length=length) if style is Style.PAIMON_REST:
            content = {"element": type_json(element, style, f"{where}.element"), "length": length}
        case _:
            return _atomic_type_json(data_type, style, where)
    name = data_type.root if data_type.nullable else f"{data_type.root} NOT NULL"
    content = {"type": name, **content}
    return {f"{data_type.root.lower()}Type": content} if style is Style.DLF else content


def _atomic_type_json(data_type: DataType, style: Style, where: str) -> Any:
    text = format_type(data_type)
    if style is Style.PAIMON_REST and data_type.root not in _NOT_IN_PAIMON:
        return text
    if style is Style.DLF and data_type.root in _DLF_PRIMITIVES:
        return {"primitiveType": text}
    raise UnsupportedError(
        f"column {where} is {text}, which {style.value} objects cannot express; "
        "read the table through another projection, or change the column's type"
    )
