"""Reading of spans of a table's log by tasks in Spark's Python workers."""

from __future__ import annotations

import gc
import sys
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar
from zipimport import zipimporter

import msgspec
from attrs import field, frozen
from msgspec import UNSET, DecodeError, Raw, UnsetType

from ledger.events import TableEvent
from ledger.events.commit import Commit, Transaction
from ledger.events.snapshots import RolledBack, SnapshotEvent
from ledger.files.change_lists import event_files
from ledger.history.older import TableLog
from ledger.ledger import Ledger
from ledger.ledger import open as open_ledger
from ledger.log.layout import SEGMENT_LENGTH
from ledger.log.replay import START, Position
from ledger.model.errors import DamagedLogError, InvalidInputError, UnsupportedError
from ledger.model.file_change import FileChange
from ledger.model.names import Identifier
from ledger.opening.context import TableSetting
from ledger.state.table import TableState
from ledger.state.table_builder import TableBuilder
from ledger.stores import client_options, open_store
from ledger.stores.wrappers import Trust, with_trust
from ledger.table_handle import TableHandle, handle_of
from projections.source.columns import Column, arrow_schema

if TYPE_CHECKING:
    import pyarrow as pa


@frozen
class LedgerLocation:
    """Location of a ledger, and the options of its storage client."""

    url: str
    storage_options: Mapping[str, Any] = field(factory=dict, hash=False)
    trust: Trust = "all"

    def open(self) -> Ledger:
        """Return a new handle of the ledger.

        Raises:
            NotFoundError: There is no ledger at the URL.
            DamagedLogError: The ledger's root file is missing.
        """
        lake = open_ledger(self.url, self.storage_options, trust=self.trust)
        handle_of(lake).refuse_missing()
        return lake

    def setting(self) -> TableSetting:
        """Return the setting that handles of its tables share; one client per process."""
        options = msgspec.json.encode(dict(self.storage_options), order="sorted")
        return _shared_setting(self.url, options, self.trust)


@lru_cache(maxsize=16)
def _shared_setting(url: str, options: bytes, trust: Trust) -> TableSetting:
    given: dict[str, Any] = msgspec.json.decode(options)
    return TableSetting(
        store=with_trust(open_store(url, given), trust),
        storage_options=client_options(url, given),
        author="",
        trust=trust,
    )


@frozen
class TablePlace:
    """Location of a table's stream in a ledger, and its name for messages."""

    identifier: str
    table_id: str
    path: str

    def open(self, root: LedgerLocation) -> TableHandle:
        """Return its handle, without reading the catalog."""
        database, _, name = self.identifier.partition(".")
        return TableHandle(Identifier(database, name), self.path, root.setting())


@frozen
class SpanEnd:
    """End of a span: commit `version`, after some of its transactions (None: all)."""

    version: int
    transactions: int | None = None


@frozen
class Span:
    """The commits `first` to `end`, both included, of one table."""

    root: LedgerLocation
    table: TablePlace
    first: int
    end: SpanEnd


