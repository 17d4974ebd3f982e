"""CatalogState: databases, tables, views, functions and their locations.

Tables and views of one database share one namespace; functions have another. A table is identified
by its id, which renames do not change; its location is fixed when it is created.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TypeVar

from attrs import field, frozen

from ledger.model.errors import NotFoundError
from ledger.model.functions import Function
from ledger.model.instant import ClockCorrection
from ledger.model.messages import moment, similar_names
from ledger.model.names import Identifier
from ledger.model.schema import ViewSchema
from ledger.state.iceberg_view import IcebergView
from ledger.state.used_locations import UsedLocation


def identifier_sort_key(identifier: Identifier) -> tuple[str, str]:
    """Return the sort key of names: the database first, then the name in it."""
    return identifier.database, identifier.name


_EntryT = TypeVar("_EntryT")


@frozen
class Audit:
    """Author and time of creation and of the last change; effective times, Unix milliseconds."""

    created_at: int
    created_by: str
    updated_at: int
    updated_by: str


@frozen
class DatabaseEntry:
    """A database. `path` is its folder, relative to the ledger's root, never used by another."""

    name: str
    path: str
    options: Mapping[str, str] = field(hash=False)
    audit: Audit


@frozen
class TableEntry:
    """A table in the catalog.

    Attributes:
        identifier: Its current name.
        table_id: Its UUID, which renames do not change.
        path: Its location: relative to the ledger's root, absolute when external.
        is_external: Whether the location was given by the user.
        audit: Of its name and existence; its own stream records changes of its contents.
        created_version: The catalog's commit that created it, and so contains its version 0.
        undropped_version: The catalog's commit that restored it last; -1 if it was never restored.
        unsealed_version: The version of its stream whose seal that commit undid; -1 for none. While
            the stream ends with this version, the restoration is to be completed.
    """

    identifier: Identifier
    table_id: str
    path: str
    is_external: bool
    audit: Audit
    created_version: int
    undropped_version: int = -1
    unsealed_version: int = -1


@frozen
class DroppedTable:
    """A dropped table, which can be restored until its files are deleted.

    Attributes:
        entry: The table as it was; the last change of its audit is the drop.
        dropped_version: The catalog's commit that dropped it.
        is_purge_requested: True if the drop asked to delete the table's files later.
        is_purged: True once it was recorded that they are deleted.
    """

    entry: TableEntry
    dropped_version: int
    is_purge_requested: bool = False
    is_purged: bool = False

    @property
    def identifier(self) -> Identifier:
        """Its name when it was dropped."""
        return self.entry.identifier

    @property
    def table_id(self) -> str:
        """Its UUID, which tells apart the dropped tables of one name."""
        return self.entry.table_id

    @property
    def dropped_at(self) -> int:
        """The effective time of the drop, Unix milliseconds."""
        return self.entry.audit.updated_at

    @property
    def dropped_by(self) -> str:
        """The author of the drop."""
        return self.entry.audit.updated_by

    def __str__(self) -> str:
        files = ", its files were deleted" if self.is_purged else ""
        return f"{self.identifier}, id {self.table_id}, dropped {moment(self.dropped_at)}{files}"


@frozen
class ViewEntry:
    """A view in the catalog.

    Attributes:
        identifier: Its current name.
        view_id: Its id, which renames do not change.
        schema: Its definition; of an Iceberg view that of the current version.
        audit: Of its name, existence and definition.
        iceberg: Its Iceberg metadata; None while it was changed through the ledger only.
    """

    identifier: Identifier
    view_id: str
    schema: ViewSchema
    audit: Audit
    iceberg: IcebergView | None = field(default=None, hash=False)


@frozen
class FunctionEntry:
    """A function in the catalog.

    Attributes:
        identifier: Its name, which a table or view may have, too.
        function_id: Its id.
        function: Its parameters and definitions.
        audit: Of its existence and definition.
    """

    identifier: Identifier
    function_id: str
    function: Function
    audit: Audit


