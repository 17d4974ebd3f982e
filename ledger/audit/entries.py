"""Audit entries of a log, newest first, filtered."""

from __future__ import annotations

import heapq
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from datetime import datetime
from functools import cached_property, partial
from typing import Any, get_args

from attrs import field, frozen
from msgspec import UnsetType

from ledger.decide.operations import in_words
from ledger.events import CatalogEvent, TableEvent
from ledger.events.commit import Commit, Transaction, kind_of
from ledger.events.imported import PaimonBranchUpdated, SnapshotRefRemoved, SnapshotRefSet
from ledger.events.snapshots import (
    BranchCommitted,
    BranchHead,
    RolledBack,
    SnapshotCommitted,
    SnapshotFacts,
)
from ledger.history.older import TableLog
from ledger.log.codec import Sketch, TransactionOutline
from ledger.log.segments import WORTH, segment_of
from ledger.log.stream_log import StreamLog
from ledger.log.time_travel import head_state
from ledger.model.arguments import path_texts
from ledger.model.errors import InvalidInputError
from ledger.model.instant_text import parse_time
from ledger.model.messages import first_few, html_table, moment, similar_names
from ledger.state.snapshots import MAIN

_FIRST_READ = 16
"""Number of newest commits read first; each further read doubles it, up to a segment."""

FIRST_READ_OF_MANY = 4
"""The same for each of many logs, of which few commits are wanted."""

_MOST_READ = 800

_ANY_KIND = b'{"type":"'


@frozen(slots=False)
class Entry:
    """Audit entry: a transaction with its commit and table.

    Attributes:
        table: The table's full name, the last one if it was dropped; empty for the catalog.
        commit: The commit that contains it.
        transaction: The transaction.
        then: The table's name at that time, in a log of several tables; empty elsewhere.
        is_dropped: True if the table was dropped since.
    """

    table: str
    commit: Commit[Any] = field(repr=False)
    transaction: Transaction[Any]
    then: str = ""
    is_dropped: bool = False

    def __repr__(self) -> str:
        who = f" by {self.transaction.author}" if self.transaction.author else ""
        said = first_few(map(in_words, self.transaction.events))
        place = f"{self.label or 'the catalog'} version {self.version}"
        return f"{type(self).__name__}({place}{who}: {said})"

    def _repr_html_(self) -> str:
        rows = [
            ("version", self.version),
            ("time (UTC)", moment(self.time_millis)),
            ("author", self.transaction.author),
            ("message", self.transaction.message),
            *(("what happened", in_words(each)) for each in self.transaction.events),
        ]
        return html_table(("", ""), rows, caption=self.label or "the catalog")

    @property
    def label(self) -> str:
        """The table's name, with the later ones: `shop.sales (then shop.orders, dropped)`."""
        then = f"then {self.then}" if self.then not in {"", self.table} else ""
        became = ", ".join(filter(None, (then, "dropped" if self.is_dropped else "")))
        return f"{self.table} ({became})" if became else self.table

    @property
    def version(self) -> int:
        """The commit's version."""
        return self.commit.version

    @cached_property
    def time_millis(self) -> int:
        """The effective time, Unix milliseconds."""
        effective = self.transaction.effective_time_millis
        return self.commit.time_millis if isinstance(effective, UnsetType) else effective

    @cached_property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of its events, such as `addColumn`, in order."""
        return tuple(kind_of(type(each)) for each in self.transaction.events)

    @cached_property
    def sums(self) -> tuple[int, int, int]:
        """The change of the table's rows, files and bytes; negative for removals."""
        facts = [each for each in self.transaction.events if isinstance(each, SnapshotFacts)]
        return (
            sum(each.delta_record_count for each in facts),
            sum(each.delta_file_count for each in facts),
            sum(each.delta_file_size_in_bytes for each in facts),
        )


