"""Rows of the view `commits`, and the position of a transaction in the log."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import UnsetType

from projections.source.columns import Column
from projections.source.row_batches import Row
from projections.source.span_reading import LogScan, TransactionStep

PLACE = (
    Column("version", "bigint", "number of the commit in the table's stream, from 0"),
    Column("transaction", "int", "position of the transaction in its commit, from 0"),
    Column("time", "timestamp", "when the commit was made; grows with the version"),
)

ENVELOPE = (
    Column("effective_time", "timestamp", "when it took effect; earlier for imported history"),
    Column("commit_id", "string", "unique key of the transaction"),
    Column("author", "string", "who"),
)

COMMITS = (
    *PLACE,
    *ENVELOPE,
    Column("message", "string", "why"),
    Column("properties", "map<string,string>", "properties that programs stored with it"),
    Column("event_count", "int", "number of its events"),
    Column("parent", "string", "SHA-256 of the commit before; none in version 0", nullable=True),
)


def place(step: TransactionStep[Any]) -> Row:
    """Return the values of `PLACE`; times are in microseconds, as in Arrow."""
    return step.commit.version, step.position, step.commit.time_millis * 1000


def _transaction_columns(step: TransactionStep[Any]) -> Row:
    transaction = step.transaction
    return step.effective_millis * 1000, transaction.id, transaction.author


def commit_rows(scan: LogScan) -> Iterator[Row]:
    """Yield a row of `COMMITS` for every transaction."""
    for step in scan.steps():
        transaction, parent = step.transaction, step.commit.parent
        yield (
            *place(step),
            *_transaction_columns(step),
            transaction.message,
            list(transaction.properties.items()),
            len(transaction.events),
            None if isinstance(parent, UnsetType) else parent,
        )
