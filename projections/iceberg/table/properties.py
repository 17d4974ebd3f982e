"""A table's properties: its options and comment, without what Iceberg keeps elsewhere.

Among them the name mapping: which field the names inside files without field ids stand for.

Source: the Iceberg table specification, "Name Mapping Serialization".
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import msgspec
from attrs import Factory, define

from ledger.model.schema import Schema
from projections.iceberg.metadata import schema as iceberg
from projections.iceberg.metadata.properties import DEFAULT_PREVIOUS_VERSIONS, PREVIOUS_VERSIONS
from projections.iceberg.metadata.types import NestedField

_WHOLE = re.compile(r"[+-]?[0-9]{1,10}", re.ASCII)
_RESERVED = frozenset(
    {
        "format-version",
        "uuid",
        "snapshot-count",
        "current-snapshot-summary",
        "current-snapshot-id",
        "current-snapshot-timestamp-ms",
        "current-schema",
        "default-partition-spec",
        "default-sort-order",
    }
)


def properties(schema: Schema) -> dict[str, str]:
    """Return a table's properties, by name.

    Example:
        >>> properties(Schema.of({"a": "INT"}, options={"format-version": "3"}, comment="orders"))
        {'comment': 'orders'}
    """
    found = {key: value for key, value in schema.options.items() if key not in _RESERVED}
    if schema.comment is not None:
        found["comment"] = schema.comment
    return dict(sorted(found.items()))


def most_previous_versions(schema: Schema) -> int:
    """Return how many earlier metadata files the log names."""
    text = schema.options.get(PREVIOUS_VERSIONS, "")
    return int(text) if _WHOLE.fullmatch(text) else DEFAULT_PREVIOUS_VERSIONS


NAME_MAPPING = "schema.name-mapping.default"
"""The table property that holds it."""


@define
class _Level:
    """The fields of one struct by id, and which of them has each name."""

    fields: dict[int, _Mapped] = Factory(dict)
    owners: dict[str, _Mapped] = Factory(dict)


@define
class _Mapped:
    """A field: every name that it had, newest last, and what stands in it."""

    names: dict[str, None] = Factory(dict)
    inside: _Level = Factory(_Level)


def name_mapping(schemas: Iterable[iceberg.Schema]) -> str:
    """Return the mapping of all names that fields have in some schemas of a table, as JSON.

    A name that one field had and another has is the later one's: it can be given anew only once no
    file that knows it as the earlier one's can be read.

    Args:
        schemas: Oldest first.

    Example:
        >>> from projections.iceberg.metadata.types import PlainType
        >>> def named(name):
        ...     return iceberg.Schema(0, (NestedField(1, name, PlainType("int"), required=False),))
        >>> name_mapping([named("old"), named("new")])
        '[{"field-id":1,"names":["old","new"]}]'
    """
    found = _Level()
    for schema in schemas:
        _learn(found, schema.fields)
    return msgspec.json.encode(_json(found)).decode()


def _learn(into: _Level, fields: Iterable[NestedField]) -> None:
    for each in fields:
        mapped = into.fields.setdefault(each.id, _Mapped())
        before = into.owners.setdefault(each.name, mapped)
        if before is not mapped:
            del before.names[each.name]
            into.owners[each.name] = mapped
        mapped.names[each.name] = None
        _learn(mapped.inside, iceberg.children(each.type))


def _json(level: _Level) -> list[dict[str, Any]]:
    return [
        {
            "field-id": field_id,
            "names": list(each.names),
            **({"fields": _json(each.inside)} if each.inside.fields else {}),
        }
        for field_id, each in level.fields.items()
    ]
