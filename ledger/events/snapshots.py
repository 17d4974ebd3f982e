"""Changes and events of snapshots, tags, expiry and statistics.

Every event carries its resolved ids and sums, so that folding never reads a file list.
"""

from collections.abc import Iterator
from typing import Any, Literal

from msgspec import UNSET, Raw, Struct, UnsetType, field

from ledger.events.commit import Commit, Record
from ledger.model.iceberg_objects import PartitionStatisticsFile
from ledger.model.snapshot import BATCH_COMMIT_IDENTIFIER, branch_number, snapshot_key_of

NO_FILES = Raw(b"")
"""What `files` is when there are none; by identity, as msgspec leaves defaults out."""

CommitKind = Literal["APPEND", "COMPACT", "OVERWRITE", "ANALYZE"]


class ChangesReference(Struct, frozen=True, gc=False, rename="camel", forbid_unknown_fields=True):
    """A file-change list too long to stand inside a commit, as Parquet beside the log.

    `path` is relative to the table's `_ledger/`; `sha256` is of the file's bytes, in hex.
    """

    path: str
    sha256: str
    count: int


class SnapshotFacts(Record, frozen=True, kw_only=True):
    """What every new snapshot says, whoever made it.

    `files` is a JSON array of FileChange, kept as bytes until somebody asks; `changes` names the
    same list on the store instead. Sums are of this snapshot; totals are after it.
    `last_file_creation_time` is the maximum over the files in the list. `named_schema_ids` are the
    schemas whose names the added files use that carry no field ids. `summary` is what Iceberg says
    of the snapshot, where the table was born there and promoted.
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
    """A branch, and the snapshot that it showed."""

    branch_name: str
    snapshot_id: int


class CommittedFacts(SnapshotFacts, frozen=True, kw_only=True):
    """What a snapshot of file changes says. The optional keys are those of Paimon's file."""

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
        """What makes it the same as another; see `snapshot_key_of`."""
        number = branch_number(self.snapshot_id)
        return snapshot_key_of(self.commit_kind, self.commit_identifier, self.commit_user, number)


class SnapshotCommitted(CommittedFacts, frozen=True, tag="commitSnapshot", kw_only=True):
    """A snapshot of main was committed.

    `fast_forward_to` names the branch whose contents main has from now on; its
    files are the difference, and the branch begins with this snapshot.
    """

    fast_forward_to: BranchHead | UnsetType = UNSET


class BranchCommitted(CommittedFacts, frozen=True, tag="commitToBranch", kw_only=True):
    """A snapshot of a branch was committed; nothing of main changes.

    `target_snapshot_id` is set where an older one's contents were put back.
    """

    branch_name: str
    parent_snapshot_id: int
    target_snapshot_id: int | UnsetType = UNSET


class RolledBack(SnapshotFacts, frozen=True, tag="rollback", kw_only=True):
    """A new snapshot with an older one's contents; its files are the difference to the head."""

    target_snapshot_id: int
    target_tag_name: str | UnsetType = UNSET


class SnapshotsExpired(Record, frozen=True, tag="expireSnapshots", kw_only=True):
    """Snapshots before `earliest_snapshot_id` are gone, but for those that a tag or branch holds.

    Those of main; of a branch where the id is one of its own.
    """

    earliest_snapshot_id: int


class TagCreated(Record, frozen=True, tag="createTag", kw_only=True):
    """A snapshot has a name. `time_retained_millis` is absent when it is kept for ever."""

    tag_name: str
    snapshot_id: int
    time_retained_millis: int | UnsetType = UNSET


class TagReplaced(Record, frozen=True, tag="replaceTag", kw_only=True):
    """A tag names another snapshot now."""

    tag_name: str
    snapshot_id: int
    time_retained_millis: int | UnsetType = UNSET


class TagDeleted(Record, frozen=True, tag="deleteTag", kw_only=True):
    """A tag is gone; its snapshot stays unless it was expired."""

    tag_name: str


class PartitionStatisticsSet(Record, frozen=True, tag="setPartitionStatistics"):
    """A snapshot has a file of statistics by partition; it takes the place of an earlier one.

    Its path is relative to the table's location unless the file lies outside. The file goes with
    its snapshot.

    Source: Iceberg's REST catalog specification, `set-partition-statistics`.
    """

    partition_statistics: PartitionStatisticsFile


SnapshotEvent = SnapshotCommitted | RolledBack
"""What makes a snapshot of main."""


def snapshot_events(commit: Commit[Any]) -> Iterator[SnapshotEvent]:
    """Yield the snapshots of main that a commit makes, of all its writers, in order."""
    for transaction in commit.transactions:
        for event in transaction.events:
            if isinstance(event, SnapshotEvent):
                yield event


ListingEvent = SnapshotCommitted | RolledBack | BranchCommitted
"""What lists file changes: of main, or of a branch."""
TagEvent = TagCreated | TagReplaced | TagDeleted
