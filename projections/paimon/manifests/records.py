"""The records of Paimon's manifests, manifest lists and index manifests.

Each attribute is Paimon's field of the same name: `file_name` is `_FILE_NAME`. Partitions, keys
and least and greatest values are serialised BinaryRows, see `binary_row`.

Source: Paimon's ManifestEntry, DataFileMeta, ManifestFileMeta, SimpleStats, IndexManifestEntry.
"""

from __future__ import annotations

from typing import Literal

from attrs import frozen

from projections.paimon.rows.binary_row import EMPTY_ROW

FileKind = Literal["ADD", "DELETE"]

APPENDED, COMPACTED = 0, 1
"""What `DataFileMeta.file_source` says: written by a writer, or by a compaction."""


@frozen
class SimpleStats:
    """Least and greatest values and null counts of some columns, one for each, in order."""

    min_values: bytes = EMPTY_ROW
    max_values: bytes = EMPTY_ROW
    null_counts: tuple[int | None, ...] | None = ()


NO_STATS = SimpleStats()


@frozen(kw_only=True)
class DataFileMeta:
    """One data file.

    Attributes:
        file_name: Its extension says the format.
        file_size: Bytes.
        row_count: Rows.
        min_key: The least primary key, without partition columns; the empty row without one.
        max_key: As `min_key`.
        key_stats: Of the primary key's columns.
        value_stats: Of the columns that `value_stats_cols` names.
        min_sequence_number: The first row's; append tables count rows from 0.
        max_sequence_number: The last row's.
        schema_id: The schema that the file was written with.
        level: 0 in append tables.
        extra_files: Files that belong to it, such as indexes.
        creation_time: Milliseconds since 1970 of a wall clock without a zone; the ledger's is UTC.
        delete_row_count: Rows that retract others.
        embedded_file_index: A small index's bytes.
        file_source: `APPENDED` or `COMPACTED`.
        value_stats_cols: None means all columns in the schema's order, () none.
        external_path: The whole path where the file lies outside Paimon's own place for it.
        first_row_id: Where rows are tracked.
        write_cols: The columns in the file; None means all.
        write_cols_sequences: A sequence number for each of them.
    """

    file_name: str
    file_size: int
    row_count: int
    min_key: bytes = EMPTY_ROW
    max_key: bytes = EMPTY_ROW
    key_stats: SimpleStats = NO_STATS
    value_stats: SimpleStats = NO_STATS
    min_sequence_number: int = 0
    max_sequence_number: int = 0
    schema_id: int = 0
    level: int = 0
    extra_files: tuple[str, ...] = ()
    creation_time: int | None = None
    delete_row_count: int | None = None
    embedded_file_index: bytes | None = None
    file_source: int | None = None
    value_stats_cols: tuple[str, ...] | None = None
    external_path: str | None = None
    first_row_id: int | None = None
    write_cols: tuple[str, ...] | None = None
    write_cols_sequences: tuple[int, ...] | None = None


@frozen(kw_only=True)
class ManifestEntry:
    """A data file that came or went.

    `total_buckets` is -1 in append tables without buckets, whose `bucket` is 0.
    """

    kind: FileKind
    partition: bytes
    bucket: int
    total_buckets: int
    file: DataFileMeta


@frozen(kw_only=True)
class ManifestFileMeta:
    """One manifest, as a manifest list names it.

    `schema_id` is the highest of its files'; the least and greatest bucket, level and row id are
    None where a writer did not say.
    """

    file_name: str
    file_size: int
    num_added_files: int
    num_deleted_files: int
    partition_stats: SimpleStats
    schema_id: int
    min_bucket: int | None = None
    max_bucket: int | None = None
    min_level: int | None = None
    max_level: int | None = None
    min_row_id: int | None = None
    max_row_id: int | None = None


@frozen
class DeletionVectorRange:
    """Where in an index file one data file's deletion vector stands.

    Paimon calls the first three `f0`, `f1` and `f2`.
    """

    file_name: str
    offset: int
    length: int
    cardinality: int | None = None


@frozen(kw_only=True)
class GlobalIndex:
    """The rows and columns that a global index covers."""

    row_range_start: int
    row_range_end: int
    index_field_id: int
    extra_field_ids: tuple[int, ...] | None = None
    index_meta: bytes | None = None


@frozen(kw_only=True)
class IndexManifestEntry:
    """An index file that came or went; `index_type` is HASH, DELETION_VECTORS, ..."""

    kind: FileKind
    partition: bytes
    bucket: int
    index_type: str
    file_name: str
    file_size: int
    row_count: int
    deletions_vectors_ranges: tuple[DeletionVectorRange, ...] | None = None
    external_path: str | None = None
    global_index: GlobalIndex | None = None
