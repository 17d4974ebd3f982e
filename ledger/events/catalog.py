"""Events of the catalog's stream: databases, views, functions, the ledger."""

import msgspec
from msgspec import UNSET, Struct, UnsetType, field

from ledger.events.commit import Record
from ledger.events.functions import FunctionChange, FunctionRecord
from ledger.events.iceberg_views import IcebergViewUpdate
from ledger.events.schema import RemoveOption, RequestedChange, SetOption, UpdateComment
from ledger.events.table import (
    ClockCorrected,
    TableCreated,
    TableDropped,
    TableName,
    TablePurged,
    TableRenamed,
    TableUndropped,
)
from ledger.model.types.wire import FieldObject


class DatabaseCreated(Record, frozen=True, tag="createDatabase", kw_only=True):
    """A database was created; `path` is its folder, relative to the ledger's root."""

    name: str
    path: str
    options: dict[str, str] = msgspec.field(default_factory=dict)


class DatabaseAltered(Record, frozen=True, tag="alterDatabase", kw_only=True):
    """Options of a database changed: `removals` were removed, `updates` were set."""

    name: str
    removals: tuple[str, ...] = ()
    updates: dict[str, str] = msgspec.field(default_factory=dict)


class DatabaseDropped(Record, frozen=True, tag="dropDatabase", kw_only=True):
    """An empty database was dropped."""

    name: str


class ViewRecord(
    Struct, frozen=True, gc=False, omit_defaults=True, rename="camel", forbid_unknown_fields=True
):
    """A view's definition, as ViewSchema of the DLF metadata API."""

    fields: tuple[FieldObject, ...]
    query: str
    dialects: dict[str, str] = msgspec.field(default_factory=dict)
    comment: str | None = None
    options: dict[str, str] = msgspec.field(default_factory=dict)


class AddDialect(RequestedChange, frozen=True, tag="addDialect"):
    """Give a view a query in one engine's dialect."""

    dialect: str
    query: str


class UpdateDialect(RequestedChange, frozen=True, tag="updateDialect"):
    """Replace a view's query in one engine's dialect."""

    dialect: str
    query: str


class DropDialect(RequestedChange, frozen=True, tag="dropDialect"):
    """Remove a dialect from a view."""

    dialect: str


ViewChange = SetOption | RemoveOption | UpdateComment | AddDialect | UpdateDialect | DropDialect
"""A change that a writer can request of a view."""


class ViewCreated(Record, frozen=True, tag="createView", kw_only=True):
    """A view was created: by a definition, or by the updates that make up an Iceberg view."""

    identifier: TableName
    view_id: str
    schema: ViewRecord | UnsetType = UNSET
    updates: tuple[IcebergViewUpdate, ...] | UnsetType = UNSET


class ViewAltered(Record, frozen=True, tag="alterView", kw_only=True):
    """A view changed; the changes apply in order."""

    identifier: TableName
    view_id: str
    changes: tuple[ViewChange, ...]


class IcebergViewUpdated(Record, frozen=True, tag="updateView", kw_only=True):
    """A view was changed through Iceberg; the updates apply in order.

    The first such event of a view that was created by a definition has all of its Iceberg metadata.
    """

    identifier: TableName
    view_id: str
    updates: tuple[IcebergViewUpdate, ...]


class ViewRenamed(Record, frozen=True, tag="renameView", kw_only=True):
    """A view was renamed."""

    source: TableName
    destination: TableName
    view_id: str


class ViewDropped(Record, frozen=True, tag="dropView", kw_only=True):
    """A view was dropped."""

    identifier: TableName
    view_id: str


class FunctionCreated(Record, frozen=True, tag="createFunction", kw_only=True):
    """A function was created."""

    identifier: TableName
    function_id: str
    function: FunctionRecord


class FunctionAltered(Record, frozen=True, tag="alterFunction", kw_only=True):
    """A function changed; the changes apply in order."""

    identifier: TableName
    function_id: str
    changes: tuple[FunctionChange, ...]


class FunctionDropped(Record, frozen=True, tag="dropFunction", kw_only=True):
    """A function was dropped."""

    identifier: TableName
    function_id: str


class LedgerMoved(Record, frozen=True, tag="moveLedger"):
    """The ledger moved: from now on it is at this URL only."""

    place: str = field(name="location")


class PlaceAliased(Record, frozen=True, tag="aliasLedger"):
    """This URL leads to the same storage as the ledger's location."""

    place: str = field(name="location")


class LedgerCopied(Record, frozen=True, tag="copyLedger", kw_only=True):
    """The ledger became a copy: from now on it is not the one that it was copied from.

    Its id is `ledger_id`. The tables whose ids are in `without` are outside of the ledger's folder
    and belong to the original only.
    """

    place: str = field(name="location")
    ledger_id: str
    copied_from: str
    without: tuple[str, ...] = field(default=(), name="excludedTableIds")


class ValuesErased(Record, frozen=True, tag="eraseValues"):
    """Values kept in sidecars, of the whole ledger or of one column, were erased.

    The event does not identify their person: that would keep the data.

    Attributes:
        values: Number of authors, messages and maps of properties, or of bounds and partition
            values.
        transactions: Number of transactions that had them; for values of columns, number of files.
        table_id: The table, by its id, if only one was affected.
        field_id: The column of that table.
    """

    values: int
    transactions: int
    table_id: str | UnsetType = UNSET
    field_id: int | UnsetType = UNSET


CatalogEvent = (
    DatabaseCreated
    | DatabaseAltered
    | DatabaseDropped
    | TableCreated
    | TableRenamed
    | TableDropped
    | TableUndropped
    | TablePurged
    | ViewCreated
    | ViewAltered
    | IcebergViewUpdated
    | ViewRenamed
    | ViewDropped
    | FunctionCreated
    | FunctionAltered
    | FunctionDropped
    | ValuesErased
    | ClockCorrected
    | LedgerMoved
    | PlaceAliased
    | LedgerCopied
)
"""Every event that the catalog's stream can hold."""
