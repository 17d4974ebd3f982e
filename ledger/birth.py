"""The seams between the catalog's stream and a table's: its birth, and a drop left half done."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from ledger.commit_options import CommitOptions, request_of
from ledger.events import TableEvent
from ledger.events.catalog_events import CatalogEvent
from ledger.events.table_events import SchemaRecord, TableCreated, TableDropped
from ledger.evolution.catalog_birth import first_commit
from ledger.evolution.catalog_builder import identifier_of
from ledger.evolution.catalog_decide import CatalogIntent
from ledger.evolution.catalog_request import DropTable
from ledger.evolution.catalog_state import CatalogState, TableEntry
from ledger.evolution.schema_json import schema_from_json
from ledger.evolution.state import TableState
from ledger.log.append import Appender
from ledger.log.codec import encode
from ledger.log.settle import Draft, Patience, settle
from ledger.log.stream_log import StreamLog
from ledger.model.errors import DamagedLogError, NotFoundError
from ledger.model.identifier import Identifier
from ledger.model.schema import Schema
from ledger.model.type_json import field_to_wire

if TYPE_CHECKING:
    import pyarrow as pa


def as_schema(given: Schema | Mapping[str, Any] | pa.Schema) -> Schema:
    """Return a schema, however it was given.

    Raises:
        InvalidInputError: It is no schema; the message names the place.
    """
    if isinstance(given, Schema):
        return given
    if isinstance(given, Mapping):
        return schema_from_json(given)
    from ledger.model.arrow import fields_from_arrow

    return Schema(fields_from_arrow(given))


def schema_record(schema: Schema) -> SchemaRecord:
    """Return what a creation records of a schema."""
    return SchemaRecord(
        fields=tuple(field_to_wire(each) for each in schema.fields),
        highest_field_id=schema.highest_field_id,
        partition_keys=schema.partition_keys,
        primary_keys=schema.primary_keys,
        options=dict(sorted(schema.options.items())),
        comment=schema.comment,
    )


def bear(
    catalog: StreamLog[CatalogState, CatalogEvent],
    entry: TableEntry,
    table: StreamLog[TableState, TableEvent],
    patience: Patience,
) -> None:
    """Write a table's version 0, which the catalog's commit contains.

    Whoever misses the file writes it; all write the same bytes.

    Raises:
        CommitUnknownError: The store does not answer; opening the table again goes on from there.
        DamagedLogError: The catalog's commit does not create that table.
    """
    created = catalog.commit_at(entry.created_version)
    for transaction in created.transactions:
        for event in transaction.events:
            if isinstance(event, TableCreated) and event.table_id == entry.table_id:
                first = encode(first_commit(created, event, transaction))
                settle(
                    table.store, Draft(table.layout.commit(0), first, 0, transaction.id), patience
                )
                return
    key = catalog.layout.commit(entry.created_version)
    raise DamagedLogError(f"{key} does not create table {entry.identifier}", key)


def drop_asked(identifier: Identifier) -> list[str]:
    """Return what dropping a table asks, whoever asks it."""
    return ["DropTable", str(identifier)]


def finish_drop(
    appender: Appender[CatalogState, CatalogEvent],
    sealed: StreamLog[TableState, TableEvent],
    entry: TableEntry,
) -> None:
    """Let the catalog forget a table whose stream is sealed already, in the sealer's name."""
    last = sealed.commit_at(sealed.head.state.version if sealed.head else 0)
    seal = last.transactions[-1]
    # With the seal's id, so that the dropper who asks again is given this commit.
    options: CommitOptions = {
        "commit_id": seal.id,
        "author": seal.author,
        "message": seal.message,
    }
    dropped = next(each for each in seal.events if isinstance(each, TableDropped))
    name = identifier_of(dropped.identifier)
    request = request_of(options, asked=drop_asked(name), default_author="")
    if appender.landed_before(request) is not None:
        return
    with suppress(NotFoundError):
        appender.append(CatalogIntent(DropTable(entry.identifier, entry.table_id)), request)


class Nothing:
    """An intent that holds already: its transaction is recorded without events."""

    base_version: int | None = None

    def decide(self, state: object, winners: object) -> tuple[CatalogEvent, ...]:
        """Return no events, whatever the state is."""
        del state, winners
        return ()


NOTHING = Nothing()
