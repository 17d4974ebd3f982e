"""DeltaLog: commit files, versions and checkpoints of one `_delta_log`.

A commit file is written atomically, then its checkpoint, then `_last_checkpoint`. Files that
only expired snapshots need are recorded in the position before they are deleted.

Source: the Delta transaction protocol, "Commit Provenance Information"; the names of operations are
those of Delta's own writers.

Snapshot ids and versions increase together between two schema steps, so that a snapshot's
version is its id plus a constant: only the changes of that constant are stored.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
from attrs import evolve

from ledger.events import TableEvent
from ledger.events.commit import Transaction
from ledger.events.schema import (
    ColumnAdded,
    ColumnCommentUpdated,
    ColumnDefaultValueUpdated,
    ColumnDropped,
    ColumnMoved,
    ColumnNullabilityUpdated,
    ColumnRenamed,
    ColumnTypeUpdated,
    ColumnUndropped,
    RemoveOption,
    SetOption,
    UpdateComment,
)
from ledger.events.snapshots import RolledBack, SnapshotEvent
from ledger.events.table import TableCreated
from ledger.model.errors import DamagedLogError
from ledger.model.file_change import FileChange
from projections.delta.actions import (
    ENGINE,
    FOLDER,
    HINT,
    DeltaPosition,
    LastCheckpoint,
    Reconciled,
    action_line,
    checkpoint_path,
    commit_millis,
    commit_path,
    is_checkpoint,
    version_of,
)
from projections.delta.checkpoint import from_parquet, has_same_content, hint_json, to_parquet
from projections.manifest_files.lists import UnlistedFiles
from projections.outputs import Outputs

_FILE_ACTIONS = (b'{"add":', b'{"remove":')


class DeltaLog:
    """The log of one table.

    Args:
        outputs: The storage of the projected files.
        start: The position of the previous run.
        oldest: The oldest version whose commit file exists; None if it is still to come.
    """

    def __init__(self, outputs: Outputs, start: DeltaPosition, oldest: int | None) -> None:
        self._outputs = outputs
        self._start = start
        self._oldest = oldest
        self._version = start.delta_version
        self._millis = start.timestamp
        self._checkpoint = start.checkpoint
        self._hint = start.hint.encode()
        is_first = start.delta_version < 0
        # The first run leaves out what has expired; a later run leaves no gap.
        self._writes = not is_first or oldest is not None
        self._replayed: Reconciled | None = Reconciled() if is_first else None
        self._tail: list[bytes] = []
        self._times: dict[int, int] = {}

    @property
    def has_begun(self) -> bool:
        """Return whether there is a version."""
        return self._version >= 0

    def next(self, millis: int) -> tuple[int, int]:
        """Advance to the next version; return it and its in-commit timestamp.

        Args:
            millis: The time of the commit; timestamps increase even if clocks went back.
        """
        self._version += 1
        self._millis = self._times[self._version] = max(millis, self._millis + 1)
        return self._version, self._millis

    def set_oldest_version(self, version: int) -> None:
        """Let the log begin with a version, if no reader needs earlier ones.

        The version is the newest or a later one, with none in between.
        """
        self.skip_to(version)
        self._oldest, self._writes = version, True

    def skip_to(self, version: int) -> None:
        """Make a version the next one, if it is not the newest already.

        Readers need every version after the first. After a gap, none is written before the one of
        `set_oldest_version`.
        """
        if version > self._version + 1:
            self._version, self._writes = version - 1, False

    def put(self, lines: Iterable[bytes], interval: int, removed_until: int) -> None:
        """Write the commit of the newest version, and its checkpoint if it has one.

        Args:
            lines: The version's actions.
            interval: The least number of versions between two checkpoints.
            removed_until: The version up to which no reader needs removed files.
        """
        said = tuple(lines)
        body, version = b"".join(said), self._version
        if self._writes:
            self._outputs.put(commit_path(version), body)
        if self._replayed is None:
            self._tail.append(body)
        else:
            self._replayed.apply(body)
        weight = 1 + sum(each.startswith(_FILE_ACTIONS) for each in said)
        found = self._checkpoint = evolve(self._checkpoint, weight=self._checkpoint.weight + weight)
        if found.is_checkpoint_due(version, interval):
            replayed = self.newest_checkpoint_state(removed_until)
            self._checkpoint = LastCheckpoint(version, replayed.size)
            if self._writes:
                self._put_checkpoint(version, replayed)
        elif version == self._oldest and version:
            self._put_checkpoint(version, _without_tombstones(self._newest_state()))

    def newest_checkpoint_state(self, removed_until: int) -> Reconciled:
        """Return the content of a checkpoint of the newest version.

        Args:
            removed_until: The version up to which no reader needs removed files.

        Raises:
            DamagedLogError: A file of an earlier run is missing or damaged.
        """
        found = self._newest_state()
        found.drop_tombstones(self._time_of(removed_until))
        return found

    def finish(self, reached: DeltaPosition) -> DeltaPosition:
        """Write the first checkpoint and the hint; return the position with its garbage."""
        oldest = self._oldest or 0
        is_new = oldest > self._start.oldest
        if is_new and 0 < oldest <= self._start.delta_version:
            self._write_first_checkpoint(oldest)
        if self._hint:
            self._outputs.point(HINT, self._hint)
        return evolve(
            reached,
            delta_version=self._version,
            timestamp=self._millis,
            oldest=oldest,
            checkpoint=self._checkpoint,
            hint=self._hint.decode(),
            garbage=self._obsolete_files(oldest) if is_new or self._start.version < 0 else (),
        )

    def _obsolete_files(self, oldest: int) -> tuple[str, ...]:
        found = [(version_of(path), path) for path in self._outputs.paths(FOLDER)]
        # Earlier files are deleted or recorded as garbage already.
        first = 0 if self._start.version < 0 else self._start.oldest
        gone = [(each, path) for each, path in found if each is not None and first <= each < oldest]
        return tuple(path for _, path in sorted(gone))

    def _write_first_checkpoint(self, version: int) -> None:
        """Write the checkpoint at which the log begins, for a version of an earlier run.

        Raises:
            StoreError: A file that the ledger did not project has its name.
        """
        # Files removed by then are left out, whichever checkpoint the state is computed from.
        newest = max(self._checkpoint_versions(version - 1), default=-1)
        begins = _without_tombstones(self._replay_commits(newest, version))
        there = self._checkpoint_of(version)
        if there is None or not has_same_content(
            to_parquet(_without_tombstones(there)), to_parquet(begins)
        ):
            self._put_checkpoint(version, begins)
        elif version > self._hinted_version():
            # A run that was killed may have written it, or a regular checkpoint was due.
            self._hint = hint_json(version, there)

    def _checkpoint_of(self, version: int) -> Reconciled | None:
        """Return the state in a version's checkpoint; None if there is no valid one."""
        body = self._outputs.read(checkpoint_path(version))
        try:
            return None if body is None else from_parquet(body)
        except (ValueError, LookupError):
            return None

    def _put_checkpoint(self, version: int, found: Reconciled) -> None:
        path, body = checkpoint_path(version), to_parquet(found)
        there = self._outputs.read(path)
        if there is None or not has_same_content(there, body):
            self._outputs.put(path, body)
        if version >= self._hinted_version():
            self._hint = hint_json(version, found)

    def _hinted_version(self) -> int:
        return int(msgspec.json.decode(self._hint)["version"]) if self._hint else -1

    def _newest_state(self) -> Reconciled:
        """Return the reconciled state at the newest version."""
        if self._replayed is None:
            self._replayed = self._load_state(self._start.delta_version)
            for each in self._tail:
                self._replayed.apply(each)
            self._tail.clear()
        return self._replayed

    def _load_state(self, version: int) -> Reconciled:
        """Return the reconciled state of earlier runs at a version.

        Starts from a checkpoint that those runs recorded: a later one, written where the log begins
        by now, lacks tombstones that belong to the state while the log begins earlier.
        """
        known = self._checkpoint_versions(version)
        own = known & {self._start.checkpoint.version, self._start.oldest}
        # A log that still has its first commit needs no checkpoint.
        others = known if self._start.oldest else ()
        return self._replay_commits(max(own or others, default=-1), version)

    def _checkpoint_versions(self, version: int) -> set[int]:
        """Return the versions up to one that have a checkpoint."""
        versions = map(version_of, filter(is_checkpoint, self._outputs.paths(FOLDER)))
        return {each for each in versions if each is not None and each <= version}

    def _replay_commits(self, newest: int, version: int) -> Reconciled:
        """Return the state of a checkpoint (-1: none) and the commits after it."""
        found = Reconciled()
        if newest >= 0:
            path = checkpoint_path(newest)
            try:
                found = from_parquet(self._read_log_file(path))
            except (ValueError, LookupError) as error:
                raise DamagedLogError(f"{path} is not a checkpoint of the ledger", path) from error
        for each in range(newest + 1, version + 1):
            path = commit_path(each)
            try:
                found.apply(self._read_log_file(path))
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                raise DamagedLogError(f"{path} is not a commit of the ledger", path) from error
        return found

    def _time_of(self, version: int) -> int:
        found = self._times.get(version)
        if found is None:
            path = commit_path(version)
            try:
                found = self._times[version] = commit_millis(self._read_log_file(path))
            except (msgspec.DecodeError, ValueError) as error:
                raise DamagedLogError(f"{path} is not a commit of the ledger", path) from error
        return found

    def _read_log_file(self, path: str) -> bytes:
        body = self._outputs.read(path)
        if body is None:
            raise DamagedLogError(f"{path} is missing", path)
        return body


