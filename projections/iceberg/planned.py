"""What a change of a table's schema or layout means for Iceberg: its files, and its readers."""

from __future__ import annotations

from attrs import frozen

from ledger.evolution.state import TableState
from projections.iceberg import readers
from projections.iceberg.names import Names


@frozen
class Planned:
    """What `lakeledger plan` shows of Iceberg; called, it gives the files of a change."""

    def __call__(self, before: TableState, after: TableState) -> tuple[str, ...]:
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

    def warnings(self, before: TableState, after: TableState) -> tuple[str, ...]:
        """Return what readers that people use get wrong of what a change brings.

        Args:
            before: The table before the change.
            after: The table after it.
        """
        return readers.warnings(before, after)


planned = Planned()
