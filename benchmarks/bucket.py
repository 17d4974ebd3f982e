"""A bucket to measure on: a server made for it, ledgers put into it, and what is asked of it."""

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
    """Give a place and its options: a URL as it is, or a bucket of a server made for it."""
    if url is not None:
        yield url, {}
        return
    with tempfile.TemporaryDirectory() as folder, seaweedfs(Path(folder)) as server:
        yield root(server, "bench"), server.options


class Counting(Wrapped):
    """A store that counts what is read or looked for.

    Attributes:
        asked: So often.
    """

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self.asked = 0

    def read(self, key: str) -> bytes | None:
        """Read a key's bytes, which is one more."""
        self.asked += 1
        return super().read(key)

    def read_many(self, keys: Sequence[str]) -> Iterator[bytes | None]:
        """Read the bytes of some keys, each of which is one more."""
        for body in super().read_many(keys):
            self.asked += 1
            yield body

    def exists(self, key: str) -> bool:
        """Look for a key, which is one more."""
        self.asked += 1
        return super().exists(key)


def upload(source: Store, keys: Iterable[str], target: Store) -> None:
    """Put what stands under some keys of a store into another one."""
    with ThreadPoolExecutor(_WRITERS) as pool:
        for _ in pool.map(lambda key: target.replace(key, source.read(key) or b""), keys):
            pass
