"""Plans of schema and layout changes for Iceberg.

Errors of common readers are one table, which the tests keep true: a plan warns of each change
that a reader then gets wrong, and the documentation shows the same rows. When a reader is fixed,
the test of its row fails, and the row is removed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from attrs import frozen

from ledger.model.types import (
    ArrayType,
    DataType,
    DecimalType,
    LocalZonedTimestampType,
    MapType,
    RowType,
    TimestampType,
    TimeType,
    TypePlace,
    type_places,
)
from ledger.state.declared_formats import Rules
from ledger.state.table import TableState
from projections.iceberg.position import Names


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

    def warnings(self, before: TableState, after: TableState) -> tuple[str, ...]:
        """Return the errors of common readers that a change causes.

        Args:
            before: The table before the change.
            after: The table after it.
        """
        return warnings(before, after)


planned = IcebergPlan()


_MICROSECONDS = 6
_KINDS = ("column ", "partition field ")


@frozen
class ReaderLimit:
    """One error of a reader.

    Attributes:
        reader: Its display name.
        version: The version in which it was observed.
        says: Its behaviour, as the end of a sentence.
        added_names: Function from a table's state before and after a change to the names that the
            change adds: columns, partition fields, or the table.
    """

    reader: str
    version: str
    says: str
    added_names: Callable[[TableState, TableState], Iterable[str]]

    def warnings(self, before: TableState, after: TableState) -> Iterator[str]:
        """Yield one sentence per kind of thing for which a change causes the error.

        Things of one kind are listed together: `columns a, b: ...`.
        """
        named: dict[str, list[str]] = {}
        for each in self.added_names(before, after):
            kind = next((kind for kind in _KINDS if each.startswith(kind)), "")
            named.setdefault(kind, []).append(each.removeprefix(kind))
        for kind, names in named.items():
            several = f"{kind.rstrip()}s " if kind and len(names) > 1 else kind
            yield f"{several}{', '.join(names)}: {self.reader} {self.version} {self.says}"


def _new_places_where(
    is_meant: Callable[[TypePlace], bool],
) -> Callable[[TableState, TableState], Iterator[str]]:
    """Return a function that yields new places, at every depth, that satisfy a predicate."""

    def added_names(before: TableState, after: TableState) -> Iterator[str]:
        had = {
            _rename_stable_key(each) for each in type_places(before.schema.fields) if is_meant(each)
        }
        for each in type_places(after.schema.fields):
            if is_meant(each) and _rename_stable_key(each) not in had:
                yield f"column {each.name}"

    return added_names


def _rename_stable_key(place: TypePlace) -> tuple[int | str | None, ...]:
    """Return a key of a place that a rename does not change."""
    return (place.field.id,) if place.field else (*place.level, place.path[-1])


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


def _new_default_columns(before: TableState, after: TableState) -> Iterator[str]:
    known = {e.field.id for e in type_places(before.schema.fields) if e.field is not None}
    for each in type_places(after.schema.fields):
        field = each.field
        if field is not None and field.id not in known and field.initial_default is not None:
            yield f"column {each.name}"


def _widened_decimals(before: TableState, after: TableState) -> Iterator[TypePlace]:
    known = {e.field.id: e.type for e in type_places(before.schema.fields) if e.field is not None}
    for each in type_places(after.schema.fields):
        older = known.get(each.field.id) if each.field is not None else None
        if (
            isinstance(each.type, DecimalType)
            and isinstance(older, DecimalType)
            and older.precision < each.type.precision
        ):
            yield each


def _widened_decimal_columns(before: TableState, after: TableState) -> Iterator[str]:
    return (f"column {each.name}" for each in _widened_decimals(before, after))


def _widened_decimals_in_structs(before: TableState, after: TableState) -> Iterator[str]:
    return (f"column {e.name}" for e in _widened_decimals(before, after) if len(e.path) > 1)


def _new_voids_in_version_1(before: TableState, after: TableState) -> Iterator[str]:
    if Rules.of(after.schema.options).format_version > 1:
        return
    known = {(each.field_id, each.transform) for spec in before.specs for each in spec.fields}
    for spec in after.specs:
        for each in spec.fields:
            if each.transform == "void" and (each.field_id, "void") not in known:
                yield f"partition field {each.name}"


def _names_differing_in_case(before: TableState, after: TableState) -> Iterator[str]:
    """Yield pairs of columns whose names differ only in case."""
    known = {_rename_stable_key(each): each.name for each in type_places(before.schema.fields)}
    seen: dict[object, TypePlace] = {}
    for each in type_places(after.schema.fields):
        other = seen.setdefault((each.level, each.path[-1].casefold()), each)
        is_known = all(known.get(_rename_stable_key(one)) == one.name for one in (each, other))
        if other is not each and not is_known:
            yield f"columns {other.name} and {each.name}"


LIMITS: tuple[ReaderLimit, ...] = (
    ReaderLimit(
        "PyIceberg",
        "0.12",
        "reads a NULL list or map of structs as an empty one",
        _new_places_where(_is_nullable_list_of_structs),
    ),
    ReaderLimit(
        "PyIceberg",
        "0.12",
        "cannot filter by a name with a dot in it",
        _new_places_where(_has_dot_in_name),
    ),
    ReaderLimit("Spark with Iceberg", "1.11", "cannot read TIME", _new_places_where(_is_time_type)),
    ReaderLimit(
        "Spark with Iceberg", "1.11", "cannot read nanoseconds", _new_places_where(_has_nanoseconds)
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
        "ClickHouse", "26.9", "reads TIME as whole seconds", _new_places_where(_is_time_type)
    ),
    ReaderLimit(
        "ClickHouse",
        "26.9",
        "reads a NULL list or struct as an empty one",
        _new_places_where(_is_nullable_list_or_struct),
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
)
"""Every reader error that a change of schema or layout can cause."""


def warnings(before: TableState, after: TableState) -> tuple[str, ...]:
    """Return the known reader errors that a change causes.

    Args:
        before: The table before the change.
        after: The table after it.
    """
    return tuple(said for each in LIMITS for said in each.warnings(before, after))
