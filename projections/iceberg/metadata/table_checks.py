"""What table metadata must keep besides the shape of its parts.

Source: the Iceberg table specification; the tolerance is that of Java's TableMetadata class.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from ledger.model.errors import InvalidInputError
from projections.iceberg.metadata.snapshot import MAIN, MetadataLogEntry, SnapshotLogEntry
from projections.iceberg.metadata.table import SEQUENCES_SINCE, TableMetadata

CLOCK_TOLERANCE_MS = 60_000
"""So far clocks of different writers may lie apart."""


def check_table(metadata: TableMetadata) -> None:
    """Check that metadata does not contradict itself.

    Raises:
        InvalidInputError: An id names nothing or two things, `main` is not the current snapshot, a
            sequence number is above the last one, or times run backwards by more than a minute.
    """
    _ = metadata.schema, metadata.spec, metadata.sort_order
    _check_unique("schemas", len(metadata.schemas), len(metadata.schemas_by_id))
    _check_unique("partition-specs", len(metadata.partition_specs), len(metadata.specs_by_id))
    _check_unique("sort-orders", len(metadata.sort_orders), len(metadata.orders_by_id))
    _check_unique("snapshots", len(metadata.snapshots), len(metadata.snapshots_by_id))
    check_heads(metadata)
    last = metadata.last_sequence_number if metadata.format_version >= SEQUENCES_SINCE else 0
    for index, each in enumerate(metadata.snapshots):
        if each.sequence_number > last:
            raise InvalidInputError(
                f"$.snapshots[{index}].sequence-number: {each.sequence_number} is above the "
                f"last one of the table, {last}"
            )
    check_clocks(metadata)


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


def check_clocks(metadata: TableMetadata) -> None:
    """Check that both logs and the last update follow each other, with a minute's tolerance.

    Raises:
        InvalidInputError: They do not.
    """
    _check_log(metadata.snapshot_log, "snapshot-log", metadata.last_updated_ms)
    _check_log(metadata.metadata_log, "metadata-log", metadata.last_updated_ms)


def _check_unique(key: str, listed: int, ids: int) -> None:
    if ids < listed:
        raise InvalidInputError(f"$.{key}: {listed} are listed under {ids} ids; each needs its own")


def _check_log(
    log: Sequence[SnapshotLogEntry | MetadataLogEntry], name: str, updated_ms: int
) -> None:
    times_ms = [each.timestamp_ms for each in log]
    for index, (before_ms, after_ms) in enumerate(pairwise(times_ms)):
        if before_ms - after_ms > CLOCK_TOLERANCE_MS:
            raise InvalidInputError(
                f"$.{name}[{index + 1}]: is more than a minute older than the entry before it"
            )
    if log and times_ms[-1] - updated_ms > CLOCK_TOLERANCE_MS:
        raise InvalidInputError(
            f"$.last-updated-ms: {updated_ms} is more than a minute before the last entry of {name}"
        )


def check_same_table(before: TableMetadata, after: TableMetadata) -> None:
    """Check that two metadata files are of one table, by its uuid in any case.

    A table that had no uuid may have got one.

    Raises:
        InvalidInputError: The table was dropped and another one created in its place.
    """
    if before.table_uuid is None:
        return
    if before.table_uuid.lower() != (after.table_uuid or "").lower():
        raise InvalidInputError(
            f"the table's uuid was {before.table_uuid} and is {after.table_uuid}: it was dropped "
            "and created again; load it anew"
        )
