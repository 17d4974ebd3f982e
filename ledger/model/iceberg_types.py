"""Iceberg's form of data types, column defaults and single values.

Values have the form that `ledger.model.single_values` describes; a ROW is a dict by field id, an
ARRAY a list, a MAP a list of pairs. BINARY(n) is `binary`, not `fixed[n]`: files hold it as bytes
of any length.

Source: the Iceberg table specification, "Primitive Types" and appendix D (single-value
serialization); Paimon's own Iceberg files, so that readers of both agree, and its casts of text.
"""

from __future__ import annotations

import math
import re
import struct
from typing import Any

import ledger.model.types as t
from ledger.model.errors import InvalidInputError, UnsupportedError
from ledger.model.messages import excerpt
from ledger.model.single_values import (
    WHOLE_BITS,
    Value,
    encode_value,
    is_comparable,
    parse_text,
    round_to_float32,
    time_text,
    timestamp_text,
    unit_digits,
)
from ledger.model.types.text import bare_type_text, format_type

_UTC = "+00:00"


def value_to_json(value: Any, data_type: t.DataType) -> Any:
    """Return a value in Iceberg's JSON single-value form.

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
            return timestamp_text(value, unit_digits(data_type)) + offset
        case t.BinaryType() | t.VarBinaryType():
            return value.hex().upper()
        case _:
            return encode_value(value, data_type)


def value_from_json(json: Any, data_type: t.DataType) -> Any:
    """Return the value of Iceberg's JSON single-value form; the inverse of `value_to_json`.

    Raises:
        InvalidInputError: The JSON is not a value of the type.

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
        # Iceberg's smallest integer type has 32 bits.
        limit = 1 << max(WHOLE_BITS[data_type.root], 32) - 1
        if isinstance(json, int) and not isinstance(json, bool) and -limit <= json < limit:
            return json
    elif isinstance(json, str) and _is_full_length_text(json, data_type):
        return parse_text(json, data_type)
    raise ValueError(json)


