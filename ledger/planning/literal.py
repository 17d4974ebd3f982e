"""A filter's values in the form of the column that they are compared with."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, date, datetime, time
from decimal import Decimal
from operator import index
from typing import Any
from uuid import UUID

from ledger.model import types as t
from ledger.model.errors import InvalidInputError
from ledger.model.messages.excerpt import excerpt, is_storable
from ledger.model.transforms.calendar import SECONDS_A_DAY, day_number
from ledger.model.transforms.values import (
    WHOLE_BITS,
    Value,
    parse_text,
    single_precision,
    unit_digits,
)
from ledger.model.types.numbers import within_digits
from ledger.model.types.text import format_type
from ledger.planning.expression import BoundColumn


def literal_of(value: object, column: BoundColumn) -> Value:
    """Return a value to compare a column with.

    Taken are Python's own values of the column's type, and ISO 8601 text for days, times and
    moments. Text without an offset is UTC for a TIMESTAMP_LTZ; a datetime must have its time zone
    there, and none for a TIMESTAMP.

    Raises:
        InvalidInputError: The value is not of the column's type, or lies between two of its values.

    Example:
        >>> literal_of("2017-12-01", BoundColumn(1, "day", t.DateType()))
        17501
    """
    if value is None:
        raise InvalidInputError(
            f"column {column.name} is compared with NULL, which nothing equals: ask for 'is null'"
        )
    read = _READERS.get(column.type.root)
    if read is None:
        raise InvalidInputError(
            f"column {column.name} is {format_type(column.type)}, whose values do not compare: "
            "only 'is null' and 'is not null' can be asked of it"
        )
    try:
        return read(value, column.type)
    except (ValueError, TypeError, OverflowError, ArithmeticError) as error:
        hint = _hint(value, column.type)
        raise InvalidInputError(
            f"column {column.name} is {format_type(column.type)} and cannot be compared with "
            f"{excerpt(value)} ({type(value).__name__}): {hint}"
        ) from error


def _hint(value: object, data_type: t.DataType) -> str:
    match data_type:
        case t.TimestampType() if isinstance(value, datetime) and value.tzinfo:
            return "leave the time zone out"
        case t.LocalZonedTimestampType() if isinstance(value, datetime):
            return "give the datetime a time zone"
        case t.DateType() | t.TimeType() | t.TimestampType() | t.LocalZonedTimestampType():
            return "give ISO 8601 text, no finer than the column's unit"
        case t.FloatType() | t.DoubleType() if value != value:  # noqa: PLR0124 - only NaN is not
            return "ask for 'is nan'"
        case _:
            return "give a value that the column can hold"


def _boolean(value: Any, _type: Any) -> bool:
    # numpy's booleans are no bool, and a whole number is not meant as one.
    if type(value).__name__ not in ("bool", "bool_"):
        raise TypeError(value)
    return bool(value)


def _whole(value: Any, data_type: t.DataType) -> int:
    if isinstance(value, bool):
        raise TypeError(value)
    if isinstance(value, Decimal):
        within_digits(value)
    is_integral = isinstance(value, float | Decimal) and value == int(value)
    number = int(value) if is_integral else index(value)
    limit = 1 << WHOLE_BITS[data_type.root] - 1
    if not -limit <= number < limit:
        raise OverflowError(number)
    return number


def _decimal(value: Any, data_type: t.DecimalType) -> Value:
    if isinstance(value, bool):
        raise TypeError(value)
    # A float means the digits that it prints, not the binary fraction beside them.
    exact = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    return parse_text(f"{within_digits(exact):f}", data_type)


def _floating(value: Any, data_type: t.DataType) -> float:
    if isinstance(value, bool | str):
        raise TypeError(value)
    number = float(value)
    if math.isnan(number):
        raise ValueError(value)
    return single_precision(number) if isinstance(data_type, t.FloatType) else number


def _text(value: Any, _type: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(value)
    if not is_storable(value):
        raise ValueError(value)
    return value


def _bytes(value: Any, _type: Any) -> bytes:
    if not isinstance(value, bytes | bytearray | memoryview):
        raise TypeError(value)
    return bytes(value)


def _uuid(value: Any, _type: Any) -> Value:
    return value.bytes if isinstance(value, UUID) else parse_text(_text(value, _type), _type)


def _date(value: Any, data_type: t.DateType) -> Value:
    if isinstance(value, str):
        return parse_text(value, data_type)
    if isinstance(value, datetime) or not isinstance(value, date):
        raise TypeError(value)
    return day_number(value.year, value.month, value.day)


def _time(value: Any, data_type: t.TimeType) -> Value:
    if isinstance(value, str):
        return parse_text(value, data_type)
    if not isinstance(value, time) or value.tzinfo:
        raise TypeError(value)
    return _clock(value, unit_digits(data_type))


def _clock(value: time | datetime, digits: int) -> int:
    seconds = value.hour * 3600 + value.minute * 60 + value.second
    # pandas' moments are datetimes that go on to the nanosecond.
    finer = value.microsecond * 1000 + getattr(value, "nanosecond", 0)
    units, lost = divmod(finer, 10 ** (9 - digits))
    if lost:
        raise ValueError(value)
    return int(seconds * 10**digits + units)


def _moment(value: Any, data_type: t.TimestampType | t.LocalZonedTimestampType) -> Value:
    if isinstance(value, str):
        return parse_text(value, data_type)
    if not isinstance(value, date):
        raise TypeError(value)
    digits = unit_digits(data_type)
    clock = 0
    if isinstance(value, datetime):
        if (value.tzinfo is None) != isinstance(data_type, t.TimestampType):
            raise ValueError(value)
        value = value.astimezone(UTC) if value.tzinfo else value
        clock = _clock(value, digits)
    days = day_number(value.year, value.month, value.day)
    return int(days * SECONDS_A_DAY * 10**digits + clock)


_READERS: dict[str, Callable[[Any, Any], Value]] = {
    "BOOLEAN": _boolean,
    **dict.fromkeys(WHOLE_BITS, _whole),
    "DECIMAL": _decimal,
    **dict.fromkeys(("FLOAT", "DOUBLE"), _floating),
    **dict.fromkeys(("CHAR", "VARCHAR"), _text),
    **dict.fromkeys(("BINARY", "VARBINARY"), _bytes),
    "UUID": _uuid,
    "DATE": _date,
    "TIME": _time,
    **dict.fromkeys(("TIMESTAMP", "TIMESTAMP_LTZ"), _moment),
}
