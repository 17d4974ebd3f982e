"""Changes of a table besides SchemaChanges: snapshots, tags, expiry, drop, clock."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal, Protocol

import msgspec
from msgspec import Struct

from ledger.events.schema import SchemaChange, SpecChange
from ledger.events.snapshots import ChangesReference
from ledger.events.table import ClockCorrected, ServingProtocol
from ledger.model.errors import InvalidInputError
from ledger.model.file_change import FileChange
from ledger.model.iceberg_objects import BlobMetadata, StatisticsFile
from ledger.model.messages import excerpt
from ledger.model.snapshot import CommitKind, Totals, snapshot_idempotency_key
from ledger.state.layout import PartitionFilter


class CorrectClock(Struct, frozen=True):
    """Record that no commit so far, from a version on, took effect later than at a time.

    Attributes:
        first_version: The first commit with a later time.
        true_time_millis: The time, Unix milliseconds.
    """

    first_version: int
    true_time_millis: int


class TimedState(Protocol):
    """The time of a state."""

    @property
    def effective_millis(self) -> int:
        """The newest effective time up to it."""


def decide_clock_correction(state: TimedState, change: CorrectClock) -> ClockCorrected | None:
    """Return the event that times were ahead, or None when none is later than the true time."""
    if state.effective_millis <= change.true_time_millis:
        return None
    return ClockCorrected(
        first_version=change.first_version, true_time_millis=change.true_time_millis
    )


Isolation = Literal["serializable", "snapshot"]


class FileSums(Struct, frozen=True):
    """Net sums over a list of file changes: ADD counts, DELETE subtracts."""

    record_count: int = 0
    file_count: int = 0
    file_size_in_bytes: int = 0
    last_file_creation_time: int | None = None

    @classmethod
    def of(cls, files: Iterable[FileChange]) -> FileSums:
        """Return the sums of a list.

        Example:
            >>> FileSums.of([FileChange(path="a", record_count=2, file_size_in_bytes=9)])
            FileSums(record_count=2, file_count=1, file_size_in_bytes=9, last_file_creation_time=0)
        """
        records = count = size = 0
        newest: int | None = None
        for each in files:
            sign = 1 if each.kind == "ADD" else -1
            records += sign * each.record_count
            count += sign
            size += sign * each.file_size_in_bytes
            newest = each.creation_time if newest is None else max(newest, each.creation_time)
        return cls(records, count, size, newest)


class MetBranch(Struct, frozen=True):
    """A branch as its writer saw it; a new branch of the same name has another number."""

    name: str
    number: int


class CommitSnapshot(Struct, frozen=True, kw_only=True):
    """Commit a snapshot of file changes.

    Attributes:
        commit_kind: APPEND, COMPACT, OVERWRITE or ANALYZE.
        commit_user: The writer; with `commit_identifier` and the kind it is the snapshot's key.
        commit_identifier: Batch commits have Long.MAX and are never deduplicated.
        files: Every ADD and DELETE.
        written: The same as recorded in the log, where columns are personal; empty: unchanged.
        reference: The same list on the store, when it is too long for a commit.
        where: The partition values that an overwrite replaced; None when files were named one by
            one.
        isolation: Whether files that others add to those partitions meanwhile are a conflict.
        facts: Further keys of Paimon's snapshot file, by their names in the event.
        branch: The branch to commit to, as the writer saw it; None for main.
    """

    commit_kind: CommitKind
    commit_user: str
    commit_identifier: int
    files: tuple[FileChange, ...] = ()
    written: tuple[FileChange, ...] = ()
    reference: ChangesReference | None = None
    where: PartitionFilter | None = None
    isolation: Isolation = "serializable"
    facts: Mapping[str, Any] = {}
    branch: MetBranch | None = None

    @property
    def key(self) -> str | None:
        """The key by which commits deduplicate it; see `snapshot_idempotency_key`."""
        number = 0 if self.branch is None else self.branch.number
        return snapshot_idempotency_key(
            self.commit_kind, self.commit_identifier, self.commit_user, number
        )


class Rollback(Struct, frozen=True, kw_only=True):
    """Restore a snapshot's contents, as a new snapshot of main or of a branch.

    `files` is the difference between the head that the writer saw and the target; `written` and
    `reference` are as those of CommitSnapshot.
    """

    target_snapshot_id: int
    target_tag_name: str | None = None
    commit_user: str
    files: tuple[FileChange, ...] = ()
    written: tuple[FileChange, ...] = ()
    reference: ChangesReference | None = None
    branch: MetBranch | None = None


class SetBranch(Struct, frozen=True, kw_only=True):
    """Begin a branch, new or reset, with a snapshot of main.

    Attributes:
        name: The branch's.
        snapshot_id: The snapshot.
        base_version: The commit that made it.
        totals: Sums over its files.
        resets: Whether the branch exists and is reset; else it is a new one.
        min_snapshots_to_keep: As in `Branch`.
        max_snapshot_age_millis: As in `Branch`.
        max_ref_age_millis: As in `Branch`.
    """

    name: str
    snapshot_id: int
    base_version: int
    totals: Totals
    resets: bool = False
    min_snapshots_to_keep: int | None = None
    max_snapshot_age_millis: int | None = None
    max_ref_age_millis: int | None = None


class DeleteBranch(Struct, frozen=True):
    """Delete a branch."""

    name: str


class FastForward(Struct, frozen=True, kw_only=True):
    """Fast-forward main to a branch.

    `files` is the difference between main's head and `snapshot_id`, the branch's head then;
    `written` and `reference` are as those of CommitSnapshot.
    """

    branch: MetBranch
    snapshot_id: int
    commit_user: str
    files: tuple[FileChange, ...] = ()
    written: tuple[FileChange, ...] = ()
    reference: ChangesReference | None = None


class CreateTag(Struct, frozen=True):
    """Create a tag; of the newest snapshot when `snapshot_id` is None."""

    tag_name: str
    snapshot_id: int | None = None
    time_retained_millis: int | None = None


class ReplaceTag(Struct, frozen=True):
    """Move an existing tag to another snapshot; the newest when `snapshot_id` is None."""

    tag_name: str
    snapshot_id: int | None = None
    time_retained_millis: int | None = None


class DeleteTag(Struct, frozen=True):
    """Delete a tag."""

    tag_name: str


class ExpireSnapshots(Struct, frozen=True):
    """Expire the snapshots before `earliest_snapshot_id`."""

    earliest_snapshot_id: int


class SetPartitionStatistics(Struct, frozen=True):
    """Set a snapshot's file of statistics by partition."""

    snapshot_id: int
    path: str
    file_size_in_bytes: int


