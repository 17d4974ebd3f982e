"""Context that a ledger shares with its tables: settings, streams, policies, location.

A ledger's root file records the URL where it was created, and its catalog the later ones: files
that contain absolute URLs (position deletes, projected files) are valid at that URL only. Other
URLs of the same storage are aliases: recorded ones, and on this machine symbolic links.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from attrs import field, frozen

from ledger.events.catalog import CatalogEvent
from ledger.locations import Place, place_of
from ledger.log.activity import ActivityWriter
from ledger.log.checkpoints import Head
from ledger.log.commit_queue import register_after_fork
from ledger.log.layout import STREAM_FOLDER
from ledger.log.request import NowMillis, RetryPolicy, now_millis
from ledger.log.stream_log import StreamLog
from ledger.model.errors import LedgerError
from ledger.state.catalog import CatalogState
from ledger.state.records import CatalogStream
from ledger.state.stream import AlreadyCommitted
from ledger.stores import Store, open_store
from ledger.stores.file_access import FileAccess, endpoint_of, resolve_symlinks
from ledger.stores.wrappers import Trust, with_trust

if TYPE_CHECKING:
    from ledger.decide.changes import TableChange
    from ledger.decide.commit_policies import DatabasePolicy
    from ledger.state.table import TableState


AnyLog = StreamLog[Any, Any]


def catalog_stream(store: Store) -> StreamLog[CatalogState, CatalogEvent]:
    """Return the catalog's stream of the ledger in a store; nothing is read yet."""
    return StreamLog(store, STREAM_FOLDER, CatalogStream())


class DatabasePolicies:
    """Cache of the rules that databases have for their tables; all handles of a ledger share it."""

    __slots__ = ("__weakref__", "_begun", "_known", "_log", "_looked", "_turn")

    def __init__(self) -> None:
        self._log: StreamLog[Any, Any] | None = None
        # Replaced as a whole, so that threads never see it half updated.
        self._known: tuple[Head[Any] | None, str, DatabasePolicy] | None = None
        self._begun = self._looked = 0
        self.after_fork()
        register_after_fork(self)

    def after_fork(self) -> None:
        """Replace the lock: a forked child has none of the threads that hold it."""
        self._turn = threading.RLock()

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), ()

    def set_catalog_log(self, log: StreamLog[Any, Any]) -> None:
        """Set the catalog stream to read, one that is open already."""
        self._log = log

    def of(self, store: Store, table_id: str) -> DatabasePolicy:
        """Return the rules of a table's database, after reading new commits of the catalog.

        If the catalog cannot be read, the state read last is used, so that commits to tables do not
        depend on its availability.

        Args:
            store: The ledger's store.
            table_id: The table's id.
        """
        if self._log is None:
            self._log = catalog_stream(store)
        self._read_catalog(self._log)
        head = self._log.head
        known = self._known
        if known is not None and known[0] is head and known[1] == table_id:
            return known[2]
        try:
            policy = _policy_of_table(head, table_id)
        except (LedgerError, OSError) as error:
            if _is_of_signal_handler(self._log, error):
                raise
            # A part of the catalog cannot be read.
            is_known = known is not None and known[1] == table_id
            return known[2] if known is not None and is_known else _no_policy()
        self._known = head, table_id, policy
        return policy

    def _read_catalog(self, log: StreamLog[Any, Any]) -> None:
        """Read new commits of the catalog; threads that wait for the lock share one read."""
        begun = self._begun
        with self._turn:
            if self._looked > begun:
                return
            self._begun = number = self._begun + 1
            try:
                log.catch_up()
            except LedgerError:
                pass
            except OSError as error:
                # Raised by a signal handler if it does not recur.
                if _is_of_signal_handler(log, error) and _try_catch_up(log):
                    raise
            self._looked = number


def _is_of_signal_handler(log: StreamLog[Any, Any], error: Exception) -> bool:
    """Return whether an error may be of a signal handler: a local file system's have an errno."""
    return log.store.is_near and isinstance(error, OSError) and error.errno is None


def _no_policy() -> DatabasePolicy:
    from ledger.decide.commit_policies import DatabasePolicy

    return DatabasePolicy()


def _policy_of_table(head: Head[Any] | None, table_id: str) -> DatabasePolicy:
    from ledger.decide.commit_policies import DatabasePolicy

    entry = None if head is None else head.state.table_by_id(table_id)
    if head is None or entry is None:
        return _no_policy()
    database = entry.identifier.database
    return DatabasePolicy(database, head.state.databases[database].options)


def _try_catch_up(log: StreamLog[Any, Any]) -> bool:
    try:
        log.catch_up()
    except (OSError, LedgerError):
        return False
    return True


_NOWHERE: Final = "memory://"


def recordable_url(url: str) -> str:
    """Return a root's URL as it is recorded; empty for one that other processes cannot open."""
    return "" if url.startswith(_NOWHERE) else url


