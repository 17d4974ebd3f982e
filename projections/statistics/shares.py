"""Division of new commits into shares of about equal size.

A share is a run of commits that one task counts. Its size is that of its lists of file changes,
uncompressed, as far as a sample of the commits tells; the number of cores plays no part, since
executors come and go while a job runs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import TypeAlias

from ledger.events import TableEvent
from ledger.events.commit import Commit
from ledger.history.older import TableLog
from ledger.model.errors import LedgerError
from projections.manifest_files.lists import names_lists
from projections.statistics.entries import entry_count
from projections.statistics.snapshot_contents import PlacedSnapshot, SnapshotContents
from projections.statistics.tile_files import NARROWEST_SUMS, Tile, blocks

ENTRY_BYTES = 160
"""Size of an entry in memory, without column statistics, which are not read."""

SHARE_BYTES = 64_000_000
"""Size of the lists in a share: close to a second of one core, and far more than a task's start."""

COMMIT_AS_ENTRIES = 50
"""Time to read a commit without files, in entries."""

LISTS_AS_ENTRIES = 100
"""Time to open a snapshot's manifest list and manifest, in entries."""

Run: TypeAlias = tuple[int, int, int]
"""The first and the last of some commits, and the number of entries of each."""


def sample_entries(log: TableLog, first: int, last: int, most: int) -> list[Run]:
    """Return runs of commits with an estimate of the entries of each commit in them.

    Args:
        log: The table's log.
        first: The first commit.
        last: The last one.
        most: Maximum number of commits to read, evenly spaced; each stands for those up to the
            next.

    Raises:
        DamagedLogError: A commit that was read is damaged.
    """
    stride = max(1, -(-(last + 1 - first) // most))
    versions = range(first, last + 1, stride)
    contents = SnapshotContents(log)
    found = (commit for _, commit in log.commits_at(versions, lambda _: True))
    return [
        (version, min(last, version + stride - 1), _entries_of(contents, commit))
        for version, commit in zip(versions, found, strict=True)
    ]


def divide_into_shares(
    runs: Sequence[Run], share_bytes: int = SHARE_BYTES
) -> tuple[tuple[int, int], ...]:
    """Return the first and last versions of shares.

    Shares end where blocks do. A long one ends where a tile of sums does, so that the process that
    has its rows merges them.

    Args:
        runs: The commits, as `sample_entries` returns them.
        share_bytes: Size of the lists after which a share ends.

    Example:
        >>> wide, narrow = (0, 300, 4_000), (301, 5000, 4)
        >>> divide_into_shares([wide, narrow])
        ((0, 127), (128, 255), (256, 4607), (4608, 5000))
    """
    sizes: dict[Tile, int] = defaultdict(int)
    for first, last, entries in runs:
        for block in blocks(first, last):
            commits = min(last, block.end - 1) + 1 - max(first, block.start)
            sizes[block] += commits * (entries + COMMIT_AS_ENTRIES) * ENTRY_BYTES
    begin, last, size = runs[0][0], runs[-1][1], 0
    found = []
    for block, more in sizes.items():
        size += more
        is_long = block.end - begin >= NARROWEST_SUMS
        if size >= share_bytes and not (is_long and block.end % NARROWEST_SUMS):
            found.append((begin, min(last, block.end - 1)))
            begin, size = block.end, 0
    return (*found, (begin, last)) if begin <= last else tuple(found)


def _entries_of(contents: SnapshotContents, commit: Commit[TableEvent]) -> int:
    return sum(_estimate_entry_count(contents, each) for each in contents.learn(commit))


def _estimate_entry_count(contents: SnapshotContents, placed: PlacedSnapshot) -> int:
    """Return an estimate of a snapshot's number of entries, from its manifest list."""
    if not names_lists(placed.event):
        return entry_count(placed.event)
    try:
        parts = contents.changes(placed) or []
    except LedgerError:
        # The refresh itself raises the error.
        return 0
    return LISTS_AS_ENTRIES + sum(each.count for each in parts)
