"""Data types as users write them: every spelling that a message, a file or an engine prints.

`read_type` reads the names and the nested forms of Paimon (`ROW<...>`), Spark (`struct<a:int>`),
Arrow (`list<item: int64>`), Iceberg (`timestamptz`, `fixed[16]`) and Delta (`long`), and types as
JSON objects. Where they give one name two meanings, these hold:

- `TIMESTAMP` has no time zone, as in Paimon, Iceberg and Arrow; only in `ALTER TABLE` statements it
  has Spark's meaning, a TIMESTAMP WITH LOCAL TIME ZONE.
- `BINARY` without a length is BYTES, as everywhere but in Paimon's files; CHAR, VARCHAR and
  VARBINARY without a length are rejected.
- `TIME` is TIME(0), as in Paimon; `int8` has 8 bits, as in Arrow.
- The key of `MAP<STRING, INT>` may be NULL, as in Paimon; `map<string, int32>` is the same. That of
  an Arrow type, which is not a text, is NOT NULL.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, Final

import ledger.model.types as t
from ledger.model.errors import InvalidTypeError
from ledger.model.messages import excerpt
from ledger.model.types import DataType
from ledger.model.types.parser import (
    SQL_TEXT,
    Grammar,
    Reader,
    TypeParser,
    numbered,
    plain,
    unquote_sql,
)
from ledger.model.types.text import HINTS, NAMES, PAIMON_READERS, parse_type
from ledger.model.types.wire import type_from_json, type_to_json

_UNIT_DIGITS = {"S": 0, "MS": 3, "US": 6, "NS": 9}
_NANOSECONDS = 9
_SHORT = 200
"""Maximum number of characters of texts whose types are cached."""


def read_type(text: str) -> DataType:
    """Parse a data type from Paimon's, Spark's, Arrow's or Iceberg's text, or from JSON.

    Members of a ROW get ids from 0 in reading order.

    Raises:
        InvalidTypeError: The text is not a type, is VARCHAR or a similar type without a length,
            nests too deeply, or is too long; the message gives the position.

    Example:
        >>> read_type("ROW<city STRING, lines ARRAY<STRING>> NOT NULL").nullable
        False
        >>> read_type("struct<a: int64>") == read_type("ROW<a BIGINT>")
        True
    """
    if text.lstrip().startswith("{"):
        return _read_json(text)
    return _read_short_text(text) if len(text) <= _SHORT else TypeParser(text, _TEXT).parse_whole()


@lru_cache(maxsize=4096)
def _read_short_text(text: str) -> DataType:
    return TypeParser(text, _TEXT).parse_whole()


def read_leading_type(text: str) -> tuple[DataType, str]:
    """Parse the data type at the start of a text; return it and the rest of the text.

    Raises:
        InvalidTypeError: The text does not begin with a type.

    Example:
        >>> read_leading_type("ARRAY<INT> NOT NULL COMMENT 'sizes'")[1]
        "COMMENT 'sizes'"
    """
    if text.lstrip().startswith("{"):
        try:
            _, end = json.JSONDecoder().raw_decode(text.lstrip())
        except (ValueError, RecursionError) as error:
            raise _no_json_error(text, error) from error
        of_json = _read_json(text.lstrip()[:end])
        parser = TypeParser(text.lstrip(), _TEXT, end)
        return parser.parse_nullability(of_json), parser.text[parser.position :]
    parser = TypeParser(text, _TEXT)
    return parser.parse_leading(), text[parser.position :]


def read_spark_type(text: str) -> DataType:
    """Parse a data type of a Spark statement; spellings that Spark does not have are read, too.

    Raises:
        InvalidTypeError: As `read_type`.

    Example:
        >>> read_spark_type("struct<a: int, b: array<timestamp>>").fields[1].type.element.root
        'TIMESTAMP_LTZ'
    """
    return TypeParser(text, _SPARK).parse_whole()


def json_of_text(text: str, ids: Iterator[int] | None = None) -> str | dict[str, Any]:
    """Return the JSON that a type's text in a JSON document means.

    A text of Paimon's grammar is returned unchanged: in JSON it means what it means to Paimon.

    Args:
        text: The text.
        ids: Ids of the members of ROWs, in reading order; None for no ids.

    Raises:
        InvalidTypeError: The text is not a type.

    Example:
        >>> json_of_text("int64"), json_of_text("list<item: int32>")
        ('BIGINT', {'type': 'ARRAY', 'element': 'INT'})
    """
    try:
        parse_type(text)
    except InvalidTypeError:
        renumbered: str | dict[str, Any] = _renumber_json(type_to_json(read_type(text)), ids)
        return renumbered
    return text


def _renumber_json(plain_json: Any, ids: Iterator[int] | None) -> Any:
    if isinstance(plain_json, list):
        return [_renumber_json(each, ids) for each in plain_json]
    if not isinstance(plain_json, dict):
        return plain_json
    numbered_keys = {"id": next(ids)} if "id" in plain_json and ids is not None else {}
    rest = {key: _renumber_json(each, ids) for key, each in plain_json.items() if key != "id"}
    return numbered_keys | rest


def _read_json(text: str) -> DataType:
    try:
        decoded = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _no_json_error(text, error) from error
    return type_from_json(decoded, json_of_text)


def _no_json_error(text: str, error: Exception) -> InvalidTypeError:
    return InvalidTypeError(f"type {excerpt(text)} is no JSON: {error}")


def _read_list(parser: TypeParser, start: int) -> DataType:
    with parser.nested(start):
        element = parser.parse_element()
    return parser.build_type(start, t.ArrayType, element)


def _read_multiset(parser: TypeParser, start: int) -> DataType:
    with parser.nested(start):
        element = parser.parse_element()
    return parser.build_type(start, t.MultisetType, element)


def _read_fixed_size_list(parser: TypeParser, start: int) -> DataType:
    with parser.nested(start):
        element = parser.parse_element()
    return parser.build_type(start, t.VectorType, element, _read_bracketed_number(parser))


def _read_map(parser: TypeParser, start: int) -> DataType:
    with parser.nested(start):
        key = parser.parse_any_type()
        parser.parse_references(at_most=1)
        is_complete = parser.accept_sign(",")
        value = parser.parse_any_type() if is_complete else key
        parser.parse_references(at_most=1)
        if parser.accept_sign(","):
            is_complete = parser.accept_word("KEYS_SORTED")
        if not is_complete:
            raise parser.error("MAP takes two types, as in MAP<STRING, INT>", start)
    return parser.build_type(start, t.MapType, key, value)


def _read_row(parser: TypeParser, start: int) -> DataType:
    with parser.nested(start):
        members = parser.parse_members()
    return parser.build_type(start, t.RowType, members)


def _read_dictionary(parser: TypeParser, start: int) -> DataType:
    """Read `dictionary<values=string, indices=int32, ordered=0>`, a list of values by number."""
    with parser.nested(start):
        parser.expect_words("VALUES")
        parser.expect_sign("=")
        values = parser.parse_any_type()
        parser.expect_sign(",")
        parser.expect_words("INDICES")
        parser.expect_sign("=")
        parser.parse_any_type()
        parser.expect_sign(",")
        parser.expect_words("ORDERED")
        parser.expect_sign("=")
        parser.parse_number()
    return values


def _read_extension(parser: TypeParser, start: int) -> DataType:
    with parser.nested(start):
        name = parser.parse_up_to_bracket()
    if name != "arrow.uuid":
        raise parser.error(f"the extension {name!r:.80} is no type here; arrow.uuid is one", start)
    return t.UuidType()


def _read_bracketed_number(parser: TypeParser) -> int:
    parser.expect_sign("[")
    number = parser.parse_number()
    parser.expect_sign("]")
    return number


def _read_fixed(parser: TypeParser, start: int) -> DataType:
    return parser.build_type(start, t.BinaryType, _read_bracketed_number(parser))


def _read_binary(parser: TypeParser, start: int) -> DataType:
    numbers = parser.parse_numbers(1)
    if not numbers:
        _refuse_varying(parser, start, "VARBINARY")
    return parser.build_type(start, t.BinaryType, *numbers) if numbers else t.BYTES


def _refuse_varying(parser: TypeParser, start: int, name: str) -> None:
    """Reject the SQL standard's `CHARACTER VARYING(10)`."""
    if parser.accept_word("VARYING"):
        (length,) = parser.parse_numbers(1) or (20,)
        raise parser.error(f"VARYING is no part of a type; write {name}({length})", start)


