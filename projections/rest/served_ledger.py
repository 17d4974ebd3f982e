"""The served ledger, which all protocols share: handles of tables, locations, clients' config."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Final, Generic, TypeVar

import msgspec
from attrs import define, field, frozen

from ledger.ledger_handle import LedgerHandle
from ledger.locations import place_of, with_scheme
from ledger.log.request import fresh_id
from ledger.model.errors import TableDroppedError
from ledger.model.names import Identifier
from ledger.state.catalog import CatalogState, DatabaseEntry, TableEntry
from ledger.table_handle import TableHandle

K = TypeVar("K")
V = TypeVar("V")

MOST_HANDLES: Final = 10_000


class BoundedCache(Generic[K, V]):
    """Cache of the values used last, up to a size; safe for concurrent use.

    Args:
        most: The sum of sizes from which on the values used longest ago are removed.
        size_of: Returns the size of a value.
    """

    def __init__(self, most: int, size_of: Callable[[V], int]) -> None:
        self._most = most
        self._size_of = size_of
        self._size = 0
        self._values: OrderedDict[K, V] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: K) -> V | None:
        """Return the value of a key, if it is cached."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
            return self._values.get(key)

    def put(self, key: K, value: V) -> V:
        """Cache a value unless the key has one; return the one that it has then."""
        with self._lock:
            if key in self._values:
                return self._values[key]
            self._values[key] = value
            self._size += self._size_of(value)
            while self._size > self._most and len(self._values) > 1:
                self._size -= self._size_of(self._values.popitem(last=False)[1])
            return value

    def remove(self, key: K) -> None:
        """Remove a key, if it is cached."""
        with self._lock:
            if key in self._values:
                self._size -= self._size_of(self._values.pop(key))


@frozen(slots=False)
class StorageConfig:
    """Client configuration by location, as the operator wrote it.

    Attributes:
        by_prefix: Properties such as `s3.endpoint`, by the prefix of the locations that they are
            for.
    """

    by_prefix: Mapping[str, Mapping[str, str]] = field(factory=dict, repr=False)

    @cached_property
    def digest(self) -> str:
        """Digest of the whole configuration."""
        return hashlib.sha256(msgspec.json.encode(self.by_prefix, order="sorted")).hexdigest()

    def of(self, location: str) -> list[tuple[str, Mapping[str, str]]]:
        """Return the prefixes that hold a location with their properties, the longest last.

        Example:
            >>> config = StorageConfig({"s3://lake/": {"s3.region": "eu"}})
            >>> config.of("s3a://lake/t"), config.of("s3://lake2/t")
            ([('s3://lake/', {'s3.region': 'eu'})], [])
        """
        place = place_of(location)
        found = [each for each in self.by_prefix.items() if place_of(each[0]).holds(place)]
        return sorted(found, key=lambda each: len(each[0]))


@define(eq=False)
class ServedLedger:
    """A ledger that is served, whatever the protocol.

    All requests for a table share one handle, so that concurrent commits are batched.

    Attributes:
        handle: The ledger.
        storage: Client configuration by location.
    """

    handle: LedgerHandle
    storage: StorageConfig = field(factory=StorageConfig)
    _tables: BoundedCache[str, TableHandle] = field(
        factory=lambda: BoundedCache(MOST_HANDLES, lambda _: 1), init=False
    )

    @property
    def state(self) -> CatalogState:
        """The newest state of the catalog."""
        return self.handle.state

    def check_ready(self) -> None:
        """Check that the ledger can be read.

        Raises:
            LedgerError: It cannot.
        """
        self.handle.refuse_missing()
        _ = self.state

    def table(self, identifier: Identifier) -> TableHandle | None:
        """Return the handle of a table; None if there is no such table."""
        entry = self.state.tables.get(identifier)
        return None if entry is None else self.opened(entry)

    def opened(self, entry: TableEntry) -> TableHandle | None:
        """Return the handle of a catalog's table; None if it was dropped meanwhile."""
        found = self._tables.get(entry.table_id)
        if found is not None and found.identifier == entry.identifier:
            return found
        try:
            opened = self.handle.open_table(entry)
        except TableDroppedError:
            return None
        # A renamed table gets a new handle, with the new name in its messages.
        self._tables.remove(entry.table_id)
        return self._tables.put(entry.table_id, opened)

    def forget(self, table_id: str) -> None:
        """Release the handle of a dropped table."""
        self._tables.remove(table_id)

    def new_location(self, identifier: Identifier) -> str:
        """Return a location for a new table that no other table has or had."""
        parent = self.location_of(self.state.databases[identifier.database])
        return f"{parent.rstrip('/')}/{identifier.name}-{fresh_id()}"

    def location_of(self, database: DatabaseEntry) -> str:
        """Return where tables of a database go: its property `location`, or its own folder."""
        home = f"{self.handle.setting.home}/{database.path}"
        return with_scheme(database.options.get("location") or home)
