"""Manifests of a table: file changes as entries and back, and manifest lists.

Source: Paimon's ManifestEntry, ManifestFile, SimpleStats and append writer; Iceberg's bounds. The
ledger's wall clocks are UTC.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

from attrs import evolve
from msgspec import UNSET
from msgspec.structs import replace

from ledger.files.runs import Net, Placed
from ledger.history.older import schema_by_id, state_at_snapshot
from ledger.locations import below
from ledger.model import types as t
from ledger.model.errors import DamagedLogError, InvalidInputError, LedgerError, UnsupportedError
from ledger.model.file_change import FileChange
from ledger.model.schema import Schema
from ledger.model.snapshot import Snapshot
from ledger.model.types import DataField, DataType
from ledger.state.table import TableState
from ledger.table_handle import TableHandle
from projections.outputs import Outputs
from projections.paimon.binary_row import MILLIS_PRECISION, decode_row, encode_row
from projections.paimon.manifest_avro import (
    APPENDED,
    NO_STATS,
    DataFileMeta,
    ManifestEntry,
    ManifestFileMeta,
    SimpleStats,
    read_manifest_list,
    write_manifest,
    write_manifest_list,
)
from projections.paimon.paths import (
    PaimonFileNames,
    SnapshotLines,
    Tile,
    bucket_path,
    manifest_path,
)
from projections.paimon.row_values import from_bound, native, scalar, to_bound
from projections.partition_text import PartitionText, key_places

_Bounds = tuple[Any, Any, int]
_Counts = dict[int, int]
_Texts = dict[int, str]

# Bytes are left out: Paimon's readers disagree on whether they are signed.
_WITH_STATS = (
    t.BooleanType,
    t.TinyIntType,
    t.SmallIntType,
    t.IntType,
    t.BigIntType,
    t.FloatType,
    t.DoubleType,
    t.DecimalType,
    t.CharType,
    t.VarCharType,
    t.DateType,
    t.TimeType,
    t.TimestampType,
    t.LocalZonedTimestampType,
)
_MILLISECOND = dt.timedelta(milliseconds=1)


def value_stats(
    change: FileChange, columns: Sequence[t.DataField]
) -> tuple[tuple[str, ...], SimpleStats]:
    """Return the columns of a file that have statistics, and the statistics.

    A column needs its null count and either both bounds or only nulls. Truncated bounds (a lower
    one down, an upper one up) are still valid, and so are timestamps rounded outwards to the
    precision of a row; a bound that cannot be decoded or stored leaves its column out.

    Args:
        change: The file.
        columns: The columns of the file's schema; nested ones have no statistics.

    Example:
        >>> columns = [t.DataField(0, "a", t.IntType()), t.DataField(1, "b", t.STRING)]
        >>> change = FileChange(
        ...     path="x", record_count=2, file_size_in_bytes=1, null_value_counts={0: 1},
        ...     lower_bounds={0: "01000000"}, upper_bounds={0: "01000000"},
        ... )
        >>> names, stats = value_stats(change, columns)
        >>> names, decode_row(stats.min_values, [t.IntType()]), stats.null_counts
        (('a',), (1,), (1,))
    """
    known: list[tuple[t.DataField, _Bounds]] = []
    for column in columns:
        bounds = _column_bounds(change, column)
        if bounds is not None:
            known.append((column, bounds))
    if not known:
        return (), NO_STATS
    types = [column.type for column, _ in known]
    return tuple(column.name for column, _ in known), SimpleStats(
        min_values=encode_row([low for _, (low, _, _) in known], types),
        max_values=encode_row([high for _, (_, high, _) in known], types),
        null_counts=tuple(nulls for _, (_, _, nulls) in known),
    )


def bounds_of(file: DataFileMeta, columns: Sequence[t.DataField]) -> tuple[_Counts, _Texts, _Texts]:
    """Return a file's null counts, lower and upper bounds by field id.

    Args:
        file: The file's entry in a manifest.
        columns: The columns of the file's schema.

    Raises:
        InvalidInputError: The statistics' bytes do not fit the columns, or an unknown one is named.
    """
    covered = _columns_with_statistics(file, columns)
    types = [each.type for each in covered]
    if not covered:
        return {}, {}, {}
    lows = decode_row(file.value_stats.min_values, types)
    highs = decode_row(file.value_stats.max_values, types)
    counts = file.value_stats.null_counts or ()
    return (
        {each.id: nulls for each, nulls in zip(covered, counts, strict=False) if nulls is not None},
        _encode_bounds(covered, lows),
        _encode_bounds(covered, highs),
    )


def row_stats(rows: Sequence[Sequence[Any]], types: Sequence[t.DataType]) -> SimpleStats:
    """Return the minimum, maximum and number of nulls of each field of some rows.

    Example:
        >>> stats = row_stats([(2,), (None,), (1,)], [t.IntType()])
        >>> decode_row(stats.min_values, [t.IntType()]), stats.null_counts
        ((1,), (1,))
    """
    columns = [[row[index] for row in rows] for index in range(len(types))]
    present = [[each for each in column if each is not None] for column in columns]
    return SimpleStats(
        min_values=encode_row(
            [min(each, key=_java_order, default=None) for each in present], types
        ),
        max_values=encode_row(
            [max(each, key=_java_order, default=None) for each in present], types
        ),
        null_counts=tuple(
            len(column) - len(values) for column, values in zip(columns, present, strict=True)
        ),
    )


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _java_order(value: Any) -> Any:
    # Java's order: -0.0 below 0.0, NaN above everything.
    if isinstance(value, float):
        return (math.isnan(value), value, math.copysign(1, value))
    return value


def _column_bounds(change: FileChange, column: t.DataField) -> _Bounds | None:
    nulls = _mapping_or_empty(change.null_value_counts).get(column.id)
    if nulls is None or not isinstance(column.type, _WITH_STATS):
        return None
    if nulls == change.record_count:
        return None, None, nulls
    lower = _mapping_or_empty(change.lower_bounds).get(column.id)
    upper = _mapping_or_empty(change.upper_bounds).get(column.id)
    if lower is None or upper is None:
        return None
    try:
        low = from_bound(lower, column.type)
        high = _round_up(from_bound(upper, column.type), column.type)
        encode_row([low, high], [column.type, column.type])
    except (LedgerError, OverflowError):
        return None
    return None if _is_nan(low) or _is_nan(high) else (low, high, nulls)


def _round_up(value: Any, data_type: t.DataType) -> Any:
    """Return the smallest value of a row's precision that is not below a bound."""
    match data_type:
        case (
            t.TimestampType(precision=precision) | t.LocalZonedTimestampType(precision=precision)
        ) if precision <= MILLIS_PRECISION:
            lost = value.microsecond % 1000
            return value + (_MILLISECOND - dt.timedelta(microseconds=lost)) if lost else value
        case t.TimeType() if value.microsecond % 1000:
            moment = dt.datetime.combine(dt.date.min, value) + _MILLISECOND
            if moment.date() != dt.date.min:
                raise InvalidInputError(f"{value} rounds up to the next day")
            return moment.time()
        case _:
            return value


