"""Ledger: the handle on everything under one root: databases, tables, views."""

from __future__ import annotations

import getpass
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Unpack

import msgspec

from ledger.birth import NOTHING, as_schema, bear, drop_asked, finish_drop, schema_record
from ledger.commit_options import CommitOptions, fresh_id, now_millis, request_of
from ledger.events.catalog_events import CatalogEvent, ViewChange, ViewCreated
from ledger.events.commit import Commit
from ledger.events.table_events import TableCreated
from ledger.evolution.catalog_builder import identifier_of
from ledger.evolution.catalog_decide import CatalogIntent
from ledger.evolution.catalog_record import CatalogStream
from ledger.evolution.catalog_request import (
    AlterDatabase,
    AlterView,
    CatalogRequest,
    CreateDatabase,
    CreateTable,
    CreateView,
    DropDatabase,
    DropView,
    RenameTable,
    RenameView,
)
from ledger.evolution.catalog_state import EMPTY_CATALOG, CatalogState, TableEntry, ViewEntry
from ledger.evolution.creation import create_schema
from ledger.log.append import Appender
from ledger.log.request import Appended, NowMillis
from ledger.log.settle import Draft, settle
from ledger.log.stream_log import StreamLog
from ledger.model.errors import (
    DamagedLogError,
    NotFoundError,
    TableDroppedError,
    UpgradeRequiredError,
)
from ledger.model.identifier import Identifier
from ledger.model.schema import Schema
from ledger.model.view import ViewSchema
from ledger.stores import Store, open_store
from ledger.table import Table
from ledger.table_setting import TableSetting

if TYPE_CHECKING:
    import pyarrow as pa

ROOT_FORMAT = 1
_ROOT_KEY = "_ledger/ledger.json"


class _Root(msgspec.Struct, frozen=True, rename="camel"):
    """The file `_ledger/ledger.json`, written once."""

    format: int
    ledger_id: str


def default_author() -> str:
    """Return who commits when nobody says: `user@host`."""
    try:
        return f"{getpass.getuser()}@{socket.gethostname()}"
    except (KeyError, OSError):
        return f"unknown@{socket.gethostname()}"


def open(  # noqa: A001 - `ledger.open(url)` is what reads well
    url: str,
    storage_options: Mapping[str, Any] | None = None,
    *,
    author: str | None = None,
    clock: NowMillis = now_millis,
) -> Ledger:
    """Open the ledger at a URL; one that is not there yet begins with its first commit.

    Args:
        url: A folder, `file:///folder` or `memory://name`.
        storage_options: What fsspec takes for that URL.
        author: Who commits when a call does not say; `user@host` when None.
        clock: Unix time in milliseconds.

    Raises:
        StoreError: The place cannot hold a ledger; the message says why and what can.
        UpgradeRequiredError: A newer lakeledger wrote it.

    Example:
        >>> lake = open("memory://example")
        >>> _ = lake.create_database("shop")
        >>> orders = lake.create_table("shop.orders", Schema.of({"id": "BIGINT"}))
        >>> orders.at().schema.names
        ('id',)
    """
    setting = TableSetting(
        store=open_store(url, storage_options),
        storage_options=storage_options or {},
        author=author or default_author(),
        now_millis=clock,
    )
    return Ledger(setting)


