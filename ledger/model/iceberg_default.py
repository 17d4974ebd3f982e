"""A column's default, kept as text, as Iceberg's single-value JSON.

Source: the Iceberg specification, appendix D, and Paimon's casts of text.
"""

from __future__ import annotations

import math
import re
from typing import Any

from ledger.model import types as t
from ledger.model.errors import UnsupportedError
from ledger.model.single_value import value_to_json
from ledger.model.transform_value import (
    WHOLE_BITS,
    parse_text,
    single_precision,
    unit_digits,
)
from ledger.model.type_text import format_type

_TRUE = {"t", "true", "y", "yes", "1"}
_FALSE = {"f", "false", "n", "no", "0"}
_NUMBER = re.compile(r"-?[0-9]+")
_MILLISECONDS = 3
_FRACTION = re.compile(r"\.[0-9]*")


def default_json(text: str, data_type: t.DataType, column: str) -> Any:
    """Return a default; single quotes around the whole text do not count.

    As in Paimon, a number for a DATE is days and for a TIMESTAMP milliseconds since 1970.

    Args:
        text: As the ledger keeps it.
        data_type: The column's.
        column: Its name, for messages.

    Raises:
        UnsupportedError: Iceberg has no such default.

    Example:
        >>> default_json("'2024-02-29'", t.DateType(), "day"), default_json("7", t.IntType(), "n")
        ('2024-02-29', 7)
    """
    quoted = len(text) > 1 and text.startswith("'") and text.endswith("'")
    try:
        return value_to_json(_value(text[1:-1] if quoted else text, data_type), data_type)
    except (ValueError, OverflowError, UnsupportedError) as error:
        raise UnsupportedError(
            f"the default {text!r:.80} of {column} is no {format_type(data_type)} that Iceberg "
            "has: set one that is written out, or take it away"
        ) from error


def _value(text: str, data_type: t.DataType) -> Any:  # noqa: PLR0911 - one case a kind
    match data_type:
        case t.BooleanType():
            return _truth(text.lower())
        case t.FloatType() | t.DoubleType():
            number = float(text.rstrip("fFdD"))
            if not math.isfinite(number):
                raise ValueError(text)
            return single_precision(number) if isinstance(data_type, t.FloatType) else number
        case t.BinaryType() | t.VarBinaryType():
            return text.encode()
        case t.DateType() if _NUMBER.fullmatch(text):
            return int(text)
        case t.TimestampType() if _NUMBER.fullmatch(text):
            return int(text) * 10 ** (unit_digits(data_type) - _MILLISECONDS)
        case t.TimestampType() | t.LocalZonedTimestampType():
            day, _, clock = text.partition(" ")
            return parse_text(f"{day}T{clock or '00:00:00'}" if "T" not in day else day, data_type)
        case _ if data_type.root in WHOLE_BITS:
            return int(_FRACTION.sub("", text))
        case _:
            return parse_text(text, data_type)


def _truth(text: str) -> bool:
    if text not in _TRUE | _FALSE:
        raise ValueError(text)
    return text in _TRUE