def _columns_with_statistics(
    file: DataFileMeta, columns: Sequence[t.DataField]
) -> list[t.DataField]:
    if file.value_stats_cols is None:
        # Some writers say "all columns" but store none: an empty row has no statistics.
        return [] if file.value_stats == NO_STATS else list(columns)
    by_name = {each.name: each for each in columns}
    unknown = [name for name in file.value_stats_cols if name not in by_name]
    if unknown:
        raise InvalidInputError(
            f"file {file.file_name} has statistics of {unknown[0]!r}, which its schema "
            f"{file.schema_id} does not have: give the columns of that schema"
        )
    return [by_name[name] for name in file.value_stats_cols]


def _encode_bounds(columns: Sequence[t.DataField], values: Sequence[Any]) -> _Texts:
    return {
        column.id: to_bound(value, column.type)
        for column, value in zip(columns, values, strict=True)
        if value is not None
    }


def _mapping_or_empty(values: Any) -> Mapping[int, Any]:
    return {} if values is UNSET else values


UNBUCKETED = -1
"""`_TOTAL_BUCKETS` of an append table without buckets."""


def manifest_entry(
    change: FileChange,
    *,
    spec_types: Sequence[DataType],
    columns: Sequence[DataField],
    folder: str,
    external_path: str,
) -> ManifestEntry:
    """Return the manifest entry of an append table's file.

    Args:
        change: Its partition has one value for each partition key.
        spec_types: The partition keys' types, in order.
        columns: The columns of the schema `change.schema_id`, for statistics.
        folder: Paimon's folder for the file: `bucket_path` of its partition.
        external_path: The file's absolute location; used when it is elsewhere.

    Raises:
        InvalidInputError: The partition does not fit its types.
        UnsupportedError: Paimon has no such file: a delete file, or one whose name does not end in
            its format.

    Example:
        >>> change = FileChange(path="bucket-0/a.parquet", record_count=2, file_size_in_bytes=900)
        >>> entry = manifest_entry(
        ...     change, spec_types=[], columns=[], folder="bucket-0", external_path="/t/a.parquet"
        ... )
        >>> entry.file.file_name, entry.file.external_path, entry.total_buckets
        ('a.parquet', None, -1)
    """
    _check_expressible(change)
    names, stats = value_stats(change, columns)
    name = change.path.rpartition("/")[2]
    return ManifestEntry(
        kind=change.kind,
        partition=_partition_row(change, spec_types),
        bucket=change.bucket,
        total_buckets=UNBUCKETED,
        file=DataFileMeta(
            file_name=name,
            file_size=change.file_size_in_bytes,
            row_count=change.record_count,
            value_stats=stats,
            value_stats_cols=names,
            max_sequence_number=max(change.record_count - 1, 0),
            schema_id=change.schema_id,
            level=change.level,
            extra_files=_value_or_default(change.extra_files, ()),
            creation_time=change.creation_time,
            delete_row_count=0,
            file_source=APPENDED,
            external_path=None if change.path == f"{folder}/{name}" else external_path,
            first_row_id=_value_or_default(change.first_row_id, None),
        ),
    )


