"""Did it land? The one place that knows what came of a create, and whose a commit is.

A create comes to one of three: this very file stands there, durably (`Committed`); another file
stands there (`Lost`); nobody could find out in time (`Unknown`). Only silence is unknown. What a
store refuses for good (`StoreError`: no space, no permission, no such place) is raised at once,
with its reason: nothing was written.

Nothing is ever guessed: after an unsure answer the file itself is read back, and only where there
is none the same bytes are sent again, under the same key. Whoever was told `Unknown` asks for his
commit's id (`lookup`); `holds` says whether a commit is the one that he asked for, by the digest
of what was asked, which stands in every transaction.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from typing import Any

from attrs import frozen
from msgspec import UNSET

from ledger.events.commit import Commit
from ledger.log.request import Request
from ledger.model.errors import CommitUnknownError, InvalidInputError, LedgerError, StoreError
from ledger.stores import Store


@frozen
class Patience:
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
    uniform: Callable[[float, float], float] = random.uniform

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


@frozen
class LogFile:
    """A commit's file on its way.

    Attributes:
        key: Where it is to stand.
        body: Its bytes.
        version: Its commit's number.
    """

    key: str
    body: bytes
    version: int


@frozen
class Committed:
    """The file stands in its place, and would survive a loss of power.

    Attributes:
        version: Its commit's number.
    """

    version: int


@frozen
class Lost:
    """Another file stands in its place; of this one nothing was written.

    Attributes:
        version: The number that somebody else's commit has.
    """

    version: int


@frozen
class Unknown:
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


def make_sure(store: Store, key: str, patience: Patience, *, version: int, commit_id: str) -> None:
    """Return once a file that was read would survive a loss of power.

    Raises:
        CommitUnknownError: The store does not answer in time.
    """
    failure: OSError | None = None
    for _ in patience.attempts():
        try:
            store.confirm(key)
        except OSError as error:
            failure = error
        else:
            return
    raise unknown(key, version, commit_id, failure)


def unknown(
    key: str, version: int, commit_id: str, cause: Exception | None = None
) -> CommitUnknownError:
    """Return the error that says so."""
    told = CommitUnknownError(
        f"{key}: the store gave no answer and could not be read back; commit "
        f"{commit_id} may have landed. Look for it before you ask again (lakeledger log TABLE "
        f"--commit-id {commit_id}); asking again with the same commit_id= is safe",
        commit_id,
        version,
    )
    told.__cause__ = cause
    return told


def holds(commit: Commit[Any], request: Request) -> bool:
    """Say whether a commit holds a request's transaction.

    A transaction without a digest was written under an id that lakeledger made up and nobody
    chose, so whoever knows the id asked for that very transaction.

    Raises:
        InvalidInputError: It holds one of the same id that is something else.
    """
    for transaction in commit.transactions:
        if transaction.id == request.commit_id:
            if transaction.asked is not UNSET and transaction.asked != request.asked:
                raise InvalidInputError(
                    f"commit id {request.commit_id!r} was used for something else in version "
                    f"{commit.version}; take a new id for a new request"
                )
            return True
    return False


def is_in(commit: Commit[Any], commit_id: str, asked: str) -> bool:
    """Say whether a commit holds a transaction of that id that was asked with that digest."""
    there = commit.transactions
    return any(each.id == commit_id and each.asked == asked for each in there)
