"""Writes of a ledger: tables, views, moves, erasures, corrections of the catalog's clock.

Each builds a request to the catalog that `LedgerHandle` commits. Imported by the calls that write,
so that reading starts fast.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar, Unpack

from attrs import evolve
from msgspec.structs import replace

from ledger.decide.catalog import (
    AliasLedger,
    CatalogRequest,
    CopyLedger,
    CreateDatabase,
    CreateIcebergView,
    CreateTable,
    CreateTables,
    CreateView,
    DropTable,
    EraseValues,
    MoveLedger,
    UpdateIcebergView,
)
from ledger.decide.commit_policies import refuse_catalog_commit
from ledger.decide.functions import CreateFunction
from ledger.decide.recorded_values import check_recorded_values, parts_of_creation
from ledger.events.catalog import FunctionCreated, ViewCreated
from ledger.events.iceberg_views import IcebergViewUpdate
from ledger.events.table import TableCreated, TableDropped, TableName
from ledger.files.snapshot_plan import SnapshotPlan
from ledger.ledger_handle import LedgerHandle
from ledger.log.request import (
    Appended,
    CommitOptions,
    Request,
    annotate_interruption,
    find_commit,
    fresh_id,
    unknown,
)
from ledger.log.stream_log import StreamLog
from ledger.log.time_travel import at_version
from ledger.model.errors import (
    AlreadyExistsError,
    CommitUnknownError,
    DamagedLogError,
    InvalidInputError,
    LedgerError,
    NotFoundError,
    StoreError,
    TableDroppedError,
)
from ledger.model.file_change import PartitionValue
from ledger.model.functions import Function
from ledger.model.instant import millis
from ledger.model.messages import excerpt
from ledger.model.names import Identifier
from ledger.model.schema import ViewSchema
from ledger.observing.telemetry import is_log_configured, log_event
from ledger.opening.creation import (
    NewTable,
    as_schema,
    drop_request_content,
    finish_drop,
    may_be_renamed,
    new_table,
)
from ledger.relocation.moving import (
    prepare_tables_for_move,
    refuse_other_storage,
    refuse_same_storage,
)
from ledger.rows.row_input import has_rows, open_rows
from ledger.state.catalog import CatalogState, FunctionEntry, TableEntry, ViewEntry
from ledger.state.catalog_builder import identifier_of
from ledger.stores.concurrency import answers
from ledger.table_folders import refuse_location
from ledger.table_handle import TableHandle
from ledger.table_writes import commit_snapshot

if TYPE_CHECKING:
    from ledger.history.erasure import Erasure, ErasureCriterion
    from ledger.history.erasure import Progress as ErasureProgress
    from ledger.plan import ClockPlan

_Entry = TypeVar("_Entry")

CREATED_AND_DROPPED: Final = "CREATED_AND_DROPPED"
"""Kind of the error that a view or function was created, and dropped since."""


def _warn_about_readers(table: TableHandle) -> None:
    """Log which parts of a new table some readers will misread, if a listener is registered."""
    if is_log_configured():
        from ledger.plan import creation_warnings

        for said in creation_warnings(at_version(table.log, 0)):
            name = str(table.identifier)
            log_event("ledger.ledger", "readers_get_it_wrong", table=name, says=said)


def _no_progress(_what: str, _done: int, _of: int) -> None:
    """Ignore progress."""


def _commit_snapshot_plan(table: TableHandle, plan: SnapshotPlan) -> None:
    commit_snapshot(table, plan, {})


def create_table(
    handle: LedgerHandle,
    name: Identifier,
    wanted: NewTable,
    location: str | None,
    commit: CommitOptions,
) -> TableHandle:
    """Create a table; see `Ledger.create_table`."""

    def make() -> CatalogRequest:
        if location is not None:
            refuse_location(handle, location)
        _finish_interrupted_drop(handle, name)
        return CreateTable(name, fresh_id(), wanted.schema, location, **wanted.rest())

    asked = ["CreateTable", str(name), wanted.schema, location, *wanted.rest().items()]
    request = handle.request(asked, commit)
    with annotate_interruption(request):
        table = _commit_and_open_table(handle, make, request, name)
        _warn_about_readers(table)
        return table


def create_table_of(  # noqa: PLR0913 - the arguments of the call
    handle: LedgerHandle,
    name: Identifier,
    given: Any,
    layout: Mapping[str, Any],
    location: str | None,
    commit: CommitOptions,
    *,
    is_filled: bool,
) -> TableHandle:
    """Create a table with a given schema, or with that of rows; see `Ledger.create_table`.

    Args:
        handle: The ledger.
        name: The table's name.
        given: The schema, or rows.
        layout: `field_id_policy`, `partition_spec` and `sort_order`, as for `new_table`.
        location: An absolute folder; None for one under the root.
        commit: See CommitOptions.
        is_filled: Append the rows.
    """
    rows = None
    if has_rows(given):
        # Before rows are read, which may be possible only once.
        _refuse_taken_name(handle, name, commit)
        rows = open_rows(given, str(name))
        given = rows.schema
    elif is_filled:
        raise InvalidInputError(
            f"append=True takes rows, and schema={excerpt(given)} has none; create the table, "
            "then append"
        )
    wanted = new_table(as_schema(given), **layout)
    if rows is None or not is_filled:
        return create_table(handle, name, wanted, location, commit)
    from ledger.rows.row_commits import append_to_created

    table = create_table(handle, name, wanted, location, commit)
    append_to_created(table, rows, commit)
    return table


def _refuse_taken_name(handle: LedgerHandle, name: Identifier, commit: CommitOptions) -> None:
    """Reject a name that is taken, unless an earlier call with the same commit id took it.

    Raises:
        AlreadyExistsError: A table or view has the name.
    """
    kind, commit_id = handle.state.kind_of(name), commit.get("commit_id")
    if kind is None or (commit_id and find_commit(handle.log, commit_id) is not None):
        return
    raise AlreadyExistsError(f"{kind} {name} exists already; choose another name, or append to it")


def create_tables(
    handle: LedgerHandle, tables: Mapping[Identifier, NewTable], commit: CommitOptions
) -> dict[Identifier, TableHandle]:
    """Create several tables by one commit; see `Ledger.create_tables`."""

    def make() -> CatalogRequest:
        for name in tables:
            _finish_interrupted_drop(handle, name)
        return CreateTables(
            tuple(
                CreateTable(name, fresh_id(), wanted.schema, **wanted.rest())
                for name, wanted in tables.items()
            )
        )

    asked = ["CreateTables", *([str(n), t.schema, *t.rest().items()] for n, t in tables.items())]
    request = handle.request(asked, commit)
    with annotate_interruption(request):
        version = handle.commit(make, request).version
        opened = handle.after(
            request, version, lambda: _open_created_tables(handle, version, tables)
        )
        for table in opened.values():
            _warn_about_readers(table)
        return opened


def _finish_interrupted_drop(handle: LedgerHandle, name: Identifier) -> None:
    """Open the table of a name, which completes an interrupted drop and so frees the name."""
    if name in handle.state.tables:
        with suppress(NotFoundError):
            handle.table(name)


def adopt_table(
    handle: LedgerHandle,
    identifier: str | Identifier,
    creation: Mapping[str, Any],
    **commit: Unpack[CommitOptions],
) -> TableHandle:
    """Create the table of an import, without its history, which the importer commits next.

    Args:
        handle: The ledger.
        identifier: `database.table`.
        creation: `schema`, `field_id_policy`, `origin`, `partition_spec` and
            `sort_order`, as `TableCreated` has them.
        commit: See CommitOptions.

    Raises:
        AlreadyExistsError: A table or view of that name exists.
        InvalidInputError: The creation contains a value that no log may hold.
    """
    name = Identifier.parse(identifier)
    check_recorded_values(parts_of_creation(creation), f"the creation of {name}")
    request = handle.request(["AdoptTable", str(name), creation], commit)
    handle.init()
    if name.database not in handle.state.databases:
        database = CreateDatabase(name.database, if_not_exists=True)
        try:
            handle.ask(database, {"commit_id": f"{request.commit_id}-database"})
        except CommitUnknownError as error:
            # The caller retries the whole call by its own commit id.
            key = handle.log.layout.commit(error.version)
            raise unknown(key, error.version, request.commit_id, error) from error
    return _create_recorded_table(handle, name, creation, request)


def create_recorded_table(
    handle: LedgerHandle,
    name: Identifier,
    creation: Mapping[str, Any],
    commit: CommitOptions,
    check: Callable[[CatalogState], None] | None = None,
) -> TableHandle:
    """Create a table whose ids are given, in a database that exists, by one commit.

    Args:
        handle: The ledger.
        name: The table's name.
        creation: As in `adopt_table`, with `protocol` and `events`, as `TableCreated` has them.
        commit: See CommitOptions.
        check: Rejects the folder of the table's origin on a state of the catalog. Tables that are
            created since are checked, too. Not called if the commit was made before.

    Raises:
        AlreadyExistsError: A table or view of that name exists.
        NotFoundError: The database does not exist.
        InvalidInputError: The creation contains a value that no log may hold.
        LedgerError: As `check` raises.
    """
    check_recorded_values(parts_of_creation(creation), f"the creation of {name}")
    request = handle.request(["CreateRecordedTable", str(name), creation], commit)
    return _create_recorded_table(handle, name, creation, request, check)


def _create_recorded_table(
    handle: LedgerHandle,
    name: Identifier,
    creation: Mapping[str, Any],
    request: Request,
    check: Callable[[CatalogState], None] | None = None,
) -> TableHandle:
    def make() -> CatalogRequest:
        wanted = CreateTable(name, fresh_id(), **creation)
        state = handle.state
        # A name that is taken, or a database that is missing, is the first reason.
        if check is None or state.kind_of(name) or name.database not in state.databases:
            return wanted
        check(state)
        return evolve(wanted, checked_version=state.version)

    with annotate_interruption(request):
        return _commit_and_open_table(handle, make, request, name)


def _commit_and_open_table(
    handle: LedgerHandle, make: Callable[[], CatalogRequest], request: Request, name: Identifier
) -> TableHandle:
    """Create a table and open it."""
    version = handle.commit(make, request).version
    return handle.after(
        request, version, lambda: _open_created_tables(handle, version, [name])[name]
    )


def _open_created_tables(
    handle: LedgerHandle, version: int, names: Iterable[Identifier]
) -> dict[Identifier, TableHandle]:
    """Open the tables of some names that a catalog commit created."""
    commit = handle.log.commit_at(version)
    begin = partial(handle.create_missing_log, commit)
    # The commit may hold other writers' transactions, too.
    table_ids = {
        identifier_of(event.identifier): event.table_id
        for transaction in commit.transactions
        for event in transaction.events
        if isinstance(event, TableCreated)
    }

    def opened(name: Identifier) -> TableHandle:
        entry = handle.state.table_by_id(table_ids[name])
        with suppress(TableDroppedError):
            if entry is not None:
                return handle.open_table(entry, begin=begin)
        raise TableDroppedError(f"table {name} was created and dropped since; create it again")

    asked = [*names]
    return dict(zip(asked, answers(opened, asked), strict=True))


def drop_table(
    handle: LedgerHandle, identifier: str | Identifier, commit: CommitOptions, *, purge: bool
) -> Appended[CatalogState]:
    """Seal a table's log, then remove the table from the catalog; see `Ledger.drop_table`."""
    name = Identifier.parse(identifier)
    options: CommitOptions = {**commit}
    # A process that completes the drop repeats the same request; so it is always this one.
    options.pop("asked", None)
    options.setdefault("commit_id", fresh_id())
    asked = drop_request_content(name, purge=purge)
    request = handle.request(asked, options)
    committed = handle.appender.commit_lookup.before(request)
    if committed is None and "commit_id" in commit:
        _finish_drop_of_renamed(handle, name, options["commit_id"])
        committed = handle.appender.commit_lookup.before(request)
    if committed is not None:
        return committed
    try:
        table = handle.table(name)
    except NotFoundError:
        # Opening may have completed this very drop, sealed by an earlier attempt.
        committed = handle.appender.commit_lookup.before(request)
        if committed is None:
            raise
        return committed
    except (DamagedLogError, StoreError, PermissionError):
        gone = handle.state.table(name)
        return handle.commit(lambda: DropTable(name, gone.table_id, purge=purge), request)
    entry = handle.state.table_by_id(table.state.table_id)
    _refuse_drop(handle, entry, request)
    # expect_version is the table's version, not the catalog's.
    request = replace(request, expect_version=None)
    request.status.is_sent = True
    with annotate_interruption(request):
        sealed = table.seal(purge=purge, **options)

        def remove() -> Appended[CatalogState]:
            return _remove_from_catalog(handle, table, entry, sealed.version, request)

        done = handle.after(request, sealed.version, remove)
        # The catalog's commit has the seal's id, so only the seal shows if this is a retry.
        return evolve(done, repeated=sealed.repeated)


