"""Partition values as text.

Source: Paimon's partition paths (`partition.legacy-name`, `partition.default-name`).
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
from attrs import field, frozen

from ledger.files.partition_values import DEFAULT_NAME, escape_path
from ledger.model.errors import InvalidInputError, UnsupportedError
from ledger.model.file_change import PartitionValue, sidecar_location_of
from ledger.model.iceberg_layout import PartitionSpec
from ledger.model.schema import Schema
from ledger.model.types import (
    DataType,
    DateType,
    LocalZonedTimestampType,
    TimestampType,
    TimeType,
)

_EPOCH_DAY = dt.date(1970, 1, 1).toordinal()
_DAY_AND_TIME = re.compile(
    r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?(?:Z|\+00:00)?"
)
_TIME = re.compile(r"(\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?")


@frozen
class ValuePrefix:
    """Beginning of a partition value's JSON; `is_whole` if it is all of it."""

    text: str
    is_whole: bool


_BARE = re.compile(r"-?[0-9]+|true|false")


@frozen
class PartitionText:
    """A table's text encoding of partition values.

    Attributes:
        types: The types of the partition columns, by name. A partition field that is no column
            (a bucket, a year) has none and its value is written unchanged.
        legacy_name: Option `partition.legacy-name`, true by default: Paimon's internal value, such
            as a date's day number since 1970; if false, the result of a cast to text.
        default_name: Option `partition.default-name`: the text for NULL and for blank text.
    """

    types: Mapping[str, DataType] = field(hash=False)
    legacy_name: bool = True
    default_name: str = DEFAULT_NAME

    @classmethod
    def of(cls, schema: Schema) -> PartitionText:
        """Return the encoding of the table that has this schema."""
        return cls(
            types={each.name: each.type for each in schema.fields},
            legacy_name=schema.options.get("partition.legacy-name", "true").lower() == "true",
            default_name=schema.options.get("partition.default-name", DEFAULT_NAME),
        )

    def spec(self, names: Sequence[str], values: Sequence[PartitionValue]) -> dict[str, str]:
        """Return a partition's spec: each partition field's name and the text of its value.

        Args:
            names: The partition fields, in order.
            values: A file's partition, in the same order.

        Raises:
            InvalidInputError: A value does not have its column's type, or one is missing.

        Example:
            >>> days = PartitionText.of(Schema.of({"day": "DATE", "hour": "INT"}))
            >>> days.spec(["day", "hour"], ["2024-01-01", None])
            {'day': '19723', 'hour': '__DEFAULT_PARTITION__'}
        """
        if len(names) != len(values):
            raise InvalidInputError(
                f"partition {list(values)} does not fit its fields {list(names)}: "
                "give one value for each, null where there is none"
            )
        return {
            name: self._value_text(name, value) for name, value in zip(names, values, strict=True)
        }

    def is_unchanged(self, name: str) -> bool:
        """Return whether the text of a field's numbers and ordinary texts is the value's own."""
        return self._form_of(name) in (None, _unchanged_text)

    def value_prefixes(self, name: str, text: str) -> tuple[ValuePrefix, ...]:
        """Return with what the JSON of every value begins that has a text, without sidecars.

        Args:
            name: The partition field.
            text: The text, as from `spec`.

        Example:
            >>> days = PartitionText.of(Schema.of({"day": "DATE", "hour": "INT"}))
            >>> [each.text for each in days.value_prefixes("hour", "7")]
            ['"7"', '7']
            >>> [each.text for each in days.value_prefixes("day", "19723")]
            ['"2024']
        """
        if text == self.default_name:
            return (ValuePrefix("", is_whole=False),)
        form = self._form_of(name)
        if form is None or form is _unchanged_text:
            quoted = ValuePrefix(msgspec.json.encode(text).decode(), is_whole=True)
            is_bare = _BARE.fullmatch(text) is not None
            return (quoted, ValuePrefix(text, is_whole=True)) if is_bare else (quoted,)
        begins = _BEGINNINGS[form](text)
        return tuple(ValuePrefix(f'"{each}', is_whole=False) for each in sorted(begins))

    def _value_text(self, name: str, value: PartitionValue) -> str:
        if value is None or (isinstance(value, str) and not value.strip()):
            return self.default_name
        if sidecar_location_of(value) is not None:
            # An erased value is NULL, as engines find it.
            return self.default_name
        if isinstance(value, bool):
            return "true" if value else "false"
        form = self._form_of(name)
        if form is None:
            return str(value)
        data_type = self.types[name]
        try:
            return form(str(value), data_type)
        except (ValueError, AttributeError) as error:
            raise InvalidInputError(
                f"partition value {value!r} of {name} is no {data_type.root}; write it in ISO form"
            ) from error

    def _form_of(self, name: str) -> _Form | None:
        """Return the function that makes a field's text; None where that is the value's own."""
        forms = _BY_TYPE.get(type(self.types[name])) if name in self.types else None
        return None if forms is None else forms[0 if self.legacy_name else 1]


