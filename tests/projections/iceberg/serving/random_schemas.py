"""Random schemas with nested columns, changes of them, and partition specs and sort orders."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from attrs import evolve

from ledger import LedgerError
from ledger.model import PartitionField, PartitionSpec, SortField, SortOrder
from projections.iceberg import TableMetadata
from projections.iceberg.metadata_schema import (
    DecimalType,
    FixedType,
    ListType,
    MapType,
    NestedField,
    PlainType,
    Schema,
    StructType,
    Type,
    primitive_type,
)
from projections.iceberg.schema_json import schema_from_json, schema_to_json

NAMES = ("a", "b", "c", "d", "e", "Ä", "x.y", "very long name", "select")
_PLAIN = ("boolean", "int", "long", "float", "double", "date", "time", "timestamp", "timestamptz")
_TYPES = tuple(map(primitive_type, (*_PLAIN, "string", "uuid", "binary")))
_NEW_TYPES = tuple(map(primitive_type, ("timestamp_ns", "timestamptz_ns", "variant", "unknown")))
_WIDER = {"int": PlainType("long"), "float": PlainType("double")}
_SOURCES = {
    "int": ("identity", "bucket[4]", "truncate[10]", "void"),
    "long": ("identity", "bucket[16]", "truncate[10]", "void"),
    "string": ("identity", "bucket[4]", "truncate[3]", "void"),
    "date": ("identity", "year", "month", "day"),
    "timestamp": ("identity", "year", "month", "day", "hour"),
}


def random_schema(rng: Random, version: int) -> Schema:
    """Return a schema with nested columns, numbered from 1."""
    names = rng.sample(NAMES, rng.randint(1, 4))
    ids = iter(range(1, 500))
    fields = tuple(_column(rng, name, ids, version, depth=2) for name in names)
    return Schema(0, fields)


def _column(rng: Random, name: str, ids: Iterator[int], version: int, depth: int) -> NestedField:
    number, kind = next(ids), _type(rng, ids, version, depth)
    initial = None
    if version >= 3 and kind in {PlainType("int"), PlainType("long")} and rng.random() < 0.4:
        initial = rng.randint(0, 9)
    doc = rng.choice((None, None, "a comment", ""))
    return NestedField(number, name, kind, _is_required(rng, kind), doc, initial, initial)


def _type(rng: Random, ids: Iterator[int], version: int, depth: int) -> Type:
    if depth and rng.random() < 0.3:
        return rng.choice((_struct, _list, _map))(rng, ids, version, depth - 1)
    match rng.randint(0, 9):
        case 0:
            return DecimalType(rng.randint(1, 38), 0)
        case 1:
            return FixedType(rng.randint(1, 16))
        case 2 if version >= 3:
            return rng.choice(_NEW_TYPES)
    return rng.choice(_TYPES)


def _struct(rng: Random, ids: Iterator[int], version: int, depth: int) -> Type:
    names = rng.sample(NAMES, rng.randint(1, 2))
    return StructType(tuple(_column(rng, name, ids, version, depth) for name in names))


def _list(rng: Random, ids: Iterator[int], version: int, depth: int) -> Type:
    number, element = next(ids), _type(rng, ids, version, depth)
    return ListType(number, element, _is_required(rng, element))


def _map(rng: Random, ids: Iterator[int], version: int, depth: int) -> Type:
    key_id, value_id = next(ids), next(ids)
    key, value = _type(rng, ids, 2, depth), _type(rng, ids, version, depth)
    return MapType(key_id, key, value_id, value, _is_required(rng, value))


def _is_required(rng: Random, kind: Type) -> bool:
    return kind != PlainType("unknown") and rng.random() < 0.3


def changed_schema(rng: Random, table: TableMetadata) -> Schema:
    """Return one of a table's schemas after a few changes, under the next free id."""
    base = rng.choice(table.schemas) if rng.random() < 0.3 else table.schema
    ids = iter(range(table.last_column_id + 1, table.last_column_id + 200))
    fields = base.fields
    for _ in range(rng.randint(0, 3)):
        fields = _changed_fields(rng, fields, ids, table)
    number = max(each.schema_id for each in table.schemas) + 1
    keys = (each.id for each in fields if _is_key(each) and rng.random() < 0.3)
    made = Schema(number, fields, tuple(keys))
    try:
        # A column that returns may have ids of its members that another one has now.
        return schema_from_json(schema_to_json(made))
    except LedgerError:
        return table.schema


def _is_key(column: NestedField) -> bool:
    return column.required and column.type in {PlainType("int"), PlainType("string")}


