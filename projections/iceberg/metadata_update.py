"""Application of Iceberg REST updates to table metadata.

A batch is atomic: `-1` refers to its own additions, and several moves of `main` in it are one
move. So metadata N is the fold of metadata N - 1 and the updates of commit N in every process.

Source: the Iceberg REST catalog specification, CommitTableRequest; Java's TableMetadata.Builder;
the Iceberg table specification, "Partition Transforms"; a day is a date as in Java.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import TypeVar, assert_never

import msgspec
from attrs import Factory, define, evolve

import projections.iceberg.rest_updates as updates
from ledger.model.errors import InvalidInputError, UnsupportedError
from ledger.model.iceberg_layout import (
    FIRST_PARTITION_FIELD_ID,
    NO_ID,
    UNSORTED_ID,
    PartitionField,
    PartitionSpec,
    SortField,
    SortOrder,
    has_same_layout,
)
from ledger.model.iceberg_objects import (
    MAIN,
    IcebergSnapshot,
    MetadataLogEntry,
    PartitionStatisticsFile,
    SnapshotLogEntry,
    SnapshotRef,
    StatisticsFile,
)
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
    check_format_features,
    is_same_schema,
    type_name,
)
from projections.iceberg.rest_events import UpdateStep
from projections.iceberg.rest_updates import (
    StaleBaseError,
    TableUpdate,
)
from projections.iceberg.schema_json import integer_property
from projections.iceberg.table_metadata import (
    DEFAULT_PREVIOUS_VERSIONS,
    PREVIOUS_VERSIONS,
    ROW_IDS_SINCE,
    SEQUENCES_SINCE,
    SUPPORTED_VERSIONS,
    TableMetadata,
    check_heads,
    check_metadata_times,
)


@define
class UpdateBatch:
    """State of a batch of updates.

    Attributes:
        table: The table after the updates so far.
        now_ms: The time of the commit, in milliseconds since 1970.
        snapshots: All snapshots so far, by id.
        last_schema_id: The schema that -1 refers to.
        last_spec_id: The spec that -1 refers to.
        last_order_id: The sort order that -1 refers to.
        added_schemas: Ids of the schemas that the batch added.
        added_snapshots: Ids of the snapshots that the batch added.
        made_current: Those of them that were the head of `main` after some update.
        has_removed_snapshots: Whether the batch removed snapshots.
    """

    table: TableMetadata
    now_ms: int
    snapshots: dict[int, IcebergSnapshot] = Factory(
        lambda self: dict(self.table.snapshots_by_id), takes_self=True
    )
    last_schema_id: int | None = None
    last_spec_id: int | None = None
    last_order_id: int | None = None
    added_schemas: set[int] = Factory(set)
    added_snapshots: set[int] = Factory(set)
    made_current: set[int] = Factory(set)
    has_removed_snapshots: bool = False


def empty_metadata(format_version: int, now_ms: int) -> TableMetadata:
    """Return an empty table, before its first update."""
    return TableMetadata(
        format_version=format_version,
        table_uuid=None,
        location="",
        last_updated_ms=now_ms,
        last_column_id=0,
        schemas=(),
        partition_specs=(),
        last_partition_id=FIRST_PARTITION_FIELD_ID - 1,
        sort_orders=(),
    )


def add_schema(batch: UpdateBatch, schema: Schema) -> None:
    """Add a schema, or reuse an equal one."""
    table = batch.table
    check_format_features(schema, table.format_version)
    last_column_id = max(table.last_column_id, schema.highest_field_id)
    equal = next((each for each in table.schemas if is_same_schema(each, schema)), None)
    if equal is None:
        schema_id = _next_free_id(
            [each.schema_id for each in table.schemas], table.current_schema_id
        )
        schemas = (*table.schemas, evolve(schema, schema_id=schema_id))
    elif last_column_id == table.last_column_id:
        # Only additions of this batch count as "the last one added".
        added = equal.schema_id in batch.added_schemas
        batch.last_schema_id = equal.schema_id if added else None
        return
    else:
        schema_id, schemas = equal.schema_id, table.schemas
    batch.table = evolve(table, schemas=schemas, last_column_id=last_column_id)
    batch.last_schema_id = schema_id
    batch.added_schemas.add(schema_id)


def set_current_schema(batch: UpdateBatch, schema_id: int) -> None:
    """Make a schema the current one."""
    wanted = _resolve_last_added_id(schema_id, batch.last_schema_id, "schema")
    if wanted == batch.table.current_schema_id:
        return
    _check_id_exists(wanted, batch.table.schemas_by_id, "current schema")
    batch.table = evolve(batch.table, current_schema_id=wanted)


def remove_schemas(batch: UpdateBatch, schema_ids: tuple[int, ...]) -> None:
    """Remove schemas other than the current one."""
    table = batch.table
    if table.current_schema_id in schema_ids:
        raise InvalidInputError(f"schema {table.current_schema_id} is the current one and stays")
    if schema_ids:
        kept = tuple(each for each in table.schemas if each.schema_id not in schema_ids)
        batch.table = evolve(table, schemas=kept)


def add_spec(batch: UpdateBatch, spec: PartitionSpec) -> None:
    """Add a partition spec, or reuse one with the same layout."""
    table = batch.table
    same = next((each for each in table.partition_specs if has_same_layout(each, spec)), None)
    if same:
        batch.last_spec_id = None if batch.last_spec_id is None else same.spec_id
        return
    _check_partition_spec(spec, table)
    spec_id = _next_free_id([each.spec_id for each in table.partition_specs], 0)
    batch.table = evolve(
        table,
        partition_specs=(*table.partition_specs, msgspec.structs.replace(spec, spec_id=spec_id)),
        last_partition_id=max(table.last_partition_id, spec.last_field_id),
    )
    batch.last_spec_id = spec_id


def set_default_spec(batch: UpdateBatch, spec_id: int) -> None:
    """Make a partition spec the default one."""
    wanted = _resolve_last_added_id(spec_id, batch.last_spec_id, "partition spec")
    if wanted == batch.table.default_spec_id:
        return
    _check_id_exists(wanted, batch.table.specs_by_id, "default spec")
    batch.table = evolve(batch.table, default_spec_id=wanted)


def remove_specs(batch: UpdateBatch, spec_ids: tuple[int, ...]) -> None:
    """Remove partition specs other than the default one."""
    table = batch.table
    if table.default_spec_id in spec_ids:
        raise InvalidInputError(f"partition spec {table.default_spec_id} is the default and stays")
    if spec_ids:
        kept = tuple(each for each in table.partition_specs if each.spec_id not in spec_ids)
        batch.table = evolve(table, partition_specs=kept)


def add_sort_order(batch: UpdateBatch, order: SortOrder) -> None:
    """Add a sort order, or reuse an equal one."""
    table = batch.table
    same = next((each for each in table.sort_orders if each.fields == order.fields), None)
    if same:
        batch.last_order_id = None if batch.last_order_id is None else same.order_id
        return
    check_layout(order.fields, _current_schema(table))
    order_id = UNSORTED_ID
    if order.fields:
        order_id = _next_free_id([each.order_id for each in table.sort_orders], UNSORTED_ID + 1)
    batch.table = evolve(table, sort_orders=(*table.sort_orders, SortOrder(order_id, order.fields)))
    batch.last_order_id = order_id


def set_default_sort_order(batch: UpdateBatch, order_id: int) -> None:
    """Make a sort order the default one."""
    wanted = _resolve_last_added_id(order_id, batch.last_order_id, "sort order")
    if wanted == batch.table.default_sort_order_id:
        return
    _check_id_exists(wanted, batch.table.orders_by_id, "default sort order")
    batch.table = evolve(batch.table, default_sort_order_id=wanted)


def _check_partition_spec(spec: PartitionSpec, table: TableMetadata) -> None:
    schema = _current_schema(table)
    check_layout(spec.fields, schema)
    names = [each.name for each in spec.fields]
    for position, each in enumerate(spec.fields):
        if not each.name or each.name in names[:position]:
            raise InvalidInputError(f"partition name {each.name!r} is empty or occurs twice")
        column = schema.find(each.name)
        known = all(source_id in schema.by_id for source_id in each.sources)
        if column and known and column.id not in each.sources:
            raise InvalidInputError(
                f"partition name {each.name} is that of a column which is not its source; "
                "give it another"
            )
        in_sequence = each.field_id == FIRST_PARTITION_FIELD_ID + position
        if table.format_version < SEQUENCES_SINCE and not in_sequence:
            raise InvalidInputError(
                f"partition field {each.name} has id {each.field_id}; in version 1 they are "
                f"{FIRST_PARTITION_FIELD_ID} and on without gaps"
            )


def _check_partition_names(base: TableMetadata | None, table: TableMetadata) -> None:
    """Reject a column that has got the name of a partition field with another source.

    Java's readers reject such a table.

    Raises:
        InvalidInputError: There is such a column, and was none before.
    """
    known = set() if base is None else _clashing_names(base)
    clashing = sorted(_clashing_names(table) - known)
    if clashing:
        raise InvalidInputError(
            f"column {clashing[0]} has the name of a partition field that does not come from it; "
            "give the column another name"
        )


def _clashing_names(table: TableMetadata) -> set[str]:
    schema = table.schema
    return {
        each.name
        for spec in table.partition_specs
        for each in spec.fields
        if (column := schema.find(each.name)) is not None
        and column.id not in each.sources
        and all(source_id in schema.by_id for source_id in each.sources)
    }


def _current_schema(table: TableMetadata) -> Schema:
    if not table.schemas:
        raise InvalidInputError("a table needs a schema before a partition spec or sort order")
    return table.schema


def _next_free_id(taken: list[int], lowest: int) -> int:
    return max([lowest, *(each + 1 for each in taken)])


def _resolve_last_added_id(number: int, last_added: int | None, what: str) -> int:
    if number != NO_ID:
        return number
    if last_added is None:
        raise InvalidInputError(f"-1 refers to the {what} added last, and the batch added none")
    return last_added


def _check_id_exists(number: int, known: Container[int], role: str) -> None:
    if number not in known:
        raise InvalidInputError(f"the {role} cannot be {number}: the table has no such id")


_TIMESTAMPS = frozenset({"timestamp", "timestamptz", "timestamp_ns", "timestamptz_ns"})
_DAYS = _TIMESTAMPS | {"date"}
_WIDTHS = frozenset({"int", "long", "decimal", "string", "binary"})
_SOURCES = {
    "bucket": _WIDTHS | _DAYS | {"time", "uuid", "fixed"},
    "truncate": _WIDTHS,
    "year": _DAYS,
    "month": _DAYS,
    "day": _DAYS,
    "hour": _TIMESTAMPS,
}
_NEVER_IDENTITY = frozenset({"geometry", "geography", "variant"})
_RESULTS = {"bucket": "int", "year": "int", "month": "int", "day": "date", "hour": "int"}
_SAME = frozenset({"identity", "truncate", "void"})


def can_transform(transform: str, source: Type) -> bool:
    """Return whether a transform accepts a type; an unknown one accepts any.

    Example:
        >>> can_transform("hour", PlainType("date")), can_transform("zorder", PlainType("date"))
        (False, True)
    """
    name = _transform_name(transform)
    if name == "identity":
        return (
            not isinstance(source, StructType | ListType | MapType)
            and _type_kind(source) not in _NEVER_IDENTITY
        )
    return name not in _SOURCES or _type_kind(source) in _SOURCES[name]


def result_type(transform: str, source: Type) -> Type:
    """Return the type of a transform's values; those of an unknown one are strings."""
    name = _transform_name(transform)
    if name in _SAME:
        return source
    match _RESULTS.get(name):
        case "int":
            return PlainType("int")
        case "date":
            return PlainType("date")
        case _:
            return PlainType("string")