def _finish_drop_of_renamed(handle: LedgerHandle, name: Identifier, commit_id: str) -> None:
    """Complete a drop sealed under a commit id, of a table that was renamed meanwhile.

    Another table may have the old name by now; it is not dropped.
    """
    for entry in [*handle.state.tables.values()]:
        if entry.identifier == name or not may_be_renamed(entry):
            continue
        log = TableHandle(entry.identifier, entry.path, handle.setting).log
        with suppress(LedgerError, OSError):
            state = log.refresh()
            if state is not None and state.dropped and [*log.with_id(commit_id)]:
                finish_drop(handle.appender, log, entry, state.version)


def _refuse_drop(handle: LedgerHandle, entry: TableEntry | None, request: Request) -> None:
    """Apply the database's rules before the table is sealed.

    Raises:
        FormatError: A rule forbids the drop.
    """
    if entry is not None:
        named = entry.identifier
        name = TableName(database_name=named.database, table_name=named.name)
        fact = TableDropped(identifier=name, table_id=entry.table_id)
        options = {name: each.options for name, each in handle.state.databases.items()}
        refuse_catalog_commit(options, [fact], handle.context(request))


def _remove_from_catalog(
    handle: LedgerHandle,
    table: TableHandle,
    entry: TableEntry | None,
    sealed_version: int,
    request: Request,
) -> Appended[CatalogState]:
    """Remove a sealed table from the catalog, and record the request."""
    if entry is not None:
        # With the author of the seal, whose process may have ended since.
        finish_drop(handle.appender, table.log, entry, sealed_version)
    return handle.commit(lambda: None, request)


