"""An open stream: its head in memory, its history on the store."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from typing import Any, Final, Generic, TypeVar
from weakref import ref

from msgspec import Raw

from ledger.events.commit import Commit
from ledger.log.checkpoints import Checkpoints, Head
from ledger.log.codec import Codec, Sketch, digest, encode
from ledger.log.commit_queue import Worker, begin_anew_after_fork
from ledger.log.key_index import KeysOf, Lookup, tiles
from ledger.log.layout import CHECKPOINT_INTERVAL, Layout
from ledger.log.personal_data import Personal
from ledger.log.replay import MOST_KEPT, START, Newest, Passes, Position, Read, Reader, nothing
from ledger.log.segments import Lines, Segments, segment_of
from ledger.model.errors import (
    DamagedLogError,
    InvalidInputError,
    NotFoundError,
)
from ledger.observing.telemetry import warn
from ledger.state.stream import Builder, StateLike, Stream
from ledger.stores import Store, Turn
from ledger.stores.wrappers import AskedAhead

S = TypeVar("S", bound=StateLike)
E = TypeVar("E")

QUIET_S = 0.02
"""Caches are saved when no commit has landed for so long, since saving takes the interpreter."""

PATIENT_S = 1.0
"""Where commits never cease, caches are saved beside them after so long."""

BESIDE_OTHERS_S = 5.0
"""Whoever met a commit of others within so long is taken to write beside them."""

SURE_FOR_S = 10.0
"""For so long a writer does not look again whether its head still stands on the store."""

_FIRST_COMMITS = 3
"""So many commits, from the checkpoint's on, are asked for along with it where each is a request.
"""

_REENTERED: Final = "REENTERED"
_LOGGER = "ledger.log"

_open: Final[set[ref[StreamLog[Any, Any]]]] = set()
"""All streams that are open in this process; a set, whose copy nothing else comes between."""


class _Beside(Generic[E]):
    """What else is kept beside a log, as whoever opened it says.

    Apart from the log, which what is kept there asks: a log that holds itself by a few steps would
    stay until Python looks for such circles.

    Attributes:
        keys_of: What the key index remembers of a commit, beside its transactions' ids.
        on_boundary: Saves the caches of an interval.
    """

    def __init__(self) -> None:
        self.keys_of: KeysOf[E] = lambda _: ()
        self.on_boundary: Callable[[int], None] = lambda _: None

    def named_in(self, commit: Commit[E]) -> Iterable[str]:
        return self.keys_of(commit)


class StreamLog(Generic[S, E]):
    """One stream of commits.

    The head is kept in memory; `refresh` reads what others appended since. Safe to share between
    threads.

    Args:
        store: Where the stream is.
        root: Its `_ledger` folder.
        stream: What its events mean.
        personal: What lines do not hold of who and why; None: it is on the same store.
    """

    def __init__(
        self,
        store: Store,
        root: str,
        stream: Stream[S, E],
        personal: Personal | None = None,
    ) -> None:
        self.store = store
        self.personal = Personal(store) if personal is None else personal
        self.layout = Layout.of_fold(root, stream.fold_version)
        self.stream = stream
        self._beside: _Beside[E] = _Beside()
        self.checkpoints = Checkpoints(store, self.layout, stream)
        self.codec: Codec[E] = Codec(stream.event_types)
        self.reader: Reader[E] = Reader(store, self.layout, self.codec)
        self._newest = Newest()
        self.warm_reader: Reader[E] = Reader(store, self.layout, self.codec, self._newest)
        self.segments = Segments(store, self.layout)
        self.lookup: Lookup[E] = Lookup(store, self.layout, self.warm_reader, self._beside.named_in)
        # Each has one writer at a time: who reads on holds the mutex, and one thread appends.
        self._read_to: Head[S] | None = None
        self._landed: Head[S] | None = None
        self._due: deque[tuple[Head[S], Sequence[bytes] | None, float]] = deque()
        self._debts = self._asked_for = 0
        self._advanced_s = 0.0
        self._keeper = Worker("ledger-caches")
        self._lines = Lines()
        self._looked_s: float | None = None
        self._met_others_s: float | None = None
        self._read_in_line: list[Commit[E]] = []
        self.after_fork()
        begin_anew_after_fork(self)
        _open.add(ref(self, _open.discard))

    def after_fork(self) -> None:
        """Forget who was at work: a child has none of its parent's threads."""
        self._mutex = threading.RLock()
        self._turn = threading.Lock()

    def remember(self, keys_of: KeysOf[E], on_boundary: Callable[[int], None]) -> None:
        """Say what else to keep beside the log; a log that is held by either stays with it.

        Args:
            keys_of: What the key index remembers of a commit, beside its transactions' ids.
            on_boundary: Called after this writer committed a checkpoint's version, to save other
                caches of that interval.
        """
        self._beside.keys_of = keys_of
        self._beside.on_boundary = on_boundary

    @property
    def name(self) -> str:
        """Where the stream is: what it is called in what is told."""
        return f"{self.store.url}/{self.layout.root}"

    @property
    def head(self) -> Head[S] | None:
        """The newest commit known, without looking; None before version 0."""
        read, landed = self._read_to, self._landed
        if read is None or landed is None:
            return read or landed
        return landed if landed.state.version >= read.state.version else read

    def refresh(self) -> S | None:
        """Return the newest state, after reading what was appended since the last look."""
        self.catch_up()
        head = self.head
        return head.state if head else None

    def refuse_reentry(self) -> None:
        """Refuse to wait for what cannot come: this thread was interrupted while it read.

        Raises:
            InvalidInputError: A signal handler asks for a commit of the handle that it stopped.
        """
        if self._mutex._is_owned():  # type: ignore[attr-defined]  # noqa: SLF001 - as threading.Condition asks
            raise InvalidInputError(
                f"{self.layout.root}: this thread is reading this very handle; a signal handler or "
                "callback that runs meanwhile cannot commit to it. Nothing was written; set a flag "
                "and commit afterwards, or use a handle of its own",
                kind=_REENTERED,
            )

    def is_beside_others(self) -> bool:
        """Whether others append, too, to a store that is near: each waits for who holds the lock.

        Far away nobody waits for a lock, and what is asked of the store takes longer.
        """
        met = self._met_others_s
        is_lately = met is not None and time.monotonic() - met < BESIDE_OTHERS_S
        return is_lately and self.store.is_near

    @property
    def comes_after_others(self) -> bool:
        """Whether what is appended next follows what others wrote, or others wait to follow it.

        What this writer landed himself is durable, and nobody is let in before that.
        """
        return self.head is not self._landed or self.is_beside_others()

    def read_ahead(self) -> list[Commit[E]]:
        """Read what others appended, if there is anything, where it would win over what is made.

        A look costs less than making a commit that loses, while all others wait for the lock. What
        was read in line is returned, too, once.
        """
        read, self._read_in_line = self._read_in_line, []
        return [*read, *self.catch_up()] if self.is_beside_others() else read

    def catch_up(self) -> list[Commit[E]]:
        """Move the head forward over what others appended; return it, oldest first."""
        with self._mutex:
            head = self.head
            if head is None:
                return self._open()
            version = head.state.version
            if self._finds_nothing(version + 1):
                return []
            start = Position(version, head.digest)
            found = self._follow(head.state, start, self.reader)
            if found:
                self._met_others_s = time.monotonic()
            return found

    def _finds_nothing(self, version: int) -> bool:
        """Whether a version is not there, as a look tells where that is cheaper than reading it.

        Mostly there is nothing new, and to find that out is a good part of small commits; beside
        others there mostly is.
        """
        return (
            self.store.is_near
            and not self.is_beside_others()
            and not self.store.exists(self.layout.commit(version))
        )

    def locked(
        self, met: Callable[[Sequence[Commit[E]]], None] = lambda _: None
    ) -> AbstractContextManager[Turn | None]:
        """Hold the lock of all who append, in this process and in others.

        Where others do, whoever is next in line reads meanwhile what is new: all who wait then
        wait for the reading of one commit, and not of as many as there are writers. Caches are
        saved before or after, and not meanwhile: saving takes the interpreter, and whoever got it
        only now and then would hold the lock for all of them.

        Args:
            met: Called in line with what was read there, which `read_ahead` returns again.
        """
        lock = self.store.lock(self.layout.lock)
        return self._in_line(lock, met) if self.is_beside_others() else lock

    @contextmanager
    def _in_line(
        self, lock: AbstractContextManager[Turn | None], met: Callable[[Sequence[Commit[E]]], None]
    ) -> Iterator[Turn | None]:
        with self._taking_turns(), ExitStack() as line:
            line.enter_context(self.store.lock(self.layout.line))
            # Who cannot read now does so when it is his turn, or finds out by trying.
            with suppress(OSError):
                self._read_in_line = self.catch_up()
                met(self._read_in_line)
            with lock as turn:
                line.close()
                yield turn

    @contextmanager
    def _taking_turns(self) -> Iterator[None]:
        # Not for ever: the other one may wait for a process that was stopped, or for the network.
        is_mine = self._turn.acquire(timeout=PATIENT_S)
        try:
            yield
        finally:
            if is_mine:
                self._turn.release()

    def _open(self) -> list[Commit[E]]:
        ahead = AskedAhead(self.store)
        checkpoints = self.checkpoints.through(ahead)
        found = checkpoints.newest(lambda version: ahead.ask(self._first_looks(version)))
        start = START
        if found is not None:
            self._check_fits(found, ahead)
            start = Position(found.state.version, found.digest)
            self._read_to = found
        try:
            reader = Reader(ahead, self.layout, self.codec)
            read = self._follow(found.state if found else None, start, reader)
        except OSError:
            # Whoever opens looks for holes at the end, and does so again.
            self._read_to = None
            raise
        head = self.head
        self.reader.refuse_hole(head.state.version + 1 if head else 0)
        if head is not None:
            self._refuse_put_back(head.state.version, found.state.version if found else 0)
        return read

    def _first_looks(self, version: int) -> Iterator[str]:
        """Yield what whoever opens looks for, where a checkpoint is hinted at; 0: none is."""
        layout = self.layout
        if version:
            yield layout.checkpoint(version)
        yield layout.checkpoint(version + CHECKPOINT_INTERVAL)
        yield from layout.commits(range(version, version + _FIRST_COMMITS))

    def _refuse_put_back(self, version: int, kept: int) -> None:
        """Refuse a log beside which indexes are of commits that it does not have.

        Who asks them what was named would be told of those, and not of the ones that come. While a
        checkpoint of its last hundred is there, or a later one, that one is what tells.

        Args:
            version: The newest commit.
            kept: That of the checkpoint that was found.
        """
        hundreds = version - version % CHECKPOINT_INTERVAL
        if kept >= hundreds > 0:
            return
        file = self.lookup.named.file(next(tiles(hundreds + CHECKPOINT_INTERVAL)))
        # Others may have come so far in the meantime.
        if self.store.exists(file) and not self.store.exists(self.layout.commit(version + 1)):
            raise DamagedLogError(
                f"{file} is of commits that the log does not have. Compare it with a backup; "
                f"{self._put_back()}",
                file,
            )

    def _put_back(self) -> str:
        root = self.layout.root
        return f"where an older log was put back for good, delete {root}/caches: it is made again"

    def look_again(self, moment_s: float) -> None:
        """Check, now and then, that a log that is held in memory still stands on the store.

        Whoever goes on from a commit that somebody removed meanwhile makes a log that nobody can
        read. A writer at work does not pay for this; one that was idle pays two requests.

        Args:
            moment_s: Now, in seconds by a monotonic clock.

        Raises:
            DamagedLogError: The head is missing or another file, or what follows it is missing.
        """
        head, looked = self.head, self._looked_s
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

    def _check_fits(self, found: Head[S], store: Store) -> None:
        key = self.layout.commit(found.state.version)
        body = store.read(key)
        if body is None or digest(body) != found.digest:
            raise DamagedLogError(
                f"{key} is {'missing' if body is None else 'not the file'} that the checkpoint "
                f"beside it was made from. Compare it with a backup; {self._put_back()}",
                key,
            )

    def _follow(self, state: S | None, start: Position, reader: Reader[E]) -> list[Commit[E]]:
        commits: list[Commit[E]] = []
        last: deque[Read[E]] = deque(maxlen=MOST_KEPT)
        # Mostly there is nothing new.
        builder: Builder[S, E] | None = None
        keeps_lines = not self.segments.is_near
        try:
            for read in reader.after(start):
                commit = read.commit
                builder = builder or self.stream.builder(state)
                self.fold(builder, commit)
                commits.append(commit)
                last.append(read)
                if keeps_lines and self._lines.wants(commit.version):
                    self._lines.take(commit.version, read.body)
        except OSError:
            # On a bad network nobody would ever get through a long way in one go.
            self._reached(builder, commits, last)
            raise
        self._reached(builder, commits, last)
        return commits

    def _reached(
        self,
        builder: Builder[S, E] | None,
        commits: list[Commit[E]],
        last: Sequence[Read[E]],
    ) -> None:
        if builder and last:
            self._newest.keep([(each.commit.version, each.body) for each in last])
            self._read_to = Head(builder.freeze(), last[-1].digest)
            self.lookup.note(commits[-CHECKPOINT_INTERVAL:])

    def fold(self, builder: Builder[S, E], commit: Commit[E]) -> None:
        """Fold a commit that stands in the log.

        Raises:
            DamagedLogError: It contradicts what came before, so it cannot have been written so.
        """
        try:
            builder.commit(commit)
        except InvalidInputError as error:
            if error.kind == _REENTERED:
                # A signal handler's, who stopped this very reading.
                raise
            raise self.contradiction(commit, error) from error

    def contradiction(self, commit: Commit[E], error: InvalidInputError) -> DamagedLogError:
        """Return the error of a commit that stands in the log and cannot have been written so."""
        key = self.layout.commit(commit.version)
        return DamagedLogError(f"{key} contradicts the commits before it: {error}", key)

    def advance(self, head: Head[S], commit: Commit[E]) -> None:
        """Take a commit that this writer landed as the new head."""
        # Before the head moves, so that nobody who sees that has to read the commit.
        self.lookup.note([commit])
        self._landed = head
        self._advanced_s = time.monotonic()
        if not self.segments.is_near:
            body = encode(commit)
            self._newest.keep([(commit.version, body)])
            if self._lines.wants(commit.version):
                self._lines.take(commit.version, body)
        if commit.version % CHECKPOINT_INTERVAL == 0 and commit.version:
            # Now, since the next commit may begin a segment before the caches are saved.
            lines = self._lines.of(*segment_of(commit.version))
            self._due.append((head, lines, self._advanced_s))
            self._debts += 1

    def keep_caches(self) -> None:
        """Have the caches saved that this writer owes; nobody waits for them."""
        debts = self._debts + self.lookup.debts
        if debts != self._asked_for:
            # Once each: a writer at work owes something most of the time.
            self._keeper.ask(self.keep_next, self._lull_s)
            self._asked_for = debts

    def _lull_s(self) -> float:
        """Return how long the caches that are due may wait, in seconds, for commits to cease."""
        if not self._due:
            return 0.0
        now_s = time.monotonic()
        return min(self._advanced_s + QUIET_S, self._due[0][2] + PATIENT_S) - now_s

    def wait_for_caches(self, timeout_s: float = 10.0) -> bool:
        """Return once all caches that this writer owes are saved, or False after so long."""
        return self._keeper.wait(timeout_s)

    def keep_next(self) -> bool:
        """Save the checkpoint and the other caches of one interval that this writer completed.

        Returns:
            Whether there was one.
        """
        with self._taking_turns():
            return self._keep_next()

    def _keep_next(self) -> bool:
        try:
            head, lines, _ = self._due.popleft()
        except IndexError:
            return self._merge_next()
        version = head.state.version
        try:
            self.checkpoints.save(head)
            self.lookup.save(version)
            self._beside.on_boundary(version)
            self.segments.save(version, lines)
        except Exception as error:  # noqa: BLE001 - the commit has landed, whatever a cache does
            # One that is missing costs time.
            warn(_LOGGER, "checkpoint_failed", root=self.layout.root, version=version, error=error)
        return True

    def _merge_next(self) -> bool:
        try:
            return self.lookup.merge_next()
        except Exception as error:  # noqa: BLE001 - what is not merged is asked in its parts
            warn(_LOGGER, "merging_failed", root=self.layout.root, error=error)
            return True

    def last_named(self, key: str) -> Iterator[int]:
        """Yield the versions up to the head that may have named `key`, newest first."""
        head = self.head
        if head is not None:
            yield from self.lookup.last_named(key, head.state.version)

    def named_among(self, keys: Iterable[str]) -> list[str]:
        """Return those of some keys that commits up to the head may have named."""
        head = self.head
        return [] if head is None else self.lookup.among(keys, head.state.version)

    def with_id(self, commit_id: str) -> Iterator[int]:
        """Yield the versions up to the head that may hold a transaction of an id, newest first."""
        head = self.head
        if head is not None:
            yield from self.lookup.with_id(commit_id, head.state.version)

    def commit_at(self, version: int) -> Commit[E]:
        """Return one commit.

        Raises:
            NotFoundError: The stream does not have that version (yet).
        """
        head = self.head
        if head is None or not 0 <= version <= head.state.version:
            newest = head.state.version if head else "none"
            raise NotFoundError(f"version {version} does not exist; the newest is {newest}")
        return next(self.reader.after(Position(version - 1, ""), version)).commit

    def commits(self, first: int, last: int) -> Iterator[Read[E]]:
        """Yield the commits `first` to `last`, both included; they must exist."""
        return self.reader.after(Position(first - 1, ""), last)

    def unread_commits(self, first: int, last: int) -> Iterator[Commit[Raw]]:
        """Yield the commits `first` to `last`, which must exist, their events as they stand there.

        For whoever hands events on: decoding them takes most of the time of reading.
        """
        return self.reader.unread(first, last)

    def some_commits(
        self, first: int, last: int, wanted: Callable[[Sketch], bool], passes: Passes = nothing
    ) -> Iterator[tuple[Sketch, Commit[E]]]:
        """Yield those of the commits `first` to `last` that are wanted, which must exist.

        What the events of others say is not decoded.

        Args:
            first: The first version.
            last: The last version.
            wanted: Whether a commit is wanted.
            passes: Which are surely not, as `Passes` says.
        """
        return self._among(self.reader.sketches(first, last, passes), wanted)

    def commits_of(
        self, versions: Sequence[int], wanted: Callable[[Sketch], bool]
    ) -> Iterator[tuple[Sketch, Commit[E]]]:
        """Yield those of some commits that are wanted; so few that segments are not worth it."""
        return self._among(self.reader.sketches_of(versions), wanted)

    def _among(
        self, found: Iterable[tuple[Sketch, bytes]], wanted: Callable[[Sketch], bool]
    ) -> Iterator[tuple[Sketch, Commit[E]]]:
        for sketch, body in found:
            if wanted(sketch):
                yield sketch, self.codec.decode(body, self.layout.commit(sketch.version))

    def known_commits(self, first: int, last: int) -> Iterator[Read[E]]:
        """Yield the commits `first` to `last`; the newest as this handle met them before.

        For what is decided: whoever wants to know what the store has now reads `commits`.
        """
        return self.warm_reader.after(Position(first - 1, ""), last)


def wait_for_caches(store_url: str, timeout_s: float) -> bool:
    """Return once the caches that this process owes a store's streams are saved, or False.

    One that cannot be saved is told in the log of the program, and owed no longer.

    Args:
        store_url: The store's, as `Store.url` says it.
        timeout_s: Give up after so many seconds, for all streams together.
    """
    deadline_s = time.monotonic() + timeout_s
    owed = [
        log for each in list(_open) if (log := each()) is not None and log.store.url == store_url
    ]
    are_saved = [log.wait_for_caches(deadline_s - time.monotonic()) for log in owed]
    return all(are_saved)
