"""ManifestEntry: what a manifest says of one file.

Source: the Iceberg table specification, "Manifest Entry Fields" and "Data File Fields".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from attrs import frozen
from msgspec import UNSET, UnsetType

from ledger.model.errors import UnsupportedError
from ledger.model.file_change import FileChange
from ledger.model.transforms.values import Value
from projections.iceberg.manifests.partition_struct import PartitionStruct
from projections.iceberg.metadata.table import ROW_IDS_SINCE, SEQUENCES_SINCE
from projections.manifest_files.container import WrittenBlock, WrittenRecord

EXISTING, ADDED, DELETED = 0, 1, 2

UNSORTED = 0
"""The id of the sort order that every table has, of rows in no order."""

_CONTENTS = {"data": 0, "position-deletes": 1, "equality-deletes": 2}
"""Content of a data file by the ledger's word for it."""


def manifest_content(change: FileChange) -> int:
    """Return whether a file stands in a manifest of data (0) or of deletes (1)."""
    # Equality deletes of older logs compare nobody knows what; a placeholder stands for them.
    if change.content == "equality-deletes":
        return 0 if change.equality_ids is UNSET else 1
    return 1 if change.content == "position-deletes" else 0


_BY_VALUE = _CONTENTS["equality-deletes"]
_FORMATS = ("parquet", "orc", "avro")
_BLOCK_SIZE = 64 * 1024 * 1024
_MAPS = ("value_counts", "null_value_counts", "lower_bounds", "upper_bounds")


class ManifestEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One file of a manifest, with nothing left to be inherited but a new row id.

    Attributes:
        status: `EXISTING`, `ADDED` or `DELETED`.
        snapshot_id: The snapshot that added it, or that removed it if it is `DELETED`.
        sequence_number: Of its data; 0 for files that a version 1 table added.
        first_row_id: The id of its first row; None until a manifest list gives it out.
        spec_id: Its partition spec.
        partition: One value a field of the spec, in the form of `ledger.model.transforms.values`.
        file: The rest, as Avro has it.
        written: How it stands in another manifest, where it stands there just so.
    """

    status: int
    snapshot_id: int
    sequence_number: int
    first_row_id: int | None = None
    spec_id: int
    partition: tuple[Value | None, ...]
    file: dict[str, Any]
    written: WrittenRecord | None = None

    @property
    def path(self) -> str:
        """The file's URI; that of a deletion vector has where in the file it begins behind."""
        path, offset = str(self.file["file_path"]), self.file.get("content_offset")
        return path if offset is None else f"{path}#{offset}"

    @property
    def content(self) -> int:
        """Whether it stands in a manifest of data (0) or of deletes (1)."""
        return 1 if self.file["content"] else 0

    @property
    def records(self) -> int:
        """How many rows it has."""
        return int(self.file["record_count"])

    @property
    def key(self) -> tuple[int, str]:
        """Its place among the files of its spec: by the snapshot that added it, then by path."""
        return (self.snapshot_id, self.path)


Piece = ManifestEntry | WrittenBlock
"""A file of a manifest, or several that are `EXISTING` and stay so, unread."""


@frozen
class Ancestry:
    """Where a file comes from, which it keeps for ever.

    Attributes:
        snapshot_id: The snapshot that first added it.
        sequence_number: That snapshot's.
        is_back: Whether it was in the table before, and comes back.
        first_row_id: The id of its first row, where it has had one or says it.
    """

    snapshot_id: int
    sequence_number: int
    is_back: bool = False
    first_row_id: int | None = None


def entry_of(
    change: FileChange, struct: PartitionStruct, *, uri_of: Callable[[str], str], origin: Ancestry
) -> ManifestEntry:
    """Return the entry of a file that comes into a table, or comes back.

    What comes back is no new file: its rows are as old as they were, so that deletes go on applying
    to them.

    Args:
        change: The file.
        struct: Of its partition spec.
        uri_of: Where a file is whose path the log has.
        origin: Where it comes from.

    Raises:
        UnsupportedError: Iceberg cannot say the file.
    """
    content = _CONTENTS.get(change.content)
    if content is None or (content == _BY_VALUE and change.equality_ids is UNSET):
        raise UnsupportedError(
            f"{change.path} holds {change.content}, and the ledger does not know which columns "
            "they compare: rewrite them as position deletes"
        )
    if change.format.lower() not in _FORMATS and not change.is_vector:
        raise UnsupportedError(
            f"{change.path} is a file of format {change.format}, which Iceberg's readers do not "
            f"know: rewrite it as one of {', '.join(_FORMATS)}"
        )
    file = {
        "content": content,
        "file_path": uri_of(change.stored_at),
        "file_format": change.format.upper(),
        "record_count": change.record_count,
        "file_size_in_bytes": change.file_size_in_bytes,
        # Readers of metadata tables fail where a map is absent, not where it is empty.
        "column_sizes": [],
        "nan_value_counts": [],
        # Readers fail where this is null.
        "sort_order_id": UNSORTED if change.sort_order_id is UNSET else change.sort_order_id,
        **{name: _pairs(getattr(change, name), change.path) for name in _MAPS},
        **_deletes(change, uri_of),
    }
    return ManifestEntry(
        status=EXISTING if origin.is_back else ADDED,
        snapshot_id=origin.snapshot_id,
        sequence_number=origin.sequence_number,
        first_row_id=origin.first_row_id,
        spec_id=struct.spec.spec_id,
        partition=struct.values(change),
        file=file,
    )


