"""Earlier attempts of a commit, whose table was renamed or dropped since.

A client that got no answer sends its commit again. An answer that there is no such table would say
that nothing was committed.
"""

from __future__ import annotations

from ledger.model.snapshot import Snapshot
from ledger.table_handle import TableHandle
from projections.paimon.served_commits import is_committed
from projections.paimon.served_origin import is_engine_table
from projections.rest.paimon.catalog import PaimonCatalog
from projections.rest.requests import RequestError


def was_committed(
    catalog: PaimonCatalog, table_id: str, snapshot: Snapshot, branch: str | None
) -> bool:
    """Return whether a table, whatever its name is now, has the commit of a snapshot.

    Args:
        catalog: The catalog.
        table_id: The table's id.
        snapshot: The snapshot.
        branch: The branch; None for the main line.

    Raises:
        RequestError: It has it, and was dropped since.
    """
    dropped = catalog.state.dropped.get(table_id)
    there = (each for each in catalog.state.tables.values() if each.table_id == table_id)
    entry = next(there, None) if dropped is None else dropped.entry
    if entry is None:
        return False
    table = TableHandle(entry.identifier, entry.path, catalog.handle.setting)
    state = table.log.refresh()
    if state is None or not is_engine_table(state):
        return False
    if not is_committed(table, state, snapshot, branch):
        return False
    if dropped is not None or state.dropped:
        raise RequestError(
            500,
            f"an earlier attempt was committed to table {entry.identifier}, which was dropped "
            "since",
        )
    return True
