"""Parser of type texts, shared by all grammars.

A grammar is a table: it gives each type name the function that reads the rest of the type. The
parser reads a text once, from left to right, without going back. Length and nesting depth of a text
are limited, so that every text ends in a type or in an `InvalidTypeError` with a position.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from attrs import frozen

import ledger.model.types as t
from ledger.model.errors import InvalidTypeError
from ledger.model.messages import is_utf8_encodable, similar_names

MAX_TYPE_TEXT = 1_000_000
"""Maximum number of characters of a type text; longer ones are rejected."""

Reader = Callable[["TypeParser", int], t.DataType]
"""Reads what follows a type name; the number is the position of the name, for errors."""


@frozen
class Grammar:
    """Type names and quoting of one dialect.

    Attributes:
        readers: The function that reads the rest of a type, by type name in upper case.
        hints: The advice for names that are not types, by name in upper case.
        suggested: The names that a message offers instead of a similar one.
        quoted: Pattern of a quoted text.
        unquote: Returns the text that a quoted text means.
    """

    readers: Mapping[str, Reader]
    hints: Mapping[str, str]
    suggested: tuple[str, ...]
    quoted: re.Pattern[str]
    unquote: Callable[[str], str]


# Java's definition of white space, which excludes non-breaking blanks.
_BLANK = r"[^\S\x85\xa0\u2007\u202f]"
_SPACE = re.compile(rf"{_BLANK}*")
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_DIGITS = re.compile(r"[0-9]+")
_BARE = re.compile(rf"(?:(?!{_BLANK}|[0-9'`,()<>.]).)(?:(?!{_BLANK}|[,()<>.]).)*", re.DOTALL)
_QUOTED_FOR = re.compile(rf"\d|.*(?:{_BLANK}|[,()<>.'`])", re.DOTALL)
_UP_TO_BRACKET = re.compile(r"[^<>\[\]]+")

# Names of members. A colon ends a name without quotes, as Arrow writes it; without a colon, a
# blank does.
_QUOTED_NAME = re.compile(r"`((?:[^`]|``)+)`\s*(?::)?")
_COLON_NAME = re.compile(r"([^:<>,()\[\]'\"`]*[^:<>,()\[\]'\"`\s])\s*:")
_BLANK_NAME = re.compile(r"([^\s:<>,()\[\]'\"`]+)(?=\s)")
# Iceberg's `1: id: required long`.
_ICEBERG_MEMBER = re.compile(
    r"[0-9]+\s*:\s*([^:<>,()\[\]'\"`]*[^:<>,()\[\]'\"`\s])\s*:\s*(optional|required)(?=\s)"
)
# Iceberg's comment of a member; it is not escaped, so that it ends where its member does.
_ICEBERG_COMMENT = re.compile(r"\((.*?)\)(?=\s*(?:>|,\s*[0-9]+\s*:))", re.DOTALL)
_BARE_DEFAULT = re.compile(r"[^\s<>(),'`]+")

# Longer numbers are out of every type's range, and Python raises for very long ones.
_MAX_DIGITS = 10

# Number of characters of an unknown name that the message quotes.
_MAX_NAME = 40

# Number of characters of an invalid text that the message quotes, and of those before the fault.
_SHOWN, _SHOWN_BEFORE = 120, 100

_POSTFIX: dict[str, Callable[[t.DataType], t.DataType]] = {
    "ARRAY": t.ArrayType,
    "MULTISET": t.MultisetType,
}


SQL_TEXT = re.compile(r"'(?:[^']|'')*'")
"""A text in single quotes; a quote in it is written twice."""


def unquote_sql(text: str) -> str:
    """Return the text that a match of `SQL_TEXT` means.

    >>> unquote_sql("'it''s'")
    "it's"
    """
    return text[1:-1].replace("''", "'")


def quote_text(text: str) -> str:
    """Return a text in single quotes, as `SQL_TEXT` reads it.

    >>> quote_text("it's")
    "'it''s'"
    """
    return "'" + text.replace("'", "''") + "'"


def default_of_literal(text: str) -> str | None:
    """Return the default value that a literal means; unquoted NULL, in any case, is no default.

    >>> default_of_literal("null"), default_of_literal("'NULL'"), default_of_literal("5")
    (None, 'NULL', '5')
    """
    if text.upper() == "NULL":
        return None
    return unquote_sql(text) if SQL_TEXT.fullmatch(text) else text


def quote_unless_bare(reference: str) -> str:
    """Return the name of a reference system, quoted if it is not a plain word."""
    return quote_text(reference) if _QUOTED_FOR.match(reference) else reference


class TypeParser:
    """Recursive-descent parser of one type text, without backtracking.

    Args:
        text: The text, which begins with a type.
        grammar: The dialect.
        start: The position at which the type begins.

    Raises:
        InvalidTypeError: The text is too long.
    """

    def __init__(self, text: str, grammar: Grammar, start: int = 0) -> None:
        self.text = text
        self.position = start
        self._grammar = grammar
        self._depth = self._next_id = 0
        self._is_iceberg_member = False
        if len(text) > MAX_TYPE_TEXT:
            raise self.error(
                f"it has {len(text):,} characters; at most {MAX_TYPE_TEXT:,} may describe a type"
            )
        if not is_utf8_encodable(text):
            raise self.error("half a surrogate pair is no character")
        self._consume_pattern(_SPACE)

    def parse_whole(self) -> t.DataType:
        """Read a type that ends where the text ends.

        Raises:
            InvalidTypeError: The text is not a type.
        """
        result = self.parse_leading()
        if self.position < len(self.text):
            raise self.error(f"nothing may follow here, found {self._next_characters()}")
        return result

    def parse_leading(self) -> t.DataType:
        """Read the type at the start of the text; the rest begins at `position`.

        Raises:
            InvalidTypeError: The text does not begin with a type.
        """
        try:
            return self.parse_any_type()
        except RecursionError:
            raise self.error("the type nests too deeply for the calling program") from None

    def parse_any_type(self) -> t.DataType:
        """Read a type, its nullability, and an ARRAY or MULTISET suffix.

        Raises:
            InvalidTypeError: The text does not begin with a type.
        """
        result = self.parse_nullable_type()
        start = self.position
        wrap = _POSTFIX.get(self.read_word())
        if wrap is None:
            self.position = start
            return result
        return self.parse_nullability(self.build_type(start, wrap, result))

    def parse_nullable_type(self) -> t.DataType:
        """Read a type and its nullability, without a suffix."""
        start = self.position
        name = self.read_word()
        reader = self._grammar.readers.get(name)
        if reader is None:
            shown = name if len(name) <= _MAX_NAME else f"{name[:_MAX_NAME]}..."
            hint = self._grammar.hints.get(name) or self._similar_type(shown)
            raise self.error(f"{shown or 'this'} is not read as a type; {hint}", start)
        return self.parse_nullability(reader(self, start))

    @contextmanager
    def nested(self, start: int) -> Iterator[None]:
        """Read the parts of a constructed type, between angle brackets, one level deeper.

        Raises:
            InvalidTypeError: Types nest too deeply, or a bracket is missing.
        """
        if self._depth >= t.MAX_DEPTH:
            raise self.error(f"the type nests deeper than {t.MAX_DEPTH}; flatten it", start)
        self._depth += 1
        if not self.accept_sign("<"):
            raise self.error(
                f"'<' is missing, found {self._next_characters()}; write the parts of a nested "
                "type between angle brackets, as in ARRAY<INT>"
            )
        yield
        self.expect_sign(">")
        self._depth -= 1

    def parse_element(self) -> t.DataType:
        """Read a list's element: a type, which Arrow puts a name and a colon before."""
        self._consume_pattern(_COLON_NAME)
        return self.parse_any_type()

    def parse_members(self) -> tuple[t.DataField, ...]:
        """Read the members of a struct; they get ids from 0 in reading order."""
        members: list[t.DataField] = []
        if self.text.startswith(">", self.position):
            return ()
        while not members or self.accept_sign(","):
            members.append(self._parse_member())
        return tuple(members)

    def _parse_member(self) -> t.DataField:
        number = self._next_id
        self._next_id += 1
        iceberg = self._consume_pattern(_ICEBERG_MEMBER)
        if iceberg is not None:
            return self._parse_iceberg_member(number, iceberg)
        name = self._parse_member_name()
        data_type = self.parse_any_type()
        comment = default = None
        while True:
            start = self.position
            match self.read_word():
                case "COMMENT" if comment is None:
                    comment = self._parse_quoted()
                case "DEFAULT" if default is None:
                    default = self._parse_default()
                case "NOT" if data_type.nullable and (comment, default) != (None, None):
                    self.expect_words("NULL")
                    data_type = self.build_type(start, data_type.with_nullability, False)  # noqa: FBT003 - the value
                case _:
                    self.position = start
                    return t.DataField(number, name, data_type, comment, default)

    def _parse_iceberg_member(self, number: int, found: re.Match[str]) -> t.DataField:
        outer, self._is_iceberg_member = self._is_iceberg_member, True
        start, data_type = self.position, self.parse_any_type()
        self._is_iceberg_member = outer
        data_type = self.build_type(start, data_type.with_nullability, found[2] == "optional")
        comment = self._consume_pattern(_ICEBERG_COMMENT)
        return t.DataField(number, found[1], data_type, None if comment is None else comment[1])

    def _parse_member_name(self) -> str:
        start = self.position
        quoted = self._consume_pattern(_QUOTED_NAME)
        if quoted is not None:
            return quoted[1].replace("``", "`")
        bare = self._consume_pattern(_COLON_NAME) or self._consume_pattern(_BLANK_NAME)
        if bare is None:
            raise self.error(
                f"a member's name and type are missing, found {self._next_characters()}; write "
                "NAME TYPE, and other characters than letters, digits and _ between backticks",
                start,
            )
        return bare[1]

    def _parse_quoted(self) -> str:
        quoted = self._consume_pattern(self._grammar.quoted)
        if quoted is None:
            raise self.error(f"a text in quotes is missing, found {self._next_characters()}")
        return self._grammar.unquote(quoted[0])

    def _parse_default(self) -> str | None:
        if (quoted := self._consume_pattern(self._grammar.quoted)) is not None:
            return self._grammar.unquote(quoted[0])
        bare = self._consume_pattern(_BARE_DEFAULT)
        if bare is None:
            raise self.error(f"a default value is missing, found {self._next_characters()}")
        return default_of_literal(bare[0])

    def parse_numbers(self, at_most: int) -> list[int]:
        """Read up to `at_most` numbers between parentheses; none if there are no parentheses."""
        if not self._accept_parameters():
            return []
        numbers = [self.parse_number()]
        while len(numbers) < at_most and self.accept_sign(","):
            numbers.append(self.parse_number())
        self.expect_sign(")")
        return numbers

    def parse_number(self) -> int:
        """Read a whole number."""
        digits = self._consume_pattern(_DIGITS)
        if digits is None:
            raise self.error(f"a whole number is missing, found {self._next_characters()}")
        significant = digits[0].lstrip("0") or "0"
        if len(significant) > _MAX_DIGITS:
            raise self.error(f"{significant[:_MAX_DIGITS]}... is out of range", digits.start())
        return int(significant)

    def parse_references(self, *, at_most: int) -> list[str]:
        """Read up to `at_most` names between parentheses; none if there are no parentheses."""
        if not self._accept_parameters():
            return []
        names = [self._parse_reference()]
        while len(names) < at_most and self.accept_sign(","):
            names.append(self._parse_reference())
        self.expect_sign(")")
        return names

    def _accept_parameters(self) -> bool:
        """Read the parenthesis before a type's parameters; after a blank Iceberg has a comment."""
        is_comment = self._is_iceberg_member and self.text[self.position - 1].isspace()
        return not is_comment and self.accept_sign("(")

    def parse_up_to_bracket(self) -> str:
        """Read characters up to the next angle or square bracket."""
        found = self._consume_pattern(_UP_TO_BRACKET)
        return "" if found is None else found[0].strip()

    def build_type(
        self, start: int, make: Callable[..., t.DataType], *arguments: object
    ) -> t.DataType:
        """Return the type that a constructor makes; its error gets the position `start`."""
        try:
            return make(*arguments)
        except InvalidTypeError as error:
            raise self.error(error.message, start) from error

    def expect_words(self, *words: str) -> None:
        """Read the given words."""
        for word in words:
            if not self.accept_word(word):
                raise self.error(f"{word} is missing, found {self._next_characters()}")

    def expect_sign(self, sign: str) -> None:
        """Read the given sign."""
        if not self.accept_sign(sign):
            raise self.error(f"{sign!r} is missing, found {self._next_characters()}")

    def accept_word(self, word: str) -> bool:
        """Read a word if it comes next, and return whether it did."""
        start = self.position
        if self.read_word() == word:
            return True
        self.position = start
        return False

    def accept_sign(self, sign: str) -> bool:
        """Read a sign if it comes next, and return whether it did."""
        if not self.text.startswith(sign, self.position):
            return False
        self.position += len(sign)
        self._consume_pattern(_SPACE)
        return True

    def read_word(self) -> str:
        """Read a word of letters, digits and `_`; return it in upper case, or an empty text."""
        word = self._consume_pattern(_WORD)
        return word[0].upper() if word is not None else ""

    def error(self, rule: str, position: int | None = None) -> InvalidTypeError:
        """Return the error to raise, with the text, the position and the rule."""
        place = self.position if position is None else position
        begin = max(0, place - _SHOWN_BEFORE)
        shown = self.text[begin : begin + _SHOWN]
        cut = ("..." if begin else "") + shown + ("..." if begin + _SHOWN < len(self.text) else "")
        return InvalidTypeError(f"cannot read type {cut!r} at position {place}: {rule}")

    def _similar_type(self, name: str) -> str:
        near = similar_names(name, self._grammar.suggested)
        if near:
            return f"did you mean {near[0]}?"
        return "name one of the types, such as INT, STRING, DECIMAL(9, 2)"

    def _next_characters(self) -> str:
        rest = self.text[self.position : self.position + 20]
        return repr(rest) if rest else "the end of the text"

    def parse_nullability(self, result: t.DataType) -> t.DataType:
        """Read NOT NULL, NULL or nothing, and return the type with that nullability."""
        start = self.position
        if self.accept_word("NOT"):
            self.expect_words("NULL")
            return self.build_type(start, result.with_nullability, False)  # noqa: FBT003 - the value
        self.accept_word("NULL")
        return result

    def _parse_reference(self) -> str:
        if (quoted := self._consume_pattern(SQL_TEXT)) is not None:
            return unquote_sql(quoted[0])
        if (bare := self._consume_pattern(_BARE)) is not None:
            return bare[0]
        raise self.error("a name is missing, such as OGC:CRS84")

    def _consume_pattern(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Consume `pattern` and the blanks after it."""
        found = pattern.match(self.text, self.position)
        if found is not None:
            blanks = _SPACE.match(self.text, found.end())
            self.position = blanks.end() if blanks is not None else found.end()
        return found


def plain(data_type: t.DataType) -> Reader:
    """Return the reader of a type without parameters."""

    def read(_parser: TypeParser, _start: int) -> t.DataType:
        return data_type

    return read


def numbered(make: Callable[..., t.DataType], at_most: int) -> Reader:
    """Return the reader of a type with up to `at_most` numbers between parentheses."""

    def read(parser: TypeParser, start: int) -> t.DataType:
        return parser.build_type(start, make, *parser.parse_numbers(at_most))

    return read
