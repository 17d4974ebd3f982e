"""Requests to the catalog, as callers make them."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import field, frozen
from msgspec import UNSET, UnsetType

from ledger.decide.clock import CorrectClock
from ledger.events.catalog import ViewChange
from ledger.events.iceberg import IcebergBirth
from ledger.events.imported import DeltaBirth, PaimonBirth
from ledger.events.table import SchemaRecord
from ledger.model.iceberg_layout import PartitionField, SortField
from ledger.model.names import Identifier
from ledger.model.schema import FieldIdPolicy, ViewSchema


@frozen
class CreateDatabase:
    """Create a database; with `if_not_exists` one that is there is left as it is."""

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
        external_path: The absolute location of an external table; None to be given one.
        field_id_policy: Who counts field ids, as `TableCreated` has it.
        partition_spec: Spec 0, as `TableCreated` has it.
        sort_order: Order 1, as `TableCreated` has it.
        origin: Where it comes from, as `TableCreated` has it.
    """

    identifier: Identifier
    table_id: str
    schema: SchemaRecord
    external_path: str | None = None
    field_id_policy: FieldIdPolicy | UnsetType = UNSET
    partition_spec: tuple[PartitionField, ...] | UnsetType = UNSET
    sort_order: tuple[SortField, ...] | UnsetType = UNSET
    origin: IcebergBirth | PaimonBirth | DeltaBirth | UnsetType = UNSET


@frozen
class RenameTable:
    """Give a table another name, in the same or another database; its location stays."""

    source: Identifier
    destination: Identifier


@frozen
class DropTable:
    """Drop the table with that id, whatever its name is by now."""

    identifier: Identifier
    table_id: str


@frozen
class CreateView:
    """Create a view; `view_id` is a fresh UUID."""

    identifier: Identifier
    view_id: str
    schema: ViewSchema


@frozen
class AlterView:
    """Change a view, one change after the other."""

    identifier: Identifier
    changes: tuple[ViewChange, ...]


@frozen
class RenameView:
    """Give a view another name, in the same or another database."""

    source: Identifier
    destination: Identifier


@frozen
class DropView:
    """Drop a view."""

    identifier: Identifier


@frozen
class MoveLedger:
    """Say that the ledger is at a URL now, and nowhere else.

    Attributes:
        place: The URL.
        was: The state's place when this was asked.
    """

    place: str
    was: str


@frozen
class AliasLedger:
    """Say that a URL leads to the same storage as the ledger's place.

    Attributes:
        place: The URL.
        of: The ledger's place, as its root or its projections say where the state does not.
        was: The state's place when this was asked.
    """

    place: str
    of: str
    was: str


@frozen
class CopyLedger:
    """Say that this is another ledger, at a URL, with an id of its own.

    Attributes:
        place: Where it is.
        ledger_id: A fresh UUID.
        copied_from: The id that it had until now.
        was: The state's place when this was asked.
    """

    place: str
    ledger_id: str
    copied_from: str
    was: str


@frozen
class EraseValues:
    """Record that so many values, of so many transactions, are taken away.

    Attributes:
        table_id: Of which table's column alone; None: of all streams.
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
    | RenameTable
    | DropTable
    | CreateView
    | AlterView
    | RenameView
    | DropView
    | MoveLedger
    | AliasLedger
    | CopyLedger
    | EraseValues
    | CorrectClock
)
"""Everything that can be asked of the catalog."""
