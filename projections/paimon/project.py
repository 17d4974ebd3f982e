"""Paimon projection: incremental, idempotent, restartable.

New files come first and pointers last. Everything is a function of the log, so two projectors at
once, or one that was killed and begins again, write the same bytes.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator
from functools import cached_property

from attrs import evolve, frozen

from ledger.events import TableEvent
from ledger.events.commit import Commit
from ledger.events.snapshots import RolledBack, SnapshotEvent, TagCreated, TagReplaced
from ledger.history.older import state_at_snapshot
from ledger.log.replay import Read
from ledger.log.time_travel import at_version, effective_millis, head_state
from ledger.model.errors import InvalidInputError, UnsupportedError
from ledger.model.instant import true_millis
from ledger.model.snapshot import Snapshot, Tag
from ledger.state.paimon_origin import PaimonOrigin
from ledger.state.snapshots import snapshot_of
from ledger.state.table import TableState
from ledger.state.table_builder import TableBuilder
from ledger.table import Table
from projections.manifest_files.lists import UnlistedFiles
from projections.materialising import Progress, new_commits, refuse
from projections.outputs import Outputs
from projections.paimon.imported import project_born
from projections.paimon.manifest_writing import Manifests
from projections.paimon.paths import (
    EARLIEST,
    FOLDERS,
    LATEST,
    Lines,
    Names,
    Tile,
    schema_path,
    snapshot_path,
    tag_path,
)
from projections.paimon.position import PaimonPosition
from projections.paimon.rules import origin_problems
from projections.paimon.schema_file import schema_file
from projections.paimon.snapshot_file import snapshot_file, tag_file, tag_from_json


@frozen
class Projection:
    """One run over a table's log, from a position to a version.

    Attributes:
        table: The table.
        outputs: Where its files go.
        start: Where the run before stopped.
        target: The state at the version to reach.
    """

    table: Table
    outputs: Outputs
    start: PaimonPosition
    target: TableState

    def run(self, on_progress: Progress) -> PaimonPosition:
        """Write what is new and take away what expired; return the new position.

        Raises:
            DamagedLogError: The log does not go on from where the run before stopped.
            StoreError: A file that the ledger did not project stands in a place of its own.
            UnsupportedError: Paimon has no such files.
        """
        refuse(self.table, origin_problems(self.target))
        if isinstance(self.target.origin, PaimonOrigin):
            return project_born(self.table, self.outputs, self.start, self.target, on_progress)
        run = _NativeRun(self)
        for read in new_commits(self.table, self.start, self.target, on_progress):
            run.commit(read)
        return run.finish()


def _names(body: bytes | None, snapshot_ids: Collection[int]) -> bool:
    """Whether a file is a tag's that names one of some snapshots."""
    try:
        return body is not None and tag_from_json(body).snapshot.id in snapshot_ids
    except InvalidInputError:
        return False


