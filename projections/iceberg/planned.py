"""Plans of schema and layout changes for Iceberg, and the known errors of its readers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from attrs import frozen

from ledger.decide.name_mapping import NAME_MAPPING
from ledger.model.iceberg_layout import PartitionField
from ledger.model.schema import Schema
from ledger.model.types import (
    ArrayType,
    BigIntType,
    DataType,
    DecimalType,
    DoubleType,
    LocalZonedTimestampType,
    MapType,
    RowType,
    SmallIntType,
    TimestampType,
    TimeType,
    TinyIntType,
    TypePlace,
    UuidType,
    type_places,
)
from ledger.state.declared_formats import Rules
from ledger.state.table import TableState
from projections.iceberg.position import Names
from projections.reader_limits import PlannedChange, ReaderLimit, new_columns_where, place_key

ICEBERG_PLAN: Final = "iceberg"


@frozen
class IcebergPlan:
    """Iceberg's part of `lakeledger plan`; a call returns the files of a change."""

    def __call__(self, before: TableState, after: TableState) -> tuple[str, ...]:
        """Return the files that projecting a change writes, relative to the table's location.

        Only metadata files: manifests and lists change with snapshots.

        Args:
            before: The table before the change.
            after: The table after it, with the same snapshots and tags.
        """
        if after.version == before.version:
            return ()
        names = Names(after.table_id)
        return (names.metadata(after.version), names.hadoop(after.version))

    def warnings(
        self,
        before: TableState,
        after: TableState,
        earlier: Callable[[], Iterable[Schema]],
    ) -> tuple[str, ...]:
        """Return the errors of common readers that a change causes.

        Args:
            before: The table before the change.
            after: The table after it.
            earlier: Returns the table's schemas up to `before`.
        """
        change = PlannedChange.of(ICEBERG_PLAN, before, after, earlier)
        return tuple(said for each in LIMITS for said in each.warnings(change))


planned = IcebergPlan()


_MILLISECONDS, _MICROSECONDS = 3, 6


def _is_nullable_list_of_structs(place: TypePlace) -> bool:
    inner: DataType | None = None
    if isinstance(place.type, ArrayType):
        inner = place.type.element
    elif isinstance(place.type, MapType):
        inner = place.type.value
    return place.type.nullable and isinstance(inner, RowType)


def _is_nullable_list_or_struct(place: TypePlace) -> bool:
    return place.type.nullable and isinstance(place.type, ArrayType | RowType)


def _has_dot_in_name(place: TypePlace) -> bool:
    return place.field is not None and "." in place.field.name


def _is_time_type(place: TypePlace) -> bool:
    return isinstance(place.type, TimeType)


def _has_nanoseconds(place: TypePlace) -> bool:
    is_moment = isinstance(place.type, TimestampType | LocalZonedTimestampType)
    return is_moment and getattr(place.type, "precision", 0) > _MICROSECONDS


def _has_milliseconds(place: TypePlace) -> bool:
    is_moment = isinstance(place.type, TimestampType | LocalZonedTimestampType)
    return is_moment and getattr(place.type, "precision", 0) <= _MILLISECONDS


def _has_milliseconds_in_top_column(place: TypePlace) -> bool:
    return len(place.path) == 1 and _has_milliseconds(place)


def _is_time_in_milliseconds(place: TypePlace) -> bool:
    return isinstance(place.type, TimeType) and place.type.precision <= _MILLISECONDS


def _new_default_columns(change: PlannedChange) -> Iterator[str]:
    known = {e.field.id for e in type_places(change.before.schema.fields) if e.field is not None}
    for each in type_places(change.after.schema.fields):
        column = each.field
        if column is not None and column.id not in known and column.initial_default is not None:
            yield f"column {each.name}"


def _widened_decimals(change: PlannedChange) -> Iterator[TypePlace]:
    for each in change.retyped_places(lambda place: isinstance(place.type, DecimalType)):
        precision = getattr(each.type, "precision", 0)
        if any(
            isinstance(older, DecimalType) and older.precision < precision
            for older in change.older_types(each)
        ):
            yield each


def _widened_decimal_columns(change: PlannedChange) -> Iterator[str]:
    return (f"column {each.name}" for each in _widened_decimals(change))


def _widened_decimals_in_structs(change: PlannedChange) -> Iterator[str]:
    return (f"column {e.name}" for e in _widened_decimals(change) if e.field and len(e.path) > 1)


