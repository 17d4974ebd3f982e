"""Whether a stream's newest commit is ahead of the time, as one by a wrong clock leaves it."""

from __future__ import annotations

from ledger.evolution.stream import StateLike
from ledger.history.verifying.finding import Finding
from ledger.history.verifying.subject import Subject
from ledger.log.clock import is_far
from ledger.model.instant import TimestampInstant


def ahead(subject: Subject[StateLike, object], state: StateLike, now_millis: int) -> Finding | None:
    """Return what is wrong with a stream's times; None when nothing is, or it was corrected.

    Args:
        subject: The stream.
        state: Its newest state.
        now_millis: What the clock says that is taken to be right, Unix milliseconds.
    """
    lead = state.effective_millis - now_millis
    if lead < 0 or not is_far(lead):
        return None
    name = subject.name
    return Finding(
        "clock",
        f"the newest commit is of {TimestampInstant(state.effective_millis)}, {lead // 1000} s "
        "ahead of this machine's clock: one of the two is wrong, and reading by timestamp goes by "
        "the one that is ahead",
        subject.layout.commit(state.version),
        state.version,
        "set this machine's clock, or, if it is right, look at: lakeledger correct-clock "
        f"{name} --dry-run",
    )
