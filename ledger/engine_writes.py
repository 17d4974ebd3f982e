"""Writes of the library to a table whose data engines commit, made by the table's format.

The files of such a table are listed by its format's own manifests. `Table` and `TableBranch` have
the same calls for it as for a table that the ledger owns.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Protocol

from attrs import frozen

from ledger.decide.changes import TagChange
from ledger.files.snapshot_plan import ListedFiles, SnapshotPlan
from ledger.formats import part_if_any
from ledger.log.request import Appended, CommitOptions
from ledger.model.instant import Instant
from ledger.state.table import TableState
from ledger.table_handle import TableHandle

Committed = Appended[TableState]
BranchRetention = tuple[int | None, int | None, int | None]
"""Retention of a branch: minimal snapshot count, maximal snapshot age and branch age in ms."""

_PART: Final = "engine_writes"


class CommitSnapshotCall(Protocol):
    """Commits a snapshot of file changes; see `Table.commit_snapshot`."""

    def __call__(
        self,
        table: TableHandle,
        plan: SnapshotPlan,
        options: CommitOptions,
        *,
        branch: str | None = None,
    ) -> Committed:
        """Commit it to main, or to a branch."""


class RollbackCall(Protocol):
    """Commits a snapshot with the data of an older one; see `Table.rollback`."""

    def __call__(
        self,
        table: TableHandle,
        snapshot: int | None,
        tag: str | None,
        options: CommitOptions,
        *,
        branch: str | None = None,
    ) -> Committed:
        """Commit it to main, or to a branch."""


class SetBranchCall(Protocol):
    """Creates a branch, or resets one; see `TableBranch.create` and `TableBranch.reset`."""

    def __call__(
        self,
        table: TableHandle,
        name: str,
        instant: Instant | None,
        kept: BranchRetention | None,
        asked: Any,
        options: CommitOptions,
    ) -> Committed:
        """Point the branch to a snapshot or a tag; without `kept` it exists already."""


class TagCall(Protocol):
    """Creates, replaces or deletes a tag; see `Table.create_tag`."""

    def __call__(self, table: TableHandle, change: TagChange, options: CommitOptions) -> Committed:
        """Make the change in the folder and in the log."""


@frozen
class EngineWrites:
    """The writes that a format makes to tables whose data its engines commit.

    Attributes:
        commit_snapshot: Commits a snapshot of file changes.
        rollback: Commits a snapshot with the data of an older one.
        set_branch: Creates a branch, or resets one.
        delete_branch: Deletes a branch, by name.
        fast_forward: Points main to the newest snapshot of a branch, by name.
        live_files: Returns the live files of the newest snapshot.
        prepare: Writes what engines need to load the table and its owner before did not write.
    """

    commit_snapshot: CommitSnapshotCall
    rollback: RollbackCall
    set_branch: SetBranchCall
    delete_branch: Callable[[TableHandle, str, CommitOptions], Committed]
    fast_forward: Callable[[TableHandle, str, CommitOptions], Committed]
    live_files: Callable[[TableHandle, TableState], ListedFiles]
    prepare: Callable[[TableHandle, TableState], None]


def engine_writes_of(handle: TableHandle) -> EngineWrites | None:
    """Return the writes of a table's format, if engines commit the table's data as manifests.

    None for any other owner, for a table that the ledger created, and for a format whose snapshots
    only engines can write: the library can then change the metadata only.
    """
    state = handle.state if handle.log.head is None else handle.log.head.state
    origin = state.origin
    if state.owner.kind != "served" or state.owner.protocol != origin.format_name:
        return None
    found: EngineWrites | None = part_if_any(origin.format_name, _PART)
    return found


def engine_tags_of(handle: TableHandle) -> TagCall | None:
    """Return the changes of tags of a table's format, if its engines keep them in the folder.

    None for any other table: its tags are those of its log.
    """
    state = handle.state if handle.log.head is None else handle.log.head.state
    origin = state.origin
    if state.owner.protocol != origin.format_name or state.is_promoted:
        return None
    found: TagCall | None = part_if_any(origin.format_name, "engine_tags")
    return found
