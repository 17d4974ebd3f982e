"""A table's own version 0, which whoever misses it in the table's stream writes."""

from __future__ import annotations

from msgspec import UNSET

from ledger.events import TableEvent
from ledger.events.catalog_events import CatalogEvent
from ledger.events.commit import Commit, Transaction
from ledger.events.formats import needed_format
from ledger.events.table_events import TableCreated
from ledger.model.schema import Schema
from ledger.model.types.wire import field_from_wire


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
        asked=transaction.asked,
        effective_time_millis=transaction.effective_time_millis,
        events=(event,),
    )
    return Commit(
        format=needed_format(born.events),
        version=0,
        time_millis=catalog_commit.time_millis,
        transactions=(born,),
    )


def first_schema(event: TableCreated) -> Schema:
    """Return the schema that a creation recorded."""
    record = event.schema
    policy = event.field_id_policy
    return Schema(
        fields=tuple(field_from_wire(each) for each in record.fields),
        partition_keys=record.partition_keys,
        primary_keys=record.primary_keys,
        options=record.options,
        comment=record.comment,
        highest_field_id=record.highest_field_id,
        identifier_field_ids=record.identifier_field_ids,
        field_id_policy="paimon" if policy is UNSET else policy,
    )
