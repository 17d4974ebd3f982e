"""Delta projection: versions of a table as files of a Delta log, and plans for it.

Each snapshot and each schema step of the ledger is one version of the Delta table, in order, and
each version is complete. Everything is a function of the log, so concurrent projectors, or one that
was killed and restarted, write the same files.

An imported table keeps the protocol and metadata of its source, so readers see the same table.
There are few differences: other writers are locked out, features for writers whose content is not
imported are left out, commits have in-commit timestamps, and files, which are not moved, have
absolute paths. Once the ledger owns the table, its log
continues like that of any other table.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import msgspec
from attrs import evolve, field, frozen
from msgspec import UnsetType

import projections.delta.actions as positions
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
from ledger.model.errors import StoreError, UnsupportedError
from ledger.model.file_change import FileChange
from ledger.model.schema import Schema
from ledger.model.snapshot import BATCH_COMMIT_IDENTIFIER
from ledger.state.delta_origin import DeltaOrigin
from ledger.state.table import TableState
from ledger.state.table_builder import TableBuilder
from ledger.table_handle import TableHandle
from projections.delta.actions import (
    COMMIT_INFO,
    ENGINE,
    FOLDER,
    HINT,
    RENDERER,
    Add,
    DeltaPosition,
    Remove,
    action_line,
    data_root_url,
    file_uri,
    is_checkpoint,
    is_ledger_commit,
    txn_line,
    version_of,
)
from projections.delta.checkpoint import has_same_content, to_parquet
from projections.delta.columns import (
    ColumnNamesInFiles,
    FileNaming,
    columns_by_physical_path,
    physical_fields,
)
from projections.delta.delta_log import (
    DeltaLog,
    SnapshotVersions,
    commit_info,
    metrics_of,
    schema_change_operation,
    snapshot_operation,
)
from projections.delta.planned import inexpressible
from projections.delta.rules import origin_problems
from projections.delta.table_metadata import (
    MetadataTracker,
    Schemas,
    backed_configuration,
    checkpoint_interval,
    fence_protocol,
    reader_features,
)
from projections.delta.values import FileActions, StatisticsFormatter, partition_text
from projections.materialising import (
    ComparisonResult,
    Difference,
    Materialisation,
    Progress,
    RebuildReason,
    files_of,
    ignore_progress,
    new_commits,
    outputs_of,
    refuse_problems,
    target_state,
)
from projections.outputs import BufferedOutputs, MemoryOutputs, Outputs, PositionFile, StoreOutputs

_OF_ENABLING = (
    "delta.inCommitTimestampEnablementTimestamp",
    "delta.inCommitTimestampEnablementVersion",
)
_ENCODER = msgspec.json.Encoder()
_TYPE_CHANGES = "delta.typeChanges"


def imported_version_lines(
    table: TableHandle,
    event: DeltaFollowed,
    transaction: Transaction[TableEvent],
    state: TableState,
) -> Callable[[int], Iterator[bytes]]:
    """Return a function from an in-commit timestamp to the lines of an imported version.

    Args:
        table: The table.
        event: The event of the imported version.
        transaction: The transaction with the event.
        state: The table right after the transaction.
    """

    def lines(millis: int) -> Iterator[bytes]:
        yield _commit_info_line(event, transaction, state.version, millis)
        yield from _metadata_lines(event, state.origin_of_kind(DeltaOrigin).protocol)
        if not isinstance(event.txns, UnsetType):
            yield from (txn_line(app, number, millis) for app, number in event.txns.items())
        for each in transaction.events:
            if isinstance(each, SnapshotCommitted):
                yield from _file_lines(table, each, state, millis)

    return lines


def _file_lines(
    table: TableHandle, event: SnapshotCommitted, state: TableState, millis: int
) -> Iterator[bytes]:
    log = table.log
    files = log.personal.columns.rendered(event_files(log.store, log.layout, event))
    changes = event.commit_kind != "COMPACT"
    rendering = _ImportedFiles(state, data_root_url(table), changes=changes)
    for each in files:
        if each.kind == "DELETE":
            yield action_line("remove", rendering.remove(each, millis))
    for each in files:
        if each.kind == "ADD":
            yield action_line("add", rendering.add(each))


def imported_snapshot_versions(
    table: TableHandle, state: TableState
) -> Iterator[tuple[SnapshotCommitted, int]]:
    """Yield the imported snapshots, each with its version at the source.

    Args:
        table: The table.
        state: Its state while it is still imported.
    """
    for read in table.log.commits(0, state.version):
        for transaction in read.commit.transactions:
            versions = [e.delta_version for e in transaction.events if isinstance(e, DeltaFollowed)]
            for each in transaction.events:
                if isinstance(each, SnapshotCommitted) and versions:
                    yield each, versions[0]


def metadata_of_promoted(
    table: TableHandle, state: TableState, schemas: Schemas
) -> MetadataTracker:
    """Return the protocol and metadata from which a promoted table continues.

    Features that readers need stay; features for writers only are dropped.

    Args:
        table: The table.
        state: Its state right after the promotion.
        schemas: Function that finds its schemas, with column names as in its files.
    """
    delta = state.origin_of_kind(DeltaOrigin)
    # A promotion adds no files; `check_future_commits` runs before the log has its commits.
    before = at_version(table.log, min(state.version - 1, table.state.version))
    files = table.files_at(before)
    return MetadataTracker(
        schemas,
        features=reader_features(delta.protocol),
        changes=dict(_type_changes(delta)),
        live=dict(Counter(FileNaming.of(each).text() for each in files)),
    )


def _type_changes(delta: DeltaOrigin) -> Iterator[tuple[int, tuple[dict[str, str], ...]]]:
    """Yield the type changes in the source's schema, by field id."""
    metadata = msgspec.json.decode(delta.metadata)
    schema = msgspec.json.decode(metadata["schemaString"])
    configuration = metadata.get("configuration") or {}
    for path, member in columns_by_physical_path(schema, configuration):
        changes = (member.get("metadata") or {}).get(_TYPE_CHANGES)
        if changes:
            yield delta.columns[path], tuple(changes)


