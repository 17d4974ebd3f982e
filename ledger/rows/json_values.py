"""JSON values and texts as the Python values of a table's types.

JSON has no dates, times, bytes or decimals: they are ISO 8601 texts, Base64 and numbers.
"""

from __future__ import annotations

import binascii
import re
from base64 import b64decode
from collections.abc import Callable, Mapping
from datetime import date, datetime, time
from decimal import Decimal, InvalidOperation
from math import isfinite, isinf
from typing import Any, Final
from uuid import UUID

from ledger.model import types as t
from ledger.model.errors import InvalidInputError
from ledger.model.messages import excerpt
from ledger.model.schema import Schema
from ledger.model.types.text import bare_type_text


def python_row(row: object, schema: Schema, table: str) -> dict[str, Any]:
    """Return a JSON object as a dict for `DictRows`.

    Args:
        row: The decoded JSON, with Decimals for its fractions.
        schema: The table's schema.
        table: The table's full name, for messages.

    Raises:
        InvalidInputError: It is no object, or a text cannot be parsed as its column's type.

    Example:
        >>> python_row({"day": "2026-01-31"}, Schema.of({"day": "DATE"}), "shop.orders")
        {'day': datetime.date(2026, 1, 31)}
    """
    if not isinstance(row, dict):
        raise InvalidInputError(f"{excerpt(row)} is no JSON object of column names to values")
    return _members(row, schema.fields, table, "")


def _members(
    given: dict[str, Any], fields: tuple[t.DataField, ...], table: str, around: str
) -> dict[str, Any]:
    types = {each.name.casefold(): each.type for each in fields}
    types |= {each.name: each.type for each in fields}
    found = {}
    for name, value in given.items():
        # An unknown name is rejected where rows are matched with columns.
        wanted = types.get(name) or types.get(name.casefold())
        path = f"{around}{name}"
        found[name] = value if wanted is None else _value(value, wanted, table, path)
    return found


def _value(value: Any, wanted: t.DataType, table: str, path: str) -> Any:
    match wanted, value:
        case t.RowType(fields=fields), dict():
            return _members(value, fields, table, f"{path}.")
        case ((t.ArrayType() | t.VectorType()), list()):
            return [_value(each, wanted.element, table, f"{path}.element") for each in value]
        case ((t.MapType() | t.MultisetType()), (dict() | list())):
            return _pairs(value, wanted, table, path)
        case _:
            return _atom(value, wanted, table, path)


def _atom(value: Any, wanted: t.DataType, table: str, path: str) -> Any:
    match wanted, value:
        case ((t.FloatType() | t.DoubleType()), Decimal()) if isfinite(float(value)):
            return float(value)
        case _, Decimal() if wanted.root in _INTEGERS and _is_whole(value):
            return int(value)
        case _, str() if wanted.root in _PARSERS and wanted.root not in _NUMBERS:
            try:
                return parse_text(value, wanted)
            except ValueError as error:
                raise InvalidInputError(
                    f"column {path} of {table} is {bare_type_text(wanted)}, and {excerpt(value)} "
                    f"is none; {error}"
                ) from error
        case _:
            return value


def _is_whole(value: Decimal) -> bool:
    # An int of a large exponent, such as 1e999999999, would fill the memory.
    return value.adjusted() < _LONGEST_INTEGER and value == value.to_integral_value()


def _pairs(value: Any, wanted: Any, table: str, path: str) -> list[Any]:
    """Return the entries of a map: of an object, whose keys are texts, or of a list of pairs."""
    is_map = isinstance(wanted, t.MapType)
    key_type = wanted.key if is_map else wanted.element
    value_type = wanted.value if is_map else t.IntType(nullable=False)
    found = []
    for pair in value.items() if isinstance(value, dict) else value:
        if not isinstance(pair, tuple | list) or len(pair) != len(("key", "value")):
            raise InvalidInputError(
                f"column {path} of {table} is {bare_type_text(wanted)}, and {excerpt(pair)} is no "
                "pair; write an object, or a list of pairs"
            )
        key, item = pair
        if isinstance(value, dict) and key_type.root in _NUMBERS:
            try:
                key = parse_text(key, key_type)
            except ValueError as error:
                raise InvalidInputError(
                    f"a key of column {path} of {table} is {excerpt(key)}; {error}"
                ) from error
        key = _value(key, key_type, table, f"{path}.key")
        found.append((key, _value(item, value_type, table, f"{path}.value")))
    return found


