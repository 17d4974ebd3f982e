"""Which statistics Paimon's readers can find: those that an ANALYZE snapshot names.

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
class PaimonPublisher:
    """See `projections.statistics.publishing.Publisher`."""

    what: str = "Paimon's ANALYZE"
    makes_snapshot: bool = True

    def check(self, table: Table, at: TableAt, analysis: Analysis | None) -> None:
        """Refuse what only an engine could count."""
        from projections.paimon.statistics.analysis import analysable

        del analysis
        analysable(table, at)

    def publish(
        self, table: Table, kept: Kept, at: TableAt, analysis: Analysis | None
    ) -> Iterator[Published]:
        """Publish what files say of columns, and counts that are of the same snapshot."""
        from projections.paimon.statistics.analysis import publish

        del kept
        holds = analysis is not None and analysis.snapshot_id == at.state.last_snapshot_id
        yield publish(table, analysis.distinct if analysis is not None and holds else None)


PAIMON = PaimonPublisher()