class Ledger:
    """A catalog stream and the tables that it names; open one with `ledger.open`."""

    def __init__(self, setting: TableSetting) -> None:
        self._setting = setting
        self._store: Store = setting.store
        self.log: StreamLog[CatalogState, CatalogEvent] = StreamLog(
            setting.store, "_ledger", CatalogStream()
        )
        self._appender: Appender[CatalogState, CatalogEvent] = Appender(
            self.log, setting.now_millis, setting.patience
        )
        self.ledger_id = self._read_root()

    @property
    def url(self) -> str:
        """The root's canonical URL."""
        return self._store.url

    def _read_root(self) -> str | None:
        body = self._store.read(_ROOT_KEY)
        if body is None:
            return None
        try:
            root = msgspec.json.decode(body, type=_Root)
        except msgspec.DecodeError as error:
            raise DamagedLogError(f"{_ROOT_KEY} is no ledger's root: {error}", _ROOT_KEY) from error
        if root.format != ROOT_FORMAT:
            raise UpgradeRequiredError(
                f"{self.url} has format {root.format}; this version reads {ROOT_FORMAT}: "
                "upgrade lakeledger"
            )
        return root.ledger_id

    def init(self) -> str:
        """Write the root's file if it is not there; return the ledger's id."""
        if self.ledger_id is None:
            body = msgspec.json.encode(_Root(ROOT_FORMAT, fresh_id())) + b"\n"
            settle(self._store, Draft(_ROOT_KEY, body, 0, "init"), self._setting.patience)
            self.ledger_id = self._read_root()
        return self.ledger_id or ""

    @property
    def state(self) -> CatalogState:
        """The newest state, after reading what others appended since the last look."""
        return self.log.refresh() or EMPTY_CATALOG

    def events(self, first: int = 0) -> Iterator[Commit[CatalogEvent]]:
        """Yield the catalog's commits from `first` on."""
        return (read.commit for read in self.log.commits(first, self.state.version))

    def _commit(
        self, make: Callable[[], CatalogRequest | None], asked: Any, options: CommitOptions
    ) -> Appended[CatalogState]:
        request = request_of(options, asked=asked, default_author=self._setting.author)
        self.init()
        landed = self._appender.landed_before(request)
        if landed is not None:
            return landed
        self.log.refresh()
        wanted = make()
        return self._appender.append(NOTHING if wanted is None else CatalogIntent(wanted), request)

    def _ask(self, request: CatalogRequest, options: CommitOptions) -> Appended[CatalogState]:
        return self._commit(lambda: request, [type(request).__name__, request], options)

    # Databases

    def databases(self) -> list[str]:
        """Return the names of all databases, sorted."""
        return sorted(self.state.databases)

    def create_database(
        self, name: str, options: Mapping[str, str] | None = None, **commit: Unpack[CommitOptions]
    ) -> Appended[CatalogState]:
        """Create a database.

        Raises:
            AlreadyExistsError: There is one of that name.
            InvalidNameError: The name would not be safe as a path.
        """
        return self._ask(CreateDatabase(name, options or {}), commit)

    def alter_database(
        self,
        name: str,
        *,
        removals: Sequence[str] = (),
        updates: Mapping[str, str] | None = None,
        **commit: Unpack[CommitOptions],
    ) -> Appended[CatalogState]:
        """Remove and set options of a database."""
        return self._ask(AlterDatabase(name, tuple(removals), updates or {}), commit)

    def drop_database(self, name: str, **commit: Unpack[CommitOptions]) -> Appended[CatalogState]:
        """Drop an empty database."""
        return self._ask(DropDatabase(name), commit)

    # Tables

    def tables(self, database: str) -> list[str]:
        """Return the names of a database's tables, sorted."""
        state = self.state
        state.database(database)
        return sorted(each.name for each in state.tables if each.database == database)

    def create_table(
        self,
        identifier: str | Identifier,
        schema: Schema | Mapping[str, Any] | pa.Schema,
        *,
        location: str | None = None,
        **commit: Unpack[CommitOptions],
    ) -> Table:
        """Create a table and return its handle.

        Args:
            identifier: `database.table`.
            schema: Its first schema, checked and completed as Paimon does: a Schema, its JSON as
                the DLF metadata API has it, or an Arrow schema (its columns get new ids).
            location: An absolute folder for an external table; None for one under the root.
            commit: See CommitOptions.

        Raises:
            AlreadyExistsError: There is a table or view of that name.
            NotFoundError: The database does not exist.
            InvalidChangeError: The schema breaks a rule.
        """
        name = Identifier.parse(identifier)
        created = create_schema(as_schema(schema))
        record = schema_record(created)

        def make() -> CatalogRequest:
            if name in self.state.tables:
                # Opening finishes a drop that was left half done; the name is free then.
                with suppress(NotFoundError):
                    self.table(name)
            return CreateTable(name, fresh_id(), record, location)

        appended = self._commit(make, ["CreateTable", str(name), record, location], commit)
        entry = self.state.table_by_id(self._created_in(appended.version, name))
        if entry is None:
            raise TableDroppedError(f"table {name} was created and dropped since; create it anew")
        return self._open(entry)

    def _created_in(self, version: int, name: Identifier) -> str:
        """Return the id of the table of that name which a catalog commit created."""
        return next(
            event.table_id
            for event in self._events_of(version)
            if isinstance(event, TableCreated) and identifier_of(event.identifier) == name
        )

    def _events_of(self, version: int) -> Iterator[CatalogEvent]:
        for transaction in self.log.commit_at(version).transactions:
            yield from transaction.events

    def table(self, identifier: str | Identifier) -> Table:
        """Return a table's handle.

        Raises:
            NotFoundError: It does not exist; the message names similar ones.
        """
        name = Identifier.parse(identifier)
        try:
            return self._open(self.state.table(name))
        except TableDroppedError:
            # The drop was half done: it is finished now, and the name is free again.
            return self._open(self.state.table(name))

    def _open(self, entry: TableEntry) -> Table:
        table = Table(entry.identifier, entry.path, self._setting)
        state = table.log.refresh()
        if state is None:
            bear(self.log, entry, table.log, self._setting.patience)
            state = table.state
        if state.table_id != entry.table_id:
            raise DamagedLogError(
                f"{table.location} holds the stream of table {state.table_id}, but the catalog "
                f"says {entry.table_id}",
                table.log.layout.commit(0),
            )
        if state.dropped:
            finish_drop(self._appender, table.log, entry)
            raise TableDroppedError(f"table {entry.identifier} was dropped")
        return table

    def rename_table(
        self,
        source: str | Identifier,
        destination: str | Identifier,
        **commit: Unpack[CommitOptions],
    ) -> Appended[CatalogState]:
        """Give a table another name; its files stay where they are."""
        names = Identifier.parse(source), Identifier.parse(destination)
        return self._ask(RenameTable(*names), commit)

    def drop_table(
        self, identifier: str | Identifier, **commit: Unpack[CommitOptions]
    ) -> Appended[CatalogState]:
        """Drop a table: its stream is sealed, then the catalog forgets the name.

        No file is deleted, and the location is never given out again.
        """
        name = Identifier.parse(identifier)
        options: CommitOptions = {**commit}
        options.setdefault("commit_id", fresh_id())
        asked = drop_asked(name)
        request = request_of(options, asked=asked, default_author=self._setting.author)
        landed = self._appender.landed_before(request)
        if landed is not None:
            return landed
        try:
            table = self.table(name)
        except NotFoundError:
            # Looking may have finished this very drop, sealed by an earlier attempt.
            landed = self._appender.landed_before(request)
            if landed is None:
                raise
            return landed
        entry = self.state.table_by_id(table.state.table_id)
        table.seal(**options)
        if entry is not None:
            # In the name of whoever sealed it, who may have died since.
            finish_drop(self._appender, table.log, entry)
        # The table's version was expected of the table's stream; the catalog has its own.
        options.pop("expect_version", None)
        return self._commit(lambda: None, asked, options)

    # Views

    def views(self, database: str) -> list[str]:
        """Return the names of a database's views, sorted."""
        state = self.state
        state.database(database)
        return sorted(each.name for each in state.views if each.database == database)

    def view(self, identifier: str | Identifier) -> ViewEntry:
        """Return a view.

        Raises:
            NotFoundError: It does not exist; the message names similar ones.
        """
        return self.state.view(Identifier.parse(identifier))

    def create_view(
        self, identifier: str | Identifier, schema: ViewSchema, **commit: Unpack[CommitOptions]
    ) -> ViewEntry:
        """Create a view and return it."""
        name = Identifier.parse(identifier)
        asked = ["CreateView", str(name), repr(schema)]
        done = self._commit(lambda: CreateView(name, fresh_id(), schema), asked, commit)
        created = (
            event.view_id
            for event in self._events_of(done.version)
            if isinstance(event, ViewCreated) and identifier_of(event.identifier) == name
        )
        view = self.state.view_by_id(next(created))
        if view is None:
            raise NotFoundError(f"view {name} was created and dropped since; create it anew")
        return view

    def alter_view(
        self,
        identifier: str | Identifier,
        changes: Sequence[ViewChange],
        **commit: Unpack[CommitOptions],
    ) -> Appended[CatalogState]:
        """Change a view's options, comment or dialects."""
        return self._ask(AlterView(Identifier.parse(identifier), tuple(changes)), commit)

    def rename_view(
        self,
        source: str | Identifier,
        destination: str | Identifier,
        **commit: Unpack[CommitOptions],
    ) -> Appended[CatalogState]:
        """Give a view another name."""
        names = Identifier.parse(source), Identifier.parse(destination)
        return self._ask(RenameView(*names), commit)

    def drop_view(
        self, identifier: str | Identifier, **commit: Unpack[CommitOptions]
    ) -> Appended[CatalogState]:
        """Drop a view."""
        return self._ask(DropView(Identifier.parse(identifier)), commit)
