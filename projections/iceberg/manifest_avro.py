"""The bytes of Iceberg's manifests and manifest lists; equal records give equal bytes."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from ledger.model.errors import DamagedLogError
from projections.avro_container import read_container, write_container
from projections.iceberg.manifest_entry import DELETED, ManifestEntry, from_avro, to_avro
from projections.iceberg.manifest_file import ManifestFile
from projections.iceberg.manifest_schemas import manifest_list_schema, manifest_schema
from projections.iceberg.metadata.layout import PartitionField
from projections.iceberg.metadata.table import ROW_IDS_SINCE, SEQUENCES_SINCE
from projections.iceberg.partition_struct import PartitionStruct

_CONTENTS = ("data", "deletes")


def write_manifest(
    entries: Iterable[ManifestEntry],
    struct: PartitionStruct,
    *,
    content: int,
    schema: bytes,
    format_version: int,
    sync_marker: bytes,
) -> bytes:
    """Return a manifest.

    Args:
        entries: In order.
        struct: Of their partition spec.
        content: Of the files: data (0) or position deletes (1).
        schema: The table's current schema as JSON, for the header.
        format_version: 1, 2 or 3.
        sync_marker: 16 bytes, see `write_container`.
    """
    fields = [
        PartitionField(each.name, each.transform, each.source_id, field_id=each.field_id)
        for each in struct.spec.fields
    ]
    metadata = {
        "schema": schema.decode(),
        "schema-id": str(msgspec.json.decode(schema, type=_Numbered).schema_id),
        "partition-spec": msgspec.json.encode(fields).decode(),
        "partition-spec-id": str(struct.spec.spec_id),
        "format-version": str(format_version),
    }
    if format_version >= SEQUENCES_SINCE:
        metadata["content"] = _CONTENTS[content]
    avro = manifest_schema(format_version, [each.avro_field() for each in struct.columns])
    records = (to_avro(each, struct, format_version=format_version) for each in entries)
    return write_container(avro, records, sync_marker=sync_marker, metadata=metadata)


class _Numbered(msgspec.Struct, rename="kebab"):
    schema_id: int


def read_manifest(
    body: bytes | None, manifest: ManifestFile, struct: PartitionStruct
) -> Iterator[ManifestEntry]:
    """Yield a manifest's live files, each with all that it inherits.

    Args:
        body: Its bytes; None if it is gone.
        manifest: What is known of it.
        struct: Of its partition spec.

    Raises:
        DamagedLogError: The bytes are not those that were written.
    """
    if body is None or hashlib.sha256(body).hexdigest() != manifest.check:
        raise DamagedLogError(
            f"{manifest.path} is not the manifest that the ledger projected; restore it by "
            "rebuilding the projection",
            manifest.path,
        )
    next_row_id = manifest.first_row_id
    for record in read_container(body, manifest.path):
        entry = from_avro(record, struct, sequence_number=manifest.sequence_number)
        if entry.status == DELETED:
            continue
        if entry.first_row_id is None and next_row_id is not None:
            entry = replace(entry, first_row_id=next_row_id)
            next_row_id += entry.records
        yield entry


def read_row_ids(
    body: bytes, path: str, first_row_id: int | None, *, is_gone: bool
) -> Iterator[tuple[str, int]]:
    """Yield the URI of each of a manifest's files whose rows have ids, and the first id.

    Args:
        body: The manifest's bytes.
        path: Of the manifest, for messages.
        first_row_id: What its list says of it.
        is_gone: Whether the files are meant that go, and not the live ones.

    Raises:
        DamagedLogError: The bytes are no manifest.
    """
    next_row_id = first_row_id
    for record in read_container(body, path):
        file = record["data_file"]
        row_id = file.get("first_row_id")
        if row_id is None and next_row_id is not None and record["status"] != DELETED:
            row_id, next_row_id = next_row_id, next_row_id + file["record_count"]
        if row_id is not None and (record["status"] == DELETED) == is_gone:
            yield file["file_path"], row_id


def write_manifest_list(
    manifests: Iterable[ManifestFile],
    *,
    location: str,
    format_version: int,
    sync_marker: bytes,
    metadata: Mapping[str, str],
) -> bytes:
    """Return a manifest list.

    Args:
        manifests: In order.
        location: The table's.
        format_version: 1, 2 or 3.
        sync_marker: 16 bytes, see `write_container`.
        metadata: Keys and values for the header.
    """
    records = (_list_record(each, location, format_version) for each in manifests)
    avro = manifest_list_schema(format_version)
    return write_container(avro, records, sync_marker=sync_marker, metadata=metadata)


def _list_record(each: ManifestFile, location: str, format_version: int) -> dict[str, Any]:
    record: dict[str, Any] = {
        "manifest_path": f"{location}/{each.path}",
        "manifest_length": each.length,
        "partition_spec_id": each.part.spec_id,
        "added_snapshot_id": each.added_snapshot_id,
        "added_files_count": each.added_files,
        "existing_files_count": each.existing_files,
        "deleted_files_count": each.deleted_files,
        "added_rows_count": each.added_rows,
        "existing_rows_count": each.existing_rows,
        "deleted_rows_count": each.deleted_rows,
        "partitions": [msgspec.structs.asdict(summary) for summary in each.partitions],
    }
    if format_version >= SEQUENCES_SINCE:
        record["content"] = 1 if each.part.content else 0
        record["sequence_number"] = each.sequence_number
        record["min_sequence_number"] = each.min_sequence_number
    if format_version >= ROW_IDS_SINCE:
        record["first_row_id"] = each.first_row_id
    return record
