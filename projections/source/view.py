"""Views of a ledger as rows: events, commits, columns, files, snapshots, tags.

An event is passed on as its raw JSON from the log. Its kind is cut out of that text, for all events
of a batch at once; the JSON is parsed only where a column needs more of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import accumulate, chain
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar, assert_never, get_args

import msgspec
from attrs import define, frozen
from msgspec import Raw, Struct, UnsetType

from ledger.events import SchemaEvent, TableEvent
from ledger.events.imported import SnapshotAdded
from ledger.events.schema import PartitionSpecUpdated, UpdateKeys
from ledger.events.snapshots import RolledBack, SnapshotEvent
from ledger.events.table import TableCreated
from ledger.history.older import TableLog
from ledger.model.arrow_types import integer_array, string_array_of_utf8, texts
from ledger.model.errors import InvalidInputError, UnsupportedError
from ledger.model.file_change import FileChange, PartitionValue
from ledger.model.iceberg_objects import IcebergSnapshot
from ledger.model.schema import Schema
from ledger.model.snapshot import Snapshot, Totals
from ledger.model.types import ArrayType, DataField, DataType, MapType, MultisetType, RowType
from ledger.model.types.text import format_type
from ledger.state.delta_origin import DeltaOrigin
from ledger.state.iceberg_origin import (
    UNKNOWN,
    IcebergOrigin,
    iceberg_delta_totals,
    iceberg_snapshot,
    iceberg_totals,
)
from ledger.state.native_origin import NativeOrigin
from ledger.state.paimon_origin import PaimonOrigin, paimon_totals
from ledger.state.snapshots import SnapshotTrail, snapshot_of
from ledger.state.table import TableState
from projections.manifest_files.lists import names_lists
from projections.source.columns import (
    PARTITION,
    Column,
    Names,
    arrow_type,
    as_text,
    partition_field_names,
)
from projections.source.span_reading import (
    MOST_CHARACTERS,
    MOST_ROWS,
    Arrays,
    LogScan,
    Row,
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


COLUMNS = (
    *PLACE,
    Column("schema_id", "bigint", "the schema that the transaction created"),
    Column("position", "int", "the column's position in the schema, each before its members"),
    Column("field_id", "int", "the column's id, never reused"),
    Column("parent_id", "int", "id of the enclosing named column", nullable=True),
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
    """A column with its path and the id of the enclosing named column."""

    field: DataField
    path: tuple[str, ...]
    parent_id: int | None


def column_rows(scan: LogScan) -> Iterator[Row]:
    """Yield the rows of `COLUMNS` for every schema that the span created."""
    for step, builder in scan.folded():
        events = step.transaction.events
        if not step.commit.version or any(isinstance(each, SchemaEvent) for each in events):
            here = place(step)
            yield from ((*here, *row) for row in schema_rows(builder.freeze().schema))


def schema_rows(schema: Schema) -> Iterator[Row]:
    """Yield one row for every column of a schema, without `PLACE`."""
    for position, each in enumerate(walk_fields(schema.fields)):
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


def walk_fields(
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
            yield from walk_fields(fields, path, parent_id)
        case ArrayType(element=inner) | MultisetType(element=inner):
            yield from _walk_type(inner, (*path, "element"), parent_id)
        case MapType(key=key, value=value):
            yield from _walk_type(key, (*path, "key"), parent_id)
            yield from _walk_type(value, (*path, "value"), parent_id)
        case _:
            return


T = TypeVar("T")

_SNAPSHOT = Column("snapshot_id", "bigint", "the snapshot")
_SPEC = Column("spec_id", "int", "the partition spec that the files were written with")
_CONTENT = Column("content", "string", "data, position-deletes or equality-deletes")
_NEWEST = Column(
    "last_file_creation_time",
    "bigint",
    "newest of the added or deleted files, Unix milliseconds",
)

FILES = (
    *PLACE,
    _SNAPSHOT,
    Column("kind", "string", "ADD or DELETE"),
    Column("path", "string", "relative to the table's location, or absolute outside of it"),
    Column("format", "string", "parquet, orc, avro, or puffin of a deletion vector"),
    _CONTENT,
    _SPEC,
    PARTITION,
    Column("schema_id", "bigint", "the schema whose names the file uses"),
    Column("bucket", "int", "Paimon's bucket"),
    Column("level", "int", "Paimon's level"),
    Column("record_count", "bigint", "its rows"),
    Column("file_size_in_bytes", "bigint", "its bytes"),
    Column("creation_time", "bigint", "Unix milliseconds"),
    Column("field_ids", "boolean", "whether it contains the table's field ids"),
    Column("first_row_id", "bigint", "id of its first row", nullable=True),
    Column("value_counts", "map<int,bigint>", "values by field id", nullable=True),
    Column("null_value_counts", "map<int,bigint>", "NULLs by field id", nullable=True),
    Column("lower_bounds", "map<int,string>", "by field id, hex", nullable=True),
    Column("upper_bounds", "map<int,string>", "by field id, hex", nullable=True),
    Column("extra_files", "array<string>", "files that belong to it", nullable=True),
    Column("sort_order_id", "int", "the sort order of its rows", nullable=True),
    Column("equality_ids", "array<int>", "fields that its deletes compare", nullable=True),
    Column("referenced_data_file", "string", "the file whose rows it deletes", nullable=True),
    Column("content_offset", "bigint", "start of its deletion vector", nullable=True),
    Column("content_size_in_bytes", "bigint", "length of its deletion vector", nullable=True),
    Column(
        "column_names", "map<int,string>", "names unlike the schema's, by field id", nullable=True
    ),
)

PARTITION_CHANGES = (
    *PLACE,
    _SNAPSHOT,
    _SPEC,
    PARTITION,
    _CONTENT,
    Column("delta_record_count", "bigint", "added minus deleted rows"),
    Column("delta_file_size_in_bytes", "bigint", "added minus deleted bytes"),
    Column("delta_file_count", "bigint", "added minus deleted files"),
    _NEWEST,
)

PARTITIONS = (
    Column("version", "bigint", "the commit at which the table is read"),
    _SPEC,
    PARTITION,
    _CONTENT,
    Column("record_count", "bigint", "rows in its live files"),
    Column("file_size_in_bytes", "bigint", "their bytes"),
    Column("file_count", "bigint", "number of live files"),
    _NEWEST,
)


class PartitionContentKey(NamedTuple):
    """Key of a partition: the spec, its values, and the content of its files."""

    spec_id: int
    values: tuple[PartitionValue, ...]
    content: str


@define
class ChangedFileSums:
    """Signed sums over file changes; the newest creation time over all of them."""

    record_count: int = 0
    file_size_in_bytes: int = 0
    file_count: int = 0
    last_file_creation_time: int | None = None

    def add(self, change: FileChange) -> None:
        """Add one more file change."""
        sign = 1 if change.kind == "ADD" else -1
        self.record_count += sign * change.record_count
        self.file_size_in_bytes += sign * change.file_size_in_bytes
        self.file_count += sign
        newest = self.last_file_creation_time
        if newest is None or change.creation_time > newest:
            self.last_file_creation_time = change.creation_time

    def row(self) -> Row:
        """Return the sums in the order of the views' columns."""
        return (
            self.record_count,
            self.file_size_in_bytes,
            self.file_count,
            self.last_file_creation_time,
        )