def create_view(
    handle: LedgerHandle, identifier: str | Identifier, schema: ViewSchema, commit: CommitOptions
) -> ViewEntry:
    """Create a view; see `Ledger.create_view`."""
    name = Identifier.parse(identifier)
    asked = ["CreateView", str(name), repr(schema)]
    return _commit_created_view(
        handle, lambda: CreateView(name, fresh_id(), schema), handle.request(asked, commit), name
    )


def create_iceberg_view(
    handle: LedgerHandle,
    name: Identifier,
    updates: Callable[[], tuple[IcebergViewUpdate, ...]],
    commit: CommitOptions,
) -> ViewEntry:
    """Create a view by Iceberg's updates.

    Args:
        handle: The ledger.
        name: The view's name.
        updates: Returns the updates to record; not called if the commit was made before.
        commit: See CommitOptions; `asked` is the content of the request.

    Raises:
        AlreadyExistsError: A table or view of that name exists.
        InvalidChangeError: The updates do not make up a view.
        LedgerError: As `updates` raises.
    """
    request = handle.request(["CreateIcebergView", str(name)], commit)
    return _commit_created_view(
        handle, lambda: CreateIcebergView(name, fresh_id(), updates()), request, name
    )


def update_iceberg_view(
    handle: LedgerHandle,
    name: Identifier,
    updates: Callable[[ViewEntry], tuple[IcebergViewUpdate, ...]],
    commit: CommitOptions,
) -> Appended[CatalogState]:
    """Change a view by Iceberg's updates, which are decided again on each state.

    Args:
        handle: The ledger.
        name: The view's name.
        updates: Returns the updates to record; none if they hold already.
        commit: See CommitOptions; `asked` is the content of the request.

    Raises:
        NotFoundError: There is no such view.
        CommitConflictError: A concurrent commit changed the same part of the view.
        LedgerError: As `updates` raises.
    """
    request = handle.request(["UpdateIcebergView", str(name)], commit)
    return handle.commit(lambda: UpdateIcebergView(name, updates), request)


