"""Which statistics Iceberg's readers can find: by partition, and of columns once they are analyzed.

What writes them is imported when it is asked to: the help of a command names this.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from attrs import frozen

if TYPE_CHECKING:
    from ledger.table import Table
    from ledger.table_at import TableAt
    from projections.statistics.keeping.kept import Kept
    from projections.statistics.publishing import Published
    from projections.statistics.spark.analyze import Analysis


@frozen
class IcebergPublisher:
    """See `projections.statistics.publishing.Publisher`."""

    what: str = "Iceberg's partition statistics, and sketches of columns with --analyze"
    makes_snapshot: bool = False

    def check(self, table: Table, at: TableAt, analysis: Analysis | None) -> None:
        """Refuse what readers would not find."""
        from projections.iceberg.statistics import partitions

        partitions.check(table, at)
        if analysis is None or partitions.is_partitioned(table):
            partitions.check_partitioned(table)

    def publish(
        self, table: Table, kept: Kept, at: TableAt, analysis: Analysis | None
    ) -> Iterator[Published]:
        """Publish what there is: of a table without partitions, that of columns alone."""
        from projections.iceberg.statistics import distinct, partitions

        if analysis is None or partitions.is_partitioned(table):
            yield partitions.publish(table, kept, at)
        if analysis is not None:
            yield distinct.publish(
                table, at, analysis.snapshot_id, analysis.sketches, analysis.distinct
            )


ICEBERG = IcebergPublisher()
