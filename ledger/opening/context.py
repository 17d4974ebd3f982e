"""Context that a ledger shares with its tables: settings, streams, policies, location.

A ledger's root says where it began, and its catalog where it went since: what names files by whole
URLs (position deletes, projected files) is right at that place alone. Other ways to the same
storage are aliases: those that were recorded, and on this machine those that links make.

No other module says where the streams of a catalog and of tables are, and what is kept next to a
table's.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias
from weakref import ref

from attrs import field, frozen

from ledger.events import TableEvent
from ledger.events.catalog import CatalogEvent
from ledger.events.commit import Commit
from ledger.files.live import LiveFiles
from ledger.history.past import TablePast
from ledger.locations import Place, is_absolute, place_of
from ledger.log.checkpoints import Head
from ledger.log.commit_queue import begin_anew_after_fork
from ledger.log.layout import STREAM_FOLDER, stream_root
from ledger.log.personal_data import Personal
from ledger.log.request import NowMillis, Patience, now_millis
from ledger.log.stream_log import StreamLog
from ledger.model.errors import LedgerError
from ledger.state.catalog import CatalogState
from ledger.state.records import CatalogStream, TableStream
from ledger.state.stream import Landed
from ledger.state.table import TableState
from ledger.stores import Store, open_store
from ledger.stores.file_access import FileAccess, behind_links, endpoint_of
from ledger.stores.wrappers import Trust, trusting

if TYPE_CHECKING:
    from ledger.decide.changes import TableChange
    from ledger.decide.commit_policies import House


AnyLog = StreamLog[Any, Any]


class _Setting(Protocol):
    """What is asked of a ledger's setting."""

    @property
    def store(self) -> Store:
        """The ledger's."""

    def store_at(self, url: str) -> Store:
        """Return the store of a table that lies elsewhere."""


def catalog_stream(store: Store) -> StreamLog[CatalogState, CatalogEvent]:
    """Return the catalog's stream of the ledger in a store, cold."""
    return StreamLog(store, STREAM_FOLDER, CatalogStream())


@frozen
class OpenedTable:
    """A table's stream, and what is known of it by heart and kept beside it.

    Attributes:
        log: The stream.
        live: Its live files.
        past: What it was.
    """

    log: StreamLog[TableState, TableEvent]
    live: LiveFiles
    past: TablePast

    @classmethod
    def at(cls, path: str, setting: _Setting) -> OpenedTable:
        """Return a table's, cold, by the path that the catalog has."""
        # An external table's stream is in its own folder, which is a store of its own.
        is_external = is_absolute(path)
        log: StreamLog[TableState, TableEvent] = StreamLog(
            setting.store_at(path) if is_external else setting.store,
            stream_root("" if is_external else path),
            TableStream(),
            Personal(setting.store),
        )
        live = LiveFiles(log)
        past = TablePast(log, live)
        log.remember(*_kept_beside(log, live, past))
        return cls(log, live, past)


def _kept_beside(
    log: StreamLog[TableState, TableEvent], live: LiveFiles, past: TablePast
) -> tuple[Callable[[Commit[TableEvent]], Iterable[str]], Callable[[int], None]]:
    """Return what a table's log is to remember and to save.

    Both ask the log, and so the log may not hold them. Where it is all that is left of a handle,
    as when caches are saved after it was let go of, they are made anew.
    """
    log_of, live_of, past_of = ref(log), ref(live), ref(past)

    def found() -> tuple[LiveFiles, TablePast]:
        files, before = live_of(), past_of()
        if files is None or before is None:
            left = log_of()
            if left is None:
                raise AssertionError("a log that is read is there")
            files = LiveFiles(left)
            before = TablePast(left, files)
        return files, before

    def keys_of(commit: Commit[TableEvent]) -> Iterable[str]:
        files, before = found()
        before.meet(commit)
        return files.keys_of(commit)

    def save(version: int) -> None:
        files, before = found()
        files.save(version)
        before.save()

    return keys_of, save


