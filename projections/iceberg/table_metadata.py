"""TableMetadata: one metadata file of a table, and its consistency rules.

Source: the Iceberg table specification, "Table Metadata and Snapshots"; the tolerances are those
of Java's TableMetadata class.

Source: Iceberg's documentation, "Table properties".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from typing import TypeVar

from attrs import field, frozen

from ledger.model.errors import InvalidInputError, NotFoundError
from ledger.model.iceberg_layout import PartitionSpec, SortOrder
from ledger.model.iceberg_objects import (
    MAIN,
    EncryptionKey,
    IcebergSnapshot,
    MetadataLogEntry,
    PartitionStatisticsFile,
    SnapshotLogEntry,
    SnapshotRef,
    StatisticsFile,
)
from projections.iceberg.metadata_schema import Schema

SUPPORTED_VERSIONS = (1, 2, 3)
SEQUENCES_SINCE = 2
ROW_IDS_SINCE = 3
NO_SNAPSHOT = -1
"""The value for "no current snapshot" in versions 1 and 2."""

_T = TypeVar("_T")


def _without_trailing_slash(location: str) -> str:
    return location.removesuffix("/")


@frozen(kw_only=True)
class TableMetadata:
    """Content of one metadata file of a table.

    Attributes:
        format_version: 1, 2 or 3.
        table_uuid: None only in old version 1 tables.
        location: Base URI, without a slash at the end.
        last_sequence_number: The highest one assigned to a snapshot; 0 in version 1.
        last_updated_ms: The time of the commit that wrote the file, in milliseconds since 1970.
        last_column_id: The highest field id ever assigned; it never shrinks.
        current_schema_id: The id of the current schema.
        schemas: All of them, oldest first.
        default_spec_id: The id of the partition spec of new files.
        partition_specs: All of them, oldest first.
        last_partition_id: The highest partition field id ever assigned.
        default_sort_order_id: The id of the sort order of new files.
        sort_orders: All of them, oldest first.
        properties: The table properties.
        current_snapshot_id: The head of `main`, or None.
        next_row_id: The first unassigned row id; 0 before version 3.
        encryption_keys: Keys of encrypted files.
        refs: Branches and tags by name.
        snapshots: All valid ones, in the order in which they were added.
        statistics: At most one file for a snapshot.
        partition_statistics: At most one file for a snapshot.
        snapshot_log: The snapshots that were current, with the time since, oldest first.
        metadata_log: Earlier metadata files, oldest first.
        snapshots_seen: Cache of the first snapshots by id, as far as they were looked up.
    """

    format_version: int
    table_uuid: str | None
    location: str = field(converter=_without_trailing_slash)
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
    snapshots: tuple[IcebergSnapshot, ...] = ()
    statistics: tuple[StatisticsFile, ...] = ()
    partition_statistics: tuple[PartitionStatisticsFile, ...] = ()
    snapshot_log: tuple[SnapshotLogEntry, ...] = ()
    metadata_log: tuple[MetadataLogEntry, ...] = ()
    snapshots_seen: dict[int, IcebergSnapshot] = field(
        init=False, factory=dict, eq=False, repr=False
    )

    @property
    def schema(self) -> Schema:
        """The current schema."""
        return _require_by_id(self.schemas_by_id, self.current_schema_id, "current-schema-id")

    @property
    def spec(self) -> PartitionSpec:
        """The default partition spec."""
        return _require_by_id(self.specs_by_id, self.default_spec_id, "default-spec-id")

    @property
    def sort_order(self) -> SortOrder:
        """The default sort order."""
        return _require_by_id(
            self.orders_by_id, self.default_sort_order_id, "default-sort-order-id"
        )

    @property
    def current_snapshot(self) -> IcebergSnapshot | None:
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

    @property
    def snapshots_by_id(self) -> Mapping[int, IcebergSnapshot]:
        """All snapshots by their ids."""
        seen = self.snapshots_seen
        seen.update((each.snapshot_id, each) for each in self.snapshots[len(seen) :])
        return seen

    def snapshot(self, snapshot_id: int) -> IcebergSnapshot:
        """Return a snapshot.

        Raises:
            NotFoundError: The table has no snapshot with that id.
        """
        found = self.snapshots_by_id.get(snapshot_id)
        if found is None:
            raise NotFoundError(
                f"snapshot {snapshot_id} is not in the table; it expired or never existed"
            )
        return found


def _require_by_id(by_id: Mapping[int, _T], number: int, key: str) -> _T:
    found = by_id.get(number)
    if found is None:
        known = ", ".join(map(str, by_id)) or "nothing"
        raise InvalidInputError(f"$.{key}: {number} is not among the ids listed, {known}")
    return found


CLOCK_TOLERANCE_MS = 60_000
"""Tolerance for clocks of different writers, in milliseconds."""


def with_known_snapshots(metadata: TableMetadata, before: TableMetadata) -> TableMetadata:
    """Fill the cache of snapshots by id from earlier metadata, without a full pass.

    Args:
        metadata: The metadata.
        before: Earlier metadata, whose snapshots it begins with.
    """
    metadata.snapshots_seen.update(before.snapshots_by_id)
    return metadata


def check_table(metadata: TableMetadata, before: TableMetadata | None = None) -> None:
    """Check that metadata is consistent.

    Args:
        metadata: The metadata.
        before: Checked metadata, with whose snapshots and snapshot log it begins; checks of those
            are skipped.

    Raises:
        InvalidInputError: An id names nothing or two things, `main` is not the current snapshot, a
            sequence number is above the last one, or times decrease by more than a minute.
    """
    _ = metadata.schema, metadata.spec, metadata.sort_order
    _check_unique("schemas", len(metadata.schemas), len(metadata.schemas_by_id))
    _check_unique("partition-specs", len(metadata.partition_specs), len(metadata.specs_by_id))
    _check_unique("sort-orders", len(metadata.sort_orders), len(metadata.orders_by_id))
    _check_unique("snapshots", len(metadata.snapshots), len(metadata.snapshots_by_id))
    check_heads(metadata)
    _check_sequence_numbers(metadata, before)
    check_metadata_times(metadata, 0 if before is None else len(before.snapshot_log))


def check_heads(metadata: TableMetadata) -> None:
    """Check that the current snapshot and all refs exist, and that `main` is the current one.

    Raises:
        InvalidInputError: They do not, or it is not.
    """
    known = metadata.snapshots_by_id
    current = metadata.current_snapshot_id
    if current is not None and current not in known:
        raise InvalidInputError(f"$.current-snapshot-id: {current} is not among $.snapshots")
    for name, ref in metadata.refs.items():
        if ref.snapshot_id not in known:
            raise InvalidInputError(f"$.refs.{name}: {ref.snapshot_id} is not among $.snapshots")
    main = metadata.refs.get(MAIN)
    if main and main.snapshot_id != current:
        raise InvalidInputError(
            f"$.refs.main: points to {main.snapshot_id}, the current snapshot is {current}"
        )


def check_metadata_times(metadata: TableMetadata, checked: int = 0) -> None:
    """Check that the times of both logs and the last update increase, within a minute.

    Args:
        metadata: The table.
        checked: The number of entries of its snapshot log that were checked before.

    Raises:
        InvalidInputError: A time is earlier than the one before it.
    """
    _check_log_times(metadata.snapshot_log, "snapshot-log", metadata.last_updated_ms, checked)
    _check_log_times(metadata.metadata_log, "metadata-log", metadata.last_updated_ms)


def _check_sequence_numbers(metadata: TableMetadata, before: TableMetadata | None) -> None:
    last = metadata.last_sequence_number if metadata.format_version >= SEQUENCES_SINCE else 0
    checked = 0
    if before is not None and before.last_sequence_number <= last:
        checked = len(before.snapshots)
    for index, each in enumerate(metadata.snapshots[checked:], checked):
        if each.sequence_number > last:
            raise InvalidInputError(
                f"$.snapshots[{index}].sequence-number: {each.sequence_number} is above the "
                f"last one of the table, {last}"
            )


def _check_unique(key: str, listed: int, ids: int) -> None:
    if ids < listed:
        raise InvalidInputError(f"$.{key}: {listed} are listed under {ids} ids; each needs its own")


def _check_log_times(
    log: Sequence[SnapshotLogEntry | MetadataLogEntry], name: str, updated_ms: int, checked: int = 0
) -> None:
    first = max(checked - 1, 0)
    times_ms = [each.timestamp_ms for each in log[first:]]
    for index, (before_ms, after_ms) in enumerate(pairwise(times_ms), first + 1):
        if before_ms - after_ms > CLOCK_TOLERANCE_MS:
            raise InvalidInputError(
                f"$.{name}[{index}]: is more than a minute older than the entry before it"
            )
    if log and times_ms[-1] - updated_ms > CLOCK_TOLERANCE_MS:
        raise InvalidInputError(
            f"$.last-updated-ms: {updated_ms} is more than a minute before the last entry of {name}"
        )


def check_same_table(before: TableMetadata, after: TableMetadata) -> None:
    """Check that two metadata files are of one table, by UUID, ignoring case.

    A table without a UUID may have got one.

    Raises:
        InvalidInputError: The table was dropped and another one created under its name.
    """
    if before.table_uuid is None:
        return
    if before.table_uuid.lower() != (after.table_uuid or "").lower():
        raise InvalidInputError(
            f"the table's uuid was {before.table_uuid} and is {after.table_uuid}: it was dropped "
            "and created again; load it again"
        )


PREVIOUS_VERSIONS = "write.metadata.previous-versions-max"
DEFAULT_PREVIOUS_VERSIONS = 100
GC_ENABLED = "gc.enabled"
MAX_SNAPSHOT_AGE = "history.expire.max-snapshot-age-ms"
DEFAULT_MAX_SNAPSHOT_AGE_MS = 5 * 24 * 60 * 60 * 1000
MIN_SNAPSHOTS_TO_KEEP = "history.expire.min-snapshots-to-keep"
MAX_REF_AGE = "history.expire.max-ref-age-ms"
"""Property with the maximum age of refs that have none of their own."""

NEVER_MS = 2**63 - 1
"""Age of a ref that is kept for ever."""
