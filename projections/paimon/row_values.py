"""Conversion of partition values and bounds to values of BinaryRow and back.

Natives are those of `binary_row`; scalars are `PartitionValue`s.

Bounds are hex of Iceberg's single-value bytes (the Iceberg specification, appendix D); natives are
those of `binary_row`.
"""

from __future__ import annotations

import datetime as dt
import re
import struct
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from ledger.files.partition_values import value_of
from ledger.model import types as t
from ledger.model.errors import InvalidInputError, UnsupportedError
from ledger.model.file_change import PartitionValue
from projections.paimon.binary_row import (
    MICROS_PRECISION,
    Moment,
    big_endian,
    decimal_of,
    nanos_of,
    timestamp_from_nanos,
    unscaled_value,
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

# A widened column keeps the narrow bounds of files written before, so both widths are read.
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
    """Return a bound as a row value.

    Args:
        text: Hex of Iceberg's single-value bytes.
        data_type: The column's type.

    Raises:
        InvalidInputError: The bytes do not encode a value of the type.
        UnsupportedError: The type has no bounds.

    Example:
        >>> from_bound("01000000", t.IntType()), from_bound("04d2", t.DecimalType(6, 2))
        (1, Decimal('12.34'))
    """
    read = _bound_codec(data_type)[0]
    try:
        return read(bytes.fromhex(text), data_type)
    except _MISFITS as error:
        raise InvalidInputError(
            f"bound {text[:64]} is no {data_type.root} in Iceberg's single-value form: {error}; "
            "write the file's bounds again"
        ) from error


def to_bound(value: Any, data_type: t.DataType) -> str:
    """Return a row value as a bound; the reverse of `from_bound`.

    Raises:
        InvalidInputError: The value does not have the type.
        UnsupportedError: The type has no bounds.

    Example:
        >>> to_bound(1, t.IntType())
        '01000000'
    """
    write = _bound_codec(data_type)[1]
    try:
        return write(value, data_type).hex()
    except _MISFITS as error:
        raise InvalidInputError(f"{value!r} of a row is no {data_type.root}") from error


def _unpack_number(body: bytes, data_type: t.DataType) -> Any:
    for layout in _LAYOUTS[type(data_type)]:
        if len(body) == struct.calcsize(layout):
            return struct.unpack(layout, body)[0]
    raise ValueError(f"{len(body)} bytes")


def _pack_number(value: Any, data_type: t.DataType) -> bytes:
    return struct.pack(_LAYOUTS[type(data_type)][0], value)


def _read_boolean(body: bytes, _: Any) -> bool:
    (byte,) = body
    return byte != 0


def _read_decimal(body: bytes, data_type: t.DecimalType) -> Any:
    if not body:
        raise ValueError("no bytes")
    return decimal_of(int.from_bytes(body, "big", signed=True), data_type)


def _write_decimal(value: Any, data_type: t.DecimalType) -> bytes:
    return big_endian(unscaled_value(value, data_type))


def _read_date(body: bytes, data_type: t.DataType) -> dt.date:
    return dt.date.fromordinal(_unpack_number(body, data_type) + _EPOCH_DAY)


def _write_date(value: Any, data_type: t.DataType) -> bytes:
    return _pack_number(value.toordinal() - _EPOCH_DAY, data_type)


def _read_time(body: bytes, data_type: t.DataType) -> dt.time:
    moment: dt.datetime = _EPOCH + _unpack_number(body, data_type) * _MICROSECOND
    if moment.date() != _EPOCH.date():
        raise ValueError("no time of day")
    return moment.time()


def _write_time(value: Any, data_type: t.DataType) -> bytes:
    return _pack_number((dt.datetime.combine(_EPOCH, value) - _EPOCH) // _MICROSECOND, data_type)


def _nanos_per_unit(data_type: Moment) -> int:
    """Return the number of nanoseconds in the unit of a timestamp's bounds."""
    return 1 if data_type.precision > MICROS_PRECISION else 1000


def _read_timestamp(body: bytes, data_type: Moment) -> dt.datetime | int:
    return timestamp_from_nanos(
        _unpack_number(body, data_type) * _nanos_per_unit(data_type), data_type
    )


def _write_timestamp(value: Any, data_type: Moment) -> bytes:
    return _pack_number(nanos_of(value) // _nanos_per_unit(data_type), data_type)


def _bound_codec(data_type: t.DataType) -> tuple[_Read, _Write]:
    forms = _FORMS.get(type(data_type))
    if forms is None:
        raise UnsupportedError(f"{data_type.root} has no bounds: leave the column out")
    return forms


_Read = Callable[[bytes, Any], Any]
_Write = Callable[[Any, Any], bytes]
_TEXT: tuple[_Read, _Write] = (lambda body, _: body.decode(), lambda value, _: value.encode())
_BYTES: tuple[_Read, _Write] = (lambda body, _: body, lambda value, _: bytes(value))
_FORMS: dict[type[t.DataType], tuple[_Read, _Write]] = {
    **dict.fromkeys(_LAYOUTS, (_unpack_number, _pack_number)),
    t.BooleanType: (_read_boolean, lambda value, _: bytes([value])),
    t.CharType: _TEXT,
    t.VarCharType: _TEXT,
    t.BinaryType: _BYTES,
    t.VarBinaryType: _BYTES,
    t.DecimalType: (_read_decimal, _write_decimal),
    t.DateType: (_read_date, _write_date),
    t.TimeType: (_read_time, _write_time),
    t.TimestampType: (_read_timestamp, _write_timestamp),
    t.LocalZonedTimestampType: (_read_timestamp, _write_timestamp),
}


__all__ = ["from_bound", "native", "scalar", "to_bound"]

_MOMENT = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?")
_NANOS = 1_000_000_000


def native(value: PartitionValue, data_type: t.DataType) -> Any:
    """Return a partition scalar as a row value.

    Args:
        value: An element of `FileChange.partition`.
        data_type: The partition column's type.

    Raises:
        InvalidInputError: The scalar does not have the type.
        UnsupportedError: No table can be partitioned by the type.

    Example:
        >>> native("2013-01-01", t.DateType()), native("2.50", t.DecimalType(5, 2))
        (datetime.date(2013, 1, 1), Decimal('2.50'))
    """
    if value is None:
        return None
    try:
        return _parse_partition_value(value, data_type)
    except (ValueError, OverflowError) as error:
        raise InvalidInputError(
            f"partition value {value!r} is no {data_type.root}; write it in ISO form"
        ) from error


def scalar(value: Any, data_type: t.DataType) -> PartitionValue:
    """Return a row value as a partition scalar; the reverse of `native`.

    Raises:
        InvalidInputError: The value does not have the type.

    Example:
        >>> scalar(dt.date(2013, 1, 1), t.DateType())
        '2013-01-01'
    """
    if value is None or isinstance(value, bool | str):
        return value
    try:
        return _TO_SCALAR.get(type(data_type), _integer_value)(value, data_type)
    except (AttributeError, TypeError, ValueError, OverflowError) as error:
        raise InvalidInputError(f"{value!r} of a row is no {data_type.root}") from error


def _parse_partition_value(value: PartitionValue, data_type: t.DataType) -> Any:
    if isinstance(data_type, t.BinaryType | t.VarBinaryType):
        return bytes.fromhex(str(value))
    if isinstance(value, bool) is not isinstance(data_type, t.BooleanType):
        raise ValueError(value)
    canonical = value_of(str(value), data_type)
    convert = _FROM_SCALAR.get(type(data_type))
    return canonical if convert is None else convert(str(canonical), data_type)


def _parse_time(text: str, _: Any) -> dt.time:
    whole, _, fraction = text.partition(".")
    return dt.time.fromisoformat(whole).replace(microsecond=int(fraction.ljust(9, "0")[:6]))


def _parse_timestamp(text: str, data_type: Moment) -> dt.datetime | int:
    found = _MOMENT.fullmatch(text)
    if found is None:
        raise ValueError(text)
    nanos = nanos_of(dt.datetime.fromisoformat(found[1])) + int((found[2] or "").ljust(9, "0"))
    return timestamp_from_nanos(nanos, data_type)


def _timestamp_text(value: Any, _: Any) -> str:
    seconds, rest = divmod(nanos_of(value), _NANOS)
    text = (_EPOCH + dt.timedelta(seconds=seconds)).isoformat()
    return text + f".{rest:09d}".rstrip("0").rstrip(".")


def _hex_text(value: Any, _: Any) -> str:
    return str(value.hex())


def _decimal_text(value: Any, _: Any) -> str:
    return f"{value:f}"


def _iso_value(value: Any, data_type: t.DataType) -> PartitionValue:
    return value_of(value.isoformat(), data_type)


def _float_value(value: Any, data_type: t.DataType) -> PartitionValue:
    return value_of(repr(value), data_type)


def _integer_value(value: Any, _: Any) -> int:
    return int(value)


_FROM_SCALAR: dict[type[t.DataType], Callable[[str, Any], Any]] = {
    t.DecimalType: lambda text, _: Decimal(text),
    t.DateType: lambda text, _: dt.date.fromisoformat(text),
    t.TimeType: _parse_time,
    t.TimestampType: _parse_timestamp,
    t.LocalZonedTimestampType: _parse_timestamp,
    t.FloatType: lambda text, _: float(text),
    t.DoubleType: lambda text, _: float(text),
}
_TO_SCALAR: dict[type[t.DataType], Callable[[Any, Any], PartitionValue]] = {
    t.BinaryType: _hex_text,
    t.VarBinaryType: _hex_text,
    t.DecimalType: _decimal_text,
    t.DateType: _iso_value,
    t.TimeType: _iso_value,
    t.TimestampType: _timestamp_text,
    t.LocalZonedTimestampType: _timestamp_text,
    t.FloatType: _float_value,
    t.DoubleType: _float_value,
}
