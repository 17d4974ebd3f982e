"""Values as a Delta log writes them: partition values and the statistics of a file.

Source: the Delta transaction protocol, "Partition Value Serialization" and "Per-file Statistics".
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from attrs import frozen
from msgspec import Raw, UnsetType

from ledger.model import types as t
from ledger.model.errors import InvalidInputError, UnsupportedError
from ledger.model.file_change import FileChange, PartitionValue
from ledger.model.transforms.calendar import date_text, moment_text
from ledger.model.transforms.values import Value, decimal_text, decode_value
from ledger.planning.bound_value import value_from_bytes

_MICROSECONDS = 6
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896
"""The years 1 to 9999, which every reader has."""
_MICROS_A_DAY = 86_400_000_000
_WITHOUT_BOUNDS = frozenset({"BOOLEAN", "BINARY", "VARBINARY"})
_ENCODER = msgspec.json.Encoder()


def partition_text(value: PartitionValue, data_type: t.DataType) -> str | None:
    """Return a partition value as the log writes it; None for NULL.

    Args:
        value: As a file change has it.
        data_type: The column's type.

    Raises:
        UnsupportedError: Delta cannot write it.

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
    text = _text(decoded, data_type)
    if text is None:
        raise UnsupportedError(f"Delta's log cannot write {value!r} as a {data_type.root}")
    return text


def _text(  # noqa: PLR0911 - one case a kind
    value: Any, data_type: t.DataType
) -> str | None:
    match data_type:
        case t.CharType() | t.VarCharType():
            # An empty text stands for NULL.
            return str(value) or None
        case t.BooleanType():
            return "true" if value else "false"
        case t.FloatType() | t.DoubleType():
            return _float_text(value)
        case t.DecimalType(scale=scale):
            return decimal_text(value, scale)
        case t.DateType():
            return date_text(value) if _FIRST_DAY <= value <= _LAST_DAY else None
        case t.TimestampType():
            moment = _moment(value, data_type)
            return None if moment is None else moment.replace("T", " ")
        case t.LocalZonedTimestampType():
            moment = _moment(value, data_type)
            return None if moment is None else f"{moment}Z"
        case t.TinyIntType() | t.SmallIntType() | t.IntType() | t.BigIntType():
            return str(value)
        case _:
            return None


def _float_text(value: float) -> str:
    if math.isfinite(value):
        return repr(value)
    return "NaN" if math.isnan(value) else f"{'-' if value < 0 else ''}Infinity"


def _moment(value: int, data_type: t.TimestampType | t.LocalZonedTimestampType) -> str | None:
    if data_type.precision > _MICROSECONDS:
        return None
    if not _FIRST_DAY <= value // _MICROS_A_DAY <= _LAST_DAY:
        return None
    return moment_text(value, _MICROSECONDS)


@frozen
class StatisticsOf:
    """A file's counts and bounds, by the names that the file holds.

    Attributes:
        fields: Those of the schema whose names the file uses; bounds are of their types.
        partitioning: The names of those that partition the table, which have no statistics.
    """

    fields: tuple[t.DataField, ...]
    partitioning: frozenset[str]

    def text(self, file: FileChange) -> str:
        """Return the statistics of a file as JSON.

        Bounds may be wider than the values, so that no reader answers by them instead of reading.
        """
        columns = [each for each in self.fields if each.name not in self.partitioning]
        found: dict[str, Any] = {"numRecords": file.record_count, "tightBounds": False}
        for key, bounds in (("minValues", file.lower_bounds), ("maxValues", file.upper_bounds)):
            if not isinstance(bounds, UnsetType) and bounds:
                found[key] = self._bounds(columns, bounds)
        nulls = file.null_value_counts
        if not isinstance(nulls, UnsetType) and nulls:
            found["nullCount"] = self._nulls(columns, nulls)
        return _ENCODER.encode(found).decode()

    def _bounds(self, fields: Iterable[t.DataField], bounds: Mapping[int, str]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for each in fields:
            if isinstance(each.type, t.RowType):
                inside = self._bounds(each.type.fields, bounds)
                if inside:
                    found[each.name] = inside
            elif each.id in bounds:
                value = _bound(bounds[each.id], each.type)
                if value is not None:
                    found[each.name] = value
        return found

    def _nulls(self, fields: Iterable[t.DataField], nulls: Mapping[int, int]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for each in fields:
            if isinstance(each.type, t.RowType):
                inside = self._nulls(each.type.fields, nulls)
                if inside:
                    found[each.name] = inside
            elif each.id in nulls and not each.type.depth:
                found[each.name] = nulls[each.id]
        return found


def _bound(text: str, data_type: t.DataType) -> Any:
    """Return a bound as JSON has it; None where Delta has none, or none can be written."""
    if data_type.depth or data_type.root in _WITHOUT_BOUNDS:
        return None
    try:
        value = value_from_bytes(bytes.fromhex(text), data_type)
    except ValueError:
        return None
    return None if value is None else _json(value, data_type)


def _json(value: Value, data_type: t.DataType) -> Any:
    match data_type:
        case t.FloatType() | t.DoubleType():
            return value if isinstance(value, float) and math.isfinite(value) else None
        case t.DecimalType(scale=scale):
            return Raw(decimal_text(int(value), scale).encode())
        case t.TimestampType() | t.LocalZonedTimestampType():
            moment = _moment(int(value), data_type)
            zone = "Z" if isinstance(data_type, t.LocalZonedTimestampType) else ""
            return None if moment is None else f"{moment}{zone}"
        case t.DateType():
            return _text(value, data_type)
        case _:
            return value
