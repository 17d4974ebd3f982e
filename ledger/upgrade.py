"""What opening a ledger to the newest format means, and for whom."""

from __future__ import annotations

from attrs import frozen

from ledger.events.commit import NEWEST_FORMAT, OLDEST_FORMAT


@frozen
class UpgradePlan:
    """What an upgrade would do.

    Attributes:
        from_format: What the ledger takes now.
        to_format: What it would take.
        older_clients: What clients that do not know the new format will no longer do.
        gains: What becomes possible.
    """

    from_format: int
    to_format: int
    older_clients: tuple[str, ...] = ()
    gains: tuple[str, ...] = ()

    @property
    def is_needed(self) -> bool:
        """Whether there is anything to do."""
        return self.from_format < self.to_format

    @classmethod
    def of(cls, format_version: int) -> UpgradePlan:
        """Return what upgrading a ledger of a format means."""
        if format_version > OLDEST_FORMAT:
            return cls(format_version, NEWEST_FORMAT)
        return cls(format_version, NEWEST_FORMAT, _OLDER_CLIENTS, _GAINS)


_OLDER_CLIENTS = (
    "open the ledger, to read or to write: they are refused with 'upgrade lakeledger'",
    "go on with a table that they hold open once it has a commit of format 2",
    "find their checkpoints kept up by newer clients",
)
_GAINS = (
    "no rate of commits is held back, since two commits may have the same time",
    "the times that a wrong clock left can be corrected (lakeledger correct-clock)",
)
