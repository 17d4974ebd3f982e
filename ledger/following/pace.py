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
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Final

from attrs import define

from ledger.log.beside import giving_way
from ledger.log.worker import begin_anew_after_fork

QUIET_S: Final = 0.05
"""Once nobody committed for so long, files are brought on."""

LATEST_S: Final = 2.0
"""While commits keep coming, files are brought on this long after the first one."""

SHARE: Final = 20
"""A step that commits meet stands aside and rests for so many times as long as it worked."""

LULL_S: Final = 1.0
"""Once nobody committed for so long, files rest no longer."""

SLICE_S: Final = 0.001
"""For so long a step works at least before it stands aside again, so that it ends some day."""

LOOKS_AGAIN_S: Final = 0.01
"""So often a step that stands aside looks for itself whether the commits have ended."""

LONGEST_S: Final = 1.0
"""A commit that takes longer does not wait for files, so that they wait for it no longer."""


class Pace:
    """When steps may begin: of one process, for the files of all its tables.

    What a commit calls takes no lock: a signal handler may commit, too.

    Attributes:
        now_s: The time, in seconds by a monotonic clock.
    """

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        self.now_s = now_s
        self._committed_s = now_s() - LULL_S
        self._rests_until_s = 0.0
        self._under_way: dict[object, float] = {}
        self.after_fork()
        begin_anew_after_fork(self)

    def after_fork(self) -> None:
        """Forget who was waiting: a child has none of its parent's threads."""
        self._turn = threading.Lock()
        self._waiting: deque[None] = deque()
        self._wakes = threading.Event()
        self._under_way.clear()
        self._passed = threading.Lock()
        self._passed.acquire()

    def committing(self) -> AbstractContextManager[None]:
        """Say that a thread of the process commits something inside, to whatever table."""
        return _Committing(self)

    def begun(self, commit: object) -> None:
        """Say that a commit is under way."""
        self._committed_s = self._under_way[commit] = self.now_s()

    def ended(self, commit: object) -> None:
        """Say that it is under way no longer."""
        self._under_way.pop(commit, None)
        self._committed_s = self.now_s()
        self._wake_aside()

    def hurry(self) -> None:
        """Let nothing wait any more."""
        self._waiting.append(None)
        self._wakes.set()
        self._wake_aside()

    def _wake_aside(self) -> None:
        # Two who wake wake once, and mostly nobody waits.
        if self._passed.locked():
            with suppress(RuntimeError):
                self._passed.release()

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
        step = PacedStep(self, self.now_s())
        try:
            with giving_way(step):
                yield
        finally:
            ended_s = self.now_s()
            if self._committed_s > step.begun_s:
                self._rests_until_s = ended_s + step.owes_s(ended_s)
            if has_turn:
                self._turn.release()

    @property
    def is_alone(self) -> bool:
        """Whether nobody has committed for long, or somebody waits for files rather."""
        return bool(self._waiting) or self.now_s() >= self._committed_s + LULL_S

    def stand_aside(self, longest_s: float) -> None:
        """Return once the commits that are under way have ended, or after so long."""
        now_s = self.now_s()
        ends_s = now_s + longest_s
        before = self._commits_at(now_s)
        while before and now_s < ends_s and not self._waiting:
            # Another step may have been woken in this one's place.
            self._passed.acquire(timeout=min(ends_s - now_s, LOOKS_AGAIN_S))
            now_s = self.now_s()
            before &= self._commits_at(now_s)

    def _commits_at(self, now_s: float) -> set[object]:
        return {each for each, begun in [*self._under_way.items()] if now_s < begun + LONGEST_S}

    def _wait(self, first_s: float) -> bool:
        """Return when a step may begin, and whether it has the turn, as it has beside commits."""
        while not self._waiting:
            now_s = self.now_s()
            last_s = now_s if self._commits_at(now_s) else self._committed_s
            left_s = self._due_s(first_s, last_s) - now_s
            if left_s <= 0:
                if now_s >= last_s + QUIET_S:
                    return False
                if self._turn.acquire(blocking=False):
                    return True
                left_s = QUIET_S
            self._wakes.wait(left_s)
        return False

    def _due_s(self, first_s: float, last_s: float) -> float:
        quiet_s = min(last_s + QUIET_S, first_s + LATEST_S)
        return min(max(quiet_s, self._rests_until_s), last_s + LULL_S)


class _Committing:
    """A commit, from its beginning to its end."""

    __slots__ = ("_pace",)

    def __init__(self, pace: Pace) -> None:
        self._pace = pace

    def __enter__(self) -> None:
        self._pace.begun(self)

    def __exit__(self, *_error: object) -> None:
        self._pace.ended(self)


@define
class PacedStep:
    """A step that is under way.

    Attributes:
        begun_s: When it began.
        stood_s: For how long it has stood aside so far.
        works_since_s: When it stood aside last.
    """

    _pace: Pace
    begun_s: float
    stood_s: float = 0.0
    works_since_s: float = 0.0

    def give_way(self) -> None:
        """Stand aside while a commit is under way, as far as the step owes that to commits."""
        now_s = self._pace.now_s()
        owes_s = self.owes_s(now_s)
        if owes_s <= 0 or now_s < self.works_since_s + SLICE_S:
            return
        self._pace.stand_aside(owes_s)
        self.works_since_s = self._pace.now_s()
        self.stood_s += self.works_since_s - now_s

    @property
    def is_alone(self) -> bool:
        """Whether no commit is to be expected."""
        return self._pace.is_alone

    def owes_s(self, now_s: float) -> float:
        """Return for how long it is still to stand aside or rest for what it has worked."""
        return SHARE * (now_s - self.begun_s - self.stood_s) - self.stood_s