def _commit_info_line(
    event: DeltaFollowed, transaction: Transaction[TableEvent], version: int, millis: int
) -> bytes:
    said = transaction.properties.get(COMMIT_INFO, "{}")
    try:
        found: dict[str, Any] = msgspec.json.decode(said, type=dict[str, Any])
    except msgspec.DecodeError:
        found = {}
    source = {"sourceEngineInfo": found["engineInfo"]} if "engineInfo" in found else {}
    # The other fields may have been erased.
    operation = "UNKNOWN" if isinstance(event.operation, UnsetType) else event.operation
    found = {"operation": operation, "operationParameters": {}, **found, **source}
    own = {"inCommitTimestamp": millis, "timestamp": millis}
    end = {"engineInfo": ENGINE, "txnId": transaction.id, "ledgerVersion": version}
    return action_line("commitInfo", {**own, **found, **own, **end})


def _metadata_lines(event: DeltaFollowed, protocol: str) -> Iterator[bytes]:
    if not isinstance(event.protocol, UnsetType):
        yield b'{"protocol":%s}\n' % fence_protocol(event.protocol)
    if not isinstance(event.metadata, UnsetType):
        yield action_line("metaData", _projected_metadata(event.metadata, protocol))


def _projected_metadata(metadata: str, protocol: str) -> dict[str, Any]:
    """Return a source's metadata with in-commit timestamps enabled for all versions.

    Features whose content the projected log does not have are not turned on.
    """
    found: dict[str, Any] = msgspec.json.decode(metadata)
    stated: Mapping[str, str] = found.get("configuration") or {}
    backed = backed_configuration(stated, protocol)
    kept = {key: value for key, value in backed.items() if key not in _OF_ENABLING}
    form = {"provider": "parquet", "options": {}}
    return {
        **found,
        "format": found.get("format") or form,
        "partitionColumns": found.get("partitionColumns") or [],
        "configuration": {**kept, "delta.enableInCommitTimestamps": "true"},
    }


