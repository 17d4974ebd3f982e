"""Append requests and their outcome: committed, lost or unknown; the retry policy.

A create comes to one of three: this very file stands there, durably (`Committed`); another file
stands there (`Lost`); nobody could find out in time (`Unknown`). Only silence is unknown. What a
store rejects for good (`StoreError`: no space, no permission, no such place) is raised at once,
with its reason: nothing was written.

Nothing is guessed: after an unsure answer the file itself is read back, and only where there is
none the same bytes are sent again, under the same key. A caller that got `Unknown` looks its
commit's id up (`find_commit`); `Landings` say which commit is the one that was requested, by the
digest of the request, which every transaction holds.
"""

from __future__ import annotations

import hashlib
import os
import random
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from itertools import chain
from typing import Any, Final, Generic, Literal, Protocol, TypedDict, TypeVar

import msgspec
from attrs import evolve, field, frozen
from msgspec import Struct
from msgspec.structs import replace

from ledger.events.commit import Commit
from ledger.log.checkpoints import Head
from ledger.log.layout import Layout
from ledger.model import arguments as its
from ledger.model.errors import CommitUnknownError, InvalidInputError, LedgerError, StoreError
from ledger.model.instant import millis
from ledger.model.messages import excerpt, is_storable, similar
from ledger.state.stream import StateLike
from ledger.stores import Store

S = TypeVar("S")

NowMillis = Callable[[], int]
"""A clock: Unix time in milliseconds."""


class Fate(Struct):
    """What is known so far of what a request came to, for whoever is interrupted meanwhile.

    Attributes:
        is_sent: Whether it is on its way, so that it may land.
        version: Where it landed; None where nobody has said so.
        error: What was said of it instead; None where nothing was.
    """

    is_sent: bool = False
    version: int | None = None
    error: BaseException | None = None


class Request(Struct, frozen=True, kw_only=True, eq=False):
    """The envelope of one transaction, but for its events.

    Attributes:
        commit_id: Unique; the caller's own or a fresh one.
        asked: SHA-256 of what is asked, hex; None where nobody may compare it.
        otherwise: The same of what it came to, which stands in older logs in its place.
        is_given: Whether the caller gave the id, so that it may stand in the log already.
        author: Who.
        message: Why.
        properties: Anything else to keep with it.
        expect_version: Land right after this version, or be refused; None to rebase.
        effective_millis: When it happened, for imported history; None for now.
        keeps_outside: Whether who and why are kept outside of the line from this commit on.
        fate: What is known so far of what it came to.
    """

    commit_id: str
    asked: str
    otherwise: tuple[str, ...] = ()
    is_given: bool = True
    author: str = ""
    message: str = ""
    properties: Mapping[str, str] = {}
    expect_version: int | None = None
    effective_millis: int | None = None
    keeps_outside: bool = False
    fate: Fate = msgspec.field(default_factory=Fate)


def outside(request: Request) -> Request:
    """Return a request after which its stream keeps who and why outside of the lines."""
    return replace(request, keeps_outside=True)


@frozen
class Appended(Generic[S]):
    """What an append came to.

    Attributes:
        state: The newest state known.
        version: The commit that holds the transaction.
        repeated: The same commit id had landed before; nothing was written now.
        attempts: How often it was decided, as far as this process knows.
    """

    state: S = field(repr=False)
    version: int
    repeated: bool = False
    attempts: int = field(default=1, repr=False, eq=False)


class CommitOptions(TypedDict, total=False):
    """Keyword arguments of every call that writes.

    Attributes:
        author: Who; the ledger's default author when it is left out.
        message: Why.
        commit_id: A key of the caller's own, or the one that a CommitUnknownError named. The same
            key again gives the first commit; with other content it is an error. Left out, a fresh
            one is taken.
        asked: What this is, in plain data, for one who works out what to commit from the table as
            it is: the same words under the same key are the same request, whatever they come to by
            then (see `landed_before`). Left out, it is what the call is given.
        expect_version: Strict compare-and-swap: land right after this version, or be refused.
        properties: Anything else to keep with the commit.
        effective_time: When it happened, for imported history: a datetime with a time zone or
            Unix milliseconds; never before the stream's last one, never in the future.
    """

    author: str
    message: str
    commit_id: str
    asked: Any
    expect_version: int
    properties: Mapping[str, str]
    effective_time: datetime | int


def now_millis() -> int:
    """Return the Unix time in milliseconds."""
    return time.time_ns() // 1_000_000


