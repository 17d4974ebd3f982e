"""Lines of a table: the main line and its branches, each as a table of its own."""

from __future__ import annotations

from weakref import WeakKeyDictionary

from ledger.state.table import TableState
from ledger.table_handle import TableHandle
from projections.paimon.branch_files import (
    MAIN,
    BranchContents,
    branch_state,
    branch_texts,
    read_branch,
)

_read: WeakKeyDictionary[TableHandle, dict[str, BranchContents]] = WeakKeyDictionary()
"""The parsed contents of each branch that were read last."""


def line_state(table: TableHandle, state: TableState, branch: str | None) -> TableState:
    """Return a line of a table as a table of its own; parses only files that are new.

    Args:
        table: The table.
        state: Its state.
        branch: The branch; None for the main line.

    Raises:
        NotFoundError: The branch does not exist.
        InvalidInputError: A file of the branch is damaged.
    """
    if branch is None or branch == MAIN:
        return state
    branch_texts(state, branch)
    known = _read.setdefault(table, {})
    contents = known[branch] = read_branch(state, branch, known.get(branch))
    return branch_state(state, branch, contents)
