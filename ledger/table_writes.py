"""Writes of a table, each as a plan of changes on a state that `TableHandle` commits.

Snapshots with their lists of files, rollbacks, branches, undo, ownership, corrections of the clock,
and commits of an imported table's source. Imported by the calls that write, so that reading starts
fast.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import date, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Unpack

import msgspec
from attrs import evolve
from msgspec import UNSET

from ledger.audit.undo import Undoing, plan_state_restore, plan_transaction_undo
from ledger.decide import changes as table_changes
from ledger.decide.changes import TableChange, TagChange
from ledger.decide.format_rules import declared_rules
from ledger.decide.recorded_values import check_recorded_values
from ledger.decide.table import refuse_by_owner
from ledger.decide.table_options import MarkedColumns
from ledger.engine_writes import BranchRetention, engine_tags_of, engine_writes_of
from ledger.events import TableEvent
from ledger.events.snapshots import NO_FILES, ChangesReference, ListingEvent, SnapshotCommitted
from ledger.events.table import OwnerSet, ServingProtocol
from ledger.files.change_lists import (
    INLINE_LIMIT,
    commit_files,
    event_files,
    store_change_file,
    write_changes,
    write_changes_by_path,
)
from ledger.files.snapshot_plan import SnapshotPlan
from ledger.formats import part_if_any
from ledger.history.older import on_branch, schemas, state_at_snapshot, states_around_transaction
from ledger.log.personal_data import SidecarWriter, WriteContext
from ledger.log.request import Appended, CommitOptions, annotate_interruption, fresh_id
from ledger.model.errors import (
    CommitConflictError,
    InvalidChangeError,
    InvalidInputError,
    LedgerError,
)
from ledger.model.file_change import FileChange
from ledger.model.instant import Instant, instant_from_arguments, millis
from ledger.model.messages import excerpt
from ledger.model.snapshot import Branch, branch_number
from ledger.opening.context import Plan, Progress
from ledger.state.stream import AlreadyCommitted
from ledger.state.table import TableState
from ledger.table_handle import TableHandle

if TYPE_CHECKING:
    from ledger.plan import ClockPlan
    from ledger.state.owner import Owner


def commit_snapshot(
    handle: TableHandle, plan: SnapshotPlan, options: CommitOptions, *, branch: str | None = None
) -> Appended[TableState]:
    """Commit a snapshot of any kind, to main or to a branch."""
    plan = evolve(plan, files=check_file_changes(plan.files))
    engines = engine_writes_of(handle)
    if engines is not None:
        return engines.commit_snapshot(handle, plan, options, branch=branch)
    keeping = SidecarWriter(handle.log.personal.columns)

    def seal(head: TableState, files: Sequence[FileChange]) -> Sequence[FileChange]:
        return _store_personal_values(handle, head, files, keeping)

    def planned(head: TableState) -> list[TableChange] | AlreadyCommitted:
        seen = head if branch is None else on_branch(handle.log, head, branch)
        known = _find_committed_snapshot(handle, plan, seen)
        opened = handle.log.personal.columns.opened
        return known or [
            plan.on(seen, handle.live, partial(write_long_change_list, handle), seal, opened)
        ]

    head = handle.log.head.state if handle.log.head is not None else handle.state
    on = [] if branch is None else ["branch", branch]
    asked = ["snapshot", plan.without_values(head, head.schema), *on]
    otherwise = (["snapshot", each, *on] for each in _earlier_request_forms(handle, plan))
    request = handle.request(asked, options)
    with annotate_interruption(request):
        try:
            committed = handle.commit_request(request, planned, previous_requests=otherwise)
        except (InvalidInputError, CommitConflictError):
            keeping.forget()
            raise
        if committed.repeated and keeping.keys:
            there = handle.log.commit_at(committed.version)
            keeping.forget(commit_files(handle.log.store, handle.log.layout, there))
        return committed


def _store_personal_values(
    handle: TableHandle, head: TableState, files: Sequence[FileChange], keeping: SidecarWriter
) -> Sequence[FileChange]:
    """Store personal values of new files in sidecars; return the files without those values."""
    marked = MarkedColumns.of(head.schema) if head.keeps_outside else None
    if marked is None:
        return files
    # After a lost race the plan runs again: delete the sidecars of the previous attempt.
    keeping.forget()
    return keeping.keep(files, marked, head.spec_by_id, _write_context(handle, head))


def _write_context(handle: TableHandle, head: TableState) -> WriteContext:
    return WriteContext(head.table_id, handle.setting.now_millis(), handle.setting.retry_policy)


def _earlier_request_forms(handle: TableHandle, plan: SnapshotPlan) -> Iterator[SnapshotPlan]:
    """Yield the plan as requested under other sets of personal columns, for older digests."""
    if handle.state.keeps_outside:
        yield plan
        for schema in handle.schemas():
            yield plan.without_values(handle.state, schema)


def write_long_change_list(
    handle: TableHandle, files: Sequence[FileChange]
) -> ChangesReference | None:
    """Write a list of file changes that is too long for a commit to a file; None if it fits."""
    if len(files) <= INLINE_LIMIT:
        return None
    return _store_long_list(handle, write_changes_by_path(files), len(files))


def _store_long_list(handle: TableHandle, body: bytes, count: int) -> ChangesReference:
    # Dated like its commit, which is never earlier than the newest commit.
    head = handle.log.head
    newest = head.state.time_millis if head else 0
    now = max(handle.setting.now_millis(), newest)
    reference = store_change_file(handle.log.store, handle.log.layout, body, count, now)
    # The next commits look their files up in it.
    handle.live.lists.keep(reference, body)
    return reference


def _find_committed_snapshot(
    handle: TableHandle, plan: SnapshotPlan, seen: TableState
) -> AlreadyCommitted | None:
    branch = seen.viewed_branch
    key = plan.key_on(0 if branch is None else branch.number)
    if key is None:
        return None
    handle.log.refresh()
    for version in handle.log.last_named(key):
        if key in handle.live.keys_of(handle.log.commit_at(version)):
            return AlreadyCommitted(version)
    return None


def change_tag(
    handle: TableHandle, asked: Any, change: TagChange, options: CommitOptions
) -> Appended[TableState]:
    """Create, replace or delete a tag; see `Table.create_tag`."""
    of_engines = engine_tags_of(handle)
    if of_engines is not None:
        return of_engines(handle, change, options)
    return handle.commit(asked, options, lambda _: [change])


def rollback(
    handle: TableHandle, snapshot: int | None, tag: str | None, options: CommitOptions
) -> Appended[TableState]:
    """Restore the data of a snapshot of main; see `Table.rollback`."""
    if (snapshot is None) == (tag is None):
        raise InvalidInputError("rollback takes one of snapshot= and tag=")
    engines = engine_writes_of(handle)
    if engines is not None:
        return engines.rollback(handle, snapshot, tag, options)

    def plan(head: TableState) -> list[TableChange]:
        then = handle.state_at(head, instant_from_arguments(snapshot=snapshot, tag=tag))
        # The data of a served table is not changed here; its engines' manifests may be gone.
        files = () if head.owner.kind == "served" else _file_changes_to(handle, head, then)
        return [
            table_changes.Rollback(
                target_snapshot_id=then.last_snapshot_id,
                target_tag_name=tag,
                commit_user=fresh_id(),
                **_file_fields(handle, files),
            )
        ]

    return handle.commit(["rollback", snapshot, tag], options, plan)


def _file_changes_to(
    handle: TableHandle, head: TableState, then: TableState
) -> tuple[FileChange, ...]:
    """Return the file changes from the live files to those of an earlier state."""
    if then.lists_files:
        return handle.live.difference(head, then)
    return handle.live.difference_to(head, handle.engine_files_at(then))


def _file_fields(handle: TableHandle, files: tuple[FileChange, ...]) -> dict[str, Any]:
    """Return a change's fields for its files: as projected, as written, and the list's file."""
    return {
        "files": tuple(handle.log.personal.columns.rendered(files)),
        "written": files,
        "reference": write_long_change_list(handle, files),
    }


def begin_branch(
    handle: TableHandle,
    name: str,
    instant: Instant | None,
    kept: BranchRetention | None,
    asked: Any,
    options: CommitOptions,
) -> Appended[TableState]:
    """Create a branch with a snapshot of main, or reset it to one.

    Args:
        handle: The table.
        name: The branch.
        instant: The snapshot or tag to start from; None for the newest snapshot.
        kept: Retention of a new branch; None: the branch exists, and is reset.
        asked: Contents of the request, to compare it with earlier ones of the same commit id.
        options: See CommitOptions.
    """
    engines = engine_writes_of(handle)
    if engines is not None:
        return engines.set_branch(handle, name, instant, kept, asked, options)

    def plan(head: TableState) -> list[TableChange]:
        then = handle.state_at(head, instant)
        if then.snapshot is None:
            raise InvalidChangeError(
                f"branch {name!r} cannot be created: main has no snapshot yet; commit one "
                "to main first"
            )
        made = state_at_snapshot(handle.log, then.snapshot.id)
        least, age, ref_age = kept or _retention_of(head.branch(name))
        return [
            table_changes.SetBranch(
                name=name,
                snapshot_id=then.snapshot.id,
                base_version=made.version,
                totals=made.totals,
                resets=kept is None,
                min_snapshots_to_keep=least,
                max_snapshot_age_millis=age,
                max_ref_age_millis=ref_age,
            )
        ]

    return handle.commit(asked, options, plan)


def rollback_branch(
    handle: TableHandle, name: str, snapshot: int, options: CommitOptions
) -> Appended[TableState]:
    """Restore the data of a branch's snapshot; see `TableBranch.rollback`."""
    engines = engine_writes_of(handle)
    if engines is not None:
        return engines.rollback(handle, snapshot, None, options, branch=name)

    def plan(head: TableState) -> list[TableChange]:
        branch = head.branch(name)
        holds = snapshot in (*branch.snapshot_ids, branch.base_snapshot_id)
        files: tuple[FileChange, ...] = ()
        if holds:
            then = state_at_snapshot(handle.log, snapshot)
            files = handle.live.difference(on_branch(handle.log, head, name), then)
        return [
            table_changes.Rollback(
                target_snapshot_id=snapshot,
                commit_user=fresh_id(),
                branch=table_changes.MetBranch(branch.name, branch.number),
                **_file_fields(handle, files),
            )
        ]

    return handle.commit(["rollbackBranch", name, snapshot], options, plan)


