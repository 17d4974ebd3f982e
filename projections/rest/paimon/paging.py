"""Pages of lists, and patterns of names.

A page token is the key of the last item before, so that pages need no state, and items that exist
all the time are listed exactly once.

Source: Paimon's REST catalog specification; its RESTCatalogServer for keys, limits and patterns.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Final, Generic, TypeVar

from attrs import frozen

from ledger.model.messages import excerpt
from projections.rest.requests import Call, RequestError

T = TypeVar("T")

MOST_RESULTS: Final = 1000
DEFAULT_RESULTS: Final = 100
_MOST_PATTERN: Final = 1024
_NUMBER: Final = re.compile(r"-?[0-9]{1,10}")


@frozen
class Paged(Generic[T]):
    """Items of a page, and the token of the next one; None after the last one."""

    items: tuple[T, ...]
    token: str | None


def page_of(call: Call, found: Sequence[T], key: Callable[[T], str]) -> Paged[T]:
    """Return the page of items that a call requests.

    Args:
        call: The call.
        found: All items, in the order of their keys.
        key: Returns the key of an item.

    Raises:
        RequestError: The size is no number.
    """
    return page_from(found, key, most_results(call), call.query.get("pageToken"))


def page_from(
    found: Sequence[T], key: Callable[[T], str], most: int, token: str | None
) -> Paged[T]:
    """Return the page of items after a token.

    Example:
        >>> page_from(["a", "b", "c"], str, 2, None)
        Paged(items=('a', 'b'), token='b')
        >>> page_from(["a", "b", "c"], str, 2, "b")
        Paged(items=('c',), token=None)
    """
    start = bisect_right(found, token, key=key) if token else 0
    items = tuple(found[start : start + most])
    is_last = start + len(items) >= len(found)
    return Paged(items, None if is_last else key(items[-1]))


def most_results(call: Call) -> int:
    """Return the size of the page that a call requests.

    Raises:
        RequestError: It is no number.
    """
    asked = call.query.get("maxResults") or "0"
    if not _NUMBER.fullmatch(asked):
        raise RequestError(
            400,
            f"Invalid input for queryParameter maxResults: {excerpt(asked)}; send a number of at "
            "most 10 digits",
        )
    size = int(asked)
    return min(size, MOST_RESULTS) if size > 0 else DEFAULT_RESULTS


def name_test(call: Call, parameter: str) -> Callable[[str], bool]:
    """Return a test of names by the pattern of a query parameter; without one all names pass.

    Raises:
        RequestError: The pattern is too long.
    """
    pattern = call.query.get(parameter)
    return make_name_test(pattern, parameter) if pattern else lambda _: True


def make_name_test(pattern: str, what: str) -> Callable[[str], bool]:
    """Return a test of names by a pattern: `%` is any text, a backslash makes a character literal.

    Args:
        pattern: The pattern.
        what: The name of the value, for the message.

    Raises:
        RequestError: The pattern is too long.

    Example:
        >>> matches = make_name_test("order%", "tableNamePattern")
        >>> matches("orders"), matches("reorder"), make_name_test("a_", "p")("ab")
        (True, False, False)
    """
    parts = literal_parts(pattern, what)
    if len(parts) == 1:
        return lambda name: name == parts[0]
    return lambda name: _matches(name, parts)


def literal_parts(pattern: str, what: str) -> list[str]:
    """Return the texts between the wildcards of a pattern; see `make_name_test`.

    Raises:
        RequestError: The pattern is too long.
    """
    if len(pattern) > _MOST_PATTERN:
        raise RequestError(
            400, f"{what} has {len(pattern)} characters; a pattern has at most {_MOST_PATTERN}"
        )
    parts = [""]
    escaped = False
    for each in pattern:
        if escaped or each not in "\\%":
            parts[-1] += each
            escaped = False
        elif each == "%":
            parts.append("")
        else:
            escaped = True
    return parts


def _matches(name: str, parts: Sequence[str]) -> bool:
    """Return whether a name has all parts in order, the first and last at its ends.

    Takes time in proportion to the name, which a regular expression with many wildcards does not.
    """
    first, *inner, last = parts
    end = len(name) - len(last)
    if not name.startswith(first) or not name.endswith(last) or end < len(first):
        return False
    position = len(first)
    for part in inner:
        found = name.find(part, position, end)
        if found < 0:
            return False
        position = found + len(part)
    return True
