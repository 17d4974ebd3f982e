"""Least and greatest values and null counts: Paimon's statistics of files and partitions.

Source: Paimon's SimpleStats and SimpleStatsCollector; Iceberg's bounds.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import UNSET

from ledger.model import types as t
from ledger.model.errors import InvalidInputError, LedgerError
from ledger.model.file_change import FileChange
from projections.paimon.manifests.records import NO_STATS, DataFileMeta, SimpleStats
from projections.paimon.rows.binary_row import decode_row, encode_row
from projections.paimon.rows.bounds import from_bound, to_bound
from projections.paimon.rows.types import MILLIS_PRECISION

_Bounds = tuple[Any, Any, int]
_Counts = dict[int, int]
_Texts = dict[int, str]

# Bytes are left out: Paimon's readers do not agree on whether they are signed.
_WITH_STATS = (
    t.BooleanType,
    t.TinyIntType,
    t.SmallIntType,
    t.IntType,
    t.BigIntType,
    t.FloatType,
    t.DoubleType,
    t.DecimalType,
    t.CharType,
    t.VarCharType,
    t.DateType,
    t.TimeType,
    t.TimestampType,
    t.LocalZonedTimestampType,
)
_MILLISECOND = dt.timedelta(milliseconds=1)


def value_stats(
    change: FileChange, columns: Sequence[t.DataField]
) -> tuple[tuple[str, ...], SimpleStats]:
    """Return the columns of a file that statistics are known of, and these.

    A column needs its null count and either both bounds or nothing but nulls. Bounds that were cut
    (a lower one down, an upper one up) still bound, and so do moments rounded outwards to what a
    row can hold; a bound that cannot be read or held leaves its column out.

    Args:
        change: The file.
        columns: Those of the schema that it was written with; nested ones have no statistics.

    Example:
        >>> columns = [t.DataField(0, "a", t.IntType()), t.DataField(1, "b", t.STRING)]
        >>> change = FileChange(
        ...     path="x", record_count=2, file_size_in_bytes=1, null_value_counts={0: 1},
        ...     lower_bounds={0: "01000000"}, upper_bounds={0: "01000000"},
        ... )
        >>> names, stats = value_stats(change, columns)
        >>> names, decode_row(stats.min_values, [t.IntType()]), stats.null_counts
        (('a',), (1,), (1,))
    """
    known: list[tuple[t.DataField, _Bounds]] = []
    for column in columns:
        bounds = _bounds(change, column)
        if bounds is not None:
            known.append((column, bounds))
    if not known:
        return (), NO_STATS
    types = [column.type for column, _ in known]
    return tuple(column.name for column, _ in known), SimpleStats(
        min_values=encode_row([low for _, (low, _, _) in known], types),
        max_values=encode_row([high for _, (_, high, _) in known], types),
        null_counts=tuple(nulls for _, (_, _, nulls) in known),
    )


def bounds_of(file: DataFileMeta, columns: Sequence[t.DataField]) -> tuple[_Counts, _Texts, _Texts]:
    """Return a file's null counts, lower and upper bounds by field id.

    Args:
        file: As a manifest has it.
        columns: Those of the schema that it was written with.

    Raises:
        InvalidInputError: The statistics' bytes do not fit the columns, or name one that is none.
    """
    covered = _covered(file, columns)
    types = [each.type for each in covered]
    if not covered:
        return {}, {}, {}
    lows = decode_row(file.value_stats.min_values, types)
    highs = decode_row(file.value_stats.max_values, types)
    counts = file.value_stats.null_counts or ()
    return (
        {each.id: nulls for each, nulls in zip(covered, counts, strict=False) if nulls is not None},
        _hex(covered, lows),
        _hex(covered, highs),
    )


def row_stats(rows: Sequence[Sequence[Any]], types: Sequence[t.DataType]) -> SimpleStats:
    """Return the least and greatest value and the number of nulls of each field of some rows.

    Example:
        >>> stats = row_stats([(2,), (None,), (1,)], [t.IntType()])
        >>> decode_row(stats.min_values, [t.IntType()]), stats.null_counts
        ((1,), (1,))
    """
    columns = [[row[index] for row in rows] for index in range(len(types))]
    present = [[each for each in column if each is not None] for column in columns]
    return SimpleStats(
        min_values=encode_row([min(each, key=_order, default=None) for each in present], types),
        max_values=encode_row([max(each, key=_order, default=None) for each in present], types),
        null_counts=tuple(
            len(column) - len(values) for column, values in zip(columns, present, strict=True)
        ),
    )


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _order(value: Any) -> Any:
    # Java's order: the zeros apart, NaN above everything.
    if isinstance(value, float):
        return (math.isnan(value), value, math.copysign(1, value))
    return value


def _bounds(change: FileChange, column: t.DataField) -> _Bounds | None:
    nulls = _of(change.null_value_counts).get(column.id)
    if nulls is None or not isinstance(column.type, _WITH_STATS):
        return None
    if nulls == change.record_count:
        return None, None, nulls
    lower = _of(change.lower_bounds).get(column.id)
    upper = _of(change.upper_bounds).get(column.id)
    if lower is None or upper is None:
        return None
    try:
        low = from_bound(lower, column.type)
        high = _rounded_up(from_bound(upper, column.type), column.type)
        encode_row([low, high], [column.type, column.type])
    except (LedgerError, OverflowError):
        return None
    return None if _is_nan(low) or _is_nan(high) else (low, high, nulls)


def _rounded_up(value: Any, data_type: t.DataType) -> Any:
    """Return the least value that a row can hold and that is not below a bound."""
    match data_type:
        case (
            t.TimestampType(precision=precision) | t.LocalZonedTimestampType(precision=precision)
        ) if precision <= MILLIS_PRECISION:
            lost = value.microsecond % 1000
            return value + (_MILLISECOND - dt.timedelta(microseconds=lost)) if lost else value
        case t.TimeType() if value.microsecond % 1000:
            moment = dt.datetime.combine(dt.date.min, value) + _MILLISECOND
            if moment.date() != dt.date.min:
                raise InvalidInputError(f"{value} rounds up to the next day")
            return moment.time()
        case _:
            return value


def _covered(file: DataFileMeta, columns: Sequence[t.DataField]) -> list[t.DataField]:
    if file.value_stats_cols is None:
        # Some writers say "all columns" and mean none: an empty row has no statistics.
        return [] if file.value_stats == NO_STATS else list(columns)
    by_name = {each.name: each for each in columns}
    unknown = [name for name in file.value_stats_cols if name not in by_name]
    if unknown:
        raise InvalidInputError(
            f"file {file.file_name} has statistics of {unknown[0]!r}, which its schema "
            f"{file.schema_id} does not have: give the columns of that schema"
        )
    return [by_name[name] for name in file.value_stats_cols]


def _hex(columns: Sequence[t.DataField], values: Sequence[Any]) -> _Texts:
    return {
        column.id: to_bound(value, column.type)
        for column, value in zip(columns, values, strict=True)
        if value is not None
    }


def _of(values: Any) -> Mapping[int, Any]:
    return {} if values is UNSET else values
