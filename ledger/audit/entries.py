"""A log's entries, newest first, filtered by time, version, author, kind, column and message."""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Any

from attrs import field, frozen
from msgspec import UnsetType

from ledger.audit.lives import Lives
from ledger.events.commit import Commit, Transaction
from ledger.events.snapshot_events import SnapshotFacts
from ledger.log.segments.file import segment_of
from ledger.log.stream_log import StreamLog
from ledger.log.travel import head_state
from ledger.model.errors import InvalidInputError

_FIRST_READ = 64
"""So many of the newest commits are read at once; then twice as many, up to a segment."""

_MOST_READ = 800


@frozen(slots=False)
class Entry:
    """A transaction as the log has it.

    Attributes:
        table: The table's full name; empty for the catalog.
        commit: The commit that it is in.
        transaction: It.
    """

    table: str
    commit: Commit[Any] = field(repr=False)
    transaction: Transaction[Any]

    @property
    def version(self) -> int:
        """The commit's number."""
        return self.commit.version

    @cached_property
    def time_millis(self) -> int:
        """When it took effect, Unix milliseconds."""
        effective = self.transaction.effective_time_millis
        return self.commit.time_millis if isinstance(effective, UnsetType) else effective

    @cached_property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of its events, such as `addColumn`, in order."""
        return tuple(str(type(each).__struct_config__.tag) for each in self.transaction.events)

    @cached_property
    def sums(self) -> tuple[int, int, int]:
        """What it did to the table: rows, files and bytes more (or less)."""
        facts = [each for each in self.transaction.events if isinstance(each, SnapshotFacts)]
        return (
            sum(each.delta_record_count for each in facts),
            sum(each.delta_file_count for each in facts),
            sum(each.delta_file_size_in_bytes for each in facts),
        )


@frozen(kw_only=True)
class Wanted:
    """Which entries are wanted; what is None does not matter.

    Attributes:
        first: The oldest version.
        last: The newest version.
        since_millis: Not before this time, Unix milliseconds.
        until_millis: Not after it.
        author: A part of who committed, in whatever case.
        kinds: Any of these kinds of events, such as `addColumn`.
        message: A regular expression that is found in the message.
        column_id: Whatever touched the column of this id, or what is inside it.
    """

    first: int = 0
    last: int | None = None
    since_millis: int | None = None
    until_millis: int | None = None
    author: str | None = None
    kinds: frozenset[str] = frozenset()
    message: str | None = None
    column_id: int | None = None

    @cached_property
    def _pattern(self) -> re.Pattern[str] | None:
        if self.message is None:
            return None
        try:
            return re.compile(self.message)
        except re.error as error:
            raise InvalidInputError(
                f"message={self.message!r} is no regular expression: {error}"
            ) from error

    def takes(self, entry: Entry) -> bool:
        """Return whether an entry is wanted, as far as itself goes.

        Raises:
            InvalidInputError: The message is no regular expression.
        """
        since, until, pattern = self.since_millis, self.until_millis, self._pattern
        return (
            (since is None or entry.time_millis >= since)
            and (until is None or entry.time_millis <= until)
            and (not self.kinds or not self.kinds.isdisjoint(entry.kinds))
            and (
                self.author is None or self.author.casefold() in entry.transaction.author.casefold()
            )
            and (pattern is None or pattern.search(entry.transaction.message) is not None)
        )


def entries(log: StreamLog[Any, Any], table: str, wanted: Wanted) -> Iterator[Entry]:
    """Yield a stream's entries that are wanted, newest first.

    Reads backwards, and no further than it is asked: what came before the newest few costs nothing
    until somebody wants it. A column is followed by one pass over the log from its beginning.

    Raises:
        InvalidInputError: The message is no regular expression.
    """
    head = head_state(log).version
    last = head if wanted.last is None else min(wanted.last, head)
    touching = None if wanted.column_id is None else _touching(log, wanted.column_id, last)
    if touching is not None:
        commits: Iterable[Commit[Any]] = map(log.commit_at, reversed(dict(touching)))
        ids = {each for _, each in touching}
    else:
        commits, ids = _backwards(log, wanted.first, last), set()
    for commit in commits:
        if commit.version < wanted.first:
            return
        if wanted.since_millis is not None and commit.time_millis < wanted.since_millis:
            # Nothing takes effect after its commit, and commits' times never go back.
            return
        for transaction in reversed(commit.transactions):
            entry = Entry(table, commit, transaction)
            if (touching is None or transaction.id in ids) and wanted.takes(entry):
                yield entry


def _touching(log: StreamLog[Any, Any], column_id: int, last: int) -> list[tuple[int, str]]:
    lives = Lives(column_id)
    lives.take(read.commit for read in log.commits(0, last))
    return lives.touching


def _backwards(log: StreamLog[Any, Any], first: int, last: int) -> Iterator[Commit[Any]]:
    size = _FIRST_READ
    while last >= first:
        begin = max(first, last - size + 1)
        if size == _MOST_READ:
            begin = max(first, segment_of(last)[0])
        yield from reversed([read.commit for read in log.commits(begin, last)])
        last, size = begin - 1, min(2 * size, _MOST_READ)


def merged(streams: Iterable[Iterator[Entry]]) -> Iterator[Entry]:
    """Yield the entries of several streams in the order of time, newest first."""
    return heapq.merge(*streams, key=lambda each: -each.time_millis)
