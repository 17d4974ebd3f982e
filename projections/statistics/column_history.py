"""Column statistics by partition and over time.

One row per column and partition: the statistics of its live data files. Where live delete files
remove rows, the row is marked as not exact: counts may be too high, and bounds too wide.

Counts could be folded as partitions' sums are; bounds could not, since a deleted file's extremes
cannot be subtracted. So both are computed from the live files.

Spark writes compressed sketches, which only newer readers know. Iceberg's Java and specification
use the plain form of the same sketch.

Source: Apache DataSketches, the preambles of compact theta sketches of serial versions 3 and 4.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from attrs import Factory, define, field, frozen
from msgspec import json

from ledger.events.snapshots import snapshot_events
from ledger.files.bounds import TRUNCATE_LENGTH
from ledger.files.change_lists import event_files
from ledger.history.older import TableLog, schemas_by_id
from ledger.model.errors import (
    InvalidChangeError,
    InvalidInputError,
    NotFoundError,
    UnsupportedError,
)
from ledger.model.file_change import FileChange
from ledger.model.schema import Schema, paths_of
from ledger.model.single_values import Value, encode_value
from ledger.model.transforms import field_types
from ledger.model.types import DataType, UuidType
from ledger.model.types.casts import can_promote
from ledger.model.types.text import format_type
from ledger.planning.bound_value import value_from_bytes
from ledger.table import Table
from ledger.table_at import TableAt
from ledger.table_handle import handle_of
from projections.manifest_files.lists import names_lists
from projections.statistics.engine_listed import EngineListedStatistics, merges_rows
from projections.statistics.partition_rendering import paimon_rendering_of, rendering_of

if TYPE_CHECKING:
    import pyarrow as pa


_NEWEST_FORMAT = 3


@frozen(kw_only=True)
class ColumnSums:
    """Statistics of one column in one partition.

    Attributes:
        spec: The partition.
        field_id: The column's.
        file_count: Number of live data files.
        value_count: Number of values, nulls included; None if a file lacks the count.
        null_count: Number of nulls; None if a file lacks the count.
        lower: Lower bound; None if a file with values lacks one.
        upper: Upper bound; None if a file with values lacks one.
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

    Columns without counts and bounds in any file are left out. Deletes are not subtracted: counts
    are of rows in files, and bounds may be wider than those of the remaining rows.

    Args:
        log: The table's log.
        at: The table at an instant.
    """
    rendering = paimon_rendering_of(at)
    readings = StatisticsReadability(log, at.schema)
    by_path: dict[str, tuple[Mapping[str, str], DataFilesAccumulator]] = {}
    for file in handle_of(at).engine_files_at(at.state):
        if file.content == "data":
            shown = rendering.spec(file.spec_id, json.encode(file.partition).decode())
            if shown.path not in by_path:
                by_path[shown.path] = dict(shown.items), DataFilesAccumulator(readings)
            by_path[shown.path][1].add(file)
    return tuple(
        each.to_column_sums(spec)
        for _, (spec, sums) in sorted(by_path.items())
        for _, each in sorted(sums.columns.items())
        if each.has_statistics
    )


class StatisticsReadability:
    """Readability of old files' statistics under a newer schema, whose types may differ.

    Args:
        log: The table's log.
        schema: The schema whose columns are requested.
    """

    def __init__(self, log: TableLog, schema: Schema) -> None:
        self._log = log
        self.types: Mapping[int, DataType] = field_types(schema)
        # Columns that read NULL where a file lacks them; for nested members the count is unknown.
        self._bare = {each.id for each in schema.fields if each.initial_default is None}
        self._found: dict[int, dict[int, str]] = {schema.id: dict.fromkeys(self.types, "bounds")}

    def of(self, schema_id: int) -> Mapping[int, str]:
        """Return, by field id, how a file's column is read: with `bounds`, or as all `null`.

        For a missing column only the counts are valid.
        """
        found = self._found.get(schema_id)
        if found is None:
            found = self._found[schema_id] = self._read(schema_id)
        return found

    def _read(self, schema_id: int) -> dict[int, str]:
        try:
            then = field_types(schemas_by_id(self._log, [schema_id])[schema_id])
        except NotFoundError:
            # Bounds under an unknown schema may have any type.
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
class ColumnAccumulator:
    """Accumulated statistics of one column over some files.

    Attributes:
        field_id: The column's.
        type: Its type.
        file_count: Number of files.
        row_count: Number of their rows.
        value_count: As `ColumnSums`.
        null_count: As `ColumnSums`.
        lower: As `ColumnSums`.
        upper: As `ColumnSums`.
        is_bounded: Whether every file with values had both bounds.
        has_statistics: Whether any file has statistics of it.
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
    has_statistics: bool = False

    def add(self, file: FileChange, reading: str | None) -> None:
        """Add a file.

        Args:
            file: The file.
            reading: How its column is read, from `StatisticsReadability.of`.
        """
        rows = file.record_count
        values = _get_by_field_id(file.value_counts, self.field_id)
        nulls = _get_by_field_id(file.null_value_counts, self.field_id)
        lower = _get_by_field_id(file.lower_bounds, self.field_id)
        upper = _get_by_field_id(file.upper_bounds, self.field_id)
        has_statistics = not (values is None and nulls is None and lower is None)
        if reading == "null" and not has_statistics:
            values = nulls = rows
            has_statistics = True
        self.has_statistics = self.has_statistics or has_statistics
        self.file_count += 1
        self.row_count += rows
        self.value_count = _add_unless_unknown(self.value_count, values)
        self.null_count = _add_unless_unknown(self.null_count, nulls)
        if self.is_bounded and (nulls is None or nulls < (rows if values is None else values)):
            usable = reading == "bounds"
            self._widen_bounds(
                self._decode_bound(lower, usable=usable), self._decode_bound(upper, usable=usable)
            )

    def _widen_bounds(self, lower: Any, upper: Any) -> None:
        if lower is None or upper is None:
            self.lower = self.upper = None
            self.is_bounded = False
        elif self.lower is None:
            self.lower, self.upper = lower, upper
        else:
            self.lower, self.upper = min(self.lower, lower), max(self.upper, upper)

    def _decode_bound(self, text: str | None, *, usable: bool) -> Value | None:
        if text is None or not usable:
            return None
        try:
            return value_from_bytes(bytes.fromhex(text), self.type)
        except ValueError:
            # Invalid bytes give no bound.
            return None

    def to_column_sums(self, spec: Mapping[str, str]) -> ColumnSums:
        """Return the sums as those of a partition."""
        return ColumnSums(
            spec=spec,
            field_id=self.field_id,
            file_count=self.file_count,
            value_count=self.value_count,
            null_count=self.null_count,
            lower=self.lower,
            upper=self.upper,
        )


