"""Events of Iceberg REST updates: each update is recorded as what it is, in the request's order.

A schema that the same batch makes the current one is recorded by the SchemaChanges that lead to
it, by field id, so that `blame`, `diff` and `undo` see what the engine's user did. Counters and the
snapshot log follow from the updates and come last.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, assert_never

from attrs import evolve, frozen

import projections.iceberg.rest_updates as u
from ledger.events import TableEvent
from ledger.events import imported as e
from ledger.events.schema import (
    PartitionSpecUpdated,
    RemoveOption,
    SetOption,
    SortOrderReplaced,
)
from ledger.events.snapshots import PartitionStatisticsSet
from ledger.model.iceberg_objects import SnapshotRef
from ledger.model.schema import Schema, highest_field_id
from ledger.model.types import DataField
from ledger.model.types.wire import field_from_wire
from ledger.state.iceberg_origin import IcebergOrigin
from ledger.state.table import TableState
from projections.iceberg.differences import counter_change_events, sort_column
from projections.iceberg.imported_metadata import dropped_and_new_entries, ledger_schema
from projections.iceberg.rest_updates import TableUpdate
from projections.iceberg.table_metadata import TableMetadata
from projections.importing.deriving import derive_schema_events, option_of_property


@frozen
class UpdateStep:
    """An update with the metadata before and after it.

    Attributes:
        update: The update.
        before: The metadata after the updates before it.
        after: The metadata after it.
    """

    update: TableUpdate
    before: TableMetadata
    after: TableMetadata


def update_events(schema: Schema, steps: Sequence[UpdateStep]) -> Iterator[TableEvent]:
    """Yield the events of updates, in their order.

    Args:
        schema: The table's current schema.
        steps: The updates, with the metadata before and after each.

    Raises:
        UnsupportedError: The ledger has no type for a column of a new schema.
    """
    recorded = set(steps[0].before.schemas_by_id) if steps else set()
    for place, each in enumerate(steps):
        yield from _events_of_step(each)
        # An id of the batch's own that it removes can be given again.
        recorded &= each.after.schemas_by_id.keys()
        for schema_id in sorted(_new_ids(each.before.schemas_by_id, each.after.schemas_by_id)):
            if not _becomes_current(schema_id, steps[place:]):
                yield e.SchemaAdded(_ledger_schema_of(each, schema_id))
                recorded.add(schema_id)
        current = each.after.current_schema_id
        if current == each.before.current_schema_id:
            continue
        made = _ledger_schema_of(each, current)
        fields = tuple(map(field_from_wire, made.fields))
        if current in recorded:
            yield e.CurrentSchemaSet(current)
        else:
            yield from derive_schema_events(schema, fields, made.identifier_field_ids)
            yield e.SchemaNamed(current, made.text)
        recorded.add(current)
        schema = _schema_with(schema, fields, made.identifier_field_ids)


def _becomes_current(schema_id: int, steps: Sequence[UpdateStep]) -> bool:
    """Return True if a schema that the first step adds becomes the current one before it goes."""
    for each in steps:
        if each.after.current_schema_id == schema_id:
            return True
        if schema_id not in each.after.schemas_by_id:
            return False
    return False


def _ledger_schema_of(step: UpdateStep, schema_id: int) -> e.IcebergSchema:
    found = step.after.schemas_by_id[schema_id]
    return ledger_schema(found, step.after.format_version)


def implied_events(reached: TableState, after: TableMetadata) -> tuple[TableEvent, ...]:
    """Return the events of what updates imply: counters, and the snapshot log.

    Args:
        reached: The state after the events of the updates.
        after: The metadata after the updates.
    """
    log = reached.origin_of_kind(IcebergOrigin).snapshot_log
    logged: tuple[TableEvent, ...] = ()
    if log != after.snapshot_log:
        dropped, added = dropped_and_new_entries(log, after.snapshot_log)
        logged = (e.SnapshotLogUpdated(dropped=dropped, added=added),)
    return (*logged, *counter_change_events(reached, after))


def _events_of_step(step: UpdateStep) -> Iterator[TableEvent]:
    update = step.update
    if isinstance(update, u.LayoutUpdate):
        yield from _layout_events(step)
    elif isinstance(update, u.SnapshotUpdate):
        yield from _snapshot_events(update, step.before, step.after)
    elif isinstance(update, u.KeyUpdate):
        yield from _key_events(step.before, step.after)
    else:
        yield from _table_events(update, step.before, step.after)


def _layout_events(step: UpdateStep) -> Iterator[TableEvent]:
    before, after = step.before, step.after
    for spec_id in _new_ids(before.specs_by_id, after.specs_by_id):
        yield _spec_event(after, spec_id)
    if after.default_spec_id != before.default_spec_id:
        yield _spec_event(after, after.default_spec_id)
    for order_id in _new_ids(before.orders_by_id, after.orders_by_id):
        yield _order_event(after, order_id)
    if after.default_sort_order_id != before.default_sort_order_id:
        yield _order_event(after, after.default_sort_order_id)
    schemas = tuple(_new_ids(after.schemas_by_id, before.schemas_by_id))
    if schemas:
        yield e.SchemasRemoved(schemas)
    specs = tuple(_new_ids(after.specs_by_id, before.specs_by_id))
    if specs:
        yield e.LayoutsRemoved(spec_ids=specs)


def _spec_event(table: TableMetadata, spec_id: int) -> PartitionSpecUpdated:
    return PartitionSpecUpdated(
        (),
        set_default=spec_id == table.default_spec_id,
        spec_id=spec_id,
        fields=table.specs_by_id[spec_id].fields,
    )


def _order_event(table: TableMetadata, order_id: int) -> SortOrderReplaced:
    fields = table.orders_by_id[order_id].fields
    return SortOrderReplaced(
        tuple(sort_column(each, table) for each in fields),
        set_default=order_id == table.default_sort_order_id,
        order_id=order_id,
        fields=fields,
    )


def _snapshot_events(
    update: u.SnapshotUpdate, before: TableMetadata, after: TableMetadata
) -> Iterator[TableEvent]:
    match update:
        case u.AddSnapshot(snapshot=snapshot):
            yield e.SnapshotAdded(snapshot)
        case u.RemoveSnapshots():
            gone = tuple(_new_ids(after.snapshots_by_id, before.snapshots_by_id))
            if gone:
                yield e.SnapshotsRemoved(gone)
        case u.SetSnapshotRef(ref_name=name) | u.RemoveSnapshotRef(ref_name=name):
            yield from _ref_events(name, before.refs.get(name), after.refs.get(name))
        case u.SetStatistics(statistics=file):
            yield e.StatisticsSet(file)
        case u.SetPartitionStatistics(partition_statistics=part):
            yield PartitionStatisticsSet(part)
        case u.RemoveStatistics() | u.RemovePartitionStatistics():
            yield from _removed_statistics_events(before, after)
        case _:
            assert_never(update)


def _ref_events(
    name: str, before: SnapshotRef | None, after: SnapshotRef | None
) -> Iterator[TableEvent]:
    if after is not None and after != before:
        yield e.SnapshotRefSet(name, after)
    elif after is None and before is not None:
        yield e.SnapshotRefRemoved(name)


def _removed_statistics_events(before: TableMetadata, after: TableMetadata) -> Iterator[TableEvent]:
    files = {each.snapshot_id for each in after.statistics}
    parts = {each.snapshot_id for each in after.partition_statistics}
    no_file = tuple(each.snapshot_id for each in before.statistics if each.snapshot_id not in files)
    no_part = tuple(
        each.snapshot_id for each in before.partition_statistics if each.snapshot_id not in parts
    )
    if no_file or no_part:
        yield e.StatisticsRemoved(snapshot_ids=no_file, of_partitions=no_part)


def _key_events(before: TableMetadata, after: TableMetadata) -> Iterator[TableEvent]:
    had = {each.key_id: each for each in before.encryption_keys}
    has = {each.key_id: each for each in after.encryption_keys}
    yield from (e.EncryptionKeyRemoved(each) for each in had if each not in has)
    yield from (e.EncryptionKeyAdded(each) for key, each in has.items() if key not in had)


def _table_events(
    update: u.SharedUpdate, before: TableMetadata, after: TableMetadata
) -> Iterator[TableEvent]:
    match update:
        case u.AssignUuid() | u.UpgradeFormatVersion() | u.SetLocation():
            changed: dict[str, Any] = {
                key: getattr(after, key)
                for key in ("format_version", "table_uuid", "location")
                if getattr(after, key) != getattr(before, key)
            }
            if changed:
                yield e.TableFactsSet(**changed)
        case u.SetProperties(updates=updates):
            new = (item for item in updates.items() if before.properties.get(item[0]) != item[1])
            yield from (SetOption(option_of_property(key), value) for key, value in new)
        case u.RemoveProperties(removals=removals):
            gone = (key for key in dict.fromkeys(removals) if key in before.properties)
            yield from (RemoveOption(option_of_property(key)) for key in gone)
        case _:
            assert_never(update)


def _new_ids(before: Mapping[int, Any], after: Iterable[int]) -> Iterator[int]:
    return (each for each in after if each not in before)


def _schema_with(schema: Schema, fields: tuple[DataField, ...], keys: tuple[int, ...]) -> Schema:
    highest = max(schema.highest_field_id, highest_field_id(fields))
    return evolve(schema, fields=fields, identifier_field_ids=keys, highest_field_id=highest)