def _small_integers_widened_to_bigint(change: PlannedChange) -> Iterator[str]:
    for each in change.retyped_places(lambda place: isinstance(place.type, BigIntType)):
        # Only top-level columns are read by the vectorized reader.
        if len(each.path) == 1 and any(
            isinstance(older, TinyIntType | SmallIntType) for older in change.older_types(each)
        ):
            yield f"column {each.name}"


def _new_identity_fields_where(
    is_meant: Callable[[TypePlace], bool],
) -> Callable[[PlannedChange], Iterator[str]]:
    """Return a function that yields new partition fields with the values of such a column."""

    def added_names(change: PlannedChange) -> Iterator[str]:
        known = {each.source_id for each in _identity_fields(change.before, is_meant)}
        for each in _identity_fields(change.after, is_meant):
            if each.source_id not in known:
                known.add(each.source_id)
                yield f"partition field {each.name}"

    return added_names


def _identity_fields(
    state: TableState, is_meant: Callable[[TypePlace], bool]
) -> Iterator[PartitionField]:
    fields = [each for spec in state.specs for each in spec.fields if each.transform == "identity"]
    places = type_places(state.schema.fields) if fields else ()
    meant = {each.field.id for each in places if each.field and is_meant(each)}
    return (each for each in fields if each.source_id in meant)


def _is_double(place: TypePlace) -> bool:
    return isinstance(place.type, DoubleType)


def _is_uuid(place: TypePlace) -> bool:
    return isinstance(place.type, UuidType)


def is_cast_by_name(place: TypePlace) -> bool:
    """Return whether PyIceberg finds the members of a struct in files by name, not by field id."""
    return isinstance(place.type, RowType) and any(map(_is_cast_whole, place.around))


def _is_cast_whole(data_type: DataType) -> bool:
    """Return whether PyIceberg reads a list or map by one cast of Arrow, with all that is in it."""
    if isinstance(data_type, ArrayType):
        return not isinstance(data_type.element, RowType)
    return isinstance(data_type, MapType) and not isinstance(data_type.value, RowType)


def misread_members(names: Mapping[int, str], struct: DataType) -> Iterator[str]:
    """Yield the members of a struct that a cast by name misreads, or fails on, in some files.

    Args:
        names: The names of the members in the files, by field id, in the files' order.
        struct: The struct to read.
    """
    if not isinstance(struct, RowType):
        return
    ids = {name: field_id for field_id, name in names.items()}
    places = {field_id: place for place, field_id in enumerate(names)}
    last = -1
    for each in struct.fields:
        # Arrow looks for each member after the previous one.
        place = places.get(each.id, last)
        is_renamed = names.get(each.id, each.name) != each.name
        is_other = ids.get(each.name, each.id) != each.id
        has_default = each.id not in names and each.initial_default is not None
        if place < last or is_renamed or is_other or has_default:
            yield each.name
        last = max(last, place)


def _members_misread_by_name(change: PlannedChange) -> Iterator[str]:
    physical = change.after.origin.physical_names
    for each in change.retyped_places(is_cast_by_name):
        if not isinstance(each.type, RowType):
            continue
        older = [one for one in change.older_types(each) if isinstance(one, RowType)]
        in_files = [{member.id: member.name for member in one.fields} for one in older]
        in_files += [
            {member.id: physical.get(member.id, member.name) for member in one.fields}
            for one in (*older, each.type)
        ]
        misread = {name for names in in_files for name in misread_members(names, each.type)}
        yield from (f"column {each.name}.{name}" for name in sorted(misread))


def _is_required_without_default(place: TypePlace) -> bool:
    has_default = place.field is not None and place.field.initial_default is not None
    return not place.type.nullable and not has_default


def _new_name_mapping(change: PlannedChange) -> Iterator[str]:
    if _is_read_by_name(change.after) and not _is_read_by_name(change.before):
        yield "the table"


def _is_read_by_name(state: TableState) -> bool:
    """Return whether readers need a name mapping, for files without field ids or by an option."""
    has_mapping = bool(state.named_schema_ids) or NAME_MAPPING in state.schema.options
    return bool(state.schema.fields) and has_mapping


def _new_voids_in_version_1(change: PlannedChange) -> Iterator[str]:
    if Rules.of(change.after.schema.options).format_version > 1:
        return
    known = {
        (each.field_id, each.transform) for spec in change.before.specs for each in spec.fields
    }
    for spec in change.after.specs:
        for each in spec.fields:
            if each.transform == "void" and (each.field_id, "void") not in known:
                yield f"partition field {each.name}"


