"""A clock that was ahead: what it did to a stream's times, and the true one."""

from ledger.events.base import Record


class ClockCorrected(Record, frozen=True, tag="correctClock", kw_only=True):
    """The times of the commits from `first_version` up to this one were ahead of the true time.

    None of them took effect later than at `true_time_millis`: a search by time takes that where a
    commit before this one says a later one.
    """

    first_version: int
    true_time_millis: int
