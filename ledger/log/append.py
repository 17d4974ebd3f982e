"""Append: decide, encode, create; on a lost race, read the winners and decide again.

Concurrent requests on a handle are batched by its committer thread (`group.commit_queue`), in the
order in which they were submitted. The outcome of a create is never guessed (`landing`), and
nothing is written that a reader could not decode.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import groupby
from typing import Any, Generic, TypeVar, assert_never

from attrs import field, frozen
from msgspec import UNSET, Raw, Struct
from msgspec.structs import replace

from ledger.events.commit import FORMAT, Commit, Transaction, said_by
from ledger.log.checkpoints import Head
from ledger.log.clock import Moment, StreamClock
from ledger.log.codec import digest, encode, encode_transaction
from ledger.log.commit_queue import CommitQueue, PendingCommit, twin
from ledger.log.personal_data import KeptTexts
from ledger.log.request import (
    Appended,
    Committed,
    Landings,
    LogFile,
    Lost,
    NowMillis,
    Outcome,
    Patience,
    Request,
    Unknown,
    after_loss,
    land,
)
from ledger.log.stream_log import StreamLog
from ledger.model.errors import (
    CommitConflictError,
    DamagedLogError,
    InvalidInputError,
    LedgerError,
    UpgradeRequiredError,
)
from ledger.observing.telemetry import is_observed, tell_retry
from ledger.state.stream import Builder, Intent, Landed, Postponed, StateLike
from ledger.stores import Turn

S = TypeVar("S", bound=StateLike)
E = TypeVar("E")

MOST_BYTES = 4 * 1024 * 1024
"""A commit takes no further transaction once its bytes are more than this."""


class Proposal(Struct, Generic[S, E], frozen=True):
    """A commit ready to be created, and the head that it would make."""

    commit: Commit[E]
    file: LogFile
    head: Head[S]


class OpenCommit(Generic[S, E]):
    """A commit that follows the head and has not been written.

    Args:
        log: The stream.
        head: What it follows; None before version 0.
        moment: When it is.
        check: Raises for a commit that must not be created at its time.
    """

    def __init__(
        self,
        log: StreamLog[S, E],
        head: Head[S] | None,
        moment: Moment,
        check: Callable[[Commit[E]], None],
    ) -> None:
        self._log = log
        self._head = head
        self._version = head.state.version + 1 if head else 0
        self._key = log.layout.commit(self._version)
        self._moment = moment
        self._check = check
        self._transactions: list[Transaction[E]] = []
        self._bodies: list[bytes] = []
        self._alone: tuple[Commit[E], bytes] | None = None
        self._ids: set[str] = set()
        self._size = 0
        self._state: S | None = self._head.state if self._head else None
        self._builder = self._begun()

    @property
    def version(self) -> int:
        """The commit's number."""
        return self._version

    @property
    def is_empty(self) -> bool:
        """Whether nobody has joined."""
        return not self._transactions

    @property
    def is_full(self) -> bool:
        """Whether it takes no more."""
        return self._size > MOST_BYTES

    def holds(self, commit_id: str) -> bool:
        """Whether a transaction of that id has joined."""
        return commit_id in self._ids

    def state(self) -> S | None:
        """Return the state after all that have joined; None before version 0."""
        if self._state is None and self._transactions:
            self._state = self._builder.freeze()
        return self._state

    def keeps_outside(self, request: Request) -> bool:
        """Whether a transaction says outside of its line who asks and why."""
        state = self.state()
        return request.keeps_outside or (state is not None and state.keeps_outside)

    def commit(self) -> Commit[E]:
        """Return the commit as it is now."""
        return self._of(*self._transactions)

    def join(self, events: tuple[E, ...], request: Request, kept: KeptTexts | None = None) -> None:
        """Take one more transaction, as readers will see it.

        Args:
            events: What was decided.
            request: Who asked.
            kept: What is said outside of the line, where the stream keeps it there.

        Raises:
            InvalidInputError: It contradicts the state, or cannot stand in the log; the commit is
                as it was before.
        """
        asked = self._asked(events, request)
        if kept is not None:
            asked = replace(asked, author="", message="", properties={}, outside=kept.outside)
        body, alone, file = self._readable(asked)
        self._check(alone)
        (transaction,) = alone.transactions
        try:
            # Folding before writing: what contradicts the state is refused before any I/O.
            self._builder.add(transaction)
        except BaseException:
            self._builder = self._begun()
            raise
        self._state = None
        self._transactions.append(transaction)
        self._bodies.append(body)
        # Most commits are of one transaction, and were read as they will be.
        self._alone = (alone, file) if len(self._bodies) == 1 else None
        self._ids.add(transaction.id)
        self._size += len(body)

    def _asked(self, events: tuple[E, ...], request: Request) -> Transaction[E]:
        latest, effective = self._moment.effective_millis, request.effective_millis
        if effective is None:
            effective = latest
        elif latest is not None and effective > latest:
            raise InvalidInputError(
                f"effective_time {effective} lies in the future; it is {latest} (Unix milliseconds)"
            )
        return Transaction(
            id=request.commit_id,
            author=request.author,
            message=request.message,
            properties=dict(sorted(request.properties.items())),
            asked=request.asked,
            effective_time_millis=UNSET if effective is None else effective,
            events=events,
        )

    def proposal(self) -> Proposal[S, E]:
        """Return the commit, ready to be created."""
        commit, body = self._alone or (
            self.commit(),
            encode(self._of(*map(Raw, self._bodies))),
        )
        file = LogFile(self._key, body, commit.version)
        state = self.state()
        if state is None:
            raise AssertionError("a commit that is proposed holds a transaction")
        return Proposal(commit, file, Head(state, digest(body)))

    def _begun(self) -> Builder[S, E]:
        """Return a builder after all that have joined."""
        builder = self._log.stream.builder(self._head.state if self._head else None)
        builder.begin(self._version, self._moment.time_millis)
        for each in self._transactions:
            builder.add(each)
        return builder

    def _of(self, *transactions: Any) -> Commit[E]:
        return Commit(
            format=FORMAT,
            version=self._version,
            time_millis=self._moment.time_millis,
            parent=self._head.digest if self._head else UNSET,
            transactions=transactions,
        )

    def _readable(self, transaction: Transaction[E]) -> tuple[bytes, Commit[E], bytes]:
        """Return a transaction's bytes, and the commit that it would be alone, with its bytes.

        As readers see it: Python checks no types, so what was asked may be nothing for them.
        """
        try:
            body = encode_transaction(transaction)
            file = encode(self._of(Raw(body)))
            return body, self._log.codec.decode(file, self._key), file
        except (DamagedLogError, UpgradeRequiredError) as error:
            cause = error.__cause__ or error
            raise InvalidInputError(
                f"what was asked cannot stand in the log: {cause}; nothing was written"
            ) from error
        except (TypeError, ValueError, OverflowError) as error:
            raise InvalidInputError(
                f"what was asked cannot be written as JSON: {error}; nothing was written"
            ) from error