def _sized(name: str, make: Callable[[int], DataType], endless: str) -> Reader:
    """Return the reader of a type that needs its length.

    Paimon reads these without a length as length one, which users do not mean.
    """

    def read(parser: TypeParser, start: int) -> DataType:
        numbers = parser.parse_numbers(1)
        if not numbers:
            _refuse_varying(parser, start, "VARBINARY" if endless == "BYTES" else "VARCHAR")
            raise parser.error(
                f"{name} needs a length: write {name}(20), or {endless} for any length", start
            )
        return parser.build_type(start, make, *numbers)

    return read


def _with_unit(make: Callable[[int], DataType]) -> Reader:
    """Return the reader of a time with a unit: `time64[us]`."""

    def read(parser: TypeParser, start: int) -> DataType:
        parser.expect_sign("[")
        digits = _read_unit(parser)
        parser.expect_sign("]")
        return parser.build_type(start, make, digits)

    return read


def _read_date(parser: TypeParser, _start: int) -> DataType:
    """Read `date32[day]` or `date64[ms]`, or either without a unit."""
    if parser.accept_sign("["):
        parser.read_word()
        parser.expect_sign("]")
    return t.DateType()


def _read_unit(parser: TypeParser) -> int:
    start = parser.position
    digits = _UNIT_DIGITS.get(parser.read_word())
    if digits is None:
        raise parser.error("a unit is missing: one of s, ms, us, ns", start)
    return digits


