"""Events of the catalog's stream: databases, views, the ledger."""

import msgspec
from msgspec import UNSET, Struct, UnsetType, field

from ledger.events.commit import Record
from ledger.events.schema import RemoveOption, SetOption, UpdateComment
from ledger.events.table import ClockCorrected, TableCreated, TableDropped, TableName, TableRenamed
from ledger.model.types.wire import FieldObject


class DatabaseCreated(Record, frozen=True, tag="createDatabase", kw_only=True):
    """A database came to be; `path` is its folder, relative to the ledger's root."""

    name: str
    path: str
    options: dict[str, str] = msgspec.field(default_factory=dict)


class DatabaseAltered(Record, frozen=True, tag="alterDatabase", kw_only=True):
    """Options of a database changed: `removals` went, `updates` were set."""

    name: str
    removals: tuple[str, ...] = ()
    updates: dict[str, str] = msgspec.field(default_factory=dict)


class DatabaseDropped(Record, frozen=True, tag="dropDatabase", kw_only=True):
    """An empty database is gone."""

    name: str


class ViewRecord(
    Struct, frozen=True, gc=False, omit_defaults=True, rename="camel", forbid_unknown_fields=True
):
    """A view's definition, as the DLF page's ViewSchema."""

    fields: tuple[FieldObject, ...]
    query: str
    dialects: dict[str, str] = msgspec.field(default_factory=dict)
    comment: str | None = None
    options: dict[str, str] = msgspec.field(default_factory=dict)


class AddDialect(Record, frozen=True, tag="addDialect"):
    """Give a view a query in one engine's dialect."""

    dialect: str
    query: str


class UpdateDialect(Record, frozen=True, tag="updateDialect"):
    """Replace a view's query in one engine's dialect."""

    dialect: str
    query: str


class DropDialect(Record, frozen=True, tag="dropDialect"):
    """Take a dialect away from a view."""

    dialect: str


ViewChange = SetOption | RemoveOption | UpdateComment | AddDialect | UpdateDialect | DropDialect
"""What a writer may ask of a view."""


class ViewCreated(Record, frozen=True, tag="createView", kw_only=True):
    """A view came to be."""

    identifier: TableName
    view_id: str
    schema: ViewRecord


class ViewAltered(Record, frozen=True, tag="alterView", kw_only=True):
    """A view changed, one change after the other."""

    identifier: TableName
    view_id: str
    changes: tuple[ViewChange, ...]


class ViewRenamed(Record, frozen=True, tag="renameView", kw_only=True):
    """A view has another name."""

    source: TableName
    destination: TableName
    view_id: str


class ViewDropped(Record, frozen=True, tag="dropView", kw_only=True):
    """A view is gone."""

    identifier: TableName
    view_id: str


class LedgerMoved(Record, frozen=True, tag="moveLedger"):
    """From here on the ledger is at this URL, and nowhere else."""

    place: str = field(name="location")


class PlaceAliased(Record, frozen=True, tag="aliasLedger"):
    """This URL leads to the same storage as the ledger's place."""

    place: str = field(name="location")


class LedgerCopied(Record, frozen=True, tag="copyLedger", kw_only=True):
    """From here on this is another ledger than the one that it was copied from.

    Its id is `ledger_id`. The tables whose ids are in `without` lie outside of the ledger's folder
    and stay the original's alone.
    """

    place: str = field(name="location")
    ledger_id: str
    copied_from: str
    without: tuple[str, ...] = field(default=(), name="excludedTableIds")


class ValuesErased(Record, frozen=True, tag="eraseValues"):
    """Somebody has what was kept outside of the lines of the whole ledger taken away.

    Whose it was is not said: that would keep it.

    Attributes:
        values: How many authors, messages and maps of properties, bounds and partition values.
        transactions: Of how many transactions; of values of columns, in how many files.
        table_id: Of which table alone, by its id.
        field_id: Of which of its columns.
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
    | ViewCreated
    | ViewAltered
    | ViewRenamed
    | ViewDropped
    | ValuesErased
    | ClockCorrected
    | LedgerMoved
    | PlaceAliased
    | LedgerCopied
)
"""Every fact that the catalog's stream can hold."""
