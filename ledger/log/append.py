"""The one retry loop: decide, encode, create; on a loss read the winners and decide again.

The outcome of a create is never guessed (`settle`), and nothing is written that a reader could
not decode.
"""

from __future__ import annotations

from typing import Generic, TypeVar

from attrs import field, frozen
from msgspec import UNSET

from ledger.events.commit import FORMAT_VERSION, Commit, Transaction
from ledger.evolution.stream import Intent, Landed, StateLike
from ledger.log.checkpoint import Head
from ledger.log.codec import digest, encode
from ledger.log.request import Appended, NowMillis, Request
from ledger.log.settle import Draft, Patience, make_sure, settle, unknown
from ledger.log.stream_log import StreamLog, given_id_key
from ledger.model.errors import (
    CommitConflictError,
    DamagedLogError,
    InvalidInputError,
    StoreError,
    UpgradeRequiredError,
)

S = TypeVar("S", bound=StateLike)
E = TypeVar("E")

CLOCK_TOLERANCE_MILLIS = 60_000


@frozen
class Proposal(Generic[S, E]):
    """A commit ready to be created, and the head that it would make."""

    commit: Commit[E]
    draft: Draft
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
            InvalidInputError: The intent contradicts the newest state, or the commit id was used
                for something else; nothing was written.
            CommitConflictError: A winner took the same cell, or `expect_version` was passed.
            CommitUnknownError: The store gave no answer; the commit may have landed.
            StoreError: This machine's clock is behind the log's.
        """
        with self.log.mutex:
            with self.log.store.lock(self.log.layout.lock):
                if self.log.head is None or request.expect_version is not None:
                    self.log.catch_up()
                # Others may have landed since the caller looked, under the same id, too.
                done = self._known(request) or self._contend(intent, request)
            # After the lock: others need not wait for this writer's caches.
            self.log.keep_due()
            return done

    def landed_before(self, request: Request) -> Appended[S] | None:
        """Return what a caller-given commit id came to before, if it did.

        To be asked before anything is planned: what is there already may contradict the request.

        Raises:
            InvalidInputError: The id was used before, for something else.
        """
        if request.asked is None:
            return None
        with self.log.mutex:
            self.log.catch_up()
            return self._known(request)

    def _known(self, request: Request) -> Appended[S] | None:
        if request.asked is None:
            return None
        for version in self.log.last_named(given_id_key(request.commit_id)):
            found = self._holding(self.log.commit_at(version), request)
            if found is not None:
                return found
        return None

    def _holding(self, commit: Commit[E], request: Request) -> Appended[S] | None:
        """Return the transaction's outcome if this commit holds it."""
        for transaction in commit.transactions:
            if transaction.id != request.commit_id:
                continue
            asked = None if transaction.asked is UNSET else transaction.asked
            if asked != request.asked:
                raise InvalidInputError(
                    f"commit id {request.commit_id!r} was used for something else in version "
                    f"{commit.version}; take a new id for a new request"
                )
            return self.acknowledge(commit.version, request)
        return None

    def acknowledge(self, version: int, request: Request) -> Appended[S]:
        """Return what was found by reading, once it is durable: its writer may have died before.

        Raises:
            CommitUnknownError: The store does not answer.
        """
        key = self.log.layout.commit(version)
        commit_id = request.commit_id
        make_sure(self.log.store, key, self.patience, version=version, commit_id=commit_id)
        return Appended(self._state(), version, repeated=True)

    def _contend(self, intent: Intent[S, E], request: Request) -> Appended[S]:
        winners = self._since(intent.base_version)
        for _ in self.patience.attempts():
            self._check_expected(request)
            state = self.log.head.state if self.log.head else None
            decided = intent.decide(state, tuple(winners))
            if isinstance(decided, Landed):
                return self.acknowledge(decided.version, request)
            proposal = self._propose(decided, request)
            if settle(self.log.store, proposal.draft, self.patience):
                self.log.advance(proposal.head, proposal.commit)
                return Appended(proposal.head.state, proposal.commit.version)
            won = self._read_winners(proposal.draft)
            winners += won
            for commit in won:
                mine = self._holding(commit, request)
                if mine is not None:
                    return Appended(mine.state, mine.version)
        raise self._given_up(request)

    def _read_winners(self, draft: Draft) -> list[Commit[E]]:
        """Return what landed instead; the one who cannot read it does not know whether it is his.

        Raises:
            CommitUnknownError: The store does not answer.
        """
        failure: OSError | None = None
        for _ in self.patience.attempts():
            try:
                return self.log.catch_up()
            except OSError as error:
                failure = error
        raise unknown(draft.key, draft.version, draft.commit_id) from failure

    def _given_up(self, request: Request) -> CommitConflictError:
        version = self._state().version
        return CommitConflictError(
            f"commit {request.commit_id} gave up after {self.patience.deadline_s} s: other "
            "writers were always faster; nothing was written, try again",
            f"version {version}",
            version,
        )

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
        if not 0 <= expected < newest:
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

    def _propose(self, events: tuple[E, ...], request: Request) -> Proposal[S, E]:
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
        key = self.log.layout.commit(commit.version)
        body = self._readable(commit, key)
        draft = Draft(key, body, commit.version, request.commit_id)
        return Proposal(commit, draft, Head(builder.freeze(), digest(body)))

    def _readable(self, commit: Commit[E], key: str) -> bytes:
        """Return a commit's bytes, which readers can decode: Python checks no types."""
        try:
            body = encode(commit)
            self.log.codec.decode(body, key)
        except (DamagedLogError, UpgradeRequiredError) as error:
            cause = error.__cause__ or error
            raise InvalidInputError(
                f"what was asked cannot stand in the log: {cause}; nothing was written"
            ) from error
        except (TypeError, ValueError, OverflowError) as error:
            raise InvalidInputError(
                f"what was asked cannot be written as JSON: {error}; nothing was written"
            ) from error
        return body

    def _time(self, previous: int) -> int:
        now = self.now_millis()
        if previous > now + CLOCK_TOLERANCE_MILLIS:
            raise StoreError(
                f"this machine's clock is {(previous - now) / 1000:.0f} s behind the newest "
                "commit; set it, then try again"
            )
        return max(now, previous + 1)