def partition_type(spec: PartitionSpec, schema: Schema) -> StructType:
    """Return the struct of a spec's values; all of its fields are optional.

    A field whose source column was dropped has values of type unknown.
    """
    return StructType(
        tuple(
            NestedField(
                each.field_id, each.name, _transform_result_type(each, schema), required=False
            )
            for each in spec.fields
        )
    )


def check_layout(
    fields: tuple[PartitionField, ...] | tuple[SortField, ...], schema: Schema
) -> None:
    """Check that a partition spec or sort order fits a schema.

    Every source is a primitive field of a type that the transform accepts, and that of a
    partition field is not inside a list or map. A void field fits any schema.

    Raises:
        InvalidInputError: One does not fit; the message names the field.
    """
    for each in fields:
        if isinstance(each, PartitionField) and each.transform == "void":
            continue
        for source_id in each.sources:
            _check_source(each, source_id, schema)


def _check_source(each: PartitionField | SortField, source_id: int, schema: Schema) -> None:
    name = f"{each.transform} of field {source_id}"
    placed = schema.by_id.get(source_id)
    if placed is None:
        raise InvalidInputError(f"{name}: schema {schema.schema_id} has no such field")
    kind = placed.field.type
    if isinstance(kind, StructType | ListType | MapType) or not can_transform(each.transform, kind):
        raise InvalidInputError(f"{name}: {placed.name} is of type {type_name(kind)}")
    if isinstance(each, PartitionField) and not all(
        isinstance(parent.type, StructType) for parent in placed.parents
    ):
        raise InvalidInputError(f"{name}: {placed.name} is in a list or map")


