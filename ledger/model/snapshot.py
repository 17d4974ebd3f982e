"""Snapshot, tag, branch and totals, and the tiling of caches.

Caches of a log and lists of manifests are tiled (`tiles_covering`, `parts`): an interval is
written once for each tier, so that the cost of an append does not grow with the length of the log.

Source: Paimon's snapshot and tag files, and the DLF metadata API's Snapshot and TableSnapshot.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, Literal

from attrs import evolve, field, frozen

CommitKind = Literal["APPEND", "COMPACT", "OVERWRITE", "ANALYZE"]

BATCH_COMMIT_IDENTIFIER = 9_223_372_036_854_775_807
"""The identifier of batch commits, Java's Long.MAX_VALUE; it never deduplicates."""


@frozen(kw_only=True)
class Snapshot:
    """One snapshot, with the attributes of the DLF API and of Paimon's snapshot file.

    Attributes:
        id: 1, 2, 3, ... without gaps; on a branch from `Branch.first_snapshot_id` on.
        schema_id: The schema that was current when it was committed.
        commit_kind: APPEND, COMPACT, OVERWRITE or ANALYZE.
        commit_user: Id of the writer: stable for a stream that resumes, fresh for a batch.
        commit_identifier: The stream's own number for this commit.
        time_millis: Unix time in milliseconds.
        total_record_count: Rows in all live files.
        delta_record_count: Rows added less rows removed; may be negative.
        base_manifest_list: Set where an engine wrote its own manifests.
        log_offsets: Bucket to log offset; older writers only.
    """

    id: int
    schema_id: int
    commit_kind: CommitKind
    commit_user: str
    commit_identifier: int
    time_millis: int
    total_record_count: int
    delta_record_count: int
    version: int = 3
    base_manifest_list: str | None = None
    base_manifest_list_size: int | None = None
    delta_manifest_list: str | None = None
    delta_manifest_list_size: int | None = None
    changelog_manifest_list: str | None = None
    changelog_manifest_list_size: int | None = None
    index_manifest: str | None = None
    log_offsets: Mapping[int, int] | None = field(default=None, hash=False)
    changelog_record_count: int | None = None
    watermark: int | None = None
    statistics: str | None = None
    uuid: str | None = None
    properties: Mapping[str, str] | None = field(default=None, hash=False)
    next_row_id: int | None = None
    writer_version: str | None = None
    operation: str | None = None


@frozen
class Tag:
    """Tag: a name for a snapshot, which keeps it from expiring.

    Attributes:
        name: The tag's name.
        snapshot_id: The snapshot that it names.
        create_time_millis: Unix time of the tag's commit, in milliseconds.
        time_retained_millis: Retention of the tag in milliseconds; None to keep it for ever.
    """

    name: str
    snapshot_id: int
    create_time_millis: int
    time_retained_millis: int | None = None

    def with_times_clamped(self, latest_millis: int) -> Tag:
        """Return the tag with its creation time capped at `latest_millis`."""
        if self.create_time_millis <= latest_millis:
            return self
        return evolve(self, create_time_millis=latest_millis)


@frozen
class Totals:
    """Sums over the live files at one instant: rows, bytes and files, as in DLF's TableSnapshot.

    `last_file_creation_time` is the maximum over every file ever added or removed, in
    milliseconds, as Paimon defines it; None before the first.
    """

    record_count: int = 0
    file_size_in_bytes: int = 0
    file_count: int = 0
    last_file_creation_time: int | None = None


BRANCH_IDS: Final = 1_000_000_000_000
"""First snapshot id of a table's branch 1; ids of the n-th branch start at n times this number."""


def branch_number(snapshot_id: int) -> int:
    """Return the number of a snapshot's branch, in order of creation from 1; 0 for main.

    Example:
        >>> branch_number(7), branch_number(2_000_000_000_007)
        (0, 2)
    """
    return snapshot_id // BRANCH_IDS


def snapshot_idempotency_key(kind: str, identifier: int, user: str, branch: int = 0) -> str | None:
    """Return the idempotency key of a snapshot; snapshots with equal keys are the same one.

    None for batch commits: their identifier never deduplicates.

    Args:
        kind: The commit's kind.
        identifier: The stream's own number for the commit.
        user: The commit user, which names the stream.
        branch: The number of the branch; 0 for main.

    Example:
        >>> (
        ...     snapshot_idempotency_key("APPEND", 7, "job"),
        ...     snapshot_idempotency_key("APPEND", 7, "job", 2),
        ... )
        ('snapshot:APPEND:7:job', 'branch 2:snapshot:APPEND:7:job')
    """
    if identifier == BATCH_COMMIT_IDENTIFIER:
        return None
    return f"{branch_key_prefix(branch)}snapshot:{kind}:{identifier}:{user}"


