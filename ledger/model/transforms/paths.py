"""Partition types and paths: what a spec's values are called, and how people read them.

Source: the Iceberg table specification, and the form in which Iceberg's writers lay out files.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from urllib.parse import quote_plus

from ledger.model import types as t
from ledger.model.errors import InvalidInputError
from ledger.model.iceberg.layout import PartitionSpec
from ledger.model.schema import Schema
from ledger.model.transforms import Period, Transform, Void, transform_of
from ledger.model.transforms.calendar import date_text, year_text
from ledger.model.transforms.values import Value, encode_value
from ledger.model.types.walk import walk_fields

_FIRST_YEAR = 1970


def field_types(schema: Schema) -> dict[int, t.DataType]:
    """Return the type of every column and member of a schema, by field id.

    >>> field_types(Schema.of({"id": "INT"}))[0] == t.IntType()
    True
    """
    return {each.id: each.type for each in walk_fields(schema.fields)}


def partition_type(specs: Iterable[PartitionSpec], schema: Schema) -> tuple[t.DataField, ...]:
    """Return one field for each partition field of some specs, by field id.

    The newest spec names a field. A column that was dropped leaves the type UNKNOWN; a field that
    became void keeps the type that it had.

    Args:
        specs: Of one table.
        schema: Its columns give the types.

    Example:
        >>> from ledger.model.iceberg.layout import PartitionField
        >>> spec = PartitionSpec(0, (PartitionField("ts_day", "day", 0, field_id=1000),))
        >>> found = partition_type([spec], Schema.of({"ts": "TIMESTAMP"}))
        >>> [(each.id, each.name, each.type.root) for each in found]
        [(1000, 'ts_day', 'DATE')]
    """
    types = field_types(schema)
    names: dict[int, str] = {}
    found: dict[int, t.DataType] = {}
    voids: set[int] = set()
    for spec in sorted(specs, key=lambda each: each.spec_id, reverse=True):
        for each in spec.fields:
            names.setdefault(each.field_id, each.name)
            transform = transform_of(each.transform)
            if each.field_id not in found or each.field_id in voids:
                source = types.get(each.source_id, t.UnknownType())
                found[each.field_id] = transform.result_type(source)
                is_void = isinstance(transform, Void)
                (voids.add if is_void else voids.discard)(each.field_id)
    return tuple(t.DataField(each, names[each], found[each]) for each in sorted(names))


def human_text(value: Value | None, transform: Transform, source: t.DataType) -> str:
    """Return a partition value as paths and messages show it.

    Args:
        value: A result of the transform; None for NULL.
        transform: It.
        source: The column's type.

    Example:
        >>> human_text(420034, transform_of("hour"), t.TimestampType())
        '2017-12-01-10'
    """
    if value is None:
        return "null"
    if isinstance(transform, Period):
        return _period_text(int(value), transform)
    if isinstance(value, bytes) and not isinstance(source, t.UuidType):
        return base64.b64encode(value).decode()
    result_type = transform.result_type(source)
    encoded = encode_value(value, result_type)
    if isinstance(encoded, bool):
        return str(encoded).lower()
    is_zoned = isinstance(result_type, t.LocalZonedTimestampType)
    return f"{encoded}+00:00" if is_zoned else str(encoded)


def _period_text(value: int, transform: Period) -> str:
    match transform.unit:
        case "year":
            return year_text(_FIRST_YEAR + value)
        case "month":
            return f"{year_text(_FIRST_YEAR + value // 12)}-{value % 12 + 1:02d}"
        case "day":
            return date_text(value)
        case "hour":
            return f"{date_text(value // 24)}-{value % 24:02d}"


def partition_path(spec: PartitionSpec, values: Sequence[Value | None], schema: Schema) -> str:
    """Return the folders that a file of a partition lies in, `name=value` each, URL-encoded.

    Args:
        spec: Its fields name the folders.
        values: One a field, results of its transform.
        schema: Its columns give the types.

    Raises:
        InvalidInputError: There are more or fewer values than fields.

    Example:
        >>> from ledger.model.iceberg.layout import PartitionField
        >>> spec = PartitionSpec(0, (PartitionField("cat", "identity", 0, field_id=1000),))
        >>> partition_path(spec, ["a b/c"], Schema.of({"cat": "STRING"}))
        'cat=a+b%2Fc'
    """
    if len(values) != len(spec.fields):
        raise InvalidInputError(
            f"spec {spec.spec_id} has {len(spec.fields)} fields, not {len(values)}: give one value "
            "a field"
        )
    types = field_types(schema)
    folders = []
    for each, value in zip(spec.fields, values, strict=True):
        source = types.get(each.source_id, t.UnknownType())
        text = human_text(value, transform_of(each.transform), source)
        folders.append(f"{_escaped(each.name)}={_escaped(text)}")
    return "/".join(folders)


def _escaped(text: str) -> str:
    # Java's encoder leaves * and encodes ~; Python's does the opposite.
    return quote_plus(text, safe="*").replace("~", "%7E")
