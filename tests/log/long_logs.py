"""Tables with long logs, written straight to their store: what is asked is how they are read."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from functools import lru_cache

from benchmarks.history import Author, commit_of
from ledger import Table
from ledger.log import digest, encode
from ledger.log.segments import segment_of, split_at_segments
from ledger.stores import MemoryStore, Store
from ledger.table_handle import handle_of
from tests.faults import Wrapped
from tests.lakes import lake_on, memory, orders, ticking

CREATED_MILLIS = 1_600_000_000_000
LATER_MILLIS = 1_800_000_000_000
ROOT = "shop.db/orders/_ledger"


class Without(Wrapped):
    """A store without segments."""

    def read(self, key: str) -> bytes | None:
        return None if "/segments/" in key else super().read(key)

    def read_many(self, keys: Sequence[str]) -> Iterator[bytes | None]:
        if any("/segments/" in key for key in keys):
            return map(self.read, keys)
        return super().read_many(keys)


def long_table(store: Store, commits: int, width: int = 3) -> Table:
    """Return a table at version `commits`, as another process finds it; no caches."""
    author = Author(width)
    table = orders(lake_on(store, ticking(CREATED_MILLIS)), author.schema())
    head = handle_of(table).log.head
    parent = head.digest if head else ""
    for version, transaction in enumerate(itertools.islice(author.transactions(), commits), 1):
        body = encode(commit_of(transaction, version, parent))
        store.create(handle_of(table).log.layout.commit(version), body)
        parent = digest(body)
    return table_on(store)


def table_on(store: Store) -> Table:
    """Return the table of a store, as another process finds it."""
    return lake_on(store, ticking(LATER_MILLIS)).table("shop.orders")


def sealed(table: Table, commits: int) -> None:
    """Make all segments of a table's log."""
    for first, last in split_at_segments(0, commits):
        body = (
            handle_of(table).log.segments.made(first, last)
            if segment_of(first) == (first, last)
            else None
        )
        if body is not None:
            handle_of(table).log.store.replace(
                handle_of(table).log.layout.segment(first, last), body
            )


@lru_cache(maxsize=8)
def long_log(commits: int, width: int = 3) -> dict[str, bytes]:
    """Return the bodies of a ledger whose table has a long log and all its segments."""
    store = memory()
    sealed(long_table(store, commits, width), commits)
    return {key: store.read(key) or b"" for key in store.keys("")}


def store_of(bodies: dict[str, bytes], name: str) -> MemoryStore:
    """Return a store that holds some bodies."""
    store = MemoryStore(name)
    for key in store.keys(""):
        store.delete(key)
    for key, body in bodies.items():
        store.create(key, body)
    return store
