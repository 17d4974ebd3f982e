"""Iceberg projection: incremental, idempotent, restartable.

New files are written first and pointers last. Everything is a function of the log, so concurrent
projectors, or one that was killed and restarted, write the same bytes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection
from functools import partial

from attrs import evolve, frozen

from ledger.decide.operations import alters
from ledger.events import TableEvent
from ledger.events.commit import Transaction
from ledger.events.snapshots import BranchCommitted, RolledBack, SnapshotEvent, SnapshotsExpired
from ledger.events.table import ClockCorrected
from ledger.history.older import state_at_snapshot
from ledger.log.replay import Read
from ledger.log.time_travel import at_version, effective_millis
from ledger.model.errors import DamagedLogError, StoreError
from ledger.state.iceberg_origin import IcebergOrigin
from ledger.state.paimon_origin import PaimonOrigin
from ledger.state.table import TableState
from ledger.state.table_builder import TableBuilder
from ledger.table_handle import TableHandle
from projections.iceberg.imported import project_imported, render_imported
from projections.iceberg.manifest_writing import CurrentManifests
from projections.iceberg.metadata_log import (
    MetadataLog,
    Wants,
    declares_iceberg,
    max_logged_versions,
    may_be_named,
)
from projections.iceberg.position import FOLDER, HINT, IcebergPosition, Names
from projections.iceberg.snapshots import (
    BranchRunState,
    BranchRunStates,
    FileAdders,
    MainSnapshots,
    ProjectionGarbage,
)
from projections.iceberg.table_facts import TableFactsFold
from projections.iceberg.table_file import (
    LoggedStatisticsFiles,
    MappedSchemas,
    MetadataTrail,
    metadata_file,
)
from projections.iceberg.table_json import table_uuid_of
from projections.materialising import Progress, ignore_progress, new_commits
from projections.outputs import MemoryOutputs, Outputs


def wants_no_other_version(_version: int) -> bool:
    """Return False: only the newest version gets a metadata file."""
    return False


@frozen
class Projection:
    """One run over a table's log, from a position to a version.

    Attributes:
        table: The table.
        outputs: The storage of its files.
        start: The position of the previous run.
        target: The state at the version to reach.
        wants: Predicate on versions: whether one that is not the newest gets a metadata file.
    """

    table: TableHandle
    outputs: Outputs
    start: IcebergPosition
    target: TableState
    wants: Wants = wants_no_other_version

    def run(self, on_progress: Progress) -> IcebergPosition:
        """Write the new versions; return the new position, with the files to be deleted.

        Raises:
            DamagedLogError: A file of the previous run is missing or damaged.
            StoreError: A file that the ledger did not project has the name of one of its files.
            UnsupportedError: Iceberg cannot express the table.
        """
        origin = self.target.origin
        if isinstance(origin, IcebergOrigin):
            uuid = origin.table_uuid
            if self.start.version < 0 and uuid is not None:
                refuse_foreign_table(self.outputs, uuid)
            return project_imported(
                self.table, self.outputs, self.start, self.target, self.wants, on_progress
            )
        run = self._project_commits(on_progress)
        return run.publish()

    def render(self, on_progress: Progress) -> None:
        """Write the version's metadata file and the files it names, without pointers."""
        if isinstance(self.target.origin, IcebergOrigin):
            render_imported(self.table, self.outputs, self.target, on_progress)
            return
        self._project_commits(on_progress).render()

    def _project_commits(self, on_progress: Progress) -> _ProjectionRun:
        run = _ProjectionRun(self)
        for read in new_commits(self.table, self.start, self.target, on_progress):
            run.commit(read)
        return run


