"""What makes a snapshot the same as another, as Paimon has it: who, which of his, and its kind."""

from __future__ import annotations

from ledger.events.snapshot_events import SnapshotCommitted
from ledger.evolution.table_changes import CommitSnapshot
from ledger.model.snapshot import BATCH_COMMIT_IDENTIFIER


def snapshot_key_of(kind: str, identifier: int, user: str) -> str | None:
    """Return what makes a snapshot the same as another.

    None for batch commits: their identifier never deduplicates.

    Example:
        >>> snapshot_key_of("APPEND", 7, "job")
        'snapshot:APPEND:7:job'
    """
    if identifier == BATCH_COMMIT_IDENTIFIER:
        return None
    return f"snapshot:{kind}:{identifier}:{user}"


def snapshot_key(snapshot: CommitSnapshot | SnapshotCommitted) -> str | None:
    """Return `snapshot_key_of` a snapshot asked for or committed."""
    return snapshot_key_of(snapshot.commit_kind, snapshot.commit_identifier, snapshot.commit_user)
