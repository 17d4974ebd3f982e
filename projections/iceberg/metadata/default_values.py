"""Default values: whether single-value JSON is a value of a type.

Source: the Iceberg table specification, "Default values" and appendix D.
"""

from __future__ import annotations

import re
from datetime import date, datetime, time
from typing import Any

from ledger.model.errors import InvalidInputError
from projections.iceberg.metadata.type_text import type_name
from projections.iceberg.metadata.types import (
    DecimalType,
    FixedType,
    PlainType,
    StructType,
    Type,
)

_INTEGER_BITS = {"int": 32, "long": 64}
_JSON_TYPES: dict[str, type] = {"boolean": bool, "float": float, "double": float, "string": str}
_DECIMAL = re.compile(r"-?[0-9]+(?:\.([0-9]+))?")
_HEX = re.compile(r"(?:[0-9a-fA-F]{2})*")
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_PATTERNS = {"binary": _HEX, "uuid": _UUID}
_CLOCK = r"([0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,9})?)?)"
_DAY = r"([+-]?[0-9]{4,9}-[0-9]{2}-[0-9]{2})"
_TIMES = {
    "date": re.compile(_DAY),
    "time": re.compile(_CLOCK),
    "timestamp": re.compile(f"{_DAY}T{_CLOCK}"),
    "timestamptz": re.compile(rf"{_DAY}T{_CLOCK}(?:\+00:00|Z)"),
    "timestamp_ns": re.compile(f"{_DAY}T{_CLOCK}"),
    "timestamptz_ns": re.compile(rf"{_DAY}T{_CLOCK}(?:\+00:00|Z)"),
}


def check_default(kind: Type, value: Any) -> None:
    """Check that JSON is a value of a type; null is one of every type.

    Of nested types only a struct has a default other than null, and it is `{}`.

    Raises:
        InvalidInputError: It is none.

    Example:
        >>> check_default(DecimalType(9, 2), "14.20")
    """
    if value is None:
        return
    match kind:
        case StructType():
            fits = value == {} and isinstance(value, dict)
        case PlainType(name=name):
            fits = _fits_plain(name, value)
        case FixedType(length=length):
            fits = _fits(_HEX, value) and len(value) == 2 * length
        case DecimalType():
            fits = _fits_decimal(kind, value)
        case _:
            fits = False
    if not fits:
        raise InvalidInputError(
            f"{value!r:.80} is no default of type {type_name(kind)}; defaults are single-value JSON"
        )


def _fits_plain(name: str, value: Any) -> bool:
    if name in _INTEGER_BITS:
        most = 2 ** (_INTEGER_BITS[name] - 1)
        return type(value) is int and -most <= value < most
    if name in _JSON_TYPES:
        return isinstance(value, _JSON_TYPES[name])
    if name in _PATTERNS:
        return _fits(_PATTERNS[name], value)
    return name in _TIMES and _fits_time(name, value)


def _fits(pattern: re.Pattern[str], value: Any) -> bool:
    return isinstance(value, str) and pattern.fullmatch(value) is not None


def _fits_decimal(kind: DecimalType, value: Any) -> bool:
    found = _DECIMAL.fullmatch(value) if isinstance(value, str) else None
    if found is None or len(found[1] or "") != kind.scale:
        return False
    return len(value.lstrip("-").replace(".", "").lstrip("0")) <= kind.precision


def _fits_time(name: str, value: Any) -> bool:
    found = _TIMES[name].fullmatch(value) if isinstance(value, str) else None
    if found is None:
        return False
    try:
        for part in found.groups():
            if ":" in part:
                time.fromisoformat(part[:15])
            elif len(part) == len("2017-11-16"):
                date.fromisoformat(part)
            else:
                # Python ends at year 9999; the days of a month repeat every 400 years.
                year, month, day = part.lstrip("+-").split("-")
                datetime(2000 + int(year) % 400, int(month), int(day))  # noqa: DTZ001  # a check
    except ValueError:
        return False
    return True
