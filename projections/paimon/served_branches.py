"""Branches of a Paimon table that engines own: create, rename, drop and fast-forward them.

Source: Paimon's FileSystemBranchManager.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Unpack

from ledger.events import TableEvent
from ledger.events.snapshots import TagCreated, TagDeleted, TagReplaced
from ledger.log.request import Appended, CommitOptions
from ledger.model.errors import InvalidChangeError
from ledger.state.table import TableState
from ledger.table_handle import TableHandle
from projections.outputs import StoreOutputs
from projections.paimon.branch_commits import Decide, branch_events
from projections.paimon.branch_files import (
    MAIN,
    branch_texts,
    created_branch_event,
    dropped_branch_event,
    renamed_branch_event,
)
from projections.paimon.branch_forward import forward_events
from projections.paimon.branch_lines import line_state
from projections.paimon.paths import tag_path
from projections.paimon.served_files import (
    line_outputs,
    outputs_of_engines,
    write_committed_files,
    write_files,
)
from projections.paimon.served_folder import record_folder
from projections.paimon.served_origin import served_origin


def _commit_and_write(
    table: TableHandle, change: Sequence[Any], decide: Decide, commit: CommitOptions
) -> Appended[TableState]:
    done = table.commit_events(change, decide, **commit)
    write_committed_files(table, done.state)
    return done


def create_branch(
    table: TableHandle,
    name: str,
    *,
    tag: str | None = None,
    line: str | None = None,
    **commit: Unpack[CommitOptions],
) -> Appended[TableState]:
    """Create a branch: from a tag, or with the schemas only.

    Args:
        table: The table.
        name: The new branch.
        tag: The tag that it begins with.
        line: The branch that the tag and the schemas are of; None for the main line.
        commit: See CommitOptions.

    Raises:
        InvalidNameError: The name cannot be that of a branch.
        AlreadyExistsError: A branch of that name exists.
        NotFoundError: The tag or `line` does not exist.
    """
    record_folder(table, line)

    def decide(state: TableState) -> tuple[TableEvent, ...]:
        served_origin(state)
        return (created_branch_event(state, name, tag, line or MAIN),)

    return _commit_and_write(table, ["createPaimonBranch", name, tag, line], decide, commit)


def rename_branch(
    table: TableHandle, name: str, to_name: str, **commit: Unpack[CommitOptions]
) -> Appended[TableState]:
    """Rename a branch.

    Raises:
        InvalidNameError, AlreadyExistsError: As of `create_branch`, of the new name.
        NotFoundError: The branch does not exist.
    """
    record_folder(table, name)

    def decide(state: TableState) -> tuple[TableEvent, ...]:
        served_origin(state)
        return (renamed_branch_event(state, name, to_name),)

    return _commit_and_write(table, ["renamePaimonBranch", name, to_name], decide, commit)


def drop_branch(
    table: TableHandle, name: str, **commit: Unpack[CommitOptions]
) -> Appended[TableState]:
    """Drop a branch; its manifests and data files stay, as those of an expired snapshot do.

    Raises:
        NotFoundError: The branch does not exist.
        InvalidChangeError: An option of the table names the branch.
    """
    # What a handle has written before, it removes.
    write_files(table, table.state)

    def decide(state: TableState) -> tuple[TableEvent, ...]:
        served_origin(state)
        return (dropped_branch_event(state, name),)

    return _commit_and_write(table, ["dropPaimonBranch", name], decide, commit)


def forward_branch(
    table: TableHandle,
    name: str,
    *,
    line: str | None = None,
    **commit: Unpack[CommitOptions],
) -> Appended[TableState]:
    """Let a line take over the contents of a branch; see `branch_forward.forward_events`.

    Args:
        table: The table.
        name: The branch.
        line: The branch that takes over the contents; None for the main line.
        commit: See CommitOptions.

    Raises:
        NotFoundError: A branch does not exist.
        InvalidChangeError: The branch has no snapshot, or is `line`.
        UnsupportedError: A tag of the branch names an expired snapshot, of whose id the line has
            another one.
    """
    change = ["forwardPaimonBranch", name, line]
    earlier = table.committed_before(commit.get("commit_id"), commit.get("asked", change))
    if earlier is not None:
        return earlier
    record_folder(table, name)
    record_folder(table, line)
    while True:
        state, now = table.state, table.setting.now_millis()
        events = forward_events(state, name, now, line or MAIN)
        tags = _tag_events(events)
        inside = line_outputs(outputs_of_engines(table, state), line)
        # The folder says which tags there are: none may be missing, committed or not.
        _write_tags(inside, tags, branch_texts(state, name))

        def decide(
            on: TableState, tags: tuple[TableEvent, ...] = tags, now: int = now
        ) -> tuple[TableEvent, ...]:
            events = forward_events(on, name, now, line or MAIN)
            if _tag_events(events) != tags:
                raise _TagsChangedError(f"tags of branch {name!r} changed; retry")
            if line is None or line == MAIN:
                return events
            return branch_events(line, line_state(table, on, line), events, now)

        try:
            done = table.commit_events(change, decide, **commit)
        except _TagsChangedError:
            continue
        _remove_tags(inside, tags)
        write_committed_files(table, done.state)
        return done


class _TagsChangedError(InvalidChangeError):
    """A concurrent writer changed tags of a line that is forwarded."""


def _tag_events(events: Sequence[TableEvent]) -> tuple[TableEvent, ...]:
    return tuple(each for each in events if isinstance(each, TagCreated | TagReplaced | TagDeleted))


def _write_tags(
    outputs: StoreOutputs, events: Sequence[TableEvent], texts: Mapping[str, str]
) -> None:
    """Write the files of the tags that a line gets.

    Args:
        outputs: The folder of the line.
        events: The changes of its tags.
        texts: The texts of the tags, by path.
    """
    for path, event in _last_by_path(events).items():
        if not isinstance(event, TagDeleted):
            outputs.restore(path, texts[path].encode())


def _remove_tags(outputs: StoreOutputs, events: Sequence[TableEvent]) -> None:
    """Remove the files of the tags that a line loses."""
    for path, event in _last_by_path(events).items():
        if isinstance(event, TagDeleted):
            outputs.remove(path)


def _last_by_path(events: Sequence[TableEvent]) -> dict[str, TableEvent]:
    """Return the last change of each tag, by the path of its file."""
    return {
        tag_path(each.tag_name): each
        for each in events
        if isinstance(each, TagCreated | TagReplaced | TagDeleted)
    }
