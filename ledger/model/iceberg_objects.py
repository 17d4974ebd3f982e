"""Iceberg's snapshots, refs, logs, statistics files, keys and view versions, in Iceberg's JSON.

Attributes are in Java's order of keys; an attribute that is None is absent from the JSON. A key
that a class does not have is rejected: events must not lose it. Readers of files by other writers
remove such keys first.

Source: the Iceberg table specification, "Snapshots", "Snapshot References", "Table Statistics",
"Partition Statistics", "Encryption Keys" and appendix C.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

from msgspec import Meta, Struct
from msgspec.structs import replace

from ledger.model.errors import InvalidInputError

Int = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)]
Long = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
"""Integers in the range of Java's long; Iceberg's other readers have the same range."""

MAIN: Final = "main"
RefType = Literal["branch", "tag"]
_OPERATION: Final = "operation"


class _MetadataObject(
    Struct, frozen=True, rename="kebab", omit_defaults=True, forbid_unknown_fields=True, gc=False
):
    """A part of the metadata of a table or view."""


class IcebergSnapshot(_MetadataObject, frozen=True, kw_only=True):
    """One state of a table's data.

    Attributes:
        sequence_number: Orders snapshots from format version 2 on; 0 before.
        snapshot_id: A positive number, unique in the table.
        parent_snapshot_id: The snapshot that this one follows.
        timestamp_ms: Its time, in milliseconds since 1970.
        summary: `operation` first, then counts as texts.
        manifest_list: Path of the file that lists its manifests; None in old tables, and while the
            ledger's own list is not written yet.
        manifests: Their paths instead, in version 1 only.
        schema_id: The current schema at its commit.
        first_row_id: The first row id given to its rows, from version 3 on.
        added_rows: The number of row ids that it took.
        key_id: The key that encrypts the manifest list's key.
    """

    sequence_number: Long = 0
    snapshot_id: Long
    parent_snapshot_id: Long | None = None
    timestamp_ms: Long
    summary: dict[str, str] | None = None
    manifest_list: str | None = None
    manifests: tuple[str, ...] | None = None
    schema_id: Int | None = None
    first_row_id: Long | None = None
    added_rows: Long | None = None
    key_id: str | None = None

    @property
    def operation(self) -> str | None:
        """`append`, `replace`, `overwrite` or `delete`; None without a summary."""
        return None if self.summary is None else self.summary.get(_OPERATION)


def validate_foreign_snapshot(snapshot: IcebergSnapshot) -> IcebergSnapshot:
    """Return another writer's snapshot, validated and normalized as Iceberg's Java reader does.

    A summary without an operation counts as an overwrite's, and an empty one as absent.

    Raises:
        InvalidInputError: It has no manifests, or its row ids contradict each other.

    Example:
        >>> made = IcebergSnapshot(snapshot_id=1, timestamp_ms=2, manifests=(), summary={"a": "b"})
        >>> validate_foreign_snapshot(made).summary
        {'operation': 'overwrite', 'a': 'b'}
    """
    if snapshot.manifest_list is None and snapshot.manifests is None:
        raise InvalidInputError("a snapshot needs a manifest-list, or manifests in version 1")
    if min(snapshot.first_row_id or 0, snapshot.added_rows or 0) < 0:
        raise InvalidInputError("first-row-id and added-rows are not negative")
    if snapshot.first_row_id is not None and snapshot.added_rows is None:
        raise InvalidInputError("a snapshot with first-row-id needs added-rows")
    if snapshot.manifest_list is not None and snapshot.manifests is not None:
        snapshot = replace(snapshot, manifests=None)
    if snapshot.first_row_id is None and snapshot.added_rows is not None:
        snapshot = replace(snapshot, added_rows=None)
    summary = snapshot.summary
    if summary is not None and next(iter(summary), None) != _OPERATION:
        snapshot = replace(snapshot, summary=_summary_with_operation(summary))
    return snapshot


def _summary_with_operation(summary: dict[str, str]) -> dict[str, str] | None:
    if not summary:
        return None
    rest = {key: value for key, value in summary.items() if key != _OPERATION}
    return {_OPERATION: summary.get(_OPERATION, "overwrite"), **rest}


class SnapshotRef(_MetadataObject, frozen=True, kw_only=True):
    """A branch or a tag, and its retention; None leaves it to the table.

    Attributes:
        snapshot_id: The snapshot that it points to.
        type: A branch moves with commits, a tag does not.
        min_snapshots_to_keep: Minimum number of a branch's newest snapshots that survive expiry.
        max_snapshot_age_ms: Age in milliseconds below which a branch's snapshots survive expiry.
        max_ref_age_ms: Age of its snapshot in milliseconds above which the ref itself expires;
            `main` never does.
    """

    snapshot_id: Long
    type: RefType
    min_snapshots_to_keep: Int | None = None
    max_snapshot_age_ms: Long | None = None
    max_ref_age_ms: Long | None = None


def validate_foreign_ref(ref: SnapshotRef) -> SnapshotRef:
    """Return another writer's ref after validating its retention.

    Raises:
        InvalidInputError: A retention is 0 or less, or a tag has one that only branches have.
    """
    of_branches = (ref.min_snapshots_to_keep, ref.max_snapshot_age_ms)
    if ref.type == "tag" and of_branches != (None, None):
        raise InvalidInputError("a tag has no other retention than max-ref-age-ms")
    if any(each is not None and each <= 0 for each in (*of_branches, ref.max_ref_age_ms)):
        raise InvalidInputError("min-snapshots-to-keep and the ages of a ref are above 0")
    return ref


class SnapshotLogEntry(_MetadataObject, frozen=True):
    """Entry of the snapshot log: the time at which a snapshot became current."""

    timestamp_ms: Long
    snapshot_id: Long


class MetadataLogEntry(_MetadataObject, frozen=True):
    """Entry of the metadata log: an earlier metadata file and its time."""

    timestamp_ms: Long
    metadata_file: str


class BlobMetadata(_MetadataObject, frozen=True):
    """One blob of a statistics file, the snapshot and the fields that it describes."""

    type: str
    snapshot_id: Long
    sequence_number: Long
    fields: tuple[Int, ...]
    properties: dict[str, str] | None = None


class StatisticsFile(_MetadataObject, frozen=True, kw_only=True):
    """A Puffin file of statistics of one snapshot."""

    snapshot_id: Long
    statistics_path: str
    file_size_in_bytes: Long
    file_footer_size_in_bytes: Long
    key_metadata: str | None = None
    blob_metadata: tuple[BlobMetadata, ...]


class PartitionStatisticsFile(_MetadataObject, frozen=True):
    """A file of statistics by partition of one snapshot."""

    snapshot_id: Long
    statistics_path: str
    file_size_in_bytes: Long


class EncryptionKey(_MetadataObject, frozen=True, kw_only=True):
    """A key, encrypted by another one, in base64."""

    key_id: str
    encrypted_key_metadata: str
    encrypted_by_id: str | None = None
    properties: dict[str, str] | None = None


class ViewRepresentation(_MetadataObject, frozen=True):
    """The query of a view in one SQL dialect; the specification has no other type."""

    type: Literal["sql"]
    sql: str
    dialect: str


class IcebergViewVersion(_MetadataObject, frozen=True, kw_only=True):
    """A version of a view's definition.

    Attributes:
        version_id: Its number, unique in the view.
        timestamp_ms: The time of its creation, in milliseconds since 1970.
        schema_id: The schema of its result.
        summary: Facts about the change, such as the engine's name.
        default_catalog: The catalog of table names without one; None for the view's own.
        default_namespace: The namespace of table names without one.
        representations: Its queries, one for each dialect.

    Source: the Iceberg view specification, "Versions"; keys are in the order of Java's parser.
    """

    version_id: Int
    timestamp_ms: Long
    schema_id: Int
    summary: dict[str, str]
    default_catalog: str | None = None
    default_namespace: tuple[str, ...]
    representations: tuple[ViewRepresentation, ...]

    @property
    def dialects(self) -> tuple[str, ...]:
        """The dialects of its queries, in lower case."""
        return tuple(each.dialect.lower() for each in self.representations)


class ViewLogEntry(_MetadataObject, frozen=True):
    """Entry of a view's version log: the time at which a version became current."""

    timestamp_ms: Long
    version_id: Int
