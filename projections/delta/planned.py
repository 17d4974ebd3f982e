"""Plans of schema changes for Delta, and the known errors of its readers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from attrs import frozen

from ledger.decide.format_rules import declared_rules
from ledger.model.schema import Schema
from ledger.model.types import DataType, MapType, RowType, TypePlace, type_places
from ledger.state.table import TableState
from projections.delta.actions import FOLDER
from projections.delta.columns import renames_or_drops
from projections.delta.rules import has_widened_column
from projections.reader_limits import PlannedChange, ReaderLimit

DELTA_PLAN: Final = "delta"


@frozen
class DeltaPlan:
    """Delta's part of `lakeledger plan`; a call returns the files of a change."""

    def __call__(self, before: TableState, after: TableState) -> tuple[str, ...]:
        """Return the files that projecting a change writes, relative to the table's location.

        It is one commit; its version depends on the number of earlier ones.

        Args:
            before: The table before the change.
            after: The table after it, with the same snapshots and tags.
        """
        return (f"{FOLDER}/*.json",) if after.schema.id != before.schema.id else ()

    def warnings(
        self,
        before: TableState,
        after: TableState,
        earlier: Callable[[], Iterable[Schema]],
    ) -> tuple[str, ...]:
        """Return the readers that will no longer read the table, and what Delta cannot express.

        Args:
            before: The table before the change.
            after: The table after it.
            earlier: Returns the table's schemas up to `before`.
        """
        # All of these are errors with files that were written before the change.
        readers: tuple[str, ...] = ()
        if before.snapshot is not None:
            change = PlannedChange.of(DELTA_PLAN, before, after, earlier)
            readers = (
                *_compatibility_warnings(before, after),
                *(said for each in LIMITS for said in each.warnings(change)),
            )
        return (*readers, *_inexpressible_parts(before, after))


def _compatibility_warnings(before: TableState, after: TableState) -> Iterator[str]:
    if renames_or_drops(before.schema, after.schema):
        yield (
            "Delta maps columns by name from the first rename or drop on, and neither Polars nor "
            "delta-rs' to_pyarrow_table opens such a table; delta-rs' QueryBuilder, DuckDB and "
            "Spark do"
        )
        if "paimon" in declared_rules(after.schema.options).formats:
            yield (
                "Delta finds a column by one name in all files, and Paimon by a schema's names: "
                "once a column is added to the renamed ones, or has the name of a dropped one, "
                "rows can be added only after all older files were overwritten"
            )
    if has_widened_column(before.schema, after.schema):
        yield (
            "Delta reads wider types by the table feature typeWidening, which neither Polars nor "
            "delta-rs opens; DuckDB and Spark do"
        )


def _inexpressible_parts(before: TableState, after: TableState) -> Iterator[str]:
    """Yield what Delta cannot express of a change; of the table if Delta is newly declared."""
    is_new = DELTA_PLAN not in declared_rules(before.schema.options).formats
    had = set() if is_new else {*inexpressible(before)}
    yield from (each for each in inexpressible(after) if each not in had)


def inexpressible(state: TableState) -> Iterator[str]:
    """Yield each part of a table that its Delta log cannot express, in one sentence each."""
    if state.branches:
        yield (
            f"Delta's log has no branches: {', '.join(sorted(state.branches))} cannot be read "
            "there, until main is fast-forwarded to it"
        )
    for name, default in _column_defaults(state):
        yield (
            f"Delta's log does not record the default {default} of column {name}, since only "
            "the ledger's writers write there: writers of new rows read it from the ledger"
        )


def _column_defaults(state: TableState) -> Iterator[tuple[str, str]]:
    for place in type_places(state.schema.fields):
        if place.field is not None and place.field.default_value is not None:
            yield place.name, place.field.default_value


planned = DeltaPlan()


def _is_struct(place: TypePlace) -> bool:
    return isinstance(place.type, RowType)


def _is_struct_in_map(place: TypePlace) -> bool:
    return _is_struct(place) and any(isinstance(each, MapType) for each in place.around)


def _structs_in_maps_of_other_members(change: PlannedChange) -> Iterator[str]:
    for each in change.retyped_places(_is_struct_in_map):
        members = {*_member_ids(each.type)}
        if any({*_member_ids(older)} != members for older in change.older_types(each)):
            yield f"column {each.name}"


def _structs_of_moved_members(change: PlannedChange) -> Iterator[str]:
    for each in change.retyped_places(_is_struct):
        members = _member_ids(each.type)
        if any(_is_reordered(_member_ids(older), members) for older in change.older_types(each)):
            yield f"column {each.name}"


def _member_ids(data_type: DataType) -> tuple[int, ...]:
    return tuple(each.id for each in data_type.fields) if isinstance(data_type, RowType) else ()


def _is_reordered(before: tuple[int, ...], after: tuple[int, ...]) -> bool:
    kept = [each for each in after if each in before]
    return kept != [each for each in before if each in after]


LIMITS: tuple[ReaderLimit, ...] = (
    ReaderLimit(
        "delta-rs, `to_pyarrow_table`",
        "1.6",
        "fails on structs whose members were moved",
        _structs_of_moved_members,
    ),
    ReaderLimit(
        "delta-rs, QueryBuilder",
        "1.6",
        "fails on structs inside maps that gained or lost members, or reads their members by "
        "position",
        _structs_in_maps_of_other_members,
    ),
)
"""Errors of readers with some older files, which name the column; see also `DeltaPlan.warnings`."""