def _changed_fields(  # noqa: PLR0911 - one return per change
    rng: Random, fields: tuple[NestedField, ...], ids: Iterator[int], table: TableMetadata
) -> tuple[NestedField, ...]:
    at = rng.randrange(len(fields)) if fields else 0
    match rng.randint(0, 6):
        case 0:
            return _with_added_column(rng, fields, ids, table)
        case 1 if len(fields) > 1:
            return (*fields[:at], *fields[at + 1 :])
        case 2 if len(fields) > 1:
            return _with_rotated_names(rng, fields)
        case 3:
            return tuple(rng.sample(fields, len(fields)))
        case 4 if fields:
            free = sorted({*NAMES} - {each.name for each in fields})
            return _with_column(fields, at, evolve(fields[at], name=rng.choice(free)))
        case _ if fields:
            return _with_column(fields, at, _changed_column(rng, fields[at], ids, table))
    return fields


def _with_added_column(
    rng: Random, fields: tuple[NestedField, ...], ids: Iterator[int], table: TableMetadata
) -> tuple[NestedField, ...]:
    free = sorted({*NAMES} - {each.name for each in fields})
    dropped = [
        each
        for schema in table.schemas
        for each in schema.fields
        if each.id not in {has.id for has in fields} and each.name in free
    ]
    if dropped and rng.random() < 0.4:
        column = rng.choice(dropped)
    else:
        column = _column(rng, rng.choice(free), ids, table.format_version, depth=1)
    place = rng.randint(0, len(fields))
    return (*fields[:place], column, *fields[place:])


def _with_rotated_names(rng: Random, fields: tuple[NestedField, ...]) -> tuple[NestedField, ...]:
    """Let some columns change names in a circle."""
    count = rng.randint(2, len(fields))
    names = [each.name for each in fields[:count]]
    renamed = zip(fields[:count], [*names[1:], names[0]], strict=True)
    return (*(evolve(each, name=name) for each, name in renamed), *fields[count:])


def _with_column(
    fields: tuple[NestedField, ...], at: int, column: NestedField
) -> tuple[NestedField, ...]:
    return (*fields[:at], column, *fields[at + 1 :])


def _changed_column(  # noqa: PLR0911 - one return per change
    rng: Random, column: NestedField, ids: Iterator[int], table: TableMetadata
) -> NestedField:
    match column.type:
        case StructType(fields=fields) if rng.random() < 0.7:
            return evolve(column, type=StructType(_changed_fields(rng, fields, ids, table)))
        case ListType(element=StructType(fields=fields)) if rng.random() < 0.7:
            changed = StructType(_changed_fields(rng, fields, ids, table))
            return evolve(column, type=evolve(column.type, element=changed))
        case MapType(key=key) if rng.random() < 0.4:
            # No SchemaChange changes the key of a map.
            return evolve(column, type=evolve(column.type, key=_changed_key(key)))
        case PlainType(name=name) if name in _WIDER and rng.random() < 0.5:
            return evolve(column, type=_WIDER[name])
        case DecimalType() if rng.random() < 0.5:
            return evolve(column, type=DecimalType(38, column.type.scale))
    if table.format_version >= 3 and column.type == PlainType("long") and rng.random() < 0.5:
        return evolve(column, write_default=rng.randint(0, 9))
    if rng.random() < 0.5:
        return evolve(column, doc=rng.choice((None, "other", "a comment")))
    return evolve(column, required=not column.required)


def _changed_key(key: Type) -> Type:
    if isinstance(key, StructType):
        return StructType(tuple(evolve(each, doc="of a key") for each in key.fields))
    return _WIDER.get(key.name, key) if isinstance(key, PlainType) else key


def _sources(schema: Schema) -> list[NestedField]:
    return [
        placed.field
        for placed in schema.placed_fields
        if isinstance(placed.field.type, PlainType)
        and placed.field.type.name in _SOURCES
        and all(isinstance(each.type, StructType) for each in placed.parents)
    ]


def random_spec(
    rng: Random, schema: Schema, first_id: int, version: int, number: int = 0
) -> PartitionSpec:
    fields = []
    for each in rng.sample(found := _sources(schema), min(len(found), rng.randint(0, 2))):
        assert isinstance(each.type, PlainType)
        transform = rng.choice(_SOURCES[each.type.name])
        fields.append((each.id, transform))
    first = 1000 if version == 1 else first_id
    return PartitionSpec(
        number,
        tuple(
            PartitionField(f"part {source} {transform}", transform, source, field_id=first + at)
            for at, (source, transform) in enumerate(fields)
        ),
    )


def random_order(rng: Random, schema: Schema, number: int) -> SortOrder:
    found = _sources(schema)
    fields = tuple(
        SortField(
            transform=rng.choice(("identity", "bucket[4]")),
            source_id=each.id,
            direction=rng.choice(("asc", "desc")),
            null_order=rng.choice(("nulls-first", "nulls-last")),
        )
        for each in rng.sample(found, min(len(found), rng.randint(0, 2)))
    )
    return SortOrder(number if fields else 0, fields)
