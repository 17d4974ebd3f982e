"""Statistics that were computed and written for a snapshot, so that readers find them.

Source: Iceberg's REST catalog specification, `set-partition-statistics`.
"""

from __future__ import annotations

from ledger.events.base import Record


class PartitionStatisticsSet(Record, frozen=True, tag="setPartitionStatistics", kw_only=True):
    """A snapshot has a file of statistics by partition; it takes the place of an earlier one.

    `statistics_path` is relative to the table's location unless the file lies outside. The file
    goes with its snapshot.
    """

    snapshot_id: int
    statistics_path: str
    file_size_in_bytes: int
