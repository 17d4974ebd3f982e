"""Requested changes and recorded events: every kind that a log can hold."""

from __future__ import annotations

from ledger.events.catalog import CatalogEvent
from ledger.events.imported import DeltaFollowed, IcebergEvent, PaimonBranchUpdated
from ledger.events.schema import (
    PartitionSpecUpdated,
    SchemaChange,
    SchemaEvent,
    SortOrderReplaced,
    SpecChange,
)
from ledger.events.snapshots import (
    BranchCommitted,
    PartitionStatisticsSet,
    RolledBack,
    SnapshotCommitted,
    SnapshotsExpired,
    TagCreated,
    TagDeleted,
    TagReplaced,
)
from ledger.events.table import (
    ClockCorrected,
    FormatRulesRaised,
    OwnerSet,
    TableCreated,
    TableDropped,
    TablePromoted,
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
    | ClockCorrected
    | FormatRulesRaised
    | IcebergEvent
    | PaimonBranchUpdated
    | DeltaFollowed
    | TablePromoted
    | OwnerSet
)
"""Every fact that a table's stream can hold."""

__all__ = ["CatalogEvent", "SchemaChange", "SchemaEvent", "SpecChange", "TableEvent"]
