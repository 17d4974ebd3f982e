"""Differences between two Iceberg metadata files, as events.

A metadata file that covers many commits still gives the time and schema of each snapshot, and
when it was current. It does not give the time of a tag, a property change, or a schema
without snapshots: these events get the time of the file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from itertools import groupby
from typing import Any

from attrs import evolve, frozen
from msgspec.structs import replace

from ledger.events import TableEvent
from ledger.events import imported as e
from ledger.events.schema import (
    PartitionSpecUpdated,
    RemoveOption,
    SetOption,
    SortColumn,
    SortOrderReplaced,
)
from ledger.events.snapshots import PartitionStatisticsSet
from ledger.model.errors import UnsupportedError
from ledger.model.iceberg_layout import SortField
from ledger.model.iceberg_objects import MAIN, IcebergSnapshot, SnapshotLogEntry, SnapshotRef
from ledger.model.schema import Schema
from ledger.model.types.wire import field_from_wire
from ledger.state.iceberg_origin import IcebergOrigin, author_of
from ledger.state.table import TableState
from projections.iceberg.imported_metadata import (
    SnapshotChanges,
    compare_snapshots,
    dropped_and_new_entries,
    items_after_prefix,
    ledger_schema,
)
from projections.iceberg.metadata_schema import Schema as IcebergSchema
from projections.iceberg.table_metadata import ROW_IDS_SINCE, SEQUENCES_SINCE, TableMetadata
from projections.importing.deriving import derive_schema_events, option_of_property
from projections.importing.trial import PlanningState


def metadata_change_events(
    trial: PlanningState, before: TableMetadata, after: TableMetadata
) -> tuple[TableEvent, ...]:
    """Return the events that lead from one metadata to the other, without counters.

    The cost grows with what is new, not with the length of the history.

    Args:
        trial: The table's current state.
        before: The state as Iceberg metadata.
        after: The metadata to reach.

    Raises:
        UnsupportedError: The ledger cannot hold a change; the message names it.
    """
    moved = compare_snapshots(before, after)
    if moved.gone or moved.rewritten:
        moved = moved.with_ids_in_order(trial.state.origin_of_kind(IcebergOrigin).snapshots)
    return (
        *_table_fact_events(before, after),
        *_option_events(before.properties, after.properties),
        *_encryption_key_events(before, after),
        *_schema_events(trial.schema, before, after),
        *_partition_spec_events(before, after),
        *_sort_order_events(before, after),
        *_snapshot_events(before, after, moved),
        *_statistics_events(before, after, moved),
        *_definition_removal_events(before, after),
        *_log_update_events(before, after),
    )


def counter_change_events(state: TableState, after: TableMetadata) -> tuple[e.TableFactsSet, ...]:
    """Return an event with the source's counters where the table's differ."""
    origin = state.origin_of_kind(IcebergOrigin)
    there = {
        "last_column_id": (state.schema.highest_field_id, after.last_column_id),
        "last_partition_id": (state.last_partition_id, after.last_partition_id),
        "last_sequence_number": (origin.last_sequence_number, after.last_sequence_number),
        "next_row_id": (origin.next_row_id, after.next_row_id),
    }
    changed: dict[str, Any] = {key: new for key, (old, new) in there.items() if old != new}
    return (e.TableFactsSet(**changed),) if changed else ()


def _table_fact_events(before: TableMetadata, after: TableMetadata) -> Iterator[TableEvent]:
    changed: dict[str, Any] = {
        key: getattr(after, key)
        for key in ("format_version", "table_uuid", "location")
        if getattr(after, key) != getattr(before, key)
    }
    if changed.get("table_uuid", "") is None:
        raise UnsupportedError(
            f"the table had the uuid {before.table_uuid} and has none now: it is another table; "
            "import it under another name"
        )
    if changed:
        yield e.TableFactsSet(**changed)


def _option_events(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[TableEvent]:
    gone = sorted(before.keys() - after.keys())
    yield from (RemoveOption(option_of_property(key)) for key in gone)
    changed = (key for key, value in sorted(after.items()) if before.get(key) != value)
    yield from (SetOption(option_of_property(key), after[key]) for key in changed)


def _encryption_key_events(before: TableMetadata, after: TableMetadata) -> Iterator[TableEvent]:
    had = {each.key_id: each for each in before.encryption_keys}
    has = {each.key_id: each for each in after.encryption_keys}
    yield from (e.EncryptionKeyRemoved(key) for key, each in had.items() if has.get(key) != each)
    yield from (e.EncryptionKeyAdded(each) for key, each in has.items() if had.get(key) != each)


def _schema_events(
    now: Schema, before: TableMetadata, after: TableMetadata
) -> Iterator[TableEvent]:
    known, current = before.schemas_by_id, before.current_schema_id
    for each in after.schemas:
        # Most are identical objects, which need no comparison.
        if (there := known.get(each.schema_id, each)) is not each and there != each:
            raise UnsupportedError(
                f"schema {each.schema_id} of the source has other columns than it had, which no "
                "schema id may get: it is another table; import it under another name"
            )
    added = [each for each in after.schemas if each.schema_id not in known]
    for each in added:
        made = ledger_schema(each, after.format_version)
        if each.schema_id != after.current_schema_id:
            yield e.SchemaAdded(made)
            continue
        fields = tuple(map(field_from_wire, made.fields))
        yield from derive_schema_events(now, fields, made.identifier_field_ids)
        yield e.SchemaNamed(each.schema_id, made.text)
        current = each.schema_id
    if current != after.current_schema_id:
        yield e.CurrentSchemaSet(after.current_schema_id)


def _partition_spec_events(before: TableMetadata, after: TableMetadata) -> Iterator[TableEvent]:
    known = before.specs_by_id
    for each in after.partition_specs:
        is_default = each.spec_id == after.default_spec_id
        if each.spec_id in known and known[each.spec_id] != each:
            raise UnsupportedError(
                f"partition spec {each.spec_id} of the source has other fields than it had: it is "
                "another table; import it under another name"
            )
        if each.spec_id not in known or (is_default and before.default_spec_id != each.spec_id):
            yield PartitionSpecUpdated(
                (), set_default=is_default, spec_id=each.spec_id, fields=each.fields
            )


def _sort_order_events(before: TableMetadata, after: TableMetadata) -> Iterator[TableEvent]:
    known = before.orders_by_id
    for each in after.sort_orders:
        is_default = each.order_id == after.default_sort_order_id
        if each.order_id in known and known[each.order_id] != each:
            raise UnsupportedError(
                f"sort order {each.order_id} of the source has other fields than it had: it is "
                "another table; import it under another name"
            )
        if each.order_id not in known or (
            is_default and before.default_sort_order_id != each.order_id
        ):
            yield SortOrderReplaced(
                tuple(sort_column(field, after) for field in each.fields),
                set_default=is_default,
                order_id=each.order_id,
                fields=each.fields,
            )


def sort_column(field: SortField, table: TableMetadata) -> SortColumn:
    """Return a field of a sort order with the name of its source column."""
    # The source column of a sort order that is not the default may exist in one schema only.
    names = (schema.name_of(field.source_id) for schema in (table.schema, *table.schemas[::-1]))
    name = next(filter(None, names), f"column {field.source_id}")
    return SortColumn(tuple(name.split(".")), field.transform, field.direction, field.null_order)


def _snapshot_events(
    before: TableMetadata, after: TableMetadata, moved: SnapshotChanges
) -> Iterator[TableEvent]:
    refs = before.refs
    for each in moved.rewritten:
        yield e.SnapshotReplaced(after.snapshot(each))
    for added in moved.new:
        yield e.SnapshotAdded(added)
    for name in sorted(refs.keys() - after.refs.keys()):
        yield e.SnapshotRefRemoved(name)
    for name, ref in after.refs.items():
        if refs.get(name) != ref:
            yield e.SnapshotRefSet(name, ref)
    if moved.gone:
        yield e.SnapshotsRemoved(moved.gone)


def _statistics_events(
    before: TableMetadata, after: TableMetadata, moved: SnapshotChanges
) -> Iterator[TableEvent]:
    # Removed snapshots removed their statistics as well.
    lost = set(moved.gone)
    files = {each.snapshot_id: each for each in before.statistics if each.snapshot_id not in lost}
    parts = {
        each.snapshot_id: each
        for each in before.partition_statistics
        if each.snapshot_id not in lost
    }
    no_file = _missing_ids(files, {each.snapshot_id: each for each in after.statistics})
    no_part = _missing_ids(parts, {each.snapshot_id: each for each in after.partition_statistics})
    if no_file or no_part:
        yield e.StatisticsRemoved(snapshot_ids=no_file, of_partitions=no_part)
    for file in after.statistics:
        if files.get(file.snapshot_id) != file:
            yield e.StatisticsSet(file)
    for part in after.partition_statistics:
        if parts.get(part.snapshot_id) != part:
            yield PartitionStatisticsSet(part)


def _definition_removal_events(before: TableMetadata, after: TableMetadata) -> Iterator[TableEvent]:
    schemas = _missing_ids(before.schemas_by_id, after.schemas_by_id)
    if schemas:
        yield e.SchemasRemoved(schemas)
    specs = _missing_ids(before.specs_by_id, after.specs_by_id)
    orders = _missing_ids(before.orders_by_id, after.orders_by_id)
    if specs or orders:
        yield e.LayoutsRemoved(spec_ids=specs, order_ids=orders)


def _missing_ids(before: Iterable[int], after: Mapping[int, object]) -> tuple[int, ...]:
    return tuple(each for each in before if each not in after)


def _log_update_events(before: TableMetadata, after: TableMetadata) -> Iterator[TableEvent]:
    dropped, added = dropped_and_new_entries(before.snapshot_log, after.snapshot_log)
    if dropped or added:
        yield e.SnapshotLogUpdated(dropped=dropped, added=added)
    dropped, files = dropped_and_new_entries(before.metadata_log, after.metadata_log)
    if dropped or files:
        yield e.MetadataLogUpdated(dropped=dropped, added=files)


@frozen
class SourceStep:
    """State of a source table at one moment of its history.

    Attributes:
        target: The metadata after it; counters are exact only in the last step of a file.
        millis: The time, Unix milliseconds.
        author: The author of its snapshot, if the snapshot names one.
        is_whole: Whether it is the complete content of the file.
    """

    target: TableMetadata
    millis: int
    author: str = ""
    is_whole: bool = False


@frozen
class _SnapshotMoment:
    millis: int
    snapshots: tuple[IcebergSnapshot, ...]
    logged: tuple[SnapshotLogEntry, ...]


def split_into_steps(before: TableMetadata, after: TableMetadata) -> Iterator[SourceStep]:
    """Yield the steps from one metadata file to a later one, oldest first."""
    moments = list(_snapshot_moments(before, after))
    reached, there = before, {*before.snapshots_by_id}
    rising = _new_schemas_to_current(before, after)
    for position, moment in enumerate(moments):
        author = next((author_of(each.summary or {}) for each in reversed(moment.snapshots)), "")
        if position == len(moments) - 1 and moment.millis == after.last_updated_ms:
            yield SourceStep(after, moment.millis, author, is_whole=True)
            return
        there.update(each.snapshot_id for each in moment.snapshots)
        reached = _metadata_with_schema(reached, rising, moment)
        reached = _metadata_after_moment(reached, after, moment, there)
        yield SourceStep(reached, moment.millis, author)
    yield SourceStep(after, after.last_updated_ms, is_whole=True)


def _new_schemas_to_current(
    before: TableMetadata, after: TableMetadata
) -> tuple[IcebergSchema, ...]:
    """Return the new schemas up to the current one; none if the current one is not new.

    Those used by a snapshot of `main` were current at that time. No file gives the time of
    any other schema.
    """
    new = [each for each in after.schemas if each.schema_id not in before.schemas_by_id]
    places = [at for at, each in enumerate(new) if each.schema_id == after.current_schema_id]
    return tuple(new[: places[0] + 1]) if places else ()


def _metadata_with_schema(
    reached: TableMetadata, rising: tuple[IcebergSchema, ...], moment: _SnapshotMoment
) -> TableMetadata:
    """Return metadata whose current schema is that of the moment's current snapshots."""
    logged = {each.snapshot_id for each in moment.logged}
    used = {each.schema_id for each in moment.snapshots if each.snapshot_id in logged}
    left = [each for each in rising if each.schema_id not in reached.schemas_by_id]
    places = [place for place, each in enumerate(left) if each.schema_id in used]
    if not places:
        return reached
    came = left[: places[-1] + 1]
    return evolve(reached, schemas=(*reached.schemas, *came), current_schema_id=came[-1].schema_id)


