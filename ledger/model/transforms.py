"""Partition transforms, partition types and partition paths.

The values that transforms take and return have the form of `ledger.model.single_values`.

Source: the Iceberg table specification, "Partition Transforms" and appendix B (bucket hash), and
the partition paths that Iceberg's writers use.
"""

from __future__ import annotations

import base64
import re
import struct
from collections.abc import Iterable, Sequence
from typing import Literal
from urllib.parse import quote_plus

from msgspec import Struct

import ledger.model.types as t
from ledger.model.errors import InvalidInputError
from ledger.model.iceberg_layout import PartitionSpec
from ledger.model.messages import excerpt
from ledger.model.schema import Schema
from ledger.model.single_values import (
    SECONDS_A_DAY,
    Value,
    calendar_day,
    date_text,
    encode_value,
    is_comparable,
    unit_digits,
    year_text,
)
from ledger.model.types import walk_fields, whole_number
from ledger.model.types.text import format_type

Unit = Literal["year", "month", "day", "hour"]

_PARAMETERISED = re.compile(r"(bucket|truncate)\[\s*(-?[0-9]+)\s*\]")
_FIRST_YEAR = 1970

_NUMBERS = (t.TinyIntType, t.SmallIntType, t.IntType, t.BigIntType, t.DecimalType)
_BYTES = (t.BinaryType, t.VarBinaryType)
_TEXTS = (t.CharType, t.VarCharType)
_MOMENTS = (t.TimestampType, t.LocalZonedTimestampType)


class Transform(Struct, frozen=True):
    """A partition transform; NULL transforms to NULL."""

    @property
    def text(self) -> str:
        """The transform's text in partition specs, such as `bucket[16]`."""
        raise NotImplementedError

    @property
    def preserves_order(self) -> bool:
        """True if the transform is monotonic: a greater value never has a lesser result."""
        return False

    def accepts(self, source: t.DataType) -> bool:
        """Return whether a column of that type may be the transform's source."""
        raise NotImplementedError

    def result_type(self, source: t.DataType) -> t.DataType:
        """Return the type of the transform's results; always nullable."""
        raise NotImplementedError

    def apply(self, value: Value | None, source: t.DataType) -> Value | None:
        """Return the transform's result for a value of a column.

        Args:
            value: None for NULL.
            source: The column's type, which gives the value's unit.

        Raises:
            InvalidInputError: The transform does not accept the type.

        Example:
            >>> transform_of("month").apply(-1, t.DateType())  # 1969-12-31
            -1
        """
        if not self.accepts(source):
            raise InvalidInputError(
                f"transform {self.text} does not accept {format_type(source)}: choose another "
                "transform or column"
            )
        return None if value is None else self._apply_non_null(value, source)

    def _apply_non_null(self, value: Value, source: t.DataType) -> Value | None:
        raise NotImplementedError


class Identity(Transform, frozen=True):
    """The `identity` transform: the value itself."""

    @property
    def text(self) -> str:
        """The transform's text in partition specs."""
        return "identity"

    @property
    def preserves_order(self) -> bool:
        """Always."""
        return True

    def accepts(self, source: t.DataType) -> bool:
        """Return whether values of the type compare."""
        return is_comparable(source)

    def result_type(self, source: t.DataType) -> t.DataType:
        """Return the source's."""
        return source.with_nullability(nullable=True)

    def _apply_non_null(self, value: Value, source: t.DataType) -> Value:  # noqa: ARG002
        return value


class Bucket(Transform, frozen=True):
    """The `bucket[N]` transform: the value's hash modulo `count`."""

    count: int

    @property
    def text(self) -> str:
        """The transform's text in partition specs."""
        return f"bucket[{self.count}]"

    def accepts(self, source: t.DataType) -> bool:
        """Return whether the type hashes alike in every engine: not BOOLEAN, FLOAT, DOUBLE."""
        uneven = (t.BooleanType, t.FloatType, t.DoubleType)
        return is_comparable(source) and not isinstance(source, uneven)

    def result_type(self, source: t.DataType) -> t.DataType:  # noqa: ARG002
        """Return INT: the bucket's number from 0."""
        return t.IntType()

    def _apply_non_null(self, value: Value, source: t.DataType) -> int:
        return (bucket_hash(value, source) & t.INT_MAX) % self.count


