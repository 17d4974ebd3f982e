"""Rows of the log itself: commits and events."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from itertools import accumulate, chain
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Raw, Struct, UnsetType

from ledger.history.older import TableLog
from ledger.model.errors import DamagedLogError
from projections.source.views.batches import MOST_CHARACTERS, MOST_ROWS, Arrays, Row
from projections.source.views.column import Column, arrow_type
from projections.source.views.scan import Scan, TransactionStep

if TYPE_CHECKING:
    import pyarrow as pa

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


def event_arrays(scan: Scan) -> Iterator[Arrays]:
    """Yield the columns of `EVENTS` as Arrow arrays, for so many events at a time."""
    gathered = _Events(scan.log)
    for step in scan.unread():
        gathered.add(step)
        if gathered.is_full:
            yield gathered.arrays()
            gathered = _Events(scan.log)
    if gathered.count:
        yield gathered.arrays()


class _Told(Struct, rename="camel", gc=False):
    """As much of an event's JSON as has a column of its own."""

    type: str
    field_id: int | None = None
    field_names: Any = None
    snapshot_id: int | None = None


_ENCODER = msgspec.json.Encoder()
_TOLD = msgspec.json.Decoder(_Told)


class _Events:
    """Some transactions' events, as `EVENTS` has them.

    They are handed on as they stand in the log. Of what they say only what has a column of its own
    is read, of all of them at once: decoding a million events takes longer than all the rest.

    Args:
        log: The table's.
    """

    def __init__(self, log: TableLog) -> None:
        self.count = 0
        self._log = log
        self._counts: list[int] = []
        self._places: list[Row] = []
        self._lines: list[bytes] = []
        self._size_bytes = 0

    @property
    def is_full(self) -> bool:
        """Whether they are enough for a batch."""
        return self.count >= MOST_ROWS or self._size_bytes >= MOST_CHARACTERS

    def add(self, step: TransactionStep[Raw]) -> None:
        """Take in a transaction."""
        events = step.transaction.events
        if not events:
            return
        lines = _ENCODER.encode_lines(events)
        if lines.count(b"\n") != len(events):
            # What stands raw in an event may be on several lines; between values they mean nothing.
            lines = b"".join(_ENCODER.encode(each).replace(b"\n", b" ") + b"\n" for each in events)
        self._lines.append(lines)
        self._size_bytes += len(lines)
        self._counts.append(len(events))
        self.count += len(events)
        self._places.append((*place(step), *_envelope(step)))

    def arrays(self) -> Arrays:
        """Return the columns."""
        import pyarrow as pa
        import pyarrow.compute as pc

        lines = b"".join(self._lines)
        told = self._told(lines)
        types = pa.array([each.type for each in told], pa.string())
        if not set(pc.unique(types).to_pylist()) <= self._log.codec.kinds:
            self._explain()
        own = zip((*PLACE, *_ENVELOPE), zip(*self._places, strict=True), strict=True)
        places = [self._repeated(pa.array(each, arrow_type(column))) for column, each in own]
        return [
            *places[: len(PLACE)],
            pa.array(chain.from_iterable(map(range, self._counts)), pa.int32()),
            *places[len(PLACE) :],
            types,
            pa.array([each.field_id for each in told], pa.int64()),
            pa.array([_path(each.field_names) for each in told], pa.list_(pa.string())),
            pa.array([each.snapshot_id for each in told], pa.int64()),
            pc.split_pattern(self._text(lines[:-1]), "\n").values,
        ]

    def _text(self, lines: bytes) -> pa.Array:
        import pyarrow as pa

        try:
            return pa.array([lines], pa.string())
        except pa.ArrowInvalid:
            self._refuse_bytes(lines)
            raise

    def _refuse_bytes(self, lines: bytes) -> None:
        """Name the commit whose event is no text; what stands raw in it nobody has read yet."""
        try:
            lines.decode()
        except UnicodeDecodeError as error:
            event = lines.count(b"\n", 0, error.start)
            number = bisect_right([*accumulate(self._counts)], event)
            key = self._log.layout.commit(self._places[number][0])
            raise DamagedLogError(f"{key} holds an event that is no text: {error}", key) from error

    def _told(self, lines: bytes) -> list[_Told]:
        try:
            return _TOLD.decode_lines(lines)
        except (msgspec.DecodeError, UnicodeDecodeError):
            self._explain()
            raise

    def _explain(self) -> None:
        """Decode these commits whole, which raises what is wrong with one of them."""
        for _ in self._log.commits(self._places[0][0], self._places[-1][0]):
            pass

    def _repeated(self, values: pa.Array) -> pa.Array:
        """Return a value a transaction as a value an event."""
        import pyarrow as pa
        import pyarrow.compute as pc

        ends = pa.array(accumulate(self._counts), pa.int32())
        return pc.run_end_decode(pa.RunEndEncodedArray.from_arrays(ends, values))


def _path(names: list[Any] | None) -> list[str] | None:
    """Return a column's path; None for the identifier fields, which are many paths."""
    return names if names and isinstance(names[0], str) else None
