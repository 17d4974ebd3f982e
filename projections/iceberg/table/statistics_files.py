"""Files of statistics: which of them a table's metadata names, and which go.

They are written by whoever publishes statistics and named by the log, so that metadata stays a
function of the log whatever the bytes of a Parquet file depend on.
"""

from __future__ import annotations

from collections.abc import Iterator

from attrs import Factory, define
from msgspec.structs import replace

from ledger.events import TableEvent
from ledger.events.born.iceberg import StatisticsSet
from ledger.events.snapshot_events import PartitionStatisticsSet
from ledger.evolution.state import TableState
from ledger.model.iceberg.snapshot import PartitionStatisticsFile, StatisticsFile
from projections.iceberg.manifests.facts import TableFacts
from projections.iceberg.names import Names


def partition_statistics(
    state: TableState, facts: TableFacts
) -> tuple[PartitionStatisticsFile, ...]:
    """Return what a metadata file says of those by partition, by snapshot."""
    return tuple(
        replace(file, statistics_path=facts.data_uri(file.statistics_path))
        for _, file in sorted(state.partition_statistics.items())
    )


def puffin_files(state: TableState, facts: TableFacts) -> tuple[StatisticsFile, ...]:
    """Return what a metadata file says of those that are Puffin, by snapshot."""
    return tuple(
        replace(file, statistics_path=facts.data_uri(file.statistics_path))
        for _, file in sorted(state.statistics.items())
    )


@define
class StatisticsFiles:
    """The files that a run's log names, so that those that nothing names now can be removed.

    Attributes:
        names: Of the table's files; files of other names are somebody else's.
    """

    names: Names
    _snapshots: set[int] = Factory(set)
    _puffin: dict[str, int] = Factory(dict)

    @classmethod
    def at(cls, names: Names, before: TableState | None) -> StatisticsFiles:
        """Return those that a state names; none before the first commit."""
        found = cls(names)
        if before is not None:
            found._snapshots.update(before.partition_statistics)
            found._puffin.update(
                {each.statistics_path: key for key, each in before.statistics.items()}
            )
        return found

    def learn(self, event: TableEvent) -> None:
        """Remember a file that an event names."""
        if isinstance(event, PartitionStatisticsSet):
            self._snapshots.add(event.partition_statistics.snapshot_id)
        elif isinstance(event, StatisticsSet):
            self._puffin[event.statistics.statistics_path] = event.statistics.snapshot_id

    def garbage(self, target: TableState) -> Iterator[str]:
        """Yield the files of snapshots that nobody can read any more, and those replaced since."""
        for snapshot_id in sorted(self._snapshots):
            if not target.reachable(snapshot_id):
                yield self.names.partition_statistics(snapshot_id)
        named = {each.statistics_path for each in target.statistics.values()}
        for path, snapshot_id in sorted(self._puffin.items()):
            if path not in named and self.names.holds_sketches(path, snapshot_id):
                yield path
