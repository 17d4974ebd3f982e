"""Options under many names that keep the order in which they stand on the command line."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from cyclopts import Token


def as_written(_type: Any, tokens: Sequence[Token]) -> tuple[str, ...]:
    """Return each option with its value as one text, in their order: a converter for cyclopts.

    Texts, as the parameter's annotation says: where pydantic is loaded, cyclopts checks that.
    """
    return tuple(f"{token.keyword or ''} {token.value}" for token in tokens)


def pairs(written: Iterable[str]) -> list[tuple[str, str]]:
    """Return what `as_written` gave as pairs of option and value.

    Example:
        >>> pairs(["--add zip STRING", "--drop city"])
        [('--add', 'zip STRING'), ('--drop', 'city')]
    """
    return [(option, value) for option, _, value in (each.partition(" ") for each in written)]
