"""A stream opened: its head in memory, its history on the store."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Generic, TypeVar

from attrs import frozen
from msgspec import UNSET

from ledger.events.commit import OLDEST_FORMAT, Commit
from ledger.evolution.stream import Builder, StateLike, Stream
from ledger.log.checkpoint import Checkpoints, Head
from ledger.log.codec import Codec, digest, encode
from ledger.log.gate import Gate
from ledger.log.key_index import KeyIndexes
from ledger.log.layout import CHECKPOINT_INTERVAL, Layout
from ledger.log.lines import Lines
from ledger.log.notice import warn
from ledger.log.replay import START, Position, Read, Reader
from ledger.log.segment import segment_of
from ledger.log.segments import Segments
from ledger.model.errors import (
    DamagedLogError,
    InvalidInputError,
    LedgerError,
    NotFoundError,
)
from ledger.stores import Store

S = TypeVar("S", bound=StateLike)
E = TypeVar("E")

SURE_FOR_S = 10.0
"""For so long a writer does not look again whether its head still stands on the store."""

_LOGGER = "ledger.log"


def given_id_key(commit_id: str) -> str:
    """Return what the key index remembers of a caller-given commit id."""
    return f"id:{commit_id}"


def given_ids(commit: Commit[E]) -> Iterator[str]:
    """Yield the keys of a commit's caller-given ids."""
    for transaction in commit.transactions:
        if transaction.asked is not UNSET:
            yield given_id_key(transaction.id)


@frozen
class Recent(Generic[E]):
    """The commits after the last checkpoint boundary, by the keys that they named."""

    boundary: int
    last: int
    by_key: dict[str, int]


