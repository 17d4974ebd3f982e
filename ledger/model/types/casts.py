"""Allowed type changes, and checks of column defaults.

Paimon: a change needs a cast rule (implicit, or explicit where that is allowed) and an
implementation that converts values. Iceberg: old files are read through the new type without a
cast, so a change has to pass two checks. The Iceberg types must be equal or promotable, and no
stored value may be outside the new type where Paimon's types are narrower than Iceberg's (an INT
changed to a TINYINT is an `int` before and after).

Source: Paimon's cast rules, and its casts from text for column defaults.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import ledger.model.types as t
from ledger.model.types import (
    STRING,
    ArrayType,
    DataType,
    GeographyType,
    GeometryType,
    MapType,
    RowType,
)

_FIRST_VERSION_THAT_WIDENS_DATES = 3
_MICROSECONDS = 6

# Each type may become any later one in its row.
_LADDERS = (("TINYINT", "SMALLINT", "INT", "BIGINT"), ("FLOAT", "DOUBLE"))


def can_promote(source: t.DataType, target: t.DataType, *, format_version: int) -> bool:
    """Return whether an Iceberg table may change a column from `source` to `target`.

    Nullability is ignored. A DATE may become a TIMESTAMP only in version 3, and only while no
    partition field derives values from the column that the promotion would change; the caller,
    which has the specs, checks the latter. An ARRAY is promoted with its element, a MAP with its
    value; a ROW changes member by member, so as a whole it is only promoted to itself.

    Args:
        source: The column's type.
        target: The wanted type.
        format_version: The table's Iceberg format version: 1, 2 or 3.

    Example:
        >>> can_promote(t.IntType(), t.BigIntType(), format_version=2)
        True
        >>> can_promote(t.VarCharType(10), t.VarCharType(4), format_version=2)
        False
    """
    if source == target or _without_nullability(source) == _without_nullability(target):
        return True
    if format_version >= _FIRST_VERSION_THAT_WIDENS_DATES and _widens_date_or_unknown(
        source, target
    ):
        return True
    match source, target:
        case t.ArrayType(element=before), t.ArrayType(element=after):
            return _can_promote_member(before, after, format_version)
        case t.MapType(value=before), t.MapType(value=after):
            return source.key == target.key and _can_promote_member(before, after, format_version)
        case _:
            return _keeps_every_value(source, target)


def _without_nullability(data_type: t.DataType) -> t.DataType:
    return data_type.with_nullability(nullable=True)


def _can_promote_member(source: t.DataType, target: t.DataType, format_version: int) -> bool:
    # Inside a list or map nullability is part of the type, and may only be relaxed.
    relaxed = target.nullable or not source.nullable
    return relaxed and can_promote(source, target, format_version=format_version)


def _keeps_every_value(source: t.DataType, target: t.DataType) -> bool:
    for ladder in _LADDERS:
        if source.root in ladder and target.root in ladder:
            return ladder.index(source.root) <= ladder.index(target.root)
    match source, target:
        case t.DecimalType(), t.DecimalType():
            return source.scale == target.scale and source.precision <= target.precision
        # Not to CHAR or BINARY, even longer ones: stored values would lack the padding.
        case ((t.CharType(length=before) | t.VarCharType(length=before)), t.VarCharType()):
            return before <= target.length
        case ((t.BinaryType(length=before) | t.VarBinaryType(length=before)), t.VarBinaryType()):
            return before <= target.length
        case _:
            return _keeps_every_timestamp(source, target)


def _keeps_every_timestamp(source: t.DataType, target: t.DataType) -> bool:
    match source, target:
        case (t.TimestampType(precision=before), t.TimestampType(precision=after)) | (
            t.LocalZonedTimestampType(precision=before),
            t.LocalZonedTimestampType(precision=after),
        ):
            # Iceberg's nanosecond types differ from its microsecond ones.
            return before <= after and (before > _MICROSECONDS or after <= _MICROSECONDS)
        case t.TimeType(precision=before), t.TimeType(precision=after):
            return before <= after
        case _:
            return False


def _widens_date_or_unknown(source: t.DataType, target: t.DataType) -> bool:
    match source:
        case t.UnknownType():
            return True
        case t.DateType():
            return isinstance(target, t.TimestampType)
        case _:
            return False


# Row = source, column = target.
#   I  implicit        E  explicit only      both with an implementation
#   i  implicit        e  explicit only      both without one, so a change is rejected
#   t  explicit only, implemented for exactly nullable STRING alone
#   *  an implementation without a rule, so a change is rejected
#   .  neither
# UUID and UNKNOWN cast to and from nothing, and geometries, without an implementation, only to the
# same one.
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


def _parse_cast_table(table: str) -> dict[tuple[str, str], str]:
    # The columns are in the order of the rows, so a row's name also names its column.
    rows = [line.split() for line in table.strip().splitlines()[1:]]
    targets = [row[0] for row in rows]
    return {
        (source, target): rule
        for source, *rules in rows
        for target, rule in zip(targets, rules, strict=True)
    }


_RULES = _parse_cast_table(_TABLE)


def implicit_cast(source: DataType, target: DataType) -> bool:
    """Return whether Paimon casts `source` to `target` implicitly.

    It does between types of the same kind, regardless of lengths and precisions, but never from
    nullable to NOT NULL.
    """
    if source.nullable and not target.nullable:
        return False
    return _cast_rule(source, target) in "Ii"


def explicit_cast(source: DataType, target: DataType) -> bool:
    """Return whether Paimon casts `source` to `target` when explicit casts are allowed."""
    return _cast_rule(source, target) in "IiEet"


def executable_cast(source: DataType, target: DataType) -> bool:
    """Return whether Paimon can convert stored values of `source` to `target` at all."""
    rule = _cast_rule(source, target)
    return rule in "IE*" or (rule == "t" and target == STRING)


def can_alter(source: DataType, target: DataType, *, explicit_allowed: bool) -> bool:
    """Return whether a column of type `source` may be changed to `target`.

    Args:
        source: The column's type.
        target: The wanted type, its nullability already decided (`keepNullability`).
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