def delete_branch(handle: TableHandle, name: str, options: CommitOptions) -> Appended[TableState]:
    """Delete a branch; see `TableBranch.delete`."""
    engines = engine_writes_of(handle)
    if engines is not None:
        return engines.delete_branch(handle, name, options)
    change = table_changes.DeleteBranch(name)
    return handle.commit(["deleteBranch", name], options, lambda _: [change])


def fast_forward(handle: TableHandle, name: str, options: CommitOptions) -> Appended[TableState]:
    """Commit a branch's data as one more snapshot of main; see `TableBranch.fast_forward`."""
    engines = engine_writes_of(handle)
    if engines is not None:
        return engines.fast_forward(handle, name, options)

    def plan(head: TableState) -> list[TableChange]:
        branch = head.branch(name)
        files: tuple[FileChange, ...] = ()
        if branch.base_snapshot_id == head.last_snapshot_id:
            files = handle.live.difference(head, on_branch(handle.log, head, name))
        return [
            table_changes.FastForward(
                branch=table_changes.MetBranch(branch.name, branch.number),
                snapshot_id=branch.head_id,
                commit_user=fresh_id(),
                **_file_fields(handle, files),
            )
        ]

    return handle.commit(["fastForward", name], options, plan)


def set_partition_statistics(
    handle: TableHandle, change: table_changes.SetPartitionStatistics, options: CommitOptions
) -> Appended[TableState]:
    """Commit a snapshot's partition statistics; see `Table.set_partition_statistics`."""
    asked = [change.snapshot_id, change.path, change.file_size_in_bytes]
    return handle.commit(["setPartitionStatistics", *asked], options, lambda _: [change])


