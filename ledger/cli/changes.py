"""Parsing of columns, changes, paths and KEY=VALUE pairs given on the command line."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, get_args

from attrs import frozen

from ledger.cli.exits import UsageError
from ledger.decide.change_json import table_change_from_json
from ledger.events.schema import (
    AddColumn,
    DropColumn,
    Move,
    MoveType,
    RemoveOption,
    RenameColumn,
    SchemaChange,
    SetOption,
    SpecChange,
    UndropColumn,
    UpdateColumnComment,
    UpdateColumnDefaultValue,
    UpdateColumnNullability,
    UpdateColumnPosition,
    UpdateColumnType,
    UpdateComment,
)
from ledger.model import names as path_text
from ledger.model.errors import InvalidInputError, InvalidTypeError
from ledger.model.messages import excerpt
from ledger.model.names import quote_path
from ledger.model.types import DataType, whole_number
from ledger.model.types.parser import default_of_literal, unquote_sql
from ledger.model.types.sql import read_leading_type
from ledger.model.types.wire import type_to_wire


def parse_leading_path(text: str) -> tuple[tuple[str, ...], str]:
    """Split a text into its leading path and the rest; see `ledger.model.names`.

    Raises:
        UsageError: The text does not begin with a path.
    """
    try:
        return path_text.parse_leading_path(text)
    except InvalidInputError as error:
        raise UsageError(error.message) from error


def parse_column_path(text: str) -> tuple[str, ...]:
    """Parse a text as one path.

    Raises:
        UsageError: Something follows the path.
    """
    try:
        return path_text.parse_column_path(text)
    except InvalidInputError as error:
        raise UsageError(error.message) from error


def split_path_and_value(
    text: str, option: str, form: str = "PATH=VALUE"
) -> tuple[tuple[str, ...], str | None]:
    """Split `PATH=VALUE`; the value is None if there is no `=`.

    Args:
        text: The option's value.
        option: Option, for the message.
        form: Form of the option's value, for the message.

    Raises:
        UsageError: The text is neither `PATH` nor `PATH=VALUE`.

    Example:
        >>> split_path_and_value("a.b=x=y", "--default"), split_path_and_value("a", "--default")
        ((('a', 'b'), 'x=y'), (('a',), None))
    """
    names, rest = parse_leading_path(text)
    if not rest:
        return names, None
    if rest.startswith("="):
        return names, rest[1:]
    words = [quote_path(names), *rest.split()]
    pair = None if "=" in rest else pair_of_words(words, takes_name=form == "OLD=NEW")
    write = "" if pair is None else f"write {option} {shlex.quote(pair)}; "
    raise UsageError(
        f"{text!r} is not {form}: {rest!r} follows the path; {write}a name with blanks, dots or "
        "'=' in it is quoted with backticks: '`unit price`=price'"
    )


def pair_of_words(words: Sequence[str], *, takes_name: bool) -> str | None:
    """Return the pair that words most likely mean; None if that is unclear.

    Args:
        words: At least two words.
        takes_name: The value is one word, and may follow the word TO.

    Example:
        >>> pair_of_words(["id", "the", "key"], takes_name=False)
        'id=the key'
        >>> pair_of_words(["id", "TO", "nn"], takes_name=True)
        'id=nn'
    """
    key, sign, begin = words[0].partition("=")
    rest = [begin, *words[1:]] if sign else [*words[1:]]
    if not sign and rest[0].startswith("="):
        rest[0] = rest[0].removeprefix("=")
    elif takes_name and rest[0].upper() == "TO":
        rest = rest[1:]
    value = [each for each in rest if each]
    if not value or (takes_name and len(value) > 1):
        return None
    return f"{key}={' '.join(value)}"


def split_key_and_value(text: str) -> tuple[str, str]:
    """Split `KEY=VALUE`.

    Raises:
        UsageError: There is no `=`, or no key.
    """
    key, sign, value = text.partition("=")
    if not sign or not key:
        raise UsageError(f"{text!r} is not KEY=VALUE")
    return key, value


def read_pairs(
    option: str, texts: Iterable[str], form: str = "KEY=VALUE"
) -> Iterator[tuple[str, str]]:
    """Yield the pairs of an option that is repeatable.

    Args:
        option: Option, for the message.
        texts: Its values.
        form: Form of a value, for the message.

    Raises:
        UsageError: A text has no `=`, or no key.
    """
    for text in texts:
        try:
            yield split_key_and_value(text)
        except UsageError as error:
            raise UsageError(f"{option}: {text!r} is not {form}") from error


_SEGMENT = r"(?:`(?:[^`]|``)+`|[^\s.`=:]+)"
_PATH_BEFORE_TYPE = re.compile(rf"({_SEGMENT}(?:\.{_SEGMENT})*)\s*[:=]?\s*")
_SAYS_NULL = re.compile(r"\sNULL\s*$", re.IGNORECASE)
_CLAUSES = {
    name: re.compile(pattern, re.IGNORECASE)
    for name, pattern in {
        "comment": r"COMMENT\s+('(?:[^']|'')*')(?:\s+|$)",
        "default": r"DEFAULT\s+('(?:[^']|'')*'|\S+)(?:\s+|$)",
        "place": r"(FIRST|LAST|(?:AFTER|BEFORE)\s+(?:`(?:[^`]|``)+`|\S+))(?:\s+|$)",
    }.items()
}
"""The clauses that can follow a column's type."""


