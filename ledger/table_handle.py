"""Internal handle of a table: its log, its caches, its commit path.

`Table`, `TableBranch` and `TableAt` hold one as `_handle`; so do the packages of formats and the
command line, which get it by `handle_of`. Every write takes the same path: the public method builds
a request and a plan, `TableHandle.commit` lets `ledger.decide` turn the plan into events, the log
appends them, the store writes them. No module below a handle imports a public class.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property, partial
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar, Unpack, get_args

from attrs import evolve

from ledger.events import SchemaChange, SpecChange, TableEvent
from ledger.events.commit import Commit
from ledger.events.schema import RequestedChange
from ledger.events.snapshots import ListingEvent
from ledger.files.change_lists import (
    event_files,
    refuse_stale_change_file,
)
from ledger.files.live import LoggedFileNames
from ledger.following.files import follow
from ledger.history.older import (
    TableLog,
    at_branch,
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
    annotate_interruption,
    find_commit,
    request_of,
)
from ledger.log.time_travel import at_timestamp, at_version, head_state
from ledger.model.errors import (
    AlreadyExistsError,
    CommitConflictError,
    CommitUnknownError,
    InvalidInputError,
    LedgerError,
    NotFoundError,
    StoreError,
    UnsupportedError,
)
from ledger.model.file_change import FileChange
from ledger.model.instant import (
    Instant,
    SnapshotInstant,
    TagInstant,
    TimestampInstant,
    VersionInstant,
)
from ledger.model.names import Identifier, parse_column_path
from ledger.model.schema import Schema, paths_of
from ledger.observing.telemetry import traced_commit
from ledger.opening.context import Plan, TableSetting, catalog_stream
from ledger.opening.opened_table import OpenedTable
from ledger.state.stream import AlreadyCommitted, Intent
from ledger.state.table import TableState
from ledger.stores.file_access import FileAccess

# Modules that only some calls need are imported by those calls, so that reading starts fast.
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

GivenChanges = Iterable[RequestedChange | Mapping[str, Any]]
"""Changes of a table as callers pass them: objects, or decoded JSON."""


class HasHandle(Protocol[H_co]):
    """A public object: `Ledger`, `Table`, `TableBranch` or `TableAt`."""

    @property
    def _handle(self) -> H_co: ...


def handle_of(public: HasHandle[H_co]) -> H_co:
    """Return the internal handle of a public object.

    Only for the packages of formats, the command line and tests: a handle's members are internal
    and may change with any release.

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
    """One table's log with its caches and its commit path.

    A handle refers to the same table after renames, and is safe to share between threads.

    Attributes:
        identifier: The table's name when it was opened.
        path: Its folder, as recorded in the catalog.
        setting: Store, clock, author and policies, shared with the ledger.
        log: Its log.
        live: Index of its live files.
        past: Its earlier schemas and columns.
        appender: Appends commits to the log.
    """

    def __init__(self, identifier: Identifier, path: str, setting: TableSetting) -> None:
        self.identifier = identifier
        self.path = path
        self.setting = setting
        opened = OpenedTable.at(path, setting)
        self.log, self.live, self.past = opened.log, opened.live, opened.past
        # True once the location is known to be the recorded one; a memory store cannot move.
        self._is_looked_at = setting.store.url.startswith("memory://")
        self.appender: Appender[TableState, TableEvent] = Appender(
            self.log,
            setting.now_millis,
            setting.retry_policy,
            refuse_stale_change_file,
            # Of the setting alone, so that the appender does not refer back to this handle.
            lambda state, version: setting.announce(state.table_id, version),
        )

    def __reduce__(self) -> tuple[Any, ...]:
        # The receiving process opens it again: threads and caches are not pickled.
        return type(self), (self.identifier, self.path, self.setting)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.identifier)!r}, {self.location!r})"

    @property
    def location(self) -> str:
        """The absolute URL of the table's folder, as recorded even if opened by an alias."""
        return self.setting.shown_at or self.data_location

    @property
    def data_location(self) -> str:
        """The absolute URL that relative paths of data files are resolved against."""
        inside = self.log.layout.folder
        return f"{self.setting.home}/{inside}" if inside else self.log.store.url

    def shown_at(self, location: str) -> TableHandle:
        """Return a handle that renders projections for another location; data files stay."""
        return type(self)(self.identifier, self.path, evolve(self.setting, shown_at=location))

    @property
    def folder(self) -> str:
        """The absolute URL by which the table's folder was opened, which may be an alias."""
        inside = self.log.layout.folder
        return f"{self.log.store.url}/{inside}" if inside else self.log.store.url

    def reached(self, location: str) -> str:
        """Translate a URL below the recorded root to the URL by which the ledger was opened."""
        return self.setting.reached(location)

    def read_file(self, path: str) -> bytes | None:
        """Return the contents of a file of the table, by its path in the log.

        None if it does not exist, or is outside of the allowed locations.

        Raises:
            StoreError: It is not a regular file, or cannot be read.
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
        """Options that fsspec takes for the table's data files."""
        return self.setting.storage_options

    def may_read_from(self, location: str) -> bool:
        """Return True if data files may be read from a location; a log may name any.

        Allowed are the ledger's and the table's kind of storage, and the allowed locations that the
        ledger was opened with. A chained fsspec URL is not allowed.
        """
        return self.file_access.permits(location)

    @property
    def state(self) -> TableState:
        """The newest state of the table, after reading commits appended since the last read."""
        self.log.refresh()
        return head_state(self.log)

    def state_at(self, head: TableState, instant: Instant | None) -> TableState:
        """Return the state at an instant, resolved against a head.

        Raises:
            NotFoundError: It does not exist, or was expired; the message lists what exists.
        """
        return self.instant(head, instant)[0]

    def instant(self, head: TableState, instant: Instant | None) -> tuple[TableState, Schema]:
        """Return the state at an instant, resolved against a head, and the schema to read it with.

        Raises:
            NotFoundError: As for `state_at`.
        """
        match instant:
            case None:
                state = head
            case VersionInstant(version=version):
                state = at_version(self.log, version)
            case TimestampInstant(timestamp_millis=moment):
                state = at_timestamp(self.log, moment)
            case TagInstant(tag_name=name):
                return self._state_at_snapshot(head, head.tag(name).snapshot_id)
            case SnapshotInstant(snapshot_id=snapshot_id):
                return self._state_at_snapshot(head, snapshot_id)
        return state, state.schema

    def _state_at_snapshot(self, head: TableState, snapshot_id: int) -> tuple[TableState, Schema]:
        if not head.reachable(snapshot_id):
            known = head.origin.readable_range_text(head)
            raise NotFoundError(
                f"snapshot {snapshot_id} does not exist or was expired; there are {known}. "
                "The table can still be read at the version of its commit"
            )
        state = state_at_snapshot(self.log, snapshot_id)
        return state, schema_of_snapshot(self.log, state)

    def branch_instant(
        self, head: TableState, instant: Instant | None, branch: str
    ) -> tuple[TableState, Schema]:
        """Return a branch's state at an instant, and the table's schema then.

        Raises:
            NotFoundError: As for `state_at`, or the branch did not exist.
        """
        then = self.state_at(head, instant)
        return at_branch(self.log, then, branch), then.schema

    def events(self, first: int = 0, last: int | None = None) -> Iterator[Commit[TableEvent]]:
        """Yield the commits from version `first` to `last` (None: the head), with all their events.

        Raises:
            NotFoundError: `last` does not exist yet.
        """
        head = self.state.version
        end = head if last is None else last
        if end > head:
            raise NotFoundError(f"version {end} does not exist; the newest is {head}")
        return self.log.personal.resolve_each(read.commit for read in self.log.commits(first, end))

    def add_to_sums(
        self, commits: Iterable[Commit[TableEvent]], sums: RunningSums
    ) -> Iterator[Commit[TableEvent]]:
        """Yield commits, after adding their file changes to the sums."""
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
            return self.newest_files_of_engines(state)
        return tuple(
            self.log.personal.columns.opened(self.live.live_files_at_state(state).values())
        )

    def engine_files_at(self, state: TableState) -> tuple[FileChange, ...]:
        """Return the live files of a state as projections show them to engines.

        Bounds of personal columns are left out.

        Raises:
            UnsupportedError: As for `TableAt.files`.
        """
        if not state.lists_files:
            return self.newest_files_of_engines(state)
        return tuple(
            self.log.personal.columns.rendered(self.live.live_files_at_state(state).values())
        )

    def newest_files_of_engines(self, state: TableState) -> tuple[FileChange, ...]:
        """Return the live files of a state that engines' manifests list.

        Raises:
            NotFoundError, UnsupportedError: As for `TableAt.files`.
        """
        newest = () if state.snapshot is None else (state.snapshot.id,)
        return tuple(self.files_of_engines(state, newest))

    def files_of_engines(
        self, state: TableState, snapshot_ids: Sequence[int]
    ) -> Iterable[FileChange]:
        """Return the files of snapshots that engines' manifests list.

        Args:
            state: A state that has the snapshots.
            snapshot_ids: Their ids.

        Raises:
            NotFoundError, UnsupportedError: As for `TableAt.files`.
        """
        if not snapshot_ids:
            return ()
        from ledger.formats import part

        # The log lists the files of native tables, so the origin is an imported format here.
        read = part(state.origin.format_name, "engine_files")
        found: Iterable[FileChange] = read(self, state, snapshot_ids)
        return found

    def refuse_merged_rows(self, state: TableState) -> None:
        """Reject a state whose rows are more than those of its files, each read by itself.

        A file that a filter prunes may hold the newer version of a row of another file.

        Raises:
            UnsupportedError: Its engines merge rows, as for a primary key.
            NotFoundError: A file that an engine wrote is missing.
        """
        from ledger.formats import part_if_any

        lists = part_if_any(state.origin.format_name, "engine_lists")
        if lists is None:
            return
        snapshot = state.snapshot
        found = [*lists.table_problems(state.schema)]
        if not found and snapshot is not None:
            found = [*lists.snapshot_problems(self, state, snapshot)]
        for problem in found:
            raise UnsupportedError(
                f"files of {self.identifier} cannot be chosen by a filter: {problem.what}: "
                f"{problem.rule}; read the rows through the table's engines, or plan without a "
                "filter"
            )

    def past_columns(self, state: TableState) -> PastColumns | None:
        """Return every column that the table had up to a state; None if none can be restored.

        None for a state of another table, too.
        """
        is_of_ledger = state.table_id == head_state(self.log).table_id
        return self.past.columns(state) if is_of_ledger else None

    def find_commit(self, commit_id: str) -> Commit[TableEvent] | None:
        """Return the commit with a commit id; None if no commit has it."""
        return find_commit(self.log, commit_id)

    def committed_before(self, commit_id: str | None, asked: Any) -> Appended[TableState] | None:
        """Return the earlier outcome of the same request and commit id; None if new.

        For a caller that derives its changes from the current state, which may yield other changes,
        or none, when the call is retried.
        """
        options: CommitOptions = {} if commit_id is None else {"commit_id": commit_id}
        return self.appender.commit_lookup.find_by_content(self.request(asked, options))

    def column_histories_of(self, path: tuple[str, ...] = ()) -> ColumnHistories:
        """Return the histories of the current columns, or of an earlier column path."""
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
        """Return the field id of a column by its current or any earlier path."""
        from ledger.audit.blame import blame_column

        path = parse_column_path(column) if isinstance(column, str) else tuple(column)
        now = dict(paths_of(self.state.schema))
        found = now.get(path)
        return (
            blame_column(self.column_histories_of(path), path).field_id or 0
            if found is None
            else found
        )

    def alter(self, changes: GivenChanges, options: CommitOptions) -> Appended[TableState]:
        """Change the schema, options, comment or layout; see `Table.alter`."""
        asked = self._parse_changes(changes)
        return self.commit(["alter", asked], options, lambda _: asked)

    def plan(self, changes: GivenChanges) -> ChangePlan:
        """Return the outcome of `alter` with these changes, as a dry run; see `Table.plan`."""
        from ledger.decide.commit_policies import CommitContext
        from ledger.formats import INSTALLED
        from ledger.plan import plan_changes

        context = CommitContext(
            self.setting.author, None, self.setting.now_millis, self._database_policy()
        )
        asked = self._parse_changes(changes)
        return plan_changes(self.state, asked, self.past, INSTALLED, self.schemas, context)

    def _parse_changes(self, changes: GivenChanges) -> tuple[SchemaChange | SpecChange, ...]:
        import_commit_modules()
        asked = tuple(map(as_table_change, changes))
        if not asked:
            raise InvalidInputError(f"{self.identifier}: no changes were given; name at least one")
        return asked

    def seal(
        self, *, purge: bool = False, **options: Unpack[CommitOptions]
    ) -> Appended[TableState]:
        """Write the last event of the table's log; `Ledger.drop_table` updates the catalog."""
        import_commit_modules()
        end = table_changes.DropTable(self.identifier.database, self.identifier.name, purge)
        asked = ["dropTable", "purge"] if purge else ["dropTable"]
        return self.commit(asked, options, lambda _: [end])

    def commit_events(
        self,
        change: Sequence[Any],
        decide: Callable[[TableState], tuple[TableEvent, ...] | AlreadyCommitted],
        **options: Unpack[CommitOptions],
    ) -> Appended[TableState]:
        """Commit the events of a format's own kind of change; for packages of formats.

        Args:
            change: The change as JSON, to recognise it under its commit id.
            decide: Returns the events on a state; it is called again after each lost race.
            options: See CommitOptions.

        Raises:
            InvalidChangeError: The table follows a source, or a rule forbids the change.
            CommitUnknownError: The store did not answer; the commit may have been committed.
        """
        from ledger.decide.recorded_values import check_recorded_values
        from ledger.decide.table import EventFunctionIntent

        request = self.request(list(change), options)
        context = self._commit_context(request)
        context = CommitContext(
            context.author, context.message, context.now_millis, self._database_policy()
        )

        head = self.log.head
        decided_on = -1 if head is None else head.state.version

        def checked(state: TableState) -> tuple[TableEvent, ...] | AlreadyCommitted:
            nonlocal decided_on
            decided_on = state.version
            events = decide(state)
            if isinstance(events, AlreadyCommitted):
                return events
            check_recorded_values(events, str(self.identifier))
            return events

        def is_stale() -> bool:
            return 0 <= decided_on < self.state.version

        intent = EventFunctionIntent(checked, context)
        self._check_place_is_recorded()
        # A rejection, or that nothing changes, counts only on a state read after the call began.
        try:
            done = self.append(intent, request)
        except (CommitUnknownError, StoreError):
            raise
        except LedgerError:
            if not is_stale():
                raise
            done = self.append(intent, request)
        else:
            if done.repeated and is_stale():
                done = self.append(intent, request)
        follow(self)
        return done

    def again(self) -> TableHandle:
        """Return a new handle of the same table, with its own caches."""
        return type(self)(self.identifier, self.path, self.setting)

    def request(self, asked: Any, options: CommitOptions) -> Request:
        """Return the request of a commit; its author defaults to the setting's."""
        return request_of(options, asked=asked, default_author=self.setting.author)

    def commit(
        self,
        asked: Any,
        options: CommitOptions,
        plan: Plan,
        base: TableState | None = None,
        previous_requests: Iterable[Any] = (),
    ) -> Appended[TableState]:
        """Commit the changes that a plan returns on `base`, by default on the cached state.

        Args:
            asked: Contents of the request, to compare it with earlier ones of the same commit id.
            options: See CommitOptions.
            plan: Returns the changes on a state.
            base: The state to plan on.
            previous_requests: Other contents that the same request may be recorded by; compared if
                the commit id was used before.
        """
        return self.commit_request(self.request(asked, options), plan, base, previous_requests)

    def commit_request(
        self,
        request: Request,
        plan: Plan,
        base: TableState | None = None,
        previous_requests: Iterable[Any] = (),
    ) -> Appended[TableState]:
        """Commit the changes that a plan returns, for an existing request; see `commit`."""

        def committed() -> Appended[TableState]:
            try:
                return self._plan_and_append(request, plan, base)
            except InvalidInputError:
                found = self.appender.commit_lookup.previous_digests(request, previous_requests)
                if found is None:
                    raise
                return found

        return self._append_traced(request, committed)

    def append(
        self, intent: Intent[TableState, TableEvent], request: Request
    ) -> Appended[TableState]:
        """Append the events that an intent decides on the newest state, without a plan."""
        return self._append_traced(request, lambda: self.appender.append(intent, request))

    def _append_traced(
        self, request: Request, append: Callable[[], Appended[TableState]]
    ) -> Appended[TableState]:
        with annotate_interruption(request):
            return traced_commit(append, stream=self.log, commit_id=request.commit_id)

    def _plan_and_append(
        self, request: Request, plan: Plan, base: TableState | None
    ) -> Appended[TableState]:
        head = self.log.head
        held = self.state if head is None or request.expect_version is not None else head.state
        held = base or held
        is_alone = request.expect_version is not None or not self.appender.is_outrun
        found = self._plan_intent(request, plan, held, base, "now" if is_alone else "later")
        try:
            return self._append_intent(found, request)
        except (InvalidInputError, NotFoundError, AlreadyExistsError, CommitConflictError) as error:
            is_outrun = isinstance(error, CommitConflictError) and error.winner is None
            if isinstance(found, AlreadyCommitted | Appended) or found.is_judged or is_outrun:
                raise
        # Rejected on a later state; an error on the state that it was planned on takes precedence.
        return self._append_intent(self._plan_intent(request, plan, held, base, "now"), request)

    def _plan_intent(
        self,
        request: Request,
        plan: Plan,
        held: TableState,
        base: TableState | None,
        judged: Judged,
    ) -> TableIntent | AlreadyCommitted | Appended[TableState]:
        context = self._commit_context(request)
        try:
            return self.intent(held, plan, context, judged)
        except LedgerError:
            # A request that contradicts a stale state may be valid now, or be committed already.
            committed = self.appender.commit_lookup.before(request)
            if committed is not None:
                return committed
            newest = self.state
            if base is not None or newest.version == held.version:
                raise
            return self.intent(newest, plan, context)

    def _append_intent(
        self, found: TableIntent | AlreadyCommitted | Appended[TableState], request: Request
    ) -> Appended[TableState]:
        if isinstance(found, Appended):
            return found
        if isinstance(found, AlreadyCommitted):
            return self.appender.commit_lookup.acknowledge(found.version, request)
        self._check_place_is_recorded()
        committed = self.appender.append(found, request)
        follow(self)
        return committed

    def _check_place_is_recorded(self) -> None:
        """Reject commits at a location other than the recorded one, if files depend on it.

        Raises:
            InvalidChangeError: Files do, and no move, copy or alias was recorded.
        """
        where, here = self.setting.root_location, self.ledger_url
        if where.is_recorded_at(here) or self._is_looked_at:
            return
        from ledger.relocation.moving import unrecorded_location_error

        error = unrecorded_location_error(self, where.place, where.others(here))
        if error is not None:
            # A move, copy or alias may have been recorded since this handle was opened.
            catalog = catalog_stream(self.setting.store).refresh()
            if catalog is not None:
                where.learn(catalog)
            if not where.is_recorded_at(here):
                raise error
        self._is_looked_at = True

    def _commit_context(self, request: Request) -> CommitContext:
        import_commit_modules()
        return CommitContext(request.author, request.message, self.setting.now_millis)

    def intent(
        self,
        base: TableState,
        plan: Plan,
        context: CommitContext | None = None,
        judged: Judged = "now",
    ) -> TableIntent | AlreadyCommitted:
        """Return the intent of a plan on a state; or the version that committed it already."""
        import_commit_modules()
        self.past.cache_schemas([base.schema])
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
        """Return the policy of the table's database, read on the calling thread."""
        head = self.log.head
        setting = self.setting
        table_id = head.state.table_id if head else ""
        return setting.database_policies.of(setting.store, table_id)

    @cached_property
    def _touched(self) -> RecentlyTouched:
        """Cache of the things that recent commits touched, shared by this handle's intents."""
        from ledger.decide.conflicts import RecentlyTouched

        logged_files = partial(_logged_files, self.log)
        return RecentlyTouched(logged_files, LoggedFileNames(self.log, self.live.names))


def _logged_files(log: TableLog, event: ListingEvent) -> list[FileChange]:
    """Return the file changes of a snapshot, with the personal values stored for them."""
    return log.personal.columns.opened(event_files(log.store, log.layout, event))


_RULED: Final = frozenset(get_args(SchemaChange | SpecChange))
"""Types of changes that database policies apply to."""


@cache
def import_commit_modules() -> None:
    """Import the modules that commits need and reads do not."""
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
    # A child forked while another thread holds the import lock would wait for it for ever.
    os.register_at_fork(before=import_commit_modules)
