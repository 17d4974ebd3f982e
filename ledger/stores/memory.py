"""In-memory store, for tests and examples.

It has no lock of its own: a signal handler may commit while the thread that it interrupted is in
here. It relies on atomic dictionary operations instead.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Final

from ledger.stores.base import (
    Draft,
    check_body,
    check_key,
    check_path,
    folder_of,
    folder_prefix,
    held,
)
from ledger.stores.concurrency import create_one_by_one


class _CreatedBody(bytes):
    """Bytes of one create: a separate object, which its creator recognises by identity."""


class _SharedBodies:
    """Bodies and locks that all stores of one name share."""

    def __init__(self) -> None:
        self.bodies: dict[str, bytes] = {}
        self.after_fork()

    def after_fork(self) -> None:
        """Reset the locks: a forked child has none of the threads that held them."""
        self.folder_locks: dict[str, threading.Lock] = {}


# Two opens of one URL have to see the same data, so the names live as long as the process.
_memories: Final[dict[str, _SharedBodies]] = {}


def _reset_locks_after_fork() -> None:
    for each in [*_memories.values()]:
        each.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_locks_after_fork)


class MemoryStore:
    """Store of `memory://NAME`, whose data all opens of the name in this process share.

    `memory://NAME/FOLDER` is the part of `memory://NAME` below `FOLDER`, as with local folders.
    Nothing survives the process, and a forked child sees a copy.

    Example:
        >>> MemoryStore("docs").create("a/b", b"1"), MemoryStore("docs/a").read("b")
        (True, b'1')

    Raises:
        InvalidNameError: The name is not a valid path.
    """

    def __init__(self, name: str) -> None:
        name = name.removesuffix("/")
        check_path(name)
        self._name = name
        shared, _, folder = name.partition("/")
        self._base = folder_prefix(folder)
        self._memory = _memories.setdefault(shared, _SharedBodies())

    def __repr__(self) -> str:
        return f"MemoryStore({self._name!r})"

    def __reduce__(self) -> tuple[type[MemoryStore], tuple[str]]:
        return MemoryStore, (self._name,)

    @property
    def url(self) -> str:
        """URL of the root, `memory://NAME`."""
        return f"memory://{self._name}"

    @property
    def is_near(self) -> bool:
        """See `Store.is_near`."""
        return True

    def clock(self) -> None:
        """See `Store.clock`; this machine's is the only one."""

    def ask_clock(self) -> None:
        """See `Store.ask_clock`; this machine's is the only one."""

    def create(self, key: str, body: bytes) -> bool:
        """See `Store.create`."""
        check_key(key)
        check_body(key, body)
        mine = _CreatedBody(body)
        return self._memory.bodies.setdefault(self._base + key, mine) is mine

    def create_many(
        self, steps: Sequence[Mapping[str, bytes]], met: Callable[[str, bytes], None]
    ) -> None:
        """See `Store.create_many`."""
        create_one_by_one(self.create, steps, met)

    def read(self, key: str) -> bytes | None:
        """See `Store.read`."""
        check_key(key)
        found = self._memory.bodies.get(self._base + key)
        return None if found is None else bytes(found)

    def confirm(self, key: str) -> bytes | None:
        """See `Store.confirm`."""
        return self.read(key)

    def read_many(self, keys: Sequence[str]) -> Iterator[bytes | None]:
        """See `Store.read_many`."""
        for key in keys:
            yield self.read(key)

    def exists(self, key: str) -> bool:
        """See `Store.exists`."""
        check_key(key)
        return self._base + key in self._memory.bodies

    def replace(self, key: str, body: bytes) -> None:
        """See `Store.replace`."""
        check_key(key)
        check_body(key, body)
        self._memory.bodies[self._base + key] = bytes(body)

    def replace_durably(self, key: str, body: bytes) -> None:
        """See `Store.replace_durably`; nothing survives the process."""
        self.replace(key, body)

    def keys(self, prefix: str) -> Iterator[str]:
        """See `Store.keys`."""
        start = self._base + folder_prefix(prefix)
        found = [key for key in [*self._memory.bodies] if key.startswith(start)]
        return iter(sorted(key.removeprefix(self._base) for key in found))

    def delete(self, key: str) -> None:
        """See `Store.delete`."""
        check_key(key)
        self._memory.bodies.pop(self._base + key, None)

    def walk(self, prefix: str) -> Iterator[str]:
        """See `Store.walk`."""
        return self.keys(prefix)

    def drafts(self, prefix: str) -> Iterator[Draft]:
        """See `Store.drafts`; bodies appear at once, so there are none."""
        folder_prefix(prefix)
        return iter(())

    def discard(self, draft: Draft) -> None:
        """See `Store.discard`."""

    def lock(self, key: str) -> AbstractContextManager[None]:
        """See `Store.lock`."""
        folder = (self._base + folder_of(key)).removesuffix("/")
        return held(self._memory.folder_locks.setdefault(folder, threading.Lock()))