def _timestamp(bare: DataType) -> Reader:
    """Return the reader of TIMESTAMP, which alone is the type `bare`."""

    def read(parser: TypeParser, start: int) -> DataType:
        if parser.accept_sign("["):
            return _read_timestamp_unit(parser, start)
        begin = parser.position
        data_type = PAIMON_READERS["TIMESTAMP"](parser, start)
        return bare if parser.position == begin else data_type

    return read


def _read_timestamp_unit(parser: TypeParser, start: int) -> DataType:
    """Read the rest of `timestamp[us]` or `timestamp[us, tz=UTC]`."""
    make: type[DataType] = t.TimestampType
    digits = _read_unit(parser)
    if parser.accept_sign(","):
        parser.expect_words("TZ")
        parser.expect_sign("=")
        parser.parse_up_to_bracket()
        make = t.LocalZonedTimestampType
    parser.expect_sign("]")
    return parser.build_type(start, make, digits)


_LTZ = numbered(t.LocalZonedTimestampType, 1)
_NTZ = numbered(t.TimestampType, 1)
_DECIMAL = numbered(t.DecimalType, 2)

_READERS: dict[str, Reader] = {
    **PAIMON_READERS,
    # Paimon's and Spark's nested types, and Arrow's.
    **dict.fromkeys(("ARRAY", "LIST", "LARGE_LIST"), _read_list),
    **dict.fromkeys(("ROW", "STRUCT"), _read_row),
    "MAP": _read_map,
    "MULTISET": _read_multiset,
    "FIXED_SIZE_LIST": _read_fixed_size_list,
    "DICTIONARY": _read_dictionary,
    "EXTENSION": _read_extension,
    # Lengths.
    "CHAR": _sized("CHAR", t.CharType, "STRING"),
    "CHARACTER": _sized("CHARACTER", t.CharType, "STRING"),
    "VARCHAR": _sized("VARCHAR", t.VarCharType, "STRING"),
    "VARBINARY": _sized("VARBINARY", t.VarBinaryType, "BYTES"),
    "BINARY": _read_binary,
    **dict.fromkeys(("FIXED", "FIXED_SIZE_BINARY"), _read_fixed),
    # Other names of plain types.
    **dict.fromkeys(("TEXT", "LARGE_STRING", "STRING_VIEW", "UTF8"), plain(t.STRING)),
    **dict.fromkeys(("LARGE_BINARY", "BINARY_VIEW"), plain(t.BYTES)),
    "BOOL": plain(t.BooleanType()),
    **dict.fromkeys(("BYTE", "INT8"), plain(t.TinyIntType())),
    **dict.fromkeys(("SHORT", "INT16"), plain(t.SmallIntType())),
    "INT32": plain(t.IntType()),
    **dict.fromkeys(("LONG", "INT64"), plain(t.BigIntType())),
    **dict.fromkeys(("REAL", "FLOAT32"), plain(t.FloatType())),
    "FLOAT64": plain(t.DoubleType()),
    **dict.fromkeys(("VOID", "NULL"), plain(t.UnknownType())),
    **dict.fromkeys(("DECIMAL32", "DECIMAL64", "DECIMAL128", "DECIMAL256"), _DECIMAL),
    # Dates and times.
    **dict.fromkeys(("DATE32", "DATE64"), _read_date),
    **dict.fromkeys(("TIME32", "TIME64"), _with_unit(t.TimeType)),
    "TIMESTAMP": _timestamp(t.TimestampType()),
    **dict.fromkeys(("TIMESTAMP_NTZ", "TIMESTAMPNTZ"), _NTZ),
    **dict.fromkeys(("TIMESTAMPTZ", "TIMESTAMPLTZ", "TIMESTAMP_LTZ"), _LTZ),
    "TIMESTAMP_NS": plain(t.TimestampType(_NANOSECONDS)),
    "TIMESTAMPTZ_NS": plain(t.LocalZonedTimestampType(_NANOSECONDS)),
}

