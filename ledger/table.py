"""Table: the handle that a user holds on one table."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime
from functools import cache, cached_property, partial
from typing import TYPE_CHECKING, Any, Final, Unpack, get_args

import msgspec
from attrs import evolve
from msgspec import UNSET

from ledger.events import SchemaChange, SpecChange, TableEvent
from ledger.events.commit import Commit
from ledger.events.snapshots import NO_FILES, ChangesReference, ListingEvent, SnapshotCommitted
from ledger.events.table import OwnerSet, ServingProtocol
from ledger.files.change_lists import (
    INLINE_LIMIT,
    commit_files,
    event_files,
    refuse_stale,
    store_changes,
)
from ledger.files.live import NamedInLog
from ledger.following.files import Freshness, follow, freshness
from ledger.history.older import (
    TableLog,
    around,
    on_branch,
    schema_of_snapshot,
    schemas,
    state_at_snapshot,
)
from ledger.locations import is_absolute
from ledger.log.append import Appender
from ledger.log.request import (
    Appended,
    CommitOptions,
    Request,
    find_commit,
    fresh_id,
    noting,
    request_of,
)
from ledger.log.time_travel import at_timestamp, at_version, head_state
from ledger.model import arguments as its
from ledger.model.arguments import takes
from ledger.model.errors import (
    AlreadyExistsError,
    CommitConflictError,
    InvalidInputError,
    LedgerError,
    NotFoundError,
    StoreError,
)
from ledger.model.file_change import FileChange
from ledger.model.instant import (
    Instant,
    SnapshotInstant,
    TagInstant,
    TimestampInstant,
    VersionInstant,
    instant_of,
    millis,
)
from ledger.model.messages import excerpt, html_table
from ledger.model.names import Identifier, whole_path
from ledger.model.schema import Schema, paths_of
from ledger.model.snapshot import CommitKind
from ledger.observing.telemetry import told_commit
from ledger.opening.context import (
    OpenedTable,
    Plan,
    Progress,
    TableSetting,
    catalog_stream,
    no_progress,
)
from ledger.state.stream import Landed
from ledger.state.table import TableState
from ledger.stores.file_access import FileAccess
from ledger.table_at import TableAt
from ledger.table_branch import Paths, TableBranch

# What only some calls need is imported by them: to read starts fast.
if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from ledger.audit.column_history import Lives
    from ledger.audit.difference import TableDiff
    from ledger.audit.entries import Entry
    from ledger.audit.listings import RunningSums
    from ledger.audit.undo import Undoing
    from ledger.audit.views import Blames, Rows
    from ledger.decide import changes as table_changes
    from ledger.decide.change_json import as_table_change
    from ledger.decide.changes import Isolation, TableChange
    from ledger.decide.commit_policies import Asker, House
    from ledger.decide.conflicts import RecentlyTouched
    from ledger.decide.table import Judged, TableIntent
    from ledger.decide.table_options import Marked
    from ledger.files.snapshot_plan import SnapshotPlan
    from ledger.formats import INSTALLED
    from ledger.log.personal_data import Keeping, Writing
    from ledger.model.file_change import PartitionValue
    from ledger.model.iceberg_objects import BlobMetadata
    from ledger.plan import ChangePlan, ClockPlan
    from ledger.planning.filter import Filter
    from ledger.relocation.replaying import Replay, Step
    from ledger.state.columns import PastColumns
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

    A handle stays with its table through renames, and is safe to share between threads.

    In the examples, `orders` is a table of two columns, `id BIGINT` and `addr STRING`, with one
    file of two rows, whose snapshot is tagged `v1`, in the ledger `lake` in memory.
    """

    def __init__(self, identifier: Identifier, path: str, setting: TableSetting) -> None:
        self.identifier = identifier
        self.path = path
        self._setting = setting
        opened = OpenedTable.at(path, setting)
        self.log, self.live, self.past = opened.log, opened.live, opened.past
        # Whether a commit may come, wherever the ledger was found; nobody else finds memory.
        self._is_looked_at = setting.store.url.startswith("memory://")
        self._appender: Appender[TableState, TableEvent] = Appender(
            self.log, setting.now_millis, setting.patience, refuse_stale
        )

    def __reduce__(self) -> tuple[Any, ...]:
        # Elsewhere it is opened anew: threads and what was read stay here.
        return type(self), (self.identifier, self.path, self._setting)

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
    def location(self) -> str:
        """The absolute URL that the table's files are named by, whichever way led to it.

        Example:
            >>> orders.location.endswith("/shop.db/orders")
            True
        """
        return self._setting.shown_at or self.data_location

    @property
    def data_location(self) -> str:
        """The absolute URL that relative paths of data files are below.

        Example:
            >>> orders.data_location == orders.location
            True
        """
        inside = self.log.layout.folder
        return f"{self._setting.home}/{inside}" if inside else self.log.store.url

    @takes(location=its.text)
    def shown_at(self, location: str) -> Table:
        """Return a handle whose files of formats are made for another place; data files stay.

        Example:
            >>> elsewhere = orders.shown_at("memory://elsewhere")
            >>> elsewhere.location, elsewhere.data_location == orders.location
            ('memory://elsewhere', True)
        """
        return type(self)(self.identifier, self.path, evolve(self._setting, shown_at=location))

    @property
    def setting(self) -> TableSetting:
        """What the table shares with its ledger.

        Example:
            >>> orders.setting.store.url == lake.url
            True
        """
        return self._setting

    @property
    def folder(self) -> str:
        """The absolute URL by which the table's folder was opened, where an alias may lead.

        Example:
            >>> orders.folder == orders.location
            True
        """
        inside = self.log.layout.folder
        return f"{self.log.store.url}/{inside}" if inside else self.log.store.url

    @takes(location=its.text)
    def reached(self, location: str) -> str:
        """Return how a URL below the ledger's root is reached by the way that it was opened.

        Example:
            >>> orders.reached("s3://elsewhere/a")
            's3://elsewhere/a'
        """
        home, here = self._setting.home, self.ledger_url
        if home == here or not location.startswith(f"{home}/"):
            return location
        return here + location.removeprefix(home)

    @takes(path=its.text)
    def read_file(self, path: str) -> bytes | None:
        """Return a file of the table's, by the path that the log has.

        None where it is gone, or lies where nobody allowed to read.

        Raises:
            StoreError: It is no regular file, or cannot be read.

        Example:
            >>> orders.read_file("no-such-file") is None
            True
        """
        try:
            if not is_absolute(path):
                return self.log.store.read(self.log.layout.key_of(path))
            where, access = self.reached(path), self.file_access
            return access.read(where) if access.permits(where) else None
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StoreError(f"{path} cannot be read: {error}") from error

    @property
    def file_access(self) -> FileAccess:
        """Permission to open the files that the table's log names.

        Example:
            >>> orders.file_access.permits("s3://somewhere/else.parquet")
            False
        """
        return self._setting.file_access(self.location)

    @property
    def ledger_url(self) -> str:
        """The root of the ledger that the table is in.

        Example:
            >>> orders.ledger_url == lake.url
            True
        """
        return self._setting.store.url

    @property
    def storage_options(self) -> Mapping[str, Any]:
        """What fsspec takes for files beside the log.

        Example:
            >>> orders.storage_options
            {}
        """
        return self._setting.storage_options

    @takes(location=its.text)
    def may_fetch(self, location: str) -> bool:
        """Whether a data file may be read there: a log may name any place, and not all are its.

        On the ledger's own kind of storage, and on the table's, it may; elsewhere where whoever
        opened the ledger allowed it by name. A chain of file systems is no place.

        Example:
            >>> orders.may_fetch("s3://somewhere/else.parquet")
            False
        """
        return self.file_access.permits(location)

    @property
    def state(self) -> TableState:
        """The newest state, after reading what others appended since the last look.

        Example:
            >>> orders.state.version, orders.state.schema.names
            (2, ('id', 'addr'))
        """
        self.log.refresh()
        return head_state(self.log)

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
            return self._at(head, instant)
        if isinstance(instant, SnapshotInstant | TagInstant):
            raise InvalidInputError(f"{instant} and branch {branch} were both named; name one")
        then = self._at(head, instant).state
        return TableAt(on_branch(self.log, then, branch), then.schema, self)

    def state_at(self, head: TableState, instant: Instant | None) -> TableState:
        """Return the state at an instant, as a head sees it.

        Example:
            >>> orders.state_at(orders.state, None).version
            2
        """
        return self._at(head, instant).state

    def _at(self, head: TableState, instant: Instant | None) -> TableAt:
        match instant:
            case None:
                state = head
            case VersionInstant(version=version):
                state = at_version(self.log, version)
            case TimestampInstant(timestamp_millis=moment):
                state = at_timestamp(self.log, moment)
            case TagInstant(tag_name=name):
                return self._at_snapshot(head, head.tag(name).snapshot_id)
            case SnapshotInstant(snapshot_id=snapshot_id):
                return self._at_snapshot(head, snapshot_id)
        return TableAt(state, state.schema, self)

    def _at_snapshot(self, head: TableState, snapshot_id: int) -> TableAt:
        if not head.reachable(snapshot_id):
            known = head.origin.readable_range(head)
            raise NotFoundError(
                f"snapshot {snapshot_id} does not exist or was expired; there are {known}. "
                "Its commit can still be read by version="
            )
        state = state_at_snapshot(self.log, snapshot_id)
        return TableAt(state, schema_of_snapshot(self.log, state), self)

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
        self.log.refresh()
        return schemas(self.log)

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
        head = self.state.version
        end = head if last is None else last
        if end > head:
            raise NotFoundError(f"version {end} does not exist; the newest is {head}")
        return self.log.personal.each_told(read.commit for read in self.log.commits(first, end))

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
        found = Replay(self, first, last)
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
        return find_commit(self.log, commit_id)

    @takes(commit_id=its.text.or_none())
    def landed_before(self, commit_id: str | None, asked: Any) -> Appended[TableState] | None:
        """Return what was asked in these words under an id, if it landed; see CommitOptions.

        For one who works out what to commit from the table as it is, which may be something else,
        or nothing at all, by the time that he asks again.

        Example:
            >>> asked = ["the oldest file goes"]
            >>> oldest = orders.at().files[0].path
            >>> _ = orders.delete_files(oldest, commit_id="monday", asked=asked)
            >>> orders.landed_before("monday", asked).version, orders.landed_before("monday", [])
            (3, None)
        """
        options: CommitOptions = {} if commit_id is None else {"commit_id": commit_id}
        return self._appender.landings.of_words(self._request(asked, options))

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
        asked = self._asked(changes)
        return self._commit(["alter", asked], options, lambda _: asked)

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
        return self._commit(
            ["sql", action_of(statement)],
            options,
            lambda state: on_state(asked_of(statement, self.identifier), state),
            otherwise=[["sql", statement]],
        )

    def update_schema(self) -> UpdateSchema:
        """Begin an update of the schema, Iceberg's way; end it with `.commit()` or `.apply()`.

        Example:
            >>> orders.update_schema().rename_column("addr", "address").commit().state.schema.names
            ('id', 'address')
        """
        from ledger.updates import UpdateSchema

        return UpdateSchema(self.state, self._commit, self._intent)

    def update_spec(self) -> UpdateSpec:
        """Begin a change of the partition spec; end it with `.commit()` or `.apply()`.

        Example:
            >>> from ledger.transforms import bucket
            >>> orders.update_spec().add_field(bucket("id", 8)).commit().version
            3
        """
        from ledger.updates import UpdateSpec

        return UpdateSpec(self)

    def replace_sort_order(self) -> ReplaceOrder:
        """Begin another sort order; end it with `.commit()` or `.apply()`.

        Example:
            >>> orders.replace_sort_order().asc("id").commit().version
            3
        """
        from ledger.updates import ReplaceOrder

        return ReplaceOrder(self)

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
        from ledger.decide.commit_policies import Asker
        from ledger.formats import INSTALLED
        from ledger.plan import plan_changes

        asker = Asker(self._setting.author, None, self._setting.now_millis, self._house())
        return plan_changes(self.state, self._asked(changes), self.past, INSTALLED, asker)

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
        return TableDiff(one, two, past=partial(self._columns, one))

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
            lives = self._lives()
            return Blames((*blame_columns(lives), *blame_settings(lives)))
        path = whole_path(column) if isinstance(column, str) else tuple(column)
        return Blames((blame_column(self._lives(path), path),))

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

        self.log.refresh()
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
        return entries(self.log, str(self.identifier), wanted)

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
        return snapshot_rows(self.log, state, head.corrections)

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
            commits = self._summed(commits, sums)
        else:
            sums.take(at.files)
        name = str(self.identifier)
        return table_page(name, at.state, commits, self.schemas(), sums.by_path)

    def _summed(
        self, commits: Iterator[Commit[TableEvent]], sums: RunningSums
    ) -> Iterator[Commit[TableEvent]]:
        for commit in commits:
            sums.take(self.log.personal.columns.opened(self.live.changes_of(commit)))
            yield commit

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
        from ledger.audit.blame import blame_column

        path = whole_path(column) if isinstance(column, str) else tuple(column)
        now = dict(paths_of(self.state.schema))
        found = now.get(path)
        return blame_column(self._lives(path), path).field_id or 0 if found is None else found

    def _lives(self, path: tuple[str, ...] = ()) -> Lives:
        """Return the columns that are there, and what else was ever at a path."""
        from ledger.audit.column_history import AskedLives, lives_of

        head = self.state
        there = dict(paths_of(head.schema))
        is_older = bool(path) and path not in there
        asked = AskedLives(path=path) if is_older else AskedLives(ids=frozenset(there.values()))
        return lives_of(self.log, head.version, asked)

    @takes(version=its.whole, transaction=its.text.or_none())
    def plan_undo(self, version: int, *, transaction: str | None = None) -> Undoing:
        """Return what `undo` would do, or why it cannot; nothing is written.

        Example:
            >>> _ = orders.alter([ledger.RenameColumn(("addr",), "address")])
            >>> [each.new_name for each in orders.plan_undo(3).changes]
            ['addr']
        """
        from ledger.audit.undo import undone

        head = self.state
        before, after, _ = around(self.log, version, transaction)
        return undone(before, after, head, self._columns(head))

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
        from ledger.audit.undo import undone

        self.log.refresh()
        before, after, undone_one = around(self.log, version, transaction)
        said = f": {undone_one.message}" if undone_one.message else ""
        given: CommitOptions = {"message": f"undo version {version}{said}", **options}

        def plan(head: TableState) -> Sequence[TableChange]:
            found = undone(before, after, head, self._columns(head))
            return found.wanted(f"version {version} cannot be undone")

        return self._commit(["undo", version, undone_one.id], given, plan)

    def plan_revert(self, to: TableAt | int) -> Undoing:
        """Return what `revert` would do, or why it cannot; nothing is written.

        Example:
            >>> _ = orders.alter([ledger.AddColumn(("note",), "STRING")])
            >>> len(orders.plan_revert(0).changes)
            1
        """
        from ledger.audit.undo import reverted

        head = self.state
        return reverted(self._compared(to), head, self._columns(head))

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
        from ledger.audit.undo import reverted

        then = self._compared(to)
        given: CommitOptions = {"message": f"revert to version {then.version}", **options}

        def plan(head: TableState) -> Sequence[TableChange]:
            found = reverted(then, head, self._columns(head))
            return found.wanted(f"the table cannot go back to {then.version}")

        return self._commit(["revert", then.version, then.schema.id], given, plan)

    def _columns(self, state: TableState) -> PastColumns | None:
        """Return every column that the table had up to a state; None where none can come back.

        None of another table's comes back here.
        """
        is_own = state.table_id == head_state(self.log).table_id
        return self.past.columns(state) if is_own else None

    def _asked(
        self, changes: Sequence[SchemaChange | SpecChange | Mapping[str, Any]]
    ) -> tuple[SchemaChange | SpecChange, ...]:
        load_what_commits_need()
        asked = tuple(map(as_table_change, changes))
        if not asked:
            raise InvalidInputError(f"{self.identifier}: no changes were given; name at least one")
        return asked

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
        return self.commit_snapshot(self.snapshot_plan("APPEND", tuple(files)), **options)

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
        wanted = its.path_texts(paths)
        # What their footers come to hangs on the table as it is, and they may be elsewhere by then.
        asked = options.setdefault("asked", ["addFiles", wanted])
        landed = self.landed_before(options.get("commit_id"), asked)
        return landed or self.append(self.data_files(wanted, on_progress), **options)

    @takes(paths=its.paths, on_progress=its.callback)
    def data_files(
        self, paths: Paths, on_progress: Progress = no_progress
    ) -> tuple[FileChange, ...]:
        """Return what `add_files` would register, without registering it.

        Example:
            >>> [each.record_count for each in orders.data_files([new_file])]
            [2]
        """
        from ledger.files.register import data_files

        return data_files(
            its.path_texts(paths),
            state=self.state,
            history=schemas(self.log),
            location=self.folder,
            storage_options=dict(self._setting.storage_options),
            on_progress=on_progress,
        )

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
            live=self.live,
            version=self.state.version,
            storage_options=dict(self._setting.storage_options),
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
        return self.commit_snapshot(
            self.snapshot_plan("OVERWRITE", delete=tuple(its.path_texts(paths))), **options
        )

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
        plan = self.snapshot_plan("OVERWRITE", tuple(files), where=where or {}, isolation=isolation)
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
        return self.commit_files(plan, options)

    @staticmethod
    def snapshot_plan(
        kind: CommitKind, files: tuple[FileChange, ...] = (), **more: Any
    ) -> SnapshotPlan:
        """Return a SnapshotPlan, with all loaded that committing takes.

        Example:
            >>> orders.snapshot_plan("OVERWRITE", delete=("a.parquet",)).delete
            ('a.parquet',)
        """
        load_what_commits_need()
        from ledger.files.snapshot_plan import SnapshotPlan

        return SnapshotPlan(kind, files, **more)

    def commit_files(
        self, plan: SnapshotPlan, options: CommitOptions, *, branch: str | None = None
    ) -> Appended[TableState]:
        """Commit a snapshot of any kind, to main or to a branch; use `commit_snapshot` of either.

        Example:
            >>> new = ledger.FileChange(path="b.parquet", record_count=2, file_size_in_bytes=80)
            >>> plan = ledger.SnapshotPlan("APPEND", (new,))
            >>> orders.commit_files(plan, {"author": "ann"}).state.totals.record_count
            4
        """
        load_what_commits_need()
        from ledger.log.personal_data import Keeping

        plan = evolve(plan, files=its_files(plan.files))
        keeping = Keeping(self.log.personal.columns)

        def seal(head: TableState, files: Sequence[FileChange]) -> Sequence[FileChange]:
            return self._sealed(head, files, keeping)

        def planned(head: TableState) -> list[TableChange] | Landed:
            seen = head if branch is None else on_branch(self.log, head, branch)
            known = self._known_snapshot(plan, seen)
            opened = self.log.personal.columns.opened
            return known or [plan.on(seen, self.live, self.outsourced, seal, opened)]

        head = self.log.head.state if self.log.head is not None else self.state
        on = [] if branch is None else ["branch", branch]
        asked = ["snapshot", plan.without_values(head, head.schema), *on]
        otherwise = (["snapshot", each, *on] for each in self._asked_before(plan))
        request = self._request(asked, options)
        with noting(request):
            try:
                landed = self._commit_request(request, planned, otherwise=otherwise)
            except (InvalidInputError, CommitConflictError):
                keeping.forget()
                raise
            if landed.repeated and keeping.keys:
                there = self.log.commit_at(landed.version)
                keeping.forget(commit_files(self.log.store, self.log.layout, there))
            return landed

    def _sealed(
        self, head: TableState, files: Sequence[FileChange], keeping: Keeping
    ) -> Sequence[FileChange]:
        """Keep what is personal of files that come; return them as the log may hold them."""
        from ledger.decide.table_options import Marked

        marked = Marked.of(head.schema) if head.keeps_outside else None
        if marked is None:
            return files
        # Planned once more, on a newer state: what was kept for the older one is nobody's.
        keeping.forget()
        return keeping.keep(files, marked, head.spec_by_id, self._writing(head))

    def _writing(self, head: TableState) -> Writing:
        from ledger.log.personal_data import Writing

        return Writing(head.table_id, self._setting.now_millis(), self._setting.patience)

    def _asked_before(self, plan: SnapshotPlan) -> Iterator[SnapshotPlan]:
        """Yield what the digest of a request was of while other columns were personal, or none."""
        if self.state.keeps_outside:
            yield plan
            for schema in self.schemas():
                yield plan.without_values(self.state, schema)

    def outsourced(self, files: Sequence[FileChange]) -> ChangesReference | None:
        """Return where a list of file changes stands that is too long for a commit; else None.

        Example:
            >>> orders.outsourced([]) is None
            True
        """
        if len(files) <= INLINE_LIMIT:
            return None
        # By the time that its commit will have, should that be ahead of this machine's clock.
        head = self.log.head
        newest = head.state.time_millis if head else 0
        now = max(self._setting.now_millis(), newest)
        return store_changes(self.log.store, self.log.layout, files, now)

    def _known_snapshot(self, plan: SnapshotPlan, seen: TableState) -> Landed | None:
        branch = seen.seen_branch
        key = plan.key_on(0 if branch is None else branch.number)
        if key is None:
            return None
        self.log.refresh()
        for version in self.log.last_named(key):
            if key in self.live.keys_of(self.log.commit_at(version)):
                return Landed(version)
        return None

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
        load_what_commits_need()
        if (snapshot is None) == (tag is None):
            raise InvalidInputError("rollback takes one of snapshot= and tag=")

        def plan(head: TableState) -> list[TableChange]:
            then = self._at(head, instant_of(snapshot=snapshot, tag=tag))
            files = self._way_to(head, then)
            target = then.state.last_snapshot_id
            return [
                table_changes.Rollback(
                    target_snapshot_id=target,
                    target_tag_name=tag,
                    commit_user=fresh_id(),
                    files=tuple(self.log.personal.columns.rendered(files)),
                    written=files,
                    reference=self.outsourced(files),
                )
            ]

        return self._commit(["rollback", snapshot, tag], options, plan)

    def _way_to(self, head: TableState, then: TableAt) -> tuple[FileChange, ...]:
        """Return what turns the live files into those of an instant, an engine's, too."""
        if then.state.lists_files:
            return self.live.difference(head, then.state)
        return self.live.difference_to(head, then.engine_files)

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
        load_what_commits_need()
        change = table_changes.CreateTag(name, snapshot, time_retained_millis)
        return self._commit(["createTag", change], options, lambda _: [change])

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
        load_what_commits_need()
        change = table_changes.ReplaceTag(name, snapshot, time_retained_millis)
        return self._commit(["replaceTag", change], options, lambda _: [change])

    @takes(name=its.text)
    def branch(self, name: str) -> TableBranch:
        """Return the handle on a branch, which need not be there yet.

        Example:
            >>> audit = orders.branch("audit")
            >>> _ = audit.create()
            >>> _ = audit.delete_files("a.parquet")
            >>> audit.fast_forward().state.totals.record_count
            0
        """
        return TableBranch(self, name)

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
        load_what_commits_need()
        return self._commit(["deleteTag", name], options, lambda _: [table_changes.DeleteTag(name)])

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
        load_what_commits_need()
        asked = ["startServing", protocol]
        return self._commit(asked, options, partial(_served, protocol), self.state)

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
        load_what_commits_need()
        return self._planned_owner(self.state, partial(_served, protocol))

    def _planned_owner(self, state: TableState, plan: Plan) -> Owner:
        found = self._intent(state, plan)
        decided = found if isinstance(found, Landed) else found.decide(state, ())
        events = () if isinstance(decided, Landed) else decided
        set_owner = (each for each in events if isinstance(each, OwnerSet))
        return next((state.owner.after(each, state.version + 1) for each in set_owner), state.owner)

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
        load_what_commits_need()
        asked, state = ["stopServing"], self.state
        if not _needs_adoption(state):
            return self._commit(asked, options, _taken_back, state)
        options.setdefault("asked", asked)
        landed = self.landed_before(options.get("commit_id"), options["asked"])
        if landed is not None:
            return landed
        events = (OwnerSet(owner="ledger"), *self._adoption(state))
        return self.take_over(events, options.get("expect_version", state.version), **options)

    def plan_stop_serving(self) -> Owner:
        """Return the owner that `stop_serving` would give, or raise what it would.

        Nothing is written.

        Example:
            >>> orders.plan_stop_serving().kind
            'ledger'
        """
        load_what_commits_need()
        state = self.state
        if not _needs_adoption(state):
            return self._planned_owner(state, _taken_back)
        self._adoption(state)
        return state.owner.after(OwnerSet(owner="ledger"), state.version + 1)

    def _adoption(self, state: TableState) -> tuple[TableEvent, ...]:
        """Return the events that let the ledger list the files that engines' manifests list."""
        from ledger.formats import part

        events: tuple[TableEvent, ...] = part(state.origin.format_name, "promoter").adoption(self)
        return events

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
        load_what_commits_need()
        return self._commit(
            ["expireSnapshots", before], options, lambda _: [table_changes.ExpireSnapshots(before)]
        )

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
        load_what_commits_need()
        change = table_changes.SetPartitionStatistics(snapshot, path, file_size_in_bytes)
        asked = ["setPartitionStatistics", snapshot, path, file_size_in_bytes]
        return self._commit(asked, options, lambda _: [change])

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
        load_what_commits_need()
        change = table_changes.SetStatistics.of(
            blobs,
            snapshot_id=snapshot,
            statistics_path=path,
            file_size_in_bytes=file_size_in_bytes,
            file_footer_size_in_bytes=footer_size_in_bytes,
        )
        asked = ["setStatistics", msgspec.to_builtins(change.statistics)]
        return self._commit(asked, options, lambda _: [change])

    @takes(true_time=its.moment.or_none())
    def plan_clock_correction(self, true_time: datetime | int | None = None) -> ClockPlan:
        """Return what `correct_clock` would say; nothing is written.

        Example:
            >>> orders.plan_clock_correction()
            Traceback (most recent call last):
            ledger.model.errors.InvalidChangeError: ...
        """
        from ledger.plan import plan_correction

        return plan_correction(self.log, self._setting.now_millis(), true_time)

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
        from ledger.plan import plan_correction

        now = self._setting.now_millis()
        latest = None if true_time is None else millis(true_time)
        when: CommitOptions = {**options, "effective_time": now}
        return self._commit(
            ["correctClock", latest],
            when,
            lambda _: [plan_correction(self.log, now, latest).change],
        )

    def seal(self, **options: Unpack[CommitOptions]) -> Appended[TableState]:
        """Write the last event of the table's stream; `Ledger.drop_table` does the rest.

        Example:
            >>> orders.seal().state.dropped
            True
        """
        load_what_commits_need()
        end = table_changes.DropTable(self.identifier.database, self.identifier.name)
        return self._commit(["dropTable"], options, lambda _: [end])

    @takes(events=its.many("a sequence of events"), base=its.whole)
    def take_over(
        self, events: tuple[TableEvent, ...], base: int, **commit: Unpack[CommitOptions]
    ) -> Appended[TableState]:
        """Commit what the source of a table says that was born elsewhere; for its importers.

        Args:
            events: What happened, folded on the version `base`.
            base: The version that they follow.
            commit: See CommitOptions.

        Raises:
            CommitConflictError: Somebody else has taken over meanwhile.
            InvalidChangeError: The events contradict the table, or it was born here.
            InvalidInputError: They say what no log may hold.

        Example:
            >>> from ledger.events.imported import DeltaFollowed
            >>> _ = lake.import_table("shop.visits", theirs, format_name="delta")
            >>> news = DeltaFollowed(delta_version=1, timestamp_millis=1_700_000_000_000)
            >>> lake.table("shop.visits").take_over((news,), 1).version
            2
        """
        from ledger.decide.recorded_values import check_said
        from ledger.state.iceberg_builder import TakenOver

        state = self.state
        check_said(events, state.origin.source if state.is_mirrored else str(self.identifier))
        asked = ["TakeOver", base]
        said = tuple(map(self._with_list_beside, self._without_values(events)))
        options: CommitOptions = {**commit, "expect_version": base}
        request = self._request(asked, options)
        taken = TakenOver(said, base)
        return self._told(request, lambda: self._appender.append(taken, request))

    def commit_events(
        self,
        change: Sequence[Any],
        decide: Callable[[TableState], tuple[TableEvent, ...]],
        **options: Unpack[CommitOptions],
    ) -> Appended[TableState]:
        """Commit the events that a format's own change becomes; for packages of formats.

        Args:
            change: The change as JSON, to recognise it under its commit id.
            decide: Returns the events on a state; it is called again on each state that the commit
                meets.
            options: See CommitOptions.

        Raises:
            InvalidChangeError: The table follows a source, or a rule forbids the change.
            CommitUnknownError: The store gave no answer.

        Example:
            >>> from ledger.events.schema import SetOption
            >>> orders.commit_events(
            ...     ["owner"], lambda state: (SetOption("owner", "ann"),)
            ... ).state.schema.options["owner"]
            'ann'
        """
        from ledger.decide.recorded_values import check_said
        from ledger.decide.table import EventsDecided

        request = self._request(list(change), options)
        asker = self._asker(request)
        asker = Asker(asker.author, asker.message, asker.now_millis, self._house())

        def checked(state: TableState) -> tuple[TableEvent, ...]:
            events = decide(state)
            check_said(events, str(self.identifier))
            return events

        intent = EventsDecided(checked, asker)
        return self._told(request, lambda: self._appender.append(intent, request))

    def _without_values(self, events: tuple[TableEvent, ...]) -> tuple[TableEvent, ...]:
        """Return events whose files say no value of what the source, too, calls personal."""
        head = self.state
        if not head.keeps_outside:
            return events
        from ledger.files.snapshot_plan import sealed

        def keep(
            files: Sequence[FileChange], marked: Marked, after: TableState
        ) -> Sequence[FileChange]:
            return self.log.personal.columns.keep(
                files, marked, after.spec_by_id, self._writing(head)
            )

        return sealed(events, head, partial(self._listed, head), keep)

    def _listed(self, head: TableState, event: ListingEvent) -> tuple[FileChange, ...]:
        """Return an event's files; what goes says where its values are as it did when it came."""
        files = event_files(self.log.store, self.log.layout, event)
        there = self.live.lookup_at([each.path for each in files if each.kind == "DELETE"], head)
        return tuple(
            msgspec.structs.replace(there[each.path], kind="DELETE") if each.path in there else each
            for each in files
        )

    def _with_list_beside(self, event: TableEvent) -> TableEvent:
        """Return an event whose list of files stands beside the log if it is long."""
        if not isinstance(event, SnapshotCommitted) or event.changes is not UNSET:
            return event
        files = event_files(self.log.store, self.log.layout, event)
        beside = self.outsourced(files)
        if beside is None:
            return event
        return msgspec.structs.replace(event, files=NO_FILES, changes=beside)

    @takes(format_name=its.text, version=its.whole.or_none())
    def project(self, format_name: str, *, version: int | None = None) -> int:
        """Bring a format's files, such as "paimon", up to a version; return where they stand.

        Example:
            >>> orders.project("iceberg")
            2
        """
        from ledger.formats import part

        return int(part(format_name, "project")(self, version=version))

    def freshness(self) -> list[Freshness]:
        """Return how far behind the files of each format are that follows the table.

        Formats follow that the option `ledger.follow` names.

        Example:
            >>> orders.freshness()
            []
        """
        return freshness(self)

    def again(self) -> Table:
        """Return another handle on the same table, which shares nothing with this one.

        Example:
            >>> other = orders.again()
            >>> _ = orders.delete_tag("v1")
            >>> other.state.version
            3
        """
        return type(self)(self.identifier, self.path, self._setting)

    def commit_planned(
        self, asked: Any, options: CommitOptions, plan: Plan
    ) -> Appended[TableState]:
        """Commit what a plan means, for handles on parts of the table.

        Args:
            asked: What tells one request from another under the same commit id.
            options: See CommitOptions.
            plan: From the newest state that is known to the changes.

        Example:
            >>> from ledger.decide.changes import DeleteTag
            >>> orders.commit_planned(["v1"], {}, lambda _: [DeleteTag("v1")]).version
            3
        """
        return self._commit(asked, options, plan)

    def _request(self, asked: Any, options: CommitOptions) -> Request:
        return request_of(options, asked=asked, default_author=self._setting.author)

    def _commit(
        self,
        asked: Any,
        options: CommitOptions,
        plan: Plan,
        base: TableState | None = None,
        otherwise: Iterable[Any] = (),
    ) -> Appended[TableState]:
        """Commit what a plan means on `base`: by default on the state that this handle holds."""
        return self._commit_request(self._request(asked, options), plan, base, otherwise)

    def _commit_request(
        self,
        request: Request,
        plan: Plan,
        base: TableState | None = None,
        otherwise: Iterable[Any] = (),
    ) -> Appended[TableState]:
        """Commit what a plan means, for an envelope that stands already.

        `otherwise` is how the same was asked before; it is looked at where the id is known.
        """

        def landed() -> Appended[TableState]:
            try:
                return self._landed(request, plan, base)
            except InvalidInputError:
                found = self._appender.landings.otherwise(request, otherwise)
                if found is None:
                    raise
                return found

        return self._told(request, landed)

    def _told(
        self, request: Request, append: Callable[[], Appended[TableState]]
    ) -> Appended[TableState]:
        with noting(request):
            return told_commit(append, stream=self.log, commit_id=request.commit_id)

    def _landed(
        self, request: Request, plan: Plan, base: TableState | None
    ) -> Appended[TableState]:
        head = self.log.head
        held = self.state if head is None or request.expect_version is not None else head.state
        held = base or held
        is_alone = request.expect_version is not None or not self._appender.is_outrun
        found = self._decided(request, plan, held, base, "now" if is_alone else "later")
        try:
            return self._sent(found, request)
        except (InvalidInputError, NotFoundError, AlreadyExistsError, CommitConflictError) as error:
            is_outrun = isinstance(error, CommitConflictError) and error.winner is None
            if isinstance(found, Landed | Appended) or found.is_judged or is_outrun:
                raise
        # Refused on what others made of it; what is wrong with it where it was asked comes first.
        return self._sent(self._decided(request, plan, held, base, "now"), request)

    def _decided(
        self,
        request: Request,
        plan: Plan,
        held: TableState,
        base: TableState | None,
        judged: Judged,
    ) -> TableIntent | Landed | Appended[TableState]:
        asker = self._asker(request)
        try:
            return self._intent(held, plan, asker, judged)
        except LedgerError:
            # What contradicts a stale state may be fine by now, or be this very request, landed.
            landed = self._appender.landings.before(request)
            if landed is not None:
                return landed
            newest = self.state
            if base is not None or newest.version == held.version:
                raise
            return self._intent(newest, plan, asker)

    def _sent(
        self, found: TableIntent | Landed | Appended[TableState], request: Request
    ) -> Appended[TableState]:
        if isinstance(found, Appended):
            return found
        if isinstance(found, Landed):
            return self._appender.landings.acknowledge(found.version, request)
        self._refuse_untold()
        landed = self._appender.append(found, request)
        follow(self)
        return landed

    def _refuse_untold(self) -> None:
        """Refuse to commit where the ledger was found elsewhere, and is tied to where it was.

        Raises:
            InvalidChangeError: It is, and nobody said what happened.
        """
        where, here = self._setting.whereabouts, self.ledger_url
        if where.is_recorded_at(here) or self._is_looked_at:
            return
        from ledger.relocation.moving import untold

        error = untold(self, where.place, where.others(here))
        if error is not None:
            # Somebody may have said what happened since this handle was opened.
            catalog = catalog_stream(self._setting.store).refresh()
            if catalog is not None:
                where.learn(catalog)
            if not where.is_recorded_at(here):
                raise error
        self._is_looked_at = True

    def _asker(self, request: Request) -> Asker:
        load_what_commits_need()
        return Asker(request.author, request.message, self._setting.now_millis)

    def _intent(
        self,
        base: TableState,
        plan: Plan,
        asker: Asker | None = None,
        judged: Judged = "now",
    ) -> TableIntent | Landed:
        load_what_commits_need()
        self.past.keep([base.schema])
        changes = plan(base)
        if isinstance(changes, Landed):
            return changes
        if asker is not None and not _RULED.isdisjoint(map(type, changes)):
            asker = Asker(asker.author, asker.message, asker.now_millis, self._house())
        return TableIntent(
            changes,
            base,
            self._touched,
            self.past,
            INSTALLED,
            asker=asker,
            judged=judged,
        )

    def _house(self) -> House:
        """Return what the table's database asks: read in the thread of whoever asks."""
        head = self.log.head
        setting = self._setting
        table_id = head.state.table_id if head else ""
        return setting.houses.of(setting.store, table_id)

    @cached_property
    def _touched(self) -> RecentlyTouched:
        """What the last few commits touched, as all intents of this handle ask for it."""
        from ledger.decide.conflicts import RecentlyTouched

        told = partial(_files_told, self.log)
        return RecentlyTouched(told, NamedInLog(self.log, self.live.names))


