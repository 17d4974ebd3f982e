"""Commits of Iceberg REST updates: requirements, updates and the metadata after them.

The updates become the events of what they change, decided again on each state that they meet, and
are written only where the metadata that the events project is the metadata that they ask for.

Source: the Iceberg REST catalog specification, CommitTableRequest.

A batch is atomic: `-1` refers inside of it, and several moves of `main` in it are one move. So
metadata N is the fold of metadata N - 1 and the updates of commit N, whoever computes it.

Source: Java's TableMetadata.Builder.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Unpack, assert_never

from attrs import evolve

import projections.iceberg.rest_layouts as layouts
import projections.iceberg.rest_updates as updates
from ledger.decide.table_options import PERSONAL_OPTION, lost_marks
from ledger.events import TableEvent
from ledger.events.imported import MetadataLogUpdated, SnapshotLogUpdated
from ledger.log.request import Appended, CommitOptions
from ledger.model.errors import InvalidChangeError, InvalidInputError, UnsupportedError
from ledger.model.iceberg_objects import MetadataLogEntry
from ledger.state.table import TableState
from ledger.table import Table
from projections.iceberg.differences import counters, difference
from projections.iceberg.expiry import Retention, expiring
from projections.iceberg.imported_metadata import disagreements, metadata_of
from projections.iceberg.position import Names
from projections.iceberg.rest_layouts import Batch, check_layout, finished_log, nothing
from projections.iceberg.rest_updates import (
    TableRequirement,
    TableUpdate,
    check_requirements,
    requirement_from_json,
    requirement_to_json,
    table_update_from_json,
    update_to_json,
)
from projections.iceberg.schema_json import whole_number
from projections.iceberg.table_metadata import (
    DEFAULT_PREVIOUS_VERSIONS,
    PREVIOUS_VERSIONS,
    SUPPORTED_VERSIONS,
    TableMetadata,
    check_clocks,
    check_heads,
)
from projections.importing.trial import Trial

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
            layouts.add_schema(batch, schema)
        case updates.SetCurrentSchema(schema_id=schema_id):
            layouts.set_current_schema(batch, schema_id)
        case updates.RemoveSchemas(schema_ids=schema_ids):
            layouts.remove_schemas(batch, schema_ids)
        case updates.AddSpec(spec=spec):
            layouts.add_spec(batch, spec)
        case updates.SetDefaultSpec(spec_id=spec_id):
            layouts.set_default_spec(batch, spec_id)
        case updates.RemovePartitionSpecs(spec_ids=spec_ids):
            layouts.remove_specs(batch, spec_ids)
        case updates.AddSortOrder(sort_order=order):
            layouts.add_sort_order(batch, order)
        case updates.SetDefaultSortOrder(sort_order_id=order_id):
            layouts.set_default_sort_order(batch, order_id)
        case _:
            assert_never(update)


def _apply_to_snapshots(batch: Batch, update: updates.SnapshotUpdate) -> None:
    match update:
        case updates.AddSnapshot(snapshot=snapshot):
            layouts.add_snapshot(batch, snapshot)
        case updates.SetSnapshotRef():
            layouts.set_ref(batch, update.ref_name, update.ref)
        case updates.RemoveSnapshots(snapshot_ids=snapshot_ids):
            layouts.remove_snapshots(batch, snapshot_ids)
        case updates.RemoveSnapshotRef(ref_name=name):
            layouts.remove_ref(batch, name)
        case updates.SetStatistics(statistics=statistics):
            layouts.set_statistics(batch, statistics)
        case updates.RemoveStatistics(snapshot_id=snapshot_id):
            layouts.remove_statistics(batch, snapshot_id)
        case updates.SetPartitionStatistics(partition_statistics=file):
            layouts.set_partition_statistics(batch, file)
        case updates.RemovePartitionStatistics(snapshot_id=snapshot_id):
            layouts.remove_partition_statistics(batch, snapshot_id)
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


_LEDGER_OPTIONS = "ledger."
_OF_COMMITS = {"last_updated_ms", "metadata_log"}
"""The parts of metadata that a commit sets and no update asks for."""


def commit_updates(
    table: Table,
    updates: Iterable[TableUpdate | dict[str, Any]],
    requirements: Iterable[TableRequirement | dict[str, Any]] = (),
    **options: Unpack[CommitOptions],
) -> Appended[TableState]:
    """Commit updates of the Iceberg REST catalog; all of them are committed, or none.

    Data goes through the ledger: the updates add no snapshot, leave `main` where it is, and set no
    location, no encryption key and no option of the ledger.

    Args:
        table: A table from Iceberg that the ledger owns.
        updates: In order, as objects or as decoded JSON.
        requirements: The conditions under which they are committed, as objects or decoded JSON.
        options: See CommitOptions.

    Raises:
        InvalidInputError: An update or requirement cannot be read, or contradicts the table.
        InvalidChangeError: An update is not allowed here.
        StaleBaseError: A requirement does not hold.
        UnsupportedError: The table is not from Iceberg, or its types cannot say a schema.
        CommitUnknownError: The store gave no answer.
    """
    batch = [table_update_from_json(each) if isinstance(each, dict) else each for each in updates]
    required: list[Any] = [
        requirement_from_json(each) if isinstance(each, dict) else each for each in requirements
    ]
    wanted = [*map(requirement_to_json, required), *map(update_to_json, batch)]
    return table.commit_events(
        ["icebergUpdates", wanted],
        lambda state: decided(state, table.location, lambda _: batch, required),
        **options,
    )


def expire_snapshots(
    table: Table, retention: Retention, now_ms: int, **options: Unpack[CommitOptions]
) -> Appended[TableState]:
    """Expire the snapshots, branches and tags that Iceberg's retention rules do not keep.

    Args:
        table: A table from Iceberg that the ledger owns.
        retention: The rules, where those of the table and of its branches are not to count.
        now_ms: The time that ages count from, in milliseconds since 1970.
        options: See CommitOptions.

    Raises:
        InvalidInputError, InvalidChangeError, UnsupportedError, CommitUnknownError: As of
            `commit_updates`.
    """
    return table.commit_events(
        ["icebergExpiry", retention.older_than_ms, retention.retain_last, now_ms],
        lambda state: decided(
            state, table.location, lambda found: expiring(found, retention, now_ms=now_ms)
        ),
        **options,
    )


def decided(
    state: TableState,
    location: str,
    batch_of: Callable[[TableMetadata], Sequence[TableUpdate]],
    required: Sequence[TableRequirement] = (),
) -> tuple[TableEvent, ...]:
    """Return the events that updates become on a state; none where they change nothing.

    Args:
        state: The table.
        location: Its own, where the manifest lists of its snapshots lie.
        batch_of: Returns the updates of metadata, in order.
        required: The requirements.

    Raises:
        InvalidInputError, InvalidChangeError, StaleBaseError, UnsupportedError: As of
            `commit_updates`.
    """
    names = Names(state.table_id)
    before = metadata_of(state, lambda each: f"{location}/{names.manifest_list(each)}")
    check_requirements(before, required)
    # No update that is allowed says a time.
    after = apply_updates(before, batch_of(before), now_ms=before.last_updated_ms)
    if after is before:
        return ()
    _check_kept(before, after)
    trial = Trial(state, state.effective_millis)
    # The log of snapshots follows from the snapshots that are removed.
    changed = [
        each
        for each in difference(trial, before, after)
        if not isinstance(each, SnapshotLogUpdated | MetadataLogUpdated)
    ]
    reached = trial.after(changed, state.effective_millis, "")
    events = (*changed, *counters(reached, after))
    reached = trial.after(events, state.effective_millis, "")
    made = metadata_of(reached, lambda each: f"{location}/{names.manifest_list(each)}")
    wrong = [each for each in disagreements(made, after) if each not in _OF_COMMITS]
    if wrong:
        raise UnsupportedError(
            f"the ledger cannot commit these updates: {', '.join(wrong)} would differ from what "
            "they ask for; commit them one by one to find the one that it cannot"
        )
    lost = lost_marks(reached.schema.options.get(PERSONAL_OPTION, ""), reached.schema.fields)
    if lost:
        raise InvalidChangeError(
            f"column {lost[0]} is marked as personal, and the updates rename or drop it: change it "
            "by Table.alter, whose marks follow"
        )
    return events


def _check_kept(before: TableMetadata, after: TableMetadata) -> None:
    """Reject updates of what the ledger itself keeps.

    Raises:
        InvalidChangeError: One is.
    """
    checks = {
        "add a snapshot; the ledger commits the data, by Table.append": (
            after.snapshots_by_id.keys() - before.snapshots_by_id.keys()
        ),
        "move or remove main; the ledger's snapshots move it, by Table.append and Table.rollback": (
            before.current_snapshot_id != after.current_snapshot_id
        ),
        "change the uuid, by which readers know the table": (
            before.table_uuid not in {None, after.table_uuid}
        ),
        "change the location; lakeledger move does": before.location != after.location,
        "change the encryption keys; the ledger writes nothing that is encrypted": (
            before.encryption_keys != after.encryption_keys
        ),
        "change options of the ledger; Table.alter does": _own(before) != _own(after),
    }
    for reason, is_wrong in checks.items():
        if is_wrong:
            raise InvalidChangeError(
                f"the ledger owns the table, and updates cannot {reason}; nothing was committed"
            )


def _own(metadata: TableMetadata) -> dict[str, str]:
    properties = metadata.properties.items()
    return {key: value for key, value in properties if key.startswith(_LEDGER_OPTIONS)}
