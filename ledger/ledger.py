"""Ledger: the handle on one ledger: databases, tables, views."""

from __future__ import annotations

import getpass
import math
import os
import platform
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar, Unpack

from attrs import evolve
from msgspec.structs import replace

from ledger.events.catalog import CatalogEvent, ViewChange, ViewCreated
from ledger.events.commit import Commit
from ledger.events.table import TableCreated, TableDropped, TableName
from ledger.locations import Place, is_absolute, place_of
from ledger.log.append import Appender
from ledger.log.commit_queue import EXIT_WAITS_S
from ledger.log.request import (
    Appended,
    CommitOptions,
    NowMillis,
    Request,
    find_commit,
    fresh_id,
    noting,
    now_millis,
    outside,
    request_of,
    unfinished,
    unknown,
)
from ledger.log.stream_log import StreamLog, wait_for_caches
from ledger.model import arguments as its
from ledger.model.arguments import takes
from ledger.model.errors import (
    CommitConflictError,
    CommitUnknownError,
    DamagedLogError,
    InvalidInputError,
    LedgerError,
    NotFoundError,
    StoreError,
    TableDroppedError,
)
from ledger.model.instant import millis
from ledger.model.messages import html_table, moment
from ledger.model.names import Identifier
from ledger.model.schema import ViewSchema
from ledger.observing.telemetry import is_heard, tell, told_commit
from ledger.opening.context import Progress, Settled, TableSetting, catalog_stream, no_progress
from ledger.opening.ledger_file import ROOT_KEY, begin_root, read_root, refuse_location
from ledger.state.catalog import EMPTY_CATALOG, CatalogState, TableEntry, ViewEntry
from ledger.state.catalog_builder import identifier_of
from ledger.stores import client_options, open_store
from ledger.stores.file_access import FileAccess, endpoint_of
from ledger.stores.wrappers import Trust, trusting
from ledger.table import PROTOCOL, WANTED_ENTRIES, Table

# Rooms that only writing needs are entered by the methods that write: to read starts fast.
if TYPE_CHECKING:
    from ledger.audit.entries import Entry
    from ledger.audit.listings import Sightings
    from ledger.audit.views import Rows
    from ledger.decide.catalog import CatalogRequest
    from ledger.decide.commit_policies import Asker
    from ledger.events.schema import AddPartitionField, SortColumn
    from ledger.events.table import ServingProtocol
    from ledger.history.erasure import Erasure, Sought
    from ledger.history.erasure import Progress as ErasureProgress
    from ledger.history.older import TableLog
    from ledger.history.verifying.surroundings import NamedBirth
    from ledger.model.file_change import PartitionValue
    from ledger.model.schema import FieldIdPolicy
    from ledger.opening.creation import GivenSchema
    from ledger.plan import ClockPlan
    from ledger.relocation.moving import Findings
    from ledger.state.catalog_builder import PastTable
    from ledger.transforms import Term

T = TypeVar("T")

DEFAULT_SOURCE: Final = "iceberg"
"""Whose tables are imported where nobody says whose they are."""


def _names_a_place(value: object) -> bool:
    if not isinstance(value, str | PurePath):
        return False
    try:
        os.fsencode(value)
    except UnicodeEncodeError:
        return False
    return True


PLACE = its.Form("a folder or a URL", _names_a_place)

_BIRTH_KEYS = frozenset(("schema", "field_id_policy", "origin", "partition_spec", "sort_order"))
_BIRTH = its.Form(
    "a mapping with schema, field_id_policy and origin, and maybe partition_spec and sort_order",
    lambda value: (
        isinstance(value, Mapping)
        and {"schema", "field_id_policy", "origin"} <= value.keys() <= _BIRTH_KEYS
    ),
)
_EXPORTS = ("__arrow_c_schema__", "__arrow_c_stream__", "as_arrow")
_SCHEMA = its.Form(
    "a Schema, names with their types, its JSON, or a schema of Arrow, pandas, Polars or PyIceberg",
    lambda value: (
        isinstance(value, Mapping)
        or type(value).__module__.startswith("ledger.")
        or any(hasattr(value, each) for each in _EXPORTS)
    ),
)


_ERASABLE = "authors, messages and properties are kept outside of the lines"


def _tell_readers(table: Table) -> None:
    """Tell what some readers will get wrong of a new table, where anybody listens."""
    if is_heard():
        from ledger.plan import birth_warnings

        for said in birth_warnings(table.at(version=0).state):
            name = str(table.identifier)
            tell("ledger.ledger", "readers_get_it_wrong", table=name, says=said)


def _tell_nobody(_what: str, _done: int, _of: int) -> None:
    """Say nothing."""


def default_author() -> str:
    """Return who commits when nobody says: `user@host`."""
    try:
        return f"{getpass.getuser()}@{platform.node()}"
    except (KeyError, OSError):
        return f"unknown@{platform.node()}"


@takes(
    url=PLACE,
    storage_options=its.mapping.or_none(),
    author=its.text.or_none(),
    clock=its.callback,
    allowed_locations=its.names.or_none(),
    trust=its.one_of("all", "log"),
)
def open(  # noqa: A001 - `ledger.open(url)` is what reads well
    url: str | PurePath,
    storage_options: Mapping[str, Any] | None = None,
    *,
    author: str | None = None,
    clock: NowMillis = now_millis,
    allowed_locations: Sequence[str] | None = None,
    trust: Trust = "all",
) -> Ledger:
    """Open the ledger at a URL; one that is not there yet begins with its first commit.

    Args:
        url: A folder, `file:///folder`, `memory://name`, `s3://bucket/path`, `gs://bucket/path`
            or `abfs://container@account.dfs.core.windows.net/path`.
        storage_options: What fsspec takes for that URL; delta-rs's names are understood, too.
        author: Who commits when a call does not say; `user@host` when None.
        clock: Unix time in milliseconds.
        allowed_locations: Folders elsewhere that data files may be read from: those on another
            kind of storage than the ledger are refused, since a log may name any. None: those in
            the environment's LAKELEDGER_ALLOWED_LOCATIONS, parted by semicolons.
        trust: "log" reads no cache, however well it fits the log: all is folded from its first
            commit on, and is as slow as that.

    Raises:
        InvalidInputError: An allowed location is relative.
        StoreError: The place cannot hold a ledger; the message says why and what can.
        UpgradeRequiredError: A newer lakeledger wrote it.

    Example:
        >>> from ledger import Schema
        >>> lake = open("memory://example")
        >>> _ = lake.create_database("shop")
        >>> orders = lake.create_table("shop.orders", Schema.of({"id": "BIGINT"}))
        >>> orders.at().schema.names
        ('id',)
    """
    url = str(url)
    setting = TableSetting(
        store=trusting(open_store(url, storage_options), trust),
        storage_options=client_options(url, storage_options),
        author=author or default_author(),
        now_millis=clock,
        allowed=_places(allowed_locations),
        trust=trust,
    )
    return Ledger(setting)


def _places(given: Sequence[str] | None) -> tuple[Place, ...]:
    """Return the places that a caller or the environment allows."""
    if isinstance(given, str):
        raise InvalidInputError(f"allowed_locations takes a list of places, not {given!r} alone")
    if given is None:
        given = os.environ.get("LAKELEDGER_ALLOWED_LOCATIONS", "").split(";")
    return tuple(place_of(each.strip()) for each in given if each.strip())


