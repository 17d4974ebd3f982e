"""Commits of snapshots that engines of Paimon make.

A commit is found by its user, identifier and kind, also after its snapshot expired, so that a
request that is sent again has the first one's result. After a rollback, which removes snapshots,
the same three are a new commit: a job that starts again from an older state repeats them.

Source: Paimon's FileStoreCommitImpl and RESTCatalog.
"""

from __future__ import annotations

from typing import Any, Unpack

from attrs import frozen
from msgspec import UNSET, UnsetType

from ledger.decide.bounds import SNAPSHOT_ID, TIME_MILLIS
from ledger.events import TableEvent
from ledger.log.request import CommitOptions, digest_of
from ledger.model.errors import (
    CommitConflictError,
    InvalidChangeError,
    InvalidInputError,
    NotFoundError,
)
from ledger.model.snapshot import BATCH_COMMIT_IDENTIFIER, Snapshot
from ledger.state.paimon_origin import PaimonOrigin
from ledger.state.snapshots import MAIN
from ledger.state.stream import AlreadyCommitted
from ledger.state.table import TableState
from ledger.table_handle import TableHandle
from projections.paimon.branch_commits import commit_to_line
from projections.paimon.served_files import write_committed_files, write_files
from projections.paimon.served_folder import folder_events, read_expired
from projections.paimon.served_origin import served_origin
from projections.paimon.snapshot_event import snapshot_event


@frozen(kw_only=True)
class SnapshotRequest:
    """Request of an engine to commit a snapshot.

    Attributes:
        table_id: The table's id, as the engine has loaded it.
        snapshot: The snapshot; see `projections.paimon.snapshot_file.snapshot_of_request`.
        base_snapshot_uuid: The uuid of the snapshot that it is based on; None for no snapshot, or
            one without a uuid. UNSET for an engine of a version that does not say it.
        events: Further events of the same transaction, such as statistics of partitions.
    """

    table_id: str
    snapshot: Snapshot
    base_snapshot_uuid: str | UnsetType | None = UNSET
    events: tuple[TableEvent, ...] = ()


class _StaleBaseError(InvalidChangeError):
    """The newest snapshot is another one than the request is based on."""


def commit_snapshot(
    table: TableHandle,
    request: SnapshotRequest,
    *,
    branch: str | None = None,
    **commit: Unpack[CommitOptions],
) -> bool:
    """Commit a snapshot that an engine made; its file exists before this returns.

    Args:
        table: The table.
        request: The request.
        branch: The branch; None for the main line.
        commit: See CommitOptions; the commit's id is derived from the snapshot.

    Returns:
        True if this request, or the same one before, committed the snapshot. False if it did not:
        its engine reads the newest snapshot and tries again.

    Raises:
        NotFoundError: The table has another id, so that it is another table; or the snapshot's
            schema does not exist.
        InvalidInputError: The snapshot cannot be the next one, or a value is out of range.
        InvalidChangeError: Engines of Paimon do not own the table.
        CommitUnknownError: The store did not answer, so the commit may have been made.
        StoreError: It was made, and its file cannot be written; the same request writes it.
    """
    # The newest state, since a rollback makes the same request another one.
    state = table.state
    _check_table(state, request)
    write_files(table, state, branch)
    line = branch or MAIN
    folder = read_expired(table, state, branch)
    key = commit_key(request.snapshot, line, served_origin(state).ids_given_since(line))
    options: CommitOptions = {
        **commit,
        "commit_id": _commit_id(key),
        "asked": ["paimonSnapshot", *key],
    }

    def decide(on: TableState) -> tuple[TableEvent, ...] | AlreadyCommitted:
        events = decide_snapshot(on, request)
        if folder is None or isinstance(events, AlreadyCommitted):
            return events
        return (*folder_events(on, folder), *events)

    try:
        done = commit_to_line(table, branch, ["paimonSnapshot", *key], decide, **options)
    except (_StaleBaseError, CommitConflictError):
        write_files(table, table.state)
        return False
    write_committed_files(table, done.state)
    return True


