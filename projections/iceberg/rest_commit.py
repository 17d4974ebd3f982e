"""Commits of Iceberg REST updates: requirements, updates, and the events that they become.

They are decided again on each base state, and committed only if the metadata projected from the
events equals the metadata that the updates ask for.

Source: the Iceberg REST catalog specification, CommitTableRequest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Unpack

import projections.iceberg.rest_updates as u
from ledger.decide.table_options import PERSONAL_OPTION, unmatched_mark_names
from ledger.events import TableEvent
from ledger.events.imported import SnapshotAdded
from ledger.log.request import Appended, CommitOptions, digest_of
from ledger.model.errors import (
    CommitUnknownError,
    InvalidChangeError,
    InvalidInputError,
    UnsupportedError,
)
from ledger.state.iceberg_origin import IcebergOrigin
from ledger.state.stream import AlreadyCommitted
from ledger.state.table import TableState
from ledger.table_handle import TableHandle
from projections.iceberg.expiry import Retention, expiring
from projections.iceberg.imported_metadata import differing_fields, metadata_of
from projections.iceberg.metadata_update import apply_in_steps
from projections.iceberg.native_commit import commit_native_updates
from projections.iceberg.position import METADATA_PATH, Names
from projections.iceberg.rest_events import implied_events, update_events
from projections.iceberg.rest_updates import (
    StaleBaseError,
    TableRequirement,
    TableUpdate,
    check_requirements,
    requirement_from_json,
    requirement_to_json,
    table_update_from_json,
    update_to_json,
)
from projections.iceberg.schema_rebase import rebase_added_columns
from projections.iceberg.table_metadata import TableMetadata
from projections.importing.trial import PlanningState
from projections.locations import check_location

_LEDGER_OPTIONS = "ledger."
_OF_COMMITS = {"last_updated_ms", "metadata_log"}
"""Metadata fields that a commit sets without an update."""


def commit_updates(
    table: TableHandle,
    updates: Iterable[TableUpdate | dict[str, Any]],
    requirements: Iterable[TableRequirement | dict[str, Any]] = (),
    **options: Unpack[CommitOptions],
) -> Appended[TableState]:
    """Commit updates of the Iceberg REST catalog; all of them are committed, or none.

    Engines own a served table, and commit data to it. The data of any other table is committed
    through the ledger: its updates must not add a snapshot, move `main`, or set the location or an
    encryption key. Of a table that is not from Iceberg, they may change columns, properties and
    tags. No update may set an option of the ledger.

    A commit that added one of the updates' snapshots is found by it, even once that expired: the
    same updates again return that commit, for clients without idempotency keys.

    Args:
        table: A table that engines or the ledger own, from Iceberg or one that declares it.
        updates: In order, as objects or as decoded JSON.
        requirements: The conditions under which they are committed, as objects or decoded JSON.
        options: See CommitOptions.

    Raises:
        InvalidInputError: An update or requirement cannot be read, or contradicts the table.
        InvalidChangeError: An update is not allowed here.
        StaleBaseError: A requirement does not hold.
        UnsupportedError: The table does not declare Iceberg, or the ledger cannot make it what the
            updates ask for.
        CommitUnknownError: The store did not answer, so the commit may have been made.
    """
    batch = [table_update_from_json(each) if isinstance(each, dict) else each for each in updates]
    required: list[Any] = [
        requirement_from_json(each) if isinstance(each, dict) else each for each in requirements
    ]
    now_ms = table.setting.now_millis()
    wanted = [*map(requirement_to_json, required), *map(update_to_json, batch)]
    asked = ["icebergUpdates", wanted]
    state = table.state if table.log.head is None else table.log.head.state
    if not isinstance(state.origin, IcebergOrigin):
        needed = needed_requirements(required, batch)
        return commit_native_updates(table, batch, needed, asked, options)

    def decide(state: TableState) -> tuple[TableEvent, ...] | AlreadyCommitted:
        _check_locations(table, state, batch)
        events: tuple[TableEvent, ...] | AlreadyCommitted
        try:
            events = decide_update_events(
                state, table.location, lambda _: batch, required, now_ms=now_ms
            )
        except (StaleBaseError, InvalidInputError):
            found = _commit_of_expired_snapshots(table, state, batch)
            if found is None:
                raise
            events = found
        if isinstance(events, AlreadyCommitted):
            _check_same_request(table, events.version, options.get("asked", asked))
        return events

    return table.commit_events(asked, decide, **options)


def _check_locations(table: TableHandle, state: TableState, batch: Sequence[TableUpdate]) -> None:
    """Check the folders that updates name, to which metadata files are written then.

    The location of a table that the ledger owns is not theirs to set, whatever it is.

    Raises:
        InvalidInputError, UnsupportedError: As of `check_location`.
    """
    for each in batch:
        if isinstance(each, u.SetLocation) and state.owner.kind == "served":
            check_location(table, each.location, "location")
        elif isinstance(each, u.SetProperties) and METADATA_PATH in each.updates:
            check_location(table, each.updates[METADATA_PATH], METADATA_PATH)


def _commit_of_expired_snapshots(
    table: TableHandle, state: TableState, batch: Sequence[TableUpdate]
) -> AlreadyCommitted | None:
    """Return the commit that added a snapshot of a batch that the table has no more; None without.

    Read from the log, since no state keeps it: a request that the table rejects now may have been
    committed before. Only commits since the snapshot's parent can have added it or, if the parent
    expired too, those since engines own the table.
    """
    origin, head = state.origin_of_kind(IcebergOrigin), table.log.head
    added = [each.snapshot for each in batch if isinstance(each, u.AddSnapshot)]
    wanted = {each.snapshot_id for each in added} - origin.snapshots.keys()
    if not wanted or head is None:
        return None
    owned = state.owner.since_version
    first = min(origin.added_in.get(each.parent_snapshot_id or -1, owned) for each in added)
    for read in table.log.commits(max(first, owned), min(state.version, head.state.version)):
        for event in (each for it in read.commit.transactions for each in it.events):
            if isinstance(event, SnapshotAdded) and event.snapshot.snapshot_id in wanted:
                return AlreadyCommitted(read.commit.version)
    return None


def _check_same_request(table: TableHandle, version: int, asked: Any) -> None:
    """Check that a commit that added a request's snapshots is a commit of that very request.

    Its files are live, so that the answer must not say that nothing was committed.

    Raises:
        CommitUnknownError: It is one of another request.
    """
    head = table.log.head
    if head is None or version > head.state.version:
        # Not committed yet: the request is decided again once it is.
        return
    digest, transactions = digest_of(asked), table.log.commit_at(version).transactions
    if all(each.asked != digest for each in transactions):
        raise CommitUnknownError(
            f"version {version} added a snapshot of these updates, with other updates or "
            "requirements; load the table again, and use a new snapshot id for a new request",
            transactions[0].id,
            version,
        )


def expire_snapshots(
    table: TableHandle, retention: Retention, now_ms: int, **options: Unpack[CommitOptions]
) -> Appended[TableState]:
    """Expire the snapshots, branches and tags that Iceberg's retention rules do not keep.

    Args:
        table: A table from Iceberg that engines or the ledger own.
        retention: The rules that replace those of the table and its branches.
        now_ms: The time from which ages count, in milliseconds since 1970.
        options: See CommitOptions.

    Raises:
        InvalidInputError, InvalidChangeError, UnsupportedError, CommitUnknownError: As in
            `commit_updates`.
    """
    return table.commit_events(
        ["icebergExpiry", retention.older_than_ms, retention.retain_last, now_ms],
        lambda state: decide_update_events(
            state,
            table.location,
            lambda found: expiring(found, retention, now_ms=now_ms),
            now_ms=now_ms,
        ),
        **options,
    )


def decide_update_events(
    state: TableState,
    location: str,
    batch_of: Callable[[TableMetadata], Sequence[TableUpdate]],
    required: Sequence[TableRequirement] = (),
    *,
    now_ms: int,
) -> tuple[TableEvent, ...] | AlreadyCommitted:
    """Return the events of updates on a state; none if they change nothing.

    Args:
        state: The table's state.
        location: The ledger's location of the table, with its manifest lists.
        batch_of: Function from metadata to the updates, in order.
        required: The requirements.
        now_ms: The time of the request, in milliseconds since 1970.

    Raises:
        InvalidInputError, InvalidChangeError, StaleBaseError, UnsupportedError: As in
            `commit_updates`.
    """
    names = Names(state.table_id)
    before = metadata_of(state, lambda each: f"{location}/{names.manifest_list(each)}")
    required, batch = rebase_added_columns(before, required, batch_of(before))
    committed = _commit_of_snapshots(state, batch)
    if committed is not None:
        return committed
    check_requirements(before, needed_requirements(required, batch))
    after, steps = apply_in_steps(before, batch, now_ms=max(now_ms, before.last_updated_ms))
    if after is before:
        return ()
    if state.owner.kind == "served":
        _check_served_parts(before, after)
    else:
        _check_ledger_owned_parts(before, after)
    trial = PlanningState(state, state.effective_millis)
    changed = tuple(update_events(trial.schema, steps))
    reached = trial.after(changed, state.effective_millis, "")
    implied = implied_events(reached, after)
    if implied:
        reached = trial.after((*changed, *implied), state.effective_millis, "")
    made = metadata_of(reached, lambda each: f"{location}/{names.manifest_list(each)}")
    wrong = [each for each in differing_fields(made, after) if each not in _OF_COMMITS]
    if wrong:
        raise UnsupportedError(
            f"the ledger cannot commit these updates: {', '.join(wrong)} would differ from what "
            "they ask for; commit them one by one to find the one that it cannot"
        )
    _check_personal_marks(reached)
    return (*changed, *implied)


def _commit_of_snapshots(
    state: TableState, batch: Sequence[TableUpdate]
) -> AlreadyCommitted | None:
    """Return the commit that added the snapshots of a batch; None if none is in the table.

    Raises:
        InvalidInputError: A snapshot of the table has the id of one of them.
    """
    origin = state.origin_of_kind(IcebergOrigin)
    gone: set[int] = set()
    for update in batch:
        if isinstance(update, u.RemoveSnapshots):
            gone.update(update.snapshot_ids)
        elif isinstance(update, u.AddSnapshot):
            wanted = update.snapshot
            there = origin.snapshots.get(wanted.snapshot_id)
            if there == wanted:
                return AlreadyCommitted(origin.added_in[wanted.snapshot_id])
            if there is not None and wanted.snapshot_id not in gone:
                raise InvalidInputError(
                    f"the table has another snapshot {wanted.snapshot_id}; use a new id"
                )
            if origin.lists_files(wanted.snapshot_id):
                raise InvalidInputError(
                    f"the ledger made snapshot {wanted.snapshot_id} of this table once; use a new "
                    "id"
                )
    return None


_DEPENDING_UPDATES: Final[Mapping[type[TableRequirement], tuple[type[TableUpdate], ...]]] = {
    u.AssertLastAssignedFieldId: (u.AddSchema,),
    u.AssertCurrentSchemaId: (
        u.AddSchema,
        u.SetCurrentSchema,
        u.RemoveSchemas,
        u.AddSpec,
        u.AddSortOrder,
        u.AddSnapshot,
    ),
    u.AssertLastAssignedPartitionId: (u.AddSpec,),
    u.AssertDefaultSpecId: (
        u.AddSpec,
        u.SetDefaultSpec,
        u.RemovePartitionSpecs,
        u.AddSnapshot,
    ),
    u.AssertDefaultSortOrderId: (u.AddSortOrder, u.SetDefaultSortOrder, u.AddSnapshot),
    u.AssertRefSnapshotId: (
        u.AddSnapshot,
        u.RemoveSnapshots,
        u.RemoveSchemas,
        u.RemovePartitionSpecs,
    ),
}
"""The updates for which each requirement has to hold.

