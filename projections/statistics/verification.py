"""What `lakeledger verify` asks of the statistics; see `ledger.cli.verifications`."""

from __future__ import annotations

from ledger.table import Table
from projections.materialisation import Difference
from projections.statistics import materialise


def verify(table: Table) -> Difference:
    """Compute everything that is kept again, in full, and say where it differs."""
    return _below_location(materialise.verify(table.log))


def rebuild(table: Table) -> Difference:
    """Restore what is missing or changed."""
    return _below_location(materialise.rebuild(table.log))


def _below_location(found: Difference) -> Difference:
    def paths(names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(f"_ledger/statistics/{each}" for each in names)

    return Difference(paths(found.missing), paths(found.changed), paths(found.foreign))
