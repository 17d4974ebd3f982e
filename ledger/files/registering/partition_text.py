"""One partition value from its text in a path, by the type of its column and its transform."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from datetime import date, timedelta
from typing import Any
from uuid import UUID

from ledger.model.errors import UnsupportedError
from ledger.model.file_change import PartitionValue
from ledger.model.transforms import Bucket, Identity, Period, Transform, Truncate
from ledger.model.transforms.values import decode_value, encode_value
from ledger.model.types import DataType, DateType
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
    """Return the value that a path's text stands for; see `PartitionValue` for its form.

    A DATE is a calendar day or, as Paimon's older paths have it, its number since 1970. Moments
    have their seconds, and no zeros at the end of a fraction; those of a TIMESTAMP_LTZ are UTC.

    Args:
        text: Unescaped.
        data_type: The column's type.

    Raises:
        ValueError: The text is no such value.
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


def transformed_value_of(text: str, transform: Transform, source: DataType) -> PartitionValue:
    """Return the value of a partition field from its text, in the form that Iceberg's paths have.

    Args:
        text: Unescaped, and not NULL's.
        transform: The field's; not void.
        source: The type of its column.

    Raises:
        ValueError: The text is no such value, or no result of the transform.
        UnsupportedError: As `value_of`.

    Example:
        >>> from ledger.model.transforms import transform_of
        >>> from ledger.model.types import TimestampType
        >>> transformed_value_of("2017-12-01-10", transform_of("hour"), TimestampType())
        420034
    """
    match transform:
        case Identity():
            return value_of(text, source)
        case Period(unit="day"):
            return value_of(text, DateType())
        case Period():
            return _period(text, transform)
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


def _period(text: str, period: Period) -> int:
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


def typed_value(value: PartitionValue, transform: Transform, source: DataType) -> PartitionValue:
    """Return a value in the form that file changes have it in, so that equal ones are equal.

    Args:
        value: In that form, or in one that means the same, such as 1 and "1".
        transform: The partition field's.
        source: The type of its column.

    Raises:
        ValueError: It is no such value.
    """
    if value is None:
        return None
    if isinstance(transform, Identity | Truncate) and source.root in _READERS:
        return value_of(str(value), source)
    result = transform.result_type(source)
    return encode_value(decode_value(value, result), result)


def _text(text: str, _type: Any) -> str:
    return text


def _boolean(text: str, _type: Any) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError(text)
    return text.lower() == "true"


def _whole(text: str, data_type: Any) -> int:
    if not _WHOLE.fullmatch(text):
        raise ValueError(text)
    number = int(text)
    limit = 1 << _BITS[data_type.root] - 1
    if not -limit <= number < limit:
        raise ValueError(text)
    return number


def _decimal(text: str, data_type: Any) -> str:
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


def _floating(text: str, _type: Any) -> str:
    number = float(text)
    if math.isfinite(number):
        return repr(number)
    return "NaN" if math.isnan(number) else f"{'-' if number < 0 else ''}Infinity"


def _day(text: str, _type: Any) -> str:
    if _WHOLE.fullmatch(text):
        try:
            return (_EPOCH + timedelta(days=int(text))).isoformat()
        except OverflowError as error:
            raise ValueError(text) from error
    if not _DATE.fullmatch(text):
        raise ValueError(text)
    return date.fromisoformat(text).isoformat()


def _time(text: str, _type: Any) -> str:
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


def _moment(text: str, data_type: Any) -> str:
    found = _MOMENT.fullmatch(text)
    if not found:
        raise ValueError(text)
    time = _time(found[2], data_type) if found[2] else "00:00:00"
    return f"{_day(found[1], data_type)}T{time}"


def _uuid(text: str, _type: Any) -> str:
    return str(UUID(text))


_READERS: dict[str, Callable[[str, Any], PartitionValue]] = {
    **dict.fromkeys(("CHAR", "VARCHAR"), _text),
    **dict.fromkeys(_BITS, _whole),
    "BOOLEAN": _boolean,
    "DECIMAL": _decimal,
    **dict.fromkeys(("FLOAT", "DOUBLE"), _floating),
    "DATE": _day,
    "TIME": _time,
    **dict.fromkeys(("TIMESTAMP", "TIMESTAMP_LTZ"), _moment),
    "UUID": _uuid,
}
