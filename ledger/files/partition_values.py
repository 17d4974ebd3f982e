"""Partition values of files to register, from paths and rows.

A partition column that is in the file as well has to have the value of the path: some readers take
it from the path and others from the file, so they would disagree about the same row.

Source: Paimon's PartitionPathUtils.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import date, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any
from uuid import UUID

from msgspec import UNSET, UnsetType

from ledger.files.bounds import (
    ColumnFacts,
    Extreme,
    FooterColumn,
    convert_time_unit,
    lower_bound,
    upper_bound,
)
from ledger.model import types as t
from ledger.model.errors import InvalidChangeError, UnsupportedError
from ledger.model.file_change import PartitionValue
from ledger.model.iceberg_layout import PartitionField, PartitionSpec
from ledger.model.single_values import WHOLE_BITS, Value, decode_value, encode_value
from ledger.model.transforms import (
    Bucket,
    Identity,
    Period,
    Transform,
    Truncate,
    Void,
    transform_of,
)
from ledger.model.types import CharType, DataField, DataType, DateType, UnknownType, VarCharType
from ledger.model.types.text import format_type

_WHOLE = re.compile(r"-?[0-9]{1,40}")
_DECIMAL = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TIME = re.compile(r"([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]{1,9}))?)?")
_MOMENT = re.compile(rf"({_DATE.pattern})(?:[T ]({_TIME.pattern}))?(?:Z|\+00:00)?")
_PERIODS = {
    "year": re.compile(r"(-?[0-9]{1,6})"),
    "month": re.compile(r"(-?[0-9]{1,6})-([0-9]{2})"),
    "hour": re.compile(rf"({_DATE.pattern})-([0-9]{{2}})"),
}
_EPOCH = date(1970, 1, 1)
_BITS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}
_LAST_MONTH, _LAST_HOUR, _LAST_MINUTE = 12, 23, 59


def value_of(text: str, data_type: DataType) -> PartitionValue:
    """Parse a partition value from a path's text; the result has the form of `PartitionValue`.

    A DATE is a calendar day or, in Paimon's older paths, its number since 1970. Timestamps get
    their seconds, and lose trailing zeros of the fraction; those of a TIMESTAMP_LTZ are UTC.

    Args:
        text: The unescaped text.
        data_type: The column's type.

    Raises:
        ValueError: The text is not a value of the type.
        UnsupportedError: A column of that type cannot partition files by a path.

    Example:
        >>> from ledger.model.types import DateType, DecimalType
        >>> value_of("15706", DateType()), value_of("2.5", DecimalType(5, 2))
        ('2013-01-01', '2.50')
    """
    read = _READERS.get(data_type.root)
    if read is None:
        raise UnsupportedError(
            f"{format_type(data_type)} cannot be read from a path; name the file's partition "
            "values instead"
        )
    return read(text, data_type)


def parse_transformed_value(text: str, transform: Transform, source: DataType) -> PartitionValue:
    """Parse the value of a transformed partition field from a path's text in Iceberg's form.

    Args:
        text: The unescaped text, not that of NULL.
        transform: The field's transform, not void.
        source: The type of its source column.

    Raises:
        ValueError: The text is not a value of the type, or not a result of the transform.
        UnsupportedError: As `value_of`.

    Example:
        >>> from ledger.model.transforms import transform_of
        >>> from ledger.model.types import TimestampType
        >>> parse_transformed_value("2017-12-01-10", transform_of("hour"), TimestampType())
        420034
    """
    match transform:
        case Identity():
            return value_of(text, source)
        case Period(unit="day"):
            return value_of(text, DateType())
        case Period():
            return _parse_period(text, transform)
        case Bucket(count=count):
            number = int(text) if _WHOLE.fullmatch(text) else -1
            if not 0 <= number < count:
                raise ValueError(text)
            return number
    value = value_of(text, source)
    decoded = decode_value(value, source)
    if transform.apply(decoded, source) != decoded:
        raise ValueError(text)
    return value


def _parse_period(text: str, period: Period) -> int:
    found = _PERIODS[period.unit].fullmatch(text)
    if not found:
        raise ValueError(text)
    if period.unit == "hour":
        if int(found[2]) > _LAST_HOUR:
            raise ValueError(text)
        return (date.fromisoformat(found[1]) - _EPOCH).days * 24 + int(found[2])
    years = int(found[1]) - _EPOCH.year
    if period.unit == "year":
        return years
    if not 1 <= int(found[2]) <= _LAST_MONTH:
        raise ValueError(text)
    return years * 12 + int(found[2]) - 1


def normalize_partition_value(
    value: PartitionValue, transform: Transform, source: DataType
) -> PartitionValue:
    """Normalize a partition value to the form in file changes, so that equal values compare equal.

    Args:
        value: The value in that form or an equivalent one, such as "1" for 1, or the text of a
            year, month or hour in partition paths, such as "2024-02" for month 649.
        transform: The partition field's transform.
        source: The type of its source column.

    Raises:
        ValueError: It is not a value of the field.
    """
    if value is None:
        return None
    if isinstance(transform, Identity | Truncate) and source.root in _READERS:
        return value_of(str(value), source)
    if isinstance(transform, Period) and isinstance(value, str):
        period = _PERIODS.get(transform.unit)
        if period is not None and period.fullmatch(value):
            return _parse_period(value, transform)
        if period is not None and _WHOLE.fullmatch(value):
            value = int(value)
    result = transform.result_type(source)
    return encode_value(decode_value(value, result), result)


def _unchanged_text(text: str, _type: Any) -> str:
    return text


def _parse_boolean(text: str, _type: Any) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError(text)
    return text.lower() == "true"


def _parse_integer(text: str, data_type: Any) -> int:
    if not _WHOLE.fullmatch(text):
        raise ValueError(text)
    number = int(text)
    limit = 1 << _BITS[data_type.root] - 1
    if not -limit <= number < limit:
        raise ValueError(text)
    return number


def _parse_decimal(text: str, data_type: Any) -> str:
    found = _DECIMAL.fullmatch(text)
    if not found:
        raise ValueError(text)
    sign, whole, fraction = found[1], found[2].lstrip("0"), found[3] or ""
    kept, lost = fraction[: data_type.scale], fraction[data_type.scale :]
    if not whole + fraction + found[2] or lost.strip("0"):
        raise ValueError(text)
    if len(whole) > data_type.precision - data_type.scale:
        raise ValueError(text)
    digits = kept.ljust(data_type.scale, "0")
    minus = "-" if sign == "-" and (whole + digits).strip("0") else ""
    return minus + (whole or "0") + (f".{digits}" if digits else "")


def _parse_float(text: str, _type: Any) -> str:
    number = float(text)
    if math.isfinite(number):
        return repr(number)
    return "NaN" if math.isnan(number) else f"{'-' if number < 0 else ''}Infinity"


def _parse_date(text: str, _type: Any) -> str:
    if _WHOLE.fullmatch(text):
        try:
            return (_EPOCH + timedelta(days=int(text))).isoformat()
        except OverflowError as error:
            raise ValueError(text) from error
    if not _DATE.fullmatch(text):
        raise ValueError(text)
    return date.fromisoformat(text).isoformat()


def _parse_time(text: str, _type: Any) -> str:
    if _WHOLE.fullmatch(text):
        seconds, millis = divmod(int(text), 1000)
        hours, rest = divmod(seconds, 3600)
        text = f"{hours:02d}:{rest // 60:02d}:{rest % 60:02d}.{millis:03d}"
    found = _TIME.fullmatch(text)
    if not found:
        raise ValueError(text)
    hour, minute, second, fraction = found.groups()
    if int(hour) > _LAST_HOUR or int(minute) > _LAST_MINUTE or int(second or 0) > _LAST_MINUTE:
        raise ValueError(text)
    tail = (fraction or "").rstrip("0")
    return f"{hour}:{minute}:{second or '00'}" + (f".{tail}" if tail else "")


def _parse_timestamp(text: str, data_type: Any) -> str:
    found = _MOMENT.fullmatch(text)
    if not found:
        raise ValueError(text)
    time = _parse_time(found[2], data_type) if found[2] else "00:00:00"
    return f"{_parse_date(found[1], data_type)}T{time}"


def _parse_uuid(text: str, _type: Any) -> str:
    return str(UUID(text))


_READERS: dict[str, Callable[[str, Any], PartitionValue]] = {
    **dict.fromkeys(("CHAR", "VARCHAR"), _unchanged_text),
    **dict.fromkeys(_BITS, _parse_integer),
    "BOOLEAN": _parse_boolean,
    "DECIMAL": _parse_decimal,
    **dict.fromkeys(("FLOAT", "DOUBLE"), _parse_float),
    "DATE": _parse_date,
    "TIME": _parse_time,
    **dict.fromkeys(("TIMESTAMP", "TIMESTAMP_LTZ"), _parse_timestamp),
    "UUID": _parse_uuid,
}


DEFAULT_NAME = "__DEFAULT_PARTITION__"
"""Text for NULL in Paimon's paths by default; the option `partition.default-name` changes it."""