def version_ranges(first: int, last: int, length: int) -> Iterator[tuple[int, int]]:
    """Yield the ranges of versions that divide the reading of `first` to `last`.

    A range ends at a multiple of `length`, which is a multiple of the checkpoint interval: so the
    fold of the next one starts at a checkpoint. Ranges of a segment's length or more consist of
    whole segments, so that no two tasks read the same one.

    Example:
        >>> list(version_ranges(0, 2500, 1000)), list(version_ranges(7, 6, 1000))
        ([(0, 800), (801, 1600), (1601, 2400), (2401, 2500)], [])
    """
    length -= length % SEGMENT_LENGTH if length > SEGMENT_LENGTH else 0
    while first <= last:
        end = min(last, max(length, -(-first // length) * length))
        yield first, end
        first = end + 1


E = TypeVar("E")


class TransactionStep(NamedTuple, Generic[E]):
    """One transaction and its position in the log.

    Attributes:
        commit: The commit that holds it.
        position: Its position in the commit, from 0.
        transaction: The changes of one writer, committed together.
    """

    commit: Commit[E]
    position: int
    transaction: Transaction[E]

    @property
    def effective_millis(self) -> int:
        """Effective time, Unix milliseconds."""
        moment = self.transaction.effective_time_millis
        return self.commit.time_millis if isinstance(moment, UnsetType) else moment

    @property
    def snapshots(self) -> Iterator[SnapshotEvent]:
        """Its snapshots, in order."""
        for event in self.transaction.events:
            if isinstance(event, SnapshotEvent):
                yield event


class LogScan:
    """Iteration over a span of a table's log.

    Args:
        log: The table's log.
        first: The first commit.
        end: The end; that commit must exist.
    """

    def __init__(self, log: TableLog, first: int, end: SpanEnd) -> None:
        self.log = log
        self._first = first
        self._end = end

    @classmethod
    def of(cls, span: Span) -> LogScan:
        """Return the scan of a span, with a new handle of the log."""
        return cls(span.table.open(span.root).log, span.first, span.end)

    def unread(self) -> Iterator[TransactionStep[Raw]]:
        """Yield the transactions as `steps`, with events as raw JSON from the log."""
        commits = self.log.commits_with_raw_events(self._first, self._end.version)
        for commit in self.log.personal.resolve_each(commits):
            yield from self._steps_of_commit(commit)

    def steps(self) -> Iterator[TransactionStep[TableEvent]]:
        """Yield the transactions, in order.

        Raises:
            DamagedLogError: A commit is missing or damaged.
        """
        reads = self.log.commits(self._first, self._end.version)
        for commit in self.log.personal.resolve_each(read.commit for read in reads):
            yield from self._steps_of_commit(commit)

    def folded(self) -> Iterator[tuple[TransactionStep[TableEvent], TableBuilder]]:
        """Yield the transactions, each with the fold right after it.

        The fold starts at the nearest checkpoint before the first commit. The same builder is
        yielded each time, advanced.

        Raises:
            DamagedLogError: A commit is missing, damaged, or contradicts those before.
        """
        start = self.log.checkpoints.at_or_before(self._first - 1) if self._first else None
        builder = TableBuilder(start.state if start else None)
        position = Position(start.state.version, start.digest) if start else START
        for read in self.log.reader.after(position, self._end.version):
            if read.commit.version < self._first:
                self.log.fold(builder, read.commit)
            else:
                yield from self._fold_commit(builder, read.commit)

    def before(self) -> TableState | None:
        """Return the state right before the first commit; None before version 0."""
        if not self._first:
            return None
        return LogScan(self.log, self._first - 1, SpanEnd(self._first - 1)).final()

    def final(self) -> TableState:
        """Return the state at the span's end."""
        last = LogScan(self.log, self._end.version, self._end).folded()
        ((_, builder),) = deque(last, maxlen=1)
        return builder.freeze()

    def files(
        self, step: TransactionStep[TableEvent], event: SnapshotEvent
    ) -> tuple[FileChange, ...]:
        """Return the file changes of a snapshot.

        Raises:
            DamagedLogError: Their list is missing or damaged.
            UnsupportedError: An engine keeps them in a manifest list of its own.
        """
        _refuse_foreign_manifests(event)
        try:
            files = event_files(self.log.store, self.log.layout, event)
            return tuple(self.log.personal.columns.opened(files))
        except DecodeError as error:
            key = self.log.layout.commit(step.commit.version)
            raise DamagedLogError(f"{key} holds an invalid list of files: {error}", key) from error

    def _fold_commit(
        self, builder: TableBuilder, commit: Commit[TableEvent]
    ) -> Iterator[tuple[TransactionStep[TableEvent], TableBuilder]]:
        try:
            builder.begin(commit.version, commit.time_millis)
            for step in self._steps_of_commit(commit):
                builder.add(step.transaction)
                yield step, builder
        except InvalidInputError as error:
            raise self.log.contradiction(commit, error) from error

    def _steps_of_commit(self, commit: Commit[E]) -> Iterator[TransactionStep[E]]:
        most = self._end.transactions if commit.version == self._end.version else None
        for position, each in enumerate(commit.transactions[:most]):
            yield TransactionStep(commit, position, each)


def _refuse_foreign_manifests(event: SnapshotEvent) -> None:
    if isinstance(event, RolledBack) or event.delta_manifest_list is UNSET:
        return
    if event.files or not isinstance(event.changes, UnsetType):
        return
    if event.delta_record_count or event.delta_file_count:
        raise UnsupportedError(
            f"snapshot {event.snapshot_id} names its engine's own manifest list "
            f"{event.delta_manifest_list}: its files are not in the log. Read the views commits, "
            "events, columns or snapshots, or a range of versions without it"
        )


Row = tuple[Any, ...]
Arrays = Sequence[Any]
"""The columns of some rows, as Arrow arrays."""

MOST_ROWS = 8_192
MOST_CHARACTERS = 8_000_000
"""Limit of a batch, besides that of rows; both keep an executor's memory in megabytes."""


def rows_to_batches(
    rows: Iterable[Row], columns: Sequence[Column], constants: Sequence[Any] = ()
) -> Iterator[pa.RecordBatch]:
    """Yield rows as record batches.

    Args:
        rows: The values of the columns after those of `constants`.
        columns: All columns.
        constants: Values of the first columns, the same in every row.

    Example:
        >>> [each.num_rows for each in rows_to_batches([("a",), ("b",)], [Column("x", "string")])]
        [2]
    """
    schema = arrow_schema(columns)
    texts = [
        place - len(constants)
        for place, each in enumerate(columns)
        if each.kind == "string" and place >= len(constants)
    ]
    gathered: list[Row] = []
    weight = 0
    for row in rows:
        gathered.append(row)
        for place in texts:
            text = row[place]
            if text is not None:
                weight += len(text)
        if len(gathered) >= MOST_ROWS or weight >= MOST_CHARACTERS:
            yield _batch_of_rows(gathered, schema, constants)
            gathered, weight = [], 0
    if gathered:
        yield _batch_of_rows(gathered, schema, constants)


def arrays_to_batches(
    chunks: Iterable[Arrays], columns: Sequence[Column], constants: Sequence[Any] = ()
) -> Iterator[pa.RecordBatch]:
    """Yield the arrays of some rows each as record batches; see `rows_to_batches`."""
    schema = arrow_schema(columns)
    for chunk in chunks:
        yield _batch_of_arrays(chunk, schema, constants)


def _batch_of_rows(rows: list[Row], schema: pa.Schema, constants: Sequence[Any]) -> pa.RecordBatch:
    import pyarrow as pa

    own = list(schema)[len(constants) :]
    values = zip(zip(*rows, strict=True), own, strict=True)
    return _batch_of_arrays(
        [pa.array(each, found.type) for each, found in values], schema, constants
    )


def _batch_of_arrays(arrays: Arrays, schema: pa.Schema, constants: Sequence[Any]) -> pa.RecordBatch:
    import pyarrow as pa

    count = len(arrays[0])
    same = [
        pa.repeat(pa.scalar(each, field.type), count)
        for each, field in zip(constants, schema, strict=False)
    ]
    return pa.RecordBatch.from_arrays([*same, *arrays], schema=schema)


def begin_task() -> None:
    """Avoid work that Spark or Python would otherwise repeat at every task."""
    clear_archive_importers()
    _freeze_loaded_objects()


def clear_archive_importers() -> None:
    """Clear Python's importers of archives; imported modules stay.

    Before every task Spark invalidates Python's import caches. Up to Python 3.11 each importer of
    an archive then reads the archive's directory again, and a worker has one for each package of
    Spark's: a fifth of a second per task. They are a cache, and recreated when needed.
    """
    for path, importer in list(sys.path_importer_cache.items()):
        if isinstance(importer, zipimporter):
            del sys.path_importer_cache[path]


@cache
def _freeze_loaded_objects() -> None:
    """Exclude existing objects from garbage collection before the first task.

    Spark's libraries are some hundred thousand permanent objects. Scanning them repeatedly takes an
    eighth of the time in which a worker reads a log.
    """
    gc.freeze()
