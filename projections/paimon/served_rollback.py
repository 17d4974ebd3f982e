"""Rollbacks of a served table: newer snapshots and tags, or newer schemas, are removed.

The log keeps what they removed; their ids are given again. As in Paimon, the schema stays as it is
when the data is rolled back.

Source: Paimon's RollbackHelper and SchemaManager.
"""

from __future__ import annotations

from typing import Unpack

from ledger.events import TableEvent
from ledger.events.imported import CurrentSchemaSet, SchemasRemoved, SnapshotsRemoved
from ledger.events.snapshots import TagDeleted
from ledger.log.request import Appended, CommitOptions
from ledger.model.errors import InvalidChangeError, NotFoundError
from ledger.model.instant import SnapshotInstant, TagInstant
from ledger.state.native_origin import abbreviate_ids
from ledger.state.table import TableState
from ledger.table_handle import TableHandle
from projections.paimon.branch_commits import commit_to_line
from projections.paimon.served_files import write_committed_files
from projections.paimon.served_folder import record_folder
from projections.paimon.served_origin import served_origin
from projections.paimon.snapshot_event import snapshot_event


def rollback_table(
    table: TableHandle,
    instant: SnapshotInstant | TagInstant,
    *,
    from_snapshot: int | None = None,
    branch: str | None = None,
    **commit: Unpack[CommitOptions],
) -> Appended[TableState]:
    """Remove the snapshots and tags after one; the files agree before this returns.

    A tagged snapshot that expired becomes the newest one again.

    Args:
        table: The table.
        instant: The snapshot, or a tag of it.
        from_snapshot: The id that the newest snapshot must have; None for any.
        branch: The branch; None for the main line.
        commit: See CommitOptions.

    Raises:
        NotFoundError: The snapshot, the tag or the branch does not exist.
        InvalidChangeError: The newest snapshot is another one than `from_snapshot`, or engines of
            Paimon do not own the table.
        CommitUnknownError: The store did not answer, so the commit may have been made.
        StoreError: A file cannot be written or removed; the same call does it.
    """
    record_folder(table, branch)
    asked = [
        "paimonRollback",
        *(
            ("snapshot", instant.snapshot_id)
            if isinstance(instant, SnapshotInstant)
            else ("tag", instant.tag_name)
        ),
        from_snapshot,
    ]
    done = commit_to_line(
        table,
        branch,
        asked,
        lambda state: rollback_events(state, instant, from_snapshot),
        **commit,
    )
    write_committed_files(table, done.state)
    return done


def rollback_events(
    state: TableState, instant: SnapshotInstant | TagInstant, from_snapshot: int | None
) -> tuple[TableEvent, ...]:
    """Return the events of a rollback on a state; see `rollback_table`."""
    origin = served_origin(state)
    target = (
        instant.snapshot_id
        if isinstance(instant, SnapshotInstant)
        else state.tag(instant.tag_name).snapshot_id
    )
    latest = max(origin.snapshots, default=0)
    found = origin.readable_snapshots.get(target)
    if found is None:
        raise NotFoundError(
            f"snapshot {target} does not exist; there are "
            f"{abbreviate_ids(origin.snapshot_ids(state))}"
        )
    if from_snapshot is not None and from_snapshot != latest:
        raise InvalidChangeError(
            f"Latest snapshot {latest} is not {from_snapshot}, from which the request rolls back; "
            "check it, then retry. Nothing was committed",
            kind="ILLEGAL_STATE",
        )
    events: list[TableEvent] = [
        TagDeleted(tag_name=name)
        for name, tag in sorted(state.tags.items())
        if tag.snapshot_id > target
    ]
    gone = sorted(each for each in origin.snapshots if each > target)
    if target in origin.snapshots:
        return (*events, SnapshotsRemoved(tuple(gone))) if gone else tuple(events)
    # It expired, and its tag keeps it: it is committed once more.
    return (*events, SnapshotsRemoved((target, *gone)), snapshot_event(found))


def rollback_schema(
    table: TableHandle,
    schema_id: int,
    *,
    branch: str | None = None,
    **commit: Unpack[CommitOptions],
) -> Appended[TableState]:
    """Remove the schemas after one, which becomes the current one; the files agree then.

    Args:
        table: The table.
        schema_id: The id of the schema.
        branch: The branch; None for the main line.
        commit: See CommitOptions.

    Raises:
        NotFoundError: The schema or the branch does not exist.
        InvalidChangeError: A snapshot or tag was written with a newer schema, or engines of Paimon
            do not own the table.
        CommitUnknownError: The store did not answer, so the commit may have been made.
    """
    record_folder(table, branch)
    done = commit_to_line(
        table,
        branch,
        ["paimonRollbackSchema", schema_id],
        lambda state: schema_rollback_events(state, schema_id),
        **commit,
    )
    write_committed_files(table, done.state)
    return done


def schema_rollback_events(state: TableState, schema_id: int) -> tuple[TableEvent, ...]:
    """Return the events of a rollback of schemas on a state; see `rollback_schema`."""
    origin = served_origin(state)
    if schema_id not in origin.schemas:
        raise NotFoundError(
            f"schema {schema_id} does not exist; there are {sorted(origin.schemas)}"
        )
    used = {each.schema_id for each in origin.readable_snapshots.values()}
    newer = min((each for each in used if each > schema_id), default=None)
    if newer is not None:
        raise InvalidChangeError(
            f"the table cannot be rolled back to schema {schema_id}: schema {newer} is still used "
            "by a snapshot or a tag. Roll those back first",
            kind="RUNTIME",
        )
    gone = tuple(sorted(each for each in origin.schemas if each > schema_id))
    return (CurrentSchemaSet(schema_id), SchemasRemoved(gone)) if gone else ()