class _ProjectionRun:
    def __init__(self, projection: Projection, wanted: Collection[int] = ()) -> None:
        table, start = projection.table, projection.start
        self._projection = projection
        self._outputs = projection.outputs
        self._target = projection.target
        self._location = table.location
        self._commit = start.commit
        self._names = Names(self._target.table_id)
        self._before = at_version(table.log, start.version) if start.version >= 0 else None
        self._builder = TableBuilder(self._before)
        self._trail = self._load_trail(start)
        self._fold = TableFactsFold.at(
            self._location, table.data_location, self._trail, start, self._before
        )
        self._manifests = CurrentManifests(
            self._names, self._outputs, start.manifests, start.next_row_id, start.list_check
        )
        self._snapshots = MainSnapshots(
            table, self._manifests, FileAdders(table, start.version), start.totals
        )
        self._lines = BranchRunStates(
            table, self._snapshots, self._before, self._rebuild_main_state, wanted
        )
        self._lines.begin(start.lines, self._target)
        there = list(self._outputs.paths(FOLDER)) if self._before is None else []
        if HINT in there:
            refuse_foreign_table(self._outputs, self._target.table_id)
        self._garbage = ProjectionGarbage(
            self._names,
            self._outputs,
            self._before,
            self._target,
            begins_empty=self._before is None and not there,
        )
        self._statistics = LoggedStatisticsFiles.at(self._names, self._before)
        self._log = MetadataLog.at(start, self._location, self._names)
        self._log.add_found(there)
        if start.version >= 0:
            self._log.add_file(start.version, self._trail.last_updated_ms)

    def _load_trail(self, start: IcebergPosition) -> MetadataTrail:
        if start.version < 0:
            return MetadataTrail()
        path = self._names.metadata(start.version)
        body = self._outputs.read(path)
        if body is None or hashlib.sha256(body).hexdigest() != start.check:
            raise DamagedLogError(f"{path} is not the file that the ledger projected", path)
        return MetadataTrail.of(body)

    def _rebuild_main_state(self, snapshot_id: int) -> BranchRunState:
        """Return the manifests and totals of a snapshot of main from before this run.

        Its files have the names that they have in this run.
        """
        table = self._projection.table
        then = state_at_snapshot(table.log, snapshot_id)
        target = at_version(table.log, then.version)
        again = _ProjectionRun(
            Projection(table, MemoryOutputs(), IcebergPosition(), target), (snapshot_id,)
        )
        for read in new_commits(table, IcebergPosition(), target, ignore_progress):
            again.commit(read)
        found = again._lines.base(snapshot_id)
        manifests = evolve(self._manifests.fork(), current=found.manifests.current)
        return BranchRunState(manifests, found.totals)

    def commit(self, read: Read[TableEvent]) -> None:
        """Project one commit."""
        commit, self._commit = read.commit, read.digest
        last_snapshot_id = self._builder.last_snapshot_id
        time_millis = effective_millis(commit)
        self._builder.begin(commit.version, commit.time_millis)
        for transaction in commit.transactions:
            self._project_transaction(transaction, time_millis)
        self._trail.last_updated_ms = self._builder.effective_millis
        self._log.advance(
            commit.version,
            most=max_logged_versions(self._builder.schema),
            updated_ms=self._trail.last_updated_ms,
        )
        if self._builder.last_snapshot_id != last_snapshot_id:
            self._trail.log_snapshot(self._builder.last_snapshot_id, time_millis)
        if commit.version != self._target.version:
            self._put_or_log(commit.version)

    def _put_or_log(self, version: int) -> None:
        """Write the metadata file of a version that is not the newest, or only log it."""
        if self._fold.inexpressible_error(self._is_reachable) is not None:
            return
        render = None
        if self._projection.wants(version):
            self.put_metadata(self._builder.freeze())
            self._log.request(version)
        elif may_be_named(version, self._target, self._projection.wants):
            render = self._renderer(self._builder.freeze(), self._trail.copy())
        if declares_iceberg(self._builder.schema):
            self._log.add_file(version, self._trail.last_updated_ms, render)

    def _is_reachable(self, snapshot_id: int) -> bool:
        return self._builder.freeze().reachable(snapshot_id)

    def _renderer(self, state: TableState, trail: MetadataTrail) -> Callable[[], bytes]:
        """Return a function that renders the metadata file of the current version.

        Raises:
            UnsupportedError: Iceberg cannot express one of its schemas.
        """
        problem = self._fold.inexpressible_error(state.reachable)
        if problem is not None:
            raise problem
        return partial(
            metadata_file,
            state,
            trail,
            self._fold.facts,
            metadata_log=tuple(self._log.entries),
            next_row_id=self._manifests.next_row_id,
            mapped=MappedSchemas(
                self._fold.iceberg_ids(state.named_schema_ids),
                self._fold.iceberg_ids(range(state.origin.last_physical_schema_id + 1)),
            ),
        )

    def _project_transaction(self, transaction: Transaction[TableEvent], time_millis: int) -> None:
        last_snapshot_id = self._builder.last_snapshot_id
        self._builder.add(transaction)
        if alters(transaction.events):
            self._fold.learn(self._builder.freeze(), last_snapshot_id)
        for event in transaction.events:
            self._statistics.learn(event)
            if isinstance(event, ClockCorrected):
                self._trail.correct_clock(event.true_time_millis)
            if isinstance(event, SnapshotEvent) and not self._is_before_adoption:
                self._project_main_snapshot(event, time_millis)
            if isinstance(event, BranchCommitted):
                self._project_branch_snapshot(event, time_millis)
            else:
                self._lines.learn(event, self._builder.branches)
        if any(isinstance(each, SnapshotsExpired) for each in transaction.events):
            state = self._builder.freeze()
            oldest = min(state.held_snapshot_ids | {state.earliest_snapshot_id})
            self._snapshots.forget(oldest, self._fold.facts)

    @property
    def _is_before_adoption(self) -> bool:
        """True while Paimon's engines made the snapshots; the ledger's first adds their files.

        After a rollback of the engines it may have an id that one of theirs had.
        """
        origin = self._target.origin
        return isinstance(origin, PaimonOrigin) and self._builder.version < origin.promoted_in

    def _project_main_snapshot(self, event: SnapshotEvent, time_millis: int) -> None:
        if isinstance(event, RolledBack):
            self._snapshots.is_readable = self._builder.freeze().reachable
        listed = self._snapshots.add(event, time_millis, self._fold)
        self._garbage.learn(event.snapshot_id, listed.paths)
        if self._target.reachable(event.snapshot_id):
            self._snapshots.refuse_inexpressible_files()
            self._manifests.write(listed, event.snapshot_id, self._fold.facts)

    def _project_branch_snapshot(self, event: BranchCommitted, time_millis: int) -> None:
        is_kept = self._target.reachable(event.snapshot_id)
        listed = self._lines.add(event, time_millis, self._fold, is_kept=is_kept)
        branch = self._builder.branches[event.branch_name]
        self._garbage.learn_branch(event.snapshot_id, branch.base_snapshot_id, listed.paths)
        if is_kept:
            self._lines.write(listed, event, self._fold)

    def render(self) -> None:
        """Write the metadata file of the target version, without those that its log names."""
        body = self._renderer(self._target, self._trail)()
        self._outputs.put(self._names.metadata(self._target.version), body)

    def put_metadata(self, state: TableState) -> bytes:
        """Write the metadata file of the current version, after those that its log names.

        Raises:
            UnsupportedError: Iceberg cannot express one of its schemas.
        """
        body = self._renderer(state, self._trail)()
        self._log.put_files(self._outputs)
        self._outputs.put(self._names.metadata(state.version), body)
        return body

    def publish(self) -> IcebergPosition:
        """Write the newest metadata file and point to it; return the position."""
        version = self._target.version
        body = self.put_metadata(self._target)
        self._outputs.put(self._names.hadoop(version), body)
        self._outputs.point(HINT, b"%d" % version)
        if self._projection.wants(version):
            self._log.request(version)
        facts, start = self._fold.facts, self._projection.start
        self._log.find_skipped(self._outputs, start, version)
        files = self._log.retained(start, version)
        return IcebergPosition(
            version=version,
            check=hashlib.sha256(body).hexdigest(),
            metadata_versions=files.versions,
            requested_versions=files.requested,
            metadata_log=tuple(self._log.entries),
            format_version=facts.format_version,
            first_sequenced=facts.first_sequenced,
            schema_ids=tuple(self._fold.schema_ids),
            source_types=self._fold.source_types,
            manifests=self._manifests.current,
            next_row_id=self._manifests.next_row_id,
            totals=self._snapshots.totals,
            location=self._location,
            commit=self._commit,
            list_check=self._manifests.list_check,
            lines=self._lines.positions(self._target),
            garbage=(
                *self._garbage.paths(),
                *self._statistics.garbage(self._target),
                *files.obsolete,
            ),
        )


def refuse_foreign_table(outputs: Outputs, table_id: str) -> None:
    """Reject a folder whose hint points to the metadata of another table.

    Raises:
        StoreError: It does.
    """
    hint = (outputs.read(HINT) or b"").decode(errors="replace").strip()
    body = outputs.read(f"{FOLDER}/v{hint}.metadata.json") if hint.isalnum() else None
    if body is None:
        # The hint points to no file, so no reader uses it.
        return
    found = table_uuid_of(body)
    if found is None or found.lower() != table_id.lower():
        raise StoreError(
            f"{HINT} points to the metadata of another table, {found}, and is left as it is: "
            "inspect it, then move that table away",
            kind="FOREIGN_FILE",
        )