def _transform_result_type(each: PartitionField, schema: Schema) -> Type:
    placed = schema.by_id.get(each.sources[0])
    return result_type(each.transform, placed.field.type if placed else PlainType("unknown"))


def _transform_name(transform: str) -> str:
    return transform.partition("[")[0]


def _type_kind(source: Type) -> str:
    match source:
        case PlainType(name=name):
            return name
        case DecimalType():
            return "decimal"
        case FixedType():
            return "fixed"
        case _:
            return type(source).__name__.removesuffix("Type").lower()


_File = TypeVar("_File", StatisticsFile, PartitionStatisticsFile)


def add_snapshot(batch: UpdateBatch, snapshot: IcebergSnapshot) -> None:
    """Add a snapshot that no ref points to yet."""
    table = batch.table
    if not (table.schemas and table.partition_specs and table.sort_orders):
        raise InvalidInputError(
            "a table needs a schema, a partition spec and a sort order before its first snapshot"
        )
    if snapshot.schema_id is not None and snapshot.schema_id not in table.schemas_by_id:
        raise StaleBaseError(
            f"Requirement failed: schema {snapshot.schema_id} of snapshot {snapshot.snapshot_id} "
            "was removed; load the table again"
        )
    if snapshot.snapshot_id in batch.snapshots:
        raise InvalidInputError(f"the table has a snapshot {snapshot.snapshot_id}; use another id")
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