def _is_full_length_text(text: str, data_type: t.DataType) -> bool:
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
    """Return a value in Iceberg's binary single-value form, as bounds have it.

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
            return minimal_integer_bytes(int(value))
        case t.DateType():
            return int(value).to_bytes(4, "little", signed=True)
        case _ if isinstance(value, str):
            return value.encode()
        case _ if isinstance(value, bytes):
            return value
        case _:
            width = 4 if isinstance(data_type, _INTEGERS) else 8
            return int(value).to_bytes(width, "little", signed=True)


def minimal_integer_bytes(number: int) -> bytes:
    """Return an integer in two's complement, big-endian, in the fewest bytes that hold it.

    >>> minimal_integer_bytes(-129).hex()
    'ff7f'
    """
    bits = (number if number >= 0 else ~number).bit_length() + 1
    return number.to_bytes((bits + 7) // 8, "big", signed=True)


FIRST_VERSION_OF_NEW_TYPES = 3
_MICROSECONDS = 6

_NAMES = {
    "BOOLEAN": "boolean",
    "TINYINT": "int",
    "SMALLINT": "int",
    "INT": "int",
    "BIGINT": "long",
    "FLOAT": "float",
    "DOUBLE": "double",
    "DATE": "date",
    "TIME": "time",
    "CHAR": "string",
    "VARCHAR": "string",
    "BINARY": "binary",
    "VARBINARY": "binary",
    "UUID": "uuid",
    "UNKNOWN": "unknown",
    "VARIANT": "variant",
}

_NEW = frozenset({"UNKNOWN", "VARIANT", "GEOMETRY", "GEOGRAPHY"})


def iceberg_type(data_type: t.DataType, *, format_version: int) -> str:
    """Return a primitive type as Iceberg's metadata names it; nullability does not count.

    Args:
        data_type: A primitive type, not an ARRAY, MAP or ROW.
        format_version: The table's Iceberg format version: 1, 2 or 3.

    Raises:
        UnsupportedError: Iceberg has no such type, or only a later format version has it.

    Example:
        >>> iceberg_type(t.SmallIntType(), format_version=2)
        'int'
        >>> iceberg_type(t.TimestampType(9), format_version=3)
        'timestamp_ns'
    """
    _check_iceberg_type(data_type)
    if _needs_format_version_3(data_type) and format_version < FIRST_VERSION_OF_NEW_TYPES:
        raise UnsupportedError(
            f"{_type_text(data_type)} needs Iceberg format version {FIRST_VERSION_OF_NEW_TYPES}; "
            f"the table's is {format_version}"
        )
    match data_type:
        case t.DecimalType(precision=precision, scale=scale):
            return f"decimal({precision}, {scale})"
        case t.TimestampType(precision=precision):
            return "timestamp" + _nanos_suffix(precision)
        case t.LocalZonedTimestampType(precision=precision):
            return "timestamptz" + _nanos_suffix(precision)
        case t.GeometryType(crs=crs):
            return f"geometry({crs})"
        case t.GeographyType(crs=crs, algorithm=algorithm):
            return f"geography({crs}, {algorithm})"
        case _:
            return _NAMES[data_type.root]


def _check_iceberg_type(data_type: t.DataType) -> None:
    match data_type:
        case t.MultisetType() | t.VectorType() | t.BlobType():
            raise UnsupportedError(f"Iceberg has no {data_type.root}")
        case t.TimeType(precision=precision) if precision > _MICROSECONDS:
            raise UnsupportedError(
                f"Iceberg's time has microseconds, so it cannot hold {_type_text(data_type)}"
            )
        case t.GeographyType(crs=crs) if "," in crs:
            raise UnsupportedError(f"Iceberg cannot write a geography's CRS with a comma: {crs}")
        case t.ArrayType() | t.MapType() | t.RowType():
            raise UnsupportedError(f"{data_type.root} is no primitive type of Iceberg")


def _needs_format_version_3(data_type: t.DataType) -> bool:
    match data_type:
        case t.TimestampType(precision=precision) | t.LocalZonedTimestampType(precision=precision):
            return precision > _MICROSECONDS
        case _:
            return data_type.root in _NEW


def _nanos_suffix(precision: int) -> str:
    return "_ns" if precision > _MICROSECONDS else ""


def _type_text(data_type: t.DataType) -> str:
    return bare_type_text(data_type)


_TRUE = {"t", "true", "y", "yes", "1"}
_FALSE = {"f", "false", "n", "no", "0"}
_NUMBER = re.compile(r"-?[0-9]+")
_MILLISECONDS = 3
_FRACTION = re.compile(r"\.[0-9]*")


def default_json(text: str, data_type: t.DataType, column: str) -> Any:
    """Return a column default in Iceberg's JSON; single quotes around the whole text do not count.

    As in Paimon, a number for a DATE is days and for a TIMESTAMP milliseconds since 1970.

    Args:
        text: The default, as the ledger stores it.
        data_type: The column's type.
        column: The column's name, for messages.

    Raises:
        UnsupportedError: Iceberg has no such default.

    Example:
        >>> default_json("'2024-02-29'", t.DateType(), "day"), default_json("7", t.IntType(), "n")
        ('2024-02-29', 7)
    """
    quoted = len(text) > 1 and text.startswith("'") and text.endswith("'")
    try:
        return value_to_json(
            _parse_default_text(text[1:-1] if quoted else text, data_type), data_type
        )
    except (ValueError, OverflowError, UnsupportedError) as error:
        raise UnsupportedError(
            f"the default {text!r:.80} of {column} is no {format_type(data_type)} that Iceberg "
            "has: set a literal default, or remove it"
        ) from error


def _parse_default_text(text: str, data_type: t.DataType) -> Any:  # noqa: PLR0911 - one case a kind
    match data_type:
        case t.BooleanType():
            return _parse_boolean(text.lower())
        case t.FloatType() | t.DoubleType():
            number = float(text.rstrip("fFdD"))
            if not math.isfinite(number):
                raise ValueError(text)
            return round_to_float32(number) if isinstance(data_type, t.FloatType) else number
        case t.BinaryType() | t.VarBinaryType():
            return text.encode()
        case t.DateType() if _NUMBER.fullmatch(text):
            return int(text)
        case t.TimestampType() if _NUMBER.fullmatch(text):
            return int(text) * 10 ** (unit_digits(data_type) - _MILLISECONDS)
        case t.TimestampType() | t.LocalZonedTimestampType():
            day, _, clock = text.partition(" ")
            return parse_text(f"{day}T{clock or '00:00:00'}" if "T" not in day else day, data_type)
        case _ if data_type.root in WHOLE_BITS:
            return int(_FRACTION.sub("", text))
        case _:
            return parse_text(text, data_type)


def _parse_boolean(text: str) -> bool:
    if text not in _TRUE | _FALSE:
        raise ValueError(text)
    return text in _TRUE
