"""Table metadata: everything that one metadata file says about a table.

Source: the Iceberg table specification, "Table Metadata and Snapshots".
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TypeVar

from attrs import field, frozen

from ledger.model.errors import InvalidInputError, NotFoundError
from projections.iceberg.metadata.layout import PartitionSpec, SortOrder
from projections.iceberg.metadata.schema import Schema
from projections.iceberg.metadata.snapshot import (
    EncryptionKey,
    MetadataLogEntry,
    PartitionStatisticsFile,
    Snapshot,
    SnapshotLogEntry,
    SnapshotRef,
    StatisticsFile,
)

SUPPORTED_VERSIONS = (1, 2, 3)
SEQUENCES_SINCE = 2
ROW_IDS_SINCE = 3
NO_SNAPSHOT = -1
"""What versions 1 and 2 write for "no current snapshot"."""

_T = TypeVar("_T")


def _stripped(location: str) -> str:
    return location.removesuffix("/")


@frozen(kw_only=True)
class TableMetadata:
    """A table as one metadata file describes it.

    Attributes:
        format_version: 1, 2 or 3.
        table_uuid: None only in old version 1 tables.
        location: Base URI, without a slash at the end.
        last_sequence_number: The highest one given to a snapshot; 0 in version 1.
        last_updated_ms: When the commit that wrote the file was made, in milliseconds since 1970.
        last_column_id: The highest field id ever given; it never shrinks.
        current_schema_id: Which of `schemas` is the current one.
        schemas: All of them, oldest first.
        default_spec_id: Which of `partition_specs` new files have.
        partition_specs: All of them, oldest first.
        last_partition_id: The highest partition field id ever given.
        default_sort_order_id: Which of `sort_orders` new files should have.
        sort_orders: All of them, oldest first.
        properties: What was set.
        current_snapshot_id: The head of `main`, or None.
        next_row_id: The first row id that no row has; 0 before version 3.
        encryption_keys: Keys of encrypted files.
        refs: Branches and tags by name.
        snapshots: All valid ones, in the order in which they came.
        statistics: At most one file for a snapshot.
        partition_statistics: At most one file for a snapshot.
        snapshot_log: Which snapshot was current since when, oldest first.
        metadata_log: Earlier metadata files, oldest first.
    """

    format_version: int
    table_uuid: str | None
    location: str = field(converter=_stripped)
    last_sequence_number: int = 0
    last_updated_ms: int
    last_column_id: int
    current_schema_id: int = 0
    schemas: tuple[Schema, ...]
    default_spec_id: int = 0
    partition_specs: tuple[PartitionSpec, ...] = (PartitionSpec(0),)
    last_partition_id: int = 999
    default_sort_order_id: int = 0
    sort_orders: tuple[SortOrder, ...] = (SortOrder(0),)
    properties: Mapping[str, str] = field(factory=dict)
    current_snapshot_id: int | None = None
    next_row_id: int = 0
    encryption_keys: tuple[EncryptionKey, ...] = ()
    refs: Mapping[str, SnapshotRef] = field(factory=dict)
    snapshots: tuple[Snapshot, ...] = ()
    statistics: tuple[StatisticsFile, ...] = ()
    partition_statistics: tuple[PartitionStatisticsFile, ...] = ()
    snapshot_log: tuple[SnapshotLogEntry, ...] = ()
    metadata_log: tuple[MetadataLogEntry, ...] = ()

    @property
    def schema(self) -> Schema:
        """The current schema."""
        return _named(self.schemas_by_id, self.current_schema_id, "current-schema-id")

    @property
    def spec(self) -> PartitionSpec:
        """The default partition spec."""
        return _named(self.specs_by_id, self.default_spec_id, "default-spec-id")

    @property
    def sort_order(self) -> SortOrder:
        """The default sort order."""
        return _named(self.orders_by_id, self.default_sort_order_id, "default-sort-order-id")

    @property
    def current_snapshot(self) -> Snapshot | None:
        """The head of `main`, or None."""
        current = self.current_snapshot_id
        return None if current is None else self.snapshot(current)

    @cached_property
    def schemas_by_id(self) -> Mapping[int, Schema]:
        """All schemas by their ids."""
        return {each.schema_id: each for each in self.schemas}

    @cached_property
    def specs_by_id(self) -> Mapping[int, PartitionSpec]:
        """All partition specs by their ids."""
        return {each.spec_id: each for each in self.partition_specs}

    @cached_property
    def orders_by_id(self) -> Mapping[int, SortOrder]:
        """All sort orders by their ids."""
        return {each.order_id: each for each in self.sort_orders}

    @cached_property
    def snapshots_by_id(self) -> Mapping[int, Snapshot]:
        """All snapshots by their ids."""
        return {each.snapshot_id: each for each in self.snapshots}

    def snapshot(self, snapshot_id: int) -> Snapshot:
        """Return a snapshot.

        Raises:
            NotFoundError: The table has none of that id.
        """
        found = self.snapshots_by_id.get(snapshot_id)
        if found is None:
            raise NotFoundError(
                f"snapshot {snapshot_id} is not in the table; it expired or never was"
            )
        return found


def _named(by_id: Mapping[int, _T], number: int, key: str) -> _T:
    found = by_id.get(number)
    if found is None:
        known = ", ".join(map(str, by_id)) or "nothing"
        raise InvalidInputError(f"$.{key}: {number} is not among the ids listed, {known}")
    return found
