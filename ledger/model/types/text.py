"""Text form of data types: a parser of Paimon's grammar, and the canonical text."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import ledger.model.types as t
from ledger.model.errors import InvalidTypeError
from ledger.model.messages import similar_names

_PLAIN: dict[str, t.DataType] = {
    "STRING": t.STRING,
    "BYTES": t.BYTES,
    "BOOLEAN": t.BooleanType(),
    "TINYINT": t.TinyIntType(),
    "SMALLINT": t.SmallIntType(),
    "INT": t.IntType(),
    "INTEGER": t.IntType(),
    "BIGINT": t.BigIntType(),
    "FLOAT": t.FloatType(),
    "DATE": t.DateType(),
    "VARIANT": t.VariantType(),
    "BLOB": t.BlobType(),
    "UUID": t.UuidType(),
    "UNKNOWN": t.UnknownType(),
}

# Name -> constructor, and the maximum number of numbers in brackets.
_NUMBERED: dict[str, tuple[Callable[..., t.DataType], int]] = {
    "CHAR": (t.CharType, 1),
    "VARCHAR": (t.VarCharType, 1),
    "BINARY": (t.BinaryType, 1),
    "VARBINARY": (t.VarBinaryType, 1),
    "DECIMAL": (t.DecimalType, 2),
    "DEC": (t.DecimalType, 2),
    "NUMERIC": (t.DecimalType, 2),
    "TIME": (t.TimeType, 1),
    "TIMESTAMP": (t.TimestampType, 1),
    "TIMESTAMP_LTZ": (t.LocalZonedTimestampType, 1),
}

_OTHERS = ("DOUBLE", "VECTOR", "GEOMETRY", "GEOGRAPHY", "ARRAY", "MAP", "MULTISET", "ROW")

_POSTFIX: dict[str, Callable[[t.DataType], t.DataType]] = {
    "ARRAY": t.ArrayType,
    "MULTISET": t.MultisetType,
}

_AS_OBJECT = 'write it as a JSON object, such as {"type": "ARRAY", "element": "INT"}'
_HINTS = {
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
    "ARRAY": _AS_OBJECT,
    "MAP": 'write it as a JSON object: {"type": "MAP", "key": "STRING", "value": "INT"}',
    "MULTISET": _AS_OBJECT.replace("ARRAY", "MULTISET"),
    "ROW": 'write it as a JSON object: {"type": "ROW", "fields": [...]}',
}

# Java's definition of white space, which excludes non-breaking blanks.
_BLANK = r"[^\S\x85\xa0\u2007\u202f]"
_SPACE = re.compile(rf"{_BLANK}*")
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_DIGITS = re.compile(r"[0-9]+")
_QUOTED = re.compile(r"'((?:[^']|'')*)'")
_BARE = re.compile(rf"(?:(?!{_BLANK}|[0-9'`,()<>.]).)(?:(?!{_BLANK}|[,()<>.]).)*", re.DOTALL)
_QUOTED_FOR = re.compile(rf"\d|.*(?:{_BLANK}|[,()<>.'`])", re.DOTALL)

# Longer numbers are out of every type's range, and Python raises for very long ones.
_MAX_DIGITS = 10

# Number of characters of an invalid text that the message quotes.
_SHOWN = 120


@lru_cache(maxsize=4096)
def parse_type(text: str) -> t.DataType:
    """Read a type from Paimon's text form: `INT NOT NULL`, `decimal(9,2)`, `VECTOR<FLOAT, 4>`.

    Keywords are matched in any case, NULL is the default. ROW, MAP and prefix ARRAY have no text
    form that can be read back; see `wire`. Beyond Paimon's grammar, UUID and UNKNOWN are read.

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
    reader = _TypeParser(text)
    result = reader.parse_any_type()
    if reader.position < len(text):
        raise reader.error("nothing may follow here")
    return result


def _type_name_hint(name: str) -> str:
    near = similar_names(name, [*_PLAIN, *_NUMBERED, *_OTHERS])
    if near:
        return f"did you mean {near[0]}?"
    return "name one of the types, such as INT, STRING, DECIMAL(9, 2)"


