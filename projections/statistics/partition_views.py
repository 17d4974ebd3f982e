"""Partitions as objects of the DLF metadata API and of Paimon's commits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from ledger.table import Table
from projections.dlf import Style, render
from projections.dlf.objects import ListPartitionsResponse, PartitionStatistics
from projections.statistics.partition_rendering import Instant, paimon_rendering_of
from projections.statistics.query import (
    StatisticsSource,
    partition_deltas,
    partitions,
    render_partitions,
)

View = Literal["list-partitions", "partition-statistics"]

_UNBUCKETED = -1
"""Bucket count of a table without buckets in commits to Paimon's REST catalog."""


def document(view: View, kept: StatisticsSource, at: Instant) -> dict[str, Any]:
    """Return a view of an instant as plain JSON.

    `list-partitions` is the DLF metadata API's answer to ListPartitions, of one page.
    `partition-statistics` is the change of each partition by the instant's snapshot, which may be
    negative: the field `statistics` of its commit to Paimon's REST catalog.

    Args:
        view: The view.
        kept: The table's statistics.
        at: The instant.
    """
    if view == "list-partitions":
        rendering = paimon_rendering_of(at)
        listed = render_partitions(partitions(kept, at, rendering), rendering)
        return render(ListPartitionsResponse(partitions=listed), Style.DLF)
    return {
        "snapshotId": at.state.last_snapshot_id,
        "statistics": [render(each, Style.PAIMON_REST) for each in snapshot_statistics(kept, at)],
    }


def snapshot_statistics(kept: StatisticsSource, at: Instant) -> tuple[PartitionStatistics, ...]:
    """Return the change of each partition by a projected snapshot, as in Paimon's commits.

    Example:
        >>> import ledger
        >>> from projections.statistics.tile_rows import Kept
        >>> from ledger.table_handle import handle_of
        >>> lake = ledger.open("memory://snapshot-statistics")
        >>> _ = lake.create_database("shop")
        >>> orders = lake.create_table("shop.orders", ledger.Schema.of({"id": "BIGINT"}))
        >>> file = ledger.FileChange(path="a.parquet", record_count=2, file_size_in_bytes=900)
        >>> at = orders.append([file]).version
        >>> (found,) = snapshot_statistics(Kept.of(handle_of(orders).log), orders.at(version=at))
        >>> found.record_count, found.file_count, found.total_buckets
        (2, 1, -1)
    """
    return partition_deltas(kept, at, total_buckets=_UNBUCKETED)


def every_snapshot(
    table: Table, kept: StatisticsSource
) -> Iterator[tuple[int, tuple[PartitionStatistics, ...]]]:
    """Yield each readable snapshot, oldest first, with its change of each partition."""
    state = table.state
    for snapshot_id in reversed(state.snapshot_ids):
        yield snapshot_id, snapshot_statistics(kept, table.at(snapshot=snapshot_id))
