"""BinaryRow: Paimon's binary encoding of values by type.

Everything is little-endian; offsets count from the row's start, after its serialised field count.

Source: Paimon's BinaryRow, BinaryRowWriter, SerializationUtils and MurmurHashUtils.

Values are Python's own: bool, int, float, str, bytes, Decimal, date, time. A timestamp is a
datetime without a zone (a TIMESTAMP_LTZ's is UTC); beyond microseconds, which a datetime cannot
hold, it is an int: nanoseconds since 1970. A TIME has milliseconds, whatever its precision.
"""

from __future__ import annotations

import datetime as dt
import math
import struct
from collections.abc import Callable, Sequence
from decimal import Context, Decimal, Inexact, InvalidOperation, Overflow
from typing import Any, TypeVar

from ledger.model import types as t
from ledger.model.errors import InvalidInputError, UnsupportedError

SLOT = 8

_HEADER_BITS = 8
_INLINE = 7
_INLINE_MARK = 0x80
_REFERENCE = struct.Struct("<II")


def _null_area_size(fields: int) -> int:
    return (fields + 63 + _HEADER_BITS) // 64 * SLOT


class RowWriter:
    """Builder of a row; its kind is INSERT, which is 0."""

    def __init__(self, fields: int) -> None:
        self._slots = bytearray(_null_area_size(fields) + fields * SLOT)
        self._start = _null_area_size(fields)
        self._behind = bytearray()

    def body(self) -> bytes:
        """Return the row's bytes."""
        return bytes(self._slots + self._behind)

    def set_null(self, index: int) -> None:
        """Mark a field as NULL."""
        bit = index + _HEADER_BITS
        self._slots[bit // 8] |= 1 << bit % 8

    def set_slot(self, index: int, content: bytes) -> None:
        """Write at most eight bytes at the start of a field's slot."""
        start = self._start + index * SLOT
        self._slots[start : start + len(content)] = content

    def set_reference(self, index: int, content: bytes, *, low: int) -> None:
        """Write bytes after the slots, padded to whole words, and a reference to them in a slot.

        Args:
            index: The field.
            content: The bytes.
            low: The slot's lower half: the content's length, or a value that the type stores there.
        """
        offset = len(self._slots) + len(self._behind)
        self._behind += content + bytes(-len(content) % SLOT)
        self.set_slot(index, _REFERENCE.pack(low, offset))

    def set_bytes(self, index: int, content: bytes) -> None:
        """Write short bytes into the slot itself, and longer ones after the slots."""
        if len(content) <= _INLINE:
            marked = content.ljust(_INLINE, b"\0") + bytes([_INLINE_MARK | len(content)])
            self.set_slot(index, marked)
        else:
            self.set_reference(index, content, low=len(content))


class RowReader:
    """Reader of a row's fields.

    Raises:
        ValueError: From every method: the row is too short for its references.
    """

    def __init__(self, body: bytes, fields: int) -> None:
        self._body = body
        self._start = _null_area_size(fields)

    def is_null(self, index: int) -> bool:
        """Return whether a field is NULL."""
        bit = index + _HEADER_BITS
        return bool(self._bytes_in_bounds(bit // 8, 1)[0] & 1 << bit % 8)

    def slot(self, index: int, width: int = SLOT) -> bytes:
        """Return the first bytes of a field's slot."""
        return self._bytes_in_bounds(self._start + index * SLOT, width)

    def reference(self, index: int) -> tuple[int, int]:
        """Return the lower half of a slot and the offset in its upper half."""
        low, offset = _REFERENCE.unpack(self.slot(index))
        return low, offset

    def referenced_bytes(self, offset: int, length: int) -> bytes:
        """Return bytes that a slot refers to."""
        return self._bytes_in_bounds(offset, length)

    def bytes_at(self, index: int) -> bytes:
        """Return the bytes that `RowWriter.set_bytes` wrote."""
        slot = self.slot(index)
        if slot[_INLINE] & _INLINE_MARK:
            length = slot[_INLINE] & ~_INLINE_MARK
            if length > _INLINE:
                raise ValueError(f"{length} bytes do not fit in a slot of {SLOT}")
            return slot[:length]
        return self.referenced_bytes(*reversed(self.reference(index)))

    def _bytes_in_bounds(self, start: int, length: int) -> bytes:
        end = start + length
        if end > len(self._body):
            raise ValueError(f"it points at byte {end} of {len(self._body)}")
        return self._body[start:end]


MILLIS_PRECISION = 3
"""Up to this precision a timestamp is stored in its slot, as milliseconds since 1970."""

MICROS_PRECISION = 6
"""Up to this precision a timestamp is a datetime, beyond it nanoseconds since 1970."""

_COMPACT_PRECISION = 18
_WIDE_DECIMAL = 16
_NANOS_OF_MILLI = 1_000_000
_EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - wall clocks and UTC alike stand without a zone
_EPOCH_DAY = _EPOCH.toordinal()
_MICROSECOND = dt.timedelta(microseconds=1)
_EXACT = Context(prec=80, traps=[Inexact, InvalidOperation, Overflow])
_DAY_MILLIS = 86_400_000

_Kind = TypeVar("_Kind")
Moment = t.TimestampType | t.LocalZonedTimestampType

_FIXED = {
    t.TinyIntType: struct.Struct("<b"),
    t.SmallIntType: struct.Struct("<h"),
    t.IntType: struct.Struct("<i"),
    t.BigIntType: struct.Struct("<q"),
    t.FloatType: struct.Struct("<f"),
    t.DoubleType: struct.Struct("<d"),
}
_INT = struct.Struct("<i")
_LONG = struct.Struct("<q")


def write_value(writer: RowWriter, index: int, value: Any, data_type: t.DataType) -> None:
    """Write one value, or NULL, into its field.

    Raises:
        UnsupportedError: A nested or unusual type has no values in partitions or keys.
        TypeError, ValueError, OverflowError, struct.error: The value does not fit its type.
    """
    if value is None:
        _write_null(writer, index, data_type)
    else:
        _accessors_of(data_type)[0](writer, index, value, data_type)


def read_value(reader: RowReader, index: int, data_type: t.DataType) -> Any:
    """Return one field's value; None for NULL.

    Raises:
        UnsupportedError: As `write_value`.
        ValueError, OverflowError, struct.error: The bytes are no value of the type.
    """
    if reader.is_null(index):
        reader.slot(index)
        return None
    return _accessors_of(data_type)[1](reader, index, data_type)


def unscaled_value(value: Decimal, data_type: t.DecimalType) -> int:
    """Return a decimal's unscaled integer value.

    Raises:
        ValueError: It has more digits than the type, before or after the point.
    """
    shifted = _check_type(value, Decimal).scaleb(data_type.scale, _EXACT)
    # Only short values become an int: expanding a large exponent takes minutes.
    whole = int(shifted) if shifted.adjusted() < data_type.precision else None
    if whole is None or whole != shifted:
        raise ValueError(f"{value} is no DECIMAL({data_type.precision}, {data_type.scale})")
    return whole


def big_endian(whole: int) -> bytes:
    """Return an integer in the fewest two's complement bytes, as Java does."""
    bits = (whole if whole >= 0 else ~whole).bit_length() + 1
    return whole.to_bytes((bits + 7) // 8, "big", signed=True)


def decimal_of(whole: int, data_type: t.DecimalType) -> Decimal:
    """Return the decimal of an unscaled integer, with all digits of its scale.

    Raises:
        ValueError: It has more digits than the type.
    """
    if abs(whole) >= 10**data_type.precision:
        raise ValueError(f"{whole} has more than {data_type.precision} digits")
    return Decimal(whole).scaleb(-data_type.scale, _EXACT)


def nanos_of(value: dt.datetime | int) -> int:
    """Return a timestamp as nanoseconds since 1970."""
    if isinstance(value, dt.datetime):
        return (value - _EPOCH) // _MICROSECOND * 1000
    return _check_integer(value)


def timestamp_from_nanos(nanos: int, data_type: Moment) -> dt.datetime | int:
    """Return nanoseconds since 1970 as the type's Python value: see `MICROS_PRECISION`.

    Raises:
        OverflowError: It is before year 1 or after 9999, outside of datetime's range.
    """
    if data_type.precision > MICROS_PRECISION:
        return nanos
    return _EPOCH + dt.timedelta(microseconds=nanos // 1000)


def _write_null(writer: RowWriter, index: int, data_type: t.DataType) -> None:
    writer.set_null(index)
    match data_type:
        case t.DecimalType(precision=precision) if precision > _COMPACT_PRECISION:
            writer.set_reference(index, bytes(_WIDE_DECIMAL), low=0)
        case (
            t.TimestampType(precision=precision) | t.LocalZonedTimestampType(precision=precision)
        ) if precision > MILLIS_PRECISION:
            writer.set_reference(index, bytes(_LONG.size), low=0)


def _write_decimal(writer: RowWriter, index: int, value: Any, data_type: t.DecimalType) -> None:
    whole = unscaled_value(value, data_type)
    if data_type.precision <= _COMPACT_PRECISION:
        writer.set_slot(index, _LONG.pack(whole))
        return
    content = big_endian(whole)
    writer.set_reference(index, content.ljust(_WIDE_DECIMAL, b"\0"), low=len(content))


def _read_decimal(reader: RowReader, index: int, data_type: t.DecimalType) -> Decimal:
    if data_type.precision <= _COMPACT_PRECISION:
        return decimal_of(_unpack_slot(_LONG, reader, index), data_type)
    length, offset = reader.reference(index)
    if not 0 < length <= _WIDE_DECIMAL:
        raise ValueError(f"a decimal of {length} bytes")
    whole = int.from_bytes(reader.referenced_bytes(offset, length), "big", signed=True)
    return decimal_of(whole, data_type)


def _write_timestamp(writer: RowWriter, index: int, value: Any, data_type: Moment) -> None:
    millis, rest = divmod(nanos_of(value), _NANOS_OF_MILLI)
    if data_type.precision <= MILLIS_PRECISION:
        writer.set_slot(index, _LONG.pack(millis))
    else:
        writer.set_reference(index, _LONG.pack(millis), low=rest)


def _read_timestamp(reader: RowReader, index: int, data_type: Moment) -> dt.datetime | int:
    if data_type.precision <= MILLIS_PRECISION:
        return timestamp_from_nanos(_unpack_slot(_LONG, reader, index) * _NANOS_OF_MILLI, data_type)
    rest, offset = reader.reference(index)
    if rest >= _NANOS_OF_MILLI:
        raise ValueError(f"{rest} nanoseconds are more than a millisecond")
    (millis,) = _LONG.unpack(reader.referenced_bytes(offset, _LONG.size))
    return timestamp_from_nanos(millis * _NANOS_OF_MILLI + rest, data_type)


def _millis_of_day(value: dt.time) -> int:
    seconds = (value.hour * 60 + value.minute) * 60 + value.second
    return seconds * 1000 + value.microsecond // 1000


def _time_from_millis(millis: int) -> dt.time:
    if not 0 <= millis < _DAY_MILLIS:
        raise ValueError(f"{millis} milliseconds are no time of day")
    seconds, rest = divmod(millis, 1000)
    return dt.time(seconds // 3600, seconds // 60 % 60, seconds % 60, rest * 1000)


def _check_integer(value: object) -> int:
    # bool is an int in Python, but not a TINYINT.
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{value!r} is no whole number")
    return value


def _check_type(value: object, kind: type[_Kind]) -> _Kind:
    if not isinstance(value, kind):
        raise TypeError(f"{value!r} is no {kind.__name__}")
    return value


def _unpack_slot(layout: struct.Struct, reader: RowReader, index: int) -> Any:
    return layout.unpack(reader.slot(index, layout.size))[0]


def _write_boolean(writer: RowWriter, index: int, value: Any, _: Any) -> None:
    writer.set_slot(index, bytes([_check_type(value, bool)]))


def _read_boolean(reader: RowReader, index: int, _: Any) -> bool:
    return reader.slot(index, 1) != b"\0"


def _write_text(writer: RowWriter, index: int, value: Any, _: Any) -> None:
    writer.set_bytes(index, _check_type(value, str).encode())


def _read_text(reader: RowReader, index: int, _: Any) -> str:
    return reader.bytes_at(index).decode()


def _write_bytes(writer: RowWriter, index: int, value: Any, _: Any) -> None:
    writer.set_bytes(index, _check_type(value, bytes))


def _read_bytes(reader: RowReader, index: int, _: Any) -> bytes:
    return reader.bytes_at(index)


def _write_integer(writer: RowWriter, index: int, value: Any, data_type: t.DataType) -> None:
    writer.set_slot(index, _FIXED[type(data_type)].pack(_check_integer(value)))


def _write_float(writer: RowWriter, index: int, value: Any, data_type: t.DataType) -> None:
    writer.set_slot(index, _FIXED[type(data_type)].pack(value))


def _read_number(reader: RowReader, index: int, data_type: t.DataType) -> Any:
    return _unpack_slot(_FIXED[type(data_type)], reader, index)


def _write_date(writer: RowWriter, index: int, value: Any, _: Any) -> None:
    writer.set_slot(index, _INT.pack(value.toordinal() - _EPOCH_DAY))


def _read_date(reader: RowReader, index: int, _: Any) -> dt.date:
    return dt.date.fromordinal(_unpack_slot(_INT, reader, index) + _EPOCH_DAY)


def _write_time(writer: RowWriter, index: int, value: Any, _: Any) -> None:
    writer.set_slot(index, _INT.pack(_millis_of_day(value)))


def _read_time(reader: RowReader, index: int, _: Any) -> dt.time:
    return _time_from_millis(_unpack_slot(_INT, reader, index))


def _accessors_of(data_type: t.DataType) -> tuple[_Write, _Read]:
    access = _ACCESS.get(type(data_type))
    if access is None:
        raise UnsupportedError(
            f"{data_type.root} cannot be stored in Paimon's partitions, keys or statistics: "
            "leave it out"
        )
    return access


_Write = Callable[[RowWriter, int, Any, Any], None]
_Read = Callable[[RowReader, int, Any], Any]
_ACCESS: dict[type[t.DataType], tuple[_Write, _Read]] = {
    t.BooleanType: (_write_boolean, _read_boolean),
    t.CharType: (_write_text, _read_text),
    t.VarCharType: (_write_text, _read_text),
    t.BinaryType: (_write_bytes, _read_bytes),
    t.VarBinaryType: (_write_bytes, _read_bytes),
    t.DecimalType: (_write_decimal, _read_decimal),
    t.TinyIntType: (_write_integer, _read_number),
    t.SmallIntType: (_write_integer, _read_number),
    t.IntType: (_write_integer, _read_number),
    t.BigIntType: (_write_integer, _read_number),
    t.FloatType: (_write_float, _read_number),
    t.DoubleType: (_write_float, _read_number),
    t.DateType: (_write_date, _read_date),
    t.TimeType: (_write_time, _read_time),
    t.TimestampType: (_write_timestamp, _read_timestamp),
    t.LocalZonedTimestampType: (_write_timestamp, _read_timestamp),
}


__all__ = ["EMPTY_ROW", "bucket_of", "decode_row", "encode_row"]

_COUNT = struct.Struct(">i")
_MISFITS = (struct.error, OverflowError, TypeError, ValueError, AttributeError, ArithmeticError)


def encode_row(values: Sequence[Any], types: Sequence[t.DataType]) -> bytes:
    """Return a row in serialised form: its field count, big-endian, then the row itself.

    Args:
        values: One per type, None for NULL; see the module's docstring.
        types: Nullability is ignored.

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
            "the count before the row differs; use the schema that it was written with"
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
"""The row without fields: partition of an unpartitioned table, and key of an append table."""


_COUNT_BYTES = 4
_SEED = 42
_BITS = 0xFFFFFFFF
_SIGN = 0x80000000


def bucket_of(row: bytes, buckets: int) -> int:
    """Return the bucket number of a row of bucket keys.

    Args:
        row: In serialised form, as returned by `encode_row`.
        buckets: The table's number of buckets.

    Example:
        >>> from ledger.model.types import IntType
        >>> from projections.paimon.binary_row import encode_row
        >>> bucket_of(encode_row([7], [IntType()]), 4)
        3
    """
    return abs(int(math.fmod(row_hash(row), buckets)))


def row_hash(row: bytes) -> int:
    """Return the 32-bit murmur hash of a serialised row, as a signed int like Java's."""
    body = row[_COUNT_BYTES:]
    mixed = _SEED
    for (word,) in struct.iter_unpack("<I", body[: len(body) // 4 * 4]):
        mixed = (_rotate_left(mixed ^ _mix_word(word), 13) * 5 + 0xE6546B64) & _BITS
    mixed ^= len(body)
    mixed = (mixed ^ mixed >> 16) * 0x85EBCA6B & _BITS
    mixed = (mixed ^ mixed >> 13) * 0xC2B2AE35 & _BITS
    mixed ^= mixed >> 16
    return mixed - 2 * (mixed & _SIGN)


def _mix_word(word: int) -> int:
    return _rotate_left(word * 0xCC9E2D51 & _BITS, 15) * 0x1B873593 & _BITS


def _rotate_left(word: int, by: int) -> int:
    return (word << by | word >> 32 - by) & _BITS
