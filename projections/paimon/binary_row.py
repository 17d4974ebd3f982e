"""The one place that knows the bytes of Paimon's BinaryRow: partitions, keys, least and greatest.

Source: Paimon's BinaryRow, BinaryRowWriter, SerializationUtils and MurmurHashUtils.

Values are Python's own: bool, int, float, str, bytes, Decimal, date, time. A moment is a datetime
without a zone (a TIMESTAMP_LTZ's is UTC), but above microseconds, which a datetime cannot tell
apart, an int: nanoseconds since 1970. A TIME keeps milliseconds, whatever its precision.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

from ledger.model import types as t
from ledger.model.errors import InvalidInputError
from projections.paimon.buckets import bucket_of
from projections.paimon.row_slots import RowReader, RowWriter
from projections.paimon.row_types import read_value, write_value

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