def set_statistics(
    handle: TableHandle, change: table_changes.SetStatistics, options: CommitOptions
) -> Appended[TableState]:
    """Commit a snapshot's Puffin file of statistics; see `Table.set_statistics`."""
    asked = ["setStatistics", msgspec.to_builtins(change.statistics)]
    return handle.commit(asked, options, lambda _: [change])


def expire_branch_snapshots(
    handle: TableHandle, name: str, before: int, options: CommitOptions
) -> Appended[TableState]:
    """Expire a branch's own snapshots; see `TableBranch.expire_snapshots`."""

    def plan(head: TableState) -> list[TableChange]:
        branch = head.branch(name)
        if branch_number(before) != branch.number:
            raise InvalidChangeError(
                f"snapshot {before} is none of branch {name!r}'s own, which are "
                f"{[*branch.snapshot_ids]}; expire main's with Table.expire_snapshots"
            )
        return [table_changes.ExpireSnapshots(before)]

    return handle.commit(["expireSnapshots", before], options, plan)


def plan_undo(handle: TableHandle, version: int, transaction: str | None) -> Undoing:
    """Return the changes that `undo` would commit, or why it cannot; nothing is written."""
    head = handle.state
    before, after, _ = states_around_transaction(handle.log, version, transaction)
    found = plan_transaction_undo(before, after, head, handle.past_columns(head))
    refuse_by_owner(head, found.changes)
    return found


