"""Avro bytes of manifests and manifest lists, format versions 1 to 3.

Equal records give equal bytes.

Source: the Iceberg table specification, "Manifests" and "Manifest Lists"; every field has its
id, by which readers find it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any

import msgspec

from projections.iceberg.manifest_entry import EXISTING, PartitionStruct, Piece, to_avro
from projections.iceberg.manifest_list import ManifestFile
from projections.iceberg.table_metadata import ROW_IDS_SINCE, SEQUENCES_SINCE
from projections.manifest_files.container import (
    EncodedBlock,
    EncodedRecord,
    build_copy_predicate,
    write_container,
    write_runs,
)

_CONTENTS = ("data", "deletes")


_BLOCK_BYTES = 4_096
"""Bytes per block. Removing files from a manifest decodes only the blocks that hold them."""


def write_manifest(
    pieces: Iterable[Piece],
    struct: PartitionStruct,
    *,
    content: int,
    schema: bytes,
    format_version: int,
    sync_marker: bytes,
) -> bytes:
    """Return a manifest's bytes; each block holds entries of one status.

    Args:
        pieces: Its entries in order; a copied block holds `EXISTING` ones of the same schema.
        struct: The partition struct of their spec.
        content: The content of the files: data (0) or deletes (1).
        schema: The table's current schema as JSON, for the header.
        format_version: 1, 2 or 3.
        sync_marker: 16 bytes, see `write_container`.
    """
    metadata = {
        "schema": schema.decode(),
        "schema-id": str(msgspec.json.decode(schema, type=_SchemaIdRecord).schema_id),
        "partition-spec": msgspec.json.encode(struct.spec.fields).decode(),
        "partition-spec-id": str(struct.spec.spec_id),
        "format-version": str(format_version),
    }
    if format_version >= SEQUENCES_SINCE:
        metadata["content"] = _CONTENTS[content]
    avro = manifest_schema_of(struct, format_version)
    runs = (
        _manifest_records(run, struct, avro, format_version)
        for _, run in groupby(pieces, _entry_status)
    )
    return write_runs(
        avro, runs, sync_marker=sync_marker, metadata=metadata, block_bytes=_BLOCK_BYTES
    )


def _entry_status(piece: Piece) -> int:
    return EXISTING if isinstance(piece, EncodedBlock) else piece.status


def _manifest_records(
    pieces: Iterable[Piece], struct: PartitionStruct, avro: Avro, format_version: int
) -> Iterator[dict[str, Any] | EncodedRecord | EncodedBlock]:
    fit: Callable[[EncodedRecord | EncodedBlock], bool] | None = None
    for each in pieces:
        if isinstance(each, EncodedBlock):
            yield each
            continue
        written = each.written
        if written is not None:
            fit = fit or build_copy_predicate(avro)
            if fit(written):
                yield written
                continue
        yield to_avro(each, struct, format_version=format_version)


class _SchemaIdRecord(msgspec.Struct, rename="kebab"):
    schema_id: int


def write_manifest_list(
    manifests: Iterable[ManifestFile],
    *,
    location: str,
    format_version: int,
    sync_marker: bytes,
    metadata: Mapping[str, str],
) -> bytes:
    """Return a manifest list's bytes.

    Args:
        manifests: The manifests in order.
        location: The table's location.
        format_version: 1, 2 or 3.
        sync_marker: 16 bytes, see `write_container`.
        metadata: Keys and values for the header.
    """
    records = (_manifest_list_record(each, location, format_version) for each in manifests)
    avro = manifest_list_schema(format_version)
    return write_container(avro, records, sync_marker=sync_marker, metadata=metadata)


def _manifest_list_record(each: ManifestFile, location: str, format_version: int) -> dict[str, Any]:
    record: dict[str, Any] = {
        "manifest_path": each.path if each.is_written_by_engine else f"{location}/{each.path}",
        "manifest_length": each.length,
        "partition_spec_id": each.part.spec_id,
        "added_snapshot_id": each.added_snapshot_id,
        "added_files_count": each.added_files,
        "existing_files_count": each.existing_files,
        "deleted_files_count": each.deleted_files,
        "added_rows_count": each.added_rows,
        "existing_rows_count": each.existing_rows,
        "deleted_rows_count": each.deleted_rows,
        "partitions": (
            None
            if each.partitions is None
            else [msgspec.structs.asdict(summary) for summary in each.partitions]
        ),
    }
    if format_version >= SEQUENCES_SINCE:
        record["content"] = 1 if each.part.content else 0
        record["sequence_number"] = each.sequence_number
        record["min_sequence_number"] = each.min_sequence_number
    if format_version >= ROW_IDS_SINCE:
        record["first_row_id"] = each.first_row_id
    return record


Avro = dict[str, Any]


def _required_field(field_id: int, name: str, kind: Any) -> Avro:
    return {"name": name, "type": kind, "field-id": field_id}


def _optional_field(field_id: int, name: str, kind: Any) -> Avro:
    return {"name": name, "type": ["null", kind], "default": None, "field-id": field_id}


def _list_type(element_id: int, kind: Any) -> Avro:
    return {"type": "array", "items": kind, "element-id": element_id}


def _integer_map_type(key_id: int, value_id: int, value: str) -> Avro:
    """Return a map with integer keys, which Avro writes as an array of pairs."""
    pair = {
        "type": "record",
        "name": f"k{key_id}_v{value_id}",
        "fields": [
            _required_field(key_id, "key", "int"),
            _required_field(value_id, "value", value),
        ],
    }
    return {"type": "array", "logicalType": "map", "items": pair}


def manifest_schema_of(struct: PartitionStruct, format_version: int) -> Avro:
    """Return the Avro schema of a manifest of a partition spec."""
    return manifest_schema(format_version, [each.avro_field() for each in struct.columns])


def manifest_schema(format_version: int, partition: list[Avro]) -> Avro:
    """Return the Avro schema of a manifest.

    Args:
        format_version: 1, 2 or 3.
        partition: The fields of the partition struct.
    """
    sequenced = format_version >= SEQUENCES_SINCE
    snapshot_id = _optional_field if sequenced else _required_field
    fields = [_required_field(0, "status", "int"), snapshot_id(1, "snapshot_id", "long")]
    if sequenced:
        fields += [
            _optional_field(3, "sequence_number", "long"),
            _optional_field(4, "file_sequence_number", "long"),
        ]
    data_file = {
        "type": "record",
        "name": "r2",
        "fields": _data_file_fields(format_version, partition),
    }
    return {
        "type": "record",
        "name": "manifest_entry",
        "fields": [*fields, _required_field(2, "data_file", data_file)],
    }


def _data_file_fields(format_version: int, partition: list[Avro]) -> list[Avro]:
    sequenced = format_version >= SEQUENCES_SINCE
    has_rows = format_version >= ROW_IDS_SINCE
    struct = {"type": "record", "name": "r102", "fields": partition}
    return [
        *([_required_field(134, "content", "int")] if sequenced else []),
        _required_field(100, "file_path", "string"),
        _required_field(101, "file_format", "string"),
        _required_field(102, "partition", struct),
        _required_field(103, "record_count", "long"),
        _required_field(104, "file_size_in_bytes", "long"),
        *([] if sequenced else [_required_field(105, "block_size_in_bytes", "long")]),
        _optional_field(108, "column_sizes", _integer_map_type(117, 118, "long")),
        _optional_field(109, "value_counts", _integer_map_type(119, 120, "long")),
        _optional_field(110, "null_value_counts", _integer_map_type(121, 122, "long")),
        _optional_field(137, "nan_value_counts", _integer_map_type(138, 139, "long")),
        _optional_field(125, "lower_bounds", _integer_map_type(126, 127, "bytes")),
        _optional_field(128, "upper_bounds", _integer_map_type(129, 130, "bytes")),
        _optional_field(131, "key_metadata", "bytes"),
        _optional_field(132, "split_offsets", _list_type(133, "long")),
        *([_optional_field(135, "equality_ids", _list_type(136, "int"))] if sequenced else []),
        _optional_field(140, "sort_order_id", "int"),
        *([_optional_field(142, "first_row_id", "long")] if has_rows else []),
        *([_optional_field(143, "referenced_data_file", "string")] if sequenced else []),
        *([_optional_field(144, "content_offset", "long")] if has_rows else []),
        *([_optional_field(145, "content_size_in_bytes", "long")] if has_rows else []),
    ]


def manifest_list_schema(format_version: int) -> Avro:
    """Return the Avro schema of a manifest list."""
    sequenced = format_version >= SEQUENCES_SINCE
    count = _required_field if sequenced else _optional_field
    return {
        "type": "record",
        "name": "manifest_file",
        "fields": [
            _required_field(500, "manifest_path", "string"),
            _required_field(501, "manifest_length", "long"),
            _required_field(502, "partition_spec_id", "int"),
            *(_SEQUENCES if sequenced else []),
            _required_field(503, "added_snapshot_id", "long"),
            count(504, "added_files_count", "int"),
            count(505, "existing_files_count", "int"),
            count(506, "deleted_files_count", "int"),
            count(512, "added_rows_count", "long"),
            count(513, "existing_rows_count", "long"),
            count(514, "deleted_rows_count", "long"),
            _optional_field(507, "partitions", _list_type(508, _FIELD_SUMMARY)),
            _optional_field(519, "key_metadata", "bytes"),
            *(
                [_optional_field(520, "first_row_id", "long")]
                if format_version >= ROW_IDS_SINCE
                else []
            ),
        ],
    }


_SEQUENCES = [
    _required_field(517, "content", "int"),
    _required_field(515, "sequence_number", "long"),
    _required_field(516, "min_sequence_number", "long"),
]
_FIELD_SUMMARY = {
    "type": "record",
    "name": "r508",
    "fields": [
        _required_field(509, "contains_null", "boolean"),
        _optional_field(518, "contains_nan", "boolean"),
        _optional_field(510, "lower_bound", "bytes"),
        _optional_field(511, "upper_bound", "bytes"),
    ],
}
