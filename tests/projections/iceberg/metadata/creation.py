"""A new table: fresh ids for its columns, and the updates that create it.

Source: Java's TypeUtil.assignFreshIds and TableMetadata.newTableMetadata.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import count
from typing import TypeVar

import msgspec
from attrs import evolve, field, frozen

from ledger import InvalidInputError
from ledger.model import PartitionField, PartitionSpec, SortField, SortOrder
from ledger.model.iceberg_layout import NO_ID, UNSORTED_ID, number_partition_fields
from projections.iceberg import rest_updates as updates
from projections.iceberg.metadata_schema import ListType, MapType, Schema, StructType, Type

_Field = TypeVar("_Field", PartitionField, SortField)


@frozen(kw_only=True)
class NewTable:
    """The first state of a table; its ids connect its parts and are assigned anew."""

    uuid: str
    location: str
    schema: Schema
    spec: PartitionSpec = field(factory=lambda: PartitionSpec(0))
    sort_order: SortOrder = field(factory=lambda: SortOrder(UNSORTED_ID))
    properties: Mapping[str, str] = field(factory=dict)
    format_version: int = 2


def with_fresh_ids(schema: Schema, first_id: int = 1) -> Schema:
    """Return a schema whose fields are numbered anew.

    The fields of one struct get consecutive ids before anything inside of them.

    Example:
        >>> from projections.iceberg.schema_json import schema_from_json
        >>> inner = {"type": "struct", "fields": [
        ...     {"id": 9, "name": "x", "type": "int", "required": True}]}
        >>> schema = schema_from_json({"type": "struct", "fields": [
        ...     {"id": 8, "name": "a", "type": inner, "required": True},
        ...     {"id": 7, "name": "b", "type": "int", "required": True}]})
        >>> {each.name: each.field.id for each in with_fresh_ids(schema).placed_fields}
        {'a': 1, 'a.x': 3, 'b': 2}
    """
    fresh = Schema(schema.schema_id, _struct(schema.struct, count(first_id)).fields)
    identifiers = [_fresh_id(each, schema, fresh) for each in schema.identifier_field_ids]
    return evolve(fresh, identifier_field_ids=identifiers)


def creating(table: NewTable) -> list[updates.TableUpdate]:
    """Return the updates that create a table, in the order in which REST clients send them.

    Columns, partition fields and ids of the parts are numbered anew; sources follow by name.

    Raises:
        InvalidInputError: A source is not in the schema.

    Example:
        >>> table = NewTable(uuid="u", location="l", schema=Schema(0, ()), properties={"a": "b"})
        >>> creating(table)[-1].updates, type(creating(evolve(table, properties={}))[-1]).__name__
        ({'a': 'b'}, 'SetLocation')
    """
    schema = evolve(with_fresh_ids(table.schema), schema_id=0)
    fields = tuple(_pointed(each, table.schema, schema) for each in table.spec.fields)
    order = tuple(_pointed(each, table.schema, schema) for each in table.sort_order.fields)
    begun: list[updates.TableUpdate] = [
        updates.AssignUuid(uuid=table.uuid),
        updates.UpgradeFormatVersion(format_version=table.format_version),
        updates.AddSchema(schema=schema),
        updates.SetCurrentSchema(schema_id=NO_ID),
        updates.AddSpec(spec=PartitionSpec(0, number_partition_fields(fields))),
        updates.SetDefaultSpec(spec_id=NO_ID),
        updates.AddSortOrder(sort_order=SortOrder(1 if order else UNSORTED_ID, order)),
        updates.SetDefaultSortOrder(sort_order_id=NO_ID),
        updates.SetLocation(location=table.location),
    ]
    if table.properties:
        begun.append(updates.SetProperties(updates=table.properties))
    return begun


def _renumbered(kind: Type, ids: Iterator[int]) -> Type:
    match kind:
        case StructType():
            return _struct(kind, ids)
        case ListType():
            number = next(ids)
            return evolve(kind, element_id=number, element=_renumbered(kind.element, ids))
        case MapType():
            key_id, value_id = next(ids), next(ids)
            key = _renumbered(kind.key, ids)
            value = _renumbered(kind.value, ids)
            return evolve(kind, key_id=key_id, key=key, value_id=value_id, value=value)
        case _:
            return kind


def _struct(kind: StructType, ids: Iterator[int]) -> StructType:
    own = [next(ids) for _ in kind.fields]
    return StructType(
        tuple(
            evolve(each, id=number, type=_renumbered(each.type, ids))
            for each, number in zip(kind.fields, own, strict=True)
        )
    )


def _fresh_id(field_id: int, before: Schema, after: Schema) -> int:
    name = before.name_of(field_id)
    found = after.find(name) if name is not None else None
    if found is None:
        raise InvalidInputError(f"field {field_id} is not in the schema of the new table")
    return found.id


def _pointed(each: _Field, before: Schema, after: Schema) -> _Field:
    if each.source_ids:
        sources = tuple(_fresh_id(source, before, after) for source in each.source_ids)
        return msgspec.structs.replace(each, source_ids=sources)
    return msgspec.structs.replace(each, source_id=_fresh_id(each.source_id, before, after))
