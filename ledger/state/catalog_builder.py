"""CatalogBuilder: the fold of the catalog's commits into a state."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
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
from ledger.state.catalog_records import (
    DROPPED_TABLES,
    LOCATIONS,
    TABLE_NAMES,
    TABLES,
    contradiction_error,
    duplicate_id_error,
    name_taken_error,
)
from ledger.state.definitions import (
    apply_function_changes,
    apply_view_changes,
    function_from_record,
    view_from_record,
)
from ledger.state.iceberg_view import fold_view_updates
from ledger.state.paged_map import PagedMapDraft, page_count
from ledger.state.stream import (
    clock_correction_of,
    keeps_outside,
    refuse_misplaced_commit,
    sidecar_author_digest,
)
from ledger.state.used_locations import UsedLocation, location_key, uses_above

_K = TypeVar("_K")
_V = TypeVar("_V")
_Entry = TypeVar("_Entry", DatabaseEntry, TableEntry, ViewEntry, FunctionEntry)


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
        self._tables = PagedMapDraft(TABLES, base.tables)
        self._table_names = PagedMapDraft(TABLE_NAMES, base.table_names)
        self._views = dict(base.views)
        self._functions = dict(base.functions)
        self._dropped = PagedMapDraft(DROPPED_TABLES, base.dropped)
        self._locations = PagedMapDraft(LOCATIONS, base.locations)
        self._used_path_count = base.used_path_count
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
        # By a number that never falls, so that pages are not split and merged in turn.
        pages = page_count(self._used_path_count)
        return CatalogState(
            version=self.version,
            time_millis=self.time_millis,
            effective_millis=self.effective_millis,
            databases=dict(sorted(self._databases.items())),
            tables=self._tables.frozen(pages),
            table_names=self._table_names.frozen(pages),
            views=_sort_by_identifier(self._views),
            functions=_sort_by_identifier(self._functions),
            dropped=self._dropped.frozen(pages),
            locations=self._locations.frozen(pages),
            used_path_count=self._used_path_count,
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
                self._rename_table(entry, identifier_of(destination))
            case TableDropped():
                self._drop_table(event)
            case TableUndropped():
                self._restore_table(event)
            case TablePurged(identifier=name, table_id=table_id):
                gone = self._dropped_table(identifier_of(name), table_id)
                self._dropped.put(table_id, evolve(gone, is_purged=True))
            case ViewCreated():
                self._create_view(event)
            case ViewAltered(identifier=name, view_id=view_id, changes=changes):
                view = self._existing_view(identifier_of(name), view_id)
                self._alter_view(view, changes)
            case IcebergViewUpdated():
                self._update_iceberg_view(event)
            case ViewRenamed(source=source, destination=destination, view_id=view_id):
                view = self._existing_view(identifier_of(source), view_id)
                self._rename_view(view, identifier_of(destination))
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
        for name, entry in _clamp_audit_times(dict(self._tables.items()), latest).items():
            self._tables.put(name, entry)
        self._views = _clamp_audit_times(self._views, latest)
        self._functions = _clamp_audit_times(self._functions, latest)
        dropped = dict(self._dropped.items())
        entries = {table_id: each.entry for table_id, each in dropped.items()}
        for table_id, entry in _clamp_audit_times(entries, latest).items():
            self._dropped.put(table_id, evolve(dropped[table_id], entry=entry))

    def _set_location(self, place: str) -> None:
        self._place, self._placed_version, self._aliases = place, self.version, ()

    def _apply_ledger_copy(self, event: LedgerCopied) -> None:
        self._set_location(event.place)
        self._ledger_id, self._copied_from = event.ledger_id, event.copied_from
        for table_id in event.without:
            name = self._table_names.get(table_id)
            if name is None:
                raise contradiction_error(
                    f"table {table_id}, which the copy leaves, does not exist"
                )
            self._tables.discard(name)
            self._table_names.discard(table_id)
        # Likewise, dropped tables outside of the ledger's folder are left to the original.
        for table_id, each in self._dropped.items():
            if is_absolute(each.entry.path):
                self._dropped.discard(table_id)

    def _create_database(self, event: DatabaseCreated) -> None:
        if event.name in self._databases:
            raise contradiction_error(f"database {event.name} exists already; alter it instead")
        self._reserve_path(event.path)
        options = dict(sorted(event.options.items()))
        self._databases[event.name] = DatabaseEntry(
            event.name, event.path, options, self._creation_audit()
        )

    def _alter_database(self, event: DatabaseAltered) -> None:
        database = self._with_update_audit(self._existing_database(event.name))
        both = sorted(set(event.removals) & set(event.updates))
        if both:
            raise contradiction_error(f"database {event.name}: {both} are both removed and set")
        kept = {key: text for key, text in database.options.items() if key not in event.removals}
        options = dict(sorted((kept | event.updates).items()))
        self._databases[event.name] = evolve(database, options=options)

    def _drop_database(self, name: str) -> None:
        self._existing_database(name)
        tables = (identifier for identifier, _ in self._tables.items())
        names = (*tables, *self._views, *self._functions)
        inside = [str(each) for each in names if each.database == name]
        if inside:
            raise contradiction_error(
                f"database {name} is not empty: {sorted(inside)}; drop them first"
            )
        del self._databases[name]

    def _create_table(self, event: TableCreated) -> None:
        identifier = identifier_of(event.identifier)
        entry = TableEntry(
            identifier,
            event.table_id,
            event.path,
            event.is_external,
            self._creation_audit(),
            self.version,
        )
        self._add_table(entry)
        self._reserve_path(event.path)
        self._dropped.discard(event.table_id)

    def _add_table(self, entry: TableEntry) -> None:
        self._existing_database(entry.identifier.database)
        if entry.identifier in self._views:
            raise name_taken_error(entry.identifier)
        self._tables.add(entry.identifier, entry)
        self._table_names.add(entry.table_id, entry.identifier)

    def _remove_table(self, entry: TableEntry) -> None:
        self._tables.discard(entry.identifier)
        self._table_names.discard(entry.table_id)

    def _rename_table(self, entry: TableEntry, destination: Identifier) -> None:
        if destination == entry.identifier:
            raise name_taken_error(destination)
        self._remove_table(entry)
        self._add_table(evolve(self._with_update_audit(entry), identifier=destination))

    def _drop_table(self, event: TableDropped) -> None:
        entry = self._existing_table(identifier_of(event.identifier), event.table_id)
        self._remove_table(entry)
        self._dropped.put(
            entry.table_id,
            DroppedTable(self._with_update_audit(entry), self.version, event.purge),
        )

    def _restore_table(self, event: TableUndropped) -> None:
        gone = self._dropped.get(event.table_id)
        if gone is None or gone.is_purged:
            state = "is not dropped" if gone is None else "was purged"
            raise contradiction_error(f"table {event.table_id} {state}; it cannot be restored")
        entry = gone.entry
        sealed = event.sealed_version
        self._add_table(
            evolve(
                self._with_update_audit(entry),
                identifier=identifier_of(event.identifier),
                undropped_version=self.version,
                unsealed_version=entry.unsealed_version
                if isinstance(sealed, UnsetType)
                else sealed,
            )
        )
        self._dropped.discard(event.table_id)

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
                raise contradiction_error(f"view {identifier} has neither a schema nor updates")
            schema = view_from_record(event.schema)
        else:
            iceberg = fold_view_updates(None, event.updates)
            schema = iceberg.definition
        self._views[identifier] = ViewEntry(
            identifier, event.view_id, schema, self._creation_audit(), iceberg
        )

    def _alter_view(self, view: ViewEntry, changes: tuple[ViewChange, ...]) -> None:
        if view.iceberg is not None:
            raise contradiction_error(f"view {view.identifier} is changed by updateView only")
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
            raise contradiction_error(f"function {identifier} exists already; alter it instead")
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

    def _rename_view(self, entry: ViewEntry, destination: Identifier) -> None:
        self._check_name_is_free(destination)
        del self._views[entry.identifier]
        self._views[destination] = evolve(self._with_update_audit(entry), identifier=destination)

    def _creation_audit(self) -> Audit:
        return Audit(self._moment, self._author, self._moment, self._author)

    def _with_update_audit(self, entry: _Entry) -> _Entry:
        audit = evolve(entry.audit, updated_at=self._moment, updated_by=self._author)
        return evolve(entry, audit=audit)

    def _reserve_path(self, path: str) -> None:
        self._locations.add(location_key(path), UsedLocation((path,)))
        for key, use in uses_above(self._locations.get, path):
            self._locations.put(key, use)
        self._used_path_count += 1

    def _check_name_is_free(self, identifier: Identifier) -> None:
        self._existing_database(identifier.database)
        if identifier in self._tables or identifier in self._views:
            raise name_taken_error(identifier)

    def _existing_database(self, name: str) -> DatabaseEntry:
        if name not in self._databases:
            raise contradiction_error(f"database {name} does not exist; create it first")
        return self._databases[name]

    def _existing_table(self, identifier: Identifier, table_id: str) -> TableEntry:
        entry = self._tables.get(identifier)
        if entry is None or entry.table_id != table_id:
            raise contradiction_error(f"table {identifier} with id {table_id} does not exist")
        return entry

    def _dropped_table(self, identifier: Identifier, table_id: str) -> DroppedTable:
        gone = self._dropped.get(table_id)
        if gone is None or gone.identifier != identifier:
            raise contradiction_error(f"no table {identifier} with id {table_id} was dropped")
        return gone

    def _existing_view(self, identifier: Identifier, view_id: str) -> ViewEntry:
        entry = self._views.get(identifier)
        if entry is None or entry.view_id != view_id:
            raise contradiction_error(f"view {identifier} with id {view_id} does not exist")
        return entry

    def _existing_function(self, name: TableName, function_id: str) -> FunctionEntry:
        identifier = identifier_of(name)
        entry = self._functions.get(identifier)
        if entry is None or entry.function_id != function_id:
            raise contradiction_error(f"function {identifier} with id {function_id} does not exist")
        return entry


def _clamp_audit_times(entries: Mapping[_K, _Entry], latest: int) -> dict[_K, _Entry]:
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
            raise duplicate_id_error(kind, new_id, identifier)


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
