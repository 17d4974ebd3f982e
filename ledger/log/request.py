"""Append requests and their outcome: committed, lost or unknown; the retry policy.

A create has one of three outcomes: this very file is under its key, durably (`Committed`); another
file is (`LostRace`); the store did not answer in time (`Unknown`). What a store rejects for good
(`StoreError`: no space, no permission, no such place) is raised at once, with its reason: nothing
was written.

Nothing is guessed: after a failed create the file itself is read back, and only if it does not
exist the same bytes are sent again, under the same key. A caller that got `Unknown` looks up its
commit id (`find_commit`); `CommitLookup` tells whether a commit is that of a request, by the
digest of the request, which every transaction contains.
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
from ledger.model.messages import excerpt, is_utf8_encodable, similar_names
from ledger.state.stream import StateLike
from ledger.stores import Store

S = TypeVar("S")

NowMillis = Callable[[], int]
"""A clock: Unix time in milliseconds."""


class CommitStatus(Struct):
    """Status of a request so far, for the note on an exception that interrupts its caller.

    Attributes:
        is_sent: Whether it was submitted, so that it may be committed.
        version: The version that it was committed as; None if not known.
        error: The error that it failed with; None if there is none so far.
    """

    is_sent: bool = False
    version: int | None = None
    error: BaseException | None = None


class Request(Struct, frozen=True, kw_only=True, eq=False):
    """A transaction without its events: id, request digest, author, message and properties.

    Attributes:
        commit_id: Unique; the caller's own or a generated one.
        asked: The request digest: SHA-256 of the requested content, hex; None: not compared.
        previous_digests: Request digests that older versions may have recorded for the request.
        is_given: Whether the caller gave the id, so that it may be in the log already.
        author: The author.
        message: The commit message.
        properties: Further texts to keep with it.
        expect_version: The version that it must directly follow; None to rebase.
        effective_millis: Effective time of imported history, Unix milliseconds; None for now.
        keeps_outside: Whether the stream keeps texts in sidecar files from this commit on.
        status: The status of the request so far.
    """

    commit_id: str
    asked: str
    previous_digests: tuple[str, ...] = ()
    is_given: bool = True
    author: str = ""
    message: str = ""
    properties: Mapping[str, str] = {}
    expect_version: int | None = None
    effective_millis: int | None = None
    keeps_outside: bool = False
    status: CommitStatus = msgspec.field(default_factory=CommitStatus)


def outside(request: Request) -> Request:
    """Return a request from which on its stream keeps author and message in sidecar files."""
    return replace(request, keeps_outside=True)


@frozen
class Appended(Generic[S]):
    """Result of an append.

    Attributes:
        state: The newest state in memory.
        version: The version of the commit with the transaction.
        repeated: The same request was committed before; nothing was written now.
        attempts: Number of times that it was decided, as far as this process knows.
    """

    state: S = field(repr=False)
    version: int
    repeated: bool = False
    attempts: int = field(default=1, repr=False, eq=False)


class CommitOptions(TypedDict, total=False):
    """Keyword arguments of every call that writes.

    Attributes:
        author: The author; the ledger's default author if omitted.
        message: The commit message.
        commit_id: The idempotency key: the caller's own, or the one that a CommitUnknownError
            named. The same key again returns the first commit; with other content it is an error.
            If omitted, one is generated.
        asked: The content of the request, in plain data, for callers that derive the changes from
            the table's state: the same content under the same key is the same request, whatever
            changes it results in (`find_commit` looks it up). If omitted, it is the arguments.
        expect_version: Strict compare-and-swap: commit directly after this version, or raise.
        properties: Further texts to keep with the commit.
        effective_time: Effective time, for imported history: a datetime with a time zone, its ISO
            text, or Unix milliseconds; never before the stream's last one, never in the future.
    """

    author: str
    message: str
    commit_id: str
    asked: Any
    expect_version: int
    properties: Mapping[str, str]
    effective_time: datetime | int | str


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
    """Return the request of a call.

    Args:
        options: The keyword arguments of the call.
        asked: The content of the call, in plain data; its digest recognises the same request
            under a given commit id.
        default_author: The author if the call names none.

    Raises:
        InvalidInputError: An option is unknown or has an invalid value.
    """
    if options:
        _check_options(options)
    given = options.get("commit_id")
    effective = options.get("effective_time")
    try:
        words = (options["asked"], asked) if "asked" in options else (asked,)
        digest, *previous_digests = [digest_of(each) for each in words]
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise InvalidInputError(f"the request cannot be encoded as JSON: {error}") from error
    return Request(
        commit_id=given or fresh_id(),
        asked=digest,
        previous_digests=tuple(previous_digests),
        is_given=given is not None,
        author=options.get("author", default_author),
        message=options.get("message", ""),
        properties=options.get("properties", {}),
        expect_version=options.get("expect_version"),
        effective_millis=None if effective is None else millis(effective),
    )


def _check_options(options: CommitOptions) -> None:
    _refuse_unknown_options(options)
    for name, form in _FORMS.items():
        if name in options:
            form.check(name, options[name])
    given = options.get("commit_id")
    if given is not None and (type(given) is not str or not given):
        raise InvalidInputError(
            f"commit id {excerpt(given)} is not valid; give a text that is not empty"
        )
    if given is not None and not is_utf8_encodable(given):
        raise InvalidInputError(
            f"commit id {excerpt(given)} is not valid: half a surrogate pair is no character"
        )
    _refuse_lone_surrogates(options)


def _refuse_lone_surrogates(options: CommitOptions) -> None:
    properties = options.get("properties", {})
    said = [("author", options.get("author", "")), ("message", options.get("message", ""))]
    said += [("properties", each) for each in chain(properties, properties.values())]
    for name, each in said:
        if not is_utf8_encodable(each):
            raise InvalidInputError(
                f"{name}={excerpt(each)}: half a surrogate pair is no character"
            )


_FORMS: dict[
    Literal["author", "message", "expect_version", "properties", "effective_time"], its.ArgumentForm
] = {
    "author": its.words,
    "message": its.words,
    "expect_version": its.whole.or_none(),
    "properties": its.texts,
    "effective_time": its.moment.or_none(),
}


def _refuse_unknown_options(options: CommitOptions) -> None:
    # A misspelt `expect_version` would commit without the requested check.
    known = CommitOptions.__annotations__
    for name in options.keys() - known.keys():
        near = similar_names(name, known)
        meant = f"did you mean {near[0]}=?" if near else f"it takes {', '.join(known)}."
        raise InvalidInputError(
            f"{name}= is not an option of a commit; {meant} Nothing was written"
        )


def digest_of(asked: Any) -> str:
    """Return the request digest: SHA-256, in hex, of the content in plain data."""
    try:
        content = msgspec.json.encode(asked, order="sorted")
    except TypeError:
        # Keys that are not strings are sorted as the strings that they become in JSON.
        plain = msgspec.to_builtins(asked, str_keys=True)
        content = msgspec.json.encode(plain, order="sorted")
    return hashlib.sha256(content).hexdigest()


# Not the global generator: programs that seed it alike in all processes would retry in lockstep.
_dice = random.SystemRandom()


def _jitter(low: float, high: float) -> float:
    return _dice.uniform(low, high)


class RetryPolicy(Struct, frozen=True):
    """Retry policy of a writer: exponential backoff with jitter, up to a deadline.

    Attributes:
        deadline_s: Seconds after which a losing or unanswered writer gives up.
        first_wait_s: Upper limit of the first pause, in seconds; it doubles with every attempt.
        longest_wait_s: Upper limit of every pause, in seconds.
        sleep: Sleeps for a number of seconds.
        monotonic: Returns the time for deadlines, in seconds.
        uniform: Returns a random number between its two arguments, for the jitter.
    """

    deadline_s: float = 60.0
    first_wait_s: float = 0.002
    longest_wait_s: float = 0.5
    sleep: Callable[[float], None] = time.sleep
    monotonic: Callable[[], float] = time.monotonic
    uniform: Callable[[float, float], float] = _jitter

    def pause(self, attempt: int) -> None:
        """Sleep for a random time, longer with every attempt."""
        longest = min(self.longest_wait_s, self.first_wait_s * 2 ** min(attempt, 12))
        self.sleep(self.uniform(0, longest))

    def attempts(self) -> Iterator[int]:
        """Yield 1, 2, 3, ... until the deadline has passed, with pauses from the third on.

        The second follows at once: the holder of the lock mostly wins it, and lost answers are
        rare.
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

