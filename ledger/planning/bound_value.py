"""Single values as bytes of bounds, and comparison with predicates.

Source: the Iceberg specification, appendix D. Values have the form that
`ledger.model.single_values` describes.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from operator import eq, ge, gt, le, lt, ne
from typing import Any

from ledger.files.bounds import ColumnFacts, lower_bound
from ledger.model import types as t
from ledger.model.errors import UnsupportedError
from ledger.model.messages import excerpt
from ledger.model.single_values import SECONDS_A_DAY, Value, unit_digits
from ledger.model.types.text import format_type
from ledger.planning.expression import NEGATIVE, Op, Predicate

_INT, _LONG = 4, 8
_NANOSECONDS = 9


def value_to_bytes(value: Value, data_type: t.DataType) -> bytes:
    """Return a value's bytes, exact and not truncated.

    Raises:
        UnsupportedError: The type has no such bytes, or the value does not fit into them.

    Example:
        >>> value_to_bytes(34, t.BigIntType()).hex()
        '2200000000000000'
    """
    match value:
        case str():
            return value.encode()
        case bytes():
            return value
        case float():
            # The bound of a zero is its lesser neighbour; here the sign stays.
            return struct.pack("<f" if isinstance(data_type, t.FloatType) else "<d", value)
    unit = _type_with_unit_precision(data_type)
    facts = ColumnFacts(1, 0, value, value)
    encoded = lower_bound(facts, unit, unit)
    if encoded is None:
        raise UnsupportedError(
            f"{format_type(data_type)} has no single-value bytes for {excerpt(value)}"
        )
    return bytes.fromhex(encoded)


def _type_with_unit_precision(data_type: t.DataType) -> t.DataType:
    """Return the type whose values are counted in the unit of `data_type`'s values."""
    match data_type:
        case t.TimeType():
            return t.TimeType(unit_digits(data_type))
        case t.TimestampType():
            return t.TimestampType(unit_digits(data_type))
        case t.LocalZonedTimestampType():
            return t.LocalZonedTimestampType(unit_digits(data_type))
        case _:
            return data_type


def value_from_bytes(encoded: bytes, data_type: t.DataType) -> Value | None:
    """Return the value that bytes encode; None when they encode none of the type.

    Bytes written before a promotion are recognized by their length: an INT's for a BIGINT, a
    FLOAT's for a DOUBLE, a DATE's for a TIMESTAMP.

    Example:
        >>> value_from_bytes(bytes([34, 0, 0, 0]), t.BigIntType())
        34
    """
    match data_type:
        case t.CharType() | t.VarCharType():
            return _decode_text(encoded)
        case t.BinaryType() | t.VarBinaryType() | t.UuidType():
            return encoded
        case t.FloatType() | t.DoubleType():
            return _decode_floating(encoded)
        case t.DecimalType():
            return int.from_bytes(encoded, "big", signed=True) if encoded else None
        case t.BooleanType():
            return encoded != b"\0" if len(encoded) == 1 else None
        case _:
            return _decode_integer(encoded, data_type)


def _decode_text(encoded: bytes) -> str | None:
    try:
        return encoded.decode()
    except UnicodeDecodeError:
        # Other writers truncate bounds within a character.
        return None


def _decode_floating(encoded: bytes) -> float | None:
    form = {_INT: "<f", _LONG: "<d"}.get(len(encoded))
    number = struct.unpack(form, encoded)[0] if form else math.nan
    return None if math.isnan(number) else float(number)


def _decode_integer(encoded: bytes, data_type: t.DataType) -> int | None:
    width = len(encoded)
    count = int.from_bytes(encoded, "little", signed=True)
    match data_type:
        case t.TinyIntType() | t.SmallIntType() | t.IntType() | t.DateType() if width == _INT:
            return count
        case t.BigIntType() if width in (_INT, _LONG):
            return count
        case t.TimeType() if width == _LONG:
            # Iceberg's times have microseconds, regardless of the column's precision.
            return count * 1000 if unit_digits(data_type) == _NANOSECONDS else count
        case t.TimestampType() | t.LocalZonedTimestampType() if width == _LONG:
            return count
        case t.TimestampType() | t.LocalZonedTimestampType() if width == _INT:
            return count * SECONDS_A_DAY * int(10 ** unit_digits(data_type))
        case _:
            return None


_COMPARISONS: dict[Op, Callable[[Any, Any], bool]] = {
    Op.LESS: lt,
    Op.AT_MOST: le,
    Op.GREATER: gt,
    Op.AT_LEAST: ge,
    Op.EQUAL: eq,
    Op.NOT_EQUAL: ne,
    Op.STARTS_WITH: str.startswith,
    Op.NOT_STARTS_WITH: lambda value, prefix: not value.startswith(prefix),
}


def holds_for(predicate: Predicate, value: Value | None) -> bool | None:
    """Return whether a predicate holds for a value; None where engines differ.

    Args:
        predicate: The predicate.
        value: A value of its column; None for NULL, for which engines disagree whether it differs
            from a value.

    Example:
        >>> from ledger.model import types as t
        >>> from ledger.planning.expression import BoundColumn
        >>> five = Predicate(Op.NOT_EQUAL, BoundColumn(1, "id", t.IntType()), (5,))
        >>> [holds_for(five, each) for each in (4, 5, None)]
        [True, False, None]
    """
    op = predicate.op
    if value is None:
        return None if op in NEGATIVE else op is Op.IS_NULL
    match op:
        case Op.IS_NULL | Op.NOT_NULL:
            return op is Op.NOT_NULL
        case Op.IS_NAN | Op.NOT_NAN:
            return (value != value) == (op is Op.IS_NAN)  # noqa: PLR0124 - only NaN is not
        case Op.IN | Op.NOT_IN:
            return (value in predicate.values) == (op is Op.IN)
        case _:
            return _COMPARISONS[op](value, predicate.values[0])