def undo(
    handle: TableHandle, version: int, transaction: str | None, options: CommitOptions
) -> Appended[TableState]:
    """Commit the changes that undo one earlier change; see `Table.undo`."""
    handle.log.refresh()
    before, after, undone_one = states_around_transaction(handle.log, version, transaction)
    said = f": {undone_one.message}" if undone_one.message else ""
    given: CommitOptions = {"message": f"undo version {version}{said}", **options}

    def plan(head: TableState) -> Sequence[TableChange]:
        found = plan_transaction_undo(before, after, head, handle.past_columns(head))
        return found.wanted(f"version {version} cannot be undone")

    return handle.commit(["undo", version, undone_one.id], given, plan)


def plan_restore(handle: TableHandle, then: TableState) -> Undoing:
    """Return the changes that `restore` would commit, or why it cannot; nothing is written."""
    head = handle.state
    found = plan_state_restore(then, head, handle.past_columns(head))
    refuse_by_owner(head, found.changes)
    return found


def restore(handle: TableHandle, then: TableState, options: CommitOptions) -> Appended[TableState]:
    """Commit the changes that restore an earlier state; see `Table.restore`."""
    given: CommitOptions = {"message": f"restore version {then.version}", **options}

    def plan(head: TableState) -> Sequence[TableChange]:
        found = plan_state_restore(then, head, handle.past_columns(head))
        return found.wanted(f"the table cannot go back to {then.version}")

    # The earlier name of `restore`, so that retries match the recorded request.
    return handle.commit(["revert", then.version, then.schema.id], given, plan)


def plan_clock_correction(handle: TableHandle, true_time: datetime | int | str | None) -> ClockPlan:
    """Return what `correct_clock` would commit; nothing is written."""
    from ledger.plan import plan_correction

    return plan_correction(handle.log, handle.setting.now_millis(), true_time)


def correct_clock(
    handle: TableHandle, true_time: datetime | int | str | None, options: CommitOptions
) -> Appended[TableState]:
    """Correct the times of the commits so far; see `Table.correct_clock`."""
    from ledger.plan import plan_correction

    now = handle.setting.now_millis()
    latest = None if true_time is None else millis(true_time)
    when: CommitOptions = {**options, "effective_time": now}
    return handle.commit(
        ["correctClock", latest],
        when,
        lambda _: [plan_correction(handle.log, now, latest).change],
    )


def data_files(
    handle: TableHandle, paths: list[str], on_progress: Progress
) -> tuple[FileChange, ...]:
    """Return the FileChanges that `Table.add_files` would register; only footers are read."""
    from ledger.files import register

    state = handle.state
    return register.data_files(
        paths,
        state=state,
        history=schemas(handle.log),
        column_names=names_in_new_files(handle, state),
        location=handle.folder,
        storage_options=dict(handle.storage_options),
        on_progress=on_progress,
    )


def new_files(handle: TableHandle, paths: list[str]) -> list[str]:
    """Return the URLs of those files that are not live in the table; see `Table.new_files`."""
    from ledger.files import register

    state, engines = handle.state, engine_writes_of(handle)
    return register.new_files(
        paths,
        live=handle.live if engines is None else engines.live_files(handle, state),
        state=state,
        storage_options=dict(handle.storage_options),
    )


def names_in_new_files(handle: TableHandle, state: TableState) -> dict[int, str]:
    """Return the names that the table's formats need in new files, where the schema has others."""
    declared = declared_rules(state.schema.options).formats
    asked = (part_if_any(each, "column_names") for each in sorted(declared))
    return {
        field_id: name
        for names_of in asked
        if names_of is not None
        for field_id, name in names_of(state, handle.past).items()
    }


