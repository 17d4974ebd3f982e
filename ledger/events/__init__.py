"""Requested changes and recorded events: every kind that a log can hold."""

from __future__ import annotations

from ledger.events.catalog import (
    AddDialect,
    CatalogEvent,
    DatabaseAltered,
    DatabaseCreated,
    DatabaseDropped,
    DropDialect,
    FunctionAltered,
    FunctionCreated,
    FunctionDropped,
    LedgerCopied,
    LedgerMoved,
    PlaceAliased,
    UpdateDialect,
    ValuesErased,
    ViewAltered,
    ViewChange,
    ViewCreated,
    ViewDropped,
    ViewRecord,
    ViewRenamed,
)
from ledger.events.functions import (
    AddDefinition,
    DropDefinition,
    FunctionChange,
    FunctionRecord,
    UpdateDefinition,
)
from ledger.events.imported import (
    BranchBase,
    DeltaFollowed,
    IcebergEvent,
    MetadataLogUpdated,
    PaimonBranchUpdated,
    SchemaNamed,
    SchemaReplaced,
    SnapshotRefRemoved,
    SnapshotRefSet,
    SnapshotsRemoved,
    SourceFollowed,
    StatisticsSet,
    TableFactsSet,
)
from ledger.events.partitions import PartitionAction, PartitionChange, PartitionsUpdated
from ledger.events.schema import (
    ColumnAdded,
    ColumnCommentUpdated,
    ColumnDefaultValueUpdated,
    ColumnDropped,
    ColumnMoved,
    ColumnNullabilityUpdated,
    ColumnRenamed,
    ColumnTypeUpdated,
    ColumnUndropped,
    IdentifierFieldsSet,
    MoveType,
    PartitionSpecUpdated,
    SchemaChange,
    SchemaEvent,
    SortOrderReplaced,
    SpecChange,
    SpecUpdate,
    UpdateKeys,
)
from ledger.events.snapshots import (
    BranchCommitted,
    BranchHead,
    ChangesReference,
    CommittedFacts,
    ListingEvent,
    PartitionStatisticsSet,
    RolledBack,
    SnapshotCommitted,
    SnapshotFacts,
    SnapshotsExpired,
    TagCreated,
    TagDeleted,
    TagReplaced,
    snapshot_events,
)
from ledger.events.table import (
    ClockCorrected,
    FormatRulesRaised,
    OwnerSet,
    SchemaRecord,
    ServingProtocol,
    TableCreated,
    TableDropped,
    TableName,
    TablePromoted,
    TablePurged,
    TableRenamed,
    TableUndropped,
)

TableEvent = (
    SchemaEvent
    | PartitionSpecUpdated
    | SortOrderReplaced
    | SnapshotCommitted
    | RolledBack
    | BranchCommitted
    | TagCreated
    | TagReplaced
    | TagDeleted
    | SnapshotsExpired
    | PartitionStatisticsSet
    | TableCreated
    | TableDropped
    | TableUndropped
    | ClockCorrected
    | FormatRulesRaised
    | IcebergEvent
    | PaimonBranchUpdated
    | PartitionsUpdated
    | DeltaFollowed
    | TablePromoted
    | OwnerSet
)
"""Every event that a table's stream can hold."""

__all__ = [
    "AddDefinition",
    "AddDialect",
    "BranchBase",
    "BranchCommitted",
    "BranchHead",
    "CatalogEvent",
    "ChangesReference",
    "ClockCorrected",
    "ColumnAdded",
    "ColumnCommentUpdated",
    "ColumnDefaultValueUpdated",
    "ColumnDropped",
    "ColumnMoved",
    "ColumnNullabilityUpdated",
    "ColumnRenamed",
    "ColumnTypeUpdated",
    "ColumnUndropped",
    "CommittedFacts",
    "DatabaseAltered",
    "DatabaseCreated",
    "DatabaseDropped",
    "DeltaFollowed",
    "DropDefinition",
    "DropDialect",
    "FormatRulesRaised",
    "FunctionAltered",
    "FunctionChange",
    "FunctionCreated",
    "FunctionDropped",
    "FunctionRecord",
    "IcebergEvent",
    "IdentifierFieldsSet",
    "LedgerCopied",
    "LedgerMoved",
    "ListingEvent",
    "MetadataLogUpdated",
    "MoveType",
    "OwnerSet",
    "PaimonBranchUpdated",
    "PartitionAction",
    "PartitionChange",
    "PartitionSpecUpdated",
    "PartitionStatisticsSet",
    "PartitionsUpdated",
    "PlaceAliased",
    "RolledBack",
    "SchemaChange",
    "SchemaEvent",
    "SchemaNamed",
    "SchemaRecord",
    "SchemaReplaced",
    "ServingProtocol",
    "SnapshotCommitted",
    "SnapshotFacts",
    "SnapshotRefRemoved",
    "SnapshotRefSet",
    "SnapshotsExpired",
    "SnapshotsRemoved",
    "SortOrderReplaced",
    "SourceFollowed",
    "SpecChange",
    "SpecUpdate",
    "StatisticsSet",
    "TableCreated",
    "TableDropped",
    "TableEvent",
    "TableFactsSet",
    "TableName",
    "TablePromoted",
    "TablePurged",
    "TableRenamed",
    "TableUndropped",
    "TagCreated",
    "TagDeleted",
    "TagReplaced",
    "UpdateDefinition",
    "UpdateDialect",
    "UpdateKeys",
    "ValuesErased",
    "ViewAltered",
    "ViewChange",
    "ViewCreated",
    "ViewDropped",
    "ViewRecord",
    "ViewRenamed",
    "snapshot_events",
]
