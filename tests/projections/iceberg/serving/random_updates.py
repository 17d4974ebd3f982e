"""Random tables and batches of updates: valid ones, and ones that contradict the table.

Everything is drawn from one random generator, so that hypothesis can shrink it. A batch is drawn
update by update, each for the table after the updates before it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from random import Random

from attrs import evolve
from msgspec.structs import replace

import projections.iceberg.rest_updates as u
from ledger import LedgerError
from ledger.model import PartitionField, PartitionSpec, SnapshotRef, SortField, SortOrder
from ledger.model.iceberg_objects import (
    MAIN,
    EncryptionKey,
    IcebergSnapshot,
    PartitionStatisticsFile,
    StatisticsFile,
)
from projections.iceberg import TableMetadata, apply_updates
from projections.iceberg.creation_updates import creation_updates
from projections.iceberg.metadata_schema import (
    DecimalType,
    FixedType,
    ListType,
    MapType,
    NestedField,
    PlainType,
    Schema,
    StructType,
    Type,
)
from projections.iceberg.rest_updates import TableUpdate

SNAPSHOT_IDS = (1, 2, 3, 5, 10**12, 10**12 + 1, 2**62 + 7, 2**63 - 1)
NAMES = ("a", "b", "c", "d", "e", "Ä", "x.y", "very long name", "select")
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
    "write.metadata.previous-versions-max",
    "commit.retry.num-retries",
    "path",
    "schema.name-mapping.default",
)
"""Keys that some format gives a meaning, and keys with odd characters."""

_PLAIN = ("boolean", "int", "long", "float", "double", "date", "time", "timestamp", "timestamptz")
_TYPES = (*_PLAIN, "string", "uuid", "binary")
_NEW_TYPES = ("timestamp_ns", "timestamptz_ns", "variant", "unknown")
_WIDER = {"int": PlainType("long"), "float": PlainType("double")}
_SOURCES = {
    "int": ("identity", "bucket[4]", "truncate[10]", "void"),
    "long": ("identity", "bucket[16]", "truncate[10]", "void"),
    "string": ("identity", "bucket[4]", "truncate[3]", "void"),
    "date": ("identity", "year", "month", "day"),
    "timestamp": ("identity", "year", "month", "day", "hour"),
}


def new_table(rng: Random, uuid: str, location: str) -> tuple[TableUpdate, ...]:
    """Return the updates that create a table of any version and layout."""
    version = rng.choice((1, 2, 2, 3))
    schema = random_schema(rng, version)
    properties = {**_properties(rng, rng.randint(0, 2)), "format-version": str(version)}
    return creation_updates(
        schema,
        uuid=uuid,
        location=location,
        spec=_spec(rng, schema, 1000, version) if rng.random() < 0.5 else None,
        order=_order(rng, schema, 1) if rng.random() < 0.4 else None,
        properties=properties,
    )


def random_schema(rng: Random, version: int) -> Schema:
    """Return a schema with nested columns, numbered from 1."""
    names = rng.sample(NAMES, rng.randint(1, 4))
    ids = iter(range(1, 500))
    fields = tuple(_column(rng, name, ids, version, depth=2) for name in names)
    return Schema(0, fields)


def _column(rng: Random, name: str, ids: Iterator[int], version: int, depth: int) -> NestedField:
    number, kind = next(ids), _type(rng, ids, version, depth)
    initial = None
    if version >= 3 and kind in {PlainType("int"), PlainType("long")} and rng.random() < 0.4:
        initial = rng.randint(0, 9)
    doc = rng.choice((None, None, "a comment", ""))
    return NestedField(number, name, kind, _is_required(rng, kind), doc, initial, initial)


def _type(rng: Random, ids: Iterator[int], version: int, depth: int) -> Type:
    if depth and rng.random() < 0.3:
        return rng.choice((_struct, _list, _map))(rng, ids, version, depth - 1)
    match rng.randint(0, 9):
        case 0:
            return DecimalType(rng.randint(1, 38), 0)
        case 1:
            return FixedType(rng.randint(1, 16))
        case 2 if version >= 3:
            return PlainType(rng.choice(_NEW_TYPES))
    return PlainType(rng.choice(_TYPES))


def _struct(rng: Random, ids: Iterator[int], version: int, depth: int) -> Type:
    names = rng.sample(NAMES, rng.randint(1, 2))
    return StructType(tuple(_column(rng, name, ids, version, depth) for name in names))


def _list(rng: Random, ids: Iterator[int], version: int, depth: int) -> Type:
    number, element = next(ids), _type(rng, ids, version, depth)
    return ListType(number, element, _is_required(rng, element))


def _map(rng: Random, ids: Iterator[int], version: int, depth: int) -> Type:
    key_id, value_id = next(ids), next(ids)
    key, value = _type(rng, ids, 2, depth), _type(rng, ids, version, depth)
    return MapType(key_id, key, value_id, value, _is_required(rng, value))


def _is_required(rng: Random, kind: Type) -> bool:
    return kind != PlainType("unknown") and rng.random() < 0.3


def changed_schema(rng: Random, table: TableMetadata) -> Schema:
    """Return one of a table's schemas after a few changes, under the next free id."""
    base = rng.choice(table.schemas) if rng.random() < 0.3 else table.schema
    ids = iter(range(table.last_column_id + 1, table.last_column_id + 200))
    fields = base.fields
    for _ in range(rng.randint(0, 3)):
        fields = _changed_fields(rng, fields, ids, table)
    number = max(each.schema_id for each in table.schemas) + 1
    keys = (each.id for each in fields if _is_key(each) and rng.random() < 0.3)
    return Schema(number, fields, tuple(keys))


