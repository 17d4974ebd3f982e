"""Append: decide, encode, create; on a lost race, read the winners and decide again.

Concurrent requests on a handle are batched by its committer thread (`ledger.log.commit_queue`), in
the order in which they were submitted. The outcome of a create is never guessed
(`ledger.log.request`), and nothing is written that a reader could not decode.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import groupby
from typing import Any, Generic, TypeVar, assert_never

from attrs import field, frozen
from msgspec import UNSET, Raw, Struct
from msgspec.structs import replace

from ledger.events.commit import FORMAT, Commit, Transaction, said_by
from ledger.log.checkpoints import Head
from ledger.log.clock import CommitTimes, StreamClock
from ledger.log.codec import digest, encode, encode_transaction
from ledger.log.commit_queue import CommitQueue, PendingCommit, copy_of_error
from ledger.log.personal_data import SidecarTexts
from ledger.log.request import (
    Appended,
    CommitLookup,
    Committed,
    LogFile,
    LostRace,
    NowMillis,
    Outcome,
    Request,
    RetryPolicy,
    Unknown,
    commit_file,
    confirm_loss,
)
from ledger.log.stream_log import StreamLog
from ledger.model.errors import (
    CommitConflictError,
    DamagedLogError,
    InvalidInputError,
    LedgerError,
    UpgradeRequiredError,
)
from ledger.observing.telemetry import is_observed, log_retry
from ledger.state.stream import AlreadyCommitted, Builder, DecisionPostponed, Intent, StateLike
from ledger.stores import Turn

S = TypeVar("S", bound=StateLike)
E = TypeVar("E")

MOST_BYTES = 4 * 1024 * 1024
"""Size of a commit, in bytes, beyond which no further transaction is added to it."""


class ProposedCommit(Struct, Generic[S, E], frozen=True):
    """A commit ready to be created, and the head that results from it."""

    commit: Commit[E]
    file: LogFile
    head: Head[S]


class OpenCommit(Generic[S, E]):
    """The next commit, in memory: transactions are added to it before it is written.

    Args:
        log: The stream.
        head: The commit that it follows; None before version 0.
        moment: Its times.
        check: Raises for a commit that must not be created at its time.
    """

    def __init__(
        self,
        log: StreamLog[S, E],
        head: Head[S] | None,
        moment: CommitTimes,
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
        self._builder = self._fold_transactions()

    @property
    def version(self) -> int:
        """Version of the commit."""
        return self._version

    @property
    def is_empty(self) -> bool:
        """True while it has no transaction."""
        return not self._transactions

    @property
    def is_full(self) -> bool:
        """True when it takes no further transaction."""
        return self._size > MOST_BYTES

    def holds(self, commit_id: str) -> bool:
        """Return whether it contains a transaction with this id."""
        return commit_id in self._ids

    def state(self) -> S | None:
        """Return the state after its transactions; None before version 0."""
        if self._state is None and self._transactions:
            self._state = self._builder.freeze()
        return self._state

    def keeps_outside(self, request: Request) -> bool:
        """Return whether author and message of a request are kept in a sidecar file."""
        state = self.state()
        return request.keeps_outside or (state is not None and state.keeps_outside)

    def commit(self) -> Commit[E]:
        """Return the commit as it is now."""
        return self._build_commit(*self._transactions)

    def join(
        self, events: tuple[E, ...], request: Request, kept: SidecarTexts | None = None
    ) -> None:
        """Add a transaction, in the form in which readers decode it.

        Args:
            events: The events that its intent was decided to.
            request: Its id, author, message and properties.
            kept: The same texts in a sidecar file, where the stream keeps them there.

        Raises:
            InvalidInputError: The transaction contradicts the state, or cannot be encoded; the
                commit is unchanged.
        """
        asked = self._build_transaction(events, request)
        if kept is not None:
            asked = replace(asked, author="", message="", properties={}, outside=kept.outside)
        body, alone, file = self._encode_transaction(asked)
        self._check(alone)
        (transaction,) = alone.transactions
        try:
            # Fold before writing: what contradicts the state is rejected before any I/O.
            self._builder.add(transaction)
        except BaseException:
            self._builder = self._fold_transactions()
            raise
        self._state = None
        self._transactions.append(transaction)
        self._bodies.append(body)
        # Most commits have one transaction, whose commit file was encoded and decoded above.
        self._alone = (alone, file) if len(self._bodies) == 1 else None
        self._ids.add(transaction.id)
        self._size += len(body)

    def _build_transaction(self, events: tuple[E, ...], request: Request) -> Transaction[E]:
        latest, effective = self._moment.effective_millis, request.effective_millis
        if effective is None:
            effective = latest
        elif latest is not None and effective > latest:
            raise InvalidInputError(
                f"effective_time {effective} lies in the future; the time is {latest} "
                "(Unix milliseconds)"
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

    def proposal(self) -> ProposedCommit[S, E]:
        """Return the commit, encoded, with the head that results from it."""
        commit, body = self._alone or (
            self.commit(),
            encode(self._build_commit(*map(Raw, self._bodies))),
        )
        file = LogFile(self._key, body, commit.version)
        state = self.state()
        if state is None:
            raise AssertionError("a commit that is proposed holds a transaction")
        return ProposedCommit(commit, file, Head(state, digest(body)))

    def _fold_transactions(self) -> Builder[S, E]:
        """Return a builder that has folded the commit's transactions."""
        builder = self._log.stream.builder(self._head.state if self._head else None)
        builder.begin(self._version, self._moment.time_millis)
        for each in self._transactions:
            builder.add(each)
        return builder

    def _build_commit(self, *transactions: Any) -> Commit[E]:
        return Commit(
            format=FORMAT,
            version=self._version,
            time_millis=self._moment.time_millis,
            parent=self._head.digest if self._head else UNSET,
            transactions=transactions,
        )

    def _encode_transaction(self, transaction: Transaction[E]) -> tuple[bytes, Commit[E], bytes]:
        """Return a transaction's bytes, and a commit of it alone, with the commit's bytes.

        The commit is decoded again: Python checks no types, so a transaction may be unreadable.
        """
        try:
            body = encode_transaction(transaction)
            file = encode(self._build_commit(Raw(body)))
            return body, self._log.codec.decode(file, self._key), file
        except (DamagedLogError, UpgradeRequiredError) as error:
            cause = error.__cause__ or error
            raise InvalidInputError(
                f"the transaction cannot be stored in the log: {cause}; nothing was written"
            ) from error
        except (TypeError, ValueError, OverflowError) as error:
            raise InvalidInputError(
                f"the transaction cannot be encoded as JSON: {error}; nothing was written"
            ) from error


