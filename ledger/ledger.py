"""Ledger: the public class for a ledger with its databases, tables, views and functions.

Methods convert arguments and call `LedgerHandle`, or `ledger.ledger_writes` with it.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final, Self, Unpack

from attrs import evolve

from ledger.events.catalog import CatalogEvent
from ledger.events.commit import Commit
from ledger.events.schema import RequestedChange
from ledger.ledger_handle import LedgerHandle, open_ledger
from ledger.log.request import Appended, CommitOptions, NowMillis, now_millis
from ledger.model import arguments as its
from ledger.model.arguments import validate_arguments
from ledger.model.functions import Function
from ledger.model.instant_text import parse_time
from ledger.model.messages import html_table, moment
from ledger.model.names import Identifier
from ledger.model.schema import ViewSchema
from ledger.opening.context import Progress, no_progress
from ledger.opening.shared_arguments import PROTOCOL, WANTED_ENTRIES
from ledger.state.catalog import CatalogState, DroppedTable, FunctionEntry, ViewEntry
from ledger.stores.wrappers import Trust

# Modules that only some calls need are imported by those calls, so that reading starts fast.
if TYPE_CHECKING:
    import pyarrow as pa

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
    from ledger.rows.row_input import GivenRows
    from ledger.table import Table
    from ledger.transforms import Column, Term

# Not `open`: a star import must not hide the builtin.
__all__ = ["Ledger"]

DEFAULT_SOURCE: Final = "iceberg"
"""Format of imported tables when the caller names none."""


def _is_path_or_url(value: object) -> bool:
    if not isinstance(value, str | PurePath):
        return False
    try:
        os.fsencode(value)
    except UnicodeEncodeError:
        return False
    return True


PLACE = its.ArgumentForm("a folder or a URL", _is_path_or_url)

_CREATION_KEYS = frozenset(("schema", "field_id_policy", "origin", "partition_spec", "sort_order"))
_CREATION = its.ArgumentForm(
    "a mapping with schema, field_id_policy and origin, and maybe partition_spec and sort_order",
    lambda value: (
        isinstance(value, Mapping)
        and {"schema", "field_id_policy", "origin"} <= value.keys() <= _CREATION_KEYS
    ),
)
_EXPORTS = ("__arrow_c_schema__", "__arrow_c_stream__", "as_arrow")
_SCHEMA = its.ArgumentForm(
    "a Schema, a dict of names to types, its JSON, a schema of Arrow, pandas, Polars, PyIceberg, "
    "or rows",
    lambda value: (
        isinstance(value, Mapping)
        or (isinstance(value, Iterable) and not isinstance(value, str | bytes))
        or type(value).__module__.startswith("ledger.")
        or any(hasattr(value, each) for each in _EXPORTS)
    ),
)


@validate_arguments(
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
    allowed_locations: Sequence[str] | AbstractSet[str] | None = None,
    trust: Trust = "all",
) -> Ledger:
    """Open the ledger at a URL; the first commit creates one that does not exist yet.

    Args:
        url: A folder, `file:///folder`, `memory://name`, `s3://bucket/path`, `gs://bucket/path`
            or `abfs://container@account.dfs.core.windows.net/path`.
        storage_options: fsspec options for that URL; the names of delta-rs are accepted, too.
        author: Author of commits that name none; `user@host` when None.
        clock: Returns the Unix time in milliseconds.
        allowed_locations: External folders that data files may be read from. A log may name any
            path, so files on another kind of storage than the ledger are rejected unless they are
            below one of these. None: the environment variable LAKELEDGER_ALLOWED_LOCATIONS,
            separated by semicolons.
        trust: "log" ignores all caches and replays every log from its first commit, which is
            slower; "all" reads caches that match the log.

    Raises:
        InvalidInputError: An allowed location is relative.
        StoreError: The location cannot hold a ledger; the message says why and which can.
        UpgradeRequiredError: A newer release of lakeledger wrote the ledger.

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
    """A ledger: a catalog of databases, tables, views and functions; open one with `ledger.open`.

    In the examples, `lake` is a ledger in memory, and `orders` its table `shop.orders`.
    """

    def __init__(self, handle: LedgerHandle) -> None:
        self._handle = handle

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._handle,)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.url!r})"

    def _repr_html_(self) -> str:
        tables = self.state.tables if self.is_begun else ()
        rows = [(each.database, each.name) for each in sorted(tables, key=str)]
        return html_table(("database", "table"), rows, caption=self.url)

    @property
    def _existing(self) -> LedgerHandle:
        """The handle, for all that cannot create the ledger: a mistyped URL is not read as empty.

        Raises:
            NotFoundError: There is no ledger at the URL.
        """
        self._handle.refuse_missing()
        return self._handle

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @validate_arguments(timeout_s=its.seconds.or_none())
    def close(self, timeout_s: float | None = None) -> bool:
        """Wait for background writes: projections that follow this process's commits, and caches.

        A process that exits without closing waits at most ten seconds for projections. Caches next
        to the log are waited for, too, ten seconds at most. After closing, the folder can be
        removed or copied: no background write of this process is left.

        Args:
            timeout_s: Maximum wait in seconds; None: no limit.

        Returns:
            True if every projection was written or failed (see `Table.freshness`); False on
            timeout.

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

    @validate_arguments(erasable=its.switch)
    def init(self, *, erasable: bool = False) -> str:
        """Initialize the ledger unless it exists already; return its id.

        Args:
            erasable: Keep authors, messages and properties of all commits, and values of columns
                that tables mark as personal, outside of the log's lines, so that `erase` can
                delete them. Only possible before the first commit.

        Raises:
            InvalidInputError: The ledger has commits already, and is not erasable.
            DamagedLogError: The root file is missing although a log exists.
            StoreError: The location cannot hold a ledger, or the store did not answer; no commit
                was written.

        Example:
            >>> ledger.open("memory://begun").init() == ledger.open("memory://begun").ledger_id
            True
        """
        return self._handle.init(erasable=erasable)

    @validate_arguments(erasable=its.switch)
    def upgrade(self, *, erasable: bool) -> None:
        """Make a ledger without commits erasable; the same as `init(erasable=...)`.

        Args:
            erasable: As for `init`.

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
        """True if the ledger exists at its URL, that is, was initialized.

        Example:
            >>> lake.is_begun, ledger.open("memory://nothing").is_begun
            (True, False)
        """
        return self._handle.is_begun

    @property
    def ledger_id(self) -> str | None:
        """The ledger's unique id; None if no ledger exists at the URL yet. A copy has its own.

        Example:
            >>> lake.ledger_id == lake.init()
            True
        """
        return self._handle.ledger_id

    @property
    def is_erasable(self) -> bool:
        """True if authors, messages and properties are stored so that `erase` can delete them.

        Example:
            >>> lake.is_erasable
            False
        """
        return self._handle.is_erasable

    @property
    def state(self) -> CatalogState:
        """The newest state of the catalog, after reading commits appended since the last read.

        Example:
            >>> lake.state.version
            1
        """
        return self._existing.state

    @validate_arguments(first=its.whole)
    def events(self, first: int = 0) -> Iterator[Commit[CatalogEvent]]:
        """Yield the catalog's commits, oldest first, from version `first` on.

        Example:
            >>> [type(each.transactions[0].events[0]).__name__ for each in lake.events()]
            ['DatabaseCreated', 'TableCreated']
        """
        return self._existing.events(first)

    @validate_arguments(commit_id=its.text)
    def find_commit(self, commit_id: str) -> Commit[CatalogEvent] | None:
        """Return the catalog's commit with a commit id, or None; see `Table.find_commit`.

        Example:
            >>> _ = lake.create_database("audit", commit_id="monday")
            >>> lake.find_commit("monday").version, lake.find_commit("tuesday")
            (2, None)
        """
        return self._existing.find_commit(commit_id)

    @validate_arguments(commit_id=its.text, on_progress=its.callback)
    def find_everywhere(self, commit_id: str, on_progress: Progress = no_progress) -> FoundCommits:
        """Find the commits with a commit id in the catalog and all tables, dropped ones included.

        For callers that do not know the table, or its current name.

        Args:
            commit_id: The id.
            on_progress: Called with the number of logs searched, of how many.

        Example:
            >>> _ = lake.table("shop.orders").delete_tag("v1", commit_id="monday")
            >>> _ = lake.drop_table("shop.orders")
            >>> [(each.label, each.version) for each in lake.find_everywhere("monday").entries]
            [('shop.orders (dropped)', 3)]
        """
        return self._existing.find_in_all_logs(commit_id, on_progress)

    def report(self) -> str:
        """Return an audit report of all tables as one HTML page without scripts or network access.

        Raises:
            MissingDependencyError: jinja2 is not installed (the extra `report`).

        Example:
            >>> "shop.orders" in lake.report()
            True
        """
        from ledger.audit.report import ledger_page

        names = [f"{each}.{name}" for each in self.databases() for name in self.tables(each)]
        tables = {name: self.table(name) for name in names}
        named = self._existing.log.personal.named
        states = [(name, named(each.state)) for name, each in tables.items()]
        newest = max([self.state.time_millis, *(each.time_millis for _, each in states)])
        return ledger_page(self.url, self.entries(), states, moment(newest))

    @validate_arguments(database=its.text.or_none(), **WANTED_ENTRIES)
    def entries(self, database: str | None = None, **wanted: Any) -> Iterator[Entry]:
        """Yield the transactions of the catalog and of every table, newest first.

        Dropped tables are included as long as their logs exist. A call probes every table for newer
        commits; a table is opened once no other can have a newer entry, so that the newest entries
        are read from few tables. Commits after the call are not included.

        Args:
            database: Only the tables of this database; None for all tables and the catalog.
            wanted: Filters, as for `Table.entries` except `column`.

        Example:
            >>> [(each.table, each.version) for each in lake.entries()][-2:]
            [('shop.orders', 0), ('', 0)]
        """
        from ledger.audit.entries import make_entry_filter

        now_millis = self._existing.setting.now_millis()
        return self._existing.entries(database, make_entry_filter(now_millis=now_millis, **wanted))

    def history(self, database: str | None = None, **wanted: Any) -> Rows:
        """Return the history of the catalog and of all tables as one row per event, newest first.

        Args:
            database: As for `entries`.
            wanted: As for `entries`.

        Example:
            >>> [row["kind"] for row in lake.history()][:2]
            ['createTag', 'commitSnapshot']
        """
        from ledger.audit.views import history

        return history(lambda: self.entries(database, **wanted))

    @validate_arguments(statement=its.text, at=its.moment.or_none())
    def query(self, statement: str, *, at: datetime | int | str | None = None) -> pa.Table:
        """Run a query in SQL over the ledger's history and tables, by DuckDB in memory.

        The views are `log`, `tables`, `columns`, `blame`, `snapshots`, `files` and `partitions`;
        `DESCRIBE FROM log` lists the columns of one. A query can read nothing else.

        Args:
            statement: One statement that reads, in DuckDB's SQL.
            at: The time of the views: a datetime with a time zone, a text such as `2013-01-31`
                or `15m ago`, or Unix milliseconds; None for the newest versions.

        Raises:
            InvalidInputError: The statement is invalid, fails, or does more than read.
            MissingDependencyError: DuckDB is not installed (the extra `duckdb`).
            NotFoundError: The ledger begins later.

        Example:
            >>> lake.query("SELECT name, type FROM columns WHERE field_id = 0").to_pylist()
            [{'name': 'id', 'type': 'BIGINT'}]
        """
        from ledger.queries import query_ledger

        handle = self._existing
        at_millis = None if at is None else parse_time(at, handle.setting.now_millis())
        return query_ledger(handle, statement, at_millis).read_all()

    def databases(self) -> list[str]:
        """Return the names of all databases, sorted.

        Example:
            >>> lake.databases()
            ['shop']
        """
        return sorted(self.state.databases)

    @validate_arguments(name=its.text, options=its.texts.or_none())
    def create_database(
        self, name: str, options: Mapping[str, str] | None = None, **commit: Unpack[CommitOptions]
    ) -> Appended[CatalogState]:
        """Create a database.

        Raises:
            AlreadyExistsError: A database of that name exists.
            InvalidNameError: The name is not safe as a path.

        Example:
            >>> lake.create_database("audit", {"owner": "ann"}, author="ann").version
            2
        """
        from ledger.decide.catalog import CreateDatabase

        return self._handle.ask(CreateDatabase(name, options or {}), commit)

    @validate_arguments(name=its.text, removals=its.names, updates=its.texts.or_none())
    def alter_database(
        self,
        name: str,
        *,
        removals: Sequence[str] | AbstractSet[str] = (),
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

        return self._existing.ask(AlterDatabase(name, tuple(removals), updates or {}), commit)

    @validate_arguments(name=its.text)
    def drop_database(self, name: str, **commit: Unpack[CommitOptions]) -> Appended[CatalogState]:
        """Drop an empty database.

        Example:
            >>> _ = lake.create_database("audit")
            >>> _ = lake.drop_database("audit")
            >>> lake.databases()
            ['shop']
        """
        from ledger.decide.catalog import DropDatabase

        return self._existing.ask(DropDatabase(name), commit)

    @validate_arguments(database=its.text.or_none())
    def tables(self, database: str | None = None) -> list[str]:
        """Return the names of tables, sorted.

        Args:
            database: The database; None for all tables, as `database.table`.

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

    @validate_arguments(
        schema=_SCHEMA,
        append=its.switch,
        location=its.text.or_none(),
        field_id_policy=its.one_of("paimon", "iceberg").or_none(),
        partition_spec=its.iterable_of("a sequence of partition fields").or_none(),
        sort_order=its.iterable_of("a sequence of sort columns").or_none(),
    )
    def create_table(  # noqa: PLR0913 - each is a part of a new table
        self,
        identifier: str | Identifier,
        schema: GivenSchema | GivenRows,
        *,
        append: bool = False,
        location: str | None = None,
        field_id_policy: FieldIdPolicy | None = None,
        partition_spec: Iterable[AddPartitionField | Term | Column] | None = None,
        sort_order: Iterable[SortColumn | Term | Column] | None = None,
        **commit: Unpack[CommitOptions],
    ) -> Table:
        """Create a table and return it.

        Args:
            identifier: `database.table`.
            schema: The first schema, validated and completed as Paimon does: a Schema, a mapping of
                names to types, its JSON as in the DLF metadata API, or a schema or frame of
                Arrow, pandas, Polars or PyIceberg (its columns get new ids). Or rows, as for
                `Table.append`: the types of dicts are inferred from the first 1,024.
            append: Append these rows to the new table by a second commit. If it fails, the table
                exists. A retry with the same `commit_id` completes both.
            location: An absolute folder for an external table; None for one under the root.
            field_id_policy: Rules that assign field ids for the table's lifetime: "paimon", or
                "iceberg", which numbers everything from 1 unless the schema has Iceberg ids
                already. None: as the schema says, which is Paimon unless it came from an Iceberg
                table.
            partition_spec: The first partition spec; None: the partition keys.
            sort_order: The first sort order of rows inside files; None: unsorted.
            commit: See CommitOptions.

        Raises:
            AlreadyExistsError: A table or view of that name exists; no row was read.
            NotFoundError: The database does not exist.
            InvalidInputError: The schema is none, or a row does not fit the types before it.
            InvalidChangeError: The schema, the spec or the order breaks a rule; a FormatError
                if one of the table's formats cannot express it. Or the location overlaps the
                ledger's root or another table's, or holds a log already.
            StoreError: The location cannot hold a table; nothing was committed.

        Example:
            >>> visits = lake.create_table("shop.visits", {"day": "DATE", "city": "STRING"})
            >>> visits.at().schema.names
            ('day', 'city')
            >>> rows = [{"id": 1, "city": "Oslo"}, {"id": 2, "city": None}]
            >>> lake.create_table("shop.towns", rows, append=True).at().totals.record_count
            2
        """
        from ledger.ledger_writes import create_table_of
        from ledger.table import Table

        layout = {
            "field_id_policy": field_id_policy,
            "partition_spec": partition_spec,
            "sort_order": sort_order,
        }
        name = Identifier.parse(identifier)
        return Table(
            create_table_of(
                self._existing, name, schema, layout, location, commit, is_filled=append
            )
        )

    @validate_arguments(tables=its.by_name)
    def create_tables(
        self, tables: Mapping[str, GivenSchema], **commit: Unpack[CommitOptions]
    ) -> dict[str, Table]:
        """Create several tables by one commit of the catalog: all of them, or none.

        Args:
            tables: The first schema of each table by `database.table`; see `create_table`.
            commit: See CommitOptions.

        Returns:
            The tables, by the names as given.

        Raises:
            AlreadyExistsError: A table or view of one of the names exists.
            NotFoundError: A database does not exist.
            InvalidChangeError: A schema breaks a rule, or a name is given twice.

        Example:
            >>> made = lake.create_tables({"shop.a": {"id": "INT"}, "shop.b": {"id": "INT"}})
            >>> sorted(made), made["shop.a"].at().schema.names
            (['shop.a', 'shop.b'], ('id',))
        """
        from ledger.ledger_writes import create_tables
        from ledger.opening.creation import as_schema, new_table
        from ledger.table import Table

        wanted = {Identifier.parse(n): new_table(as_schema(s)) for n, s in tables.items()}
        opened = create_tables(self._existing, wanted, commit)
        return {str(name): Table(handle) for name, handle in opened.items()}

    @validate_arguments(
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
        """Import the history of an external table, or sync the commits that are new since.

        Every schema, layout, snapshot, branch, tag, property and log entry becomes an event, in
        its original order and with its original time; ids are kept. Nothing is written at the
        source. The imported table rejects other commits until it is promoted (see `promote`).

        Args:
            identifier: `database.table` in this ledger; a missing database is created.
            source: Location of the source: for Iceberg a metadata file, a table's folder, or
                `CATALOG:NAMESPACE.TABLE` of a catalog that PyIceberg is configured for.
            format_name: Table format of the source.
            storage_options: fsspec options for the source's files; the ledger's when None.
            on_progress: Called with the number of transactions committed, of how many.

        Raises:
            AlreadyExistsError: Another table of that name exists.
            UnsupportedError: The ledger cannot represent part of the table; nothing was written.
            InvalidInputError: The source is not a table of that format.

        Example:
            >>> lake.import_table("shop.visits", theirs, format_name="delta").transactions
            1
            >>> lake.import_table("shop.visits", theirs, format_name="delta").transactions
            0
        """
        return _importer_of_format(format_name).run(
            self._handle,
            Identifier.parse(identifier),
            source,
            now_millis=self._handle.setting.now_millis(),
            access=self._handle.access(source, storage_options),
            on_progress=on_progress,
        )

    @validate_arguments(
        source=its.text, format_name=its.text, storage_options=its.by_name.or_none()
    )
    def plan_import(
        self,
        identifier: str | Identifier,
        source: str,
        *,
        format_name: str = DEFAULT_SOURCE,
        storage_options: Mapping[str, Any] | None = None,
    ) -> Any:
        """Return what `import_table` would import, or raise its error; nothing is written.

        Example:
            >>> planned = lake.plan_import("shop.visits", theirs, format_name="delta")
            >>> planned.is_new, planned.snapshots, lake.tables()
            (True, (1,), ['shop.orders'])
        """
        return _importer_of_format(format_name).plan(
            self._handle,
            Identifier.parse(identifier),
            source,
            now_millis=self._handle.setting.now_millis(),
            access=self._handle.access(source, storage_options),
        )

    @validate_arguments(
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
        """Make the ledger the owner of an imported table.

        Commits that are new at the source are imported first. If the source is a table of one of
        PyIceberg's SQL catalogs, the catalog's pointer is swapped to the ledger's metadata; a
        Delta log gets one more version, which keeps other writers out. Both are conditional on no
        concurrent commit. For other sources the result lists the steps left to the source's owner.
        Afterwards the table accepts commits, and its log lists its older files. Calling it again
        completes an interrupted promotion and updates the catalog's pointer to the newest version.

        Args:
            identifier: The table in this ledger.
            source: Current location of the source, if it differs from that of the import.
            protocol: Let engines commit the table's data through this protocol from then on (see
                `Table.start_serving`); the ledger does not list the older files.
            dry_run: Deprecated: only plan, as `plan_promotion` does; removed in the next release.
            storage_options: fsspec options for the source's files; the ledger's when None.
            on_progress: Called with the number of transactions committed, of how many.
            options: See CommitOptions; for the commit that promotes the table.

        Raises:
            CommitConflictError: Another writer committed through the catalog after the promotion.
            InvalidInputError: The table follows no source, or its source keeps changing.
            InvalidChangeError: Engines commit to it already, or cannot through the protocol.
            UnsupportedError: The ledger cannot own the table; nothing was written.

        Example:
            >>> _ = lake.import_table("shop.visits", theirs, format_name="delta")
            >>> lake.promote("shop.visits", source=theirs).files
            1
            >>> lake.table("shop.visits").create_tag("v1").version
            4
        """
        if dry_run:
            said = (
                "promote(dry_run=True) is deprecated and is removed in the next release; call "
                "plan_promotion()"
            )
            warnings.warn(said, DeprecationWarning, stacklevel=3)
            return self.plan_promotion(
                identifier, source=source, protocol=protocol, storage_options=storage_options
            )
        asked = Identifier.parse(identifier)
        return _promoter_of_format(self._handle, asked).run(
            self._handle,
            asked,
            source=source,
            protocol=protocol,
            now_millis=self._handle.setting.now_millis,
            access=self._handle.access(source, storage_options),
            on_progress=on_progress or (lambda _done, _of: None),
            commit=options,
        )

    @validate_arguments(
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
        """Return what `promote` would do, or raise its error; nothing is written.

        Example:
            >>> _ = lake.import_table("shop.visits", theirs, format_name="delta")
            >>> planned = lake.plan_promotion("shop.visits", source=theirs)
            >>> planned.files, planned.version
            (1, None)
        """
        asked = Identifier.parse(identifier)
        return _promoter_of_format(self._handle, asked).plan(
            self._handle,
            asked,
            source=source,
            protocol=protocol,
            now_millis=self._handle.setting.now_millis(),
            access=self._handle.access(source, storage_options),
        )

    @validate_arguments(
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
        """Import every table of a folder or catalog, or sync the commits that are new in each.

        A table that cannot be imported does not stop the others: its entry in the result has the
        reason as `error`.

        Args:
            source: A folder of tables, or of folders of tables; for Iceberg also `CATALOG:` or
                `CATALOG:NAMESPACE`.
            database: Target database in this ledger; None: the same names as at the source.
            format_name: Table format of the source.
            storage_options: As for `import_table`.

        Raises:
            NotFoundError: The source has no such tables.
            StoreError: The folder or the catalog cannot be listed.

        Example:
            >>> from pathlib import Path
            >>> (come,) = lake.import_tables(str(Path(theirs).parent), format_name="delta")
            >>> str(come.identifier), come.transactions
            ('web.visits', 1)
        """
        return list(
            _importer_of_format(format_name).run_all(
                self._handle,
                source,
                database=database,
                access=self._handle.access(source, storage_options),
                now_millis=self._handle.setting.now_millis,
            )
        )

    @validate_arguments(
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
        """List the tables that `import_tables` would import: source locations by table name here.

        The arguments and errors are those of `import_tables`; nothing is written.

        Example:
            >>> from pathlib import Path
            >>> found = lake.tables_to_import(str(Path(theirs).parent), format_name="delta")
            >>> found == {"web.visits": theirs}
            True
        """
        access = self._handle.access(source, storage_options)
        found = _importer_of_format(format_name).tables(source, access)
        return {each.called(database): each.source for each in found}

    def table(self, identifier: str | Identifier) -> Table:
        """Return a table.

        Raises:
            NotFoundError: It does not exist; the message names similar ones.

        Example:
            >>> lake.table("shop.orders").at().schema.names
            ('id', 'addr')
        """
        from ledger.table import Table

        return Table(self._existing.table(identifier))

    def rename_table(
        self,
        source: str | Identifier,
        destination: str | Identifier,
        **commit: Unpack[CommitOptions],
    ) -> Appended[CatalogState]:
        """Rename a table; its files stay where they are.

        Example:
            >>> _ = lake.rename_table("shop.orders", "shop.sales")
            >>> lake.tables()
            ['shop.sales']
        """
        from ledger.decide.catalog import RenameTable

        names = Identifier.parse(source), Identifier.parse(destination)
        return self._existing.ask(RenameTable(*names), commit)

    @validate_arguments(purge=its.switch)
    def drop_table(
        self,
        identifier: str | Identifier,
        *,
        purge: bool = False,
        **commit: Unpack[CommitOptions],
    ) -> Appended[CatalogState]:
        """Drop a table: seal its log, then remove its name from the catalog.

        No file is deleted, and `undrop_table` restores the table. The location is never reused. A
        table that cannot be opened, since its log is damaged or lost or its store unreachable, is
        removed without sealing.

        Args:
            identifier: The table.
            purge: True to have its files deleted later, by `lakeledger maintain`, after the
                retention that is given there. Until then the table can be restored.
            commit: See CommitOptions.

        Example:
            >>> _ = lake.drop_table("shop.orders")
            >>> lake.tables()
            []
        """
        from ledger.ledger_writes import drop_table

        return drop_table(self._existing, identifier, commit, purge=purge)

    @validate_arguments(database=its.text.or_none())
    def dropped_tables(self, database: str | None = None) -> tuple[DroppedTable, ...]:
        """Return the dropped tables, newest drop first; there may be several of one name.

        Args:
            database: The database in which they were; None for all.

        Example:
            >>> _ = lake.drop_table("shop.orders")
            >>> [str(each.identifier) for each in lake.dropped_tables()]
            ['shop.orders']
        """
        from ledger.dropped_tables import dropped_tables

        return dropped_tables(self._existing, database)

    @validate_arguments(
        identifier=its.instance_of("the name of a dropped table, or its id", str, Identifier)
    )
    def undrop_table(
        self,
        identifier: str | Identifier,
        destination: str | Identifier | None = None,
        **commit: Unpack[CommitOptions],
    ) -> Table:
        """Restore a dropped table with its id, location, history and all versions.

        Args:
            identifier: The name that it had when it was dropped, or its id. Of several tables of
                that name the one that was dropped last.
            destination: The name that it gets; None for the one that it had.
            commit: See CommitOptions.

        Raises:
            NotFoundError: No dropped table has that name or id, or the database does not exist.
            AlreadyExistsError: Another table or view has the name.
            InvalidChangeError: The table is not dropped, or its files were deleted.

        Example:
            >>> _ = lake.drop_table("shop.orders")
            >>> lake.undrop_table("shop.orders").at().schema.names
            ('id', 'addr')
        """
        from ledger.dropped_tables import undrop_table
        from ledger.table import Table

        return Table(undrop_table(self._existing, str(identifier), destination, commit))

    @validate_arguments(database=its.text)
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
        return evolve(entry, audit=self._existing.log.personal.named(entry.audit))

    @validate_arguments(schema=its.instance_of("a ViewSchema", ViewSchema))
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

        return create_view(self._existing, identifier, schema, commit)

    @validate_arguments(changes=its.iterable_of("a sequence of changes of a view"))
    def alter_view(
        self,
        identifier: str | Identifier,
        changes: Iterable[RequestedChange],
        **commit: Unpack[CommitOptions],
    ) -> Appended[CatalogState]:
        """Change a view's options, comment or dialects.

        Raises:
            InvalidChangeError: A change is not one of a view.

        Example:
            >>> from ledger import Schema, UpdateComment, ViewSchema
            >>> columns = Schema.of({"id": "BIGINT"}).fields
            >>> _ = lake.create_view("shop.ids", ViewSchema(columns, "SELECT id FROM orders"))
            >>> _ = lake.alter_view("shop.ids", [UpdateComment("all ids")])
            >>> lake.view("shop.ids").schema.comment
            'all ids'
        """
        from ledger.decide.catalog import AlterView, as_view_changes

        asked = as_view_changes(changes)
        return self._existing.ask(AlterView(Identifier.parse(identifier), asked), commit)

    def rename_view(
        self,
        source: str | Identifier,
        destination: str | Identifier,
        **commit: Unpack[CommitOptions],
    ) -> Appended[CatalogState]:
        """Rename a view.

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
        return self._existing.ask(RenameView(*names), commit)

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

        return self._existing.ask(DropView(Identifier.parse(identifier)), commit)

    @validate_arguments(database=its.text)
    def functions(self, database: str) -> list[str]:
        """Return the names of a database's functions, sorted.

        Example:
            >>> lake.functions("shop")
            []
        """
        state = self.state
        state.database(database)
        return sorted(each.name for each in state.functions if each.database == database)

    def function(self, identifier: str | Identifier) -> FunctionEntry:
        """Return a function.

        Raises:
            NotFoundError: It does not exist; the message names similar ones.

        Example:
            >>> from ledger import Function, SqlFunctionDefinition
            >>> area = Function(definitions={"trino": SqlFunctionDefinition("a * b")})
            >>> _ = lake.create_function("shop.area", area)
            >>> lake.function("shop.area").function.definitions["trino"].definition
            'a * b'
        """
        entry = self.state.function(Identifier.parse(identifier))
        return evolve(entry, audit=self._existing.log.personal.named(entry.audit))

    @validate_arguments(function=its.instance_of("a Function", Function))
    def create_function(
        self, identifier: str | Identifier, function: Function, **commit: Unpack[CommitOptions]
    ) -> FunctionEntry:
        """Create a function and return it; the ledger never runs its code.

        Example:
            >>> from ledger import Function, SqlFunctionDefinition
            >>> area = Function(definitions={"trino": SqlFunctionDefinition("a * b")})
            >>> _ = lake.create_function("shop.area", area)
            >>> lake.functions("shop")
            ['area']
        """
        from ledger.ledger_writes import create_function

        return create_function(self._existing, identifier, function, commit)

    @validate_arguments(changes=its.iterable_of("a sequence of changes of a function"))
    def alter_function(
        self,
        identifier: str | Identifier,
        changes: Iterable[RequestedChange],
        **commit: Unpack[CommitOptions],
    ) -> Appended[CatalogState]:
        """Change a function's options, comment or definitions.

        Raises:
            InvalidChangeError: A change is not one of a function.

        Example:
            >>> from ledger import Function, UpdateComment
            >>> _ = lake.create_function("shop.area", Function())
            >>> _ = lake.alter_function("shop.area", [UpdateComment("of a rectangle")])
            >>> lake.function("shop.area").function.comment
            'of a rectangle'
        """
        from ledger.decide.functions import AlterFunction, as_function_changes

        asked = as_function_changes(changes)
        return self._existing.ask(AlterFunction(Identifier.parse(identifier), asked), commit)

    def drop_function(
        self, identifier: str | Identifier, **commit: Unpack[CommitOptions]
    ) -> Appended[CatalogState]:
        """Drop a function.

        Example:
            >>> from ledger import Function
            >>> _ = lake.create_function("shop.area", Function())
            >>> _ = lake.drop_function("shop.area")
            >>> lake.functions("shop")
            []
        """
        from ledger.decide.functions import DropFunction

        return self._existing.ask(DropFunction(Identifier.parse(identifier)), commit)

    def inspect_location(self) -> Findings:
        """Compare the ledger's recorded location with the opened one: moved, copied or an alias.

        Also returns the tables and files tied to the recorded location. A probe file is written
        and removed again, to test if both locations are the same storage.

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
        """Record that the ledger was moved to the location where it was opened.

        Args:
            rewrites: Rewrite position deletes and file paths that name the old location.
            commit: See CommitOptions.

        Raises:
            InvalidChangeError: A table names files at another location and cannot be moved; the
                message names each. The move is not recorded.

        Example:
            >>> lake.record_move().state.place == lake.url
            True
        """
        from ledger.ledger_writes import record_move

        return record_move(self._handle, commit, rewrites=rewrites)

    def record_alias(self, **commit: Unpack[CommitOptions]) -> Appended[CatalogState]:
        """Record the URL where the ledger was opened as an alias of its recorded location.

        Paths of files keep the recorded location.

        Raises:
            InvalidChangeError: A file written here does not appear at the recorded location, or no
                location was recorded.

        Example:
            >>> _ = lake.record_move()
            >>> lake.record_alias().state.aliases  # it was opened at its recorded location
            ()
        """
        from ledger.ledger_writes import record_alias

        return record_alias(self._handle, commit)

    def record_copy(
        self, *, rewrites: bool = False, **commit: Unpack[CommitOptions]
    ) -> Appended[CatalogState]:
        """Record that this is a copy of another ledger, and give it a ledger id of its own.

        External tables, outside of the ledger's folder, stay the original's and are removed from
        the copy.

        Args:
            rewrites: As for `record_move`.
            commit: See CommitOptions.

        Raises:
            InvalidChangeError: A table names files at another location and cannot be copied, or a
                file written here appears at the original's location, too.

        Example:
            >>> before = lake.ledger_id
            >>> lake.record_copy().state.copied_from == before != lake.ledger_id
            True
        """
        from ledger.ledger_writes import record_copy

        return record_copy(self._handle, commit, rewrites=rewrites)

    @validate_arguments(
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
        """Return what `erase` would delete, and what it cannot reach; nothing is written.

        Example:
            >>> plan = lake.plan_erasure(author="ann")
            >>> plan.values, [(each.stream, each.versions) for each in plan.remaining]
            (0, [('catalog', (0, 1)), ('shop.orders', (0, 1, 2))])
        """
        from ledger.ledger_writes import plan_erasure

        return plan_erasure(
            self._existing,
            author=author,
            text=text,
            table=table,
            column=column,
            value=value,
            on_progress=on_progress,
        )

    @validate_arguments(
        author=its.text.or_none(),
        text=its.text.or_none(),
        table=its.text.or_none(),
        column=its.text.or_none(),
        by=its.words.or_none(),
        message=its.words,
        commit_id=its.text.or_none(),
        on_progress=its.callback.or_none(),
    )
    def erase(  # noqa: PLR0913 - what to erase, and the options of a commit
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
        """Delete the stored personal data of a person or column; readers get `erased` instead.

        Covers all logs, those of dropped tables included, or one column of one table. The catalog
        records that values were erased, when and by which author, and never the values. Calling it
        again resumes an interrupted erasure. The log's own lines stay as they are, and so do
        copies: exports, backups, reports.

        Args:
            author: Erase this author with its messages and properties; messages and properties of
                other authors that contain the author as a word, too, and values of personal
                columns.
            text: Erase every author, message, map of properties and value of a personal column
                that contains this text.
            table: The table of `column`.
            column: A column that is or was personal (option `ledger.personal`): its bounds and
                partition values are erased. Scans then read files whose bounds are erased, and
                engines find NULL where a partition had the value.
            value: Erase only what is, or may be, this value of the column, in any notation of the
                column's current or earlier types. None: all values.
            by: Author of the erasure; the ledger's default author when None. Recorded as empty
                if it contains what is erased.
            message: The reason.
            commit_id: Id of the commit that records it; see CommitOptions. If that id recorded an
                erasure already, a new id is generated for the values that are left.
            on_progress: Called with the name of the phase, the number done, and of how many.

        Returns:
            The erased values, and the lines that hold the text for ever: older commits, paths of
            data files.

        Raises:
            InvalidInputError: The ledger is not erasable, or the message contains the text that is
                to be erased.

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
            self._existing,
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

    @validate_arguments(true_time=its.moment.or_none())
    def plan_clock_correction(self, true_time: datetime | int | str | None = None) -> ClockPlan:
        """Return what `correct_clock` would commit; nothing is written.

        Example:
            >>> lake.plan_clock_correction()
            Traceback (most recent call last):
            ledger.model.errors.InvalidChangeError: ...
        """
        from ledger.ledger_writes import plan_clock_correction

        return plan_clock_correction(self._existing, true_time)

    @validate_arguments(true_time=its.moment.or_none())
    def correct_clock(
        self, true_time: datetime | int | str | None = None, **commit: Unpack[CommitOptions]
    ) -> Appended[CatalogState]:
        """Correct the times of the catalog's commits, as `Table.correct_clock` does for a table.

        Raises:
            InvalidChangeError: No commit of the catalog is later than that time.
            InvalidInputError: The time is in the future.

        Example:
            >>> lake.correct_clock()
            Traceback (most recent call last):
            ledger.model.errors.InvalidChangeError: ...
        """
        from ledger.ledger_writes import correct_clock

        return correct_clock(self._existing, true_time, commit)


def _importer_of_format(format_name: str) -> Any:
    from ledger.formats import part

    return part(format_name, "importer")


def _promoter_of_format(lake: LedgerHandle, name: Identifier) -> Any:
    """Return the promoter of the format that a table was imported from."""
    from ledger.formats import part

    return part(lake.table(name).state.origin.import_format(name), "promoter")
