"""Rows of schemas: every column at every schema version, nested ones included."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from attrs import frozen

from ledger.events import SchemaEvent
from ledger.model.schema import Schema
from ledger.model.types import ArrayType, DataField, DataType, MapType, MultisetType, RowType
from ledger.model.types.text import format_type
from projections.source.views.batches import Row
from projections.source.views.column import Column
from projections.source.views.log_rows import PLACE, place
from projections.source.views.scan import Scan

COLUMNS = (
    *PLACE,
    Column("schema_id", "bigint", "the schema that the transaction made"),
    Column("position", "int", "where the column stands in the schema, each before its members"),
    Column("field_id", "int", "the column's id, which no other column ever gets"),
    Column("parent_id", "int", "id of the named column around it", nullable=True),
    Column("field_names", "array<string>", "its path; through lists and maps by element, value"),
    Column("name", "string", "the last part of its path"),
    Column("type", "string", "its type, as the DLF metadata API writes it"),
    Column("is_nullable", "boolean", "whether it may hold NULL"),
    Column("description", "string", "its comment", nullable=True),
    Column("default_value", "string", "its default, as text", nullable=True),
    Column("is_partition_key", "boolean", "whether it partitions the table"),
    Column("is_primary_key", "boolean", "whether it is part of the primary key"),
)


@frozen
class PlacedColumn:
    """A column with its path and the id of the named column around it."""

    field: DataField
    path: tuple[str, ...]
    parent_id: int | None


def column_rows(scan: Scan) -> Iterator[Row]:
    """Yield the rows of `COLUMNS` for every schema that the span made."""
    for step, builder in scan.folded():
        events = step.transaction.events
        if not step.commit.version or any(isinstance(each, SchemaEvent) for each in events):
            here = place(step)
            yield from ((*here, *row) for row in schema_rows(builder.freeze().schema))


def schema_rows(schema: Schema) -> Iterator[Row]:
    """Yield one row for every column of a schema, without the place."""
    for position, each in enumerate(walk(schema.fields)):
        field = each.field
        is_column = len(each.path) == 1
        yield (
            schema.id,
            position,
            field.id,
            each.parent_id,
            each.path,
            field.name,
            format_type(field.type),
            field.type.nullable,
            field.description,
            field.default_value,
            is_column and field.name in schema.partition_keys,
            is_column and field.name in schema.primary_keys,
        )


def walk(
    fields: Iterable[DataField], path: tuple[str, ...] = (), parent_id: int | None = None
) -> Iterator[PlacedColumn]:
    """Yield every named field, each before those inside it."""
    for each in fields:
        inside = (*path, each.name)
        yield PlacedColumn(each, inside, parent_id)
        yield from _walk_type(each.type, inside, each.id)


def _walk_type(
    data_type: DataType, path: tuple[str, ...], parent_id: int
) -> Iterator[PlacedColumn]:
    match data_type:
        case RowType(fields=fields):
            yield from walk(fields, path, parent_id)
        case ArrayType(element=inner) | MultisetType(element=inner):
            yield from _walk_type(inner, (*path, "element"), parent_id)
        case MapType(key=key, value=value):
            yield from _walk_type(key, (*path, "key"), parent_id)
            yield from _walk_type(value, (*path, "value"), parent_id)
        case _:
            return
