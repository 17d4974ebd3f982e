"""Subject and findings of a verification."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, Final, Generic, Literal, NamedTuple, TypeVar, cast, get_args

from attrs import field, frozen
from msgspec import UNSET

from ledger.events.commit import Commit, Transaction
from ledger.events.snapshots import BranchCommitted, ChangesReference, ListingEvent
from ledger.files.live import LiveFiles
from ledger.files.runs import Placed
from ledger.locations import FileNames
from ledger.log.layout import Layout
from ledger.log.stream_log import StreamLog
from ledger.model.errors import InvalidInputError
from ledger.model.file_change import FileChange, inline_files_of_all
from ledger.model.snapshot import branch_number
from ledger.state.stream import StateLike
from ledger.stores import Store
from ledger.stores.wrappers import with_caches

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


Kind = Literal[
    "damage",
    "contradiction",
    "data",
    "derived",
    "clock",
    "absent",
    "foreign",
    "unfinished",
    "unsaid",
]
"""What sort of thing it is.

- damage: the truth itself does not fit; only a backup helps.
- contradiction: the truth is whole, and says what cannot be or what no writer may say.
- data: a data file that the truth names is not there, or is another.
- derived: something derived is other than the log makes it; it can be restored.
- clock: a commit is ahead of the time, so that reading by time goes wrong until it is corrected.
- absent: something derived is not there; that costs time and is no error.
- foreign: nobody of the ledger put it there; it is left alone.
- unfinished: an operation in two steps stopped between them; the next opener finishes it.
- unsaid: a format has no word for it, so that whoever reads its files alone does not know it.
"""

FAILURES: Final = frozenset({"damage", "contradiction", "data", "derived", "clock"})
"""The kinds that fail a verification."""

FROM_BACKUP: Final = "compare it with a backup and restore it from there"
REPAIR: Final = "restore it with: lakeledger verify --repair"
_DIGEST: Final = "sha256:"
_HEX_DIGITS: Final = 64


@frozen
class Finding:
    """One thing that does not fit.

    Attributes:
        kind: What sort of thing.
        what: What is wrong, in a sentence without its end.
        file: The key concerned, below the store's root.
        version: The first version that does not fit; None when it is of no version.
        advice: What to do.
        remedy: The keys and bytes that restore it, when it is derived.
    """

    kind: Kind
    what: str
    file: str
    version: int | None
    advice: str = FROM_BACKUP
    remedy: tuple[tuple[str, bytes], ...] = field(default=(), repr=False)

    @property
    def fails(self) -> bool:
        """Whether a verification that finds it fails."""
        return self.kind in FAILURES


@frozen
class Expected:
    """A head that somebody noted elsewhere: the log has to hold that commit still.

    Attributes:
        digest: Of a commit's file, as `verify` prints it.
        version: The commit's, if it was noted, too.
    """

    digest: str
    version: int | None = None

    @classmethod
    def parse(cls, text: str) -> Expected:
        """Read `sha256:HEX`, `HEX` or `VERSION:sha256:HEX`.

        Raises:
            InvalidInputError: It is none of them.

        Example:
            >>> Expected.parse("12:sha256:" + 64 * "a").version
            12
        """
        number, _, digest = text.strip().lower().rpartition(_DIGEST)
        number = number.removesuffix(":")
        is_hex = len(digest) == _HEX_DIGITS and set(digest) <= set("0123456789abcdef")
        if not is_hex or not (number == "" or number.isdecimal()):
            raise InvalidInputError(
                f"{text!r} is no head; write sha256:HEX or VERSION:sha256:HEX, as verify prints it"
            )
        return cls(_DIGEST + digest, int(number) if number else None)

    def __str__(self) -> str:
        return self.digest if self.version is None else f"{self.version}:{self.digest}"
