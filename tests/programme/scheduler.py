"""Threads that run one at a time: the next thread and the time are drawn from a seed.

A thread holds the baton from one `pause` to the next, so that a seed is a schedule, and the same
seed is the same schedule on every machine.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Sequence
from typing import Final

from attrs import define, field

from tests.faults import Died

HANGS_S: Final = 60.0
"""Real seconds after which a schedule counts as stuck."""

MOST_STEPS: Final = 200_000


class StuckError(AssertionError):
    """No thread can continue: a deadlock, or a loop without an end."""


@define(eq=False)
class Process:
    """A process that dies at once; a thread inside it finds out at the next step."""

    name: str
    generation: int = 0

    def kill(self) -> None:
        self.generation += 1


def _taken() -> threading.Lock:
    turn = threading.Lock()
    turn.acquire()
    return turn


@define(eq=False)
class Task:
    """One thread: its work, its process, and what it waits for."""

    process: Process
    work: Callable[[], None]
    process_generation: int = 0
    wake_s: float = 0.0
    ready: Callable[[], bool] | None = None
    turn: threading.Lock = field(factory=_taken)

    @property
    def is_dead(self) -> bool:
        return self.process_generation != self.process.generation


class Scheduler:
    """Runs tasks to their ends, in an order drawn from `rng`.

    Attributes:
        steps: How many pauses there were.
        now_s: Simulated seconds since the beginning.
        late: What the network still holds; it arrives at some later step.
    """

    def __init__(self, rng: random.Random) -> None:
        self.steps = 0
        self.now_s = 0.0
        self.late: list[Callable[[], object]] = []
        self._rng = rng
        self._stays = rng.choice([0.0, 0.5, 0.9])
        self._tasks: list[Task] = []
        self._threads: list[threading.Thread] = []
        self._current: Task | None = None
        self._done = threading.Event()
        self._failure: BaseException | None = None

    @property
    def current(self) -> Task:
        if self._current is None:
            raise AssertionError("nothing runs")
        return self._current

    @property
    def has_failed(self) -> bool:
        return self._failure is not None

    def run(self, tasks: Sequence[Task]) -> None:
        """Run all tasks; raises what any of them raised."""
        self._tasks = list(tasks)
        for each in tasks:
            self._begin(each)
        self._hand_on()
        if not self._done.wait(HANGS_S):
            raise StuckError(f"stuck in real time after {self.steps} steps")
        if self._failure is not None:
            raise self._failure
        for thread in self._threads:
            thread.join(HANGS_S)
        while self.late:
            self.late.pop(self._rng.randrange(len(self.late)))()

    def pause(self, wait_s: float = 0.0, ready: Callable[[], bool] | None = None) -> None:
        """Let others run; return when it is this task's turn again.

        Raises:
            Died: Its process was killed meanwhile.
        """
        task = self.current
        task.wake_s, task.ready = self.now_s + wait_s, ready
        self._hand_on()
        task.turn.acquire()
        if self._failure is not None or task.is_dead:
            raise Died

    def add(self, task: Task) -> None:
        """Let a task run among the others, from now on."""
        self._tasks.append(task)
        self._begin(task)

    def is_over(self, task: Task) -> bool:
        return task not in self._tasks

    def _begin(self, task: Task) -> None:
        thread = threading.Thread(target=self._live, args=(task,), daemon=True)
        self._threads.append(thread)
        thread.start()

    def sleep(self, wait_s: float) -> None:
        self.pause(wait_s)

    def _live(self, task: Task) -> None:
        task.turn.acquire()
        try:
            if self._failure is None:
                task.work()
        except BaseException as error:  # noqa: BLE001 - handed to the runner of the schedule
            self._failure = self._failure or error
        self._tasks.remove(task)
        self._hand_on()

    def _hand_on(self) -> None:
        self.steps += 1
        self.now_s += self._rng.choice((0.0, 0.001, 0.01))
        if self._rng.random() < 0.002:
            self.now_s += 12.0
        if self.late and self._rng.random() < 0.1:
            self.late.pop(self._rng.randrange(len(self.late)))()
        try:
            chosen = self._choose()
        except StuckError as error:
            self._failure = self._failure or error
            chosen = self._tasks[0] if self._tasks else None
        self._current = chosen
        if chosen is None:
            self._done.set()
        else:
            chosen.turn.release()

    def _choose(self) -> Task | None:
        if not self._tasks:
            return None
        if self._failure is not None:
            return self._tasks[0]
        if self.steps > MOST_STEPS:
            raise StuckError(f"no end after {self.steps} steps")
        able = [each for each in self._tasks if each.is_dead or not each.ready or each.ready()]
        if not able:
            raise StuckError(f"{len(self._tasks)} tasks wait for each other for ever")
        awake = [each for each in able if each.is_dead or each.wake_s <= self.now_s]
        if not awake:
            self.now_s = min(each.wake_s for each in able)
            awake = [each for each in able if each.wake_s <= self.now_s]
        if self._current in awake and self._rng.random() < self._stays:
            return self._current
        return self._rng.choice(awake)