def file_change(
    entry: ManifestEntry,
    *,
    spec_types: Sequence[DataType],
    columns: Sequence[DataField],
    folder: str,
    location: str | None = None,
) -> FileChange:
    """Return the file change of a manifest entry.

    Args:
        entry: The entry in a manifest.
        spec_types: The partition keys' types, in order.
        columns: The columns of the schema `entry.file.schema_id`, for bounds and counts.
        folder: Paimon's folder for the file: `bucket_path` of its partition.
        location: The table's; external paths below it become relative. None keeps them absolute.

    Raises:
        InvalidInputError: The partition's or the statistics' bytes do not fit their types.

    Example:
        >>> from projections.paimon.binary_row import EMPTY_ROW
        >>> meta = DataFileMeta(file_name="a.orc", file_size=900, row_count=2)
        >>> entry = ManifestEntry(
        ...     kind="ADD", partition=EMPTY_ROW, bucket=0, total_buckets=-1, file=meta
        ... )
        >>> change = file_change(entry, spec_types=[], columns=[], folder="bucket-0")
        >>> change.path, change.format
        ('bucket-0/a.orc', 'orc')
    """
    file = entry.file
    partition = decode_row(entry.partition, spec_types)
    null_counts, lower, upper = bounds_of(file, columns)
    return FileChange(
        kind=entry.kind,
        path=_file_path(file, folder, location),
        partition=tuple(map(scalar, partition, spec_types)),
        schema_id=file.schema_id,
        record_count=file.row_count,
        file_size_in_bytes=file.file_size,
        creation_time=file.creation_time or 0,
        format=file.file_name.rpartition(".")[2].lower(),
        bucket=entry.bucket,
        level=file.level,
        value_counts=dict.fromkeys(null_counts, file.row_count) or UNSET,
        null_value_counts=null_counts or UNSET,
        lower_bounds=lower or UNSET,
        upper_bounds=upper or UNSET,
        first_row_id=UNSET if file.first_row_id is None else file.first_row_id,
        extra_files=file.extra_files or UNSET,
    )


