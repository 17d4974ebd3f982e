"""Stores: bytes under keys with an atomic create."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ledger.stores.base import Store, Turn
from ledger.stores.factory import client_options, open_store
from ledger.stores.local import Durability, LocalStore
from ledger.stores.memory import MemoryStore

if TYPE_CHECKING:
    from ledger.stores.object_store import ObjectStore

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
        # Imported on first use: it takes as long to import as all other stores together.
        if name != "ObjectStore":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
        from ledger.stores.object_store import ObjectStore

        globals()[name] = ObjectStore
        return ObjectStore