def _files_told(log: TableLog, event: ListingEvent) -> list[FileChange]:
    """Return the file changes of a snapshot with the values that are kept of them."""
    return log.personal.columns.opened(event_files(log.store, log.layout, event))


def its_files(files: Iterable[FileChange]) -> tuple[FileChange, ...]:
    """Return files that are FileChanges, every field of them of its type.

    Raises:
        InvalidInputError: One is not; the message says which, and what of it.
    """
    given = tuple(files)
    for index, each in enumerate(given):
        if type(each) is not FileChange:
            raise InvalidInputError(
                f"files[{index}]={excerpt(each)} is no FileChange; write FileChange(path=..., "
                "record_count=..., file_size_in_bytes=...), or let add_files read the footers of "
                "Parquet files; rows are written as Parquet first"
            )
    try:
        # Bytes and moments would be written as texts, and read as if those had been given.
        plain = msgspec.to_builtins(given, builtin_types=(bytes, bytearray, date, datetime))
        return msgspec.convert(plain, tuple[FileChange, ...])
    except (msgspec.ValidationError, TypeError, ValueError, OverflowError, RecursionError) as error:
        raise InvalidInputError(f"files: {error}") from error


_RULED: Final = frozenset(get_args(SchemaChange | SpecChange))
"""What rules of databases are about."""