class _ImportedFiles:
    """The files of one imported version, with column names as in the files."""

    def __init__(self, state: TableState, below: str, *, changes: bool) -> None:
        delta = state.origin_of_kind(DeltaOrigin)
        self._state, self._below, self._changes = state, below, changes
        columns = _physical_columns(delta.metadata, tuple(delta.columns.items()))
        self._fields = {each.id: each for each in columns}
        keeps = {each.source_id for each in state.spec.fields}
        self._statistics = StatisticsFormatter(
            columns, frozenset(each.name for each in columns if each.id in keeps)
        )

    def add(self, file: FileChange) -> Add:
        """Return the `add` action of a file."""
        return Add(
            path=file_uri(file.path, self._below),
            partition_values=self._partition_values(file) or {},
            size=file.file_size_in_bytes,
            modification_time=file.creation_time,
            data_change=self._changes,
            stats=self._statistics.text(file),
        )

    def remove(self, file: FileChange, millis: int) -> Remove:
        """Return the `remove` action of a file."""
        partition = self._partition_values(file)
        return Remove(
            path=file_uri(file.path, self._below),
            deletion_timestamp=millis,
            data_change=self._changes,
            extended_file_metadata=partition is not None,
            partition_values=partition or {},
            size=file.file_size_in_bytes,
        )

    def _partition_values(self, file: FileChange) -> dict[str, str | None] | None:
        """Return a file's partition; None if one of its columns was dropped since."""
        spec = self._state.spec_by_id(file.spec_id)
        if any(each.source_id not in self._fields for each in spec.fields):
            return None
        columns = [self._fields[each.source_id] for each in spec.fields]
        return {
            each.name: partition_text(value, each.type)
            for each, value in zip(columns, file.partition, strict=True)
        }


@lru_cache(maxsize=16)
def _physical_columns(metadata: str, known: tuple[tuple[str, int], ...]) -> tuple[Any, ...]:
    found = msgspec.json.decode(metadata)
    schema = msgspec.json.decode(found["schemaString"])
    return physical_fields(schema, found.get("configuration") or {}, dict(known))


@frozen
class DeltaProjection:
    """One run over a table's log, from a position to a version.

    Attributes:
        table: The table.
        outputs: The storage of its files.
        start: The position of the previous run.
        target: The state at the version to reach.
    """

    table: TableHandle
    outputs: Outputs
    start: DeltaPosition
    target: TableState

    def run(self, on_progress: Progress) -> DeltaPosition:
        """Write the new versions; return the new position, with the files to be deleted.

        Raises:
            DamagedLogError: A file of the previous run is missing or damaged.
            StoreError: A file that the ledger did not project has the name of one of its files.
            UnsupportedError: Delta cannot express the table.
        """
        refuse_problems(self.table, origin_problems(self.target))
        run = _ProjectionRun(self)
        for read in new_commits(self.table, self.start, self.target, on_progress):
            run.commit(read)
        return run.finish()

    def check_future_commits(self, ahead: Iterable[Commit[TableEvent]]) -> None:
        """Check that future commits, and a checkpoint after them, can be projected.

        Args:
            ahead: Commits after the log's newest one; the last one leads to the target.

        Raises:
            DamagedLogError: A file of an earlier run is missing or damaged, or the log is.
            StoreError: A file that the ledger did not project has the name of one to be written.
            UnsupportedError: Delta cannot express the table.
        """
        refuse_problems(self.table, origin_problems(self.target))
        run, newest = _ProjectionRun(self), self.table.state
        for read in new_commits(self.table, self.start, newest, ignore_progress):
            run.commit(read)
        for commit in ahead:
            run.commit(Read(commit, b"", ""))
        run.check_checkpoint()
        run.finish()


