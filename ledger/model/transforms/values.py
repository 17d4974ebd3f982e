"""Values as transforms and plans compute with them, and their form in the log.

Everything that is counted is a whole number, so that no digit is lost and all of it compares:

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

Source: the values that the Iceberg specification writes as single-value bytes.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable
from itertools import pairwise
from typing import Any

from ledger.model import types as t
from ledger.model.errors import InvalidInputError, UnsupportedError
from ledger.model.file_change import PartitionValue, kept_at
from ledger.model.messages.excerpt import excerpt
from ledger.model.transforms.calendar import (
    date_text,
    moment_text,
    parse_date,
    parse_moment,
    parse_time,
    time_text,
)
from ledger.model.types.text import format_type

Value = bool | int | float | str | bytes
"""A value that is not NULL; see the table above."""

WHOLE_BITS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}
"""The types of whole numbers, with their widths."""

_MICROSECONDS, _NANOSECONDS = 6, 9
_UUID_DASHES = (0, 8, 12, 16, 20, 32)
_UUID = re.compile(r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")
_DECIMAL = re.compile(r"([+-]?)([0-9]+)(?:\.([0-9]+))?")


def is_comparable(data_type: t.DataType) -> bool:
    """Return whether values of a type have the form above: ordered, and not nested."""
    return data_type.root in _WRITERS


def has_room(value: Value, data_type: t.DataType) -> bool:
    """Whether a whole number is within its type; what is no type of whole numbers has room for all.

    >>> has_room(127, t.TinyIntType()), has_room(128, t.TinyIntType()), has_room("x", t.DateType())
    (True, False, True)
    """
    bits = WHOLE_BITS.get(data_type.root)
    return bits is None or (isinstance(value, int) and -(1 << bits - 1) <= value < 1 << bits - 1)


def unit_digits(data_type: t.TimeType | t.TimestampType | t.LocalZonedTimestampType) -> int:
    """Return the unit that a type's moments are counted in: 6 or 9 digits of a second."""
    return _NANOSECONDS if data_type.precision > _MICROSECONDS else _MICROSECONDS


def single_precision(number: float) -> float:
    """Return the FLOAT nearest to a number; infinite beyond their range.

    >>> single_precision(0.1)
    0.10000000149011612
    """
    try:
        return float(struct.unpack("<f", struct.pack("<f", number))[0])
    except OverflowError:
        return math.copysign(math.inf, number)


def decimal_text(unscaled: int, scale: int) -> str:
    """Return a decimal with all digits of its scale.

    >>> decimal_text(-5, 2), decimal_text(1420, 0)
    ('-0.05', '1420')
    """
    digits = str(abs(unscaled)).rjust(scale + 1, "0")
    sign = "-" if unscaled < 0 else ""
    return f"{sign}{digits[:-scale]}.{digits[-scale:]}" if scale else sign + digits


def encode_value(value: Value | None, data_type: t.DataType) -> PartitionValue:
    """Return a value as it stands in the log, in a file's partition.

    Besides what `PartitionValue` says: moments are UTC without an offset and without zeros at the
    end of their fraction, bytes are hex. A field of the transform `day` has the type DATE and so
    the day's text; `year`, `month`, `hour` and `bucket[N]` have whole numbers.

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
    """Return the value that stands in the log; the inverse of `encode_value`.

    Raises:
        InvalidInputError: It is no value of the type.

    Example:
        >>> decode_value("1969-12-31T23:59:59.5", t.TimestampType(6))
        -500000
    """
    if value is None:
        return None
    if kept_at(value) is not None:
        raise InvalidInputError("the partition's value was erased, or is kept elsewhere")
    try:
        found = _decoded(value, data_type)
    except (ValueError, OverflowError) as error:
        raise InvalidInputError(
            f"partition value {excerpt(value)} is no {format_type(data_type)}"
        ) from error
    return found


def _decoded(value: str | int | bool, data_type: t.DataType) -> Value:  # noqa: FBT001 - a value
    if isinstance(value, str):
        return parse_text(value, data_type)
    if isinstance(value, bool) == (data_type.root == "BOOLEAN") and data_type.root in _PLAIN:
        return value
    raise ValueError(value)


def parse_text(text: str, data_type: t.DataType) -> Value:
    """Return the value of a type that is written as text in JSON.

    Moments without an offset are UTC; a TIMESTAMP may have none.

    Raises:
        ValueError: The text is no such value, or the type's values are not text.
    """
    read = _READERS.get(data_type.root)
    if read is None:
        raise ValueError(text)
    return read(text, data_type)


def _wall_clock(text: str, data_type: Any) -> int:
    count, offset = parse_moment(text, unit_digits(data_type))
    if offset:
        raise ValueError(text)
    return count


def parse_decimal(text: str, data_type: t.DecimalType) -> int:
    """Return a decimal's digits at the type's scale.

    Raises:
        ValueError: The text is no such number, or has digits that the type cannot hold.
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


def _uuid(text: str) -> bytes:
    if not _UUID.fullmatch(text):
        raise ValueError(text)
    return bytes.fromhex(text.replace("-", ""))


def _as_it_is(value: Any, _type: Any) -> Any:
    return value


def _time_text(value: Any, data_type: Any) -> str:
    return time_text(value, unit_digits(data_type)).rstrip("0").rstrip(".")


def _moment_text(value: Any, data_type: Any) -> str:
    return moment_text(value, unit_digits(data_type)).rstrip("0").rstrip(".")


_PLAIN = ("BOOLEAN", *WHOLE_BITS)
_WRITERS: dict[str, Callable[[Any, Any], PartitionValue]] = {
    **dict.fromkeys((*_PLAIN, "CHAR", "VARCHAR"), _as_it_is),
    "DECIMAL": lambda value, data_type: decimal_text(value, data_type.scale),
    **dict.fromkeys(("FLOAT", "DOUBLE"), lambda value, _type: _float_text(value)),
    "DATE": lambda value, _type: date_text(value),
    "TIME": _time_text,
    **dict.fromkeys(("TIMESTAMP", "TIMESTAMP_LTZ"), _moment_text),
    "UUID": lambda value, _type: _uuid_text(value),
    **dict.fromkeys(("BINARY", "VARBINARY"), lambda value, _type: value.hex()),
}
_READERS: dict[str, Callable[[str, Any], Value]] = {
    **dict.fromkeys(("CHAR", "VARCHAR"), _as_it_is),
    "DECIMAL": parse_decimal,
    "FLOAT": lambda text, _type: single_precision(float(text)),
    "DOUBLE": lambda text, _type: float(text),
    "DATE": lambda text, _type: parse_date(text),
    "TIME": lambda text, data_type: parse_time(text, unit_digits(data_type)),
    "TIMESTAMP": _wall_clock,
    "TIMESTAMP_LTZ": lambda text, data_type: parse_moment(text, unit_digits(data_type))[0],
    "UUID": lambda text, _type: _uuid(text),
    **dict.fromkeys(("BINARY", "VARBINARY"), lambda text, _type: bytes.fromhex(text)),
}