def manifest_file_meta(
    name: str,
    size: int,
    entries: Sequence[ManifestEntry],
    *,
    partition_types: Sequence[DataType],
) -> ManifestFileMeta:
    """Return a manifest's entry in a manifest list.

    Args:
        name: The manifest's file name.
        size: Its size in bytes.
        entries: All of its entries.
        partition_types: The partition keys' types, in order.

    Raises:
        InvalidInputError: It has no entries, or a partition does not fit the types.
    """
    if not entries:
        raise InvalidInputError(f"manifest {name} has no entries: leave it out of the list")
    decoded = {row: decode_row(row, partition_types) for row in {e.partition for e in entries}}
    partitions = [decoded[each.partition] for each in entries]
    buckets = [each.bucket for each in entries]
    levels = [each.file.level for each in entries]
    first_row_id, last_row_id = _row_id_range(entries)
    return ManifestFileMeta(
        file_name=name,
        file_size=size,
        num_added_files=_count_kind(entries, "ADD"),
        num_deleted_files=_count_kind(entries, "DELETE"),
        partition_stats=row_stats(partitions, partition_types),
        schema_id=max(each.file.schema_id for each in entries),
        min_bucket=min(buckets),
        max_bucket=max(buckets),
        min_level=min(levels),
        max_level=max(levels),
        min_row_id=first_row_id,
        max_row_id=last_row_id,
    )


def _check_expressible(change: FileChange) -> None:
    if change.content != "data":
        raise UnsupportedError(
            f"file {change.path} holds {change.content}, which Paimon's manifests cannot express: "
            "compact the deletes into the data files first"
        )
    if change.sort_order_id:
        raise UnsupportedError(
            f"file {change.path} has sort order {change.sort_order_id}, which Paimon's manifests "
            "cannot express: add a file without one"
        )
    if not change.path.lower().endswith(f".{change.format.lower()}"):
        raise UnsupportedError(
            f"file {change.path} is {change.format} by another name, and Paimon derives a file's "
            f"format from its extension alone: rename it to end in .{change.format}"
        )


def _partition_row(change: FileChange, spec_types: Sequence[DataType]) -> bytes:
    if len(change.partition) != len(spec_types):
        raise InvalidInputError(
            f"file {change.path} has {len(change.partition)} partition values for "
            f"{len(spec_types)} partition keys: give one for each"
        )
    return encode_row(list(map(native, change.partition, spec_types)), spec_types)


def _file_path(file: DataFileMeta, folder: str, location: str | None) -> str:
    if file.external_path is None:
        return f"{folder}/{file.file_name}"
    if location is None:
        return file.external_path
    return file.external_path.removeprefix(location.rstrip("/") + "/")


def _row_id_range(entries: Sequence[ManifestEntry]) -> tuple[int | None, int | None]:
    ranges: list[tuple[int, int]] = []
    for each in entries:
        first = each.file.first_row_id
        if first is None:
            return None, None
        ranges.append((first, first + each.file.row_count - 1))
    return min(first for first, _ in ranges), max(last for _, last in ranges)


def _count_kind(entries: Sequence[ManifestEntry], kind: Literal["ADD", "DELETE"]) -> int:
    return sum(each.kind == kind for each in entries)


def _value_or_default(value: Any, default: Any) -> Any:
    return default if value is UNSET else value