class _ProjectionRun:
    def __init__(self, projection: DeltaProjection) -> None:
        table, start, target = projection.table, projection.start, projection.target
        self._table, self._start, self._target = table, start, target
        self._digest, self._below = start.commit, data_root_url(table)
        before = at_version(table.log, start.version) if start.version >= 0 else None
        self._builder = TableBuilder(before)
        self._called = ColumnNamesInFiles.of(target)
        self._known: dict[int, Schema] = {}
        if before is not None:
            self._cache_schema(before.schema)
        self._fold = MetadataTracker.at(start, before, self._schemas_by_id)
        self._versions = self._snapshot_versions_at(before)
        self._inexpressible_parts = dict(start.unsaid)
        self._oldest_snapshot = oldest_readable_snapshot(target)
        self._is_imported = target.delta is not None
        # The first version imported on its own from a Delta source; 0 if there is none.
        self._oldest_followed = 0 if target.delta is None else target.delta.oldest_version
        self._log = DeltaLog(projection.outputs, start, self._oldest_existing_version())

    def _snapshot_versions_at(self, before: TableState | None) -> SnapshotVersions:
        last = 0 if before is None else before.last_snapshot_id
        found = SnapshotVersions(self._start.snapshots, self._start.unlisted, last=last)
        if before is not None and before.is_mirrored and not self._target.is_mirrored:
            for event, version in imported_snapshot_versions(self._table, before):
                found.add(event, version)
        return found

    def _oldest_existing_version(self) -> int | None:
        """Return the oldest version whose commit file exists; None if it is still to come."""
        if self._is_imported and self._start.version < 0:
            return None
        if self._oldest_snapshot == 1:
            return self._start.oldest
        found = self._versions.version_of(self._oldest_snapshot)
        return found if found is None else max(found, self._oldest_followed)

    def _schemas_by_id(self, schema_ids: Iterable[int]) -> Mapping[int, Schema]:
        wanted = set(schema_ids)
        missing = wanted - self._known.keys()
        if missing:
            for each in schemas_by_id(self._table.log, missing).values():
                self._cache_schema(each)
        return {each: self._known[each] for each in sorted(wanted)}

    def _cache_schema(self, schema: Schema) -> None:
        self._known[schema.id] = self._called.schema(schema)

    def commit(self, read: Read[TableEvent]) -> None:
        """Project one commit."""
        commit, self._digest = read.commit, read.digest
        millis = effective_millis(commit, self._target.corrections)
        self._builder.begin(commit.version, commit.time_millis)
        for transaction in commit.transactions:
            schema_id = self._builder.schema_id if self._log.has_begun else -1
            self._builder.add(transaction)
            state = self._builder.freeze()
            self._cache_schema(state.schema)
            if state.is_mirrored:
                self._project_imported_version(transaction, state)
            else:
                self._project_own_transaction(transaction, state, schema_id, millis)

    def _project_own_transaction(
        self, transaction: Transaction[TableEvent], state: TableState, schema_id: int, millis: int
    ) -> None:
        if any(isinstance(each, TablePromoted) for each in transaction.events):
            self._fold = metadata_of_promoted(self._table, state, self._schemas_by_id)
        happened = [each for each in transaction.events if not _is_snapshot(each)]
        lines = list(self._fold.update_metadata(state)) if alters(happened) else []
        if lines or state.schema.id != schema_id:
            self._write_schema_version(transaction, happened, lines, state, millis)
        for event in transaction.events:
            if isinstance(event, SnapshotEvent):
                self._write_snapshot_version(transaction, event, state, millis)

    def _project_imported_version(
        self, transaction: Transaction[TableEvent], state: TableState
    ) -> None:
        """Project an imported version."""
        for event in transaction.events:
            if isinstance(event, DeltaFollowed):
                self._begin_at_imported_version(event, transaction)
                version, millis = self._log.next(event.timestamp_millis)
                for each in transaction.events:
                    if isinstance(each, SnapshotCommitted):
                        self._versions.add(each, version)
                lines = imported_version_lines(self._table, event, transaction, state)(millis)
                until = min(version, self._oldest_followed)
                self._log.put(lines, checkpoint_interval(state.schema), until)

    def _begin_at_imported_version(
        self, event: DeltaFollowed, transaction: Transaction[TableEvent]
    ) -> None:
        """Let the log begin with an imported version, if no reader needs earlier ones."""
        version, oldest = event.delta_version, self._oldest_snapshot
        comes = oldest > 1 and any(
            isinstance(each, SnapshotCommitted) and each.snapshot_id == oldest
            for each in transaction.events
        )
        is_first = version == self._oldest_followed
        # The source no longer has the versions in between, or the ledger could not hold them.
        self._log.skip_to(version)
        was_there = oldest == 1 or self._versions.version_of(oldest) is not None
        if (is_first and was_there) or (version >= self._oldest_followed and comes):
            self._log.set_oldest_version(version)

    def _write_schema_version(
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
            operation=schema_change_operation(events),
            parameters={"schemaId": str(state.schema.id)},
            metrics={},
        )
        self._log.put(
            (info, *lines), checkpoint_interval(state.schema), self._tombstone_limit_version(state)
        )

    def _write_snapshot_version(
        self,
        transaction: Transaction[TableEvent],
        event: SnapshotEvent,
        state: TableState,
        millis: int,
    ) -> None:
        log = self._table.log
        files = tuple(log.personal.columns.rendered(event_files(log.store, log.layout, event)))
        said = self._expressible_files(files, state)
        version, at = self._log.next(millis)
        self._versions.add(event, version)
        if event.snapshot_id == self._oldest_snapshot > 1:
            self._log.set_oldest_version(version)
        named = set(self._fold.live)
        for each in said:
            self._fold.count_live_files(FileNaming.of(each), 1 if each.kind == "ADD" else -1)
        # Metadata changes only with the set of column names in live files.
        is_new = named != set(self._fold.live) or not self._fold.matches_schema(state.schema)
        lines = list(self._fold.update_metadata(state)) if is_new else []
        if self._target.reachable(event.snapshot_id):
            self._refuse_inexpressible(event.snapshot_id)
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
            (info, *lines, *_txn_lines(event, at), *self._file_lines(event, said, state, at)),
            checkpoint_interval(state.schema),
            self._tombstone_limit_version(state),
        )

    def _expressible_files(
        self, files: tuple[FileChange, ...], state: TableState
    ) -> list[FileChange]:
        """Return the files that Delta can express; record the reason for each other file."""
        rendering = FileActions(state, self._schemas_by_id, self._below)
        said = []
        for each in files:
            if each.kind == "DELETE":
                if self._inexpressible_parts.pop(each.path, None) is None:
                    said.append(each)
                continue
            problem = self._file_problem(each, rendering, state)
            if problem is None:
                said.append(each)
            else:
                self._inexpressible_parts[each.path] = problem
        return said

    def _file_problem(
        self, file: FileChange, rendering: FileActions, state: TableState
    ) -> str | None:
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

    def _refuse_inexpressible(self, snapshot_id: int) -> None:
        """Reject a readable snapshot that Delta cannot express.

        Raises:
            UnsupportedError: Delta cannot express it.
        """
        problem = next(iter(self._inexpressible_parts.values()), None)
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
        rendering = FileActions(state, self._schemas_by_id, self._below)
        # A compaction rewrites the same rows into other files.
        changes = isinstance(event, RolledBack) or event.commit_kind != "COMPACT"
        for each in said:
            if each.kind == "DELETE":
                yield action_line("remove", rendering.remove(each, millis, changes_data=changes))
        for each in said:
            if each.kind == "ADD":
                yield action_line("add", rendering.add(each, changes_data=changes))

    def _tombstone_limit_version(self, state: TableState) -> int:
        """Return the version up to which no readable snapshot needs removed files."""
        oldest = oldest_readable_snapshot(state)
        version = self._versions.version_of(oldest) if oldest > 1 else None
        # An imported log may begin later than the first snapshot: its source lost older commits.
        return max(version or 0, self._oldest_followed)

    def check_checkpoint(self) -> None:
        """Build a checkpoint of the newest version in memory.

        Raises:
            DamagedLogError: A file of an earlier run is missing or damaged.
            UnsupportedError: Delta cannot express the newest schema.
        """
        if self._fold.problem is not None:
            raise self._fold.problem
        to_parquet(
            self._log.newest_checkpoint_state(self._tombstone_limit_version(self._builder.freeze()))
        )

    def finish(self) -> DeltaPosition:
        """Write the hint; return the position."""
        fold = self._fold
        if self._target.is_mirrored:
            # The state to continue from is computed again once the ledger owns the table.
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
                unsaid=self._inexpressible_parts,
                corrections=len(self._target.corrections),
            )
        )


