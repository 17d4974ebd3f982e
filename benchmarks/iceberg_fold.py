"""Time to fold the events of an Iceberg table, for a short history and a long one.

`iceberg_fold.py [SNAPSHOTS]` folds the history of a promoted table with a tenth of the snapshots
and with all of them: all are committed, then all but the last are removed one by one. It prints the
ratio of the medians of five runs, which is 10 where the fold is linear.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Iterator
from typing import Final

from ledger.events import TableEvent
from ledger.events.commit import Commit, Transaction
from ledger.events.imported import ImportedIcebergTable, SnapshotsRemoved
from ledger.events.snapshots import SnapshotCommitted
from ledger.events.table import SchemaRecord, TableCreated, TableName, TablePromoted
from ledger.model.types.wire import FieldObject
from ledger.state.table_builder import TableBuilder

RUNS: Final = 5


def life(snapshots: int) -> Iterator[tuple[TableEvent, ...]]:
    """Yield the events of a promoted table, commit by commit."""
    yield (
        TableCreated(
            identifier=TableName("db", "t"),
            table_id="t",
            path="db.db/t",
            schema=SchemaRecord((FieldObject(1, "id", "BIGINT NOT NULL"),), highest_field_id=1),
            field_id_policy="iceberg",
            origin=ImportedIcebergTable(
                source="file:/t", location="file:/t", format_version=2, schema_id=0
            ),
        ),
    )
    yield (TablePromoted(source="file:/t", last_snapshot_id=0),)
    for number in range(1, snapshots + 1):
        committed = SnapshotCommitted(
            snapshot_id=number,
            schema_id=0,
            commit_user="u",
            commit_kind="APPEND",
            total_record_count=number,
            delta_record_count=1,
            summary={"operation": "append", "total-records": str(number)},
        )
        yield (committed,)
    for number in range(1, snapshots):
        yield (SnapshotsRemoved((number,)),)


def folded(snapshots: int) -> TableBuilder:
    """Return the builder after a history of some snapshots."""
    builder = TableBuilder()
    for version, events in enumerate(life(snapshots)):
        transaction = Transaction[TableEvent](asked="", id=str(version), events=events)
        builder.commit(
            Commit(format=3, version=version, time_millis=version, transactions=(transaction,))
        )
    return builder


def median_seconds(snapshots: int) -> float:
    """Return the median of the processor time of some runs of a history."""
    took = []
    for _ in range(RUNS):
        begun = time.process_time()
        folded(snapshots)
        took.append(time.process_time() - begun)
    return statistics.median(took)


def main(snapshots: int) -> None:
    """Print the ratio of the times for ten times the snapshots."""
    short, long = median_seconds(snapshots // 10), median_seconds(snapshots)
    print(f"{snapshots // 10}: {short:.3f} s, {snapshots}: {long:.3f} s, {long / short:.1f}x")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000)