def _is_key(column: NestedField) -> bool:
    return column.required and column.type in {PlainType("int"), PlainType("string")}


def _changed_fields(
    rng: Random, fields: tuple[NestedField, ...], ids: Iterator[int], table: TableMetadata
) -> tuple[NestedField, ...]:
    at = rng.randrange(len(fields)) if fields else 0
    match rng.randint(0, 6):
        case 0:
            return _with_added_column(rng, fields, ids, table)
        case 1 if len(fields) > 1:
            return (*fields[:at], *fields[at + 1 :])
        case 2 if len(fields) > 1:
            return _with_rotated_names(rng, fields)
        case 3:
            return tuple(rng.sample(fields, len(fields)))
        case 4 if fields:
            free = sorted({*NAMES} - {each.name for each in fields})
            return _with_column(fields, at, evolve(fields[at], name=rng.choice(free)))
        case _ if fields:
            return _with_column(fields, at, _changed_column(rng, fields[at], ids, table))
    return fields


def _with_added_column(
    rng: Random, fields: tuple[NestedField, ...], ids: Iterator[int], table: TableMetadata
) -> tuple[NestedField, ...]:
    free = sorted({*NAMES} - {each.name for each in fields})
    dropped = [
        each
        for schema in table.schemas
        for each in schema.fields
        if each.id not in {has.id for has in fields} and each.name in free
    ]
    if dropped and rng.random() < 0.4:
        column = rng.choice(dropped)
    else:
        column = _column(rng, rng.choice(free), ids, table.format_version, depth=1)
    place = rng.randint(0, len(fields))
    return (*fields[:place], column, *fields[place:])


def _with_rotated_names(rng: Random, fields: tuple[NestedField, ...]) -> tuple[NestedField, ...]:
    """Let some columns change names in a circle."""
    count = rng.randint(2, len(fields))
    names = [each.name for each in fields[:count]]
    renamed = zip(fields[:count], [*names[1:], names[0]], strict=True)
    return (*(evolve(each, name=name) for each, name in renamed), *fields[count:])


def _with_column(
    fields: tuple[NestedField, ...], at: int, column: NestedField
) -> tuple[NestedField, ...]:
    return (*fields[:at], column, *fields[at + 1 :])