@frozen(kw_only=True)
class EntryFilter:
    """Filter of audit entries; an attribute that is None does not filter.

    Attributes:
        first: The oldest version.
        last: The newest version.
        since_millis: The earliest effective time, Unix milliseconds.
        until_millis: The latest effective time, Unix milliseconds.
        author: A part of the author, in any case.
        kinds: Kinds of events, of which one must occur, such as `addColumn`.
        message: A regular expression to find in the message.
        column_id: Id of a column that the transaction changed, nested columns included.
        branch: Name of a branch that the transaction changed; "main" for the main line.
    """

    first: int = 0
    last: int | None = None
    since_millis: int | None = None
    until_millis: int | None = None
    author: str | None = None
    kinds: frozenset[str] = frozenset()
    message: str | None = None
    column_id: int | None = None
    branch: str | None = None

    @cached_property
    def _message_pattern(self) -> re.Pattern[str] | None:
        if self.message is None:
            return None
        try:
            return re.compile(self.message)
        except re.error as error:
            raise InvalidInputError(
                f"message={self.message!r} is no regular expression: {error}"
            ) from error

    def takes(self, commit: Sketch, transaction: TransactionOutline) -> bool:
        """Return whether a transaction matches, as far as its sketch shows.

        Raises:
            InvalidInputError: The message is not a regular expression.
        """
        since, until = self.since_millis, self.until_millis
        effective = transaction.effective_time_millis
        moment = commit.time_millis if isinstance(effective, UnsetType) else effective
        return (
            (since is None or moment >= since)
            and (until is None or moment <= until)
            and (not self.kinds or any(each.type in self.kinds for each in transaction.events))
            and (self.branch is None or any(e.type in _OF_BRANCHES for e in transaction.events))
            # Values in sidecar files are only known after they are read.
            and (not isinstance(transaction.outside, UnsetType) or self.matches_texts(transaction))
        )

    def matches_texts(self, transaction: TransactionOutline | Transaction[Any]) -> bool:
        """Return whether a transaction's author and message match.

        Raises:
            InvalidInputError: The message is not a regular expression.
        """
        pattern = self._message_pattern
        return (self.author is None or self._author_part in transaction.author.casefold()) and (
            pattern is None or pattern.search(transaction.message) is not None
        )

    def is_of_branch(self, transaction: Transaction[Any]) -> bool:
        """Return whether a transaction changed the wanted branch; True if no branch is wanted."""
        return self.branch is None or any(
            self.branch in _branch_names_of(each) for each in transaction.events
        )

    @cached_property
    def _author_part(self) -> str:
        return (self.author or "").casefold()

    def matches_any_transaction(self, commit: Sketch) -> bool:
        """Return whether a transaction of a commit matches, or the commit ends the search."""
        return self.ends_search(commit) or any(
            self.takes(commit, each) for each in commit.transactions
        )

    def can_skip_body(self, _version: int, body: bytes) -> bool:
        """Return whether the bytes of a commit's file show that it does not match.

        Plain text appears in the bytes as it is; text in another case, escaped or in a sidecar
        file is only found by decoding.
        """
        if self.since_millis is not None:
            # Decoding is needed to see the end of the search.
            return False
        if self.kinds and not any(each in body for each in self._event_kind_markers):
            return _ANY_KIND in body
        plain = self._author_part_bytes
        return (
            plain is not None
            and plain not in body.lower()
            and body.isascii()
            and b"\\" not in body
            and b'"sidecar":' not in body
        )

    @cached_property
    def _event_kind_markers(self) -> tuple[bytes, ...]:
        return tuple(b'{"type":"%s"' % each.encode() for each in self.kinds)

    @cached_property
    def _author_part_bytes(self) -> bytes | None:
        part = self._author_part
        is_plain = part.isascii() and part.isprintable() and not set(part) & set('\\"')
        return part.encode() if part and is_plain else None

    def ends_search(self, commit: Sketch) -> bool:
        """Return whether neither a commit nor any before it can match."""
        if commit.version < self.first:
            return True
        # Nothing takes effect after its commit, and commits' times never go back.
        return self.since_millis is not None and commit.time_millis < self.since_millis


