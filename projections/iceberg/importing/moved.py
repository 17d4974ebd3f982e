"""How far a list, or the snapshots, of one metadata file have moved on in a later one.

Most of a long history stands in both just so, often as the very same objects, which are compared
without looking into them: what this takes grows with what is new.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

from attrs import frozen

from ledger.model.iceberg.snapshot import IcebergSnapshot
from projections.iceberg.metadata.table import TableMetadata

T = TypeVar("T")


def beyond(before: tuple[T, ...], after: tuple[T, ...]) -> tuple[T, ...] | None:
    """Return what a list has after all that was there before; None where it begins otherwise.

    Example:
        >>> beyond((1, 2), (1, 2, 3)), beyond((1, 2), (2, 3))
        ((3,), None)
    """
    count = len(before)
    return after[count:] if after[:count] == before else None


def moved_on(before: tuple[Any, ...], after: tuple[Any, ...]) -> tuple[int, tuple[Any, ...]]:
    """Return how many of the oldest entries are gone, and the new ones; all of them, if need be.

    Example:
        >>> moved_on((1, 2, 3), (2, 3, 4)), moved_on((1, 2), (5,))
        ((1, (4,)), (2, (5,)))
    """
    dropped = 0
    while after and dropped < len(before):
        try:
            dropped = before.index(after[0], dropped)
        except ValueError:
            break
        new = beyond(before[dropped:], after)
        if new is not None:
            return dropped, new
        dropped += 1
    return len(before), after


@frozen
class SnapshotsMoved:
    """What became of a table's snapshots.

    Attributes:
        new: Those that came, in the later file's order.
        gone: The ids of those that are there no more.
        rewritten: The ids of those that say something else.
    """

    new: tuple[IcebergSnapshot, ...]
    gone: tuple[int, ...] = ()
    rewritten: tuple[int, ...] = ()

    def as_in(self, order: Iterable[int]) -> SnapshotsMoved:
        """Return the same with the ids of what was there before in an order."""
        if not self.gone and not self.rewritten:
            return self
        gone, rewritten = set(self.gone), set(self.rewritten)
        ids = tuple(order)
        return SnapshotsMoved(
            self.new,
            tuple(each for each in ids if each in gone),
            tuple(each for each in ids if each in rewritten),
        )


def snapshots_moved(before: TableMetadata, after: TableMetadata) -> SnapshotsMoved:
    """Return what became of the snapshots from one file to a later one."""
    new = beyond(before.snapshots, after.snapshots)
    if new is not None:
        return SnapshotsMoved(new)
    had, has = before.snapshots_by_id, after.snapshots_by_id
    return SnapshotsMoved(
        new=tuple(each for each in after.snapshots if each.snapshot_id not in had),
        gone=tuple(each for each in had if each not in has),
        rewritten=tuple(
            key
            for key, each in had.items()
            if (now := has.get(key, each)) is not each and now != each
        ),
    )