class DataFilesAccumulator:
    """Accumulated statistics of every column over some data files.

    Args:
        readings: Readability of each schema's statistics.
        files: The initial files.
    """

    def __init__(self, readings: StatisticsReadability, files: Iterable[FileChange] = ()) -> None:
        self._readings = readings
        self.columns = {key: ColumnAccumulator(key, each) for key, each in readings.types.items()}
        for each in files:
            self.add(each)

    def add(self, file: FileChange) -> None:
        """Add a data file."""
        reading = self._readings.of(file.schema_id)
        for key, each in self.columns.items():
            each.add(file, reading.get(key))


def _get_by_field_id(values: Any, field_id: int) -> Any:
    return values.get(field_id) if isinstance(values, dict) else None


def _add_unless_unknown(total: int | None, more: int | None) -> int | None:
    return None if total is None or more is None else total + more


COLUMNS = {
    "version": "int64",
    "snapshot_id": "int64",
    "partition": "string",
    "column": "string",
    "field_id": "int64",
    "type": "string",
    "file_count": "int64",
    "row_count": "int64",
    "value_count": "int64",
    "null_count": "int64",
    "lower": "string",
    "upper": "string",
    "is_exact": "bool",
}
"""The columns of both tables, with their Arrow types.

`value_count` includes nulls; it, `null_count` and the bounds are NULL where a file lacks them.
Bounds are written as partition values are; those of floating point exclude NaN. `is_exact` is false
where files may hold deleted rows, and where a bound of text or bytes is so long that it may be
truncated.
"""

_EQUALITY_DELETES = "equality-deletes"


def column_statistics_at(table: Table, at: TableAt) -> pa.Table:
    """Return every column of every partition that has data files at an instant.

    Args:
        table: The table.
        at: The instant; columns and partitions are shown by its schema.

    Raises:
        NotFoundError: A manifest of an engine is missing.
        UnsupportedError: A snapshot of the ledger's own names an engine's manifest lists.
    """
    state = at.state
    live = _LivePartitions(handle_of(table).log, at)
    live.apply(at.files)
    there = sorted(path for path, each in live.partitions.items() if each.data)
    return _column_table(live.rows(there, state.version, state.last_snapshot_id))


