"""Statistics in the shapes that other APIs send them in, complete and in a fixed order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from ledger.cli.screen import Screen
from ledger.model.messages.excerpt import moment, size
from ledger.table import Table
from projections.dlf import Style, render
from projections.dlf.objects.partitions import ListPartitionsResponse, PartitionStatistics
from projections.statistics.shown.query import (
    Counted,
    Instant,
    paimon_rendering_of,
    partition_deltas,
    partitions,
)

View = Literal["list-partitions", "partition-statistics"]

_UNBUCKETED = -1
"""What commits to Paimon's REST catalog say of a table without buckets."""


def document(view: View, kept: Counted, at: Instant) -> dict[str, Any]:
    """Return a view of an instant as plain JSON.

    `list-partitions` is the DLF metadata API's answer to ListPartitions, of one page.
    `partition-statistics` is what the instant's snapshot adds to each partition, which may be
    negative: what its commit to Paimon's REST catalog says under `statistics`.

    Args:
        view: Which.
        kept: The table's statistics.
        at: The instant.
    """
    if view == "list-partitions":
        listed = partitions(kept, at, paimon_rendering_of(at))
        return render(ListPartitionsResponse(partitions=listed), Style.DLF)
    return {
        "snapshotId": at.state.last_snapshot_id,
        "statistics": [render(each, Style.PAIMON_REST) for each in snapshot_statistics(kept, at)],
    }


def snapshot_statistics(kept: Counted, at: Instant) -> tuple[PartitionStatistics, ...]:
    """Return what a projected snapshot adds to each partition, as a commit of Paimon's says it.

    Example:
        >>> import ledger
        >>> from projections.statistics.keeping.kept import Kept
        >>> lake = ledger.open("memory://snapshot-statistics")
        >>> _ = lake.create_database("shop")
        >>> orders = lake.create_table("shop.orders", ledger.Schema.of({"id": "BIGINT"}))
        >>> file = ledger.FileChange(path="a.parquet", record_count=2, file_size_in_bytes=900)
        >>> at = orders.append([file]).version
        >>> (found,) = snapshot_statistics(Kept.of(orders.log), orders.at(version=at))
        >>> found.record_count, found.file_count, found.total_buckets
        (2, 1, -1)
    """
    return partition_deltas(kept, at, total_buckets=_UNBUCKETED)


def every_snapshot(
    table: Table, kept: Counted
) -> Iterator[tuple[int, tuple[PartitionStatistics, ...]]]:
    """Yield each snapshot that can be read, oldest first, with what it adds to each partition."""
    state = table.state
    for snapshot_id in reversed(state.snapshot_ids):
        yield snapshot_id, snapshot_statistics(kept, table.at(snapshot=snapshot_id))


def print_view(screen: Screen, title: str, shown: dict[str, Any]) -> None:
    """Print a view as a table."""
    screen.line(title, style="bold")
    screen.table(
        ("partition", "rows", "files", "size", "last file"),
        (
            (
                ", ".join(f"{key}={value}" for key, value in each["spec"].items()),
                each["recordCount"],
                each["fileCount"],
                signed_size(each["fileSizeInBytes"]),
                moment(each["lastFileCreationTime"]),
            )
            for each in shown.get("partitions", shown.get("statistics", ()))
        ),
    )


def signed_size(count: int) -> str:
    """Return a number of bytes that came, or went, as people read it."""
    return f"-{size(-count)}" if count < 0 else size(count)
