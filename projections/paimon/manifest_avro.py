"""Avro bytes and records of manifests, manifest lists and index manifests.

Writing is deterministic: the same records and sync marker give the same bytes. Reading accepts
files of Java, pypaimon and others: fields are matched by name, unknown ones ignored, missing
nullable ones are None.

Source: the schemas inside files that Paimon's Java wrote; AvroSchemaConverter.

Each attribute is Paimon's field of the same name: `file_name` is `_FILE_NAME`. Partitions, keys
and minimum and maximum values are serialised BinaryRows, see `binary_row`.

Source: Paimon's ManifestEntry, DataFileMeta, ManifestFileMeta, SimpleStats, IndexManifestEntry.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any, Literal, TypeVar

import attrs
import msgspec
from attrs import frozen

from ledger.model.errors import DamagedLogError, UnsupportedError
from projections.manifest_files.container import read_container, write_container
from projections.paimon.binary_row import EMPTY_ROW

FileKind = Literal["ADD", "DELETE"]

APPENDED, COMPACTED = 0, 1
"""Values of `DataFileMeta.file_source`: written by a writer, or by a compaction."""


@frozen
class SimpleStats:
    """Minimum and maximum values and null counts, one each per column, in order."""

    min_values: bytes = EMPTY_ROW
    max_values: bytes = EMPTY_ROW
    null_counts: tuple[int | None, ...] | None = ()


NO_STATS = SimpleStats()


@frozen(kw_only=True)
class DataFileMeta:
    """Metadata of one data file.

    Attributes:
        file_name: Its extension is the file format.
        file_size: Bytes.
        row_count: Rows.
        min_key: The smallest primary key, without partition columns; the empty row without one.
        max_key: As `min_key`.
        key_stats: Statistics of the primary key's columns.
        value_stats: Statistics of the columns in `value_stats_cols`.
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
        external_path: The absolute path of a file outside Paimon's own folder for it.
        first_row_id: The first row's id, where rows are tracked.
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
    """An added or deleted data file.

    `total_buckets` is -1 in append tables without buckets, whose `bucket` is 0.
    """

    kind: FileKind
    partition: bytes
    bucket: int
    total_buckets: int
    file: DataFileMeta


@frozen(kw_only=True)
class ManifestFileMeta:
    """One manifest, as an entry of a manifest list.

    `schema_id` is the highest of its files'; the minimum and maximum bucket, level and row id are
    None where a writer left them out.
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
    """Byte range of one data file's deletion vector in an index file.

    Paimon calls the first three `f0`, `f1` and `f2`.
    """

    file_name: str
    offset: int
    length: int
    cardinality: int | None = None


@frozen(kw_only=True)
class GlobalIndex:
    """Rows and columns that a global index covers."""

    row_range_start: int
    row_range_end: int
    index_field_id: int
    extra_field_ids: tuple[int, ...] | None = None
    index_meta: bytes | None = None


@frozen(kw_only=True)
class IndexManifestEntry:
    """An added or deleted index file; `index_type` is HASH, DELETION_VECTORS, ..."""

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


MANIFEST_VERSION = 2
INDEX_MANIFEST_VERSION = 1

_KINDS = ("ADD", "DELETE")
_VECTOR_NAMES = {"file_name": "f0", "offset": "f1", "length": "f2"}
_VECTOR_ATTRIBUTES = {avro: ours for ours, avro in _VECTOR_NAMES.items()}
_Record = TypeVar("_Record", ManifestEntry, ManifestFileMeta, IndexManifestEntry)


def write_manifest(entries: Iterable[ManifestEntry], *, sync_marker: bytes) -> bytes:
    """Return a manifest file.

    Args:
        entries: In order.
        sync_marker: 16 bytes, see `write_container`.

    Raises:
        ValueError: The sync marker has another length.
    """
    return _write_records(MANIFEST, entries, MANIFEST_VERSION, sync_marker)


def read_manifest(body: bytes, file: str) -> tuple[ManifestEntry, ...]:
    """Return a manifest's entries, in order.

    Args:
        body: The whole file.
        file: Its name, for errors.

    Raises:
        DamagedLogError: It is no manifest, or is truncated or changed.
        MissingDependencyError: The package for the file's codec is not installed.
        UnsupportedError: Its records have an unknown version.
    """
    return _read_records(body, file, ManifestEntry, MANIFEST_VERSION)


def write_manifest_list(manifests: Iterable[ManifestFileMeta], *, sync_marker: bytes) -> bytes:
    """Return a manifest list file; as `write_manifest`. An empty list is valid, too."""
    return _write_records(MANIFEST_LIST, manifests, MANIFEST_VERSION, sync_marker)


def read_manifest_list(body: bytes, file: str) -> tuple[ManifestFileMeta, ...]:
    """Return the manifests that a list names; arguments and errors as `read_manifest`."""
    return _read_records(body, file, ManifestFileMeta, MANIFEST_VERSION)


def write_index_manifest(entries: Iterable[IndexManifestEntry], *, sync_marker: bytes) -> bytes:
    """Return an index manifest file; as `write_manifest`."""
    return _write_records(INDEX_MANIFEST, entries, INDEX_MANIFEST_VERSION, sync_marker)


def read_index_manifest(body: bytes, file: str) -> tuple[IndexManifestEntry, ...]:
    """Return an index manifest's entries; arguments and errors as `read_manifest`."""
    return _read_records(body, file, IndexManifestEntry, INDEX_MANIFEST_VERSION)


