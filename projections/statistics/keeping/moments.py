"""When what is counted took effect: commits of the ledger, by their versions."""

from __future__ import annotations

from attrs import Factory, define, field

from ledger.evolution.state import TableState
from ledger.history.older import TableLog
from ledger.log.travel import effective_millis


@define
class CommitMoments:
    """When commits took effect.

    Attributes:
        log: The table's.
        state: A state behind all of them, which knows of clocks that were ahead.
        ahead: So many commits are read at once, for whoever asks for them in their order.
    """

    log: TableLog = field(eq=False)
    state: TableState
    ahead: int = 1
    _known: dict[int, int] = Factory(dict)

    def of(self, place: int) -> int:
        """Return a version's moment, Unix milliseconds."""
        if place not in self._known:
            last = min(place + self.ahead - 1, self.state.version)
            self._known = {
                read.commit.version: effective_millis(read.commit, self.state.corrections)
                for read in self.log.commits(place, last)
            }
        return self._known[place]

    def of_snapshot(self, version: int, _snapshot_id: int) -> int:
        """Return when the commit of a snapshot took effect."""
        return self.of(version)