def file_rows(scan: LogScan) -> Iterator[Row]:
    """Yield a row of `FILES` for every added or deleted file."""
    for step, event, names in _snapshots_with_names(scan):
        here = (*place(step), event.snapshot_id)
        for each in scan.files(step, event):
            yield (*here, *_file_row(each, names))


def _file_row(change: FileChange, names: Names) -> Row:
    return (
        change.kind,
        change.path,
        change.format,
        change.content,
        change.spec_id,
        as_text(names[change.spec_id], change.partition),
        change.schema_id,
        change.bucket,
        change.level,
        change.record_count,
        change.file_size_in_bytes,
        change.creation_time,
        change.field_ids,
        _none_if_unset(change.first_row_id),
        _mapping_items(change.value_counts),
        _mapping_items(change.null_value_counts),
        _mapping_items(change.lower_bounds),
        _mapping_items(change.upper_bounds),
        _none_if_unset(change.extra_files),
        _none_if_unset(change.sort_order_id),
        _none_if_unset(change.equality_ids),
        _none_if_unset(change.referenced_data_file),
        _none_if_unset(change.content_offset),
        _none_if_unset(change.content_size_in_bytes),
        _mapping_items(change.column_names),
    )


def partition_change_rows(scan: LogScan) -> Iterator[Row]:
    """Yield a row of `PARTITION_CHANGES` for every partition that a snapshot changed."""
    for step, event, names in _snapshots_with_names(scan):
        found: dict[PartitionContentKey, ChangedFileSums] = {}
        _add_changes_to_sums(found, scan.files(step, event))
        here = (*place(step), event.snapshot_id)
        for key, sums in found.items():
            yield (*here, *_partition_values(key, names), *sums.row())


