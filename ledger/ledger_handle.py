"""Internal handle of a ledger: the catalog's log, its commit path, and the tables' handles.

`Ledger` holds one as `_handle`; the packages of formats and the command line get it by
`ledger.table_handle.handle_of`. `ledger.ledger_writes` has the writes that need several steps.
"""

from __future__ import annotations

import getpass
import math
import os
import platform
import time
from collections.abc import Callable, Collection, Iterator, Mapping
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
    annotate_interruption,
    find_commit,
    outside,
    request_of,
    unfinished_steps_error,
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
from ledger.observing.telemetry import log_event, traced_commit
from ledger.opening.context import (
    FixedLocation,
    Progress,
    TableSetting,
    catalog_stream,
)
from ledger.opening.ledger_file import ROOT_KEY, create_root_file, read_root
from ledger.state.catalog import EMPTY_CATALOG, CatalogState, TableEntry
from ledger.stores import client_options, open_store
from ledger.stores.file_access import FileAccess, endpoint_of
from ledger.stores.wrappers import Trust, with_trust

# Modules that only some calls need are imported by those calls, so that reading starts fast.
if TYPE_CHECKING:
    from ledger.audit.entries import Entry, EntryFilter
    from ledger.audit.listings import FoundCommits
    from ledger.audit.table_heads import TableHead, TableHeads
    from ledger.decide.catalog import CatalogRequest
    from ledger.decide.commit_policies import CommitContext
    from ledger.history.older import TableLog
    from ledger.history.verifying.surroundings import CatalogedTable
    from ledger.state.catalog_builder import LiveOrDroppedTable
    from ledger.table_handle import TableHandle

T = TypeVar("T")

_ERASABLE = "authors, messages and properties are kept outside of the lines"


def open_ledger(
    url: str,
    storage_options: Mapping[str, Any] | None,
    *,
    author: str | None,
    clock: NowMillis,
    allowed_locations: Collection[str] | None,
    trust: Trust,
) -> LedgerHandle:
    """Open the ledger at a URL; see `ledger.open`."""
    setting = TableSetting(
        store=with_trust(open_store(url, storage_options), trust),
        storage_options=client_options(url, storage_options),
        author=author or default_author(),
        now_millis=clock,
        allowed=_allowed_places(allowed_locations),
        trust=trust,
    )
    return LedgerHandle(setting)


def default_author() -> str:
    """Return the author of commits that name none: `user@host`."""
    try:
        return f"{getpass.getuser()}@{platform.node()}"
    except (KeyError, OSError):
        return f"unknown@{platform.node()}"


def _allowed_places(given: Collection[str] | None) -> tuple[Place, ...]:
    """Return the locations that the caller or the environment allows."""
    if isinstance(given, str):
        raise InvalidInputError(
            f"allowed_locations takes a list of folders or URLs, not {given!r}; write [{given!r}]"
        )
    if given is None:
        given = os.environ.get("LAKELEDGER_ALLOWED_LOCATIONS", "").split(";")
    return tuple(place_of(each.strip()) for each in given if each.strip())


