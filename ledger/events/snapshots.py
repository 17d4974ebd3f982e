"""Changes and events of snapshots, tags, expiry and statistics.

Every event carries its resolved ids and sums, so that folding never reads a file list.
"""

from collections.abc import Iterator
from typing import Any, Literal

from msgspec import UNSET, Raw, Struct, UnsetType, field

from ledger.events.commit import Commit, Record
from ledger.model.iceberg_objects import PartitionStatisticsFile
from ledger.model.snapshot import BATCH_COMMIT_IDENTIFIER, branch_number, snapshot_idempotency_key

NO_FILES = Raw(b"")
"""Value of `files` for no files; compared by identity, as msgspec omits defaults."""

CommitKind = Literal["APPEND", "COMPACT", "OVERWRITE", "ANALYZE"]


class ChangesReference(Struct, frozen=True, gc=False, rename="camel", forbid_unknown_fields=True):
    """A change list too long for a commit, kept as a Parquet file next to the log.

    `path` is relative to the table's `_ledger/`; `sha256` is of the file's bytes, in hex.
    """

    path: str
    sha256: str
    count: int


class SnapshotFacts(Record, frozen=True, kw_only=True):
    """Fields that every new snapshot has, of any origin.

    `files` is a JSON array of FileChange, kept as bytes until it is read; `changes` names the same
    list on the store instead. Sums are of this snapshot; totals are after it.
    `last_file_creation_time` is the maximum over the files in the list. `named_schema_ids` are the
    schemas whose column names the added files without field ids use. `summary` is Iceberg's
    snapshot summary, for a table that was imported from Iceberg and promoted.
    """

    snapshot_id: int
    schema_id: int
    commit_user: str
    commit_identifier: int = BATCH_COMMIT_IDENTIFIER
    total_record_count: int
    delta_record_count: int
    delta_file_count: int = 0
    delta_file_size_in_bytes: int = 0
    last_file_creation_time: int | UnsetType = UNSET
    named_schema_ids: tuple[int, ...] = field(default=(), name="nameMappingSchemaIds")
    summary: dict[str, str] | UnsetType = UNSET
    files: Raw = NO_FILES
    changes: ChangesReference | UnsetType = UNSET


class BranchHead(Struct, frozen=True, gc=False, rename="camel", forbid_unknown_fields=True):
    """A branch and its newest snapshot, at the time of a fast-forward."""

    branch_name: str
    snapshot_id: int


class CommittedFacts(SnapshotFacts, frozen=True, kw_only=True):
    """Fields of a snapshot of file changes. The optional keys are those of Paimon's file."""

    commit_kind: CommitKind
    base_manifest_list: str | UnsetType = UNSET
    base_manifest_list_size: int | UnsetType = UNSET
    delta_manifest_list: str | UnsetType = UNSET
    delta_manifest_list_size: int | UnsetType = UNSET
    changelog_manifest_list: str | UnsetType = UNSET
    changelog_manifest_list_size: int | UnsetType = UNSET
    index_manifest: str | UnsetType = UNSET
    log_offsets: dict[int, int] | UnsetType = UNSET
    changelog_record_count: int | UnsetType = UNSET
    watermark: int | UnsetType = UNSET
    statistics: str | UnsetType = UNSET
    uuid: str | UnsetType = UNSET
    snapshot_properties: dict[str, str] | UnsetType = UNSET
    next_row_id: int | UnsetType = UNSET
    writer_version: str | UnsetType = UNSET
    operation: str | UnsetType = UNSET

    @property
    def key(self) -> str | None:
        """The key by which commits deduplicate it; see `snapshot_idempotency_key`."""
        number = branch_number(self.snapshot_id)
        return snapshot_idempotency_key(
            self.commit_kind, self.commit_identifier, self.commit_user, number
        )


class SnapshotCommitted(CommittedFacts, frozen=True, tag="commitSnapshot", kw_only=True):
    """A snapshot of main was committed.

    `fast_forward_to` names the branch whose contents main has from now on; `files` are the
    difference, and the branch begins with this snapshot. `time_millis` is the time that its engine
    gave it, of a table from Paimon; absent: that of its transaction.
    """

    fast_forward_to: BranchHead | UnsetType = UNSET
    time_millis: int | UnsetType = UNSET


class BranchCommitted(CommittedFacts, frozen=True, tag="commitToBranch", kw_only=True):
    """A snapshot of a branch was committed; nothing of main changes.

    `target_snapshot_id` is set for a rollback to an older snapshot's contents.
    """

    branch_name: str
    parent_snapshot_id: int
    target_snapshot_id: int | UnsetType = UNSET


class RolledBack(SnapshotFacts, frozen=True, tag="rollback", kw_only=True):
    """Main was rolled back: a new snapshot has older contents; `files` is the difference."""

    target_snapshot_id: int
    target_tag_name: str | UnsetType = UNSET


class SnapshotsExpired(Record, frozen=True, tag="expireSnapshots", kw_only=True):
    """Snapshots before `earliest_snapshot_id` expired, except those that a tag or branch keeps.

    They are snapshots of main; of a branch if the id is one of its own.
    """

    earliest_snapshot_id: int


class TagCreated(Record, frozen=True, tag="createTag", kw_only=True):
    """A snapshot was tagged. `time_retained_millis` is absent when the tag is kept for ever.

    `create_time_millis` is that of the tag that this one copies; absent: that of the transaction.
    """

    tag_name: str
    snapshot_id: int
    time_retained_millis: int | UnsetType = UNSET
    create_time_millis: int | UnsetType = UNSET


class TagReplaced(Record, frozen=True, tag="replaceTag", kw_only=True):
    """A tag now names another snapshot; `create_time_millis` as in `TagCreated`."""

    tag_name: str
    snapshot_id: int
    time_retained_millis: int | UnsetType = UNSET
    create_time_millis: int | UnsetType = UNSET


class TagDeleted(Record, frozen=True, tag="deleteTag", kw_only=True):
    """A tag was deleted; its snapshot stays unless it was expired."""

    tag_name: str


class PartitionStatisticsSet(Record, frozen=True, tag="setPartitionStatistics"):
    """A snapshot has a file of statistics by partition, which replaces an earlier one.

    Its path is relative to the table's location unless the file is outside of it. The file is
    removed with its snapshot.

    Source: Iceberg's REST catalog specification, `set-partition-statistics`.
    """

    partition_statistics: PartitionStatisticsFile


SnapshotEvent = SnapshotCommitted | RolledBack
"""An event that makes a snapshot of main."""


def snapshot_events(commit: Commit[Any]) -> Iterator[SnapshotEvent]:
    """Yield the snapshots of main in a commit, of all its transactions, in order."""
    for transaction in commit.transactions:
        for event in transaction.events:
            if isinstance(event, SnapshotEvent):
                yield event


ListingEvent = SnapshotCommitted | RolledBack | BranchCommitted
"""An event that lists file changes: of main, or of a branch."""
TagEvent = TagCreated | TagReplaced | TagDeleted
