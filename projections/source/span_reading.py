"""Reading of spans of a table's log by tasks in Spark's Python workers."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Generic, NamedTuple, TypeVar

from attrs import frozen
from msgspec import UNSET, DecodeError, Raw, UnsetType

from ledger.events import TableEvent
from ledger.events.commit import Commit, Transaction
from ledger.events.snapshots import RolledBack, SnapshotEvent
from ledger.files.change_lists import event_files
from ledger.history.older import TableLog
from ledger.log.layout import SEGMENT_LENGTH
from ledger.log.replay import START, Position
from ledger.model.errors import DamagedLogError, InvalidInputError, UnsupportedError
from ledger.model.file_change import FileChange
from ledger.state.table import TableState
from ledger.state.table_builder import TableBuilder
from ledger.table_handle import TableHandle
from projections.spark_tasks import LedgerLocation, TablePlace


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
        table: The table.
        first: The first commit.
        end: The end; that commit must exist.
    """

    def __init__(self, table: TableHandle, first: int, end: SpanEnd) -> None:
        self.table = table
        self.log: TableLog = table.log
        self.first = first
        self._end = end

    @classmethod
    def of(cls, span: Span) -> LogScan:
        """Return the scan of a span, with a new handle of the log."""
        return cls(span.table.open(span.root), span.first, span.end)

    def unread(self) -> Iterator[TransactionStep[Raw]]:
        """Yield the transactions as `steps`, with events as raw JSON from the log."""
        commits = self.log.commits_with_raw_events(self.first, self._end.version)
        for commit in self.log.personal.resolve_each(commits):
            yield from self._steps_of_commit(commit)

    def steps(self) -> Iterator[TransactionStep[TableEvent]]:
        """Yield the transactions, in order.

        Raises:
            DamagedLogError: A commit is missing or damaged.
        """
        reads = self.log.commits(self.first, self._end.version)
        for commit in self.log.personal.resolve_each(read.commit for read in reads):
            yield from self._steps_of_commit(commit)

    def folded(self) -> Iterator[tuple[TransactionStep[TableEvent], TableBuilder]]:
        """Yield the transactions, each with the fold right after it.

        The fold starts at the nearest checkpoint before the first commit. The same builder is
        yielded each time, advanced.

        Raises:
            DamagedLogError: A commit is missing, damaged, or contradicts those before.
        """
        start = self.log.checkpoints.at_or_before(self.first - 1) if self.first else None
        builder = TableBuilder(start.state if start else None)
        position = Position(start.state.version, start.digest) if start else START
        for read in self.log.reader.after(position, self._end.version):
            if read.commit.version < self.first:
                self.log.fold(builder, read.commit)
            else:
                yield from self._fold_commit(builder, read.commit)

    def before(self) -> TableState | None:
        """Return the state right before the first commit; None before version 0."""
        if not self.first:
            return None
        return LogScan(self.table, self.first - 1, SpanEnd(self.first - 1)).final()

    def final(self) -> TableState:
        """Return the state at the span's end."""
        last = LogScan(self.table, self._end.version, self._end).folded()
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
        _refuse_foreign_manifests(event, str(self.table.identifier))
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


def _refuse_foreign_manifests(event: SnapshotEvent, table: str) -> None:
    if isinstance(event, RolledBack) or event.delta_manifest_list is UNSET:
        return
    if event.files or not isinstance(event.changes, UnsetType):
        return
    if event.delta_record_count or event.delta_file_count:
        raise UnsupportedError(
            f"snapshot {event.snapshot_id} of {table} names its engine's own manifest list "
            f"{event.delta_manifest_list}: its files are not in the log. Read the views commits, "
            "events, columns, snapshots or partitions, or a range of versions without it"
        )
