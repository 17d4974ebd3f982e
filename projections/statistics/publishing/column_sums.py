"""Column statistics of every partition, rolled up from the statistics of its live files.

Counts could be folded as partitions' sums are; bounds could not, since a file that goes takes its
extremes with it. So both come from the files that are live, when somebody asks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from attrs import evolve, field, frozen
from msgspec import UnsetType, json

from ledger.model.file_change import FileChange
from ledger.model.transforms.paths import field_types
from ledger.model.transforms.values import Value
from ledger.model.types import DataType
from ledger.planning.bound_value import value_from_bytes
from ledger.table_at import TableAt
from projections.statistics.shown.query import paimon_rendering_of


@frozen(kw_only=True)
class ColumnSums:
    """One column in one partition.

    Attributes:
        spec: The partition.
        field_id: The column's.
        file_count: Data files that are live.
        value_count: Values, nulls included; None when a file did not count them.
        null_count: Nulls; None when a file did not count them.
        lower: No value is less; None when a file with values does not say.
        upper: No value is greater; None when a file with values does not say.
    """

    spec: Mapping[str, str] = field(hash=False)
    field_id: int
    file_count: int = 0
    value_count: int | None = 0
    null_count: int | None = 0
    lower: Value | None = None
    upper: Value | None = None
    _bounded: bool = field(default=True, eq=False, repr=False)


def column_sums(at: TableAt) -> tuple[ColumnSums, ...]:
    """Return the statistics of every column in every partition, by the partition's path.

    Columns that no file counts or bounds are left out. Deletes are not subtracted: counts are of
    rows in files, and bounds may be wider than what is left.
    """
    rendering, types = paimon_rendering_of(at), field_types(at.schema)
    by_path: dict[str, tuple[Mapping[str, str], list[FileChange]]] = {}
    for file in at.files:
        if file.content == "data":
            shown = rendering.spec(file.spec_id, json.encode(file.partition).decode())
            by_path.setdefault(shown.path, (dict(shown.items), []))[1].append(file)
    return tuple(
        _rolled_up(ColumnSums(spec=spec, field_id=field_id), files, types[field_id])
        for _, (spec, files) in sorted(by_path.items())
        for field_id in sorted(_columns(files) & types.keys())
    )


def _columns(files: Iterable[FileChange]) -> set[int]:
    maps = (
        each
        for file in files
        for each in (file.value_counts, file.null_value_counts, file.lower_bounds)
    )
    return {field_id for each in maps if not isinstance(each, UnsetType) for field_id in each}


def _rolled_up(column: ColumnSums, files: Iterable[FileChange], data_type: DataType) -> ColumnSums:
    found = column
    for file in files:
        values = _of(file.value_counts, column.field_id)
        nulls = _of(file.null_value_counts, column.field_id)
        rows = file.record_count if values is None else values
        found = evolve(
            found,
            file_count=found.file_count + 1,
            value_count=_plus(found.value_count, values),
            null_count=_plus(found.null_count, nulls),
        )
        if nulls is None or nulls < rows:
            found = _bounded(found, file, data_type)
    return found


def _bounded(column: ColumnSums, file: FileChange, data_type: DataType) -> ColumnSums:
    """Return a column with the bounds of one more file, which has values in it."""
    lower = _bound(_of(file.lower_bounds, column.field_id), data_type)
    upper = _bound(_of(file.upper_bounds, column.field_id), data_type)
    if not column._bounded or lower is None or upper is None:  # noqa: SLF001 - its own module
        return evolve(column, lower=None, upper=None, bounded=False)
    first = column.lower is None or column.upper is None
    return evolve(
        column,
        lower=lower if first else min(column.lower, lower),  # type: ignore[type-var]  # of one type
        upper=upper if first else max(column.upper, upper),  # type: ignore[type-var]  # of one type
    )


def _of(values: Any, field_id: int) -> Any:
    return values.get(field_id) if isinstance(values, dict) else None


def _plus(total: int | None, more: int | None) -> int | None:
    return None if total is None or more is None else total + more


def _bound(text: str | None, data_type: DataType) -> Value | None:
    try:
        return None if text is None else value_from_bytes(bytes.fromhex(text), data_type)
    except ValueError:
        # What is no bytes tells nothing.
        return None
