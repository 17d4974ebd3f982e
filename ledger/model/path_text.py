"""Column paths as people write them: `address.zip`, and `` address.`zip.code` ``."""

from __future__ import annotations

import re

from ledger.model.errors import InvalidInputError

# A dot ends a segment and a blank or '=' ends the path, unless they stand between backticks.
_SEGMENT = re.compile(r"`((?:[^`]|``)+)`|([^\s.`=]+)")


def leading_path(text: str) -> tuple[tuple[str, ...], str]:
    """Return the path that a text begins with, and what follows.

    Segments are parted by dots; a name with dots, blanks or `=` in it stands between backticks,
    and a backtick in it is doubled.

    Raises:
        InvalidInputError: The text begins with no path.

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
    raise InvalidInputError(
        f"{text!r} begins with no column path; write NAME or ROW.MEMBER, and a name with dots, "
        "blanks or '=' in it between backticks: address.`zip.code`"
    )


def whole_path(text: str) -> tuple[str, ...]:
    """Return the path that a text is.

    Raises:
        InvalidInputError: Something follows the path.
    """
    names, rest = leading_path(text.strip())
    if rest:
        raise InvalidInputError(f"{text!r} is no column path: {rest.strip()!r} may not follow")
    return names


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