class Ledger:
    """A catalog stream and the tables that it names; open one with `ledger.open`.

    In the examples, `lake` is one in memory with the table `shop.orders`, whose handle is `orders`.
    """

    def __init__(self, setting: TableSetting) -> None:
        self._setting = setting
        self.log = catalog_stream(setting.store)
        self._appender: Appender[CatalogState, CatalogEvent] = Appender(
            self.log, setting.now_millis, setting.patience
        )
        self._root_id = read_root(self._setting)
        setting.houses.read_by(self.log)

    def __reduce__(self) -> tuple[Any, ...]:
        # Elsewhere it is opened anew: threads and what was read stay here.
        return type(self), (self._setting,)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.url!r})"

    def _repr_html_(self) -> str:
        rows = [(each.database, each.name) for each in sorted(self.state.tables, key=str)]
        return html_table(("database", "table"), rows, caption=self.url)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @takes(timeout_s=its.seconds.or_none())
    def close(self, timeout_s: float | None = None) -> bool:
        """Wait until the files of all formats that follow this process's commits are there.

        A process that ends waits at most ten seconds for them; whoever wants to be sure closes.
        What it keeps beside the log, to read it faster, is waited for, too, ten seconds at most:
        whoever removes or copies the place afterwards meets nobody at work there.

        Args:
            timeout_s: Give up after so many seconds; None: not at all.

        Returns:
            Whether they are there, or could not be made, which `Table.freshness` tells.

        Example:
            >>> lake.close(timeout_s=10)
            True
        """
        from ledger.following.files import wait

        begun_s = time.monotonic()
        patience_s = math.inf if timeout_s is None else timeout_s
        are_there = wait(self.url, patience_s)
        left_s = patience_s - (time.monotonic() - begun_s)
        wait_for_caches(self.url, min(left_s, EXIT_WAITS_S))
        return are_there

    @property
    def url(self) -> str:
        """The root's canonical URL.

        Example:
            >>> lake.url.startswith("memory://")
            True
        """
        return self._setting.store.url

    def refuse_lost_root(self) -> None:
        """Refuse a place whose root file is gone while its log is there.

        Raises:
            DamagedLogError: It is such a place.

        Example:
            >>> lake.refuse_lost_root()
        """
        if self._root_id is None and self._setting.store.exists(self.log.layout.commit(0)):
            # Whoever began the log wrote the root before.
            self._root_id = read_root(self._setting)
            if self._root_id is None:
                raise DamagedLogError(
                    f"{self.url} has a catalog's log, but {ROOT_KEY} is missing, and a new one "
                    "would give the ledger another identity. Restore the file from a backup, or "
                    "finish the import that was broken off here; nothing was written",
                    ROOT_KEY,
                )

    @takes(erasable=its.switch)
    def init(self, *, erasable: bool = False) -> str:
        """Write the root's file if it is not there; return the ledger's id.

        Args:
            erasable: Whether authors, messages and properties of all commits, and values of columns
                that tables mark as personal, are kept outside of the log's lines, so that `erase`
                can take them away. A ledger is created with it, or never has it.

        Raises:
            InvalidInputError: The ledger has commits already, and is not erasable.
            DamagedLogError: It is not there, but a log is: that is no empty place.
            StoreError: The place cannot hold a ledger, or did not answer; no commit was written.

        Example:
            >>> ledger.open("memory://begun").init() == ledger.open("memory://begun").ledger_id
            True
        """
        self.refuse_lost_root()
        if self._root_id is None:
            begin_root(self._setting)
            self._root_id = read_root(self._setting)
        if erasable and not self.is_erasable:
            self._begin_erasable()
        return self._root_id or ""

    @takes(erasable=its.switch)
    def upgrade(self, *, erasable: bool) -> None:
        """Make a ledger erasable that has no commits yet; the same as `init(erasable=...)`.

        Args:
            erasable: As of `init`.

        Raises:
            InvalidInputError: The ledger has commits already, and is not erasable.

        Example:
            >>> fresh = ledger.open("memory://fresh")
            >>> fresh.upgrade(erasable=True)
            >>> fresh.is_erasable
            True
        """
        self.init(erasable=erasable)

    def _begin_erasable(self) -> None:
        """Write the first commit, which says that texts are kept outside of the lines."""
        if self.state.version >= 0:
            raise InvalidInputError(
                f"{self.url} has commits already, which keep authors and messages in their lines; "
                "only a new ledger can be made erasable. Create one at another place: lakeledger "
                "init --erasable"
            )
        request = self._request(["Erasable"], {"message": _ERASABLE})
        self._commit(lambda: None, outside(request))

    @property
    def is_begun(self) -> bool:
        """Whether a ledger is there.

        Example:
            >>> lake.is_begun, ledger.open("memory://nothing").is_begun
            (True, False)
        """
        return self._root_id is not None

    @property
    def ledger_id(self) -> str | None:
        """The ledger's id, which a copy's root or catalog says; None where no ledger is yet.

        Example:
            >>> lake.ledger_id == lake.init()
            True
        """
        return None if self._root_id is None else self.state.ledger_id or self._root_id

    @property
    def is_erasable(self) -> bool:
        """Whether authors, messages and properties are kept so that they can be erased.

        Example:
            >>> lake.is_erasable
            False
        """
        return self.state.keeps_outside

    @property
    def state(self) -> CatalogState:
        """The newest state, after reading what others appended since the last look.

        Example:
            >>> lake.state.version
            1
        """
        state = self.log.refresh() or EMPTY_CATALOG
        self._setting.whereabouts.learn(state)
        return state

    @takes(first=its.whole)
    def events(self, first: int = 0) -> Iterator[Commit[CatalogEvent]]:
        """Yield the catalog's commits from `first` on.

        Example:
            >>> [type(each.transactions[0].events[0]).__name__ for each in lake.events()]
            ['DatabaseCreated', 'TableCreated']
        """
        commits = (read.commit for read in self.log.commits(first, self.state.version))
        return self.log.personal.each_told(commits)

    @takes(commit_id=its.text)
    def find_commit(self, commit_id: str) -> Commit[CatalogEvent] | None:
        """Return the catalog's commit that holds what was asked under an id; see `Table`'s.

        Example:
            >>> _ = lake.create_database("audit", commit_id="monday")
            >>> lake.find_commit("monday").version, lake.find_commit("tuesday")
            (2, None)
        """
        return find_commit(self.log, commit_id)

    @takes(commit_id=its.text, on_progress=its.callback)
    def find_everywhere(self, commit_id: str, on_progress: Progress = no_progress) -> Sightings:
        """Return what was asked under an id of the catalog or of any table, dropped ones included.

        For one who does not know which table it was, or what that is called by now.

        Args:
            commit_id: The id.
            on_progress: Told how many logs were looked through, of how many.

        Example:
            >>> _ = lake.table("shop.orders").delete_tag("v1", commit_id="monday")
            >>> _ = lake.drop_table("shop.orders")
            >>> [(each.label, each.version) for each in lake.find_everywhere("monday").entries]
            [('shop.orders (dropped)', 3)]
        """
        from ledger.audit.listings import Searched, sightings

        births = self._births()
        tables = [
            Searched(str(each.identifier), partial(self._log_at, each), each.is_dropped)
            for each in births
        ]
        catalog = Searched("", lambda: self.log)
        return sightings(commit_id, [catalog, *tables], on_progress)

    @takes(commit_id=its.text.or_none())
    def landed_before(self, commit_id: str | None, asked: Any) -> Appended[CatalogState] | None:
        """Return what was asked of the catalog in these words under an id; see `Table`'s.

        Example:
            >>> _ = lake.create_database("audit", commit_id="monday", asked=["a place for audits"])
            >>> lake.landed_before("monday", ["a place for audits"]).version
            2
        """
        options: CommitOptions = {} if commit_id is None else {"commit_id": commit_id}
        return self._appender.landings.of_words(self._request(asked, options))

    def report(self) -> str:
        """Return an audit page of all tables: one HTML file that needs no network, no script.

        Raises:
            MissingDependencyError: jinja2 is not installed (the extra `report`).

        Example:
            >>> "shop.orders" in lake.report()
            True
        """
        from ledger.audit.report import ledger_page

        names = [f"{each}.{name}" for each in self.databases() for name in self.tables(each)]
        tables = {name: self.table(name) for name in names}
        named = self.log.personal.named
        states = [(name, named(each.state)) for name, each in tables.items()]
        newest = max([self.state.time_millis, *(each.time_millis for _, each in states)])
        return ledger_page(self.url, self.entries(), states, moment(newest))

    @takes(database=its.text.or_none(), **WANTED_ENTRIES)
    def entries(self, database: str | None = None, **wanted: Any) -> Iterator[Entry]:
        """Yield the transactions of the catalog and of every table, newest first.

        Tables that were dropped are there, too, as long as their logs are.

        Args:
            database: Of the tables of one database alone; None for all, and the catalog's.
            wanted: As for `Table.entries`, but for the column.

        Example:
            >>> [(each.table, each.version) for each in lake.entries()][-2:]
            [('shop.orders', 0), ('', 0)]
        """
        from ledger.audit.entries import wanted_of
        from ledger.audit.listings import whole_log

        if database is not None:
            self.state.database(database)
        self.log.refresh()
        return whole_log(self.log, self._log_of, database, wanted_of(**wanted))

    def _log_of(self, past: PastTable) -> TableLog | None:
        """Return the stream of a table that there is or was; None where a dropped one left none."""
        if past.dropped_millis is None:
            # Somebody may drop it meanwhile.
            with suppress(NotFoundError):
                return self.table(str(past.identifier)).log
            return None
        log = Table(past.identifier, past.path, self._setting).log
        # Who dropped a table may have taken its folder away, or dropped it since it was damaged.
        with suppress(LedgerError, OSError):
            state = log.refresh()
            return log if state is not None and state.table_id == past.table_id else None
        return None

    def history(self, database: str | None = None, **wanted: Any) -> Rows:
        """Return the log of the catalog and of every table as rows, one an event, newest first.

        Args:
            database: As for `entries`.
            wanted: As for `entries`.

        Example:
            >>> [row["kind"] for row in lake.history()][:2]
            ['createTag', 'commitSnapshot']
        """
        from ledger.audit.views import history

        return history(lambda: self.entries(database, **wanted))

    def databases(self) -> list[str]:
        """Return the names of all databases, sorted.

        Example:
            >>> lake.databases()
            ['shop']
        """
        return sorted(self.state.databases)

    @takes(name=its.text, options=its.texts.or_none())
    def create_database(
        self, name: str, options: Mapping[str, str] | None = None, **commit: Unpack[CommitOptions]
    ) -> Appended[CatalogState]:
        """Create a database.

        Raises:
            AlreadyExistsError: There is one of that name.
            InvalidNameError: The name would not be safe as a path.

        Example:
            >>> lake.create_database("audit", {"owner": "ann"}, author="ann").version
            2
        """
        from ledger.decide.catalog import CreateDatabase

        return self._ask(CreateDatabase(name, options or {}), commit)

    @takes(name=its.text, removals=its.names, updates=its.texts.or_none())
    def alter_database(
        self,
        name: str,
        *,
        removals: Sequence[str] = (),
        updates: Mapping[str, str] | None = None,
        **commit: Unpack[CommitOptions],
    ) -> Appended[CatalogState]:
        """Remove and set options of a database.

        Example:
            >>> _ = lake.alter_database("shop", updates={"owner": "bob"})
            >>> dict(lake.state.database("shop").options)
            {'owner': 'bob'}
        """
        from ledger.decide.catalog import AlterDatabase

        return self._ask(AlterDatabase(name, tuple(removals), updates or {}), commit)

    @takes(name=its.text)
    def drop_database(self, name: str, **commit: Unpack[CommitOptions]) -> Appended[CatalogState]:
        """Drop an empty database.

        Example:
            >>> _ = lake.create_database("audit")
            >>> _ = lake.drop_database("audit")
            >>> lake.databases()
            ['shop']
        """
        from ledger.decide.catalog import DropDatabase

        return self._ask(DropDatabase(name), commit)

    @takes(database=its.text.or_none())
    def tables(self, database: str | None = None) -> list[str]:
        """Return tables' names, sorted.

        Args:
            database: Whose; None for those of all, as `database.table`.

        Raises:
            NotFoundError: The database does not exist.

        Example:
            >>> lake.tables(), lake.tables("shop")
            (['shop.orders'], ['orders'])
        """
        state = self.state
        if database is None:
            return sorted(map(str, state.tables))
        state.database(database)
        return sorted(each.name for each in state.tables if each.database == database)

    @takes(
        schema=_SCHEMA,
        location=its.text.or_none(),
        field_id_policy=its.one_of("paimon", "iceberg").or_none(),
        partition_spec=its.many("a sequence of partition fields").or_none(),
        sort_order=its.many("a sequence of sort columns").or_none(),
    )
    def create_table(
        self,
        identifier: str | Identifier,
        schema: GivenSchema,
        *,
        location: str | None = None,
        field_id_policy: FieldIdPolicy | None = None,
        partition_spec: Sequence[AddPartitionField | Term] | None = None,
        sort_order: Sequence[SortColumn | Term] | None = None,
        **commit: Unpack[CommitOptions],
    ) -> Table:
        """Create a table and return its handle.

        Args:
            identifier: `database.table`.
            schema: Its first schema, checked and completed as Paimon does: a Schema, names with
                their types, its JSON as the DLF metadata API has it, or a schema or frame of
                Arrow, pandas, Polars or PyIceberg (its columns get new ids).
            location: An absolute folder for an external table; None for one under the root.
            field_id_policy: Who counts field ids, now and ever after: "paimon", or "iceberg", which
                numbers everything from 1 unless the schema has Iceberg's ids already. None: as
                the schema says, which is Paimon unless it came from an Iceberg table.
            partition_spec: How files are laid out at first; None: by the partition keys.
            sort_order: How rows are ordered inside files at first; None: not at all.
            commit: See CommitOptions.

        Raises:
            AlreadyExistsError: There is a table or view of that name.
            NotFoundError: The database does not exist.
            InvalidChangeError: The schema, the spec or the order breaks a rule; a FormatError
                where one of the table's formats cannot express it. Or the location meets the
                ledger's root or another table's, or holds a log already.
            StoreError: The location cannot hold a table; nothing was committed.

        Example:
            >>> visits = lake.create_table("shop.visits", {"day": "DATE", "city": "STRING"})
            >>> visits.at().schema.names
            ('day', 'city')
        """
        from ledger.decide.catalog import CreateTable
        from ledger.opening.creation import as_schema, born

        name = Identifier.parse(identifier)
        wanted = born(
            as_schema(schema),
            field_id_policy=field_id_policy,
            partition_spec=partition_spec,
            sort_order=sort_order,
        )

        def make() -> CatalogRequest:
            if location is not None:
                refuse_location(location, self.state, self._setting)
            if name in self.state.tables:
                # Opening finishes a drop that was left half done; the name is free then.
                with suppress(NotFoundError):
                    self.table(name)
            return CreateTable(name, fresh_id(), wanted.schema, location, **wanted.rest())

        asked = ["CreateTable", str(name), wanted.schema, location, *wanted.rest().items()]
        request = self._request(asked, commit)
        with noting(request):
            table = self._create(make, request, name)
            _tell_readers(table)
            return table

    @takes(
        source=its.text,
        format_name=its.text,
        storage_options=its.by_name.or_none(),
        on_progress=its.callback.or_none(),
    )
    def import_table(
        self,
        identifier: str | Identifier,
        source: str,
        *,
        format_name: str = DEFAULT_SOURCE,
        storage_options: Mapping[str, Any] | None = None,
        on_progress: Callable[[int, int], None] | None = None,
    ) -> Any:
        """Take over the history of a table that others own, or what is new in it since.

        Every schema, layout, snapshot, branch, tag, property and log entry becomes an event, in
        its order and at its own time; ids stay. Nothing is written at the source, and the table
        takes no commits of the ledger's own.

        Args:
            identifier: `database.table` in this ledger; the database is created if need be.
            source: Where it is: for Iceberg a metadata file, a table's folder, or
                `CATALOG:NAMESPACE.TABLE` of a catalog that PyIceberg is configured for.
            format_name: Whose table it is.
            storage_options: What fsspec takes for the source's files; the ledger's when None.
            on_progress: Told how many transactions of how many have landed.

        Raises:
            AlreadyExistsError: There is another table of that name.
            UnsupportedError: The ledger cannot hold something; nothing was written.
            InvalidInputError: The source is no such table.

        Example:
            >>> lake.import_table("shop.visits", theirs, format_name="delta").transactions
            1
            >>> lake.import_table("shop.visits", theirs, format_name="delta").transactions
            0
        """
        return self._importer(format_name).run(
            self,
            Identifier.parse(identifier),
            source,
            now_millis=self._setting.now_millis(),
            access=self._access(source, storage_options),
            on_progress=on_progress,
        )

    @takes(source=its.text, format_name=its.text, storage_options=its.by_name.or_none())
    def plan_import(
        self,
        identifier: str | Identifier,
        source: str,
        *,
        format_name: str = DEFAULT_SOURCE,
        storage_options: Mapping[str, Any] | None = None,
    ) -> Any:
        """Return what `import_table` would bring, or raise what it would; nothing is written.

        Example:
            >>> planned = lake.plan_import("shop.visits", theirs, format_name="delta")
            >>> planned.is_new, planned.snapshots, lake.tables()
            (True, (1,), ['shop.orders'])
        """
        return self._importer(format_name).plan(
            self,
            Identifier.parse(identifier),
            source,
            now_millis=self._setting.now_millis(),
            access=self._access(source, storage_options),
        )

    @takes(
        source=its.text.or_none(),
        protocol=PROTOCOL.or_none(),
        storage_options=its.by_name.or_none(),
    )
    def promote(
        self,
        identifier: str | Identifier,
        *,
        source: str | None = None,
        protocol: ServingProtocol | None = None,
        dry_run: bool = False,
        storage_options: Mapping[str, Any] | None = None,
        on_progress: Callable[[int, int], None] | None = None,
        **options: Unpack[CommitOptions],
    ) -> Any:
        """Own a table from now on that others owned, and that followed them until now.

        What is new at the source is taken over first. Where the source is a table of one of
        PyIceberg's SQL catalogs, its pointer is swapped to the ledger's files; a Delta log gets
        one more version, which keeps other writers out; both on the condition that nobody
        committed meanwhile. Elsewhere the result says what its owner has to do. From then on the
        table takes commits, and lists its older files itself. Asked again, an interrupted
        promotion is ended, and a catalog's pointer follows to the newest version.

        Args:
            identifier: The table in this ledger.
            source: Where its source is, if it is found otherwise than when it was imported.
            protocol: Promote the table for engines, which commit its data through this protocol
                from then on (see `Table.start_serving`): the ledger does not list its older files.
            dry_run: What `plan_promotion` does; it goes with the next release.
            storage_options: What fsspec takes for the source's files; the ledger's when None.
            on_progress: Told how many transactions of how many have landed.
            options: See CommitOptions; of the commit that promotes the table.

        Raises:
            InvalidInputError: The table follows nobody, or its source does not stand still.
            InvalidChangeError: Engines commit to it already, or cannot through the protocol.
            UnsupportedError: The ledger cannot own it; nothing was written.

        Example:
            >>> _ = lake.import_table("shop.visits", theirs, format_name="delta")
            >>> lake.promote("shop.visits", source=theirs).files
            1
            >>> lake.table("shop.visits").create_tag("v1").version
            4
        """
        if dry_run:
            said = "promote(dry_run=True) goes with the next release; call plan_promotion()"
            warnings.warn(said, DeprecationWarning, stacklevel=3)
            return self.plan_promotion(
                identifier, source=source, protocol=protocol, storage_options=storage_options
            )
        asked = Identifier.parse(identifier)
        return self._promoter(asked).run(
            self,
            asked,
            source=source,
            protocol=protocol,
            now_millis=self._setting.now_millis,
            access=self._access(source, storage_options),
            on_progress=on_progress or (lambda _done, _of: None),
            commit=options,
        )

    def _promoter(self, name: Identifier) -> Any:
        """Return what lets the ledger own a table that was born elsewhere."""
        from ledger.formats import part

        return part(self.table(name).state.origin.import_format(name), "promoter")

    @takes(
        source=its.text.or_none(),
        protocol=PROTOCOL.or_none(),
        storage_options=its.by_name.or_none(),
    )
    def plan_promotion(
        self,
        identifier: str | Identifier,
        *,
        source: str | None = None,
        protocol: ServingProtocol | None = None,
        storage_options: Mapping[str, Any] | None = None,
    ) -> Any:
        """Return what `promote` would do, or raise what it would; nothing is written.

        Example:
            >>> _ = lake.import_table("shop.visits", theirs, format_name="delta")
            >>> planned = lake.plan_promotion("shop.visits", source=theirs)
            >>> planned.files, planned.version
            (1, None)
        """
        asked = Identifier.parse(identifier)
        return self._promoter(asked).plan(
            self,
            asked,
            source=source,
            protocol=protocol,
            now_millis=self._setting.now_millis(),
            access=self._access(source, storage_options),
        )

    @takes(
        source=its.text,
        database=its.text.or_none(),
        format_name=its.text,
        storage_options=its.by_name.or_none(),
    )
    def import_tables(
        self,
        source: str,
        *,
        database: str | None = None,
        format_name: str = DEFAULT_SOURCE,
        storage_options: Mapping[str, Any] | None = None,
    ) -> list[Any]:
        """Take over every table that there is in a folder or a catalog, or what is new in each.

        One that cannot come in does not stop the others: its place in the result says why, as
        `error`.

        Args:
            source: A folder of tables, or of folders of tables; for Iceberg `CATALOG:` or
                `CATALOG:NAMESPACE`, too.
            database: Where they go in this ledger; None: where their source has them.
            format_name: Whose tables they are.
            storage_options: As for `import_table`.

        Raises:
            NotFoundError: There are no such tables.
            StoreError: The folder or the catalog cannot be asked.

        Example:
            >>> from pathlib import Path
            >>> (come,) = lake.import_tables(str(Path(theirs).parent), format_name="delta")
            >>> str(come.identifier), come.transactions
            ('web.visits', 1)
        """
        return list(
            self._importer(format_name).run_all(
                self,
                source,
                database=database,
                access=self._access(source, storage_options),
                now_millis=self._setting.now_millis,
            )
        )

    @takes(
        source=its.text,
        database=its.text.or_none(),
        format_name=its.text,
        storage_options=its.by_name.or_none(),
    )
    def tables_to_import(
        self,
        source: str,
        *,
        database: str | None = None,
        format_name: str = DEFAULT_SOURCE,
        storage_options: Mapping[str, Any] | None = None,
    ) -> dict[str, str]:
        """Return where each table is that `import_tables` would take, by its name in this ledger.

        The arguments and errors are those of `import_tables`; nothing is written.

        Example:
            >>> from pathlib import Path
            >>> found = lake.tables_to_import(str(Path(theirs).parent), format_name="delta")
            >>> found == {"web.visits": theirs}
            True
        """
        found = self._importer(format_name).tables(source, self._access(source, storage_options))
        return {each.called(database): each.source for each in found}

    def _importer(self, format_name: str) -> Any:
        from ledger.formats import part

        return part(format_name, "importer")

    def _access(self, source: str | None, options: Mapping[str, Any] | None) -> FileAccess:
        """Return the permission to open a source's files: below the allowed locations alone.

        What the user named as the source is added by the reader that knows its folder.
        """
        setting = self._setting
        home = setting.file_access().home
        if options is None:
            return FileAccess(home, setting.storage_options, folders=setting.allowed)
        at = home if source is None else endpoint_of(source, options)
        return FileAccess(at, options, folders=setting.allowed)

    @takes(birth=_BIRTH)
    def adopt_table(
        self,
        identifier: str | Identifier,
        birth: Mapping[str, Any],
        **commit: Unpack[CommitOptions],
    ) -> Table:
        """Create a table that was born elsewhere; for those who then bring its history.

        Args:
            identifier: `database.table`.
            birth: `schema`, `field_id_policy`, `origin`, `partition_spec` and
                `sort_order`, as `TableCreated` has them.
            commit: See CommitOptions.

        Raises:
            AlreadyExistsError: There is a table or view of that name.
            InvalidInputError: The birth says what no log may hold.

        Example:
            >>> from ledger.events.imported import DeltaBirth
            >>> from ledger.state.schema_record import schema_record
            >>> birth = {
            ...     "schema": schema_record(orders.state.schema),
            ...     "field_id_policy": "paimon",
            ...     "origin": DeltaBirth(source="/web/visits", table_id="8c9d"),
            ... }
            >>> lake.adopt_table("shop.visits", birth).state.origin.source
            '/web/visits'
        """
        from ledger.decide.catalog import CreateDatabase, CreateTable
        from ledger.decide.recorded_values import check_said, parts_of_birth

        name = Identifier.parse(identifier)
        check_said(parts_of_birth(birth), f"the birth of {name}")

        def make() -> CatalogRequest:
            return CreateTable(name, fresh_id(), **birth)

        request = self._request(["AdoptTable", str(name), birth], commit)
        self.init()
        if name.database not in self.state.databases:
            database = CreateDatabase(name.database, if_not_exists=True)
            try:
                self._ask(database, {"commit_id": f"{request.commit_id}-database"})
            except CommitUnknownError as error:
                # The whole is asked for again, by an id that finds it.
                key = self.log.layout.commit(error.version)
                raise unknown(key, error.version, request.commit_id, error) from error
        with noting(request):
            return self._create(make, request, name)

    def _create(
        self, make: Callable[[], CatalogRequest], request: Request, name: Identifier
    ) -> Table:
        """Create a table and open it."""
        version = self._commit(make, request).version
        return self._after(request, version, lambda: self._created_in(version, name))

    def _created_in(self, version: int, name: Identifier) -> Table:
        """Open the table of that name which a catalog commit created."""
        table_id = next(
            event.table_id
            for event in self._events_of(version)
            if isinstance(event, TableCreated) and identifier_of(event.identifier) == name
        )
        entry = self.state.table_by_id(table_id)
        with suppress(TableDroppedError):
            if entry is not None:
                return self._open(entry, begin=self._begin_anywhere)
        raise TableDroppedError(f"table {name} was created and dropped since; create it anew")

    def table(self, identifier: str | Identifier) -> Table:
        """Return a table's handle.

        Raises:
            NotFoundError: It does not exist; the message names similar ones.

        Example:
            >>> lake.table("shop.orders").at().schema.names
            ('id', 'addr')
        """
        name = Identifier.parse(identifier)
        try:
            return self._open(self.state.table(name))
        except TableDroppedError:
            # The drop was half done: it is finished now, and the name is free again.
            return self._open(self.state.table(name))

    def _open(
        self, entry: TableEntry, begin: Callable[[TableEntry, Table], None] | None = None
    ) -> Table:
        table = Table(entry.identifier, entry.path, self._setting)
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

            finish_drop(self._appender, table.log, entry)
            raise TableDroppedError(f"table {entry.identifier} was dropped")
        return table

    def _begin_inside(self, entry: TableEntry, table: Table) -> None:
        """Write a missing version 0 below the ledger's root; see `_begin_anywhere`.

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

        bear(self.log, entry, table.log, self._setting.patience)

    def _begin_anywhere(self, entry: TableEntry, table: Table) -> None:
        """Write a missing version 0, for the call that creates the table.

        Raises:
            DamagedLogError: It was there once.
        """
        self._refuse_lost(entry, table)
        from ledger.opening.creation import bear

        bear(self.log, entry, table.log, self._setting.patience)

    def _refuse_lost(self, entry: TableEntry, table: Table) -> None:
        from ledger.opening.creation import was_born

        # The note of a birth comes after the birth, which may be somebody's right now.
        if was_born(self.log, entry.table_id) and table.log.refresh() is None:
            raise DamagedLogError(
                f"the log of table {entry.identifier} was at {table.location} and is missing: "
                "restore the folder from a backup, or drop the table; nothing was written",
                table.log.layout.commit(0),
            )

    def rename_table(
        self,
        source: str | Identifier,
        destination: str | Identifier,
        **commit: Unpack[CommitOptions],
    ) -> Appended[CatalogState]:
        """Give a table another name; its files stay where they are.

        Example:
            >>> _ = lake.rename_table("shop.orders", "shop.sales")
            >>> lake.tables()
            ['shop.sales']
        """
        from ledger.decide.catalog import RenameTable

        names = Identifier.parse(source), Identifier.parse(destination)
        return self._ask(RenameTable(*names), commit)

    def drop_table(
        self, identifier: str | Identifier, **commit: Unpack[CommitOptions]
    ) -> Appended[CatalogState]:
        """Drop a table: its stream is sealed, then the catalog forgets the name.

        No file is deleted, and the location is never given out again. A table that cannot be
        opened, since its log is damaged or lost or its place is no store, is forgotten unsealed.

        Example:
            >>> _ = lake.drop_table("shop.orders")
            >>> lake.tables()
            []
        """
        from ledger.opening.creation import drop_asked

        name = Identifier.parse(identifier)
        options: CommitOptions = {**commit}
        # Whoever meets the sealed stream ends it in the words that a drop always has.
        options.pop("asked", None)
        options.setdefault("commit_id", fresh_id())
        asked = drop_asked(name)
        request = self._request(asked, options)
        landed = self._appender.landings.before(request)
        if landed is None and "commit_id" in commit:
            self._finish_drop_of_renamed(name, options["commit_id"])
            landed = self._appender.landings.before(request)
        if landed is not None:
            return landed
        try:
            table = self.table(name)
        except NotFoundError:
            # Looking may have finished this very drop, sealed by an earlier attempt.
            landed = self._appender.landings.before(request)
            if landed is None:
                raise
            return landed
        except (DamagedLogError, StoreError, PermissionError):
            from ledger.decide.catalog import DropTable

            gone = self.state.table(name)
            return self._commit(lambda: DropTable(name, gone.table_id), request)
        entry = self.state.table_by_id(table.state.table_id)
        self._refuse_drop(entry, request)
        # The table's version is expected of the table's stream; the catalog has its own.
        request = replace(request, expect_version=None)
        request.fate.is_sent = True
        with noting(request):
            sealed = table.seal(**options)
            done = self._after(request, sealed.version, lambda: self._forget(table, entry, request))
            # The catalog's commit bears the seal's id, so that it alone looks as if it had been
            # there.
            return evolve(done, repeated=sealed.repeated)

    def _finish_drop_of_renamed(self, name: Identifier, commit_id: str) -> None:
        """Finish the drop that an id sealed already, of a table that has another name by now.

        Another table may have the name since, and is not what was to be dropped.
        """
        from ledger.opening.creation import finish_drop, may_be_renamed

        for entry in [*self.state.tables.values()]:
            if entry.identifier == name or not may_be_renamed(entry):
                continue
            log = Table(entry.identifier, entry.path, self._setting).log
            with suppress(LedgerError, OSError):
                state = log.refresh()
                if state is not None and state.dropped and [*log.with_id(commit_id)]:
                    finish_drop(self._appender, log, entry)

    def _refuse_drop(self, entry: TableEntry | None, request: Request) -> None:
        """Refuse by the database's rules before the table is sealed.

        Raises:
            FormatError: A rule does not allow it.
        """
        from ledger.decide.commit_policies import refuse_in_catalog

        if entry is not None:
            named = entry.identifier
            name = TableName(database_name=named.database, table_name=named.name)
            fact = TableDropped(identifier=name, table_id=entry.table_id)
            options = {name: each.options for name, each in self.state.databases.items()}
            refuse_in_catalog(options, [fact], self._asker(request))

    def _forget(
        self, table: Table, entry: TableEntry | None, request: Request
    ) -> Appended[CatalogState]:
        """Let the catalog forget a table that was sealed, and record that this was asked."""
        if entry is not None:
            from ledger.opening.creation import finish_drop

            # In the name of whoever sealed it, who may have died since.
            finish_drop(self._appender, table.log, entry)
        return self._commit(lambda: None, request)

    @takes(database=its.text)
    def views(self, database: str) -> list[str]:
        """Return the names of a database's views, sorted.

        Example:
            >>> lake.views("shop")
            []
        """
        state = self.state
        state.database(database)
        return sorted(each.name for each in state.views if each.database == database)

    def view(self, identifier: str | Identifier) -> ViewEntry:
        """Return a view.

        Raises:
            NotFoundError: It does not exist; the message names similar ones.

        Example:
            >>> from ledger import Schema, ViewSchema
            >>> columns = Schema.of({"id": "BIGINT"}).fields
            >>> _ = lake.create_view("shop.ids", ViewSchema(columns, "SELECT id FROM orders"))
            >>> lake.view("shop.ids").schema.query
            'SELECT id FROM orders'
        """
        entry = self.state.view(Identifier.parse(identifier))
        return evolve(entry, audit=self.log.personal.named(entry.audit))

    @takes(schema=its.a("a ViewSchema", ViewSchema))
    def create_view(
        self, identifier: str | Identifier, schema: ViewSchema, **commit: Unpack[CommitOptions]
    ) -> ViewEntry:
        """Create a view and return it.

        Example:
            >>> from ledger import Schema, ViewSchema
            >>> columns = Schema.of({"id": "BIGINT"}).fields
            >>> _ = lake.create_view("shop.ids", ViewSchema(columns, "SELECT id FROM orders"))
            >>> lake.views("shop")
            ['ids']
        """
        from ledger.decide.catalog import CreateView

        name = Identifier.parse(identifier)
        asked = ["CreateView", str(name), repr(schema)]
        request = self._request(asked, commit)
        with noting(request):
            done = self._commit(lambda: CreateView(name, fresh_id(), schema), request)
            view = self._after(request, done.version, lambda: self._view_of(done.version, name))
        if view is None:
            raise NotFoundError(f"view {name} was created and dropped since; create it anew")
        return view

    def _view_of(self, version: int, name: Identifier) -> ViewEntry | None:
        """Return the view of that name which a catalog commit created; None once dropped."""
        created = (
            event.view_id
            for event in self._events_of(version)
            if isinstance(event, ViewCreated) and identifier_of(event.identifier) == name
        )
        return self.state.view_by_id(next(created))

    @takes(changes=its.many("a sequence of changes of a view"))
    def alter_view(
        self,
        identifier: str | Identifier,
        changes: Sequence[ViewChange],
        **commit: Unpack[CommitOptions],
    ) -> Appended[CatalogState]:
        """Change a view's options, comment or dialects.

        Example:
            >>> from ledger import Schema, UpdateComment, ViewSchema
            >>> columns = Schema.of({"id": "BIGINT"}).fields
            >>> _ = lake.create_view("shop.ids", ViewSchema(columns, "SELECT id FROM orders"))
            >>> _ = lake.alter_view("shop.ids", [UpdateComment("all ids")])
            >>> lake.view("shop.ids").schema.comment
            'all ids'
        """
        from ledger.decide.catalog import AlterView

        return self._ask(AlterView(Identifier.parse(identifier), tuple(changes)), commit)

    def rename_view(
        self,
        source: str | Identifier,
        destination: str | Identifier,
        **commit: Unpack[CommitOptions],
    ) -> Appended[CatalogState]:
        """Give a view another name.

        Example:
            >>> from ledger import Schema, ViewSchema
            >>> columns = Schema.of({"id": "BIGINT"}).fields
            >>> _ = lake.create_view("shop.ids", ViewSchema(columns, "SELECT id FROM orders"))
            >>> _ = lake.rename_view("shop.ids", "shop.keys")
            >>> lake.views("shop")
            ['keys']
        """
        from ledger.decide.catalog import RenameView

        names = Identifier.parse(source), Identifier.parse(destination)
        return self._ask(RenameView(*names), commit)

    def drop_view(
        self, identifier: str | Identifier, **commit: Unpack[CommitOptions]
    ) -> Appended[CatalogState]:
        """Drop a view.

        Example:
            >>> from ledger import Schema, ViewSchema
            >>> columns = Schema.of({"id": "BIGINT"}).fields
            >>> _ = lake.create_view("shop.ids", ViewSchema(columns, "SELECT id FROM orders"))
            >>> _ = lake.drop_view("shop.ids")
            >>> lake.views("shop")
            []
        """
        from ledger.decide.catalog import DropView

        return self._ask(DropView(Identifier.parse(identifier)), commit)

    def whereabouts(self) -> Findings:
        """Return where the ledger is said to be, what is tied to another place, and what is there.

        A file of its own is written and removed again, to see whether it shows at both places.

        Example:
            >>> found = lake.whereabouts()
            >>> found.verdict, found.ties
            ('unknown', ())
        """
        from ledger.relocation.moving import found

        return found(self)

    def record_move(
        self, *, rewrites: bool = False, **commit: Unpack[CommitOptions]
    ) -> Appended[CatalogState]:
        """Say that this is the ledger, moved to where it was opened.

        Args:
            rewrites: Write position deletes, and paths of files, anew that name another place.
            commit: See CommitOptions.

        Raises:
            InvalidChangeError: A table names files at another place and cannot be carried; the
                message names each. Nothing is said of the place.

        Example:
            >>> lake.record_move().state.place == lake.url
            True
        """
        from ledger.decide.catalog import MoveLedger
        from ledger.relocation.moving import prepare

        was = self.state.place
        request = self._request(["MoveLedger", self.url], commit)
        prepare(self, self._settled(), rewrites=rewrites)
        return self._commit(lambda: MoveLedger(self.url, was), request)

    def record_alias(self, **commit: Unpack[CommitOptions]) -> Appended[CatalogState]:
        """Say that where the ledger was opened is the storage that it is on, by another way.

        Files go on being named by the place that was recorded.

        Raises:
            InvalidChangeError: What is written here does not show there, or nobody ever said where
                the ledger is.

        Example:
            >>> _ = lake.record_move()
            >>> lake.record_alias().state.aliases  # it was opened where it is said to be
            ()
        """
        from ledger.decide.catalog import AliasLedger
        from ledger.relocation.moving import refuse_other_storage

        was = self.state.place
        request = self._request(["AliasLedger", self.url], commit)
        place = refuse_other_storage(self)
        return self._commit(lambda: AliasLedger(self.url, place, was), request)

    def record_copy(
        self, *, rewrites: bool = False, **commit: Unpack[CommitOptions]
    ) -> Appended[CatalogState]:
        """Say that this is a copy, which goes on beside its original under an id of its own.

        Tables that lie outside of the ledger's folder stay the original's, and leave the copy.

        Args:
            rewrites: As for `record_move`.
            commit: See CommitOptions.

        Raises:
            InvalidChangeError: A table names files at another place and cannot be carried, or what
                is written here shows at the original's place, too.

        Example:
            >>> before = lake.ledger_id
            >>> lake.record_copy().state.copied_from == before != lake.ledger_id
            True
        """
        from ledger.decide.catalog import CopyLedger
        from ledger.relocation.moving import prepare, refuse_same_storage

        request = self._request(["CopyLedger", self.url], commit)
        landed = self._appender.landings.before(request)
        if landed is not None:
            return landed
        was = self.state.place
        refuse_same_storage(self)
        prepare(self, self._settled(), rewrites=rewrites)
        wanted = CopyLedger(self.url, fresh_id(), self.ledger_id or "", was)
        return self._commit(lambda: wanted, request)

    def _settled(self) -> Ledger:
        """Return a handle that may commit wherever the ledger was found."""
        return Ledger(evolve(self._setting, whereabouts=Settled()))

    @property
    def setting(self) -> TableSetting:
        """What the ledger shares with its tables.

        Example:
            >>> lake.setting.store.url == lake.url
            True
        """
        return self._setting

    @takes(
        author=its.text.or_none(),
        text=its.text.or_none(),
        table=its.text.or_none(),
        column=its.text.or_none(),
        on_progress=its.callback.or_none(),
    )
    def plan_erasure(
        self,
        *,
        author: str | None = None,
        text: str | None = None,
        table: str | None = None,
        column: str | None = None,
        value: PartitionValue = None,
        on_progress: ErasureProgress | None = None,
    ) -> Erasure:
        """Return what `erase` would take away, and what it cannot reach; write nothing.

        Example:
            >>> plan = lake.plan_erasure(author="ann")
            >>> plan.values, [(each.stream, each.versions) for each in plan.standing]
            (0, [('catalog', (0, 1)), ('shop.orders', (0, 1, 2))])
        """
        from ledger.history.erasure import Erasure, found, standing

        told = on_progress or _tell_nobody
        sought, streams = self._sought(author, text, table, column, value)
        values, transactions = found(self.log.personal, sought, told)
        return Erasure(values, transactions, tuple(standing(streams, sought, told)))

    @takes(
        author=its.text.or_none(),
        text=its.text.or_none(),
        table=its.text.or_none(),
        column=its.text.or_none(),
        by=its.words.or_none(),
        message=its.words,
        commit_id=its.text.or_none(),
        on_progress=its.callback.or_none(),
    )
    def erase(  # noqa: PLR0913 - whom or what it is about, and what a commit takes
        self,
        *,
        author: str | None = None,
        text: str | None = None,
        table: str | None = None,
        column: str | None = None,
        value: PartitionValue = None,
        by: str | None = None,
        message: str = "",
        commit_id: str | None = None,
        on_progress: ErasureProgress | None = None,
    ) -> Erasure:
        """Take away what is kept of a person, for ever; readers are told `erased` instead.

        Of all streams, those of dropped tables included, or of one column. The catalog records that
        values were erased, when and by whom, and never which. Asking again goes on where an attempt
        was broken off. Lines stay as they are, and so do copies: exports, backups, pages that were
        written.

        Args:
            author: Whose author, messages and properties go; messages and maps of properties of
                others that name the author as a word go, too, and so do values of personal columns.
            text: Every author, message, map of properties and value of a personal column that holds
                it goes.
            table: The table of `column`.
            column: A column that is, or was, personal (option `ledger.personal`): bounds and
                partition values of it go. Files are read where they were left out, and engines find
                NULL where a partition had the value.
            value: Only what is, or may be, this value of the column, under each type that it has
                had; in any spelling of its type now or of an earlier one. None: all of them.
            by: Who erases; the ledger's default author when None. It is not said by somebody who
                is forgotten himself.
            message: Why.
            commit_id: Of the commit that records it; see CommitOptions. What is left to go under
                one that recorded an erasure before is recorded under an id that is made up.
            on_progress: Told what is looked through, how much is done, and of how much.

        Returns:
            What went, and where lines hold the text for ever: older commits, data files' paths.

        Raises:
            InvalidInputError: The ledger keeps nothing outside of its lines, or the message holds
                what is to be erased.

        Example:
            >>> lake = ledger.open("memory://erasable")
            >>> _ = lake.init(erasable=True)
            >>> _ = lake.create_database("audit", author="bob", message="for the year")
            >>> lake.erase(author="bob", by="privacy-desk").values
            2
            >>> [each.author for each in list(lake.events())[-1].transactions]
            ['privacy-desk']
        """
        told = on_progress or _tell_nobody
        self._refuse_unerasable()
        sought, streams = self._sought(author, text, table, column, value)
        options: CommitOptions = {
            "author": sought.eraser(self._setting.author if by is None else by),
            "message": sought.harmless(message),
        }
        if commit_id is not None:
            options["commit_id"] = commit_id
        return self._erased(sought, streams, options, told)

    def _erased(
        self,
        sought: Sought,
        streams: Iterable[tuple[str, StreamLog[Any, Any]]],
        options: CommitOptions,
        told: ErasureProgress,
    ) -> Erasure:
        """Record that values go, then take them away."""
        from ledger.decide.catalog import EraseValues
        from ledger.history.erasure import Erasure, erase, found, standing

        personal = self.log.personal
        # Without the text: a digest of it would let anybody try names.
        words = ["EraseValues", *sought.column_of]
        request = self._request(words, options)
        recorded = landed = self._appender.landings.before(request)
        values, transactions = found(personal, sought, told)
        if values:
            if landed is not None:
                # What its id recorded may have been of somebody else, and what goes is recorded.
                options.pop("commit_id", None)
                request, landed = self._request(words, options), None
            wanted = EraseValues(values, transactions, *sought.column_of)
            recorded = self._commit(lambda: wanted, request)
        # Also where there is nothing: a writer that was killed may have left a draft.
        erase(personal, sought, told)
        unrendered = tuple(self._rendered_anew(sought.folder))
        left = tuple(standing(streams, sought, told))
        version = None if recorded is None else recorded.version
        return Erasure(values, transactions, left, version, unrendered, landed is not None)

    def _sought(
        self,
        author: str | None,
        text: str | None,
        table: str | None,
        column: str | None,
        value: PartitionValue,
    ) -> tuple[Sought, Iterable[tuple[str, StreamLog[Any, Any]]]]:
        """Return what an erasure is about, and the streams whose lines may hold it."""
        from ledger.history.erasure import SoughtPerson, sought_column
        from ledger.history.older import schemas_ever

        if table is None and column is None and value is None:
            return SoughtPerson(author, text), self._streams()
        if table is None or column is None or author is not None or text is not None:
            raise InvalidInputError(
                "an erasure is of one author, of one text, or of a table's column, which table= "
                "and column= name"
            )
        holder = self.table(table)
        field_id = holder.column_id(column)
        sought = sought_column(holder.state, schemas_ever(holder.log), field_id, value)
        return sought, [(str(holder.identifier), holder.log)]

    def _rendered_anew(self, folder: str) -> Iterator[str]:
        """Make files of engines anew that may hold what was erased; yield which cannot be."""
        from ledger.formats import having, part
        from ledger.log.personal_data import folder_of

        for each in self._births():
            own = folder_of(each.table_id)
            if not own.startswith(folder) or next(self._setting.store.walk(own), None) is None:
                continue
            table = Table(each.identifier, each.path, self._setting)
            for name in having("kept"):
                try:
                    kept = part(name, "kept")
                    if kept.has_files(table):
                        kept.render_anew(table)
                except (LedgerError, OSError) as error:
                    yield f"{each.name}, its files of {name}: {error}"

    def _refuse_unerasable(self) -> None:
        if not self.is_erasable:
            raise InvalidInputError(
                "this ledger keeps authors and messages inside of its lines, which never change, "
                "so they cannot be erased; nothing was written. Only a ledger that was created for "
                "it can erase: lakeledger init --erasable"
            )

    def _streams(self) -> Iterator[tuple[str, StreamLog[Any, Any]]]:
        """Yield the log of the catalog and of every table that ever was, by name."""
        yield "catalog", self.log
        for each in self._births():
            yield each.name, self._log_at(each)

    def _births(self) -> list[NamedBirth]:
        """Return every table that ever was."""
        from ledger.history.verifying.surroundings import Births

        head = self.state.version
        return [*Births.of(read.commit for read in self.log.commits(0, head))]

    def _log_at(self, birth: NamedBirth) -> TableLog:
        return Table(birth.identifier, birth.path, self._setting).log

    @takes(true_time=its.moment.or_none())
    def plan_clock_correction(self, true_time: datetime | int | None = None) -> ClockPlan:
        """Return what `correct_clock` would say; nothing is written.

        Example:
            >>> lake.plan_clock_correction()
            Traceback (most recent call last):
            ledger.model.errors.InvalidChangeError: ...
        """
        from ledger.plan import plan_correction

        return plan_correction(self.log, self._setting.now_millis(), true_time)

    @takes(true_time=its.moment.or_none())
    def correct_clock(
        self, true_time: datetime | int | None = None, **commit: Unpack[CommitOptions]
    ) -> Appended[CatalogState]:
        """Say of the catalog what `Table.correct_clock` says of a table, whose times are its own.

        Raises:
            InvalidChangeError: No commit of the catalog is ahead of that time.
            InvalidInputError: It lies in the future.

        Example:
            >>> lake.correct_clock()
            Traceback (most recent call last):
            ledger.model.errors.InvalidChangeError: ...
        """
        from ledger.plan import plan_correction

        now = self._setting.now_millis()
        latest = None if true_time is None else millis(true_time)
        when: CommitOptions = {**commit, "effective_time": now}
        request = self._request(["CorrectClock", latest], when)
        return self._commit(lambda: plan_correction(self.log, now, latest).change, request)

    def _request(self, asked: Any, options: CommitOptions) -> Request:
        return request_of(options, asked=asked, default_author=self._setting.author)

    def _commit(
        self, make: Callable[[], CatalogRequest | None], request: Request
    ) -> Appended[CatalogState]:
        from ledger.decide.catalog import CatalogIntent, CopyLedger
        from ledger.opening.creation import NOTHING

        def land() -> Appended[CatalogState]:
            landed = self._appender.landings.before(request)
            if landed is not None:
                return landed
            self.log.refresh()
            wanted = make()
            if wanted is None:
                return self._appender.append(NOTHING, request)
            # A copy lets tables go that stay the original's: nobody drops them.
            asker = None if isinstance(wanted, CopyLedger) else self._asker(request)
            return self._appender.append(CatalogIntent(wanted, asker), request)

        self.init()
        with noting(request):
            return told_commit(land, stream=self.log, commit_id=request.commit_id)

    def _asker(self, request: Request) -> Asker:
        from ledger.decide.commit_policies import Asker

        return Asker(request.author, request.message, self._setting.now_millis)

    def _ask(self, request: CatalogRequest, options: CommitOptions) -> Appended[CatalogState]:
        asked = [type(request).__name__, request]
        return self._commit(lambda: request, self._request(asked, options))

    def _after(self, request: Request, version: int, rest: Callable[[], T]) -> T:
        """Do the rest of what a commit began that has landed; nothing makes that a failure.

        An exception that interrupts it carries a note with the commit id and version; opening the
        table, or the next drop, completes it.

        Raises:
            CommitUnknownError: The store does not answer, or the rest was refused for now.
        """
        request.fate.is_sent, request.fate.version = True, version
        with noting(request):
            return self._finished(request, version, rest)

    def _finished(self, request: Request, version: int, rest: Callable[[], T]) -> T:
        failure: Exception | None = None
        try:
            for _ in self._setting.patience.attempts():
                try:
                    return rest()
                except OSError as error:
                    failure = error
        except (CommitConflictError, StoreError) as error:
            failure = error
        raise unfinished(version, request.commit_id) from failure

    def _events_of(self, version: int) -> Iterator[CatalogEvent]:
        for transaction in self.log.commit_at(version).transactions:
            yield from transaction.events
