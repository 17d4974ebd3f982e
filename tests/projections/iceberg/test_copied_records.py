"""Entries that stay are copied as bytes into the manifest that follows, which is the same."""

from __future__ import annotations

import io
from typing import Any

import fastavro
import pytest

from projections.iceberg.manifest_avro import manifest_schema
from projections.manifest_files.container import (
    build_copy_predicate,
    read_records_with_bytes,
    write_container,
)

MARK = b"0123456789abcdef"


def entries(count: int) -> list[dict[str, Any]]:
    return [
        {
            "status": 0,
            "snapshot_id": number,
            "sequence_number": number,
            "file_sequence_number": number,
            "data_file": {
                "content": 0,
                "file_path": f"file:///lake/t/{number:0{1 + number % 190}d}.parquet",
                "file_format": "PARQUET",
                "partition": {"day": number if number % 3 else None},
                "record_count": number,
                "file_size_in_bytes": 1000 * number,
                "block_size_in_bytes": 1,
                "column_sizes": [],
                "value_counts": [{"key": each, "value": number} for each in range(number % 5)],
                "null_value_counts": [],
                "nan_value_counts": [],
                "lower_bounds": [{"key": 1, "value": b"abc"}],
                "upper_bounds": [],
                "sort_order_id": 0,
                "first_row_id": number,
            },
        }
        for number in range(count)
    ]


def schema_of(format_version: int, kind: str = "int") -> dict[str, Any]:
    field = {"name": "day", "type": ["null", kind], "default": None, "field-id": 1000}
    return manifest_schema(format_version, [field])


def by_fastavro(schema: dict[str, Any], records: list[dict[str, Any]]) -> bytes:
    """Return what manifests were written by, whose bytes stand on stores."""
    out = io.BytesIO()
    fastavro.writer(
        out, schema, records, codec="null", sync_interval=65_536, sync_marker=MARK, metadata={}
    )
    return out.getvalue()


@pytest.mark.parametrize("format_version", [1, 2, 3])
@pytest.mark.parametrize("count", [0, 1, 700])
def test_records_copied_make_the_same_bytes(format_version: int, count: int) -> None:
    schema = schema_of(format_version)
    body = write_container(schema, entries(count), sync_marker=MARK)
    written = [each for _, each in read_records_with_bytes(body, "manifest")]

    assert all(map(build_copy_predicate(schema), written))
    assert write_container(schema, written, sync_marker=MARK) == body
    assert body == by_fastavro(schema_of(format_version), entries(count))


def test_records_of_another_schema_are_not_copied() -> None:
    body = write_container(schema_of(2), entries(2), sync_marker=MARK)
    written = [each for _, each in read_records_with_bytes(body, "manifest")]

    for other in (schema_of(1), schema_of(3), schema_of(2, "long")):
        assert not any(map(build_copy_predicate(other), written))
