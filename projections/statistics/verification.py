"""Verification of the statistics, for `lakeledger verify`; see `ledger.cli.commands.verify`."""

from __future__ import annotations

import projections.statistics.materialise as statistics_files
import projections.statistics.tile_rows as positions
from ledger.table_handle import TableHandle
from projections.materialising import Difference, refuse_position_beyond_log


def verify(table: TableHandle) -> Difference:
    """Recompute all kept statistics, and return the differences.

    Raises:
        DamagedLogError: Their position is a version that the log does not have.
    """
    layout = table.log.layout
    refuse_position_beyond_log(
        table, positions.stated(table.log.store, layout), positions.key(layout)
    )
    return _below_location(statistics_files.verify(table.log))


def rebuild(table: TableHandle) -> Difference:
    """Restore missing or changed statistics, and return the differences."""
    return _below_location(statistics_files.rebuild(table.log))


def _below_location(found: Difference) -> Difference:
    def paths(names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(f"_ledger/statistics/{each}" for each in names)

    return Difference(paths(found.missing), paths(found.changed), paths(found.foreign))