_UNSIGNED = "unsigned numbers need the next wider signed type, such as BIGINT for uint32"
_HINTS: dict[str, str] = {
    **{name: hint for name, hint in HINTS.items() if name not in _READERS},
    **dict.fromkeys(("UINT8", "UINT16", "UINT32", "UINT64"), _UNSIGNED),
    **dict.fromkeys(("HALFFLOAT", "FLOAT16"), "no type has 16-bit numbers; FLOAT holds them"),
    "DURATION": HINTS["INTERVAL"],
}

_SUGGESTED = (*NAMES, "STRUCT", "LIST")

_TEXT: Final = Grammar(_READERS, _HINTS, _SUGGESTED, SQL_TEXT, unquote_sql)

_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "0": "\0", "Z": "\x1a"}
_ESCAPED = {quote: re.compile(rf"\\(.)|{quote}{quote}", re.DOTALL) for quote in "'\""}


def _unquote_spark(text: str) -> str:
    """Return the text that a Spark literal means: a backslash escapes, a doubled quote is one."""
    quote = text[0]
    return _ESCAPED[quote].sub(
        lambda found: quote if found[1] is None else _ESCAPES.get(found[1], found[1]), text[1:-1]
    )


_SPARK: Final = Grammar(
    {
        **_READERS,
        "TIMESTAMP": _timestamp(t.LocalZonedTimestampType()),
        "VARBINARY": _read_binary,
    },
    _HINTS,
    _SUGGESTED,
    re.compile(r"'(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.|\"\")*\"", re.DOTALL),
    _unquote_spark,
)