def oldest_readable_snapshot(state: TableState) -> int:
    """Return the oldest readable snapshot; 1 if none has expired."""
    return min({state.earliest_snapshot_id, *state.held_snapshot_ids})


def _is_snapshot(event: TableEvent) -> bool:
    return isinstance(event, SnapshotEvent)


def _txn_lines(event: SnapshotEvent, millis: int) -> Iterator[bytes]:
    """Yield the `txn` line of a snapshot whose writer gives an idempotency key."""
    if isinstance(event, RolledBack) or event.commit_identifier == BATCH_COMMIT_IDENTIFIER:
        return
    yield txn_line(event.commit_user, event.commit_identifier, millis)


__all__ = ["DELTA", "expected", "follow", "project", "rebuild", "verify"]


@frozen
class _OverwritingOutputs(StoreOutputs):
    """A table's folder whose files written by a ledger may be replaced."""

    def put(self, path: str, body: bytes) -> None:
        """Write a file, replacing one that a ledger wrote.

        Raises:
            StoreError: Another program's file has the name.
        """
        there = self.read(path)
        if there not in (None, body) and (is_checkpoint(path) or is_ledger_commit(there or b"")):
            self.restore(path, body)
        else:
            super().put(path, body)


@frozen
class _PreviewOutputs:
    """A table's folder as a run would leave it, in memory.

    Attributes:
        inner: The folder.
        new: The files that the run wrote, in memory.
    """

    inner: StoreOutputs
    new: MemoryOutputs = field(factory=MemoryOutputs)

    def put(self, path: str, body: bytes) -> None:
        """Keep a file in memory.

        Raises:
            StoreError: A file of another program has its name.
        """
        found = self.read(path)
        if (
            found not in (None, body)
            and not is_checkpoint(path)
            and not is_ledger_commit(found or b"")
        ):
            raise StoreError(
                f"{self.inner.key(path)} is not a file of the ledger's, and has the name of one "
                "that the projection writes: move it away, or rebuild the projection",
                kind="FOREIGN_FILE",
            )
        self.new.put(path, body)

    def point(self, path: str, body: bytes) -> None:
        """Keep a file in memory."""
        self.new.point(path, body)

    def remove(self, path: str) -> None:
        """Drop a file that the run wrote."""
        self.new.remove(path)

    def read(self, path: str) -> bytes | None:
        """Return a file, as the run left it."""
        body = self.new.read(path)
        return self.inner.read(path) if body is None else body

    def paths(self, folder: str) -> Iterator[str]:
        """Yield the paths of the files in a folder of the table."""
        yield from {*self.inner.paths(folder), *self.new.paths(folder)}


