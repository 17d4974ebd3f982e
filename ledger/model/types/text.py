"""Text form of data types: Paimon's grammar, and the canonical text."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import ledger.model.types as t
from ledger.model.types.parser import (
    SQL_TEXT,
    Grammar,
    Reader,
    TypeParser,
    numbered,
    plain,
    quote_text,
    quote_unless_bare,
    unquote_sql,
)


def _read_double(parser: TypeParser, _start: int) -> t.DataType:
    parser.accept_word("PRECISION")
    return t.DoubleType()


def _read_time(parser: TypeParser, start: int) -> t.DataType:
    numbers = parser.parse_numbers(1)
    if parser.accept_word("WITHOUT"):
        parser.expect_words("TIME", "ZONE")
    return parser.build_type(start, t.TimeType, *numbers)


def _read_timestamp(parser: TypeParser, start: int) -> t.DataType:
    numbers = parser.parse_numbers(1)
    make: type[t.DataType] = t.TimestampType
    if parser.accept_word("WITHOUT"):
        parser.expect_words("TIME", "ZONE")
    elif parser.accept_word("WITH"):
        parser.expect_words("LOCAL", "TIME", "ZONE")
        make = t.LocalZonedTimestampType
    return parser.build_type(start, make, *numbers)


def _read_vector(parser: TypeParser, start: int) -> t.DataType:
    with parser.nested(start):
        if parser.accept_word("VECTOR"):
            raise parser.error("a VECTOR cannot hold a VECTOR", start)
        element = parser.parse_nullable_type()
        parser.expect_sign(",")
        length = parser.parse_number()
    return parser.build_type(start, t.VectorType, element, length)


def _read_geometry(parser: TypeParser, start: int) -> t.DataType:
    return parser.build_type(start, t.GeometryType, *parser.parse_references(at_most=1))


def _read_geography(parser: TypeParser, start: int) -> t.DataType:
    crs, *algorithm = parser.parse_references(at_most=2) or (t.GeographyType().crs,)
    return parser.build_type(start, t.GeographyType, crs, *map(str.lower, algorithm))


PAIMON_READERS: dict[str, Reader] = {
    "STRING": plain(t.STRING),
    "BYTES": plain(t.BYTES),
    "BOOLEAN": plain(t.BooleanType()),
    "TINYINT": plain(t.TinyIntType()),
    "SMALLINT": plain(t.SmallIntType()),
    "INT": plain(t.IntType()),
    "INTEGER": plain(t.IntType()),
    "BIGINT": plain(t.BigIntType()),
    "FLOAT": plain(t.FloatType()),
    "DOUBLE": _read_double,
    "DATE": plain(t.DateType()),
    "CHAR": numbered(t.CharType, 1),
    "VARCHAR": numbered(t.VarCharType, 1),
    "BINARY": numbered(t.BinaryType, 1),
    "VARBINARY": numbered(t.VarBinaryType, 1),
    "DECIMAL": numbered(t.DecimalType, 2),
    "DEC": numbered(t.DecimalType, 2),
    "NUMERIC": numbered(t.DecimalType, 2),
    "TIME": _read_time,
    "TIMESTAMP": _read_timestamp,
    "TIMESTAMP_LTZ": numbered(t.LocalZonedTimestampType, 1),
    "VARIANT": plain(t.VariantType()),
    "BLOB": plain(t.BlobType()),
    "VECTOR": _read_vector,
    "GEOMETRY": _read_geometry,
    "GEOGRAPHY": _read_geography,
    "UUID": plain(t.UuidType()),
    "UNKNOWN": plain(t.UnknownType()),
}
"""Readers of the types that have a text in Paimon's files, and of two that only Iceberg has."""

HINTS = {
    "BOOL": "did you mean BOOLEAN?",
    "BYTE": "did you mean TINYINT?",
    "SHORT": "did you mean SMALLINT?",
    "LONG": "did you mean BIGINT?",
    "REAL": "did you mean FLOAT?",
    "NUMBER": "did you mean DECIMAL?",
    "TEXT": "did you mean STRING?",
    "DATETIME": "did you mean TIMESTAMP?",
    "TIMESTAMPTZ": "did you mean TIMESTAMP_LTZ?",
    "INTERVAL": "a column cannot hold intervals; BIGINT can hold a duration in a unit of yours",
    "STRUCT": 'a struct is a ROW; write it as {"type": "ROW", "fields": [...]}',
    "ARRAY": 'write it as a JSON object, such as {"type": "ARRAY", "element": "INT"}',
    "MAP": 'write it as a JSON object: {"type": "MAP", "key": "STRING", "value": "INT"}',
    "MULTISET": 'write it as a JSON object, such as {"type": "MULTISET", "element": "INT"}',
    "ROW": 'write it as a JSON object: {"type": "ROW", "fields": [...]}',
}
"""Advice for names that Paimon's grammar does not have."""

