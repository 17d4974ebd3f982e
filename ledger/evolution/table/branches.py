"""The rules of branches: where they may begin, what may follow on them, and when main may.

A branch begins with a snapshot of main, and one that main has gone on from cannot be caught up
with. What is committed to it is decided as on main, and conflicts with nothing on other lines.
"""

from __future__ import annotations

from typing import Any, TypeVar

from msgspec import UNSET, UnsetType

from ledger.events.born.iceberg import BranchBase, SnapshotRefSet
from ledger.events.snapshot_events import (
    BranchCommitted,
    BranchHead,
    SnapshotCommitted,
    SnapshotsExpired,
)
from ledger.evolution import bounds
from ledger.evolution.declared.asking import refuse_tag
from ledger.evolution.declared.format import Formats
from ledger.evolution.state import TableState
from ledger.evolution.table.branch_fold import MAIN
from ledger.evolution.table.changes import (
    CommitSnapshot,
    ExpireSnapshots,
    FastForward,
    MetBranch,
    Rollback,
    SetBranch,
)
from ledger.evolution.table.snapshots import check_reachable, committed_facts, listed_facts
from ledger.model.errors import (
    AlreadyExistsError,
    InvalidChangeError,
    NotFoundError,
    UnsupportedError,
)
from ledger.model.iceberg.snapshot import SnapshotRef
from ledger.model.identifier import checked_name
from ledger.model.snapshot import Branch, branch_number

T = TypeVar("T")


def _or_unset(value: T | None) -> T | UnsetType:
    return UNSET if value is None else value


def met(state: TableState, branch: MetBranch) -> Branch:
    """Return the branch that a writer met.

    Raises:
        NotFoundError: It is gone, or another one has its name.
    """
    found = state.branch(branch.name)
    if found.number != branch.number:
        raise NotFoundError(
            f"branch {branch.name!r} was deleted, and another one has its name; look at it, then "
            "ask again"
        )
    return found


def decide_on_branch(
    state: TableState,
    branch: Branch,
    change: CommitSnapshot | Rollback,
    formats: Formats,
    schema_id: int,
) -> BranchCommitted:
    """Return the branch's snapshot that a change becomes.

    Args:
        state: The state that the transaction meets.
        branch: The branch in it.
        change: What is asked.
        formats: The formats that there are.
        schema_id: The schema current at this point of the transaction.

    Raises:
        InvalidChangeError: A file is named twice, or does not fit the table.
        FormatError: The table's formats cannot say a file.
        NotFoundError: The snapshot to go back to cannot be read on the branch.
    """
    common = listed_facts(
        state,
        change,
        formats,
        snapshot_id=branch.next_id,
        schema_id=schema_id,
        before=branch.totals,
    )
    line: dict[str, Any] = {"branch_name": branch.name, "parent_snapshot_id": branch.head_id}
    if isinstance(change, CommitSnapshot):
        said = committed_facts(change, branch.snapshot, schema_id)
        return BranchCommitted(**common, **said, **line)
    target = change.target_snapshot_id
    if target not in branch.snapshot_ids and target != branch.base_snapshot_id:
        raise NotFoundError(
            f"branch {branch.name!r} cannot go back to snapshot {target}: it holds "
            f"{told_ids(branch)}"
        )
    return BranchCommitted(**common, **line, commit_kind="OVERWRITE", target_snapshot_id=target)


def decide_fast_forward(
    state: TableState,
    branch: Branch,
    change: FastForward,
    formats: Formats,
    *,
    snapshot_id: int,
    schema_id: int,
) -> SnapshotCommitted:
    """Return the snapshot of main that has what a branch shows.

    Args:
        state: The state that the transaction meets.
        branch: The branch in it.
        change: What is asked.
        formats: The formats that there are.
        snapshot_id: Main's next snapshot id.
        schema_id: The schema current at this point of the transaction.

    Raises:
        InvalidChangeError: Main went on since the branch began, or the branch since it was asked.
        FormatError: The table's formats cannot say a file.
    """
    _refuse_diverged(state, branch, change)
    common = listed_facts(
        state,
        change,
        formats,
        snapshot_id=snapshot_id,
        schema_id=schema_id,
        before=state.totals,
    )
    return SnapshotCommitted(
        **common,
        commit_kind="OVERWRITE" if any(e.kind == "DELETE" for e in change.files) else "APPEND",
        fast_forward_to=BranchHead(branch.name, change.snapshot_id),
    )


def told_ids(branch: Branch) -> str:
    """Return which snapshots a branch holds, for people."""
    own = branch.snapshot_ids
    said = f"snapshot {branch.base_snapshot_id}, which it begins with"
    return f"{said}, and its own {own[0]} to {own[-1]}" if own else said


