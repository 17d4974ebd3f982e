"""Paimon's `statistics/stat-...` files: what ANALYZE found out about a snapshot.

Source: Paimon's Statistics and ColStats classes; InternalSerializers, `serializeToString`.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
from attrs import field, frozen

from ledger.model import types as t
from ledger.model.transforms.values import Value, decimal_text, unit_digits
from projections.paimon.files.json import decoded, paimon_json


@frozen(kw_only=True)
class ColumnStatistics:
    """One column's statistics; what was not measured is None.

    Attributes:
        column_id: The column's field id.
        distinct_count: Different values.
        min: The least value as text.
        max: The greatest value as text.
        null_count: Nulls.
        average_length: Bytes.
        maximum_length: Bytes.
    """

    column_id: int
    distinct_count: int | None = None
    min: str | None = None
    max: str | None = None
    null_count: int | None = None
    average_length: int | None = None
    maximum_length: int | None = None


@frozen(kw_only=True)
class TableStatistics:
    """A whole table's statistics.

    Attributes:
        snapshot_id: The snapshot that was analysed: the one before the ANALYZE snapshot.
        schema_id: The schema then; the statistics hold while it is the newest.
        merged_record_count: Rows, after merging by primary key.
        merged_record_size: Their bytes.
        columns: By column name, in the file's order.
    """

    snapshot_id: int
    schema_id: int
    merged_record_count: int | None = None
    merged_record_size: int | None = None
    columns: Mapping[str, ColumnStatistics] = field(factory=dict, hash=False)


class _ColumnKeys(msgspec.Struct, kw_only=True, rename="camel"):
    col_id: int
    distinct_count: int | None = None
    min: str | None = None
    max: str | None = None
    null_count: int | None = None
    avg_len: int | None = None
    max_len: int | None = None


class _StatisticsFile(msgspec.Struct, kw_only=True, rename="camel"):
    snapshot_id: int
    schema_id: int
    merged_record_count: int | None = None
    merged_record_size: int | None = None
    col_stats: dict[str, _ColumnKeys] | None = None


def statistics_from_json(obj: Mapping[str, Any] | str | bytes) -> TableStatistics:
    """Read a statistics file.

    Args:
        obj: The file's bytes or text, or what a JSON decoder made of them.

    Raises:
        InvalidInputError: It is no statistics file; the message names the place.

    Example:
        >>> found = statistics_from_json('{"snapshotId": 4, "schemaId": 0, "colStats": {}}')
        >>> found.snapshot_id, found.merged_record_count
        (4, None)
    """
    file = decoded(obj, _StatisticsFile, "statistics file")
    return TableStatistics(
        snapshot_id=file.snapshot_id,
        schema_id=file.schema_id,
        merged_record_count=file.merged_record_count,
        merged_record_size=file.merged_record_size,
        columns={
            name: ColumnStatistics(
                column_id=each.col_id,
                distinct_count=each.distinct_count,
                min=each.min,
                max=each.max,
                null_count=each.null_count,
                average_length=each.avg_len,
                maximum_length=each.max_len,
            )
            for name, each in (file.col_stats or {}).items()
        },
    )


def statistics_to_json(statistics: TableStatistics) -> dict[str, Any]:
    """Return the content of a statistics file, keys in Paimon's order, None left out."""
    content = {
        "snapshotId": statistics.snapshot_id,
        "schemaId": statistics.schema_id,
        "mergedRecordCount": statistics.merged_record_count,
        "mergedRecordSize": statistics.merged_record_size,
        "colStats": {name: _column(each) for name, each in statistics.columns.items()},
    }
    return _present(content)


def statistics_file(statistics: TableStatistics) -> bytes:
    """Return the bytes of a statistics file, as Paimon's Java writes them."""
    return paimon_json(statistics_to_json(statistics)).encode()


def _column(column: ColumnStatistics) -> dict[str, Any]:
    return _present(
        {
            "colId": column.column_id,
            "distinctCount": column.distinct_count,
            "min": column.min,
            "max": column.max,
            "nullCount": column.null_count,
            "avgLen": column.average_length,
            "maxLen": column.maximum_length,
        }
    )


def _present(content: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in content.items() if value is not None}


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECONDS_A_MILLISECOND = 1000
_DIGITS = 9
_MILLISECONDS = 3


def statistics_text(value: Value, data_type: t.DataType) -> str | None:
    """Return a value's text; None where a file's bounds do not say which value it is.

    Bounds of text and bytes may be cut, and those of FLOAT and DOUBLE leave NaN out.

    Args:
        value: In the form of `ledger.model.transforms.values`.
        data_type: The column's.

    Example:
        >>> statistics_text(1420, t.DecimalType(9, 2)), statistics_text(19000, t.DateType())
        ('14.20', '19000')
        >>> statistics_text(1_500_000, t.TimestampType(3))
        '1970-01-01 00:00:01.500'
    """
    match data_type:
        case t.BooleanType():
            return str(bool(value)).lower()
        case t.TinyIntType() | t.SmallIntType() | t.IntType() | t.BigIntType() | t.DateType():
            return str(value)
        case t.DecimalType():
            return decimal_text(int(value), data_type.scale)
        case t.TimeType() if data_type.precision <= _MILLISECONDS:
            return str(int(value) // _MICROSECONDS_A_MILLISECOND)
        case t.TimestampType() | t.LocalZonedTimestampType():
            return _moment(int(value), data_type)
        case _:
            return None


def _moment(value: int, data_type: t.TimestampType | t.LocalZonedTimestampType) -> str:
    seconds, rest = divmod(value, 10 ** unit_digits(data_type))
    fraction = str(rest).rjust(unit_digits(data_type), "0").ljust(_DIGITS, "0")
    text = (_EPOCH + timedelta(seconds=seconds)).strftime("%Y-%m-%d %H:%M:%S")
    digits = fraction[: data_type.precision]
    return f"{text}.{digits}" if digits else text
