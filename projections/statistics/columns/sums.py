"""Column statistics of every partition, rolled up from the statistics of its live files.

Counts could be folded as partitions' sums are; bounds could not, since a file that goes takes its
extremes with it. So both come from the files that are live.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from attrs import define, field, frozen
from msgspec import json

from ledger.history.older import TableLog, schemas_by_id
from ledger.model.errors import NotFoundError
from ledger.model.file_change import FileChange
from ledger.model.schema import Schema
from ledger.model.transforms.paths import field_types
from ledger.model.transforms.values import Value
from ledger.model.types import DataType
from ledger.model.types.casting import can_promote
from ledger.planning.bound_value import value_from_bytes
from ledger.table_at import TableAt
from projections.statistics.shown.query import paimon_rendering_of

_NEWEST_FORMAT = 3


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


def column_sums(log: TableLog, at: TableAt) -> tuple[ColumnSums, ...]:
    """Return the statistics of every column in every partition, by the partition's path.

    Columns that no file counts or bounds are left out. Deletes are not subtracted: counts are of
    rows in files, and bounds may be wider than what is left.

    Args:
        log: The table's.
        at: The table at an instant.
    """
    rendering = paimon_rendering_of(at)
    readings = Readings(log, at.schema)
    by_path: dict[str, tuple[Mapping[str, str], FilesSums]] = {}
    for file in at.engine_files:
        if file.content == "data":
            shown = rendering.spec(file.spec_id, json.encode(file.partition).decode())
            if shown.path not in by_path:
                by_path[shown.path] = dict(shown.items), FilesSums(readings)
            by_path[shown.path][1].add(file)
    return tuple(
        each.summed(spec)
        for _, (spec, sums) in sorted(by_path.items())
        for _, each in sorted(sums.columns.items())
        if each.is_told
    )


class Readings:
    """What the files of each schema say of the columns of one: the type may be another by now.

    Args:
        log: The table's.
        schema: The one whose columns are asked about.
    """

    def __init__(self, log: TableLog, schema: Schema) -> None:
        self._log = log
        self.types: Mapping[int, DataType] = field_types(schema)
        # The columns that read NULL where a file lacks them; of members nobody knows how many.
        self._bare = {each.id for each in schema.fields if each.initial_default is None}
        self._found: dict[int, dict[int, str]] = {schema.id: dict.fromkeys(self.types, "bounds")}

    def of(self, schema_id: int) -> Mapping[int, str]:
        """Return by field id what a file of a schema says: `bounds`, or that it is all `null`.

        Of a column that is missing here only the counts can be trusted.
        """
        found = self._found.get(schema_id)
        if found is None:
            found = self._found[schema_id] = self._read(schema_id)
        return found

    def _read(self, schema_id: int) -> dict[int, str]:
        try:
            then = field_types(schemas_by_id(self._log, [schema_id])[schema_id])
        except NotFoundError:
            # Of a schema that nobody knows, bounds may be of any type.
            return {}
        found = {}
        for key, now in self.types.items():
            if key not in then:
                if key in self._bare:
                    found[key] = "null"
            elif can_promote(then[key], now, format_version=_NEWEST_FORMAT):
                found[key] = "bounds"
        return found


@define
class ColumnFiles:
    """One column over some files, as it is added up.

    Attributes:
        field_id: The column's.
        type: Its type.
        file_count: How many files.
        row_count: Their rows.
        value_count: As `ColumnSums`.
        null_count: As `ColumnSums`.
        lower: As `ColumnSums`.
        upper: As `ColumnSums`.
        is_bounded: Whether every file with values gave both bounds.
        is_told: Whether any file says anything of it.
    """

    field_id: int
    type: DataType
    file_count: int = 0
    row_count: int = 0
    value_count: int | None = 0
    null_count: int | None = 0
    lower: Any = None
    upper: Any = None
    is_bounded: bool = True
    is_told: bool = False

    def add(self, file: FileChange, reading: str | None) -> None:
        """Take in a file.

        Args:
            file: It.
            reading: What it says of the column, as `Readings.of` gives it.
        """
        rows = file.record_count
        values = _of(file.value_counts, self.field_id)
        nulls = _of(file.null_value_counts, self.field_id)
        lower = _of(file.lower_bounds, self.field_id)
        upper = _of(file.upper_bounds, self.field_id)
        told = not (values is None and nulls is None and lower is None)
        if reading == "null" and not told:
            values = nulls = rows
            told = True
        self.is_told = self.is_told or told
        self.file_count += 1
        self.row_count += rows
        self.value_count = _plus(self.value_count, values)
        self.null_count = _plus(self.null_count, nulls)
        if self.is_bounded and (nulls is None or nulls < (rows if values is None else values)):
            usable = reading == "bounds"
            self._bound(self._value(lower, usable=usable), self._value(upper, usable=usable))

    def _bound(self, lower: Any, upper: Any) -> None:
        if lower is None or upper is None:
            self.lower = self.upper = None
            self.is_bounded = False
        elif self.lower is None:
            self.lower, self.upper = lower, upper
        else:
            self.lower, self.upper = min(self.lower, lower), max(self.upper, upper)

    def _value(self, text: str | None, *, usable: bool) -> Value | None:
        if text is None or not usable:
            return None
        try:
            return value_from_bytes(bytes.fromhex(text), self.type)
        except ValueError:
            # What is no bytes tells nothing.
            return None

    def summed(self, spec: Mapping[str, str]) -> ColumnSums:
        """Return the sums, as those of a partition."""
        return ColumnSums(
            spec=spec,
            field_id=self.field_id,
            file_count=self.file_count,
            value_count=self.value_count,
            null_count=self.null_count,
            lower=self.lower,
            upper=self.upper,
        )


class FilesSums:
    """Every column over some data files.

    Args:
        readings: What files of each schema say.
        files: The files to begin with.
    """

    def __init__(self, readings: Readings, files: Iterable[FileChange] = ()) -> None:
        self._readings = readings
        self.columns = {key: ColumnFiles(key, each) for key, each in readings.types.items()}
        for each in files:
            self.add(each)

    def add(self, file: FileChange) -> None:
        """Take in a data file."""
        reading = self._readings.of(file.schema_id)
        for key, each in self.columns.items():
            each.add(file, reading.get(key))


def _of(values: Any, field_id: int) -> Any:
    return values.get(field_id) if isinstance(values, dict) else None


def _plus(total: int | None, more: int | None) -> int | None:
    return None if total is None or more is None else total + more
