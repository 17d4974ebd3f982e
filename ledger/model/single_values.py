"""Single values of partitions and bounds, and calendar arithmetic.

Numbers and times are integers in the type's unit, so that they are exact and comparable:

| type | value |
|---|---|
| BOOLEAN, whole numbers | as such |
| DECIMAL | without its point: 14.20 is 1420 |
| FLOAT, DOUBLE | float |
| CHAR, VARCHAR | str |
| BINARY, VARBINARY, UUID | bytes |
| DATE | days since 1970-01-01 |
| TIME | microseconds since midnight; nanoseconds where its precision is above 6 |
| TIMESTAMP, TIMESTAMP_LTZ | microseconds since 1970 (UTC); nanoseconds as for TIME |

Source: the Iceberg specification, single-value serialization.

Python's dates end with the year 9999 and its datetimes have microseconds; stored values and bounds
may exceed both, so the calendar is computed here. It is the proleptic Gregorian one, as in Iceberg.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable
from datetime import date
from decimal import Context
from itertools import pairwise
from typing import Any

import ledger.model.types as t
from ledger.model.errors import InvalidInputError, UnsupportedError
from ledger.model.file_change import PartitionValue, sidecar_location_of
from ledger.model.messages import excerpt
from ledger.model.types.text import format_type

SECONDS_A_DAY = 86_400

_EPOCH_ORDINAL = date(1970, 1, 1).toordinal()
_YEARS, _DAYS = 400, 146_097
"""Years and days of a Gregorian cycle, after which the calendar repeats."""

_DATE = r"([+-]?[0-9]{4,6})-([0-9]{2})-([0-9]{2})"
_TIME = r"([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]{1,9}))?)?"
_OFFSET = r"([Zz]|[+-][0-9]{2}:?[0-9]{2})"
_DATE_TEXT = re.compile(_DATE)
_TIME_TEXT = re.compile(_TIME)
_MOMENT_TEXT = re.compile(rf"({_DATE})(?:[Tt ]({_TIME})\s*{_OFFSET}?)?")


def day_number(year: int, month: int, day: int) -> int:
    """Return a calendar day as days since 1970-01-01, negative before.

    Raises:
        ValueError: There is no such day.

    Example:
        >>> day_number(2017, 12, 1), day_number(1969, 12, 31)
        (17501, -1)
    """
    cycles, within = divmod(year - 1, _YEARS)
    return date(within + 1, month, day).toordinal() + cycles * _DAYS - _EPOCH_ORDINAL


def calendar_day(days: int) -> tuple[int, int, int]:
    """Return year, month and day of a day since 1970-01-01.

    >>> calendar_day(-1), calendar_day(2_932_897)
    ((1969, 12, 31), (10000, 1, 1))
    """
    cycles, within = divmod(days + _EPOCH_ORDINAL - 1, _DAYS)
    found = date.fromordinal(within + 1)
    return found.year + cycles * _YEARS, found.month, found.day


def year_text(year: int) -> str:
    """Return a year with at least four digits.

    >>> year_text(70), year_text(-1), year_text(12000)
    ('0070', '-0001', '+12000')
    """
    sign = "-" if year < 0 else "+" if year > date.max.year else ""
    return f"{sign}{abs(year):04d}"


def date_text(days: int) -> str:
    """Return days since 1970-01-01 as an ISO 8601 date.

    >>> date_text(17501)
    '2017-12-01'
    """
    year, month, day = calendar_day(days)
    return f"{year_text(year)}-{month:02d}-{day:02d}"


def parse_date(text: str) -> int:
    """Return an ISO 8601 date as days since 1970-01-01.

    Raises:
        ValueError: The text is not a date.
    """
    found = _DATE_TEXT.fullmatch(text)
    if not found:
        raise ValueError(text)
    return day_number(*map(int, found.groups()))


def time_text(count: int, digits: int) -> str:
    """Return a time of day as ISO 8601 text with all digits of its fraction.

    Args:
        count: Units since midnight.
        digits: The unit: 6 for microseconds, 9 for nanoseconds.

    Example:
        >>> time_text(81_068_123_456, 6)
        '22:31:08.123456'
    """
    seconds, fraction = divmod(count, 10**digits)
    minutes, second = divmod(seconds, 60)
    hour, minute = divmod(minutes, 60)
    return f"{hour:02d}:{minute:02d}:{second:02d}.{fraction:0{digits}d}"


def parse_time(text: str, digits: int) -> int:
    """Return an ISO 8601 time of day as units since midnight.

    Raises:
        ValueError: The text is not a time of day, or has more digits than the unit.
    """
    found = _TIME_TEXT.fullmatch(text)
    if not found:
        raise ValueError(text)
    hour, minute, second = int(found[1]), int(found[2]), int(found[3] or 0)
    fraction = found[4] or ""
    if hour >= 24 or minute >= 60 or second >= 60 or fraction[digits:].strip("0"):  # noqa: PLR2004
        raise ValueError(text)
    units = int(fraction[:digits].ljust(digits, "0"))
    return (hour * 3600 + minute * 60 + second) * int(10**digits) + units


def timestamp_text(count: int, digits: int) -> str:
    """Return a timestamp as ISO 8601 text with all digits of its fraction, without an offset.

    >>> timestamp_text(-1, 6)
    '1969-12-31T23:59:59.999999'
    """
    days, within = divmod(count, SECONDS_A_DAY * 10**digits)
    return f"{date_text(days)}T{time_text(within, digits)}"


def parse_timestamp(text: str, digits: int) -> tuple[int, str | None]:
    """Return an ISO 8601 timestamp as units since 1970 in UTC, and the offset of the text.

    A date alone is its midnight; a text without an offset is UTC.

    Raises:
        ValueError: The text is not a timestamp, or has more digits than the unit.

    Example:
        >>> parse_timestamp("1970-01-01T01:00:00.5+01:00", 6)
        (500000, '+01:00')
    """
    found = _MOMENT_TEXT.fullmatch(text)
    if not found:
        raise ValueError(text)
    offset = found[10]
    within = parse_time(found[5], digits) if found[5] else 0
    count = parse_date(found[1]) * SECONDS_A_DAY * 10**digits + within
    return count - _offset_seconds(offset) * int(10**digits), offset


def _offset_seconds(offset: str | None) -> int:
    if offset is None or offset in "Zz":
        return 0
    seconds = int(offset[1:3]) * 3600 + int(offset[-2:]) * 60
    return -seconds if offset[0] == "-" else seconds


Value = bool | int | float | str | bytes
"""A single value other than NULL, in the form of the table above."""

WHOLE_BITS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}
"""The integer types by name, with their widths in bits."""

EXACT_DECIMALS = Context(prec=2 * 38)
"""Context of decimal arithmetic without rounding: Python's own keeps 28 digits of the 38."""