def add_files(
    handle: TableHandle,
    paths: list[str],
    on_progress: Progress,
    options: CommitOptions,
    branch: str | None = None,
) -> Appended[TableState]:
    """Register Parquet files as one snapshot of main, or of a branch; see `Table.add_files`."""
    on = [] if branch is None else ["branch", branch]
    # Identified by its paths: on a retry the schema may differ, or the files be gone.
    asked = options.setdefault("asked", ["addFiles", paths, *on])
    committed = handle.committed_before(options.get("commit_id"), asked)
    if committed is not None:
        return committed
    plan = SnapshotPlan("APPEND", data_files(handle, paths, on_progress))
    return commit_snapshot(handle, plan, options, branch=branch)


def start_serving(
    handle: TableHandle, protocol: ServingProtocol | None, options: CommitOptions
) -> Appended[TableState]:
    """Let engines commit data through a protocol; see `Table.start_serving`."""
    asked, state = ["startServing", protocol], handle.state
    plan = partial(_start_serving_change, protocol)
    _prepare_for_engines(handle, state, plan)
    return handle.commit(asked, options, plan, state)


def _prepare_for_engines(handle: TableHandle, state: TableState, plan: Plan) -> None:
    engines = part_if_any(state.origin.format_name, "engine_writes")
    if engines is None:
        return
    try:
        planned = _planned_owner(handle, state, plan)
    except LedgerError:
        # The commit raises it, unless the same request was committed before.
        return
    if planned != state.owner:
        engines.prepare(handle, state)


def plan_serving(handle: TableHandle, protocol: ServingProtocol | None) -> Owner:
    """Return the owner that `start_serving` would set, or raise its error."""
    return _planned_owner(handle, handle.state, partial(_start_serving_change, protocol))


def _planned_owner(handle: TableHandle, state: TableState, plan: Plan) -> Owner:
    found = handle.intent(state, plan)
    decided = found if isinstance(found, AlreadyCommitted) else found.decide(state, ())
    events = () if isinstance(decided, AlreadyCommitted) else decided
    set_owner = (each for each in events if isinstance(each, OwnerSet))
    return next((state.owner.after(each, state.version + 1) for each in set_owner), state.owner)


def stop_serving(handle: TableHandle, options: CommitOptions) -> Appended[TableState]:
    """Stop serving the table to engines; see `Table.stop_serving`."""
    asked, state = ["stopServing"], handle.state
    if not _needs_adoption(state):
        return handle.commit(asked, options, _stop_serving_change, state)
    options.setdefault("asked", asked)
    committed = handle.committed_before(options.get("commit_id"), options["asked"])
    if committed is not None:
        return committed
    events = (OwnerSet(owner="ledger"), *_adoption_events(handle, state))
    return commit_imported(handle, events, options.get("expect_version", state.version), **options)


def plan_stop_serving(handle: TableHandle) -> Owner:
    """Return the owner that `stop_serving` would set, or raise its error."""
    state = handle.state
    if not _needs_adoption(state):
        return _planned_owner(handle, state, _stop_serving_change)
    _adoption_events(handle, state)
    return state.owner.after(OwnerSet(owner="ledger"), state.version + 1)


def _adoption_events(handle: TableHandle, state: TableState) -> tuple[TableEvent, ...]:
    """Return the events that add the files of engines' manifests to the log's own list."""
    from ledger.formats import part

    events: tuple[TableEvent, ...] = part(state.origin.format_name, "promoter").adoption(handle)
    return events


def commit_imported(
    handle: TableHandle, events: tuple[TableEvent, ...], base: int, **commit: Unpack[CommitOptions]
) -> Appended[TableState]:
    """Commit events from the source of an imported table; for importers.

    Args:
        handle: The table.
        events: The events, valid on the version `base`.
        base: The version that they follow.
        commit: See CommitOptions.

    Raises:
        CommitConflictError: Another import committed since `base`.
        InvalidChangeError: The events contradict the table, or the ledger owns it.
        InvalidInputError: They contain a value that no log may hold.
    """
    from ledger.state.iceberg_builder import ImportedEventsIntent

    state = handle.state
    check_recorded_values(
        events, state.origin.source if state.is_mirrored else str(handle.identifier)
    )
    asked = ["CommitImported", base]
    said = tuple(_with_list_file(handle, each) for each in _move_values_to_sidecars(handle, events))
    options: CommitOptions = {**commit, "expect_version": base}
    request = handle.request(asked, options)
    taken = ImportedEventsIntent(said, base)
    return handle.append(taken, request)