ICEBERG_NULL = "null"
"""Text for NULL in Iceberg's paths, which also write the text `null` so."""

HIVE_DEFAULT_NAME = "__HIVE_DEFAULT_PARTITION__"
_SPECIAL = re.compile(r"""[\x00-\x1f\x7f"#%'*/:=?\\{}\[\]^]""")
_ESCAPED = re.compile(r"%([0-9A-Fa-f]{2})")


def escape_path(text: str) -> str:
    """Return a partition key or value escaped for a path, as Paimon and Hive do.

    Example:
        >>> escape_path("a/b=ü")
        'a%2Fb%3Dü'
    """
    return _SPECIAL.sub(lambda found: f"%{ord(found[0]):02X}", text)


def unescape_path(text: str) -> str:
    """Return the text of an escaped key or value; a % that begins no escape is kept."""
    return _ESCAPED.sub(lambda found: chr(int(found[1], 16)), text)


def path_keys(path: str) -> dict[str, str]:
    """Return the partition keys and values of a path's `key=value` folders, unescaped.

    Raises:
        InvalidChangeError: Two folders name the same key.

    Example:
        >>> path_keys("region=eu/day=2013-01-01/a=b.parquet")
        {'region': 'eu', 'day': '2013-01-01'}
    """
    found: dict[str, str] = {}
    for folder in path.split("/")[:-1]:
        key, sign, value = folder.partition("=")
        if not sign or not key:
            continue
        name = unescape_path(key)
        if name in found:
            raise InvalidChangeError(
                f"path {path} names partition key {name!r} twice; move the file, or name its "
                "partition values yourself"
            )
        found[name] = unescape_path(value)
    return found


