"""Rows of events, commits and columns as Arrow arrays.

An event is handed on as it stands in the log. Its kind is cut out of that text, of all events of a
batch at once; its JSON is read only where a column says more of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import accumulate, chain
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, get_args

import msgspec
from attrs import frozen
from msgspec import Raw, Struct, UnsetType

from ledger.events import SchemaEvent, TableEvent
from ledger.history.older import TableLog
from ledger.model.arrow_types import numbers, texts, texts_of
from ledger.model.schema import Schema
from ledger.model.types import ArrayType, DataField, DataType, MapType, MultisetType, RowType
from ledger.model.types.text import format_type
from projections.source.columns import Column, arrow_type
from projections.source.span_reading import (
    MOST_CHARACTERS,
    MOST_ROWS,
    Arrays,
    Row,
    Scan,
    TransactionStep,
)

if TYPE_CHECKING:
    import pyarrow as pa


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


EVENTS = (
    *PLACE,
    Column("position", "int", "position of the event in its transaction, from 0"),
    *ENVELOPE,
    Column("type", "string", "kind of the event, such as addColumn"),
    Column("field_id", "bigint", "the column that it is about", nullable=True),
    Column("field_names", "array<string>", "that column's path, as it was asked", nullable=True),
    Column("snapshot_id", "bigint", "the snapshot that it made or names", nullable=True),
    Column("event", "string", "the fact, as JSON"),
)


def event_arrays(scan: Scan, wanted: Sequence[Column]) -> Iterator[Arrays]:
    """Yield some columns of `EVENTS` as Arrow arrays, for so many events at a time."""
    gathered = _Events(scan.log)
    for step in scan.unread():
        gathered.add(step)
        if gathered.is_full:
            yield gathered.arrays(wanted)
            gathered = _Events(scan.log)
    if gathered.events:
        yield gathered.arrays(wanted)


_OF_STEPS: Final[Mapping[str, Callable[[TransactionStep[Any]], Any]]] = {
    "version": lambda step: step.commit.version,
    "transaction": lambda step: step.position,
    "time": lambda step: step.commit.time_millis * 1000,
    "effective_time": lambda step: step.effective_millis * 1000,
    "commit_id": lambda step: step.transaction.id,
    "author": lambda step: step.transaction.author,
}
"""What a column says of a transaction, the same for each of its events."""


class _Told(Struct, rename="camel", gc=False):
    """As much of an event's JSON as has a column of its own."""

    type: str
    field_id: int | None = None
    field_names: Any = None
    snapshot_id: int | None = None


_OF_TOLD: Final[Mapping[str, Callable[[_Told], Any]]] = {
    "field_id": attrgetter("field_id"),
    "field_names": lambda told: _path(told.field_names),
    "snapshot_id": attrgetter("snapshot_id"),
}
_TOLD: Final = msgspec.json.Decoder(_Told)
_FRONT: Final = b'{"type":"'


class _Events:
    """Some transactions' events, as `EVENTS` has them.

    Args:
        log: The table's.
    """

    def __init__(self, log: TableLog) -> None:
        self.events: list[Raw] = []
        self._log = log
        self._steps: list[TransactionStep[Raw]] = []
        self._size_bytes = 0

    @property
    def is_full(self) -> bool:
        """Whether they are enough for a batch."""
        return len(self.events) >= MOST_ROWS or self._size_bytes >= MOST_CHARACTERS

    def add(self, step: TransactionStep[Raw]) -> None:
        """Take in a transaction."""
        events = step.transaction.events
        if events:
            self.events.extend(events)
            self._steps.append(step)
            self._size_bytes += sum(map(len, events))

    def arrays(self, wanted: Sequence[Column]) -> Arrays:
        """Return some columns.

        Raises:
            DamagedLogError: An event is none.
            UpgradeRequiredError: One is of a kind that a newer version made.
        """
        # Whatever is asked for, an event of an unknown kind is not handed on.
        _ = self._types
        return [self._column(each) for each in wanted]

    def _column(self, column: Column) -> pa.Array:
        import pyarrow as pa

        kind = arrow_type(column)
        match column.name:
            case "event":
                return self._texts
            case "type":
                return self._types
            case "position":
                places = [*chain.from_iterable(map(range, self._counts))]
                return numbers(places, kind)
            case name if name in _OF_STEPS:
                values = [*map(_OF_STEPS[name], self._steps)]
                made = texts(values) if column.kind == "string" else numbers(values, kind)
                return self._repeated(made)
            case name:
                said = pa.array([*map(_OF_TOLD[name], self._told)], kind)
                return said.take(self._places_told)

    @cached_property
    def _counts(self) -> list[int]:
        return [len(each.transaction.events) for each in self._steps]

    @cached_property
    def _texts(self) -> pa.Array:
        # They are bytes for whoever asks for a buffer.
        events: Sequence[Any] = self.events
        found = texts_of(events)
        # What stands raw in an event may be on several lines; between values they mean nothing.
        if b"\n" in found.buffers()[2].to_pybytes():
            return texts_of([bytes(each).replace(b"\n", b" ") for each in events])
        return found

    @cached_property
    def _types(self) -> pa.Array:
        import pyarrow.compute as pc

        kinds = self._log.codec.kinds
        found = _cut_types(self._texts, max(map(len, kinds)))
        if found is not None and kinds.issuperset(pc.unique(found).to_pylist()):
            return found
        # Another client spelled them, or they are no events that are known here.
        read = [each.type for each in self._read(self._texts)]
        if not kinds.issuperset(read):
            self._explain()
        return texts(read)

    @cached_property
    def _is_telling(self) -> pa.Array:
        """Whether an event is of a kind that says something that has a column of its own."""
        import pyarrow as pa
        import pyarrow.compute as pc

        return pc.is_in(self._types, value_set=pa.array(_telling(), pa.string()))

    @cached_property
    def _told(self) -> list[_Told]:
        """What the telling events say."""
        return self._read(self._texts.filter(self._is_telling))

    @cached_property
    def _places_told(self) -> pa.Array:
        """Of each event which of `_told` is its own; null where it tells nothing."""
        import pyarrow as pa
        import pyarrow.compute as pc

        counted = pc.cumulative_sum(self._is_telling.cast(pa.int32()))
        return pc.if_else(self._is_telling, pc.subtract(counted, 1), None)

    def _read(self, events: pa.Array) -> list[_Told]:
        import pyarrow as pa
        import pyarrow.compute as pc

        if not len(events):
            return []
        whole = pa.ListArray.from_arrays(numbers([0, len(events)], pa.int32()), events)
        try:
            return _TOLD.decode_lines(pc.binary_join(whole, "\n")[0].as_buffer())
        except (msgspec.DecodeError, UnicodeDecodeError):
            self._explain()
            raise

    def _explain(self) -> None:
        """Decode these commits whole, which raises what is wrong with one of them."""
        first, last = (self._steps[place].commit.version for place in (0, -1))
        for _ in self._log.commits(first, last):
            pass

    def _repeated(self, values: pa.Array) -> pa.Array:
        """Return a value a transaction as a value an event."""
        import pyarrow as pa
        import pyarrow.compute as pc

        ends = numbers([*accumulate(self._counts)], pa.int32())
        return pc.run_end_decode(pa.RunEndEncodedArray.from_arrays(ends, values))


