"""Commit outcome: committed, lost or unknown; and the retry policy.

A create comes to one of three: this very file stands there, durably (`Committed`); another file
stands there (`Lost`); nobody could find out in time (`Unknown`). Only silence is unknown. What a
store refuses for good (`StoreError`: no space, no permission, no such place) is raised at once,
with its reason: nothing was written.

Nothing is ever guessed: after an unsure answer the file itself is read back, and only where there
is none the same bytes are sent again, under the same key. Whoever was told `Unknown` asks for his
commit's id (`find_commit`); `Landings` say which commit is the one that he asked for, by the digest
of what was asked, which stands in every transaction. What people are told of all this, and
how they find out, is said here, too.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final, Generic, Protocol, TypeVar

from attrs import evolve
from msgspec import Struct

from ledger.events.commit import Commit
from ledger.log.checkpoints import Head
from ledger.log.layout import Layout
from ledger.log.request import Appended, Request, digest_of
from ledger.model.errors import CommitUnknownError, InvalidInputError, LedgerError, StoreError
from ledger.model.messages import is_storable
from ledger.state.stream import StateLike
from ledger.stores import Store

# Programs give all of their processes one seed, and those would wait as long as one another.
_dice = random.SystemRandom()


def _jitter(low: float, high: float) -> float:
    return _dice.uniform(low, high)


class Patience(Struct, frozen=True):
    """How long a writer goes on.

    Attributes:
        deadline_s: After so many seconds a losing or unanswered writer gives up.
        first_wait_s: The longest first pause; it doubles up to `longest_wait_s`.
        longest_wait_s: The longest pause at all.
        sleep: Waits, in seconds.
        monotonic: A clock for deadlines, in seconds.
        uniform: Jitter: a number between its two arguments.
    """

    deadline_s: float = 60.0
    first_wait_s: float = 0.002
    longest_wait_s: float = 0.5
    sleep: Callable[[float], None] = time.sleep
    monotonic: Callable[[], float] = time.monotonic
    uniform: Callable[[float, float], float] = _jitter

    def pause(self, attempt: int) -> None:
        """Wait a random time, longer with every attempt."""
        longest = min(self.longest_wait_s, self.first_wait_s * 2 ** min(attempt, 12))
        self.sleep(self.uniform(0, longest))

    def attempts(self) -> Iterator[int]:
        """Yield 1, 2, 3, ... until the deadline has passed, with pauses from the third on.

        The second follows at once: whoever holds the lock wins it, and a lost answer is rare.
        """
        give_up = self.monotonic() + self.deadline_s
        attempt = 0
        while attempt == 0 or self.monotonic() <= give_up:
            attempt += 1
            yield attempt
            if attempt > 1:
                self.pause(attempt)


S = TypeVar("S", bound=StateLike)
E = TypeVar("E")
E_co = TypeVar("E_co", covariant=True)

ASKING_AGAIN: Final = "asking again with the same commit_id= is safe"
"""What everybody is told who knows an id: nothing lands twice under it."""


class LogFile(Struct, frozen=True):
    """A commit's file on its way.

    Attributes:
        key: Where it is to stand.
        body: Its bytes.
        version: Its commit's number.
    """

    key: str
    body: bytes
    version: int


class Committed(Struct, frozen=True):
    """The file stands in its place, and would survive a loss of power.

    Attributes:
        version: Its commit's number.
    """

    version: int


class Lost(Struct, frozen=True):
    """Another file stands in its place; of this one nothing was written.

    Attributes:
        version: The number that somebody else's commit has.
    """

    version: int


class Unknown(Struct, frozen=True):
    """The store gave no answer, and could not be read back in time.

    Attributes:
        file: What may have landed.
        cause: The last failure.
    """

    file: LogFile
    cause: Exception | None

    def told(self, commit_id: str) -> CommitUnknownError:
        """Return the error for one whose transaction was in it."""
        return unknown(self.file.key, self.file.version, commit_id, self.cause)


Outcome = Committed | Lost | Unknown
"""What came of a create."""


def land(store: Store, file: LogFile, patience: Patience) -> Outcome:
    """Create a file, and find out what came of it.

    Raises:
        StoreError: The store refuses it; nothing was written.
    """
    failure: Exception | None = None
    for _ in patience.attempts():
        try:
            created = store.create(file.key, file.body)
        except OSError as error:
            failure = error
        except StoreError as error:
            # An earlier attempt may have landed, or be on its way.
            if failure is None:
                raise
            failure = error
        else:
            return Committed(file.version) if created else Lost(file.version)
        try:
            found = store.confirm(file.key)
        except (OSError, StoreError):
            continue
        if found is not None:
            return Committed(file.version) if found == file.body else Lost(file.version)
    return Unknown(file, failure)


def after_loss(
    store: Store, file: LogFile, patience: Patience, read_on: Callable[[], object]
) -> Outcome:
    """Read what landed instead; who cannot read it does not know whether it is his.

    Args:
        store: Where.
        file: What lost.
        patience: How long to go on.
        read_on: Reads the commits from its place on.

    Raises:
        LedgerError: What landed is damaged, or a newer version wrote it.
    """
    failure: Exception | None = None
    for _ in patience.attempts():
        try:
            read_on()
        except OSError as error:
            failure = error
        except LedgerError:
            # A client that sends a create twice is told that its own file exists.
            try:
                if store.confirm(file.key) == file.body:
                    return Committed(file.version)
            except OSError as error:
                return Unknown(file, error)
            raise
        else:
            return Lost(file.version)
    return Unknown(file, failure)


def land_once(store: Store, file: LogFile, patience: Patience, commit_id: str) -> None:
    """Return once a file stands in its place, whoever wrote it.

    Raises:
        CommitUnknownError: The store does not answer in time.
        StoreError: The store refuses it; nothing was written.
    """
    outcome = land(store, file, patience)
    if isinstance(outcome, Unknown):
        raise outcome.told(commit_id)


def land_or_refuse(store: Store, file: LogFile, patience: Patience, says: str) -> Committed | Lost:
    """Create a file that is found or created by whoever asks again: silence is a refusal.

    Args:
        store: Where.
        file: What.
        patience: How long to go on.
        says: What silence means for whoever asked, and what he does.

    Raises:
        StoreError: The store refuses it, or gave no answer.
    """
    outcome = land(store, file, patience)
    if isinstance(outcome, Unknown):
        raise _silence(store, file, outcome.cause, says) from outcome.cause
    return outcome


def land_own(store: Store, file: LogFile, patience: Patience, what: str) -> None:
    """Create a file under a name of its own, before the commit that names it.

    Args:
        store: Where.
        file: The file.
        patience: How long to go on.
        what: What is in it, for people.

    Raises:
        StoreError: The store refuses it, gave no answer, or has another file there.
    """
    says = f"{what} have to stand there before the commit; nothing was committed, try again"
    if isinstance(land_or_refuse(store, file, patience, says), Committed):
        return
    # A client that sends a create twice is told that its own file exists.
    try:
        found = _confirmed(store, file.key, patience)
    except OSError as error:
        raise _silence(store, file, error, says) from error
    if found != file.body:
        raise StoreError(f"{store.url}/{file.key}: another file stands there; {says}")


def _silence(store: Store, file: LogFile, cause: Exception | None, says: str) -> StoreError:
    return StoreError(f"{store.url}/{file.key}: the store gave no answer ({cause}); {says}")


def make_sure(store: Store, key: str, patience: Patience, *, version: int, commit_id: str) -> None:
    """Return once a file that was read would survive a loss of power.

    Raises:
        CommitUnknownError: The store does not answer in time.
    """
    try:
        _confirmed(store, key, patience)
    except OSError as error:
        raise unknown(key, version, commit_id, error) from error


def _confirmed(store: Store, key: str, patience: Patience) -> bytes | None:
    """Return what stands in a place and would survive a loss of power.

    Raises:
        OSError: The store does not answer in time.
    """
    for _ in patience.attempts():
        try:
            return store.confirm(key)
        except OSError as error:
            failure = error
    raise failure


def unknown(
    key: str, version: int, commit_id: str, cause: Exception | None = None
) -> CommitUnknownError:
    """Return the error that says so."""
    told = CommitUnknownError(
        f"{key}: the store gave no answer and could not be read back; "
        f"{_in_doubt(commit_id, 'may have landed')}",
        commit_id,
        version,
    )
    told.__cause__ = cause
    return told


def unfinished(version: int, commit_id: str) -> CommitUnknownError:
    """Return the error for one whose commit landed, and who cannot be told all that came of it."""
    return CommitUnknownError(
        f"commit {commit_id} has landed in version {version}, but what follows from it could not "
        "be done or read; whoever opens the table or looks at the view next goes on from there, "
        f"and {ASKING_AGAIN}",
        commit_id,
        version,
    )


def fate(request: Request) -> str:
    """Return in words what is known of a request, for one who was interrupted and waits no longer.

    Example:
        >>> request = Request(commit_id="monday", asked="")
        >>> request.fate.version = 7
        >>> fate(request)
        'commit monday has landed in version 7'
    """
    commit_id, found = request.commit_id, request.fate
    if found.version is not None:
        return f"commit {commit_id} has landed in version {found.version}"
    if isinstance(found.error, LedgerError) and not isinstance(found.error, CommitUnknownError):
        return f"commit {commit_id} did not land: {found.error}"
    known = "is on its way and may land" if found.error is None else "may have landed"
    return _in_doubt(commit_id, known)


@contextmanager
def noting(request: Request) -> Iterator[None]:
    """Add a note to an exception that interrupts the body: the commit id, and what is known of it.

    The ledger's own errors say that themselves; one raised before the request was submitted gets
    no note, as nothing can be committed.
    """
    try:
        yield
    except LedgerError:
        raise
    except BaseException as error:
        notes = getattr(error, "__notes__", ())
        if request.fate.is_sent and not any(request.commit_id in each for each in notes):
            error.add_note(fate(request))
        raise


def _in_doubt(commit_id: str, known: str) -> str:
    return (
        f"commit {commit_id} {known}. Look for it before you ask again (lakeledger log "
        f"--commit-id {commit_id}); {ASKING_AGAIN}"
    )


class LandedLog(Protocol[S, E_co]):
    """What is asked of a stream's log by whoever looks for a commit: `StreamLog` has it."""

    @property
    def store(self) -> Store:
        """Where the stream is."""

    @property
    def layout(self) -> Layout:
        """Under which keys."""

    @property
    def head(self) -> Head[S] | None:
        """The newest commit known."""

    @property
    def personal(self) -> Telling:
        """What lines do not hold of who and why."""

    def refuse_reentry(self) -> None:
        """Refuse to wait for what cannot come."""

    def catch_up(self) -> object:
        """Move the head forward over what others appended."""

    def with_id(self, commit_id: str) -> Iterator[int]:
        """Yield the versions up to the head that may hold a transaction of an id, newest first."""

    def commit_at(self, version: int) -> Commit[E_co]:
        """Return one commit."""