def branch_key_prefix(branch: int) -> str:
    """Return the prefix of a branch's keys, by the branch's number; empty for main."""
    return f"branch {branch}:" if branch else ""


@frozen(kw_only=True)
class Branch:
    """Branch: a base snapshot of main, and the branch's own snapshots on top of it.

    Attributes:
        name: Its name.
        number: Its number among all branches that the table ever had, from 1; never reused.
        base_snapshot_id: The snapshot of main that it starts from, which it keeps from expiring.
        base_version: The version of that snapshot's commit.
        since_version: The version of the commit that set this base.
        first_snapshot_id: The id of its first own snapshot on this base, committed or not yet.
        earliest_snapshot_id: The oldest own snapshot that is not expired.
        snapshot: Its newest own snapshot on this base; None before the first.
        totals: Sums over its live files.
        min_snapshots_to_keep: Minimum number of its snapshots that expiry by an engine keeps.
        max_snapshot_age_millis: Age below which expiry by an engine keeps its snapshots.
        max_ref_age_millis: Age below which expiry by an engine keeps the branch.
    """

    name: str
    number: int
    base_snapshot_id: int
    base_version: int
    since_version: int
    first_snapshot_id: int
    earliest_snapshot_id: int
    snapshot: Snapshot | None = None
    totals: Totals = Totals()
    min_snapshots_to_keep: int | None = None
    max_snapshot_age_millis: int | None = None
    max_ref_age_millis: int | None = None

    @property
    def head_id(self) -> int:
        """The id of its current snapshot: the newest own one, or else the base."""
        return self.base_snapshot_id if self.snapshot is None else self.snapshot.id

    @property
    def next_id(self) -> int:
        """The id that its next snapshot gets."""
        return self.first_snapshot_id if self.snapshot is None else self.snapshot.id + 1

    @property
    def snapshot_ids(self) -> range:
        """The ids of its own snapshots that are not expired, oldest first."""
        return range(self.earliest_snapshot_id, self.next_id)


UNKNOWN_TOTALS: Final = Totals(-1, -1, -1)
"""The sums of a snapshot whose source gives none."""


@frozen(kw_only=True)
class EngineBranch:
    """Branch of a table from Iceberg or Paimon, as their metadata has it.

    Attributes:
        name: Its name.
        base_snapshot_id: The newest snapshot that it shares with main; None if there is none.
        snapshot_ids: The ids of its existing snapshots that main does not have, oldest first.
        totals: Sums over its live files; unknown ones are -1.
        min_snapshots_to_keep: Minimum number of its snapshots that expiry by an engine keeps.
        max_snapshot_age_millis: Age below which expiry by an engine keeps its snapshots.
        max_ref_age_millis: Age below which expiry by an engine keeps the branch.
    """

    name: str
    base_snapshot_id: int | None = None
    snapshot_ids: tuple[int, ...] = ()
    totals: Totals = Totals()
    min_snapshots_to_keep: int | None = None
    max_snapshot_age_millis: int | None = None
    max_ref_age_millis: int | None = None

    @property
    def head_id(self) -> int | None:
        """The id of its current snapshot; None before the first."""
        return self.snapshot_ids[-1] if self.snapshot_ids else self.base_snapshot_id


FAN_OUT = 8


def tiles_covering(count: int) -> Iterator[tuple[int, int]]:
    """Yield the tiles, as half-open ranges of indexes, that cover `count` items; newest first.

    Example:
        >>> list(tiles_covering(10))
        [(9, 10), (8, 9), (0, 8)]
    """
    end = count
    while end > 0:
        width = 1
        while end % (width * FAN_OUT) == 0:
            width *= FAN_OUT
        yield end - width, end
        end -= width


def parts(start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the tiles of the tier below that merge into a tile, oldest first; none for width 1.

    Example:
        >>> list(parts(0, 8))[:2], list(parts(3, 4))
        ([(0, 1), (1, 2)], [])
    """
    width = (end - start) // FAN_OUT
    if width:
        yield from ((each, each + width) for each in range(start, end, width))