COMMIT_ID_REUSED: Final = "COMMIT_ID_REUSED"
"""Kind of the error that a commit id was used before, for another request."""

ASKING_AGAIN: Final = "retrying with the same commit id is safe"
"""Advice in messages with a commit id: nothing is committed twice under one id."""


class LogFile(Struct, frozen=True):
    """A file to be created, mostly that of a commit.

    Attributes:
        key: Its key in the store.
        body: Its bytes.
        version: The version of its commit; 0 for other files.
    """

    key: str
    body: bytes
    version: int


class Committed(Struct, frozen=True):
    """Outcome of a create: the file is under its key, durably.

    Attributes:
        version: The version of its commit.
    """

    version: int


class LostRace(Struct, frozen=True):
    """Outcome of a create: another file is under the key, and nothing was written.

    Attributes:
        version: The version, which another writer's commit has.
    """

    version: int


class Unknown(Struct, frozen=True):
    """Outcome of a create: the store gave no answer and could not be read back in time.

    Attributes:
        file: The file, which may have been created.
        cause: The last failure.
    """

    file: LogFile
    cause: Exception | None

    def as_error(self, commit_id: str) -> CommitUnknownError:
        """Return the error for the caller of a transaction in the file's commit."""
        return unknown(self.file.key, self.file.version, commit_id, self.cause)