def set_ref(batch: UpdateBatch, name: str, ref: SnapshotRef) -> None:
    """Point a branch or tag to a snapshot."""
    table = batch.table
    if table.refs.get(name) == ref:
        return
    if ref.snapshot_id not in batch.snapshots:
        raise InvalidInputError(f"{name} cannot point to {ref.snapshot_id}: no such snapshot")
    if name == MAIN:
        if ref.type != "branch":
            raise InvalidInputError("main is a branch and cannot be a tag")
        _set_current_snapshot(batch, ref.snapshot_id)
    batch.table = evolve(batch.table, refs={**table.refs, name: ref})


def remove_ref(batch: UpdateBatch, name: str) -> None:
    """Remove a branch or tag; without `main` there is no current snapshot."""
    if name not in batch.table.refs:
        return
    refs = {key: ref for key, ref in batch.table.refs.items() if key != name}
    batch.table = evolve(batch.table, refs=refs)
    if name == MAIN:
        batch.table = evolve(batch.table, current_snapshot_id=None)


def remove_snapshots(batch: UpdateBatch, snapshot_ids: tuple[int, ...]) -> None:
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
        statistics=_files_of_other_snapshots(table.statistics, gone),
        partition_statistics=_files_of_other_snapshots(table.partition_statistics, gone),
    )
    for name, ref in table.refs.items():
        if ref.snapshot_id not in batch.snapshots:
            remove_ref(batch, name)


