"""The time of a commit, and whether this machine's clock may give it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from ledger.log.landing import Patience
from ledger.log.request import NowMillis
from ledger.model.errors import StoreError
from ledger.stores import ObjectStore, Store
from ledger.stores.clock import Clock

# From the store's clock, and behind the newest commit.
_TOLERANCE_MILLIS: Final = 60_000


def commit_millis(store: Store, now_millis: NowMillis, patience: Patience, previous: int) -> int:
    """Return the time of the commit that follows one of the time `previous`.

    Times increase strictly, so a commit from the future would take every later one there.

    Raises:
        StoreError: This machine's clock is more than a minute from the store's or behind the
            newest commit, or the store does not answer; nothing was written.
    """
    ahead = millis_ahead(store, now_millis, patience)
    now = now_millis()
    check_clock(store, now, ahead)
    if previous > now + _TOLERANCE_MILLIS:
        raise StoreError(
            f"this machine's clock is {(previous - now) / 1000:.0f} s behind the newest "
            "commit; set it, then try again"
        )
    return max(now, previous + 1)


def check_clock(store: Store, now: int, ahead: int | None) -> None:
    """Check that this machine's clock, which says `now`, is not too far from the store's.

    Raises:
        StoreError: It is more than a minute `ahead`, or behind if that is negative.
    """
    if ahead is None or not is_far(ahead):
        return
    raise StoreError(
        f"this machine's clock says {_text(now)}, that of {store.url} {_text(now - ahead)}: "
        f"{abs(ahead) / 1000:.1f} s apart, and more than {_TOLERANCE_MILLIS // 1000} are refused, "
        "since no later commit may have an earlier time. Nothing was committed; set this machine's "
        "clock, then try again"
    )


def is_far(ahead: int | None) -> bool:
    """Return whether a clock is further from another than one that commits may be."""
    return ahead is not None and abs(ahead) > _TOLERANCE_MILLIS


def millis_ahead(store: Store, now_millis: NowMillis, patience: Patience) -> int | None:
    """Return by how much this machine's clock is ahead of the store's, to about a second.

    None: the store has no clock of its own, or none that this machine can tell from its own.

    Raises:
        StoreError: The store cannot hold a ledger, or does not answer.
    """
    if not isinstance(store, ObjectStore):
        return None
    failure: OSError | None = None
    for _ in patience.attempts():
        try:
            ahead = _ahead(now_millis, store.clock())
            if is_far(ahead):
                # The machine may have slept since it was told the time.
                ahead = _ahead(now_millis, store.ask_clock())
        except OSError as error:
            failure = error
        else:
            return ahead
    raise StoreError(f"{failure}; nothing was committed, try again") from failure


def _ahead(now_millis: NowMillis, clock: Clock | None) -> int | None:
    return None if clock is None else now_millis() - clock.now_millis()


def _text(millis: int) -> str:
    return f"{datetime.fromtimestamp(millis / 1000, UTC):%Y-%m-%d %H:%M:%S} UTC"
