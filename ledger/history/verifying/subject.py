"""Subject and findings of a verification."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, Final, Generic, Literal, NamedTuple, TypeVar, cast, get_args

from attrs import field, frozen
from msgspec import UNSET

from ledger.events.commit import Commit, Transaction
from ledger.events.snapshots import BranchCommitted, ListingEvent
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
    """Stream to verify.

    Attributes:
        name: Its name for messages: "catalog", or a table's full name.
        log: The stream; its head is neither read nor moved.
        has_files: True if its commits list data files: a table's do, the catalog's do not.
    """

    name: str
    log: StreamLog[S, E]
    has_files: bool
    _names: FileNames = field(init=False, repr=False, eq=False)

    @_names.default
    def _live_file_names(self) -> FileNames:
        return LiveFiles(cast("StreamLog[Any, Any]", self.log)).names

    @property
    def store(self) -> Store:
        """The store of the stream."""
        return self.log.store

    @property
    def layout(self) -> Layout:
        """The keys of the stream's files."""
        return self.log.layout

    @property
    def live(self) -> LiveFiles | None:
        """The lookup of its data files; None for a stream that lists none."""
        log: StreamLog[Any, Any] = self.log
        return LiveFiles(log) if self.has_files else None

    def usual(self, path: str) -> str:
        """Return the normalized path of a data file, so that each file has one spelling."""
        return self._names.canonical_in_log(path)

    def normalize_paths(self, paths: list[str]) -> list[str]:
        """Return the normalized paths of several data files."""
        return paths if self._names.are_canonical(paths) else [*map(self.usual, paths)]

    def with_caches(self) -> Subject[S, E]:
        """Return the stream with its caches, even if it was opened without them."""
        whole = with_caches(self.store)
        return self if whole is self.store else Subject(self.name, self.on(whole), self.has_files)

    def on(self, store: Store) -> StreamLog[S, E]:
        """Return the same stream on another store, not yet read, with all its caches."""
        log: StreamLog[Any, Any] = StreamLog(store, self.layout.root, self.log.stream)
        if self.has_files:
            live = LiveFiles(log)
            log.set_cache_hooks(live.keys_of, live.save)
        return log


Listed = Sequence[tuple[ListingEvent, tuple[FileChange, ...]]]
"""A commit's snapshots, each with its file changes."""

_LISTING: Final[frozenset[type]] = frozenset(get_args(ListingEvent))


class EventInCommit(NamedTuple):
    """An event that lists files, with the index of its commit in `CommitColumns.commits`."""

    number: int
    event: ListingEvent


class CommitColumns:
    """Contents of several commits in columns, for fast checks.

    Attributes:
        commits: The commits.
        transactions: The transactions of all commits.
        versions: The version of each transaction's commit.
        kinds: The classes of all events.
        by_kind: All events, by class.
        listing: The events that list files.
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
                EventInCommit(number, event)
                for number, kind, event in zip(numbers, classes, flat, strict=True)
                if kind in _LISTING
            ]
            if self.kinds & _LISTING
            else []
        )

    @property
    def has_branches(self) -> bool:
        """True if one of the commits lists files of a branch."""
        return BranchCommitted in self.kinds

    def listed(self, live: LiveFiles) -> list[Listed]:
        """Return the lists of files of each commit.

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
    """Lists of files of several commits, flattened.

    Attributes:
        versions: The commit version of each list.
        listed: The lists, each with its snapshot event.
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
        """File changes of branches, each with its commit's version and the branch's number."""
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
    "inexpressible",
]
"""Kind of a finding.

- damage: the log itself is damaged; only a backup helps.
- contradiction: the log is intact, but has contents that no correct writer commits.
- data: a data file that the log names is missing or differs.
- derived: a derived file differs from the log; it can be restored.
- clock: a commit's time is in the future, so reads by timestamp are wrong until it is corrected.
- absent: a derived file is missing, which costs time and is not an error.
- foreign: a file that the ledger did not write; it is left alone.
- unfinished: an operation in two steps stopped between them; the next opening finishes it.
- inexpressible: a format cannot express it, so readers of that format's files do not see it.
"""

FAILURES: Final = frozenset({"damage", "contradiction", "data", "derived", "clock"})
"""The kinds of findings that make a verification fail."""

FROM_BACKUP: Final = "compare it with a backup and restore it from there"
REPAIR: Final = "restore it with: lakeledger verify --repair"
_DIGEST: Final = "sha256:"
_HEX_DIGITS: Final = 64


@frozen
class Finding:
    """Finding of a verification.

    Attributes:
        kind: The kind of finding.
        what: Description of the problem, a sentence without its full stop.
        file: The key concerned, below the store's root.
        version: The first version concerned; None if it belongs to no version.
        advice: The next step for the operator.
        remedy: The keys and bytes that restore a derived file.
    """

    kind: Kind
    what: str
    file: str
    version: int | None
    advice: str = FROM_BACKUP
    remedy: tuple[tuple[str, bytes], ...] = field(default=(), repr=False)

    @property
    def fails(self) -> bool:
        """True if the finding makes a verification fail."""
        return self.kind in FAILURES


@frozen
class Expected:
    """Head recorded outside of the ledger; the log still has to contain that commit.

    Attributes:
        digest: The digest of a commit's file, as `verify` prints it.
        version: The commit's version, if it was recorded.
    """

    digest: str
    version: int | None = None

    @classmethod
    def parse(cls, text: str) -> Expected:
        """Parse `sha256:HEX`, `HEX` or `VERSION:sha256:HEX`.

        Raises:
            InvalidInputError: The text has none of these forms.

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
