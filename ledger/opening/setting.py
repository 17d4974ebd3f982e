"""What a table's handle shares with its ledger, and the shapes of what callers pass in."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from attrs import field, frozen

from ledger.evolution.state import TableState
from ledger.evolution.stream import Landed
from ledger.locations import Place
from ledger.log.patience import Patience
from ledger.log.request import NowMillis, now_millis
from ledger.opening.houses import Houses
from ledger.opening.whereabouts import Whereabouts
from ledger.stores import Store, open_store
from ledger.stores.file_access import FileAccess, endpoint_of
from ledger.stores.log_alone import Trust, trusting

if TYPE_CHECKING:
    from ledger.evolution.table.changes import TableChange

Progress = Callable[[int, int], None]
"""Told how much is done, of how much."""

Plan: TypeAlias = "Callable[[TableState], Sequence[TableChange] | Landed]"
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
        allowed: Where data files may be read beside the ledger's own kind of storage.
        whereabouts: Where the ledger is said to be.
        houses: Which rules its databases have.
        shown_at: Where a table's files of formats are made for; empty for where it is.
        trust: What is taken for true: caches that fit the log, too, or the log alone.
    """

    store: Store
    storage_options: Mapping[str, Any] = field(repr=False)
    author: str
    now_millis: NowMillis = now_millis
    patience: Patience = Patience()
    allowed: tuple[Place, ...] = ()
    whereabouts: Whereabouts = field(factory=Whereabouts, eq=False, repr=False)
    houses: Houses = field(factory=Houses, eq=False, repr=False)
    shown_at: str = ""
    trust: Trust = "all"

    @property
    def home(self) -> str:
        """The URL that the ledger's files are known by, whichever way led to it."""
        return self.whereabouts.canonical(self.store.url)

    def store_at(self, url: str) -> Store:
        """Return the store of a table that lies elsewhere.

        Raises:
            UnsupportedError: It lies on another service than the ledger, and is not allowed: the
                catalog that names it may be foreign.
        """
        self.file_access().check(url)
        return trusting(open_store(url, self.options_for(url)), self.trust)

    def options_for(self, url: str) -> Mapping[str, Any]:
        """Return the storage options of an external table: the ledger's own on the same service."""
        return self.file_access().options_at(url)

    def file_access(self, location: str = "") -> FileAccess:
        """Return the permission to open files that a log names.

        Every file on the ledger's own storage may be read, on that of a table's location, and
        below the allowed locations.

        Args:
            location: The table's absolute URL; empty for none.
        """
        home = endpoint_of(self.store.url, self.storage_options)
        own = {home, endpoint_of(location, self.storage_options)} if location else {home}
        return FileAccess(home, self.storage_options, frozenset(own), self.allowed)


def no_progress(_done: int, _of: int) -> None:
    """Tell nobody."""
