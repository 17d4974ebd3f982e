"""Rows as snapshots: written as data files of the table, then committed once.

Rows are a stream that is read once, so a request is identified by its commit id and its operation,
not by its rows: a retry under the same id returns the first commit and reads the first row at most.
Files of a call that committed nothing are removed, best effort; those of a process that died, or of
a commit whose outcome is unknown, stay, and `lakeledger maintain` removes them if no commit names
them.

Files carry the ids of the schema and the partition spec that they were written with. A schema
change that is committed meanwhile does not matter to them: readers match columns by field id.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from attrs import evolve

from ledger.decide.changes import Isolation
from ledger.files.change_lists import commit_files
from ledger.files.snapshot_plan import SnapshotPlan, partition_filter
from ledger.log.request import Appended, CommitOptions, fresh_id
from ledger.model.errors import (
    CommitUnknownError,
    InvalidInputError,
    LedgerError,
    TableDroppedError,
    UnsupportedError,
)
from ledger.model.file_change import FileChange, PartitionValue
from ledger.model.messages import excerpt
from ledger.rows.attempts import WriteAttempt
from ledger.rows.row_columns import ColumnMatch
from ledger.rows.row_files import RowTarget, remove_files, write_rows
from ledger.rows.row_input import GivenData, RowInput, open_data
from ledger.state.table import TableState
from ledger.table_handle import TableHandle
from ledger.table_writes import commit_snapshot

_FOR_CREATION: Final = frozenset({"commit_id", "asked", "expect_version"})
"""Options of a creation that do not apply to the rows appended after it."""


def append(
    handle: TableHandle, data: GivenData, options: CommitOptions, *, branch: str | None = None
) -> Appended[TableState]:
    """Commit data files, or rows as new data files, to main or a branch; see `Table.append`."""
    given, plan = open_data(data), SnapshotPlan("APPEND")
    if isinstance(given, tuple):
        return commit_snapshot(handle, evolve(plan, files=given), options, branch=branch)
    return commit_rows(handle, given, plan, options, branch=branch)


def overwrite(
    handle: TableHandle,
    data: GivenData,
    options: CommitOptions,
    *,
    where: Mapping[str, PartitionValue] | None,
    isolation: Isolation,
    branch: str | None = None,
) -> Appended[TableState]:
    """Replace files by data files, or by rows as new data files; see `Table.overwrite`."""
    given = open_data(data)
    plan = SnapshotPlan("OVERWRITE", where=where or {}, isolation=isolation)
    if isinstance(given, tuple):
        return commit_snapshot(handle, evolve(plan, files=given), options, branch=branch)
    return commit_rows(handle, given, plan, options, branch=branch)


def commit_rows(
    handle: TableHandle,
    rows: RowInput,
    plan: SnapshotPlan,
    options: CommitOptions,
    *,
    branch: str | None = None,
) -> Appended[TableState]:
    """Write rows as data files, and commit them as a snapshot.

    Args:
        handle: The table.
        rows: The rows.
        plan: The snapshot, without files.
        options: See CommitOptions.
        branch: The branch; None for main.

    Raises:
        InvalidInputError: A column or a value does not fit the table, or a row is outside of the
            partitions to replace; nothing was committed.
        UnsupportedError: The table's rows are merged by key, or engines write its files.
        NotFoundError: The branch does not exist, or the table was dropped.
        CommitUnknownError: The store did not answer; the rows may have been committed.
    """
    state = handle.state
    asked = options.setdefault("asked", _content(plan, state, branch))
    committed = handle.appender.commit_lookup.before(handle.request(asked, options))
    if committed is not None:
        return committed
    _refuse_before_writing(handle, state, plan, branch)
    attempt = WriteAttempt.of_handle(handle, fresh_id())
    target = RowTarget.of(handle, attempt.folder)
    if plan.where == {} and branch is None:
        target = target.for_all_rows()
    if rows.schema is not None:
        ColumnMatch.of(rows.schema, target.schema, target.table)
    batches = rows.read(target.schema, target.table)
    files = write_rows(target, attempt.registered(batches))
    with _removal_if_rejected(target, files):
        _refuse_outside(plan, state, target, files)
        done = commit_snapshot(handle, evolve(plan, files=files), options, branch=branch)
    if done.repeated:
        # Another call with this commit id was first.
        log = handle.log
        named = {
            each.path for each in commit_files(log.store, log.layout, log.commit_at(done.version))
        }
        remove_files(target, [each for each in files if each.path not in named])
    return done


def append_to_created(handle: TableHandle, rows: RowInput, creation: CommitOptions) -> None:
    """Append rows to the table that a call created for them.

    Args:
        handle: The table.
        rows: The rows.
        creation: Options of the creation. The rows are committed with the author, message and
            properties, and under a commit id that is derived from that of the creation.

    Raises:
        LedgerError: As of `commit_rows`; the message says that the table exists.
    """
    options: Any = {key: each for key, each in creation.items() if key not in _FOR_CREATION}
    if "commit_id" in creation:
        options["commit_id"] = f"{creation['commit_id']}-rows"
    retry = "repeat the call with the same commit_id" if "commit_id" in creation else "append to it"
    said = f"the table {handle.identifier} was created before its rows: to retry, {retry}"
    try:
        commit_rows(handle, rows, SnapshotPlan("APPEND"), options)
    except LedgerError as error:
        error.message = f"{error.message}; {said}"
        error.args = (error.message, *error.args[1:])
        raise
    except Exception as error:
        error.add_note(said)
        raise


def refuse_other_writers(state: TableState, name: str) -> None:
    """Reject tables whose files the ledger does not add.

    Raises:
        UnsupportedError: Rows are merged by key, or engines write the files.
    """
    if state.schema.primary_keys:
        raise UnsupportedError(
            f"{name} has the primary key {list(state.schema.primary_keys)}: its files are merged "
            "by key, and this writer only adds files; write with an engine of the format, or drop "
            "the key"
        )
    owner = state.owner
    if owner.kind == "mirrored":
        raise UnsupportedError(
            f"{name} follows {state.origin.source}, whose engine writes its files; write there and "
            "import what is new, or promote the table (lakeledger promote)"
        )
    if owner.kind == "served":
        raise UnsupportedError(
            f"{name} is served through the {owner.protocol} protocol, and engines write its files; "
            "write through the server, or take the table back first (lakeledger serve-table --back)"
        )


def _content(plan: SnapshotPlan, state: TableState, branch: str | None) -> list[object]:
    """Return the content of a request by which a retry is recognised."""
    on = [] if branch is None else ["branch", branch]
    if plan.where is None:
        return ["appendRows", *on]
    # In an erasable ledger a digest of the values would allow guessing them.
    where = sorted(plan.where) if state.keeps_outside else plan.where
    return ["overwriteRows", where, plan.isolation, *on]


def _refuse_before_writing(
    handle: TableHandle, state: TableState, plan: SnapshotPlan, branch: str | None
) -> None:
    name = str(handle.identifier)
    if state.dropped:
        raise TableDroppedError(f"{name} was dropped; open its name again to see its state")
    refuse_other_writers(state, name)
    if branch is not None:
        state.branch(branch)
    if plan.where is not None:
        partition_filter(state, plan.where)


def _refuse_outside(
    plan: SnapshotPlan, state: TableState, target: RowTarget, files: Sequence[FileChange]
) -> None:
    """Reject rows outside of the partitions that they replace."""
    if not plan.where:
        return
    where = partition_filter(state, plan.where)
    for each in files:
        if where.matches(each, target.spec) is False:
            names = [field.name for field in target.spec.fields]
            values = dict(zip(names, each.partition, strict=True))
            raise InvalidInputError(
                f"{each.record_count} of the rows for {target.table} are of the partition "
                f"{excerpt(values)}, which is outside of where={excerpt(dict(plan.where))}; "
                "overwrite replaces the named partitions only: leave these rows out, or append "
                "them. Nothing was committed"
            )


@contextmanager
def _removal_if_rejected(target: RowTarget, files: Sequence[FileChange]) -> Iterator[None]:
    """Remove files if the body raises an error that says that nothing was committed."""
    try:
        yield
    except CommitUnknownError:
        raise
    except LedgerError:
        remove_files(target, files)
        raise
