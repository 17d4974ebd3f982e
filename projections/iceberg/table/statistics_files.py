"""Files of statistics by partition: which of them a table's metadata names, and which go.

They are written by whoever publishes statistics and named by the log, so that metadata stays a
function of the log whatever the bytes of a Parquet file depend on.
"""

from __future__ import annotations

from collections.abc import Iterator

from attrs import Factory, define

from ledger.events import TableEvent
from ledger.events.snapshot_events import PartitionStatisticsSet
from ledger.evolution.state import TableState
from projections.iceberg.manifests.facts import TableFacts
from projections.iceberg.metadata.snapshot import PartitionStatisticsFile
from projections.iceberg.names import Names


def partition_statistics(
    state: TableState, facts: TableFacts
) -> tuple[PartitionStatisticsFile, ...]:
    """Return what a metadata file says of them, by snapshot."""
    return tuple(
        PartitionStatisticsFile(snapshot_id, facts.data_uri(file.path), file.file_size_in_bytes)
        for snapshot_id, file in sorted(state.partition_statistics.items())
    )


@define
class StatisticsFiles:
    """The files that a run's log names, so that those of snapshots that are gone can be removed.

    Attributes:
        names: Of the table's files; files of other names are somebody else's.
    """

    names: Names
    _snapshots: set[int] = Factory(set)

    @classmethod
    def at(cls, names: Names, before: TableState | None) -> StatisticsFiles:
        """Return those that a state names; none before the first commit."""
        return cls(names, set(before.partition_statistics) if before else set())

    def learn(self, event: TableEvent) -> None:
        """Remember a file that an event names."""
        if isinstance(event, PartitionStatisticsSet):
            self._snapshots.add(event.snapshot_id)

    def garbage(self, target: TableState) -> Iterator[str]:
        """Yield the files of snapshots that nobody can read any more."""
        for snapshot_id in sorted(self._snapshots):
            if not target.reachable(snapshot_id):
                yield self.names.partition_statistics(snapshot_id)