def _without_tombstones(found: Reconciled) -> Reconciled:
    return Reconciled(found.adds, {}, found.txns, found.protocol, found.metadata)


_SNAPSHOTS = {"APPEND": "WRITE", "OVERWRITE": "WRITE", "COMPACT": "OPTIMIZE", "ANALYZE": "ANALYZE"}
_STEPS: dict[type, str] = {
    TableCreated: "CREATE TABLE",
    ColumnAdded: "ADD COLUMNS",
    ColumnUndropped: "ADD COLUMNS",
    ColumnRenamed: "RENAME COLUMN",
    ColumnDropped: "DROP COLUMNS",
    **dict.fromkeys(
        (
            ColumnCommentUpdated,
            ColumnDefaultValueUpdated,
            ColumnMoved,
            ColumnNullabilityUpdated,
            ColumnTypeUpdated,
        ),
        "CHANGE COLUMN",
    ),
    SetOption: "SET TBLPROPERTIES",
    RemoveOption: "UNSET TBLPROPERTIES",
    UpdateComment: "SET TBLPROPERTIES",
}


def commit_info(  # noqa: PLR0913 - the fields of commitInfo
    transaction: Transaction[TableEvent],
    *,
    millis: int,
    version: int,
    ledger_version: int,
    operation: str,
    parameters: Mapping[str, str],
    metrics: Mapping[str, int],
) -> bytes:
    """Return the `commitInfo` line of a commit: author, message, time and ledger version.

    Args:
        transaction: The ledger's transaction.
        millis: The in-commit timestamp, Unix milliseconds.
        version: The Delta version.
        ledger_version: The ledger version of the commit that holds the transaction.
        operation: The name of the operation in Delta.
        parameters: The operation's parameters.
        metrics: The operation's metrics.
    """
    found: dict[str, Any] = {
        "inCommitTimestamp": millis,
        "timestamp": millis,
        "userId": transaction.author,
        "userName": transaction.author,
        "operation": operation,
        "operationParameters": {**parameters, "ledgerVersion": str(ledger_version)},
    }
    if version:
        found["readVersion"] = version - 1
    found |= {
        "isolationLevel": "Serializable",
        "isBlindAppend": operation == "WRITE" and parameters.get("mode") == "Append",
        "operationMetrics": {key: str(value) for key, value in metrics.items()},
    }
    if transaction.message:
        found["userMetadata"] = transaction.message
    found |= {
        "engineInfo": ENGINE,
        "txnId": transaction.id,
        "ledgerVersion": ledger_version,
    }
    return action_line("commitInfo", found)