def set_statistics(batch: UpdateBatch, file: StatisticsFile) -> None:
    """Set a snapshot's statistics file, replacing an earlier one."""
    others = _files_of_other_snapshots(batch.table.statistics, {file.snapshot_id})
    batch.table = evolve(batch.table, statistics=(*others, file))


def remove_statistics(batch: UpdateBatch, snapshot_id: int) -> None:
    """Remove a snapshot's statistics file."""
    kept = _files_of_other_snapshots(batch.table.statistics, {snapshot_id})
    if kept != batch.table.statistics:
        batch.table = evolve(batch.table, statistics=kept)


def set_partition_statistics(batch: UpdateBatch, file: PartitionStatisticsFile) -> None:
    """Set a snapshot's partition statistics file, replacing an earlier one."""
    others = _files_of_other_snapshots(batch.table.partition_statistics, {file.snapshot_id})
    batch.table = evolve(batch.table, partition_statistics=(*others, file))


def remove_partition_statistics(batch: UpdateBatch, snapshot_id: int) -> None:
    """Remove a snapshot's partition statistics file."""
    kept = _files_of_other_snapshots(batch.table.partition_statistics, {snapshot_id})
    if kept != batch.table.partition_statistics:
        batch.table = evolve(batch.table, partition_statistics=kept)


def stored_snapshot_log(batch: UpdateBatch) -> tuple[SnapshotLogEntry, ...]:
    """Return the snapshot log as it is stored.

    Snapshots that a later update of the batch replaced were never current for a reader, so they
    are left out. An entry of a removed snapshot removes all entries before it as well: with a gap,
    the log would name a wrong snapshot for the time in between.
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


def _set_current_snapshot(batch: UpdateBatch, snapshot_id: int) -> None:
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
            f"table has assigned all below {table.next_row_id}"
        )
    return table.next_row_id + snapshot.added_rows


def _files_of_other_snapshots(
    files: tuple[_File, ...], snapshot_ids: set[int]
) -> tuple[_File, ...]:
    return tuple(each for each in files if each.snapshot_id not in snapshot_ids)


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
        now_ms: The time of the commit, in milliseconds since 1970.
        previous_location: The location of the file of `base`; without it the metadata log stays.

    Raises:
        StaleBaseError: A snapshot was made for an older state of the table.
        UnsupportedError: The table's format version does not support a schema.
        InvalidInputError: An update contradicts the table or the updates before it.
    """
    return apply_in_steps(base, batch, now_ms=now_ms, previous_location=previous_location)[0]


def apply_in_steps(
    base: TableMetadata | None,
    batch: Iterable[TableUpdate],
    *,
    now_ms: int,
    previous_location: str | None = None,
) -> tuple[TableMetadata, list[UpdateStep]]:
    """Return the metadata after a batch of updates, and the steps; see `apply_updates`."""
    changes = list(batch)
    start = base or empty_metadata(_initial_format_version(changes), now_ms)
    state = UpdateBatch(start, now_ms)
    steps = []
    for update in changes:
        before = state.table
        _apply_update(state, update)
        steps.append(UpdateStep(update, before, state.table))
    if base is not None and state.table is base:
        return base, steps
    return _finish_metadata(state, base, previous_location), steps


def _apply_update(batch: UpdateBatch, update: TableUpdate) -> None:
    if isinstance(update, updates.LayoutUpdate):
        _apply_layout_update(batch, update)
    elif isinstance(update, updates.SnapshotUpdate):
        _apply_snapshot_update(batch, update)
    elif isinstance(update, updates.KeyUpdate):
        _apply_key_update(batch, update)
    else:
        _apply_table_update(batch, update)


