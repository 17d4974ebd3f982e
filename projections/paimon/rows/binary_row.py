"""The one place that knows the bytes of Paimon's BinaryRow: partitions, keys, least and greatest.

Source: Paimon's BinaryRow, BinaryRowWriter, SerializationUtils and MurmurHashUtils.

Values are Python's own: bool, int, float, str, bytes, Decimal, date, time. A moment is a datetime
without a zone (a TIMESTAMP_LTZ's is UTC), but above microseconds, which a datetime cannot tell
apart, an int: nanoseconds since 1970. A TIME keeps milliseconds, whatever its precision.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from typing import Any

from ledger.model import types as t
from ledger.model.errors import InvalidInputError
from projections.paimon.rows.types import RowReader, RowWriter, read_value, write_value

__all__ = ["EMPTY_ROW", "bucket_of", "decode_row", "encode_row"]

_COUNT = struct.Struct(">i")
_MISFITS = (struct.error, OverflowError, TypeError, ValueError, AttributeError, ArithmeticError)


def encode_row(values: Sequence[Any], types: Sequence[t.DataType]) -> bytes:
    """Return a row in serialised form: its field count, big-endian, then the row itself.

    Args:
        values: One for each type, None for NULL; see the module's docstring.
        types: Nullability has no meaning here.

    Raises:
        InvalidInputError: A value does not fit its type, or their numbers differ.

    Example:
        >>> encode_row([7], [t.IntType()]).hex()
        '0000000100000000000000000700000000000000'
    """
    if len(values) != len(types):
        raise InvalidInputError(
            f"a row of {len(values)} values does not fit {len(types)} types: give one for each"
        )
    writer = RowWriter(len(types))
    for index, (value, data_type) in enumerate(zip(values, types, strict=True)):
        try:
            write_value(writer, index, value, data_type)
        except _MISFITS as error:
            raise InvalidInputError(
                f"field {index} of a row: {value!r} is no {data_type.root} that Paimon's rows can "
                "hold; give a value of that type"
            ) from error
    return _COUNT.pack(len(types)) + writer.body()


def decode_row(body: bytes, types: Sequence[t.DataType]) -> tuple[Any, ...]:
    """Return the values of a serialised row; the reverse of `encode_row`.

    Raises:
        InvalidInputError: The bytes are no row of these types. Nothing is read outside of them.

    Example:
        >>> decode_row(encode_row(["a", None], [t.STRING, t.IntType()]), [t.STRING, t.IntType()])
        ('a', None)
    """
    if len(body) < _COUNT.size or _COUNT.unpack_from(body)[0] != len(types):
        raise InvalidInputError(
            f"{len(body)} bytes {body[: _COUNT.size].hex()}... are no row of {len(types)} fields: "
            "the count before the row differs; look for the schema that it was written with"
        )
    reader = RowReader(body[_COUNT.size :], len(types))
    values: list[Any] = []
    for index, data_type in enumerate(types):
        try:
            values.append(read_value(reader, index, data_type))
        except _MISFITS as error:
            raise InvalidInputError(
                f"field {index} of a row of {len(body)} bytes is no {data_type.root}: {error}; "
                "the row is damaged or was written with another schema"
            ) from error
    return tuple(values)


EMPTY_ROW = _COUNT.pack(0) + bytes(8)
"""The row without fields: the partition of an unpartitioned table, the key of an append table."""


_COUNT_BYTES = 4
_SEED = 42
_BITS = 0xFFFFFFFF
_SIGN = 0x80000000


def bucket_of(row: bytes, buckets: int) -> int:
    """Return the bucket of a row of bucket keys.

    Args:
        row: In serialised form, as `encode_row` gives it.
        buckets: How many the table has.

    Example:
        >>> from ledger.model.types import IntType
        >>> from projections.paimon.rows.binary_row import encode_row
        >>> bucket_of(encode_row([7], [IntType()]), 4)
        3
    """
    return abs(int(math.fmod(row_hash(row), buckets)))


def row_hash(row: bytes) -> int:
    """Return the 32-bit murmur hash of a serialised row, signed as Java's int is."""
    body = row[_COUNT_BYTES:]
    mixed = _SEED
    for (word,) in struct.iter_unpack("<I", body[: len(body) // 4 * 4]):
        mixed = (_rotated(mixed ^ _scrambled(word), 13) * 5 + 0xE6546B64) & _BITS
    mixed ^= len(body)
    mixed = (mixed ^ mixed >> 16) * 0x85EBCA6B & _BITS
    mixed = (mixed ^ mixed >> 13) * 0xC2B2AE35 & _BITS
    mixed ^= mixed >> 16
    return mixed - 2 * (mixed & _SIGN)


def _scrambled(word: int) -> int:
    return _rotated(word * 0xCC9E2D51 & _BITS, 15) * 0x1B873593 & _BITS


def _rotated(word: int, by: int) -> int:
    return (word << by | word >> 32 - by) & _BITS