def _served(protocol: ServingProtocol | None, state: TableState) -> Sequence[TableChange] | Landed:
    """Return the change that lets engines commit data; or where it landed."""
    from ledger.state.owner import chosen_protocol

    owner = state.owner
    if owner.kind == "served" and protocol in {None, owner.protocol}:
        return Landed(owner.since_version)
    # Of a table that follows a source it is refused, whatever the protocol.
    is_chosen = protocol is None and owner.kind == "ledger"
    wanted = chosen_protocol(state.schema.options) if is_chosen else protocol
    return [table_changes.SetOwner("served", wanted)]


def _taken_back(state: TableState) -> Sequence[TableChange] | Landed:
    """Return the change that takes a table back from engines; or where it landed."""
    if state.owner.kind == "ledger":
        return Landed(state.owner.since_version)
    return [table_changes.SetOwner("ledger")]


def _needs_adoption(state: TableState) -> bool:
    """Whether engines' manifests list the files of a served table."""
    return state.owner.kind == "served" and not state.lists_files


@cache
def load_what_commits_need() -> None:
    """Import what deciding takes, which reading does without."""
    global INSTALLED, Asker, TableIntent, as_table_change, table_changes  # noqa: PLW0603
    import ledger.files.snapshot_plan
    import ledger.log.personal_data  # noqa: F401 - the calls that need them import them by name
    from ledger.decide import changes as table_changes
    from ledger.decide.change_json import as_table_change
    from ledger.decide.commit_policies import Asker
    from ledger.decide.table import TableIntent
    from ledger.formats import INSTALLED

    INSTALLED.load()


if hasattr(os, "register_at_fork"):
    # A child that is forked while another thread imports waits for that thread for ever.
    os.register_at_fork(before=load_what_commits_need)