class Telling(Protocol):
    """Who says what lines do not hold."""

    def told(self, commits: Sequence[Commit[E]]) -> list[Commit[E]]:
        """Return commits as readers are told them."""


def find_commit(log: LandedLog[Any, E], commit_id: str) -> Commit[E] | None:
    """Return the commit that holds what was asked under an id, after looking what is newer."""
    log.catch_up()
    if not is_storable(commit_id):
        return None
    for version in log.with_id(commit_id):
        found = log.commit_at(version)
        if any(each.id == commit_id for each in found.transactions):
            return log.personal.told([found])[0]
    return None


class Landings(Struct, Generic[S, E], frozen=True):
    """What requests came to in a stream: whose the commits are that stand there.

    Attributes:
        log: The stream.
        patience: How long to go on until the store confirms what was read.
    """

    log: LandedLog[S, E]
    patience: Patience

    def before(self, request: Request) -> Appended[S] | None:
        """Return what a caller-given commit id came to before, if it did; reads what is newer.

        For one whose request contradicts what is there: it may be there since it landed.

        Raises:
            InvalidInputError: The id was used before, for something else.
        """
        if not request.is_given:
            return None
        self.log.refuse_reentry()
        self.log.catch_up()
        return self.known(request)

    def of_words(self, request: Request) -> Appended[S] | None:
        """Return what was asked in these words under an id; None where that was something else."""
        # What else was asked is refused once it is known what is asked now.
        with suppress(InvalidInputError):
            return self.before(request)
        return None

    def known(self, request: Request) -> Appended[S] | None:
        """Return what a caller-given commit id came to up to the head that is known.

        Raises:
            InvalidInputError: The id was used before, for something else.
        """
        if not request.is_given:
            return None
        for version in self.log.with_id(request.commit_id):
            commit = self.log.commit_at(version)
            if _was_asked(commit, request, request.otherwise) or _holds(commit, request):
                return self.acknowledge(version, request)
        return None

    def otherwise(self, request: Request, otherwise: Iterable[Any]) -> Appended[S] | None:
        """Return what a caller-given commit id came to, if one of `otherwise` was asked by it.

        For one whose request has another digest than it had then.
        """
        versions = list(self.log.with_id(request.commit_id)) if request.is_given else []
        for asked in map(digest_of, otherwise) if versions else ():
            for version in versions:
                if _was_asked(self.log.commit_at(version), request, (asked,)):
                    return self.acknowledge(version, request)
        return None

    def among(
        self, request: Request, winners: Iterable[Commit[E]], sent: Commit[E]
    ) -> Appended[S] | None:
        """Return what a request came to, if it is among those that won against `sent`.

        Raises:
            InvalidInputError: One of them has its id, and is something else.
        """
        for won in winners:
            if _holds(won, request):
                # A client that sends a create twice is told that its own file exists.
                return evolve(self.acknowledge(won.version, request), repeated=won != sent)
        return None

    def beside(self, request: Request, commit: Commit[E]) -> Appended[S] | None:
        """Return what another rider of the same id came to, whose commit has just landed.

        Raises:
            InvalidInputError: He asked for something else.
        """
        if not _holds(commit, request):
            return None
        return Appended(self.state(), commit.version, repeated=True)

    def acknowledge(self, version: int, request: Request) -> Appended[S]:
        """Return what was found by reading, once it is durable: its writer may have died before.

        Raises:
            CommitUnknownError: The store does not answer.
        """
        key = self.log.layout.commit(version)
        commit_id = request.commit_id
        make_sure(self.log.store, key, self.patience, version=version, commit_id=commit_id)
        return Appended(self.state(), version, repeated=True)

    def state(self) -> S:
        """Return the newest state known of a stream that was appended to."""
        head = self.log.head
        if head is None:
            raise AssertionError("a stream that was appended to has a head")
        return head.state


def _was_asked(commit: Commit[Any], request: Request, digests: Sequence[str]) -> bool:
    """Say whether a commit holds a request's transaction, asked in one of some other ways."""
    if not digests:
        return False
    return any(
        each.id == request.commit_id and each.asked in digests for each in commit.transactions
    )


def _holds(commit: Commit[Any], request: Request) -> bool:
    """Say whether a commit holds a request's transaction.

    Raises:
        InvalidInputError: It holds one of the same id that is something else.
    """
    for transaction in commit.transactions:
        if transaction.id == request.commit_id:
            if transaction.asked != request.asked:
                raise InvalidInputError(
                    f"commit id {request.commit_id!r} was used for something else in version "
                    f"{commit.version}; take a new id for a new request"
                )
            return True
    return False