@frozen(kw_only=True)
class CatalogState:
    """The catalog right after one commit.

    Every mapping is iterated by name, so that a state read back from a checkpoint has the same
    order. The mappings of tables and locations read parts of their checkpoint when they are asked.

    Attributes:
        version: That commit's number; -1 before the first.
        time_millis: Its time, Unix milliseconds.
        effective_millis: The newest effective time up to it.
        databases: By name.
        tables: By full name.
        table_names: The full name of each table, by its id.
        views: By full name.
        functions: By full name.
        dropped: The dropped tables, by id, in the order of the drops' versions, then of ids.
        locations: Every location ever given to a database or table, dropped ones included, and the
            folders above them, by `location_key`.
        used_path_count: The number of these locations.
        corrections: Corrections of clocks that were ahead, oldest first.
        place: The URL that the ledger was last declared to be at; empty where it never moved.
        placed_version: The commit that declared it; -1 for none.
        aliases: Other URLs that lead to the same storage.
        ledger_id: Its id since it became a copy; empty for that of its root.
        copied_from: The id of the ledger that it was copied from then; empty for none.
        keeps_outside: Whether authors, messages and properties are kept in sidecars; `created_by`
            and `updated_by` then hold digests.
    """

    version: int
    time_millis: int
    effective_millis: int
    databases: Mapping[str, DatabaseEntry] = field(factory=dict, hash=False)
    tables: Mapping[Identifier, TableEntry] = field(factory=dict, hash=False)
    table_names: Mapping[str, Identifier] = field(factory=dict, hash=False)
    views: Mapping[Identifier, ViewEntry] = field(factory=dict, hash=False)
    functions: Mapping[Identifier, FunctionEntry] = field(factory=dict, hash=False)
    dropped: Mapping[str, DroppedTable] = field(factory=dict, hash=False)
    locations: Mapping[str, UsedLocation] = field(factory=dict, hash=False)
    used_path_count: int = 0
    corrections: tuple[ClockCorrection, ...] = ()
    place: str = ""
    placed_version: int = -1
    aliases: tuple[str, ...] = ()
    ledger_id: str = ""
    copied_from: str = ""
    keeps_outside: bool = False

    def database(self, name: str) -> DatabaseEntry:
        """Return the database of that name.

        Raises:
            NotFoundError: There is none; the message names similar ones.

        Example:
            >>> CatalogState(version=-1, time_millis=0, effective_millis=0).database("shop")
            Traceback (most recent call last):
            ledger.model.errors.NotFoundError: database shop does not exist: there are no ...
        """
        if name in self.databases:
            return self.databases[name]
        hint = _similar_names_hint(name, self.databases, "databases")
        raise NotFoundError(f"database {name} does not exist: {hint}")

    def table(self, identifier: Identifier) -> TableEntry:
        """Return the table of that name.

        Raises:
            NotFoundError: The database, or the table in it, does not exist; or it is a view. The
                message names a dropped table of that name.
        """
        if identifier not in self.tables and identifier not in self.views:
            newest = self.dropped_of(identifier)[-1:]
            if newest:
                raise NotFoundError(_dropped_table_text(newest[0]))
        return self._get_entry("table", identifier, self.tables, "view", self.views)

    def view(self, identifier: Identifier) -> ViewEntry:
        """Return the view of that name.

        Raises:
            NotFoundError: The database, or the view in it, does not exist; or it is a table.
        """
        return self._get_entry("view", identifier, self.views, "table", self.tables)

    def function(self, identifier: Identifier) -> FunctionEntry:
        """Return the function of that name.

        Raises:
            NotFoundError: The database, or the function in it, does not exist.
        """
        return self._get_entry("function", identifier, self.functions, "", ())

    def table_by_id(self, table_id: str) -> TableEntry | None:
        """Return the table with that id, by its current name; None when it was dropped."""
        name = self.table_names.get(table_id)
        return None if name is None else self.tables[name]

    @property
    def used_paths(self) -> frozenset[str]:
        """Every location ever given to a database or table."""
        return frozenset(path for each in self.locations.values() for path in each.paths)

    def dropped_of(self, identifier: Identifier) -> list[DroppedTable]:
        """Return the dropped tables that had a name at last, in the order of their drops."""
        return [each for each in self.dropped.values() if each.identifier == identifier]

    def view_by_id(self, view_id: str) -> ViewEntry | None:
        """Return the view with that id, by its current name; None when it was dropped."""
        return next((each for each in self.views.values() if each.view_id == view_id), None)

    def function_by_id(self, function_id: str) -> FunctionEntry | None:
        """Return the function with that id; None when it was dropped."""
        found = (each for each in self.functions.values() if each.function_id == function_id)
        return next(found, None)

    def kind_of(self, identifier: Identifier) -> str | None:
        """Return the kind of table or view that has a name: "table", "view" or None."""
        if identifier in self.tables:
            return "table"
        return "view" if identifier in self.views else None

    def names_in(self, database: str) -> list[Identifier]:
        """Return the names of all tables, views and functions in a database, sorted."""
        names = {*self.tables, *self.views, *self.functions}
        return sorted(
            (each for each in names if each.database == database), key=identifier_sort_key
        )

    def _get_entry(
        self,
        kind: str,
        identifier: Identifier,
        entries: Mapping[Identifier, _EntryT],
        other_kind: str,
        others: Collection[Identifier],
    ) -> _EntryT:
        if identifier in entries:
            return entries[identifier]
        if identifier in others:
            raise NotFoundError(
                f"{identifier} is a {other_kind}, not a {kind}; ask for the {other_kind}"
            )
        self.database(identifier.database)
        hint = _similar_names_hint(str(identifier), [str(each) for each in entries], f"{kind}s")
        raise NotFoundError(f"{kind} {identifier} does not exist: {hint}")


EMPTY_CATALOG = CatalogState(version=-1, time_millis=0, effective_millis=0)
"""The catalog before its first commit."""


_MOST_DROPPED_SHOWN = 10


def dropped_tables_text(dropped: Iterable[DroppedTable]) -> str:
    """Return dropped tables with ids and times as one text for messages, newest drop first."""
    known = [str(each) for each in dropped][::-1]
    if not known:
        return "no table is dropped"
    more = len(known) - _MOST_DROPPED_SHOWN
    rest = f" and {more} more (lakeledger ls --dropped)" if more > 0 else ""
    return f"dropped tables: {'; '.join(known[:_MOST_DROPPED_SHOWN])}{rest}"


def _dropped_table_text(dropped: DroppedTable) -> str:
    said = f"table {dropped.identifier} does not exist: it was dropped {moment(dropped.dropped_at)}"
    if dropped.is_purged:
        return f"{said}, and its files were deleted; create it again"
    return f"{said}; to restore it: lakeledger undrop {dropped.identifier}"


def _similar_names_hint(name: str, names: Collection[str], plural: str) -> str:
    matches = similar_names(name, names)
    if matches:
        return f"did you mean {' or '.join(matches)}?"
    none = f"no {plural} have a similar name" if names else f"there are no {plural} yet"
    return f"{none}; look again or create it"
