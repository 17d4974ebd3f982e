"""What a stream's recorded times say beside the true one, and what correcting them would say."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from attrs import frozen

from ledger.evolution.decide_clock import CorrectClock
from ledger.log.stream_log import StreamLog
from ledger.log.travel import at_timestamp, head_state
from ledger.model.errors import InvalidChangeError, InvalidInputError, NotFoundError
from ledger.model.instant import TimestampInstant, millis


@frozen
class ClockPlan:
    """What correcting a stream's times would say.

    Attributes:
        first_version: The first commit that says a later time than the true one.
        newest_version: The last one that says so, since all after the first do.
        recorded_millis: What the newest commit says, Unix milliseconds.
        true_time_millis: What is taken for all of them from then on.
    """

    first_version: int
    newest_version: int
    recorded_millis: int
    true_time_millis: int

    @property
    def change(self) -> CorrectClock:
        """What is asked of the stream."""
        return CorrectClock(self.first_version, self.true_time_millis)


def plan_correction(
    log: StreamLog[Any, Any], now_millis: int, true_time: datetime | int | None
) -> ClockPlan:
    """Return what correcting a stream's times would say; nothing is written.

    Args:
        log: The stream.
        now_millis: What this machine's clock says, which is taken to be right.
        true_time: When the commits that are ahead happened, at the latest; None for now.

    Raises:
        InvalidInputError: The true time lies in the future, or has no time zone.
        InvalidChangeError: No commit is ahead of it.
    """
    log.refresh()
    newest = head_state(log)
    latest = now_millis if true_time is None else millis(true_time)
    if latest > now_millis:
        raise InvalidInputError(
            f"the true time cannot be {TimestampInstant(latest)}, which lies in the future; by "
            f"this machine's clock it is {TimestampInstant(now_millis)}"
        )
    if newest.effective_millis <= latest:
        raise InvalidChangeError(
            f"no commit of {log.layout.root} is ahead of {TimestampInstant(latest)}: the newest is "
            f"of {TimestampInstant(newest.effective_millis)}. There is nothing to correct",
            kind="ILLEGAL_STATE",
        )
    try:
        first = at_timestamp(log, latest).version + 1
    except NotFoundError:
        first = 0
    return ClockPlan(first, newest.version, newest.effective_millis, latest)
