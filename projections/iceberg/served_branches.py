"""Branches of a table that engines own: refs of Iceberg, which engines move as well."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from ledger.engine_writes import BranchRetention
from ledger.log.request import Appended, CommitOptions
from ledger.model.errors import (
    AlreadyExistsError,
    InvalidChangeError,
    InvalidInputError,
    NotFoundError,
)
from ledger.model.iceberg_objects import MAIN, SnapshotRef
from ledger.model.instant import Instant
from ledger.state.iceberg_origin import IcebergOrigin
from ledger.state.table import TableState
from ledger.table_handle import TableHandle
from projections.iceberg import expiry
from projections.iceberg.rest_commit import decide_update_events
from projections.iceberg.rest_updates import TableUpdate
from projections.iceberg.table_metadata import TableMetadata


def commit_decided(
    table: TableHandle,
    asked: Any,
    begin: Callable[[], Callable[[TableState], Any]],
    options: CommitOptions,
) -> Appended[TableState]:
    """Commit what a function decides, first on the state that the handle has read.

    Args:
        table: The table.
        asked: Contents of the request, to compare it with earlier ones of the same commit id.
        begin: Returns the function; called again where a stale state does not allow the request.
        options: See CommitOptions.
    """
    held = table.state if table.log.head is None else table.log.head.state
    try:
        return table.commit_events(asked, begin(), **options)
    except (InvalidInputError, NotFoundError, AlreadyExistsError):
        if table.state.version == held.version:
            raise
        return table.commit_events(asked, begin(), **options)


def set_branch(
    table: TableHandle,
    name: str,
    instant: Instant | None,
    kept: BranchRetention | None,
    asked: Any,
    options: CommitOptions,
) -> Appended[TableState]:
    """Create a branch with a snapshot, or point it to one; see `TableBranch.create` and `reset`.

    Args:
        table: The table.
        name: The branch.
        instant: The snapshot or tag to point to; None for the newest snapshot of main.
        kept: Retention of a new branch; None: the branch exists, and keeps its retention.
        asked: Contents of the request, to compare it with earlier ones of the same commit id.
        options: See CommitOptions.

    Raises:
        AlreadyExistsError: A new branch was asked for, and a branch or tag has the name.
        NotFoundError: The branch, the snapshot or the tag does not exist.
        InvalidChangeError: Main has no snapshot yet.
    """

    def updates(state: TableState, before: TableMetadata) -> TableUpdate:
        snapshot = table.state_at(state, instant).snapshot
        if snapshot is None:
            raise InvalidChangeError(
                f"branch {name!r} cannot be created: main has no snapshot yet; commit one to main "
                "first"
            )
        if kept is None:
            there = _existing_branch(state, name)
            return expiry.set_ref(name, replace(there, snapshot_id=snapshot.id))
        least, age, ref_age = kept
        ref = SnapshotRef(
            snapshot_id=snapshot.id,
            type="branch",
            min_snapshots_to_keep=least,
            max_snapshot_age_ms=age,
            max_ref_age_ms=ref_age,
        )
        return expiry.create_ref(before, name, ref)

    return _commit_update(table, asked, updates, options)


def delete_branch(table: TableHandle, name: str, options: CommitOptions) -> Appended[TableState]:
    """Delete a branch; its snapshots stay until they expire.

    Raises:
        NotFoundError: The branch does not exist.
    """

    def updates(state: TableState, before: TableMetadata) -> TableUpdate:
        _existing_branch(state, name)
        return expiry.remove_ref(before, name)

    return _commit_update(table, ["deleteBranch", name], updates, options)


def fast_forward(table: TableHandle, name: str, options: CommitOptions) -> Appended[TableState]:
    """Point main to the newest snapshot of a branch that begins with main's newest one.

    Raises:
        NotFoundError: The branch does not exist.
        InvalidChangeError: Main has newer snapshots than the one that the branch begins with.
    """

    def updates(state: TableState, before: TableMetadata) -> TableUpdate:
        _existing_branch(state, name)
        return expiry.fast_forward(before, MAIN, name)

    return _commit_update(table, ["fastForward", name], updates, options)


def _commit_update(
    table: TableHandle,
    asked: Any,
    updates: Callable[[TableState, TableMetadata], TableUpdate],
    options: CommitOptions,
) -> Appended[TableState]:
    def decide(state: TableState) -> Any:
        served_origin(state)
        return decide_update_events(
            state,
            table.location,
            lambda before: [updates(state, before)],
            now_ms=table.setting.now_millis(),
        )

    return commit_decided(table, asked, lambda: decide, options)


def served_origin(state: TableState) -> IcebergOrigin:
    """Return the origin of a table whose data engines own.

    Raises:
        InvalidChangeError: Engines do not own it through Iceberg's protocol any more.
    """
    if state.owner.protocol != "iceberg":
        raise InvalidChangeError(
            f"the table is not served any more: its owner is {state.owner} since version "
            f"{state.owner.since_version}; load it again, then retry",
            kind="SERVED",
        )
    return state.origin_of_kind(IcebergOrigin)


def branch_head(origin: IcebergOrigin, name: str) -> SnapshotRef | None:
    """Return the ref of a branch; None of main before its first snapshot.

    Raises:
        NotFoundError: There is no such branch.
    """
    found = origin.refs.get(name)
    if name != MAIN and (found is None or found.type != "branch"):
        branches = ", ".join(key for key, each in origin.refs.items() if each.type == "branch")
        raise NotFoundError(f"branch {name!r} does not exist; there are {branches or 'none'}")
    return found


def _existing_branch(state: TableState, name: str) -> SnapshotRef:
    found = branch_head(served_origin(state), name)
    if found is None or name == MAIN:
        raise InvalidChangeError(f"{name!r} is the table's main line; name another branch")
    return found
