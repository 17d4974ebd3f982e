"""Internal handle of a ledger: the catalog's log, its commit path, and the tables' handles.

`Ledger` holds one as `_handle`; the packages of formats and the command line get it by
`ledger.table_handle.handle_of`. `ledger.ledger_writes` has what takes more than a request.
"""

from __future__ import annotations

import getpass
import math
import os
import platform
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import evolve

from ledger.events.catalog import CatalogEvent
from ledger.events.commit import Commit
from ledger.locations import Place, is_absolute, place_of
from ledger.log.append import Appender
from ledger.log.commit_queue import EXIT_WAITS_S
from ledger.log.request import (
    Appended,
    CommitOptions,
    NowMillis,
    Request,
    find_commit,
    noting,
    outside,
    request_of,
    unfinished,
)
from ledger.log.stream_log import StreamLog, wait_for_caches
from ledger.model.errors import (
    CommitConflictError,
    DamagedLogError,
    InvalidInputError,
    LedgerError,
    NotFoundError,
    StoreError,
    TableDroppedError,
)
from ledger.model.names import Identifier
from ledger.observing.telemetry import traced_commit
from ledger.opening.context import FixedLocation, Progress, TableSetting, catalog_stream
from ledger.opening.ledger_file import ROOT_KEY, begin_root, read_root
from ledger.state.catalog import EMPTY_CATALOG, CatalogState, TableEntry
from ledger.stores import client_options, open_store
from ledger.stores.file_access import FileAccess, endpoint_of
from ledger.stores.wrappers import Trust, trusting
from ledger.table_handle import TableHandle

# Rooms that only writing needs are entered by the methods that write: to read starts fast.
if TYPE_CHECKING:
    from ledger.audit.entries import Entry, WantedEntries
    from ledger.audit.listings import FoundCommits
    from ledger.decide.catalog import CatalogRequest
    from ledger.decide.commit_policies import CommitContext
    from ledger.history.older import TableLog
    from ledger.history.verifying.surroundings import CatalogedTable
    from ledger.state.catalog_builder import PastTable

T = TypeVar("T")

_ERASABLE = "authors, messages and properties are kept outside of the lines"


def open_ledger(
    url: str,
    storage_options: Mapping[str, Any] | None,
    *,
    author: str | None,
    clock: NowMillis,
    allowed_locations: Sequence[str] | None,
    trust: Trust,
) -> LedgerHandle:
    """Open the ledger at a URL; see `ledger.open`."""
    setting = TableSetting(
        store=trusting(open_store(url, storage_options), trust),
        storage_options=client_options(url, storage_options),
        author=author or default_author(),
        now_millis=clock,
        allowed=_places(allowed_locations),
        trust=trust,
    )
    return LedgerHandle(setting)


def default_author() -> str:
    """Return who commits when nobody says: `user@host`."""
    try:
        return f"{getpass.getuser()}@{platform.node()}"
    except (KeyError, OSError):
        return f"unknown@{platform.node()}"


def _places(given: Sequence[str] | None) -> tuple[Place, ...]:
    """Return the places that a caller or the environment allows."""
    if isinstance(given, str):
        raise InvalidInputError(f"allowed_locations takes a list of places, not {given!r} alone")
    if given is None:
        given = os.environ.get("LAKELEDGER_ALLOWED_LOCATIONS", "").split(";")
    return tuple(place_of(each.strip()) for each in given if each.strip())