class Truncate(Transform, frozen=True):
    """The `truncate[W]` transform: numbers down to a multiple, text and bytes to a prefix."""

    width: int

    @property
    def text(self) -> str:
        """The transform's text in partition specs."""
        return f"truncate[{self.width}]"

    @property
    def preserves_order(self) -> bool:
        """Always."""
        return True

    def accepts(self, source: t.DataType) -> bool:
        """Return whether the type is of whole numbers, decimals, text or bytes."""
        return isinstance(source, (*_NUMBERS, *_TEXTS, *_BYTES))

    def result_type(self, source: t.DataType) -> t.DataType:
        """Return the source's."""
        return source.with_nullability(nullable=True)

    def _apply_non_null(self, value: Value, source: t.DataType) -> Value:  # noqa: ARG002
        if isinstance(value, str | bytes):
            return value[: self.width]
        return int(value) - int(value) % self.width


class Period(Transform, frozen=True):
    """The `year`, `month`, `day` and `hour` transforms: whole units since 1970, in UTC."""

    unit: Unit

    @property
    def text(self) -> str:
        """The transform's text in partition specs."""
        return self.unit

    @property
    def preserves_order(self) -> bool:
        """Always."""
        return True

    def accepts(self, source: t.DataType) -> bool:
        """Return whether the type has such a unit; a DATE has no hour."""
        return isinstance(source, _MOMENTS) or (
            isinstance(source, t.DateType) and self.unit != "hour"
        )

    def result_type(self, source: t.DataType) -> t.DataType:  # noqa: ARG002
        """Return DATE for days and INT for the others."""
        return t.DateType() if self.unit == "day" else t.IntType()

    def _apply_non_null(self, value: Value, source: t.DataType) -> int:
        count = int(value)
        if isinstance(source, _MOMENTS):
            seconds = count // 10 ** unit_digits(source)
            if self.unit == "hour":
                return int(seconds // 3600)
            count = seconds // SECONDS_A_DAY
        if self.unit == "day":
            return count
        year, month, _day = calendar_day(count)
        years = year - _FIRST_YEAR
        return years if self.unit == "year" else years * 12 + month - 1


class Void(Transform, frozen=True):
    """The `void` transform: always NULL; it replaces the transform of a removed field."""

    @property
    def text(self) -> str:
        """The transform's text in partition specs."""
        return "void"

    def accepts(self, source: t.DataType) -> bool:  # noqa: ARG002
        """Return True."""
        return True

    def result_type(self, source: t.DataType) -> t.DataType:
        """Return the source's."""
        return source.with_nullability(nullable=True)

    def _apply_non_null(self, value: Value, source: t.DataType) -> None:  # noqa: ARG002
        return None


class UnknownTransform(Transform, frozen=True):
    """A transform of a newer specification; it can neither be written with nor planned by."""

    name: str

    @property
    def text(self) -> str:
        """The transform's text in partition specs."""
        return self.name

    def accepts(self, source: t.DataType) -> bool:  # noqa: ARG002
        """Return False: nothing may be written with it."""
        return False

    def result_type(self, source: t.DataType) -> t.DataType:  # noqa: ARG002
        """Return STRING."""
        return t.STRING


def transform_of(text: str) -> Transform:
    """Return the transform that a spec names; upper and lower case do not matter.

    Raises:
        InvalidInputError: The count or width is not from 1 to 2,147,483,647.

    Example:
        >>> transform_of("bucket[16]").apply(34, t.IntType())
        3
        >>> transform_of("zorder[2]")
        UnknownTransform(name='zorder[2]')
    """
    name = text.lower()
    match name:
        case "identity":
            return Identity()
        case "void":
            return Void()
        case "year" | "month" | "day" | "hour":
            return Period(name)
    found = _PARAMETERISED.fullmatch(name)
    if found is None:
        return UnknownTransform(text)
    number = whole_number(found[2])
    if number is None or not 1 <= number <= t.INT_MAX:
        raise InvalidInputError(f"transform {text} is out of range: give 1 to {t.INT_MAX}")
    return Bucket(number) if found[1] == "bucket" else Truncate(number)


_MASK = 0xFFFFFFFF
_NANOSECONDS_DIGITS = 9


def murmur3(data: bytes) -> int:
    """Return the 32-bit Murmur3 hash (x86, seed 0) of bytes, as a signed number.

    >>> murmur3(b"iceberg"), murmur3(b"")
    (1210000089, 0)
    """
    state = 0
    whole = len(data) & ~3
    for (block,) in struct.iter_unpack("<I", data[:whole]):
        state ^= _mix_murmur3_block(block)
        state = (_rotate_left(state, 13) * 5 + 0xE6546B64) & _MASK
    state ^= _mix_murmur3_block(int.from_bytes(data[whole:], "little")) ^ len(data)
    state = ((state ^ state >> 16) * 0x85EBCA6B) & _MASK
    state = ((state ^ state >> 13) * 0xC2B2AE35) & _MASK
    state ^= state >> 16
    return state - (1 << 32) if state >> 31 else state


def _mix_murmur3_block(block: int) -> int:
    return _rotate_left(block * 0xCC9E2D51 & _MASK, 15) * 0x1B873593 & _MASK


def _rotate_left(number: int, bits: int) -> int:
    return (number << bits | number >> 32 - bits) & _MASK


def bucket_hash(value: Value, data_type: t.DataType) -> int:
    """Return the hash of a value for the bucket transform.

    Args:
        value: A value of the type, not None.
        data_type: The column's type.

    Raises:
        InvalidInputError: The value has no hash: it is nested, or beyond 64 bits.

    Example:
        >>> bucket_hash(34, t.IntType()), bucket_hash(1420, t.DecimalType(9, 2))
        (2017239379, -500754589)
    """
    return murmur3(_bucket_hash_bytes(value, data_type))


def _bucket_hash_bytes(value: Value, data_type: t.DataType) -> bytes:
    match value:
        case str():
            return value.encode()
        case bytes():
            return value
        case float():
            # Adding zero makes the negative zero positive.
            return struct.pack("<d", value + 0.0)
        case int() if isinstance(data_type, t.DecimalType):
            bits = (value if value >= 0 else ~value).bit_length() + 1
            return value.to_bytes((bits + 7) // 8, "big", signed=True)
        case int():
            return _encode_int64(_to_microseconds(value, data_type), data_type)


def _to_microseconds(value: int, data_type: t.DataType) -> int:
    match data_type:
        case t.TimeType() | t.TimestampType() | t.LocalZonedTimestampType():
            return value // 1000 if unit_digits(data_type) == _NANOSECONDS_DIGITS else value
        case _:
            return value


def _encode_int64(number: int, data_type: t.DataType) -> bytes:
    try:
        return struct.pack("<q", number)
    except struct.error as error:
        raise InvalidInputError(
            f"{format_type(data_type)} value {excerpt(number)} has more than 64 bits"
        ) from error


def field_types(schema: Schema) -> dict[int, t.DataType]:
    """Return the type of every column and member of a schema, by field id.

    >>> field_types(Schema.of({"id": "INT"}))[0] == t.IntType()
    True
    """
    return {each.id: each.type for each in walk_fields(schema.fields)}


def partition_type(specs: Iterable[PartitionSpec], schema: Schema) -> tuple[t.DataField, ...]:
    """Return the unified partition type of several specs: one field for each partition field id.

    The newest spec names a field. A dropped column's field has the type UNKNOWN; a field that
    became void keeps its former type.

    Args:
        specs: The specs of one table.
        schema: The schema that gives the types of the columns.

    Example:
        >>> from ledger.model.iceberg_layout import PartitionField
        >>> spec = PartitionSpec(0, (PartitionField("ts_day", "day", 0, field_id=1000),))
        >>> found = partition_type([spec], Schema.of({"ts": "TIMESTAMP"}))
        >>> [(each.id, each.name, each.type.root) for each in found]
        [(1000, 'ts_day', 'DATE')]
    """
    types = field_types(schema)
    names: dict[int, str] = {}
    found: dict[int, t.DataType] = {}
    voids: set[int] = set()
    for spec in sorted(specs, key=lambda each: each.spec_id, reverse=True):
        for each in spec.fields:
            names.setdefault(each.field_id, each.name)
            transform = transform_of(each.transform)
            if each.field_id not in found or each.field_id in voids:
                source = types.get(each.source_id, t.UnknownType())
                found[each.field_id] = transform.result_type(source)
                is_void = isinstance(transform, Void)
                (voids.add if is_void else voids.discard)(each.field_id)
    return tuple(t.DataField(each, names[each], found[each]) for each in sorted(names))


def partition_value_text(value: Value | None, transform: Transform, source: t.DataType) -> str:
    """Return a partition value as text for paths and messages.

    Args:
        value: A result of the transform; None for NULL.
        transform: The field's transform.
        source: The source column's type.

    Example:
        >>> partition_value_text(420034, transform_of("hour"), t.TimestampType())
        '2017-12-01-10'
    """
    if value is None:
        return "null"
    if isinstance(transform, Period):
        return _period_text(int(value), transform)
    if isinstance(value, bytes) and not isinstance(source, t.UuidType):
        return base64.b64encode(value).decode()
    result_type = transform.result_type(source)
    encoded = encode_value(value, result_type)
    if isinstance(encoded, bool):
        return str(encoded).lower()
    is_zoned = isinstance(result_type, t.LocalZonedTimestampType)
    return f"{encoded}+00:00" if is_zoned else str(encoded)


def _period_text(value: int, transform: Period) -> str:
    match transform.unit:
        case "year":
            return year_text(_FIRST_YEAR + value)
        case "month":
            return f"{year_text(_FIRST_YEAR + value // 12)}-{value % 12 + 1:02d}"
        case "day":
            return date_text(value)
        case "hour":
            return f"{date_text(value // 24)}-{value % 24:02d}"


def partition_path(spec: PartitionSpec, values: Sequence[Value | None], schema: Schema) -> str:
    """Return the folders of a partition in Iceberg's layout, `name=value` each, URL-encoded.

    Args:
        spec: The spec, whose fields name the folders.
        values: One result of the transform for each field.
        schema: The schema that gives the types of the columns.

    Raises:
        InvalidInputError: There are more or fewer values than fields.

    Example:
        >>> from ledger.model.iceberg_layout import PartitionField
        >>> spec = PartitionSpec(0, (PartitionField("cat", "identity", 0, field_id=1000),))
        >>> partition_path(spec, ["a b/c"], Schema.of({"cat": "STRING"}))
        'cat=a+b%2Fc'
    """
    if len(values) != len(spec.fields):
        raise InvalidInputError(
            f"spec {spec.spec_id} has {len(spec.fields)} fields, not {len(values)}: give one value "
            "a field"
        )
    types = field_types(schema)
    folders = []
    for each, value in zip(spec.fields, values, strict=True):
        source = types.get(each.source_id, t.UnknownType())
        text = partition_value_text(value, transform_of(each.transform), source)
        folders.append(f"{_url_encode(each.name)}={_url_encode(text)}")
    return "/".join(folders)


def _url_encode(text: str) -> str:
    # Java's encoder leaves * and encodes ~; Python's does the opposite.
    return quote_plus(text, safe="*").replace("~", "%7E")