def partition_rows(scan: LogScan) -> Iterator[Row]:
    """Yield a row of `PARTITIONS` for every partition that has files at the scan's end.

    The scan begins at version 0. Memory grows with the number of partitions, not of files.
    """
    found: dict[PartitionContentKey, ChangedFileSums] = {}
    for step, event, _ in _snapshots_with_names(scan):
        _add_changes_to_sums(found, scan.files(step, event))
    state = scan.final()
    names = partition_field_names(state.specs)
    for key, sums in found.items():
        if sums.file_count:
            yield (state.version, *_partition_values(key, names), *sums.row())


def _add_changes_to_sums(
    found: dict[PartitionContentKey, ChangedFileSums], changes: tuple[FileChange, ...]
) -> None:
    for each in changes:
        key = PartitionContentKey(each.spec_id, each.partition, each.content)
        sums = found.get(key)
        if sums is None:
            sums = found[key] = ChangedFileSums()
        sums.add(each)


def _partition_values(key: PartitionContentKey, names: Names) -> tuple[int, list[Any], str]:
    return key.spec_id, as_text(names[key.spec_id], key.values), key.content


def _snapshots_with_names(
    scan: LogScan,
) -> Iterator[tuple[TransactionStep[TableEvent], SnapshotEvent, Names]]:
    """Yield every snapshot with the names of the partition fields of all specs so far."""
    names: Names | None = None
    for step, builder in scan.folded():
        if any(isinstance(each, SnapshotAdded) for each in step.transaction.events):
            _refuse_engine_listed(scan)
        if names is None or any(map(_is_layout_event, step.transaction.events)):
            names = partition_field_names(builder.freeze().specs)
        for event in step.snapshots:
            if not (names_lists(event) and _is_before_promotion(scan, step)):
                yield step, event, names


def _is_before_promotion(scan: LogScan, step: TransactionStep[TableEvent]) -> bool:
    """Return whether a snapshot's files are repeated by the promotion, which lists all files."""
    final = scan.final()
    return final.lists_files and step.commit.version < final.origin.lists_files_since


def _refuse_engine_listed(scan: LogScan) -> None:
    """Reject a table whose files an engine lists; a promoted table lists all files itself."""
    final = scan.final()
    if final.is_mirrored or not final.lists_files:
        raise UnsupportedError(
            f"the files of this table are listed in the manifests of {final.origin.source}: "
            "they are not in the log. Read the views commits, events, columns, snapshots and "
            "tags, or Table.at().files"
        )


def _is_layout_event(event: TableEvent) -> bool:
    return isinstance(event, TableCreated | UpdateKeys | PartitionSpecUpdated)


def _mapping_items(mapping: dict[int, T] | UnsetType) -> list[tuple[int, T]] | None:
    return None if isinstance(mapping, UnsetType) else list(mapping.items())


def _none_if_unset(value: T | UnsetType) -> T | None:
    return None if isinstance(value, UnsetType) else value


