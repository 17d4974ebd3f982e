"""Ledger: what a user holds of a ledger, its databases, tables and views.

Methods convert arguments and call `LedgerHandle`, or `ledger.ledger_writes` with it.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final, Self, Unpack

from attrs import evolve

from ledger.events.catalog import CatalogEvent, ViewChange
from ledger.events.commit import Commit
from ledger.ledger_handle import LedgerHandle, open_ledger
from ledger.log.request import Appended, CommitOptions, NowMillis, now_millis
from ledger.model import arguments as its
from ledger.model.arguments import takes
from ledger.model.messages import html_table, moment
from ledger.model.names import Identifier
from ledger.model.schema import ViewSchema
from ledger.opening.context import Progress, no_progress
from ledger.state.catalog import CatalogState, ViewEntry
from ledger.stores.wrappers import Trust
from ledger.table import PROTOCOL, WANTED_ENTRIES, Table

# Rooms that only writing needs are entered by the methods that write: to read starts fast.
if TYPE_CHECKING:
    from ledger.audit.entries import Entry
    from ledger.audit.listings import FoundCommits
    from ledger.audit.views import Rows
    from ledger.events.schema import AddPartitionField, SortColumn
    from ledger.events.table import ServingProtocol
    from ledger.history.erasure import Erasure
    from ledger.history.erasure import Progress as ErasureProgress
    from ledger.model.file_change import PartitionValue
    from ledger.model.schema import FieldIdPolicy
    from ledger.opening.creation import GivenSchema
    from ledger.plan import ClockPlan
    from ledger.relocation.moving import Findings
    from ledger.transforms import Term

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

_CREATION_KEYS = frozenset(("schema", "field_id_policy", "origin", "partition_spec", "sort_order"))
_CREATION = its.Form(
    "a mapping with schema, field_id_policy and origin, and maybe partition_spec and sort_order",
    lambda value: (
        isinstance(value, Mapping)
        and {"schema", "field_id_policy", "origin"} <= value.keys() <= _CREATION_KEYS
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
    return Ledger(
        open_ledger(
            str(url),
            storage_options,
            author=author,
            clock=clock,
            allowed_locations=allowed_locations,
            trust=trust,
        )
    )


class Ledger:
    """A catalog stream and the tables that it names; open one with `ledger.open`.

    In the examples, `lake` is one in memory with the table `shop.orders`, whose handle is `orders`.
    """

    def __init__(self, handle: LedgerHandle) -> None:
        self._handle = handle

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._handle,)

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
        return self._handle.close(timeout_s)

    @property
    def url(self) -> str:
        """The root's canonical URL.

        Example:
            >>> lake.url.startswith("memory://")
            True
        """
        return self._handle.url

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
        return self._handle.init(erasable=erasable)

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

    @property
    def is_begun(self) -> bool:
        """Whether a ledger is there.

        Example:
            >>> lake.is_begun, ledger.open("memory://nothing").is_begun
            (True, False)
        """
        return self._handle.is_begun

    @property
    def ledger_id(self) -> str | None:
        """The ledger's id, which a copy's root or catalog says; None where no ledger is yet.

        Example:
            >>> lake.ledger_id == lake.init()
            True
        """
        return self._handle.ledger_id

    @property
    def is_erasable(self) -> bool:
        """Whether authors, messages and properties are kept so that they can be erased.

        Example:
            >>> lake.is_erasable
            False
        """
        return self._handle.is_erasable

    @property
    def state(self) -> CatalogState:
        """The newest state, after reading what others appended since the last look.

        Example:
            >>> lake.state.version
            1
        """
        return self._handle.state

    @takes(first=its.whole)
    def events(self, first: int = 0) -> Iterator[Commit[CatalogEvent]]:
        """Yield the catalog's commits from `first` on.

        Example:
            >>> [type(each.transactions[0].events[0]).__name__ for each in lake.events()]
            ['DatabaseCreated', 'TableCreated']
        """
        return self._handle.events(first)

    @takes(commit_id=its.text)
    def find_commit(self, commit_id: str) -> Commit[CatalogEvent] | None:
        """Return the catalog's commit that holds what was asked under an id; see `Table`'s.

        Example:
            >>> _ = lake.create_database("audit", commit_id="monday")
            >>> lake.find_commit("monday").version, lake.find_commit("tuesday")
            (2, None)
        """
        return self._handle.find_commit(commit_id)

    @takes(commit_id=its.text, on_progress=its.callback)
    def find_everywhere(self, commit_id: str, on_progress: Progress = no_progress) -> FoundCommits:
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
        return self._handle.everywhere(commit_id, on_progress)

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
        named = self._handle.log.personal.named
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

        return self._handle.entries(database, wanted_of(**wanted))

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

        return self._handle.ask(CreateDatabase(name, options or {}), commit)

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

        return self._handle.ask(AlterDatabase(name, tuple(removals), updates or {}), commit)

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

        return self._handle.ask(DropDatabase(name), commit)

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
        """Create a table and return it.

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
        from ledger.ledger_writes import create_table
        from ledger.opening.creation import as_schema, new_table

        wanted = new_table(
            as_schema(schema),
            field_id_policy=field_id_policy,
            partition_spec=partition_spec,
            sort_order=sort_order,
        )
        name = Identifier.parse(identifier)
        return Table(create_table(self._handle, name, wanted, location, commit))

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
        return _importer(format_name).run(
            self._handle,
            Identifier.parse(identifier),
            source,
            now_millis=self._handle.setting.now_millis(),
            access=self._handle.access(source, storage_options),
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
        return _importer(format_name).plan(
            self._handle,
            Identifier.parse(identifier),
            source,
            now_millis=self._handle.setting.now_millis(),
            access=self._handle.access(source, storage_options),
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
        return _promoter(self._handle, asked).run(
            self._handle,
            asked,
            source=source,
            protocol=protocol,
            now_millis=self._handle.setting.now_millis,
            access=self._handle.access(source, storage_options),
            on_progress=on_progress or (lambda _done, _of: None),
            commit=options,
        )

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
        return _promoter(self._handle, asked).plan(
            self._handle,
            asked,
            source=source,
            protocol=protocol,
            now_millis=self._handle.setting.now_millis(),
            access=self._handle.access(source, storage_options),
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
            _importer(format_name).run_all(
                self._handle,
                source,
                database=database,
                access=self._handle.access(source, storage_options),
                now_millis=self._handle.setting.now_millis,
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
        access = self._handle.access(source, storage_options)
        found = _importer(format_name).tables(source, access)
        return {each.called(database): each.source for each in found}

    def table(self, identifier: str | Identifier) -> Table:
        """Return a table.

        Raises:
            NotFoundError: It does not exist; the message names similar ones.

        Example:
            >>> lake.table("shop.orders").at().schema.names
            ('id', 'addr')
        """
        return Table(self._handle.table(identifier))

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
        return self._handle.ask(RenameTable(*names), commit)

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
        from ledger.ledger_writes import drop_table

        return drop_table(self._handle, identifier, commit)

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
        return evolve(entry, audit=self._handle.log.personal.named(entry.audit))

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
        from ledger.ledger_writes import create_view

        return create_view(self._handle, identifier, schema, commit)

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

        return self._handle.ask(AlterView(Identifier.parse(identifier), tuple(changes)), commit)

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
        return self._handle.ask(RenameView(*names), commit)

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

        return self._handle.ask(DropView(Identifier.parse(identifier)), commit)

    def inspect_location(self) -> Findings:
        """Return where the ledger is said to be, what is tied to another place, and what is there.

        A file of its own is written and removed again, to see whether it shows at both places.

        Example:
            >>> found = lake.inspect_location()
            >>> found.verdict, found.ties
            ('unknown', ())
        """
        from ledger.relocation.moving import found

        return found(self._handle)

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
        from ledger.ledger_writes import record_move

        return record_move(self._handle, commit, rewrites=rewrites)

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
        from ledger.ledger_writes import record_alias

        return record_alias(self._handle, commit)

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
        from ledger.ledger_writes import record_copy

        return record_copy(self._handle, commit, rewrites=rewrites)

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
            >>> plan.values, [(each.stream, each.versions) for each in plan.remaining]
            (0, [('catalog', (0, 1)), ('shop.orders', (0, 1, 2))])
        """
        from ledger.ledger_writes import plan_erasure

        return plan_erasure(
            self._handle,
            author=author,
            text=text,
            table=table,
            column=column,
            value=value,
            on_progress=on_progress,
        )

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
        from ledger.ledger_writes import erase

        return erase(
            self._handle,
            author=author,
            text=text,
            table=table,
            column=column,
            value=value,
            by=by,
            message=message,
            commit_id=commit_id,
            on_progress=on_progress,
        )

    @takes(true_time=its.moment.or_none())
    def plan_clock_correction(self, true_time: datetime | int | None = None) -> ClockPlan:
        """Return what `correct_clock` would say; nothing is written.

        Example:
            >>> lake.plan_clock_correction()
            Traceback (most recent call last):
            ledger.model.errors.InvalidChangeError: ...
        """
        from ledger.ledger_writes import plan_clock_correction

        return plan_clock_correction(self._handle, true_time)

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
        from ledger.ledger_writes import correct_clock

        return correct_clock(self._handle, true_time, commit)


def _importer(format_name: str) -> Any:
    from ledger.formats import part

    return part(format_name, "importer")


def _promoter(lake: LedgerHandle, name: Identifier) -> Any:
    """Return what lets the ledger own a table that was created elsewhere."""
    from ledger.formats import part

    return part(lake.table(name).state.origin.import_format(name), "promoter")
