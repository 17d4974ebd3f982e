"""Query parameters of a page, with a bound on each length and number; and the time of a view."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from typing import Final, TypeVar

from attrs import field, frozen

from ledger.model.messages import excerpt, name_hint
from ledger.model.types import LONG_MAX, whole_number
from projections.rest.requests import RequestError

T = TypeVar("T")

LONGEST_QUERY: Final = 2_048
"""Length of a query string, in bytes, beyond which a request is rejected."""

LONGEST_VALUE: Final = 300
"""Length of one parameter, in characters, beyond which a request is rejected."""

_MOST_PAGES: Final = 1_000_000
_BAD_REQUEST: Final = 400


@frozen
class PageQuery:
    """The query parameters of a page.

    Attributes:
        values: Values, by name.
    """

    values: Mapping[str, str] = field(factory=dict)

    def text(self, name: str) -> str:
        """Return a parameter without outer blanks; empty if it is missing.

        Raises:
            RequestError: It is too long.
        """
        value = self.values.get(name, "").strip()
        if len(value) > LONGEST_VALUE:
            raise RequestError(
                _BAD_REQUEST,
                f"{name} has {len(value):,} characters, and may have {LONGEST_VALUE}; shorten it",
            )
        return value

    def one_of(self, name: str, known: Collection[str]) -> str:
        """Return a parameter that is a known name or empty.

        Raises:
            RequestError: It is another one.
        """
        value = self.text(name)
        if value and value not in known:
            hint = name_hint(value, sorted(known))
            raise RequestError(_BAD_REQUEST, f"{name} is {excerpt(value)}; {hint}")
        return value

    def whole(self, name: str, most: int = LONG_MAX) -> int | None:
        """Return a parameter that is a whole number from 0; None if it is missing.

        Raises:
            RequestError: It is no number, or greater than `most`.
        """
        value = self.text(name)
        if not value:
            return None
        number = whole_number(value)
        if number is None or not 0 <= number <= most:
            raise RequestError(
                _BAD_REQUEST, f"{name} is {excerpt(value)}; write a whole number from 0 to {most}"
            )
        return number

    def page(self) -> int:
        """Return the number of the page of a list, from 1.

        Raises:
            RequestError: It is no number, or too great.
        """
        return max(1, self.whole("page", _MOST_PAGES) or 1)


@frozen
class ListPage:
    """Position in a list that is shown in pages.

    Attributes:
        number: Number of the page, from 1.
        pages: Number of pages.
        total: Number of members of the list.
    """

    number: int
    pages: int
    total: int

    @property
    def previous(self) -> int | None:
        """Number of the page before; None for the first."""
        return self.number - 1 if self.number > 1 else None

    @property
    def following(self) -> int | None:
        """Number of the page after; None for the last."""
        return self.number + 1 if self.number < self.pages else None


def page_of(members: Sequence[T], number: int, size: int) -> tuple[ListPage, Sequence[T]]:
    """Return a page of a list, and its members; the last page if there are fewer.

    Example:
        >>> page_of("abcde", 9, 2)
        (ListPage(number=3, pages=3, total=5), 'e')
    """
    pages = max(1, -(-len(members) // size))
    shown = min(number, pages)
    return ListPage(shown, pages, len(members)), members[(shown - 1) * size : shown * size]


@frozen
class Deadline:
    """Time at which a view stops reading more, and shows what it has.

    Attributes:
        at_s: The time, in seconds of the monotonic clock.
    """

    at_s: float

    @classmethod
    def after(cls, seconds: float) -> Deadline:
        """Return the deadline in a number of seconds."""
        return cls(time.monotonic() + seconds)

    @property
    def is_over(self) -> bool:
        """True from that time on."""
        return time.monotonic() >= self.at_s
