"""Facts from Parquet footers, and column bounds as Iceberg's single-value bytes.

Source: the Iceberg specification, appendix D. Text is cut to 16 characters and bytes to 16, as
Iceberg does by default; an upper bound that was cut is rounded up, so that it stays above every
value.
"""

from __future__ import annotations

import struct

from attrs import field, frozen

from ledger.model import types as t
from ledger.model.types import DataType

Extreme = bool | int | float | bytes
"""A minimum or maximum: text as UTF-8, timestamps as counts of the column's unit, decimals as
unscaled integers."""


@frozen
class ColumnFacts:
    """Statistics of one column, combined from its column chunks.

    Attributes:
        value_count: Number of values, nulls included.
        null_count: Number of nulls; None if a chunk does not record it.
        lower: Lower bound of the values; None if unknown.
        upper: Upper bound of the values; None if unknown.
    """

    value_count: int
    null_count: int | None = None
    lower: Extreme | None = None
    upper: Extreme | None = None


@frozen
class FooterColumn:
    """One column of a file, or one member of a nested one; equal to another of the same shape.

    Attributes:
        name: Its name in the file.
        field_id: The id that the file carries for it; None when it carries none.
        type: The type of its values, with the file's unit and scale; None when the ledger has no
            such type. Nullability and member ids in it have no meaning.
        type_text: The type as Arrow prints it, for messages.
        members: A ROW's members; an ARRAY's element; a MAP's key and value.
        facts: The column's statistics; None for nested columns and below lists, where one row has
            many values.
    """

    name: str
    field_id: int | None
    type: DataType | None
    type_text: str
    members: tuple[FooterColumn, ...] = ()
    facts: ColumnFacts | None = field(default=None, eq=False)


@frozen
class Footer:
    """Contents of a Parquet file's footer, with the file's size and time.

    Attributes:
        path: The path that was passed to the file system.
        record_count: Number of rows.
        file_size_in_bytes: Size of the whole file.
        creation_time: Time of the last write, Unix milliseconds; 0 if the file system has none.
        columns: The columns, in the file's order.
    """

    path: str
    record_count: int
    file_size_in_bytes: int
    creation_time: int
    columns: tuple[FooterColumn, ...]


TRUNCATE_LENGTH = 16

_LAST_CODE_POINT = 0x10FFFF
_FIRST_SURROGATE, _LAST_SURROGATE = 0xD800, 0xDFFF
_LAST_BYTE = 0xFF
_MICROSECONDS, _NANOSECONDS = 6, 9


def lower_bound(
    facts: ColumnFacts,
    found: t.DataType,
    wanted: t.DataType,
    length: int | None = TRUNCATE_LENGTH,
) -> str | None:
    """Return a column's lower bound in hex; None if there is no safe one.

    Args:
        facts: The column's statistics in the file.
        found: The file's type, which gives the unit.
        wanted: The column's type in the schema that the file matches.
        length: Maximum length in characters, or in bytes; None for the whole value.

    Example:
        >>> lower_bound(ColumnFacts(2, 0, 1, 7), t.IntType(), t.BigIntType())
        '0100000000000000'
    """
    return _bound_hex(facts.lower, (found, wanted), length, upper=False)


def upper_bound(
    facts: ColumnFacts,
    found: t.DataType,
    wanted: t.DataType,
    length: int | None = TRUNCATE_LENGTH,
) -> str | None:
    """Return a column's upper bound in hex; arguments as in `lower_bound`.

    Example:
        >>> bytes.fromhex(upper_bound(ColumnFacts(1, 0, b"", b"x" * 20), t.STRING, t.STRING))
        b'xxxxxxxxxxxxxxxy'
    """
    return _bound_hex(facts.upper, (found, wanted), length, upper=True)


def _bound_hex(
    value: Extreme | None,
    types: tuple[t.DataType, t.DataType],
    length: int | None,
    *,
    upper: bool,
) -> str | None:
    found, wanted = types
    if value is None:
        return None
    if isinstance(value, bytes):
        encoded = _truncated_bound_bytes(value, wanted, length, upper=upper)
    elif isinstance(value, float):
        encoded = _float_bound_bytes(value, wanted, upper=upper)
    else:
        encoded = _integer_bound_bytes(
            convert_time_unit(int(value), found, wanted, upper=upper), wanted
        )
    return None if encoded is None else encoded.hex()


