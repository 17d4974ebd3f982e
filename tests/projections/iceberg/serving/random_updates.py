"""Random tables and batches of updates: valid ones, and ones that contradict the table.

Everything is drawn from one random generator, so that a seed gives it again. A batch is drawn
update by update, each for the table after the updates before it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

from msgspec.structs import replace

import projections.iceberg.rest_updates as u
from ledger import LedgerError
from ledger.model import SnapshotRef
from ledger.model.iceberg_objects import (
    MAIN,
    EncryptionKey,
    IcebergSnapshot,
    PartitionStatisticsFile,
    StatisticsFile,
)
from projections.iceberg import TableMetadata, apply_updates
from projections.iceberg.creation_updates import creation_updates
from projections.iceberg.rest_updates import TableUpdate
from projections.iceberg.table_metadata import PREVIOUS_VERSIONS
from tests.projections.iceberg.serving.random_schemas import (
    changed_schema,
    random_order,
    random_schema,
    random_spec,
)

SNAPSHOT_IDS = (1, 2, 3, 5, 10**12, 10**12 + 1, 2**62 + 7, 2**63 - 1)
REFS = (MAIN, MAIN, MAIN, "audit", "v1", "a/b", "Ä")
PROPERTIES = (
    "owner",
    "comment",
    "",
    "a b",
    "ä.ö",
    "bucket",
    "primary-key",
    "partition",
    "file.format",
    "format-version",
    "source.x",
    "source.ledger.x",
    PREVIOUS_VERSIONS,
    "commit.retry.num-retries",
    "path",
    "schema.name-mapping.default",
)
"""Keys that some format gives a meaning, and keys with odd characters."""


def new_table(rng: Random, uuid: str, location: str) -> tuple[TableUpdate, ...]:
    """Return the updates that create a table of any version and layout."""
    version = rng.choice((1, 2, 2, 3))
    schema = random_schema(rng, version)
    properties = {**_properties(rng, rng.randint(0, 2)), "format-version": str(version)}
    properties.pop(PREVIOUS_VERSIONS, None)
    return creation_updates(
        schema,
        uuid=uuid,
        location=location,
        spec=random_spec(rng, schema, 1000, version) if rng.random() < 0.5 else None,
        order=random_order(rng, schema, 1) if rng.random() < 0.4 else None,
        properties=properties,
    )


def _properties(rng: Random, count: int) -> dict[str, str]:
    found = {key: rng.choice(("1", "x", "", "ä")) for key in rng.sample(PROPERTIES, count)}
    if PREVIOUS_VERSIONS in found:
        found[PREVIOUS_VERSIONS] = rng.choice(("0", "1", "3", "none"))
    return found


# Batches


def random_batch(rng: Random, table: TableMetadata, location: str) -> list[TableUpdate]:
    """Return updates of a table, of which the later ones build on the earlier ones.

    Args:
        rng: The source of randomness.
        table: The table before.
        location: A folder that the table may move to.
    """
    batch: list[TableUpdate] = []
    reached = table
    for _ in range(rng.randint(1, 4)):
        batch.extend(rng.choice(_STEPS)(rng, reached, location))
        try:
            reached = apply_updates(table, batch, now_ms=table.last_updated_ms)
        except LedgerError:
            # What follows is drawn for the table before the contradiction.
            continue
    return batch


_Updates = Sequence[TableUpdate]


def _some_id(rng: Random, ids: Sequence[int]) -> int:
    return rng.choice(ids) if ids and rng.random() < 0.9 else rng.choice((-1, 0, 7, 99))


def _add_schema(rng: Random, table: TableMetadata, _location: str) -> _Updates:
    added = u.AddSchema(schema=changed_schema(rng, table))
    current = u.SetCurrentSchema(schema_id=-1)
    back = u.SetCurrentSchema(schema_id=table.current_schema_id)
    return rng.choice(((added,), (added, current), (added, current), (added, current, back)))


def _same_schema(rng: Random, table: TableMetadata, _location: str) -> _Updates:
    known = rng.choice(table.schemas)
    current = u.SetCurrentSchema(schema_id=known.schema_id)
    return rng.choice(((u.AddSchema(schema=known), current), (current,)))


def _remove_schemas(rng: Random, table: TableMetadata, _location: str) -> _Updates:
    others = [each for each in table.schemas_by_id if each != table.current_schema_id]
    return (u.RemoveSchemas(schema_ids=(_some_id(rng, others),)),)


def _add_spec(rng: Random, table: TableMetadata, _location: str) -> _Updates:
    number = max(table.specs_by_id) + 1
    first = table.last_partition_id + 1
    spec = random_spec(rng, table.schema, first, table.format_version, number)
    added = u.AddSpec(spec=spec)
    return rng.choice(((added,), (added, u.SetDefaultSpec(spec_id=-1))))


def _set_spec(rng: Random, table: TableMetadata, _location: str) -> _Updates:
    return (u.SetDefaultSpec(spec_id=_some_id(rng, list(table.specs_by_id))),)


def _remove_specs(rng: Random, table: TableMetadata, _location: str) -> _Updates:
    others = [each for each in table.specs_by_id if each != table.default_spec_id]
    return (u.RemovePartitionSpecs(spec_ids=(_some_id(rng, others),)),)


def _add_order(rng: Random, table: TableMetadata, _location: str) -> _Updates:
    order = random_order(rng, table.schema, max(table.orders_by_id) + 1)
    added = u.AddSortOrder(sort_order=order)
    return rng.choice(((added,), (added, u.SetDefaultSortOrder(sort_order_id=-1))))


def _set_order(rng: Random, table: TableMetadata, _location: str) -> _Updates:
    return (u.SetDefaultSortOrder(sort_order_id=_some_id(rng, list(table.orders_by_id))),)


def random_snapshot(rng: Random, table: TableMetadata) -> IcebergSnapshot:
    """Return a snapshot that an engine makes on a table, or rarely one that it cannot make."""
    free = [each for each in SNAPSHOT_IDS if each not in table.snapshots_by_id]
    number = rng.choice(free) if free else rng.randint(6, 10**18)
    if rng.random() < 0.05 and table.snapshots:
        number = rng.choice(table.snapshots).snapshot_id
    parent = table.current_snapshot_id
    if table.snapshots and rng.random() < 0.3:
        parent = rng.choice(table.snapshots).snapshot_id
    sequence = 0
    if table.format_version >= 2:
        sequence = table.last_sequence_number + rng.choice((1, 1, 1, 2, 10, 0))
    numbered = table.format_version >= 3
    operation = rng.choice(("append", "overwrite", "replace", "delete"))
    summary = {"operation": operation, "spark.app.id": "a", "total-records": "7"}
    return IcebergSnapshot(
        sequence_number=sequence,
        snapshot_id=number,
        parent_snapshot_id=parent,
        timestamp_ms=table.last_updated_ms + rng.choice((0, 0, 5, -5)),
        summary=rng.choice((summary, {"operation": operation}, None)),
        manifest_list=f"{table.location}/metadata/snap-{number}-{sequence}.avro",
        schema_id=rng.choice((table.current_schema_id, None)),
        first_row_id=table.next_row_id if numbered else None,
        added_rows=rng.randint(0, 9) if numbered else None,
        key_id=rng.choice((None, None, None, "k1")),
    )


def _add_snapshot(rng: Random, table: TableMetadata, _location: str) -> _Updates:
    snapshot = random_snapshot(rng, table)
    added = u.AddSnapshot(snapshot=snapshot)
    moved = _moved_ref(MAIN, snapshot.snapshot_id)
    other = _moved_ref(rng.choice(REFS), snapshot.snapshot_id)
    return rng.choice(((added,), (added, moved), (added, moved), (added, other), (moved, added)))


def _moved_ref(name: str, snapshot_id: int) -> TableUpdate:
    return _set_ref_update(name, SnapshotRef(snapshot_id=snapshot_id, type="branch"))


def _set_ref_update(name: str, ref: SnapshotRef) -> TableUpdate:
    return u.SetSnapshotRef(
        ref_name=name,
        snapshot_id=ref.snapshot_id,
        type=ref.type,
        min_snapshots_to_keep=ref.min_snapshots_to_keep,
        max_snapshot_age_ms=ref.max_snapshot_age_ms,
        max_ref_age_ms=ref.max_ref_age_ms,
    )


def _set_ref(rng: Random, table: TableMetadata, _location: str) -> _Updates:
    ref = SnapshotRef(snapshot_id=_some_id(rng, list(table.snapshots_by_id)), type="branch")
    if rng.random() < 0.4:
        ref = replace(ref, type="tag", max_ref_age_ms=rng.choice((None, 5, 10**12)))
    elif rng.random() < 0.4:
        ref = replace(ref, min_snapshots_to_keep=rng.randint(1, 9), max_snapshot_age_ms=7)
    return (_set_ref_update(rng.choice(REFS), ref),)


def _remove_ref(rng: Random, table: TableMetadata, _location: str) -> _Updates:
    return (u.RemoveSnapshotRef(ref_name=rng.choice((*table.refs, "no such ref"))),)


def _remove_snapshots(rng: Random, table: TableMetadata, _location: str) -> _Updates:
    ids = list(table.snapshots_by_id)
    gone = rng.sample(ids, rng.randint(0, len(ids)))
    return (u.RemoveSnapshots(snapshot_ids=tuple(gone)),)


def _set_statistics(rng: Random, table: TableMetadata, _location: str) -> _Updates:
    number = rng.choice((*table.snapshots_by_id, 99))
    name, size = f"{table.location}/metadata/{rng.randint(0, 9)}.puffin", rng.randint(1, 99)
    file = StatisticsFile(
        snapshot_id=number,
        statistics_path=name,
        file_size_in_bytes=size,
        file_footer_size_in_bytes=1,
        blob_metadata=(),
    )
    part = PartitionStatisticsFile(
        snapshot_id=number, statistics_path=name, file_size_in_bytes=size
    )
    return rng.choice(
        (
            (u.SetStatistics(statistics=file),),
            (u.SetPartitionStatistics(partition_statistics=part),),
        )
    )


def _remove_statistics(rng: Random, table: TableMetadata, _location: str) -> _Updates:
    files = [each.snapshot_id for each in table.statistics]
    parts = [each.snapshot_id for each in table.partition_statistics]
    return rng.choice(
        (
            (u.RemoveStatistics(snapshot_id=_some_id(rng, files)),),
            (u.RemovePartitionStatistics(snapshot_id=_some_id(rng, parts)),),
        )
    )


def _change_properties(rng: Random, table: TableMetadata, _location: str) -> _Updates:
    updates = u.SetProperties(updates=_properties(rng, rng.randint(0, 3)))
    has = sorted(table.properties)
    gone = u.RemoveProperties(removals=tuple(rng.sample(has, rng.randint(0, len(has)))))
    return rng.choice(((updates,), (gone,), (updates, gone), (gone, updates)))


def _change_keys(rng: Random, _table: TableMetadata, _location: str) -> _Updates:
    name = rng.choice(("k1", "k2"))
    key = EncryptionKey(
        key_id=name,
        encrypted_key_metadata="YQ==",
        encrypted_by_id=rng.choice((None, "kek")),
        properties=rng.choice((None, {"a": "b"})),
    )
    added = u.AddEncryptionKey(encryption_key=key)
    gone = u.RemoveEncryptionKey(key_id=name)
    return rng.choice(((added,), (gone,), (added, gone), (gone, added)))


def _upgrade(rng: Random, table: TableMetadata, _location: str) -> _Updates:
    wanted = rng.choice((table.format_version, table.format_version + 1, 1, 2))
    return (u.UpgradeFormatVersion(format_version=wanted),)


def _move(rng: Random, table: TableMetadata, location: str) -> _Updates:
    wanted = rng.choice((f"{location}/other", f"{location}/", table.location))
    return (u.SetLocation(location=wanted),)


def _assign_uuid(_rng: Random, table: TableMetadata, _location: str) -> _Updates:
    return (u.AssignUuid(uuid=table.table_uuid or ""),)


_STEPS: tuple[Callable[[Random, TableMetadata, str], _Updates], ...] = (
    *(_add_schema, _add_schema, _same_schema, _remove_schemas),
    *(_add_spec, _set_spec, _remove_specs, _add_order, _set_order),
    *(_add_snapshot, _add_snapshot, _add_snapshot, _set_ref, _set_ref, _remove_ref),
    *(_remove_snapshots, _set_statistics, _remove_statistics),
    *(_change_properties, _change_keys, _upgrade, _move, _assign_uuid),
)
