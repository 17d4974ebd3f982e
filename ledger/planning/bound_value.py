"""Single values as the bytes that bounds and partition summaries are kept in.

Source: the Iceberg specification, appendix D. Values have the form that
`ledger.model.transforms.values` describes.
"""

from __future__ import annotations

import math
import struct

from ledger.files.registering.bounds import lower_bound
from ledger.files.registering.facts import ColumnFacts
from ledger.model import types as t
from ledger.model.errors import UnsupportedError
from ledger.model.messages.excerpt import excerpt
from ledger.model.transforms.calendar import SECONDS_A_DAY
from ledger.model.transforms.values import Value, unit_digits
from ledger.model.types.text import format_type

_INT, _LONG = 4, 8
_NANOSECONDS = 9


def value_to_bytes(value: Value, data_type: t.DataType) -> bytes:
    """Return a value's bytes, exact and whole.

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
    unit = _in_units(data_type)
    facts = ColumnFacts(1, 0, value, value)
    encoded = lower_bound(facts, unit, unit)
    if encoded is None:
        raise UnsupportedError(
            f"{format_type(data_type)} has no single-value bytes for {excerpt(value)}"
        )
    return bytes.fromhex(encoded)


def _in_units(data_type: t.DataType) -> t.DataType:
    """Return the type whose values are counted in the unit of `data_type`'s."""
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
    """Return the value that bytes stand for; None when they stand for none of the type.

    Bytes written before a promotion are known by their length: an INT's for a BIGINT, a FLOAT's
    for a DOUBLE, a DATE's for a TIMESTAMP.

    Example:
        >>> value_from_bytes(bytes([34, 0, 0, 0]), t.BigIntType())
        34
    """
    match data_type:
        case t.CharType() | t.VarCharType():
            return _text(encoded)
        case t.BinaryType() | t.VarBinaryType() | t.UuidType():
            return encoded
        case t.FloatType() | t.DoubleType():
            return _floating(encoded)
        case t.DecimalType():
            return int.from_bytes(encoded, "big", signed=True) if encoded else None
        case t.BooleanType():
            return encoded != b"\0" if len(encoded) == 1 else None
        case _:
            return _counted(encoded, data_type)


def _text(encoded: bytes) -> str | None:
    try:
        return encoded.decode()
    except UnicodeDecodeError:
        # Other writers cut bounds within a character.
        return None


def _floating(encoded: bytes) -> float | None:
    form = {_INT: "<f", _LONG: "<d"}.get(len(encoded))
    number = struct.unpack(form, encoded)[0] if form else math.nan
    return None if math.isnan(number) else float(number)


def _counted(encoded: bytes, data_type: t.DataType) -> int | None:
    width = len(encoded)
    count = int.from_bytes(encoded, "little", signed=True)
    match data_type:
        case t.TinyIntType() | t.SmallIntType() | t.IntType() | t.DateType() if width == _INT:
            return count
        case t.BigIntType() if width in (_INT, _LONG):
            return count
        case t.TimeType() if width == _LONG:
            # Iceberg's times have microseconds, whatever the column's precision.
            return count * 1000 if unit_digits(data_type) == _NANOSECONDS else count
        case t.TimestampType() | t.LocalZonedTimestampType() if width == _LONG:
            return count
        case t.TimestampType() | t.LocalZonedTimestampType() if width == _INT:
            return count * SECONDS_A_DAY * int(10 ** unit_digits(data_type))
        case _:
            return None
