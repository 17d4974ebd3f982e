"""Requests to the catalog and their decisions: databases, tables, views, locations.

Tables and views are identified by their ids, databases by their locations, which are never reused:
so no request applies to another object that took the name meanwhile.

Locations are compared folded, since some stores distinguish neither case nor Unicode forms.
"""

from __future__ import annotations

import re
from collections import ChainMap
from collections.abc import (
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
    MutableMapping,
    Sequence,
)
from functools import partial
from typing import Any

from attrs import field, frozen
from msgspec import UNSET, UnsetType

from ledger.decide.bounds import check_field_ids
from ledger.decide.catalog_facts import (
    CatalogContext,
    check_database,
    make_name_taken_test,
    table_name_record,
)
from ledger.decide.changes import CorrectClock, decide_clock_correction
from ledger.decide.commit_policies import CommitContext, refuse_catalog_commit
from ledger.decide.definition_changes import pending_changes
from ledger.decide.functions import (
    AlterFunction,
    CreateFunction,
    DropFunction,
    alter_function,
    create_function,
    drop_function,
)
from ledger.decide.iceberg_views import changed_view_parts, check_view_updates, property_updates
from ledger.decide.outside_folders import refuse_shared_folder
from ledger.decide.table_options import refuse_unerasable
from ledger.events.catalog import (
    CatalogEvent,
    DatabaseAltered,
    DatabaseCreated,
    DatabaseDropped,
    FunctionCreated,
    IcebergViewUpdated,
    LedgerCopied,
    LedgerMoved,
    PlaceAliased,
    ValuesErased,
    ViewAltered,
    ViewChange,
    ViewCreated,
    ViewDropped,
    ViewRenamed,
)
from ledger.events.commit import Commit
from ledger.events.iceberg_views import IcebergViewUpdate
from ledger.events.imported import ImportedDeltaTable, ImportedIcebergTable, ImportedPaimonTable
from ledger.events.table import (
    ClockCorrected,
    FirstEvent,
    SchemaRecord,
    ServingProtocol,
    TableCreated,
    TableDropped,
    TableName,
    TablePurged,
    TableRenamed,
    TableUndropped,
)
from ledger.locations import is_absolute, may_escape_folder
from ledger.model.credentials import carries_credentials, credentials_error_text
from ledger.model.errors import (
    AlreadyExistsError,
    InvalidChangeError,
    InvalidInputError,
    LedgerError,
    NotFoundError,
    TableDroppedError,
)
from ledger.model.iceberg_layout import PartitionField, SortField
from ledger.model.messages import excerpt
from ledger.model.names import MAX_NAME_LENGTH, Identifier
from ledger.model.schema import FieldIdPolicy, ViewSchema
from ledger.state.catalog import (
    EMPTY_CATALOG,
    CatalogState,
    DatabaseEntry,
    DroppedTable,
    ViewEntry,
    dropped_tables_text,
)
from ledger.state.catalog_builder import identifier_of
from ledger.state.definitions import cells_of, view_to_record
from ledger.state.used_locations import (
    HasLocations,
    UsedLocation,
    find_location_conflict,
    use_location,
)


@frozen
class CreateDatabase:
    """Create a database; with `if_not_exists` an existing one is left as it is."""

    name: str
    options: Mapping[str, str] = field(factory=dict, hash=False)
    if_not_exists: bool = field(default=False, kw_only=True)


@frozen
class AlterDatabase:
    """Remove and set options of a database; removing one that is not set is no error."""

    name: str
    removals: tuple[str, ...] = ()
    updates: Mapping[str, str] = field(factory=dict, hash=False)


@frozen
class DropDatabase:
    """Drop a database; it has to be empty."""

    name: str


@frozen
class CreateTable:
    """Create a table.

    Attributes:
        identifier: Its name.
        table_id: A fresh UUID.
        schema: Its schema, every id resolved.
        external_path: The absolute location of an external table; None to have one assigned.
        field_id_policy: The policy by which field ids are assigned, as in `TableCreated`.
        partition_spec: Spec 0, as in `TableCreated`.
        sort_order: Order 1, as in `TableCreated`.
        origin: The source of an imported table, as in `TableCreated`.
        protocol: The protocol of the engines that own it, as in `TableCreated`.
        events: What follows in version 0, as in `TableCreated`.
        checked_version: The version of the catalog on which the folder of its origin met no other
            table's; None if that may be shared.
    """

    identifier: Identifier
    table_id: str
    schema: SchemaRecord
    external_path: str | None = None
    field_id_policy: FieldIdPolicy | UnsetType = UNSET
    partition_spec: tuple[PartitionField, ...] | UnsetType = UNSET
    sort_order: tuple[SortField, ...] | UnsetType = UNSET
    origin: ImportedIcebergTable | ImportedPaimonTable | ImportedDeltaTable | UnsetType = UNSET
    protocol: ServingProtocol | UnsetType = UNSET
    events: tuple[FirstEvent, ...] = ()
    checked_version: int | None = None


