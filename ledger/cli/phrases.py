"""What happened, in words: one phrase an event."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from ledger.cli.screen import moment, size
from ledger.events import catalog_events as c
from ledger.events import schema_changes as s
from ledger.events import snapshot_events as n
from ledger.events import spec_events as p
from ledger.events import table_events as t
from ledger.events.clock_events import ClockCorrected
from ledger.events.commit import Commit, Transaction
from ledger.events.schema_events import UpdateKeys
from ledger.events.statistics_events import PartitionStatisticsSet
from ledger.model.path_text import shown_path
from ledger.model.type_json import TypeJson, type_from_wire
from ledger.model.type_text import format_type


def phrases(transaction: Transaction[Any]) -> list[str]:
    """Return what a transaction did, one phrase an event."""
    if not transaction.events:
        return ["nothing: all that was asked held already"]
    return [phrase(each) for each in transaction.events]


def phrase(event: object) -> str:
    """Return what one event says.

    Example:
        >>> from ledger.events.schema_events import ColumnRenamed
        >>> phrase(ColumnRenamed(("addr",), "address", field_id=4))
        'renamed column addr to address (id 4)'
    """
    # An event is found by the change that it derives from.
    say = next((_SAYINGS[kind] for kind in type(event).__mro__ if kind in _SAYINGS), None)
    return type(event).__name__ if say is None else say(event)


def _nullability(event: s.UpdateColumnNullability) -> str:
    return f"{'allowed' if event.new_nullability else 'forbade'} NULL in {_column(event)}"


def _comment(event: s.UpdateColumnComment) -> str:
    said = "removed the comment of" if event.new_comment is None else "commented"
    return f"{said} {_column(event)}"


def _default(event: s.UpdateColumnDefaultValue) -> str:
    if event.new_default_value is None:
        return f"removed the default of {_column(event)}"
    return f"set the default of {_column(event)} to {event.new_default_value}"


def _move(event: s.UpdateColumnPosition) -> str:
    path = shown_path(event.field_names or (event.move.field_name,))
    place = [event.move.type.lower(), event.move.reference_field_name or ""]
    return f"moved column {path} {' '.join(place).strip()}{_id(event)}"


def _rollback(event: n.RolledBack) -> str:
    tag = "" if event.target_tag_name is UNSET else f" (tag {event.target_tag_name})"
    return (
        f"snapshot {event.snapshot_id}: rolled back to snapshot {event.target_snapshot_id}{tag}, "
        f"{_difference(event)}"
    )


def _keys(event: UpdateKeys) -> str:
    keys = f"partition keys to {list(event.partition_keys)}"
    return f"set the {keys}, the primary keys to {list(event.primary_keys)}"


def _identifiers(event: s.SetIdentifierFields) -> str:
    return f"set the identifier fields to {[shown_path(each) for each in event.field_names]}"


def _spec(event: p.PartitionSpecUpdated) -> str:
    fields = ", ".join(f"{each.name}={each.transform}" for each in event.fields)
    said = "files are partitioned by" if event.set_default else "added"
    return f"{said} partition spec {event.spec_id}: {fields or 'unpartitioned'}"


def _order(event: p.SortOrderReplaced) -> str:
    fields = ", ".join(
        f"{shown_path(each.source)} {each.direction}"
        if each.transform == "identity"
        else f"{each.transform} of {shown_path(each.source)} {each.direction}"
        for each in event.columns
    )
    return f"files are sorted by order {event.order_id}: {fields or 'unsorted'}"


def _renamed(what: str, event: t.TableRenamed | c.ViewRenamed) -> str:
    return f"renamed {what} {_name(event.source)} to {_name(event.destination)}"


_SAYINGS: dict[type, Callable[[Any], str]] = {
    s.AddColumn: lambda it: f"added column {_path(it)} {_type(it.data_type)}{_id(it)}",
    s.RenameColumn: lambda it: f"renamed column {_path(it)} to {it.new_name}{_id(it)}",
    s.DropColumn: lambda it: f"dropped {_column(it)}",
    s.UpdateColumnType: lambda it: f"changed {_column(it)} to {_type(it.new_data_type)}",
    s.UpdateColumnNullability: _nullability,
    s.UpdateColumnComment: _comment,
    s.UpdateColumnDefaultValue: _default,
    s.UpdateColumnPosition: _move,
    s.SetOption: lambda it: f"set option {it.key} to {it.value}",
    s.RemoveOption: lambda it: f"removed option {it.key}",
    s.UpdateComment: lambda it: (
        f"{'removed' if it.comment is None else 'changed'} the table's comment"
    ),
    s.DropPrimaryKey: lambda _: "dropped the primary key",
    UpdateKeys: _keys,
    s.SetIdentifierFields: _identifiers,
    p.PartitionSpecUpdated: _spec,
    p.SortOrderReplaced: _order,
    n.SnapshotCommitted: lambda it: (
        f"snapshot {it.snapshot_id}: {it.commit_kind}, {_difference(it)}"
    ),
    n.RolledBack: _rollback,
    n.TagCreated: lambda it: f"tagged snapshot {it.snapshot_id} as {it.tag_name}",
    n.TagReplaced: lambda it: f"moved tag {it.tag_name} to snapshot {it.snapshot_id}",
    n.TagDeleted: lambda it: f"deleted tag {it.tag_name}",
    n.SnapshotsExpired: lambda it: f"expired the snapshots before {it.earliest_snapshot_id}",
    PartitionStatisticsSet: lambda it: (
        f"published partition statistics of snapshot {it.snapshot_id}"
    ),
    t.TableCreated: lambda it: (
        f"created table {_name(it.identifier)} with {len(it.schema.fields)} columns"
    ),
    t.TableDropped: lambda it: f"dropped table {_name(it.identifier)}",
    t.TableRenamed: partial(_renamed, "table"),
    c.DatabaseCreated: lambda it: f"created database {it.name}",
    c.DatabaseAltered: lambda it: f"changed options of database {it.name}",
    c.DatabaseDropped: lambda it: f"dropped database {it.name}",
    c.ViewCreated: lambda it: f"created view {_name(it.identifier)}",
    c.ViewAltered: lambda it: f"changed view {_name(it.identifier)}",
    c.ViewRenamed: partial(_renamed, "view"),
    c.ViewDropped: lambda it: f"dropped view {_name(it.identifier)}",
    c.LedgerUpgraded: lambda it: f"opened the ledger to format {it.format}",
    ClockCorrected: lambda it: (
        f"corrected the clock: the commits from version {it.first_version} on took effect by "
        f"{moment(it.true_time_millis)}"
    ),
}


def _column(event: object) -> str:
    return f"column {_path(event)}{_id(event)}"


def _path(event: object) -> str:
    names: Sequence[str] = getattr(event, "field_names", ())
    return shown_path(tuple(names))


def _id(event: object) -> str:
    field_id = getattr(event, "field_id", None)
    return "" if field_id is None else f" (id {field_id})"


def _type(wire: TypeJson) -> str:
    return format_type(type_from_wire(wire))


def _difference(event: n.SnapshotFacts) -> str:
    rows, files = event.delta_record_count, event.delta_file_count
    changed = f"{rows:+,} rows, {files:+,} {'file' if abs(files) == 1 else 'files'}"
    return f"{changed}, {_signed_size(event.delta_file_size_in_bytes)}"


def _signed_size(count: int) -> str:
    return f"{'-' if count < 0 else '+'}{size(abs(count))}"


def _name(name: t.TableName) -> str:
    return f"{name.database_name}.{name.table_name}"


def when(commit: Commit[Any], transaction: Transaction[Any]) -> int:
    """Return when a transaction happened: its effective time if it has one, Unix milliseconds."""
    effective = transaction.effective_time_millis
    return commit.time_millis if isinstance(effective, UnsetType) else effective


def plain(record: object) -> Any:
    """Return a record of the log as plain JSON, without the lists of files in it."""
    return _without_files(json.loads(msgspec.json.encode(record)))


def _without_files(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_files(each) for each in value]
    if isinstance(value, dict):
        return {
            key: _without_files(each)
            for key, each in value.items()
            if not (key == "files" and "snapshotId" in value)
        }
    return value