EVENT_KINDS: frozenset[str] = frozenset(
    kind_of(each) for each in (*get_args(TableEvent), *get_args(CatalogEvent))
)
"""The kinds of all events, as `type` names them in the log."""


def make_entry_filter(  # noqa: PLR0913 - each is a question of its own
    *,
    now_millis: int,
    last: int | None = None,
    since: datetime | int | str | None = None,
    until: datetime | int | str | None = None,
    author: str | None = None,
    kinds: Iterable[str] = (),
    message: str | None = None,
    column_id: int | None = None,
    branch: str | None = None,
) -> EntryFilter:
    """Return the filter for the arguments of `Table.entries`.

    Raises:
        InvalidInputError: There is no such kind of event; the message lists the kinds.
    """
    wanted = frozenset(path_texts(kinds))
    for unknown in sorted(wanted - EVENT_KINDS):
        near = similar_names(unknown, EVENT_KINDS)
        hint = f": did you mean {near[0]}?" if near else ""
        raise InvalidInputError(
            f"{unknown!r} is no kind of event{hint}; the kinds are {', '.join(sorted(EVENT_KINDS))}"
        )
    return EntryFilter(
        last=last,
        since_millis=None if since is None else parse_time(since, now_millis, date="begin"),
        until_millis=None if until is None else parse_time(until, now_millis),
        author=author,
        kinds=wanted,
        message=message,
        column_id=column_id,
        branch=branch,
    )


def entries(
    log: StreamLog[Any, Any], table: str, wanted: EntryFilter, first_read: int = _FIRST_READ
) -> Iterator[Entry]:
    """Yield the matching entries of a stream, newest first.

    Reads backwards and lazily: older commits are only read when the caller continues. A column
    filter needs one pass over the log from its beginning.

    Args:
        log: The stream, read to its head.
        table: The table's full name; empty for the catalog.
        wanted: The filter.
        first_read: Number of newest commits to read first.

    Raises:
        InvalidInputError: The message is no regular expression.
    """
    head = head_state(log).version
    last = head if wanted.last is None else min(wanted.last, head)
    transactions_changing = (
        None if wanted.column_id is None else _transactions_of_column(log, wanted.column_id, last)
    )
    only = None if transactions_changing is None else [*transactions_changing]
    for sketch, commit in _commits_backwards(log, wanted, last, only, first_read):
        if wanted.ends_search(sketch):
            return
        places = (
            range(len(commit.transactions))
            if transactions_changing is None
            else transactions_changing[commit.version]
        )
        for place in reversed(places):
            resolved, transaction = sketch.transactions[place], commit.transactions[place]
            takes = wanted.takes(sketch, resolved) and wanted.matches_texts(transaction)
            if takes and wanted.is_of_branch(transaction):
                yield Entry(table, commit, transaction)


def _transactions_of_column(
    log: StreamLog[Any, Any], column_id: int, last: int
) -> dict[int, list[int]]:
    """Return the indexes of transactions that changed a column, by version, oldest first."""
    # Imported here: a log without a column filter does not need column histories.
    from ledger.audit.column_history import RequestedHistories, column_histories

    found: dict[int, list[int]] = {}
    for version, place in column_histories(
        log, last, RequestedHistories(column=column_id)
    ).transactions_changing(column_id):
        found.setdefault(version, []).append(place)
    return found


def check_branch(log: TableLog, name: str) -> None:
    """Reject the name of a branch that a table never had.

    Reads the log only if the table has no such branch now.

    Raises:
        NotFoundError: No branch ever had that name; the message lists the existing ones.
    """
    head = head_state(log)
    now = {each.name for each in head.refs if each.ref_type == "branch"}
    if name == MAIN or name in now:
        return
    if next(entries(log, "", EntryFilter(branch=name)), None) is None:
        raise head.origin.branch_not_found_error(head, name)


def _branch_names_of(event: object) -> tuple[str, ...]:
    """Return the names of the branches whose snapshots an event changes, main included."""
    named = _BRANCH_NAMES.get(type(event))
    return () if named is None else named(event)


