"""Commit queue and committer thread of a handle.

`submit` queues a pending commit and returns; the handle's committer thread takes all that are
queued, commits them and sets the outcome of each. A thread or an asyncio task waits for it.
Exceptions that are raised in a waiting thread (by a signal handler, Ctrl-C or a timeout) stay in
that thread: the commit continues, and the exception carries a note with the commit id.

Each pending commit has its own lock to wait on, so that a signal handler may commit on a handle
while its thread waits for another commit of that handle.

Signal handlers raise in the main thread, and other code injects exceptions only into threads that
it knows. A worker thread is neither, so an exception in a caller never interrupts the commit that
it waits for, nor that of another caller.
"""

from __future__ import annotations

import atexit
import copy
import math
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Generator, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar
from weakref import WeakSet

from ledger.log.personal_data import SidecarTexts
from ledger.log.request import Appended, Request, annotate_interruption
from ledger.model.errors import StoreError
from ledger.observing.telemetry import warn
from ledger.state.stream import Intent

if TYPE_CHECKING:
    import asyncio


LINGERS_S: Final = 0.5
"""Seconds that an idle worker waits for more work before its thread ends."""

LOOKS_AGAIN_S: Final = 0.01
"""Seconds between two checks of a worker whose work is delayed."""

EXIT_WAITS_S: Final = 10.0
"""Seconds that a process waits at exit for all of its workers together."""


class BackgroundWorker:
    """Runs requested work in a background thread until nothing is left to do.

    No lock here can deadlock a signal handler, which may request work while the thread that it
    interrupted does. The work, and so its owner, is referenced only until it is done, so that a
    handle without other references is freed at once.

    Args:
        name: Name of the thread, for debuggers.
        is_late: Called when the process exits and the work was not done within the timeout.
    """

    def __init__(self, name: str, is_late: Callable[[], None] | None = None) -> None:
        self._name = name
        self._is_late = is_late
        self.after_fork()
        register_after_fork(self)
        _workers.add(self)

    def after_fork(self) -> None:
        """Reset the worker: a forked child has none of its parent's threads."""
        self._asked: deque[tuple[Callable[[], bool], Callable[[], float] | None]] = deque()
        self._running = threading.Lock()
        self._bell = threading.Lock()
        self._bell.acquire()

    def __reduce__(self) -> tuple[Any, ...]:
        # A thread stays in its process.
        return BackgroundWorker, (self._name, self._is_late)

    def ask(self, work: Callable[[], bool], quiet_s: Callable[[], float] | None = None) -> None:
        """Request work; return at once.

        Args:
            work: Does the next part; returns False when there was none. It must not raise, and is
                the same function each time.
            quiet_s: Returns the seconds by which the work may still be delayed, so that it does not
                compete with other threads for the interpreter; None: it is not delayed.
        """
        self._asked.append((work, quiet_s))
        # An interrupt from here on loses no request: every request makes sure that a thread runs,
        # only one of several started threads works, and it checks for requests before it ends.
        if not self._running.locked():
            self._start_thread()
        # Last, so that the woken thread finds the interpreter free. Two concurrent requests wake it
        # once.
        with suppress(RuntimeError):
            self._bell.release()

    @property
    def is_quiet(self) -> bool:
        """True when all requested work is done."""
        return not self._asked

    def wait(self, timeout_s: float) -> bool:
        """Wait until all requested work is done; return False on timeout."""
        deadline = time.monotonic() + timeout_s
        while not self.is_quiet:
            if time.monotonic() > deadline:
                return False
            time.sleep(0.001)
        return True

    def finish(self, timeout_s: float) -> None:
        """Finish the work at exit; call `is_late` on timeout."""
        if self._asked and not self._running.locked():
            # The requesting thread was interrupted before it started one.
            self._start_thread()
        if not self.wait(timeout_s) and self._is_late is not None:
            self._is_late()

    def _start_thread(self) -> None:
        _register_exit_handler()
        try:
            threading.Thread(target=self._run_until_idle, name=self._name, daemon=True).start()
        except RuntimeError:
            # The interpreter is exiting, or out of threads: the calling thread does the work.
            self._run_until_idle(lingers_s=0)

    def _run_until_idle(self, lingers_s: float = LINGERS_S) -> None:
        while self._running.acquire(blocking=False):
            try:
                self._do_requested_work()
                while self._bell.acquire(timeout=lingers_s):
                    self._do_requested_work()
            finally:
                self._running.release()
            if not self._asked:
                # A request from here on finds no thread at work, and starts another one.
                return

    def _do_requested_work(self) -> None:
        asked = len(self._asked)
        if not asked:
            # An earlier request covered it.
            return
        work, quiet_s = self._asked[0]
        _sleep_until_quiet(quiet_s)
        while work():
            _sleep_until_quiet(quiet_s)
        for _ in range(asked):
            self._asked.popleft()