class _TypeParser:
    """Recursive-descent parser of one type text, without backtracking."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 0
        self._consume_pattern(_SPACE)

    def parse_any_type(self) -> t.DataType:
        """Read an atomic or VECTOR type, its nullability, and an ARRAY or MULTISET suffix."""
        result = self._parse_nullability(self._parse_base_type())
        start = self.position
        wrap = _POSTFIX.get(self._read_word())
        if wrap is None:
            self.position = start
            return result
        return self._parse_nullability(self._build_type(start, wrap, result))

    def error(self, rule: str, position: int | None = None) -> InvalidTypeError:
        """Return the error to raise, with the text, the position and the rule."""
        place = self.position if position is None else position
        shown = self.text if len(self.text) <= _SHOWN else f"{self.text[:_SHOWN]}..."
        return InvalidTypeError(f"cannot read type {shown!r} at position {place}: {rule}")

    def _parse_base_type(self) -> t.DataType:
        start = self.position
        name = self._read_word()
        if (plain := _PLAIN.get(name)) is not None:
            return plain
        if name in _NUMBERED:
            return self._parse_type_with_numbers(name, start)
        match name:
            case "DOUBLE":
                self._accept_word("PRECISION")
                return t.DoubleType()
            case "VECTOR":
                return self._parse_vector_type(start)
            case "GEOMETRY":
                return self._build_type(start, t.GeometryType, *self._parse_references(at_most=1))
            case "GEOGRAPHY":
                crs, *algorithm = self._parse_references(at_most=2) or (t.GeographyType().crs,)
                return self._build_type(start, t.GeographyType, crs, *map(str.lower, algorithm))
            case _:
                hint = _HINTS.get(name) or _type_name_hint(name)
                raise self.error(f"{name or 'this'} is not read as a type; {hint}", start)

    def _parse_type_with_numbers(self, name: str, start: int) -> t.DataType:
        make, at_most = _NUMBERED[name]
        numbers = self._parse_numbers(at_most)
        if name in ("TIME", "TIMESTAMP") and self._accept_word("WITHOUT"):
            self._expect_words("TIME", "ZONE")
        elif name == "TIMESTAMP" and self._accept_word("WITH"):
            self._expect_words("LOCAL", "TIME", "ZONE")
            make = t.LocalZonedTimestampType
        return self._build_type(start, make, *numbers)

    def _parse_vector_type(self, start: int) -> t.DataType:
        self._expect_sign("<")
        if self._accept_word("VECTOR"):
            raise self.error("a VECTOR cannot hold a VECTOR", start)
        element = self._parse_nullability(self._parse_base_type())
        self._expect_sign(",")
        length = self._parse_number()
        self._expect_sign(">")
        return self._build_type(start, t.VectorType, element, length)

    def _parse_nullability(self, result: t.DataType) -> t.DataType:
        start = self.position
        if self._accept_word("NOT"):
            self._expect_words("NULL")
            return self._build_type(start, result.with_nullability, False)  # noqa: FBT003 - the value
        self._accept_word("NULL")
        return result

    def _parse_numbers(self, at_most: int) -> list[int]:
        if not self._accept_sign("("):
            return []
        numbers = [self._parse_number()]
        while len(numbers) < at_most and self._accept_sign(","):
            numbers.append(self._parse_number())
        self._expect_sign(")")
        return numbers

    def _parse_number(self) -> int:
        digits = self._consume_pattern(_DIGITS)
        if digits is None:
            raise self.error("a whole number is missing")
        significant = digits[0].lstrip("0") or "0"
        if len(significant) > _MAX_DIGITS:
            raise self.error(f"{significant[:_MAX_DIGITS]}... is out of range", digits.start())
        return int(significant)

    def _parse_references(self, *, at_most: int) -> list[str]:
        if not self._accept_sign("("):
            return []
        names = [self._parse_reference()]
        while len(names) < at_most and self._accept_sign(","):
            names.append(self._parse_reference())
        self._expect_sign(")")
        return names

    def _parse_reference(self) -> str:
        if (quoted := self._consume_pattern(_QUOTED)) is not None:
            return quoted[1].replace("''", "'")
        if (bare := self._consume_pattern(_BARE)) is not None:
            return bare[0]
        raise self.error("a name is missing, such as OGC:CRS84")

    def _build_type(
        self, start: int, make: Callable[..., t.DataType], *arguments: object
    ) -> t.DataType:
        try:
            return make(*arguments)
        except InvalidTypeError as error:
            raise self.error(error.message, start) from error

    def _expect_words(self, *words: str) -> None:
        for word in words:
            if not self._accept_word(word):
                raise self.error(f"{word} is missing")

    def _expect_sign(self, sign: str) -> None:
        if not self._accept_sign(sign):
            raise self.error(f"{sign!r} is missing")

    def _accept_word(self, word: str) -> bool:
        start = self.position
        if self._read_word() == word:
            return True
        self.position = start
        return False

    def _accept_sign(self, sign: str) -> bool:
        if not self.text.startswith(sign, self.position):
            return False
        self.position += len(sign)
        self._consume_pattern(_SPACE)
        return True

    def _read_word(self) -> str:
        word = self._consume_pattern(_WORD)
        return word[0].upper() if word is not None else ""

    def _consume_pattern(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Consume `pattern` and the blanks after it."""
        found = pattern.match(self.text, self.position)
        if found is not None:
            blanks = _SPACE.match(self.text, found.end())
            self.position = blanks.end() if blanks is not None else found.end()
        return found


_FORMS: dict[str, Callable[[Any], str]] = {
    "CHAR": lambda of: f"CHAR({of.length})",
    "VARCHAR": lambda of: "STRING" if of.length == t.MAX_LENGTH else f"VARCHAR({of.length})",
    "BINARY": lambda of: f"BINARY({of.length})",
    "VARBINARY": lambda of: "BYTES" if of.length == t.MAX_LENGTH else f"VARBINARY({of.length})",
    "DECIMAL": lambda of: f"DECIMAL({of.precision}, {of.scale})",
    "TIME": lambda of: f"TIME({of.precision})",
    "TIMESTAMP": lambda of: f"TIMESTAMP({of.precision})",
    "TIMESTAMP_LTZ": lambda of: f"TIMESTAMP({of.precision}) WITH LOCAL TIME ZONE",
    "GEOMETRY": lambda of: f"GEOMETRY({_quote_unless_bare(of.crs)})",
    "GEOGRAPHY": lambda of: f"GEOGRAPHY({_quote_unless_bare(of.crs)}, {of.algorithm})",
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
        text += f" COMMENT {_quote(member.description)}"
    if member.default_value is not None:
        text += f" DEFAULT {member.default_value}"
    return text


def _quote(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _quote_unless_bare(reference: str) -> str:
    return _quote(reference) if _QUOTED_FOR.match(reference) else reference
