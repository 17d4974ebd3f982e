"""Column paths and KEY=VALUE, as users write them."""

from __future__ import annotations

import re

from ledger.cli.exits import UsageError

# A dot ends a segment and a blank or '=' ends the path, unless they stand between backticks.
_SEGMENT = re.compile(r"`((?:[^`]|``)+)`|([^\s.`=]+)")


def leading_path(text: str) -> tuple[tuple[str, ...], str]:
    """Return the path that a text begins with, and what follows.

    Segments are parted by dots; a name with dots, blanks or `=` in it stands between backticks,
    and a backtick in it is doubled.

    Raises:
        UsageError: The text begins with no path.

    Example:
        >>> leading_path("address.`zip.code` STRING")
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
    raise UsageError(
        f"{text!r} begins with no column path; write NAME or ROW.MEMBER, and a name with dots, "
        "blanks or '=' in it between backticks: address.`zip.code`"
    )


def whole_path(text: str) -> tuple[str, ...]:
    """Return the path that a text is.

    Raises:
        UsageError: Something follows the path.
    """
    names, rest = leading_path(text.strip())
    if rest:
        raise UsageError(f"{text!r} is no column path: {rest.strip()!r} may not follow")
    return names


def path_and_value(text: str) -> tuple[tuple[str, ...], str | None]:
    """Return `PATH=VALUE` in its parts; the value is None where there is no `=`.

    Raises:
        UsageError: It is neither `PATH` nor `PATH=VALUE`.

    Example:
        >>> path_and_value("a.b=x=y"), path_and_value("a")
        ((('a', 'b'), 'x=y'), (('a',), None))
    """
    names, rest = leading_path(text)
    if not rest:
        return names, None
    if not rest.startswith("="):
        raise UsageError(f"{text!r} is not PATH=VALUE: {rest!r} follows the path")
    return names, rest[1:]


def key_and_value(text: str) -> tuple[str, str]:
    """Return `KEY=VALUE` in its parts.

    Raises:
        UsageError: There is no `=`, or no key.
    """
    key, sign, value = text.partition("=")
    if not sign or not key:
        raise UsageError(f"{text!r} is not KEY=VALUE")
    return key, value


def shown_path(names: tuple[str, ...]) -> str:
    """Return a path as `leading_path` reads it.

    Example:
        >>> shown_path(("address", "zip.code"))
        'address.`zip.code`'
    """
    return ".".join(
        each if re.fullmatch(r"[^\s.`=]+", each) else "`" + each.replace("`", "``") + "`"
        for each in names
    )