def _integer_bound_bytes(value: int, wanted: t.DataType) -> bytes | None:
    match wanted:
        case t.BooleanType():
            return bytes([value])
        case t.TinyIntType() | t.SmallIntType() | t.IntType() | t.DateType():
            return _fixed_width_bytes(value, 4)
        case t.BigIntType() | t.TimeType() | t.TimestampType() | t.LocalZonedTimestampType():
            return _fixed_width_bytes(value, 8)
        case t.DecimalType():
            # One bit more than the magnitude, for the sign; -128 still fits one byte.
            bits = (value if value >= 0 else ~value).bit_length() + 1
            return value.to_bytes((bits + 7) // 8, "big", signed=True)
        case _:
            return None


def _fixed_width_bytes(value: int, width: int) -> bytes | None:
    try:
        return value.to_bytes(width, "little", signed=True)
    except OverflowError:
        # Nanoseconds cover a shorter range of time than coarser units.
        return None


def convert_time_unit(value: int, found: t.DataType, wanted: t.DataType, *, upper: bool) -> int:
    """Convert a bound from the file's time unit to Iceberg's, rounded outwards; numbers unchanged.

    Args:
        value: The bound in the file's unit.
        found: The file's type.
        wanted: The column's type.
        upper: True to round an upper bound up, False to round a lower bound down.
    """
    digits = _MICROSECONDS
    match found, wanted:
        case (
            t.TimestampType(precision=kept),
            t.TimestampType(precision=precision),
        ) | (
            t.LocalZonedTimestampType(precision=kept),
            t.LocalZonedTimestampType(precision=precision),
        ):
            digits = _NANOSECONDS if precision > _MICROSECONDS else _MICROSECONDS
        case t.TimeType(precision=kept), t.TimeType():
            pass
        case _:
            return value
    shift = digits - kept
    if shift >= 0:
        return value * int(10**shift)
    step = int(10**-shift)
    return -(-value // step) if upper else value // step


def _float_bound_bytes(value: float, wanted: t.DataType, *, upper: bool) -> bytes | None:
    # Parquet's statistics do not distinguish 0.0 and -0.0.
    number = value or (0.0 if upper else -0.0)
    match wanted:
        case t.FloatType():
            return struct.pack("<f", number)
        case t.DoubleType():
            return struct.pack("<d", number)
        case _:
            return None


def _truncated_bound_bytes(
    value: bytes, wanted: t.DataType, length: int | None, *, upper: bool
) -> bytes | None:
    # Nothing to cut.
    most = len(value) if length is None else length
    match wanted:
        case t.CharType() | t.VarCharType():
            return _truncate_text_bound(value, most, upper=upper)
        case t.BinaryType() | t.VarBinaryType():
            return _truncate_bytes_bound(value, most, upper=upper)
        case t.UuidType():
            return value
        case _:
            return None


def _truncate_text_bound(value: bytes, length: int, *, upper: bool) -> bytes | None:
    try:
        text = value.decode()
    except UnicodeDecodeError:
        # The writer cut the statistics within a character.
        return None
    if len(text) <= length:
        return value
    cut = text[:length]
    if not upper:
        return cut.encode()
    while cut:
        following = ord(cut[-1]) + 1
        if following <= _LAST_CODE_POINT:
            skipped = _FIRST_SURROGATE <= following <= _LAST_SURROGATE
            return (cut[:-1] + chr(_LAST_SURROGATE + 1 if skipped else following)).encode()
        cut = cut[:-1]
    return None


def _truncate_bytes_bound(value: bytes, length: int, *, upper: bool) -> bytes | None:
    if len(value) <= length:
        return value
    cut = value[:length]
    if not upper:
        return cut
    cut = cut.rstrip(bytes([_LAST_BYTE]))
    return cut[:-1] + bytes([cut[-1] + 1]) if cut else None