def _sleep_until_quiet(quiet_s: Callable[[], float] | None) -> None:
    while quiet_s is not None and not _exiting and (pause := quiet_s()) > 0:
        time.sleep(min(pause, LOOKS_AGAIN_S))


class ForkAware(Protocol):
    """Holder of state that belongs to one process and is not inherited by a fork."""

    def after_fork(self) -> None:
        """Drop state that belongs to threads of the parent; called in the child."""


_workers: Final[WeakSet[BackgroundWorker]] = WeakSet()
_forked: Final[WeakSet[ForkAware]] = WeakSet()
_promised: Final[list[bool]] = []
_exiting: Final[list[bool]] = []


def _register_exit_handler() -> None:
    # At the first request: exit handlers that were registered before, of modules that the work
    # needs, run after this one.
    if not _promised:
        _promised.append(True)
        atexit.register(_finish_workers)


def _finish_workers() -> None:
    """Wait at exit until the workers are done, for up to `EXIT_WAITS_S`; nothing is delayed."""
    _exiting.append(True)
    deadline = time.monotonic() + EXIT_WAITS_S
    # Repeated, since the work of one worker may request work of another.
    while left := [each for each in list(_workers) if not each.is_quiet]:
        for each in left:
            each.finish(deadline - time.monotonic())
        if time.monotonic() > deadline:
            return


def register_after_fork(each: ForkAware) -> None:
    """Register `after_fork` to be called in every forked child; `each` is referenced weakly."""
    _forked.add(each)


def _reset_after_fork() -> None:
    for each in list(_forked):
        each.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_after_fork)


S = TypeVar("S")
E = TypeVar("E")

_CHECK_INTERVAL_S: Final = 1.0
_LOGGER: Final = "ledger.log"


class PendingCommit(Generic[S, E]):
    """One transaction submitted to a committer thread, and its outcome once that is known.

    Any number of threads and tasks may wait for it.

    Attributes:
        intent: The change.
        request: Author, message and commit id.
        kept: Author and message as written to a sidecar file, where the stream keeps them there.
        attempts: Number of times that it was decided.
        appended: The outcome, once it is committed.
        error: The error that it failed with, once it has; the outcome may be unknown.
    """

    __slots__ = (
        *("_answered", "_doubt", "_listeners"),
        *("appended", "attempts", "error", "intent", "kept", "request"),
    )

    def __init__(
        self, intent: Intent[S, E], request: Request, kept: SidecarTexts | None = None
    ) -> None:
        self.intent = intent
        self.request = request
        self.kept = kept
        self.attempts = 0
        self.appended: Appended[S] | None = None
        self.error: BaseException | None = None
        self._doubt: Exception | None = None
        self._listeners: deque[Callable[[], object]] = deque()
        # Held until there is an answer; an Event's lock would be held by an interrupted waiter.
        self._answered = threading.Lock()
        self._answered.acquire()

    def wait(self, timeout_s: float | None = None) -> Appended[S]:
        """Wait for the outcome and return it.

        An exception raised in this thread meanwhile does not cancel the commit; a note on it names
        the commit id and the state of the commit.

        Args:
            timeout_s: Seconds after which to stop waiting; None: never.

        Raises:
            LedgerError: Nothing was committed, or the outcome is unknown (CommitUnknownError).
            TimeoutError: There was no outcome in time; the commit continues.
        """
        deadline_s = math.inf if timeout_s is None else time.monotonic() + timeout_s
        with annotate_interruption(self.request):
            while not self._answered.acquire(
                timeout=max(0.0, min(deadline_s - time.monotonic(), _CHECK_INTERVAL_S))
            ):
                # Another waiter, interrupted between these two steps, keeps the lock.
                if self.is_answered:
                    return self.outcome()
                if time.monotonic() >= deadline_s:
                    raise TimeoutError(f"commit {self.request.commit_id}: no answer in time")
            self._answered.release()
            return self.outcome()

    def future(self) -> asyncio.Future[Appended[S]]:
        """Return a future of the running event loop; cancelling it does not cancel the commit."""
        import asyncio

        loop = asyncio.get_running_loop()
        future: asyncio.Future[Appended[S]] = loop.create_future()

        def settle() -> None:
            if future.done():
                return
            if self.error is not None:
                future.set_exception(copy_of_error(self.error))
            else:
                future.set_result(self.outcome())

        self._listeners.append(lambda: loop.call_soon_threadsafe(settle))
        if self.is_answered:
            self._call_listeners()
        return future

    def __await__(self) -> Generator[Any, None, Appended[S]]:
        """Wait in an asyncio task, as `wait` does in a thread."""
        with annotate_interruption(self.request):
            return (yield from self.future())

    @property
    def is_answered(self) -> bool:
        """True when the outcome is known."""
        return self.appended is not None or self.error is not None

    @property
    def is_committed_alone(self) -> bool:
        """True where no other transaction may share the commit."""
        return self.request.expect_version is not None or self.request.effective_millis is not None

    def succeed(self, appended: Appended[S]) -> None:
        """Record that it is committed."""
        self.request.status.version = appended.version
        self.appended = appended

    def fail(self, error: BaseException) -> None:
        """Record that it is not committed, or that its outcome is unknown."""
        self.request.status.error = self.error = error

    def set_tentative_error(self, error: Exception | None) -> None:
        """Keep a rejection that depends on transactions not committed yet; None: clear it."""
        self._doubt = error

    def confirm_tentative_error(self) -> None:
        """Fail with the kept rejection, once the transactions that it depends on are committed."""
        if self._doubt is not None:
            self.fail(self._doubt)

    def release(self) -> None:
        """Wake all waiters; call it once the outcome is recorded."""
        with suppress(RuntimeError):
            self._answered.release()
        self._call_listeners()

    def _call_listeners(self) -> None:
        while self._listeners:
            # Another thread may take the last one, and the loop of a listener may be closed.
            with suppress(IndexError, RuntimeError):
                self._listeners.popleft()()

    def outcome(self) -> Appended[S]:
        """Return the recorded outcome.

        Raises:
            LedgerError: What `fail` was given.
        """
        if self.error is not None:
            raise self.error
        if self.appended is None:
            raise AssertionError("this pending commit has no outcome yet")
        return self.appended


