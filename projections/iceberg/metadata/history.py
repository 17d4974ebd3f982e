"""Which snapshot was current when, and which snapshots lie behind one.

Source: the Iceberg table specification, "Point in Time Reads"; Java's SnapshotUtil class.
"""

from __future__ import annotations

from collections.abc import Iterator

from ledger.model.errors import NotFoundError
from projections.iceberg.metadata.snapshot import Snapshot
from projections.iceberg.metadata.table import TableMetadata


def snapshot_id_as_of(metadata: TableMetadata, timestamp_ms: int) -> int:
    """Return the snapshot that was current at a time, in milliseconds since 1970.

    It is the one of the log's newest entry that is not younger; of entries of the same time, the
    first. The log need not be in order, and only the log knows of rollbacks.

    Raises:
        NotFoundError: The log begins later.
    """
    past = [each for each in metadata.snapshot_log if each.timestamp_ms <= timestamp_ms]
    if not past:
        first = metadata.snapshot_log[0].timestamp_ms if metadata.snapshot_log else "nowhere"
        raise NotFoundError(f"no snapshot as of {timestamp_ms}; the log begins at {first}")
    return max(past, key=lambda entry: entry.timestamp_ms).snapshot_id


def ancestors(metadata: TableMetadata, snapshot_id: int) -> Iterator[Snapshot]:
    """Yield a snapshot and what lies behind it, newest first, until an expired parent."""
    known = metadata.snapshots_by_id
    seen: set[int] = set()
    following: int | None = snapshot_id
    while following is not None and following in known and following not in seen:
        seen.add(following)
        yield known[following]
        following = known[following].parent_snapshot_id


def is_ancestor(metadata: TableMetadata, snapshot_id: int, of: int) -> bool:
    """Return whether a snapshot is `of` itself or lies behind it."""
    return any(each.snapshot_id == snapshot_id for each in ancestors(metadata, of))