@frozen
class CreateTables:
    """Create several tables in one commit: all of them, or none.

    Attributes:
        tables: The tables, below the ledger's root.
    """

    tables: tuple[CreateTable, ...]


@frozen
class RenameTable:
    """Rename a table, within its database or to another; its location stays."""

    source: Identifier
    destination: Identifier


@frozen
class DropTable:
    """Drop the table with that id, whatever its current name.

    Attributes:
        identifier: Its name.
        table_id: Its id.
        sealed_version: The version of its stream that sealed it; None where it was not sealed. A
            seal that was undone since drops nothing.
        purge: Whether its files are deleted later.
    """

    identifier: Identifier
    table_id: str
    sealed_version: int | None = None
    purge: bool = False


@frozen
class UndropTable:
    """Restore a dropped table.

    Attributes:
        identifier: The name that it gets.
        table_id: Its id.
        dropped_version: The catalog's commit that dropped it: another drop is not undone.
        sealed_version: The version of its stream that sealed it; None where it is not sealed.
    """

    identifier: Identifier
    table_id: str
    dropped_version: int
    sealed_version: int | None


@frozen
class PurgeTable:
    """Record that the files of a dropped table are deleted from now on.

    Attributes:
        table_id: Its id.
        dropped_version: The catalog's commit that dropped it.
    """

    table_id: str
    dropped_version: int


@frozen
class CreateView:
    """Create a view; `view_id` is a fresh UUID."""

    identifier: Identifier
    view_id: str
    schema: ViewSchema


@frozen
class CreateIcebergView:
    """Create a view by Iceberg's updates.

    Attributes:
        identifier: Its name.
        view_id: A fresh UUID.
        updates: The updates to record.
    """

    identifier: Identifier
    view_id: str
    updates: tuple[IcebergViewUpdate, ...]


@frozen
class UpdateIcebergView:
    """Change a view through Iceberg.

    Attributes:
        identifier: Its name.
        updates: Returns the updates to record, by the view as it is; none if they hold already.
    """

    identifier: Identifier
    updates: Callable[[ViewEntry], tuple[IcebergViewUpdate, ...]]


@frozen
class AlterView:
    """Change a view; the changes apply in order."""

    identifier: Identifier
    changes: tuple[ViewChange, ...]


def as_view_changes(changes: Iterable[object]) -> tuple[ViewChange, ...]:
    """Return changes unchanged if all are changes of views.

    Raises:
        InvalidChangeError: One is something else.
    """
    asked: list[ViewChange] = []
    for each in changes:
        if not isinstance(each, ViewChange):
            raise InvalidChangeError(
                f"{excerpt(each)} is no change of a view; give SetOption, RemoveOption, "
                "UpdateComment or a change of a dialect"
            )
        asked.append(each)
    return tuple(asked)


@frozen
class RenameView:
    """Rename a view, within its database or to another."""

    source: Identifier
    destination: Identifier


@frozen
class DropView:
    """Drop a view."""

    identifier: Identifier


@frozen
class MoveLedger:
    """Record that the ledger is at another URL, and no longer at the old one.

    Attributes:
        place: The URL.
        was: The state's place when the request was made.
    """

    place: str
    was: str


@frozen
class AliasLedger:
    """Record that a URL leads to the same storage as the ledger's place.

    Attributes:
        place: The URL.
        of: The ledger's place by its root or its projections, for a state that has none.
        was: The state's place when the request was made.
    """

    place: str
    of: str
    was: str


@frozen
class CopyLedger:
    """Record that this is another ledger, at a URL, with an id of its own.

    Attributes:
        place: The URL of the copy.
        ledger_id: A fresh UUID.
        copied_from: The id that it had until now.
        was: The state's place when the request was made.
    """

    place: str
    ledger_id: str
    copied_from: str
    was: str


