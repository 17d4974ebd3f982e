"""Snapshots that the ledger made of a table which was born in Paimon: their manifests and lists.

They follow the source's snapshots by their ids. The first one lists all files that were live at the
promotion, so that no list of the ledger's reads a manifest of an engine, which may be gone one day;
from there on manifests merge as of any table. A rollback to a snapshot of the source lists anew all
that it brings back.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import Self

from attrs import define

from ledger.events import TableEvent
from ledger.events.commit import Commit
from ledger.events.snapshot_events import RolledBack, SnapshotEvent, snapshot_events
from ledger.evolution.state import TableState
from ledger.evolution.table.origin.paimon import PaimonOrigin
from ledger.history.older import state_at_snapshot
from ledger.model.snapshot import Snapshot
from ledger.table import Table
from projections.outputs import Outputs
from projections.paimon.manifests.tiers import Lines, Tile
from projections.paimon.manifests.writing import Manifests
from projections.paimon.paths import Names, snapshot_path
from projections.paimon.position import PaimonPosition


@define
class OwnSnapshots:
    """The ledger's own snapshots of one table, in one run over its log.

    Attributes:
        table: The table.
        target: The state that the run goes to.
        last_followed: The last snapshot of its source.
        projected: The newest own snapshot whose files an earlier run left; 0 for none.
        lines: The line of each.
        manifests: Theirs.
    """

    table: Table
    target: TableState
    last_followed: int
    projected: int
    lines: Lines
    manifests: Manifests

    @classmethod
    def at(
        cls,
        table: Table,
        outputs: Outputs,
        start: PaimonPosition,
        before: TableState | None,
        target: TableState,
    ) -> Self:
        """Return those of a position."""
        paimon = target.imported_from(PaimonOrigin)
        projected = 0
        if before is not None and before.snapshot is not None and before.lists_files:
            projected = before.last_snapshot_id
        lines = Lines(start.rollbacks, paimon.source_last_id)
        manifests = Manifests(
            table,
            Names(target.table_id),
            outputs,
            known=start.manifests,
            lines=lines,
            projected=projected,
        )
        return cls(table, target, paimon.source_last_id, projected, lines, manifests)

    def learn(self, commit: Commit[TableEvent]) -> None:
        """Take in a commit's snapshots."""
        if commit.version < self.target.imported_from(PaimonOrigin).promoted_in:
            return
        for event in snapshot_events(commit):
            self._learn(event, commit.version)

    def _learn(self, event: SnapshotEvent, version: int) -> None:
        self.manifests.versions[event.snapshot_id] = version
        if isinstance(event, RolledBack):
            target = event.target_snapshot_id
            self.lines.add(event.snapshot_id, target)
            if self.last_followed < target <= self.projected:
                self.manifests.recall(state_at_snapshot(self.table.log, target))

    def named(self, snapshot: Snapshot) -> Snapshot:
        """Return a snapshot with its lists, after writing all that it names."""
        lists = None
        if snapshot.id <= self.projected:
            lists = self.manifests.recall(state_at_snapshot(self.table.log, snapshot.id))
        return self.manifests.named(snapshot, lists)

    def gone(self, before: TableState) -> Iterator[str]:
        """Yield what only snapshots read that are no longer reachable.

        Those that came and went meanwhile are among them, since a run that was killed may have
        written them.
        """
        since = max(before.earliest_snapshot_id, self.last_followed + 1)
        expired = range(since, self.target.earliest_snapshot_id)
        held = (each for each in before.held_snapshot_ids if each > self.last_followed)
        gone = sorted(each for each in {*held, *expired} if not self.target.reachable(each))
        yield from map(snapshot_path, expired)
        for each in gone:
            yield from self.manifests.list_paths(each)
        for tile in sorted({tile for each in gone for tile in self.lines.tiles(each)}):
            if not self._is_read(tile):
                yield self.manifests.tile_path(tile)

    def _is_read(self, tile: Tile) -> bool:
        """Whether a snapshot that can still be read reads a tile."""
        there = sorted(self.target.imported_from(PaimonOrigin).every)
        return any(
            bisect_left(there, first) < bisect_right(there, last)
            for first, last in self.lines.readers(tile)
        )

    def position(self, reached: PaimonPosition) -> PaimonPosition:
        """Return a position that knows what the next own snapshot needs."""
        self.manifests.forget_others(self.target.last_snapshot_id)
        return PaimonPosition(
            reached.version,
            self.lines.rollbacks,
            self.manifests.known,
            commit=reached.commit,
            garbage=reached.garbage,
            location=self.table.location,
        )
