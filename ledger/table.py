"""Table: the public class for one table.

Methods convert arguments and call `TableHandle`, or `ledger.table_writes` with it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Unpack

from attrs import evolve

from ledger.events import TableEvent
from ledger.events.commit import Commit
from ledger.events.schema import RequestedChange
from ledger.events.table import ServingProtocol
from ledger.following.files import Freshness, freshness
from ledger.log.request import Appended, CommitOptions
from ledger.model import arguments as its
from ledger.model.arguments import validate_arguments
from ledger.model.errors import InvalidInputError
from ledger.model.file_change import FileChange
from ledger.model.instant import VersionInstant
from ledger.model.instant_text import parse_instant
from ledger.model.messages import html_table
from ledger.model.names import Identifier, parse_column_path
from ledger.model.schema import Schema
from ledger.opening.context import Progress, no_progress
from ledger.opening.shared_arguments import PROTOCOL, WANTED_ENTRIES
from ledger.state.table import TableState
from ledger.table_at import TableAt, resolve_table_at
from ledger.table_branch import Paths, TableBranch
from ledger.table_handle import TableHandle, handle_of

# Modules that only some calls need are imported by those calls, so that reading starts fast.
if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    from ledger.audit.column_migration import ColumnMatch
    from ledger.audit.difference import TableDiff
    from ledger.audit.entries import Entry
    from ledger.audit.undo import Undoing
    from ledger.audit.views import Blames, Rows
    from ledger.decide.changes import Isolation
    from ledger.files.snapshot_plan import SnapshotPlan
    from ledger.model.file_change import PartitionValue
    from ledger.model.iceberg_objects import BlobMetadata
    from ledger.plan import ChangePlan, ClockPlan
    from ledger.planning.filter import Filter
    from ledger.relocation.replaying import Replay, Step
    from ledger.rows.row_input import GivenData
    from ledger.state.owner import Owner
    from ledger.updates import ReplaceOrder, UpdateSchema, UpdateSpec

CHANGES = its.iterable_of('a sequence of changes, such as [AddColumn("day", "DATE")]')
# A type would need the module's import, which only writing needs.
_PLAN = its.ArgumentForm("a SnapshotPlan", lambda value: type(value).__name__ == "SnapshotPlan")


class Table:
    """A table of a ledger: commit changes, read any version, inspect its history.

    It refers to the same table after renames, and is safe to share between threads.

    In the examples, `orders` is a table of two columns, `id BIGINT` and `addr STRING`, with one
    file of two rows, whose snapshot is tagged `v1`, in the ledger `lake` in memory.
    """

    def __init__(self, handle: TableHandle) -> None:
        self._handle = handle

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._handle,)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.identifier)!r}, {self.location!r})"

    def _repr_html_(self) -> str:
        state = self.state
        rows = [
            ("location", self.location),
            ("version", state.version),
            ("columns", ", ".join(state.schema.names)),
        ]
        return html_table(("", ""), rows, caption=str(self.identifier))

    @property
    def identifier(self) -> Identifier:
        """The name by which the table was opened; a later rename does not change it.

        Example:
            >>> str(orders.identifier)
            'shop.orders'
        """
        return self._handle.identifier

    @property
    def location(self) -> str:
        """The absolute URL of the table's folder, as recorded even if opened by an alias.

        Example:
            >>> orders.location.endswith("/shop.db/orders")
            True
        """
        return self._handle.location

    @property
    def state(self) -> TableState:
        """The newest state of the table, after reading commits appended since the last read.

        Example:
            >>> orders.state.version, orders.state.schema.names
            (2, ('id', 'addr'))
        """
        return self._handle.state

    @validate_arguments(
        instant=its.instant.or_none(),
        version=its.whole.or_none(),
        timestamp=its.moment.or_none(),
        snapshot=its.whole.or_none(),
        tag=its.text.or_none(),
        branch=its.text.or_none(),
    )
    def at(
        self,
        instant: str | int | datetime | None = None,
        *,
        version: int | None = None,
        timestamp: datetime | int | str | None = None,
        snapshot: int | None = None,
        tag: str | None = None,
        branch: str | None = None,
    ) -> TableAt:
        """Return the table at an instant (time travel); without arguments, at its newest version.

        Args:
            instant: A version, a datetime, or a text: `7`, `HEAD~3`, `-3`, `tag:v1`, `snapshot:12`,
                `branch:audit`, `2013-01-31`, `yesterday`, `15m ago`; see
                `ledger.model.instant_text`.
            version: The version of a commit: the table right after it.
            timestamp: A datetime with a time zone, Unix milliseconds, or a text: an ISO time, which
                is local without a zone, `yesterday` or `15m ago`.
            snapshot: A snapshot's id; the schema is the snapshot's.
            tag: A tag's name; the schema is the snapshot's.
            branch: A branch's name; the schema is the table's. With a version or a time: the branch
                as it was then.

        Raises:
            NotFoundError: It does not exist, or was expired; the message lists what exists.
            InvalidInputError: More than one was given, or a text is no instant.

        Example:
            >>> _ = orders.alter([ledger.AddColumn(("note",), "STRING")])
            >>> orders.at("HEAD~1").schema.names, orders.at(version=3).schema.names
            (('id', 'addr'), ('id', 'addr', 'note'))
        """
        return resolve_table_at(
            self._handle,
            instant,
            version=version,
            timestamp=timestamp,
            snapshot=snapshot,
            tag=tag,
            branch=branch,
        )

    @property
    def schema(self) -> Schema:
        """The newest schema of the table, after reading commits appended since the last read.

        Example:
            >>> orders.schema.names
            ('id', 'addr')
        """
        return self.state.schema

    def schemas(self) -> Iterator[Schema]:
        """Yield every schema that the table ever had, newest first.

        Example:
            >>> _ = orders.alter([ledger.DropColumn(("addr",))])
            >>> [each.names for each in orders.schemas()]
            [('id',), ('id', 'addr')]
        """
        return self._handle.schemas()

    @validate_arguments(first=its.whole, last=its.whole.or_none())
    def events(self, first: int = 0, last: int | None = None) -> Iterator[Commit[TableEvent]]:
        """Yield the commits from version `first` to `last`, oldest first, with all their events.

        Args:
            first: The first version.
            last: The last version, inclusive; None for the newest.

        Raises:
            NotFoundError: `last` does not exist yet.

        Example:
            >>> for commit in orders.events(1):
            ...     (transaction,) = commit.transactions
            ...     print(commit.version, transaction.author, type(transaction.events[0]).__name__)
            1 ann SnapshotCommitted
            2 ann TagCreated
        """
        return self._handle.events(first, last)

    @validate_arguments(callback=its.callback.or_none(), first=its.whole)
    def replay(
        self,
        callback: Callable[[Step], object] | None = None,
        *,
        first: int = 0,
        until: TableAt | datetime | int | str | None = None,
    ) -> Replay:
        """Replay the table's commits up to an instant, one step per commit.

        Each step has the state before and after its commit. The steps can be written `into_lines`,
        `into_ledger` and `into_files` of any format.

        Args:
            callback: Called at once with each step.
            first: The first version.
            until: The last commit: a `TableAt`, or an instant as for `at`; None for the newest.

        Raises:
            NotFoundError: The version does not exist.

        Example:
            >>> for step in orders.replay(until=1):
            ...     print(step.version, step.after.updated_by, step.after.totals.record_count)
            0 ann 0
            1 ann 2
            >>> _ = orders.replay(lambda step: print(step.version), first=2)
            2
        """
        from ledger.relocation.replaying import Replay

        last = until.version if isinstance(until, TableAt) else self.at(until).version
        if first > last:
            raise InvalidInputError(f"first={first} comes after the last version, {last}")
        found = Replay(self._handle, first, last)
        return found if callback is None else found.into(callback)

    @validate_arguments(commit_id=its.text)
    def find_commit(self, commit_id: str) -> Commit[TableEvent] | None:
        """Return the commit with a commit id; None if no commit has it.

        Ids never expire: those that callers passed as `commit_id=`, and those named by a
        `CommitUnknownError` or by the note on an interrupted call.

        Example:
            >>> _ = orders.delete_tag("v1", commit_id="monday")
            >>> orders.find_commit("monday").version, orders.find_commit("tuesday")
            (3, None)
        """
        return self._handle.find_commit(commit_id)

    @validate_arguments(changes=CHANGES)
    def alter(
        self,
        changes: Iterable[RequestedChange | Mapping[str, Any]],
        **options: Unpack[CommitOptions],
    ) -> Appended[TableState]:
        """Change the schema, layout, options or comment in one atomic commit.

        Concurrent commits that change other things do not conflict. Column paths follow their
        columns if another writer renames them concurrently.

        Raises:
            InvalidChangeError: A rule forbids a change; nothing was written.
            CommitConflictError: A concurrent commit set the same thing to another value.
            CommitUnknownError: The store did not answer; the commit may have been committed.

        Example:
            >>> change = ledger.RenameColumn(("addr",), "address")
            >>> orders.alter([change], author="bob", message="say it in full").state.schema.names
            ('id', 'address')
        """
        return self._handle.alter(changes, options)

    @validate_arguments(statement=its.text)
    def sql(self, statement: str, **options: Unpack[CommitOptions]) -> Appended[TableState]:
        """Run one `ALTER TABLE` statement in the syntax of Spark and Iceberg; see `ledger.sql`.

        Raises:
            InvalidInputError: It cannot be parsed, or names another table.
            InvalidChangeError: A rule forbids a change; nothing was written.

        Example:
            >>> import ledger
            >>> lake = ledger.open("memory://table-sql")
            >>> _ = lake.create_database("shop")
            >>> orders = lake.create_table("shop.orders", ledger.Schema.of({"id": "BIGINT"}))
            >>> orders.sql("ALTER TABLE shop.orders ADD COLUMN note STRING").state.schema.names
            ('id', 'note')
        """
        from ledger.sql.parser import resolve_table_changes
        from ledger.sql.statement import action_text, requested_changes

        # A retry must match the request that was committed when the table had another name.
        return self._handle.commit(
            ["sql", action_text(statement)],
            options,
            lambda state: resolve_table_changes(
                requested_changes(statement, self.identifier), state
            ),
            previous_requests=[["sql", statement]],
        )

    def update_schema(self) -> UpdateSchema:
        """Return a builder of schema changes, as in Iceberg; end it with `.commit()` or `.apply()`.

        Example:
            >>> orders.update_schema().rename_column("addr", "address").commit().state.schema.names
            ('id', 'address')
        """
        from ledger.updates import UpdateSchema

        return UpdateSchema(self.state, self._handle)

    def update_spec(self) -> UpdateSpec:
        """Return a builder of partition spec changes; end it with `.commit()` or `.apply()`.

        Example:
            >>> from ledger.transforms import bucket
            >>> orders.update_spec().add_field(bucket("id", 8)).commit().version
            3
        """
        from ledger.updates import UpdateSpec

        return UpdateSpec(self._handle)

    def replace_sort_order(self) -> ReplaceOrder:
        """Return a builder of a new sort order; end it with `.commit()` or `.apply()`.

        Example:
            >>> orders.replace_sort_order().asc("id").commit().version
            3
        """
        from ledger.updates import ReplaceOrder

        return ReplaceOrder(self._handle)

    @validate_arguments(changes=CHANGES)
    def plan(self, changes: Iterable[RequestedChange | Mapping[str, Any]]) -> ChangePlan:
        """Return the outcome of `alter` with these changes and each format's verdict; a dry run.

        Raises:
            InvalidChangeError: The changes are invalid under any format's rules, or the table
                follows a source.

        Example:
            >>> planned = orders.plan([ledger.AddColumn(("note",), "STRING")])
            >>> [(each.format, len(each.refusals)) for each in planned.verdicts if each.is_declared]
            [('paimon', 0), ('iceberg', 0)]
        """
        return self._handle.plan(changes)

    @validate_arguments(match=its.one_of("id", "name").or_none())
    def diff(
        self,
        before: TableAt | Table | datetime | int | str,
        after: TableAt | Table | datetime | int | str | None = None,
        *,
        match: ColumnMatch | None = None,
    ) -> TableDiff:
        """Return the differences between two versions of this table, or two tables.

        Columns of one table are matched by field id, so a rename is shown as a rename and a move as
        a move; columns of two tables are matched by name.

        Args:
            before: A `TableAt`, an instant as for `at`, or another table at its newest version.
            after: The same; None for this table at its newest version.
            match: "id" or "name", to match the columns by that instead.

        Raises:
            NotFoundError: The version does not exist.

        Example:
            >>> import ledger
            >>> lake = ledger.open("memory://table-diff")
            >>> _ = lake.create_database("shop")
            >>> orders = lake.create_table("shop.orders", ledger.Schema.of({"addr": "STRING"}))
            >>> _ = orders.alter([ledger.RenameColumn(("addr",), "address")])
            >>> orders.diff(0).to_json()
            [{'type': 'renameColumn', 'fieldNames': ['addr'], 'newName': 'address'}]
        """
        from ledger.audit.difference import DiffSide, TableDiff
        from ledger.audit.migration import default_column_match

        ends = [self._instant_to_compare(each) for each in (before, after)]
        one, two = (evolve(each.state, schema=each.schema) for each in ends)
        first, second = (
            DiffSide(str(handle_of(each).identifier), each.version, each.named) for each in ends
        )
        return TableDiff(
            one,
            two,
            match=match or default_column_match(one, two),
            sides=(first, second),
            past=partial(handle_of(ends[0]).past_columns, one),
        )

    def _instant_to_compare(self, given: TableAt | Table | datetime | int | str | None) -> TableAt:
        if isinstance(given, Table):
            return given.at()
        return given if isinstance(given, TableAt) else self.at(given)

    @validate_arguments(column=its.column.or_none())
    def blame(self, column: str | Sequence[str] | None = None) -> Blames:
        """Return the commits that set the current columns and settings, like `git blame`.

        Args:
            column: A column's path (`address.zip`, or its names); dropped and renamed columns are
                found, too. None for every column, then options, comment, keys, layout and tags.

        Raises:
            ColumnNotFoundError: No column ever had that path.

        Example:
            >>> import ledger
            >>> lake = ledger.open("memory://table-blame")
            >>> _ = lake.create_database("shop")
            >>> orders = lake.create_table("shop.orders", ledger.Schema.of({"addr": "STRING"}))
            >>> rename = ledger.RenameColumn(("addr",), "address")
            >>> _ = orders.alter([rename], author="ann", message="say it in full")
            >>> for cause in orders.blame("address")[0].causes:
            ...     print(cause.version, cause.author, cause.message)
            0 ...
            1 ann say it in full
        """
        from ledger.audit.blame import blame_column, blame_columns, blame_settings
        from ledger.audit.views import Blames

        if column is None:
            histories = self._handle.column_histories_of()
            return Blames((*blame_columns(histories), *blame_settings(histories)))
        path = parse_column_path(column) if isinstance(column, str) else tuple(column)
        return Blames((blame_column(self._handle.column_histories_of(path), path),))

    @validate_arguments(**WANTED_ENTRIES)
    def entries(  # noqa: PLR0913 - each is a question of its own
        self,
        *,
        last: int | None = None,
        since: datetime | int | str | None = None,
        until: datetime | int | str | None = None,
        author: str | None = None,
        kinds: Iterable[str] = (),
        message: str | None = None,
        column: str | Sequence[str] | None = None,
        branch: str | None = None,
    ) -> Iterator[Entry]:
        """Yield the transactions that match all filters, newest first; the log is read lazily.

        Args:
            last: Newest version to include; pass the last seen version minus one for the next page.
            since: Earliest time, as for `at(timestamp=...)`; of a date, its begin.
            until: Latest time; of a date, its end.
            author: A part of the author's name.
            kinds: Kinds of events, such as `addColumn`; a transaction has at least one of them.
            message: A regular expression to search for in the message.
            column: A column's path, current or earlier: transactions that changed the column or its
                nested fields, through all renames.
            branch: The name of a branch, current or deleted: transactions that changed its
                snapshots; "main" for those of the main line.

        Raises:
            ColumnNotFoundError: No column ever had that path.
            NotFoundError: No branch ever had that name.
            InvalidInputError: The message is not a regular expression.

        Example:
            >>> found = orders.entries(kinds=["createTag"])
            >>> [(each.version, each.transaction.author) for each in found]
            [(2, 'ann')]
        """
        from ledger.audit.entries import check_branch, entries, make_entry_filter

        self._handle.log.refresh()
        if branch is not None:
            check_branch(self._handle.log, branch)
        wanted = make_entry_filter(
            now_millis=self._handle.setting.now_millis(),
            last=last,
            since=since,
            until=until,
            author=author,
            kinds=kinds,
            message=message,
            column_id=None if column is None else self.column_id(column),
            branch=branch,
        )
        return entries(self._handle.log, str(self.identifier), wanted)

    def history(self, **wanted: Any) -> Rows:
        """Return the history as one row per event, newest first, for pandas, DuckDB, Polars, Arrow.

        Args:
            wanted: As for `entries`.

        Example:
            >>> import ledger
            >>> lake = ledger.open("memory://table-history")
            >>> _ = lake.create_database("shop")
            >>> orders = lake.create_table("shop.orders", ledger.Schema.of({"id": "BIGINT"}))
            >>> [row["kind"] for row in orders.history()]
            ['createTable']
        """
        from ledger.audit.views import history

        return history(lambda: self.entries(**wanted))

    @validate_arguments(branch=its.text.or_none())
    def snapshots(self, *, branch: str | None = None) -> Rows:
        """Return the snapshots as rows, newest first; expired ones only if a tag keeps them.

        Args:
            branch: The name of a branch; None for main.

        Raises:
            NotFoundError: The branch does not exist.

        Example:
            >>> [(row["snapshot"], row["kind"], row["rows"]) for row in orders.snapshots()]
            [(1, 'APPEND', 2)]
        """
        from ledger.audit.listings import snapshot_rows

        head = self.state
        state = head if branch is None else self.at(branch=branch).state
        return snapshot_rows(self._handle.log, state, head.corrections)

    @validate_arguments(columns=its.paths.or_none())
    def to_arrow(self, where: Filter = None, columns: Iterable[str] | None = None) -> pa.Table:
        """Read the newest rows into an Arrow table in memory; see `TableAt.to_arrow`.

        Example:
            >>> lake = ledger.open(new_file.parent / "lake")
            >>> _ = lake.create_database("shop")
            >>> visits = lake.create_table("shop.visits", {"id": "BIGINT", "addr": "STRING"})
            >>> _ = visits.add_files(new_file)
            >>> visits.to_arrow("id > 0", ["id"]).column_names
            ['id']
        """
        return self.at().to_arrow(where, columns)

    @validate_arguments(columns=its.paths.or_none())
    def to_pandas(self, where: Filter = None, columns: Iterable[str] | None = None) -> pd.DataFrame:
        """Read the newest rows into a pandas DataFrame; arguments as for `to_arrow`.

        Example:
            >>> lake = ledger.open(new_file.parent / "lake")
            >>> _ = lake.create_database("shop")
            >>> visits = lake.create_table("shop.visits", {"id": "BIGINT", "addr": "STRING"})
            >>> _ = visits.add_files(new_file)
            >>> len(visits.to_pandas())
            2
        """
        return self.at().to_pandas(where, columns)

    @validate_arguments(columns=its.paths.or_none())
    def to_polars(self, where: Filter = None, columns: Iterable[str] | None = None) -> pl.DataFrame:
        """Read the newest rows into a Polars DataFrame; arguments as for `to_arrow`.

        Example:
            >>> lake = ledger.open(new_file.parent / "lake")
            >>> _ = lake.create_database("shop")
            >>> visits = lake.create_table("shop.visits", {"id": "BIGINT", "addr": "STRING"})
            >>> _ = visits.add_files(new_file)
            >>> visits.to_polars().height
            2
        """
        return self.at().to_polars(where, columns)

    @validate_arguments(limit=its.count)
    def head(self, limit: int = 10) -> pa.Table:
        """Return up to `limit` rows as an Arrow table; see `TableAt.head`.

        Example:
            >>> lake = ledger.open(new_file.parent / "lake")
            >>> _ = lake.create_database("shop")
            >>> visits = lake.create_table("shop.visits", {"id": "BIGINT", "addr": "STRING"})
            >>> _ = visits.add_files(new_file)
            >>> visits.head(1).num_rows
            1
        """
        return self.at().head(limit)

    def report(self) -> str:
        """Return the table's audit report as one HTML page without scripts or network access.

        Raises:
            MissingDependencyError: jinja2 is not installed (the extra `report`).

        Example:
            >>> orders.report().startswith("<!doctype html>")
            True
        """
        from ledger.audit.listings import RunningSums
        from ledger.audit.report import table_page

        at = self.at()
        commits, sums = self.events(0, at.version), RunningSums(at.state)
        if at.state.lists_files:
            # Summed while the commits are read, so that no list of all live files is needed.
            commits = self._handle.add_to_sums(commits, sums)
        else:
            sums.take(at.files)
        name = str(self.identifier)
        return table_page(name, at.state, commits, self.schemas(), sums.by_path)

    @validate_arguments(column=its.column)
    def column_id(self, column: str | Sequence[str]) -> int:
        """Return the field id of a column by its current or any earlier path.

        Raises:
            ColumnNotFoundError: No column ever had that path.

        Example:
            >>> _ = orders.alter([ledger.RenameColumn(("addr",), "address")])
            >>> orders.column_id("address"), orders.column_id("addr")
            (1, 1)
        """
        return self._handle.column_id(column)

    @validate_arguments(version=its.instant, transaction=its.text.or_none())
    def plan_undo(self, version: int | str, *, transaction: str | None = None) -> Undoing:
        """Return the changes that `undo` would commit, or why it cannot; nothing is written.

        Example:
            >>> _ = orders.alter([ledger.RenameColumn(("addr",), "address")])
            >>> [each.new_name for each in orders.plan_undo(3).changes]
            ['addr']
        """
        from ledger.table_writes import plan_undo

        number = self._version_number(version)
        wanted = self.at(version).version if number is None else number
        return plan_undo(self._handle, wanted, transaction)

    @validate_arguments(version=its.instant, transaction=its.text.or_none())
    def undo(
        self,
        version: int | str,
        *,
        transaction: str | None = None,
        **options: Unpack[CommitOptions],
    ) -> Appended[TableState]:
        """Undo one earlier change by a new commit; later changes stay, as with `git revert`.

        Args:
            version: The commit to undo: its version, or an instant as for `at`, such as `HEAD`.
            transaction: Id of the transaction to undo, if the commit holds several.
            options: See CommitOptions; the default message names the undone version.

        Raises:
            InvalidChangeError: The change cannot be undone; the message says why.
            NotFoundError: The version or transaction does not exist.

        Example:
            >>> _ = orders.alter([ledger.RenameColumn(("addr",), "address")])
            >>> orders.undo(3).state.schema.names
            ('id', 'addr')
        """
        from ledger.table_writes import undo

        number = self._version_number(version)
        if number is None:
            before = self._committed_before(["undo", version, transaction], options)
            if before is not None:
                return before
            number = self.at(version).version
        return undo(self._handle, number, transaction, options)

    def _version_number(self, given: int | str) -> int | None:
        """Return a version that is given by its number; None for other instants."""
        found = parse_instant(given, self._handle.setting.now_millis())
        return found.version if isinstance(found, VersionInstant) else None

    def _committed_before(
        self, words: list[object], options: CommitOptions
    ) -> Appended[TableState] | None:
        # A text such as HEAD means another version once the commit of the first call exists.
        asked = options.setdefault("asked", words)
        return self._handle.committed_before(options.get("commit_id"), asked)

    def plan_restore(self, to: TableAt | datetime | int | str) -> Undoing:
        """Return the changes that `restore` would commit, or why it cannot; nothing is written.

        Example:
            >>> _ = orders.alter([ledger.AddColumn(("note",), "STRING")])
            >>> len(orders.plan_restore(0).changes)
            1
        """
        from ledger.table_writes import plan_restore

        at = self._instant_to_compare(to)
        return plan_restore(self._handle, evolve(at.state, schema=at.schema))

    def restore(
        self, to: TableAt | datetime | int | str, **options: Unpack[CommitOptions]
    ) -> Appended[TableState]:
        """Restore the schema, options and layout of an earlier version by a new commit.

        Data and tags stay as they are; `rollback` restores the data of a snapshot.

        Args:
            to: A `TableAt`, or an instant as for `at`.
            options: See CommitOptions; the default message names the restored version.

        Raises:
            InvalidChangeError: The version cannot be restored; the message says why.
            NotFoundError: The version does not exist.

        Example:
            >>> _ = orders.alter([ledger.AddColumn(("note",), "STRING")])
            >>> orders.restore(orders.at(tag="v1")).state.schema.names
            ('id', 'addr')
        """
        from ledger.table_writes import restore

        if isinstance(to, str):
            before = self._committed_before(["restore", to], options)
            if before is not None:
                return before
        at = self._instant_to_compare(to)
        return restore(self._handle, evolve(at.state, schema=at.schema), options)

    def append(self, data: GivenData, **options: Unpack[CommitOptions]) -> Appended[TableState]:
        """Commit a snapshot that adds rows, or data files that exist already.

        Rows become Parquet files in the table's folder, with its field ids and partitioning, of the
        size in the option `ledger.target-file-size`. Columns and nested fields are matched by name;
        a missing one has its default, or NULL. A stream is read in batches. The index of a pandas
        frame is not written, and NaN in it is NULL; in dicts NaN is a number. A retry with the same
        `commit_id` returns the first commit, whatever its rows are.

        Args:
            data: Rows: dicts of Python values, an Arrow table, record batch or reader, a frame of
                pandas or Polars, a relation of DuckDB, or any other object with
                `__arrow_c_stream__`. Or files: FileChanges with their statistics.
            options: See CommitOptions.

        Raises:
            InvalidInputError: A row does not fit the table; the message names the row, the column
                and the rule. Nothing was committed.
            UnsupportedError: The table's rows are merged by key, or engines write its files.
            InvalidChangeError: A file is live already, or does not match the table.

        Example:
            >>> lake = ledger.open("memory://table-append")
            >>> _ = lake.create_database("shop")
            >>> visits = lake.create_table("shop.visits", {"id": "BIGINT", "addr": "STRING"})
            >>> visits.append([{"id": 1, "addr": "Oslo"}, {"id": 2}]).state.totals.record_count
            2
            >>> new = ledger.FileChange(path="b.parquet", record_count=3, file_size_in_bytes=95)
            >>> orders.append([new], message="the second day").state.totals.record_count
            5
        """
        from ledger.rows.row_commits import append

        return append(self._handle, data, options)

    @validate_arguments(paths=its.paths, on_progress=its.callback)
    def add_files(
        self,
        paths: Paths,
        on_progress: Progress = no_progress,
        **options: Unpack[CommitOptions],
    ) -> Appended[TableState]:
        """Register existing Parquet files as one snapshot; only their footers are read.

        Args:
            paths: Files, folders or patterns; one, or several.
            on_progress: Called with the number of footers read, of how many.
            options: See CommitOptions.

        Raises:
            InvalidChangeError: A file's columns, field ids or partition do not match the table.

        Example:
            >>> orders.add_files(new_file).state.totals.record_count
            4
        """
        from ledger.table_writes import add_files

        return add_files(self._handle, its.path_texts(paths), on_progress, options)

    @validate_arguments(paths=its.paths, on_progress=its.callback)
    def data_files(
        self, paths: Paths, on_progress: Progress = no_progress
    ) -> tuple[FileChange, ...]:
        """Return the FileChanges that `add_files` would register; nothing is written.

        Example:
            >>> [each.record_count for each in orders.data_files([new_file])]
            [2]
        """
        from ledger.table_writes import data_files

        return data_files(self._handle, its.path_texts(paths), on_progress)

    @validate_arguments(paths=its.paths)
    def new_files(self, paths: Paths) -> list[str]:
        """Return the URLs of those files that are not live in the table yet, sorted.

        For a job that registers new files of a folder: `add_files` rejects a file that is live.

        Args:
            paths: Files, folders or patterns; one, or several.

        Raises:
            NotFoundError: A path matches no file.

        Example:
            >>> import pathlib, tempfile
            >>> import pyarrow as pa
            >>> from pyarrow import parquet
            >>> folder = pathlib.Path(tempfile.mkdtemp())
            >>> parquet.write_table(pa.table({"id": [1], "addr": ["Oslo"]}), folder / "c.parquet")
            >>> [each.endswith("/c.parquet") for each in orders.new_files(folder)]
            [True]
            >>> _ = orders.add_files(folder)
            >>> orders.new_files(folder)
            []
        """
        from ledger.table_writes import new_files

        return new_files(self._handle, its.path_texts(paths))

    @validate_arguments(paths=its.paths)
    def delete_files(self, paths: Paths, **options: Unpack[CommitOptions]) -> Appended[TableState]:
        """Commit a snapshot that removes live files from the table; nothing is deleted on disk.

        Raises:
            InvalidChangeError: A path is not live.

        Example:
            >>> orders.delete_files("a.parquet").state.totals.file_count
            0
        """
        from ledger.files.snapshot_plan import SnapshotPlan

        deleted = tuple(its.path_texts(paths))
        return self.commit_snapshot(SnapshotPlan("OVERWRITE", delete=deleted), **options)

    @validate_arguments(
        where=its.by_name.or_none(), isolation=its.one_of("serializable", "snapshot")
    )
    def overwrite(
        self,
        data: GivenData,
        *,
        where: Mapping[str, PartitionValue] | None = None,
        isolation: Isolation = "serializable",
        **options: Unpack[CommitOptions],
    ) -> Appended[TableState]:
        """Commit a snapshot that replaces the files of some partitions, or all files.

        Args:
            data: The new rows or files, as for `append`; rows have to be of these partitions.
            where: Values of partition keys; every live file that has them is removed. None: all
                files.
            isolation: With "serializable" a concurrent commit that adds a file there is a conflict;
                with "snapshot" its file stays.
            options: See CommitOptions.

        Example:
            >>> new = ledger.FileChange(path="b.parquet", record_count=3, file_size_in_bytes=95)
            >>> orders.overwrite([new]).state.totals.record_count
            3
        """
        from ledger.rows.row_commits import overwrite

        return overwrite(self._handle, data, options, where=where, isolation=isolation)

    @validate_arguments(plan=_PLAN)
    def commit_snapshot(
        self, plan: SnapshotPlan, **options: Unpack[CommitOptions]
    ) -> Appended[TableState]:
        """Commit a snapshot of any kind.

        Raises:
            InvalidChangeError: A file to add is live, or one to delete is not.

        Example:
            >>> new = ledger.FileChange(path="b.parquet", record_count=2, file_size_in_bytes=80)
            >>> plan = ledger.SnapshotPlan("COMPACT", (new,), delete=("a.parquet",))
            >>> orders.commit_snapshot(plan).state.snapshot.commit_kind
            'COMPACT'
        """
        from ledger.table_writes import commit_snapshot

        return commit_snapshot(self._handle, plan, options)

    @validate_arguments(snapshot=its.whole.or_none(), tag=its.text.or_none())
    def rollback(
        self,
        *,
        snapshot: int | None = None,
        tag: str | None = None,
        **options: Unpack[CommitOptions],
    ) -> Appended[TableState]:
        """Restore the data of an earlier snapshot as a new snapshot; history is kept.

        The schema stays the current one. A concurrent snapshot is a conflict.

        Raises:
            NotFoundError: The snapshot or tag does not exist, or was expired without a tag.

        Example:
            >>> _ = orders.delete_files("a.parquet")
            >>> orders.rollback(tag="v1").state.totals.record_count
            2
        """
        from ledger.table_writes import rollback

        return rollback(self._handle, snapshot, tag, options)

    @validate_arguments(
        name=its.text, snapshot=its.whole.or_none(), time_retained_millis=its.whole.or_none()
    )
    def create_tag(
        self,
        name: str,
        *,
        snapshot: int | None = None,
        time_retained_millis: int | None = None,
        **options: Unpack[CommitOptions],
    ) -> Appended[TableState]:
        """Tag a snapshot, by default the newest; a tagged snapshot stays readable after expiry.

        Example:
            >>> state = orders.create_tag("week-1", time_retained_millis=86_400_000).state
            >>> state.tags["week-1"].snapshot_id
            1
        """
        from ledger.decide.changes import CreateTag
        from ledger.table_writes import change_tag

        change = CreateTag(name, snapshot, time_retained_millis)
        return change_tag(self._handle, ["createTag", change], change, options)

    @validate_arguments(
        name=its.text, snapshot=its.whole.or_none(), time_retained_millis=its.whole.or_none()
    )
    def replace_tag(
        self,
        name: str,
        *,
        snapshot: int | None = None,
        time_retained_millis: int | None = None,
        **options: Unpack[CommitOptions],
    ) -> Appended[TableState]:
        """Move an existing tag to another snapshot, by default the newest.

        Example:
            >>> _ = orders.delete_files("a.parquet")
            >>> orders.replace_tag("v1").state.tags["v1"].snapshot_id
            2
        """
        from ledger.decide.changes import ReplaceTag
        from ledger.table_writes import change_tag

        change = ReplaceTag(name, snapshot, time_retained_millis)
        return change_tag(self._handle, ["replaceTag", change], change, options)

    @validate_arguments(name=its.text)
    def branch(self, name: str) -> TableBranch:
        """Return the branch of a name; it may not exist yet.

        Example:
            >>> audit = orders.branch("audit")
            >>> _ = audit.create()
            >>> _ = audit.delete_files("a.parquet")
            >>> audit.fast_forward().state.totals.record_count
            0
        """
        return TableBranch(self._handle, name)

    @validate_arguments(name=its.text)
    def create_branch(self, name: str, **options: Any) -> Appended[TableState]:
        """Create a branch; arguments as for `TableBranch.create`.

        Example:
            >>> orders.create_branch("audit", tag="v1").state.branches["audit"].base_snapshot_id
            1
        """
        return self.branch(name).create(**options)

    @validate_arguments(name=its.text)
    def delete_tag(self, name: str, **options: Unpack[CommitOptions]) -> Appended[TableState]:
        """Delete a tag; its snapshot stays readable unless it was expired.

        Example:
            >>> dict(orders.delete_tag("v1").state.tags)
            {}
        """
        from ledger.decide.changes import DeleteTag
        from ledger.table_writes import change_tag

        return change_tag(self._handle, ["deleteTag", name], DeleteTag(name), options)

    @validate_arguments(protocol=PROTOCOL.or_none())
    def start_serving(
        self, protocol: ServingProtocol | None = None, **options: Unpack[CommitOptions]
    ) -> Appended[TableState]:
        """Let engines commit the table's data through a REST catalog server from now on.

        Ids and live files stay. The library can still change metadata. It commits data of a table
        from Iceberg as an engine does, and rejects data files of any other table until
        `stop_serving`. Does nothing if the table is served through the protocol already.

        Args:
            protocol: `iceberg` (Iceberg REST) or `paimon` (the Paimon REST API); None: that of the
                one format that the table declares.
            options: See CommitOptions.

        Raises:
            InvalidInputError: No protocol is named, and the table declares several formats.
            InvalidChangeError: The table does not declare the protocol's format, declares another
                format, is served through another protocol, or follows a source: promote it first,
                `Ledger.promote(name, protocol=...)`.

        Example:
            >>> _ = orders.alter([ledger.SetOption("ledger.formats", "iceberg")])
            >>> str(orders.start_serving().state.owner)
            'served (iceberg)'
            >>> orders.append([ledger.FileChange(path="b", record_count=1, file_size_in_bytes=9)])
            Traceback (most recent call last):
            ...
            ledger.model.errors.InvalidChangeError: the table is served: ...
        """
        from ledger.table_writes import start_serving

        return start_serving(self._handle, protocol, options)

    @validate_arguments(protocol=PROTOCOL.or_none())
    def plan_serving(self, protocol: ServingProtocol | None = None) -> Owner:
        """Return the owner that `start_serving` would set, or raise its error.

        Nothing is written.

        Example:
            >>> orders.plan_serving("paimon")
            Traceback (most recent call last):
            ...
            ledger.model.errors.InvalidChangeError: the table declares 'paimon,iceberg', ...
        """
        from ledger.table_writes import plan_serving

        return plan_serving(self._handle, protocol)

    def stop_serving(self, **options: Unpack[CommitOptions]) -> Appended[TableState]:
        """Stop serving the table to engines; the library commits its data again.

        An engine's commit that is based on an earlier version is rejected from then on, also if the
        table is served again later. If only the engines' manifests list the live files, the same
        commit adds a snapshot that lists them in the log. Does nothing if the table is not served
        and follows no source.

        Args:
            options: See CommitOptions.

        Raises:
            InvalidChangeError: The table follows a source; use `Ledger.promote` instead.
            UnsupportedError: Only engines can write what the table needs; nothing was written.
            CommitConflictError: Another writer committed while the files were listed; call again.

        Example:
            >>> _ = orders.alter([ledger.SetOption("ledger.formats", "iceberg")])
            >>> _ = orders.start_serving("iceberg")
            >>> str(orders.stop_serving().state.owner)
            'ledger'
        """
        from ledger.table_writes import stop_serving

        return stop_serving(self._handle, options)

    def plan_stop_serving(self) -> Owner:
        """Return the owner that `stop_serving` would set, or raise its error.

        Nothing is written.

        Example:
            >>> orders.plan_stop_serving().kind
            'ledger'
        """
        from ledger.table_writes import plan_stop_serving

        return plan_stop_serving(self._handle)

    @validate_arguments(before=its.count)
    def expire_snapshots(
        self, *, before: int, **options: Unpack[CommitOptions]
    ) -> Appended[TableState]:
        """Expire the snapshots with ids below `before`; tagged ones stay, no file is deleted.

        In a table from Iceberg, whose ids have no order: those that were added before it.

        By age: `before=table.at(timestamp=...).snapshot.id` keeps the snapshot that was the newest
        at that time, and all later ones.

        Example:
            >>> _ = orders.delete_files("a.parquet")
            >>> state = orders.expire_snapshots(before=2).state
            >>> state.earliest_snapshot_id, orders.at(tag="v1").totals.record_count
            (2, 2)
        """
        from ledger.decide.changes import ExpireSnapshots

        change = ExpireSnapshots(before)
        return self._handle.commit(["expireSnapshots", before], options, lambda _: [change])

    @validate_arguments(snapshot=its.whole, path=its.text, file_size_in_bytes=its.whole)
    def set_partition_statistics(
        self, snapshot: int, path: str, file_size_in_bytes: int, **options: Unpack[CommitOptions]
    ) -> Appended[TableState]:
        """Register an existing partition statistics file for a snapshot.

        Args:
            snapshot: The snapshot's id.
            path: Path of the file: relative to the table's location, or absolute.
            file_size_in_bytes: Size of the file.
            options: See CommitOptions.

        Raises:
            NotFoundError: The snapshot does not exist, or was expired.

        Example:
            >>> _ = orders.set_partition_statistics(1, "statistics/1.parquet", 700)
            >>> orders.state.version
            3
        """
        from ledger.decide.changes import SetPartitionStatistics
        from ledger.table_writes import set_partition_statistics

        change = SetPartitionStatistics(snapshot, path, file_size_in_bytes)
        return set_partition_statistics(self._handle, change, options)

    @validate_arguments(
        snapshot=its.whole,
        path=its.text,
        file_size_in_bytes=its.whole,
        footer_size_in_bytes=its.whole,
        blobs=its.iterable_of("several BlobMetadata"),
    )
    def set_statistics(
        self,
        snapshot: int,
        path: str,
        file_size_in_bytes: int,
        footer_size_in_bytes: int,
        blobs: Iterable[BlobMetadata],
        **options: Unpack[CommitOptions],
    ) -> Appended[TableState]:
        """Register an existing Puffin statistics file for a snapshot.

        Iceberg's readers find it in the table's metadata. It replaces the snapshot's earlier one.

        Args:
            snapshot: The snapshot's id.
            path: Path of the file: relative to the table's location, or absolute.
            file_size_in_bytes: Size of the file.
            footer_size_in_bytes: Size of the footer, which follows the last blob.
            blobs: Metadata of its blobs: type, columns and properties of each.
            options: See CommitOptions.

        Raises:
            NotFoundError: The snapshot does not exist, or was expired.

        Example:
            >>> from ledger.model.iceberg_objects import BlobMetadata
            >>> ndv = BlobMetadata(
            ...     type="apache-datasketches-theta-v1",
            ...     snapshot_id=1,
            ...     sequence_number=1,
            ...     fields=(0,),
            ...     properties={"ndv": "7"},
            ... )
            >>> _ = orders.set_statistics(1, "metadata/1.stats", 700, 90, [ndv])
            >>> orders.state.version
            3
        """
        from ledger.decide.changes import SetStatistics
        from ledger.table_writes import set_statistics

        change = SetStatistics.of(
            blobs,
            snapshot_id=snapshot,
            statistics_path=path,
            file_size_in_bytes=file_size_in_bytes,
            file_footer_size_in_bytes=footer_size_in_bytes,
        )
        return set_statistics(self._handle, change, options)

    @validate_arguments(true_time=its.moment.or_none())
    def plan_clock_correction(self, true_time: datetime | int | str | None = None) -> ClockPlan:
        """Return what `correct_clock` would commit; nothing is written.

        Example:
            >>> orders.plan_clock_correction()
            Traceback (most recent call last):
            ledger.model.errors.InvalidChangeError: ...
        """
        from ledger.table_writes import plan_clock_correction

        return plan_clock_correction(self._handle, true_time)

    @validate_arguments(true_time=its.moment.or_none())
    def correct_clock(
        self, true_time: datetime | int | str | None = None, **options: Unpack[CommitOptions]
    ) -> Appended[TableState]:
        """Correct the times of commits that a fast clock dated in the future.

        A new commit records that the commits so far took effect at `true_time` at the latest. Time
        travel by `timestamp=` is right again before, inside and after the wrong range.

        Args:
            true_time: Latest time at which the commits happened: a datetime with a time zone or
                Unix milliseconds; None for now, by this machine's clock.
            options: See CommitOptions.

        Raises:
            InvalidChangeError: No commit is later than that time.
            InvalidInputError: The time is in the future.
            CommitConflictError: A concurrent commit corrected the clock to another time.

        Example:
            >>> orders.correct_clock()
            Traceback (most recent call last):
            ledger.model.errors.InvalidChangeError: ...
        """
        from ledger.table_writes import correct_clock

        return correct_clock(self._handle, true_time, options)

    @validate_arguments(format_name=its.text, version=its.whole.or_none())
    def project(self, format_name: str, *, version: int | None = None) -> int:
        """Write the projection of a format, such as "paimon"; return the version that it shows.

        Args:
            format_name: The format.
            version: The version to project; None for the newest.

        Example:
            >>> orders.project("iceberg")
            2
        """
        from ledger.formats import part

        return int(part(format_name, "project")(self._handle, version=version))

    def freshness(self) -> list[Freshness]:
        """Return how far each format's projection is behind the table.

        Lists the formats that the option `ledger.follow` names.

        Example:
            >>> orders.freshness()
            []
        """
        return freshness(self._handle)


def _import_table_writes() -> None:
    import ledger.table_writes  # noqa: F401 - for the child, which cannot wait for the importer


if hasattr(os, "register_at_fork"):
    # A child forked while another thread holds the import lock would wait for it for ever.
    os.register_at_fork(before=_import_table_writes)
