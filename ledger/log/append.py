"""The one retry loop: decide, encode, create; on a loss read the winners and decide again.

Transactions that threads of one process ask for at the same time ride in one commit, in the order
in which they came. The outcome of a create is never guessed (`settle`), and nothing is written
that a reader could not decode.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import groupby
from typing import Generic, TypeVar

from attrs import field, frozen

from ledger.events.commit import Commit
from ledger.evolution.stream import Intent, Landed, Postponed, StateLike
from ledger.log.clock import StreamClock
from ledger.log.entry import Entry, twin
from ledger.log.open_commit import OpenCommit
from ledger.log.request import Appended, NowMillis, Request
from ledger.log.settle import Draft, Patience, make_sure, settle, unknown
from ledger.log.stream_log import StreamLog, given_id_key
from ledger.log.waiting import Waiting
from ledger.log.winners import KeptCommits, Winners, holds
from ledger.model.errors import (
    CommitConflictError,
    CommitUnknownError,
    InvalidInputError,
    LedgerError,
)

S = TypeVar("S", bound=StateLike)
E = TypeVar("E")


@frozen
class Appender(Generic[S, E]):
    """Appends to one stream.

    Attributes:
        log: The stream.
        now_millis: The clock.
        patience: How long to go on.
        check: Raises for a commit that must not be created at its time.
    """

    log: StreamLog[S, E]
    now_millis: NowMillis
    patience: Patience = field(factory=Patience)
    check: Callable[[Commit[E]], None] = lambda _: None
    _waiting: Waiting[S, E] = field(factory=Waiting, init=False, eq=False, repr=False)
    _clock: StreamClock = field(init=False, eq=False, repr=False)
    _kept: KeptCommits[E] = field(factory=KeptCommits, init=False, eq=False, repr=False)

    @_clock.default
    def _clock_of_stream(self) -> StreamClock:
        return StreamClock(self.log, self.now_millis, self.patience)

    def append(self, intent: Intent[S, E], request: Request) -> Appended[S]:
        """Append one transaction; it is durable when this returns.

        Raises:
            InvalidInputError: The intent contradicts the newest state, or the commit id was used
                for something else; nothing was written.
            CommitConflictError: A winner took the same cell, or `expect_version` was passed.
            CommitUnknownError: The store gave no answer; the commit may have landed.
            StoreError: This machine's clock is not the store's (`StreamClock`).
        """
        entry = Entry(intent, request)
        try:
            self._waiting.come(entry)
            if not entry.settled:
                self._lead(entry)
        finally:
            self._waiting.left(entry)
        return entry.outcome()

    def _lead(self, own: Entry[S, E]) -> None:
        """Settle every entry that waits, this thread's own among them."""
        entries: list[Entry[S, E]] = []
        try:
            with self.log.mutex:
                entries = self._waiting.gathered()
                with self.log.store.lock(self.log.layout.lock):
                    # Whoever came while another process held the lock rides, too.
                    entries += self._waiting.gathered()
                    for together in _in_order(entries):
                        self._settle(together)
        except Exception as error:  # noqa: BLE001 - each raises it in a thread of its own
            for each in entries:
                if each.settled:
                    continue
                if each.unsure is not None:
                    self._fail_unsure(each, error)
                else:
                    each.fail(error if each is own else twin(error))
        finally:
            # What else is raised ends this thread alone; the others wait for another leader.
            self._waiting.hand_over(each for each in entries if each.settled)
        # After the others went on: they need not wait for this writer's caches.
        if self.log.owes_caches:
            with self.log.mutex:
                self.log.keep_due()

    def _settle(self, entries: list[Entry[S, E]]) -> None:
        if self.log.head is None or entries[0].request.expect_version is not None:
            self.log.catch_up()
        else:
            self.log.look_again(self.patience.monotonic())
        for entry in entries:
            # Others may have landed since the caller looked, under the same id, too.
            self._answer(entry, self._known)
        winners: Winners[E] = Winners(self.log, self._kept)
        for entry in entries:
            self._look_for(entry, winners)
        pending = [each for each in entries if not each.settled]
        for _ in self.patience.attempts() if pending else ():
            self._attempt(pending, winners)
            pending = [each for each in pending if not each.settled]
            if not pending:
                # Before the next attempt, which waits first, while others wait for the lock.
                return
        for each in pending:
            each.fail(self._given_up(each.request))

    def _look_for(self, entry: Entry[S, E], winners: Winners[E]) -> None:
        """Find out whether an entry landed whose leader died; others may have read it since."""
        if entry.unsure is None or entry.settled:
            return
        winners.look_behind(entry.unsure)
        try:
            winners.learn(self.log.catch_up())
            self._answer(entry, lambda request: self._mine(request, winners))
        except (OSError, LedgerError) as error:
            self._fail_unsure(entry, error)
        entry.unsure = None

    def _fail_unsure(self, entry: Entry[S, E], error: Exception) -> None:
        version, commit_id = entry.unsure or 0, entry.request.commit_id
        told = unknown(self.log.layout.commit(version), version, commit_id)
        told.__cause__ = error
        entry.fail(told)

    def _answer(self, entry: Entry[S, E], look: Callable[[Request], Appended[S] | None]) -> None:
        try:
            found = look(entry.request)
        except LedgerError as error:
            entry.fail(error)
        else:
            if found is not None:
                entry.done(found)

    def _attempt(self, entries: list[Entry[S, E]], winners: Winners[E]) -> None:
        """Try to land one commit with all that fits into it."""
        opened = OpenCommit(self.log, self._clock.next(), self.check)
        joined = [each for each in entries if self._joins(each, opened, winners)]
        if not joined:
            return
        proposal = opened.proposal()
        try:
            landed = settle(self.log.store, proposal.draft, self.patience)
            if not landed:
                landed = self._read_winners(proposal.draft, winners)
        except CommitUnknownError as error:
            for each in joined:
                each.fail(_unknown_to(each, error))
            return
        if not landed:
            for each in entries:
                self._answer(each, lambda request: self._mine(request, winners))
            return
        # Before the head moves: whoever leads after a death looks for the rest behind the head.
        for each in joined:
            each.done(Appended(proposal.head.state, proposal.commit.version))
        self.log.advance(proposal.head, proposal.commit)
        self._kept.keep(proposal.commit)
        for each in entries:
            if not each.settled:
                each.believe()
                self._answer(each, lambda request: self._mine(request, winners))

    def _joins(self, entry: Entry[S, E], opened: OpenCommit[S, E], winners: Winners[E]) -> bool:
        request, intent = entry.request, entry.intent
        entry.doubt(None)
        if opened.is_full or opened.holds(request.commit_id):
            return False
        try:
            self._check_expected(request)
            since = winners.since(intent.base_version)
            if not opened.is_empty:
                since.append(opened.commit())
            decided = intent.decide(opened.state(), tuple(since))
            if isinstance(decided, Landed):
                self._acknowledge_landed(entry, decided, opened)
                return False
            opened.join(decided, request)
            entry.tried = opened.version if entry.tried is None else entry.tried
        except Postponed:
            return False
        except Exception as error:  # noqa: BLE001 - what one's intent raises is his alone
            if opened.is_empty:
                entry.fail(error)
            else:
                # Those before it may not land, and then it is decided anew.
                entry.doubt(error)
            return False
        return True

    def _acknowledge_landed(
        self, entry: Entry[S, E], landed: Landed, opened: OpenCommit[S, E]
    ) -> None:
        if landed.version >= opened.version:
            raise Postponed
        entry.done(self.acknowledge(landed.version, entry.request))

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
            if holds(self.log.commit_at(version), request):
                return self.acknowledge(version, request)
        return None

    def _mine(self, request: Request, winners: Winners[E]) -> Appended[S] | None:
        version = winners.holding(request)
        if version is None:
            return None
        return Appended(self.acknowledge(version, request).state, version)

    def acknowledge(self, version: int, request: Request) -> Appended[S]:
        """Return what was found by reading, once it is durable: its writer may have died before.

        Raises:
            CommitUnknownError: The store does not answer.
        """
        key = self.log.layout.commit(version)
        commit_id = request.commit_id
        make_sure(self.log.store, key, self.patience, version=version, commit_id=commit_id)
        return Appended(self._state(), version, repeated=True)

    def _read_winners(self, draft: Draft, winners: Winners[E]) -> bool:
        """Read what landed instead; who cannot read it does not know whether it is his.

        Returns:
            Whether it is his after all, and what follows it cannot be read.

        Raises:
            LedgerError: What landed is damaged, or a newer version wrote it.
            CommitUnknownError: The store does not answer.
        """
        failure: OSError | None = None
        for _ in self.patience.attempts():
            try:
                winners.learn(self.log.catch_up())
                winners.since(None)
            except OSError as error:
                failure = error
            except LedgerError:
                # A client that sends a create twice is told that its own file exists.
                if self._stands(draft):
                    return True
                raise
            else:
                return False
        raise unknown(draft.key, draft.version, draft.commit_id) from failure

    def _stands(self, draft: Draft) -> bool:
        try:
            return self.log.store.confirm(draft.key) == draft.body
        except OSError as error:
            raise unknown(draft.key, draft.version, draft.commit_id) from error

    def _given_up(self, request: Request) -> CommitConflictError:
        version = self._state().version
        return CommitConflictError(
            f"commit {request.commit_id} gave up after {self.patience.deadline_s} s: other "
            "writers were always faster; nothing was written, try again",
            f"version {version}",
            version,
        )

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


def _in_order(entries: list[Entry[S, E]]) -> Iterator[list[Entry[S, E]]]:
    """Yield the entries in their order: those that ride alone, and the groups between them."""
    for alone, some in groupby(entries, key=lambda each: each.rides_alone):
        if alone:
            yield from ([each] for each in some)
        else:
            yield list(some)


def _unknown_to(entry: Entry[S, E], error: CommitUnknownError) -> CommitUnknownError:
    """Return the error that names an entry's own commit id."""
    told = CommitUnknownError(
        error.message.replace(error.commit_id, entry.request.commit_id),
        entry.request.commit_id,
        error.version,
    )
    told.__cause__ = error.__cause__
    return told
