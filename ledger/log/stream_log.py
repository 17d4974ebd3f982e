"""An open stream: its head in memory, its history on the store."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from functools import partial
from typing import Any, Final, Generic, TypeVar
from weakref import ref

from msgspec import Raw

from ledger.events.commit import Commit
from ledger.log.checkpoints import Checkpoints, Head
from ledger.log.codec import Codec, Sketch, digest, encode
from ledger.log.commit_queue import BackgroundWorker, register_after_fork
from ledger.log.key_index import KeyList, KeyLookup, KeysOf, tiles
from ledger.log.layout import CHECKPOINT_INTERVAL, Layout
from ledger.log.personal_data import PersonalSidecars
from ledger.log.replay import (
    MOST_KEPT,
    START,
    NewestCommitFiles,
    Passes,
    Position,
    Read,
    Reader,
    skip_no_commit,
)
from ledger.log.segments import SegmentBuffer, Segments, segment_of
from ledger.model.errors import (
    DamagedLogError,
    InvalidInputError,
    NotFoundError,
)
from ledger.observing.telemetry import warn
from ledger.state.stream import Builder, StateLike, Stream
from ledger.stores import Store, Turn
from ledger.stores.wrappers import PrefetchedStore

S = TypeVar("S", bound=StateLike)
E = TypeVar("E")

QUIET_S = 0.02
"""Seconds without a commit after which caches are saved; saving competes for the interpreter."""

PATIENT_S = 1.0
"""Seconds after which caches are saved although commits keep coming."""

BESIDE_OTHERS_S = 5.0
"""Seconds after the last commit of another writer during which writers count as concurrent."""

SURE_FOR_S = 10.0
"""Seconds during which a writer does not check again that its head still exists on the store."""

_FIRST_COMMITS = 3
"""Number of commits, from the checkpoint's on, prefetched together with it from a remote store."""

_REENTERED: Final = "REENTERED"
_LOGGER = "ledger.log"

_open: Final[set[ref[StreamLog[Any, Any]]]] = set()
"""All open streams of this process; a set, since copying one is atomic."""


class _CacheHooks(Generic[E]):
    """Hooks of a log for further caches, set by the code that opened it.

    An object of its own, since the hooks reference the log: a log that referenced itself would stay
    in memory until Python's cyclic garbage collection.

    Attributes:
        keys_of: Returns the index keys of a commit besides its transactions' ids.
        on_boundary: Saves further caches of an interval.
    """

    def __init__(self) -> None:
        self.keys_of: KeysOf[E] = lambda _: ()
        self.on_boundary: Callable[[int], None] = lambda _: None

    def keys_named_in(self, commit: Commit[E]) -> Iterable[str | KeyList]:
        return self.keys_of(commit)


