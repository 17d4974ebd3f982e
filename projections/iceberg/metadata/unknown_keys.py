"""Which keys of a metadata file nobody here reads: those of newer writers, and mistakes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final, TypeAlias

import msgspec
from msgspec import inspect

from projections.iceberg.metadata.schema_json import DEEPEST
from projections.iceberg.metadata.table_json import TableFile

_Walk: TypeAlias = Callable[[Any, str], Iterator[str]]
"""Yields the places of unknown keys in some JSON, which stands at a place."""


def unknown_keys(
    parts: Mapping[str, msgspec.Raw], places: Mapping[str, Collection[int]] | None = None
) -> tuple[str, ...]:
    """Return where a metadata file has keys that this version knows nothing of, each place once.

    Args:
        parts: The text of a file that reads as table metadata, by key.
        places: Which items of a list are looked at, by its key; all of those not named. Most of a
            long history was looked at before.

    Example:
        >>> unknown_keys({"refs": msgspec.Raw(b'{"main": {"colour": 1}}')})
        ('refs.*.colour',)
    """
    wanted = places or {}
    found = {
        key: _items(part, wanted[key]) if key in wanted else msgspec.json.decode(part)
        for key, part in parts.items()
    }
    return tuple(dict.fromkeys(_table_walk()(found, "")))


_RAW: Final = msgspec.json.Decoder(list[msgspec.Raw] | None)


def _items(part: msgspec.Raw, places: Collection[int]) -> list[Any]:
    items = _RAW.decode(part) or () if places else ()
    return [msgspec.json.decode(items[place]) for place in places]


@lru_cache(maxsize=1)
def _table_walk() -> _Walk:
    inside = _insides(TableFile)
    return _of_object({**inside, "schema": _schema, "schemas": _of_list(_schema)})


def _insides(kind: type) -> dict[str, _Walk | None]:
    info = inspect.type_info(kind)
    if not isinstance(info, inspect.StructType):
        raise TypeError(kind)
    return {each.encode_name: _walk_of(each.type) for each in info.fields}


def _walk_of(info: inspect.Type) -> _Walk | None:
    """Return how to look into values of a type; None where no keys are."""
    if isinstance(info, inspect.StructType):
        return _of_object(_insides(info.cls))
    if isinstance(info, inspect.CollectionType):
        inner = _walk_of(info.item_type)
        return inner and _of_list(inner)
    if isinstance(info, inspect.DictType):
        inner = _walk_of(info.value_type)
        return inner and _of_map(inner)
    if isinstance(info, inspect.UnionType):
        return next((found for each in info.types if (found := _walk_of(each))), None)
    return None


def _of_object(inside: dict[str, _Walk | None]) -> _Walk:
    def walk(value: Any, place: str) -> Iterator[str]:
        for key, each in value.items() if isinstance(value, dict) else ():
            if key not in inside:
                yield f"{place}{key}"
            elif (inner := inside[key]) is not None:
                yield from inner(each, f"{place}{key}.")

    return walk


def _of_list(inner: _Walk) -> _Walk:
    def walk(value: Any, place: str) -> Iterator[str]:
        for each in value if isinstance(value, list) else ():
            yield from inner(each, place)

    return walk


def _of_map(inner: _Walk) -> _Walk:
    def walk(value: Any, place: str) -> Iterator[str]:
        for each in value.values() if isinstance(value, dict) else ():
            yield from inner(each, f"{place}*.")

    return walk


_COLUMN: Final = frozenset(
    ("id", "name", "required", "type", "doc", "initial-default", "write-default")
)
_NO_TYPE: Final[frozenset[str]] = frozenset()
_TYPES: Final = {
    "struct": frozenset(("type", "schema-id", "identifier-field-ids", "fields")),
    "list": frozenset(("type", "element-id", "element", "element-required")),
    "map": frozenset(("type", "key-id", "key", "value-id", "value", "value-required")),
}


def _schema(value: Any, place: str, depth: int = 0) -> Iterator[str]:
    """Yield the unknown keys of a schema or a type.

    Nothing may be taken for granted: `schema`, which later versions left behind, is not read where
    there are `schemas`.
    """
    if not isinstance(value, dict) or depth > DEEPEST:
        return
    kind, fields = value.get("type"), value.get("fields")
    known = _TYPES.get(kind, _NO_TYPE) if isinstance(kind, str) else _NO_TYPE
    yield from (f"{place}{key}" for key in value.keys() - known)
    for each in fields if isinstance(fields, list) else ():
        if not isinstance(each, dict):
            continue
        if not each.keys() <= _COLUMN:
            yield from (f"{place}fields.{key}" for key in each.keys() - _COLUMN)
        yield from _schema(each.get("type"), f"{place}fields.type.", depth + 1)
    for key in ("element", "key", "value"):
        yield from _schema(value.get(key), f"{place}{key}.", depth + 1)
