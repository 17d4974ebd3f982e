"""Rows of the log itself: commits and events."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import repeat
from typing import Any, NamedTuple

import msgspec
from msgspec import UnsetType

from projections.source.batches import MOST_CHARACTERS, MOST_ROWS, Chunk, Row
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
    for chunk in event_chunks(scan):
        yield from zip(*chunk, strict=True)


def event_chunks(scan: Scan) -> Iterator[Chunk]:
    """Yield the columns of `EVENTS` for so many events at a time: no row is made of any of them."""
    gathered = _Events()
    for step in scan.steps():
        gathered.add(step)
        if gathered.is_full:
            yield gathered.columns
            gathered = _Events()
    yield gathered.columns


class _Events:
    """The columns of some events."""

    def __init__(self) -> None:
        self.columns: Chunk = tuple([] for _ in EVENTS)
        self._characters = 0

    @property
    def is_full(self) -> bool:
        """Whether they are enough for a batch."""
        return len(self.columns[0]) >= MOST_ROWS or self._characters >= MOST_CHARACTERS

    def add(self, step: Step) -> None:
        """Take in a transaction."""
        # Which of them has which field its shape says.
        events: tuple[Any, ...] = step.transaction.events
        count = len(events)
        before, after = (*place(step),), (*_envelope(step),)
        shapes = [_SHAPES.get(type(each)) or _shape(type(each)) for each in events]
        texts = [_ENCODE(each).decode() for each in events]
        pairs = list(zip(events, shapes, strict=True))
        added: list[Iterable[Any]] = [
            *(repeat(value, count) for value in before),
            range(count),
            *(repeat(value, count) for value in after),
            [shape.tag for shape in shapes],
            [each.field_id if shape.has_id else None for each, shape in pairs],
            [_path(each.field_names) if shape.has_names else None for each, shape in pairs],
            [each.snapshot_id if shape.has_snapshot else None for each, shape in pairs],
            texts,
        ]
        for column, values in zip(self.columns, added, strict=True):
            column.extend(values)
        self._characters += sum(map(len, texts))


class _Shape(NamedTuple):
    """What there is to say of every event of a class."""

    tag: str
    has_id: bool
    has_names: bool
    has_snapshot: bool


_ENCODE = msgspec.json.Encoder().encode
_SHAPES: dict[type, _Shape] = {}


def _shape(kind: Any) -> _Shape:
    names = kind.__struct_fields__
    wanted = ("field_id", "field_names", "snapshot_id")
    found = _Shape(kind.__struct_config__.tag, *(each in names for each in wanted))
    return _SHAPES.setdefault(kind, found)


def _path(names: object) -> tuple[str, ...] | None:
    """Return a column's path; None for the identifier fields, which are many paths."""
    if not isinstance(names, tuple) or any(isinstance(each, tuple) for each in names):
        return None
    return names
