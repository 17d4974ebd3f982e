"""The one retry loop: decide, encode, create; after a loss read the winners and decide again.

Concurrent requests on a handle are batched by its committer thread (`group.commit_queue`), in the
order in which they were submitted. The outcome of a create is never guessed (`landing`), and
nothing is written that a reader could not decode.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import groupby
from typing import Generic, TypeVar, assert_never

from attrs import field, frozen
from msgspec import Struct

from ledger.events.commit import Commit, said_by
from ledger.evolution.stream import Intent, Landed, Postponed, StateLike
from ledger.log.clock import StreamClock
from ledger.log.group.commit_queue import CommitQueue, PendingCommit, twin
from ledger.log.group.open_commit import OpenCommit, Proposal
from ledger.log.group.winners import KeptCommits, Winners
from ledger.log.landing import (
    Committed,
    Landings,
    Lost,
    Outcome,
    Unknown,
    after_loss,
    land,
)
from ledger.log.outside.commit_texts import KeptTexts
from ledger.log.patience import Patience
from ledger.log.request import Appended, NowMillis, Request
from ledger.log.stream_log import StreamLog
from ledger.model.errors import (
    CommitConflictError,
    InvalidInputError,
    LedgerError,
)
from ledger.observing.told import tell_retry
from ledger.observing.tracing import is_observed
from ledger.stores import Turn

S = TypeVar("S", bound=StateLike)
E = TypeVar("E")


class _HeldLock(Struct, Generic[S, E], frozen=True):
    """A lock that is held.

    Attributes:
        batch: The pending commits that it is held for.
        turn: As the store has it.
    """

    batch: Sequence[PendingCommit[S, E]]
    turn: Turn | None

    def creates(self, key: str, joined: Sequence[PendingCommit[S, E]]) -> None:
        """Release it once a file is linked, where that commit is the last that it is held for."""
        if self.turn is None:
            return
        if len(joined) == sum(not each.is_answered for each in self.batch):
            self.turn.ends_with(key)
        else:
            self.turn.goes_on_with(key)


@frozen
class Appender(Generic[S, E]):
    """Appends to one stream.

    Attributes:
        log: The stream.
        now_millis: The clock.
        patience: How long to go on.
        check: Raises for a commit that must not be created at its time.
        landings: Which requests have landed in the stream.
    """

    log: StreamLog[S, E]
    now_millis: NowMillis
    patience: Patience = field(factory=Patience)
    check: Callable[[Commit[E]], None] = lambda _: None
    landings: Landings[S, E] = field(init=False, eq=False, repr=False)
    _clock: StreamClock = field(init=False, eq=False, repr=False)
    _kept: KeptCommits[E] = field(factory=KeptCommits, init=False, eq=False, repr=False)
    _queue: CommitQueue[S, E] = field(factory=CommitQueue, init=False, eq=False, repr=False)

    @landings.default
    def _landings_of_stream(self) -> Landings[S, E]:
        return Landings(self.log, self.patience)

    @_clock.default
    def _clock_of_stream(self) -> StreamClock:
        return StreamClock(self.log, self.now_millis, self.patience)

    @property
    def is_outrun(self) -> bool:
        """Whether a commit submitted now is most likely decided on a later state than this one."""
        return self._queue.is_busy or self.log.is_beside_others()

    def submit(self, intent: Intent[S, E], request: Request) -> PendingCommit[S, E]:
        """Hand one transaction to the committer thread and return at once.

        Raises:
            InvalidInputError: A signal handler or callback submits while its thread reads this
                handle.
            StoreError: The store rejects a file with author and message that the commit would
                name.
        """
        self.log.refuse_reentry()
        head = self.log.head
        # Here, so that concurrent callers do not wait for one another.
        keeps = head is not None and head.state.keeps_outside
        pending = PendingCommit(intent, request, self._keep(request) if keeps else None)
        return self._queue.submit(pending, self._commit_batch)

    def append(self, intent: Intent[S, E], request: Request) -> Appended[S]:
        """Append one transaction; it is durable when this returns.

        An exception that interrupts the caller meanwhile is raised as it is, with a note that
        names the commit id; the commit goes on.

        Raises:
            InvalidInputError: The intent contradicts the newest state, or the commit id was used
                for something else; nothing was written.
            CommitConflictError: A winner took the same cell, or `expect_version` was passed.
            CommitUnknownError: The store gave no answer; the commit may have landed.
            StoreError: The store refuses it, or this machine's clock is not the store's
                (`StreamClock`); nothing was written.
        """
        return self.submit(intent, request).wait()

    def _keep(self, request: Request) -> KeptTexts:
        return self.log.personal.keep(request, self.now_millis(), self.patience)

    def _commit_batch(self, batch: Sequence[PendingCommit[S, E]]) -> None:
        """Answer pending commits, and those that are submitted while the lock is waited for."""
        with self.log.locked(lambda read: _meet(batch, read)) as turn:
            held = _HeldLock([*batch, *self._queue.take()], turn)
            self._commit_in_order(held)
        self.log.keep_caches()
        for each in held.batch:
            self._forget_unused(each)

    def _forget_unused(self, pending: PendingCommit[S, E]) -> None:
        """Delete author and message that were written for a commit which does not name them."""
        kept = pending.kept
        if kept is None:
            return
        appended = pending.appended
        # What is left behind is found by `maintain`.
        with suppress(OSError, LedgerError):
            if appended is None:
                is_unused = isinstance(pending.error, InvalidInputError | CommitConflictError)
            else:
                is_unused = appended.repeated and not self._names(appended, kept)
            if is_unused:
                self.log.personal.forget(kept)

    def _names(self, appended: Appended[S], kept: KeptTexts) -> bool:
        there = self.log.commit_at(appended.version).transactions
        return any(each.outside == kept.outside for each in there)

    def _commit_in_order(self, held: _HeldLock[S, E]) -> None:
        for together in _in_order(held.batch):
            try:
                self._commit_together(together, held)
            except Exception as error:  # noqa: BLE001 - each waiter raises it
                for each in together:
                    if not each.is_answered:
                        each.fail(twin(error))

    def _commit_together(self, batch: list[PendingCommit[S, E]], held: _HeldLock[S, E]) -> None:
        if self.log.head is None or batch[0].request.expect_version is not None:
            self.log.catch_up()
        else:
            self.log.look_again(self.patience.monotonic())
        # First, so that what others read on meanwhile is looked for in one of the two.
        winners: Winners[E] = Winners(self.log, self._kept)
        # What cannot be read now is found out by trying to create.
        with suppress(OSError):
            winners.learn(self.log.read_ahead())
        for each in batch:
            # It may have landed before, under an id that the caller was told.
            self._answer(each, self.landings.known)
        pending = [each for each in batch if not each.is_answered]
        for _ in self.patience.attempts() if pending else ():
            self._attempt(pending, winners, held)
            pending = [each for each in pending if not each.is_answered]
            if not pending:
                # Before the next attempt, which waits first, while others wait for the lock.
                return
        for each in pending:
            each.fail(self._given_up(each.request))

    def _answer(
        self, pending: PendingCommit[S, E], look: Callable[[Request], Appended[S] | None]
    ) -> None:
        try:
            found = look(pending.request)
        except LedgerError as error:
            pending.fail(error)
        else:
            if found is not None:
                pending.succeed(found)

    def _attempt(
        self, batch: list[PendingCommit[S, E]], winners: Winners[E], held: _HeldLock[S, E]
    ) -> None:
        """Try to land one commit with all that fits into it."""
        head = self.log.head
        opened = OpenCommit(self.log, head, self._clock.next(head), self.check)
        joined = [each for each in batch if self._joins(each, opened, winners)]
        if not joined:
            return
        proposal = opened.proposal()
        if self.log.comes_after_others:
            held.creates(proposal.file.key, joined)
        outcome = self._outcome(proposal, winners)
        match outcome:
            case Committed():
                self._take(proposal, joined)
                for each in batch:
                    if not each.is_answered:
                        each.confirm_doubt()
                        self._answer(
                            each, lambda request: self.landings.beside(request, proposal.commit)
                        )
                self._kept.keep(proposal.commit)
            case Lost():
                for each in batch:
                    self._answer(
                        each,
                        lambda request: self.landings.among(
                            request, winners.since(None), proposal.commit
                        ),
                    )
                self._tell_loss(outcome, joined)
            case Unknown():
                for each in joined:
                    each.fail(outcome.told(each.request.commit_id))
            case _:
                assert_never(outcome)

    def _tell_loss(self, lost: Lost, joined: list[PendingCommit[S, E]]) -> None:
        again = [each.attempts for each in joined if not each.is_answered]
        if again and is_observed():
            tell_retry(self.log.name, lost.version, max(again), len(again))

    def _outcome(self, proposal: Proposal[S, E], winners: Winners[E]) -> Outcome:
        store, file = self.log.store, proposal.file
        try:
            outcome = land(store, file, self.patience)
            if isinstance(outcome, Lost):
                outcome = after_loss(store, file, self.patience, lambda: self._read_on(winners))
        except LedgerError:
            raise
        except Exception as error:  # noqa: BLE001 - a store that breaks its contract says nothing
            return Unknown(file, error)
        return outcome

    def _read_on(self, winners: Winners[E]) -> None:
        winners.learn(self.log.catch_up())
        winners.since(None)

    def _take(self, proposal: Proposal[S, E], joined: list[PendingCommit[S, E]]) -> None:
        """Take a commit that has landed as the new head."""
        self.log.advance(proposal.head, proposal.commit)
        for each in joined:
            each.succeed(
                Appended(proposal.head.state, proposal.commit.version, attempts=each.attempts)
            )

    def _joins(
        self, pending: PendingCommit[S, E], opened: OpenCommit[S, E], winners: Winners[E]
    ) -> bool:
        request, intent = pending.request, pending.intent
        pending.doubt(None)
        pending.attempts += 1
        if opened.is_full or opened.holds(request.commit_id):
            return False
        try:
            self._check_expected(request)
            since = winners.since(intent.base_version, opened.version - 1)
            if not opened.is_empty:
                since.append(opened.commit())
            decided = intent.decide(opened.state(), tuple(since))
            if isinstance(decided, Landed):
                self._acknowledge_landed(pending, decided, opened)
                return False
            if pending.kept is None and opened.keeps_outside(request):
                pending.kept = self._keep(request)
            opened.join(decided, request, pending.kept)
        except Postponed:
            return False
        except CommitConflictError as error:
            self._refuse(pending, self._named(error), opened)
            return False
        except Exception as error:  # noqa: BLE001 - its own caller raises it
            self._refuse(pending, error, opened)
            return False
        return True

    def _refuse(
        self, pending: PendingCommit[S, E], error: Exception, opened: OpenCommit[S, E]
    ) -> None:
        if opened.is_empty:
            pending.fail(error)
        else:
            # Those before it may not be committed; then it is decided again.
            pending.doubt(error)

    def _named(self, error: CommitConflictError) -> CommitConflictError:
        """Return a conflict that names its winner, where the log says it outside of the line."""
        said = error.author or ""
        name = self.log.personal.name(said)
        if name == said:
            return error
        told = error.message.replace(said, name)
        return CommitConflictError(told, error.cell, error.version, name, error.winner)

    def _acknowledge_landed(
        self, pending: PendingCommit[S, E], landed: Landed, opened: OpenCommit[S, E]
    ) -> None:
        if landed.version >= opened.version:
            raise Postponed
        pending.succeed(self.landings.acknowledge(landed.version, pending.request))

    def _given_up(self, request: Request) -> CommitConflictError:
        version = self.landings.state().version
        return CommitConflictError(
            f"commit {request.commit_id} gave up after {self.patience.deadline_s} s: other "
            "writers were always faster; nothing was written, try again",
            f"version {version}",
            version,
        )

    def _check_expected(self, request: Request) -> None:
        expected = request.expect_version
        newest = self.log.head.state.version if self.log.head else -1
        if expected is None or expected == newest:
            return
        if not 0 <= expected < newest:
            raise InvalidInputError(f"expect_version={expected}, but the newest is {newest}")
        winner = self.log.commit_at(expected + 1)
        author = self.log.personal.name(said_by(winner.transactions[0]))
        raise CommitConflictError(
            f"expected version {expected}, but {author or 'somebody'} committed version "
            f"{winner.version} since; read it, then ask again with expect_version={newest}",
            "expect_version",
            winner.version,
            author,
        )


def _meet(batch: Sequence[PendingCommit[S, E]], read: Sequence[Commit[E]]) -> None:
    for each in batch if read else ():
        # It is asked again, and answered, where it is decided.
        with suppress(OSError, LedgerError):
            each.intent.meet(read)


def _in_order(batch: Sequence[PendingCommit[S, E]]) -> Iterator[list[PendingCommit[S, E]]]:
    """Yield a batch in its order, split where a transaction needs a commit of its own."""
    for is_single, some in groupby(batch, key=lambda each: each.needs_own_commit):
        if is_single:
            yield from ([each] for each in some)
        else:
            yield list(some)