def _snapshot_moments(before: TableMetadata, after: TableMetadata) -> Iterator[_SnapshotMoment]:
    new = compare_snapshots(before, after).new
    entries = items_after_prefix(before.snapshot_log, after.snapshot_log)
    if entries is None:
        logged = set(before.snapshot_log)
        entries = tuple(each for each in after.snapshot_log if each not in logged)
    whens: list[tuple[int, int, IcebergSnapshot | SnapshotLogEntry]] = [
        *((each.timestamp_ms, each.sequence_number, each) for each in new),
        *((each.timestamp_ms, 2**63, each) for each in entries),
    ]
    whens.sort(key=lambda each: each[:2])
    for millis, group in groupby(whens, key=lambda each: each[0]):
        parts = [part for _, _, part in group]
        yield _SnapshotMoment(
            millis,
            tuple(each for each in parts if isinstance(each, IcebergSnapshot)),
            tuple(each for each in parts if isinstance(each, SnapshotLogEntry)),
        )


def _metadata_after_moment(
    reached: TableMetadata, after: TableMetadata, moment: _SnapshotMoment, there: AbstractSet[int]
) -> TableMetadata:
    """Return the metadata after a moment.

    Args:
        reached: The metadata before the moment.
        after: The content of the file.
        moment: The moment.
        there: The ids of all snapshots so far, including those of the moment.
    """
    refs = dict(reached.refs)
    logged = [each for each in moment.logged if each.snapshot_id in there]
    if logged:
        head = logged[-1].snapshot_id
        same = after.refs.get(MAIN)
        main = refs.get(MAIN, SnapshotRef(snapshot_id=head, type="branch"))
        refs[MAIN] = (
            same
            if same is not None and same.snapshot_id == head
            else replace(main, snapshot_id=head)
        )
    return evolve(
        reached,
        snapshots=(*reached.snapshots, *moment.snapshots),
        format_version=max(
            reached.format_version, *map(_oldest_format_version, moment.snapshots), 1
        ),
        refs=refs,
        current_snapshot_id=logged[-1].snapshot_id if logged else reached.current_snapshot_id,
        snapshot_log=(*reached.snapshot_log, *logged),
    )


def _oldest_format_version(snapshot: IcebergSnapshot) -> int:
    """Return the oldest format version in which such a snapshot is possible."""
    if snapshot.first_row_id is not None:
        return ROW_IDS_SINCE
    return SEQUENCES_SINCE if snapshot.sequence_number else 1