def parse_text(text: str, wanted: t.DataType) -> Any:
    """Return a text as a value of a type.

    Args:
        text: The text.
        wanted: The type; not a nested one.

    Raises:
        ValueError: It is no value of the type; the message says what is.

    Example:
        >>> parse_text("12.50", t.DecimalType(5, 2)), parse_text("true", t.BooleanType())
        (Decimal('12.50'), True)
    """
    if wanted.root not in _PARSERS:
        raise ValueError("it cannot be read from a text; write Parquet")
    parse, what = _PARSERS[wanted.root]
    try:
        return parse(text)
    except (ValueError, InvalidOperation, binascii.Error, OverflowError) as error:
        raise ValueError(f"write {what}") from error


def _boolean(text: str) -> bool:
    lower = text.lower()
    if lower not in {"true", "false"}:
        raise ValueError(text)
    return lower == "true"


def _refuse_nanoseconds(text: str) -> None:
    """Reject digits of a second that Python's parsers cut, unless they are zeros."""
    cut = re.search(r"[.,][0-9]{6}0*[1-9]", text)
    if cut is not None:
        raise ValueError(text)


def _local(text: str) -> datetime:
    _refuse_nanoseconds(text)
    found = datetime.fromisoformat(text)
    if found.tzinfo is not None:
        raise ValueError(text)
    return found


def _zoned(text: str) -> datetime:
    _refuse_nanoseconds(text)
    found = datetime.fromisoformat(text)
    if found.tzinfo is None:
        raise ValueError(text)
    return found


def _time(text: str) -> time:
    _refuse_nanoseconds(text)
    return time.fromisoformat(text)


def _integer(text: str) -> int:
    if not text.isascii() or "_" in text or text != text.strip():
        raise ValueError(text)
    return int(text)


def _float(text: str) -> float:
    if "_" in text or text != text.strip():
        raise ValueError(text)
    found = float(text)
    if isinf(found) and "inf" not in text.lower():
        # It is larger than any number of 64 bits.
        raise ValueError(text)
    return found


def _decimal(text: str) -> Decimal:
    if "_" in text or text != text.strip():
        raise ValueError(text)
    return Decimal(text)


def _text(text: str) -> str:
    return text


_LONGEST_INTEGER: Final = 20
"""Decimal digits of the longest integer of 64 bits, and one more."""

_INTEGERS: Final = ("TINYINT", "SMALLINT", "INT", "BIGINT")
_NUMBERS: Final = (*_INTEGERS, "FLOAT", "DOUBLE", "BOOLEAN")
_WHOLE: Final = (_integer, "a whole number, such as 7")
_FRACTION: Final = (_float, "a number, such as 7.5")
_BASE64: Final = (lambda text: b64decode(text, validate=True), "Base64")
_PARSERS: Final[Mapping[str, tuple[Callable[[str], Any], str]]] = {
    **dict.fromkeys(_INTEGERS, _WHOLE),
    "FLOAT": _FRACTION,
    "DOUBLE": _FRACTION,
    "BOOLEAN": (_boolean, "true or false"),
    "DECIMAL": (_decimal, "a number, such as 12.50"),
    "CHAR": (_text, "a text"),
    "VARCHAR": (_text, "a text"),
    "BINARY": _BASE64,
    "VARBINARY": _BASE64,
    "UUID": (UUID, "a UUID"),
    "DATE": (date.fromisoformat, "a date, such as 2026-01-31"),
    "TIME": (_time, "a time, such as 12:30:00, with at most microseconds"),
    "TIMESTAMP": (
        _local,
        "a local time, such as 2026-01-31T12:30:00, with at most microseconds",
    ),
    "TIMESTAMP_LTZ": (
        _zoned,
        "a time with its zone, such as 2026-01-31T12:30:00Z, with at most microseconds",
    ),
}
"""Parser of the texts of each type, and what they are, for messages."""