def _write_records(
    schema: dict[str, Any], records: Iterable[Any], version: int, sync_marker: bytes
) -> bytes:
    rows: Iterator[dict[str, Any]] = ({"_VERSION": version, **_to_avro(each)} for each in records)
    return write_container(schema, rows, sync_marker=sync_marker)


def _to_avro(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_to_avro(each) for each in value]
    kind: object = type(value)
    names = _avro_field_names(kind)
    if names is None:
        return value
    record = {avro: _to_avro(getattr(value, name)) for name, avro in names}
    if "_KIND" in record:
        record["_KIND"] = _KINDS.index(record["_KIND"])
    return record


@cache
def _avro_field_names(kind: type) -> tuple[tuple[str, str], ...] | None:
    """Return the names of a record's fields here and in Avro; None for other types."""
    if not attrs.has(kind):
        return None
    said = _VECTOR_NAMES if issubclass(kind, DeletionVectorRange) else {}
    names = [each.name for each in attrs.fields(kind)]
    return tuple((name, said.get(name, f"_{name.upper()}")) for name in names)


def _read_records(
    body: bytes, file: str, record: type[_Record], version: int
) -> tuple[_Record, ...]:
    return tuple(
        _convert_record(each, file, record, version) for each in read_container(body, file)
    )


def _convert_record(
    found: dict[str, Any], file: str, record: type[_Record], version: int
) -> _Record:
    if found.get("_VERSION") != version:
        raise UnsupportedError(
            f"{file} holds records of version {found.get('_VERSION')!r}, and only version "
            f"{version} is supported: read it with the Paimon that wrote it"
        )
    try:
        return msgspec.convert(_from_avro(found), record)
    except (msgspec.ValidationError, IndexError) as error:
        raise DamagedLogError(
            f"{file} holds a record that is no {record.__name__}: {error}; compare its schema "
            "with another file's",
            file,
        ) from error


def _from_avro(value: Any) -> Any:
    if isinstance(value, list):
        return [_from_avro(each) for each in value]
    if not isinstance(value, dict):
        return value
    record = {
        _VECTOR_ATTRIBUTES.get(name, name.removeprefix("_").lower()): _from_avro(each)
        for name, each in value.items()
        # A map has keys of other types only where it is not a record.
        if isinstance(name, str)
    }
    if isinstance(record.get("kind"), int):
        record["kind"] = _KINDS[record["kind"]]
    return record


ROOT_NAME = "org.apache.paimon.avro.generated.record"

_Schema = dict[str, Any]


def _record_schema(name: str, *fields: _Schema) -> _Schema:
    return {"type": "record", "name": name, "fields": list(fields)}


def _field_schema(name: str, data_type: Any) -> _Schema:
    return {"name": name, "type": data_type}


def _nullable_field(name: str, data_type: Any) -> _Schema:
    return {"name": name, "type": ["null", data_type], "default": None}


def _array_schema(items: Any) -> _Schema:
    return {"type": "array", "items": items}


def _stats_field(parent: str, name: str) -> _Schema:
    return _field_schema(
        name,
        _record_schema(
            f"{parent}_{name}",
            _field_schema("_MIN_VALUES", "bytes"),
            _field_schema("_MAX_VALUES", "bytes"),
            _nullable_field("_NULL_COUNTS", _array_schema(["null", "long"])),
        ),
    )


