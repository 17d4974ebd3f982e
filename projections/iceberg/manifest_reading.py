"""Reading of manifests, with inherited values.

To remove files from a manifest, all blocks but those that hold them are copied, so the cost of a
removal does not grow with the manifest.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator
from typing import Any

from attrs import define
from msgspec.structs import replace

from ledger.model.errors import DamagedLogError
from projections.iceberg.manifest_avro import manifest_schema_of
from projections.iceberg.manifest_entry import (
    DELETED,
    EXISTING,
    ManifestEntry,
    PartitionStruct,
    Piece,
    from_avro,
)
from projections.iceberg.manifest_list import ManifestFile
from projections.manifest_files.container import (
    EncodedBlock,
    build_copy_predicate,
    container_schema,
    encode_avro_text,
    read_blocks,
    read_container,
    translating_decoder_errors,
)


def read_manifest(
    body: bytes | None, manifest: ManifestFile, struct: PartitionStruct
) -> Iterator[ManifestEntry]:
    """Yield a manifest's live files, each with its inherited values.

    Args:
        body: Its bytes; None if it does not exist.
        manifest: Its record in a manifest list.
        struct: The partition struct of its spec.

    Raises:
        DamagedLogError: The bytes are not those that were written.
    """
    entries = _LiveEntryDecoder(manifest, struct, manifest.first_row_id)
    for block in read_blocks(_require_intact_body(body, manifest), manifest.path):
        yield from entries.decode_block(block)


def read_manifest_pieces(
    body: bytes | None,
    manifest: ManifestFile,
    struct: PartitionStruct,
    *,
    wanted: Collection[str],
    format_version: int,
) -> tuple[Piece, ...]:
    """Return a manifest's live files, with blocks that need no change left undecoded.

    Args:
        body: Its bytes; None if it does not exist.
        manifest: Its record; the ledger formed it.
        struct: The partition struct of its spec.
        wanted: The URIs of the files that must be decoded.
        format_version: The format version of the new manifest.

    Raises:
        DamagedLogError: The bytes are not those that were written.
    """
    whole = _require_intact_body(body, manifest)
    blocks = read_blocks(whole, manifest.path)
    # With as many wanted files as blocks, most blocks hold one.
    if len(wanted) < len(blocks) and build_copy_predicate(
        manifest_schema_of(struct, format_version)
    )(blocks[0]):
        # The path of a deletion vector ends in its offset.
        paths = {path for each in wanted for path in (each, each.rpartition("#")[0]) if path}
        texts = [*map(encode_avro_text, paths)]
        entries = _LiveEntryDecoder(manifest, struct, manifest.first_row_id)
        pieces: list[Piece] = []
        for block in blocks:
            if _block_status(block) == EXISTING and not any(text in block.body for text in texts):
                pieces.append(block)
            elif _block_status(block) != DELETED:
                pieces += entries.decode_block(block)
        if entries.next_row_id is None or entries.inherited == manifest.new_rows:
            return tuple(pieces)
    return tuple(read_manifest(whole, manifest, struct))


def oldest_sequence_number(
    pieces: Iterable[Piece], manifest: ManifestFile, struct: PartitionStruct
) -> int:
    """Return the least sequence number of the files left in a manifest; 0 if there are none.

    Args:
        pieces: The new manifest's entries and blocks.
        manifest: The old manifest, formed by the ledger: files are in the order of snapshots.
        struct: The partition struct of its spec.
    """
    for each in pieces:
        if isinstance(each, EncodedBlock):
            entries = _LiveEntryDecoder(manifest, struct, None)
            return next(entries.decode_block(each.first())).sequence_number
        if each.status != DELETED:
            return each.sequence_number
    return 0


def partition_width(body: bytes, path: str) -> int:
    """Return the number of partition values per file of a manifest.

    Args:
        body: The manifest's bytes.
        path: The manifest's path, for messages.

    Raises:
        DamagedLogError: The bytes are not a manifest.
    """
    schema = container_schema(body, path)
    with translating_decoder_errors(path):
        return len(_avro_field_type(_avro_field_type(schema, "data_file"), "partition")["fields"])


def _avro_field_type(record: Any, name: str) -> Any:
    return next(each["type"] for each in record["fields"] if each["name"] == name)


def _block_status(block: EncodedBlock) -> int:
    """Return the zigzag-encoded status with which each entry of a block begins."""
    return block.body[0] >> 1


def _require_intact_body(body: bytes | None, manifest: ManifestFile) -> bytes:
    if manifest.is_written_by_engine:
        if body is None or len(body) != manifest.length:
            raise DamagedLogError(
                f"{manifest.path}, which the table's former owner wrote, is missing or changed: "
                "restore it from a copy",
                manifest.path,
            )
    elif body is None or hashlib.sha256(body).hexdigest() != manifest.check:
        raise DamagedLogError(
            f"{manifest.path} is not the manifest that the ledger projected; restore it by "
            "rebuilding the projection",
            manifest.path,
        )
    return body


@define
class _LiveEntryDecoder:
    """Decoder of the live files of a manifest, block by block.

    Attributes:
        manifest: The manifest.
        struct: The partition struct of its spec.
        next_row_id: The row id of the next file without one; None if rows have no ids.
        inherited: The number of rows that got inherited ids so far.
    """

    manifest: ManifestFile
    struct: PartitionStruct
    next_row_id: int | None
    inherited: int = 0

    def decode_block(self, block: EncodedBlock) -> Iterator[ManifestEntry]:
        with translating_decoder_errors(self.manifest.path):
            entries = [(self._decode_entry(record), written) for record, written in block.records()]
        for said, written in entries:
            entry = said
            if entry.status == DELETED:
                continue
            if entry.first_row_id is None and self.next_row_id is not None:
                entry = replace(entry, first_row_id=self.next_row_id)
                self.next_row_id += entry.records
                self.inherited += entry.records
            elif entry.status == EXISTING and not self.manifest.is_written_by_engine:
                # Written with all values, so that the next manifest has the same bytes.
                entry = replace(entry, written=written)
            yield entry

    def _decode_entry(self, record: dict[str, Any]) -> ManifestEntry:
        return from_avro(
            record,
            self.struct,
            adder=self.manifest.added_snapshot_id,
            sequence_number=self.manifest.sequence_number,
        )


def read_row_ids(
    body: bytes, path: str, first_row_id: int | None, *, is_gone: bool
) -> Iterator[tuple[str, int]]:
    """Yield the URI and the first row id of each file of a manifest whose rows have ids.

    Args:
        body: The manifest's bytes.
        path: The manifest's path, for messages.
        first_row_id: The first row id in its list record.
        is_gone: Whether to yield the removed files instead of the live ones.

    Raises:
        DamagedLogError: The bytes are not a manifest.
    """
    next_row_id = first_row_id
    for record in read_container(body, path):
        file = record["data_file"]
        row_id = file.get("first_row_id")
        if row_id is None and next_row_id is not None and record["status"] != DELETED:
            row_id, next_row_id = next_row_id, next_row_id + file["record_count"]
        if row_id is not None and (record["status"] == DELETED) == is_gone:
            yield file["file_path"], row_id
