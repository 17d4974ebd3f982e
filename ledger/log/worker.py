"""Worker: a background thread, alive only while there is something to do.

Signal handlers raise in the main thread, and other code injects exceptions only into threads that
it knows. A worker is neither, so that what interrupts a caller never interrupts the commit that it
waits for, nor another caller's.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, Protocol
from weakref import WeakSet

LINGERS_S: Final = 0.5
"""How long a worker waits for more before its thread ends."""

LOOKS_AGAIN_S: Final = 0.01
"""A worker that waits for a lull checks so often whether it is over."""

EXIT_WAITS_S: Final = 10.0
"""How long a process that ends waits for all its workers together."""


class Worker:
    """Does what it is asked in a thread of its own, again and again, as long as there is more.

    Nothing here takes a lock that a signal handler could meet: a handler may ask while the thread
    that it interrupted is asking. Work, and so its owner, is referenced only while it is to be
    done, so that a handle which nobody references is freed at once.

    Args:
        name: What debuggers show.
        is_late: Called where a process ends without what was asked, after it has waited.
    """

    def __init__(self, name: str, is_late: Callable[[], None] | None = None) -> None:
        self._name = name
        self._is_late = is_late
        self.after_fork()
        begin_anew_after_fork(self)
        _workers.add(self)

    def after_fork(self) -> None:
        """Begin anew: a child has none of its parent's threads."""
        self._asked: deque[tuple[Callable[[], bool], Callable[[], float] | None]] = deque()
        self._running = threading.Lock()
        self._bell = threading.Lock()
        self._bell.acquire()

    def __reduce__(self) -> tuple[Any, ...]:
        # A thread stays in its process.
        return Worker, (self._name, self._is_late)

    def ask(self, work: Callable[[], bool], lull_s: Callable[[], float] | None = None) -> None:
        """Say that there is something to do; return at once.

        Args:
            work: Does what is there; False when there was nothing. It must not raise, and is the
                same each time.
            lull_s: How many seconds what is there may still wait, so that nobody else waits for
                the interpreter meanwhile; None: not at all.
        """
        self._asked.append((work, lull_s))
        # Whoever is interrupted from here on leaves nothing half done: of several threads that are
        # started, one works, each who asks sees to it that there is one, and it looks once more
        # before it ends.
        if not self._running.locked():
            self._start()
        # Last, so that who is woken does not meet the interpreter taken. Two who ring at once ring
        # once.
        with suppress(RuntimeError):
            self._bell.release()

    @property
    def is_quiet(self) -> bool:
        """Whether all that was asked is done."""
        return not self._asked

    def wait(self, timeout_s: float) -> bool:
        """Return once all that was asked is done, or False after so long."""
        deadline = time.monotonic() + timeout_s
        while not self.is_quiet:
            if time.monotonic() > deadline:
                return False
            time.sleep(0.001)
        return True

    def finish(self, timeout_s: float) -> None:
        """Do what is left where the process ends; report it if there is not time enough."""
        if self._asked and not self._running.locked():
            # The thread that asked was interrupted before it started one.
            self._start()
        if not self.wait(timeout_s) and self._is_late is not None:
            self._is_late()

    def _start(self) -> None:
        _wait_at_exit()
        try:
            threading.Thread(target=self._live, name=self._name, daemon=True).start()
        except RuntimeError:
            # The interpreter is ending, or gives out no more threads: whoever asks does it.
            self._live(lingers_s=0)

    def _live(self, lingers_s: float = LINGERS_S) -> None:
        while self._running.acquire(blocking=False):
            try:
                self._do()
                while self._bell.acquire(timeout=lingers_s):
                    self._do()
            finally:
                self._running.release()
            if not self._asked:
                # Whoever asks from here on finds nobody at work, and starts another thread.
                return

    def _do(self) -> None:
        asked = len(self._asked)
        if not asked:
            # It was done with what was asked before.
            return
        work, lull_s = self._asked[0]
        _rest(lull_s)
        while work():
            _rest(lull_s)
        for _ in range(asked):
            self._asked.popleft()


def _rest(lull_s: Callable[[], float] | None) -> None:
    while lull_s is not None and (pause := lull_s()) > 0:
        time.sleep(min(pause, LOOKS_AGAIN_S))


class Forked(Protocol):
    """What holds something that is of one process alone."""

    def after_fork(self) -> None:
        """Let go of what belongs to threads of the parent; called in the child."""


_workers: Final[WeakSet[Worker]] = WeakSet()
_forked: Final[WeakSet[Forked]] = WeakSet()
_promised: Final[list[bool]] = []


def _wait_at_exit() -> None:
    # With the first work, so that what the work needs is torn down later.
    if not _promised:
        _promised.append(True)
        atexit.register(_finish)


def _finish() -> None:
    """Let what was asked be done before the process ends; for so long."""
    deadline = time.monotonic() + EXIT_WAITS_S
    # Again, as what one does may be to ask another for the first time.
    while left := [each for each in list(_workers) if not each.is_quiet]:
        for each in left:
            each.finish(deadline - time.monotonic())
        if time.monotonic() > deadline:
            return


def begin_anew_after_fork(each: Forked) -> None:
    """Have `after_fork` called in every child, as long as somebody holds on to `each`."""
    _forked.add(each)


def _begin_anew() -> None:
    for each in list(_forked):
        each.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)
