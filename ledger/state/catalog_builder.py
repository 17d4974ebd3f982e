"""CatalogBuilder: the fold of the catalog's commits into a state."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, TypeVar, assert_never

from attrs import evolve, frozen
from msgspec import UNSET, UnsetType

from ledger.events.catalog import (
    CatalogEvent,
    DatabaseAltered,
    DatabaseCreated,
    DatabaseDropped,
    FunctionAltered,
    FunctionCreated,
    FunctionDropped,
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
from ledger.events.commit import Commit, Transaction, kind_of
from ledger.events.table import (
    ClockCorrected,
    TableCreated,
    TableDropped,
    TableName,
    TablePurged,
    TableRenamed,
    TableUndropped,
)
from ledger.locations import is_absolute
from ledger.model.errors import InvalidChangeError
from ledger.model.names import Identifier
from ledger.state.catalog import (
    EMPTY_CATALOG,
    Audit,
    CatalogState,
    DatabaseEntry,
    DroppedTable,
    FunctionEntry,
    TableEntry,
    ViewEntry,
    identifier_sort_key,
)
from ledger.state.definitions import (
    apply_function_changes,
    apply_view_changes,
    function_from_record,
    view_from_record,
)
from ledger.state.iceberg_view import fold_view_updates
from ledger.state.stream import (
    clock_correction_of,
    keeps_outside,
    refuse_misplaced_commit,
    sidecar_author_digest,
)

_K = TypeVar("_K")
_V = TypeVar("_V")
_Entry = TypeVar("_Entry", DatabaseEntry, TableEntry, ViewEntry, FunctionEntry)
_Named = TypeVar("_Named", TableEntry, ViewEntry)


def identifier_of(name: TableName) -> Identifier:
    """Return the identifier that a record holds.

    Example:
        >>> identifier_of(TableName("shop", "orders"))
        Identifier(database='shop', name='orders')
    """
    return Identifier(name.database_name, name.table_name)


class CatalogBuilder:
    """Folds commits into a catalog's state; starts from a state, or before version 0.

    Names are not checked for safety here: that rule may grow, and written commits must fold the
    same for ever.
    """

    def __init__(self, state: CatalogState | None = None) -> None:
        base = state or EMPTY_CATALOG
        self.version = base.version
        self.time_millis = base.time_millis
        self.effective_millis = base.effective_millis
        self._corrections = base.corrections
        self._place = base.place
        self._placed_version = base.placed_version
        self._aliases = base.aliases
        self._ledger_id = base.ledger_id
        self._copied_from = base.copied_from
        self._databases = dict(base.databases)
        self._tables = dict(base.tables)
        self._views = dict(base.views)
        self._functions = dict(base.functions)
        self._dropped = dict(base.dropped)
        self._used_paths = set(base.used_paths)
        self.keeps_outside = base.keeps_outside if base.version >= 0 else None
        self._moment = 0
        self._author = ""

    def commit(self, commit: Commit[CatalogEvent]) -> None:
        """Fold one commit.

        Raises:
            InvalidChangeError: It contradicts the state; the builder must be discarded.
            InvalidTypeError: A view's column or a function's parameter has no valid type.
        """
        self.begin(commit.version, commit.time_millis)
        for transaction in commit.transactions:
            self.add(transaction)

    def begin(self, version: int, time_millis: int) -> None:
        """Begin the next commit; its transactions are added one by one.

        Raises:
            InvalidChangeError: It cannot follow.
        """
        refuse_misplaced_commit(version, time_millis, self.version, self.time_millis)
        self.version = version
        self.time_millis = time_millis

    def add(self, transaction: Transaction[CatalogEvent]) -> None:
        """Fold one transaction of the commit that was begun last.

        Raises:
            InvalidChangeError: It contradicts the state; the builder must be discarded.
        """
        effective = transaction.effective_time_millis
        self._moment = self.time_millis if isinstance(effective, UnsetType) else effective
        self._author = transaction.author
        if transaction.outside is not UNSET:
            self._author = sidecar_author_digest(transaction)
        self.keeps_outside = keeps_outside(transaction, before=self.keeps_outside)
        for event in transaction.events:
            self._apply_event(event)
        self.effective_millis = max(self.effective_millis, self._moment)

    def freeze(self) -> CatalogState:
        """Return the state after all commits so far."""
        return CatalogState(
            version=self.version,
            time_millis=self.time_millis,
            effective_millis=self.effective_millis,
            databases=dict(sorted(self._databases.items())),
            tables=_sort_by_identifier(self._tables),
            views=_sort_by_identifier(self._views),
            functions=_sort_by_identifier(self._functions),
            dropped=dict(self._dropped),
            used_paths=frozenset(self._used_paths),
            corrections=self._corrections,
            place=self._place,
            placed_version=self._placed_version,
            aliases=self._aliases,
            ledger_id=self._ledger_id,
            copied_from=self._copied_from,
            keeps_outside=bool(self.keeps_outside),
        )

    def _apply_event(  # noqa: C901, PLR0912 - one arm for each event
        self, event: CatalogEvent
    ) -> None:
        match event:
            case DatabaseCreated():
                self._create_database(event)
            case DatabaseAltered():
                self._alter_database(event)
            case DatabaseDropped(name=name):
                self._drop_database(name)
            case TableCreated():
                self._create_table(event)
            case TableRenamed(source=source, destination=destination, table_id=table_id):
                entry = self._existing_table(identifier_of(source), table_id)
                self._rename_entry(self._tables, entry, identifier_of(destination))
            case TableDropped():
                self._drop_table(event)
            case TableUndropped():
                self._restore_table(event)
            case TablePurged(identifier=name, table_id=table_id):
                gone = self._dropped_table(identifier_of(name), table_id)
                self._dropped[table_id] = evolve(gone, is_purged=True)
            case ViewCreated():
                self._create_view(event)
            case ViewAltered(identifier=name, view_id=view_id, changes=changes):
                view = self._existing_view(identifier_of(name), view_id)
                self._alter_view(view, changes)
            case IcebergViewUpdated():
                self._update_iceberg_view(event)
            case ViewRenamed(source=source, destination=destination, view_id=view_id):
                view = self._existing_view(identifier_of(source), view_id)
                self._rename_entry(self._views, view, identifier_of(destination))
            case ViewDropped(identifier=name, view_id=view_id):
                del self._views[self._existing_view(identifier_of(name), view_id).identifier]
            case FunctionCreated():
                self._create_function(event)
            case FunctionAltered():
                self._alter_function(event)
            case FunctionDropped(identifier=name, function_id=function_id):
                del self._functions[self._existing_function(name, function_id).identifier]
            case ValuesErased():
                # The values are taken out of their files; no state holds them.
                pass
            case ClockCorrected():
                self._correct_clock(event)
            case LedgerMoved(place=place):
                self._set_location(place)
            case PlaceAliased(place=place):
                self._aliases = tuple(sorted({*self._aliases, place}))
            case LedgerCopied():
                self._apply_ledger_copy(event)
            case _:
                assert_never(event)

    def _correct_clock(self, event: ClockCorrected) -> None:
        correction = clock_correction_of(event, self.version, self._moment)
        latest = correction.true_time_millis
        self._corrections = (*self._corrections, correction)
        self.effective_millis = min(self.effective_millis, latest)
        self._databases = _clamp_audit_times(self._databases, latest)
        self._tables = _clamp_audit_times(self._tables, latest)
        self._views = _clamp_audit_times(self._views, latest)
        self._functions = _clamp_audit_times(self._functions, latest)
        entries = {each.table_id: each.entry for each in self._dropped.values()}
        for table_id, entry in _clamp_audit_times(entries, latest).items():
            self._dropped[table_id] = evolve(self._dropped[table_id], entry=entry)

    def _set_location(self, place: str) -> None:
        self._place, self._placed_version, self._aliases = place, self.version, ()

    def _apply_ledger_copy(self, event: LedgerCopied) -> None:
        self._set_location(event.place)
        self._ledger_id, self._copied_from = event.ledger_id, event.copied_from
        left = {each.table_id: each.identifier for each in self._tables.values()}
        for table_id in event.without:
            if table_id not in left:
                raise _contradiction_error(
                    f"table {table_id}, which the copy leaves, does not exist"
                )
            del self._tables[left[table_id]]
        # Likewise, dropped tables outside of the ledger's folder are left to the original.
        self._dropped = {
            table_id: each
            for table_id, each in self._dropped.items()
            if not is_absolute(each.entry.path)
        }

    def _create_database(self, event: DatabaseCreated) -> None:
        if event.name in self._databases:
            raise _contradiction_error(f"database {event.name} exists already; alter it instead")
        self._reserve_path(event.path)
        options = dict(sorted(event.options.items()))
        self._databases[event.name] = DatabaseEntry(
            event.name, event.path, options, self._creation_audit()
        )

    def _alter_database(self, event: DatabaseAltered) -> None:
        database = self._with_update_audit(self._existing_database(event.name))
        both = sorted(set(event.removals) & set(event.updates))
        if both:
            raise _contradiction_error(f"database {event.name}: {both} are both removed and set")
        kept = {key: text for key, text in database.options.items() if key not in event.removals}
        options = dict(sorted((kept | event.updates).items()))
        self._databases[event.name] = evolve(database, options=options)

    def _drop_database(self, name: str) -> None:
        self._existing_database(name)
        names = (*self._tables, *self._views, *self._functions)
        inside = [str(each) for each in names if each.database == name]
        if inside:
            raise _contradiction_error(
                f"database {name} is not empty: {sorted(inside)}; drop them first"
            )
        del self._databases[name]

    def _create_table(self, event: TableCreated) -> None:
        identifier = identifier_of(event.identifier)
        self._check_name_is_free(identifier)
        entries = self._tables.values()
        _refuse_duplicate_id(
            "table", event.table_id, ((each.table_id, each.identifier) for each in entries)
        )
        self._reserve_path(event.path)
        self._dropped.pop(event.table_id, None)
        self._tables[identifier] = TableEntry(
            identifier,
            event.table_id,
            event.path,
            event.is_external,
            self._creation_audit(),
            self.version,
        )

    def _drop_table(self, event: TableDropped) -> None:
        entry = self._existing_table(identifier_of(event.identifier), event.table_id)
        del self._tables[entry.identifier]
        self._dropped[entry.table_id] = DroppedTable(
            self._with_update_audit(entry), self.version, event.purge
        )

    def _restore_table(self, event: TableUndropped) -> None:
        gone = self._dropped.get(event.table_id)
        if gone is None or gone.is_purged:
            state = "is not dropped" if gone is None else "was purged"
            raise _contradiction_error(f"table {event.table_id} {state}; it cannot be restored")
        identifier = identifier_of(event.identifier)
        self._check_name_is_free(identifier)
        del self._dropped[event.table_id]
        entry = gone.entry
        sealed = event.sealed_version
        self._tables[identifier] = evolve(
            self._with_update_audit(entry),
            identifier=identifier,
            undropped_version=self.version,
            unsealed_version=entry.unsealed_version if isinstance(sealed, UnsetType) else sealed,
        )

    def _create_view(self, event: ViewCreated) -> None:
        identifier = identifier_of(event.identifier)
        self._check_name_is_free(identifier)
        entries = self._views.values()
        _refuse_duplicate_id(
            "view", event.view_id, ((each.view_id, each.identifier) for each in entries)
        )
        iceberg = None
        if isinstance(event.updates, UnsetType):
            if isinstance(event.schema, UnsetType):
                raise _contradiction_error(f"view {identifier} has neither a schema nor updates")
            schema = view_from_record(event.schema)
        else:
            iceberg = fold_view_updates(None, event.updates)
            schema = iceberg.definition
        self._views[identifier] = ViewEntry(
            identifier, event.view_id, schema, self._creation_audit(), iceberg
        )

    def _alter_view(self, view: ViewEntry, changes: tuple[ViewChange, ...]) -> None:
        if view.iceberg is not None:
            raise _contradiction_error(f"view {view.identifier} is changed by updateView only")
        schema = apply_view_changes(view.schema, changes)
        self._views[view.identifier] = evolve(self._with_update_audit(view), schema=schema)

    def _update_iceberg_view(self, event: IcebergViewUpdated) -> None:
        view = self._existing_view(identifier_of(event.identifier), event.view_id)
        iceberg = fold_view_updates(view.iceberg, event.updates)
        self._views[view.identifier] = evolve(
            self._with_update_audit(view), schema=iceberg.definition, iceberg=iceberg
        )

    def _create_function(self, event: FunctionCreated) -> None:
        identifier = identifier_of(event.identifier)
        self._existing_database(identifier.database)
        if identifier in self._functions:
            raise _contradiction_error(f"function {identifier} exists already; alter it instead")
        entries = self._functions.values()
        _refuse_duplicate_id(
            "function", event.function_id, ((each.function_id, each.identifier) for each in entries)
        )
        self._functions[identifier] = FunctionEntry(
            identifier,
            event.function_id,
            function_from_record(event.function),
            self._creation_audit(),
        )

    def _alter_function(self, event: FunctionAltered) -> None:
        entry = self._existing_function(event.identifier, event.function_id)
        function = apply_function_changes(entry.function, event.changes)
        self._functions[entry.identifier] = evolve(
            self._with_update_audit(entry), function=function
        )

    def _rename_entry(
        self, entries: dict[Identifier, _Named], entry: _Named, destination: Identifier
    ) -> None:
        self._check_name_is_free(destination)
        del entries[entry.identifier]
        entries[destination] = evolve(self._with_update_audit(entry), identifier=destination)

    def _creation_audit(self) -> Audit:
        return Audit(self._moment, self._author, self._moment, self._author)

    def _with_update_audit(self, entry: _Entry) -> _Entry:
        audit = evolve(entry.audit, updated_at=self._moment, updated_by=self._author)
        return evolve(entry, audit=audit)

    def _reserve_path(self, path: str) -> None:
        if path in self._used_paths:
            raise _contradiction_error(f"location {path} was used before; none is used twice")
        self._used_paths.add(path)

    def _check_name_is_free(self, identifier: Identifier) -> None:
        self._existing_database(identifier.database)
        if identifier in self._tables or identifier in self._views:
            raise _contradiction_error(f"{identifier} exists already; choose another name")

    def _existing_database(self, name: str) -> DatabaseEntry:
        if name not in self._databases:
            raise _contradiction_error(f"database {name} does not exist; create it first")
        return self._databases[name]

    def _existing_table(self, identifier: Identifier, table_id: str) -> TableEntry:
        entry = self._tables.get(identifier)
        if entry is None or entry.table_id != table_id:
            raise _contradiction_error(f"table {identifier} with id {table_id} does not exist")
        return entry

    def _dropped_table(self, identifier: Identifier, table_id: str) -> DroppedTable:
        gone = self._dropped.get(table_id)
        if gone is None or gone.identifier != identifier:
            raise _contradiction_error(f"no table {identifier} with id {table_id} was dropped")
        return gone

    def _existing_view(self, identifier: Identifier, view_id: str) -> ViewEntry:
        entry = self._views.get(identifier)
        if entry is None or entry.view_id != view_id:
            raise _contradiction_error(f"view {identifier} with id {view_id} does not exist")
        return entry

    def _existing_function(self, name: TableName, function_id: str) -> FunctionEntry:
        identifier = identifier_of(name)
        entry = self._functions.get(identifier)
        if entry is None or entry.function_id != function_id:
            raise _contradiction_error(
                f"function {identifier} with id {function_id} does not exist"
            )
        return entry


def _clamp_audit_times(entries: dict[_K, _Entry], latest: int) -> dict[_K, _Entry]:
    """Return the entries without any time after `latest`."""
    return {
        name: evolve(
            each,
            audit=evolve(
                each.audit,
                created_at=min(each.audit.created_at, latest),
                updated_at=min(each.audit.updated_at, latest),
            ),
        )
        for name, each in entries.items()
    }


def _refuse_duplicate_id(kind: str, new_id: str, taken: Iterable[tuple[str, Identifier]]) -> None:
    for other_id, identifier in taken:
        if other_id == new_id:
            raise _contradiction_error(f"{kind} id {new_id} is {identifier}'s; take a fresh one")


def _contradiction_error(message: str) -> InvalidChangeError:
    return InvalidChangeError(message, kind="ILLEGAL_STATE")


def _sort_by_identifier(entries: dict[Identifier, _V]) -> dict[Identifier, _V]:
    return {name: entries[name] for name in sorted(entries, key=identifier_sort_key)}


ABOUT_TABLES: Final = frozenset(
    kind_of(each)
    for each in (
        *(TableCreated, TableRenamed, TableDropped, TableUndropped, TablePurged, LedgerCopied),
    )
)
"""The kinds of events that affect `LiveOrDroppedTables`; commits without them can be skipped."""


@frozen
class LiveOrDroppedTable:
    """A table that exists or was dropped.

    Attributes:
        table_id: Its UUID, which renames do not change.
        path: Its location: relative to the ledger's root, absolute when external.
        created_version: The catalog's commit that created it.
        names: Its names, each with the time of the catalog's commit that gave it, Unix
            milliseconds; oldest first.
        dropped_millis: When it was dropped from the catalog, Unix milliseconds; None while it
            exists.
        is_purged: True once it was recorded that its files are deleted.
    """

    table_id: str
    path: str
    created_version: int
    names: tuple[tuple[int, Identifier], ...]
    dropped_millis: int | None = None
    is_purged: bool = False

    @property
    def identifier(self) -> Identifier:
        """Its current name, or the last one of a dropped table."""
        return self.names[-1][1]

    def name_at(self, time_millis: int) -> Identifier:
        """Return its name at a time; before its first name, that one.

        Example:
            >>> names = (5, Identifier("shop", "a")), (9, Identifier("shop", "b"))
            >>> table = LiveOrDroppedTable("id", "shop.db/a", 0, names)
            >>> [str(table.name_at(each)) for each in (1, 8, 9)]
            ['shop.a', 'shop.a', 'shop.b']
        """
        known = [name for since, name in self.names if since <= time_millis]
        return known[-1] if known else self.names[0][1]


class LiveOrDroppedTables:
    """The tables of a catalog, read commit by commit, in the order of their creation.

    Dropped ones are included; those that a copy left to its original are not.
    """

    def __init__(self) -> None:
        self._by_id: dict[str, LiveOrDroppedTable] = {}

    @classmethod
    def of(cls, commits: Iterable[Commit[CatalogEvent]]) -> LiveOrDroppedTables:
        """Return the tables that some commits name."""
        tables = cls()
        for each in commits:
            tables.learn(each)
        return tables

    def __iter__(self) -> Iterator[LiveOrDroppedTable]:
        return iter(self._by_id.values())

    def learn(self, commit: Commit[CatalogEvent]) -> None:
        """Add the catalog's next commit."""
        for transaction in commit.transactions:
            for event in transaction.events:
                self._apply_table_event(commit, event)

    def _apply_table_event(self, commit: Commit[CatalogEvent], event: CatalogEvent) -> None:
        known, now = self._by_id, commit.time_millis
        if isinstance(event, TableCreated):
            first = now, identifier_of(event.identifier)
            known[event.table_id] = LiveOrDroppedTable(
                event.table_id, event.path, commit.version, (first,)
            )
        elif isinstance(event, TableRenamed):
            old = known[event.table_id]
            named = now, identifier_of(event.destination)
            known[event.table_id] = evolve(old, names=(*old.names, named))
        elif isinstance(event, TableDropped):
            known[event.table_id] = evolve(known[event.table_id], dropped_millis=now)
        elif isinstance(event, TablePurged):
            known[event.table_id] = evolve(known[event.table_id], is_purged=True)
        elif isinstance(event, TableUndropped):
            old, name = known[event.table_id], identifier_of(event.identifier)
            names = old.names if name == old.identifier else (*old.names, (now, name))
            known[event.table_id] = evolve(old, names=names, dropped_millis=None)
        elif isinstance(event, LedgerCopied):
            for table_id in event.without:
                del known[table_id]