def _cut_types(events: pa.Array, longest: int) -> pa.Array | None:
    """Return the kinds of events that begin with them, as lakeledger writes them; else None.

    Args:
        events: Their JSON.
        longest: How long a kind's name is at most; of a longer one only so much is returned.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    bodies = events.view(pa.binary())
    if not pc.all(pc.starts_with(bodies, _FRONT)).as_py():
        return None
    fronts = pc.binary_slice(bodies, len(_FRONT), len(_FRONT) + longest + 1)
    return pc.list_element(pc.split_pattern(fronts, b'"', max_splits=1), 0).view(pa.string())


@lru_cache(maxsize=1)
def _telling() -> tuple[str, ...]:
    """Return the kinds of events that say something that has a column of its own."""
    names = {each.encode_name for each in msgspec.structs.fields(_Told)}
    return tuple(
        each.__struct_config__.tag
        for each in get_args(TableEvent)
        if any(field.encode_name in names for field in msgspec.structs.fields(each))
    )


def _path(names: list[Any] | None) -> list[str] | None:
    """Return a column's path; None for the identifier fields, which are many paths."""
    return names if names and isinstance(names[0], str) else None


COLUMNS = (
    *PLACE,
    Column("schema_id", "bigint", "the schema that the transaction made"),
    Column("position", "int", "where the column stands in the schema, each before its members"),
    Column("field_id", "int", "the column's id, which no other column ever gets"),
    Column("parent_id", "int", "id of the named column around it", nullable=True),
    Column("field_names", "array<string>", "its path; through lists and maps by element, value"),
    Column("name", "string", "the last part of its path"),
    Column("type", "string", "its type, as the DLF metadata API writes it"),
    Column("is_nullable", "boolean", "whether it may hold NULL"),
    Column("description", "string", "its comment", nullable=True),
    Column("default_value", "string", "its default, as text", nullable=True),
    Column("is_partition_key", "boolean", "whether it partitions the table"),
    Column("is_primary_key", "boolean", "whether it is part of the primary key"),
)


@frozen
class PlacedColumn:
    """A column with its path and the id of the named column around it."""

    field: DataField
    path: tuple[str, ...]
    parent_id: int | None


def column_rows(scan: Scan) -> Iterator[Row]:
    """Yield the rows of `COLUMNS` for every schema that the span made."""
    for step, builder in scan.folded():
        events = step.transaction.events
        if not step.commit.version or any(isinstance(each, SchemaEvent) for each in events):
            here = place(step)
            yield from ((*here, *row) for row in schema_rows(builder.freeze().schema))


def schema_rows(schema: Schema) -> Iterator[Row]:
    """Yield one row for every column of a schema, without the place."""
    for position, each in enumerate(walk(schema.fields)):
        field = each.field
        is_column = len(each.path) == 1
        yield (
            schema.id,
            position,
            field.id,
            each.parent_id,
            each.path,
            field.name,
            format_type(field.type),
            field.type.nullable,
            field.description,
            field.default_value,
            is_column and field.name in schema.partition_keys,
            is_column and field.name in schema.primary_keys,
        )


def walk(
    fields: Iterable[DataField], path: tuple[str, ...] = (), parent_id: int | None = None
) -> Iterator[PlacedColumn]:
    """Yield every named field, each before those inside it."""
    for each in fields:
        inside = (*path, each.name)
        yield PlacedColumn(each, inside, parent_id)
        yield from _walk_type(each.type, inside, each.id)


def _walk_type(
    data_type: DataType, path: tuple[str, ...], parent_id: int
) -> Iterator[PlacedColumn]:
    match data_type:
        case RowType(fields=fields):
            yield from walk(fields, path, parent_id)
        case ArrayType(element=inner) | MultisetType(element=inner):
            yield from _walk_type(inner, (*path, "element"), parent_id)
        case MapType(key=key, value=value):
            yield from _walk_type(key, (*path, "key"), parent_id)
            yield from _walk_type(value, (*path, "value"), parent_id)
        case _:
            return
