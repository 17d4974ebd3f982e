"""Opening: where the statistics of a table begin whose older manifest lists are gone.

An engine that expires snapshots takes their manifest lists away. What they did can no longer be
read, but the first snapshot after them still says what it holds: it opens the account with that
balance, and snapshots before it are not counted one by one.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from ledger.events.snapshot_events import RolledBack
from ledger.evolution.state import TableState
from ledger.history.older import TableLog
from ledger.log.travel import head_state
from ledger.model.errors import DamagedLogError
from projections.manifest_files.lists import names_lists
from projections.statistics.reading.snapshot_contents import (
    PlacedSnapshot,
    SnapshotContents,
    is_readable,
)


class Opening(msgspec.Struct, frozen=True, rename="camel"):
    """The snapshot that stands for all before it, and its commit."""

    version: int
    snapshot_id: int


def opening_of(log: TableLog, first: int, counted: int) -> Opening | None:
    """Return where statistics begin; None where everything can be read, as in most tables.

    Looks at the table's commits only if it has expired snapshots that are not counted yet.

    Args:
        log: The table's.
        first: The first version that is not counted yet.
        counted: The newest snapshot before it.

    Raises:
        DamagedLogError: A manifest list of an expired snapshot is damaged; or one is gone, and no
            later snapshot can be read whole.
    """
    head = log.head.state if log.head else log.refresh()
    if head is None or head.earliest_snapshot_id <= counted + 1:
        return None
    contents = SnapshotContents(log)
    doubtful = list(_doubtful(log, contents, head, first))
    while doubtful:
        last = doubtful.pop()
        if not is_readable(contents, last, whole=False):
            return _after(log, contents, last)
    return None


def _doubtful(
    log: TableLog, contents: SnapshotContents, head: TableState, first: int
) -> Iterator[PlacedSnapshot]:
    """Yield the snapshots whose changes may be gone with expired manifest lists, in order."""
    earliest = head.earliest_snapshot_id
    for read in log.commits(first, head.version):
        for placed in contents.learn(read.commit):
            event = placed.event
            if isinstance(event, RolledBack):
                if min(placed.snapshot_id - 1, event.target_snapshot_id) < earliest:
                    yield placed
            elif placed.snapshot_id < earliest and names_lists(event):
                yield placed


def _after(log: TableLog, contents: SnapshotContents, lost: PlacedSnapshot) -> Opening:
    for snapshot_id in range(lost.snapshot_id, head_state(log).last_snapshot_id + 1):
        placed = contents.at(snapshot_id)
        if is_readable(contents, placed, whole=True):
            return Opening(placed.version, snapshot_id)
    key = log.layout.commit(lost.version)
    raise DamagedLogError(
        f"the manifest lists of snapshot {lost.snapshot_id} are gone, and no snapshot after it can "
        "be read whole without them; let the table's engine commit once more, or restore them",
        key,
    )