_MICROSECONDS, _NANOSECONDS = 6, 9
_UUID_DASHES = (0, 8, 12, 16, 20, 32)
_UUID = re.compile(r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")
_DECIMAL = re.compile(r"([+-]?)([0-9]+)(?:\.([0-9]+))?")


def is_comparable(data_type: t.DataType) -> bool:
    """Return whether values of a type have the form above: comparable and not nested."""
    return data_type.root in _WRITERS


def is_in_integer_range(value: Value, data_type: t.DataType) -> bool:
    """Return True if a value is within the range of its integer type, or the type is another one.

    >>> (
    ...     is_in_integer_range(127, t.TinyIntType()),
    ...     is_in_integer_range(128, t.TinyIntType()),
    ...     is_in_integer_range("x", t.DateType()),
    ... )
    (True, False, True)
    """
    bits = WHOLE_BITS.get(data_type.root)
    return bits is None or (isinstance(value, int) and -(1 << bits - 1) <= value < 1 << bits - 1)


def unit_digits(data_type: t.TimeType | t.TimestampType | t.LocalZonedTimestampType) -> int:
    """Return the fractional digits of a time type's unit: 6 (micro-) or 9 (nanoseconds)."""
    return _NANOSECONDS if data_type.precision > _MICROSECONDS else _MICROSECONDS


def round_to_float32(number: float) -> float:
    """Return a number rounded to single precision (FLOAT); infinite beyond its range.

    >>> round_to_float32(0.1)
    0.10000000149011612
    """
    try:
        return float(struct.unpack("<f", struct.pack("<f", number))[0])
    except OverflowError:
        return math.copysign(math.inf, number)


def decimal_text(unscaled: int, scale: int) -> str:
    """Return an unscaled decimal as text with all digits of its scale.

    >>> decimal_text(-5, 2), decimal_text(1420, 0)
    ('-0.05', '1420')
    """
    digits = str(abs(unscaled)).rjust(scale + 1, "0")
    sign = "-" if unscaled < 0 else ""
    return f"{sign}{digits[:-scale]}.{digits[-scale:]}" if scale else sign + digits


def encode_value(value: Value | None, data_type: t.DataType) -> PartitionValue:
    """Return a value in its JSON form for the partition of a file in the log.

    In addition to the rules of `PartitionValue`: timestamps are UTC without an offset and without
    trailing zeros in their fraction, bytes are hex. A field of the transform `day` has the type
    DATE and so the date's text; `year`, `month`, `hour` and `bucket[N]` have integers.

    Args:
        value: A value of the type; None for NULL.
        data_type: The partition field's type, `Transform.result_type`.

    Raises:
        UnsupportedError: No partition has values of that type.

    Example:
        >>> encode_value(17501, t.DateType()), encode_value(1420, t.DecimalType(9, 2))
        ('2017-12-01', '14.20')
    """
    if value is None:
        return None
    write = _WRITERS.get(data_type.root)
    if write is None:
        raise UnsupportedError(
            f"{format_type(data_type)} has no partition values: partition by another column"
        )
    return write(value, data_type)


def decode_value(value: PartitionValue, data_type: t.DataType) -> Value | None:
    """Return the value of a partition's JSON form; the inverse of `encode_value`.

    Raises:
        InvalidInputError: The JSON is not a value of the type.

    Example:
        >>> decode_value("1969-12-31T23:59:59.5", t.TimestampType(6))
        -500000
    """
    if value is None:
        return None
    if sidecar_location_of(value) is not None:
        raise InvalidInputError("the partition's value was erased, or is kept elsewhere")
    try:
        found = _decode_json_value(value, data_type)
    except (ValueError, OverflowError) as error:
        raise InvalidInputError(
            f"partition value {excerpt(value)} is no {format_type(data_type)}"
        ) from error
    return found


def _decode_json_value(value: str | int | bool, data_type: t.DataType) -> Value:  # noqa: FBT001 - a value
    if isinstance(value, str):
        return parse_text(value, data_type)
    if isinstance(value, bool) == (data_type.root == "BOOLEAN") and data_type.root in _PLAIN:
        return value
    raise ValueError(value)


def parse_text(text: str, data_type: t.DataType) -> Value:
    """Return the value of a text, for types whose values are text in JSON.

    Timestamps without an offset are UTC; the text of a TIMESTAMP may not have an offset.

    Raises:
        ValueError: The text is not a value of the type, or the type's values are not text.
    """
    read = _READERS.get(data_type.root)
    if read is None:
        raise ValueError(text)
    return read(text, data_type)


def _parse_wall_clock(text: str, data_type: Any) -> int:
    count, offset = parse_timestamp(text, unit_digits(data_type))
    if offset:
        raise ValueError(text)
    return count


def parse_decimal(text: str, data_type: t.DecimalType) -> int:
    """Return a decimal text as an unscaled integer at the type's scale.

    Raises:
        ValueError: The text is not a decimal, or has digits that the type cannot hold.
    """
    found = _DECIMAL.fullmatch(text)
    if not found:
        raise ValueError(text)
    fraction = found[3] or ""
    if fraction[data_type.scale :].strip("0"):
        raise ValueError(text)
    unscaled = int(found[2] + fraction[: data_type.scale].ljust(data_type.scale, "0"))
    if unscaled >= 10**data_type.precision:
        raise ValueError(text)
    return -unscaled if found[1] == "-" else unscaled


def _float_text(number: float) -> str:
    if math.isfinite(number):
        return repr(number)
    return "NaN" if math.isnan(number) else f"{'-' if number < 0 else ''}Infinity"


def _uuid_text(value: bytes) -> str:
    digits = value.hex()
    return "-".join(digits[start:end] for start, end in pairwise(_UUID_DASHES))


def _parse_uuid(text: str) -> bytes:
    if not _UUID.fullmatch(text):
        raise ValueError(text)
    return bytes.fromhex(text.replace("-", ""))


def _return_unchanged(value: Any, _type: Any) -> Any:
    return value


def _trimmed_time_text(value: Any, data_type: Any) -> str:
    return time_text(value, unit_digits(data_type)).rstrip("0").rstrip(".")


def _trimmed_timestamp_text(value: Any, data_type: Any) -> str:
    return timestamp_text(value, unit_digits(data_type)).rstrip("0").rstrip(".")


_PLAIN = ("BOOLEAN", *WHOLE_BITS)
_WRITERS: dict[str, Callable[[Any, Any], PartitionValue]] = {
    **dict.fromkeys((*_PLAIN, "CHAR", "VARCHAR"), _return_unchanged),
    "DECIMAL": lambda value, data_type: decimal_text(value, data_type.scale),
    **dict.fromkeys(("FLOAT", "DOUBLE"), lambda value, _type: _float_text(value)),
    "DATE": lambda value, _type: date_text(value),
    "TIME": _trimmed_time_text,
    **dict.fromkeys(("TIMESTAMP", "TIMESTAMP_LTZ"), _trimmed_timestamp_text),
    "UUID": lambda value, _type: _uuid_text(value),
    **dict.fromkeys(("BINARY", "VARBINARY"), lambda value, _type: value.hex()),
}
_READERS: dict[str, Callable[[str, Any], Value]] = {
    **dict.fromkeys(("CHAR", "VARCHAR"), _return_unchanged),
    "DECIMAL": parse_decimal,
    "FLOAT": lambda text, _type: round_to_float32(float(text)),
    "DOUBLE": lambda text, _type: float(text),
    "DATE": lambda text, _type: parse_date(text),
    "TIME": lambda text, data_type: parse_time(text, unit_digits(data_type)),
    "TIMESTAMP": _parse_wall_clock,
    "TIMESTAMP_LTZ": lambda text, data_type: parse_timestamp(text, unit_digits(data_type))[0],
    "UUID": lambda text, _type: _parse_uuid(text),
    **dict.fromkeys(("BINARY", "VARBINARY"), lambda text, _type: bytes.fromhex(text)),
}
