"""SnapshotContents: the manifests that make up a snapshot.

A snapshot lists its files itself, or names the manifest lists of the engine that wrote it, which
the engine's format decodes (`engine_manifests`).

A rollback by the ledger names none. If there are manifest lists between it and its target, its
changes turn the files live before it into those of the target: both are computed from the nearest
lists before them and the file lists of snapshots since, and common parts cancel out.
"""

from __future__ import annotations

from collections.abc import Iterator

from attrs import evolve, frozen
from msgspec import UnsetType

from ledger.events import TableEvent
from ledger.events.commit import Commit
from ledger.events.snapshots import RolledBack, SnapshotCommitted, SnapshotEvent, snapshot_events
from ledger.history.older import TableLog, state_at_snapshot
from ledger.log.time_travel import effective_millis
from projections.manifest_files.lists import lists_files, names_lists
from projections.statistics.engine_files import (
    LEDGER,
    Asked,
    EngineFiles,
    InstalledManifestDecoders,
    ManifestPart,
    MissingFileError,
    add_snapshot_to_errors,
    drop_cancelled_parts,
)

_COMMITS_AT_ONCE = 64
_MOST_KNOWN = 512


@frozen
class PlacedSnapshot:
    """A snapshot and its position in the log."""

    version: int
    time_millis: int
    event: SnapshotEvent

    @property
    def snapshot_id(self) -> int:
        """Its id."""
        return self.event.snapshot_id


class SnapshotContents:
    """The parts of the snapshots of one table.

    Args:
        log: The table's log.
    """

    def __init__(self, log: TableLog) -> None:
        self._log = log
        self.files = EngineFiles.of(log)
        self._manifests = InstalledManifestDecoders()
        self._known: dict[int, PlacedSnapshot] = {}

    @property
    def _first_owned_version(self) -> int:
        """The commit since which the ledger lists the table's files; 0 for always."""
        head = self._log.head
        return 0 if head is None else head.state.origin.lists_files_since

    def learn(self, commit: Commit[TableEvent]) -> list[PlacedSnapshot]:
        """Return a commit's snapshots, and cache them."""
        if commit.version < self._first_owned_version:
            return []
        moment = effective_millis(commit)
        found = [PlacedSnapshot(commit.version, moment, each) for each in snapshot_events(commit)]
        if len(self._known) > _MOST_KNOWN:
            self._known.clear()
        self._known.update((each.snapshot_id, each) for each in found)
        return found

    def changes(self, snapshot: PlacedSnapshot) -> list[ManifestPart] | None:
        """Return the parts with a snapshot's changes; None where it lists its files itself.

        Raises:
            MissingFileError: A manifest list is missing.
            DamagedLogError: One is damaged.
            UnsupportedError: One is outside of the table's store.
        """
        event = snapshot.event
        if self._first_owned_version:
            # The ledger lists all live files here; earlier counts are those of the source.
            return None
        if isinstance(event, RolledBack):
            return self._parts_of_rollback(snapshot, event)
        if not names_lists(event):
            return None
        return list(self._parts_of_named_lists(event, snapshot, "changes"))

    def live(self, snapshot: PlacedSnapshot) -> list[ManifestPart]:
        """Return the parts with a snapshot's complete contents; raises as `changes`."""
        parts: list[ManifestPart] = []
        step = snapshot.snapshot_id
        while step:
            step = self._step_back(step, snapshot, parts, sign=1)
        return parts

    def can_read(self, parts: list[ManifestPart]) -> bool:
        """Return whether every file that parts name exists."""
        return all(self.files.exists(file) for file in {each.file for each in parts})

    def at(self, snapshot_id: int) -> PlacedSnapshot:
        """Return a snapshot of the log.

        Raises:
            NotFoundError: No snapshot ever had that id.
        """
        if snapshot_id not in self._known:
            if self._log.head is None:
                self._log.refresh()
            last = state_at_snapshot(self._log, snapshot_id).version
            # A lookup is followed by lookups of earlier ones.
            for read in self._log.commits(max(0, last - _COMMITS_AT_ONCE + 1), last):
                self.learn(read.commit)
        return self._known[snapshot_id]

    def _parts_of_rollback(
        self, snapshot: PlacedSnapshot, event: RolledBack
    ) -> list[ManifestPart] | None:
        before, target = snapshot.snapshot_id - 1, event.target_snapshot_id
        parts: list[ManifestPart] = []
        while before != target:
            if before > target:
                before = self._step_back(before, snapshot, parts, sign=-1)
            else:
                target = self._step_back(target, snapshot, parts, sign=1)
        if all(each.dialect == LEDGER for each in parts):
            return None
        return drop_cancelled_parts([evolve(each, compared=1) for each in parts])

    def _step_back(
        self, snapshot_id: int, counted: PlacedSnapshot, parts: list[ManifestPart], *, sign: int
    ) -> int:
        """Add the difference between a snapshot and an earlier one, and return the latter or 0.

        Args:
            snapshot_id: The snapshot.
            counted: The snapshot that it is read for.
            parts: The list to which the parts are added.
            sign: The sign of the parts.
        """
        found = self.at(snapshot_id)
        if isinstance(found.event, RolledBack):
            return found.event.target_snapshot_id
        if not names_lists(found.event):
            if lists_files(found.event):
                parts.append(evolve(self._ledger_list_part(found, counted), sign=sign))
            return snapshot_id - 1
        if isinstance(found.event.base_manifest_list, UnsetType):
            raise MissingFileError(
                f"snapshot {snapshot_id} names a delta manifest list and no base list, so that "
                "its contents are unknown; let the table's engine commit once more",
                self._log.layout.commit(found.version),
            )
        held = self._parts_of_named_lists(found.event, counted, "contents")
        parts += [evolve(each, sign=sign) for each in held]
        return 0

    def _ledger_list_part(self, found: PlacedSnapshot, counted: PlacedSnapshot) -> ManifestPart:
        return ManifestPart(
            version=counted.version,
            snapshot_id=counted.snapshot_id,
            dialect=LEDGER,
            file=self._log.layout.commit(found.version),
            adder=found.snapshot_id,
        )

    def _parts_of_named_lists(
        self, event: SnapshotCommitted, counted: PlacedSnapshot, asked: Asked
    ) -> Iterator[ManifestPart]:
        """Yield the manifests of the lists that a snapshot names, as parts of the counted one."""
        dialect, manifests = self._manifests.of(event)
        for each in manifests.lists(event, asked):
            key = self.files.key(each.path)
            with add_snapshot_to_errors(event.snapshot_id):
                body = self.files.read(key, each.size, event.snapshot_id)
                listed = manifests.listed(body, key, event, asked)
            for one in listed:
                yield ManifestPart(
                    version=counted.version,
                    snapshot_id=counted.snapshot_id,
                    dialect=dialect,
                    file=self.files.key(one.path),
                    size=one.size,
                    count=one.count,
                    adder=one.adder,
                    spec_id=one.spec_id,
                    time_millis=counted.time_millis,
                )


def is_readable(contents: SnapshotContents, snapshot: PlacedSnapshot, *, whole: bool) -> bool:
    """Return whether all files with a snapshot's changes, or contents, still exist.

    Args:
        contents: The parts of the table's snapshots.
        snapshot: The snapshot.
        whole: Whether to check its complete contents.

    Raises:
        DamagedLogError: A manifest list is damaged, which is no sign of expiry.
    """
    try:
        parts = contents.live(snapshot) if whole else contents.changes(snapshot)
    except MissingFileError:
        return False
    return contents.can_read(parts or [])
