"""Snapshots, refs, logs, statistics files and keys: the parts of a table that are their own JSON.

Attributes stand in Java's order of keys; what is absent is None and not written.

Source: the Iceberg table specification, "Snapshots", "Snapshot References", "Table Statistics",
"Partition Statistics", "Encryption Keys" and appendix C.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from ledger.model.errors import InvalidInputError
from projections.iceberg.metadata.wire import Int, Long, encoded

MAIN = "main"
RefType = Literal["branch", "tag"]
_OPERATION = "operation"


class Snapshot(
    msgspec.Struct, frozen=True, kw_only=True, rename="kebab", omit_defaults=True, gc=False
):
    """One state of a table's data.

    A summary that does not name its operation is read as that of an overwrite; an empty one as
    none.

    Attributes:
        sequence_number: Orders snapshots from version 2 on; 0 before.
        snapshot_id: A random positive number.
        parent_snapshot_id: The snapshot that this one was committed onto.
        timestamp_ms: When it was made, in milliseconds since 1970.
        summary: `operation` first, then counts as texts.
        manifest_list: Path of the file that lists its manifests.
        manifests: Their paths instead, in version 1 only.
        schema_id: The current schema when it was made.
        first_row_id: The first row id given to its rows, from version 3 on.
        added_rows: How many row ids it took.
        key_id: The key that encrypts the manifest list's key.
    """

    sequence_number: Long = 0
    snapshot_id: Long
    parent_snapshot_id: Long | None = None
    timestamp_ms: Long
    summary: Mapping[str, str] | None = None
    manifest_list: str | None = None
    manifests: tuple[str, ...] | None = None
    schema_id: Int | None = None
    first_row_id: Long | None = None
    added_rows: Long | None = None
    key_id: str | None = None

    def __post_init__(self) -> None:
        if self.manifest_list is not None:
            if self.manifests is not None:
                msgspec.structs.force_setattr(self, "manifests", None)
        elif self.manifests is None:
            raise InvalidInputError("a snapshot needs a manifest-list, or manifests in version 1")
        self._check_rows()
        summary = self.summary
        if summary is not None and next(iter(summary), None) != _OPERATION:
            msgspec.structs.force_setattr(self, "summary", _named(summary))

    def _check_rows(self) -> None:
        if min(self.first_row_id or 0, self.added_rows or 0) < 0:
            raise InvalidInputError("first-row-id and added-rows are not negative")
        if self.first_row_id is None:
            msgspec.structs.force_setattr(self, "added_rows", None)
        elif self.added_rows is None:
            raise InvalidInputError("a snapshot with first-row-id needs added-rows")

    @property
    def operation(self) -> str | None:
        """`append`, `replace`, `overwrite` or `delete`; None in old version 1 tables."""
        return None if self.summary is None else self.summary[_OPERATION]


def snapshot_json(snapshot: Snapshot) -> bytes:
    """Return a snapshot's compact JSON, as it stands in a metadata file.

    Example:
        >>> snapshot_json(Snapshot(snapshot_id=1, timestamp_ms=2, manifest_list="a"))
        b'{"snapshot-id":1,"timestamp-ms":2,"manifest-list":"a"}'
    """
    return encoded(snapshot)


class SnapshotRef(msgspec.Struct, frozen=True, kw_only=True, rename="kebab", omit_defaults=True):
    """A branch or a tag, and how long it and its snapshots are kept; None leaves it to the table.

    Attributes:
        snapshot_id: What it points to.
        type: A branch moves with commits, a tag does not.
        min_snapshots_to_keep: At least so many of a branch's newest snapshots survive expiry.
        max_snapshot_age_ms: A branch's younger snapshots survive expiry.
        max_ref_age_ms: The ref itself goes when its snapshot is older; never for `main`.
    """

    snapshot_id: Long
    type: RefType
    min_snapshots_to_keep: Int | None = None
    max_snapshot_age_ms: Long | None = None
    max_ref_age_ms: Long | None = None

    def __post_init__(self) -> None:
        of_branches = (self.min_snapshots_to_keep, self.max_snapshot_age_ms)
        if self.type == "tag" and of_branches != (None, None):
            raise InvalidInputError("a tag has no other retention than max-ref-age-ms")
        if any(each is not None and each <= 0 for each in (*of_branches, self.max_ref_age_ms)):
            raise InvalidInputError("min-snapshots-to-keep and the ages of a ref are above 0")


class SnapshotLogEntry(msgspec.Struct, frozen=True, rename="kebab", gc=False):
    """Since when a snapshot was the current one."""

    timestamp_ms: Long
    snapshot_id: Long


class MetadataLogEntry(msgspec.Struct, frozen=True, rename="kebab"):
    """An earlier metadata file and when it was written."""

    timestamp_ms: Long
    metadata_file: str


class BlobMetadata(msgspec.Struct, frozen=True, rename="kebab", omit_defaults=True):
    """What one blob of a statistics file holds, for which snapshot and fields."""

    type: str
    snapshot_id: Long
    sequence_number: Long
    fields: tuple[Int, ...]
    properties: Mapping[str, str] | None = None


class StatisticsFile(msgspec.Struct, frozen=True, kw_only=True, rename="kebab", omit_defaults=True):
    """A Puffin file of statistics of one snapshot."""

    snapshot_id: Long
    statistics_path: str
    file_size_in_bytes: Long
    file_footer_size_in_bytes: Long
    key_metadata: str | None = None
    blob_metadata: tuple[BlobMetadata, ...]


class PartitionStatisticsFile(msgspec.Struct, frozen=True, rename="kebab"):
    """A file of statistics by partition of one snapshot."""

    snapshot_id: Long
    statistics_path: str
    file_size_in_bytes: Long


class EncryptionKey(msgspec.Struct, frozen=True, rename="kebab", omit_defaults=True):
    """A key, encrypted by another one, in base64."""

    key_id: str
    encrypted_key_metadata: str
    encrypted_by_id: str | None = None
    properties: Mapping[str, str] | None = None


def _named(summary: Mapping[str, str]) -> Mapping[str, str] | None:
    if not summary:
        return None
    rest = {key: value for key, value in summary.items() if key != _OPERATION}
    return {_OPERATION: summary.get(_OPERATION, "overwrite"), **rest}