@frozen
class ColumnDefinition:
    """Column definition as the user wrote it.

    Attributes:
        path: Path of the column.
        type: Data type.
        says_nullability: True if the text ends in NULL or NOT NULL.
        has_clauses: True if anything follows the type.
        comment: Comment; None if absent.
        default: Text of the default value; None if absent or NULL.
        move: Position; None to stay, or to come last.
    """

    path: tuple[str, ...]
    type: DataType
    says_nullability: bool = False
    has_clauses: bool = False
    comment: str | None = None
    default: str | None = None
    move: Move | None = None


def read_column(text: str) -> ColumnDefinition:
    """Parse a column definition.

    The form is `PATH TYPE [NOT NULL] [COMMENT 'text'] [DEFAULT value] [FIRST | LAST | AFTER column
    | BEFORE column]`. A colon or `=` may follow the path, so that a name with one needs backticks,
    as does a name with quotes, brackets, a comma or a semicolon.

    Raises:
        UsageError: The path or the type is missing, or a name needs backticks.
        InvalidTypeError: The type cannot be parsed; the message names the column.

    Example:
        >>> read_column("zip=INT") == read_column("zip INT") == read_column("zip: INT")
        True
        >>> read_column("zip STRING COMMENT 'five digits' AFTER city").move
        Move(field_name='zip', type='AFTER', reference_field_name='city')
    """
    text = text.strip()
    found = _PATH_BEFORE_TYPE.match(text)
    path, _ = parse_leading_path(text if found is None else found[1])
    _require_plain_names(text if found is None else found[1])
    rest = "" if found is None else text[found.end() :]
    if not rest:
        raise UsageError(f"{text!r} has no type; for example, write '{quote_path(path)} STRING'")
    try:
        data_type, after = read_leading_type(rest)
        clauses = _read_clauses(after)
    except InvalidTypeError as error:
        reason = error.message.removeprefix("$: ")
        raise InvalidTypeError(f"column {quote_path(path)}: {reason}") from error
    comment, default, place = (clauses.get(name) for name in _CLAUSES)
    return ColumnDefinition(
        path,
        data_type,
        says_nullability=_SAYS_NULL.search(rest[: len(rest) - len(after)]) is not None,
        has_clauses=bool(clauses),
        comment=None if comment is None else unquote_sql(comment),
        default=None if default is None else default_of_literal(default),
        move=None if place is None else read_place(path[-1], place),
    )


def _require_plain_names(path: str) -> None:
    """Reject a path that names a new column with stray punctuation outside backticks.

    Raises:
        UsageError: A name has quotes, brackets, a comma or a semicolon, or nothing but punctuation.
    """
    for name in re.findall(_SEGMENT, path):
        if not name.startswith("`") and quote_path((name,)) != name:
            raise UsageError(
                f"column name {name!r} has quotes, brackets, commas or semicolons, or nothing but "
                "punctuation; remove them, or write such a name between backticks: "
                f"{quote_path((name,))}"
            )


def _read_clauses(text: str) -> dict[str, str]:
    """Return the values of the clauses that follow a type, in any order, by clause."""
    found: dict[str, str] = {}
    while text:
        name, match = next(
            (
                (name, match)
                for name, pattern in _CLAUSES.items()
                if (match := pattern.match(text)) is not None
            ),
            ("", None),
        )
        if match is None and found and _NULLABILITY.match(text):
            raise InvalidTypeError(
                f"{excerpt(text)} must follow the type directly; write it before the "
                f"{' and the '.join(_CLAUSE_WORDS[each] for each in found)}"
            )
        if match is None or name in found:
            raise InvalidTypeError(
                f"cannot read {excerpt(text)} after the type; write COMMENT 'text', DEFAULT value, "
                "and FIRST, LAST, AFTER column or BEFORE column, each once"
            )
        found[name] = match[1]
        text = text[match.end() :]
    return found


_NULLABILITY = re.compile(r"(?:NOT\s+)?NULL(?:\s|$)", re.IGNORECASE)
_CLAUSE_WORDS = {"comment": "comment", "default": "default value", "place": "position"}


def read_place(name: str, text: str) -> Move:
    """Parse a column position: `first`, `last`, `after column` or `before column`.

    Raises:
        UsageError: The text is no position.
    """
    word, _, reference = text.strip().partition(" ")
    wanted = next((each for each in _MOVES if each == word.upper()), None)
    if wanted is None or bool(reference.strip()) != (wanted in {"AFTER", "BEFORE"}):
        raise UsageError(
            f"{text.strip()!r} is not a position; write first, last, after X or before X"
        )
    return Move(name, wanted, parse_column_path(reference)[-1] if reference.strip() else None)