NAMES = (*PAIMON_READERS, "ARRAY", "MAP", "MULTISET", "ROW")
"""The names of all types in Paimon's spelling."""

_PAIMON = Grammar(PAIMON_READERS, HINTS, NAMES, SQL_TEXT, unquote_sql)


@lru_cache(maxsize=4096)
def parse_type(text: str) -> t.DataType:
    """Read a type from Paimon's text form: `INT NOT NULL`, `decimal(9,2)`, `VECTOR<FLOAT, 4>`.

    Logs and the formats' JSON have this form. Keywords are matched in any case, NULL is the
    default. ROW, MAP and prefix ARRAY are JSON objects there; `sql.read_type` reads them as text.
    Beyond Paimon's grammar, UUID and UNKNOWN are read.

    Raises:
        InvalidTypeError: The text does not match the grammar, or a parameter is out of range.

    Example:
        >>> parse_type("timestamp(3) with local time zone not null")
        LocalZonedTimestampType(nullable=False, precision=3)
        >>> parse_type("LONG")
        Traceback (most recent call last):
            ...
        ledger.model.errors.InvalidTypeError: cannot read type 'LONG' at position 0: ...
    """
    return TypeParser(text, _PAIMON).parse_whole()


# Defaults that need no quotes.
_PLAIN_DEFAULT = re.compile(r"[A-Za-z0-9_.+-]+")

_FORMS: dict[str, Callable[[Any], str]] = {
    "CHAR": lambda of: f"CHAR({of.length})",
    "VARCHAR": lambda of: "STRING" if of.length == t.MAX_LENGTH else f"VARCHAR({of.length})",
    "BINARY": lambda of: f"BINARY({of.length})",
    "VARBINARY": lambda of: "BYTES" if of.length == t.MAX_LENGTH else f"VARBINARY({of.length})",
    "DECIMAL": lambda of: f"DECIMAL({of.precision}, {of.scale})",
    "TIME": lambda of: f"TIME({of.precision})",
    "TIMESTAMP": lambda of: f"TIMESTAMP({of.precision})",
    "TIMESTAMP_LTZ": lambda of: f"TIMESTAMP({of.precision}) WITH LOCAL TIME ZONE",
    "GEOMETRY": lambda of: f"GEOMETRY({quote_unless_bare(of.crs)})",
    "GEOGRAPHY": lambda of: f"GEOGRAPHY({quote_unless_bare(of.crs)}, {of.algorithm})",
    "ARRAY": lambda of: f"ARRAY<{format_type(of.element)}>",
    "MULTISET": lambda of: f"MULTISET<{format_type(of.element)}>",
    "VECTOR": lambda of: f"VECTOR<{format_type(of.element)}, {of.length}>",
    "MAP": lambda of: f"MAP<{format_type(of.key)}, {format_type(of.value)}>",
    "ROW": lambda of: f"ROW<{', '.join(map(_format_field, of.fields))}>",
}


def format_type(data_type: t.DataType) -> str:
    """Return the canonical SQL text of a type; for an atomic type it is also the wire form.

    >>> format_type(t.RowType((t.DataField(0, "a", t.IntType(), "x", "5"),), nullable=False))
    "ROW<`a` INT COMMENT 'x' DEFAULT 5> NOT NULL"
    """
    form = _FORMS.get(data_type.root)
    text = data_type.root if form is None else form(data_type)
    return text if data_type.nullable else f"{text} NOT NULL"


def bare_type_text(data_type: t.DataType) -> str:
    """Return the text of a type without its nullability.

    >>> bare_type_text(t.IntType(nullable=False))
    'INT'
    """
    return format_type(data_type.with_nullability(nullable=True))


def _format_field(member: t.DataField) -> str:
    name = member.name.replace("`", "``")
    text = f"`{name}` {format_type(member.type)}"
    if member.description is not None:
        text += f" COMMENT {quote_text(member.description)}"
    if member.default_value is not None:
        default = member.default_value
        # Without quotes, NULL means no default.
        is_plain = _PLAIN_DEFAULT.fullmatch(default) and default.upper() != "NULL"
        text += f" DEFAULT {default if is_plain else quote_text(default)}"
    return text