class _NativeRun:
    def __init__(self, projection: Projection) -> None:
        self._table = projection.table
        self._outputs = projection.outputs
        self._target = projection.target
        self._start = projection.start
        self._commit = projection.start.commit
        started = self._start.version >= 0
        self._before = at_version(self._table.log, self._start.version) if started else None
        self._builder = TableBuilder(self._before)
        self._projected = self._before.last_snapshot_id if self._before else 0
        self._begins_empty = self._before is None and not any(
            any(self._outputs.paths(folder)) for folder in FOLDERS
        )
        self._lines = Lines(self._start.rollbacks)
        self._tag_names = set(self._before.tags if self._before else ())
        self._names = Names(self._target.table_id)
        self._manifests = Manifests(
            self._table,
            self._names,
            self._outputs,
            known=self._start.manifests,
            lines=self._lines,
            projected=self._projected,
        )
        self._unlisted = UnlistedFiles(self._start.unlisted)
        self._schema_id = self._before.schema.id if self._before else -1
        if self._before is not None:
            self._manifests.learn_schema(self._before.schema)

    def commit(self, read: Read[TableEvent]) -> None:
        """Project one commit's schemas and snapshots."""
        commit, self._commit = read.commit, read.digest
        self._builder.begin(commit.version, commit.time_millis)
        for transaction in commit.transactions:
            self._builder.add(transaction)
            self._schema()
            for event in transaction.events:
                if isinstance(event, SnapshotEvent):
                    self._snapshot(event, commit)
                elif isinstance(event, TagCreated):
                    self._tag_names.add(event.tag_name)

    def _schema(self) -> None:
        if self._builder.schema_id == self._schema_id:
            return
        schema = self._builder.freeze().schema
        self._schema_id = schema.id
        self._manifests.learn_schema(schema)
        self._outputs.put(schema_path(schema.id), schema_file(schema))

    def _snapshot(self, event: SnapshotEvent, commit: Commit[TableEvent]) -> None:
        snapshot_id = event.snapshot_id
        self._manifests.versions[snapshot_id] = commit.version
        if isinstance(event, RolledBack):
            self._rolled_back(snapshot_id, event.target_snapshot_id)
        self._unlisted.learn(event)
        if self._target.reachable(snapshot_id):
            moment = effective_millis(commit, self._target.corrections)
            content = snapshot_file(self._named(snapshot_of(event, moment)))
            if snapshot_id >= self._target.earliest_snapshot_id:
                self._put_snapshot(event, commit, content)

    def _put_snapshot(
        self, event: SnapshotEvent, commit: Commit[TableEvent], content: bytes
    ) -> None:
        """Keep a snapshot's file, also where it stands as it was before a clock was corrected.

        Paimon searches its snapshots by their times, which must not go back.
        """
        path = snapshot_path(event.snapshot_id)
        known = self._target.corrections
        for since, each in enumerate(known):
            moment = effective_millis(commit, known[:since])
            if commit.version < each.version and moment > each.true_time_millis:
                before = snapshot_file(self._named(snapshot_of(event, moment)))
                if self._outputs.read(path) == before:
                    self._outputs.point(path, content)
        self._outputs.put(path, content)

    def _rolled_back(self, snapshot_id: int, target: int) -> None:
        self._lines.add(snapshot_id, target)
        if target <= self._projected:
            # What the target reads, its lists say: the log need not be read again for it.
            self._manifests.recall(state_at_snapshot(self._table.log, target))

    def _named(self, snapshot: Snapshot, lists: tuple[bytes, bytes] | None = None) -> Snapshot:
        """Return a snapshot with its lists, after writing all that it names.

        Args:
            snapshot: As the log has it.
            lists: Its base and delta list, where they stand already.
        """
        if snapshot.base_manifest_list is not None:
            # Its engine wrote manifests of its own.
            return snapshot
        if self._target.schema.primary_keys:
            raise UnsupportedError(
                f"snapshot {snapshot.id} of {self._table.identifier} lists files of a table with a "
                "primary key, whose keys and levels only its engine knows: let the engine commit "
                "with manifest lists of its own"
            )
        if self._unlisted.held_by(snapshot.id):
            raise UnsupportedError(
                f"snapshot {snapshot.id} of {self._table.identifier} holds files that only "
                "manifests of their engine list, and names no manifest lists itself, so that "
                "Paimon's readers would miss them: let the engine make such snapshots (append, "
                "overwrite, roll back) and record the lists that it writes"
            )
        return self._manifests.named(snapshot, lists)

    def finish(self) -> PaimonPosition:
        """Write tags and hints; return the position, and in it what is no longer reachable."""
        self._tags()
        latest = self._target.last_snapshot_id
        if latest:
            self._outputs.point(LATEST, b"%d" % latest)
            self._outputs.point(EARLIEST, b"%d" % self._target.earliest_snapshot_id)
            self._manifests.forget_others(latest)
        return PaimonPosition(
            self._target.version,
            self._lines.rollbacks,
            self._manifests.known,
            self._unlisted.flips,
            commit=self._commit,
            garbage=tuple(self._expired()) if latest else (),
            location=self._table.location,
        )

    def _tags(self) -> None:
        before = self._before.tags if self._before else {}
        for name, tag in sorted(self._target.tags.items()):
            if before.get(name) != tag or self._before is None:
                self._put_tag(name, self._tag_file(tag))
        # Those that came and went meanwhile, too: a run that was killed may have written them.
        for name in sorted(self._tag_names - set(self._target.tags)):
            there = self._outputs.read(tag_path(name))
            if there is not None and (self._is_kept(name) or _names(there, self._named_as(name))):
                self._outputs.remove(tag_path(name))

    def _put_tag(self, name: str, body: bytes) -> None:
        """Keep a tag's file, also in the place of what it was before; somebody else's is left.

        What it was before is what the tag named at the position, or what a run that was killed made
        of a later commit: of a tag that was named once that can be no other than this.
        """
        path = tag_path(name)
        there = self._outputs.read(path)
        if there not in {None, body}:
            named = () if self._is_kept(name) else self._named_as(name)
            if self._is_kept(name) or (len(named) > 1 and _names(there, named)):
                self._outputs.point(path, body)
                return
        self._outputs.put(path, body)

    def _is_kept(self, name: str) -> bool:
        """Whether what stands in a tag's place is the ledger's, whatever it is."""
        if self._before is not None and name in self._before.tags:
            return True
        # A clock that was corrected since changes what stands there already.
        corrected = head_state(self._table.log).corrections
        return any(each.version > self._start.version for each in corrected)

    def _named_as(self, name: str) -> list[int]:
        """Return the snapshots that a tag was made to name since the position, to the log's end."""
        log = self._table.log
        return [
            event.snapshot_id
            for read in log.commits(self._start.version + 1, head_state(log).version)
            for transaction in read.commit.transactions
            for event in transaction.events
            if isinstance(event, TagCreated | TagReplaced) and event.tag_name == name
        ]

    def _tag_file(self, tag: Tag) -> bytes:
        state = state_at_snapshot(self._table.log, tag.snapshot_id)
        snapshot = state.snapshot
        if snapshot is None:
            raise UnsupportedError(f"tag {tag.name!r} names a snapshot that is not there")
        moment = true_millis(self._target.corrections, state.version, snapshot.time_millis)
        return tag_file(
            self._named(evolve(snapshot, time_millis=moment), self._manifests.recall(state)),
            create_time_millis=tag.create_time_millis,
            time_retained_millis=tag.time_retained_millis,
        )

    def _expired(self) -> Iterator[str]:
        """Yield what only snapshots read that are no longer reachable.

        Those that came and went meanwhile are among them, since a run that was killed may have
        written them.
        """
        if self._begins_empty:
            return
        before = self._before
        since = before.earliest_snapshot_id if before else 1
        expired = range(since, self._target.earliest_snapshot_id)
        held = before.held_snapshot_ids if before else frozenset()
        gone = [each for each in held.union(expired) if not self._target.reachable(each)]
        for snapshot_id in expired:
            yield snapshot_path(snapshot_id)
        for snapshot_id in gone:
            yield from self._manifests.list_paths(snapshot_id)
        for tile in sorted({tile for each in gone for tile in self._lines.tiles(each)}):
            if not self._is_read(tile):
                yield self._manifests.tile_path(tile)

    def _is_read(self, tile: Tile) -> bool:
        """Whether a snapshot that can still be read reads a tile."""
        target, held = self._target, self._held
        for first, last in self._lines.readers(tile):
            if max(first, target.earliest_snapshot_id) <= min(last, target.last_snapshot_id):
                return True
            if bisect_left(held, first) < bisect_right(held, last):
                return True
        return False

    @cached_property
    def _held(self) -> list[int]:
        return sorted(self._target.held_snapshot_ids)
