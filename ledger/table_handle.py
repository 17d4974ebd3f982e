"""Internal handle of a table: its log, its caches, its commit path.

`Table`, `TableBranch` and `TableAt` hold one as `_handle`; so do the packages of formats and the
command line, which get it by `handle_of`. A write goes one way: the public method builds a request
and a plan, `TableHandle.commit` lets `ledger.decide` turn the plan into events, the log appends
them, the store keeps them. Nothing below a handle knows a public class.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property, partial
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar, Unpack, get_args

from attrs import evolve

from ledger.events import SchemaChange, SpecChange, TableEvent
from ledger.events.commit import Commit
from ledger.events.snapshots import ListingEvent
from ledger.files.change_lists import (
    event_files,
    refuse_stale,
)
from ledger.files.live import NamedInLog
from ledger.following.files import follow
from ledger.history.older import (
    TableLog,
    on_branch,
    schema_of_snapshot,
    schemas,
    state_at_snapshot,
)
from ledger.locations import is_absolute
from ledger.log.append import Appender
from ledger.log.request import Appended, CommitOptions, Request, find_commit, noting, request_of
from ledger.log.time_travel import at_timestamp, at_version, head_state
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
)
from ledger.model.names import Identifier, whole_path
from ledger.model.schema import Schema, paths_of
from ledger.observing.telemetry import traced_commit
from ledger.opening.context import OpenedTable, Plan, TableSetting, catalog_stream
from ledger.state.stream import AlreadyCommitted, Intent
from ledger.state.table import TableState
from ledger.stores.file_access import FileAccess

# What only some calls need is imported by them: to read starts fast.
if TYPE_CHECKING:
    from ledger.audit.column_history import ColumnHistories
    from ledger.audit.listings import RunningSums
    from ledger.decide import changes as table_changes
    from ledger.decide.change_json import as_table_change
    from ledger.decide.commit_policies import CommitContext, DatabasePolicy
    from ledger.decide.conflicts import RecentlyTouched
    from ledger.decide.table import Judged, TableIntent
    from ledger.formats import INSTALLED
    from ledger.plan import ChangePlan
    from ledger.state.columns import PastColumns

H_co = TypeVar("H_co", covariant=True)

GivenChanges = Sequence[SchemaChange | SpecChange | Mapping[str, Any]]
"""Changes of a table as callers have them: objects, or decoded JSON."""


class HasHandle(Protocol[H_co]):
    """A public object: `Ledger`, `Table`, `TableBranch` or `TableAt`."""

    @property
    def _handle(self) -> H_co: ...


def handle_of(public: HasHandle[H_co]) -> H_co:
    """Return the internal handle of a public object.

    The one way for the packages of formats, the command line and tests to reach what users do not
    call; a handle's members may change with any release.

    Args:
        public: A `Ledger`, which has a `LedgerHandle`; a `Table`, `TableBranch` or `TableAt`, which
            have a `TableHandle`.

    Example:
        >>> import ledger
        >>> lake = ledger.open("memory://handle-of")
        >>> _ = lake.create_database("shop")
        >>> orders = lake.create_table("shop.orders", {"id": "BIGINT"})
        >>> handle_of(orders).log.head.state == orders.state
        True
    """
    return public._handle  # noqa: SLF001 - the one place that reaches it


class TableHandle:
    """One table's log, with what is known of it and kept beside it, and its commit path.

    A handle stays with its table through renames, and is safe to share between threads.

    Attributes:
        identifier: The table's name when it was opened.
        path: Its folder, as the catalog has it.
        setting: What it shares with its ledger.
        log: Its stream.
        live: Its live files.
        past: What it was.
        appender: Appends to the log.
    """

    def __init__(self, identifier: Identifier, path: str, setting: TableSetting) -> None:
        self.identifier = identifier
        self.path = path
        self.setting = setting
        opened = OpenedTable.at(path, setting)
        self.log, self.live, self.past = opened.log, opened.live, opened.past
        # Whether a commit may come, wherever the ledger was found; nobody else finds memory.
        self._is_looked_at = setting.store.url.startswith("memory://")
        self.appender: Appender[TableState, TableEvent] = Appender(
            self.log, setting.now_millis, setting.retry_policy, refuse_stale
        )

    def __reduce__(self) -> tuple[Any, ...]:
        # Elsewhere it is opened anew: threads and what was read stay here.
        return type(self), (self.identifier, self.path, self.setting)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.identifier)!r}, {self.location!r})"

    @property
    def location(self) -> str:
        """The absolute URL that the table's files are named by, whichever way led to it."""
        return self.setting.shown_at or self.data_location

    @property
    def data_location(self) -> str:
        """The absolute URL that relative paths of data files are below."""
        inside = self.log.layout.folder
        return f"{self.setting.home}/{inside}" if inside else self.log.store.url

    def shown_at(self, location: str) -> TableHandle:
        """Return a handle whose files of formats are made for another place; data files stay."""
        return type(self)(self.identifier, self.path, evolve(self.setting, shown_at=location))

    @property
    def folder(self) -> str:
        """The absolute URL by which the table's folder was opened, where an alias may lead."""
        inside = self.log.layout.folder
        return f"{self.log.store.url}/{inside}" if inside else self.log.store.url

    def reached(self, location: str) -> str:
        """Return how a URL below the ledger's root is reached by the way that it was opened."""
        home, here = self.setting.home, self.ledger_url
        if home == here or not location.startswith(f"{home}/"):
            return location
        return here + location.removeprefix(home)

    def read_file(self, path: str) -> bytes | None:
        """Return a file of the table's, by the path that the log has.

        None where it is gone, or lies where nobody allowed to read.

        Raises:
            StoreError: It is no regular file, or cannot be read.
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
        """Permission to open the files that the table's log names."""
        return self.setting.file_access(self.location)

    @property
    def ledger_url(self) -> str:
        """The root of the ledger that the table is in."""
        return self.setting.store.url

    @property
    def storage_options(self) -> Mapping[str, Any]:
        """What fsspec takes for files beside the log."""
        return self.setting.storage_options

    def may_fetch(self, location: str) -> bool:
        """Whether a data file may be read there: a log may name any place, and not all are its.

        On the ledger's own kind of storage, and on the table's, it may; elsewhere where whoever
        opened the ledger allowed it by name. A chain of file systems is no place.
        """
        return self.file_access.permits(location)

    @property
    def state(self) -> TableState:
        """The newest state, after reading what others appended since the last look."""
        self.log.refresh()
        return head_state(self.log)

    def state_at(self, head: TableState, instant: Instant | None) -> TableState:
        """Return the state at an instant, as a head sees it.

        Raises:
            NotFoundError: It does not exist, or was expired; the message says what does.
        """
        return self.instant(head, instant)[0]

    def instant(self, head: TableState, instant: Instant | None) -> tuple[TableState, Schema]:
        """Return the state at an instant, as a head sees it, and the schema to read it with.

        Raises:
            NotFoundError: As of `state_at`.
        """
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
        return state, state.schema

    def _at_snapshot(self, head: TableState, snapshot_id: int) -> tuple[TableState, Schema]:
        if not head.reachable(snapshot_id):
            known = head.origin.readable_range(head)
            raise NotFoundError(
                f"snapshot {snapshot_id} does not exist or was expired; there are {known}. "
                "Its commit can still be read by version="
            )
        state = state_at_snapshot(self.log, snapshot_id)
        return state, schema_of_snapshot(self.log, state)

    def branch_instant(
        self, head: TableState, instant: Instant | None, branch: str
    ) -> tuple[TableState, Schema]:
        """Return what a branch showed at an instant, and the table's schema then.

        Raises:
            NotFoundError: As of `state_at`, or the branch did not exist.
        """
        then = self.state_at(head, instant)
        return on_branch(self.log, then, branch), then.schema

    def events(self, first: int = 0, last: int | None = None) -> Iterator[Commit[TableEvent]]:
        """Yield the commits `first` to `last` (the head when None), with all their events.

        Raises:
            NotFoundError: `last` does not exist yet.
        """
        head = self.state.version
        end = head if last is None else last
        if end > head:
            raise NotFoundError(f"version {end} does not exist; the newest is {head}")
        return self.log.personal.resolve_each(read.commit for read in self.log.commits(first, end))

    def summed(
        self, commits: Iterable[Commit[TableEvent]], sums: RunningSums
    ) -> Iterator[Commit[TableEvent]]:
        """Yield commits, once their changes of files are counted."""
        for commit in commits:
            sums.take(self.log.personal.columns.opened(self.live.changes_of(commit)))
            yield commit

    def schemas(self) -> Iterator[Schema]:
        """Yield every schema that the table ever had, newest first."""
        self.log.refresh()
        return schemas(self.log)

    def files_at(self, state: TableState) -> tuple[FileChange, ...]:
        """Return the live files of a state; see `TableAt.files`."""
        if not state.lists_files:
            return self.files_of_engines(state)
        return tuple(self.log.personal.columns.opened(self.live.at_state(state).values()))

    def engine_files_at(self, state: TableState) -> tuple[FileChange, ...]:
        """Return the live files of a state as engines may read of them.

        Bounds of personal columns are left out.

        Raises:
            UnsupportedError: As of `TableAt.files`.
        """
        if not state.lists_files:
            return self.files_of_engines(state)
        return tuple(self.log.personal.columns.rendered(self.live.at_state(state).values()))

    def files_of_engines(self, state: TableState) -> tuple[FileChange, ...]:
        """Return the live files that engines' manifests list; raises as `TableAt.files`."""
        from ledger.formats import part

        # The ledger lists those of what it made itself.
        read = part(state.origin.format_name, "engine_files")
        found: tuple[FileChange, ...] = read(self, state)
        return found

    def past_columns(self, state: TableState) -> PastColumns | None:
        """Return every column that the table had up to a state; None where none can come back.

        None of another table's comes back here.
        """
        is_own = state.table_id == head_state(self.log).table_id
        return self.past.columns(state) if is_own else None

    def find_commit(self, commit_id: str) -> Commit[TableEvent] | None:
        """Return the commit that holds what was asked under an id; None: it has not landed."""
        return find_commit(self.log, commit_id)

    def committed_before(self, commit_id: str | None, asked: Any) -> Appended[TableState] | None:
        """Return what was asked in these words under an id, if it landed; see CommitOptions.

        For a caller that works out what to commit from the table as it is, which may be something
        else, or nothing at all, by the time that the call is repeated.
        """
        options: CommitOptions = {} if commit_id is None else {"commit_id": commit_id}
        return self.appender.commit_lookup.of_words(self.request(asked, options))

    def column_lives(self, path: tuple[str, ...] = ()) -> ColumnHistories:
        """Return the columns that are there, and what else was ever at a path."""
        from ledger.audit.column_history import RequestedHistories, column_histories

        head = self.state
        there = dict(paths_of(head.schema))
        is_older = bool(path) and path not in there
        asked = (
            RequestedHistories(path=path)
            if is_older
            else RequestedHistories(ids=frozenset(there.values()))
        )
        return column_histories(self.log, head.version, asked)

    def column_id(self, column: str | Sequence[str]) -> int:
        """Return the field id of a column, by any name that it ever had; see `Table.column_id`."""
        from ledger.audit.blame import blame_column

        path = whole_path(column) if isinstance(column, str) else tuple(column)
        now = dict(paths_of(self.state.schema))
        found = now.get(path)
        return blame_column(self.column_lives(path), path).field_id or 0 if found is None else found

    def alter(self, changes: GivenChanges, options: CommitOptions) -> Appended[TableState]:
        """Change the schema, options, comment or layout; see `Table.alter`."""
        asked = self._asked(changes)
        return self.commit(["alter", asked], options, lambda _: asked)

    def plan(self, changes: GivenChanges) -> ChangePlan:
        """Return what `alter` would do with these changes; see `Table.plan`."""
        from ledger.decide.commit_policies import CommitContext
        from ledger.formats import INSTALLED
        from ledger.plan import plan_changes

        context = CommitContext(
            self.setting.author, None, self.setting.now_millis, self._database_policy()
        )
        return plan_changes(self.state, self._asked(changes), self.past, INSTALLED, context)

    def _asked(self, changes: GivenChanges) -> tuple[SchemaChange | SpecChange, ...]:
        load_what_commits_need()
        asked = tuple(map(as_table_change, changes))
        if not asked:
            raise InvalidInputError(f"{self.identifier}: no changes were given; name at least one")
        return asked

    def seal(self, **options: Unpack[CommitOptions]) -> Appended[TableState]:
        """Write the last event of the table's stream; `Ledger.drop_table` does the rest."""
        load_what_commits_need()
        end = table_changes.DropTable(self.identifier.database, self.identifier.name)
        return self.commit(["dropTable"], options, lambda _: [end])

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
        """
        from ledger.decide.recorded_values import check_said
        from ledger.decide.table import EventsDecided

        request = self.request(list(change), options)
        context = self._context(request)
        context = CommitContext(
            context.author, context.message, context.now_millis, self._database_policy()
        )

        def checked(state: TableState) -> tuple[TableEvent, ...]:
            events = decide(state)
            check_said(events, str(self.identifier))
            return events

        return self.append(EventsDecided(checked, context), request)

    def again(self) -> TableHandle:
        """Return another handle on the same table, which shares nothing with this one."""
        return type(self)(self.identifier, self.path, self.setting)

    def request(self, asked: Any, options: CommitOptions) -> Request:
        """Return the envelope of a commit, by the setting's author where no other is given."""
        return request_of(options, asked=asked, default_author=self.setting.author)

    def commit(
        self,
        asked: Any,
        options: CommitOptions,
        plan: Plan,
        base: TableState | None = None,
        previous_requests: Iterable[Any] = (),
    ) -> Appended[TableState]:
        """Commit what a plan means on `base`: by default on the state that this handle holds.

        Args:
            asked: What tells one request from another under the same commit id.
            options: See CommitOptions.
            plan: From the newest state that is known to the changes.
            base: The state to plan on.
            previous_requests: How the same was asked before; it is looked at where the id is known.
        """
        return self.commit_request(self.request(asked, options), plan, base, previous_requests)

    def commit_request(
        self,
        request: Request,
        plan: Plan,
        base: TableState | None = None,
        previous_requests: Iterable[Any] = (),
    ) -> Appended[TableState]:
        """Commit what a plan means, for an envelope that stands already.

        `otherwise` is how the same was asked before; it is looked at where the id is known.
        """

        def committed() -> Appended[TableState]:
            try:
                return self._committed(request, plan, base)
            except InvalidInputError:
                found = self.appender.commit_lookup.previous_digests(request, previous_requests)
                if found is None:
                    raise
                return found

        return self._traced(request, committed)

    def append(
        self, intent: Intent[TableState, TableEvent], request: Request
    ) -> Appended[TableState]:
        """Append what an intent becomes on the newest state, without a plan."""
        return self._traced(request, lambda: self.appender.append(intent, request))

    def _traced(
        self, request: Request, append: Callable[[], Appended[TableState]]
    ) -> Appended[TableState]:
        with noting(request):
            return traced_commit(append, stream=self.log, commit_id=request.commit_id)

    def _committed(
        self, request: Request, plan: Plan, base: TableState | None
    ) -> Appended[TableState]:
        head = self.log.head
        held = self.state if head is None or request.expect_version is not None else head.state
        held = base or held
        is_alone = request.expect_version is not None or not self.appender.is_outrun
        found = self._decided(request, plan, held, base, "now" if is_alone else "later")
        try:
            return self._sent(found, request)
        except (InvalidInputError, NotFoundError, AlreadyExistsError, CommitConflictError) as error:
            is_outrun = isinstance(error, CommitConflictError) and error.winner is None
            if isinstance(found, AlreadyCommitted | Appended) or found.is_judged or is_outrun:
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
    ) -> TableIntent | AlreadyCommitted | Appended[TableState]:
        context = self._context(request)
        try:
            return self.intent(held, plan, context, judged)
        except LedgerError:
            # What contradicts a stale state may be fine by now, or be this very request, landed.
            committed = self.appender.commit_lookup.before(request)
            if committed is not None:
                return committed
            newest = self.state
            if base is not None or newest.version == held.version:
                raise
            return self.intent(newest, plan, context)

    def _sent(
        self, found: TableIntent | AlreadyCommitted | Appended[TableState], request: Request
    ) -> Appended[TableState]:
        if isinstance(found, Appended):
            return found
        if isinstance(found, AlreadyCommitted):
            return self.appender.commit_lookup.acknowledge(found.version, request)
        self._refuse_untold()
        committed = self.appender.append(found, request)
        follow(self)
        return committed

    def _refuse_untold(self) -> None:
        """Refuse to commit where the ledger was found elsewhere, and is tied to where it was.

        Raises:
            InvalidChangeError: It is, and nobody said what happened.
        """
        where, here = self.setting.root_location, self.ledger_url
        if where.is_recorded_at(here) or self._is_looked_at:
            return
        from ledger.relocation.moving import untold

        error = untold(self, where.place, where.others(here))
        if error is not None:
            # Somebody may have said what happened since this handle was opened.
            catalog = catalog_stream(self.setting.store).refresh()
            if catalog is not None:
                where.learn(catalog)
            if not where.is_recorded_at(here):
                raise error
        self._is_looked_at = True

    def _context(self, request: Request) -> CommitContext:
        load_what_commits_need()
        return CommitContext(request.author, request.message, self.setting.now_millis)

    def intent(
        self,
        base: TableState,
        plan: Plan,
        context: CommitContext | None = None,
        judged: Judged = "now",
    ) -> TableIntent | AlreadyCommitted:
        """Return what a plan means on a state, ready to be decided; or where it landed."""
        load_what_commits_need()
        self.past.keep([base.schema])
        changes = plan(base)
        if isinstance(changes, AlreadyCommitted):
            return changes
        if context is not None and not _RULED.isdisjoint(map(type, changes)):
            context = CommitContext(
                context.author, context.message, context.now_millis, self._database_policy()
            )
        return TableIntent(
            changes,
            base,
            self._touched,
            self.past,
            INSTALLED,
            context=context,
            judged=judged,
        )

    def _database_policy(self) -> DatabasePolicy:
        """Return what the table's database asks: read in the thread of whoever asks."""
        head = self.log.head
        setting = self.setting
        table_id = head.state.table_id if head else ""
        return setting.database_policies.of(setting.store, table_id)

    @cached_property
    def _touched(self) -> RecentlyTouched:
        """What the last few commits touched, as all intents of this handle ask for it."""
        from ledger.decide.conflicts import RecentlyTouched

        logged_files = partial(_logged_files, self.log)
        return RecentlyTouched(logged_files, NamedInLog(self.log, self.live.names))


def _logged_files(log: TableLog, event: ListingEvent) -> list[FileChange]:
    """Return the file changes of a snapshot with the values that are kept of them."""
    return log.personal.columns.opened(event_files(log.store, log.layout, event))


_RULED: Final = frozenset(get_args(SchemaChange | SpecChange))
"""What rules of databases are about."""


@cache
def load_what_commits_need() -> None:
    """Import what deciding takes, which reading does without."""
    global INSTALLED, CommitContext, TableIntent, as_table_change, table_changes  # noqa: PLW0603
    import ledger.files.snapshot_plan
    import ledger.log.personal_data  # noqa: F401 - the calls that need them import them by name
    from ledger.decide import changes as table_changes
    from ledger.decide.change_json import as_table_change
    from ledger.decide.commit_policies import CommitContext
    from ledger.decide.table import TableIntent
    from ledger.formats import INSTALLED

    INSTALLED.load()


if hasattr(os, "register_at_fork"):
    # A child that is forked while another thread imports waits for that thread for ever.
    os.register_at_fork(before=load_what_commits_need)