def fresh_id() -> str:
    """Return a new UUID of version 7: unique, and sorted by time.

    Example:
        >>> len(fresh_id()), fresh_id()[14]
        (36, '7')
    """
    stamp = now_millis().to_bytes(6, "big")
    random = bytearray(os.urandom(10))
    random[0] = 0x70 | random[0] & 0x0F
    random[2] = 0x80 | random[2] & 0x3F
    text = (stamp + bytes(random)).hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def request_of(options: CommitOptions, *, asked: Any, default_author: str) -> Request:
    """Return the envelope of a call.

    Args:
        options: What the caller gave.
        asked: The subject of the call, in plain data; its digest recognises the same request
            under a given commit id.
        default_author: Who, when the caller did not say.

    Raises:
        InvalidInputError: An option is none, or cannot be written.
    """
    if options:
        _check(options)
    given = options.get("commit_id")
    effective = options.get("effective_time")
    try:
        words = (options["asked"], asked) if "asked" in options else (asked,)
        digest, *otherwise = [digest_of(each) for each in words]
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise InvalidInputError(f"what was asked cannot be written as JSON: {error}") from error
    return Request(
        commit_id=given or fresh_id(),
        asked=digest,
        otherwise=tuple(otherwise),
        is_given=given is not None,
        author=options.get("author", default_author),
        message=options.get("message", ""),
        properties=options.get("properties", {}),
        expect_version=options.get("expect_version"),
        effective_millis=None if effective is None else millis(effective),
    )


def _check(options: CommitOptions) -> None:
    _refuse_unknown(options)
    for name, form in _FORMS.items():
        if name in options:
            form.check(name, options[name])
    given = options.get("commit_id")
    if given is not None and (type(given) is not str or not given):
        raise InvalidInputError(
            f"commit_id={excerpt(given)} is no key; give a text that is not empty"
        )
    if given is not None and not is_storable(given):
        raise InvalidInputError(
            f"commit_id={excerpt(given)} is no key: half a surrogate pair is no character"
        )
    _refuse_half_characters(options)


def _refuse_half_characters(options: CommitOptions) -> None:
    properties = options.get("properties", {})
    said = [("author", options.get("author", "")), ("message", options.get("message", ""))]
    said += [("properties", each) for each in chain(properties, properties.values())]
    for name, each in said:
        if not is_storable(each):
            raise InvalidInputError(
                f"{name}={excerpt(each)}: half a surrogate pair is no character"
            )


_FORMS: dict[
    Literal["author", "message", "expect_version", "properties", "effective_time"], its.Form
] = {
    "author": its.words,
    "message": its.words,
    "expect_version": its.whole.or_none(),
    "properties": its.texts,
    "effective_time": its.moment.or_none(),
}


def _refuse_unknown(options: CommitOptions) -> None:
    # A misspelt `expect_version` would commit without the check that was asked for.
    known = CommitOptions.__annotations__
    for name in options.keys() - known.keys():
        near = similar(name, known)
        meant = f"did you mean {near[0]}=?" if near else f"it takes {', '.join(known)}."
        raise InvalidInputError(
            f"{name}= is nothing that a commit takes; {meant} Nothing was written"
        )


def digest_of(asked: Any) -> str:
    """Return the SHA-256, in hex, of what is asked, in plain data."""
    try:
        content = msgspec.json.encode(asked, order="sorted")
    except TypeError:
        # Keys that are no texts are sorted as the texts that they become.
        plain = msgspec.to_builtins(asked, str_keys=True)
        content = msgspec.json.encode(plain, order="sorted")
    return hashlib.sha256(content).hexdigest()


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


StateT = TypeVar("StateT", bound=StateLike)
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


class LandedLog(Protocol[StateT, E_co]):
    """What is asked of a stream's log by whoever looks for a commit: `StreamLog` has it."""

    @property
    def store(self) -> Store:
        """Where the stream is."""

    @property
    def layout(self) -> Layout:
        """Under which keys."""

    @property
    def head(self) -> Head[StateT] | None:
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


class Landings(Struct, Generic[StateT, E], frozen=True):
    """What requests came to in a stream: whose the commits are that stand there.

    Attributes:
        log: The stream.
        patience: How long to go on until the store confirms what was read.
    """

    log: LandedLog[StateT, E]
    patience: Patience

    def before(self, request: Request) -> Appended[StateT] | None:
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

    def of_words(self, request: Request) -> Appended[StateT] | None:
        """Return what was asked in these words under an id; None where that was something else."""
        # What else was asked is refused once it is known what is asked now.
        with suppress(InvalidInputError):
            return self.before(request)
        return None

    def known(self, request: Request) -> Appended[StateT] | None:
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

    def otherwise(self, request: Request, otherwise: Iterable[Any]) -> Appended[StateT] | None:
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
    ) -> Appended[StateT] | None:
        """Return what a request came to, if it is among those that won against `sent`.

        Raises:
            InvalidInputError: One of them has its id, and is something else.
        """
        for won in winners:
            if _holds(won, request):
                # A client that sends a create twice is told that its own file exists.
                return evolve(self.acknowledge(won.version, request), repeated=won != sent)
        return None

    def beside(self, request: Request, commit: Commit[E]) -> Appended[StateT] | None:
        """Return what another rider of the same id came to, whose commit has just landed.

        Raises:
            InvalidInputError: He asked for something else.
        """
        if not _holds(commit, request):
            return None
        return Appended(self.state(), commit.version, repeated=True)

    def acknowledge(self, version: int, request: Request) -> Appended[StateT]:
        """Return what was found by reading, once it is durable: its writer may have died before.

        Raises:
            CommitUnknownError: The store does not answer.
        """
        key = self.log.layout.commit(version)
        commit_id = request.commit_id
        make_sure(self.log.store, key, self.patience, version=version, commit_id=commit_id)
        return Appended(self.state(), version, repeated=True)

    def state(self) -> StateT:
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