def create_function(
    handle: LedgerHandle, identifier: str | Identifier, function: Function, commit: CommitOptions
) -> FunctionEntry:
    """Create a function; see `Ledger.create_function`."""
    name = Identifier.parse(identifier)
    request = handle.request(["CreateFunction", str(name), repr(function)], commit)
    return _commit_creation(
        handle,
        lambda: CreateFunction(name, fresh_id(), function),
        request,
        f"function {name}",
        lambda version: _find_created_function(handle, version, name),
    )


def _commit_created_view(
    handle: LedgerHandle, make: Callable[[], CatalogRequest], request: Request, name: Identifier
) -> ViewEntry:
    """Create a view and return it."""
    return _commit_creation(
        handle,
        make,
        request,
        f"view {name}",
        lambda version: _find_created_view(handle, version, name),
    )


def _commit_creation(
    handle: LedgerHandle,
    make: Callable[[], CatalogRequest],
    request: Request,
    subject: str,
    find: Callable[[int], _Entry | None],
) -> _Entry:
    """Create a view or function, and return what `find` finds by the catalog's version."""
    with annotate_interruption(request):
        done = handle.commit(make, request)
        created = handle.after(request, done.version, lambda: find(done.version))
    if created is None:
        raise NotFoundError(
            f"{subject} was created and dropped since; create it again", CREATED_AND_DROPPED
        )
    return created


