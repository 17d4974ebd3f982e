"""Commit times, and the check of this machine's clock."""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct

from ledger.log.checkpoints import Head
from ledger.log.request import NowMillis, RetryPolicy
from ledger.log.stream_log import StreamLog
from ledger.model.errors import StoreError
from ledger.model.messages import moment
from ledger.observing.telemetry import warn
from ledger.stores import Store
from ledger.stores.base import Clock

TOLERANCE_MILLIS: Final = 60_000
"""Tolerated difference of two clocks, in milliseconds."""

_LOGGER: Final = "ledger.log"


class CommitTimes(Struct, frozen=True):
    """Times of the next commit.

    Attributes:
        time_millis: The commit's time, Unix milliseconds.
        effective_millis: Effective time of its transactions, where that is not the commit's time.
    """

    time_millis: int
    effective_millis: int | None = None


class StreamClock:
    """Assigns a stream's commits their times.

    A commit's time may equal that of the one before, so that no rate of commits makes the log run
    ahead of the clock. A log that is ahead, because a writer's clock was wrong, is logged once, and
    further commits get the newest commit's time.

    Args:
        log: The stream.
        now_millis: This machine's clock.
        retry_policy: The retry policy of reading the store's clock.
    """

    def __init__(
        self, log: StreamLog[Any, Any], now_millis: NowMillis, retry_policy: RetryPolicy
    ) -> None:
        self._log = log
        self._now_millis = now_millis
        self._retry_policy = retry_policy
        self._logged: set[str] = set()

    def next(self, head: Head[Any] | None) -> CommitTimes:
        """Return the time of the commit that follows a head; None before version 0.

        Raises:
            StoreError: This machine's clock is more than a minute off the store's, or the store
                does not answer; nothing was written.
        """
        ahead = millis_ahead(self._log.store, self._now_millis, self._retry_policy)
        now = self._now_millis()
        check_clock(self._log.store, now, ahead)
        if head is None:
            return CommitTimes(max(now, 1))
        state = head.state
        if now > state.time_millis:
            return CommitTimes(now)
        self._log_lead(state.effective_millis - now)
        # After a clock correction or imported history, the true time is later than the last
        # effective time.
        effective = max(now, state.effective_millis)
        is_other = effective < state.time_millis
        return CommitTimes(state.time_millis, effective if is_other else None)

    def _log_lead(self, lead_millis: int) -> None:
        # Effective times of imported history may be long ago: then no clock is wrong.
        if lead_millis > 0 and is_clock_far_off(lead_millis):
            self._warn_once(
                "newest_commit_is_ahead",
                seconds=round(lead_millis / 1000),
                rule="this machine's clock or that of an earlier writer is wrong, and timestamp= "
                "answers by the one that is ahead",
                next_step="set this machine's clock, or, if it is right, see: lakeledger "
                "correct-clock --dry-run",
            )

    def _warn_once(self, event: str, **facts: object) -> None:
        if event not in self._logged:
            self._logged.add(event)
            warn(_LOGGER, event, stream=self._log.name, **facts)


def check_clock(store: Store, now: int, ahead: int | None) -> None:
    """Check that this machine's clock is within `TOLERANCE_MILLIS` of the store's.

    Args:
        store: The store.
        now: This machine's time, Unix milliseconds.
        ahead: Milliseconds that it is ahead of the store's clock; None: unknown.

    Raises:
        StoreError: It is further ahead, or behind.
    """
    if ahead is None or not is_clock_far_off(ahead):
        return
    raise StoreError(
        f"this machine's clock says {_format_utc(now)}, "
        f"that of {store.url} {_format_utc(now - ahead)}: "
        f"{abs(ahead) / 1000:.1f} s apart, and more than {TOLERANCE_MILLIS // 1000} s are "
        "rejected, since no later commit may have an earlier time. Nothing was committed; set this "
        "machine's clock, then try again"
    )


def is_clock_far_off(ahead: int | None) -> bool:
    """Return whether a clock is off by more than `TOLERANCE_MILLIS`."""
    return ahead is not None and abs(ahead) > TOLERANCE_MILLIS


def millis_ahead(store: Store, now_millis: NowMillis, retry_policy: RetryPolicy) -> int | None:
    """Return the milliseconds that this machine's clock is ahead, to about a second.

    None: the store has no clock of its own.

    Raises:
        StoreError: The store cannot hold a ledger, or does not answer.
    """
    failure: OSError | None = None
    for _ in retry_policy.attempts():
        try:
            ahead = _clock_lead_millis(now_millis, store.clock())
            if is_clock_far_off(ahead):
                # The machine may have slept since the store's clock was read.
                ahead = _clock_lead_millis(now_millis, store.ask_clock())
        except OSError as error:
            failure = error
        else:
            return ahead
    raise StoreError(f"{failure}; nothing was committed, try again") from failure


def _clock_lead_millis(now_millis: NowMillis, clock: Clock | None) -> int | None:
    return None if clock is None else now_millis() - clock.now_millis()


def _format_utc(millis: int) -> str:
    return f"{moment(millis)} UTC"