MOST_KEPT = 4
"""Whoever asks while a commit is under way looked at one of the last few."""


class KeptCommits(Generic[E]):
    """The newest commits of a stream, as they were landed or read; whoever leads keeps them."""

    def __init__(self) -> None:
        self._by_version: dict[int, Commit[E]] = {}

    def keep(self, commit: Commit[E]) -> None:
        """Keep a commit that stands in the log, and let an old one go."""
        self._by_version[commit.version] = commit
        for version in sorted(self._by_version)[:-MOST_KEPT]:
            del self._by_version[version]

    def get(self, version: int) -> Commit[E] | None:
        """Return a commit, if it is kept."""
        return self._by_version.get(version)


class Winners(Generic[E]):
    """The commits that landed since the bases of those who append.

    Args:
        log: The stream.
        kept: Those that need not be read again.
    """

    def __init__(self, log: StreamLog[Any, E], kept: KeptCommits[E]) -> None:
        self._log = log
        self._kept = kept
        self._commits: dict[int, Commit[E]] = {}
        self._met = self._newest

    @property
    def _newest(self) -> int:
        head = self._log.head
        return head.state.version if head else -1

    def learn(self, commits: Iterable[Commit[E]]) -> None:
        """Take commits that were read already."""
        for each in commits:
            self._take(each)

    def _take(self, commit: Commit[E]) -> None:
        self._commits[commit.version] = commit
        self._kept.keep(commit)

    def since(self, base: int | None, last: int | None = None) -> list[Commit[E]]:
        """Return the commits after `base`, oldest first; of no base, those after the beginning.

        Args:
            base: A version.
            last: The last one to return; None: the newest.
        """
        first = (self._met if base is None else base) + 1
        wanted = range(first, (self._newest if last is None else last) + 1)
        if not wanted:
            return []
        missing = [each for each in wanted if not self._has(each)]
        if missing:
            for read in self._log.known_commits(missing[0], missing[-1]):
                self._take(read.commit)
        return [self._commits[version] for version in wanted]

    def _has(self, version: int) -> bool:
        if version not in self._commits:
            kept = self._kept.get(version)
            if kept is None:
                return False
            self._commits[version] = kept
        return True


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
