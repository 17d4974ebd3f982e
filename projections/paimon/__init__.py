"""Paimon: a table's files in the format of Paimon's own writers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ledger.model import exporter
from projections.paimon.schema_file import (
    paimon_json,
    schema_file,
    schema_from_json,
    schema_to_json,
)

if TYPE_CHECKING:
    from projections.paimon.binary_row import decode_row, encode_row
    from projections.paimon.manifest_avro import (
        ManifestEntry,
        ManifestFileMeta,
        read_index_manifest,
        read_manifest,
        read_manifest_list,
    )
    from projections.paimon.manifest_writing import file_change, value_stats
    from projections.paimon.materialise import PAIMON, expected, rebuild, verify
    from projections.paimon.paths import bucket_path, manifest_path, tag_path
    from projections.paimon.snapshot_file import (
        consumer_from_json,
        snapshot_from_json,
        tag_file,
        tag_from_json,
    )
    from projections.paimon.statistics_file import statistics_from_json

__all__ = [
    "PAIMON",
    "ManifestEntry",
    "ManifestFileMeta",
    "bucket_path",
    "consumer_from_json",
    "decode_row",
    "encode_row",
    "expected",
    "file_change",
    "manifest_path",
    "paimon_json",
    "read_index_manifest",
    "read_manifest",
    "read_manifest_list",
    "rebuild",
    "schema_file",
    "schema_from_json",
    "schema_to_json",
    "snapshot_from_json",
    "statistics_from_json",
    "tag_file",
    "tag_from_json",
    "tag_path",
    "value_stats",
    "verify",
]

if not TYPE_CHECKING:
    __getattr__ = exporter(
        __name__,
        {
            "projections.paimon.binary_row": (
                "decode_row",
                "encode_row",
            ),
            "projections.paimon.manifest_avro": (
                "ManifestEntry",
                "ManifestFileMeta",
                "read_index_manifest",
                "read_manifest",
                "read_manifest_list",
            ),
            "projections.paimon.manifest_writing": (
                "file_change",
                "value_stats",
            ),
            "projections.paimon.materialise": (
                "PAIMON",
                "expected",
                "rebuild",
                "verify",
            ),
            "projections.paimon.paths": (
                "bucket_path",
                "manifest_path",
                "tag_path",
            ),
            "projections.paimon.snapshot_file": (
                "consumer_from_json",
                "snapshot_from_json",
                "tag_file",
                "tag_from_json",
            ),
            "projections.paimon.statistics_file": ("statistics_from_json",),
        },
    )