MOST_KEPT = 4
"""Commits that `RecentCommitCache` holds: concurrent requests have one of them as base."""


class RecentCommitCache(Generic[E]):
    """Cache of the newest commits of a stream; the committer thread fills it."""

    def __init__(self) -> None:
        self._by_version: dict[int, Commit[E]] = {}

    def keep(self, commits: Sequence[Commit[E]]) -> None:
        """Add commits of the log, and evict the oldest ones."""
        self._by_version |= {each.version: each for each in commits[-MOST_KEPT:]}
        for version in sorted(self._by_version)[:-MOST_KEPT]:
            del self._by_version[version]

    def get(self, version: int) -> Commit[E] | None:
        """Return a cached commit, or None."""
        return self._by_version.get(version)


class WinningCommits(Generic[E]):
    """The commits that other writers appended since the base versions of pending requests.

    Args:
        log: The stream.
        kept: Cache of the newest commits.
    """

    def __init__(self, log: StreamLog[Any, E], kept: RecentCommitCache[E]) -> None:
        self._log = log
        self._kept = kept
        self._commits: dict[int, Commit[E]] = {}
        self._met = self._head_version

    @property
    def _head_version(self) -> int:
        head = self._log.head
        return head.state.version if head else -1

    def add_commits(self, commits: Sequence[Commit[E]]) -> None:
        """Add commits that were read already."""
        if commits:
            self._commits |= {each.version: each for each in commits}
            self._kept.keep(commits)

    def commits_since(self, base: int | None, last: int | None = None) -> list[Commit[E]]:
        """Return the commits after `base`, oldest first.

        Args:
            base: A version; None: the newest one when this object was made.
            last: The last version to return; None: the newest.
        """
        first = (self._met if base is None else base) + 1
        wanted = range(first, (self._head_version if last is None else last) + 1)
        if not wanted:
            return []
        missing = [each for each in wanted if not self._has_commit(each)]
        if missing:
            found = self._log.commits_via_cache(missing[0], missing[-1])
            self.add_commits([each.commit for each in found])
        return [self._commits[version] for version in wanted]

    def _has_commit(self, version: int) -> bool:
        if version not in self._commits:
            kept = self._kept.get(version)
            if kept is None:
                return False
            self._commits[version] = kept
        return True


