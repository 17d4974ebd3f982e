"""A table's own version 0, which whoever misses it in the table's stream writes."""

from __future__ import annotations

from ledger.events import TableEvent
from ledger.events.catalog_events import CatalogEvent
from ledger.events.commit import FORMAT, Commit, Transaction
from ledger.events.table_events import TableCreated


def first_commit(
    catalog_commit: Commit[CatalogEvent],
    event: TableCreated,
    transaction: Transaction[CatalogEvent],
) -> Commit[TableEvent]:
    """Return version 0 of the table's stream, a pure function of the commit that created it.

    Every writer that finds the file missing so writes the same bytes.

    Args:
        catalog_commit: The catalog's commit that created the table.
        event: The creation.
        transaction: The transaction of that commit which holds `event`.
    """
    born: Transaction[TableEvent] = Transaction(
        id=transaction.id,
        author=transaction.author,
        message=transaction.message,
        properties=transaction.properties,
        outside=transaction.outside,
        asked=transaction.asked,
        effective_time_millis=transaction.effective_time_millis,
        events=(event,),
    )
    return Commit(
        format=FORMAT,
        version=0,
        time_millis=catalog_commit.time_millis,
        transactions=(born,),
    )