def column_statistics_by_snapshot(table: Table, at: TableAt) -> pa.Table:
    """Return, for every snapshot up to an instant, the columns of the partitions that it changed.

    A row is valid until the next one of its partition. A partition without files has no values: its
    last rows have a `file_count` of 0.

    Args:
        table: The table.
        at: The instant; columns and partitions are shown by its schema.

    Raises:
        NotFoundError: A manifest of an engine is missing.
        UnsupportedError: A snapshot of the ledger's own names an engine's manifest lists.
        DamagedLogError: A commit or a list of file changes is missing or damaged.
    """
    if at.state.lists_files:
        changes = _changes_by_snapshot(handle_of(table).log, at)
    else:
        changes = EngineListedStatistics(handle_of(table), at).changes()
    live = _LivePartitions(handle_of(table).log, at)
    return _column_table(
        row
        for version, snapshot_id, files in changes
        for row in live.rows(live.apply(files), version, snapshot_id)
    )


def _changes_by_snapshot(
    log: TableLog, at: TableAt
) -> Iterator[tuple[int, int, Iterable[FileChange]]]:
    """Yield the version, the id and the changes of each snapshot up to an instant."""
    state = at.state
    for read in log.commits(0, state.version):
        for event in snapshot_events(read.commit):
            if event.snapshot_id > state.last_snapshot_id:
                return
            if names_lists(event):
                raise UnsupportedError(
                    f"snapshot {event.snapshot_id} names its engine's own manifest lists: its "
                    "files' column statistics are not in the ledger. Ask the engine"
                )
            files = event_files(log.store, log.layout, event)
            opened = log.personal.columns.opened(files)
            yield read.commit.version, event.snapshot_id, opened


def _column_table(rows: Iterable[dict[str, Any]]) -> pa.Table:
    import pyarrow as pa

    schema = pa.schema([(name, pa.type_for_alias(kind)) for name, kind in COLUMNS.items()])
    return pa.Table.from_pylist(list(rows), schema=schema)


@define
class _PartitionFiles:
    """A partition's live files, and the statistics of its data files."""

    sums: DataFilesAccumulator
    data: dict[str, FileChange] = Factory(dict)
    delete_count: int = 0


class _LivePartitions:
    """The live files, by partition.

    Args:
        log: The table's log.
        at: The instant with the schema of the shown columns and partitions.
    """

    def __init__(self, log: TableLog, at: TableAt) -> None:
        self.partitions: dict[str, _PartitionFiles] = {}
        self._readings = StatisticsReadability(log, at.schema)
        self._rendering = rendering_of(at)
        self._names = {key: ".".join(path) for path, key in paths_of(at.schema)}
        self._everywhere = int(merges_rows(at.state))
        # Imported here: its thread pool could not be imported while the process exits.
        from ledger.files.register import MetricsModes, metrics_modes

        try:
            self._modes = metrics_modes(at.schema)
        except InvalidChangeError:
            # An imported table may have modes of its writer's own.
            self._modes = MetricsModes()

    def apply(self, files: Iterable[FileChange]) -> list[str]:
        """Apply a snapshot's changes, and return the partitions that it changed, in order."""
        changed: dict[str, bool] = {}
        before = bool(self._everywhere)
        for file in files:
            path = self._partition_path(file)
            mine = self.partitions.get(path)
            if mine is None:
                mine = self.partitions[path] = _PartitionFiles(DataFilesAccumulator(self._readings))
            lost = False
            if file.content != "data":
                self._count_deletes(mine, file)
            elif file.kind == "ADD":
                # A file that is added again, as by a compaction of the log, counts once.
                lost = file.path in mine.data
                mine.data[file.path] = file
                mine.sums.add(file)
            else:
                lost = mine.data.pop(file.path, None) is not None
            changed[path] = changed.get(path, False) or lost
        for path, lost in changed.items():
            if lost:
                # Bounds without the file must be recomputed from the others.
                mine = self.partitions[path]
                mine.sums = DataFilesAccumulator(self._readings, mine.data.values())
        if bool(self._everywhere) != before:
            changed |= {each: False for each in self.partitions if each not in changed}
        return sorted(path for path, lost in changed.items() if lost or self.partitions[path].data)

    def _count_deletes(self, partition: _PartitionFiles, file: FileChange) -> None:
        sign = 1 if file.kind == "ADD" else -1
        if file.content == _EQUALITY_DELETES and not file.partition:
            self._everywhere += sign
        else:
            partition.delete_count += sign

    def _partition_path(self, file: FileChange) -> str:
        partition = json.encode(file.partition).decode()
        return self._rendering.spec(file.spec_id, partition).path

    def rows(
        self, paths: Iterable[str], version: int, snapshot_id: int
    ) -> Iterator[dict[str, Any]]:
        """Yield the current rows of some partitions."""
        for path in paths:
            mine = self.partitions[path]
            has_deletes = bool(self._everywhere or mine.delete_count)
            for key, each in sorted(mine.sums.columns.items()):
                if each.has_statistics or not mine.data:
                    yield {
                        "version": version,
                        "snapshot_id": snapshot_id,
                        "partition": path,
                        "column": self._names[key],
                        "field_id": key,
                        "type": format_type(each.type),
                        "file_count": each.file_count,
                        "row_count": each.row_count,
                        "value_count": each.value_count,
                        "null_count": each.null_count,
                        "lower": bound_text(each.lower, each.type),
                        "upper": bound_text(each.upper, each.type),
                        "is_exact": not (has_deletes or self._may_be_truncated(each)),
                    }

    def _may_be_truncated(self, column: ColumnAccumulator) -> bool:
        # Writers other than the ledger truncate, too: Iceberg's at 16, Delta's at 32 characters.
        length = min(self._modes.of(column.field_id).length or TRUNCATE_LENGTH, TRUNCATE_LENGTH)
        return not isinstance(column.type, UuidType) and any(
            isinstance(each, str | bytes) and len(each) >= length
            for each in (column.lower, column.upper)
        )


