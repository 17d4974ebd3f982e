"""Least and greatest values as a statistics file writes them.

Source: Paimon's InternalSerializers, `serializeToString`.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from ledger.model import types as t
from ledger.model.transforms.values import Value, decimal_text, unit_digits

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
