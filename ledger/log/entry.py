"""Entry: one transaction on its way into the log, and what came of it."""

from __future__ import annotations

import copy
import threading
from typing import Generic, TypeVar

from ledger.evolution.stream import Intent
from ledger.log.request import Appended, Request

S = TypeVar("S")
E = TypeVar("E")

_LOOKS_AFTER_S = 1.0


class Entry(Generic[S, E]):
    """What one thread asked for; whoever leads the commit says what came of it.

    Attributes:
        intent: What is wanted.
        request: Who wants it, and under which id.
        gone: Whether its thread waits no longer.
        following: Whom its thread wakes when it goes on.
        tried: The first version that it was to land in; None before that.
        unsure: The first version that it may have landed in, since who led it died on the way.
    """

    __slots__ = (
        "_awake",
        "_done",
        "_doubt",
        "_error",
        "following",
        "gone",
        "intent",
        "request",
        "tried",
        "unsure",
    )

    def __init__(self, intent: Intent[S, E], request: Request) -> None:
        self.intent = intent
        self.request = request
        self._done: Appended[S] | None = None
        self._error: BaseException | None = None
        self._doubt: Exception | None = None
        self.gone = False
        self.following: Entry[S, E] | None = None
        self.tried: int | None = None
        self.unsure: int | None = None
        self._awake = threading.Lock()
        self._awake.acquire()

    def wait(self) -> None:
        """Return once somebody woke it."""
        while not self._awake.acquire(timeout=_LOOKS_AFTER_S):
            # Whoever was to wake it may have been killed on the way.
            if self.settled:
                return

    def wake(self) -> None:
        """Let `wait` return; once."""
        if self._awake.locked():
            self._awake.release()

    @property
    def settled(self) -> bool:
        """Whether it is known what came of it."""
        return self._done is not None or self._error is not None

    @property
    def rides_alone(self) -> bool:
        """Whether no other transaction may stand in the same commit."""
        return self.request.expect_version is not None or self.request.effective_millis is not None

    def done(self, appended: Appended[S]) -> None:
        """Say that it is in the log."""
        self._done = appended

    def fail(self, error: BaseException) -> None:
        """Say that it is not in the log, or that nobody knows."""
        self._error = error

    def doubt(self, error: Exception | None) -> None:
        """Keep why it was refused beside others that have not landed yet; None: it was not."""
        self._doubt = error

    def believe(self) -> None:
        """Say that the others have landed, so that the refusal stands."""
        if self._doubt is not None:
            self._error = self._doubt

    def outcome(self) -> Appended[S]:
        """Return what came of it.

        Raises:
            LedgerError: What `fail` was given.
        """
        if self._error is not None:
            raise self._error
        if self._done is None:
            raise AssertionError("nobody has settled this entry")
        return self._done


def twin(error: Exception) -> Exception:
    """Return the same error for another thread: raising one adds to its traceback.

    Example:
        >>> error = twin(ValueError("no"))
        >>> error
        ValueError('no')
    """
    try:
        made = copy.copy(error)
    except TypeError:
        # Its arguments are not those that it is made of.
        return error
    made.__cause__ = error
    return made
