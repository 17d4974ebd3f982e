"""TableAt: a table at one instant."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from attrs import frozen

from ledger.model import arguments as its
from ledger.model.arguments import takes
from ledger.model.file_change import FileChange
from ledger.model.messages import html_table
from ledger.model.schema import Schema
from ledger.model.snapshot import Snapshot, Tag, Totals
from ledger.state.table import TableState
from ledger.table_handle import TableHandle

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from ledger.planning.filter import Filter
    from ledger.planning.plan import FilePlan


@frozen(repr=False)
class TableAt:
    """A table at an instant; nothing here changes when others write.

    Attributes:
        state: All that the fold knows.
        schema: The schema to read with: by snapshot or tag the snapshot's, else the one current
            then.
    """

    state: TableState
    schema: Schema
    _handle: TableHandle

    def __repr__(self) -> str:
        return f"{type(self).__name__}(version={self.version}, columns={self.schema.names})"

    def _repr_html_(self) -> str:
        totals = self.totals
        known = {"version": self.version, "rows": totals.record_count, "files": totals.file_count}
        columns = self.schema._repr_html_()
        return columns + html_table(tuple(known), [[*known.values()]], caption="")

    @property
    def version(self) -> int:
        """The commit that it stands at.

        Example:
            >>> orders.at(tag="v1").version
            1
        """
        return self.state.version

    @property
    def snapshot(self) -> Snapshot | None:
        """The latest snapshot then; None before the first.

        Example:
            >>> orders.at().snapshot.commit_kind
            'APPEND'
        """
        return self.state.snapshot

    @property
    def options(self) -> Mapping[str, str]:
        """The table options then.

        Example:
            >>> dict(orders.at().options)
            {}
        """
        return self.schema.options

    @property
    def totals(self) -> Totals:
        """Sums over the live files.

        Example:
            >>> orders.at().totals.record_count
            2
        """
        return self.state.totals

    @property
    def tags(self) -> Mapping[str, Tag]:
        """The tags then, by name.

        Example:
            >>> sorted(orders.at().tags)
            ['v1']
        """
        return self.state.tags

    @property
    def files(self) -> tuple[FileChange, ...]:
        """The live files, in the order in which they were added; read when asked for.

        Of a table that was born elsewhere, what its engines' manifests list.

        Raises:
            NotFoundError: A manifest of an engine is gone.
            UnsupportedError: A manifest of an engine says what is not known here.

        Example:
            >>> [each.path for each in orders.at().files]
            ['a.parquet']
        """
        return self._handle.files_at(self.state)

    def plan(self, where: Filter = None) -> FilePlan:
        """Return which files a filter has to read, and why not the others.

        Files of every partition spec are judged by what the filter says of that spec, then by
        their columns' bounds; nobody has to name a partition.

        Args:
            where: `[("ts", ">=", moment), ...]` (all hold), a list of such lists (one holds), or
                SQL such as `"ts >= TIMESTAMP '2024-01-01' AND category IN ('a', 'b')"`.

        Raises:
            InvalidInputError: The filter cannot be read.
            NotFoundError, UnsupportedError: As of `files`.

        Example:
            >>> orders.at().plan("id > 7").files
            ()
        """
        if not self.state.lists_files:
            from ledger.planning.plan import plan_files

            files = self._handle.files_of_engines(self.state)
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

    @takes(columns=its.paths.or_none())
    def scan(self, where: Filter = None, columns: Iterable[str] | None = None) -> Any:
        """Return PyIceberg's scan of the rows, for `to_pandas`, `to_duckdb`, `to_polars`, ...

        Brings the table's Iceberg files up to date first.

        Raises:
            MissingDependencyError: PyIceberg is not installed.
            UnsupportedError: Iceberg cannot express the table.

        Example:
            >>> orders.at().scan("id > 1").to_arrow().num_rows
            1
        """
        from ledger.formats import part

        return part("iceberg", "scan")(self._handle, self, where=where, columns=columns)

    @takes(columns=its.paths.or_none())
    def to_arrow(self, where: Filter = None, columns: Iterable[str] | None = None) -> pa.Table:
        """Return the rows; for a look, and for tables that fit into memory.

        Args:
            where: As for `plan`.
            columns: Names; None for all.

        Raises:
            MissingDependencyError: PyIceberg is not installed.
            UnsupportedError: Iceberg cannot express the table.

        Example:
            >>> orders.at().to_arrow(columns=["id"]).to_pydict()
            {'id': [1, 2]}
        """
        return self.scan(where, columns).to_arrow()

    @takes(columns=its.paths.or_none())
    def to_pandas(self, where: Filter = None, columns: Iterable[str] | None = None) -> pd.DataFrame:
        """Return the rows as a DataFrame; as `to_arrow`.

        Example:
            >>> orders.at().to_pandas()["id"].sum()
            np.int64(3)
        """
        return self.to_arrow(where, columns).to_pandas()

    @takes(limit=its.count)
    def head(self, limit: int = 10) -> pa.Table:
        """Return some rows of the live files, for a look; no more files are read than they need.

        Args:
            limit: How many rows at most.

        Raises:
            MissingDependencyError: PyIceberg is not installed.
            UnsupportedError: Iceberg cannot express the table.

        Example:
            >>> orders.at().head(1).num_rows
            1
        """
        found: pa.Table = self.scan().update(limit=limit).to_arrow()
        return found