class SetStatistics(Struct, frozen=True):
    """Set a snapshot's Puffin file of statistics."""

    statistics: StatisticsFile

    @classmethod
    def of(cls, blobs: Iterable[BlobMetadata], **facts: Any) -> SetStatistics:
        """Return the change that a caller requests.

        Raises:
            InvalidInputError: A blob is invalid, or holds values that a log cannot hold.
        """
        given = tuple(blobs)
        for each in given:
            if not isinstance(each, BlobMetadata):
                raise InvalidInputError(f"{excerpt(each)} is no BlobMetadata; give those")
        said = StatisticsFile(blob_metadata=given, **facts)
        try:
            return cls(msgspec.convert(msgspec.to_builtins(said), StatisticsFile))
        except (msgspec.ValidationError, TypeError, OverflowError) as error:
            raise InvalidInputError(f"{excerpt(given)} are no blobs: {error}") from error


class SetOwner(Struct, frozen=True):
    """Change the table's owner.

    Attributes:
        owner: The new owner.
        protocol: The protocol that engines commit through; None if they do not.
    """

    owner: Literal["ledger", "served"]
    protocol: ServingProtocol | None = None


class AllowIncompatibleChanges(Struct, frozen=True):
    """Allow this transaction to make columns required although older rows may lack them."""


class DropTable(Struct, frozen=True):
    """Seal the table's stream; with `purge` its files are deleted later."""

    database: str
    name: str
    purge: bool = False


SnapshotChange = CommitSnapshot | Rollback | FastForward
TagChange = CreateTag | ReplaceTag | DeleteTag
BranchChange = SetBranch | DeleteBranch
OtherChange = (
    SnapshotChange
    | TagChange
    | BranchChange
    | ExpireSnapshots
    | SetPartitionStatistics
    | SetStatistics
    | SetOwner
    | CorrectClock
    | DropTable
)
TableChange = SchemaChange | SpecChange | OtherChange | AllowIncompatibleChanges
"""Every change that a writer can request of a table."""
