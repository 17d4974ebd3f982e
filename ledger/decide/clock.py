"""Clock corrections: from the true time to the recorded event."""

from __future__ import annotations

from typing import Protocol

from msgspec import Struct

from ledger.events.table import ClockCorrected


class CorrectClock(Struct, frozen=True):
    """Say that no commit so far, from a version on, took effect later than at a time.

    Attributes:
        first_version: The first whose time is later.
        true_time_millis: The time, Unix milliseconds.
    """

    first_version: int
    true_time_millis: int


class Timed(Protocol):
    """A state, as far as its time goes."""

    @property
    def effective_millis(self) -> int:
        """The newest effective time up to it."""


def decide_clock(state: Timed, change: CorrectClock) -> ClockCorrected | None:
    """Return the fact that times were ahead, or None when none is later than the true time."""
    if state.effective_millis <= change.true_time_millis:
        return None
    return ClockCorrected(
        first_version=change.first_version, true_time_millis=change.true_time_millis
    )
