"""Deciding changes of a column's type and nullability."""

from __future__ import annotations

from ledger.events.schema_changes import UpdateColumnNullability, UpdateColumnType
from ledger.events.schema_events import ColumnNullabilityUpdated, ColumnTypeUpdated
from ledger.evolution.anchor import Anchor
from ledger.evolution.column_guards import (
    check_not_index_column,
    check_not_partition_key,
    check_not_primary_key,
)
from ledger.evolution.decide_columns import check_default
from ledger.evolution.directives import is_blob
from ledger.evolution.draft import Draft
from ledger.evolution.refusals import state, unsupported
from ledger.evolution.schema_paths import dotted, edit_type, locate, with_type
from ledger.model.casts import can_alter
from ledger.model.type_json import type_from_wire, type_to_wire
from ledger.model.type_text import format_type
from ledger.model.types import DataType


def decide_type(draft: Draft, change: UpdateColumnType) -> Anchor:
    """Change a type along the cast tables; the id stays.

    Raises:
        InvalidChangeError: Keys, index columns and BLOBs keep their types; the cast is not
            allowed or has no implementation; the default cannot be read as the new type.
        ColumnNotFoundError: There is no such column.
    """
    path = change.field_names
    target = type_from_wire(change.new_data_type)
    check_not_partition_key(draft, path, "re-typed")
    check_not_primary_key(draft, path, "re-typed")
    check_not_index_column(draft, path, "re-typed")
    _check_not_blob(draft, path, target)
    column = draft.working.column(path)
    place = locate(column, path)
    if len(path) == 1 and path[0] in draft.working.primary_keys:
        raise unsupported(f"primary-key column {path[0]} cannot be re-typed, renamed or not")
    if change.keep_nullability:
        target = target.with_nullability(place.type.nullable)
    else:
        _check_nullability(draft, path, place.type, is_nullable=target.nullable)
    _check_cast(draft, path, place.type, target)
    retyped = with_type(column, edit_type(column.type, path, lambda _: target))
    check_default(path, place.owner.default_value, locate(retyped, path).owner.type)
    draft.record(
        ColumnTypeUpdated(
            field_names=path,
            new_data_type=type_to_wire(target),
            keep_nullability=change.keep_nullability,
            field_id=place.owner.id,
        )
    )
    return Anchor(place.ids)


def _check_not_blob(draft: Draft, path: tuple[str, ...], target: DataType) -> None:
    if len(path) != 1 or path[0] not in draft.working.names:
        return
    source = draft.working.column(path).type
    if is_blob(source) or is_blob(target):
        raise unsupported(f"column {path[0]}: no type becomes a BLOB, or stops being one")


def _check_cast(draft: Draft, path: tuple[str, ...], source: DataType, target: DataType) -> None:
    explicit_allowed = not draft.old_options.is_true("disable-explicit-type-casting")
    if not can_alter(source, target, explicit_allowed=explicit_allowed):
        raise state(
            f"column {dotted(path)}: {_described(source)} cannot be converted to "
            f"{_described(target)} without losing information"
        )


def _described(data_type: DataType) -> str:
    return data_type.root if data_type.depth else format_type(data_type)


def decide_nullability(draft: Draft, change: UpdateColumnNullability) -> Anchor:
    """Allow NULL in a column, or forbid it where the table's flag lets that happen.

    Raises:
        InvalidChangeError: UNSUPPORTED: a primary-key column, or the flag is not set.
        ColumnNotFoundError: There is no such column.
    """
    path = change.field_names
    if change.new_nullability:
        check_not_primary_key(draft, path, "made nullable")
    place = locate(draft.working.column(path), path)
    _check_nullability(draft, path, place.type, is_nullable=change.new_nullability)
    draft.record(
        ColumnNullabilityUpdated(
            field_names=path, new_nullability=change.new_nullability, field_id=place.owner.id
        )
    )
    return Anchor(place.ids)


def _check_nullability(
    draft: Draft, path: tuple[str, ...], source: DataType, *, is_nullable: bool
) -> None:
    option = "alter-column-null-to-not-null.disabled"
    if source.nullable and not is_nullable and draft.old_options.is_true(option, default=True):
        raise unsupported(
            f"column {dotted(path)} may hold NULL already; set {option}=false to make it NOT NULL"
        )