def _move_values_to_sidecars(
    handle: TableHandle, events: tuple[TableEvent, ...]
) -> tuple[TableEvent, ...]:
    """Return events whose files hold no values of personal columns; those go to sidecars."""
    head = handle.state
    if not head.keeps_outside:
        return events
    from ledger.files.snapshot_plan import seal_personal_values

    def keep(
        files: Sequence[FileChange], marked: MarkedColumns, after: TableState
    ) -> Sequence[FileChange]:
        return handle.log.personal.columns.keep(
            files, marked, after.spec_by_id, _write_context(handle, head)
        )

    return seal_personal_values(events, head, partial(_event_files, handle, head), keep)


def _event_files(
    handle: TableHandle, head: TableState, event: ListingEvent
) -> tuple[FileChange, ...]:
    """Return an event's files; a removed file keeps the sidecar reference of its addition."""
    files = event_files(handle.log.store, handle.log.layout, event)
    there = handle.live.lookup_live_files_at(
        [each.path for each in files if each.kind == "DELETE"], head
    )
    return tuple(
        msgspec.structs.replace(there[each.path], kind="DELETE") if each.path in there else each
        for each in files
    )


def _with_list_file(handle: TableHandle, event: TableEvent) -> TableEvent:
    """Return an event whose list of files is a separate file if it is long."""
    if not isinstance(event, SnapshotCommitted) or event.changes is not UNSET:
        return event
    files = event_files(handle.log.store, handle.log.layout, event)
    if len(files) <= INLINE_LIMIT:
        return event
    # In the order in which the event's writer has them, such as an engine's.
    beside = _store_long_list(handle, write_changes(files), len(files))
    return msgspec.structs.replace(event, files=NO_FILES, changes=beside)


def check_file_changes(files: Iterable[FileChange]) -> tuple[FileChange, ...]:
    """Return the files as a tuple, after validating that each is a well-typed FileChange.

    Raises:
        InvalidInputError: One is not; the message names it and the field.
    """
    given = tuple(files)
    for index, each in enumerate(given):
        if type(each) is not FileChange:
            raise InvalidInputError(
                f"files[{index}]={excerpt(each)} is no FileChange; write FileChange(path=..., "
                "record_count=..., file_size_in_bytes=...), let add_files read the footers of "
                "Parquet files, or give rows: dicts, an Arrow table or a frame"
            )
    try:
        # Bytes and datetimes would otherwise be converted to strings, and pass the validation.
        plain = msgspec.to_builtins(given, builtin_types=(bytes, bytearray, date, datetime))
        return msgspec.convert(plain, tuple[FileChange, ...])
    except (msgspec.ValidationError, TypeError, ValueError, OverflowError, RecursionError) as error:
        raise InvalidInputError(f"files: {error}") from error


def _start_serving_change(
    protocol: ServingProtocol | None, state: TableState
) -> Sequence[TableChange] | AlreadyCommitted:
    """Return the change that starts serving; or the version that committed it already."""
    from ledger.state.owner import declared_serving_protocol

    owner = state.owner
    if owner.kind == "served" and protocol in {None, owner.protocol}:
        return AlreadyCommitted(owner.since_version)
    # A table that follows a source is rejected later, whatever the protocol.
    is_chosen = protocol is None and owner.kind == "ledger"
    wanted = declared_serving_protocol(state.schema.options) if is_chosen else protocol
    return [table_changes.SetOwner("served", wanted)]


def _stop_serving_change(state: TableState) -> Sequence[TableChange] | AlreadyCommitted:
    """Return the change that stops serving; or the version that committed it already."""
    if state.owner.kind == "ledger":
        return AlreadyCommitted(state.owner.since_version)
    return [table_changes.SetOwner("ledger")]


def _retention_of(branch: Branch) -> BranchRetention:
    return (
        branch.min_snapshots_to_keep,
        branch.max_snapshot_age_millis,
        branch.max_ref_age_millis,
    )


def _needs_adoption(state: TableState) -> bool:
    """Return True if only engines' manifests list the files of a served table."""
    return state.owner.kind == "served" and not state.lists_files
