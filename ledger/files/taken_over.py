"""File metadata of imported tables, without the values of personal columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress

import msgspec
from msgspec import UNSET

from ledger.decide.personal_columns import Marked
from ledger.decide.snapshots import readable_files
from ledger.events import TableEvent
from ledger.events.commit import Outside, Transaction
from ledger.events.snapshots import NO_FILES, SnapshotCommitted
from ledger.model.errors import InvalidChangeError
from ledger.model.file_change import FileChange
from ledger.state.table import TableState
from ledger.state.table_builder import TableBuilder

Keep = Callable[[Sequence[FileChange], Marked, TableState], Sequence[FileChange]]
"""Writes the values of marked columns of files that come; returns them as lines may hold them."""


def sealed(
    events: tuple[TableEvent, ...],
    head: TableState,
    listed: Callable[[SnapshotCommitted], Sequence[FileChange]],
    keep: Keep,
) -> tuple[TableEvent, ...]:
    """Return events whose lists of files hold no value of a column that is personal.

    What is marked before or after them is, since one transaction may mark a column and bring files.

    Args:
        events: Of one transaction.
        head: The state before them.
        listed: Returns an event's files.
        keep: Keeps their values.
    """
    if not any(isinstance(each, SnapshotCommitted) for each in events):
        return events
    after = head
    with suppress(InvalidChangeError):
        # What contradicts the table is refused by whoever appends it.
        after = _after(head, events)
    marked = _union(Marked.of(head.schema), Marked.of(after.schema))
    if marked is None:
        return events
    return tuple(
        _sealed(each, keep, listed(each), marked, after)
        if isinstance(each, SnapshotCommitted)
        else each
        for each in events
    )


def _sealed(
    event: SnapshotCommitted,
    keep: Keep,
    files: Sequence[FileChange],
    marked: Marked,
    after: TableState,
) -> SnapshotCommitted:
    come = iter(keep([each for each in files if each.kind == "ADD"], marked, after))
    changes = tuple(next(come) if each.kind == "ADD" else each for each in files)
    body = msgspec.Raw(readable_files(changes)) if changes else NO_FILES
    return msgspec.structs.replace(event, files=body, changes=UNSET)


def _after(head: TableState, events: tuple[TableEvent, ...]) -> TableState:
    builder = TableBuilder(head)
    builder.begin(head.version + 1, head.time_millis)
    builder.add(Transaction(id="", asked="", events=events, outside=Outside()))
    return builder.freeze()


def _union(one: Marked | None, other: Marked | None) -> Marked | None:
    if one is None or other is None:
        return one or other
    return Marked(one.personal | other.personal, other.known)
