"""Locks for threads that run one at a time: a waiting thread hands the baton on.

They stand in for `threading` inside the log while a schedule runs; a real lock would stop the one
thread that may run.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import pytest

from ledger.table_handle import import_commit_modules
from tests.faults import Died
from tests.programme.scheduler import Scheduler, Task

NEVER_S = 1e9


class CooperativeLock:
    """`threading.Lock`; as `is_reentrant`, `threading.RLock`."""

    def __init__(self, scheduler: Scheduler, *, is_reentrant: bool) -> None:
        self._scheduler = scheduler
        self._is_reentrant = is_reentrant
        self._owner: Task | None = None
        self._depth = 0

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:  # noqa: FBT001, FBT002 - threading's
        mine = self._scheduler.current
        if self._is_reentrant and self._owner is mine:
            self._depth += 1
            return True
        self._scheduler.pause()
        until = self._scheduler.now_s + (NEVER_S if timeout < 0 else timeout)
        while self._owner is not None:
            if not blocking or self._scheduler.now_s >= until:
                return False
            self._wait_free(until)
        self._owner, self._depth = mine, 1
        return True

    def _wait_free(self, until: float) -> None:
        if until >= NEVER_S:
            self._scheduler.pause(ready=lambda: self._owner is None)
        else:
            self._scheduler.pause(0.01)

    def _is_owned(self) -> bool:
        return self._owner is self._scheduler.current

    def release(self) -> None:
        if not self._is_reentrant and self._owner is None:
            raise RuntimeError("release unlocked lock")
        # A plain lock may be released by any thread, as a signal.
        if self._is_reentrant and self._owner is not self._scheduler.current:
            # A waiter that died in its sleep does not own what it leaves.
            if self._scheduler.current.is_dead or self._scheduler.has_failed:
                return
            raise RuntimeError("released by another than its owner")
        self._depth -= 1
        if self._depth <= 0:
            self._owner = None

    def locked(self) -> bool:
        return self._owner is not None

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


class CooperativeCondition:
    """`threading.Condition`."""

    def __init__(self, scheduler: Scheduler, lock: CooperativeLock | None = None) -> None:
        self._scheduler = scheduler
        self._lock = lock or CooperativeLock(scheduler, is_reentrant=True)
        self._waiting: list[list[bool]] = []
        self.acquire, self.release = self._lock.acquire, self._lock.release

    def __enter__(self) -> bool:
        return self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def wait(self, timeout: float | None = None) -> bool:
        called = [False]
        self._waiting.append(called)
        depth, self._lock._depth = self._lock._depth, 1
        self._lock.release()
        try:
            self._pause(called, timeout)
        finally:
            self._waiting.remove(called)
            self._lock.acquire()
            self._lock._depth = depth
        return called[0]

    def _pause(self, called: list[bool], timeout: float | None) -> None:
        if timeout is None:
            self._scheduler.pause(ready=lambda: called[0])
            return
        until = self._scheduler.now_s + timeout
        while not called[0] and self._scheduler.now_s < until:
            self._scheduler.pause(0.001)

    def wait_for(self, predicate: Callable[[], bool], timeout: float | None = None) -> bool:
        while not predicate():
            if not self.wait(timeout) and timeout is not None:
                return predicate()
        return True

    def notify(self, n: int = 1) -> None:
        for called in [each for each in self._waiting if not each[0]][:n]:
            called[0] = True

    def notify_all(self) -> None:
        self.notify(len(self._waiting))


class CooperativeEvent:
    """`threading.Event`."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._is_set = False

    def is_set(self) -> bool:
        return self._is_set

    def set(self) -> None:
        self._is_set = True

    def clear(self) -> None:
        self._is_set = False

    def wait(self, timeout: float | None = None) -> bool:
        if timeout is None:
            self._scheduler.pause(ready=self.is_set)
            return True
        until = self._scheduler.now_s + timeout
        while not self._is_set and self._scheduler.now_s < until:
            self._scheduler.pause(0.001)
        return self._is_set


class CooperativeThread:
    """`threading.Thread`, of the process of its starter, and dead with it."""

    def __init__(
        self, scheduler: Scheduler, target: Callable[[], None], name: str, *, daemon: bool
    ) -> None:
        del name, daemon
        self._scheduler = scheduler
        self._target = target
        self._task: Task | None = None

    def start(self) -> None:
        mine = self._scheduler.current
        self._task = Task(mine.process, self._live, process_generation=mine.process_generation)
        self._scheduler.add(self._task)

    def join(self) -> None:
        task = self._task
        assert task is not None, "cannot join thread before it is started"
        self._scheduler.pause(ready=lambda: self._scheduler.is_over(task))

    def _live(self) -> None:
        try:
            self._target()
        except Died:
            if self._scheduler.has_failed:
                raise


class CooperativeThreading:
    """The names that the log takes from `threading`, for one schedule."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler

    def Lock(self) -> CooperativeLock:  # noqa: N802 - threading's names
        return CooperativeLock(self._scheduler, is_reentrant=False)

    def RLock(self) -> CooperativeLock:  # noqa: N802
        return CooperativeLock(self._scheduler, is_reentrant=True)

    def Thread(  # noqa: N802
        self, target: Callable[[], None], name: str, *, daemon: bool
    ) -> CooperativeThread:
        return CooperativeThread(self._scheduler, target, name, daemon=daemon)

    def Condition(self, lock: CooperativeLock | None = None) -> CooperativeCondition:  # noqa: N802
        return CooperativeCondition(self._scheduler, lock)

    def Event(self) -> CooperativeEvent:  # noqa: N802
        return CooperativeEvent(self._scheduler)

    def __getattr__(self, name: str) -> Any:
        return getattr(threading, name)


@contextmanager
def cooperative(modules: list[ModuleType], scheduler: Scheduler) -> Iterator[None]:
    """Let these modules take their locks from a schedule."""
    # A thread of its own loads it otherwise, which a schedule has no turns for.
    import_commit_modules()
    with pytest.MonkeyPatch.context() as patch:
        for module in modules:
            if getattr(module, "threading", None) is threading:
                patch.setattr(module, "threading", CooperativeThreading(scheduler))
        yield