def bound_text(value: Value | None, data_type: DataType) -> str | None:
    """Return a bound in the text form of partition values.

    Example:
        >>> from ledger.model import types as t
        >>> bound_text(19000, t.DateType()), bound_text(1420, t.DecimalType(9, 2))
        ('2022-01-08', '14.20')
    """
    if value == 0.0 and isinstance(value, float):
        # As bounds, -0.0 and 0.0 are one value: writers put -0.0 before any zero.
        value = 0.0
    try:
        found = encode_value(value, data_type)
    except UnsupportedError:
        return None
    if isinstance(found, bool):
        return str(found).lower()
    return None if found is None else str(found)


_THETA_FAMILY = 3
_PLAIN, _COMPRESSED = 3, 4
_LEAST = 8
_READ_ONLY_COMPACT_ORDERED = 2 | 8 | 16
_HASH_BITS = 64


def decompress_sketch(sketch: bytes) -> bytes:
    """Return a compact theta sketch without compression; a plain one is unchanged.

    Raises:
        InvalidInputError: The bytes are not a compact theta sketch of a known version.

    Example:
        >>> two = bytes.fromhex("0104033f011acc930269cb8f136c80ff0b186cffee6f750648")
        >>> decompress_sketch(two).hex(" ", 8)
        '02030300001acc93 020000000000803f 857f40b689c7e534 17c11d528507017b'
    """
    if len(sketch) < _LEAST or sketch[2] != _THETA_FAMILY:
        raise InvalidInputError(f"{len(sketch)} bytes are not a theta sketch: read the data again")
    if sketch[1] == _PLAIN:
        return sketch
    if sketch[1] != _COMPRESSED:
        raise InvalidInputError(
            f"theta sketch version {sketch[1]} is unknown: use a newer lakeledger"
        )
    try:
        return _serialize_sketch(*_read(sketch), seed_hash=sketch[6:8])
    except (struct.error, ValueError, IndexError) as error:
        raise InvalidInputError(f"a theta sketch is truncated: {error}") from error


def _read(sketch: bytes) -> tuple[bytes, list[int]]:
    """Return theta's eight bytes, empty if every value was kept, and the hashes, ascending."""
    longs, bits, count_bytes = sketch[0], sketch[3], sketch[4]
    start = 8 * longs
    theta = sketch[8:start]
    count = int.from_bytes(sketch[start : start + count_bytes], "little")
    packed = sketch[start + count_bytes :]
    needed = (count * bits + 7) // 8
    if longs not in {1, 2} or not count or not 0 < bits < _HASH_BITS or len(packed) < needed:
        raise ValueError(f"{len(packed)} bytes for {count} hashes of {bits} bits")
    # The differences of adjacent hashes, from the highest bit on.
    stream = int.from_bytes(packed[:needed], "big") >> (8 * needed - count * bits)
    hashes, last = [], 0
    differences = [0] * count
    for place in range(count - 1, -1, -1):
        differences[place] = stream & ((1 << bits) - 1)
        stream >>= bits
    for each in differences:
        last += each
        hashes.append(last)
    return theta, hashes


def _serialize_sketch(theta: bytes, hashes: list[int], *, seed_hash: bytes) -> bytes:
    head = bytes((3 if theta else 2, _PLAIN, _THETA_FAMILY, 0, 0, _READ_ONLY_COMPACT_ORDERED))
    counted = struct.pack("<if", len(hashes), 1.0)
    return head + seed_hash + counted + theta + struct.pack(f"<{len(hashes)}Q", *hashes)
