"""Events of a table's lifecycle: creation, drop, promotion, clock, format rules."""

from typing import Literal

from msgspec import UNSET, Struct, UnsetType

from ledger.events.commit import Record
from ledger.events.imported import (
    IcebergEvent,
    ImportedDeltaTable,
    ImportedIcebergTable,
    ImportedPaimonTable,
    PaimonBranchUpdated,
)
from ledger.events.schema import PartitionSpecUpdated, SchemaEvent, SortOrderReplaced
from ledger.events.snapshots import (
    PartitionStatisticsSet,
    SnapshotCommitted,
    SnapshotsExpired,
    TagCreated,
)
from ledger.model.iceberg_layout import PartitionField, SortField
from ledger.model.schema import FieldIdPolicy
from ledger.model.types.wire import FieldObject


class TableName(Struct, frozen=True, gc=False, rename="camel", forbid_unknown_fields=True):
    """Full name of a table or view, as in the DLF metadata API."""

    database_name: str
    table_name: str


class SchemaRecord(
    Struct, frozen=True, gc=False, omit_defaults=True, rename="camel", forbid_unknown_fields=True
):
    """A table's first schema, every id resolved."""

    fields: tuple[FieldObject, ...]
    highest_field_id: int
    partition_keys: tuple[str, ...] = ()
    primary_keys: tuple[str, ...] = ()
    options: dict[str, str] = {}
    comment: str | None = None
    identifier_field_ids: tuple[int, ...] = ()


ServingProtocol = Literal["iceberg", "paimon"]
"""A protocol that engines commit through: Iceberg REST, or the Paimon REST API."""

FirstEvent = (
    SchemaEvent
    | PartitionSpecUpdated
    | SortOrderReplaced
    | IcebergEvent
    | PartitionStatisticsSet
    | SnapshotCommitted
    | SnapshotsExpired
    | TagCreated
    | PaimonBranchUpdated
)
"""An event that the creation of a served table can be followed by in the same transaction."""


class TableCreated(Record, frozen=True, tag="createTable", kw_only=True):
    """A table was created, with this name and this schema (its schema 0).

    `path` is its location: relative to the ledger's root, or absolute for an external table.
    `field_id_policy` fixes how field ids are assigned; it never changes. `partition_spec` is
    spec 0; absent: identity over the partition keys. `sort_order` is order 1; absent: unsorted.
    `origin` is the source of a table imported from Iceberg, Paimon or Delta; absent for one that is
    native to the ledger. `protocol` is that of the engines that own the table from its creation on;
    absent: the ledger owns a native table, and an imported one is mirrored. `events` follow in the
    same transaction of the table's own stream, whose version 0 so holds what the engine's request
    asked besides; in that stream `events` is absent.
    """

    identifier: TableName
    table_id: str
    path: str
    schema: SchemaRecord
    is_external: bool = False
    field_id_policy: FieldIdPolicy | UnsetType = UNSET
    partition_spec: tuple[PartitionField, ...] | UnsetType = UNSET
    sort_order: tuple[SortField, ...] | UnsetType = UNSET
    origin: ImportedIcebergTable | ImportedPaimonTable | ImportedDeltaTable | UnsetType = UNSET
    protocol: ServingProtocol | UnsetType = UNSET
    events: tuple[FirstEvent, ...] = ()

    @property
    def is_imported(self) -> bool:
        """True if the table was imported from another format."""
        return self.origin is not UNSET


class TablePromoted(Record, frozen=True, tag="promoteTable", kw_only=True):
    """The ledger became the owner of a table that followed a source until now.

    `source` names the source, without secrets. `catalog` is the catalog's table whose pointer was
    swapped to the ledger's files; absent where its owner had to be notified instead. Snapshots of
    the ledger's own have ids above `last_snapshot_id`, which matters for tables from Iceberg only.
    The next snapshot in the same transaction lists the live files, since the ledger lists them from
    then on.
    """

    source: str
    catalog: str | UnsetType = UNSET
    last_snapshot_id: int | UnsetType = UNSET


class OwnerSet(Record, frozen=True, tag="setOwner", kw_only=True):
    """The table's owner changed.

    `served`: engines commit data through `protocol`; the library changes metadata, and commits data
    as they do, if at all.
    `ledger`: the library commits again, and engines' commits that are based on an older version
    are rejected; `protocol` is absent then. A table that follows a source is promoted first, in
    the same transaction.
    """

    owner: Literal["ledger", "served"]
    protocol: ServingProtocol | UnsetType = UNSET


class TableDropped(Record, frozen=True, tag="dropTable", kw_only=True):
    """The table was dropped. In its own stream this seals it: only `undropTable` can follow.

    With `purge`, the files that only this table references may be deleted later; see `TablePurged`.
    """

    identifier: TableName
    table_id: str
    purge: bool = False


class TableUndropped(Record, frozen=True, tag="undropTable", kw_only=True):
    """A dropped table was restored under a name, with its id, location and history.

    The catalog's event comes first. `sealed_version` is the version of the table's stream that
    sealed it; the same event at the next version of that stream unseals it. Absent where the table
    was dropped without sealing its stream.
    """

    identifier: TableName
    table_id: str
    sealed_version: int | UnsetType = UNSET


class TablePurged(Record, frozen=True, tag="purgeTable", kw_only=True):
    """From now on the files of a dropped table are deleted, and it cannot be restored any more.

    In the catalog's stream only; no file is deleted before this event.
    """

    identifier: TableName
    table_id: str


class TableRenamed(Record, frozen=True, tag="renameTable", kw_only=True):
    """A table was renamed; its location and its stream stay where they are."""

    source: TableName
    destination: TableName
    table_id: str


class ClockCorrected(Record, frozen=True, tag="correctClock", kw_only=True):
    """The times of the commits from `first_version` up to this one were ahead of the true time.

    None of them took effect later than at `true_time_millis`: a search by time uses that for
    commits before this one that have a later time.
    """

    first_version: int
    true_time_millis: int


class FormatRulesRaised(Record, frozen=True, tag="raiseFormatRules", kw_only=True):
    """Only packages with at least these rules of the formats may change the table from now on.

    `rules` gives numbers by a format's name, each higher than before; a format that was never named
    has number 1.
    """

    rules: dict[str, int]
