"""The one retry loop: decide, encode, create; on a loss read the winners and decide again.

What threads ask for at the same time rides in one commit, in the order in which they came
(`group`). What came of a create is never guessed (`landing`), and nothing is written that a
reader could not decode.
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
from ledger.log.group.interruptions import CtrlC, only_ctrl_c_interrupts
from ledger.log.group.open_commit import OpenCommit, Proposal
from ledger.log.group.riders import Group, Rider, twin
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
from ledger.log.worker import aside
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


class _Held(Struct, Generic[S, E], frozen=True):
    """A lock that is held.

    Attributes:
        riders: For whom.
        turn: As the store has it.
        is_alone: Whether it is held by whoever asks himself, whom nobody has to wake.
    """

    riders: Sequence[Rider[S, E]]
    turn: Turn | None
    is_alone: bool = False

    def creates(self, key: str, joined: Sequence[Rider[S, E]]) -> None:
        """Let others go on once a commit shows, where it holds all that the lock is held for."""
        if self.turn is None:
            return
        if len(joined) == sum(not each.is_answered for each in self.riders):
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
    _group: Group[S, E] = field(factory=Group, init=False, eq=False, repr=False)

    @landings.default
    def _landings_of_stream(self) -> Landings[S, E]:
        return Landings(self.log, self.patience)

    @_clock.default
    def _clock_of_stream(self) -> StreamClock:
        return StreamClock(self.log, self.now_millis, self.patience)

    @property
    def is_outrun(self) -> bool:
        """Whether what is asked now will most likely be decided on what others make meanwhile."""
        return self._group.is_busy or self.log.is_beside_others()

    def append(self, intent: Intent[S, E], request: Request) -> Appended[S]:
        """Append one transaction; it is durable when this returns.

        What interrupts the caller meanwhile (a signal handler's exception) is raised as it is;
        whoever calls this notes on it what is known of the commit (`noting`).

        Raises:
            InvalidInputError: The intent contradicts the newest state, or the commit id was used
                for something else; nothing was written.
            CommitConflictError: A winner took the same cell, or `expect_version` was passed.
            CommitUnknownError: The store gave no answer; the commit may have landed.
            StoreError: The store refuses it, or this machine's clock is not the store's
                (`StreamClock`); nothing was written.
        """
        self.log.refuse_reentry()
        rider = Rider(intent, request)
        head = self.log.head
        if head is not None and head.state.keeps_outside:
            # Here, where threads do not wait for one another.
            rider.kept = aside(lambda: self._keep(request))
        try:
            appended = self._group.ride(rider, self._land, self._own_way)
        except (InvalidInputError, CommitConflictError):
            if rider.kept is not None:
                self.log.personal.forget(rider.kept)
            raise
        if appended.repeated and rider.kept is not None and not self._holds(appended, rider.kept):
            self.log.personal.forget(rider.kept)
        return appended

    def _holds(self, appended: Appended[S], kept: KeptTexts) -> bool:
        there = self.log.commit_at(appended.version).transactions
        return any(each.outside == kept.outside for each in there)

    def _keep(self, request: Request) -> KeptTexts:
        return self.log.personal.keep(request, self.now_millis(), self.patience)

    @property
    def _own_way(self) -> Callable[[Rider[S, E]], None] | None:
        """How this thread lands what it asks for, if it does: not where anything interrupts it.

        Nor where it would take long: the store is far, or others hold the lock.
        """
        is_short = self.log.store.is_near and not self.log.is_beside_others()
        return self._land_alone if is_short and only_ctrl_c_interrupts() else None

    def _land_alone(self, rider: Rider[S, E]) -> None:
        """Find out what comes of a rider in the thread that asks."""
        with CtrlC() as ctrl_c:
            with self.log.locked() as turn:
                # From here on: who only waits for the lock has asked for nothing yet.
                ctrl_c.put_off()
                rider.request.fate.is_sent = True
                self._land_together([rider], _Held([rider], turn, is_alone=True))
            self.log.keep_caches()

    def _land(self, riders: Sequence[Rider[S, E]]) -> None:
        """Find out what comes of riders, and of those who come while the lock is waited for."""
        with self.log.locked(lambda read: _meet(riders, read)) as turn:
            self._land_all(_Held([*riders, *self._group.gathered()], turn))
        self.log.keep_caches()

    def _land_all(self, held: _Held[S, E]) -> None:
        for together in _in_order(held.riders):
            try:
                self._land_together(together, held)
            except Exception as error:  # noqa: BLE001 - each raises it in a thread of its own
                for each in together:
                    if not each.is_answered:
                        each.fail(twin(error))

    def _land_together(self, riders: list[Rider[S, E]], held: _Held[S, E]) -> None:
        if self.log.head is None or riders[0].request.expect_version is not None:
            self.log.catch_up()
        else:
            self.log.look_again(self.patience.monotonic())
        # First, so that what others read on meanwhile is looked for in one of the two.
        winners: Winners[E] = Winners(self.log, self._kept)
        # Who cannot look now finds out by trying.
        with suppress(OSError):
            winners.learn(self.log.read_ahead())
        for rider in riders:
            # It may have landed before, under an id that the caller was told.
            self._answer(rider, self.landings.known)
        pending = [each for each in riders if not each.is_answered]
        for _ in self.patience.attempts() if pending else ():
            self._attempt(pending, winners, held)
            pending = [each for each in pending if not each.is_answered]
            if not pending:
                # Before the next attempt, which waits first, while others wait for the lock.
                return
        for each in pending:
            each.fail(self._given_up(each.request))

    def _answer(self, rider: Rider[S, E], look: Callable[[Request], Appended[S] | None]) -> None:
        try:
            found = look(rider.request)
        except LedgerError as error:
            rider.fail(error)
        else:
            if found is not None:
                rider.landed(found)

    def _attempt(self, riders: list[Rider[S, E]], winners: Winners[E], held: _Held[S, E]) -> None:
        """Try to land one commit with all that fits into it."""
        head = self.log.head
        opened = OpenCommit(self.log, head, self._clock.next(head), self.check)
        joined = [each for each in riders if self._joins(each, opened, winners)]
        if not joined:
            return
        proposal = opened.proposal()
        if self.log.comes_after_others:
            held.creates(proposal.file.key, joined)
        outcome = self._outcome(proposal, winners)
        match outcome:
            case Committed():
                self._take(proposal, joined)
                for each in riders:
                    if not each.is_answered:
                        each.believe()
                        self._answer(
                            each, lambda request: self.landings.beside(request, proposal.commit)
                        )
                self._let_go_on(held)
                self._kept.keep(proposal.commit)
            case Lost():
                for each in riders:
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

    def _tell_loss(self, lost: Lost, joined: list[Rider[S, E]]) -> None:
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

    def _take(self, proposal: Proposal[S, E], joined: list[Rider[S, E]]) -> None:
        """Take a commit that has landed as the new head."""
        for each in joined:
            each.landed(
                Appended(proposal.head.state, proposal.commit.version, attempts=each.attempts)
            )
        self.log.advance(proposal.head, proposal.commit)

    def _let_go_on(self, held: _Held[S, E]) -> None:
        """Wake the only one who waits: he wakes up while the lock is let go of."""
        if held.is_alone:
            return
        if len(held.riders) == 1 and not len(self._group) and not self.log.is_beside_others():
            # First, as he may wait for caches that are owed.
            self.log.keep_caches()
            held.riders[0].wake()

    def _joins(self, rider: Rider[S, E], opened: OpenCommit[S, E], winners: Winners[E]) -> bool:
        request, intent = rider.request, rider.intent
        rider.doubt(None)
        rider.attempts += 1
        if opened.is_full or opened.holds(request.commit_id):
            return False
        try:
            self._check_expected(request)
            since = winners.since(intent.base_version, opened.version - 1)
            if not opened.is_empty:
                since.append(opened.commit())
            decided = intent.decide(opened.state(), tuple(since))
            if isinstance(decided, Landed):
                self._acknowledge_landed(rider, decided, opened)
                return False
            if rider.kept is None and opened.keeps_outside(request):
                rider.kept = self._keep(request)
            opened.join(decided, request, rider.kept)
        except Postponed:
            return False
        except CommitConflictError as error:
            self._refuse(rider, self._named(error), opened)
            return False
        except Exception as error:  # noqa: BLE001 - what one's intent raises is his alone
            self._refuse(rider, error, opened)
            return False
        return True

    def _refuse(self, rider: Rider[S, E], error: Exception, opened: OpenCommit[S, E]) -> None:
        if opened.is_empty:
            rider.fail(error)
        else:
            # Those before it may not land, and then it is decided anew.
            rider.doubt(error)

    def _named(self, error: CommitConflictError) -> CommitConflictError:
        """Return a conflict that names its winner, where the log says it outside of the line."""
        said = error.author or ""
        name = self.log.personal.name(said)
        if name == said:
            return error
        told = error.message.replace(said, name)
        return CommitConflictError(told, error.cell, error.version, name, error.winner)

    def _acknowledge_landed(
        self, rider: Rider[S, E], landed: Landed, opened: OpenCommit[S, E]
    ) -> None:
        if landed.version >= opened.version:
            raise Postponed
        rider.landed(self.landings.acknowledge(landed.version, rider.request))

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


def _meet(riders: Sequence[Rider[S, E]], read: Sequence[Commit[E]]) -> None:
    for each in riders if read else ():
        # It is asked again, and answered, where it is decided.
        with suppress(OSError, LedgerError):
            each.intent.meet(read)


def _in_order(riders: Sequence[Rider[S, E]]) -> Iterator[list[Rider[S, E]]]:
    """Yield the riders in their order: those that ride alone, and the groups between them."""
    for alone, some in groupby(riders, key=lambda each: each.rides_alone):
        if alone:
            yield from ([each] for each in some)
        else:
            yield list(some)