class RootLocation:
    """Recorded location of a ledger; all handles share it, and reading the catalog updates it.

    Attributes:
        place: The recorded URL of the ledger; empty if none was ever recorded.
        aliases: Other recorded URLs that lead to the same storage.
    """

    __slots__ = ("_began", "_canonical", "_since", "aliases", "place")

    def __init__(self) -> None:
        self.place = self._began = ""
        self._since = 0
        self.aliases: tuple[str, ...] = ()
        self._canonical: dict[str, str] = {}

    def begin(self, place: str, since: int) -> None:
        """Set the location from the root file; it overrides catalog commits before a version."""
        self._began, self._since = place, since
        self.place = self.place or place

    def learn(self, state: CatalogState) -> None:
        """Update the location from the catalog's state."""
        is_newer = state.placed_version >= self._since
        said = (state.place, state.aliases) if is_newer else (self._began, ())
        if said != (self.place, self.aliases):
            self.place, self.aliases = said
            self._canonical.clear()

    @property
    def is_settled(self) -> bool:
        """True if a location is recorded."""
        return bool(self.place)

    def is_here(self, url: str) -> bool:
        """Return whether a URL is the ledger's recorded location or leads to the same storage.

        True if no location is recorded.
        """
        return not self.place or self.canonical(url) == self.place

    def is_recorded_at(self, url: str) -> bool:
        """Return whether a location is recorded, and a URL leads to it."""
        return self.is_settled and self.is_here(url)

    def canonical(self, url: str) -> str:
        """Return the recorded URL of the ledger if a URL leads to it; else the URL itself."""
        if not self.place or url == self.place:
            return url
        found = self._canonical.get(url)
        if found is None:
            found = self._canonical[url] = self.place if self._leads_here(url) else url
        return found

    def _leads_here(self, url: str) -> bool:
        place = place_of(url)
        known = [*map(place_of, self._known())]
        return place in known or resolve_symlinks(place) in map(resolve_symlinks, known)

    def others(self, url: str) -> tuple[str, ...]:
        """Return the recorded URLs of the ledger; none if `url` is one of them or leads there."""
        return () if self.is_here(url) else tuple(self._known())

    def _known(self) -> Iterator[str]:
        yield self.place
        yield from self.aliases


class FixedLocation(RootLocation):
    """Root location of a handle that sets the location itself: every URL counts as the ledger's."""

    __slots__ = ()

    def is_here(self, url: str) -> bool:
        """Return True."""
        del url
        return True

    def canonical(self, url: str) -> str:
        """Return the URL itself."""
        return url

    @property
    def is_settled(self) -> bool:
        """Always True: no location has to be looked up before a commit."""
        return True


Progress = Callable[[int, int], None]
"""Called with the number of items done, and the total."""

Plan: TypeAlias = "Callable[[TableState], Sequence[TableChange] | AlreadyCommitted]"
"""Returns the changes that a call makes to a state, or the commit that made them before."""


@frozen
class TableSetting:
    """Settings that a ledger shares with the handles of its tables.

    Attributes:
        store: The ledger's store.
        storage_options: Options of the store's client, also for reading data files.
        author: The author of commits whose call names none.
        now_millis: The clock.
        retry_policy: The retry policy of writers.
        allowed: Locations on other storage from which files may be read.
        root_location: The recorded location of the ledger.
        database_policies: Cache of the rules of its databases.
        shown_at: The location that projected files are made for; empty for the table's own.
        trust: The files that readers trust: the log, or also caches that match it.
        activity: Announces commits in the ledger's activity index.
    """

    store: Store
    storage_options: Mapping[str, Any] = field(repr=False)
    author: str
    now_millis: NowMillis = now_millis
    retry_policy: RetryPolicy = RetryPolicy()
    allowed: tuple[Place, ...] = ()
    root_location: RootLocation = field(factory=RootLocation, eq=False, repr=False)
    database_policies: DatabasePolicies = field(factory=DatabasePolicies, eq=False, repr=False)
    shown_at: str = ""
    trust: Trust = "all"
    activity: ActivityWriter = field(factory=ActivityWriter, eq=False, repr=False)

    def announce(self, table_id: str, version: int) -> None:
        """Announce a table's commit in the ledger's activity index, in the background."""
        self.activity.announce(self.store, table_id, version)

    @property
    def home(self) -> str:
        """Recorded URL of the ledger, also if it was opened by an alias."""
        return self.root_location.canonical(self.store.url)

    def reached(self, location: str) -> str:
        """Translate a URL below the recorded root to the URL by which the ledger was opened."""
        home, here = self.home, self.store.url
        if home == here or not location.startswith(f"{home}/"):
            return location
        return here + location.removeprefix(home)

    def store_at(self, url: str) -> Store:
        """Return the store of an external table.

        Raises:
            UnsupportedError: It is on another service than the ledger, and is not allowed: the
                catalog that names it may be foreign.
        """
        self.file_access().check(url)
        return with_trust(open_store(url, self.options_for(url)), self.trust)

    def options_for(self, url: str) -> Mapping[str, Any]:
        """Return the storage options for an external table: the ledger's on the same service."""
        return self.file_access().options_at(url)

    def file_access(self, location: str = "") -> FileAccess:
        """Return the permission to open files that a log names.

        It includes every file on the ledger's own storage and on that of a table's location, and
        files below the allowed locations.

        Args:
            location: The table's absolute URL; empty for none.
        """
        home = endpoint_of(self.store.url, self.storage_options)
        own = {home, endpoint_of(location, self.storage_options)} if location else {home}
        return FileAccess(home, self.storage_options, frozenset(own), self.allowed)


def no_progress(_done: int, _of: int) -> None:
    """Ignore the progress."""
