"""A table's file changes as Arrow tables, and which of their rows are live.

A million files are 60 MB so, and gigabytes as objects.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from ledger.events import TableEvent
from ledger.evolution.state import TableState
from ledger.files.change_table import parsed, to_table
from ledger.files.live import LiveFiles
from ledger.files.runs import Net, Placed
from ledger.log.layout import CHECKPOINT_INTERVAL
from ledger.log.lookup import tiles
from ledger.log.stream_log import StreamLog
from ledger.model.errors import UpgradeRequiredError

if TYPE_CHECKING:
    import pyarrow as pa


def change_tables(log: StreamLog[TableState, TableEvent], state: TableState) -> Iterator[pa.Table]:
    """Yield the net file changes up to a state, in the form of `change_table`, newest first.

    Raises:
        DamagedLogError: A commit or a list of file changes is missing or damaged.
    """
    live, version = LiveFiles(log), state.version
    # Beside later snapshots in one commit, the interval that it ends is not the state's.
    whole = version - live.goes_on_after(state)
    boundary = whole - whole % CHECKPOINT_INTERVAL
    tail = live.snapshot_changes(
        1, state.last_snapshot_id, boundary + 1 if boundary else 0, version
    )
    yield _table_of(tail)
    for first, last in tiles(boundary):
        found = _kept(log, first, last)
        yield _rebuilt(log, first, last) if found is None else found


def _rebuilt(log: StreamLog[TableState, TableEvent], first: int, last: int) -> pa.Table:
    return _table_of(LiveFiles(log).changes(first, last))


def _table_of(changes: Iterable[Placed]) -> pa.Table:
    return to_table([each.change for each in Net(changes).rows()])


def _kept(log: StreamLog[TableState, TableEvent], first: int, last: int) -> pa.Table | None:
    """Return an interval's run; None when there is none to use, as for one without rows."""
    key = log.layout.file_run(first, last)
    body, check = log.store.read(key), log.store.read(f"{key}.sha256")
    if body is None or check != hashlib.sha256(body).hexdigest().encode():
        return None
    try:
        return parsed(body)
    except (ValueError, UpgradeRequiredError):
        return None


def live_tables(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Yield the rows of the files that are live at the end.

    Args:
        tables: Net file changes, newest first.

    Example:
        >>> from ledger.model.file_change import FileChange
        >>> a, b = (FileChange(path=each, record_count=1, file_size_in_bytes=1) for each in "ab")
        >>> gone = FileChange(kind="DELETE", path="a", record_count=1, file_size_in_bytes=1)
        >>> live = live_tables([to_table([gone]), to_table([a, b])])
        >>> [each["path"].to_pylist() for each in live]
        [[], ['b']]
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    # A file is removed before it is added again: its newest addition is the first one met.
    gone = pa.array([], pa.string())
    for table in tables:
        is_added = pc.equal(table["kind"], "ADD")
        added = table.filter(is_added)
        if len(gone):
            added = added.filter(pc.invert(pc.is_in(added["path"], value_set=gone)))
        removed = table["path"].filter(pc.invert(is_added))
        gone = pa.concat_arrays([gone, *removed.chunks])
        yield added
