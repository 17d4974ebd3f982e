"""Rows of the views of snapshots and tags."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from ledger.events.imported import SnapshotAdded
from ledger.events.snapshots import RolledBack, SnapshotEvent
from ledger.model.iceberg_objects import IcebergSnapshot
from ledger.model.snapshot import Snapshot, Totals
from ledger.state.delta_origin import DeltaOrigin
from ledger.state.iceberg_origin import (
    UNKNOWN,
    IcebergOrigin,
    iceberg_delta_totals,
    iceberg_snapshot,
    iceberg_totals,
)
from ledger.state.native_origin import NativeOrigin
from ledger.state.paimon_origin import PaimonOrigin, paimon_totals
from ledger.state.snapshots import SnapshotTrail, snapshot_of
from ledger.state.table import TableState
from projections.source.columns import Column
from projections.source.commit_rows import PLACE, place
from projections.source.row_batches import Row
from projections.source.span_reading import LogScan

SNAPSHOTS = (
    *PLACE,
    Column("effective_time", "timestamp", "the snapshot's own time, as the formats show it"),
    Column(
        "snapshot_id",
        "bigint",
        "1, 2, 3, ... without gaps, or Iceberg's own",
    ),
    Column("schema_id", "bigint", "the schema that it was written with; -1 if unknown"),
    Column("commit_kind", "string", "APPEND, COMPACT, OVERWRITE or ANALYZE"),
    Column("commit_user", "string", "stable for a stream, fresh for a batch"),
    Column("commit_identifier", "bigint", "the stream's own number"),
    Column("target_snapshot_id", "bigint", "the target of a rollback", nullable=True),
    Column("delta_record_count", "bigint", "added minus deleted rows"),
    Column("delta_file_count", "bigint", "added minus deleted files"),
    Column("delta_file_size_in_bytes", "bigint", "their bytes"),
    Column("record_count", "bigint", "rows in the table after it"),
    Column("file_count", "bigint", "files in the table after it; -1 if unknown"),
    Column("file_size_in_bytes", "bigint", "their bytes"),
    Column(
        "last_file_creation_time",
        "bigint",
        "newest of all files ever added or deleted, Unix milliseconds",
        nullable=True,
    ),
    Column("watermark", "bigint", "the stream's, where it has one", nullable=True),
    Column("operation", "string", "the engine's name for it", nullable=True),
    Column("properties", "map<string,string>", "properties from the engine", nullable=True),
)

TAGS = (
    Column("version", "bigint", "the commit at which the table is read"),
    Column("tag_name", "string", "the tag's name"),
    Column("snapshot_id", "bigint", "the snapshot that it names"),
    Column("create_time", "timestamp", "creation or replacement time"),
    Column("time_retained_millis", "bigint", "retention; none for ever", nullable=True),
)


def snapshot_rows(scan: LogScan) -> Iterator[Row]:
    """Yield a row of `SNAPSHOTS` for every snapshot."""
    before = scan.before()
    state = before or scan.final()
    match state.origin:
        case IcebergOrigin():
            yield from _iceberg_snapshot_rows(scan)
        case PaimonOrigin():
            yield from _paimon_snapshot_rows(scan, before)
        case NativeOrigin() | DeltaOrigin():
            yield from _ledger_snapshot_rows(scan, before)
        case _:
            assert_never(state.origin)


def _ledger_snapshot_rows(scan: LogScan, before: TableState | None) -> Iterator[Row]:
    trail = SnapshotTrail(None, Totals())
    if before is not None:
        trail = SnapshotTrail(before.snapshot, before.totals)
    for step in scan.steps():
        for event in step.snapshots:
            trail.apply(event, event.schema_id, step.effective_millis)
            snapshot = snapshot_of(event, trail.newest_millis)
            sums = trail.totals()
            yield (
                *place(step),
                step.effective_millis * 1000,
                *_snapshot_row(event, snapshot, sums),
            )


def _paimon_snapshot_rows(scan: LogScan, before: TableState | None) -> Iterator[Row]:
    """Yield a Paimon source's snapshots: ids may be reused, and file counts are unknown.

    Snapshots of the ledger since it owns the table have file counts.
    """
    paimon = None if before is None else before.origin_of_kind(PaimonOrigin)
    for step, builder in scan.folded():
        trail = (
            None if builder.source_lists_files or paimon is None else paimon.next_snapshot_trail()
        )
        paimon = builder.freeze().origin_of_kind(PaimonOrigin)
        for event in step.snapshots:
            snapshot = snapshot_of(event, step.effective_millis)
            sums = paimon_totals(snapshot)
            if trail is not None:
                trail.apply(event, event.schema_id, step.effective_millis)
                sums = trail.totals()
            yield (
                *place(step),
                step.effective_millis * 1000,
                *_snapshot_row(event, snapshot, sums),
            )


def _iceberg_snapshot_rows(scan: LogScan) -> Iterator[Row]:
    """Yield the engines' snapshots, and the ledger's once it owns the table."""
    for step, builder in scan.folded():
        for added in step.transaction.events:
            if isinstance(added, SnapshotAdded):
                yield (*place(step), *_iceberg_summary_row(added.snapshot, None))
        own = tuple(step.snapshots)
        if own:
            there = builder.freeze().origin_of_kind(IcebergOrigin).snapshots
            made = ((_rollback_target(event), there[event.snapshot_id]) for event in own)
            yield from (
                (*place(step), *_iceberg_summary_row(each, target)) for target, each in made
            )


def _rollback_target(event: SnapshotEvent) -> int | None:
    return event.target_snapshot_id if isinstance(event, RolledBack) else None


def _snapshot_row(event: SnapshotEvent, snapshot: Snapshot, after: Totals) -> Row:
    properties = snapshot.properties
    return (
        snapshot.id,
        snapshot.schema_id,
        snapshot.commit_kind,
        snapshot.commit_user,
        snapshot.commit_identifier,
        _rollback_target(event),
        event.delta_record_count,
        event.delta_file_count,
        event.delta_file_size_in_bytes,
        after.record_count,
        after.file_count,
        after.file_size_in_bytes,
        after.last_file_creation_time,
        snapshot.watermark,
        snapshot.operation,
        None if properties is None else list(properties.items()),
    )


def _iceberg_summary_row(added: IcebergSnapshot, target_snapshot_id: int | None) -> Row:
    """Return a row from an Iceberg snapshot's summary; missing totals are -1, deltas 0."""
    snapshot, change, after = (
        iceberg_snapshot(added, UNKNOWN),
        iceberg_delta_totals(added),
        iceberg_totals(added),
    )
    return (
        snapshot.time_millis * 1000,
        snapshot.id,
        snapshot.schema_id,
        snapshot.commit_kind,
        snapshot.commit_user,
        snapshot.commit_identifier,
        target_snapshot_id,
        change.record_count,
        change.file_count,
        change.file_size_in_bytes,
        after.record_count,
        after.file_count,
        after.file_size_in_bytes,
        None,
        None,
        snapshot.operation,
        [*(snapshot.properties or {}).items()],
    )


def tag_rows(scan: LogScan) -> Iterator[Row]:
    """Yield a row of `TAGS` for every tag at the scan's end, by name."""
    state = scan.final()
    for name in sorted(state.tags):
        tag = state.tags[name]
        yield (
            state.version,
            name,
            tag.snapshot_id,
            tag.create_time_millis * 1000,
            tag.time_retained_millis,
        )
