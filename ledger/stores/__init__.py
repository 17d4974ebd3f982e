"""Put-if-absent storage: bytes under keys, and nothing about commits.

- `base`: `Store`, the contract that every store keeps; its suite is `tests/store_contract.py`.
- `key`: which keys there are; the only place that decides whether a key is safe as a path.
- `local`: `LocalStore`, a POSIX folder; `Durability` says whether writes are fsynced.
- `folder_lock`: the advisory lock that local writers take turns with.
- `memory`: `MemoryStore`, shared inside one process by name.
- `factory`: `open_store`, from a URL to a store; refuses what has no proven conditional create.

A new store is one adapter here that passes the contract suite, and one line in `factory`.
"""

from __future__ import annotations

from ledger.stores.base import Store
from ledger.stores.factory import open_store
from ledger.stores.local import Durability, LocalStore
from ledger.stores.memory import MemoryStore

__all__ = ["Durability", "LocalStore", "MemoryStore", "Store", "open_store"]