def partition_values(
    path: str,
    spec: PartitionSpec,
    types: Mapping[int, DataType],
    *,
    default_name: str = DEFAULT_NAME,
) -> tuple[PartitionValue | UnsetType, ...]:
    """Return a file's partition values from its path, in the spec's order.

    Args:
        path: Path of the file; folders that the spec does not name are ignored.
        spec: The spec that names the keys. Results of transforms are in the form of Iceberg's
            paths.
        types: Column types by field id.
        default_name: Text for NULL, in addition to Hive's; Iceberg's `null` counts for types whose
            values are not text.

    Returns:
        UNSET for a field that no folder names.

    Raises:
        InvalidChangeError: A text is not a value of its field.
        UnsupportedError: A column's type has no text form.

    Example:
        >>> from ledger.model.iceberg_layout import PartitionField
        >>> from ledger.model.types import DateType
        >>> spec = PartitionSpec(0, (PartitionField("day", "identity", 3, field_id=1000),))
        >>> partition_values("day=2013-01-01/x.parquet", spec, {3: DateType()})
        ('2013-01-01',)
    """
    if not spec.fields:
        return ()
    found = path_keys(path)
    nulls = (default_name, HIVE_DEFAULT_NAME)
    values: list[PartitionValue | UnsetType] = []
    for field in spec.fields:
        text = found.get(field.name)
        transform = transform_of(field.transform)
        if isinstance(transform, Void) or text in nulls:
            values.append(None)
        elif text is None:
            values.append(UNSET)
        else:
            source = types.get(field.source_id, UnknownType())
            values.append(_parse_hive_value(path, field.name, text, transform, source))
    return tuple(values)


def _parse_hive_value(
    path: str, key: str, text: str, transform: Transform, source: DataType
) -> PartitionValue:
    result = transform.result_type(source)
    if text == ICEBERG_NULL and not isinstance(result, CharType | VarCharType):
        return None
    try:
        return parse_transformed_value(text, transform, source)
    except UnsupportedError as error:
        raise UnsupportedError(f"path {path}, partition key {key!r}: {error}") from error
    except (ValueError, OverflowError) as error:
        what = format_type(source)
        raise InvalidChangeError(
            f"path {path}, partition key {key!r}: {text!r} is no "
            f"{what if isinstance(transform, Identity) else f'{transform.text} of a {what}'}; "
            "move the file, or name its partition values yourself"
        ) from error


