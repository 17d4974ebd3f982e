"""Clock of a storage service, read from its answers."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from datetime import datetime

_HALF_A_SECOND: Final = 500


class Clock(NamedTuple):
    """A clock that was read once and goes on at the pace of this machine's monotonic one.

    A machine that slept meanwhile has to read it anew.

    Attributes:
        read_millis: What it said, Unix time in milliseconds, to half a second.
        read_s: When that was, in seconds by this machine's monotonic clock.
    """

    read_millis: int
    read_s: float

    @classmethod
    def at(cls, moment: datetime) -> Clock:
        """Return a clock that has just said `moment`, to the second."""
        return cls(int(moment.timestamp()) * 1000 + _HALF_A_SECOND, time.monotonic())

    def now_millis(self) -> int:
        """Return what it says now."""
        return self.read_millis + round((time.monotonic() - self.read_s) * 1000)


def clock_of(date: str | None) -> Clock | None:
    """Return the clock by which an answer was dated that has just come; None if it was not.

    Args:
        date: The answer's `Date` header; its unit is the second (RFC 9110, 5.6.7).

    Example:
        >>> clock_of("Sun, 06 Nov 1994 08:49:37 GMT").read_millis, clock_of("yesterday")
        (784111777500, None)
    """
    # Only who writes to an object store needs it.
    from email.utils import parsedate_to_datetime

    try:
        return Clock.at(parsedate_to_datetime(date or ""))
    except ValueError:
        return None