def _cast_rule(source: DataType, target: DataType) -> str:
    if isinstance(source, GeometryType | GeographyType):
        return "i" if _has_same_coordinates(source, target) else "."
    return _RULES.get((source.root, target.root), ".")


def _has_same_coordinates(source: GeometryType | GeographyType, target: DataType) -> bool:
    match source, target:
        case GeometryType(), GeometryType():
            return source.crs.casefold() == target.crs.casefold()
        case GeographyType(), GeographyType():
            same = source.algorithm == target.algorithm
            return same and source.crs.casefold() == target.crs.casefold()
        case _:
            return False


def default_value_fits(text: str, data_type: DataType) -> bool:
    """Return whether a column default, written as text, can be read as `data_type`.

    Single quotes around the whole text do not count. As in Paimon, a number for a DATE is days and
    for a TIMESTAMP milliseconds since 1970; text after an integer's point or a DATE's blank is
    ignored; text and bytes are cut to their type's length; a DECIMAL that is too large reads as
    NULL, and 30 February as its month's last day.

    Example:
        >>> from ledger.model.types import DateType, TinyIntType
        >>> default_value_fits("'2024-02-29'", DateType()), default_value_fits("128", TinyIntType())
        (True, False)
    """
    quoted = text.startswith("'") and text.endswith("'")
    if text == "'" or not _can_parse_default_text(data_type):
        return False
    return _text_fits_type(text[1:-1] if quoted else text, data_type)


def _can_parse_default_text(data_type: DataType) -> bool:
    match data_type:
        case ArrayType(element=element):
            return _can_parse_default_text(element)
        case MapType(key=key, value=value):
            return _can_parse_default_text(key) and _can_parse_default_text(value)
        case RowType(fields=fields):
            return all(_can_parse_default_text(each.type) for each in fields)
        case _:
            return data_type.root in _TEXT_FITS


def _text_fits_type(text: str, data_type: DataType) -> bool:
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

# No type has more digits; Python raises for very long numbers.
_MOST_DIGITS = 40
_LAST_MONTH, _LAST_DAY = 12, 31


def _integer_text_check(bits: int, pattern: re.Pattern[str] = _WHOLE) -> Callable[[str], bool]:
    def fits(text: str) -> bool:
        if pattern.fullmatch(text) is None:
            return False
        digits = text.lstrip("+-").partition(".")[0].lstrip("0") or "0"
        if len(digits) > _MOST_DIGITS:
            return False
        number = -int(digits) if text.startswith("-") else int(digits)
        return -(1 << bits - 1) <= number < 1 << bits - 1

    return fits


def _is_date_text(text: str, pattern: re.Pattern[str] = _DATE_PREFIX) -> bool:
    found = pattern.fullmatch(text)
    if found is None:
        return False
    year, month, day = map(int, found.groups("1"))
    return year > 0 and 1 <= month <= _LAST_MONTH and 1 <= day <= _LAST_DAY


def _is_timestamp_text(text: str) -> bool:
    found = _TIMESTAMP.fullmatch(text)
    return found is not None and _is_date_text(found[1], _DATE)