_MOVES: tuple[MoveType, ...] = get_args(MoveType)


def changes_from_options(options: Sequence[tuple[str, str]]) -> list[SchemaChange | SpecChange]:
    """Return the changes that options describe.

    Args:
        options: Pairs of option and value, such as ("--rename", "old=new"), in command-line order.

    Raises:
        UsageError: A value does not have the form that its option requires.
        InvalidInputError: A type or the JSON of a change cannot be parsed.

    Example:
        >>> changes_from_options([("--rename", "addr=address"), ("--drop", "fax")])
        [RenameColumn(field_names=('addr',), new_name='address'), DropColumn(field_names=('fax',))]
    """
    changes: list[SchemaChange | SpecChange] = []
    for option, value in options:
        try:
            changes.extend(_READERS[option](value))
        except UsageError as error:
            raise UsageError(f"{option}: {error}") from error
    return changes


def read_json(path: Path) -> Any:
    """Read a JSON file.

    Raises:
        InvalidInputError: The file cannot be read or is not JSON.
    """
    try:
        return json.loads(path.read_bytes())
    except OSError as error:
        raise InvalidInputError(f"file {path} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise InvalidInputError(f"file {path} is not JSON: {error}") from error


def _parse_add(text: str) -> list[SchemaChange]:
    column = read_column(text)
    added = AddColumn(column.path, type_to_wire(column.type), column.comment, column.move)
    if column.default is None:
        return [added]
    return [added, UpdateColumnDefaultValue(column.path, column.default)]


def _parse_type_change(text: str) -> list[SchemaChange]:
    column = read_column(text)
    if column.has_clauses:
        raise UsageError(f"{text!r} has more than a type; use separate options for the rest")
    keep = not column.says_nullability
    return [UpdateColumnType(column.path, type_to_wire(column.type), keep)]


def _parse_rename(text: str) -> list[SchemaChange]:
    path, new_name = split_path_and_value(text, "--rename", "OLD=NEW")
    if not new_name:
        raise UsageError(f"{text!r} is not OLD=NEW")
    names = parse_column_path(new_name)
    if len(names) > 1:
        raise UsageError(f"{new_name!r} is a path; the new name is the last segment only")
    _require_plain_names(new_name)
    return [RenameColumn(path, names[0])]


def _parse_column_comment(text: str) -> list[SchemaChange]:
    return [UpdateColumnComment(*split_path_and_value(text, "--column-comment", "PATH=TEXT"))]


def _parse_default(text: str) -> list[SchemaChange]:
    return [UpdateColumnDefaultValue(*split_path_and_value(text, "--default"))]


def _parse_undrop(text: str) -> list[SchemaChange]:
    path, field_id = split_path_and_value(text, "--undrop", "PATH=ID")
    if field_id is None:
        return [UndropColumn(path)]
    number = whole_number(field_id) if field_id.isascii() else None
    if number is None:
        raise UsageError(f"{text!r} is neither PATH nor PATH=ID; an id is a number")
    return [UndropColumn(path, number)]


def _parse_move(text: str) -> list[SchemaChange]:
    path, place = parse_leading_path(text.strip())
    move = read_place(path[-1], place)
    return [UpdateColumnPosition(move, path if len(path) > 1 else ())]


def _parse_json_change(text: str) -> list[SchemaChange | SpecChange]:
    try:
        decoded = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{text!r:.200} is not JSON: {error}") from error
    return [table_change_from_json(decoded, path="--change")]


def _read_changes_file(text: str) -> list[SchemaChange | SpecChange]:
    decoded = read_json(Path(text))
    if isinstance(decoded, dict):
        decoded = decoded.get("changes")
    if not isinstance(decoded, list):
        raise InvalidInputError(
            f'file {text} has no list of changes; write [...] or {{"changes": [...]}}'
        )
    return [
        table_change_from_json(each, path=f"{text}[{index}]") for index, each in enumerate(decoded)
    ]


_READERS: dict[str, Callable[[str], Sequence[SchemaChange | SpecChange]]] = {
    "--add": _parse_add,
    "--drop": lambda text: [DropColumn(parse_column_path(text))],
    "--undrop": _parse_undrop,
    "--rename": _parse_rename,
    "--type": _parse_type_change,
    "--nullable": lambda text: [UpdateColumnNullability(parse_column_path(text), True)],  # noqa: FBT003 - the value
    "--not-null": lambda text: [UpdateColumnNullability(parse_column_path(text), False)],  # noqa: FBT003 - the value
    "--column-comment": _parse_column_comment,
    "--default": _parse_default,
    "--move": _parse_move,
    "--set": lambda text: [SetOption(*split_key_and_value(text))],
    "--unset": lambda text: [RemoveOption(text)],
    "--comment": lambda text: [UpdateComment(text)],
    "--change": _parse_json_change,
    "--changes": _read_changes_file,
}

CHANGE_OPTIONS: tuple[str, ...] = tuple(_READERS)
"""Options of `alter` that describe changes."""
