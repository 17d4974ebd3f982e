"""Changes by Paimon's clients to tables whose data the ledger commits.

They are the library's own: validated, rebased and recorded as those of `Table.alter`. Commits of
data are rejected: the files of such a table are in the ledger's lists, which engines do not write.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

from ledger.decide.changes import CreateTag, DeleteTag
from ledger.events.schema import RemoveOption, SchemaChange, SetOption
from ledger.log.request import Appended, CommitOptions
from ledger.state.table import TableState
from ledger.table_handle import TableHandle
from projections.paimon.materialise import PAIMON
from projections.paimon.served import refuse_ledger_options, refuse_path_option
from projections.paimon.served_origin import not_served_error


def is_native(state: TableState) -> bool:
    """Return whether the ledger commits a table's data, so that its metadata can be changed."""
    return state.owner.kind == "ledger"


def alter_table(
    table: TableHandle, changes: Sequence[SchemaChange], **commit: Unpack[CommitOptions]
) -> Appended[TableState]:
    """Change a table's schema, options or comment.

    Args:
        table: The table.
        changes: The changes, in order; all of them are committed, or none.
        commit: See CommitOptions.

    Raises:
        InvalidInputError: A change sets an option of the ledger, or the location.
        InvalidChangeError: A change is not allowed, or the ledger does not commit the table's data.
        UnsupportedError: The table does not declare Paimon.
        CommitConflictError: A concurrent writer changed the same thing.
        CommitUnknownError: The store did not answer, so the commit may have been made.
    """
    keys = [each.key for each in changes if isinstance(each, SetOption | RemoveOption)]
    refuse_ledger_options(keys)
    refuse_path_option(keys)
    _check_native(table)
    return table.alter(changes, commit)


def create_tag(
    table: TableHandle,
    name: str,
    *,
    snapshot_id: int | None = None,
    time_retained_millis: int | None = None,
    **commit: Unpack[CommitOptions],
) -> Appended[TableState]:
    """Tag a snapshot, the newest if None; errors as of `Table.create_tag` and `alter_table`."""
    _check_native(table)
    change = CreateTag(name, snapshot_id, time_retained_millis)
    return table.commit(["createTag", change], commit, lambda _: [change])


def delete_tag(
    table: TableHandle, name: str, **commit: Unpack[CommitOptions]
) -> Appended[TableState]:
    """Delete a tag; errors as of `Table.delete_tag` and `alter_table`."""
    _check_native(table)
    change = DeleteTag(name)
    return table.commit(["deleteTag", change], commit, lambda _: [change])


def _check_native(table: TableHandle) -> None:
    state = table.state if table.log.head is None else table.log.head.state
    if not is_native(state):
        raise not_served_error(state)
    PAIMON.refuse_undeclared(table, state)
