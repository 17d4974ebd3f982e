"""TableAt: a table at one instant."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from attrs import field, frozen

from ledger.model import arguments as its
from ledger.model.arguments import path_texts, validate_arguments
from ledger.model.arrow_stream import ArrowStream
from ledger.model.errors import InvalidInputError
from ledger.model.extras import missing_extra_error, require_pandas
from ledger.model.file_change import FileChange
from ledger.model.instant import (
    SnapshotInstant,
    TagInstant,
    TimestampInstant,
    VersionInstant,
    instant_from_arguments,
)
from ledger.model.instant_text import parse_time, resolve_instant
from ledger.model.messages import html_table
from ledger.model.schema import Schema
from ledger.model.snapshot import Snapshot, Tag, Totals
from ledger.state.table import TableState
from ledger.table_handle import TableHandle

if TYPE_CHECKING:
    import duckdb
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    from ledger.planning.filter import Filter
    from ledger.planning.plan import FilePlan


@frozen(repr=False)
class TableAt:
    """An immutable view of a table at one instant; later commits do not change it.

    Attributes:
        state: The table's complete state: schema, options, snapshots, tags, branches and owner.
        schema: The schema to read with: for a snapshot or tag the snapshot's, else the one that was
            current then.
        named: The snapshot, tag or branch that was requested, by its kind: `{"tag": "v1"}`.
    """

    state: TableState
    schema: Schema
    _handle: TableHandle
    named: Mapping[str, str | int] = field(factory=dict, kw_only=True, eq=False)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(version={self.version}, columns={self.schema.names})"

    def _repr_html_(self) -> str:
        totals = self.totals
        known = {"version": self.version, "rows": totals.record_count, "files": totals.file_count}
        columns = self.schema._repr_html_()
        return columns + html_table(tuple(known), [[*known.values()]], caption="")

    @property
    def version(self) -> int:
        """The version of the latest commit that it includes.

        Example:
            >>> orders.at(tag="v1").version
            1
        """
        return self.state.version

    @property
    def snapshot(self) -> Snapshot | None:
        """The latest snapshot at that instant; None before the first.

        Example:
            >>> orders.at().snapshot.commit_kind
            'APPEND'
        """
        return self.state.snapshot

    @property
    def options(self) -> Mapping[str, str]:
        """The table options at that instant.

        Example:
            >>> dict(orders.at().options)
            {}
        """
        return self.schema.options

    @property
    def totals(self) -> Totals:
        """Numbers of rows, files and bytes of the live files.

        Example:
            >>> orders.at().totals.record_count
            2
        """
        return self.state.totals

    @property
    def tags(self) -> Mapping[str, Tag]:
        """The tags at that instant, by name.

        Example:
            >>> sorted(orders.at().tags)
            ['v1']
        """
        return self.state.tags

    @property
    def files(self) -> tuple[FileChange, ...]:
        """The live data files, in the order in which they were added; read on every access.

        If the log does not list them, as for an imported table, those of its engines' manifests.

        Raises:
            NotFoundError: An engine's manifest does not exist any more.
            UnsupportedError: An engine's manifest has content that this release cannot read.

        Example:
            >>> [each.path for each in orders.at().files]
            ['a.parquet']
        """
        return self._handle.files_at(self.state)

    def plan(self, where: Filter = None) -> FilePlan:
        """Return the files that a scan with a filter reads, and why the others are pruned.

        Files are pruned by the partition values that the filter implies for their partition spec
        (hidden partitioning), then by their columns' bounds.

        Args:
            where: `[("ts", ">=", moment), ...]` (AND), a list of such lists (OR), or
                SQL such as `"ts >= TIMESTAMP '2024-01-01' AND category IN ('a', 'b')"`.

        Raises:
            InvalidInputError: The filter cannot be parsed.
            NotFoundError, UnsupportedError: As for `files`; or a filter is given, and the table's
                engines merge rows of several files, so that none of them can be pruned.

        Example:
            >>> orders.at().plan("id > 7").files
            ()
        """
        if not self.state.lists_files:
            from ledger.planning.plan import plan_files

            if where is not None and self.state.owner.kind == "served":
                self._handle.refuse_merged_rows(self.state)
            files = self._handle.newest_files_of_engines(self.state)
            return plan_files(files, schema=self.schema, specs=self.state.specs, where=where)
        from ledger.planning.plan import plan

        return plan(
            self._handle.log,
            self.state,
            schema=self.schema,
            specs=self.state.specs,
            where=where,
            schemas=self._handle.past.schemas,
        )

    @validate_arguments(columns=its.paths.or_none())
    def scan(self, where: Filter = None, columns: Iterable[str] | None = None) -> Any:
        """Return a PyIceberg scan of the rows, for `to_pandas`, `to_duckdb`, `to_polars`, ...

        Updates the table's Iceberg projection first. For a table that declares only other formats,
        Iceberg's metadata is made in memory on each call, and nothing is written.

        Raises:
            MissingDependencyError: PyIceberg is not installed.
            UnsupportedError: Iceberg cannot express the table, or a file that would be read.

        Example:
            >>> orders.at().scan("id > 1").to_arrow().num_rows
            1
        """
        from ledger.formats import part

        return part("iceberg", "scan")(self._handle, self, where=where, columns=columns)

    @validate_arguments(columns=its.paths.or_none())
    def to_arrow(self, where: Filter = None, columns: Iterable[str] | None = None) -> pa.Table:
        """Read the rows into an Arrow table in memory.

        Args:
            where: As for `plan`.
            columns: Names of columns; None for all.

        Raises:
            MissingDependencyError: PyIceberg is not installed.
            UnsupportedError: Iceberg cannot express the table.

        Example:
            >>> orders.at().to_arrow(columns=["id"]).to_pydict()
            {'id': [1, 2]}
        """
        return self.scan(where, columns).to_arrow()

    @validate_arguments(columns=its.paths.or_none())
    def to_pandas(self, where: Filter = None, columns: Iterable[str] | None = None) -> pd.DataFrame:
        """Read the rows into a pandas DataFrame; arguments as for `to_arrow`.

        Whole numbers with NULL become floats, as pandas does it; `to_arrow` keeps them exact.

        Raises:
            MissingDependencyError: pandas or PyIceberg is not installed.

        Example:
            >>> orders.at().to_pandas()["id"].sum()
            np.int64(3)
        """
        require_pandas()
        return self.to_arrow(where, columns).to_pandas()

    @validate_arguments(columns=its.paths.or_none())
    def to_polars(self, where: Filter = None, columns: Iterable[str] | None = None) -> pl.DataFrame:
        """Read the rows into a Polars DataFrame; arguments as for `to_arrow`.

        Raises:
            MissingDependencyError: Polars or PyIceberg is not installed.

        Example:
            >>> orders.at().to_polars(columns=["id"])["id"].to_list()
            [1, 2]
        """
        try:
            import polars as pl
        except ImportError as error:
            raise missing_extra_error("to_polars needs polars", "polars") from error
        return pl.DataFrame(self.to_arrow(where, columns))

    @validate_arguments(name=its.text.or_none(), columns=its.paths.or_none())
    def to_duckdb(
        self,
        connection: duckdb.DuckDBPyConnection | None = None,
        name: str | None = None,
        where: Filter = None,
        columns: Iterable[str] | None = None,
    ) -> duckdb.DuckDBPyConnection:
        """Register the rows as a temporary view of a DuckDB connection, and return the connection.

        Each query of the view streams the rows from the files again: name the columns and the
        filter that the queries need.

        Args:
            connection: The connection; None for a new one in memory.
            name: Name of the view; None for the table's name, without its database.
            where: As for `plan`.
            columns: Names of columns; None for all.

        Raises:
            InvalidInputError: The connection is not one of DuckDB.
            MissingDependencyError: DuckDB or PyIceberg is not installed.
            UnsupportedError: Iceberg cannot express the table.

        Example:
            >>> orders.at().to_duckdb().sql("SELECT sum(id) FROM orders").fetchone()
            (3,)
        """
        try:
            import duckdb
        except ImportError as error:
            raise missing_extra_error("to_duckdb needs duckdb", "duckdb") from error
        needed = its.instance_of("a DuckDB connection", duckdb.DuckDBPyConnection)
        needed.or_none().check("connection", connection)
        found = duckdb.connect() if connection is None else connection
        names = None if columns is None else tuple(path_texts(columns))
        # DuckDB would raise errors of the arguments as its own.
        self.to_arrow_batch_reader(where, names)
        rows = ArrowStream(lambda: self.to_arrow_batch_reader(where, names))
        return found.register(name or self._handle.identifier.name, rows)

    @validate_arguments(columns=its.paths.or_none())
    def to_arrow_batch_reader(
        self, where: Filter = None, columns: Iterable[str] | None = None
    ) -> pa.RecordBatchReader:
        """Return a reader of the rows that opens one file after another, as batches are read.

        Memory does not grow with the number of files; `to_arrow` reads them concurrently. Arguments
        as for `to_arrow`.

        Raises:
            MissingDependencyError: PyIceberg is not installed.
            UnsupportedError: Iceberg cannot express the table.
            DamagedLogError: A file is damaged; raised while batches are read.

        Example:
            >>> sum(batch.num_rows for batch in orders.at().to_arrow_batch_reader("id > 1"))
            1
        """
        reader: pa.RecordBatchReader = self.scan(where, columns).to_arrow_batch_reader()
        return reader

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Export the rows as an Arrow stream; see `to_arrow_batch_reader`."""
        return ArrowStream(self.to_arrow_batch_reader).__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        """Export the schema of the rows as an Arrow schema."""
        return ArrowStream(self.to_arrow_batch_reader).__arrow_c_schema__()

    @validate_arguments(statement=its.text)
    def query(self, statement: str) -> pa.Table:
        """Run a query in SQL over the table's history and metadata up to this instant.

        The views are those of `Ledger.query`, with the rows of this table.

        Args:
            statement: One statement that reads, in DuckDB's SQL.

        Raises:
            InvalidInputError: The statement is invalid, fails, or does more than read.
            MissingDependencyError: DuckDB is not installed (the extra `duckdb`).

        Example:
            >>> orders.at(version=1).query("SELECT type FROM log ORDER BY version").to_pylist()
            [{'type': 'createTable'}, {'type': 'commitSnapshot'}]
        """
        from ledger.queries import query_table

        return query_table(self._handle, self.state, self.schema, statement).read_all()

    @validate_arguments(limit=its.count)
    def head(self, limit: int = 10) -> pa.Table:
        """Return up to `limit` rows as an Arrow table; reads only as many files as needed.

        Args:
            limit: Maximum number of rows.

        Raises:
            MissingDependencyError: PyIceberg is not installed.
            UnsupportedError: Iceberg cannot express the table.

        Example:
            >>> orders.at().head(1).num_rows
            1
        """
        found: pa.Table = self.scan().update(limit=limit).to_arrow()
        return found


