"""Which of Paimon's files a change of a table's schema or layout brings."""

from __future__ import annotations

from ledger.evolution.state import TableState
from projections.paimon.paths import schema_path


def planned(before: TableState, after: TableState) -> tuple[str, ...]:
    """Return the files that projecting a change writes, relative to the table's location.

    Only a schema file: layouts other than the partition keys are nothing to Paimon.

    Args:
        before: The table before the change.
        after: The table after it, with the same snapshots and tags.
    """
    return tuple(schema_path(each) for each in range(before.schema.id + 1, after.schema.id + 1))