A requirement that concerns none of the updates of its request is not checked, so that requests of
two engines that change different things are both committed. Requirements that are not listed are
always checked. A ref is also required by the updates of that very ref.
"""


def needed_requirements(
    required: Iterable[TableRequirement], batch: Sequence[TableUpdate]
) -> list[TableRequirement]:
    """Return the requirements on which some update of a batch depends.

    Example:
        >>> moved = u.AssertRefSnapshotId(ref="main", snapshot_id=1)
        >>> needed_requirements([moved], [u.SetProperties(updates={"a": "b"})])
        []
    """
    return [
        each
        for each in required
        if type(each) not in _DEPENDING_UPDATES
        or any(isinstance(update, _DEPENDING_UPDATES[type(each)]) for update in batch)
        or _names_ref(each, batch)
    ]


def _names_ref(required: TableRequirement, batch: Sequence[TableUpdate]) -> bool:
    return isinstance(required, u.AssertRefSnapshotId) and any(
        isinstance(update, u.SetSnapshotRef | u.RemoveSnapshotRef)
        and update.ref_name == required.ref
        for update in batch
    )


def _check_personal_marks(reached: TableState) -> None:
    """Reject a state in which a column that is marked as personal does not exist.

    Raises:
        InvalidChangeError: There is such a mark.
    """
    lost = unmatched_mark_names(
        reached.schema.options.get(PERSONAL_OPTION, ""), reached.schema.fields
    )
    if lost:
        raise InvalidChangeError(
            f"column {lost[0]} is marked as personal, and the updates rename or drop it: change it "
            "by Table.alter, whose marks follow"
        )


def _check_served_parts(before: TableMetadata, after: TableMetadata) -> None:
    """Reject updates of metadata by which the ledger knows a served table.

    Raises:
        InvalidChangeError: One is such an update.
    """
    checks: dict[str, bool] = {
        "change the uuid, by which readers know the table": (
            before.table_uuid not in {None, after.table_uuid}
        ),
        "change options of the ledger; Table.alter does": _ledger_options_of(before)
        != _ledger_options_of(after),
    }
    _refuse_first(checks, "the updates cannot")


def _refuse_first(checks: Mapping[str, bool], subject: str) -> None:
    for reason, is_wrong in checks.items():
        if is_wrong:
            raise InvalidChangeError(f"{subject} {reason}; nothing was committed")


def _check_ledger_owned_parts(before: TableMetadata, after: TableMetadata) -> None:
    """Reject updates of metadata that only the ledger sets.

    Raises:
        InvalidChangeError: One is such an update.
    """
    checks: dict[str, bool] = {
        "add a snapshot; the ledger commits the data, by Table.append, until the table is handed "
        "over to engines (lakeledger serve-table)": bool(
            after.snapshots_by_id.keys() - before.snapshots_by_id.keys()
        ),
        "move or remove main; the ledger's snapshots move it, by Table.append and Table.rollback": (
            before.current_snapshot_id != after.current_snapshot_id
        ),
        "change the uuid, by which readers know the table": (
            before.table_uuid not in {None, after.table_uuid}
        ),
        "change the location; lakeledger move does": before.location != after.location,
        "change the encryption keys; the ledger writes nothing that is encrypted": (
            before.encryption_keys != after.encryption_keys
        ),
        "change options of the ledger; Table.alter does": _ledger_options_of(before)
        != _ledger_options_of(after),
    }
    _refuse_first(checks, "the ledger owns the table, and updates cannot")


def _ledger_options_of(metadata: TableMetadata) -> dict[str, str]:
    properties = metadata.properties.items()
    return {key: value for key, value in properties if key.startswith(_LEDGER_OPTIONS)}
