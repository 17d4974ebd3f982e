"""Rebase of columns that an engine adds to a schema which another engine has changed meanwhile.

A request that adds columns holds the whole schema as its engine saw it. Where it differs from that
schema by additions alone, they are added to the current schema instead, under the next free ids:
two engines that add different columns are both committed. A request that requires the last assigned
field id relies on its own ids, and is never rebased.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Final

from attrs import evolve

import projections.iceberg.rest_updates as u
from ledger.model.iceberg_layout import NO_ID
from projections.iceberg.creation_updates import numbered_type
from projections.iceberg.metadata_schema import (
    ListType,
    MapType,
    NestedField,
    Schema,
    StructType,
    Type,
)
from projections.iceberg.rest_updates import TableRequirement, TableUpdate
from projections.iceberg.table_metadata import TableMetadata

NAME_MAPPING: Final = "schema.name-mapping.default"

Request = tuple[Sequence[TableRequirement], Sequence[TableUpdate]]
"""The requirements and updates of a request."""


class _OtherChange(Exception):  # noqa: N818 - never leaves this module
    """The engine did not only add columns, or another engine changed what they are beside."""


def rebase_added_columns(
    before: TableMetadata, required: Sequence[TableRequirement], batch: Sequence[TableUpdate]
) -> Request:
    """Return a request whose added columns are added to the current schema.

    It is returned as it is where the schema has not changed, or another rule forbids it; then its
    requirement on the current schema does not hold.

    Args:
        before: The table's metadata.
        required: The requirements.
        batch: The updates.
    """
    seen = next((each for each in required if isinstance(each, u.AssertCurrentSchemaId)), None)
    if seen is None or seen.current_schema_id == before.current_schema_id:
        return required, batch
    old = before.schemas_by_id.get(seen.current_schema_id)
    wanted = _only_new_schema(batch)
    if old is None or wanted is None or _relies_on_ids(required):
        return required, batch
    try:
        merged = _merged_schema(old, wanted, before.schema, before.last_column_id)
    except _OtherChange:
        return required, batch
    return (
        [each for each in required if each is not seen],
        [u.AddSchema(schema=merged) if isinstance(each, u.AddSchema) else each for each in batch],
    )


def _only_new_schema(batch: Sequence[TableUpdate]) -> Schema | None:
    """Return the schema that a batch adds and makes current; None if it does more with schemas."""
    of_schemas = [each for each in batch if isinstance(each, u.AddSchema | u.SetCurrentSchema)]
    others = [each for each in batch if each not in of_schemas]
    match of_schemas:
        # Any other id would name another schema once the added one has got its own.
        case [u.AddSchema(schema=added), u.SetCurrentSchema(schema_id=number)] if number == NO_ID:
            is_alone = all(
                isinstance(each, u.SetProperties) and NAME_MAPPING not in each.updates
                for each in others
            )
            return added if is_alone else None
        case _:
            return None


def _relies_on_ids(required: Sequence[TableRequirement]) -> bool:
    return any(isinstance(each, u.AssertLastAssignedFieldId) for each in required)


def _merged_schema(old: Schema, wanted: Schema, now: Schema, last_column_id: int) -> Schema:
    """Return the current schema with the columns that another one has added to an older one."""
    if old.identifier_field_ids != wanted.identifier_field_ids:
        raise _OtherChange
    numbers = itertools.count(last_column_id + 1)
    return evolve(now, fields=_merged_fields(old.fields, wanted.fields, now.fields, numbers))


def _merged_fields(
    old: tuple[NestedField, ...],
    wanted: tuple[NestedField, ...],
    now: tuple[NestedField, ...],
    numbers: Iterator[int],
) -> tuple[NestedField, ...]:
    had = {each.id: each for each in old}
    if [each.id for each in wanted if each.id in had] != list(had):
        raise _OtherChange
    merged = list(now)
    last_kept = max((place for place, each in enumerate(wanted) if each.id in had), default=-1)
    previous: int | None = None
    for position, each in enumerate(wanted):
        if each.id not in had:
            if any(there.name == each.name for there in merged):
                raise _OtherChange
            added = evolve(each, id=next(numbers), type=numbered_type(each.type, numbers))
            # One that was appended comes after those that the other engine has appended.
            place = len(merged) if position > last_kept else _place_behind(merged, previous)
            merged.insert(place, added)
            previous = added.id
            continue
        previous = each.id
        if each != had[each.id]:
            place = _place_behind(merged, each.id) - 1
            if place < 0 or merged[place].id != each.id:
                raise _OtherChange
            merged[place] = _merged_field(had[each.id], each, merged[place], numbers)
    return tuple(merged)


def _place_behind(fields: list[NestedField], field_id: int | None) -> int:
    """Return the place behind a field; the first one without a field, the last if it is gone."""
    places = (place for place, each in enumerate(fields, 1) if each.id == field_id)
    return 0 if field_id is None else next(places, len(fields))


def _merged_field(
    old: NestedField, wanted: NestedField, now: NestedField, numbers: Iterator[int]
) -> NestedField:
    if evolve(wanted, type=old.type) != old:
        raise _OtherChange
    return evolve(now, type=_merged_type(old.type, wanted.type, now.type, numbers))


def _merged_type(old: Type, wanted: Type, now: Type, numbers: Iterator[int]) -> Type:
    if old == wanted:
        return now
    match old, wanted, now:
        case StructType(), StructType(), StructType():
            return StructType(_merged_fields(old.fields, wanted.fields, now.fields, numbers))
        case ListType(), ListType(), ListType():
            if evolve(wanted, element=old.element) != old:
                raise _OtherChange
            element = _merged_type(old.element, wanted.element, now.element, numbers)
            return evolve(now, element=element)
        case MapType(), MapType(), MapType():
            if evolve(wanted, value=old.value) != old:
                raise _OtherChange
            value = _merged_type(old.value, wanted.value, now.value, numbers)
            return evolve(now, value=value)
        case _:
            raise _OtherChange