def partition_path(
    values: Sequence[PartitionValue],
    spec: PartitionSpec,
    *,
    default_name: str = DEFAULT_NAME,
) -> str:
    """Return the folders of a partition, `key=value/` for each field of the spec.

    NULL and blank text become `default_name`, as in Paimon. `partition_values` reads it back.

    Example:
        >>> from ledger.model.iceberg_layout import PartitionField
        >>> spec = PartitionSpec(0, (PartitionField("k", "identity", 3, field_id=1000),))
        >>> partition_path(["a/b"], spec)
        'k=a%2Fb/'
    """
    return "".join(
        f"{escape_path(field.name)}={escape_path(_path_text_of_value(value, default_name))}/"
        for field, value in zip(spec.fields, values, strict=True)
    )


def _path_text_of_value(value: PartitionValue, default_name: str) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    text = "" if value is None else str(value)
    return text if text.strip() else default_name


class UnknownValueReason(Enum):
    """Reason why rows of a file have no single known partition value."""

    UNKNOWN = "unknown"
    SEVERAL = "several"


def single_result(
    facts: ColumnFacts, found: t.DataType, wanted: t.DataType, transform: Transform
) -> PartitionValue | UnknownValueReason:
    """Return the single result of a transform for all rows of a file, from its statistics.

    Floating-point columns never have one: their statistics leave NaN out and do not distinguish
    0.0 and -0.0.

    Args:
        facts: The column's statistics in the file.
        found: The file's type, which gives the unit.
        wanted: The column's type in the table.
        transform: The partition field's transform.

    Example:
        >>> from ledger.model.transforms import transform_of
        >>> facts = ColumnFacts(9, 0, 17_501, 17_502)
        >>> single_result(facts, t.DateType(), t.DateType(), transform_of("month"))
        575
        >>> single_result(facts, t.DateType(), t.DateType(), transform_of("day"))
        <UnknownValueReason.SEVERAL: 'several'>
    """
    if not facts.value_count or facts.null_count is None:
        return UnknownValueReason.UNKNOWN
    if facts.null_count:
        return None if facts.null_count == facts.value_count else UnknownValueReason.SEVERAL
    low = _extreme_to_value(facts.lower, found, wanted, upper=False)
    high = _extreme_to_value(facts.upper, found, wanted, upper=True)
    if low is None or high is None:
        return UnknownValueReason.UNKNOWN
    if low != high and not transform.preserves_order:
        return UnknownValueReason.UNKNOWN
    first, last = transform.apply(low, wanted), transform.apply(high, wanted)
    if first == last:
        return encode_value(first, transform.result_type(wanted))
    # Writers may cut the bounds of text and bytes, so these need not be values of a row.
    return (
        UnknownValueReason.UNKNOWN if isinstance(low, str | bytes) else UnknownValueReason.SEVERAL
    )


def _extreme_to_value(
    extreme: Extreme | None, found: t.DataType, wanted: t.DataType, *, upper: bool
) -> Value | None:
    """Return a minimum or maximum in the form of transforms; None if that is not safe."""
    if extreme is None or isinstance(extreme, float) or not _is_same_kind(found, wanted):
        return None
    if isinstance(extreme, bool):
        return extreme
    if isinstance(extreme, int):
        return convert_time_unit(extreme, found, wanted, upper=upper)
    if not isinstance(wanted, t.CharType | t.VarCharType):
        return extreme
    try:
        return extreme.decode()
    except UnicodeDecodeError:
        return None


_TEXTS = ("CHAR", "VARCHAR")
_BYTES = ("BINARY", "VARBINARY", "UUID")


def _is_same_kind(found: t.DataType, wanted: t.DataType) -> bool:
    """Return True if a value means the same in the file's type and the column's."""
    if isinstance(found, t.DecimalType) and isinstance(wanted, t.DecimalType):
        return found.scale == wanted.scale
    kinds = (tuple(WHOLE_BITS), _TEXTS, _BYTES)
    return found.root == wanted.root or any(
        found.root in each and wanted.root in each for each in kinds
    )


_EPOCH_ORDINAL = date(1970, 1, 1).toordinal()