@frozen
class DeltaFiles:
    """The files of a Delta log; see `projections.materialising.FileFormat`."""

    name: str = "delta"
    title: str = "Delta"
    folders: tuple[str, ...] = (FOLDER,)

    @property
    def hints(self) -> Mapping[str, str]:
        """The hint for the newest checkpoint, which is not a number."""
        return {HINT: ""}

    @property
    def positions(self) -> PositionFile[DeltaPosition]:
        """The file in which a position is stored."""
        return positions.FILE

    def is_found(self, path: str) -> bool:
        """Return whether readers find a file: they list the log."""
        return path.startswith(FOLDER)

    def run(
        self,
        table: TableHandle,
        outputs: Outputs,
        start: DeltaPosition,
        target: TableState,
        on_progress: Progress,
    ) -> DeltaPosition:
        """Write the versions between two states of the table; return the new position.

        If a clock was corrected since, the times of earlier versions change, and all are rewritten.
        """
        is_corrected = len(target.corrections) != start.corrections
        if is_corrected and isinstance(outputs, BufferedOutputs):
            renewing = _OverwritingOutputs(outputs.inner.store, outputs.inner.root)
            return DeltaProjection(table, renewing, DeltaPosition(), target).run(on_progress)
        return DeltaProjection(table, outputs, start, target).run(on_progress)

    def engine_folder(self, table: TableHandle) -> None:
        """Return None: only the ledger writes the files."""
        del table

    def rebuild_reason(self, table: TableHandle, saved: DeltaPosition) -> RebuildReason | None:
        """Return the version of the older renderer that wrote the files; None if it is current."""
        del table
        if saved.version < 0 or saved.renderer == RENDERER:
            return None
        return RebuildReason("older_renderer_replaced", {"renderer": saved.renderer})

    def renew(
        self, table: TableHandle, older: DeltaPosition, target: TableState, on_progress: Progress
    ) -> DeltaPosition:
        """Rewrite the files of another renderer in place."""
        del older
        outputs = outputs_of(table)
        renewing = _OverwritingOutputs(outputs.store, outputs.root)
        return DeltaProjection(table, renewing, DeltaPosition(), target).run(on_progress)

    def compare(self, table: TableHandle, saved: DeltaPosition, at: TableState) -> ComparisonResult:
        """Compare the files on the store with the files that the log yields.

        Checkpoints are compared by content. A foreign file with a name that the ledger uses or
        will use is reported as changed, and so is one of a version that was not imported. A rebuild
        writes the files of the newest version.
        """
        del saved
        outputs = outputs_of(table)
        there = {path: outputs.read(path) or b"" for path in outputs.paths(FOLDER)}
        wanted, newest = files_of(self, table, at), target_state(table, None)
        behind = at.version < newest.version
        later = _expected_and_possible_files(self, table, at, newest) if behind else ({}, {})
        last = max(filter(None, map(version_of, {**wanted, **later[0]})), default=0)
        lost = sorted(wanted.keys() - there.keys() - {HINT})
        imported = _imported_versions(table, newest)
        newest_imported = max(imported, default=-1)
        missing = [path for path in lost if not behind or path in later[0]]
        changed, foreign, in_the_way = [], [], []
        for path, body in sorted(there.items()):
            kinds = [each[path] for each in (wanted, *later) if path in each]
            if any(_has_expected_content(path, body, each) for each in kinds):
                continue
            version = version_of(path)
            is_no_version = version is not None and (
                version > last or (version < newest_imported and version not in imported)
            )
            if path in wanted:
                changed.append(path)
            elif kinds or is_no_version:
                in_the_way.append(path)
            elif path == HINT:
                changed.append(path)
            else:
                foreign.append(path)
        found = Difference(
            tuple(missing),
            tuple(sorted((*changed, *in_the_way))),
            tuple(foreign),
            inexpressible=tuple(inexpressible(at)),
        )
        return ComparisonResult(found, wanted, tuple(in_the_way), newest)

    def lost(self, table: TableHandle, saved: DeltaPosition) -> Mapping[str, bytes]:
        """Return all files that are missing or damaged; time travel needs every one."""
        wanted = files_of(self, table, target_state(table, saved.version))
        outputs = outputs_of(table)
        found = {path: outputs.read(path) for path in wanted}
        return {
            path: body
            for path, body in wanted.items()
            if not _has_expected_content(path, found[path] or b"", body)
        }

    def make_way(self, outputs: StoreOutputs, path: str) -> None:
        """Rename a foreign file to a name that readers ignore."""
        body = outputs.read(path)
        if body is not None and not is_checkpoint(path) and not is_ledger_commit(body):
            name = path.rpartition("/")[2]
            outputs.put(
                f"{FOLDER}/_quarantine.{hashlib.sha256(body).hexdigest()[:16]}.{name}", body
            )
        outputs.remove(path)

    def projected(self, outputs: StoreOutputs, at: TableState) -> Collection[str]:
        """Return nothing: Delta has no pointers to files."""
        del outputs, at
        return ()

    def marked(self, outputs: StoreOutputs, at: TableState) -> Collection[str]:
        """Return nothing: file names follow from commits alone."""
        del outputs, at
        return ()


