"""Iceberg's bounds to the values of Paimon's rows and back.

Bounds are hex of Iceberg's single-value bytes (the Iceberg specification, appendix D); natives are
those of `binary_row`.
"""

from __future__ import annotations

import datetime as dt
import struct
from collections.abc import Callable
from typing import Any

from ledger.model import types as t
from ledger.model.errors import InvalidInputError, UnsupportedError
from projections.paimon.rows.types import (
    MICROS_PRECISION,
    Moment,
    big_endian,
    decimal_of,
    moment_of,
    nanos_of,
    unscaled,
)

_MISFITS = (
    struct.error,
    AttributeError,
    ArithmeticError,
    IndexError,
    OverflowError,
    TypeError,
    ValueError,
)
_EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - as the moments of rows
_EPOCH_DAY = _EPOCH.toordinal()
_MICROSECOND = dt.timedelta(microseconds=1)

# A column that was widened keeps the bounds of files written before: the narrow form reads, too.
_LAYOUTS: dict[type[t.DataType], tuple[str, ...]] = {
    t.TinyIntType: ("<i",),
    t.SmallIntType: ("<i",),
    t.IntType: ("<i",),
    t.BigIntType: ("<q", "<i"),
    t.FloatType: ("<f",),
    t.DoubleType: ("<d", "<f"),
    t.DateType: ("<i",),
    t.TimeType: ("<q",),
    t.TimestampType: ("<q",),
    t.LocalZonedTimestampType: ("<q",),
}


def from_bound(text: str, data_type: t.DataType) -> Any:
    """Return a bound as the value that a row holds.

    Args:
        text: Hex of Iceberg's single-value bytes.
        data_type: The column's type.

    Raises:
        InvalidInputError: The bytes are no value of the type.
        UnsupportedError: The type has no bounds.

    Example:
        >>> from_bound("01000000", t.IntType()), from_bound("04d2", t.DecimalType(6, 2))
        (1, Decimal('12.34'))
    """
    read = _forms(data_type)[0]
    try:
        return read(bytes.fromhex(text), data_type)
    except _MISFITS as error:
        raise InvalidInputError(
            f"bound {text[:64]} is no {data_type.root} in Iceberg's single-value form: {error}; "
            "write the file's bounds again"
        ) from error


def to_bound(value: Any, data_type: t.DataType) -> str:
    """Return a row's value as a bound; the reverse of `from_bound`.

    Raises:
        InvalidInputError: The value is none of the type.
        UnsupportedError: The type has no bounds.

    Example:
        >>> to_bound(1, t.IntType())
        '01000000'
    """
    write = _forms(data_type)[1]
    try:
        return write(value, data_type).hex()
    except _MISFITS as error:
        raise InvalidInputError(f"{value!r} of a row is no {data_type.root}") from error


def _number(body: bytes, data_type: t.DataType) -> Any:
    for layout in _LAYOUTS[type(data_type)]:
        if len(body) == struct.calcsize(layout):
            return struct.unpack(layout, body)[0]
    raise ValueError(f"{len(body)} bytes")


def _packed(value: Any, data_type: t.DataType) -> bytes:
    return struct.pack(_LAYOUTS[type(data_type)][0], value)


def _read_truth(body: bytes, _: Any) -> bool:
    (byte,) = body
    return byte != 0


def _read_decimal(body: bytes, data_type: t.DecimalType) -> Any:
    if not body:
        raise ValueError("no bytes")
    return decimal_of(int.from_bytes(body, "big", signed=True), data_type)


def _write_decimal(value: Any, data_type: t.DecimalType) -> bytes:
    return big_endian(unscaled(value, data_type))


def _read_day(body: bytes, data_type: t.DataType) -> dt.date:
    return dt.date.fromordinal(_number(body, data_type) + _EPOCH_DAY)


def _write_day(value: Any, data_type: t.DataType) -> bytes:
    return _packed(value.toordinal() - _EPOCH_DAY, data_type)


def _read_time(body: bytes, data_type: t.DataType) -> dt.time:
    moment: dt.datetime = _EPOCH + _number(body, data_type) * _MICROSECOND
    if moment.date() != _EPOCH.date():
        raise ValueError("no time of day")
    return moment.time()


def _write_time(value: Any, data_type: t.DataType) -> bytes:
    return _packed((dt.datetime.combine(_EPOCH, value) - _EPOCH) // _MICROSECOND, data_type)


def _unit(data_type: Moment) -> int:
    """Return how many nanoseconds the unit of a moment's bounds has."""
    return 1 if data_type.precision > MICROS_PRECISION else 1000


def _read_moment(body: bytes, data_type: Moment) -> dt.datetime | int:
    return moment_of(_number(body, data_type) * _unit(data_type), data_type)


def _write_moment(value: Any, data_type: Moment) -> bytes:
    return _packed(nanos_of(value) // _unit(data_type), data_type)


def _forms(data_type: t.DataType) -> tuple[_Read, _Write]:
    forms = _FORMS.get(type(data_type))
    if forms is None:
        raise UnsupportedError(f"{data_type.root} has no bounds: leave the column out")
    return forms


_Read = Callable[[bytes, Any], Any]
_Write = Callable[[Any, Any], bytes]
_TEXT: tuple[_Read, _Write] = (lambda body, _: body.decode(), lambda value, _: value.encode())
_BYTES: tuple[_Read, _Write] = (lambda body, _: body, lambda value, _: bytes(value))
_FORMS: dict[type[t.DataType], tuple[_Read, _Write]] = {
    **dict.fromkeys(_LAYOUTS, (_number, _packed)),
    t.BooleanType: (_read_truth, lambda value, _: bytes([value])),
    t.CharType: _TEXT,
    t.VarCharType: _TEXT,
    t.BinaryType: _BYTES,
    t.VarBinaryType: _BYTES,
    t.DecimalType: (_read_decimal, _write_decimal),
    t.DateType: (_read_day, _write_day),
    t.TimeType: (_read_time, _write_time),
    t.TimestampType: (_read_moment, _write_moment),
    t.LocalZonedTimestampType: (_read_moment, _write_moment),
}
