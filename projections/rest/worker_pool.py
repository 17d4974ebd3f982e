"""Bounded pool of threads for calls that block, with a share for each table.

Requests wait in the event loop and not in the pool. A table that many clients write gets at most
its share of the threads, so that requests for other tables find one.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Hashable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Final, TypeVar

from attrs import define, field, frozen

from projections.rest.requests import RequestError

T = TypeVar("T")


@frozen
class PoolLimits:
    """Limits of a worker pool.

    Attributes:
        threads: Number of threads.
        share: Number of threads that calls with one key may use at a time.
        waiting: Number of calls that may wait for a thread.
        waiting_share: Number of them that may have one key.
    """

    threads: int = 64
    share: int = 48
    waiting: int = 1024
    waiting_share: int = 512

    @classmethod
    def of_threads(cls, threads: int) -> PoolLimits:
        """Return the limits of a pool of some threads: three quarters for a table at most."""
        share = max(1, threads * 3 // 4)
        return cls(threads, share, 16 * threads, 8 * threads)


@define
class _Share:
    """Calls with one key: those that entered, and the turns of those that run."""

    turns: asyncio.Semaphore
    entered: int = 0


@define
class WorkerPool:
    """Pool of threads; its methods are called in one event loop."""

    limits: PoolLimits = field(factory=PoolLimits)
    _entered: int = field(default=0, init=False)
    _running: int = field(default=0, init=False)
    _shares: dict[Hashable, _Share] = field(factory=dict, init=False)
    _idle: threading.Condition = field(factory=threading.Condition, init=False)
    _executor: ThreadPoolExecutor = field(init=False)

    def __attrs_post_init__(self) -> None:
        """Create the executor; threads start on demand."""
        self._executor = ThreadPoolExecutor(self.limits.threads, "lakeledger-request")

    async def run(self, key: Hashable, call: Callable[[], T]) -> T:
        """Run a call in a thread, and return its result or raise its error.

        Args:
            key: The table or another object that the call is for.
            call: The function.

        Raises:
            RequestError: Too many calls wait, in all or for the key; the call did not start.
        """
        with self.place(key) as run:
            return await run(call)

    @contextmanager
    def place(self, key: Hashable) -> Iterator[Callable[[Callable[[], T]], Awaitable[T]]]:
        """Yield a function that runs a call as `run` does, for which a place is held in the body.

        Raises:
            RequestError: As in `run`.
        """
        limits = self.limits
        share = self._shares.get(key) or _Share(asyncio.Semaphore(limits.share))
        if (
            self._entered >= limits.threads + limits.waiting
            or share.entered >= limits.share + limits.waiting_share
        ):
            raise RequestError(503, _BUSY)

        async def run(call: Callable[[], T]) -> T:
            async with share.turns:
                loop = asyncio.get_running_loop()
                return await loop.run_in_executor(self._executor, self._counted, call)

        self._shares[key] = share
        share.entered += 1
        self._entered += 1
        try:
            yield run
        finally:
            share.entered -= 1
            self._entered -= 1
            if not share.entered:
                del self._shares[key]

    def _counted(self, call: Callable[[], T]) -> T:
        with self._idle:
            self._running += 1
        try:
            return call()
        finally:
            with self._idle:
                self._running -= 1
                self._idle.notify_all()

    def close(self, timeout_s: float) -> bool:
        """Start no further call, wait for those that run, and return whether all ended in time.

        Args:
            timeout_s: The longest time to wait, in seconds.
        """
        self._executor.shutdown(wait=False, cancel_futures=True)
        with self._idle:
            return self._idle.wait_for(lambda: not self._running, timeout_s)


_BUSY: Final = (
    "the server has too many waiting requests, and rejected this one before it did anything; "
    "send it again later"
)