def _imported_versions(table: TableHandle, state: TableState) -> frozenset[int]:
    """Return the versions that were imported from a Delta source."""
    if state.delta is None:
        return frozenset()
    return frozenset(
        each.delta_version
        for read in table.log.commits(0, state.version)
        for transaction in read.commit.transactions
        for each in transaction.events
        if isinstance(each, DeltaFollowed)
    )


def _has_expected_content(path: str, body: bytes, wanted: bytes) -> bool:
    return body == wanted or (is_checkpoint(path) and has_same_content(body, wanted))


def _expected_and_possible_files(
    files: DeltaFiles, table: TableHandle, saved: TableState, newest: TableState
) -> tuple[dict[str, bytes], dict[str, bytes]]:
    """Return the files of the newest version, and those that a run to it may have written."""
    found = []
    for target in (newest, evolve(newest, earliest_snapshot_id=saved.earliest_snapshot_id)):
        try:
            found.append(files_of(files, table, target))
        except UnsupportedError:
            # A state that cannot be projected now was not projected by an earlier run either.
            found.append({})
    return found[0], found[1]


DELTA = Materialisation(DeltaFiles())


def check_future_commits(
    table: TableHandle, ahead: Sequence[Commit[TableEvent]], target: TableState
) -> None:
    """Check that future commits of a table can be projected; nothing is written.

    Args:
        table: The table.
        ahead: Commits that follow its newest one.
        target: The table after them.

    Raises:
        DamagedLogError: A file of an earlier run is missing or damaged, or the log is.
        StoreError: A file that the ledger did not project has the name of one to be written.
        UnsupportedError: Delta cannot express the table.
    """
    saved = DELTA.position(table)
    is_current = saved.renderer == RENDERER and saved.corrections == len(target.corrections)
    start = saved if is_current else DeltaPosition()
    DeltaProjection(table, _PreviewOutputs(outputs_of(table)), start, target).check_future_commits(
        ahead
    )


project = DELTA.project
follow = DELTA.follow
expected = DELTA.expected
verify = DELTA.verify
rebuild = DELTA.rebuild
