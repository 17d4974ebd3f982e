"""Partition values, file statistics and file actions in Delta's form.

Source: the Delta transaction protocol, "Partition Value Serialization" and "Per-file Statistics".

Every column name in an action is the one in the file's own schema, since the file has that name.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from fractions import Fraction
from functools import partial
from struct import pack, unpack
from typing import Any

import msgspec
from attrs import Factory, define, frozen
from msgspec import Raw, UnsetType

from ledger.files.bounds import Extreme
from ledger.model import types as t
from ledger.model.errors import InvalidInputError, UnsupportedError
from ledger.model.file_change import FileChange, PartitionValue
from ledger.model.schema import Schema
from ledger.model.single_values import (
    WHOLE_BITS,
    date_text,
    decimal_text,
    decode_value,
    parse_decimal,
    parse_text,
    timestamp_text,
)
from ledger.model.types import LONG_MAX
from ledger.planning.bound_value import value_from_bytes
from ledger.state.table import TableState
from projections.delta.actions import Add, Remove, file_uri
from projections.delta.columns import FileNaming
from projections.delta.table_metadata import Schemas, partition_columns

_MICROSECONDS = 6
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896
"""First and last day of the years 1 to 9999, which every reader supports."""
_MICROS_A_DAY = 86_400_000_000
_LAST_MICROSECOND = 999
"""Microseconds that Spark cuts from upper bounds of timestamps."""
_FLOAT_DIGITS = 17
"""Digits that distinguish any two floats: a number with more of them was not a float."""
_FLOAT_32_DIGITS = 9
"""The same for floats of 32 bits."""
_FLOAT_PRECISION = 2**51
"""Inverse of the relative error of a decimal that a writer divided as floats: up to two units."""
_MOST_PLACES = 2 * 38
"""Limit for digits before and after the point: a DECIMAL has 38, its scale up to 38 more."""
_WITHOUT_BOUNDS = frozenset({"BOOLEAN", "BINARY", "VARBINARY"})
_ENCODER = msgspec.json.Encoder()


def partition_text(value: PartitionValue, data_type: t.DataType) -> str | None:
    """Return a partition value as text in the log; None for NULL.

    Args:
        value: The value in a file change.
        data_type: The column's type.

    Raises:
        UnsupportedError: Delta's log cannot hold it.

    Example:
        >>> partition_text("2024-01-02T03:04:05.5", t.TimestampType(6))
        '2024-01-02 03:04:05.500000'
    """
    try:
        decoded = decode_value(value, data_type)
    except InvalidInputError as error:
        raise UnsupportedError(error.message) from error
    if decoded is None:
        return None
    text = _conversion_of(data_type).text(decoded, data_type)
    if text is None:
        raise UnsupportedError(f"Delta's log cannot write {value!r} as a {data_type.root}")
    return text


def partition_value(text: str, data_type: t.DataType) -> Any:
    """Return the value of a partition text, in the ledger's form.

    Raises:
        ValueError: The text is not of the type.
        OverflowError: The value is out of the type's range.
        UnsupportedError: The ledger does not parse texts of the type.

    Example:
        >>> partition_value("2024-01-02", t.DateType())
        19724
    """
    return _conversion_of(data_type).parsed(text, data_type)


def bound_of(value: Any, data_type: t.DataType, *, upper: bool) -> Extreme | None:
    """Return the bound in a file's statistics; None if there is no safe one.

    Args:
        value: The bound, parsed from JSON with decimals for numbers with a point.
        data_type: The column's type.
        upper: Whether it is the upper bound; else the lower one.

    Example:
        >>> bound_of("1970-01-01T00:00:00.001Z", t.LocalZonedTimestampType(6), upper=True)
        1999
    """
    try:
        span = _conversion_of(data_type).span(value, data_type)
    except (ValueError, ArithmeticError):
        return None
    return None if span is None else span[upper]


def _float_text(value: float) -> str:
    if math.isfinite(value):
        return repr(value)
    return "NaN" if math.isnan(value) else f"{'-' if value < 0 else ''}Infinity"


def _timestamp_text(
    value: int, data_type: t.TimestampType | t.LocalZonedTimestampType
) -> str | None:
    if data_type.precision > _MICROSECONDS:
        return None
    if not _FIRST_DAY <= value // _MICROS_A_DAY <= _LAST_DAY:
        return None
    return timestamp_text(value, _MICROSECONDS)


@frozen
class StatisticsFormatter:
    """Counts and bounds of a file's columns, by the names in the file.

    Attributes:
        fields: Columns of the schema whose names the file uses; bounds have their types.
        partitioning: The names of the partition columns, which have no statistics.
    """

    fields: tuple[t.DataField, ...]
    partitioning: frozenset[str]

    def text(self, file: FileChange) -> str:
        """Return the statistics of a file as JSON.

        Bounds may be wider than the values, so readers must not answer queries from them.
        """
        columns = [each for each in self.fields if each.name not in self.partitioning]
        found: dict[str, Any] = {"numRecords": file.record_count, "tightBounds": False}
        for key, bounds in (("minValues", file.lower_bounds), ("maxValues", file.upper_bounds)):
            if not isinstance(bounds, UnsetType) and bounds:
                found[key] = self._nest_by_name(columns, partial(_column_bound, bounds))
        nulls = file.null_value_counts
        if not isinstance(nulls, UnsetType) and nulls:
            found["nullCount"] = self._nest_by_name(columns, partial(_column_null_count, nulls))
        return _ENCODER.encode(found).decode()

    def _nest_by_name(
        self, fields: Iterable[t.DataField], fact_of: Callable[[t.DataField], Any]
    ) -> dict[str, Any]:
        """Return column statistics by name, nested for structs."""
        found: dict[str, Any] = {}
        for each in fields:
            fact = (
                self._nest_by_name(each.type.fields, fact_of)
                if isinstance(each.type, t.RowType)
                else fact_of(each)
            )
            if fact is not None and fact != {}:
                found[each.name] = fact
        return found


def _column_bound(bounds: Mapping[int, str], column: t.DataField) -> Any:
    return _bound_to_json(bounds[column.id], column.type) if column.id in bounds else None


def _column_null_count(nulls: Mapping[int, int], column: t.DataField) -> int | None:
    return None if column.type.depth else nulls.get(column.id)


def _bound_to_json(text: str, data_type: t.DataType) -> Any:
    """Return a bound as JSON; None if Delta has none, or it cannot be written."""
    if data_type.depth or data_type.root in _WITHOUT_BOUNDS:
        return None
    try:
        value = value_from_bytes(bytes.fromhex(text), data_type)
    except ValueError:
        return None
    return None if value is None else _conversion_of(data_type).json(value, data_type)


_Span = tuple[Extreme, Extreme]


@frozen
class _ValueConversion:
    """Conversions between values of a type and Delta's log; by default no text and no bound.

    Attributes:
        text: Function from a value and its type to partition text; None if there is none.
        parsed: Function from a partition text to its value.
        json: Function from a bound and its type to JSON; None if there is none.
        span: Function from a JSON bound and its type to the least and the greatest value that may
            be meant, since writers round; None if there is no safe one.
    """

    text: Callable[[Any, Any], str | None] = lambda _value, _type: None
    parsed: Callable[[str, Any], Any] = parse_text
    json: Callable[[Any, Any], Any] = lambda value, _type: value
    span: Callable[[Any, Any], _Span | None] = lambda _value, _type: None


def _conversion_of(data_type: t.DataType) -> _ValueConversion:
    return _SAYINGS.get(type(data_type), _OTHERS)


def _parse_integer(text: str, data_type: t.DataType) -> int:
    found, limit = int(text), 1 << WHOLE_BITS[data_type.root] - 1
    if not -limit <= found < limit:
        raise ValueError(text)
    return found


def _to_limited_decimal(value: Any) -> Decimal:
    """Return a decimal with a limited number of digits, so that it is cheap to compute with.

    Raises:
        ValueError: The value is not a number, or has too many digits.
    """
    found = Decimal(value)
    _, digits, exponent = found.as_tuple()
    if type(exponent) is not int or not -_MOST_PLACES <= exponent <= _MOST_PLACES - len(digits):
        raise ValueError(value)
    return found


def _parse_boolean(text: str, _type: object) -> bool:
    if text.lower() not in {"true", "false"}:
        raise ValueError(text)
    return text.lower() == "true"


def _decimal_span(value: Any, data_type: t.DecimalType) -> _Span | None:
    span = _integer_span(value, data_type.scale)
    if span is None:
        return None
    most, unit = 10**data_type.precision - 1, 10**data_type.scale
    least, greatest = max(span[0], -most), min(span[1], most)
    # delta-rs writes whole decimals as 64-bit integers, of which the last stand for all beyond.
    if least <= (-LONG_MAX - 1) * unit <= greatest:
        least = -most
    if least <= LONG_MAX * unit <= greatest:
        greatest = most
    return (least, greatest) if least <= greatest else None


def _integer_span(value: Any, scale: int) -> tuple[int, int] | None:
    """Return the whole numbers, scaled by a power of ten, that a number in the log may stand for.

    delta-rs divides decimals as floats: what may be a float stands for all that round to it.
    """
    number = _to_limited_decimal(value)
    scaled = Fraction(number) * 10**scale
    digits = "".join(map(str, number.as_tuple().digits)).rstrip("0")
    is_float = len(digits) <= _FLOAT_DIGITS or Decimal(float(number)) == number
    error = abs(scaled) / _FLOAT_PRECISION if is_float else Fraction(0)
    least, greatest = math.ceil(scaled - error), math.floor(scaled + error)
    return (least, greatest) if least <= greatest else None


def _text_span(value: Any, _type: object) -> _Span:
    text = str(value).encode()
    return text, text


def _float_span(value: Any, data_type: t.FloatType | t.DoubleType) -> _Span | None:
    """Return the numbers that a text may stand for.

    A DOUBLE column may have files from when it was FLOAT, and the log has their bounds as texts of
    FLOAT: 0.1 for 0.10000000149011612.
    """
    number = float(value)
    if math.isnan(number):
        return None
    narrow = _to_float_32(number)
    if isinstance(data_type, t.DoubleType) and narrow is not None:
        digits = len(Decimal(str(value)).normalize().as_tuple().digits)
        if digits <= _FLOAT_32_DIGITS and float(f"{narrow:.{digits}g}") == number:
            return min(number, narrow), max(number, narrow)
    return number, number


def _to_float_32(number: float) -> float | None:
    """Return the nearest float of 32 bits; None if all are smaller."""
    try:
        found: float = unpack("<f", pack("<f", number))[0]
    except OverflowError:
        return None
    return found


def _whole_span(value: Any, _type: object) -> _Span | None:
    return (value, value) if type(value) is int else _integer_span(value, 0)


def _day_span(value: Any, data_type: t.DateType) -> _Span:
    day = int(parse_text(str(value), data_type))
    return day, day


def _moment_span(value: Any, data_type: t.DataType) -> _Span:
    moment = int(_parse_timestamp(str(value), data_type))
    return moment, moment + _LAST_MICROSECOND


def _local_timestamp_text(value: int, data_type: t.TimestampType) -> str | None:
    moment = _timestamp_text(value, data_type)
    return None if moment is None else moment.replace("T", " ")


def _utc_timestamp_text(value: int, data_type: t.LocalZonedTimestampType) -> str | None:
    moment = _timestamp_text(value, data_type)
    return None if moment is None else f"{moment}Z"


def _parse_timestamp(text: str, data_type: t.DataType) -> Any:
    return parse_text(text.replace(" ", "T", 1), data_type)


def _bytes_text(value: bytes, _type: object) -> str | None:
    """Return the text of which every reader takes the bytes in UTF-8; an empty one is NULL."""
    try:
        return value.decode() or None
    except UnicodeDecodeError:
        return None


def _day_text(value: int, _type: object) -> str | None:
    return date_text(value) if _FIRST_DAY <= value <= _LAST_DAY else None


_TEXT = _ValueConversion(
    # An empty text stands for NULL.
    text=lambda value, _: str(value) or None,
    parsed=lambda text, _: text,
    span=_text_span,
)
_BYTES = _ValueConversion(
    text=_bytes_text,
    parsed=lambda text, _: text.encode(),
)
_WHOLE = _ValueConversion(
    text=lambda value, _: str(value),
    parsed=_parse_integer,
    span=_whole_span,
)
_FLOATING = _ValueConversion(
    text=lambda value, _: _float_text(value),
    json=lambda value, _: value if isinstance(value, float) and math.isfinite(value) else None,
    span=_float_span,
)
_OTHERS = _ValueConversion()
_SAYINGS: Mapping[type[t.DataType], _ValueConversion] = {
    t.CharType: _TEXT,
    t.VarCharType: _TEXT,
    t.BinaryType: _BYTES,
    t.VarBinaryType: _BYTES,
    t.BooleanType: _ValueConversion(
        text=lambda value, _: "true" if value else "false", parsed=_parse_boolean
    ),
    t.TinyIntType: _WHOLE,
    t.SmallIntType: _WHOLE,
    t.IntType: _WHOLE,
    t.BigIntType: _WHOLE,
    t.FloatType: _FLOATING,
    t.DoubleType: _FLOATING,
    t.DecimalType: _ValueConversion(
        text=lambda value, data_type: decimal_text(value, data_type.scale),
        parsed=parse_decimal,
        json=lambda value, data_type: Raw(decimal_text(int(value), data_type.scale).encode()),
        span=_decimal_span,
    ),
    t.DateType: _ValueConversion(
        text=_day_text,
        json=_day_text,
        span=_day_span,
    ),
    t.TimestampType: _ValueConversion(
        text=_local_timestamp_text,
        parsed=_parse_timestamp,
        json=lambda value, data_type: _timestamp_text(int(value), data_type),
        span=_moment_span,
    ),
    t.LocalZonedTimestampType: _ValueConversion(
        text=_utc_timestamp_text,
        parsed=_parse_timestamp,
        json=lambda value, data_type: _utc_timestamp_text(int(value), data_type),
        span=_moment_span,
    ),
}


@define
class FileActions:
    """Conversion of one table's files to actions.

    Attributes:
        state: The table at the version that adds or removes the files.
        schemas: Function that finds older schemas.
        below: The URL that relative paths start from; empty for the table's own location.
    """

    state: TableState
    schemas: Schemas
    below: str = ""
    _statistics: dict[FileNaming, StatisticsFormatter] = Factory(dict)

    def add(self, file: FileChange, *, changes_data: bool) -> Add:
        """Return the `add` action of a file.

        Args:
            file: The file.
            changes_data: Whether its rows are new to the table.

        Raises:
            UnsupportedError: Delta cannot express the file.
        """
        if file.content != "data":
            raise UnsupportedError(f"{file.path} holds {file.content}, and Delta has no such files")
        if file.sort_order_id:
            raise UnsupportedError(f"{file.path} has a sort order, and Delta's log records none")
        if file.format.lower() != "parquet":
            raise UnsupportedError(f"{file.path} is {file.format}, and Delta's files are Parquet")
        return Add(
            path=file_uri(file.path, self.below),
            partition_values=self._partition_values(file),
            size=file.file_size_in_bytes,
            modification_time=file.creation_time,
            data_change=changes_data,
            stats=self._statistics_of(FileNaming.of(file)).text(file),
        )

    def remove(self, file: FileChange, millis: int, *, changes_data: bool) -> Remove:
        """Return the `remove` action of a file.

        Args:
            file: The file.
            millis: The time of removal, Unix milliseconds.
            changes_data: Whether its rows leave the table.
        """
        return Remove(
            path=file_uri(file.path, self.below),
            deletion_timestamp=millis,
            data_change=changes_data,
            extended_file_metadata=True,
            partition_values=self._partition_values(file),
            size=file.file_size_in_bytes,
        )

    def _partition_values(self, file: FileChange) -> dict[str, str | None]:
        spec = self.state.spec_by_id(file.spec_id)
        places = {
            each.source_id: place
            for place, each in enumerate(spec.fields)
            if each.transform == "identity"
        }
        own = {each.id: each.name for each in self._schema_in_file(FileNaming.of(file)).fields}
        found: dict[str, str | None] = {}
        for column in partition_columns(self.state.schema, self.state.spec):
            if column.id not in places:
                raise UnsupportedError(
                    f"{file.path} has no value of {column.name}, which partitions the table"
                )
            value = file.partition[places[column.id]]
            found[own.get(column.id, column.name)] = partition_text(value, column.type)
        return found

    def _statistics_of(self, naming: FileNaming) -> StatisticsFormatter:
        found = self._statistics.get(naming)
        if found is None:
            schema = self._schema_in_file(naming)
            partitioning = {
                each.id for each in partition_columns(self.state.schema, self.state.spec)
            }
            found = self._statistics[naming] = StatisticsFormatter(
                schema.fields,
                frozenset(each.name for each in schema.fields if each.id in partitioning),
            )
        return found

    def _schema_in_file(self, naming: FileNaming) -> Schema:
        """Return a file's schema, with the column names in the file."""
        return naming.schema(self.schemas([naming.schema_id])[naming.schema_id])
