"""Avro schemas of manifests and manifest lists of format versions 1 to 3.

Source: the Iceberg table specification, "Manifests" and "Manifest Lists"; every field carries its
id, by which readers find it.
"""

from __future__ import annotations

from typing import Any

from projections.iceberg.metadata.table import ROW_IDS_SINCE, SEQUENCES_SINCE

Avro = dict[str, Any]


def _required(field_id: int, name: str, kind: Any) -> Avro:
    return {"name": name, "type": kind, "field-id": field_id}


def _optional(field_id: int, name: str, kind: Any) -> Avro:
    return {"name": name, "type": ["null", kind], "default": None, "field-id": field_id}


def _list(element_id: int, kind: Any) -> Avro:
    return {"type": "array", "items": kind, "element-id": element_id}


def _map(key_id: int, value_id: int, value: str) -> Avro:
    """Return a map with whole numbers as keys, which Avro says as an array of pairs."""
    pair = {
        "type": "record",
        "name": f"k{key_id}_v{value_id}",
        "fields": [_required(key_id, "key", "int"), _required(value_id, "value", value)],
    }
    return {"type": "array", "logicalType": "map", "items": pair}


def manifest_schema(format_version: int, partition: list[Avro]) -> Avro:
    """Return the schema of a manifest.

    Args:
        format_version: 1, 2 or 3.
        partition: The fields of the partition struct.
    """
    sequenced = format_version >= SEQUENCES_SINCE
    snapshot_id = _optional if sequenced else _required
    fields = [_required(0, "status", "int"), snapshot_id(1, "snapshot_id", "long")]
    if sequenced:
        fields += [
            _optional(3, "sequence_number", "long"),
            _optional(4, "file_sequence_number", "long"),
        ]
    data_file = {"type": "record", "name": "r2", "fields": _data_file(format_version, partition)}
    return {
        "type": "record",
        "name": "manifest_entry",
        "fields": [*fields, _required(2, "data_file", data_file)],
    }


def _data_file(format_version: int, partition: list[Avro]) -> list[Avro]:
    sequenced = format_version >= SEQUENCES_SINCE
    has_rows = format_version >= ROW_IDS_SINCE
    struct = {"type": "record", "name": "r102", "fields": partition}
    return [
        *([_required(134, "content", "int")] if sequenced else []),
        _required(100, "file_path", "string"),
        _required(101, "file_format", "string"),
        _required(102, "partition", struct),
        _required(103, "record_count", "long"),
        _required(104, "file_size_in_bytes", "long"),
        *([] if sequenced else [_required(105, "block_size_in_bytes", "long")]),
        _optional(108, "column_sizes", _map(117, 118, "long")),
        _optional(109, "value_counts", _map(119, 120, "long")),
        _optional(110, "null_value_counts", _map(121, 122, "long")),
        _optional(137, "nan_value_counts", _map(138, 139, "long")),
        _optional(125, "lower_bounds", _map(126, 127, "bytes")),
        _optional(128, "upper_bounds", _map(129, 130, "bytes")),
        _optional(131, "key_metadata", "bytes"),
        _optional(132, "split_offsets", _list(133, "long")),
        *([_optional(135, "equality_ids", _list(136, "int"))] if sequenced else []),
        _optional(140, "sort_order_id", "int"),
        *([_optional(142, "first_row_id", "long")] if has_rows else []),
        *([_optional(143, "referenced_data_file", "string")] if sequenced else []),
        *([_optional(144, "content_offset", "long")] if has_rows else []),
        *([_optional(145, "content_size_in_bytes", "long")] if has_rows else []),
    ]


def manifest_list_schema(format_version: int) -> Avro:
    """Return the schema of a manifest list."""
    sequenced = format_version >= SEQUENCES_SINCE
    count = _required if sequenced else _optional
    return {
        "type": "record",
        "name": "manifest_file",
        "fields": [
            _required(500, "manifest_path", "string"),
            _required(501, "manifest_length", "long"),
            _required(502, "partition_spec_id", "int"),
            *(_SEQUENCES if sequenced else []),
            _required(503, "added_snapshot_id", "long"),
            count(504, "added_files_count", "int"),
            count(505, "existing_files_count", "int"),
            count(506, "deleted_files_count", "int"),
            count(512, "added_rows_count", "long"),
            count(513, "existing_rows_count", "long"),
            count(514, "deleted_rows_count", "long"),
            _optional(507, "partitions", _list(508, _FIELD_SUMMARY)),
            _optional(519, "key_metadata", "bytes"),
            *([_optional(520, "first_row_id", "long")] if format_version >= ROW_IDS_SINCE else []),
        ],
    }


_SEQUENCES = [
    _required(517, "content", "int"),
    _required(515, "sequence_number", "long"),
    _required(516, "min_sequence_number", "long"),
]
_FIELD_SUMMARY = {
    "type": "record",
    "name": "r508",
    "fields": [
        _required(509, "contains_null", "boolean"),
        _optional(518, "contains_nan", "boolean"),
        _optional(510, "lower_bound", "bytes"),
        _optional(511, "upper_bound", "bytes"),
    ],
}
