"""Partition scalars of the ledger to the values of Paimon's rows and back.

Natives are those of `binary_row`; scalars are `PartitionValue`s.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from ledger.files.registering.partition_text import value_of
from ledger.model import types as t
from ledger.model.errors import InvalidInputError
from ledger.model.file_change import PartitionValue
from projections.paimon.rows.bounds import from_bound, to_bound
from projections.paimon.rows.types import Moment, moment_of, nanos_of

__all__ = ["from_bound", "native", "scalar", "to_bound"]

_MOMENT = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?")
_EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - as the moments of rows
_NANOS = 1_000_000_000


def native(value: PartitionValue, data_type: t.DataType) -> Any:
    """Return a partition scalar as the value that a row holds.

    Args:
        value: As `FileChange.partition` has it.
        data_type: The partition column's type.

    Raises:
        InvalidInputError: The scalar is none of the type.
        UnsupportedError: No table can be partitioned by the type.

    Example:
        >>> native("2013-01-01", t.DateType()), native("2.50", t.DecimalType(5, 2))
        (datetime.date(2013, 1, 1), Decimal('2.50'))
    """
    if value is None:
        return None
    try:
        return _from_text(value, data_type)
    except (ValueError, OverflowError) as error:
        raise InvalidInputError(
            f"partition value {value!r} is no {data_type.root}; write it in ISO form"
        ) from error


def scalar(value: Any, data_type: t.DataType) -> PartitionValue:
    """Return a row's value as a partition scalar; the reverse of `native`.

    Raises:
        InvalidInputError: The value is none of the type.

    Example:
        >>> scalar(dt.date(2013, 1, 1), t.DateType())
        '2013-01-01'
    """
    if value is None or isinstance(value, bool | str):
        return value
    try:
        return _TO_SCALAR.get(type(data_type), _whole)(value, data_type)
    except (AttributeError, TypeError, ValueError, OverflowError) as error:
        raise InvalidInputError(f"{value!r} of a row is no {data_type.root}") from error


def _from_text(value: PartitionValue, data_type: t.DataType) -> Any:
    if isinstance(data_type, t.BinaryType | t.VarBinaryType):
        return bytes.fromhex(str(value))
    if isinstance(value, bool) is not isinstance(data_type, t.BooleanType):
        raise ValueError(value)
    canonical = value_of(str(value), data_type)
    convert = _FROM_SCALAR.get(type(data_type))
    return canonical if convert is None else convert(str(canonical), data_type)


def _time(text: str, _: Any) -> dt.time:
    whole, _, fraction = text.partition(".")
    return dt.time.fromisoformat(whole).replace(microsecond=int(fraction.ljust(9, "0")[:6]))


def _moment(text: str, data_type: Moment) -> dt.datetime | int:
    found = _MOMENT.fullmatch(text)
    if found is None:
        raise ValueError(text)
    nanos = nanos_of(dt.datetime.fromisoformat(found[1])) + int((found[2] or "").ljust(9, "0"))
    return moment_of(nanos, data_type)


def _iso_moment(value: Any, _: Any) -> str:
    seconds, rest = divmod(nanos_of(value), _NANOS)
    text = (_EPOCH + dt.timedelta(seconds=seconds)).isoformat()
    return text + f".{rest:09d}".rstrip("0").rstrip(".")


def _hex(value: Any, _: Any) -> str:
    return str(value.hex())


def _plain(value: Any, _: Any) -> str:
    return f"{value:f}"


def _iso(value: Any, data_type: t.DataType) -> PartitionValue:
    return value_of(value.isoformat(), data_type)


def _floating(value: Any, data_type: t.DataType) -> PartitionValue:
    return value_of(repr(value), data_type)


def _whole(value: Any, _: Any) -> int:
    return int(value)


_FROM_SCALAR: dict[type[t.DataType], Callable[[str, Any], Any]] = {
    t.DecimalType: lambda text, _: Decimal(text),
    t.DateType: lambda text, _: dt.date.fromisoformat(text),
    t.TimeType: _time,
    t.TimestampType: _moment,
    t.LocalZonedTimestampType: _moment,
    t.FloatType: lambda text, _: float(text),
    t.DoubleType: lambda text, _: float(text),
}
_TO_SCALAR: dict[type[t.DataType], Callable[[Any, Any], PartitionValue]] = {
    t.BinaryType: _hex,
    t.VarBinaryType: _hex,
    t.DecimalType: _plain,
    t.DateType: _iso,
    t.TimeType: _iso,
    t.TimestampType: _iso_moment,
    t.LocalZonedTimestampType: _iso_moment,
    t.FloatType: _floating,
    t.DoubleType: _floating,
}