class Houses:
    """Shared by all handles of a ledger; elsewhere the catalog is opened anew."""

    __slots__ = ("__weakref__", "_begun", "_known", "_log", "_looked", "_turn")

    def __init__(self) -> None:
        self._log: StreamLog[Any, Any] | None = None
        # Replaced as a whole, so that threads never meet it half made.
        self._known: tuple[Head[Any] | None, str, House] | None = None
        self._begun = self._looked = 0
        self.after_fork()
        begin_anew_after_fork(self)

    def after_fork(self) -> None:
        """Forget who was looking: a child has none of its parent's threads."""
        self._turn = threading.RLock()

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), ()

    def read_by(self, log: StreamLog[Any, Any]) -> None:
        """Say which handle on the catalog is open already."""
        self._log = log

    def of(self, store: Store, table_id: str) -> House:
        """Return the rules that a table's database has, after looking what is new in the catalog.

        Where the catalog cannot be read, what was read last counts: nobody's commit to a table
        waits for the catalog.

        Args:
            store: The ledger's.
            table_id: The table's.
        """
        if self._log is None:
            self._log = catalog_stream(store)
        self._look(self._log)
        head = self._log.head
        known = self._known
        if known is None or known[0] is not head or known[1] != table_id:
            self._known = known = head, table_id, _house_in(head, table_id)
        return known[2]

    def _look(self, log: StreamLog[Any, Any]) -> None:
        """Read what is new; one look that begins after all of several threads asked serves them."""
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
                # A local file system's errors have numbers. One without that does not come again
                # was raised by a signal handler, and is its caller's.
                if log.store.is_near and error.errno is None and _can_catch_up(log):
                    raise
            self._looked = number


def _house_in(head: Head[Any] | None, table_id: str) -> House:
    from ledger.decide.commit_policies import House

    entry = None if head is None else head.state.table_by_id(table_id)
    if head is None or entry is None:
        return House()
    database = entry.identifier.database
    return House(database, head.state.databases[database].options)


def _can_catch_up(log: StreamLog[Any, Any]) -> bool:
    try:
        log.catch_up()
    except (OSError, LedgerError):
        return False
    return True


_NOWHERE: Final = "memory://"


def recordable(url: str) -> str:
    """Return a root's URL as it is recorded; empty for one that means nothing to others."""
    return "" if url.startswith(_NOWHERE) else url


class Whereabouts:
    """Shared by all handles of a ledger; it learns as the catalog is read.

    Attributes:
        place: The URL that the ledger is said to be at; empty where nobody ever said.
        aliases: Other URLs that lead to the same storage.
    """

    __slots__ = ("_began", "_canonical", "_since", "aliases", "place")

    def __init__(self) -> None:
        self.place = self._began = ""
        self._since = 0
        self.aliases: tuple[str, ...] = ()
        self._canonical: dict[str, str] = {}

    def begin(self, place: str, since: int) -> None:
        """Learn where the ledger began, which commits of the catalog before a version knew not."""
        self._began, self._since = place, since
        self.place = self.place or place

    def learn(self, state: CatalogState) -> None:
        """Learn what the catalog says."""
        is_newer = state.placed_version >= self._since
        said = (state.place, state.aliases) if is_newer else (self._began, ())
        if said != (self.place, self.aliases):
            self.place, self.aliases = said
            self._canonical.clear()

    @property
    def is_settled(self) -> bool:
        """Whether somebody said where the ledger is."""
        return bool(self.place)

    def is_here(self, url: str) -> bool:
        """Whether a URL is the ledger's place or leads to it, as far as is known.

        Nothing that is asked when nobody ever said where the ledger is.
        """
        return not self.place or self.canonical(url) == self.place

    def is_recorded_at(self, url: str) -> bool:
        """Return whether the ledger is recorded to be at a URL, or at one that leads there."""
        return self.is_settled and self.is_here(url)

    def canonical(self, url: str) -> str:
        """Return the recorded URL of the place that a URL leads to; itself where none does."""
        if not self.place or url == self.place:
            return url
        found = self._canonical.get(url)
        if found is None:
            found = self._canonical[url] = self.place if self._leads_here(url) else url
        return found

    def _leads_here(self, url: str) -> bool:
        place = place_of(url)
        known = [*map(place_of, self._known())]
        return place in known or behind_links(place) in map(behind_links, known)

    def others(self, url: str) -> tuple[str, ...]:
        """Return the known URLs of a ledger that do not lead where it was opened."""
        return () if self.is_here(url) else tuple(self._known())

    def _known(self) -> Iterator[str]:
        yield self.place
        yield from self.aliases


class Settled(Whereabouts):
    """Of who says where a ledger is: wherever it was opened, it is at home."""

    __slots__ = ()

    def is_here(self, url: str) -> bool:
        """Say so."""
        del url
        return True

    def canonical(self, url: str) -> str:
        """Return the URL itself."""
        return url

    @property
    def is_settled(self) -> bool:
        """Whether nothing needs to be looked at before a commit."""
        return True


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
