"""The one retry loop: decide, encode, create; on a loss read the winners and decide again.

The outcome of a create is never guessed. Whatever went wrong, the file itself is read back: it is
mine, or another's, or not there, and only in the last case the same bytes are sent again to the
same version. When not even that can be found out, the outcome is raised as unknown.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Generic, TypeVar

from attrs import field, frozen
from msgspec import UNSET

from ledger.events.commit import FORMAT_VERSION, Commit, Transaction
from ledger.evolution.stream import Intent, StateLike
from ledger.log.checkpoint import Head
from ledger.log.codec import digest, encode
from ledger.log.request import Appended, NowMillis, Request
from ledger.log.stream_log import StreamLog, given_id_key
from ledger.model.errors import (
    CommitConflictError,
    CommitUnknownError,
    InvalidInputError,
    StoreError,
)

S = TypeVar("S", bound=StateLike)
E = TypeVar("E")

CLOCK_TOLERANCE_MILLIS = 60_000


@frozen
class Patience:
    """How long a writer goes on.

    Attributes:
        deadline_s: After so many seconds a losing or unanswered writer gives up.
        first_wait_s: The longest first pause; it doubles up to `longest_wait_s`.
        sleep: Waits, in seconds.
        uniform: Jitter: a number between its two arguments.
    """

    deadline_s: float = 60.0
    first_wait_s: float = 0.002
    longest_wait_s: float = 0.5
    sleep: Callable[[float], None] = time.sleep
    monotonic: Callable[[], float] = time.monotonic
    uniform: Callable[[float, float], float] = random.uniform

    def pause(self, attempt: int) -> None:
        """Wait a random time, longer with every attempt."""
        longest = min(self.longest_wait_s, self.first_wait_s * 2 ** min(attempt, 12))
        self.sleep(self.uniform(0, longest))


@frozen
class Draft(Generic[S, E]):
    """A commit ready to be created, and the head that it would make."""

    commit: Commit[E]
    body: bytes
    head: Head[S]


@frozen
class Appender(Generic[S, E]):
    """Appends to one stream.

    Attributes:
        log: The stream.
        now_millis: The clock.
        patience: How long to go on.
    """

    log: StreamLog[S, E]
    now_millis: NowMillis
    patience: Patience = field(factory=Patience)

    def append(self, intent: Intent[S, E], request: Request) -> Appended[S]:
        """Append one transaction; it is durable when this returns.

        Raises:
            InvalidChangeError: The intent contradicts the newest state; nothing was written.
            CommitConflictError: A winner took the same cell, or `expect_version` was passed.
            CommitUnknownError: The store gave no answer; the commit may have landed.
            StoreError: This machine's clock is behind the log's.
        """
        with self.log.mutex:
            with self.log.store.lock(self.log.layout.lock):
                if self.log.head is None or request.expect_version is not None:
                    self.log.catch_up()
                done = self._contend(intent, request)
            # After the lock: others need not wait for this writer's caches.
            self.log.keep_due()
            return done

    def _contend(self, intent: Intent[S, E], request: Request) -> Appended[S]:
        give_up = self.patience.monotonic() + self.patience.deadline_s
        winners = self._since(intent.base_version)
        attempt = 0
        while True:
            self._check_expected(request)
            state = self.log.head.state if self.log.head else None
            draft = self._draft(intent.decide(state, tuple(winners)), request)
            if self._create(draft, request, give_up):
                self.log.advance(draft.head, draft.commit)
                return Appended(draft.head.state, draft.commit.version)
            won = self.log.catch_up()
            winners += won
            mine = next((each for each in won if _holds(each, request.commit_id)), None)
            if mine is not None:
                self.log.store.confirm(self.log.layout.commit(mine.version))
                return Appended(self._state(), mine.version)
            attempt += 1
            if self.patience.monotonic() > give_up:
                raise CommitConflictError(
                    f"gave up after {attempt} attempts and {self.patience.deadline_s} s: other "
                    "writers were always faster; nothing was written, try again",
                    f"version {draft.commit.version}",
                    draft.commit.version,
                )
            if attempt > 1:
                # Whoever holds the lock wins the second time; where nobody can lock, spread out.
                self.patience.pause(attempt)

    def _since(self, base: int | None) -> list[Commit[E]]:
        newest = self.log.head.state.version if self.log.head else -1
        if base is None or base >= newest:
            return []
        return [read.commit for read in self.log.commits(base + 1, newest)]

    def _state(self) -> S:
        head = self.log.head
        if head is None:
            raise AssertionError("a stream that was appended to has a head")
        return head.state

    def _check_expected(self, request: Request) -> None:
        expected = request.expect_version
        newest = self.log.head.state.version if self.log.head else -1
        if expected is None or expected == newest:
            return
        if expected > newest:
            raise InvalidInputError(f"expect_version={expected}, but the newest is {newest}")
        winner = self.log.commit_at(expected + 1)
        author = winner.transactions[0].author
        raise CommitConflictError(
            f"expected version {expected}, but {author or 'somebody'} committed version "
            f"{winner.version} since; read it, then ask again with expect_version={newest}",
            "expect_version",
            winner.version,
            author,
        )

    def _draft(self, events: tuple[E, ...], request: Request) -> Draft[S, E]:
        head = self.log.head
        moment = self._time(head.state.time_millis if head else 0)
        effective = request.effective_millis
        transaction: Transaction[E] = Transaction(
            id=request.commit_id,
            author=request.author,
            message=request.message,
            properties=dict(sorted(request.properties.items())),
            asked=UNSET if request.asked is None else request.asked,
            effective_time_millis=UNSET if effective is None else effective,
            events=events,
        )
        commit: Commit[E] = Commit(
            format=FORMAT_VERSION,
            version=head.state.version + 1 if head else 0,
            time_millis=moment,
            parent=head.digest if head else UNSET,
            transactions=(transaction,),
        )
        # Folding before writing: what contradicts the state is refused before any I/O.
        builder = self.log.stream.builder(head.state if head else None)
        builder.commit(commit)
        body = encode(commit)
        return Draft(commit, body, Head(builder.freeze(), digest(body)))

    def _time(self, previous: int) -> int:
        now = self.now_millis()
        if previous > now + CLOCK_TOLERANCE_MILLIS:
            raise StoreError(
                f"this machine's clock is {(previous - now) / 1000:.0f} s behind the newest "
                "commit; set it, then try again"
            )
        return max(now, previous + 1)

    def _create(self, draft: Draft[S, E], request: Request, give_up: float) -> bool:
        key = self.log.layout.commit(draft.commit.version)
        attempt = 0
        while True:
            try:
                return self.log.store.create(key, draft.body)
            except OSError as error:
                outcome = self._read_back(key, draft.body)
                if outcome is not None:
                    return outcome
                attempt += 1
                if self.patience.monotonic() > give_up:
                    raise CommitUnknownError(
                        f"{key}: the store gave no answer and could not be read back; commit "
                        f"{request.commit_id} may have landed. Look for it in the log before "
                        "you ask again; asking again with commit_id= is safe",
                        request.commit_id,
                        draft.commit.version,
                    ) from error
                self.patience.pause(attempt)

    def _read_back(self, key: str, body: bytes) -> bool | None:
        """Return whether the file is mine; None when that cannot be said (absent, unreadable)."""
        try:
            found = self.log.store.confirm(key)
        except OSError:
            return None
        return None if found is None else found == body

    def landed_before(self, request: Request) -> Appended[S] | None:
        """Return what a caller-given commit id came to before, if it did.

        To be asked before anything is planned: what is there already may contradict the request.

        Raises:
            InvalidInputError: The id was used before, for something else.
        """
        if request.asked is None:
            return None
        self.log.refresh()
        for version in self.log.last_named(given_id_key(request.commit_id)):
            for transaction in self.log.commit_at(version).transactions:
                if transaction.id != request.commit_id or transaction.asked is UNSET:
                    continue
                if transaction.asked != request.asked:
                    raise InvalidInputError(
                        f"commit id {request.commit_id!r} was used for something else in version "
                        f"{version}; take a new id for a new request"
                    )
                return Appended(self._state(), version, repeated=True)
        return None


def _holds(commit: Commit[E], commit_id: str) -> bool:
    return any(each.id == commit_id for each in commit.transactions)