SNAPSHOTS = (
    *PLACE,
    Column("effective_time", "timestamp", "the snapshot's own time, as the formats show it"),
    Column(
        "snapshot_id",
        "bigint",
        "1, 2, 3, ... without gaps, or Iceberg's own",
    ),
    Column("schema_id", "bigint", "the schema that it was written with; -1 if unknown"),
    Column("commit_kind", "string", "APPEND, COMPACT, OVERWRITE or ANALYZE"),
    Column("commit_user", "string", "stable for a stream, fresh for a batch"),
    Column("commit_identifier", "bigint", "the stream's own number"),
    Column("target_snapshot_id", "bigint", "the target of a rollback", nullable=True),
    Column("delta_record_count", "bigint", "added minus deleted rows"),
    Column("delta_file_count", "bigint", "added minus deleted files"),
    Column("delta_file_size_in_bytes", "bigint", "their bytes"),
    Column("record_count", "bigint", "rows in the table after it"),
    Column("file_count", "bigint", "files in the table after it; -1 if unknown"),
    Column("file_size_in_bytes", "bigint", "their bytes"),
    Column(
        "last_file_creation_time",
        "bigint",
        "newest of all files ever added or deleted, Unix milliseconds",
        nullable=True,
    ),
    Column("watermark", "bigint", "the stream's, where it has one", nullable=True),
    Column("operation", "string", "the engine's name for it", nullable=True),
    Column("properties", "map<string,string>", "properties from the engine", nullable=True),
)

TAGS = (
    Column("version", "bigint", "the commit at which the table is read"),
    Column("tag_name", "string", "the tag's name"),
    Column("snapshot_id", "bigint", "the snapshot that it names"),
    Column("create_time", "timestamp", "creation or replacement time"),
    Column("time_retained_millis", "bigint", "retention; none for ever", nullable=True),
)


def snapshot_rows(scan: LogScan) -> Iterator[Row]:
    """Yield a row of `SNAPSHOTS` for every snapshot."""
    before = scan.before()
    state = before or scan.final()
    match state.origin:
        case IcebergOrigin():
            yield from _iceberg_snapshot_rows(scan)
        case PaimonOrigin():
            yield from _paimon_snapshot_rows(scan, before)
        case NativeOrigin() | DeltaOrigin():
            yield from _ledger_snapshot_rows(scan, before)
        case _:
            assert_never(state.origin)


def _ledger_snapshot_rows(scan: LogScan, before: TableState | None) -> Iterator[Row]:
    trail = SnapshotTrail(None, Totals())
    if before is not None:
        trail = SnapshotTrail(before.snapshot, before.totals)
    for step in scan.steps():
        for event in step.snapshots:
            trail.apply(event, event.schema_id, step.effective_millis)
            snapshot = snapshot_of(event, trail.newest_millis)
            sums = trail.totals()
            yield (
                *place(step),
                step.effective_millis * 1000,
                *_snapshot_row(event, snapshot, sums),
            )


def _paimon_snapshot_rows(scan: LogScan, before: TableState | None) -> Iterator[Row]:
    """Yield a Paimon source's snapshots: ids may be reused, and file counts are unknown.

    Snapshots of the ledger since it owns the table have file counts.
    """
    paimon = None if before is None else before.origin_of_kind(PaimonOrigin)
    for step, builder in scan.folded():
        trail = (
            None if builder.source_lists_files or paimon is None else paimon.next_snapshot_trail()
        )
        paimon = builder.freeze().origin_of_kind(PaimonOrigin)
        for event in step.snapshots:
            snapshot = snapshot_of(event, step.effective_millis)
            sums = paimon_totals(snapshot)
            if trail is not None:
                trail.apply(event, event.schema_id, step.effective_millis)
                sums = trail.totals()
            yield (
                *place(step),
                step.effective_millis * 1000,
                *_snapshot_row(event, snapshot, sums),
            )


def _iceberg_snapshot_rows(scan: LogScan) -> Iterator[Row]:
    """Yield the engines' snapshots, and the ledger's once it owns the table."""
    for step, builder in scan.folded():
        for added in step.transaction.events:
            if isinstance(added, SnapshotAdded):
                yield (*place(step), *_iceberg_summary_row(added.snapshot, None))
        own = tuple(step.snapshots)
        if own:
            there = builder.freeze().origin_of_kind(IcebergOrigin).snapshots
            made = ((_rollback_target(event), there[event.snapshot_id]) for event in own)
            yield from (
                (*place(step), *_iceberg_summary_row(each, target)) for target, each in made
            )


def _rollback_target(event: SnapshotEvent) -> int | None:
    return event.target_snapshot_id if isinstance(event, RolledBack) else None


