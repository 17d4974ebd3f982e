"""Deciding changes of a column's type and nullability."""

from __future__ import annotations

from ledger.events.schema_changes import UpdateColumnNullability, UpdateColumnType
from ledger.events.schema_events import ColumnNullabilityUpdated, ColumnTypeUpdated
from ledger.evolution.columns.anchor import Anchor
from ledger.evolution.columns.directives import is_blob
from ledger.evolution.columns.draft import Draft
from ledger.evolution.columns.editing import check_default
from ledger.evolution.columns.guards import (
    check_not_index_column,
    check_not_partition_key,
    check_not_primary_key,
)
from ledger.evolution.refusals import argument, state, unsupported
from ledger.evolution.tree.paths import dotted, edit_type, locate, with_type
from ledger.model.types import ArrayType, DataType, MapType
from ledger.model.types.casting import can_alter, can_promote
from ledger.model.types.text import format_type
from ledger.model.types.wire import type_from_wire, type_to_wire


def decide_type(draft: Draft, change: UpdateColumnType) -> Anchor:
    """Change a type along Paimon's cast tables, or Iceberg's promotions; the id stays.

    Raises:
        InvalidChangeError: Under Paimon keys, index columns and BLOBs keep their types; the cast
            is not allowed or has no implementation; the default cannot be read as the new type.
        ColumnNotFoundError: There is no such column.
    """
    path = change.field_names
    target = type_from_wire(change.new_data_type)
    if draft.rules.paimon:
        _check_paimon_keeps(draft, path, target)
    column = draft.working.column(path)
    place = locate(column, path)
    if draft.rules.paimon and len(path) == 1 and path[0] in draft.working.primary_keys:
        raise unsupported(f"primary-key column {path[0]} cannot be re-typed, renamed or not")
    if change.keep_nullability:
        target = target.with_nullability(place.type.nullable)
    else:
        _check_nullability(draft, path, place.type, is_nullable=target.nullable)
    _check_cast(draft, path, place.type, target)
    retyped = with_type(column, edit_type(column.type, path, lambda _: target))
    check_default(path, place.owner.default_value, locate(retyped, path).owner.type)
    for inner, wanted in _recorded(draft, path, place.type, target):
        draft.record(
            ColumnTypeUpdated(
                field_names=inner,
                new_data_type=type_to_wire(wanted),
                keep_nullability=change.keep_nullability,
                field_id=place.owner.id,
            )
        )
    return Anchor(place.ids)


def _recorded(
    draft: Draft, path: tuple[str, ...], source: DataType, target: DataType
) -> list[tuple[tuple[str, ...], DataType]]:
    """Return the places that get another type: where Iceberg counts ids, those without members.

    A list or map written anew would have other ids than before, so only what it holds is.
    """
    if draft.working.field_id_policy == "paimon" or not target.depth:
        return [(path, target)]
    if source.nullable != target.nullable:
        raise argument(
            f"column {dotted(path)} is {source.root}: change whether it may be NULL on its own"
        )
    match source, target:
        case ArrayType(element=before), ArrayType(element=after):
            return _recorded(draft, (*path, "element"), before, after)
        case MapType(key=key, value=before), MapType(key=same, value=after) if key == same:
            return _recorded(draft, (*path, "value"), before, after)
        case _:
            raise argument(
                f"column {dotted(path)} is {source.root}: change its members one by one, "
                "so that they keep their ids"
            )


def _check_paimon_keeps(draft: Draft, path: tuple[str, ...], target: DataType) -> None:
    check_not_partition_key(draft, path, "re-typed")
    check_not_primary_key(draft, path, "re-typed")
    check_not_index_column(draft, path, "re-typed")
    if len(path) != 1 or path[0] not in draft.working.names:
        return
    source = draft.working.column(path).type
    if is_blob(source) or is_blob(target):
        raise unsupported(f"column {path[0]}: no type becomes a BLOB, or stops being one")


def _check_cast(draft: Draft, path: tuple[str, ...], source: DataType, target: DataType) -> None:
    if not draft.rules.paimon:
        version = draft.rules.format_version
        if draft.rules.only_promotes and not can_promote(source, target, format_version=version):
            raise state(
                f"column {dotted(path)}: {_described(source)} cannot become {_described(target)}; "
                f"Iceberg {version} reads old files through the new type and casts nothing"
            )
        return
    explicit_allowed = not draft.old_options.is_true("disable-explicit-type-casting")
    if can_alter(source, target, explicit_allowed=explicit_allowed):
        return
    if source.with_nullability(nullable=target.nullable) == target:
        raise state(
            f"column {dotted(path)} is {_described(source)} already, and Paimon converts no "
            f"{source.root} to itself; leave this change out, and change by itself whether it may "
            "be NULL"
        )
    if source.depth and source.root == target.root:
        raise state(
            f"column {dotted(path)}: a {source.root} is not converted as a whole; change what is "
            "inside it by its path"
        )
    raise state(
        f"column {dotted(path)}: {_described(source)} cannot be converted to "
        f"{_described(target)} without losing information"
    )


def _described(data_type: DataType) -> str:
    return data_type.root if data_type.depth else format_type(data_type)


def decide_nullability(draft: Draft, change: UpdateColumnNullability) -> Anchor:
    """Allow NULL in a column, or forbid it where the table's flag or the request lets that happen.

    Raises:
        InvalidChangeError: UNSUPPORTED: a primary-key column, or older rows may hold NULL.
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
    if is_nullable or not source.nullable:
        return
    if not draft.rules.paimon:
        if not draft.rules.allow_incompatible:
            raise unsupported(
                f"column {dotted(path)} may hold NULL already; allow incompatible changes to make "
                "it NOT NULL"
            )
        return
    option = "alter-column-null-to-not-null.disabled"
    if draft.old_options.is_true(option, default=True):
        raise unsupported(
            f"column {dotted(path)} may hold NULL already; set {option}=false to make it NOT NULL"
        )