class StreamLog(Generic[S, E]):
    """One stream of commits.

    The head is kept in memory; `refresh` reads what others appended since. Safe to share between
    threads.

    Args:
        store: Where the stream is.
        root: Its `_ledger` folder.
        stream: What its events mean.
        gate: Which format its ledger takes; None where nobody has asked the ledger.
    """

    def __init__(
        self, store: Store, root: str, stream: Stream[S, E], gate: Gate | None = None
    ) -> None:
        self.store = store
        self.gate = Gate() if gate is None else gate
        self.layout = Layout.of_fold(root, stream.fold_version)
        self.stream = stream
        self.mutex = threading.RLock()
        self._keys_of: Callable[[Commit[E]], Iterable[str]] = lambda _: ()
        self._on_boundary: Callable[[int], None] = lambda _: None
        self.checkpoints = Checkpoints(store, self.layout, stream, self.gate)
        self.codec: Codec[E] = Codec(stream.event_types)
        self.reader: Reader[E] = Reader(store, self.layout, self.codec)
        self.segments = Segments(store, self.layout)
        self.indexes: KeyIndexes[E] = KeyIndexes(store, self.layout, self.reader, self._all_keys)
        self._head: Head[S] | None = None
        self._recent: Recent[E] | None = None
        self._naming = threading.Lock()
        self._due: tuple[Head[S], Sequence[bytes] | None] | None = None
        self._lines = Lines()
        self._looked_s: float | None = None

    def remember(
        self, keys_of: Callable[[Commit[E]], Iterable[str]], on_boundary: Callable[[int], None]
    ) -> None:
        """Say what else to keep beside the log.

        Args:
            keys_of: What the key index remembers of a commit, beside caller-given ids.
            on_boundary: Called after this writer committed a checkpoint's version, to save other
                caches of that interval.
        """
        self._keys_of = keys_of
        self._on_boundary = on_boundary

    @property
    def head(self) -> Head[S] | None:
        """The newest commit known, without looking; None before version 0."""
        return self._head

    @property
    def format(self) -> int:
        """The newest format of commits that the stream takes, as far as is known."""
        return max(self.gate.format, self._head.state.format if self._head else OLDEST_FORMAT)

    def refresh(self) -> S | None:
        """Return the newest state, after reading what was appended since the last look."""
        with self.mutex:
            self.catch_up()
            return self._head.state if self._head else None

    def catch_up(self) -> list[Commit[E]]:
        """Move the head forward over what others appended; return it, oldest first."""
        if self._head is None:
            return self._open()
        builder = self.stream.builder(self._head.state)
        return self._follow(builder, Position(self._head.state.version, self._head.digest))

    def _open(self) -> list[Commit[E]]:
        found = self.checkpoints.newest()
        start = START
        if found is not None:
            self._check_fits(found)
            start = Position(found.state.version, found.digest)
            self._head = found
        read = self._follow(self.stream.builder(found.state if found else None), start)
        self.reader.refuse_hole(self._head.state.version + 1 if self._head else 0)
        return read

    def look_again(self, moment_s: float) -> None:
        """Check, now and then, that a log that is held in memory still stands on the store.

        Whoever goes on from a commit that somebody removed meanwhile makes a log that nobody can
        read. A writer at work does not pay for this; one that was idle pays two requests.

        Args:
            moment_s: Now, in seconds by a monotonic clock.

        Raises:
            DamagedLogError: The head is missing or another file, or what follows it is missing.
        """
        head, looked = self._head, self._looked_s
        if looked is None or moment_s - looked >= SURE_FOR_S:
            if looked is not None and head is not None:
                # A store that does not answer now says nothing about the log.
                with suppress(OSError):
                    self._check_stands(head)
            # What is refused now is refused until it stands there again.
            self._looked_s = moment_s

    def _check_stands(self, head: Head[S]) -> None:
        version = head.state.version
        key = self.layout.commit(version)
        body = self.store.read(key)
        if body is None or digest(body) != head.digest:
            raise DamagedLogError(
                f"{key} was read before and is {'missing' if body is None else 'another file'} "
                "now; nothing was written. Restore it from a backup",
                key,
            )
        self.reader.refuse_hole(version + 1, strides=(1,))

    def _check_fits(self, found: Head[S]) -> None:
        key = self.layout.commit(found.state.version)
        body = self.store.read(key)
        if body is None or digest(body) != found.digest:
            raise DamagedLogError(
                f"{key} is {'missing' if body is None else 'not the file'} that the checkpoint "
                "beside it was made from. Compare it with a backup",
                key,
            )

    def _follow(self, builder: Builder[S, E], start: Position) -> list[Commit[E]]:
        commits: list[Commit[E]] = []
        newest = start.digest
        for read in self.reader.after(start):
            self.fold(builder, read.commit)
            commits.append(read.commit)
            newest = read.digest
            if not self.segments.is_near and self._lines.wants(read.commit.version):
                self._lines.take(read.commit.version, read.body)
        if commits:
            self._head = Head(builder.freeze(), newest)
        return commits

    def fold(self, builder: Builder[S, E], commit: Commit[E]) -> None:
        """Fold a commit that stands in the log.

        Raises:
            DamagedLogError: It contradicts what came before, so it cannot have been written so.
        """
        try:
            builder.commit(commit)
        except InvalidInputError as error:
            raise self.contradiction(commit, error) from error

    def contradiction(self, commit: Commit[E], error: InvalidInputError) -> DamagedLogError:
        """Return the error of a commit that stands in the log and cannot have been written so."""
        key = self.layout.commit(commit.version)
        return DamagedLogError(f"{key} contradicts the commits before it: {error}", key)

    def advance(self, head: Head[S], commit: Commit[E]) -> None:
        """Take a commit that this writer landed as the new head."""
        recent = self._recent
        if recent is not None and recent.last == commit.version - 1:
            # It has landed: what cannot be remembered now is read again later.
            with suppress(OSError, LedgerError):
                named = dict.fromkeys(self._all_keys(commit), commit.version)
                with self._naming:
                    recent.by_key.update(named)
                # Before the head moves, so that nobody who sees that has to read the commit.
                self._recent = Recent(recent.boundary, commit.version, recent.by_key)
        self._head = head
        if not self.segments.is_near and self._lines.wants(commit.version):
            self._lines.take(commit.version, encode(commit))
        if commit.version % CHECKPOINT_INTERVAL == 0 and commit.version:
            # Now, since the next commit may begin a segment before the caches are saved.
            self._due = head, self._lines.of(*segment_of(commit.version))

    @property
    def owes_caches(self) -> bool:
        """Whether this writer completed an interval and has not saved its caches."""
        return self._due is not None

    def keep_due(self) -> None:
        """Save the checkpoint and the other caches of an interval that this writer completed."""
        due, self._due = self._due, None
        if due is None:
            return
        head, lines = due
        version = head.state.version
        try:
            self.checkpoints.save(head)
            self.indexes.save(version)
            self._on_boundary(version)
            self.segments.save(version, lines)
        except Exception as error:  # noqa: BLE001 - the commit has landed, whatever a cache does
            # One that is missing costs time.
            warn(_LOGGER, "checkpoint_failed", root=self.layout.root, version=version, error=error)

    def _all_keys(self, commit: Commit[E]) -> Iterator[str]:
        yield from given_ids(commit)
        yield from self._keys_of(commit)

    def last_named(self, key: str) -> Iterator[int]:
        """Yield the versions up to the head that may have named `key`, newest first."""
        head = self._head
        if head is None:
            return
        recent = self._recent_keys(key, head.state.version)
        newest = recent.by_key.get(key)
        if newest is not None:
            yield newest
            # Who goes on looked at an older head: of its commits, only the newest is remembered.
            yield from self._named_before(newest, key, recent.boundary)
        yield from self.indexes.find(key, recent.boundary)

    def _named_before(self, version: int, key: str, boundary: int) -> Iterator[int]:
        """Yield the versions between a boundary and `version` that named `key`, newest first."""
        start = Position(boundary or -1, "")
        read = self.reader.after(start, version - 1) if version - 1 > start.version else ()
        found = [each.commit.version for each in read if key in self._all_keys(each.commit)]
        yield from reversed(found)

    def _recent_keys(self, key: str, last: int) -> Recent[E]:
        """Return the keys of the commits up to `last`; of later ones none that is `key`."""
        boundary = last - last % CHECKPOINT_INTERVAL
        recent = self._recent
        if recent is None or recent.boundary != boundary:
            recent = Recent(boundary, boundary or -1, {})
        elif recent.last >= last and recent.by_key.get(key, -1) <= last:
            return recent
        elif recent.last > last:
            # Somebody named it since the caller looked, and only the newest is remembered.
            recent = Recent(boundary, boundary or -1, {})
        by_key = recent.by_key
        if recent.last < last:
            named: dict[str, int] = {}
            for read in self.reader.after(Position(recent.last, ""), last):
                named.update(dict.fromkeys(self._all_keys(read.commit), read.commit.version))
            with self._naming:
                # Another thread may have read later commits meanwhile.
                by_key.update({k: v for k, v in named.items() if by_key.get(k, -1) < v})
        found: Recent[E] = Recent(boundary, last, by_key)
        newest = self._recent
        # Whoever leads may have come further meanwhile.
        if newest is None or newest.last < last:
            self._recent = found
        return found

    def commit_at(self, version: int) -> Commit[E]:
        """Return one commit.

        Raises:
            NotFoundError: The stream does not have that version (yet).
        """
        head = self._head
        if head is None or not 0 <= version <= head.state.version:
            newest = head.state.version if head else "none"
            raise NotFoundError(f"version {version} does not exist; the newest is {newest}")
        return next(self.reader.after(Position(version - 1, ""), version)).commit

    def commits(self, first: int, last: int) -> Iterator[Read[E]]:
        """Yield the commits `first` to `last`, both included; they must exist."""
        return self.reader.after(Position(first - 1, ""), last)
