"""Days and moments as counts since 1970, and their text; of any year, no digit lost.

Python's own dates end with the year 9999 and its moments with the microsecond; stored values and
bounds do neither. The calendar is the proleptic Gregorian one, as in Iceberg.
"""

from __future__ import annotations

import re
from datetime import date

SECONDS_A_DAY = 86_400

_EPOCH_ORDINAL = date(1970, 1, 1).toordinal()
_YEARS, _DAYS = 400, 146_097
"""A Gregorian cycle: after it the calendar repeats."""

_DATE = r"([+-]?[0-9]{4,6})-([0-9]{2})-([0-9]{2})"
_TIME = r"([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]{1,9}))?)?"
_OFFSET = r"([Zz]|[+-][0-9]{2}:?[0-9]{2})"
_DATE_TEXT = re.compile(_DATE)
_TIME_TEXT = re.compile(_TIME)
_MOMENT_TEXT = re.compile(rf"({_DATE})(?:[Tt ]({_TIME})\s*{_OFFSET}?)?")


def day_number(year: int, month: int, day: int) -> int:
    """Return a calendar day as days since 1970-01-01, negative before.

    Raises:
        ValueError: There is no such day.

    Example:
        >>> day_number(2017, 12, 1), day_number(1969, 12, 31)
        (17501, -1)
    """
    cycles, within = divmod(year - 1, _YEARS)
    return date(within + 1, month, day).toordinal() + cycles * _DAYS - _EPOCH_ORDINAL


def calendar_day(days: int) -> tuple[int, int, int]:
    """Return year, month and day of a day since 1970-01-01.

    >>> calendar_day(-1), calendar_day(2_932_897)
    ((1969, 12, 31), (10000, 1, 1))
    """
    cycles, within = divmod(days + _EPOCH_ORDINAL - 1, _DAYS)
    found = date.fromordinal(within + 1)
    return found.year + cycles * _YEARS, found.month, found.day


def year_text(year: int) -> str:
    """Return a year with at least four digits.

    >>> year_text(70), year_text(-1), year_text(12000)
    ('0070', '-0001', '+12000')
    """
    sign = "-" if year < 0 else "+" if year > date.max.year else ""
    return f"{sign}{abs(year):04d}"


def date_text(days: int) -> str:
    """Return a day as ISO 8601 has it.

    >>> date_text(17501)
    '2017-12-01'
    """
    year, month, day = calendar_day(days)
    return f"{year_text(year)}-{month:02d}-{day:02d}"


def parse_date(text: str) -> int:
    """Return the day that a text names.

    Raises:
        ValueError: It names none.
    """
    found = _DATE_TEXT.fullmatch(text)
    if not found:
        raise ValueError(text)
    return day_number(*map(int, found.groups()))


def time_text(count: int, digits: int) -> str:
    """Return a time of day, all digits of its fraction written out.

    Args:
        count: Units since midnight.
        digits: The unit: 6 for microseconds, 9 for nanoseconds.

    Example:
        >>> time_text(81_068_123_456, 6)
        '22:31:08.123456'
    """
    seconds, fraction = divmod(count, 10**digits)
    minutes, second = divmod(seconds, 60)
    hour, minute = divmod(minutes, 60)
    return f"{hour:02d}:{minute:02d}:{second:02d}.{fraction:0{digits}d}"


def parse_time(text: str, digits: int) -> int:
    """Return the units since midnight that a text names.

    Raises:
        ValueError: It names no time of day, or one between two units.
    """
    found = _TIME_TEXT.fullmatch(text)
    if not found:
        raise ValueError(text)
    hour, minute, second = int(found[1]), int(found[2]), int(found[3] or 0)
    fraction = found[4] or ""
    if hour >= 24 or minute >= 60 or second >= 60 or fraction[digits:].strip("0"):  # noqa: PLR2004
        raise ValueError(text)
    units = int(fraction[:digits].ljust(digits, "0"))
    return (hour * 3600 + minute * 60 + second) * int(10**digits) + units


def moment_text(count: int, digits: int) -> str:
    """Return a moment, all digits of its fraction written out, without an offset.

    >>> moment_text(-1, 6)
    '1969-12-31T23:59:59.999999'
    """
    days, within = divmod(count, SECONDS_A_DAY * 10**digits)
    return f"{date_text(days)}T{time_text(within, digits)}"


def parse_moment(text: str, digits: int) -> tuple[int, str | None]:
    """Return a moment in UTC as units since 1970, and the offset that the text had.

    A day alone is its midnight; without an offset the text is taken as UTC.

    Raises:
        ValueError: It names no moment, or one between two units.

    Example:
        >>> parse_moment("1970-01-01T01:00:00.5+01:00", 6)
        (500000, '+01:00')
    """
    found = _MOMENT_TEXT.fullmatch(text)
    if not found:
        raise ValueError(text)
    offset = found[10]
    within = parse_time(found[5], digits) if found[5] else 0
    count = parse_date(found[1]) * SECONDS_A_DAY * 10**digits + within
    return count - _offset_seconds(offset) * int(10**digits), offset


def _offset_seconds(offset: str | None) -> int:
    if offset is None or offset in "Zz":
        return 0
    seconds = int(offset[1:3]) * 3600 + int(offset[-2:]) * 60
    return -seconds if offset[0] == "-" else seconds