class LedgerHandle:
    """The catalog's log with its commit path, and what its tables' handles share.

    Attributes:
        setting: What the ledger shares with its tables.
        log: The catalog's stream.
        appender: Appends to it.
    """

    def __init__(self, setting: TableSetting) -> None:
        self.setting = setting
        self.log = catalog_stream(setting.store)
        self.appender: Appender[CatalogState, CatalogEvent] = Appender(
            self.log, setting.now_millis, setting.retry_policy
        )
        self._root_id = read_root(setting)
        setting.database_policies.read_by(self.log)

    def __reduce__(self) -> tuple[Any, ...]:
        # Elsewhere it is opened anew: threads and what was read stay here.
        return type(self), (self.setting,)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.url!r})"

    @property
    def url(self) -> str:
        """The root's canonical URL."""
        return self.setting.store.url

    def refuse_lost_root(self) -> None:
        """Refuse a place whose root file is gone while its log is there.

        Raises:
            DamagedLogError: It is such a place.
        """
        if self._root_id is None and self.setting.store.exists(self.log.layout.commit(0)):
            # Whoever began the log wrote the root before.
            self._root_id = read_root(self.setting)
            if self._root_id is None:
                raise DamagedLogError(
                    f"{self.url} has a catalog's log, but {ROOT_KEY} is missing, and a new one "
                    "would give the ledger another identity. Restore the file from a backup, or "
                    "finish the import that was broken off here; nothing was written",
                    ROOT_KEY,
                )

    def init(self, *, erasable: bool = False) -> str:
        """Write the root's file if it is not there; see `Ledger.init`."""
        self.refuse_lost_root()
        if self._root_id is None:
            begin_root(self.setting)
            self._root_id = read_root(self.setting)
        if erasable and not self.is_erasable:
            self._begin_erasable()
        return self._root_id or ""

    def _begin_erasable(self) -> None:
        """Write the first commit, which says that texts are kept outside of the lines."""
        if self.state.version >= 0:
            raise InvalidInputError(
                f"{self.url} has commits already, which keep authors and messages in their lines; "
                "only a new ledger can be made erasable. Create one at another place: lakeledger "
                "init --erasable"
            )
        request = self.request(["Erasable"], {"message": _ERASABLE})
        self.commit(lambda: None, outside(request))

    @property
    def is_begun(self) -> bool:
        """Whether a ledger is there."""
        return self._root_id is not None

    @property
    def ledger_id(self) -> str | None:
        """The ledger's id, which a copy's root or catalog says; None where no ledger is yet."""
        return None if self._root_id is None else self.state.ledger_id or self._root_id

    @property
    def is_erasable(self) -> bool:
        """Whether authors, messages and properties are kept so that they can be erased."""
        return self.state.keeps_outside

    @property
    def state(self) -> CatalogState:
        """The newest state, after reading what others appended since the last look."""
        state = self.log.refresh() or EMPTY_CATALOG
        self.setting.root_location.learn(state)
        return state

    def events(self, first: int = 0) -> Iterator[Commit[CatalogEvent]]:
        """Yield the catalog's commits from `first` on."""
        commits = (read.commit for read in self.log.commits(first, self.state.version))
        return self.log.personal.resolve_each(commits)

    def find_commit(self, commit_id: str) -> Commit[CatalogEvent] | None:
        """Return the catalog's commit that holds what was asked under an id; see `Table`'s."""
        return find_commit(self.log, commit_id)

    def everywhere(self, commit_id: str, on_progress: Progress) -> FoundCommits:
        """Return what was asked under an id of any stream; see `Ledger.find_everywhere`."""
        from ledger.audit.listings import Searched, find_commits

        tables = [
            Searched(str(each.identifier), partial(self.log_at, each), each.is_dropped)
            for each in self.cataloged_tables()
        ]
        catalog = Searched("", lambda: self.log)
        return find_commits(commit_id, [catalog, *tables], on_progress)

    def entries(self, database: str | None, wanted: WantedEntries) -> Iterator[Entry]:
        """Yield the transactions of the catalog and of every table; see `Ledger.entries`."""
        from ledger.audit.listings import whole_log

        if database is not None:
            self.state.database(database)
        self.log.refresh()
        return whole_log(self.log, self.log_of, database, wanted)

    def committed_before(self, commit_id: str | None, asked: Any) -> Appended[CatalogState] | None:
        """Return what was asked of the catalog in these words under an id; see `Table`'s."""
        options: CommitOptions = {} if commit_id is None else {"commit_id": commit_id}
        return self.appender.commit_lookup.of_words(self.request(asked, options))

    def table(self, identifier: str | Identifier) -> TableHandle:
        """Return a table's handle.

        Raises:
            NotFoundError: It does not exist; the message names similar ones.
        """
        name = Identifier.parse(identifier)
        try:
            return self.open_table(self.state.table(name))
        except TableDroppedError:
            # The drop was half done: it is finished now, and the name is free again.
            return self.open_table(self.state.table(name))

    def open_table(
        self, entry: TableEntry, begin: Callable[[TableEntry, TableHandle], None] | None = None
    ) -> TableHandle:
        """Return the handle of a table of the catalog, once a missing version 0 is written."""
        table = TableHandle(entry.identifier, entry.path, self.setting)
        state = table.log.refresh()
        if state is None:
            (begin or self._begin_inside)(entry, table)
            state = table.state
        if state.table_id != entry.table_id:
            raise DamagedLogError(
                f"{table.location} holds the stream of table {state.table_id}, but the catalog "
                f"says {entry.table_id}",
                table.log.layout.commit(0),
            )
        if state.dropped:
            from ledger.opening.creation import finish_drop

            finish_drop(self.appender, table.log, entry)
            raise TableDroppedError(f"table {entry.identifier} was dropped")
        return table

    def _begin_inside(self, entry: TableEntry, table: TableHandle) -> None:
        """Write a missing version 0 below the ledger's root; see `begin_anywhere`.

        Raises:
            DamagedLogError: It was there once, or belongs elsewhere: a catalog may name any place,
                and whoever opens a table did not ask to write there.
        """
        self._refuse_lost(entry, table)
        if is_absolute(entry.path):
            raise DamagedLogError(
                f"table {entry.identifier} has no log at {table.location}, and outside of the "
                "ledger's root only its creator begins one: create it again with the same "
                "commit_id=, restore the folder from a backup, or drop the table; nothing was "
                "written",
                table.log.layout.commit(0),
            )
        from ledger.opening.creation import bear

        bear(self.log, entry, table.log, self.setting.retry_policy)

    def begin_anywhere(self, entry: TableEntry, table: TableHandle) -> None:
        """Write a missing version 0, for the call that creates the table.

        Raises:
            DamagedLogError: It was there once.
        """
        self._refuse_lost(entry, table)
        from ledger.opening.creation import bear

        bear(self.log, entry, table.log, self.setting.retry_policy)

    def _refuse_lost(self, entry: TableEntry, table: TableHandle) -> None:
        from ledger.opening.creation import was_created

        # The note of a birth comes after the birth, which may be somebody's right now.
        if was_created(self.log, entry.table_id) and table.log.refresh() is None:
            raise DamagedLogError(
                f"the log of table {entry.identifier} was at {table.location} and is missing: "
                "restore the folder from a backup, or drop the table; nothing was written",
                table.log.layout.commit(0),
            )

    def streams(self) -> Iterator[tuple[str, StreamLog[Any, Any]]]:
        """Yield the log of the catalog and of every table that ever was, by name."""
        yield "catalog", self.log
        for each in self.cataloged_tables():
            yield each.name, self.log_at(each)

    def cataloged_tables(self) -> list[CatalogedTable]:
        """Return every table that ever was."""
        from ledger.history.verifying.surroundings import CatalogedTables

        head = self.state.version
        return [*CatalogedTables.of(read.commit for read in self.log.commits(0, head))]

    def log_at(self, creation: CatalogedTable) -> TableLog:
        """Return the log of a table that ever was."""
        return TableHandle(creation.identifier, creation.path, self.setting).log

    def log_of(self, past: PastTable) -> TableLog | None:
        """Return the stream of a table that there is or was; None where a dropped one left none."""
        if past.dropped_millis is None:
            # Somebody may drop it meanwhile.
            with suppress(NotFoundError):
                return self.table(str(past.identifier)).log
            return None
        log = TableHandle(past.identifier, past.path, self.setting).log
        # Who dropped a table may have taken its folder away, or dropped it since it was damaged.
        with suppress(LedgerError, OSError):
            state = log.refresh()
            return log if state is not None and state.table_id == past.table_id else None
        return None

    def access(self, source: str | None, options: Mapping[str, Any] | None) -> FileAccess:
        """Return the permission to open a source's files: below the allowed locations alone.

        What the user named as the source is added by the reader that knows its folder.
        """
        setting = self.setting
        home = setting.file_access().home
        if options is None:
            return FileAccess(home, setting.storage_options, folders=setting.allowed)
        at = home if source is None else endpoint_of(source, options)
        return FileAccess(at, options, folders=setting.allowed)

    def settled(self) -> LedgerHandle:
        """Return a handle that may commit wherever the ledger was found."""
        return LedgerHandle(evolve(self.setting, root_location=FixedLocation()))

    def request(self, asked: Any, options: CommitOptions) -> Request:
        """Return the envelope of a commit, by the setting's author where no other is given."""
        return request_of(options, asked=asked, default_author=self.setting.author)

    def commit(
        self, make: Callable[[], CatalogRequest | None], request: Request
    ) -> Appended[CatalogState]:
        """Commit what a request to the catalog means; `make` gives it on the newest state."""
        from ledger.decide.catalog import CatalogIntent, CopyLedger
        from ledger.opening.creation import NOTHING

        def land() -> Appended[CatalogState]:
            committed = self.appender.commit_lookup.before(request)
            if committed is not None:
                return committed
            self.log.refresh()
            wanted = make()
            if wanted is None:
                return self.appender.append(NOTHING, request)
            # A copy lets tables go that stay the original's: nobody drops them.
            context = None if isinstance(wanted, CopyLedger) else self.context(request)
            return self.appender.append(CatalogIntent(wanted, context), request)

        self.init()
        with noting(request):
            return traced_commit(land, stream=self.log, commit_id=request.commit_id)

    def context(self, request: Request) -> CommitContext:
        """Return on whose behalf rules of databases are applied."""
        from ledger.decide.commit_policies import CommitContext

        return CommitContext(request.author, request.message, self.setting.now_millis)

    def ask(self, request: CatalogRequest, options: CommitOptions) -> Appended[CatalogState]:
        """Commit a request to the catalog as it is."""
        asked = [type(request).__name__, request]
        return self.commit(lambda: request, self.request(asked, options))

    def after(self, request: Request, version: int, rest: Callable[[], T]) -> T:
        """Do the rest of what a commit began that has landed; nothing makes that a failure.

        An exception that interrupts it carries a note with the commit id and version; opening the
        table, or the next drop, completes it.

        Raises:
            CommitUnknownError: The store does not answer, or the rest was refused for now.
        """
        request.status.is_sent, request.status.version = True, version
        with noting(request):
            return self._finished(request, version, rest)

    def _finished(self, request: Request, version: int, rest: Callable[[], T]) -> T:
        failure: Exception | None = None
        try:
            for _ in self.setting.retry_policy.attempts():
                try:
                    return rest()
                except OSError as error:
                    failure = error
        except (CommitConflictError, StoreError) as error:
            failure = error
        raise unfinished(version, request.commit_id) from failure

    def events_of(self, version: int) -> Iterator[CatalogEvent]:
        """Yield the events of one commit of the catalog."""
        for transaction in self.log.commit_at(version).transactions:
            yield from transaction.events

    def close(self, timeout_s: float | None) -> bool:
        """Wait for files that follow, and for caches; see `Ledger.close`."""
        from ledger.following.files import wait

        begun_s = time.monotonic()
        limit_s = math.inf if timeout_s is None else timeout_s
        are_there = wait(self.url, limit_s)
        left_s = limit_s - (time.monotonic() - begun_s)
        wait_for_caches(self.url, min(left_s, EXIT_WAITS_S))
        return are_there
