"""ClockCorrection: which recorded times were ahead of the true one, and what is taken instead."""

from __future__ import annotations

from collections.abc import Iterable

from attrs import frozen


@frozen
class ClockCorrection:
    """No commit before a version took effect later than at a time, whatever it says itself.

    Attributes:
        version: The commit that says so; it took effect at that time or later.
        true_time_millis: The time, Unix milliseconds.
    """

    version: int
    true_time_millis: int


def true_millis(corrections: Iterable[ClockCorrection], version: int, millis: int) -> int:
    """Return when a commit took effect that says it was at `millis`.

    What never decreased before never decreases afterwards, so that a search by bisection holds.

    Args:
        corrections: All that the newest state known has.
        version: The commit's.
        millis: What the commit says, Unix milliseconds.

    Example:
        >>> corrections = [ClockCorrection(version=7, true_time_millis=500)]
        >>> [true_millis(corrections, 6, 900), true_millis(corrections, 7, 900)]
        [500, 900]
    """
    for each in corrections:
        if version < each.version and each.true_time_millis < millis:
            millis = each.true_time_millis
    return millis
