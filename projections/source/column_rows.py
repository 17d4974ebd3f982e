"""Rows of the view `columns`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from attrs import frozen

from ledger.events import SchemaEvent
from ledger.model.schema import Schema
from ledger.model.types import ArrayType, DataField, DataType, MapType, MultisetType, RowType
from ledger.model.types.text import format_type
from projections.source.columns import Column
from projections.source.commit_rows import PLACE, place
from projections.source.row_batches import Row
from projections.source.span_reading import LogScan

COLUMNS = (
    *PLACE,
    Column("schema_id", "bigint", "the schema that the transaction created"),
    Column("position", "int", "the column's position in the schema, each before its members"),
    Column("field_id", "int", "the column's id, never reused"),
    Column("parent_id", "int", "id of the enclosing named column", nullable=True),
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
    """A column with its path and the id of the enclosing named column."""

    field: DataField
    path: tuple[str, ...]
    parent_id: int | None


def column_rows(scan: LogScan) -> Iterator[Row]:
    """Yield the rows of `COLUMNS` for every schema that the span created."""
    for step, builder in scan.folded():
        events = step.transaction.events
        if not step.commit.version or any(isinstance(each, SchemaEvent) for each in events):
            here = place(step)
            yield from ((*here, *row) for row in schema_rows(builder.freeze().schema))


def schema_rows(schema: Schema) -> Iterator[Row]:
    """Yield one row for every column of a schema, without `PLACE`."""
    for position, each in enumerate(walk_fields(schema.fields)):
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


def walk_fields(
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
            yield from walk_fields(fields, path, parent_id)
        case ArrayType(element=inner) | MultisetType(element=inner):
            yield from _walk_type(inner, (*path, "element"), parent_id)
        case MapType(key=key, value=value):
            yield from _walk_type(key, (*path, "key"), parent_id)
            yield from _walk_type(value, (*path, "value"), parent_id)
        case _:
            return