class ManifestWriter:
    """Writer of the manifests that snapshots read, each once.

    Args:
        table: The table that has the log.
        names: Names of the files.
        outputs: Destination of the files.
        known: Manifests of earlier snapshots that the next ones read again, by name.
        lines: Lines of the snapshots; the reader of the log adds the rollbacks.
        projected: The newest snapshot whose files an earlier run wrote; 0 for none.
    """

    def __init__(
        self,
        table: TableHandle,
        names: PaimonFileNames,
        outputs: Outputs,
        *,
        known: dict[str, ManifestFileMeta | None],
        lines: SnapshotLines,
        projected: int,
    ) -> None:
        self._table = table
        self._names = names
        self._outputs = outputs
        self.known = dict(known)
        self._lines = lines
        self._projected = projected
        self.versions: dict[int, int] = {}
        self._schemas: dict[int, Schema] = {}
        self._key_places: dict[tuple[int, int], tuple[int, ...]] = {}

    def learn_schema(self, schema: Schema) -> None:
        """Cache a schema, so that the history need not be searched for it."""
        self._schemas[schema.id] = schema

    def lists(self, snapshot_id: int) -> tuple[bytes, bytes]:
        """Return a snapshot's base and delta list, after writing every manifest in them."""
        keep = self._outputs.point if snapshot_id <= self._projected else self._outputs.put
        bodies = self._list_bodies(
            snapshot_id, [*map(self._tile_manifest, self._lines.tiles(snapshot_id))]
        )
        for name, body in zip(self._list_names(snapshot_id), bodies, strict=True):
            keep(manifest_path(name), body)
        return bodies

    def named(self, snapshot: Snapshot, lists: tuple[bytes, bytes] | None = None) -> Snapshot:
        """Return a snapshot with its lists, after writing all that it names.

        Args:
            snapshot: As the log has it.
            lists: Its base and delta list, where they exist already.
        """
        base, delta = lists or self.lists(snapshot.id)
        base_name, delta_name = self._list_names(snapshot.id)
        return evolve(
            snapshot,
            uuid=snapshot.uuid or self._names.snapshot_uuid(snapshot.id),
            base_manifest_list=base_name,
            base_manifest_list_size=len(base),
            delta_manifest_list=delta_name,
            delta_manifest_list_size=len(delta),
        )

    def restore_lists(self, state: TableState) -> tuple[bytes, bytes] | None:
        """Return the lists of a state's snapshot as an earlier run wrote them, and cache them.

        They are accepted only if they equal what the ledger would write; otherwise the result is
        None.
        """
        snapshot_id = state.last_snapshot_id
        if snapshot_id > self._projected:
            return None
        found = [self._outputs.read(manifest_path(n)) for n in self._list_names(snapshot_id)]
        base, delta = found
        if base is None or delta is None:
            return None
        try:
            metas = {
                each.file_name: each
                for body in (base, delta)
                for each in read_manifest_list(body, f"a list of snapshot {snapshot_id}")
            }
        except (DamagedLogError, UnsupportedError):
            return None
        names = [self._names.tile(each) for each in self._lines.tiles(snapshot_id)]
        files = sum(each.num_added_files - each.num_deleted_files for each in metas.values())
        resolved_changes = [metas.get(name) for name in names]
        # A manifest without entries is not listed: the sum shows a wrong omission.
        is_whole = files == state.totals.file_count
        if not is_whole or self._list_bodies(snapshot_id, resolved_changes) != (base, delta):
            return None
        self.known.update(zip(names, resolved_changes, strict=True))
        return base, delta

    def list_paths(self, snapshot_id: int) -> Iterator[str]:
        """Yield the paths of a snapshot's lists, which no other snapshot reads."""
        return map(manifest_path, self._list_names(snapshot_id))

    def tile_path(self, tile: Tile) -> str:
        """Return the path of a tile's manifest."""
        return manifest_path(self._names.tile(tile))

    def prune_cache(self, snapshot_id: int) -> None:
        """Cache only the manifests that the snapshots after one may read."""
        names = {self._names.tile(each) for each in self._lines.tiles(snapshot_id)}
        self.known = {name: meta for name, meta in self.known.items() if name in names}

    def _list_names(self, snapshot_id: int) -> tuple[str, str]:
        return self._names.lists(snapshot_id)

    def _list_bodies(
        self, snapshot_id: int, metas: Sequence[ManifestFileMeta | None]
    ) -> tuple[bytes, bytes]:
        """Return a snapshot's lists of its manifests, given newest first."""
        own = 0 if self._lines.is_rollback(snapshot_id) else 1
        names = self._list_names(snapshot_id)
        return self._write_list(names[0], metas[own:]), self._write_list(names[1], metas[:own])

    def _write_list(self, name: str, metas: Sequence[ManifestFileMeta | None]) -> bytes:
        present = [each for each in reversed(metas) if each is not None]
        return write_manifest_list(present, sync_marker=self._names.sync_marker(name))

    def _tile_manifest(self, tile: Tile) -> ManifestFileMeta | None:
        name = self._names.tile(tile)
        if name not in self.known:
            net = Net()
            for begin, last in self._lines.runs(tile):
                first = begin
                if self._lines.is_rollback_start(begin):
                    state = state_at_snapshot(self._table.log, begin)
                    net = Net(self._table.live.placed_files_at_state(state).values())
                    first = begin + 1
                    if last == begin:
                        continue
                versions = self._snapshot_version(first), self._snapshot_version(last)
                net.apply(self._table.live.snapshot_changes(first, last, *versions))
            keep = self._outputs.point if tile.last <= self._projected else self._outputs.put
            self.known[name] = self._write_manifest(name, net.rows(), keep)
        return self.known[name]

    def _snapshot_version(self, snapshot_id: int) -> int:
        if snapshot_id not in self.versions:
            state = state_at_snapshot(self._table.log, snapshot_id)
            self.versions[snapshot_id] = state.version
        return self.versions[snapshot_id]

    def _write_manifest(
        self, name: str, rows: Iterable[Placed], keep: Callable[[str, bytes], None]
    ) -> ManifestFileMeta | None:
        """Write a manifest; one without entries is left out of every list."""
        resolved_changes = self._table.log.personal.columns.rendered(each.change for each in rows)
        changes = sorted(resolved_changes, key=_entry_sort_key)
        if not changes:
            return None
        entries = [self._to_manifest_entry(each) for each in changes]
        body = write_manifest(entries, sync_marker=self._names.sync_marker(name))
        keep(manifest_path(name), body)
        types = self._partition_types(self._schema_by_id(changes[0].schema_id))
        return manifest_file_meta(name, len(body), entries, partition_types=types)

    def _to_manifest_entry(self, change: FileChange) -> ManifestEntry:
        # The schema that it was written with, also for its deletion: both must have the same name.
        schema = self._schema_by_id(change.schema_id)
        places = self._partition_positions(change.schema_id, change.spec_id)
        change = replace(change, partition=tuple(change.partition[each] for each in places))
        spec = PartitionText.of(schema).spec(schema.partition_keys, change.partition)
        return manifest_entry(
            change,
            spec_types=self._partition_types(schema),
            columns=schema.fields,
            folder=bucket_path(spec, change.bucket),
            external_path=below(self._table.data_location, change.path),
        )

    def _partition_positions(self, schema_id: int, spec_id: int) -> tuple[int, ...]:
        """Return the positions of Paimon's partition values in files of a spec."""
        known = self._key_places.get((schema_id, spec_id))
        if known is None:
            spec = self._table.state.spec_by_id(spec_id)
            known = key_places(self._schema_by_id(schema_id), spec)
            self._key_places[schema_id, spec_id] = known
        return known

    @staticmethod
    def _partition_types(schema: Schema) -> list[DataType]:
        return [schema.field(name).type for name in schema.partition_keys]

    def _schema_by_id(self, schema_id: int) -> Schema:
        if schema_id not in self._schemas:
            self._schemas[schema_id] = schema_by_id(self._table.log, schema_id)
        return self._schemas[schema_id]


def _entry_sort_key(change: FileChange) -> tuple[str, str]:
    # Deletions of older files first, which suits a reader that scans from the top.
    return ("0" if change.kind == "DELETE" else "1", change.path)
