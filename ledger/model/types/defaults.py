"""Whether a column's default, which is kept as text, can be read as the column's type.

Source: Paimon's casts that start at text.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from ledger.model.types import ArrayType, DataType, MapType, RowType


def default_value_fits(text: str, data_type: DataType) -> bool:
    """Return whether a column default, written as text, can be read as `data_type`.

    Single quotes around the whole text do not count. As in Paimon, a number for a DATE is days and
    for a TIMESTAMP milliseconds since 1970, and what stands behind a whole number's point or a
    DATE's blank is cut off, text and bytes are cut to their type's length, a DECIMAL that is too
    large reads as NULL, and 30 February as its month's last day.

    Example:
        >>> from ledger.model.types import DateType, TinyIntType
        >>> default_value_fits("'2024-02-29'", DateType()), default_value_fits("128", TinyIntType())
        (True, False)
    """
    quoted = text.startswith("'") and text.endswith("'")
    if text == "'" or not _reads_text(data_type):
        return False
    return _fits(text[1:-1] if quoted else text, data_type)


def _reads_text(data_type: DataType) -> bool:
    match data_type:
        case ArrayType(element=element):
            return _reads_text(element)
        case MapType(key=key, value=value):
            return _reads_text(key) and _reads_text(value)
        case RowType(fields=fields):
            return all(_reads_text(each.type) for each in fields)
        case _:
            return data_type.root in _TEXT_FITS


def _fits(text: str, data_type: DataType) -> bool:
    return _TEXT_FITS[data_type.root](text, data_type)


_WHOLE = re.compile(r"([+-]?)(?=[0-9.])([0-9]*)(?:\.[0-9]*)?")
_FLOATING = re.compile(
    r"\s*[+-]?(?:NaN|Infinity|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[fFdD]?)\s*"
)
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?")
_DATE = re.compile(r"([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})")
_DATE_PREFIX = re.compile(r"([0-9]{1,4})-([0-9]{1,2})(?:-([0-9]{1,2}))?(?: .*)?", re.DOTALL)
_MINUTES = r"(?:[01]?[0-9]|2[0-3]):[0-5]?[0-9]"
_SECONDS = r":[0-5]?[0-9](?:\.[0-9]{0,9})?"
_TIME = re.compile(rf"{_MINUTES}(?:{_SECONDS})?")
_TIMESTAMP = re.compile(
    rf"({_DATE.pattern})(?: {_MINUTES}{_SECONDS})?(?:T{_MINUTES}(?:{_SECONDS})?)?"
)
_NUMERIC = re.compile(r"-?[0-9]+")
_BOOLEANS = frozenset({"t", "true", "y", "yes", "1", "f", "false", "n", "no", "0"})

# No type holds more digits; Python refuses to convert very long ones.
_MOST_DIGITS = 40
_LAST_MONTH, _LAST_DAY = 12, 31


def _whole(bits: int, pattern: re.Pattern[str] = _WHOLE) -> Callable[[str], bool]:
    def fits(text: str) -> bool:
        if pattern.fullmatch(text) is None:
            return False
        digits = text.lstrip("+-").partition(".")[0].lstrip("0") or "0"
        if len(digits) > _MOST_DIGITS:
            return False
        number = -int(digits) if text.startswith("-") else int(digits)
        return -(1 << bits - 1) <= number < 1 << bits - 1

    return fits


def _day(text: str, pattern: re.Pattern[str] = _DATE_PREFIX) -> bool:
    found = pattern.fullmatch(text)
    if found is None:
        return False
    year, month, day = map(int, found.groups("1"))
    return year > 0 and 1 <= month <= _LAST_MONTH and 1 <= day <= _LAST_DAY


def _moment(text: str) -> bool:
    found = _TIMESTAMP.fullmatch(text)
    return found is not None and _day(found[1], _DATE)


def _timestamp(text: str, data_type: Any) -> bool:
    if _NUMERIC.fullmatch(text):
        # Paimon reads numbers in these precisions alone.
        return data_type.precision in {0, 3, 6, 9} and _whole(64)(text)
    return _moment(text)


def _array(text: str, data_type: Any) -> bool:
    inside = _inside(text, "[]", "ARRAY")
    return inside is not None and all(_part_fits(part, data_type.element) for part in inside)


def _row(text: str, data_type: Any) -> bool:
    inside = _inside(text, "{}", "STRUCT")
    if not inside:
        return inside is not None
    return len(inside) == len(data_type.fields) and all(
        _part_fits(part, member.type) for part, member in zip(inside, data_type.fields, strict=True)
    )


def _map(text: str, data_type: Any) -> bool:
    if text.strip().upper() == "NULL":
        return True
    pairs = _map_pairs(text)
    return pairs is not None and all(
        (key == "null" or _fits(key, data_type.key))
        and (value == "null" or _fits(value, data_type.value))
        for key, value in pairs
    )


def _map_pairs(text: str) -> list[tuple[str, str]] | None:
    """Return the pairs of `{a -> 1, b -> 2}` or `MAP(a, 1, b, 2)`; None if it is neither."""
    entries = _bracketed(text, "{}")
    if entries is not None:
        found = [_ENTRY.fullmatch(each.replace('"', "")) for each in entries]
        pairs = [(each[1].strip(), each[2].strip()) for each in found if each is not None]
        return pairs if len(pairs) == len(found) else None
    parts = _called(text, "MAP")
    if parts is None or len(parts) % 2:
        return None
    plain = [each.replace('"', "") for each in parts]
    return list(zip(plain[::2], plain[1::2], strict=True))


_ENTRY = re.compile(r"(.+?)\s*->\s*(.+)")


def _inside(text: str, brackets: str, function: str) -> list[str] | None:
    """Return the parts of `[a, b]` or `ARRAY(a, b)`; None if it is neither."""
    inside = _bracketed(text, brackets)
    return _called(text, function) if inside is None else inside


def _bracketed(text: str, brackets: str) -> list[str] | None:
    text = text.strip()
    is_bracketed = text[:1] == brackets[0] and text[-1:] == brackets[1]
    return _parts(text[1:-1]) if is_bracketed else None


def _called(text: str, function: str) -> list[str] | None:
    text = text.strip()
    call = text[len(function) :].strip()
    is_call = text[: len(function)].upper() == function and call[:1] == "(" and call[-1:] == ")"
    return _parts(call[1:-1]) if is_call else None


def _parts(text: str) -> list[str]:
    """Split at the commas that stand outside of brackets and double quotes."""
    parts, depth = [""], 0
    for piece in _PIECE.findall(text):
        depth += (piece in "([{") - (piece in ")]}" and depth > 0)
        if piece == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += piece
    stripped = [part.strip() for part in parts]
    return stripped if any(stripped) else []


_PIECE = re.compile(r'"(?:[^"\\]|\\.)*"|\\.|.', re.DOTALL)


def _part_fits(part: str, data_type: DataType) -> bool:
    if part == "null":
        return data_type.nullable
    return _fits(part, data_type)


def _any_of(*checks: Callable[[str], object]) -> Callable[[str, DataType], bool]:
    return lambda text, _type: any(check(text) for check in checks)


# What a text must look like to be read as each kind of type; a kind not named takes no default.
_TEXT_FITS: dict[str, Callable[[str, Any], bool]] = {
    **dict.fromkeys(("CHAR", "VARCHAR", "BINARY", "VARBINARY"), _any_of(lambda _: True)),
    "BOOLEAN": _any_of(lambda text: text.lower() in _BOOLEANS),
    "DECIMAL": _any_of(_DECIMAL.fullmatch),
    "TINYINT": _any_of(_whole(8)),
    "SMALLINT": _any_of(_whole(16)),
    "INT": _any_of(_whole(32)),
    "BIGINT": _any_of(_whole(64)),
    "FLOAT": _any_of(_FLOATING.fullmatch),
    "DOUBLE": _any_of(_FLOATING.fullmatch),
    "DATE": _any_of(_whole(32, _NUMERIC), _day),
    "TIME": _any_of(_whole(32, _NUMERIC), _TIME.fullmatch),
    "TIMESTAMP": _timestamp,
    "TIMESTAMP_LTZ": _any_of(_moment),
    "ARRAY": _array,
    "MAP": _map,
    "ROW": _row,
}
