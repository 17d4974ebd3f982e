"""The first read of a table's partitions takes the same work for each commit of its log."""

from __future__ import annotations

import pytest

from ledger.events import PartitionChange, PartitionsUpdated, SnapshotsExpired, TableEvent
from projections.paimon.partitions import PartitionIndex
from tests.projections.paimon.serving.partition_model import KEYS, commit_of, snapshot, spec_of

COMMITS = 500


class CountedId(int):
    """An id of a snapshot that counts how often it is compared."""

    compared = 0

    def __lt__(self, other: int) -> bool:
        CountedId.compared += 1
        return int(self) < int(other)

    def __gt__(self, other: int) -> bool:
        CountedId.compared += 1
        return int(self) > int(other)


def comparisons(commits: int, *, expires: bool) -> int:
    """Return how often ids are compared while a log is folded that keeps half of its snapshots."""
    CountedId.compared = 0
    index = PartitionIndex(KEYS)
    change = PartitionChange(spec=spec_of(("1", "2")), records=1, size_in_bytes=1, files=1)
    for number in range(1, commits + 1):
        earliest = SnapshotsExpired(earliest_snapshot_id=max(1, number - commits // 2))
        events: tuple[TableEvent, ...] = (
            *((earliest,) if expires else ()),
            snapshot(CountedId(number)),
            PartitionsUpdated(snapshot_id=number, partitions=(change,)),
        )
        index.apply(commit_of(number, *events), lambda event: event.partitions, commit_of)
    assert index.totals.records == commits
    return CountedId.compared


@pytest.mark.parametrize("expires", [False, True])
def test_the_cost_of_a_commit_does_not_depend_on_the_snapshots(expires: bool) -> None:  # noqa: FBT001
    assert comparisons(4 * COMMITS, expires=expires) <= 5 * comparisons(COMMITS, expires=expires)
