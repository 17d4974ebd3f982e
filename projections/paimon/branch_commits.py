"""Commits to a line of a table: the main line, or a branch, whose files then differ.

A change of a branch is decided on the branch's state, as one of the main line is on the table's,
and is recorded as the difference of the branch's files. The table's version is the branch's too:
requests for any of the lines are decided one after another.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Unpack

from msgspec.structs import replace

from ledger.events import TableEvent
from ledger.events.partitions import PartitionsUpdated
from ledger.log.request import Appended, CommitOptions
from ledger.state.stream import AlreadyCommitted
from ledger.state.table import TableState
from ledger.table_handle import TableHandle
from projections.importing.trial import PlanningState
from projections.paimon.branch_files import MAIN, branch_update_event
from projections.paimon.branch_lines import line_state

Decide = Callable[[TableState], tuple[TableEvent, ...] | AlreadyCommitted]


def commit_to_line(
    table: TableHandle,
    branch: str | None,
    change: Sequence[Any],
    decide: Decide,
    **commit: Unpack[CommitOptions],
) -> Appended[TableState]:
    """Commit the events that a function decides on the main line or on a branch.

    Args:
        table: The table.
        branch: The branch; None for the main line.
        change: The change as JSON, to recognise it under its commit id.
        decide: Returns the events on the state of the line; called again after each lost race.
        commit: See CommitOptions.

    Raises:
        NotFoundError: The branch does not exist.
        LedgerError: `decide` rejects the change.
        CommitUnknownError: The store did not answer; the commit may have been committed.
    """
    if branch is None or branch == MAIN:
        return table.commit_events(change, decide, **commit)

    now = table.setting.now_millis()

    def decide_branch(state: TableState) -> tuple[TableEvent, ...] | AlreadyCommitted:
        before = line_state(table, state, branch)
        events = decide(before)
        if isinstance(events, AlreadyCommitted):
            return events
        return branch_events(branch, before, events, now)

    return table.commit_events(line_change(branch, change), decide_branch, **commit)


def line_change(branch: str | None, change: Sequence[Any]) -> Sequence[Any]:
    """Return the JSON of a change of a line."""
    return change if branch is None or branch == MAIN else ["branch", branch, *change]


def branch_events(
    branch: str, before: TableState, events: tuple[TableEvent, ...], now_millis: int
) -> tuple[TableEvent, ...]:
    """Return the events of the table that mean the given ones on a branch.

    Changes of partitions name the branch; all others are those of its files.

    Args:
        branch: The branch.
        before: The branch as a table.
        events: Events on it.
        now_millis: The current time, Unix milliseconds.

    Raises:
        UnsupportedError: The events contradict the branch's state.
    """
    moment = max(now_millis, before.time_millis, before.effective_millis)
    partitions = [each for each in events if isinstance(each, PartitionsUpdated)]
    others = [each for each in events if not isinstance(each, PartitionsUpdated)]
    after = PlanningState(before, moment).after(others, moment, "")
    update = branch_update_event(branch, before, after)
    named = (replace(each, branch_name=branch) for each in partitions)
    return (*named,) if update is None else (update, *named)
