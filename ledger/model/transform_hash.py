"""The hash behind `bucket[N]`: 32-bit Murmur3 (x86, seed 0) of a value's bytes.

Source: the Iceberg specification, appendix B. Equal values hash alike whatever their type's width,
precision or unit, so that a promoted column stays in its buckets.
"""

from __future__ import annotations

import struct

from ledger.model import types as t
from ledger.model.errors import InvalidInputError
from ledger.model.excerpt import excerpt
from ledger.model.transform_value import Value, unit_digits
from ledger.model.type_text import format_type

_MASK = 0xFFFFFFFF
_NANOSECONDS_DIGITS = 9


def murmur3(data: bytes) -> int:
    """Return the hash as a signed 32-bit number.

    >>> murmur3(b"iceberg"), murmur3(b"")
    (1210000089, 0)
    """
    state = 0
    whole = len(data) & ~3
    for (block,) in struct.iter_unpack("<I", data[:whole]):
        state ^= _scrambled(block)
        state = (_rotated(state, 13) * 5 + 0xE6546B64) & _MASK
    state ^= _scrambled(int.from_bytes(data[whole:], "little")) ^ len(data)
    state = ((state ^ state >> 16) * 0x85EBCA6B) & _MASK
    state = ((state ^ state >> 13) * 0xC2B2AE35) & _MASK
    state ^= state >> 16
    return state - (1 << 32) if state >> 31 else state


def _scrambled(block: int) -> int:
    return _rotated(block * 0xCC9E2D51 & _MASK, 15) * 0x1B873593 & _MASK


def _rotated(number: int, bits: int) -> int:
    return (number << bits | number >> 32 - bits) & _MASK


def bucket_hash(value: Value, data_type: t.DataType) -> int:
    """Return a value's hash.

    Args:
        value: A value of the type, not None.
        data_type: The column's type.

    Raises:
        InvalidInputError: The value has no hash: it is nested, or beyond 64 bits.

    Example:
        >>> bucket_hash(34, t.IntType()), bucket_hash(1420, t.DecimalType(9, 2))
        (2017239379, -500754589)
    """
    return murmur3(_hashed_bytes(value, data_type))


def _hashed_bytes(value: Value, data_type: t.DataType) -> bytes:
    match value:
        case str():
            return value.encode()
        case bytes():
            return value
        case float():
            # Adding zero makes the negative zero positive.
            return struct.pack("<d", value + 0.0)
        case int() if isinstance(data_type, t.DecimalType):
            bits = (value if value >= 0 else ~value).bit_length() + 1
            return value.to_bytes((bits + 7) // 8, "big", signed=True)
        case int():
            return _long(_in_microseconds(value, data_type), data_type)


def _in_microseconds(value: int, data_type: t.DataType) -> int:
    match data_type:
        case t.TimeType() | t.TimestampType() | t.LocalZonedTimestampType():
            return value // 1000 if unit_digits(data_type) == _NANOSECONDS_DIGITS else value
        case _:
            return value


def _long(number: int, data_type: t.DataType) -> bytes:
    try:
        return struct.pack("<q", number)
    except struct.error as error:
        raise InvalidInputError(
            f"{format_type(data_type)} value {excerpt(number)} has more than 64 bits"
        ) from error
