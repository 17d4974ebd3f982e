"""From statistics that are to be set for a snapshot to the fact."""

from __future__ import annotations

from ledger.events.statistics_events import PartitionStatisticsSet
from ledger.evolution.bounds import check_numbers
from ledger.evolution.decide_snapshot import check_path, check_reachable
from ledger.evolution.state import TableState
from ledger.evolution.table_changes import SetPartitionStatistics
from ledger.model.statistics_file import StatisticsFile


def decide_statistics(
    state: TableState, change: SetPartitionStatistics
) -> PartitionStatisticsSet | None:
    """Return the fact that a snapshot has a statistics file, or None when it has that one already.

    Raises:
        InvalidChangeError: The path leaves the table's location, or a number its bounds.
        NotFoundError: The snapshot does not exist, or was expired.
    """
    check_path(change.path)
    check_reachable(state, change.snapshot_id)
    check_numbers(change, f"file {change.path}")
    wanted = StatisticsFile(change.path, change.file_size_in_bytes)
    if state.partition_statistics.get(change.snapshot_id) == wanted:
        return None
    return PartitionStatisticsSet(
        snapshot_id=change.snapshot_id,
        statistics_path=change.path,
        file_size_in_bytes=change.file_size_in_bytes,
    )
