"""Snapshot, tag and totals: what a table holds at one point of its history.

Source: Paimon's snapshot and tag files, and the DLF metadata API's Snapshot and TableSnapshot.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from attrs import evolve, field, frozen

CommitKind = Literal["APPEND", "COMPACT", "OVERWRITE", "ANALYZE"]

BATCH_COMMIT_IDENTIFIER = 9_223_372_036_854_775_807
"""The identifier of batch commits, Java's Long.MAX_VALUE; it never deduplicates."""


@frozen(kw_only=True)
class Snapshot:
    """One snapshot. Names and meanings are those of the DLF page and of Paimon's snapshot file.

    Attributes:
        id: 1, 2, 3, ... without gaps.
        schema_id: The schema that was current when it was committed.
        commit_kind: APPEND, COMPACT, OVERWRITE or ANALYZE.
        commit_user: Who resumes after a failure: stable for a stream, fresh for a batch.
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
    """A name for a snapshot, which keeps it from expiring.

    Attributes:
        name: The tag's name.
        snapshot_id: The snapshot that it names.
        create_time_millis: Unix time of the tag's commit, in milliseconds.
        time_retained_millis: How long it is kept; None for ever.
    """

    name: str
    snapshot_id: int
    create_time_millis: int
    time_retained_millis: int | None = None

    def not_after(self, latest_millis: int) -> Tag:
        """Return the tag as if it had been made by then, at the latest."""
        if self.create_time_millis <= latest_millis:
            return self
        return evolve(self, create_time_millis=latest_millis)


@frozen
class Totals:
    """Sums over the live files at one instant, as DLF's TableSnapshot has them.

    `last_file_creation_time` is the maximum over every file ever added or removed, in
    milliseconds, as Paimon defines it; None before the first.
    """

    record_count: int = 0
    file_size_in_bytes: int = 0
    file_count: int = 0
    last_file_creation_time: int | None = None


@frozen
class StatisticsFile:
    """A file of statistics that somebody computed for a snapshot.

    Attributes:
        path: Relative to the table's location, or absolute.
        file_size_in_bytes: Its size.
    """

    path: str
    file_size_in_bytes: int