def schema_change_operation(events: Sequence[TableEvent]) -> str:
    """Return Delta's operation for the events of a schema step; `ALTER TABLE` for several."""
    found = {_STEPS.get(type(each), "ALTER TABLE") for each in events}
    return found.pop() if len(found) == 1 else "ALTER TABLE"


def snapshot_operation(
    event: SnapshotEvent, files: Sequence[FileChange], restored: int | None
) -> tuple[str, dict[str, str]]:
    """Return Delta's operation for a snapshot, and its parameters.

    Args:
        event: The snapshot's event.
        files: The added and removed files.
        restored: The version that a rollback restores, if it still has one.
    """
    said = {"snapshotId": str(event.snapshot_id)}
    if isinstance(event, RolledBack):
        version = {} if restored is None else {"version": str(restored)}
        return "RESTORE", {**version, **said, "targetSnapshotId": str(event.target_snapshot_id)}
    kind = event.commit_kind
    if kind == "OVERWRITE" and all(each.kind == "DELETE" for each in files):
        return "DELETE", said
    operation = _SNAPSHOTS[kind]
    if operation == "WRITE":
        said = {"mode": "Append" if kind == "APPEND" else "Overwrite", **said}
    return operation, said


def metrics_of(files: Sequence[FileChange]) -> dict[str, int]:
    """Return operation metrics: files, rows and bytes added and removed."""
    come = [each for each in files if each.kind == "ADD"]
    gone = [each for each in files if each.kind == "DELETE"]
    return {
        "numFiles": len(come),
        "numOutputRows": sum(each.record_count for each in come),
        "numOutputBytes": sum(each.file_size_in_bytes for each in come),
        "numRemovedFiles": len(gone),
        "numDeletedRows": sum(each.record_count for each in gone),
    }