@frozen
class EraseValues:
    """Record that values were erased.

    Attributes:
        table_id: The table whose column it was; None: all streams.
        field_id: The column.
    """

    values: int
    transactions: int
    table_id: str | None = None
    field_id: int | None = None


CatalogRequest = (
    CreateDatabase
    | AlterDatabase
    | DropDatabase
    | CreateTable
    | CreateTables
    | RenameTable
    | DropTable
    | UndropTable
    | PurgeTable
    | CreateView
    | CreateIcebergView
    | UpdateIcebergView
    | AlterView
    | RenameView
    | DropView
    | CreateFunction
    | AlterFunction
    | DropFunction
    | MoveLedger
    | AliasLedger
    | CopyLedger
    | EraseValues
    | CorrectClock
)
"""Every request to the catalog."""


def check_name_free(
    identifier: Identifier, catalog: CatalogContext, advice: str = "choose another name"
) -> None:
    """Reject a name that is unsafe or taken, or whose database does not exist.

    Args:
        identifier: The name.
        catalog: The states and winners to decide on.
        advice: The next step where the name is taken, for the message.

    Raises:
        InvalidNameError: It is not a safe name.
        NotFoundError: The database does not exist.
        AlreadyExistsError: A table or view has the name.
        CommitConflictError: One of the two above, because of a winner.
    """
    identifier.checked()
    check_database(identifier.database, catalog)
    kind = catalog.state.kind_of(identifier)
    if kind is not None:
        raise catalog.refusal(
            f"name {identifier}",
            make_name_taken_test(identifier),
            AlreadyExistsError(f"{kind} {identifier} exists already; {advice}"),
        )


def check_rename_conflict(
    asked: Identifier,
    now: Identifier,
    catalog: CatalogContext,
    renamed: Callable[[CatalogEvent], bool],
) -> None:
    """Reject a rename of an object that a winner renamed.

    Args:
        asked: The name when the writer made the request.
        now: The current name.
        catalog: The states and winners to decide on.
        renamed: Whether an event renamed it.

    Raises:
        CommitConflictError: The two differ.
    """
    if asked != now:
        refused = InvalidChangeError(f"{asked} is called {now} now; retry if you still mean it")
        raise catalog.refusal(f"name {asked}", renamed, refused)


def create_view(request: CreateView, catalog: CatalogContext) -> tuple[CatalogEvent, ...]:
    """Return the event that creates a view; its name and id must be free."""
    check_name_free(request.identifier, catalog)
    check_field_ids(request.schema.fields)
    _check_view_id_is_free(request.view_id, catalog)
    event = ViewCreated(
        identifier=table_name_record(request.identifier),
        view_id=request.view_id,
        schema=view_to_record(request.schema),
    )
    return (event,)


def _check_view_id_is_free(view_id: str, catalog: CatalogContext) -> None:
    holder = catalog.state.view_by_id(view_id)
    if holder is not None:
        raise catalog.refusal(
            f"view id {view_id}",
            lambda event: isinstance(event, ViewCreated) and event.view_id == view_id,
            AlreadyExistsError(f"view id {view_id} is {holder.identifier}'s; take a fresh one"),
        )


def create_iceberg_view(
    request: CreateIcebergView, catalog: CatalogContext
) -> tuple[CatalogEvent, ...]:
    """Return the event that creates a view by Iceberg's updates."""
    check_name_free(request.identifier, catalog)
    _check_view_id_is_free(request.view_id, catalog)
    check_view_updates(None, request.updates)
    event = ViewCreated(
        identifier=table_name_record(request.identifier),
        view_id=request.view_id,
        updates=request.updates,
    )
    return (event,)


def update_iceberg_view(
    request: UpdateIcebergView, catalog: CatalogContext
) -> tuple[CatalogEvent, ...]:
    """Return the updates of a view; a conflict if a winner set the same part of it.

    Raises:
        CommitConflictError: A winner changed the same part, or the request is not valid any more.
    """
    view = _resolve_requested_view(request.identifier, catalog)
    try:
        updates = request.updates(view)
        check_view_updates(view.iceberg, updates)
    except LedgerError as refused:
        raise catalog.refusal(
            f"view {view.identifier}", _make_view_change_test(view.view_id), refused
        ) from refused
    if not updates:
        return ()
    sets_it = _make_view_change_test(view.view_id, changed_view_parts(updates))
    if catalog.has_winner_event(sets_it):
        changed = InvalidChangeError(
            f"view {view.identifier} was changed meanwhile; load it again, then retry"
        )
        raise catalog.refusal(f"view {view.identifier}", sets_it, changed)
    name = table_name_record(view.identifier)
    return (IcebergViewUpdated(identifier=name, view_id=view.view_id, updates=updates),)


