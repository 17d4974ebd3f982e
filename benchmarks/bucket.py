"""Buckets for benchmarks: a temporary server, upload of ledgers, and a count of requests."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ledger.stores import Store
from tests.faults import Wrapped
from tests.stores.servers.buckets import root, seaweedfs

_WRITERS = 16


@contextmanager
def place_for(url: str | None) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield a location and its options: the given URL, or a bucket of a temporary server."""
    if url is not None:
        yield url, {}
        return
    with tempfile.TemporaryDirectory() as folder, seaweedfs(Path(folder)) as server:
        yield root(server, "bench"), server.options


class Counting(Wrapped):
    """A store that counts reads and existence checks.

    Attributes:
        asked: Number of requests.
    """

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self.asked = 0

    def read(self, key: str) -> bytes | None:
        """Read a key's bytes; counts as one request."""
        self.asked += 1
        return super().read(key)

    def read_many(self, keys: Sequence[str]) -> Iterator[bytes | None]:
        """Read the bytes of some keys; each counts as one request."""
        for body in super().read_many(keys):
            self.asked += 1
            yield body

    def exists(self, key: str) -> bool:
        """Check that a key exists; counts as one request."""
        self.asked += 1
        return super().exists(key)


def upload(source: Store, keys: Iterable[str], target: Store) -> None:
    """Copy some keys of a store to another one."""
    with ThreadPoolExecutor(_WRITERS) as pool:
        for _ in pool.map(lambda key: target.replace(key, source.read(key) or b""), keys):
            pass
