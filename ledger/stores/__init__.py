"""Put-if-absent storage: bytes under keys, and nothing about commits.

- `base`: `Store`, the contract that every store keeps, and `Turn`, a lock that is held; its suite
  is `tests/store_contract.py`.
- `key`: which keys there are; the only place that decides whether a key is safe as a path.
- `local`: `LocalStore`, a POSIX folder; `Durability` says whether writes are fsynced.
- `posix`: the file operations under it.
- `folder_lock`: the advisory lock that local writers take turns with, and the order in which what
  they create shows; `refusals`: what a disk refuses, as against its silence.
- `memory`: `MemoryStore`, shared inside one process by name.
- `objects`: `ObjectStore`, in a bucket of S3, Google Cloud Storage or Azure.
- `clock`: the clock that a service dates its answers by.
- `through`: a store that is another one, and one of which some was read at once.
- `several`: several things asked for or done at a time.
- `log_alone`: a store as whoever trusts nothing but the log is to see it.
- `examination`: what a ledger needs of a store, tried out.
- `file_access`: opening files by URL, the one place that hands a URL to a client library.
- `regular_files`: local files through fsspec, regular files only.
- `factory`: `open_store`, from a URL to a store; refuses what has no proven conditional create.

A new store is one adapter here that passes the contract suite, and one line in `factory`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ledger.stores.base import Store, Turn
from ledger.stores.factory import client_options, open_store
from ledger.stores.local import Durability, LocalStore
from ledger.stores.memory import MemoryStore

if TYPE_CHECKING:
    from ledger.stores.objects.object_store import ObjectStore

__all__ = [
    "Durability",
    "LocalStore",
    "MemoryStore",
    "ObjectStore",
    "Store",
    "Turn",
    "client_options",
    "open_store",
]

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        # Its clients' side takes as long to import as all other stores together.
        if name != "ObjectStore":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
        from ledger.stores.objects.object_store import ObjectStore

        globals()[name] = ObjectStore
        return ObjectStore