_FILE = f"{ROOT_NAME}__FILE"

MANIFEST: _Schema = _record_schema(
    ROOT_NAME,
    _field_schema("_VERSION", "int"),
    _field_schema("_KIND", "int"),
    _field_schema("_PARTITION", "bytes"),
    _field_schema("_BUCKET", "int"),
    _field_schema("_TOTAL_BUCKETS", "int"),
    _field_schema(
        "_FILE",
        _record_schema(
            _FILE,
            _field_schema("_FILE_NAME", "string"),
            _field_schema("_FILE_SIZE", "long"),
            _field_schema("_ROW_COUNT", "long"),
            _field_schema("_MIN_KEY", "bytes"),
            _field_schema("_MAX_KEY", "bytes"),
            _stats_field(_FILE, "_KEY_STATS"),
            _stats_field(_FILE, "_VALUE_STATS"),
            _field_schema("_MIN_SEQUENCE_NUMBER", "long"),
            _field_schema("_MAX_SEQUENCE_NUMBER", "long"),
            _field_schema("_SCHEMA_ID", "long"),
            _field_schema("_LEVEL", "int"),
            _field_schema("_EXTRA_FILES", _array_schema("string")),
            _nullable_field("_CREATION_TIME", {"type": "long", "logicalType": "timestamp-millis"}),
            _nullable_field("_DELETE_ROW_COUNT", "long"),
            _nullable_field("_EMBEDDED_FILE_INDEX", "bytes"),
            _nullable_field("_FILE_SOURCE", "int"),
            _nullable_field("_VALUE_STATS_COLS", _array_schema("string")),
            _nullable_field("_EXTERNAL_PATH", "string"),
            _nullable_field("_FIRST_ROW_ID", "long"),
            _nullable_field("_WRITE_COLS", _array_schema("string")),
            _nullable_field("_WRITE_COLS_SEQUENCES", _array_schema("long")),
        ),
    ),
)

MANIFEST_LIST: _Schema = _record_schema(
    ROOT_NAME,
    _field_schema("_VERSION", "int"),
    _field_schema("_FILE_NAME", "string"),
    _field_schema("_FILE_SIZE", "long"),
    _field_schema("_NUM_ADDED_FILES", "long"),
    _field_schema("_NUM_DELETED_FILES", "long"),
    _stats_field(ROOT_NAME, "_PARTITION_STATS"),
    _field_schema("_SCHEMA_ID", "long"),
    _nullable_field("_MIN_BUCKET", "int"),
    _nullable_field("_MAX_BUCKET", "int"),
    _nullable_field("_MIN_LEVEL", "int"),
    _nullable_field("_MAX_LEVEL", "int"),
    _nullable_field("_MIN_ROW_ID", "long"),
    _nullable_field("_MAX_ROW_ID", "long"),
)

_DELETION_VECTOR = _record_schema(
    f"{ROOT_NAME}__DELETIONS_VECTORS_RANGES",
    _field_schema("f0", "string"),
    _field_schema("f1", "int"),
    _field_schema("f2", "int"),
    _nullable_field("_CARDINALITY", "long"),
)

_GLOBAL_INDEX = _record_schema(
    f"{ROOT_NAME}__GLOBAL_INDEX",
    _field_schema("_ROW_RANGE_START", "long"),
    _field_schema("_ROW_RANGE_END", "long"),
    _field_schema("_INDEX_FIELD_ID", "int"),
    _nullable_field("_EXTRA_FIELD_IDS", _array_schema("int")),
    _nullable_field("_INDEX_META", "bytes"),
)

INDEX_MANIFEST: _Schema = _record_schema(
    ROOT_NAME,
    _field_schema("_VERSION", "int"),
    _field_schema("_KIND", "int"),
    _field_schema("_PARTITION", "bytes"),
    _field_schema("_BUCKET", "int"),
    _field_schema("_INDEX_TYPE", "string"),
    _field_schema("_FILE_NAME", "string"),
    _field_schema("_FILE_SIZE", "long"),
    _field_schema("_ROW_COUNT", "long"),
    _nullable_field("_DELETIONS_VECTORS_RANGES", _array_schema(["null", _DELETION_VECTOR])),
    _nullable_field("_EXTERNAL_PATH", "string"),
    _nullable_field("_GLOBAL_INDEX", _GLOBAL_INDEX),
)
