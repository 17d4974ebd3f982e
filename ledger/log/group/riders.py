"""Group commit: what threads ask of one handle at the same time rides in one commit.

Each caller leaves a rider and waits; the handle's own thread (`Worker`) takes all riders that have
gathered, lands them, and says to each what came of his. Whatever is raised in a caller while he
waits is his alone: his rider is taken back if nobody has taken it yet, and otherwise lands, or
not, as if he were there. Who is alone, in a thread that nothing interrupts, lands his own.
"""

from __future__ import annotations

import copy
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from itertools import pairwise
from typing import Generic, TypeVar

from ledger.evolution.stream import Intent
from ledger.log.outside.commit_texts import KeptTexts
from ledger.log.request import Appended, Request
from ledger.log.worker import LOOKS_AGAIN_S, Worker, begin_anew_after_fork
from ledger.model.errors import StoreError

S = TypeVar("S")
E = TypeVar("E")

_LOOKS_AFTER_S = 1.0


class Rider(Generic[S, E]):
    """One transaction on its way into the log, and what came of it.

    Attributes:
        intent: What is wanted.
        request: Who wants it, and under which id.
        kept: What it says of who and why outside of the line, once that is written.
        gone: Whether its thread waits no longer.
        following: Whom its thread wakes when it goes on.
        attempts: How often it was decided.
        thread: That which asks.
    """

    __slots__ = (
        *("_awake", "_doubt", "_error", "_landed"),
        *("attempts", "following", "gone", "intent", "kept", "request", "thread"),
    )

    def __init__(self, intent: Intent[S, E], request: Request) -> None:
        self.intent = intent
        self.request = request
        self.kept: KeptTexts | None = None
        self._landed: Appended[S] | None = None
        self._error: BaseException | None = None
        self._doubt: Exception | None = None
        self.gone = False
        self.following: Rider[S, E] | None = None
        self.attempts = 0
        self.thread = threading.get_ident()
        self._awake = threading.Lock()
        self._awake.acquire()

    def wait(self) -> None:
        """Return once it is known what came of it."""
        while not self._awake.acquire(timeout=_LOOKS_AFTER_S):
            # Whoever was to wake it may have been interrupted on the way.
            if self.is_answered:
                return

    def wake(self) -> None:
        """Let `wait` return; once."""
        with suppress(RuntimeError):
            self._awake.release()

    def go_on(self) -> None:
        """Say that its thread waits no longer; wake the next."""
        self.gone = True
        if self.following is not None:
            self.following.wake()

    @property
    def is_answered(self) -> bool:
        """Whether it is known what came of it."""
        return self._landed is not None or self._error is not None

    @property
    def rides_alone(self) -> bool:
        """Whether no other transaction may stand in the same commit."""
        return self.request.expect_version is not None or self.request.effective_millis is not None

    def landed(self, appended: Appended[S]) -> None:
        """Say that it is in the log."""
        self.request.fate.version = appended.version
        self._landed = appended

    def fail(self, error: BaseException) -> None:
        """Say that it is not in the log, or that nobody knows."""
        self.request.fate.error = self._error = error

    def doubt(self, error: Exception | None) -> None:
        """Keep why it was refused beside others that have not landed yet; None: it was not."""
        self._doubt = error

    def believe(self) -> None:
        """Say that the others have landed, so that the refusal stands."""
        if self._doubt is not None:
            self.fail(self._doubt)

    def outcome(self) -> Appended[S]:
        """Return what came of it.

        Raises:
            LedgerError: What `fail` was given.
        """
        if self._error is not None:
            raise self._error
        if self._landed is None:
            raise AssertionError("nobody has answered this rider")
        return self._landed