def _snapshot_row(event: SnapshotEvent, snapshot: Snapshot, after: Totals) -> Row:
    properties = snapshot.properties
    return (
        snapshot.id,
        snapshot.schema_id,
        snapshot.commit_kind,
        snapshot.commit_user,
        snapshot.commit_identifier,
        _rollback_target(event),
        event.delta_record_count,
        event.delta_file_count,
        event.delta_file_size_in_bytes,
        after.record_count,
        after.file_count,
        after.file_size_in_bytes,
        after.last_file_creation_time,
        snapshot.watermark,
        snapshot.operation,
        None if properties is None else list(properties.items()),
    )


def _iceberg_summary_row(added: IcebergSnapshot, target_snapshot_id: int | None) -> Row:
    """Return a row from an Iceberg snapshot's summary; missing totals are -1, deltas 0."""
    snapshot, change, after = (
        iceberg_snapshot(added, UNKNOWN),
        iceberg_delta_totals(added),
        iceberg_totals(added),
    )
    return (
        snapshot.time_millis * 1000,
        snapshot.id,
        snapshot.schema_id,
        snapshot.commit_kind,
        snapshot.commit_user,
        snapshot.commit_identifier,
        target_snapshot_id,
        change.record_count,
        change.file_count,
        change.file_size_in_bytes,
        after.record_count,
        after.file_count,
        after.file_size_in_bytes,
        None,
        None,
        snapshot.operation,
        [*(snapshot.properties or {}).items()],
    )


def tag_rows(scan: LogScan) -> Iterator[Row]:
    """Yield a row of `TAGS` for every tag at the scan's end, by name."""
    state = scan.final()
    for name in sorted(state.tags):
        tag = state.tags[name]
        yield (
            state.version,
            name,
            tag.snapshot_id,
            tag.create_time_millis * 1000,
            tag.time_retained_millis,
        )


TABLE = (
    Column("identifier", "string", "the table's full name"),
    Column("table_id", "string", "its UUID, which is stable under renames"),
)
"""The first columns of every view."""


@frozen
class RowReader:
    """Rows of a view as tuples: for views of few rows."""

    of: Callable[[LogScan], Iterator[Row]]


@frozen
class ArrayReader:
    """Rows of a view as Arrow arrays of some columns: for views of millions of rows."""

    of: Callable[[LogScan, Sequence[Column]], Iterator[Arrays]]


@frozen
class View:
    """A tabular view of a table's log.

    Attributes:
        name: Its name.
        own: Its columns after those of `TABLE`.
        rows: Function from a span of the log to their values, by row or by column.
        is_history: Whether each row belongs to a commit, so that versions can be divided among
            tasks, filtered, and followed. Otherwise the rows are of the table at one instant.
        from_start: Whether the state at an instant is computed from version 0 on.
    """

    name: str
    own: tuple[Column, ...]
    rows: RowReader | ArrayReader
    is_history: bool = True
    from_start: bool = False

    @property
    def columns(self) -> tuple[Column, ...]:
        """All columns."""
        return (*TABLE, *self.own)

    @property
    def has_partition(self) -> bool:
        """Return whether its rows have partition values."""
        return PARTITION in self.own


VIEWS = {
    each.name: each
    for each in (
        View("commits", COMMITS, RowReader(commit_rows)),
        View("events", EVENTS, ArrayReader(event_arrays)),
        View("columns", COLUMNS, RowReader(column_rows)),
        View("snapshots", SNAPSHOTS, RowReader(snapshot_rows)),
        View("tags", TAGS, RowReader(tag_rows), is_history=False),
        View("files", FILES, RowReader(file_rows)),
        View("partition_changes", PARTITION_CHANGES, RowReader(partition_change_rows)),
        View(
            "partitions", PARTITIONS, RowReader(partition_rows), is_history=False, from_start=True
        ),
    )
}


def view_of(name: str) -> View:
    """Return the view of that name.

    Raises:
        InvalidInputError: It does not exist.

    Example:
        >>> view_of("commits").is_history
        True
    """
    found = VIEWS.get(name.lower())
    if found is None:
        raise InvalidInputError(f"there is no view {name!r}; use one of {', '.join(VIEWS)}")
    return found
