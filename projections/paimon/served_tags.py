"""Tags of a served table.

The folder says which tags there are, since engines also write them without the catalog: a tag is
written before it is recorded, and removed before its deletion is; see `served_folder`.

Source: Paimon's TagManager and Tag.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Unpack

from msgspec import UNSET

from ledger.decide.bounds import RETENTION_MILLIS
from ledger.decide.changes import CreateTag, DeleteTag, TagChange
from ledger.events.snapshots import TagCreated, TagDeleted, TagReplaced
from ledger.log.request import Appended, CommitOptions
from ledger.model.errors import (
    AlreadyExistsError,
    CommitUnknownError,
    LedgerError,
    NotFoundError,
)
from ledger.model.snapshot import Snapshot
from ledger.state.table import TableState
from ledger.table_handle import TableHandle
from projections.paimon.branch_commits import commit_to_line, line_change
from projections.paimon.paths import tag_path
from projections.paimon.served_files import line_outputs, outputs_of_engines
from projections.paimon.served_folder import record_folder
from projections.paimon.served_origin import served_origin
from projections.paimon.snapshot_file import is_same_snapshot, tag_file


def create_tag(
    table: TableHandle,
    name: str,
    *,
    snapshot_id: int | None = None,
    time_retained_millis: int | None = None,
    branch: str | None = None,
    **commit: Unpack[CommitOptions],
) -> Appended[TableState]:
    """Tag a snapshot; the tag's file exists before this returns.

    Args:
        table: The table.
        name: The tag.
        snapshot_id: The snapshot; None for the newest.
        time_retained_millis: Retention of the tag in milliseconds; None to keep it for ever.
        branch: The branch; None for the main line.
        commit: See CommitOptions.

    Raises:
        AlreadyExistsError: A tag of that name exists.
        NotFoundError: The snapshot or the branch does not exist.
        InvalidNameError: The name cannot be a tag's.
        InvalidChangeError: The retention is out of range, or engines of Paimon do not own the
            table.
        CommitUnknownError: The store did not answer, so the commit may have been made.
    """
    path = tag_path(name)
    if time_retained_millis is not None:
        RETENTION_MILLIS.check(time_retained_millis, f"tag {name!r}")
    now = table.setting.now_millis()

    asked = ["paimonCreateTag", name, snapshot_id, time_retained_millis]
    request = commit.get("asked", line_change(branch, asked))
    earlier = table.committed_before(commit.get("commit_id"), request)
    if earlier is not None:
        return earlier
    state = record_folder(table, branch)
    snapshot = _tagged_snapshot(state, name, snapshot_id)
    body = tag_file(snapshot, create_time_millis=now, time_retained_millis=time_retained_millis)
    outputs = line_outputs(outputs_of_engines(table, state), branch)
    if not outputs.store.create(outputs.key(path), body):
        raise _exists_error(name)
    created = TagCreated(
        tag_name=name,
        snapshot_id=snapshot.id,
        time_retained_millis=UNSET if time_retained_millis is None else time_retained_millis,
        create_time_millis=now,
    )

    def decide(state: TableState) -> tuple[TagCreated, ...]:
        recorded = state.tags.get(name)
        if recorded is not None and recorded.snapshot_id == snapshot.id:
            # Another request found the file in the folder, and recorded it.
            return ()
        # The file is of this snapshot, whichever one is the newest by now.
        if not is_same_snapshot(_tagged_snapshot(state, name, snapshot.id), snapshot):
            raise NotFoundError(
                f"tag {name!r} cannot be created: snapshot {snapshot.id} was rolled back meanwhile"
            )
        return (created,)

    try:
        return commit_to_line(table, branch, asked, decide, **commit)
    except CommitUnknownError:
        raise
    except LedgerError:
        with suppress(LedgerError, OSError):
            outputs.remove(path)
        raise


def delete_tag(
    table: TableHandle, name: str, *, branch: str | None = None, **commit: Unpack[CommitOptions]
) -> Appended[TableState]:
    """Delete a tag; its snapshot stays unless it expired.

    Args:
        table: The table.
        name: The tag.
        branch: The branch; None for the main line.
        commit: See CommitOptions.

    Raises:
        NotFoundError: The tag or the branch does not exist.
        InvalidChangeError: Engines of Paimon do not own the table.
        CommitUnknownError: The store did not answer, so the commit may have been made.
    """

    def decide(state: TableState) -> tuple[TagDeleted, ...]:
        # Another request may have found that the file is gone, and recorded it.
        return (TagDeleted(tag_name=name),) if name in state.tags else ()

    asked = ["paimonDeleteTag", name]
    request = commit.get("asked", line_change(branch, asked))
    earlier = table.committed_before(commit.get("commit_id"), request)
    if earlier is not None:
        return earlier
    state = record_folder(table, branch)
    outputs = line_outputs(outputs_of_engines(table, state), branch)
    outputs.remove(tag_path(state.tag(name).name))
    return commit_to_line(table, branch, asked, decide, **commit)


def replace_tag(
    table: TableHandle,
    name: str,
    *,
    snapshot_id: int | None = None,
    time_retained_millis: int | None = None,
    **commit: Unpack[CommitOptions],
) -> Appended[TableState]:
    """Let a tag of the main line name another snapshot; its file exists before this returns.

    Args:
        table: The table.
        name: The tag.
        snapshot_id: The snapshot; None for the newest.
        time_retained_millis: Retention of the tag in milliseconds; None to keep it for ever.
        commit: See CommitOptions.

    Raises:
        NotFoundError: The tag or the snapshot does not exist.
        InvalidChangeError, CommitUnknownError: As of `create_tag`.
    """
    if time_retained_millis is not None:
        RETENTION_MILLIS.check(time_retained_millis, f"tag {name!r}")
    now = table.setting.now_millis()

    def decide(state: TableState) -> tuple[TagReplaced]:
        retained = UNSET if time_retained_millis is None else time_retained_millis
        return (
            TagReplaced(
                tag_name=state.tag(name).name,
                snapshot_id=_readable_snapshot(state, name, snapshot_id).id,
                time_retained_millis=retained,
                create_time_millis=now,
            ),
        )

    asked = ["paimonReplaceTag", name, snapshot_id, time_retained_millis]
    earlier = table.committed_before(commit.get("commit_id"), commit.get("asked", asked))
    if earlier is not None:
        return earlier
    state = record_folder(table)
    snapshot = _readable_snapshot(state, state.tag(name).name, snapshot_id)
    body = tag_file(snapshot, create_time_millis=now, time_retained_millis=time_retained_millis)
    outputs_of_engines(table, state).restore(tag_path(name), body)
    return table.commit_events(asked, decide, **commit)


def change_tag(
    table: TableHandle, change: TagChange, options: CommitOptions
) -> Appended[TableState]:
    """Create, replace or delete a tag of the main line; see `ledger.engine_writes.TagCall`."""
    if isinstance(change, DeleteTag):
        return delete_tag(table, change.tag_name, **options)
    call: Callable[..., Appended[TableState]] = (
        create_tag if isinstance(change, CreateTag) else replace_tag
    )
    return call(
        table,
        change.tag_name,
        snapshot_id=change.snapshot_id,
        time_retained_millis=change.time_retained_millis,
        **options,
    )


def _tagged_snapshot(state: TableState, name: str, snapshot_id: int | None) -> Snapshot:
    if name in state.tags:
        raise _exists_error(name)
    return _readable_snapshot(state, name, snapshot_id)


def _readable_snapshot(state: TableState, name: str, snapshot_id: int | None) -> Snapshot:
    origin = served_origin(state)
    if snapshot_id is None:
        if origin.current is None:
            raise NotFoundError(f"tag {name!r} cannot be created: the table has no snapshot yet")
        return origin.current
    found = origin.readable_snapshots.get(snapshot_id)
    if found is None:
        raise NotFoundError(
            f"tag {name!r} cannot be created: snapshot {snapshot_id} does not exist; there are "
            f"{origin.readable_range_text(state)}"
        )
    return found


def _exists_error(name: str) -> AlreadyExistsError:
    return AlreadyExistsError(f"tag {name!r} exists already; delete it first, or take another name")
