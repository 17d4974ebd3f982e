"""Examination of a store before its first use."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from msgspec import Struct

from ledger.stores.base import Store, folder_of

_FIRST = b"first"
_SECOND = b"second"


class Check(Struct, frozen=True):
    """One thing that was tried: what a store has to do, and whether it did."""

    claim: str
    holds: bool


def examine(store: Store, key: str) -> Iterator[Check]:
    """Try out a store on a key that does not exist; it is gone again afterwards.

    Args:
        store: The store.
        key: Nobody else's.

    Raises:
        StoreError: The store's own test of itself refuses it.
        OSError: It does not answer.

    Example:
        >>> from ledger.stores.memory import MemoryStore
        >>> all(check.holds for check in examine(MemoryStore("examined"), "a/b"))
        True
    """
    try:
        yield Check("creates a new key", store.create(key, _FIRST))
        yield Check("refuses to create it again", not store.create(key, _SECOND))
        yield Check("keeps what was written first", store.read(key) == _FIRST)
        yield Check("lists it at once", key in store.keys(folder_of(key)))
        store.replace(key, _SECOND)
        yield Check("replaces it", store.read(key) == _SECOND)
    finally:
        # What went wrong before is the news; that the key is still there shows right below.
        with suppress(OSError):
            store.delete(key)
    yield Check("forgets it once deleted", not store.exists(key))