def _apply_layout_update(batch: UpdateBatch, update: updates.LayoutUpdate) -> None:
    match update:
        case updates.AddSchema(schema=schema):
            add_schema(batch, schema)
        case updates.SetCurrentSchema(schema_id=schema_id):
            set_current_schema(batch, schema_id)
        case updates.RemoveSchemas(schema_ids=schema_ids):
            remove_schemas(batch, schema_ids)
        case updates.AddSpec(spec=spec):
            add_spec(batch, spec)
        case updates.SetDefaultSpec(spec_id=spec_id):
            set_default_spec(batch, spec_id)
        case updates.RemovePartitionSpecs(spec_ids=spec_ids):
            remove_specs(batch, spec_ids)
        case updates.AddSortOrder(sort_order=order):
            add_sort_order(batch, order)
        case updates.SetDefaultSortOrder(sort_order_id=order_id):
            set_default_sort_order(batch, order_id)
        case _:
            assert_never(update)


def _apply_snapshot_update(batch: UpdateBatch, update: updates.SnapshotUpdate) -> None:
    match update:
        case updates.AddSnapshot(snapshot=snapshot):
            add_snapshot(batch, snapshot)
        case updates.SetSnapshotRef():
            set_ref(batch, update.ref_name, update.ref)
        case updates.RemoveSnapshots(snapshot_ids=snapshot_ids):
            remove_snapshots(batch, snapshot_ids)
        case updates.RemoveSnapshotRef(ref_name=name):
            remove_ref(batch, name)
        case updates.SetStatistics(statistics=statistics):
            set_statistics(batch, statistics)
        case updates.RemoveStatistics(snapshot_id=snapshot_id):
            remove_statistics(batch, snapshot_id)
        case updates.SetPartitionStatistics(partition_statistics=file):
            set_partition_statistics(batch, file)
        case updates.RemovePartitionStatistics(snapshot_id=snapshot_id):
            remove_partition_statistics(batch, snapshot_id)
        case _:
            assert_never(update)


def _apply_key_update(batch: UpdateBatch, update: updates.KeyUpdate) -> None:
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


def _apply_table_update(batch: UpdateBatch, update: updates.SharedUpdate) -> None:
    table = batch.table
    match update:
        case updates.AssignUuid(uuid=uuid):
            if uuid != table.table_uuid:
                batch.table = evolve(table, table_uuid=uuid)
        case updates.UpgradeFormatVersion(format_version=version):
            _upgrade_format_version(batch, version)
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


def _upgrade_format_version(batch: UpdateBatch, version: int) -> None:
    now = batch.table.format_version
    if version > SUPPORTED_VERSIONS[-1]:
        raise UnsupportedError(
            f"format version {version} is not supported; the newest is {SUPPORTED_VERSIONS[-1]}"
        )
    if version < now:
        raise InvalidInputError(f"a table of format version {now} cannot go back to {version}")
    if version > now:
        batch.table = evolve(batch.table, format_version=version)


def _initial_format_version(changes: list[TableUpdate]) -> int:
    named = (
        each.format_version for each in changes if isinstance(each, updates.UpgradeFormatVersion)
    )
    version = next(named, DEFAULT_VERSION)
    if version not in SUPPORTED_VERSIONS:
        raise UnsupportedError(f"a table cannot be of format version {version}")
    return version


def _finish_metadata(
    state: UpdateBatch, base: TableMetadata | None, previous_location: str | None
) -> TableMetadata:
    table = evolve(
        state.table,
        last_updated_ms=state.now_ms,
        snapshot_log=stored_snapshot_log(state),
        metadata_log=_metadata_log(state.table, base, previous_location),
    )
    if not table.table_uuid and base is None:
        raise InvalidInputError("a new table needs a uuid; begin with assign-uuid")
    if not table.location:
        raise InvalidInputError("a table needs a location; add set-location")
    check_layout(table.spec.fields, table.schema)
    check_layout(table.sort_order.fields, table.schema)
    _check_partition_names(base, table)
    check_heads(table)
    check_metadata_times(table)
    return table


def _metadata_log(
    table: TableMetadata, base: TableMetadata | None, previous_location: str | None
) -> tuple[MetadataLogEntry, ...]:
    # Checked in any case: with another value no later metadata file could be written.
    most = max(1, integer_property(table.properties, PREVIOUS_VERSIONS, DEFAULT_PREVIOUS_VERSIONS))
    if base is None or previous_location is None:
        return table.metadata_log
    entry = MetadataLogEntry(base.last_updated_ms, previous_location)
    return (*table.metadata_log, entry)[-most:]
