"""Stores that misbehave: each is a real store around another one, with a single bad habit."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Final

from ledger.stores import Store, Turn
from ledger.stores.concurrency import create_one_by_one
from ledger.stores.wrappers import ForwardingStore

ALWAYS: Final = sys.maxsize


class Died(BaseException):
    """The process would be gone by now, so that no `except Exception` may catch this."""


def any_key(_key: str) -> bool:
    return True


class Inline:
    """A worker that works in the thread that asks, and so at a moment that a test can name."""

    def __init__(self, _name: str) -> None:
        pass

    def ask(self, work: Callable[[], bool], _quiet_s: Callable[[], float] | None = None) -> None:
        while work():
            pass

    def wait(self, _timeout_s: float) -> bool:
        return True


class Wrapped(ForwardingStore):
    """A store that does what `inner` does."""

    is_near = True

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self.is_near = inner.is_near

    def create_many(
        self, steps: Sequence[Mapping[str, bytes]], met: Callable[[str, bytes], None]
    ) -> None:
        """One after the other, each as `create` does it."""
        create_one_by_one(self.create, steps, met)


class SometimesFaulty(Wrapped):
    """Hits the creates whose keys match `on`, at most `times`; `hits` says how many it hit."""

    def __init__(
        self, inner: Store, *, on: Callable[[str], bool] = any_key, times: int = ALWAYS
    ) -> None:
        super().__init__(inner)
        self.hits = 0
        self._on = on
        self._times = times

    def is_hit(self, key: str) -> bool:
        hit = self.hits < self._times and self._on(key)
        self.hits += hit
        return hit


class LosesAnswers(SometimesFaulty):
    """Applies the create; its answer never arrives."""

    def create(self, key: str, body: bytes) -> bool:
        answer = super().create(key, body)
        if self.is_hit(key):
            raise OSError(f"the answer to create {key!r} was lost")
        return answer


class LosesRequests(SometimesFaulty):
    """The create never arrives; to the writer it looks like a lost answer."""

    def create(self, key: str, body: bytes) -> bool:
        if self.is_hit(key):
            raise OSError(f"the answer to create {key!r} was lost")
        return super().create(key, body)


class DeliversTwice(SometimesFaulty):
    """A client below resends the create, and so reports to the winner that the key exists."""

    def create(self, key: str, body: bytes) -> bool:
        answer = super().create(key, body)
        return super().create(key, body) if self.is_hit(key) else answer


class RacesBefore(SometimesFaulty):
    """Runs `action` once, right before a create that matches `on`: another writer is faster."""

    def __init__(
        self, inner: Store, action: Callable[[], object], *, on: Callable[[str], bool] = any_key
    ) -> None:
        super().__init__(inner, on=on, times=1)
        self._action = action

    def create(self, key: str, body: bytes) -> bool:
        if self.is_hit(key):
            self._action()
        return super().create(key, body)


class DiesAfter(Wrapped):
    """Applies `writes` writes (create, both replaces, delete) and dies before the next one.

    From then on everything raises `Died`, reads too, as for a process that was killed; or another
    error, such as that of a store that does not answer any more.
    """

    def __init__(
        self, inner: Store, writes: int, error: Callable[[], BaseException] = Died
    ) -> None:
        super().__init__(inner)
        self.writes_left = writes
        self.is_dead = False
        self._error = error

    def create(self, key: str, body: bytes) -> bool:
        return self._writing().create(key, body)

    def replace(self, key: str, body: bytes) -> None:
        self._writing().replace(key, body)

    def replace_durably(self, key: str, body: bytes) -> None:
        self._writing().replace_durably(key, body)

    def delete(self, key: str) -> None:
        self._writing().delete(key)

    def read(self, key: str) -> bytes | None:
        return self._living().read(key)

    def confirm(self, key: str) -> bytes | None:
        return self._living().confirm(key)

    def read_many(self, keys: Sequence[str]) -> Iterator[bytes | None]:
        return self._living().read_many(keys)

    def exists(self, key: str) -> bool:
        return self._living().exists(key)

    def keys(self, prefix: str) -> Iterator[str]:
        return self._living().keys(prefix)

    def lock(self, key: str) -> AbstractContextManager[Turn | None]:
        return self._living().lock(key)

    def _living(self) -> Store:
        if self.is_dead:
            raise self._error()
        return self.inner

    def _writing(self) -> Store:
        self.is_dead = self.is_dead or self.writes_left == 0
        self.writes_left -= 1
        return self._living()


class Mortal(Wrapped):
    """Dies at a write, after a number of writes."""

    def __init__(self, inner: Store, writes: int) -> None:
        super().__init__(inner)
        self.writes = writes

    def _live(self) -> None:
        self.writes -= 1
        if self.writes < 0:
            raise Died

    def create(self, key: str, body: bytes) -> bool:
        self._live()
        return super().create(key, body)

    def replace(self, key: str, body: bytes) -> None:
        self._live()
        super().replace(key, body)

    def replace_durably(self, key: str, body: bytes) -> None:
        self._live()
        super().replace_durably(key, body)
