"""Table: what a user holds of one table.

Methods convert arguments and call `TableHandle`, or `ledger.table_writes` with it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Unpack, get_args

from attrs import evolve

from ledger.events import SchemaChange, SpecChange, TableEvent
from ledger.events.commit import Commit
from ledger.events.table import ServingProtocol
from ledger.following.files import Freshness, freshness
from ledger.log.request import Appended, CommitOptions
from ledger.model import arguments as its
from ledger.model.arguments import takes
from ledger.model.errors import InvalidInputError
from ledger.model.file_change import FileChange
from ledger.model.instant import SnapshotInstant, TagInstant, instant_of
from ledger.model.messages import html_table
from ledger.model.names import Identifier, whole_path
from ledger.model.schema import Schema
from ledger.opening.context import Progress, no_progress
from ledger.state.table import TableState
from ledger.table_at import TableAt
from ledger.table_branch import Paths, TableBranch
from ledger.table_handle import TableHandle

# What only some calls need is imported by them: to read starts fast.
if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

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
    from ledger.state.owner import Owner
    from ledger.updates import ReplaceOrder, UpdateSchema, UpdateSpec

PROTOCOL = its.one_of(*get_args(ServingProtocol))
CHANGES = its.many('a sequence of changes, such as [AddColumn("day", "DATE")]')
FILES = its.many("a sequence of FileChanges, as data_files(paths) makes them of Parquet files")
# Without the module, which only writing needs.
WANTED_ENTRIES = {
    "last": its.whole.or_none(),
    "since": its.moment.or_none(),
    "until": its.moment.or_none(),
    "author": its.text.or_none(),
    "message": its.text.or_none(),
    "kinds": its.paths,
    "column": its.column.or_none(),
    "branch": its.text.or_none(),
}
"""What `Table.entries` takes."""
_PLAN = its.Form("a SnapshotPlan", lambda value: type(value).__name__ == "SnapshotPlan")


class Table:
    """One table: append to it, read it at any instant.

    It stays with its table through renames, and is safe to share between threads.

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
        """The table's name, as it was opened by.

        Example:
            >>> str(orders.identifier)
            'shop.orders'
        """
        return self._handle.identifier

    @property
    def location(self) -> str:
        """The absolute URL that the table's files are named by, whichever way led to it.

        Example:
            >>> orders.location.endswith("/shop.db/orders")
            True
        """
        return self._handle.location

    @property
    def state(self) -> TableState:
        """The newest state, after reading what others appended since the last look.

        Example:
            >>> orders.state.version, orders.state.schema.names
            (2, ('id', 'addr'))
        """
        return self._handle.state

    @takes(
        version=its.whole.or_none(),
        timestamp=its.moment.or_none(),
        snapshot=its.whole.or_none(),
        tag=its.text.or_none(),
        branch=its.text.or_none(),
    )
    def at(
        self,
        *,
        version: int | None = None,
        timestamp: datetime | int | str | None = None,
        snapshot: int | None = None,
        tag: str | None = None,
        branch: str | None = None,
    ) -> TableAt:
        """Return the table as it was; nothing given: as it is.

        Args:
            version: Right after that commit.
            timestamp: As of a datetime or an ISO text with a time zone, or Unix milliseconds.
            snapshot: A snapshot's id; the schema is the snapshot's.
            tag: A tag's name; the schema is the snapshot's.
            branch: A branch's name; the schema is the table's. Beside version or timestamp: the
                branch as it was then.

        Raises:
            NotFoundError: It does not exist, or was expired; the message says what does.
            InvalidInputError: More than one was given.

        Example:
            >>> _ = orders.alter([ledger.AddColumn(("note",), "STRING")])
            >>> orders.at(tag="v1").schema.names, orders.at(version=3).schema.names
            (('id', 'addr'), ('id', 'addr', 'note'))
        """
        head = self.state
        instant = instant_of(version=version, timestamp=timestamp, snapshot=snapshot, tag=tag)
        if branch is None:
            return TableAt(*self._handle.instant(head, instant), self._handle)
        if isinstance(instant, SnapshotInstant | TagInstant):
            raise InvalidInputError(f"{instant} and branch {branch} were both named; name one")
        return TableAt(*self._handle.branch_instant(head, instant, branch), self._handle)

    @property
    def schema(self) -> Schema:
        """The newest schema, after reading what others appended since the last look.

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

    @takes(first=its.whole, last=its.whole.or_none())
    def events(self, first: int = 0, last: int | None = None) -> Iterator[Commit[TableEvent]]:
        """Yield the commits `first` to `last` (the head when None), with all their events.

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

    @takes(callback=its.callback.or_none(), first=its.whole)
    def replay(
        self,
        callback: Callable[[Step], object] | None = None,
        *,
        first: int = 0,
        until: TableAt | datetime | int | None = None,
    ) -> Replay:
        """Return the table's commits up to an instant, to be had again one after the other.

        What comes back is the steps themselves, each with the table before and after, and goes
        `into_lines`, `into_ledger` and `into_files` of any format.

        Args:
            callback: Called with each step, now.
            first: The first version.
            until: The last: a version, what `at` gave, or a moment; None for the newest.

        Raises:
            NotFoundError: There is no such version.

        Example:
            >>> for step in orders.replay(until=1):
            ...     print(step.version, step.after.updated_by, step.after.totals.record_count)
            0 ann 0
            1 ann 2
            >>> _ = orders.replay(lambda step: print(step.version), first=2)
            2
        """
        from ledger.relocation.replaying import Replay

        if isinstance(until, TableAt):
            last = until.state.version
        elif isinstance(until, datetime):
            last = self.at(timestamp=until).version
        else:
            last = self.at(version=until).version
        if first > last:
            raise InvalidInputError(f"first={first} comes after the last version, {last}")
        found = Replay(self._handle, first, last)
        return found if callback is None else found.into(callback)

    @takes(commit_id=its.text)
    def find_commit(self, commit_id: str) -> Commit[TableEvent] | None:
        """Return the commit that holds what was asked under an id; None: it has not landed.

        Every id finds its commit, for ever: those that callers gave, and those that a
        `CommitUnknownError` or a note on an interruption named.

        Example:
            >>> _ = orders.delete_tag("v1", commit_id="monday")
            >>> orders.find_commit("monday").version, orders.find_commit("tuesday")
            (3, None)
        """
        return self._handle.find_commit(commit_id)

    @takes(changes=CHANGES)
    def alter(
        self,
        changes: Sequence[SchemaChange | SpecChange | Mapping[str, Any]],
        **options: Unpack[CommitOptions],
    ) -> Appended[TableState]:
        """Change the schema, options or comment; all changes land or none.

        Concurrent changes to other things land beside these. Column paths follow their columns
        when somebody else renames them meanwhile.

        Raises:
            InvalidChangeError: A rule forbids a change; nothing was written.
            CommitConflictError: Somebody else set the same thing to another value meanwhile.
            CommitUnknownError: The store gave no answer.

        Example:
            >>> change = ledger.RenameColumn(("addr",), "address")
            >>> orders.alter([change], author="bob", message="say it in full").state.schema.names
            ('id', 'address')
        """
        return self._handle.alter(changes, options)

    @takes(statement=its.text)
    def sql(self, statement: str, **options: Unpack[CommitOptions]) -> Appended[TableState]:
        """Run one `ALTER TABLE` statement, as Spark and Iceberg write it; see `ledger.sql`.

        Raises:
            InvalidInputError: It cannot be read, or is about another table.
            InvalidChangeError: A rule forbids a change; nothing was written.

        Example:
            >>> import ledger
            >>> lake = ledger.open("memory://table-sql")
            >>> _ = lake.create_database("shop")
            >>> orders = lake.create_table("shop.orders", ledger.Schema.of({"id": "BIGINT"}))
            >>> orders.sql("ALTER TABLE shop.orders ADD COLUMN note STRING").state.schema.names
            ('id', 'note')
        """
        from ledger.sql.parser import on_state
        from ledger.sql.statement import action_of, asked_of

        # It may have landed when the table had another name.
        return self._handle.commit(
            ["sql", action_of(statement)],
            options,
            lambda state: on_state(asked_of(statement, self.identifier), state),
            previous_requests=[["sql", statement]],
        )

    def update_schema(self) -> UpdateSchema:
        """Begin an update of the schema, Iceberg's way; end it with `.commit()` or `.apply()`.

        Example:
            >>> orders.update_schema().rename_column("addr", "address").commit().state.schema.names
            ('id', 'address')
        """
        from ledger.updates import UpdateSchema

        return UpdateSchema(self.state, self._handle)

    def update_spec(self) -> UpdateSpec:
        """Begin a change of the partition spec; end it with `.commit()` or `.apply()`.

        Example:
            >>> from ledger.transforms import bucket
            >>> orders.update_spec().add_field(bucket("id", 8)).commit().version
            3
        """
        from ledger.updates import UpdateSpec

        return UpdateSpec(self._handle)

    def replace_sort_order(self) -> ReplaceOrder:
        """Begin another sort order; end it with `.commit()` or `.apply()`.

        Example:
            >>> orders.replace_sort_order().asc("id").commit().version
            3
        """
        from ledger.updates import ReplaceOrder

        return ReplaceOrder(self._handle)

    @takes(changes=CHANGES)
    def plan(self, changes: Sequence[SchemaChange | SpecChange | Mapping[str, Any]]) -> ChangePlan:
        """Return what `alter` would do with these changes, and what each format says to it.

        Raises:
            InvalidChangeError: The changes mean nothing under any format's rules.

        Example:
            >>> planned = orders.plan([ledger.AddColumn(("note",), "STRING")])
            >>> [(each.format, len(each.refusals)) for each in planned.verdicts if each.is_declared]
            [('paimon', 0), ('iceberg', 0)]
        """
        return self._handle.plan(changes)

    def diff(
        self, before: TableAt | Table | int, after: TableAt | Table | int | None = None
    ) -> TableDiff:
        """Return what differs between two instants of this table, or from another table.

        Columns of one table are the same where their field ids are, so a rename is a rename and a
        move a move; those of two tables where their names are.

        Args:
            before: What `at` gave, a version, or another table as it is.
            after: The same; None for this table as it is.

        Raises:
            NotFoundError: There is no such version.

        Example:
            >>> import ledger
            >>> lake = ledger.open("memory://table-diff")
            >>> _ = lake.create_database("shop")
            >>> orders = lake.create_table("shop.orders", ledger.Schema.of({"addr": "STRING"}))
            >>> _ = orders.alter([ledger.RenameColumn(("addr",), "address")])
            >>> orders.diff(0).to_json()
            [{'type': 'renameColumn', 'fieldNames': ['addr'], 'newName': 'address'}]
        """
        from ledger.audit.difference import TableDiff

        one, two = self._compared(before), self._compared(after)
        return TableDiff(one, two, past=partial(self._handle.past_columns, one))

    def _compared(self, given: TableAt | Table | int | None) -> TableState:
        if isinstance(given, Table):
            return given.state
        at = given if isinstance(given, TableAt) else self.at(version=given)
        return evolve(at.state, schema=at.schema)

    @takes(column=its.column.or_none())
    def blame(self, column: str | Sequence[str] | None = None) -> Blames:
        """Return what made things what they are: the facts without which they would be others.

        Args:
            column: A column's path (`address.zip`, or its names); one that was dropped, or has
                another name by now, is found, too. None for every column, then options, comment,
                keys, layout and tags.

        Raises:
            ColumnNotFoundError: No column was ever called that.

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
            histories = self._handle.column_lives()
            return Blames((*blame_columns(histories), *blame_settings(histories)))
        path = whole_path(column) if isinstance(column, str) else tuple(column)
        return Blames((blame_column(self._handle.column_lives(path), path),))

    @takes(**WANTED_ENTRIES)
    def entries(  # noqa: PLR0913 - each is a question of its own
        self,
        *,
        last: int | None = None,
        since: datetime | int | None = None,
        until: datetime | int | None = None,
        author: str | None = None,
        kinds: Iterable[str] = (),
        message: str | None = None,
        column: str | Sequence[str] | None = None,
        branch: str | None = None,
    ) -> Iterator[Entry]:
        """Yield the log's transactions, newest first; no more is read than is asked for.

        Args:
            last: None newer than this version: one less than the last one seen goes on from there.
            since: Not before it: a datetime with a time zone, or Unix milliseconds.
            until: Not after it.
            author: A part of who committed.
            kinds: Those with an event of these kinds, such as `addColumn`.
            message: A regular expression that is found in the message.
            column: A column's path, by any name that it had: whatever touched it, or what is in
                it, through all renames.
            branch: What happened to the branch of this name.

        Raises:
            ColumnNotFoundError: No column was ever called that.
            InvalidInputError: The message is no regular expression.

        Example:
            >>> found = orders.entries(kinds=["createTag"])
            >>> [(each.version, each.transaction.author) for each in found]
            [(2, 'ann')]
        """
        from ledger.audit.entries import entries, wanted_of

        self._handle.log.refresh()
        wanted = wanted_of(
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
        """Return the log as rows, one an event, newest first: for pandas, DuckDB, Polars, Arrow.

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

    @takes(branch=its.text.or_none())
    def snapshots(self, *, branch: str | None = None) -> Rows:
        """Return the snapshots as rows, newest first: those not expired, and those kept by a tag.

        Args:
            branch: The name of a branch; None for main.

        Raises:
            NotFoundError: There is no such branch.

        Example:
            >>> [(row["snapshot"], row["kind"], row["rows"]) for row in orders.snapshots()]
            [(1, 'APPEND', 2)]
        """
        from ledger.audit.listings import snapshot_rows

        head = self.state
        state = head if branch is None else self.at(branch=branch).state
        return snapshot_rows(self._handle.log, state, head.corrections)

    @takes(columns=its.paths.or_none())
    def to_arrow(self, where: Filter = None, columns: Iterable[str] | None = None) -> pa.Table:
        """Return the rows as Arrow, for tables that fit into memory; see `TableAt.to_arrow`.

        Example:
            >>> lake = ledger.open(new_file.parent / "lake")
            >>> _ = lake.create_database("shop")
            >>> visits = lake.create_table("shop.visits", {"id": "BIGINT", "addr": "STRING"})
            >>> _ = visits.add_files(new_file)
            >>> visits.to_arrow("id > 0", ["id"]).column_names
            ['id']
        """
        return self.at().to_arrow(where, columns)

    @takes(columns=its.paths.or_none())
    def to_pandas(self, where: Filter = None, columns: Iterable[str] | None = None) -> pd.DataFrame:
        """Return the rows as a DataFrame; as `to_arrow`.

        Example:
            >>> lake = ledger.open(new_file.parent / "lake")
            >>> _ = lake.create_database("shop")
            >>> visits = lake.create_table("shop.visits", {"id": "BIGINT", "addr": "STRING"})
            >>> _ = visits.add_files(new_file)
            >>> len(visits.to_pandas())
            2
        """
        return self.at().to_pandas(where, columns)

    @takes(limit=its.count)
    def head(self, limit: int = 10) -> pa.Table:
        """Return some rows of the live files as Arrow; see `TableAt.head`.

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
        """Return the table's audit page: one HTML file that needs no network and runs no script.

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
            # Beside the commits, which are read anyway: so no list of all live files is needed.
            commits = self._handle.summed(commits, sums)
        else:
            sums.take(at.files)
        name = str(self.identifier)
        return table_page(name, at.state, commits, self.schemas(), sums.by_path)

    @takes(column=its.column)
    def column_id(self, column: str | Sequence[str]) -> int:
        """Return the field id of a column, by its path now or by any name that it ever had.

        Raises:
            ColumnNotFoundError: No column was ever called that.

        Example:
            >>> _ = orders.alter([ledger.RenameColumn(("addr",), "address")])
            >>> orders.column_id("address"), orders.column_id("addr")
            (1, 1)
        """
        return self._handle.column_id(column)

    @takes(version=its.whole, transaction=its.text.or_none())
    def plan_undo(self, version: int, *, transaction: str | None = None) -> Undoing:
        """Return what `undo` would do, or why it cannot; nothing is written.

        Example:
            >>> _ = orders.alter([ledger.RenameColumn(("addr",), "address")])
            >>> [each.new_name for each in orders.plan_undo(3).changes]
            ['addr']
        """
        from ledger.table_writes import plan_undo

        return plan_undo(self._handle, version, transaction)

    @takes(version=its.whole, transaction=its.text.or_none())
    def undo(
        self, version: int, *, transaction: str | None = None, **options: Unpack[CommitOptions]
    ) -> Appended[TableState]:
        """Take one change back by a new one that keeps what came later.

        Args:
            version: The commit that made it.
            transaction: Its transaction, where the commit holds several.
            options: See CommitOptions; the message says by itself what is undone.

        Raises:
            InvalidChangeError: It cannot be taken back; the message says why.
            NotFoundError: There is no such change.

        Example:
            >>> _ = orders.alter([ledger.RenameColumn(("addr",), "address")])
            >>> orders.undo(3).state.schema.names
            ('id', 'addr')
        """
        from ledger.table_writes import undo

        return undo(self._handle, version, transaction, options)

    def plan_revert(self, to: TableAt | int) -> Undoing:
        """Return what `revert` would do, or why it cannot; nothing is written.

        Example:
            >>> _ = orders.alter([ledger.AddColumn(("note",), "STRING")])
            >>> len(orders.plan_revert(0).changes)
            1
        """
        from ledger.table_writes import plan_revert

        return plan_revert(self._handle, self._compared(to))

    def revert(self, to: TableAt | int, **options: Unpack[CommitOptions]) -> Appended[TableState]:
        """Give the table an earlier instant's schema, options and layout again.

        Data and tags stay as they are: `rollback` puts a snapshot's contents back.

        Args:
            to: What `at` gave, or a version.
            options: See CommitOptions; the message says by itself what is gone back to.

        Raises:
            InvalidChangeError: It cannot be gone back to; the message says why.
            NotFoundError: There is no such version.

        Example:
            >>> _ = orders.alter([ledger.AddColumn(("note",), "STRING")])
            >>> orders.revert(orders.at(tag="v1")).state.schema.names
            ('id', 'addr')
        """
        from ledger.table_writes import revert

        return revert(self._handle, self._compared(to), options)

    @takes(files=FILES)
    def append(
        self, files: Iterable[FileChange], **options: Unpack[CommitOptions]
    ) -> Appended[TableState]:
        """Commit a snapshot that adds files.

        Raises:
            InvalidChangeError: A file is live already, or does not fit the table.

        Example:
            >>> new = ledger.FileChange(path="b.parquet", record_count=3, file_size_in_bytes=95)
            >>> orders.append([new], message="the second day").state.totals.record_count
            5
        """
        from ledger.files.snapshot_plan import SnapshotPlan

        return self.commit_snapshot(SnapshotPlan("APPEND", tuple(files)), **options)

    @takes(paths=its.paths, on_progress=its.callback)
    def add_files(
        self,
        paths: Paths,
        on_progress: Progress = no_progress,
        **options: Unpack[CommitOptions],
    ) -> Appended[TableState]:
        """Register existing Parquet files as one snapshot; their footers are read, not their rows.

        Args:
            paths: Files, folders or patterns; one, or several.
            on_progress: Told how many footers were read, of how many.
            options: See CommitOptions.

        Raises:
            InvalidChangeError: A file's columns, field ids or partition do not fit the table.

        Example:
            >>> orders.add_files(new_file).state.totals.record_count
            4
        """
        from ledger.table_writes import add_files

        return add_files(self._handle, its.path_texts(paths), on_progress, options)

    @takes(paths=its.paths, on_progress=its.callback)
    def data_files(
        self, paths: Paths, on_progress: Progress = no_progress
    ) -> tuple[FileChange, ...]:
        """Return what `add_files` would register, without registering it.

        Example:
            >>> [each.record_count for each in orders.data_files([new_file])]
            [2]
        """
        from ledger.table_writes import data_files

        return data_files(self._handle, its.path_texts(paths), on_progress)

    @takes(paths=its.paths)
    def new_files(self, paths: Paths) -> list[str]:
        """Return the URLs of those files that the table does not have yet, sorted.

        For a job that registers what came into a folder since it last ran: `add_files` refuses a
        file that is live.

        Args:
            paths: Files, folders or patterns; one, or several.

        Raises:
            NotFoundError: A path means no file at all.

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
        from ledger.files.register import new_files

        return new_files(
            its.path_texts(paths),
            live=self._handle.live,
            version=self.state.version,
            storage_options=dict(self._handle.storage_options),
        )

    @takes(paths=its.paths)
    def delete_files(self, paths: Paths, **options: Unpack[CommitOptions]) -> Appended[TableState]:
        """Commit a snapshot that takes live files out of the table; nothing is deleted on disk.

        Raises:
            InvalidChangeError: A path is not live.

        Example:
            >>> orders.delete_files("a.parquet").state.totals.file_count
            0
        """
        from ledger.files.snapshot_plan import SnapshotPlan

        deleted = tuple(its.path_texts(paths))
        return self.commit_snapshot(SnapshotPlan("OVERWRITE", delete=deleted), **options)

    @takes(
        files=FILES, where=its.by_name.or_none(), isolation=its.one_of("serializable", "snapshot")
    )
    def overwrite(
        self,
        files: Iterable[FileChange],
        *,
        where: Mapping[str, PartitionValue] | None = None,
        isolation: Isolation = "serializable",
        **options: Unpack[CommitOptions],
    ) -> Appended[TableState]:
        """Commit a snapshot that replaces what is in some partitions, or everything.

        Args:
            files: What is there afterwards.
            where: Values of partition keys; every live file that has them goes. None: all files.
            isolation: With "serializable" a file that somebody else adds there meanwhile is a
                conflict; with "snapshot" it stays.
            options: See CommitOptions.

        Example:
            >>> new = ledger.FileChange(path="b.parquet", record_count=3, file_size_in_bytes=95)
            >>> orders.overwrite([new]).state.totals.record_count
            3
        """
        from ledger.files.snapshot_plan import SnapshotPlan

        plan = SnapshotPlan("OVERWRITE", tuple(files), where=where or {}, isolation=isolation)
        return self.commit_snapshot(plan, **options)

    @takes(plan=_PLAN)
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

    @takes(snapshot=its.whole.or_none(), tag=its.text.or_none())
    def rollback(
        self,
        *,
        snapshot: int | None = None,
        tag: str | None = None,
        **options: Unpack[CommitOptions],
    ) -> Appended[TableState]:
        """Put a snapshot's contents back as a new snapshot; history stays as it was.

        The schema stays the current one. A snapshot that others commit meanwhile is a conflict.

        Raises:
            NotFoundError: The snapshot or tag does not exist, or was expired without a tag.

        Example:
            >>> _ = orders.delete_files("a.parquet")
            >>> orders.rollback(tag="v1").state.totals.record_count
            2
        """
        from ledger.table_writes import rollback

        return rollback(self._handle, snapshot, tag, options)

    @takes(name=its.text, snapshot=its.whole.or_none(), time_retained_millis=its.whole.or_none())
    def create_tag(
        self,
        name: str,
        *,
        snapshot: int | None = None,
        time_retained_millis: int | None = None,
        **options: Unpack[CommitOptions],
    ) -> Appended[TableState]:
        """Name a snapshot (the newest when None); a tagged one outlives expiry.

        Example:
            >>> state = orders.create_tag("week-1", time_retained_millis=86_400_000).state
            >>> state.tags["week-1"].snapshot_id
            1
        """
        from ledger.decide.changes import CreateTag

        change = CreateTag(name, snapshot, time_retained_millis)
        return self._handle.commit(["createTag", change], options, lambda _: [change])

    @takes(name=its.text, snapshot=its.whole.or_none(), time_retained_millis=its.whole.or_none())
    def replace_tag(
        self,
        name: str,
        *,
        snapshot: int | None = None,
        time_retained_millis: int | None = None,
        **options: Unpack[CommitOptions],
    ) -> Appended[TableState]:
        """Let an existing tag name another snapshot (the newest when None).

        Example:
            >>> _ = orders.delete_files("a.parquet")
            >>> orders.replace_tag("v1").state.tags["v1"].snapshot_id
            2
        """
        from ledger.decide.changes import ReplaceTag

        change = ReplaceTag(name, snapshot, time_retained_millis)
        return self._handle.commit(["replaceTag", change], options, lambda _: [change])

    @takes(name=its.text)
    def branch(self, name: str) -> TableBranch:
        """Return a branch, which need not be there yet.

        Example:
            >>> audit = orders.branch("audit")
            >>> _ = audit.create()
            >>> _ = audit.delete_files("a.parquet")
            >>> audit.fast_forward().state.totals.record_count
            0
        """
        return TableBranch(self._handle, name)

    @takes(name=its.text)
    def create_branch(self, name: str, **options: Any) -> Appended[TableState]:
        """Make a branch; see `TableBranch.create`, whose arguments it takes.

        Example:
            >>> orders.create_branch("audit", tag="v1").state.branches["audit"].base_snapshot_id
            1
        """
        return self.branch(name).create(**options)

    @takes(name=its.text)
    def delete_tag(self, name: str, **options: Unpack[CommitOptions]) -> Appended[TableState]:
        """Take a tag away; its snapshot stays unless it was expired.

        Example:
            >>> dict(orders.delete_tag("v1").state.tags)
            {}
        """
        from ledger.decide.changes import DeleteTag

        return self._handle.commit(["deleteTag", name], options, lambda _: [DeleteTag(name)])

    @takes(protocol=PROTOCOL.or_none())
    def start_serving(
        self, protocol: ServingProtocol | None = None, **options: Unpack[CommitOptions]
    ) -> Appended[TableState]:
        """Let engines commit the table's data through a server from now on.

        Ids and live files stay. The library may still change metadata, and commits no lists of
        data files until `stop_serving`. A table that is served through the protocol already stays
        as it is.

        Args:
            protocol: `iceberg` (Iceberg REST) or `paimon` (the Paimon REST API); None: that of the
                one format that the table declares.
            options: See CommitOptions.

        Raises:
            InvalidInputError: No protocol is named, and the table declares several formats.
            InvalidChangeError: The table does not declare the protocol's format, declares another
                format, is served through another protocol, or follows a source: that one is
                promoted first, `Ledger.promote(name, protocol=...)`.

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

    @takes(protocol=PROTOCOL.or_none())
    def plan_serving(self, protocol: ServingProtocol | None = None) -> Owner:
        """Return the owner that `start_serving` would give, or raise what it would.

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
        """Take the table back from engines: the library commits its data again.

        A commit of an engine that is based on an earlier version is rejected from then on, also
        when the table is served again later. Where the manifests of engines list the live files, a
        snapshot beside it lists them for the ledger. A table that is not served, and follows no
        source, stays as it is.

        Args:
            options: See CommitOptions.

        Raises:
            InvalidChangeError: The table follows a source; `Ledger.promote` owns it.
            UnsupportedError: Only engines can write what the table needs; nothing was written.
            CommitConflictError: Others committed while its files were listed; ask again.

        Example:
            >>> _ = orders.alter([ledger.SetOption("ledger.formats", "iceberg")])
            >>> _ = orders.start_serving("iceberg")
            >>> str(orders.stop_serving().state.owner)
            'ledger'
        """
        from ledger.table_writes import stop_serving

        return stop_serving(self._handle, options)

    def plan_stop_serving(self) -> Owner:
        """Return the owner that `stop_serving` would give, or raise what it would.

        Nothing is written.

        Example:
            >>> orders.plan_stop_serving().kind
            'ledger'
        """
        from ledger.table_writes import plan_stop_serving

        return plan_stop_serving(self._handle)

    @takes(before=its.count)
    def expire_snapshots(
        self, *, before: int, **options: Unpack[CommitOptions]
    ) -> Appended[TableState]:
        """Expire the snapshots with ids below `before`; tagged ones stay, no file is deleted.

        By age: `before=table.at(timestamp=...).snapshot.id` keeps what stood then, and all since.

        Example:
            >>> _ = orders.delete_files("a.parquet")
            >>> state = orders.expire_snapshots(before=2).state
            >>> state.earliest_snapshot_id, orders.at(tag="v1").totals.record_count
            (2, 2)
        """
        from ledger.decide.changes import ExpireSnapshots

        change = ExpireSnapshots(before)
        return self._handle.commit(["expireSnapshots", before], options, lambda _: [change])

    @takes(snapshot=its.whole, path=its.text, file_size_in_bytes=its.whole)
    def set_partition_statistics(
        self, snapshot: int, path: str, file_size_in_bytes: int, **options: Unpack[CommitOptions]
    ) -> Appended[TableState]:
        """Let a snapshot have a file of statistics by partition, which stands on the store already.

        Args:
            snapshot: Its id.
            path: Of the file: below the table's location, or absolute.
            file_size_in_bytes: Of the file.
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

    @takes(
        snapshot=its.whole,
        path=its.text,
        file_size_in_bytes=its.whole,
        footer_size_in_bytes=its.whole,
        blobs=its.many("several BlobMetadata"),
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
        """Let a snapshot have a Puffin file of statistics, which stands on the store already.

        Iceberg's readers find it in the table's metadata; one that the snapshot had goes.

        Args:
            snapshot: Its id.
            path: Of the file: below the table's location, or absolute.
            file_size_in_bytes: Of the file.
            footer_size_in_bytes: Of what stands behind its last blob.
            blobs: What they say, of which columns.
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

    @takes(true_time=its.moment.or_none())
    def plan_clock_correction(self, true_time: datetime | int | None = None) -> ClockPlan:
        """Return what `correct_clock` would say; nothing is written.

        Example:
            >>> orders.plan_clock_correction()
            Traceback (most recent call last):
            ledger.model.errors.InvalidChangeError: ...
        """
        from ledger.table_writes import plan_clock_correction

        return plan_clock_correction(self._handle, true_time)

    @takes(true_time=its.moment.or_none())
    def correct_clock(
        self, true_time: datetime | int | None = None, **options: Unpack[CommitOptions]
    ) -> Appended[TableState]:
        """Say that the commits so far took effect no later than at the true time.

        For a table that got commits by a clock that was ahead: reading by `timestamp=` is right
        again, for moments before, inside and after the range that is wrong.

        Args:
            true_time: When they happened, at the latest: a datetime with a time zone or Unix
                milliseconds; None for now, by this machine's clock.
            options: See CommitOptions.

        Raises:
            InvalidChangeError: No commit is ahead of that time.
            InvalidInputError: It lies in the future.
            CommitConflictError: Somebody else corrected the clock to another time meanwhile.

        Example:
            >>> orders.correct_clock()
            Traceback (most recent call last):
            ledger.model.errors.InvalidChangeError: ...
        """
        from ledger.table_writes import correct_clock

        return correct_clock(self._handle, true_time, options)

    @takes(format_name=its.text, version=its.whole.or_none())
    def project(self, format_name: str, *, version: int | None = None) -> int:
        """Bring a format's files, such as "paimon", up to a version; return where they stand.

        Example:
            >>> orders.project("iceberg")
            2
        """
        from ledger.formats import part

        return int(part(format_name, "project")(self._handle, version=version))

    def freshness(self) -> list[Freshness]:
        """Return how far behind the files of each format are that follows the table.

        Formats follow that the option `ledger.follow` names.

        Example:
            >>> orders.freshness()
            []
        """
        return freshness(self._handle)


def _load_writes() -> None:
    import ledger.table_writes  # noqa: F401 - for the child, which cannot wait for the importer


if hasattr(os, "register_at_fork"):
    # A child that is forked while another thread imports waits for that thread for ever.
    os.register_at_fork(before=_load_writes)
