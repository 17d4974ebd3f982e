"""Token cursor, and clauses such as IF EXISTS."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from attrs import frozen

from ledger.decide.changes import CreateTag, DeleteTag, ReplaceTag, TableChange
from ledger.events.schema import (
    RemovePartitionField,
    SchemaChange,
    SetIdentifierFields,
    SpecUpdate,
    UpdatePartitionSpec,
)
from ledger.model.errors import ColumnNotFoundError, InvalidInputError
from ledger.model.names import quote_path
from ledger.model.schema import Schema, paths_of
from ledger.model.types import whole_number
from ledger.state.table import TableState

T = TypeVar("T")

_SHOWN = 30


class TokenCursor:
    """Reads a statement's tokens from left to right.

    Args:
        text: The statements.

    Raises:
        InvalidInputError: A quote is not closed.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self._tokens = _tokens(text)
        self._at = 0

    @property
    def is_at_end(self) -> bool:
        """True if no token is left."""
        return self._at >= len(self._tokens)

    @property
    def remaining_text(self) -> str:
        """The rest of the text, unchanged."""
        return "" if self.is_at_end else self.text[self._tokens[self._at].start :]

    def found(self, *words: str) -> bool:
        """Consume these words if they come next, and return whether they did."""
        upcoming = self._tokens[self._at : self._at + len(words)]
        if [_normalized_word(each) for each in upcoming] != list(words):
            return False
        self._at += len(words)
        return True

    def is_next(self, word: str) -> bool:
        """Return whether a word comes next, without consuming it."""
        return not self.is_at_end and _normalized_word(self._tokens[self._at]) == word

    def expect(self, *words: str) -> None:
        """Consume these words.

        Raises:
            InvalidInputError: Something else comes next.
        """
        if not self.found(*words):
            raise self.error(f"expected {' '.join(words)}")

    def name(self) -> str:
        """Read an identifier, in backticks or not.

        Raises:
            InvalidInputError: Something else comes next.
        """
        token = self._next_token("a name")
        if token.token_type.name == "STRING" or not _is_identifier(token):
            self._at -= 1
            raise self.error("expected a name")
        return str(token.text)

    def path(self) -> tuple[str, ...]:
        """Read identifiers separated by dots."""
        names = [self.name()]
        while self.found("."):
            names.append(self.name())
        return tuple(names)

    def string(self) -> str:
        """Read a quoted text; several in a row are joined, as in Spark.

        Raises:
            InvalidInputError: Something else comes next.
        """
        parts = list(iter(self.quoted, None))
        if not parts:
            raise self.error("expected a text in quotes")
        return "".join(parts)

    def quoted(self) -> str | None:
        """Read one quoted text if there is one."""
        if self.is_at_end or self._tokens[self._at].token_type.name != "STRING":
            return None
        return str(self._next_token("a quoted text").text)

    def whole_number(self) -> int:
        """Read an integer.

        Raises:
            InvalidInputError: Something else comes next.
        """
        token = self._next_token("a whole number")
        number = whole_number(str(token.text))
        if number is None:
            self._at -= 1
            raise self.error("expected a whole number")
        return number

    def read_literal(self) -> str:
        """Read a property's value: a quoted text, a number, or a boolean."""
        text = self.quoted()
        if text is not None:
            return text
        return ("-" if self.found("-") else "") + str(self._next_token("a value").text)

    def read_until(self, *stops: str) -> str:
        """Read up to one of these words, or a comma or bracket that nothing before opened.

        Returns:
            The text, unchanged.
        """
        begin, depth = self._at, 0
        while not self.is_at_end:
            word = _normalized_word(self._tokens[self._at])
            if depth == 0 and (word in stops or word in {",", ")", ";"}):
                break
            depth += (word in {"(", "<", "["}) - (word in {")", ">", "]"})
            self._at += 1
        if begin == self._at:
            raise self.error("expected a data type")
        return self.text[self._tokens[begin].start : self._tokens[self._at - 1].end + 1]

    def items(self, read: Callable[[TokenCursor], T]) -> list[T]:
        """Read one or more items separated by commas, in brackets or not."""
        bracketed = self.found("(")
        found = [read(self)]
        while self.found(","):
            found.append(read(self))
        if bracketed:
            self.expect(")")
        return found

    def error(self, rule: str) -> InvalidInputError:
        """Return an error that gives the position in the text."""
        if self.is_at_end:
            return InvalidInputError(f"{rule} at the end of {self.text.strip()!r}")
        start = self._tokens[self._at].start
        return InvalidInputError(
            f"{rule} at position {start + 1}, found {self.text[start : start + _SHOWN]!r}"
        )

    def _next_token(self, wanted: str) -> Any:
        if self.is_at_end:
            raise self.error(f"expected {wanted}")
        self._at += 1
        return self._tokens[self._at - 1]


