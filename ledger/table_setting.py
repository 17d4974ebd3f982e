"""What a table's handle shares with its ledger, and the shapes of what callers pass in."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from attrs import field, frozen

from ledger.commit_options import now_millis
from ledger.evolution.state import TableState
from ledger.evolution.stream import Landed
from ledger.evolution.table_changes import TableChange
from ledger.log.request import NowMillis
from ledger.log.settle import Patience
from ledger.stores import Store

Progress = Callable[[int, int], None]
"""Told how much is done, of how much."""

Plan = Callable[[TableState], Sequence[TableChange] | Landed]
"""Gives the changes that a call means on a state, or where it landed before."""


@frozen
class TableSetting:
    """What a table's handle shares with its ledger.

    Attributes:
        store: The ledger's store.
        storage_options: For reading data files beside it.
        author: Who commits when a call does not say.
        now_millis: The clock.
        patience: How long a writer goes on.
    """

    store: Store
    storage_options: Mapping[str, Any] = field(repr=False)
    author: str
    now_millis: NowMillis = now_millis
    patience: Patience = Patience()

    def options_for(self, url: str) -> Mapping[str, Any]:
        """Return the storage options for another place: the ledger's own, on the same service."""
        same = url.partition("://")[0] == self.store.url.partition("://")[0]
        return self.storage_options if same else {}


def no_progress(_done: int, _of: int) -> None:
    """Tell nobody."""