def _make_view_change_test(
    view_id: str, parts: Collection[str] = ()
) -> Callable[[CatalogEvent], bool]:
    """Return a test for changes of a view, or of some parts of it only.

    A change through the ledger is one of the whole view: what Iceberg reads follows from all of it.
    """

    def test(event: CatalogEvent) -> bool:
        if isinstance(event, ViewAltered):
            return event.view_id == view_id
        if not isinstance(event, IcebergViewUpdated) or event.view_id != view_id:
            return False
        return not parts or not changed_view_parts(event.updates).isdisjoint(parts)

    return test


def alter_view(request: AlterView, catalog: CatalogContext) -> tuple[CatalogEvent, ...]:
    """Return the changes that do not hold already; a cell that a winner set is a conflict.

    Options and the comment of an Iceberg view are its properties, so changes of them are recorded
    as Iceberg's updates.
    """
    view = _resolve_requested_view(request.identifier, catalog)
    if view.iceberg is not None:
        wanted = UpdateIcebergView(
            request.identifier, partial(property_updates, changes=request.changes)
        )
        return update_iceberg_view(wanted, catalog)
    pending = pending_changes(
        f"view {view.identifier}",
        request.changes,
        cells_of(view.schema),
        _make_changes_getter(view.view_id),
        catalog,
    )
    if not pending:
        return ()
    name = table_name_record(view.identifier)
    return (ViewAltered(identifier=name, view_id=view.view_id, changes=pending),)


def rename_view(request: RenameView, catalog: CatalogContext) -> tuple[CatalogEvent, ...]:
    """Return the rename of a view; none if it has that name already."""
    view = _resolve_requested_view(request.source, catalog)
    if view.identifier == request.destination:
        return ()
    check_rename_conflict(
        request.source,
        view.identifier,
        catalog,
        lambda event: isinstance(event, ViewRenamed) and event.view_id == view.view_id,
    )
    check_name_free(request.destination, catalog)
    source, destination = table_name_record(view.identifier), table_name_record(request.destination)
    return (ViewRenamed(source=source, destination=destination, view_id=view.view_id),)


def drop_view(request: DropView, catalog: CatalogContext) -> tuple[CatalogEvent, ...]:
    """Return the drop of a view; none if a winner dropped it."""
    view_id = catalog.base.view(request.identifier).view_id
    found = catalog.state.view_by_id(view_id)
    if found is None:
        return ()
    return (ViewDropped(identifier=table_name_record(found.identifier), view_id=view_id),)


def _resolve_requested_view(identifier: Identifier, catalog: CatalogContext) -> ViewEntry:
    view_id = catalog.base.view(identifier).view_id
    found = catalog.state.view_by_id(view_id)
    if found is None:
        raise catalog.refusal(
            f"view {identifier}",
            lambda event: isinstance(event, ViewDropped) and event.view_id == view_id,
            NotFoundError(f"view {identifier} was dropped; read it again before you change it"),
        )
    return found


def _make_changes_getter(view_id: str) -> Callable[[CatalogEvent], tuple[ViewChange, ...]]:
    def changes_of(event: CatalogEvent) -> tuple[ViewChange, ...]:
        if isinstance(event, ViewAltered) and event.view_id == view_id:
            return event.changes
        return ()

    return changes_of


_SHORT_ID_DIGITS = 8
_START = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:///?|/")


def database_location(state: CatalogState, name: str) -> str:
    """Return `<name>.db`, or `<name>-2.db`, `<name>-3.db`, ... where that was ever used."""
    return next(
        path
        for path in _database_folder_candidates(name)
        if find_location_conflict(state, path) is None
    )


def table_location(state: HasLocations, database_path: str, name: str, table_id: str) -> str:
    """Return `<database_path>/<name>`, with digits of the table's id where that was ever used.

    Raises:
        InvalidChangeError: Even the location with the whole id was used.
    """
    digits = "".join(char for char in table_id.lower() if char in "0123456789abcdef")
    for suffix in ("", f"-{digits[:_SHORT_ID_DIGITS]}", f"-{digits}"):
        path = f"{database_path}/{_truncate_folder_name(name, suffix)}"
        if find_location_conflict(state, path) is None:
            return path
    raise InvalidChangeError(
        f"every location for table {name!r} with id {table_id} was used; take a fresh table id"
    )