class SnapshotVersions:
    """Delta versions of the ledger's snapshots.

    Args:
        runs: Pairs of a snapshot and its version; later ids and versions increase together.
        flips: The snapshot ids at which it changes whether files are listed only by an engine's
            manifests, as in `UnlistedFiles`.
        last: The newest snapshot so far.

    Attributes:
        runs: The pairs, including those added here.
        unlisted: The snapshots with files that only an engine's manifests list.

    Example:
        >>> versions = SnapshotVersions([(1, 1), (4, 6)], last=5)
        >>> [versions.version_of(each) for each in (1, 3, 4, 5, 6)]
        [1, 3, 6, 7, None]
    """

    def __init__(
        self, runs: Iterable[tuple[int, int]], flips: Iterable[int] = (), *, last: int = 0
    ) -> None:
        self.runs = list(runs)
        self._last = last
        self.unlisted = UnlistedFiles(flips)

    def add(self, event: SnapshotEvent, version: int) -> None:
        """Add the next snapshot."""
        snapshot_id = self._last = event.snapshot_id
        if not self.runs or version - snapshot_id != self.runs[-1][1] - self.runs[-1][0]:
            self.runs.append((snapshot_id, version))
        self.unlisted.learn(event)

    def version_of(self, snapshot_id: int) -> int | None:
        """Return a snapshot's version; None for one that was not added yet."""
        if snapshot_id > self._last:
            return None
        place = bisect_right(self.runs, (snapshot_id, 2**63)) - 1
        if place < 0:
            return None
        first, version = self.runs[place]
        return version + snapshot_id - first