class CommitQueue(Generic[S, E]):
    """The pending commits of one handle and its committer thread.

    The thread runs only while there is something to commit, references the handle only that long,
    and does not keep the interpreter from exiting. At exit the process waits `EXIT_WAITS_S` for it;
    commits that are left then are logged with their ids.
    """

    def __init__(self) -> None:
        self._waiting: deque[PendingCommit[S, E]] = deque()
        self._taken: list[PendingCommit[S, E]] = []
        self._committer = BackgroundWorker(
            "ledger-committer", partial(_log_unanswered_commits, self._waiting, self._taken)
        )
        register_after_fork(self)

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def is_busy(self) -> bool:
        """True when earlier commits of this handle are still pending."""
        return bool(self._waiting) or not all(each.is_answered for each in [*self._taken])

    def submit(
        self,
        pending: PendingCommit[S, E],
        commit: Callable[[Sequence[PendingCommit[S, E]]], None],
        on_answered: Callable[[Sequence[PendingCommit[S, E]]], None],
    ) -> PendingCommit[S, E]:
        """Queue a commit for the committer thread and return it at once.

        Args:
            pending: The commit.
            commit: Commits a batch and sets the outcome of each; the same for a whole queue.
            on_answered: Called with a batch after its waiters were woken; the same for a whole
                queue. It must not raise.
        """
        work = partial(self._commit_queued, commit, on_answered)
        try:
            pending.request.status.is_sent = True
            self._waiting.append(pending)
            self._committer.ask(work)
        except BaseException:
            # An exception interrupted this thread; what is queued is committed all the same.
            self._committer.ask(work)
            raise
        return pending

    def take_all(self) -> list[PendingCommit[S, E]]:
        """Remove and return all queued commits; only for the committer thread."""
        taken = [self._waiting.popleft() for _ in range(len(self._waiting))]
        self._taken += taken
        return taken

    def _commit_queued(
        self,
        commit: Callable[[Sequence[PendingCommit[S, E]]], None],
        on_answered: Callable[[Sequence[PendingCommit[S, E]]], None],
    ) -> bool:
        batch = self.take_all()
        if not batch:
            return False
        try:
            commit(batch)
        except BaseException as error:  # noqa: BLE001 - each waiter raises it
            for each in self._taken:
                if not each.is_answered:
                    each.fail(copy_of_error(error))
        # `commit` may have taken more.
        answered = [*self._taken]
        self._taken.clear()
        for each in answered:
            each.release()
        on_answered(answered)
        return True

    def after_fork(self) -> None:
        """Empty the queue: the parent process commits what was submitted there."""
        left = [*self._taken, *self._waiting]
        self._taken.clear()
        self._waiting.clear()
        for each in left:
            if not each.is_answered:
                each.fail(
                    StoreError(
                        f"this process was forked while commit {each.request.commit_id} was in "
                        "progress; the parent process commits it and knows the outcome"
                    )
                )
            each.release()


def _log_unanswered_commits(*queues: Collection[PendingCommit[Any, Any]]) -> None:
    """Log the ids of commits without an outcome at exit."""
    left = [each for queue in queues for each in [*queue] if not each.is_answered]
    if left:
        warn(
            _LOGGER,
            "commits_unknown_at_exit",
            commit_ids=[each.request.commit_id for each in left],
            advice="they may be committed; look them up with: lakeledger log --commit-id",
        )


def copy_of_error(error: BaseException) -> BaseException:
    """Return a copy of an error for another thread, as raising an error extends its traceback.

    Example:
        >>> error = copy_of_error(ValueError("no"))
        >>> error
        ValueError('no')
    """
    try:
        made = copy.copy(error)
    except TypeError:
        # Its `args` are not the arguments of its constructor.
        return error
    made.__cause__ = error
    return made
