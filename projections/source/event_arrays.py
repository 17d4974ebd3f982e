"""Events as Arrow arrays.

An event is passed on as its raw JSON from the log. Its kind is cut out of that text, for all events
of a batch at once; the JSON is parsed only where a column needs more of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import accumulate, chain
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, get_args

import msgspec
from msgspec import Raw, Struct

from ledger.events import TableEvent
from ledger.history.older import TableLog
from ledger.model.arrow_types import integer_array, string_array_of_utf8, texts
from projections.source.columns import Column, arrow_type
from projections.source.commit_rows import ENVELOPE, PLACE
from projections.source.row_batches import MOST_CHARACTERS, MOST_ROWS, Arrays
from projections.source.span_reading import LogScan, TransactionStep

if TYPE_CHECKING:
    import pyarrow as pa


EVENTS = (
    *PLACE,
    Column("position", "int", "position of the event in its transaction, from 0"),
    *ENVELOPE,
    Column("type", "string", "kind of the event, such as addColumn"),
    Column("field_id", "bigint", "the column that it concerns", nullable=True),
    Column("field_names", "array<string>", "that column's path, as requested", nullable=True),
    Column("snapshot_id", "bigint", "the snapshot that it created or names", nullable=True),
    Column("event", "string", "the event, as JSON"),
)


def event_arrays(scan: LogScan, wanted: Sequence[Column]) -> Iterator[Arrays]:
    """Yield some columns of `EVENTS` as Arrow arrays, a batch of events at a time."""
    gathered = _EventBuffer(scan.log)
    for step in scan.unread():
        gathered.add(step)
        if gathered.is_full:
            yield gathered.arrays(wanted)
            gathered = _EventBuffer(scan.log)
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
"""Functions from a transaction to a column's value, the same for each of its events."""


class _EventFields(Struct, rename="camel", gc=False):
    """The fields of an event's JSON that have a column of their own."""

    type: str
    field_id: int | None = None
    field_names: Any = None
    snapshot_id: int | None = None


_EVENT_COLUMNS: Final[Mapping[str, Callable[[_EventFields], Any]]] = {
    "field_id": attrgetter("field_id"),
    "field_names": lambda event: _column_path(event.field_names),
    "snapshot_id": attrgetter("snapshot_id"),
}
_EVENT_DECODER: Final = msgspec.json.Decoder(_EventFields)
_FRONT: Final = b'{"type":"'


