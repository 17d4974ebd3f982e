"""Live files of a table as Arrow tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from ledger.events import TableEvent
from ledger.files.change_lists import to_table
from ledger.files.live import LiveFiles
from ledger.files.runs import Net, Placed, Runs
from ledger.log.key_index import tiles
from ledger.log.layout import CHECKPOINT_INTERVAL
from ledger.log.stream_log import StreamLog
from ledger.state.table import TableState

if TYPE_CHECKING:
    import pyarrow as pa


def change_tables(
    log: StreamLog[TableState, TableEvent],
    state: TableState,
    columns: Sequence[str] | None = None,
) -> Iterator[pa.Table]:
    """Yield the net file changes up to a state, in the form of `change_table`, newest first.

    Args:
        log: The table's stream.
        state: Up to which one.
        columns: What is needed of them; a table may have more. All, without.

    Raises:
        DamagedLogError: A commit or a list of file changes is missing or damaged.
    """
    live, version = LiveFiles(log), state.version
    branch = state.seen_branch
    if branch is not None:
        yield _table_of(live.branch_changes(branch, version))
        yield from change_tables(log, live.base_of(state), columns)
        return
    # Beside later snapshots in one commit, the interval that it ends is not the state's.
    whole = version - live.goes_on_after(state)
    boundary = whole - whole % CHECKPOINT_INTERVAL
    tail = live.snapshot_changes(
        1, state.last_snapshot_id, boundary + 1 if boundary else 0, version
    )
    yield _table_of(tail)
    runs = Runs(log.store, log.layout)
    for span in tiles(boundary):
        found = runs.tables(*span, columns)
        yield from [_table_of(live.built(*span))] if found is None else found


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
        # Mostly all are, and a million rows take longer to copy than to plan.
        added = table if pc.all(is_added).as_py() else table.filter(is_added)
        if len(gone):
            added = added.filter(pc.invert(pc.is_in(added["path"], value_set=gone)))
        removed = table["path"].filter(pc.invert(is_added))
        gone = pa.concat_arrays([gone, *removed.chunks])
        yield added


def _table_of(changes: Iterable[Placed]) -> pa.Table:
    return to_table([each.change for each in Net(changes).rows()])