def _find_created_view(handle: LedgerHandle, version: int, name: Identifier) -> ViewEntry | None:
    """Return the view of that name which a catalog commit created; None once dropped."""
    created = (
        event.view_id
        for event in handle.events_of(version)
        if isinstance(event, ViewCreated) and identifier_of(event.identifier) == name
    )
    return handle.state.view_by_id(next(created))


def _find_created_function(
    handle: LedgerHandle, version: int, name: Identifier
) -> FunctionEntry | None:
    """Return the function of that name which a catalog commit created; None once dropped."""
    created = (
        event.function_id
        for event in handle.events_of(version)
        if isinstance(event, FunctionCreated) and identifier_of(event.identifier) == name
    )
    return handle.state.function_by_id(next(created))


def record_move(
    handle: LedgerHandle, commit: CommitOptions, *, rewrites: bool
) -> Appended[CatalogState]:
    """Record that the ledger moved to where it was opened; see `Ledger.record_move`."""
    was = handle.state.place
    request = handle.request(["MoveLedger", handle.url], commit)
    prepare_tables_for_move(
        handle, handle.for_any_location(), _commit_snapshot_plan, rewrites=rewrites
    )
    return handle.commit(lambda: MoveLedger(handle.url, was), request)


def record_alias(handle: LedgerHandle, commit: CommitOptions) -> Appended[CatalogState]:
    """Record another URL of the ledger's storage; see `Ledger.record_alias`."""
    was = handle.state.place
    request = handle.request(["AliasLedger", handle.url], commit)
    place = refuse_other_storage(handle)
    return handle.commit(lambda: AliasLedger(handle.url, place, was), request)


def record_copy(
    handle: LedgerHandle, commit: CommitOptions, *, rewrites: bool
) -> Appended[CatalogState]:
    """Record that this is a copy of another ledger; see `Ledger.record_copy`."""
    request = handle.request(["CopyLedger", handle.url], commit)
    committed = handle.appender.commit_lookup.before(request)
    if committed is not None:
        return committed
    was = handle.state.place
    refuse_same_storage(handle)
    prepare_tables_for_move(
        handle, handle.for_any_location(), _commit_snapshot_plan, rewrites=rewrites
    )
    wanted = CopyLedger(handle.url, fresh_id(), handle.ledger_id or "", was)
    return handle.commit(lambda: wanted, request)


def plan_erasure(  # noqa: PLR0913 - the parameters of the public method
    handle: LedgerHandle,
    *,
    author: str | None = None,
    text: str | None = None,
    table: str | None = None,
    column: str | None = None,
    value: PartitionValue = None,
    on_progress: ErasureProgress | None = None,
) -> Erasure:
    """Return what `erase` would delete; see `Ledger.plan_erasure`."""
    from ledger.history.erasure import Erasure, count_matches, remaining

    report_progress = on_progress or _no_progress
    sought, streams = _values_to_erase(handle, author, text, table, column, value)
    values, transactions = count_matches(handle.log.personal, sought, report_progress)
    return Erasure(values, transactions, tuple(remaining(streams, sought, report_progress)))


