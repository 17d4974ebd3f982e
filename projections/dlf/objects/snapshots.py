"""Snapshots: what the metadata API says of them, committing one and rolling back to one.

Source: the DLF page's TableSnapshot and Instant; Paimon's REST classes for the rest.
"""

from __future__ import annotations

from attrs import frozen

from ledger.model.instant import SnapshotInstant, TagInstant
from ledger.model.snapshot import Snapshot
from projections.dlf.objects.partitions import PartitionStatistics
from projections.dlf.objects.parts import Page

ApiInstant = SnapshotInstant | TagInstant
"""The page's Instant: exactly one of these two."""


@frozen(kw_only=True)
class TableSnapshot:
    """A snapshot with sums over its live files.

    `last_file_creation_time` is Unix time in milliseconds; None before the first file.
    """

    snapshot: Snapshot
    record_count: int
    file_size_in_bytes: int
    file_count: int
    last_file_creation_time: int | None = None


@frozen
class GetTableSnapshotResponse:
    """The snapshot that a table stands at."""

    snapshot: TableSnapshot


@frozen
class GetVersionSnapshotResponse:
    """The snapshot that a version names: EARLIEST, LATEST, a number or a tag."""

    snapshot: Snapshot


@frozen(kw_only=True)
class ListSnapshotsResponse(Page):
    """Snapshots of one table."""

    snapshots: tuple[Snapshot, ...] = ()


@frozen(kw_only=True)
class CommitTableRequest:
    """Add a snapshot if the table still stands where the writer left it.

    Attributes:
        table_id: The table's UUID, which a new table of the same name does not have.
        base_snapshot_uuid: UUID of the snapshot built upon; None for the first one.
        snapshot: The new snapshot.
        statistics: What it adds to each partition; counts may be negative.
    """

    table_id: str
    base_snapshot_uuid: str | None = None
    snapshot: Snapshot
    statistics: tuple[PartitionStatistics, ...] = ()


@frozen
class CommitTableResponse:
    """Whether the snapshot was added; False when somebody else was first."""

    success: bool


@frozen
class RollbackTableRequest:
    """Go back to an older snapshot.

    Attributes:
        instant: Where to.
        from_snapshot: The snapshot that must be the latest for this to happen; None for any.

    Example:
        >>> RollbackTableRequest(TagInstant("v1")).instant
        TagInstant(tag_name='v1')
    """

    instant: ApiInstant
    from_snapshot: int | None = None