def external_location(path: str) -> str:
    """Return the canonical form of a location that a user gave: no slash at its end.

    Raises:
        InvalidInputError: It is not absolute, or has empty, `.` or `..` segments, outer blanks or
            control characters.

    Example:
        >>> external_location("s3://lake/orders/")
        's3://lake/orders'
    """
    if carries_credentials(path):
        raise InvalidInputError(f"location {credentials_error_text(path)}")
    start = _START.match(path)
    if start is None or not path.isprintable() or path.strip() != path:
        raise InvalidInputError(f"location {path!r} is not absolute; write /PATH or SCHEME://PATH")
    segments = path[start.end() :].rstrip("/").split("/")
    if may_escape_folder(path) or not {"", "."}.isdisjoint(segments):
        raise InvalidInputError(
            f"location {path!r} has an empty, '.' or '..' segment; spell it out"
        )
    return path.rstrip("/")


def _database_folder_candidates(name: str) -> Iterator[str]:
    yield _truncate_folder_name(name, ".db")
    number = 2
    while True:
        yield _truncate_folder_name(name, f"-{number}.db")
        number += 1


def _truncate_folder_name(stem: str, suffix: str) -> str:
    # File systems refuse longer names than this, and a name may already be that long.
    room = MAX_NAME_LENGTH - len(suffix)
    return stem.encode()[:room].decode(errors="ignore") + suffix


def move_ledger(request: MoveLedger, catalog: CatalogContext) -> tuple[CatalogEvent, ...]:
    """Return the event of a move; none where the ledger is recorded there already."""
    if catalog.state.place == request.place:
        return ()
    _refuse_changed_location(request.was, catalog)
    return (LedgerMoved(request.place),)


def alias_ledger(request: AliasLedger, catalog: CatalogContext) -> tuple[CatalogEvent, ...]:
    """Return the event of another URL of a ledger; none where it is recorded already."""
    state = catalog.state
    is_said = state.place == request.of
    if request.place == request.of or (is_said and request.place in state.aliases):
        return ()
    _refuse_changed_location(request.was, catalog)
    alias = PlaceAliased(request.place)
    return (alias,) if is_said else (LedgerMoved(request.of), alias)


def copy_ledger(request: CopyLedger, catalog: CatalogContext) -> tuple[CatalogEvent, ...]:
    """Return the event that makes a ledger a copy; external tables stay the original's."""
    _refuse_changed_location(request.was, catalog)
    without = (each.table_id for each in catalog.state.tables.values() if is_absolute(each.path))
    return (
        LedgerCopied(
            place=request.place,
            ledger_id=request.ledger_id,
            copied_from=request.copied_from,
            without=tuple(sorted(without)),
        ),
    )


def _refuse_changed_location(was: str, catalog: CatalogContext) -> None:
    """Reject a request about the ledger's place if that has changed since the request was made.

    Raises:
        CommitConflictError: A winner moved the ledger or made it a copy.
        InvalidChangeError: An earlier commit did.
    """
    if catalog.state.place != was:
        raise catalog.refusal(
            "place",
            _is_location_change,
            InvalidChangeError(
                f"the ledger is recorded at {catalog.state.place} by now; check it with "
                "lakeledger doctor, then retry"
            ),
        )


def _is_location_change(event: CatalogEvent) -> bool:
    return isinstance(event, LedgerMoved | LedgerCopied)


_MOST_NAMES_SHOWN = 10


class CatalogIntent:
    """A request to the catalog, which can be decided on any state.

    Only the first state is remembered: names in the request mean what they meant there.

    Args:
        request: The request.
        context: The commit context, for the rules of databases; None to skip them.
    """

    base_version: int | None = None

    def __init__(self, request: CatalogRequest, context: CommitContext | None = None) -> None:
        self.request = request
        self._context = context
        self._base: CatalogState | None = None
        if isinstance(request, CreateTable):
            self.base_version = request.checked_version

    def index_winners(self, winners: Sequence[Commit[CatalogEvent]]) -> None:
        """Prepare nothing; see `Intent`."""

    def decide(
        self, state: CatalogState | None, winners: Sequence[Commit[CatalogEvent]]
    ) -> tuple[CatalogEvent, ...]:
        """Return the events that the request becomes on `state`; none when it holds already.

        Raises:
            InvalidInputError: A name or location is unsafe, or the request breaks a rule.
            NotFoundError: An object that it names does not exist.
            AlreadyExistsError: A name that it wants is taken.
            CommitConflictError: One of these, because of a winner; or a winner set the same cell
                to another value.
        """
        catalog = CatalogContext(
            state or EMPTY_CATALOG, self._base or state or EMPTY_CATALOG, winners
        )
        self._base = catalog.base
        events = decide(self.request, catalog)
        if self._context is not None:
            options = {name: each.options for name, each in catalog.state.databases.items()}
            refuse_catalog_commit(options, events, self._context)
        return events


