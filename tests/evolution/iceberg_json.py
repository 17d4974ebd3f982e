"""Iceberg's schema JSON as a Schema and back, for the cases that are written in it."""

from __future__ import annotations

import re
from typing import Any

from ledger import DataField, InvalidTypeError, Schema
from ledger.model import parse_type
from ledger.model.types import ArrayType, DataType, MapType, RowType

_PRIMITIVES = {
    "boolean": "BOOLEAN",
    "int": "INT",
    "long": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "date": "DATE",
    "timestamp": "TIMESTAMP(6)",
    "timestamptz": "TIMESTAMP_LTZ(6)",
    "string": "STRING",
    "uuid": "UUID",
    "binary": "BYTES",
    "unknown": "UNKNOWN",
}
_TEXTS = {text: name for name, text in _PRIMITIVES.items()}
_FIXED = re.compile(r"fixed\[(\d+)\]")
_WHOLE = {"INT", "BIGINT"}


def schema_of(
    json: dict[str, Any], highest: int | None = None, options: dict[str, str] | None = None
) -> Schema:
    fields = tuple(_field(each) for each in json["fields"])
    given = Schema(
        fields=fields,
        options=options or {},
        identifier_field_ids=tuple(sorted(json.get("identifier-field-ids", ()))),
        field_id_policy="iceberg",
    )
    return given if highest is None else _with_highest(given, highest)


def _with_highest(schema: Schema, highest: int) -> Schema:
    return Schema(
        fields=schema.fields,
        options=schema.options,
        highest_field_id=highest,
        identifier_field_ids=schema.identifier_field_ids,
        field_id_policy="iceberg",
    )


def json_of(schema: Schema) -> dict[str, Any]:
    ids = schema.identifier_field_ids
    return {
        "type": "struct",
        "schema-id": 0,
        **({"identifier-field-ids": list(ids)} if ids else {}),
        "fields": [_field_json(each) for each in schema.fields],
    }


def type_of(json: str | dict[str, Any], *, required: bool = False) -> DataType:
    if isinstance(json, str):
        if json == "unknown" and required:
            raise InvalidTypeError("UNKNOWN holds nothing but NULL: it cannot be NOT NULL")
        fixed = _FIXED.fullmatch(json)
        text = f"BINARY({fixed[1]})" if fixed else _PRIMITIVES.get(json, json.upper())
        return parse_type(text).with_nullability(not required)
    match json["type"]:
        case "struct":
            return RowType(tuple(map(_field, json["fields"])), nullable=not required)
        case "list":
            element = type_of(json["element"], required=json["element-required"])
            return ArrayType(element, element_id=json["element-id"], nullable=not required)
        case _:
            return MapType(
                type_of(json["key"], required=True),
                type_of(json["value"], required=json["value-required"]),
                key_id=json["key-id"],
                value_id=json["value-id"],
                nullable=not required,
            )


def text_of(default: Any) -> str | None:
    return None if default is None else str(default)


def _field(json: dict[str, Any]) -> DataField:
    return DataField(
        json["id"],
        json["name"],
        type_of(json["type"], required=json["required"]),
        json.get("doc"),
        text_of(json.get("write-default")),
        text_of(json.get("initial-default")),
    )


def _field_json(column: DataField) -> dict[str, Any]:
    root = column.type.root
    given = {
        "doc": column.description,
        "initial-default": _value(column.initial_default, root),
        "write-default": _value(column.default_value, root),
    }
    return {
        "id": column.id,
        "name": column.name,
        "required": not column.type.nullable,
        "type": _type_json(column.type),
        **{key: value for key, value in given.items() if value is not None},
    }


def _value(text: str | None, root: str) -> Any:
    return int(text) if text is not None and root in _WHOLE else text


def _type_json(data_type: DataType) -> str | dict[str, Any]:
    match data_type:
        case RowType(fields=fields):
            return {"type": "struct", "fields": [_field_json(each) for each in fields]}
        case ArrayType(element=element, element_id=element_id):
            return {
                "type": "list",
                "element-id": element_id,
                "element": _type_json(element),
                "element-required": not element.nullable,
            }
        case MapType(key=key, value=value, key_id=key_id, value_id=value_id):
            return {
                "type": "map",
                "key-id": key_id,
                "key": _type_json(key),
                "value-id": value_id,
                "value": _type_json(value),
                "value-required": not value.nullable,
            }
        case _:
            return _primitive_json(data_type)


def _primitive_json(data_type: DataType) -> str:
    text = str(_text(data_type))
    if text.startswith("BINARY"):
        return f"fixed[{text[7:-1]}]"
    return _TEXTS.get(text, text.lower())


def _text(data_type: DataType) -> str:
    from ledger.model import format_type

    return format_type(data_type.with_nullability(nullable=True))
