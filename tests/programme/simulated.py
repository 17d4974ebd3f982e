"""A store that many simulated processes share, with the habits of networks and of power cuts.

It keeps the contract of `Store`, which promises nothing about a call that raises `OSError`.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Final, NoReturn, TypeVar

from attrs import define, field

from ledger.stores.base import Draft, check_body, check_key, folder_of, folder_prefix
from ledger.stores.concurrency import create_one_by_one
from tests.faults import Died
from tests.programme.cooperative import CooperativeLock
from tests.programme.scheduler import Process, Scheduler

T = TypeVar("T")

HABITS: Final = (
    "lost request",
    "lost answer",
    "duplicate delivery",
    "delayed put",
    "stale listing",
    "torn cache",
    "outage",
    "crash before",
    "crash after",
)
RECENT: Final = 20


@define(eq=False)
class Sea:
    """The stored objects, and the faults on the way to them.

    Attributes:
        bodies: The truth.
        scheduler: Picks the next thread.
        rng: Draws what goes wrong.
        habits: What may go wrong.
        rate: How often.
        is_locking: Whether `lock` keeps others out; object stores let everybody in.
        faults: What did go wrong, by habit.
    """

    bodies: dict[str, bytes]
    scheduler: Scheduler
    rng: random.Random
    habits: frozenset[str] = frozenset()
    rate: float = 0.0
    is_locking: bool = False
    faults: Counter[str] = field(factory=Counter)
    recent: list[str] = field(factory=list)
    locks: dict[str, CooperativeLock] = field(factory=dict)

    def create(self, key: str, body: bytes) -> bool:
        if key in self.bodies:
            return False
        self.bodies[key] = body
        self.recent = [*self.recent, key][-RECENT:]
        return True

    def replace(self, key: str, body: bytes) -> None:
        self.bodies[key] = body

    def is_hit(self, habit: str) -> bool:
        hit = habit in self.habits and self.rng.random() < self.rate
        self.faults[habit] += hit
        return hit


class Port:
    """The store as one simulated process sees it; every call is a step of the schedule."""

    def __init__(self, sea: Sea, process: Process) -> None:
        self._sea = sea
        self._process = process
        self._out_until_s = 0.0

    @property
    def url(self) -> str:
        return "memory://simulated"

    @property
    def is_near(self) -> bool:
        return False

    def clock(self) -> None:
        """Nobody has another clock than the process itself."""

    def ask_clock(self) -> None:
        """Nobody has another clock than the process itself."""

    def create(self, key: str, body: bytes) -> bool:
        check_body(key, body)
        return self._write(key, lambda: self._sea.create(key, body))

    def create_many(
        self, steps: Sequence[Mapping[str, bytes]], met: Callable[[str, bytes], None]
    ) -> None:
        create_one_by_one(self.create, steps, met)

    def replace(self, key: str, body: bytes) -> None:
        check_body(key, body)
        written = body
        if self._sea.is_hit("torn cache"):
            written = body[: self._sea.rng.randrange(len(body))]
        self._write(key, lambda: self._sea.replace(key, written))

    def replace_durably(self, key: str, body: bytes) -> None:
        check_body(key, body)
        self._write(key, lambda: self._sea.replace(key, body))

    def delete(self, key: str) -> None:
        self._write(key, lambda: self._sea.bodies.pop(key, None))

    def read(self, key: str) -> bytes | None:
        self._ask(key)
        return self._sea.bodies.get(key)

    def confirm(self, key: str) -> bytes | None:
        return self.read(key)

    def read_many(self, keys: Sequence[str]) -> Iterator[bytes | None]:
        for number, key in enumerate(keys):
            if number == 0 or self._sea.rng.random() < 0.05:
                self._ask(key)
            else:
                check_key(key)
            yield self._sea.bodies.get(key)

    def exists(self, key: str) -> bool:
        self._ask(key)
        return key in self._sea.bodies

    def keys(self, prefix: str) -> Iterator[str]:
        start = folder_prefix(prefix)
        self._ask("listing")
        missing = set(self._sea.recent) if self._sea.is_hit("stale listing") else set()
        known = (each for each in self._sea.bodies if each.startswith(start))
        return iter(sorted(each for each in known if each not in missing))

    def walk(self, prefix: str) -> Iterator[str]:
        return self.keys(prefix)

    def drafts(self, prefix: str) -> Iterator[Draft]:
        folder_prefix(prefix)
        return iter(())

    def discard(self, draft: Draft) -> None:
        """There are none."""

    def lock(self, key: str) -> AbstractContextManager[None]:
        return self._held(folder_of(key))

    @contextmanager
    def _held(self, folder: str) -> Iterator[None]:
        if not self._sea.is_locking:
            yield
            return
        fresh = CooperativeLock(self._sea.scheduler, is_reentrant=False)
        turn = self._sea.locks.setdefault(folder, fresh)
        turn.acquire()
        try:
            yield
        finally:
            turn.release()

    def _ask(self, key: str) -> None:
        check_key(key)
        self._travel()
        if self._sea.is_hit("lost answer"):
            self._lose(key)

    def _write(self, key: str, apply: Callable[[], T]) -> T:
        check_key(key)
        self._travel()
        self._refuse_dead("crash before")
        if self._sea.is_hit("lost request"):
            self._lose(key)
        if self._sea.is_hit("delayed put"):
            self._sea.scheduler.late.append(apply)
            self._lose(key)
        answer = apply()
        if self._sea.is_hit("duplicate delivery"):
            if self._sea.rng.random() < 0.5:
                answer = apply()
            else:
                self._sea.scheduler.late.append(apply)
        self._refuse_dead("crash after")
        self._sea.scheduler.pause()
        if self._sea.is_hit("lost answer"):
            self._lose(key)
        return answer

    def _travel(self) -> None:
        self._sea.scheduler.pause()
        now_s = self._sea.scheduler.now_s
        is_open = now_s >= self._out_until_s and self._sea.rng.random() < 0.1
        if is_open and self._sea.is_hit("outage"):
            self._out_until_s = now_s + self._sea.rng.uniform(0, 8)
        if now_s < self._out_until_s:
            self._lose("everything")

    def _refuse_dead(self, habit: str) -> None:
        if self._sea.is_hit(habit):
            self._process.kill()
            raise Died

    def _lose(self, key: str) -> NoReturn:
        raise OSError(f"no answer about {key!r}")
