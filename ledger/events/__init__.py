"""Every change that a writer may ask for, every event that the log can hold, and nothing else.

`schema_changes` and `spec_changes` are what is asked, `schema_events` and `spec_events` what it
became; `table_events`, `snapshot_events`, `clock_events` and `catalog_events` hold the rest, `born`
what only tables say that were born elsewhere.
`formats` says which version of the format each needs.
`base` is the shape that all of them share on the wire, and what the log calls each.
`rules_events` say how high a table's formats' rules are, `commit` what commits hold them.
`FORMAT.md` describes their bytes.

What fields may hold stands there as it is, and not as a text: each process that opens a table
would compile some 180 texts for its decoders, which took it two of seven milliseconds.
"""

from __future__ import annotations

from ledger.events.born.delta import DeltaFollowed
from ledger.events.born.iceberg import IcebergEvent
from ledger.events.born.paimon import PaimonBranchUpdated
from ledger.events.catalog_events import CatalogEvent
from ledger.events.clock_events import ClockCorrected
from ledger.events.rules_events import FormatRulesRaised
from ledger.events.schema_changes import SchemaChange
from ledger.events.schema_events import SchemaEvent
from ledger.events.snapshot_events import (
    BranchCommitted,
    PartitionStatisticsSet,
    RolledBack,
    SnapshotCommitted,
    SnapshotsExpired,
    TagCreated,
    TagDeleted,
    TagReplaced,
)
from ledger.events.spec_changes import SpecChange
from ledger.events.spec_events import PartitionSpecUpdated, SortOrderReplaced
from ledger.events.table_events import OwnerSet, TableCreated, TableDropped, TablePromoted

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
