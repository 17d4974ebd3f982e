"""What a commit touched, found by cell, file or snapshot key instead of by walking its events.

Many writers who ride in one commit ask this of the commits before them, and of those who joined
theirs earlier.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from itertools import islice
from operator import attrgetter, is_
from typing import Any, Protocol, Self

from msgspec import Struct

from ledger.events import TableEvent
from ledger.events.commit import Commit, Transaction, said_by
from ledger.events.snapshot_events import (
    ListingEvent,
    RolledBack,
)
from ledger.evolution.layout.partition_filter import PartitionFilter
from ledger.evolution.state import TableState
from ledger.evolution.table.changes import CommitSnapshot, TableChange
from ledger.evolution.table.conflicts.cells import Cell, holder, sets
from ledger.model.file_change import FileChange
from ledger.model.schema import Schema
from ledger.model.snapshot import branch_number
from ledger.model.types.walk import walk_fields

LoadFiles = Callable[[ListingEvent], Iterable[FileChange]]
"""Gives the file changes of a snapshot event, wherever they stand."""


class NamedFiles(Protocol):
    """What files are called, and which of them commits name: told without their facts."""

    def usual(self, path: str) -> str:
        """Return what a file is called, however somebody wrote it."""

    def key(self, path: str, line: int) -> str:
        """Return what stands for the file of a usual path, on a line, among what `of` returns."""

    def of(self, commit: Commit[TableEvent]) -> AbstractSet[str] | None:
        """Return what a commit in the log names, its files as they are called; None of others."""


class AsWritten:
    """Names that say nothing: each file has one, and what a commit names is looked at."""

    def usual(self, path: str) -> str:
        """See `NamedFiles`."""
        return path

    def key(self, path: str, _line: int) -> str:
        """See `NamedFiles`."""
        return path

    def of(self, _commit: Commit[TableEvent]) -> AbstractSet[str] | None:
        """See `NamedFiles`."""
        return None


AS_WRITTEN = AsWritten()

_ORDER = attrgetter("order")
_MOST_KEPT = 32
"""Riders looked at one of the last commits, which beside eight writers are some of each;
whoever looked earlier has it indexed anew."""


class Touch(Struct, frozen=True):
    """One thing that an event did: it set a cell, or brought or took a file.

    Attributes:
        order: Where among all that its commit did; they are compared.
        author: Whose transaction it stands in.
        event: What was done.
        cell: What was set, if it was a cell.
        value: To what.
        file: What came or went, if it was a file.
    """

    order: tuple[int, int, int]
    author: str
    event: TableEvent
    cell: Cell = ()
    value: Any = None
    file: FileChange | None = None


class FileWish(Struct, frozen=True):
    """What a writer's snapshots need of the files that others add and remove meanwhile.

    Attributes:
        files: What must not have happened: on which line, what, and to the file of which usual
            path; a line is main or a branch, by its number, and what happens on others does not
            matter.
        overwritten: What was replaced whole, and on which line, where files that others add are a
            conflict.
        keys: What a commit names that has to be looked at for it; None: any has to be.
    """

    files: frozenset[tuple[int, str, str]]
    overwritten: tuple[tuple[int, PartitionFilter], ...]
    keys: frozenset[str] | None = None

    @classmethod
    def of(cls, changes: Iterable[TableChange], named: NamedFiles = AS_WRITTEN) -> Self | None:
        """Return the wish of some changes; None when they are about no files.

        Args:
            changes: What is asked.
            named: What files are called.
        """
        snapshots = [each for each in changes if isinstance(each, CommitSnapshot)]
        overwritten = [
            (_line(each), each.where)
            for each in snapshots
            if each.where is not None and each.isolation != "snapshot"
        ]
        files = frozenset(
            (_line(each), *one)
            for each in snapshots
            for file in each.files
            for one in _unwanted(file, named.usual)
        )
        if not files and not overwritten:
            return None
        # What else is done to a file is done by files of other names.
        is_told = not overwritten and all(kind in _COMES_OR_GOES for _, kind, _ in files)
        keys = frozenset(named.key(path, line) for line, _, path in files) if is_told else None
        return cls(files, tuple(overwritten), keys)

    def clashes(self, file: FileChange, state: TableState, line: int = 0) -> bool:
        """Say whether a file of somebody else, on some line, contradicts the wish, or may."""
        if any((line, *each) in self.files for each in _done(file, str)):
            return True
        if file.kind != "ADD":
            return False
        return any(
            own == line and where.matches(file, state.spec_by_id(file.spec_id)) is not False
            for own, where in self.overwritten
        )


_COMES_OR_GOES = frozenset({"ADD", "DELETE"})
_DELETES_ROWS, _HAS_VECTOR = "deletes rows of", "has the deletion vector of"


def _done(file: FileChange, usual: Callable[[str], str]) -> Iterator[tuple[str, str]]:
    """Yield what a file change does, and the usual path of the file that it does it to."""
    yield file.kind, usual(file.path)
    if file.kind == "ADD" and isinstance(file.referenced_data_file, str):
        data_file = usual(file.referenced_data_file)
        yield _DELETES_ROWS, data_file
        if file.is_vector:
            yield _HAS_VECTOR, data_file


def _unwanted(file: FileChange, usual: Callable[[str], str]) -> Iterator[tuple[str, str]]:
    """Yield what nobody may have done, for a file change to be what its writer meant.

    A data file that goes was rewritten without the rows that were deleted by then, and one whose
    rows are deleted has to be there; it has one deletion vector at most.
    """
    yield file.kind, usual(file.path)
    if file.kind == "DELETE" and file.content == "data":
        yield _DELETES_ROWS, usual(file.path)
    if file.kind == "ADD" and isinstance(file.referenced_data_file, str):
        data_file = usual(file.referenced_data_file)
        yield "DELETE", data_file
        if file.is_vector:
            yield _HAS_VECTOR, data_file


def _line(change: CommitSnapshot) -> int:
    return 0 if change.branch is None else change.branch.number


class Touched:
    """What one commit touched; grows with it while transactions join.

    Args:
        load_files: For the files of its snapshots; asked only when files are asked for.
        usual: What a file is called, however somebody wrote it.
    """

    def __init__(self, load_files: LoadFiles, usual: Callable[[str], str] = str) -> None:
        self._load_files = load_files
        self._usual = usual
        self._seen: list[Transaction[TableEvent]] = []
        self._events = 0
        # Nobody asks for cells where files alone come and go.
        self._unindexed: list[tuple[int, Transaction[TableEvent]]] = []
        self._indexed: dict[Cell, list[Touch]] = {}
        self._files: dict[tuple[int, str, str], Touch] = {}
        self._added: list[tuple[int, FileChange, Touch]] = []
        self._unread: list[tuple[int, str, ListingEvent]] = []
        self.snapshot_keys: set[str] = set()

    def begins(self, commit: Commit[TableEvent]) -> bool:
        """Whether a commit begins with the very transactions that were taken in."""
        there = commit.transactions
        return len(self._seen) <= len(there) and all(map(is_, self._seen, there))

    def grow(self, commit: Commit[TableEvent]) -> None:
        """Take in the transactions that have joined since."""
        for transaction in commit.transactions[len(self._seen) :]:
            self._unindexed.append((self._events, transaction))
            for number, event in enumerate(transaction.events, self._events):
                if isinstance(event, ListingEvent):
                    self._unread.append((number, said_by(transaction), event))
                    if not isinstance(event, RolledBack) and (key := event.key):
                        self.snapshot_keys.add(key)
            self._events += len(transaction.events)
            self._seen.append(transaction)

    def _cells(self) -> dict[Cell, list[Touch]]:
        """Return what was done to cells, each transaction's last of each."""
        for first, transaction in self._unindexed:
            own: dict[Cell, Touch] = {}
            author = said_by(transaction)
            for number, event in enumerate(transaction.events, first):
                for place, (cell, value) in enumerate(sets(event)):
                    # What a transaction set on the way nobody ever saw: the last value counts.
                    own[cell] = Touch((number, 0, place), author, event, cell, value)
            for cell, touch in own.items():
                self._indexed.setdefault(cell, []).append(touch)
        self._unindexed.clear()
        return self._indexed

    def first(
        self, claimed: Mapping[Cell, object], wanted: FileWish | None, state: TableState
    ) -> Touch | None:
        """Return the first thing done that contradicts what a writer claims or wants of files."""
        first = None
        if claimed:
            first = min(self._contradictions(claimed, state), key=_ORDER, default=None)
        if wanted is None:
            return first
        self.read_files(first)
        clashes = (*self._clashes(wanted, state), *([first] if first else ()))
        return min(clashes, key=_ORDER, default=None)

    def last(self, cell: Cell) -> Touch | None:
        """Return what set a cell last, if anything did."""
        return next(reversed(self._cells().get(cell, ())), None)

    def _contradictions(self, claimed: Mapping[Cell, object], state: TableState) -> Iterator[Touch]:
        # Few cells are claimed, however many were set.
        there = self._cells()
        for cell, value in claimed.items():
            touches = there.get(cell)
            if touches is None:
                continue
            others = (each for each in touches if each.value != value)
            if cell[-1] == "exists" and value is True and _stands(cell, state.schema):
                # Dropped it was, and has come back.
                continue
            if cell[0] == "name":
                # A name that was only used on the way to another is free again.
                now = holder(cell, state.schema)
                others = (each for each in others if getattr(each.event, "field_id", None) == now)
            yield from islice(others, 1)

    def _clashes(self, wanted: FileWish, state: TableState) -> Iterator[Touch]:
        yield from (self._files[each] for each in self._files.keys() & wanted.files)
        for line, file, touch in self._added if wanted.overwritten else ():
            if wanted.clashes(file, state, line):
                yield touch
                break

    def read_files(self, before: Touch | None = None) -> None:
        """Read the lists of files of what was done before something, or of everything."""
        while self._unread and (before is None or self._unread[0][0] < before.order[0]):
            number, author, event = self._unread[0]
            line = branch_number(event.snapshot_id)
            # All of a list or nothing, should it be unreadable.
            for place, file in enumerate(tuple(self._load_files(event))):
                touch = Touch((number, 1, place), author, event, file=file)
                for each in _done(file, self._usual):
                    self._files.setdefault((line, *each), touch)
                if file.kind == "ADD":
                    self._added.append((line, file, touch))
            del self._unread[0]


