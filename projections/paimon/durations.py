"""Texts of durations: Paimon's own in requests, and ISO 8601 in responses.

Source: Paimon's TimeUtils; Java's Duration.toString.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Final

from ledger.model.errors import InvalidInputError
from ledger.model.messages import excerpt

_SECOND: Final = 1000
_MINUTE: Final = 60 * _SECOND
_HOUR: Final = 60 * _MINUTE

_MILLIS_OF_UNIT: Final[dict[str, Fraction]] = {
    **dict.fromkeys(("d", "day", "days"), Fraction(24 * _HOUR)),
    **dict.fromkeys(("h", "hour", "hours"), Fraction(_HOUR)),
    **dict.fromkeys(("m", "min", "minute", "minutes"), Fraction(_MINUTE)),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), Fraction(_SECOND)),
    **dict.fromkeys(("", "ms", "milli", "millis", "millisecond", "milliseconds"), Fraction(1)),
    **dict.fromkeys(("µs", "micro", "micros", "microsecond", "microseconds"), Fraction(1, 10**3)),
    **dict.fromkeys(("ns", "nano", "nanos", "nanosecond", "nanoseconds"), Fraction(1, 10**6)),
}
_DURATION: Final = re.compile(r"([0-9]{1,19})\s*([a-zµ]{0,12})")
_LONGEST: Final = 64


def parse_duration(text: str, what: str) -> int:
    """Return a duration in milliseconds.

    Args:
        text: A number and a unit; without a unit the number is of milliseconds.
        what: The name of the value, for the message.

    Raises:
        InvalidInputError: It is no duration, or no whole number of milliseconds.

    Example:
        >>> parse_duration("1 d", "timeRetained"), parse_duration("90min", "timeRetained")
        (86400000, 5400000)
    """
    found = _DURATION.fullmatch(text.strip().lower()) if len(text) <= _LONGEST else None
    unit = None if found is None else _MILLIS_OF_UNIT.get(found[2])
    if found is None or unit is None:
        raise InvalidInputError(
            f"{what} {excerpt(text)} is no duration: give a number and a unit, such as `1 d`, "
            "`12 h`, `30 min` or `15 s`"
        )
    millis = int(found[1]) * unit
    if millis.denominator != 1:
        raise InvalidInputError(
            f"{what} {excerpt(text)} is no whole number of milliseconds, which are kept; round it"
        )
    return int(millis)


def iso_duration(millis: int) -> str:
    """Return the ISO 8601 text of a duration.

    Args:
        millis: The duration in milliseconds; not negative.

    Example:
        >>> iso_duration(86_400_000), iso_duration(5_400_500), iso_duration(0)
        ('PT24H', 'PT1H30M0.5S', 'PT0S')
    """
    hours, rest = divmod(millis, _HOUR)
    minutes, rest = divmod(rest, _MINUTE)
    seconds, fraction = divmod(rest, _SECOND)
    parts = [f"{hours}H" if hours else "", f"{minutes}M" if minutes else ""]
    if fraction:
        parts.append(f"{seconds}.{fraction:03d}".rstrip("0") + "S")
    elif seconds or not millis:
        parts.append(f"{seconds}S")
    return f"PT{''.join(parts)}"
