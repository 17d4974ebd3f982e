"""Delta projection: incremental, idempotent, restartable.

Every snapshot and every schema step of the ledger is a version of the Delta table, in order, each a
whole table by itself. Everything is a function of the log, so two projectors at once, or one that
was killed and begins again, write the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from attrs import frozen

from ledger.decide.operations import alters
from ledger.events import TableEvent
from ledger.events.commit import Commit, Transaction
from ledger.events.imported import DeltaFollowed
from ledger.events.snapshots import RolledBack, SnapshotCommitted, SnapshotEvent
from ledger.events.table import TablePromoted
from ledger.files.change_lists import event_files
from ledger.history.older import schemas_by_id
from ledger.log.replay import Read
from ledger.log.time_travel import at_version, effective_millis
from ledger.model.errors import UnsupportedError
from ledger.model.file_change import FileChange
from ledger.model.schema import Schema
from ledger.model.snapshot import BATCH_COMMIT_IDENTIFIER
from ledger.state.delta_origin import DeltaOrigin
from ledger.state.table import Origin, TableState
from ledger.state.table_builder import TableBuilder
from ledger.table import Table
from projections.delta.actions import data_below, line, txn_line
from projections.delta.checkpoint import to_parquet
from projections.delta.columns import CalledInFiles
from projections.delta.delta_log import (
    DeltaLog,
    Versions,
    commit_info,
    metrics_of,
    snapshot_operation,
    step_operation,
)
from projections.delta.imported import fold_of_owned, followed, versions_of_source
from projections.delta.position import DeltaPosition
from projections.delta.rules import origin_problems
from projections.delta.table_metadata import TableFold, checkpoint_interval
from projections.delta.values import TableFiles
from projections.materialising import Progress, new_commits, nobody, refuse
from projections.outputs import Outputs


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
    start: DeltaPosition
    target: TableState

    def run(self, on_progress: Progress) -> DeltaPosition:
        """Write what is new; return the new position, and in it what is to be taken away.

        Raises:
            DamagedLogError: What the run before left is gone or damaged.
            StoreError: A file that the ledger did not project stands in a place of its own.
            UnsupportedError: Delta has no such files.
        """
        refuse(self.table, origin_problems(self.target))
        run = _Run(self)
        for read in new_commits(self.table, self.start, self.target, on_progress):
            run.commit(read)
        return run.finish()

    def check_ahead(self, ahead: Iterable[Commit[TableEvent]]) -> None:
        """Check that commits to come can be projected, and a checkpoint written after them.

        Args:
            ahead: They follow the log's newest commit; the last one leads to the target.

        Raises:
            DamagedLogError: A file of an earlier run is missing or damaged, or the log is.
            StoreError: A file that the ledger did not project has the name of one to be written.
            UnsupportedError: Delta has no such files.
        """
        refuse(self.table, origin_problems(self.target))
        run, newest = _Run(self), self.table.state
        for read in new_commits(self.table, self.start, newest, nobody):
            run.commit(read)
        for commit in ahead:
            run.commit(Read(commit, b"", ""))
        run.check_checkpoint()
        run.finish()


def _oldest_version(origin: Origin) -> int:
    """Return the oldest version that came in alone from a source in Delta; 0 without one."""
    return origin.oldest_version if isinstance(origin, DeltaOrigin) else 0


class _Run:
    def __init__(self, projection: Projection) -> None:
        table, start, target = projection.table, projection.start, projection.target
        self._table, self._start, self._target = table, start, target
        self._digest, self._below = start.commit, data_below(table)
        before = at_version(table.log, start.version) if start.version >= 0 else None
        self._builder = TableBuilder(before)
        self._called = CalledInFiles.of(target)
        self._known: dict[int, Schema] = {}
        if before is not None:
            self._know(before.schema)
        self._fold = TableFold.at(start, before, self._schemas)
        self._versions = self._versions_at(before)
        self._unsaid = dict(start.unsaid)
        self._oldest_snapshot = oldest_readable(target)
        self._is_imported = isinstance(target.origin, DeltaOrigin)
        self._oldest_followed = _oldest_version(target.origin)
        self._log = DeltaLog(projection.outputs, start, self._oldest_there())

    def _versions_at(self, before: TableState | None) -> Versions:
        last = 0 if before is None else before.last_snapshot_id
        found = Versions(self._start.snapshots, self._start.unlisted, last=last)
        if before is not None and before.is_mirrored and not self._target.is_mirrored:
            for event, version in versions_of_source(self._table, before):
                found.add(event, version)
        return found

    def _oldest_there(self) -> int | None:
        """Return the first version whose commit stands; None where it is still to come."""
        if self._is_imported and self._start.version < 0:
            return None
        if self._oldest_snapshot == 1:
            return self._start.oldest
        found = self._versions.version_of(self._oldest_snapshot)
        return found if found is None else max(found, self._oldest_followed)

    def _schemas(self, schema_ids: Iterable[int]) -> Mapping[int, Schema]:
        wanted = set(schema_ids)
        missing = wanted - self._known.keys()
        if missing:
            for each in schemas_by_id(self._table.log, missing).values():
                self._know(each)
        return {each: self._known[each] for each in sorted(wanted)}

    def _know(self, schema: Schema) -> None:
        self._known[schema.id] = self._called.schema(schema)

    def commit(self, read: Read[TableEvent]) -> None:
        """Project one commit."""
        commit, self._digest = read.commit, read.digest
        millis = effective_millis(commit, self._target.corrections)
        self._builder.begin(commit.version, commit.time_millis)
        for transaction in commit.transactions:
            stood = self._builder.schema_id if self._log.has_begun else -1
            self._builder.add(transaction)
            state = self._builder.freeze()
            self._know(state.schema)
            if state.is_mirrored:
                self._follow(transaction, state)
            else:
                self._own(transaction, state, stood, millis)

    def _own(
        self, transaction: Transaction[TableEvent], state: TableState, stood: int, millis: int
    ) -> None:
        if any(isinstance(each, TablePromoted) for each in transaction.events):
            self._fold = fold_of_owned(self._table, state, self._schemas)
        happened = [each for each in transaction.events if not _is_snapshot(each)]
        lines = list(self._fold.learn(state)) if alters(happened) else []
        if lines or state.schema.id != stood:
            self._step(transaction, happened, lines, state, millis)
        for event in transaction.events:
            if isinstance(event, SnapshotEvent):
                self._snapshot(transaction, event, state, millis)

    def _follow(self, transaction: Transaction[TableEvent], state: TableState) -> None:
        """Project a version of the source."""
        for event in transaction.events:
            if isinstance(event, DeltaFollowed):
                self._begin_followed(event, transaction)
                version, millis = self._log.next(event.timestamp_millis)
                for each in transaction.events:
                    if isinstance(each, SnapshotCommitted):
                        self._versions.add(each, version)
                lines = followed(self._table, event, transaction, state)(millis)
                until = min(version, self._oldest_followed)
                self._log.put(lines, checkpoint_interval(state.schema), until)

    def _begin_followed(self, event: DeltaFollowed, transaction: Transaction[TableEvent]) -> None:
        """Let the log begin with a version of the source, if nobody reads those before it."""
        version, oldest = event.delta_version, self._oldest_snapshot
        comes = oldest > 1 and any(
            isinstance(each, SnapshotCommitted) and each.snapshot_id == oldest
            for each in transaction.events
        )
        is_first = version == self._oldest_followed
        if is_first:
            # Of what came before, the source no longer had all.
            self._log.skip_to(version)
        was_there = oldest == 1 or self._versions.version_of(oldest) is not None
        if (is_first and was_there) or (version >= self._oldest_followed and comes):
            self._log.begin_at(version)

    def _step(
        self,
        transaction: Transaction[TableEvent],
        events: list[TableEvent],
        lines: list[bytes],
        state: TableState,
        millis: int,
    ) -> None:
        version, at = self._log.next(millis)
        info = commit_info(
            transaction,
            millis=at,
            version=version,
            ledger_version=state.version,
            operation=step_operation(events),
            parameters={"schemaId": str(state.schema.id)},
            metrics={},
        )
        self._log.put((info, *lines), checkpoint_interval(state.schema), self._removed_until(state))

    def _snapshot(
        self,
        transaction: Transaction[TableEvent],
        event: SnapshotEvent,
        state: TableState,
        millis: int,
    ) -> None:
        log = self._table.log
        files = tuple(log.personal.columns.rendered(event_files(log.store, log.layout, event)))
        said = self._said(files, state)
        version, at = self._log.next(millis)
        self._versions.add(event, version)
        if event.snapshot_id == self._oldest_snapshot > 1:
            self._log.begin_at(version)
        named = set(self._fold.live)
        for each in said:
            self._fold.count(each.schema_id, 1 if each.kind == "ADD" else -1)
        # Files that are called as others are say nothing new; most snapshots bring no others.
        is_new = named != set(self._fold.live) or not self._fold.says(state.schema)
        lines = list(self._fold.learn(state)) if is_new else []
        if self._target.reachable(event.snapshot_id):
            self._refuse_unsaid(event.snapshot_id)
        restored = None
        if isinstance(event, RolledBack):
            restored = self._versions.version_of(event.target_snapshot_id)
        operation, parameters = snapshot_operation(event, files, restored)
        info = commit_info(
            transaction,
            millis=at,
            version=version,
            ledger_version=state.version,
            operation=operation,
            parameters=parameters,
            metrics=metrics_of(files),
        )
        self._log.put(
            (info, *lines, *_txn(event, at), *self._file_lines(event, said, state, at)),
            checkpoint_interval(state.schema),
            self._removed_until(state),
        )

    def _said(self, files: tuple[FileChange, ...], state: TableState) -> list[FileChange]:
        """Return the files of a snapshot that Delta can say; of the others, remember why not."""
        rendering = TableFiles(state, self._schemas, self._below)
        said = []
        for each in files:
            if each.kind == "DELETE":
                if self._unsaid.pop(each.path, None) is None:
                    said.append(each)
                continue
            problem = self._problem(each, rendering, state)
            if problem is None:
                said.append(each)
            else:
                self._unsaid[each.path] = problem
        return said

    def _problem(self, file: FileChange, rendering: TableFiles, state: TableState) -> str | None:
        if state.schema.primary_keys:
            return (
                f"{file.path} is a file of a table with a primary key, whose newest rows only "
                "Paimon's merge finds"
            )
        try:
            rendering.add(file, changes_data=True)
        except UnsupportedError as error:
            return error.message
        return None

    def _refuse_unsaid(self, snapshot_id: int) -> None:
        """Refuse a snapshot, which can be read, that Delta cannot say.

        Raises:
            UnsupportedError: It cannot.
        """
        problem = next(iter(self._unsaid.values()), None)
        if self._fold.problem is not None:
            problem = self._fold.problem.message
        if self._versions.unlisted.held_by(snapshot_id):
            problem = "it holds files that only manifests of their engine list"
        if problem is not None:
            raise UnsupportedError(
                f"snapshot {snapshot_id} of {self._table.identifier} has no Delta version: "
                f"{problem}; expire the snapshots up to it and delete their tags, or leave format "
                "delta"
            )

    def _file_lines(
        self,
        event: SnapshotEvent,
        said: list[FileChange],
        state: TableState,
        millis: int,
    ) -> Iterator[bytes]:
        rendering = TableFiles(state, self._schemas, self._below)
        # A compaction only puts the same rows into other files.
        changes = isinstance(event, RolledBack) or event.commit_kind != "COMPACT"
        for each in said:
            if each.kind == "DELETE":
                yield line("remove", rendering.remove(each, millis, changes_data=changes))
        for each in said:
            if each.kind == "ADD":
                yield line("add", rendering.add(each, changes_data=changes))

    def _removed_until(self, state: TableState) -> int:
        """Return the version up to which nothing that was removed is read by a snapshot."""
        oldest = oldest_readable(state)
        version = self._versions.version_of(oldest) if oldest > 1 else None
        # An imported log may begin later than the first snapshot: its source lost older commits.
        return max(version or 0, self._oldest_followed)

    def check_checkpoint(self) -> None:
        """Build a checkpoint of the newest version, and write nothing.

        Raises:
            DamagedLogError: A file of an earlier run is missing or damaged.
            UnsupportedError: Delta cannot say the newest schema.
        """
        if self._fold.problem is not None:
            raise self._fold.problem
        to_parquet(self._log.reconciled(self._removed_until(self._builder.freeze())))

    def finish(self) -> DeltaPosition:
        """Write the hint; return the position."""
        fold = self._fold
        if self._target.is_mirrored:
            # What the log goes on from is found again once the ledger owns the table.
            corrections = len(self._target.corrections)
            version = self._target.version
            return self._log.finish(
                DeltaPosition(version=version, commit=self._digest, corrections=corrections)
            )
        if self._target.snapshot is None and fold.problem is not None:
            raise UnsupportedError(
                f"{self._table.identifier} has no Delta version: {fold.problem.message}"
            )
        return self._log.finish(
            DeltaPosition(
                version=self._target.version,
                commit=self._digest,
                protocol=fold.protocol.decode(),
                metadata=fold.metadata.decode(),
                features=tuple(sorted(fold.features)),
                schema_id=-1 if fold.said is None else fold.said.id,
                type_changes=fold.changes,
                live=fold.live,
                snapshots=tuple(self._versions.runs),
                unlisted=self._versions.unlisted.flips,
                unsaid=self._unsaid,
                corrections=len(self._target.corrections),
            )
        )


def oldest_readable(state: TableState) -> int:
    """Return the oldest snapshot that can be read; 1 where none has gone."""
    return min({state.earliest_snapshot_id, *state.held_snapshot_ids})


def _is_snapshot(event: TableEvent) -> bool:
    return isinstance(event, SnapshotEvent)


def _txn(event: SnapshotEvent, millis: int) -> Iterator[bytes]:
    """Yield the line that tells a writer with keys of its own how far it has come."""
    if isinstance(event, RolledBack) or event.commit_identifier == BATCH_COMMIT_IDENTIFIER:
        return
    yield txn_line(event.commit_user, event.commit_identifier, millis)