class StreamLog(Generic[S, E]):
    """One stream of commits.

    The head is kept in memory; `refresh` reads the commits that other writers appended since. Safe
    to share between threads.

    Args:
        store: The stream's store.
        root: Its `_ledger` folder.
        stream: Codec and fold of its kind of stream.
        personal: Sidecar files with the texts of transactions; None: on the same store.
    """

    def __init__(
        self,
        store: Store,
        root: str,
        stream: Stream[S, E],
        personal: PersonalSidecars | None = None,
    ) -> None:
        self.store = store
        self.personal = PersonalSidecars(store) if personal is None else personal
        self.layout = Layout.of_fold(root, stream.fold_version)
        self.stream = stream
        self._beside: _CacheHooks[E] = _CacheHooks()
        self.codec: Codec[E] = Codec(stream.event_types)
        self.reader: Reader[E] = Reader(store, self.layout, self.codec)
        self.checkpoints = Checkpoints(
            store, self.layout, stream, partial(_replay, stream, self.reader)
        )
        self._newest = NewestCommitFiles()
        self.warm_reader: Reader[E] = Reader(store, self.layout, self.codec, self._newest)
        self.segments = Segments(store, self.layout)
        self.lookup: KeyLookup[E] = KeyLookup(
            store, self.layout, self.warm_reader, self._beside.keys_named_in
        )
        # Each is written by one thread at a time: readers hold the mutex, and one thread appends.
        self._read_to: Head[S] | None = None
        self._own_head: Head[S] | None = None
        self._due: deque[tuple[Head[S], Sequence[bytes] | None, float]] = deque()
        self._debts = self._asked_for = 0
        self._advanced_s = 0.0
        self._keeper = BackgroundWorker("ledger-caches")
        self._lines = SegmentBuffer()
        self._looked_s: float | None = None
        self._met_others_s: float | None = None
        self._read_in_line: list[Commit[E]] = []
        self.after_fork()
        register_after_fork(self)
        _open.add(ref(self, _open.discard))

    def after_fork(self) -> None:
        """Replace the locks: a forked child has none of the threads that hold them."""
        self._mutex = threading.RLock()
        self._turn = threading.Lock()

    def set_cache_hooks(self, keys_of: KeysOf[E], on_boundary: Callable[[int], None]) -> None:
        """Set the hooks for further caches; neither may hold a strong reference to the log.

        Args:
            keys_of: Returns the index keys of a commit besides its transactions' ids.
            on_boundary: Called after this writer committed a checkpoint's version, to save further
                caches of that interval.
        """
        self._beside.keys_of = keys_of
        self._beside.on_boundary = on_boundary

    @property
    def name(self) -> str:
        """URL of the stream, as in log events."""
        return f"{self.store.url}/{self.layout.root}"

    @property
    def head(self) -> Head[S] | None:
        """The newest commit in memory; None before version 0."""
        read, own_head = self._read_to, self._own_head
        if read is None or own_head is None:
            return read or own_head
        return own_head if own_head.state.version >= read.state.version else read

    def refresh(self) -> S | None:
        """Return the newest state, after reading newer commits; None before version 0."""
        self.catch_up()
        head = self.head
        return head.state if head else None

    def refuse_reentry(self) -> None:
        """Raise if this thread is reading this handle already: waiting would be a deadlock.

        Raises:
            InvalidInputError: A signal handler commits on the handle whose reading it interrupted.
        """
        if self._mutex._is_owned():  # type: ignore[attr-defined]  # noqa: SLF001 - as threading.Condition asks
            raise InvalidInputError(
                f"{self.layout.root}: this thread is reading this very handle; a signal handler or "
                "callback that runs meanwhile cannot commit to it. Nothing was written; set a flag "
                "and commit afterwards, or use a handle of its own",
                kind=_REENTERED,
            )

    def has_concurrent_writers(self) -> bool:
        """Return whether other processes append concurrently on a local store.

        Then writers wait for each other's lock. A remote store has no lock between processes.
        """
        met = self._met_others_s
        is_lately = met is not None and time.monotonic() - met < BESIDE_OTHERS_S
        return is_lately and self.store.is_near

    @property
    def comes_after_others(self) -> bool:
        """True when the next commit follows one of another writer, or others wait to append.

        Otherwise the head is this writer's own commit, which is durable already.
        """
        return self.head is not self._own_head or self.has_concurrent_writers()

    def read_ahead(self) -> list[Commit[E]]:
        """Read and return the commits of concurrent writers, before making a commit.

        Reading costs less than making a commit that loses the race, while all others wait for the
        lock. Commits that were read while waiting for the lock are returned, too, once.
        """
        read, self._read_in_line = self._read_in_line, []
        return [*read, *self.catch_up()] if self.has_concurrent_writers() else read

    def catch_up(self) -> list[Commit[E]]:
        """Read the commits that other writers appended; return them, oldest first."""
        with self._mutex:
            head = self.head
            if head is None:
                return self._open()
            version = head.state.version
            if self._is_surely_missing(version + 1):
                return []
            start = Position(version, head.digest)
            found = self._fold_following_commits(head.state, start, self.reader)
            if found:
                self._met_others_s = time.monotonic()
            return found

    def _is_surely_missing(self, version: int) -> bool:
        """Return whether a version does not exist, if an existence check is worth it; else False.

        Mostly there is no newer commit, and on a local store the check is cheaper than reading.
        With concurrent writers there mostly is one.
        """
        return (
            self.store.is_near
            and not self.has_concurrent_writers()
            and not self.store.exists(self.layout.commit(version))
        )

    def hold_append_lock(
        self, met: Callable[[Sequence[Commit[E]]], None] = lambda _: None
    ) -> AbstractContextManager[Turn | None]:
        """Return a context manager that holds the append lock, in this process and others.

        With concurrent writers, the next one in the queue reads new commits while it waits, so that
        under the lock it has to read one commit, and not as many as there are writers. Caches are
        not saved meanwhile: saving competes for the interpreter, which would prolong the time that
        the lock is held.

        Args:
            met: Called with the commits that were read while waiting; `read_ahead` returns them
                again.
        """
        lock = self.store.lock(self.layout.lock)
        return self._lock_after_queueing(lock, met) if self.has_concurrent_writers() else lock

    @contextmanager
    def _lock_after_queueing(
        self, lock: AbstractContextManager[Turn | None], met: Callable[[Sequence[Commit[E]]], None]
    ) -> Iterator[Turn | None]:
        with self._hold_turn(), ExitStack() as line:
            line.enter_context(self.store.lock(self.layout.line))
            # A failure here is harmless: the commits are read under the lock, or the create loses.
            with suppress(OSError):
                self._read_in_line = self.catch_up()
                met(self._read_in_line)
            with lock as turn:
                line.close()
                yield turn

    @contextmanager
    def _hold_turn(self) -> Iterator[None]:
        # With a timeout: the other thread may wait for a stopped process, or for the network.
        is_mine = self._turn.acquire(timeout=PATIENT_S)
        try:
            yield
        finally:
            if is_mine:
                self._turn.release()

    def _open(self) -> list[Commit[E]]:
        ahead = PrefetchedStore(self.store)
        checkpoints = self.checkpoints.read_through(ahead)
        found = checkpoints.newest(lambda version: ahead.ask(self._keys_read_at_opening(version)))
        start = START
        if found is not None:
            self._check_checkpoint_fits(found, ahead)
            start = Position(found.state.version, found.digest)
            self._read_to = found
        try:
            reader = Reader(ahead, self.layout, self.codec)
            read = self._fold_following_commits(found.state if found else None, start, reader)
        except OSError:
            # Gaps are checked only at the end of opening, so the next call has to open it again.
            self._read_to = None
            raise
        head = self.head
        self.reader.refuse_hidden_gap(head.state.version + 1 if head else 0)
        if head is not None:
            self._refuse_restored_log(head.state.version, found.state.version if found else 0)
        return read

    def _keys_read_at_opening(self, version: int) -> Iterator[str]:
        """Yield the keys that opening reads, given the hinted checkpoint's version; 0: none."""
        layout = self.layout
        if version:
            yield layout.checkpoint(version)
        yield layout.checkpoint(version + CHECKPOINT_INTERVAL)
        yield from layout.commits(range(version, version + _FIRST_COMMITS))

    def _refuse_restored_log(self, version: int, kept: int) -> None:
        """Reject a log that was restored from an older copy while the caches were not.

        Its indexes cover commits that it does not have, and would be used for the commits that take
        their versions. If a checkpoint of the last interval or a later one was found, its check has
        established that already.

        Args:
            version: The newest version of the log.
            kept: The version of the checkpoint that was found; 0: none.
        """
        hundreds = version - version % CHECKPOINT_INTERVAL
        if kept >= hundreds > 0:
            return
        file = self.lookup.named.file(next(tiles(hundreds + CHECKPOINT_INTERVAL)))
        # Other writers may have appended those commits in the meantime.
        if self.store.exists(file) and not self.store.exists(self.layout.commit(version + 1)):
            raise DamagedLogError(
                f"{file} covers commits that the log does not have. Compare it with a backup; "
                f"{self._restored_log_advice()}",
                file,
            )

    def _restored_log_advice(self) -> str:
        root = self.layout.root
        return f"if an older log was restored on purpose, delete {root}/caches: it is rebuilt"

    def recheck_head(self, moment_s: float) -> None:
        """Check, at most every `SURE_FOR_S`, that the head in memory still exists on the store.

        Appending to a commit that was removed meanwhile would make the log unreadable. A busy
        writer does not pay for this; one that was idle pays two requests.

        Args:
            moment_s: The current time of a monotonic clock, in seconds.

        Raises:
            DamagedLogError: The head is missing or another file, or what follows it is missing.
        """
        head, looked = self.head, self._looked_s
        if looked is None or moment_s - looked >= SURE_FOR_S:
            if looked is not None and head is not None:
                # A store that does not answer now is no evidence against the log.
                with suppress(OSError):
                    self._check_head_exists(head)
            # Not reached after an error: the check is repeated until it succeeds.
            self._looked_s = moment_s

    def _check_head_exists(self, head: Head[S]) -> None:
        version = head.state.version
        key = self.layout.commit(version)
        body = self.store.read(key)
        if body is None or digest(body) != head.digest:
            raise DamagedLogError(
                f"{key} was read before and is {'missing' if body is None else 'another file'} "
                "now; nothing was written. Restore it from a backup",
                key,
            )
        self.reader.refuse_hidden_gap(version + 1, strides=(1,))

    def _check_checkpoint_fits(self, found: Head[S], store: Store) -> None:
        key = self.layout.commit(found.state.version)
        body = store.read(key)
        if body is None or digest(body) != found.digest:
            raise DamagedLogError(
                f"{key} is {'missing' if body is None else 'not the file'} that the checkpoint "
                "of that version was made from. Compare it with a backup; "
                f"{self._restored_log_advice()}",
                key,
            )

    def _fold_following_commits(
        self, state: S | None, start: Position, reader: Reader[E]
    ) -> list[Commit[E]]:
        commits: list[Commit[E]] = []
        last: deque[Read[E]] = deque(maxlen=MOST_KEPT)
        # Made at the first commit: mostly there is none.
        builder: Builder[S, E] | None = None
        keeps_lines = not self.segments.is_near
        try:
            for read in reader.after(start):
                commit = read.commit
                builder = builder or self.stream.builder(state)
                self.fold(builder, commit)
                commits.append(commit)
                last.append(read)
                if keeps_lines and self._lines.accepts(commit.version):
                    self._lines.take(commit.version, read.body)
        except OSError:
            # Keep the progress: on a bad network a long log is never read in one go.
            self._set_read_position(builder, commits, last)
            raise
        self._set_read_position(builder, commits, last)
        return commits

    def _set_read_position(
        self,
        builder: Builder[S, E] | None,
        commits: list[Commit[E]],
        last: Sequence[Read[E]],
    ) -> None:
        if builder and last:
            self._newest.keep([(each.commit.version, each.body) for each in last])
            self._read_to = Head(builder.freeze(), last[-1].digest)
            self.lookup.add_commits(commits[-CHECKPOINT_INTERVAL:])

    def fold(self, builder: Builder[S, E], commit: Commit[E]) -> None:
        """Fold a commit of the log.

        Raises:
            DamagedLogError: It contradicts the commits before it, so no writer can have written it.
        """
        try:
            builder.commit(commit)
        except InvalidInputError as error:
            if error.kind == _REENTERED:
                # Raised by a signal handler that interrupted this reading.
                raise
            raise self.contradiction(commit, error) from error

    def contradiction(self, commit: Commit[E], error: InvalidInputError) -> DamagedLogError:
        """Return the error for a commit of the log that contradicts the commits before it."""
        key = self.layout.commit(commit.version)
        return DamagedLogError(f"{key} contradicts the commits before it: {error}", key)

    def accept_own_commit(self, head: Head[S], commit: Commit[E]) -> None:
        """Make a commit that this writer created the new head."""
        # Before the head moves, so that threads which see the new head need not read the commit.
        self.lookup.add_commits([commit])
        self._own_head = head
        self._advanced_s = time.monotonic()
        if not self.segments.is_near:
            body = encode(commit)
            self._newest.keep([(commit.version, body)])
            if self._lines.accepts(commit.version):
                self._lines.take(commit.version, body)
        if commit.version % CHECKPOINT_INTERVAL == 0 and commit.version:
            # Now, since the next commit may begin a segment before the caches are saved.
            lines = self._lines.of(*segment_of(commit.version))
            self._due.append((head, lines, self._advanced_s))
            self._debts += 1

    def request_cache_save(self) -> None:
        """Request that due caches are saved in the background; return at once."""
        queued_merges = self._debts + self.lookup.queued_merges
        if queued_merges != self._asked_for:
            # Once each: a busy writer has due caches most of the time.
            self._keeper.ask(self.save_next_caches, self._quiet_seconds_left)
            self._asked_for = queued_merges

    def _quiet_seconds_left(self) -> float:
        """Return the seconds by which saving due caches is still delayed, for a quiet period."""
        if not self._due:
            return 0.0
        now_s = time.monotonic()
        return min(self._advanced_s + QUIET_S, self._due[0][2] + PATIENT_S) - now_s

    def wait_for_caches(self, timeout_s: float = 10.0) -> bool:
        """Wait until all due caches of this writer are saved; return False on timeout."""
        return self._keeper.wait(timeout_s)

    def save_next_caches(self) -> bool:
        """Save the checkpoint and the other caches of one interval that this writer completed.

        Returns:
            True unless there was none.
        """
        with self._hold_turn():
            return self._save_next_interval()

    def _save_next_interval(self) -> bool:
        try:
            head, lines, _ = self._due.popleft()
        except IndexError:
            return self._merge_next_index()
        version = head.state.version
        try:
            self.checkpoints.save(head)
            self.lookup.save(version)
            self._beside.on_boundary(version)
            self.segments.save(version, lines)
        except Exception as error:  # noqa: BLE001 - a missing cache does not affect the commit
            # It costs time only.
            warn(_LOGGER, "checkpoint_failed", root=self.layout.root, version=version, error=error)
        return True

    def _merge_next_index(self) -> bool:
        try:
            return self.lookup.merge_next()
        except Exception as error:  # noqa: BLE001 - lookups use the unmerged parts
            warn(_LOGGER, "merging_failed", root=self.layout.root, error=error)
            return True

    def last_named(self, key: str) -> Iterator[int]:
        """Yield the versions up to the head that may name `key`, newest first."""
        head = self.head
        if head is not None:
            yield from self.lookup.last_named(key, head.state.version)

    def named_among(self, keys: Iterable[str]) -> list[str]:
        """Return those of `keys` that commits up to the head may name."""
        head = self.head
        return [] if head is None else self.lookup.among(keys, head.state.version)

    def with_id(self, commit_id: str) -> Iterator[int]:
        """Yield the versions up to the head that may contain a transaction id, newest first."""
        head = self.head
        if head is not None:
            yield from self.lookup.with_id(commit_id, head.state.version)

    def commit_at(self, version: int) -> Commit[E]:
        """Return one commit.

        Raises:
            NotFoundError: The head in memory is older, or the version is negative.
        """
        head = self.head
        if head is None or not 0 <= version <= head.state.version:
            newest = head.state.version if head else "none"
            raise NotFoundError(f"version {version} does not exist; the newest is {newest}")
        return next(self.reader.after(Position(version - 1, ""), version)).commit

    def commits(self, first: int, last: int) -> Iterator[Read[E]]:
        """Yield the commits `first` to `last`, both included; they must exist."""
        return self.reader.after(Position(first - 1, ""), last)

    def commits_with_raw_events(self, first: int, last: int) -> Iterator[Commit[Raw]]:
        """Yield the commits `first` to `last`, which must exist, with events as undecoded JSON.

        For callers that pass events on: decoding them takes most of the time of reading.
        """
        return self.reader.decode_with_raw_events(first, last)

    def find_matching_commits(
        self,
        first: int,
        last: int,
        wanted: Callable[[Sketch], bool],
        passes: Passes = skip_no_commit,
    ) -> Iterator[tuple[Sketch, Commit[E]]]:
        """Yield the commits `first` to `last`, which must exist, that match `wanted`.

        The events of other commits are not decoded.

        Args:
            first: The first version.
            last: The last version.
            wanted: Returns whether a commit is to be yielded.
            passes: Tells which commits to skip without decoding.
        """
        return self._decode_matching(self.reader.sketches(first, last, passes), wanted)

    def commits_at(
        self, versions: Sequence[int], wanted: Callable[[Sketch], bool]
    ) -> Iterator[tuple[Sketch, Commit[E]]]:
        """Yield those of a few commits that match `wanted`, read from their own files."""
        return self._decode_matching(self.reader.sketches_of(versions), wanted)

    def _decode_matching(
        self, found: Iterable[tuple[Sketch, bytes]], wanted: Callable[[Sketch], bool]
    ) -> Iterator[tuple[Sketch, Commit[E]]]:
        for sketch, body in found:
            if wanted(sketch):
                yield sketch, self.codec.decode(body, self.layout.commit(sketch.version))

    def commits_via_cache(self, first: int, last: int) -> Iterator[Read[E]]:
        """Yield the commits `first` to `last`, the newest from memory where they are cached.

        `commits` reads all of them from the store.
        """
        return self.warm_reader.after(Position(first - 1, ""), last)


def _replay(stream: Stream[S, E], reader: Reader[E], version: int) -> S:
    """Return the state of a version, folded from the log's beginning."""
    builder = stream.builder(None)
    for read in reader.after(START, version):
        builder.commit(read.commit)
    return builder.freeze()


def wait_for_caches(store_url: str, timeout_s: float) -> bool:
    """Wait until the due caches of all streams in a store are saved; return False on timeout.

    A cache that cannot be saved is logged, and not tried again.

    Args:
        store_url: The URL of the store, as `Store.url` returns it.
        timeout_s: Seconds to wait, for all streams together.
    """
    deadline_s = time.monotonic() + timeout_s
    owed = [
        log for each in list(_open) if (log := each()) is not None and log.store.url == store_url
    ]
    are_saved = [log.wait_for_caches(deadline_s - time.monotonic()) for log in owed]
    return all(are_saved)