def _deletes(change: FileChange, uri_of: Callable[[str], str]) -> dict[str, Any]:
    """Return what says which rows a file deletes; nothing where it does not say."""
    found: dict[str, Any] = {}
    if not isinstance(change.equality_ids, UnsetType):
        found["equality_ids"] = list(change.equality_ids)
    if not isinstance(change.referenced_data_file, UnsetType):
        found["referenced_data_file"] = uri_of(change.referenced_data_file)
    for name in ("content_offset", "content_size_in_bytes"):
        if getattr(change, name) is not UNSET:
            found[name] = getattr(change, name)
    return found


def placeholder(change: FileChange, struct: PartitionStruct) -> FileChange:
    """Return what stands for a file that Iceberg cannot say, in manifests that nobody reads."""
    return FileChange(
        path=change.path,
        record_count=change.record_count,
        file_size_in_bytes=change.file_size_in_bytes,
        spec_id=change.spec_id,
        partition=(None,) * len(struct.columns),
    )


def _pairs(found: dict[int, Any] | UnsetType, path: str) -> list[dict[str, Any]]:
    if found is UNSET:
        return []
    try:
        return [{"key": key, "value": _bytes(value)} for key, value in sorted(found.items())]
    except ValueError as error:
        raise UnsupportedError(
            f"{path} has bounds that are not hexadecimal ({error}): remove the file and register "
            "it anew"
        ) from error


def _bytes(value: Any) -> Any:
    return bytes.fromhex(value) if isinstance(value, str) else value


def to_avro(
    entry: ManifestEntry, struct: PartitionStruct, *, format_version: int
) -> dict[str, Any]:
    """Return an entry's Avro record."""
    pairs = zip(struct.columns, entry.partition, strict=True)
    file = {
        **entry.file,
        "partition": {each.avro_name: each.to_avro(value) for each, value in pairs},
    }
    record: dict[str, Any] = {"status": entry.status, "snapshot_id": entry.snapshot_id}
    if format_version < SEQUENCES_SINCE:
        file["block_size_in_bytes"] = _BLOCK_SIZE
    elif entry.status != ADDED:
        record["sequence_number"] = entry.sequence_number
        record["file_sequence_number"] = entry.sequence_number
    if format_version >= ROW_IDS_SINCE:
        file["first_row_id"] = entry.first_row_id
    record["data_file"] = file
    return record


_OTHER_KEYS = ("partition", "first_row_id", "block_size_in_bytes")


def from_avro(
    record: dict[str, Any], struct: PartitionStruct, *, adder: int, sequence_number: int
) -> ManifestEntry:
    """Return the entry of an Avro record.

    Args:
        record: As a manifest has it.
        struct: Of its partition spec.
        adder: The snapshot that added the manifest, which new entries inherit.
        sequence_number: The manifest's, which new entries inherit.

    Raises:
        UnsupportedError: Its partition has other fields than the spec.
    """
    file = record["data_file"]
    given, by = record.get("sequence_number"), record.get("snapshot_id")
    # Whoever else wrote it may call the fields otherwise.
    if len(file["partition"]) != len(struct.columns):
        raise UnsupportedError(
            f"the manifest of {file['file_path']} has {len(file['partition'])} values of its "
            f"partition, and spec {struct.spec.spec_id} has {len(struct.columns)} fields: have its "
            "owner put the table's metadata right, then import that"
        )
    values = zip(struct.columns, file["partition"].values(), strict=True)
    return ManifestEntry(
        status=record["status"],
        snapshot_id=adder if by is None else by,
        sequence_number=sequence_number if given is None else given,
        first_row_id=file.get("first_row_id"),
        spec_id=struct.spec.spec_id,
        partition=tuple(each.from_avro(value) for each, value in values),
        file={"content": 0, **{k: v for k, v in file.items() if k not in _OTHER_KEYS}},
    )
