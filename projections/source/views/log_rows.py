"""Rows of the log's commits, and the columns that say where a row stands in the log."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import UnsetType

from projections.source.views.batches import Row
from projections.source.views.column import Column
from projections.source.views.scan import Scan, TransactionStep

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
    Column("properties", "map<string,string>", "what programs kept with it"),
    Column("event_count", "int", "how many facts it holds"),
    Column("parent", "string", "SHA-256 of the commit before; none in version 0", nullable=True),
)


def place(step: TransactionStep[Any]) -> Row:
    """Return the values of `PLACE`; moments are in microseconds, as Arrow has them."""
    return step.commit.version, step.position, step.commit.time_millis * 1000


def _envelope(step: TransactionStep[Any]) -> Row:
    transaction = step.transaction
    return step.effective_millis * 1000, transaction.id, transaction.author


def commit_rows(scan: Scan) -> Iterator[Row]:
    """Yield a row of `COMMITS` for every transaction."""
    for step in scan.steps():
        transaction, parent = step.transaction, step.commit.parent
        yield (
            *place(step),
            *_envelope(step),
            transaction.message,
            list(transaction.properties.items()),
            len(transaction.events),
            None if isinstance(parent, UnsetType) else parent,
        )
