"""The fold: a table's metadata after a batch of REST updates.

A batch is atomic: `-1` refers inside of it, and several moves of `main` in it are one move. So
metadata N is the fold of metadata N - 1 and the updates of commit N, whoever computes it.

Source: Java's TableMetadata.Builder.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import assert_never

from attrs import evolve

from ledger.model.errors import InvalidInputError, UnsupportedError
from ledger.model.iceberg.snapshot import MetadataLogEntry
from projections.iceberg.committing import fold_layouts, fold_snapshots, updates
from projections.iceberg.committing.batch import Batch, nothing
from projections.iceberg.committing.fold_layouts import check_layout
from projections.iceberg.committing.fold_snapshots import finished_log
from projections.iceberg.committing.updates import TableUpdate
from projections.iceberg.metadata.properties import DEFAULT_PREVIOUS_VERSIONS, PREVIOUS_VERSIONS
from projections.iceberg.metadata.table import (
    SUPPORTED_VERSIONS,
    TableMetadata,
    check_clocks,
    check_heads,
)
from projections.iceberg.metadata.wire import whole_number

DEFAULT_VERSION = 2


def apply_updates(
    base: TableMetadata | None,
    batch: Iterable[TableUpdate],
    *,
    now_ms: int,
    previous_location: str | None = None,
) -> TableMetadata:
    """Return the metadata after a batch of updates; `base` itself if they change nothing.

    Args:
        base: The metadata before, or None for a new table. The updates of a new one must give it
            a uuid, a location, a schema, a partition spec and a sort order; the first format
            version that they name is the one that it starts with.
        batch: The updates, in their order.
        now_ms: When the commit is made, in milliseconds since 1970.
        previous_location: Where the file of `base` is; without it the metadata log stays.

    Raises:
        StaleBaseError: A snapshot was made for an older state of the table.
        UnsupportedError: The table's format version has not what a schema needs.
        InvalidInputError: An update contradicts the table or the updates before it.
    """
    changes = list(batch)
    start = base or nothing(_first_version(changes), now_ms)
    state = Batch(start, now_ms)
    for update in changes:
        _apply(state, update)
    if base is not None and state.table is base:
        return base
    return _finished(state, base, previous_location)


def _apply(batch: Batch, update: TableUpdate) -> None:
    if isinstance(update, updates.LayoutUpdate):
        _apply_to_layouts(batch, update)
    elif isinstance(update, updates.SnapshotUpdate):
        _apply_to_snapshots(batch, update)
    elif isinstance(update, updates.KeyUpdate):
        _apply_to_keys(batch, update)
    else:
        _apply_to_table(batch, update)


def _apply_to_layouts(batch: Batch, update: updates.LayoutUpdate) -> None:
    match update:
        case updates.AddSchema(schema=schema):
            fold_layouts.add_schema(batch, schema)
        case updates.SetCurrentSchema(schema_id=schema_id):
            fold_layouts.set_current_schema(batch, schema_id)
        case updates.RemoveSchemas(schema_ids=schema_ids):
            fold_layouts.remove_schemas(batch, schema_ids)
        case updates.AddSpec(spec=spec):
            fold_layouts.add_spec(batch, spec)
        case updates.SetDefaultSpec(spec_id=spec_id):
            fold_layouts.set_default_spec(batch, spec_id)
        case updates.RemovePartitionSpecs(spec_ids=spec_ids):
            fold_layouts.remove_specs(batch, spec_ids)
        case updates.AddSortOrder(sort_order=order):
            fold_layouts.add_sort_order(batch, order)
        case updates.SetDefaultSortOrder(sort_order_id=order_id):
            fold_layouts.set_default_sort_order(batch, order_id)
        case _:
            assert_never(update)


def _apply_to_snapshots(batch: Batch, update: updates.SnapshotUpdate) -> None:
    match update:
        case updates.AddSnapshot(snapshot=snapshot):
            fold_snapshots.add_snapshot(batch, snapshot)
        case updates.SetSnapshotRef():
            fold_snapshots.set_ref(batch, update.ref_name, update.ref)
        case updates.RemoveSnapshots(snapshot_ids=snapshot_ids):
            fold_snapshots.remove_snapshots(batch, snapshot_ids)
        case updates.RemoveSnapshotRef(ref_name=name):
            fold_snapshots.remove_ref(batch, name)
        case updates.SetStatistics(statistics=statistics):
            fold_snapshots.set_statistics(batch, statistics)
        case updates.RemoveStatistics(snapshot_id=snapshot_id):
            fold_snapshots.remove_statistics(batch, snapshot_id)
        case updates.SetPartitionStatistics(partition_statistics=file):
            fold_snapshots.set_partition_statistics(batch, file)
        case updates.RemovePartitionStatistics(snapshot_id=snapshot_id):
            fold_snapshots.remove_partition_statistics(batch, snapshot_id)
        case _:
            assert_never(update)


def _apply_to_keys(batch: Batch, update: updates.KeyUpdate) -> None:
    keys = batch.table.encryption_keys
    match update:
        case updates.AddEncryptionKey(encryption_key=key):
            if all(each.key_id != key.key_id for each in keys):
                batch.table = evolve(batch.table, encryption_keys=(*keys, key))
        case updates.RemoveEncryptionKey(key_id=key_id):
            kept = tuple(each for each in keys if each.key_id != key_id)
            if kept != keys:
                batch.table = evolve(batch.table, encryption_keys=kept)
        case _:
            assert_never(update)


def _apply_to_table(batch: Batch, update: updates.SharedUpdate) -> None:
    table = batch.table
    match update:
        case updates.AssignUuid(uuid=uuid):
            if uuid != table.table_uuid:
                batch.table = evolve(table, table_uuid=uuid)
        case updates.UpgradeFormatVersion(format_version=version):
            _upgrade(batch, version)
        case updates.SetLocation(location=location):
            if location.removesuffix("/") != table.location:
                batch.table = evolve(table, location=location)
        case updates.SetProperties(updates=changed):
            if changed:
                batch.table = evolve(table, properties={**table.properties, **changed})
        case updates.RemoveProperties(removals=gone):
            if gone:
                kept = {key: each for key, each in table.properties.items() if key not in gone}
                batch.table = evolve(table, properties=kept)
        case _:
            assert_never(update)


def _upgrade(batch: Batch, version: int) -> None:
    now = batch.table.format_version
    if version > SUPPORTED_VERSIONS[-1]:
        raise UnsupportedError(
            f"format version {version} is not supported; the newest is {SUPPORTED_VERSIONS[-1]}"
        )
    if version < now:
        raise InvalidInputError(f"a table of format version {now} cannot go back to {version}")
    if version > now:
        batch.table = evolve(batch.table, format_version=version)


def _first_version(changes: list[TableUpdate]) -> int:
    named = (
        each.format_version for each in changes if isinstance(each, updates.UpgradeFormatVersion)
    )
    version = next(named, DEFAULT_VERSION)
    if version not in SUPPORTED_VERSIONS:
        raise UnsupportedError(f"a table cannot be of format version {version}")
    return version


def _finished(
    state: Batch, base: TableMetadata | None, previous_location: str | None
) -> TableMetadata:
    table = evolve(
        state.table,
        last_updated_ms=state.now_ms,
        snapshot_log=finished_log(state),
        metadata_log=_metadata_log(state.table, base, previous_location),
    )
    if not table.table_uuid and base is None:
        raise InvalidInputError("a new table needs a uuid; begin with assign-uuid")
    if not table.location:
        raise InvalidInputError("a table needs a location; add set-location")
    check_layout(table.spec.fields, table.schema)
    check_layout(table.sort_order.fields, table.schema)
    check_heads(table)
    check_clocks(table)
    return table


def _metadata_log(
    table: TableMetadata, base: TableMetadata | None, previous_location: str | None
) -> tuple[MetadataLogEntry, ...]:
    if base is None or previous_location is None:
        return table.metadata_log
    most = max(1, whole_number(table.properties, PREVIOUS_VERSIONS, DEFAULT_PREVIOUS_VERSIONS))
    entry = MetadataLogEntry(base.last_updated_ms, previous_location)
    return (*table.metadata_log, entry)[-most:]
