"""Stores that wrap another store."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Final, Literal

from ledger.stores.base import Clock, Draft, Store, Turn
from ledger.stores.concurrency import answers


class ForwardingStore:
    """Store that forwards every call to another one; subclasses override some methods.

    Errors are those of `inner`.

    Args:
        inner: The store.
    """

    def __init__(self, inner: Store) -> None:
        self.inner = inner

    @property
    def url(self) -> str:
        """See Store."""
        return self.inner.url

    @property
    def is_near(self) -> bool:
        """See Store."""
        return self.inner.is_near

    def clock(self) -> Clock | None:
        """See Store."""
        return self.inner.clock()

    def ask_clock(self) -> Clock | None:
        """See Store."""
        return self.inner.ask_clock()

    def create(self, key: str, body: bytes) -> bool:
        """See Store."""
        return self.inner.create(key, body)

    def create_many(
        self, steps: Sequence[Mapping[str, bytes]], met: Callable[[str, bytes], None]
    ) -> None:
        """See Store."""
        self.inner.create_many(steps, met)

    def read(self, key: str) -> bytes | None:
        """See Store."""
        return self.inner.read(key)

    def confirm(self, key: str) -> bytes | None:
        """See Store."""
        return self.inner.confirm(key)

    def read_many(self, keys: Sequence[str]) -> Iterator[bytes | None]:
        """See Store."""
        return self.inner.read_many(keys)

    def exists(self, key: str) -> bool:
        """See Store."""
        return self.inner.exists(key)

    def replace(self, key: str, body: bytes) -> None:
        """See Store."""
        self.inner.replace(key, body)

    def replace_durably(self, key: str, body: bytes) -> None:
        """See Store."""
        self.inner.replace_durably(key, body)

    def keys(self, prefix: str) -> Iterator[str]:
        """See Store."""
        return self.inner.keys(prefix)

    def walk(self, prefix: str) -> Iterator[str]:
        """See Store."""
        return self.inner.walk(prefix)

    def delete(self, key: str) -> None:
        """See Store."""
        self.inner.delete(key)

    def drafts(self, prefix: str) -> Iterator[Draft]:
        """See Store."""
        return self.inner.drafts(prefix)

    def discard(self, draft: Draft) -> None:
        """See Store."""
        self.inner.discard(draft)

    def lock(self, key: str) -> AbstractContextManager[Turn | None]:
        """See Store."""
        return self.inner.lock(key)


class PrefetchedStore(ForwardingStore):
    """Store with prefetched bodies, each of which is returned once.

    For a short series of reads, such as opening a stream. A second read of a key goes to the store.

    Args:
        inner: The store.
    """

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self._known: dict[str, bytes | None] = {}

    def ask(self, keys: Iterable[str]) -> None:
        """Prefetch the bodies of keys, concurrently; does nothing on a local store.

        Raises:
            OSError: The store did not answer.
        """
        if not self.is_near:
            wanted = list(keys)
            self._known.update(zip(wanted, answers(self.inner.read, wanted), strict=True))

    def read(self, key: str) -> bytes | None:
        """See Store."""
        return self._known.pop(key) if key in self._known else self.inner.read(key)

    def read_many(self, keys: Sequence[str]) -> Iterator[bytes | None]:
        """See Store."""
        for place, key in enumerate(keys):
            if key not in self._known:
                # A lazy sequence of keys stays lazy as long as it is not sliced.
                yield from self.inner.read_many(keys[place:] if place else keys)
                return
            yield self._known.pop(key)

    def exists(self, key: str) -> bool:
        """See Store."""
        if self._known.get(key) is not None:
            return True
        return self.read(key) is not None if key in self._known else self.inner.exists(key)


Trust = Literal["all", "log"]
"""Files that a reader trusts: `all` includes caches that match the log, `log` excludes caches."""

_CACHE: Final = re.compile(r"(^|/)_ledger/(caches|checkpoints|names|segments|statistics)/")


def with_trust(store: Store, trust: Trust) -> Store:
    """Return a store that hides caches if only the log is trusted."""
    return LogOnlyStore(store) if trust == "log" else store


def with_caches(store: Store) -> Store:
    """Return the store with its caches, which `with_trust` may hide: for verifying the caches."""
    return store.inner if isinstance(store, LogOnlyStore) else store


class LogOnlyStore(ForwardingStore):
    """Store that hides the caches in another one from readers; writes of caches are forwarded."""

    def read(self, key: str) -> bytes | None:
        """See Store; None for a cache."""
        return None if _CACHE.search(key) else self.inner.read(key)

    def read_many(self, keys: Sequence[str]) -> Iterator[bytes | None]:
        """See Store; None for a cache."""
        bodies = self.inner.read_many([each for each in keys if not _CACHE.search(each)])
        return (None if _CACHE.search(each) else next(bodies) for each in keys)

    def exists(self, key: str) -> bool:
        """See Store; False for a cache."""
        return not _CACHE.search(key) and self.inner.exists(key)

    def keys(self, prefix: str) -> Iterator[str]:
        """See Store; without caches."""
        return (each for each in self.inner.keys(prefix) if not _CACHE.search(each))

    def walk(self, prefix: str) -> Iterator[str]:
        """See Store; without caches."""
        return (each for each in self.inner.walk(prefix) if not _CACHE.search(each))