def decide(request: CatalogRequest, catalog: CatalogContext) -> tuple[CatalogEvent, ...]:
    """Return the events that a request becomes; a pure function, as `CatalogIntent.decide`."""
    return DECIDED[type(request)](request, catalog)


def _record_erasure(request: EraseValues, _catalog: CatalogContext) -> tuple[CatalogEvent, ...]:
    table = UNSET if request.table_id is None else request.table_id
    column = UNSET if request.field_id is None else request.field_id
    return (ValuesErased(request.values, request.transactions, table, column),)


def _correct_clock(request: CorrectClock, catalog: CatalogContext) -> tuple[CatalogEvent, ...]:
    decided = decide_clock_correction(catalog.state, request)
    other = catalog.has_winner_event(
        lambda event: (
            isinstance(event, ClockCorrected) and event.true_time_millis != request.true_time_millis
        )
    )
    if other:
        raise catalog.refusal(
            "clock",
            lambda event: isinstance(event, ClockCorrected),
            InvalidChangeError("the catalog's clock was corrected; check it, then retry"),
        )
    return () if decided is None else (decided,)


def _create_database(request: CreateDatabase, catalog: CatalogContext) -> tuple[CatalogEvent, ...]:
    # An identifier's check knows that a dot ends a database's name; the table's name is any.
    name = Identifier(request.name, "any").checked().database
    if name in catalog.state.databases:
        if request.if_not_exists:
            return ()
        raise catalog.refusal(
            f"database {name}",
            lambda event: isinstance(event, DatabaseCreated) and event.name == name,
            AlreadyExistsError(f"database {name} exists already; open it or choose another name"),
        )
    path = database_location(catalog.state, name)
    return (DatabaseCreated(name=name, path=path, options=dict(sorted(request.options.items()))),)


def _alter_database(request: AlterDatabase, catalog: CatalogContext) -> tuple[CatalogEvent, ...]:
    name = request.name
    both = sorted(set(request.removals) & set(request.updates))
    if both:
        raise InvalidChangeError(f"database {name}: {both} are both removed and set; choose one")
    wanted: dict[str, str | None] = {**dict.fromkeys(request.removals), **request.updates}
    now = _resolve_requested_database(name, catalog).options
    pending = {key: value for key, value in wanted.items() if now.get(key) != value}
    for key in pending:
        _refuse_option_conflict(name, key, catalog)
    if not pending:
        return ()
    removals = tuple(sorted(key for key, value in pending.items() if value is None))
    updates = {key: value for key, value in sorted(pending.items()) if value is not None}
    return (DatabaseAltered(name=name, removals=removals, updates=updates),)


def _refuse_option_conflict(name: str, key: str, catalog: CatalogContext) -> None:
    def sets_it(event: CatalogEvent) -> bool:
        if not isinstance(event, DatabaseAltered) or event.name != name:
            return False
        return key in event.removals or key in event.updates

    if catalog.has_winner_event(sets_it):
        value = catalog.state.database(name).options.get(key)
        set_to = "was removed" if value is None else f"was set to {value!r}"
        refused = InvalidChangeError(
            f"option {key!r} of database {name} {set_to}; check it and retry"
        )
        raise catalog.refusal(f"database {name} option {key}", sets_it, refused)


def _resolve_requested_database(name: str, catalog: CatalogContext) -> DatabaseEntry:
    meant = catalog.base.database(name)
    found = catalog.state.databases.get(name)
    if found is None or found.path != meant.path:
        raise catalog.refusal(
            f"database {name}",
            lambda event: isinstance(event, DatabaseDropped) and event.name == name,
            NotFoundError(f"database {name} was dropped; read it again before you change it"),
        )
    return found