def _refuse_diverged(state: TableState, branch: Branch, change: FastForward) -> None:
    """Refuse to fast-forward main where its head is no ancestor of the branch, or nothing is new.

    Raises:
        InvalidChangeError: It is not, or the branch showed another snapshot than it does.
    """
    newest = state.last_snapshot_id
    if branch.base_snapshot_id != newest:
        raise InvalidChangeError(
            f"main cannot be fast-forwarded to branch {branch.name!r}, which begins with snapshot "
            f"{branch.base_snapshot_id}: main has gone on to snapshot {newest} since. Reset the "
            "branch to main's head and commit its files there again, or commit them to main",
            kind="DIVERGED",
        )
    if branch.snapshot is None:
        raise InvalidChangeError(
            f"main shows what branch {branch.name!r} does: snapshot {newest}, with which the "
            "branch begins and to which it added nothing"
        )
    if branch.head_id != change.snapshot_id:
        raise InvalidChangeError(
            f"branch {branch.name!r} has gone on to snapshot {branch.head_id} since; look at it, "
            "then ask again"
        )


def decide_branch(state: TableState, change: SetBranch, formats: Formats) -> SnapshotRefSet:
    """Return the fact that a branch begins.

    Raises:
        AlreadyExistsError: There is one of that name, and it should be new; or a tag has it.
        NotFoundError: It should begin anew and is not there, or the snapshot cannot be read.
        InvalidChangeError: The snapshot is of a branch.
        InvalidNameError: The name would not be safe as a folder's.
        FormatError: One of the table's formats cannot have the name.
    """
    checked_name(change.name, "branch")
    origin = state.origin
    if not origin.has_branches:
        raise UnsupportedError(
            f"the table was born in {origin.format_name.title()}, and the ledger commits to its "
            f"main alone: {change.name!r} cannot begin here"
        )
    bounds.check_numbers(change, f"branch {change.name!r}")
    if change.resets:
        state.branch(change.name)
    elif change.name in state.branches:
        raise AlreadyExistsError(
            f"branch {change.name!r} exists and shows snapshot "
            f"{state.branches[change.name].head_id}; reset it or take another name"
        )
    if change.name == MAIN or change.name in state.tags:
        what = "what every table begins with" if change.name == MAIN else "a tag"
        raise AlreadyExistsError(f"{change.name!r} is {what}; give the branch another name")
    refuse_tag(state, change.name, formats)
    check_reachable(state, change.snapshot_id)
    if state.branch_number(change.snapshot_id):
        raise InvalidChangeError(
            f"snapshot {change.snapshot_id} is of a branch, and branches begin with snapshots of "
            "main: fast-forward main to it first, or begin with the snapshot that it begins with"
        )
    return SnapshotRefSet(change.name, _ref(change), _base(change))


def _ref(change: SetBranch) -> SnapshotRef:
    return SnapshotRef(
        snapshot_id=change.snapshot_id,
        type="branch",
        min_snapshots_to_keep=change.min_snapshots_to_keep,
        max_snapshot_age_ms=change.max_snapshot_age_millis,
        max_ref_age_ms=change.max_ref_age_millis,
    )


def _base(change: SetBranch) -> BranchBase:
    totals = change.totals
    return BranchBase(
        version=change.base_version,
        record_count=totals.record_count,
        file_size_in_bytes=totals.file_size_in_bytes,
        file_count=totals.file_count,
        last_file_creation_time=_or_unset(totals.last_file_creation_time),
    )


def branch_holds(state: TableState, change: SetBranch) -> bool:
    """Whether a branch already begins as asked, without snapshots of its own."""
    there = state.branches.get(change.name)
    asked = (
        change.snapshot_id,
        change.min_snapshots_to_keep,
        change.max_snapshot_age_millis,
        change.max_ref_age_millis,
    )
    return there is not None and asked == (
        there.head_id,
        there.min_snapshots_to_keep,
        there.max_snapshot_age_millis,
        there.max_ref_age_millis,
    )


def decide_branch_expiry(state: TableState, change: ExpireSnapshots) -> SnapshotsExpired | None:
    """Return the expiry of a branch's own snapshots, or None when those are gone already.

    Raises:
        InvalidChangeError: None would be left.
        NotFoundError: The snapshot is of no branch.
    """
    earliest = change.earliest_snapshot_id
    branch = state.branch_numbered(branch_number(earliest))
    if branch is None:
        raise NotFoundError(f"snapshot {earliest} is of no branch that is there")
    if earliest <= branch.earliest_snapshot_id:
        return None
    if earliest not in branch.snapshot_ids:
        raise InvalidChangeError(
            f"expiring what is before snapshot {earliest} would leave branch {branch.name!r} "
            f"none; it holds {told_ids(branch)}"
        )
    return SnapshotsExpired(earliest_snapshot_id=earliest)
