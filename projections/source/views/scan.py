"""Reading a span: transaction by transaction, with the fold beside it where a view needs it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Generic, NamedTuple, TypeVar

from msgspec import UNSET, DecodeError, Raw, UnsetType

from ledger.events import TableEvent
from ledger.events.commit import Commit, Transaction
from ledger.events.snapshot_events import RolledBack, SnapshotEvent
from ledger.evolution.fold.table_builder import TableBuilder
from ledger.evolution.state import TableState
from ledger.files.change_file import event_files
from ledger.history.older import TableLog
from ledger.log.replay import START, Position
from ledger.model.errors import DamagedLogError, InvalidInputError, UnsupportedError
from ledger.model.file_change import FileChange
from projections.source.span import End, Span

E = TypeVar("E")


class TransactionStep(NamedTuple, Generic[E]):
    """One transaction, and where it stands.

    Attributes:
        commit: The commit that holds it.
        position: Which of the commit's transactions it is, from 0.
        transaction: What one writer asked for at once.
    """

    commit: Commit[E]
    position: int
    transaction: Transaction[E]

    @property
    def effective_millis(self) -> int:
        """When it took effect."""
        moment = self.transaction.effective_time_millis
        return self.commit.time_millis if isinstance(moment, UnsetType) else moment

    @property
    def snapshots(self) -> Iterator[SnapshotEvent]:
        """Its snapshots, in order."""
        for event in self.transaction.events:
            if isinstance(event, SnapshotEvent):
                yield event


class Scan:
    """A span of a table's log, being read.

    Args:
        log: The table's.
        first: The first commit to give.
        end: Where it ends; that commit must exist.
    """

    def __init__(self, log: TableLog, first: int, end: End) -> None:
        self.log = log
        self._first = first
        self._end = end

    @classmethod
    def of(cls, span: Span) -> Scan:
        """Return the scan of a span, on a log that is opened here."""
        return cls(span.table.open(span.root).log, span.first, span.end)

    def unread(self) -> Iterator[TransactionStep[Raw]]:
        """Yield the transactions as `steps`, their events as the JSON that stands in the log."""
        commits = self.log.unread_commits(self._first, self._end.version)
        for commit in self.log.personal.each_told(commits):
            yield from self._steps_of(commit)

    def steps(self) -> Iterator[TransactionStep[TableEvent]]:
        """Yield the transactions, in order.

        Raises:
            DamagedLogError: A commit is missing or damaged.
        """
        reads = self.log.commits(self._first, self._end.version)
        for commit in self.log.personal.each_told(read.commit for read in reads):
            yield from self._steps_of(commit)

    def folded(self) -> Iterator[tuple[TransactionStep[TableEvent], TableBuilder]]:
        """Yield the transactions, each with the fold right after it.

        The fold begins at the nearest checkpoint before the first commit. It is one and the same
        builder that goes on.

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
                yield from self._folding(builder, read.commit)

    def before(self) -> TableState | None:
        """Return the state right before the first commit; None before version 0."""
        if not self._first:
            return None
        return Scan(self.log, self._first - 1, End(self._first - 1)).final()

    def final(self) -> TableState:
        """Return the state at the span's end."""
        last = Scan(self.log, self._end.version, self._end).folded()
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
        _refuse_foreign(event)
        try:
            files = event_files(self.log.store, self.log.layout, event)
            return tuple(self.log.personal.columns.opened(files))
        except DecodeError as error:
            key = self.log.layout.commit(step.commit.version)
            raise DamagedLogError(
                f"{key} holds a list of files that is none: {error}", key
            ) from error

    def _folding(
        self, builder: TableBuilder, commit: Commit[TableEvent]
    ) -> Iterator[tuple[TransactionStep[TableEvent], TableBuilder]]:
        try:
            builder.begin(commit.version, commit.time_millis)
            for step in self._steps_of(commit):
                builder.add(step.transaction)
                yield step, builder
        except InvalidInputError as error:
            raise self.log.contradiction(commit, error) from error

    def _steps_of(self, commit: Commit[E]) -> Iterator[TransactionStep[E]]:
        most = self._end.transactions if commit.version == self._end.version else None
        for position, each in enumerate(commit.transactions[:most]):
            yield TransactionStep(commit, position, each)


def _refuse_foreign(event: SnapshotEvent) -> None:
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