class _HeldLock(Struct, Generic[S, E], frozen=True):
    """The stream's append lock while it is held.

    Attributes:
        batch: The pending commits that it is held for.
        turn: The store's handle of the lock; None where the store has none.
    """

    batch: Sequence[PendingCommit[S, E]]
    turn: Turn | None

    def announce_create(self, key: str, joined: Sequence[PendingCommit[S, E]]) -> None:
        """Announce the next file; the last one of the batch releases the lock once it is linked."""
        if self.turn is None:
            return
        if len(joined) == sum(not each.is_answered for each in self.batch):
            self.turn.announce_last_create(key)
        else:
            self.turn.announce_create(key)


@frozen
class Appender(Generic[S, E]):
    """Appends to one stream.

    Attributes:
        log: The stream.
        now_millis: The clock.
        retry_policy: The retry policy.
        check: Raises for a commit that must not be created at its time.
        announce: Called with the newest version that a batch committed, once it was answered.
        commit_lookup: Lookup of the commits of earlier requests.
    """

    log: StreamLog[S, E]
    now_millis: NowMillis
    retry_policy: RetryPolicy = field(factory=RetryPolicy)
    check: Callable[[Commit[E]], None] = lambda _: None
    announce: Callable[[S, int], None] = lambda _, __: None
    commit_lookup: CommitLookup[S, E] = field(init=False, eq=False, repr=False)
    _clock: StreamClock = field(init=False, eq=False, repr=False)
    _kept: RecentCommitCache[E] = field(factory=RecentCommitCache, init=False, eq=False, repr=False)
    _queue: CommitQueue[S, E] = field(factory=CommitQueue, init=False, eq=False, repr=False)

    @commit_lookup.default
    def _default_commit_lookup(self) -> CommitLookup[S, E]:
        return CommitLookup(self.log, self.retry_policy)

    @_clock.default
    def _clock_of_stream(self) -> StreamClock:
        return StreamClock(self.log, self.now_millis, self.retry_policy)

    @property
    def is_outrun(self) -> bool:
        """True when a commit submitted now is likely decided on a later state than the head's."""
        return self._queue.is_busy or self.log.has_concurrent_writers()

    def submit(self, intent: Intent[S, E], request: Request) -> PendingCommit[S, E]:
        """Submit one transaction to the committer thread and return at once.

        Raises:
            InvalidInputError: A signal handler or callback submits while its thread reads this
                handle.
            StoreError: The store rejects the sidecar file with the transaction's author and
                message.
        """
        self.log.refuse_reentry()
        head = self.log.head
        # On the calling thread, so that concurrent callers write their sidecars in parallel.
        keeps = head is not None and head.state.keeps_outside
        pending = PendingCommit(
            intent, request, self._store_personal_texts(request) if keeps else None
        )
        return self._queue.submit(pending, self._commit_batch, self._announce_batch)

    def append(self, intent: Intent[S, E], request: Request) -> Appended[S]:
        """Append one transaction; it is durable when this returns.

        An exception that interrupts the caller meanwhile is raised unchanged, with a note that
        names the commit id; the commit continues in the committer thread.

        Raises:
            InvalidInputError: The intent contradicts the newest state, or the commit id was used
                for another request; nothing was written.
            CommitConflictError: A concurrent commit changed the same cell, or the stream is beyond
                `expect_version`.
            CommitUnknownError: The store gave no answer; the transaction may have been committed.
            StoreError: The store rejects the file, or this machine's clock is too far from the
                store's (`StreamClock`); nothing was written.
        """
        return self.submit(intent, request).wait()

    def _store_personal_texts(self, request: Request) -> SidecarTexts:
        return self.log.personal.keep(request, self.now_millis(), self.retry_policy)

    def _commit_batch(self, batch: Sequence[PendingCommit[S, E]]) -> None:
        """Commit a batch, and the requests submitted while it waits for the lock."""
        with self.log.hold_append_lock(lambda read: _prepare_intents(batch, read)) as turn:
            held = _HeldLock([*batch, *self._queue.take_all()], turn)
            self._commit_in_order(held)
        self.log.request_cache_save()
        for each in held.batch:
            self._delete_unused_sidecar(each)

    def _announce_batch(self, batch: Sequence[PendingCommit[S, E]]) -> None:
        committed = [each.appended for each in batch if each.appended is not None]
        if committed:
            newest = max(committed, key=lambda appended: appended.version)
            self.announce(newest.state, newest.version)

    def _delete_unused_sidecar(self, pending: PendingCommit[S, E]) -> None:
        """Delete the sidecar file of a request if no commit names it."""
        kept = pending.kept
        if kept is None:
            return
        appended = pending.appended
        # `maintain` finds files that are left behind.
        with suppress(OSError, LedgerError):
            if appended is None:
                is_unused = isinstance(pending.error, InvalidInputError | CommitConflictError)
            else:
                is_unused = appended.repeated and not self._references_sidecar(appended, kept)
            if is_unused:
                self.log.personal.forget(kept)

    def _references_sidecar(self, appended: Appended[S], kept: SidecarTexts) -> bool:
        there = self.log.commit_at(appended.version).transactions
        return any(each.outside == kept.outside for each in there)

    def _commit_in_order(self, held: _HeldLock[S, E]) -> None:
        for together in _split_batch(held.batch):
            try:
                self._commit_together(together, held)
            except Exception as error:  # noqa: BLE001 - each waiter raises it
                for each in together:
                    if not each.is_answered:
                        each.fail(copy_of_error(error))

    def _commit_together(self, batch: list[PendingCommit[S, E]], held: _HeldLock[S, E]) -> None:
        if self.log.head is None or batch[0].request.expect_version is not None:
            self.log.catch_up()
        else:
            self.log.recheck_head(self.retry_policy.monotonic())
        # First, so that commits which other threads read meanwhile are in the log or in `winners`.
        winners: WinningCommits[E] = WinningCommits(self.log, self._kept)
        # If reading fails here, the create below detects a lost race all the same.
        with suppress(OSError):
            winners.add_commits(self.log.read_ahead())
        for each in batch:
            # An earlier call with the same commit id may have committed it.
            self._answer_from_lookup(each, self.commit_lookup.known)
        pending = [each for each in batch if not each.is_answered]
        for _ in self.retry_policy.attempts() if pending else ():
            self._attempt_commit(pending, winners, held)
            pending = [each for each in pending if not each.is_answered]
            if not pending:
                # Not through the next attempt: it sleeps first, while others wait for the lock.
                return
        for each in pending:
            each.fail(self._retries_exhausted_error(each.request))

    def _answer_from_lookup(
        self, pending: PendingCommit[S, E], look: Callable[[Request], Appended[S] | None]
    ) -> None:
        try:
            found = look(pending.request)
        except LedgerError as error:
            pending.fail(error)
        else:
            if found is not None:
                pending.succeed(found)

    def _attempt_commit(
        self, batch: list[PendingCommit[S, E]], winners: WinningCommits[E], held: _HeldLock[S, E]
    ) -> None:
        """Try once to commit as many requests of a batch as fit into one commit."""
        head = self.log.head
        opened = OpenCommit(self.log, head, self._clock.next(head), self.check)
        joined = [each for each in batch if self._try_add_to_commit(each, opened, winners)]
        if not joined:
            return
        proposal = opened.proposal()
        if self.log.comes_after_others:
            held.announce_create(proposal.file.key, joined)
        outcome = self._create_commit_file(proposal, winners)
        match outcome:
            case Committed():
                self._record_commit(proposal, joined)
                for each in batch:
                    if not each.is_answered:
                        each.confirm_tentative_error()
                        self._answer_from_lookup(
                            each,
                            lambda request: self.commit_lookup.find_in_created_commit(
                                request, proposal.commit
                            ),
                        )
                self._kept.keep([proposal.commit])
            case LostRace():
                for each in batch:
                    self._answer_from_lookup(
                        each,
                        lambda request: self.commit_lookup.find_among_winners(
                            request, winners.commits_since(None), proposal.commit
                        ),
                    )
                self._log_lost_race(outcome, joined)
            case Unknown():
                for each in joined:
                    each.fail(outcome.as_error(each.request.commit_id))
            case _:
                assert_never(outcome)

    def _log_lost_race(self, lost: LostRace, joined: list[PendingCommit[S, E]]) -> None:
        again = [each.attempts for each in joined if not each.is_answered]
        if again and is_observed():
            log_retry(self.log.name, lost.version, max(again), len(again))

    def _create_commit_file(
        self, proposal: ProposedCommit[S, E], winners: WinningCommits[E]
    ) -> Outcome:
        store, file = self.log.store, proposal.file
        try:
            outcome = commit_file(store, file, self.retry_policy)
            if isinstance(outcome, LostRace):
                outcome = confirm_loss(
                    store, file, self.retry_policy, lambda: self._read_winners(winners)
                )
        except LedgerError:
            raise
        except Exception as error:  # noqa: BLE001 - the store broke its contract: outcome unknown
            return Unknown(file, error)
        return outcome

    def _read_winners(self, winners: WinningCommits[E]) -> None:
        winners.add_commits(self.log.catch_up())
        winners.commits_since(None)

    def _record_commit(
        self, proposal: ProposedCommit[S, E], joined: list[PendingCommit[S, E]]
    ) -> None:
        """Make the created commit the new head, and answer its requests."""
        self.log.accept_own_commit(proposal.head, proposal.commit)
        for each in joined:
            each.succeed(
                Appended(proposal.head.state, proposal.commit.version, attempts=each.attempts)
            )

    def _try_add_to_commit(
        self, pending: PendingCommit[S, E], opened: OpenCommit[S, E], winners: WinningCommits[E]
    ) -> bool:
        request, intent = pending.request, pending.intent
        pending.set_tentative_error(None)
        pending.attempts += 1
        if opened.is_full or opened.holds(request.commit_id):
            return False
        try:
            self._check_expected(request)
            commits_since = winners.commits_since(intent.base_version, opened.version - 1)
            if not opened.is_empty:
                commits_since.append(opened.commit())
            decided = intent.decide(opened.state(), tuple(commits_since))
            if isinstance(decided, AlreadyCommitted):
                self._acknowledge_committed(pending, decided, opened)
                return False
            if pending.kept is None and opened.keeps_outside(request):
                pending.kept = self._store_personal_texts(request)
            opened.join(decided, request, pending.kept)
        except DecisionPostponed:
            return False
        except CommitConflictError as error:
            self._reject_request(pending, self._resolve_winner_name(error), opened)
            return False
        except Exception as error:  # noqa: BLE001 - its own caller raises it
            self._reject_request(pending, error, opened)
            return False
        return True

    def _reject_request(
        self, pending: PendingCommit[S, E], error: Exception, opened: OpenCommit[S, E]
    ) -> None:
        if opened.is_empty:
            pending.fail(error)
        else:
            # Earlier transactions of this commit may fail to be committed; then decide it again.
            pending.set_tentative_error(error)

    def _resolve_winner_name(self, error: CommitConflictError) -> CommitConflictError:
        """Return a conflict with the winner's name resolved, where a sidecar file holds it."""
        said = error.author or ""
        name = self.log.personal.name(said)
        if name == said:
            return error
        message = error.message.replace(said, name)
        return CommitConflictError(message, error.cell, error.version, name, error.winner)

    def _acknowledge_committed(
        self, pending: PendingCommit[S, E], committed: AlreadyCommitted, opened: OpenCommit[S, E]
    ) -> None:
        if committed.version >= opened.version:
            raise DecisionPostponed
        pending.succeed(self.commit_lookup.acknowledge(committed.version, pending.request))

    def _retries_exhausted_error(self, request: Request) -> CommitConflictError:
        version = self.commit_lookup.state().version
        return CommitConflictError(
            f"commit {request.commit_id} gave up after {self.retry_policy.deadline_s} s: other "
            "writers won every attempt; nothing was written, try again",
            f"version {version}",
            version,
        )

    def _check_expected(self, request: Request) -> None:
        expected = request.expect_version
        newest = self.log.head.state.version if self.log.head else -1
        if expected is None or expected == newest:
            return
        if not 0 <= expected < newest:
            raise InvalidInputError(f"expected version {expected}, but the newest is {newest}")
        winner = self.log.commit_at(expected + 1)
        author = self.log.personal.name(said_by(winner.transactions[0]))
        raise CommitConflictError(
            f"expected version {expected}, but {author or 'another writer'} committed version "
            f"{winner.version} since; read it, then retry with expected version {newest}",
            "expect_version",
            winner.version,
            author,
        )


def _prepare_intents(batch: Sequence[PendingCommit[S, E]], read: Sequence[Commit[E]]) -> None:
    for each in batch if read else ():
        # The decision repeats this, and reports the error to the caller.
        with suppress(OSError, LedgerError):
            each.intent.index_winners(read)


def _split_batch(batch: Sequence[PendingCommit[S, E]]) -> Iterator[list[PendingCommit[S, E]]]:
    """Yield a batch in its order, split where a transaction needs a commit of its own."""
    for is_single, some in groupby(batch, key=lambda each: each.is_committed_alone):
        if is_single:
            yield from ([each] for each in some)
        else:
            yield list(some)