class LedgerHandle:
    """The catalog's log with its commit path, and the setting that its tables' handles share.

    Attributes:
        setting: Store, clock, author and policies, shared with the tables.
        log: The catalog's log.
        appender: Appends commits to it.
    """

    def __init__(self, setting: TableSetting) -> None:
        self.setting = setting
        self.log = catalog_stream(setting.store)
        self.appender: Appender[CatalogState, CatalogEvent] = Appender(
            self.log, setting.now_millis, setting.retry_policy
        )
        self._root_id = read_root(setting)
        self._heads: TableHeads | None = None
        setting.database_policies.set_catalog_log(self.log)

    def __reduce__(self) -> tuple[Any, ...]:
        # The receiving process opens it again: threads and caches are not pickled.
        return type(self), (self.setting,)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.url!r})"

    @property
    def url(self) -> str:
        """The root's canonical URL."""
        return self.setting.store.url

    def refuse_lost_root(self) -> None:
        """Reject a location whose root file is missing although its log exists.

        Raises:
            DamagedLogError: The root file is missing.
        """
        if self._root_id is None and self.setting.store.exists(self.log.layout.commit(0)):
            # The writer that created the log wrote the root file first.
            self._root_id = read_root(self.setting)
            if self._root_id is None:
                raise DamagedLogError(
                    f"{self.url} has a catalog's log, but {ROOT_KEY} is missing, and a new one "
                    "would give the ledger another identity. Restore the file from a backup, or "
                    "finish the import that was interrupted here; nothing was written",
                    ROOT_KEY,
                )

    def refuse_missing(self) -> None:
        """Reject a location where no ledger is, so that a mistyped one is not read as empty.

        Raises:
            NotFoundError: There is no ledger.
            DamagedLogError: Its root file is missing.
        """
        self.refuse_lost_root()
        if not self.is_begun:
            raise NotFoundError(
                f"there is no ledger at {self.url}: check the path, or create one with: "
                f"lakeledger init {self.url}, or in Python: lake.init()"
            )

    def init(self, *, erasable: bool = False) -> str:
        """Initialize the ledger unless it exists already; see `Ledger.init`."""
        self.refuse_lost_root()
        if not self.is_begun:
            create_root_file(self.setting)
            self._root_id = read_root(self.setting)
            log_event(__name__, "ledger_created", root=self.url, ledger_id=self._root_id)
        if erasable and not self.is_erasable:
            self._begin_erasable()
        return self._root_id or ""

    def _begin_erasable(self) -> None:
        """Write the first commit, which records that the ledger is erasable."""
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
        """True if the ledger exists at its URL, that is, was initialized."""
        if self._root_id is None:
            # Another process may have initialized it.
            self._root_id = read_root(self.setting)
        return self._root_id is not None

    @property
    def ledger_id(self) -> str | None:
        """The ledger's unique id; None if no ledger exists at the URL yet."""
        return self.state.ledger_id or self._root_id if self.is_begun else None

    @property
    def is_erasable(self) -> bool:
        """True if authors, messages and properties are stored so that `erase` can delete them."""
        return self.state.keeps_outside

    @property
    def state(self) -> CatalogState:
        """The newest state of the catalog, after reading commits appended since the last read."""
        state = self.log.refresh() or EMPTY_CATALOG
        self.setting.root_location.learn(state)
        return state

    def events(self, first: int = 0) -> Iterator[Commit[CatalogEvent]]:
        """Yield the catalog's commits, oldest first, from version `first` on."""
        commits = (read.commit for read in self.log.commits(first, self.state.version))
        return self.log.personal.resolve_each(commits)

    def find_commit(self, commit_id: str) -> Commit[CatalogEvent] | None:
        """Return the catalog's commit with a commit id, or None; see `Table.find_commit`."""
        return find_commit(self.log, commit_id)

    def find_in_all_logs(self, commit_id: str, on_progress: Progress) -> FoundCommits:
        """Find the commits with a commit id in all logs; see `Ledger.find_everywhere`."""
        from ledger.audit.listings import SearchedStream, find_commits

        tables = [
            SearchedStream(str(each.identifier), partial(self.log_at, each), each.is_dropped)
            for each in self.cataloged_tables()
        ]
        catalog = SearchedStream("", lambda: self.log)
        return find_commits(commit_id, [catalog, *tables], on_progress)

    def entries(self, database: str | None, wanted: EntryFilter) -> Iterator[Entry]:
        """Yield the transactions of the catalog and of every table; see `Ledger.entries`."""
        from ledger.audit.listings import entries_of_all_streams

        if database is not None:
            self.state.database(database)
        heads = self.table_heads()
        return entries_of_all_streams(self.log, heads, self.log_of, database, wanted)

    def table_heads(self) -> list[TableHead]:
        """Return the newest commit of every current or dropped table, without opening them.

        Raises:
            DamagedLogError: The log of a table that exists is missing, or its head is damaged.
        """
        from ledger.audit.table_heads import TableHeads
        from ledger.opening.opened_table import stream_place

        self.log.refresh()
        if self._heads is None:
            self._heads = TableHeads(self.log, partial(stream_place, self.setting))
        return self._heads.refresh(self.log_of)

    def committed_before(self, commit_id: str | None, asked: Any) -> Appended[CatalogState] | None:
        """Return the earlier outcome of the same catalog request and commit id; None if new."""
        options: CommitOptions = {} if commit_id is None else {"commit_id": commit_id}
        return self.appender.commit_lookup.find_by_content(self.request(asked, options))

    def table(self, identifier: str | Identifier) -> TableHandle:
        """Return a table's handle.

        Raises:
            NotFoundError: It does not exist; the message names similar ones.
        """
        name = Identifier.parse(identifier)
        try:
            return self.open_table(self.state.table(name))
        except TableDroppedError:
            # Opening completed an interrupted drop, so the name may belong to another table.
            return self.open_table(self.state.table(name))

    def _handle_at(self, identifier: Identifier, path: str) -> TableHandle:
        # Listing and opening a ledger needs no table.
        from ledger.table_handle import TableHandle

        return TableHandle(identifier, path, self.setting)

    def open_table(
        self, entry: TableEntry, begin: Callable[[TableEntry, TableHandle], None] | None = None
    ) -> TableHandle:
        """Return the handle of a table of the catalog; write a missing version 0 first."""
        table = self._handle_at(entry.identifier, entry.path)
        state = table.log.refresh()
        if state is None:
            (begin or self._create_missing_log_inside)(entry, table)
            state = table.state
        if state.table_id != entry.table_id:
            raise DamagedLogError(
                f"{table.location} holds the stream of table {state.table_id}, but the catalog "
                f"says {entry.table_id}",
                table.log.layout.commit(0),
            )
        if state.dropped:
            self._finish_drop_or_undrop(entry, table, state.version)
        return table

    def _finish_drop_or_undrop(
        self, entry: TableEntry, table: TableHandle, sealed_version: int
    ) -> None:
        """Complete the interrupted drop or restoration of a table whose stream is sealed.

        Raises:
            TableDroppedError: It was dropped.
        """
        from ledger.opening.creation import finish_drop, finish_undrop

        if sealed_version == entry.unsealed_version:
            finish_undrop(self.log, table.appender, entry)
            return
        finish_drop(self.appender, table.log, entry, sealed_version)
        raise TableDroppedError(f"table {entry.identifier} was dropped")

    def _create_missing_log_inside(self, entry: TableEntry, table: TableHandle) -> None:
        """Write a missing version 0 below the ledger's root; see `create_missing_log`.

        Raises:
            DamagedLogError: The log existed before, or the table is external: a catalog may name
                any location, and opening a table must not write there.
        """
        self._refuse_missing_log(entry, table)
        if is_absolute(entry.path):
            raise DamagedLogError(
                f"table {entry.identifier} has no log at {table.location}, and outside of the "
                "ledger's root only the call that creates a table writes one: create it again "
                "with the same commit id, restore the folder from a backup, or drop the table; "
                "nothing was written",
                table.log.layout.commit(0),
            )
        self._create_log(self.log.commit_at(entry.created_version), entry, table)

    def create_missing_log(
        self, created: Commit[CatalogEvent], entry: TableEntry, table: TableHandle
    ) -> None:
        """Write a missing version 0, for the call that creates the table.

        Args:
            created: The catalog's commit that created it.
            entry: The table.
            table: Its handle.

        Raises:
            DamagedLogError: The log existed before.
        """
        self._refuse_missing_log(entry, table)
        self._create_log(created, entry, table)

    def _create_log(
        self, created: Commit[CatalogEvent], entry: TableEntry, table: TableHandle
    ) -> None:
        from ledger.opening.creation import create_stream

        create_stream(self.log, created, entry, table.log, self.setting.retry_policy)
        self.setting.announce(entry.table_id, 0)

    def _refuse_missing_log(self, entry: TableEntry, table: TableHandle) -> None:
        from ledger.opening.creation import was_created

        # The creation is noted after the log is created, which another writer may do right now.
        if was_created(self.log, entry.table_id) and table.log.refresh() is None:
            raise DamagedLogError(
                f"the log of table {entry.identifier} was at {table.location} and is missing: "
                "restore the folder from a backup, or drop the table; or, if this ledger is a copy "
                f"of some tables, run in the original: lakeledger replay {entry.identifier} "
                f"--into-ledger {self.url}. Nothing was written",
                table.log.layout.commit(0),
            )

    def streams(self) -> Iterator[tuple[str, StreamLog[Any, Any]]]:
        """Yield the name and log of the catalog and of every table, dropped ones included."""
        yield "catalog", self.log
        for each in self.cataloged_tables():
            yield each.name, self.log_at(each)

    def cataloged_tables(self) -> list[CatalogedTable]:
        """Return every table that the catalog ever had, dropped ones included."""
        from ledger.history.verifying.surroundings import CatalogedTables

        head = self.state.version
        return [*CatalogedTables.of(read.commit for read in self.log.commits(0, head))]

    def log_at(self, creation: CatalogedTable) -> TableLog:
        """Return the log of a table, which may have been dropped."""
        return self._handle_at(creation.identifier, creation.path).log

    def log_of(self, past: LiveOrDroppedTable) -> TableLog | None:
        """Return the log of a current or dropped table; None if a dropped table's log is gone."""
        if past.dropped_millis is None:
            # Another process may rename or drop it concurrently.
            with suppress(NotFoundError):
                log = self.table(str(past.identifier)).log
                if log.head is not None and log.head.state.table_id == past.table_id:
                    return log
        log = self._handle_at(past.identifier, past.path).log
        # A dropped table's folder may have been deleted, or its log be damaged.
        with suppress(LedgerError, OSError):
            state = log.refresh()
            return log if state is not None and state.table_id == past.table_id else None
        return None

    def access(self, source: str | None, options: Mapping[str, Any] | None) -> FileAccess:
        """Return the permission to open a source's files: only below the allowed locations.

        The reader of the source adds the folder that the user named.
        """
        setting = self.setting
        home = setting.file_access().home
        if options is None:
            return FileAccess(home, setting.storage_options, folders=setting.allowed)
        at = home if source is None else endpoint_of(source, options)
        return FileAccess(at, options, folders=setting.allowed)

    def for_any_location(self) -> LedgerHandle:
        """Return a handle that may commit at any location, whatever location is recorded."""
        return LedgerHandle(evolve(self.setting, root_location=FixedLocation()))

    def request(self, asked: Any, options: CommitOptions) -> Request:
        """Return the request of a commit; its author defaults to the setting's."""
        return request_of(options, asked=asked, default_author=self.setting.author)

    def commit(
        self, make: Callable[[], CatalogRequest | None], request: Request
    ) -> Appended[CatalogState]:
        """Commit a request to the catalog; `make` builds it on the newest state."""
        from ledger.decide.catalog import CatalogIntent, CopyLedger
        from ledger.opening.creation import NOTHING

        def append() -> Appended[CatalogState]:
            committed = self.appender.commit_lookup.before(request)
            if committed is not None:
                return committed
            self.log.refresh()
            wanted = make()
            if wanted is None:
                return self.appender.append(NOTHING, request)
            # A copy removes tables that stay the original's; rules about drops do not apply.
            context = None if isinstance(wanted, CopyLedger) else self.context(request)
            return self.appender.append(CatalogIntent(wanted, context), request)

        self.init()
        with annotate_interruption(request):
            return traced_commit(append, stream=self.log, commit_id=request.commit_id)

    def context(self, request: Request) -> CommitContext:
        """Return the author, message and clock that database policies are applied with."""
        from ledger.decide.commit_policies import CommitContext

        return CommitContext(request.author, request.message, self.setting.now_millis)

    def ask(self, request: CatalogRequest, options: CommitOptions) -> Appended[CatalogState]:
        """Commit a request to the catalog that needs no state to be built."""
        asked = [type(request).__name__, request]
        return self.commit(lambda: request, self.request(asked, options))

    def after(self, request: Request, version: int, rest: Callable[[], T]) -> T:
        """Run the steps that follow a successful commit, with retries.

        The commit stays valid if they fail. An exception that interrupts them carries a note with
        the commit id and version; opening the table, or the next drop, completes them.

        Raises:
            CommitUnknownError: The store does not answer, or a step was rejected for now.
        """
        request.status.is_sent, request.status.version = True, version
        with annotate_interruption(request):
            return self._run_with_retries(request, version, rest)

    def _run_with_retries(self, request: Request, version: int, rest: Callable[[], T]) -> T:
        failure: Exception | None = None
        try:
            for _ in self.setting.retry_policy.attempts():
                try:
                    return rest()
                except OSError as error:
                    failure = error
        except (CommitConflictError, StoreError) as error:
            failure = error
        raise unfinished_steps_error(version, request.commit_id) from failure

    def events_of(self, version: int) -> Iterator[CatalogEvent]:
        """Yield the events of one commit of the catalog."""
        for transaction in self.log.commit_at(version).transactions:
            yield from transaction.events

    def close(self, timeout_s: float | None) -> bool:
        """Wait for background writes of projections and caches; see `Ledger.close`."""
        from ledger.following.files import wait

        begun_s = time.monotonic()
        limit_s = math.inf if timeout_s is None else timeout_s
        are_there = wait(self.url, limit_s)
        left_s = limit_s - (time.monotonic() - begun_s)
        wait_for_caches(self.url, min(left_s, EXIT_WAITS_S))
        left_s = limit_s - (time.monotonic() - begun_s)
        self.setting.activity.finish(min(left_s, EXIT_WAITS_S))
        return are_there
