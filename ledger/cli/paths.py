"""Column paths and KEY=VALUE, as users write them on the command line."""

from __future__ import annotations

from ledger.cli.exits import UsageError
from ledger.model import path_text
from ledger.model.errors import InvalidInputError


def leading_path(text: str) -> tuple[tuple[str, ...], str]:
    """Return the path that a text begins with, and what follows; see `ledger.model.path_text`.

    Raises:
        UsageError: The text begins with no path.
    """
    try:
        return path_text.leading_path(text)
    except InvalidInputError as error:
        raise UsageError(error.message) from error


def whole_path(text: str) -> tuple[str, ...]:
    """Return the path that a text is.

    Raises:
        UsageError: Something follows the path.
    """
    try:
        return path_text.whole_path(text)
    except InvalidInputError as error:
        raise UsageError(error.message) from error


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
        raise UsageError(
            f"{text!r} is not PATH=VALUE: {rest!r} follows the path; a name with blanks, dots or "
            "'=' in it stands between backticks: '`unit price`=price'"
        )
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