class Group(Generic[S, E]):
    """Gathers what threads ask for while a commit is under way, and lets one thread land it.

    Those that are answered go on one waking the next: if all woke at once, the thread that lands
    would wait for each of them to give up Python's lock before it reached the store.
    """

    def __init__(self) -> None:
        self._riders: deque[Rider[S, E]] = deque()
        self._taken: list[Rider[S, E]] = []
        self._worker = Worker("ledger-commits")
        # Each of the two, the worker and who lands alone, says that he is at work before he looks
        # whether the other one is.
        self._lands_alone = False
        self._is_at_work = False
        self._is_done = threading.Lock()
        self._is_done.acquire()
        begin_anew_after_fork(self)

    def __len__(self) -> int:
        return len(self._riders)

    @property
    def is_busy(self) -> bool:
        """Whether a rider that comes now waits for others."""
        if self._lands_alone or self._riders:
            return True
        return bool(self._taken) and not all(each.is_answered for each in self._taken)

    def ride(
        self,
        rider: Rider[S, E],
        land: Callable[[Sequence[Rider[S, E]]], None],
        land_alone: Callable[[Rider[S, E]], None] | None = None,
    ) -> Appended[S]:
        """Return what came of a rider, once that is known.

        Args:
            rider: Who.
            land: Answers all the riders that it is given; one that rides alone it may wake
                itself. The same for all of a group.
            land_alone: Answers this one in the thread that asks, if no other is at work; None:
                that thread can be interrupted.

        Raises:
            LedgerError: It did not land, or nobody knows.
        """
        if land_alone is not None and self._has_landed_alone(rider, land_alone):
            return rider.outcome()
        told = rider.request.fate
        try:
            told.is_sent = True
            self._riders.append(rider)
            self._worker.ask(partial(self._work, land))
            rider.wait()
        except BaseException:
            # Somebody may have taken it.
            with suppress(ValueError):
                self._riders.remove(rider)
                told.is_sent = False
            raise
        finally:
            rider.go_on()
        return rider.outcome()

    def _has_landed_alone(
        self, rider: Rider[S, E], land_alone: Callable[[Rider[S, E]], None]
    ) -> bool:
        """Land a rider in this thread; False where the worker is at work."""
        self._lands_alone = True
        try:
            if self._is_at_work:
                return False
            land_alone(rider)
        except BaseException as error:
            if rider.request.fate.is_sent and not rider.is_answered:
                rider.fail(error)
            raise
        finally:
            self._lands_alone = False
            if self._riders:
                with suppress(RuntimeError):
                    self._is_done.release()
        return True

    def gathered(self) -> list[Rider[S, E]]:
        """Take all that wait; only for the thread that lands them."""
        taken: list[Rider[S, E]] = []
        try:
            while self._riders:
                taken.append(self._riders.popleft())
        except IndexError:
            # The last one was taken back meanwhile.
            pass
        self._taken += taken
        return taken

    def _work(self, land: Callable[[Sequence[Rider[S, E]]], None]) -> bool:
        if not self._riders:
            return False
        self._is_at_work = True
        try:
            while self._lands_alone:
                # Whoever was to say that he is done may have been interrupted on the way.
                self._is_done.acquire(timeout=LOOKS_AGAIN_S)
            riders = self.gathered()
            if riders:
                self._land(riders, land)
        finally:
            self._is_at_work = False
        return True

    def _land(
        self, riders: list[Rider[S, E]], land: Callable[[Sequence[Rider[S, E]]], None]
    ) -> None:
        try:
            land(riders)
        except BaseException as error:  # noqa: BLE001 - each raises it in a thread of its own
            for each in self._taken:
                if not each.is_answered:
                    each.fail(twin(error))
        taken, self._taken = self._taken, []
        _wake_in_turn([each for each in taken if not each.gone])

    def after_fork(self) -> None:
        """Leave to the parent what was asked there."""
        waiting = [*self._taken, *self._riders]
        self._taken = []
        self._riders.clear()
        self._lands_alone = self._is_at_work = False
        for each in waiting:
            if not each.is_answered:
                each.fail(
                    StoreError(
                        f"this process was forked while commit {each.request.commit_id} was under "
                        "way, which is its parent's; ask for it there"
                    )
                )
            each.wake()


def _wake_in_turn(answered: Sequence[Rider[S, E]]) -> None:
    """Wake the first, which wakes the next, and so on."""
    # A signal handler asks in the thread that it has stopped, and is the last one there to ask.
    running = {each.thread: each for each in answered}
    chain = [*running.values()]
    for each, following in pairwise(chain):
        each.following = following
    for each in answered:
        # Who is stopped wakes nobody before the handler has ended, which waits itself.
        if each is chain[0] or running[each.thread] is not each:
            each.wake()


def twin(error: BaseException) -> BaseException:
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
