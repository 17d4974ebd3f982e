"""Updates that create a table: those of the Iceberg REST catalog's CreateTableRequest.

A new table gets its own ids, whatever ids the request has: columns from 1, level by level, and
partition fields from 1000. The request's partition spec and sort order name its columns by the
request's ids.

Source: Java's TableMetadata.newTableMetadata and TypeUtil.assignFreshIds.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Final

from attrs import evolve
from msgspec.structs import replace

import projections.iceberg.rest_updates as u
from ledger.model.errors import InvalidInputError
from ledger.model.iceberg_layout import (
    NO_ID,
    PartitionField,
    PartitionSpec,
    SortField,
    SortOrder,
    number_partition_fields,
)
from projections.iceberg.metadata_schema import (
    ListType,
    MapType,
    NestedField,
    Schema,
    StructType,
    Type,
)
from projections.iceberg.metadata_update import DEFAULT_VERSION
from projections.iceberg.rest_updates import TableUpdate
from projections.iceberg.table_metadata import SUPPORTED_VERSIONS

FORMAT_VERSION: Final = "format-version"

_RESERVED: Final = frozenset(
    (
        FORMAT_VERSION,
        "uuid",
        "snapshot-count",
        "current-snapshot-summary",
        "current-snapshot-id",
        "current-snapshot-timestamp-ms",
        "current-schema",
        "default-partition-spec",
        "default-sort-order",
    )
)
"""Properties that ask for something at the creation, or show the metadata; they are not stored."""


def creation_updates(
    schema: Schema,
    *,
    uuid: str,
    location: str,
    spec: PartitionSpec | None = None,
    order: SortOrder | None = None,
    properties: Mapping[str, str] | None = None,
) -> tuple[TableUpdate, ...]:
    """Return the updates that create a table, in order.

    Args:
        schema: The columns, with any ids.
        uuid: The table's uuid.
        location: The table's location.
        spec: The partition spec; None for an unpartitioned table.
        order: The sort order; None for an unsorted table.
        properties: The table properties; `format-version` is the table's format version.

    Raises:
        InvalidInputError: The spec or the order names no column, or the format version is not one
            that tables can have.
    """
    given = dict(properties or {})
    numbered = with_fresh_ids(schema)
    new_ids = {
        old.field.id: new.field.id
        for old, new in zip(schema.placed_fields, numbered.placed_fields, strict=True)
    }
    fields = () if spec is None else tuple(_partition_field(each, new_ids) for each in spec.fields)
    sorted_by = () if order is None else tuple(_sort_field(each, new_ids) for each in order.fields)
    updates: tuple[TableUpdate, ...] = (
        u.AssignUuid(uuid=uuid),
        u.UpgradeFormatVersion(format_version=_format_version(given)),
        u.AddSchema(schema=numbered),
        u.SetCurrentSchema(schema_id=NO_ID),
        u.AddSpec(spec=PartitionSpec(0, number_partition_fields(fields))),
        u.SetDefaultSpec(spec_id=NO_ID),
        u.AddSortOrder(sort_order=SortOrder(1 if sorted_by else 0, sorted_by)),
        u.SetDefaultSortOrder(sort_order_id=NO_ID),
        u.SetLocation(location=location),
    )
    stored = {key: value for key, value in given.items() if key not in _RESERVED}
    return (*updates, u.SetProperties(updates=stored)) if stored else updates


def _format_version(properties: Mapping[str, str]) -> int:
    text = properties.get(FORMAT_VERSION, str(DEFAULT_VERSION))
    if text not in {str(each) for each in SUPPORTED_VERSIONS}:
        raise InvalidInputError(
            f"property {FORMAT_VERSION} is {text!r}; it is one of "
            f"{', '.join(map(str, SUPPORTED_VERSIONS))}"
        )
    return int(text)


def with_fresh_ids(schema: Schema) -> Schema:
    """Return a schema of id 0 with new field ids: the columns from 1, then level by level.

    Example:
        >>> from projections.iceberg.metadata_schema import PlainType
        >>> made = with_fresh_ids(Schema(7, (NestedField(5, "a", PlainType("int"), False),)))
        >>> made.schema_id, made.fields[0].id
        (0, 1)
    """
    numbers = itertools.count(1)
    fields = _numbered_fields(schema.fields, numbers)
    made = Schema(0, fields)
    names = [schema.name_of(each) for each in schema.identifier_field_ids]
    keys = [found.id for name in names if name is not None and (found := made.find(name))]
    return evolve(made, identifier_field_ids=tuple(keys))


def _numbered_fields(
    fields: tuple[NestedField, ...], numbers: Iterator[int]
) -> tuple[NestedField, ...]:
    own = [next(numbers) for _ in fields]
    return tuple(
        evolve(each, id=number, type=numbered_type(each.type, numbers))
        for each, number in zip(fields, own, strict=True)
    )


def numbered_type(kind: Type, numbers: Iterator[int]) -> Type:
    """Return a type whose members have the next ids, level by level."""
    if isinstance(kind, StructType):
        return StructType(_numbered_fields(kind.fields, numbers))
    if isinstance(kind, ListType):
        element_id = next(numbers)
        return ListType(element_id, numbered_type(kind.element, numbers), kind.element_required)
    if isinstance(kind, MapType):
        key_id, value_id = next(numbers), next(numbers)
        key = numbered_type(kind.key, numbers)
        value = numbered_type(kind.value, numbers)
        return MapType(key_id, key, value_id, value, kind.value_required)
    return kind


def _partition_field(given: PartitionField, new_ids: Mapping[int, int]) -> PartitionField:
    sources = _new_source_ids(given.sources, new_ids, f"partition field {given.name}")
    if len(sources) == 1:
        return replace(given, source_id=sources[0], source_ids=())
    return replace(given, source_id=NO_ID, source_ids=sources)


def _sort_field(given: SortField, new_ids: Mapping[int, int]) -> SortField:
    sources = _new_source_ids(given.sources, new_ids, "a sort field")
    if len(sources) == 1:
        return replace(given, source_id=sources[0], source_ids=())
    return replace(given, source_id=NO_ID, source_ids=sources)


def _new_source_ids(
    sources: tuple[int, ...], new_ids: Mapping[int, int], what: str
) -> tuple[int, ...]:
    missing = [each for each in sources if each not in new_ids]
    if missing:
        raise InvalidInputError(f"{what} has the source column {missing[0]}, which does not exist")
    return tuple(new_ids[each] for each in sources)
