"""Which of Iceberg's files a change of a table's schema or layout brings."""

from __future__ import annotations

from ledger.evolution.state import TableState
from projections.iceberg.names import Names


def planned(before: TableState, after: TableState) -> tuple[str, ...]:
    """Return the files that projecting a change writes, relative to the table's location.

    Only metadata: manifests and lists change with snapshots.

    Args:
        before: The table before the change.
        after: The table after it, with the same snapshots and tags.
    """
    if after.version == before.version:
        return ()
    names = Names(after.table_id)
    return (names.metadata(after.version), names.hadoop(after.version))