def _changed_column(
    rng: Random, column: NestedField, ids: Iterator[int], table: TableMetadata
) -> NestedField:
    match column.type:
        case StructType(fields=fields) if rng.random() < 0.7:
            return evolve(column, type=StructType(_changed_fields(rng, fields, ids, table)))
        case ListType(element=StructType(fields=fields)) if rng.random() < 0.7:
            changed = StructType(_changed_fields(rng, fields, ids, table))
            return evolve(column, type=evolve(column.type, element=changed))
        case MapType(key=key) if rng.random() < 0.4:
            # No SchemaChange changes the key of a map.
            return evolve(column, type=evolve(column.type, key=_changed_key(rng, key)))
        case PlainType(name=name) if name in _WIDER and rng.random() < 0.5:
            return evolve(column, type=_WIDER[name])
        case DecimalType() if rng.random() < 0.5:
            return evolve(column, type=DecimalType(38, column.type.scale))
    if table.format_version >= 3 and column.type == PlainType("long") and rng.random() < 0.5:
        return evolve(column, write_default=rng.randint(0, 9))
    if rng.random() < 0.5:
        return evolve(column, doc=rng.choice((None, "other", "a comment")))
    return evolve(column, required=not column.required)


def _changed_key(rng: Random, key: Type) -> Type:
    if isinstance(key, StructType):
        return StructType(tuple(evolve(each, doc="of a key") for each in key.fields))
    return _WIDER.get(key.name, key) if isinstance(key, PlainType) else key


def _sources(schema: Schema) -> list[NestedField]:
    return [
        placed.field
        for placed in schema.placed_fields
        if isinstance(placed.field.type, PlainType)
        and placed.field.type.name in _SOURCES
        and all(isinstance(each.type, StructType) for each in placed.parents)
    ]


def _spec(
    rng: Random, schema: Schema, first_id: int, version: int, number: int = 0
) -> PartitionSpec:
    fields = []
    for each in rng.sample(found := _sources(schema), min(len(found), rng.randint(0, 2))):
        assert isinstance(each.type, PlainType)
        transform = rng.choice(_SOURCES[each.type.name])
        fields.append((each.id, transform))
    first = 1000 if version == 1 else first_id
    return PartitionSpec(
        number,
        tuple(
            PartitionField(f"part {source} {transform}", transform, source, field_id=first + at)
            for at, (source, transform) in enumerate(fields)
        ),
    )


def _order(rng: Random, schema: Schema, number: int) -> SortOrder:
    found = _sources(schema)
    fields = tuple(
        SortField(
            transform=rng.choice(("identity", "bucket[4]")),
            source_id=each.id,
            direction=rng.choice(("asc", "desc")),
            null_order=rng.choice(("nulls-first", "nulls-last")),
        )
        for each in rng.sample(found, min(len(found), rng.randint(0, 2)))
    )
    return SortOrder(number if fields else 0, fields)


def _properties(rng: Random, count: int) -> dict[str, str]:
    found = {key: rng.choice(("1", "x", "", "ä")) for key in rng.sample(PROPERTIES, count)}
    if "write.metadata.previous-versions-max" in found:
        found["write.metadata.previous-versions-max"] = rng.choice(("0", "1", "3", "none"))
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
    spec = _spec(rng, table.schema, first, table.format_version, number)
    added = u.AddSpec(spec=spec)
    return rng.choice(((added,), (added, u.SetDefaultSpec(spec_id=-1))))


def _set_spec(rng: Random, table: TableMetadata, _location: str) -> _Updates:
    return (u.SetDefaultSpec(spec_id=_some_id(rng, list(table.specs_by_id))),)


def _remove_specs(rng: Random, table: TableMetadata, _location: str) -> _Updates:
    others = [each for each in table.specs_by_id if each != table.default_spec_id]
    return (u.RemovePartitionSpecs(spec_ids=(_some_id(rng, others),)),)


def _add_order(rng: Random, table: TableMetadata, _location: str) -> _Updates:
    order = _order(rng, table.schema, max(table.orders_by_id) + 1)
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
    number = _some_id(rng, list(table.snapshots_by_id))
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


def _change_keys(rng: Random, table: TableMetadata, _location: str) -> _Updates:
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
