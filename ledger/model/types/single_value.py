"""Single values in the JSON that Iceberg keeps defaults in, and as the bytes of its bounds.

Source: the Iceberg specification, appendix D. Values have the form that `transforms.values`
describes; in JSON a ROW is a dict by field id, an ARRAY a list, a MAP a list of pairs.
"""

from __future__ import annotations

import struct
from typing import Any

from ledger.model import types as t
from ledger.model.errors import InvalidInputError, UnsupportedError
from ledger.model.messages.excerpt import excerpt
from ledger.model.transforms.calendar import moment_text, time_text
from ledger.model.transforms.values import (
    WHOLE_BITS,
    Value,
    encode_value,
    is_comparable,
    parse_text,
    unit_digits,
)
from ledger.model.types.text import format_type

_UTC = "+00:00"


def value_to_json(value: Any, data_type: t.DataType) -> Any:
    """Return a value as Iceberg's JSON has it.

    Raises:
        UnsupportedError: Iceberg's JSON has no value of that type.

    Example:
        >>> value_to_json(1_510_871_468_000_000, t.LocalZonedTimestampType(6))
        '2017-11-16T22:31:08.000000+00:00'
    """
    if value is None:
        return None
    match data_type:
        case t.RowType(fields=fields):
            present = (each for each in fields if each.id in value)
            return {str(each.id): value_to_json(value[each.id], each.type) for each in present}
        case t.ArrayType(element=element):
            return [value_to_json(each, element) for each in value]
        case t.MapType():
            return {
                "keys": [value_to_json(key, data_type.key) for key, _ in value],
                "values": [value_to_json(each, data_type.value) for _, each in value],
            }
        case _ if is_comparable(data_type):
            return _primitive_to_json(value, data_type)
        case _:
            raise UnsupportedError(f"Iceberg's JSON has no value of {format_type(data_type)}")


def _primitive_to_json(value: Any, data_type: t.DataType) -> Any:
    match data_type:
        case t.FloatType() | t.DoubleType():
            return value
        case t.TimeType():
            return time_text(value, unit_digits(data_type))
        case t.TimestampType() | t.LocalZonedTimestampType():
            offset = _UTC if isinstance(data_type, t.LocalZonedTimestampType) else ""
            return moment_text(value, unit_digits(data_type)) + offset
        case t.BinaryType() | t.VarBinaryType():
            return value.hex().upper()
        case _:
            return encode_value(value, data_type)


def value_from_json(json: Any, data_type: t.DataType) -> Any:
    """Return the value that Iceberg's JSON has.

    Raises:
        InvalidInputError: The JSON is no value of the type.

    Example:
        >>> value_from_json("14.20", t.DecimalType(9, 2))
        1420
    """
    if json is None:
        return None
    match data_type, json:
        case t.RowType(fields=fields), dict():
            present = (each for each in fields if str(each.id) in json)
            return {each.id: value_from_json(json[str(each.id)], each.type) for each in present}
        case t.ArrayType(element=element), list():
            return [value_from_json(each, element) for each in json]
        case t.MapType(), {"keys": list(keys), "values": list(values)} if len(keys) == len(values):
            return [
                (value_from_json(key, data_type.key), value_from_json(value, data_type.value))
                for key, value in zip(keys, values, strict=True)
            ]
    try:
        return _primitive_from_json(json, data_type)
    except (ValueError, OverflowError) as error:
        raise InvalidInputError(
            f"{excerpt(json)} is no value of {format_type(data_type)} in Iceberg's JSON"
        ) from error


def _primitive_from_json(json: Any, data_type: t.DataType) -> Any:
    if isinstance(data_type, t.BooleanType | t.FloatType | t.DoubleType):
        wanted: type = bool if isinstance(data_type, t.BooleanType) else float
        if isinstance(json, wanted):
            return json
    elif data_type.root in WHOLE_BITS:
        # Iceberg's least whole number has 32 bits.
        limit = 1 << max(WHOLE_BITS[data_type.root], 32) - 1
        if isinstance(json, int) and not isinstance(json, bool) and -limit <= json < limit:
            return json
    elif isinstance(json, str) and _is_complete(json, data_type):
        return parse_text(json, data_type)
    raise ValueError(json)


def _is_complete(text: str, data_type: t.DataType) -> bool:
    match data_type:
        case t.BinaryType(length=length):
            return len(text) == 2 * length
        case t.DecimalType(scale=scale):
            return len(text.partition(".")[2]) == scale
        case t.LocalZonedTimestampType():
            return text.endswith(_UTC)
        case _:
            return True


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
