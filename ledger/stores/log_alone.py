"""LogAlone: a store that shows no cache of a ledger, so that all is read from its log."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final, Literal

from ledger.stores.base import Store
from ledger.stores.through import Through

Trust = Literal["all", "log"]
"""What a reader takes for true: caches that fit the log, too, or the log and nothing else."""

_CACHE: Final = re.compile(r"(^|/)_ledger/(caches|checkpoints|names|segments|statistics)/")


def trusting(store: Store, trust: Trust) -> Store:
    """Return a store as whoever trusts so much is to see it."""
    return LogAlone(store) if trust == "log" else store


def with_caches(store: Store) -> Store:
    """Return a store with what `trusting` hides of it: for whoever looks whether caches fit."""
    return store.inner if isinstance(store, LogAlone) else store


class LogAlone(Through):
    """What `inner` holds, but for caches; they are written as ever."""

    def read(self, key: str) -> bytes | None:
        """See Store; nothing where it is a cache."""
        return None if _CACHE.search(key) else self.inner.read(key)

    def read_many(self, keys: Sequence[str]) -> Iterator[bytes | None]:
        """See Store; nothing where it is a cache."""
        bodies = self.inner.read_many([each for each in keys if not _CACHE.search(each)])
        return (None if _CACHE.search(each) else next(bodies) for each in keys)

    def exists(self, key: str) -> bool:
        """See Store; a cache does not."""
        return not _CACHE.search(key) and self.inner.exists(key)

    def keys(self, prefix: str) -> Iterator[str]:
        """See Store; without caches."""
        return (each for each in self.inner.keys(prefix) if not _CACHE.search(each))

    def walk(self, prefix: str) -> Iterator[str]:
        """See Store; without caches."""
        return (each for each in self.inner.walk(prefix) if not _CACHE.search(each))