def _branches_of_snapshot(event: SnapshotCommitted) -> tuple[str, ...]:
    to = event.fast_forward_to
    return (MAIN, to.branch_name) if isinstance(to, BranchHead) else (MAIN,)


_BRANCH_NAMES: dict[type, Callable[[Any], tuple[str, ...]]] = {
    BranchCommitted: lambda it: (it.branch_name,),
    SnapshotCommitted: _branches_of_snapshot,
    RolledBack: lambda _: (MAIN,),
    SnapshotRefSet: lambda it: (it.ref_name,),
    SnapshotRefRemoved: lambda it: (it.ref_name,),
    PaimonBranchUpdated: lambda it: (it.branch_name,),
}
_OF_BRANCHES = frozenset(map(kind_of, _BRANCH_NAMES))


def _read_matching_commits(
    log: StreamLog[Any, Any],
    wanted: EntryFilter,
    first: int,
    last: int,
    only: Sequence[int] | None,
) -> list[tuple[Sketch, Commit[Any]]]:
    """Return the commits from `first` to `last`, or among some of them, that may match."""
    can_skip_body, takes = wanted.can_skip_body, wanted.matches_any_transaction
    if only is None:
        some = [*log.find_matching_commits(first, last, takes, can_skip_body)]
    elif len(only) < WORTH:
        some = [*log.commits_at(only, takes)]
    else:
        among = frozenset(only)
        can_skip_body, takes = (
            partial(_is_unlisted_version, among),
            partial(_is_listed_and_matching, among, takes),
        )
        some = [*log.find_matching_commits(first, last, takes, can_skip_body)]
    resolved = log.personal.resolve([commit for _, commit in some])
    return [(sketch, commit) for (sketch, _), commit in zip(some, resolved, strict=True)]


def _is_unlisted_version(only: Collection[int], version: int, _body: bytes) -> bool:
    return version not in only


def _is_listed_and_matching(
    only: Collection[int], takes: Callable[[Sketch], bool], commit: Sketch
) -> bool:
    return commit.version in only and takes(commit)


def _commits_backwards(
    log: StreamLog[Any, Any],
    wanted: EntryFilter,
    last: int,
    only: Sequence[int] | None,
    first_read: int,
) -> Iterator[tuple[Sketch, Commit[Any]]]:
    first, size = wanted.first, first_read
    while last >= first:
        begin = max(first, last - size + 1)
        if size == _MOST_READ:
            begin = max(first, segment_of(last)[0])
        some = None if only is None else only[bisect_left(only, begin) : bisect_right(only, last)]
        if some is None or some:
            yield from reversed(_read_matching_commits(log, wanted, begin, last, some))
        last, size = begin - 1, min(2 * size, _MOST_READ)


def merge_entries_by_time(streams: Iterable[Iterator[Entry]]) -> Iterator[Entry]:
    """Yield the entries of several streams merged by time, newest first."""
    return heapq.merge(*streams, key=lambda each: -each.time_millis)


def merge_lazily_by_time(
    latest_millis: Sequence[float], read: Callable[[int], Iterator[Entry]]
) -> Iterator[Entry]:
    """Yield the entries of several streams in the order of `merge_entries_by_time`.

    A stream is read once no other can have a newer entry.

    Args:
        latest_millis: A time of each stream that none of its entries is later than, Unix
            milliseconds.
        read: Returns the entries of the stream at an index, newest first.
    """
    heap: list[tuple[float, int, Entry | None]] = [
        (-latest, place, None) for place, latest in enumerate(latest_millis)
    ]
    heapq.heapify(heap)
    opened: dict[int, Iterator[Entry]] = {}
    while heap:
        _, place, entry = heap[0]
        if entry is None:
            opened[place] = read(place)
        else:
            yield entry
        following = next(opened[place], None)
        if following is None:
            heapq.heappop(heap)
        else:
            heapq.heapreplace(heap, (-following.time_millis, place, following))