def check_single_valued(
    file: str, column: FooterColumn, field: t.DataField, value: PartitionValue
) -> None:
    """Check that a file's statistics of a partition column agree with its partition value.

    Without statistics, and for types whose bounds are not exact, nothing is checked.

    Raises:
        InvalidChangeError: The file holds another value.
    """
    facts = column.facts
    if facts is None or column.type is None or not facts.value_count:
        return
    if value is None:
        fits = facts.null_count in (None, facts.value_count)
    else:
        fits = _all_rows_equal(facts, column.type, field.type, value)
    if not fits:
        raise InvalidChangeError(
            f"file {file}: its path says {field.name}={value}, but its column {field.name!r} holds "
            "other values; split the file by its partition column, or move it"
        )


def _all_rows_equal(
    facts: ColumnFacts, found: t.DataType, wanted: t.DataType, value: PartitionValue
) -> bool:
    expected = _to_statistics_form(value, wanted)
    if expected is None:
        return True
    if facts.null_count == facts.value_count:
        return False
    if facts.lower is None or facts.upper is None:
        return not facts.null_count
    same = ColumnFacts(1, 0, expected, expected)
    return not facts.null_count and (
        lower_bound(facts, found, wanted) == lower_bound(same, wanted, wanted)
        and upper_bound(facts, found, wanted) == upper_bound(same, wanted, wanted)
    )


def _to_statistics_form(value: PartitionValue, wanted: t.DataType) -> Extreme | None:
    """Return a partition value in the form of footer statistics; None for types without one."""
    match wanted:
        case t.DateType():
            return date.fromisoformat(str(value)).toordinal() - _EPOCH_ORDINAL
        case t.DecimalType():
            return int("".join(map(str, Decimal(str(value)).as_tuple().digits))) * (
                -1 if str(value).startswith("-") else 1
            )
        case t.CharType() | t.VarCharType():
            return str(value).encode()
        case _ if isinstance(value, int):
            return value
        case _:
            return None


def partition_value(
    file: str,
    field: PartitionField,
    said: PartitionValue | UnsetType,
    source: DataField | None,
    stored: Mapping[int, FooterColumn],
) -> PartitionValue:
    """Return a file's value of a partition field, from its path and its statistics.

    The path's value has to be that of all rows. Without one, the statistics have to show a single
    value.

    Args:
        file: The file's name, for errors.
        field: A field of the spec that the file is written with.
        said: The value in the file's path; UNSET if the path has none.
        source: The column that the field derives from; None if it was dropped.
        stored: The file's columns by field id.

    Raises:
        InvalidChangeError: The rows have several values, or values other than the path's, or
            neither path nor statistics give the value.
    """
    transform = transform_of(field.transform)
    if source is None or isinstance(transform, Void):
        return None
    column = stored.get(source.id)
    if isinstance(transform, Identity) and not isinstance(said, UnsetType):
        if column is None:
            return said
        if said == ICEBERG_NULL and _value_by_statistics(column, source, transform) is None:
            return None
        check_single_valued(file, column, source, said)
        return said
    found = _value_by_statistics(column, source, transform)
    what = f"partition field {field.name} ({field.transform} of {source.name})"
    if found is UnknownValueReason.SEVERAL:
        raise InvalidChangeError(
            f"file {file}: its rows have several values of {what}; split the file by it, or append "
            "a FileChange of a spec that it fits, with spec_id= and partition="
        )
    if isinstance(found, UnknownValueReason):
        if isinstance(said, UnsetType):
            raise InvalidChangeError(
                f"file {file}: neither its statistics nor a folder {field.name}=... say its value "
                f"of {what}; write it with statistics and one value, move it into such a folder, "
                "or append a FileChange with partition="
            )
        return said
    if said not in (UNSET, found) and _has_unique_path_escape(source):
        raise InvalidChangeError(
            f"file {file}: its path says {field.name}={said}, but by its statistics it has {found} "
            f"as {what}; move the file"
        )
    return found


def _has_unique_path_escape(source: DataField) -> bool:
    # Each format escapes texts in paths in its own way, and only the rows show which one it was.
    return not isinstance(source.type, CharType | VarCharType)


def _value_by_statistics(
    column: FooterColumn | None, source: DataField, transform: Transform
) -> PartitionValue | UnknownValueReason:
    if column is None:
        # Readers see NULL in a column that the file lacks, unless the column has a default.
        absent = not isinstance(transform, Identity) and source.initial_default is None
        return None if absent else UnknownValueReason.UNKNOWN
    if column.facts is None or column.type is None:
        return UnknownValueReason.UNKNOWN
    return single_result(column.facts, column.type, source.type, transform)