def is_committed(
    table: TableHandle, state: TableState, snapshot: Snapshot, branch: str | None = None
) -> bool:
    """Return whether a table has the commit of a request, also after its snapshot expired.

    Args:
        table: The table, which may be dropped.
        state: Its newest state.
        snapshot: The request's snapshot.
        branch: The branch; None for the main line.
    """
    line = branch or MAIN
    key = commit_key(snapshot, line, served_origin(state).ids_given_since(line))
    return table.find_commit(_commit_id(key)) is not None


def _commit_id(key: list[Any]) -> str:
    return f"paimon:{digest_of(key)}"


def commit_key(snapshot: Snapshot, line: str, ids_given_since: int) -> list[Any]:
    """Return the key by which a snapshot's commit is found.

    Args:
        snapshot: The snapshot.
        line: The name of its branch, or main.
        ids_given_since: See `PaimonOrigin.ids_given_since`.
    """
    key: list[Any] = [
        line,
        ids_given_since,
        snapshot.commit_kind,
        snapshot.commit_identifier,
        snapshot.commit_user,
    ]
    if snapshot.commit_identifier == BATCH_COMMIT_IDENTIFIER:
        # All batch commits have it; the uuid of each is its own, which older engines do not give.
        key.append(snapshot.uuid or snapshot.delta_manifest_list or snapshot.id)
    return key


def decide_snapshot(
    state: TableState, request: SnapshotRequest
) -> tuple[TableEvent, ...] | AlreadyCommitted:
    """Return the events of a request on a state; see `commit_snapshot`."""
    _check_table(state, request)
    origin, snapshot = served_origin(state), request.snapshot
    latest = origin.current
    expected = 1 if latest is None else latest.id + 1
    base, uuid = request.base_snapshot_uuid, None if latest is None else latest.uuid
    # Snapshots of older engines have no uuid: only their ids tell them apart.
    has_no_uuid = base is UNSET or (base is None and uuid is None)
    is_base = snapshot.id == expected if has_no_uuid else base == uuid
    if not is_base:
        found = _earlier_attempt(origin, snapshot)
        if found is not None:
            return AlreadyCommitted(origin.added_in[found])
        raise _StaleBaseError(
            f"the newest snapshot is {'none' if latest is None else latest.id}, and the request "
            f"is based on another one; nothing was committed",
            kind="STALE",
        )
    if snapshot.id != expected:
        raise InvalidInputError(
            f"the next snapshot is {expected}, and the request has snapshot {snapshot.id}; read "
            "the newest snapshot, then retry. Nothing was committed"
        )
    if snapshot.schema_id not in origin.schemas:
        raise NotFoundError(
            f"schema {snapshot.schema_id} of snapshot {snapshot.id} does not exist; there are "
            f"{sorted(origin.schemas)}. Load the table again"
        )
    return (snapshot_event(snapshot), *request.events)


def _check_table(state: TableState, request: SnapshotRequest) -> None:
    if request.table_id != state.table_id:
        raise NotFoundError(
            f"table {request.table_id} does not exist any more; another one has its name, with the "
            f"id {state.table_id}. Load it again"
        )
    SNAPSHOT_ID.check(request.snapshot.id, "the request")
    TIME_MILLIS.check(request.snapshot.time_millis, f"snapshot {request.snapshot.id}")


def _earlier_attempt(origin: PaimonOrigin, snapshot: Snapshot) -> int | None:
    """Return the id of the snapshot that an earlier attempt of a request committed."""
    wanted = commit_key(snapshot, MAIN, 0)
    for number, each in reversed(origin.snapshots.items()):
        if each.commit_user == snapshot.commit_user and commit_key(each, MAIN, 0) == wanted:
            return number
    return None
