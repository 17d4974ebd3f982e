"""Manifest lists of a snapshot: the ledger's or an engine's.

A projection makes manifests from the files that the log lists. Where it lists only some, a reader
of such manifests would miss the others, so whoever makes them asks `UnlistedFiles` first.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from uuid import NAMESPACE_OID, UUID, uuid5

from msgspec import UnsetType

from ledger.events.snapshots import RolledBack, SnapshotCommitted, SnapshotEvent


def list_names(table_id: str, snapshot_id: int) -> tuple[str, str]:
    """Return the names of the base and the delta list that a projection to Paimon gives.

    They are functions of the log, so that a snapshot has them whether or not the files stand.

    Args:
        table_id: The table's; a UUID where the ledger gave it.
        snapshot_id: The snapshot.

    Example:
        >>> list_names("01a1f54c-0000-7000-8000-000000000000", 1)[0]
        'manifest-list-d56dd9f2-2c59-531e-8a18-335cb205ff5e-0'
    """
    try:
        table = UUID(table_id)
    except ValueError:
        table = uuid5(NAMESPACE_OID, table_id)
    stem = f"manifest-list-{uuid5(table, f'snapshot {snapshot_id}')}"
    return f"{stem}-0", f"{stem}-1"


def lists_files(event: SnapshotEvent) -> bool:
    """Whether a snapshot has a list of its files in the ledger."""
    return bool(bytes(event.files)) or not isinstance(event.changes, UnsetType)


def names_lists(event: SnapshotEvent) -> bool:
    """Whether a snapshot's files are known from the manifest lists of its engine alone."""
    if isinstance(event, RolledBack) or lists_files(event):
        return False
    return any(isinstance(each, str) for each in (event.base_manifest_list, delta_list(event)))


def delta_list(event: SnapshotCommitted) -> str | None:
    """Return the manifest list that says what a snapshot changed, if its engine named one."""
    return None if isinstance(event.delta_manifest_list, UnsetType) else event.delta_manifest_list


class UnlistedFiles:
    """Which snapshots hold such files.

    Args:
        flips: The ids from which on the answer is another one, ascending; at first it is no.

    Example:
        >>> unlisted = UnlistedFiles([3, 5])
        >>> [unlisted.held_by(each) for each in (2, 3, 4, 5)]
        [False, True, True, False]
    """

    def __init__(self, flips: Iterable[int] = ()) -> None:
        self._flips = list(flips)

    @property
    def flips(self) -> tuple[int, ...]:
        """The ids from which on the answer is another one, ascending."""
        return tuple(self._flips)

    def learn(self, event: SnapshotEvent) -> None:
        """Take in the next snapshot."""
        if isinstance(event, RolledBack):
            holds = self.held_by(event.target_snapshot_id)
        else:
            holds = names_lists(event) or self.held_by(event.snapshot_id - 1)
        if holds != self.held_by(event.snapshot_id - 1):
            self._flips.append(event.snapshot_id)

    def held_by(self, snapshot_id: int) -> bool:
        """Whether a snapshot that was learnt holds any."""
        return bisect_right(self._flips, snapshot_id) % 2 == 1