def _timestamp_text_fits(text: str, data_type: Any) -> bool:
    if _NUMERIC.fullmatch(text):
        # Paimon reads numbers only in these precisions.
        return data_type.precision in {0, 3, 6, 9} and _integer_text_check(64)(text)
    return _is_timestamp_text(text)


def _array_text_fits(text: str, data_type: Any) -> bool:
    inside = _split_collection_text(text, "[]", "ARRAY")
    return inside is not None and all(_part_text_fits(part, data_type.element) for part in inside)


def _row_text_fits(text: str, data_type: Any) -> bool:
    inside = _split_collection_text(text, "{}", "STRUCT")
    if not inside:
        return inside is not None
    return len(inside) == len(data_type.fields) and all(
        _part_text_fits(part, member.type)
        for part, member in zip(inside, data_type.fields, strict=True)
    )


def _map_text_fits(text: str, data_type: Any) -> bool:
    if text.strip().upper() == "NULL":
        return True
    pairs = _split_map_text(text)
    return pairs is not None and all(
        (key == "null" or _text_fits_type(key, data_type.key))
        and (value == "null" or _text_fits_type(value, data_type.value))
        for key, value in pairs
    )


def _split_map_text(text: str) -> list[tuple[str, str]] | None:
    """Return the pairs of `{a -> 1, b -> 2}` or `MAP(a, 1, b, 2)`; None if it is neither."""
    entries = _split_bracketed_text(text, "{}")
    if entries is not None:
        found = [_ENTRY.fullmatch(each.replace('"', "")) for each in entries]
        pairs = [(each[1].strip(), each[2].strip()) for each in found if each is not None]
        return pairs if len(pairs) == len(found) else None
    parts = _split_call_arguments(text, "MAP")
    if parts is None or len(parts) % 2:
        return None
    plain = [each.replace('"', "") for each in parts]
    return list(zip(plain[::2], plain[1::2], strict=True))


_ENTRY = re.compile(r"(.+?)\s*->\s*(.+)")


def _split_collection_text(text: str, brackets: str, function: str) -> list[str] | None:
    """Return the parts of `[a, b]` or `ARRAY(a, b)`; None if it is neither."""
    inside = _split_bracketed_text(text, brackets)
    return _split_call_arguments(text, function) if inside is None else inside


def _split_bracketed_text(text: str, brackets: str) -> list[str] | None:
    text = text.strip()
    is_bracketed = text[:1] == brackets[0] and text[-1:] == brackets[1]
    return _split_at_commas(text[1:-1]) if is_bracketed else None


def _split_call_arguments(text: str, function: str) -> list[str] | None:
    text = text.strip()
    call = text[len(function) :].strip()
    is_call = text[: len(function)].upper() == function and call[:1] == "(" and call[-1:] == ")"
    return _split_at_commas(call[1:-1]) if is_call else None


def _split_at_commas(text: str) -> list[str]:
    """Split a text at the commas outside of brackets and double quotes."""
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


def _part_text_fits(part: str, data_type: DataType) -> bool:
    if part == "null":
        return data_type.nullable
    return _text_fits_type(part, data_type)


def _any_check_passes(*checks: Callable[[str], object]) -> Callable[[str, DataType], bool]:
    return lambda text, _type: any(check(text) for check in checks)


# Check of a default's text by kind of type; a kind that is not listed takes no default.
_TEXT_FITS: dict[str, Callable[[str, Any], bool]] = {
    **dict.fromkeys(("CHAR", "VARCHAR", "BINARY", "VARBINARY"), _any_check_passes(lambda _: True)),
    "BOOLEAN": _any_check_passes(lambda text: text.lower() in _BOOLEANS),
    "DECIMAL": _any_check_passes(_DECIMAL.fullmatch),
    "TINYINT": _any_check_passes(_integer_text_check(8)),
    "SMALLINT": _any_check_passes(_integer_text_check(16)),
    "INT": _any_check_passes(_integer_text_check(32)),
    "BIGINT": _any_check_passes(_integer_text_check(64)),
    "FLOAT": _any_check_passes(_FLOATING.fullmatch),
    "DOUBLE": _any_check_passes(_FLOATING.fullmatch),
    "DATE": _any_check_passes(_integer_text_check(32, _NUMERIC), _is_date_text),
    "TIME": _any_check_passes(_integer_text_check(32, _NUMERIC), _TIME.fullmatch),
    "TIMESTAMP": _timestamp_text_fits,
    "TIMESTAMP_LTZ": _any_check_passes(_is_timestamp_text),
    "ARRAY": _array_text_fits,
    "MAP": _map_text_fits,
    "ROW": _row_text_fits,
}
