"""Data files from the ledger's changes to Paimon's manifest entries and back.

Source: Paimon's ManifestEntry, ManifestFile and append writer; the ledger's wall clocks are UTC.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from msgspec import UNSET

from ledger.model.errors import InvalidInputError, UnsupportedError
from ledger.model.file_change import FileChange
from ledger.model.types import DataField, DataType
from projections.paimon.manifests.records import (
    APPENDED,
    DataFileMeta,
    ManifestEntry,
    ManifestFileMeta,
)
from projections.paimon.manifests.stats import bounds_of, row_stats, value_stats
from projections.paimon.rows.binary_row import decode_row, encode_row
from projections.paimon.rows.values import native, scalar

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
        columns: Those of the schema `change.schema_id`, for statistics.
        folder: Where Paimon looks for the file: `bucket_path` of its partition.
        external_path: The file's absolute location; used when it lies elsewhere.

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
            extra_files=_or(change.extra_files, ()),
            creation_time=change.creation_time,
            delete_row_count=0,
            file_source=APPENDED,
            external_path=None if change.path == f"{folder}/{name}" else external_path,
            first_row_id=_or(change.first_row_id, None),
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
    """Return the change that a manifest entry stands for.

    Args:
        entry: As a manifest has it.
        spec_types: The partition keys' types, in order.
        columns: Those of the schema `entry.file.schema_id`, for bounds and counts.
        folder: Where Paimon keeps the file: `bucket_path` of its partition.
        location: The table's; external paths below it become relative. None leaves them as they
            are.

    Raises:
        InvalidInputError: The partition's or the statistics' bytes do not fit their types.

    Example:
        >>> from projections.paimon.rows.binary_row import EMPTY_ROW
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
        path=_path(file, folder, location),
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
    """Return how a manifest list names a manifest.

    Args:
        name: The manifest's file name.
        size: Its bytes.
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
    first_row_id, last_row_id = _row_ids(entries)
    return ManifestFileMeta(
        file_name=name,
        file_size=size,
        num_added_files=_count(entries, "ADD"),
        num_deleted_files=_count(entries, "DELETE"),
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
            f"file {change.path} holds {change.content}, which Paimon's manifests cannot say: "
            "compact the deletes into the data files first"
        )
    if not change.path.lower().endswith(f".{change.format.lower()}"):
        raise UnsupportedError(
            f"file {change.path} is {change.format} by another name, and Paimon knows a file's "
            f"format by its extension alone: rename it to end in .{change.format}"
        )


def _partition_row(change: FileChange, spec_types: Sequence[DataType]) -> bytes:
    if len(change.partition) != len(spec_types):
        raise InvalidInputError(
            f"file {change.path} has {len(change.partition)} partition values for "
            f"{len(spec_types)} partition keys: give one for each"
        )
    return encode_row(list(map(native, change.partition, spec_types)), spec_types)


def _path(file: DataFileMeta, folder: str, location: str | None) -> str:
    if file.external_path is None:
        return f"{folder}/{file.file_name}"
    if location is None:
        return file.external_path
    return file.external_path.removeprefix(location.rstrip("/") + "/")


def _row_ids(entries: Sequence[ManifestEntry]) -> tuple[int | None, int | None]:
    ranges: list[tuple[int, int]] = []
    for each in entries:
        first = each.file.first_row_id
        if first is None:
            return None, None
        ranges.append((first, first + each.file.row_count - 1))
    return min(first for first, _ in ranges), max(last for _, last in ranges)


def _count(entries: Sequence[ManifestEntry], kind: Literal["ADD", "DELETE"]) -> int:
    return sum(each.kind == kind for each in entries)


def _or(value: Any, default: Any) -> Any:
    return default if value is UNSET else value
