"""Which Iceberg type a column's type is, and its default, kept as text, as single-value JSON.

Source: the Iceberg table specification, "Primitive Types" and appendix D, Paimon's own Iceberg
files, so that readers of both agree, and Paimon's casts of text. BINARY(n) is `binary`, not
`fixed[n]`: files hold it as bytes of any length.
"""

from __future__ import annotations

import math
import re
from typing import Any

from ledger.model import types as t
from ledger.model.errors import UnsupportedError
from ledger.model.transforms.values import (
    WHOLE_BITS,
    parse_text,
    single_precision,
    unit_digits,
)
from ledger.model.types.single_value import value_to_json
from ledger.model.types.text import bare_text, format_type

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
        data_type: No ARRAY, MAP or ROW: those are made of others.
        format_version: The table's Iceberg format version: 1, 2 or 3.

    Raises:
        UnsupportedError: Iceberg has no such type, or only a later version has.

    Example:
        >>> iceberg_type(t.SmallIntType(), format_version=2)
        'int'
        >>> iceberg_type(t.TimestampType(9), format_version=3)
        'timestamp_ns'
    """
    _refuse_lacking(data_type)
    if _is_new(data_type) and format_version < FIRST_VERSION_OF_NEW_TYPES:
        raise UnsupportedError(
            f"{_shown(data_type)} needs Iceberg format version {FIRST_VERSION_OF_NEW_TYPES}; "
            f"the table's is {format_version}"
        )
    match data_type:
        case t.DecimalType(precision=precision, scale=scale):
            return f"decimal({precision}, {scale})"
        case t.TimestampType(precision=precision):
            return "timestamp" + _unit(precision)
        case t.LocalZonedTimestampType(precision=precision):
            return "timestamptz" + _unit(precision)
        case t.GeometryType(crs=crs):
            return f"geometry({crs})"
        case t.GeographyType(crs=crs, algorithm=algorithm):
            return f"geography({crs}, {algorithm})"
        case _:
            return _NAMES[data_type.root]


def _refuse_lacking(data_type: t.DataType) -> None:
    match data_type:
        case t.MultisetType() | t.VectorType() | t.BlobType():
            raise UnsupportedError(f"Iceberg has no {data_type.root}")
        case t.TimeType(precision=precision) if precision > _MICROSECONDS:
            raise UnsupportedError(
                f"Iceberg's time has microseconds, so it cannot hold {_shown(data_type)}"
            )
        case t.GeographyType(crs=crs) if "," in crs:
            raise UnsupportedError(f"Iceberg cannot write a geography's CRS with a comma: {crs}")
        case t.ArrayType() | t.MapType() | t.RowType():
            raise UnsupportedError(f"{data_type.root} is no primitive type of Iceberg")


def _is_new(data_type: t.DataType) -> bool:
    match data_type:
        case t.TimestampType(precision=precision) | t.LocalZonedTimestampType(precision=precision):
            return precision > _MICROSECONDS
        case _:
            return data_type.root in _NEW


def _unit(precision: int) -> str:
    return "_ns" if precision > _MICROSECONDS else ""


def _shown(data_type: t.DataType) -> str:
    return bare_text(data_type)


_TRUE = {"t", "true", "y", "yes", "1"}
_FALSE = {"f", "false", "n", "no", "0"}
_NUMBER = re.compile(r"-?[0-9]+")
_MILLISECONDS = 3
_FRACTION = re.compile(r"\.[0-9]*")


def default_json(text: str, data_type: t.DataType, column: str) -> Any:
    """Return a default; single quotes around the whole text do not count.

    As in Paimon, a number for a DATE is days and for a TIMESTAMP milliseconds since 1970.

    Args:
        text: As the ledger keeps it.
        data_type: The column's.
        column: Its name, for messages.

    Raises:
        UnsupportedError: Iceberg has no such default.

    Example:
        >>> default_json("'2024-02-29'", t.DateType(), "day"), default_json("7", t.IntType(), "n")
        ('2024-02-29', 7)
    """
    quoted = len(text) > 1 and text.startswith("'") and text.endswith("'")
    try:
        return value_to_json(_value(text[1:-1] if quoted else text, data_type), data_type)
    except (ValueError, OverflowError, UnsupportedError) as error:
        raise UnsupportedError(
            f"the default {text!r:.80} of {column} is no {format_type(data_type)} that Iceberg "
            "has: set one that is written out, or take it away"
        ) from error


def _value(text: str, data_type: t.DataType) -> Any:  # noqa: PLR0911 - one case a kind
    match data_type:
        case t.BooleanType():
            return _truth(text.lower())
        case t.FloatType() | t.DoubleType():
            number = float(text.rstrip("fFdD"))
            if not math.isfinite(number):
                raise ValueError(text)
            return single_precision(number) if isinstance(data_type, t.FloatType) else number
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


def _truth(text: str) -> bool:
    if text not in _TRUE | _FALSE:
        raise ValueError(text)
    return text in _TRUE
