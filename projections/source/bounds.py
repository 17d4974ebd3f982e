"""Ranges of rows that the filters of a query admit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from attrs import evolve, frozen

Operator = Literal["=", ">", ">=", "<", "<="]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
MICROS = 1000
"""Microseconds in a millisecond."""


@frozen
class Bounds:
    """Ranges of rows that filters admit; both ends are included, None is unbounded.

    Attributes:
        versions: First and last version.
        millis: First and last time of a commit, in Unix milliseconds.
        identifiers: Names of tables; None for all.
    """

    versions: tuple[int, int | None] = (0, None)
    millis: tuple[int | None, int | None] = (None, None)
    identifiers: frozenset[str] | None = None

    def narrowed(self, column: str, operator: Operator, value: Any) -> Bounds | None:
        """Return the bounds under one more filter; None if it does not restrict them.

        Example:
            >>> Bounds().narrowed("version", ">", 6)
            Bounds(versions=(7, None), millis=(None, None), identifiers=None)
        """
        if column == "version" and type(value) is int:
            first, last = _intersect_range(self.versions, operator, value)
            return evolve(self, versions=(first or 0, last))
        if column == "time" and isinstance(value, datetime) and value.tzinfo is not None:
            return self._narrow_times(operator, (value - _EPOCH) // _MICROSECOND)
        if column == "identifier" and operator == "=" and isinstance(value, str):
            return self.named([value])
        return None

    def spanning(self, versions: Sequence[int]) -> Bounds:
        """Return the bounds of the versions from the smallest to the greatest of some.

        Example:
            >>> Bounds().spanning([3, 9]).versions, Bounds().spanning([]).versions
            ((3, 9), (1, 0))
        """
        if not versions:
            return evolve(self, versions=(1, 0))
        first, last = _intersect_range(
            _intersect_range(self.versions, ">=", min(versions)), "<=", max(versions)
        )
        return evolve(self, versions=(first or 0, last))

    def named(self, identifiers: Iterable[str]) -> Bounds:
        """Return the bounds for some tables only."""
        wanted = frozenset(identifiers)
        known = self.identifiers
        return evolve(self, identifiers=wanted if known is None else known & wanted)

    def _narrow_times(self, operator: Operator, micros: int) -> Bounds:
        # Commits have whole milliseconds; a filter may be between two of them.
        whole, rest = divmod(micros, MICROS)
        if not rest:
            return evolve(self, millis=_intersect_range(self.millis, operator, whole))
        if operator == "=":
            return evolve(self, millis=(1, 0))
        first, last = _intersect_range(self.millis, ">" if operator in (">", ">=") else "<=", whole)
        return evolve(self, millis=(first, last))


def _intersect_range(
    within: tuple[int | None, int | None], operator: Operator, value: int
) -> tuple[int | None, int | None]:
    first, last = within
    lowest = {"=": value, ">": value + 1, ">=": value}.get(operator)
    highest = {"=": value, "<": value - 1, "<=": value}.get(operator)
    if lowest is not None:
        first = lowest if first is None else max(first, lowest)
    if highest is not None:
        last = highest if last is None else min(last, highest)
    return first, last
