"""The Iceberg cases of transforms and planning, in the ledger's words."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ledger import Schema
from ledger.model import PartitionSpec, SortOrder, Value, encode_value
from ledger.model import types as t
from ledger.model.single_values import parse_text

CASES: list[dict[str, Any]] = json.loads(
    (Path(__file__).parents[1] / "data" / "iceberg" / "planning_cases.json").read_text()
)

_PRIMITIVES: dict[str, t.DataType] = {
    "boolean": t.BooleanType(),
    "int": t.IntType(),
    "long": t.BigIntType(),
    "float": t.FloatType(),
    "double": t.DoubleType(),
    "date": t.DateType(),
    "time": t.TimeType(6),
    "timestamp": t.TimestampType(6),
    "timestamptz": t.LocalZonedTimestampType(6),
    "timestamp_ns": t.TimestampType(9),
    "string": t.STRING,
    "uuid": t.UuidType(),
    "binary": t.BYTES,
}
NAMES = {each: name for name, each in _PRIMITIVES.items()}


def cases(kind: str) -> list[Any]:
    found = [pytest.param(each, id=each["name"]) for each in CASES if each["kind"] == kind]
    assert found
    return found


def type_of(given: Any) -> t.DataType:
    if isinstance(given, dict):
        match given["type"]:
            case "map":
                return t.MapType(type_of(given["key"]), type_of(given["value"]))
            case "list":
                return t.ArrayType(type_of(given["element"]))
            case _:
                return t.RowType(fields_of(given))
    if found := re.fullmatch(r"decimal\((\d+), (\d+)\)", given):
        return t.DecimalType(int(found[1]), int(found[2]))
    if found := re.fullmatch(r"fixed\[(\d+)\]", given):
        return t.BinaryType(int(found[1]))
    return _PRIMITIVES[given]


def fields_of(struct: dict[str, Any]) -> tuple[t.DataField, ...]:
    return tuple(
        t.DataField(each["id"], each["name"], type_of(each["type"])) for each in struct["fields"]
    )


def schema_of(struct: dict[str, Any]) -> Schema:
    return Schema(fields=fields_of(struct))


def spec_of(given: dict[str, Any]) -> PartitionSpec:
    return msgspec.convert(given, PartitionSpec)


def order_of(given: dict[str, Any]) -> SortOrder:
    return msgspec.convert(given, SortOrder)


def value_of(given: Any, data_type: t.DataType) -> Value | None:
    return parse_text(given, data_type) if isinstance(given, str) else given


def as_case(value: Value | None, data_type: t.DataType) -> Any:
    """Return a value as the cases have it: days as whole numbers."""
    return value if isinstance(data_type, t.DateType) else encode_value(value, data_type)