def _drop_database(request: DropDatabase, catalog: CatalogContext) -> tuple[CatalogEvent, ...]:
    name = request.name
    meant = catalog.base.database(name)
    found = catalog.state.databases.get(name)
    if found is None or found.path != meant.path:
        return ()
    inside = catalog.state.names_in(name)
    if not inside:
        return (DatabaseDropped(name=name),)
    shown = ", ".join(str(each) for each in inside[:_MOST_NAMES_SHOWN])
    more = f" and {len(inside) - _MOST_NAMES_SHOWN} more" if len(inside) > _MOST_NAMES_SHOWN else ""
    raise catalog.refusal(
        f"database {name}",
        lambda event: (
            _is_created_function(event, inside)
            or any(make_name_taken_test(each)(event) for each in inside)
        ),
        InvalidChangeError(
            f"database {name} is not empty: {shown}{more}; drop or move these first",
            kind="ILLEGAL_STATE",
        ),
    )


def _is_created_function(event: CatalogEvent, names: Collection[Identifier]) -> bool:
    return isinstance(event, FunctionCreated) and identifier_of(event.identifier) in names


@frozen
class _Locations:
    """Used locations, with those of tables that the same request creates."""

    locations: MutableMapping[str, UsedLocation]


def _create_table(request: CreateTable, catalog: CatalogContext) -> tuple[CatalogEvent, ...]:
    return (_table_creation(request, catalog, catalog.state),)


def _create_tables(request: CreateTables, catalog: CatalogContext) -> tuple[CatalogEvent, ...]:
    used = _Locations(ChainMap({}, catalog.state.locations))  # type: ignore[arg-type]
    created: dict[Identifier, TableCreated] = {}
    for each in request.tables:
        if each.identifier in created:
            raise InvalidChangeError(
                f"table {each.identifier} is to be created twice by one request; name it once"
            )
        event = created[each.identifier] = _table_creation(each, catalog, used)
        use_location(used.locations, event.path)
    return tuple(created.values())


def _table_creation(
    request: CreateTable, catalog: CatalogContext, used: HasLocations
) -> TableCreated:
    name = request.identifier
    check_name_free(name, catalog)
    holder = catalog.state.table_by_id(request.table_id)
    if holder is not None:
        raise catalog.refusal(
            f"table id {request.table_id}",
            lambda event: isinstance(event, TableCreated) and event.table_id == request.table_id,
            AlreadyExistsError(
                f"table id {request.table_id} is {holder.identifier}'s; take a fresh one"
            ),
        )
    if request.origin is UNSET and not catalog.state.keeps_outside:
        refuse_unerasable(request.schema.options)
    if request.checked_version is not None:
        refuse_shared_folder(request.origin, catalog)
    return TableCreated(
        identifier=table_name_record(name),
        table_id=request.table_id,
        path=_table_path(request, catalog, used),
        schema=request.schema,
        is_external=request.external_path is not None,
        field_id_policy=request.field_id_policy,
        partition_spec=request.partition_spec,
        sort_order=request.sort_order,
        origin=request.origin,
        protocol=request.protocol,
        events=request.events,
    )


def _table_path(request: CreateTable, catalog: CatalogContext, locations: HasLocations) -> str:
    name = request.identifier
    if request.external_path is None:
        database = catalog.state.database(name.database)
        return table_location(locations, database.path, name.name, request.table_id)
    path = external_location(request.external_path)
    used = find_location_conflict(locations, path)
    if used is None:
        return path
    raise catalog.refusal(
        f"location {used}",
        lambda event: isinstance(event, TableCreated) and event.path == used,
        InvalidChangeError(
            f"location {path} of {name} meets {used}, which was given to a table before; "
            "none is used twice, so choose another"
        ),
    )


def _rename_table(request: RenameTable, catalog: CatalogContext) -> tuple[CatalogEvent, ...]:
    meant = catalog.base.table(request.source)
    found = catalog.state.table_by_id(meant.table_id)
    if found is None:
        raise catalog.refusal(
            f"table {request.source}",
            lambda event: isinstance(event, TableDropped) and event.table_id == meant.table_id,
            TableDroppedError(f"table {request.source} was dropped; it cannot be renamed"),
        )
    if found.identifier == request.destination:
        return ()
    check_rename_conflict(
        request.source,
        found.identifier,
        catalog,
        lambda event: isinstance(event, TableRenamed) and event.table_id == meant.table_id,
    )
    check_name_free(request.destination, catalog)
    destination = table_name_record(request.destination)
    source = table_name_record(found.identifier)
    return (TableRenamed(source=source, destination=destination, table_id=meant.table_id),)