def erase(  # noqa: PLR0913 - the parameters of the public method
    handle: LedgerHandle,
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
    """Delete the stored personal data of a person or column; see `Ledger.erase`."""
    report_progress = on_progress or _no_progress
    _refuse_unerasable(handle)
    sought, streams = _values_to_erase(handle, author, text, table, column, value)
    options: CommitOptions = {
        "author": sought.author_to_record(handle.setting.author if by is None else by),
        "message": sought.check_message(message),
    }
    if commit_id is not None:
        options["commit_id"] = commit_id
    return _record_and_erase(handle, sought, streams, options, report_progress)


def _record_and_erase(
    handle: LedgerHandle,
    sought: ErasureCriterion,
    streams: Iterable[tuple[str, StreamLog[Any, Any]]],
    options: CommitOptions,
    report_progress: ErasureProgress,
) -> Erasure:
    """Record that values are erased, then delete them."""
    from ledger.history.erasure import Erasure, count_matches, erase, remaining

    personal = handle.log.personal
    # Without the text: its digest would let anybody test guessed names.
    words = ["EraseValues", *sought.column_ids]
    request = handle.request(words, options)
    recorded = committed = handle.appender.commit_lookup.before(request)
    values, transactions = count_matches(personal, sought, report_progress)
    if values:
        if committed is not None:
            # The id may have recorded another erasure; these values need a record of their own.
            options.pop("commit_id", None)
            request, committed = handle.request(words, options), None
        wanted = EraseValues(values, transactions, *sought.column_ids)
        recorded = handle.commit(lambda: wanted, request)
    # Even without values: a killed writer may have left an uncommitted file.
    erase(personal, sought, report_progress)
    unrendered = tuple(_rewrite_projections(handle, sought.folder))
    left = tuple(remaining(streams, sought, report_progress))
    version = None if recorded is None else recorded.version
    return Erasure(values, transactions, left, version, unrendered, committed is not None)


def _values_to_erase(
    handle: LedgerHandle,
    author: str | None,
    text: str | None,
    table: str | None,
    column: str | None,
    value: PartitionValue,
) -> tuple[ErasureCriterion, Iterable[tuple[str, StreamLog[Any, Any]]]]:
    """Return the values to erase, and the logs whose lines may contain them."""
    from ledger.history.erasure import AuthorOrTextCriterion, make_column_criterion
    from ledger.history.older import all_schemas_ever

    if table is None and column is None and value is None:
        return AuthorOrTextCriterion(author, text), handle.streams()
    if table is None or column is None or author is not None or text is not None:
        raise InvalidInputError(
            "an erasure is of one author, of one text, or of a table's column, which table= "
            "and column= name"
        )
    holder = handle.table(table)
    field_id = holder.column_id(column)
    sought = make_column_criterion(holder.state, all_schemas_ever(holder.log), field_id, value)
    return sought, [(str(holder.identifier), holder.log)]


def _rewrite_projections(handle: LedgerHandle, folder: str) -> Iterator[str]:
    """Rewrite projections that may hold erased values; yield a text per failure."""
    from ledger.formats import having, part
    from ledger.log.personal_data import folder_of

    for each in handle.cataloged_tables():
        own = folder_of(each.table_id)
        if not own.startswith(folder) or next(handle.setting.store.walk(own), None) is None:
            continue
        table = TableHandle(each.identifier, each.path, handle.setting)
        for name in having("kept"):
            try:
                kept = part(name, "kept")
                if kept.has_files(table):
                    kept.rebuild_files(table)
            except (LedgerError, OSError) as error:
                yield f"{each.name}, its files of {name}: {error}"


def _refuse_unerasable(handle: LedgerHandle) -> None:
    if not handle.is_erasable:
        raise InvalidInputError(
            "this ledger keeps authors and messages inside of its lines, which never change, "
            "so they cannot be erased; nothing was written. Only a ledger that was created as "
            "erasable can erase: lakeledger init --erasable"
        )


def plan_clock_correction(
    handle: LedgerHandle, true_time: datetime | int | str | None
) -> ClockPlan:
    """Return what `correct_clock` would commit; nothing is written."""
    from ledger.plan import plan_correction

    return plan_correction(handle.log, handle.setting.now_millis(), true_time)


def correct_clock(
    handle: LedgerHandle, true_time: datetime | int | str | None, commit: CommitOptions
) -> Appended[CatalogState]:
    """Correct the times of the catalog's commits; see `Ledger.correct_clock`."""
    from ledger.plan import plan_correction

    now = handle.setting.now_millis()
    latest = None if true_time is None else millis(true_time)
    when: CommitOptions = {**commit, "effective_time": now}
    request = handle.request(["CorrectClock", latest], when)
    return handle.commit(lambda: plan_correction(handle.log, now, latest).change, request)
