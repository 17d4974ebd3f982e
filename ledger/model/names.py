"""Identifiers of tables and views, and column paths as text.

Source: Paimon's Identifier (`table[$branch_<branch>][$<system table>]`) and the DLF metadata API.
"""

from __future__ import annotations

import re

from attrs import frozen

from ledger.model.errors import InvalidInputError, InvalidNameError
from ledger.model.messages import excerpt

MAX_NAME_LENGTH = 255
_FORBIDDEN = frozenset('/\\:*?"<>|%#')
_RESERVED = frozenset({"_ledger", "sys", "schema", "snapshot", "manifest", "metadata"})


def checked_name(name: str, what: str) -> str:
    """Return `name` if it is safe as one path segment in every format; raise otherwise.

    Args:
        name: The wanted name.
        what: The kind of thing that it names, for the message: "database", "table", "view", "tag".

    Raises:
        InvalidNameError: It is empty, too long, `.` or `..`, reserved, or has separators,
            control characters, `$` or outer blanks.

    Example:
        >>> checked_name("orders", "table")
        'orders'
        >>> checked_name("../orders", "table")
        Traceback (most recent call last):
        ledger.model.errors.InvalidNameError: table name '../orders' has '/': letters, digits, ...
    """
    if not isinstance(name, str):
        raise InvalidNameError(f"{what} name {excerpt(name)} is no text")
    rule = "letters, digits, '_', '-', '.' and blanks inside are always safe"
    if not name or len(name.encode("utf-8", "replace")) > MAX_NAME_LENGTH:
        raise InvalidNameError(f"{what} name {name!r} is empty or over {MAX_NAME_LENGTH} bytes")
    for char in name:
        if char in _FORBIDDEN or char == "$" or not char.isprintable():
            raise InvalidNameError(f"{what} name {name!r} has {char!r}: {rule}")
    if name.strip() != name or name.startswith("."):
        raise InvalidNameError(f"{what} name {name!r} starts with '.' or has outer blanks: {rule}")
    if name in _RESERVED and what in {"database", "table"}:
        raise InvalidNameError(f"{what} name {name!r} is reserved for the formats' own folders")
    return name


@frozen
class Identifier:
    """A table's or view's full name.

    Example:
        >>> Identifier.parse("shop.orders")
        Identifier(database='shop', name='orders')
        >>> str(Identifier("shop", "orders"))
        'shop.orders'
    """

    database: str
    name: str

    @classmethod
    def parse(cls, text: str | Identifier) -> Identifier:
        """Split a full name at its first dot, as Paimon does.

        Raises:
            InvalidNameError: There is no dot, or a part is not a safe name.
        """
        if isinstance(text, Identifier):
            return text
        if not isinstance(text, str):
            raise InvalidNameError(f"identifier={excerpt(text)} is no name; write 'DATABASE.TABLE'")
        database, dot, name = text.partition(".")
        if not dot:
            raise InvalidNameError(f"{text!r} is not a full name; write DATABASE.TABLE")
        return cls(database, name).checked()

    def checked(self) -> Identifier:
        """Return this identifier if both parts are safe names.

        Raises:
            InvalidNameError: One is not.
        """
        if "." in self.database:
            raise InvalidNameError(f"database name {self.database!r} has '.', which ends it")
        checked_name(self.database, "database")
        checked_name(self.name, "table")
        return self

    def __str__(self) -> str:
        return f"{self.database}.{self.name}"


# A dot ends a segment and a blank or '=' ends the path, except between backticks.
_SEGMENT = re.compile(r"`((?:[^`]|``)+)`|([^\s.`=]+)")


def parse_leading_path(text: str) -> tuple[tuple[str, ...], str]:
    """Return the column path at the start of a text, and the rest of the text.

    Segments are separated by dots; a name with dots, blanks or `=` in it is quoted with backticks,
    and a backtick in it is doubled.

    Raises:
        InvalidInputError: The text does not begin with a path.

    Example:
        >>> parse_leading_path("address.`zip.code` STRING")
        (('address', 'zip.code'), ' STRING')
    """
    names: list[str] = []
    position = 0
    while found := _SEGMENT.match(text, position):
        names.append(found[1].replace("``", "`") if found[1] is not None else found[2])
        position = found.end()
        if not text.startswith(".", position):
            return tuple(names), text[position:]
        position += 1
    raise InvalidInputError(
        f"{text!r} begins with no column path; write NAME or ROW.MEMBER, and a name with dots, "
        "blanks or '=' in it between backticks: address.`zip.code`"
    )


def parse_column_path(text: str) -> tuple[str, ...]:
    """Return the column path that a text consists of.

    Raises:
        InvalidInputError: The text is not a path, or has more text after it.
    """
    names, rest = parse_leading_path(text.strip())
    if rest:
        raise InvalidInputError(f"{text!r} is no column path: {rest.strip()!r} may not follow")
    return names


# Not punctuation only, and without characters that are likely to be a slip.
_UNQUOTED = re.compile(r"(?![!-/:-@^|~]+$)[^\s.`=:,;\"'()\[\]{}<>]+")


def quote_path(names: tuple[str, ...]) -> str:
    """Return a column path as text, quoted as `parse_leading_path` reads it.

    Names with a colon or stray punctuation are quoted, too, since a column's definition has them
    between backticks only.

    Example:
        >>> quote_path(("address", "zip.code"))
        'address.`zip.code`'
    """
    return ".".join(
        each if _UNQUOTED.fullmatch(each) else "`" + each.replace("`", "``") + "`" for each in names
    )
