"""Single values as the bytes that Iceberg writes bounds in.

Source: the Iceberg specification, appendix D. Values have the form that `transform_value`
describes.
"""

from __future__ import annotations

import struct

from ledger.model import types as t
from ledger.model.transform_value import Value

_INTEGERS = (t.TinyIntType, t.SmallIntType, t.IntType)


def single_value_bytes(  # noqa: PLR0911 - one case a kind
    value: Value, data_type: t.DataType
) -> bytes:
    """Return a value as Iceberg writes bounds.

    >>> single_value_bytes(34, t.BigIntType()).hex()
    '2200000000000000'
    """
    match data_type:
        case t.BooleanType():
            return bytes([int(value)])
        case t.FloatType():
            return struct.pack("<f", value)
        case t.DoubleType():
            return struct.pack("<d", value)
        case t.DecimalType():
            return least_bytes(int(value))
        case t.DateType():
            return int(value).to_bytes(4, "little", signed=True)
        case _ if isinstance(value, str):
            return value.encode()
        case _ if isinstance(value, bytes):
            return value
        case _:
            width = 4 if isinstance(data_type, _INTEGERS) else 8
            return int(value).to_bytes(width, "little", signed=True)


def least_bytes(number: int) -> bytes:
    """Return a whole number as decimals are written: big-endian, in as few bytes as hold it.

    >>> least_bytes(-129).hex()
    'ff7f'
    """
    bits = (number if number >= 0 else ~number).bit_length() + 1
    return number.to_bytes((bits + 7) // 8, "big", signed=True)
