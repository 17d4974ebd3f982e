"""Creating a file and knowing what came of it: the read-back that every unsure answer needs."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator

from attrs import frozen

from ledger.model.errors import CommitUnknownError
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
class Draft:
    """A commit's file on its way: its key, bytes and version, and the id to ask for it by."""

    key: str
    body: bytes
    version: int
    commit_id: str


def settle(store: Store, draft: Draft, patience: Patience) -> bool:
    """Create a file; return whether it is this one that stands there now, durably.

    Whatever goes wrong, the file itself is read back: it is mine, or another's, or not there, and
    only in the last case the same bytes are sent again to the same key.

    Raises:
        CommitUnknownError: That could not be found out in time. Nothing was taken back.
    """
    failure: OSError | None = None
    for _ in patience.attempts():
        try:
            return store.create(draft.key, draft.body)
        except OSError as error:
            failure = error
        try:
            found = store.confirm(draft.key)
        except OSError:
            continue
        if found is not None:
            return found == draft.body
    raise unknown(draft.key, draft.version, draft.commit_id) from failure


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
    raise unknown(key, version, commit_id) from failure


def unknown(key: str, version: int, commit_id: str) -> CommitUnknownError:
    """Return the error that says so."""
    return CommitUnknownError(
        f"{key}: the store gave no answer and could not be read back; commit "
        f"{commit_id} may have landed. Look for it before you ask again (lakeledger log TABLE "
        f"--commit-id {commit_id}); asking again with the same commit_id= is safe",
        commit_id,
        version,
    )
