"""A column as users write it: `address.zip STRING NOT NULL COMMENT 'five digits' AFTER city`."""

from __future__ import annotations

import re
from typing import get_args

from attrs import frozen

from ledger.cli.exits import UsageError
from ledger.cli.paths import leading_path, whole_path
from ledger.events.schema_changes import Move, MoveType
from ledger.model.errors import InvalidTypeError
from ledger.model.sql_type import read_type
from ledger.model.types import DataType

_PLACE = re.compile(r"\s+(FIRST|LAST|(?:AFTER|BEFORE)\s+(?:`(?:[^`]|``)+`|\S+))\s*$", re.IGNORECASE)
_DEFAULT = re.compile(r"\s+DEFAULT\s+('(?:[^']|'')*'|\S+)\s*$", re.IGNORECASE)
_COMMENT = re.compile(r"\s+COMMENT\s+'((?:[^']|'')*)'\s*$", re.IGNORECASE)


@frozen
class ColumnText:
    """What a user wrote for a column.

    Attributes:
        path: Its path.
        type: Its data type.
        says_nullability: Whether the text ends in NULL or NOT NULL.
        comment: None when there is none.
        default: The default's text; None when there is none.
        move: Where it goes; None to stay, or to come last.
    """

    path: tuple[str, ...]
    type: DataType
    says_nullability: bool = False
    comment: str | None = None
    default: str | None = None
    move: Move | None = None


def read_column(text: str) -> ColumnText:
    """Return the column that a text describes.

    The form is `PATH TYPE [NOT NULL] [COMMENT 'text'] [DEFAULT value] [FIRST | LAST | AFTER column
    | BEFORE column]`.

    Raises:
        UsageError: It has no path or no type.
        InvalidTypeError: The type cannot be read; the message names the column.

    Example:
        >>> read_column("zip STRING COMMENT 'five digits' AFTER city").move
        Move(field_name='zip', type='AFTER', reference_field_name='city')
    """
    path, rest = leading_path(text.strip())
    rest, place = _cut(_PLACE, rest)
    rest, default = _cut(_DEFAULT, rest)
    rest, comment = _cut(_COMMENT, rest)
    if not rest.strip():
        raise UsageError(f"{text!r} has no type; write for example '{text.strip()} STRING'")
    try:
        data_type = read_type(rest)
    except InvalidTypeError as error:
        reason = error.message.removeprefix("$: ")
        raise InvalidTypeError(f"column {'.'.join(path)}: {reason}") from error
    return ColumnText(
        path,
        data_type,
        says_nullability=rest.upper().endswith("NULL"),
        comment=None if comment is None else comment.replace("''", "'"),
        default=None if default is None else _unquoted(default),
        move=None if place is None else read_place(path[-1], place),
    )


def read_place(name: str, text: str) -> Move:
    """Return where a column goes: `first`, `last`, `after column`, `before column`.

    Raises:
        UsageError: It is none of these.
    """
    word, _, reference = text.strip().partition(" ")
    wanted = next((each for each in _MOVES if each == word.upper()), None)
    if wanted is None or bool(reference.strip()) != (wanted in {"AFTER", "BEFORE"}):
        raise UsageError(f"{text.strip()!r} is no place; write first, last, after X or before X")
    return Move(name, wanted, whole_path(reference)[-1] if reference.strip() else None)


_MOVES: tuple[MoveType, ...] = get_args(MoveType)


def _cut(pattern: re.Pattern[str], text: str) -> tuple[str, str | None]:
    found = pattern.search(text)
    return (text, None) if found is None else (text[: found.start()], found[1])


def _unquoted(text: str) -> str:
    return text[1:-1].replace("''", "'") if text.startswith("'") else text