Outcome = Committed | LostRace | Unknown
"""Outcome of a create."""


def commit_file(store: Store, file: LogFile, retry_policy: RetryPolicy) -> Outcome:
    """Create a file, with retries, and return the outcome.

    Raises:
        StoreError: The store rejects it; nothing was written.
    """
    failure: Exception | None = None
    for _ in retry_policy.attempts():
        try:
            created = store.create(file.key, file.body)
        except OSError as error:
            failure = error
        except StoreError as error:
            # An earlier attempt may have created the file, or still be in progress.
            if failure is None:
                raise
            failure = error
        else:
            return Committed(file.version) if created else LostRace(file.version)
        try:
            found = store.confirm(file.key)
        except (OSError, StoreError):
            continue
        if found is not None:
            return Committed(file.version) if found == file.body else LostRace(file.version)
    return Unknown(file, failure)


def confirm_loss(
    store: Store, file: LogFile, retry_policy: RetryPolicy, read_on: Callable[[], object]
) -> Outcome:
    """Read the winning commits, and return the final outcome: `LostRace`, unless unreadable.

    Args:
        store: The stream's store.
        file: The file that lost.
        retry_policy: The retry policy.
        read_on: Reads the commits from the file's version on.

    Raises:
        LedgerError: The winning commit is damaged, or a newer version wrote it.
    """
    failure: Exception | None = None
    for _ in retry_policy.attempts():
        try:
            read_on()
        except OSError as error:
            failure = error
        except LedgerError:
            # A client that sends a create twice gets the answer that its own file exists.
            try:
                if store.confirm(file.key) == file.body:
                    return Committed(file.version)
            except OSError as error:
                return Unknown(file, error)
            raise
        else:
            return LostRace(file.version)
    return Unknown(file, failure)


def commit_file_once(
    store: Store, file: LogFile, retry_policy: RetryPolicy, commit_id: str
) -> None:
    """Create a file unless it exists, whichever writer created it.

    Raises:
        CommitUnknownError: The store does not answer in time.
        StoreError: The store rejects it; nothing was written.
    """
    outcome = commit_file(store, file, retry_policy)
    if isinstance(outcome, Unknown):
        raise outcome.as_error(commit_id)


def commit_file_or_raise(
    store: Store, file: LogFile, retry_policy: RetryPolicy, says: str
) -> Committed | LostRace:
    """Create a file that a retry of the call finds or creates: no answer is an error.

    Args:
        store: The store.
        file: The file.
        retry_policy: The retry policy.
        says: Consequence and next step for the message if the store gives no answer.

    Raises:
        StoreError: The store rejects it, or gave no answer.
    """
    outcome = commit_file(store, file, retry_policy)
    if isinstance(outcome, Unknown):
        raise _no_answer_error(store, file, outcome.cause, says) from outcome.cause
    return outcome


def create_unique_file(store: Store, file: LogFile, retry_policy: RetryPolicy, what: str) -> None:
    """Create a file under a unique name, before the commit that names it.

    Args:
        store: The store.
        file: The file.
        retry_policy: The retry policy.
        what: Its content, for messages.

    Raises:
        StoreError: The store rejects it, gave no answer, or has another file under its key.
    """
    says = f"{what} have to be stored there before the commit; nothing was committed, try again"
    if isinstance(commit_file_or_raise(store, file, retry_policy, says), Committed):
        return
    # A client that sends a create twice gets the answer that its own file exists.
    try:
        found = _read_durable_body(store, file.key, retry_policy)
    except OSError as error:
        raise _no_answer_error(store, file, error, says) from error
    if found != file.body:
        raise StoreError(f"{store.url}/{file.key}: another file is already there; {says}")


def _no_answer_error(store: Store, file: LogFile, cause: Exception | None, says: str) -> StoreError:
    return StoreError(f"{store.url}/{file.key}: the store gave no answer ({cause}); {says}")


