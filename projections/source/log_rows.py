"""Rows of the log itself: commits and events."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from msgspec import UnsetType

from projections.source.batches import Row
from projections.source.column import Column
from projections.source.scan import Scan, Step

PLACE = (
    Column("version", "bigint", "number of the commit in the table's stream, from 0"),
    Column("transaction", "int", "position of the transaction in its commit, from 0"),
    Column("time", "timestamp", "when the commit was made; grows with the version"),
)

_ENVELOPE = (
    Column("effective_time", "timestamp", "when it took effect; earlier for imported history"),
    Column("commit_id", "string", "unique key of the transaction"),
    Column("author", "string", "who"),
)

COMMITS = (
    *PLACE,
    *_ENVELOPE,
    Column("message", "string", "why"),
    Column("properties", "map<string,string>", "what programs kept with it"),
    Column("event_count", "int", "how many facts it holds"),
    Column("parent", "string", "SHA-256 of the commit before; none in version 0", nullable=True),
)

EVENTS = (
    *PLACE,
    Column("position", "int", "position of the event in its transaction, from 0"),
    *_ENVELOPE,
    Column("type", "string", "kind of the event, such as addColumn"),
    Column("field_id", "bigint", "the column that it is about", nullable=True),
    Column("field_names", "array<string>", "that column's path, as it was asked", nullable=True),
    Column("snapshot_id", "bigint", "the snapshot that it made or names", nullable=True),
    Column("event", "string", "the fact, as JSON"),
)


def place(step: Step) -> Row:
    """Return the values of `PLACE`; moments are in microseconds, as Arrow has them."""
    return step.commit.version, step.position, step.commit.time_millis * 1000


def _envelope(step: Step) -> Row:
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


def event_rows(scan: Scan) -> Iterator[Row]:
    """Yield a row of `EVENTS` for every event."""
    encode = msgspec.json.Encoder().encode
    for step in scan.steps():
        here, envelope = place(step), _envelope(step)
        for position, event in enumerate(step.transaction.events):
            yield (
                *here,
                position,
                *envelope,
                event.__struct_config__.tag,
                getattr(event, "field_id", None),
                _path(getattr(event, "field_names", None)),
                getattr(event, "snapshot_id", None),
                encode(event).decode(),
            )


def _path(names: object) -> tuple[str, ...] | None:
    """Return a column's path; None for the identifier fields, which are many paths."""
    if not isinstance(names, tuple) or any(isinstance(each, tuple) for each in names):
        return None
    return names