def _names_differing_in_case(change: PlannedChange) -> Iterator[str]:
    """Yield pairs of columns whose names differ only in case."""
    seen: dict[object, TypePlace] = {}
    pairs = [
        (other, each)
        for each in type_places(change.after.schema.fields)
        if (other := seen.setdefault((each.level, each.path[-1].casefold()), each)) is not each
    ]
    known = {
        place_key(e): e.name for e in type_places(change.before.schema.fields if pairs else ())
    }
    for other, each in pairs:
        if not all(known.get(place_key(one)) == one.name for one in (each, other)):
            yield f"columns {other.name} and {each.name}"


LIMITS: tuple[ReaderLimit, ...] = (
    ReaderLimit(
        "PyIceberg",
        "0.12",
        "reads a NULL list or map of structs as an empty one",
        new_columns_where(_is_nullable_list_of_structs),
    ),
    ReaderLimit(
        "PyIceberg",
        "0.12",
        "cannot filter by a name with a dot in it",
        new_columns_where(_has_dot_in_name),
    ),
    ReaderLimit(
        "PyIceberg",
        "0.12",
        "misreads or cannot read members that were renamed, moved, dropped and added again, or "
        "added with a default, in a struct in a map key, or in a list or map that is directly in "
        "another",
        _members_misread_by_name,
    ),
    ReaderLimit(
        "PyIceberg",
        "0.12",
        "cannot read files that have TIME in milliseconds",
        new_columns_where(_is_time_in_milliseconds),
    ),
    ReaderLimit(
        "PyIceberg",
        "0.12",
        "reads a DOUBLE partition value as FLOAT, and may skip its rows in a filter",
        _new_identity_fields_where(_is_double),
    ),
    ReaderLimit(
        "PyIceberg",
        "0.12",
        "cannot open a table with nanoseconds as a partition value",
        _new_identity_fields_where(_has_nanoseconds),
    ),
    ReaderLimit(
        "PyIceberg",
        "0.12",
        "cannot read a UUID partition column that files lack",
        _new_identity_fields_where(_is_uuid),
    ),
    ReaderLimit(
        "PyIceberg",
        "0.12",
        "cannot read a NOT NULL partition column that files lack",
        _new_identity_fields_where(_is_required_without_default),
    ),
    ReaderLimit(
        "PyIceberg",
        "0.12",
        "cannot read files without field ids that have more columns than the table ever had",
        _new_name_mapping,
    ),
    ReaderLimit(
        "Spark with Iceberg",
        "1.11",
        "cannot read as BIGINT what files have as TINYINT or SMALLINT, unless "
        "read.parquet.vectorization.enabled is false",
        _small_integers_widened_to_bigint,
    ),
    ReaderLimit(
        "Spark with Iceberg",
        "1.11",
        "reads milliseconds that files encode by dictionary as microseconds, unless "
        "read.parquet.vectorization.enabled is false",
        new_columns_where(_has_milliseconds_in_top_column),
    ),
    ReaderLimit("Spark with Iceberg", "1.11", "cannot read TIME", new_columns_where(_is_time_type)),
    ReaderLimit(
        "Spark with Iceberg", "1.11", "cannot read nanoseconds", new_columns_where(_has_nanoseconds)
    ),
    ReaderLimit(
        "Spark with Iceberg",
        "1.11",
        "cannot tell names apart by case alone, unless spark.sql.caseSensitive is true",
        _names_differing_in_case,
    ),
    ReaderLimit(
        "Trino", "476", "reads NULL where older files have the default", _new_default_columns
    ),
    ReaderLimit(
        "ClickHouse", "26.9", "reads NULL where older files have the default", _new_default_columns
    ),
    ReaderLimit(
        "ClickHouse", "26.9", "reads TIME as whole seconds", new_columns_where(_is_time_type)
    ),
    ReaderLimit(
        "ClickHouse",
        "26.9",
        "reads a NULL list or struct as an empty one",
        new_columns_where(_is_nullable_list_or_struct),
    ),
    ReaderLimit(
        "ClickHouse",
        "26.9",
        "refuses a DECIMAL that was widened inside a struct",
        _widened_decimals_in_structs,
    ),
    ReaderLimit(
        "DuckDB",
        "1.5",
        "can abort on a void partition field of format version 1",
        _new_voids_in_version_1,
    ),
    ReaderLimit(
        "DuckDB",
        "1.5",
        "renames one of two names that differ by case alone",
        _names_differing_in_case,
    ),
    ReaderLimit(
        "Polars (native)", "1.44", "fails on a DECIMAL that was widened", _widened_decimal_columns
    ),
    ReaderLimit(
        "Polars (native)",
        "1.44",
        "fails on files that have timestamps in milliseconds",
        new_columns_where(_has_milliseconds),
    ),
)
"""Every reader error that a change of schema or layout can cause."""