def ensure_durable(
    store: Store, key: str, retry_policy: RetryPolicy, *, version: int, commit_id: str
) -> None:
    """Make sure that a commit file that was read is durable.

    Raises:
        CommitUnknownError: The store does not answer in time.
    """
    try:
        _read_durable_body(store, key, retry_policy)
    except OSError as error:
        raise unknown(key, version, commit_id, error) from error


def _read_durable_body(store: Store, key: str, retry_policy: RetryPolicy) -> bytes | None:
    """Return the body under a key, once it is durable.

    Raises:
        OSError: The store does not answer in time.
    """
    for _ in retry_policy.attempts():
        try:
            return store.confirm(key)
        except OSError as error:
            failure = error
    raise failure


def unknown(
    key: str, version: int, commit_id: str, cause: Exception | None = None
) -> CommitUnknownError:
    """Return the error for a commit whose outcome is unknown."""
    unknown = CommitUnknownError(
        f"{key}: the store gave no answer and could not be read back; "
        f"{_unknown_outcome_text(commit_id, 'may have been committed')}",
        commit_id,
        version,
    )
    unknown.__cause__ = cause
    return unknown


def unfinished_steps_error(version: int, commit_id: str) -> CommitUnknownError:
    """Return the error for a catalog commit whose follow-up steps failed after it."""
    return CommitUnknownError(
        f"commit {commit_id} was committed as version {version}, but the steps that follow it "
        "failed; the next process that opens the table or view completes them, and "
        f"{ASKING_AGAIN}",
        commit_id,
        version,
    )


def describe_status(request: Request) -> str:
    """Return the status of a request in words, for a note on the exception that interrupted it.

    Example:
        >>> request = Request(commit_id="monday", asked="")
        >>> request.status.version = 7
        >>> describe_status(request)
        'commit monday was committed as version 7'
    """
    commit_id, found = request.commit_id, request.status
    if found.version is not None:
        return f"commit {commit_id} was committed as version {found.version}"
    if isinstance(found.error, LedgerError) and not isinstance(found.error, CommitUnknownError):
        return f"commit {commit_id} was not committed: {found.error}"
    known = (
        "is in progress and may be committed" if found.error is None else "may have been committed"
    )
    return _unknown_outcome_text(commit_id, known)


@contextmanager
def annotate_interruption(request: Request) -> Iterator[None]:
    """Add a note to an exception that interrupts the body: the commit id and its status.

    The ledger's own errors contain that themselves; an exception raised before the request was
    submitted gets no note, as nothing can be committed.
    """
    try:
        yield
    except LedgerError:
        raise
    except BaseException as error:
        notes = getattr(error, "__notes__", ())
        if request.status.is_sent and not any(request.commit_id in each for each in notes):
            error.add_note(describe_status(request))
        raise


def _unknown_outcome_text(commit_id: str, known: str) -> str:
    return (
        f"commit {commit_id} {known}. Look it up before you retry (lakeledger log "
        f"--commit-id {commit_id}); {ASKING_AGAIN}"
    )


class LookupLog(Protocol[StateT, E_co]):
    """The part of a stream's log that commit lookup needs; `StreamLog` implements it."""

    @property
    def store(self) -> Store:
        """The stream's store."""

    @property
    def layout(self) -> Layout:
        """The stream's keys."""

    @property
    def head(self) -> Head[StateT] | None:
        """The newest commit in memory; None before version 0."""

    @property
    def personal(self) -> PersonalResolver:
        """Sidecar files with the texts of transactions."""

    def refuse_reentry(self) -> None:
        """Raise if this thread is reading the log already, so that it would wait for itself."""

    def catch_up(self) -> object:
        """Read the commits that other writers appended."""

    def with_id(self, commit_id: str) -> Iterator[int]:
        """Yield the versions up to the head that may contain a transaction id, newest first."""

    def commit_at(self, version: int) -> Commit[E_co]:
        """Return one commit."""


class PersonalResolver(Protocol):
    """Resolver of the texts of transactions that sidecar files contain."""

    def resolve(self, commits: Sequence[Commit[E]]) -> list[Commit[E]]:
        """Return commits with the texts from their sidecar files."""


def find_commit(log: LookupLog[Any, E], commit_id: str) -> Commit[E] | None:
    """Return the commit with a transaction id, after catching up; None if there is none."""
    log.catch_up()
    if not is_utf8_encodable(commit_id):
        return None
    for version in log.with_id(commit_id):
        found = log.commit_at(version)
        if any(each.id == commit_id for each in found.transactions):
            return log.personal.resolve([found])[0]
    return None