def key_places(schema: Schema, spec: PartitionSpec) -> tuple[int, ...]:
    """Return the positions of the partition keys' values in a spec's files, in key order.

    Raises:
        UnsupportedError: A key's value is not among them.

    Example:
        >>> from ledger.model.iceberg_layout import PartitionField
        >>> schema = Schema.of({"id": "INT", "day": "DATE"}, partition_keys=["day"])
        >>> shard = PartitionField("id_bucket_8", "bucket[8]", 0, field_id=1001)
        >>> day = PartitionField("day", "identity", 1, field_id=1000)
        >>> key_places(schema, PartitionSpec(1, (shard, day)))
        (1,)
    """
    places = {
        each.source_id: place
        for place, each in enumerate(spec.fields)
        if each.transform == "identity"
    }
    return tuple(_key_position(schema, name, spec, places) for name in schema.partition_keys)


def _key_position(schema: Schema, name: str, spec: PartitionSpec, places: Mapping[int, int]) -> int:
    place = places.get(schema.field(name).id)
    if place is None:
        raise UnsupportedError(
            f"files of partition spec {spec.spec_id} are not partitioned by {name}, which is a "
            "partition key of the table; rewrite them under a spec that has it"
        )
    return place


def partition_path(spec: Mapping[str, str]) -> str:
    """Return a spec as a relative path; empty for a table without partitions.

    Different specs have different paths, so that a path identifies its spec.

    Example:
        >>> partition_path({"day": "19723", "kind": "a/b"})
        'day=19723/kind=a%2Fb'
    """
    return "/".join(f"{escape_path(name)}={escape_path(value)}" for name, value in spec.items())


def _epoch_day(text: str, _: Any) -> str:
    return str(dt.date.fromisoformat(text).toordinal() - _EPOCH_DAY)


def _unchanged_text(text: str, _: Any) -> str:
    return text


def _millis_of_day(text: str, _: Any) -> str:
    hours, minutes, seconds, fraction = _match_groups(_TIME, text)
    whole = (int(hours) * 60 + int(minutes)) * 60 + int(seconds or 0)
    return str(whole * 1000 + int((fraction or "").ljust(9, "0")[:3]))


def _time_of_day(text: str, data_type: TimeType) -> str:
    hours, minutes, seconds, fraction = _match_groups(_TIME, text)
    digits = (fraction or "").ljust(9, "0")[: min(data_type.precision, 3)]
    # Paimon's cast drops trailing zeros, but keeps at least one digit.
    shown = f".{digits.rstrip('0') or '0'}" if digits else ""
    return f"{hours}:{minutes}:{seconds or '00'}{shown}"


def _java_local_date_time(text: str, _: Any) -> str:
    day, minutes, seconds, fraction = _match_groups(_DAY_AND_TIME, text)
    digits = (fraction or "").ljust(9, "0").rstrip("0")
    # Java's LocalDateTime omits zero seconds, and prints fractions in groups of three digits.
    digits = digits.ljust(-(-len(digits) // 3) * 3, "0")
    if not digits and seconds in (None, "00"):
        return f"{day}T{minutes}"
    return f"{day}T{minutes}:{seconds or '00'}{f'.{digits}' if digits else ''}"


def _sql_timestamp(text: str, data_type: TimestampType | LocalZonedTimestampType) -> str:
    day, minutes, seconds, fraction = _match_groups(_DAY_AND_TIME, text)
    digits = (fraction or "").ljust(9, "0").rstrip("0").ljust(data_type.precision, "0")
    return f"{day} {minutes}:{seconds or '00'}{f'.{digits}' if digits else ''}"


def _match_groups(pattern: re.Pattern[str], text: str) -> tuple[str, str, str | None, str | None]:
    found = pattern.fullmatch(text)
    if found is None:
        raise ValueError(text)
    first, second, third, fourth = found.groups()
    return first, second, third, fourth


def _years_of_day_number(text: str) -> set[str]:
    """Return how the date of a day number begins, in each of ISO's forms."""
    try:
        day = dt.date.fromordinal(int(text) + _EPOCH_DAY)
    except (ValueError, OverflowError):
        return set()
    return {f"{day.year:04d}", f"{day.isocalendar().year:04d}"}


def _minute_of_millis(text: str) -> set[str]:
    try:
        minutes = int(text) // 60_000
    except ValueError:
        return set()
    return {f"{minutes // 60:02d}:{minutes % 60:02d}"}


def _first_minute(text: str) -> set[str]:
    return {text[:5]} if _TIME.fullmatch(text) else set()


def _first_day(text: str) -> set[str]:
    return {text[:10]} if _DAY_AND_TIME.fullmatch(text) else set()


_Form = Callable[[str, Any], str]
_BY_TYPE: dict[type[DataType], tuple[_Form, _Form]] = {
    DateType: (_epoch_day, _unchanged_text),
    TimeType: (_millis_of_day, _time_of_day),
    TimestampType: (_java_local_date_time, _sql_timestamp),
    LocalZonedTimestampType: (_java_local_date_time, _sql_timestamp),
}
_BEGINNINGS: dict[_Form, Callable[[str], set[str]]] = {
    _epoch_day: _years_of_day_number,
    _millis_of_day: _minute_of_millis,
    _time_of_day: _first_minute,
    _java_local_date_time: _first_day,
    _sql_timestamp: _first_day,
}
"""By form, a function from a text to the beginnings of the values that the form shows so."""
