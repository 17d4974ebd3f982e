"""Numbers that texts and decimals say, with a bound on what is looked at.

Python refuses to read very many digits, with an error of its own, and writes out an exponent as so
many zeros: nine letters, and a gigabyte. So both are asked for their length first.
"""

from __future__ import annotations

from decimal import Decimal

from ledger.model.errors import InvalidInputError
from ledger.model.messages.excerpt import excerpt

MOST_DIGITS = 309
"""As many as the greatest DOUBLE has; no number that a table holds has more."""

TOO_MANY_DIGITS = f"more digits than any number here: {MOST_DIGITS} at most"

_ENDLESS = 10**MOST_DIGITS


def is_endless(number: int) -> bool:
    """Return whether a number has more digits than any that a table holds.

    >>> is_endless(10**18), is_endless(-(10**5000))
    (False, True)
    """
    return not -_ENDLESS < number < _ENDLESS


def whole_number(text: str) -> int | None:
    """Return the number that digits say; None for any other text.

    Raises:
        InvalidInputError: It has more digits than any number that a table holds.

    Example:
        >>> whole_number("12"), whole_number("-3"), whole_number("1_000")
        (12, None, None)
    """
    if not text.isdecimal():
        return None
    if len(text) > MOST_DIGITS:
        raise InvalidInputError(f"number {excerpt(text)} has {TOO_MANY_DIGITS}")
    return int(text)


def within_digits(value: Decimal) -> Decimal:
    """Return a decimal as it is, if it can be written out.

    Raises:
        InvalidInputError: Written out, it has more digits than any number that a table holds.
        OverflowError: It is infinite, or no number.

    Example:
        >>> within_digits(Decimal("1e3"))
        Decimal('1E+3')
    """
    if not value.is_finite():
        raise OverflowError(value)
    if not -MOST_DIGITS <= value.adjusted() < MOST_DIGITS:
        raise InvalidInputError(f"number {value:.3e} has {TOO_MANY_DIGITS}")
    return value