class CommitLookup(Struct, Generic[StateT, E], frozen=True):
    """Lookup of the outcomes of requests in a stream's log, by commit id and request digest.

    Attributes:
        log: The stream.
        retry_policy: The retry policy for making a commit that was found durable.
    """

    log: LookupLog[StateT, E]
    retry_policy: RetryPolicy

    def before(self, request: Request) -> Appended[StateT] | None:
        """Return the result of an earlier commit of a request; None if there is none.

        Newer commits are read first. For requests that contradict the state: they may do so because
        they were committed before.

        Raises:
            InvalidInputError: The id was used before, for another request.
        """
        if not request.is_given:
            return None
        self.log.refuse_reentry()
        self.log.catch_up()
        return self.known(request)

    def find_by_content(self, request: Request) -> Appended[StateT] | None:
        """Return the result of an earlier commit of a request, as `before` does.

        Returns None, too, if the id was used for another request.
        """
        # That is rejected later, once the digest of the whole request is known.
        with suppress(InvalidInputError):
            return self.before(request)
        return None

    def known(self, request: Request) -> Appended[StateT] | None:
        """Return the result of an earlier commit of a request up to the head in memory.

        Raises:
            InvalidInputError: The id was used before, for another request.
        """
        if not request.is_given:
            return None
        for version in self.log.with_id(request.commit_id):
            commit = self.log.commit_at(version)
            if _was_asked(commit, request, request.previous_digests) or _contains_transaction(
                commit, request
            ):
                return self.acknowledge(version, request)
        return None

    def previous_digests(
        self, request: Request, previous_digests: Iterable[Any]
    ) -> Appended[StateT] | None:
        """Return the result of an earlier commit of a request that was recorded differently.

        Args:
            request: The request, whose digest differs from the recorded one.
            previous_digests: Other contents, in plain data, that the request may be recorded by.
        """
        versions = list(self.log.with_id(request.commit_id)) if request.is_given else []
        for asked in map(digest_of, previous_digests) if versions else ():
            for version in versions:
                if _was_asked(self.log.commit_at(version), request, (asked,)):
                    return self.acknowledge(version, request)
        return None

    def find_among_winners(
        self, request: Request, winners: Iterable[Commit[E]], sent: Commit[E]
    ) -> Appended[StateT] | None:
        """Return the result of a request if a commit that won against `sent` contains it.

        Raises:
            InvalidInputError: One of them has its id, for another request.
        """
        for won in winners:
            if _contains_transaction(won, request):
                # A client that sends a create twice gets the answer that its own file exists.
                return evolve(self.acknowledge(won.version, request), repeated=won != sent)
        return None

    def find_in_created_commit(
        self, request: Request, commit: Commit[E]
    ) -> Appended[StateT] | None:
        """Return the result of a request if `commit`, just created, contains its commit id.

        Raises:
            InvalidInputError: The id was used there for another request.
        """
        if not _contains_transaction(commit, request):
            return None
        return Appended(self.state(), commit.version, repeated=True)

    def acknowledge(self, version: int, request: Request) -> Appended[StateT]:
        """Return the result for a commit found by reading, once it is durable.

        Its writer may have died before its fsync.

        Raises:
            CommitUnknownError: The store does not answer.
        """
        key = self.log.layout.commit(version)
        commit_id = request.commit_id
        ensure_durable(self.log.store, key, self.retry_policy, version=version, commit_id=commit_id)
        return Appended(self.state(), version, repeated=True)

    def state(self) -> StateT:
        """Return the newest state in memory of a stream that has commits."""
        head = self.log.head
        if head is None:
            raise AssertionError("a stream that was appended to has a head")
        return head.state


def _was_asked(commit: Commit[Any], request: Request, digests: Sequence[str]) -> bool:
    """Return whether a commit contains a request's id with one of these request digests."""
    if not digests:
        return False
    return any(
        each.id == request.commit_id and each.asked in digests for each in commit.transactions
    )


def _contains_transaction(commit: Commit[Any], request: Request) -> bool:
    """Return whether a commit contains a request's transaction.

    Raises:
        InvalidInputError: It contains another request with the same id.
    """
    for transaction in commit.transactions:
        if transaction.id == request.commit_id:
            if transaction.asked != request.asked:
                raise InvalidInputError(
                    f"commit id {request.commit_id!r} was used for something else in version "
                    f"{commit.version}; use a new id for a new request",
                    kind=COMMIT_ID_REUSED,
                )
            return True
    return False
