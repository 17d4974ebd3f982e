"""Subject: a stream to look at, and its commits in columns, with what they name beside the log."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, Final, Generic, NamedTuple, TypeVar, cast, get_args

from attrs import field, frozen
from msgspec import UNSET

from ledger.events.commit import Commit, Transaction
from ledger.events.snapshot_events import BranchCommitted, ChangesReference, ListingEvent
from ledger.evolution.stream import StateLike
from ledger.files.live import LiveFiles
from ledger.files.runs import Placed
from ledger.locations import FileNames
from ledger.log.layout import Layout
from ledger.log.stream_log import StreamLog
from ledger.model.file_change import FileChange, inline_files_of_all
from ledger.model.snapshot import branch_number
from ledger.stores import Store
from ledger.stores.log_alone import with_caches

S = TypeVar("S", bound=StateLike)
E = TypeVar("E")


@frozen
class Subject(Generic[S, E]):
    """A stream to look at.

    Attributes:
        name: What people call it: "catalog", or a table's full name.
        log: The stream; its head is neither read nor moved.
        has_files: Whether its commits list data files: a table's do, the catalog's do not.
    """

    name: str
    log: StreamLog[S, E]
    has_files: bool
    _names: FileNames = field(init=False, repr=False, eq=False)

    @_names.default
    def _names_of_it(self) -> FileNames:
        return LiveFiles(cast("StreamLog[Any, Any]", self.log)).names

    @property
    def store(self) -> Store:
        """Where the stream is."""
        return self.log.store

    @property
    def layout(self) -> Layout:
        """Under which keys."""
        return self.log.layout

    @property
    def live(self) -> LiveFiles | None:
        """Its data files; None for a stream that lists none."""
        log: StreamLog[Any, Any] = self.log
        return LiveFiles(log) if self.has_files else None

    def usual(self, path: str) -> str:
        """Return what a data file is called, whatever its path's spelling; one text a file."""
        return self._names.usual_in_log(path)

    def usual_of_all(self, paths: list[str]) -> list[str]:
        """Return the same of some data files."""
        return paths if self._names.are_usual(paths) else [*map(self.usual, paths)]

    def with_caches(self) -> Subject[S, E]:
        """Return the stream with its caches, where it was opened to trust the log alone."""
        whole = with_caches(self.store)
        return self if whole is self.store else Subject(self.name, self.on(whole), self.has_files)

    def on(self, store: Store) -> StreamLog[S, E]:
        """Return the same stream on another store, cold, with all its caches."""
        log: StreamLog[Any, Any] = StreamLog(store, self.layout.root, self.log.stream)
        if self.has_files:
            live = LiveFiles(log)
            log.remember(live.keys_of, live.save)
        return log


def references(commit: Commit[Any]) -> Iterator[ChangesReference]:
    """Yield the side files that a commit names."""
    for transaction in commit.transactions:
        for event in transaction.events:
            if isinstance(event, ListingEvent) and event.changes is not UNSET:
                yield event.changes


Listed = Sequence[tuple[ListingEvent, tuple[FileChange, ...]]]
"""A commit's snapshots, each with its file changes."""

_LISTING: Final[frozenset[type]] = frozenset(get_args(ListingEvent))


class InCommit(NamedTuple):
    """An event that lists files, and its commit by its number among some."""

    number: int
    event: ListingEvent


class CommitColumns:
    """Some commits: what all of them hold, each kind of thing in one list.

    Attributes:
        commits: They.
        transactions: All of theirs.
        versions: That of each transaction's commit.
        kinds: The classes of their events.
        by_kind: Their events, by class.
        listing: Those that list files.
    """

    def __init__(self, commits: Sequence[Commit[Any]]) -> None:
        self.commits = commits
        numbers: Sequence[int] = range(len(commits))
        transactions = [each.transactions for each in commits]
        if {*map(len, transactions)} == {1}:
            self.transactions: list[Transaction[Any]] = [one for (one,) in transactions]
        else:
            numbers = [number for number, some in enumerate(transactions) for _ in some]
            self.transactions = [one for some in transactions for one in some]
        self.versions = [commits[each].version for each in numbers]
        events = [each.events for each in self.transactions]
        if {*map(len, events)} == {1}:
            flat: list[Any] = [event for (event,) in events]
        else:
            numbers = [number for number, some in zip(numbers, events, strict=True) for _ in some]
            flat = [event for some in events for event in some]
        classes = [*map(type, flat)]
        self.kinds = frozenset(classes)
        self.by_kind: dict[type, list[Any]] = {kind: [] for kind in self.kinds}
        for kind, event in zip(classes, flat, strict=True):
            self.by_kind[kind].append(event)
        self.listing = (
            [
                InCommit(number, event)
                for number, kind, event in zip(numbers, classes, flat, strict=True)
                if kind in _LISTING
            ]
            if self.kinds & _LISTING
            else []
        )

    @property
    def has_branches(self) -> bool:
        """Whether any of them lists files of a branch."""
        return BranchCommitted in self.kinds

    def listed(self, live: LiveFiles) -> list[Listed]:
        """Return the commits' lists of files, a list a commit.

        Raises:
            DamagedLogError: A list of file changes is missing or damaged.
            UpgradeRequiredError: A newer version wrote one.
        """
        found: list[Listed] = [()] * len(self.commits)
        events = [event for _, event in self.listing]
        stand_inside = all(each.changes is UNSET for each in events)
        lists = inline_files_of_all([each.files for each in events]) if stand_inside else None
        if lists is None:
            lists = [live.files_of(self.commits[at].version, event) for at, event in self.listing]
        for (number, event), files in zip(self.listing, lists, strict=True):
            found[number] = (*found[number], (event, files))
        return found


class Listings:
    """The lists of files of some commits, flat.

    Attributes:
        versions: The commit's of each.
        listed: They, each with the snapshot that it is of.
        main: The file changes of main, in the log's order.
    """

    def __init__(self, columns: CommitColumns, listed: Sequence[Listed]) -> None:
        self.listed = [*chain.from_iterable(listed)]
        self.versions = [
            commit.version
            for commit, some in zip(columns.commits, listed, strict=True)
            for _ in some
        ]
        self.main = [
            Placed(version, event.snapshot_id, each)
            for version, (event, files) in zip(self.versions, self.listed, strict=True)
            if not branch_number(event.snapshot_id)
            for each in files
        ]

    @property
    def branches(self) -> Iterator[tuple[int, int, FileChange]]:
        """Each file change of a branch, with its commit's version and the branch's number."""
        for version, (event, files) in zip(self.versions, self.listed, strict=True):
            branch = branch_number(event.snapshot_id)
            for each in files if branch else ():
                yield version, branch, each
