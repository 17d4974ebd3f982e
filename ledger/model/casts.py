"""Which column types may become which others: Paimon's cast rules, as one table.

A column-type change needs a rule (implicit, or explicit where that is allowed) and an
implementation that converts values. Whether a default value can be read as its column's type
follows from the implementations that start at text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import date
from decimal import ROUND_HALF_UP, Decimal, localcontext
from typing import Any

from ledger.model.types import STRING, DataType

# Row = source, column = target.
#   I  implicit        E  explicit only      both with an implementation
#   i  implicit        e  explicit only      both without one, so a change is refused
#   t  explicit only, implemented for exactly nullable STRING alone
#   *  an implementation without a rule, so a change is refused
#   .  neither
# Geometries, UUID and UNKNOWN cast to and from nothing.
_TABLE = """
.             CHA VAR BOO BIN VBI DEC TIN SMA INT BIG FLO DOU DAT TIM TS  LTZ VNT BLO ARR VEC MUL MAP ROW
CHAR          I   I   E   E   E   E   E   E   E   E   E   E   E   E   E   E   .   .   *   .   .   *   *
VARCHAR       E   I   E   E   E   E   E   E   E   E   E   E   E   E   E   E   .   .   *   .   .   *   *
BOOLEAN       E   E   i   .   .   E   E   E   E   E   E   E   .   .   .   .   .   .   .   .   .   .   .
BINARY        E   E   .   I   I   .   .   .   .   .   .   .   .   .   .   .   .   .   .   .   .   .   .
VARBINARY     E   E   .   E   I   .   .   .   .   .   .   .   .   .   .   .   .   .   .   .   .   .   .
DECIMAL       E   E   .   .   .   I   E   E   E   E   I   I   .   .   e   e   .   .   .   .   .   .   .
TINYINT       E   E   E   .   .   I   I   I   I   I   I   I   .   .   e   e   .   .   .   .   .   .   .
SMALLINT      E   E   E   .   .   I   E   I   I   I   I   I   .   .   e   e   .   .   .   .   .   .   .
INT           E   E   E   .   .   I   E   E   I   I   I   I   .   .   E   E   .   .   .   .   .   .   .
BIGINT        E   E   E   .   .   I   E   E   E   I   I   I   .   .   E   E   .   .   .   .   .   .   .
FLOAT         E   E   .   .   .   I   E   E   E   E   I   I   .   .   e   e   .   .   .   .   .   .   .
DOUBLE        E   E   .   .   .   I   E   E   E   E   E   I   .   .   e   e   .   .   .   .   .   .   .
DATE          t   t   .   .   .   .   .   .   .   .   .   .   i   .   E   E   .   .   .   .   .   .   .
TIME          t   t   .   .   .   .   .   .   .   .   .   .   .   i   E   E   .   .   .   .   .   .   .
TIMESTAMP     t   t   .   .   .   e   e   e   E   E   e   e   I   I   I   I   .   .   .   .   .   .   .
TIMESTAMP_LTZ t   t   .   .   .   e   e   e   E   E   e   e   E   E   I   I   .   .   .   .   .   .   .
VARIANT       e   e   .   .   .   .   .   .   .   .   .   .   .   .   .   .   i   .   .   .   .   .   .
BLOB          e   e   .   .   .   .   .   .   .   .   .   .   .   .   .   .   .   i   .   .   .   .   .
ARRAY         E   E   .   .   .   .   .   .   .   .   .   .   .   .   .   .   .   .   i   .   .   .   .
VECTOR        e   e   .   .   .   .   .   .   .   .   .   .   .   .   .   .   .   .   .   i   .   .   .
MULTISET      e   e   .   .   .   .   .   .   .   .   .   .   .   .   .   .   .   .   .   .   i   .   .
MAP           E   E   .   .   .   .   .   .   .   .   .   .   .   .   .   .   .   .   .   .   .   i   .
ROW           E   E   .   .   .   .   .   .   .   .   .   .   .   .   .   .   .   .   .   .   .   .   i
"""  # noqa: E501 - a table is read by its columns


def _rules(table: str) -> dict[tuple[str, str], str]:
    # The columns stand in the order of the rows, so a row's name also names its column.
    rows = [line.split() for line in table.strip().splitlines()[1:]]
    targets = [row[0] for row in rows]
    return {
        (source, target): rule
        for source, *rules in rows
        for target, rule in zip(targets, rules, strict=True)
    }


_RULES = _rules(_TABLE)


def implicit_cast(source: DataType, target: DataType) -> bool:
    """Return whether Paimon lets `source` become `target` without being asked to.

    A type of the same kind always may, whatever its lengths and precisions. A nullable source may
    never become NOT NULL this way.
    """
    if source.nullable and not target.nullable:
        return False
    return _rule(source, target) in "Ii"


def explicit_cast(source: DataType, target: DataType) -> bool:
    """Return whether Paimon lets `source` become `target` when explicit casts are allowed."""
    return _rule(source, target) in "IiEet"


def executable_cast(source: DataType, target: DataType) -> bool:
    """Return whether Paimon can convert stored values of `source` to `target` at all."""
    rule = _rule(source, target)
    return rule in "IE*" or (rule == "t" and target == STRING)


def can_alter(source: DataType, target: DataType, *, explicit_allowed: bool) -> bool:
    """Return whether a column of type `source` may be changed to `target`.

    Args:
        source: The column's type.
        target: The wanted type, its nullability already settled (`keepNullability`).
        explicit_allowed: False under the option `disable-explicit-type-casting`.

    Example:
        >>> from ledger.model.types import BigIntType, IntType
        >>> can_alter(IntType(), BigIntType(), explicit_allowed=False)
        True
        >>> can_alter(BigIntType(), IntType(), explicit_allowed=False)
        False
    """
    ruled = implicit_cast(source, target) or (explicit_allowed and explicit_cast(source, target))
    return ruled and executable_cast(source, target)


def _rule(source: DataType, target: DataType) -> str:
    return _RULES.get((source.root, target.root), ".")


def default_value_fits(text: str, data_type: DataType) -> bool:
    """Return whether a column default, written as text, can be read as `data_type`.

    Single quotes around the whole text do not count. As in Paimon, a number for a DATE is days and
    for a TIMESTAMP milliseconds since 1970, and a fraction behind a whole number is cut off. Paimon
    also cuts text to a CHAR's or VARCHAR's length, and reads a DECIMAL that is too large as NULL;
    here neither fits, since no reader would see what was asked for.

    Example:
        >>> from ledger.model.types import DateType, TinyIntType
        >>> default_value_fits("'2024-02-29'", DateType()), default_value_fits("128", TinyIntType())
        (True, False)
    """
    quoted = len(text) > 1 and text.startswith("'") and text.endswith("'")
    return _fits(text[1:-1] if quoted else text, data_type)


def _fits(text: str, data_type: DataType) -> bool:
    fits = _TEXT_FITS.get(data_type.root)
    return fits is not None and fits(text, data_type)


_WHOLE = re.compile(r"([+-]?)(?=[0-9.])([0-9]*)(?:\.[0-9]*)?")
_FLOATING = re.compile(
    r"\s*[+-]?(?:NaN|Infinity|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[fFdD]?)\s*"
)
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?")
_DATE = re.compile(r"([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})")
_MINUTES = r"(?:[01]?[0-9]|2[0-3]):[0-5]?[0-9]"
_SECONDS = r":[0-5]?[0-9](?:\.[0-9]{1,9})?"
_TIME = re.compile(rf"{_MINUTES}(?:{_SECONDS})?")
_TIMESTAMP = re.compile(rf"({_DATE.pattern})(?: {_MINUTES}{_SECONDS})?")
_UNSIGNED = re.compile(r"[0-9]+")
_BOOLEANS = frozenset({"t", "true", "y", "yes", "1", "f", "false", "n", "no", "0"})

# No type holds more digits; Python refuses to convert very long ones.
_MOST_DIGITS = 40


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


def _decimal(text: str, data_type: Any) -> bool:
    if not _DECIMAL.fullmatch(text):
        return False
    number = Decimal(text)
    whole_digits = data_type.precision - data_type.scale
    # Checked before rounding too: rounding a very large number fails instead of answering.
    if number and number.adjusted() >= whole_digits:
        return False
    with localcontext() as exact:
        exact.prec = 2 * _MOST_DIGITS
        rounded = number.quantize(Decimal(1).scaleb(-data_type.scale), ROUND_HALF_UP)
    return not rounded or rounded.adjusted() < whole_digits


def _day(text: str) -> bool:
    found = _DATE.fullmatch(text)
    try:
        return found is not None and bool(date(*map(int, found.groups())))
    except ValueError:
        return False


def _moment(text: str) -> bool:
    found = _TIMESTAMP.fullmatch(text)
    return found is not None and _day(found[1])


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
    entries = _json_entries(text)
    if entries is None:
        entries = _listed_entries(text)
    return entries is not None and all(
        _fits(key, data_type.key) and (value is None or _fits(value, data_type.value))
        for key, value in entries
    )


def _json_entries(text: str) -> list[tuple[str, str | None]] | None:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict):
        return None
    return [(key, _json_text(value)) for key, value in found.items()]


def _json_text(value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value)


def _listed_entries(text: str) -> list[tuple[str, str | None]] | None:
    inside = _inside(text, "{}", "")
    separator = next((mark for mark in (" -> ", "=", ":") if mark in text), None)
    if not inside or separator is None:
        return None if inside is None or inside else []
    pairs = [part.partition(separator) for part in inside]
    if any(not mark for _, mark, _ in pairs):
        return None
    return [
        (key.strip(), None if value.strip() == "null" else value.strip()) for key, _, value in pairs
    ]


def _inside(text: str, brackets: str, function: str) -> list[str] | None:
    """Return the parts of `[a, b]` or `ARRAY(a, b)`; None if it is neither."""
    text = text.strip()
    if text[:1] == brackets[0] and text[-1:] == brackets[1]:
        return _parts(text[1:-1])
    if function and text[: len(function)].upper() == function:
        call = text[len(function) :].strip()
        if call[:1] == "(" and call[-1:] == ")":
            return _parts(call[1:-1])
    return None


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
    return _fits(part.strip('"'), data_type)


def _sized(text: str, data_type: Any) -> bool:
    return len(text) <= int(data_type.length)


def _sized_bytes(text: str, data_type: Any) -> bool:
    return len(text.encode("utf-8", "surrogatepass")) <= int(data_type.length)


def _any_of(*checks: Callable[[str], object]) -> Callable[[str, DataType], bool]:
    return lambda text, _type: any(check(text) for check in checks)


# What a text must look like to be read as each kind of type; a kind not named takes no default.
_TEXT_FITS: dict[str, Callable[[str, Any], bool]] = {
    "CHAR": _sized,
    "VARCHAR": _sized,
    "BINARY": _sized_bytes,
    "VARBINARY": _sized_bytes,
    "BOOLEAN": _any_of(lambda text: text.lower() in _BOOLEANS),
    "DECIMAL": _decimal,
    "TINYINT": _any_of(_whole(8)),
    "SMALLINT": _any_of(_whole(16)),
    "INT": _any_of(_whole(32)),
    "BIGINT": _any_of(_whole(64)),
    "FLOAT": _any_of(_FLOATING.fullmatch),
    "DOUBLE": _any_of(_FLOATING.fullmatch),
    "DATE": _any_of(_whole(32, _UNSIGNED), _day),
    "TIME": _any_of(_whole(32, _UNSIGNED), _TIME.fullmatch),
    "TIMESTAMP": _any_of(_whole(64, _UNSIGNED), _moment),
    "TIMESTAMP_LTZ": _any_of(_moment),
    "ARRAY": _array,
    "MAP": _map,
    "ROW": _row,
}
