"""What updates do to snapshots, refs, statistics and the snapshot log.

Source: Java's TableMetadata.Builder.
"""

from __future__ import annotations

from typing import TypeVar

from attrs import evolve

from ledger.model.errors import InvalidInputError
from ledger.model.iceberg.snapshot import (
    MAIN,
    IcebergSnapshot,
    PartitionStatisticsFile,
    SnapshotLogEntry,
    SnapshotRef,
    StatisticsFile,
)
from projections.iceberg.committing.batch import Batch
from projections.iceberg.committing.requirements import StaleBaseError
from projections.iceberg.metadata.table import ROW_IDS_SINCE, SEQUENCES_SINCE, TableMetadata

_File = TypeVar("_File", StatisticsFile, PartitionStatisticsFile)


def add_snapshot(batch: Batch, snapshot: IcebergSnapshot) -> None:
    """Add a snapshot that no ref points to yet."""
    table = batch.table
    if not (table.schemas and table.partition_specs and table.sort_orders):
        raise InvalidInputError(
            "a table needs a schema, a partition spec and a sort order before its first snapshot"
        )
    if snapshot.snapshot_id in batch.snapshots:
        raise InvalidInputError(f"the table has a snapshot {snapshot.snapshot_id}; draw another id")
    if (
        table.format_version >= SEQUENCES_SINCE
        and snapshot.parent_snapshot_id is not None
        and snapshot.sequence_number <= table.last_sequence_number
    ):
        raise StaleBaseError(
            f"snapshot {snapshot.snapshot_id} has sequence number {snapshot.sequence_number}, "
            f"and the table is at {table.last_sequence_number}"
        )
    batch.table = evolve(
        table,
        snapshots=(*table.snapshots, snapshot),
        last_sequence_number=snapshot.sequence_number,
        next_row_id=_next_row_id(table, snapshot),
    )
    batch.snapshots[snapshot.snapshot_id] = snapshot
    batch.added_snapshots.add(snapshot.snapshot_id)


def set_ref(batch: Batch, name: str, ref: SnapshotRef) -> None:
    """Point a branch or tag to a snapshot."""
    table = batch.table
    if table.refs.get(name) == ref:
        return
    if ref.snapshot_id not in batch.snapshots:
        raise InvalidInputError(f"{name} cannot point to {ref.snapshot_id}: no such snapshot")
    if name == MAIN:
        if ref.type != "branch":
            raise InvalidInputError("main is a branch and cannot be a tag")
        _set_current(batch, ref.snapshot_id)
    batch.table = evolve(batch.table, refs={**table.refs, name: ref})


def remove_ref(batch: Batch, name: str) -> None:
    """Remove a branch or tag; without `main` there is no current snapshot."""
    if name not in batch.table.refs:
        return
    refs = {key: ref for key, ref in batch.table.refs.items() if key != name}
    batch.table = evolve(batch.table, refs=refs)
    if name == MAIN:
        batch.table = evolve(batch.table, current_snapshot_id=None)


def remove_snapshots(batch: Batch, snapshot_ids: tuple[int, ...]) -> None:
    """Remove snapshots, their statistics, and refs that point to them."""
    gone = batch.snapshots.keys() & set(snapshot_ids)
    if not gone:
        return
    batch.has_removed_snapshots = True
    for each in gone:
        del batch.snapshots[each]
    table = batch.table
    batch.table = evolve(
        table,
        snapshots=tuple(each for each in table.snapshots if each.snapshot_id not in gone),
        statistics=_without(table.statistics, gone),
        partition_statistics=_without(table.partition_statistics, gone),
    )
    for name, ref in table.refs.items():
        if ref.snapshot_id not in batch.snapshots:
            remove_ref(batch, name)


def set_statistics(batch: Batch, file: StatisticsFile) -> None:
    """Give a snapshot a statistics file in place of the one that it has."""
    others = _without(batch.table.statistics, {file.snapshot_id})
    batch.table = evolve(batch.table, statistics=(*others, file))


def remove_statistics(batch: Batch, snapshot_id: int) -> None:
    """Take away a snapshot's statistics file."""
    kept = _without(batch.table.statistics, {snapshot_id})
    if kept != batch.table.statistics:
        batch.table = evolve(batch.table, statistics=kept)


def set_partition_statistics(batch: Batch, file: PartitionStatisticsFile) -> None:
    """Give a snapshot a file of statistics by partition in place of the one that it has."""
    others = _without(batch.table.partition_statistics, {file.snapshot_id})
    batch.table = evolve(batch.table, partition_statistics=(*others, file))


def remove_partition_statistics(batch: Batch, snapshot_id: int) -> None:
    """Take away a snapshot's file of statistics by partition."""
    kept = _without(batch.table.partition_statistics, {snapshot_id})
    if kept != batch.table.partition_statistics:
        batch.table = evolve(batch.table, partition_statistics=kept)


def finished_log(batch: Batch) -> tuple[SnapshotLogEntry, ...]:
    """Return the snapshot log as it is stored.

    Snapshots that a later update of the batch replaced were current for nobody, so they do not
    stand in it. An entry of a removed snapshot takes all entries before it along: with a gap, the
    log would name a wrong snapshot for the time in between.
    """
    log = batch.table.snapshot_log
    current = batch.table.current_snapshot_id
    intermediate = batch.made_current - {current}
    if not intermediate and not batch.has_removed_snapshots:
        return log
    kept: list[SnapshotLogEntry] = []
    for entry in log:
        if entry.snapshot_id not in batch.snapshots:
            kept.clear()
        elif entry.snapshot_id not in intermediate:
            kept.append(entry)
    if current is not None and (not kept or kept[-1].snapshot_id != current):
        raise InvalidInputError(
            f"the snapshot log would not end with the current snapshot {current}; set main once "
            "in a batch"
        )
    return tuple(kept)


def _set_current(batch: Batch, snapshot_id: int) -> None:
    added = snapshot_id in batch.added_snapshots
    if added:
        batch.made_current.add(snapshot_id)
    if batch.table.current_snapshot_id == snapshot_id:
        return
    since_ms = batch.snapshots[snapshot_id].timestamp_ms if added else batch.now_ms
    batch.table = evolve(
        batch.table,
        current_snapshot_id=snapshot_id,
        snapshot_log=(*batch.table.snapshot_log, SnapshotLogEntry(since_ms, snapshot_id)),
    )


def _next_row_id(table: TableMetadata, snapshot: IcebergSnapshot) -> int:
    if table.format_version < ROW_IDS_SINCE:
        return table.next_row_id
    if snapshot.first_row_id is None or snapshot.added_rows is None:
        raise InvalidInputError(
            f"snapshot {snapshot.snapshot_id} needs first-row-id and added-rows in version 3"
        )
    if snapshot.first_row_id < table.next_row_id:
        raise StaleBaseError(
            f"snapshot {snapshot.snapshot_id} starts at row id {snapshot.first_row_id}, and the "
            f"table has given out all below {table.next_row_id}"
        )
    return table.next_row_id + snapshot.added_rows


def _without(files: tuple[_File, ...], snapshot_ids: set[int]) -> tuple[_File, ...]:
    return tuple(each for each in files if each.snapshot_id not in snapshot_ids)