class _EventBuffer:
    """Buffered events of some transactions, as rows of `EVENTS`.

    Args:
        log: The table's log.
    """

    def __init__(self, log: TableLog) -> None:
        self.events: list[Raw] = []
        self._log = log
        self._steps: list[TransactionStep[Raw]] = []
        self._size_bytes = 0

    @property
    def is_full(self) -> bool:
        """Return whether there are enough events for a batch."""
        return len(self.events) >= MOST_ROWS or self._size_bytes >= MOST_CHARACTERS

    def add(self, step: TransactionStep[Raw]) -> None:
        """Add a transaction."""
        events = step.transaction.events
        if events:
            self.events.extend(events)
            self._steps.append(step)
            self._size_bytes += sum(map(len, events))

    def arrays(self, wanted: Sequence[Column]) -> Arrays:
        """Return some columns.

        Raises:
            DamagedLogError: An event is invalid.
            UpgradeRequiredError: An event's kind is from a newer version.
        """
        # Events of unknown kinds are rejected, whichever columns are requested.
        _ = self._event_types
        return [self._column_array(each) for each in wanted]

    def _column_array(self, column: Column) -> pa.Array:
        import pyarrow as pa

        kind = arrow_type(column)
        match column.name:
            case "event":
                return self._event_texts
            case "type":
                return self._event_types
            case "position":
                places = [*chain.from_iterable(map(range, self._events_per_transaction))]
                return integer_array(places, kind)
            case name if name in _OF_STEPS:
                values = [*map(_OF_STEPS[name], self._steps)]
                made = texts(values) if column.kind == "string" else integer_array(values, kind)
                return self._repeat_per_event(made)
            case name:
                said = pa.array([*map(_EVENT_COLUMNS[name], self._parsed_events)], kind)
                return said.take(self._parsed_event_indices)

    @cached_property
    def _events_per_transaction(self) -> list[int]:
        return [len(each.transaction.events) for each in self._steps]

    @cached_property
    def _event_texts(self) -> pa.Array:
        # Buffers hold them as bytes.
        events: Sequence[Any] = self.events
        found = string_array_of_utf8(events)
        # Raw JSON may have line ends between values, where they have no meaning.
        if b"\n" in found.buffers()[2].to_pybytes():
            return string_array_of_utf8([bytes(each).replace(b"\n", b" ") for each in events])
        return found

    @cached_property
    def _event_types(self) -> pa.Array:
        import pyarrow.compute as pc

        kinds = self._log.codec.kinds
        found = _extract_event_types(self._event_texts, max(map(len, kinds)))
        if found is not None and kinds.issuperset(pc.unique(found).to_pylist()):
            return found
        # Another client wrote them in another form, or they are unknown events.
        read = [each.type for each in self._parse_events(self._event_texts)]
        if not kinds.issuperset(read):
            self._raise_decode_error()
        return texts(read)

    @cached_property
    def _has_fields_mask(self) -> pa.Array:
        """Mask of the events whose kind has a field with a column of its own."""
        import pyarrow as pa
        import pyarrow.compute as pc

        return pc.is_in(self._event_types, value_set=pa.array(_event_kinds(), pa.string()))

    @cached_property
    def _parsed_events(self) -> list[_EventFields]:
        """The parsed fields of the events with such a kind."""
        return self._parse_events(self._event_texts.filter(self._has_fields_mask))

    @cached_property
    def _parsed_event_indices(self) -> pa.Array:
        """For each event the index of its entry in `_parsed_events`; null where it has none."""
        import pyarrow as pa
        import pyarrow.compute as pc

        counted = pc.cumulative_sum(self._has_fields_mask.cast(pa.int32()))
        return pc.if_else(self._has_fields_mask, pc.subtract(counted, 1), None)

    def _parse_events(self, events: pa.Array) -> list[_EventFields]:
        import pyarrow as pa
        import pyarrow.compute as pc

        if not len(events):
            return []
        whole = pa.ListArray.from_arrays(integer_array([0, len(events)], pa.int32()), events)
        try:
            return _EVENT_DECODER.decode_lines(pc.binary_join(whole, "\n")[0].as_buffer())
        except (msgspec.DecodeError, UnicodeDecodeError):
            self._raise_decode_error()
            raise

    def _raise_decode_error(self) -> None:
        """Decode these commits completely, which raises the precise error."""
        first, last = (self._steps[place].commit.version for place in (0, -1))
        for _ in self._log.commits(first, last):
            pass

    def _repeat_per_event(self, values: pa.Array) -> pa.Array:
        """Return a value per transaction as a value per event."""
        import pyarrow as pa
        import pyarrow.compute as pc

        ends = integer_array([*accumulate(self._events_per_transaction)], pa.int32())
        return pc.run_end_decode(pa.RunEndEncodedArray.from_arrays(ends, values))


def _extract_event_types(events: pa.Array, longest: int) -> pa.Array | None:
    """Return the kinds of events whose JSON starts with them, as lakeledger writes it; else None.

    Args:
        events: Their JSON.
        longest: Maximum length of a kind's name; longer ones are truncated to it.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    bodies = events.view(pa.binary())
    if not pc.all(pc.starts_with(bodies, _FRONT)).as_py():
        return None
    fronts = pc.binary_slice(bodies, len(_FRONT), len(_FRONT) + longest + 1)
    return pc.list_element(pc.split_pattern(fronts, b'"', max_splits=1), 0).view(pa.string())


@lru_cache(maxsize=1)
def _event_kinds() -> tuple[str, ...]:
    """Return the kinds of events with a field that has a column of its own."""
    names = {each.encode_name for each in msgspec.structs.fields(_EventFields)}
    return tuple(
        each.__struct_config__.tag
        for each in get_args(TableEvent)
        if any(field.encode_name in names for field in msgspec.structs.fields(each))
    )


def _column_path(names: list[Any] | None) -> list[str] | None:
    """Return a column's path; None for the identifier fields, which are many paths."""
    return names if names and isinstance(names[0], str) else None
