"""Pace: when files are brought on, so that the commits of the same process hardly notice.

Python lets one thread at a time have its interpreter, and a disk serves one after the other: what
goes on beside a commit makes it slower. So files wait for a lull, and where commits keep coming
they get a small share of the time, in short steps.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from ledger.log.worker import begin_anew_after_fork

QUIET_S: Final = 0.05
"""Once nobody committed for so long, files are brought on."""

LATEST_S: Final = 2.0
"""While commits keep coming, files are brought on this long after the first one."""

SHARE: Final = 20
"""After a step that a commit met, files rest for so many times as long as it took."""

LULL_S: Final = 1.0
"""Once nobody committed for so long, files rest no longer."""


class Pace:
    """When steps may begin: of one process, for the files of all its tables.

    What a commit calls takes no lock: a signal handler may commit, too.

    Args:
        now_s: The time, in seconds by a monotonic clock.
    """

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        self._now_s = now_s
        self._committed_s = now_s() - LULL_S
        self._rests_until_s = 0.0
        self.after_fork()
        begin_anew_after_fork(self)

    def after_fork(self) -> None:
        """Forget who was waiting: a child has none of its parent's threads."""
        self._turn = threading.Lock()
        self._waiting: deque[None] = deque()
        self._wakes = threading.Event()

    def committed(self) -> None:
        """Say that some thread of the process has committed something, to whatever table."""
        self._committed_s = self._now_s()

    def hurry(self) -> None:
        """Let nothing wait any more."""
        self._waiting.append(None)
        self._wakes.set()

    @contextmanager
    def hurried(self) -> Iterator[None]:
        """Let nothing wait while somebody waits for the files inside."""
        self.hurry()
        try:
            yield
        finally:
            self._waiting.pop()
            if not self._waiting:
                self._wakes.clear()

    @contextmanager
    def step(self, first_s: float) -> Iterator[None]:
        """Wait until files may be brought on, which is done inside.

        Args:
            first_s: When the first of the commits came that the files lack.
        """
        has_turn = self._wait(first_s)
        begun_s = self._now_s()
        try:
            yield
        finally:
            ended_s = self._now_s()
            if self._committed_s > begun_s:
                self._rests_until_s = ended_s + SHARE * (ended_s - begun_s)
            if has_turn:
                self._turn.release()

    def _wait(self, first_s: float) -> bool:
        """Return when a step may begin, and whether it has the turn, as it has beside commits."""
        while not self._waiting:
            now_s = self._now_s()
            left_s = self._due_s(first_s) - now_s
            if left_s <= 0:
                if now_s >= self._committed_s + QUIET_S:
                    return False
                if self._turn.acquire(blocking=False):
                    return True
                left_s = QUIET_S
            self._wakes.wait(left_s)
        return False

    def _due_s(self, first_s: float) -> float:
        quiet_s = min(self._committed_s + QUIET_S, first_s + LATEST_S)
        return min(max(quiet_s, self._rests_until_s), self._committed_s + LULL_S)
