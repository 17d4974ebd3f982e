"""Cells: what an event sets, and what it needs unchanged, so that conflicts are found by meaning.

A cell is a field id and an aspect, an option, the comment, a tag, ... Two events conflict when one
claims a cell that the other set to another value. An equal value is no conflict, and events that
share no cell commute.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, assert_never

from msgspec import UnsetType

from ledger.events import TableEvent
from ledger.events.clock_events import ClockCorrected
from ledger.events.schema_changes import DropPrimaryKey, RemoveOption, SetOption, UpdateComment
from ledger.events.schema_events import (
    ColumnAdded,
    ColumnCommentUpdated,
    ColumnDefaultValueUpdated,
    ColumnDropped,
    ColumnMoved,
    ColumnNullabilityUpdated,
    ColumnRenamed,
    ColumnTypeUpdated,
    IdentifierFieldsSet,
    UpdateKeys,
)
from ledger.events.snapshot_events import (
    RolledBack,
    SnapshotCommitted,
    SnapshotsExpired,
    TagCreated,
    TagDeleted,
    TagReplaced,
)
from ledger.events.spec_events import PartitionSpecUpdated, SortOrderReplaced
from ledger.events.statistics_events import PartitionStatisticsSet
from ledger.events.table_events import TableCreated, TableDropped
from ledger.evolution.anchor import Anchor
from ledger.model.field_ids import walk_fields
from ledger.model.schema import Schema
from ledger.model.type_json import TypeJson, type_from_wire
from ledger.model.type_text import format_type
from ledger.model.types import ArrayType, DataType, MapType, RowType

Cell = tuple[Any, ...]
ROOT = -1


def cell_name(cell: Cell) -> str:
    """Return a cell's name for people: `column 4 name`, `option bucket`, `tag v1`."""
    return " ".join(str(each) for each in cell)


def _typed(data_type: TypeJson) -> str:
    """Return a type's SQL text, which leaves ids out: two writers give out different ones."""
    return format_type(type_from_wire(data_type))


def _owner(parent: int | UnsetType) -> int:
    return ROOT if isinstance(parent, UnsetType) else parent


def sets(  # noqa: C901, PLR0912, PLR0915 - one case an event
    event: TableEvent,
) -> Iterator[tuple[Cell, Any]]:
    """Yield the cells that an event sets, with their values."""
    # What comes most often stands first.
    match event:
        case SnapshotCommitted() | RolledBack():
            yield ("snapshots",), event.snapshot_id
        case ColumnAdded(parent_id=parent):
            column = (_typed(event.data_type), event.comment, event.move, event.default_value)
            yield ("name", _owner(parent), event.field_names[-1]), column
        case SetOption(key=key, value=value):
            yield ("option", key), value
        case RemoveOption(key=key):
            yield ("option", key), None
        case UpdateComment(comment=comment):
            yield ("comment",), comment
        case ColumnRenamed(parent_id=parent):
            yield ("column", event.field_id, "name"), event.new_name
            yield ("name", _owner(parent), event.new_name), event.field_id
        case ColumnTypeUpdated():
            wanted = type_from_wire(event.new_data_type)
            bare = wanted.with_nullability(nullable=True)
            yield ("column", event.field_id, "type"), format_type(bare)
            if not event.keep_nullability:
                yield ("column", event.field_id, "nullability"), wanted.nullable
        case ColumnNullabilityUpdated():
            yield ("column", event.field_id, "nullability"), event.new_nullability
        case ColumnCommentUpdated():
            yield ("column", event.field_id, "comment"), event.new_comment
        case ColumnDefaultValueUpdated():
            yield ("column", event.field_id, "default"), event.new_default_value
        case ColumnMoved():
            reference = event.reference_id
            place = None if isinstance(reference, UnsetType) else reference
            yield ("column", event.field_id, "position"), (event.move.type, place)
        case ColumnDropped():
            yield ("column", event.field_id, "exists"), False
        case DropPrimaryKey():
            yield ("primaryKey",), ()
        case UpdateKeys():
            yield ("primaryKey",), event.primary_keys
            yield ("partitionKeys",), event.partition_keys
        case IdentifierFieldsSet():
            yield ("identifierFields",), event.field_ids
        case PartitionSpecUpdated():
            layout = tuple((each.source_id, each.transform, each.name) for each in event.fields)
            yield ("partitionSpec",), (event.set_default, *layout)
        case SortOrderReplaced():
            order = (
                (each.source_id, each.transform, each.direction, each.null_order)
                for each in event.fields
            )
            yield ("sortOrder",), tuple(order)
        case TagCreated() | TagReplaced():
            yield ("tag", event.tag_name), (event.snapshot_id, event.time_retained_millis)
        case TagDeleted():
            yield ("tag", event.tag_name), None
        case SnapshotsExpired():
            yield ("earliestSnapshot",), event.earliest_snapshot_id
        case PartitionStatisticsSet():
            file = (event.statistics_path, event.file_size_in_bytes)
            yield ("partitionStatistics", event.snapshot_id), file
        case TableDropped() | TableCreated():
            yield ("table",), "dropped" if isinstance(event, TableDropped) else "created"
        case ClockCorrected():
            yield ("clock",), event.true_time_millis
        case _:
            assert_never(event)


def is_taken(cell: Cell, schema: Schema) -> bool:
    """Return whether the name that a `name` cell is about is a column's, or a member's, now."""
    _, owner, name = cell
    if owner == ROOT:
        return name in schema.names
    around = next((each for each in walk_fields(schema.fields) if each.id == owner), None)
    return around is not None and name in _members(around.type)


def _members(data_type: DataType) -> Iterator[str]:
    """Yield the names of a ROW's members, through the lists and maps around it."""
    match data_type:
        case RowType(fields=fields):
            yield from (each.name for each in fields)
        case ArrayType(element=inner) | MapType(value=inner):
            yield from _members(inner)
        case _:
            return


def claims(event: TableEvent) -> Iterator[tuple[Cell, Any]]:
    """Yield the cells that must not have been set to another value meanwhile.

    They are those that the event sets; but an append claims nothing, since it lands on whatever it
    meets, an expiry only moves a bound forward, a rollback claims that no snapshot came, and a
    layout claims that its columns are there.
    """
    match event:
        case SnapshotCommitted() | TableDropped() | SnapshotsExpired():
            return
        case RolledBack():
            yield ("snapshots",), event.snapshot_id - 1
        case PartitionSpecUpdated() | SortOrderReplaced():
            yield from sets(event)
            for each in event.fields:
                yield ("column", each.source_id, "exists"), True
        case _:
            yield from sets(event)


def existence(anchor: Anchor) -> Iterator[tuple[Cell, Any]]:
    """Yield that the columns exist which a change goes through, acts on, refers to or names."""
    for field_id in (*anchor.ids, anchor.reference_id, *anchor.named):
        if field_id is not None:
            yield ("column", field_id, "exists"), True
