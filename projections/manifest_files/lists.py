"""Manifest lists of a snapshot: the ledger's or an engine's.

A projection writes manifests from the files that the log lists. If the log lists only some, a
reader of such manifests would miss the others, so a projection checks `UnlistedFiles` first.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from uuid import NAMESPACE_OID, UUID, uuid5

from msgspec import UnsetType

from ledger.events.snapshots import RolledBack, SnapshotCommitted, SnapshotEvent


def manifest_list_names(table_id: str, snapshot_id: int) -> tuple[str, str]:
    """Return the names of the base and the delta list in a projection to Paimon.

    They are functions of the log, so a snapshot has them whether or not the files exist.

    Args:
        table_id: The table's id; a UUID if the ledger assigned it.
        snapshot_id: The snapshot.

    Example:
        >>> manifest_list_names("01a1f54c-0000-7000-8000-000000000000", 1)[0]
        'manifest-list-d56dd9f2-2c59-531e-8a18-335cb205ff5e-0'
    """
    try:
        table = UUID(table_id)
    except ValueError:
        table = uuid5(NAMESPACE_OID, table_id)
    stem = f"manifest-list-{uuid5(table, f'snapshot {snapshot_id}')}"
    return f"{stem}-0", f"{stem}-1"


def lists_files(event: SnapshotEvent) -> bool:
    """Return whether the ledger lists a snapshot's files."""
    return bool(bytes(event.files)) or not isinstance(event.changes, UnsetType)


def names_lists(event: SnapshotEvent) -> bool:
    """Return whether only an engine's manifest lists name a snapshot's files."""
    if isinstance(event, RolledBack) or lists_files(event):
        return False
    return any(isinstance(each, str) for each in (event.base_manifest_list, delta_list(event)))


def delta_list(event: SnapshotCommitted) -> str | None:
    """Return the manifest list of a snapshot's changes, if its engine named one."""
    return None if isinstance(event.delta_manifest_list, UnsetType) else event.delta_manifest_list


class UnlistedFiles:
    """Snapshots with files that only an engine's manifest lists name.

    Args:
        flips: The snapshot ids at which the answer changes, ascending; it begins with no.

    Example:
        >>> unlisted = UnlistedFiles([3, 5])
        >>> [unlisted.held_by(each) for each in (2, 3, 4, 5)]
        [False, True, True, False]
    """

    def __init__(self, flips: Iterable[int] = ()) -> None:
        self._flips = list(flips)

    @property
    def flips(self) -> tuple[int, ...]:
        """The snapshot ids at which the answer changes, ascending."""
        return tuple(self._flips)

    def learn(self, event: SnapshotEvent) -> None:
        """Add the next snapshot."""
        if isinstance(event, RolledBack):
            holds = self.held_by(event.target_snapshot_id)
        else:
            holds = names_lists(event) or self.held_by(event.snapshot_id - 1)
        if holds != self.held_by(event.snapshot_id - 1):
            self._flips.append(event.snapshot_id)

    def held_by(self, snapshot_id: int) -> bool:
        """Return whether an added snapshot has such files."""
        return bisect_right(self._flips, snapshot_id) % 2 == 1