def _stands(cell: Cell, schema: Schema) -> bool:
    return any(each.id == cell[1] for each in walk_fields(schema.fields))


class RecentlyTouched:
    """What the last few commits touched. Not for several threads at once.

    Args:
        load_files: For the files of their snapshots.
        named: What files are called, and which of them commits name.
    """

    def __init__(self, load_files: LoadFiles, named: NamedFiles = AS_WRITTEN) -> None:
        self._load_files = load_files
        self.named = named
        self._kept: dict[int, Touched] = {}

    def left(self, wanted: FileWish | None, commit: Commit[TableEvent]) -> FileWish | None:
        """Return a wish, or None where a commit names none of the files that it is about."""
        if wanted is None or wanted.keys is None:
            return wanted
        found = self.named.of(commit)
        return wanted if found is None or not found.isdisjoint(wanted.keys) else None

    def by(self, commit: Commit[TableEvent]) -> Touched:
        """Return what a commit touched, which may have grown since it was asked for last."""
        found = self._kept.get(commit.version)
        if found is None or not found.begins(commit):
            found = self._kept[commit.version] = Touched(self._load_files, self.named.usual)
            if len(self._kept) > _MOST_KEPT:
                del self._kept[next(iter(self._kept))]
        found.grow(commit)
        return found