def resolve_table_at(  # noqa: PLR0913 - the arguments of `Table.at`
    handle: TableHandle,
    instant: str | int | datetime | None,
    *,
    version: int | None = None,
    timestamp: datetime | int | str | None = None,
    snapshot: int | None = None,
    tag: str | None = None,
    branch: str | None = None,
) -> TableAt:
    """Return a table at an instant; arguments and errors as for `Table.at`."""
    head, now_millis = handle.state, handle.setting.now_millis()
    moment = None if timestamp is None else parse_time(timestamp, now_millis)
    found = instant_from_arguments(version=version, timestamp=moment, snapshot=snapshot, tag=tag)
    on_branch = None
    if instant is not None:
        if found is not None:
            raise InvalidInputError(f"{instant} and {found} were both named; name one")
        found, on_branch = resolve_instant(instant, now_millis, head.version)
    is_ref = isinstance(found, SnapshotInstant | TagInstant)
    if branch is not None and (is_ref or on_branch is not None):
        raise InvalidInputError(f"{found or instant} and branch {branch} were both named; name one")
    on_branch = on_branch or branch
    if on_branch is not None:
        read = handle.branch_instant(head, found, on_branch)
        return TableAt(*read, handle, named={"branch": on_branch})
    match found:
        case TagInstant(tag_name=name):
            named: dict[str, str | int] = {"tag": name}
        case SnapshotInstant(snapshot_id=snapshot_id):
            named = {"snapshot": snapshot_id}
        case VersionInstant() | TimestampInstant() | None:
            named = {}
    return TableAt(*handle.instant(head, found), handle, named=named)