def _tokens(text: str) -> list[Any]:
    # Heavy, and needed only here.
    from sqlglot.dialects.spark import Spark
    from sqlglot.errors import SqlglotError

    try:
        return list(Spark().tokenize(text))
    except SqlglotError as error:
        raise InvalidInputError(f"cannot read {text!r}: {error}; close every quote") from error


def _normalized_word(token: Any) -> str:
    # A name in backticks is never a keyword, and neither is a text.
    quoted = token.token_type.name in {"IDENTIFIER", "STRING"}
    return f"`{token.text}`" if quoted else str(token.text).upper()


def _is_identifier(token: Any) -> bool:
    return token.token_type.name == "IDENTIFIER" or str(token.text).replace("_", "a").isalnum()


@frozen
class ConditionalColumnChange:
    """A change that is made only if a column exists at a path, or only if none does."""

    path: tuple[str, ...]
    change: SchemaChange
    exists: bool


@frozen
class ConditionalTagChange:
    """A change that is made only if a tag of its name exists, or only if none does."""

    change: CreateTag | ReplaceTag | DeleteTag
    exists: bool


@frozen
class RemovePartitionTerm:
    """Remove a partition field by a bare word: the column's own, else the one of that name."""

    word: str


@frozen
class PartitionSpecClause:
    """Change the partition spec."""

    updates: tuple[SpecUpdate | RemovePartitionTerm, ...]


@frozen
class DropIdentifierFields:
    """Remove columns from the identifier fields."""

    paths: tuple[tuple[str, ...], ...]


Asked = (
    TableChange
    | ConditionalColumnChange
    | ConditionalTagChange
    | PartitionSpecClause
    | DropIdentifierFields
)
"""A request of a statement: a change, or one that depends on the table's state."""


def resolve_table_changes(asked: Sequence[Asked], state: TableState) -> list[TableChange]:
    """Return the changes that a statement makes to a table.

    Raises:
        ColumnNotFoundError: A column to drop from the identifier fields is not one of them.
    """
    return [change for each in asked for change in _resolve_change(each, state)]


def _resolve_change(asked: Asked, state: TableState) -> Iterator[TableChange]:
    match asked:
        case ConditionalColumnChange():
            if (asked.path in dict(paths_of(state.schema))) is asked.exists:
                yield asked.change
        case ConditionalTagChange():
            if (asked.change.tag_name in state.tags) is asked.exists:
                yield asked.change
        case PartitionSpecClause(updates=updates):
            yield UpdatePartitionSpec(
                tuple(_resolve_spec_update(each, state.schema) for each in updates)
            )
        case DropIdentifierFields():
            yield _remaining_identifier_fields(asked.paths, state.schema)
        case _:
            yield asked


def _resolve_spec_update(update: SpecUpdate | RemovePartitionTerm, schema: Schema) -> SpecUpdate:
    if not isinstance(update, RemovePartitionTerm):
        return update
    if update.word in schema.names:
        return RemovePartitionField(source=(update.word,), transform="identity")
    return RemovePartitionField(name=update.word)


def _remaining_identifier_fields(
    paths: Sequence[tuple[str, ...]], schema: Schema
) -> SetIdentifierFields:
    ids = set(schema.identifier_field_ids)
    there = [path for path, field_id in paths_of(schema) if field_id in ids]
    for each in paths:
        if each not in there:
            known = ", ".join(map(quote_path, there)) or "none"
            raise ColumnNotFoundError(
                f"{quote_path(each)} is no identifier field; there are: {known}"
            )
    return SetIdentifierFields(tuple(each for each in there if each not in paths))
