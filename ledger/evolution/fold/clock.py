"""How times fold, and the fact that a clock was ahead, in a table's stream and the catalog's."""

from __future__ import annotations

from ledger.events.clock_events import ClockCorrected
from ledger.events.commit import Transaction
from ledger.model.errors import InvalidChangeError
from ledger.model.instant import ClockCorrection


def correction_of(event: ClockCorrected, version: int, moment: int) -> ClockCorrection:
    """Return what an event says of the commits before it.

    Args:
        event: The fact.
        version: Of the commit that holds it.
        moment: When its transaction took effect, Unix milliseconds.

    Raises:
        InvalidChangeError: No such event can stand there.
    """
    if not 0 <= event.first_version < version or event.true_time_millis > moment:
        raise InvalidChangeError(
            f"version {version}, of {moment}, cannot correct the times from version "
            f"{event.first_version} on to {event.true_time_millis}",
            kind="ILLEGAL_STATE",
        )
    return ClockCorrection(version, event.true_time_millis)


def refuse_misplaced(version: int, time_millis: int, before: int, before_millis: int) -> None:
    """Check that a commit can follow the one before: the next version, at no earlier time.

    Raises:
        InvalidChangeError: It cannot.
    """
    if version == before + 1 and time_millis >= before_millis:
        return
    raise InvalidChangeError(
        f"commit {version} at {time_millis} cannot follow commit {before} at {before_millis}",
        kind="ILLEGAL_STATE",
    )


def refuse_untimely(
    transaction: Transaction[object], moment: int, earliest: int, latest: int
) -> None:
    """Check a time of effect that lies outside of the one before and the commit's own.

    Args:
        transaction: What took effect.
        moment: When.
        earliest: The time of effect before it.
        latest: The time of its commit.

    Raises:
        InvalidChangeError: It does not say that what came before was ahead of the true time.
    """
    corrected = (
        isinstance(each, ClockCorrected) and each.true_time_millis <= moment
        for each in transaction.events
    )
    if moment > latest or not any(corrected):
        raise InvalidChangeError(
            f"transaction {transaction.id} took effect at {moment}, outside of "
            f"{earliest} (the one before) to {latest} (its commit)"
        )