def _drop_table(request: DropTable, catalog: CatalogContext) -> tuple[CatalogEvent, ...]:
    found = catalog.state.table_by_id(request.table_id)
    if found is not None:
        sealed = request.sealed_version
        if sealed is not None and sealed <= found.unsealed_version:
            return ()
        name: TableName = table_name_record(found.identifier)
        return (TableDropped(identifier=name, table_id=request.table_id, purge=request.purge),)
    if catalog.base.table_by_id(request.table_id) is not None:
        return ()
    catalog.state.table(request.identifier)
    raise TableDroppedError(
        f"table {request.identifier} with id {request.table_id} was dropped; another table has "
        "its name now: open that one if you mean it"
    )


def _undrop_table(request: UndropTable, catalog: CatalogContext) -> tuple[CatalogEvent, ...]:
    table_id = request.table_id
    gone = catalog.state.dropped.get(table_id)
    if gone is None or gone.dropped_version != request.dropped_version:
        was = "restored" if gone is None else "restored and dropped again"
        raise catalog.refusal(
            f"table id {table_id}",
            lambda event: isinstance(event, TableUndropped) and event.table_id == table_id,
            InvalidChangeError(
                f"table {table_id} was {was} since; list the dropped tables (lakeledger ls "
                "--dropped), then retry"
            ),
        )
    if gone.is_purged:
        raise catalog.refusal(
            f"table id {table_id}",
            lambda event: isinstance(event, TablePurged) and event.table_id == table_id,
            _purged_table_error(gone, _others_of_that_name(gone, catalog.state)),
        )
    advice = (
        f"restore the dropped table under another name: lakeledger undrop {table_id} --as "
        f"DATABASE.TABLE{_others_of_that_name(gone, catalog.state)}"
    )
    check_name_free(request.identifier, catalog, advice)
    sealed = UNSET if request.sealed_version is None else request.sealed_version
    name = table_name_record(request.identifier)
    return (TableUndropped(identifier=name, table_id=table_id, sealed_version=sealed),)


def _others_of_that_name(gone: DroppedTable, state: CatalogState) -> str:
    """Return the dropped tables of a name for messages, if there are several."""
    of_name = state.dropped_of(gone.identifier)
    return f"; {dropped_tables_text(of_name)}" if len(of_name) > 1 else ""


def _purged_table_error(gone: DroppedTable, others: str) -> InvalidChangeError:
    return InvalidChangeError(
        f"table {gone.identifier} (id {gone.table_id}) cannot be restored: it was dropped with "
        "--purge, and lakeledger maintain has deleted its files. Its history is kept (lakeledger "
        f"show {gone.table_id} --dropped){others}",
        kind="ILLEGAL_STATE",
    )


def _purge_table(request: PurgeTable, catalog: CatalogContext) -> tuple[CatalogEvent, ...]:
    gone = catalog.state.dropped.get(request.table_id)
    if gone is None or gone.dropped_version != request.dropped_version:
        raise catalog.refusal(
            f"table id {request.table_id}",
            lambda event: isinstance(event, TableUndropped) and event.table_id == request.table_id,
            InvalidChangeError(
                f"table {request.table_id} was restored since; its files are not deleted"
            ),
        )
    if gone.is_purged:
        return ()
    name = table_name_record(gone.identifier)
    return (TablePurged(identifier=name, table_id=request.table_id),)


DECIDED: Mapping[type, Callable[[Any, CatalogContext], tuple[CatalogEvent, ...]]] = {
    CreateDatabase: _create_database,
    AlterDatabase: _alter_database,
    DropDatabase: _drop_database,
    CreateTable: _create_table,
    CreateTables: _create_tables,
    RenameTable: _rename_table,
    DropTable: _drop_table,
    UndropTable: _undrop_table,
    PurgeTable: _purge_table,
    CreateView: create_view,
    CreateIcebergView: create_iceberg_view,
    UpdateIcebergView: update_iceberg_view,
    AlterView: alter_view,
    RenameView: rename_view,
    DropView: drop_view,
    CreateFunction: create_function,
    AlterFunction: alter_function,
    DropFunction: drop_function,
    MoveLedger: move_ledger,
    AliasLedger: alias_ledger,
    CopyLedger: copy_ledger,
    EraseValues: _record_erasure,
    CorrectClock: _correct_clock,
}
"""The function that decides each kind of request."""
