"""An event of each kind that says all that it can: every key is there, and made of its type."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec import Raw
from msgspec import inspect as i

from ledger import FileChange

GIVEN: Final[Mapping[str, Any]] = {
    "dataType": "INT",
    "newDataType": "INT",
    "transform": "day",
}
"""Constraints on a key beyond its type."""

_DEEPEST: Final = 3
"""The greatest depth at which a type is nested in itself."""


def whole(kind: type) -> Any:
    """Return an event of a kind, or a part of one, with all of its keys."""
    return _of(i.type_info(kind), kind.__name__, 0)


def _struct(info: Any, depth: int) -> Any:
    return info.cls(**{each.name: _value(each, depth) for each in info.fields})


def _value(each: Any, depth: int) -> Any:
    name = each.encode_name
    return GIVEN[name] if name in GIVEN else _of(each.type, name, depth)


def _of(info: Any, name: str, depth: int) -> Any:  # noqa: PLR0911 - a type each
    match info:
        case i.IntType():
            return 7
        case i.StrType():
            return name
        case i.BoolType():
            return True
        case i.LiteralType(values=values):
            return values[-1]
        case i.StructType():
            return _struct(info, depth + 1)
        case i.VarTupleType(item_type=item):
            return (_of(item, name, depth),)
        case i.DictType(key_type=key, value_type=value):
            return {_of(key, "key", depth): _of(value, "value", depth)}
        case i.UnionType(types=types):
            return _of(_one_of(types, depth), name, depth)
        case i.RawType():
            return Raw(msgspec.json.encode((whole(FileChange),)))
    raise AssertionError(f"{name} is of a type that no event has had so far: {info}")


def _one_of(types: Any, depth: int) -> Any:
    """Return the type that says most and ends."""
    structs = [each for each in types if isinstance(each, i.StructType)]
    if structs and depth < _DEEPEST:
        return structs[0]
    plain = (i.StrType, i.IntType, i.BoolType)
    found = [each for each in types if not isinstance(each, i.StructType | i.NoneType)]
    return next((each for each in found if isinstance(each, plain)), found[0])
