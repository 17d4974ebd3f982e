"""Put-if-absent storage: bytes under keys, and nothing about commits.

- `base`: `Store`, the contract that every store keeps; its suite is `tests/store_contract.py`.
- `key`: which keys there are; the only place that decides whether a key is safe as a path.
- `local`: `LocalStore`, a POSIX folder; `Durability` says whether writes are fsynced.
- `folder_lock`: the advisory lock that local writers take turns with; `refusals`: what a disk
  refuses, as against its silence.
- `memory`: `MemoryStore`, shared inside one process by name.
- `object_store`: `ObjectStore`, in a bucket of S3, Google Cloud Storage or Azure, on `bucket`,
  the requests through fsspec, or on `obstore_bucket`, the same through obstore.
- `services`: which object stores and clients there are, and where a URL's root is;
  `storage_options`: one dictionary of options for every library; `obstore_options`: as obstore
  calls them.
- `answers`: what a client's exception means; `self_test`: the two writes that show whether a
  store refuses to create what exists; `clock`: the clock that a service dates its answers by.
- `factory`: `open_store`, from a URL to a store; refuses what has no proven conditional create.

A new store is one adapter here that passes the contract suite, and one line in `factory`.
"""

from __future__ import annotations

from ledger.stores.base import Store
from ledger.stores.factory import client_options, open_store
from ledger.stores.local import Durability, LocalStore
from ledger.stores.memory import MemoryStore
from ledger.stores.object_store import ObjectStore

__all__ = [
    "Durability",
    "LocalStore",
    "MemoryStore",
    "ObjectStore",
    "Store",
    "client_options",
    "open_store",
]
